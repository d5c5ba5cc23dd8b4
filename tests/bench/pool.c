/* SPDX-License-Identifier: MIT
 * Events per second of the pool: the 15,264 jobs of the Philly sample on 500 GPUs under the
 * policies that replay whole traces, or as many made-up jobs where the sample is not there.
 * Bar: each replay below 1 s. Prints TSV. */
#include "calibrate/csv.h"
#include "include/trainyard_pool.h"
#include "sim/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_JOBS = 15264, N_GPUS = 500 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool load_sample(struct ty_pool_job *jobs)
{
    const char *folder = getenv("TRAINYARD_SHARED");
    char path[1024];
    snprintf(path, sizeof path, "%s/data/traces/philly-vc-sample.csv",
             folder ? folder : "../shared");
    struct csv csv;
    if (csv_read(path, &csv, NULL) != TY_OK)
        return false;
    const bool complete = csv.n_rows == N_JOBS;
    const int submit = csv_column(&csv, "submit_s"), gpus = csv_column(&csv, "gpus"),
              duration = csv_column(&csv, "duration_s");
    for (uint64_t i = 0; complete && i < N_JOBS; i++) {
        jobs[i].submit_s = strtod(csv_cell(&csv, i, submit), NULL);
        jobs[i].duration_s = strtod(csv_cell(&csv, i, duration), NULL);
        jobs[i].gpus = (uint32_t)strtoul(csv_cell(&csv, i, gpus), NULL, 10);
    }
    csv_free(&csv);
    return complete;
}

/* Sizes and load like those of the sample (its README): 2 GPUs and 133,241 s on average. */
static void make_up(struct ty_pool_job *jobs)
{
    struct random_stream stream;
    random_init(&stream, 1, 0);
    double time_s = 0.0;
    for (uint32_t i = 0; i < N_JOBS; i++) {
        time_s += 700.0 * random_exponential(&stream);
        jobs[i].submit_s = floor(time_s);
        jobs[i].duration_s = ceil(133241.0 * random_exponential(&stream));
        jobs[i].gpus = 1u << (random_below(&stream, 10) < 7 ? 0 : random_below(&stream, 4));
    }
}

int main(void)
{
    struct ty_pool_job *jobs = calloc(N_JOBS, sizeof *jobs);
    if (!jobs)
        return 1;
    for (uint32_t i = 0; i < N_JOBS; i++)
        ty_pool_job_init(&jobs[i]);
    if (!load_sample(jobs))
        make_up(jobs);
    const struct ty_pool_nodes nodes = {
        .n_nodes = 1, .gpus_per_node = N_GPUS, .cpus = NAN, .mem_bytes = NAN};
    struct ty_pool pool;
    ty_pool_init(&pool);
    pool.groups = &nodes;
    pool.n_groups = 1;
    bool slow = false;
    for (size_t i = 0; ty_pool_policy(i, NULL); i++) {
        struct ty_pool_result result;
        pool.policy = ty_pool_policy(i, NULL);
        const double start_s = now_s();
        if (ty_pool_run(&pool, jobs, N_JOBS, &result, NULL) != TY_OK)
            return 1;
        const double time_s = now_s() - start_s;
        printf("pool.%s.events_per_s\t%.0f\tseconds\t%.3f\tbar\t1\n", pool.policy,
               (double)result.metrics.n_events / time_s, time_s);
        ty_pool_result_free(&result);
        slow |= time_s >= 1.0;
    }
    free(jobs);
    return slow;
}
