/* SPDX-License-Identifier: MIT
 *
 * Running the engine's graph. An instant is: take every event due now; finish tasks and release
 * their successors; start what became ready (tasks of no duration finish at once and release
 * more); then, once, bring slowdowns and fluid rates up to date:
 *
 *   rate of a draining task = min(cap * slowdown, max-min share of its route)
 *
 * The work left is brought up to date only when a task's rate changes. A task that nothing can
 * slow (no route, no contended device) is one event: its end is known when it starts. */
#include "sim/engine_state.h"
#include "sim/error.h"

#include <math.h>

/* Events closer than this are one instant (sim/engine.h). */
static const double INSTANT_RATIO = 1e-12;

/* ---- activities ---------------------------------------------------------------------------- */

/* returns false when out of memory. */
static bool activity_new(struct engine *engine, uint32_t task, uint32_t *id)
{
    if (engine->n_free > 0) {
        *id = engine->free[--engine->n_free];
    } else {
        size_t need = (size_t)engine->n_activities + 1;
        if (!ENGINE_GROW(engine, activities, need) ||
            !ENGINE_GROW(engine, free, engine->activities_capacity) ||
            !ENGINE_GROW(engine, stale, engine->activities_capacity))
            return false;
        *id = engine->n_activities++;
        engine->activities[*id].stale = false;
    }
    struct activity *activity = &engine->activities[*id];
    activity->task = task;
    activity->what = &engine->forms[engine->nodes[task].form].task;
    activity->phase = IDLE;
    activity->in_fluid = false;
    return true;
}

static void activity_free(struct engine *engine, uint32_t id)
{
    struct activity *activity = &engine->activities[id];
    if (activity->in_fluid) {
        fluid_stop(engine->fluid, id);
        engine->network_changed = true;
    }
    activity->phase = IDLE;
    activity->in_fluid = false;
    engine->free[engine->n_free++] = id;
}

/* Sets the time of an activity's next event. */
static bool schedule(struct engine *engine, uint32_t id, double due_s)
{
    struct activity *activity = &engine->activities[id];
    activity->due_s = due_s;
    if (due_s >= activity->queued_s)
        return true;
    activity->queued_s = due_s;
    return queue_set(engine->queue, id, due_s, activity->task);
}

static bool schedule_first(struct engine *engine, uint32_t id, enum phase phase, double due_s)
{
    engine->activities[id].phase = (uint8_t)phase;
    engine->activities[id].queued_s = (double)INFINITY;
    return schedule(engine, id, due_s);
}

static bool set_rate(struct engine *engine, uint32_t id, double rate_work_per_s)
{
    struct activity *activity = &engine->activities[id];
    if (rate_work_per_s == activity->rate_work_per_s)
        return true;
    double elapsed_s = engine->now_s - activity->since_s;
    if (elapsed_s > 0)
        activity->work = fmax(0, activity->work - activity->rate_work_per_s * elapsed_s);
    activity->since_s = engine->now_s;
    activity->rate_work_per_s = rate_work_per_s;
    return schedule(engine, id, engine->now_s + activity->work / rate_work_per_s);
}

/* ---- rates --------------------------------------------------------------------------------- */

/* Brings the rates of stale activities, then of all flows that they move, up to date. */
static ty_status refresh(struct engine *engine)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; i < engine->n_stale && status == TY_OK; i++) {
        uint32_t id = engine->stale[i];
        struct activity *activity = &engine->activities[id];
        activity->stale = false;
        if (activity->phase != DRAINING)
            continue;
        const struct engine_task *task = activity_task(engine, id);
        double cap_work_per_s = task->cap_work_per_s * contention_slowdown(engine, task);
        if (task->route == ENGINE_NONE)
            status = set_rate(engine, id, cap_work_per_s) ? TY_OK : TY_ERR_NOMEM;
        else if (activity->in_fluid)
            status = fluid_set_cap(engine->fluid, id, cap_work_per_s);
        else
            status = fluid_start(engine->fluid, id, task->route, cap_work_per_s, task->weight);
        activity->in_fluid = task->route != ENGINE_NONE && status == TY_OK;
        engine->network_changed |= activity->in_fluid;
    }
    engine->n_stale = 0;
    if (!engine->network_changed)
        return status;
    const uint32_t *ids;
    uint32_t n;
    engine->network_changed = false;
    fluid_solve(engine->fluid, &ids, &n);
    for (uint32_t i = 0; i < n && status == TY_OK; i++)
        if (engine->activities[ids[i]].in_fluid &&
            !set_rate(engine, ids[i], fluid_rate_work_per_s(engine->fluid, ids[i])))
            status = TY_ERR_NOMEM;
    return status;
}

