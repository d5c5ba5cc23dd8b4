/* SPDX-License-Identifier: MIT
 * Memory-bound kernels of a step in bf16, each fused as far as it goes; launches; copies. Bytes are those
 * that must be read and written. */
#include "calibrate/device/device.h"

#include <cuda_fp8.h>
#include <stdio.h>
#include <string.h>

typedef __nv_bfloat16 bf16;
enum { THREADS = 256 };

static unsigned blocks_for(size_t n)
{
    const size_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 65536 ? blocks : 65536);
}

/* Each kernel walks its elements in strides of the grid. */
#define EACH(i, n)                                                                                             \
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

__device__ static float sum_block(float x)
{
    __shared__ float part[32];
    __shared__ float all;
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        all = 0.0f;
        for (int i = 0; i < THREADS / 32; i++)
            all += part[i];
    }
    __syncthreads();
    const float result = all;
    __syncthreads();
    return result;
}

__device__ static float max_block(float x)
{
    __shared__ float part[32];
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float most = part[0];
    for (int i = 1; i < THREADS / 32; i++)
        most = fmaxf(most, part[i]);
    __syncthreads();
    return most;
}

/* RMS norm, a block a row */
__global__ static void norm_kernel(size_t n, const bf16 *x, bf16 *y)
{
    const bf16 *row = x + blockIdx.x * n;
    float squares = 0.0f;
    for (size_t i = threadIdx.x; i < n; i += THREADS) {
        const float value = __bfloat162float(row[i]);
        squares += value * value;
    }
    const float inverse = rsqrtf(sum_block(squares) / (float)n + 1e-5f);
    for (size_t i = threadIdx.x; i < n; i += THREADS)
        y[blockIdx.x * n + i] = __float2bfloat16(__bfloat162float(row[i]) * inverse);
}

/* SwiGLU: silu(a) b */
__global__ static void activation_kernel(size_t n, const bf16 *a, const bf16 *b, bf16 *y)
{
    EACH(i, n)
    {
        const float x = __bfloat162float(a[i]);
        y[i] = __float2bfloat16(x / (1.0f + __expf(-x)) * __bfloat162float(b[i]));
    }
}

/* Softmax and cross-entropy, a block a row; logits become gradients. The target is class 0. */
__global__ static void loss_kernel(size_t vocab, float scale, bf16 *logits, float *loss)
{
    bf16 *row = logits + blockIdx.x * vocab;
    float most = -INFINITY, sum = 0.0f;
    for (size_t i = threadIdx.x; i < vocab; i += THREADS)
        most = fmaxf(most, __bfloat162float(row[i]));
    most = max_block(most);
    for (size_t i = threadIdx.x; i < vocab; i += THREADS)
        sum += __expf(__bfloat162float(row[i]) - most);
    sum = sum_block(sum);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = __logf(sum) + most - __bfloat162float(row[0]);
    __syncthreads();
    for (size_t i = threadIdx.x; i < vocab; i += THREADS) {
        const float p = __expf(__bfloat162float(row[i]) - most) / sum;
        row[i] = __float2bfloat16(scale * (p - (i == 0 ? 1.0f : 0.0f)));
    }
}

/* [tokens, heads, dim] -> [heads, tokens, dim] */
__global__ static void permute_kernel(size_t tokens, size_t heads, size_t dim, const bf16 *x, bf16 *y)
{
    EACH(i, tokens * heads * dim)
    {
        const size_t head = i / (tokens * dim), token = i / dim % tokens;
        y[i] = x[(token * heads + head) * dim + i % dim];
    }
}

__global__ static void cast_kernel(size_t n, const bf16 *x, unsigned char *y)
{
    EACH(i, n)
    y[i] = __nv_cvt_float_to_fp8(__bfloat162float(x[i]), __NV_SATFINITE, __NV_E4M3);
}

__global__ static void adam_kernel(size_t n, float rate, const bf16 *g, float *p, float *m, float *v, bf16 *w)
{
    EACH(i, n)
    {
        const float d = __bfloat162float(g[i]);
        m[i] = 0.9f * m[i] + 0.1f * d;
        v[i] = 0.95f * v[i] + 0.05f * d * d;
        p[i] -= rate * m[i] / (sqrtf(v[i]) + 1e-8f);
        w[i] = __float2bfloat16(p[i]);
    }
}

__global__ static void triad_kernel(size_t n, const float *a, const float *b, float *y)
{
    EACH(i, n)
    y[i] = a[i] + 1.5f * b[i];
}

/* Bytes that are non-zero numbers of both signs up to 2 as fp8, bf16, fp16 and fp32: 0x38 to 0x3f in
 * every high byte, and the sign. */
__global__ static void fill_kernel(size_t n, unsigned short *out)
{
    EACH(i, n)
    {
        unsigned long long x = i * 6364136223846793005ull + 1442695040888963407ull;
        x ^= x >> 33;
        x *= 0xff51afd7ed558ccdull;
        x ^= x >> 29;
        const unsigned high = 0x38u + (unsigned)(x & 7u) + ((x >> 8 & 1u) ? 0x80u : 0u);
        const unsigned low = 0x20u + (unsigned)(x >> 16 & 31u);
        out[i] = (unsigned short)(high << 8 | low);
    }
}

