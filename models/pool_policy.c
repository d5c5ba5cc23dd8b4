/* SPDX-License-Identifier: MIT
 *
 * The policies: an order of jobs and a way to pass over them.
 *
 *   block      in order, the first that does not fit stops the pass
 *   fit        in order, whatever fits starts
 *   backfill   as block, then jobs that do not delay the first: they end by its reservation or
 *              use only what it leaves (EASY; source: D. Lifka, The ANL/IBM SP scheduling system)
 *   preempt    all active jobs in order, who does not get room stops (pool_preempt.c)
 *   quota, drf, elastic: pool_quota.c, pool_elastic.c */
#include "models/pool.h"

#include <math.h>
#include <string.h>

/* ---- orders ------------------------------------------------------------------------------- */

static struct pool_key by_submit(const struct pool_sim *sim, uint32_t job)
{
    (void)sim;
    (void)job;
    return (struct pool_key){0.0, 0.0};
}

static struct pool_key by_size(const struct pool_sim *sim, uint32_t job)
{
    return (struct pool_key){sim->jobs[job].job->gpus, 0.0};
}

static struct pool_key by_remaining(const struct pool_sim *sim, uint32_t job)
{
    return (struct pool_key){job_remaining_s(sim, job), 0.0};
}

static struct pool_key by_service(const struct pool_sim *sim, uint32_t job)
{
    const double gpus = sim->jobs[job].job->gpus * 1e-3 * sim->shapes[sim->jobs[job].shape].milli;
    return (struct pool_key){job_remaining_s(sim, job) * gpus, 0.0};
}

static struct pool_key by_priority(const struct pool_sim *sim, uint32_t job)
{
    return (struct pool_key){-(double)sim->jobs[job].job->priority, 0.0};
}

static struct pool_key by_estimate(const struct pool_sim *sim, uint32_t job)
{
    return (struct pool_key){job_estimate_s(sim, job), 0.0};
}

/* ---- passes ------------------------------------------------------------------------------- */

static bool pass_block(struct pool_sim *sim)
{
    walk_begin(sim);
    for (uint32_t job = walk_next(sim); job != POOL_NONE && job_try(sim, job);)
        job = walk_next(sim);
    return !sim->out_of_memory;
}

static bool pass_fit(struct pool_sim *sim)
{
    walk_begin(sim);
    for (uint32_t job = walk_next(sim); job != POOL_NONE; job = walk_next(sim))
        if (!job_try(sim, job))
            walk_block(sim, job);
    return !sim->out_of_memory;
}

double pool_reserve(struct pool_sim *sim, uint32_t head)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[head].shape];
    room_copy(sim, &sim->spare, &sim->room);
    order_running(sim, by_estimate);
    uint32_t pieces = POOL_NONE;
    double time_s = sim->now_s;
    for (uint32_t i = 0; i < sim->n_running && pieces == POOL_NONE;) {
        time_s = sim->jobs[sim->running[i]].key.major;
        for (; i < sim->n_running && sim->jobs[sim->running[i]].key.major == time_s; i++) {
            const struct pool_job *job = &sim->jobs[sim->running[i]];
            room_give(sim, &sim->spare, &sim->shapes[job->shape], job->pieces);
        }
        pieces = place_find(sim, &sim->spare, shape, shape->gpus);
    }
    place_free(sim, pieces);
    return pieces == POOL_NONE ? (double)INFINITY : time_s;
}

/* Starts a job that would still run at the head's time, unless it delays the head: sim->spare is
 * what is free then. */
static bool start_beside(struct pool_sim *sim, uint32_t job, uint32_t head)
{
    struct pool_shape *shape = &sim->shapes[sim->jobs[job].shape];
    const struct pool_shape *first = &sim->shapes[sim->jobs[head].shape];
    if (shape->no_spare)
        return false;
    const uint32_t pieces = place_find(sim, &sim->room, shape, shape->gpus);
    room_take(sim, &sim->spare, shape, pieces);
    const uint32_t reserved = place_find(sim, &sim->spare, first, first->gpus);
    place_free(sim, reserved);
    shape->no_spare = pieces == POOL_NONE || reserved == POOL_NONE;
    if (shape->no_spare) {
        room_give(sim, &sim->spare, shape, pieces);
        place_free(sim, pieces);
        return false;
    }
    job_start(sim, job, pieces);
    return true;
}

