/* SPDX-License-Identifier: MIT
 * Single collectives from tables of our own: interpolation and lines against closed forms, the
 * order of trust, refusals, limits. */
#include "models/comm.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const double KIB = 1024.0, MIB = 1048576.0, GIB = 1073741824.0;
#define N(table) (sizeof(table) / sizeof(table)[0])

static struct ty_cluster h100;
static struct ty_error error;

/* t = min(10 us + S / 20 GB/s, 40 us + S / 200 GB/s): they cross at 30 us * 22.2 GB/s = 667 KB */
static double two_lines(double size_bytes)
{
    return fmin(10e-6 + size_bytes / 20e9, 40e-6 + size_bytes / 200e9);
}

static const double sizes[] = {1024.0,   4096.0,    16384.0,   65536.0,    131072.0,
                               262144.0, 4194304.0, 8388608.0, 16777216.0, 67108864.0};
static double times[N(sizes)];

static struct ty_collective_table table_of(uint32_t ranks, uint32_t n)
{
    for (size_t i = 0; i < N(sizes); i++)
        times[i] = two_lines(sizes[i]);
    return (struct ty_collective_table){.op = TY_ALL_REDUCE,
                                        .ranks = ranks,
                                        .cluster = &h100,
                                        .source = "own",
                                        .n = n,
                                        .size_bytes = sizes,
                                        .time_s = times};
}

static struct ty_collective_time predict(const struct ty_collective_table *table, uint32_t ranks,
                                         double size_bytes)
{
    struct ty_collective_time time = {0};
    const struct ty_collective_tables tables = {table != NULL, table};
    const ty_status status = ty_collective_predict(
        &(struct ty_collective_query){
            .cluster = &h100, .op = TY_ALL_REDUCE, .ranks = ranks, .size_bytes = size_bytes},
        &tables, &time, &error);
    if (status != TY_OK)
        printf("# %s: %s\n", error.where, error.text);
    return time;
}

static void test_table(void)
{
    const struct ty_collective_table table = table_of(8, N(sizes));
    near(comm_table_s(&table, 4096.0), two_lines(4096.0), 1e-15, "a point of the table");
    /* halfway between two sizes in the logarithm: geometric mean of the times */
    near(comm_table_s(&table, 8192.0), sqrt(two_lines(4096.0) * two_lines(16384.0)), 1e-14,
         "between two points");
    bool rises = true;
    for (double size = 1024.0; size < 6e7; size *= 1.01)
        rises &= comm_table_s(&table, size * 1.01) >= comm_table_s(&table, size);
    ok(rises, "a monotone table stays monotone");
}

/* The four sizes at each end lie on one of the two lines, which is exactly met. */
static void test_lines(void)
{
    const struct ty_collective_table table = table_of(8, N(sizes));
    near(comm_lines_s(&table, 1.0 * GIB), two_lines(1.0 * GIB), 1e-9, "beyond the largest");
    near(comm_lines_s(&table, 8.0), two_lines(8.0), 1e-9, "below the smallest");
    /* Short messages of one time but for noise tell no rate: 40 us + S / 200 GB/s holds beyond. */
    double noisy_s[N(sizes)];
    for (size_t i = 0; i < N(sizes); i++)
        noisy_s[i] = i < 4 ? 10e-6 - 1e-7 * (double)i : 40e-6 + sizes[i] / 200e9;
    const struct ty_collective_table noisy = {
        .n = N(sizes), .size_bytes = sizes, .time_s = noisy_s};
    near(comm_lines_s(&noisy, 16.0 * GIB), 16.0 * GIB / 200e9, 1e-3, "a rate from the long ones");
    /* Nor do long ones of a rising rate tell a latency: it is that of the short ones. */
    for (size_t i = 0; i < N(sizes); i++)
        noisy_s[i] = i < 6 ? 10e-6 + sizes[i] / 20e9 : sizes[i] / 200e9 * (1.0 - 0.01 * (double)i);
    near(comm_lines_s(&noisy, 8.0), 10e-6, 1e-3, "a latency from the short ones");
    const double flat_s[] = {5e-6, 4e-6, 5e-6, 4e-6};
    const struct ty_collective_table flat = {.n = 4, .size_bytes = sizes, .time_s = flat_s};
    ok(comm_lines_s(&flat, 8.0) > 0.0, "a falling pair gives no time below 0");
}

