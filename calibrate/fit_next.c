/* SPDX-License-Identifier: MIT
 *
 * Which run would tell most of a site: plans next to those that were run, judged by their
 * derivatives. A run of candidate c takes from the variance of plan k
 *
 *   (g_k' C g_c)^2 / (noise^2 + g_c' C g_c)
 *
 * and the best takes most from the mean over all runs and candidates.
 */
#include "calibrate/fit.h"
#include "sim/error.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARIED = 6 };                  /* runs whose plans are varied */
static const double SMALL_SPREAD = 0.003; /* in ln(time) */

static const struct {
    const char *name;
    size_t offset;
} sizes[] = {{"gpus", offsetof(struct ty_plan, n_gpus)},
             {"tp", offsetof(struct ty_plan, tp)},
             {"pp", offsetof(struct ty_plan, pp)},
             {"mbs", offsetof(struct ty_plan, mbs)},
             {"gbs", offsetof(struct ty_plan, gbs)}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

struct candidates {
    struct fit_rows rows; /* the runs, then the candidates */
    uint32_t n_runs;
    struct ty_next_run *next; /* [rows.n - n_runs] */
};

/* The plan is legal and fits. */
static bool feasible(const struct ty_run *run)
{
    ty_predictor *predictor;
    struct ty_prediction answer = {.feasible = false};
    const struct ty_options options = {.rung = TY_RUNG_SCREEN};
    if (ty_predictor_create(&run->model, &run->cluster, &run->profile, NULL, &predictor, NULL) !=
        TY_OK)
        return false;
    const ty_status status = ty_predictor_run(predictor, &run->plan, &options, &answer, NULL);
    ty_predictor_destroy(predictor);
    return status == TY_OK && answer.feasible;
}

static bool has_plan(const struct candidates *candidates, const struct ty_run *run)
{
    for (uint32_t i = 0; i < candidates->rows.n; i++) {
        const struct ty_run *other = &candidates->rows.run[i];
        if (strcmp(other->model.name, run->model.name) == 0 &&
            memcmp(&other->plan, &run->plan, sizeof run->plan) == 0)
            return true;
    }
    return false;
}

static void add_variation(struct candidates *candidates, uint32_t like, int size, bool twice)
{
    struct ty_run *run = &candidates->rows.run[candidates->rows.n];
    *run = candidates->rows.run[like];
    uint32_t *value = (uint32_t *)(void *)((char *)&run->plan + sizes[size].offset);
    if (*value == 0)
        *value = 1;
    if (twice ? *value > UINT32_MAX / 2 : *value % 2 != 0)
        return;
    *value = twice ? 2 * *value : *value / 2;
    if (has_plan(candidates, run) || !feasible(run))
        return;
    struct ty_next_run *next = &candidates->next[candidates->rows.n - candidates->n_runs];
    *next = (struct ty_next_run){.like = like, .plan = run->plan};
    text_format(next->change, sizeof next->change, "%s %u", sizes[size].name, *value);
    run->row.measured_s = 1.0; /* not measured: only derivatives are read */
    candidates->rows.n++;
}

static ty_status vary(const struct ty_runs *runs, const struct ty_site_fit *fit,
                      struct candidates *out)
{
    struct fit_rows own;
    ty_status status = fit_site_rows(runs, fit, &own);
    if (status != TY_OK)
        return status;
    const uint32_t n_varied = own.n < MAX_VARIED ? own.n : MAX_VARIED;
    const size_t most = own.n + 2u * N_SIZES * (size_t)n_varied;
    out->rows =
        (struct fit_rows){own.n, malloc(most * sizeof *own.run), calloc(most, sizeof *own.weight)};
    out->next = calloc(most, sizeof *out->next);
    out->n_runs = own.n;
    if (out->rows.run && out->rows.weight && out->next) {
        memcpy(out->rows.run, own.run, own.n * sizeof *own.run);
        for (uint32_t like = 0; like < n_varied; like++)
            for (int change = 0; change < 2 * N_SIZES; change++)
                add_variation(out, like, change / 2, change % 2 == 0);
    } else {
        status = TY_ERR_NOMEM;
    }
    fit_rows_free(&own);
    return status;
}

/* ---- worth -------------------------------------------------------------------------------- */

/* Where a constant is among those of the fit; UINT32_MAX: the runs did not inform it. */
static uint32_t place_of(const struct ty_site_fit *fit, const struct fit_param *param)
{
    char file[64], layer[96] = "";
    fit_file(param, file, sizeof file);
    if (param->level != LEVEL_SITE)
        text_format(layer, sizeof layer, "%s/%s", fit_folder(param->level), file);
    for (uint32_t j = 0; j < fit->n_constants; j++)
        if (fit->constant[j].field == param->field && strcmp(fit->constant[j].layer, layer) == 0)
            return j;
    return UINT32_MAX;
}

/* Leaves out constants that the runs hardly depend on. place: [params->n] of those that stay. */
static void keep_large(const struct ty_site_fit *fit, struct fit_params *params, uint32_t *place)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < params->n; j++) {
        place[n] = place_of(fit, &params->param[j]);
        if (place[n] != UINT32_MAX && fit->constant[place[n]].spread < SMALL_SPREAD)
            continue;
        params->param[n++] = params->param[j];
    }
    params->n = n;
}

