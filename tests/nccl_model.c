/* SPDX-License-Identifier: MIT
 * NCCL's cost model against UT-5.1, 5.2 and 5.3 of the handbook, to the digits printed there. */
#include "models/nccl_model.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const double KIB = 1024.0, MIB = 1048576.0, GIB = 1073741824.0;

/* UT-5.1: n 8, one node, Hopper, C 18, 20 GB/s a channel, no multicast. */
static const struct nccl_graph one_node = {
    .generation = NCCL_HOPPER, .n_ranks = 8, .n_nodes = 1, .ring_tree = {18, 20e9, 20e9}};
/* UT-5.3: n 32, 4 nodes, Hopper, Intel, C 16, 24 GB/s. */
static const struct nccl_graph four_nodes = {
    .generation = NCCL_HOPPER, .n_ranks = 32, .n_nodes = 4, .ring_tree = {16, 24e9, 24e9}};

struct expected_cost {
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    double algbw_gbps, latency_us;
};

static void check_costs(const struct nccl_graph *graph, enum collective_op op,
                        const struct expected_cost *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char what[80];
        struct nccl_cost cost = {0};
        ok(nccl_cost(graph, op, want[i].algorithm, want[i].protocol, &cost), "offered");
        snprintf(what, sizeof what, "%s/%s GB/s", nccl_algorithm_name(want[i].algorithm),
                 nccl_protocol_name(want[i].protocol));
        within(cost.algbw_bytes_per_s / 1e9, want[i].algbw_gbps, 0.0051, what);
        within(cost.latency_s * 1e6, want[i].latency_us, 0.051, "its latency, us");
    }
}

struct expected_choice {
    double bytes;
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    double time_us;
};

static void check_choices(const struct nccl_graph *graph, const struct expected_choice *want,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char what[80];
        struct nccl_choice choice;
        nccl_choose(graph, COLLECTIVE_ALL_REDUCE, want[i].bytes, &choice);
        snprintf(what, sizeof what, "%.0f KiB: %s/%s", want[i].bytes / KIB,
                 nccl_algorithm_name(choice.algorithm), nccl_protocol_name(choice.protocol));
        ok(choice.algorithm == want[i].algorithm && choice.protocol == want[i].protocol, "%s",
           what);
        within(choice.time_s * 1e6, want[i].time_us, 0.051, "its time, us");
    }
}

#define N(table) (sizeof(table) / sizeof(table)[0])

static void test_one_node(void)
{
    static const struct expected_cost reduce[] = {
        {NCCL_RING, NCCL_LL, 80.571, 15.0},      {NCCL_RING, NCCL_LL128, 189.257, 40.6},
        {NCCL_RING, NCCL_SIMPLE, 205.714, 56.0}, {NCCL_TREE, NCCL_LL, 43.579, 15.2},
        {NCCL_TREE, NCCL_LL128, 128.8, 31.5},    {NCCL_TREE, NCCL_SIMPLE, 165.6, 64.4}};
    static const struct expected_cost gather[] = {{NCCL_RING, NCCL_LL, 161.14, 10.8},
                                                  {NCCL_RING, NCCL_LL128, 378.51, 27.3},
                                                  {NCCL_RING, NCCL_SIMPLE, 411.43, 32.2}};
    static const struct expected_choice choices[] = {{32.0 * KIB, NCCL_RING, NCCL_LL, 15.4},
                                                     {1.0 * MIB, NCCL_RING, NCCL_LL, 28.0},
                                                     {16.0 * MIB, NCCL_RING, NCCL_LL128, 129.2},
                                                     {64.0 * MIB, NCCL_RING, NCCL_SIMPLE, 382.2},
                                                     {1.0 * GIB, NCCL_RING, NCCL_SIMPLE, 5275.6}};
    check_costs(&one_node, COLLECTIVE_ALL_REDUCE, reduce, N(reduce));
    check_costs(&one_node, COLLECTIVE_ALL_GATHER, gather, N(gather));
    check_choices(&one_node, choices, N(choices));
}

static void test_four_nodes(void)
{
    static const struct expected_cost costs[] = {
        {NCCL_RING, NCCL_LL, 10.529, 78.8},       {NCCL_RING, NCCL_LL128, 182.339, 144.4},
        {NCCL_RING, NCCL_SIMPLE, 198.194, 282.8}, {NCCL_TREE, NCCL_LL, 10.2, 35.2},
        {NCCL_TREE, NCCL_LL128, 165.6, 65.5},     {NCCL_TREE, NCCL_SIMPLE, 176.64, 120.4}};
    static const struct expected_choice choices[] = {{32.0 * KIB, NCCL_TREE, NCCL_LL, 39.8},
                                                     {1.0 * MIB, NCCL_TREE, NCCL_LL128, 76.1},
                                                     {16.0 * MIB, NCCL_TREE, NCCL_LL128, 178.1},
                                                     {64.0 * MIB, NCCL_RING, NCCL_LL128, 512.4},
                                                     {1.0 * GIB, NCCL_RING, NCCL_SIMPLE, 5813.6}};
    check_costs(&four_nodes, COLLECTIVE_ALL_REDUCE, costs, N(costs));
    check_choices(&four_nodes, choices, N(choices));
}

