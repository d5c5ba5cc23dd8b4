/* SPDX-License-Identifier: MIT
 * The kernels that are measured, against loops over their definitions and differences of their
 * forward passes: what is timed must be the real work. */
#include "calibrate/cpu_kernels.h"
#include "tests/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct cpu_blas blas;

static double worst(size_t n, const float *a, const double *b)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

/* ---- products -------------------------------------------------------------------------------- */

static void products(void)
{
    enum { M = 5, N = 7, K = 6 };
    float a[M * K], b[K * N], weights[N * K], c[M * N];
    double want[M * N];
    const size_t mnk[3] = {M, N, K};
    cpu_random(1, M * K, a);
    cpu_random(2, K * N, b);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++)
            weights[i * K + k] = b[k * N + i];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            want[i * N + j] = 0.0;
            for (int k = 0; k < K; k++)
                want[i * N + j] += (double)a[i * K + k] * (double)b[k * N + j];
        }
    cpu_linear(&blas, TY_FORWARD, mnk, a, weights, c);
    ok(worst(M * N, c, want) < 1e-6, "forward: C = A W'");
    cpu_linear(&blas, TY_DGRAD, mnk, a, b, c);
    ok(worst(M * N, c, want) < 1e-6, "dgrad: C = A W");

    /* wgrad of the record (m, n, k): gradients [n, m] += B'[n, k] A'[k, m], stored row-major */
    float at[K * M], gradients[N * M];
    double sum[N * M];
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            at[k * M + i] = a[i * K + k];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            gradients[i * M + j] = 1.0f;
            sum[i * M + j] = 1.0 + want[j * N + i];
        }
    cpu_linear(&blas, TY_WGRAD, mnk, at, b, gradients);
    ok(worst(N * M, gradients, sum) < 1e-6, "wgrad: adds into the gradients");
}

/* ---- attention ------------------------------------------------------------------------------- */

enum { BATCH = 2, HEADS = 2, SEQ = 5, DIM = 3, HIDDEN = HEADS * DIM, TOKENS = BATCH * SEQ };
static const struct cpu_attention shape = {BATCH, HEADS, SEQ, DIM};

static double at(const double *qkv, int token, int part, int column)
{
    return qkv[token * 3 * HIDDEN + part * HIDDEN + column];
}

/* softmax(Q K' / sqrt(d)) V over the tokens up to its own */
static void attention_by_definition(const double *qkv, double *out)
{
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++) {
            const int first = t / SEQ * SEQ;
            double weight[SEQ], sum = 0.0;
            for (int u = first; u <= t; u++) {
                double score = 0.0;
                for (int d = 0; d < DIM; d++)
                    score += at(qkv, t, 0, h * DIM + d) * at(qkv, u, 1, h * DIM + d);
                sum += weight[u - first] = exp(score / sqrt((double)DIM));
            }
            for (int d = 0; d < DIM; d++) {
                out[t * HIDDEN + h * DIM + d] = 0.0;
                for (int u = first; u <= t; u++)
                    out[t * HIDDEN + h * DIM + d] +=
                        weight[u - first] / sum * at(qkv, u, 2, h * DIM + d);
            }
        }
}

static void attention(void)
{
    float qkv[TOKENS * 3 * HIDDEN], out[TOKENS * HIDDEN], d_out[TOKENS * HIDDEN];
    float d_qkv[TOKENS * 3 * HIDDEN], scratch[2 * SEQ * SEQ];
    double exact[TOKENS * 3 * HIDDEN], want[TOKENS * HIDDEN], more[TOKENS * HIDDEN],
        less[TOKENS * HIDDEN], slope[TOKENS * 3 * HIDDEN];
    cpu_random(3, TOKENS * 3 * HIDDEN, qkv);
    cpu_random(4, TOKENS * HIDDEN, d_out);
    for (int i = 0; i < TOKENS * 3 * HIDDEN; i++) {
        qkv[i] *= 20.0f;
        exact[i] = (double)qkv[i];
    }
    attention_by_definition(exact, want);
    cpu_attention_forward(&blas, &shape, qkv, out, scratch);
    ok(worst(TOKENS * HIDDEN, out, want) < 2e-5, "attention forward, by its definition");
    for (int i = 0; i < TOKENS * 3 * HIDDEN; i++) {
        const double h = 1e-5, kept = exact[i];
        exact[i] = kept + h;
        attention_by_definition(exact, more);
        exact[i] = kept - h;
        attention_by_definition(exact, less);
        exact[i] = kept;
        slope[i] = 0.0;
        for (int k = 0; k < TOKENS * HIDDEN; k++)
            slope[i] += (more[k] - less[k]) / (2.0 * h) * (double)d_out[k];
    }
    cpu_attention_backward(&blas, &shape, qkv, d_out, d_qkv, scratch);
    ok(worst(TOKENS * 3 * HIDDEN, d_qkv, slope) < 2e-5, "attention backward, by differences");
}

