/* SPDX-License-Identifier: MIT
 *
 * One arena per simulation: blocks from the caller's allocator, handed out in pieces, given back
 * all at once. `arena_reset` keeps the blocks, so a second run of the same size allocates nothing.
 */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include "include/trainyard.h"

struct arena_block;
struct arena {
    struct ty_allocator allocator;
    struct arena_block *first, *current;
    size_t held_bytes; /* from the allocator, now */
};

/* allocator NULL: malloc and free. Allocates nothing. */
void arena_init(struct arena *arena, const struct ty_allocator *allocator);
/* Zeroed memory for n objects of `size` bytes, aligned for any type; NULL when out of memory or
 * when n * size overflows. n * size = 0 gives a valid pointer. */
void *arena_get(struct arena *arena, size_t n, size_t size);
void arena_reset(struct arena *arena);   /* forget the pieces, keep the blocks */
void arena_destroy(struct arena *arena); /* give the blocks back; the arena may be reused */

/* The allocator itself, for objects with a life of their own (growing arrays). */
struct ty_allocator allocator_or_default(const struct ty_allocator *allocator);
/* array_grow when there is not yet room. */
bool array_enlarge(const struct ty_allocator *allocator, void **array, size_t *capacity,
                   size_t need, size_t size);
/* Grows *array (elements of `size` bytes, *capacity of them) to hold at least `need`, by
 * doubling; new memory is zeroed. returns false when out of memory (array unchanged). */
static inline bool array_grow(const struct ty_allocator *allocator, void **array, size_t *capacity,
                              size_t need, size_t size)
{
    return need <= *capacity || array_enlarge(allocator, array, capacity, need, size);
}
void array_free(const struct ty_allocator *allocator, void *array, size_t capacity, size_t size);

#endif
