/* SPDX-License-Identifier: MIT
 *
 * The second half of a layer: a dense MLP, or a mixture of experts (router, permutation, dispatch
 * all-to-all, grouped GEMMs, combine, shared experts). Backward walks it in reverse; combine's
 * backward is a dispatch of gradients. Source: handbook 1.2, 1.5, 1.6, 2.4; ACCURACY 1.3;
 * ACCURACY-2 2.1-2.3.
 *
 *   rows = tok k / tp * etp * imbalance     routed rows on the worst rank, M of a GEMM: rows e / E
 */
#include "models/layer_parts.h"
#include "models/memory_layer.h"

#include <math.h>

/* Passes of the residual add (ACCURACY 1.3: 5 of its 11 with one norm). */
static const double RESIDUAL_PASSES = 3.0;
/* Passes over an inner activation: gated reads two and writes one, plain reads and writes. */
static const double GATED_PASSES = 3.0, PLAIN_PASSES = 2.0;
/* Permute reads and writes every routed row, unpermute reads it twice and writes; router logits,
 * softmax and top-k per token and expert. Source: ACCURACY 1.3. */
static const double PERMUTE_PASSES = 2.0, UNPERMUTE_PASSES = 3.0, ROUTER_BYTES = 8.0;
/* Share of an all-to-all still exposed when expert traffic is overlapped; source: ACCURACY-2 2.2.
 */
static const double ALL_TO_ALL_EXPOSED = 0.5;
/* Block-scaled FP8: one element and a 4-byte scale per 128; source: handbook 1.6 (UT-1.18). */
static const double FP8_DISPATCH_BYTES = 1.0 + 4.0 / 128.0;

double mlp_n_norms(const struct ty_layer_kind *kind)
{
    if (kind->mlp == TY_MLP_NONE)
        return 0.0;
    return kind->attention == TY_ATTENTION_NONE ? kind->n_norms : kind->n_norms / 2;
}

static double gate_up(const struct build *build)
{
    return build->kind->gated ? 2.0 : 1.0;
}

static double activation_bytes(const struct build *build, double elements)
{
    return (build->kind->gated ? GATED_PASSES : PLAIN_PASSES) * build->w_bytes * elements;
}

static double residual_bytes(const struct build *build)
{
    return RESIDUAL_PASSES * build->w_bytes * build->norm_tok * build->hidden;
}

/* MLPerf's LoRA has adapters on the attention's matrices only; source: training_results_v4.0,
 * NVIDIA llama2_70b_lora, target_modules. Others: on all linears, ACCURACY-2 2.8. */
static double n_adapters(const struct build *build)
{
    return stack_habits(build->setting->profile.stack)->fp8_lora ? 0.0 : 1.0;
}

/* ---- dense MLP, also the shared experts: inner size f of the whole model */

static struct linear first(const struct build *build, const char *name, double f)
{
    return (struct linear){.name = name,
                           .precision = build->plan->precision,
                           .m = build->tok,
                           .n = gate_up(build) * f / build->tp,
                           .k = build->hidden,
                           .n_adapters = n_adapters(build)};
}

static struct linear second(const struct build *build, const char *name, double f)
{
    return (struct linear){.name = name,
                           .precision = build->plan->precision,
                           .m = build->tok,
                           .n = build->hidden,
                           .k = f / build->tp,
                           .n_adapters = n_adapters(build)};
}

static void first_forward(struct build *build, const char *fc1, double f)
{
    const struct linear in = first(build, fc1, f);
    build_column_forward(build, &in);
    build_bytes(build, "activation", activation_bytes(build, build->tok * f / build->tp));
}

static void first_backward(struct build *build, const char *fc1, double f)
{
    const struct linear in = first(build, fc1, f);
    build_bytes_backward(build, "activation", activation_bytes(build, build->tok * f / build->tp));
    build_column_backward(build, &in, true);
}

static void dense_forward(struct build *build, const char *fc1, const char *fc2, double f)
{
    const struct linear out = second(build, fc2, f);
    first_forward(build, fc1, f);
    build_row_forward(build, &out);
}

