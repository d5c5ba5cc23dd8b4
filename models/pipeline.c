/* SPDX-License-Identifier: MIT
 *
 * Pipeline schedules (handbook 2.5). Every schedule here is one rule: a stage runs `w` warm-up
 * forwards, then alternates one forward and one backward, then drains the backwards:
 *
 *   GPipe w = m v;   1F1B w = p - r - 1;   interleaved w = 2 (p - r - 1) + (v - 1) p
 *
 * Forwards advance in groups of p micro-batches: chunk 0 of the whole group, then chunk 1, ...;
 * backwards the same with the chunks reversed. Position and pass are closed forms of each other.
 * source: NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py, arXiv 2104.04473.
 */
#include "models/pipeline.h"

/* One stage's view of a schedule. */
struct lane {
    uint32_t n_stages, n_chunks, n_micro;
    uint32_t total, warm_up; /* forwards of the stage; those before the first backward */
};

static struct lane lane_of(enum ty_schedule schedule, uint32_t n_stages, uint32_t n_chunks,
                           uint32_t n_micro, uint32_t stage)
{
    const uint32_t total = n_micro * n_chunks;
    const uint32_t behind = n_stages - stage - 1;
    uint32_t warm_up = n_chunks == 1 ? behind : 2 * behind + (n_chunks - 1) * n_stages;
    if (schedule == TY_SCHEDULE_GPIPE || warm_up > total)
        warm_up = total;
    return (struct lane){n_stages, n_chunks, n_micro, total, warm_up};
}

/* Micro-batches of the group that starts at micro-batch `first` (the last may be shorter). */
static uint32_t group_size(const struct lane *lane, uint32_t first)
{
    const uint32_t left = lane->n_micro - first;
    return left < lane->n_stages ? left : lane->n_stages;
}

static struct pass nth_of_kind(const struct lane *lane, enum pass_kind kind, uint32_t n)
{
    const uint32_t first = n / (lane->n_stages * lane->n_chunks) * lane->n_stages;
    const uint32_t inside = n % (lane->n_stages * lane->n_chunks);
    const uint32_t size = group_size(lane, first);
    const uint32_t chunk = inside / size;
    return (struct pass){kind, first + inside % size,
                         kind == PASS_FORWARD ? chunk : lane->n_chunks - 1 - chunk};
}

static uint32_t number_of(const struct lane *lane, const struct pass *pass)
{
    const uint32_t first = pass->micro / lane->n_stages * lane->n_stages;
    const uint32_t chunk =
        pass->kind == PASS_FORWARD ? pass->chunk : lane->n_chunks - 1 - pass->chunk;
    return first * lane->n_chunks + chunk * group_size(lane, first) + (pass->micro - first);
}

static struct pass pass_at(const struct lane *lane, uint32_t position)
{
    const uint32_t w = lane->warm_up, steady_end = 2 * lane->total - w;
    if (position < w)
        return nth_of_kind(lane, PASS_FORWARD, position);
    if (position >= steady_end)
        return nth_of_kind(lane, PASS_BACKWARD, position - lane->total);
    const uint32_t pair = (position - w) / 2;
    return (position - w) % 2 == 0 ? nth_of_kind(lane, PASS_FORWARD, w + pair)
                                   : nth_of_kind(lane, PASS_BACKWARD, pair);
}

static uint32_t position_of(const struct lane *lane, const struct pass *pass)
{
    const uint32_t n = number_of(lane, pass), w = lane->warm_up;
    if (pass->kind == PASS_FORWARD)
        return n < w ? n : 2 * n - w;
    return n < lane->total - w ? w + 2 * n + 1 : lane->total + n;
}

uint32_t pipeline_n_passes(uint32_t n_micro, uint32_t n_chunks)
{
    return 2 * n_micro * n_chunks;
}

