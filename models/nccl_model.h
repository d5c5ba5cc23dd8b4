/* SPDX-License-Identifier: MIT
 *
 * NCCL's own cost model, by which it chooses algorithm and protocol (handbook 5.2, restated from
 * NCCL 2.30.7, src/graph/tuning.cc):
 *
 *   t = latency + bytes / algbw
 *
 * It ranks algorithms well. Its absolute times for small messages are too short (no launch, no
 * rendezvous), so it names the algorithm and scales measured tables; it does not replace them.
 * A "node" here is a scale-up domain. CollNet is left out: it needs switches that reduce.
 */
#ifndef MODELS_NCCL_MODEL_H
#define MODELS_NCCL_MODEL_H

#include "include/trainyard_comm.h"
#include "models/collectives.h"

enum nccl_algorithm {
    NCCL_TREE,
    NCCL_RING,
    NCCL_NVLS,
    NCCL_NVLS_TREE,
    NCCL_PAT,
    N_NCCL_ALGORITHMS
};
enum nccl_protocol { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, N_NCCL_PROTOCOLS };
enum nccl_generation { NCCL_VOLTA, NCCL_AMPERE, NCCL_HOPPER, NCCL_BLACKWELL };

/* Channels of a pattern and the speed its search found for each. */
struct nccl_channels {
    uint32_t n;
    double intra_bytes_per_s, inter_bytes_per_s;
};

struct nccl_graph {
    enum nccl_generation generation;
    uint32_t n_ranks, n_nodes;
    bool pcie;                      /* no NVLink inside the node: no LL128 */
    bool no_ll;                     /* a network that keeps no 8-byte writes whole: no LL */
    bool amd_cpu;                   /* across nodes: latency and LL bandwidth go by the CPU */
    double net_latency_s;           /* of the network plugin */
    struct nccl_channels ring_tree; /* of rings and trees */
    double tree_intra_bytes_per_s;  /* of a tree's channels in one of two nodes; 0: the same */
    struct nccl_channels nvls;      /* n = 0: no multicast switch */
    /* What the links carry each way, without the steps of the search: of a GPU, and of a node. */
    double gpu_bytes_per_s, net_bytes_per_s;
};

struct nccl_cost {
    double latency_s, algbw_bytes_per_s;
};

struct nccl_choice {
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    double time_s, latency_s; /* latency: the part of the time that no byte takes */
};

/* The graph of ranks_per_domain GPUs in each of n_domains domains of a resolved cluster. */
void nccl_graph_init(const struct ty_cluster *cluster, const struct group_shape *shape,
                     struct nccl_graph *out);
/* Before the corrections by size. op: all-reduce, all-gather or reduce-scatter. returns false when
 * NCCL would not offer the pair. */
bool nccl_cost(const struct nccl_graph *graph, enum collective_op op, enum nccl_algorithm algorithm,
               enum nccl_protocol protocol, struct nccl_cost *out);
/* The pair of least time for a payload (all-gather: the output; reduce-scatter: the input). */
void nccl_choose(const struct nccl_graph *graph, enum collective_op op, double payload_bytes,
                 struct nccl_choice *out);
/* Payload that the links let an algorithm move in a second with Simple, however its channels were
 * searched: what long messages approach. */
double nccl_wire_bytes_per_s(const struct nccl_graph *graph, enum collective_op op,
                             enum nccl_algorithm algorithm);
/* "Ring", "NVLS"; "LL128". */
const char *nccl_algorithm_name(enum nccl_algorithm algorithm);
const char *nccl_protocol_name(enum nccl_protocol protocol);

#endif
