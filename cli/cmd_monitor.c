/* SPDX-License-Identifier: MIT
 * `trainyard monitor`: a running job's monitoring beside its prediction. */
#include "cli/cli.h"
#include "include/trainyard_monitor.h"
#include <math.h>
#include <string.h>
#include <time.h>

/* "METRIC=SIGNAL,METRIC=SIGNAL" */
static ty_status map_metrics(ty_monitor *monitor, const char *list, struct ty_error *error)
{
    ty_status status = TY_OK;
    while (status == TY_OK && list && *list) {
        char metric[128];
        const size_t length = strcspn(list, ",");
        snprintf(metric, sizeof metric, "%.*s", (int)length, list);
        char *equals = strchr(metric, '=');
        if (!equals || length >= sizeof metric)
            return cli_refuse(error, "--map", "\"%.*s\" is not METRIC=SIGNAL", (int)length, list);
        *equals = '\0';
        status = ty_monitor_map(monitor, metric, equals + 1, error);
        list += length + (list[length] == ',');
    }
    return status;
}

static ty_status read_files(const struct cli_args *args, ty_monitor *monitor,
                            struct ty_error *error)
{
    uint32_t n_all = 0, n_used;
    for (uint32_t i = 0; i < args->n_words; i++) {
        const ty_status status = ty_monitor_add(monitor, args->words[i], &n_used, error);
        if (status == TY_ERR_IO)
            error->code = TY_ERR_INPUT;
        if (status != TY_OK)
            return error->code;
        if (n_used == 0 && !args->quiet)
            cli_warn("unused: %s (no sample of a known metric; counters need two; --map names "
                     "your own)",
                     args->words[i]);
        n_all += n_used;
    }
    return n_all > 0 ? TY_OK
                     : cli_refuse(error, "monitor", "no file has a sample of a known metric");
}

static const char *value_text(enum ty_signal signal, double value, char *out, size_t bytes)
{
    return signal == TY_SIGNAL_MEMORY ? cli_bytes_text(value, out, bytes)
                                      : ty_quantity_text(value, ty_signal_unit(signal), out, bytes);
}

static void print_row(const struct ty_departure *row)
{
    char measured[40], predicted[40], furthest[40], since[40] = "";
    const time_t at = row->departs ? (time_t)row->since_s : 0;
    struct tm utc;
    printf("  %-14s %14s %14s %+8.1f %%  ", ty_signal_name(row->signal),
           value_text(row->signal, row->measured, measured, sizeof measured),
           value_text(row->signal, row->predicted, predicted, sizeof predicted),
           100.0 * row->deviation);
    if (!row->departs) {
        printf("as predicted, %u times of %u series\n", row->n_times, row->n_series);
        return;
    }
    if (gmtime_r(&at, &utc))
        strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf("departs since %s; furthest: %s at %s\n", at > 0 ? since : "this page", row->furthest,
           value_text(row->signal, row->furthest_value, furthest, sizeof furthest));
}

static void print_rows(const struct ty_departure *rows, uint32_t n, double tolerance)
{
    printf("  %-14s %14s %14s %10s\n", "signal", "measured", "predicted", "deviation");
    for (uint32_t i = 0; i < n; i++)
        print_row(&rows[i]);
    if (n > 0 && rows[0].departs)
        printf("\nfirst to depart by more than %g %%: %s\n", 100.0 * tolerance,
               ty_signal_name(rows[0].signal));
    else
        printf("\nnothing departs by more than %g %%\n", 100.0 * tolerance);
}

static int compare(const struct cli_args *args, const double *predicted, struct ty_error *error)
{
    struct ty_departure rows[TY_N_SIGNALS];
    uint32_t n = 0;
    double tolerance = 0.1;
    ty_monitor *monitor = NULL;
    ty_status status = ty_monitor_create(&monitor, error);
    if (status == TY_OK && args->monitor.tolerance)
        status = ty_quantity_parse(args->monitor.tolerance, TY_UNIT_RATIO, &tolerance, error);
    if (status == TY_OK)
        status = map_metrics(monitor, args->monitor.map, error);
    if (status == TY_OK)
        status = read_files(args, monitor, error);
    if (status == TY_OK)
        status = ty_monitor_compare(monitor, predicted, tolerance, rows, &n, error);
    ty_monitor_destroy(monitor);
    if (status != TY_OK)
        return cli_fail(error);
    if (args->json)
        return cli_print(ty_monitor_json(rows, n, tolerance));
    print_rows(rows, n, tolerance);
    return CLI_OK;
}

static int answer(const struct cli_args *args, struct cli_inputs *inputs, ty_predictor *predictor,
                  struct ty_error *error)
{
    struct ty_prediction prediction;
    double predicted[TY_N_SIGNALS];
    inputs->options.effects = false;
    inputs->options.measured = true; /* the job runs */
    if (ty_predictor_run(predictor, &inputs->plan, &inputs->options, &prediction, error) != TY_OK)
        return cli_fail(error);
    if (!isfinite(prediction.step_time_s)) {
        cli_print_prediction(&prediction, inputs);
        return CLI_INFEASIBLE;
    }
    ty_signals_predict(&prediction, &inputs->cluster, predicted);
    if (args->monitor.print && strcmp(args->monitor.print, "series") == 0)
        return cli_print(ty_signals_prometheus(predicted, inputs->model.name));
    return compare(args, predicted, error);
}

int cmd_monitor(struct cli_args *args)
{
    struct ty_error error = {0};
    const char *print = args->monitor.print;
    if (print && strcmp(print, "dashboard") == 0)
        return cli_print(ty_signals_grafana());
    if (print && strcmp(print, "series") != 0) {
        cli_refuse(&error, "--print", "\"%s\" is not one of series, dashboard", print);
        return cli_fail(&error);
    }
    if (!print && args->n_words == 0) {
        cli_refuse(&error, "monitor", "name files with answers of Prometheus, or give --print");
        return cli_fail(&error);
    }
    return cli_with_predictor(args, answer);
}