void pipeline_order(enum ty_schedule schedule, uint32_t n_stages, uint32_t n_chunks,
                    uint32_t n_micro, uint32_t stage, struct pass *out)
{
    const struct lane lane = lane_of(schedule, n_stages, n_chunks, n_micro, stage);
    for (uint32_t position = 0; position < 2 * lane.total; position++)
        out[position] = pass_at(&lane, position);
}

uint32_t pipeline_source(uint32_t n_stages, uint32_t n_chunks, uint32_t slot, enum pass_kind kind)
{
    if (kind == PASS_FORWARD)
        return slot == 0 ? ENGINE_NONE : slot - 1;
    return slot + 1 == n_stages * n_chunks ? ENGINE_NONE : slot + 1;
}

/* ---- replay ------------------------------------------------------------------------------- */

/* Most chunk activations alive on a stage: a forward makes one, its backward frees it. */
static uint32_t peak_of(const struct lane *lane)
{
    uint32_t alive = 0, peak = 0;
    for (uint32_t position = 0; position < 2 * lane->total; position++) {
        alive += pass_at(lane, position).kind == PASS_FORWARD ? 1 : UINT32_MAX;
        peak = alive > peak ? alive : peak;
    }
    return peak;
}

/* Tasks of one stage; task id = stage * passes + position. */
static ty_status add_stage(struct engine *engine, const struct lane *lane, double forward_s,
                           double backward_s)
{
    struct engine_task task = {.class_ = ENGINE_COMPUTE,
                               .cap_work_per_s = 1.0,
                               .route = ENGINE_NONE,
                               .device = {ENGINE_NONE, ENGINE_NONE}};
    ty_status status = engine_add_stream(engine, &task.stream);
    for (uint32_t position = 0; status == TY_OK && position < 2 * lane->total; position++) {
        uint32_t id;
        const bool forward = pass_at(lane, position).kind == PASS_FORWARD;
        task.work = (forward ? forward_s : backward_s) / lane->n_chunks;
        status = engine_add_task(engine, &task, &id);
    }
    return status;
}

/* Edges into the passes of one stage from the slots before them. */
static ty_status add_messages(struct engine *engine, enum ty_schedule schedule,
                              const struct lane *lane, uint32_t stage)
{
    const uint32_t n_passes = 2 * lane->total;
    for (uint32_t position = 0; position < n_passes; position++) {
        struct pass pass = pass_at(lane, position);
        const uint32_t slot = pass.chunk * lane->n_stages + stage;
        const uint32_t source = pipeline_source(lane->n_stages, lane->n_chunks, slot, pass.kind);
        if (source == ENGINE_NONE)
            continue;
        const uint32_t from = source % lane->n_stages;
        const struct lane sender =
            lane_of(schedule, lane->n_stages, lane->n_chunks, lane->n_micro, from);
        pass.chunk = source / lane->n_stages;
        const ty_status status = engine_add_edge(
            engine, from * n_passes + position_of(&sender, &pass), stage * n_passes + position);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

ty_status pipeline_replay(struct engine *engine, enum ty_schedule schedule, uint32_t n_stages,
                          uint32_t n_chunks, uint32_t n_micro, double forward_s, double backward_s,
                          double *makespan_s, uint32_t *peak_chunks)
{
    engine_reset(engine);
    ty_status status = TY_OK;
    for (uint32_t stage = 0; status == TY_OK && stage < n_stages; stage++) {
        const struct lane lane = lane_of(schedule, n_stages, n_chunks, n_micro, stage);
        status = add_stage(engine, &lane, forward_s, backward_s);
        if (peak_chunks)
            peak_chunks[stage] = peak_of(&lane);
    }
    for (uint32_t stage = 0; status == TY_OK && stage < n_stages; stage++) {
        const struct lane lane = lane_of(schedule, n_stages, n_chunks, n_micro, stage);
        status = add_messages(engine, schedule, &lane, stage);
    }
    if (status == TY_OK)
        status = engine_run(engine, NULL, NULL);
    if (status == TY_OK)
        *makespan_s = engine_makespan_s(engine);
    return status;
}