/* ---- the life of a task -------------------------------------------------------------------- */

/* A predecessor of `id` has finished. The last one to finish binds; on ties the stream
 * predecessor, then the lowest id. */
static void satisfy(struct engine *engine, uint32_t id, uint32_t before)
{
    struct node *node = &engine->nodes[id];
    uint32_t binding = node->binding;
    double end_s = engine->now_s;
    if (binding == ENGINE_NONE || engine->nodes[binding].end_s < end_s ||
        before == node->stream_previous || (binding != node->stream_previous && before < binding))
        node->binding = before;
    if (--node->waits == 0)
        engine->ready[engine->n_ready++] = id;
}

static void finish(struct engine *engine, uint32_t id)
{
    struct node *node = &engine->nodes[id];
    if (engine->n_done == 0 || engine->now_s > engine->makespan_s || id < engine->last)
        engine->last = id;
    node->end_s = engine->makespan_s = engine->now_s;
    engine->n_done++;
    if (node->stream_next != ENGINE_NONE)
        satisfy(engine, node->stream_next, id);
    if (node->after != ENGINE_NONE)
        satisfy(engine, node->after, id);
    for (uint32_t i = node->first_edge; i != ENGINE_NONE; i = engine->edges[i].next)
        satisfy(engine, engine->edges[i].after, id);
}

static void drain(struct engine *engine, uint32_t id)
{
    struct activity *activity = &engine->activities[id];
    const struct engine_task *task = activity_task(engine, id);
    activity->phase = DRAINING;
    activity->work = task->work;
    activity->rate_work_per_s = 0;
    activity->since_s = engine->now_s;
    activity->queued_s = (double)INFINITY;
    activity_mark_stale(engine, id);
    if (contention_possible(engine, task))
        contention_enter(engine, id);
}

/* A hint to the processor: they lie far apart, and are needed when the task ends. */
static void fetch_successors(const struct engine *engine, const struct node *node)
{
#ifdef __GNUC__
    if (node->stream_next != ENGINE_NONE)
        __builtin_prefetch(&engine->nodes[node->stream_next], 1);
    if (node->after != ENGINE_NONE)
        __builtin_prefetch(&engine->nodes[node->after], 1);
#else
    (void)engine, (void)node;
#endif
}

static const struct engine_task *task_of(const struct engine *engine, uint32_t id)
{
    return &engine->forms[engine->nodes[id].form].task;
}

/* The task, or its next round, begins. */
static bool begin_round(struct engine *engine, uint32_t id)
{
    const struct engine_task *task = task_of(engine, id);
    bool undisturbed =
        task->work == 0 || (task->route == ENGINE_NONE && !contention_possible(engine, task));
    double wait_s = task->latency_s;
    if (undisturbed && task->work > 0)
        wait_s += task->work / task->cap_work_per_s;
    if (undisturbed && wait_s == 0) {
        finish(engine, id);
        return true;
    }
    uint32_t activity;
    if (!activity_new(engine, id, &activity))
        return false;
    if (wait_s > 0)
        return schedule_first(engine, activity, undisturbed ? ENDING : LATENT,
                              engine->now_s + wait_s);
    drain(engine, activity);
    return true;
}

/* The task leaves its stream's queue. */
static bool begin(struct engine *engine, uint32_t id)
{
    struct node *node = &engine->nodes[id];
    fetch_successors(engine, node);
    node->start_s = engine->now_s;
    return begin_round(engine, id);
}

/* May the task begin the round after those it has done? */
static bool peer_is_ready(const struct engine *engine, uint32_t id)
{
    const uint32_t peer = task_of(engine, id)->peer;
    return peer == ENGINE_NONE || engine->rounds[peer].done >= engine->rounds[id].done;
}

/* A round has ended: the last ends the task; else the next begins now or when the peer is ready,
 * and so does one of the follower that waited for this. */