/* One job behind the head. Those of its shape that run longer than the head waits need not be
 * tried once one of them got no room; the last digits are for rounding. */
static void start_behind(struct pool_sim *sim, uint32_t job, uint32_t head, double head_s)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[job].shape];
    if (shape->milli == 1000 && sim->room.free_gpus < (int64_t)shape->gpus)
        walk_block(sim, job);
    else if (job_estimate_s(sim, job) <= head_s) {
        if (!job_try(sim, job))
            walk_block(sim, job);
    } else if (!start_beside(sim, job, head)) {
        walk_skip(sim, job, (head_s - sim->now_s) * (1.0 + 1e-12));
    }
}

static void backfill(struct pool_sim *sim, uint32_t head)
{
    const double head_s = pool_reserve(sim, head);
    for (uint32_t job = walk_next(sim); job != POOL_NONE; job = walk_next(sim))
        start_behind(sim, job, head, head_s);
}

static bool pass_backfill(struct pool_sim *sim)
{
    walk_begin(sim);
    uint32_t head = walk_next(sim);
    while (head != POOL_NONE && job_try(sim, head))
        head = walk_next(sim);
    if (head == POOL_NONE || (sim->room.free_gpus == 0 && sim->n_slots == 0))
        return !sim->out_of_memory;
    for (uint32_t i = 0; i < sim->n_live; i++)
        sim->shapes[sim->live[i]].no_spare = false;
    backfill(sim, head);
    return !sim->out_of_memory;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct pool_policy policies[] = {
    {.name = "fifo",
     .text = "submit order; the head of the queue blocks",
     .key = by_submit,
     .pass = pass_block},
    {.name = "fit",
     .text = "submit order; every waiting job that fits starts, large gangs may starve",
     .key = by_submit,
     .pass = pass_fit},
    {.name = "easy",
     .text = "EASY backfill: the head has a reservation, later jobs may not delay it",
     .key = by_submit,
     .pass = pass_backfill},
    {.name = "smallest", .text = "fewest GPUs first", .key = by_size, .pass = pass_fit},
    {.name = "sjf", .text = "shortest job first", .key = by_remaining, .pass = pass_fit},
    {.name = "srtf",
     .text = "shortest remaining time first, preemptive",
     .key = by_remaining,
     .pass = pass_preempt},
    {.name = "srsf",
     .text = "smallest remaining time x GPUs first, preemptive",
     .key = by_service,
     .pass = pass_preempt},
    {.name = "las",
     .text = "least attained GPU-seconds first in discrete queues (Tiresias), preemptive",
     .key = las_key,
     .pass = pass_las,
     .submitted = las_submitted,
     .started = las_started,
     .stopped = las_stopped,
     .timer = las_timer},
    {.name = "prio",
     .text = "priority, then submit order; the head blocks",
     .key = by_priority,
     .pass = pass_block},
    {.name = "prio-easy",
     .text = "priority, then submit order, with EASY backfill",
     .key = by_priority,
     .pass = pass_backfill},
    {.name = "prio-preempt",
     .text = "priority, then submit order; lower priorities give way if that helps",
     .key = by_priority,
     .pass = pass_preempt},
    {.name = "quota",
     .text = "quota of each queue; a cohort lends what is unused and takes it back",
     .key = by_priority,
     .pass = pass_quota,
     .by_queue = true},
    {.name = "drf",
     .text = "the queue with the smallest dominant share / weight goes first",
     .key = by_priority,
     .share = drf_share,
     .pass = pass_fit,
     .by_queue = true},
    {.name = "elastic",
     .text = "jobs shrink to let others start; free GPUs go where they speed up most",
     .key = by_submit,
     .pass = pass_elastic,
     .elastic = true},
};

enum { N_POLICIES = sizeof policies / sizeof policies[0] };

const struct pool_policy *pool_policy_find(const char *name)
{
    for (size_t i = 0; i < N_POLICIES; i++)
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    return NULL;
}

const char *ty_pool_policy(size_t index, const char **text)
{
    if (index >= N_POLICIES)
        return NULL;
    if (text)
        *text = policies[index].text;
    return policies[index].name;
}
