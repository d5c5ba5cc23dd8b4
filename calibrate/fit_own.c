/* SPDX-License-Identifier: MIT
 *
 * How much own runs help at a site nobody has seen: each source is left out of the fit in turn and
 * its GPUs stand for one such site each. Some of its runs, drawn at random, are fitted as calibrate
 * runs does, and the others are predicted by the linear model. The error with n runs is over all
 * draws of all sites that have more than the most runs drawn.
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
    double *weight;           /* [n rows] */
    struct fit_rows site;     /* clean rows of the source, without its part in the fit */
    struct fit_linear linear; /* of them, by the three ratios */
    struct fit_params site_params;
    double *error[TY_N_OWN]; /* |predicted / measured - 1| */
    uint32_t n_errors[TY_N_OWN];
};

/* The rows of a source as a site without runs: constants of a fit without them. */
static ty_status leave_out(struct own *own, const char *source)
{
    const struct fit_rows *rows = own->rows;
    double *z = malloc(own->params->n * sizeof *z);
    if (!z)
        return TY_ERR_NOMEM;
    memcpy(z, own->solution->z, own->params->n * sizeof *z);
    own->site.n = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        own->weight[i] = strcmp(rows->run[i].row.source, source) == 0 ? 0.0 : rows->weight[i];
    const ty_status status = fit_map(&own->solution->linear, own->params, own->weight, z, NULL);
    for (uint32_t i = 0; status == TY_OK && i < rows->n; i++) {
        if (own->weight[i] > 0.0 || rows->run[i].row.noisy)
            continue;
        struct ty_run *run = &own->site.run[own->site.n++];
        *run = rows->run[i];
        fit_set(own->params, z, run, &run->profile);
    }
    free(z);
    return status;
}

static ty_status linearise(struct own *own)
{
    fit_linear_free(&own->linear);
    free(own->site_params.param);
    own->site_params = (struct fit_params){0};
    ty_status status = fit_site_params(&own->site.run[0], &own->site_params);
    if (status == TY_OK)
        status = fit_linear_create(own->site.n, TY_N_SITE, &own->linear);
    return status == TY_OK
               ? fit_linearise(&own->site, &own->site_params, own->n_threads, false, &own->linear)
               : status;
}

/* The first n of the members are fitted, the rest predicted. */
static ty_status reveal(struct own *own, const uint32_t *member, uint32_t n_members, int count)
{
    const uint32_t n = counts[count];
    struct fit_site site = {.noise = FIT_UNIT};
    struct fit_linear some;
    ty_status status = fit_linear_create(n ? n : 1, TY_N_SITE, &some);
    if (status != TY_OK)
        return status;
    some.n_rows = n;
    for (uint32_t i = 0; i < n; i++) {
        some.r[i] = own->linear.r[member[i]];
        memcpy(&some.dr[(size_t)i * TY_N_SITE], &own->linear.dr[(size_t)member[i] * TY_N_SITE],
               TY_N_SITE * sizeof(double));
    }
    if (n)
        status = fit_site_solve(&some, &own->site_params, &site);
    for (uint32_t i = n; status == TY_OK && i < n_members; i++) {
        double r = own->linear.r[member[i]];
        for (int j = 0; j < TY_N_SITE; j++)
            r += own->linear.dr[(size_t)member[i] * TY_N_SITE + (size_t)j] * site.z[j];
        own->error[count][own->n_errors[count]++] = fabs(expm1(r));
    }
    fit_linear_free(&some);
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

/* All draws of the site that the row `first` begins; nothing when an earlier row did. */
static ty_status draw_site(struct own *own, uint32_t first, uint32_t *member,
                           struct random_stream *random)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < own->site.n; i++) {
        if (strcmp(own->site.run[i].row.gpu, own->site.run[first].row.gpu) != 0)
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
        if (status != TY_OK || own->site.n <= counts[TY_N_OWN - 1])
            continue;
        status = linearise(own);
        for (uint32_t row = 0; status == TY_OK && row < own->site.n; row++)
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
    struct own own = {.rows = rows,
                      .params = params,
                      .solution = solution,
                      .n_threads = n_threads,
                      .weight = calloc(rows->n, sizeof *own.weight),
                      .site = {0, malloc(rows->n * sizeof *own.site.run), NULL}};
    double *errors = malloc(sizeof *errors * TY_N_OWN * DRAWS * (size_t)rows->n);
    for (int count = 0; errors && count < TY_N_OWN; count++)
        own.error[count] = errors + (size_t)count * DRAWS * rows->n;
    ty_status status = own.weight && own.site.run && errors ? all_sources(&own) : TY_ERR_NOMEM;
    if (status == TY_OK)
        summarise(&own, out);
    fit_linear_free(&own.linear);
    free(own.site_params.param);
    free(own.weight);
    free(own.site.run);
    free(errors);
    return status;
}
