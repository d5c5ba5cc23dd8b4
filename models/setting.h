/* SPDX-License-Identifier: MIT
 *
 * A setting: model, cluster and profile with every default filled in. All modelling functions take
 * it, so none of them meets a NAN or guesses a default of its own.
 */
#ifndef MODELS_SETTING_H
#define MODELS_SETTING_H

#include "models/notes.h"

struct group_shape;
struct setting {
    struct ty_model model;
    struct ty_params params;
    struct ty_cluster cluster;
    struct ty_profile profile;
    /* [N_AXES]: shapes of the groups of a layer (tp, cp, ep, etp) as placed; NULL: ranks in order.
     * It must outlive the setting. */
    const struct group_shape *placed;
};

/* Checks the three inputs, copies them, fills defaults and names each in notes (may be NULL).
 * returns TY_OK, TY_ERR_RANGE (error names the field). */
ty_status setting_init(const struct ty_model *model, const struct ty_cluster *cluster,
                       const struct ty_profile *profile, struct setting *out, struct notes *notes,
                       struct ty_error *error);

/* cluster.c: fills a cluster's defaults. Same returns. */
ty_status cluster_resolve(const struct ty_cluster *in, struct ty_cluster *out, struct notes *notes,
                          struct ty_error *error);
/* profile.c: fills a profile's missing constants with the generic priors of handbook 4 and 5. */
ty_status profile_resolve(const struct ty_profile *in, const struct ty_cluster *cluster,
                          struct ty_profile *out, struct notes *notes, struct ty_error *error);
/* plan.c: fills a plan's defaults from model, cluster and the stack of the profile; derives dp,
 * edp, n_micro (0 when not a whole number: legality says why). */
void plan_resolve(const struct setting *setting, const struct ty_plan *in, struct ty_plan *out,
                  struct notes *notes);

/* Spec-sheet dense peak of a precision, flop/s; 0 when the GPU lacks it. */
double gpu_peak_flop_per_s(const struct ty_gpu *gpu, enum ty_precision precision);
/* Bytes of one element as stored by the GEMM of that precision (scales included). */
double precision_bytes(enum ty_precision precision);
/* Weights and gradients are fp32 themselves: there is no master copy. */
bool precision_is_32_bit(int precision);
/* Share of the boost clock the power limit leaves: <= 1, every compute rate is multiplied by it. */
double gpu_clock_ratio(const struct ty_cluster *cluster);
/* GPUs per scale-up domain a job of n_gpus really uses. */
uint32_t cluster_domain(const struct ty_cluster *cluster, uint32_t n_gpus);

#endif
