/* SPDX-License-Identifier: MIT
 *
 * What the files of the pool simulation share: the state of nodes, waiting jobs in order, the
 * simulation, and the policy, a struct of functions. See include/trainyard_pool.h.
 *
 * Jobs with the same request share a shape. While free room only shrinks within a pass, a shape
 * that did not fit once need not be tried again, so a pass costs shapes, not jobs.
 */
#ifndef MODELS_POOL_H
#define MODELS_POOL_H

#include "include/trainyard_pool.h"
#include "sim/arena.h"
#include "sim/queue.h"
#include "sim/random.h"

struct pool_sim;

#define POOL_NONE     UINT32_MAX
#define POOL_MAX_GPUS (1u << 20)
#define POOL_MAX_JOBS (1u << 28)

/* ---- nodes (pool_state.c, pool_place.c) --------------------------------------------------- */

/* GPUs of one job on one node. slot: the shared GPU of a job that takes a part of one. */
struct pool_piece {
    uint32_t node, gpus, slot, next;
};

/* A GPU of which parts are taken; in use while free_milli < 1000. */
struct pool_slot {
    uint32_t node;
    int32_t free_milli;
};

/* What is free. A counted value may go below zero in the scratch states of a preemptive pass. */
struct pool_room {
    int32_t *gpus; /* [n_nodes] wholly free GPUs */
    double *cpus, *mem_bytes;
    struct pool_slot *slots; /* [n_slots] */
    int64_t free_gpus;       /* sum of gpus */
};

struct pool_node {
    uint32_t gpus, leaf, pod;
    uint64_t group; /* its bit */
    double cpus, mem_bytes;
    bool down;
};

struct pool_shape {
    uint64_t groups; /* bits of the node groups it may use */
    double cpus, mem_bytes;
    uint32_t gpus, worker, milli, queue;
    int level;
    uint32_t root, first; /* waiting jobs of this shape: treap, its smallest */
    uint32_t cursor;      /* of the walk of this pass; POOL_NONE: done with */
    uint32_t live_place;  /* place in pool_sim.live + 1; 0: nothing waits */
    const char *refused;
    bool no_spare; /* scratch of easy: does not fit beside the head's reservation */
};

/* ---- jobs --------------------------------------------------------------------------------- */

enum pool_phase { POOL_AHEAD, POOL_WAITING, POOL_RUNNING, POOL_DONE };

struct pool_key {
    double major, minor; /* smaller goes first; ties: index of the job, which is submit order */
};

struct pool_job {
    const struct ty_pool_job *job;
    uint64_t origin;     /* the caller's index */
    double remaining_s;  /* work left at the start of the present run, at the nominal size */
    double run_start_s;  /* of the present run */
    double work_start_s; /* the same after the restart */
    double rate;         /* work per second; 1 at the nominal size */
    double end_s;        /* of the present run as far as known */
    double attained_gpu_s, lost_gpu_s;
    double first_start_s;
    double crowd_s; /* integral of the number of active jobs: when it came, then over its life */
    double restart_s;
    struct pool_key key;
    uint32_t shape, pieces, gpus; /* gpus: held now */
    uint32_t target, placed;      /* scratch: size to come and its pieces; whom it makes room */
    uint32_t preemptions, failures, resizes;
    uint32_t left, right, before, after; /* treap and list of waiting jobs */
    double length_s, least_s;            /* estimated run when it waits; least in its subtree */
    uint8_t phase;
    bool keep; /* scratch of a preemptive pass */
    bool began;
};

/* A way to share the pool. The simulation calls; NULL means nothing to do. */
struct pool_policy {
    const char *name, *text;
    /* Order of a job, waiting or running, at sim->now_s. */
    struct pool_key (*key)(const struct pool_sim *sim, uint32_t job);
    /* Order that depends on a queue's use: the walk puts it before the key. */
    double (*share)(const struct pool_sim *sim, uint32_t queue);
    /* One scheduling pass; false: out of memory. */
    bool (*pass)(struct pool_sim *sim);
    /* The job came; has started (may ask for a timer); must wait again. */
    void (*submitted)(struct pool_sim *sim, uint32_t job);
    void (*started)(struct pool_sim *sim, uint32_t job);
    void (*stopped)(struct pool_sim *sim, uint32_t job);
    void (*timer)(struct pool_sim *sim, uint32_t job);
    bool by_queue; /* shapes of two queues are distinct */
    bool elastic;  /* a shape asks for the smallest size of its jobs */
};
const struct pool_policy *pool_policy_find(const char *name);
/* sim->spare becomes what is free when enough running jobs have ended for the job to start. returns
 * that time; INFINITY when they alone do not make room (a node is down). */
