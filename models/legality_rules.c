/* SPDX-License-Identifier: MIT
 *
 * The rules a plan must keep (handbook 11.1). Each is one row: name, class, a test and its text.
 */
#include "models/legality_rules.h"
#include "models/fields.h"
#include "models/grid.h"

#include <stddef.h>

#define MAX_GPUS   16777216u /* the limits of the plan's field table */
#define MAX_SPLIT  65536u
#define MAX_MICRO  1048576u
#define MAX_TOKENS 1073741824u

#define KNOB(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct ty_plan, member)                                                  \
    }
/* true when `broken` holds for a layer kind; remembers which. */
static bool any_kind(struct scope *scope,
                     bool (*broken)(const struct ty_plan *plan, const struct ty_layer_kind *kind))
{
    const struct ty_model *model = &scope->setting->model;
    for (uint32_t i = 0; i < model->n_kinds; i++)
        if (broken(scope->plan, &model->kinds[i])) {
            scope->kind = &model->kinds[i];
            return true;
        }
    return false;
}

/* ---- sizes and switches ------------------------------------------------------------------- */

static bool in_range(uint32_t size, uint32_t max)
{
    return size >= 1 && size <= max;
}

static bool sizes_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    return !(in_range(p->n_gpus, MAX_GPUS) && in_range(p->tp, MAX_SPLIT) &&
             in_range(p->cp, MAX_SPLIT) && in_range(p->ep, MAX_SPLIT) &&
             in_range(p->etp, MAX_SPLIT) && in_range(p->pp, TY_MAX_LAYERS) &&
             in_range(p->vpp, TY_MAX_LAYERS) && in_range(p->mbs, MAX_MICRO) &&
             in_range(p->gbs, MAX_TOKENS) && in_range(p->seq, MAX_TOKENS));
}

static void sizes_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("a size is 0 or beyond its limit: gpus %u, tp %u, pp %u, vpp %u, cp %u, ep %u, etp %u, "
        "mbs %u, gbs %u, seq %u",
        p->n_gpus, p->tp, p->pp, p->vpp, p->cp, p->ep, p->etp, p->mbs, p->gbs, p->seq);
    LEGAL("gpus up to %u; tp, cp, ep, etp up to %u; pp, vpp up to %u", MAX_GPUS, MAX_SPLIT,
          (unsigned)TY_MAX_LAYERS);
}

static bool chosen(int value, int last)
{
    return value >= 1 && value <= last;
}

static bool switches_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    const bool grads = p->grad_dtype == TY_FP32_PRECISION || p->grad_dtype == TY_BF16_PRECISION;
    return !(
        grads && chosen(p->precision, TY_N_PRECISIONS - 1) &&
        chosen(p->recompute, TY_RECOMPUTE_FULL) && chosen(p->sharding, TY_SHARDING_HSDP) &&
        chosen(p->reshard_after_forward, TY_ON) && chosen(p->optimizer, TY_OPTIMIZER_ADAM_16BIT) &&
        chosen(p->attention, TY_KERNEL_UNFUSED) && chosen(p->schedule, TY_SCHEDULE_DUALPIPEV) &&
        chosen(p->sp, TY_ON) && chosen(p->dispatcher, TY_DISPATCHER_DEEPEP) &&
        chosen(p->cp_scheme, TY_CP_ULYSSES) && chosen(p->cuda_graph, TY_ON) &&
        chosen(p->compile, TY_ON) && chosen(p->launch_blocking, TY_ON) &&
        chosen(p->recompute_early, TY_ON) && chosen(p->offload, TY_OFFLOAD_STATES));
}

static void switches_tell(const struct scope *s, struct ty_violation *out)
{
    (void)s;
    SAY("a switch of the plan has a value that is not in its list, or the gradients are neither "
        "fp32 nor bf16");
    LEGAL("the names listed for each field of a plan");
}

static bool offload_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    return p->offload == TY_OFFLOAD_STATES &&
           !((p->sharding == TY_SHARDING_ZERO3 || p->sharding == TY_SHARDING_HSDP) &&
             p->reshard_after_forward == TY_ON);
}

static void offload_tell(const struct scope *s, struct ty_violation *out)
{
    (void)s;
    SAY("offload states: parameters that live on the host must be gathered layer by layer");
    LEGAL("sharding zero3 or hsdp with reshard_after_forward on; offload optimizer");
}

static bool imbalance_broken(struct scope *s)
{
    return !(s->plan->moe_imbalance >= 1.0 && s->plan->moe_imbalance <= 1e6);
}

static void imbalance_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("moe_imbalance %g: the busiest rank has at least the mean load", s->plan->moe_imbalance);
    LEGAL("1 to 1e6");
}

