/* SPDX-License-Identifier: MIT
 *
 * What one does with a field table: find a row, name a value, check a struct. Pure functions of
 * public tables: both libraries carry them.
 */
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

const char *const precision_names[TY_N_PRECISIONS + 1] = {
#define X(id, name, bytes) name,
    TY_PRECISION_LIST(X)
#undef X
        NULL};

const struct ty_field *fields_find(const struct ty_field *fields, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, path) == 0)
            return &fields[i];
    return NULL;
}

const char *fields_enum_name(const struct ty_field *field, int value)
{
    for (int i = 0; field->names[i]; i++)
        if (i == value)
            return field->names[i][0] || i == 0 ? field->names[i] : NULL;
    return NULL;
}

const char *fields_flags_text(const struct ty_field *field, uint32_t bits, char *out, size_t bytes)
{
    out[0] = '\0';
    for (uint32_t bit = 0; bit < 32 && field->names[bit]; bit++)
        if (bits >> bit & 1 && field->names[bit][0])
            text_append(out, bytes, "%s%s", out[0] ? "," : "", field->names[bit]);
    if (!out[0])
        text_append(out, bytes, "none");
    return out;
}

static ty_status check_number(const struct ty_field *field, double value, struct ty_error *error)
{
    if (value >= field->min && value <= field->max)
        return TY_OK;
    return error_set(error, TY_ERR_RANGE, field->path, "is %.9g; legal: %.9g to %.9g", value,
                     field->min, field->max);
}

static ty_status check_field(const struct ty_field *field, const char *at, struct ty_error *error)
{
    double number;
    uint32_t count;
    int choice;
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        memcpy(&number, at, sizeof number);
        return isnan(number) ? TY_OK : check_number(field, number, error);
    case TY_FIELD_U32:
        memcpy(&count, at, sizeof count);
        return count == 0 ? TY_OK : check_number(field, count, error);
    case TY_FIELD_ENUM:
        memcpy(&choice, at, sizeof choice);
        if (fields_enum_name(field, choice))
            return TY_OK;
        return error_set(error, TY_ERR_RANGE, field->path, "has no choice number %d", choice);
    case TY_FIELD_TEXT:
        if (memchr(at, '\0', field->size))
            return TY_OK;
        return error_set(error, TY_ERR_RANGE, field->path, "is not a terminated text");
    default:
        return TY_OK;
    }
}

ty_status fields_check_table(const struct ty_field *fields, size_t n, const void *value,
                             struct ty_error *error)
{
    ty_status status = TY_OK;
    for (size_t i = 0; i < n && status == TY_OK; i++)
        status = check_field(&fields[i], (const char *)value + fields[i].offset, error);
    return status;
}

ty_status fields_check(enum ty_kind kind, const void *value, struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    return fields_check_table(fields, n, value, error);
}
