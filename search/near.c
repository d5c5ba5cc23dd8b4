/* SPDX-License-Identifier: MIT
 * A short sorted list; a miss moves up by insertion. */
#include "search/near.h"

static bool nearer(const struct ty_near_miss *a, const struct ty_near_miss *b)
{
    return a->missing_bytes != b->missing_bytes ? a->missing_bytes < b->missing_bytes
                                                : a->plan_id < b->plan_id;
}

void near_offer(struct near_list *list, const struct ty_near_miss *miss)
{
    uint32_t place = list->n;
    if (list->n == TY_MAX_NEAREST && !nearer(miss, &list->miss[--place]))
        return;
    if (list->n < TY_MAX_NEAREST)
        list->n++;
    for (; place > 0 && nearer(miss, &list->miss[place - 1]); place--)
        list->miss[place] = list->miss[place - 1];
    list->miss[place] = *miss;
}
