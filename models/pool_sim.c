/* SPDX-License-Identifier: MIT
 *
 * The event loop of a pool: at each instant completions, timers of the policy, failures and
 * repairs, arrivals, then one pass. Between instants only integrals grow. */
#include "models/pool.h"
#include "sim/error.h"

#include <math.h>

int64_t pool_free_gpus(const struct pool_sim *sim, const struct pool_shape *shape)
{
    if (sim->config->n_groups == 1)
        return sim->room.free_gpus;
    int64_t free_gpus = 0;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (sim->nodes[i].group & shape->groups)
            free_gpus += sim->room.gpus[i];
    return free_gpus;
}

enum pool_blocked pool_blocked_by(struct pool_sim *sim, const struct pool_shape *shape)
{
    if (shape->milli == 1000 && pool_free_gpus(sim, shape) < (int64_t)shape->gpus)
        return POOL_BLOCKED_CAPACITY;
    const uint32_t pieces = place_find(sim, &sim->room, shape, shape->gpus);
    place_free(sim, pieces);
    return pieces == POOL_NONE ? POOL_BLOCKED_SHAPE : POOL_BLOCKED_POLICY;
}

static void advance(struct pool_sim *sim, double time_s)
{
    const double dt_s = time_s - sim->now_s;
    sim->now_s = time_s;
    sim->held_gpu_s += sim->held_gpus * dt_s;
    sim->active_s += sim->n_active * dt_s;
    if (sim->n_active == sim->n_running)
        return;
    sim->idle_waiting_gpu_s += (sim->total_gpus - sim->held_gpus) * dt_s;
    sim->whole_waiting_gpu_s += (double)sim->whole_gpus * dt_s;
    sim->blocked_s[sim->blocked] += dt_s;
}

static bool uses_node(const struct pool_sim *sim, uint32_t job, uint32_t node)
{
    for (uint32_t i = sim->jobs[job].pieces; i != POOL_NONE; i = sim->pieces[i].next)
        if (sim->pieces[i].node == node)
            return true;
    return false;
}

/* A node that is up fails, with every job on it; one that is down comes back. */
static void node_event(struct pool_sim *sim, uint32_t id)
{
    struct pool_node *node = &sim->nodes[id];
    double next_s = sim->config->repair_s;
    if (node->down) {
        next_s = sim->config->node_mtbf_s * random_exponential(&sim->failures[id]);
    } else {
        sim->n_node_failures++;
        for (uint32_t i = sim->n_running; i-- > 0;)
            if (uses_node(sim, sim->running[i], id))
                job_stop(sim, sim->running[i], POOL_FAILED);
    }
    const int sign = node->down ? 1 : -1;
    node->down = !node->down;
    sim->room.gpus[id] += sign * (int32_t)node->gpus;
    sim->room.free_gpus += sign * (int64_t)node->gpus;
    sim->whole_gpus += sign * (int64_t)node->gpus;
    pool_tell(sim, node->down ? TY_POOL_EVENT_NODE_DOWN : TY_POOL_EVENT_NODE_UP, id, node->gpus);
    sim->out_of_memory |=
        !queue_set(sim->events, 2 * sim->n_jobs + id, sim->now_s + next_s, POOL_NODE_EVENT);
}

static void arrive(struct pool_sim *sim, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    if (sim->shapes[job->shape].refused)
        return;
    job->phase = POOL_WAITING;
    job->crowd_s = sim->active_s;
    sim->n_active++;
    if (sim->policy->submitted)
        sim->policy->submitted(sim, id);
    order_insert(sim, id);
    pool_tell(sim, TY_POOL_EVENT_SUBMIT, job->origin, sim->shapes[job->shape].gpus);
}

static void take_events(struct pool_sim *sim)
{
    while (!queue_empty(sim->events) && queue_time_s(sim->events) <= sim->now_s) {
        double time_s;
        const uint32_t event = queue_pop(sim->events, &time_s);
        sim->n_events++;
        if (event < sim->n_jobs)
            job_stop(sim, event, POOL_COMPLETED);
        else if (event < 2 * sim->n_jobs)
            sim->policy->timer(sim, event - sim->n_jobs);
        else
            node_event(sim, event - 2 * sim->n_jobs);
    }
    for (; sim->next_arrival < sim->n_jobs &&
           sim->jobs[sim->next_arrival].job->submit_s <= sim->now_s;
         sim->next_arrival++) {
        sim->n_events++;
        arrive(sim, sim->next_arrival);
    }
}

static double next_time_s(const struct pool_sim *sim)
{
    double time_s = queue_empty(sim->events) ? (double)INFINITY : queue_time_s(sim->events);
    if (sim->next_arrival < sim->n_jobs)
        time_s = fmin(time_s, sim->jobs[sim->next_arrival].job->submit_s);
    return time_s;
}

static bool all_up(const struct pool_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (sim->nodes[i].down)
            return false;
    return true;
}

/* Nothing runs or comes, all nodes are up, and still jobs wait: the policy never lets them. */
static void refuse_waiting(struct pool_sim *sim)
{
    walk_begin(sim);
    for (uint32_t job = walk_next(sim); job != POOL_NONE; job = walk_next(sim)) {
        order_remove(sim, job);
        sim->jobs[job].phase = POOL_DONE;
        sim->jobs[job].began = false;
        sim->n_active--;
        sim->n_left--;
    }
}

ty_status pool_sim_run(struct pool_sim *sim, double until_s, uint32_t watch, struct ty_error *error)
{
    const uint64_t max_events =
        sim->config->max_events ? sim->config->max_events : 64 + 4096 * (uint64_t)sim->n_jobs;
    while (sim->n_left > 0 && next_time_s(sim) <= until_s) {
        const double time_s = next_time_s(sim);
        if (isinf(time_s))
            break;
        advance(sim, time_s);
        take_events(sim);
        if (sim->out_of_memory || !sim->policy->pass(sim))
            return error_set(error, TY_ERR_NOMEM, "pool", "out of memory");
        if (sim->n_events > max_events)
            return error_set(error, TY_ERR_LIMIT, "pool",
                             "more than %llu events: jobs lose their work faster than they do it, "
                             "or max_events is too small",
                             (unsigned long long)max_events);
        if (watch != POOL_NONE && sim->jobs[watch].phase == POOL_WAITING)
            return TY_OK;
        if (sim->n_live == 0)
            continue;
        if (sim->n_running == 0 && sim->next_arrival == sim->n_jobs && all_up(sim))
            refuse_waiting(sim);
        walk_begin(sim);
        const uint32_t first = walk_peek(sim);
        if (first != POOL_NONE)
            sim->blocked = pool_blocked_by(sim, &sim->shapes[sim->jobs[first].shape]);
    }
    return TY_OK;
}
