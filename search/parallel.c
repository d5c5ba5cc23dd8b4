/* SPDX-License-Identifier: MIT
 * Workers draw chunks of the index range from one atomic counter. */
#include "search/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct loop {
    atomic_uint_fast64_t next;
    uint64_t n, grain;
    parallel_fn *fn;
    void *context;
};

struct worker {
    struct loop *loop;
    uint32_t id;
    pthread_t thread;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct loop *loop = worker->loop;
    for (;;) {
        const uint64_t first = atomic_fetch_add(&loop->next, loop->grain);
        if (first >= loop->n)
            return NULL;
        const uint64_t end = loop->n - first < loop->grain ? loop->n : first + loop->grain;
        for (uint64_t index = first; index < end; index++)
            loop->fn(loop->context, worker->id, index);
    }
}

void parallel_for(uint32_t n_workers, uint64_t n, uint64_t grain, parallel_fn *fn, void *context)
{
    struct loop loop = {.n = n, .grain = grain, .fn = fn, .context = context};
    struct worker workers[PARALLEL_MAX];
    if (n_workers > PARALLEL_MAX)
        n_workers = PARALLEL_MAX;
    uint32_t started = 1;
    for (; started < n_workers; started++) {
        workers[started] = (struct worker){.loop = &loop, .id = started};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    workers[0] = (struct worker){.loop = &loop, .id = 0};
    work(&workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
}

uint32_t parallel_workers(uint32_t n_threads)
{
    const long n = n_threads ? (long)n_threads : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > PARALLEL_MAX ? PARALLEL_MAX : (uint32_t)n;
}
