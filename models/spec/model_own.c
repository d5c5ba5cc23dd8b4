/* SPDX-License-Identifier: MIT
 *
 * The own form of a model, read, written and changed field by field by the tables.
 */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/fields_read.h"
#include "models/spec/fields_write.h"
#include "models/spec/model.h"
#include "sim/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- read -------------------------------------------------------------------------------- */

static ty_status read_kind(const struct json_at *object, struct ty_layer_kind *kind,
                           struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_layer_fields(&n);
    struct json_at member = {0};
    ty_status status = json_want(object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(object, &member)) {
        const char *key = json_key(&member);
        const struct ty_field *field = fields_find(fields, n, key);
        status = field ? field_from_json(field, &member, kind, error)
                       : json_refuse(&member, TY_ERR_INPUT, error,
                                     "is no key of a kind; the nearest is \"%s\"",
                                     fields_nearest(fields, n, key));
    }
    return status;
}

static ty_status read_kinds(const struct json_at *list, struct ty_model *model,
                            struct ty_error *error)
{
    struct json_at item = {0};
    ty_status status = json_want(list, JSON_ARRAY, error);
    while (status == TY_OK && json_next(list, &item)) {
        if (model->n_kinds == TY_MAX_KINDS)
            return json_refuse(list, TY_ERR_INPUT, error, "lists more than %d kinds", TY_MAX_KINDS);
        status = read_kind(&item, &model->kinds[model->n_kinds++], error);
    }
    return status;
}

/* One run: {"kind": 0, "layers": 3}. */
static ty_status read_run(const struct json_at *run, struct ty_model *model, uint32_t *n_layers,
                          struct ty_error *error)
{
    struct json_at kind_at, layers_at;
    uint32_t kind, layers;
    if (!json_find(run, "kind", &kind_at))
        return json_missing(run, "kind", error);
    if (!json_find(run, "layers", &layers_at))
        return json_missing(run, "layers", error);
    ty_status status = json_get_u32(&kind_at, 0, TY_MAX_KINDS - 1, &kind, error);
    if (status == TY_OK)
        status = json_get_u32(&layers_at, 1, TY_MAX_LAYERS - *n_layers, &layers, error);
    if (status != TY_OK)
        return status;
    memset(model->layer_kind + *n_layers, (int)kind, layers);
    *n_layers += layers;
    return TY_OK;
}

static ty_status read_runs(const struct json_at *list, struct ty_model *model,
                           struct ty_error *error)
{
    struct json_at item = {0};
    uint32_t n_layers = 0;
    ty_status status = json_want(list, JSON_ARRAY, error);
    while (status == TY_OK && json_next(list, &item)) {
        if (n_layers == TY_MAX_LAYERS)
            return json_refuse(list, TY_ERR_INPUT, error, "has more than %d layers", TY_MAX_LAYERS);
        status = read_run(&item, model, &n_layers, error);
    }
    if (status == TY_OK && n_layers != model->n_layers)
        status = json_refuse(list, TY_ERR_INPUT, error, "has %u layers, but \"layers\" is %u",
                             n_layers, model->n_layers);
    return status;
}

static ty_status read_field(const struct json_at *member, struct ty_model *model,
                            struct ty_error *error)
{
    size_t n;
    uint32_t version;
    const char *key = json_key(member);
    const struct ty_field *fields = ty_fields(TY_KIND_MODEL, &n);
    const struct ty_field *field = fields_find(fields, n, key);
    if (strcmp(key, MODEL_FORM_KEY) == 0)
        return json_get_u32(member, MODEL_FORM_VERSION, MODEL_FORM_VERSION, &version, error);
    if (strcmp(key, "kinds") == 0)
        return read_kinds(member, model, error);
    if (key[0] == '_' || strcmp(key, "layer_kinds") == 0)
        return TY_OK;
    if (field)
        return field_from_json(field, member, model, error);
    return json_refuse(member, TY_ERR_INPUT, error, "is no key of a model; the nearest is \"%s\"",
                       fields_nearest(fields, n, key));
}

ty_status model_read_own(const struct json_at *top, struct ty_model *out, struct ty_error *error)
{
    struct json_at member = {0}, runs;
    struct ty_model model;
    struct ty_error found;
    ty_init(TY_KIND_MODEL, &model);
    ty_status status = json_want(top, JSON_OBJECT, error);
    while (status == TY_OK && json_next(top, &member))
        status = read_field(&member, &model, error);
    if (status == TY_OK && json_find(top, "layer_kinds", &runs))
        status = read_runs(&runs, &model, error);
    else if (status == TY_OK && model.n_kinds > 1)
        status = json_missing(top, "layer_kinds", error);
    if (status != TY_OK)
        return status;
    if (ty_model_check(&model, &found) != TY_OK) {
        char where[sizeof found.where];
        json_place(top, where, sizeof where);
        text_append(where, sizeof where, ": %s", found.where);
        return error_set(error, TY_ERR_INPUT, where, "%s", found.text);
    }
    *out = model;
    return TY_OK;
}

