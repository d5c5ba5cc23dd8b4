/* SPDX-License-Identifier: MIT
 * A short sorted list; an entry moves up by insertion. */
#include "search/board.h"

#include <math.h>

static bool better(const struct board_entry *a, const struct board_entry *b)
{
    return a->value != b->value ? a->value > b->value : a->id < b->id;
}

struct board_shape board_shape(const struct ty_plan *plan)
{
    return (struct board_shape){plan->tp, plan->pp, plan->cp, plan->ep};
}

bool board_same_shape(const struct board_shape *a, const struct board_shape *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->cp == b->cp && a->ep == b->ep;
}

/* Index of the entry that the new one replaces; n: none, it is one more; capacity: it is not
 * listed. */
static uint32_t place_of(const struct board *board, const struct board_entry *entry)
{
    for (uint32_t i = 0; !board->all && i < board->n; i++)
        if (board_same_shape(&board->entry[i].shape, &entry->shape))
            return better(entry, &board->entry[i]) ? i : board->capacity;
    if (board->n < board->capacity)
        return board->n;
    const uint32_t last = board->n - 1;
    return better(entry, &board->entry[last]) ? last : board->capacity;
}

uint32_t board_offer(struct board *board, const struct ty_plan *plan, double value, uint64_t id)
{
    struct board_entry entry = {value, id, board_shape(plan), 0};
    uint32_t place = place_of(board, &entry);
    if (place == board->capacity)
        return BOARD_NOT_LISTED;
    entry.slot = place == board->n ? board->n++ : board->entry[place].slot;
    for (; place > 0 && better(&entry, &board->entry[place - 1]); place--)
        board->entry[place] = board->entry[place - 1];
    board->entry[place] = entry;
    return entry.slot;
}

double board_threshold(const struct board *board)
{
    return board->n < board->capacity ? -(double)INFINITY : board->entry[board->n - 1].value;
}

double board_threshold_of(const struct board *board, const struct board_shape *shape)
{
    for (uint32_t i = 0; !board->all && i < board->n; i++)
        if (board_same_shape(&board->entry[i].shape, shape))
            return board->entry[i].value;
    return board_threshold(board);
}
