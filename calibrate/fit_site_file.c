/* SPDX-License-Identifier: MIT
 *
 * The file of a site: its ratios and intervals as fields of a profile, then "refit", the constants
 * that its runs moved, by the built-in file they are of (models/spec/site.c reads it). What begins
 * with "_" is for people.
 */
#include "calibrate/fit.h"
#include "models/spec/fields_write.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const double NORMAL_80 = 1.2816, NORMAL_90 = 1.6449; /* of two sides */

/* ---- the site ----------------------------------------------------------------------------- */

static void put(const struct ty_site_constant *constant, struct ty_profile *out)
{
    memcpy((char *)out + constant->field->offset, &constant->after, sizeof constant->after);
}

/* A plan of the site is off by what plans of one site differ by, w = half of a ratio / sqrt 2, and
 * by what the runs leave open of the site:  h^2 = w^2 + (q open)^2, q of a normal deviation; never
 * more than at an unknown site. */
static double half_width(double unknown, double ratio, double quantile, double open)
{
    const double within = isnan(ratio) ? unknown : ratio * sqrt(0.5);
    return fmin(unknown, hypot(within, quantile * open));
}

static void fill_site(const struct ty_site_fit *fit, const char *name,
                      const struct ty_profile *base, struct ty_profile *out)
{
    ty_init(TY_KIND_PROFILE, out);
    text_format(out->site, sizeof out->site, "%s", name);
    text_format(out->source, sizeof out->source, "trainyard calibrate runs: %u run%s of the site",
                fit->n, fit->n == 1 ? "" : "s");
    for (int j = 0; j < TY_N_SITE; j++)
        put(&fit->constant[j], out);
    out->dense_half_80 =
        half_width(base->dense_half_80, base->dense_plans_80, NORMAL_80, fit->open);
    out->dense_half_90 =
        half_width(base->dense_half_90, base->dense_plans_90, NORMAL_90, fit->open);
    out->moe_half_80 = half_width(base->moe_half_80, base->moe_plans_80, NORMAL_80, fit->open);
    out->moe_half_90 = half_width(base->moe_half_90, base->moe_plans_90, NORMAL_90, fit->open);
    out->tuning_half_80 =
        half_width(base->tuning_half_80, base->tuning_plans_80, NORMAL_80, fit->open);
    out->tuning_half_90 =
        half_width(base->tuning_half_90, base->tuning_plans_90, NORMAL_90, fit->open);
}

/* ---- constants ---------------------------------------------------------------------------- */

static bool same_layer(const struct ty_site_fit *fit, uint32_t i, uint32_t j)
{
    return strcmp(fit->constant[i].layer, fit->constant[j].layer) == 0;
}

/* Moved at all: one that runs do not tell of is left to the shipped file. */
static bool moved(const struct ty_site_constant *constant)
{
    return constant->layer[0] && constant->after != constant->before;
}

static void write_remarks(const struct ty_site_fit *fit, uint32_t first, struct json_writer *json)
{
    char text[320];
    json_array(json, "_moved");
    for (uint32_t j = first; j < fit->n_constants; j++) {
        const struct ty_site_constant *constant = &fit->constant[j];
        if (!same_layer(fit, first, j) || !moved(constant))
            continue;
        text_format(text, sizeof text, "%s %+.1f %%, the runs decide %.0f %% of it: %s",
                    constant->field->path, 100.0 * (constant->after / constant->before - 1.0),
                    100.0 * constant->informed, constant->field->help);
        json_text(json, NULL, text);
    }
    json_close(json);
}

/* The constants of one built-in file, of which `first` is the first. */
static void write_layer(const struct ty_site_fit *fit, uint32_t first, struct json_writer *json)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n);
    struct ty_profile values;
    ty_init(TY_KIND_PROFILE, &values);
    for (uint32_t j = first; j < fit->n_constants; j++)
        if (same_layer(fit, first, j) && moved(&fit->constant[j]))
            put(&fit->constant[j], &values);
    json_object(json, NULL);
    json_text(json, "of", fit->constant[first].layer);
    write_remarks(fit, first, json);
    fields_write(json, fields, n, &values);
    json_close(json);
}

char *ty_site_write(const struct ty_site_fit *fit, const char *name, const struct ty_profile *base)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n);
    struct json_writer json;
    struct ty_profile site;
    fill_site(fit, name, base, &site);
    json_begin(&json);
    json_object(&json, NULL);
    fields_write(&json, fields, n, &site);
    json_array(&json, "refit");
    for (uint32_t j = TY_N_SITE; j < fit->n_constants; j++) {
        bool first = moved(&fit->constant[j]);
        for (uint32_t k = TY_N_SITE; k < j && first; k++)
            first = !(moved(&fit->constant[k]) && same_layer(fit, k, j));
        if (first)
            write_layer(fit, j, &json);
    }
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}
