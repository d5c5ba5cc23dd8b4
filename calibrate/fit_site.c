/* SPDX-License-Identifier: MIT
 *
 * The three ratios of a site from its own runs: the fit of fit.h with these constants only. The
 * weight of a run is (FIT_UNIT / s)^2 with the deviation s of the runs themselves, which is
 * estimated with a prior of NU runs of FIT_UNIT. One run says little of s, so its ratios stay near
 * 1; many runs that agree pull them all the way. The prior of a ratio is a Cauchy loss as well, of
 * TAIL deviations: a site that is far from all others is rare, not impossible.
 */
#include "calibrate/fit.h"
#include "sim/error.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOLVE_ROUNDS = 100, MAX_ROUNDS = 10 };
static const double NU = 2.0, TAIL = 2.0;
static const double STANDS_STILL = 1e-4; /* largest change of a ratio, in the logarithm */
static const double LONGEST_STEP = 0.7;

static const char OWN_SITE[] = "own";

/* ---- the linear problem ------------------------------------------------------------------- */

double fit_site_variance(const double *covariance, const double *g)
{
    double sum = 0.0;
    for (int i = 0; i < TY_N_SITE; i++)
        for (int j = 0; j < TY_N_SITE; j++)
            sum += g[i] * covariance[i * TY_N_SITE + j] * g[j];
    return sum;
}

/* Residual of the linear model at z. */
static double residual(const struct fit_linear *linear, uint32_t row, const double *z)
{
    double r = linear->r[row];
    for (uint32_t j = 0; j < linear->n_params; j++)
        r += linear->dr[(size_t)row * linear->n_params + j] * (z[j] - linear->z[j]);
    return r;
}

/* s^2 = (nu s0^2 + sum_rows L^2 ln(1 + (r/L)^2)) / (nu + n) */
static double noise_of(const struct fit_linear *linear, const double *z)
{
    double sum = NU * FIT_UNIT * FIT_UNIT;
    for (uint32_t row = 0; row < linear->n_rows; row++) {
        const double r = residual(linear, row, z) / FIT_LOSS;
        sum += FIT_LOSS * FIT_LOSS * log1p(r * r);
    }
    return sqrt(sum / (NU + linear->n_rows));
}

/* Deviation whose square is the Cauchy loss of the prior at z, for reweighting. */
static double prior_sd_log(const struct fit_param *param, double z)
{
    const double far = z / (TAIL * param->sd_log / FIT_PRIOR_WEIGHT);
    return param->sd_log * sqrt(1.0 + far * far);
}

/* C = (sum_rows w g g' + prior)^-1 */
static bool covariance_of(const struct fit_linear *linear, const struct fit_params *params,
                          struct fit_site *site)
{
    double *c = site->covariance;
    memset(c, 0, sizeof site->covariance);
    for (uint32_t row = 0; row < linear->n_rows; row++) {
        const double *g = &linear->dr[(size_t)row * TY_N_SITE];
        const double r = residual(linear, row, site->z) / FIT_LOSS;
        const double w = 1.0 / (site->noise * site->noise * (1.0 + r * r));
        for (int i = 0; i < TY_N_SITE; i++)
            for (int j = 0; j < TY_N_SITE; j++)
                c[i * TY_N_SITE + j] += w * g[i] * g[j];
    }
    for (int i = 0; i < TY_N_SITE; i++)
        c[i * TY_N_SITE + i] += pow(FIT_PRIOR_WEIGHT / params->param[i].sd_log, 2.0);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_matrix_view view = gsl_matrix_view_array(c, TY_N_SITE, TY_N_SITE);
    const bool ok = gsl_linalg_cholesky_decomp1(&view.matrix) == GSL_SUCCESS &&
                    gsl_linalg_cholesky_invert(&view.matrix) == GSL_SUCCESS;
    gsl_set_error_handler(handler);
    return ok;
}

/* One round: weights and priors at the last solution, then the minimum. returns the change. */
static ty_status improve(const struct fit_linear *linear, const struct fit_params *params,
                         double *weight, struct fit_site *site, double *moved)
{
    struct fit_param param[TY_N_SITE];
    const struct fit_params now = {TY_N_SITE, param};
    double before[TY_N_SITE];
    memcpy(before, site->z, sizeof before);
    for (int j = 0; j < TY_N_SITE; j++) {
        param[j] = params->param[j];
        param[j].sd_log = prior_sd_log(&params->param[j], site->z[j]);
    }
    for (uint32_t row = 0; row < linear->n_rows; row++)
        weight[row] = pow(FIT_UNIT / site->noise, 2.0);
    const ty_status status = fit_map(linear, &now, weight, site->z, NULL);
    *moved = fabs(noise_of(linear, site->z) / site->noise - 1.0);
    site->noise = noise_of(linear, site->z);
    for (int j = 0; j < TY_N_SITE; j++)
        *moved = fmax(*moved, fabs(site->z[j] - before[j]));
    return status == TY_OK && !covariance_of(linear, &now, site) ? TY_ERR_INTERNAL : status;
}

