/* SPDX-License-Identifier: MIT
 * Between the parts of the merge: choice of the GPU (calibrate/detect_choose.c), machines to
 * findings (detect_machines.c), findings to fields (detect_merge.c), the file (detect_write.c). */
#ifndef CALIBRATE_DETECT_MERGE_H
#define CALIBRATE_DETECT_MERGE_H

#include "calibrate/detect.h"

struct merge {
    struct detect *d;
    struct ty_detection *out;
    gpu_set chosen;
    const char *built_in; /* name of the GPU; NULL: from a file, or unknown */
    bool changed_gpu;     /* a field of the GPU was read and differs from the built-in one */
};

/* Fills chosen, built_in and the cluster's GPU; remarks on the other kinds. gpu: built-in name or
 * file, NULL: as found. returns what ty_gpu_load does. */
ty_status detect_choose_gpu(struct merge *merge, const char *gpu, struct ty_error *error);

/* Adds findings for the machines with a GPU of `chosen`, and remarks on those left out. Machines
 * of a block are the finding "block", which is no field. */
void detect_reduce_machines(struct detect *detect, gpu_set chosen);

/* Fills out->json from out->cluster and the remarks. gpu_name: written in place of the GPU's
 * fields; NULL: its fields. returns TY_OK or TY_ERR_NOMEM. */
ty_status detect_write(struct ty_detection *out, const char *gpu_name, struct ty_error *error);
/* A value of a field as text with its unit. */
void detect_value_text(const struct ty_field *field, double value, char *out, size_t bytes);

#endif
