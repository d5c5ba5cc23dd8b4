/* SPDX-License-Identifier: MIT
 *
 * Division of a cluster among jobs: what its parts share (trainyard_split.h has the model).
 *
 *   split.c        equal shares, the order of the steps, what is reported
 *   split_gpus.c   units of GPUs: a dynamic programme
 *   split_input.c  cache, bandwidth, cores at given units
 *   split_level.c  the least time or the highest level that all jobs can keep
 */
#ifndef SEARCH_SPLIT_H
#define SEARCH_SPLIT_H

#include "include/trainyard_split.h"

/* A stretch of the concave hull of a hit curve. */
struct split_piece {
    double bytes, hit; /* width; rise of the hit ratio over it */
};

struct split_job {
    const struct ty_split_job *asked;
    double *reach; /* [n_units + 1] highest X of the sizes it may have up to k */
    uint32_t low, high;
    double equal;      /* e, tokens/s */
    double gain;       /* weight / e */
    double scale;      /* max-min: weight e; finish: tokens; level = scale / x */
    double least;      /* tokens/s that level and deadline ask for */
    double most;       /* tokens/s that units, or a cap, allow */
    double training_s; /* when its training may start */
    double prepared_s; /* when its preparation starts */
    uint32_t units;
    double cache_bytes;
    double speed; /* tokens/s */
    uint32_t n_pieces;
    struct split_piece piece[TY_SPLIT_MAX_HITS];
};

struct split {
    const struct ty_split *asked;
    uint32_t n;
    struct split_job job[TY_SPLIT_MAX_JOBS];
    double loader_cores; /* of all cores, those that no preparation takes */
    double *reach;       /* [n_jobs][n_units + 1], storage of the jobs' */
    double *table;       /* [2][n_units + 1], of the dynamic programme */
    uint32_t *choice;    /* [n_jobs][n_units + 1] */
    uint32_t n_prepared, prepared[TY_SPLIT_MAX_PREPARED]; /* jobs with a preparation */
    uint32_t needed[1u << TY_SPLIT_MAX_PREPARED];         /* units, by the set prepared so far */
    uint8_t last[1u << TY_SPLIT_MAX_PREPARED];            /* the one prepared last */
};

#define SPLIT_NONE UINT32_MAX

/* A speed that rounding left just below what is asked for is enough. */
static inline bool split_enough(double speed, double asked)
{
    return speed >= asked * (1.0 - 1e-12);
}

/* ---- split_gpus.c ---- */
/* May the job have k units? */
bool split_allowed(const struct split_job *job, uint32_t units);
/* The fewest units that reach a speed; SPLIT_NONE: no size does. */
uint32_t split_units_for(const struct split_job *job, uint32_t n_units, double speed);
/* Concave envelope of X at a share of the units, through 0. */
double split_envelope(const struct split_job *job, uint32_t n_units, double share);
/* Most sum of gain min(X, most) with X >= least; sets job.units. returns the sum, -1: impossible */
double split_units(struct split *split);

/* ---- split_input.c ---- */
void split_hull(struct split_job *job);
double split_hit(const struct split_job *job, double cache_bytes);
/* Bandwidth that all need at these speeds [n] when the cache is divided best; sets job.cache_bytes
 * unless `keep` is false. */
double split_storage_need(struct split *split, const double *speed, bool keep);
/* Cache, then the speeds least <= x <= most that bandwidth and cores allow and that are worth most;
 * sets job.speed and job.cache_bytes. returns the sum of gain x. */
double split_input(struct split *split);

/* ---- split_level.c ---- */
/* Can all jobs keep the level T: max-min scale / x <= T; finish: end by T? Sets job.least and, with
 * preparations, training_s and prepared_s. together: all prepare before anyone trains. */
bool split_keeps(struct split *split, double level, bool together);
/* The least level, to 1e-15 of it; INFINITY: none. Leaves the jobs as split_keeps of it. */
double split_least_level(struct split *split, bool together);

#endif
