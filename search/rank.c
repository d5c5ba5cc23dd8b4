/* SPDX-License-Identifier: MIT
 *
 * The last pass of a search: simulates the survivors of each list best bound first, in rounds, and
 * keeps what is listed.
 */
#include "search/hunt.h"
#include "search/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_set(const struct hunt *hunt)
{
    return hunt->goal.asked.n_objectives > 1;
}

/* ---- lists -------------------------------------------------------------------------------- */

static int by_promise(const void *a, const void *b)
{
    const struct survivor *left = a, *right = b;
    if (left->worth[0] != right->worth[0])
        return left->worth[0] < right->worth[0] ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

/* First plan id beyond a list. */
static uint64_t end_of_list(const struct hunt *hunt, uint32_t list)
{
    if (hunt->n_fronts == 1)
        return hunt->space.n_plans;
    return hunt->space.count[list].first_id + hunt->space.count[list].n_plans;
}

static uint32_t places(const struct hunt *hunt, uint64_t n_survivors)
{
    return n_survivors < hunt->top ? (uint32_t)n_survivors : hunt->top;
}

/* Cuts the survivors, which are in order of ids, into lists and sorts each. */
static ty_status open_fronts(struct hunt *hunt)
{
    uint64_t first = 0, n_places = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        struct front *front = &hunt->front[i];
        uint64_t end = first;
        while (end < hunt->n_survivors && hunt->survivor[end].id < end_of_list(hunt, i))
            end++;
        *front = (struct front){.first = first, .n = end - first};
        qsort(&hunt->survivor[first], front->n, sizeof *hunt->survivor, by_promise);
        first = end;
        n_places += places(hunt, front->n);
    }
    hunt->entries = calloc(n_places + 1, sizeof *hunt->entries);
    hunt->kept = calloc(n_places + 1, sizeof *hunt->kept);
    if (!hunt->entries || !hunt->kept)
        return TY_ERR_NOMEM;
    n_places = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        struct front *front = &hunt->front[i];
        front->kept = &hunt->kept[n_places];
        front->board = (struct board){.capacity = places(hunt, front->n),
                                      .all = hunt->search->all,
                                      .entry = &hunt->entries[n_places]};
        n_places += front->board.capacity;
    }
    return TY_OK;
}

/* ---- one plan ----------------------------------------------------------------------------- */

/* The step as an earlier run has simulated it, or now. */
static ty_status time_step(struct hunt *hunt, uint32_t worker, const struct ty_score *score,
                           struct step_result *out)
{
    const struct ty_share *share = hunt->search->share;
    const struct ty_known *known = share ? ty_known_find(share, score->plan_id) : NULL;
    if (!known)
        return evaluator_simulate(&hunt->evaluator[worker], &hunt->setting, &score->plan,
                                  &hunt->options, out, NULL);
    *out = (struct step_result){.time_s = known->step_time_s, .busy_s = known->busy_s};
    memcpy(out->breakdown_s, known->breakdown_s, sizeof out->breakdown_s);
    return TY_OK;
}

static void score_plan(struct hunt *hunt, uint32_t worker, uint64_t id, struct ty_score *out)
{
    *out = (struct ty_score){.plan_id = id};
    hunt_plan(hunt, id, &out->plan);
    struct memory_verdict memory;
    if (hunt_screen_plan(hunt, worker, &out->plan, &memory) != SURVIVES)
        return; /* only after a failure, which is already noted */
    struct step_result result;
    const ty_status status = time_step(hunt, worker, out, &result);
    if (status != TY_OK) {
        hunt->failed[worker] = status;
        return;
    }
    out->step_time_s = result.time_s;
    out->tokens_per_s = plan_tokens_per_step(&out->plan) / result.time_s;
    out->tokens_per_s_per_gpu = out->tokens_per_s / out->plan.n_gpus;
    out->mfu = plan_mfu(&hunt->setting, &out->plan,
                        plan_model_flop_per_s_per_gpu(&hunt->setting, &out->plan,
                                                      hunt->options.flops, result.time_s));
    out->peak_bytes = memory.peak_bytes;
    out->headroom_bytes = memory.headroom_bytes;
    memcpy(out->breakdown_s, result.breakdown_s, sizeof out->breakdown_s);
    out->useful_ratio = goal_useful_ratio(&hunt->goal, &out->plan);
    cost_of(&hunt->goal.cost, &out->plan, result.time_s, result.busy_s, &out->outlay);
}

