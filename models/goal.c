/* SPDX-License-Identifier: MIT
 *
 * Objectives and limits. With failures only a share of the time advances the job, g of a GPU count:
 *
 *   time to N tokens = N T / (tokens of a step g)     money, energy per token = per step / (tokens
 * g)
 */
#include "models/goal.h"
#include "include/trainyard_ratio.h"
#include "models/failures.h"
#include "models/feed.h"
#include "models/predict.h"
#include "sim/error.h"

#include <math.h>

const char *ty_objective_name(enum ty_objective objective)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_OBJECTIVE_LIST(X)
#undef X
    };
    return objective >= 0 && objective < TY_N_OBJECTIVES ? names[objective] : "unknown";
}

void ty_goal_init(struct ty_goal *goal)
{
    *goal = (struct ty_goal){.tokens = (double)NAN,
                             .deadline_s = (double)NAN,
                             .budget = (double)NAN,
                             .min_headroom_bytes = (double)NAN,
                             .min_mfu = (double)NAN};
}

/* ---- failures ----------------------------------------------------------------------------- */

/* A time per save that no step time enters, so that a bound and a simulation of a plan get the same
 * share: the interval is rounded to whole seconds instead of whole steps. */
static ty_status goodput_of_saves(const struct goal *goal, const struct ty_failures *failures,
                                  const struct ty_plan *plan, struct ty_goodput *out)
{
    struct ty_storage storage = *goal->storage;
    struct ty_save_report save;
    storage.failures = failures;
    const ty_status status = feed_save(&storage, goal->setting, plan, 1.0, 0.0, &save, NULL);
    const double nodes = ceil((double)plan->n_gpus / goal->cost.cluster->gpus_per_node);
    return status == TY_OK ? failures_goodput_of(failures, nodes, &save, out, NULL) : status;
}

ty_status goal_goodput(const struct goal *goal, const struct ty_plan *plan, struct ty_goodput *out)
{
    const double nodes = ceil((double)plan->n_gpus / goal->cost.cluster->gpus_per_node);
    *out = (struct ty_goodput){
        .mtbf_s = INFINITY, .interval_s = INFINITY, .useful_ratio = 1.0, .stretch_ratio = 1.0};
    if (!goal->asked.failures)
        return TY_OK;
    /* Of a Weibull shape only the mean is taken: it is asked for every plan, and a save interval
     * far below the mean leaves the shape little to say. */
    struct ty_failures even = *goal->asked.failures;
    even.weibull_shape = 0.0;
    if (goal->storage && goal->storage->checkpoint.mode != TY_SAVE_NONE)
        return goodput_of_saves(goal, &even, plan, out);
    return ty_goodput(&even, nodes, out, NULL);
}

double goal_useful_ratio(const struct goal *goal, const struct ty_plan *plan)
{
    struct ty_goodput goodput;
    return goal_goodput(goal, plan, &goodput) == TY_OK ? goodput.useful_ratio : (double)NAN;
}

/* ---- set-up ------------------------------------------------------------------------------- */

static ty_status check_objective(const struct ty_goal *goal, enum ty_objective objective,
                                 struct ty_error *error)
{
    if (objective <= TY_OBJECTIVE_AUTO || objective >= TY_N_OBJECTIVES)
        return error_set(error, TY_ERR_RANGE, "objective", "%d is none", (int)objective);
    if (objective == TY_OBJECTIVE_COST_PER_TOKEN && !goal->price)
        return error_set(error, TY_ERR_RANGE, "objective", "cost_per_token needs a price list");
    if (objective == TY_OBJECTIVE_TIME_TO_TOKENS && !(goal->tokens > 0.0))
        return error_set(error, TY_ERR_RANGE, "objective", "time_to_tokens needs tokens");
    return TY_OK;
}

static ty_status check_limits(const struct ty_goal *goal, struct ty_error *error)
{
    if (!isnan(goal->deadline_s) && !(goal->tokens > 0.0))
        return error_set(error, TY_ERR_RANGE, "deadline", "needs the tokens of the run");
    if (!isnan(goal->budget) && (!(goal->tokens > 0.0) || !goal->price))
        return error_set(error, TY_ERR_RANGE, "budget", "needs the tokens of the run and prices");
    return TY_OK;
}

ty_status goal_init(const struct ty_goal *asked, const struct ty_cluster *cluster, struct goal *out,
                    struct ty_error *error)
{
    struct goal goal = {0};
    if (asked)
        goal.asked = *asked;
    else
        ty_goal_init(&goal.asked);
    if (goal.asked.n_objectives > TY_MAX_OBJECTIVES)
        return error_set(error, TY_ERR_RANGE, "objective", "at most %d are weighed at once",
                         TY_MAX_OBJECTIVES);
    if (goal.asked.n_objectives == 0) {
        goal.asked.n_objectives = 1;
        goal.asked.objective[0] = TY_OBJECTIVE_TOKENS_PER_S_PER_GPU;
    }
    ty_status status = check_limits(&goal.asked, error);
    for (uint32_t i = 0; status == TY_OK && i < goal.asked.n_objectives; i++) {
        const enum ty_objective objective = goal.asked.objective[i];
        goal.needs_outlay |=
            objective == TY_OBJECTIVE_COST_PER_TOKEN || objective == TY_OBJECTIVE_ENERGY_PER_TOKEN;
        status = check_objective(&goal.asked, objective, error);
    }
    goal.needs_outlay |= !isnan(goal.asked.budget);
    if (status == TY_OK)
        status = cost_model_init(cluster, goal.asked.price, &goal.cost, error);
    if (status == TY_OK && goal.asked.failures) {
        struct ty_goodput unused;
        status = ty_goodput(goal.asked.failures, 1.0, &unused, error);
    }
    if (status == TY_OK && (goal.needs_outlay && goal.asked.price) && isnan(goal.cost.gpu_hour) &&
        (!isnan(goal.asked.budget) || goal.asked.objective[0] == TY_OBJECTIVE_COST_PER_TOKEN))
        status =
            error_set(error, TY_ERR_RANGE, "price", "gives neither gpu_hour nor capital costs");
    if (status == TY_OK)
        *out = goal;
    return status;
}

