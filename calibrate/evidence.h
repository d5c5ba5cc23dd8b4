/* SPDX-License-Identifier: MIT
 * Which kinds of runs the constants were fitted on: (vendor, fabric, scale, task), counted. */
#ifndef CALIBRATE_EVIDENCE_H
#define CALIBRATE_EVIDENCE_H

#include "include/trainyard_calibrate.h"
#include "models/spec/json.h"

enum evidence_axis { EVIDENCE_VENDOR, EVIDENCE_FABRIC, EVIDENCE_SCALE, EVIDENCE_TASK, N_EVIDENCE };
extern const char *const evidence_names[N_EVIDENCE]; /* keys of the table */

struct evidence_cell {
    const char *is[N_EVIDENCE];
};
/* Where a run lies; needs n_gpus and packed of its plan. */
struct evidence_cell evidence_cell(const struct ty_model *model, const struct ty_cluster *cluster,
                                   const struct ty_plan *plan);
/* Networks whose collectives share a constant: "infiniband", "ethernet", "omnipath". */
const char *evidence_fabric(const struct ty_cluster *cluster);
/* Class of a number of GPUs: "9-64"; "" for 0. */
const char *evidence_scale(double n_gpus);

/* table: runs/fitted.json. */
void evidence_find(const struct json_document *table, const struct evidence_cell *cell,
                   struct ty_evidence *out);

#endif
