/* SPDX-License-Identifier: MIT
 *
 * A plan with every default and derived value filled in. The rules:
 *   - a switch left open takes the default of the software stack, else Megatron-Core's; each is
 *     named in a note, with the plausible alternative when the step time could depend on it;
 *   - a switch given that has no effect in this configuration (expert parallelism of a dense
 *     model, the overlap of a group of one rank, ...) is named as unused and set to its neutral
 *     value, so that equal work means equal resolved plans;
 *   - resolving a resolved plan changes nothing.
 */
#include "models/layout.h"
#include "models/pipeline.h"
#include "models/fields.h"
#include "models/offload.h"
#include "models/routing.h"
#include "models/setting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SEQ_TOKENS 4096
#define DEFAULT_ORDER      "tp-cp-ep-dp-pp"
#define DEFAULT_OVERLAP    (TY_OVERLAP_GRAD | TY_OVERLAP_PARAM | TY_OVERLAP_PP | TY_OVERLAP_CP)

struct resolver {
    const struct setting *setting;
    struct ty_plan *plan;
    struct notes *notes;
};

/* ---- notes ---------------------------------------------------------------------------------- */

static const struct ty_field *plan_field(const char *path)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    return fields_find(fields, n, path);
}

/* Name of an enum value as the user writes it. */
static const char *value_name(const char *path, int value)
{
    const struct ty_field *field = plan_field(path);
    const char *name =
        field && field->type == TY_FIELD_ENUM ? fields_enum_name(field, value) : NULL;
    return name ? name : "?";
}

/* alternative: what the value might plausibly be instead; NAN: nothing interesting. */
static void note_default(const struct resolver *r, const char *path, const char *value,
                         const char *reason, double alternative)
{
    const struct note_origin origin = {TY_KIND_PLAN, path, alternative};
    notes_add(r->notes, TY_NOTE_DEFAULTED, isnan(alternative) ? NULL : &origin, path, reason, "%s",
              value);
}

static void note_unused(const struct resolver *r, const char *path, const char *value,
                        const char *reason)
{
    notes_add(r->notes, TY_NOTE_UNUSED, NULL, path, reason, "%s", value);
}

/* ---- one value at a time -------------------------------------------------------------------- */

static void default_size(const struct resolver *r, uint32_t *size, uint32_t value, const char *path,
                         const char *reason)
{
    if (*size)
        return;
    *size = value;
    if (!r->notes)
        return;
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    note_default(r, path, text, reason, (double)NAN);
}

static void default_enum(const struct resolver *r, int *choice, int value, const char *path,
                         const char *reason, double alternative)
{
    if (*choice)
        return;
    *choice = value;
    if (r->notes)
        note_default(r, path, value_name(path, value), reason,
                     alternative == (double)value ? (double)NAN : alternative);
}

/* The given value changes nothing here: names it, takes the neutral one. */
static void drop_size(const struct resolver *r, uint32_t *size, uint32_t neutral, const char *path,
                      const char *reason)
{
    if (*size && *size != neutral && r->notes) {
        char text[16];
        snprintf(text, sizeof text, "%u", *size);
        note_unused(r, path, text, reason);
    }
    *size = neutral;
}

static void drop_enum(const struct resolver *r, int *choice, int neutral, const char *path,
                      const char *reason)
{
    if (*choice && *choice != neutral && r->notes)
        note_unused(r, path, value_name(path, *choice), reason);
    *choice = neutral;
}

/* ---- what the model has -----------------------------------------------------------------------
 */

struct features {
    bool moe, mla, shared_experts, dense_mlp;
    uint32_t fewest_kv_heads; /* 0: none */
};

static struct features features_of(const struct ty_model *model)
{
    struct features has = {0};
    for (uint32_t i = 0; i < model->n_kinds; i++) {
        const struct ty_layer_kind *kind = &model->kinds[i];
        has.moe |= kind->mlp == TY_MLP_MOE;
        has.shared_experts |= kind->mlp == TY_MLP_MOE && kind->shared_ffn > 0;
        has.dense_mlp |= kind->mlp == TY_MLP_DENSE;
        has.mla |= kind->attention == TY_ATTENTION_MLA;
        if (kind->attention == TY_ATTENTION_HEADS && kind->n_kv_heads &&
            (!has.fewest_kv_heads || kind->n_kv_heads < has.fewest_kv_heads))
            has.fewest_kv_heads = kind->n_kv_heads;
    }
    return has;
}

