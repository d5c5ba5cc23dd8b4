/* SPDX-License-Identifier: MIT
 *
 * Where samples and checkpoints lie: DRAM, node NVMe, parallel file system, object store
 * (handbook 7.2). A stack of tiers is ordered fastest first; the last one holds everything.
 *
 * n nodes, each with k requests of b bytes in flight; level i serves the share h_i of them:
 *
 *   t = max_i h_i max(b / B_i, 1 / I_i) + sum_i h_i a_i / k     seconds per request of one node
 *   B = min(B_node, B_total / n)   I = min(I_node, I_total / n)   a: latency
 */
#ifndef MODELS_TIERS_H
#define MODELS_TIERS_H

#include "include/trainyard_storage.h"
#include "models/cache.h"

enum { TIER_MAX_LEVELS = 8 };

/* Rates and IOPS: INFINITY = no limit of that kind; all > 0, latency >= 0. */
struct tier {
    const char *name;
    double read_bytes_per_s, total_read_bytes_per_s;   /* of one node; of all nodes together */
    double write_bytes_per_s, total_write_bytes_per_s; /* likewise */
    double ops_per_s, total_ops_per_s;                 /* likewise, requests */
    double latency_s;
    double capacity_bytes;             /* a shared tier: of the whole; else of one node */
    bool shared;                       /* one for all nodes */
    const struct cache_policy *policy; /* as a cache; NULL: that of the data (below) */
};

#define TIER_LIMIT_LIST(X)                                                                         \
    X(NODE_BANDWIDTH, "bandwidth of a node")                                                       \
    X(TOTAL_BANDWIDTH, "bandwidth of the whole tier")                                              \
    X(NODE_OPS, "requests per second of a node")                                                   \
    X(TOTAL_OPS, "requests per second of the whole tier")                                          \
    X(LATENCY, "latency: too few requests in flight")

enum tier_limit {
#define X(id, text) TIER_##id,
    TIER_LIMIT_LIST(X)
#undef X
        TIER_N_LIMITS
};
const char *tier_limit_text(enum tier_limit limit);

struct tier_use {
    double nodes;         /* >= 1, all reading or writing at once */
    double request_bytes; /* > 0 */
    double in_flight;     /* requests of one node, > 0; INFINITY hides the latency */
    bool write;
};

struct tier_rate {
    double bytes_per_s;    /* of one node */
    enum tier_limit limit; /* what sets it, */
    uint32_t level;        /* and where */
};

/* returns TY_OK or TY_ERR_RANGE, with the field in error. */
ty_status tier_check(const struct tier *tier, struct ty_error *error);

/* One tier, and a stack of n <= TIER_MAX_LEVELS levels that serve the shares h [n], sum 1. */
struct tier_rate tier_rate(const struct tier *tier, const struct tier_use *use);
struct tier_rate tier_stack_rate(const struct tier *levels, const double *shares, uint32_t n,
                                 const struct tier_use *use);

double tier_stack_latency_s(const struct tier *levels, const double *shares, uint32_t n);

/* Requests one node must keep in flight to read or write at a rate; INFINITY when bandwidth or
 * requests per second do not allow it. The use's in_flight is not read. */
double tier_stack_in_flight(const struct tier *levels, const double *shares, uint32_t n,
                            const struct tier_use *use, double node_bytes_per_s);

/* Shares of the reads that each level serves when a data set is read in shuffled epochs. The levels
 * but the last are caches of disjoint items with one policy; c = cached bytes / data set:
 *   share_i = hit(c_1 + .. + c_i) - hit(c_1 + .. + c_{i-1})
 * cooperative: a node reads what any node's cache holds (or keeps its own part of the data set);
 * otherwise each node caches for itself and c counts one node's capacity. */
struct tier_data {
    const struct cache_policy *policy;
    double bytes, nodes;
    bool cooperative;
};
ty_status tier_shares(const struct tier *levels, uint32_t n, const struct tier_data *data,
                      const struct ty_allocator *allocator, double *shares);

/* Hot and cold data: classes in order of falling reads per byte fill the levels in order, the best
 * placement there is when levels differ in speed only. placed [n_classes][n_levels] bytes; shares
 * [n_levels] of the reads. returns TY_OK; TY_ERR_INPUT when the order is not kept; TY_ERR_RANGE;
 * TY_ERR_INFEASIBLE when the levels do not hold it all. */
struct tier_placement {
    const struct tier *levels;
    uint32_t n_levels, n_classes;
    const struct ty_data_class *classes; /* [n_classes] */
    double nodes;                        /* a level that is not shared holds this many capacities */
};
ty_status tier_place(const struct tier_placement *placement, double *placed, double *shares);
/* Bytes that arrive on each level when one placement becomes another; arriving [n_levels]. */
void tier_arriving(const double *before, const double *after, uint32_t n_classes, uint32_t n_levels,
                   double *arriving);

/* Time to move bytes from one tier to another with a bandwidth of its own for the migration
 * (of one node; INFINITY: as fast as the tiers). use->write is not read. */
double tier_move_s(const struct tier *from, const struct tier *to, const struct tier_use *use,
                   double bytes, double move_bytes_per_s);

/* Max-min fair shares of a capacity among n jobs: nobody gets more than he asks, and nobody could
 * get more without taking it from one who has no more than he. got [n]. Cost: n^2. */
void tier_divide(double capacity, const double *demand, uint32_t n, double *got);

#endif
