/* SPDX-License-Identifier: MIT
 *
 * One optimizer step on the engine: prepare what passes take, decide the traffic, lay stages and
 * links, cut passes into segments, build the graph, run it, say where the time went. All memory is
 * kept between calls.
 */
#include "models/step_internal.h"

#include <math.h>
#include <string.h>

ty_status step_create(const struct ty_allocator *allocator, struct step **out)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    struct step *step = source.alloc(source.user, sizeof *step);
    if (!step)
        return TY_ERR_NOMEM;
    memset(step, 0, sizeof *step);
    step->allocator = source;
    arena_init(&step->arena, &source);
    ty_status status = engine_create(&source, &step->engine);
    if (status == TY_OK)
        status = record_cache_create(&source, &step->records);
    if (status != TY_OK) {
        step_destroy(step);
        return status;
    }
    *out = step;
    return TY_OK;
}

void step_destroy(struct step *step)
{
    if (!step)
        return;
    const struct ty_allocator source = step->allocator;
    record_cache_destroy(step->records);
    engine_destroy(step->engine);
    array_free(&source, step->placed, step->placed_capacity, sizeof *step->placed);
    array_free(&source, step->info, step->info_capacity, sizeof *step->info);
    array_free(&source, step->sent, step->sent_capacity, sizeof *step->sent);
    arena_destroy(&step->arena);
    source.release(source.user, step, sizeof *step);
}

ty_status step_lay(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                   const struct slot *slots, struct ty_error *error)
{
    ty_status status = step_prepare(step, setting, plan, slots, error);
    arena_reset(&step->arena);
    engine_reset(step->engine);
    if (status == TY_OK) {
        step->origins = (struct origins){0};
        step_traffic(step);
        status = step_add_stages(step);
    }
    if (status == TY_OK)
        status = step_cut(step);
    return status == TY_OK ? step_build(step) : status;
}

/* Where the times of the step are from: its passes' kernels and collectives, and its own traffic.
 */
static void add_origins(const struct step *step, struct origins *out)
{
    *out = step->origins;
    for (uint32_t place = 0; place < step->n_places; place++)
        for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
            const struct unit unit = step_unit(step, place, i);
            for (enum pass_kind kind = PASS_FORWARD; kind < N_PASS_KINDS; kind++)
                if (step_counts(step, kind))
                    origins_add(out, &step_record(step, &unit, kind)->origins, step->n_micro);
        }
}

ty_status step_simulate(struct step *step, const struct setting *setting,
                        const struct ty_plan *plan, const struct slot *slots,
                        const struct ty_options *options, struct step_result *out,
                        struct ty_error *error)
{
    /* Against plans that would run for hours; source: trainyard.h, ty_options.max_events. */
    const struct engine_limits limits = {
        .max_events = options && options->max_events ? options->max_events : 200000000u,
        .max_time_s = options ? options->max_time_s : 0.0};
    ty_status status = step_lay(step, setting, plan, slots, error);
    if (status != TY_OK)
        return status;
    step->simulated = true;
    status = engine_run(step->engine, &limits, error);
    if (status != TY_OK)
        return status;
    step_breakdown(step, out);
    add_origins(step, &out->origins);
    return TY_OK;
}

struct ty_trace_event step_event(const struct step *step, uint32_t task)
{
    static const char *const names[N_TASK_KINDS] = {
        [TASK_FORWARD] = "F",         [TASK_BACKWARD] = "B",
        [TASK_FIXED] = "step fixed",  [TASK_WGRAD] = "W",
        [TASK_RECOMPUTE] = "R",       [TASK_COPIES] = "copies AR",
        [TASK_ISSUE] = "issue",       [TASK_TRANSFER] = "offload",
        [TASK_SEND] = "send",         [TASK_GATHER] = "param AG",
        [TASK_REDUCE] = "grad RS",    [TASK_REPLICAS] = "grad AR",
        [TASK_TIED] = "embedding AR", [TASK_NORM] = "grad norm",
        [TASK_SYNC] = "norm AR",      [TASK_OPTIMIZER] = "optimizer"};
    static const char *const streams[N_STREAMS] = {[STREAM_COMPUTE] = "compute",
                                                   [STREAM_FORWARD] = "pp",
                                                   [STREAM_BACKWARD] = "pp-backward",
                                                   [STREAM_DENSE] = "dp",
                                                   [STREAM_EXPERT] = "dp-expert",
                                                   [STREAM_REPLICA] = "dp-replica",
                                                   [STREAM_HOST] = "host",
                                                   [STREAM_HOST_OUT] = "host-out",
                                                   [STREAM_HOST_IN] = "host-in"};
    const struct task_info *info = &step->info[task];
    const double end_s = engine_end_s(step->engine, task);
    return (struct ty_trace_event){.start_s = engine_start_s(step->engine, task),
                                   .end_s = isnan(end_s) ? engine_now_s(step->engine) : end_s,
                                   .task = task,
                                   .rank = info->stage,
                                   .stream = streams[info->stream],
                                   .name = names[info->kind],
                                   .micro = info->micro,
                                   .chunk = info->chunk,
                                   .unfinished = isnan(end_s)};
}

void step_trace(const struct step *step, ty_trace_fn *fn, void *user)
{
    const uint32_t n_tasks = step->simulated ? engine_n_tasks(step->engine) : 0;
    for (uint32_t task = 0; task < n_tasks; task++) {
        const struct ty_trace_event event = step_event(step, task);
        if (!isnan(event.start_s))
            fn(user, &event);
    }
}

struct edges {
    const struct step *step;
    ty_trace_edge_fn *fn;
    void *user;
};

static void on_edge(void *user, uint32_t before, uint32_t after)
{
    const struct edges *edges = user;
    if (!isnan(engine_start_s(edges->step->engine, after)))
        edges->fn(edges->user, before, after);
}

void step_edges(const struct step *step, ty_trace_edge_fn *fn, void *user)
{
    struct edges edges = {step, fn, user};
    if (step->simulated)
        engine_edges(step->engine, on_edge, &edges);
}
