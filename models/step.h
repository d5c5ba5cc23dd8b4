/* SPDX-License-Identifier: MIT
 *
 * One optimizer step: bound and simulation with one representative rank per pipeline stage.
 */
#ifndef MODELS_STEP_H
#define MODELS_STEP_H

#include "models/layout.h"
#include "models/pipeline.h"
#include "models/record.h"

struct step_result {
    double time_s;
    double breakdown_s[TY_N_PARTS]; /* timeline of the busiest stage; adds up to time_s */
    double bubble_ratio;
    double busy_s; /* kernels computing, undisturbed, mean over stages; never above time_s */
    double flop_hw_per_gpu; /* executed in the step, mean over stages */
    uint32_t busiest_stage;
    uint64_t n_events;
    struct origins origins; /* of all kernels and collectives of all stages */
};

struct step; /* scratch and the last simulated graph: engine, record cache, arrays */
ty_status step_create(const struct ty_allocator *allocator, struct step **out);
void step_destroy(struct step *step);

/* Lower bound in closed form (DESIGN 4, rung 2): the largest, over stages, of micro-batches x
 * undisturbed busy time, plus the shortest fill and drain any order allows, plus the optimizer. */
ty_status step_bound(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                     const struct slot *slots, double *bound_s);
/* The graph of a step, not run: task ids, and what each task takes undisturbed. */
ty_status step_lay(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                   const struct slot *slots, struct ty_error *error);
/* busy_s of the plan that was bounded last, as its simulation gives it, to the bit. */
double step_busy_s(const struct step *step);
/* Discrete-event simulation (rung 3). */
ty_status step_simulate(struct step *step, const struct setting *setting,
                        const struct ty_plan *plan, const struct slot *slots,
                        const struct ty_options *options, struct step_result *out,
                        struct ty_error *error);
/* Tasks that have started in the last simulation, also one that failed half-way; none after a
 * bound. */
void step_trace(const struct step *step, ty_trace_fn *fn, void *user);
/* Dependencies of the last simulation: two tasks that have both started. */
void step_edges(const struct step *step, ty_trace_edge_fn *fn, void *user);
/* Tasks of the critical path of the last simulation, first to last; tasks NULL: counts them. */
uint32_t step_path(const struct step *step, uint32_t *tasks);
uint32_t step_n_tasks(const struct step *step);
double step_end_s(const struct step *step); /* when the last task ends */
/* What a task takes alone. */
double step_task_s(const struct step *step, uint32_t task);
/* One task of the last simulation. */
struct ty_trace_event step_event(const struct step *step, uint32_t task);

#endif