/* Offers a simulated plan to its list, unless it misses a limit. */
static ty_status list_plan(struct hunt *hunt, struct front *front, const struct ty_score *score,
                           struct ty_search_result *result)
{
    const struct goal *goal = &hunt->goal;
    const enum ty_reject limit = goal_limit(goal, &score->plan, score->step_time_s, score->mfu,
                                            &score->outlay, score->useful_ratio);
    if (limit != TY_N_REJECTS) {
        result->rejected[limit]++;
        return TY_OK;
    }
    double worth[TY_MAX_OBJECTIVES] = {0};
    for (uint32_t i = 0; i < goal->asked.n_objectives; i++)
        worth[i] = goal_worth(goal, i, &score->plan, score->step_time_s, &score->outlay,
                              score->useful_ratio);
    if (is_set(hunt))
        return pareto_offer(&hunt->pareto, worth, score) ? TY_OK : TY_ERR_NOMEM;
    const uint32_t slot = board_offer(&front->board, &score->plan, worth[0], score->plan_id);
    if (slot != BOARD_NOT_LISTED)
        front->kept[slot] = *score;
    return TY_OK;
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* What the best of the rest of a front is, against what is listed. */
enum outlook { PROMISING, HOPELESS, ALL_HOPELESS };

static enum outlook outlook_of(const struct hunt *hunt, const struct survivor *survivor,
                               double threshold)
{
    if (hunt->search->exhaustive)
        return PROMISING;
    if (is_set(hunt))
        return pareto_dominates(&hunt->pareto, survivor->worth) ? HOPELESS : PROMISING;
    return survivor->worth[0] < threshold ? ALL_HOPELESS : PROMISING;
}

/* Takes the next plans of a front, or settles it when none of the rest can be listed. */
static uint64_t take_round(struct hunt *hunt, struct front *front, uint64_t n_batch)
{
    if (front->next == front->n)
        return 0;
    const double threshold = board_threshold(&front->board);
    uint64_t taken = 0;
    while (taken < hunt->round && front->next < front->n) {
        const uint64_t index = front->first + front->next;
        const enum outlook outlook = outlook_of(hunt, &hunt->survivor[index], threshold);
        if (outlook == ALL_HOPELESS) {
            hunt->n_settled += front->n - front->next;
            front->next = front->n;
            break;
        }
        if (outlook == PROMISING)
            hunt->batch[n_batch + taken++] = index;
        hunt->n_settled++;
        front->next++;
    }
    return taken;
}

static void score_batch(void *context, uint32_t worker, uint64_t index)
{
    struct hunt *hunt = context;
    score_plan(hunt, worker, hunt->survivor[hunt->batch[index]].id, &hunt->score[index]);
}

static struct front *front_of(struct hunt *hunt, uint64_t survivor)
{
    uint32_t i = 0;
    while (survivor >= hunt->front[i].first + hunt->front[i].n)
        i++;
    return &hunt->front[i];
}

static bool deliver(const struct hunt *hunt, uint64_t n_scores)
{
    const struct ty_search *search = hunt->search;
    if (!search->progress)
        return true;
    for (uint64_t i = 0; i < n_scores; i++)
        if (!search->progress(search->user, &hunt->score[i], hunt->n_settled, hunt->n_survivors))
            return false;
    return n_scores > 0 || search->progress(search->user, NULL, hunt->n_settled, hunt->n_survivors);
}

ty_status hunt_simulate(struct hunt *hunt, struct ty_search_result *result)
{
    ty_status status = open_fronts(hunt);
    if (status == TY_OK && !deliver(hunt, 0))
        return TY_ERR_CANCELLED;
    while (status == TY_OK) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < hunt->n_fronts; i++)
            n += take_round(hunt, &hunt->front[i], n);
        if (n == 0)
            return TY_OK;
        parallel_for(hunt->n_workers, n, 1, score_batch, hunt);
        status = hunt_failure(hunt);
        result->n_evaluated += n;
        for (uint64_t i = 0; status == TY_OK && i < n; i++)
            status = list_plan(hunt, front_of(hunt, hunt->batch[i]), &hunt->score[i], result);
        if (status == TY_OK && !deliver(hunt, n))
            return TY_ERR_CANCELLED;
    }
    return status;
}

/* ---- result ------------------------------------------------------------------------------- */

ty_status hunt_list(struct hunt *hunt, struct ty_search_result *result)
{
    uint64_t n_listed = hunt->pareto.n;
    for (uint32_t i = 0; i < hunt->n_fronts; i++)
        n_listed += hunt->front[i].board.n;
    result->best = calloc(n_listed + 1, sizeof *result->best);
    if (!result->best)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        const struct front *front = &hunt->front[i];
        for (uint32_t j = 0; j < front->board.n; j++)
            result->best[result->n_best++] = front->kept[front->board.entry[j].slot];
    }
    pareto_sort(&hunt->pareto);
    for (uint32_t i = 0; i < hunt->pareto.n; i++)
        result->best[result->n_best++] = hunt->pareto.entry[i].score;
    return TY_OK;
}
