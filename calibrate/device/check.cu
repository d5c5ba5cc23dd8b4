/* SPDX-License-Identifier: MIT
 * The own kernels against loops on the host over their definitions, in double precision. */
#include "calibrate/device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vector>

typedef __nv_bfloat16 bf16;
typedef std::vector<double> numbers;

static double value_of(bf16 x) { return (double)__bfloat162float(x); }
static double value_of(half x) { return (double)__half2float(x); }
static double value_of(float x) { return (double)x; }
static void set(bf16 *x, double value) { *x = __float2bfloat16((float)value); }
static void set(half *x, double value) { *x = __float2half((float)value); }
static void set(float *x, double value) { *x = (float)value; }

/* The same numbers on host and device, rounded as the device has them. */
template <typename E> struct array {
    E *device = NULL;
    numbers host;
    array(size_t n, double size, unsigned seed) : host(n)
    {
        std::vector<E> raw(n);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            set(&raw[i], size * ((seed >> 8) * 0x1p-24 - 0.5));
            host[i] = value_of(raw[i]);
        }
        if (!CUDA(cudaMalloc(&device, n * sizeof(E))) ||
            !CUDA(cudaMemcpy(device, raw.data(), n * sizeof(E), cudaMemcpyHostToDevice)))
            device = NULL;
    }
    ~array() { cudaFree(device); }
    numbers read() const
    {
        std::vector<E> raw(host.size());
        numbers out(host.size(), NAN);
        if (device && CUDA(cudaMemcpy(raw.data(), device, raw.size() * sizeof(E), cudaMemcpyDeviceToHost)))
            for (size_t i = 0; i < raw.size(); i++)
                out[i] = value_of(raw[i]);
        return out;
    }
};

static int compare(const char *what, const numbers &got, const numbers &want, double allowed)
{
    double worst = 0.0, scale = 0.0;
    for (size_t i = 0; i < want.size(); i++) {
        const double off = fabs(got[i] - want[i]);
        worst = off <= worst ? worst : off; /* a NAN sticks */
        scale = fmax(scale, fabs(want[i]));
    }
    const bool good = worst <= allowed * scale;
    printf("%s %s: off by %.2g of %.2g\n", good ? "ok    " : "WRONG ", what, worst, scale);
    return !good;
}

/* ---- attention ------------------------------------------------------------------------------- */

struct exact {
    numbers out, lse, dq, dk, dv;
};

static void attend(int blocks, int seq, int dim, const numbers &q, const numbers &k, const numbers &v,
                   const numbers &d_out, struct exact *e)
{
    const double scale = 1.0 / sqrt((double)dim);
    e->out.assign(q.size(), 0.0);
    e->dq = e->dk = e->dv = e->out;
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < seq; i++) {
            const size_t at = ((size_t)b * seq + i) * dim;
            numbers p(i + 1);
            double sum = 0.0, delta = 0.0;
            for (int j = 0; j <= i; j++) {
                const size_t key = ((size_t)b * seq + j) * dim;
                double s = 0.0;
                for (int c = 0; c < dim; c++)
                    s += q[at + c] * k[key + c];
                sum += p[j] = exp(s * scale);
            }
            for (int j = 0; j <= i; j++)
                for (int c = 0; c < dim; c++)
                    e->out[at + c] += p[j] / sum * v[((size_t)b * seq + j) * dim + c];
            for (int c = 0; c < dim; c++)
                delta += d_out[at + c] * e->out[at + c];
            for (int j = 0; j <= i; j++) {
                const size_t key = ((size_t)b * seq + j) * dim;
                double dp = 0.0;
                for (int c = 0; c < dim; c++)
                    dp += d_out[at + c] * v[key + c];
                const double ds = p[j] / sum * (dp - delta) * scale;
                for (int c = 0; c < dim; c++) {
                    e->dq[at + c] += ds * k[key + c];
                    e->dk[key + c] += ds * q[at + c];
                    e->dv[key + c] += p[j] / sum * d_out[at + c];
                }
            }
        }
}

