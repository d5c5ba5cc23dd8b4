/* SPDX-License-Identifier: MIT
 *
 * The attention half of a layer: norm, QKV (grouped-query with replicated K/V, or MLA's low-rank
 * pairs), rotary embedding, core (flash, or two batched GEMMs with a softmax), output projection,
 * residual; with its TP and CP communication. Source: handbook 1.2, 1.3, 2.1, 2.3; ACCURACY 1.2,
 * 1.3. */
#include "models/layer_parts.h"
#include "models/memory_layer.h"

#include <math.h>

/* Passes over an element: the residual add reads two and writes one, bias and dropout one more
 * (with the norm 6 of the 11 of ACCURACY 1.3); rotary embedding and query/key norms read and
 * write. */
static const double RESIDUAL_PASSES = 4.0, ROTARY_PASSES = 2.0;
/* Passes over the score matrix of an unfused core besides its products: softmax reads and writes,
 * dropout too, and a mask of a byte; backward: dropout reads gradient and mask and writes, softmax
 * reads gradient and probabilities and writes. Source: Megatron-LM, fused_softmax.py of 2021. */
static const double SCORE_PASSES = 4.5, SCORE_PASSES_BACKWARD = 5.5;
/* Products of attention backward over forward: a flash kernel computes the scores again (5
 * against 2), the model counts 4; source: handbook 1.3. */
static const double FLASH_BACKWARD = 2.5, MODEL_BACKWARD = 2.0;
/* Share of ring traffic exposed although it runs beside the core; source: ACCURACY 1.5 (CP). */
static const double RING_EXPOSED = 0.3;

/* Per-rank sizes of a layer's attention. */
struct sizes {
    double heads, kv_heads;   /* on this rank; K/V replicated when tp exceeds them */
    double qk_dim, v_dim;     /* per head */
    double q_width, kv_width; /* elements of Q, and of K and V together, per token */
    double kv_ratio;          /* K/V work that counts / executed */
};

static struct sizes sizes_of(const struct build *build)
{
    const struct ty_layer_kind *kind = build->kind;
    struct sizes out = {.heads = kind->n_heads / build->tp, .kv_ratio = 1.0};
    if (kind->attention == TY_ATTENTION_MLA) {
        out.kv_heads = out.heads;
        out.qk_dim = (double)kind->qk_nope_dim + kind->qk_rope_dim;
        out.v_dim = kind->v_head_dim;
    } else {
        out.kv_heads = fmax(kind->n_kv_heads / build->tp, 1.0);
        out.kv_ratio = kind->n_kv_heads / build->tp / out.kv_heads;
        out.qk_dim = out.v_dim = kind->head_dim;
    }
    out.q_width = out.heads * out.qk_dim;
    out.kv_width = out.kv_heads * (out.qk_dim + out.v_dim);
    return out;
}

double attention_n_norms(const struct ty_layer_kind *kind)
{
    return kind->attention == TY_ATTENTION_NONE ? 0.0 : kind->n_norms - mlp_n_norms(kind);
}

/* ---- projections */

static struct linear qkv(const struct build *build, const struct sizes *sizes)
{
    const double n = sizes->q_width + sizes->kv_width;
    return (struct linear){.name = "qkv",
                           .precision = build->plan->precision,
                           .m = build->tok,
                           .n = n,
                           .k = build->hidden,
                           .excess = n / (sizes->q_width + sizes->kv_width * sizes->kv_ratio),
                           .n_adapters = 3.0};
}

static struct linear output(const struct build *build, const struct sizes *sizes)
{
    return (struct linear){.name = "proj",
                           .precision = build->plan->precision,
                           .m = build->tok,
                           .n = build->hidden,
                           .k = sizes->heads * sizes->v_dim,
                           .n_adapters = 1.0};
}

/* MLA: down-projections are replicated over TP, so only 1/tp of them counts. A query without
 * low rank is one column-parallel matrix. */
struct mla {
    struct linear q_down, q_up, kv_down, kv_up;
    bool low_rank_q;
};

