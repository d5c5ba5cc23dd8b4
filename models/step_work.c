/* SPDX-License-Identifier: MIT
 *
 * What the passes of a plan take: the records of its layers, summed over segments.
 *
 *   segment = (sum of records + fixed share) (1 + jitter log2 G)
 *
 * A pass is one segment unless data-parallel traffic starts or is waited for inside it: then it is
 * cut where a bucket of gradients or parameters is complete, or after every unit under FSDP.
 * Source of fixed time and jitter: ACCURACY 1.7.
 */
#include "models/memory.h"
#include "models/offload.h"
#include "models/step_internal.h"
#include "sim/error.h"

#include <math.h>

/* Passes over all stages beyond which a step is refused: a guard against absurd plans. */
static const double MAX_PASSES = 1 << 26;

/* ---- records ------------------------------------------------------------------------------ */

bool step_runs(const struct step *step, enum pass_kind kind)
{
    return kind == PASS_FORWARD ||
           (kind == PASS_BACKWARD ? step->pipeline.whole : step->pipeline.splits);
}

bool step_counts(const struct step *step, enum pass_kind kind)
{
    const bool half = kind == PASS_DGRAD || kind == PASS_WGRAD;
    return step_runs(step, kind) && !(half && step->pipeline.whole);
}

static ty_status load(struct step *step, bool plain, enum layer_what what, uint32_t layer_kind,
                      const struct record *out[N_PASS_KINDS])
{
    static const enum layer_phase phases[N_PASS_KINDS] = {PHASE_FORWARD, PHASE_BACKWARD,
                                                          PHASE_DGRAD, PHASE_WGRAD};
    const struct ty_plan *plan = plain ? &step->plain : step->plan;
    ty_status status = TY_OK;
    for (uint32_t kind = 0; status == TY_OK && kind < N_PASS_KINDS; kind++)
        if (step_runs(step, (enum pass_kind)kind))
            status = record_get(step->records, step->engine, step->setting, plan, what, layer_kind,
                                phases[kind], &out[kind]);
    return status;
}

static ty_status load_records(struct step *step)
{
    const struct ty_model *model = &step->setting->model;
    const bool plain = step->plan->recompute_layers > 0 || step->plan->recompute_early == TY_ON;
    bool used[TY_MAX_KINDS] = {false};
    for (uint32_t layer = 0; layer < model->n_layers; layer++)
        used[model->layer_kind[layer]] = true;
    bool ends[N_WHATS] = {[WHAT_EMBEDDING] = true};
    ty_status status = TY_OK;
    for (uint32_t place = 0; place < step->n_places; place++) {
        const struct slot *slot = &step->slots[place];
        ends[WHAT_MTP] |= slot->mtp;
        ends[slot->bare ? WHAT_LOSS : WHAT_HEAD] |= slot->head;
    }
    for (uint32_t what = WHAT_EMBEDDING; status == TY_OK && what < N_WHATS; what++)
        if (ends[what])
            status = load(step, false, (enum layer_what)what, 0, step->end[what]);
    for (uint32_t kind = 0; status == TY_OK && kind < model->n_kinds; kind++) {
        if (!used[kind])
            continue;
        status = load(step, false, WHAT_LAYER, kind, step->layer[0][kind]);
        if (status == TY_OK && plain)
            status = load(step, true, WHAT_LAYER, kind, step->layer[1][kind]);
    }
    return status;
}

/* Lays the slots out by place. */
static ty_status place_slots(struct step *step, const struct slot *slots)
{
    step->slots = slots;
    if (step->pipeline.shape == PIPELINE_ROUND)
        return TY_OK;
    if (!array_grow(&step->allocator, (void **)&step->placed, &step->placed_capacity,
                    step->n_places, sizeof *step->placed))
        return TY_ERR_NOMEM;
    for (uint32_t place = 0; place < step->n_places; place++)
        step->placed[place] = slots[pipeline_slot(&step->pipeline, place)];
    step->slots = step->placed;
    return TY_OK;
}

