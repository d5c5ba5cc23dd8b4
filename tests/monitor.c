/* SPDX-License-Identifier: MIT
 * Monitoring beside a prediction: answers of the documented Prometheus API made here, their means,
 * rates and departures worked out by hand; captured samples where they are. */
#include "include/trainyard_monitor.h"
#include "include/trainyard_storage.h"
#include "include/trainyard_tools.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static ty_status add_text(ty_monitor *monitor, const char *text, uint32_t *n,
                          struct ty_error *error)
{
    char path[] = "/tmp/ty-monitor-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        return TY_ERR_IO;
    close(file);
    const ty_status status = ty_monitor_add(monitor, path, n, error);
    unlink(path);
    return status;
}

static ty_monitor *open_monitor(void)
{
    ty_monitor *monitor = NULL;
    return ty_monitor_create(&monitor, NULL) == TY_OK ? monitor : NULL;
}

static uint32_t compare(const ty_monitor *monitor, enum ty_signal signal, double predicted,
                        struct ty_departure *out)
{
    double values[TY_N_SIGNALS];
    struct ty_departure rows[TY_N_SIGNALS];
    uint32_t n = 0;
    for (int i = 0; i < TY_N_SIGNALS; i++)
        values[i] = (double)NAN;
    values[signal] = predicted;
    if (ty_monitor_compare(monitor, values, 0.1, rows, &n, NULL) == TY_OK && n > 0)
        *out = rows[0];
    return n;
}

#define ANSWER(rows)                                                                               \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" rows "]}}"
#define POWER(gpu, values)                                                                         \
    "{\"metric\":{\"__name__\":\"DCGM_FI_DEV_POWER_USAGE\",\"Hostname\":\"n1\",\"gpu\":\"" gpu     \
    "\",\"instance\":\"n1:9400\"},\"values\":[" values "]}"

/* Two GPUs at 600 W; from t = 40 on one draws 400 W: the mean, 500 W, is 16.7 % below. */
static void departs(void)
{
    ty_monitor *monitor = open_monitor();
    struct ty_departure row = {0};
    uint32_t n = 0;
    const char *text = ANSWER(
        POWER("0", "[10,\"600\"],[20,\"600\"],[30,\"600\"],[40,\"600\"],[50,\"600\"]") "," POWER(
            "1", "[10,\"600\"],[20,\"630\"],[30,\"600\"],[40,\"400\"],[50,\"400\"]"));
    ok(add_text(monitor, text, &n, NULL) == TY_OK && n == 10, "a matrix of two GPUs");
    ok(compare(monitor, TY_SIGNAL_POWER, 600, &row) == 1 && row.departs, "power departs");
    near(row.since_s, 40, 0.0, "since t = 40");
    near(row.measured, 500, 1e-12, "the mean since then");
    near(row.deviation, -1.0 / 6.0, 1e-12, "16.7 % below");
    same_text(row.furthest, "n1 gpu 1", "the GPU that is furthest");
    near(row.furthest_value, 400, 0.0, "at 400 W");
    ok(compare(monitor, TY_SIGNAL_POWER, 520, &row) == 1 && !row.departs, "against 520 W: over, "
                                                                          "then within");
    near(row.measured, (3 * 600 + 15 + 2 * 500) / 5.0, 1e-12, "the mean of all");
    ok(isnan(row.since_s) && row.n_times == 5 && row.n_series == 2, "5 times of 2 series");
    ok(compare(monitor, TY_SIGNAL_CLOCK, 1e9, &row) == 0, "what was not measured has no row");
    ty_monitor_destroy(monitor);
}

/* One sample out of range at the end is no departure; all of one sample is. */
static void single(void)
{
    ty_monitor *monitor = open_monitor();
    struct ty_departure row = {0};
    uint32_t n;
    ok(add_text(monitor, ANSWER(POWER("0", "[10,\"600\"],[20,\"300\"]")), &n, NULL) == TY_OK,
       "two samples");
    ok(compare(monitor, TY_SIGNAL_POWER, 600, &row) == 1 && !row.departs, "one sample may stray");
    ty_monitor_destroy(monitor);
    monitor = open_monitor();
    ok(add_text(monitor,
                "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{"
                "\"metric\":{\"__name__\":\"DCGM_FI_DEV_FB_USED\",\"gpu\":\"0\"},\"value\":[9,"
                "\"70000\"]},{\"metric\":{\"__name__\":\"DCGM_FI_DEV_FB_USED\",\"gpu\":\"1\"},"
                "\"value\":[9,\"60000\"]}]}}",
                &n, NULL) == TY_OK &&
           n == 2,
       "an instant query");
    ok(compare(monitor, TY_SIGNAL_MEMORY, 80000 * 1048576.0, &row) == 1 && row.departs, "departs");
    near(row.measured, 70000 * 1048576.0, 1e-12, "memory: the largest, from MiB");
    ty_monitor_destroy(monitor);
}

