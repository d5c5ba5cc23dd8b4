/* SPDX-License-Identifier: MIT
 *
 * Many settings, one plan. Each worker holds a copy of the inputs and one evaluator; a point lays
 * its values over the base, fills defaults and climbs the rungs. Points are computed in batches and
 * delivered in order.
 */
#include "include/trainyard_cross.h"
#include "models/cost.h"
#include "models/legality.h"
#include "models/predict.h"
#include "search/parallel.h"
#include "search/share.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 4096
#define GRAIN 64

struct worker {
    struct evaluator evaluator;
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
    struct ty_price price;
    struct setting setting;
    ty_status failed;
    struct ty_error error;
};

struct crossing {
    const struct ty_cross *cross;
    uint32_t n_workers;
    uint64_t first; /* index of the first point of the batch */
    struct worker *worker;
    struct ty_score *score; /* [BATCH] */
};

/* ---- one point ---------------------------------------------------------------------------- */

static void *target(struct worker *worker, enum ty_kind kind)
{
    switch (kind) {
    case TY_KIND_MODEL:
        return &worker->model;
    case TY_KIND_CLUSTER:
        return &worker->cluster;
    case TY_KIND_PROFILE:
        return &worker->profile;
    case TY_KIND_PRICE:
        return &worker->price;
    default:
        return &worker->plan;
    }
}

/* first + sum(place x stride) */
static uint64_t number_of(const struct ty_cross *cross, uint64_t index)
{
    uint64_t number = cross->first, stride = 1;
    for (uint32_t i = cross->n_axes; i-- > 0;) {
        const struct ty_cross_axis *axis = &cross->axis[i];
        number += index % axis->n * (axis->stride ? axis->stride : stride);
        index /= axis->n;
        stride *= axis->n;
    }
    return number;
}

static void lay_values(const struct ty_cross *cross, uint64_t index, struct worker *worker)
{
    worker->cluster = *cross->cluster;
    worker->profile = *cross->profile;
    worker->plan = *cross->plan;
    if (cross->price)
        worker->price = *cross->price;
    for (uint32_t i = cross->n_axes; i-- > 0;) {
        const struct ty_cross_axis *axis = &cross->axis[i];
        char *at = target(worker, axis->kind);
        memcpy(at + axis->field->offset, axis->patch[index % axis->n].bytes, axis->field->size);
        index /= axis->n;
    }
}

static void clear_score(struct ty_score *score)
{
    const double unknown = (double)NAN;
    score->step_time_s = score->tokens_per_s = score->tokens_per_s_per_gpu = score->mfu = unknown;
    score->peak_bytes = score->headroom_bytes = unknown;
    score->useful_ratio = 1.0;
    for (int part = 0; part < TY_N_PARTS; part++)
        score->breakdown_s[part] = unknown;
    cost_unknown(&score->outlay);
}

/* Bound or simulation of a plan that is laid out. */
static ty_status time_plan(const struct ty_cross *cross, struct worker *worker,
                           struct ty_score *score, double *busy_s)
{
    struct evaluator *evaluator = &worker->evaluator;
    const struct ty_known *known =
        cross->share ? ty_known_find(cross->share, score->plan_id) : NULL;
    if (known) {
        score->step_time_s = known->step_time_s;
        memcpy(score->breakdown_s, known->breakdown_s, sizeof score->breakdown_s);
        *busy_s = known->busy_s;
        return TY_OK;
    }
    if (cross->options.rung == TY_RUNG_BOUND) {
        const ty_status status = step_bound(evaluator->step, &worker->setting, &score->plan,
                                            evaluator->slots, &score->step_time_s);
        *busy_s = status == TY_OK ? step_busy_s(evaluator->step) : (double)NAN;
        return status;
    }
    struct step_result result;
    const ty_status status = evaluator_simulate(evaluator, &worker->setting, &score->plan,
                                                &cross->options, &result, &worker->error);
    if (status != TY_OK)
        return status;
    score->step_time_s = result.time_s;
    memcpy(score->breakdown_s, result.breakdown_s, sizeof score->breakdown_s);
    *busy_s = result.busy_s;
    return TY_OK;
}

static ty_status weigh(const struct ty_cross *cross, struct worker *worker, double busy_s,
                       struct ty_score *score)
{
    const struct ty_plan *plan = &score->plan;
    struct cost_model cost;
    const ty_status status = cost_model_init(
        &worker->setting.cluster, cross->price ? &worker->price : NULL, &cost, &worker->error);
    if (status != TY_OK)
        return status;
    cost_of(&cost, plan, score->step_time_s, busy_s, &score->outlay);
    score->outlay.price = cross->price; /* not the worker's copy */
    score->tokens_per_s = plan_tokens_per_step(plan) / score->step_time_s;
    score->tokens_per_s_per_gpu = score->tokens_per_s / plan->n_gpus;
    if (cross->options.rung == TY_RUNG_BOUND)
        return TY_OK; /* no MFU of a bound */
    const enum ty_flops flops = cross->options.flops ? cross->options.flops : TY_FLOPS_MEGATRON;
    score->mfu =
        plan_mfu(&worker->setting, plan,
                 plan_model_flop_per_s_per_gpu(&worker->setting, plan, flops, score->step_time_s));
    return TY_OK;
}