static void dense_backward(struct build *build, const char *fc1, const char *fc2, double f)
{
    const struct linear out = second(build, fc2, f);
    build_row_backward(build, &out);
    first_backward(build, fc1, f);
}

void mlp_body_forward(struct build *build)
{
    if (build->kind->mlp == TY_MLP_DENSE)
        dense_forward(build, "fc1", "fc2", build->kind->ffn);
}

/* ---- experts */

struct routing {
    double rows;      /* routed rows on this rank, tokens of all expert-TP ranks */
    double groups;    /* experts on this rank */
    double inner;     /* inner size of an expert on this rank */
    double imbalance; /* rows / balanced rows */
};

static struct routing routing_of(const struct build *build)
{
    const struct ty_layer_kind *kind = build->kind;
    const struct ty_plan *plan = build->plan;
    const double imbalance = fmax(plan->moe_imbalance, 1.0);
    return (struct routing){.rows = build->tok * kind->top_k / build->tp * plan->etp * imbalance,
                            .groups = (double)kind->n_experts / plan->ep,
                            .inner = (double)kind->expert_ffn / plan->etp,
                            .imbalance = imbalance};
}

static struct linear expert(const struct build *build, const struct routing *routing, bool in)
{
    return (struct linear){.name = in ? "expert_fc1" : "expert_fc2",
                           .precision = build->plan->precision,
                           .m = routing->rows / routing->groups,
                           .n = in ? gate_up(build) * routing->inner : build->hidden,
                           .k = in ? build->hidden : routing->inner,
                           .groups = routing->groups,
                           .inner = routing->inner,
                           .excess = routing->imbalance,
                           .n_adapters = 1.0};
}

/* tok / tp rows with or without SP: without it each TP rank routes its part. Published flop counts
 * leave the router out. */
static struct linear router(const struct build *build)
{
    return (struct linear){.name = "router",
                           .precision = wide_precision(build->plan->precision),
                           .m = build->tok / build->tp,
                           .n = build->kind->n_experts,
                           .k = build->hidden,
                           .uncounted = true};
}

static double router_bytes(const struct build *build)
{
    return build->setting->profile.permute_ratio * ROUTER_BYTES * build->tok *
           build->kind->n_experts;
}

static double row_bytes(const struct build *build, const struct routing *routing)
{
    return build->setting->profile.permute_ratio * routing->rows * build->hidden * build->w_bytes;
}

/* Dispatch (or combine) among the EP ranks: an all-gather (reduce-scatter) of all tokens, or an
 * all-to-all of rows; the latter with one copy per destination rank and domain if the dispatcher
 * removes duplicates, at most group_limit domains under group-limited routing. */
static struct collective exchange(const struct build *build, const struct routing *routing,
                                  bool dispatch)
{
    const struct ty_layer_kind *kind = build->kind;
    const struct ty_plan *plan = build->plan;
    const double row = build->hidden * build->w_bytes;
    const double domains = build->ep_shape.n_domains;
    struct collective out = {.op = COLLECTIVE_ALL_TO_ALL,
                             .payload_bytes = routing->rows / plan->etp * row,
                             .shape = build->ep_shape};
    if (plan->dispatcher == TY_DISPATCHER_ALLGATHER) {
        out.op = dispatch ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
        out.payload_bytes = build->tok / build->tp * plan->ep * row;
    }
    if (plan->dispatcher == TY_DISPATCHER_DEEPEP) {
        const double limit = kind->group_limit > 0 ? kind->group_limit : domains;
        out.local_copies = collective_distinct_ratio(plan->ep, kind->top_k);
        out.remote_copies = fmin(collective_distinct_ratio(domains, kind->top_k),
                                 fmin(limit, domains) / kind->top_k);
        if (dispatch && precision_bytes(plan->precision) <= 1.0)
            out.payload_bytes *= FP8_DISPATCH_BYTES / build->w_bytes;
    }
    return out;
}

static uint32_t begin_exchange(struct build *build, const struct routing *routing, bool dispatch)
{
    const struct collective collective = exchange(build, routing, dispatch);
    const bool overlap = build->plan->overlap & TY_OVERLAP_EP;
    return build_overlapped(build, TY_PART_EP, &collective, overlap ? ALL_TO_ALL_EXPOSED : 1.0);
}