static struct mla mla_of(const struct build *build, const struct sizes *sizes)
{
    const struct ty_layer_kind *kind = build->kind;
    const struct linear base = {.precision = build->plan->precision,
                                .m = build->tok,
                                .k = build->hidden,
                                .n_adapters = 1.0};
    struct mla out = {base, base, base, base, kind->q_lora_rank > 0};
    out.q_down.name = "q_down";
    out.q_down.n = kind->q_lora_rank;
    out.q_down.excess = build->tp;
    out.q_up.name = "q_up";
    out.q_up.n = sizes->q_width;
    if (out.low_rank_q)
        out.q_up.k = kind->q_lora_rank;
    out.kv_down.name = "kv_down";
    out.kv_down.n = (double)kind->kv_lora_rank + kind->qk_rope_dim;
    out.kv_down.excess = build->tp;
    out.kv_up.name = "kv_up";
    out.kv_up.n = sizes->heads * ((double)kind->qk_nope_dim + kind->v_head_dim);
    out.kv_up.k = kind->kv_lora_rank;
    return out;
}

/* Rotary embedding and query/key norms, forward bytes. */
static double query_key_bytes(const struct build *build, const struct sizes *sizes)
{
    const struct ty_layer_kind *kind = build->kind;
    const double queries_keys = (sizes->heads + sizes->kv_heads) * sizes->qk_dim;
    double elements = build->setting->model.learned_positions > 0 ? 0.0 : queries_keys;
    if (kind->attention == TY_ATTENTION_MLA)
        elements += (double)kind->q_lora_rank + kind->kv_lora_rank;
    else if (kind->qk_norm != TY_QK_NORM_NONE)
        elements += queries_keys;
    return ROTARY_PASSES * build->w_bytes * build->tok * elements;
}

void attention_up_forward(struct build *build)
{
    const struct sizes sizes = sizes_of(build);
    const struct mla mla = mla_of(build, &sizes);
    if (build->kind->attention != TY_ATTENTION_MLA)
        return;
    if (mla.low_rank_q)
        build_linear_forward(build, &mla.q_up);
    build_linear_forward(build, &mla.kv_up);
}

static void projection_forward(struct build *build, const struct sizes *sizes)
{
    const struct linear fused = qkv(build, sizes);
    const struct mla mla = mla_of(build, sizes);
    if (build->kind->attention != TY_ATTENTION_MLA) {
        build_column_forward(build, &fused);
    } else {
        build_column_forward(build, mla.low_rank_q ? &mla.q_down : &mla.q_up);
        build_linear_forward(build, &mla.kv_down);
        attention_up_forward(build);
    }
    build_bytes(build, "query_key", query_key_bytes(build, sizes));
}

static void projection_backward(struct build *build, const struct sizes *sizes)
{
    const struct linear fused = qkv(build, sizes);
    const struct mla mla = mla_of(build, sizes);
    build_bytes_backward(build, "query_key", query_key_bytes(build, sizes));
    if (build->kind->attention != TY_ATTENTION_MLA) {
        build_column_backward(build, &fused, false);
        return;
    }
    build_linear_backward(build, &mla.kv_up);
    if (mla.low_rank_q)
        build_linear_backward(build, &mla.q_up);
    build_linear_backward(build, &mla.kv_down);
    build_column_backward(build, mla.low_rank_q ? &mla.q_down : &mla.q_up, false);
}

/* ---- core */

/* Flop of the two products over the pairs the mask leaves, forward, on this rank. */
static double core_flop(const struct build *build, const struct sizes *sizes)
{
    const struct ty_layer_kind *kind = build->kind;
    const double pairs =
        kernel_attention_pairs(build->plan->seq, kind->window_tokens, kind->window_chunked);
    return 2.0 * (sizes->qk_dim + sizes->v_dim) * sizes->heads * build->plan->mbs * pairs /
           build->plan->cp;
}

/* Heads that one rank computes: Ulysses trades its part of the sequence for a part of the heads. */
static double core_heads(const struct build *build, const struct sizes *sizes)
{
    return build->plan->cp_scheme == TY_CP_ULYSSES ? sizes->heads / build->plan->cp : sizes->heads;
}

static double core_queries(const struct build *build)
{
    const double seq = build->plan->seq;
    return build->plan->cp_scheme == TY_CP_ULYSSES ? seq : seq / build->plan->cp;
}

