/* SPDX-License-Identifier: MIT
 * Table-driven reading of fields. */
#include "models/spec/fields_read.h"

#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/units.h"
#include "sim/error.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define PATH_BYTES 96

static void *place_of(const struct ty_field *field, void *value)
{
    return (char *)value + field->offset;
}

/* ---- numbers ---------------------------------------------------------------------------- */

static ty_status set_number(const struct ty_field *field, double number, void *value,
                            struct ty_error *error)
{
    char is[32], low[32], high[32];
    if (!(number >= field->min && number <= field->max))
        return error_set(error, TY_ERR_INPUT, field->path, "is %s; legal: %s to %s",
                         ty_quantity_text(number, field->unit, is, sizeof is),
                         ty_quantity_text(field->min, field->unit, low, sizeof low),
                         ty_quantity_text(field->max, field->unit, high, sizeof high));
    if (field->type == TY_FIELD_DOUBLE) {
        memcpy(place_of(field, value), &number, sizeof number);
        return TY_OK;
    }
    if (number != floor(number))
        return error_set(error, TY_ERR_INPUT, field->path, "is %.9g; expected a whole number",
                         number);
    if (field->type == TY_FIELD_U32) {
        uint32_t count = (uint32_t)number;
        memcpy(place_of(field, value), &count, sizeof count);
    } else {
        uint64_t count = (uint64_t)number;
        memcpy(place_of(field, value), &count, sizeof count);
    }
    return TY_OK;
}

static ty_status number_from_text(const struct ty_field *field, const char *text, void *value,
                                  struct ty_error *error)
{
    double number;
    struct ty_error reason;
    ty_status status = ty_quantity_parse(text, field->unit, &number, &reason);
    if (status != TY_OK)
        return error_set(error, status, field->path, "%s", reason.text);
    return set_number(field, number, value, error);
}

/* ---- names ------------------------------------------------------------------------------ */

/* "auto, flash or unfused" */
static void list_names(const struct ty_field *field, char *out, size_t bytes)
{
    out[0] = '\0';
    for (size_t i = 0; field->names[i]; i++)
        if (field->names[i][0])
            text_append(out, bytes, "%s%s", out[0] ? ", " : "", field->names[i]);
}

static ty_status refuse_name(const struct ty_field *field, const char *text, size_t length,
                             struct ty_error *error)
{
    char legal[240];
    list_names(field, legal, sizeof legal);
    return error_set(error, TY_ERR_INPUT, field->path, "\"%.*s\" is unknown; legal: %s",
                     (int)(length > 40 ? 40 : length), text, legal);
}

static int name_index(const struct ty_field *field, const char *text, size_t length)
{
    for (int i = 0; length > 0 && field->names[i]; i++)
        if (strlen(field->names[i]) == length && memcmp(field->names[i], text, length) == 0)
            return i;
    return -1;
}

static ty_status enum_from_text(const struct ty_field *field, const char *text, void *value,
                                struct ty_error *error)
{
    int choice = name_index(field, text, strlen(text));
    if (choice < 0)
        return refuse_name(field, text, strlen(text), error);
    memcpy(place_of(field, value), &choice, sizeof choice);
    return TY_OK;
}

/* Comma list of names, or "none". */
static ty_status flags_from_text(const struct ty_field *field, const char *text, void *value,
                                 struct ty_error *error)
{
    uint32_t bits = (uint32_t)field->max; /* marks that the caller chose */
    const char *at = strcmp(text, "none") == 0 ? "" : text;
    if (text[0] == '\0')
        return refuse_name(field, text, 0, error);
    while (*at) {
        size_t length = strcspn(at, ",");
        int bit = name_index(field, at, length);
        if (bit < 0)
            return refuse_name(field, at, length, error);
        bits |= UINT32_C(1) << bit;
        at += length + (at[length] == ',');
    }
    memcpy(place_of(field, value), &bits, sizeof bits);
    return TY_OK;
}

static ty_status bool_from_text(const struct ty_field *field, const char *text, void *value,
                                struct ty_error *error)
{
    bool on = strcmp(text, "true") == 0 || strcmp(text, "on") == 0;
    if (!on && strcmp(text, "false") != 0 && strcmp(text, "off") != 0)
        return error_set(error, TY_ERR_INPUT, field->path, "\"%.40s\" is unknown; legal: on, off",
                         text);
    memcpy(place_of(field, value), &on, sizeof on);
    return TY_OK;
}

/* ---- one field -------------------------------------------------------------------------- */

ty_status field_from_text(const struct ty_field *field, const char *text, void *value,
                          struct ty_error *error)
{
    switch (field->type) {
    case TY_FIELD_DOUBLE:
    case TY_FIELD_U32:
    case TY_FIELD_U64:
        return number_from_text(field, text, value, error);
    case TY_FIELD_ENUM:
        return enum_from_text(field, text, value, error);
    case TY_FIELD_FLAGS:
        return flags_from_text(field, text, value, error);
    case TY_FIELD_BOOL:
        return bool_from_text(field, text, value, error);
    case TY_FIELD_TEXT:
        break;
    }
    if (strlen(text) >= field->size)
        return error_set(error, TY_ERR_INPUT, field->path, "is longer than %zu characters",
                         field->size - 1);
    memset(place_of(field, value), 0, field->size); /* nothing of a longer text stays behind */
    memcpy(place_of(field, value), text, strlen(text));
    return TY_OK;
}

/* Switches and bools also take true and false. */
static const char *word_of(const struct ty_field *field, const struct json_at *at)
{
    bool is_switch = field->type == TY_FIELD_BOOL ||
                     (field->type == TY_FIELD_ENUM && name_index(field, "on", 2) == TY_ON);
    return !is_switch ? NULL : cJSON_IsTrue(at->node) ? "on" : "off";
}

