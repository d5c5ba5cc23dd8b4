/* SPDX-License-Identifier: MIT
 * Fabrics link by link: sizes, levels, routes, collisions of hashed flows, faults. Expected:
 * handbook UT-6.1, UT-6.6, and capacities worked out in the comments. */
#include "models/fabric.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct ty_error error;
static struct fabric fabric;

static bool open_faulty(struct ty_cluster *cluster, uint32_t n_nodes, const struct ty_fault *faults,
                        uint32_t n_faults, uint64_t seed)
{
    struct ty_cluster resolved;
    if (cluster_resolve(cluster, &resolved, NULL, &error) == TY_OK &&
        fabric_create(&resolved, n_nodes, faults, n_faults, seed, NULL, &fabric, &error) == TY_OK)
        return true;
    ok(false, "%s: %s", error.where, error.text);
    return false;
}

static bool open(struct ty_cluster *cluster, uint32_t n_nodes)
{
    return open_faulty(cluster, n_nodes, NULL, 0, 0);
}

/* The slowest link of a message: its capacity over its bytes. */
static double rate(uint32_t from, uint32_t to)
{
    struct fabric_path path = {.n = 0};
    double least = INFINITY;
    fabric_message(&fabric, from, to, from * 7919u + to, 1.0, &path);
    for (uint32_t i = 0; i < path.n; i++)
        least =
            fmin(least, fabric.capacity_bytes_per_s[path.use[i].link] / path.use[i].bytes_per_work);
    return path.cut ? 0.0 : least;
}

static void test_sizes(void)
{
    static const struct {
        uint32_t levels, planes;
        double endpoints, switches;
    } rows[] = {{2, 1, 2048, 96}, {2, 8, 16384, 768}, {3, 1, 65536, 5120}};
    double endpoints, switches;
    for (int i = 0; i < 3; i++)
        ok(ty_fabric_tree(rows[i].levels, 64, rows[i].planes, &endpoints, &switches) == TY_OK &&
               endpoints == rows[i].endpoints && switches == rows[i].switches,
           "UT-6.1: %u levels of 64 ports, %u planes: %.0f end points, %.0f switches",
           rows[i].levels, rows[i].planes, endpoints, switches);
    ok(ty_fabric_tree(2, 63, 1, &endpoints, &switches) == TY_ERR_RANGE, "odd ports are refused");
}

static void test_collisions(void)
{
    static const struct {
        uint32_t flows, paths, pairs;
        double want;
    } rows[] = {{8, 8, 1, 2.5972},
                {8, 16, 1, 2.0629},
                {8, 4, 1, 3.5381 / 2.0},
                {16, 8, 1, 4.2014 / 2.0},
                {8, 8, 4, 7.0478 / 4.0}};
    for (int i = 0; i < 5; i++)
        within(ty_ecmp_slowdown(rows[i].flows, rows[i].paths, rows[i].pairs), rows[i].want, 6e-5,
               "UT-6.6: expected slowdown of hashed flows");
    near(ty_ecmp_slowdown(5, 1, 1), 1.0, 1e-12, "one path: nothing to collide on");
    ok(isnan(ty_ecmp_slowdown(0, 4, 1)), "no flows are refused");
}

/* Eight flows between two leaves of eight nodes, hashed to eight uplinks, over 4000 seeds: the mean
 * of the fullest uplink is UT-6.6's, 2.5972; its deviation is below 0.8, so 5 sigma of the mean are
 * 0.063. Four queue pairs: 1.762. */
static void test_hashing(uint32_t pairs, double want)
{
    enum { N_SEEDS = 4000 };
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.gpus_per_node = cluster.nics_per_node = cluster.scaleup_domain = 1;
    cluster.nodes_per_leaf = 8;
    cluster.routing = TY_ROUTING_ECMP;
    cluster.queue_pairs = pairs;
    double sum = 0.0;
    if (!open(&cluster, 16))
        return;
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        double load[64] = {0}, most = 0.0;
        fabric.seed = seed;
        for (uint32_t i = 0; i < 8; i++) {
            struct fabric_path path = {.n = 0};
            fabric_message(&fabric, i, 8 + i, (uint64_t)i << 32 | (8 + i), 1.0, &path);
            for (uint32_t u = 0; u < path.n; u++) {
                const uint32_t link = path.use[u].link;
                if (link < fabric.first[FABRIC_LEAF] || link >= fabric.first[FABRIC_LEAF] + 16)
                    continue;
                load[link - fabric.first[FABRIC_LEAF]] += path.use[u].bytes_per_work;
            }
        }
        for (int i = 0; i < 64; i++)
            most = fmax(most, load[i]);
        sum += most;
    }
    within(sum / N_SEEDS, want, 0.063, "UT-6.6 by routes: the fullest of eight uplinks");
    fabric_destroy(&fabric);
}

static void test_levels(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.nodes_per_leaf = 4;
    cluster.leaves_per_pod = 2;
    cluster.oversubscription = 2.0;
    cluster.pod_oversubscription = 4.0;
    if (!open(&cluster, 16))
        return;
    ok(fabric.n_leaves == 4 && fabric.n_pods == 2, "16 nodes: 4 leaves, 2 pods");
    ok(fabric_level(&fabric, 0, 0) == TY_LEVEL_NONE &&
           fabric_level(&fabric, 0, 7) == TY_LEVEL_DOMAIN &&
           fabric_level(&fabric, 0, 8) == TY_LEVEL_LEAF &&
           fabric_level(&fabric, 0, 4 * 8) == TY_LEVEL_SPINE &&
           fabric_level(&fabric, 0, 8 * 8) == TY_LEVEL_CORE,
       "the lowest switch in common");
    near(rate(0, 7), 450e9, 1e-12, "NVLink");
    near(rate(0, 8), 50e9, 1e-12, "a NIC");
    /* 32 NICs of 50 GB/s, 2:1: 800 GB/s above a leaf; 2 leaves, 4:1: 400 above a pod */
    near(fabric.capacity_bytes_per_s[fabric.first[FABRIC_LEAF]], 800e9, 1e-12, "above a leaf");
    near(fabric.capacity_bytes_per_s[fabric.first[FABRIC_POD]], 400e9, 1e-12, "above a pod");
    fabric_destroy(&fabric);
}

