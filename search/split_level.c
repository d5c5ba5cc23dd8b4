/* SPDX-License-Identifier: MIT
 *
 * The best level that all jobs keep at once. At a level T each job has a least speed
 *
 *   max-min   scale / T                finish   tokens / (T - C)     C: end of its preparation
 *
 * (and tokens / (deadline - C)), so a least number of units, cores and bytes per second; T is kept
 * if these fit, and bisected.
 *
 * Preparations use the cores that loaders leave, one after the other: with cores that can be
 * divided at will, no order of ends is reached earlier by sharing them. Which order: the end C of a
 * job depends on the set S prepared before it alone, so the fewest units of a set are
 *
 *   f(S + j) = min_j f(S) + units_j(T - C(S + j))
 */
#include "search/split.h"

#include <math.h>

#define LEVEL_STEPS 128
#define MOST_ROUNDS 64

/* Tokens/s that the job needs when it trains from `from_s` on. */
static double needed_speed(const struct split *split, const struct split_job *job, double level,
                           double from_s)
{
    const bool finish = split->asked->objective == TY_SPLIT_FINISH;
    double speed = 0.0;
    if (isfinite(level)) {
        const double left = level - (finish ? from_s : 0.0);
        speed = left > 0.0 ? job->scale / left : (double)INFINITY;
    }
    if (!isnan(job->asked->deadline_s)) {
        const double left = job->asked->deadline_s - from_s;
        speed = fmax(speed, left > 0.0 ? job->asked->tokens / left : (double)INFINITY);
    }
    return speed;
}

static uint32_t needed_units(const struct split *split, const struct split_job *job, double level,
                             double from_s)
{
    return split_units_for(job, split->asked->n_units, needed_speed(split, job, level, from_s));
}

/* Core-seconds of preparing a set. */
static double preparation(const struct split *split, uint32_t set)
{
    double cpu_s = 0.0;
    for (uint32_t i = 0; i < split->n_prepared; i++)
        if (set >> i & 1u)
            cpu_s += split->job[split->prepared[i]].asked->prepare_cpu_s;
    return cpu_s;
}

/* Sets the times of the best order, or those of all at once. */
static void order_preparations(struct split *split, double level, double cores, bool together)
{
    const uint32_t all = (1u << split->n_prepared) - 1;
    const double total_s = preparation(split, all) / cores;
    split->needed[0] = 0;
    for (uint32_t set = 1; set <= all && !together; set++) {
        const double end_s = preparation(split, set) / cores;
        split->needed[set] = SPLIT_NONE;
        for (uint32_t i = 0; i < split->n_prepared; i++) {
            const uint32_t before = set & ~(1u << i);
            if (before == set || split->needed[before] == SPLIT_NONE)
                continue;
            const uint32_t units =
                needed_units(split, &split->job[split->prepared[i]], level, end_s);
            if (units == SPLIT_NONE || split->needed[before] + units >= split->needed[set])
                continue;
            split->needed[set] = split->needed[before] + units;
            split->last[set] = (uint8_t)i;
        }
    }
    const bool ordered = !together && split->needed[all] != SPLIT_NONE;
    for (uint32_t set = all, i = 0; i < split->n_prepared; i++) {
        const uint32_t which = ordered ? split->last[set] : i;
        struct split_job *job = &split->job[split->prepared[which]];
        job->training_s = ordered ? preparation(split, set) / cores : total_s;
        job->prepared_s = ordered ? job->training_s - job->asked->prepare_cpu_s / cores : 0.0;
        set &= ordered ? ~(1u << which) : set;
    }
}

/* Do the units, the loaders' cores and the storage suffice? Sets the least speeds; *cores: what the
 * loaders need. */
static bool fits(struct split *split, double level, double *cores)
{
    double speed[TY_SPLIT_MAX_JOBS];
    uint64_t units = 0;
    *cores = 0.0;
    for (uint32_t j = 0; j < split->n; j++) {
        struct split_job *job = &split->job[j];
        const uint32_t needed = needed_units(split, job, level, job->training_s);
        if (needed == SPLIT_NONE)
            return false;
        units += needed;
        speed[j] = job->least = needed_speed(split, job, level, job->training_s);
        *cores += speed[j] * job->asked->cpu_s;
    }
    return units <= split->asked->n_units &&
           split_enough(split->asked->read_bytes_per_s, split_storage_need(split, speed, false));
}

bool split_keeps(struct split *split, double level, bool together)
{
    double reserved = 0.0, needed;
    split->loader_cores = split->asked->cores;
    if (split->n_prepared == 0)
        return fits(split, level, &needed) && split_enough(split->asked->cores, needed);
    for (int round = 0; round < MOST_ROUNDS; round++) { /* loaders first, from below */
        if (reserved >= split->asked->cores)
            return false;
        order_preparations(split, level, split->asked->cores - reserved, together);
        if (!fits(split, level, &needed))
            return false;
        if (isfinite(split->asked->cores))
            split->loader_cores = reserved;
        if (split_enough(reserved, needed))
            return true;
        reserved = needed * (1.0 + 1e-9);
    }
    return false;
}

double split_least_level(struct split *split, bool together)
{
    double low = 1e-30, high = 1e30;
    if (!split_keeps(split, high, together))
        return INFINITY;
    for (int step = 0; step < LEVEL_STEPS && high > low * (1.0 + 1e-15); step++) {
        const double middle = high / low > 4.0 ? sqrt(low) * sqrt(high) : 0.5 * (low + high);
        *(split_keeps(split, middle, together) ? &high : &low) = middle;
    }
    return split_keeps(split, high, together) ? high : (double)INFINITY;
}
