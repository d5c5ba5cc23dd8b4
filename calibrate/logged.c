/* SPDX-License-Identifier: MIT
 * A training log as what a prediction is compared with: the plan it prints and its steady step. */
#include "calibrate/import.h"
#include "include/trainyard_gap.h"
#include "models/spec/fields_read.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* at.a.b as a number; NAN when it is not there. */
static double number_at(const struct json_at *at, const char *a, const char *b)
{
    struct json_at outer, inner;
    double value;
    if (!json_find(at, a, &outer) || !json_find(&outer, b, &inner) ||
        json_type_of(&inner) != JSON_NUMBER ||
        json_get_double(&inner, -HUGE_VAL, HUGE_VAL, &value, NULL) != TY_OK)
        return (double)NAN;
    return value;
}

/* A field the log has but no plan can have is left out. */
static void read_plan(const struct json_at *top, struct ty_plan *plan)
{
    struct json_at object, item = {0};
    ty_init(TY_KIND_PLAN, plan);
    if (!json_find(top, "plan", &object))
        return;
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    while (json_next(&object, &item)) {
        char text[32];
        const char *word = text;
        double number;
        if (json_type_of(&item) == JSON_NUMBER &&
            json_get_double(&item, 0.0, 1e15, &number, NULL) == TY_OK)
            text_format(text, sizeof text, "%.0f", number);
        else if (json_type_of(&item) != JSON_TEXT || json_get_text(&item, &word, NULL) != TY_OK)
            continue;
        for (size_t i = 0; i < n; i++) {
            struct ty_plan next = *plan;
            if (strcmp(fields[i].path, json_key(&item)) == 0 &&
                plan_set(&next, &fields[i], word, NULL) == TY_OK)
                *plan = next;
        }
    }
}

double logged_read(const struct ty_record *record, struct ty_logged *out)
{
    struct json_document document = {0};
    if (json_parse(record->json, strlen(record->json), "log", &document, NULL) != TY_OK)
        return 0.0;
    const double median_s = number_at(&document.top, "step_time_s", "median");
    out->step_s = isfinite(median_s) ? median_s : number_at(&document.top, "step_time_s", "mean");
    out->tokens_per_s_per_gpu = number_at(&document.top, "tokens_per_s_per_gpu", "value");
    read_plan(&document.top, &out->plan);
    const double n_lines = number_at(&document.top, "lines", "kept");
    json_free(&document);
    return isfinite(out->step_s) || isfinite(out->tokens_per_s_per_gpu) ? fmax(n_lines, 0.5) : 0.0;
}

ty_status ty_logged_load(const char *path, struct ty_logged *out, struct ty_error *error)
{
    struct ty_import import = {0};
    ty_status status = ty_import_file(path, &import, error);
    if (status != TY_OK)
        return status;
    double most = 0.0;
    for (uint32_t i = 0; i < import.n_records; i++) {
        struct ty_logged run;
        const double n_lines =
            import.records[i].usable ? logged_read(&import.records[i], &run) : 0.0;
        if (!(n_lines > most))
            continue;
        most = n_lines;
        *out = run;
        text_format(out->format, sizeof out->format, "%s", import.format);
    }
    ty_import_free(&import);
    return most > 0.0 ? TY_OK
                      : error_set(error, TY_ERR_INPUT, path,
                                  "holds no step time and no token rate of a training run");
}