/* ---- groups of values -------------------------------------------------------------------------
 */

/* a b c, or UINT64_MAX when it does not fit: sizes come from the user. */
static uint64_t product(uint32_t a, uint32_t b, uint32_t c)
{
    const uint64_t ab = (uint64_t)a * b;
    return c && ab > UINT64_MAX / c ? UINT64_MAX : ab * c;
}

/* Least common multiple, UINT32_MAX when it is larger. */
static uint32_t common_multiple(uint64_t a, uint64_t b)
{
    if (a > UINT32_MAX || b > UINT32_MAX)
        return UINT32_MAX;
    uint64_t x = a, y = b;
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    const uint64_t multiple = a / x * b;
    return multiple <= UINT32_MAX ? (uint32_t)multiple : UINT32_MAX;
}

/* The layout that "balanced" stands for; the even one where there is none. */
static void resolve_balance(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    if (strcmp(plan->layout, LAYOUT_BALANCED) != 0)
        return;
    if (layout_balanced(&r->setting->model, product(plan->pp, plan->vpp, 1), plan->layout,
                        sizeof plan->layout))
        return;
    note_unused(r, "layout", LAYOUT_BALANCED, "the chunks are one, or too many to give up a layer");
    memset(plan->layout, 0, sizeof plan->layout);
}

static void resolve_sizes(const struct resolver *r, const struct features *has)
{
    struct ty_plan *plan = r->plan;
    if (!has->moe) {
        drop_size(r, &plan->ep, 1, "ep", "the model has no experts");
        drop_size(r, &plan->etp, 1, "etp", "the model has no experts");
    }
    default_size(r, &plan->tp, 1, "tp", "no tensor parallelism asked for");
    default_size(r, &plan->pp, 1, "pp", "no pipeline asked for");
    default_size(r, &plan->cp, 1, "cp", "no context parallelism asked for");
    default_size(r, &plan->ep, 1, "ep", "no expert parallelism asked for");
    default_size(r, &plan->etp, 1, "etp", "experts are not split");
    uint32_t laid = 0; /* chunks of a layout of its own */
    if (plan->layout[0] && plan->vpp == 0 && plan->pp > 0 &&
        layout_parse(plan->layout, NULL, 0, &laid, NULL) && laid % plan->pp == 0)
        plan->vpp = laid / plan->pp;
    const uint32_t chunks = pipeline_fixed_chunks((enum ty_schedule)plan->schedule);
    if (chunks == 1)
        drop_size(r, &plan->vpp, 1, "vpp", "only interleaved, zb-v and dualpipev have chunks");
    else if (chunks > 1)
        default_size(r, &plan->vpp, chunks, "vpp", "the chunks of a stage in this schedule");
    else if (plan->pp == 1 && plan->vpp == 0)
        plan->vpp = 1;
    default_size(r, &plan->vpp, 1, "vpp", "one chunk of layers per stage");
    resolve_balance(r);
    default_size(r, &plan->n_gpus,
                 common_multiple(product(plan->tp, plan->cp, plan->pp),
                                 product(plan->etp, plan->ep, plan->pp)),
                 "gpus", "one replica: the smallest count tp, cp, pp, ep and etp allow");
    if (plan->order[0] == '\0')
        snprintf(plan->order, sizeof plan->order, "%s", DEFAULT_ORDER);
}

/* dp, edp and n_micro: 0 where they are no whole numbers; legality then says why. */
static void derive_counts(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    const uint64_t dense = product(plan->tp, plan->cp, plan->pp);
    const uint64_t expert = product(plan->etp, plan->ep, plan->pp);
    plan->dp = plan->n_gpus % dense == 0 ? (uint32_t)(plan->n_gpus / dense) : 0;
    plan->edp = plan->n_gpus % expert == 0 ? (uint32_t)(plan->n_gpus / expert) : 0;
    default_size(r, &plan->mbs, 1, "mbs", "one sequence per micro-batch");
    const uint64_t gbs = product(plan->dp ? plan->dp : 1, plan->mbs, plan->pp);
    default_size(r, &plan->gbs, gbs <= UINT32_MAX ? (uint32_t)gbs : UINT32_MAX, "gbs",
                 "as many micro-batches as pipeline stages");
    const uint64_t round = (uint64_t)plan->mbs * plan->dp;
    plan->n_micro = round && plan->gbs % round == 0 ? (uint32_t)(plan->gbs / round) : 0;
}

