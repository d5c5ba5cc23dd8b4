/* SPDX-License-Identifier: MIT
 * Use of the field tables: rows by path, names of values, the check of a struct against its table.
 */
#ifndef MODELS_FIELDS_H
#define MODELS_FIELDS_H

#include "include/trainyard.h"

/* Every field that is not at its default marker lies in its range; a double is never infinite.
 * returns TY_OK, TY_ERR_RANGE with the path and the legal range. */
ty_status fields_check_table(const struct ty_field *fields, size_t n, const void *value,
                             struct ty_error *error);
ty_status fields_check(enum ty_kind kind, const void *value, struct ty_error *error);

/* The row of a path in a table; NULL when there is none. */
const struct ty_field *fields_find(const struct ty_field *fields, size_t n, const char *path);
/* Names of the precisions by value, ended by NULL. */
extern const char *const precision_names[TY_N_PRECISIONS + 1];

/* Chosen name of an enum value, NULL when the value has none. */
const char *fields_enum_name(const struct ty_field *field, int value);
/* Names of the set bits as the readers take them: "tp,grad"; "none". returns out. */
const char *fields_flags_text(const struct ty_field *field, uint32_t bits, char *out, size_t bytes);

#endif
