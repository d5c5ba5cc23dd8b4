/* SPDX-License-Identifier: MIT
 *
 * A shared cluster under a trace of jobs: which job runs when and where under a policy, and what
 * users and owner get from it. Part of the core library (libtrainyard); traces are read from files
 * by trainyard_tools.h.
 *
 *   struct ty_pool pool;
 *   ty_pool_init(&pool);
 *   pool.n_groups = 1;
 *   pool.groups = &(struct ty_pool_nodes){.n_nodes = 64, .gpus_per_node = 8};
 *   pool.policy = "easy";
 *   status = ty_pool_run(&pool, jobs, n_jobs, &result, &error);
 *
 * At each instant: completions, repairs and failures, timers, arrivals, then one scheduling pass.
 * A job is a gang: all of its workers start together or none does. A job that could not run even
 * on the empty cluster is refused, with the reason, and not simulated. Same input and seed: the
 * same schedule.
 */
#ifndef TRAINYARD_POOL_H
#define TRAINYARD_POOL_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the cluster -------------------------------------------------------------------------- */

/* Equal nodes. One node with all GPUs is a counting cluster: any free GPU serves any job. */
struct ty_pool_nodes {
    char gpu[48]; /* GPU type, for jobs that ask for one */
    uint32_t n_nodes;
    uint32_t gpus_per_node;
    uint32_t nodes_per_leaf; /* under one leaf switch; 0: the group is one leaf */
    uint32_t pod;            /* id of the pod (superpod, rail group) the group belongs to */
    double cpus;             /* cores per node; NAN: not counted */
    double mem_bytes;        /* host memory per node; NAN: not counted */
};

/* A team, partition or virtual cluster. */
struct ty_pool_queue {
    char name[48];
    double weight;      /* of its share under drf; NAN: 1 */
    double quota_gpus;  /* nominal quota under quota; NAN: all GPUs, shared by weight */
    double borrow_gpus; /* at most this many above the quota; NAN: no limit */
    uint32_t cohort;    /* queues of one cohort lend each other unused quota */
};

/* What happens in a replay, in order of time. */
#define TY_POOL_EVENT_LIST(X)                                                                      \
    X(SUBMIT, "submit")                                                                            \
    X(START, "start") /* of a run: first, after a stop, at another size */                         \
    X(END, "end")     /* completed */                                                              \
    X(PREEMPT, "preempt")                                                                          \
    X(FAIL, "fail")     /* a node under it failed */                                               \
    X(RESIZE, "resize") /* stopped, to start at another size */                                    \
    X(NODE_DOWN, "node_down")                                                                      \
    X(NODE_UP, "node_up")

enum ty_pool_event_kind {
#define X(id, name) TY_POOL_EVENT_##id,
    TY_POOL_EVENT_LIST(X)
#undef X
        TY_N_POOL_EVENTS
};
/* NULL for a number that is none. */
TY_API const char *ty_pool_event_name(int kind);

struct ty_pool_event {
    double time_s;
    int kind;         /* enum ty_pool_event_kind */
    uint64_t subject; /* index of the job, in the caller's order; of the node */
    uint32_t gpus;    /* of the run; of the node */
    /* of the pool, after the event: */
    double held_gpus; /* parts of one counted as parts */
    uint32_t n_running, n_waiting;
};
typedef void ty_pool_event_fn(void *user, const struct ty_pool_event *event);

enum ty_pool_level { TY_POOL_ANY, TY_POOL_NODE, TY_POOL_LEAF, TY_POOL_POD };
enum ty_pool_placement { TY_POOL_PACK, TY_POOL_SPREAD };

