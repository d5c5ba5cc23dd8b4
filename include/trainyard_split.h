/* SPDX-License-Identifier: MIT
 *
 * trainyard_split.h: divides one cluster among several training jobs: GPUs, CPU cores, cache and
 * storage bandwidth. Part of the core library; conventions as in trainyard.h. docs/split.md shows
 * the use.
 *
 *   struct ty_split split;
 *   ty_split_init(&split);
 *   split.n_units = 16;                  (nodes)
 *   split.jobs = jobs, split.n_jobs = 2; (each with its curve: measured, or of ty_split_curve)
 *   status = ty_split_run(&split, &result, &error);
 *
 * Speed of a job with k units of GPUs, P cores, cache c and bandwidth b:
 *
 *   x = min(X(k), P / cpu_s, b / (read_bytes (1 - hit(c))))
 *
 * Its equal share e: the x of 1/n of everything, where a share that is no size of the job is taken
 * as time-sharing of two sizes (the concave envelope of X).
 */
#ifndef TRAINYARD_SPLIT_H
#define TRAINYARD_SPLIT_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_SPLIT_MAX_JOBS     64
#define TY_SPLIT_MAX_UNITS    4096
#define TY_SPLIT_MAX_HITS     129
#define TY_SPLIT_MAX_PREPARED 12 /* jobs with a preparation */

#define TY_SPLIT_OBJECTIVE_LIST(X)                                                                 \
    X(THROUGHPUT, "throughput") /* most sum of weight x / e */                                     \
    X(MAX_MIN, "max-min")       /* most of the least x / (weight e); then throughput */            \
    X(FINISH, "finish")         /* earliest end of the last job; then throughput */

enum ty_split_objective {
#define X(id, name) TY_SPLIT_##id,
    TY_SPLIT_OBJECTIVE_LIST(X)
#undef X
        TY_N_SPLIT_OBJECTIVES
};
/* NULL for a number that is none. */
TY_API const char *ty_split_objective_name(int objective);

struct ty_split_job {
    const double *tokens_per_s; /* X [n_units + 1]; [0] is not read; 0: no plan for this count */
    uint32_t min_units;         /* 0: may get none */
    uint32_t max_units;         /* 0: no limit */
    double weight;              /* > 0; not read by finish */
    double tokens;              /* of the whole job, > 0; NAN: has no end */
    double deadline_s;          /* end at the latest, from now; NAN: none. Needs tokens */
    /* input, per token: */
    double cpu_s;      /* core-seconds of loading and decoding; 0: none */
    double read_bytes; /* 0: none */
    double data_bytes; /* the data set, of which a part may be cached; 0: not cached */
    const double *hit; /* [n_hits] hit ratio with i / (n_hits - 1) of the data set cached, rising;
                          NULL: no eviction, hit = cached part */
    uint32_t n_hits;   /* 2 .. TY_SPLIT_MAX_HITS with hit */
    double prepare_cpu_s; /* core-seconds that come before training; finish only */
};
/* weight 1, no end, no deadline, no input, any number of units. */
TY_API void ty_split_job_init(struct ty_split_job *job);

/* One pool. INFINITY: enough of it. */
struct ty_split {
    const struct ty_split_job *jobs; /* [n_jobs], 1 .. TY_SPLIT_MAX_JOBS */
    uint32_t n_jobs, n_units;        /* units of GPUs, 1 .. TY_SPLIT_MAX_UNITS */
    double cores, cache_bytes, read_bytes_per_s;
    int objective; /* enum ty_split_objective */
};
/* No job, no GPU, enough of all else, objective throughput. */
TY_API void ty_split_init(struct ty_split *split);

#define TY_SPLIT_RESOURCE_LIST(X)                                                                  \
    X(GPUS, "gpus", 1.0)                                                                           \
    X(CORES, "cores", 1.0)                                                                         \
    X(CACHE, "cache", 1073741824.0) /* 1 GiB */                                                    \
    X(STORAGE, "storage", 1e9)      /* 1 GB/s */

enum ty_split_resource {
#define X(id, name, one) TY_SPLIT_##id,
    TY_SPLIT_RESOURCE_LIST(X)
#undef X
        TY_N_SPLIT_RESOURCES
};
/* one: what "one more" is in the units of struct ty_split; may be NULL. */
TY_API const char *ty_split_resource_name(int resource, double *one);