/* Constants and covariance after the runs; those that only candidates inform are at their prior. */
static void start_from(const struct ty_site_fit *fit, const struct fit_params *params,
                       const uint32_t *place, double *z, double *covariance)
{
    for (uint32_t i = 0; i < params->n; i++) {
        const struct fit_param *param = &params->param[i];
        double *row = &covariance[(size_t)i * params->n];
        row[i] = pow(param->sd_log / FIT_PRIOR_WEIGHT, 2.0);
        if (place[i] == UINT32_MAX)
            continue;
        z[i] = log(fit->constant[place[i]].after / param->prior);
        for (uint32_t j = 0; j < params->n; j++)
            if (place[j] != UINT32_MAX)
                row[j] = fit->covariance[(size_t)place[i] * fit->n_constants + place[j]];
    }
}

struct worth {
    struct fit_params params;
    struct fit_linear linear; /* of runs and candidates */
    double *covariance;       /* [n_params * n_params] */
};

static ty_status open_worth(const struct ty_site_fit *fit, const struct candidates *candidates,
                            struct worth *out)
{
    uint32_t *place = NULL;
    ty_status status = fit_own_params(&candidates->rows, &out->params);
    if (status == TY_OK) {
        place = calloc(out->params.n, sizeof *place);
        status = place ? TY_OK : TY_ERR_NOMEM;
    }
    if (status == TY_OK) {
        keep_large(fit, &out->params, place);
        status = fit_linear_create(candidates->rows.n, out->params.n, &out->linear);
    }
    if (status == TY_OK) {
        const size_t n = out->params.n;
        out->covariance = calloc(n * n, sizeof *out->covariance);
        status = out->covariance ? TY_OK : TY_ERR_NOMEM;
    }
    if (status == TY_OK)
        start_from(fit, &out->params, place, out->linear.z, out->covariance);
    free(place);
    return status;
}

static void judge(double noise, const double *covariance, const struct fit_linear *linear,
                  const struct candidates *candidates)
{
    const uint32_t n = candidates->rows.n, m = linear->n_params;
    double now = 0.0;
    for (uint32_t k = 0; k < n; k++) {
        const double *g = &linear->dr[(size_t)k * m];
        now += fit_product(covariance, m, g, g) / n;
    }
    for (uint32_t c = candidates->n_runs; c < n; c++) {
        const double *g = &linear->dr[(size_t)c * m];
        const double own = noise * noise + fit_product(covariance, m, g, g);
        double taken = 0.0;
        for (uint32_t k = 0; k < n; k++)
            taken += pow(fit_product(covariance, m, &linear->dr[(size_t)k * m], g), 2.0) / own / n;
        struct ty_next_run *next = &candidates->next[c - candidates->n_runs];
        next->sd_now = sqrt(now);
        next->sd_then = sqrt(fmax(0.0, now - taken));
    }
}

/* The best first; the order of the candidates breaks ties. */
static uint32_t pick(const struct candidates *candidates, struct ty_next_run *next)
{
    const uint32_t n = candidates->rows.n - candidates->n_runs;
    uint32_t n_next = 0;
    while (n_next < TY_MAX_NEXT && n_next < n) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++)
            if (candidates->next[i].sd_then < candidates->next[best].sd_then)
                best = i;
        next[n_next++] = candidates->next[best];
        candidates->next[best].sd_then = HUGE_VAL;
    }
    return n_next;
}

/* The run that is row `row` of those that were used. */
static uint32_t run_of(const struct ty_runs *runs, const struct ty_site_fit *fit, uint32_t row)
{
    for (uint32_t i = 0; i < runs->n; i++)
        if (!isnan(fit->before_s[i]) && row-- == 0)
            return i;
    return 0;
}

ty_status ty_site_next(const struct ty_runs *runs, const struct ty_site_fit *fit,
                       uint32_t n_threads, struct ty_next_run *next, uint32_t *n_next)
{
    struct candidates candidates = {0};
    struct worth worth = {0};
    ty_status status = vary(runs, fit, &candidates);
    if (status == TY_OK)
        status = open_worth(fit, &candidates, &worth);
    if (status == TY_OK)
        status = fit_linearise(&candidates.rows, &worth.params, n_threads, false, &worth.linear);
    if (status == TY_OK) {
        judge(fit->noise, worth.covariance, &worth.linear, &candidates);
        *n_next = pick(&candidates, next);
        for (uint32_t i = 0; i < *n_next; i++)
            next[i].like = run_of(runs, fit, next[i].like);
    }
    fit_linear_free(&worth.linear);
    free(worth.params.param);
    free(worth.covariance);
    free(candidates.next);
    fit_rows_free(&candidates.rows);
    return status;
}