/* ---- values ------------------------------------------------------------------------------- */

double goal_value(const struct ty_goal *asked, enum ty_objective objective,
                  const struct ty_plan *plan, double step_time_s, const struct ty_outlay *outlay,
                  double useful_ratio)
{
    const double tokens = plan_tokens_per_step(plan);
    switch (objective) {
    case TY_OBJECTIVE_TOKENS_PER_S:
        return tokens / step_time_s;
    case TY_OBJECTIVE_COST_PER_TOKEN:
        return outlay->money / (tokens * useful_ratio);
    case TY_OBJECTIVE_ENERGY_PER_TOKEN:
        return outlay->energy_j / (tokens * useful_ratio);
    case TY_OBJECTIVE_TIME_TO_TOKENS:
        return asked->tokens / (tokens * useful_ratio) * step_time_s;
    case TY_OBJECTIVE_GPUS:
        return outlay->gpus_paid;
    default:
        return tokens / step_time_s / plan->n_gpus;
    }
}

static bool more_is_better(enum ty_objective objective)
{
    return objective <= TY_OBJECTIVE_TOKENS_PER_S;
}

double goal_worth(const struct goal *goal, uint32_t index, const struct ty_plan *plan,
                  double step_time_s, const struct ty_outlay *outlay, double useful_ratio)
{
    const enum ty_objective objective = goal->asked.objective[index];
    const double value =
        goal_value(&goal->asked, objective, plan, step_time_s, outlay, useful_ratio);
    return more_is_better(objective) ? value : -value;
}

enum ty_reject goal_limit(const struct goal *goal, const struct ty_plan *plan, double step_time_s,
                          double mfu, const struct ty_outlay *outlay, double useful_ratio)
{
    const struct ty_goal *asked = &goal->asked;
    if (goal_value(asked, TY_OBJECTIVE_TIME_TO_TOKENS, plan, step_time_s, outlay, useful_ratio) >
        asked->deadline_s)
        return TY_REJECT_DEADLINE;
    if (!isnan(asked->budget) &&
        asked->tokens * goal_value(asked, TY_OBJECTIVE_COST_PER_TOKEN, plan, step_time_s, outlay,
                                   useful_ratio) >
            asked->budget)
        return TY_REJECT_BUDGET;
    return mfu < asked->min_mfu ? TY_REJECT_MFU : TY_N_REJECTS;
}

double ty_objective_value(enum ty_objective objective, const struct ty_goal *goal,
                          const struct ty_score *score)
{
    struct ty_goal none;
    ty_goal_init(&none);
    return goal_value(goal ? goal : &none, objective, &score->plan, score->step_time_s,
                      &score->outlay, score->useful_ratio);
}

/* ---- choices under uncertainty ------------------------------------------------------------ */

/* Better is less. */
static double burden(const struct ty_goal *goal, const struct ty_score *score)
{
    const enum ty_objective objective =
        goal && goal->n_objectives ? goal->objective[0] : TY_OBJECTIVE_TOKENS_PER_S_PER_GPU;
    const double value = ty_objective_value(objective, goal, score);
    return more_is_better(objective) ? 1.0 / value : value;
}

void ty_ratio_of_scores(const struct ty_search *search, const struct ty_score *a,
                        const struct ty_score *b, struct ty_ratio *out)
{
    const struct ty_rated left = {search->model, search->cluster, search->profile, &a->plan,
                                  burden(search->goal, a)};
    const struct ty_rated right = {search->model, search->cluster, search->profile, &b->plan,
                                   burden(search->goal, b)};
    ty_ratio_of(&left, &right, out);
}

/* The best and the second best of a list, n >= 2. */
static void two_best(const struct ty_search *search, const struct ty_score *scores, uint32_t n,
                     uint32_t best[2])
{
    best[0] = best[1] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const double mine = burden(search->goal, &scores[i]);
        if (best[0] == UINT32_MAX || mine < burden(search->goal, &scores[best[0]])) {
            best[1] = best[0];
            best[0] = i;
        } else if (best[1] == UINT32_MAX || mine < burden(search->goal, &scores[best[1]])) {
            best[1] = i;
        }
    }
}

bool ty_robust_of_scores(const struct ty_search *search, const struct ty_score *scores, uint32_t n,
                         struct ty_robust *out)
{
    uint32_t best[2];
    if (n < 2)
        return false;
    two_best(search, scores, n, best);
    struct ty_robust choice = {.plan = UINT32_MAX};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t other = best[i == best[0]];
        struct ty_ratio ratio;
        ty_ratio_of_scores(search, &scores[i], &scores[other], &ratio);
        if (isnan(ratio.interval_90[1]))
            return false;
        if (choice.plan == UINT32_MAX || ratio.interval_90[1] < choice.ratio.interval_90[1])
            choice = (struct ty_robust){i, other, ratio};
    }
    *out = choice;
    return true;
}