static void test_own_table(void)
{
    const struct ty_collective_table table = table_of(8, N(sizes));
    struct ty_collective_time time = predict(&table, 8, 4096.0);
    ok(time.origin == TY_FROM_TABLE && time.table == &table, "a measured point is from the table");
    near(time.time_s, two_lines(4096.0), 1e-15, "and is its time");
    /* handbook 5.1: algbw S/t, busbw 2 (n-1)/n of it */
    near(time.algbw_bytes_per_s, 4096.0 / time.time_s, 1e-15, "algbw");
    near(time.busbw_bytes_per_s, 1.75 * 4096.0 / time.time_s, 1e-15, "busbw");
    ok(predict(&table, 8, 8192.0).origin == TY_FROM_INTERPOLATION, "between two points");
    ok(time.low_s > 0.0 && time.low_s < time.time_s && time.time_s < time.high_s, "an interval");
    const double width = time.high_s / time.low_s;
    time = predict(&table, 8, 4.0 * GIB);
    ok(time.high_s / time.low_s > width, "wider beyond its points");
    ok(time.origin == TY_FROM_LINES, "beyond them: lines");
    near(time.time_s, two_lines(4.0 * GIB), 1e-9, "and their least");
}

/* The only table is of another cluster that is the same in all but its name: ratio 1. */
static void test_neighbour(void)
{
    struct ty_cluster twin = h100;
    struct ty_collective_table copies[64];
    for (size_t i = 0; i < N(copies); i++) {
        copies[i] = table_of(8, N(sizes));
        copies[i].cluster = &twin;
    }
    snprintf(twin.name, sizeof twin.name, "twin");
    const struct ty_collective_tables tables = {N(copies), copies};
    struct ty_collective_time time;
    ok(ty_collective_predict(
           &(struct ty_collective_query){
               .cluster = &h100, .op = TY_ALL_REDUCE, .ranks = 8, .size_bytes = 16384.0},
           &tables, &time, &error) == TY_OK &&
           time.origin == TY_FROM_NEIGHBOUR,
       "another cluster's table: extrapolated");
    near(time.time_s, two_lines(16384.0), 1e-12, "an equal cluster: its time");
    const double more_s = predict(&copies[0], 16, 16.0 * MIB).time_s;
    ok(more_s > predict(&copies[0], 8, 16.0 * MIB).time_s, "more ranks take longer");
}

static void test_model(void)
{
    struct ty_collective_time time = predict(NULL, 8, 1.0 * GIB), more;
    ok(time.origin == TY_FROM_MODEL && !time.table, "no table: the model");
    near(time.high_s / time.time_s, time.time_s / time.low_s, 1e-12, "its interval is even in ln");
    same_text(time.algorithm, "NVLS", "1 GiB on 8 H100: NVLS");
    same_text(time.limit, "nvlink", "bound by NVLink");
    time = predict(NULL, 8, 1.0 * KIB);
    same_text(time.limit, "latency", "1 KiB is bound by latency");
    same_text(time.protocol, "LL", "and goes by LL");
    h100.nic_bytes_per_s = 25e9;
    time = predict(NULL, 64, 1.0 * GIB);
    same_text(time.limit, "nic", "1 GiB over 8 nodes with 25 GB/s a GPU: the NICs");
    h100.nodes_per_leaf = 4;
    h100.oversubscription = 2.0;
    more = predict(NULL, 64, 1.0 * GIB);
    same_text(more.limit, "spine", "beyond one leaf switch: the spine");
    ok(more.time_s > 1.5 * time.time_s, "at half the rate");
    fixture_dgx_h100(&h100);
    bool rises = true;
    for (enum ty_collective_op op = 0; op < TY_N_COLLECTIVES; op++)
        for (double size = 1024.0; size < 1e11; size *= 2.0) {
            struct ty_collective_query query = {
                .cluster = &h100, .op = op, .ranks = 32, .size_bytes = size};
            rises &= ty_collective_predict(&query, NULL, &time, &error) == TY_OK;
            query.size_bytes = 4.0 * size;
            rises &= ty_collective_predict(&query, NULL, &more, &error) == TY_OK &&
                     more.time_s > time.time_s;
        }
    ok(rises, "four times the bytes take longer, for every operation");
}