struct ty_pool {
    const struct ty_pool_nodes *groups; /* [n_groups] */
    uint32_t n_groups;                  /* 1 .. 64 */
    const struct ty_pool_queue *queues; /* [n_queues]; NULL: every queue has the defaults */
    uint32_t n_queues;
    const char *policy;         /* a name of ty_pool_policy(); default "fifo" */
    int placement;              /* enum ty_pool_placement */
    double restart_s;           /* GPUs held before work goes on, after a preemption, a failure or
                                   a change of size; default 0. A job may have its own */
    double read_bytes_per_s;    /* at which a restart reads the job's checkpoint; NAN: at no cost */
    double storage_bytes_per_s; /* of the storage: restarts read one after the other, as they come;
                                   what loaders and saves leave of it. NAN: no limit */
    double checkpoint_every_s;  /* a failure loses the work since the last multiple; NAN: all of
                                   the present run */
    bool preempt_loses;         /* a preemption loses it too; false: it saves a checkpoint first */
    double node_mtbf_s;         /* mean time between failures of a node, exponential; NAN: none */
    double repair_s;            /* a failed node is back after this */
    double las_limit_gpu_s[2];  /* queue limits of las; default 3250, 7200 (source: Tiresias
                                   simulator) */
    uint64_t seed;
    uint64_t max_events;     /* 0: 64 + 4096 per job */
    ty_pool_event_fn *event; /* called for each, within ty_pool_run; NULL: nobody asks */
    void *user;
    const struct ty_allocator *allocator;
};
/* Default markers; fifo, packed. */
TY_API void ty_pool_init(struct ty_pool *pool);

/* Name and one-line description of a policy; index 0.. until NULL. */
TY_API const char *ty_pool_policy(size_t index, const char **text);

/* ---- jobs --------------------------------------------------------------------------------- */

/* A size that an elastic job can take, and its speed there in any unit: tokens/s, say. */
struct ty_pool_size {
    uint32_t gpus;
    double speed; /* > 0 */
};

struct ty_pool_job {
    double submit_s;
    double duration_s;       /* run time on `gpus` GPUs without interruption, > 0 */
    double limit_s;          /* what the user says it takes (easy plans with it); NAN: duration */
    double deadline_s;       /* absolute; NAN: none */
    double share;            /* of one GPU, (0, 1]; below 1 only for gpus = 1. NAN: 1 */
    double cpus;             /* cores per worker; NAN: 0 */
    double mem_bytes;        /* host memory per worker; NAN: 0 */
    double restart_s;        /* NAN: of the pool */
    double checkpoint_bytes; /* read at a restart, on top of restart_s; NAN: 0 */
    double serial;           /* elastic: speed of g GPUs is g / (1 + serial (g - 1)); NAN: 0 */
    const char *gpu;         /* GPU types it can use, parted by '|'; NULL or "": any */
    uint32_t gpus;           /* the gang, >= 1 */
    uint32_t worker;         /* GPUs of one worker, which stay on one node; 0: 1 */
    uint32_t min_gpus;       /* elastic: smallest and largest size; 0: gpus */
    uint32_t max_gpus;
    uint32_t queue;   /* index */
    int32_t priority; /* larger is more important */
    int level;        /* enum ty_pool_level: all of it within one such domain */
    /* elastic: [n_sizes] the sizes it can take, ascending; gpus, min_gpus and max_gpus are among
     * them. NULL: every multiple of worker, with `serial` */
    const struct ty_pool_size *sizes;
    uint32_t n_sizes;
    const char *curve; /* name of its curve in the trace; not read here */
};
/* Default markers; gpus 1. */
TY_API void ty_pool_job_init(struct ty_pool_job *job);

/* ---- the result --------------------------------------------------------------------------- */

struct ty_pool_outcome {
    double start_s, end_s; /* first start, completion; NAN for a refused job */
    double lost_gpu_s;     /* held for restarts and for work done twice */
    uint32_t preemptions, failures, resizes;
    const char *refused; /* why it cannot run on this cluster; NULL when it ran */
};

struct ty_pool_spread {
    double mean, median, p90, p99, max; /* p: element ceil(p n) of the sorted values */
};