static void test_rails(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.nodes_per_leaf = 16;
    cluster.rails = TY_ON;
    if (!open(&cluster, 32))
        return;
    ok(fabric.n_leaves == 16, "two blocks of eight rails");
    ok(fabric_level(&fabric, 3, 8 + 3) == TY_LEVEL_LEAF, "a rail is one leaf");
    ok(fabric_level(&fabric, 3, 8 + 5) == TY_LEVEL_LEAF, "another rail: changed to over NVLink");
    ok(fabric_level(&fabric, 3, 16 * 8 + 3) == TY_LEVEL_SPINE, "the next block: over the spines");
    struct fabric_path path = {.n = 0};
    fabric_message(&fabric, 3, 8 + 5, 1, 1.0, &path);
    bool nvlink = false;
    for (uint32_t i = 0; i < path.n; i++)
        nvlink |= path.use[i].link == fabric.first[FABRIC_PORT] + 2 * 3;
    ok(nvlink, "... through the port of the sender");
    fabric_destroy(&fabric);
    struct ty_cluster rack;
    fixture_dgx_h100(&rack);
    rack.gpus_per_node = rack.nics_per_node = 4;
    rack.scaleup_domain = 72;
    if (!open(&rack, 36))
        return;
    ok(fabric_level(&fabric, 0, 71) == TY_LEVEL_DOMAIN &&
           fabric_level(&fabric, 0, 72) == TY_LEVEL_LEAF,
       "a domain of 72 over 18 nodes");
    fabric_destroy(&fabric);
}

/* A mesh of 8: a pair has a seventh of the port. */
static void test_mesh_and_pcie(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.scaleup = TY_SCALEUP_MESH;
    cluster.scaleup_bytes_per_s = 448e9;
    if (!open(&cluster, 1))
        return;
    near(rate(0, 5), 64e9, 1e-12, "xGMI: 64 of 448 GB/s to one peer");
    fabric_destroy(&fabric);
    cluster.scaleup = TY_SCALEUP_PCIE;
    cluster.scaleup_bytes_per_s = (double)NAN;
    cluster.gpu.scaleup_bytes_per_s = 0.0;
    cluster.gpu.pcie_bytes_per_s = 31e9;
    cluster.gpus_per_pcie_switch = 4;
    cluster.nics_per_node = 2;
    if (!open(&cluster, 2))
        return;
    struct fabric_path path = {.n = 0};
    fabric_message(&fabric, 0, 1, 1, 1.0, &path);
    const uint32_t inside = path.n;
    path.n = 0;
    fabric_message(&fabric, 0, 4, 1, 1.0, &path);
    ok(inside == 2 && path.n == 4, "PCIe: another switch is two links further");
    ok(fabric_port(&fabric, 0) == fabric_port(&fabric, 3) &&
           fabric_port(&fabric, 3) != fabric_port(&fabric, 4),
       "four GPUs share a NIC");
    near(rate(0, 8), 31e9, 1e-12, "the NIC is behind PCIe");
    fabric_destroy(&fabric);
}

static void test_faults(void)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.nodes_per_leaf = 2;
    const struct ty_fault faults[] = {
        {TY_FAULT_NIC, 0, 2, 0.0}, {TY_FAULT_LINK, 1, 0, 0.5}, {TY_FAULT_UPLINK, 0, 1, 0.0}};
    if (!open_faulty(&cluster, 4, faults, 3, 0))
        return;
    ok(fabric_port(&fabric, 2) == 3, "the next NIC takes over");
    near(rate(8, 9), 225e9, 1e-12, "half an NVLink port");
    /* 16 uplinks of 50 GB/s; one is gone */
    near(fabric.capacity_bytes_per_s[fabric.first[FABRIC_LEAF]], 750e9, 1e-12, "15 of 16 uplinks");
    fabric_destroy(&fabric);
    struct ty_fault all[8];
    for (uint32_t i = 0; i < 8; i++)
        all[i] = (struct ty_fault){TY_FAULT_NIC, 0, i, 0.0};
    if (!open_faulty(&cluster, 4, all, 8, 0))
        return;
    ok(rate(0, 8) == 0.0 && rate(0, 1) > 0.0, "a node without NICs is cut off, not its inside");
    fabric_destroy(&fabric);
    cluster.routing = TY_ROUTING_STATIC;
    const struct ty_fault uplink = {TY_FAULT_UPLINK, 0, 0, 0.0};
    if (!open_faulty(&cluster, 4, &uplink, 1, 0))
        return;
    ok(rate(0, 16) > 0.0, "a static route leaves a failed uplink for the next");
    fabric_destroy(&fabric);
}

int main(void)
{
    test_sizes();
    test_collisions();
    test_hashing(1, 2.5972);
    test_hashing(4, 1.7620);
    test_levels();
    test_rails();
    test_mesh_and_pcie();
    test_faults();
    return tap_done();
}
