/* SPDX-License-Identifier: MIT
 *
 * Readers of saved monitoring: answers of the Prometheus HTTP API (query: "vector", query_range:
 * "matrix") and pages of exporters in text form. Formats: prometheus.io/docs/prometheus/latest/
 * querying/api and /docs/instrumenting/exposition_formats.
 */
#include "calibrate/monitor.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Labels that tell a series: a node, and a GPU of it. */
struct labels {
    char name[MONITOR_NAME], node[64], gpu[16], mode[16];
};

static void set_label(struct labels *labels, const char *key, const char *value)
{
    if (strcmp(key, "__name__") == 0)
        text_format(labels->name, sizeof labels->name, "%s", value);
    else if (strcmp(key, "Hostname") == 0 ||
             (strcmp(key, "instance") == 0 && labels->node[0] == '\0'))
        text_format(labels->node, sizeof labels->node, "%s", value);
    else if (strcmp(key, "gpu") == 0)
        text_format(labels->gpu, sizeof labels->gpu, "%s", value);
    else if (strcmp(key, "mode") == 0)
        text_format(labels->mode, sizeof labels->mode, "%s", value);
}

/* Time in which a processor does nothing for the job is no use of it. */
static bool is_idle(const struct labels *labels)
{
    return strcmp(labels->mode, "idle") == 0 || strcmp(labels->mode, "iowait") == 0;
}

/* The series of some labels, UINT32_MAX when there is no memory. */
static uint32_t series_of(ty_monitor *monitor, const struct labels *labels)
{
    char name[MONITOR_NAME];
    text_format(name, sizeof name, "%s%s%s", labels->node, labels->gpu[0] ? " gpu " : "",
                labels->gpu);
    return monitor_series_of(monitor, name[0] ? name : "job");
}

/* ---- JSON --------------------------------------------------------------------------------- */

static ty_status read_labels(const struct json_at *row, struct labels *out, struct ty_error *error)
{
    struct json_at metric, label = {0};
    const char *text;
    *out = (struct labels){0};
    if (!json_find(row, "metric", &metric))
        return json_missing(row, "metric", error);
    while (json_next(&metric, &label)) {
        const ty_status status = json_get_text(&label, &text, error);
        if (status != TY_OK)
            return status;
        set_label(out, json_key(&label), text);
    }
    return TY_OK;
}

/* [time, "value"] */
static ty_status read_pair(const struct json_at *pair, double *time_s, double *value,
                           struct ty_error *error)
{
    struct json_at item = {0};
    const char *text;
    ty_status status = json_want(pair, JSON_ARRAY, error);
    if (status != TY_OK)
        return status;
    if (json_size(pair) != 2)
        return json_refuse(pair, TY_ERR_INPUT, error, "is no [time, \"value\"]");
    json_next(pair, &item);
    status = json_get_double(&item, 0.0, 1e12, time_s, error);
    if (status != TY_OK)
        return status;
    json_next(pair, &item);
    status = json_get_text(&item, &text, error);
    if (status == TY_OK && number_parse(text, strlen(text), value) != strlen(text))
        *value = (double)NAN; /* "NaN", "+Inf" */
    return status;
}

struct reading {
    ty_monitor *monitor;
    const struct monitor_metric *metric;
    uint32_t series, n_used;
    bool has_last; /* of a counter */
    double last_s, last;
};

/* A counter that falls was reset: no rate there. */
static ty_status put(struct reading *r, double time_s, double value)
{
    const struct reading before = *r;
    r->has_last = true;
    r->last_s = time_s;
    r->last = value;
    if (r->metric->counter) {
        if (!before.has_last || !(time_s > before.last_s) || !(value >= before.last))
            return TY_OK;
        value = (value - before.last) / (time_s - before.last_s);
    }
    if (!isfinite(value))
        return TY_OK;
    const struct monitor_sample sample = {r->metric->signal, r->series, time_s,
                                          value * r->metric->scale};
    r->n_used++;
    return monitor_put(r->monitor, &sample);
}

static ty_status read_series(struct reading *r, const struct json_at *row, struct ty_error *error)
{
    struct json_at values, pair = {0};
    double time_s, value;
    r->has_last = false;
    if (json_find(row, "value", &values)) {
        const ty_status status = read_pair(&values, &time_s, &value, error);
        return status == TY_OK ? put(r, time_s, value) : status;
    }
    if (!json_find(row, "values", &values))
        return json_missing(row, "values", error);
    ty_status status = json_want(&values, JSON_ARRAY, error);
    while (status == TY_OK && json_next(&values, &pair)) {
        status = read_pair(&pair, &time_s, &value, error);
        if (status == TY_OK)
            status = put(r, time_s, value);
    }
    return status;
}

