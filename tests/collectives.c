/* SPDX-License-Identifier: MIT
 * Collectives against handbook 1.6, 2.1-2.6 and 5; the measured table of 5.3 is printed with the
 * model's error and held to loose bounds. */
#include "models/collectives.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const double MIB = 1048576.0, GIB = 1073741824.0;
static struct setting setting;

static void start(const struct ty_cluster *cluster)
{
    struct ty_model model;
    struct ty_profile profile;
    struct ty_error error = {0};
    fixture_llama3_70b(&model);
    ty_init(TY_KIND_PROFILE, &profile);
    if (setting_init(&model, cluster, &profile, &setting, NULL, &error) != TY_OK) {
        printf("Bail out! %s: %s\n", error.where, error.text);
        exit(1);
    }
}

/* No latency, no ramp: plain bus bandwidth. */
static void plain(double busbw_bytes_per_s)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    start(&cluster);
    struct ty_profile *profile = &setting.profile;
    profile->allreduce_busbw_bytes_per_s = profile->allgather_busbw_bytes_per_s = busbw_bytes_per_s;
    profile->collective_latency_s = profile->p2p_latency_s = 0.0;
    profile->ramp_ratio = 0.0;
    profile->nic_ratio = 1.0;
    profile->alltoall_ratio = 1.0;
    setting.cluster.nic_latency_s = 0.0;
}

static struct group_shape shape(uint32_t size, uint32_t per_domain, double nic_bytes_per_s)
{
    return (struct group_shape){.size = size,
                                .stride = 1,
                                .ranks_per_domain = per_domain,
                                .n_domains = size / per_domain,
                                .link = size > per_domain ? LINK_NIC : LINK_SCALEUP,
                                .nic_bytes_per_s = nic_bytes_per_s,
                                .spine_bytes_per_s = nic_bytes_per_s};
}

static struct collective of(enum collective_op op, double payload_bytes, struct group_shape group)
{
    return (struct collective){.op = op, .payload_bytes = payload_bytes, .shape = group};
}

static double time_of(enum collective_op op, double payload_bytes, struct group_shape group)
{
    const struct collective collective = of(op, payload_bytes, group);
    return collective_time_s(&setting, &collective);
}

static double wire_bytes(enum collective_op op, double payload_bytes, uint32_t n)
{
    return payload_bytes * collective_busbw_factor(op, n);
}

static void volumes(void)
{
    near(collective_busbw_factor(COLLECTIVE_ALL_REDUCE, 8), 1.75, 1e-15, "5.1 all-reduce factor");
    near(collective_busbw_factor(COLLECTIVE_ALL_TO_ALL, 8), 0.875, 1e-15, "5.1 all-to-all factor");
    ok(collective_busbw_factor(COLLECTIVE_SEND, 2) == 1.0, "5.1 send factor");
    bool conserved = true;
    for (uint32_t n = 2; n <= 1024; n++)
        conserved = conserved && collective_busbw_factor(COLLECTIVE_ALL_REDUCE, n) ==
                                     collective_busbw_factor(COLLECTIVE_REDUCE_SCATTER, n) +
                                         collective_busbw_factor(COLLECTIVE_ALL_GATHER, n);
    ok(conserved, "property 3: all-reduce moves what reduce-scatter and all-gather move");

    const double s_tp = 8192.0 * 8192.0 * 2.0;
    near(4 * wire_bytes(COLLECTIVE_ALL_GATHER, s_tp, 8), 469762048.0, 0.0, "UT-2.3 forward wire");
    near(6 * wire_bytes(COLLECTIVE_ALL_GATHER, s_tp, 8), 704643072.0, 0.0, "UT-2.3 backward wire");
    plain(360e9);
    near(time_of(COLLECTIVE_ALL_GATHER, s_tp, shape(8, 8, 50e9)), 326.2e-6, 1e-3,
         "UT-2.3 one all-gather at 360 GB/s");

    /* UT-2.4, llama3-8B, s = 131072, c = 8: K and V of a rank's chunk */
    const double kv_chunk = 2.0 * 131072 / 8 * 8 * 128 * 2;
    near(kv_chunk * 8 * collective_busbw_factor(COLLECTIVE_ALL_GATHER, 8), 469762048.0, 0.0,
         "UT-2.4 gathering K and V is 7 chunks");
    near(wire_bytes(COLLECTIVE_ALL_TO_ALL, (2 * 32 + 2 * 8) * 128.0 * 131072 / 8 * 2, 8),
         293601280.0, 0.0, "UT-2.4 all-to-all volume");

    plain(40e9);
    near(time_of(COLLECTIVE_REDUCE_SCATTER, 4 * 2204803328.0, shape(16, 1, 40e9)), 206.70e-3, 1e-4,
         "UT-2.8 fp32 gradients");
    near(time_of(COLLECTIVE_ALL_GATHER, 2 * 2204803328.0, shape(16, 1, 40e9)), 103.35e-3, 1e-4,
         "UT-2.8 bf16 weights");
    plain(360e9);
    near(time_of(COLLECTIVE_ALL_GATHER, 436224000.0, shape(8, 8, 50e9)), 1060e-6, 1e-3,
         "UT-2.9 one layer on 8 GPUs");
    near(time_of(COLLECTIVE_ALL_GATHER, 436224000.0, shape(128, 1, 45e9)), 9618e-6, 1e-4,
         "UT-2.9 one layer on 128 GPUs");
}

