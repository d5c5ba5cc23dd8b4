/* SPDX-License-Identifier: MIT
 * What commands about one plan share: a predictor for the inputs given, and the trace. */
#include "cli/cli.h"
#include "include/trainyard_calibrate.h"
#include <stdlib.h>

/* Without runs like the plan its interval is the widest. */
static ty_status widen_unseen(struct cli_inputs *inputs, struct ty_error *error)
{
    struct ty_plan plan;
    struct ty_evidence evidence;
    if (ty_plan_resolve(&inputs->model, &inputs->cluster, &inputs->profile, &inputs->plan, &plan,
                        NULL, 0, NULL) != TY_OK)
        return TY_OK; /* the predictor will say what is wrong */
    const ty_status status =
        ty_evidence_of(&inputs->model, &inputs->cluster, &plan, &evidence, error);
    if (status == TY_OK && evidence.n_rows == 0)
        ty_evidence_widen(&inputs->profile);
    return status;
}

int cli_with_predictor(struct cli_args *args, cli_answer_fn *answer)
{
    struct ty_error error = {0};
    struct cli_inputs *inputs = calloc(1, sizeof *inputs);
    ty_predictor *predictor = NULL;
    int status;
    if (!inputs) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    if (cli_load(args, false, inputs, &error) != TY_OK || widen_unseen(inputs, &error) != TY_OK ||
        ty_predictor_create(&inputs->model, &inputs->cluster, &inputs->profile, NULL, &predictor,
                            &error) != TY_OK)
        status = cli_fail(&error);
    else
        status = answer(args, inputs, predictor, &error);
    ty_predictor_destroy(predictor);
    cli_inputs_free(inputs);
    free(inputs);
    return status;
}

int cli_write_trace(const struct cli_args *args, const ty_predictor *predictor, bool simulated,
                    int status)
{
    struct ty_error error = {0};
    if (!args->trace)
        return status;
    if (!simulated) {
        cli_warn("unused: --trace %s (nothing was simulated)", args->trace);
        return status;
    }
    if (ty_trace_write(predictor, args->trace, &error) != TY_OK)
        return cli_fail(&error);
    return status;
}
