/* SPDX-License-Identifier: MIT
 *
 * A small GPT, trained for real: fp32, Adam, data-parallel over processes of one core each that
 * all-reduce their gradients through shared memory. tests/closed_loop.t predicts its step time
 * first and then runs it. Its kernels are those that `calibrate measure` times, as a framework
 * shares cuBLAS with the benchmarks of it.
 *
 *   gpt LAYERS HIDDEN HEADS SEQ MBS VOCAB RANKS STEPS
 *
 * prints for each step: seconds, the largest share of it that a rank was off its core, the loss.
 *
 * Letters: T tokens of a rank (mbs * seq), h hidden, V vocabulary. Norms have a gain, linears no
 * bias, the head shares the weights of the embedding. */
#define _GNU_SOURCE
#include "calibrate/cpu_kernels.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LAYERS = 64, MAX_RANKS = 8 };
static const float LEARNING_RATE = 1e-3f, CLIP = 1.0f;

struct shape {
    size_t layers, hidden, heads, seq, mbs, vocab, ranks, steps, tokens;
};

/* Weights of a layer; also their gradients. */
struct layer {
    float *gain1, *qkv, *proj, *gain2, *up, *down; /* [h] [3h,h] [h,h] [h] [4h,h] [h,4h] */
};
struct weights {
    float *embedding, *position, *gain; /* [V,h] [seq,h] [h] */
    struct layer layer[MAX_LAYERS];
};
/* What forward keeps of a layer for backward, [T, ...]. */
struct kept {
    float *x, *norm1, *qkv, *attended, *middle, *norm2, *up, *active;
};

struct shared {
    struct cpu_meeting meeting;
    _Atomic double off[MAX_RANKS];
};

struct trainer {
    struct shape shape;
    struct cpu_blas blas;
    struct cpu_group group;
    struct shared *shared;
    uint32_t rank, step;
    size_t n_params;
    float *params, *moment, *variance, *spare;
    struct weights w, g;
    struct kept kept[MAX_LAYERS];
    float *x, *norm, *logits, *dx, *small, *large, *scratch;
    int32_t *token, *target;
};

/* ---- memory ---------------------------------------------------------------------------------- */

