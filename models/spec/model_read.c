/* SPDX-License-Identifier: MIT
 *
 * HuggingFace config.json to a model, and the public loaders. What is not modelled, or could be
 * counted wrongly, is refused: hybrids with state-space layers, encoders, a class that contradicts
 * the model_type.
 */
#include "models/spec/model.h"
#include "models/spec/model_family.h"

#include "sim/error.h"

#include <string.h>

/* ---- what makes a config another kind of model -------------------------------------------- */

static bool is_off(struct config *config, const struct json_at *at)
{
    bool flag = true;
    uint32_t count = 1;
    if (json_type_of(at) == JSON_BOOL)
        config->status = json_get_bool(at, &flag, config->error);
    else if (json_type_of(at) == JSON_NUMBER)
        config->status = json_get_u32(at, 0, UINT32_MAX, &count, config->error);
    return !flag || count == 0;
}

/* Layers that are no attention and MLP, in whatever family. */
static void refuse_hybrids(struct config *config)
{
    static const char *const names[] = {"hybrid_override_pattern",
                                        "attn_layer_period",
                                        "layers_block_type",
                                        "attn_type_list",
                                        "mamba_d_state",
                                        "mamba_expand",
                                        "mamba_num_heads",
                                        "ssm_state_size",
                                        "ssm_cfg",
                                        "state_size",
                                        "conv_L_cache",
                                        "linear_attn_config",
                                        "linear_num_key_heads",
                                        "rwkv_version",
                                        "full_attention_interval",
                                        "cross_attention_layers",
                                        "is_encoder_decoder",
                                        "add_cross_attention",
                                        "index_topk"};
    struct json_at at;
    for (size_t i = 0; i < sizeof names / sizeof *names && config->status == TY_OK; i++)
        if (config_find(config, names[i], &at) && !is_off(config, &at))
            config_refuse(config, TY_ERR_UNSUPPORTED, names[i],
                          "state-space, linear-attention, indexed and encoder-decoder layers are "
                          "not modelled; every layer must be attention and an MLP or experts");
}

/* Keys that only other families use: this config is not what its model_type says. */
static void refuse_strangers(struct config *config, const struct family *family)
{
    struct json_at at;
    const uint32_t experts = config_size(config, KEY_EXPERTS, 0);
    if (family->experts == EXPERTS_NONE && experts > 1)
        config_refuse(config, TY_ERR_INPUT, config_key_name(config, KEY_EXPERTS),
                      "says %u experts, but models of type \"%s\" have none", experts,
                      family->model_type);
    if (!(family->traits & MLA) && config_count(config, "kv_lora_rank", 0) > 0)
        config_refuse(config, TY_ERR_INPUT, "kv_lora_rank",
                      "latent attention does not belong to models of type \"%s\"",
                      family->model_type);
    if (!family->layers && config_find(config, "block_configs", &at))
        config_refuse(config, TY_ERR_INPUT, "block_configs",
                      "does not belong to models of type \"%s\"; expected \"nemotron-nas\"",
                      family->model_type);
}

/* ---- sizes ------------------------------------------------------------------------------- */

static void read_heads(struct config *config, const struct family *family, uint32_t hidden,
                       struct ty_layer_kind *kind)
{
    kind->n_heads = config_need(config, KEY_HEADS);
    kind->n_kv_heads = config_size(config, KEY_KV_HEADS, kind->n_heads);
    kind->attention = TY_ATTENTION_HEADS;
    if (family->traits & MLA) {
        kind->attention = TY_ATTENTION_MLA;
        kind->n_kv_heads = kind->n_heads;
        return;
    }
    kind->head_dim = config_size(config, KEY_HEAD_DIM, family->head_dim);
    if (kind->head_dim == 0 && hidden % kind->n_heads != 0)
        config_refuse(config, TY_ERR_INPUT, config_key_name(config, KEY_HEADS),
                      "is %u, which does not divide %s %u, and no head_dim is given", kind->n_heads,
                      config_key_name(config, KEY_HIDDEN), hidden);
    if (kind->head_dim == 0)
        kind->head_dim = hidden / kind->n_heads;
    if (kind->n_kv_heads == 0 || kind->n_heads % kind->n_kv_heads != 0)
        config_refuse(config, TY_ERR_INPUT, config_key_name(config, KEY_KV_HEADS),
                      "is %u; it must divide the %u heads", kind->n_kv_heads, kind->n_heads);
}

