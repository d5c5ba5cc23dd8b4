/* SPDX-License-Identifier: MIT
 *
 * NCCL's tuning model: constants and formulas of handbook 5.2, in its notation
 *
 *   busbw0 = C bw, bw = intra speed up to 2 nodes, inter speed beyond
 *   algbw  = busbw n / nsteps (ring, NVLS, NVLSTree), busbw / 2 (tree, all-reduce)
 *   nsteps = 2 (n-1) all-reduce, n-1 all-gather and reduce-scatter */
#include "models/nccl_model.h"

#include <math.h>
#include <string.h>

static const double GB = 1e9, US = 1e-6;

/* ---- constants: all of handbook 5.2 -------------------------------------------------------- */

enum { HOP_NVLINK, HOP_PCI, HOP_NET, N_HOPS };

static const double base_us[N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS] = {
    [NCCL_TREE] = {6.8, 14.0, 8.4},
    [NCCL_RING] = {6.6, 14.0, 8.4},
    [NCCL_PAT] = {8.0, 8.0, 8.0},
};
static const double hop_us[N_HOPS][N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS] = {
    [HOP_NVLINK] = {[NCCL_TREE] = {0.6, 1.25, 4.0},
                    [NCCL_RING] = {0.6, 1.9, 3.4},
                    [NCCL_NVLS] = {0.0, 0.0, 25.0},
                    [NCCL_NVLS_TREE] = {0.0, 0.0, 25.0},
                    [NCCL_PAT] = {0.0, 0.0, 4.0}},
    [HOP_PCI] = {[NCCL_TREE] = {1.0, 1.9, 4.0},
                 [NCCL_RING] = {1.0, 2.5, 5.7},
                 [NCCL_PAT] = {0.0, 0.0, 4.0}},
    [HOP_NET] = {[NCCL_TREE] = {5.0, 8.5, 14.0},
                 [NCCL_RING] = {2.7, 4.0, 14.0},
                 [NCCL_NVLS] = {0.0, 0.0, 18.0},
                 [NCCL_NVLS_TREE] = {0.0, 0.0, 20.9},
                 [NCCL_PAT] = {0.0, 0.0, 14.0}},
};
/* Caps, GB/s: by generation, then 1 node, 2 nodes, more. */
static const double ll_max_gbps[][3] = {
    {39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}};
static const double ring_ll128_gbps[] = {20.0, 20.0, 36.7, 40.0}; /* of a channel, all below */
static const double tree_ll128_gbps[][3] = {
    {20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}};
static const double tree_simple_gbps[][3] = {
    {26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}};
static const double nvls_tree_gbps[][3] = {
    {26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}};
static const double nvls_efficiency[] = {0.0, 0.0, 0.85, 0.74};

