/* SPDX-License-Identifier: MIT
 * Any bytes as a trace of jobs. What is read must be a valid input of a pool, and its rows must add
 * up. */
#include "include/trainyard_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void replay(const struct ty_trace *trace)
{
    const struct ty_pool_nodes nodes = {
        .n_nodes = 4, .gpus_per_node = 8, .cpus = NAN, .mem_bytes = NAN};
    struct ty_pool pool;
    struct ty_pool_result result;
    ty_pool_init(&pool);
    pool.groups = &nodes;
    pool.n_groups = 1;
    pool.queues = trace->queues;
    pool.n_queues = trace->n_queues;
    require(ty_pool_run(&pool, trace->jobs, trace->n_jobs, &result, NULL) == TY_OK);
    require(result.metrics.n_done + result.metrics.n_refused == trace->n_jobs);
    ty_pool_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[] = "/tmp/trainyard-fuzz-XXXXXX";
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 0;
    const bool written = write(descriptor, data, bytes) == (ssize_t)bytes;
    close(descriptor);
    struct ty_trace trace;
    struct ty_error error = {0};
    if (written && ty_trace_read(path, NULL, NULL, &trace, &error) == TY_OK) {
        require(trace.n_jobs > 0 && trace.n_queues > 0);
        replay(&trace);
        ty_trace_free(&trace);
    } else {
        require(!written || *error.text);
    }
    unlink(path);
    return 0;
}
