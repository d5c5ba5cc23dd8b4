/* SPDX-License-Identifier: MIT
 * A loop over independent indices on a few threads. */
#ifndef SEARCH_PARALLEL_H
#define SEARCH_PARALLEL_H

#include <stdint.h>

/* worker: 0 .. n_workers - 1, each on one thread at a time, for per-worker scratch. */
typedef void parallel_fn(void *context, uint32_t worker, uint64_t index);

/* Calls fn for every index 0 .. n - 1, in chunks of `grain`; the caller is worker 0. Which worker
 * takes which index is not determined: fn must write only to places of its index or its worker.
 * Threads that cannot be started are done without. */
void parallel_for(uint32_t n_workers, uint64_t n, uint64_t grain, parallel_fn *fn, void *context);

/* Threads for a caller's n_threads: 0 is the number of processors; at most PARALLEL_MAX. */
#define PARALLEL_MAX 256
uint32_t parallel_workers(uint32_t n_threads);

#endif
