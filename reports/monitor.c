/* SPDX-License-Identifier: MIT
 * Predicted values as series of Prometheus and as a Grafana dashboard; a comparison as JSON. */
#include "include/trainyard_monitor.h"
#include "models/spec/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const EXPRESSIONS[TY_N_SIGNALS] = {
#define X(id, name, unit, expression) expression,
    TY_SIGNAL_LIST(X)
#undef X
};

/* A label's value: \, " and line ends are escaped (exposition format 0.0.4). */
static void write_label(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", file);
        else if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
}

char *ty_signals_prometheus(const double predicted[TY_N_SIGNALS], const char *job)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return NULL;
    fputs("# HELP trainyard_predicted Predicted value of a signal in SI base units.\n"
          "# TYPE trainyard_predicted gauge\n",
          file);
    for (enum ty_signal i = 0; i < TY_N_SIGNALS; i++) {
        if (!isfinite(predicted[i]))
            continue;
        fprintf(file, "trainyard_predicted{signal=\"%s\",model=\"", ty_signal_name(i));
        write_label(file, job);
        fprintf(file, "\"} %.9g\n", predicted[i]);
    }
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- dashboard ---------------------------------------------------------------------------- */

static const char *grafana_unit(enum ty_signal signal)
{
    switch (ty_signal_unit(signal)) {
    case TY_UNIT_S:
        return "s";
    case TY_UNIT_RATIO:
        return "percentunit";
    case TY_UNIT_HZ:
        return "hertz";
    case TY_UNIT_W:
        return "watt";
    case TY_UNIT_BYTES:
        return "bytes";
    case TY_UNIT_BYTES_PER_S:
        return "Bps";
    default:
        return "short";
    }
}

static void write_target(struct json_writer *json, const char *ref, const char *legend,
                         const char *expression)
{
    json_object(json, NULL);
    json_text(json, "refId", ref);
    json_text(json, "legendFormat", legend);
    json_text(json, "expr", expression);
    json_close(json);
}

/* Two panels a row, 12 of 24 columns each. */
static void write_panel(struct json_writer *json, enum ty_signal signal)
{
    char predicted[80];
    snprintf(predicted, sizeof predicted, "trainyard_predicted{signal=\"%s\"}",
             ty_signal_name(signal));
    json_object(json, NULL);
    json_count(json, "id", (uint64_t)signal + 1);
    json_text(json, "type", "timeseries");
    json_text(json, "title", ty_signal_name(signal));
    json_object(json, "datasource");
    json_text(json, "type", "prometheus");
    json_text(json, "uid", "${datasource}");
    json_close(json);
    json_object(json, "gridPos");
    json_count(json, "x", signal % 2 * 12u);
    json_count(json, "y", signal / 2 * 8u);
    json_count(json, "w", 12);
    json_count(json, "h", 8);
    json_close(json);
    json_object(json, "fieldConfig");
    json_object(json, "defaults");
    json_text(json, "unit", grafana_unit(signal));
    json_close(json);
    json_array(json, "overrides");
    json_close(json);
    json_close(json);
    json_array(json, "targets");
    write_target(json, "A", "measured", EXPRESSIONS[signal]);
    write_target(json, "B", "predicted", predicted);
    json_close(json);
    json_close(json);
}

char *ty_signals_grafana(void)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "title", "trainyard: measured beside predicted");
    json_text(&json, "uid", "trainyard");
    json_count(&json, "schemaVersion", 39);
    json_object(&json, "time");
    json_text(&json, "from", "now-6h");
    json_text(&json, "to", "now");
    json_close(&json);
    json_object(&json, "templating");
    json_array(&json, "list");
    json_object(&json, NULL);
    json_text(&json, "name", "datasource");
    json_text(&json, "type", "datasource");
    json_text(&json, "query", "prometheus");
    json_close(&json);
    json_close(&json);
    json_close(&json);
    json_array(&json, "panels");
    for (enum ty_signal i = 0; i < TY_N_SIGNALS; i++)
        write_panel(&json, i);
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}

/* ---- comparison --------------------------------------------------------------------------- */

char *ty_monitor_json(const struct ty_departure *rows, uint32_t n, double tolerance)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_number(&json, "tolerance", tolerance);
    json_array(&json, "signals");
    for (uint32_t i = 0; i < n; i++) {
        const struct ty_departure *row = &rows[i];
        json_object(&json, NULL);
        json_text(&json, "signal", ty_signal_name(row->signal));
        json_number(&json, "measured", row->measured);
        json_number(&json, "predicted", row->predicted);
        json_number(&json, "deviation", row->deviation);
        json_bool(&json, "departs", row->departs);
        json_number(&json, "since_s", row->since_s);
        json_count(&json, "times", row->n_times);
        json_count(&json, "series", row->n_series);
        json_text(&json, "furthest", row->furthest);
        json_number(&json, "furthest_value", row->furthest_value);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}
