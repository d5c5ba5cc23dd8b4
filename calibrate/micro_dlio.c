/* SPDX-License-Identifier: MIT
 *
 * DLIO's summary (one record per epoch) and MLPerf Storage's report (one per run; its means over
 * runs are left out). Their MB is 2^20 bytes:
 *   MB per second = samples per second x bytes of a sample / 2^20
 * (unet3d: 160.2 samples/s of 146600628 B are the 22395 MB/s that the report prints.)
 */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define MB_BYTES 1048576.0

struct storage_run {
    const char *run; /* name or NULL */
    double epoch, samples_per_s, bytes_per_s, utilisation;
};

static void add(struct record_list *list, struct record *head, const struct json_at *setting,
                const struct storage_run *run)
{
    struct record_fields f = {.n = 0};
    double accelerators = micro_json_number(setting, "train_num_accelerators");
    if (isnan(accelerators))
        accelerators = micro_json_number(setting, "num_accelerators");
    record_text(&f, RECORD_PARAMETER, "op", "read");
    record_text(&f, RECORD_PARAMETER, "model",
                record_copy(list, micro_json_text(setting, "model")));
    record_text(&f, RECORD_PARAMETER, "accelerator",
                record_copy(list, micro_json_text(setting, "accelerator")));
    record_number(&f, RECORD_PARAMETER, "accelerators", accelerators);
    record_number(&f, RECORD_PARAMETER, "files", micro_json_number(setting, "num_files_train"));
    record_number(&f, RECORD_PARAMETER, "samples_per_file",
                  micro_json_number(setting, "num_samples_per_file"));
    record_text(&f, RECORD_PARAMETER, "run", run->run ? record_copy(list, run->run) : NULL);
    record_number(&f, RECORD_PARAMETER, "epoch", run->epoch);
    record_number(&f, RECORD_VALUE, "samples_per_s", run->samples_per_s);
    record_number(&f, RECORD_VALUE, "bandwidth_bytes_per_s", run->bytes_per_s);
    record_number(&f, RECORD_VALUE, "accelerator_utilisation", run->utilisation);
    head->rejected = run->samples_per_s > 0.0 ? NULL : "samples per second must be above 0";
    record_add(list, head, &f);
}

/* Item `index` of an array of numbers; NAN beyond its end. */
static double item_number(const struct json_at *object, const char *key, uint32_t index)
{
    struct json_at array, item = {0};
    double value = (double)NAN;
    if (!json_find(object, key, &array) || index >= json_size(&array))
        return value;
    for (uint32_t i = 0; i <= index; i++)
        if (!json_next(&array, &item))
            return value;
    if (json_type_of(&item) != JSON_NUMBER)
        return value;
    return json_get_double(&item, 0.0, HUGE_VAL, &value, NULL) == TY_OK ? value : (double)NAN;
}

/* The bytes per second of an epoch follow from the mean bytes of a sample. */
static void read_summary(const struct json_at *top, const struct json_at *metric,
                         struct record *head, struct record_list *list)
{
    static const char samples[] = "train_throughput_samples_per_second";
    struct json_at epochs;
    const double mean = micro_json_number(metric, "train_throughput_mean_samples_per_second");
    const double sample_bytes =
        micro_json_number(metric, "train_io_mean_MB_per_second") * MB_BYTES / mean;
    const uint32_t n = json_find(metric, samples, &epochs) ? json_size(&epochs) : 0;
    for (uint32_t i = 0; i < n && i < 10000; i++) {
        struct storage_run run = {.epoch = i + 1.0};
        run.samples_per_s = item_number(metric, samples, i);
        run.bytes_per_s = run.samples_per_s * sample_bytes;
        run.utilisation = item_number(metric, "train_au_percentage", i) / 100.0;
        head->flags = RECORD_DERIVED;
        add(list, head, top, &run);
    }
}

static void read_report_run(const struct json_at *run, const char *name, struct record *head,
                            struct record_list *list)
{
    struct storage_run out = {.run = name, .epoch = (double)NAN};
    static const char *const samples[] = {"train_throughput_samples_per_second",
                                          "train_throughput_mean_samples_per_second"};
    static const char *const bytes[] = {"train_throughput_MB_per_second",
                                        "train_throughput_mean_MB_per_second"};
    const size_t mean = isnan(micro_json_number(run, samples[0])) ? 1u : 0u;
    out.samples_per_s = micro_json_number(run, samples[mean]);
    out.bytes_per_s = micro_json_number(run, bytes[mean]) * MB_BYTES;
    out.utilisation = micro_json_number(run, "train_au_percentage") / 100.0;
    head->flags = 0;
    add(list, head, run, &out);
}

ty_status micro_read_dlio(struct import_file *file, struct record_list *list,
                          struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at metric, runs, overall, item = {0};
    ty_status status = micro_json(file, &document, error);
    if (status != TY_OK)
        return status;
    struct record head = {.kind = "storage",
                          .tool = "mlperf-storage",
                          .file = record_copy(list, micro_file_name(file->path))};
    if (json_find(&document.top, "metric", &metric)) {
        head.tool = "dlio";
        read_summary(&document.top, &metric, &head, list);
    } else if (json_find(&document.top, "runs", &runs) && json_size(&runs) > 0) {
        while (json_next(&runs, &item))
            read_report_run(&item, json_key(&item), &head, list);
    } else if (json_find(&document.top, "overall", &overall)) {
        read_report_run(&overall, "overall", &head, list);
    }
    json_free(&document);
    return record_list_status(list, file->path, error);
}
