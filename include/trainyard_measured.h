/* SPDX-License-Identifier: MIT
 *
 * Measured kernel times of one device, as plain values: what a profile (ty_profile.measured) uses
 * before its fitted form. A kernel of a record's very shape takes the record's time. One within a
 * factor of two of records in every size takes the form times what the records say about it:
 *
 *   t = form exp( sum_i w_i ln(t_i / form_i) / (1 + sum_i w_i) ),   w_i = (1/d_i - 1)^2,  d_i < 1
 *
 * d_i: distance of the shapes in doublings; the 1 stands for the form. Times of plain memory
 * traffic lie on a curve over the bytes, straight in log-log. Source: DESIGN 4, handbook 4.1.
 */
#ifndef TRAINYARD_MEASURED_H
#define TRAINYARD_MEASURED_H

#include "trainyard.h"

enum ty_direction { TY_FORWARD, TY_DGRAD, TY_WGRAD }; /* attention backward: TY_DGRAD */

/* C[m,n] = A[m,k] B[k,n], `groups` of them in one launch. */
struct ty_measured_gemm {
    int precision; /* enum ty_precision */
    int direction; /* enum ty_direction */
    bool grouped;  /* of experts */
    double m, n, k, groups;
    double inner; /* grouped: inner size of one expert */
    double time_s;
};

/* batch_heads blocks of `queries`, each over `seq` keys; pairs: of query and key that count, in
 * all blocks. */
struct ty_measured_attention {
    int precision;
    int direction;
    double batch_heads, queries, seq, head_dim, pairs;
    double time_s;
};

/* Belongs to the caller. Counts may be 0. */
struct ty_measured {
    uint32_t n_gemms, n_attentions, n_memory;
    const struct ty_measured_gemm *gemms;
    const struct ty_measured_attention *attentions;
    const double *memory_bytes, *memory_time_s; /* [n_memory] rising bytes, times not falling */
};

#endif
