/* SPDX-License-Identifier: MIT
 * Between the two halves of the merge (calibrate/detect_machines.c and detect_merge.c). */
#ifndef CALIBRATE_DETECT_MERGE_H
#define CALIBRATE_DETECT_MERGE_H

#include "calibrate/detect.h"

/* Adds findings for the machines with a GPU of `chosen`, and remarks on those left out. Machines
 * of a block are the finding "block", which is no field. */
void detect_reduce_machines(struct detect *detect, gpu_set chosen);

/* Fills out->json from out->cluster and the remarks. gpu_name: written in place of the GPU's
 * fields; NULL: its fields. returns TY_OK or TY_ERR_NOMEM. */
ty_status detect_write(struct ty_detection *out, const char *gpu_name, struct ty_error *error);
/* A value of a field as text with its unit. */
void detect_value_text(const struct ty_field *field, double value, char *out, size_t bytes);

#endif