static void read_experts(struct config *config, const struct family *family,
                         struct ty_layer_kind *kind)
{
    kind->mlp = TY_MLP_MOE;
    kind->n_experts = config_need(config, KEY_EXPERTS);
    kind->top_k = config_need(config, KEY_TOP_K);
    if (kind->top_k > kind->n_experts)
        config_refuse(config, TY_ERR_INPUT, config_key_name(config, KEY_TOP_K),
                      "is %u of only %u experts", kind->top_k, kind->n_experts);
    kind->shared_ffn = config_size(config, KEY_SHARED_FFN, 0);
    if (family->traits & FFN_IS_EXPERT) {
        kind->expert_ffn = config_need(config, KEY_FFN);
        kind->ffn = 0;
    } else if (family->experts != EXPERTS_INTERLEAVED) {
        kind->expert_ffn = config_need(config, KEY_EXPERT_FFN);
    }
}

static void read_mlp(struct config *config, const struct family *family, uint32_t hidden,
                     struct ty_layer_kind *kind)
{
    kind->mlp = TY_MLP_DENSE;
    kind->gated = family->traits & GATED;
    kind->mlp_bias = config_flag(config, "mlp_bias", family->traits & MLP_BIAS);
    if (family->traits & FFN_4H)
        kind->ffn = config_size(config, KEY_FFN, 4 * hidden);
    else if (family->experts == EXPERTS_NONE)
        kind->ffn = config_need(config, KEY_FFN);
    else
        kind->ffn = config_size(config, KEY_FFN, 0);
    if (family->experts != EXPERTS_NONE)
        read_experts(config, family, kind);
}

static void read_attention_traits(struct config *config, const struct family *family,
                                  struct ty_layer_kind *kind)
{
    const uint32_t traits = family->traits;
    kind->qkv_bias = traits & QKV_BIAS;
    kind->out_bias = traits & OUT_BIAS;
    if (traits & (BIAS_KEY | OUT_KEY)) {
        const bool bias = config_flag(config, "attention_bias", kind->qkv_bias);
        kind->qkv_bias = bias;
        kind->out_bias = traits & OUT_KEY ? bias : kind->out_bias;
    }
    kind->qk_norm = traits & QK_FULL ? TY_QK_NORM_FULL : TY_QK_NORM_PER_HEAD;
    if (!config_flag(config, "use_qk_norm", traits & (QK_HEAD | QK_FULL)))
        kind->qk_norm = TY_QK_NORM_NONE;
}

static void read_model(struct config *config, const struct family *family, struct ty_model *model)
{
    text_format(model->family, sizeof model->family, "%s", family->model_type);
    model->hidden = config_need(config, KEY_HIDDEN);
    model->n_layers = config_need(config, KEY_LAYERS);
    model->vocab = config_need(config, KEY_VOCAB);
    model->max_seq = config_size(config, KEY_MAX_SEQ, 0);
    if (family->traits & POSITIONS)
        model->learned_positions = config_need(config, KEY_MAX_SEQ);
    model->norm = family->norm;
    model->final_norm = true;
    model->tied = config_flag(config, "tie_word_embeddings", family->traits & TIED);
    model->head_bias = config_flag(config, "lm_head_bias", family->traits & HEAD_BIAS);
}

/* One config as a model of one family. */
static ty_status read_as(const struct json_at *object, const struct family *family,
                         struct ty_model *model, struct ty_error *error)
{
    struct config config;
    struct draft draft = {.model = model};
    struct ty_layer_kind base;
    memset(&base, 0, sizeof base);
    base.n_norms = family->n_norms;
    config_open(&config, object, error);
    ty_init(TY_KIND_MODEL, model);
    refuse_strangers(&config, family);
    read_model(&config, family, model);
    read_heads(&config, family, model->hidden, &base);
    read_mlp(&config, family, model->hidden, &base);
    read_attention_traits(&config, family, &base);
    if (family->base)
        family->base(&config, model, &base);
    for (uint32_t i = 0; i < model->n_layers; i++)
        draft.layers[i] = base;
    layers_place(&config, family, &draft);
    if (family->layers && config.status == TY_OK)
        family->layers(&config, &draft);
    layers_to_kinds(&config, &draft);
    return config.status;
}

/* ---- which family ------------------------------------------------------------------------ */

static ty_status refuse_type(struct config *config, const char *key, const char *type)
{
    struct ty_error error;
    char list[sizeof error.text];
    family_list(list, sizeof list);
    config_refuse(config, TY_ERR_UNSUPPORTED, key,
                  "\"%.40s\" is not a known model type; nearest: %s; known: %s", type,
                  family_nearest(type), list);
    return config->status;
}

