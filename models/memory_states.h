/* SPDX-License-Identifier: MIT
 *
 * Bytes of the states of one parameter (handbook 3.1), for a resolved plan and the habits of its
 * stack.
 */
#ifndef MODELS_MEMORY_STATES_H
#define MODELS_MEMORY_STATES_H

#include "models/memory.h"
#include "models/memory_layer.h"

/* Whether the parameters themselves are divided: zero3, hsdp. */
bool memory_shards_params(const struct ty_plan *plan);
/* One trained parameter before sharding, bytes. */
double memory_weight_bytes(const struct ty_plan *plan, const struct stack_habits *habits);
/* fp32 copy of a 16-bit gradient, for unscaling; before sharding, bytes. */
double memory_gradient_copy_bytes(const struct ty_plan *plan);
/* What one rank holds per dense (expert = false) or expert parameter, sharding included. */
void memory_states(const struct ty_plan *plan, const struct stack_habits *habits, bool expert,
                   struct state_bytes *out);

#endif