/* Tree all-reduce reaches this share of its bandwidth, by floor(log2(bytes / 64)). */
static const double tree_ratio[N_NCCL_PROTOCOLS][24] = {
    [NCCL_LL] = {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
                 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    [NCCL_LL128] = {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
                    0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    [NCCL_SIMPLE] = {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
                     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9},
};

/* Speeds that the search tries for a channel, GB/s; handbook 5.2, src/graph/search.cc. */
static const double old_speeds_gbps[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 0};
static const double hopper_intra_gbps[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3, 0};
static const double hopper_inter_gbps[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 0};
static const double blackwell_intra_gbps[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18, 0};
static const double blackwell_inter_gbps[] = {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 0};

/* Of the NVLink rate that a data sheet states: 20 of 25, 20.6 of 25, 40.1 of 50 GB/s a link. */
static const double nvlink_ratio[] = {0.8, 0.8, 0.824, 0.802};
/* Links of a GPU (handbook 6.1), which rings and trees take one channel each, and the channels of
 * NVLS on one node and on more. */
static const uint32_t n_links[] = {6, 12, 18, 18};
static const uint32_t n_nvls_channels[][2] = {{0, 0}, {0, 0}, {16, 16}, {24, 32}};
/* GPUs of a domain from which on NVLS is seen to be used; source: handbook 5.3. */
static const uint32_t nvls_from[] = {0, 0, 5, 6};
/* Channels of rings and trees across nodes, and where there is no NVLink. */
static const uint32_t NET_CHANNELS = 16;
/* Of the data sheet's rate, without NVLink: xGMI as NVLink of the time, PCIe by what NVIDIA says to
 * expect of 8 GPUs (24 of 31 and 48 of 63 GB/s, data/micro/nccl_expected_busbw.csv); and of NICs.
 */
static const double XGMI_RATIO = 0.8, PCIE_RATIO = 0.77, NIC_RATIO = 0.95;
/* A crossing of the network beyond one of InfiniBand and RoCE: EFA, and GPUDirect-TCPX and TCPXO,
 * which are all the Ethernet without RDMA of the catalogue. Least of what the tables show. */
static const double EFA_S = 20e-6, ETHERNET_S = 40e-6;
/* NVLS moves 1 + 1/n payloads through a GPU's links; NCCL's efficiency is that of 8 GPUs, and more
 * do not gain. With a tree behind it: least of the difference between one domain and two. */
static const double NVLS_PASSES = 9.0 / 8.0, NVLS_TREE_RATIO = 0.88;

/* ---- graph --------------------------------------------------------------------------------- */

/* The fastest speed on the list that the link still carries; below the list, what it carries. */
static double search_speed(const double *speeds_gbps, double bytes_per_s)
{
    for (; *speeds_gbps > 0.0; speeds_gbps++)
        if (*speeds_gbps * GB <= bytes_per_s * (1.0 + 1e-9))
            return *speeds_gbps * GB;
    return bytes_per_s;
}

static enum nccl_generation generation_of(const struct ty_gpu *gpu)
{
    static const char *const names[] = {"volta", "ampere", "hopper", "blackwell"};
    for (enum nccl_generation g = NCCL_VOLTA; g <= NCCL_BLACKWELL; g++)
        if (strncmp(gpu->arch, names[g], strlen(names[g])) == 0)
            return g;
    return strcmp(gpu->arch, "ada") == 0 ? NCCL_AMPERE : NCCL_HOPPER;
}

static struct nccl_channels search_channels(const struct nccl_graph *graph, uint32_t n,
                                            double gpu_bytes_per_s, double node_net_bytes_per_s)
{
    static const double *const intra[] = {old_speeds_gbps, old_speeds_gbps, hopper_intra_gbps,
                                          blackwell_intra_gbps};
    static const double *const inter[] = {old_speeds_gbps, old_speeds_gbps, hopper_inter_gbps,
                                          blackwell_inter_gbps};
    return (struct nccl_channels){n, search_speed(intra[graph->generation], gpu_bytes_per_s / n),
                                  search_speed(inter[graph->generation], node_net_bytes_per_s / n)};
}

static double gpu_link_bytes_per_s(const struct ty_cluster *cluster,
                                   enum nccl_generation generation)
{
    if (cluster->scaleup == TY_SCALEUP_PCIE)
        return PCIE_RATIO * cluster->scaleup_bytes_per_s;
    if (cluster->gpu.vendor != TY_VENDOR_NVIDIA)
        return XGMI_RATIO * cluster->scaleup_bytes_per_s;
    return nvlink_ratio[generation] * cluster->scaleup_bytes_per_s;
}

static void set_network(const struct ty_cluster *cluster, double net_bytes_per_s,
                        struct nccl_graph *out)
{
    out->net_bytes_per_s = NIC_RATIO * net_bytes_per_s;
    if (cluster->fabric == TY_FABRIC_EFA)
        out->net_latency_s = EFA_S;
    else if (cluster->fabric == TY_FABRIC_ETHERNET)
        out->net_latency_s = ETHERNET_S;
    out->no_ll = cluster->fabric == TY_FABRIC_ETHERNET && !out->pcie; /* else: sockets */
}

void nccl_graph_init(const struct ty_cluster *cluster, const struct group_shape *shape,
                     struct nccl_graph *out)
{
    const enum nccl_generation generation = generation_of(&cluster->gpu);
    const double net_bytes_per_s =
        shape->ranks_per_domain *
        (shape->link == LINK_SPINE ? shape->spine_bytes_per_s : shape->nic_bytes_per_s);
    *out = (struct nccl_graph){.generation = generation,
                               .n_ranks = shape->size,
                               .n_nodes = shape->n_domains,
                               .pcie = cluster->scaleup == TY_SCALEUP_PCIE};
    const bool nvlink =
        cluster->scaleup == TY_SCALEUP_SWITCH && cluster->gpu.vendor == TY_VENDOR_NVIDIA;
    const double gpu_bytes_per_s =
        cluster->scaleup_bytes_per_s * (nvlink ? nvlink_ratio[generation] : 1.0);
    const uint32_t n = out->pcie || out->n_nodes > 1 ? NET_CHANNELS : n_links[generation];
    out->gpu_bytes_per_s = gpu_link_bytes_per_s(cluster, generation);
    if (out->n_nodes > 1)
        set_network(cluster, net_bytes_per_s, out);
    out->ring_tree = search_channels(out, n, gpu_bytes_per_s, net_bytes_per_s);
    if (out->n_nodes > 1) /* a ring is searched with one speed for all its links */
        out->ring_tree.intra_bytes_per_s =
            fmin(out->ring_tree.intra_bytes_per_s, out->ring_tree.inter_bytes_per_s);
    if (out->n_nodes == 2) { /* a tree's NIC carries a payload each way, its GPU two */
        const double twice = fmin(gpu_bytes_per_s, 2.0 * net_bytes_per_s);
        out->tree_intra_bytes_per_s = search_channels(out, n, twice, twice).intra_bytes_per_s;
    }
    const uint32_t n_nvls = n_nvls_channels[generation][out->n_nodes > 1];
    if (n_nvls && nvlink && shape->ranks_per_domain >= nvls_from[generation])
        out->nvls = search_channels(out, n_nvls, gpu_bytes_per_s, net_bytes_per_s);
}

/* ---- cost of one algorithm and protocol ---------------------------------------------------- */

static uint32_t column(const struct nccl_graph *graph)
{
    return graph->n_nodes <= 2 ? graph->n_nodes - 1 : 2;
}

/* Across nodes the host sets what LL reaches: the row of the first two goes by the CPU. */
static double ll_max(const struct nccl_graph *graph)
{
    const uint32_t row = graph->n_nodes == 1 ? (uint32_t)graph->generation
                                             : (graph->amd_cpu ? NCCL_AMPERE : NCCL_VOLTA);
    return ll_max_gbps[row][column(graph)] * GB;
}

static double busbw0(const struct nccl_graph *graph)
{
    const struct nccl_channels *channels = &graph->ring_tree;
    return channels->n *
           (graph->n_nodes <= 2 ? channels->intra_bytes_per_s : channels->inter_bytes_per_s);
}

static double steps(enum collective_op op, double n)
{
    return op == COLLECTIVE_ALL_REDUCE ? 2.0 * (n - 1.0) : n - 1.0;
}

static double ring_busbw(const struct nccl_graph *graph, enum nccl_protocol protocol)
{
    const double all = busbw0(graph);
    switch (protocol) {
    case NCCL_LL:
        return fmin(ll_max(graph), all / 2.0);
    case NCCL_LL128:
        return fmin(0.92 * all, graph->ring_tree.n * ring_ll128_gbps[graph->generation] * GB);
    default:
        return all;
    }
}

static double tree_busbw(const struct nccl_graph *graph, enum nccl_protocol protocol)
{
    const double n = graph->ring_tree.n;
    const uint32_t at = column(graph);
    const double all =
        graph->tree_intra_bytes_per_s > 0.0 ? n * graph->tree_intra_bytes_per_s : busbw0(graph);
    const double simple = fmin(0.92 * all, n * tree_simple_gbps[graph->generation][at] * GB);
    switch (protocol) {
    case NCCL_LL:
        return fmin(simple / 3.8, ll_max(graph));
    case NCCL_LL128:
        return fmin(simple * (graph->n_nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                    n * tree_ll128_gbps[graph->generation][at] * GB);
    default:
        return simple;
    }
}

static double nvls_busbw(const struct nccl_graph *graph, enum collective_op op)
{
    const double C = graph->nvls.n, per_node = (double)graph->n_ranks / graph->n_nodes;
    const double passes = op == COLLECTIVE_ALL_REDUCE ? 2.0 : (per_node - 1.0) / per_node;
    double channel =
        graph->nvls.intra_bytes_per_s * nvls_efficiency[graph->generation] * (C - 1.0) / C * passes;
    if (graph->n_nodes > 1)
        channel =
            fmin(fmin(channel, graph->nvls.inter_bytes_per_s * (graph->n_nodes == 2 ? 2.0 : 1.0)),
                 nvls_tree_gbps[graph->generation][column(graph)] * GB);
    return C * channel;
}

static double hop(const struct nccl_graph *graph, bool net, enum nccl_algorithm algorithm,
                  enum nccl_protocol protocol)
{
    const int link = net ? HOP_NET : (graph->pcie ? HOP_PCI : HOP_NVLINK);
    return hop_us[link][algorithm][protocol] * US;
}

/* The network's own latency counts twice where the receiver has to answer. */
static double net_hop(const struct nccl_graph *graph, enum nccl_algorithm algorithm,
                      enum nccl_protocol protocol)
{
    return hop(graph, true, algorithm, protocol) +
           graph->net_latency_s * (protocol == NCCL_SIMPLE ? 2.0 : 1.0);
}

static double ring_latency(const struct nccl_graph *graph, enum collective_op op,
                           enum nccl_protocol protocol)
{
    const double n_nodes = graph->n_nodes, n_steps = steps(op, graph->n_ranks);
    const double n_inter = graph->n_nodes > 1 ? steps(op, n_nodes) : 0.0;
    const double overhead_s = graph->n_nodes > 1 ? (graph->amd_cpu ? 2.0 : 1.0) * US *
                                                       (protocol == NCCL_SIMPLE ? 3.0 : 1.0)
                                                 : 0.0;
    const enum nccl_algorithm like = graph->n_ranks == graph->n_nodes ? NCCL_TREE : NCCL_RING;
    return base_us[NCCL_RING][protocol] * US +
           (n_steps - n_inter) * fmax(hop(graph, false, NCCL_RING, protocol), overhead_s) +
           n_inter * net_hop(graph, like, protocol);
}

static double latency(const struct nccl_graph *graph, enum collective_op op,
                      enum nccl_algorithm algorithm, enum nccl_protocol protocol)
{
    const double doublings = floor(log2(graph->n_nodes));
    const double per_node = (double)graph->n_ranks / graph->n_nodes;
    const double intra_s = hop(graph, false, algorithm, protocol);
    const double inter_s = net_hop(graph, algorithm, protocol);
    switch (algorithm) {
    case NCCL_RING:
        return ring_latency(graph, op, protocol);
    case NCCL_TREE:
        return base_us[NCCL_TREE][protocol] * US +
               2.0 * ((per_node - 1.0) * intra_s + doublings * inter_s);
    case NCCL_NVLS_TREE:
        return intra_s + 2.0 * doublings * inter_s;
    case NCCL_PAT:
        return base_us[NCCL_PAT][protocol] * US + doublings * inter_s / 3.5 +
               2.8 * US * graph->n_ranks;
    default:
        return intra_s;
    }
}

static bool offered(const struct nccl_graph *graph, enum collective_op op,
                    enum nccl_algorithm algorithm, enum nccl_protocol protocol)
{
    const bool reduce_all = op == COLLECTIVE_ALL_REDUCE, one_node = graph->n_nodes == 1;
    if ((protocol == NCCL_LL128 && graph->pcie) || (protocol == NCCL_LL && graph->no_ll))
        return false;
    switch (algorithm) {
    case NCCL_RING:
        return true;
    case NCCL_TREE:
        return reduce_all;
    case NCCL_NVLS:
        return one_node && graph->nvls.n > 1 && protocol == NCCL_SIMPLE;
    case NCCL_NVLS_TREE:
        return reduce_all && !one_node && graph->nvls.n > 1 && protocol == NCCL_SIMPLE;
    default:
        return !reduce_all && !one_node && graph->n_ranks == graph->n_nodes &&
               protocol == NCCL_SIMPLE;
    }
}

bool nccl_cost(const struct nccl_graph *graph, enum collective_op op, enum nccl_algorithm algorithm,
               enum nccl_protocol protocol, struct nccl_cost *out)
{
    if (!offered(graph, op, algorithm, protocol))
        return false;
    const double n = graph->n_ranks, per_step = n / steps(op, n);
    double algbw = 0.0;
    switch (algorithm) {
    case NCCL_RING:
        algbw = ring_busbw(graph, protocol) * per_step;
        break;
    case NCCL_TREE:
        algbw = tree_busbw(graph, protocol) * 0.5;
        break;
    case NCCL_PAT:
        algbw = 0.75 * busbw0(graph);
        break;
    default:
        algbw = nvls_busbw(graph, op) * per_step;
        break;
    }
    *out = (struct nccl_cost){latency(graph, op, algorithm, protocol), algbw};
    return true;
}

/* Payloads through the NICs of the busiest node of a double binary tree, each way: half goes up and
 * half comes down where the node ends a tree, three times that where it has two below it. */
static double tree_passes(double n_nodes)
{
    return n_nodes <= 2.0 ? 1.0 : (n_nodes <= 3.0 ? 1.5 : 2.0);
}

double nccl_wire_bytes_per_s(const struct nccl_graph *graph, enum collective_op op,
                             enum nccl_algorithm algorithm)
{
    const double n = graph->n_ranks, per_step = n / steps(op, n), gpu = graph->gpu_bytes_per_s;
    const double net = graph->n_nodes > 1 ? graph->net_bytes_per_s : (double)INFINITY;
    const double tree_net = net / tree_passes(graph->n_nodes);
    const double nvls = nvls_efficiency[graph->generation] / NVLS_PASSES * gpu;
    switch (algorithm) {
    case NCCL_TREE:
        return fmin(0.92 * gpu / 2.0, tree_net);
    case NCCL_NVLS:
        return fmin(nvls, tree_net);
    case NCCL_NVLS_TREE:
        return fmin(NVLS_TREE_RATIO * nvls, tree_net);
    case NCCL_PAT:
        return 0.75 * fmin(gpu, net) * per_step;
    default:
        return fmin(gpu, net) * per_step;
    }
}

/* ---- choice -------------------------------------------------------------------------------- */

/* Corrections at query time. */
static void set_time(const struct nccl_graph *graph, enum collective_op op, double payload_bytes,
                     struct nccl_choice *choice)
{
    struct nccl_cost cost;
    choice->time_s = INFINITY;
    if (!nccl_cost(graph, op, choice->algorithm, choice->protocol, &cost))
        return;
    if (choice->algorithm == NCCL_TREE) {
        const double at = floor(log2(payload_bytes / 64.0));
        if (at >= 0.0 && at < 24.0)
            cost.algbw_bytes_per_s *= tree_ratio[choice->protocol][(int)at];
    }
    if (choice->algorithm == NCCL_RING && choice->protocol == NCCL_SIMPLE && graph->n_nodes > 1 &&
        op == COLLECTIVE_ALL_REDUCE &&
        payload_bytes / ((double)graph->ring_tree.n * graph->n_ranks) >= 64.0)
        cost.latency_s *= graph->generation == NCCL_VOLTA ? 1.9 : 1.4;
    choice->latency_s = cost.latency_s;
    choice->time_s = cost.latency_s + payload_bytes / cost.algbw_bytes_per_s;
}

void nccl_choose(const struct nccl_graph *graph, enum collective_op op, double payload_bytes,
                 struct nccl_choice *out)
{
    *out = (struct nccl_choice){NCCL_RING, NCCL_SIMPLE, INFINITY, 0.0};
    for (enum nccl_algorithm a = 0; a < N_NCCL_ALGORITHMS; a++)
        for (enum nccl_protocol p = 0; p < N_NCCL_PROTOCOLS; p++) {
            struct nccl_choice choice = {.algorithm = a, .protocol = p};
            set_time(graph, op, payload_bytes, &choice);
            if (choice.time_s < out->time_s)
                *out = choice;
        }
}

const char *nccl_algorithm_name(enum nccl_algorithm algorithm)
{
    static const char *const names[] = {"Tree", "Ring", "NVLS", "NVLSTree", "PAT"};
    return names[algorithm];
}

const char *nccl_protocol_name(enum nccl_protocol protocol)
{
    static const char *const names[] = {"LL", "LL128", "Simple"};
    return names[protocol];
}
