/* SPDX-License-Identifier: MIT
 *
 * Plans that no other is at least as good as in every objective and better in one. Of plans with
 * equal worths the lowest id stays. The set does not depend on the order in which plans arrive.
 */
#ifndef SEARCH_PARETO_H
#define SEARCH_PARETO_H

#include "include/trainyard_cost.h"

struct pareto_entry {
    double worth[TY_MAX_OBJECTIVES]; /* larger is better */
    struct ty_score score;
};

struct pareto {
    uint32_t n_objectives, n, capacity;
    struct pareto_entry *entry;
};

/* False: out of memory. */
bool pareto_offer(struct pareto *set, const double *worth, const struct ty_score *score);
/* True when a member is as good everywhere and better somewhere: no plan within these worths can
 * belong to the set. */
bool pareto_dominates(const struct pareto *set, const double *worth);
/* By the first objective, best first; ties: lower id. */
void pareto_sort(struct pareto *set);
void pareto_free(struct pareto *set);

#endif