struct ty_split_share {
    uint32_t units;
    double cores, cache_bytes, read_bytes_per_s; /* what it needs to run at its speed */
    double tokens_per_s, equal_tokens_per_s;     /* x, e */
    int limit; /* enum ty_split_resource: what sets its speed; cache is told as storage */
    /* Tokens/s that one more of each would add, nobody giving up any: what is free of the other
     * resources may be used with it. */
    double gain[TY_N_SPLIT_RESOURCES];
    uint32_t next_units;       /* the next larger count at which X is higher; 0: none */
    double next_tokens_per_s;  /* ... X there */
    double prepare_s, start_s; /* when its preparation and its training begin; 0 without one */
    double finish_s;           /* start + tokens / x; NAN without tokens, INFINITY at x = 0 */
};

struct ty_split_result {
    uint32_t n_jobs;
    struct ty_split_share share[TY_SPLIT_MAX_JOBS];
    double value;    /* of the objective: a sum, a ratio, seconds */
    double equal;    /* of the equal split, in the same measure: sum of weights; 1 / largest weight;
                        seconds */
    double bound;    /* no division does better; = value where the optimum is proven */
    double in_row_s; /* finish: value if all prepare first and all train then; else NAN */
    uint32_t free_units;
    double free_cores, free_cache_bytes, free_read_bytes_per_s; /* INFINITY where not limited */
};

/* The best division. Deadlines and minima are kept.
 *
 *   throughput  exact over GPUs (dynamic programme, any curve). Where cores or storage bind as
 *               well they are divided exactly at these GPUs, GPUs that would wait for input go to
 *               others, and `bound` says how far from the optimum that can be.
 *   max-min,    exact over all four resources together: at a level each job has a least speed, so
 *   finish      a least count of units and cores; the cache goes where a byte saves most
 *               bandwidth (hit curves by their concave hull; see docs/split.md).
 *   finish      preparations run one after the other on the cores that loaders leave; the best
 *               order is searched among all of them.
 *
 * returns TY_OK; TY_ERR_RANGE (error names job and field); TY_ERR_INFEASIBLE (no division keeps
 * minima and deadlines, or a job runs at no size that it may have); TY_ERR_NOMEM.
 * cost: n_jobs n_units^2; finish: 2^prepared. Thread-safe: no state.
 * source: dynamic programme handbook 9.2, 9.3; hull of a hit curve: Beckmann, Sanchez, Talus,
 * HPCA 2015. */
TY_API TY_MUST_CHECK ty_status ty_split_run(const struct ty_split *split,
                                            struct ty_split_result *out, struct ty_error *error);

/* X of a job by search: the best plan on unit_gpus, 2 unit_gpus, ... GPUs, 0 where no plan is legal
 * and fits. A list search->space.n_gpus limits the counts that are tried; `top` and `overall` are
 * not read.
 *   tokens_per_s  [n_units + 1], [0] = 0
 *   plans         [n_units + 1] the plan behind each; NULL: not wanted
 * Cost: one search over all counts. returns TY_OK, also when nothing fits; TY_ERR_RANGE (more than
 * TY_MAX_VALUES units); as ty_search_run. */
TY_API TY_MUST_CHECK ty_status ty_split_curve(const struct ty_search *search, uint32_t unit_gpus,
                                              uint32_t n_units, double *tokens_per_s,
                                              struct ty_plan *plans, struct ty_error *error);

/* Hit ratios of a cache policy ("lru", "fifo", "clock", "lfu", "belady", "no-evict", ...) when the
 * data set is read in shuffled epochs: hit[i] with i / (n_hits - 1) of it cached, made to rise.
 * Cost: some us; 1 s where it is replayed (clock). returns TY_OK; TY_ERR_INPUT (no such policy;
 * error lists them), TY_ERR_RANGE, TY_ERR_NOMEM. source: handbook 7.3; a replay of 4,000 items
 * where there is no closed form. */
TY_API TY_MUST_CHECK ty_status ty_split_hit_curve(const char *policy, uint32_t n_hits, double *hit,
                                                  struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