static void experts(void)
{
    near(8 * collective_distinct_ratio(8, 8), 5.2511, 1e-5, "UT-1.17 distinct nodes of 8");
    near(8 * collective_distinct_ratio(1, 8), 1.0, 1e-15, "one node is always hit once");

    /* UT-1.18: 64 ranks on 8 nodes, 4096 tokens, at most 4 nodes each, fp8 with fp32 scales */
    const double fp8_bytes = 4096.0 * 8 * 7168 * (1 + 4.0 / 128),
                 bf16_bytes = 4096.0 * 8 * 7168 * 2;
    near(fp8_bytes, 242.22e6, 1e-4, "UT-1.18 naive dispatch");
    plain(1e15);                              /* only the NIC counts */
    setting.profile.alltoall_nic_ratio = 1.0; /* the all-to-all reaches 50 GB/s */
    struct collective dispatch = of(COLLECTIVE_ALL_TO_ALL, fp8_bytes, shape(64, 8, 50e9));
    dispatch.remote_copies = fmin(collective_distinct_ratio(8, 8), 4.0 / 8.0);
    near(dispatch.remote_copies * fp8_bytes, 121.11e6, 1e-4, "UT-1.18 dispatched");
    near(dispatch.remote_copies * bf16_bytes, 234.88e6, 1e-4, "UT-1.18 combined");
    near(collective_time_s(&setting, &dispatch), 2119e-6, 1e-3, "UT-1.18 dispatch time");
    dispatch.payload_bytes = bf16_bytes;
    near(collective_time_s(&setting, &dispatch), 4110e-6, 1e-3, "UT-1.18 combine time");
}

static void straight_line(void)
{
    /* UT-5.4: through the measured times of 256 MiB (194.1 GB/s) and 16 GiB (234.9 GB/s) */
    const double t1 = 256 * MIB * 1.75 / 194.1e9, t2 = 16 * GIB * 1.75 / 234.9e9;
    const double algbw = (16 * GIB - 256 * MIB) / (t2 - t1);
    near(algbw, 134.67e9, 1e-4, "UT-5.4 slope");
    near(algbw * 1.75, 235.67e9, 1e-4, "UT-5.4 bus bandwidth");
    plain(235.67e9);
    setting.profile.collective_latency_s = 43.59e-6;
    near(time_of(COLLECTIVE_ALL_REDUCE, 32768, shape(8, 8, 25e9)), 32768 * 1.75 / 1.31e9, 3e-3,
         "UT-5.4 32 KiB as measured");
    near(time_of(COLLECTIVE_ALL_REDUCE, 16 * GIB, shape(8, 8, 25e9)), t2, 5e-3,
         "UT-5.4 16 GiB as measured");
}

/* Constants of data/profile-seed.json for B200: the fit of published runs. */
static void b200(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.gpu.scaleup_bytes_per_s = 900e9;
    start(&cluster);
    setting.profile.allreduce_busbw_bytes_per_s = 780e9;
    setting.profile.allgather_busbw_bytes_per_s = 650e9;
    setting.profile.collective_latency_s = 22e-6 * 1.398;
    setting.profile.ramp_bytes = 20e6;
    setting.profile.ramp_ratio = 1.078;
    setting.profile.nic_ratio = 0.9602;
}

static void two_levels(void)
{
    double low_s, high_s;
    collective_two_level_s(4 * GIB, 8, 4, 50e9, 740.64e9, &low_s, &high_s);
    near(low_s, 16.106e-3, 1e-4, "UT-5.5 pipelined");
    near(high_s, 26.254e-3, 1e-4, "UT-5.5 serial");
    ok(low_s < 22.053e-3 && 22.053e-3 < high_s, "UT-5.5 the measurement lies between");
    b200();
    const double model_s = time_of(COLLECTIVE_ALL_REDUCE, 4 * GIB, shape(32, 8, 50e9));
    ok(low_s < model_s && model_s < high_s, "UT-5.5 the model lies between (%.3f ms)",
       model_s * 1e3);
}

