/* SPDX-License-Identifier: MIT
 *
 * Fitted constants into the data files. A file keeps what it holds besides; values are rounded to
 * six digits, so that a repetition on another machine gives the same text.
 *
 * Intervals: half width in ln(time) that holds a share p of the |residuals| of clean rows of a
 * class (dense, experts, fine-tuning). A site takes those of the grouped folds and of its main
 * stack: the ceil(p (n + 1))-th smallest (split conformal); with fewer than MIN_ROWS rows, those of
 * all stacks. A stack, for a site nobody has seen, takes those of "one source left out", each
 * source with the same weight, because a site is one draw of sources, not of rows; with fewer than
 * MIN_SOURCES sources, those of all stacks.
 */
#include "calibrate/evidence.h"
#include "calibrate/fit.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ROWS = 10, MIN_SOURCES = 4, PATH_BYTES = 512 };

/* ---- intervals ---------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static bool selected(const struct fit_width_of *of, const char *stack, enum fit_class class,
                     uint32_t i)
{
    const struct ty_run_row *row = &of->rows->run[i].row;
    return !row->noisy && fit_class_of(row) == class && (!of->fold || of->fold[i] != of->own) &&
           (!stack || strcmp(row->stack, stack) == 0);
}

/* |r| of the clean rows of a class, sorted; stack NULL: of all stacks. returns how many. */
static uint32_t residuals(const struct fit_width_of *of, const char *stack, enum fit_class class)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < of->rows->n; i++)
        if (selected(of, stack, class, i))
            of->scratch[n++] = fabs(of->r[i]);
    qsort(of->scratch, n, sizeof *of->scratch, by_size);
    return n;
}

double fit_width(const struct fit_width_of *of, const char *stack, enum fit_class class,
                 double share)
{
    uint32_t n = residuals(of, stack, class);
    if (n < MIN_ROWS)
        n = residuals(of, NULL, class);
    const double place = ceil(share * (n + 1.0));
    return n == 0 ? (double)NAN : of->scratch[place > n ? n - 1 : (uint32_t)place - 1];
}

/* Rows of a class by source; weight[i]: 1 / rows of its source, 0 for the others. returns the
 * number of sources. */
static uint32_t weigh_sources(const struct fit_width_of *of, const char *stack,
                              enum fit_class class, double *weight)
{
    const struct fit_rows *rows = of->rows;
    double sum = 0.0;
    for (uint32_t i = 0; i < rows->n; i++)
        weight[i] = selected(of, stack, class, i) ? 1.0 : 0.0;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < rows->n && weight[i] > 0.0; k++)
            n += weight[k] > 0.0 && strcmp(rows->run[i].row.source, rows->run[k].row.source) == 0;
        weight[i] = n ? 1.0 / n : 0.0;
        sum += weight[i];
    }
    return (uint32_t)lround(sum);
}

static double width_of_sources(const struct fit_width_of *of, const char *stack,
                               enum fit_class class, double share)
{
    uint32_t n_sources = weigh_sources(of, stack, class, of->scratch);
    if (n_sources < MIN_SOURCES)
        n_sources = weigh_sources(of, NULL, class, of->scratch);
    double least = (double)NAN; /* fmin ignores NAN */
    for (uint32_t i = 0; i < of->rows->n; i++) {
        double sum = 0.0;
        for (uint32_t k = 0; k < of->rows->n && of->scratch[i] > 0.0; k++)
            sum += fabs(of->r[k]) <= fabs(of->r[i]) ? of->scratch[k] : 0.0;
        if (of->scratch[i] > 0.0 && sum >= share * n_sources - 1e-9)
            least = fmin(least, fabs(of->r[i]));
    }
    return least;
}

double fit_width_unknown(const struct fit_width_of *of, const char *stack, enum fit_class class,
                         double share)
{
    const double of_sources = width_of_sources(of, stack, class, share);
    return fmax(of_sources, fit_width(of, stack, class, share));
}

typedef double width_fn(const struct fit_width_of *of, const char *stack, enum fit_class class,
                        double share);

