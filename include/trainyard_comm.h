/* SPDX-License-Identifier: MIT
 *
 * One collective: how long an all-reduce of so many bytes over so many GPUs takes, from measured
 * tables of this and of similar machines, and whether a measured one is normal; docs/comm.md says
 * how. Part of the core library (libtrainyard); the conventions of trainyard.h hold.
 */
#ifndef TRAINYARD_COMM_H
#define TRAINYARD_COMM_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ty_collective_op {
    TY_ALL_REDUCE,
    TY_ALL_GATHER,     /* size: the output */
    TY_REDUCE_SCATTER, /* size: the input */
    TY_ALL_TO_ALL,     /* size: what one rank sends */
    TY_SEND_RECV,
    TY_N_COLLECTIVES
};
/* "all_reduce"; "" for no operation. */
TY_API const char *ty_collective_name(enum ty_collective_op op);

/* Measured times of one operation on one group. */
struct ty_collective_table {
    enum ty_collective_op op;
    uint32_t ranks, ranks_per_domain; /* ranks_per_domain 0: as the cluster hands out its GPUs */
    const struct ty_cluster *cluster; /* where it was measured */
    const char *source;
    bool calculated; /* the times were calculated from printed bandwidths, or by another tool than
                        nccl-tests: small sizes hold more overhead */
    uint32_t n;
    const double *size_bytes, *time_s; /* [n], rising sizes */
};
struct ty_collective_tables { /* belongs to the caller */
    uint32_t n;
    const struct ty_collective_table *table;
};

struct ty_collective_query {
    const struct ty_cluster *cluster;
    enum ty_collective_op op;
    uint32_t ranks, ranks_per_domain; /* as in a table */
    double size_bytes;
    const char *source; /* what the answer is compared with: its source and how its times were */
    bool calculated;    /* made, as in a table; NULL and false: nccl-tests on the user's machine */
};

/* Where a time comes from, best first. */
enum ty_collective_origin {
    TY_FROM_TABLE,         /* a measured point of this cluster and group */
    TY_FROM_INTERPOLATION, /* between two of them */
    TY_FROM_LINES,         /* beyond them: least of the lines a + S/B through them */
    TY_FROM_NEIGHBOUR,     /* scaled from tables of other groups and clusters: extrapolated */
    TY_FROM_MODEL          /* the same, but NCCL's cost model is nearer than any: extrapolated */
};
struct ty_collective_time {
    double time_s, algbw_bytes_per_s, busbw_bytes_per_s;
    double low_s, high_s; /* 80 % of measured times are within; a table of the very group: those of
                             its own machine */
    enum ty_collective_origin origin;
    const struct ty_collective_table *table; /* it comes from, or the nearest; NULL: model */
    const char *algorithm, *protocol;        /* NCCL's choice; "p2p", "" where it has none */
    const char *limit; /* "latency", "nvlink", "xgmi", "pcie", "nic", "spine" */
};
/* tables may be NULL. Cost O(tables). returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. Source: NCCL's
 * tuning model, handbook 5.1-5.3; the rest docs/comm.md. */
TY_API TY_MUST_CHECK ty_status ty_collective_predict(const struct ty_collective_query *query,
                                                     const struct ty_collective_tables *tables,
                                                     struct ty_collective_time *out,
                                                     struct ty_error *error);

enum ty_comm_verdict { TY_COMM_UNMEASURED, TY_COMM_NORMAL, TY_COMM_LOW, TY_COMM_HIGH };
struct ty_comm_point {
    double size_bytes;
    struct ty_collective_time predicted;
    double measured_s, measured_busbw_bytes_per_s; /* NAN: not measured */
    double off; /* measured over predicted bus bandwidth, minus 1 */
    enum ty_comm_verdict verdict;
};
/* Times of one operation over sizes, with measured ones beside them or not. The tables and the
 * cluster of the query must outlive it. */
struct ty_comm {
    struct ty_collective_query query;
    uint32_t n, n_low, n_high;
    struct ty_comm_point *points; /* by size */
    char cause[400];              /* the likely one when n_low > 0, by the rules of docs/comm.md */
};
/* size_bytes [n] instead of that of the query. Cost: n times that of ty_collective_predict. Free
 * with ty_comm_free, which accepts a zeroed one. returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_comm_predict(const struct ty_collective_query *query,
                                               const double *size_bytes, uint32_t n,
                                               const struct ty_collective_tables *tables,
                                               struct ty_comm *out, struct ty_error *error);
/* Sets verdict, off and bandwidth of the points whose measured_s is a number, and the summary.
 * Cost O(n). returns TY_OK, TY_ERR_RANGE. Source: limits of docs/comm.md. */
TY_API TY_MUST_CHECK ty_status ty_comm_judge(struct ty_comm *comm, struct ty_error *error);
TY_API void ty_comm_free(struct ty_comm *comm);
/* "table", "interpolated", "lines", "neighbour", "model". */
TY_API const char *ty_collective_origin_name(enum ty_collective_origin origin);
/* "", "normal", "low", "high". */
TY_API const char *ty_comm_verdict_name(enum ty_comm_verdict verdict);

#ifdef __cplusplus
}
#endif
#endif
