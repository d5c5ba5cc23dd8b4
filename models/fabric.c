/* SPDX-License-Identifier: MIT
 *
 * The links of a fabric and their capacities.
 *
 *   leaf   down = ports below * port, up = down / oversubscription, in round(ports / r) uplinks
 *   pod    the same of the uplinks of its leaves and the oversubscription of pods
 *
 * An uplink whose flows are spread evenly and that is not oversubscribed cannot be the bottleneck:
 * its capacity is infinite, and flows are not coupled through it. Source: handbook 6.1, 6.2.
 */
#include "models/fabric.h"
#include "sim/error.h"

#include <math.h>

static uint32_t n_groups(uint32_t n, uint32_t size)
{
    return n / size + (n % size != 0);
}

static bool spreads(const struct ty_cluster *cluster)
{
    return cluster->routing != TY_ROUTING_STATIC && cluster->routing != TY_ROUTING_ECMP;
}

static uint32_t given(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

/* Capacity of a NIC port in one plane. */
static double port_bytes_per_s(const struct fabric *fabric)
{
    const double per_gpu = (double)fabric->cluster.nics_per_node / fabric->gpus;
    return fabric->cluster.nic_bytes_per_s * fmax(1.0, per_gpu) / fabric->n_planes;
}

/* NIC ports below a leaf, of one plane. */
static uint32_t leaf_ports(const struct fabric *fabric)
{
    const uint32_t nodes = fabric->cluster.nodes_per_leaf < fabric->n_nodes
                               ? fabric->cluster.nodes_per_leaf
                               : fabric->n_nodes;
    return fabric->cluster.rails == TY_ON ? nodes : nodes * fabric->n_ports;
}

static uint32_t pod_leaves(const struct fabric *fabric)
{
    const uint32_t leaves = given(fabric->cluster.leaves_per_pod, fabric->n_leaves);
    return leaves < fabric->n_leaves ? leaves : fabric->n_leaves;
}

/* ---- counts -------------------------------------------------------------------------------- */

static void count_switches(struct fabric *fabric)
{
    const struct ty_cluster *cluster = &fabric->cluster;
    const uint32_t gpus = fabric->gpus = cluster->gpus_per_node, nics = cluster->nics_per_node;
    const bool spread = spreads(cluster);
    fabric->domain = cluster->scaleup_domain;
    fabric->sharers = nics < gpus ? n_groups(gpus, nics) : 1;
    fabric->n_ports = n_groups(gpus, fabric->sharers);
    fabric->n_planes = spread ? 1 : given(cluster->planes, 1);
    fabric->n_leaves = n_groups(fabric->n_nodes, cluster->nodes_per_leaf) *
                       (cluster->rails == TY_ON ? fabric->n_ports : 1);
    fabric->n_pods = n_groups(fabric->n_leaves, pod_leaves(fabric));
    const double uplinks = fmax(1.0, round(leaf_ports(fabric) / cluster->oversubscription));
    fabric->n_uplinks = (uint32_t)uplinks;
    fabric->n_pod_uplinks =
        (uint32_t)fmax(1.0, round(uplinks * pod_leaves(fabric) / cluster->pod_oversubscription));
    fabric->n_paths = spread || fabric->n_leaves == 1 ? 1 : fabric->n_uplinks;
    fabric->n_pod_paths = spread || fabric->n_pods == 1 ? 1 : fabric->n_pod_uplinks;
    fabric->n_pcie =
        cluster->gpus_per_pcie_switch ? n_groups(gpus, cluster->gpus_per_pcie_switch) : 0;
}

/* Links of a kind, both directions counted once. */
static double n_of_kind(const struct fabric *fabric, enum fabric_kind kind)
{
    const double nodes = fabric->n_nodes, planes = fabric->n_planes;
    switch (kind) {
    case FABRIC_PORT:
        return nodes * fabric->gpus;
    case FABRIC_PAIR:
        return fabric->cluster.scaleup == TY_SCALEUP_MESH ? nodes * fabric->gpus * fabric->domain
                                                          : 0.0;
    case FABRIC_PCIE:
        return nodes * fabric->n_pcie;
    case FABRIC_NIC:
        return nodes * fabric->n_ports * planes;
    case FABRIC_LEAF:
        return planes * fabric->n_leaves * fabric->n_paths;
    default:
        return planes * fabric->n_pods * fabric->n_pod_paths;
    }
}

/* ---- capacities ---------------------------------------------------------------------------- */

static double scaleup_bytes_per_s(const struct ty_cluster *cluster)
{
    return cluster->scaleup_bytes_per_s > 0.0 ? cluster->scaleup_bytes_per_s
                                              : cluster->gpu.pcie_bytes_per_s;
}

/* In one plane, as pod_bytes_per_s. */
double fabric_leaf_bytes_per_s(const struct fabric *fabric)
{
    return leaf_ports(fabric) * port_bytes_per_s(fabric) / fabric->cluster.oversubscription;
}

static double pod_bytes_per_s(const struct fabric *fabric)
{
    return pod_leaves(fabric) * fabric_leaf_bytes_per_s(fabric) /
           fabric->cluster.pod_oversubscription;
}

static double capacity_of(const struct fabric *fabric, enum fabric_kind kind)
{
    const struct ty_cluster *cluster = &fabric->cluster;
    const bool spread = spreads(cluster);
    switch (kind) {
    case FABRIC_PORT:
        return scaleup_bytes_per_s(cluster);
    case FABRIC_PAIR:
        return scaleup_bytes_per_s(cluster) / fmax(1.0, fabric->domain - 1.0);
    case FABRIC_PCIE:
        return cluster->gpu.pcie_bytes_per_s;
    case FABRIC_NIC:
        return port_bytes_per_s(fabric);
    case FABRIC_LEAF:
        return spread && cluster->oversubscription <= 1.0
                   ? HUGE_VAL
                   : fabric_leaf_bytes_per_s(fabric) / fabric->n_paths;
    default:
        return spread && cluster->oversubscription * cluster->pod_oversubscription <= 1.0
                   ? HUGE_VAL
                   : pod_bytes_per_s(fabric) / fabric->n_pod_paths;
    }
}

double fabric_nominal_bytes_per_s(const struct fabric *fabric, uint32_t link)
{
    enum fabric_kind kind = FABRIC_PORT;
    while (kind + 1 < N_FABRIC_KINDS && link >= fabric->first[kind + 1])
        kind++;
    return capacity_of(fabric, kind);
}

/* ---- faults -------------------------------------------------------------------------------- */

/* The uplinks of a switch lose one of `n`, or the part of it that does not work. */
static double uplink_fault(double capacity_bytes_per_s, double whole_bytes_per_s, double n_paths,
                           double n_uplinks, double ratio)
{
    if (n_paths > 1.0)
        return capacity_bytes_per_s * ratio;
    if (!isfinite(capacity_bytes_per_s))
        capacity_bytes_per_s = whole_bytes_per_s;
    return capacity_bytes_per_s - whole_bytes_per_s / n_uplinks * (1.0 - ratio);
}

static void slow_link(struct fabric *fabric, enum fabric_kind kind, uint32_t index, double ratio)
{
    for (uint32_t way = 0; way < 2; way++) {
        double *capacity = &fabric->capacity_bytes_per_s[fabric->first[kind] + 2 * index + way];
        if (kind == FABRIC_LEAF)
            *capacity = uplink_fault(*capacity, fabric_leaf_bytes_per_s(fabric), fabric->n_paths,
                                     fabric->n_uplinks, ratio);
        else if (kind == FABRIC_POD)
            *capacity = uplink_fault(*capacity, pod_bytes_per_s(fabric), fabric->n_pod_paths,
                                     fabric->n_pod_uplinks, ratio);
        else
            *capacity *= ratio;
    }
}

static ty_status apply_fault(struct fabric *fabric, const struct ty_fault *fault,
                             struct ty_error *error)
{
    static const enum fabric_kind kinds[] = {FABRIC_NIC, FABRIC_PORT, FABRIC_LEAF, FABRIC_POD};
    if ((unsigned)fault->kind >= sizeof kinds / sizeof *kinds || !(fault->ratio >= 0.0) ||
        fault->ratio > 1.0)
        return error_set(error, TY_ERR_RANGE, "fault", "needs a kind and a ratio from 0 to 1");
    const uint32_t units[] = {fabric->n_nodes, fabric->n_nodes, fabric->n_leaves, fabric->n_pods};
    const uint32_t parts[] = {fabric->n_ports, fabric->gpus, fabric->n_uplinks,
                              fabric->n_pod_uplinks};
    const uint32_t paths[] = {fabric->n_ports, fabric->gpus, fabric->n_paths, fabric->n_pod_paths};
    if (fault->unit >= units[fault->kind] || fault->part >= parts[fault->kind])
        return error_set(error, TY_ERR_RANGE, "fault",
                         "%s %u.%u does not exist; there are %u with %u each",
                         ty_fault_name(fault->kind), fault->unit, fault->part, units[fault->kind],
                         parts[fault->kind]);
    const uint32_t n_planes = fault->kind == TY_FAULT_LINK ? 1 : fabric->n_planes;
    const uint32_t part = fault->part % paths[fault->kind];
    for (uint32_t plane = 0; plane < n_planes; plane++) {
        const uint32_t inner = fault->kind == TY_FAULT_NIC
                                   ? (fault->unit * fabric->n_ports + part) * n_planes + plane
                                   : (fault->unit * n_planes + plane) * paths[fault->kind] + part;
        slow_link(fabric, kinds[fault->kind], inner, fault->ratio);
    }
    return TY_OK;
}

const char *ty_fault_name(enum ty_fault_kind kind)
{
    static const char *const names[] = {"nic", "link", "uplink", "pod_uplink"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "";
}

/* ---- life ---------------------------------------------------------------------------------- */

ty_status fabric_create(const struct ty_cluster *cluster, uint32_t n_nodes,
                        const struct ty_fault *faults, uint32_t n_faults, uint64_t seed,
                        const struct ty_allocator *allocator, struct fabric *out,
                        struct ty_error *error)
{
    struct fabric fabric = {.allocator = allocator_or_default(allocator),
                            .cluster = *cluster,
                            .seed = seed,
                            .n_nodes = n_nodes};
    double n_links = 0.0;
    count_switches(&fabric);
    for (enum fabric_kind kind = 0; kind < N_FABRIC_KINDS; kind++) {
        fabric.first[kind] = (uint32_t)n_links;
        n_links += 2.0 * n_of_kind(&fabric, kind);
        if (n_links > 1e9)
            return error_set(error, TY_ERR_LIMIT, "cluster", "has more than 1e9 links");
    }
    fabric.n_links = (uint32_t)n_links;
    fabric.capacity_bytes_per_s = fabric.allocator.alloc(
        fabric.allocator.user, fabric.n_links * sizeof *fabric.capacity_bytes_per_s);
    if (!fabric.capacity_bytes_per_s)
        return error_set(error, TY_ERR_NOMEM, "fabric", "out of memory");
    for (enum fabric_kind kind = 0; kind < N_FABRIC_KINDS; kind++)
        for (uint32_t i = 0; i < 2.0 * n_of_kind(&fabric, kind); i++)
            fabric.capacity_bytes_per_s[fabric.first[kind] + i] = capacity_of(&fabric, kind);
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < n_faults; i++)
        status = apply_fault(&fabric, &faults[i], error);
    if (status != TY_OK)
        fabric_destroy(&fabric);
    else
        *out = fabric;
    return status;
}

void fabric_destroy(struct fabric *fabric)
{
    if (fabric->capacity_bytes_per_s)
        fabric->allocator.release(fabric->allocator.user, fabric->capacity_bytes_per_s,
                                  fabric->n_links * sizeof *fabric->capacity_bytes_per_s);
    fabric->capacity_bytes_per_s = NULL;
}
