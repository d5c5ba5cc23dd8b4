/* SPDX-License-Identifier: MIT
 *
 * Parameters of a stage, the data-parallel traffic they cause (handbook 2.6) and the tail of the
 * step (4.7).
 *
 *   DDP      all-reduce of gradients, in buckets
 *   ZeRO-1   reduce-scatter of gradients in buckets, all-gather of parameters
 *   ZeRO-2   the same, reduce-scatter after every micro-batch
 *   ZeRO-3   all-gather of each layer before each of its passes, reduce-scatter after each
 *            backward; without resharding: gathered once, reduced once
 *   groups   ZeRO-1 groups and HSDP: inside the shard group; the last micro-batch's shards are
 *            then all-reduced over the replicas
 *
 * Experts go to their own, smaller groups. LoRA trains the adapters only.
 */
#include "models/compression_plan.h"
#include "models/memory.h"
#include "models/offload.h"
#include "models/step_internal.h"

#include <math.h>

/* Parameters of a gradient bucket: max(fixed, per rank x group size).
 * source: Megatron-LM megatron/core/distributed/distributed_data_parallel.py */
static const double BUCKET_PARAMS = 40e6, BUCKET_PARAMS_PER_RANK = 1e6;

/* Bytes the optimizer reads and writes per parameter besides the gradient; 26 of Adam: reads two
 * moments and the master weight (12), writes them and the 2-byte parameter (14).
 * source: handbook 4.7; 8-bit and bf16 moments the same with their sizes, pure 16 bits without the
 * master weight; SGD without momentum. */
static const double OPTIMIZER_BYTES[] = {
    [TY_OPTIMIZER_AUTO] = 26.0,     [TY_OPTIMIZER_ADAM] = 26.0, [TY_OPTIMIZER_ADAM_BF16] = 18.0,
    [TY_OPTIMIZER_ADAM8BIT] = 14.0, [TY_OPTIMIZER_SGD] = 10.0,  [TY_OPTIMIZER_ADAM_16BIT] = 12.0};
static const double NORM_BYTES = 4.0; /* payload of the all-reduce of the gradient norm */

/* ---- parameters --------------------------------------------------------------------------- */

/* The memory model, asked for a stage that holds this slot only. */
static void fill_held(const struct step *step, const struct slot *slot, double adapter_params,
                      struct held *out)
{
    struct ty_plan alone = *step->plan;
    alone.pp = alone.vpp = 1;
    alone.schedule = TY_SCHEDULE_1F1B;
    memory_rank_params(step->setting, &alone, slot, 0, &out->params[SHARE_DENSE],
                       &out->params[SHARE_EXPERT]);
    const bool frozen = step->setting->model.lora_rank > 0;
    out->trained[SHARE_DENSE] = frozen ? adapter_params / step->plan->tp : out->params[SHARE_DENSE];
    out->trained[SHARE_EXPERT] = frozen ? 0.0 : out->params[SHARE_EXPERT];
}

/* What is no layer: what it adds to a stage that has the embedding, if its own has it. */
static void fill_end(struct step *step, enum layer_what what, const struct slot *slot)
{
    const uint32_t at = (uint32_t)(slot - step->slots) % step->n_stages;
    struct slot alone = {.head = slot->head, .mtp = slot->mtp, .bare = slot->bare};
    struct held *held = &step->held[what];
    for (uint32_t place = at; place < step->n_places; place += step->n_stages)
        alone.embedding |= step->slots[place].embedding;
    fill_held(step, &alone, 0.0, held);
    for (uint32_t share = 0; share < N_SHARES && alone.embedding; share++) {
        held->params[share] -= step->held[WHAT_EMBEDDING].params[share];
        held->trained[share] -= step->held[WHAT_EMBEDDING].trained[share];
    }
}

static void fill_all_held(struct step *step)
{
    const struct ty_model *model = &step->setting->model;
    const struct slot embedding = {.embedding = true};
    bool seen[TY_MAX_KINDS] = {false};
    fill_held(step, &embedding, 0.0, &step->held[WHAT_EMBEDDING]);
    for (uint32_t place = 0; place < step->n_places; place++) {
        const struct slot *slot = &step->slots[place];
        if (slot->mtp)
            fill_end(step, WHAT_MTP, slot);
        if (slot->head)
            fill_end(step, slot->bare ? WHAT_LOSS : WHAT_HEAD, slot);
    }
    for (uint32_t layer = 0; layer < model->n_layers; layer++) {
        const uint32_t kind = model->layer_kind[layer];
        const struct slot one = {.first_layer = layer, .n_layers = 1};
        if (!seen[kind])
            fill_held(step, &one, step->setting->params.adapter[kind], &step->held[N_WHATS + kind]);
        seen[kind] = true;
    }
}

const struct held *step_held(const struct step *step, const struct unit *unit)
{
    return &step->held[unit->what == WHAT_LAYER ? N_WHATS + unit->kind : unit->what];
}

