/* SPDX-License-Identifier: MIT
 *
 * A chain of blocks, each cut from its front. A piece that does not fit in the current block goes
 * to the next one in the chain that can hold it, else to a new block at the end: a second run with
 * the same requests walks the same chain and allocates nothing. */
#include "sim/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_BLOCK_BYTES = 64 * 1024, MIN_ARRAY = 16 };

struct arena_block {
    struct arena_block *next;
    size_t bytes, used; /* of the whole block, header included */
};

static size_t align_up(size_t bytes)
{
    const size_t mask = alignof(max_align_t) - 1;
    return (bytes + mask) & ~mask;
}

static void *default_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void default_release(void *user, void *block, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(block);
}

static struct arena_block *add_block(struct arena *arena, size_t piece_bytes)
{
    size_t header_bytes = align_up(sizeof(struct arena_block));
    size_t bytes = header_bytes + piece_bytes;
    if (bytes < MIN_BLOCK_BYTES)
        bytes = MIN_BLOCK_BYTES;
    struct arena_block *block = arena->allocator.alloc(arena->allocator.user, bytes);
    if (!block)
        return NULL;
    *block = (struct arena_block){.bytes = bytes, .used = header_bytes};
    struct arena_block **end = arena->current ? &arena->current->next : &arena->first;
    while (*end)
        end = &(*end)->next;
    *end = block;
    arena->held_bytes += bytes;
    return block;
}

void arena_init(struct arena *arena, const struct ty_allocator *allocator)
{
    *arena = (struct arena){.allocator = allocator_or_default(allocator)};
}

void *arena_get(struct arena *arena, size_t n, size_t size)
{
    /* Half the address space is more than any request, and leaves room for header and rounding. */
    if (size != 0 && n > SIZE_MAX / 2 / size)
        return NULL;
    size_t bytes = align_up(n * size);
    struct arena_block *block = arena->current;
    while (block && block->bytes - block->used < bytes)
        block = block->next;
    if (!block)
        block = add_block(arena, bytes);
    if (!block)
        return NULL;
    arena->current = block;
    void *piece = (char *)block + block->used;
    block->used += bytes;
    return memset(piece, 0, bytes);
}

void arena_reset(struct arena *arena)
{
    for (struct arena_block *block = arena->first; block; block = block->next)
        block->used = align_up(sizeof *block);
    arena->current = arena->first;
}

void arena_destroy(struct arena *arena)
{
    while (arena->first) {
        struct arena_block *block = arena->first;
        arena->first = block->next;
        arena->allocator.release(arena->allocator.user, block, block->bytes);
    }
    arena->current = NULL;
    arena->held_bytes = 0;
}

struct ty_allocator allocator_or_default(const struct ty_allocator *allocator)
{
    if (allocator)
        return *allocator;
    return (struct ty_allocator){.alloc = default_alloc, .release = default_release};
}

bool array_enlarge(const struct ty_allocator *allocator, void **array, size_t *capacity,
                   size_t need, size_t size)
{
    size_t grown = *capacity < MIN_ARRAY ? MIN_ARRAY : *capacity;
    while (grown < need && grown <= SIZE_MAX / 2)
        grown *= 2;
    if (grown < need || grown > SIZE_MAX / 2 / size)
        return false;
    char *bigger = allocator->alloc(allocator->user, grown * size);
    if (!bigger)
        return false;
    size_t old_bytes = *capacity * size;
    if (old_bytes != 0)
        memcpy(bigger, *array, old_bytes);
    memset(bigger + old_bytes, 0, grown * size - old_bytes);
    array_free(allocator, *array, *capacity, size);
    *array = bigger;
    *capacity = grown;
    return true;
}

void array_free(const struct ty_allocator *allocator, void *array, size_t capacity, size_t size)
{
    if (array)
        allocator->release(allocator->user, array, capacity * size);
}
