/* SPDX-License-Identifier: MIT
 *
 * The passes of a search that compute no step: every plan is screened, what survives is bounded,
 * and what its bound already keeps from the limits of the goal is dropped.
 */
#include "models/legality.h"
#include "search/hunt.h"
#include "search/parallel.h"
#include "search/share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_GRAIN 1024 /* ids a worker takes at a time while screening */
#define BOUND_GRAIN  16
/* The bound is admissible up to this rounding; source: DESIGN 4, rung 2. */
#define BOUND_SLACK 1e-9

/* ---- screen ------------------------------------------------------------------------------- */

static enum ty_reject memory_reject(enum ty_mem largest)
{
    switch (largest) {
    case TY_MEM_WEIGHTS:
    case TY_MEM_GRADS:
    case TY_MEM_OPTIMIZER:
        return TY_REJECT_MEMORY_STATES;
    case TY_MEM_LOGITS:
        return TY_REJECT_MEMORY_LOGITS;
    default:
        return TY_REJECT_MEMORY_ACTIVATIONS;
    }
}

uint8_t hunt_screen_plan(struct hunt *hunt, uint32_t worker, const struct ty_plan *plan,
                         struct memory_verdict *memory)
{
    const enum ty_reject reason = legality_reject(&hunt->setting, plan);
    if (reason != TY_N_REJECTS)
        return (uint8_t)reason;
    const ty_status status =
        evaluator_memory(&hunt->evaluator[worker], &hunt->setting, plan, memory);
    if (status != TY_OK) {
        hunt->failed[worker] = status;
        return SCREEN_FAILED;
    }
    if (memory->fit == TY_FIT_NO)
        return (uint8_t)memory_reject(memory->largest);
    if (memory->fit == TY_FIT_TIGHT && !hunt->search->allow_tight)
        return TY_REJECT_MEMORY_TIGHT;
    return memory->headroom_bytes < hunt->goal.asked.min_headroom_bytes ? TY_REJECT_HEADROOM
                                                                        : SURVIVES;
}

ty_status hunt_failure(const struct hunt *hunt)
{
    for (uint32_t i = 0; i < hunt->n_workers; i++)
        if (hunt->failed[i] != TY_OK)
            return hunt->failed[i];
    return TY_OK;
}

static void screen_id(void *context, uint32_t worker, uint64_t id)
{
    struct hunt *hunt = context;
    if (!share_has(hunt->search->share, id)) {
        hunt->verdict[id] = OTHER_SHARD;
        return;
    }
    struct ty_plan plan;
    space_plan(&hunt->space, &hunt->setting, id, &plan);
    struct memory_verdict memory = {.fit = TY_FIT_YES};
    hunt->verdict[id] = hunt_screen_plan(hunt, worker, &plan, &memory);
    if (memory.fit == TY_FIT_YES)
        return;
    const struct ty_near_miss miss = {id, plan, -memory.headroom_bytes, memory.largest};
    near_offer(&hunt->near[worker], &miss);
}

/* What the workers found, in one list: the same whoever screened which plan. */
static void list_nearest(const struct hunt *hunt, struct ty_search_result *result)
{
    struct near_list list = {0};
    for (uint32_t i = 0; i < hunt->n_workers; i++)
        for (uint32_t j = 0; j < hunt->near[i].n; j++)
            near_offer(&list, &hunt->near[i].miss[j]);
    result->n_nearest = list.n;
    memcpy(result->nearest, list.miss, sizeof result->nearest);
}

