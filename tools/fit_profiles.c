/* SPDX-License-Identifier: MIT
 *
 * Rewrites the fitted constants in the data files: make profiles.
 * usage: fit_profiles RUNS.csv DATA_FOLDER [THREADS] */
#include "calibrate/fit.h"

#include <stdio.h>
#include <stdlib.h>

static ty_status fit_and_write(const struct fit_rows *rows, const char *folder, uint32_t n_threads,
                               struct ty_error *error)
{
    struct fit_params params = {0};
    struct fit_solution solution = {0};
    double *r = calloc(2u * (size_t)rows->n, sizeof *r);
    struct fit_report report = {.rows = rows,
                                .params = &params,
                                .solution = &solution,
                                .grouped_r = r,
                                .sources_r = r + rows->n};
    ty_status status = r ? fit_params_of(rows, &params) : TY_ERR_NOMEM;
    if (status == TY_OK)
        status = fit_run(rows, &params, n_threads, &solution);
    if (status == TY_OK)
        status = fit_cross_validate(rows, &params, &solution, FOLDS_GROUPED, n_threads, r);
    if (status == TY_OK)
        status =
            fit_cross_validate(rows, &params, &solution, FOLDS_SOURCES, n_threads, r + rows->n);
    if (status == TY_OK)
        status = fit_write(&report, folder, error);
    fit_solution_free(&solution);
    free(params.param);
    free(r);
    return status;
}

int main(int argc, char **argv)
{
    struct ty_error error = {.text = "the fit failed"};
    struct fit_rows rows;
    if (argc < 3 || argc > 4) {
        fputs("usage: fit_profiles RUNS.csv DATA_FOLDER [THREADS]\n", stderr);
        return 2;
    }
    const uint32_t n_threads = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    ty_status status = fit_rows_read(argv[1], n_threads, &rows, &error);
    if (status == TY_OK) {
        status = fit_and_write(&rows, argv[2], n_threads, &error);
        fit_rows_free(&rows);
    }
    if (status != TY_OK) {
        fprintf(stderr, "fit_profiles: %s: %s\n", error.where, error.text);
        return 1;
    }
    return 0;
}
