/* SPDX-License-Identifier: MIT
 * JSON of a division of a cluster among jobs. */
#include "include/trainyard_tools.h"
#include "reports/json.h"

static void write_gains(struct json_writer *json, const struct ty_split_share *share)
{
    json_object(json, "gain_tokens_per_s");
    for (int i = 0; i < TY_N_SPLIT_RESOURCES; i++)
        json_number(json, ty_split_resource_name(i, NULL), share->gain[i]);
    json_close(json);
}

static void write_curve(struct json_writer *json, const struct ty_division *division, uint32_t j)
{
    json_array(json, "curve");
    for (uint32_t k = 1; k <= division->split->n_units; k++) {
        const double speed = division->split->jobs[j].tokens_per_s[k];
        if (!(speed > 0.0))
            continue;
        json_object(json, NULL);
        json_count(json, "gpus", (uint64_t)k * division->unit_gpus);
        json_number(json, "tokens_per_s", speed);
        json_close(json);
    }
    json_close(json);
}

static void write_job(struct json_writer *json, const struct ty_division *division, uint32_t j)
{
    const struct ty_split_share *share = &division->result->share[j];
    const struct ty_plan *plans = division->plans[j];
    const uint64_t unit = division->unit_gpus;
    json_object(json, NULL);
    json_text(json, "name", division->list->entry[j].name);
    json_count(json, "gpus", share->units * unit);
    json_number(json, "tokens_per_s", share->tokens_per_s);
    json_number(json, "equal_tokens_per_s", share->equal_tokens_per_s);
    json_number(json, "normalised", share->tokens_per_s / share->equal_tokens_per_s);
    json_number(json, "weight", division->split->jobs[j].weight);
    json_number(json, "cores", share->cores);
    json_number(json, "cache_bytes", share->cache_bytes);
    json_number(json, "read_bytes_per_s", share->read_bytes_per_s);
    json_text(json, "limit", ty_split_resource_name(share->limit, NULL));
    write_gains(json, share);
    json_count(json, "next_gpus", share->next_units * unit);
    json_number(json, "prepare_s", share->prepare_s);
    json_number(json, "start_s", share->start_s);
    json_number(json, "finish_s", share->finish_s);
    json_number(json, "deadline_s", division->split->jobs[j].deadline_s);
    write_curve(json, division, j);
    if (plans && share->units)
        json_plan(json, "plan", &plans[share->units]);
    json_close(json);
}

char *ty_division_json(const struct ty_division *division)
{
    const struct ty_split_result *result = division->result;
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "objective", ty_split_objective_name(division->split->objective));
    json_number(&json, "value", result->value);
    json_number(&json, "equal", result->equal);
    json_number(&json, "bound", result->bound);
    json_bool(&json, "proven", result->bound == result->value);
    json_number(&json, "all_prepare_first_s", result->in_row_s);
    json_count(&json, "unit_gpus", division->unit_gpus);
    json_count(&json, "gpus", (uint64_t)division->split->n_units * division->unit_gpus);
    json_object(&json, "free");
    json_count(&json, "gpus", (uint64_t)result->free_units * division->unit_gpus);
    json_number(&json, "cores", result->free_cores);
    json_number(&json, "cache_bytes", result->free_cache_bytes);
    json_number(&json, "read_bytes_per_s", result->free_read_bytes_per_s);
    json_close(&json);
    json_array(&json, "jobs");
    for (uint32_t j = 0; j < result->n_jobs; j++)
        write_job(&json, division, j);
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}