static void resolve_tokens(const struct resolver *r)
{
    const struct ty_model *model = &r->setting->model;
    const uint32_t longest = model->max_seq ? model->max_seq : model->learned_positions;
    const bool shorter = longest && longest < DEFAULT_SEQ_TOKENS;
    default_size(r, &r->plan->seq, shorter ? longest : DEFAULT_SEQ_TOKENS, "seq",
                 shorter ? "the longest sequence of the model" : "a usual pretraining length");
    if (longest && r->plan->seq > longest && !model->learned_positions)
        notes_add(r->notes, TY_NOTE_EXTRAPOLATED, NULL, "seq",
                  "longer than the sequences the model card states", "%u", r->plan->seq);
}

static void resolve_compression(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    if (plan->grad_compression == TY_COMPRESSION_AUTO)
        plan->grad_compression = TY_COMPRESSION_NONE; /* it changes what is trained */
    if ((uint64_t)plan->dp * plan->cp == 1)
        drop_enum(r, &plan->grad_compression, TY_COMPRESSION_NONE, "grad_compression",
                  "no gradients are exchanged");
    if (plan->grad_compression == TY_COMPRESSION_BF16 && plan->grad_dtype == TY_BF16_PRECISION)
        drop_enum(r, &plan->grad_compression, TY_COMPRESSION_NONE, "grad_compression",
                  "gradients are bf16 already");
    if (plan->grad_compression != TY_COMPRESSION_TOPK) {
        if (!isnan(plan->grad_kept) && plan->grad_kept != 1.0)
            note_unused(r, "grad_kept", "given", "is of topk only");
        plan->grad_kept = 1.0;
    } else if (isnan(plan->grad_kept)) {
        plan->grad_kept = 0.01;
        note_default(r, "grad_kept", "0.01", "usual for topk", 0.001);
    }
    if (plan->grad_compression != TY_COMPRESSION_POWERSGD)
        drop_size(r, &plan->grad_rank, 0, "grad_rank", "is of powersgd only");
    else
        default_size(r, &plan->grad_rank, 4, "grad_rank", "usual for powersgd");
}

static void resolve_precision(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    const struct ty_profile *profile = &r->setting->profile;
    const bool bf16 = gpu_peak_flop_per_s(&r->setting->cluster.gpu, TY_BF16_PRECISION) > 0.0;
    default_enum(r, &plan->precision, bf16 ? TY_BF16_PRECISION : TY_FP16_PRECISION, "precision",
                 bf16 ? "the usual training precision" : "the GPU has no BF16", (double)NAN);
    default_enum(r, &plan->optimizer,
                 profile->default_optimizer ? profile->default_optimizer : TY_OPTIMIZER_ADAM,
                 "optimizer", "default of the stack", (double)NAN);
    default_enum(r, &plan->grad_dtype,
                 profile->default_grad_dtype ? profile->default_grad_dtype : TY_FP32_PRECISION,
                 "grad_dtype", "default of the stack", TY_BF16_PRECISION);
    default_enum(r, &plan->attention,
                 profile->default_attention ? profile->default_attention : TY_KERNEL_FLASH,
                 "attention", "default of the stack", TY_KERNEL_UNFUSED);
    if (plan->offload == TY_OFFLOAD_AUTO)
        plan->offload = TY_OFFLOAD_NONE; /* slower, and never on unasked */
    if (!offload_activations(plan))
        drop_size(r, &plan->offload_layers, 0, "offload_layers",
                  "counts layers whose activations are offloaded");
    resolve_compression(r);
    plan->packed = plan->packed == TY_ON ? TY_ON : TY_OFF; /* pretraining fills its sequences */
    plan->launch_blocking = plan->launch_blocking == TY_ON ? TY_ON : TY_OFF; /* to find bugs with */
    default_enum(r, &plan->cuda_graph, TY_OFF, "cuda_graph", "kernels are launched one by one",
                 TY_ON);
    default_enum(r, &plan->compile, TY_OFF, "compile", "no compiler fuses element-wise kernels",
                 TY_ON);
}

