/* SPDX-License-Identifier: MIT
 * Out of memory: a replay and a verdict under each policy are repeated with the n-th allocation
 * failing, for every n until they succeed. Each failure must be reported, and all memory given
 * back. */
#include "include/trainyard_pool.h"
#include "tests/failing.h"
#include "tests/tap.h"

enum { N_JOBS = 200 };

/* Gangs and parts of GPUs over two node groups; three queues. */
static void fill(struct ty_pool_job *jobs)
{
    for (uint32_t i = 0; i < N_JOBS; i++) {
        ty_pool_job_init(&jobs[i]);
        jobs[i].submit_s = 3 * i;
        jobs[i].duration_s = 1 + 37 * i % 101;
        jobs[i].gpus = 1u << i % 5;
        jobs[i].share = jobs[i].gpus == 1 ? 0.4 : 1.0;
        jobs[i].priority = (int32_t)(i % 3);
        jobs[i].queue = i % 3;
    }
}

int main(void)
{
    static struct ty_pool_job jobs[N_JOBS];
    const struct ty_pool_nodes groups[] = {
        {.n_nodes = 3, .gpus_per_node = 4, .cpus = NAN, .mem_bytes = NAN},
        {.n_nodes = 1, .gpus_per_node = 8, .cpus = NAN, .mem_bytes = NAN}};
    fill(jobs);
    const char *policy;
    for (size_t i = 0; (policy = ty_pool_policy(i, NULL)); i++) {
        bool reported = true, returned = true, failed = true;
        for (uint64_t n = 0; failed; n++) {
            struct failing failing = {.n_left = n};
            struct ty_allocator allocator = {failing_alloc, failing_release, &failing};
            struct ty_pool pool;
            ty_pool_init(&pool);
            pool.groups = groups;
            pool.n_groups = 2;
            pool.policy = policy;
            pool.node_mtbf_s = 500;
            pool.allocator = &allocator;
            struct ty_pool_result result = {0};
            struct ty_pool_verdict verdict;
            struct ty_error error = {0};
            ty_status status = ty_pool_run(&pool, jobs, N_JOBS, &result, &error);
            if (status == TY_OK) {
                ty_pool_result_free(&result);
                status = ty_pool_explain(&pool, jobs, N_JOBS, 100, NAN, &verdict, &error);
            }
            failed = failing.failed;
            reported = reported && status == (failed ? TY_ERR_NOMEM : TY_OK);
            returned = returned && failing.held_bytes == 0;
        }
        ok(reported, "%s: every failed allocation is reported", policy);
        ok(returned, "%s: all memory is given back", policy);
    }
    return tap_done();
}
