/* SPDX-License-Identifier: MIT
 *
 * A row of the table of published runs as inputs of the predictor: model from the printed shape,
 * cluster from the GPU and network cells, plan from the layout cells. What a source did not print
 * is filled by one rule for all rows (never for a single row), as ACCURACY 1.9 lists them.
 */
#ifndef CALIBRATE_RUN_H
#define CALIBRATE_RUN_H

#include "calibrate/csv.h"
#include "include/trainyard_tools.h"

struct run {
    struct ty_run_row row; /* names and measured values */
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
};

struct run_table {
    struct csv csv;
    const char *path;
};

/* Fills `out` from one row; a row that cannot be predicted gets row.refused. returns TY_OK or the
 * failure of a loader (built-in data missing). */
ty_status run_from_row(const struct run_table *table, uint64_t index, struct run *out,
                       struct ty_error *error);

#endif
