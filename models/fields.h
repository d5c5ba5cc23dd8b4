/* SPDX-License-Identifier: MIT
 * Field table of a layer kind, which the public tables do not hold: a model has many of them. */
#ifndef MODELS_FIELDS_H
#define MODELS_FIELDS_H

#include "include/trainyard.h"

/* Fields of struct ty_layer_kind; paths are relative to it ("heads", "ffn"). */
const struct ty_field *fields_layer_kind(size_t *n);

#endif
