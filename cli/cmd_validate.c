/* SPDX-License-Identifier: MIT
 * `trainyard validate`: predicts the runs of a table and prints how far off it is. */
#include "cli/cli.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors of groups ----------------------------------------------------------------------- */

static void print_stats(const struct ty_validation *validation, const char *name,
                        const struct ty_run_filter *filter)
{
    const struct ty_error_stats stats = ty_validation_stats(validation, filter);
    uint32_t n = 0;
    const double in_80 = ty_validation_coverage(validation, filter, 80, &n);
    if (stats.n == 0)
        return;
    printf("  %-20s %5u %8.1f %8.1f %8.1f %+8.1f", name, stats.n, 100.0 * stats.median_ape,
           100.0 * stats.mean_ape, 100.0 * stats.p90_ape, 100.0 * stats.bias);
    if (n > 0 && filter->error == TY_RUN_STEP_TIME)
        printf(" %7.0f %7.0f", 100.0 * in_80,
               100.0 * ty_validation_coverage(validation, filter, 90, NULL));
    printf("\n");
}

static void print_header(const char *title)
{
    printf("\n%-22s %5s %8s %8s %8s %8s %7s %7s\n", title, "n", "median", "mean", "P90", "bias",
           "in 80%", "in 90%");
}

static void print_groups(const struct ty_validation *validation, enum ty_run_key key,
                         const char *title)
{
    const char *value;
    print_header(title);
    for (uint32_t i = 0; (value = ty_validation_value(validation, key, i)); i++)
        print_stats(validation, *value ? value : "(none)",
                    &(struct ty_run_filter){TY_RUN_STEP_TIME, key, value, false});
}

static void print_overall(const struct ty_validation *validation)
{
    static const struct {
        const char *name;
        struct ty_run_filter filter;
    } figures[] = {
        {"all runs", {TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, false}},
        {"clean runs", {TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, true}},
        {"clean, site unknown", {TY_RUN_STEP_TIME_NO_SITE, TY_RUN_SOURCE, NULL, true}},
        {"memory, all runs", {TY_RUN_MEMORY, TY_RUN_SOURCE, NULL, false}},
    };
    uint32_t n;
    const double in_80 = ty_validation_coverage(validation, NULL, 80, &n);
    const double in_90 = ty_validation_coverage(validation, NULL, 90, NULL);
    print_header("overall");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        print_stats(validation, figures[i].name, &figures[i].filter);
    if (n > 0)
        printf(
            "\n80 %% intervals hold %.1f %%, 90 %% intervals %.1f %% of %u measured step times\n",
            100.0 * in_80, 100.0 * in_90, n);
}

static void print_verdicts(const struct ty_validation *validation)
{
    static const char *const outcomes[] = {[TY_RUN_RAN] = "ran",
                                           [TY_RUN_RAN_OPEN] = "ran, recompute unknown",
                                           [TY_RUN_OUT_OF_MEMORY] = "out of memory"};
    uint32_t n[TY_N_OUTCOMES][3];
    ty_validation_verdicts(validation, n);
    printf("\n%-22s %8s %8s %13s\n", "memory, runs that", "fits", "tight", "does not fit");
    for (int outcome = 0; outcome < TY_N_OUTCOMES; outcome++)
        printf("  %-20s %8u %8u %13u\n", outcomes[outcome], n[outcome][TY_FIT_YES],
               n[outcome][TY_FIT_TIGHT], n[outcome][TY_FIT_NO]);
}

/* ---- order inside sweeps -------------------------------------------------------------------- */

