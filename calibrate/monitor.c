/* SPDX-License-Identifier: MIT
 * Measured series against predicted values: which depart, and since when. */
#include "calibrate/monitor.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum ty_unit unit;
} SIGNALS[TY_N_SIGNALS] = {
#define X(id, name, unit, expression) {name, TY_UNIT_##unit},
    TY_SIGNAL_LIST(X)
#undef X
};

const char *ty_signal_name(enum ty_signal signal)
{
    return signal < TY_N_SIGNALS ? SIGNALS[signal].name : "";
}

enum ty_unit ty_signal_unit(enum ty_signal signal)
{
    return signal < TY_N_SIGNALS ? SIGNALS[signal].unit : TY_UNIT_NONE;
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Names: NVIDIA/dcgm-exporter default-counters.csv; prometheus/node_exporter. */
static const struct monitor_metric METRICS[] = {
    {"train_step_time_seconds", TY_SIGNAL_STEP_TIME, 1.0, false, false},
    {"train_tokens_per_second", TY_SIGNAL_TOKENS_PER_S, 1.0, false, false},
    {"DCGM_FI_DEV_GPU_UTIL", TY_SIGNAL_GPU_ACTIVE, 0.01, false, false},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", TY_SIGNAL_TENSOR_ACTIVE, 1.0, false, false},
    {"DCGM_FI_DEV_SM_CLOCK", TY_SIGNAL_CLOCK, 1e6, false, false},
    {"DCGM_FI_DEV_POWER_USAGE", TY_SIGNAL_POWER, 1.0, false, false},
    {"DCGM_FI_DEV_FB_USED", TY_SIGNAL_MEMORY, 1048576.0, false, false},
    {"node_cpu_seconds_total", TY_SIGNAL_CPU, 1.0, true, true},
    {"node_disk_read_bytes_total", TY_SIGNAL_STORAGE_READ, 1.0, true, true},
};

const struct monitor_metric *monitor_metric_of(const ty_monitor *monitor, const char *name)
{
    for (uint32_t i = 0; i < monitor->n_own; i++)
        if (strcmp(monitor->own[i].name, name) == 0)
            return &monitor->own[i];
    for (size_t i = 0; i < sizeof METRICS / sizeof *METRICS; i++)
        if (strcmp(METRICS[i].name, name) == 0)
            return &METRICS[i];
    return NULL;
}

ty_status ty_monitor_create(ty_monitor **out, struct ty_error *error)
{
    *out = calloc(1, sizeof **out);
    return *out ? TY_OK : error_set(error, TY_ERR_NOMEM, "monitor", "out of memory");
}

void ty_monitor_destroy(ty_monitor *monitor)
{
    if (!monitor)
        return;
    free(monitor->samples);
    free(monitor->series);
    free(monitor);
}

ty_status ty_monitor_map(ty_monitor *monitor, const char *metric, const char *signal,
                         struct ty_error *error)
{
    char legal[200] = "";
    if (monitor->n_own == MONITOR_MAX_MAPS || strlen(metric) >= MONITOR_NAME)
        return error_set(error, TY_ERR_LIMIT, metric, "too long, or more than %d metrics",
                         MONITOR_MAX_MAPS);
    for (enum ty_signal i = 0; i < TY_N_SIGNALS; i++) {
        text_append(legal, sizeof legal, "%s%s", i ? ", " : "", SIGNALS[i].name);
        if (strcmp(SIGNALS[i].name, signal) != 0)
            continue;
        struct monitor_metric *own = &monitor->own[monitor->n_own++];
        const size_t length = strlen(metric);
        *own = (struct monitor_metric){.signal = i, .scale = 1.0};
        text_format(own->name, sizeof own->name, "%s", metric);
        own->counter = own->by_node = length > 6 && strcmp(metric + length - 6, "_total") == 0;
        return TY_OK;
    }
    return error_set(error, TY_ERR_INPUT, metric, "\"%s\" is no signal; legal: %s", signal, legal);
}

/* Room for one more of `bytes`; false: out of memory. */
static bool grow(void **array, size_t n, size_t *capacity, size_t bytes)
{
    if (n < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 64;
    void *larger = realloc(*array, more * bytes);
    if (!larger)
        return false;
    *array = larger;
    *capacity = more;
    return true;
}

uint32_t monitor_series_of(ty_monitor *monitor, const char *name)
{
    for (size_t i = 0; i < monitor->n_series; i++)
        if (strcmp(monitor->series[i].name, name) == 0)
            return (uint32_t)i;
    if (!grow((void **)&monitor->series, monitor->n_series, &monitor->series_capacity,
              sizeof *monitor->series))
        return UINT32_MAX;
    text_format(monitor->series[monitor->n_series].name, MONITOR_NAME, "%s", name);
    return (uint32_t)monitor->n_series++;
}

ty_status monitor_put(ty_monitor *monitor, const struct monitor_sample *sample)
{
    if (!grow((void **)&monitor->samples, monitor->n_samples, &monitor->samples_capacity,
              sizeof *monitor->samples))
        return TY_ERR_NOMEM;
    monitor->samples[monitor->n_samples++] = *sample;
    return TY_OK;
}

/* ---- comparison --------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct monitor_sample *left = a, *right = b;
    if (left->time_s != right->time_s)
        return left->time_s < right->time_s ? -1 : 1;
    return (left->series > right->series) - (left->series < right->series);
}

/* Values of a node that come in parts: of its processors, of its disks. */
static bool in_parts(enum ty_signal signal)
{
    return signal == TY_SIGNAL_CPU || signal == TY_SIGNAL_STORAGE_READ;
}

/* Samples of one signal by time, one of each series and time: parts summed, else the last. */
static uint32_t take(const ty_monitor *monitor, enum ty_signal signal, struct monitor_sample *out)
{
    uint32_t n = 0, n_summed = 0;
    for (size_t i = 0; i < monitor->n_samples; i++)
        if (monitor->samples[i].signal == signal)
            out[n++] = monitor->samples[i];
    if (n > 0)
        qsort(out, n, sizeof *out, by_time);
    for (uint32_t i = 0; i < n; i++) {
        if (n_summed > 0 && by_time(&out[n_summed - 1], &out[i]) == 0)
            out[n_summed - 1].value =
                out[i].value + (in_parts(signal) ? out[n_summed - 1].value : 0.0);
        else
            out[n_summed++] = out[i];
    }
    return n_summed;
}

/* Value at the time of sample i: the mean over series, of memory the largest. *end: past it. */
static double value_at(const struct monitor_sample *samples, uint32_t n, uint32_t i, uint32_t *end)
{
    double sum = 0.0, most = 0.0;
    uint32_t at = i;
    for (; at < n && samples[at].time_s == samples[i].time_s; at++) {
        sum += samples[at].value;
        most = fmax(most, samples[at].value);
    }
    *end = at;
    return samples[i].signal == TY_SIGNAL_MEMORY ? most : sum / (at - i);
}

static bool deviates(double value, double predicted, double tolerance)
{
    return fabs(value / predicted - 1.0) > tolerance;
}

/* First sample of the stretch at the end in which every time deviates; n: none does. */
static uint32_t departure(const struct monitor_sample *samples, uint32_t n,
                          const struct ty_departure *row, double tolerance)
{
    uint32_t from = n, n_out = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        if (!deviates(value_at(samples, n, i, &end), row->predicted, tolerance)) {
            from = n;
            n_out = 0;
        } else if (n_out++ == 0) {
            from = i;
        }
    }
    return n_out >= 2 || (n_out == 1 && row->n_times == 1) ? from : n;
}

/* Mean since sample `from`, and the series furthest from the prediction. */
static void measure(const ty_monitor *monitor, const struct monitor_sample *samples, uint32_t n,
                    uint32_t from, struct ty_departure *row)
{
    double sum = 0.0, far = -1.0;
    uint32_t n_times = 0;
    for (uint32_t i = from, end; i < n; i = end, n_times++)
        sum += value_at(samples, n, i, &end);
    row->measured = sum / n_times;
    row->deviation = row->measured / row->predicted - 1.0;
    for (uint32_t i = from; i < n; i++)
        if (fabs(samples[i].value - row->predicted) > far) {
            far = fabs(samples[i].value - row->predicted);
            row->furthest_value = samples[i].value;
            text_format(row->furthest, sizeof row->furthest, "%s",
                        monitor->series[samples[i].series].name);
        }
}

static void compare(const ty_monitor *monitor, const struct monitor_sample *samples, uint32_t n,
                    double tolerance, struct ty_departure *row)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        value_at(samples, n, i, &end);
        row->n_times++;
        row->n_series = end - i > row->n_series ? end - i : row->n_series;
    }
    const uint32_t from = departure(samples, n, row, tolerance);
    row->departs = from < n;
    row->since_s = row->departs ? samples[from].time_s : (double)NAN;
    measure(monitor, samples, n, row->departs ? from : 0, row);
}