#define CPU(cpu, mode, values)                                                                     \
    "{\"metric\":{\"__name__\":\"node_cpu_seconds_total\",\"instance\":\"n1:9100\",\"cpu\":\"" cpu \
    "\",\"mode\":\"" mode "\"},\"values\":[" values "]}"

/* Rates of counters: cpu 0 is busy 0.8 of the time in two modes, cpu 1 0.5; idle does not count. */
static void counters(void)
{
    ty_monitor *monitor = open_monitor();
    struct ty_departure row = {0};
    uint32_t n;
    const char *text = ANSWER(CPU("0", "user", "[10,\"100\"],[20,\"106\"],[30,\"112\"]") "," CPU(
        "0", "system",
        "[10,\"7\"],[20,\"9\"],[30,\"11\"]") "," CPU("1", "user",
                                                     "[10,\"0\"],"
                                                     "[20,\"5\"],[30,"
                                                     "\"10\"]") "," CPU("1", "idle",
                                                                        "[10,\"0\"],[20,\"5\"],[30,"
                                                                        "\"10\"]"));
    ok(add_text(monitor, text, &n, NULL) == TY_OK && n == 6, "two rates of three series");
    ok(compare(monitor, TY_SIGNAL_CPU, 1.3, &row) == 1, "processors");
    near(row.measured, 1.3, 1e-12, "0.6 + 0.2 + 0.5 cores busy");
    ty_monitor_destroy(monitor);
    monitor = open_monitor();
    ok(add_text(monitor, ANSWER(CPU("0", "user", "[10,\"100\"],[20,\"5\"],[30,\"10\"]")), &n,
                NULL) == TY_OK &&
           n == 1,
       "a counter that was reset has no rate there");
    ty_monitor_destroy(monitor);
}

static void own_metrics(void)
{
    ty_monitor *monitor = open_monitor();
    struct ty_departure row = {0};
    struct ty_error error = {0};
    uint32_t n;
    ok(ty_monitor_map(monitor, "loop_seconds", "step_time", NULL) == TY_OK, "a metric of our own");
    ok(ty_monitor_map(monitor, "x", "steptime", &error) == TY_ERR_INPUT &&
           strstr(error.text, "step_time"),
       "an unknown signal: the legal ones are named");
    ok(add_text(monitor,
                "# TYPE loop_seconds gauge\nloop_seconds{rank=\"0\"} 2.5 1000\n"
                "loop_seconds{rank=\"0\"} 2.5 2000\nother 1\n",
                &n, NULL) == TY_OK &&
           n == 2,
       "a page in text form");
    ok(compare(monitor, TY_SIGNAL_STEP_TIME, 2.0, &row) == 1 && row.departs, "a quarter slower");
    near(row.since_s, 1.0, 1e-12, "times of a page are in ms");
    ty_monitor_destroy(monitor);
}

static void refusals(void)
{
    ty_monitor *monitor = open_monitor();
    static const char *const texts[] = {
        "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no such thing\"}",
        "{\"data\":{}}", "{\"status\":\"success\",\"data\":{\"result\":{}}}",
        ANSWER("{\"metric\":{\"__name__\":\"DCGM_FI_DEV_POWER_USAGE\"}}"),
        ANSWER("{\"metric\":{\"__name__\":\"DCGM_FI_DEV_POWER_USAGE\"},\"values\":[[1]]}")};
    uint32_t n;
    struct ty_error error = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ok(add_text(monitor, texts[i], &n, &error) == TY_ERR_INPUT, "refused: %.40s", texts[i]);
    ok(add_text(monitor, texts[0], &n, &error) == TY_ERR_INPUT &&
           strstr(error.text, "no such thing"),
       "the API's own error is passed on");
    ok(add_text(monitor, ANSWER(""), &n, NULL) == TY_OK && n == 0, "an empty answer is empty");
    ok(add_text(monitor, ANSWER(POWER("0", "[1,\"NaN\"],[2,\"5\"]")), &n, NULL) == TY_OK && n == 1,
       "NaN is no sample");
    ok(ty_monitor_add(monitor, "/nonexistent", &n, NULL) == TY_ERR_IO, "no file");
    ty_monitor_destroy(monitor);
}

