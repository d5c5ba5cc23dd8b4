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

static int by_shape(const void *a, const void *b)
{
    const struct survivor *left = a, *right = b;
    const int order = memcmp(&left->shape, &right->shape, sizeof left->shape);
    return order != 0 ? order : by_promise(a, b);
}

static int by_head(const void *a, const void *b)
{
    const struct lane *left = a, *right = b;
    return by_promise(left->next, right->next);
}

/* Does each shape have one place at most, so that its plans need not be simulated together? */
static bool shapes_compete(const struct hunt *hunt)
{
    return !hunt->search->all && !hunt->search->exhaustive && !is_set(hunt);
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

/* Cuts the survivors, which are in order of ids, into lists and sorts each. returns the places of
 * all lists. */
static uint64_t cut_fronts(struct hunt *hunt)
{
    uint64_t first = 0, n_places = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        uint64_t end = first;
        while (end < hunt->n_survivors && hunt->survivor[end].id < end_of_list(hunt, i))
            end++;
        hunt->front[i] = (struct front){.first = first, .n = end - first};
        qsort(&hunt->survivor[first], end - first, sizeof *hunt->survivor,
              shapes_compete(hunt) ? by_shape : by_promise);
        n_places += places(hunt, end - first);
        first = end;
    }
    return n_places;
}

static bool opens_lane(const struct hunt *hunt, const struct front *front, uint64_t index)
{
    const struct survivor *survivor = &hunt->survivor[index];
    return index == front->first ||
           (shapes_compete(hunt) && !board_same_shape(&survivor[-1].shape, &survivor->shape));
}

/* returns the lanes used */
static uint64_t cut_lanes(const struct hunt *hunt, struct front *front)
{
    for (uint64_t index = front->first; index < front->first + front->n; index++) {
        const struct survivor *survivor = &hunt->survivor[index];
        if (opens_lane(hunt, front, index))
            front->lane[front->n_lanes++].next = survivor;
        front->lane[front->n_lanes - 1].end = survivor + 1;
    }
    return front->n_lanes;
}

static ty_status open_fronts(struct hunt *hunt)
{
    const uint64_t n_places = cut_fronts(hunt);
    hunt->entries = calloc(n_places + 1, sizeof *hunt->entries);
    hunt->kept = calloc(n_places + 1, sizeof *hunt->kept);
    hunt->lane = calloc(hunt->n_survivors + 1, sizeof *hunt->lane);
    if (!hunt->entries || !hunt->kept || !hunt->lane)
        return TY_ERR_NOMEM;
    uint64_t place = 0, lane = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        struct front *front = &hunt->front[i];
        front->lane = &hunt->lane[lane];
        lane += cut_lanes(hunt, front);
        front->kept = &hunt->kept[place];
        front->board = (struct board){.capacity = places(hunt, front->n),
                                      .all = hunt->search->all,
                                      .entry = &hunt->entries[place]};
        place += front->board.capacity;
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
    space_plan(&hunt->space, &hunt->setting, id, &out->plan);
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

/* What the best of the rest of a lane is, against what is listed. */
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

/* Takes up to `most` plans of a lane; the lane ends when none of the rest can be listed. */
static uint64_t take(struct hunt *hunt, struct lane *lane, double threshold, uint64_t most,
                     uint64_t *batch)
{
    uint64_t taken = 0;
    while (taken < most && lane->next < lane->end) {
        const enum outlook outlook = outlook_of(hunt, lane->next, threshold);
        const uint64_t n_settled = outlook == ALL_HOPELESS ? (uint64_t)(lane->end - lane->next) : 1;
        if (outlook == PROMISING)
            batch[taken++] = (uint64_t)(lane->next - hunt->survivor);
        hunt->n_settled += n_settled;
        lane->next += n_settled;
    }
    return taken;
}

/* Takes the next plans of a front, lanes of best promise first. */
static uint64_t take_round(struct hunt *hunt, struct front *front, uint64_t *batch)
{
    const uint64_t most_of_lane = shapes_compete(hunt) ? 1 : hunt->round;
    uint64_t taken = 0, n_lanes = 0;
    qsort(front->lane, front->n_lanes, sizeof *front->lane, by_head);
    for (uint64_t i = 0; i < front->n_lanes; i++) {
        struct lane *lane = &front->lane[i];
        const double threshold = board_threshold_of(&front->board, &lane->next->shape);
        if (taken < hunt->round)
            taken += take(hunt, lane, threshold, most_of_lane, &batch[taken]);
        if (lane->next < lane->end)
            front->lane[n_lanes++] = *lane;
    }
    front->n_lanes = n_lanes;
    return taken;
}

/* The longest simulations first, so that the workers end together; which comes first changes no
 * result. */
static void queue_batch(struct hunt *hunt, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t n_passes = hunt->survivor[hunt->batch[i]].n_passes;
        uint64_t place = i;
        for (; place > 0 && hunt->survivor[hunt->batch[hunt->queue[place - 1]]].n_passes < n_passes;
             place--)
            hunt->queue[place] = hunt->queue[place - 1];
        hunt->queue[place] = i;
    }
}

static void score_batch(void *context, uint32_t worker, uint64_t place)
{
    struct hunt *hunt = context;
    const uint64_t index = hunt->queue[place];
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
            n += take_round(hunt, &hunt->front[i], &hunt->batch[n]);
        if (n == 0)
            return TY_OK;
        queue_batch(hunt, n);
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