static ty_status print_rankings(const struct ty_validation *validation, struct ty_error *error)
{
    struct ty_rankings rankings;
    const ty_status status = ty_validation_rankings(validation, &rankings, error);
    if (status != TY_OK)
        return status;
    printf("\nSweeps of layouts (correlation of predicted and measured order; regret: how much\n"
           "slower the predicted best is than the best, percent)\n"
           "      n spearman  kendall   regret\n");
    for (uint32_t i = 0; i < rankings.n; i++) {
        const struct ty_ranking *sweep = &rankings.sweeps[i];
        printf("  %5u %+8.2f %+8.2f %8.1f  %s%s\n", sweep->n, sweep->spearman, sweep->kendall,
               100.0 * sweep->regret, sweep->sweep, sweep->noisy ? " (noisy)" : "");
    }
    printf("  weighted mean of %u without noisy ones: spearman %.2f, kendall %.2f, regret %.1f "
           "(median %.1f)\n",
           rankings.n_clean, rankings.spearman, rankings.kendall, 100.0 * rankings.mean_regret,
           100.0 * rankings.median_regret);
    ty_rankings_free(&rankings);
    return TY_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static double off_by(const struct ty_run_row *row)
{
    const double error = fabs(row->predicted_s / row->measured_s - 1.0);
    return isnan(error) ? -1.0 : error;
}

static int by_error(const void *a, const void *b)
{
    const double left = off_by(*(const struct ty_run_row *const *)a);
    const double right = off_by(*(const struct ty_run_row *const *)b);
    return (left < right) - (left > right);
}

static void print_row(const struct ty_run_row *row)
{
    char plan[160], measured[40], predicted[40];
    printf("  %-16s %+7.1f  %s, measured %s  %s, %s, %u GPUs  %s\n", row->id,
           100.0 * (row->predicted_s / row->measured_s - 1.0),
           cli_time_text(row->predicted_s, predicted, sizeof predicted),
           cli_time_text(row->measured_s, measured, sizeof measured), row->model, row->gpu,
           row->plan.n_gpus, cli_plan_text(&row->plan, plan, sizeof plan));
}

static void print_worst(const struct ty_validation *validation, uint32_t n_worst)
{
    const struct ty_run_row **order = calloc(validation->n_rows + 1, sizeof *order);
    if (!order) {
        cli_warn("out of memory");
        return;
    }
    for (uint32_t i = 0; i < validation->n_rows; i++)
        order[i] = &validation->rows[i];
    qsort(order, validation->n_rows, sizeof *order, by_error);
    printf("\nLargest errors, percent\n");
    for (uint32_t i = 0; i < n_worst && i < validation->n_rows && off_by(order[i]) >= 0.0; i++)
        print_row(order[i]);
    free(order);
}

static uint32_t n_refused(const struct ty_validation *validation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++)
        n += *validation->rows[i].refused != '\0';
    return n;
}

static void print_refusals(const struct ty_validation *validation)
{
    printf("\nRefused: %u of %u rows\n", n_refused(validation), validation->n_rows);
    for (uint32_t i = 0; i < validation->n_rows; i++)
        if (*validation->rows[i].refused)
            printf("  %-16s %s\n", validation->rows[i].id, validation->rows[i].refused);
}

/* ---- the command ---------------------------------------------------------------------------- */

static uint32_t n_in_fit(const struct ty_validation *validation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++)
        n += validation->rows[i].in_fit && !*validation->rows[i].refused;
    return n;
}

static int print_all(const struct cli_args *args, const struct ty_validation *validation)
{
    struct ty_error error = {0};
    printf("Error of the predicted step time, percent of the measured one (bias: median signed "
           "error)\n");
    if (n_in_fit(validation))
        printf("The shipped constants were fitted on %u of these %u runs: for them this is the\n"
               "error of a fit, not accuracy.\n",
               n_in_fit(validation), validation->n_rows - n_refused(validation));
    print_groups(validation, TY_RUN_SOURCE, "source");
    print_groups(validation, TY_RUN_GPU, "GPU");
    print_groups(validation, TY_RUN_STACK, "stack");
    print_groups(validation, TY_RUN_KIND, "kind");
    print_groups(validation, TY_RUN_FAMILY, "family");
    print_groups(validation, TY_RUN_SCALE, "GPUs in the job");
    print_overall(validation);
    print_verdicts(validation);
    if (print_rankings(validation, &error) != TY_OK)
        return cli_fail(&error);
    if (args->worst)
        print_worst(validation, args->worst);
    print_refusals(validation);
    return CLI_OK;
}

static int print_json(const struct ty_validation *validation)
{
    return cli_print(ty_validation_json(validation));
}

static int plot(const char *folder, const struct ty_validation *validation)
{
    struct ty_error error = {0};
    uint32_t n_plots = 0;
    if (ty_validation_plot(validation, folder, &n_plots, &error) != TY_OK)
        return cli_fail(&error);
    if (n_plots == 0)
        cli_warn("%s: no plot was drawn, gnuplot is missing or failed; its script and data are "
                 "there",
                 folder);
    return CLI_OK;
}

static void print_held_out(const struct ty_validation *validation, const char *title)
{
    printf("\n%s\n", title);
    print_groups(validation, TY_RUN_FAMILY, "family");
    print_groups(validation, TY_RUN_SOURCE, "source");
    print_overall(validation);
}

