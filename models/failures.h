/* SPDX-License-Identifier: MIT
 * Failures of a long job with every default filled in (trainyard_cost.h, ty_failures). */
#ifndef MODELS_FAILURES_H
#define MODELS_FAILURES_H

#include "include/trainyard_cost.h"
#include "include/trainyard_storage.h"

/* Of a job on so many nodes; INFINITY without failures. */
double failures_mtbf_s(const struct ty_failures *failures, double n_nodes);

/* With the saves of a plan instead of the failures' own: they are in the step time already, so the
 * useful ratio is that of such steps. The restart also reads the checkpoint. */
ty_status failures_goodput_of(const struct ty_failures *failures, double n_nodes,
                              const struct ty_save_report *save, struct ty_goodput *out,
                              struct ty_error *error);

/* Quantiles of a run of time_s in the median: the equation of struct ty_size_result. half_80: of
 * the step time, NAN: unknown. failures NULL: none. */
double failures_spread(const struct ty_failures *failures, const struct ty_goodput *goodput,
                       double time_s, double half_80);
void failures_quantiles(double time_s, double spread, double out[TY_N_QUANTILES]);

#endif
