/* SPDX-License-Identifier: MIT
 * Half widths of intervals: what measured runs of a class left, in ln(time). */
#ifndef MODELS_INTERVAL_H
#define MODELS_INTERVAL_H

#include "include/trainyard.h"

struct half_widths {
    double of_80, of_90; /* NAN: not known */
};

enum interval_of { INTERVAL_TIME, INTERVAL_PLANS, INTERVAL_GPUS, N_INTERVALS };

/* Of the class of model and plan: fine-tuning, experts, dense. */
struct half_widths interval_half_widths(const struct ty_profile *profile,
                                        const struct ty_model *model, const struct ty_plan *plan,
                                        enum interval_of what);

#endif