static void *get(size_t floats)
{
    void *memory = calloc(floats, sizeof(float));
    if (!memory) {
        fputs("gpt: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static float *carve(float **at, size_t n)
{
    float *out = *at;
    *at += n;
    return out;
}

/* Lays the weights out from `at`. returns how many there are. */
static size_t lay_out(const struct shape *s, float *at, struct weights *w)
{
    const float *start = at;
    const size_t h = s->hidden;
    w->embedding = carve(&at, s->vocab * h);
    w->position = carve(&at, s->seq * h);
    for (size_t i = 0; i < s->layers; i++)
        w->layer[i] = (struct layer){.gain1 = carve(&at, h),
                                     .qkv = carve(&at, 3 * h * h),
                                     .proj = carve(&at, h * h),
                                     .gain2 = carve(&at, h),
                                     .up = carve(&at, 4 * h * h),
                                     .down = carve(&at, 4 * h * h)};
    w->gain = carve(&at, h);
    return (size_t)(at - start);
}

static size_t count_params(const struct shape *s)
{
    const size_t h = s->hidden;
    return (s->vocab + s->seq + 1) * h + s->layers * (12 * h * h + 2 * h);
}

static void fill_ones(size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1.0f;
}

static void prepare(struct trainer *t)
{
    const struct shape *s = &t->shape;
    const size_t h = s->hidden, n = s->tokens;
    t->params = get(t->n_params);
    t->moment = get(t->n_params);
    t->variance = get(t->n_params);
    t->spare = get(1);
    lay_out(s, t->params, &t->w);
    lay_out(s, t->group.buffer[t->rank], &t->g);
    cpu_random(1, t->n_params, t->params); /* the same on every rank */
    fill_ones(h, t->w.gain);
    for (size_t i = 0; i < s->layers; i++) {
        fill_ones(h, t->w.layer[i].gain1);
        fill_ones(h, t->w.layer[i].gain2);
        t->kept[i] = (struct kept){.x = get(n * h),
                                   .norm1 = get(n * h),
                                   .qkv = get(3 * n * h),
                                   .attended = get(n * h),
                                   .middle = get(n * h),
                                   .norm2 = get(n * h),
                                   .up = get(4 * n * h),
                                   .active = get(4 * n * h)};
    }
    t->x = get(n * h);
    t->norm = get(n * h);
    t->logits = get(n * s->vocab);
    t->dx = get(n * h);
    t->small = get(n * h);
    t->large = get(8 * n * h);
    t->scratch = get(2 * s->seq * s->seq);
    t->token = get(n);
    t->target = get(n);
    for (size_t i = 0; i < n; i++) { /* something to learn: t -> 5 t + 7 */
        const size_t chain = i / s->seq + t->rank * s->mbs;
        t->token[i] = i % s->seq ? t->target[i - 1] : (int32_t)(chain * 31 % s->vocab);
        t->target[i] = (int32_t)(((size_t)t->token[i] * 5 + 7) % s->vocab);
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* y[T,n] = x[T,k] W[n,k]' */
static void linear(const struct trainer *t, size_t n, size_t k, const float *x, const float *w,
                   float *y)
{
    cpu_linear(&t->blas, TY_FORWARD, (const size_t[3]){t->shape.tokens, n, k}, x, w, y);
}

/* dx[T,k] = dy[T,n] W[n,k];  dW[n,k] += dy' x */
static void linear_backward(const struct trainer *t, size_t n, size_t k, const float *x,
                            const float *w, const float *dy, float *dx, float *dw)
{
    cpu_linear(&t->blas, TY_DGRAD, (const size_t[3]){t->shape.tokens, k, n}, dy, w, dx);
    cpu_linear(&t->blas, TY_WGRAD, (const size_t[3]){k, n, t->shape.tokens}, x, dy, dw);
}

static struct cpu_attention attention_of(const struct shape *s)
{
    return (struct cpu_attention){s->mbs, s->heads, s->seq, s->hidden / s->heads};
}

static void forward(struct trainer *t)
{
    const struct shape *s = &t->shape;
    const struct cpu_attention attention = attention_of(s);
    const size_t h = s->hidden, n = s->tokens;
    float *first = s->layers ? t->kept[0].x : t->x;
    for (size_t i = 0; i < n; i++)
        cpu_add(h, t->w.embedding + (size_t)t->token[i] * h, t->w.position + i % s->seq * h,
                first + i * h);
    for (size_t i = 0; i < s->layers; i++) {
        const struct layer *w = &t->w.layer[i];
        const struct kept *k = &t->kept[i];
        float *next = i + 1 < s->layers ? t->kept[i + 1].x : t->x;
        cpu_norm(n, h, k->x, w->gain1, k->norm1);
        linear(t, 3 * h, h, k->norm1, w->qkv, k->qkv);
        cpu_attention_forward(&t->blas, &attention, k->qkv, k->attended, t->scratch);
        linear(t, h, h, k->attended, w->proj, t->small);
        cpu_add(n * h, k->x, t->small, k->middle);
        cpu_norm(n, h, k->middle, w->gain2, k->norm2);
        linear(t, 4 * h, h, k->norm2, w->up, k->up);
        cpu_gelu(4 * n * h, k->up, k->active);
        linear(t, h, 4 * h, k->active, w->down, t->small);
        cpu_add(n * h, k->middle, t->small, next);
    }
    cpu_norm(n, h, t->x, t->w.gain, t->norm);
    linear(t, s->vocab, h, t->norm, t->w.embedding, t->logits);
}

static void backward(struct trainer *t)
{
    const struct shape *s = &t->shape;
    const struct cpu_attention attention = attention_of(s);
    const size_t h = s->hidden, n = s->tokens;
    float *wide = t->large, *other = t->large + 4 * n * h;
    linear_backward(t, s->vocab, h, t->norm, t->w.embedding, t->logits, t->small, t->g.embedding);
    memset(t->dx, 0, n * h * sizeof *t->dx);
    cpu_norm_backward(n, h, t->x, t->w.gain, t->small, t->dx, t->g.gain);
    for (size_t i = s->layers; i-- > 0;) {
        const struct layer *w = &t->w.layer[i], *g = &t->g.layer[i];
        const struct kept *k = &t->kept[i];
        linear_backward(t, h, 4 * h, k->active, w->down, t->dx, wide, g->down);
        cpu_gelu_backward(4 * n * h, k->up, wide, other);
        linear_backward(t, 4 * h, h, k->norm2, w->up, other, t->small, g->up);
        cpu_norm_backward(n, h, k->middle, w->gain2, t->small, t->dx, g->gain2);
        linear_backward(t, h, h, k->attended, w->proj, t->dx, t->small, g->proj);
        cpu_attention_backward(&t->blas, &attention, k->qkv, t->small, wide, t->scratch);
        linear_backward(t, 3 * h, h, k->norm1, w->qkv, wide, t->small, g->qkv);
        cpu_norm_backward(n, h, k->x, w->gain1, t->small, t->dx, g->gain1);
    }
    for (size_t i = 0; i < n; i++) {
        float *row = t->g.embedding + (size_t)t->token[i] * h;
        float *place = t->g.position + i % s->seq * h;
        cpu_add(h, row, t->dx + i * h, row);
        cpu_add(h, place, t->dx + i * h, place);
    }
}

/* Sum over the ranks, clipped at the norm of their mean, and Adam, which zeroes them. */
static bool update(struct trainer *t)
{
    float *gradients = t->group.buffer[t->rank];
    const float ranks = (float)t->shape.ranks;
    if (!cpu_collective(&t->group, TY_ALL_REDUCE, t->rank, t->n_params, t->spare))
        return false;
    const float norm = (float)sqrt(cpu_sum_squares(t->n_params, gradients)) / ranks;
    const struct cpu_adam adam = {.rate = LEARNING_RATE,
                                  .scale = (norm > CLIP ? CLIP / norm : 1.0f) / ranks,
                                  .step = ++t->step};
    cpu_adam(&adam, t->n_params, t->params, gradients, t->moment, t->variance);
    return true;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pin(uint32_t rank)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) <= (int)rank)
        return;
    int core = 0;
    for (uint32_t seen = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &all) && seen++ == rank)
            break;
    CPU_SET((size_t)core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int train(struct trainer *t)
{
    const uint32_t n = t->group.n;
    pin(t->rank);
    prepare(t);
    for (size_t step = 0; step < t->shape.steps; step++) {
        if (!cpu_meet(&t->shared->meeting, n))
            return 1;
        const double start = clock_s(CLOCK_MONOTONIC), on = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        forward(t);
        const float loss = cpu_loss(t->shape.tokens, t->shape.vocab, t->target, t->logits);
        backward(t);
        if (!update(t))
            return 1;
        const double wall_s = clock_s(CLOCK_MONOTONIC) - start;
        t->shared->off[t->rank] =
            fmax(0.0, 1.0 - (clock_s(CLOCK_PROCESS_CPUTIME_ID) - on) / wall_s);
        if (!cpu_meet(&t->shared->meeting, n))
            return 1;
        double off = 0.0;
        for (uint32_t i = 0; i < n; i++)
            off = fmax(off, t->shared->off[i]);
        if (t->rank == 0)
            printf("%.6g %.4f %.4f\n", wall_s, off, (double)loss);
    }
    fflush(stdout);
    return 0;
}

static bool read_shape(char **argv, struct shape *s)
{
    size_t *const field[] = {&s->layers, &s->hidden, &s->heads, &s->seq,
                             &s->mbs,    &s->vocab,  &s->ranks, &s->steps};
    for (int i = 0; i < 8; i++)
        *field[i] = strtoul(argv[i + 1], NULL, 10);
    s->tokens = s->mbs * s->seq;
    return s->layers <= MAX_LAYERS && s->ranks >= 1 && s->ranks <= MAX_RANKS && s->heads > 0 &&
           s->hidden % s->heads == 0 && s->tokens > 0 && s->vocab > 0;
}

/* Ranks are processes; the first is this one. */
static int run(struct trainer *t)
{
    pid_t child[MAX_RANKS] = {0};
    for (uint32_t rank = 1; rank < t->shape.ranks; rank++) {
        child[rank] = fork();
        if (child[rank] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            t->rank = rank;
            _exit(train(t));
        }
        if (child[rank] < 0)
            return 1;
    }
    int status = train(t);
    for (uint32_t rank = 1; rank < t->shape.ranks; rank++) {
        int ended = 1;
        waitpid(child[rank], &ended, 0);
        status |= ended != 0;
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct trainer t;
    struct ty_error error = {0};
    if (argc != 9 || !read_shape(argv, &t.shape)) {
        fputs("usage: gpt LAYERS HIDDEN HEADS SEQ MBS VOCAB RANKS STEPS\n", stderr);
        return 2;
    }
    if (cpu_blas_open(NULL, &t.blas, &error) != TY_OK) {
        fprintf(stderr, "gpt: %s: %s\n", error.where, error.text);
        return 2;
    }
    t.n_params = count_params(&t.shape);
    const size_t bytes = 4096 + t.shape.ranks * t.n_params * sizeof(float);
    char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fputs("gpt: no shared memory\n", stderr);
        return 1;
    }
    t.shared = (struct shared *)(void *)shared;
    t.group.meeting = &t.shared->meeting;
    t.group.n = (uint32_t)t.shape.ranks;
    for (uint32_t i = 0; i < t.group.n; i++)
        t.group.buffer[i] = (float *)(void *)(shared + 4096) + i * t.n_params;
    return run(&t);
}
