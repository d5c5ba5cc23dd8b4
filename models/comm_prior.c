/* SPDX-License-Identifier: MIT
 *
 * The prior of a collective:
 *
 *   t = latency + network latency + bytes/algbw (1/e + r sqrt(S0 d / S)),  d = 1 + log2 k
 *
 * latency, algbw: NCCL's model; k domains. Its bandwidths are met at 1/e = 1.05 only by the largest
 * messages; the sqrt is the fill of the pipeline, longer with more hops. e, S0 and d are the least
 * that describes the measured tables of data/micro/nccl (docs/comm.md); r is that of ACCURACY 1.5.
 */
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>

static const double WIRE = 1.05, RAMP = 0.5, RAMP_BYTES = 12e6;
/* Of RAMP_BYTES by protocol: short chunks fill a pipeline sooner. */
static const double ramp_ratio[N_NCCL_PROTOCOLS] = {0.0, 0.5, 1.0};
/* What networks without InfiniBand's or RoCE's short path add to a small message; least of the
 * differences between the tables (EFA, GPUDirect-TCPX and TCPXO against InfiniBand). */
static const double LONG_PATH_S = 40e-6;
/* Source: ACCURACY 1.5 (all-to-all), handbook 5.5 (messages). */
static const double ALL_TO_ALL_S = 60e-6, SEND_SCALEUP_S = 10e-6, SEND_NIC_S = 20e-6;
/* Of the data sheet's rate: NVLink as NCCL takes it (handbook 6.1), raw RDMA (same place). */
static const double LINK_RATIO = 0.8, NIC_RATIO = 0.969;

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

static double network_latency_s(const struct comm_group *group)
{
    const int fabric = group->cluster.fabric;
    const bool short_path = fabric == TY_FABRIC_INFINIBAND || fabric == TY_FABRIC_ROCE;
    return group->shape.n_domains > 1 && !short_path ? LONG_PATH_S : 0.0;
}

static double message_latency_s(const struct comm_group *group, enum ty_collective_op op)
{
    if (op == TY_ALL_TO_ALL)
        return ALL_TO_ALL_S;
    return group->shape.n_domains > 1 ? SEND_NIC_S : SEND_SCALEUP_S;
}

double comm_prior_s(const struct comm_group *group, enum ty_collective_op op, double size_bytes,
                    struct nccl_choice *choice)
{
    if (op == TY_ALL_TO_ALL || op == TY_SEND_RECV) {
        double scaleup_s, network_s;
        link_times(group, op, size_bytes, &scaleup_s, &network_s);
        return message_latency_s(group, op) + network_latency_s(group) + fmax(scaleup_s, network_s);
    }
    struct nccl_graph graph;
    struct nccl_choice best;
    nccl_graph_init(&group->cluster, &group->shape, &graph);
    nccl_choose(&graph, (enum collective_op)op, size_bytes, &best);
    if (choice)
        *choice = best;
    const double hops = 1.0 + log2(group->shape.n_domains);
    const double ramp = RAMP * sqrt(RAMP_BYTES * ramp_ratio[best.protocol] * hops / size_bytes);
    return best.latency_s + network_latency_s(group) +
           (best.time_s - best.latency_s) * (WIRE + ramp);
}

const char *comm_limit(const struct comm_group *group, enum ty_collective_op op, double size_bytes)
{
    double scaleup_s, network_s;
    link_times(group, op, size_bytes, &scaleup_s, &network_s);
    if (2.0 * fmax(scaleup_s, network_s) < comm_prior_s(group, op, size_bytes, NULL))
        return "latency";
    return link_name(&group->cluster, network_s > scaleup_s ? group->shape.link : LINK_SCALEUP);
}