/* ---- memory-bound kernels -------------------------------------------------------------------- */

static double norm_of(const double *x, const float *gain, int n, int i)
{
    double mean = 0.0, squares = 0.0;
    for (int k = 0; k < n; k++) {
        mean += x[k] / n;
        squares += x[k] * x[k] / n;
    }
    return (x[i] - mean) / sqrt(squares - mean * mean + 1e-5) * (double)gain[i];
}

static void norm(void)
{
    enum { N = 24 };
    float x[N], gain[N], y[N], dy[N], dx[N] = {0}, d_gain[N] = {0};
    double exact[N], want[N], slope[N];
    cpu_random(5, N, x);
    cpu_random(6, N, gain);
    cpu_random(7, N, dy);
    for (int i = 0; i < N; i++)
        exact[i] = (double)(x[i] *= 10.0f);
    for (int i = 0; i < N; i++)
        want[i] = norm_of(exact, gain, N, i);
    cpu_norm(1, N, x, gain, y);
    ok(worst(N, y, want) < 1e-5, "norm, by its definition");
    for (int i = 0; i < N; i++) {
        const double h = 1e-5, kept = exact[i];
        slope[i] = 0.0;
        for (int k = 0; k < N; k++) {
            exact[i] = kept + h;
            const double more = norm_of(exact, gain, N, k);
            exact[i] = kept - h;
            slope[i] += (more - norm_of(exact, gain, N, k)) / (2.0 * h) * (double)dy[k];
            exact[i] = kept;
        }
    }
    cpu_norm_backward(1, N, x, gain, dy, dx, d_gain);
    ok(worst(N, dx, slope) < 1e-5, "norm backward, by differences");
    for (int i = 0; i < N; i++)
        want[i] = want[i] / (double)gain[i] * (double)dy[i];
    ok(worst(N, d_gain, want) < 1e-5, "gradient of its gain");
}

static double gelu(double x)
{
    return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

static void activation(void)
{
    enum { N = 33 };
    float x[N], y[N], dy[N], dx[N];
    double want[N], slope[N];
    for (int i = 0; i < N; i++) {
        x[i] = 0.25f * (float)(i - N / 2);
        dy[i] = 1.0f;
        want[i] = gelu((double)x[i]);
        slope[i] = (gelu((double)x[i] + 1e-5) - gelu((double)x[i] - 1e-5)) / 2e-5;
    }
    cpu_gelu(N, x, y);
    ok(worst(N, y, want) < 2e-5, "GELU, by its definition");
    cpu_gelu_backward(N, x, dy, dx);
    ok(worst(N, dx, slope) < 2e-5, "GELU backward, by differences");
}

static void loss(void)
{
    enum { ROWS = 2, VOCAB = 9 };
    float logits[ROWS * VOCAB];
    double want[ROWS * VOCAB], mean = 0.0;
    const int32_t target[ROWS] = {3, 8};
    cpu_random(8, ROWS * VOCAB, logits);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0.0;
        for (int i = 0; i < VOCAB; i++)
            sum += exp((double)logits[row * VOCAB + i]);
        for (int i = 0; i < VOCAB; i++)
            want[row * VOCAB + i] =
                (exp((double)logits[row * VOCAB + i]) / sum - (i == target[row])) / ROWS;
        mean += (log(sum) - (double)logits[row * VOCAB + target[row]]) / ROWS;
    }
    ok(fabs((double)cpu_loss(ROWS, VOCAB, target, logits) - mean) < 1e-5,
       "loss, by its definition");
    ok(worst(ROWS * VOCAB, logits, want) < 1e-5, "its gradients");
}

