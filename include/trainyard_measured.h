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

#include "trainyard_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- what a plan runs ----------------------------------------------------------------------- */

/* A kernel: of memory traffic the bytes, else its record without a time. */
struct ty_shape {
    int work; /* enum ty_work: gemm, attention or memory */
    struct ty_measured_gemm gemm;
    struct ty_measured_attention attention;
    double bytes;
};
/* Calls `shape` for each kernel of one micro-batch of a plan, forward and backward, each kind of
 * layer once, then the head: what to measure for this model. Defaults are filled in; the cluster
 * has no say in the shapes. Cost: about 10 us. returns TY_OK, TY_ERR_NOMEM, TY_ERR_RANGE. */
TY_API TY_MUST_CHECK ty_status ty_plan_shapes(const struct ty_model *model,
                                              const struct ty_cluster *cluster,
                                              const struct ty_profile *profile,
                                              const struct ty_plan *plan,
                                              void (*shape)(void *user, const struct ty_shape *),
                                              void *user, struct ty_error *error);

/* ---- the forms themselves -------------------------------------------------------------------
 * Times of single kernels and collectives as the simulator has them, undisturbed and without
 * measured tables: for planners, and for fits of the constants. All in seconds; none allocates. */

typedef struct ty_forms ty_forms;

/* Copies the inputs and fills their defaults. Cost: one allocation. returns TY_OK, TY_ERR_NOMEM,
 * TY_ERR_RANGE. */
TY_API TY_MUST_CHECK ty_status ty_forms_create(const struct ty_cluster *cluster,
                                               const struct ty_profile *profile, ty_forms **out,
                                               struct ty_error *error);
TY_API void ty_forms_destroy(ty_forms *forms); /* accepts NULL */
/* The inputs with every default filled in; constants of the profile may be changed in place. */
TY_API const struct ty_cluster *ty_forms_cluster(const ty_forms *forms);
TY_API struct ty_profile *ty_forms_profile(ty_forms *forms);

/* Sizes above 0; time_s is not read. Sources: ACCURACY 1.1, 1.2, 1.5. */
TY_API double ty_forms_gemm_s(const ty_forms *forms, const struct ty_measured_gemm *gemm);
TY_API double ty_forms_attention_s(const ty_forms *forms,
                                   const struct ty_measured_attention *attention);
TY_API double ty_forms_memory_s(const ty_forms *forms, double bytes);
/* Flop that the kernel executes: 2 m n k a group; attention 4 pairs head_dim, backward 2.5 times.
 */
TY_API double ty_measured_gemm_flop(const struct ty_measured_gemm *gemm);
TY_API double ty_measured_attention_flop(const struct ty_measured_attention *attention);
/* Dense peak of a precision, flop/s, of a GPU with its defaults filled; 0: it lacks it. */
TY_API double ty_gpu_peak(const struct ty_gpu *gpu, enum ty_precision precision);

/* Size, ranks per domain and domains of a group; ranks_per_domain 0: as the cluster hands out its
 * GPUs. returns false when there is no such group. */
TY_API bool ty_forms_group(const ty_forms *forms, uint32_t ranks, uint32_t ranks_per_domain,
                           struct ty_group *out);
/* group: of ty_forms_group. */
TY_API double ty_forms_collective_s(const ty_forms *forms, enum ty_collective_op op,
                                    const struct ty_group *group, double size_bytes);

#ifdef __cplusplus
}
#endif
#endif
