/* SPDX-License-Identifier: MIT
 *
 * The search as its caller sees it: set-up, the passes of hunt.h one after the other, the result.
 */
#include "search/hunt.h"
#include "search/parallel.h"
#include "models/feed.h"
#include "sim/error.h"

#include <stdlib.h>

#define MIN_ROUND   4 /* plans of a round follow the length of the list, within these */
#define MAX_ROUND   64
#define DEFAULT_TOP 10

/* What the input and the checkpoints of every plan share is refused once, by name. */
static ty_status open_storage(struct hunt *hunt, struct ty_error *error)
{
    const struct ty_storage *storage = hunt->search->options.storage;
    if (!storage)
        return TY_OK;
    hunt->goal.setting = &hunt->setting;
    hunt->goal.storage = storage;
    if (hunt->goal.asked.failures && storage->checkpoint.every_steps)
        return error_set(error, TY_ERR_RANGE, "checkpoint.every_steps",
                         "a search with failures needs the interval as a time, checkpoint.every");
    return feed_check(storage, &hunt->setting.cluster, error);
}

static ty_status open_hunt(struct hunt *hunt, struct ty_error *error)
{
    const struct ty_search *search = hunt->search;
    const struct ty_share *share = search->share;
    if (share && share->n_shards && share->shard >= share->n_shards)
        return error_set(error, TY_ERR_RANGE, "shard", "%u is not below %u", share->shard,
                         share->n_shards);
    ty_status status =
        setting_init(search->model, search->cluster, search->profile, &hunt->setting, NULL, error);
    if (status != TY_OK)
        return status;
    status = goal_init(search->goal, &hunt->setting.cluster, &hunt->goal, error);
    if (status != TY_OK)
        return status;
    status = open_storage(hunt, error);
    if (status != TY_OK)
        return status;
    hunt->pareto.n_objectives = hunt->goal.asked.n_objectives;
    hunt->options = search->options;
    if (hunt->options.flops == TY_FLOPS_AUTO)
        hunt->options.flops = TY_FLOPS_MEGATRON;
    status = space_init(&hunt->setting, &search->space, NULL, &hunt->space, error);
    if (status != TY_OK)
        return status;
    hunt->n_workers = parallel_workers(search->n_threads);
    hunt->evaluator = calloc(hunt->n_workers, sizeof *hunt->evaluator);
    hunt->failed = calloc(hunt->n_workers, sizeof *hunt->failed);
    hunt->near = calloc(hunt->n_workers, sizeof *hunt->near);
    hunt->top = search->top ? search->top : DEFAULT_TOP;
    hunt->round = hunt->top < MIN_ROUND ? MIN_ROUND : hunt->top < MAX_ROUND ? hunt->top : MAX_ROUND;
    hunt->n_fronts = search->overall || hunt->pareto.n_objectives > 1 ? 1 : hunt->space.n_counts;
    hunt->front = calloc(hunt->n_fronts, sizeof *hunt->front);
    hunt->batch = calloc((size_t)hunt->n_fronts * hunt->round, sizeof *hunt->batch);
    hunt->queue = calloc((size_t)hunt->n_fronts * hunt->round, sizeof *hunt->queue);
    hunt->score = calloc((size_t)hunt->n_fronts * hunt->round, sizeof *hunt->score);
    hunt->verdict = calloc(hunt->space.n_plans, 1);
    if (!hunt->evaluator || !hunt->failed || !hunt->near || !hunt->front || !hunt->batch ||
        !hunt->queue || !hunt->score || !hunt->verdict)
        return error_set(error, TY_ERR_NOMEM, "search", "out of memory");
    for (uint32_t i = 0; i < hunt->n_workers; i++) {
        status = evaluator_init(&hunt->evaluator[i], NULL);
        if (status != TY_OK)
            return error_set(error, status, "search", "%s", ty_status_text(status));
    }
    return TY_OK;
}

static void close_hunt(struct hunt *hunt)
{
    for (uint32_t i = 0; hunt->evaluator && i < hunt->n_workers; i++)
        evaluator_destroy(&hunt->evaluator[i]);
    free(hunt->evaluator);
    free(hunt->failed);
    free(hunt->near);
    free(hunt->score);
    free(hunt->verdict);
    free(hunt->survivor);
    free(hunt->front);
    free(hunt->lane);
    free(hunt->entries);
    free(hunt->kept);
    pareto_free(&hunt->pareto);
    free(hunt->batch);
    free(hunt->queue);
    space_destroy(&hunt->space);
    free(hunt);
}

static ty_status run(struct hunt *hunt, struct ty_search_result *result, struct ty_error *error)
{
    ty_status status = hunt_screen(hunt, result);
    if (status == TY_OK && hunt->n_survivors == 0)
        return error_set(error, TY_ERR_INFEASIBLE, "search",
                         "none of %llu plans is legal and fits in memory",
                         (unsigned long long)hunt->space.n_plans);
    if (status == TY_OK)
        status = hunt_bound(hunt, result);
    if (status == TY_OK)
        status = hunt_simulate(hunt, result);
    if (status == TY_OK)
        status = hunt_list(hunt, result);
    if (status == TY_OK && result->n_best == 0)
        return error_set(error, TY_ERR_INFEASIBLE, "search",
                         "none of %llu plans that fit keeps the limits",
                         (unsigned long long)result->n_bounded);
    return status == TY_OK ? status
                           : error_set(error, status, "search", "%s", ty_status_text(status));
}

ty_status ty_search_run(const struct ty_search *search, struct ty_search_result *out,
                        struct ty_error *error)
{
    struct hunt *hunt = calloc(1, sizeof *hunt);
    if (!hunt)
        return error_set(error, TY_ERR_NOMEM, "search", "out of memory");
    hunt->search = search;
    struct ty_search_result result = {0};
    ty_status status = open_hunt(hunt, error);
    if (status == TY_OK)
        status = run(hunt, &result, error);
    close_hunt(hunt);
    if (status == TY_OK || status == TY_ERR_INFEASIBLE)
        *out = result;
    else
        ty_search_free(&result);
    return status;
}

void ty_search_free(struct ty_search_result *result)
{
    free(result->best);
    *result = (struct ty_search_result){0};
}

const char *ty_reject_name(enum ty_reject reason)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_REJECT_LIST(X)
#undef X
    };
    return reason >= 0 && reason < TY_N_REJECTS ? names[reason] : "unknown";
}
