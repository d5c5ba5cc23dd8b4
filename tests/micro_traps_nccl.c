/* SPDX-License-Identifier: MIT
 *
 * Tables of collectives as launchers, old versions and accidents leave them; written for this test.
 * Times and bandwidths follow algbw = S / t and busbw = f algbw (handbook 5.1), worked out by hand:
 * 1 MiB in 100 us is 10.49 GB/s; f is 1.875 for an all-reduce of 16, 0.875 for a round of 8.
 */
#include "tests/micro_fixture.h"

#define HEADER                                                                                     \
    "#       size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw "       \
    "#wrong\n"                                                                                     \
    "#        (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n"
#define ROW16                                                                                      \
    " 1048576 262144 float sum -1 100.0 10.49 19.66 0 100.0 10.49 19.66 0\n"                       \
    " 2097152 524288 float sum -1 200.0 10.49 19.66 0 200.0 10.49 19.66 0\n"
#define FOOTER "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 19.66\n"

static const struct record none = {.kind = "", .tool = "", .file = ""};

static const struct record *at(const struct record_list *list, size_t i)
{
    return i < list->n ? &list->record[i] : &none;
}

static void rejected(const struct record *r, const char *why)
{
    same_text(r->rejected ? r->rejected : "(usable)", why, why);
}

/* ---- operation and ranks ----------------------------------------------------------------------
 */

static void check_recovery(void)
{
    struct record_list list;
    records_of_text(HEADER ROW16 FOOTER, "x.log", &list);
    ok(list.n == 4 && count_rejected(&list) == 0, "a table without devices or name");
    same_text(record_value_text(at(&list, 0), "op"), "all_reduce", "busbw > algbw: all-reduce");
    near(record_value(at(&list, 0), "ranks"), 16.0, 0.0, "19.66 / 10.49 = 1.875: 16 ranks");
    ok(isnan(record_value(at(&list, 0), "nodes")), "the nodes stay unknown");
    record_list_free(&list);

    /* 2 x 1439/1440 x 75.53 = 150.955; the digits allow about 1370 to 1515 ranks */
    records_of_text(
        HEADER " 536870912 1 float sum -1 7108.1 75.53 150.96 0 7108.1 75.53 150.95 0\n"
               " 536870912 1 float sum -1 7108.1 75.53 150.96 0 7108.1 75.53 150.95 0\n" FOOTER,
        "x.log", &list);
    within(record_value(at(&list, 0), "ranks"), 1440.0, 150.0, "1440 ranks, roughly");
    ok(at(&list, 0)->flags & RECORD_APPROXIMATE, "and it says so");
    record_list_free(&list);

    static const char rounds[] =
        HEADER " 1048576 262144 float %s -1 100.0 10.49 9.18 0 100.0 10.49 9.18 0\n" FOOTER;
    char text[1000];
    snprintf(text, sizeof text, rounds, "sum");
    records_of_text(text, "x.log", &list);
    same_text(record_value_text(at(&list, 0), "op"), "reduce_scatter",
              "a sum with 0.875: reduce-scatter");
    near(record_value(at(&list, 0), "ranks"), 8.0, 0.0, "of 8");
    record_list_free(&list);

    snprintf(text, sizeof text, rounds, "none");
    records_of_text(text, "x.log", &list);
    rejected(at(&list, 0), "the operation is not printed and the rows allow several or none: name "
                           "the file after it (all_gather.log)");
    record_list_free(&list);
    records_of_text(text, "logs/h100-AllToAll-8.txt", &list);
    same_text(record_value_text(at(&list, 0), "op"), "all_to_all", "named by its file");
    record_list_free(&list);
    char named[1100];
    snprintf(named, sizeof named, "$ mpirun -np 8 ./build/all_gather_perf -b 1M\n%s", text);
    records_of_text(named, "x.log", &list);
    same_text(record_value_text(at(&list, 0), "op"), "all_gather", "named by the command line");
    record_list_free(&list);
}

/* ---- versions and launchers ---------------------------------------------------------------------
 */

