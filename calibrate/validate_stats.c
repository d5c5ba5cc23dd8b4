/* SPDX-License-Identifier: MIT
 *
 * How far off a validation is:
 *   error = predicted / measured - 1; APE = |error|; bias = median error,
 * by groups of rows, and how well the order inside each sweep of layouts is predicted.
 */
#include "calibrate/statistics.h"
#include "include/trainyard_tools.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups --------------------------------------------------------------------------------- */

const char *ty_run_value(const struct ty_run_row *row, enum ty_run_key key)
{
    switch (key) {
    case TY_RUN_SOURCE:
        return row->source;
    case TY_RUN_GPU:
        return row->gpu;
    case TY_RUN_STACK:
        return row->stack;
    case TY_RUN_KIND:
        return row->kind;
    case TY_RUN_FAMILY:
        return row->family;
    case TY_RUN_SCALE:
        return row->scale;
    }
    return "";
}

static bool first_of_value(const struct ty_validation *validation, enum ty_run_key key,
                           uint32_t row)
{
    const char *value = ty_run_value(&validation->rows[row], key);
    for (uint32_t i = 0; i < row; i++)
        if (strcmp(ty_run_value(&validation->rows[i], key), value) == 0)
            return false;
    return true;
}

const char *ty_validation_value(const struct ty_validation *validation, enum ty_run_key key,
                                uint32_t index)
{
    for (uint32_t i = 0; i < validation->n_rows; i++)
        if (first_of_value(validation, key, i) && index-- == 0)
            return ty_run_value(&validation->rows[i], key);
    return NULL;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* NAN where one of the two is missing. */
static double error_of(const struct ty_run_row *row, enum ty_run_error kind)
{
    double measured = row->measured_s, predicted = row->predicted_s;
    if (kind == TY_RUN_STEP_TIME_NO_SITE)
        predicted = row->no_site_s;
    if (kind == TY_RUN_MEMORY) {
        measured = row->measured_mem_bytes;
        predicted = row->predicted_mem_bytes;
    }
    return measured > 0.0 && predicted > 0.0 ? predicted / measured - 1.0 : (double)NAN;
}

static struct ty_error_stats stats_of(double *error, uint32_t n)
{
    struct ty_error_stats stats = {.n = n, .mean_ape = n ? 0.0 : (double)NAN};
    stat_sort(error, n);
    stats.bias = stat_quantile(error, n, 0.5);
    for (uint32_t i = 0; i < n; i++) {
        error[i] = fabs(error[i]);
        stats.mean_ape += error[i] / n;
    }
    stat_sort(error, n);
    stats.median_ape = stat_quantile(error, n, 0.5);
    stats.p90_ape = stat_quantile(error, n, 0.9);
    return stats;
}

static bool selects(const struct ty_run_filter *filter, const struct ty_run_row *row)
{
    return (!filter->value || strcmp(ty_run_value(row, filter->key), filter->value) == 0) &&
           !(filter->clean_only && row->noisy);
}

struct ty_error_stats ty_validation_stats(const struct ty_validation *validation,
                                          const struct ty_run_filter *filter)
{
    double *error = calloc(validation->n_rows ? validation->n_rows : 1, sizeof *error);
    uint32_t n = 0;
    for (uint32_t i = 0; error && i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (!selects(filter, row))
            continue;
        error[n] = error_of(row, filter->error);
        n += isnan(error[n]) ? 0 : 1;
    }
    const struct ty_error_stats stats = stats_of(error, n);
    free(error);
    return stats;
}

double ty_validation_coverage(const struct ty_validation *validation,
                              const struct ty_run_filter *filter, uint32_t percent, uint32_t *n)
{
    uint32_t with = 0, inside = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        const double *interval = percent == 90 ? row->interval_90_s : row->interval_80_s;
        if ((filter && !selects(filter, row)) || !(row->measured_s > 0.0) ||
            !(interval[1] > interval[0]))
            continue;
        with++;
        inside += row->measured_s >= interval[0] && row->measured_s <= interval[1];
    }
    if (n)
        *n = with;
    return with ? (double)inside / with : (double)NAN;
}

void ty_validation_verdicts(const struct ty_validation *validation, uint32_t out[TY_N_OUTCOMES][3])
{
    memset(out, 0, TY_N_OUTCOMES * sizeof *out);
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (!*row->refused)
            out[row->outcome][row->fit]++;
    }
}