/* Fills the interval fields of a profile. */
static void fill_intervals(const struct fit_width_of *of, width_fn *width, const char *stack,
                           struct ty_profile *profile)
{
    double *halves[N_FIT_CLASSES][2] = {{&profile->dense_half_80, &profile->dense_half_90},
                                        {&profile->moe_half_80, &profile->moe_half_90},
                                        {&profile->tuning_half_80, &profile->tuning_half_90}};
    for (enum fit_class class = 0; class < N_FIT_CLASSES; class ++) {
        *halves[class][0] = width(of, stack, class, 0.8);
        *halves[class][1] = width(of, stack, class, 0.9);
    }
}

/* Fills the half widths of ratios. stack NULL, or with too few pairs: of all stacks. */
static void fill_ratios(const struct fit_pairs *pairs, const char *stack,
                        double *const halves[N_FIT_CLASSES][2])
{
    for (enum fit_class class = 0; class < N_FIT_CLASSES; class ++) {
        const struct fit_pair_filter filter = {class, stack, 0, false};
        *halves[class][0] = fit_pairs_width_of_stack(pairs, &filter, 0.8);
        *halves[class][1] = fit_pairs_width_of_stack(pairs, &filter, 0.9);
    }
}

static void fill_pairs(const struct fit_report *report, const char *stack,
                       struct ty_profile *profile)
{
    double *const plans[N_FIT_CLASSES][2] = {
        {&profile->dense_plans_80, &profile->dense_plans_90},
        {&profile->moe_plans_80, &profile->moe_plans_90},
        {&profile->tuning_plans_80, &profile->tuning_plans_90}};
    double *const gpus[N_FIT_CLASSES][2] = {{&profile->dense_gpus_80, &profile->dense_gpus_90},
                                            {&profile->moe_gpus_80, &profile->moe_gpus_90},
                                            {&profile->tuning_gpus_80, &profile->tuning_gpus_90}};
    fill_ratios(report->plans, stack, plans);
    fill_ratios(report->gpus, stack, gpus);
}

/* The stack of most rows of a site. */
static const char *main_stack(const struct fit_rows *rows, const char *site)
{
    const char *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t n = 0;
        if (strcmp(rows->run[i].row.site, site) != 0)
            continue;
        for (uint32_t j = 0; j < rows->n; j++)
            n += strcmp(rows->run[j].row.site, site) == 0 &&
                 strcmp(rows->run[j].row.stack, rows->run[i].row.stack) == 0;
        if (n > most) {
            most = n;
            best = rows->run[i].row.stack;
        }
    }
    return best;
}

/* ---- one file ----------------------------------------------------------------------------- */

static char *read_text(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    *bytes = 0;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long end = ftell(file);
        text = end > 0 ? malloc((size_t)end) : NULL;
        rewind(file);
        if (text)
            *bytes = fread(text, 1, (size_t)end, file);
    }
    fclose(file);
    return text;
}

static ty_status write_text(const char *path, const char *text, struct ty_error *error)
{
    FILE *file = text ? fopen(path, "wb") : NULL;
    if (!file)
        return error_set(error, TY_ERR_IO, path, "%s", text ? strerror(errno) : "out of memory");
    const bool written = fputs(text, file) >= 0;
    if (fclose(file) != 0 || !written)
        return error_set(error, TY_ERR_IO, path, "could not be written");
    return TY_OK;
}

static double rounded(double value, int digits)
{
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL);
}

static void round_intervals(struct ty_profile *profile)
{
    double *halves[] = {
        &profile->dense_half_80,  &profile->dense_half_90,   &profile->moe_half_80,
        &profile->moe_half_90,    &profile->tuning_half_80,  &profile->tuning_half_90,
        &profile->dense_plans_80, &profile->dense_plans_90,  &profile->moe_plans_80,
        &profile->moe_plans_90,   &profile->tuning_plans_80, &profile->tuning_plans_90,
        &profile->dense_gpus_80,  &profile->dense_gpus_90,   &profile->moe_gpus_80,
        &profile->moe_gpus_90,    &profile->tuning_gpus_80,  &profile->tuning_gpus_90};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        *halves[i] = rounded(*halves[i], 3);
}

