/* SPDX-License-Identifier: MIT
 *
 * What a finished simulation was worth.
 *
 *   rho   = jct / (duration max(1, gpus N / GPUs)), N: mean number of active jobs during its life;
 *           the divisor is its time with an equal share of the GPUs. Source: Mahajan et al.,
 *           Themis, NSDI 2020, with N averaged.
 *   jain  = (sum x)^2 / (n sum x^2). Source: R. Jain et al., DEC-TR-301, 1984. */
#include "models/pool.h"
#include "models/pool_spread.h"
#include "sim/error.h"

#include <math.h>

struct tally { /* of a queue */
    double slowdown;
    uint64_t n;
};

static double jain(const struct tally *tally, uint32_t n_queues)
{
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < n_queues; i++) {
        if (tally[i].n == 0)
            continue;
        const double mean = tally[i].slowdown / (double)tally[i].n;
        n += 1.0;
        sum += mean;
        squares += mean * mean;
    }
    return n > 0.0 ? sum * sum / (n * squares) : (double)NAN;
}

static void count_job(const struct pool_sim *sim, const struct pool_job *job,
                      struct ty_pool_metrics *out)
{
    const bool done = !isnan(job->end_s) && job->phase == POOL_DONE && job->began;
    out->n_done += done;
    out->n_refused += !done;
    out->n_preemptions += job->preemptions;
    out->n_failures += job->failures;
    out->n_resizes += job->resizes;
    if (!isnan(job->job->deadline_s)) {
        out->n_deadlines++;
        out->n_missed += !done || job->end_s > job->job->deadline_s;
    }
    if (!done)
        return;
    const double jct_s = job->end_s - job->job->submit_s;
    const double gpus = job->job->gpus * 1e-3 * sim->shapes[job->shape].milli;
    const double crowd = jct_s > 0.0 ? job->crowd_s / jct_s : 1.0;
    const double rho = jct_s / (job->job->duration_s * fmax(1.0, gpus * crowd / sim->total_gpus));
    out->rho_mean += rho;
    out->rho_max = fmax(out->rho_max, rho);
}

/* The three quantities of finished jobs, one after the other in values[3 n_jobs]. */
static uint64_t gather(const struct pool_sim *sim, double *values, struct tally *tally,
                       double *first_s, double *last_s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < sim->n_jobs; i++) {
        const struct pool_job *job = &sim->jobs[i];
        if (job->phase != POOL_DONE || !job->began)
            continue;
        const double jct_s = job->end_s - job->job->submit_s;
        const double slowdown = jct_s / job->job->duration_s;
        values[n] = jct_s;
        values[n + sim->n_jobs] = jct_s - job->job->duration_s;
        values[n++ + 2 * (size_t)sim->n_jobs] = slowdown;
        tally[job->job->queue].slowdown += slowdown;
        tally[job->job->queue].n++;
        *first_s = fmin(*first_s, job->job->submit_s);
        *last_s = fmax(*last_s, job->end_s);
    }
    return n;
}

ty_status pool_metrics(struct pool_sim *sim, struct ty_pool_metrics *out)
{
    double *values = arena_get(&sim->arena, 3 * (size_t)sim->n_jobs, sizeof *values);
    struct tally *tally = arena_get(&sim->arena, sim->n_queues, sizeof *tally);
    if (!values || !tally)
        return TY_ERR_NOMEM;
    *out = (struct ty_pool_metrics){.n_events = sim->n_events,
                                    .n_node_failures = sim->n_node_failures,
                                    .blocked_capacity_s = sim->blocked_s[POOL_BLOCKED_CAPACITY],
                                    .blocked_shape_s = sim->blocked_s[POOL_BLOCKED_SHAPE],
                                    .blocked_policy_s = sim->blocked_s[POOL_BLOCKED_POLICY],
                                    .lost_gpu_hours = sim->lost_gpu_s / 3600.0};
    double first_s = INFINITY, last_s = 0.0;
    const uint64_t n = gather(sim, values, tally, &first_s, &last_s);
    out->jct_s = pool_spread(values, n);
    out->wait_s = pool_spread(values + sim->n_jobs, n);
    out->slowdown = pool_spread(values + 2 * (size_t)sim->n_jobs, n);
    for (uint32_t i = 0; i < sim->n_jobs; i++)
        count_job(sim, &sim->jobs[i], out);
    out->rho_mean = n ? out->rho_mean / (double)n : (double)NAN;
    out->rho_max = n ? out->rho_max : (double)NAN;
    out->jain = jain(tally, sim->n_queues);
    out->makespan_s = n ? last_s - first_s : 0.0;
    const double capacity_gpu_s = sim->total_gpus * out->makespan_s;
    out->allocated_ratio = sim->held_gpu_s / capacity_gpu_s;
    out->useful_ratio = (sim->held_gpu_s - sim->lost_gpu_s) / capacity_gpu_s;
    out->idle_while_waiting = sim->idle_waiting_gpu_s / capacity_gpu_s;
    out->fragmentation = NAN;
    if (sim->n_nodes > 1 && sim->idle_waiting_gpu_s > 0.0)
        out->fragmentation = 1.0 - sim->whole_waiting_gpu_s / sim->idle_waiting_gpu_s;
    return TY_OK;
}

static bool fill_outcomes(const struct pool_sim *sim, struct ty_pool_result *out)
{
    out->allocator = allocator_or_default(sim->config->allocator);
    size_t capacity = 0;
    void *array = NULL;
    if (!array_grow(&out->allocator, &array, &capacity, sim->n_jobs, sizeof *out->outcomes))
        return false;
    out->outcomes = array;
    out->capacity = capacity;
    out->n_outcomes = sim->n_jobs;
    for (uint32_t i = 0; i < sim->n_jobs; i++) {
        const struct pool_job *job = &sim->jobs[i];
        const char *refused = sim->shapes[job->shape].refused;
        if (!refused && !job->began)
            refused = "the policy never lets it start";
        out->outcomes[job->origin] = (struct ty_pool_outcome){.start_s = job->first_start_s,
                                                              .end_s = job->end_s,
                                                              .lost_gpu_s = job->lost_gpu_s,
                                                              .preemptions = job->preemptions,
                                                              .failures = job->failures,
                                                              .resizes = job->resizes,
                                                              .refused = refused};
    }
    return true;
}

ty_status ty_pool_run(const struct ty_pool *pool, const struct ty_pool_job *jobs, uint64_t n_jobs,
                      struct ty_pool_result *out, struct ty_error *error)
{
    struct pool_sim sim;
    ty_status status = pool_sim_create(pool, jobs, n_jobs, &sim, error);
    if (status != TY_OK)
        return status;
    struct ty_pool_result result = {0};
    status = pool_sim_run(&sim, INFINITY, POOL_NONE, error);
    if (status == TY_OK)
        status = pool_metrics(&sim, &result.metrics);
    if (status == TY_OK && !fill_outcomes(&sim, &result))
        status = TY_ERR_NOMEM;
    if (status == TY_ERR_NOMEM)
        error_set(error, status, "pool", "out of memory");
    if (status == TY_OK)
        *out = result;
    pool_sim_destroy(&sim);
    return status;
}

void ty_pool_result_free(struct ty_pool_result *result)
{
    array_free(&result->allocator, result->outcomes, result->capacity, sizeof *result->outcomes);
    *result = (struct ty_pool_result){0};
}
