/* SPDX-License-Identifier: MIT
 *
 * trainyard_monitor.h: what a running job's monitoring says beside its prediction - which resource
 * departs, and since when; and the predicted values as series and dashboard of the same monitoring.
 * Part of libtrainyard-tools; conventions as in trainyard.h. docs/monitoring.md shows the use.
 */
#ifndef TRAINYARD_MONITOR_H
#define TRAINYARD_MONITOR_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is compared: name, unit of the value, the measured series as a PromQL expression. */
#define TY_SIGNAL_LIST(X)                                                                          \
    X(STEP_TIME, "step_time", S, "train_step_time_seconds")                                        \
    X(TOKENS_PER_S, "tokens_per_s", NONE, "train_tokens_per_second")                               \
    X(GPU_ACTIVE, "gpu_active", RATIO, "avg(DCGM_FI_DEV_GPU_UTIL) / 100")                          \
    X(TENSOR_ACTIVE, "tensor_active", RATIO, "avg(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)")               \
    X(CLOCK, "clock", HZ, "avg(DCGM_FI_DEV_SM_CLOCK) * 1e6")                                       \
    X(POWER, "power", W, "avg(DCGM_FI_DEV_POWER_USAGE)")                                           \
    X(MEMORY, "memory", BYTES, "max(DCGM_FI_DEV_FB_USED) * 1048576")                               \
    X(CPU, "cpu", NONE,                                                                            \
      "avg(sum by (instance) (rate(node_cpu_seconds_total{mode!=\"idle\"}[1m])))")                 \
    X(STORAGE_READ, "storage_read", BYTES_PER_S,                                                   \
      "avg(sum by (instance) (rate(node_disk_read_bytes_total[1m])))")
enum ty_signal {
#define X(id, name, unit, expression) TY_SIGNAL_##id,
    TY_SIGNAL_LIST(X)
#undef X
        TY_N_SIGNALS
};
/* "step_time", ...; the unit that predicted and measured values have. */
TY_API const char *ty_signal_name(enum ty_signal signal);
TY_API enum ty_unit ty_signal_unit(enum ty_signal signal);

/* Predicted values of a simulated prediction; NAN where it says nothing (cpu and storage_read
 * without an input pipeline; storage_read unless the data lie on a node's disks).
 *
 *   gpu_active = 1 - (launch + pp + bubble + input_stall + checkpoint) / step
 *   tensor_active = executed flop/s / peak of the precision    power: trainyard_cost.h, no PUE
 *   clock = boost x what the power limit leaves                cpu: busy cores of a node
 * Of the core library; thread-safe, allocates nothing. */
TY_API void ty_signals_predict(const struct ty_prediction *prediction,
                               const struct ty_cluster *cluster, double out[TY_N_SIGNALS]);

typedef struct ty_monitor ty_monitor; /* measured samples */
/* Without a sample. Cost: one allocation. returns TY_OK, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_monitor_create(ty_monitor **out, struct ty_error *error);
TY_API void ty_monitor_destroy(ty_monitor *monitor); /* accepts NULL */
/* A metric of the user's own stands for a signal: "my_step_seconds", "step_time". Cost O(1).
 * returns TY_OK, TY_ERR_INPUT (no such signal), TY_ERR_LIMIT. */
TY_API TY_MUST_CHECK ty_status ty_monitor_map(ty_monitor *monitor, const char *metric,
                                              const char *signal, struct ty_error *error);
/* Adds a saved answer of the Prometheus HTTP API (query or query_range) or a page of an exporter in
 * text form. Counters (_total) become rates between two samples of a series. n_used: samples of
 * known metrics. Cost: linear. returns TY_OK, also without a known metric;
 * TY_ERR_IO; TY_ERR_INPUT with the place, or with the API's own error; TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_monitor_add(ty_monitor *monitor, const char *path,
                                              uint32_t *n_used, struct ty_error *error);

/* One signal. Series are averaged at each time (memory: the largest). It departs when the last
 * samples deviate by more than the tolerance, two of them at least where there are two. */
struct ty_departure {
    enum ty_signal signal;
    double predicted, measured; /* the mean since it departs, else of all */
    double deviation;           /* measured / predicted - 1 */
    bool departs;
    double since_s; /* Unix time; NAN: it does not depart */
    uint32_t n_times, n_series;
    char furthest[96]; /* the series furthest from the prediction then, */
    double furthest_value;
};
/* Signals both measured and predicted, those that depart first, earliest first; n: their number.
 * tolerance: of |deviation|, > 0. Cost O(samples log samples).
 * returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_monitor_compare(const ty_monitor *monitor,
                                                  const double predicted[TY_N_SIGNALS],
                                                  double tolerance,
                                                  struct ty_departure out[TY_N_SIGNALS],
                                                  uint32_t *n, struct ty_error *error);

/* The predicted values in Prometheus text form: gauges trainyard_predicted{signal="power",
 * job="NAME"}. And a Grafana dashboard that shows each beside its measured series. JSON of a
 * comparison. Free with ty_text_free; NULL: out of memory. */
TY_API char *ty_signals_prometheus(const double predicted[TY_N_SIGNALS], const char *job);
TY_API char *ty_signals_grafana(void);
TY_API char *ty_monitor_json(const struct ty_departure *rows, uint32_t n, double tolerance);

#ifdef __cplusplus
}
#endif
#endif
