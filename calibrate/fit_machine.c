/* SPDX-License-Identifier: MIT
 *
 * The machine that records are of: the cluster that the caller gives; else one with the built-in
 * GPU that most of them name; else, for a processor that nobody has described, one whose peaks
 * stand a little above the best records. The presets of that machine are the priors. */
#include "calibrate/detect.h"
#include "calibrate/fit_records.h"
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* Peaks of an unknown processor over its best records. Only their product with the fitted ratios
 * counts, so that any value that leaves the ratios below 1 will do. */
static const double ABOVE_BEST = 1.5;

enum ty_precision fit_precision(const char *dtype)
{
    static const struct {
        const char *name;
        enum ty_precision precision;
    } others[] = {{"bfloat16", TY_BF16_PRECISION},  {"float16", TY_FP16_PRECISION},
                  {"half", TY_FP16_PRECISION},      {"float32", TY_FP32_PRECISION},
                  {"float", TY_FP32_PRECISION},     {"fp8_e4m3", TY_FP8_PRECISION},
                  {"fp8_e5m2", TY_FP8_PRECISION},   {"fp4", TY_NVFP4_PRECISION},
                  {"fp16/bf16", TY_BF16_PRECISION}, {"float8_e4m3fn", TY_FP8_PRECISION}};
    for (int i = TY_BF16_PRECISION; i < TY_N_PRECISIONS; i++)
        if (strcmp(precision_names[i], dtype) == 0)
            return (enum ty_precision)i;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, dtype) == 0)
            return others[i].precision;
    return TY_AUTO_PRECISION;
}

bool fit_is_of(const struct records_fit *fit, const struct record *record)
{
    const char *name = record_value_text(record, "gpu");
    const gpu_set machine = gpus_built_in(fit->out->cluster.gpu.name);
    if (!*name || strcmp(name, fit->out->cluster.gpu.name) == 0)
        return true;
    const gpu_set named = gpus_by_name(name, (double)NAN);
    return machine ? (named & machine) != 0 : (named & GPU_UNKNOWN) != 0;
}

/* ---- the GPU -------------------------------------------------------------------------------- */

/* The name that most records carry; "" when none has one. Cost O(records * names). */
static const char *common_gpu(const struct record_list *list)
{
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES];
    size_t counts[MAX_NAMES], n = 0, best = 0;
    for (size_t i = 0; i < list->n; i++) {
        const char *name = record_value_text(&list->record[i], "gpu");
        size_t at = 0;
        while (at < n && strcmp(names[at], name) != 0)
            at++;
        if (!*name || at == MAX_NAMES)
            continue;
        if (at == n) {
            names[n] = name;
            counts[n++] = 0;
        }
        counts[at]++;
    }
    for (size_t i = 1; i < n; i++)
        if (counts[i] > counts[best])
            best = i;
    return n ? names[best] : "";
}

static double best_rate(const struct record_list *list, enum record_kind kind)
{
    double best = 0.0;
    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = &list->record[i];
        if (record->rejected || record_kind_of(record) != kind || record_lacks(record))
            continue;
        const double time_s = record_value(record, "time_s");
        const double work = kind == RECORD_KIND_GEMM
                                ? 2.0 * record_value(record, "m") * record_value(record, "n") *
                                      record_value(record, "k")
                                : record_value(record, "moved_bytes");
        const double given = record_value(
            record, kind == RECORD_KIND_GEMM ? "rate_flops_per_s" : "bandwidth_bytes_per_s");
        best = fmax(best, given > 0.0 ? given : work / time_s); /* fmax drops a NAN */
    }
    return best;
}

static double stamped(const struct record_list *list, const char *key, double otherwise)
{
    for (size_t i = 0; i < list->n; i++)
        if (record_value(&list->record[i], key) > 0.0)
            return record_value(&list->record[i], key);
    return otherwise;
}

/* A processor that is in no table, by its own records. */
static void unknown_gpu(const struct record_list *list, struct ty_gpu *gpu)
{
    const double flop_per_s = best_rate(list, RECORD_KIND_GEMM);
    const double bytes_per_s = best_rate(list, RECORD_KIND_MEMORY);
    ty_init(TY_KIND_GPU, gpu);
    text_format(gpu->name, sizeof gpu->name, "unknown");
    gpu->vendor = TY_VENDOR_OTHER;
    gpu->bf16_flop_per_s = gpu->fp16_flop_per_s = gpu->fp32_flop_per_s =
        flop_per_s > 0.0 ? fmin(fmax(ABOVE_BEST * flop_per_s, 1e6), 1e18) : 1e12;
    gpu->mem_bytes_per_s =
        bytes_per_s > 0.0 ? fmin(fmax(ABOVE_BEST * bytes_per_s, 1e6), 1e15) : 100e9;
    gpu->mem_bytes = fmin(fmax(stamped(list, "mem_bytes", 16e9), 1e9), 1e13);
    gpu->sms = (uint32_t)fmin(stamped(list, "cores", 1.0), 4096.0);
    gpu->tdp_w = 500.0;
    gpu->scaleup_domain = 1;
}

static ty_status choose_gpu(struct records_fit *fit, struct ty_gpu *gpu, struct ty_error *error)
{
    struct ty_calibration *out = fit->out;
    const char *named = common_gpu(fit->records);
    const gpu_set set = *named ? gpus_by_name(named, (double)NAN) : GPU_UNKNOWN;
    const char *built_in = gpu_name(set & ~GPU_UNKNOWN, 0);
    if (built_in) {
        text_format(out->note, sizeof out->note, "%.80s is taken for %s; --cluster says otherwise",
                    named, built_in);
        return ty_gpu_load(built_in, gpu, error);
    }
    unknown_gpu(fit->records, gpu);
    text_format(out->note, sizeof out->note,
                "the machine%s%.60s is not known: its peaks are %.3g flop/s and %.3g B/s, %.1f "
                "times the best records; --cluster gives it",
                *named ? " " : "", named, gpu->bf16_flop_per_s, gpu->mem_bytes_per_s, ABOVE_BEST);
    return TY_OK;
}

ty_status fit_machine(struct records_fit *fit, const struct ty_cluster *cluster,
                      struct ty_error *error)
{
    struct ty_cluster *machine = &fit->out->cluster;
    struct ty_profile presets;
    ty_status status = TY_OK;
    fit->network_known = cluster != NULL;
    if (cluster) {
        *machine = *cluster;
    } else {
        ty_init(TY_KIND_CLUSTER, machine);
        status = choose_gpu(fit, &machine->gpu, error);
        text_format(machine->name, sizeof machine->name, "%s", machine->gpu.name);
    }
    if (status == TY_OK)
        status = ty_profile_load(NULL, NULL, machine, &presets, error);
    presets.clock_ratio = 1.0; /* it is in the rates that are fitted */
    return status == TY_OK ? ty_forms_create(machine, &presets, &fit->forms, error) : status;
}
