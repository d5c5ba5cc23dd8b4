/* SPDX-License-Identifier: MIT
 * `trainyard calibrate fit` and `calibrate show`: records to a profile, and what it looks like. */
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------ */

static void print_constants(const struct ty_calibration *fit)
{
    printf("\n%-28s %-14s %-14s %8s %8s %8s %8s\n", "constant", "value", "prior", "records",
           "informed", "median", "P90");
    for (uint32_t i = 0; i < fit->n_constants; i++) {
        const struct ty_constant *c = &fit->constants[i];
        char value[48], prior[48];
        if (c->state >= TY_CONSTANT_TOO_FEW)
            continue;
        printf("%-28s %-14s %-14s %8u %6.0f %%", c->field->path,
               ty_quantity_text(c->value, c->field->unit, value, sizeof value),
               ty_quantity_text(c->prior, c->field->unit, prior, sizeof prior), c->n_records,
               100.0 * c->informed);
        if (c->n_records)
            printf(" %6.1f %% %6.1f %%", 100.0 * c->median_error, 100.0 * c->p90_error);
        printf("%s%s\n", c->state == TY_CONSTANT_FITTED ? "" : "  ",
               c->state == TY_CONSTANT_FITTED ? "" : ty_constant_state_name(c->state));
    }
}

/* Constants that stay at their priors, by the reason. */
static void print_priors(const struct ty_calibration *fit)
{
    for (enum ty_constant_state state = TY_CONSTANT_TOO_FEW; state <= TY_CONSTANT_UNKNOWN;
         state++) {
        size_t column = 0;
        for (uint32_t i = 0; i < fit->n_constants; i++) {
            const char *path = fit->constants[i].field->path;
            if (fit->constants[i].state != state)
                continue;
            if (column == 0)
                printf("\n%s", ty_constant_state_name(state));
            if (column == 0 || column + strlen(path) > 90)
                column = (size_t)printf("\n ") - 1;
            column += (size_t)printf(" %s", path);
        }
        if (column)
            putchar('\n');
    }
}

static void print_rest(const struct ty_calibration *fit)
{
    const struct ty_measured *measured = &fit->measured;
    printf("\ntables: %u GEMM shapes, %u of attention, %u sizes of memory traffic, %u of "
           "collectives\n",
           measured->n_gemms, measured->n_attentions, measured->n_memory, fit->collectives.n);
    for (uint32_t i = 0; i < fit->n_rates; i++)
        printf("%s%-32s %.4g %s\n", i ? "" : "\nrates\n", fit->rates[i].name, fit->rates[i].value,
               fit->rates[i].unit);
    for (uint32_t i = 0; i < fit->n_drops; i++)
        printf("%s%6u  %s\n        first: %s\n", i ? "" : "\ndropped\n", fit->drops[i].n,
               fit->drops[i].why, fit->drops[i].first);
}

static void print_fit(const struct ty_calibration *fit)
{
    printf("%u of %u records of %s used\n", fit->n_used, fit->n_records, fit->cluster.gpu.name);
    if (*fit->note)
        printf("%s\n", fit->note);
    print_constants(fit);
    print_priors(fit);
    print_rest(fit);
}

/* ---- fit ------------------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        cli_warn("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    fputs(text, file);
    if (ferror(file) | fclose(file)) {
        cli_warn("%s could not be written", path);
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* "runs/p5.json" -> "p5" */
static void profile_name(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, bytes, "%s", slash ? slash + 1 : path);
    char *end = strstr(out, ".json");
    if (end)
        *end = '\0';
}

static int answer(const struct cli_args *args, const struct ty_calibration *fit)
{
    char name[48];
    profile_name(args->out, name, sizeof name);
    char *text = ty_calibration_json(fit, name);
    if (!text) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    const int status = write_text(args->out, text);
    if (args->json)
        fputs(text, stdout);
    else
        print_fit(fit);
    ty_text_free(text);
    if (status == CLI_OK && fit->n_used == 0)
        cli_warn("no record could be used: %s holds the priors and nothing else", args->out);
    return status;
}

int cli_calibrate_fit(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_cluster cluster;
    struct ty_calibration fit;
    const char *paths[CLI_MAX_WORDS];
    uint32_t n = 0;
    if (args->records)
        paths[n++] = args->records;
    for (uint32_t i = 1; i < args->n_words && n < CLI_MAX_WORDS; i++)
        paths[n++] = args->words[i];
    if (n == 0 || !args->out) {
        cli_refuse(&error, "calibrate fit", "needs %s",
                   n ? "--out P.json: the profile to write"
                     : "--records FILE...: JSON lines of "
                       "calibrate import or measure");
        return cli_fail(&error);
    }
    if (args->cluster && cli_load_cluster(args, args->cluster, &cluster, &error) != TY_OK)
        return cli_fail(&error);
    cli_warn_unused(args, args->cluster ? 1u << TY_KIND_CLUSTER : 0);
    if (ty_calibration_fit(paths, n, args->cluster ? &cluster : NULL, &fit, &error) != TY_OK) {
        if (error.code == TY_ERR_IO)
            error.code = TY_ERR_INPUT; /* only inputs have been opened */
        return cli_fail(&error);
    }
    const int status = answer(args, &fit);
    ty_calibration_free(&fit);
    return status;
}

/* ---- show ------------------------------------------------------------------------------------ */

int cli_calibrate_show(struct cli_args *args)
{
    struct ty_error error = {0};
    uint32_t n_plots = 0;
    if (args->n_words != 2 || !args->out) {
        cli_refuse(&error, "calibrate show",
                   "needs P.json, a profile of calibrate fit, and --out "
                   "FOLDER for its plots");
        return cli_fail(&error);
    }
    const ty_status status = ty_calibration_plot(args->words[1], args->out, &n_plots, &error);
    if (status != TY_OK)
        return cli_fail(&error);
    cli_warn_unused(args, 0);
    printf("%s: %u plots of what was measured, the fit and its residuals\n", args->out, n_plots);
    if (n_plots == 0)
        cli_warn("gnuplot is not there or failed: %s holds its scripts and data", args->out);
    return CLI_OK;
}