/* ---- sweeps of layouts ---------------------------------------------------------------------- */

struct sweep {
    uint32_t n;
    bool noisy;
    double *measured_s, *predicted_s; /* [n_rows] */
};

/* The rows of the sweep that row `first` begins; n = 0 when an earlier row began it. */
static void collect(const struct ty_validation *validation, uint32_t first, struct sweep *out)
{
    const char *name = validation->rows[first].sweep;
    out->n = 0;
    out->noisy = false;
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (isnan(error_of(row, TY_RUN_STEP_TIME)) || strcmp(row->sweep, name) != 0)
            continue;
        if (out->n == 0 && i != first)
            return;
        out->measured_s[out->n] = row->measured_s;
        out->predicted_s[out->n++] = row->predicted_s;
        out->noisy |= row->noisy_source;
    }
}

#define SWEEP_MIN_RUNS   3
#define SWEEP_MIN_SPREAD 0.06

static bool worth_ranking(const struct sweep *sweep)
{
    double least = (double)INFINITY, most = 0.0;
    for (uint32_t i = 0; i < sweep->n; i++) {
        least = fmin(least, sweep->measured_s[i]);
        most = fmax(most, sweep->measured_s[i]);
    }
    return sweep->n >= SWEEP_MIN_RUNS && most / least - 1.0 > SWEEP_MIN_SPREAD;
}

static void rank_sweeps(const struct ty_validation *validation, struct sweep *sweep,
                        struct ty_rankings *out)
{
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        collect(validation, i, sweep);
        if (!worth_ranking(sweep))
            continue;
        const double *measured = sweep->measured_s, *predicted = sweep->predicted_s;
        out->sweeps[out->n++] = (struct ty_ranking){
            .sweep = validation->rows[i].sweep,
            .n = sweep->n,
            .spearman = stat_spearman(measured, predicted, sweep->n),
            .kendall = stat_kendall(measured, predicted, sweep->n),
            .regret = stat_regret(measured, predicted, sweep->n),
            .noisy = sweep->noisy,
        };
    }
}

struct mean {
    double sum, weight;
};

static void mean_add(struct mean *mean, double value, double weight)
{
    if (isnan(value))
        return;
    mean->sum += value * weight;
    mean->weight += weight;
}

static void average(struct ty_rankings *rankings, double *regrets)
{
    struct mean spearman = {0}, kendall = {0}, regret = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < rankings->n; i++) {
        const struct ty_ranking *sweep = &rankings->sweeps[i];
        if (sweep->noisy)
            continue;
        mean_add(&spearman, sweep->spearman, sweep->n);
        mean_add(&kendall, sweep->kendall, sweep->n);
        mean_add(&regret, sweep->regret, sweep->n);
        regrets[n++] = sweep->regret;
    }
    rankings->n_clean = n;
    rankings->spearman = spearman.sum / spearman.weight; /* NAN without sweeps */
    rankings->kendall = kendall.sum / kendall.weight;
    rankings->mean_regret = regret.sum / regret.weight;
    stat_sort(regrets, n);
    rankings->median_regret = stat_quantile(regrets, n, 0.5);
}

ty_status ty_validation_rankings(const struct ty_validation *validation, struct ty_rankings *out,
                                 struct ty_error *error)
{
    const size_t n = validation->n_rows ? validation->n_rows : 1;
    struct ty_rankings rankings = {.sweeps = calloc(n, sizeof *rankings.sweeps)};
    struct sweep sweep = {.measured_s = calloc(n, sizeof(double)),
                          .predicted_s = calloc(n, sizeof(double))};
    ty_status status = TY_OK;
    if (rankings.sweeps && sweep.measured_s && sweep.predicted_s) {
        rank_sweeps(validation, &sweep, &rankings);
        average(&rankings, sweep.measured_s);
        *out = rankings;
    } else {
        free(rankings.sweeps);
        status = error_set(error, TY_ERR_NOMEM, "rankings", "out of memory");
    }
    free(sweep.measured_s);
    free(sweep.predicted_s);
    return status;
}

void ty_rankings_free(struct ty_rankings *rankings)
{
    free(rankings->sweeps);
    *rankings = (struct ty_rankings){0};
}
