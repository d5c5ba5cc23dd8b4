/* SPDX-License-Identifier: MIT
 * `trainyard predict`: one plan. */
#include "cli/cli.h"
#include "include/trainyard_calibrate.h"
#include <math.h>
#include <stdlib.h>

static ty_status store_prediction(const struct cli_args *args, const struct cli_inputs *inputs,
                                  const struct ty_prediction *prediction, struct ty_error *error)
{
    ty_store *store = NULL;
    int64_t study_id = 0;
    const struct ty_study study = {.command = "predict",
                                   .model = &inputs->model,
                                   .cluster = &inputs->cluster,
                                   .profile = &inputs->profile,
                                   .price = inputs->options.price,
                                   .storage = inputs->options.storage};
    ty_status status = ty_store_open(args->db, false, &store, error);
    if (status == TY_OK)
        status = ty_store_begin(store, &study, &study_id, error);
    if (status == TY_OK)
        status = ty_store_add_prediction(store, study_id, prediction, (double)NAN, error);
    if (status == TY_OK)
        status = ty_store_flush(store, error);
    ty_store_close(store);
    return status;
}

static int print_json(const struct ty_prediction *prediction, const struct cli_inputs *inputs,
                      const struct ty_evidence *evidence)
{
    struct ty_forecast forecast;
    struct ty_error error = {0};
    const bool run = cli_forecast(prediction, inputs, &forecast, &error);
    if (error.code != TY_OK)
        return cli_fail(&error);
    return cli_print(
        ty_prediction_json(prediction, &inputs->profile, evidence, run ? &forecast : NULL));
}

static void print_evidence(const struct ty_evidence *evidence)
{
    if (evidence->n_rows == 0)
        printf("no evidence: no measured run is like this (%s); unseen: %s\n", evidence->cell,
               evidence->unseen);
}

static int predict(const struct cli_args *args, struct cli_inputs *inputs, ty_predictor *predictor,
                   struct ty_error *error)
{
    struct ty_prediction prediction;
    struct ty_evidence evidence;
    int status = CLI_OK;
    if (ty_predictor_run(predictor, &inputs->plan, &inputs->options, &prediction, error) != TY_OK)
        return cli_write_trace(args, predictor, error->code == TY_ERR_LIMIT, cli_fail(error));
    if (ty_evidence_of(&inputs->model, &inputs->cluster, &prediction.plan, &evidence, error) !=
        TY_OK)
        return cli_fail(error);
    if (args->db && store_prediction(args, inputs, &prediction, error) != TY_OK)
        status = cli_fail(error);
    cli_warn_unused(args, UINT32_MAX);
    if (!args->json) {
        print_evidence(&evidence);
        cli_print_prediction(&prediction, inputs);
    } else if (print_json(&prediction, inputs, &evidence) != CLI_OK) {
        status = CLI_FAILED;
    }
    const bool answered = prediction.feasible || isfinite(prediction.step_time_s);
    if (!answered && !args->json)
        cli_print_suggestion(inputs);
    status = cli_write_trace(args, predictor, isfinite(prediction.step_time_s), status);
    return status == CLI_OK && !answered ? CLI_INFEASIBLE : status;
}

static int answer(const struct cli_args *args, struct cli_inputs *inputs, ty_predictor *predictor,
                  struct ty_error *error)
{
    if (args->scenario &&
        ty_scenario_load(args->scenario, &inputs->options.scenario, error) != TY_OK)
        return cli_fail(error);
    const int status = predict(args, inputs, predictor, error);
    ty_scenario_free(inputs->options.scenario);
    return status;
}

int cmd_predict(struct cli_args *args)
{
    return cli_with_predictor(args, answer);
}
