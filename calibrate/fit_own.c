/* SPDX-License-Identifier: MIT
 *
 * How much own runs help at a site nobody has seen: each source is left out of the fit in turn and
 * its GPUs stand for one such site each. Some of its runs, drawn at random, are fitted as calibrate
 * runs does, and the others are predicted: times without runs by the simulator, changes by the
 * linear model of the whole fit. The error with n runs is over all draws of all sites that have
 * more than the most runs drawn.
 */
#include "calibrate/fit.h"
#include "calibrate/statistics.h"
#include "sim/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 20 };
static const uint32_t counts[TY_N_OWN] = {0, 1, 3, 5, 10};

struct own {
    const struct fit_rows *rows;
    const struct fit_params *params;
    const struct fit_solution *solution;
    uint32_t n_threads;
    double *weight, *share;      /* [n rows], [n params] */
    bool *left_out;              /* [n rows] the clean rows of the source */
    struct fit_linear all;       /* z of the fit without the source; r of its rows */
    uint32_t n_site, *row;       /* [n_site] its rows */
    struct fit_params constants; /* that the drawn ones of them inform */
    uint32_t *column;            /* [n constants] in the linear model of all */
    double *error[TY_N_OWN];     /* |predicted / measured - 1| */
    uint32_t n_errors[TY_N_OWN];
};

/* The rows of a source as a site without runs: constants of a fit without them. */
static ty_status leave_out(struct own *own, const char *source)
{
    const struct fit_rows *rows = own->rows;
    memcpy(own->all.z, own->solution->z, own->params->n * sizeof *own->all.z);
    own->n_site = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const bool of_source = strcmp(rows->run[i].row.source, source) == 0;
        own->weight[i] = of_source ? 0.0 : rows->weight[i];
        own->left_out[i] = of_source && !rows->run[i].row.noisy;
        if (own->left_out[i])
            own->row[own->n_site++] = i;
    }
    const ty_status status =
        fit_map(&own->solution->linear, own->params, own->weight, own->all.z, own->share);
    return status == TY_OK
               ? fit_residuals(rows, own->params, own->n_threads, own->left_out, &own->all)
               : status;
}

static double slope(const struct own *own, uint32_t site_row, uint32_t column)
{
    return own->solution->linear.dr[(size_t)own->row[site_row] * own->params->n + column];
}

/* Any of the drawn rows depends on the constant. */
static bool informed(const struct own *own, const uint32_t *member, uint32_t n, uint32_t column)
{
    bool any = false;
    for (uint32_t i = 0; i < n && !any; i++)
        any = slope(own, member[i], column) != 0.0;
    return any;
}

/* What the drawn rows may move, as fit_own_params has it for a user. */
static void choose_constants(struct own *own, const uint32_t *member, uint32_t n)
{
    own->constants.n = 0;
    for (uint32_t j = 0; j < own->params->n; j++) {
        const struct fit_param *param = &own->params->param[j];
        if (!informed(own, member, n, j))
            continue;
        own->column[own->constants.n] = j;
        own->constants.param[own->constants.n++] = fit_own_param(
            param, fit_value(param, own->all.z[j]), fit_deviation(param, own->share[j]));
    }
}

/* Predicts the members from the n-th on. z: of the constants. */
static void predict(struct own *own, const uint32_t *member, uint32_t n_members, const double *z,
                    int count)
{
    for (uint32_t i = counts[count]; i < n_members; i++) {
        double r = own->all.r[own->row[member[i]]];
        for (uint32_t j = 0; j < own->constants.n; j++)
            r += slope(own, member[i], own->column[j]) * z[j];
        own->error[count][own->n_errors[count]++] = fabs(expm1(r));
    }
}

/* Solves the first n > 0 of the members for what they inform. */
static ty_status solve(const struct own *own, const uint32_t *member, uint32_t n,
                       struct fit_site *site)
{
    const uint32_t m = own->constants.n;
    struct fit_linear some;
    ty_status status = fit_linear_create(n, m, &some);
    if (status != TY_OK)
        return status;
    for (uint32_t i = 0; i < n; i++) {
        some.r[i] = own->all.r[own->row[member[i]]];
        for (uint32_t j = 0; j < m; j++)
            some.dr[(size_t)i * m + j] = slope(own, member[i], own->column[j]);
    }
    status = fit_site_solve(&some, &own->constants, site);
    fit_linear_free(&some);
    return status;
}