ty_status step_prepare(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                       const struct slot *slots, struct ty_error *error)
{
    const struct ty_profile *profile = &setting->profile;
    if (2.0 * plan->pp * plan->vpp * plan->n_micro > MAX_PASSES)
        return error_set(error, TY_ERR_LIMIT, "plan", "has more than %.0f passes in a step",
                         MAX_PASSES);
    step->simulated = false;
    step->setting = setting;
    step->plan = plan;
    step->pipeline = pipeline_of(plan);
    step->n_stages = plan->pp;
    step->n_micro = plan->n_micro;
    step->n_places = pipeline_n_places(&step->pipeline);
    step->plain = *plan;
    step->plain.recompute = TY_RECOMPUTE_NONE;
    step->plain.recompute_layers = 0;
    step->jitter = 1.0 + profile->jitter_ratio * log2(plan->n_gpus);
    step->pass_fixed_s = profile->micro_fixed_s * profile->site_host_ratio / (2.0 * plan->vpp);
    record_cache_use(step->records, setting);
    const ty_status status = place_slots(step, slots);
    return status == TY_OK ? load_records(step) : status;
}

/* ---- units -------------------------------------------------------------------------------- */

uint32_t step_n_units(const struct slot *slot)
{
    return slot->embedding + slot->n_layers + (slot->mtp || slot->head);
}

/* Which layer of its stage the n-th of a place is. */
static uint32_t layer_of_stage(const struct step *step, uint32_t place, uint32_t layer_of_slot)
{
    uint32_t before = layer_of_slot;
    for (uint32_t other = place % step->n_stages; other < place; other += step->n_stages)
        before += step->slots[other].n_layers;
    return before;
}

struct unit step_unit(const struct step *step, uint32_t place, uint32_t index)
{
    const struct slot *at = &step->slots[place];
    if (at->embedding && index == 0)
        return (struct unit){.what = WHAT_EMBEDDING};
    const uint32_t layer = index - at->embedding;
    if (layer == at->n_layers)
        return (struct unit){.what = at->mtp ? WHAT_MTP : at->bare ? WHAT_LOSS : WHAT_HEAD};
    const uint32_t rerun = step->plan->recompute_layers, moved = step->plan->offload_layers;
    const uint32_t layer_at = rerun || moved ? layer_of_stage(step, place, layer) : 0;
    return (struct unit){.what = WHAT_LAYER,
                         .kind = step->setting->model.layer_kind[at->first_layer + layer],
                         .plain = rerun > 0 && layer_at >= rerun, /* full recompute of the first */
                         .offloaded = offload_layer(step->plan, layer_at)};
}

const struct record *step_record(const struct step *step, const struct unit *unit,
                                 enum pass_kind kind)
{
    return unit->what == WHAT_LAYER ? step->layer[unit->plain][unit->kind][kind]
                                    : step->end[unit->what][kind];
}

double step_pass_fixed_s(const struct step *step, enum pass_kind kind)
{
    return kind == PASS_DGRAD || kind == PASS_WGRAD ? 0.5 * step->pass_fixed_s : step->pass_fixed_s;
}

/* ---- beside a pass of the other direction --------------------------------------------------
 * Batch-level overlap: the expert traffic of one pass runs beside the kernels of the other, which
 * lose the share a of their speed meanwhile (handbook 5.8):
 *
 *   a pass is shorter by (1 - a) min(its exposed expert traffic, kernels of the other pass)
 *
 * The other pass is the one of the stage with the fewest kernels. */

struct busy {
    double kernels_s, expert_s;
};

static struct busy busy_of(const struct step *step, uint32_t place, enum pass_kind kind)
{
    struct busy sum = {0.0, 0.0};
    for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
        const struct unit unit = step_unit(step, place, i);
        const struct record *record = step_record(step, &unit, kind);
        sum.kernels_s += record->part_s[TY_PART_GEMM] + record->part_s[TY_PART_ATTENTION] +
                         record->part_s[TY_PART_MEMORY_BOUND];
        sum.expert_s += record->part_s[TY_PART_EP];
    }
    return sum;
}

