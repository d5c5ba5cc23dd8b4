/* SPDX-License-Identifier: MIT
 * Models, GPUs and clusters the tests share; shapes from the table of handbook section 0, device
 * numbers from handbook 4.1 and 6.1. Values, not files: core tests need no JSON. */
#ifndef TESTS_FIXTURES_H
#define TESTS_FIXTURES_H

#include "include/trainyard.h"
#include <stdio.h>

/* One layer kind everywhere. Llama family: gated, RMSNorm, no biases, untied. */
__attribute__((unused)) static void fixture_llama(struct ty_model *model, uint32_t hidden,
                                                  uint32_t layers, uint32_t heads,
                                                  uint32_t kv_heads, uint32_t head_dim,
                                                  uint32_t ffn, uint32_t vocab)
{
    ty_init(TY_KIND_MODEL, model);
    snprintf(model->name, sizeof model->name, "llama-%u-%u", hidden, layers);
    model->hidden = hidden;
    model->n_layers = layers;
    model->vocab = vocab;
    model->norm = TY_NORM_RMS;
    model->final_norm = true;
    model->n_kinds = 1;
    model->kinds[0] = (struct ty_layer_kind){.attention = TY_ATTENTION_HEADS,
                                             .n_heads = heads,
                                             .n_kv_heads = kv_heads,
                                             .head_dim = head_dim,
                                             .mlp = TY_MLP_DENSE,
                                             .ffn = ffn,
                                             .gated = true,
                                             .n_norms = 2};
}

__attribute__((unused)) static void fixture_llama3_8b(struct ty_model *model)
{
    fixture_llama(model, 4096, 32, 32, 8, 128, 14336, 128256);
}

__attribute__((unused)) static void fixture_llama3_70b(struct ty_model *model)
{
    fixture_llama(model, 8192, 80, 64, 8, 128, 28672, 128256);
}

__attribute__((unused)) static void fixture_llama3_405b(struct ty_model *model)
{
    fixture_llama(model, 16384, 126, 128, 8, 128, 53248, 128256);
}

/* Plain GPT: GELU 4h, LayerNorm, every linear biased, tied; positions = learned table rows. */
__attribute__((unused)) static void fixture_gpt(struct ty_model *model, uint32_t hidden,
                                                uint32_t layers, uint32_t heads, uint32_t vocab,
                                                uint32_t positions)
{
    fixture_llama(model, hidden, layers, heads, heads, hidden / heads, 4 * hidden, vocab);
    model->norm = TY_NORM_LAYER;
    model->tied = true;
    model->learned_positions = positions;
    struct ty_layer_kind *kind = &model->kinds[0];
    kind->gated = false;
    kind->qkv_bias = kind->out_bias = kind->mlp_bias = true;
}

/* Mixtral 8x7B: Llama3-8B's shape with 8 experts, 2 for each token, and 32,000 words. */
__attribute__((unused)) static void fixture_mixtral(struct ty_model *model)
{
    fixture_llama(model, 4096, 32, 32, 8, 128, 14336, 32000);
    struct ty_layer_kind *kind = &model->kinds[0];
    kind->mlp = TY_MLP_MOE;
    kind->ffn = 0;
    kind->n_experts = 8;
    kind->top_k = 2;
    kind->expert_ffn = 14336;
}

/* DeepSeek-V3: MLA, 3 dense layers then 58 MoE layers; router with correction bias. */
__attribute__((unused)) static void fixture_deepseek_v3(struct ty_model *model)
{
    fixture_llama(model, 7168, 61, 128, 128, 0, 18432, 129280);
    struct ty_layer_kind *dense = &model->kinds[0];
    dense->attention = TY_ATTENTION_MLA;
    dense->q_lora_rank = 1536;
    dense->kv_lora_rank = 512;
    dense->qk_nope_dim = 128;
    dense->qk_rope_dim = 64;
    dense->v_head_dim = 128;
    model->n_kinds = 2;
    model->kinds[1] = *dense;
    struct ty_layer_kind *moe = &model->kinds[1];
    moe->mlp = TY_MLP_MOE;
    moe->ffn = 0;
    moe->n_experts = 256;
    moe->top_k = 8;
    moe->expert_ffn = 2048;
    moe->shared_ffn = 2048;
    moe->router_bias = true;
    moe->n_groups = 8;
    moe->group_limit = 4;
    for (uint32_t layer = 3; layer < 61; layer++)
        model->layer_kind[layer] = 1;
}

__attribute__((unused)) static void fixture_h100(struct ty_gpu *gpu)
{
    ty_init(TY_KIND_GPU, gpu);
    snprintf(gpu->name, sizeof gpu->name, "h100-sxm");
    snprintf(gpu->arch, sizeof gpu->arch, "hopper");
    gpu->vendor = TY_VENDOR_NVIDIA;
    gpu->bf16_flop_per_s = gpu->fp16_flop_per_s = 989.4e12;
    gpu->fp8_flop_per_s = 1978.9e12;
    gpu->tf32_flop_per_s = 494.7e12;
    gpu->fp32_flop_per_s = 66.9e12;
    gpu->mem_bytes = 80e9;
    gpu->mem_bytes_per_s = 3.35e12;
    gpu->scaleup_bytes_per_s = 450e9;
    gpu->pcie_bytes_per_s = 63e9;
    gpu->boost_hz = 1.83e9;
    gpu->tdp_w = 700;
    gpu->sms = 132;
    gpu->scaleup_domain = 8;
}

__attribute__((unused)) static void fixture_a100(struct ty_gpu *gpu)
{
    fixture_h100(gpu);
    snprintf(gpu->name, sizeof gpu->name, "a100-sxm-80gb");
    snprintf(gpu->arch, sizeof gpu->arch, "ampere");
    gpu->bf16_flop_per_s = gpu->fp16_flop_per_s = 312e12;
    gpu->fp8_flop_per_s = 0;
    gpu->tf32_flop_per_s = 156e12;
    gpu->fp32_flop_per_s = 19.5e12;
    gpu->mem_bytes_per_s = 2.039e12;
    gpu->scaleup_bytes_per_s = 300e9;
    gpu->pcie_bytes_per_s = 31e9;
    gpu->boost_hz = 1.41e9;
    gpu->tdp_w = 400;
    gpu->sms = 108;
}

/* 8 GPUs a node, 8 NICs of 400 Gb/s (A100: 200 Gb/s), one non-blocking fabric. */
__attribute__((unused)) static void fixture_dgx_h100(struct ty_cluster *cluster)
{
    ty_init(TY_KIND_CLUSTER, cluster);
    snprintf(cluster->name, sizeof cluster->name, "dgx-h100");
    fixture_h100(&cluster->gpu);
    cluster->gpus_per_node = 8;
    cluster->nics_per_node = 8;
    cluster->nic_bytes_per_s = 50e9;
    cluster->fabric = TY_FABRIC_INFINIBAND;
}

__attribute__((unused)) static void fixture_dgx_a100(struct ty_cluster *cluster)
{
    fixture_dgx_h100(cluster);
    snprintf(cluster->name, sizeof cluster->name, "dgx-a100");
    fixture_a100(&cluster->gpu);
    cluster->nic_bytes_per_s = 25e9;
}

#endif
