/* SPDX-License-Identifier: MIT
 * Any bytes as a scenario: read, then run on a small plan, or refused with a place and a reason. */
#include "include/trainyard_tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void run(const struct ty_scenario *scenario)
{
    static struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
    struct ty_prediction answer;
    struct ty_error error = {0};
    ty_predictor *predictor;
    const struct ty_options options = {
        .rung = TY_RUNG_FULL, .scenario = scenario, .max_events = 200000, .max_bytes = 100000000};
    require(ty_model_load("llama3-8b", &model, &error) == TY_OK);
    require(ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK);
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 16;
    plan.tp = 2;
    plan.gbs = 16;
    require(ty_predictor_create(&model, &cluster, &profile, NULL, &predictor, &error) == TY_OK);
    const ty_status status = ty_predictor_run(predictor, &plan, &options, &answer, &error);
    require(status == TY_OK ? answer.step_time_s > 0.0 : error.where[0] && error.text[0]);
    ty_predictor_destroy(predictor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct ty_scenario *scenario;
    struct ty_error error = {0};
    if (ty_scenario_parse((const char *)data, bytes, "scenario", &scenario, &error) != TY_OK) {
        require(error.where[0] && error.text[0]);
        return 0;
    }
    if (scenario->n_steps <= 4)
        run(scenario);
    ty_scenario_free(scenario);
    return 0;
}
