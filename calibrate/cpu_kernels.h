/* SPDX-License-Identifier: MIT
 *
 * The kernels of a transformer on one processor core, in fp32: what `calibrate measure` times and
 * what the closed loop of the tests trains with, so that the two run the same code, as a framework
 * and its benchmark share cuBLAS. Matrices are row-major and dense. A rank is a process with one
 * core; ranks meet in shared memory.
 */
#ifndef CALIBRATE_CPU_KERNELS_H
#define CALIBRATE_CPU_KERNELS_H

#include "include/trainyard_measured.h"

#include <stdatomic.h>

/* ---- matrix products (cpu_blas.c) ---------------------------------------------------------- */

/* The CBLAS of the machine, opened at run time: which one trains is a matter of the machine, and
 * one that is linked would stand in for GSL's and start threads in every command. */
struct cpu_blas {
    void *library;
    void (*sgemm)(void);
    char name[64];
};
/* name NULL: the first of those that are usual. One thread: it sets the variables that the
 * libraries read in the environment. returns TY_OK, TY_ERR_INPUT (no such library, no cblas_sgemm
 * in it). */
ty_status cpu_blas_open(const char *name, struct cpu_blas *out, struct ty_error *error);
void cpu_blas_close(struct cpu_blas *blas);

/* C = op(A) op(B), or C += it; lda, ldb, ldc: floats from row to row. C is m x n, summed over k. */
struct cpu_gemm {
    bool trans_a, trans_b, add;
    size_t m, n, k, lda, ldb, ldc;
    float scale;
};
void cpu_gemm(const struct cpu_blas *blas, const struct cpu_gemm *gemm, const float *a,
              const float *b, float *c);
/* The GEMM of a linear layer as a record counts it: C[m,n] = A[m,k] B[k,n]. Forward reads weights
 * [n,k]; dgrad weights [k,n]; wgrad adds A'[k,m], B[k,n] into gradients [n,m]. */
void cpu_linear(const struct cpu_blas *blas, int direction, const size_t mnk[3], const float *a,
                const float *b, float *c);

/* ---- attention: causal, flash in what it keeps, two products over the full square in what it
 * computes. qkv: [batch * seq, 3 heads head_dim]; out: [batch * seq, heads head_dim]. */

struct cpu_attention {
    size_t batch, heads, seq, head_dim;
};
/* scratch: seq * seq floats; backward 2 seq * seq */
void cpu_attention_forward(const struct cpu_blas *blas, const struct cpu_attention *shape,
                           const float *qkv, float *out, float *scratch);
void cpu_attention_backward(const struct cpu_blas *blas, const struct cpu_attention *shape,
                            const float *qkv, const float *d_out, float *d_qkv, float *scratch);

/* ---- memory-bound kernels ------------------------------------------------------------------- */

/* x, y: [rows, n]; gain: [n] */
void cpu_norm(size_t rows, size_t n, const float *x, const float *gain, float *y);
/* dx += gradient; d_gain += gradient */
void cpu_norm_backward(size_t rows, size_t n, const float *x, const float *gain, const float *dy,
                       float *dx, float *d_gain);
void cpu_gelu(size_t n, const float *x, float *y);
void cpu_gelu_backward(size_t n, const float *x, const float *dy, float *dx);
void cpu_add(size_t n, const float *a, const float *b, float *y); /* y = a + b */
/* logits [rows, vocab] become their gradients, scaled by 1 / rows. returns the mean loss. */
float cpu_loss(size_t rows, size_t vocab, const int32_t *target, float *logits);
/* Adam without weight decay; gradients are set to 0 for the next step. */
struct cpu_adam {
    float rate, scale; /* scale: of the gradients */
    uint32_t step;     /* from 1 */
};
void cpu_adam(const struct cpu_adam *adam, size_t n, float *p, float *g, float *m, float *v);
double cpu_sum_squares(size_t n, const float *x);
void cpu_permute(size_t tokens, size_t heads, size_t dim, const float *x, float *y);
void cpu_cast(size_t n, const float *x, uint16_t *y); /* to bf16 */
void cpu_triad(size_t n, const float *a, const float *b, float *y);
/* Small non-zero numbers of both signs, the same for the same seed. */
void cpu_random(uint64_t seed, size_t n, float *x);

/* ---- ranks (cpu_ranks.c) ----------------------------------------------------------------------
 */

#define CPU_MAX_RANKS 64

/* A meeting point of processes; lives in memory that they share, zeroed. */
struct cpu_meeting {
    _Atomic uint32_t arrived, round, stopped;
};
/* Waits for all n. returns false once somebody has stopped the meeting. */
bool cpu_meet(struct cpu_meeting *meeting, uint32_t n);
void cpu_stop(struct cpu_meeting *meeting);

/* Ranks 0..n-1 with their buffers, all in shared memory. */
struct cpu_group {
    struct cpu_meeting *meeting;
    uint32_t n;
    float *buffer[CPU_MAX_RANKS];
};
/* A collective over the first n_floats of every buffer, each rank by loads from the others:
 * reduce-scatter then all-gather, or one of them. `spare`: [n_floats] of the caller, for operations
 * that cannot work in place. All ranks call it. returns false once stopped. */
bool cpu_collective(const struct cpu_group *group, enum ty_collective_op op, uint32_t rank,
                    size_t n_floats, float *spare);

#endif