/* Handbook 5.2, "Availability". */
static void test_offered(void)
{
    struct nccl_cost cost;
    struct nccl_graph graph = one_node;
    ok(!nccl_cost(&graph, COLLECTIVE_ALL_GATHER, NCCL_TREE, NCCL_SIMPLE, &cost),
       "a tree only reduces to all");
    ok(!nccl_cost(&graph, COLLECTIVE_ALL_REDUCE, NCCL_NVLS, NCCL_SIMPLE, &cost),
       "no NVLS without a multicast switch");
    graph.nvls = (struct nccl_channels){16, 20e9, 20e9};
    ok(nccl_cost(&graph, COLLECTIVE_ALL_REDUCE, NCCL_NVLS, NCCL_SIMPLE, &cost), "NVLS with one");
    /* 16 channels of 20 x 0.85 x 15/16 x 2 = 31.875 GB/s; algbw = busbw 8/14 */
    near(cost.algbw_bytes_per_s, 510e9 * 8.0 / 14.0, 1e-12, "its bandwidth");
    ok(!nccl_cost(&graph, COLLECTIVE_ALL_REDUCE, NCCL_NVLS_TREE, NCCL_SIMPLE, &cost),
       "NVLSTree is off on one node");
    graph.pcie = true;
    ok(!nccl_cost(&graph, COLLECTIVE_ALL_REDUCE, NCCL_RING, NCCL_LL128, &cost),
       "LL128 needs NVLink");
    graph = four_nodes;
    graph.no_ll = true;
    ok(!nccl_cost(&graph, COLLECTIVE_ALL_REDUCE, NCCL_TREE, NCCL_LL, &cost),
       "no LL where the network forbids it");
}

/* The graph that UT-5.1 assumes, and the one of UT-5.3 on 50 GB/s a GPU. */
static void test_graph(void)
{
    struct ty_cluster cluster, resolved;
    struct ty_error error;
    struct nccl_graph graph;
    struct group_shape shape = {.size = 8,
                                .stride = 1,
                                .ranks_per_domain = 8,
                                .n_domains = 1,
                                .link = LINK_SCALEUP,
                                .nic_bytes_per_s = 50e9,
                                .spine_bytes_per_s = 50e9};
    fixture_dgx_h100(&cluster);
    ok(cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK, "cluster");
    nccl_graph_init(&resolved, &shape, &graph);
    ok(graph.generation == NCCL_HOPPER && graph.ring_tree.n == 18 && graph.nvls.n == 16,
       "H100 node: 18 channels, 16 of NVLS");
    near(graph.ring_tree.intra_bytes_per_s, 20e9, 1e-12, "20 GB/s a channel");
    shape = (struct group_shape){.size = 32,
                                 .stride = 1,
                                 .ranks_per_domain = 8,
                                 .n_domains = 4,
                                 .link = LINK_NIC,
                                 .nic_bytes_per_s = 50e9,
                                 .spine_bytes_per_s = 50e9};
    nccl_graph_init(&resolved, &shape, &graph);
    ok(graph.ring_tree.n == 16 && graph.n_nodes == 4, "4 nodes: 16 channels");
    near(graph.ring_tree.inter_bytes_per_s, 24e9, 1e-12, "24 GB/s a channel");
}

/* Long messages by the links: 370.8 GB/s a GPU (18 links of 20.6), 50 GB/s a NIC at 0.95. */
static void test_wire(void)
{
    struct nccl_graph graph = one_node;
    graph.gpu_bytes_per_s = 370.8e9;
    near(nccl_wire_bytes_per_s(&graph, COLLECTIVE_ALL_GATHER, NCCL_RING), 370.8e9 * 8.0 / 7.0,
         1e-12, "a ring gathers S (n-1)/n through a GPU");
    near(nccl_wire_bytes_per_s(&graph, COLLECTIVE_ALL_REDUCE, NCCL_RING), 370.8e9 * 8.0 / 14.0,
         1e-12, "and reduces twice that");
    /* handbook 5.3: 480 GB/s of bus bandwidth, 1.75 S/t, with NVLS on 8 H200 */
    within(1.75e-9 * nccl_wire_bytes_per_s(&graph, COLLECTIVE_ALL_REDUCE, NCCL_NVLS), 480.0, 15.0,
           "NVLS on 8 GPUs, GB/s");
    /* A double binary tree of 2, 3, 4 nodes: its busiest NIC sends 1, 1.5, 2 payloads. */
    graph.net_bytes_per_s = 47.5e9;
    for (graph.n_nodes = 2; graph.n_nodes <= 4; graph.n_nodes++) {
        graph.n_ranks = 8 * graph.n_nodes;
        near(nccl_wire_bytes_per_s(&graph, COLLECTIVE_ALL_REDUCE, NCCL_TREE),
             47.5e9 / (0.5 * graph.n_nodes), 1e-12, "a tree by its busiest NIC");
    }
    graph.n_ranks = 32;
    graph.n_nodes = 4;
    near(nccl_wire_bytes_per_s(&graph, COLLECTIVE_ALL_REDUCE, NCCL_RING), 47.5e9 * 32.0 / 62.0,
         1e-12, "a ring by its NICs");
}

int main(void)
{
    test_wire();
    test_one_node();
    test_four_nodes();
    test_offered();
    test_graph();
    return tap_done();
}
