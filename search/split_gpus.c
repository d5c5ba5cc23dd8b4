/* SPDX-License-Identifier: MIT
 *
 * Units of GPUs among jobs, exact for any curve (handbook 9.3):
 *
 *   best[j][g] = max_k best[j-1][g-k] + gain_j min(X_j(k), most_j)     X_j(k) >= least_j
 *
 * Of equal sums the one with fewest units is taken: what helps nobody stays free.
 */
#include "search/split.h"

#include <math.h>

bool split_allowed(const struct split_job *job, uint32_t units)
{
    if (units == 0)
        return job->low == 0;
    return units >= job->low && units <= job->high && job->asked->tokens_per_s[units] > 0.0;
}

uint32_t split_units_for(const struct split_job *job, uint32_t n_units, double speed)
{
    if (speed <= 0.0 && job->low == 0)
        return 0;
    if (!split_enough(job->reach[n_units], speed) || job->reach[n_units] == 0.0)
        return SPLIT_NONE;
    uint32_t below = 0, above = n_units; /* reach[below] does not do, reach[above] does */
    while (above - below > 1) {
        const uint32_t middle = below + (above - below) / 2;
        const bool enough = job->reach[middle] > 0.0 && split_enough(job->reach[middle], speed);
        *(enough ? &above : &below) = middle;
    }
    return above;
}

double split_envelope(const struct split_job *job, uint32_t n_units, double share)
{
    const double *speed = job->reach;
    double best = 0.0;
    for (uint32_t low = 0; low <= n_units && low <= share; low++) {
        best = fmax(best, speed[low]);
        for (uint32_t high = low + 1; high <= n_units; high++)
            if (high >= share)
                best = fmax(best, speed[low] + (speed[high] - speed[low]) * (share - low) /
                                                   (double)(high - low));
    }
    return best;
}

/* One job more: from `before` to `after`, -1 where the jobs so far cannot have exactly g units. */
static void add_job(const struct split_job *job, uint32_t n_units, const double *before,
                    double *after, uint32_t *choice)
{
    for (uint32_t g = 0; g <= n_units; g++)
        after[g] = -1.0;
    for (uint32_t k = 0; k <= job->high && k <= n_units; k++) {
        const double speed = k ? job->asked->tokens_per_s[k] : 0.0;
        if (!split_allowed(job, k) || !split_enough(speed, job->least))
            continue;
        const double worth = job->gain * fmin(speed, job->most);
        for (uint32_t g = k; g <= n_units; g++) {
            if (before[g - k] < 0.0 || before[g - k] + worth <= after[g])
                continue;
            after[g] = before[g - k] + worth;
            choice[g] = k;
        }
    }
}

double split_units(struct split *split)
{
    const uint32_t n_units = split->asked->n_units, row = n_units + 1;
    double *before = split->table, *after = split->table + row;
    for (uint32_t g = 0; g <= n_units; g++)
        before[g] = g == 0 ? 0.0 : -1.0;
    for (uint32_t j = 0; j < split->n; j++) {
        add_job(&split->job[j], n_units, before, after, split->choice + (size_t)j * row);
        double *swap = before;
        before = after;
        after = swap;
    }
    double most = -1.0;
    for (uint32_t g = 0; g <= n_units; g++)
        most = fmax(most, before[g]);
    uint32_t left = 0;
    while (before[left] < 0.0 || !split_enough(before[left], most))
        if (left++ == n_units)
            return -1.0;
    const double sum = before[left];
    for (uint32_t j = split->n; j-- > 0;) {
        split->job[j].units = split->choice[(size_t)j * row + left];
        left -= split->job[j].units;
    }
    return sum;
}