static bool finish_round(struct engine *engine, uint32_t id)
{
    struct round *round = engine->has_rounds ? &engine->rounds[id] : NULL;
    if (!round || task_of(engine, id)->n_rounds <= 1) {
        finish(engine, id);
        return true;
    }
    round->done++;
    if (round->done == task_of(engine, id)->n_rounds)
        finish(engine, id);
    else if (peer_is_ready(engine, id) ? !begin_round(engine, id) : !(round->waits = true))
        return false;
    const uint32_t follower = round->follower;
    if (follower == ENGINE_NONE || !engine->rounds[follower].waits ||
        !peer_is_ready(engine, follower))
        return true;
    engine->rounds[follower].waits = false;
    return begin_round(engine, follower);
}

static bool start_ready(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->n_ready; i++) {
        uint32_t id = engine->ready[i], activity;
        double release_s = engine->nodes[id].release_s;
        if (!(release_s > engine->now_s)) {
            if (!begin(engine, id))
                return false;
        } else if (!activity_new(engine, id, &activity) ||
                   !schedule_first(engine, activity, HELD, release_s)) {
            return false;
        }
    }
    engine->n_ready = 0;
    return true;
}

/* The event an activity was waiting for has come. */
static bool advance(struct engine *engine, uint32_t id)
{
    struct activity *activity = &engine->activities[id];
    uint32_t task = activity->task;
    if (activity->phase == LATENT) {
        drain(engine, id);
        return true;
    }
    bool held = activity->phase == HELD;
    if (activity->phase == DRAINING && contention_possible(engine, activity_task(engine, id)))
        contention_leave(engine, id);
    activity_free(engine, id);
    if (held)
        return begin(engine, task);
    return finish_round(engine, task);
}

/* ---- the run ------------------------------------------------------------------------------- */

/* Takes the events of the next instant. While there are none, what is ready starts at 0. */
static ty_status next_instant(struct engine *engine, const struct engine_limits *limits)
{
    double end_s = (double)INFINITY, time_s;
    uint32_t id;
    while (queue_pop_until(engine->queue, end_s, &id, &time_s)) {
        struct activity *activity = &engine->activities[id];
        if (activity->due_s > time_s) {
            if (!schedule_first(engine, id, activity->phase, activity->due_s))
                return TY_ERR_NOMEM;
            continue;
        }
        bool first = isinf(end_s);
        if ((limits->max_events > 0 && engine->n_events >= limits->max_events) ||
            (first && limits->max_time_s > 0 && time_s > limits->max_time_s))
            return TY_ERR_LIMIT;
        if (first) {
            engine->now_s = time_s;
            end_s = time_s * (1 + INSTANT_RATIO);
        }
        engine->n_events++;
        if (!advance(engine, id))
            return TY_ERR_NOMEM;
    }
    return TY_OK;
}

/* Forgets what is in flight; links, routes and tasks stay. */
static void stop_all(struct engine *engine)
{
    for (uint32_t id = 0; id < engine->n_activities; id++)
        if (engine->activities[id].in_fluid)
            fluid_stop(engine->fluid, id);
    for (uint32_t id = 0; id < engine->n_devices; id++)
        engine->devices[id].first[SIDE_COMPUTE] = engine->devices[id].first[SIDE_COMM] =
            ENGINE_NONE;
    engine->n_activities = engine->n_free = engine->n_stale = engine->n_ready = 0;
    queue_clear(engine->queue);
}

static void prepare(struct engine *engine)
{
    engine->now_s = engine->makespan_s = 0;
    engine->last = 0;
    engine->network_changed = false;
    engine->n_done = 0;
    engine->n_events = 0;
    for (uint32_t id = 0; id < engine->n_nodes; id++) {
        struct node *node = &engine->nodes[id];
        node->waits = node->n_before;
        node->start_s = node->end_s = (double)NAN;
        node->binding = ENGINE_NONE;
        if (node->waits == 0)
            engine->ready[engine->n_ready++] = id;
    }
}

/* Rounds of every task, and who follows whom. returns TY_OK, TY_ERR_RANGE (a peer without as many
 * rounds), TY_ERR_NOMEM. */
static ty_status prepare_rounds(struct engine *engine)
{
    if (!engine->has_rounds)
        return TY_OK;
    if (!ENGINE_GROW(engine, rounds, engine->n_nodes))
        return TY_ERR_NOMEM;
    for (uint32_t id = 0; id < engine->n_nodes; id++)
        engine->rounds[id] = (struct round){.follower = ENGINE_NONE};
    for (uint32_t id = 0; id < engine->n_nodes; id++) {
        const struct engine_task *task = task_of(engine, id);
        if (task->n_rounds <= 1 || task->peer == ENGINE_NONE)
            continue;
        if (task->peer >= engine->n_nodes || engine->rounds[task->peer].follower != ENGINE_NONE ||
            task_of(engine, task->peer)->n_rounds < task->n_rounds)
            return TY_ERR_RANGE;
        engine->rounds[task->peer].follower = id;
    }
    return TY_OK;
}

