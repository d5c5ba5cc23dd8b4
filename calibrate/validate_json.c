/* SPDX-License-Identifier: MIT
 * JSON of a validation: overall, by source, GPU, stack and kind, refusals, rows. */
#include "include/trainyard_tools.h"
#include "models/spec/json_write.h"

#include <math.h>
#include <string.h>

static void write_stats(struct json_writer *json, const struct ty_error_stats *stats)
{
    json_count(json, "n", stats->n);
    json_number(json, "median_ape", stats->median_ape);
    json_number(json, "mean_ape", stats->mean_ape);
    json_number(json, "p90_ape", stats->p90_ape);
    json_number(json, "bias", stats->bias);
}

/* True for the first row that has its value under the key. */
static bool first_of_value(const struct ty_validation *validation, enum ty_run_key key, uint32_t i)
{
    const char *value = ty_run_value(&validation->rows[i], key);
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(ty_run_value(&validation->rows[j], key), value) == 0)
            return false;
    return true;
}

static void write_groups(struct json_writer *json, const struct ty_validation *validation,
                         enum ty_run_key key, const char *name)
{
    json_array(json, name);
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        if (!first_of_value(validation, key, i))
            continue;
        const char *value = ty_run_value(&validation->rows[i], key);
        const struct ty_error_stats stats = ty_validation_stats(validation, key, value, false);
        json_object(json, NULL);
        json_text(json, "value", value);
        write_stats(json, &stats);
        json_close(json);
    }
    json_close(json);
}

static void write_rows(struct json_writer *json, const struct ty_validation *validation)
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
    json_array(json, "rows");
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        if (isnan(row->predicted_s))
            continue;
        json_object(json, NULL);
        json_text(json, "id", row->id);
        json_number(json, "measured", row->measured_s);
        json_number(json, "predicted", row->predicted_s);
        json_number(json, "measured_mem_bytes", row->measured_mem_bytes);
        json_number(json, "predicted_mem_bytes", row->predicted_mem_bytes);
        json_close(json);
    }
    json_close(json);
}

char *ty_validation_json(const struct ty_validation *validation)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    const struct ty_error_stats all = ty_validation_stats(validation, TY_RUN_SOURCE, NULL, false);
    json_count(&json, "predicted", all.n);
    json_object(&json, "overall");
    write_stats(&json, &all);
    json_close(&json);
    const struct ty_error_stats clean = ty_validation_stats(validation, TY_RUN_SOURCE, NULL, true);
    json_object(&json, "overall_clean");
    write_stats(&json, &clean);
    json_close(&json);
    write_groups(&json, validation, TY_RUN_SOURCE, "by_source");
    write_groups(&json, validation, TY_RUN_GPU, "by_gpu");
    write_groups(&json, validation, TY_RUN_STACK, "by_stack");
    write_groups(&json, validation, TY_RUN_KIND, "by_kind");
    write_rows(&json, validation);
    json_close(&json);
    return json_finish(&json);
}
