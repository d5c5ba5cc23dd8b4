/* SPDX-License-Identifier: MIT
 * `trainyard calibrate SUB-COMMAND`: what turns a user's measurements into constants. */
#include "cli/cli.h"
#include <errno.h>
#include <string.h>

/* ---- import ------------------------------------------------------------------------------- */

static void print_records(const struct ty_import *import, const char *path, bool json, FILE *out)
{
    if (!json)
        fprintf(out, "%s: %s, %u record%s, %u usable\n", path, import->format, import->n_records,
                import->n_records == 1 ? "" : "s", import->n_usable);
    for (uint32_t i = 0; i < import->n_records; i++) {
        fputs(json ? import->records[i].json : import->records[i].text, out);
        if (json)
            fputc('\n', out);
    }
}

/* Every file is reported; the status is 0 when any of them gave something usable. */
static int import_files(struct cli_args *args, FILE *out)
{
    int status = CLI_BAD_INPUT;
    for (uint32_t i = 1; i < args->n_words; i++) {
        struct ty_error error = {0};
        struct ty_import import;
        if (ty_import_file(args->words[i], &import, &error) != TY_OK) {
            cli_fail(&error);
            continue;
        }
        if (args->json || !out)
            print_records(&import, args->words[i], args->json, stdout);
        if (out)
            print_records(&import, args->words[i], true, out);
        if (import.n_usable)
            status = CLI_OK;
        else
            cli_warn("%s: nothing usable; the records say why", args->words[i]);
        ty_import_free(&import);
    }
    return status;
}

static int calibrate_import(struct cli_args *args)
{
    struct ty_error error = {0};
    if (args->n_words < 2) {
        cli_refuse(&error, "calibrate import", "needs FILE...: training logs or benchmark results");
        return cli_fail(&error);
    }
    if (args->records)
        cli_warn("unused: --records (import reads what other tools printed)");
    cli_warn_unused(args, 0);
    FILE *out = args->out ? fopen(args->out, "w") : NULL;
    if (args->out && !out) {
        cli_warn("%s: %s", args->out, strerror(errno));
        return CLI_FAILED;
    }
    int status = import_files(args, out);
    if (out && (ferror(out) | fclose(out))) {
        cli_warn("%s could not be written", args->out);
        status = CLI_FAILED;
    }
    return status;
}

/* ---- sub-commands ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct cli_args *args);
} sub_commands[] = {{"import", calibrate_import},
                    {"measure", cli_calibrate_measure},
                    {"runs", cli_calibrate_runs},
                    {"fit", cli_calibrate_fit},
                    {"show", cli_calibrate_show}};

/* Options that another sub-command reads. */
static void warn_measured(const struct cli_args *args, const char *word)
{
    const bool runs = strcmp(word, "runs") == 0, measure = strcmp(word, "measure") == 0;
    if (!runs && (args->step_time || args->tokens_per_s))
        cli_warn("unused: --%s (calibrate runs reads it)",
                 args->step_time ? "step-time" : "tokens-per-s");
    if (!runs && args->jobs)
        cli_warn("unused: --jobs (calibrate runs reads it)");
    if ((runs || measure) && args->records)
        cli_warn("unused: --records (calibrate fit reads it)");
    const struct {
        bool given;
        const char *name;
    } measured[] = {{args->measure.device, "device"}, {args->measure.blas, "blas"},
                    {args->measure.folder, "folder"}, {args->measure.ranks > 0, "ranks"},
                    {args->measure.resume, "resume"}, {args->goal.budget, "budget"}};
    for (size_t i = 0; !measure && i < sizeof measured / sizeof *measured; i++)
        if (measured[i].given)
            cli_warn("unused: --%s (calibrate measure reads it)", measured[i].name);
}

int cmd_calibrate(struct cli_args *args)
{
    const char *word = args->n_words ? args->words[0] : "";
    for (size_t i = 0; i < sizeof sub_commands / sizeof sub_commands[0]; i++)
        if (strcmp(word, sub_commands[i].name) == 0) {
            warn_measured(args, word);
            return sub_commands[i].run(args);
        }
    struct ty_error error = {0};
    static const char legal[] = "import, measure, runs, fit, show";
    if (*word)
        cli_refuse(&error, "calibrate", "\"%s\" is no sub-command; there are: %s", word, legal);
    else
        cli_refuse(&error, "calibrate", "needs a sub-command: %s", legal);
    return cli_fail(&error);
}
