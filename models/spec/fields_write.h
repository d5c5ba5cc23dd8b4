/* SPDX-License-Identifier: MIT
 * Fields to JSON by their tables: the counterpart of fields_read.h. */
#ifndef MODELS_SPEC_FIELDS_WRITE_H
#define MODELS_SPEC_FIELDS_WRITE_H

#include "include/trainyard.h"
#include "models/spec/json_write.h"

/* Writes the fields of `value` that are not at their default marker into the open object, in table
 * order, dotted paths as nested objects, quantities with units. */
void fields_write(struct json_writer *json, const struct ty_field *fields, size_t n,
                  const void *value);

#endif
