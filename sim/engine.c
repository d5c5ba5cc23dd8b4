/* SPDX-License-Identifier: MIT
 *
 * The engine's graph: devices, streams, links, tasks and edges as they are added, and the answers
 * after a run. All in flat arrays that grow by doubling and survive engine_reset. */
#include "sim/engine_state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static void free_arrays(struct engine *engine)
{
#define FREE(name)                                                                                 \
    array_free(&engine->allocator, engine->name, engine->name##_capacity, sizeof *engine->name)
    FREE(forms);
    FREE(nodes);
    FREE(edges);
    FREE(streams);
    FREE(devices);
    FREE(activities);
    FREE(free);
    FREE(stale);
    FREE(ready);
    FREE(rounds);
#undef FREE
}

static bool amount(double value)
{
    return value >= 0 && value <= DBL_MAX;
}

static bool valid_device(const struct engine *engine, uint32_t device)
{
    return device == ENGINE_NONE || device < engine->n_devices;
}

static bool valid(const struct engine *engine, const struct engine_task *task)
{
    bool has_route = task->route != ENGINE_NONE;
    return task->stream < engine->n_streams && (unsigned)task->class_ <= ENGINE_HOST &&
           amount(task->latency_s) && amount(task->work) && amount(task->weight) &&
           task->cap_work_per_s > 0 && (!has_route || task->route < engine->n_routes) &&
           (has_route || isfinite(task->cap_work_per_s) || task->work == 0) &&
           (task->n_rounds <= 1 || task->latency_s + task->work > 0) &&
           valid_device(engine, task->device[0]) && valid_device(engine, task->device[1]) &&
           task->slow_compute >= 0 && task->slow_compute < 1 && task->slow_self >= 0 &&
           task->slow_self < 1;
}

ty_status engine_create(const struct ty_allocator *allocator, struct engine **out)
{
    struct ty_allocator source = allocator_or_default(allocator);
    struct engine *engine = source.alloc(source.user, sizeof *engine);
    if (!engine)
        return TY_ERR_NOMEM;
    *engine = (struct engine){.allocator = source};
    if (fluid_create(&source, &engine->fluid) || queue_create(&source, &engine->queue)) {
        engine_destroy(engine);
        return TY_ERR_NOMEM;
    }
    *out = engine;
    return TY_OK;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    fluid_destroy(engine->fluid);
    queue_destroy(engine->queue);
    free_arrays(engine);
    struct ty_allocator allocator = engine->allocator;
    allocator.release(allocator.user, engine, sizeof *engine);
}

void engine_reset(struct engine *engine)
{
    fluid_clear(engine->fluid);
    engine->n_forms = 0;
    engine->n_nodes = engine->n_edges = engine->n_streams = engine->n_devices = 0;
    engine->n_routes = 0;
    engine->has_rounds = false;
    engine->n_done = 0;
    engine->n_events = 0;
    engine->makespan_s = 0;
    engine->last = 0;
}

ty_status engine_add_device(struct engine *engine, uint32_t *device)
{
    if (!ENGINE_GROW(engine, devices, (size_t)engine->n_devices + 1))
        return TY_ERR_NOMEM;
    *device = engine->n_devices++;
    engine->devices[*device] = (struct device){.first = {ENGINE_NONE, ENGINE_NONE}};
    return TY_OK;
}

ty_status engine_add_stream(struct engine *engine, uint32_t *stream)
{
    if (!ENGINE_GROW(engine, streams, (size_t)engine->n_streams + 1))
        return TY_ERR_NOMEM;
    *stream = engine->n_streams++;
    engine->streams[*stream] = ENGINE_NONE;
    return TY_OK;
}

ty_status engine_add_link(struct engine *engine, double capacity_bytes_per_s, bool shared,
                          uint32_t *link)
{
    return fluid_add_link(engine->fluid, capacity_bytes_per_s, shared, link);
}

ty_status engine_add_route(struct engine *engine, const struct fluid_use *uses, uint32_t n,
                           uint32_t *route)
{
    ty_status status = fluid_add_route(engine->fluid, uses, n, route);
    if (status == TY_OK)
        engine->n_routes = *route + 1;
    return status;
}

ty_status engine_add_form(struct engine *engine, const struct engine_task *task, uint32_t *form)
{
    if (!valid(engine, task))
        return TY_ERR_RANGE;
    const size_t need = (size_t)engine->n_forms + 1;
    if (need >= ENGINE_NONE || !ENGINE_GROW(engine, forms, need))
        return TY_ERR_NOMEM;
    *form = engine->n_forms++;
    struct form *fresh = &engine->forms[*form];
    *fresh = (struct form){*task, task->class_ == ENGINE_COMM &&
                                      (task->slow_compute > 0 || task->slow_self > 0)};
    if (fresh->task.weight == 0)
        fresh->task.weight = 1;
    if (task->n_rounds > 1)
        engine->has_rounds = true;
    if (fresh->task.device[0] == fresh->task.device[1])
        fresh->task.device[1] = ENGINE_NONE;
    return TY_OK;
}

ty_status engine_add_like(struct engine *engine, uint32_t form, uint32_t *id)
{
    const size_t need = (size_t)engine->n_nodes + 1;
    if (form >= engine->n_forms)
        return TY_ERR_RANGE;
    if (need >= ENGINE_NONE || !ENGINE_GROW(engine, nodes, need))
        return TY_ERR_NOMEM;
    const struct form *what = &engine->forms[form];
    const uint32_t mine = engine->n_nodes++;
    uint32_t *last = &engine->streams[what->task.stream];
    engine->nodes[mine] = (struct node){.start_s = (double)NAN,
                                        .end_s = (double)NAN,
                                        .form = form,
                                        .n_before = *last != ENGINE_NONE,
                                        .stream_previous = *last,
                                        .stream_next = ENGINE_NONE,
                                        .after = ENGINE_NONE,
                                        .first_edge = ENGINE_NONE,
                                        .binding = ENGINE_NONE};
    if (*last != ENGINE_NONE)
        engine->nodes[*last].stream_next = mine;
    *last = *id = mine;
    for (int i = 0; what->contends && i < 2; i++)
        if (what->task.device[i] != ENGINE_NONE)
            engine->devices[what->task.device[i]].contended = true;
    return TY_OK;
}

ty_status engine_add_task(struct engine *engine, const struct engine_task *task, uint32_t *id)
{
    uint32_t form;
    const ty_status status = engine_add_form(engine, task, &form);
    return status == TY_OK ? engine_add_like(engine, form, id) : status;
}

ty_status engine_add_edge(struct engine *engine, uint32_t before, uint32_t after)
{
    if (before >= engine->n_nodes || after >= engine->n_nodes)
        return TY_ERR_RANGE;
    struct node *node = &engine->nodes[before];
    const size_t need = (size_t)engine->n_edges + 1;
    if (node->after != ENGINE_NONE) {
        if (need >= ENGINE_NONE || !ENGINE_GROW(engine, edges, need))
            return TY_ERR_NOMEM;
        engine->edges[engine->n_edges] = (struct edge){node->after, node->first_edge};
        node->first_edge = engine->n_edges++;
    }
    node->after = after;
    engine->nodes[after].n_before++;
    return TY_OK;
}

ty_status engine_reserve(struct engine *engine, uint64_t n_tasks, uint64_t n_edges,
                         uint64_t n_streams)
{
    if (n_tasks >= ENGINE_NONE || n_edges >= ENGINE_NONE || n_streams >= ENGINE_NONE)
        return TY_ERR_LIMIT;
    return ENGINE_GROW(engine, nodes, (size_t)n_tasks) &&
                   ENGINE_GROW(engine, edges, (size_t)n_edges) &&
                   ENGINE_GROW(engine, streams, (size_t)n_streams)
               ? TY_OK
               : TY_ERR_NOMEM;
}

void engine_set_release_s(struct engine *engine, uint32_t task, double time_s)
{
    engine->nodes[task].release_s = time_s;
}

uint32_t engine_n_tasks(const struct engine *engine)
{
    return engine->n_nodes;
}

uint64_t engine_n_events(const struct engine *engine)
{
    return engine->n_events;
}

double engine_makespan_s(const struct engine *engine)
{
    return engine->makespan_s;
}

double engine_now_s(const struct engine *engine)
{
    return engine->now_s;
}

double engine_start_s(const struct engine *engine, uint32_t task)
{
    return engine->nodes[task].start_s;
}

double engine_end_s(const struct engine *engine, uint32_t task)
{
    return engine->nodes[task].end_s;
}

uint32_t engine_last(const struct engine *engine)
{
    return engine->n_nodes ? engine->last : ENGINE_NONE;
}

uint32_t engine_binding(const struct engine *engine, uint32_t task)
{
    return engine->nodes[task].binding;
}

const struct engine_task *engine_task_of(const struct engine *engine, uint32_t task)
{
    return &engine->forms[engine->nodes[task].form].task;
}

void engine_edges(const struct engine *engine, engine_edge_fn *fn, void *user)
{
    for (uint32_t id = 0; id < engine->n_nodes; id++) {
        const struct node *node = &engine->nodes[id];
        if (node->after != ENGINE_NONE)
            fn(user, id, node->after);
        for (uint32_t i = node->first_edge; i != ENGINE_NONE; i = engine->edges[i].next)
            fn(user, id, engine->edges[i].after);
    }
}

uint32_t engine_form_of(const struct engine *engine, uint32_t task)
{
    return engine->nodes[task].form;
}

uint32_t engine_stream_previous(const struct engine *engine, uint32_t task)
{
    return engine->nodes[task].stream_previous;
}