static bool order_broken(struct scope *s)
{
    enum axis axes[4];
    return !grid_order(s->plan->order, false, axes);
}

static void order_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("order \"%.31s\" is not a sequence of tp, cp, ep, dp and pp that starts with tp",
        s->plan->order);
    LEGAL("tp-cp-ep-dp-pp, tp-cp-ep-pp-dp");
}

/* ---- GPU count ------------------------------------------------------------------------------ */

static bool gpus_broken(struct scope *s)
{
    return s->plan->n_gpus % s->dense_ranks != 0;
}

static void gpus_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("%u GPUs are not a multiple of tp*cp*pp = %u*%u*%u = %llu", p->n_gpus, p->tp, p->cp, p->pp,
        (unsigned long long)s->dense_ranks);
    LEGAL("gpus: a multiple of %llu", (unsigned long long)s->dense_ranks);
}

static bool expert_gpus_broken(struct scope *s)
{
    const bool experts = s->plan->ep > 1 || s->plan->etp > 1; /* else the rule before says it */
    return experts && s->plan->n_gpus % s->expert_ranks != 0;
}

static void expert_gpus_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("%u GPUs are not a multiple of etp*ep*pp = %u*%u*%u = %llu", p->n_gpus, p->etp, p->ep,
        p->pp, (unsigned long long)s->expert_ranks);
    LEGAL("gpus: a multiple of %llu", (unsigned long long)s->expert_ranks);
}

static bool cluster_broken(struct scope *s)
{
    const struct ty_cluster *cluster = &s->setting->cluster;
    return cluster->n_nodes &&
           s->plan->n_gpus > (uint64_t)cluster->n_nodes * cluster->gpus_per_node;
}

static void cluster_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_cluster *cluster = &s->setting->cluster;
    const uint64_t all = (uint64_t)cluster->n_nodes * cluster->gpus_per_node;
    SAY("%u GPUs asked for, the cluster has %u nodes of %u = %llu", s->plan->n_gpus,
        cluster->n_nodes, cluster->gpus_per_node, (unsigned long long)all);
    LEGAL("gpus up to %llu", (unsigned long long)all);
}

static bool stages_broken(struct scope *s)
{
    return s->plan->dp && s->plan->edp && (s->plan->ep > 1 || s->plan->etp > 1) &&
           !grid_stages_agree(s->plan);
}

static void stages_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("order %.31s puts a pipeline stage on other ranks for the experts (etp*ep = %u*%u) than "
        "for "
        "the rest (tp*cp = %u*%u)",
        p->order, p->etp, p->ep, p->tp, p->cp);
    LEGAL("an order with pp last, or etp*ep = tp*cp");
}

/* ---- heads and widths ----------------------------------------------------------------------- */

static bool has_heads(const struct ty_layer_kind *kind)
{
    return kind->attention != TY_ATTENTION_NONE && kind->n_heads;
}

/* K/V heads of a kind; MLA has as many as query heads. */
static uint32_t kv_heads(const struct ty_layer_kind *kind)
{
    return kind->attention == TY_ATTENTION_MLA || !kind->n_kv_heads ? kind->n_heads
                                                                    : kind->n_kv_heads;
}

static bool kind_heads(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    return has_heads(kind) && kind->n_heads % plan->tp != 0;
}

static bool heads_broken(struct scope *s)
{
    return any_kind(s, kind_heads);
}

static void heads_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("%u attention heads are not a multiple of tp %u", s->kind->n_heads, s->plan->tp);
}

/* Fewer K/V heads than tp are legal: each is then copied to tp / heads ranks. */
static bool kind_kv_heads(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    return has_heads(kind) && kv_heads(kind) % plan->tp != 0 && plan->tp % kv_heads(kind) != 0;
}

static bool kv_heads_broken(struct scope *s)
{
    return any_kind(s, kind_kv_heads);
}

static void kv_heads_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("%u K/V heads and tp %u: neither divides the other, so they can be neither split nor "
        "copied",
        kv_heads(s->kind), s->plan->tp);
}

static bool kind_ffn(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    return (kind->mlp == TY_MLP_DENSE && kind->ffn % plan->tp != 0) ||
           (kind->mlp == TY_MLP_MOE && kind->shared_ffn % plan->tp != 0);
}

static bool ffn_broken(struct scope *s)
{
    return any_kind(s, kind_ffn);
}

static void ffn_tell(const struct scope *s, struct ty_violation *out)
{
    const bool moe = s->kind->mlp == TY_MLP_MOE;
    SAY("the inner size %u of the %s is not a multiple of tp %u",
        moe ? s->kind->shared_ffn : s->kind->ffn, moe ? "shared experts" : "MLP", s->plan->tp);
}

