/* SPDX-License-Identifier: MIT
 * Records as lines of JSON, and back. */
#include "calibrate/record.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const char *const section_name[] = {"parameters", "values", "hardware", "software"};
static const char *const flag_name[RECORD_N_FLAGS] = {
#define X(name, word, text) word,
    RECORD_FLAGS(X)
#undef X
};

/* ---- writing ------------------------------------------------------------------------------ */

static void write_field(const struct record_field *field, struct json_writer *json)
{
    if (field->text)
        json_text(json, field->key, field->text);
    else
        json_number(json, field->key, field->number);
}

static void write_section(const struct record *record, enum record_section section,
                          struct json_writer *json)
{
    json_object(json, section_name[section]);
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].section == section)
            write_field(&record->field[i], json);
    for (uint32_t i = 0; i < record->n_stamp; i++)
        if (record->stamp[i].section == section)
            write_field(&record->stamp[i], json);
    json_close(json);
}

void record_write(const struct record *record, struct json_writer *json)
{
    json_object(json, NULL);
    json_text(json, "kind", record->kind);
    json_text(json, "tool", record->tool);
    for (enum record_section s = RECORD_PARAMETER; s <= RECORD_SOFTWARE; s++)
        write_section(record, s, json);
    json_object(json, "source");
    json_text(json, "file", record->file);
    if (record->line)
        json_count(json, "line", record->line);
    json_close(json);
    json_array(json, "flags");
    for (uint32_t i = 0; i < RECORD_N_FLAGS; i++)
        if (record->flags >> i & 1)
            json_text(json, NULL, flag_name[i]);
    json_close(json);
    if (record->rejected)
        json_text(json, "rejected", record->rejected);
    json_close(json);
}

static void describe_section(const struct record *record, enum record_section section, char *out,
                             size_t bytes)
{
    for (uint32_t i = 0; i < record->n_fields + record->n_stamp; i++) {
        const struct record_field *field =
            i < record->n_fields ? &record->field[i] : &record->stamp[i - record->n_fields];
        if (field->section == section && field->text)
            text_append(out, bytes, " %s=%s", field->key, field->text);
        else if (field->section == section)
            text_append(out, bytes, " %s=%.12g", field->key, field->number);
    }
}

void record_describe(const struct record *record, char *out, size_t bytes)
{
    text_format(out, bytes, "%s", record->kind);
    describe_section(record, RECORD_PARAMETER, out, bytes);
    text_append(out, bytes, ":");
    describe_section(record, RECORD_VALUE, out, bytes);
    for (uint32_t i = 0; i < RECORD_N_FLAGS; i++)
        if (record->flags >> i & 1)
            text_append(out, bytes, " [%s]", flag_name[i]);
    if (record->rejected)
        text_append(out, bytes, " rejected: %s", record->rejected);
}

/* ---- reading ------------------------------------------------------------------------------ */

static ty_status copy_member(const struct json_at *object, const char *key,
                             struct record_list *list, const char **out, struct ty_error *error)
{
    struct json_at at;
    const char *text;
    if (!json_find(object, key, &at))
        return TY_OK;
    const ty_status status = json_get_text(&at, &text, error);
    if (status == TY_OK)
        *out = record_copy(list, text);
    return status;
}

static ty_status read_section(const struct json_at *top, enum record_section section,
                              struct record_list *list, struct record_fields *fields,
                              struct ty_error *error)
{
    struct json_at object, item = {0};
    if (!json_find(top, section_name[section], &object))
        return TY_OK;
    ty_status status = json_want(&object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(&object, &item)) {
        const char *text;
        double number;
        if (fields->n == RECORD_FIELDS_MAX)
            return json_refuse(&item, TY_ERR_INPUT, error, "a record has %d fields at most",
                               RECORD_FIELDS_MAX);
        const char *key = record_copy(list, json_key(&item));
        if (json_type_of(&item) == JSON_TEXT) {
            status = json_get_text(&item, &text, error);
            if (status == TY_OK)
                record_text(fields, section, key, record_copy(list, text));
        } else {
            status = json_get_double(&item, -HUGE_VAL, HUGE_VAL, &number, error);
            if (status == TY_OK)
                record_number(fields, section, key, number);
        }
    }
    return status;
}

static ty_status read_flags(const struct json_at *top, uint32_t *flags, struct ty_error *error)
{
    struct json_at array, item = {0};
    if (!json_find(top, "flags", &array))
        return TY_OK;
    ty_status status = json_want(&array, JSON_ARRAY, error);
    while (status == TY_OK && json_next(&array, &item)) {
        const char *text;
        status = json_get_text(&item, &text, error);
        for (uint32_t i = 0; status == TY_OK && i < RECORD_N_FLAGS; i++)
            if (strcmp(text, flag_name[i]) == 0)
                *flags |= 1u << i;
    }
    return status;
}

static ty_status read_source(const struct json_at *top, struct record_list *list,
                             struct record *head, struct ty_error *error)
{
    struct json_at source, line;
    if (!json_find(top, "source", &source))
        return TY_OK;
    ty_status status = copy_member(&source, "file", list, &head->file, error);
    if (status == TY_OK && json_find(&source, "line", &line))
        status = json_get_u32(&line, 1, UINT32_MAX, &head->line, error);
    return status;
}

static ty_status read_object(const struct json_at *top, struct record_list *list,
                             struct ty_error *error)
{
    struct record head = {.kind = "", .tool = "", .file = ""};
    struct record_fields fields = {.n = 0};
    ty_status status = json_want(top, JSON_OBJECT, error);
    if (status == TY_OK)
        status = copy_member(top, "kind", list, &head.kind, error);
    if (status == TY_OK && !*head.kind)
        status = json_missing(top, "kind", error);
    if (status == TY_OK)
        status = copy_member(top, "tool", list, &head.tool, error);
    for (enum record_section s = RECORD_PARAMETER; status == TY_OK && s <= RECORD_SOFTWARE; s++)
        status = read_section(top, s, list, &fields, error);
    if (status == TY_OK)
        status = read_source(top, list, &head, error);
    if (status == TY_OK)
        status = read_flags(top, &head.flags, error);
    if (status == TY_OK)
        status = copy_member(top, "rejected", list, &head.rejected, error);
    if (status == TY_OK)
        record_add(list, &head, &fields);
    return status;
}

ty_status record_read(const char *text, const char *origin, struct record_list *list,
                      struct ty_error *error)
{
    ty_status status = TY_OK;
    uint32_t line = 1;
    for (; status == TY_OK && *text; line++) {
        const size_t bytes = strcspn(text, "\n");
        if (strspn(text, " \t\r") < bytes) {
            struct json_document document = {0};
            char where[128];
            text_format(where, sizeof where, "%.96s line %u", origin, line);
            status = json_parse(text, bytes, where, &document, error);
            if (status == TY_OK)
                status = read_object(&document.top, list, error);
            json_free(&document);
        }
        text += bytes + (text[bytes] == '\n');
    }
    /* without memory texts are empty, which then seem to be missing */
    return status == TY_OK || list->out_of_memory ? record_list_status(list, origin, error)
                                                  : status;
}
