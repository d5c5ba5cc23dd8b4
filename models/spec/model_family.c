/* SPDX-License-Identifier: MIT
 *
 * The families of HuggingFace configs. Sources: the modelling code of each family as published with
 * its weights (transformers, or the model's own repository); each row was checked against a count
 * of the published tensors where one is known (tests/hf_configs.c).
 */
#include "models/spec/model_family.h"

#include "include/trainyard_tools.h"
#include "sim/error.h"

#include <string.h>

/* ---- what single families do ------------------------------------------------------------- */

/* First Qwen: intermediate_size is gate and up together; q, k, v biases whatever no_bias says. */
static void qwen_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)model;
    if (kind->ffn % 2 != 0)
        config_refuse(config, TY_ERR_INPUT, "intermediate_size",
                      "is %u; two equal branches must share it", kind->ffn);
    kind->ffn /= 2;
}

static void qwen2_moe_base(struct config *config, struct ty_model *model,
                           struct ty_layer_kind *kind)
{
    (void)model;
    kind->qkv_bias = config_flag(config, "qkv_bias", true);
    if (!config_has(config, "shared_expert_intermediate_size"))
        config_missing(config, "shared_expert_intermediate_size");
    kind->shared_gate = kind->shared_ffn > 0;
}

/* Shared experts are given by number, each as wide as a routed one. */
static void shared_by_number(struct config *config, struct ty_layer_kind *kind)
{
    const double width = (double)config_count(config, "n_shared_experts", 0) * kind->expert_ffn;
    if (width > 16777216.0)
        config_refuse(config, TY_ERR_INPUT, "n_shared_experts", "is too many");
    else
        kind->shared_ffn = (uint32_t)width;
}

static void expert_groups(struct config *config, struct ty_layer_kind *kind)
{
    const uint32_t groups = config_count(config, "n_group", 0);
    if (groups <= 1 || strcmp(config_text(config, "topk_method"), "greedy") == 0)
        return;
    kind->n_groups = groups;
    kind->group_limit = config_need_count(config, "topk_group");
}

static void deepseek_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    shared_by_number(config, kind);
    expert_groups(config, kind);
    model->n_mtp = config_count(config, "num_nextn_predict_layers", 0);
}

static void mla_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    deepseek_base(config, model, kind);
    if (!config_has(config, "q_lora_rank"))
        config_missing(config, "q_lora_rank");
    kind->q_lora_rank = config_count(config, "q_lora_rank", 0);
    kind->kv_lora_rank = config_need_count(config, "kv_lora_rank");
    kind->qk_nope_dim = config_need_count(config, "qk_nope_head_dim");
    kind->qk_rope_dim = config_need_count(config, "qk_rope_head_dim");
    kind->v_head_dim = config_need_count(config, "v_head_dim");
}

static void gpt_oss_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)config;
    (void)model;
    kind->attention_sinks = kind->router_bias = kind->expert_bias = true;
}

static void minimax_m2_base(struct config *config, struct ty_model *model,
                            struct ty_layer_kind *kind)
{
    const char *type = config_text(config, "qk_norm_type");
    if (kind->qk_norm != TY_QK_NORM_NONE && type[0] != '\0' && strcmp(type, "per_layer") != 0)
        config_refuse(config, TY_ERR_UNSUPPORTED, "qk_norm_type",
                      "is \"%.32s\"; only \"per_layer\" is modelled", type);
    if (config_flag(config, "use_mtp", false))
        model->n_mtp = config_count(config, "num_mtp_modules", 1);
}

/* Dense layers have a size of their own; the shared expert is as wide as a routed one. */
static void llama4_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)model;
    kind->expert_ffn = kind->ffn;
    kind->shared_ffn = kind->ffn;
    kind->ffn = config_count(config, "intermediate_size_mlp", 0);
    kind->qk_norm = TY_QK_NORM_NONE; /* its q/k norm has no weights */
}

/* Two norms in the layers of the larger models, one before both branches in the others; key/value
 * heads follow multi_query unless the new architecture counts them. */
