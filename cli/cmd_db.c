/* SPDX-License-Identifier: MIT
 * `trainyard db merge`: the shards of a study in one file. */
#include "cli/cli.h"
#include "include/trainyard_study.h"
#include <string.h>

int cmd_db(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_merged merged;
    if (args->n_words < 1 || strcmp(args->words[0], "merge") != 0 || args->n_words < 3) {
        cli_refuse(&error, "db", "is used as: trainyard db merge OUT IN...");
        return cli_fail(&error);
    }
    if (ty_store_merge(args->words[1], &args->words[2], args->n_words - 2, &merged, &error) !=
        TY_OK)
        return cli_fail(&error);
    char rows[40], twice[40];
    printf("%s: %s rows from %u files", args->words[1],
           cli_count_text((double)merged.n_rows, rows, sizeof rows), args->n_words - 2);
    if (merged.n_twice)
        printf(", %s left out that were there already",
               cli_count_text((double)merged.n_twice, twice, sizeof twice));
    printf("\n");
    return CLI_OK;
}