/* ---- predicted ---------------------------------------------------------------------------- */

static void predicted(void)
{
    struct ty_cluster cluster;
    double out[TY_N_SIGNALS];
    fixture_dgx_h100(&cluster);
    struct ty_input_report input = {.samples_per_s = 100, .sample_bytes = 1e6, .decode_s = 0.02};
    struct ty_storage_report storage = {.has_input = true, .input = input};
    struct ty_prediction p = {.step_time_s = 4.0,
                              .tokens_per_s = 1e5,
                              .peak_bytes = 6e10,
                              .hardware_flop_per_s_per_gpu = 4e14,
                              .plan = {.n_gpus = 16, .precision = TY_BF16_PRECISION},
                              .outlay = {.power_w = 9600},
                              .storage = &storage};
    storage.input.can_tier = "nvme";
    p.breakdown_s[TY_PART_GEMM] = 3.0;
    p.breakdown_s[TY_PART_BUBBLE] = 0.6;
    p.breakdown_s[TY_PART_INPUT_STALL] = 0.4;
    ty_signals_predict(&p, &cluster, out);
    near(out[TY_SIGNAL_GPU_ACTIVE], 0.75, 1e-12, "busy 3 of 4 s");
    near(out[TY_SIGNAL_POWER], 600, 1e-12, "W of a GPU");
    near(out[TY_SIGNAL_TENSOR_ACTIVE], 4e14 / 989e12, 1e-3, "of the peak of an H100");
    near(out[TY_SIGNAL_CPU], 100 * 0.02 / 2, 1e-12, "cores of each of 2 nodes");
    near(out[TY_SIGNAL_STORAGE_READ], 50e6, 1e-12, "bytes/s of a node");
    p.storage = NULL;
    ty_signals_predict(&p, &cluster, out);
    ok(isnan(out[TY_SIGNAL_CPU]) && isnan(out[TY_SIGNAL_STORAGE_READ]), "none without an input");
    out[TY_SIGNAL_CLOCK] = (double)NAN;
    char *text = ty_signals_prometheus(out, "a \"b\"\\");
    ok(text && strstr(text,
                      "\ntrainyard_predicted{signal=\"step_time\",model=\"a \\\"b\\\"\\\\\"} 4\n"),
       "Prometheus text form, labels escaped");
    ok(text && !strstr(text, "clock"), "what is not predicted is not there");
    ty_text_free(text);
}

static void dashboard(void)
{
    char *text = ty_signals_grafana();
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    const cJSON *panels = json ? cJSON_GetObjectItem(json, "panels") : NULL, *panel;
    int good = 0;
    cJSON_ArrayForEach(panel, panels)
    {
        const cJSON *targets = cJSON_GetObjectItem(panel, "targets");
        const cJSON *second = cJSON_GetObjectItem(cJSON_GetArrayItem(targets, 1), "expr");
        good += cJSON_GetArraySize(targets) == 2 && cJSON_IsString(second) &&
                strncmp(second->valuestring, "trainyard_predicted{", 20) == 0;
    }
    ok(good == TY_N_SIGNALS, "a panel a signal, measured beside predicted");
    cJSON_Delete(json);
    ty_text_free(text);
}

/* Captured answers: 3 times of 2 GPUs, 612.4 and 619.7 W. */
static void captured(void)
{
    const char *path = shared_path("data/samples/prometheus/api-query-range-matrix.json");
    ty_monitor *monitor = open_monitor();
    struct ty_departure row = {0};
    uint32_t n = 0;
    if (!path || access(path, R_OK) != 0) {
        skip("a captured answer", "no shared/data/samples/prometheus");
    } else {
        ok(ty_monitor_add(monitor, path, &n, NULL) == TY_OK && n >= 6, "a captured answer");
        ok(compare(monitor, TY_SIGNAL_POWER, 616.0, &row) == 1 && !row.departs, "as predicted");
        within(row.measured, 616.0, 10.0, "its mean");
    }
    ty_monitor_destroy(monitor);
}

int main(void)
{
    departs();
    single();
    counters();
    own_metrics();
    refusals();
    predicted();
    dashboard();
    captured();
    return tap_done();
}
