/* SPDX-License-Identifier: MIT
 *
 * The fit: the linear problem against its closed form, bounds, GSL's handler; and known constants
 * found again from runs made of them with 2 % of noise. */
#include "calibrate/fit.h"
#include "sim/random.h"
#include "tests/tap.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scale and unit of the loss and weight of the priors, as ACCURACY-2 2.11 gives them. */
static const double LOSS = 0.1, UNIT = 0.12, PRIOR_WEIGHT = 0.5;

static struct fit_param one_param(double sd_log, double min, double max)
{
    return (struct fit_param){.prior = 1.0, .sd_log = sd_log, .min = min, .max = max};
}

/* n equal rows r = 0.01 + z: the minimum solves n w(z) (0.01 + z) + (lambda/sd)^2 z = 0 with the
 * weight w of the Cauchy loss; found here by bisection. */
static double expected_minimum(double n, double sd)
{
    double low = -0.01, high = 0.0;
    for (int i = 0; i < 200; i++) {
        const double z = 0.5 * (low + high), r = 0.01 + z;
        const double w = 1.0 / (UNIT * UNIT * (1.0 + r * r / (LOSS * LOSS)));
        const double slope = n * w * r + PRIOR_WEIGHT * PRIOR_WEIGHT / (sd * sd) * z;
        *(slope < 0.0 ? &low : &high) = z;
    }
    return 0.5 * (low + high);
}

static void test_closed_form(void)
{
    struct fit_param param[2] = {one_param(0.1, 0.5, 2.0), one_param(0.2, 0.5, 2.0)};
    const struct fit_params params = {2, param};
    struct fit_linear linear;
    double z[2] = {0.0, 0.0}, share[2];
    const double weight[4] = {1.0, 1.0, 1.0, 0.0};
    ok(fit_linear_create(4, 2, &linear) == TY_OK, "room for four rows");
    for (uint32_t row = 0; row < 3; row++) {
        linear.r[row] = 0.01;
        linear.dr[2 * row] = 1.0;
    }
    linear.r[3] = 100.0; /* has no weight */
    linear.dr[7] = 1.0;
    gsl_error_handler_t *before = gsl_set_error_handler(NULL);
    gsl_set_error_handler(before);
    ok(fit_map(&linear, &params, weight, z, share) == TY_OK, "solved");
    gsl_error_handler_t *after = gsl_set_error_handler(NULL);
    gsl_set_error_handler(after);
    ok(after == before, "the error handler is what it was");
    const double want = expected_minimum(3.0, 0.1);
    near(z[0], want, 1e-6, "minimum of loss and prior");
    const double r = 0.01 + want;
    const double data = 3.0 / (UNIT * UNIT * (1.0 + r * r / (LOSS * LOSS)));
    const double prior = PRIOR_WEIGHT * PRIOR_WEIGHT / 0.01;
    near(share[0], data / (data + prior), 1e-6, "share of the rows in it");
    near(z[1], 0.0, 0.0, "a constant no row informs stays at its prior");
    param[0].max = 0.997; /* prior 1: outside */
    param[0].min = 0.5;
    linear.r[0] = linear.r[1] = linear.r[2] = -0.05;
    z[0] = 0.0;
    ok(fit_map(&linear, &params, weight, z, NULL) == TY_OK, "solved with a bound");
    near(fit_value(&param[0], z[0]), 0.997, 1e-12, "and stops at it");
    fit_linear_free(&linear);
}

/* Every `step`-th row: enough to see the method work, few enough to be quick. */
static void thin_out(struct fit_rows *rows, uint32_t step)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i += step) {
        rows->run[n] = rows->run[i];
        rows->weight[n++] = 1.0;
    }
    rows->n = n;
}

/* Measured times become those of the constants z, with noise. */
static void make_measured(struct fit_rows *rows, struct fit_linear *linear, double noise)
{
    struct random_stream random;
    random_init(&random, 1, 0);
    for (uint32_t i = 0; i < rows->n; i++)
        rows->run[i].row.measured_s *= exp(linear->r[i] + noise * random_normal(&random));
}

/* A cost that is hidden at one point may show at another: slopes are those of their point, whatever
 * they were before. */
