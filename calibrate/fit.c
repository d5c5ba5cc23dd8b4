/* SPDX-License-Identifier: MIT
 *
 * The fit and its cross-validation. Outer rounds: linearise, solve, move. A few rounds take new
 * slopes, the others keep them and simulate every row once: where two times compete (host and GPU,
 * traffic and compute) slopes jump, and new ones in every round would go to and fro for ever.
 * Cross-validation: each fold is solved on the linear model around the full solution, and its rows
 * are predicted by the simulator.
 */
#include "calibrate/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOPE_ROUNDS = 3, MAX_ROUNDS = 16 };
static const double STANDS_STILL = 1e-5; /* largest change of a constant, in the logarithm */
static const double LONGEST_STEP = 0.7;

/* Moves z to the new point, no further than a step. returns the largest change. */
static double move(double *z, const double *to, uint32_t n)
{
    double moved = 0.0;
    for (uint32_t j = 0; j < n; j++) {
        const double step = fmax(-LONGEST_STEP, fmin(LONGEST_STEP, to[j] - z[j]));
        z[j] += step;
        moved = fmax(moved, fabs(step));
    }
    return moved;
}

ty_status fit_solve(const struct fit_rows *rows, const struct fit_params *params,
                    uint32_t n_threads, struct fit_linear *linear, double *z, double *share)
{
    const size_t bytes = params->n * sizeof *z;
    double *to = malloc(bytes);
    double moved = HUGE_VAL;
    ty_status status = to ? TY_OK : TY_ERR_NOMEM;
    for (int round = 0; status == TY_OK && moved > STANDS_STILL && round < MAX_ROUNDS; round++) {
        memcpy(linear->z, z, bytes);
        memcpy(to, z, bytes);
        status = fit_linearise(rows, params, n_threads, round >= SLOPE_ROUNDS, linear);
        if (status == TY_OK)
            status = fit_map(linear, params, rows->weight, to, share);
        if (status == TY_OK)
            moved = move(z, to, params->n);
    }
    free(to);
    return status;
}

/* ---- cross-validation --------------------------------------------------------------------- */

enum { EXTRAPOLATED = 8 };

/* Rows that stay together: a source, or a sweep of one source, model, GPU and GPU count. */
static bool together(const struct ty_run *a, const struct ty_run *b, enum fit_folds folds)
{
    const bool source = strcmp(a->row.source, b->row.source) == 0;
    return folds == FOLDS_SOURCES
               ? source
               : source && strcmp(a->row.model, b->row.model) == 0 &&
                     strcmp(a->row.gpu, b->row.gpu) == 0 && a->plan.n_gpus == b->plan.n_gpus;
}

/* One plan with more replicas: same source, model, GPU and layout, the batch grown as the GPUs. */
static bool weak_scaling(const struct ty_run *a, const struct ty_run *b)
{
    struct ty_plan one = a->plan, other = b->plan;
    const double grown = (double)one.gbs * other.n_gpus, batch = (double)other.gbs * one.n_gpus;
    one.n_gpus = other.n_gpus = one.gbs = other.gbs = 0;
    return strcmp(a->row.source, b->row.source) == 0 && strcmp(a->row.model, b->row.model) == 0 &&
           strcmp(a->row.gpu, b->row.gpu) == 0 && strcmp(a->row.release, b->row.release) == 0 &&
           memcmp(&one, &other, sizeof one) == 0 && fabs(grown / batch - 1.0) < 0.01;
}

/* Rows of EXTRAPOLATED times the GPUs of the smallest of their series are fold 0, all others in
 * none. */
static uint32_t deal_series(const struct fit_rows *rows, uint32_t *fold)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct ty_run *run = &rows->run[i];
        fold[i] = UINT32_MAX;
        for (uint32_t k = 0; k < rows->n; k++)
            if (run->plan.n_gpus >= EXTRAPOLATED * rows->run[k].plan.n_gpus &&
                weak_scaling(run, &rows->run[k]))
                fold[i] = 0;
    }
    return 1;
}