void step_held_add(struct held *sum, const struct held *held)
{
    for (uint32_t share = 0; share < N_SHARES; share++) {
        sum->params[share] += held->params[share];
        sum->trained[share] += held->trained[share];
    }
}

void step_held_stage(const struct step *step, uint32_t stage, struct held *out)
{
    *out = (struct held){{0}, {0}};
    for (uint32_t place = stage; place < step->n_places; place += step->n_stages)
        for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
            const struct unit unit = step_unit(step, place, i);
            step_held_add(out, step_held(step, &unit));
        }
}

/* ---- data-parallel traffic ---------------------------------------------------------------- */

static void fill_groups(const struct step *step, struct traffic *out)
{
    const struct ty_plan *plan = step->plan;
    const bool grouped = plan->sharding == TY_SHARDING_ZERO1 || plan->sharding == TY_SHARDING_HSDP;
    const uint32_t ranks = plan->dp * plan->cp;
    const uint32_t shard = grouped && plan->shard_group ? plan->shard_group : ranks;
    const uint32_t n_replicas = ranks / shard;
    const uint32_t expert_replicas = plan->edp % n_replicas == 0 ? n_replicas : 1;
    const uint32_t expert_shard = plan->edp / expert_replicas;
    const struct setting *setting = step->setting;
    grid_subshape(setting, plan, AXIS_DPCP, shard, 1, &out->shard[SHARE_DENSE]);
    grid_subshape(setting, plan, AXIS_DPCP, n_replicas, shard, &out->replica[SHARE_DENSE]);
    grid_subshape(setting, plan, AXIS_EDP, expert_shard, 1, &out->shard[SHARE_EXPERT]);
    grid_subshape(setting, plan, AXIS_EDP, expert_replicas, expert_shard,
                  &out->replica[SHARE_EXPERT]);
}

static void fill_times(const struct ty_plan *plan, struct traffic *out)
{
    const bool reshard = plan->reshard_after_forward == TY_ON;
    const bool states_only =
        plan->sharding == TY_SHARDING_ZERO1 || plan->sharding == TY_SHARDING_ZERO2;
    out->overlap_grad = plan->overlap & TY_OVERLAP_GRAD;
    out->overlap_param = plan->overlap & TY_OVERLAP_PARAM;
    if ((uint64_t)plan->dp * plan->cp <= 1) /* then edp is 1 too, or experts are replicated */
        return;
    out->by_unit = plan->sharding == TY_SHARDING_ZERO3 || plan->sharding == TY_SHARDING_HSDP;
    out->gather_every = out->by_unit && reshard;
    out->gather_first = (out->by_unit && !reshard) || (states_only && out->overlap_param);
    out->gather_end = states_only && !out->overlap_param;
    out->reduce_every = out->gather_every || plan->sharding == TY_SHARDING_ZERO2;
    out->reduce_last = !out->reduce_every && out->overlap_grad;
    out->reduce_end = !out->reduce_every && !out->overlap_grad;
}

void step_traffic(struct step *step)
{
    const struct ty_plan *plan = step->plan;
    const bool wide = precision_is_32_bit(plan->precision);
    fill_all_held(step);
    step->traffic = (struct traffic){
        .grad_bytes = precision_bytes((enum ty_precision)plan->grad_dtype),
        .param_bytes = wide ? 4.0 : layer_gathered_bytes(step->setting, plan),
        .bucket_params =
            fmax(BUCKET_PARAMS, BUCKET_PARAMS_PER_RANK * ((double)plan->dp * plan->cp)),
        .reduce_op =
            plan->sharding == TY_SHARDING_NONE ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER};
    fill_times(plan, &step->traffic);
    fill_groups(step, &step->traffic);
}

/* Collectives a payload is sent in. */
static double n_buckets(const struct traffic *traffic, double params)
{
    return traffic->by_unit ? 1.0 : fmax(1.0, ceil(params / traffic->bucket_params));
}

/* What is sent of some parameters of a share: gathered, reduced, and summed over the replicas. */
struct exchange {
    double n_parts;
    struct collective gather, reduce, replicas;
};

static void exchange_of(const struct step *step, const struct held *held, uint32_t share,
                        struct exchange *out)
{
    const struct traffic *traffic = &step->traffic;
    const double trained = held->trained[share];
    /* Frozen parameters never change: only FSDP, which keeps them apart, gathers them. */
    const double gathered = traffic->by_unit ? held->params[share] : trained;
    const double shard = traffic->shard[share].size, copies = traffic->replica[share].size;
    struct compression_exchange first, second;
    compression_exchange(step->setting, step->plan, trained, traffic->grad_bytes, shard, &first);
    compression_exchange(step->setting, step->plan, trained / shard, traffic->grad_bytes, copies,
                         &second);
    *out = (struct exchange){
        .n_parts = n_buckets(traffic, trained),
        .gather = {.op = COLLECTIVE_ALL_GATHER,
                   .payload_bytes = gathered * traffic->param_bytes,
                   .shape = traffic->shard[share]},
        .reduce = {.op = first.gathers ? COLLECTIVE_ALL_GATHER : traffic->reduce_op,
                   .payload_bytes = first.payload_bytes,
                   .codec_s = first.codec_s,
                   .shape = traffic->shard[share]},
        .replicas = {.op = COLLECTIVE_ALL_REDUCE,
                     .payload_bytes = second.payload_bytes,
                     .codec_s = second.codec_s,
                     .shape = traffic->replica[share]},
    };
}

