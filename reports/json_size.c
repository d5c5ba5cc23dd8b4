/* SPDX-License-Identifier: MIT
 * JSON of a sizing: the keys of the machine to take at the top, then every kind tried. */
#include "include/trainyard_tools.h"
#include "reports/json.h"

#include <math.h>

#define MAX_ASSUMPTIONS 32

static void write_quantiles(struct json_writer *json, const char *key, const double value[3],
                            double unit)
{
    static const char *const names[TY_N_QUANTILES] = {"p10", "p50", "p90"};
    json_object(json, key);
    for (int i = 0; i < TY_N_QUANTILES; i++)
        json_number(json, names[i], value[i] / unit);
    json_close(json);
}

static void write_phases(struct json_writer *json, const struct ty_size *size,
                         const struct ty_size_result *result)
{
    json_array(json, "phases");
    for (uint32_t i = 0; i < result->n_phases; i++) {
        const struct ty_score *score = &result->phase[i];
        json_object(json, NULL);
        json_number(json, "tokens", size->job->phase[i].tokens);
        json_number(json, "days", result->phase_s[i] / 86400.0);
        json_number(json, "step_time_s", score->step_time_s);
        json_number(json, "tokens_per_s", score->tokens_per_s);
        json_number(json, "mfu", score->mfu);
        json_plan(json, "plan", &score->plan);
        json_close(json);
    }
    json_close(json);
}

static void write_assumptions(struct json_writer *json, const struct ty_size *size,
                              const struct ty_size_result *result)
{
    struct ty_note note[MAX_ASSUMPTIONS];
    const uint32_t n = ty_size_assumptions(size, result, note, MAX_ASSUMPTIONS);
    json_array(json, "assumptions");
    for (uint32_t i = 0; i < n; i++) {
        json_object(json, NULL);
        json_text(json, "field", note[i].field);
        json_text(json, "value", note[i].value);
        json_text(json, "reason", note[i].reason);
        json_close(json);
    }
    json_close(json);
}

/* Inside an open object. */
static void write_size(struct json_writer *json, const struct ty_size *size,
                       const struct ty_size_result *result)
{
    json_bool(json, "feasible", result->feasible);
    json_text(json, "cluster", size->cluster->name);
    json_text(json, "gpu", size->cluster->gpu.name);
    if (!result->feasible)
        return;
    json_count(json, "gpus", result->gpus);
    json_count(json, "gpus_paid", result->gpus_paid);
    json_count(json, "spares", result->spares);
    write_quantiles(json, "days", result->time_s, 86400.0);
    write_quantiles(json, "cost", result->money, 1.0);
    json_text(json, "currency", size->price ? size->price->currency : NULL);
    json_text(json, "price_date", size->price ? size->price->date : NULL);
    json_number(json, "energy_mwh", result->energy_j / 3.6e9);
    json_number(json, "co2_t", result->co2_kg / 1000.0);
    json_number(json, "p_meet_deadline", result->p_meet_deadline);
    json_number(json, "p_meet_budget", result->p_meet_budget);
    json_number(json, "useful_ratio", result->goodput.useful_ratio);
    json_number(json, "stretch_ratio", result->goodput.stretch_ratio);
    json_number(json, "mtbf_s", result->goodput.mtbf_s);
    json_number(json, "checkpoint_interval_s", result->goodput.interval_s);
    json_plan(json, "plan", &result->phase[0].plan);
    write_phases(json, size, result);
    write_assumptions(json, size, result);
}

char *ty_size_json(const struct ty_size *size, const struct ty_size_result *result, uint32_t n,
                   uint32_t best)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    if (best < n)
        write_size(&json, &size[best], &result[best]);
    else
        json_bool(&json, "feasible", false);
    json_array(&json, "machines");
    for (uint32_t i = 0; i < n; i++) {
        json_object(&json, NULL);
        write_size(&json, &size[i], &result[i]);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}
