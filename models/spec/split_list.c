/* SPDX-License-Identifier: MIT
 * The jobs of a split from JSON (docs/formats.md, "Jobs"). */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/fields_read.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HIT_POINTS 65 /* of a cache policy's curve */

/* ---- values ------------------------------------------------------------------------------- */

/* "150 kB", or a number in the base unit. */
static ty_status read_quantity(const struct json_at *at, enum ty_unit unit, double *out,
                               struct ty_error *error)
{
    const char *text;
    struct ty_error why = {0};
    if (json_type_of(at) != JSON_TEXT)
        return json_get_double(at, 0.0, 1e30, out, error);
    ty_status status = json_get_text(at, &text, error);
    if (status == TY_OK && ty_quantity_parse(text, unit, out, &why) != TY_OK)
        return json_refuse(at, TY_ERR_INPUT, error, "%s", why.text);
    return status == TY_OK && !(*out >= 0.0)
               ? json_refuse(at, TY_ERR_INPUT, error, "must be 0 or more")
               : status;
}

/* The curve of a policy, or that of an earlier job with the same one: some are replayed. */
static ty_status read_policy(const struct json_at *at, const struct ty_split_list *before,
                             struct ty_split_entry *entry, struct ty_error *error)
{
    struct ty_error why = {0};
    ty_status status = json_copy_text(at, entry->cache, sizeof entry->cache, error);
    entry->n_hits = HIT_POINTS;
    for (uint32_t i = 0; status == TY_OK && i < before->n; i++)
        if (strcmp(before->entry[i].cache, entry->cache) == 0) {
            memcpy(entry->hit, before->entry[i].hit, sizeof entry->hit);
            return TY_OK;
        }
    if (status == TY_OK && ty_split_hit_curve(entry->cache, HIT_POINTS, entry->hit, &why) != TY_OK)
        status = json_refuse(at, TY_ERR_INPUT, error, "%s", why.text);
    return status;
}

/* ---- plan --------------------------------------------------------------------------------- */