static uint32_t modules_of(const struct features *has)
{
    return TY_MODULE_CORE_ATTN | TY_MODULE_NORM | (has->dense_mlp ? TY_MODULE_MLP : 0u) |
           (has->moe ? TY_MODULE_MOE | TY_MODULE_MOE_ACT : 0u) |
           (has->mla ? TY_MODULE_MLA_UP_PROJ : 0u) |
           (has->shared_experts ? TY_MODULE_SHARED_EXPERTS : 0u);
}

static void resolve_recompute(const struct resolver *r, const struct features *has)
{
    struct ty_plan *plan = r->plan;
    if (!plan->recompute && plan->recompute_modules)
        plan->recompute = TY_RECOMPUTE_SELECTIVE;
    default_enum(r, &plan->recompute, TY_RECOMPUTE_NONE, "recompute",
                 "activations are kept; the fastest where they fit", TY_RECOMPUTE_FULL);
    if (plan->recompute != TY_RECOMPUTE_FULL)
        drop_size(r, &plan->recompute_layers, 0, "recompute_layers",
                  "counts the layers of full recompute only");
    if (plan->recompute != TY_RECOMPUTE_SELECTIVE) {
        drop_size(r, &plan->recompute_modules, 0, "recompute_modules",
                  "lists the modules of selective recompute only");
        return;
    }
    if (plan->recompute_modules == 0)
        plan->recompute_modules = TY_MODULE_CORE_ATTN;
    if (plan->recompute_modules & ~modules_of(has))
        note_unused(r, "recompute_modules", "some", "names modules this model does not have");
    plan->recompute_modules &= modules_of(has);
}

static void resolve_sharding(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    const struct ty_profile *profile = &r->setting->profile;
    const uint64_t all_ranks = (uint64_t)plan->dp * plan->cp;
    const uint32_t all = all_ranks <= UINT32_MAX ? (uint32_t)all_ranks : UINT32_MAX;
    const int choice = profile->default_sharding ? profile->default_sharding : TY_SHARDING_ZERO1;
    default_enum(r, &plan->sharding, choice, "sharding", "default of the stack",
                 all > 1 ? (choice == TY_SHARDING_ZERO1 ? TY_SHARDING_ZERO3 : TY_SHARDING_ZERO1)
                         : (double)NAN);
    switch (plan->sharding) {
    case TY_SHARDING_NONE:
        drop_size(r, &plan->shard_group, 1, "shard_group", "nothing is sharded");
        break;
    case TY_SHARDING_ZERO2:
    case TY_SHARDING_ZERO3:
        drop_size(r, &plan->shard_group, all, "shard_group", "only zero1 and hsdp have groups");
        break;
    default:
        if (plan->shard_group == 0)
            plan->shard_group = all;
    }
    if (plan->sharding == TY_SHARDING_ZERO3 || plan->sharding == TY_SHARDING_HSDP)
        default_enum(r, &plan->reshard_after_forward, plan->pp > 1 ? TY_OFF : TY_ON,
                     "reshard_after_forward",
                     plan->pp > 1 ? "a pipeline keeps gathered parameters"
                                  : "parameters are freed after forward",
                     plan->pp > 1 ? TY_ON : TY_OFF);
    else
        drop_enum(r, &plan->reshard_after_forward, TY_OFF, "reshard_after_forward",
                  "parameters are not sharded");
}

static void resolve_parallel(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    const struct ty_profile *profile = &r->setting->profile;
    if (plan->tp == 1)
        drop_enum(r, &plan->sp, TY_OFF, "sp", "tp is 1");
    default_enum(r, &plan->sp, profile->default_sp ? profile->default_sp : TY_ON, "sp",
                 "default of the stack",
                 profile->default_sp == TY_OFF ? (double)TY_ON : (double)TY_OFF);
    if (plan->cp == 1)
        drop_enum(r, &plan->cp_scheme, TY_CP_RING, "cp_scheme", "cp is 1");
    default_enum(r, &plan->cp_scheme, TY_CP_RING, "cp_scheme", "default of Megatron-Core",
                 TY_CP_ALLGATHER);
    if (plan->pp == 1 && plan->vpp == 1)
        drop_enum(r, &plan->schedule, TY_SCHEDULE_1F1B, "schedule", "pp is 1");
    default_enum(r, &plan->schedule, plan->vpp > 1 ? TY_SCHEDULE_INTERLEAVED : TY_SCHEDULE_1F1B,
                 "schedule", plan->vpp > 1 ? "vpp is above 1" : "default of Megatron-Core",
                 (double)NAN);
    if (plan->schedule != TY_SCHEDULE_INTERLEAVED)
        drop_size(r, &plan->pp_group, 0, "pp_group", "only the interleaved schedule has groups");
    else if (plan->pp_group == 0)
        plan->pp_group = plan->pp;
}