static void flash(struct build *build, const struct sizes *sizes, bool backward)
{
    const double pairs = build->plan->packed == TY_ON ? build->setting->profile.packed_ratio : 1.0;
    const double flop = pairs * core_flop(build, sizes);
    const double passes = backward ? 2.0 : 1.0; /* of Q, K, V, O: read, and in backward written */
    const struct kernel kernel = {
        .op = KERNEL_ATTENTION,
        .part = TY_PART_ATTENTION,
        .name = "flash",
        .precision = wide_precision(build->plan->precision),
        .backward = backward,
        .batch_heads = build->plan->mbs * core_heads(build, sizes),
        .queries = core_queries(build),
        .seq = build->plan->seq,
        .head_dim = 0.5 * (sizes->qk_dim + sizes->v_dim),
        .flop_model = flop * (backward ? MODEL_BACKWARD : 1.0),
        .flop_hw = flop * (backward ? FLASH_BACKWARD : 1.0),
        .bytes =
            build->tok * (passes * build->w_bytes *
                              (sizes->q_width + sizes->heads * sizes->v_dim + sizes->kv_width) +
                          4.0 * sizes->heads)};
    build_kernel(build, &kernel);
}

/* One product of an unfused core, over the full square; half of it counts under a causal mask. */
static void product(struct build *build, const struct sizes *sizes, bool scores, bool backward)
{
    struct kernel kernel;
    const double seq = build->plan->seq, queries = core_queries(build);
    const double dim = scores ? sizes->qk_dim : sizes->v_dim;
    kernel_gemm(&kernel, scores ? "scores" : "context", wide_precision(build->plan->precision),
                queries, scores ? seq : dim, scores ? dim : seq);
    kernel_repeat(&kernel, KERNEL_GEMM, build->plan->mbs * core_heads(build, sizes));
    kernel.part = TY_PART_ATTENTION;
    kernel.backward = backward;
    kernel.flop_model = core_flop(build, sizes) * dim / (sizes->qk_dim + sizes->v_dim);
    build_kernel(build, &kernel);
}

static void softmax(struct build *build, const struct sizes *sizes, double passes)
{
    build_bytes(build, "softmax",
                passes * build->w_bytes * build->plan->mbs * core_heads(build, sizes) *
                    core_queries(build) * build->plan->seq);
    build->list->item[build->list->n - 1].kernel.part = TY_PART_ATTENTION;
}

/* Each product has two gradients of its own size: ACCURACY 1.2. */
static void unfused(struct build *build, const struct sizes *sizes, bool backward)
{
    const int times = backward ? 2 : 1;
    for (int i = 0; i < times; i++)
        product(build, sizes, true, backward);
    softmax(build, sizes, backward ? SCORE_PASSES_BACKWARD : SCORE_PASSES);
    for (int i = 0; i < times; i++)
        product(build, sizes, false, backward);
}

static void core(struct build *build, const struct sizes *sizes, bool backward)
{
    if (build->plan->attention == TY_KERNEL_UNFUSED)
        unfused(build, sizes, backward);
    else
        flash(build, sizes, backward);
}

/* ---- context parallelism (2.3); backward moves K and V again, then their gradients */

/* PyTorch's ring sends K and V repeated for every head, and their gradients in fp32 all the way
 * round. Each step is merged in fp32 by eager operators: bytes per element of the output below.
 * source: pytorch 2.9 torch/distributed/tensor/experimental/_attention.py, counted */
static const double MERGE_BYTES = 20.0, MERGE_STEP_BYTES = 40.0;
static const double MERGE_BACKWARD_BYTES = 30.0, MERGE_BACKWARD_STEP_BYTES = 66.0;

static void merge(struct build *build, const struct sizes *sizes, bool backward)
{
    struct kernel kernel;
    const double c = build->plan->cp;
    const double bytes = backward ? MERGE_BACKWARD_BYTES + MERGE_BACKWARD_STEP_BYTES * c
                                  : MERGE_BYTES + MERGE_STEP_BYTES * (c - 1.0);
    kernel_bytes(&kernel, "ring_merge", bytes * build->tok * sizes->heads * sizes->v_dim);
    build_kernel(build, &kernel);
}

static double ring_bytes(const struct build *build, const struct sizes *sizes, bool repeated,
                         bool backward)
{
    const double c = build->plan->cp, w = build->w_bytes;
    const double repeated_width = sizes->heads * (sizes->qk_dim + sizes->v_dim);
    if (!repeated)
        return (c - 1.0) * (backward ? 2.0 : 1.0) * w * sizes->kv_width * build->tok;
    return ((c - 1.0) * w + (backward ? 4.0 * c : 0.0)) * repeated_width * build->tok;
}

