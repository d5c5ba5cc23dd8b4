/* SPDX-License-Identifier: MIT
 *
 * The fabric of a cluster, link by link, and the full rung: every rank of a step simulated, for
 * what one representative rank per stage cannot show - stragglers, mixed GPUs, odd placements,
 * failed links, hashed routes, several jobs. Part of the core library (libtrainyard); the
 * conventions of trainyard.h hold.
 *
 *   struct ty_speed slow = {.first_rank = 17, .n_ranks = 1, .ratio = 0.8};
 *   struct ty_scenario scenario = {.n_speeds = 1, .speeds = &slow};
 *   struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = &scenario};
 *   status = ty_predictor_run(predictor, &plan, &options, &prediction, &error);
 *   then prediction.fabric says what it found
 *
 * The shape of the fabric comes from struct ty_cluster (network.*, scaleup.*, pcie.*).
 */
#ifndef TRAINYARD_FABRIC_H
#define TRAINYARD_FABRIC_H

#include "trainyard_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- routes -------------------------------------------------------------------------------- */

/* How flows are spread over equal uplinks: perfectly, perfectly around failed links, by
 * destination (D-mod-k), by hash. */
enum ty_routing {
    TY_ROUTING_AUTO,
    TY_ROUTING_IDEAL,
    TY_ROUTING_ADAPTIVE,
    TY_ROUTING_STATIC,
    TY_ROUTING_ECMP
};

/* ---- a scenario: what is not as it should be ----------------------------------------------- */

/* A slow or failed link; both directions. Numbers start at 0. */
enum ty_fault_kind {
    TY_FAULT_NIC,       /* unit: node, part: NIC port */
    TY_FAULT_LINK,      /* unit: node, part: GPU; its port into the scale-up domain */
    TY_FAULT_UPLINK,    /* unit: leaf, part: uplink */
    TY_FAULT_POD_UPLINK /* unit: pod, part: uplink of its spines */
};
struct ty_fault {
    enum ty_fault_kind kind;
    uint32_t unit, part;
    double ratio; /* of the capacity that is left; 0: failed */
};
/* "nic", "link", "uplink", "pod_uplink". */
TY_API const char *ty_fault_name(enum ty_fault_kind kind);

/* Ranks that compute at `ratio` of the speed of the others, > 0. */
struct ty_speed {
    uint32_t first_rank, n_ranks;
    double ratio;
};

/* Nodes of the cluster with another GPU. Links are those of the cluster. */
struct ty_node_gpu {
    uint32_t first_node, n_nodes;
    const struct ty_gpu *gpu;
    const struct ty_profile *profile; /* NULL: that of the predictor */
};

/* Another job on the fabric. It runs steps from the same moment on. */
struct ty_other_job {
    const struct ty_model *model;
    const struct ty_profile *profile; /* NULL: that of the predictor */
    const struct ty_plan *plan;
    const uint32_t *nodes; /* [n_nodes] of the cluster, in the order of its ranks */
    uint32_t n_nodes;
};

/* Start from {0}: one job alone on a cluster in order. */
struct ty_scenario {
    const uint32_t
        *nodes; /* [n_nodes]: nodes of the cluster the job's nodes are; NULL: 0, 1, ... */
    uint32_t n_nodes;
    const uint32_t *places; /* [n_places = GPUs]: rank r sits where rank places[r] would; NULL: r */
    uint32_t n_places;
    const struct ty_fault *faults;
    uint32_t n_faults;
    const struct ty_speed *speeds;
    uint32_t n_speeds;
    double jitter_ratio; /* standard deviation of a pass's time on a rank over its mean, >= 0 */
    const struct ty_node_gpu *node_gpus;
    uint32_t n_node_gpus;
    const uint32_t *n_micro; /* [n_replicas = dp]: micro-batches of each replica; their sum is
                                dp * n_micro of the plan. NULL: equal */
    uint32_t n_replicas;
    bool balance; /* micro-batches in proportion to the speed of each replica's slowest rank */
    const struct ty_other_job *others;
    uint32_t n_others;
    uint32_t n_steps; /* steps of each job that are simulated, one after the other; 0 = 1 */
    bool detailed;    /* collectives between ranks go step by step */
    bool unfold;      /* every rank even where one per stage stands for all */
};

/* ---- what the full rung found -------------------------------------------------------------- */

/* The lowest switch that all ranks of a group have in common. */
enum ty_fabric_level {
    TY_LEVEL_NONE,   /* one rank */
    TY_LEVEL_DOMAIN, /* scale-up domain */
    TY_LEVEL_LEAF,
    TY_LEVEL_SPINE,
    TY_LEVEL_CORE, /* between pods */
    TY_N_LEVELS
};
/* "none", "domain", "leaf", "spine", "core". */
TY_API const char *ty_level_name(enum ty_fabric_level level);

/* Groups of one kind: how many cross which level, and the bytes they send in a step there, all
 * ranks together. A two-level collective sends some bytes inside its domains. */
