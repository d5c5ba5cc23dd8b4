/* SPDX-License-Identifier: MIT
 *
 * Units, notes and impossible values in the output of the other benchmarks; texts written for this
 * test, expected values worked out by hand from the units that the tools document.
 */
#include "tests/micro_fixture.h"

static const struct record none = {.kind = "", .tool = "", .file = ""};

static const struct record *at(const struct record_list *list, size_t i)
{
    return i < list->n ? &list->record[i] : &none;
}

static void rejected(const struct record *r, const char *why)
{
    same_text(r->rejected ? r->rejected : "(usable)", why, why);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void check_sizes(void)
{
    static const struct {
        const char *text;
        double unit_B, bytes;
    } sizes[] = {{"32KiB", 1000, 32768},    {"32KB", 1000, 32000},
                 {"32KB", 1024, 32768},     {"4k", 1000, 4096},
                 {"1M", 1000, 1048576},     {"16GiB", 1000, 17179869184},
                 {"1.5MiB", 1000, 1572864}, {"512", 1000, 512},
                 {"512B", 1000, 512},       {"2TiB", 1000, 2199023255552.0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        near(micro_size_bytes(sizes[i].text, sizes[i].unit_B), sizes[i].bytes, 0.0, sizes[i].text);
    static const char *const bad[] = {"", "KiB", "N/A", "12XB", "-4k"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(isnan(micro_size_bytes(bad[i], 1024.0)), "\"%s\" is no size", bad[i]);
}

/* ---- fio --------------------------------------------------------------------------------------
 */

static void fio_job(const char *side, const char *options, struct record_list *list)
{
    char text[1500];
    snprintf(text, sizeof text,
             "fio: note: both iodepth >= 1 and synchronous I/O engine are selected\n"
             "{\"fio version\": \"fio-3.1\", \"global options\": {\"bs\": \"128k,64k\", \"rw\": "
             "\"write\"},\n\"jobs\": [{\"jobname\": \"a}b\", \"error\": 0, \"job options\": {%s},\n"
             "\"write\": {\"io_bytes\": 1000000, %s}}]}\nRun status group 0 (all jobs):\n",
             options, side);
    records_of_text(text, "a.json", list);
}

static void check_fio(void)
{
    struct record_list list;
    fio_job("\"bw\": 640000, \"bw_bytes\": 655360000, \"iops\": 10000", "\"direct\": \"0\"", &list);
    const struct record *r = at(&list, 0);
    near(record_value(r, "bandwidth_bytes_per_s"), 655360000.0, 0.0, "text behind the object");
    near(record_value(r, "block_bytes"), 65536.0, 0.0, "the second size of bs is for writes");
    ok(r->flags == RECORD_PAGE_CACHE, "not direct: the page cache may have taken it");
    same_text(record_value_text(r, "pattern"), "sequential", "rw=write is sequential");
    record_list_free(&list);

    fio_job("\"bw\": 640000, \"iops\": 10000, \"lat\": {\"mean\": 120.5}", "\"direct\": \"1\"",
            &list);
    near(record_value(at(&list, 0), "bandwidth_bytes_per_s"), 655360000.0, 0.0,
         "fio 2: bw alone, in KiB/s");
    near(record_value(at(&list, 0), "latency_mean_s"), 120.5e-6, 1e-12, "and lat in us");
    record_list_free(&list);

    fio_job("\"bw\": 655360, \"bw_bytes\": 655360000, \"iops\": 10000", "", &list);
    rejected(at(&list, 0), "bw_bytes is not 1024 x bw");
    record_list_free(&list);
    fio_job("\"bw\": 640000, \"bw_bytes\": 655360000, \"iops\": 80000", "", &list);
    rejected(at(&list, 0), "the bandwidth is not iops x block size");
    record_list_free(&list);
    fio_job("\"bw\": 640000, \"bw_bytes\": 655360000, \"iops\": 80000",
            "\"bssplit\": \"4k/50:64k/50\"", &list);
    ok(list.n == 1 && !at(&list, 0)->rejected && isnan(record_value(at(&list, 0), "block_bytes")),
       "a mix of block sizes has no size to check");
    record_list_free(&list);

    records_of_text("fio: warning\n{\"fio version\": \"fio-3.36\", \"jobs\": [{\"error\": 5, "
                    "\"read\": {\"io_bytes\": 1, \"bw\": 4, \"iops\": 1}}]}",
                    "a.json", &list);
    rejected(at(&list, 0), "fio reports an error in this job");
    record_list_free(&list);
}

/* ---- devices ------------------------------------------------------------------------------------
 */

static void check_nvbandwidth(void)
{
    static const char matrix[] =
        "nvbandwidth Version: v0.8\nRunning device_to_device_memcpy_write_ce.\n"
        "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0       N/A    100.00\n 1    300.00       N/A\n";
    char text[600];
    struct record_list list;
    snprintf(text, sizeof text, "%s\nSUM device_to_device_memcpy_write_ce 400.00\n", matrix);
    records_of_text(text, "x.txt", &list);
    ok(list.n == 2 && count_rejected(&list) == 0, "N/A cells are no records");
    same_text(record_value_text(at(&list, 0), "from"), "gpu1", "an arrow to the left: from column");
    same_text(record_value_text(at(&list, 0), "to"), "gpu0", "to row");
    record_list_free(&list);
    snprintf(text, sizeof text, "%s\nSUM device_to_device_memcpy_write_ce 900.00\n", matrix);
    records_of_text(text, "x.txt", &list);
    rejected(at(&list, 0), "the cells do not add up to the printed sum");
    record_list_free(&list);
    records_of_text(matrix, "x.txt", &list);
    ok(list.n == 2 && count_flag(&list, RECORD_TRUNCATED) == 2, "no sum: the test was cut");
    record_list_free(&list);
}

static void check_babelstream(void)
{
    struct record_list list;
    /* 2 arrays of 2^20 doubles in 16.777 us: 10^6 B/us = 10^12 B/s = 953674 MiB/s */
    records_of_text("Using HIP device\n"
                    "function,num_times,n_elements,sizeof,max_mibytes_per_sec,min_runtime,"
                    "max_runtime,avg_runtime\n"
                    "Copy,100,1048576,8,953674,0.000016777,0.00002,0.000017\n"
                    "Triad,100,1048576,8,953674,0.000016777,0.00002,0.000017\n",
                    "x.csv", &list);
    near(record_value(at(&list, 0), "bandwidth_bytes_per_s"), 1e12, 1e-5, "--mibibytes");
    rejected(at(&list, 1), "the bandwidth is not bytes moved / shortest time");
    record_list_free(&list);
}

static void check_gemm(void)
{
    struct record_list list;
    /* 2 x 1024 x 4096 x 2048 = 17.18e9 FLOP in 171.8 us are 100 TFLOP/s */
    records_of_text("Elapsed time (in us) for mlp (1024x4096x2048, b=1): 171.799\n"
                    "Throughput (in TFLOP/s) for mlp (1024x4096x2048, b=1): 100.000\n"
                    "Elapsed time for 4x1024x4096x2048: 0.001\n"
                    "Throughput (in TFLOP/s) for 4x1024x4096x2048: 100.000\n"
                    "Elapsed time for layer_norm (2048x4x1024): 0.001\n"
                    "Throughput (in TFLOP/s) for layer_norm (2048x4x1024): 0.017\n"
                    "Elapsed time for 1024x4096x2048: 0.010\n"
                    "Throughput (in TFLOP/s) for 1024x4096x2048: 100.000\n",
                    "x.out", &list);
    ok(list.n == 3, "three matrix products; a norm is none");
    near(record_value(at(&list, 0), "k"), 4096.0, 0.0, "the middle number is summed over");
    near(record_value(at(&list, 0), "n"), 2048.0, 0.0, "the last is a column count");
    near(record_value(at(&list, 1), "batch"), 4.0, 0.0, "four numbers: the batch first");
    near(record_value(at(&list, 1), "time_s"), 4 * 171.799e-6, 1e-5, "time of the batch");
    rejected(at(&list, 2), "the rate is not 2 m n k / time");
    record_list_free(&list);

    records_of_text("** Dtype: torch.bfloat16\n"
                    "- hardware: _CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9)\n"
                    "Tried  79 shapes => the best outcomes were:\n"
                    "mean:   752.8 TFLOPS @ 2048x3072x13312 (MxNxK)\n"
                    "MAMF (max achievable,  boost burst): 842 TFLOPS @ 3072x2816x20480 (MxNxK)\n",
                    "x.txt", &list);
    ok(list.n == 2 && strcmp(at(&list, 0)->tool, "mamf-finder") == 0, "mamf-finder");
    near(record_value(at(&list, 0), "rate_flops_per_s"), 752.8e12, 1e-12, "its rate");
    near(record_value(at(&list, 0), "k"), 13312.0, 0.0, "its K is the last number");
    same_text(record_value_text(at(&list, 1), "statistic"), "MAMF", "which statistic");
    same_text(record_value_text(at(&list, 0), "dtype"), "bfloat16", "type");
    same_text(record_value_text(at(&list, 0), "gpu"), "NVIDIA H100 80GB HBM3", "GPU");
    record_list_free(&list);
}

/* ---- network and storage
 * ------------------------------------------------------------------------- */

static void check_perftest(void)
{
    struct record_list list;
    records_of_text(
        "                    RDMA_Read Bidirectional BW Test\n"
        " Number of qps   : 4\t\tTransport type : IB\n Mtu             : 4096[B]\n"
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
        "MsgRate[Mpps]\n"
        " 65536      5000             391.00             390.00               0.743866\n"
        " 65536      5000             391.00             390.00               0.700000\n",
        "x.txt", &list);
    near(record_value(at(&list, 0), "bandwidth_bytes_per_s"), 390e9 / 8.0, 1e-12,
         "--report_gbits: 10^9 bits");
    near(record_value(at(&list, 0), "both_ways"), 1.0, 0.0, "bidirectional");
    near(record_value(at(&list, 0), "queue_pairs"), 4.0, 0.0, "queue pairs");
    near(record_value(at(&list, 0), "mtu_bytes"), 4096.0, 0.0, "MTU");
    rejected(at(&list, 1), "the bandwidth is not #bytes x MsgRate");
    record_list_free(&list);
    records_of_text(
        "                    RDMA_Write Latency Test\n"
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
        "t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
        " 2       1000          1.01           5.44         1.05     \t       1.06      "
        "  \t0.05\t\t1.20 \t\t5.44\n",
        "x.txt", &list);
    near(record_value(at(&list, 0), "latency_s"), 1.05e-6, 1e-12, "typical latency");
    near(record_value(at(&list, 0), "latency_p99_s"), 1.20e-6, 1e-12, "its 99th percentile");
    record_list_free(&list);
}

static void check_ior(void)
{
    struct record_list list;
    records_of_text("Options: \napi                 : POSIX\nnodes               : 2\n"
                    "tasks               : 16\n\nResults: \n\n"
                    "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   "
                    "total(s)   iter\n"
                    "------    ---------  ---------- ---------  --------   --------   --------   "
                    "--------   ----\n"
                    "write     100.00     1048576    1024.00    0.01       1.0        0.01       "
                    "1.02       0   \n"
                    "remove    -          -          -          -          -          -          "
                    "0.01       0   \n"
                    "Max Write: 100.00 MiB/sec (104.86 MB/sec)\n\nSummary of all tests:\n"
                    "Operation   Max(MiB)   Min(MiB)  Mean(MiB) StdDev a b c d\n"
                    "write         200.00     200.00     200.00       0.00 1 2 3 4\n",
                    "x.txt", &list);
    ok(list.n == 1, "one row: neither the removal nor the summary");
    near(record_value(at(&list, 0), "bandwidth_bytes_per_s"), 104857600.0, 1e-12, "MiB");
    near(record_value(at(&list, 0), "tasks"), 16.0, 0.0, "tasks from the options");
    record_list_free(&list);
}

static void check_torch_bench(void)
{
    struct record_list list;
    records_of_text("- software: torch=2.7.0, cuda=12.8, nccl=(2, 26, 2)\n"
                    "The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):\n\n"
                    "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
                    "|    32KB |   0.00GBps |   0.00GBps |\n"
                    "|    64KB |   0.09GBps |   0.06GBps |\n"
                    "|     1MB |  34.50GBps |  23.00GBps |\n"
                    "|     2MB |  34.50GBps |  34.50GBps |\n",
                    "x.md", &list);
    rejected(at(&list, 0), "algbw is 0.00: the time cannot be told");
    ok((at(&list, 1)->flags & RECORD_COARSE) != 0, "0.06 leaves 8 %% open");
    near(record_value(at(&list, 2), "size_bytes"), 1048576.0, 0.0, "its MB is 2^20 bytes");
    near(record_value(at(&list, 2), "ranks"), 4.0, 0.0, "ranks as printed");
    same_text(record_value_text(at(&list, 2), "torch"), "2.7.0", "PyTorch");
    rejected(at(&list, 3), "busbw is 34.5 GB/s, but all_reduce on 4 ranks with algbw 34.5 GB/s "
                           "gives 51.75");
    record_list_free(&list);
}

int main(void)
{
    check_sizes();
    check_fio();
    check_nvbandwidth();
    check_babelstream();
    check_gemm();
    check_perftest();
    check_ior();
    check_torch_bench();
    return tap_done();
}
