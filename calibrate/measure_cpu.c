/* SPDX-License-Identifier: MIT
 *
 * How each point of a processor is run. Operands lie in a private arena larger than the caches, one
 * behind the other, and start where those of the run before ended: as in a step, where other
 * tensors pass between. What ranks give each other lies in shared memory. */
#define _GNU_SOURCE
#include "calibrate/measure.h"

#include <string.h>
#include <unistd.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

static double flop_of(const struct measure_point *point)
{
    const double *s = point->size;
    switch (point->kind) {
    case RECORD_KIND_GEMM:
        return 2.0 * s[0] * s[1] * s[2];
    case RECORD_KIND_GROUPED_GEMM:
        return 2.0 * s[0] * s[1] * s[2] * s[3];
    case RECORD_KIND_ATTENTION:
        return (strcmp(point->name, "bwd") == 0 ? 10.0 : 4.0) * s[0] * s[1] * s[2] * s[2] * s[3];
    default:
        return 0.0;
    }
}

/* Bytes that a memory-bound kernel reads and writes an element. */
static double bytes_per_element(const char *function)
{
    static const struct {
        const char *name;
        double bytes;
    } table[] = {{"norm", 8.0},   {"activation", 8.0}, {"loss", 8.0}, {"permute", 8.0},
                 {"cast", 6.0},   {"adam", 32.0}, /* 4 read, 4 written: gradients are zeroed */
                 {"triad", 12.0}, {"copy", 8.0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, function) == 0)
            return table[i].bytes;
    return 8.0;
}

double measure_cpu_floats(const struct measure_point *point)
{
    const double *s = point->size;
    switch (point->kind) {
    case RECORD_KIND_GEMM:
        return s[0] * s[2] + s[2] * s[1] + s[0] * s[1];
    case RECORD_KIND_GROUPED_GEMM:
        return s[0] * (s[1] * s[3] + s[3] * s[2] + s[1] * s[2]);
    case RECORD_KIND_ATTENTION:
        return 8.0 * s[0] * s[1] * s[2] * s[3] + 2.0 * s[2] * s[2];
    case RECORD_KIND_MEMORY:
        return 4.0 * s[0];
    default:
        return 0.0;
    }
}

