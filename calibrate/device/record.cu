/* SPDX-License-Identifier: MIT
 * Records as JSON lines, flushed one by one; which points a file holds already; clocks and power by NVML,
 * which is opened at run time because it belongs to the driver. */
#include "calibrate/device/device.h"

#include <algorithm>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <time.h>
#include <unistd.h>
#include <unordered_set>

/* The state of this program's one output file. */
static FILE *out;
static std::unordered_set<std::string> known;
static int written;

double quantile(struct timing *timing, double share)
{
    std::sort(timing->s, timing->s + timing->n);
    const double at = share * (timing->n - 1);
    const int low = (int)at, high = std::min(low + 1, timing->n - 1);
    return timing->s[low] + (at - low) * (timing->s[high] - timing->s[low]);
}

/* ---- NVML ------------------------------------------------------------------------------------ */

typedef void *nvml_device;
static struct {
    bool tried;
    int (*by_bus)(const char *bus, nvml_device *device);
    int (*power_mw)(nvml_device device, unsigned *milliwatt);
    int (*clock_mhz)(nvml_device device, int clock, unsigned *mhz);
    int (*driver)(char *version, unsigned bytes);
} nvml;

static void nvml_open(void)
{
    nvml.tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = library ? (int (*)(void))dlsym(library, "nvmlInit_v2") : NULL;
    if (!init || init() != 0)
        return;
    nvml.by_bus = (int (*)(const char *, nvml_device *))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    nvml.power_mw = (int (*)(nvml_device, unsigned *))dlsym(library, "nvmlDeviceGetPowerUsage");
    nvml.clock_mhz = (int (*)(nvml_device, int, unsigned *))dlsym(library, "nvmlDeviceGetClockInfo");
    nvml.driver = (int (*)(char *, unsigned))dlsym(library, "nvmlSystemGetDriverVersion");
}

/* Appends clock and power of a device right after its work. */
static void add_clocks(int index, std::string &text)
{
    char bus[32], part[96];
    nvml_device device;
    unsigned value;
    if (!nvml.tried)
        nvml_open();
    if (!nvml.by_bus || cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess ||
        nvml.by_bus(bus, &device) != 0)
        return;
    if (nvml.clock_mhz && nvml.clock_mhz(device, 1, &value) == 0) { /* 1: SM */
        snprintf(part, sizeof part, ", \"clock_hz\": %.0f", 1e6 * value);
        text += part;
    }
    if (nvml.power_mw && nvml.power_mw(device, &value) == 0) {
        snprintf(part, sizeof part, ", \"power_w\": %.1f", 1e-3 * value);
        text += part;
    }
}

/* ---- text of a record ------------------------------------------------------------------------ */

static std::string quoted(const char *text)
{
    std::string result = "\"";
    for (; *text; text++)
        if ((unsigned char)*text >= ' ' && *text != '"' && *text != '\\')
            result += *text;
    return result + "\"";
}

static const struct {
    const char *kind, *name, *size[4];
} keys[] = {{"gemm", "direction", {"m", "n", "k"}},
            {"grouped_gemm", "direction", {"groups", "m", "n", "k"}},
            {"attention", "passes", {"batch", "heads", "seq_len", "head_dim"}},
            {"memory", "function", {"elements", "row"}},
            {"launch", "mode", {}},
            {"copy", "test", {"size_bytes"}},
            {"collective", "op", {"size_bytes", "ranks", "ranks_per_domain"}},
            {"overlap", "op", {"size_bytes", "channels"}}};