/* Early recompute fills bubbles: it takes a pipeline that recomputes, parameters at hand. */
static void resolve_early(const struct resolver *r)
{
    struct ty_plan *plan = r->plan;
    if (plan->recompute == TY_RECOMPUTE_NONE)
        drop_enum(r, &plan->recompute_early, TY_OFF, "recompute_early", "nothing is recomputed");
    else if (plan->pp == 1)
        drop_enum(r, &plan->recompute_early, TY_OFF, "recompute_early", "pp is 1: no bubble");
    else if (plan->reshard_after_forward == TY_ON && (uint64_t)plan->dp * plan->cp > 1)
        drop_enum(r, &plan->recompute_early, TY_OFF, "recompute_early",
                  "parameters are gathered when the gradient comes");
    if (plan->recompute_early == TY_AUTO)
        plan->recompute_early = TY_OFF;
}

/* What random routing of one micro-batch does to the busiest expert: the least a router will do. */
static double plausible_imbalance(const struct resolver *r)
{
    const struct ty_model *model = &r->setting->model;
    const struct ty_plan *plan = r->plan;
    double worst = 1.0;
    for (uint32_t i = 0; i < model->n_kinds; i++) {
        const struct ty_layer_kind *kind = &model->kinds[i];
        if (kind->mlp == TY_MLP_MOE)
            worst = fmax(worst, routing_random_imbalance((double)plan->mbs * plan->seq / plan->cp,
                                                         kind->top_k, kind->n_experts));
    }
    return worst;
}

static void resolve_experts(const struct resolver *r, const struct features *has)
{
    struct ty_plan *plan = r->plan;
    const bool spread = has->moe && (uint64_t)plan->ep * plan->etp > 1;
    const char *why = has->moe ? "experts are not spread over ranks" : "the model has no experts";
    if (!spread)
        drop_enum(r, &plan->dispatcher, TY_DISPATCHER_ALLTOALL, "dispatcher", why);
    default_enum(r, &plan->dispatcher, TY_DISPATCHER_ALLTOALL, "dispatcher",
                 "default of Megatron-Core", TY_DISPATCHER_DEEPEP);
    const bool given = !isnan(plan->moe_imbalance);
    if (!has->moe || plan->ep == 1) {
        if (given && plan->moe_imbalance > 1.0)
            notes_add(r->notes, TY_NOTE_UNUSED, NULL, "moe_imbalance",
                      has->moe ? "ep is 1: every rank has all experts" : why, "%g",
                      plan->moe_imbalance);
        if (!given || plan->moe_imbalance > 1.0)
            plan->moe_imbalance = 1.0;
    } else if (!given) {
        plan->moe_imbalance = 1.0;
        note_default(r, "moe_imbalance", "1",
                     "tokens spread evenly over expert ranks; real routers are skewed",
                     plausible_imbalance(r));
    }
}

/* Bits of overlap whose communication exists in this plan. */
static uint32_t overlap_with_effect(const struct ty_plan *plan, const struct features *has)
{
    const bool exchange = has->moe && (uint64_t)plan->ep * plan->etp > 1;
    struct ty_plan batch = *plan;
    batch.overlap = TY_OVERLAP_BATCH;
    const bool replicas = (uint64_t)plan->dp * plan->cp > 1;
    const bool sharded = replicas && plan->sharding != TY_SHARDING_NONE;
    return (plan->tp > 1 ? TY_OVERLAP_TP : 0u) | (replicas ? TY_OVERLAP_GRAD : 0u) |
           (sharded ? TY_OVERLAP_PARAM : 0u) | (plan->pp > 1 ? TY_OVERLAP_PP : 0u) |
           (plan->cp > 1 ? TY_OVERLAP_CP : 0u) | (exchange ? TY_OVERLAP_EP : 0u) |
           (exchange && has->shared_experts ? TY_OVERLAP_SHARED : 0u) |
           (exchange && pipeline_of(&batch).joins ? TY_OVERLAP_BATCH : 0u);
}

