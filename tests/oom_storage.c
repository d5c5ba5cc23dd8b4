/* SPDX-License-Identifier: MIT
 * Out of memory in the replays of caches, loader queues and runs with failures: the n-th
 * allocation fails, for every n until all succeeds; each failure is reported, all memory given
 * back. */
#include "models/feed.h"
#include "models/loader.h"
#include "models/reliability.h"
#include "tests/failing.h"
#include "tests/tap.h"

static ty_status caches(const struct ty_allocator *allocator)
{
    uint32_t requests[300];
    for (uint32_t i = 0; i < 300; i++)
        requests[i] = i * 7 % 100;
    const struct cache_run run = {cache_policy_of("belady"), 100, 60, requests, 300};
    uint64_t n_hits;
    double hit_ratio;
    const ty_status status = cache_replay(&run, allocator, NULL, &n_hits);
    return status != TY_OK
               ? status
               : cache_shuffled_hit_ratio(cache_policy_of("clock"), 0.5, allocator, &hit_ratio);
}

static ty_status scenario(const struct ty_allocator *allocator)
{
    const struct loader_queue queue = {
        .batch_s = 1, .compute_s = 1, .workers = 2, .queue = 4, .n_steps = 1000};
    const struct reliability job = {10000, 500, 10, 0, 100, 1};
    const struct reliability_trials trials = {10000, 10, 1};
    struct reliability_runs runs;
    double time_s, wait_s;
    ty_status status = caches(allocator);
    if (status == TY_OK)
        status = loader_replay(&queue, allocator, &time_s, &wait_s);
    if (status == TY_OK) {
        const struct feed_input input = {.loader = {.prefetch_batches = 2}};
        const double stage_s[LOADER_N_STAGES] = {1, 2, 0, 1};
        status = feed_serve(&input, stage_s, 3.0, allocator, &wait_s, &time_s);
    }
    if (status == TY_OK)
        status = reliability_simulate(&job, &trials, allocator, &runs);
    return status;
}

int main(void)
{
    struct failing failing = {0};
    const struct ty_allocator allocator = {failing_alloc, failing_release, &failing};
    bool reported = true, given_back = true;
    uint64_t n = 0;
    for (;; n++) {
        failing = (struct failing){.n_left = n};
        const ty_status status = scenario(&allocator);
        reported = reported && (status == TY_ERR_NOMEM) == failing.failed;
        given_back = given_back && failing.held_bytes == 0;
        if (status == TY_OK || n > 1000)
            break;
    }
    ok(n > 5 && n <= 1000, "the scenario allocates %u times", (unsigned)n);
    ok(reported, "every failed allocation is reported as TY_ERR_NOMEM");
    ok(given_back, "all memory is given back each time");
    return tap_done();
}
