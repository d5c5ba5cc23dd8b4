/* SPDX-License-Identifier: MIT
 *
 * When one rank per stage stands for all of them exactly: nothing sets ranks apart (speeds, GPUs,
 * micro-batches, faults, other jobs), routes are ideal, and every group of a kind has the one
 * signature that the folded rung gives it: size, ranks per domain, level crossed, sharers of its
 * NICs, and of an oversubscribed leaf.
 */
#include "models/full_internal.h"

#include <math.h>

static const char *asked(const struct ty_scenario *scenario)
{
    if (scenario->unfold)
        return "the scenario asks for every rank";
    if (scenario->n_speeds > 0)
        return "ranks differ in speed";
    if (scenario->jitter_ratio > 0.0)
        return "every rank has its own jitter";
    if (scenario->n_node_gpus > 0)
        return "nodes have different GPUs";
    if (scenario->n_micro || scenario->balance)
        return "replicas differ in micro-batches";
    if (scenario->n_faults > 0)
        return "links are slow or failed";
    if (scenario->n_others > 0)
        return "other jobs share the fabric";
    if (scenario->detailed)
        return "collectives go step by step";
    return NULL;
}

static const char *built(const struct ty_cluster *cluster)
{
    if (cluster->routing == TY_ROUTING_ECMP)
        return "flows are hashed to uplinks (network.routing ecmp)";
    if (cluster->routing == TY_ROUTING_STATIC)
        return "uplinks are taken by destination (network.routing static)";
    if (cluster->gpus_per_pcie_switch && cluster->scaleup == TY_SCALEUP_PCIE)
        return "GPUs share PCIe switches (pcie.gpus_per_switch)";
    return NULL;
}

static bool same_signature(const struct group_shape *a, const struct group_shape *b)
{
    return a->size == b->size && a->ranks_per_domain == b->ranks_per_domain &&
           a->n_domains == b->n_domains && a->link == b->link &&
           (a->link != LINK_SPINE ||
            fabs(a->spine_bytes_per_s - b->spine_bytes_per_s) <= 1e-9 * b->spine_bytes_per_s);
}

static bool groups_alike(struct full *full, struct job *job, const struct group_shape *shape)
{
    const struct grouping *grouping = job_grouping(full, job, shape);
    if (!grouping)
        return false;
    for (size_t i = 0; i < (size_t)grouping->n_groups * job->n_stages; i++)
        if (!same_signature(&grouping->shape[i], shape))
            return false;
    return true;
}

static bool pairs_alike(const struct full *full, const struct job *job, const struct sent *sent)
{
    for (uint32_t lane = 0; lane < job->width; lane++) {
        struct group_shape shape;
        job_pair_shape(full, job, sent, lane, &shape);
        if (!same_signature(&shape, &sent->collective.shape))
            return false;
    }
    return true;
}

static const char *uneven_groups(struct full *full, struct job *job, bool *spine)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_EP, AXIS_ETP};
    const struct step *step = job->templates[0].step;
    for (uint32_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct group_shape shape;
        grid_shape(job->setting, &job->plan, axes[i], &shape);
        if (!groups_alike(full, job, &shape))
            return "groups of a layer (tp, cp, ep) are placed differently";
        *spine |= shape.link == LINK_SPINE;
    }
    for (uint32_t i = 0; i < step->n_sent; i++) {
        const struct sent *sent = &step->sent[i];
        *spine |= sent->collective.shape.link == LINK_SPINE;
        if (job_is_pair(sent) && !pairs_alike(full, job, sent))
            return "neighbours in the pipeline are placed differently";
        if (!job_is_pair(sent) && !groups_alike(full, job, &sent->collective.shape))
            return "groups of data parallelism are placed differently";
    }
    return NULL;
}

/* Numbers by which ports (leaves) with the same ranks are told from others: stages and counts. */
static double mark(uint32_t stage)
{
    return sqrt(stage + 2.0);
}

/* Ranks of one stage find the same company on their NIC ports; leaves that are oversubscribed and
 * crossed hold one stage each, on all their ports. */
static const char *uneven_links(struct full *full, struct job *job, bool spine)
{
    const struct fabric *fabric = &full->fabric;
    const struct step *step = job->templates[0].step;
    const size_t n_ports = (size_t)fabric->n_nodes * fabric->n_ports;
    double *port_mark = arena_get(&full->arena, n_ports, sizeof *port_mark);
    uint32_t *leaf_ranks = arena_get(&full->arena, fabric->n_leaves, sizeof *leaf_ranks);
    if (!port_mark || !leaf_ranks)
        return "out of memory";
    for (uint32_t stage = 0; stage < job->n_stages; stage++)
        for (uint32_t lane = 0; lane < job->width; lane++) {
            const uint32_t port = fabric_port(fabric, job->gpu[job_rank(job, stage, lane)]);
            port_mark[port] += mark(stage);
            leaf_ranks[fabric_leaf(fabric, port)]++;
        }
    const double full_leaf = fmin(fabric->cluster.nodes_per_leaf, fabric->n_nodes) *
                             (fabric->cluster.rails == TY_ON ? fabric->sharers : fabric->gpus);
    for (uint32_t stage = 0; stage < job->n_stages; stage++)
        for (uint32_t lane = 0; lane < job->width; lane++) {
            const uint32_t rank = job_rank(job, stage, lane);
            const uint32_t port = fabric_port(fabric, job->gpu[rank]);
            const uint32_t first = fabric_port(fabric, job->gpu[job_rank(job, stage, 0)]);
            const double ranks = leaf_ranks[fabric_leaf(fabric, port)];
            if (port_mark[port] != port_mark[first] ||
                job->same_port[rank] != step->stages[stage].same[LINK_NIC])
                return "ranks of a stage share their NICs with different others";
            if (spine && fabric->cluster.oversubscription > 1.0 &&
                (ranks != job->same_leaf[rank] || ranks != full_leaf))
                return "an oversubscribed leaf holds several stages, or other nodes";
        }
    return NULL;
}

const char *full_why_not(struct full *full, struct job *job, const struct ty_scenario *scenario)
{
    bool spine = false;
    const char *why = asked(scenario);
    if (!why)
        why = built(&job->setting->cluster);
    if (!why)
        why = uneven_groups(full, job, &spine);
    return why ? why : uneven_links(full, job, spine);
}
