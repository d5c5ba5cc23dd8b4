/* SPDX-License-Identifier: MIT
 *
 * A site from its own runs: the fit of fit.h with the constants of fit_own_params, whose prior is
 * the shipped fit. The weight of a run is (FIT_UNIT / s)^2 with the deviation s of the runs
 * themselves, which is estimated with a prior of NU runs of FIT_UNIT. One run says little of s, so
 * the constants stay near the prior; many runs that agree pull them all the way. The prior of a
 * constant is a Cauchy loss as well, of TAIL deviations: a site that is far from all others is
 * rare, not impossible.
 */
#include "calibrate/fit.h"
#include "sim/error.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOLVE_ROUNDS = 100, SLOPE_ROUNDS = 3, MAX_ROUNDS = 10 };
static const double NU = 2.0, TAIL = 2.0;
static const double STANDS_STILL = 1e-4; /* largest change of a constant, in the logarithm */
static const double LONGEST_STEP = 0.7;

static const char OWN_SITE[] = "own";

/* ---- the linear problem ------------------------------------------------------------------- */

ty_status fit_site_create(uint32_t n, struct fit_site *out)
{
    *out = (struct fit_site){.n = n,
                             .z = calloc(n, sizeof *out->z),
                             .covariance = calloc((size_t)n * n, sizeof *out->covariance),
                             .noise = FIT_UNIT};
    if (out->z && out->covariance)
        return TY_OK;
    fit_site_free(out);
    return TY_ERR_NOMEM;
}

void fit_site_free(struct fit_site *site)
{
    free(site->z);
    free(site->covariance);
    *site = (struct fit_site){0};
}

double fit_product(const double *covariance, uint32_t n, const double *a, const double *b)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n && a[i] != 0.0; j++)
            sum += a[i] * covariance[(size_t)i * n + j] * b[j];
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
static bool fill_covariance(const struct fit_linear *linear, const struct fit_params *params,
                            struct fit_site *site)
{
    const uint32_t n = site->n;
    gsl_matrix_view view = gsl_matrix_view_array(site->covariance, n, n);
    gsl_matrix_set_zero(&view.matrix);
    for (uint32_t row = 0; row < linear->n_rows; row++) {
        const double *g = &linear->dr[(size_t)row * n];
        const double r = residual(linear, row, site->z) / FIT_LOSS;
        const double w = 1.0 / (site->noise * site->noise * (1.0 + r * r));
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n && g[i] != 0.0; j++)
                *gsl_matrix_ptr(&view.matrix, i, j) += w * g[i] * g[j];
    }
    for (uint32_t i = 0; i < n; i++)
        *gsl_matrix_ptr(&view.matrix, i, i) +=
            pow(FIT_PRIOR_WEIGHT / prior_sd_log(&params->param[i], site->z[i]), 2.0);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    const bool ok = gsl_linalg_cholesky_decomp1(&view.matrix) == GSL_SUCCESS &&
                    gsl_linalg_cholesky_invert(&view.matrix) == GSL_SUCCESS;
    gsl_set_error_handler(handler);
    return ok;
}

struct solving {
    const struct fit_linear *linear;
    const struct fit_params *params;
    struct fit_params now; /* with the deviations of the last solution */
    double *weight;        /* [n rows] */
    double *before;        /* [n constants] */
};

/* One round: weights and priors at the last solution, then the minimum. *moved: the change. */
static ty_status improve(struct solving *s, struct fit_site *site, double *moved)
{
    memcpy(s->before, site->z, site->n * sizeof *site->z);
    for (uint32_t j = 0; j < site->n; j++)
        s->now.param[j].sd_log = prior_sd_log(&s->params->param[j], site->z[j]);
    for (uint32_t row = 0; row < s->linear->n_rows; row++)
        s->weight[row] = pow(FIT_UNIT / site->noise, 2.0);
    const ty_status status = fit_map(s->linear, &s->now, s->weight, site->z, NULL);
    *moved = fabs(noise_of(s->linear, site->z) / site->noise - 1.0);
    site->noise = noise_of(s->linear, site->z);
    for (uint32_t j = 0; j < site->n; j++)
        *moved = fmax(*moved, fabs(site->z[j] - s->before[j]));
    return status;
}

ty_status fit_site_solve(const struct fit_linear *linear, const struct fit_params *params,
                         struct fit_site *site)
{
    const uint32_t n = params->n;
    if (n != site->n || n != linear->n_params)
        return TY_ERR_INTERNAL;
    struct solving s = {.linear = linear,
                        .params = params,
                        .now = {n, malloc(n * sizeof *s.now.param)},
                        .weight = calloc(linear->n_rows + 1, sizeof *s.weight),
                        .before = calloc(n, sizeof *s.before)};
    ty_status status = s.now.param && s.weight && s.before ? TY_OK : TY_ERR_NOMEM;
    double moved = HUGE_VAL;
    site->noise = FIT_UNIT;
    if (status == TY_OK)
        memcpy(s.now.param, params->param, n * sizeof *s.now.param);
    for (int round = 0; status == TY_OK && moved > 1e-2 * STANDS_STILL && round < SOLVE_ROUNDS;
         round++)
        status = improve(&s, site, &moved);
    if (status == TY_OK && !fill_covariance(linear, params, site))
        status = TY_ERR_INTERNAL;
    free(s.now.param);
    free(s.weight);
    free(s.before);
    return status;
}

