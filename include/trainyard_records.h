/* SPDX-License-Identifier: MIT
 *
 * From records of microbenchmarks to a profile (libtrainyard-tools; docs/calibration.md): the
 * constants of device and fabric by a robust fit through the kernel and collective times of the
 * simulator itself, and the measured tables, which go before them.
 */
#ifndef TRAINYARD_RECORDS_H
#define TRAINYARD_RECORDS_H

#include "trainyard_measured.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a constant came out. */
enum ty_constant_state {
    TY_CONSTANT_FITTED,
    TY_CONSTANT_AT_MIN, /* it stands at a bound: its records ask for more than the form allows */
    TY_CONSTANT_AT_MAX,
    TY_CONSTANT_SHORTEST, /* the preset is above the shortest record, which stands in its place */
    TY_CONSTANT_TOO_FEW,  /* prior: fewer than three records depend on it */
    TY_CONSTANT_UNKNOWN   /* prior: no record depends on it, or they say nothing about it */
};
struct ty_constant {
    const struct ty_field *field;  /* of a profile */
    double value, prior, min, max; /* in the unit of the field; min, max: bounds of the fit */
    enum ty_constant_state state;
    uint32_t n_records;             /* that depend on it and were kept */
    double informed;                /* share of it that the records decide; the rest: the prior */
    double median_error, p90_error; /* of those records: |ln(form / measured)|; NAN without any */
    char source[128];               /* files they are from; "preset of ..." for a prior */
};

/* Records that were not used, by reason. */
struct ty_calibration_drop {
    char why[96], first[192]; /* first: of such records, in words */
    uint32_t n;
};

/* A figure that no field of a profile holds: copies, storage, decoding. */
struct ty_calibration_rate {
    char name[64]; /* "copy.h2d", "storage.read.sequential" */
    const char *unit;
    double value; /* median of the records of the larger sizes */
    uint32_t n_records;
};

/* One record beside the form. */
struct ty_calibration_point {
    enum ty_work work;
    double x; /* flop of a GEMM, sequence length, bytes moved, payload bytes */
    double measured_s, form_s;
    bool outlier;
};

struct ty_calibration {
    struct ty_profile profile; /* what the fit gives and nothing else; its tables are below */
    struct ty_cluster cluster; /* the machine it is of */
    struct ty_measured measured;
    struct ty_collective_tables collectives;
    uint32_t n_records, n_used, n_constants, n_drops, n_rates, n_points;
    struct ty_constant *constants;
    struct ty_calibration_drop *drops;
    struct ty_calibration_rate *rates;
    struct ty_calibration_point *points;
    char note[200]; /* where the machine's peaks are from; "" when the cluster was given */
    void *memory;
};

/* Fits records: files of JSON lines, or what calibrate import reads. cluster NULL: a machine with
 * the GPU that most records name; when that is not built in, its peaks are those of the best
 * records. Free with ty_calibration_free. Cost O(records * constants). Not beside another user of
 * GSL's error handler, which is switched off meanwhile and put back. returns TY_OK, TY_ERR_IO,
 * TY_ERR_INPUT (file and line), TY_ERR_NOMEM, TY_ERR_RANGE (the cluster). */
TY_API TY_MUST_CHECK ty_status ty_calibration_fit(const char *const *paths, uint32_t n_paths,
                                                  const struct ty_cluster *cluster,
                                                  struct ty_calibration *out,
                                                  struct ty_error *error);
TY_API void ty_calibration_free(struct ty_calibration *fit);
/* "fitted", "at its lower bound", ... */
TY_API const char *ty_constant_state_name(enum ty_constant_state state);
/* The profile file: fields, tables, and under "_fit" all that the fit says of itself. Free with
 * ty_text_free; NULL: out of memory. name: of the profile. */
TY_API char *ty_calibration_json(const struct ty_calibration *fit, const char *name);

/* The tables of a profile file; they hold for the cluster that is given. */
struct ty_profile_tables {
    struct ty_measured measured;
    struct ty_collective_tables collectives;
    char unused[160]; /* which tables are left out because they are of another machine; or "" */
    void *memory;
};
/* A profile without tables, a built-in one and NULL give empty ones. Free with
 * ty_profile_tables_free. Cost: linear in the file. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT,
 * TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_profile_tables_load(const char *name_or_path,
                                                      const struct ty_cluster *cluster,
                                                      struct ty_profile_tables *out,
                                                      struct ty_error *error);
TY_API void ty_profile_tables_free(struct ty_profile_tables *tables);
/* Sets the tables of a profile, as far as there are any; they must outlive it. */
TY_API void ty_profile_use(struct ty_profile *profile, const struct ty_profile_tables *tables);

/* Draws the points of a profile file, their form and the residuals into a folder: for each kind of
 * work fit-NAME.svg, .png, .gp, .tsv. Without gnuplot: scripts and data, n_plots = 0. Cost: 0.3 s a
 * plot, of gnuplot. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT (no fit in it), TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_calibration_plot(const char *profile_path, const char *out_folder,
                                                   uint32_t *n_plots, struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
