/* SPDX-License-Identifier: MIT
 *
 * trainyard_cross.h: one plan under many settings. Fields of model, cluster, plan, profile and
 * prices take several values each, and every combination is predicted. Part of the core library;
 * conventions as in trainyard.h.
 */
#ifndef TRAINYARD_CROSS_H
#define TRAINYARD_CROSS_H

#include "trainyard_cost.h"
#include "trainyard_sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_MAX_AXES 8

/* A value of a field: bytes laid over the struct of its kind at the field's offset. */
struct ty_patch {
    const void *bytes;
};
/* A field and its values; the table of ty_fields(kind) has its offset and size. */
struct ty_cross_axis {
    enum ty_kind kind; /* not TY_KIND_GPU: a cluster holds its GPU */
    const struct ty_field *field;
    uint32_t n;
    const struct ty_patch *patch; /* [n] */
    uint64_t stride; /* of the numbers of points; 0: the product of the n of later axes */
};

struct ty_cross {
    const struct ty_model *model;
    const struct ty_cluster *cluster;
    const struct ty_profile *profile;
    const struct ty_plan *plan;   /* not resolved: what it leaves open follows the settings */
    const struct ty_price *price; /* NULL: none */
    struct ty_options options;    /* its rung: bound or simulate */
    uint32_t n_threads;
    bool allow_tight;
    const struct ty_share *share; /* of the points, as of the plans of a search; NULL: all */
    uint64_t first;               /* number of the first point, of a part of a larger crossing */
    uint32_t n_axes;
    struct ty_cross_axis axis[TY_MAX_AXES];
};

/* Points in order; the last axis varies fastest, and score->plan_id is the number of the point,
 * first + sum(place on axis x stride). Its step_time_s, and what follows from it, is NAN where the
 * plan is not feasible. At the bound rung it is the bound, and the breakdown is NAN. return false
 * to stop. Called on the caller's thread.
 */
typedef bool ty_cross_fn(void *user, const struct ty_score *score);

/* The product of the numbers of values; pure. */
TY_API uint64_t ty_cross_n_points(const struct ty_cross *cross);
/* Predicts every point on several threads, in batches; the same bits at any number of threads. No
 * allocation per point. returns TY_OK, TY_ERR_RANGE (a value that its input refuses), TY_ERR_NOMEM,
 * TY_ERR_UNSUPPORTED, TY_ERR_LIMIT, TY_ERR_CANCELLED. Cost of a bounded point: about 25 us. */
TY_API TY_MUST_CHECK ty_status ty_cross_run(const struct ty_cross *cross, ty_cross_fn *fn,
                                            void *user, struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