/* Kind and parameters, as they stand in the file. */
static std::string head_of(const struct point *point, const char *more)
{
    std::string text = "{\"kind\": " + quoted(point->kind) + ", \"tool\": \"trainyard-measure\", \"parameters\": {";
    for (const auto &key : keys) {
        if (strcmp(key.kind, point->kind) != 0)
            continue;
        text += quoted(key.name) + ": " + quoted(point->name);
        for (int i = 0; i < 4 && key.size[i]; i++) {
            char part[64];
            snprintf(part, sizeof part, ", \"%s\": %.0f", key.size[i], point->size[i]);
            text += part;
        }
    }
    if (*point->dtype)
        text += ", \"dtype\": " + quoted(point->dtype);
    if (strcmp(point->kind, "copy") == 0) {
        char part[80];
        const bool p2p = strncmp(point->name, "p2p", 3) == 0;
        snprintf(part, sizeof part, ", \"from\": \"%s%.0f\", \"to\": \"%s%.0f\"",
                 p2p || strcmp(point->name, "d2h") == 0 ? "gpu" : "cpu", point->size[1],
                 p2p || strcmp(point->name, "h2d") == 0 ? "gpu" : "cpu", point->size[2]);
        text += part;
    }
    return text + more;
}

static std::string stamp_of(const struct session *session)
{
    char host[64] = "", part[256], driver[64] = "", day[16];
    cudaDeviceProp properties;
    int runtime = 0, version = 0;
    const time_t now = time(NULL);
    gethostname(host, sizeof host - 1);
    std::string text = "\"hardware\": {\"device\": \"cuda\"";
    if (cudaGetDeviceProperties(&properties, session->device[0].index) == cudaSuccess)
        text += ", \"gpu\": " + quoted(properties.name);
    snprintf(part, sizeof part, ", \"gpus\": %d, \"host\": ", session->n_ranks);
    text += part + quoted(host);
    add_clocks(session->device[0].index, text);
    text += "}, \"software\": {\"benchmark\": \"trainyard-measure " TY_VERSION "\"";
    if (nvml.driver && nvml.driver(driver, sizeof driver) == 0)
        text += ", \"driver\": " + quoted(driver);
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess && ncclGetVersion(&version) == ncclSuccess) {
        snprintf(part, sizeof part, ", \"cuda\": \"%d.%d\", \"cublas\": \"%zu\", \"nccl\": \"%d.%d.%d\"",
                 runtime / 1000, runtime % 1000 / 10, cublasLtGetVersion(), version / 10000,
                 version / 100 % 100, version % 100);
        text += part;
    }
    if (strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now)) > 0)
        text += std::string(", \"date\": \"") + day + "\"";
    return text + "}, \"source\": {\"file\": \"measure\"}, \"flags\": []}\n";
}

bool records_add(const struct session *session, const struct point *point, struct timing *timing,
                 const char *more_parameters, const char *values)
{
    char part[256] = "";
    if (timing) /* else all is in values, without the comma in front */
        snprintf(part, sizeof part,
                 "\"time_s\": %.9g, \"time_p10_s\": %.9g, \"time_p90_s\": %.9g, \"samples\": %d",
                 quantile(timing, 0.5), quantile(timing, 0.1), quantile(timing, 0.9), timing->n);
    const std::string line = head_of(point, more_parameters) + "}, \"values\": {" + part + values + "}, " +
                             stamp_of(session);
    written++;
    return fputs(line.c_str(), out) >= 0 && fflush(out) == 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Up to the parameters that identify a point: those of head_of come first. */
bool records_known(const struct point *point)
{
    const std::string head = head_of(point, "");
    for (const auto &line : known)
        if (line.compare(0, head.size(), head) == 0 && (line[head.size()] == ',' || line[head.size()] == '}'))
            return true;
    return false;
}

/* A run that was killed may have left half a line: it goes. */
static bool read_known(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    long whole = 0;
    out = fopen(path, "r+");
    if (!out)
        return false;
    for (ssize_t n; (n = getline(&line, &capacity, out)) > 0;)
        if (line[n - 1] == '\n') {
            whole += n;
            known.insert(line);
        }
    free(line);
    return fflush(out) == 0 && ftruncate(fileno(out), whole) == 0 && fseek(out, 0, SEEK_END) == 0;
}

bool records_open(const struct options *options)
{
    const bool again = options->resume && access(options->out, F_OK) == 0;
    const bool opened = again ? read_known(options->out) : (out = fopen(options->out, "w")) != NULL;
    if (!opened)
        perror(options->out);
    return opened;
}

int records_written(void)
{
    return written;
}

bool records_close(void)
{
    return fclose(out) == 0;
}
