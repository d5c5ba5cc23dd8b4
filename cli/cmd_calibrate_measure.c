/* SPDX-License-Identifier: MIT
 * `trainyard calibrate measure`: microbenchmarks of this machine as a file of records. The
 * processor and storage are measured here; CUDA devices by the program trainyard-measure. */
#include "cli/cli.h"
#include "include/trainyard_measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double DEFAULT_BUDGET_S = 60.0;
/* Above this the machine is busy with other work, and the records say little. */
static const double QUIET_RATIO = 0.03;

struct sink {
    FILE *out;
    bool shown; /* progress */
    double last_s;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool write_record(void *user, const char *line)
{
    struct sink *sink = user;
    return fputs(line, sink->out) >= 0 && fflush(sink->out) == 0;
}

static void show_progress(void *user, uint32_t done, uint32_t total, double left_s)
{
    struct sink *sink = user;
    const double now = now_s();
    if (!sink->shown || (now - sink->last_s < 0.2 && done < total))
        return;
    sink->last_s = now;
    fprintf(stderr, "\r%u of %u points, %.0f s left\033[K", done, total, left_s);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A run that was killed may have left half a line behind: it goes. */
static bool cut_half_line(FILE *file)
{
    long end = 0;
    rewind(file);
    for (int c = getc(file), at = 1; c != EOF; c = getc(file), at++)
        if (c == '\n')
            end = at;
    return fflush(file) == 0 && ftruncate(fileno(file), end) == 0 && fseek(file, 0, SEEK_END) == 0;
}

static FILE *open_records(const struct cli_args *args)
{
    const bool again = args->measure.resume && access(args->out, F_OK) == 0;
    FILE *file = fopen(args->out, again ? "r+" : "w");
    if (!file || (again && !cut_half_line(file))) {
        cli_warn("%s: %s", args->out, strerror(errno));
        if (file)
            fclose(file);
        return NULL;
    }
    return file;
}

/* ---- processor and storage ------------------------------------------------------------------- */

static void print_summary(const struct cli_args *args, const struct ty_measure_summary *summary)
{
    printf("%s: %u points measured", args->out, summary->n_measured);
    if (summary->n_known)
        printf(", %u were there", summary->n_known);
    if (summary->n_left)
        printf(", %u did not fit into the budget (--resume goes on)", summary->n_left);
    if (summary->n_impossible)
        printf(", %u this machine cannot do", summary->n_impossible);
    putchar('\n');
    if (*summary->note)
        printf("%s\n", summary->note);
    if (summary->off_core_ratio > QUIET_RATIO)
        cli_warn("other programs had the cores for %.0f %% of the time: measure on a quiet machine",
                 100.0 * summary->off_core_ratio);
    if (summary->n_page_cache)
        cli_warn("no direct I/O in this folder: %u records are flagged page_cache, and calibrate "
                 "fit leaves them out",
                 summary->n_page_cache);
}

static int measure_here(struct cli_args *args, struct ty_measure_options *options)
{
    struct ty_error error = {0};
    struct ty_measure_summary summary;
    FILE *file = open_records(args);
    if (!file)
        return CLI_FAILED;
    struct sink sink = {.out = file, .shown = !args->quiet && isatty(STDERR_FILENO)};
    options->record = write_record;
    options->progress = show_progress;
    options->user = &sink;
    options->done_path = args->measure.resume ? args->out : NULL;
    ty_status status = ty_measure(options, &summary, &error);
    if (sink.shown)
        fputs("\r\033[K", stderr);
    if (fclose(file) != 0 && status == TY_OK)
        status = cli_refuse(&error, args->out, "could not be written");
    if (status != TY_OK)
        return cli_fail(&error);
    print_summary(args, &summary);
    return CLI_OK;
}

static int measure_cpu(struct cli_args *args, double budget_s)
{
    struct ty_error error = {0};
    struct ty_model model;
    struct ty_plan plan;
    struct ty_measure_options options = {.device = TY_MEASURE_CPU,
                                         .budget_s = budget_s,
                                         .ranks = args->measure.ranks,
                                         .blas = args->measure.blas};
    if (args->measure.folder)
        cli_warn("unused: --folder (--device storage reads it)");
    if (args->model) {
        if (cli_load_model(args, args->model, &model, &error) != TY_OK ||
            cli_load_plan(args, &plan, &error) != TY_OK)
            return cli_fail(&error);
        options.model = &model;
        options.plan = &plan;
    }
    cli_warn_unused(args, args->model ? 1u << TY_KIND_MODEL | 1u << TY_KIND_PLAN : 0);
    return measure_here(args, &options);
}

static int measure_storage(struct cli_args *args, double budget_s)
{
    const struct ty_measure_options options = {
        .device = TY_MEASURE_STORAGE, .budget_s = budget_s, .folder = args->measure.folder};
    struct ty_measure_options copy = options;
    if (args->measure.ranks || args->measure.blas || args->model)
        cli_warn("unused: --%s (--device cpu reads it)", args->measure.ranks  ? "ranks"
                                                         : args->measure.blas ? "blas"
                                                                              : "model");
    cli_warn_unused(args, 0);
    return measure_here(args, &copy);
}

/* ---- devices --------------------------------------------------------------------------------- */

static int refuse_amd(void)
{
    struct ty_error error = {0};
    cli_refuse(&error, "--device",
               "AMD devices are not measured by trainyard: run hipblaslt-bench and rccl-tests, and "
               "give their output to trainyard calibrate import");
    return cli_fail(&error);
}

static int refuse_device(const char *device)
{
    struct ty_error error = {0};
    cli_refuse(&error, "--device", "\"%s\" is none; there are: cpu, storage, cuda", device);
    return cli_fail(&error);
}

int cli_calibrate_measure(struct cli_args *args)
{
    struct ty_error error = {0};
    const char *device = args->measure.device ? args->measure.device : "cpu";
    double budget_s = DEFAULT_BUDGET_S;
    if (strcmp(device, "rocm") == 0 || strcmp(device, "hip") == 0 || strcmp(device, "amd") == 0)
        return refuse_amd();
    const bool here = strcmp(device, "cpu") == 0 || strcmp(device, "storage") == 0;
    if (!here && strcmp(device, "cuda") != 0)
        return refuse_device(device);
    if (!args->out) {
        cli_refuse(&error, "calibrate measure", "needs --out R.jsonl: the records to write");
        return cli_fail(&error);
    }
    if (args->goal.budget &&
        cli_time_parse(args->goal.budget, "--budget", &budget_s, &error) != TY_OK)
        return cli_fail(&error);
    if (!(budget_s > 0.0)) {
        cli_refuse(&error, "--budget", "is %s; legal: above 0, such as 20s or 5 min",
                   args->goal.budget);
        return cli_fail(&error);
    }
    if (!here)
        return cli_measure_cuda(args, budget_s);
    return strcmp(device, "cpu") == 0 ? measure_cpu(args, budget_s)
                                      : measure_storage(args, budget_s);
}
