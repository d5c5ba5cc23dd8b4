/* SPDX-License-Identifier: MIT
 *
 * The physical fabric of a cluster, every link of it: what the full rung and the collectives that
 * run step by step send their bytes over.
 *
 *   GPU     one port into its scale-up domain; in a mesh also a link to each other GPU of it
 *   node    PCIe switches where they are told, NIC ports (a port serves `sharers` GPUs, or holds
 *           several NICs of one GPU)
 *   leaf    nodes_per_leaf nodes, or with rails the NICs of one rail of them; each plane its own
 *   pod     leaves_per_pod leaves under one set of spines; cores join the pods
 *
 * Every link has two directions: out of the GPU (0) and into it (1). Uplinks of one switch are one
 * link while flows are spread over them evenly; hashed or static routes tell them apart. GPU g of
 * the cluster is GPU g % gpus_per_node of node g / gpus_per_node.
 */
#ifndef MODELS_FABRIC_H
#define MODELS_FABRIC_H

#include "include/trainyard_fabric.h"
#include "models/grid.h"
#include "sim/fluid.h"

enum fabric_kind {
    FABRIC_PORT, /* scale-up port of a GPU */
    FABRIC_PAIR, /* mesh: link of two GPUs */
    FABRIC_PCIE, /* PCIe switch to its host */
    FABRIC_NIC,
    FABRIC_LEAF, /* uplink of a leaf */
    FABRIC_POD,  /* uplink of a pod's spines */
    N_FABRIC_KINDS
};

struct fabric {
    struct ty_allocator allocator;
    struct ty_cluster cluster; /* resolved */
    uint64_t seed;             /* of the hash of ecmp */
    uint32_t n_nodes, gpus, domain;
    uint32_t n_ports, sharers;               /* NIC ports of a node, GPUs of a port */
    uint32_t n_planes, n_leaves, n_pods;     /* planes that are told apart */
    uint32_t n_uplinks, n_pod_uplinks;       /* of a switch, as built */
    uint32_t n_paths, n_pod_paths;           /* of them that are told apart */
    uint32_t n_pcie;                         /* PCIe switches of a node */
    uint32_t first[N_FABRIC_KINDS], n_links; /* link = first[kind] + 2 * index + direction */
    double *capacity_bytes_per_s;            /* [n_links]; INFINITY: cannot bind; 0: failed */
};

/* cluster: resolved. n_nodes >= 1. The faults are applied. returns TY_OK, TY_ERR_NOMEM,
 * TY_ERR_RANGE (error names the fault). */
ty_status fabric_create(const struct ty_cluster *cluster, uint32_t n_nodes,
                        const struct ty_fault *faults, uint32_t n_faults, uint64_t seed,
                        const struct ty_allocator *allocator, struct fabric *out,
                        struct ty_error *error);
void fabric_destroy(struct fabric *fabric);

/* Bytes on each link per byte sent. */
#define FABRIC_MAX_USES 288
struct fabric_path {
    uint32_t n;
    bool cut; /* no working NIC on the way */
    struct fluid_use use[FABRIC_MAX_USES];
};

/* The lowest switch two GPUs have in common. */
enum ty_fabric_level fabric_level(const struct fabric *fabric, uint32_t a, uint32_t b);
/* Adds `bytes` on every link of a message. key: what a hash sees of the flow. */
void fabric_message(const struct fabric *fabric, uint32_t from, uint32_t to, uint64_t key,
                    double bytes, struct fabric_path *path);
/* Adds the network half of it: from GPU `from` up to the switch it has in common with `to`
 * (direction 0), or down from there to `to` (1). across: beyond the leaf. */
void fabric_network(const struct fabric *fabric, uint32_t from, uint32_t to, uint64_t key,
                    uint32_t direction, bool across, double bytes, struct fabric_path *path);
void fabric_add(const struct fabric *fabric, enum fabric_kind kind, uint32_t index,
                uint32_t direction, double bytes, struct fabric_path *path);
/* The working NIC port a GPU uses, node * n_ports + port; UINT32_MAX: none. */
uint32_t fabric_port(const struct fabric *fabric, uint32_t gpu);
/* The same when all work. */
uint32_t fabric_home_port(const struct fabric *fabric, uint32_t gpu);
uint32_t fabric_leaf(const struct fabric *fabric, uint32_t port);
/* Capacity of a link when all work, and of all uplinks of a leaf. */
double fabric_nominal_bytes_per_s(const struct fabric *fabric, uint32_t link);
double fabric_leaf_bytes_per_s(const struct fabric *fabric);

#endif