static void ring(struct build *build, const struct sizes *sizes, bool backward)
{
    const double steps = (build->plan->cp - 1.0) * (backward ? 2.0 : 1.0);
    const bool overlap = build->plan->overlap & TY_OVERLAP_CP;
    const bool repeated = stack_habits(build->setting->profile.stack)->sdpa;
    const struct collective send = {.op = COLLECTIVE_SEND,
                                    .payload_bytes = ring_bytes(build, sizes, repeated, backward),
                                    .shape = build->cp_shape,
                                    .ring_steps = steps};
    if (repeated && build->plan->cp > 1)
        merge(build, sizes, backward);
    const uint32_t handle =
        build_overlapped(build, TY_PART_CP, &send, overlap ? RING_EXPOSED : 1.0);
    core(build, sizes, backward);
    build_join(build, handle);
}

static void gathered(struct build *build, const struct sizes *sizes, bool backward)
{
    struct collective kv = {.op = COLLECTIVE_ALL_GATHER,
                            .payload_bytes =
                                build->plan->cp * sizes->kv_width * build->tok * build->w_bytes,
                            .shape = build->cp_shape};
    build_collective(build, TY_PART_CP, &kv);
    core(build, sizes, backward);
    kv.op = COLLECTIVE_REDUCE_SCATTER;
    if (backward)
        build_collective(build, TY_PART_CP, &kv);
}

static void ulysses(struct build *build, const struct sizes *sizes, bool backward)
{
    const double row_bytes = build->tok * build->w_bytes;
    const struct collective qkv_side = {.op = COLLECTIVE_ALL_TO_ALL,
                                        .payload_bytes =
                                            row_bytes * (sizes->q_width + sizes->kv_width),
                                        .shape = build->cp_shape};
    struct collective out_side = qkv_side;
    out_side.payload_bytes = row_bytes * sizes->heads * sizes->v_dim;
    build_collective(build, TY_PART_CP, backward ? &out_side : &qkv_side);
    core(build, sizes, backward);
    build_collective(build, TY_PART_CP, backward ? &qkv_side : &out_side);
}

static void core_with_cp(struct build *build, const struct sizes *sizes, bool backward)
{
    switch (build->plan->cp_scheme) {
    case TY_CP_ALLGATHER:
        gathered(build, sizes, backward);
        break;
    case TY_CP_ULYSSES:
        ulysses(build, sizes, backward);
        break;
    default:
        ring(build, sizes, backward);
        break;
    }
}

void attention_core_forward(struct build *build)
{
    const struct sizes sizes = sizes_of(build);
    if (build->kind->attention != TY_ATTENTION_NONE && !build->skip_core)
        core_with_cp(build, &sizes, false);
}

/* ---- the half */

/* Casts (ACCURACY 1.4): inputs of both linears and, once per step, the weights; backward: their
 * output gradients. */
static double weight_elements(const struct build *build)
{
    const uint32_t kind = (uint32_t)(build->kind - build->setting->model.kinds);
    return build->setting->params.attention[kind] / build->tp;
}

static double residual_bytes(const struct build *build)
{
    return RESIDUAL_PASSES * build->w_bytes * build->norm_tok * build->hidden;
}

void attention_forward(struct build *build)
{
    const struct sizes sizes = sizes_of(build);
    const struct linear proj = output(build, &sizes);
    if (build->kind->attention == TY_ATTENTION_NONE)
        return;
    build_norms_forward(build, attention_n_norms(build->kind));
    build_casts(build, build->tok * (build->hidden + sizes.heads * sizes.v_dim) +
                           build_cast_weights(build, weight_elements(build)));
    projection_forward(build, &sizes);
    attention_core_forward(build);
    build_row_forward(build, &proj);
    build_bytes(build, "residual", residual_bytes(build));
}

void attention_backward(struct build *build)
{
    const struct sizes sizes = sizes_of(build);
    const struct linear proj = output(build, &sizes);
    if (build->kind->attention == TY_ATTENTION_NONE)
        return;
    build_bytes_backward(build, "residual", residual_bytes(build));
    if (build->dgrad)
        build_casts(build, build->tok * (build->hidden + sizes.q_width + sizes.kv_width));
    build_row_backward(build, &proj);
    if (build->dgrad)
        core_with_cp(build, &sizes, true);
    projection_backward(build, &sizes);
    build_norms_backward(build, attention_n_norms(build->kind));
}