static struct ty_values *knob_of(struct ty_space *space, const char *key)
{
    const struct {
        const char *key;
        struct ty_values *values;
    } knobs[] = {{"gpus", &space->n_gpus},
                 {"tp", &space->tp},
                 {"pp", &space->pp},
                 {"vpp", &space->vpp},
                 {"cp", &space->cp},
                 {"ep", &space->ep},
                 {"etp", &space->etp},
                 {"mbs", &space->mbs},
                 {"gbs", &space->gbs},
                 {"recompute", &space->recompute},
                 {"sharding", &space->sharding},
                 {"precision", &space->precision},
                 {"schedule", &space->schedule},
                 {"offload", &space->offload}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (strcmp(knobs[i].key, key) == 0)
            return knobs[i].values;
    return NULL;
}

/* [1, 2, 4] or ["none", "full"]: what the knob may be. */
static ty_status read_limits(const struct json_at *array, struct ty_space *space,
                             struct ty_error *error)
{
    const char *key = json_key(array);
    struct ty_values *values = knob_of(space, key);
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    const struct ty_field *field = fields_find(fields, n, key);
    struct json_at item = {0};
    ty_status status = TY_OK;
    if (!values || !field)
        return json_refuse(array, TY_ERR_INPUT, error, "cannot be a list of values");
    while (status == TY_OK && json_next(array, &item)) {
        struct ty_plan plan;
        ty_init(TY_KIND_PLAN, &plan);
        if (values->n == TY_MAX_VALUES)
            return json_refuse(array, TY_ERR_INPUT, error, "has too many values");
        status = field_from_json(field, &item, &plan, error);
        memcpy(&values->value[values->n++], (const char *)&plan + field->offset, sizeof(uint32_t));
    }
    return status == TY_OK && values->n == 0 ? json_refuse(array, TY_ERR_INPUT, error, "is empty")
                                             : status;
}

/* Two passes, since a batch in tokens needs seq. */
static ty_status read_plan(const struct json_at *object, struct ty_split_entry *entry,
                           struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    ty_status status = json_want(object, JSON_OBJECT, error);
    for (int pass = 0; status == TY_OK && pass < 2; pass++) {
        struct json_at member = {0};
        while (status == TY_OK && json_next(object, &member)) {
            const char *key = json_key(&member), *text;
            const struct ty_field *field = fields_find(fields, n, key);
            struct ty_error why = {0};
            if (key[0] == '_' || (strcmp(key, "gbs") == 0) != (pass == 1))
                continue;
            if (!field)
                status = json_refuse(&member, TY_ERR_INPUT, error,
                                     "is no key of a plan; the nearest is \"%s\"",
                                     fields_nearest(fields, n, key));
            else if (json_type_of(&member) == JSON_ARRAY)
                status = read_limits(&member, &entry->space, error);
            else if (json_type_of(&member) != JSON_TEXT)
                status = field_from_json(field, &member, &entry->space.fixed, error);
            else if ((status = json_get_text(&member, &text, error)) == TY_OK &&
                     plan_set(&entry->space.fixed, field, text, &why) != TY_OK)
                status = json_refuse(&member, TY_ERR_INPUT, error, "%s", why.text);
        }
    }
    return status;
}

/* {"8": 21000, "16": 41000}: tokens/s by GPUs. */
static ty_status read_curve(const struct json_at *object, struct ty_split_entry *entry,
                            struct ty_error *error)
{
    struct json_at member = {0};
    ty_status status = json_want(object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(object, &member)) {
        const char *key = json_key(&member);
        double gpus;
        if (key[0] == '_')
            continue;
        if (number_parse(key, strlen(key), &gpus) != strlen(key) || !(gpus >= 1 && gpus <= 1e9) ||
            gpus != floor(gpus))
            return json_refuse(&member, TY_ERR_INPUT, error, "is no number of GPUs");
        if (entry->n_points == TY_SPLIT_MAX_HITS)
            return json_refuse(object, TY_ERR_INPUT, error, "has more than %d points",
                               TY_SPLIT_MAX_HITS);
        entry->point_gpus[entry->n_points] = (uint32_t)gpus;
        status = json_get_double(&member, 0.0, 1e18, &entry->point_tokens_per_s[entry->n_points++],
                                 error);
    }
    return status;
}

/* ---- input -------------------------------------------------------------------------------- */

static ty_status read_input(const struct json_at *object, const struct ty_split_list *before,
                            struct ty_split_entry *entry, struct ty_error *error)
{
    struct json_at member = {0};
    ty_status status = json_want(object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(object, &member)) {
        const char *key = json_key(&member);
        if (strcmp(key, "sample_bytes") == 0)
            status = read_quantity(&member, TY_UNIT_BYTES, &entry->sample_bytes, error);
        else if (strcmp(key, "worker_time") == 0)
            status = read_quantity(&member, TY_UNIT_S, &entry->sample_cpu_s, error);
        else if (strcmp(key, "sample_tokens") == 0)
            status = json_get_double(&member, 1.0, 1e12, &entry->sample_tokens, error);
        else if (strcmp(key, "data_bytes") == 0)
            status = read_quantity(&member, TY_UNIT_BYTES, &entry->data_bytes, error);
        else if (strcmp(key, "cache") == 0)
            status = read_policy(&member, before, entry, error);
        else if (key[0] != '_')
            status = json_refuse(&member, TY_ERR_INPUT, error,
                                 "is no key of an input; legal: sample_bytes, worker_time, "
                                 "sample_tokens, data_bytes, cache");
    }
    return status;
}

/* ---- job ---------------------------------------------------------------------------------- */

static ty_status read_min(const struct json_at *at, struct ty_split_entry *entry,
                          struct ty_error *error)
{
    const ty_status status = json_get_u32(at, 0, 1u << 30, &entry->min_gpus, error);
    entry->may_wait = entry->min_gpus == 0;
    return status;
}

static ty_status read_scaled(const struct json_at *at, double unit, double *out,
                             struct ty_error *error)
{
    const ty_status status = json_get_double(at, 0.0, 1e12, out, error);
    *out *= unit;
    return status;
}

static ty_status read_member(const struct json_at *at, const struct ty_split_list *before,
                             struct ty_split_entry *entry, struct ty_error *error)
{
    const char *key = json_key(at);
    if (strcmp(key, "name") == 0)
        return json_copy_text(at, entry->name, sizeof entry->name, error);
    if (strcmp(key, "model") == 0)
        return json_copy_text(at, entry->model, sizeof entry->model, error);
    if (strcmp(key, "plan") == 0)
        return read_plan(at, entry, error);
    if (strcmp(key, "curve") == 0)
        return read_curve(at, entry, error);
    if (strcmp(key, "min_gpus") == 0)
        return read_min(at, entry, error);
    if (strcmp(key, "max_gpus") == 0)
        return json_get_u32(at, 1, 1u << 30, &entry->max_gpus, error);
    if (strcmp(key, "weight") == 0)
        return json_get_double(at, 1e-9, 1e9, &entry->weight, error);
    if (strcmp(key, "tokens") == 0)
        return read_quantity(at, TY_UNIT_TOKENS, &entry->tokens, error);
    if (strcmp(key, "deadline_days") == 0)
        return read_scaled(at, 86400.0, &entry->deadline_s, error);
    if (strcmp(key, "prepare_core_hours") == 0)
        return read_scaled(at, 3600.0, &entry->prepare_cpu_s, error);
    if (strcmp(key, "input") == 0)
        return read_input(at, before, entry, error);
    if (key[0] == '_')
        return TY_OK;
    return json_refuse(at, TY_ERR_INPUT, error,
                       "is no key of a job; legal: name, model, plan, curve, min_gpus, max_gpus, "
                       "weight, tokens, deadline_days, prepare_core_hours, input");
}

static ty_status read_entry(const struct json_at *object, const struct ty_split_list *before,
                            struct ty_split_entry *entry, struct ty_error *error)
{
    struct json_at member = {0};
    *entry = (struct ty_split_entry){
        .weight = 1.0, .tokens = NAN, .deadline_s = NAN, .sample_tokens = NAN};
    ty_init(TY_KIND_PLAN, &entry->space.fixed);
    text_format(entry->name, sizeof entry->name, "job %u", before->n + 1);
    ty_status status = json_want(object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(object, &member))
        status = read_member(&member, before, entry, error);
    if (status == TY_OK && (*entry->model != '\0') == (entry->n_points > 0))
        status = json_refuse(object, TY_ERR_INPUT, error,
                             "needs either \"model\", to search its curve, or \"curve\"");
    const bool feeds = entry->sample_bytes > 0.0 || entry->sample_cpu_s > 0.0;
    if (status == TY_OK && feeds && entry->n_points && isnan(entry->sample_tokens))
        status = json_refuse(object, TY_ERR_INPUT, error,
                             "input.sample_tokens is needed beside a \"curve\"");
    return status;
}

static ty_status read_list(const struct json_at *top, struct ty_split_list *list,
                           struct ty_error *error)
{
    struct json_at member = {0}, item = {0};
    ty_status status = json_want(top, JSON_OBJECT, error);
    while (status == TY_OK && json_next(top, &member)) {
        if (json_key(&member)[0] == '_')
            continue;
        if (strcmp(json_key(&member), "jobs") != 0)
            return json_refuse(&member, TY_ERR_INPUT, error, "is no key here; legal: jobs");
        status = json_want(&member, JSON_ARRAY, error);
        if (status == TY_OK && json_size(&member) > TY_SPLIT_MAX_JOBS)
            return json_refuse(&member, TY_ERR_INPUT, error, "has more than %d jobs",
                               TY_SPLIT_MAX_JOBS);
        if (status == TY_OK)
            list->entry = calloc(json_size(&member) + 1, sizeof *list->entry);
        if (status == TY_OK && !list->entry)
            return json_refuse(&member, TY_ERR_NOMEM, error, "out of memory");
        while (status == TY_OK && json_next(&member, &item)) {
            status = read_entry(&item, list, &list->entry[list->n], error);
            list->n++;
        }
    }
    return status == TY_OK && list->n == 0 ? json_missing(top, "jobs", error) : status;
}

/* ---- interface ---------------------------------------------------------------------------- */

/* Takes the document, read or not. */
static ty_status finish(ty_status status, struct json_document *document, struct ty_split_list *out,
                        struct ty_error *error)
{
    struct ty_split_list list = {0};
    if (status == TY_OK)
        status = read_list(&document->top, &list, error);
    json_free(document);
    if (status == TY_OK)
        *out = list;
    else
        ty_split_list_free(&list);
    return status;
}

ty_status ty_split_list_load(const char *path, struct ty_split_list *out, struct ty_error *error)
{
    struct json_document document = {0};
    return finish(json_load_file(path, &document, error), &document, out, error);
}

ty_status ty_split_list_parse(const char *text, size_t bytes, const char *origin,
                              struct ty_split_list *out, struct ty_error *error)
{
    struct json_document document = {0};
    return finish(json_parse(text, bytes, origin, &document, error), &document, out, error);
}

void ty_split_list_free(struct ty_split_list *list)
{
    free(list->entry);
    *list = (struct ty_split_list){0};
}
