/* SPDX-License-Identifier: MIT
 *
 * The prior of a collective:
 *
 *   t = L + S/B + r sqrt(q L' S/B)
 *
 * L: latency of NCCL's model for the algorithm and protocol that it would choose; B: what the links
 * let these move, with the protocol's share of NCCL's model. The last term is the fill of a
 * pipeline: a chunk costs its latency, L' with Simple, and the best number of chunks costs
 * 2 sqrt(L' S/B). r is the least that describes the tables of data/micro/nccl (docs/comm.md).
 */
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>

static const double FILL = 2.0 / 3.0;
/* q, by protocol: short chunks fill a pipeline sooner. */
static const double fill_ratio[N_NCCL_PROTOCOLS] = {0.0, 0.5, 1.0};
/* What a step through the host's memory takes longer than NCCL's hop over PCIe: 8 RTX 4090 without
 * peer-to-peer take 43 us for 8 bytes (NVIDIA/nccl issue 1530), 6.6 us and 14 steps. */
static const double HOST_STEP_S = 1.6e-6;
/* Source: ACCURACY 1.5 (all-to-all), handbook 5.5 (messages). */
static const double ALL_TO_ALL_S = 60e-6, SEND_SCALEUP_S = 10e-6, SEND_NIC_S = 20e-6;
/* Of the data sheet's rate: all-to-all in a domain, by what NVIDIA says to expect (0.70 to 0.71,
 * data/micro/nccl_expected_busbw.csv), and across. */
static const double LINK_RATIO = 0.72, NIC_RATIO = 0.93;

bool comm_shape(const struct ty_cluster *resolved, uint32_t ranks, uint32_t ranks_per_domain,
                struct group_shape *out)
{
    const uint32_t domain = cluster_domain(resolved, ranks);
    const uint32_t per_domain = ranks_per_domain ? ranks_per_domain : domain;
    const double nic_bytes_per_s =
        resolved->nic_bytes_per_s * resolved->nics_per_node / resolved->gpus_per_node;
    if (ranks < 2 || per_domain > ranks)
        return false;
    *out = (struct group_shape){.size = ranks,
                                .stride = 1,
                                .ranks_per_domain = per_domain,
                                .n_domains = 1 + (ranks - 1) / per_domain,
                                .link = LINK_SCALEUP,
                                .nic_bytes_per_s = nic_bytes_per_s,
                                .spine_bytes_per_s = nic_bytes_per_s / resolved->oversubscription};
    const uint64_t leaf = (uint64_t)resolved->nodes_per_leaf * resolved->gpus_per_node;
    if (out->n_domains > 1)
        out->link = leaf && ranks > leaf ? LINK_SPINE : LINK_NIC;
    return true;
}

ty_status comm_group_init(const struct ty_cluster *cluster, uint32_t ranks,
                          uint32_t ranks_per_domain, struct comm_group *out, struct ty_error *error)
{
    const ty_status status = cluster_resolve(cluster, &out->cluster, NULL, error);
    if (status != TY_OK)
        return status;
    if (ranks < 2)
        return error_set(error, TY_ERR_RANGE, "ranks", "%u: a collective has at least 2", ranks);
    if (!comm_shape(&out->cluster, ranks, ranks_per_domain, &out->shape))
        return error_set(error, TY_ERR_RANGE, "ranks", "%u, fewer than %u in a domain", ranks,
                         ranks_per_domain);
    return TY_OK;
}

static double network_bytes_per_s(const struct group_shape *shape)
{
    return NIC_RATIO *
           (shape->link == LINK_SPINE ? shape->spine_bytes_per_s : shape->nic_bytes_per_s);
}

/* Seconds on the links of one rank: its share of the domain's, and of the network. */
static void link_times(const struct comm_group *group, enum ty_collective_op op, double size_bytes,
                       double *scaleup_s, double *network_s)
{
    const struct group_shape *shape = &group->shape;
    const double n = shape->size, g = shape->ranks_per_domain, k = shape->n_domains;
    const double scaleup_bytes_per_s = LINK_RATIO * group->cluster.scaleup_bytes_per_s;
    double scaleup = g > 1.0 ? (g - 1.0) / g : 0.0, network = (k - 1.0) / k / g;
    if (op == TY_ALL_TO_ALL) {
        scaleup = (g - 1.0) / n;
        network = (n - g) / n;
    } else if (op == TY_SEND_RECV) {
        scaleup = k > 1.0 ? 0.0 : 1.0;
        network = 1.0 - scaleup;
    } else if (op == TY_ALL_REDUCE) {
        scaleup *= 2.0;
        network *= 2.0;
    }
    *scaleup_s = size_bytes * scaleup / scaleup_bytes_per_s;
    *network_s = k > 1.0 ? size_bytes * network / network_bytes_per_s(shape) : 0.0;
}

static double message_latency_s(const struct comm_group *group, const struct nccl_graph *graph,
                                enum ty_collective_op op)
{
    if (op == TY_ALL_TO_ALL)
        return ALL_TO_ALL_S + graph->net_latency_s;
    return group->shape.n_domains > 1 ? SEND_NIC_S + graph->net_latency_s : SEND_SCALEUP_S;
}

/* Steps between the GPUs of a node, one after the other, are longer without NVLink: a ring goes
 * through all nodes, a tree through the GPUs of one. */
static double host_latency_s(const struct nccl_graph *graph, enum ty_collective_op op,
                             enum nccl_algorithm algorithm)
{
    const double per_node = (double)graph->n_ranks / graph->n_nodes;
    const double n_nodes = algorithm == NCCL_RING ? graph->n_nodes : 1.0;
    const double n_steps = (op == TY_ALL_REDUCE ? 2.0 : 1.0) * n_nodes * (per_node - 1.0);
    return graph->pcie ? n_steps * HOST_STEP_S : 0.0;
}

double comm_prior_s(const struct comm_group *group, enum ty_collective_op op, double size_bytes,
                    struct nccl_choice *choice)
{
    struct nccl_graph graph;
    struct nccl_choice best;
    struct nccl_cost simple;
    nccl_graph_init(&group->cluster, &group->shape, &graph);
    if (op == TY_ALL_TO_ALL || op == TY_SEND_RECV) {
        double scaleup_s, network_s;
        link_times(group, op, size_bytes, &scaleup_s, &network_s);
        return message_latency_s(group, &graph, op) + fmax(scaleup_s, network_s);
    }
    nccl_choose(&graph, (enum collective_op)op, size_bytes, &best);
    if (choice)
        *choice = best;
    nccl_cost(&graph, (enum collective_op)op, best.algorithm, NCCL_SIMPLE, &simple);
    const double bytes_s = (best.time_s - best.latency_s) * simple.algbw_bytes_per_s /
                           nccl_wire_bytes_per_s(&graph, (enum collective_op)op, best.algorithm);
    const double host_s = host_latency_s(&graph, op, best.algorithm);
    const double fill_s =
        FILL * sqrt(fill_ratio[best.protocol] * (simple.latency_s + host_s) * bytes_s);
    return best.latency_s + host_s + bytes_s + fill_s;
}

const char *comm_limit(const struct comm_group *group, enum ty_collective_op op, double size_bytes)
{
    double scaleup_s, network_s;
    link_times(group, op, size_bytes, &scaleup_s, &network_s);
    if (2.0 * fmax(scaleup_s, network_s) < comm_prior_s(group, op, size_bytes, NULL))
        return "latency";
    return link_name(&group->cluster, network_s > scaleup_s ? group->shape.link : LINK_SCALEUP);
}
