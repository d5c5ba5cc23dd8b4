/* SPDX-License-Identifier: MIT
 * An unordered array: sets are small, of one plan or so for each GPU count. */
#include "search/pareto.h"

#include <stdlib.h>
#include <string.h>

static bool at_least(const struct pareto *set, const double *a, const double *b)
{
    for (uint32_t i = 0; i < set->n_objectives; i++)
        if (!(a[i] >= b[i]))
            return false;
    return true;
}

bool pareto_dominates(const struct pareto *set, const double *worth)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (at_least(set, set->entry[i].worth, worth) && !at_least(set, worth, set->entry[i].worth))
            return true;
    return false;
}

/* Equal worths: the lower id takes the place. returns whether such a member is there. */
static bool share_place(struct pareto *set, const double *worth, const struct ty_score *score)
{
    for (uint32_t i = 0; i < set->n; i++) {
        struct pareto_entry *entry = &set->entry[i];
        if (!at_least(set, entry->worth, worth) || !at_least(set, worth, entry->worth))
            continue;
        if (score->plan_id < entry->score.plan_id)
            entry->score = *score;
        return true;
    }
    return false;
}

bool pareto_offer(struct pareto *set, const double *worth, const struct ty_score *score)
{
    if (pareto_dominates(set, worth) || share_place(set, worth, score))
        return true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (!at_least(set, worth, set->entry[i].worth))
            set->entry[kept++] = set->entry[i];
    set->n = kept;
    if (set->n == set->capacity) {
        const uint32_t capacity = set->capacity ? 2 * set->capacity : 64;
        struct pareto_entry *entry = realloc(set->entry, capacity * sizeof *entry);
        if (!entry)
            return false;
        set->entry = entry;
        set->capacity = capacity;
    }
    struct pareto_entry *entry = &set->entry[set->n++];
    memcpy(entry->worth, worth, sizeof entry->worth);
    entry->score = *score;
    return true;
}

static int by_first(const void *a, const void *b)
{
    const struct pareto_entry *left = a, *right = b;
    if (left->worth[0] != right->worth[0])
        return left->worth[0] < right->worth[0] ? 1 : -1;
    return (left->score.plan_id > right->score.plan_id) -
           (left->score.plan_id < right->score.plan_id);
}

void pareto_sort(struct pareto *set)
{
    if (set->n > 1)
        qsort(set->entry, set->n, sizeof *set->entry, by_first);
}

void pareto_free(struct pareto *set)
{
    free(set->entry);
    *set = (struct pareto){0};
}
