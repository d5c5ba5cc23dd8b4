/* SPDX-License-Identifier: MIT
 * A validation in which no row is predicted with constants that were fitted on it. */
#include "calibrate/fit.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The rows of the fit are those of the table that have a time, in the same order. */
static void put_back(const struct fit_rows *rows, const double *r, struct ty_validation *validation)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < validation->n_rows; i++) {
        struct ty_run_row *row = &validation->rows[i];
        const double nan = (double)NAN;
        if (next == rows->n || strcmp(row->id, rows->run[next].row.id) != 0)
            continue;
        row->predicted_s = row->measured_s * exp(r[next++]);
        row->no_site_s = nan;
        row->interval_80_s[0] = row->interval_80_s[1] = nan;
        row->interval_90_s[0] = row->interval_90_s[1] = nan;
        row->in_fit = false;
    }
}

static ty_status cross(const struct fit_rows *rows, uint32_t n_threads,
                       struct ty_validation *const held_out[2])
{
    struct fit_params params = {0};
    struct fit_solution solution = {0};
    double *r = calloc(rows->n, sizeof *r);
    ty_status status = r ? fit_params_of(rows, &params) : TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_run(rows, &params, n_threads, &solution);
    for (int folds = FOLDS_GROUPED; status == TY_OK && folds <= FOLDS_SOURCES; folds++) {
        if (!held_out[folds])
            continue;
        status = fit_cross_validate(rows, &params, &solution, (enum fit_folds)folds, n_threads, r);
        if (status == TY_OK)
            put_back(rows, r, held_out[folds]);
    }
    fit_solution_free(&solution);
    free(params.param);
    free(r);
    return status;
}

ty_status ty_validate_held_out(const char *csv_path, uint32_t n_threads,
                               struct ty_validation *by_groups, struct ty_validation *by_sources,
                               struct ty_error *error)
{
    struct ty_validation *const held_out[] = {by_groups, by_sources};
    struct fit_rows rows;
    ty_status status = fit_rows_read(csv_path, n_threads, &rows, error);
    if (status != TY_OK)
        return status;
    if (rows.n < 2)
        status = error_set(error, TY_ERR_INPUT, csv_path, "has too few runs for a fit");
    if (status == TY_OK) {
        status = cross(&rows, n_threads, held_out);
        if (status != TY_OK)
            error_set(error, status, csv_path, "the fit failed: %s", ty_status_text(status));
    }
    fit_rows_free(&rows);
    return status;
}
