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
#include "models/step_internal.h"
#include "sim/error.h"

#include <math.h>

/* Passes over all stages beyond which a step is refused: a guard against absurd plans. */
static const double MAX_PASSES = 1 << 26;

/* ---- records ------------------------------------------------------------------------------ */

static ty_status load(struct step *step, bool plain, enum layer_what what, uint32_t layer_kind,
                      const struct record *out[2])
{
    const struct ty_plan *plan = plain ? &step->plain : step->plan;
    ty_status status = record_get(step->records, step->engine, step->setting, plan, what,
                                  layer_kind, PHASE_FORWARD, &out[PASS_FORWARD]);
    if (status == TY_OK)
        status = record_get(step->records, step->engine, step->setting, plan, what, layer_kind,
                            PHASE_BACKWARD, &out[PASS_BACKWARD]);
    return status;
}

static ty_status load_records(struct step *step)
{
    const struct ty_model *model = &step->setting->model;
    const bool partial = step->plan->recompute_layers > 0;
    bool used[TY_MAX_KINDS] = {false};
    for (uint32_t layer = 0; layer < model->n_layers; layer++)
        used[model->layer_kind[layer]] = true;
    ty_status status = load(step, false, WHAT_EMBEDDING, 0, step->end[0]);
    if (status == TY_OK)
        status = load(step, false, WHAT_HEAD, 0, step->end[1]);
    for (uint32_t kind = 0; status == TY_OK && kind < model->n_kinds; kind++) {
        if (!used[kind])
            continue;
        status = load(step, false, WHAT_LAYER, kind, step->layer[0][kind]);
        if (status == TY_OK && partial)
            status = load(step, true, WHAT_LAYER, kind, step->layer[1][kind]);
    }
    return status;
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
    step->slots = slots;
    step->n_stages = plan->pp;
    step->n_chunks = plan->vpp;
    step->n_micro = plan->n_micro;
    step->n_slots = plan->pp * plan->vpp;
    step->plain = *plan;
    step->plain.recompute = TY_RECOMPUTE_NONE;
    step->plain.recompute_layers = 0;
    step->jitter = 1.0 + profile->jitter_ratio * log2(plan->n_gpus);
    step->pass_fixed_s = profile->micro_fixed_s * profile->site_host_ratio / (2.0 * plan->vpp);
    const ty_status status = record_cache_use(step->records, setting);
    return status == TY_OK ? load_records(step) : status;
}

/* ---- units -------------------------------------------------------------------------------- */

uint32_t step_n_units(const struct slot *slot)
{
    return slot->embedding + slot->n_layers + slot->head;
}

/* Full recompute of the first n layers of a stage: true for those after them. */
static bool is_plain(const struct step *step, uint32_t slot, uint32_t layer_of_slot)
{
    if (step->plan->recompute_layers == 0)
        return false;
    uint32_t place = layer_of_slot;
    for (uint32_t other = slot % step->n_stages; other < slot; other += step->n_stages)
        place += step->slots[other].n_layers;
    return place >= step->plan->recompute_layers;
}

struct unit step_unit(const struct step *step, uint32_t slot, uint32_t index)
{
    const struct slot *at = &step->slots[slot];
    if (at->embedding && index == 0)
        return (struct unit){.what = WHAT_EMBEDDING};
    const uint32_t layer = index - at->embedding;
    if (layer == at->n_layers)
        return (struct unit){.what = WHAT_HEAD};
    return (struct unit){.what = WHAT_LAYER,
                         .kind = step->setting->model.layer_kind[at->first_layer + layer],
                         .plain = is_plain(step, slot, layer)};
}

const struct record *step_record(const struct step *step, const struct unit *unit,
                                 enum pass_kind kind)
{
    return unit->what == WHAT_LAYER ? step->layer[unit->plain][unit->kind][kind]
                                    : step->end[unit->what == WHAT_HEAD][kind];
}

/* ---- segments ----------------------------------------------------------------------------- */

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
}