/* What a file says besides its constants. */
static void describe(const struct fit_report *report, const struct fit_param *param,
                     double *scratch, struct ty_profile *profile)
{
    const struct fit_width_of unknown = {report->rows, report->sources_r, NULL, 0, scratch};
    const struct fit_width_of known = {report->rows, report->grouped_r, NULL, 0, scratch};
    const char *at = strchr(param->name, '@');
    if (!profile->source[0])
        text_format(profile->source, sizeof profile->source,
                    "make profiles: fit over data/runs/published.csv");
    if (param->level == LEVEL_RELEASE && at)
        text_format(profile->release, sizeof profile->release, "%s", at + 1);
    if (param->level == LEVEL_SITE)
        text_format(profile->site, sizeof profile->site, "%s", param->name);
    if (param->level == LEVEL_ALL || param->level == LEVEL_STACK) {
        const char *stack = param->level == LEVEL_STACK ? param->name : NULL;
        fill_intervals(&unknown, fit_width_unknown, stack, profile);
        fill_pairs(report, stack, profile);
    }
    if (param->level == LEVEL_SITE)
        fill_intervals(&known, fit_width, main_stack(report->rows, param->name), profile);
    round_intervals(profile);
}

static bool same_file(const struct fit_param *a, const struct fit_param *b)
{
    return strcmp(fit_folder(a->level), fit_folder(b->level)) == 0 && a->level == b->level &&
           strcmp(a->name, b->name) == 0;
}

static ty_status write_file(const struct fit_report *report, uint32_t first, const char *folder,
                            struct ty_error *error)
{
    const struct fit_params *params = report->params;
    const struct fit_param *param = &params->param[first];
    char name[64], path[PATH_BYTES];
    size_t bytes;
    struct ty_profile profile;
    fit_file(param, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s/%s.json", folder, fit_folder(param->level), name);
    ty_init(TY_KIND_PROFILE, &profile);
    char *text = read_text(path, &bytes);
    ty_status status = TY_OK;
    if (text)
        status = ty_spec_parse(TY_KIND_PROFILE, text, bytes, path, &profile, error);
    free(text);
    double *scratch = calloc(report->rows->n, sizeof *scratch);
    if (status == TY_OK && !scratch)
        status = error_set(error, TY_ERR_NOMEM, path, "out of memory");
    if (status == TY_OK) {
        for (uint32_t j = first; j < params->n; j++)
            if (same_file(param, &params->param[j]))
                *(double *)(void *)((char *)&profile + params->param[j].field->offset) =
                    rounded(fit_value(&params->param[j], report->solution->z[j]), 6);
        describe(report, param, scratch, &profile);
        text = ty_spec_write(TY_KIND_PROFILE, &profile);
        status = write_text(path, text, error);
        ty_text_free(text);
    }
    free(scratch);
    return status;
}

/* ---- all of them -------------------------------------------------------------------------- */

static uint32_t n_informing(const struct fit_rows *rows, const struct fit_param *param)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        n += fit_informs(param, &rows->run[i]);
    return n;
}

static ty_status write_table(const struct fit_report *report, const char *folder,
                             struct ty_error *error)
{
    char path[PATH_BYTES], name[64];
    snprintf(path, sizeof path, "%s/profiles/constants.csv", folder);
    FILE *file = fopen(path, "wb");
    if (!file)
        return error_set(error, TY_ERR_IO, path, "%s", strerror(errno));
    fputs("file,constant,value,prior,sd_log,min,max,rows,informed\n", file);
    for (uint32_t j = 0; j < report->params->n; j++) {
        const struct fit_param *param = &report->params->param[j];
        fit_file(param, name, sizeof name);
        fprintf(file, "%s/%s,%s,%.6g,%g,%g,%g,%g,%u,%.2f\n", fit_folder(param->level), name,
                param->field->path, fit_value(param, report->solution->z[j]), param->prior,
                param->sd_log, param->min, param->max, n_informing(report->rows, param),
                fmax(report->solution->share[j], 0.0));
    }
    const bool failed = ferror(file);
    if (fclose(file) != 0 || failed)
        return error_set(error, TY_ERR_IO, path, "could not be written");
    return TY_OK;
}