ty_status step_flows(struct step *step, uint32_t stage, const struct held *held, bool gather,
                     bool reduce, struct flows *out)
{
    ty_status status = TY_OK;
    for (uint32_t share = 0; status == TY_OK && share < N_SHARES; share++) {
        struct exchange sent;
        exchange_of(step, held, share, &sent);
        if (gather)
            status = step_flow(step, stage, stage, &sent.gather, sent.n_parts, &out->gather[share]);
        if (status == TY_OK && reduce)
            status = step_flow(step, stage, stage, &sent.reduce, sent.n_parts, &out->reduce[share]);
        if (status == TY_OK && reduce)
            status =
                step_flow(step, stage, stage, &sent.replicas, sent.n_parts, &out->replicas[share]);
    }
    return status;
}

static double alone_s(const struct step *step, const struct collective *collective, double n_parts)
{
    struct collective_flow flow;
    const struct collective part = step_part_of(step, collective, n_parts);
    collective_as_flow(step->setting, &part, &flow);
    return flow.work_bytes > 0.0
               ? n_parts * (flow.latency_s + flow.work_bytes / flow.cap_bytes_per_s)
               : 0.0;
}

void step_exchange_s(const struct step *step, const struct held *held, double gather_s[N_SHARES],
                     double reduce_s[N_SHARES])
{
    for (uint32_t share = 0; share < N_SHARES; share++) {
        struct exchange sent;
        exchange_of(step, held, share, &sent);
        gather_s[share] = alone_s(step, &sent.gather, sent.n_parts);
        reduce_s[share] = alone_s(step, &sent.reduce, sent.n_parts);
    }
}

/* ---- tail --------------------------------------------------------------------------------- */

/* Trained parameters this rank updates. */
static double local_params(const struct step *step, const struct held *held)
{
    const struct traffic *traffic = &step->traffic;
    if (step->plan->sharding == TY_SHARDING_NONE)
        return held->trained[SHARE_DENSE] + held->trained[SHARE_EXPERT];
    return held->trained[SHARE_DENSE] / traffic->shard[SHARE_DENSE].size +
           held->trained[SHARE_EXPERT] / traffic->shard[SHARE_EXPERT].size;
}

/* t = (optimizer bytes * N_local + zeroed gradients) / BW * ratio. Gradients that stay whole
 * (DDP, ZeRO-1) are zeroed whole: handbook 4.7. Offloaded: on the CPU. */
double step_optimizer_s(const struct step *step, const struct held *held)
{
    const struct ty_plan *plan = step->plan;
    const double local = local_params(step, held), grad_bytes = step->traffic.grad_bytes;
    const bool whole = plan->sharding == TY_SHARDING_NONE || plan->sharding == TY_SHARDING_ZERO1;
    const double zeroed = whole ? held->trained[SHARE_DENSE] + held->trained[SHARE_EXPERT] : local;
    if (offload_optimizer(plan))
        return offload_optimizer_s(step->setting, plan, local, grad_bytes,
                                   step->traffic.param_bytes) +
               grad_bytes * zeroed / kernel_mem_bytes_per_s(step->setting);
    const double bytes =
        (OPTIMIZER_BYTES[plan->optimizer] + grad_bytes) * local + grad_bytes * zeroed;
    return bytes / kernel_mem_bytes_per_s(step->setting) * step->setting->profile.optimizer_ratio;
}

double step_norm_s(const struct step *step, const struct held *held)
{
    return step->traffic.grad_bytes * local_params(step, held) /
           kernel_mem_bytes_per_s(step->setting);
}

double step_fixed_s(const struct step *step)
{
    return step->setting->profile.step_fixed_s * step->setting->profile.site_host_ratio;
}

/* One number all-reduced over all ranks that hold a part of the model. */
double step_sync_s(const struct step *step)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_PP, AXIS_DPCP};
    const uint32_t n_axes = step->plan->sharding == TY_SHARDING_NONE ? 2 : 3;
    double time_s = 0.0;
    for (uint32_t i = 0; i < n_axes; i++) {
        struct collective norm = {.op = COLLECTIVE_ALL_REDUCE, .payload_bytes = NORM_BYTES};
        grid_shape(step->setting, step->plan, axes[i], &norm.shape);
        time_s += collective_time_s(step->setting, &norm);
    }
    return time_s;
}
