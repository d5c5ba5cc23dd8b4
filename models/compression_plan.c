/* SPDX-License-Identifier: MIT
 *
 * Gradient compression as a property of the data-parallel exchange (handbook 8): bytes of the
 * collective, time to encode and decode, memory.
 *
 *   bf16, fp8, int8   cast, reduced in that type: 2, 1, 1 + 4/256 bytes an element (a 4-byte scale
 *                     for 256); encode and decode read one form and write the other
 *   topk              all-gather of kept (index, value) pairs of 8 bytes; to encode, two passes
 *                     over gradient and error; to decode, every pair is added to the gradient
 *   powersgd          all-reduce of r (a + b) elements for a x b; three GEMMs of 2 a b r, or their
 *                     passes over gradient and error, whichever takes longer
 */
#include "models/compression_plan.h"
#include "models/compression.h"
#include "models/kernels.h"

#include <math.h>

static const double BLOCK = 256.0, SCALE_BYTES = 4.0; /* int8: of ZeRO++ (handbook 8), assumed */
static const double BUCKET_PARAMS = 40e6;             /* Megatron's (handbook 2.6) */
static const double PAIR_BYTES = 8.0, ERROR_BYTES = 4.0, FACTOR_BYTES = 4.0;

/* Bytes of a cast element; 0: not a cast. */
static double cast_bytes(int compression)
{
    switch (compression) {
    case TY_COMPRESSION_BF16:
        return 2.0;
    case TY_COMPRESSION_FP8:
        return 1.0;
    case TY_COMPRESSION_INT8:
        return 1.0 + SCALE_BYTES / BLOCK;
    default:
        return 0.0;
    }
}

/* The matrices of a layer kind, columns divided over tp where they are. */
static uint32_t matrices_of(const struct ty_model *model, const struct ty_layer_kind *kind,
                            double tp, struct compression_matrix out[6])
{
    const double h = model->hidden, d = kind->head_dim;
    const double gate = kind->gated ? 2.0 : 1.0;
    uint32_t n = 0;
    if (kind->attention == TY_ATTENTION_HEADS) {
        out[n++] =
            (struct compression_matrix){h, (kind->n_heads + 2.0 * kind->n_kv_heads) * d / tp};
        out[n++] = (struct compression_matrix){kind->n_heads * d / tp, h};
    } else if (kind->attention == TY_ATTENTION_MLA) {
        out[n++] = (struct compression_matrix){h, (double)kind->q_lora_rank + kind->kv_lora_rank};
        out[n++] = (struct compression_matrix){kind->n_heads * (double)kind->v_head_dim / tp, h};
    }
    const double ffn = kind->mlp == TY_MLP_MOE ? kind->expert_ffn : kind->ffn / tp;
    if (kind->mlp != TY_MLP_NONE) {
        out[n++] = (struct compression_matrix){h, gate * ffn};
        out[n++] = (struct compression_matrix){ffn, h};
    }
    return n;
}

double compression_powersgd_ratio(const struct ty_model *model, const struct ty_plan *plan)
{
    double dense = 0.0, sent = 0.0;
    for (uint32_t layer = 0; layer < model->n_layers; layer++) {
        struct compression_matrix matrices[6];
        struct compression_powersgd one;
        const uint32_t n =
            matrices_of(model, &model->kinds[model->layer_kind[layer]], plan->tp, matrices);
        compression_powersgd(matrices, n, plan->grad_rank, &one);
        dense += one.dense_elements;
        sent += one.sent_elements;
    }
    return dense > 0.0 ? fmin(1.0, sent / dense) : 1.0;
}

static void exchange_topk(const struct ty_plan *plan, double params, double grad_bytes,
                          double ranks, double mem_bytes_per_s, struct compression_exchange *out)
{
    const double pairs = plan->grad_kept * params;
    const double encode = 2.0 * params * (grad_bytes + ERROR_BYTES);
    const double decode = ranks * pairs * (PAIR_BYTES + 2.0 * grad_bytes);
    out->gathers = true;
    out->payload_bytes = ranks * pairs * PAIR_BYTES;
    out->codec_s = (encode + decode) / mem_bytes_per_s;
}

static void exchange_powersgd(const struct setting *setting, const struct ty_plan *plan,
                              double params, double grad_bytes, struct compression_exchange *out)
{
    const double flop = 3.0 * 2.0 * params * plan->grad_rank;
    const double bytes = 3.0 * params * grad_bytes + 2.0 * params * ERROR_BYTES;
    out->payload_bytes = params * compression_powersgd_ratio(&setting->model, plan) * FACTOR_BYTES;
    out->codec_s = fmax(flop / kernel_sustained_flop_per_s(setting, TY_BF16_PRECISION),
                        bytes / kernel_mem_bytes_per_s(setting));
}

void compression_exchange(const struct setting *setting, const struct ty_plan *plan, double params,
                          double grad_bytes, double ranks, struct compression_exchange *out)
{
    const double to_bytes = cast_bytes(plan->grad_compression);
    *out = (struct compression_exchange){.payload_bytes = params * grad_bytes};
    if (ranks <= 1.0 || !(params > 0.0))
        return;
    if (to_bytes > 0.0) {
        out->payload_bytes = params * fmin(to_bytes, grad_bytes);
        out->codec_s =
            compression_cast_s(params, grad_bytes, to_bytes, kernel_mem_bytes_per_s(setting));
    } else if (plan->grad_compression == TY_COMPRESSION_TOPK) {
        exchange_topk(plan, params, grad_bytes, ranks, kernel_mem_bytes_per_s(setting), out);
    } else if (plan->grad_compression == TY_COMPRESSION_POWERSGD) {
        exchange_powersgd(setting, plan, params, grad_bytes, out);
    }
}

double compression_held_bytes(const struct ty_plan *plan, double params)
{
    const double to_bytes = cast_bytes(plan->grad_compression);
    if (to_bytes > 0.0)
        return to_bytes * fmin(params, BUCKET_PARAMS);
    return plan->grad_compression >= TY_COMPRESSION_TOPK ? ERROR_BYTES * params : 0.0;
}