/* ---- runs as rows ------------------------------------------------------------------------- */

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
        text_format(row->row.stack, sizeof row->row.stack, "%s", row->profile.stack);
        text_format(row->row.release, sizeof row->row.release, "%s", row->profile.release);
        out->weight[out->n++] = 1.0;
    }
    return TY_OK;
}

/* ---- the fit ------------------------------------------------------------------------------ */

struct own_fit {
    const struct fit_rows *rows;
    uint32_t n_threads;
    struct fit_params params;
    struct fit_linear linear;
    struct fit_site site;
    double *before_r; /* [n rows] residuals of the shipped constants and a site of ratios 1 */
};

/* Rounds of linearising and solving; the last ones keep their slopes (fit.c). */
static ty_status solve(struct own_fit *fit)
{
    struct fit_linear *linear = &fit->linear;
    struct fit_site *site = &fit->site;
    ty_status status = TY_OK;
    double moved = HUGE_VAL;
    for (int round = 0; status == TY_OK && moved > STANDS_STILL && round < MAX_ROUNDS; round++) {
        memcpy(linear->z, site->z, site->n * sizeof *site->z);
        status =
            fit_linearise(fit->rows, &fit->params, fit->n_threads, round >= SLOPE_ROUNDS, linear);
        if (round == 0)
            memcpy(fit->before_r, linear->r, fit->rows->n * sizeof *fit->before_r);
        if (status == TY_OK)
            status = fit_site_solve(linear, &fit->params, site);
        moved = 0.0;
        for (uint32_t j = 0; j < site->n; j++) {
            const double step = site->z[j] - linear->z[j];
            site->z[j] = linear->z[j] + fmax(-LONGEST_STEP, fmin(LONGEST_STEP, step));
            moved = fmax(moved, fabs(step));
        }
    }
    memcpy(linear->z, site->z, site->n * sizeof *site->z);
    return status == TY_OK ? fit_linearise(fit->rows, &fit->params, fit->n_threads, true, linear)
                           : status;
}

static struct ty_site_constant constant_of(const struct own_fit *fit, uint32_t j)
{
    const struct fit_param *param = &fit->params.param[j];
    const uint32_t n = fit->site.n;
    const double z = fit->site.z[j];
    char file[64];
    struct ty_site_constant out = {.field = param->field,
                                   .before = param->prior,
                                   .after = fit_value(param, z),
                                   .sd_before = param->sd_log / FIT_PRIOR_WEIGHT,
                                   .sd_after = sqrt(fit->site.covariance[(size_t)j * n + j])};
    fit_file(param, file, sizeof file);
    if (param->level != LEVEL_SITE)
        text_format(out.layer, sizeof out.layer, "%s/%s", fit_folder(param->level), file);
    out.informed = fmax(0.0, 1.0 - pow(out.sd_after / out.sd_before, 2.0));
    for (uint32_t row = 0; row < fit->rows->n; row++) {
        const double g = fit->linear.dr[(size_t)row * n + j];
        out.effect += g * z / fit->rows->n;
        out.spread += g * g / fit->rows->n;
    }
    out.spread = sqrt(out.spread) * out.sd_before;
    return out;
}

/* open^2 = (1 + 1/n) mean_rows g' C g: the runs pull at their own plans, a new one is farther off.
 */
static ty_status report(const struct own_fit *fit, struct ty_site_fit *out)
{
    const uint32_t n = fit->site.n, n_rows = fit->rows->n;
    double sum = 0.0;
    out->constant = calloc(n, sizeof *out->constant);
    out->covariance = calloc((size_t)n * n, sizeof *out->covariance);
    if (!out->constant || !out->covariance)
        return TY_ERR_NOMEM;
    memcpy(out->covariance, fit->site.covariance, (size_t)n * n * sizeof *out->covariance);
    for (uint32_t j = 0; j < n; j++)
        out->constant[j] = constant_of(fit, j);
    for (uint32_t row = 0; row < n_rows; row++) {
        const double *g = &fit->linear.dr[(size_t)row * n];
        sum += fit_product(fit->site.covariance, n, g, g);
    }
    out->n = n_rows;
    out->n_constants = n;
    out->noise = fit->site.noise;
    out->open = sqrt((1.0 + 1.0 / n_rows) * sum / n_rows);
    return TY_OK;
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
    struct own_fit fit = {
        .rows = rows, .n_threads = n_threads, .before_r = calloc(rows->n, sizeof(double))};
    ty_status status = fit.before_r ? fit_own_params(rows, &fit.params) : TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_linear_create(rows->n, fit.params.n, &fit.linear);
    if (status == TY_OK)
        status = fit_site_create(fit.params.n, &fit.site);
    if (status == TY_OK)
        status = solve(&fit);
    if (status == TY_OK)
        status = report(&fit, out);
    if (status == TY_OK) {
        put_times(runs, fit.before_r, out->before_s);
        put_times(runs, fit.linear.r, out->after_s);
    }
    fit_site_free(&fit.site);
    fit_linear_free(&fit.linear);
    free(fit.params.param);
    free(fit.before_r);
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
    free(fit->constant);
    free(fit->covariance);
    *fit = (struct ty_site_fit){0};
}