static ty_status predict(const struct ty_cross *cross, struct worker *worker,
                         struct ty_score *score)
{
    struct memory_verdict memory;
    double busy_s;
    ty_status status = setting_init(&worker->model, &worker->cluster, &worker->profile,
                                    &worker->setting, NULL, &worker->error);
    if (status != TY_OK)
        return status;
    plan_resolve(&worker->setting, &worker->plan, &score->plan, NULL);
    if (legality_reject(&worker->setting, &score->plan) != TY_N_REJECTS)
        return TY_OK;
    status = evaluator_memory(&worker->evaluator, &worker->setting, &score->plan, &memory);
    if (status != TY_OK)
        return status;
    score->peak_bytes = memory.peak_bytes;
    score->headroom_bytes = memory.headroom_bytes;
    if (memory.fit == TY_FIT_NO || (memory.fit == TY_FIT_TIGHT && !cross->allow_tight))
        return TY_OK;
    status = time_plan(cross, worker, score, &busy_s);
    return status == TY_OK ? weigh(cross, worker, busy_s, score) : status;
}

static void predict_point(void *context, uint32_t id, uint64_t index)
{
    struct crossing *crossing = context;
    struct worker *worker = &crossing->worker[id];
    struct ty_score *score = &crossing->score[index];
    *score = (struct ty_score){.plan_id = number_of(crossing->cross, crossing->first + index)};
    if (!share_has(crossing->cross->share, score->plan_id))
        return;
    clear_score(score);
    lay_values(crossing->cross, crossing->first + index, worker);
    const ty_status status = predict(crossing->cross, worker, score);
    if (status != TY_OK && worker->failed == TY_OK) {
        worker->failed = status;
        if (worker->error.code == TY_OK)
            error_set(&worker->error, status, "point", "%s", ty_status_text(status));
    }
}

/* ---- all points --------------------------------------------------------------------------- */

uint64_t ty_cross_n_points(const struct ty_cross *cross)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < cross->n_axes; i++)
        n *= cross->axis[i].n;
    return n;
}

static ty_status check(const struct ty_cross *cross, struct ty_error *error)
{
    if (cross->n_axes > TY_MAX_AXES)
        return error_set(error, TY_ERR_RANGE, "axes", "at most %d are crossed", TY_MAX_AXES);
    if (cross->options.rung == TY_RUNG_FULL)
        return error_set(error, TY_ERR_UNSUPPORTED, "rung", "points are bounded or simulated");
    for (uint32_t i = 0; i < cross->n_axes; i++)
        if (cross->axis[i].n == 0 || cross->axis[i].kind == TY_KIND_GPU ||
            (cross->axis[i].kind == TY_KIND_PRICE && !cross->price))
            return error_set(error, TY_ERR_RANGE, "axes",
                             "axis %u has no values, or nothing to lay them over", i + 1);
    return TY_OK;
}

static ty_status open_workers(struct crossing *crossing, struct ty_error *error)
{
    const struct ty_cross *cross = crossing->cross;
    crossing->n_workers = parallel_workers(cross->n_threads);
    crossing->worker = calloc(crossing->n_workers, sizeof *crossing->worker);
    crossing->score = calloc(BATCH, sizeof *crossing->score);
    ty_status status = crossing->worker && crossing->score ? TY_OK : TY_ERR_NOMEM;
    for (uint32_t i = 0; status == TY_OK && i < crossing->n_workers; i++) {
        crossing->worker[i].model = *cross->model;
        status = evaluator_init(&crossing->worker[i].evaluator, NULL);
    }
    return status == TY_OK ? status
                           : error_set(error, status, "points", "%s", ty_status_text(status));
}

static ty_status first_failure(const struct crossing *crossing, struct ty_error *error)
{
    for (uint32_t i = 0; i < crossing->n_workers; i++)
        if (crossing->worker[i].failed != TY_OK) {
            if (error)
                *error = crossing->worker[i].error;
            return crossing->worker[i].failed;
        }
    return TY_OK;
}

static ty_status run_batches(struct crossing *crossing, ty_cross_fn *fn, void *user,
                             struct ty_error *error)
{
    const uint64_t n_points = ty_cross_n_points(crossing->cross);
    for (; crossing->first < n_points; crossing->first += BATCH) {
        const uint64_t left = n_points - crossing->first, n = left < BATCH ? left : BATCH;
        parallel_for(crossing->n_workers, n, GRAIN, predict_point, crossing);
        const ty_status status = first_failure(crossing, error);
        if (status != TY_OK)
            return status;
        for (uint64_t i = 0; i < n; i++)
            if (share_has(crossing->cross->share, crossing->score[i].plan_id) &&
                !fn(user, &crossing->score[i]))
                return error_set(error, TY_ERR_CANCELLED, "points", "cancelled");
    }
    return TY_OK;
}

ty_status ty_cross_run(const struct ty_cross *cross, ty_cross_fn *fn, void *user,
                       struct ty_error *error)
{
    struct crossing crossing = {.cross = cross};
    ty_status status = check(cross, error);
    if (status == TY_OK)
        status = open_workers(&crossing, error);
    if (status == TY_OK)
        status = run_batches(&crossing, fn, user, error);
    for (uint32_t i = 0; crossing.worker && i < crossing.n_workers; i++)
        if (crossing.worker[i].evaluator.step)
            evaluator_destroy(&crossing.worker[i].evaluator);
    free(crossing.worker);
    free(crossing.score);
    return status;
}
