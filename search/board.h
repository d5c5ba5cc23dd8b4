/* SPDX-License-Identifier: MIT
 *
 * The best plans of one list: larger value first, ties by lower plan id. Unless `all`, only
 * the best plan of each (tp, pp, cp, ep) is listed: its neighbours in micro-batch or recompute say
 * little. What is listed does not depend on the order in which plans arrive.
 */
#ifndef SEARCH_BOARD_H
#define SEARCH_BOARD_H

#include "include/trainyard.h"

struct board_shape {
    uint32_t tp, pp, cp, ep;
};

struct board_entry {
    double value;
    uint64_t id;
    struct board_shape shape;
    uint32_t slot; /* where the caller keeps the rest of it */
};

struct board {
    uint32_t n, capacity;
    bool all;
    struct board_entry *entry; /* [capacity], best first; the caller's */
};

#define BOARD_NOT_LISTED UINT32_MAX
/* returns the slot of the plan, 0 .. capacity - 1, that of the plan it replaces where it replaces
 * one; or BOARD_NOT_LISTED. */
uint32_t board_offer(struct board *board, const struct ty_plan *plan, double value, uint64_t id);
/* Value below which no plan can be listed any more; -INFINITY while there is room. */
double board_threshold(const struct board *board);
/* The same of a plan of this shape, which must not be worse than the one that is listed. */
double board_threshold_of(const struct board *board, const struct board_shape *shape);

struct board_shape board_shape(const struct ty_plan *plan);
bool board_same_shape(const struct board_shape *a, const struct board_shape *b);

#endif