static void falcon_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    const bool grouped = config_flag(config, "new_decoder_architecture", false);
    const bool parallel = config_flag(config, "parallel_attn", true);
    (void)model;
    kind->qkv_bias = kind->out_bias = kind->mlp_bias = config_flag(config, "bias", false);
    if (!grouped)
        kind->n_kv_heads = config_flag(config, "multi_query", true) ? 1 : kind->n_heads;
    kind->n_norms = 2;
    if (grouped)
        kind->n_norms = config_count(config, "num_ln_in_parallel_attn", 2);
    else if (parallel)
        kind->n_norms = 1;
}

static void gpt_bigcode_base(struct config *config, struct ty_model *model,
                             struct ty_layer_kind *kind)
{
    (void)model;
    kind->n_kv_heads = config_flag(config, "multi_query", true) ? 1 : kind->n_heads;
}

/* The position table has two rows more than positions. The 350M model, with its projections
 * around a narrow embedding and norms behind the branches, is another architecture. */
static void opt_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    const uint32_t width = config_count(config, "word_embed_proj_dim", model->hidden);
    if (width != model->hidden)
        config_refuse(config, TY_ERR_UNSUPPORTED, "word_embed_proj_dim",
                      "is %u; only hidden_size (%u) is modelled", width, model->hidden);
    if (!config_flag(config, "do_layer_norm_before", true))
        config_refuse(config, TY_ERR_UNSUPPORTED, "do_layer_norm_before",
                      "is false; only true is modelled");
    kind->qkv_bias = kind->out_bias = kind->mlp_bias = config_flag(config, "enable_bias", true);
    if (model->learned_positions > 0)
        model->learned_positions += 2;
}

static void bloom_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    model->embedding_norm = true;
    if (kind->ffn != 4.0 * model->hidden)
        config_refuse(config, TY_ERR_INPUT, config_key_name(config, KEY_FFN),
                      "is %u; the MLP of BLOOM is 4 x hidden_size", kind->ffn);
}

static void chatglm_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    const bool linear = config_flag(config, "add_bias_linear", false);
    kind->qkv_bias = linear || config_flag(config, "add_qkv_bias", false);
    kind->out_bias = kind->mlp_bias = linear;
    if (!config_flag(config, "multi_query_attention", false))
        kind->n_kv_heads = kind->n_heads;
    if (!config_flag(config, "rmsnorm", true))
        model->norm = TY_NORM_LAYER;
    model->final_norm = config_flag(config, "post_layer_norm", true);
}

static void mpt_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    struct json_at at;
    const char *type = "";
    const bool bias = !config_flag(config, "no_bias", true);
    kind->qkv_bias = kind->out_bias = kind->mlp_bias = bias;
    model->norm = bias ? TY_NORM_LAYER : TY_NORM_LAYER_NO_BIAS;
    kind->ffn = model->hidden;
    const double ffn = (double)model->hidden * config_count(config, "expansion_ratio", 4);
    if (ffn < 1.0 || ffn > 16777216.0)
        config_refuse(config, TY_ERR_INPUT, "expansion_ratio", "makes an MLP of %.0f", ffn);
    else
        kind->ffn = (uint32_t)ffn;
    if (config_flag(config, "attn_config.alibi", false) ||
        config_flag(config, "attn_config.rope", false) ||
        !config_flag(config, "learned_pos_emb", true))
        model->learned_positions = 0;
    if (config_find(config, "attn_config.attn_type", &at))
        type = config_text(config, "attn_config.attn_type");
    if (strcmp(type, "multiquery_attention") == 0)
        kind->n_kv_heads = 1;
    if (config_flag(config, "attn_config.qk_ln", false))
        kind->qk_norm = TY_QK_NORM_FULL;
}

static void starcoder2_base(struct config *config, struct ty_model *model,
                            struct ty_layer_kind *kind)
{
    (void)model;
    kind->qkv_bias = kind->out_bias = kind->mlp_bias = config_flag(config, "use_bias", true);
}

