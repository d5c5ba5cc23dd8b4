/* SPDX-License-Identifier: MIT
 *
 * Inside ty_predictor_explain: explain.c does the path and the resources, explain_changes.c the
 * knobs.
 */
#ifndef MODELS_EXPLAIN_H
#define MODELS_EXPLAIN_H

#include "include/trainyard_explain.h"
#include "models/predict.h"

struct explainer {
    ty_predictor *predictor;
    const struct ty_plan *asked;      /* as the caller gave it */
    const struct ty_prediction *base; /* of the plan as it stands; feasible or known to run */
    const struct ty_options *options; /* of every simulation */
    struct evaluator evaluator;       /* scratch */
    struct setting *setting;          /* scratch */
    struct ty_explanation *out;
};

/* `factor` times as much of a resource; latency and host times are divided by it. Measured times
 * of kernels and collectives, which a factor cannot reach, are put aside. */
void explain_scale(struct setting *setting, enum ty_resource resource, double factor);

/* Fills changes, best, memory_best and the gain of MEMORY. returns TY_OK, TY_ERR_NOMEM. */
ty_status explain_changes(struct explainer *explainer);

#endif