/* Roughly, to leave out what is far too long: no core does 20 Tflop/s, few less than 5 Gflop/s. */
double measure_cpu_guess_s(const struct measure_point *point)
{
    return flop_of(point) / 50e9 + 4.0 * measure_cpu_floats(point) / 5e9;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The next n floats of the arena, from its beginning once it ends. */
static float *take(struct measure_run *run, size_t n)
{
    if (n > run->arena_floats - run->at)
        run->at = 0;
    float *out = run->arena + run->at;
    run->at += (n + 15) / 16 * 16;
    if (run->at > run->arena_floats)
        run->at = run->arena_floats;
    return out;
}

static int direction_of(const char *name)
{
    if (strcmp(name, "dgrad") == 0)
        return TY_DGRAD;
    return strcmp(name, "wgrad") == 0 ? TY_WGRAD : TY_FORWARD;
}

static void run_gemms(struct measure_run *run, const struct measure_point *point, size_t groups,
                      const double size[3])
{
    const size_t mnk[3] = {(size_t)size[0], (size_t)size[1], (size_t)size[2]};
    for (size_t i = 0; i < groups; i++) {
        const float *a = take(run, mnk[0] * mnk[2]), *b = take(run, mnk[2] * mnk[1]);
        cpu_linear(&run->blas, direction_of(point->name), mnk, a, b, take(run, mnk[0] * mnk[1]));
    }
}

static void run_attention(struct measure_run *run, const struct measure_point *point)
{
    const double *s = point->size;
    const struct cpu_attention shape = {.batch = (size_t)s[0],
                                        .heads = (size_t)s[1],
                                        .seq = (size_t)s[2],
                                        .head_dim = (size_t)s[3]};
    const size_t n = shape.batch * shape.heads * shape.seq * shape.head_dim;
    const float *qkv = take(run, 3 * n);
    float *out = take(run, n);
    float *scratch = take(run, 2 * shape.seq * shape.seq);
    if (strcmp(point->name, "bwd") == 0)
        cpu_attention_backward(&run->blas, &shape, qkv, out, take(run, 3 * n), scratch);
    else
        cpu_attention_forward(&run->blas, &shape, qkv, out, scratch);
}

/* Gradients and moments as they are in training: small, and v not below 0. */
static void run_adam(struct measure_run *run, size_t n)
{
    const struct cpu_adam adam = {.rate = 1e-6f, .scale = 1.0f, .step = 1000};
    float *p = take(run, n), *g = take(run, n), *m = take(run, n), *v = take(run, n);
    cpu_adam(&adam, n, p, g, m, v);
}

static void run_memory(struct measure_run *run, const struct measure_point *point)
{
    const size_t n = (size_t)point->size[0], row = (size_t)point->size[1], rows = n / row;
    const char *function = point->name;
    if (strcmp(function, "adam") == 0) {
        run_adam(run, n);
        return;
    }
    const float *x = take(run, n);
    if (strcmp(function, "loss") == 0) {
        const int32_t target[1] = {0};
        float *logits = take(run, n);
        for (size_t i = 0; i < n / 1024; i++)
            cpu_loss(1, 1024, target, logits + i * 1024);
        return;
    }
    float *y = take(run, n);
    if (strcmp(function, "norm") == 0)
        cpu_norm(rows, row, x, run->arena, y);
    else if (strcmp(function, "activation") == 0)
        cpu_gelu(n, x, y);
    else if (strcmp(function, "permute") == 0)
        cpu_permute(rows, 4, row / 4, x, y);
    else if (strcmp(function, "cast") == 0)
        cpu_cast(n, x, (uint16_t *)(void *)y);
    else if (strcmp(function, "triad") == 0)
        cpu_triad(n, x, take(run, n), y);
    else
        memcpy(y, x, n * sizeof *y);
}

/* A pipe that moves size bytes from the first rank to the second, and one byte back. */
static bool run_pipe(struct measure_run *run, size_t bytes)
{
    char *buffer = (char *)run->arena;
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = run->rank == 0 ? write(run->pipe[1], buffer + at, bytes - at)
                                         : read(run->pipe[0], buffer + at, bytes - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool run_copy(struct measure_run *run, const struct measure_point *point)
{
    const size_t bytes = (size_t)point->size[0];
    if (strcmp(point->name, "pipe") == 0) /* both are done: the meeting is the byte back */
        return run_pipe(run, bytes) && cpu_meet(&run->shared->pair, 2);
    const size_t n = bytes / sizeof(float);
    run->turn = (run->turn + 1) % (MEASURE_SHARED_FLOATS / n);
    memcpy(run->arena, run->group.buffer[1] + run->turn * n, bytes);
    return true;
}

/* Of another part of the shared memory each time: what is sent was made long before. */
static bool run_collective(struct measure_run *run, const struct measure_point *point)
{
    struct cpu_group group = point->size[1] < run->n_ranks ? run->pair : run->group;
    const size_t n = (size_t)point->size[0] / sizeof(float);
    run->turn = (run->turn + 1) % (MEASURE_SHARED_FLOATS / n);
    for (uint32_t i = 0; i < group.n; i++)
        group.buffer[i] += run->turn * n;
    enum ty_collective_op op = TY_ALL_REDUCE;
    while (op < TY_SEND_RECV && strcmp(ty_collective_name(op), point->name) != 0)
        op++;
    return cpu_collective(&group, op, run->rank, n, run->arena);
}

/* Samples of 16-bit tokens from places all over a set of them, widened for the embedding. */
static void run_tokens(struct measure_run *run, const struct measure_point *point)
{
    const size_t n = (size_t)point->size[0] / 2;
    const size_t at = run->at * 7919 % (2 * run->arena_floats - n);
    const uint16_t *tokens = (const uint16_t *)(const void *)run->arena + at;
    int32_t *wide = (int32_t *)(void *)take(run, n);
    for (size_t i = 0; i < n; i++)
        wide[i] = tokens[i];
}

/* What a call costs: the compiler may not look through it. */
static void nothing(void) {}

bool measure_cpu_takes_part(const struct measure_run *run, const struct measure_point *point)
{
    switch (point->kind) {
    case RECORD_KIND_COPY:
        return run->rank == 0 || (run->rank == 1 && strcmp(point->name, "pipe") == 0);
    case RECORD_KIND_COLLECTIVE:
    case RECORD_KIND_DECODE:
        return run->rank < point->size[1];
    default:
        return true;
    }
}

bool measure_cpu_once(struct measure_run *run, const struct measure_point *point)
{
    static void (*const volatile call)(void) = nothing;
    switch (point->kind) {
    case RECORD_KIND_GEMM:
        run_gemms(run, point, 1, point->size);
        return true;
    case RECORD_KIND_GROUPED_GEMM:
        run_gemms(run, point, (size_t)point->size[0], point->size + 1);
        return true;
    case RECORD_KIND_ATTENTION:
        run_attention(run, point);
        return true;
    case RECORD_KIND_MEMORY:
        run_memory(run, point);
        return true;
    case RECORD_KIND_COPY:
        return run_copy(run, point);
    case RECORD_KIND_COLLECTIVE:
        return run_collective(run, point);
    case RECORD_KIND_DECODE:
        run_tokens(run, point);
        return true;
    default:
        call();
        return true;
    }
}

void measure_cpu_values(const struct measure_point *point, double time_s,
                        struct record_fields *values)
{
    if (point->kind == RECORD_KIND_MEMORY)
        record_number(values, RECORD_PARAMETER, "moved_bytes",
                      bytes_per_element(point->name) * point->size[0]);
    if (point->kind == RECORD_KIND_GROUPED_GEMM)
        record_number(values, RECORD_PARAMETER, "inner",
                      point->size[2] < point->size[3] ? point->size[2] : point->size[3]);
    if (point->kind == RECORD_KIND_COLLECTIVE)
        record_number(values, RECORD_PARAMETER, "nodes", 1.0);
    if (point->kind == RECORD_KIND_COPY)
        record_number(values, RECORD_VALUE, "bandwidth_bytes_per_s", point->size[0] / time_s);
    if (point->kind == RECORD_KIND_COPY) {
        record_text(values, RECORD_PARAMETER, "from",
                    strcmp(point->name, "pipe") ? "cpu1" : "cpu0");
        record_text(values, RECORD_PARAMETER, "to", strcmp(point->name, "pipe") ? "cpu0" : "cpu1");
    }
    if (point->kind == RECORD_KIND_DECODE)
        record_number(values, RECORD_VALUE, "samples_per_s", point->size[1] / time_s);
    if (point->kind == RECORD_KIND_DECODE)
        record_number(values, RECORD_VALUE, "bandwidth_bytes_per_s",
                      point->size[1] * point->size[0] / time_s);
}