static ty_status read_result(ty_monitor *monitor, const struct json_at *result, uint32_t *n_used,
                             struct ty_error *error)
{
    struct json_at row = {0};
    struct reading r = {.monitor = monitor};
    ty_status status = json_want(result, JSON_ARRAY, error);
    while (status == TY_OK && json_next(result, &row)) {
        struct labels labels;
        status = read_labels(&row, &labels, error);
        r.metric = status == TY_OK ? monitor_metric_of(monitor, labels.name) : NULL;
        if (!r.metric || (r.metric->by_node && is_idle(&labels)))
            continue;
        if (r.metric->by_node)
            labels.gpu[0] = '\0';
        r.series = series_of(monitor, &labels);
        status = r.series == UINT32_MAX ? TY_ERR_NOMEM : read_series(&r, &row, error);
    }
    *n_used = r.n_used;
    return status;
}

static ty_status read_answer(ty_monitor *monitor, const struct json_at *top, uint32_t *n_used,
                             struct ty_error *error)
{
    struct json_at at, data, result;
    const char *text;
    if (!json_find(top, "status", &at))
        return json_missing(top, "status", error);
    ty_status status = json_get_text(&at, &text, error);
    if (status != TY_OK)
        return status;
    if (strcmp(text, "success") != 0) {
        const bool said = json_find(top, "error", &at) && json_get_text(&at, &text, NULL) == TY_OK;
        return json_refuse(top, TY_ERR_INPUT, error, "Prometheus answered: %.200s",
                           said ? text : "no success");
    }
    if (!json_find(top, "data", &data))
        return json_missing(top, "data", error);
    if (!json_find(&data, "result", &result))
        return json_missing(&data, "result", error);
    return read_result(monitor, &result, n_used, error);
}

/* ---- text --------------------------------------------------------------------------------- */

/* name{key="value",...} number [time in ms]; escapes are kept. returns false for another line. */
static bool read_line(char *line, struct labels *labels, double *value, double *time_s)
{
    const size_t length = strcspn(line, "{ \t");
    char *at = line + length;
    *labels = (struct labels){0};
    *time_s = 0.0;
    if (length == 0 || length >= sizeof labels->name)
        return false;
    memcpy(labels->name, line, length);
    if (*at == '{') {
        for (at++; *at && *at != '}';) {
            char *key = at, *quote = strstr(at, "=\"");
            char *end = quote ? strchr(quote + 2, '"') : NULL;
            if (!end)
                return false;
            *quote = *end = '\0';
            set_label(labels, key, quote + 2);
            at = end + 1 + (end[1] == ',');
        }
        at += *at == '}';
    }
    at += strspn(at, " \t");
    size_t n = number_parse(at, strlen(at), value);
    if (n == 0)
        return false;
    at += n + strspn(at + n, " \t");
    if (number_parse(at, strlen(at), time_s) > 0)
        *time_s /= 1000.0;
    return true;
}

static ty_status read_page(ty_monitor *monitor, FILE *file, uint32_t *n_used)
{
    char line[4096];
    struct reading r = {.monitor = monitor};
    while (fgets(line, sizeof line, file)) {
        struct labels labels;
        double value, time_s;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || !read_line(line, &labels, &value, &time_s))
            continue;
        r.metric = monitor_metric_of(monitor, labels.name);
        if (!r.metric || r.metric->counter) /* one page has no rate */
            continue;
        r.series = series_of(monitor, &labels);
        if (r.series == UINT32_MAX || put(&r, time_s, value) != TY_OK)
            return TY_ERR_NOMEM;
    }
    *n_used = r.n_used;
    return TY_OK;
}

ty_status ty_monitor_add(ty_monitor *monitor, const char *path, uint32_t *n_used,
                         struct ty_error *error)
{
    FILE *file = fopen(path, "rb");
    *n_used = 0;
    if (!file)
        return error_set(error, TY_ERR_IO, path, "cannot be read");
    int first = fgetc(file);
    while (first == ' ' || first == '\n' || first == '\r' || first == '\t')
        first = fgetc(file);
    ty_status status = TY_OK;
    if (first != '{') {
        rewind(file);
        status = read_page(monitor, file, n_used);
    }
    fclose(file);
    if (first == '{') {
        struct json_document document = {0};
        status = json_load_file(path, &document, error);
        if (status == TY_OK)
            status = read_answer(monitor, &document.top, n_used, error);
        json_free(&document);
    }
    if (status == TY_ERR_NOMEM)
        return error_set(error, status, path, "out of memory");
    return status;
}
