/* SPDX-License-Identifier: MIT
 *
 * What own runs may move. The shipped fit is the prior: a constant is at its shipped value, with
 * the deviation the fit left it,
 *
 *   sd_after = sd / lambda sqrt(1 - share)
 *
 * so that what many published runs agree on stays, and what few of them tell gives way. The
 * deviations count as independent: that two constants made up for each other in the published runs
 * says nothing of another machine (in cross-validation over sources the whole covariance does
 * worse than its diagonal: docs/calibration.md).
 */
#include "calibrate/fit.h"
#include "models/spec/builtin.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deviations of the logarithms of a site's ratios, by the same cross-validation: kernels have
 * constants of their own, so little is left to the first; network and host differ by factors. */
static const double COMPUTE_DEVIATION = 0.1, OTHER_DEVIATION = 1.0;

double fit_deviation(const struct fit_param *param, double share)
{
    return param->sd_log / FIT_PRIOR_WEIGHT * sqrt(fmin(1.0, fmax(0.0, 1.0 - share)));
}

struct fit_param fit_own_param(const struct fit_param *param, double value, double deviation)
{
    struct fit_param own = *param;
    if (param->level == LEVEL_SITE) {
        value = 1.0;
        deviation = strcmp(param->field->path, "site.compute_ratio") == 0 ? COMPUTE_DEVIATION
                                                                          : OTHER_DEVIATION;
    }
    own.prior = value;
    own.sd_log = FIT_PRIOR_WEIGHT * deviation;
    own.min = fmin(own.min, value);
    own.max = fmax(own.max, value);
    return own;
}

/* ---- the shipped fit ---------------------------------------------------------------------- */

static bool is_text(const struct json_at *object, const char *key, const char *text)
{
    struct json_at at;
    const char *found;
    return json_find(object, key, &at) && json_get_text(&at, &found, NULL) == TY_OK &&
           strcmp(found, text) == 0;
}

/* 0 for a constant that the shipped fit does not have. */
static double shipped_deviation(const struct json_document *fitted, const struct fit_param *param)
{
    struct json_at constants, at, item = {0};
    char file[64], of[96];
    double deviation = 0.0;
    fit_file(param, file, sizeof file);
    text_format(of, sizeof of, "%s/%s", fit_folder(param->level), file);
    if (!json_find(&fitted->top, FIT_DEVIATIONS, &constants))
        return 0.0;
    while (json_next(&constants, &item))
        if (is_text(&item, "constant", param->field->path) && is_text(&item, "of", of) &&
            json_find(&item, "sd", &at) &&
            json_get_double(&at, 0.0, 1e3, &deviation, NULL) == TY_OK)
            return deviation;
    return 0.0;
}

/* The value in the profile of the first run that the constant informs. A profile fitted to the
 * user's machine keeps its constants: NAN. */
static double value_of(const struct fit_rows *rows, const struct fit_param *param)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct ty_run *run = &rows->run[i];
        if (!fit_informs(param, run))
            continue;
        const bool measured = run->profile.calibrated && param->level < LEVEL_STACK;
        double value;
        memcpy(&value, (const char *)&run->profile + param->field->offset, sizeof value);
        return measured ? (double)NAN : value;
    }
    return (double)NAN;
}

static void take(const struct json_document *fitted, const struct fit_rows *rows,
                 const struct fit_param *param, struct fit_params *out)
{
    const double value = value_of(rows, param);
    const double deviation = shipped_deviation(fitted, param);
    if (param->level == LEVEL_SITE || (value > 0.0 && deviation > 0.0))
        out->param[out->n++] = fit_own_param(param, value, deviation);
}

ty_status fit_own_params(const struct fit_rows *rows, struct fit_params *out)
{
    const struct builtin_file *file = builtin_find("runs", "fitted");
    struct json_document fitted = {0};
    struct fit_params all = {0};
    *out = (struct fit_params){0};
    ty_status status =
        file ? json_parse((const char *)file->text, file->bytes, file->name, &fitted, NULL)
             : TY_ERR_INTERNAL;
    if (status == TY_OK)
        status = fit_params_of(rows, &all);
    if (status == TY_OK) {
        out->param = calloc(all.n, sizeof *out->param);
        status = out->param ? TY_OK : TY_ERR_NOMEM;
    }
    for (int others = 0; status == TY_OK && others < 2; others++)
        for (uint32_t j = 0; j < all.n; j++)
            if ((all.param[j].level != LEVEL_SITE) == others)
                take(&fitted, rows, &all.param[j], out);
    free(all.param);
    json_free(&fitted);
    return status;
}
