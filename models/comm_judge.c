/* SPDX-License-Identifier: MIT
 *
 * Is a measured collective normal, and what is it when it is low: rules on the largest
 * message (docs/comm.md lists them). Each compares a rate with one that a known fault
 * leaves: PCIe instead of NVLink, rings instead of NVLS, j of m NICs, sockets. */
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* How far from the prediction is still normal: [small or not][own table or extrapolated]. About
 * twice what tables of like machines differ by (8 H100: P90 6 %), and about the P90 of leaving a
 * table out (docs/comm.md). */
static const double tolerance[2][2] = {{0.15, 0.35}, {0.35, 0.60}};
static const double SMALL_BYTES = 1048576.0, LARGE_BYTES = 64.0 * 1048576.0;

struct evidence {
    const struct ty_comm *comm;
    struct comm_group group;
    const struct ty_comm_point *largest; /* of 64 MiB or more; NULL: none */
    bool all_low;
    double least, most; /* measured over predicted bandwidth, over all sizes */
};

static void judge_point(const struct ty_collective_query *query, struct ty_comm_point *point)
{
    const bool extrapolated = point->predicted.origin >= TY_FROM_NEIGHBOUR;
    const double allowed = tolerance[point->size_bytes < SMALL_BYTES][extrapolated];
    const double ratio = point->predicted.time_s / point->measured_s;
    point->off = ratio - 1.0;
    point->measured_busbw_bytes_per_s =
        point->size_bytes / point->measured_s *
        collective_busbw_factor((enum collective_op)query->op, query->ranks);
    point->verdict = TY_COMM_NORMAL;
    if (ratio < 1.0 / (1.0 + allowed))
        point->verdict = TY_COMM_LOW;
    else if (ratio > 1.0 + allowed)
        point->verdict = TY_COMM_HIGH;
}

static bool measured(const struct ty_comm_point *point)
{
    return point->measured_s > 0.0;
}

static void gather(struct evidence *evidence)
{
    const struct ty_comm *comm = evidence->comm;
    evidence->least = INFINITY;
    evidence->all_low = true;
    for (uint32_t i = 0; i < comm->n; i++) {
        const struct ty_comm_point *point = &comm->points[i];
        if (!measured(point))
            continue;
        evidence->all_low &= point->verdict == TY_COMM_LOW;
        evidence->least = fmin(evidence->least, 1.0 + point->off);
        evidence->most = fmax(evidence->most, 1.0 + point->off);
        if (point->size_bytes >= LARGE_BYTES)
            evidence->largest = point;
    }
}

/* ---- rules: each returns false when it does not apply -------------------------------------- */

static bool over_pcie(const struct evidence *evidence, char *out, size_t bytes)
{
    const struct ty_cluster *cluster = &evidence->group.cluster;
    const double busbw = evidence->largest->measured_busbw_bytes_per_s;
    if (cluster->scaleup == TY_SCALEUP_PCIE || busbw > 1.1 * cluster->gpu.pcie_bytes_per_s ||
        evidence->largest->predicted.busbw_bytes_per_s < 2.0 * busbw)
        return false;
    text_format(out, bytes,
                "no faster than PCIe (%.0f GB/s): NVLink or xGMI is not used; look for "
                "NCCL_P2P_DISABLE, a container without peer access, links that are down",
                cluster->gpu.pcie_bytes_per_s / 1e9);
    return true;
}

/* The rate of rings is that of the links as NCCL takes them. */
static bool without_nvls(const struct evidence *evidence, char *out, size_t bytes)
{
    const struct ty_collective_query *query = &evidence->comm->query;
    struct nccl_choice choice;
    struct nccl_graph graph;
    if (query->op != TY_ALL_REDUCE)
        return false;
    comm_prior_s(&evidence->group, query->op, evidence->largest->size_bytes, &choice);
    nccl_graph_init(&evidence->group.cluster, &evidence->group.shape, &graph);
    const double rings = graph.ring_tree.n * graph.ring_tree.intra_bytes_per_s;
    const double share = evidence->largest->measured_busbw_bytes_per_s / rings;
    if (choice.algorithm != NCCL_NVLS || share < 0.85 || share > 1.05)
        return false;
    text_format(out, bytes,
                "the rate of rings (%.0f GB/s): NVLS is not used; look for NCCL_NVLS_ENABLE=0, an "
                "old NCCL, the fabric manager or IMEX not running",
                rings / 1e9);
    return true;
}

