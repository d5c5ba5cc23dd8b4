/* SPDX-License-Identifier: MIT
 * The throughput law on every result of MLPerf Storage v1.0 (mlcommons/storage_results_v1.0):
 *
 *   samples/s = N b n / (start + n T / AU)      n: steps of an epoch, T: compute time of a step
 *
 * AU, the accelerators' utilisation, is what the storage reached: given, not predicted. It leaves
 * out the first step, the throughput does not; so each row also shows how long the loader took to
 * its first batch (n b N / (samples/s) - n T / AU). That start is fitted on the A100 rows only, the
 * median per workload, and checked on the H100 rows, and on all.
 *   mlperf_storage [FILE]
 * batch and compute time: mlcommons/storage, configs/dlio/workload. */
#include "calibrate/csv.h"
#include "models/loader.h"
#include "tests/tap.h"

enum { MAX_ROWS = 256 };

static const struct workload {
    const char *model;
    double batch, a100_s, h100_s, sample_bytes;
    double raw_limit, limit; /* of |median ratio - 1|: without a start, with it */
    int n_rows;
} WORKLOADS[] = {{"unet3d", 7, 0.636, 0.323, 146600628, 0.026, 0.025, 54},
                 {"resnet50", 400, 0.435, 0.224, 114660.07, 0.003, 0.003, 43},
                 {"cosmoflow", 1, 0.00551, 0.0035, 2828486, 0.004, 0.003, 35}};

struct row {
    struct loader loader;
    bool a100;
    double step_s, n_steps; /* T / AU */
    double samples_per_s, bytes_per_s;
};

static struct csv csv;

static double cell(uint64_t row, const char *column)
{
    return atof(csv_cell(&csv, row, csv_column(&csv, column)));
}

static int rows_of(const struct workload *workload, struct row *rows)
{
    int n = 0;
    for (uint64_t i = 0; i < csv.n_rows && n < MAX_ROWS; i++) {
        if (strcmp(csv_cell(&csv, i, csv_column(&csv, "model")), workload->model) != 0)
            continue;
        struct row *row = &rows[n++];
        const double accelerators = cell(i, "accelerators");
        row->a100 = strcmp(csv_cell(&csv, i, csv_column(&csv, "accelerator")), "a100") == 0;
        row->loader = (struct loader){.batch = workload->batch,
                                      .sample_bytes = workload->sample_bytes,
                                      .gpus_per_node = accelerators,
                                      .nodes = 1};
        row->step_s =
            100.0 * (row->a100 ? workload->a100_s : workload->h100_s) / cell(i, "au_mean_pct");
        row->n_steps = floor(cell(i, "num_files") * cell(i, "samples_per_file") / accelerators /
                             workload->batch);
        row->samples_per_s = cell(i, "samples_per_s");
        row->bytes_per_s = cell(i, "MB_per_s") * 0x1p20; /* the column is in MiB/s */
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* Seconds to the first batch, median over the A100 rows. */
static double fitted_start_s(const struct row *rows, int n)
{
    double start_s[MAX_ROWS];
    int n_fit = 0;
    for (int i = 0; i < n; i++)
        if (rows[i].a100)
            start_s[n_fit++] = rows[i].loader.gpus_per_node * rows[i].loader.batch *
                                   rows[i].n_steps / rows[i].samples_per_s -
                               rows[i].n_steps * rows[i].step_s;
    return median(start_s, n_fit);
}

static double median_ratio(struct row *rows, int n, double start_s, bool h100_only)
{
    double ratio[MAX_ROWS];
    int n_ratios = 0;
    for (int i = 0; i < n; i++) {
        rows[i].loader.start_s = start_s;
        if (!(h100_only && rows[i].a100))
            ratio[n_ratios++] =
                loader_epoch_samples_per_s(&rows[i].loader, rows[i].step_s, rows[i].n_steps) /
                rows[i].samples_per_s;
    }
    return median(ratio, n_ratios);
}

static double median_bytes_ratio(const struct row *rows, int n)
{
    double ratio[MAX_ROWS];
    for (int i = 0; i < n; i++)
        ratio[i] = rows[i].samples_per_s * rows[i].loader.sample_bytes / rows[i].bytes_per_s;
    return median(ratio, n);
}

static void check(const struct workload *workload)
{
    static struct row rows[MAX_ROWS];
    char what[128];
    const int n = rows_of(workload, rows);
    ok(n == workload->n_rows, "%s: %d results", workload->model, n);
    if (n == 0)
        return;
    const double start_s = fitted_start_s(rows, n);
    printf("# %s: median ratio %.4f without a start; first batch after %.2f s (A100 rows): "
           "all %.4f, H100 rows %.4f\n",
           workload->model, median_ratio(rows, n, 0.0, false), start_s,
           median_ratio(rows, n, start_s, false), median_ratio(rows, n, start_s, true));
    snprintf(what, sizeof what, "%s: median ratio, no start", workload->model);
    within(median_ratio(rows, n, 0.0, false), 1.0, workload->raw_limit, what);
    snprintf(what, sizeof what, "%s: median ratio of all results", workload->model);
    within(median_ratio(rows, n, start_s, false), 1.0, workload->limit, what);
    snprintf(what, sizeof what, "%s: median ratio of the H100 results", workload->model);
    within(median_ratio(rows, n, start_s, true), 1.0, workload->limit, what);
    snprintf(what, sizeof what, "%s: bytes per second", workload->model);
    within(median_bytes_ratio(rows, n), 1.0, 1e-4, what);
}

int main(int argc, char **argv)
{
    const char *path =
        argc > 1 ? argv[1] : shared_path("data/traces/mlperf-storage-v1.0-results.csv");
    struct ty_error error;
    if (csv_read(path, &csv, &error) != TY_OK) {
        skip("MLPerf Storage v1.0", "data/traces of the shared material is absent");
        return tap_done();
    }
    ok(csv.n_rows == 132, "132 results");
    for (size_t i = 0; i < sizeof WORKLOADS / sizeof *WORKLOADS; i++)
        check(&WORKLOADS[i]);
    csv_free(&csv);
    return tap_done();
}