static void print_own(const struct ty_own_error *own)
{
    printf("\nSites left out of the fit, n of their own runs given to calibrate runs: error of "
           "their others\n%8s %8s %8s %8s %8s\n",
           "own runs", "n", "median", "mean", "P90");
    for (int i = 0; i < TY_N_OWN; i++)
        printf("%8u %8u %8.1f %8.1f %8.1f\n", own[i].n_runs, own[i].n, 100.0 * own[i].median_ape,
               100.0 * own[i].mean_ape, 100.0 * own[i].p90_ape);
}

static void print_ratios(const struct ty_ratio_coverage ratios[2])
{
    static const char *const names[] = {"two plans", "two kinds of GPU"};
    printf(
        "\nRatios of two runs left out; widths from pairs of other models (five folds by a hash)\n"
        "%-22s %7s %7s %7s\n",
        "", "pairs", "in 80%", "in 90%");
    for (int i = 0; i < 2; i++)
        if (ratios[i].n > 0)
            printf("  %-20s %7u %7.1f %7.1f\n", names[i], ratios[i].n, 100.0 * ratios[i].in_80,
                   100.0 * ratios[i].in_90);
}

static void print_presets(const struct ty_validation *validation)
{
    printf("\nNothing fitted but one factor, from the other sweeps: error in percent\n");
    print_overall(validation);
}

/* The same table once more, to be filled with predictions of rows left out. */
static ty_status again(const struct cli_args *args, struct ty_validation *out,
                       struct ty_error *error)
{
    const struct ty_validate_options options = {args->profile, args->jobs};
    return ty_validate_runs(args->runs, &options, out, error);
}

/* Constants fitted without the rows they predict, by both ways to leave rows out; JSON has room for
 * the first. */
static int cross_validate(const struct cli_args *args, struct ty_validation *validation)
{
    struct ty_error error = {0};
    struct ty_validation by_sources = {0}, presets = {0};
    struct ty_own_error own[TY_N_OWN];
    struct ty_ratio_coverage ratios[2];
    const struct ty_held_out all = {validation, &by_sources, NULL, &presets, own, ratios};
    const struct ty_held_out first = {.by_groups = validation};
    ty_status status = args->json ? TY_OK : again(args, &by_sources, &error);
    if (status == TY_OK && !args->json)
        status = again(args, &presets, &error);
    if (status == TY_OK)
        status = ty_validate_held_out(args->runs, args->jobs, args->json ? &first : &all, &error);
    if (status == TY_OK && !args->json) {
        print_held_out(validation, "Constants fitted without the row's sweep (five folds): error "
                                   "in percent");
        print_ratios(ratios);
        print_held_out(&by_sources, "Constants fitted without the row's source: error in percent");
        print_own(own);
        print_presets(&presets);
    }
    ty_validation_free(&by_sources);
    ty_validation_free(&presets);
    if (status != TY_OK)
        return cli_fail(&error);
    return args->json ? print_json(validation) : CLI_OK;
}

static int extrapolate(const struct cli_args *args, struct ty_validation *validation)
{
    struct ty_error error = {0};
    const struct ty_held_out held_out = {.by_series = validation};
    if (ty_validate_held_out(args->runs, args->jobs, &held_out, &error) != TY_OK)
        return cli_fail(&error);
    if (args->json)
        return print_json(validation);
    print_held_out(validation, "Weak-scaling series, fitted without the rows of eight times the "
                               "fewest GPUs and more: error of these in percent");
    return CLI_OK;
}

int cmd_validate(struct cli_args *args)
{
    struct ty_error error = {0};
    if (!args->runs) {
        cli_refuse(&error, "validate", "needs --runs FILE, a CSV table of measured runs");
        return cli_fail(&error);
    }
    if (args->cv && args->extrapolate) {
        cli_refuse(&error, "--extrapolate", "not together with --cv");
        return cli_fail(&error);
    }
    if ((args->cv || args->extrapolate) && args->profile)
        cli_warn("unused: --profile %s (the constants are fitted again)", args->profile);
    struct ty_validation validation;
    const struct ty_validate_options options = {args->profile, args->jobs};
    if (ty_validate_runs(args->runs, &options, &validation, &error) != TY_OK)
        return cli_fail(&error);
    int status = args->cv            ? cross_validate(args, &validation)
                 : args->extrapolate ? extrapolate(args, &validation)
                 : args->json        ? print_json(&validation)
                                     : print_all(args, &validation);
    if (status == CLI_OK && args->out)
        status = plot(args->out, &validation);
    if (status == CLI_OK && n_refused(&validation) == validation.n_rows)
        status = CLI_FAILED;
    ty_validation_free(&validation);
    return status;
}
