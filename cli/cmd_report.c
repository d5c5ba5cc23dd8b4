/* SPDX-License-Identifier: MIT
 * `trainyard report`: draws a database. */
#include "cli/cli.h"

int cmd_report(struct cli_args *args)
{
    struct ty_error error = {0};
    uint32_t n_plots = 0;
    if (!args->db || !args->out) {
        cli_refuse(&error, "report", "needs --db FILE and --out FOLDER");
        return cli_fail(&error);
    }
    if (ty_report_write(args->db, args->out, &n_plots, &error) != TY_OK)
        return cli_fail(&error);
    printf("%s/index.html: %u plots\n", args->out, n_plots);
    if (n_plots == 0 && !args->quiet)
        cli_warn("gnuplot drew nothing: data and scripts are in %s", args->out);
    return CLI_OK;
}
