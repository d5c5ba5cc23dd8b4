/* SPDX-License-Identifier: MIT
 * Money and energy with every default filled in (trainyard_cost.h has the equations). */
#ifndef MODELS_COST_H
#define MODELS_COST_H

#include "include/trainyard_cost.h"

struct cost_model {
    struct ty_price price;
    const struct ty_price *asked;     /* as given */
    const struct ty_cluster *cluster; /* resolved; the caller's */
    double gpu_hour;                  /* money, without electricity; NAN: unknown */
    double busy_w, wait_w, idle_w;    /* of one GPU */
};

/* returns TY_OK, TY_ERR_RANGE. price NULL: energy alone. */
ty_status cost_model_init(const struct ty_cluster *cluster, const struct ty_price *price,
                          struct cost_model *out, struct ty_error *error);
uint32_t cost_paid_gpus(const struct cost_model *model, uint32_t n_gpus);
void cost_of(const struct cost_model *model, const struct ty_plan *plan, double step_time_s,
             double busy_s, struct ty_outlay *out);
/* Everything unknown. */
void cost_unknown(struct ty_outlay *out);

#endif