static void others(void)
{
    float p = 1.0f, g = 0.5f, m = 0.0f, v = 0.0f, x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    uint16_t bits[2];
    const struct cpu_adam adam = {.rate = 0.1f, .scale = 1.0f, .step = 1};
    cpu_adam(&adam, 1, &p, &g, &m, &v);
    ok(fabs((double)p - 0.9) < 1e-5 && fabsf(g) < 1e-30f,
       "the first step of Adam is the rate, against the gradient");
    ok(fabs(cpu_sum_squares(6, x) - 91.0) < 1e-4, "sum of squares");
    cpu_permute(3, 2, 1, x, y);
    const float permuted[6] = {1, 3, 5, 2, 4, 6};
    ok(memcmp(y, permuted, sizeof y) == 0, "permute: heads before tokens");
    const float halves[2] = {1.0f, 1.00390625f + 0.00390625f};
    cpu_cast(2, halves, bits);
    ok(bits[0] == 0x3f80 && bits[1] == 0x3f81, "cast to bf16");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { RANKS = 3, FLOATS = 3000 };
static struct cpu_meeting meeting;
static float buffers[RANKS][FLOATS], spares[RANKS][FLOATS];

struct rank {
    uint32_t id;
    enum ty_collective_op op;
    bool ok;
};

static void *be_rank(void *user)
{
    struct rank *rank = user;
    struct cpu_group group = {.meeting = &meeting, .n = RANKS};
    for (int i = 0; i < RANKS; i++)
        group.buffer[i] = buffers[i];
    rank->ok = cpu_collective(&group, rank->op, rank->id, FLOATS, spares[rank->id]);
    return NULL;
}

static bool run_ranks(enum ty_collective_op op)
{
    struct rank rank[RANKS];
    pthread_t thread[RANKS];
    bool ok = true;
    for (uint32_t r = 0; r < RANKS; r++)
        for (int i = 0; i < FLOATS; i++)
            buffers[r][i] = (float)(r + 1) + 10.0f * (float)(i / (FLOATS / RANKS));
    for (uint32_t r = 0; r < RANKS; r++) {
        rank[r] = (struct rank){.id = r, .op = op};
        ok &= pthread_create(&thread[r], NULL, be_rank, &rank[r]) == 0;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
        ok &= rank[r].ok;
    }
    return ok;
}

static bool is(float value, float expected)
{
    return fabsf(value - expected) < 1e-4f;
}

static void collectives(void)
{
    const int part = FLOATS / RANKS;
    bool all = run_ranks(TY_ALL_REDUCE), scattered = true, gathered = true, exchanged = true,
         sent = true;
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < FLOATS; i++) /* 1 + 2 + 3, and 10 s of the slice from each */
            all &= is(buffers[r][i], 6.0f + 30.0f * (float)(i / part));
    ok(all, "all-reduce: the sum everywhere");
    scattered &= run_ranks(TY_REDUCE_SCATTER);
    for (int r = 0; r < RANKS; r++)
        scattered &= is(buffers[r][r * part], 6.0f + 30.0f * (float)r);
    ok(scattered, "reduce-scatter: own slice of the sum");
    gathered &= run_ranks(TY_ALL_GATHER);
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            gathered &= is(buffers[r][s * part], (float)(s + 1) + 10.0f * (float)s);
    ok(gathered, "all-gather: each slice from its owner");
    exchanged &= run_ranks(TY_ALL_TO_ALL);
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            exchanged &= is(spares[r][s * part], (float)(s + 1) + 10.0f * (float)r);
    ok(exchanged, "all-to-all: own slice of each other");
    sent &= run_ranks(TY_SEND_RECV);
    for (int r = 0; r < RANKS; r++)
        sent &= is(spares[r][0], (float)((r + RANKS - 1) % RANKS + 1));
    ok(sent, "send and receive: from the rank before");
    cpu_stop(&meeting);
    ok(!run_ranks(TY_ALL_REDUCE), "a stopped meeting lets everybody go");
}

int main(void)
{
    struct ty_error error = {0};
    ok(cpu_blas_open("libc.so.6", &blas, &error) == TY_ERR_INPUT && strstr(error.text, "libc.so.6"),
       "a library without cblas_sgemm is refused");
    ok(cpu_blas_open(NULL, &blas, &error) == TY_OK, "there is a CBLAS: GSL's at least");
    products();
    attention();
    norm();
    activation();
    loss();
    others();
    collectives();
    cpu_blas_close(&blas);
    return tap_done();
}