struct ty_group_traffic {
    char name[8]; /* tp, cp, ep, etp, dp, edp, pp */
    uint32_t n_groups[TY_N_LEVELS];
    double bytes[TY_N_LEVELS];
};
#define TY_MAX_TRAFFIC 8

/* Found in struct ty_prediction, `fabric`; lives until the predictor's next call. */
struct ty_fabric_report {
    bool folded;               /* one rank per stage stood for all: exact */
    char why[160];             /* ... or why not */
    double folded_step_time_s; /* by one rank per stage: what an even, unbroken machine would do */
    uint32_t n_ranks, n_links;
    uint64_t n_tasks, n_events;
    double memory_bytes;   /* of the simulation */
    uint32_t slowest_rank; /* the rank that computes longest */
    uint32_t n_traffic;
    struct ty_group_traffic traffic[TY_MAX_TRAFFIC];
    uint32_t n_jobs;          /* 1 + n_others */
    const double *job_step_s; /* [n_jobs]: mean time of its steps */
    const uint32_t *n_micro;  /* [dp]: micro-batches of each replica of the first job */
    uint32_t n_replicas;
};
/* ---- sizes and collisions ------------------------------------------------------------------ */

/* End points and switches of a non-blocking fat tree of switches with `ports` ports: two levels
 * k^2/2 and 3k/2, three levels k^3/4 and 5k^2/4, times the number of planes.
 * Cost O(1). returns TY_OK, TY_ERR_RANGE. Source: handbook 6.2. */
TY_API TY_MUST_CHECK ty_status ty_fabric_tree(uint32_t levels, uint32_t ports, uint32_t planes,
                                              double *endpoints, double *switches);

/* Expected load of the fullest of `paths` equal uplinks over the mean load, or over one flow where
 * paths outnumber flows, when each of `flows` equal flows is hashed in `queue_pairs` parts: how
 * much slower a synchronised exchange becomes. Exact, by generating functions:
 *   P(max <= k) = n! / m^n [x^n] (sum_{i<=k} x^i / i!)^m
 * flows * queue_pairs <= 1024. NAN out of range. Source: handbook 6.5. */
TY_API double ty_ecmp_slowdown(uint32_t flows, uint32_t paths, uint32_t queue_pairs);

/* ---- one collective on the fabric ---------------------------------------------------------- */

enum ty_algorithm {
    TY_ALGORITHM_AUTO, /* NCCL's tuning model chooses; SHARP where the cluster has it */
    TY_ALGORITHM_RING,
    TY_ALGORITHM_TREE,         /* double binary tree of domains, chains inside */
    TY_ALGORITHM_NVLS,         /* the switch of the domain reduces and multicasts */
    TY_ALGORITHM_NVLS_TREE,    /* NVLS inside, trees between domains */
    TY_ALGORITHM_TWO_LEVEL,    /* reduce-scatter inside, rings between, all-gather inside */
    TY_ALGORITHM_PAT,          /* recursive doubling of all-gather and reduce-scatter */
    TY_ALGORITHM_SHARP,        /* the network's switches reduce */
    TY_ALGORITHM_DIRECT,       /* all-to-all: every pair its own message */
    TY_ALGORITHM_PXN,          /* all-to-all: over the scale-up links to the receiver's rail */
    TY_ALGORITHM_NODE_LIMITED, /* all-to-all: one copy to each node, spread inside */
    TY_N_ALGORITHMS
};
/* "auto", "ring", "tree", "nvls", "nvls_tree", "two_level", "pat", "sharp", "direct", "pxn",
 * "node_limited". */
TY_API const char *ty_algorithm_name(enum ty_algorithm algorithm);

struct ty_collective_run {
    const struct ty_cluster *cluster;
    enum ty_collective_op op;
    enum ty_algorithm algorithm;
    double size_bytes;    /* as in struct ty_collective_query */
    const uint32_t *gpus; /* [n]: places in the cluster; NULL: 0 .. n-1 */
    uint32_t n;
    uint32_t n_chunks; /* two_level: parts that follow each other through its phases; 0 = 1 */
    double hop_s[2];   /* latency of a step inside a domain and across; NAN: NCCL's */
    double copies;     /* node_limited: nodes a token goes to over its expert count; 0 = all */
    bool detailed;     /* step by step; else one weighted flow */
    const struct ty_fault *faults;
    uint32_t n_faults;
    uint64_t seed;
};
struct ty_collective_ran {
    double time_s, algbw_bytes_per_s, busbw_bytes_per_s;
    enum ty_algorithm algorithm;
    enum ty_fabric_level level;
    double bytes[TY_N_LEVELS]; /* sent at each level, all ranks together */
    uint64_t n_flows;
};
/* Runs a collective on an otherwise idle fabric. Both ways agree where nothing contends. Cost:
 * detailed O(flows), else O(n). returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM, TY_ERR_UNSUPPORTED (the
 * algorithm cannot do the operation there). */
TY_API TY_MUST_CHECK ty_status ty_collective_simulate(const struct ty_collective_run *run,
                                                      struct ty_collective_ran *out,
                                                      struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