/* Four NICs of 25 GB/s for eight GPUs: 12.5 GB/s each. */
static void shared_nics(void)
{
    plain(300e9);
    const struct ty_cluster before = setting.cluster;
    setting.cluster.gpus_per_node = 8;
    setting.cluster.nics_per_node = 4;
    setting.cluster.fabric = TY_FABRIC_INFINIBAND;
    near(time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(8, 1, 12.5e9)), 2.0 * 7 / 8 * GIB / 12.5e9,
         1e-12, "a GPU of each node: its share of a NIC");
    near(time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(8, 2, 12.5e9)), 2.0 * 7 / 8 * GIB / 12.5e9,
         1e-12, "two of each: no more, the ring enters by one of them");
    near(time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(16, 8, 12.5e9)), 2.0 * 15 / 16 * GIB / 100e9,
         1e-12, "all of them: every NIC");
    setting.cluster.fabric = TY_FABRIC_OMNIPATH;
    near(time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(8, 2, 12.5e9)), 2.0 * 7 / 8 * GIB / 25e9, 1e-12,
         "through the host's memory: both shares");
    setting.cluster.nics_per_node = 8;
    setting.cluster.fabric = TY_FABRIC_INFINIBAND;
    near(time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(8, 2, 12.5e9)), 2.0 * 7 / 8 * GIB / 25e9, 1e-12,
         "a NIC per GPU: both");
    setting.cluster = before;
}

/* GOLD 5.3: bus bandwidth in GB/s as measured. */
static void measured_table(void)
{
    static const struct {
        double bytes, a100, b200, b200_4;
    } rows[] = {{1048576.0, 18.0, 36.06, 5.37},
                {16777216.0, 106.2, 255.0, 64.43},
                {268435456.0, 194.1, 646.1, 229.1},
                {4294967296.0, 233.9, 740.6, 377.3}};
    double worst = 0.0;
    for (int i = 0; i < 4; i++) {
        const double s = rows[i].bytes;
        struct ty_cluster cluster;
        fixture_dgx_a100(&cluster);
        start(&cluster);
        setting.profile.allreduce_busbw_bytes_per_s = 235e9;
        setting.profile.collective_latency_s = 34e-6 * 1.398;
        setting.profile.ramp_bytes = 10e6;
        setting.profile.ramp_ratio = 1.078;
        const double a100 = s * 1.75 / time_of(COLLECTIVE_ALL_REDUCE, s, shape(8, 8, 25e9)) / 1e9;
        b200();
        const double one = s * 1.75 / time_of(COLLECTIVE_ALL_REDUCE, s, shape(8, 8, 50e9)) / 1e9;
        const double four =
            s * 2.0 * 31 / 32 / time_of(COLLECTIVE_ALL_REDUCE, s, shape(32, 8, 50e9)) / 1e9;
        printf("# %4.0f MiB busbw GB/s, model (measured): A100x8 %.1f (%.1f), B200x8 %.1f (%.1f), "
               "4 x B200x8 %.1f (%.1f)\n",
               s / MIB, a100, rows[i].a100, one, rows[i].b200, four, rows[i].b200_4);
        worst = fmax(worst, fabs(log(a100 / rows[i].a100)));
        worst = fmax(worst, fabs(log(one / rows[i].b200)));
        worst = fmax(worst, fabs(log(four / rows[i].b200_4)));
    }
    ok(worst < log(2.5), "GOLD 5.3: within 2.5x of every measurement from 1 MiB (worst %.2fx)",
       exp(worst));
}