static bool kind_ulysses(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    if (!has_heads(kind))
        return false;
    const uint32_t heads = kind->n_heads / plan->tp;
    const uint32_t kv = kv_heads(kind) > plan->tp ? kv_heads(kind) / plan->tp : 1;
    return heads % plan->cp != 0 || (kv % plan->cp != 0 && plan->cp % kv != 0);
}

static bool ulysses_broken(struct scope *s)
{
    return s->plan->cp > 1 && s->plan->cp_scheme == TY_CP_ULYSSES && any_kind(s, kind_ulysses);
}

static void ulysses_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("all-to-all context parallelism: %u heads and %u K/V heads over tp %u do not split over cp "
        "%u",
        s->kind->n_heads, kv_heads(s->kind), s->plan->tp, s->plan->cp);
}

/* ---- experts -------------------------------------------------------------------------------- */

static bool kind_experts(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    return kind->mlp == TY_MLP_MOE && kind->n_experts % plan->ep != 0;
}

static bool experts_broken(struct scope *s)
{
    return any_kind(s, kind_experts);
}

static void experts_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("%u experts are not a multiple of ep %u", s->kind->n_experts, s->plan->ep);
}

static bool kind_expert_ffn(const struct ty_plan *plan, const struct ty_layer_kind *kind)
{
    return kind->mlp == TY_MLP_MOE && kind->expert_ffn % plan->etp != 0;
}

static bool expert_ffn_broken(struct scope *s)
{
    return any_kind(s, kind_expert_ffn);
}

static void expert_ffn_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("the inner size %u of an expert is not a multiple of etp %u", s->kind->expert_ffn,
        s->plan->etp);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static bool context_broken(struct scope *s)
{
    return s->plan->cp > 1 && s->plan->seq % (2ull * s->plan->cp) != 0;
}

static void context_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("seq %u is not a multiple of 2*cp = %llu: each rank takes two chunks of the causal "
        "triangle",
        s->plan->seq, 2ull * s->plan->cp);
}

static bool sequence_broken(struct scope *s)
{
    return s->plan->sp == TY_ON && s->plan->seq / s->plan->cp % s->plan->tp != 0;
}

static void sequence_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("sequence parallel: seq/cp = %u/%u = %u tokens are not a multiple of tp %u", p->seq, p->cp,
        p->seq / p->cp, p->tp);
    LEGAL("sp off");
}

static bool positions_broken(struct scope *s)
{
    const uint32_t rows = s->setting->model.learned_positions;
    return rows && s->plan->seq > rows;
}

static void positions_tell(const struct scope *s, struct ty_violation *out)
{
    const uint32_t rows = s->setting->model.learned_positions;
    SAY("seq %u is beyond the %u learned positions of the model", s->plan->seq, rows);
    LEGAL("seq up to %u", rows);
}

/* ---- machine and sharding ------------------------------------------------------------------- */

static bool domain_broken(struct scope *s)
{
    return s->plan->tp > s->domain || (s->plan->n_gpus > s->domain && s->domain % s->plan->tp != 0);
}

static void domain_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("tp %u does not stay inside a scale-up domain of %u GPUs (%u GPUs in all)", s->plan->tp,
        s->domain, s->plan->n_gpus);
}

static bool precision_broken(struct scope *s)
{
    return !(gpu_peak_flop_per_s(&s->setting->cluster.gpu, (enum ty_precision)s->plan->precision) >
             0.0);
}

static void precision_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_gpu *gpu = &s->setting->cluster.gpu;
    SAY("the GPU %.47s has no %s matrix units", gpu->name, precision_names[s->plan->precision]);
    for (int i = 1; i < TY_N_PRECISIONS; i++)
        if (gpu_peak_flop_per_s(gpu, (enum ty_precision)i) > 0.0)
            text_append(out->legal, sizeof out->legal, "%s%s", out->legal[0] ? ", " : "precision ",
                        precision_names[i]);
}

static bool zero2_broken(struct scope *s)
{
    return s->plan->sharding == TY_SHARDING_ZERO2 && s->plan->pp > 1;
}

static void zero2_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("zero2 with pp %u: gradients of every micro-batch would be scattered at once", s->plan->pp);
    LEGAL("sharding none, zero1, zero3 or hsdp; or pp 1");
}

/* Sparse and low-rank gradients are exchanged whole: there is no reduce-scatter of them. */
static bool compression_broken(struct scope *s)
{
    return s->plan->grad_compression >= TY_COMPRESSION_TOPK &&
           s->plan->sharding != TY_SHARDING_NONE;
}

