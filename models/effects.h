/* SPDX-License-Identifier: MIT
 * How much each default matters: the prediction repeated with the plausible alternative. */
#ifndef MODELS_EFFECTS_H
#define MODELS_EFFECTS_H

#include "models/step.h"

struct effects_base {
    const struct setting *setting; /* resolved */
    const struct ty_plan *plan;    /* as the caller gave it */
    const struct ty_options *options;
    double step_time_s; /* of the plan as it stands */
};

/* Fills effect_pct of every note that has an alternative and sorts the notes, largest effect first
 * (unknown last, otherwise in order of appearance). An alternative under which the plan is illegal
 * or does not fit keeps NAN. step: scratch with an empty record cache. */
ty_status effects_fill(const struct effects_base *base, const struct ty_allocator *allocator,
                       struct notes *notes);

#endif
