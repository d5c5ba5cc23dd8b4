/* SPDX-License-Identifier: MIT
 *
 * Canonical JSON of an input: the fields that are not at their default marker, in table order,
 * dotted paths as nested objects, quantities with units. Reading it back gives the same bits.
 */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/fields_write.h"
#include "models/spec/model.h"
#include "models/spec/units.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define FLAGS_BYTES 160

static void write_number(struct json_writer *json, const char *key, const struct ty_field *field,
                         double number)
{
    char text[QUANTITY_BYTES];
    if (unit_is_bare(field->unit))
        json_number(json, key, number);
    else
        json_text(json, key, quantity_write(number, field->unit, text));
}

static bool is_default(const struct ty_field *field, const char *at)
{
    double number;
    static const char zeros[sizeof(uint64_t)];
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        memcpy(&number, at, sizeof number);
        return isnan(number);
    case TY_FIELD_TEXT:
        return at[0] == '\0';
    default:
        return memcmp(at, zeros, field->size) == 0;
    }
}

static void write_field(struct json_writer *json, const char *key, const struct ty_field *field,
                        const char *at)
{
    union {
        double number;
        uint32_t u32;
        uint64_t u64;
        int choice;
    } value;
    if (field->type == TY_FIELD_TEXT) {
        json_text(json, key, at);
        return;
    }
    memcpy(&value, at, field->size);
    char flags[FLAGS_BYTES];
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        write_number(json, key, field, value.number);
        break;
    case TY_FIELD_U32:
        json_count(json, key, value.u32);
        break;
    case TY_FIELD_U64:
        json_count(json, key, value.u64);
        break;
    case TY_FIELD_ENUM:
        json_text(json, key, fields_enum_name(field, value.choice));
        break;
    case TY_FIELD_FLAGS:
        json_text(json, key, fields_flags_text(field, value.u32, flags, sizeof flags));
        break;
    default:
        json_bool(json, key, true); /* false is the default */
    }
}

/* Length of the part that names the object: 7 of "network.nic", 0 of "tp". The last dot counts:
 * "gpu.memory.size" lies in the object memory of the object gpu. */
static size_t group_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

/* Closes and opens objects to get from the group of one path to that of the next. */
static void change_group(struct json_writer *json, const char *from, const char *to)
{
    size_t from_length = group_length(from), to_length = group_length(to), common = 0;
    for (size_t i = 0; i < from_length && i < to_length && from[i] == to[i]; i++) {
        bool from_ends = i + 1 == from_length || from[i + 1] == '.';
        bool to_ends = i + 1 == to_length || to[i + 1] == '.';
        if (from_ends && to_ends)
            common = i + 1;
    }
    for (size_t i = common; i < from_length; i++)
        if (i == 0 || from[i] == '.')
            json_close(json);
    for (size_t i = common; i < to_length;) {
        i += to[i] == '.';
        size_t length = strcspn(to + i, ".");
        char key[48];
        text_format(key, sizeof key, "%.*s", (int)length, to + i);
        json_object(json, key);
        i += length;
    }
}

void fields_write(struct json_writer *json, const struct ty_field *fields, size_t n,
                  const void *value)
{
    const char *path = "";
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)value + fields[i].offset;
        if (is_default(&fields[i], at))
            continue;
        change_group(json, path, fields[i].path);
        path = fields[i].path;
        size_t group = group_length(path);
        write_field(json, path + group + (group > 0), &fields[i], at);
    }
    change_group(json, path, "");
}

char *ty_spec_write(enum ty_kind kind, const void *value)
{
    if (kind == TY_KIND_MODEL)
        return model_write(value);
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    fields_write(&json, fields, n, value);
    json_close(&json);
    return json_finish(&json);
}
