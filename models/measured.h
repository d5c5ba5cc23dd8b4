/* SPDX-License-Identifier: MIT
 * Kernel times from the measured tables of a profile. */
#ifndef MODELS_MEASURED_H
#define MODELS_MEASURED_H

#include "include/trainyard_measured.h"
#include "models/kernels.h"

/* Replaces the time of the form by what the tables say and tells where it is from: measured,
 * interpolated, or fitted and preset where no record is near. */
enum ty_origin measured_kernel_s(const struct setting *setting, const struct kernel *kernel,
                                 double *time_s);
/* Fitted or preset: where the constants for that work are from. */
enum ty_origin constants_origin(const struct ty_profile *profile, enum ty_work work);

/* The kernel that a record is of. */
void measured_gemm_kernel(const struct ty_measured_gemm *record, struct kernel *out);
void measured_attention_kernel(const struct ty_measured_attention *record, struct kernel *out);

#endif
