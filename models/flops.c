/* SPDX-License-Identifier: MIT
 *
 * Flop per token of a training step under the conventions in print (handbook 1.4, variants A..G).
 * p = 3 passes: forward, dgrad, wgrad.
 *
 *   A, B, C  2 p [ sum over layers (matrices + x pairs n (d_qk + d_v)) + h V ]; pairs per token:
 *            causal mask in A, the full square in B and C; x = 2 in C, else 1
 *   D        as B, the layers run once more (full recompute): p + 1 for them, p for the head
 *   E        6 N_mm + 6 L n (d_qk + d_v) s, N_mm: active parameters without look-up tables
 *   F        6 N + 12 L h s
 *   G        6 N_active
 *
 * LoRA freezes the base: the wgrad pass of its matrices falls away. The adapters themselves, under
 * 1 %, are left out, as published figures do.
 */
#include "models/architecture.h"

#include <math.h>

/* Query-key pairs per token of a causal mask. s/2 where nothing is cut off: its error of 1/s is
 * part of the convention. A window w < s leaves w - w (w - 1) / 2s (handbook 1.3). */
static double causal_pairs(const struct ty_layer_kind *kind, double seq)
{
    const double w = kind->window_tokens;
    if (w == 0.0 || w >= seq)
        return seq / 2.0;
    if (kind->window_chunked) {
        const double rest = fmod(seq, w);
        return ((seq - rest) * w + rest * rest) / (2.0 * seq);
    }
    return fmin(w - w * (w - 1.0) / (2.0 * seq), seq / 2.0);
}

/* Multiply-adds per query-key pair: both products of every head. */
static double pair_macs(const struct ty_layer_kind *kind)
{
    const double n = kind->n_heads;
    if (kind->attention == TY_ATTENTION_NONE)
        return 0.0;
    if (kind->attention == TY_ATTENTION_MLA)
        return n * ((double)kind->qk_nope_dim + kind->qk_rope_dim + kind->v_head_dim);
    return 2.0 * n * kind->head_dim;
}

/* Megatron leaves the router out (UT-1.13). */
static double matrix_macs(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    double macs = attention_matrix(model, kind);
    if (kind->mlp == TY_MLP_DENSE)
        macs += mlp_matrix(model, kind, kind->ffn);
    if (kind->mlp == TY_MLP_MOE)
        macs += kind->top_k * mlp_matrix(model, kind, kind->expert_ffn) +
                mlp_matrix(model, kind, kind->shared_ffn);
    return macs;
}

/* What tells the variants A to D apart. */
struct variant {
    bool full_mask;
    double core_ratio;   /* attention core counted so many times */
    double extra_passes; /* of the layers, for recompute */
};

static double layer_flop(const struct ty_model *model, const struct ty_layer_kind *kind, double seq,
                         const struct variant *variant)
{
    const double matrix_passes = (model->lora_rank > 0 ? 2.0 : 3.0) + variant->extra_passes;
    const double core_passes = 3.0 + variant->extra_passes;
    const double pairs = variant->full_mask ? seq : causal_pairs(kind, seq);
    return 2.0 * (matrix_passes * matrix_macs(model, kind) +
                  core_passes * variant->core_ratio * pairs * pair_macs(kind));
}

/* Layers, head and MTP modules: each module is one more layer of the last kind, a join 2h x h,
 * three norms and a head (handbook 1.4, 1.7). */
static double matmul_flop(const struct ty_model *model, double seq, const struct variant *variant)
{
    const double h = model->hidden, passes = model->lora_rank > 0 ? 2.0 : 3.0;
    const double head = 2.0 * passes * h * model->vocab;
    const double join = 2.0 * passes * (2.0 * h * h + 3.0 * h);
    double of_kind[TY_MAX_KINDS], sum = head;
    for (uint32_t i = 0; i < model->n_kinds; i++)
        of_kind[i] = layer_flop(model, &model->kinds[i], seq, variant);
    for (uint32_t i = 0; i < model->n_layers; i++)
        sum += of_kind[model->layer_kind[i]];
    return sum + model->n_mtp * (of_kind[model->layer_kind[model->n_layers - 1]] + join + head);
}

static double torchtitan_flop(const struct ty_model *model, double seq, double parameter_flop)
{
    struct ty_params params;
    ty_model_params(model, &params);
    const double tables =
        model->tied ? (double)model->learned_positions * model->hidden : params.embedding;
    double pairs = 0.0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        pairs += pair_macs(&model->kinds[model->layer_kind[i]]);
    return parameter_flop * (params.active - tables) + 6.0 * pairs * seq;
}

double ty_model_flop_per_token(const struct ty_model *model, uint32_t seq, enum ty_flops convention)
{
    static const struct variant variants[] = {
        [TY_FLOPS_MEGATRON] = {false, 1.0, 0.0},
        [TY_FLOPS_KORTHIKANTI] = {true, 1.0, 0.0},
        [TY_FLOPS_KORTHIKANTI_HW] = {true, 2.0, 0.0},
        [TY_FLOPS_NARAYANAN] = {true, 1.0, 1.0},
    };
    const double s = seq, parameter_flop = model->lora_rank > 0 ? 4.0 : 6.0;
    struct ty_params params;
    switch (convention) {
    case TY_FLOPS_KORTHIKANTI:
    case TY_FLOPS_KORTHIKANTI_HW:
    case TY_FLOPS_NARAYANAN:
        return matmul_flop(model, s, &variants[convention]);
    case TY_FLOPS_TORCHTITAN:
        return torchtitan_flop(model, s, parameter_flop);
    case TY_FLOPS_FOUNDRY:
        ty_model_params(model, &params);
        return parameter_flop * params.total + 12.0 * model->n_layers * model->hidden * s;
    case TY_FLOPS_6N:
        ty_model_params(model, &params);
        return parameter_flop * params.active;
    case TY_FLOPS_AUTO:
    case TY_FLOPS_MEGATRON:
    case TY_N_FLOPS:
        break;
    }
    return matmul_flop(model, s, &variants[TY_FLOPS_MEGATRON]);
}

const char *ty_flops_name(enum ty_flops convention)
{
    static const char *const names[TY_N_FLOPS] = {
        [TY_FLOPS_AUTO] = "auto",
        [TY_FLOPS_MEGATRON] = "megatron",
        [TY_FLOPS_KORTHIKANTI] = "korthikanti",
        [TY_FLOPS_KORTHIKANTI_HW] = "korthikanti-hw",
        [TY_FLOPS_NARAYANAN] = "narayanan",
        [TY_FLOPS_TORCHTITAN] = "torchtitan",
        [TY_FLOPS_FOUNDRY] = "foundry",
        [TY_FLOPS_6N] = "6n",
    };
    return (unsigned)convention < TY_N_FLOPS ? names[convention] : "unknown";
}
