/* SPDX-License-Identifier: MIT
 *
 * Memory of every pipeline stage (handbook 3): never the model divided by the stages, but what the
 * stage's own layers, embedding, head and MTP modules need.
 *
 *   stage = states + in_flight * kept + max(logits + head work, layer rerun + layer work)
 *           + buffers + runtime (context, communicators) + reserve (what the allocator holds idle)
 *
 * In flight: 2.5. Head work: 16-bit gradient of the head, gradient of the logits, two gathered
 * hidden tensors. Buffers: FSDP's gathered layers and unsharded gradients, or one 16-bit gradient
 * per weight shape that stays allocated beside fp32 accumulation (with it the eight dense B200
 * rows of UT-3.4 come within 0.7 %).
 */
#include "models/compression_plan.h"
#include "models/memory.h"
#include "models/memory_layer.h"
#include "models/memory_states.h"
#include "models/offload.h"
#include "models/pipeline.h"

#include <math.h>

#define LIVE_UNITS    3.0 /* FSDP layers gathered at a time: ACCURACY-2 2.12 */
#define BUCKET_PARAMS 5e8 /* reduce and all-gather bucket of DeepSpeed: ACCURACY-2 2.12 */
#define OFFLOAD_SETS  2.0 /* layers on their way to or from the host: one each */
#define LIVE_PARAMS   1e9 /* DeepSpeed's default of stage3_max_live_parameters */

/* ---- what the stages share ---------------------------------------------------------------- */

/* Terms of a plan, computed once for all stages and every imbalance. */
struct terms {
    const struct setting *setting;
    const struct ty_plan *plan;
    const struct slot *slots;
    const struct stack_habits *habits;
    struct pipeline pipeline;
    double copies; /* of the model, over the pipeline: a stage in flight is one slot of several */
    struct state_bytes dense, expert;
    double tokens, table; /* tokens of a micro-batch; parameters of one vocabulary table */
    struct layer_memory kind[TY_MAX_KINDS];
};

static void terms_init(const struct setting *setting, const struct ty_plan *plan,
                       const struct slot *slots, struct terms *t)
{
    t->setting = setting;
    t->plan = plan;
    t->slots = slots;
    t->habits = stack_habits(setting->profile.stack);
    t->pipeline = pipeline_of(plan);
    t->copies = t->pipeline.shape == PIPELINE_TWO_WAYS ? 2.0 : 1.0;
    memory_states(plan, t->habits, false, &t->dense);
    memory_states(plan, t->habits, true, &t->expert);
    t->tokens = (double)plan->seq * plan->mbs / plan->cp;
    t->table = memory_vocab_rows(setting, plan) * setting->model.hidden;
    for (uint32_t i = 0; i < setting->model.n_kinds; i++)
        memory_layer(setting, plan, t->habits, i, &t->kind[i]);
}

/* ---- one stage ---------------------------------------------------------------------------- */

/* Sums over the layers of a stage, and the largest of some figures of one layer. */
struct stage {
    double dense, expert, adapter;
    struct amount kept, offloaded; /* activations of a micro-batch that stay, and that leave */
    double offload_buffer;         /* largest layer that leaves */
    double rerun_bytes;            /* saved tensors a recompute brings back */
    double working_bytes;          /* the same + work */
    double unit;                   /* parameters */
    double attention_matrix, mlp_matrix, shared_matrix, expert_matrix;
    bool embedding, head, mtp;
};

static void raise_to(double *largest, double value)
{
    if (value > *largest)
        *largest = value;
}

/* What a stage needs for its largest layer only. */
static void raise_largest(const struct layer_memory *layer, double rerun_bytes, double imbalance,
                          struct stage *out)
{
    raise_to(&out->rerun_bytes, rerun_bytes);
    raise_to(&out->working_bytes, rerun_bytes + layer->work_dense);
    raise_to(&out->working_bytes, rerun_bytes + amount_bytes(layer->work_moe, imbalance));
    raise_to(&out->unit, layer->dense + layer->expert);
    raise_to(&out->attention_matrix, layer->attention_matrix);
    raise_to(&out->mlp_matrix, layer->mlp_matrix);
    raise_to(&out->shared_matrix, layer->shared_matrix);
    raise_to(&out->expert_matrix, layer->expert_matrix);
}

