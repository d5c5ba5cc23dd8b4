/* SPDX-License-Identifier: MIT
 * A pool, its jobs and its result for the tests; `begin` starts afresh. */
#ifndef TESTS_POOL_FIXTURE_H
#define TESTS_POOL_FIXTURE_H

#include "include/trainyard_pool.h"
#include "tests/tap.h"

enum { MAX_JOBS = 512 };

static struct ty_pool_job jobs[MAX_JOBS];
static uint64_t n_jobs;
static struct ty_pool pool;
static struct ty_pool_nodes groups[16];
static struct ty_pool_result result;
static struct ty_error error;

/* A fresh pool of equal nodes and no job. */
static void begin(const char *policy, uint32_t n_nodes, uint32_t gpus_per_node)
{
    ty_pool_init(&pool);
    groups[0] = (struct ty_pool_nodes){
        .n_nodes = n_nodes, .gpus_per_node = gpus_per_node, .cpus = NAN, .mem_bytes = NAN};
    pool.groups = groups;
    pool.n_groups = 1;
    pool.policy = policy;
    n_jobs = 0;
}

static struct ty_pool_job *add(double submit_s, double duration_s, uint32_t gpus)
{
    struct ty_pool_job *job = &jobs[n_jobs++];
    ty_pool_job_init(job);
    job->submit_s = submit_s;
    job->duration_s = duration_s;
    job->gpus = gpus;
    return job;
}

static bool run(void)
{
    ty_pool_result_free(&result);
    return ty_pool_run(&pool, jobs, n_jobs, &result, &error) == TY_OK;
}

__attribute__((unused)) static bool ends(const double *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(fabs(result.outcomes[i].end_s - want[i]) <= 1e-9 * want[i])) {
            printf("# end of job %u: got %.9g, want %.9g\n", i, result.outcomes[i].end_s, want[i]);
            return false;
        }
    return n == n_jobs;
}
#define ENDS(...)                                                                                  \
    (run() &&                                                                                      \
     ends((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

#endif