static void check_before_2019(void)
{
    struct record_list list;
    records_of_text("$ ./build/test/single/all_reduce_test 10000000\n"
                    "# Using devices\n"
                    "#   Device  0 ->  0 [0x0a] GeForce GTX TITAN X\n"
                    "#   Device  1 ->  1 [0x09] GeForce GTX TITAN X\n"
                    "#   Device  2 ->  2 [0x06] GeForce GTX TITAN X\n"
                    "#   Device  3 ->  3 [0x05] GeForce GTX TITAN X\n"
                    "#                 out-of-place                    in-place\n"
                    "#  bytes  N  type  op  time  algbw  busbw  res  time  algbw  busbw  res\n"
                    " 10000000 10000000 char sum 1.628 6.14 9.21 0e+00 1.932 5.18 7.77 0e+00\n"
                    "#        0        0 char sum 0.009 0.00 0.00 N/A 0.010 0.00 0.00 N/A\n",
                    "x.log", &list);
    near(record_value(at(&list, 0), "time_s"), 1.628e-3, 1e-12, "before 2019: milliseconds");
    near(record_value(at(&list, 0), "ranks"), 4.0, 0.0, "devices before 2019");
    same_text(record_value_text(at(&list, 0), "gpu"), "GeForce GTX TITAN X", "and their name");
    ok(list.n == 4, "rows marked with # when nothing is checked");
    rejected(at(&list, 2), "size 0: nothing is sent");
    record_list_free(&list);
}

static void check_labels(void)
{
    static const char *const labels[] = {"[1,0]<stdout>:",
                                         "0: ",
                                         " 12: ",
                                         "[0] ",
                                         "2026-05-28T20:26:40.123456789Z ",
                                         "2026-05-28T20:26:40.123456789Z stdout F ",
                                         "node-01: ",
                                         "[default0]:",
                                         "[pod/nccl-0/main] ",
                                         "[gke-a3-mega-node-0:0]:"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        static const char *const lines[] = {
            "#  size  count  type  redop  root  time  algbw  busbw #wrong",
            " 1048576 262144 float sum -1 100.0 10.49 19.66 0"};
        char text[400];
        struct record_list list;
        snprintf(text, sizeof text, "%s%s\r\n%s%s\r\n", labels[i], lines[0], labels[i], lines[1]);
        records_of_text(text, "x.log", &list);
        ok(list.n == 1 && record_value(at(&list, 0), "size_bytes") == 1048576.0 &&
               count_rejected(&list) == 0,
           "label \"%s\"", labels[i]);
        record_list_free(&list);
    }
}

static void check_two_runs(void)
{
    struct record_list list;
    records_of_text("# nThread 1 nGpus 8 minBytes 8\n# Using devices\n"
                    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x1] GPU ONE\n"
                    "#  Rank  1 Group  0 Pid 2 on b device 0 [0x1] GPU ONE\n" HEADER
                    " 1048576 262144 float sum -1 100.0 10.49 10.49 0 N/A N/A N/A N/A\n"
                    "# Avg bus bandwidth : 10\n"
                    "# Collective test concluded: all_reduce_perf\n"
                    "# Collective test starting: sendrecv_perf\n"
                    "# nThread 1 nGpus 8 minBytes 8\n# Using devices\n"
                    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x1] GPU TWO\n"
                    "#  Rank  1 Group  0 Pid 2 on a device 1 [0x1] GPU TWO\n"
                    "#  Rank  2 Group  0 Pid 3 on a device 2 [0x1] GPU TWO\n"
                    "host:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n" HEADER
                    " 1048576 262144 half none -1 100.0 10.49 10.49 0 100.0 10.49 10.49 N/A\n",
                    "x.log", &list);
    ok(list.n == 3, "two runs in a file: 1 + 2 rows, a half of N/A has none");
    const struct record *one = at(&list, 0), *two = at(&list, 1);
    same_text(record_value_text(one, "op"), "all_reduce", "two ranks, sum, no root: all-reduce");
    near(record_value(one, "nodes"), 2.0, 0.0, "first run on two nodes");
    same_text(record_value_text(two, "op"), "send_recv", "second run");
    near(record_value(two, "ranks"), 3.0, 0.0, "of three ranks");
    near(record_value(two, "nodes"), 1.0, 0.0, "on one node");
    same_text(record_value_text(two, "gpu"), "GPU TWO", "of another GPU");
    same_text(record_value_text(two, "dtype"), "fp16", "half is fp16");
    same_text(record_value_text(two, "environment"), "NCCL_ALGO=Ring.", "with NCCL_ALGO set");
    ok(!(one->flags & RECORD_TRUNCATED) && (two->flags & RECORD_TRUNCATED),
       "the second has no end");
    record_list_free(&list);
}

