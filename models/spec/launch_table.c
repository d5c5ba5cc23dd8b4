/* SPDX-License-Identifier: MIT
 * The tables of data/frameworks: allow-lists, and their rows for readers and writers. */
#include "models/spec/builtin.h"
#include "models/spec/fields_read.h"
#include "models/spec/launch.h"
#include "models/spec/open.h"
#include "models/fields.h"
#include "sim/error.h"

#include <string.h>

/* ---- rows --------------------------------------------------------------------------------- */

const char *launch_value(const struct launch_pairs *pairs, const char *key)
{
    for (uint32_t i = 0; i < pairs->n; i++)
        if (strcmp(pairs->pair[i].key, key) == 0)
            return pairs->pair[i].value;
    return NULL;
}

bool launch_add(struct launch_pairs *pairs, const char *key, size_t key_length, const char *value,
                size_t value_length)
{
    struct launch_pair *pair = &pairs->pair[pairs->n];
    if (pairs->n == LAUNCH_MAX_PAIRS || key_length >= sizeof pair->key ||
        value_length >= sizeof pair->value)
        return false;
    memcpy(pair->key, key, key_length);
    memcpy(pair->value, value, value_length);
    pair->key[key_length] = pair->value[value_length] = '\0';
    pairs->n++;
    return true;
}

bool launch_next_row(const struct json_at *knob, struct json_at *item, struct launch_row *row)
{
    const char **const parts[] = {&row->value, &row->arguments, &row->off};
    if (!json_next(knob, item))
        return false;
    *row = (struct launch_row){"", "", NULL};
    struct json_at part = {0};
    for (int i = 0; i < 3 && json_next(item, &part); i++)
        if (json_get_text(&part, parts[i], NULL) != TY_OK)
            return false;
    return true;
}

const char *launch_argument(const char *text, struct launch_argument *out)
{
    text += strspn(text, " ");
    if (!*text)
        return NULL;
    out->asked = *text == '?';
    text += out->asked;
    const size_t length = strcspn(text, " "), key = strcspn(text, "= ");
    out->list = key && text[key] == '=' && text[key - 1] == '+';
    text_format(out->key, sizeof out->key, "%.*s", (int)(key - out->list), text);
    const size_t skip = text[key] == '=' ? key + 1 : key;
    text_format(out->value, sizeof out->value, "%.*s", (int)(length - skip), text + skip);
    return text + length;
}

/* ---- allow-list --------------------------------------------------------------------------- */

static ty_status read_limit(const struct json_at *knob, struct ty_limit *limit,
                            struct ty_error *error)
{
    struct json_at item = {0};
    struct launch_row row;
    while (launch_next_row(knob, &item, &row)) {
        struct ty_plan plan;
        uint32_t value = 0;
        limit->any |= strcmp(row.value, "*") == 0 || limit->field->type == TY_FIELD_TEXT;
        if (limit->any)
            continue;
        ty_init(TY_KIND_PLAN, &plan);
        if (strcmp(row.value, "0") != 0) {
            const ty_status status = field_from_text(limit->field, row.value, &plan, error);
            if (status != TY_OK)
                return status;
        }
        memcpy(&value, (const char *)&plan + limit->field->offset, sizeof value);
        if (limit->field->type == TY_FIELD_FLAGS) {
            value &= ~(uint32_t)TY_OVERLAP_GIVEN;
            limit->allowed |= value;
            limit->required |= !*row.arguments && !row.off ? value : 0;
        } else {
            limit->allowed |= value < 64 ? (uint64_t)1 << value : 0;
        }
    }
    return TY_OK;
}

static ty_status read_limits(const struct json_at *top, struct ty_framework *out,
                             struct ty_error *error)
{
    struct json_at knobs, knob = {0};
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    if (!json_find(top, "knobs", &knobs))
        return json_missing(top, "knobs", error);
    while (json_next(&knobs, &knob)) {
        const struct ty_field *field = fields_find(fields, n, json_key(&knob));
        if (!field || out->n_limits == TY_MAX_LIMITS)
            return json_refuse(&knob, TY_ERR_INPUT, error, "is no field of a plan");
        struct ty_limit *limit = &out->limit[out->n_limits++];
        *limit = (struct ty_limit){.field = field};
        const ty_status status = read_limit(&knob, limit, error);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

static ty_status read_head(const struct json_at *top, struct ty_framework *out,
                           struct ty_error *error)
{
    const struct {
        const char *key;
        char *text;
        size_t bytes;
    } texts[] = {{"framework", out->name, sizeof out->name},
                 {"version", out->version, sizeof out->version},
                 {"source", out->source, sizeof out->source},
                 {"stack", out->stack, sizeof out->stack}};
    struct json_at at, item = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!json_find(top, texts[i].key, &at))
            return json_missing(top, texts[i].key, error);
        const ty_status status = json_copy_text(&at, texts[i].text, texts[i].bytes, error);
        if (status != TY_OK)
            return status;
    }
    if (!json_find(top, "stacks", &at))
        return json_missing(top, "stacks", error);
    const char *stack;
    while (json_next(&at, &item) && json_get_text(&item, &stack, error) == TY_OK)
        text_append(out->stacks, sizeof out->stacks, "%s%s", out->stacks[0] ? " " : "", stack);
    return TY_OK;
}

ty_status ty_framework_load(const char *name, struct ty_framework *out, struct ty_error *error)
{
    struct json_document document = {0};
    struct ty_framework framework = {0};
    if (!builtin_find("frameworks", name)) {
        char legal[120] = "";
        for (size_t i = 0; ty_framework_name(i); i++)
            text_append(legal, sizeof legal, "%s, ", ty_framework_name(i));
        return error_set(error, TY_ERR_INPUT, "framework", "\"%s\" is not one of %sany", name,
                         legal);
    }
    ty_status status = spec_open("frameworks", name, &document, error);
    if (status == TY_OK)
        status = read_head(&document.top, &framework, error);
    if (status == TY_OK)
        status = read_limits(&document.top, &framework, error);
    json_free(&document);
    if (status == TY_OK)
        *out = framework;
    return status;
}

const char *ty_framework_name(size_t index)
{
    return builtin_name("frameworks", index);
}

bool ty_framework_takes(const struct ty_framework *framework, const char *stack)
{
    const size_t length = strcspn(stack, "@");
    for (const char *at = framework->stacks; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (n == length && strncmp(at, stack, n) == 0)
            return true;
        at += n;
    }
    return false;
}
