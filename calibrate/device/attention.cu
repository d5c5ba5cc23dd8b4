/* SPDX-License-Identifier: MIT
 *
 * An own fused causal attention (records carry kernel "trainyard"): tiles of 64 queries and 64 keys on
 * the tensor cores by WMMA, the online softmax of flash attention (Dao 2022), no score leaves the chip.
 * It is plain: no asynchronous copies, no warp specialisation; a tuned library is faster by two to four
 * times on recent devices, so import its records where you have them.
 *
 *   forward   O = softmax(Q K' / sqrt(d)) V,  L = max + log sum
 *   backward  P = exp(Q K' / sqrt(d) - L),  D = rowsum(dO O),  dS = P (dO V' - D) / sqrt(d)
 *             dV = P' dO, dK = dS' Q in one kernel over keys, dQ = dS K in one over queries: scores twice
 *
 * Each warp of four owns 16 of the 64 rows. Letters: T tile, d head size. */
#include "calibrate/device/device.h"

#include <mma.h>
#include <stdio.h>
#include <string.h>

using namespace nvcuda;

enum { T = 64, WARPS = 4, ROWS = 16, THREADS = 32 * WARPS };

template <typename E> using FragA = wmma::fragment<wmma::matrix_a, 16, 16, 16, E, wmma::row_major>;
template <typename E> using FragAT = wmma::fragment<wmma::matrix_a, 16, 16, 16, E, wmma::col_major>;
template <typename E> using FragB = wmma::fragment<wmma::matrix_b, 16, 16, 16, E, wmma::row_major>;
template <typename E> using FragBT = wmma::fragment<wmma::matrix_b, 16, 16, 16, E, wmma::col_major>;
using FragC = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <typename E> __device__ E narrow(float x);
template <> __device__ __nv_bfloat16 narrow(float x) { return __float2bfloat16(x); }
template <> __device__ half narrow(float x) { return __float2half(x); }
__device__ static float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ static float widen(half x) { return __half2float(x); }

/* T x d elements into shared memory, 16 bytes a thread. */
template <typename E, int D> __device__ static void load_tile(E *to, const E *from)
{
    const int4 *source = (const int4 *)from;
    int4 *target = (int4 *)to;
    for (int i = threadIdx.x; i < T * D * (int)sizeof(E) / 16; i += THREADS)
        target[i] = source[i];
}

