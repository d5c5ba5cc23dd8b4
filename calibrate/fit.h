/* SPDX-License-Identifier: MIT
 *
 * Constants of the profiles from measured runs: a MAP fit through the simulator.
 *
 *   minimise  sum_rows w (L/s)^2 ln(1 + (r/L)^2)  +  lambda^2 sum_constants (z / sd)^2
 *   r = ln(predicted / measured),  z = ln(value / prior),  min <= value <= max
 *
 * r is linearised around a point (one simulation per row and constant that informs it), the
 * linear problem is solved, and the two are repeated; in the last rounds, when the constants hardly
 * move, with the slopes of the round before (a chord method), until they stand still.
 */
#ifndef CALIBRATE_FIT_H
#define CALIBRATE_FIT_H

#include "calibrate/run.h"
#include "include/trainyard_calibrate.h"
#include "include/trainyard_ratio.h"

/* L, s and lambda; source: ACCURACY-2 2.11. */
#define FIT_LOSS         0.1
#define FIT_UNIT         0.12
#define FIT_PRIOR_WEIGHT 0.5

/* Where a constant lives: the data file that holds it, and the rows that share it. */
enum fit_level {
    LEVEL_ALL,     /* profiles/common */
    LEVEL_ARCH,    /* profiles/preset-ARCH */
    LEVEL_DEVICE,  /* profiles/preset-GPU */
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
/* Fills r alone, of the wanted rows ([n_rows]; NULL: all). */
ty_status fit_residuals(const struct fit_rows *rows, const struct fit_params *params,
                        uint32_t n_threads, const bool *wanted, struct fit_linear *linear);

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

/* Which rows are left out together: five folds of whole sweeps, one source after the other, or all
 * rows of weak-scaling series with eight times the GPUs of the smallest and more. */
enum fit_folds { FOLDS_GROUPED, FOLDS_SOURCES, FOLDS_SERIES };
enum { N_FOLDS = 5 }; /* of FOLDS_GROUPED */
/* fold: [n rows] out; groups in order of appearance, five folds take them in turn, so that each has
 * some of every source. UINT32_MAX: never left out. returns the number of folds. */
uint32_t fit_deal(const struct fit_rows *rows, enum fit_folds folds, uint32_t *fold);
/* r: [n rows] ln(predicted / measured) of every row with the constants of a fit without its fold;
 * unchanged for a row without a fold. */
ty_status fit_cross_validate(const struct fit_rows *rows, const struct fit_params *params,
                             const struct fit_solution *solution, enum fit_folds folds,
                             uint32_t n_threads, double *r);

/* Kinds of runs whose errors differ. */
enum fit_class { FIT_DENSE, FIT_MOE, FIT_TUNING, N_FIT_CLASSES };

/* fit_write.c: half width of the interval that holds a share of the |r| of clean rows of a class,
 * split conformal; stack NULL, or with too few rows: of all stacks. fold NULL: all rows; otherwise
 * those of other folds than `own`. scratch: [n rows]. */
struct fit_width_of {
    const struct fit_rows *rows;
    const double *r;
    const uint32_t *fold;
    uint32_t own;
    double *scratch;
};
double fit_width(const struct fit_width_of *of, const char *stack, enum fit_class class,
                 double share);
/* The same for a site without runs: every source weighs the same; with too few sources of the
 * stack, those of all stacks. */
double fit_width_unknown(const struct fit_width_of *of, const char *stack, enum fit_class class,
                         double share);

/* fit_pairs.c: errors of ratios, |difference of the residuals r of two runs|. */
enum fit_class fit_class_of(const struct ty_run_row *row);
struct fit_pair {
    const struct ty_run_row *row; /* one of the two; source, model, stack and class are of both */
    enum fit_class of_class;
    uint32_t fold; /* 0 .. N_FOLDS - 1: all pairs of one source and model are in one */
    double difference, weight;
};
struct fit_pairs {
    uint32_t n, held;
    struct fit_pair *pair; /* [n] by difference */
};
struct fit_pair_filter {
    enum fit_class of_class; /* N_FIT_CLASSES: all */
    const char *stack;       /* NULL: all */
    uint32_t fold;           /* 1 .. N_FOLDS: pairs of that fold; 0: all */
    bool without;            /* pairs of the other folds instead */
};
/* kinship: TY_KIN_PLANS or TY_KIN_GPUS. Free pair; it points into rows. */
ty_status fit_pairs_of(const struct fit_rows *rows, const double *r, enum ty_kinship kinship,
                       struct fit_pairs *out);
double fit_pairs_weight(const struct fit_pairs *pairs, const struct fit_pair_filter *filter);
/* Smallest difference up to which lies a share of the weight; NAN without pairs. */
double fit_pairs_width(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                       double share);
/* The same; a stack with too few pairs or models takes those of all stacks, and a class with too
 * few models at least the width of all classes. */
double fit_pairs_width_of_stack(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                                double share);
/* Weight of the pairs up to a difference. */
double fit_pairs_inside(const struct fit_pairs *pairs, const struct fit_pair_filter *filter,
                        double width);

/* fit_write.c: rewrites the data files under `folder` that hold fitted constants: their values,
 * the intervals (half widths from the residuals of both cross-validations), and the table
 * profiles/constants.csv of all constants with prior, bounds and what informs them, and the rows
 * that were fitted, runs/fitted.json. */
struct fit_report {
    const struct fit_rows *rows;
    const struct fit_params *params;
    const struct fit_solution *solution;
    const double *grouped_r, *sources_r;  /* [n rows] */
    const struct fit_pairs *plans, *gpus; /* filled by fit_write */
};
ty_status fit_write(const struct fit_report *report, const char *folder, struct ty_error *error);

/* fit_map.c: the minimum of the linearised problem over the rows with weight > 0. z: in the start,
 * out the minimum. share (may be NULL): [n_params] how much of each constant the rows decide,
 * 1 - (posterior / prior variance). */
ty_status fit_map(const struct fit_linear *linear, const struct fit_params *params,
                  const double *weight, double *z, double *share);

/* fit_jacobian.c: step time of a run with a profile; NAN where there is none. */
ty_status fit_predict_s(const struct ty_run *run, const struct ty_profile *profile, double *out,
                        struct ty_error *error);

/* fit_own_params.c: what a user's own runs may move: the ratios of their site, first and in the
 * order of TY_SITE_, and the constants they inform, around the values and with the deviations that
 * the shipped fit left them. Free param. */
ty_status fit_own_params(const struct fit_rows *rows, struct fit_params *out);
/* A constant as a prior for own runs. deviation: of ln(value) after the fit; a site's ratio has its
 * own. */
struct fit_param fit_own_param(const struct fit_param *param, double value, double deviation);
/* Deviation of ln(value) that a fit with this share (fit_map) leaves. */
double fit_deviation(const struct fit_param *param, double share);
/* fit_write.c: the deviations, a member "constants" of runs/fitted.json, which fit_own_params
 * reads. */
#define FIT_DEVIATIONS "constants"

/* fit_site.c: own constants from the linear model of the runs, whose weights are all 1. The
 * deviation of a run is estimated with them:  s^2 = (nu s0^2 + sum of losses) / (nu + n). */
struct fit_site {
    uint32_t n;             /* constants */
    double *z, *covariance; /* [n], [n * n] of the logarithms */
    double noise;
};
ty_status fit_site_create(uint32_t n, struct fit_site *out);
void fit_site_free(struct fit_site *site);
/* site->z: in the start, out the minimum. */
ty_status fit_site_solve(const struct fit_linear *linear, const struct fit_params *params,
                         struct fit_site *site);
/* a' C b, C: [n * n] */
double fit_product(const double *covariance, uint32_t n, const double *a, const double *b);
/* fit_own.c: error at sites left out of the fit with 0, 1, .. own runs. out: [TY_N_OWN]. */
ty_status fit_own_runs(const struct fit_rows *rows, const struct fit_params *params,
                       const struct fit_solution *solution, uint32_t n_threads,
                       struct ty_own_error *out);
/* Runs of a site as rows: those that `fit` used, or, where it is NULL, all that can be predicted.
 * Stack and release are those of the profile, the site's name is one for all. Free with
 * fit_rows_free. */
ty_status fit_site_rows(const struct ty_runs *runs, const struct ty_site_fit *fit,
                        struct fit_rows *out);

#endif