/* The first class that "architectures" names and the table knows; NULL: none. */
static const struct family *family_of_class(struct config *config)
{
    struct json_at list, item = {0};
    const struct family *family = NULL;
    if (!config_find(config, "architectures", &list))
        return NULL;
    while (!family && json_next(&list, &item)) {
        const char *name = "";
        if (config->status == TY_OK)
            config->status = json_get_text(&item, &name, config->error);
        family = family_by_architecture(name);
    }
    return family;
}

static bool same_model(const struct ty_model *a, const struct ty_model *b)
{
    struct ty_params p, q;
    ty_model_params(a, &p);
    ty_model_params(b, &q);
    return p.total == q.total && p.active == q.active && a->n_kinds == b->n_kinds &&
           a->hidden == b->hidden && a->n_layers == b->n_layers;
}

/* model_type and class disagree (edited and converted configs): fine when both read the same
 * model, refused when the counts depend on which of them is right. */
static ty_status compare_class(struct config *config, const struct family *by_type,
                               const struct family *by_class, const struct ty_model *model)
{
    struct ty_model other;
    if (by_class == NULL || by_class == by_type ||
        strcmp(by_class->architecture, by_type->architecture) == 0)
        return TY_OK;
    if (read_as(&config->at, by_class, &other, NULL) != TY_OK || !same_model(model, &other))
        config_refuse(config, TY_ERR_INPUT, "model_type",
                      "\"%s\" contradicts the class %s, and they count differently",
                      by_type->model_type, by_class->architecture);
    return config->status;
}

static ty_status read_decoder(const struct json_at *object, const char *outer_type,
                              struct ty_model *model, struct ty_error *error)
{
    struct config config;
    config_open(&config, object, error);
    const char *type = config_text(&config, "model_type");
    const struct family *by_class = family_of_class(&config);
    refuse_hybrids(&config);
    if (config.status != TY_OK)
        return config.status;
    if (type[0] == '\0')
        type = outer_type[0] != '\0' || !by_class ? outer_type : by_class->model_type;
    const struct family *family = family_by_type(type);
    if (type[0] == '\0')
        config_missing(&config, "model_type");
    else if (!family)
        refuse_type(&config, "model_type", type);
    if (config.status != TY_OK)
        return config.status;
    const ty_status status = read_as(object, family, model, error);
    return status == TY_OK ? compare_class(&config, family, by_class, model) : status;
}

/* ---- public ------------------------------------------------------------------------------ */

/* Multimodal configs keep the decoder's in an object of its own. */
static bool find_decoder(const struct json_at *top, struct json_at *decoder)
{
    static const char *const names[] = {"text_config", "language_config", "llm_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_find(top, names[i], decoder) && json_type_of(decoder) == JSON_OBJECT)
            return true;
    return false;
}

/* Refusals of the whole model, in the words of the field tables. */
static ty_status check_read(const struct json_at *top, const struct ty_model *model,
                            struct ty_error *error)
{
    struct ty_error found;
    if (ty_model_check(model, &found) == TY_OK)
        return TY_OK;
    char where[sizeof found.where];
    json_place(top, where, sizeof where);
    text_append(where, sizeof where, ": %s", found.where);
    return error_set(error, TY_ERR_INPUT, where, "%s", found.text);
}

ty_status model_read_hf(const struct json_at *top, struct ty_model *out, struct ty_error *error)
{
    struct config outer;
    struct json_at decoder;
    struct ty_model model;
    ty_status status = json_want(top, JSON_OBJECT, error);
    if (status != TY_OK)
        return status;
    config_open(&outer, top, error);
    const char *type = config_text(&outer, "model_type");
    if (outer.status != TY_OK)
        return outer.status;
    if (find_decoder(top, &decoder)) {
        refuse_hybrids(&outer);
        status = outer.status == TY_OK ? read_decoder(&decoder, type, &model, error) : outer.status;
        if (status == TY_OK && !json_find(&decoder, "tie_word_embeddings", &(struct json_at){0}))
            model.tied = config_flag(&outer, "tie_word_embeddings", model.tied);
    } else {
        status = read_decoder(top, "", &model, error);
    }
    if (status == TY_OK)
        status = check_read(top, &model, error);
    if (status == TY_OK)
        *out = model;
    return status;
}
