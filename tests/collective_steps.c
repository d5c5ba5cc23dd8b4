/* SPDX-License-Identifier: MIT
 * Collectives as algorithms on a fabric, as one weighted flow and send by send. Expected: closed
 * forms of the algorithms; UT-5.5; the rings of PEERS.md S1. */
#include "include/trainyard_fabric.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const double GIB = 1073741824.0;
static struct ty_error error;

/* n nodes of one GPU on a star of 50e9 B/s links. */
static void star(struct ty_cluster *cluster)
{
    fixture_dgx_h100(cluster);
    cluster->gpus_per_node = cluster->nics_per_node = cluster->scaleup_domain = 1;
    cluster->nic_bytes_per_s = 50e9;
}

static struct ty_collective_run on(const struct ty_cluster *cluster, enum ty_collective_op op,
                                   enum ty_algorithm algorithm, uint32_t n, double size_bytes)
{
    return (struct ty_collective_run){.cluster = cluster,
                                      .op = op,
                                      .algorithm = algorithm,
                                      .size_bytes = size_bytes,
                                      .n = n,
                                      .hop_s = {0.0, 0.0}};
}

static struct ty_collective_ran ran(const struct ty_collective_run *run)
{
    struct ty_collective_ran out = {.time_s = (double)NAN};
    if (ty_collective_simulate(run, &out, &error) != TY_OK)
        ok(false, "%s: %s", error.where, error.text);
    return out;
}

/* Both ways take this time. */
static void both(struct ty_collective_run run, double want_s, double relative, const char *what)
{
    char text[120];
    for (int detailed = 0; detailed < 2; detailed++) {
        run.detailed = detailed;
        snprintf(text, sizeof text, "%s, %s", what, detailed ? "send by send" : "one flow");
        near(ran(&run).time_s, want_s, relative, text);
    }
}

/* T = 2 (n-1) (lat + S / (n B)) */
static void test_rings(void)
{
    static const struct {
        uint32_t n;
        double published_s; /* PEERS.md, to five digits */
    } rows[] = {{8, 37.588e-3}, {64, 42.342e-3}, {512, 43.377e-3}};
    struct ty_cluster cluster;
    star(&cluster);
    for (int i = 0; i < 3; i++) {
        const double n = rows[i].n;
        struct ty_collective_run run =
            on(&cluster, TY_ALL_REDUCE, TY_ALGORITHM_RING, rows[i].n, GIB);
        run.hop_s[1] = 500e-9;
        const double want_s = 2.0 * (n - 1.0) * (500e-9 + GIB / n / 50e9);
        both(run, want_s, 1e-9, "1 GiB ring");
        near(want_s, rows[i].published_s, 2e-5, "the published closed form");
        run.op = TY_ALL_GATHER;
        both(run, want_s / 2.0, 1e-9, "its all-gather, half");
    }
}

/* UT-5.5: 4 GiB, 4 nodes of 8, 50 GB/s NICs, 740.64 GB/s inside: 16.106 ms between nodes, 10.148
 * inside; [16.106, 26.254]. */
static void test_two_level(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.scaleup_bytes_per_s = 740.64e9;
    struct ty_collective_run run =
        on(&cluster, TY_ALL_REDUCE, TY_ALGORITHM_TWO_LEVEL, 32, 4.0 * GIB);
    const double inter_s = 2.0 * 3.0 / 4.0 * 4.0 * GIB / 8.0 / 50e9;
    const double intra_s = 2.0 * 7.0 / 8.0 * 4.0 * GIB / 740.64e9;
    near(inter_s, 16.106e-3, 1e-4, "between nodes");
    near(intra_s, 10.148e-3, 1e-4, "inside");
    both(run, inter_s + intra_s, 1e-9, "in one piece: one level after the other");
    double before_s = inter_s + intra_s;
    for (run.n_chunks = 2; run.n_chunks <= 32; run.n_chunks *= 4) {
        run.detailed = true;
        const double time_s = ran(&run).time_s;
        ok(time_s > inter_s && time_s < before_s, "%u pieces: inside the bracket, %.3f ms",
           run.n_chunks, 1e3 * time_s);
        before_s = time_s;
        run.detailed = false;
        near(ran(&run).time_s, time_s, 0.1, "... and so says one flow");
    }
}

