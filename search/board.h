/* SPDX-License-Identifier: MIT
 *
 * The best plans of one list: larger value first, ties by lower plan id. Unless `all`, only
 * the best plan of each (tp, pp, cp, ep) is listed: its neighbours in micro-batch or recompute say
 * little. What is listed does not depend on the order in which plans arrive.
 */
#ifndef SEARCH_BOARD_H
#define SEARCH_BOARD_H

#include "include/trainyard.h"

struct board_entry {
    double value;
    uint64_t id;
    uint32_t tp, pp, cp, ep;
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
/* Value below which a plan cannot be listed any more; -INFINITY while there is room. */
double board_threshold(const struct board *board);

#endif