static void compression_tell(const struct scope *s, struct ty_violation *out)
{
    SAY("%s gradients with sharded states: they are exchanged whole",
        s->plan->grad_compression == TY_COMPRESSION_TOPK ? "topk" : "powersgd");
    LEGAL("sharding none; or grad_compression bf16, fp8, int8");
}

/* Groups must tile the ranks that hold the same dense parameters, and those of the experts. */
static bool shard_group_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    const uint64_t ranks = (uint64_t)p->dp * p->cp;
    if (!ranks || (p->sharding != TY_SHARDING_ZERO1 && p->sharding != TY_SHARDING_HSDP))
        return false;
    if (!p->shard_group || ranks % p->shard_group != 0)
        return true;
    const bool experts = p->ep > 1 || p->etp > 1;
    return experts && p->edp % (ranks / p->shard_group) != 0;
}

static void shard_group_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    SAY("sharding groups of %u do not tile dp*cp = %u*%u = %llu ranks (edp %u for experts)",
        p->shard_group, p->dp, p->cp, (unsigned long long)p->dp * p->cp, p->edp);
}

/* ---- the list ------------------------------------------------------------------------------- */

const struct rule legality_rules[] = {
    {"sizes", TY_REJECT_OTHER_RULE, sizes_broken, sizes_tell, {{0}}},
    {"switches", TY_REJECT_OTHER_RULE, switches_broken, switches_tell, {{0}}},
    {"gpus", TY_REJECT_GPUS, gpus_broken, gpus_tell, {KNOB(tp), KNOB(pp)}},
    {"expert_gpus", TY_REJECT_GPUS, expert_gpus_broken, expert_gpus_tell, {KNOB(ep)}},
    {"cluster_size", TY_REJECT_GPUS, cluster_broken, cluster_tell, {{0}}},
    {"heads_tp", TY_REJECT_HEADS, heads_broken, heads_tell, {KNOB(tp)}},
    {"kv_heads_tp", TY_REJECT_HEADS, kv_heads_broken, kv_heads_tell, {KNOB(tp)}},
    {"ffn_tp", TY_REJECT_HEADS, ffn_broken, ffn_tell, {KNOB(tp)}},
    {"ulysses_heads", TY_REJECT_HEADS, ulysses_broken, ulysses_tell, {KNOB(cp)}},
    {"experts_ep", TY_REJECT_EXPERTS, experts_broken, experts_tell, {KNOB(ep)}},
    {"expert_ffn_etp", TY_REJECT_EXPERTS, expert_ffn_broken, expert_ffn_tell, {KNOB(etp)}},
    {"chunks", TY_REJECT_LAYERS, chunks_broken, chunks_tell, {{0}}},
    {"layers", TY_REJECT_LAYERS, layers_broken, layers_tell, {KNOB(vpp), KNOB(pp)}},
    {"batch", TY_REJECT_BATCH, batch_broken, batch_tell, {KNOB(mbs)}},
    {"interleave", TY_REJECT_BATCH, interleave_broken, interleave_tell, {{0}}},
    {"dualpipe", TY_REJECT_BATCH, dualpipe_broken, dualpipe_tell, {{0}}},
    {"tp_domain", TY_REJECT_DOMAIN, domain_broken, domain_tell, {KNOB(tp)}},
    {"order", TY_REJECT_OTHER_RULE, order_broken, order_tell, {{0}}},
    {"order_experts", TY_REJECT_OTHER_RULE, stages_broken, stages_tell, {{0}}},
    {"seq_cp", TY_REJECT_OTHER_RULE, context_broken, context_tell, {KNOB(cp)}},
    {"seq_sp", TY_REJECT_OTHER_RULE, sequence_broken, sequence_tell, {KNOB(tp)}},
    {"positions", TY_REJECT_OTHER_RULE, positions_broken, positions_tell, {{0}}},
    {"precision", TY_REJECT_OTHER_RULE, precision_broken, precision_tell, {{0}}},
    {"zero2_pp", TY_REJECT_OTHER_RULE, zero2_broken, zero2_tell, {{0}}},
    {"shard_group", TY_REJECT_OTHER_RULE, shard_group_broken, shard_group_tell, {{0}}},
    {"offload_states", TY_REJECT_OTHER_RULE, offload_broken, offload_tell, {{0}}},
    {"grad_compression", TY_REJECT_OTHER_RULE, compression_broken, compression_tell, {{0}}},
    {"moe_imbalance", TY_REJECT_OTHER_RULE, imbalance_broken, imbalance_tell, {{0}}},
};
_Static_assert(sizeof legality_rules / sizeof legality_rules[0] == LEGALITY_N_RULES, "count");