/* Expert TP: the rows of an expert are gathered from, and reduced to, the ranks that share it. */
static void expert_tp(struct build *build, const struct routing *routing, enum collective_op op)
{
    const struct collective collective = {.op = op,
                                          .payload_bytes =
                                              routing->rows * build->hidden * build->w_bytes,
                                          .shape = build->etp_shape};
    build_collective(build, TY_PART_TP, &collective);
}

/* Without SP every TP rank needs all tokens back that the ranks routed apart. */
static void gather_tokens(struct build *build)
{
    const struct collective gather = build_tp_collective(build, COLLECTIVE_ALL_GATHER);
    if (!build->sp)
        build_collective(build, TY_PART_TP, &gather);
}

void moe_shared_forward(struct build *build)
{
    if (build->kind->mlp == TY_MLP_MOE && build->kind->shared_ffn > 0)
        dense_forward(build, "shared_fc1", "shared_fc2", build->kind->shared_ffn);
}

void moe_activation_forward(struct build *build)
{
    const struct routing routing = routing_of(build);
    if (build->kind->mlp == TY_MLP_MOE)
        build_bytes(build, "activation", activation_bytes(build, routing.rows * routing.inner));
}

/* Expert traffic beside the shared experts only: their first half hides dispatch, their second
 * combine. source: Megatron-Core's moe-shared-expert-overlap. */
static bool beside_shared(const struct build *build)
{
    const uint32_t overlap = build->plan->overlap;
    return (overlap & TY_OVERLAP_SHARED) && !(overlap & TY_OVERLAP_EP) &&
           build->kind->shared_ffn > 0;
}

static uint32_t begin_hidden(struct build *build, const struct routing *routing, bool dispatch)
{
    const struct collective collective = exchange(build, routing, dispatch);
    return build_overlapped(build, TY_PART_EP, &collective, 0.0);
}

static void experts_forward_beside_shared(struct build *build, const struct routing *routing)
{
    const double f = build->kind->shared_ffn;
    const struct linear in = expert(build, routing, true), out = expert(build, routing, false),
                        shared = second(build, "shared_fc2", f);
    const uint32_t dispatch = begin_hidden(build, routing, true);
    first_forward(build, "shared_fc1", f);
    build_join(build, dispatch);
    expert_tp(build, routing, COLLECTIVE_ALL_GATHER);
    build_linear_forward(build, &in);
    moe_activation_forward(build);
    build_linear_forward(build, &out);
    const uint32_t combine = begin_hidden(build, routing, false);
    build_row_forward(build, &shared);
    build_join(build, combine);
}

/* The overlapped share of dispatch runs beside the shared experts and the first expert GEMM, that
 * of combine beside the second: with 1F1B overlap the experts of another micro-batch. */
static void experts_forward(struct build *build, const struct routing *routing)
{
    const struct linear in = expert(build, routing, true), out = expert(build, routing, false);
    const uint32_t dispatch = begin_exchange(build, routing, true);
    moe_shared_forward(build);
    expert_tp(build, routing, COLLECTIVE_ALL_GATHER);
    build_linear_forward(build, &in);
    build_join(build, dispatch);
    moe_activation_forward(build);
    const uint32_t combine = begin_exchange(build, routing, false);
    build_linear_forward(build, &out);
    build_join(build, combine);
}

void moe_body_forward(struct build *build)
{
    const struct routing routing = routing_of(build);
    const struct linear gate = router(build);
    build_linear_forward(build, &gate);
    build_bytes(build, "router", router_bytes(build));
    build_bytes(build, "permute", PERMUTE_PASSES * row_bytes(build, &routing));
    if (beside_shared(build))
        experts_forward_beside_shared(build, &routing);
    else
        experts_forward(build, &routing);
    expert_tp(build, &routing, COLLECTIVE_REDUCE_SCATTER);
    build_bytes(build, "unpermute", UNPERMUTE_PASSES * row_bytes(build, &routing));
    gather_tokens(build);
}