static void add_layers(const struct terms *t, const struct slot *slot, double imbalance,
                       uint32_t *n_before, struct stage *out)
{
    const struct ty_model *model = &t->setting->model;
    const bool partly = t->plan->recompute == TY_RECOMPUTE_FULL && t->plan->recompute_layers;
    for (uint32_t i = 0; i < slot->n_layers; i++) {
        const struct layer_memory *layer = &t->kind[model->layer_kind[slot->first_layer + i]];
        const bool stays = partly && *n_before >= t->plan->recompute_layers;
        const struct amount kept = stays ? layer->all : layer->kept;
        const double rerun = amount_bytes(layer->all, imbalance) - amount_bytes(kept, imbalance);
        const bool leaves = offload_layer(t->plan, *n_before);
        struct amount *sum = leaves ? &out->offloaded : &out->kept;
        *n_before += 1;
        out->dense += layer->dense;
        out->expert += layer->expert;
        out->adapter += layer->adapter;
        sum->fixed += kept.fixed;
        sum->routed += kept.routed;
        raise_to(&out->offload_buffer, leaves ? amount_bytes(kept, imbalance) : 0.0);
        raise_largest(layer, rerun, imbalance, out);
    }
}

/* Embedding on the first stage, head on the last; a tied table is on both when they differ. */
static void add_ends(const struct terms *t, struct stage *out)
{
    const struct ty_model *model = &t->setting->model;
    const double h = model->hidden, norm = model->norm == TY_NORM_LAYER ? 2.0 : 1.0;
    if (out->embedding)
        out->dense +=
            t->table + model->learned_positions * h + (model->embedding_norm ? h * norm : 0.0);
    if (!out->head)
        return;
    out->dense += model->final_norm ? h * norm : 0.0;
    if (!model->tied || !out->embedding)
        out->dense += t->table;
    if (model->head_bias)
        out->dense += t->table / h;
}

/* MTP modules: the last kind of layer, a 2h x h projection and three norms each; they read the
 * embedding too, so their stage holds a copy of it. */
static void add_mtp(const struct terms *t, double imbalance, struct stage *out)
{
    const struct ty_model *model = &t->setting->model;
    if (!out->mtp || !model->n_mtp)
        return;
    const double h = model->hidden, norm = model->norm == TY_NORM_LAYER ? 2.0 : 1.0;
    const struct layer_memory *layer = &t->kind[model->layer_kind[model->n_layers - 1]];
    const double n = model->n_mtp;
    const double hidden = 2.0 * h * t->tokens / (t->plan->sp == TY_ON ? t->plan->tp : 1);
    out->dense += n * (layer->dense + 2.0 * h * h / t->plan->tp + 3.0 * h * norm);
    out->expert += n * layer->expert;
    if (!out->embedding && !(model->tied && out->head))
        out->dense += t->table;
    out->kept.fixed += n * (layer->kept.fixed + 4.0 * hidden); /* two normed inputs, joined */
    out->kept.routed += n * layer->kept.routed;
    out->adapter += n * layer->adapter;
    raise_largest(layer, amount_bytes(layer->all, imbalance) - amount_bytes(layer->kept, imbalance),
                  imbalance, out);
}

static void sum_stage(const struct terms *t, uint32_t stage, double imbalance, struct stage *out)
{
    *out = (struct stage){0};
    uint32_t n_layers = 0;
    for (uint32_t chunk = 0; chunk < t->pipeline.n_chunks; chunk++) {
        const uint32_t place = chunk * t->plan->pp + stage;
        const struct slot *slot = &t->slots[pipeline_slot(&t->pipeline, place)];
        add_layers(t, slot, imbalance, &n_layers, out);
        out->embedding |= slot->embedding;
        out->head |= slot->head;
        out->mtp |= slot->mtp || (slot->head && !slot->bare);
    }
    add_ends(t, out);
    add_mtp(t, imbalance, out);
}

double memory_in_flight(const struct ty_plan *plan, uint32_t stage)
{
    const struct pipeline pipeline = pipeline_of(plan);
    return pipeline_in_flight(&pipeline, stage);
}

static void states(const struct terms *t, const struct stage *sum, double bytes[TY_N_MEM])
{
    if (t->setting->model.lora_rank) { /* frozen base: its weights only, in 16 bits or fewer */
        const bool fp8 = memory_fp8_lora(t->setting, t->plan, t->habits);
        const double frozen = (fp8 ? precision_bytes((enum ty_precision)t->plan->precision) : 2.0) /
                              memory_weight_bytes(t->plan, t->habits);
        bytes[TY_MEM_WEIGHTS] =
            frozen * (t->dense.weights * sum->dense + t->expert.weights * sum->expert) +
            t->dense.weights * sum->adapter;
        bytes[TY_MEM_GRADS] = t->dense.gradients * sum->adapter;
        bytes[TY_MEM_OPTIMIZER] = t->dense.optimizer * sum->adapter;
        return;
    }
    bytes[TY_MEM_WEIGHTS] = t->dense.weights * sum->dense + t->expert.weights * sum->expert;
    bytes[TY_MEM_GRADS] = t->dense.gradients * sum->dense + t->expert.gradients * sum->expert;
    bytes[TY_MEM_OPTIMIZER] = t->dense.optimizer * sum->dense + t->expert.optimizer * sum->expert;
}

