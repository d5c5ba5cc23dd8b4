/* SPDX-License-Identifier: MIT
 *
 * The preemptive pass: all active jobs in order. A waiting job that finds no free room displaces
 * running jobs that come after it, the last first; of those it displaces, all that it does not
 * need stay. A job that does not fit even without those after it displaces nobody. For GPUs that
 * are all alike this is the greedy fill of the cluster in order.
 *
 * LAS with discrete queues: a job whose attained GPU-seconds reach the limit of its queue goes to
 * the tail of the next; within a queue running jobs are first. major = 2 queue + (0 runs, 1 waits),
 * minor = position. Source: Gu et al., Tiresias, NSDI 2019. */
#include "models/pool.h"

#include <math.h>

/* Lends the GPUs of running jobs after place `at`, the last first, until `id` fits. returns the
 * place of the last lender; n_running: even all of them are not enough, nothing is lent. */
static uint32_t displace(struct pool_sim *sim, uint32_t id, uint32_t at)
{
    struct pool_room *free_room = &sim->other;
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    uint32_t pieces = POOL_NONE, first = sim->n_running;
    while (pieces == POOL_NONE && first > at) {
        struct pool_job *job = &sim->jobs[sim->running[--first]];
        job->target = POOL_NONE;
        if (!job->keep)
            continue;
        job->keep = false;
        job->target = id;
        room_give(sim, free_room, &sim->shapes[job->shape], job->pieces);
        pieces = place_find(sim, free_room, shape, shape->gpus);
    }
    place_free(sim, pieces);
    for (uint32_t i = first; i < sim->n_running && pieces == POOL_NONE; i++) {
        struct pool_job *job = &sim->jobs[sim->running[i]];
        if (job->target != id)
            continue;
        job->keep = true;
        room_take(sim, free_room, &sim->shapes[job->shape], job->pieces);
    }
    return pieces == POOL_NONE ? sim->n_running : first;
}

/* Whoever `id` does not need to displace stays, the first in order first. */
static void restore(struct pool_sim *sim, uint32_t id, uint32_t first)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    for (uint32_t i = first; i < sim->n_running; i++) {
        struct pool_job *job = &sim->jobs[sim->running[i]];
        if (job->target != id)
            continue;
        room_take(sim, &sim->other, &sim->shapes[job->shape], job->pieces);
        const uint32_t pieces = place_find(sim, &sim->other, shape, shape->gpus);
        place_free(sim, pieces);
        job->keep = pieces != POOL_NONE;
        if (!job->keep)
            room_give(sim, &sim->other, &sim->shapes[job->shape], job->pieces);
    }
}

/* Room for a waiting job, at the cost of running jobs from place `at` on. behind: their GPUs. */
static uint32_t seat(struct pool_sim *sim, uint32_t id, uint32_t at, int64_t behind)
{
    struct pool_room *free_room = &sim->other;
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    uint32_t pieces = place_find(sim, free_room, shape, shape->gpus);
    if (pieces == POOL_NONE &&
        (shape->milli < 1000 || free_room->free_gpus + behind >= (int64_t)shape->gpus)) {
        const uint32_t first = displace(sim, id, at);
        if (first == sim->n_running)
            return POOL_NONE;
        restore(sim, id, first);
        pieces = place_find(sim, free_room, shape, shape->gpus);
    }
    room_take(sim, free_room, shape, pieces);
    return pieces;
}

/* A displaced job stays if nobody took its GPUs after all. */
static void reconsider(struct pool_sim *sim, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    const struct pool_shape *shape = &sim->shapes[job->shape];
    if (job->keep || !room_has(sim, &sim->other, shape, job->pieces))
        return;
    job->keep = true;
    room_take(sim, &sim->other, shape, job->pieces);
}