static bool is_full(const struct segment *segment, double bucket_params)
{
    return segment->held.params[SHARE_DENSE] >= bucket_params ||
           segment->held.params[SHARE_EXPERT] >= bucket_params;
}

/* Appends the segments of a slot's pass, closing one whenever its parameters fill a bucket. */
static void cut_pass(struct step *step, uint32_t slot, enum pass_kind kind, double bucket_params)
{
    const uint32_t n_units = step_n_units(&step->slots[slot]);
    struct segment *segment = &step->segments[step->n_segments++];
    segment->time_s = segment->part_s[TY_PART_LAUNCH] = step->jitter * step->pass_fixed_s;
    for (uint32_t i = 0; i < n_units; i++) {
        const struct unit unit = step_unit(step, slot, kind == PASS_FORWARD ? i : n_units - 1 - i);
        add_unit(step, &unit, kind, segment);
        if (i + 1 < n_units && is_full(segment, bucket_params))
            segment = &step->segments[step->n_segments++];
    }
}

/* Parameters after which a pass with data-parallel traffic is cut; HUGE_VAL: never. */
static double bucket_of(const struct traffic *traffic, enum pass_kind kind)
{
    const bool forward = kind == PASS_FORWARD;
    if (forward ? !traffic->gather_first && !traffic->gather_every
                : !traffic->gather_every && !traffic->reduce_last && !traffic->reduce_every)
        return HUGE_VAL;
    if (traffic->by_unit)
        return 0.0;
    return forward || traffic->overlap_grad ? traffic->bucket_params : HUGE_VAL;
}

static ty_status add_flows(struct step *step, const struct cut *cut, uint32_t stage,
                           enum pass_kind kind)
{
    const struct traffic *traffic = &step->traffic;
    const bool forward = kind == PASS_FORWARD;
    const bool gather = traffic->gather_every || (forward && traffic->gather_first);
    const bool reduce = !forward && (traffic->reduce_every || traffic->reduce_last);
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < cut->n; i++) {
        struct segment *segment = &step->segments[cut->first + i];
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
    segment->compute = (struct engine_task){.class_ = ENGINE_COMPUTE,
                                            .work = segment->time_s,
                                            .cap_work_per_s = 1.0,
                                            .device = {step->stages[stage].device, ENGINE_NONE}};
    return step_route(step, stage, stage, bytes_per_s, 1.0, &segment->compute.route);
}

static ty_status make_tasks(struct step *step)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < 2 * step->n_slots; i++)
        status = add_flows(step, &step->cuts[i], i / 2 % step->n_stages, (enum pass_kind)(i % 2));
    for (uint32_t i = 0; status == TY_OK && i < 2 * step->n_slots; i++) {
        const struct cut *cut = &step->cuts[i];
        for (uint32_t at = cut->whole; status == TY_OK && at < cut->first + cut->n; at++)
            status = make_compute(step, i / 2 % step->n_stages, &step->segments[at]);
    }
    return status;
}

ty_status step_cut(struct step *step)
{
    size_t most = 0;
    for (uint32_t slot = 0; slot < step->n_slots; slot++)
        most += 2u * (2u + step_n_units(&step->slots[slot]));
    step->n_segments = 0;
    step->segments = arena_get(&step->arena, most, sizeof *step->segments);
    step->cuts = arena_get(&step->arena, 2u * (size_t)step->n_slots, sizeof *step->cuts);
    if (!step->segments || !step->cuts)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < 2 * step->n_slots; i++) {
        const enum pass_kind kind = (enum pass_kind)(i % 2);
        struct cut *cut = &step->cuts[i];
        const double bucket_params = bucket_of(&step->traffic, kind);
        cut->whole = step->n_segments;
        cut_pass(step, i / 2, kind, HUGE_VAL);
        const struct segment *whole = &step->segments[cut->whole];
        if (whole->host_s > whole->time_s * (1.0 - 1e-12))
            step->stages[i / 2 % step->n_stages].host_binds = true;
        cut->first = step->n_segments;
        cut_pass(step, i / 2, kind, bucket_params);
        cut->n = step->n_segments - cut->first;
    }
    return make_tasks(step);
}