static void test_others(void)
{
    struct ty_cluster flat, node;
    star(&flat);
    fixture_dgx_h100(&node);
    const double nvlink = 450e9, nic = 50e9;
    struct ty_collective_run run = on(&flat, TY_ALL_GATHER, TY_ALGORITHM_PAT, 16, GIB);
    run.hop_s[1] = 1e-6;
    both(run, 4e-6 + 15.0 / 16.0 * GIB / nic, 1e-9, "PAT of 16: four hops, 15/16 of the payload");
    run = on(&flat, TY_ALL_REDUCE, TY_ALGORITHM_SHARP, 16, GIB);
    both(run, GIB / nic, 1e-9, "SHARP: the payload out and in at once");
    run = on(&node, TY_ALL_REDUCE, TY_ALGORITHM_NVLS, 8, GIB);
    both(run, 2.0 * GIB / nvlink, 1e-9, "NVLS in one piece: reduced, then multicast");
    run.n_chunks = 64;
    run.detailed = true;
    const double nvls_s = ran(&run).time_s;
    run = on(&node, TY_ALL_REDUCE, TY_ALGORITHM_RING, 8, GIB);
    ok(nvls_s < 0.68 * ran(&run).time_s && nvls_s > 9.0 / 8.0 * GIB / nvlink,
       "NVLS in 64 pieces beats the ring by the 14/9 of its bytes, less the ends");
    run = on(&node, TY_ALL_TO_ALL, TY_ALGORITHM_DIRECT, 8, GIB);
    both(run, 7.0 / 8.0 * GIB / nvlink, 1e-9, "all-to-all inside");
    run = on(&node, TY_ALL_TO_ALL, TY_ALGORITHM_PXN, 32, GIB);
    both(run, 7.0 / 8.0 * GIB / nvlink + 24.0 / 32.0 * GIB / nic, 1e-9,
         "all-to-all over rails: NVLink, then the NIC");
    run = on(&node, TY_SEND_RECV, TY_ALGORITHM_AUTO, 2, GIB);
    both(run, GIB / nvlink, 1e-9, "a message");
    run = on(&node, TY_ALL_REDUCE, TY_ALGORITHM_TREE, 64, GIB);
    const double bound_s = ran(&run).time_s;
    run.detailed = true;
    const double tree_s = ran(&run).time_s;
    ok(tree_s <= bound_s * (1.0 + 1e-9) && tree_s > 0.6 * bound_s,
       "trees: no rank waits for a whole level (%.3f of %.3f ms)", 1e3 * tree_s, 1e3 * bound_s);
    run.algorithm = TY_ALGORITHM_NVLS_TREE;
    run.detailed = false;
    near(ran(&run).time_s, bound_s - 2.0 * 7.0 / 8.0 * GIB / nvlink + 2.0 * GIB / nvlink, 1e-9,
         "NVLS in one piece in place of the rings inside");
}

/* Bytes: AR = RS + AG; PXN and direct send as much between nodes; two copies of seven. */
static void test_bytes(void)
{
    struct ty_cluster node;
    fixture_dgx_h100(&node);
    double bytes[3][TY_N_LEVELS];
    static const enum ty_collective_op ops[] = {TY_ALL_REDUCE, TY_REDUCE_SCATTER, TY_ALL_GATHER};
    for (int i = 0; i < 3; i++) {
        struct ty_collective_run run = on(&node, ops[i], TY_ALGORITHM_TWO_LEVEL, 32, GIB);
        const struct ty_collective_ran out = ran(&run);
        memcpy(bytes[i], out.bytes, sizeof out.bytes);
    }
    for (enum ty_fabric_level level = TY_LEVEL_DOMAIN; level <= TY_LEVEL_LEAF; level++)
        near(bytes[0][level], bytes[1][level] + bytes[2][level], 1e-12,
             "all-reduce = reduce-scatter + all-gather");
    near(bytes[0][TY_LEVEL_LEAF], 32.0 * 2.0 * 3.0 / 4.0 * GIB / 8.0, 1e-12,
         "2 (k-1)/k S/g from each of 32 ranks");
    struct ty_collective_run run = on(&node, TY_ALL_TO_ALL, TY_ALGORITHM_DIRECT, 64, GIB);
    const double direct = ran(&run).bytes[TY_LEVEL_LEAF];
    run.algorithm = TY_ALGORITHM_PXN;
    near(ran(&run).bytes[TY_LEVEL_LEAF], direct, 1e-12, "PXN sends as much between nodes");
    run.algorithm = TY_ALGORITHM_NODE_LIMITED;
    run.copies = 2.0;
    near(ran(&run).bytes[TY_LEVEL_LEAF], direct * 2.0 / 7.0, 1e-12,
         "two of seven other nodes: two sevenths");
}

/* A 2:1 spine doubles what crosses it and nothing else: 16 nodes, 8 under a leaf. */
static void test_spine(void)
{
    struct ty_cluster even;
    uint32_t gpus[16];
    star(&even);
    even.nodes_per_leaf = 8;
    struct ty_cluster slim = even;
    slim.oversubscription = 2.0;
    for (uint32_t i = 0; i < 16; i++)
        gpus[i] = i;
    struct ty_collective_run run = on(&even, TY_ALL_TO_ALL, TY_ALGORITHM_DIRECT, 8, GIB);
    run.gpus = gpus;
    run.detailed = true;
    const double inside_s = ran(&run).time_s;
    run.cluster = &slim;
    near(ran(&run).time_s, inside_s, 1e-12, "under one leaf nothing changes");
    struct ty_collective_ran out = ran(&run);
    ok(out.level == TY_LEVEL_LEAF, "... and the level is leaf");
    /* two leaves: 8 of 15 parts cross, over half the rate: 8 S/16 / (B/2) */
    run.n = 16;
    out = ran(&run);
    near(out.time_s, 8.0 / 16.0 * GIB / 25e9, 1e-9, "across leaves the spine binds");
    run.cluster = &even;
    near(ran(&run).time_s, 15.0 / 16.0 * GIB / 50e9, 1e-9, "an even spine does not");
    ok(out.level == TY_LEVEL_SPINE, "the level is spine");
}

