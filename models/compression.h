/* SPDX-License-Identifier: MIT
 *
 * Compression of what is communicated: bytes, passes, and when it pays (handbook 8). What it does
 * to convergence is outside: tokens to a target may differ.
 */
#ifndef MODELS_COMPRESSION_H
#define MODELS_COMPRESSION_H

#include "include/trainyard.h"

/* A transfer of V bytes at B bytes/s, of which a share is exposed (not hidden by compute), and its
 * compressed form of V / rho bytes. */
struct compression {
    double bytes, bytes_per_s;
    double ratio; /* rho >= 1 */
    double encode_s, decode_s;
    double latency_s;     /* more rounds than the plain collective */
    double exposed_ratio; /* 0 to 1 */
};
/* Time won per transfer, negative when it does not pay:
 *   x V/B - (t_enc + t_dec + latency + x V / (rho B)),   x: exposed */
double compression_gain_s(const struct compression *compression);

/* Time to cast n elements on both sides of a transfer: each reads one form and writes the other,
 * n 2 (from + to) / memory rate. */
double compression_cast_s(double elements, double from_bytes, double to_bytes,
                          double memory_bytes_per_s);

/* PowerSGD (1905.13727) of matrices a x b at rank r: P is a x r, Q is b x r; two all-reduces. */
struct compression_matrix {
    double rows, columns;
};
struct compression_powersgd {
    double dense_elements, sent_elements; /* a b; r (a + b) */
    double flop;                          /* of three GEMMs, 3 * 2 a b r; orthogonalising a r^2 is
                                             left out: r / (6 b) of it */
    double error_bytes;                   /* error feedback, 4 a b */
};
void compression_powersgd(const struct compression_matrix *matrices, uint32_t n, double rank,
                          struct compression_powersgd *out);

/* Top-k sparse gradients: all-gather of (index, value), 4 + 4 bytes; each rank receives
 * (n-1) k 8 bytes, the dense all-reduce 2 (n-1)/n elements * bytes. */
double compression_topk_bytes(double kept_elements, double ranks);
double compression_dense_bytes(double elements, double element_bytes, double ranks);

/* ZeRO++ (2306.10209), volume per parameter in units of 16-bit elements: forward all-gather 1,
 * backward all-gather 1, reduce-scatter 1. */
struct compression_zeropp {
    bool weights_int8;    /* qwZ: forward all-gather in 8 bits, and the backward one */
    bool weights_on_node; /* hpZ: backward all-gather stays on the node; costs memory */
    bool gradients_int4;  /* qgZ: two all-to-all hops in 4 bits */
};
double compression_zeropp_volume(const struct compression_zeropp *zeropp);
/* Memory of the copy on each node, bytes per GPU: 2 N / GPUs of a node. */
double compression_zeropp_copy_bytes(double params, double gpus_per_node);

#endif