/* Buffers beside replicated parameters: 16-bit weight gradients, or DeepSpeed's two flat buckets.
 */
static double plain_buffers(const struct terms *t, const struct stage *sum)
{
    const struct ty_plan *plan = t->plan;
    const bool zero = plan->sharding != TY_SHARDING_NONE;
    if (t->habits->two_gradients && zero && plan->pp == 1)
        return 4.0 * fmin(sum->dense + sum->expert, BUCKET_PARAMS);
    if (!t->habits->dummy_wgrads || plan->grad_dtype != TY_FP32_PRECISION)
        return 0.0;
    return 2.0 *
           (sum->attention_matrix + sum->mlp_matrix + sum->shared_matrix + sum->expert_matrix);
}

/* FSDP: gathered 16-bit parameters, and gradients before they are scattered. In a pipeline the
 * gradients of all micro-batches add up unsharded (fp32): ACCURACY-2 2.12. DeepSpeed bounds both.
 */
static double buffers(const struct terms *t, const struct stage *sum)
{
    const struct ty_plan *plan = t->plan;
    const bool frozen = t->setting->model.lora_rank > 0;
    if (!memory_shards_params(plan))
        return frozen ? 0.0 : plain_buffers(t, sum);
    const double all = sum->dense + sum->expert;
    if (t->habits->two_gradients)
        return 2.0 * fmin(fmax(LIVE_PARAMS, sum->mlp_matrix), all) + 4.0 * fmin(BUCKET_PARAMS, all);
    const double gathered = plan->reshard_after_forward == TY_ON ? LIVE_UNITS * sum->unit : all;
    const double unscattered = frozen ? 0.0 : plan->pp > 1 ? all : sum->unit;
    return 2.0 * fmin(gathered, all) + 4.0 * unscattered;
}

/* Logits of one loss, and what else is alive at that moment. */
static void head(const struct terms *t, const struct stage *sum, double *logits_bytes,
                 double *work_bytes)
{
    const struct ty_model *model = &t->setting->model;
    const struct ty_profile *profile = &t->setting->profile;
    const double hidden = t->tokens * model->hidden;
    const double logits = t->tokens * t->table / model->hidden;
    double kept = profile->logits_bytes, work = profile->logits_work_bytes;
    if (t->plan->compile == TY_ON) {
        kept = fmin(kept, profile->logits_compiled_bytes);
        work = profile->logits_compiled_bytes - kept;
    }
    *logits_bytes = kept * logits * (1.0 + model->n_mtp);
    *work_bytes = work * logits + 4.0 * hidden;
    if (!memory_shards_params(t->plan) && !model->lora_rank)
        *work_bytes += 2.0 * t->table; /* FSDP's is among the unscattered gradients */
    if (t->habits->loss_stays && t->plan->recompute == TY_RECOMPUTE_FULL)
        *work_bytes += sum->rerun_bytes;
}

/* What the plan offloads. DeepSpeed's CPU optimizer takes the gradients with it. */
static void move_to_host(const struct terms *t, const struct stage *sum, double imbalance,
                         struct ty_stage_memory *out)
{
    double *bytes = out->bytes;
    out->host_bytes = out->in_flight * amount_bytes(sum->offloaded, imbalance) / t->copies;
    if (!offload_optimizer(t->plan))
        return;
    const bool states = offload_states(t->plan), gradients = states || t->habits->two_gradients;
    out->host_bytes += bytes[TY_MEM_OPTIMIZER] + (gradients ? bytes[TY_MEM_GRADS] : 0.0) +
                       (states ? bytes[TY_MEM_WEIGHTS] : 0.0);
    bytes[TY_MEM_OPTIMIZER] = 0.0;
    bytes[TY_MEM_GRADS] *= gradients ? 0.0 : 1.0;
    bytes[TY_MEM_WEIGHTS] *= states ? 0.0 : 1.0;
}

