/* SPDX-License-Identifier: MIT
 *
 * Inside the engine: the graph that engine.c builds and run.c executes. Per task there is a node
 * (two cache lines); only tasks in flight have an activity, whose number is the id in the event
 * queue and in the fluid solver, so the working set stays as small as the parallelism. */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/queue.h"

struct node {
    struct engine_task task;
    double release_s, start_s, end_s;
    uint32_t n_before, waits; /* predecessors in all; not yet finished in this run */
    uint32_t stream_previous, stream_next;
    uint32_t first_edge;
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
    uint32_t task;
    uint32_t next[2], previous[2]; /* tasks that drain on device[0], device[1] */
    uint8_t phase;
    bool in_fluid;
    bool stale; /* is in the list of activities whose slowdown may have changed */
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
    ENGINE_ARRAY(struct node, nodes);
    ENGINE_ARRAY(struct edge, edges);
    ENGINE_ARRAY(uint32_t, streams); /* last task of each */
    ENGINE_ARRAY(struct device, devices);
    ENGINE_ARRAY(struct activity, activities);
    ENGINE_ARRAY(uint32_t, free);  /* activities */
    ENGINE_ARRAY(uint32_t, stale); /* activities */
    ENGINE_ARRAY(uint32_t, ready); /* tasks that wait for nothing more, this instant */
    uint32_t n_routes;
    double now_s, makespan_s;
    uint32_t n_done;
    uint64_t n_events;
};

#define ENGINE_GROW(engine, name, need)                                                            \
    array_grow(&(engine)->allocator, (void **)&(engine)->name, &(engine)->name##_capacity, need,   \
               sizeof *(engine)->name)

const struct engine_task *activity_task(const struct engine *engine, uint32_t activity);
/* Its slowdown may have changed. */
void activity_mark_stale(struct engine *engine, uint32_t activity);

/* contention.c: can the task slow others or be slowed? Only such tasks enter and leave. */
bool contention_possible(const struct engine *engine, const struct engine_task *task);
void contention_enter(struct engine *engine, uint32_t activity); /* it begins to drain */
void contention_leave(struct engine *engine, uint32_t activity); /* it has drained */
/* The factor on its cap now, in (0, 1]. */
double contention_slowdown(const struct engine *engine, const struct engine_task *task);

#endif
