/* SPDX-License-Identifier: MIT
 *
 * A schedule with fixed times and free messages, replayed on the engine: what the formulas of
 * handbook 2.5 promise, from the order lists themselves.
 */
#include "models/pipeline.h"
#include "sim/arena.h"

/* Tasks by [place][micro-batch][direction]: whose message arrives. */
struct replay {
    const struct pipeline *pipeline;
    const struct pipeline_times *times;
    struct engine *engine;
    struct pass *order;
    uint32_t *first, *end; /* the task that waits for a message, the one after which it leaves */
    uint32_t stream;
    ty_status status;
};

static size_t place_of(const struct replay *r, uint32_t stage, const struct pass *pass)
{
    const size_t place = (size_t)pass->chunk * r->pipeline->n_stages + stage;
    return (place * r->pipeline->n_micro + pass->micro) * 2 + (pass->kind != PASS_FORWARD);
}

static uint32_t add_task(struct replay *r, double stage_s)
{
    const struct engine_task task = {.stream = r->stream,
                                     .class_ = ENGINE_COMPUTE,
                                     .work = stage_s / r->pipeline->n_chunks,
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {ENGINE_NONE, ENGINE_NONE}};
    uint32_t id = ENGINE_NONE;
    if (r->status == TY_OK)
        r->status = engine_add_task(r->engine, &task, &id);
    return id;
}

/* A chunk of two-way schedules is a full stage. */
static double pass_s(const struct replay *r, enum pass_kind kind)
{
    const struct pipeline_times *t = r->times;
    const double time_s[N_PASS_KINDS] = {t->forward_s, t->dgrad_s + t->wgrad_s, t->dgrad_s,
                                         t->wgrad_s};
    return time_s[kind] * (r->pipeline->shape == PIPELINE_TWO_WAYS ? 2.0 : 1.0);
}

static void add_stage(struct replay *r, uint32_t stage, uint32_t *peak_chunks)
{
    const uint32_t n = pipeline_order(r->pipeline, stage, r->order);
    const double two = r->pipeline->shape == PIPELINE_TWO_WAYS ? 2.0 : 1.0;
    uint32_t alive = 0, peak = 0;
    r->status = engine_add_stream(r->engine, &r->stream);
    for (uint32_t i = 0; i < n; i++) {
        const struct pass *pass = &r->order[i];
        const bool frees = pass->kind == PASS_BACKWARD || pass->kind == PASS_WGRAD;
        alive += pass->kind == PASS_FORWARD ? 1 : 0;
        peak = alive > peak ? alive : peak;
        alive -= frees ? 1 : 0;
        const uint32_t id =
            add_task(r, pass->joined ? two * r->times->joined_s : pass_s(r, pass->kind));
        if (pass->kind == PASS_WGRAD)
            continue;
        r->first[place_of(r, stage, pass)] = r->end[place_of(r, stage, pass)] = id;
        if (!pass->joined)
            continue;
        pass = &r->order[++i];
        r->first[place_of(r, stage, pass)] = r->end[place_of(r, stage, pass)] = id;
        alive--;
    }
    if (peak_chunks)
        *peak_chunks = peak;
}

static void add_messages(struct replay *r, uint32_t place, uint32_t micro)
{
    static const enum pass_kind kinds[] = {PASS_FORWARD, PASS_BACKWARD};
    const struct pipeline *pipeline = r->pipeline;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t source = pipeline_source(pipeline, place, kinds[i]);
        if (source != ENGINE_NONE && r->status == TY_OK)
            r->status = engine_add_edge(
                r->engine, r->end[((size_t)source * pipeline->n_micro + micro) * 2 + i],
                r->first[((size_t)place * pipeline->n_micro + micro) * 2 + i]);
    }
}

static ty_status run(struct replay *r, double *makespan_s, uint32_t *peak_chunks)
{
    const struct pipeline *pipeline = r->pipeline;
    for (uint32_t stage = 0; r->status == TY_OK && stage < pipeline->n_stages; stage++)
        add_stage(r, stage, peak_chunks ? &peak_chunks[stage] : NULL);
    for (uint32_t place = 0; place < pipeline_n_places(pipeline); place++) {
        const uint32_t chunk = place / pipeline->n_stages;
        const uint32_t end = pipeline_end_micro(pipeline, chunk);
        for (uint32_t micro = pipeline_first_micro(pipeline, chunk); micro < end; micro++)
            add_messages(r, place, micro);
    }
    if (r->status == TY_OK)
        r->status = engine_run(r->engine, NULL, NULL);
    if (r->status == TY_OK)
        *makespan_s = engine_makespan_s(r->engine);
    return r->status;
}

ty_status pipeline_replay(struct engine *engine, const struct pipeline *pipeline,
                          const struct pipeline_times *times, double *makespan_s,
                          uint32_t *peak_chunks)
{
    struct arena arena;
    const size_t n = (size_t)pipeline_n_places(pipeline) * pipeline->n_micro * 2;
    arena_init(&arena, NULL);
    engine_reset(engine);
    struct replay replay = {.pipeline = pipeline, .times = times, .engine = engine};
    replay.order = arena_get(&arena, pipeline_most_passes(pipeline), sizeof *replay.order);
    replay.first = arena_get(&arena, n, sizeof *replay.first);
    replay.end = arena_get(&arena, n, sizeof *replay.end);
    ty_status status = TY_ERR_NOMEM;
    if (replay.order && replay.first && replay.end)
        status = run(&replay, makespan_s, peak_chunks);
    arena_destroy(&arena);
    return status;
}