/* before[task] = a predecessor that has not finished, for every task that has one. */
static void unfinished_before(const struct engine *engine, uint32_t *before)
{
    for (uint32_t id = 0; id < engine->n_nodes; id++)
        before[id] = engine->nodes[id].stream_previous;
    for (uint32_t id = 0; id < engine->n_nodes; id++) {
        const struct node *node = &engine->nodes[id];
        if (!isnan(node->end_s))
            continue;
        if (node->stream_next != ENGINE_NONE)
            before[node->stream_next] = id;
        if (node->after != ENGINE_NONE)
            before[node->after] = id;
        for (uint32_t i = node->first_edge; i != ENGINE_NONE; i = engine->edges[i].next)
            before[engine->edges[i].after] = id;
    }
}

/* Nothing is in flight, but tasks wait: going back from one of them n times ends in a cycle. */
static ty_status report_cycle(struct engine *engine, struct ty_error *error)
{
    uint32_t *before = engine->ready, task = 0;
    for (uint32_t id = 0; engine->has_rounds && id < engine->n_nodes; id++)
        if (engine->rounds[id].waits)
            return error_set(error, TY_ERR_INPUT, "task graph",
                             "task %u waits for a round of task %u", id, task_of(engine, id)->peer);
    unfinished_before(engine, before);
    while (!isnan(engine->nodes[task].end_s))
        task++;
    for (uint32_t i = 0; i < engine->n_nodes; i++)
        task = before[task];
    error_set(error, TY_ERR_INPUT, "task graph", "tasks wait for each other: %u", task);
    uint32_t at = before[task];
    for (int i = 0; error && i < 8 && at != task; i++, at = before[at])
        text_append(error->text, sizeof error->text, " <- %u", at);
    if (error)
        text_append(error->text, sizeof error->text, at == task ? " <- %u" : " <- ... <- %u", task);
    return TY_ERR_INPUT;
}

/* No event is left, but tasks are. */
static ty_status report_unfinished(struct engine *engine, struct ty_error *error)
{
    if (engine->n_activities == engine->n_free)
        return report_cycle(engine, error);
    uint32_t id = 0;
    while (engine->activities[id].phase == IDLE)
        id++;
    return error_set(error, TY_ERR_RANGE, "task graph", "task %u never ends",
                     engine->activities[id].task);
}

static void report_limit(const struct engine *engine, const struct engine_limits *limits,
                         struct ty_error *error)
{
    char limit[64];
    if (limits->max_events > 0 && engine->n_events >= limits->max_events)
        text_format(limit, sizeof limit, "%llu events", (unsigned long long)limits->max_events);
    else
        text_format(limit, sizeof limit, "%g s of simulated time", limits->max_time_s);
    error_set(error, TY_ERR_LIMIT, "task graph",
              "the limit of %s was reached; stopped at %g s after %u of %u tasks", limit,
              engine->now_s, engine->n_done, engine->n_nodes);
}

static ty_status run(struct engine *engine, const struct engine_limits *limits)
{
    while (engine->n_ready > 0 || !queue_empty(engine->queue)) {
        ty_status status = next_instant(engine, limits);
        if (status == TY_OK && !start_ready(engine))
            status = TY_ERR_NOMEM;
        if (status == TY_OK)
            status = refresh(engine);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

ty_status engine_run(struct engine *engine, const struct engine_limits *limits,
                     struct ty_error *error)
{
    const struct engine_limits none = {0};
    ty_status status = TY_ERR_NOMEM;
    if (ENGINE_GROW(engine, ready, engine->n_nodes))
        status = prepare_rounds(engine);
    if (status == TY_OK) {
        prepare(engine);
        status = run(engine, limits ? limits : &none);
    }
    if (status == TY_ERR_LIMIT)
        report_limit(engine, limits, error);
    else if (status != TY_OK)
        error_set(error, status, "task graph", "%s; stopped at %g s after %u of %u tasks",
                  ty_status_text(status), engine->now_s, engine->n_done, engine->n_nodes);
    else if (engine->n_done < engine->n_nodes)
        status = report_unfinished(engine, error);
    stop_all(engine);
    return status;
}
