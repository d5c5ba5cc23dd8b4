/* SPDX-License-Identifier: MIT
 *
 * Memory of every pipeline stage by component (handbook section 3). Worst rank: MoE activations
 * are multiplied by plan.moe_imbalance.
 */
#ifndef MODELS_MEMORY_H
#define MODELS_MEMORY_H

#include "models/layout.h"

/* Bytes of states per parameter for a resolved plan: weights, gradients and optimizer of one
 * rank for its dense (expert = false) or expert parameters (handbook 3.1). */
struct state_bytes {
    double weights, gradients, optimizer;
};
void memory_state_bytes(const struct setting *setting, const struct ty_plan *plan, bool expert,
                        struct state_bytes *out);

/* Parameters one rank of a stage holds before ZeRO sharding, dense and expert part. */
void memory_rank_params(const struct setting *setting, const struct ty_plan *plan,
                        const struct slot *slots, uint32_t stage, double *dense, double *expert);

/* Saved activations of one layer of a kind for one micro-batch on one rank, bytes (3.2). */
double memory_layer_activation_bytes(const struct setting *setting, const struct ty_plan *plan,
                                     const struct ty_layer_kind *kind);

/* Micro-batches in flight on a stage, in units of a full stage (2.5, 3.3). */
double memory_in_flight(const struct ty_plan *plan, uint32_t stage);

/* All stages; out [pp]. */
void memory_stages(const struct setting *setting, const struct ty_plan *plan,
                   const struct slot *slots, struct ty_stage_memory *out);

struct memory_verdict {
    enum ty_fit fit;
    double peak_bytes, budget_bytes, headroom_bytes;
    double host_bytes; /* what the GPUs of one host offload into its memory */
    uint32_t peak_stage;
    enum ty_mem largest;
    double imbalance_limit; /* NAN without MoE; INFINITY when it always fits */
};
void memory_judge(const struct setting *setting, const struct ty_plan *plan,
                  const struct slot *slots, const struct ty_stage_memory *stages,
                  struct memory_verdict *out);

#endif