/* ---- write ------------------------------------------------------------------------------- */

static void write_runs(struct json_writer *json, const struct ty_model *model)
{
    json_array(json, "layer_kinds");
    for (uint32_t i = 0, end; i < model->n_layers; i = end) {
        for (end = i; end < model->n_layers && model->layer_kind[end] == model->layer_kind[i];
             end++)
            ;
        json_object(json, NULL);
        json_count(json, "kind", model->layer_kind[i]);
        json_count(json, "layers", end - i);
        json_close(json);
    }
    json_close(json);
}

char *model_write(const struct ty_model *model)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_MODEL, &n);
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_count(&json, MODEL_FORM_KEY, MODEL_FORM_VERSION);
    fields_write(&json, fields, n, model);
    fields = ty_layer_fields(&n);
    json_array(&json, "kinds");
    for (uint32_t i = 0; i < model->n_kinds; i++) {
        json_object(&json, NULL);
        fields_write(&json, fields, n, &model->kinds[i]);
        json_close(&json);
    }
    json_close(&json);
    write_runs(&json, model);
    json_close(&json);
    return json_finish(&json);
}

/* ---- set --------------------------------------------------------------------------------- */

/* Distance at which the end of the pattern of kinds repeats for longest; the shortest of equals.
 * 3 dense then 58 MoE layers: 1; one full layer after every 5 with windows: 6. */
static uint32_t last_period(const struct ty_model *model)
{
    uint32_t best = 1, longest = 0;
    for (uint32_t period = 1; period < model->n_layers; period++) {
        uint32_t repeats = 0;
        for (uint32_t i = model->n_layers; i-- > period; repeats++)
            if (model->layer_kind[i] != model->layer_kind[i - period])
                break;
        if (repeats > longest) {
            longest = repeats;
            best = period;
        }
    }
    return best;
}

static void set_layers(struct ty_model *model, uint32_t n_layers)
{
    const uint32_t period = last_period(model);
    for (uint32_t i = model->n_layers; i < n_layers; i++)
        model->layer_kind[i] = i >= period ? model->layer_kind[i - period] : 0;
    model->n_layers = n_layers;
}

/* "kinds[3].ffn": index 3; *rest = "ffn". */
static bool split_kind(const char *path, uint32_t *index, const char **rest)
{
    int length = 0;
    if (sscanf(path, "kinds[%2" SCNu32 "].%n", index, &length) != 1 || length == 0)
        return false;
    *rest = path + length;
    return true;
}

static ty_status set_kind(struct ty_model *model, uint32_t index, const char *rest,
                          const char *path, const char *text, struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_layer_fields(&n);
    const struct ty_field *field = fields_find(fields, n, rest);
    struct ty_error reason;
    if (index >= model->n_kinds)
        return error_set(error, TY_ERR_INPUT, path, "the model has %u kinds, numbered from 0",
                         model->n_kinds);
    if (!field)
        return error_set(error, TY_ERR_INPUT, path, "no such field; the nearest is \"%s\"",
                         fields_nearest(fields, n, rest));
    const ty_status status = field_from_text(field, text, &model->kinds[index], &reason);
    return status == TY_OK ? TY_OK : error_set(error, status, path, "%s", reason.text);
}

ty_status model_set(struct ty_model *model, const char *path, const char *text,
                    struct ty_error *error)
{
    size_t n;
    uint32_t index;
    const char *rest;
    const struct ty_field *fields = ty_fields(TY_KIND_MODEL, &n);
    const struct ty_field *field = fields_find(fields, n, path);
    if (split_kind(path, &index, &rest))
        return set_kind(model, index, rest, path, text, error);
    if (!field)
        return error_set(error, TY_ERR_INPUT, path,
                         "no such field; the nearest is \"%s\"; a kind of layers: kinds[0].ffn",
                         fields_nearest(fields, n, path));
    struct ty_model next = *model;
    const ty_status status = field_from_text(field, text, &next, error);
    if (status != TY_OK)
        return status;
    if (next.n_layers != model->n_layers)
        set_layers(model, next.n_layers);
    else
        *model = next;
    return TY_OK;
}
