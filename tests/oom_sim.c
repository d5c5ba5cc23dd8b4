/* SPDX-License-Identifier: MIT
 * Out of memory: a scenario that uses all of sim/ is repeated with the n-th allocation failing,
 * for every n until it succeeds. Each failure must be reported, and all memory given back. */
#include "sim/engine.h"
#include "sim/queue.h"
#include "tests/failing.h"
#include "tests/tap.h"

/* Layers on 20 devices, each followed by a flow to the next device: more parallelism, links and
 * caps than any array's first capacity. */
static ty_status build(struct engine *engine)
{
    ty_status status = TY_OK;
    uint32_t id;
    for (uint32_t i = 0; i < 20 && status == TY_OK; i++) {
        (void)((status = engine_add_device(engine, &id)) ||
               (status = engine_add_link(engine, 1e9, true, &id)) ||
               (status = engine_add_stream(engine, &id)) ||
               (status = engine_add_stream(engine, &id)));
    }
    for (uint32_t i = 0; i < 20 && status == TY_OK; i++)
        status = engine_add_route(engine, (struct fluid_use[]){{i, 1}, {(i + 1) % 20, 1}}, 2, &id);
    for (uint32_t i = 0; i < 80 && status == TY_OK; i++) {
        struct engine_task task = {.stream = 2 * (i % 20),
                                   .class_ = ENGINE_COMPUTE,
                                   .work = 1 + i % 7,
                                   .cap_work_per_s = 1,
                                   .route = ENGINE_NONE,
                                   .device = {i % 20, ENGINE_NONE}};
        struct engine_task flow = {.stream = 2 * (i % 20) + 1,
                                   .class_ = ENGINE_COMM,
                                   .work = 1e9,
                                   .cap_work_per_s = 5e8,
                                   .route = i % 20,
                                   .device = {i % 20, (i + 1) % 20},
                                   .slow_compute = 0.1,
                                   .slow_self = 0.1};
        uint32_t layer;
        (void)((status = engine_add_task(engine, &task, &layer)) ||
               (status = engine_add_task(engine, &flow, &id)) ||
               (status = engine_add_edge(engine, layer, id)));
    }
    return status;
}

static ty_status simulate(const struct ty_allocator *allocator, double *makespan_s)
{
    struct engine *engine;
    struct ty_error error;
    ty_status status = engine_create(allocator, &engine);
    if (status != TY_OK)
        return status;
    status = build(engine);
    if (status == TY_OK)
        status = engine_run(engine, NULL, &error);
    *makespan_s = engine_makespan_s(engine);
    engine_destroy(engine);
    return status;
}

static ty_status use_arena(const struct ty_allocator *allocator)
{
    struct arena arena;
    arena_init(&arena, allocator);
    bool good = true;
    for (size_t n = 0; good && n < 40; n++)
        good = arena_get(&arena, 1000, 8) != NULL;
    arena_destroy(&arena);
    return good ? TY_OK : TY_ERR_NOMEM;
}

static ty_status use_queue(const struct ty_allocator *allocator)
{
    struct queue *queue;
    if (queue_create(allocator, &queue) != TY_OK)
        return TY_ERR_NOMEM;
    bool good = true;
    uint32_t n_set = 0;
    for (uint32_t id = 0; good && id < 100; id++) {
        good = queue_set(queue, 7 * id, 100 - id, 0);
        n_set += good;
    }
    double before_s = 0, time_s; /* what is in the queue after a failure is still in order */
    for (; !queue_empty(queue); n_set--, before_s = time_s) {
        queue_pop(queue, &time_s);
        if (time_s < before_s)
            abort();
    }
    queue_destroy(queue);
    return good && n_set == 0 ? TY_OK : TY_ERR_NOMEM;
}

static ty_status scenario(const struct ty_allocator *allocator, double *makespan_s)
{
    ty_status status = use_arena(allocator);
    if (status == TY_OK)
        status = use_queue(allocator);
    if (status == TY_OK)
        status = simulate(allocator, makespan_s);
    return status;
}

int main(void)
{
    struct failing failing = {0};
    struct ty_allocator allocator = {failing_alloc, failing_release, &failing};
    bool reported = true, given_back = true;
    double makespan_s = 0;
    uint64_t n = 0;
    for (;; n++) {
        failing = (struct failing){.n_left = n};
        ty_status status = scenario(&allocator, &makespan_s);
        reported = reported && (status == TY_ERR_NOMEM) == failing.failed;
        given_back = given_back && failing.held_bytes == 0;
        if (status == TY_OK || n > 10000)
            break;
    }
    ok(n > 50 && n < 10000, "%d allocations, each of them failed once", (int)n);
    ok(reported, "every failure is reported");
    ok(given_back, "all memory is given back");
    double want_s = 0;
    ok(simulate(NULL, &want_s) == TY_OK && makespan_s == want_s, "and then the result is right");
    return tap_done();
}
