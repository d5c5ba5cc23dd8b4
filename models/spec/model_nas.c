/* SPDX-License-Identifier: MIT
 *
 * Searched architectures (Nemotron NAS): "block_configs" gives every layer its own key/value heads,
 * MLP size, or neither. Source: the modelling code published with the weights (DeciLM).
 */
#include "models/spec/model_family.h"

#include <math.h>

/* Refuses what a block may hold beyond a plain, a narrower or an absent branch. */
static void refuse_block(struct config *config, const struct json_at *branch)
{
    static const char *const names[] = {"replace_with_linear",
                                        "sparsify",
                                        "num_sink_tokens",
                                        "unshifted_sink",
                                        "mamba",
                                        "moe",
                                        "llama4"};
    for (size_t i = 0; i < sizeof names / sizeof *names && config->status == TY_OK; i++) {
        struct json_at at;
        bool on = true;
        if (!json_find(branch, names[i], &at))
            continue;
        if (json_type_of(&at) == JSON_BOOL)
            config->status = json_get_bool(&at, &on, config->error);
        if (on && config->status == TY_OK)
            config->status = json_refuse(&at, TY_ERR_UNSUPPORTED, config->error,
                                         "is set; such blocks are not modelled");
    }
}

/* One branch of a block; false: the layer lacks it. */
static bool block_branch(struct config *config, const struct json_at *block, const char *name,
                         struct json_at *branch)
{
    struct json_at at;
    bool absent = false;
    if (config->status != TY_OK)
        return false;
    if (!json_find(block, name, branch)) {
        config->status = json_missing(block, name, config->error);
        return false;
    }
    config->status = json_want(branch, JSON_OBJECT, config->error);
    if (config->status == TY_OK && json_find(branch, "no_op", &at))
        config->status = json_get_bool(&at, &absent, config->error);
    refuse_block(config, branch);
    return config->status == TY_OK && !absent;
}

static void block_attention(struct config *config, const struct json_at *branch,
                            struct ty_layer_kind *kind)
{
    struct json_at at;
    uint32_t group = 1;
    if (!json_find(branch, "n_heads_in_group", &at))
        config->status = json_missing(branch, "n_heads_in_group", config->error);
    else
        config->status = json_get_u32(&at, 1, kind->n_heads, &group, config->error);
    if (config->status == TY_OK && kind->n_heads % group != 0)
        config->status = json_refuse(&at, TY_ERR_INPUT, config->error,
                                     "is %u; it must divide %u heads", group, kind->n_heads);
    kind->n_kv_heads = kind->n_heads / group;
    if (config->status == TY_OK && json_find(branch, "window_length", &at))
        config->status = json_get_u32(&at, 1, 1073741824, &kind->window_tokens, config->error);
}

/* MLP of int(2 mult h / 3), rounded up to a multiple of 256 (DeciLM modelling code). */
static void block_ffn(struct config *config, const struct json_at *branch, uint32_t hidden,
                      struct ty_layer_kind *kind)
{
    struct json_at at;
    double mult = 1.0;
    if (json_find(branch, "intermediate_size", &at)) {
        config->status = json_get_u32(&at, 1, 16777216, &kind->ffn, config->error);
        return;
    }
    if (!json_find(branch, "ffn_mult", &at)) {
        config->status = json_missing(branch, "ffn_mult", config->error);
        return;
    }
    config->status = json_get_double(&at, 1e-3, 16.0, &mult, config->error);
    kind->ffn = 256 * (uint32_t)ceil(floor(2.0 * mult * hidden / 3.0) / 256.0);
}

static void nas_block(struct config *config, const struct json_at *block, uint32_t hidden,
                      struct ty_layer_kind *kind)
{
    struct json_at branch;
    if (block_branch(config, block, "attention", &branch)) {
        block_attention(config, &branch, kind);
    } else {
        kind->attention = TY_ATTENTION_NONE;
        kind->n_heads = kind->n_kv_heads = kind->head_dim = 0;
        kind->n_norms--;
    }
    if (block_branch(config, block, "ffn", &branch)) {
        block_ffn(config, &branch, hidden, kind);
    } else {
        kind->mlp = TY_MLP_NONE;
        kind->gated = false;
        kind->ffn = 0;
        kind->n_norms--;
    }
}

void layers_from_blocks(struct config *config, struct draft *draft)
{
    struct json_at blocks, block = {0};
    if (!config_find(config, "block_configs", &blocks)) {
        config_missing(config, "block_configs");
        return;
    }
    if (json_size(&blocks) != draft->model->n_layers)
        config_refuse(config, TY_ERR_INPUT, "block_configs", "describes %u layers of %u",
                      json_size(&blocks), draft->model->n_layers);
    while (config->status == TY_OK && json_next(&blocks, &block))
        nas_block(config, &block, draft->model->hidden, &draft->layers[block.index]);
}
