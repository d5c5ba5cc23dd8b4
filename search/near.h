/* SPDX-License-Identifier: MIT
 * Legal plans that do not fit: the few that miss least memory, least first; ties: lower id. What is
 * listed does not depend on the order in which plans arrive. */
#ifndef SEARCH_NEAR_H
#define SEARCH_NEAR_H

#include "include/trainyard.h"

struct near_list {
    uint32_t n;
    struct ty_near_miss miss[TY_MAX_NEAREST];
};

void near_offer(struct near_list *list, const struct ty_near_miss *miss);

#endif
