/* SPDX-License-Identifier: MIT
 * Attention and the memory-bound kernels. The Makefile compiles this file with -O3 -ffast-math:
 * these are measured, nothing predicts with them, and on x86 once for each vector width. */
#include "calibrate/cpu_kernels.h"

#include <math.h>
#include <string.h>

/* Not under the sanitizers: their hooks do not survive the choice at load time. */
#if defined(__x86_64__) && defined(__GNUC__) && defined(CPU_KERNEL_CLONES)
#define CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

static const float EPSILON = 1e-5f;

/* e^x = 2^k e^r, |r| <= ln 2 / 2, e^r by its series: error below 3e-6. */
INLINE float exponential(float x)
{
    union {
        int32_t bits;
        float value;
    } power;
    const float clamped = fminf(fmaxf(x, -87.0f), 87.0f), t = clamped * 1.442695041f;
    const int32_t k = (int32_t)(t + (t < 0.0f ? -0.5f : 0.5f));
    const float r = clamped - (float)k * 0.69314718f;
    const float e =
        1.0f + r * (1.0f + r * (0.5f + r * (0.16666667f + r * (0.041666667f + r * 0.0083333333f))));
    power.bits = (k + 127) * (1 << 23);
    return e * power.value;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* One head: S = softmax(mask(Q K' / sqrt(d))); rows of the square, zero right of the diagonal. */
CLONES static void softmax_causal(size_t seq, float scale, float *scores)
{
    for (size_t row = 0; row < seq; row++) {
        float *s = scores + row * seq, most = s[0], sum = 0.0f;
        for (size_t i = 1; i <= row; i++)
            most = fmaxf(most, s[i]);
        for (size_t i = 0; i <= row; i++) {
            s[i] = exponential(scale * (s[i] - most));
            sum += s[i];
        }
        const float inverse = 1.0f / sum;
        for (size_t i = 0; i <= row; i++)
            s[i] *= inverse;
        memset(s + row + 1, 0, (seq - row - 1) * sizeof *s);
    }
}

/* dS = P (dP - sum_row(P dP)), in place of dP */
CLONES static void softmax_backward(size_t seq, const float *p, float *dp)
{
    for (size_t row = 0; row < seq; row++) {
        const float *pr = p + row * seq;
        float *dr = dp + row * seq, sum = 0.0f;
        for (size_t i = 0; i <= row; i++)
            sum += pr[i] * dr[i];
        for (size_t i = 0; i < seq; i++)
            dr[i] = pr[i] * (dr[i] - sum);
    }
}

struct head {
    size_t seq, dim, width; /* width: floats from token to token of Q, K, V */
    float scale;
};

static struct head head_of(const struct cpu_attention *shape)
{
    return (struct head){.seq = shape->seq,
                         .dim = shape->head_dim,
                         .width = 3 * shape->heads * shape->head_dim,
                         .scale = 1.0f / sqrtf((float)shape->head_dim)};
}

/* scores = probabilities of one head */
static void probabilities(const struct cpu_blas *blas, const struct head *head, const float *q,
                          const float *k, float *scores)
{
    const struct cpu_gemm product = {.trans_b = true,
                                     .m = head->seq,
                                     .n = head->seq,
                                     .k = head->dim,
                                     .lda = head->width,
                                     .ldb = head->width,
                                     .ldc = head->seq,
                                     .scale = 1.0f};
    cpu_gemm(blas, &product, q, k, scores);
    softmax_causal(head->seq, head->scale, scores);
}

void cpu_attention_forward(const struct cpu_blas *blas, const struct cpu_attention *shape,
                           const float *qkv, float *out, float *scratch)
{
    const struct head head = head_of(shape);
    const size_t hidden = shape->heads * shape->head_dim;
    const struct cpu_gemm product = {.m = head.seq,
                                     .n = head.dim,
                                     .k = head.seq,
                                     .lda = head.seq,
                                     .ldb = head.width,
                                     .ldc = hidden,
                                     .scale = 1.0f};
    for (size_t i = 0; i < shape->batch * shape->heads; i++) {
        const size_t token = i / shape->heads * head.seq, column = i % shape->heads * head.dim;
        const float *q = qkv + token * head.width + column;
        probabilities(blas, &head, q, q + hidden, scratch);
        cpu_gemm(blas, &product, scratch, q + 2 * hidden, out + token * hidden + column);
    }
}

/* dV = P' dO, dP = dO V', dQ = dS K, dK = dS' Q */
static void head_backward(const struct cpu_blas *blas, const struct head *head, const float *q,
                          const float *d_out, float *dq, float *scratch)
{
    const size_t seq = head->seq, hidden = head->width / 3;
    float *p = scratch, *dp = scratch + seq * seq;
    struct cpu_gemm product = {.trans_b = true,
                               .m = seq,
                               .n = seq,
                               .k = head->dim,
                               .lda = hidden,
                               .ldb = head->width,
                               .ldc = seq,
                               .scale = 1.0f};
    probabilities(blas, head, q, q + hidden, p);
    cpu_gemm(blas, &product, d_out, q + 2 * hidden, dp);
    softmax_backward(seq, p, dp);
    product = (struct cpu_gemm){.trans_a = true,
                                .m = seq,
                                .n = head->dim,
                                .k = seq,
                                .lda = seq,
                                .ldb = hidden,
                                .ldc = head->width,
                                .scale = 1.0f};
    cpu_gemm(blas, &product, p, d_out, dq + 2 * hidden);
    product.ldb = head->width;
    product.scale = head->scale;
    cpu_gemm(blas, &product, dp, q, dq + hidden);
    product.trans_a = false;
    cpu_gemm(blas, &product, dp, q + hidden, dq);
}

void cpu_attention_backward(const struct cpu_blas *blas, const struct cpu_attention *shape,
                            const float *qkv, const float *d_out, float *d_qkv, float *scratch)
{
    const struct head head = head_of(shape);
    const size_t hidden = shape->heads * shape->head_dim;
    for (size_t i = 0; i < shape->batch * shape->heads; i++) {
        const size_t token = i / shape->heads * head.seq, column = i % shape->heads * head.dim;
        const size_t at = token * head.width + column;
        head_backward(blas, &head, qkv + at, d_out + token * hidden + column, d_qkv + at, scratch);
    }
}

/* ---- norm ------------------------------------------------------------------------------------ */

INLINE void moments(size_t n, const float *x, float *mean, float *inverse)
{
    float sum = 0.0f, squares = 0.0f;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    *mean = sum / (float)n;
    *inverse = 1.0f / sqrtf(fmaxf(squares / (float)n - *mean * *mean, 0.0f) + EPSILON);
}

CLONES void cpu_norm(size_t rows, size_t n, const float *x, const float *gain, float *y)
{
    for (size_t row = 0; row < rows; row++, x += n, y += n) {
        float mean, inverse;
        moments(n, x, &mean, &inverse);
        for (size_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inverse * gain[i];
    }
}

CLONES void cpu_norm_backward(size_t rows, size_t n, const float *x, const float *gain,
                              const float *dy, float *dx, float *d_gain)
{
    for (size_t row = 0; row < rows; row++, x += n, dy += n, dx += n) {
        float mean, inverse, g_mean = 0.0f, gx_mean = 0.0f;
        moments(n, x, &mean, &inverse);
        for (size_t i = 0; i < n; i++) {
            const float g = dy[i] * gain[i], hat = (x[i] - mean) * inverse;
            g_mean += g;
            gx_mean += g * hat;
        }
        g_mean /= (float)n;
        gx_mean /= (float)n;
        for (size_t i = 0; i < n; i++) {
            const float hat = (x[i] - mean) * inverse;
            d_gain[i] += dy[i] * hat;
            dx[i] += inverse * (dy[i] * gain[i] - g_mean - hat * gx_mean);
        }
    }
}

/* ---- activation: gelu(x) ~ x sigma(2u), u = sqrt(2/pi) (x + 0.044715 x^3) -------------------- */

INLINE float gate(float x)
{
    return 1.0f / (1.0f + exponential(-1.5957691f * (x + 0.044715f * x * x * x)));
}

CLONES void cpu_gelu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * gate(x[i]);
}

CLONES void cpu_gelu_backward(size_t n, const float *x, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; i++) {
        const float s = gate(x[i]);
        const float slope = 1.5957691f * (1.0f + 0.134145f * x[i] * x[i]);
        dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * slope);
    }
}

/* ---- loss, optimizer ------------------------------------------------------------------------- */

INLINE float loss_row(size_t vocab, int32_t target, float scale, float *x)
{
    float most = x[0], sum = 0.0f;
    for (size_t i = 1; i < vocab; i++)
        most = fmaxf(most, x[i]);
    const float wanted = x[target] - most;
    for (size_t i = 0; i < vocab; i++) {
        x[i] = exponential(x[i] - most);
        sum += x[i];
    }
    for (size_t i = 0; i < vocab; i++)
        x[i] *= scale / sum;
    x[target] -= scale;
    return logf(sum) - wanted;
}

CLONES float cpu_loss(size_t rows, size_t vocab, const int32_t *target, float *logits)
{
    float sum = 0.0f;
    for (size_t row = 0; row < rows; row++)
        sum += loss_row(vocab, target[row], 1.0f / (float)rows, logits + row * vocab);
    return sum / (float)rows;
}

CLONES void cpu_adam(const struct cpu_adam *adam, size_t n, float *p, float *g, float *m, float *v)
{
    const float b1 = 0.9f, b2 = 0.95f, step = (float)adam->step;
    const float rate = adam->rate * sqrtf(1.0f - powf(b2, step)) / (1.0f - powf(b1, step));
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * adam->scale;
        m[i] = b1 * m[i] + (1.0f - b1) * d;
        v[i] = b2 * v[i] + (1.0f - b2) * d * d;
        p[i] -= rate * m[i] / (sqrtf(v[i]) + 1e-8f);
        g[i] = 0.0f;
    }
}

