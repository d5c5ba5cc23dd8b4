/* SPDX-License-Identifier: MIT
 *
 * Isolated time of a collective over n ranks, g of them in each of k scale-up domains:
 *
 *   t = latency + f S / B (1 + ramp sqrt(S0 / S))       f: bus bandwidth factor, S: payload
 *   B = bus bandwidth of the domain, k > 1: at most g NIC shares of it
 *   all-to-all: max(S local (1 - 1/n) / B_intra, S remote (1 - g/n) / B_nic) + latency
 *
 * The sqrt is the compact stand-in for a measured size-to-time table. Source: ACCURACY 1.5,
 * ACCURACY-2 2.2; mesh rule: handbook 6.1. */
#include "models/comm.h"
#include "models/measured.h"

#include <math.h>

/* Share of the all-gather bus bandwidth one pair of ranks reaches; source: ACCURACY 1.5 (CP). */
static const double SEND_RATIO = 0.6;
/* Latency of an all-to-all (40 us) and of one ring step (10 us) over that of a message (25 us);
 * source: ACCURACY 1.5. Ratios, so that a faster network is faster for all of them. */
static const double ALL_TO_ALL_LATENCY = 1.6, RING_STEP_LATENCY = 0.4;
/* Network hops per doubling of the nodes: a tree goes up and down; source: handbook 5.2. */
static const double HOPS_PER_DOUBLING = 2.0;

