/* SPDX-License-Identifier: MIT
 *
 * Quota with borrowing and dominant resource fairness.
 *
 *   quota   a queue admits a job while its use + the job <= quota + borrow limit, and the use of
 *           its cohort + the job <= the quotas of the cohort. A job within its queue's own quota
 *           may take lent GPUs back: jobs of queues above their quota stop, and jobs of a lower
 *           priority of its own queue; lowest priority first, then the latest start. Nothing stops
 *           unless the job then starts; whoever need not have stopped goes on. Source: Kueue,
 *           "Preemption": reclaimWithinCohort Any, withinClusterQueue LowerPriority.
 *   drf     share of a queue = max over GPUs, cores, memory of its use / the cluster's, over its
 *           weight. Source: Ghodsi et al., Dominant Resource Fairness, NSDI 2011. */
#include "models/pool.h"

#include <math.h>

static bool admits(const struct pool_sim *sim, uint32_t queue, double gpus)
{
    const struct ty_pool_queue *own = &sim->queues[queue];
    const double tiny = 1e-9 * (sim->total_gpus + 1.0);
    if (sim->use[queue].gpus + gpus > own->quota_gpus + own->borrow_gpus + tiny)
        return false;
    double quota = 0.0, use = 0.0;
    for (uint32_t i = 0; i < sim->n_queues; i++)
        if (sim->queues[i].cohort == own->cohort) {
            quota += sim->queues[i].quota_gpus;
            use += sim->use[i].gpus;
        }
    return use + gpus <= quota + tiny;
}

static double gpus_of(const struct pool_sim *sim, uint32_t id)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    return shape->gpus * 1e-3 * shape->milli;
}

static bool may_stop(const struct pool_sim *sim, uint32_t victim, uint32_t id)
{
    const struct ty_pool_job *job = sim->jobs[id].job, *other = sim->jobs[victim].job;
    const double tiny = 1e-9 * (sim->total_gpus + 1.0);
    if (other->queue == job->queue)
        return other->priority < job->priority;
    const bool within =
        sim->use[job->queue].gpus + gpus_of(sim, id) <= sim->queues[job->queue].quota_gpus + tiny;
    return within && sim->queues[other->queue].cohort == sim->queues[job->queue].cohort &&
           sim->use[other->queue].gpus > sim->queues[other->queue].quota_gpus + tiny;
}

/* Lent GPUs first, lowest priority, latest start; ties: the later job. */
static bool stops_before(const struct pool_sim *sim, uint32_t a, uint32_t b, uint32_t queue)
{
    const struct pool_job *one = &sim->jobs[a], *two = &sim->jobs[b];
    const bool lent_one = one->job->queue != queue, lent_two = two->job->queue != queue;
    if (lent_one != lent_two)
        return lent_one;
    if (one->job->priority != two->job->priority)
        return one->job->priority < two->job->priority;
    return one->run_start_s != two->run_start_s ? one->run_start_s > two->run_start_s : a > b;
}

/* The next running job to stop in favour of `id`. */
static uint32_t next_victim(const struct pool_sim *sim, uint32_t id)
{
    uint32_t best = POOL_NONE;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const uint32_t victim = sim->running[i];
        if (sim->jobs[victim].keep && may_stop(sim, victim, id) &&
            (best == POOL_NONE || stops_before(sim, victim, best, sim->jobs[id].job->queue)))
            best = victim;
    }
    return best;
}

/* Stops (sign -1) or restores (+1) a job in the scratch room and in the use of its queue. */
static void pretend(struct pool_sim *sim, uint32_t victim, int sign)
{
    struct pool_job *job = &sim->jobs[victim];
    const struct pool_shape *shape = &sim->shapes[job->shape];
    (sign < 0 ? room_give : room_take)(sim, &sim->spare, shape, job->pieces);
    sim->use[job->job->queue].gpus += sign * gpus_of(sim, victim);
    job->keep = sign > 0;
}

static bool could_start(struct pool_sim *sim, uint32_t id)
{
    const struct pool_shape *shape = &sim->shapes[sim->jobs[id].shape];
    if (!admits(sim, shape->queue, gpus_of(sim, id)))
        return false;
    const uint32_t pieces = place_find(sim, &sim->spare, shape, shape->gpus);
    place_free(sim, pieces);
    return pieces != POOL_NONE;
}

/* Stops as few jobs as this order finds, if that lets `id` start. */
static bool make_room(struct pool_sim *sim, uint32_t id)
{
    uint32_t n = 0;
    room_copy(sim, &sim->spare, &sim->room);
    for (uint32_t i = 0; i < sim->n_running; i++)
        sim->jobs[sim->running[i]].keep = true;
    bool fits = could_start(sim, id);
    while (!fits) {
        const uint32_t victim = next_victim(sim, id);
        if (victim == POOL_NONE)
            break;
        pretend(sim, victim, -1);
        sim->chosen[n++] = victim;
        fits = could_start(sim, id);
    }
    for (uint32_t i = n; i-- > 0;) { /* the most important first */
        pretend(sim, sim->chosen[i], 1);
        if (fits && !could_start(sim, id))
            pretend(sim, sim->chosen[i], -1);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct pool_job *victim = &sim->jobs[sim->chosen[i]];
        if (victim->keep)
            continue;
        sim->use[victim->job->queue].gpus += gpus_of(sim, sim->chosen[i]); /* job_stop books it */
        job_stop(sim, sim->chosen[i], POOL_PREEMPTED);
    }
    return fits;
}

bool pass_quota(struct pool_sim *sim)
{
    walk_begin(sim);
    for (uint32_t job = walk_next(sim); job != POOL_NONE; job = walk_next(sim)) {
        const bool admitted = admits(sim, sim->jobs[job].job->queue, gpus_of(sim, job));
        if (admitted && job_try(sim, job))
            continue;
        if (!make_room(sim, job) || !job_try(sim, job))
            walk_block(sim, job);
    }
    return !sim->out_of_memory;
}

double drf_share(const struct pool_sim *sim, uint32_t queue)
{
    const struct pool_use *use = &sim->use[queue];
    double share = use->gpus / sim->total_gpus;
    if (isfinite(sim->total_cpus))
        share = fmax(share, use->cpus / sim->total_cpus);
    if (isfinite(sim->total_mem_bytes))
        share = fmax(share, use->mem_bytes / sim->total_mem_bytes);
    return share / sim->queues[queue].weight;
}