double pool_reserve(struct pool_sim *sim, uint32_t job);

/* ---- the simulation ----------------------------------------------------------------------- */

struct pool_use { /* of a queue, now */
    double gpus, cpus, mem_bytes;
};

/* Entries of the event queue: completion of job j is j, its timer n_jobs + j, the next failure or
 * repair of node k 2 n_jobs + k; the priority is the kind. */
enum pool_event { POOL_COMPLETION, POOL_TIMER, POOL_NODE_EVENT };

struct pool_sim {
    const struct ty_pool *config;
    const struct pool_policy *policy;
    struct arena arena;
    struct queue *events;
    double now_s;

    struct pool_job *jobs; /* [n_jobs] by submit, then the caller's index */
    uint32_t n_jobs, next_arrival, n_active, n_left;
    struct pool_shape *shapes;
    uint32_t n_shapes, *live, n_live;
    uint32_t *running, n_running; /* in the order of the last sort */
    uint32_t *chosen;             /* [n_jobs] scratch: jobs a pass starts */

    struct pool_node *nodes;
    uint32_t n_nodes, n_leaves, n_pods, n_slots;
    double total_gpus, total_cpus, total_mem_bytes;
    struct pool_room room, spare, other; /* now, and two scratch states */
    uint64_t *domain;                    /* [max(n_leaves, n_pods)] scratch of placing */
    uint32_t *order;                     /* [n_nodes] scratch of placing */
    struct pool_piece *pieces;           /* [capacity], a list each job */
    size_t n_pieces, piece_capacity;
    uint32_t free_piece;

    struct pool_use *use; /* [n_queues] */
    struct ty_pool_queue *queues;
    uint32_t n_queues;
    double storage_free_s;      /* when the storage has served the restarts so far */
    int64_t las_head, las_tail; /* positions given out in the queues of las */
    struct random_stream *failures;

    /* integrals over time */
    double held_gpus; /* now */
    double held_gpu_s, lost_gpu_s, idle_waiting_gpu_s, whole_waiting_gpu_s, active_s;
    double blocked_s[3];
    int blocked;        /* enum pool_blocked of the first waiting job */
    int64_t whole_gpus; /* free GPUs on wholly free nodes */
    uint64_t n_events, n_node_failures;
    bool out_of_memory;
};

enum pool_blocked { POOL_BLOCKED_CAPACITY, POOL_BLOCKED_SHAPE, POOL_BLOCKED_POLICY };

/* ---- pool_room.c -------------------------------------------------------------------------- */

bool room_create(struct pool_sim *sim, struct pool_room *room);
/* All that is up is free. */
void room_empty(const struct pool_sim *sim, struct pool_room *room);
void room_copy(const struct pool_sim *sim, struct pool_room *to, const struct pool_room *from);
/* Takes or gives back a list of pieces of a job of that shape. */
void room_take(const struct pool_sim *sim, struct pool_room *room, const struct pool_shape *shape,
               uint32_t pieces);
void room_give(const struct pool_sim *sim, struct pool_room *room, const struct pool_shape *shape,
               uint32_t pieces);
/* True when every piece is free. */
bool room_has(const struct pool_sim *sim, const struct pool_room *room,
              const struct pool_shape *shape, uint32_t pieces);

/* ---- pool_place.c ------------------------------------------------------------------------- */

/* Workers of the shape that fit on a node. */
uint32_t place_workers(const struct pool_sim *sim, const struct pool_room *room,
                       const struct pool_shape *shape, uint32_t node);
/* Finds room for a gang of `gpus` GPUs. returns the list of pieces, POOL_NONE: none; the room is
 * not changed. Out of memory: POOL_NONE and sim->out_of_memory. */
