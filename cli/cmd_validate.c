/* SPDX-License-Identifier: MIT
 * `trainyard validate`: predicts the runs of a table and prints how far off it is. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

static void print_stats(const char *name, const struct ty_error_stats *stats)
{
    if (stats->n == 0)
        return;
    printf("  %-20s %5u %8.1f %8.1f %8.1f %+8.1f\n", name, stats->n, 100.0 * stats->median_ape,
           100.0 * stats->mean_ape, 100.0 * stats->p90_ape, 100.0 * stats->bias);
}

static bool seen_before(const struct ty_validation *validation, enum ty_run_key key, uint32_t row)
{
    const char *value = ty_run_value(&validation->rows[row], key);
    for (uint32_t i = 0; i < row; i++)
        if (strcmp(ty_run_value(&validation->rows[i], key), value) == 0)
            return true;
    return false;
}

static void print_groups(const struct ty_validation *validation, enum ty_run_key key,
                         const char *title)
{
    printf("\n%-22s %5s %8s %8s %8s %8s\n", title, "n", "median", "mean", "P90", "bias");
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        if (seen_before(validation, key, i))
            continue;
        const char *value = ty_run_value(&validation->rows[i], key);
        const struct ty_error_stats stats = ty_validation_stats(validation, key, value, false);
        print_stats(*value ? value : "(none)", &stats);
    }
}

static void print_refusals(const struct ty_validation *validation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++)
        n += *validation->rows[i].refused != '\0';
    printf("\nRefused: %u of %u rows\n", n, validation->n_rows);
    for (uint32_t i = 0; i < validation->n_rows; i++)
        if (*validation->rows[i].refused)
            printf("  %-16s %s\n", validation->rows[i].id, validation->rows[i].refused);
}

static void print_table(const struct ty_validation *validation)
{
    printf("Error of the predicted step time, percent of the measured one\n"
           "(presets: constants of a fit over 639 published runs; for rows of that corpus this\n"
           "is the error of the fit itself, not accuracy; bias: median signed error)\n");
    print_groups(validation, TY_RUN_SOURCE, "source");
    print_groups(validation, TY_RUN_GPU, "GPU");
    print_groups(validation, TY_RUN_STACK, "stack");
    print_groups(validation, TY_RUN_KIND, "kind");
    const struct ty_error_stats all = ty_validation_stats(validation, TY_RUN_SOURCE, NULL, false);
    const struct ty_error_stats clean = ty_validation_stats(validation, TY_RUN_SOURCE, NULL, true);
    printf("\n");
    print_stats("all rows", &all);
    print_stats("clean rows", &clean);
    print_refusals(validation);
}

int cmd_validate(struct cli_args *args)
{
    struct ty_error error = {0};
    if (!args->runs) {
        cli_refuse(&error, "validate", "needs --runs FILE, a CSV table of measured runs");
        return cli_fail(&error);
    }
    struct ty_validation validation;
    if (ty_validate_runs(args->runs, args->jobs, &validation, &error) != TY_OK)
        return cli_fail(&error);
    const uint32_t n = ty_validation_stats(&validation, TY_RUN_SOURCE, NULL, false).n;
    if (args->json) {
        char *text = ty_validation_json(&validation);
        fputs(text ? text : "", stdout);
        ty_text_free(text);
    } else {
        print_table(&validation);
    }
    ty_validation_free(&validation);
    return n > 0 ? CLI_OK : CLI_FAILED;
}
