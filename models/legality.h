/* SPDX-License-Identifier: MIT
 *
 * Legality of a resolved plan (handbook 11.1): one list of rules, asked in two ways.
 */
#ifndef MODELS_LEGALITY_H
#define MODELS_LEGALITY_H

#include "models/layout.h"

/* The class of the first broken rule, TY_N_REJECTS when the plan is legal. No text, ~100 ns. */
enum ty_reject legality_reject(const struct setting *setting, const struct ty_plan *plan);

/* Every broken rule with its text and legal values, as ty_plan_violations; of the profile only its
 * framework counts. */
void legality_violations(const struct setting *setting, const struct ty_plan *plan,
                         struct ty_violation *out, uint32_t max, uint32_t *n);

#endif