/* Gradients of combine are dispatched (`back`), those of dispatch combined (`forth`). */
static void experts_backward_beside_shared(struct build *build, const struct routing *routing)
{
    const double f = build->kind->shared_ffn;
    const struct linear in = expert(build, routing, true), out = expert(build, routing, false),
                        shared = second(build, "shared_fc2", f);
    uint32_t back = 0, forth = 0;
    if (build->dgrad)
        back = begin_hidden(build, routing, true);
    build_row_backward(build, &shared);
    build_join(build, back);
    if (build->dgrad)
        expert_tp(build, routing, COLLECTIVE_ALL_GATHER);
    build_linear_backward(build, &out);
    build_bytes_backward(build, "activation",
                         activation_bytes(build, routing->rows * routing->inner));
    build_linear_backward(build, &in);
    if (build->dgrad)
        forth = begin_hidden(build, routing, false);
    first_backward(build, "shared_fc1", f);
    build_join(build, forth);
}

static void experts_backward(struct build *build, const struct routing *routing)
{
    const struct linear in = expert(build, routing, true), out = expert(build, routing, false);
    uint32_t back = 0, forth = 0;
    if (build->dgrad) {
        back = begin_exchange(build, routing, true);
        expert_tp(build, routing, COLLECTIVE_ALL_GATHER);
    }
    build_linear_backward(build, &out);
    build_join(build, back);
    build_bytes_backward(build, "activation",
                         activation_bytes(build, routing->rows * routing->inner));
    if (build->dgrad)
        forth = begin_exchange(build, routing, false);
    build_linear_backward(build, &in);
    if (build->kind->shared_ffn > 0)
        dense_backward(build, "shared_fc1", "shared_fc2", build->kind->shared_ffn);
    build_join(build, forth);
}

static void moe_body_backward(struct build *build)
{
    const struct routing routing = routing_of(build);
    const struct linear gate = router(build);
    build_bytes_backward(build, "unpermute", UNPERMUTE_PASSES * row_bytes(build, &routing));
    if (beside_shared(build))
        experts_backward_beside_shared(build, &routing);
    else
        experts_backward(build, &routing);
    if (build->dgrad)
        expert_tp(build, &routing, COLLECTIVE_REDUCE_SCATTER);
    build_bytes_backward(build, "permute", PERMUTE_PASSES * row_bytes(build, &routing));
    build_bytes_backward(build, "router", router_bytes(build));
    build_linear_backward(build, &gate);
    if (build->dgrad)
        gather_tokens(build);
}

void moe_forward(struct build *build)
{
    const struct routing routing = routing_of(build);
    const double weights = routing.groups * (gate_up(build) + 1.0) * routing.inner * build->hidden;
    build_norms_forward(build, mlp_n_norms(build->kind));
    build_casts(build, routing.rows * (build->hidden + routing.inner) +
                           build_cast_weights(build, weights));
    moe_body_forward(build);
    build_bytes(build, "residual", residual_bytes(build));
}

void moe_backward(struct build *build)
{
    const struct routing routing = routing_of(build);
    build_bytes_backward(build, "residual", residual_bytes(build));
    if (build->dgrad)
        build_casts(build, routing.rows * (build->hidden + gate_up(build) * routing.inner));
    moe_body_backward(build);
    build_norms_backward(build, mlp_n_norms(build->kind));
}

/* ---- the half, dense */

void mlp_forward(struct build *build)
{
    const double inner = build->kind->ffn / build->tp;
    const double weights = (gate_up(build) + 1.0) * inner * build->hidden;
    build_norms_forward(build, mlp_n_norms(build->kind));
    build_casts(build, build->tok * (build->hidden + inner) + build_cast_weights(build, weights));
    mlp_body_forward(build);
    build_bytes(build, "residual", residual_bytes(build));
}

void mlp_backward(struct build *build)
{
    const double inner = build->kind->ffn / build->tp;
    build_bytes_backward(build, "residual", residual_bytes(build));
    if (build->dgrad)
        build_casts(build, build->tok * (build->hidden + gate_up(build) * inner));
    dense_backward(build, "fc1", "fc2", build->kind->ffn);
    build_norms_backward(build, mlp_n_norms(build->kind));
}