bool launch_norm(cudaStream_t stream, size_t rows, size_t n, const bf16 *x, bf16 *y)
{
    norm_kernel<<<(unsigned)rows, THREADS, 0, stream>>>(n, x, y);
    return CUDA(cudaGetLastError());
}
bool launch_activation(cudaStream_t stream, size_t n, const bf16 *a, const bf16 *b, bf16 *y)
{
    activation_kernel<<<blocks_for(n), THREADS, 0, stream>>>(n, a, b, y);
    return CUDA(cudaGetLastError());
}
bool launch_loss(cudaStream_t stream, size_t rows, size_t vocab, bf16 *logits, float *loss)
{
    loss_kernel<<<(unsigned)rows, THREADS, 0, stream>>>(vocab, 1.0f / (float)rows, logits, loss);
    return CUDA(cudaGetLastError());
}
bool launch_permute(cudaStream_t stream, size_t tokens, size_t heads, size_t dim, const bf16 *x, bf16 *y)
{
    permute_kernel<<<blocks_for(tokens * heads * dim), THREADS, 0, stream>>>(tokens, heads, dim, x, y);
    return CUDA(cudaGetLastError());
}
bool launch_cast(cudaStream_t stream, size_t n, const bf16 *x, unsigned char *y)
{
    cast_kernel<<<blocks_for(n), THREADS, 0, stream>>>(n, x, y);
    return CUDA(cudaGetLastError());
}
bool launch_adam(cudaStream_t stream, size_t n, const bf16 *g, float *p, float *m, float *v, bf16 *w)
{
    adam_kernel<<<blocks_for(n), THREADS, 0, stream>>>(n, 1e-6f, g, p, m, v, w);
    return CUDA(cudaGetLastError());
}
bool launch_fill(cudaStream_t stream, size_t bytes, char *out)
{
    fill_kernel<<<65536, THREADS, 0, stream>>>(bytes / 2, (unsigned short *)out);
    return CUDA(cudaGetLastError());
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Bytes an element: read and written. */
static const struct function {
    const char *name;
    double bytes;
} functions[] = {{"norm", 4},  {"activation", 6}, {"loss", 4}, {"permute", 4},
                 {"cast", 3},  {"adam", 28},      {"copy", 8}, {"triad", 12}};

static bool issue_memory(struct session *session, const void *arg)
{
    const struct point *point = (const struct point *)arg;
    const char *name = point->name;
    const size_t n = (size_t)point->size[0], row = (size_t)point->size[1], rows = n / row;
    const cudaStream_t stream = session->device[0].stream;
    if (strcmp(name, "adam") == 0) {
        float *p = (float *)take(session, 4 * n), *m = (float *)take(session, 4 * n);
        float *v = (float *)take(session, 4 * n);
        bf16 *g = (bf16 *)take(session, 2 * n), *w = (bf16 *)take(session, 2 * n);
        return p && m && v && g && w && launch_adam(stream, n, g, p, m, v, w);
    }
    if (strcmp(name, "copy") == 0 || strcmp(name, "triad") == 0) {
        float *a = (float *)take(session, 4 * n), *b = (float *)take(session, 4 * n);
        float *y = (float *)take(session, 4 * n);
        if (!a || !b || !y)
            return false;
        if (strcmp(name, "copy") == 0)
            return CUDA(cudaMemcpyAsync(y, a, 4 * n, cudaMemcpyDeviceToDevice, stream));
        triad_kernel<<<blocks_for(n), THREADS, 0, stream>>>(n, a, b, y);
        return CUDA(cudaGetLastError());
    }
    bf16 *x = (bf16 *)take(session, 2 * n), *y = (bf16 *)take(session, 2 * n);
    float *loss = (float *)take(session, 4 * rows);
    if (!x || !y || !loss)
        return false;
    if (strcmp(name, "norm") == 0)
        return launch_norm(stream, rows, row, x, y);
    if (strcmp(name, "loss") == 0)
        return launch_loss(stream, rows, row, x, loss);
    if (strcmp(name, "permute") == 0)
        return launch_permute(stream, rows, row / 128, 128, x, y);
    if (strcmp(name, "cast") == 0)
        return launch_cast(stream, n, x, (unsigned char *)y);
    bf16 *b = (bf16 *)take(session, 2 * n);
    return b && launch_activation(stream, n, x, b, y);
}

bool memory_measure(struct session *session, const struct point *point, double slice_s)
{
    struct timing timing;
    char more[64] = "";
    const struct work work = {issue_memory, point};
    for (const auto &function : functions)
        if (strcmp(function.name, point->name) == 0)
            snprintf(more, sizeof more, ", \"moved_bytes\": %.0f", function.bytes * point->size[0]);
    return time_work(session, &work, slice_s, &timing) && records_add(session, point, &timing, more, "");
}

/* ---- launches -------------------------------------------------------------------------------- */

__global__ static void empty_kernel() {}

enum { LAUNCHES = 1000 };

/* Host time of issuing; the queue holds 1024, so the device keeps up or it is waited for. */
static bool time_eager(struct session *session, struct timing *timing)
{
    const cudaStream_t stream = session->device[0].stream;
    for (timing->n = 0; timing->n < 15; timing->n++) {
        if (!CUDA(cudaStreamSynchronize(stream)))
            return false;
        const double start = now_s();
        for (int i = 0; i < LAUNCHES; i++)
            empty_kernel<<<1, 32, 0, stream>>>();
        timing->s[timing->n] = (now_s() - start) / LAUNCHES;
        if (!CUDA(cudaGetLastError()))
            return false;
    }
    return CUDA(cudaStreamSynchronize(stream));
}

static bool issue_graph(struct session *session, const void *arg)
{
    return CUDA(cudaGraphLaunch(*(const cudaGraphExec_t *)arg, session->device[0].stream));
}

static bool time_graph(struct session *session, struct timing *timing)
{
    const cudaStream_t stream = session->device[0].stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    const struct work work = {issue_graph, &replay};
    bool ok = CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; ok && i < LAUNCHES; i++)
        empty_kernel<<<1, 32, 0, stream>>>();
    ok = ok && CUDA(cudaStreamEndCapture(stream, &graph)) && CUDA(cudaGraphInstantiate(&replay, graph, 0)) &&
         time_work(session, &work, 0.2, timing);
    for (int i = 0; ok && i < timing->n; i++)
        timing->s[i] /= LAUNCHES;
    if (replay)
        cudaGraphExecDestroy(replay);
    if (graph)
        cudaGraphDestroy(graph);
    return ok;
}

