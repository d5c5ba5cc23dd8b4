/* SPDX-License-Identifier: MIT
 *
 * Microbenchmarks of the machine that the caller runs on (libtrainyard-tools): its processor, or
 * the storage below a folder. What is found is handed out as records, one line of JSON each
 * (docs/import.md), as they come. GPUs are measured by a program of its own, trainyard-measure.
 */
#ifndef TRAINYARD_MEASURE_H
#define TRAINYARD_MEASURE_H

#include "trainyard_tools.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ty_measure_device {
    TY_MEASURE_CPU, /* one rank is one core: GEMM, attention, memory, copies, collectives, decoding
                     */
    TY_MEASURE_STORAGE /* reads, writes, fsync; the three steps of a data loader */
};

struct ty_measure_options {
    int device;         /* enum ty_measure_device */
    double budget_s;    /* of measuring, > 0; the last point may overrun it by its own time */
    uint32_t ranks;     /* cpu: processes; 0: one for each core this process may use, 64 at most */
    const char *blas;   /* cpu: shared library with cblas_sgemm; NULL: the first usual one */
    const char *folder; /* storage: where its test file is made and removed; NULL: "." */
    const char
        *done_path; /* records of an earlier run: its points are not measured again; NULL: none */
    const struct ty_model
        *model;                 /* cpu: only the shapes that it needs with the plan; NULL: a grid */
    const struct ty_plan *plan; /* seq, mbs, tp, ... of the model; NULL: the defaults */
    /* Called for every record. line: ends with a newline, valid during the call. returns false to
     * stop. */
    bool (*record)(void *user, const char *line);
    /* Called after each point; may be NULL. left_s: estimate of what is left. */
    void (*progress)(void *user, uint32_t done, uint32_t total, double left_s);
    void *user;
};

struct ty_measure_summary {
    uint32_t n_points;     /* of the whole plan */
    uint32_t n_known;      /* in done_path already */
    uint32_t n_measured;   /* handed out */
    uint32_t n_left;       /* did not fit into the budget */
    uint32_t n_impossible; /* the machine cannot: too large for its memory, refused by the system */
    uint32_t n_page_cache; /* storage without direct I/O: flagged */
    double off_core_ratio; /* cpu: time that the ranks waited for a core because others had it, over
                              all time; above some percent the machine is not quiet */
    char note[160];        /* which BLAS, or why a point was impossible */
};

/* Measures. Forks: the process should have one thread. Cost: the budget; memory: 128 MiB a rank for
 * a grid, a quarter of the machine at most. returns TY_OK, TY_ERR_RANGE (options), TY_ERR_INPUT
 * (library, folder, done_path), TY_ERR_NOMEM, TY_ERR_IO (a rank died, or record said stop). */
TY_API TY_MUST_CHECK ty_status ty_measure(const struct ty_measure_options *options,
                                          struct ty_measure_summary *summary,
                                          struct ty_error *error);

#ifdef __cplusplus
}
#endif

#endif