static void stablelm_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)model;
    kind->qkv_bias = config_flag(config, "use_qkv_bias", false);
    if (config_flag(config, "use_parallel_residual", false))
        kind->n_norms = 1;
    if (config_flag(config, "qk_layernorm", false))
        config_refuse(config, TY_ERR_UNSUPPORTED, "qk_layernorm", "is true; not modelled here");
}

static void internlm_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)model;
    kind->qkv_bias = kind->out_bias = config_flag(config, "bias", kind->qkv_bias);
}

/* Its q/k norm has a scale for every head. */
static void cohere_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)config;
    (void)model;
    if (kind->qk_norm != TY_QK_NORM_NONE)
        kind->qk_norm = TY_QK_NORM_FULL;
}

static void phi_base(struct config *config, struct ty_model *model, struct ty_layer_kind *kind)
{
    (void)model;
    if (config_flag(config, "qk_layernorm", false))
        kind->qk_norm = TY_QK_NORM_PER_HEAD;
}

/* ---- the table --------------------------------------------------------------------------- */

#define RMS         TY_NORM_RMS
#define LN          TY_NORM_LAYER
#define LN_NO_BIAS  TY_NORM_LAYER_NO_BIAS
#define ALL_BIASES  (QKV_BIAS | OUT_BIAS | MLP_BIAS)
#define BIAS_KEYS   (BIAS_KEY | OUT_KEY)
#define NO_WINDOWS  WINDOWS_NONE, 0, 0
#define NO_EXPERTS  EXPERTS_NONE, 0
#define ALL_EXPERTS EXPERTS_ALL, 0

