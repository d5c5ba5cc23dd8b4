/* SPDX-License-Identifier: MIT
 *
 * A row of the table of published runs as inputs of the predictor: model from the printed shape,
 * cluster from the GPU and network cells, plan from the layout cells. What a source did not print
 * is filled by the rules of data/rules/match.json, for all rows alike. A printed plan that breaks
 * a rule of the predictor is mended in one general way (calibrate/mend.c) and says so.
 */
#ifndef CALIBRATE_RUN_H
#define CALIBRATE_RUN_H

#include "calibrate/match.h"
#include "include/trainyard_tools.h"

struct run_table {
    struct csv csv;
    const char *path;
    struct match match;
    const char *profile; /* over the preset of a run; NULL: none */
};

/* Reads a table and the rules. Free with run_table_close. */
ty_status run_table_open(const char *path, struct run_table *out, struct ty_error *error);
void run_table_close(struct run_table *table);

/* Fills `out` from one row; a row that cannot be predicted gets row.refused. returns TY_OK or the
 * failure of a loader (built-in data missing). */
ty_status run_from_row(const struct run_table *table, uint64_t index, struct ty_run *out,
                       struct ty_error *error);

/* Changes what the predictor would refuse although the run took place; each change is a line of
 * row.assumed. */
void run_mend(struct ty_run *run);
/* Full recompute of a part of the layers for a run that does not fit without. */
void run_recompute_where_needed(struct ty_run *run);
/* Adds one assumption: a column that was filled, a value that was mended. */
__attribute__((format(printf, 2, 3))) void run_assume(struct ty_run_row *row, const char *format,
                                                      ...);

#endif