struct ty_pool_metrics {
    uint64_t n_done, n_refused;
    struct ty_pool_spread jct_s;    /* end - submit */
    struct ty_pool_spread wait_s;   /* jct - duration: queueing, restarts, work done twice */
    struct ty_pool_spread slowdown; /* jct / duration */
    double makespan_s;              /* last end - first submit */
    double allocated_ratio;         /* GPU-seconds held / (GPUs x makespan) */
    double useful_ratio;            /* the same less restarts and work done twice */
    double fragmentation;           /* of the free GPU-seconds while jobs wait, those not in a
                                       wholly free node; NAN on one node */
    double idle_while_waiting;      /* free GPU-seconds while jobs wait / (GPUs x makespan) */
    double blocked_capacity_s;      /* the first waiting job: time with too few free GPUs, */
    double blocked_shape_s;         /* ... with enough, in the wrong places or sizes */
    double blocked_policy_s;        /* ... when it would fit and the policy says no (quota) */
    uint64_t n_preemptions, n_failures, n_resizes, n_node_failures;
    double lost_gpu_hours;
    double rho_mean, rho_max; /* finish-time fairness: jct / time with an equal share */
    double jain;              /* (sum x)^2 / (n sum x^2), x: mean slowdown of a queue */
    uint64_t n_deadlines, n_missed;
    uint64_t n_events;
};

struct ty_pool_result {
    struct ty_pool_metrics metrics;
    struct ty_pool_outcome *outcomes; /* [n_jobs], in the caller's order */
    uint64_t n_outcomes;
    size_t capacity; /* for ty_pool_result_free */
    struct ty_allocator allocator;
};

/* Replays the jobs. returns TY_OK, TY_ERR_RANGE (a field outside its range: error names job and
 * field), TY_ERR_INPUT (unknown policy), TY_ERR_LIMIT (too many events: a job that fails for ever),
 * TY_ERR_NOMEM. Free with ty_pool_result_free, which accepts a zeroed one. cost: O(events x waiting
 * shapes x nodes). */
TY_API TY_MUST_CHECK ty_status ty_pool_run(const struct ty_pool *pool,
                                           const struct ty_pool_job *jobs, uint64_t n_jobs,
                                           struct ty_pool_result *out, struct ty_error *error);
TY_API void ty_pool_result_free(struct ty_pool_result *result);

/* ---- free GPUs, but my gang cannot start ---------------------------------------------------- */

enum ty_pool_reason {
    TY_POOL_RUNS,       /* it runs or has run */
    TY_POOL_CAPACITY,   /* too few free GPUs of its types */
    TY_POOL_FRAGMENTED, /* enough GPUs, but not on nodes or in a domain where a worker fits */
    TY_POOL_HOST,       /* enough GPUs, but cores or host memory of their nodes are taken */
    TY_POOL_BEHIND,     /* it would fit; the policy lets others go first, or its quota is used */
    TY_POOL_NEVER       /* it does not fit on the empty cluster */
};
/* A sentence; static. */
TY_API const char *ty_pool_reason_text(int reason);

struct ty_pool_move {
    uint64_t job; /* index of a running job to move elsewhere */
    uint32_t gpus;
};

struct ty_pool_verdict {
    int reason;            /* enum ty_pool_reason */
    double time_s;         /* of the snapshot */
    uint64_t free_gpus;    /* on nodes of its types */
    uint64_t placeable;    /* GPUs its workers could use now, ignoring its level */
    uint32_t domains_fit;  /* nodes, leaves or pods (its level) that could hold it when empty, */
    uint32_t domains_free; /* ... and that could hold it now */
    double expected_s;     /* when enough running jobs have ended; NAN: not by waiting alone */
    uint32_t n_moves;      /* running jobs to move so that it starts now; 0: no such plan found */
    struct ty_pool_move moves[16];
    char advice[480];
};

/* Replays until time_s, or with time_s NAN until the job first waits after a pass, and says why
 * `job` waits there and what would help. Cost: of the replay until then. returns as ty_pool_run;
 * TY_ERR_RANGE for no such job. */
TY_API TY_MUST_CHECK ty_status ty_pool_explain(const struct ty_pool *pool,
                                               const struct ty_pool_job *jobs, uint64_t n_jobs,
                                               uint64_t job, double time_s,
                                               struct ty_pool_verdict *out, struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