/* clang-format off */
static const struct family families[] = {
    /* model_type, class, traits, norm, norms, head_dim, windows, experts,
     * base, layers */
    {"llama", "LlamaForCausalLM", GATED | BIAS_KEYS, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, NULL,
     NULL},
    {"Yi", "YiForCausalLM", GATED, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, NULL, NULL},
    {"baichuan", "BaichuanForCausalLM", GATED, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, NULL, NULL},
    {"granite", "GraniteForCausalLM", GATED | BIAS_KEYS, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, NULL,
     NULL},
    {"internlm", "InternLMForCausalLM", GATED | QKV_BIAS | OUT_BIAS, RMS, 2, 0, NO_WINDOWS,
     NO_EXPERTS, internlm_base, NULL},
    {"internlm2", "InternLM2ForCausalLM", GATED, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, internlm_base,
     NULL},
    {"mistral", "MistralForCausalLM", GATED, RMS, 2, 0, WINDOWS_ALL, 4096, 0, NO_EXPERTS, NULL,
     NULL},
    {"mixtral", "MixtralForCausalLM", GATED | FFN_IS_EXPERT, RMS, 2, 0, WINDOWS_ALL, 0, 0,
     ALL_EXPERTS, NULL, NULL},
    {"qwen", "QWenLMHeadModel", GATED | QKV_BIAS, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, qwen_base,
     NULL},
    {"qwen2", "Qwen2ForCausalLM", GATED | QKV_BIAS, RMS, 2, 0, WINDOWS_ABOVE, 4096, 0, NO_EXPERTS,
     NULL, NULL},
    {"qwen2_moe", "Qwen2MoeForCausalLM", GATED | QKV_BIAS, RMS, 2, 0, WINDOWS_ABOVE, 4096, 0,
     EXPERTS_STEP, 0, qwen2_moe_base, NULL},
    {"qwen3", "Qwen3ForCausalLM", GATED | BIAS_KEYS | QK_HEAD, RMS, 2, 128, WINDOWS_ABOVE, 4096, 0,
     NO_EXPERTS, NULL, NULL},
    {"qwen3_moe", "Qwen3MoeForCausalLM", GATED | BIAS_KEYS | QK_HEAD, RMS, 2, 0, WINDOWS_SWITCHED,
     4096, 0, EXPERTS_STEP, 0, NULL, NULL},
    {"gemma", "GemmaForCausalLM", GATED | TIED | BIAS_KEYS, RMS, 2, 256, NO_WINDOWS, NO_EXPERTS,
     NULL, NULL},
    {"gemma2", "Gemma2ForCausalLM", GATED | TIED | BIAS_KEYS, RMS, 4, 256, WINDOWS_PERIOD, 4096, 2,
     NO_EXPERTS, NULL, NULL},
    {"gemma3", "Gemma3ForCausalLM", GATED | TIED | BIAS_KEYS | QK_HEAD, RMS, 4, 256,
     WINDOWS_PERIOD, 4096, 6, NO_EXPERTS, NULL, NULL},
    {"phi", "PhiForCausalLM", ALL_BIASES | HEAD_BIAS, LN, 1, 0, NO_WINDOWS, NO_EXPERTS, phi_base,
     NULL},
    {"phi3", "Phi3ForCausalLM", GATED, RMS, 2, 0, WINDOWS_ALL, 0, 0, NO_EXPERTS, NULL, NULL},
    {"phimoe", "PhiMoEForCausalLM", GATED | BIAS_KEYS | FFN_IS_EXPERT, LN, 2, 0, WINDOWS_ALL, 0, 0,
     ALL_EXPERTS, NULL, NULL},
    {"gpt2", "GPT2LMHeadModel", TIED | ALL_BIASES | FFN_4H | POSITIONS, LN, 2, 0, NO_WINDOWS,
     NO_EXPERTS, NULL, NULL},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", TIED | ALL_BIASES | FFN_4H | POSITIONS, LN, 2, 0,
     NO_WINDOWS, NO_EXPERTS, gpt_bigcode_base, NULL},
    {"gptj", "GPTJForCausalLM", MLP_BIAS | HEAD_BIAS | FFN_4H, LN, 1, 0, NO_WINDOWS, NO_EXPERTS,
     NULL, NULL},
    {"gpt_neox", "GPTNeoXForCausalLM", ALL_BIASES | BIAS_KEYS, LN, 2, 0, NO_WINDOWS, NO_EXPERTS,
     NULL, NULL},
    {"opt", "OPTForCausalLM", TIED | ALL_BIASES | POSITIONS, LN, 2, 0, NO_WINDOWS, NO_EXPERTS,
     opt_base, NULL},
    {"bloom", "BloomForCausalLM", TIED | ALL_BIASES | FFN_4H, LN, 2, 0, NO_WINDOWS, NO_EXPERTS,
     bloom_base, NULL},
    {"falcon", "FalconForCausalLM", TIED | FFN_4H, LN, 2, 0, NO_WINDOWS, NO_EXPERTS, falcon_base,
     NULL},
    {"mpt", "MPTForCausalLM", TIED | FFN_4H | POSITIONS, LN, 2, 0, NO_WINDOWS, NO_EXPERTS,
     mpt_base, NULL},
    {"starcoder2", "Starcoder2ForCausalLM", TIED | ALL_BIASES, LN, 2, 0, WINDOWS_ALL, 0, 0,
     NO_EXPERTS, starcoder2_base, NULL},
    {"stablelm", "StableLmForCausalLM", GATED, LN, 2, 0, NO_WINDOWS, NO_EXPERTS, stablelm_base,
     NULL},
    {"nemotron", "NemotronForCausalLM", BIAS_KEYS, LN, 2, 0, NO_WINDOWS, NO_EXPERTS, NULL, NULL},
    {"nemotron-nas", "DeciLMForCausalLM", GATED | BIAS_KEYS | FFN_4H, RMS, 2, 0, NO_WINDOWS,
     NO_EXPERTS, NULL, layers_from_blocks},
    {"chatglm", "ChatGLMModel", GATED, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS, chatglm_base, NULL},
    {"cohere", "CohereForCausalLM", GATED | TIED | BIAS_KEYS, LN_NO_BIAS, 1, 0, NO_WINDOWS,
     NO_EXPERTS, cohere_base, NULL},
    {"cohere2", "Cohere2ForCausalLM", GATED | TIED | BIAS_KEYS, LN_NO_BIAS, 1, 0, WINDOWS_PERIOD,
     4096, 4, NO_EXPERTS, cohere_base, NULL},
    {"dbrx", "DbrxForCausalLM", GATED | FFN_IS_EXPERT, LN_NO_BIAS, 2, 0, NO_WINDOWS, ALL_EXPERTS,
     NULL, NULL},
    {"deepseek", "DeepseekForCausalLM", GATED | BIAS_KEYS, RMS, 2, 0, NO_WINDOWS, EXPERTS_FROM, 0,
     deepseek_base, NULL},
    {"deepseek_v2", "DeepseekV2ForCausalLM", GATED | BIAS_KEYS | MLA, RMS, 2, 0, NO_WINDOWS,
     EXPERTS_FROM, 0, mla_base, NULL},
    {"deepseek_v3", "DeepseekV3ForCausalLM", GATED | BIAS_KEYS | MLA, RMS, 2, 0, NO_WINDOWS,
     EXPERTS_FROM, 3, mla_base, NULL},
    {"kimi_k2", "DeepseekV3ForCausalLM", GATED | BIAS_KEYS | MLA, RMS, 2, 0, NO_WINDOWS,
     EXPERTS_FROM, 3, mla_base, NULL},
    {"glm4_moe", "Glm4MoeForCausalLM", GATED | BIAS_KEY, RMS, 2, 0, NO_WINDOWS, EXPERTS_FROM, 1,
     deepseek_base, NULL},
    {"gpt_oss", "GptOssForCausalLM", GATED | QKV_BIAS | OUT_BIAS | BIAS_KEYS | FFN_IS_EXPERT, RMS,
     2, 64, WINDOWS_PERIOD, 128, 2, ALL_EXPERTS, gpt_oss_base, NULL},
    {"minimax_m2", "MiniMaxM2ForCausalLM", GATED | QK_FULL | FFN_IS_EXPERT, RMS, 2, 0, NO_WINDOWS,
     ALL_EXPERTS, minimax_m2_base, NULL},
    {"olmo2", "Olmo2ForCausalLM", GATED | BIAS_KEYS | QK_FULL, RMS, 2, 0, NO_WINDOWS, NO_EXPERTS,
     NULL, NULL},
    {"olmoe", "OlmoeForCausalLM", GATED | BIAS_KEYS | QK_FULL | FFN_IS_EXPERT, RMS, 2, 0,
     NO_WINDOWS, ALL_EXPERTS, NULL, NULL},
    {"llama4", "Llama4ForCausalLM", GATED | BIAS_KEYS, RMS, 2, 0, WINDOWS_PERIOD, 8192, 4,
     EXPERTS_INTERLEAVED, 0, llama4_base, NULL},
    {"grok-1", "Grok1ModelForCausalLM", GATED | TIED | FFN_IS_EXPERT, RMS, 4, 0, NO_WINDOWS,
     ALL_EXPERTS, NULL, NULL},
};
/* clang-format on */

#define N_FAMILIES (sizeof families / sizeof *families)

const struct family *family_by_type(const char *model_type)
{
    size_t length = strlen(model_type);
    if (length > 5 && strcmp(model_type + length - 5, "_text") == 0)
        length -= 5;
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strlen(families[i].model_type) == length &&
            memcmp(families[i].model_type, model_type, length) == 0)
            return &families[i];
    return NULL;
}

const struct family *family_by_architecture(const char *architecture)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].architecture, architecture) == 0)
            return &families[i];
    return NULL;
}

void family_list(char *out, size_t bytes)
{
    out[0] = '\0';
    for (size_t i = 0; i < N_FAMILIES; i++)
        text_append(out, bytes, "%s%s", i > 0 ? ", " : "", families[i].model_type);
}

const char *family_nearest(const char *model_type)
{
    size_t best = 0;
    for (size_t i = 1; i < N_FAMILIES; i++)
        if (ty_text_distance(model_type, families[i].model_type) <
            ty_text_distance(model_type, families[best].model_type))
            best = i;
    return families[best].model_type;
}
