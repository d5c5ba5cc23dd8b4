/* SPDX-License-Identifier: MIT
 * An allocator whose n-th allocation fails, and that counts what is held. */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct failing {
    uint64_t n_left; /* allocations until the one that fails */
    bool failed;
    size_t held_bytes;
};

static void *failing_alloc(void *user, size_t bytes)
{
    struct failing *failing = user;
    if (failing->n_left-- == 0) {
        failing->failed = true;
        return NULL;
    }
    failing->held_bytes += bytes;
    return malloc(bytes);
}

static void failing_release(void *user, void *block, size_t bytes)
{
    struct failing *failing = user;
    failing->held_bytes -= bytes;
    free(block);
}

#endif
