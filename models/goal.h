/* SPDX-License-Identifier: MIT
 * A goal against which plans are weighed: every objective as a worth, the larger the better, that
 * never rises with the step time of a plan (trainyard_cost.h). */
#ifndef MODELS_GOAL_H
#define MODELS_GOAL_H

#include "include/trainyard_storage.h"
#include "models/cost.h"
#include "models/setting.h"

struct goal {
    struct ty_goal asked; /* objective[0] is never AUTO */
    struct cost_model cost;
    bool needs_outlay; /* some objective or limit looks at money or energy */
    /* With both, the saves of a plan come from its checkpoint; NULL: from the failures. */
    const struct setting *setting;
    const struct ty_storage *storage;
};

/* cluster: resolved, outlives the goal. returns TY_OK, TY_ERR_RANGE (an objective or limit lacks
 * what it needs). asked NULL: tokens/s/GPU. */
ty_status goal_init(const struct ty_goal *asked, const struct ty_cluster *cluster, struct goal *out,
                    struct ty_error *error);

/* Failures of a plan, and its share of useful time; with checkpoints in the step time, of that. */
ty_status goal_goodput(const struct goal *goal, const struct ty_plan *plan, struct ty_goodput *out);
double goal_useful_ratio(const struct goal *goal, const struct ty_plan *plan);
/* Figure of an objective in its own unit. */
double goal_value(const struct ty_goal *asked, enum ty_objective objective,
                  const struct ty_plan *plan, double step_time_s, const struct ty_outlay *outlay,
                  double useful_ratio);
/* The same, larger is better. */
double goal_worth(const struct goal *goal, uint32_t index, const struct ty_plan *plan,
                  double step_time_s, const struct ty_outlay *outlay, double useful_ratio);
/* First limit of the goal that the plan misses (DEADLINE, BUDGET, MFU), TY_N_REJECTS: none. */
enum ty_reject goal_limit(const struct goal *goal, const struct ty_plan *plan, double step_time_s,
                          double mfu, const struct ty_outlay *outlay, double useful_ratio);

#endif
