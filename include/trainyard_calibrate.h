/* SPDX-License-Identifier: MIT
 *
 * A user's own runs as constants of the site: part of libtrainyard-tools (needs GSL, GPL-3 as a
 * whole). A site is what is left when GPU, network and software are known: three ratios of time,
 * of kernels, of collectives and of the host. Own runs also correct what is known of these, as far
 * as the published runs leave it open. docs/calibration.md
 */
#ifndef TRAINYARD_CALIBRATE_H
#define TRAINYARD_CALIBRATE_H

#include "trainyard_tools.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ty_runs {
    uint32_t n;
    struct ty_run *run; /* [n]; row.refused says why one cannot be predicted */
};
/* Appends every run of a table (docs/formats.md, "runs"). runs: zeroed or filled before; free with
 * ty_runs_free, also after a failure. Cost: linear, 1 ms a row. returns TY_OK, TY_ERR_IO,
 * TY_ERR_INPUT, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_runs_add_table(const char *csv_path, struct ty_runs *runs,
                                                 struct ty_error *error);
/* Appends every run of a training log that has a step time or a token rate. like: model, cluster
 * and profile of the runs, and a plan that goes before what the log says; where neither says, the
 * plan's defaults. Cost: linear in the file. returns the same. */
TY_API TY_MUST_CHECK ty_status ty_runs_add_log(const char *path, const struct ty_run *like,
                                               struct ty_runs *runs, struct ty_error *error);
/* Appends a copy of one run; row.id, row.measured_s (s, > 0), model, cluster, profile and plan are
 * read. Cost: 11 kB a run. returns TY_OK, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_runs_add(const struct ty_run *run, struct ty_runs *runs);
TY_API void ty_runs_free(struct ty_runs *runs);

enum { TY_SITE_COMPUTE, TY_SITE_COMM, TY_SITE_HOST, TY_N_SITE };

/* A constant that own runs may move, from the value and the deviation the shipped fit gave it. */
struct ty_site_constant {
    const struct ty_field *field; /* of the profile */
    char layer[96];             /* built-in file it is of: "profiles/preset-hopper"; "": the site */
    double before, after;       /* in the unit of the field */
    double sd_before, sd_after; /* of ln(value) */
    double informed; /* share that the runs decide: 1 - variance after over before; 0..1 */
    double spread;   /* deviation of ln(time) of the runs that it leaves without them */
    double effect;   /* mean change of ln(time) of the runs by it */
};

struct ty_site_fit {
    uint32_t n; /* runs that were used: measured, and possible to predict */
    uint32_t n_constants;
    struct ty_site_constant *constant; /* [n_constants], first site.compute_ratio, comm_ratio and
                                          host_ratio in the order of TY_SITE_ */
    double *covariance; /* [n_constants * n_constants] of ln(value) after the runs, row by row */
    double noise;       /* deviation of one run in ln(time), estimated with a prior */
    double open;        /* deviation of ln(time) that site and constants still leave to a new plan
                           like these runs */
    double *before_s, *after_s; /* [runs->n] predicted step time with the shipped constants and
                                   without a site, and with what was found; NAN: not used */
};
/* The most plausible ratios of the site and constants of the profiles: least sum of a Cauchy loss
 * of ln(predicted/measured) and log-normal priors around 1 and the profile's values
 * (docs/calibration.md), through the simulator. What a profile says of a site is not read; one that
 * is calibrated keeps the constants of device and fabric. n_threads 0: processors. Free with
 * ty_site_fit_free. returns TY_OK, TY_ERR_INPUT (no run can be used: why), TY_ERR_NOMEM,
 * TY_ERR_INTERNAL. Cost: about 200 predictions a run. */
TY_API TY_MUST_CHECK ty_status ty_site_fit(const struct ty_runs *runs, uint32_t n_threads,
                                           struct ty_site_fit *out, struct ty_error *error);
TY_API void ty_site_fit_free(struct ty_site_fit *fit);
/* The text of a file that ty_site_load reads: ratios, constants and intervals of the site, and for
 * people what was moved by how much. name: of the site. base: of the runs, with the intervals of a
 * site that is not known. NULL: out of memory. Free with ty_text_free. */
TY_API char *ty_site_write(const struct ty_site_fit *fit, const char *name,
                           const struct ty_profile *base);

/* A plan that is worth a run. */
struct ty_next_run {
    uint32_t like;   /* run it varies */
    char change[24]; /* "tp 8", "gpus 64" */
    struct ty_plan plan;
    double sd_now, sd_then; /* deviation in ln(time) that the constants leave to runs like these
                               and to the candidates: now, after this run */
};
#define TY_MAX_NEXT 5
/* The variations of the runs' plans (half and double of one size) that narrow this most, best
 * first: mean over plans k of  g_k' C g_k  less  (g_k' C g)^2 / (noise^2 + g' C g),  with the
 * derivatives g of ln(time) by ln(ratio). next: [TY_MAX_NEXT]. Cost: 4 predictions a
 * candidate. returns TY_OK, TY_ERR_NOMEM. Source: docs/calibration.md. */
TY_API TY_MUST_CHECK ty_status ty_site_next(const struct ty_runs *runs,
                                            const struct ty_site_fit *fit, uint32_t n_threads,
                                            struct ty_next_run *next, uint32_t *n_next);

/* How many of the runs the shipped constants were fitted on are like a plan: in vendor, fabric
 * (or one scale-up domain), class of the GPU count, and task (dense, moe, lora, sft). */
struct ty_evidence {
    uint32_t n_rows;
    char cell[96];    /* "nvidia, infiniband, 65-256 GPUs, dense" */
    char unseen[128]; /* n_rows 0: the axes without such runs; "the combination" */
};
/* plan: n_gpus and packed are read. Cost: 0.5 ms, the built-in table is read. returns TY_OK,
 * TY_ERR_NOMEM, TY_ERR_INTERNAL. */
TY_API TY_MUST_CHECK ty_status ty_evidence_of(const struct ty_model *model,
                                              const struct ty_cluster *cluster,
                                              const struct ty_plan *plan, struct ty_evidence *out,
                                              struct ty_error *error);
/* Makes the intervals of a profile as wide as any class of it, or of all stacks, has: for a plan
 * without evidence. */
TY_API void ty_evidence_widen(struct ty_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