static void test_refusals(void)
{
    struct ty_collective_time time;
    struct ty_collective_query query = {
        .cluster = &h100, .op = TY_ALL_REDUCE, .ranks = 1, .size_bytes = 1024.0};
    ok(ty_collective_predict(&query, NULL, &time, &error) == TY_ERR_RANGE, "one rank");
    query.ranks = 8;
    query.size_bytes = (double)NAN;
    ok(ty_collective_predict(&query, NULL, &time, &error) == TY_ERR_RANGE, "no size");
    query.size_bytes = 1024.0;
    query.op = TY_N_COLLECTIVES;
    ok(ty_collective_predict(&query, NULL, &time, &error) == TY_ERR_RANGE, "no operation");
    query.op = TY_ALL_REDUCE;
    query.ranks_per_domain = 9;
    ok(ty_collective_predict(&query, NULL, &time, &error) == TY_ERR_RANGE,
       "more in a domain than in the group");
    query.ranks = UINT32_MAX;
    query.ranks_per_domain = 0;
    ok(ty_collective_predict(&query, NULL, &time, &error) == TY_OK && isfinite(time.time_s),
       "four billion ranks");
}

/* ---- is it normal --------------------------------------------------------------------------- */

static const double judged[] = {4096.0, 65536.0, 4194304.0, 67108864.0, 1073741824.0, 8589934592.0};

/* What the judge says of times that are the predicted ones times `slower`, or of a large message at
 * a bus bandwidth. */
static struct ty_comm judge(uint32_t ranks, double slower_small, double slower_large,
                            double busbw_bytes_per_s)
{
    struct ty_comm comm = {0};
    const struct ty_collective_query query = {
        .cluster = &h100, .op = TY_ALL_REDUCE, .ranks = ranks};
    bool good = ty_comm_predict(&query, judged, N(judged), NULL, &comm, &error) == TY_OK;
    for (uint32_t i = 0; i < comm.n; i++) {
        struct ty_comm_point *point = &comm.points[i];
        const bool small = point->size_bytes < 16.0 * MIB;
        point->measured_s = point->predicted.time_s * (small ? slower_small : slower_large);
        if (!small && busbw_bytes_per_s > 0.0)
            point->measured_s = point->size_bytes * 2.0 * (ranks - 1) / ranks / busbw_bytes_per_s;
    }
    good = good && ty_comm_judge(&comm, &error) == TY_OK;
    ok(good, "judged");
    return comm;
}

static void check_cause(struct ty_comm comm, const char *part, const char *what)
{
    if (!ok(strstr(comm.cause, part) != NULL, "%s", what))
        printf("#   %u low: %s\n", comm.n_low, comm.cause);
    ty_comm_free(&comm);
}

static void test_judge(void)
{
    struct ty_comm comm = judge(8, 1.0, 1.0, 0.0);
    ok(comm.n_low == 0 && comm.n_high == 0 && !*comm.cause, "as predicted: normal, no cause");
    within(comm.points[5].off, 0.0, 1e-12, "0 % off");
    ty_comm_free(&comm);
    comm = judge(8, 1.0, 0.5, 0.0);
    ok(comm.n_high == 3 && comm.n_low == 0, "twice as fast: high");
    near(comm.points[5].off, 1.0, 1e-12, "100 % off");
    ty_comm_free(&comm);
    check_cause(judge(8, 3.0, 1.0, 0.0), "latency", "only small ones low: latency");
    check_cause(judge(8, 3.0, 3.0, 0.0), "same share", "all low alike: not a link");
    /* handbook 5.3: H200 without NVLS 365.6 GB/s; 6.1: PCIe 5 x16 measures 55.4 GB/s */
    check_cause(judge(8, 1.0, 1.0, 280e9), "no rule", "between the rates of known faults: none");
    check_cause(judge(8, 1.0, 1.0, 55.4e9), "PCIe", "55 GB/s in a node: PCIe");
    /* two nodes of 8 x 50 GB/s, ring through one NIC at 97 %: algbw 48.5 GB/s x 15/8 */
    check_cause(judge(16, 1.0, 1.0, 91e9), "1 of its 8 NICs", "one NIC of eight");
    check_cause(judge(16, 1.0, 1.0, 182e9), "2 of its 8 NICs", "two NICs of eight");
    check_cause(judge(16, 1.0, 1.0, 5e9), "sockets", "5 GB/s between nodes: sockets");
}

