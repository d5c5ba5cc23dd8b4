/* SPDX-License-Identifier: MIT
 * Arena, growing arrays and error texts: alignment, zeroing, overflow, reuse, truncation. */
#include "sim/arena.h"
#include "sim/error.h"
#include "tests/tap.h"

#include <stdalign.h>

struct counter {
    size_t n_allocs, held_bytes;
};

static void *counted_alloc(void *user, size_t bytes)
{
    struct counter *counter = user;
    counter->n_allocs++;
    counter->held_bytes += bytes;
    return malloc(bytes);
}

static void counted_release(void *user, void *block, size_t bytes)
{
    struct counter *counter = user;
    counter->held_bytes -= bytes;
    free(block);
}

/* Takes pieces of growing size, checks and dirties them. */
static bool take_pieces(struct arena *arena)
{
    bool good = true;
    for (size_t n = 0; n < 600; n++) {
        unsigned char *piece = arena_get(arena, n, 7);
        good = good && piece && (uintptr_t)piece % alignof(max_align_t) == 0;
        for (size_t i = 0; good && i < 7 * n; i++)
            good = piece[i] == 0;
        if (good)
            memset(piece, 0xa5, 7 * n);
    }
    return good;
}

static void test_arena(void)
{
    struct counter counter = {0};
    struct ty_allocator allocator = {counted_alloc, counted_release, &counter};
    struct arena arena;
    arena_init(&arena, &allocator);
    ok(counter.n_allocs == 0, "arena_init allocates nothing");
    ok(take_pieces(&arena), "pieces are zeroed and aligned");
    ok(arena_get(&arena, 1, 1 << 20) != NULL, "a piece larger than a block");
    ok(arena.held_bytes == counter.held_bytes, "held_bytes is what the allocator gave");
    size_t n_allocs = counter.n_allocs;
    arena_reset(&arena);
    ok(take_pieces(&arena) && arena_get(&arena, 1, 1 << 20), "the same again after reset");
    ok(counter.n_allocs == n_allocs, "a second run of the same size allocates nothing");
    ok(arena_get(&arena, 0, 8) != NULL, "nothing is a valid piece");
    ok(!arena_get(&arena, SIZE_MAX / 4, 8) && !arena_get(&arena, SIZE_MAX, 1) &&
           !arena_get(&arena, 2, SIZE_MAX),
       "n * size that overflows is refused");
    arena_destroy(&arena);
    ok(counter.held_bytes == 0, "destroy gives everything back");
    ok(arena_get(&arena, 3, 3) != NULL, "a destroyed arena may be used again");
    arena_destroy(&arena);
}

static void test_array(void)
{
    struct counter counter = {0};
    struct ty_allocator allocator = {counted_alloc, counted_release, &counter};
    void *array = NULL;
    size_t capacity = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < 1000; i++) {
        good = array_grow(&allocator, &array, &capacity, i + 1, sizeof(uint32_t));
        good = good && ((uint32_t *)array)[i] == 0;
        ((uint32_t *)array)[i] = i + 1;
    }
    for (uint32_t i = 0; good && i < 1000; i++)
        good = ((uint32_t *)array)[i] == i + 1;
    ok(good, "array_grow keeps the old elements and zeroes the new ones");
    ok(counter.n_allocs <= 8, "array_grow doubles");
    void *before = array;
    ok(!array_grow(&allocator, &array, &capacity, SIZE_MAX / 4, sizeof(uint64_t)) &&
           array == before,
       "an overflowing need leaves the array unchanged");
    array_free(&allocator, array, capacity, sizeof(uint32_t));
    ok(counter.held_bytes == 0, "array_free tells the size it was given");
}

static void test_error(void)
{
    struct ty_error error;
    ok(error_set(&error, TY_ERR_RANGE, "plan: tp", "%d is not %s", 3, "a divisor") == TY_ERR_RANGE,
       "error_set returns the code");
    same_text(error.where, "plan: tp", "error.where");
    same_text(error.text, "3 is not a divisor", "error.text");
    ok(error_set(NULL, TY_ERR_IO, "x", "y") == TY_ERR_IO, "a NULL error is allowed");
    error_set(&error, TY_ERR_INPUT, NULL, "%0700d", 1);
    ok(strlen(error.text) == sizeof error.text - 1, "a long text is cut and terminated");

    char text[8];
    text_format(text, sizeof text, "%s", "abc");
    text_append(text, sizeof text, "%s", "defghijk");
    same_text(text, "abcdefg", "text_append cuts at the size");
    text_append(text, sizeof text, "more");
    same_text(text, "abcdefg", "text_append to a full text");
    same_text(ty_status_text(TY_ERR_INFEASIBLE), "no feasible plan", "ty_status_text");
    same_text(ty_status_text((ty_status)77), "unknown status", "ty_status_text of a stranger");
    ok(strchr(ty_version(), '.') != NULL, "ty_version is a version");
}

int main(void)
{
    test_arena();
    test_array();
    test_error();
    return tap_done();
}
