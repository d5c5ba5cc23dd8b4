/* SPDX-License-Identifier: MIT
 * What a plan's gradient compression makes of the data-parallel exchange. */
#ifndef MODELS_COMPRESSION_PLAN_H
#define MODELS_COMPRESSION_PLAN_H

#include "models/setting.h"

/* The gradients of `params` parameters on each of `ranks` ranks. */
struct compression_exchange {
    double payload_bytes; /* of the collective; gathers: of all ranks together */
    double codec_s;       /* to encode what is sent and decode what has come */
    bool gathers;         /* an all-gather in place of the reduction */
};
/* plan: resolved. grad_bytes: of an uncompressed element. */
void compression_exchange(const struct setting *setting, const struct ty_plan *plan, double params,
                          double grad_bytes, double ranks, struct compression_exchange *out);
/* Memory of error feedback, or of the cast copy of a bucket. */
double compression_held_bytes(const struct ty_plan *plan, double params);
/* PowerSGD elements sent over dense ones, of the model's matrices at the plan's rank and tp. */
double compression_powersgd_ratio(const struct ty_model *model, const struct ty_plan *plan);

#endif