static int by_departure(const void *a, const void *b)
{
    const struct ty_departure *left = a, *right = b;
    if (left->departs != right->departs)
        return left->departs ? -1 : 1;
    if (left->departs && left->since_s != right->since_s)
        return left->since_s < right->since_s ? -1 : 1;
    return (left->signal > right->signal) - (left->signal < right->signal);
}

ty_status ty_monitor_compare(const ty_monitor *monitor, const double predicted[TY_N_SIGNALS],
                             double tolerance, struct ty_departure out[TY_N_SIGNALS], uint32_t *n,
                             struct ty_error *error)
{
    if (!(tolerance > 0.0))
        return error_set(error, TY_ERR_RANGE, "tolerance", "must be above 0");
    struct monitor_sample *samples = malloc((monitor->n_samples + 1) * sizeof *samples);
    uint32_t n_rows = 0;
    if (!samples)
        return error_set(error, TY_ERR_NOMEM, "monitor", "out of memory");
    for (enum ty_signal signal = 0; signal < TY_N_SIGNALS; signal++) {
        const uint32_t n_samples = take(monitor, signal, samples);
        if (n_samples == 0 || !(predicted[signal] > 0.0))
            continue;
        struct ty_departure *row = &out[n_rows++];
        *row = (struct ty_departure){.signal = signal, .predicted = predicted[signal]};
        compare(monitor, samples, n_samples, tolerance, row);
    }
    free(samples);
    qsort(out, n_rows, sizeof *out, by_departure);
    *n = n_rows;
    return TY_OK;
}
