/* SPDX-License-Identifier: MIT
 * Samples of a job's monitoring, as its readers leave them. */
#ifndef CALIBRATE_MONITOR_H
#define CALIBRATE_MONITOR_H

#include "include/trainyard_monitor.h"
#include "models/spec/json.h"

enum { MONITOR_MAX_MAPS = 16, MONITOR_NAME = 96 };

/* How a metric becomes a signal. */
struct monitor_metric {
    char name[MONITOR_NAME];
    enum ty_signal signal;
    double scale;
    bool counter; /* a rate between two samples */
    bool by_node; /* series of one instance are summed */
};

struct monitor_sample {
    enum ty_signal signal;
    uint32_t series; /* index into names */
    double time_s, value;
};

struct monitor_series {
    char name[MONITOR_NAME]; /* "gpu-node-01 gpu 3", "gpu-node-01" */
};

struct ty_monitor {
    struct monitor_metric own[MONITOR_MAX_MAPS];
    uint32_t n_own;
    struct monitor_sample *samples;
    size_t n_samples, samples_capacity;
    struct monitor_series *series;
    size_t n_series, series_capacity;
};

/* NULL: not a metric of any signal. */
const struct monitor_metric *monitor_metric_of(const ty_monitor *monitor, const char *name);
/* Index of a series by name, added when new; UINT32_MAX: out of memory. */
uint32_t monitor_series_of(ty_monitor *monitor, const char *name);
ty_status monitor_put(ty_monitor *monitor, const struct monitor_sample *sample);

#endif