double step_hidden_s(const struct step *step, uint32_t place, enum pass_kind kind)
{
    const struct ty_profile *profile = &step->setting->profile;
    const enum pass_kind other = kind == PASS_FORWARD ? PASS_BACKWARD : PASS_FORWARD;
    if (!step->pipeline.joins || !(step->plan->overlap & TY_OVERLAP_BATCH))
        return 0.0;
    double least_s = HUGE_VAL;
    for (uint32_t at = place % step->n_stages; at < step->n_places; at += step->n_stages)
        least_s = fmin(least_s, busy_of(step, at, other).kernels_s);
    struct group_shape shape;
    grid_shape(step->setting, step->plan, AXIS_EP, &shape);
    const double slow =
        shape.link > LINK_SCALEUP ? profile->slow_compute_nic : profile->slow_compute_scaleup;
    return step->jitter * (1.0 - slow) * fmin(busy_of(step, place, kind).expert_s, least_s);
}

/* ---- segments ----------------------------------------------------------------------------- */

/* Activations leave after forward and come back for backward; offloaded parameters come in for
 * both, and their gradients leave. */
static void add_transfers(const struct step *step, const struct unit *unit, enum pass_kind kind,
                          struct segment *segment)
{
    const double bytes_per_s = offload_bytes_per_s(step->setting);
    const bool forward = kind == PASS_FORWARD, weights = kind == PASS_WGRAD;
    if (unit->offloaded && !weights)
        segment->transfer_s[forward ? HOST_OUT : HOST_IN] +=
            step->kept_bytes[unit->plain][unit->kind] / bytes_per_s;
    for (uint32_t share = 0; share < N_SHARES && offload_states(step->plan); share++) {
        const struct held *held = step_held(step, unit);
        const double shard = step->traffic.shard[share].size * bytes_per_s;
        if (!weights)
            segment->transfer_s[HOST_IN] += step->traffic.param_bytes * held->params[share] / shard;
        if (kind == PASS_BACKWARD || weights)
            segment->transfer_s[HOST_OUT] +=
                step->traffic.grad_bytes * held->trained[share] / shard;
    }
}

static void add_unit(const struct step *step, const struct unit *unit, enum pass_kind kind,
                     struct segment *segment)
{
    const struct record *record = step_record(step, unit, kind);
    segment->time_s += step->jitter * record->time_s;
    segment->host_s += record->host_s;
    for (uint32_t part = 0; part < TY_N_PARTS; part++)
        segment->part_s[part] += step->jitter * record->part_s[part];
    for (uint32_t link = 0; link < N_LINKS; link++)
        segment->link_bytes[link] += record->link_bytes[link];
    step_held_add(&segment->held, step_held(step, unit));
    add_transfers(step, unit, kind, segment);
}

bool step_is_full(const struct held *held, double bucket_params)
{
    return held->params[SHARE_DENSE] >= bucket_params ||
           held->params[SHARE_EXPERT] >= bucket_params;
}

/* Host time of a pass besides its layers: data, messages, the instructions of the engine. */
static double pass_host_s(const struct step *step, enum pass_kind kind)
{
    const struct ty_profile *profile = &step->setting->profile;
    const double half = kind == PASS_DGRAD || kind == PASS_WGRAD ? 0.5 : 1.0;
    if (step->plan->cuda_graph == TY_ON)
        return 0.0;
    return half * profile->host_micro_s * profile->site_host_ratio / (2.0 * step->plan->vpp);
}

/* CUDA_LAUNCH_BLOCKING=1: nothing of the host's time is hidden. */
static void add_launch(struct segment *segment, double time_s)
{
    segment->time_s += time_s;
    segment->part_s[TY_PART_LAUNCH] += time_s;
}