static void overlap_text(uint32_t overlap, char *text, size_t bytes)
{
    const struct ty_field *field = plan_field("overlap");
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; field && field->names[i] && used + 8 < bytes; i++)
        if (overlap & 1u << i)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? "," : "",
                                     field->names[i]);
    if (used == 0)
        snprintf(text, bytes, "none");
}

static void resolve_overlap(const struct resolver *r, const struct features *has)
{
    struct ty_plan *plan = r->plan;
    const uint32_t stack = r->setting->profile.default_overlap;
    const uint32_t possible = overlap_with_effect(plan, has);
    const bool given = plan->overlap != 0;
    const uint32_t wanted = given ? plan->overlap : stack ? stack : DEFAULT_OVERLAP;
    plan->overlap = (wanted & possible) | TY_OVERLAP_GIVEN;
    if (!(plan->overlap & TY_OVERLAP_TP))
        drop_size(r, &plan->tp_overlap, 0, "tp_overlap", "tp traffic is not overlapped");
    if (!(plan->overlap & (TY_OVERLAP_TP | TY_OVERLAP_CP | TY_OVERLAP_EP | TY_OVERLAP_SHARED)))
        drop_size(r, &plan->comm_sms, 0, "comm_sms", "no collective of a layer is overlapped");
    else if (plan->comm_sms >= r->setting->cluster.gpu.sms)
        drop_size(r, &plan->comm_sms, 0, "comm_sms", "the GPU has no SM beyond these");
    if (!r->notes)
        return;
    char text[32];
    const uint32_t without = wanted & ~possible & ~(uint32_t)TY_OVERLAP_GIVEN;
    if (given && without) {
        overlap_text(without, text, sizeof text);
        note_unused(r, "overlap", text, "this plan has no such communication or cannot hide it");
    }
    if (!given && possible) {
        overlap_text(plan->overlap, text, sizeof text);
        note_default(r, "overlap", text, "default of the stack", (double)NAN);
    }
}

static void note_replicated_heads(const struct resolver *r, const struct features *has)
{
    const uint32_t tp = r->plan->tp, kv_heads = has->fewest_kv_heads;
    if (kv_heads == 0 || kv_heads >= tp || tp % kv_heads != 0)
        return;
    notes_add(r->notes, TY_NOTE_DEFAULTED, NULL, "kv_replication",
              "fewer K/V heads than tp: copies of K/V weights, activations and gradients", "%u",
              tp / kv_heads);
}

/* ---- interface ------------------------------------------------------------------------------- */

void plan_resolve(const struct setting *setting, const struct ty_plan *in, struct ty_plan *out,
                  struct notes *notes)
{
    *out = *in;
    const struct resolver r = {setting, out, notes};
    const struct features has = features_of(&setting->model);
    resolve_sizes(&r, &has);
    derive_counts(&r);
    resolve_tokens(&r);
    resolve_precision(&r);
    resolve_recompute(&r, &has);
    resolve_sharding(&r);
    resolve_parallel(&r);
    resolve_early(&r);
    resolve_experts(&r, &has);
    resolve_overlap(&r, &has);
    note_replicated_heads(&r, &has);
}

ty_status ty_plan_resolve(const struct ty_model *model, const struct ty_cluster *cluster,
                          const struct ty_profile *profile, const struct ty_plan *plan,
                          struct ty_plan *resolved, struct ty_note *notes, uint32_t max_notes,
                          uint32_t *n_notes)
{
    struct setting setting;
    const ty_status status = setting_init(model, cluster, profile, &setting, NULL, NULL);
    if (status != TY_OK)
        return status;
    struct notes found = {0};
    plan_resolve(&setting, plan, resolved, &found);
    if (n_notes)
        *n_notes = found.n;
    for (uint32_t i = 0; notes && i < found.n && i < max_notes; i++)
        notes[i] = found.note[i];
    return TY_OK;
}