bool launch_measure(struct session *session, const struct point *point)
{
    struct timing timing = {};
    const bool eager = strcmp(point->name, "eager") == 0;
    return (eager ? time_eager(session, &timing) : time_graph(session, &timing)) &&
           records_add(session, point, &timing, ", \"kernels\": 1000", "");
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool issue_copy(struct session *session, const void *arg)
{
    const struct point *point = (const struct point *)arg;
    const size_t bytes = (size_t)point->size[0];
    const int from = (int)point->size[1], to = (int)point->size[2];
    const cudaStream_t stream = session->device[0].stream;
    if (strcmp(point->name, "h2d") == 0)
        return CUDA(cudaMemcpyAsync(take(session, bytes), session->pinned, bytes, cudaMemcpyHostToDevice, stream));
    if (strcmp(point->name, "d2h") == 0)
        return CUDA(cudaMemcpyAsync(session->pinned, take(session, bytes), bytes, cudaMemcpyDeviceToHost, stream));
    struct device *a = &session->device[from], *b = &session->device[to];
    return CUDA(cudaMemcpyPeerAsync(b->arena, b->index, a->arena, a->index, bytes, stream));
}

/* Every device to the next one, all at once; the slowest ends it. */
static bool issue_ring(struct session *session, const void *arg)
{
    const size_t bytes = (size_t)((const struct point *)arg)->size[0];
    const cudaStream_t first = session->device[0].stream;
    cudaEvent_t start, end;
    bool ok = CUDA(cudaEventCreateWithFlags(&start, cudaEventDisableTiming)) && CUDA(cudaEventRecord(start, first));
    for (int i = 0; ok && i < session->n_local; i++) {
        struct device *a = &session->device[i], *b = &session->device[(i + 1) % session->n_local];
        ok = CUDA(cudaSetDevice(a->index)) && CUDA(cudaStreamWaitEvent(a->beside, start, 0)) &&
             CUDA(cudaMemcpyPeerAsync(b->arena + session->arena_bytes / 2, b->index, a->arena, a->index, bytes,
                                      a->beside)) &&
             CUDA(cudaEventCreateWithFlags(&end, cudaEventDisableTiming)) &&
             CUDA(cudaEventRecord(end, a->beside)) && CUDA(cudaStreamWaitEvent(first, end, 0)) &&
             CUDA(cudaEventDestroy(end));
    }
    return CUDA(cudaEventDestroy(start)) && CUDA(cudaSetDevice(session->device[0].index)) && ok;
}

bool copy_measure(struct session *session, const struct point *point, double slice_s)
{
    struct timing timing;
    char values[64];
    const bool ring = strcmp(point->name, "p2p_all") == 0;
    const struct work work = {ring ? issue_ring : issue_copy, point};
    if (point->size[0] > (double)session->pinned_bytes || 2.0 * point->size[0] > (double)session->arena_bytes ||
        !time_work(session, &work, slice_s, &timing))
        return false;
    snprintf(values, sizeof values, ", \"bandwidth_bytes_per_s\": %.9g", point->size[0] / quantile(&timing, 0.5));
    return records_add(session, point, &timing, "", values);
}
