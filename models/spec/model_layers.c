/* SPDX-License-Identifier: MIT
 *
 * Which layers of a config have experts and which a window; the list of kinds that results.
 */
#include "models/fields.h"
#include "models/spec/model_family.h"

#include <string.h>

/* ---- experts ----------------------------------------------------------------------------- */

/* The key lists this layer. */
static bool listed(struct config *config, const char *key, uint32_t layer)
{
    struct json_at list, item = {0};
    if (!config_find(config, key, &list) || config->status != TY_OK)
        return false;
    config->status = json_want(&list, JSON_ARRAY, config->error);
    bool found = false;
    while (config->status == TY_OK && json_next(&list, &item)) {
        uint32_t value = 0;
        config->status = json_get_u32(&item, 0, TY_MAX_LAYERS, &value, config->error);
        found = found || value == layer;
    }
    return found;
}

/* Layer i has experts when i >= first, (i + phase) is a multiple of step, and no list says it is
 * dense. */
struct placement {
    uint32_t first, step, phase;
    bool by_list; /* "moe_layers" names the layers */
};

static struct placement expert_placement(struct config *config, const struct family *family)
{
    struct placement place = {0, 1, 0, false};
    struct json_at at;
    const char *step = "moe_layer_freq";
    if (family->experts == EXPERTS_FROM) {
        place.first = config_count(config, "first_k_dense_replace", family->first_k);
    } else if (family->experts == EXPERTS_STEP) {
        step = "decoder_sparse_step";
        place.phase = 1;
    } else if (family->experts == EXPERTS_INTERLEAVED) {
        step = "interleave_moe_layer_step";
        place.phase = 1;
        place.by_list = config_find(config, "moe_layers", &at);
    }
    if (family->experts != EXPERTS_ALL && config_find(config, step, &at))
        place.step = config_need_count(config, step);
    return place;
}

static bool has_experts(struct config *config, const struct family *family,
                        const struct placement *place, uint32_t layer)
{
    if (place->by_list)
        return listed(config, "moe_layers", layer);
    return layer >= place->first && (layer + place->phase) % place->step == 0 &&
           !(family->experts == EXPERTS_STEP && listed(config, "mlp_only_layers", layer));
}

static void make_dense(struct ty_layer_kind *kind)
{
    kind->mlp = TY_MLP_DENSE;
    kind->n_experts = kind->top_k = kind->expert_ffn = kind->shared_ffn = 0;
    kind->router_bias = kind->expert_bias = kind->shared_gate = false;
    kind->n_groups = kind->group_limit = 0;
}

static void place_experts(struct config *config, const struct family *family, struct draft *draft)
{
    if (family->experts == EXPERTS_NONE)
        return;
    const struct placement place = expert_placement(config, family);
    for (uint32_t i = 0; i < draft->model->n_layers && config->status == TY_OK; i++) {
        struct ty_layer_kind *kind = &draft->layers[i];
        if (has_experts(config, family, &place, i)) {
            kind->ffn = 0;
            continue;
        }
        make_dense(kind);
        if (kind->ffn == 0)
            config_missing(config, family->experts == EXPERTS_INTERLEAVED ? "intermediate_size_mlp"
                                                                          : "intermediate_size");
    }
}

/* ---- windows ----------------------------------------------------------------------------- */

/* "layer_types": how each layer attends. */
static void windows_by_type(struct config *config, const struct json_at *types, uint32_t window,
                            struct draft *draft)
{
    struct json_at item = {0};
    config->status = json_want(types, JSON_ARRAY, config->error);
    if (config->status == TY_OK && json_size(types) != draft->model->n_layers)
        config_refuse(config, TY_ERR_INPUT, "layer_types", "lists %u layers of %u",
                      json_size(types), draft->model->n_layers);
    while (config->status == TY_OK && json_next(types, &item)) {
        const char *type = "";
        config->status = json_get_text(&item, &type, config->error);
        if (config->status != TY_OK || strcmp(type, "full_attention") == 0)
            continue;
        if (strcmp(type, "sliding_attention") != 0 && strcmp(type, "chunked_attention") != 0)
            config->status =
                json_refuse(&item, TY_ERR_UNSUPPORTED, config->error,
                            "is \"%.40s\"; modelled are full_attention, sliding_attention and "
                            "chunked_attention",
                            type);
        else if (window == 0)
            config->status = json_refuse(&item, TY_ERR_INPUT, config->error,
                                         "is \"%.40s\", but no window size is given", type);
        draft->layers[item.index].window_tokens = window;
        draft->layers[item.index].window_chunked = strcmp(type, "chunked_attention") == 0;
    }
}

