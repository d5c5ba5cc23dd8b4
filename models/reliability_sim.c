/* SPDX-License-Identifier: MIT
 *
 * A run with failures, event by event: segments of work, saves, drains, restarts. Time to the next
 * failure is Weibull with mean M and shape k: M / Gamma(1 + 1/k) * (-ln u)^(1/k).
 */
#include "models/reliability.h"
#include "sim/arena.h"
#include "sim/random.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_FAILURES = 1000000, MAX_SEGMENTS = 10000000 };

struct run {
    const struct reliability *job;
    struct random_stream stream;
    double scale_s;
    double now_s, failure_s; /* of the next failure */
    double safe_s, done_s;   /* useful work that is safe; that is done */
    double safe_from_s;      /* when what was saved last is safe */
    uint32_t n_failures;
};

static double random_failure_s(struct run *run)
{
    return run->scale_s * pow(random_exponential(&run->stream), 1.0 / run->job->shape);
}

/* Restarts until one is not hit. The work since the last safe save is lost. */
static void recover(struct run *run)
{
    if (run->failure_s >= run->safe_from_s)
        run->safe_s = run->done_s;
    run->done_s = run->safe_s;
    do {
        run->now_s = run->failure_s;
        run->failure_s = run->now_s + random_failure_s(run);
        run->n_failures++;
    } while (run->failure_s < run->now_s + run->job->restart_s && run->n_failures < MAX_FAILURES);
    run->now_s += run->job->restart_s;
    run->safe_from_s = run->now_s;
}

/* One segment and its save, or the failure in it. done_s moves when the save has blocked. */
static void advance(struct run *run, double work_s)
{
    const double end_s = run->now_s + work_s + run->job->save_s;
    if (run->failure_s < end_s) {
        recover(run);
        return;
    }
    run->safe_s = run->done_s; /* A <= tau: the save before this one is safe by now */
    run->done_s += work_s;
    run->now_s = end_s;
    run->safe_from_s = end_s + run->job->drain_s;
}

static double run_time_s(struct run *run, double work_s)
{
    while (run->done_s < work_s && run->n_failures < MAX_FAILURES)
        advance(run, fmin(run->job->interval_s, work_s - run->done_s));
    return run->now_s;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Nearest rank. */
static double quantile(const double *sorted, uint32_t n, double probability)
{
    const double rank = ceil(probability * n);
    return sorted[rank < 1.0 ? 0 : (uint32_t)rank - 1];
}

static void summarise(double *time_s, uint32_t n, struct reliability_runs *out)
{
    double sum_s = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum_s += time_s[i];
    out->mean_s = sum_s / n;
    for (uint32_t i = 0; i < n; i++)
        squares += (time_s[i] - out->mean_s) * (time_s[i] - out->mean_s);
    out->error_s = n > 1 ? sqrt(squares / (n - 1.0) / n) : 0.0;
    qsort(time_s, n, sizeof *time_s, compare);
    out->p10_s = quantile(time_s, n, 0.1);
    out->p50_s = quantile(time_s, n, 0.5);
    out->p90_s = quantile(time_s, n, 0.9);
}

ty_status reliability_simulate(const struct reliability *job,
                               const struct reliability_trials *trials,
                               const struct ty_allocator *allocator, struct reliability_runs *out)
{
    if (reliability_check(job, NULL) != TY_OK || trials->n_trials < 1 || !(trials->work_s >= 0.0) ||
        !(trials->work_s <= MAX_SEGMENTS * job->interval_s))
        return TY_ERR_RANGE;
    struct arena arena;
    arena_init(&arena, allocator);
    double *time_s = arena_get(&arena, trials->n_trials, sizeof *time_s);
    ty_status status = time_s ? TY_OK : TY_ERR_NOMEM;
    double n_failures = 0.0;
    for (uint32_t i = 0; status == TY_OK && i < trials->n_trials; i++) {
        struct run run = {.job = job, .scale_s = job->mtbf_s / tgamma(1.0 + 1.0 / job->shape)};
        random_init(&run.stream, trials->seed, i);
        run.failure_s = random_failure_s(&run);
        time_s[i] = run_time_s(&run, trials->work_s);
        n_failures += run.n_failures;
        if (run.n_failures >= MAX_FAILURES)
            status = TY_ERR_LIMIT;
    }
    if (status == TY_OK) {
        summarise(time_s, trials->n_trials, out);
        out->mean_failures = n_failures / trials->n_trials;
    }
    arena_destroy(&arena);
    return status;
}