/* Rings where a table says that NVLS is normal. */
static void test_judge_nvls(void)
{
    static const double nvls_s[] = {20e-6, 25e-6, 54e-6, 325e-6, 4.02e-3, 31.3e-3};
    const struct ty_collective_table table = {TY_ALL_REDUCE, 8,         0,      &h100, "own",
                                              false,         N(judged), judged, nvls_s};
    const struct ty_collective_tables tables = {1, &table};
    struct ty_comm comm = {0};
    const struct ty_collective_query query = {.cluster = &h100, .op = TY_ALL_REDUCE, .ranks = 8};
    ok(ty_comm_predict(&query, judged, N(judged), &tables, &comm, &error) == TY_OK, "predicted");
    for (uint32_t i = 0; i < comm.n; i++) /* handbook 5.3: 365.6 GB/s on rings */
        comm.points[i].measured_s = fmax(nvls_s[i], judged[i] * 1.75 / 365.6e9);
    ok(ty_comm_judge(&comm, &error) == TY_OK && comm.n_low == 2, "1 and 8 GiB are low");
    check_cause(comm, "NVLS is not used", "365.6 GB/s: rings");
}

/* ---- tables of a profile --------------------------------------------------------------------- */

static double alone_s(const struct collective_flow *flow)
{
    return flow->latency_s + flow->work_bytes / flow->cap_bytes_per_s;
}

static void test_profile(void)
{
    const struct ty_collective_table table = table_of(16, N(sizes));
    const struct ty_collective_tables tables = {1, &table};
    struct ty_model model;
    struct ty_profile profile;
    struct setting setting;
    struct comm_group group;
    struct collective_flow flow;
    fixture_llama3_8b(&model);
    ty_init(TY_KIND_PROFILE, &profile);
    profile.site_comm_ratio = 3.0;
    profile.collectives = &tables;
    ok(setting_init(&model, &h100, &profile, &setting, NULL, &error) == TY_OK &&
           comm_group_init(&h100, 16, 0, &group, &error) == TY_OK,
       "a profile with a table");
    struct collective reduce = {
        .op = COLLECTIVE_ALL_REDUCE, .payload_bytes = 4096.0, .shape = group.shape};
    near(collective_time_s(&setting, &reduce), two_lines(4096.0), 1e-12,
         "its time goes before the form and the site");
    collective_as_flow(&setting, &reduce, &flow);
    near(alone_s(&flow), two_lines(4096.0), 1e-12, "as a flow that runs alone too");
    reduce.share = 0.25;
    near(collective_time_s(&setting, &reduce), two_lines(4096.0) / 4.0, 1e-12, "a quarter of it");
    reduce.share = 0.0;
    reduce.payload_bytes = 1.0 * GIB;
    near(collective_time_s(&setting, &reduce), two_lines(1.0 * GIB), 1e-9, "beyond it: lines");
    /* DESIGN 4: as many ranks per domain, scaled by prior(n) / prior(n') */
    struct comm_group more;
    ok(comm_group_init(&h100, 64, 0, &more, &error) == TY_OK, "64 ranks");
    reduce.shape = more.shape;
    reduce.payload_bytes = 16777216.0;
    near(collective_time_s(&setting, &reduce),
         two_lines(16777216.0) * comm_prior_s(&more, TY_ALL_REDUCE, 16777216.0, NULL) /
             comm_prior_s(&group, TY_ALL_REDUCE, 16777216.0, NULL),
         1e-12, "more ranks: scaled by the priors");
    reduce.shape.ranks_per_domain = 4;
    reduce.shape.n_domains = 16;
    setting.profile.collectives = NULL;
    const double form_s = collective_time_s(&setting, &reduce);
    setting.profile.collectives = &tables;
    ok(collective_time_s(&setting, &reduce) == form_s, "other ranks per domain: the form");
}

int main(void)
{
    fixture_dgx_h100(&h100);
    test_table();
    test_lines();
    test_own_table();
    test_neighbour();
    test_model();
    test_refusals();
    test_profile();
    test_judge();
    test_judge_nvls();
    return tap_done();
}
