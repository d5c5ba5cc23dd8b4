/* SPDX-License-Identifier: MIT
 *
 * What one layer of a kind costs one rank in memory: parameters, activations kept and rerun.
 */
#ifndef MODELS_MEMORY_LAYER_H
#define MODELS_MEMORY_LAYER_H

#include "models/setting.h"

/* Bytes that grow with the load of the busiest expert rank: fixed + routed * imbalance. */
struct amount {
    double fixed, routed;
};

/* What a software stack does in a layer and with memory; its amounts are constants of the profile.
 */
struct stack_habits {
    const char *stack;
    bool master_is_weight; /* sharded parameters are kept once, in fp32 */
    bool dummy_wgrads;     /* beside fp32 accumulation a 16-bit gradient buffer per weight shape
                              stays allocated: Transformer Engine */
    bool two_gradients;    /* 16-bit gradients beside the fp32 ones, and flat buckets: DeepSpeed */
    bool sdpa;         /* PyTorch's attention: its output is copied for the projection, K and V are
                          repeated for every head */
    bool op_recompute; /* selective recompute chooses operators, not modules */
    bool outputs_stay; /* a stage keeps what it sent until backward: DeepSpeed */
    bool frees_gradients; /* no gradients before a step's first backward: PyTorch's zero_grad */
    bool loss_stays;      /* a layer rerun by full recompute meets the logits */
    bool adds_gradients;  /* a micro-batch's weight gradients are added to those before it in a
                             kernel of its own, PyTorch's AccumulateGrad; else by the GEMM */
    bool flat_shards;     /* the parameters of a unit are views of one flat tensor: FSDP1 */
    bool copied_shards;   /* parameters are copied out of the buffer they are gathered in, gradients
                             into the one they are reduced from: FSDP2 */
    bool fp8_gather;      /* parameters of 8-bit GEMMs are cast before they are gathered */
    bool gathers_cast;    /* inputs of low-precision GEMMs, FP8 parameters too, are gathered cast */
    bool fp8_lora;        /* LoRA of attention only, frozen weights and saved tensors in FP8 */
};

struct layer_memory {
    double dense, expert, adapter; /* parameters of one rank; adapter: trainable under LoRA */
    double attention_matrix, mlp_matrix, shared_matrix, expert_matrix; /* one weight set each */
    struct amount kept;     /* saved from forward to backward under the plan's recompute */
    struct amount all;      /* saved when nothing is recomputed: alive while a layer is rerun */
    double work_dense;      /* largest working set of the backward of attention and dense MLP */
    struct amount work_moe; /* the same of the experts */
};

/* The habits of the stack of that name; of Megatron-Core when it is unknown. */
const struct stack_habits *stack_habits(const char *stack);
void memory_layer(const struct setting *setting, const struct ty_plan *plan,
                  const struct stack_habits *habits, uint32_t kind, struct layer_memory *out);
double amount_bytes(struct amount amount, double imbalance);
/* Whether the plan's LoRA keeps frozen weights and saved tensors in the GEMMs' 8 bits or fewer. */
bool memory_fp8_lora(const struct setting *setting, const struct ty_plan *plan,
                     const struct stack_habits *habits);
/* Load of the busiest expert rank that counts: 1 when every rank has all experts. */
double memory_imbalance(const struct ty_plan *plan);
/* Rows of the vocabulary one rank holds: padded to a multiple of 128 tp, as Megatron-Core does. */
double memory_vocab_rows(const struct setting *setting, const struct ty_plan *plan);

#endif