template <typename E> static int check_attention(cudaStream_t stream, const char *type, int dim)
{
    enum { BLOCKS = 2, SEQ = 192 };
    const size_t n = (size_t)BLOCKS * SEQ * dim;
    array<E> q(n, 4.0, 1), k(n, 4.0, 2), v(n, 2.0, 3), d_out(n, 2.0, 4), out(n, 0.0, 5), dq(n, 0.0, 6), dk(n, 0.0, 7),
        dv(n, 0.0, 8);
    array<float> lse(BLOCKS * SEQ, 0.0, 9), delta(BLOCKS * SEQ, 0.0, 10);
    struct exact e;
    char what[64];
    attend(BLOCKS, SEQ, dim, q.host, k.host, v.host, d_out.host, &e);
    if (!attention_forward<E>(stream, BLOCKS, SEQ, dim, q.device, k.device, v.device, out.device, lse.device) ||
        !attention_backward<E>(stream, BLOCKS, SEQ, dim, q.device, k.device, v.device, out.device, d_out.device,
                               lse.device, delta.device, dq.device, dk.device, dv.device) ||
        !CUDA(cudaStreamSynchronize(stream)))
        return 1;
    int wrong = 0;
    const struct {
        const char *name;
        const array<E> *got;
        const numbers *want;
    } parts[] = {{"out", &out, &e.out}, {"dq", &dq, &e.dq}, {"dk", &dk, &e.dk}, {"dv", &dv, &e.dv}};
    for (const auto &part : parts) {
        snprintf(what, sizeof what, "attention %s %d %s", type, dim, part.name);
        wrong += compare(what, part.got->read(), *part.want, 0.02);
    }
    return wrong;
}

/* ---- memory-bound kernels -------------------------------------------------------------------- */

static int check_rows(cudaStream_t stream)
{
    enum { ROWS = 3, N = 1000 };
    array<bf16> x(ROWS * N, 4.0, 11), y(ROWS * N, 0.0, 12), logits(ROWS * N, 6.0, 13);
    array<float> loss(ROWS, 0.0, 14);
    numbers norm(ROWS * N), gradient(ROWS * N), losses(ROWS);
    for (int row = 0; row < ROWS; row++) {
        double squares = 0.0, sum = 0.0;
        for (int i = 0; i < N; i++) {
            squares += x.host[row * N + i] * x.host[row * N + i];
            sum += exp(logits.host[row * N + i]);
        }
        for (int i = 0; i < N; i++) {
            norm[row * N + i] = x.host[row * N + i] / sqrt(squares / N + 1e-5);
            gradient[row * N + i] = (exp(logits.host[row * N + i]) / sum - (i == 0)) / ROWS;
        }
        losses[row] = log(sum) - logits.host[row * N];
    }
    if (!launch_norm(stream, ROWS, N, x.device, y.device) ||
        !launch_loss(stream, ROWS, N, logits.device, loss.device) || !CUDA(cudaStreamSynchronize(stream)))
        return 1;
    return compare("norm", y.read(), norm, 0.01) + compare("loss", loss.read(), losses, 1e-4) +
           compare("loss gradients", logits.read(), gradient, 0.01);
}

static int check_elements(cudaStream_t stream)
{
    enum { TOKENS = 5, HEADS = 3, DIM = 16, N = TOKENS * HEADS * DIM };
    array<bf16> a(N, 4.0, 21), b(N, 4.0, 22), y(N, 0.0, 23), z(N, 0.0, 24), w(N, 0.0, 25);
    array<float> p(N, 2.0, 26), m(N, 0.1, 27), v(N, 0.0, 28);
    numbers activation(N), permuted(N), parameter(N);
    for (int i = 0; i < N; i++) {
        activation[i] = a.host[i] / (1.0 + exp(-a.host[i])) * b.host[i];
        const int head = i / (TOKENS * DIM), token = i / DIM % TOKENS;
        permuted[i] = a.host[(token * HEADS + head) * DIM + i % DIM];
        const double g = a.host[i], m1 = 0.9 * m.host[i] + 0.1 * g, v1 = 0.05 * g * g;
        parameter[i] = p.host[i] - 1e-6 * m1 / (sqrt(v1) + 1e-8);
    }
    if (!launch_activation(stream, N, a.device, b.device, y.device) ||
        !launch_permute(stream, TOKENS, HEADS, DIM, a.device, z.device) ||
        !launch_adam(stream, N, a.device, p.device, m.device, v.device, w.device) ||
        !CUDA(cudaStreamSynchronize(stream)))
        return 1;
    return compare("activation", y.read(), activation, 0.01) + compare("permute", z.read(), permuted, 0.0) +
           compare("adam", p.read(), parameter, 1e-6);
}

int check_kernels(struct session *session)
{
    const cudaStream_t stream = session->device[0].stream;
    int wrong = 0;
    for (int dim = 64; dim <= 128; dim *= 2) {
        wrong += check_attention<bf16>(stream, "bf16", dim);
        wrong += check_attention<half>(stream, "fp16", dim);
    }
    return wrong + check_rows(stream) + check_elements(stream);
}
