/* SPDX-License-Identifier: MIT
 *
 * Elastic jobs: X(g) = g / (1 + serial (g - 1)) is the speed of g GPUs, or a table of the sizes a
 * job can take. From a size the next one is the corner of the concave hull: most change of speed
 * per GPU upwards, least downwards; for a concave curve that is the neighbour.
 *
 *   start   waiting jobs, in submit order, start at their smallest size; if that needs GPUs of
 *           running jobs, those shrink that lose least speed per GPU
 *   grow    free GPUs go, size by size, to the job that gains most, weight x relative speed per
 * GPU, if the time it saves exceeds its restart
 *
 * Greedy steps are optimal for concave curves. Source: Peng et al., Optimus, EuroSys 2018. */
#include "models/pool.h"

#include <math.h>

static uint32_t least_size(const struct ty_pool_job *job)
{
    return job->min_gpus ? job->min_gpus : job->gpus;
}

static uint32_t largest_size(const struct ty_pool_job *job)
{
    return job->max_gpus ? job->max_gpus : job->gpus;
}

/* Weighted speed per GPU of the worker between two sizes. */
static double gain(const struct pool_sim *sim, uint32_t id, uint32_t from, uint32_t to)
{
    const struct ty_pool_job *job = sim->jobs[id].job;
    return sim->queues[job->queue].weight * (job_speed(job, to) - job_speed(job, from)) /
           ((double)to - from);
}

static uint32_t worker_of(const struct pool_sim *sim, uint32_t id)
{
    return sim->shapes[sim->jobs[id].shape].worker;
}

/* The next larger size of at most `most` GPUs, or the next smaller one of at least that; `from`
 * itself when there is none. */
static uint32_t next_size(const struct pool_sim *sim, uint32_t id, uint32_t from, uint32_t limit)
{
    const struct ty_pool_job *job = sim->jobs[id].job;
    const bool up = limit > from;
    const uint32_t worker = worker_of(sim, id);
    if (!job->sizes)
        return up ? (limit - from < worker ? from : from + worker)
                  : (from - limit < worker ? from : from - worker);
    uint32_t best = from;
    for (uint32_t i = 0; i < job->n_sizes; i++) {
        const uint32_t to = job->sizes[i].gpus;
        if (up ? to <= from || to > limit : to >= from || to < limit)
            continue;
        const double slope = gain(sim, id, from, to);
        if (best == from ||
            (up ? slope > gain(sim, id, from, best) : slope < gain(sim, id, from, best)))
            best = to;
    }
    return best;
}

/* ---- shrink ------------------------------------------------------------------------------- */

/* The running job whose next smaller size costs least; POOL_NONE: all are at their smallest. */
static uint32_t cheapest(const struct pool_sim *sim)
{
    uint32_t best = POOL_NONE;
    double best_loss = INFINITY;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const uint32_t id = sim->running[i];
        const struct pool_job *job = &sim->jobs[id];
        if (job->target <= least_size(job->job))
            continue;
        const uint32_t smaller = next_size(sim, id, job->target, least_size(job->job));
        const double loss = gain(sim, id, smaller, job->target);
        if (loss < best_loss || (loss == best_loss && id > best)) {
            best = id;
            best_loss = loss;
        }
    }
    return best;
}

/* Finds places for the shrunk jobs and for `id` in the scratch room. */
static bool rearrange(struct pool_sim *sim, uint32_t id)
{
    bool good = true;
    room_copy(sim, &sim->spare, &sim->room);
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const struct pool_job *job = &sim->jobs[sim->running[i]];
        if (job->target < job->gpus)
            room_give(sim, &sim->spare, &sim->shapes[job->shape], job->pieces);
    }
    for (uint32_t i = 0; i <= sim->n_running; i++) {
        struct pool_job *job = &sim->jobs[i < sim->n_running ? sim->running[i] : id];
        job->placed = POOL_NONE;
        if (!good || (i < sim->n_running && job->target == job->gpus))
            continue;
        const struct pool_shape *shape = &sim->shapes[job->shape];
        job->placed = place_find(sim, &sim->spare, shape, job->target);
        good = job->placed != POOL_NONE;
        room_take(sim, &sim->spare, shape, job->placed);
    }
    return good;
}

static void commit(struct pool_sim *sim, uint32_t id, bool good)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_running; i++)
        if (sim->jobs[sim->running[i]].placed != POOL_NONE)
            sim->chosen[n++] = sim->running[i];
    for (uint32_t i = 0; i < n; i++)
        if (good)
            job_stop(sim, sim->chosen[i], POOL_RESIZED);
    if (sim->jobs[id].placed != POOL_NONE)
        sim->chosen[n++] = id;
    for (uint32_t i = 0; i < n; i++)
        if (good)
            job_start(sim, sim->chosen[i], sim->jobs[sim->chosen[i]].placed);
        else
            place_free(sim, sim->jobs[sim->chosen[i]].placed);
}