static void stage_memory(const struct terms *t, uint32_t stage, double imbalance,
                         struct ty_stage_memory *out)
{
    struct stage sum;
    sum_stage(t, stage, imbalance, &sum);
    out->in_flight = pipeline_in_flight(&t->pipeline, stage);
    states(t, &sum, out->bytes);
    double logits_bytes = 0.0, head_bytes = 0.0;
    out->bytes[TY_MEM_ACTIVATIONS] =
        out->in_flight * amount_bytes(sum.kept, imbalance) / t->copies +
        OFFLOAD_SETS * sum.offload_buffer;
    move_to_host(t, &sum, imbalance, out);
    const double hidden_bytes =
        2.0 * t->tokens * t->setting->model.hidden / (t->plan->sp == TY_ON ? t->plan->tp : 1);
    if (sum.head) {
        head(t, &sum, &logits_bytes, &head_bytes);
        out->bytes[TY_MEM_ACTIVATIONS] += 2.0 * hidden_bytes; /* inputs of final norm and head */
    } else if (t->habits->outputs_stay) {
        out->bytes[TY_MEM_ACTIVATIONS] += out->in_flight * hidden_bytes;
    }
    if (t->habits->frees_gradients && t->plan->n_micro == 1)
        out->bytes[TY_MEM_GRADS] -= fmin(out->bytes[TY_MEM_GRADS], out->bytes[TY_MEM_ACTIVATIONS]);
    out->bytes[TY_MEM_LOGITS] = logits_bytes;
    out->bytes[TY_MEM_TRANSIENT] = fmax(head_bytes, sum.working_bytes - logits_bytes);
    out->bytes[TY_MEM_BUFFERS] =
        buffers(t, &sum) + (t->setting->model.lora_rank > 0
                                ? 0.0
                                : compression_held_bytes(t->plan, sum.dense + sum.expert));
    double used_bytes = 0.0;
    for (int i = 0; i < TY_MEM_RUNTIME; i++)
        used_bytes += out->bytes[i];
    const bool compiled = t->plan->compile == TY_ON && t->plan->pp == 1;
    const struct ty_profile *profile = &t->setting->profile;
    const double held = compiled ? profile->reserve_compiled_ratio : profile->reserve_ratio;
    out->bytes[TY_MEM_RUNTIME] = t->setting->cluster.mem_reserved_bytes;
    out->bytes[TY_MEM_RESERVE] = (held - 1.0) * used_bytes;
    out->total_bytes = used_bytes + out->bytes[TY_MEM_RUNTIME] + out->bytes[TY_MEM_RESERVE];
}

/* ---- interface ---------------------------------------------------------------------------- */

void memory_rank_params(const struct setting *setting, const struct ty_plan *plan,
                        const struct slot *slots, uint32_t stage, double *dense, double *expert)
{
    struct terms terms;
    struct stage sum;
    terms_init(setting, plan, slots, &terms);
    sum_stage(&terms, stage, 1.0, &sum);
    *dense = sum.dense;
    *expert = sum.expert;
}

double memory_layer_activation_bytes(const struct setting *setting, const struct ty_plan *plan,
                                     const struct ty_layer_kind *kind)
{
    struct layer_memory layer;
    memory_layer(setting, plan, stack_habits(setting->profile.stack),
                 (uint32_t)(kind - setting->model.kinds), &layer);
    return amount_bytes(layer.kept, memory_imbalance(plan));
}

void memory_stages(const struct setting *setting, const struct ty_plan *plan,
                   const struct slot *slots, struct ty_stage_memory *out)
{
    struct terms terms;
    terms_init(setting, plan, slots, &terms);
    for (uint32_t stage = 0; stage < plan->pp; stage++)
        stage_memory(&terms, stage, memory_imbalance(plan), &out[stage]);
}

static double peak_at(const struct terms *t, double imbalance)
{
    double peak = 0.0;
    for (uint32_t stage = 0; stage < t->plan->pp; stage++) {
        struct ty_stage_memory memory;
        stage_memory(t, stage, imbalance, &memory);
        peak = fmax(peak, memory.total_bytes);
    }
    return peak;
}

#define SLOPE_STEP 1e-3

/* The peak is convex and piecewise linear in the imbalance, so Newton's method from the right,
 * with the slope to the right of each point, lands on the limit from above after about as many
 * steps as there are pieces. The most one rank can get is all tokens: imbalance ep. */
static double find_imbalance_limit(const struct setting *setting, const struct ty_plan *plan,
                                   const struct slot *slots, double budget_bytes)
{
    struct terms terms;
    terms_init(setting, plan, slots, &terms);
    double x = plan->ep, peak = peak_at(&terms, x);
    if (peak <= budget_bytes)
        return (double)INFINITY;
    for (int step = 0; step < 20 && peak > budget_bytes * (1.0 + 1e-12); step++) {
        const double slope = (peak_at(&terms, x + SLOPE_STEP) - peak) / SLOPE_STEP;
        if (!(slope > 0.0))
            return 0.0; /* too large without any routed token */
        x -= (peak - budget_bytes) / slope;
        peak = peak_at(&terms, x);
    }
    return fmax(x, 0.0);
}