static bool has_window(enum windows windows, uint32_t layer, uint32_t period, uint32_t above)
{
    switch (windows) {
    case WINDOWS_ALL:
    case WINDOWS_SWITCHED:
        return true;
    case WINDOWS_ABOVE:
        return layer >= above;
    case WINDOWS_PERIOD:
        return (layer + 1) % period != 0;
    case WINDOWS_NONE:
        break;
    }
    return false;
}

/* Layers between full ones; under either of two names. */
static uint32_t window_period(struct config *config, const struct family *family)
{
    static const char *const names[] = {"sliding_window_pattern", "_sliding_window_pattern",
                                        "no_rope_layer_interval"};
    struct json_at at;
    if (family->windows != WINDOWS_PERIOD)
        return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (config_find(config, names[i], &at))
            return config_need_count(config, names[i]);
    return family->period;
}

/* Size of the windows; 0: none, or switched off. A key that is null means none. */
static uint32_t window_size(struct config *config, const struct family *family, bool chunked)
{
    const char *name = chunked ? "attention_chunk_size" : "sliding_window";
    const uint32_t absent = config_has(config, name) ? 0 : family->window;
    struct json_at at;
    const bool off = family->windows == WINDOWS_SWITCHED || family->windows == WINDOWS_ABOVE;
    if (!config_flag(config, "use_sliding_window", !off))
        return 0;
    if (chunked)
        return config_count(config, name, absent);
    if (family->windows == WINDOWS_NONE && !config_find(config, "layer_types", &at))
        return 0;
    return config_size(config, KEY_WINDOW, absent);
}

static void place_windows(struct config *config, const struct family *family, struct draft *draft)
{
    const bool chunked = family->experts == EXPERTS_INTERLEAVED;
    const uint32_t window = window_size(config, family, chunked);
    const uint32_t period = window_period(config, family);
    const uint32_t above = config_count(config, "max_window_layers", 28); /* class default */
    struct json_at types;
    if (config->status != TY_OK)
        return;
    if (config_find(config, "layer_types", &types)) {
        windows_by_type(config, &types, window, draft);
        return;
    }
    for (uint32_t i = 0; window > 0 && i < draft->model->n_layers; i++) {
        if (!has_window(family->windows, i, period, above))
            continue;
        draft->layers[i].window_tokens = window;
        draft->layers[i].window_chunked = chunked;
    }
}

void layers_place(struct config *config, const struct family *family, struct draft *draft)
{
    place_experts(config, family, draft);
    place_windows(config, family, draft);
}

/* ---- kinds ------------------------------------------------------------------------------- */

static bool same_kind(const struct ty_layer_kind *a, const struct ty_layer_kind *b)
{
    size_t n;
    const struct ty_field *fields = ty_layer_fields(&n);
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)a + fields[i].offset, (const char *)b + fields[i].offset,
                   fields[i].size) != 0)
            return false;
    return true;
}

void layers_to_kinds(struct config *config, struct draft *draft)
{
    struct ty_model *model = draft->model;
    model->n_kinds = 0;
    for (uint32_t i = 0; i < model->n_layers && config->status == TY_OK; i++) {
        uint32_t kind = 0;
        while (kind < model->n_kinds && !same_kind(&model->kinds[kind], &draft->layers[i]))
            kind++;
        if (kind == TY_MAX_KINDS) {
            config_refuse(config, TY_ERR_UNSUPPORTED, "", "has more than %d kinds of layers",
                          TY_MAX_KINDS);
            return;
        }
        if (kind == model->n_kinds)
            model->kinds[model->n_kinds++] = draft->layers[i];
        model->layer_kind[i] = (uint8_t)kind;
    }
}
