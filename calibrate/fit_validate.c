/* SPDX-License-Identifier: MIT
 * A validation in which no row is predicted with constants that were fitted on it. */
#include "calibrate/fit.h"
#include "calibrate/statistics.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct held_out {
    const struct fit_rows *rows;
    const struct fit_params *params;
    const struct fit_solution *solution;
    uint32_t n_threads;
    double *r, *scratch; /* [n rows] */
    uint32_t *fold;      /* [n rows] */
};

/* ---- rows --------------------------------------------------------------------------------- */

static void set_interval(double time_s, double half, double out[2])
{
    out[0] = time_s * exp(-half);
    out[1] = time_s * exp(half);
}

/* ln(upper end / predicted) of a row; NAN without an interval. */
static double half_of(const struct ty_run_row *row, const double interval[2])
{
    return log(interval[1] / row->predicted_s);
}

/* Half widths of row i: from the errors of other folds; of the shipped profile for a series. */
static void find_halves(const struct held_out *h, enum fit_folds folds, uint32_t i,
                        const struct ty_run_row *row, double half[2])
{
    const struct fit_width_of of = {h->rows, h->r, h->fold, h->fold[i], h->scratch};
    const enum fit_class class = fit_class_of(row);
    for (int k = 0; k < 2; k++) {
        const double share = k ? 0.9 : 0.8;
        half[k] = folds == FOLDS_SERIES ? half_of(row, k ? row->interval_90_s : row->interval_80_s)
                  : folds == FOLDS_SOURCES ? fit_width_unknown(&of, row->stack, class, share)
                                           : fit_width(&of, row->stack, class, share);
    }
}

/* Row i of the fit as it was predicted without its fold; without a fold, nothing. */
static void put_row(const struct held_out *h, enum fit_folds folds, uint32_t i,
                    struct ty_run_row *row)
{
    const bool left_out = h->fold[i] != UINT32_MAX;
    double half[2] = {(double)NAN, (double)NAN};
    if (left_out)
        find_halves(h, folds, i, row, half);
    row->predicted_s = left_out ? row->measured_s * exp(h->r[i]) : (double)NAN;
    row->no_site_s = (double)NAN;
    set_interval(row->predicted_s, half[0], row->interval_80_s);
    set_interval(row->predicted_s, half[1], row->interval_90_s);
    row->in_fit = false;
}

/* The rows of the fit are those of the table that have a time, in the same order. */
static void put_back(const struct held_out *h, enum fit_folds folds,
                     struct ty_validation *validation)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < validation->n_rows && next < h->rows->n; i++)
        if (strcmp(validation->rows[i].id, h->rows->run[next].row.id) == 0)
            put_row(h, folds, next++, &validation->rows[i]);
}

/* ---- ratios ------------------------------------------------------------------------------- */

/* Weights of the pairs of one fold, and of those inside the widths of the others. */
struct inside {
    double all, in_80, in_90;
};

static void count_inside(const struct fit_pairs *pairs, const struct fit_pair_filter *to,
                         struct inside *sum)
{
    const struct fit_pair_filter from = {to->of_class, to->stack, to->fold, true};
    const double half_80 = fit_pairs_width_of_stack(pairs, &from, 0.8);
    const double half_90 = fit_pairs_width_of_stack(pairs, &from, 0.9);
    if (isnan(half_80))
        return;
    sum->all += fit_pairs_weight(pairs, to);
    sum->in_80 += fit_pairs_inside(pairs, to, half_80);
    sum->in_90 += fit_pairs_inside(pairs, to, half_90);
}

static bool first_of_stack(const struct fit_pairs *pairs, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(pairs->pair[k].row->stack, pairs->pair[i].row->stack) == 0)
            return false;
    return true;
}

static ty_status cover_ratios(const struct held_out *h, enum ty_kinship kinship,
                              struct ty_ratio_coverage *out)
{
    struct fit_pairs pairs;
    struct inside sum = {0};
    const ty_status status = fit_pairs_of(h->rows, h->r, kinship, &pairs);
    if (status != TY_OK)
        return status;
    for (uint32_t i = 0; i < pairs.n; i++) {
        if (!first_of_stack(&pairs, i))
            continue;
        for (enum fit_class class = 0; class < N_FIT_CLASSES; class ++)
            for (uint32_t fold = 1; fold <= N_FOLDS; fold++)
                count_inside(
                    &pairs, &(struct fit_pair_filter){class, pairs.pair[i].row->stack, fold, false},
                    &sum);
    }
    *out = (struct ty_ratio_coverage){pairs.n, sum.in_80 / sum.all, sum.in_90 / sum.all};
    free(pairs.pair);
    return TY_OK;
}