/* The first n of the members are fitted, the rest predicted. */
static ty_status reveal(struct own *own, const uint32_t *member, uint32_t n_members, int count)
{
    const uint32_t n = counts[count];
    struct fit_site site = {0};
    ty_status status = TY_OK;
    choose_constants(own, member, n);
    if (n) {
        status = fit_site_create(own->constants.n, &site);
        if (status == TY_OK)
            status = solve(own, member, n, &site);
    }
    if (status == TY_OK)
        predict(own, member, n_members, site.z, count);
    fit_site_free(&site);
    return status;
}

static void shuffle(struct random_stream *random, uint32_t *member, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t other = (uint32_t)random_below(random, i), kept = member[i - 1];
        member[i - 1] = member[other];
        member[other] = kept;
    }
}

static const char *gpu_of(const struct own *own, uint32_t site_row)
{
    return own->rows->run[own->row[site_row]].row.gpu;
}

/* All draws of the site that the row `first` begins; nothing when an earlier row did. */
static ty_status draw_site(struct own *own, uint32_t first, uint32_t *member,
                           struct random_stream *random)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < own->n_site; i++) {
        if (strcmp(gpu_of(own, i), gpu_of(own, first)) != 0)
            continue;
        if (i < first)
            return TY_OK;
        member[n++] = i;
    }
    ty_status status = TY_OK;
    for (int draw = 0; draw < DRAWS && n > counts[TY_N_OWN - 1]; draw++) {
        shuffle(random, member, n);
        for (int count = 0; status == TY_OK && count < TY_N_OWN; count++)
            status = reveal(own, member, n, count);
    }
    return status;
}

static ty_status all_sources(struct own *own)
{
    struct random_stream random;
    random_init(&random, 1, 0);
    ty_status status = TY_OK;
    uint32_t *member = malloc(own->rows->n * sizeof *member);
    if (!member)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; status == TY_OK && i < own->rows->n; i++) {
        const char *source = own->rows->run[i].row.source;
        uint32_t first = 0;
        while (strcmp(own->rows->run[first].row.source, source) != 0)
            first++;
        if (first < i)
            continue;
        status = leave_out(own, source);
        if (status != TY_OK || own->n_site <= counts[TY_N_OWN - 1])
            continue;
        for (uint32_t row = 0; status == TY_OK && row < own->n_site; row++)
            status = draw_site(own, row, member, &random);
    }
    free(member);
    return status;
}

static void summarise(struct own *own, struct ty_own_error *out)
{
    for (int count = 0; count < TY_N_OWN; count++) {
        double *error = own->error[count], sum = 0.0;
        const uint32_t n = own->n_errors[count];
        stat_sort(error, n);
        for (uint32_t i = 0; i < n; i++)
            sum += error[i];
        out[count] = (struct ty_own_error){.n_runs = counts[count],
                                           .n = n,
                                           .median_ape = stat_quantile(error, n, 0.5),
                                           .mean_ape = n ? sum / n : (double)NAN,
                                           .p90_ape = stat_quantile(error, n, 0.9)};
    }
}

ty_status fit_own_runs(const struct fit_rows *rows, const struct fit_params *params,
                       const struct fit_solution *solution, uint32_t n_threads,
                       struct ty_own_error *out)
{
    const uint32_t n = rows->n, m = params->n;
    struct own own = {.rows = rows,
                      .params = params,
                      .solution = solution,
                      .n_threads = n_threads,
                      .weight = calloc(n, sizeof *own.weight),
                      .share = calloc(m, sizeof *own.share),
                      .left_out = calloc(n, sizeof *own.left_out),
                      .row = calloc(n, sizeof *own.row),
                      .constants = {0, calloc(m, sizeof *own.constants.param)},
                      .column = calloc(m, sizeof *own.column)};
    double *errors = malloc(sizeof *errors * TY_N_OWN * DRAWS * (size_t)n);
    for (int count = 0; errors && count < TY_N_OWN; count++)
        own.error[count] = errors + (size_t)count * DRAWS * n;
    ty_status status = fit_linear_create(n, m, &own.all);
    if (!own.weight || !own.share || !own.left_out || !own.row || !own.constants.param ||
        !own.column || !errors)
        status = TY_ERR_NOMEM;
    if (status == TY_OK)
        status = all_sources(&own);
    if (status == TY_OK)
        summarise(&own, out);
    fit_linear_free(&own.all);
    free(own.weight);
    free(own.share);
    free(own.left_out);
    free(own.row);
    free(own.constants.param);
    free(own.column);
    free(errors);
    return status;
}
