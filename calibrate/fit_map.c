/* SPDX-License-Identifier: MIT
 *
 * The linearised problem of fit.h by reweighted least squares: the Cauchy loss of a row is a
 * square with the weight 1 / (1 + (r/L)^2) at its last residual. Normal equations over the
 * constants off their bounds, by Cholesky:
 *
 *   (J' W J + lambda^2 S^-2) dz = -J' W r - lambda^2 S^-2 z
 *
 * A constant that would leave its bounds stays there and the others are solved again.
 * GSL's error handler is switched off meanwhile and put back: a library must not abort.
 */
#include "calibrate/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 200 };
static const double STANDS_STILL = 1e-9; /* largest change of a round, in the logarithm */

struct work {
    const struct fit_linear *linear;
    const struct fit_params *params;
    const double *weight;
    double *z;
    bool *fixed;
    gsl_matrix *normal; /* over all constants; a fixed one has a row of the unit matrix */
    gsl_vector *right, *solution;
};

static double low(const struct fit_param *param)
{
    return log(param->min / param->prior);
}

static double high(const struct fit_param *param)
{
    return log(param->max / param->prior);
}

static double prior_precision(const struct fit_param *param)
{
    return FIT_PRIOR_WEIGHT * FIT_PRIOR_WEIGHT / (param->sd_log * param->sd_log);
}

/* Residual of the linear model at z. */
static double residual(const struct work *work, uint32_t row)
{
    const struct fit_linear *linear = work->linear;
    const double *slope = &linear->dr[(size_t)row * linear->n_params];
    double r = linear->r[row];
    for (uint32_t j = 0; j < linear->n_params; j++)
        r += slope[j] * (work->z[j] - linear->z[j]);
    return r;
}

static void add_row(struct work *work, uint32_t row)
{
    const uint32_t n = work->linear->n_params;
    const double *slope = &work->linear->dr[(size_t)row * n];
    const double r = residual(work, row);
    const double w =
        work->weight[row] / (FIT_UNIT * FIT_UNIT * (1.0 + (r / FIT_LOSS) * (r / FIT_LOSS)));
    for (uint32_t j = 0; j < n; j++) {
        if (slope[j] == 0.0)
            continue;
        *gsl_vector_ptr(work->right, j) -= w * slope[j] * r;
        for (uint32_t k = 0; k < n; k++)
            *gsl_matrix_ptr(work->normal, j, k) += w * slope[j] * slope[k];
    }
}

static void fill(struct work *work)
{
    gsl_matrix_set_zero(work->normal);
    gsl_vector_set_zero(work->right);
    for (uint32_t row = 0; row < work->linear->n_rows; row++)
        if (work->weight[row] > 0.0)
            add_row(work, row);
    for (uint32_t j = 0; j < work->params->n; j++) {
        const double precision = prior_precision(&work->params->param[j]);
        *gsl_matrix_ptr(work->normal, j, j) += precision;
        *gsl_vector_ptr(work->right, j) -= precision * work->z[j];
    }
}

/* One solution with the constants that are fixed held. returns false when singular. */
static bool solve(struct work *work, gsl_matrix *copy)
{
    const uint32_t n = work->params->n;
    gsl_matrix_memcpy(copy, work->normal);
    gsl_vector_memcpy(work->solution, work->right);
    for (uint32_t j = 0; j < n; j++) {
        if (!work->fixed[j])
            continue;
        for (uint32_t k = 0; k < n; k++) {
            gsl_matrix_set(copy, j, k, j == k);
            gsl_matrix_set(copy, k, j, j == k);
        }
        gsl_vector_set(work->solution, j, 0.0);
    }
    return gsl_linalg_cholesky_decomp1(copy) == GSL_SUCCESS &&
           gsl_linalg_cholesky_svx(copy, work->solution) == GSL_SUCCESS;
}

/* Constants that the step takes over a bound are moved there and fixed. returns how many. */
static uint32_t fix_at_bounds(struct work *work)
{
    uint32_t n_fixed = 0;
    for (uint32_t j = 0; j < work->params->n; j++) {
        const struct fit_param *param = &work->params->param[j];
        const double to = work->z[j] + gsl_vector_get(work->solution, j);
        if (work->fixed[j] || (to >= low(param) && to <= high(param)))
            continue;
        work->z[j] = to < low(param) ? low(param) : high(param);
        work->fixed[j] = true;
        n_fixed++;
    }
    return n_fixed;
}

/* One reweighting. *moved: largest change. */
static bool improve(struct work *work, gsl_matrix *copy, double *moved)
{
    memset(work->fixed, 0, work->params->n * sizeof *work->fixed);
    *moved = 0.0;
    for (;;) {
        fill(work);
        if (!solve(work, copy))
            return false;
        if (fix_at_bounds(work) == 0)
            break;
    }
    for (uint32_t j = 0; j < work->params->n; j++) {
        const double step = work->fixed[j] ? 0.0 : gsl_vector_get(work->solution, j);
        work->z[j] += step;
        *moved = fmax(*moved, fabs(step));
    }
    return true;
}

/* share_j = 1 - (posterior variance / prior variance) */
static bool fill_shares(struct work *work, gsl_matrix *copy, double *share)
{
    fill(work);
    gsl_matrix_memcpy(copy, work->normal);
    if (gsl_linalg_cholesky_decomp1(copy) != GSL_SUCCESS ||
        gsl_linalg_cholesky_invert(copy) != GSL_SUCCESS)
        return false;
    for (uint32_t j = 0; j < work->params->n; j++)
        share[j] = 1.0 - gsl_matrix_get(copy, j, j) * prior_precision(&work->params->param[j]);
    return true;
}

static bool minimise(struct work *work, double *share)
{
    gsl_matrix *copy = gsl_matrix_alloc(work->params->n, work->params->n);
    bool ok = copy != NULL;
    double moved = HUGE_VAL;
    for (int round = 0; ok && moved > STANDS_STILL && round < MAX_ROUNDS; round++)
        ok = improve(work, copy, &moved);
    if (ok && share)
        ok = fill_shares(work, copy, share);
    gsl_matrix_free(copy);
    return ok;
}

ty_status fit_map(const struct fit_linear *linear, const struct fit_params *params,
                  const double *weight, double *z, double *share)
{
    const uint32_t n = params->n;
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    struct work work = {.linear = linear,
                        .params = params,
                        .weight = weight,
                        .z = z,
                        .fixed = calloc(n, sizeof(bool)),
                        .normal = gsl_matrix_alloc(n, n),
                        .right = gsl_vector_alloc(n),
                        .solution = gsl_vector_alloc(n)};
    ty_status status = TY_ERR_NOMEM;
    if (work.fixed && work.normal && work.right && work.solution)
        status = minimise(&work, share) ? TY_OK : TY_ERR_INTERNAL;
    gsl_vector_free(work.solution);
    gsl_vector_free(work.right);
    gsl_matrix_free(work.normal);
    free(work.fixed);
    gsl_set_error_handler(handler);
    return status;
}
