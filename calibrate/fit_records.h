/* SPDX-License-Identifier: MIT
 *
 * Inside of `calibrate fit`: records become rows, each a kernel, a collective or a host cost that
 * the simulator has a form for;
 *
 *   r = ln(form(constants) / measured)
 *
 * goes through the same robust MAP problem as the runs do (fit.h), with derivatives by
 * differences. Rows far from the form are left out and the rest is fitted again.
 */
#ifndef CALIBRATE_FIT_RECORDS_H
#define CALIBRATE_FIT_RECORDS_H

#include "calibrate/fit.h"
#include "calibrate/record_kinds.h"
#include "include/trainyard_records.h"

/* What a row is a time of; the first ones are enum ty_work. */
enum row_of {
    ROW_GEMM = TY_WORK_GEMM,
    ROW_ATTENTION = TY_WORK_ATTENTION,
    ROW_MEMORY = TY_WORK_MEMORY,
    ROW_COLLECTIVE = TY_WORK_COLLECTIVES,
    ROW_ISSUE,  /* host time of one launch */
    ROW_REPLAY, /* one empty kernel of a replayed graph */
    ROW_BESIDE  /* a GEMM's or a collective's time beside the other, over that alone */
};

struct fit_row {
    enum row_of of;
    struct ty_measured_gemm gemm;           /* ROW_GEMM */
    struct ty_measured_attention attention; /* ROW_ATTENTION */
    enum ty_collective_op op;               /* ROW_COLLECTIVE, of group */
    struct ty_group group;                  /* and of ROW_BESIDE */
    bool compute;                           /* ROW_BESIDE: the GEMM's side */
    double flop, bytes; /* executed; moved by plain memory traffic, or the payload */
    double time_s, x;   /* x: what it is drawn over */
    const struct record *record;
    bool outlier;
};

struct records_fit {
    struct ty_calibration *out;
    struct arena *arena;
    ty_forms *forms;    /* of the machine, with the constants under fit */
    bool network_known; /* the cluster was given: its NICs are not guessed */
    struct record_list *records;
    struct fit_row *rows; /* [n_rows] */
    uint32_t n_rows;
};

/* fit_machine.c: the cluster the records are of, resolved with its presets. */
ty_status fit_machine(struct records_fit *fit, const struct ty_cluster *cluster,
                      struct ty_error *error);
/* False for a record of another GPU than the machine's. */
bool fit_is_of(const struct records_fit *fit, const struct record *record);
/* A precision by the name a benchmark gives it; TY_AUTO_PRECISION: none. */
enum ty_precision fit_precision(const char *dtype);

/* fit_rows.c: every record becomes a row, a rate, or is dropped with its reason. */
ty_status fit_rows_of(struct records_fit *fit);
void fit_drop(struct records_fit *fit, const struct record *record, const char *why);

/* fit_constants.c: the constants and the outliers. */
ty_status fit_constants(struct records_fit *fit);

/* fit_tables.c: measured kernels and collectives of the rows that are no outliers. */
ty_status fit_tables(struct records_fit *fit);
/* Times that do not fall with the size: the nearest such in the least squares of their logarithms
 * (pool adjacent violators). */
void fit_monotone(double *time_s, uint32_t n);

/* fit_rates.c: copies, storage, decoding, loader. */
ty_status fit_rates(struct records_fit *fit);

#endif
