/* SPDX-License-Identifier: MIT
 * `trainyard export launch`: what makes a framework run a plan. */
#include "cli/cli.h"
#include "include/trainyard_study.h"
#include <stdlib.h>
#include <string.h>

/* "study.db#3" */
static ty_status plan_of_study(const struct cli_args *args, struct ty_plan *plan,
                               uint32_t *gpus_per_node, struct ty_error *error)
{
    char path[256], *end = NULL;
    const char *hash = strrchr(args->from, '#');
    const size_t length = hash ? (size_t)(hash - args->from) : strlen(args->from);
    const unsigned long rank = hash ? strtoul(hash + 1, &end, 10) : 1;
    if (length >= sizeof path || (hash && (*end || rank < 1 || rank > UINT32_MAX)))
        return cli_refuse(error, "--from", "\"%s\" is not FILE#N with N from 1", args->from);
    memcpy(path, args->from, length);
    path[length] = '\0';
    ty_store *store = NULL;
    ty_status status = ty_store_open(path, true, &store, error);
    if (status == TY_OK)
        status = ty_store_plan(store, (uint32_t)rank, plan, gpus_per_node, error);
    ty_store_close(store);
    return status == TY_ERR_IO ? (error->code = TY_ERR_INPUT) : status;
}

/* A framework would refuse it at the start of the job, or run something else. */
static ty_status check_legal(const struct cli_inputs *inputs, const struct ty_plan *plan,
                             struct ty_error *error)
{
    struct ty_violation broken;
    uint32_t n = 0;
    ty_plan_violations(&inputs->model, &inputs->cluster, plan, &broken, 1, &n);
    if (n == 0)
        return TY_OK;
    cli_refuse(error, broken.rule, "%s%s%s", broken.text, *broken.legal ? "; legal: " : "",
               broken.legal);
    return error->code = TY_ERR_INFEASIBLE;
}

static ty_status plan_of_flags(const struct cli_args *args, struct ty_plan *plan,
                               uint32_t *gpus_per_node, struct ty_error *error)
{
    struct cli_inputs *inputs = calloc(1, sizeof *inputs);
    if (!inputs)
        return cli_refuse(error, "export", "out of memory");
    ty_status status = cli_load(args, false, inputs, error);
    if (status == TY_OK)
        status = ty_plan_resolve(&inputs->model, &inputs->cluster, &inputs->profile, &inputs->plan,
                                 plan, NULL, 0, NULL);
    if (status == TY_OK)
        status = check_legal(inputs, plan, error);
    *gpus_per_node = inputs->cluster.gpus_per_node ? inputs->cluster.gpus_per_node : 8;
    cli_inputs_free(inputs);
    free(inputs);
    return status;
}

int cmd_export(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_plan plan;
    uint32_t gpus_per_node = 0;
    char *text = NULL;
    if (args->n_words != 1 || strcmp(args->words[0], "launch") != 0)
        cli_refuse(&error, "export", "is used as: trainyard export launch --framework F ...");
    else if (!args->framework || strcmp(args->framework, "any") == 0)
        cli_refuse(&error, "--framework", "not given: megatron, torchtitan, deepspeed or nemo");
    else if (args->from && (args->n_settings || args->plan || args->arguments))
        cli_refuse(&error, "--from", "has a plan: flags of a plan have no effect");
    if (error.code != TY_OK)
        return cli_fail(&error);
    if ((args->from ? plan_of_study : plan_of_flags)(args, &plan, &gpus_per_node, &error) != TY_OK)
        return cli_fail(&error);
    if (ty_launch_write(args->framework, &plan, gpus_per_node, &text, &error) != TY_OK)
        return cli_fail(&error);
    fputs(text, stdout);
    ty_text_free(text);
    return CLI_OK;
}
