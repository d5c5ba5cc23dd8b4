/* SPDX-License-Identifier: MIT
 *
 * The other sample results of the shared material: expected values are those printed in the files,
 * brought to SI by the unit each tool's documentation gives (fio: KiB; perftest, DLIO: MB of 2^20;
 * BabelStream: MB of 10^6; nvbandwidth: GB of 10^9).
 */
#include "tests/micro_fixture.h"

#define SAMPLES "data/micro/samples/"

static void load(const char *name, size_t n_records, struct record_list *list)
{
    struct ty_error error = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s", shared_path(SAMPLES));
    snprintf(path + strlen(path), sizeof path - strlen(path), "%s", name);
    if (!ok(records_of_file(path, list, &error), "%s is read", name))
        printf("#   %s: %s\n", error.where, error.text);
    ok(list->n == n_records, "%s: %zu records", name, n_records);
    ok(count_rejected(list) == 0, "%s: none rejected", name);
}

static void has(const struct record *record, const char *key, double want, double relative)
{
    char what[120];
    snprintf(what, sizeof what, "%s: %s", record->file, key);
    near(record_value(record, key), want, relative, what);
}

static void says(const struct record *record, const char *key, const char *want)
{
    char what[120];
    snprintf(what, sizeof what, "%s: %s", record->file, key);
    same_text(record_value_text(record, key), want, what);
}

static const struct record empty = {.kind = "", .tool = "", .file = ""};

static const struct record *at(const struct record_list *list, size_t i)
{
    return i < list->n ? &list->record[i] : &empty;
}

/* ---- devices ------------------------------------------------------------------------------- */

static void check_nvbandwidth(void)
{
    struct record_list list;
    load("nvbandwidth_gb200.txt", 8, &list); /* 2 + 2 + 2 + 2 cells that are not N/A */
    const struct record *r = at(&list, 1);
    says(r, "test", "host_to_device_memcpy_ce");
    says(r, "from", "cpu0");
    says(r, "to", "gpu1");
    has(r, "bandwidth_bytes_per_s", 200.72e9, 1e-12);
    says(r, "gpu", "NVIDIA GB200");
    says(r, "driver", "570.124.06");
    says(r, "cuda", "12.8");
    r = at(&list, 4);
    says(r, "test", "device_to_device_latency_sm");
    has(r, "latency_s", 1727.13e-9, 1e-12);
    ok(isnan(record_value(r, "bandwidth_bytes_per_s")), "a latency is no bandwidth");
    r = at(&list, 7);
    says(r, "test", "device_local_copy");
    says(r, "from", "gpu1");
    has(r, "bandwidth_bytes_per_s", 3273.6e9, 1e-12);
    ok(count_flag(&list, RECORD_TRUNCATED) == 0, "every sum is there");
    record_list_free(&list);

    load("nvbandwidth_gb200.json", 4, &list); /* the waived test has none */
    r = at(&list, 3);
    says(r, "from", "gpu1");
    says(r, "to", "gpu0");
    has(r, "bandwidth_bytes_per_s", 768.02e9, 1e-12);
    says(r, "gpu", "NVIDIA GB200");
    record_list_free(&list);
}

static void check_babelstream(void)
{
    struct record_list list;
    load("babelstream_h100.csv", 5, &list);
    const struct record *triad = at(&list, 3);
    says(triad, "function", "triad");
    has(triad, "bandwidth_bytes_per_s", 2.97e12, 1e-12);
    has(triad, "array_bytes", 33554432.0 * 8.0, 1e-12);
    has(triad, "time_min_s", 271e-6, 1e-12);
    record_list_free(&list);
}

static void check_gemm(void)
{
    struct record_list list;
    load("cookbook_mm_a100.out", 2, &list);
    const struct record *r = at(&list, 1);
    has(r, "m", 8192.0, 0.0);
    has(r, "rate_flops_per_s", 253.7e12, 1e-12);
    has(r, "time_s", 2.0 * 8192.0 * 8192.0 * 8192.0 / 253.7e12, 1e-12); /* printed: 0.004 */
    ok(r->flags == RECORD_DERIVED, "its time is calculated");
    record_list_free(&list);
}

