/* SPDX-License-Identifier: MIT
 *
 * Inside the engine: the graph that engine.c builds and run.c executes. What tasks
 * have in common is a form; per task there is a node (less than a cache line); only tasks in flight
 * have an activity, whose number is the id in the event queue and in the fluid solver, so the
 * working set stays as small as the parallelism. */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/queue.h"

struct form {
    struct engine_task task;
    bool contends; /* slows others or is slowed, so marks its devices */
};

struct node {
    double release_s, start_s, end_s;
    uint32_t form;
    uint32_t n_before, waits; /* predecessors in all; not yet finished in this run */
    uint32_t stream_previous, stream_next;
    uint32_t after, first_edge; /* the task told last to wait for this one; edges to the others */
    uint32_t binding;
};

struct edge {
    uint32_t after;
    uint32_t next; /* edge of the same `before` task */
};

enum phase { IDLE, HELD, LATENT, DRAINING, ENDING }; /* HELD: to its release; ENDING: end known */

/* While draining: work left at `since_s` and the rate since then; due_s follows from them. The
 * queue may hold an earlier time than due_s (never a later one): moving an entry is put off until
 * it comes up. */
struct activity {
    double due_s;
    double work, rate_work_per_s, since_s;
    double queued_s;
    const struct engine_task *what; /* of the form; forms do not move during a run */
    uint32_t task;
    uint32_t next[2], previous[2]; /* tasks that drain on device[0], device[1] */
    uint8_t phase;
    bool in_fluid;
    bool stale; /* is in the list of activities whose slowdown may have changed */
};

/* How far a task with rounds is. */
struct round {
    uint32_t done;
    uint32_t follower; /* the task whose peer it is, or ENGINE_NONE */
    bool waits;        /* for its peer */
};

enum side { SIDE_COMPUTE, SIDE_COMM, N_SIDES };

struct device {
    bool contended;          /* some COMM task slows or is slowed here */
    uint32_t first[N_SIDES]; /* draining: activity * 2 + index of the device in its task */
};

#define ENGINE_ARRAY(type, name)                                                                   \
    type *name;                                                                                    \
    size_t name##_capacity;                                                                        \
    uint32_t n_##name

struct engine {
    struct ty_allocator allocator;
    struct fluid *fluid;
    struct queue *queue;
    ENGINE_ARRAY(struct form, forms);
    ENGINE_ARRAY(struct node, nodes);
    ENGINE_ARRAY(struct edge, edges);
    ENGINE_ARRAY(uint32_t, streams); /* last task of each */
    ENGINE_ARRAY(struct device, devices);
    ENGINE_ARRAY(struct activity, activities);
    ENGINE_ARRAY(uint32_t, free);       /* activities */
    ENGINE_ARRAY(uint32_t, stale);      /* activities */
    ENGINE_ARRAY(uint32_t, ready);      /* tasks that wait for nothing more, this instant */
    ENGINE_ARRAY(struct round, rounds); /* [n_nodes] where any task has rounds */
    bool has_rounds;
    uint32_t n_routes;
    bool network_changed; /* flows came, went or got another cap since the last solve */
    double now_s, makespan_s;
    uint32_t last; /* the lowest id among the tasks that ended at the makespan; 0 before */
    uint32_t n_done;
    uint64_t n_events;
};

#define ENGINE_GROW(engine, name, need)                                                            \
    array_grow(&(engine)->allocator, (void **)&(engine)->name, &(engine)->name##_capacity, need,   \
               sizeof *(engine)->name)

static inline const struct engine_task *activity_task(const struct engine *engine,
                                                      uint32_t activity)
{
    return engine->activities[activity].what;
}

/* Its slowdown may have changed. */
static inline void activity_mark_stale(struct engine *engine, uint32_t id)
{
    if (!engine->activities[id].stale)
        engine->stale[engine->n_stale++] = id;
    engine->activities[id].stale = true;
}

/* Can the task slow others or be slowed (contention.c)? Only such tasks enter and leave. */
static inline bool contention_possible(const struct engine *engine, const struct engine_task *task)
{
    if (task->class_ == ENGINE_COMM)
        return task->slow_compute > 0 || task->slow_self > 0;
    if (task->class_ != ENGINE_COMPUTE)
        return false;
    for (int i = 0; i < 2; i++)
        if (task->device[i] != ENGINE_NONE && engine->devices[task->device[i]].contended)
            return true;
    return false;
}

void contention_enter(struct engine *engine, uint32_t activity); /* it begins to drain */
void contention_leave(struct engine *engine, uint32_t activity); /* it has drained */
/* The factor on its cap now, in (0, 1]. */
double contention_slowdown(const struct engine *engine, const struct engine_task *task);

#endif