/* scores[16 rows of this warp][64] = A B' ; A, B: T x d */
template <typename E, int D> __device__ static void product(float *scores, const E *a, const E *b)
{
    const int row = ROWS * (threadIdx.x / 32);
    for (int n = 0; n < T / 16; n++) {
        FragC sum;
        wmma::fill_fragment(sum, 0.0f);
        for (int k = 0; k < D; k += 16) {
            FragA<E> left;
            FragBT<E> right;
            wmma::load_matrix_sync(left, a + row * D + k, D);
            wmma::load_matrix_sync(right, b + n * 16 * D + k, D);
            wmma::mma_sync(sum, left, right, sum);
        }
        wmma::store_matrix_sync(scores + row * T + n * 16, sum, T, wmma::mem_row_major);
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

template <typename E, int D>
__global__ void __launch_bounds__(THREADS) forward_kernel(int seq, const E *q, const E *k, const E *v, E *out, float *lse)
{
    extern __shared__ __align__(128) char shared[];
    E *sq = (E *)shared, *sk = sq + T * D, *sv = sk + T * D, *sp = sv + T * D;
    float *ss = (float *)(sp + T * T), *so = ss + T * T;
    const int lane = threadIdx.x % 32, row = ROWS * (threadIdx.x / 32) + lane / 2, side = lane % 2;
    const int tile = gridDim.x - 1 - blockIdx.x; /* long rows first */
    const size_t base = (size_t)blockIdx.y * seq * D;
    const float scale = rsqrtf((float)D);
    float most = -INFINITY, sum = 0.0f;
    load_tile<E, D>(sq, q + base + (size_t)tile * T * D);
    for (int i = threadIdx.x; i < T * D; i += THREADS)
        so[i] = 0.0f;
    for (int j = 0; j <= tile; j++) {
        __syncthreads();
        load_tile<E, D>(sk, k + base + (size_t)j * T * D);
        load_tile<E, D>(sv, v + base + (size_t)j * T * D);
        __syncthreads();
        product<E, D>(ss, sq, sk);
        __syncwarp();
        /* two threads a row, 32 columns each */
        float *s = ss + row * T + side * 32, tile_most = -INFINITY, tile_sum = 0.0f;
        for (int c = 0; c < 32; c++) {
            s[c] = j == tile && side * 32 + c > row ? -INFINITY : s[c] * scale;
            tile_most = fmaxf(tile_most, s[c]);
        }
        tile_most = fmaxf(tile_most, __shfl_xor_sync(0xffffffffu, tile_most, 1));
        const float now = fmaxf(most, tile_most), shrink = __expf(most - now);
        for (int c = 0; c < 32; c++) {
            const float p = __expf(s[c] - now);
            tile_sum += p;
            sp[row * T + side * 32 + c] = narrow<E>(p);
        }
        sum = sum * shrink + tile_sum + __shfl_xor_sync(0xffffffffu, tile_sum, 1);
        most = now;
        for (int c = side * (D / 2); c < (side + 1) * (D / 2); c++)
            so[row * D + c] *= shrink;
        __syncwarp();
        const int first = ROWS * (threadIdx.x / 32);
        for (int n = 0; n < D / 16; n++) {
            FragC total;
            wmma::load_matrix_sync(total, so + first * D + n * 16, D, wmma::mem_row_major);
            for (int c = 0; c < T; c += 16) {
                FragA<E> left;
                FragB<E> right;
                wmma::load_matrix_sync(left, sp + first * T + c, T);
                wmma::load_matrix_sync(right, sv + c * D + n * 16, D);
                wmma::mma_sync(total, left, right, total);
            }
            wmma::store_matrix_sync(so + first * D + n * 16, total, D, wmma::mem_row_major);
        }
        __syncwarp();
    }
    E *to = out + base + ((size_t)tile * T + row) * D;
    for (int c = side * (D / 2); c < (side + 1) * (D / 2); c++)
        to[c] = narrow<E>(so[row * D + c] / sum);
    if (side == 0)
        lse[(size_t)blockIdx.y * seq + tile * T + row] = most + __logf(sum);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* One warp a row: delta = sum(dO O) */
template <typename E, int D>
__global__ void delta_kernel(size_t rows, const E *out, const E *d_out, float *delta)
{
    const size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float sum = 0.0f;
    if (row >= rows)
        return;
    for (int c = threadIdx.x % 32; c < D; c += 32)
        sum += widen(out[row * D + c]) * widen(d_out[row * D + c]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        delta[row] = sum;
}

/* P and dS of a tile of queries i and keys j out of the two products. */
template <typename E>
__device__ static void gradients_of_scores(const float *ss, const float *sdp, E *sp, E *sds, const float *lse,
                                           const float *delta, bool diagonal, float scale)
{
    for (int at = threadIdx.x; at < T * T; at += THREADS) {
        const int row = at / T, column = at % T;
        const float p = diagonal && column > row ? 0.0f : __expf(ss[at] * scale - lse[row]);
        sp[at] = narrow<E>(p);
        sds[at] = narrow<E>(p * (sdp[at] - delta[row]) * scale);
    }
}

template <typename E, int D> struct tiles {
    E *q, *d_out, *k, *v, *p, *ds;
    float *s, *dp;
    __device__ explicit tiles(char *at)
    {
        q = (E *)at;
        d_out = q + T * D;
        k = d_out + T * D;
        v = k + T * D;
        p = v + T * D;
        ds = p + T * T;
        s = (float *)(ds + T * T);
        dp = s + T * T;
    }
};

template <typename E, int D>
__device__ static void recompute(const tiles<E, D> &t, const float *lse, const float *delta, bool diagonal)
{
    product<E, D>(t.s, t.q, t.k);
    product<E, D>(t.dp, t.d_out, t.v);
    __syncthreads();
    gradients_of_scores<E>(t.s, t.dp, t.p, t.ds, lse, delta, diagonal, rsqrtf((float)D));
    __syncthreads();
}

/* Accumulators of this warp's rows through the scores' space, 16 columns at a time. */
template <typename E, int D> __device__ static void write_rows(const FragC *sum, float *space, E *to)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *own = space + warp * ROWS * 16;
    for (int n = 0; n < D / 16; n++) {
        wmma::store_matrix_sync(own, sum[n], 16, wmma::mem_row_major);
        __syncwarp();
        for (int i = lane; i < ROWS * 16; i += 32)
            to[(warp * ROWS + i / 16) * D + n * 16 + i % 16] = narrow<E>(own[i]);
        __syncwarp();
    }
}

/* dK, dV of one tile of keys */
template <typename E, int D>
__global__ void __launch_bounds__(THREADS)
    keys_kernel(int seq, const E *q, const E *k, const E *v, const E *d_out, const float *lse, const float *delta,
                E *dk, E *dv)
{
    extern __shared__ __align__(128) char shared[];
    const tiles<E, D> t(shared);
    const size_t base = (size_t)blockIdx.y * seq * D, line = (size_t)blockIdx.y * seq;
    const int j = blockIdx.x, first = ROWS * (threadIdx.x / 32);
    FragC sum_k[D / 16], sum_v[D / 16];
    for (int n = 0; n < D / 16; n++) {
        wmma::fill_fragment(sum_k[n], 0.0f);
        wmma::fill_fragment(sum_v[n], 0.0f);
    }
    load_tile<E, D>(t.k, k + base + (size_t)j * T * D);
    load_tile<E, D>(t.v, v + base + (size_t)j * T * D);
    for (int i = j; i < seq / T; i++) {
        __syncthreads();
        load_tile<E, D>(t.q, q + base + (size_t)i * T * D);
        load_tile<E, D>(t.d_out, d_out + base + (size_t)i * T * D);
        __syncthreads();
        recompute<E, D>(t, lse + line + i * T, delta + line + i * T, i == j);
        for (int n = 0; n < D / 16; n++)
            for (int c = 0; c < T; c += 16) {
                FragAT<E> left;
                FragB<E> right;
                wmma::load_matrix_sync(left, t.p + c * T + first, T); /* P' */
                wmma::load_matrix_sync(right, t.d_out + c * D + n * 16, D);
                wmma::mma_sync(sum_v[n], left, right, sum_v[n]);
                wmma::load_matrix_sync(left, t.ds + c * T + first, T); /* dS' */
                wmma::load_matrix_sync(right, t.q + c * D + n * 16, D);
                wmma::mma_sync(sum_k[n], left, right, sum_k[n]);
            }
    }
    __syncthreads();
    write_rows<E, D>(sum_k, t.s, dk + base + (size_t)j * T * D);
    write_rows<E, D>(sum_v, t.s, dv + base + (size_t)j * T * D);
}

/* dQ of one tile of queries */
template <typename E, int D>
__global__ void __launch_bounds__(THREADS)
    queries_kernel(int seq, const E *q, const E *k, const E *v, const E *d_out, const float *lse, const float *delta,
                   E *dq)
{
    extern __shared__ __align__(128) char shared[];
    const tiles<E, D> t(shared);
    const size_t base = (size_t)blockIdx.y * seq * D, line = (size_t)blockIdx.y * seq;
    const int i = gridDim.x - 1 - blockIdx.x, first = ROWS * (threadIdx.x / 32);
    FragC sum[D / 16];
    for (int n = 0; n < D / 16; n++)
        wmma::fill_fragment(sum[n], 0.0f);
    load_tile<E, D>(t.q, q + base + (size_t)i * T * D);
    load_tile<E, D>(t.d_out, d_out + base + (size_t)i * T * D);
    for (int j = 0; j <= i; j++) {
        __syncthreads();
        load_tile<E, D>(t.k, k + base + (size_t)j * T * D);
        load_tile<E, D>(t.v, v + base + (size_t)j * T * D);
        __syncthreads();
        recompute<E, D>(t, lse + line + i * T, delta + line + i * T, i == j);
        for (int n = 0; n < D / 16; n++)
            for (int c = 0; c < T; c += 16) {
                FragA<E> left;
                FragB<E> right;
                wmma::load_matrix_sync(left, t.ds + first * T + c, T);
                wmma::load_matrix_sync(right, t.k + c * D + n * 16, D);
                wmma::mma_sync(sum[n], left, right, sum[n]);
            }
    }
    __syncthreads();
    write_rows<E, D>(sum, t.s, dq + base + (size_t)i * T * D);
}

/* ---- launches -------------------------------------------------------------------------------- */

template <typename E, int D>
static bool forward(cudaStream_t stream, int blocks, int seq, const E *q, const E *k, const E *v, E *out, float *lse)
{
    const size_t bytes = (3 * T * D + T * T) * sizeof(E) + (T * T + T * D) * sizeof(float);
    if (!CUDA(cudaFuncSetAttribute(forward_kernel<E, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)))
        return false;
    forward_kernel<E, D><<<dim3(seq / T, blocks), THREADS, bytes, stream>>>(seq, q, k, v, out, lse);
    return CUDA(cudaGetLastError());
}

template <typename E, int D>
static bool backward(cudaStream_t stream, int blocks, int seq, const E *q, const E *k, const E *v, const E *out,
                     const E *d_out, const float *lse, float *delta, E *dq, E *dk, E *dv)
{
    const size_t rows = (size_t)blocks * seq;
    const size_t bytes = (4 * T * D + 2 * T * T) * sizeof(E) + 2 * T * T * sizeof(float);
    if (!CUDA(cudaFuncSetAttribute(keys_kernel<E, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)) ||
        !CUDA(cudaFuncSetAttribute(queries_kernel<E, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)))
        return false;
    delta_kernel<E, D><<<(unsigned)((rows + WARPS - 1) / WARPS), THREADS, 0, stream>>>(rows, out, d_out, delta);
    keys_kernel<E, D><<<dim3(seq / T, blocks), THREADS, bytes, stream>>>(seq, q, k, v, d_out, lse, delta, dk, dv);
    queries_kernel<E, D><<<dim3(seq / T, blocks), THREADS, bytes, stream>>>(seq, q, k, v, d_out, lse, delta, dq);
    return CUDA(cudaGetLastError());
}

template <typename E>
bool attention_forward(cudaStream_t stream, int blocks, int seq, int dim, const E *q, const E *k, const E *v, E *out,
                       float *lse)
{
    if (seq < T || seq % T != 0 || blocks < 1 || blocks > 65535 || (dim != 64 && dim != 128))
        return false;
    return dim == 64 ? forward<E, 64>(stream, blocks, seq, q, k, v, out, lse)
                     : forward<E, 128>(stream, blocks, seq, q, k, v, out, lse);
}

template <typename E>
bool attention_backward(cudaStream_t stream, int blocks, int seq, int dim, const E *q, const E *k, const E *v,
                        const E *out, const E *d_out, const float *lse, float *delta, E *dq, E *dk, E *dv)
{
    if (seq < T || seq % T != 0 || blocks < 1 || blocks > 65535 || (dim != 64 && dim != 128))
        return false;
    return dim == 64 ? backward<E, 64>(stream, blocks, seq, q, k, v, out, d_out, lse, delta, dq, dk, dv)
                     : backward<E, 128>(stream, blocks, seq, q, k, v, out, d_out, lse, delta, dq, dk, dv);
}

#define INSTANCE(E)                                                                                                 \
    template bool attention_forward<E>(cudaStream_t, int, int, int, const E *, const E *, const E *, E *, float *); \
    template bool attention_backward<E>(cudaStream_t, int, int, int, const E *, const E *, const E *, const E *,   \
                                        const E *, const float *, float *, E *, E *, E *);
INSTANCE(__nv_bfloat16)
INSTANCE(half)

/* ---- the point ------------------------------------------------------------------------------- */

struct shape {
    int blocks, seq, dim;
    bool backward;
};

template <typename E> static bool issue(struct session *session, const void *arg)
{
    const struct shape *s = (const struct shape *)arg;
    const size_t n = (size_t)s->blocks * s->seq * s->dim, bytes = n * sizeof(E);
    const size_t line_bytes = (size_t)s->blocks * s->seq * sizeof(float);
    E *operand[8] = {};
    for (int i = 0; i < (s->backward ? 8 : 4); i++)
        if (!(operand[i] = (E *)take(session, bytes)))
            return false;
    float *lse = (float *)take(session, line_bytes), *delta = (float *)take(session, line_bytes);
    const cudaStream_t stream = session->device[0].stream;
    if (!lse || !delta)
        return false;
    if (!s->backward)
        return attention_forward<E>(stream, s->blocks, s->seq, s->dim, operand[0], operand[1], operand[2], operand[3],
                                    lse);
    return attention_backward<E>(stream, s->blocks, s->seq, s->dim, operand[0], operand[1], operand[2], operand[3],
                                 operand[4], lse, delta, operand[5], operand[6], operand[7]);
}

bool attention_measure(struct session *session, const struct point *point, double slice_s)
{
    const bool half_type = strcmp(point->dtype, "fp16") == 0;
    struct timing timing;
    const struct shape shape = {(int)(point->size[0] * point->size[1]), (int)point->size[2], (int)point->size[3],
                                strcmp(point->name, "bwd") == 0};
    const struct work work = {half_type ? issue<half> : issue<__nv_bfloat16>, &shape};
    if (!half_type && strcmp(point->dtype, "bf16") != 0)
        return false;
    return time_work(session, &work, slice_s, &timing) &&
           records_add(session, point, &timing, ", \"causal\": 1, \"kernel\": \"trainyard\"", "");
}