static void check_torch_bench(void)
{
    struct record_list list;
    load("torch_all_reduce_bench_h200x8.md", 20, &list);
    const struct record *r = at(&list, 5);
    says(r, "op", "all_reduce");
    has(r, "size_bytes", 1048576.0, 0.0);
    has(r, "busbw_bytes_per_s", 39.93e9, 1e-12);
    has(r, "algbw_bytes_per_s", 22.82e9, 1e-12);
    has(r, "time_s", 1048576.0 / 22.82e9, 1e-12);
    has(r, "ranks", 8.0, 0.0); /* 482.26 / 275.58 = 1.75 = 2 x 7/8 */
    record_list_free(&list);
}

/* ---- network and storage --------------------------------------------------------------------- */

static void check_perftest(void)
{
    struct record_list list;
    load("ib_write_bw_hdr.txt", 3, &list);
    const struct record *r = at(&list, 1);
    says(r, "op", "write");
    has(r, "size_bytes", 65536.0, 0.0);
    has(r, "bandwidth_bytes_per_s", 21167.79 * 1048576.0, 1e-12);
    has(r, "bandwidth_bytes_per_s", 65536.0 * 0.338685e6, 1e-5); /* the message rate agrees */
    has(r, "bandwidth_peak_bytes_per_s", 23330.56 * 1048576.0, 1e-12);
    has(r, "queue_pairs", 1.0, 0.0);
    says(r, "link", "IB");
    record_list_free(&list);
}

static void check_fio(void)
{
    struct record_list list;
    load("fio_randread.json", 1, &list); /* the sides without bytes give none */
    const struct record *r = at(&list, 0);
    says(r, "op", "read");
    says(r, "pattern", "random");
    says(r, "engine", "libaio");
    has(r, "block_bytes", 4096.0, 0.0);
    has(r, "depth", 64.0, 0.0);
    has(r, "jobs", 4.0, 0.0);
    has(r, "bandwidth_bytes_per_s", 348743777.0, 0.0);
    has(r, "operations_per_s", 85138.890741, 0.0);
    has(r, "latency_mean_s", 1446562.147e-9, 1e-12);
    has(r, "latency_p99_s", 3168000e-9, 1e-12);
    has(r, "time_s", 30.0, 0.0);
    says(r, "tool_version", "fio-3.36");
    ok(r->flags == 0, "direct I/O: no page cache");
    record_list_free(&list);
}

static void check_ior(void)
{
    struct record_list list;
    load("ior_summary.txt", 2, &list);
    has(at(&list, 0), "bandwidth_bytes_per_s", 33645.0 * 1048576.0, 1e-12);
    has(at(&list, 0), "block_bytes", 16384.0 * 1024.0, 0.0);
    has(at(&list, 0), "transfer_bytes", 1048576.0, 0.0);
    has(at(&list, 0), "time_s", 0.486972, 1e-12);
    says(at(&list, 1), "op", "read");
    has(at(&list, 1), "bandwidth_bytes_per_s", 149473.0 * 1048576.0, 1e-12);
    record_list_free(&list);
}

static void check_training_storage(void)
{
    struct record_list list;
    load("mlperf_storage_report.json", 2, &list); /* two runs, not their mean */
    const struct record *r = at(&list, 1);
    says(r, "model", "unet3d");
    says(r, "run", "run2");
    has(r, "accelerators", 8.0, 0.0); /* a text in the file */
    has(r, "samples_per_s", 159.9, 1e-12);
    has(r, "bandwidth_bytes_per_s", 22355.0 * 1048576.0, 1e-12);
    /* unet3d reads 146600628 B a sample (its DLIO configuration): MB is 2^20 here */
    has(r, "bandwidth_bytes_per_s", 159.9 * 146600628.0, 2e-3);
    record_list_free(&list);

    load("dlio_summary.json", 2, &list); /* two epochs */
    r = at(&list, 0);
    has(r, "samples_per_s", 160.5, 1e-12);
    has(r, "accelerator_utilisation", 0.971, 1e-12);
    has(r, "bandwidth_bytes_per_s", 160.5 / 160.2 * 22395.0 * 1048576.0, 1e-12);
    ok(r->flags == RECORD_DERIVED, "an epoch's bandwidth is calculated");
    record_list_free(&list);
}

int main(void)
{
    FILE *there = fopen(shared_path(SAMPLES "README.md"), "r");
    if (!there) {
        skip("sample results of benchmarks", "no shared material");
        return tap_done();
    }
    fclose(there);
    check_nvbandwidth();
    check_babelstream();
    check_gemm();
    check_torch_bench();
    check_perftest();
    check_fio();
    check_ior();
    check_training_storage();
    return tap_done();
}
