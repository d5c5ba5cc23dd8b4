/* SPDX-License-Identifier: MIT */
#ifndef MODELS_FRAMEWORK_H
#define MODELS_FRAMEWORK_H

#include "include/trainyard_launch.h"

/* Whether a field has an effect in a resolved plan. */
bool framework_asks(const struct ty_field *field, const struct ty_plan *plan);
/* The flags of a field that have one. */
uint32_t framework_flags_asked(const struct ty_field *field, const struct ty_plan *plan);

#endif