static bool same_cell(const struct evidence_cell *a, const struct evidence_cell *b)
{
    for (int axis = 0; axis < N_EVIDENCE; axis++)
        if (strcmp(a->is[axis], b->is[axis]) != 0)
            return false;
    return true;
}

static struct evidence_cell cell_of(const struct fit_rows *rows, uint32_t i)
{
    const struct ty_run *run = &rows->run[i];
    return evidence_cell(&run->model, &run->cluster, &run->plan);
}

/* How many rows each (vendor, fabric, scale, task) has, in order of appearance. */
static void write_evidence(const struct fit_rows *rows, struct json_writer *json)
{
    json_array(json, "evidence");
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct evidence_cell cell = cell_of(rows, i);
        uint32_t before = 0, n = 0;
        for (uint32_t k = 0; k < rows->n; k++) {
            const struct evidence_cell other = cell_of(rows, k);
            const bool same = same_cell(&cell, &other);
            n += same;
            before += same && k < i;
        }
        if (before)
            continue;
        json_object(json, NULL);
        for (int axis = 0; axis < N_EVIDENCE; axis++)
            json_text(json, evidence_names[axis], cell.is[axis]);
        json_count(json, "rows", n);
        json_close(json);
    }
    json_close(json);
}

/* What the fit leaves open of each constant: the prior of a user's own runs. */
static void write_deviations(const struct fit_report *report, struct json_writer *json)
{
    char file[64], of[96];
    json_array(json, FIT_DEVIATIONS);
    for (uint32_t j = 0; j < report->params->n; j++) {
        const struct fit_param *param = &report->params->param[j];
        if (param->level == LEVEL_SITE)
            continue;
        fit_file(param, file, sizeof file);
        text_format(of, sizeof of, "%s/%s", fit_folder(param->level), file);
        json_object(json, NULL);
        json_text(json, "of", of);
        json_text(json, "constant", param->field->path);
        json_number(json, "sd", rounded(fit_deviation(param, report->solution->share[j]), 3));
        json_close(json);
    }
    json_close(json);
}

/* The rows of the fit, for which validate must not speak of accuracy, what they cover, and what
 * they leave open. */
static ty_status write_ids(const struct fit_report *report, const char *folder,
                           struct ty_error *error)
{
    char path[PATH_BYTES];
    struct json_writer json;
    snprintf(path, sizeof path, "%s/runs/fitted.json", folder);
    json_begin(&json);
    json_object(&json, NULL);
    json_array(&json, "ids");
    for (uint32_t i = 0; i < report->rows->n; i++)
        json_text(&json, NULL, report->rows->run[i].row.id);
    json_close(&json);
    write_evidence(report->rows, &json);
    write_deviations(report, &json);
    json_close(&json);
    char *text = json_finish(&json);
    const ty_status status = write_text(path, text, error);
    ty_text_free(text);
    return status;
}

static ty_status write_all(const struct fit_report *report, const char *folder,
                           struct ty_error *error)
{
    ty_status status = write_table(report, folder, error);
    if (status == TY_OK)
        status = write_ids(report, folder, error);
    for (uint32_t j = 0; status == TY_OK && j < report->params->n; j++) {
        bool first = true;
        for (uint32_t k = 0; k < j && first; k++)
            first = !same_file(&report->params->param[k], &report->params->param[j]);
        if (first)
            status = write_file(report, j, folder, error);
    }
    return status;
}

ty_status fit_write(const struct fit_report *report, const char *folder, struct ty_error *error)
{
    struct fit_pairs plans, gpus = {0};
    struct fit_report with_pairs = *report;
    ty_status status = fit_pairs_of(report->rows, report->grouped_r, TY_KIN_PLANS, &plans);
    if (status == TY_OK)
        status = fit_pairs_of(report->rows, report->grouped_r, TY_KIN_GPUS, &gpus);
    if (status != TY_OK)
        return error_set(error, status, folder, "out of memory");
    with_pairs.plans = &plans;
    with_pairs.gpus = &gpus;
    status = write_all(&with_pairs, folder, error);
    free(plans.pair);
    free(gpus.pair);
    return status;
}