/* Appends the segments of a place's pass, closing one whenever its parameters fill a bucket. */
static void cut_pass(struct step *step, uint32_t place, enum pass_kind kind, double bucket_params)
{
    const uint32_t n_units = step_n_units(&step->slots[place]);
    struct segment *segment = &step->segments[step->n_segments++];
    segment->time_s = segment->part_s[TY_PART_LAUNCH] =
        step->jitter * step_pass_fixed_s(step, kind);
    segment->host_s = pass_host_s(step, kind);
    if (step->plan->launch_blocking == TY_ON)
        add_launch(segment, step->jitter * segment->host_s);
    for (uint32_t i = 0; i < n_units; i++) {
        const struct unit unit = step_unit(step, place, kind == PASS_FORWARD ? i : n_units - 1 - i);
        add_unit(step, &unit, kind, segment);
        if (i + 1 < n_units && step_is_full(&segment->held, bucket_params))
            segment = &step->segments[step->n_segments++];
    }
}

/* Does the kind end with complete gradients? Wgrad reads no parameters. */
static bool makes_gradients(enum pass_kind kind)
{
    return kind == PASS_BACKWARD || kind == PASS_WGRAD;
}

static bool gathers(const struct traffic *traffic, enum pass_kind kind)
{
    return (traffic->gather_every && kind != PASS_WGRAD) ||
           (traffic->gather_first && kind == PASS_FORWARD);
}

static bool reduces(const struct traffic *traffic, enum pass_kind kind)
{
    return makes_gradients(kind) && (traffic->reduce_every || traffic->reduce_last);
}

double step_bucket_params(const struct traffic *traffic, enum pass_kind kind)
{
    if (!gathers(traffic, kind) && !reduces(traffic, kind))
        return HUGE_VAL;
    if (traffic->by_unit)
        return 0.0;
    return kind == PASS_FORWARD || traffic->overlap_grad ? traffic->bucket_params : HUGE_VAL;
}

static ty_status add_flows(struct step *step, const struct cut *cut, uint32_t stage,
                           enum pass_kind kind)
{
    const bool gather = gathers(&step->traffic, kind), reduce = reduces(&step->traffic, kind);
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < cut->n; i++) {
        struct segment *segment = &step->segments[cut->first + i];
        segment->has_flows = gather || reduce;
        status = step_flows(step, stage, &segment->held, gather, reduce, &segment->flows);
    }
    return status;
}

/* A layer's own collectives share links with step-level traffic at their average rate: bytes over
 * time on the route of the pass. Nobody else on the link: no route needed. */
static ty_status make_compute(struct step *step, uint32_t stage, struct segment *segment)
{
    double bytes_per_s[N_LINKS] = {0};
    for (uint32_t link = 0; link < N_LINKS; link++)
        if (step->link_used[link] && segment->link_bytes[link] > 0.0)
            bytes_per_s[link] = segment->link_bytes[link] / segment->time_s;
    segment->compute = (struct flow){.used = true,
                                     .task = {.class_ = ENGINE_COMPUTE,
                                              .work = segment->time_s,
                                              .cap_work_per_s = 1.0,
                                              .device = {step->stages[stage].device, ENGINE_NONE}}};
    return step_route(step, stage, stage, bytes_per_s, 1.0, &segment->compute.task.route);
}

static ty_status make_tasks(struct step *step)
{
    const uint32_t n = N_PASS_KINDS * step->n_places;
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < n; i++)
        status = add_flows(step, &step->cuts[i], i / N_PASS_KINDS % step->n_stages,
                           (enum pass_kind)(i % N_PASS_KINDS));
    for (uint32_t i = 0; status == TY_OK && i < n; i++) {
        const struct cut *cut = &step->cuts[i];
        for (uint32_t at = cut->whole; status == TY_OK && at < cut->end; at++)
            status = make_compute(step, i / N_PASS_KINDS % step->n_stages, &step->segments[at]);
    }
    return status;
}

/* The whole pass, shorter by what its expert traffic hides. */
static uint32_t cut_joined(struct step *step, uint32_t place, enum pass_kind kind, uint32_t whole)
{
    const double hidden_s = step_hidden_s(step, place, kind);
    struct segment *segment = &step->segments[step->n_segments];
    *segment = step->segments[whole];
    segment->time_s -= hidden_s;
    segment->part_s[TY_PART_EP] -= hidden_s;
    return step->n_segments++;
}

/* Recompute of the layer that comes first in the backward pass: what its record has over the one
 * without recompute. It moves from the pass into a segment of its own. */
