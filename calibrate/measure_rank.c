/* SPDX-License-Identifier: MIT
 *
 * The ranks' side. All ranks run a point at the same time, as they do in training; the first one
 * leads: it says which point, how often, and takes the time of its own runs.
 *
 *   t = median over samples of (time of `repeat` runs) / repeat
 *
 * A sample in which some rank lost its core to another process is measured again; when there are
 * never three without, those with are taken. */
#define _GNU_SOURCE
#include "calibrate/import.h"
#include "calibrate/measure.h"
#include "calibrate/statistics.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { NO_POINT = -1, MOST_SAMPLES = 61, FEWEST_SAMPLES = 3 };
static const double SAMPLE_S = 100e-6; /* shorter runs are repeated within a sample */
/* Off its core for longer than this share of a sample and this time: disturbed. */
static const double DISTURBED_RATIO = 0.02, DISTURBED_S = 10e-6;
/* A point whose runs would take more than this of the budget is left out. */
static const double LARGEST_SHARE = 0.1;

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double measure_now_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* ---- records --------------------------------------------------------------------------------- */

/* "model name : AMD EPYC" of the first processor */
static void processor_name(char *out, size_t bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    text_format(out, bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        text_format(out, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

void measure_stamp(struct measure_run *run)
{
    struct utsname system;
    const time_t now = time(NULL);
    struct tm day;
    struct record_fields *stamp = &run->stamp;
    const double pages = (double)sysconf(_SC_PHYS_PAGES), page = (double)sysconf(_SC_PAGESIZE);
    processor_name(run->cpu, sizeof run->cpu);
    record_text(stamp, RECORD_HARDWARE, "device", "cpu");
    record_text(stamp, RECORD_HARDWARE, "cpu", run->cpu);
    if (uname(&system) == 0) {
        text_format(run->host, sizeof run->host, "%.60s", system.nodename);
        text_format(run->kernel, sizeof run->kernel, "%.30s %.60s", system.sysname, system.release);
        record_text(stamp, RECORD_HARDWARE, "host", run->host);
        record_text(stamp, RECORD_SOFTWARE, "kernel", run->kernel);
    }
    if (run->options->device == TY_MEASURE_CPU) {
        record_number(stamp, RECORD_HARDWARE, "gpus", run->n_ranks);
        record_number(stamp, RECORD_HARDWARE, "cores", 1.0);
        record_number(stamp, RECORD_HARDWARE, "mem_bytes", pages * page / run->n_ranks);
        record_text(stamp, RECORD_SOFTWARE, "blas", run->blas.name);
    }
    text_format(run->benchmark, sizeof run->benchmark, "trainyard %s", ty_version());
    record_text(stamp, RECORD_SOFTWARE, "benchmark", run->benchmark);
    if (gmtime_r(&now, &day) && strftime(run->date, sizeof run->date, "%Y-%m-%d", &day))
        record_text(stamp, RECORD_SOFTWARE, "date", run->date);
}

static bool send_line(const struct measure_run *run, const char *text)
{
    const size_t bytes = strlen(text);
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = write(run->out, text + at, bytes - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool measure_send_none(struct measure_run *run, const char *why)
{
    char line[200];
    text_format(line, sizeof line, "-%s\n", why);
    return send_line(run, line);
}

bool measure_send(struct measure_run *run, const struct measure_point *point,
                  struct record_fields *values, uint32_t flags)
{
    struct record_list list;
    struct ty_import line = {0};
    struct json_writer json;
    struct record head = {.kind = record_kind_name(point->kind),
                          .tool = "trainyard",
                          .file = "measure",
                          .flags = flags};
    record_list_init(&list);
    record_stamp(&list, &head, &run->stamp);
    measure_parameters(point, values);
    record_add(&list, &head, values);
    bool sent = list.n == 1;
    if (sent) {
        json_begin(&json);
        record_write(&list.record[0], &json);
        sent = import_add(&line, &json, "", true, NULL) == TY_OK &&
               send_line(run, line.records[0].json) && send_line(run, "\n");
    }
    ty_import_free(&line);
    record_list_free(&list);
    return sent;
}

/* ---- one point ------------------------------------------------------------------------------- */

struct samples {
    double clean_s[MOST_SAMPLES], any_s[MOST_SAMPLES];
    uint32_t n_clean, n;
};

static bool waits_by_nature(const struct measure_point *point)
{
    return point->kind == RECORD_KIND_COPY && strcmp(point->name, "pipe") == 0;
}

/* All ranks: `repeat` runs. returns the time of one; false once stopped. */
static bool sample(struct measure_run *run, const struct measure_point *point, double *time_s)
{
    struct measure_shared *shared = run->shared;
    const uint32_t repeat = atomic_load(&shared->repeat);
    if (!cpu_meet(&shared->all, run->n_ranks))
        return false;
    const double on_core = clock_s(CLOCK_PROCESS_CPUTIME_ID), start = measure_now_s();
    if (measure_cpu_takes_part(run, point))
        for (uint32_t i = 0; i < repeat; i++)
            if (!measure_cpu_once(run, point))
                return false;
    const double wall_s = measure_now_s() - start;
    const double on_core_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - on_core;
    const double off_s = wall_s - on_core_s;
    const bool counts = !waits_by_nature(point);
    shared->disturbed[run->rank] =
        counts && off_s > DISTURBED_S && off_s > DISTURBED_RATIO * wall_s;
    if (counts) {
        shared->on_core_s[run->rank] = shared->on_core_s[run->rank] + on_core_s;
        shared->wall_s[run->rank] = shared->wall_s[run->rank] + wall_s;
    }
    *time_s = wall_s / repeat;
    return cpu_meet(&shared->all, run->n_ranks);
}

static void keep(const struct measure_run *run, double time_s, struct samples *samples)
{
    bool clean = true;
    for (uint32_t i = 0; i < run->n_ranks; i++)
        clean &= !atomic_load(&run->shared->disturbed[i]);
    samples->any_s[samples->n++] = time_s;
    if (clean)
        samples->clean_s[samples->n_clean++] = time_s;
}

/* The leader: another sample? Three clean ones at least while there is time for them. */
static bool enough(const struct samples *samples, double until_s, double latest_s)
{
    const double now = measure_now_s();
    if (samples->n == MOST_SAMPLES)
        return true;
    if (samples->n < FEWEST_SAMPLES)
        return false;
    return samples->n_clean >= FEWEST_SAMPLES ? now > until_s : now > latest_s;
}

static bool report(struct measure_run *run, const struct measure_point *point,
                   struct samples *samples)
{
    struct record_fields values = {.n = 0};
    const bool clean = samples->n_clean >= FEWEST_SAMPLES;
    double *time_s = clean ? samples->clean_s : samples->any_s;
    const uint32_t n = clean ? samples->n_clean : samples->n;
    stat_sort(time_s, n);
    const double median_s = stat_quantile(time_s, n, 0.5);
    record_number(&values, RECORD_VALUE, "time_s", median_s);
    record_number(&values, RECORD_VALUE, "time_p10_s", stat_quantile(time_s, n, 0.1));
    record_number(&values, RECORD_VALUE, "time_p90_s", stat_quantile(time_s, n, 0.9));
    record_number(&values, RECORD_VALUE, "samples", n);
    record_number(&values, RECORD_VALUE, "samples_disturbed", samples->n - samples->n_clean);
    measure_cpu_values(point, median_s, &values);
    return measure_send(run, point, &values, 0);
}

/* All ranks run the point; the leader reports it. slice_s: its share of the time that is left. */
static bool measure(struct measure_run *run, const struct measure_point *point, double slice_s)
{
    struct measure_shared *shared = run->shared;
    const bool leads = run->rank == 0;
    struct samples samples = {.n = 0};
    double time_s = 0.0;
    if (leads)
        shared->repeat = 1;
    if (!cpu_meet(&shared->all, run->n_ranks) || !sample(run, point, &time_s)) /* warm up */
        return false;
    if (leads) {
        const double start = measure_now_s();
        shared->repeat = (uint32_t)fmin(fmax(ceil(SAMPLE_S / fmax(time_s, 1e-9)), 1.0), 1e5);
        for (;;) {
            shared->command = enough(&samples, start + slice_s, start + 4.0 * slice_s);
            if (!cpu_meet(&shared->all, run->n_ranks))
                return false;
            if (shared->command)
                break;
            if (!sample(run, point, &time_s))
                return false;
            keep(run, time_s, &samples);
        }
        return report(run, point, &samples);
    }
    while (cpu_meet(&shared->all, run->n_ranks)) {
        if (shared->command)
            return true;
        if (!sample(run, point, &time_s))
            return false;
    }
    return false;
}

/* ---- all points ------------------------------------------------------------------------------ */

/* The next point from `at` that fits, or NO_POINT. */
static int32_t choose(struct measure_run *run, uint32_t at, bool *sent)
{
    for (; at < run->list->n; at++) {
        const struct measure_point *point = &run->list->point[at];
        const double left_s = run->deadline_s - measure_now_s();
        if (left_s <= 0.0)
            return NO_POINT;
        if (measure_cpu_floats(point) > (double)run->arena_floats)
            *sent &= measure_send_none(run, "!its operands do not fit into memory");
        else if (FEWEST_SAMPLES * measure_cpu_guess_s(point) >
                 fmax(LARGEST_SHARE * run->options->budget_s, left_s / (run->list->n - at)))
            *sent &= measure_send_none(run, "longer than its share of the budget");
        else
            return (int32_t)at;
    }
    return NO_POINT;
}

int measure_rank(struct measure_run *run)
{
    bool sent = true;
    uint32_t at = 0;
    for (;;) {
        if (run->rank == 0)
            run->shared->command = choose(run, at, &sent);
        if (!cpu_meet(&run->shared->all, run->n_ranks))
            return 1;
        const int32_t chosen = run->shared->command;
        if (!cpu_meet(&run->shared->all, run->n_ranks)) /* all have read it */
            return 1;
        if (chosen == NO_POINT || !sent)
            return sent ? 0 : 1;
        at = (uint32_t)chosen + 1;
        const double left_s = run->deadline_s - measure_now_s();
        if (!measure(run, &run->list->point[chosen], left_s / (run->list->n - at + 1)))
            return 1;
    }
}