ty_status fit_site_solve(const struct fit_linear *linear, const struct fit_params *params,
                         struct fit_site *site)
{
    if (params->n != TY_N_SITE || linear->n_params != TY_N_SITE)
        return TY_ERR_INTERNAL;
    double *weight = calloc(linear->n_rows ? linear->n_rows : 1, sizeof *weight);
    ty_status status = weight ? TY_OK : TY_ERR_NOMEM;
    double moved = HUGE_VAL;
    site->noise = FIT_UNIT;
    for (int round = 0; status == TY_OK && moved > 1e-2 * STANDS_STILL && round < SOLVE_ROUNDS;
         round++)
        status = improve(linear, params, weight, site, &moved);
    free(weight);
    return status;
}

/* ---- runs as rows ------------------------------------------------------------------------- */

ty_status fit_site_params(const struct ty_run *run, struct fit_params *out)
{
    double weight = 1.0;
    struct ty_run copy = *run;
    const struct fit_rows rows = {1, &copy, &weight};
    ty_status status = fit_params_of(&rows, out);
    uint32_t n = 0;
    for (uint32_t j = 0; status == TY_OK && j < out->n; j++)
        if (out->param[j].level == LEVEL_SITE)
            out->param[n++] = out->param[j];
    out->n = n;
    return status;
}

static bool can_predict(const struct ty_run *run)
{
    struct ty_error ignored;
    double time_s = (double)NAN;
    return !*run->row.refused && run->row.measured_s > 0.0 &&
           fit_predict_s(run, &run->profile, &time_s, &ignored) == TY_OK && time_s > 0.0;
}

ty_status fit_site_rows(const struct ty_runs *runs, const struct ty_site_fit *fit,
                        struct fit_rows *out)
{
    const size_t n = runs->n ? runs->n : 1;
    *out = (struct fit_rows){.run = malloc(n * sizeof *out->run),
                             .weight = malloc(n * sizeof *out->weight)};
    if (!out->run || !out->weight) {
        fit_rows_free(out);
        return TY_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < runs->n; i++) {
        if (fit ? isnan(fit->before_s[i]) : !can_predict(&runs->run[i]))
            continue;
        struct ty_run *row = &out->run[out->n];
        *row = runs->run[i];
        text_format(row->row.site, sizeof row->row.site, "%s", OWN_SITE);
        out->weight[out->n++] = 1.0;
    }
    return TY_OK;
}

/* ---- the fit ------------------------------------------------------------------------------ */

/* Rounds of linearising and solving. before_r: [n rows] residuals with all ratios 1. */
static ty_status solve(const struct fit_rows *rows, const struct fit_params *params,
                       uint32_t n_threads, struct fit_linear *linear, struct fit_site *site,
                       double *before_r)
{
    ty_status status = TY_OK;
    double moved = HUGE_VAL;
    *site = (struct fit_site){.noise = FIT_UNIT};
    for (int round = 0; status == TY_OK && moved > STANDS_STILL && round < MAX_ROUNDS; round++) {
        memcpy(linear->z, site->z, sizeof site->z);
        status = fit_linearise(rows, params, n_threads, false, linear);
        if (round == 0)
            memcpy(before_r, linear->r, rows->n * sizeof *before_r);
        if (status == TY_OK)
            status = fit_site_solve(linear, params, site);
        moved = 0.0;
        for (int j = 0; j < TY_N_SITE; j++) {
            const double step = site->z[j] - linear->z[j];
            site->z[j] = linear->z[j] + fmax(-LONGEST_STEP, fmin(LONGEST_STEP, step));
            moved = fmax(moved, fabs(step));
        }
    }
    memcpy(linear->z, site->z, sizeof site->z);
    return status == TY_OK ? fit_linearise(rows, params, n_threads, true, linear) : status;
}

static void report(const struct fit_rows *rows, const struct fit_params *params,
                   const struct fit_linear *linear, const struct fit_site *site,
                   struct ty_site_fit *out)
{
    double prior[TY_N_SITE * TY_N_SITE] = {0.0}, now = 0.0, before = 0.0;
    memcpy(out->covariance, site->covariance, sizeof out->covariance);
    for (int j = 0; j < TY_N_SITE; j++) {
        const int diagonal = j * TY_N_SITE + j;
        prior[diagonal] = pow(params->param[j].sd_log / FIT_PRIOR_WEIGHT, 2.0);
        out->ratio[j] = fit_value(&params->param[j], site->z[j]);
        out->informed[j] = fmax(0.0, 1.0 - site->covariance[diagonal] / prior[diagonal]);
    }
    for (uint32_t row = 0; row < rows->n; row++) {
        const double *g = &linear->dr[(size_t)row * TY_N_SITE];
        now += fit_site_variance(site->covariance, g);
        before += fit_site_variance(prior, g);
    }
    out->n = rows->n;
    out->noise = site->noise;
    out->left = before > 0.0 ? now / before : 1.0;
}

