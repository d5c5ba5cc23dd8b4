/* SPDX-License-Identifier: MIT
 * The rungs below ty_predictor_run, for the search and for the effects of defaults. */
#ifndef MODELS_PREDICT_H
#define MODELS_PREDICT_H

#include "include/trainyard_storage.h"
#include "models/full.h"
#include "models/memory.h"
#include "models/step.h"
#include "sim/meter.h"

/* Scratch of one worker: arrays sized for the largest plan so far and one simulation. */
struct evaluator {
    struct ty_allocator allocator;
    struct slot *slots;
    struct ty_stage_memory *stages;
    size_t n_slots, n_stages; /* capacities */
    struct step *step;
    bool unfolded;                    /* the last simulation was of every rank, in full */
    struct full *full;                /* made when the full rung is first asked for */
    struct ty_storage_report storage; /* of the last simulation with options.storage */
    struct setting *less; /* with NICs that storage takes a part of; made when first needed */
};

#define PREDICT_MAX_VIOLATIONS 32
#define PREDICT_MAX_GROUPS     8

struct ty_predictor {
    struct setting setting;
    struct notes setting_notes; /* of cluster and profile; every answer starts with them */
    struct notes notes;
    struct meter meter; /* of the evaluator's memory */
    struct evaluator evaluator;
    struct ty_violation violation[PREDICT_MAX_VIOLATIONS];
    struct ty_group group[PREDICT_MAX_GROUPS];
    struct ty_fabric_report fabric; /* of the last full rung */
    struct ty_storage_report storage;
    struct arena explanation; /* arrays of the last ty_predictor_explain */
};

ty_status evaluator_init(struct evaluator *evaluator, const struct ty_allocator *allocator);
void evaluator_destroy(struct evaluator *evaluator);

/* Layout and memory of a resolved, legal plan: fills evaluator->slots and stages. */
ty_status evaluator_memory(struct evaluator *evaluator, const struct setting *setting,
                           const struct ty_plan *plan, struct memory_verdict *verdict);
/* Simulates the plan that evaluator_memory laid out last. */
ty_status evaluator_simulate(struct evaluator *evaluator, const struct setting *setting,
                             const struct ty_plan *plan, const struct ty_options *options,
                             struct step_result *out, struct ty_error *error);

/* tokens per optimizer step; model flop/s per GPU and MFU of a step time. MFU is against the
 * 16-bit dense peak (fp8 and fp4 steps mix precisions, so their own peak would be no measure). */
double plan_tokens_per_step(const struct ty_plan *plan);
double plan_model_flop_per_s_per_gpu(const struct setting *setting, const struct ty_plan *plan,
                                     enum ty_flops convention, double step_time_s);
double plan_mfu(const struct setting *setting, const struct ty_plan *plan,
                double model_flop_per_s_per_gpu);

#endif