static void test_choice(void)
{
    struct ty_cluster node;
    fixture_dgx_h100(&node);
    struct ty_collective_run run = on(&node, TY_ALL_REDUCE, TY_ALGORITHM_AUTO, 8, GIB);
    run.hop_s[0] = run.hop_s[1] = (double)NAN;
    ok(ran(&run).algorithm == TY_ALGORITHM_NVLS, "1 GiB on a node of H100: NVLS");
    run.n = 32;
    run.size_bytes = 32768.0;
    ok(ran(&run).algorithm == TY_ALGORITHM_TREE, "32 KiB on four nodes: tree (UT-5.3)");
    run.op = TY_ALL_TO_ALL;
    ok(ran(&run).algorithm == TY_ALGORITHM_PXN, "all-to-all over nodes: PXN");
    struct ty_collective_ran out;
    run.algorithm = TY_ALGORITHM_TREE;
    ok(ty_collective_simulate(&run, &out, &error) == TY_ERR_UNSUPPORTED &&
           strstr(error.text, "tree cannot do alltoall"),
       "a tree cannot do an all-to-all");
    run.n = 1;
    run.op = TY_ALL_REDUCE;
    run.algorithm = TY_ALGORITHM_RING;
    ok(ran(&run).time_s == 0.0, "one rank takes no time");
    run.n = 0;
    ok(ty_collective_simulate(&run, &out, &error) == TY_ERR_RANGE, "no rank is refused");
}

/* A failed NIC: its GPU goes over NVLink to the next one, which carries both. */
static void test_fault(void)
{
    struct ty_cluster node;
    fixture_dgx_h100(&node);
    const struct ty_fault failed = {TY_FAULT_NIC, 1, 3, 0.0}, slow = {TY_FAULT_NIC, 1, 3, 0.25};
    struct ty_collective_run run = on(&node, TY_ALL_REDUCE, TY_ALGORITHM_TWO_LEVEL, 32, 4.0 * GIB);
    const double inter_s = 2.0 * 3.0 / 4.0 * 4.0 * GIB / 8.0 / 50e9;
    const double even_s = ran(&run).time_s;
    run.faults = &failed;
    run.n_faults = 1;
    both(run, even_s + inter_s, 1e-9, "a failed NIC doubles the time between nodes");
    run.faults = &slow;
    both(run, even_s + 3.0 * inter_s, 1e-9, "a NIC of a quarter its rate: four times");
}

/* Handbook 11.6: every rate times k and every latency over k is the time over k; as one flow a
 * faster link alone never makes it longer (send by send, pieces that meet elsewhere may). */
static void test_properties(void)
{
    static const enum ty_algorithm algorithms[] = {TY_ALGORITHM_RING, TY_ALGORITHM_TREE,
                                                   TY_ALGORITHM_NVLS_TREE, TY_ALGORITHM_TWO_LEVEL,
                                                   TY_ALGORITHM_SHARP};
    const double k = 3.0;
    struct ty_cluster slow, fast, nic;
    bool scaled = true, monotone = true;
    fixture_dgx_h100(&slow);
    slow.nodes_per_leaf = 2;
    slow.oversubscription = 2.0;
    fast = nic = slow;
    fast.scaleup_bytes_per_s = k * 450e9;
    fast.nic_bytes_per_s = k * 50e9;
    nic.nic_bytes_per_s = k * 50e9;
    for (int i = 0; i < 5; i++)
        for (int detailed = 0; detailed < 2; detailed++) {
            struct ty_collective_run run =
                on(&slow, TY_ALL_REDUCE, algorithms[i], 32, 64.0 * 1048576.0);
            run.detailed = detailed;
            run.n_chunks = 4;
            run.hop_s[0] = 3e-6;
            run.hop_s[1] = 15e-6;
            const double time_s = ran(&run).time_s;
            run.cluster = &nic;
            monotone = monotone && (detailed || ran(&run).time_s <= time_s * (1.0 + 1e-9));
            run.cluster = &fast;
            run.hop_s[0] /= k;
            run.hop_s[1] /= k;
            scaled = scaled && fabs(ran(&run).time_s * k / time_s - 1.0) < 1e-9;
        }
    ok(scaled, "three times every rate, a third of every latency: a third of the time");
    ok(monotone, "faster NICs alone never make one flow longer");
}

int main(void)
{
    test_rings();
    test_two_level();
    test_others();
    test_bytes();
    test_spine();
    test_choice();
    test_fault();
    test_properties();
    return tap_done();
}