static ty_status from_number(const struct ty_field *field, const struct json_at *at, void *value,
                             struct ty_error *error)
{
    double number = at->node->valuedouble;
    if (field->type > TY_FIELD_U64)
        return error_set(error, TY_ERR_INPUT, "", "is a number; expected a text");
    if (!unit_is_bare(field->unit))
        return error_set(error, TY_ERR_INPUT, "", "%.9g has no unit; write e.g. \"%s\"", number,
                         unit_example(field->unit));
    return set_number(field, number, value, error);
}

/* The text a JSON value stands for; NULL when it stands for none. */
static const char *text_of(const struct ty_field *field, const struct json_at *at)
{
    enum json_type type = json_type_of(at);
    return type == JSON_TEXT   ? at->node->valuestring
           : type == JSON_BOOL ? word_of(field, at)
                               : NULL;
}

/* Gives a refusal its place in the file. */
static ty_status placed(const struct json_at *at, ty_status status, const struct ty_error *reason,
                        struct ty_error *error)
{
    return status == TY_OK ? TY_OK : json_refuse(at, status, error, "%s", reason->text);
}

ty_status field_from_json(const struct ty_field *field, const struct json_at *at, void *value,
                          struct ty_error *error)
{
    struct ty_error reason;
    if (json_type_of(at) == JSON_NUMBER)
        return placed(at, from_number(field, at, value, &reason), &reason, error);
    const char *text = text_of(field, at);
    if (!text)
        return json_want(at, field->type <= TY_FIELD_U64 ? JSON_NUMBER : JSON_TEXT, error);
    return placed(at, field_from_text(field, text, value, &reason), &reason, error);
}

/* ---- whole objects ---------------------------------------------------------------------- */

/* Distance to a path, or to the part of it that has as many components: "netwrok" is near
 * "network.nic". */
static size_t path_distance(const char *known, const char *path)
{
    char start[64];
    size_t dots = 0, length = 0;
    for (const char *c = path; *c; c++)
        dots += *c == '.';
    for (; known[length] && length + 1 < sizeof start; length++) {
        if (known[length] == '.' && dots-- == 0)
            break;
        start[length] = known[length];
    }
    start[length] = '\0';
    const size_t whole = ty_text_distance(known, path), part = ty_text_distance(start, path);
    return whole < part ? whole : part;
}

const char *fields_nearest(const struct ty_field *fields, size_t n, const char *path)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (path_distance(fields[i].path, path) < path_distance(fields[best].path, path))
            best = i;
    return n > 0 ? fields[best].path : "";
}

struct reader {
    const struct ty_field *fields;
    size_t n;
    const char *const *skip; /* NULL: nothing */
    void *value;
    struct ty_error *error;
};

/* True when paths continue below this one: "network" of "network.nic". */
static bool has_members(const struct reader *reader, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < reader->n; i++)
        if (strncmp(reader->fields[i].path, path, length) == 0 &&
            reader->fields[i].path[length] == '.')
            return true;
    return false;
}

static ty_status read_object(const struct reader *reader, const struct json_at *object,
                             const char *prefix);

/* A field, an object of fields, or nothing that is known. Nesting is bounded by the paths. */
static ty_status read_member(const struct reader *reader, const struct json_at *member,
                             const char *path)
{
    const struct ty_field *field = fields_find(reader->fields, reader->n, path);
    bool is_object = json_type_of(member) == JSON_OBJECT;
    bool continues = has_members(reader, path);
    if (field && !(is_object && continues))
        return field_from_json(field, member, reader->value, reader->error);
    if (!continues)
        return json_refuse(member, TY_ERR_INPUT, reader->error,
                           "is no key of this file; the nearest is \"%s\"",
                           fields_nearest(reader->fields, reader->n, path));
    return is_object ? read_object(reader, member, path)
                     : json_want(member, JSON_OBJECT, reader->error);
}

static bool skips(const struct reader *reader, const char *path)
{
    for (const char *const *key = reader->skip; key && *key; key++)
        if (strcmp(path, *key) == 0)
            return true;
    return false;
}

static ty_status read_object(const struct reader *reader, const struct json_at *object,
                             const char *prefix)
{
    struct json_at member = {0};
    ty_status status = TY_OK;
    while (status == TY_OK && json_next(object, &member)) {
        char path[PATH_BYTES];
        const char *key = json_key(&member);
        if (key[0] == '_' || json_type_of(&member) == JSON_NULL)
            continue;
        text_format(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "." : "", key);
        if (!skips(reader, path))
            status = read_member(reader, &member, path);
    }
    return status;
}

ty_status fields_from_json(enum ty_kind kind, const char *const *skip, const struct json_at *object,
                           void *value, struct ty_error *error)
{
    ty_status status = json_want(object, JSON_OBJECT, error);
    struct reader reader = {.skip = skip, .value = value, .error = error};
    reader.fields = ty_fields(kind, &reader.n);
    return status == TY_OK ? read_object(&reader, object, "") : status;
}

ty_status fields_from_member(enum ty_kind kind, const char *key, const struct json_at *object,
                             void *value, struct ty_error *error)
{
    struct reader reader = {.value = value, .error = error};
    struct json_at member;
    reader.fields = ty_fields(kind, &reader.n);
    if (!json_find(object, key, &member) || json_type_of(&member) == JSON_NULL)
        return TY_OK;
    const ty_status status = json_want(&member, JSON_OBJECT, error);
    return status == TY_OK ? read_object(&reader, &member, key) : status;
}