CLONES double cpu_sum_squares(size_t n, const float *x)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return (double)sum;
}

/* ---- the rest -------------------------------------------------------------------------------- */

CLONES void cpu_add(size_t n, const float *a, const float *b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

CLONES void cpu_triad(size_t n, const float *a, const float *b, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + 1.5f * b[i];
}

/* [tokens, heads, dim] -> [heads, tokens, dim] */
void cpu_permute(size_t tokens, size_t heads, size_t dim, const float *x, float *y)
{
    for (size_t token = 0; token < tokens; token++)
        for (size_t head = 0; head < heads; head++)
            memcpy(y + (head * tokens + token) * dim, x + (token * heads + head) * dim,
                   dim * sizeof *y);
}

/* Rounds to the nearest, ties to even. */
CLONES void cpu_cast(size_t n, const float *x, uint16_t *y)
{
    for (size_t i = 0; i < n; i++) {
        union {
            float value;
            uint32_t bits;
        } from = {x[i]};
        y[i] = (uint16_t)((from.bits + 0x7fffu + (from.bits >> 16 & 1u)) >> 16);
    }
}

/* A linear congruence, its high bits: +-[0.01, 0.11). */
void cpu_random(uint64_t seed, size_t n, float *x)
{
    uint64_t state = seed * 2862933555777941757u + 3037000493u;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const float size = 0.01f + 0.1f * (float)(state >> 40) * 0x1p-24f;
        x[i] = state >> 33 & 1u ? size : -size;
    }
}