static uint32_t cut_early(struct step *step, uint32_t place, enum pass_kind kind,
                          const struct cut *cut)
{
    const uint32_t n_units = step_n_units(&step->slots[place]);
    if (step->plan->recompute_early != TY_ON || step->traffic.gather_every || n_units == 0 ||
        (kind != PASS_BACKWARD && kind != PASS_DGRAD))
        return ENGINE_NONE;
    const struct unit unit = step_unit(step, place, n_units - 1);
    if (unit.what != WHAT_LAYER || unit.plain)
        return ENGINE_NONE;
    const struct record *all = step_record(step, &unit, kind);
    const struct record *rest = step->layer[1][unit.kind][kind];
    struct segment *early = &step->segments[step->n_segments++];
    struct segment *const from[] = {&step->segments[cut->whole], &step->segments[cut->first]};
    early->host_s = fmax(0.0, all->host_s - rest->host_s);
    for (uint32_t part = 0; part < TY_N_PARTS; part++) {
        early->part_s[part] = step->jitter * fmax(0.0, all->part_s[part] - rest->part_s[part]);
        early->time_s += early->part_s[part];
    }
    for (uint32_t i = 0; i < 2; i++) {
        from[i]->time_s -= early->time_s;
        from[i]->host_s -= early->host_s;
        for (uint32_t part = 0; part < TY_N_PARTS; part++)
            from[i]->part_s[part] -= early->part_s[part];
    }
    return step->n_segments - 1;
}

static void cut_kind(struct step *step, uint32_t place, enum pass_kind kind)
{
    struct cut *cut = &step->cuts[N_PASS_KINDS * place + kind];
    const double bucket_params = step_bucket_params(&step->traffic, kind);
    cut->whole = step->n_segments;
    cut_pass(step, place, kind, HUGE_VAL);
    const struct segment *whole = &step->segments[cut->whole];
    if (step->host_always || whole->host_s > whole->time_s * (1.0 - 1e-12))
        step->stages[place % step->n_stages].host_binds = true;
    cut->joined = cut->whole;
    if (step->pipeline.joins && (kind == PASS_FORWARD || kind == PASS_BACKWARD))
        cut->joined = cut_joined(step, place, kind, cut->whole);
    const uint32_t first = step->n_segments;
    cut_pass(step, place, kind, bucket_params);
    cut->first = first;
    cut->n = step->n_segments - first;
    cut->early = cut_early(step, place, kind, cut);
    cut->end = step->n_segments;
}

static void fill_kept(struct step *step)
{
    const struct setting *setting = step->setting;
    for (uint32_t kind = 0; kind < setting->model.n_kinds; kind++) {
        const struct ty_layer_kind *layer = &setting->model.kinds[kind];
        step->kept_bytes[false][kind] = memory_layer_activation_bytes(setting, step->plan, layer);
        step->kept_bytes[true][kind] = memory_layer_activation_bytes(setting, &step->plain, layer);
    }
}

ty_status step_cut(struct step *step)
{
    size_t most = 0;
    if (offload_activations(step->plan))
        fill_kept(step);
    uint32_t n_kinds = 0;
    for (uint32_t kind = 0; kind < N_PASS_KINDS; kind++)
        n_kinds += step_runs(step, (enum pass_kind)kind);
    for (uint32_t place = 0; place < step->n_places; place++)
        most += n_kinds * (4u + step_n_units(&step->slots[place]));
    step->n_segments = 0;
    step->segments = arena_get(&step->arena, most, sizeof *step->segments);
    step->cuts = arena_get(&step->arena, N_PASS_KINDS * (size_t)step->n_places, sizeof *step->cuts);
    if (!step->segments || !step->cuts)
        return TY_ERR_NOMEM;
    for (uint32_t place = 0; place < step->n_places; place++)
        for (uint32_t kind = 0; kind < N_PASS_KINDS; kind++)
            if (step_runs(step, (enum pass_kind)kind))
                cut_kind(step, place, (enum pass_kind)kind);
    return make_tasks(step);
}
