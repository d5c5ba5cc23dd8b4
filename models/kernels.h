/* SPDX-License-Identifier: MIT
 *
 * Time of one GPU kernel (handbook 4, ACCURACY 1.1-1.4), undisturbed. In order of trust: measured
 * record, interpolation between records (measured.h), the form with the profile's constants.
 */
#ifndef MODELS_KERNELS_H
#define MODELS_KERNELS_H

#include "models/setting.h"

enum kernel_op { KERNEL_GEMM, KERNEL_GROUPED_GEMM, KERNEL_ATTENTION, KERNEL_BYTES };

struct kernel {
    enum kernel_op op;
    enum ty_part part; /* gemm, attention, memory_bound: where its time is booked */
    const char *name;  /* "qkv", "fc1", ...: constant text */
    enum ty_precision precision;
    /* GEMM: C[m,n] = A[m,k] B[k,n], `groups` of them in one launch */
    double m, n, k, groups;
    double inner;    /* grouped GEMM: inner size of one expert on this rank */
    bool accumulate; /* wgrad: the result is added to main gradients */
    bool backward;   /* dgrad, wgrad or attention backward */
    /* attention: batch_heads (sequences * heads) blocks of `queries`, each over `seq` keys */
    double batch_heads, queries, seq, head_dim;
    /* counted work: what MFU divides by, what the kernel executes, what it moves */
    double flop_model, flop_hw, bytes;
    double sms_taken; /* by collectives that run beside it */
};

/* Fills a GEMM with its flop and ideal bytes (handbook 1.2, 1.5). */
void kernel_gemm(struct kernel *out, const char *name, enum ty_precision precision, double m,
                 double n, double k);
/* Makes a GEMM `groups` of its kind in one launch; op: KERNEL_GEMM (batched) or
 * KERNEL_GROUPED_GEMM (experts). */
void kernel_repeat(struct kernel *kernel, enum kernel_op op, double groups);
/* Makes a GEMM a wgrad that reads and writes main gradients of bytes_per_element (4 or 2). */
void kernel_accumulate(struct kernel *kernel, double bytes_per_element);
/* Fills an element-wise kernel. */
void kernel_bytes(struct kernel *out, const char *name, double bytes);

/* Share of what narrow experts lose, by the inner size of one expert on a rank: 1 for narrow ones,
 * 0 for wide ones. Source: ACCURACY-2 2.1. */
double kernel_expert_narrowness(double inner);

/* Seconds; 0 for a kernel without work. Of a form: >= the profile's kernel floor. */
double kernel_time_s(const struct setting *setting, const struct kernel *kernel);
/* The form alone, without what stack and site make of all kernels. */
double kernel_form_s(const struct setting *setting, const struct kernel *kernel);
enum ty_work kernel_work(const struct kernel *kernel);
/* Where its time is from. */
enum ty_origin kernel_origin(const struct setting *setting, const struct kernel *kernel);

/* Undisturbed time by kind of work and where it is from. */
struct origins {
    double time_s[TY_N_WORKS][TY_N_ORIGINS];
};
void origins_add(struct origins *sum, const struct origins *more, double times);

/* Query-key pairs of one sequence under a causal mask (handbook 1.3): s^2/2, or the band of a
 * sliding window of `window` tokens (0 = none), or disjoint chunks of that size. */
double kernel_attention_pairs(double seq, double window, bool chunked);

/* Tile and wave quantisation (4.2): share of the machine's tiles that do useful work for an
 * m x n output in tiles of tile_m x tile_n on `sms`. */
double kernel_tile_ratio(double m, double n, double tile_m, double tile_n, uint32_t sms);

/* Sustained flop/s of large GEMMs: peak * profile ratio * clock and power derating. */
double kernel_sustained_flop_per_s(const struct setting *setting, enum ty_precision precision);
double kernel_mem_bytes_per_s(const struct setting *setting);

#endif