uint32_t place_find(struct pool_sim *sim, const struct pool_room *room,
                    const struct pool_shape *shape, uint32_t gpus);
void place_free(struct pool_sim *sim, uint32_t pieces);

/* ---- pool_order.c: the waiting jobs of a shape -------------------------------------------- */

bool key_before(struct pool_key a, uint32_t job_a, struct pool_key b, uint32_t job_b);
void order_insert(struct pool_sim *sim, uint32_t job);
void order_remove(struct pool_sim *sim, uint32_t job);
/* The walk of a pass over all waiting jobs, smallest key first. A shape is skipped from
 * walk_block on. The job that walk_next gave may be removed. */
void walk_begin(struct pool_sim *sim);
uint32_t walk_peek(const struct pool_sim *sim); /* POOL_NONE: no more */
uint32_t walk_next(struct pool_sim *sim);
void walk_block(struct pool_sim *sim, uint32_t job);
/* Skips the jobs of its shape that follow it and are estimated to run longer. */
void walk_skip(struct pool_sim *sim, uint32_t job, double length_s);
/* Sorts `running` by key(sim, job): quick when it nearly is. */
void order_running(struct pool_sim *sim,
                   struct pool_key (*key)(const struct pool_sim *sim, uint32_t job));

/* ---- pool_job.c: what happens to a job ---------------------------------------------------- */

/* Tells the caller's event function. */
void pool_tell(const struct pool_sim *sim, int kind, uint64_t subject, uint32_t gpus);

/* Work left now at the nominal size, seconds. */
double job_remaining_s(const struct pool_sim *sim, uint32_t job);
double job_attained_gpu_s(const struct pool_sim *sim, uint32_t job);
/* Starts a waiting job on pieces (of which the job becomes the owner). */
void job_start(struct pool_sim *sim, uint32_t job, uint32_t pieces);
/* Tries to place and start it. */
bool job_try(struct pool_sim *sim, uint32_t job);
enum pool_stop { POOL_COMPLETED, POOL_PREEMPTED, POOL_FAILED, POOL_RESIZED };
/* Ends its run; unless completed it waits again. */
void job_stop(struct pool_sim *sim, uint32_t job, enum pool_stop why);
/* Speed of a job at that size, one of its own, relative to its nominal size. */
double job_speed(const struct ty_pool_job *job, uint32_t gpus);
/* Estimated end by the user's limit, never in the past; of a waiting job if it started now. */
double job_estimate_s(const struct pool_sim *sim, uint32_t job);

/* ---- pool_preempt.c, pool_quota.c, pool_elastic.c ----------------------------------------- */

bool pass_preempt(struct pool_sim *sim);
struct pool_key las_key(const struct pool_sim *sim, uint32_t job);
void las_submitted(struct pool_sim *sim, uint32_t job);
void las_started(struct pool_sim *sim, uint32_t job);
void las_stopped(struct pool_sim *sim, uint32_t job);
void las_timer(struct pool_sim *sim, uint32_t job);
bool pass_las(struct pool_sim *sim);
bool pass_quota(struct pool_sim *sim);
double drf_share(const struct pool_sim *sim, uint32_t queue);
bool pass_elastic(struct pool_sim *sim);

/* ---- pool_create.c, pool_sim.c, pool_metrics.c
 * ----------------------------------------------------------- */

ty_status pool_sim_create(const struct ty_pool *config, const struct ty_pool_job *jobs,
                          uint64_t n_jobs, struct pool_sim *sim, struct ty_error *error);
void pool_sim_destroy(struct pool_sim *sim);
/* All events up to and at until_s (INFINITY: until every job is done), or until the job `watch`
 * waits after a pass (POOL_NONE: none). */
ty_status pool_sim_run(struct pool_sim *sim, double until_s, uint32_t watch,
                       struct ty_error *error);
/* Free GPUs on nodes that the shape may use. */
int64_t pool_free_gpus(const struct pool_sim *sim, const struct pool_shape *shape);
/* Why a waiting shape cannot start now. */
enum pool_blocked pool_blocked_by(struct pool_sim *sim, const struct pool_shape *shape);
ty_status pool_metrics(struct pool_sim *sim, struct ty_pool_metrics *out);

#endif