uint32_t fit_deal(const struct fit_rows *rows, enum fit_folds folds, uint32_t *fold)
{
    if (folds == FOLDS_SERIES)
        return deal_series(rows, fold);
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t first = 0;
        while (!together(&rows->run[first], &rows->run[i], folds))
            first++;
        fold[i] = first < i ? fold[first] : n_groups++;
    }
    if (folds == FOLDS_SOURCES)
        return n_groups;
    for (uint32_t i = 0; i < rows->n; i++)
        fold[i] %= N_FOLDS;
    return N_FOLDS;
}

struct validation {
    const struct fit_rows *rows;
    const struct fit_params *params;
    const struct fit_linear *linear;
    const double *z; /* of all rows */
    uint32_t n_threads;
    uint32_t *fold;            /* [n rows] */
    double *weight, *r;        /* [n rows] */
    bool *left_out;            /* [n rows] */
    struct fit_linear of_fold; /* its z and r */
};

static ty_status validate_fold(struct validation *v, uint32_t fold)
{
    const uint32_t n = v->rows->n;
    for (uint32_t i = 0; i < n; i++) {
        v->left_out[i] = v->fold[i] == fold;
        v->weight[i] = v->left_out[i] ? 0.0 : v->rows->weight[i];
    }
    memcpy(v->of_fold.z, v->z, v->params->n * sizeof *v->z);
    ty_status status = fit_map(v->linear, v->params, v->weight, v->of_fold.z, NULL);
    if (status == TY_OK)
        status = fit_residuals(v->rows, v->params, v->n_threads, v->left_out, &v->of_fold);
    for (uint32_t i = 0; status == TY_OK && i < n; i++)
        if (v->left_out[i])
            v->r[i] = v->of_fold.r[i];
    return status;
}

ty_status fit_cross_validate(const struct fit_rows *rows, const struct fit_params *params,
                             const struct fit_solution *solution, enum fit_folds folds,
                             uint32_t n_threads, double *r)
{
    struct validation v = {.rows = rows,
                           .params = params,
                           .linear = &solution->linear,
                           .z = solution->z,
                           .n_threads = n_threads,
                           .fold = calloc(rows->n, sizeof *v.fold),
                           .weight = calloc(rows->n, sizeof *v.weight),
                           .left_out = calloc(rows->n, sizeof *v.left_out),
                           .r = r};
    uint32_t n_folds = 0;
    ty_status status = fit_linear_create(rows->n, params->n, &v.of_fold);
    if (!v.fold || !v.weight || !v.left_out)
        status = TY_ERR_NOMEM;
    if (status == TY_OK)
        n_folds = fit_deal(rows, folds, v.fold);
    for (uint32_t fold = 0; status == TY_OK && fold < n_folds; fold++)
        status = validate_fold(&v, fold);
    fit_linear_free(&v.of_fold);
    free(v.fold);
    free(v.weight);
    free(v.left_out);
    return status;
}

/* ---- all of it ---------------------------------------------------------------------------- */

ty_status fit_run(const struct fit_rows *rows, const struct fit_params *params, uint32_t n_threads,
                  struct fit_solution *out)
{
    *out = (struct fit_solution){.z = calloc(params->n, sizeof(double)),
                                 .share = calloc(params->n, sizeof(double))};
    ty_status status = fit_linear_create(rows->n, params->n, &out->linear);
    if (!out->z || !out->share)
        status = TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_solve(rows, params, n_threads, &out->linear, out->z, out->share);
    if (status != TY_OK)
        fit_solution_free(out);
    return status;
}

void fit_solution_free(struct fit_solution *solution)
{
    fit_linear_free(&solution->linear);
    free(solution->z);
    free(solution->share);
    *solution = (struct fit_solution){0};
}