/* Share of its reserve that the allocator cannot give back when the device is full. Lies between
 * what the BigScience run with the most activations (bs-038) and the 80 GB verdict of torchtitan's
 * table (case M01) allow: 0.83 to 0.88. */
#define FIRM_RESERVE 0.85

/* DeepSpeed without ZeRO takes its states at once, before the first step, so none of the reserve is
 * theirs; its fp32 copy of fp16 gradients lives in the optimizer's step, when activations have
 * gone. A device that is not full shows neither. returns what can be given back. */
static double spare_bytes(const struct setting *setting, const struct ty_plan *plan,
                          const struct ty_stage_memory *peak)
{
    const double *bytes = peak->bytes;
    const double used_bytes = peak->total_bytes - bytes[TY_MEM_RUNTIME] - bytes[TY_MEM_RESERVE];
    struct state_bytes each;
    if (!stack_habits(setting->profile.stack)->two_gradients || offload_optimizer(plan) ||
        plan->sharding != TY_SHARDING_NONE || !(used_bytes > 0.0))
        return 0.0;
    memory_state_bytes(setting, plan, false, &each);
    const double copy = bytes[TY_MEM_OPTIMIZER] * memory_gradient_copy_bytes(plan) / each.optimizer;
    const double shared =
        fmin(copy, bytes[TY_MEM_ACTIVATIONS] + bytes[TY_MEM_LOGITS] + bytes[TY_MEM_TRANSIENT]);
    const double held = FIRM_RESERVE * bytes[TY_MEM_RESERVE] / used_bytes;
    return shared + held * (shared + bytes[TY_MEM_OPTIMIZER] - copy);
}

void memory_judge(const struct setting *setting, const struct ty_plan *plan,
                  const struct slot *slots, const struct ty_stage_memory *stages,
                  struct memory_verdict *out)
{
    out->peak_stage = 0;
    for (uint32_t stage = 1; stage < plan->pp; stage++)
        if (stages[stage].total_bytes > stages[out->peak_stage].total_bytes)
            out->peak_stage = stage;
    const struct ty_stage_memory *peak = &stages[out->peak_stage];
    const double device_bytes = setting->cluster.gpu.mem_bytes;
    out->peak_bytes = peak->total_bytes;
    out->budget_bytes = device_bytes * setting->profile.usable_ratio;
    out->headroom_bytes = out->budget_bytes - out->peak_bytes;
    const double firm_bytes = out->peak_bytes - (1.0 - FIRM_RESERVE) * peak->bytes[TY_MEM_RESERVE] -
                              spare_bytes(setting, plan, peak);
    out->fit = out->headroom_bytes >= 0.0   ? TY_FIT_YES
               : firm_bytes <= device_bytes ? TY_FIT_TIGHT
                                            : TY_FIT_NO;
    out->host_bytes = 0.0;
    for (uint32_t stage = 0; stage < plan->pp; stage++)
        raise_to(&out->host_bytes, stages[stage].host_bytes * offload_gpus_per_host(setting, plan));
    if (out->host_bytes > setting->cluster.host_mem_bytes)
        out->fit = TY_FIT_NO;
    out->largest = TY_MEM_WEIGHTS;
    for (int i = 0; i < TY_N_MEM; i++)
        if (peak->bytes[i] > peak->bytes[out->largest])
            out->largest = (enum ty_mem)i;
    bool experts = false;
    for (uint32_t i = 0; i < setting->model.n_kinds; i++)
        experts |= setting->model.kinds[i].mlp == TY_MLP_MOE;
    out->imbalance_limit = (double)NAN;
    if (experts && plan->ep > 1)
        out->imbalance_limit = find_imbalance_limit(setting, plan, slots, out->budget_bytes);
    else if (experts)
        out->imbalance_limit = (double)INFINITY; /* every rank has all experts */
}

const char *ty_mem_name(enum ty_mem component)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_MEM_LIST(X)
#undef X
    };
    return (uint32_t)component < TY_N_MEM ? names[component] : "unknown";
}

const char *ty_fit_name(enum ty_fit fit)
{
    return fit == TY_FIT_YES ? "fits" : fit == TY_FIT_TIGHT ? "tight" : "no";
}