/* ---- the presets -------------------------------------------------------------------------- */

static double middle(const struct held_out *h, uint32_t without)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->rows->n; i++)
        if (h->fold[i] != without && !h->rows->run[i].row.noisy)
            h->scratch[n++] = h->r[i];
    stat_sort(h->scratch, n);
    return stat_quantile(h->scratch, n, 0.5);
}

/* Every constant at its prior, and one factor on time from the rows of the other folds. */
static ty_status predict_presets(struct held_out *h, struct ty_validation *validation)
{
    struct fit_linear linear;
    double factor[N_FOLDS];
    if (!validation)
        return TY_OK;
    ty_status status = fit_linear_create(h->rows->n, h->params->n, &linear);
    if (status == TY_OK)
        status = fit_linearise(h->rows, h->params, h->n_threads, true, &linear);
    if (status == TY_OK) {
        memcpy(h->r, linear.r, h->rows->n * sizeof *h->r);
        fit_deal(h->rows, FOLDS_GROUPED, h->fold);
        for (uint32_t fold = 0; fold < N_FOLDS; fold++)
            factor[fold] = middle(h, fold);
        for (uint32_t i = 0; i < h->rows->n; i++)
            h->r[i] -= factor[h->fold[i]];
        put_back(h, FOLDS_GROUPED, validation);
    }
    fit_linear_free(&linear);
    return status;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static ty_status leave_out(struct held_out *h, enum fit_folds folds,
                           struct ty_validation *validation, struct ty_ratio_coverage *ratios)
{
    if (!validation && !ratios)
        return TY_OK;
    fit_deal(h->rows, folds, h->fold);
    ty_status status =
        fit_cross_validate(h->rows, h->params, h->solution, folds, h->n_threads, h->r);
    if (status == TY_OK && validation)
        put_back(h, folds, validation);
    for (enum ty_kinship kinship = TY_KIN_PLANS;
         status == TY_OK && ratios && kinship <= TY_KIN_GPUS; kinship++)
        status = cover_ratios(h, kinship, &ratios[kinship]);
    return status;
}

static ty_status fit_and_leave_out(const struct fit_rows *rows, uint32_t n_threads,
                                   const struct ty_held_out *out)
{
    struct fit_params params = {0};
    struct fit_solution solution = {0};
    struct held_out h = {.rows = rows,
                         .params = &params,
                         .solution = &solution,
                         .n_threads = n_threads,
                         .r = calloc(rows->n, sizeof *h.r),
                         .scratch = calloc(rows->n, sizeof *h.scratch),
                         .fold = calloc(rows->n, sizeof *h.fold)};
    ty_status status = h.r && h.scratch && h.fold ? fit_params_of(rows, &params) : TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_run(rows, &params, n_threads, &solution);
    if (status == TY_OK)
        status = leave_out(&h, FOLDS_GROUPED, out->by_groups, out->ratios);
    if (status == TY_OK)
        status = leave_out(&h, FOLDS_SOURCES, out->by_sources, NULL);
    if (status == TY_OK)
        status = leave_out(&h, FOLDS_SERIES, out->by_series, NULL);
    if (status == TY_OK)
        status = predict_presets(&h, out->presets);
    if (status == TY_OK && out->own)
        status = fit_own_runs(rows, &params, &solution, n_threads, out->own);
    fit_solution_free(&solution);
    free(params.param);
    free(h.r);
    free(h.scratch);
    free(h.fold);
    return status;
}

ty_status ty_validate_held_out(const char *csv_path, uint32_t n_threads,
                               const struct ty_held_out *out, struct ty_error *error)
{
    struct fit_rows rows;
    ty_status status = fit_rows_read(csv_path, n_threads, &rows, error);
    if (status != TY_OK)
        return status;
    if (rows.n < 2)
        status = error_set(error, TY_ERR_INPUT, csv_path, "has too few runs for a fit");
    if (status == TY_OK) {
        status = fit_and_leave_out(&rows, n_threads, out);
        if (status != TY_OK)
            error_set(error, status, csv_path, "the fit failed: %s", ty_status_text(status));
    }
    fit_rows_free(&rows);
    return status;
}