static void flows(void)
{
    static const enum collective_op ops[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER,
                                             COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_TO_ALL,
                                             COLLECTIVE_SEND};
    const struct group_shape shapes[] = {shape(8, 8, 50e9), shape(32, 8, 50e9), shape(16, 1, 50e9),
                                         shape(2, 2, 50e9), shape(6, 2, 12.5e9)};
    bool exact = true, fits = true, halves = true;
    b200();
    for (int i = 0; i < 25; i++) {
        struct collective_flow flow, part;
        struct collective collective = of(ops[i / 5], 3e4 * pow(10.0, i % 4), shapes[i % 5]);
        collective_as_flow(&setting, &collective, &flow);
        const double time_s = collective_time_s(&setting, &collective);
        exact = exact && fabs((flow.latency_s + flow.work_bytes / flow.cap_bytes_per_s) / time_s -
                              1.0) <= 1e-12;
        fits = fits && flow.bytes_per_work[LINK_SCALEUP] * flow.cap_bytes_per_s <=
                           setting.cluster.scaleup_bytes_per_s * (1 + 1e-12);
        fits = fits && flow.bytes_per_work[LINK_NIC] * flow.cap_bytes_per_s <=
                           shapes[i % 5].nic_bytes_per_s;
        collective.share = 0.25;
        collective_as_flow(&setting, &collective, &part);
        halves = halves && fabs(collective_time_s(&setting, &collective) / time_s - 0.25) < 1e-12 &&
                 part.work_bytes == 0.25 * flow.work_bytes &&
                 part.cap_bytes_per_s == flow.cap_bytes_per_s;
    }
    ok(exact, "alone, a flow takes the time of its collective");
    ok(fits, "alone, a flow fits its links");
    ok(halves, "a quarter of a collective takes a quarter of its time and bytes");

    struct collective_flow flow;
    const struct collective reduce = of(COLLECTIVE_ALL_REDUCE, GIB, shape(32, 8, 50e9));
    collective_as_flow(&setting, &reduce, &flow);
    near(flow.bytes_per_work[LINK_SCALEUP], 2 * 7.0 / 8, 1e-15, "5.4 scale-up bytes");
    near(flow.bytes_per_work[LINK_NIC], 2 * 3.0 / 4 / 8, 1e-15, "5.4 NIC bytes");
    ok(flow.bytes_per_work[LINK_SPINE] == 0.0, "no spine bytes below one leaf");
    struct collective far = reduce;
    far.shape.link = LINK_SPINE;
    collective_as_flow(&setting, &far, &flow);
    near(flow.bytes_per_work[LINK_SPINE], flow.bytes_per_work[LINK_NIC], 0.0,
         "across leaves every NIC byte crosses a spine");

    struct collective whole = of(COLLECTIVE_ALL_GATHER, GIB, shape(4, 4, 50e9));
    const double latency_s = setting.profile.collective_latency_s;
    const double others_s = collective_time_s(&setting, &whole) - latency_s;
    whole.own_part = true;
    near(collective_time_s(&setting, &whole) - latency_s, others_s * 4 / 3, 1e-9,
         "with its own part a rank of four moves four parts, not three");

    struct collective nothing = reduce;
    nothing.payload_bytes = 0.0;
    collective_as_flow(&setting, &nothing, &flow);
    ok(collective_time_s(&setting, &nothing) == 0.0 && flow.work_bytes == 0.0 &&
           flow.latency_s == 0.0,
       "nothing to send takes no time");
    nothing = of(COLLECTIVE_ALL_REDUCE, GIB, shape(1, 1, 50e9));
    ok(collective_time_s(&setting, &nothing) == 0.0, "a group of one takes no time");
}

static void properties(void)
{
    bool grows = true, monotone = true;
    b200();
    for (double s = 1e3; s < 1e11; s *= 2.0)
        grows = grows && time_of(COLLECTIVE_ALL_REDUCE, 2 * s, shape(16, 8, 50e9)) >
                             time_of(COLLECTIVE_ALL_REDUCE, s, shape(16, 8, 50e9));
    ok(grows, "more bytes take longer");
    for (int op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_SEND; op++) {
        b200();
        const double before_s = time_of((enum collective_op)op, GIB, shape(16, 8, 50e9));
        monotone =
            monotone && time_of((enum collective_op)op, GIB, shape(16, 8, 100e9)) <= before_s;
        setting.profile.allgather_busbw_bytes_per_s *= 2.0;
        setting.profile.allreduce_busbw_bytes_per_s *= 2.0;
        monotone = monotone && time_of((enum collective_op)op, GIB, shape(16, 8, 50e9)) <= before_s;
    }
    ok(monotone, "a faster link never slows a collective");

    /* Mesh: 2 of 8 GPUs share one of 7 links; measured 47.7 of 312.9 GB/s (handbook 6.1) */
    b200();
    setting.cluster.scaleup = TY_SCALEUP_MESH;
    setting.profile.allreduce_busbw_bytes_per_s = 312.9e9;
    setting.profile.ramp_ratio = setting.profile.collective_latency_s = 0.0;
    near(GIB / time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(2, 2, 50e9)), 47.7e9, 0.07,
         "xGMI: a pair reaches one link of seven");
    near(1.75 * GIB / time_of(COLLECTIVE_ALL_REDUCE, GIB, shape(8, 8, 50e9)), 312.9e9, 1e-12,
         "xGMI: all eight reach all links");

    /* UT-6.3: oversubscription 2 leaves 25 of 50 GB/s between leaves */
    plain(1e15);
    struct group_shape far = shape(4, 1, 50e9);
    far.link = LINK_SPINE;
    far.spine_bytes_per_s = 25e9;
    near(time_of(COLLECTIVE_SEND, 25e9, far), 1.0, 1e-12, "a spine share limits what crosses it");
}

int main(void)
{
    volumes();
    experts();
    straight_line();
    two_levels();
    shared_nics();
    measured_table();
    flows();
    properties();
    return tap_done();
}