/* Residuals of the rows as times of the runs. */
static void put_times(const struct ty_runs *runs, const double *r, double *time_s)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < runs->n; i++)
        if (!isnan(time_s[i]))
            time_s[i] = runs->run[i].row.measured_s * exp(r[row++]);
}

static ty_status fit_rows_of(const struct ty_runs *runs, const struct fit_rows *rows,
                             uint32_t n_threads, struct ty_site_fit *out)
{
    struct fit_params params = {0};
    struct fit_linear linear = {0};
    struct fit_site site;
    double *before_r = calloc(rows->n, sizeof *before_r);
    ty_status status = before_r ? fit_site_params(&rows->run[0], &params) : TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_linear_create(rows->n, params.n, &linear);
    if (status == TY_OK)
        status = solve(rows, &params, n_threads, &linear, &site, before_r);
    if (status == TY_OK) {
        report(rows, &params, &linear, &site, out);
        put_times(runs, before_r, out->before_s);
        put_times(runs, linear.r, out->after_s);
    }
    fit_linear_free(&linear);
    free(params.param);
    free(before_r);
    return status;
}

/* NAN for the runs that are not among the rows, which keep their order. */
static void mark_used(const struct ty_runs *runs, const struct fit_rows *rows, double *time_s)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < runs->n; i++) {
        const bool used = row < rows->n && strcmp(rows->run[row].row.id, runs->run[i].row.id) == 0;
        time_s[i] = used ? 0.0 : (double)NAN;
        row += used;
    }
}

ty_status ty_site_fit(const struct ty_runs *runs, uint32_t n_threads, struct ty_site_fit *out,
                      struct ty_error *error)
{
    struct fit_rows rows;
    const size_t n = runs->n ? runs->n : 1;
    *out = (struct ty_site_fit){.before_s = calloc(n, sizeof(double)),
                                .after_s = calloc(n, sizeof(double))};
    ty_status status =
        out->before_s && out->after_s ? fit_site_rows(runs, NULL, &rows) : TY_ERR_NOMEM;
    if (status == TY_OK) {
        mark_used(runs, &rows, out->before_s);
        mark_used(runs, &rows, out->after_s);
        status = rows.n ? fit_rows_of(runs, &rows, n_threads, out) : TY_ERR_INPUT;
        fit_rows_free(&rows);
    }
    if (status == TY_OK)
        return TY_OK;
    ty_site_fit_free(out);
    return error_set(error, status, "runs", "%s",
                     status == TY_ERR_INPUT ? "none has a time and can be predicted"
                                            : ty_status_text(status));
}

void ty_site_fit_free(struct ty_site_fit *fit)
{
    free(fit->before_s);
    free(fit->after_s);
    *fit = (struct ty_site_fit){0};
}

/* ---- its file ----------------------------------------------------------------------------- */

/* The variance of an unknown site shrinks to what the runs leave of it; the rest, what plans of
 * one site differ by, stays:  h^2 = w^2 + (h_new^2 - w^2) left,  w = half of a ratio / sqrt 2. */
static double half_width(double unknown, double ratio, double left)
{
    const double within = isnan(ratio) ? unknown : fmin(ratio * sqrt(0.5), unknown);
    return sqrt(within * within + (unknown * unknown - within * within) * left);
}

void ty_site_profile(const struct ty_site_fit *fit, const char *name, const struct ty_profile *base,
                     struct ty_profile *out)
{
    ty_init(TY_KIND_PROFILE, out);
    text_format(out->site, sizeof out->site, "%s", name);
    text_format(out->source, sizeof out->source, "trainyard calibrate runs: %u run%s of the site",
                fit->n, fit->n == 1 ? "" : "s");
    out->site_compute_ratio = fit->ratio[TY_SITE_COMPUTE];
    out->site_comm_ratio = fit->ratio[TY_SITE_COMM];
    out->site_host_ratio = fit->ratio[TY_SITE_HOST];
    out->dense_half_80 = half_width(base->dense_half_80, base->dense_plans_80, fit->left);
    out->dense_half_90 = half_width(base->dense_half_90, base->dense_plans_90, fit->left);
    out->moe_half_80 = half_width(base->moe_half_80, base->moe_plans_80, fit->left);
    out->moe_half_90 = half_width(base->moe_half_90, base->moe_plans_90, fit->left);
    out->tuning_half_80 = half_width(base->tuning_half_80, base->tuning_plans_80, fit->left);
    out->tuning_half_90 = half_width(base->tuning_half_90, base->tuning_plans_90, fit->left);
}