static void test_slopes(const struct fit_rows *rows, const struct fit_params *params)
{
    struct fit_linear moved, fresh;
    bool woke = false;
    ok(fit_linear_create(rows->n, params->n, &moved) == TY_OK &&
           fit_linear_create(rows->n, params->n, &fresh) == TY_OK,
       "room");
    for (uint32_t j = 0; j < params->n; j++) /* a host too fast to be seen */
        moved.z[j] = strcmp(params->param[j].field->path, "software.host_layer") == 0 ? -3.0 : 0.0;
    ok(fit_linearise(rows, params, 0, false, &moved) == TY_OK, "slopes");
    for (uint32_t j = 0; j < params->n; j++) {
        const bool host = strcmp(params->param[j].field->path, "software.host_layer") == 0;
        moved.z[j] = fresh.z[j] = host ? 2.0 : 0.0;
    }
    double *before = malloc((size_t)rows->n * params->n * sizeof *before);
    memcpy(before, moved.dr, (size_t)rows->n * params->n * sizeof *before);
    ok(fit_linearise(rows, params, 0, false, &moved) == TY_OK &&
           fit_linearise(rows, params, 0, false, &fresh) == TY_OK,
       "slopes elsewhere");
    for (size_t i = 0; i < (size_t)rows->n * params->n; i++)
        woke |= before[i] == 0.0 && fresh.dr[i] != 0.0;
    ok(woke, "some costs show that did not");
    ok(memcmp(moved.dr, fresh.dr, (size_t)rows->n * params->n * sizeof *before) == 0,
       "slopes of a second point are its own");
    free(before);
    fit_linear_free(&moved);
    fit_linear_free(&fresh);
}

static void test_recovery(void)
{
    struct fit_rows rows;
    struct fit_params params;
    struct fit_solution solution;
    struct ty_error error;
    if (fit_rows_read("data/runs/published.csv", 0, &rows, &error) != TY_OK) {
        skip("recovery of constants", "no data/runs/published.csv here");
        return;
    }
    thin_out(&rows, 16);
    ok(fit_params_of(&rows, &params) == TY_OK, "constants of the rows");
    test_slopes(&rows, &params);
    struct fit_linear truth;
    struct random_stream random;
    random_init(&random, 2, 0);
    ok(fit_linear_create(rows.n, params.n, &truth) == TY_OK, "room");
    for (uint32_t j = 0; j < params.n; j++)
        truth.z[j] = 0.5 * params.param[j].sd_log * random_normal(&random);
    ok(fit_linearise(&rows, &params, 0, true, &truth) == TY_OK, "runs of known constants");
    make_measured(&rows, &truth, 0.02);
    ok(fit_run(&rows, &params, 0, &solution) == TY_OK, "fitted");
    struct fit_linear found;
    ok(fit_linear_create(rows.n, params.n, &found) == TY_OK, "room");
    memcpy(found.z, solution.z, params.n * sizeof *found.z);
    ok(fit_linearise(&rows, &params, 1, true, &found) == TY_OK, "runs of the found constants");
    double sum = 0.0, against = 0.0;
    for (uint32_t i = 0; i < rows.n; i++) {
        sum += found.r[i] * found.r[i] / rows.n;
        against += truth.r[i] * truth.r[i] / rows.n;
    }
    ok(sqrt(sum) < 0.03, "%u rows with 2 %% of noise are fitted to %.4f (constants off: %.4f)",
       rows.n, sqrt(sum), sqrt(against));
    uint32_t n_told = 0, n_near = 0;
    for (uint32_t j = 0; j < params.n; j++) {
        if (solution.share[j] < 0.6)
            continue;
        /* posterior deviation under the unit of the loss, 6 times the true noise */
        const double deviation =
            sqrt(1.0 - solution.share[j]) * params.param[j].sd_log / PRIOR_WEIGHT;
        n_told++;
        n_near += fabs(solution.z[j] - truth.z[j]) < deviation;
    }
    ok(n_told >= 5 && 10 * n_near >= 8 * n_told, "%u of %u well informed constants found again",
       n_near, n_told);
    double *r = malloc(2u * rows.n * sizeof *r);
    ok(fit_cross_validate(&rows, &params, &solution, FOLDS_GROUPED, 1, r) == TY_OK &&
           fit_cross_validate(&rows, &params, &solution, FOLDS_GROUPED, 2, r + rows.n) == TY_OK &&
           memcmp(r, r + rows.n, rows.n * sizeof *r) == 0,
       "the same bits with one thread and with two");
    free(r);
    fit_linear_free(&found);
    fit_linear_free(&truth);
    fit_solution_free(&solution);
    free(params.param);
    fit_rows_free(&rows);
}

int main(void)
{
    test_closed_form();
    test_recovery();
    return tap_done();
}
