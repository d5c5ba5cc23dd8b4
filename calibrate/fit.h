/* SPDX-License-Identifier: MIT
 *
 * Constants of the profiles from measured runs: a MAP fit through the simulator.
 *
 *   minimise  sum_rows w (L/s)^2 ln(1 + (r/L)^2)  +  lambda^2 sum_constants (z / sd)^2
 *   r = ln(predicted / measured),  z = ln(value / prior),  min <= value <= max
 *
 * r is linearised around a point (one simulation per row and constant that informs it), the
 * linear problem is solved, and the two are repeated until the constants stand still.
 */
#ifndef CALIBRATE_FIT_H
#define CALIBRATE_FIT_H

#include "calibrate/run.h"

/* Where a constant lives: the data file that holds it, and the rows that share it. */
enum fit_level {
    LEVEL_ALL,     /* profiles/common */
    LEVEL_ARCH,    /* profiles/preset-ARCH */
    LEVEL_FABRIC,  /* profiles/fabric-KIND */
    LEVEL_STACK,   /* stacks/STACK */
    LEVEL_RELEASE, /* stacks/STACK@RELEASE */
    LEVEL_SITE     /* sites/SITE */
};

struct fit_param {
    const struct ty_field *field; /* of the profile, a double */
    enum fit_level level;
    char name[48]; /* architecture, fabric, ... of the level; "" for all */
    double prior, sd_log, min, max;
    bool (*informs)(const struct ty_run *run); /* rows of the level that it can change; NULL: all */
};

struct fit_rows {
    uint32_t n;
    struct ty_run *run; /* [n] rows that can be predicted */
    double *weight;     /* [n] */
};

struct fit_params {
    uint32_t n;
    struct fit_param *param; /* [n] constants with at least one row */
};

/* r[i] = ln(predicted / measured) at z, dr[i * n_params + j] = d r[i] / d z[j]. */
struct fit_linear {
    uint32_t n_rows, n_params;
    double *z, *r, *dr;
    bool filled; /* dr has been computed: what was exactly 0 then is taken to be 0 ever after */
};

/* fit_params.c */
ty_status fit_params_of(const struct fit_rows *rows, struct fit_params *out);
bool fit_informs(const struct fit_param *param, const struct ty_run *run);
double fit_value(const struct fit_param *param, double z);
void fit_set(const struct fit_params *params, const double *z, const struct ty_run *run,
             struct ty_profile *profile);
/* "preset-hopper", "megatron-core", ...: the name of a level's data file, and its folder. */
const char *fit_folder(enum fit_level level);
void fit_file(const struct fit_param *param, char *out, size_t bytes);

/* fit_jacobian.c */
ty_status fit_rows_read(const char *csv_path, uint32_t n_threads, struct fit_rows *out,
                        struct ty_error *error);
void fit_rows_free(struct fit_rows *rows);
ty_status fit_linear_create(uint32_t n_rows, uint32_t n_params, struct fit_linear *out);
void fit_linear_free(struct fit_linear *linear);
/* Fills r (and dr unless only_r) at linear->z. */
ty_status fit_linearise(const struct fit_rows *rows, const struct fit_params *params,
                        uint32_t n_threads, bool only_r, struct fit_linear *linear);

struct fit_solution {
    double *z, *share;        /* [n_params]; share: as in fit_map */
    struct fit_linear linear; /* the last linear model, next to the solution */
};

/* fit.c: the fit. z: in the start, out the solution; linear: created, out the last linear model;
 * share: as in fit_map. */
ty_status fit_solve(const struct fit_rows *rows, const struct fit_params *params,
                    uint32_t n_threads, struct fit_linear *linear, double *z, double *share);
/* The same from the priors. Free with fit_solution_free. */
ty_status fit_run(const struct fit_rows *rows, const struct fit_params *params, uint32_t n_threads,
                  struct fit_solution *out);
void fit_solution_free(struct fit_solution *solution);

/* Which rows are left out together: five folds of whole sweeps, or one source after the other. */
enum fit_folds { FOLDS_GROUPED, FOLDS_SOURCES };
/* r: [n rows] ln(predicted / measured) of every row with the constants of a fit without its fold.
 */
ty_status fit_cross_validate(const struct fit_rows *rows, const struct fit_params *params,
                             const struct fit_solution *solution, enum fit_folds folds,
                             uint32_t n_threads, double *r);

/* fit_write.c: rewrites the data files under `folder` that hold fitted constants: their values,
 * the intervals (half widths from the residuals of both cross-validations), and the table
 * profiles/constants.csv of all constants with prior, bounds and what informs them, and the rows
 * that were fitted, runs/fitted.json. */
struct fit_report {
    const struct fit_rows *rows;
    const struct fit_params *params;
    const struct fit_solution *solution;
    const double *grouped_r, *sources_r; /* [n rows] */
};
ty_status fit_write(const struct fit_report *report, const char *folder, struct ty_error *error);

/* fit_map.c: the minimum of the linearised problem over the rows with weight > 0. z: in the start,
 * out the minimum. share (may be NULL): [n_params] how much of each constant the rows decide,
 * 1 - (posterior / prior variance). */
ty_status fit_map(const struct fit_linear *linear, const struct fit_params *params,
                  const double *weight, double *z, double *share);

#endif
