/* SPDX-License-Identifier: MIT
 *
 * Names under which published configs give the same size, and refusals that name them.
 */
#include "models/spec/model_keys.h"

#include "sim/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAMES 8

/* The usual name first. max: as in the field tables, so that a refusal names the user's key. */
static const struct {
    const char *names[MAX_NAMES];
    uint32_t max;
    bool first_counts; /* names may disagree: the first one given counts */
} keys[N_KEYS] = {
    [KEY_HIDDEN] = {{"hidden_size", "n_embd", "d_model", "n_embed"}, 1048576, false},
    [KEY_LAYERS] = {{"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
                    TY_MAX_LAYERS,
                    false},
    [KEY_HEADS] = {{"num_attention_heads", "n_head", "n_heads"}, 65536, false},
    [KEY_KV_HEADS] = {{"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num",
                       "attn_config.kv_n_heads"},
                      65536,
                      false},
    [KEY_HEAD_DIM] = {{"head_dim", "kv_channels", "attention_head_dim"}, 65536, false},
    [KEY_FFN] = {{"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim",
                  "ffn_config.ffn_hidden_size"},
                 16777216,
                 false},
    [KEY_VOCAB] = {{"padded_vocab_size", "vocab_size"}, 16777216, true},
    [KEY_MAX_SEQ] = {{"max_position_embeddings", "n_positions", "n_ctx", "seq_length",
                      "max_seq_len", "max_sequence_length"},
                     1073741824,
                     true},
    [KEY_WINDOW] = {{"sliding_window", "sliding_window_size"}, 1073741824, false},
    [KEY_EXPERTS] = {{"num_local_experts", "num_experts", "n_routed_experts",
                      "ffn_config.moe_num_experts"},
                     65536,
                     false},
    [KEY_TOP_K] = {{"num_experts_per_tok", "experts_per_token", "num_selected_experts",
                    "ffn_config.moe_top_k"},
                   65536,
                   false},
    [KEY_EXPERT_FFN] = {{"moe_intermediate_size"}, 16777216, false},
    [KEY_SHARED_FFN] = {{"shared_expert_intermediate_size", "shared_intermediate_size"},
                        16777216,
                        false},
};

static const char *const part_names[N_PARTS] = {"attn_config", "ffn_config"};

void config_open(struct config *config, const struct json_at *object, struct ty_error *error)
{
    *config = (struct config){.at = *object, .error = error};
    for (int i = 0; i < N_PARTS; i++)
        config->has_part[i] = json_find(&config->at, part_names[i], &config->parts[i]);
}

bool config_find(const struct config *config, const char *name, struct json_at *out)
{
    for (int i = 0; i < N_PARTS; i++) {
        const size_t length = strlen(part_names[i]);
        if (strncmp(name, part_names[i], length) == 0 && name[length] == '.')
            return config->has_part[i] && json_find(&config->parts[i], name + length + 1, out);
    }
    return json_find(&config->at, name, out);
}

bool config_has(const struct config *config, const char *name)
{
    struct json_at item = {0};
    while (json_next(&config->at, &item))
        if (strcmp(json_key(&item), name) == 0)
            return true;
    return false;
}

/* ---- refusals ---------------------------------------------------------------------------- */

void config_refuse(struct config *config, ty_status code, const char *key, const char *format, ...)
{
    if (config->status != TY_OK)
        return;
    struct ty_error error;
    char where[sizeof error.where], text[sizeof error.text];
    json_place(&config->at, where, sizeof where);
    if (key[0] != '\0')
        text_append(where, sizeof where, "%s%s", config->at.parent ? "." : ": ", key);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    config->status = error_set(config->error, code, where, "%s", text);
}

void config_missing(struct config *config, const char *key)
{
    struct ty_error error;
    char seen[sizeof error.text] = "";
    struct json_at item = {0};
    while (json_next(&config->at, &item))
        text_append(seen, sizeof seen, "%s%.40s", seen[0] ? ", " : "", json_key(&item));
    config_refuse(config, TY_ERR_INPUT, key, "\"%s\" is missing; keys seen: %s", key,
                  seen[0] ? seen : "none");
}

/* ---- values ------------------------------------------------------------------------------ */

static uint32_t count_at(struct config *config, const struct json_at *at, uint32_t min,
                         uint32_t max, uint32_t fallback)
{
    uint32_t value = fallback;
    if (config->status == TY_OK)
        config->status = json_get_u32(at, min, max, &value, config->error);
    return value;
}

static uint32_t read_key(struct config *config, enum key key, uint32_t min, uint32_t fallback,
                         bool *given)
{
    const char *first = NULL;
    uint32_t value = fallback;
    *given = false;
    for (int i = 0; i < MAX_NAMES && keys[key].names[i] && config->status == TY_OK; i++) {
        struct json_at at;
        const char *name = keys[key].names[i];
        if (!config_find(config, name, &at))
            continue;
        const uint32_t found = count_at(config, &at, min, keys[key].max, fallback);
        *given = true;
        if (!first) {
            first = name;
            value = found;
            if (keys[key].first_counts)
                break;
        } else if (found != value) {
            config_refuse(config, TY_ERR_INPUT, name, "says %u, but %s says %u", found, first,
                          value);
        }
    }
    return config->status == TY_OK ? value : fallback;
}

const char *config_key_name(const struct config *config, enum key key)
{
    struct json_at at;
    for (int i = 0; i < MAX_NAMES && keys[key].names[i]; i++)
        if (config_find(config, keys[key].names[i], &at))
            return keys[key].names[i];
    return key == KEY_VOCAB ? "vocab_size" : keys[key].names[0];
}

uint32_t config_size(struct config *config, enum key key, uint32_t fallback)
{
    bool given;
    return read_key(config, key, 0, fallback, &given);
}

uint32_t config_need(struct config *config, enum key key)
{
    bool given;
    const uint32_t value = read_key(config, key, 1, 1, &given);
    if (!given)
        config_missing(config, config_key_name(config, key));
    return value;
}

uint32_t config_need_count(struct config *config, const char *name)
{
    struct json_at at;
    if (config_find(config, name, &at))
        return count_at(config, &at, 1, 16777216, 1);
    config_missing(config, name);
    return 1;
}

uint32_t config_count(struct config *config, const char *name, uint32_t fallback)
{
    struct json_at at;
    return config_find(config, name, &at) ? count_at(config, &at, 0, 16777216, fallback) : fallback;
}

bool config_flag(struct config *config, const char *name, bool fallback)
{
    struct json_at at;
    bool value = fallback;
    if (config->status == TY_OK && config_find(config, name, &at))
        config->status = json_get_bool(&at, &value, config->error);
    return value;
}

const char *config_text(struct config *config, const char *name)
{
    struct json_at at;
    const char *text = "";
    if (config->status == TY_OK && config_find(config, name, &at))
        config->status = json_get_text(&at, &text, config->error);
    return text;
}
