/* SPDX-License-Identifier: MIT
 *
 * Fitted constants into the data files. A file keeps what it holds besides; values are rounded to
 * six digits, so that a repetition on another machine gives the same text.
 *
 * Intervals: half width in ln(time) that holds a share p of the |residuals| of clean rows of a
 * class (stack; dense, experts, fine-tuning): the ceil(p (n + 1))-th smallest (split conformal).
 * A stack takes those of "one source left out", a site those of the grouped folds; with fewer than
 * MIN_ROWS rows the class of all stacks is taken.
 */
#include "calibrate/fit.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ROWS = 10, MAX_FILES = 128, PATH_BYTES = 512, N_CLASSES = 3 };

/* ---- intervals ---------------------------------------------------------------------------- */

static int class_of(const struct ty_run *run)
{
    const char *kind = run->row.kind;
    return strcmp(kind, "dense") == 0 ? 0 : strcmp(kind, "moe") == 0 ? 1 : 2;
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* |r| of the clean rows of a class, sorted; stack NULL: of all stacks. returns how many. */
static uint32_t residuals(const struct fit_rows *rows, const double *r, const char *stack,
                          int class, double *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct ty_run_row *row = &rows->run[i].row;
        if (!row->noisy && class_of(&rows->run[i]) == class &&
            (!stack || strcmp(row->stack, stack) == 0))
            out[n++] = fabs(r[i]);
    }
    qsort(out, n, sizeof *out, by_size);
    return n;
}

static double half_width(const double *sorted, uint32_t n, double share)
{
    const double place = ceil(share * (n + 1.0));
    return n == 0 ? (double)NAN : sorted[place > n ? n - 1 : (uint32_t)place - 1];
}

/* Fills the interval fields of a profile. */
static void fill_intervals(const struct fit_report *report, const double *r, const char *stack,
                           double *scratch, struct ty_profile *profile)
{
    double *halves[N_CLASSES][2] = {{&profile->dense_half_80, &profile->dense_half_90},
                                    {&profile->moe_half_80, &profile->moe_half_90},
                                    {&profile->tuning_half_80, &profile->tuning_half_90}};
    for (int class = 0; class < N_CLASSES; class ++) {
        uint32_t n = residuals(report->rows, r, stack, class, scratch);
        if (n < MIN_ROWS)
            n = residuals(report->rows, r, NULL, class, scratch);
        *halves[class][0] = half_width(scratch, n, 0.8);
        *halves[class][1] = half_width(scratch, n, 0.9);
    }
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
    double *halves[] = {&profile->dense_half_80,  &profile->dense_half_90,
                        &profile->moe_half_80,    &profile->moe_half_90,
                        &profile->tuning_half_80, &profile->tuning_half_90};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        *halves[i] = rounded(*halves[i], 3);
}

/* What a file says besides its constants. */
static void describe(const struct fit_report *report, const struct fit_param *param,
                     double *scratch, struct ty_profile *profile)
{
    const char *at = strchr(param->name, '@');
    if (!profile->source[0])
        text_format(profile->source, sizeof profile->source,
                    "make profiles: fit over data/runs/published.csv");
    if (param->level == LEVEL_RELEASE && at)
        text_format(profile->release, sizeof profile->release, "%s", at + 1);
    if (param->level == LEVEL_SITE)
        text_format(profile->site, sizeof profile->site, "%s", param->name);
    if (param->level == LEVEL_ALL)
        fill_intervals(report, report->sources_r, NULL, scratch, profile);
    if (param->level == LEVEL_STACK)
        fill_intervals(report, report->sources_r, param->name, scratch, profile);
    if (param->level == LEVEL_SITE)
        fill_intervals(report, report->grouped_r, main_stack(report->rows, param->name), scratch,
                       profile);
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

/* The rows of the fit, for which validate must not speak of accuracy. */
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
    json_close(&json);
    char *text = json_finish(&json);
    const ty_status status = write_text(path, text, error);
    ty_text_free(text);
    return status;
}

ty_status fit_write(const struct fit_report *report, const char *folder, struct ty_error *error)
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
