/* SPDX-License-Identifier: MIT
 *
 * Figures that no field of a profile holds: what copies, storage, decoding and loading reach. Each
 * is the median over the records of its name whose size is at least a quarter of the largest, so
 * that short transfers do not speak for long ones. */
#include "calibrate/fit_records.h"
#include "calibrate/statistics.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RATES = 64 };
static const double LARGE = 0.25;

struct rate {
    char name[64];
    const char *unit;
    double value, size;
};

static double size_of(const struct record *record)
{
    static const char *const keys[] = {"size_bytes", "block_bytes", "transfer_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (record_value(record, keys[i]) > 0.0)
            return record_value(record, keys[i]);
    return 1.0;
}

static void name_rate(struct rate *out, const char *kind, const struct record *record,
                      const char *key, const char *more)
{
    const char *text = record_value_text(record, key);
    text_format(out->name, sizeof out->name, "%s.%.24s%s%.24s", kind, text, *more ? "." : "", more);
}

static bool copy_rate(const struct record *record, struct rate *out)
{
    const double time_s = record_value(record, "time_s");
    const double bytes_per_s = record_value(record, "bandwidth_bytes_per_s");
    const bool both = record_value(record, "both_ways") > 0.0;
    out->unit = "B/s";
    out->value = bytes_per_s > 0.0 ? bytes_per_s : record_value(record, "size_bytes") / time_s;
    name_rate(out, "copy", record, "test", both ? "both_ways" : "");
    if (out->value > 0.0)
        return true;
    out->unit = "s";
    out->value = record_value(record, "latency_s");
    name_rate(out, "copy", record, "test", "latency");
    return out->value > 0.0;
}

/* Of random access the operations count, of the rest the bytes; an fsync has a time only. */
static bool storage_rate(const struct record *record, struct rate *out)
{
    const char *pattern = record_value_text(record, "pattern");
    const double operations = record_value(record, "operations_per_s");
    out->value = record_value(record, "bandwidth_bytes_per_s");
    out->unit = "B/s";
    if (operations > 0.0 && (strcmp(pattern, "random") == 0 || !(out->value > 0.0))) {
        out->value = operations;
        out->unit = "1/s";
    } else if (!(out->value > 0.0)) {
        out->value = record_value(record, "latency_mean_s");
        out->unit = "s";
    }
    name_rate(out, "storage", record, "op", pattern);
    return out->value > 0.0;
}

static bool decode_rate(const struct record *record, struct rate *out)
{
    const double samples = record_value(record, "samples_per_s");
    out->unit = samples > 0.0 ? "1/s" : "B/s";
    out->value = (samples > 0.0 ? samples : record_value(record, "bandwidth_bytes_per_s")) /
                 record_value(record, "cores");
    name_rate(out, "decode", record, "format", "per_core");
    return out->value > 0.0;
}

static bool loader_rate(const struct record *record, struct rate *out)
{
    out->unit = "1/s";
    out->value = record_value(record, "samples_per_s");
    name_rate(out, "loader", record, "step", "");
    return out->value > 0.0;
}

static bool rate_of(const struct record *record, struct rate *out)
{
    out->size = size_of(record);
    switch (record_kind_of(record)) {
    case RECORD_KIND_COPY:
        return copy_rate(record, out);
    case RECORD_KIND_STORAGE:
        return storage_rate(record, out);
    case RECORD_KIND_DECODE:
        return decode_rate(record, out);
    case RECORD_KIND_LOADER:
        return loader_rate(record, out);
    default:
        return false;
    }
}

static bool usable(const struct records_fit *fit, const struct record *record)
{
    return !record->rejected && !record_lacks(record) && fit_is_of(fit, record) &&
           !(record->flags & (RECORD_SPECIFICATION | RECORD_INVALID_DATA | RECORD_PAGE_CACHE));
}

/* By name and unit, then the larger size first. */
static int by_name(const void *a, const void *b)
{
    const struct rate *left = a, *right = b;
    const int name = strcmp(left->name, right->name), unit = strcmp(left->unit, right->unit);
    if (name || unit)
        return name ? name : unit;
    if (left->size < right->size || left->size > right->size)
        return left->size > right->size ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

static void summarise(struct rate *rates, uint32_t n, double *scratch,
                      struct ty_calibration_rate *out)
{
    uint32_t n_large = 0;
    *out = (struct ty_calibration_rate){.unit = rates[0].unit, .n_records = n};
    text_format(out->name, sizeof out->name, "%s", rates[0].name);
    for (uint32_t i = 0; i < n; i++)
        if (rates[i].size >= LARGE * rates[0].size)
            scratch[n_large++] = rates[i].value;
    stat_sort(scratch, n_large);
    out->value = stat_quantile(scratch, n_large, 0.5);
}

static uint32_t collect(const struct records_fit *fit, struct rate *rates)
{
    uint32_t n = 0;
    for (size_t i = 0; i < fit->records->n; i++) {
        const struct record *record = &fit->records->record[i];
        if (usable(fit, record) && rate_of(record, &rates[n]) && isfinite(rates[n].value))
            n++;
    }
    qsort(rates, n, sizeof *rates, by_name);
    return n;
}

ty_status fit_rates(struct records_fit *fit)
{
    struct ty_calibration *out = fit->out;
    struct rate *rates = calloc(fit->records->n + 1, sizeof *rates);
    double *scratch = calloc(fit->records->n + 1, sizeof *scratch);
    out->rates = arena_get(fit->arena, MAX_RATES, sizeof *out->rates);
    const bool ok = rates && scratch && out->rates;
    const uint32_t n = ok ? collect(fit, rates) : 0;
    for (uint32_t from = 0, to; from < n && out->n_rates < MAX_RATES; from = to) {
        for (to = from; to < n && strcmp(rates[to].name, rates[from].name) == 0 &&
                        strcmp(rates[to].unit, rates[from].unit) == 0;)
            to++;
        summarise(&rates[from], to - from, scratch, &out->rates[out->n_rates++]);
    }
    free(scratch);
    free(rates);
    return ok ? TY_OK : TY_ERR_NOMEM;
}