/* Decides for every job; fills sim->chosen with the waiting ones that got room. */
static uint32_t choose(struct pool_sim *sim)
{
    uint32_t n_chosen = 0, at = 0;
    int64_t behind = 0;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        sim->jobs[sim->running[i]].keep = true;
        behind += sim->jobs[sim->running[i]].gpus;
    }
    walk_begin(sim);
    uint32_t waiting = walk_peek(sim);
    while (waiting != POOL_NONE || at < sim->n_running) {
        const uint32_t runs = at < sim->n_running ? sim->running[at] : POOL_NONE;
        if (waiting == POOL_NONE ||
            (runs != POOL_NONE &&
             key_before(sim->jobs[runs].key, runs, sim->jobs[waiting].key, waiting))) {
            reconsider(sim, runs);
            behind -= sim->jobs[runs].gpus;
            at++;
            continue;
        }
        walk_next(sim);
        const uint32_t pieces = seat(sim, waiting, at, behind);
        sim->jobs[waiting].pieces = pieces;
        if (pieces == POOL_NONE)
            walk_block(sim, waiting);
        else
            sim->chosen[n_chosen++] = waiting;
        waiting = walk_peek(sim);
    }
    return n_chosen;
}

bool pass_preempt(struct pool_sim *sim)
{
    if (sim->n_live == 0)
        return true;
    order_running(sim, sim->policy->key);
    room_copy(sim, &sim->other, &sim->room);
    const uint32_t n_chosen = choose(sim);
    for (uint32_t i = sim->n_running; i-- > 0;)
        if (!sim->jobs[sim->running[i]].keep)
            job_stop(sim, sim->running[i], POOL_PREEMPTED);
    for (uint32_t i = 0; i < n_chosen; i++)
        job_start(sim, sim->chosen[i], sim->jobs[sim->chosen[i]].pieces);
    return !sim->out_of_memory;
}

/* ---- LAS ---------------------------------------------------------------------------------- */

struct pool_key las_key(const struct pool_sim *sim, uint32_t job)
{
    return sim->jobs[job].key;
}

static int las_queue(const struct pool_sim *sim, uint32_t job)
{
    return (int)sim->jobs[job].key.major / 2;
}

void las_submitted(struct pool_sim *sim, uint32_t job)
{
    sim->jobs[job].key = (struct pool_key){1.0, (double)sim->las_tail++};
}

/* The timer of the first whole second at which a running job has reached the limit of its queue,
 * as a scheduler that looks once a second sees it. */
void las_started(struct pool_sim *sim, uint32_t id)
{
    const struct pool_job *job = &sim->jobs[id];
    const int queue = las_queue(sim, id);
    if (queue >= 2)
        return;
    const double left = sim->config->las_limit_gpu_s[queue] - job_attained_gpu_s(sim, id);
    const double gpus = job->gpus * 1e-3 * sim->shapes[job->shape].milli;
    const double wait_s = left > 0.0 ? ceil(left / gpus) : 0.0;
    sim->out_of_memory |=
        !queue_set(sim->events, sim->n_jobs + id, sim->now_s + wait_s, POOL_TIMER);
}

void las_timer(struct pool_sim *sim, uint32_t job)
{
    const int queue = las_queue(sim, job) + 1;
    sim->jobs[job].key = (struct pool_key){2.0 * queue + 1.0, (double)sim->las_tail++};
    las_started(sim, job);
}

/* A job that stops waits in front of those that waited already; the pass stops the last first. */
void las_stopped(struct pool_sim *sim, uint32_t id)
{
    const int queue = las_queue(sim, id);
    if (sim->jobs[id].key.major == 2.0 * queue)
        sim->jobs[id].key = (struct pool_key){2.0 * queue + 1.0, (double)--sim->las_head};
}

bool pass_las(struct pool_sim *sim)
{
    if (!pass_preempt(sim))
        return false;
    order_running(sim, las_key);
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const int queue = las_queue(sim, sim->running[i]);
        sim->jobs[sim->running[i]].key = (struct pool_key){2.0 * queue, i};
    }
    return true;
}