static bool start_by_shrinking(struct pool_sim *sim, uint32_t id)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    int64_t missing = (int64_t)shape->gpus - pool_free_gpus(sim, shape);
    for (uint32_t i = 0; i < sim->n_running; i++)
        sim->jobs[sim->running[i]].target = sim->jobs[sim->running[i]].gpus;
    sim->jobs[id].target = shape->gpus;
    while (missing > 0) {
        const uint32_t victim = cheapest(sim);
        if (victim == POOL_NONE)
            return false;
        struct pool_job *job = &sim->jobs[victim];
        const uint32_t smaller = next_size(sim, victim, job->target, least_size(job->job));
        missing -= job->target - smaller;
        job->target = smaller;
    }
    const bool good = rearrange(sim, id);
    commit(sim, id, good);
    return good;
}

/* ---- grow --------------------------------------------------------------------------------- */

static bool worth(const struct pool_sim *sim, uint32_t id, uint32_t gpus)
{
    const struct pool_job *job = &sim->jobs[id];
    const double left_s = job_remaining_s(sim, id);
    const double restart_s = job->first_start_s == sim->now_s ? 0.0 : job->restart_s;
    return left_s / job->rate - left_s / job_speed(job->job, gpus) > restart_s;
}

/* The fastest size the job could have if it got all that is free. */
static uint32_t fastest_size(const struct pool_sim *sim, uint32_t id, int64_t free_gpus)
{
    const struct pool_job *job = &sim->jobs[id];
    const uint32_t worker = worker_of(sim, id), largest = largest_size(job->job);
    const uint64_t room = job->target + (uint64_t)(free_gpus / worker * worker);
    const uint32_t most = room < largest ? (uint32_t)room : largest;
    if (!job->job->sizes)
        return most;
    uint32_t best = job->target;
    for (uint32_t i = 0; i < job->job->n_sizes && job->job->sizes[i].gpus <= most; i++)
        if (job_speed(job->job, job->job->sizes[i].gpus) > job_speed(job->job, best))
            best = job->job->sizes[i].gpus;
    return best;
}

/* The job whose next size gains most per GPU; *size: that size. */
static uint32_t most_gain(const struct pool_sim *sim, int64_t free_gpus, uint32_t *size)
{
    uint32_t best = POOL_NONE;
    double best_gain = 0.0;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const uint32_t id = sim->running[i];
        const struct pool_job *job = &sim->jobs[id];
        const uint64_t room = job->target + (uint64_t)(free_gpus > 0 ? free_gpus : 0);
        const uint32_t largest = largest_size(job->job);
        const uint32_t limit = room < largest ? (uint32_t)room : largest;
        const uint32_t larger =
            limit > job->target ? next_size(sim, id, job->target, limit) : job->target;
        if (larger == job->target)
            continue;
        const double more = gain(sim, id, job->target, larger);
        const bool better = more > best_gain || (more == best_gain && id < best);
        if (better && worth(sim, id, fastest_size(sim, id, free_gpus))) {
            best = id;
            best_gain = more;
            *size = larger;
        }
    }
    return best;
}

static void resize(struct pool_sim *sim, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    const struct pool_shape *shape = &sim->shapes[job->shape];
    room_copy(sim, &sim->spare, &sim->room);
    room_give(sim, &sim->spare, shape, job->pieces);
    const uint32_t pieces = place_find(sim, &sim->spare, shape, job->target);
    if (pieces == POOL_NONE)
        return;
    const bool fresh = job->first_start_s == sim->now_s;
    job_stop(sim, id, POOL_RESIZED);
    if (fresh) { /* it starts at this size */
        job->resizes--;
        job->began = false;
    }
    job_start(sim, id, pieces);
}

static void grow(struct pool_sim *sim)
{
    int64_t free_gpus = sim->room.free_gpus;
    for (uint32_t i = 0; i < sim->n_running; i++)
        sim->jobs[sim->running[i]].target = sim->jobs[sim->running[i]].gpus;
    for (;;) {
        uint32_t size;
        const uint32_t id = most_gain(sim, free_gpus, &size);
        if (id == POOL_NONE)
            break;
        free_gpus -= size - sim->jobs[id].target;
        sim->jobs[id].target = size;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const struct pool_job *job = &sim->jobs[sim->running[i]];
        if (job->target > job->gpus && worth(sim, sim->running[i], job->target))
            sim->chosen[n++] = sim->running[i];
    }
    for (uint32_t i = 0; i < n; i++)
        resize(sim, sim->chosen[i]);
}

bool pass_elastic(struct pool_sim *sim)
{
    walk_begin(sim);
    for (uint32_t job = walk_next(sim); job != POOL_NONE; job = walk_next(sim))
        if (!job_try(sim, job) && !start_by_shrinking(sim, job))
            walk_block(sim, job);
    grow(sim);
    return !sim->out_of_memory;
}
