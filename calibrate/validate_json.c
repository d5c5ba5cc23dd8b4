/* SPDX-License-Identifier: MIT
 * JSON of a validation. */
#include "include/trainyard_tools.h"
#include "models/spec/json_write.h"

#include <math.h>
#include <string.h>

static void write_stats(struct json_writer *json, const struct ty_validation *validation,
                        const struct ty_run_filter *filter)
{
    const struct ty_error_stats stats = ty_validation_stats(validation, filter);
    json_count(json, "n", stats.n);
    json_number(json, "median_ape", stats.median_ape);
    json_number(json, "mean_ape", stats.mean_ape);
    json_number(json, "p90_ape", stats.p90_ape);
    json_number(json, "bias", stats.bias);
}

static void write_overall(struct json_writer *json, const struct ty_validation *validation)
{
    static const struct {
        const char *key;
        struct ty_run_filter filter;
    } figures[] = {
        {"overall", {TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, false}},
        {"overall_clean", {TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, true}},
        {"overall_no_site", {TY_RUN_STEP_TIME_NO_SITE, TY_RUN_SOURCE, NULL, false}},
        {"overall_no_site_clean", {TY_RUN_STEP_TIME_NO_SITE, TY_RUN_SOURCE, NULL, true}},
        {"memory", {TY_RUN_MEMORY, TY_RUN_SOURCE, NULL, false}},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        json_object(json, figures[i].key);
        write_stats(json, validation, &figures[i].filter);
        json_close(json);
    }
}

static void write_groups(struct json_writer *json, const struct ty_validation *validation,
                         enum ty_run_key key, const char *name)
{
    json_array(json, name);
    const char *value;
    for (uint32_t i = 0; (value = ty_validation_value(validation, key, i)); i++) {
        const struct ty_run_filter filter = {TY_RUN_STEP_TIME, key, value, false};
        json_object(json, NULL);
        json_text(json, "value", value);
        write_stats(json, validation, &filter);
        json_number(json, "coverage_80", ty_validation_coverage(validation, &filter, 80, NULL));
        json_number(json, "coverage_90", ty_validation_coverage(validation, &filter, 90, NULL));
        json_close(json);
    }
    json_close(json);
}

static void write_refusals(struct json_writer *json, const struct ty_validation *validation)
{
    json_array(json, "refused");
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (!*row->refused)
            continue;
        json_object(json, NULL);
        json_text(json, "id", row->id);
        json_text(json, "reason", row->refused);
        json_close(json);
    }
    json_close(json);
}

/* "a;b;c" as an array of texts. */
static void write_list(struct json_writer *json, const char *key, const char *list)
{
    char item[sizeof((struct ty_run_row *)NULL)->assumed];
    json_array(json, key);
    while (*list) {
        const size_t length = strcspn(list, ";");
        memcpy(item, list, length);
        item[length] = '\0';
        json_text(json, NULL, item);
        list += length + (list[length] == ';');
    }
    json_close(json);
}

static void write_verdicts(struct json_writer *json, const struct ty_validation *validation)
{
    static const char *const outcomes[] = {[TY_RUN_RAN] = "ran",
                                           [TY_RUN_RAN_OPEN] = "ran_recompute_unknown",
                                           [TY_RUN_OUT_OF_MEMORY] = "out_of_memory"};
    uint32_t n[TY_N_OUTCOMES][3];
    ty_validation_verdicts(validation, n);
    json_object(json, "verdicts");
    for (int outcome = 0; outcome < TY_N_OUTCOMES; outcome++) {
        json_object(json, outcomes[outcome]);
        for (int fit = TY_FIT_YES; fit >= TY_FIT_NO; fit--)
            json_number(json, ty_fit_name((enum ty_fit)fit), n[outcome][fit]);
        json_close(json);
    }
    json_close(json);
}

static void write_rows(struct json_writer *json, const struct ty_validation *validation)
{
    json_array(json, "rows");
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (*row->refused)
            continue;
        json_object(json, NULL);
        json_text(json, "id", row->id);
        json_number(json, "measured", row->measured_s);
        json_number(json, "predicted", row->predicted_s);
        json_number(json, "predicted_no_site", row->no_site_s);
        json_number(json, "lo", row->interval_80_s[0]);
        json_number(json, "hi", row->interval_80_s[1]);
        json_number(json, "measured_mem_bytes", row->measured_mem_bytes);
        json_number(json, "predicted_mem_bytes", row->predicted_mem_bytes);
        json_text(json, "memory_view", row->memory_view);
        json_text(json, "fit", ty_fit_name(row->fit));
        json_bool(json, "in_fit", row->in_fit);
        write_list(json, "defaulted", row->assumed);
        json_text(json, "stack", row->stack);
        json_text(json, "release", row->release);
        json_text(json, "site", row->site);
        json_text(json, "family", row->family);
        json_close(json);
    }
    json_close(json);
}

static void write_intervals(struct json_writer *json, const struct ty_validation *validation,
                            const char *key, uint32_t percent)
{
    uint32_t n;
    const double coverage = ty_validation_coverage(validation, NULL, percent, &n);
    json_object(json, key);
    json_number(json, "nominal", percent / 100.0);
    json_number(json, "coverage", coverage);
    json_count(json, "n", n);
    json_close(json);
}

static void write_rankings(struct json_writer *json, const struct ty_rankings *rankings)
{
    json_array(json, "ranking");
    for (uint32_t i = 0; i < rankings->n; i++) {
        const struct ty_ranking *sweep = &rankings->sweeps[i];
        json_object(json, NULL);
        json_text(json, "group", sweep->sweep);
        json_count(json, "n", sweep->n);
        json_number(json, "spearman", sweep->spearman);
        json_number(json, "kendall", sweep->kendall);
        json_number(json, "regret", sweep->regret);
        json_bool(json, "noisy", sweep->noisy);
        json_close(json);
    }
    json_close(json);
    json_object(json, "ranking_overall");
    json_count(json, "n", rankings->n_clean);
    json_number(json, "spearman", rankings->spearman);
    json_number(json, "kendall", rankings->kendall);
    json_number(json, "mean_regret", rankings->mean_regret);
    json_number(json, "median_regret", rankings->median_regret);
    json_close(json);
}

static uint32_t n_predicted(const struct ty_validation *validation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++)
        n += *validation->rows[i].refused == '\0';
    return n;
}

char *ty_validation_json(const struct ty_validation *validation)
{
    struct ty_rankings rankings;
    if (ty_validation_rankings(validation, &rankings, NULL) != TY_OK)
        return NULL;
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_count(&json, "predicted", n_predicted(validation));
    write_refusals(&json, validation);
    write_overall(&json, validation);
    write_verdicts(&json, validation);
    write_groups(&json, validation, TY_RUN_SOURCE, "by_source");
    write_groups(&json, validation, TY_RUN_GPU, "by_gpu");
    write_groups(&json, validation, TY_RUN_STACK, "by_stack");
    write_groups(&json, validation, TY_RUN_KIND, "by_kind");
    write_groups(&json, validation, TY_RUN_FAMILY, "by_family");
    write_groups(&json, validation, TY_RUN_SCALE, "by_scale");
    write_intervals(&json, validation, "intervals", 80);
    write_intervals(&json, validation, "intervals_90", 90);
    write_rankings(&json, &rankings);
    write_rows(&json, validation);
    json_close(&json);
    ty_rankings_free(&rankings);
    return json_finish(&json);
}
