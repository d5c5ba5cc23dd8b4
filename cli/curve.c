/* SPDX-License-Identifier: MIT
 * The curve of a job of a file over GPU counts, by search. */
#include "cli/cli.h"
#include <stdlib.h>

ty_status cli_search_curve(const struct cli_args *args, const struct ty_split_entry *entry,
                           const struct cli_curve *curve, struct ty_error *error)
{
    struct ty_search *search = calloc(1, sizeof *search);
    struct ty_model *model = calloc(1, sizeof *model);
    struct ty_profile profile;
    ty_status status = TY_OK;
    if (!search || !model)
        status = cli_refuse(error, entry->name, "out of memory");
    if (status == TY_OK)
        status = cli_load_model(args, entry->model, model, error);
    if (status == TY_OK)
        status = cli_load_profile(args, args->profile, curve->cluster, &profile, error);
    if (status == TY_OK) {
        *search = (struct ty_search){.model = model,
                                     .cluster = curve->cluster,
                                     .profile = &profile,
                                     .space = entry->space,
                                     .n_threads = args->jobs,
                                     .allow_tight = args->tight};
        status = ty_split_curve(search, curve->unit_gpus, curve->n_units, curve->tokens_per_s,
                                curve->plans, error);
    }
    free(model);
    free(search);
    return status;
}
