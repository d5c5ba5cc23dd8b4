/* SPDX-License-Identifier: MIT
 *
 * The discrete-event engine. It knows devices, streams, tasks and links; no training.
 *
 *   device   something that computes (a GPU). Tasks on it can slow each other.
 *   stream   a FIFO of tasks, as in CUDA: a task starts when the one before it on the stream has
 *            finished and all tasks it depends on have finished.
 *   task     an amount of work. It waits `latency_s`, then drains `work` at a rate that is
 *            piecewise constant: rate = min(cap * slowdowns, max-min share of its route).
 *            work = 0 ends right after the latency.
 *   rounds   a task may do the same n_rounds times; each round but the first also waits until
 *            `peer`, another such task, has done as many. A ring of n ranks is n tasks of 2(n-1)
 *            rounds, each the peer of the next.
 *   slowdown while a task with `slow_compute` = a is draining, COMPUTE tasks on its devices run at
 *            (1 - a) of their rate (several: the product); while any COMPUTE task runs on one of
 *            its devices, a COMM task's cap is (1 - slow_self) of it. Rates change at every start
 *            and end (handbook 5.8, UT-5.7).
 *
 * A whole step is added as a static graph, then run once; `engine_reset` keeps all memory.
 * Events within 1e-12 relative of each other are one instant. Deterministic: ties by task id.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/fluid.h"

#define ENGINE_NONE UINT32_MAX

enum engine_class { ENGINE_COMPUTE, ENGINE_COMM, ENGINE_HOST };

struct engine_task {
    uint32_t stream;
    uint32_t tag;             /* the caller's; not looked at */
    enum engine_class class_; /* host tasks neither slow nor are slowed */
    uint32_t n_rounds;        /* 0 = 1; more: latency_s and work are of one round, not both 0 */
    double latency_s;         /* >= 0 */
    double work;              /* >= 0; compute and host: seconds at full speed */
    double cap_work_per_s;    /* > 0; 1.0 for seconds; INFINITY: only links limit */
    double weight;            /* of the max-min share; 0 = 1 */
    uint32_t route;           /* of engine_add_route, or ENGINE_NONE */
    uint32_t device[2];       /* devices it keeps busy or slows; ENGINE_NONE = unused */
    uint32_t peer;            /* of a task with rounds; any id; ENGINE_NONE: none */
    double slow_compute, slow_self; /* 0 <= a < 1; COMM only */
};

struct engine_limits {
    uint64_t max_events; /* 0 = none */
    double max_time_s;   /* 0 = none */
};

struct engine;

ty_status engine_create(const struct ty_allocator *allocator, struct engine **out);
void engine_destroy(struct engine *engine);
void engine_reset(struct engine *engine); /* forgets the graph, keeps the memory */

ty_status engine_add_device(struct engine *engine, uint32_t *device);
ty_status engine_add_stream(struct engine *engine, uint32_t *stream);
ty_status engine_add_link(struct engine *engine, double capacity_bytes_per_s, bool shared,
                          uint32_t *link);
ty_status engine_add_route(struct engine *engine, const struct fluid_use *uses, uint32_t n,
                           uint32_t *route);
/* A form: what many tasks have in common. It is checked and kept once. */
ty_status engine_add_form(struct engine *engine, const struct engine_task *task, uint32_t *form);
/* Tasks of a stream run in the order they are added. Ids are 0, 1, 2, ... */
ty_status engine_add_like(struct engine *engine, uint32_t form, uint32_t *id);
/* One of a form of its own. */
ty_status engine_add_task(struct engine *engine, const struct engine_task *task, uint32_t *id);
/* `after` may not start before `before` has finished; any order of ids. */
ty_status engine_add_edge(struct engine *engine, uint32_t before, uint32_t after);
/* A task may also be released by time (arrivals): not before t. Default 0. */
void engine_set_release_s(struct engine *engine, uint32_t task, double time_s);

/* Room for so many tasks, edges and streams in all: building then copies no array. */
ty_status engine_reserve(struct engine *engine, uint64_t n_tasks, uint64_t n_edges,
                         uint64_t n_streams);

/* Runs to the end. returns TY_OK; TY_ERR_LIMIT (what finished so far can be read); TY_ERR_INPUT
 * when tasks remain that wait for each other (a cycle: error names one); TY_ERR_NOMEM. */
ty_status engine_run(struct engine *engine, const struct engine_limits *limits,
                     struct ty_error *error);

uint32_t engine_n_tasks(const struct engine *engine);
uint64_t engine_n_events(const struct engine *engine);
double engine_makespan_s(const struct engine *engine);
double engine_now_s(const struct engine *engine); /* where the run ended or was stopped */
/* The task that ended last (the first of equals); ENGINE_NONE without tasks. */
uint32_t engine_last(const struct engine *engine);
/* NAN for a task that has not started / ended. start: when it left its stream's queue (its
 * latency phase begins then). */
double engine_start_s(const struct engine *engine, uint32_t task);
double engine_end_s(const struct engine *engine, uint32_t task);
/* The dependency (or stream predecessor) that finished last before the task could start;
 * ENGINE_NONE if it waited for nothing. On ties: the stream predecessor, then the lowest id. */
uint32_t engine_binding(const struct engine *engine, uint32_t task);
const struct engine_task *engine_task_of(const struct engine *engine, uint32_t task);
/* Calls `fn` for every edge that was added, by its first task; the order of streams is not among
 * them. */
typedef void engine_edge_fn(void *user, uint32_t before, uint32_t after);
void engine_edges(const struct engine *engine, engine_edge_fn *fn, void *user);
uint32_t engine_form_of(const struct engine *engine, uint32_t task); /* 0, 1, ... */
/* The task before on the stream, or ENGINE_NONE. */
uint32_t engine_stream_previous(const struct engine *engine, uint32_t task);

#endif