ty_status hunt_screen(struct hunt *hunt, struct ty_search_result *result)
{
    const uint64_t n = hunt->space.n_plans;
    parallel_for(hunt->n_workers, n, SCREEN_GRAIN, screen_id, hunt);
    for (uint64_t id = 0; id < n; id++) {
        result->n_enumerated += hunt->verdict[id] != OTHER_SHARD;
        if (hunt->verdict[id] == SURVIVES)
            hunt->n_survivors++;
        else if (hunt->verdict[id] < TY_N_REJECTS)
            result->rejected[hunt->verdict[id]]++;
    }
    result->n_bounded = hunt->n_survivors;
    if (hunt->n_survivors == 0)
        list_nearest(hunt, result);
    const ty_status status = hunt_failure(hunt);
    if (status != TY_OK || hunt->n_survivors == 0)
        return status;
    hunt->survivor = calloc(hunt->n_survivors, sizeof *hunt->survivor);
    if (!hunt->survivor)
        return TY_ERR_NOMEM;
    uint64_t kept = 0;
    for (uint64_t id = 0; id < n; id++)
        if (hunt->verdict[id] == SURVIVES)
            hunt->survivor[kept++].id = id;
    return TY_OK;
}

/* ---- bound -------------------------------------------------------------------------------- */

/* What the plan is worth, and which limit it misses, were its step as short as its bound. */
static void weigh_bound(struct hunt *hunt, const struct ty_plan *plan, double least_s,
                        const struct step *step, struct survivor *survivor)
{
    const struct goal *goal = &hunt->goal;
    struct ty_outlay outlay;
    double mfu = (double)NAN;
    cost_unknown(&outlay);
    outlay.gpus_paid = cost_paid_gpus(&goal->cost, plan->n_gpus);
    if (goal->needs_outlay)
        cost_of(&goal->cost, plan, least_s, step_busy_s(step), &outlay);
    if (!isnan(goal->asked.min_mfu))
        mfu = plan_mfu(
            &hunt->setting, plan,
            plan_model_flop_per_s_per_gpu(&hunt->setting, plan, hunt->options.flops, least_s));
    const double useful_ratio = goal_useful_ratio(goal, plan);
    survivor->shape = board_shape(plan);
    survivor->n_passes = (uint64_t)plan->pp * plan->vpp * plan->n_micro;
    for (uint32_t i = 0; i < goal->asked.n_objectives; i++)
        survivor->worth[i] = goal_worth(goal, i, plan, least_s, &outlay, useful_ratio);
    const enum ty_reject limit = goal_limit(goal, plan, least_s, mfu, &outlay, useful_ratio);
    if (limit != TY_N_REJECTS)
        hunt->verdict[survivor->id] = (uint8_t)limit;
}

static void bound_survivor(void *context, uint32_t worker, uint64_t index)
{
    struct hunt *hunt = context;
    struct survivor *survivor = &hunt->survivor[index];
    struct evaluator *evaluator = &hunt->evaluator[worker];
    struct ty_plan plan;
    space_plan(&hunt->space, &hunt->setting, survivor->id, &plan);
    struct memory_verdict memory;
    double bound_s = 0.0;
    ty_status status = evaluator_memory(evaluator, &hunt->setting, &plan, &memory);
    if (status == TY_OK)
        status = step_bound(evaluator->step, &hunt->setting, &plan, evaluator->slots, &bound_s);
    if (status != TY_OK)
        hunt->failed[worker] = status;
    else
        weigh_bound(hunt, &plan, bound_s * (1.0 - BOUND_SLACK), evaluator->step, survivor);
}

/* Drops the plans whose bound misses a limit. */
static void drop_missing(struct hunt *hunt, struct ty_search_result *result)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < hunt->n_survivors; i++) {
        const uint8_t verdict = hunt->verdict[hunt->survivor[i].id];
        if (verdict == SURVIVES)
            hunt->survivor[kept++] = hunt->survivor[i];
        else
            result->rejected[verdict]++;
    }
    hunt->n_survivors = kept;
}

ty_status hunt_bound(struct hunt *hunt, struct ty_search_result *result)
{
    parallel_for(hunt->n_workers, hunt->n_survivors, BOUND_GRAIN, bound_survivor, hunt);
    drop_missing(hunt, result);
    return hunt_failure(hunt);
}