/* ---- rows
 * ------------------------------------------------------------------------------------------ */

static void check_impossible(void)
{
    struct record_list list;
    records_of_text("$ all_reduce_perf\n# Using devices\n"
                    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x1] G\n"
                    "#  Rank  1 Group  0 Pid 1 on a device 1 [0x1] G\n"
                    "#  Rank  2 Group  0 Pid 1 on a device 2 [0x1] G\n"
                    "#  Rank  3 Group  0 Pid 1 on a device 3 [0x1] G\n" HEADER
                    " 1048576 262144 float sum -1 100.0 10.49 15.73 0 100.0 10.49 9.18 0\n"
                    " 1048576 262144 float sum -1 100.0 10.49 15.73 3 100.0 20.97 31.46 0\n"
                    " 1048576 262144 float sum -1 100.0 10.49 host:1:2 [0] NCCL WARN lost\n"
                    " 2097152 524288 float sum -1   0.0 10.49 15.73 0 200.0 10.49 15.73 0\n"
                    " 4194304 1048576 float sum -1 400.0 10.4\n",
                    "x.log", &list);
    ok(list.n == 7, "every row is kept, usable or not");
    ok(!at(&list, 0)->rejected, "1.5 on four ranks is right");
    rejected(at(&list, 1), "busbw is 9.18 GB/s, but all_reduce on 4 ranks with algbw 10.49 GB/s "
                           "gives 15.73");
    rejected(at(&list, 2), "3 wrong results");
    rejected(at(&list, 3), "algbw is 20.97 GB/s, but size / time is 10.49");
    rejected(at(&list, 4), "the row is cut, or another line was printed into it");
    ok(at(&list, 5)->rejected == NULL, "the half with time 0 gives no row");
    rejected(at(&list, 6), "the row is cut, or another line was printed into it");
    ok(at(&list, 6)->line == 13, "rows know their line");
    record_list_free(&list);

    records_of_text("$ all_reduce_perf\n# Using devices\n"
                    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x1] G\n" HEADER
                    " 1048576 262144 float sum -1 10.0 104.86 0.00 0 10.0 104.86 0.00 0\n",
                    "x.log", &list);
    rejected(at(&list, 0), "one rank: nothing is sent");
    record_list_free(&list);

    records_of_text(HEADER ROW16 "# Out of bounds values : 7 FAILED\n", "x.log", &list);
    ok(count_flag(&list, RECORD_INVALID_DATA) == 4, "a failed validation marks the table");
    record_list_free(&list);
}

/* 30 % slower than a larger size: the first row is cold, another one disturbed. */
static void check_slow_rows(void)
{
    struct record_list list;
    records_of_text(HEADER " 8 2 float sum -1 45.72 0.00 0.00 0 29.78 0.00 0.00 0\n"
                           " 16 4 float sum -1 30.00 0.00 0.00 0 29.00 0.00 0.00 0\n"
                           " 32 8 float sum -1 38.00 0.00 0.00 0 41.00 0.00 0.00 0\n"
                           " 64 16 float sum -1 30.50 0.00 0.00 0 30.00 0.00 0.00 0\n" ROW16 FOOTER,
                    "all_reduce.log", &list);
    ok(at(&list, 0)->flags == RECORD_COLD, "the first row, 45.7 us before 30: cold");
    ok(at(&list, 1)->flags == 0, "in place it is warm");
    ok(at(&list, 4)->flags == 0, "38 us before 30.5: within what algorithms do");
    ok(at(&list, 5)->flags == RECORD_OUTLIER, "41 us before 30: an outlier");
    record_list_free(&list);
}

int main(void)
{
    check_recovery();
    check_before_2019();
    check_labels();
    check_two_runs();
    check_impossible();
    check_slow_rows();
    return tap_done();
}