double collective_busbw_factor(enum collective_op op, uint32_t n)
{
    if (op == COLLECTIVE_SEND)
        return 1.0;
    return (op == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (n - 1.0) / n;
}

double collective_distinct_ratio(double places, double top_k)
{
    if (places <= 1.0)
        return top_k > 0.0 ? 1.0 / top_k : 1.0;
    return places * (1.0 - pow(1.0 - 1.0 / places, top_k)) / top_k;
}

void collective_two_level_s(double payload_bytes, uint32_t per_node, uint32_t nodes,
                            double nic_bytes_per_s, double intra_busbw_bytes_per_s, double *low_s,
                            double *high_s)
{
    const double inter_s = collective_busbw_factor(COLLECTIVE_ALL_REDUCE, nodes) * payload_bytes /
                           per_node / nic_bytes_per_s;
    const double intra_s = collective_busbw_factor(COLLECTIVE_ALL_REDUCE, per_node) *
                           payload_bytes / intra_busbw_bytes_per_s;
    *low_s = fmax(inter_s, intra_s);
    *high_s = inter_s + intra_s;
}

/* In a mesh k of U GPUs reach each other over k - 1 of the U - 1 links of a GPU. */
static double intra_ratio(const struct setting *setting, const struct group_shape *shape)
{
    const struct ty_cluster *cluster = &setting->cluster;
    if (cluster->scaleup != TY_SCALEUP_MESH || shape->ranks_per_domain <= 1 ||
        shape->ranks_per_domain >= cluster->scaleup_domain)
        return 1.0;
    return (shape->ranks_per_domain - 1.0) / (cluster->scaleup_domain - 1.0);
}

/* What one rank of the group gets of its NIC in a collective. */
static double nic_bytes_per_s(const struct setting *setting, const struct group_shape *shape)
{
    const double line_bytes_per_s = shape->link == LINK_SPINE
                                        ? fmin(shape->nic_bytes_per_s, shape->spine_bytes_per_s)
                                        : shape->nic_bytes_per_s;
    return line_bytes_per_s * setting->profile.nic_ratio;
}

/* Ranks of a group whose shares of the node's NICs it gets. Where GPUs share NICs that read their
 * memory (GPUDirect), a ring over some of a node's GPUs enters and leaves by one of them: its
 * others hang behind other switches. Omni-Path and most Ethernet pass through the host's memory,
 * from which every NIC is as near. */
static double ranks_with_nic(const struct setting *setting, const struct group_shape *shape)
{
    const struct ty_cluster *cluster = &setting->cluster;
    const bool direct =
        cluster->fabric == TY_FABRIC_INFINIBAND || cluster->fabric == TY_FABRIC_ROCE;
    const bool shared = cluster->nics_per_node < cluster->gpus_per_node;
    return direct && shared && shape->ranks_per_domain < cluster->gpus_per_node
               ? 1.0
               : shape->ranks_per_domain;
}

static double busbw_bytes_per_s(const struct setting *setting, const struct collective *collective)
{
    const struct group_shape *shape = &collective->shape;
    const struct ty_profile *profile = &setting->profile;
    const double device_bytes_per_s = collective->op == COLLECTIVE_ALL_REDUCE
                                          ? profile->allreduce_busbw_bytes_per_s
                                          : profile->allgather_busbw_bytes_per_s;
    const double intra_bytes_per_s = device_bytes_per_s * intra_ratio(setting, shape);
    if (shape->n_domains <= 1)
        return intra_bytes_per_s;
    const double inter_bytes_per_s =
        ranks_with_nic(setting, shape) * nic_bytes_per_s(setting, shape);
    return shape->ranks_per_domain > 1 ? fmin(intra_bytes_per_s, inter_bytes_per_s)
                                       : inter_bytes_per_s;
}

static double latency_s(const struct setting *setting, const struct collective *collective)
{
    const struct ty_profile *profile = &setting->profile;
    const double base_s = profile->collective_latency_s;
    switch (collective->op) {
    case COLLECTIVE_SEND:
        return profile->p2p_latency_s *
               (collective->ring_steps > 0.0 ? RING_STEP_LATENCY * collective->ring_steps : 1.0);
    case COLLECTIVE_ALL_TO_ALL:
        return profile->p2p_latency_s * ALL_TO_ALL_LATENCY;
    default:
        if (collective->shape.n_domains <= 1)
            return base_s;
        return base_s + log2(collective->shape.n_domains) *
                            fmax(profile->latency_growth * base_s,
                                 HOPS_PER_DOUBLING * setting->cluster.nic_latency_s);
    }
}

static double copies(double given)
{
    return given > 0.0 ? given : 1.0;
}

static double all_to_all_s(const struct setting *setting, const struct collective *collective)
{
    const struct group_shape *shape = &collective->shape;
    const double n = shape->size, g = shape->ranks_per_domain;
    const double intra_bytes_per_s = setting->profile.allgather_busbw_bytes_per_s *
                                     intra_ratio(setting, shape) * setting->profile.alltoall_ratio;
    double time_s = 0.0;
    if (g > 1.0)
        time_s = copies(collective->local_copies) * (1.0 - 1.0 / n) / intra_bytes_per_s;
    if (shape->n_domains > 1)
        time_s = fmax(time_s,
                      copies(collective->remote_copies) * (1.0 - g / n) /
                          (nic_bytes_per_s(setting, shape) * setting->profile.alltoall_nic_ratio));
    return collective->payload_bytes * time_s;
}

static double send_s(const struct setting *setting, const struct collective *collective)
{
    const struct group_shape *shape = &collective->shape;
    const double allgather_bytes_per_s =
        setting->profile.allgather_busbw_bytes_per_s * intra_ratio(setting, shape);
    const double rate_bytes_per_s =
        shape->link <= LINK_SCALEUP ? SEND_RATIO * allgather_bytes_per_s
                                    : fmin(nic_bytes_per_s(setting, shape), allgather_bytes_per_s);
    return collective->payload_bytes / rate_bytes_per_s;
}

/* Of the payload, by one rank in a collective of rings. */
static double parts_moved(const struct collective *collective)
{
    return collective->own_part ? 1.0
                                : collective_busbw_factor(collective->op, collective->shape.size);
}

/* Time of the bytes alone, of the whole collective. */
static double transfer_s(const struct setting *setting, const struct collective *collective)
{
    const struct ty_profile *profile = &setting->profile;
    const double payload_bytes = collective->payload_bytes;
    switch (collective->op) {
    case COLLECTIVE_SEND:
        return send_s(setting, collective);
    case COLLECTIVE_ALL_TO_ALL:
        return all_to_all_s(setting, collective);
    default:
        return parts_moved(collective) * payload_bytes / busbw_bytes_per_s(setting, collective) *
               (1.0 + profile->ramp_ratio * sqrt(profile->ramp_bytes / payload_bytes));
    }
}

/* An all-to-all tells nothing about a site's other collectives; source: ACCURACY-2 2.2. */
static double site_ratio(const struct setting *setting, const struct collective *collective)
{
    return collective->op == COLLECTIVE_ALL_TO_ALL ? 1.0 : setting->profile.site_comm_ratio;
}

static bool idle(const struct collective *collective)
{
    return collective->shape.size <= 1 || !(collective->payload_bytes > 0.0);
}

static double share(const struct collective *collective)
{
    return collective->share > 0.0 ? collective->share : 1.0;
}

/* Time of the whole collective and the part of it before any byte moves. A measured table of the
 * cluster goes before the form, and before what a site makes of the form. */
static enum ty_origin isolated_s(const struct setting *setting, const struct collective *collective,
                                 double *time_s, double *before_s)
{
    enum ty_origin origin = constants_origin(&setting->profile, TY_WORK_COLLECTIVES);
    const double slower = site_ratio(setting, collective);
    *before_s = slower * latency_s(setting, collective);
    *time_s = slower * (latency_s(setting, collective) + transfer_s(setting, collective));
    const struct ty_collective_tables *tables = setting->profile.collectives;
    if (!tables || collective->op == COLLECTIVE_SEND || collective->remote_copies > 0.0 ||
        collective->local_copies > 0.0)
        return origin;
    const struct comm_group group = {setting->cluster, collective->shape};
    if (comm_measured_s(tables, &group, (enum ty_collective_op)collective->op,
                        collective->payload_bytes, time_s, &origin))
        *before_s = fmin(*before_s, *time_s / 2.0);
    return origin;
}

enum ty_origin collective_origin(const struct setting *setting, const struct collective *collective,
                                 double *time_s)
{
    double before_s;
    *time_s = 0.0;
    return idle(collective) ? TY_ORIGIN_PRESET : isolated_s(setting, collective, time_s, &before_s);
}

double collective_time_s(const struct setting *setting, const struct collective *collective)
{
    double time_s, before_s;
    if (idle(collective))
        return 0.0;
    isolated_s(setting, collective, &time_s, &before_s);
    return share(collective) * time_s;
}

/* Bytes on a rank's own links per byte of payload: a two-level all-reduce reduces inside the
 * domain first, so that only 1/g of the payload crosses the NIC. */
static void link_bytes(const struct collective *collective, double *scaleup, double *nic)
{
    const struct group_shape *shape = &collective->shape;
    const double n = shape->size, g = shape->ranks_per_domain;
    switch (collective->op) {
    case COLLECTIVE_SEND:
        *scaleup = shape->link <= LINK_SCALEUP ? 1.0 : 0.0;
        *nic = 1.0 - *scaleup;
        break;
    case COLLECTIVE_ALL_TO_ALL:
        *scaleup = g > 1.0 ? copies(collective->local_copies) * (1.0 - 1.0 / n) : 0.0;
        *nic = shape->n_domains > 1 ? copies(collective->remote_copies) * (1.0 - g / n) : 0.0;
        break;
    default:
        *scaleup = collective_busbw_factor(collective->op, shape->ranks_per_domain);
        *nic = collective_busbw_factor(collective->op, shape->n_domains) / g;
        break;
    }
}

void collective_as_flow(const struct setting *setting, const struct collective *collective,
                        struct collective_flow *out)
{
    double scaleup, nic, time_s, before_s;
    *out = (struct collective_flow){.cap_bytes_per_s = INFINITY};
    if (idle(collective))
        return;
    isolated_s(setting, collective, &time_s, &before_s);
    out->latency_s = share(collective) * before_s + collective->codec_s;
    out->work_bytes = share(collective) * collective->payload_bytes;
    out->cap_bytes_per_s = collective->payload_bytes / (time_s - before_s);
    link_bytes(collective, &scaleup, &nic);
    /* In-network reduction (NVLS) beats the wire bytes of a ring: a flow that runs alone never
     * needs more than its link. */
    out->bytes_per_work[LINK_SCALEUP] =
        fmin(scaleup, setting->cluster.scaleup_bytes_per_s / out->cap_bytes_per_s);
    out->bytes_per_work[LINK_NIC] = nic;
    out->bytes_per_work[LINK_SPINE] = collective->shape.link == LINK_SPINE ? nic : 0.0;
}
