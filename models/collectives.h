/* SPDX-License-Identifier: MIT
 *
 * Collectives (handbook 5, ACCURACY 1.5): isolated time, and the same thing as a flow for the
 * engine: a latency phase, then `payload` bytes of work at a cap, with bytes per link class per
 * byte of payload. Alone, the flow takes exactly collective_time_s.
 */
#ifndef MODELS_COLLECTIVES_H
#define MODELS_COLLECTIVES_H

#include "models/grid.h"

enum collective_op {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_SEND
};

struct collective {
    enum collective_op op;
    double payload_bytes; /* AR input; AG output; RS input; A2A send buffer per rank; message */
    struct group_shape shape;
    double remote_copies; /* A2A: copies that really cross domains / naive (dedup); 0 = 1 */
    double local_copies;  /* A2A: copies inside the domain / naive; 0 = 1 */
    double codec_s;       /* to compress the payload and back, before its bytes move */
    double ring_steps;    /* SEND: the payload goes in so many equal steps of a ring; 0 = one
                             message on its own */
    bool own_part;        /* AG, RS: a rank's own part takes the time of one that arrives */
    double share;         /* part of the collective (of its time and its bytes) that is meant, when
                             it is split into an exposed and an overlapped part; 0 = all of it */
};

struct collective_flow {
    double latency_s, work_bytes, cap_bytes_per_s; /* work = payload * share */
    double bytes_per_work[N_LINKS];                /* per direction, on one rank's own link */
};

/* nccl-tests bus bandwidth factor: AR 2(n-1)/n; AG, RS, A2A (n-1)/n; send 1. */
double collective_busbw_factor(enum collective_op op, uint32_t n);
/* 0 for a group of one or an empty payload. */
double collective_time_s(const struct setting *setting, const struct collective *collective);
/* The time before it is shared out, and where it is from. */
enum ty_origin collective_origin(const struct setting *setting, const struct collective *collective,
                                 double *time_s);
void collective_as_flow(const struct setting *setting, const struct collective *collective,
                        struct collective_flow *out);
/* Copies of an all-to-all per naive copy when a token sends one copy to each of the `places`
 * (ranks or domains) its top_k random choices hit: places (1 - (1 - 1/places)^top_k) / top_k. */
double collective_distinct_ratio(double places, double top_k);
/* Two-level all-reduce bracket of handbook 5.4: perfect pipelining and strictly serial. */
void collective_two_level_s(double payload_bytes, uint32_t per_node, uint32_t nodes,
                            double nic_bytes_per_s, double intra_busbw_bytes_per_s, double *low_s,
                            double *high_s);

#endif