/* Bytes a second that each node got through its NICs, at least: two levels, or direct. */
static double node_bytes_per_s(const struct evidence *evidence)
{
    const struct group_shape *shape = &evidence->group.shape;
    const double n = shape->size, g = shape->ranks_per_domain, k = shape->n_domains;
    const double per_s = evidence->largest->size_bytes / evidence->largest->measured_s;
    switch (evidence->comm->query.op) {
    case TY_ALL_TO_ALL:
        return per_s * g * (n - g) / n;
    case TY_SEND_RECV:
        return per_s * g;
    case TY_ALL_REDUCE:
        return per_s * 2.0 * (k - 1.0) / k;
    default:
        return per_s * (k - 1.0) / k;
    }
}

static bool over_sockets(const struct evidence *evidence, char *out, size_t bytes)
{
    const struct ty_cluster *cluster = &evidence->group.cluster;
    const double node = node_bytes_per_s(evidence);
    if (node > 0.35 * cluster->nic_bytes_per_s)
        return false;
    text_format(out, bytes,
                "%.1f GB/s a node, a third of one NIC or less: sockets instead of RDMA; look for "
                "\"NET/Socket\" with NCCL_DEBUG=INFO, NCCL_IB_DISABLE, a missing network plugin, "
                "the wrong NCCL_SOCKET_IFNAME",
                node / 1e9);
    return true;
}

/* A NIC carries nine tenths of its line rate, and each node has carried what j of them do. */
static bool some_nics(const struct evidence *evidence, char *out, size_t bytes)
{
    const struct ty_cluster *cluster = &evidence->group.cluster;
    const double m = cluster->nics_per_node, node = node_bytes_per_s(evidence);
    const double j = fmax(1.0, round(node / (0.9 * cluster->nic_bytes_per_s)));
    if (j > m / 2.0)
        return false;
    text_format(out, bytes,
                "%.0f GB/s a node, what %.0f of its %.0f NICs can carry; look for NCCL_IB_HCA, "
                "ports that are down, GPUs that share a NIC, GPUDirect RDMA that is off",
                node / 1e9, j, m);
    return true;
}

static bool same_share(const struct evidence *evidence, char *out, size_t bytes)
{
    if (!evidence->all_low || evidence->most > 1.3 * evidence->least)
        return false;
    text_format(out, bytes,
                "low by the same share at every size: not a link; look for lowered clocks, another "
                "job on the machine, a debug or checking option");
    return true;
}

/* The largest message is normal, or there is no large one. */
static bool latency_only(const struct evidence *evidence, char *out, size_t bytes)
{
    if (evidence->largest && evidence->largest->verdict == TY_COMM_LOW)
        return false;
    text_format(out, bytes,
                "the largest messages are not low: latency, not bandwidth; look for CPU frequency "
                "and affinity, NUMA placement, a network of longer latency than the cluster file "
                "says, a launcher or framework in the measured time");
    return true;
}

static void find_cause(const struct evidence *evidence, char *out, size_t bytes)
{
    typedef bool rule(const struct evidence *, char *, size_t);
    static rule *const inside[] = {over_pcie, without_nvls, NULL};
    static rule *const across[] = {over_sockets, some_nics, NULL};
    static rule *const any[] = {same_share, latency_only, NULL};
    if (evidence->largest && evidence->largest->verdict == TY_COMM_LOW)
        for (rule *const *r = evidence->group.shape.n_domains > 1 ? across : inside; *r; r++)
            if ((*r)(evidence, out, bytes))
                return;
    for (rule *const *r = any; *r; r++)
        if ((*r)(evidence, out, bytes))
            return;
    text_format(out, bytes, "no rule of docs/comm.md fits");
}

ty_status ty_comm_judge(struct ty_comm *comm, struct ty_error *error)
{
    struct evidence evidence = {.comm = comm};
    const ty_status status = comm_group_init(comm->query.cluster, comm->query.ranks,
                                             comm->query.ranks_per_domain, &evidence.group, error);
    if (status != TY_OK)
        return status;
    comm->n_low = comm->n_high = 0;
    for (uint32_t i = 0; i < comm->n; i++) {
        if (measured(&comm->points[i]))
            judge_point(&comm->query, &comm->points[i]);
        comm->n_low += comm->points[i].verdict == TY_COMM_LOW;
        comm->n_high += comm->points[i].verdict == TY_COMM_HIGH;
    }
    gather(&evidence);
    if (comm->n_low)
        find_cause(&evidence, comm->cause, sizeof comm->cause);
    return TY_OK;
}
