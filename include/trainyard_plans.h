/* SPDX-License-Identifier: MIT
 *
 * trainyard_plans.h: the legal plans of a space one by one, for a planner that ranks by rules of
 * its own. They are those that a search screens (ty_search_run), under the same numbers. Part of
 * the core library; conventions as in trainyard.h.
 *
 *     uint64_t cursor = 0;
 *     while (ty_plans_next(plans, &cursor, &plan))
 *         status = ty_predictor_run(predictor, &plan, &options, &prediction, &error);
 */
#ifndef TRAINYARD_PLANS_H
#define TRAINYARD_PLANS_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_plans ty_plans;

/* The plans of a space: every knob listed or fixed there, or left open to all that could be legal.
 * All inputs are copied, but what the profile points to must outlive the handle. allocator NULL:
 * malloc and free. Two allocations here, none later. Cost about 100 us.
 * returns TY_OK, TY_ERR_NOMEM, TY_ERR_RANGE (error names the field: a bad input, no GPU count, a
 * list too long). Close with ty_plans_close; NULL allowed there. */
TY_API TY_MUST_CHECK ty_status ty_plans_open(const struct ty_model *model,
                                             const struct ty_cluster *cluster,
                                             const struct ty_profile *profile,
                                             const struct ty_space *space,
                                             const struct ty_allocator *allocator, ty_plans **out,
                                             struct ty_error *error);
TY_API void ty_plans_close(ty_plans *plans);

/* How many combinations are numbered, 0 .. n - 1, legal or not. Cost O(1). */
TY_API uint64_t ty_plans_n(const ty_plans *plans);

/* The combination of number `id` (as ty_score.plan_id), resolved. returns whether there is one and
 * it is legal (handbook 11.1, and what the framework of the profile runs); `out` is written only
 * then. It may not fit in memory: ty_predictor_run says. Cost about 0.5 us; allocates nothing.
 * The handle is only read: any number of threads may ask one handle at the same time. */
TY_API bool ty_plans_at(const ty_plans *plans, uint64_t id, struct ty_plan *out);

/* The first legal plan whose number is at least *cursor, by number: fewer GPUs first. *cursor
 * becomes its number + 1; 0 begins, a kept one goes on from there. returns false at the end, with
 * *cursor = ty_plans_n and `out` untouched. Threads share a handle with a cursor each. */
TY_API bool ty_plans_next(const ty_plans *plans, uint64_t *cursor, struct ty_plan *out);

#ifdef __cplusplus
}
#endif
#endif
