/* SPDX-License-Identifier: MIT
 *
 * Public header of libtrainyard-tools: specification files, built-in data, results database,
 * reports. It needs cJSON, SQLite, expat and GSL and is therefore distributed under GPL-3 as a
 * whole; programs that only predict link libtrainyard (MIT) and trainyard.h alone.
 */
#ifndef TRAINYARD_TOOLS_H
#define TRAINYARD_TOOLS_H

#include "trainyard.h"
#include "trainyard_comm.h"
#include "trainyard_cost.h"
#include "trainyard_cross.h"
#include "trainyard_fabric.h"
#include "trainyard_explain.h"
#include "trainyard_gap.h"
#include "trainyard_pool.h"
#include "trainyard_split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- specification files ------------------------------------------------------------------
 * Every reader: returns TY_OK, TY_ERR_IO, TY_ERR_INPUT or TY_ERR_UNSUPPORTED with "file: field" in
 * error.where and the legal values in error.text; never crashes on any bytes; refuses files over
 * 64 MiB, nesting over 64 levels, NaN and numbers outside double. Unknown keys of a HuggingFace
 * config are ignored; an unknown key of our own formats is an error. `out` is a plain value,
 * written only on TY_OK; nothing of it has to be freed unless it is said. Thread-safe. Cost: linear
 * in the file; 20 us for a built-in name. */

/* Model: a built-in name ("llama3-70b"), the path of a HuggingFace config.json, or such a JSON
 * object itself ("{...}"). */
TY_API TY_MUST_CHECK ty_status ty_model_load(const char *name_or_path, struct ty_model *out,
                                             struct ty_error *error);
/* Cluster: a built-in name ("dgx-h100") or a path; "gpu" in it is a built-in name or an object. */
TY_API TY_MUST_CHECK ty_status ty_cluster_load(const char *name_or_path, struct ty_cluster *out,
                                               struct ty_error *error);
/* One device: a built-in name ("h100-sxm") or a path. */
TY_API TY_MUST_CHECK ty_status ty_gpu_load(const char *name_or_path, struct ty_gpu *out,
                                           struct ty_error *error);
/* Scenario of the full rung (docs/full-rung.md); free with ty_scenario_free (accepts NULL). */
TY_API TY_MUST_CHECK ty_status ty_scenario_load(const char *path, const struct ty_scenario **out,
                                                struct ty_error *error);
/* The same from a text; `origin` names it in errors. */
TY_API TY_MUST_CHECK ty_status ty_scenario_parse(const char *text, size_t bytes, const char *origin,
                                                 const struct ty_scenario **out,
                                                 struct ty_error *error);
TY_API void ty_scenario_free(const struct ty_scenario *scenario);
/* Plan: the path of a file (docs/formats.md, "Plan"); what it leaves open stays at its default. */
TY_API TY_MUST_CHECK ty_status ty_plan_load(const char *path, struct ty_plan *out,
                                            struct ty_error *error);
/* Prices: a file; date and currency must be in it. */
TY_API TY_MUST_CHECK ty_status ty_price_load(const char *path, struct ty_price *out,
                                             struct ty_error *error);
struct ty_storage; /* trainyard_storage.h */
/* The keys "storage" of a cluster (name or file), "input" and "checkpoint" of a plan file; either
 * may be NULL. What is not given is at its default: no input pipeline, no checkpoints. */
TY_API TY_MUST_CHECK ty_status ty_storage_load(const char *cluster, const char *plan,
                                               struct ty_storage *out, struct ty_error *error);
/* Phases of a run (docs/formats.md, "Job"). */
TY_API TY_MUST_CHECK ty_status ty_job_load(const char *path, struct ty_job *out,
                                           struct ty_error *error);
/* Profile: name_or_path NULL or "preset" layers the built-in constants of the cluster's GPU arch,
 * then of the fabric and of the stack (NULL = "generic"; "STACK@RELEASE" adds its release). */
TY_API TY_MUST_CHECK ty_status ty_profile_load(const char *name_or_path, const char *stack,
                                               const struct ty_cluster *cluster,
                                               struct ty_profile *out, struct ty_error *error);
/* Adds what runs of a site have shown: a built-in one, or a file that calibrate runs wrote.
 * cluster: of the profile; constants that the file has for other GPUs, fabrics or stacks are left
 * alone. */
TY_API TY_MUST_CHECK ty_status ty_site_load(const char *name_or_path,
                                            const struct ty_cluster *cluster,
                                            struct ty_profile *profile, struct ty_error *error);

/* The same from text [bytes] in memory, which needs no terminator; `origin` names it in errors.
 * out: a struct of that kind. */
TY_API TY_MUST_CHECK ty_status ty_model_parse(const char *text, size_t bytes, const char *origin,
                                              struct ty_model *out, struct ty_error *error);
TY_API TY_MUST_CHECK ty_status ty_spec_parse(enum ty_kind kind, const char *text, size_t bytes,
                                             const char *origin, void *out, struct ty_error *error);

/* Sets one field by its path ("network.nic") from text with a unit ("400 Gb/s"). For a model the
 * paths are the names that `trainyard show model` prints ("hidden", "layers", "kinds[0].ffn").
 * returns TY_OK, TY_ERR_INPUT (no such field, or what is legal), of a GPU as ty_gpu_load. */
TY_API TY_MUST_CHECK ty_status ty_field_set(enum ty_kind kind, void *value, const char *path,
                                            const char *text, struct ty_error *error);
/* Parses "400 Gb/s", "80 GiB", "14 us", "989 Tflop/s", "700 W", plain numbers where the unit is
 * a count or ratio. out: in the base unit. returns TY_OK, TY_ERR_INPUT. */
TY_API TY_MUST_CHECK ty_status ty_quantity_parse(const char *text, enum ty_unit unit, double *out,
                                                 struct ty_error *error);
/* Human form with a unit: "50 GB/s", "80 GiB", cut at `bytes`; reads back to the same value.
 * returns out. */
TY_API const char *ty_quantity_text(double value, enum ty_unit unit, char *out, size_t bytes);

/* How far a typed name is from a known one, for "did you mean": insertions, deletions and
 * replacements of bytes (Levenshtein) that turn a into b, of the first 63 bytes of each.
 * Cost: the product of the lengths. Thread-safe. */
TY_API size_t ty_text_distance(const char *a, const char *b);

/* Canonical JSON of an input (readable back by the reader of its kind); free with ty_text_free.
 * For a model: our own form, which ty_model_load also accepts. NULL when out of memory. */
TY_API char *ty_spec_write(enum ty_kind kind, const void *value);
TY_API void ty_text_free(char *text); /* accepts NULL */

/* Built-in names of a kind, of software stacks, of sites, sorted; index 0.. until NULL. Static. */
TY_API const char *ty_builtin_name(enum ty_kind kind, size_t index);
TY_API const char *ty_builtin_stack(size_t index);
TY_API const char *ty_builtin_site(size_t index);

/* ---- store: one SQLite file holds one study ------------------------------------------------
 * What writes or asks: returns TY_OK, TY_ERR_STORE (SQLite's reason: full disk, locked, read-only),
 * TY_ERR_NOMEM. Arguments are copied. One store on one thread at a time, other processes may read
 * meanwhile. Cost: 3 us a row, no more than 4096 rows held in memory. Tables: docs/database.md. */

typedef struct ty_store ty_store; /* trainyard_study.h: resuming and merging studies */

/* Opens or creates. WAL on local disks, rollback journal on network file systems. A file that is
 * not a study is refused. Close with ty_store_close. returns as above; TY_ERR_INPUT (no study, or
 * of a later version), TY_ERR_IO. */
TY_API TY_MUST_CHECK ty_status ty_store_open(const char *path, bool read_only, ty_store **out,
                                             struct ty_error *error);
TY_API void ty_store_close(ty_store *store); /* commits what is pending; accepts NULL */

struct ty_study {
    const char *command; /* the command line, for the record */
    const struct ty_model *model;
    const struct ty_cluster *cluster;
    const struct ty_profile *profile;
    const struct ty_price *price;     /* NULL: none */
    const char *arguments;            /* what else decides its rows, a line each; NULL: nothing */
    const struct ty_storage *storage; /* NULL: none */
};
/* Starts a study: its inputs with their content hash, versions. study_id: out, for its rows. */
TY_API TY_MUST_CHECK ty_status ty_store_begin(ty_store *store, const struct ty_study *study,
                                              int64_t *study_id, struct ty_error *error);
/* One row of `prediction` with its breakdown and plan; batched, 4096 rows a transaction. p_faster:
 * probability that it is better than what the study compares with; NAN: none, or not known yet. */
TY_API TY_MUST_CHECK ty_status ty_store_add_score(ty_store *store, int64_t study_id,
                                                  const struct ty_score *score, double p_faster,
                                                  struct ty_error *error);
/* A full prediction: row, breakdown, memory of every stage, groups, notes. p_faster: as above. */
TY_API TY_MUST_CHECK ty_status ty_store_add_prediction(ty_store *store, int64_t study_id,
                                                       const struct ty_prediction *prediction,
                                                       double p_faster, struct ty_error *error);
/* How many plans a search has rejected, by reason. */
TY_API TY_MUST_CHECK ty_status ty_store_add_rejections(ty_store *store, int64_t study_id,
                                                       const uint64_t rejected[TY_N_REJECTS],
                                                       struct ty_error *error);
/* One axis of a what-if. The points of the crossing are scores whose plan_id is
 * sum(place on axis x stride). */
struct ty_axis {
    const char *path;
    uint32_t n;
    uint64_t stride;
    const char *const *text; /* [n] */
    const double *number;    /* [n]; NAN for names */
    double base;             /* tokens/s/GPU as it is; NAN */
    const double *alone;     /* [n] with this value alone; NAN */
};
/* axes [n_axes]; take the place of those the study has. */
TY_API TY_MUST_CHECK ty_status ty_store_add_axes(ty_store *store, int64_t study_id,
                                                 const struct ty_axis *axes, uint32_t n_axes,
                                                 struct ty_error *error);
/* Commits what is pending: what is lost by a crash is what came after the last of these. */
TY_API TY_MUST_CHECK ty_status ty_store_flush(ty_store *store, struct ty_error *error);

/* ---- report -------------------------------------------------------------------------------
 * Writes into a folder, which is made when it is not there, and runs gnuplot (fork, exec) where it
 * is installed. Cost: 0.3 s a plot. */

/* Draws the studies of a database into a folder: index.html (self-contained), each plot as SVG and
 * PNG with its .gp script and data. Without gnuplot: data and scripts, and n_plots = 0.
 * returns TY_OK, TY_ERR_IO, TY_ERR_STORE, TY_ERR_NOMEM, TY_ERR_INPUT when the database holds no
 * prediction. */
TY_API TY_MUST_CHECK ty_status ty_report_write(const char *db_path, const char *out_folder,
                                               uint32_t *n_plots, struct ty_error *error);

/* JSON of an explanation with its prediction; timeline and gap may be NULL. Free with ty_text_free.
 * NULL when out of memory. */
TY_API char *ty_explanation_json(const struct ty_explanation *explanation,
                                 const struct ty_prediction *prediction,
                                 const struct ty_profile *profile,
                                 const struct ty_timeline *timeline, const struct ty_gap *gap);
/* Draws what resources and changes would do into a folder: tornado.svg, .png, .gp, .tsv. Without
 * gnuplot: script and data, and n_plots = 0. returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_explanation_plot(const struct ty_explanation *explanation,
                                                   const char *about, const char *out_folder,
                                                   uint32_t *n_plots, struct ty_error *error);

/* Writes the step simulated last as a Chrome trace (chrome://tracing, ui.perfetto.dev): a track for
 * each rank and stream, arrows for dependencies between tracks; after TY_ERR_LIMIT, what had run by
 * then. Cost: 200 B of file a task. returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_trace_write(const ty_predictor *predictor, const char *path,
                                              struct ty_error *error);

/* ---- measured runs ------------------------------------------------------------------------ */

/* Whether a run of a table ran. OPEN: it ran, but its source does not say what it recomputed, so
 * that its memory is not known either. */
enum ty_run_outcome { TY_RUN_RAN, TY_RUN_RAN_OPEN, TY_RUN_OUT_OF_MEMORY, TY_N_OUTCOMES };

/* One measured training run of a table, and what the predictor says of it. */
struct ty_run_row {
    char id[64], source[24], gpu[24], stack[32], release[16], site[24];
    char fabric[16], kind[16], family[32]; /* kind: dense, moe, lora, sft; family: "mcore/moe" */
    const char *scale;                     /* class of the GPU count: "9-64" */
    char model[64];
    char sweep[192];                           /* runs of one sweep of layouts share this text */
    double measured_s, predicted_s;            /* step time; NAN when not printed / refused */
    double no_site_s;                          /* predicted_s without what is known of the site */
    double interval_80_s[2], interval_90_s[2]; /* NAN when nothing is known of the errors */
    double measured_mem_bytes, predicted_mem_bytes; /* NAN when not printed / refused */
    char memory_view[12];        /* what the source prints: "allocated", "reserved", "device" */
    enum ty_run_outcome outcome; /* whether it ran */
    enum ty_fit fit;             /* the verdict on it */
    struct ty_plan plan;         /* resolved */
    char refused[240];           /* why there is no prediction; empty otherwise */
    char assumed[240];           /* cells filled by rule and values mended, parted by ';' */
    bool noisy;        /* the source marks the row, or its figures contradict each other */
    bool noisy_source; /* all rows of the source are noisy */
    bool in_fit;       /* the shipped constants were fitted on it */
};
struct ty_validation {
    uint32_t n_rows;
    struct ty_run_row *rows;
};
struct ty_error_stats {
    uint32_t n;
    double median_ape, mean_ape, p90_ape, bias; /* fractions; bias: median signed error */
};
enum ty_run_key {
    TY_RUN_SOURCE,
    TY_RUN_GPU,
    TY_RUN_STACK,
    TY_RUN_KIND,
    TY_RUN_FAMILY,
    TY_RUN_SCALE
};

struct ty_validate_options {
    const char *profile; /* name or path, over the preset of each run; NULL: the preset */
    uint32_t n_threads;  /* 0 = number of processors */
};
/* Predicts every run of a CSV table (columns of docs/formats.md, "runs"); no measured cell is read
 * for it. options may be NULL. Free with ty_validation_free, which accepts a zeroed one. Cost: 20
 * ms of a processor a run. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT (file, row and column),
 * TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_validate_runs(const char *csv_path,
                                                const struct ty_validate_options *options,
                                                struct ty_validation *out, struct ty_error *error);
/* Error at a site the fit has not seen, some of whose own runs were fitted as calibrate runs does:
 * fractions, over n predictions of others of its runs. */
struct ty_own_error {
    uint32_t n_runs, n;
    double median_ape, mean_ape, p90_ape;
};
enum { TY_N_OWN = 5 }; /* with 0, 1, 3, 5, 10 own runs */

/* Share of pairs of left-out runs whose ratio lies in its interval. The half widths are of pairs of
 * other models: five folds by a hash of source and model. */
struct ty_ratio_coverage {
    uint32_t n; /* pairs */
    double in_80, in_90;
};
/* What to compute with constants that were fitted without the rows they predict; each may be NULL.
 * A validation holds one of the table in, and in its place the predictions and intervals of rows
 * left out out; rows that were not left out lose theirs. */
struct ty_held_out {
    struct ty_validation *by_groups;  /* every fifth sweep of one source, model, GPU, GPU count */
    struct ty_validation *by_sources; /* one source after the other */
    struct ty_validation *by_series;  /* weak-scaling series from eight times the fewest GPUs on */
    struct ty_validation *presets;    /* nothing fitted but one factor, from other sweeps */
    struct ty_own_error *own;         /* [TY_N_OWN] */
    struct ty_ratio_coverage *ratios; /* [2]: two plans, two kinds of GPU */
};
/* Intervals: half widths of the errors left out of other folds (by_series: of the shipped
 * profiles). Cost: minutes. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT, TY_ERR_NOMEM,
 * TY_ERR_INTERNAL. */
TY_API TY_MUST_CHECK ty_status ty_validate_held_out(const char *csv_path, uint32_t n_threads,
                                                    const struct ty_held_out *out,
                                                    struct ty_error *error);
TY_API void ty_validation_free(struct ty_validation *validation);
/* The text of a row under a key; belongs to the row. */
TY_API const char *ty_run_value(const struct ty_run_row *row, enum ty_run_key key);
/* The index-th text that rows have under a key, in the order of the table; NULL behind the last. */
TY_API const char *ty_validation_value(const struct ty_validation *validation, enum ty_run_key key,
                                       uint32_t index);

/* Predicted runs by outcome (row) and verdict (column, enum ty_fit). */
TY_API void ty_validation_verdicts(const struct ty_validation *validation,
                                   uint32_t out[TY_N_OUTCOMES][3]);

/* Which error of which rows: those that have both a measured and a predicted value. */
enum ty_run_error { TY_RUN_STEP_TIME, TY_RUN_STEP_TIME_NO_SITE, TY_RUN_MEMORY };
struct ty_run_filter {
    enum ty_run_error error;
    enum ty_run_key key;
    const char *value; /* of the key; NULL: all rows */
    bool clean_only;   /* without noisy rows */
};
/* Error predicted / measured - 1 of these rows; NAN and n 0 without any. Cost O(n log n). */
TY_API struct ty_error_stats ty_validation_stats(const struct ty_validation *validation,
                                                 const struct ty_run_filter *filter);
/* Share of the measured step times inside the interval of 80 or 90 percent, of the rows of the
 * filter (its error is not read; NULL: all) that have one. n: out, their number; may be NULL. NAN
 * when there is none. */
TY_API double ty_validation_coverage(const struct ty_validation *validation,
                                     const struct ty_run_filter *filter, uint32_t percent,
                                     uint32_t *n);

/* A sweep of layouts: at least 3 runs of one source with the same model, GPU, GPU count, sequence
 * length, precision, task and batch, whose measured times differ by more than 6 %. */
struct ty_ranking {
    const char *sweep; /* of its rows */
    uint32_t n;
    double spearman, kendall; /* rank correlation of predicted and measured time; tau-b */
    double regret; /* measured time of the predicted best over that of the best, minus 1 */
    bool noisy;    /* its source is */
};
struct ty_rankings {
    uint32_t n;
    struct ty_ranking *sweeps; /* in the order of the table */
    /* over the sweeps that are not noisy, weighted by their runs; a correlation that is not
     * defined (all predicted times equal) is left out */
    uint32_t n_clean;
    double spearman, kendall, mean_regret, median_regret;
};
/* Free with ty_rankings_free, before the validation. Cost O(rows^2): 2 ms for 700. returns TY_OK,
 * TY_ERR_NOMEM. Source: Kendall 1945 (tau-b). */
TY_API TY_MUST_CHECK ty_status ty_validation_rankings(const struct ty_validation *validation,
                                                      struct ty_rankings *out,
                                                      struct ty_error *error);
TY_API void ty_rankings_free(struct ty_rankings *rankings);

/* JSON of a validation; free with ty_text_free. NULL: out of memory. */
TY_API char *ty_validation_json(const struct ty_validation *validation);

/* Draws predicted against measured step time into a folder: scatter.svg, .png, .gp, .tsv. Without
 * gnuplot: script and data, and n_plots = 0. Cost: 0.3 s. returns TY_OK, TY_ERR_IO. */
TY_API TY_MUST_CHECK ty_status ty_validation_plot(const struct ty_validation *validation,
                                                  const char *out_folder, uint32_t *n_plots,
                                                  struct ty_error *error);

/* One run of a table as inputs of the predictor; the cluster is the built-in one of that name with
 * the GPU and the network of the run. */
struct ty_run {
    struct ty_run_row row; /* names and measured values; nothing predicted */
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
};
/* Cost: 1 ms, the table is read. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT (no such id, or the run
 * cannot be predicted: why), TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_run_load(const char *csv_path, const char *id, struct ty_run *out,
                                           struct ty_error *error);

/* ---- import of measurements --------------------------------------------------------------- */

/* One run or measurement of a file. */
struct ty_record {
    char *json;  /* one line, keys of docs/import.md */
    char *text;  /* for people, a few lines */
    bool usable; /* holds what a calibration needs; otherwise the record says what is missing */
};
struct ty_import {
    char format[32]; /* "training-log", "nccl-tests", ... */
    uint32_t n_records, n_usable;
    struct ty_record *records;
};
/* Reads a training log or a benchmark result, whatever tool wrote it (docs/import.md). Free with
 * ty_import_free. returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM, TY_ERR_INPUT: no known format, or
 * nothing in it. Never crashes on any bytes; cost: linear in the size, at most 1 GiB. */
TY_API TY_MUST_CHECK ty_status ty_import_file(const char *path, struct ty_import *out,
                                              struct ty_error *error);
TY_API void ty_import_free(struct ty_import *import);

/* ---- detection of a cluster --------------------------------------------------------------- */

/* How far a value can be trusted. */
enum ty_trust {
    TY_TRUST_HINT,   /* free text of an administrator: a feature named "ib400" */
    TY_TRUST_RULE,   /* follows from something else that was read */
    TY_TRUST_STATED, /* configured: a scheduler's tables, labels, static topology files */
    TY_TRUST_READ    /* reported by the device, its driver or the kernel */
};
enum ty_remark {
    TY_REMARK_CONTRADICTION, /* two sources differ; the more trusted one was taken */
    TY_REMARK_GAP,           /* not found; the text says how to get it */
    TY_REMARK_NOTE           /* assumed or left out */
};

/* A value that was read: field of the cluster form, value with unit, FILE:LINE. */
struct ty_found {
    char field[32], value[96], place[320];
    int trust;   /* enum ty_trust */
    bool chosen; /* it is in the cluster */
};
struct ty_remark_text {
    int kind; /* enum ty_remark */
    char text[512];
};
struct ty_detection {
    uint32_t n_found, n_remarks;
    struct ty_found *found;
    struct ty_remark_text *remarks;
    bool complete; /* the GPU is known: json is a cluster file */
    struct ty_cluster cluster;
    char *json; /* cluster file; keys "_found", "_contradictions", "_gaps", "_notes" are remarks */
};
/* A cluster from dumps (docs/detect.md lists them), merged; a folder is a copy of /sys and /proc.
 * n = 0: this machine, with nvidia-smi where there is one. gpu: a built-in name or a GPU file,
 * chooses among several or stands in where no dump names it; may be NULL. Free with
 * ty_detection_free. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT (error names file and line),
 * TY_ERR_NOMEM, TY_ERR_LIMIT. Never crashes on any bytes; cost: linear in the size. */
TY_API TY_MUST_CHECK ty_status ty_detect(const char *const *paths, uint32_t n, const char *gpu,
                                         struct ty_detection *out, struct ty_error *error);
TY_API void ty_detection_free(struct ty_detection *detection);
TY_API const char *ty_trust_name(enum ty_trust trust); /* "read", "stated", "rule", "hint" */

/* ---- collectives -------------------------------------------------------------------------- */

/* The built-in tables (data/fabrics). Free with ty_collective_tables_free, which accepts zeroed
 * ones. Cost: 4 ms. returns TY_OK, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_collective_tables_load(struct ty_collective_tables *out,
                                                         struct ty_error *error);
TY_API void ty_collective_tables_free(struct ty_collective_tables *tables);

/* ty_comm_predict and ty_comm_judge for the sizes that a log has measured. Where the query
 * leaves them open (op TY_N_COLLECTIVES, ranks 0), operation and ranks are those of the first
 * table of the log, in any format that calibrate import reads. Free with ty_comm_free. Cost: linear
 * in the log. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT (no such table in it), TY_ERR_RANGE,
 * TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_comm_compare(const struct ty_collective_query *query,
                                               const char *log_path,
                                               const struct ty_collective_tables *tables,
                                               struct ty_comm *out, struct ty_error *error);
/* JSON of an answer; free with ty_text_free. NULL: out of memory. */
TY_API char *ty_comm_json(const struct ty_comm *comm);

struct ty_evidence; /* trainyard_calibrate.h */
/* JSON of a prediction (the keys of `predict --json`; evidence, forecast NULL: without that key) or
 * of a search (its best plans, predicted once more, with the same keys); free with ty_text_free.
 * NULL: out of memory, or a plan of the search that its own inputs refuse. */
TY_API char *ty_prediction_json(const struct ty_prediction *prediction,
                                const struct ty_profile *profile,
                                const struct ty_evidence *evidence,
                                const struct ty_forecast *forecast);
TY_API char *ty_search_json(const struct ty_search_result *result, const struct ty_search *search);
/* Of one sizing for each kind of machine, size and result [n]; best: index of the one to take, n
 * for none. Free with ty_text_free; NULL: out of memory. */
TY_API char *ty_size_json(const struct ty_size *size, const struct ty_size_result *result,
                          uint32_t n, uint32_t best);

/* ---- jobs that share a cluster ------------------------------------------------------------- */

/* A job of a file for split (docs/formats.md, "Jobs"). 0, NULL and NAN: not given. */
struct ty_split_entry {
    char name[48];
    char model[256];       /* built-in name or path; "": the curve below is given */
    struct ty_space space; /* fixed plan and limits */
    uint32_t n_points;     /* measured curve */
    uint32_t point_gpus[TY_SPLIT_MAX_HITS];
    double point_tokens_per_s[TY_SPLIT_MAX_HITS];
    bool may_wait; /* min_gpus 0: it may get nothing */
    uint32_t min_gpus, max_gpus;
    double weight, tokens, deadline_s, prepare_cpu_s;
    /* input, of one sample */
    double sample_tokens; /* NAN: seq of the plan */
    double sample_cpu_s, sample_bytes, data_bytes;
    char cache[24];                /* policy */
    double hit[TY_SPLIT_MAX_HITS]; /* ... its curve */
    uint32_t n_hits;               /* 0: no eviction */
};
struct ty_split_list {
    uint32_t n;
    struct ty_split_entry *entry; /* [n] */
};
/* From a file, or a text [bytes] that `origin` names in errors. Free with ty_split_list_free, which
 * accepts a zeroed one. Cost: linear. returns as every reader; TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_split_list_load(const char *path, struct ty_split_list *out,
                                                  struct ty_error *error);
TY_API TY_MUST_CHECK ty_status ty_split_list_parse(const char *text, size_t bytes,
                                                   const char *origin, struct ty_split_list *out,
                                                   struct ty_error *error);
TY_API void ty_split_list_free(struct ty_split_list *list);

/* A division with the names of its jobs, for the two writers below. */
struct ty_division {
    const struct ty_split *split;
    const struct ty_split_result *result;
    const struct ty_split_list *list;
    uint32_t unit_gpus;
    const struct ty_plan *const *plans; /* [n_jobs][n_units + 1], of NULL where not searched */
};
/* JSON; free with ty_text_free. NULL: out of memory. */
TY_API char *ty_division_json(const struct ty_division *division);
/* Tables split_job, split_curve of a study (docs/database.md); `report` draws them. Cost and
 * returns as of every writer of a store. */
TY_API TY_MUST_CHECK ty_status ty_store_add_division(ty_store *store, int64_t study_id,
                                                     const struct ty_division *division,
                                                     struct ty_error *error);

/* A point of `size`: its row of the table size_point, and the plan of its first phase as a score
 * (docs/database.md); `report` draws them. Cost and returns as of every writer of a store. */
TY_API TY_MUST_CHECK ty_status ty_store_add_size(ty_store *store, int64_t study_id,
                                                 const struct ty_size_result *point,
                                                 struct ty_error *error);

/* ---- traces of jobs, for a pool ------------------------------------------------------------ */

/* What a reader met; every skipped row is counted under one of these. */
#define TY_TRACE_NOTE_LIST(X)                                                                      \
    X(ROWS, "rows", "rows read")                                                                   \
    X(STEPS, "steps", "steps of a job: skipped")                                                   \
    X(NO_GPU, "no_gpu", "jobs without a GPU: skipped")                                             \
    X(NEVER_RAN, "never_ran", "jobs that never started: skipped")                                  \
    X(NO_END, "no_end", "jobs without an end (still running): skipped")                            \
    X(NO_TIME, "no_time", "jobs that ran for no time: skipped")                                    \
    X(BAD, "bad", "rows with a value that cannot be: skipped")                                     \
    X(SHARES, "shares", "jobs on a part of one GPU")                                               \
    X(ROUNDED, "rounded", "jobs with 1.5, 2.5, ... GPUs: rounded up")                              \
    X(RESTARTS, "restarts", "restarts of a job: joined with its first run")                        \
    X(UNSORTED, "unsorted", "rows submitted before the row above: sorted")

enum ty_trace_note {
#define X(id, key, text) TY_TRACE_##id,
    TY_TRACE_NOTE_LIST(X)
#undef X
        TY_N_TRACE_NOTES
};

struct ty_trace {
    char format[16];          /* as detected or asked for */
    struct ty_pool_job *jobs; /* [n_jobs], in the order of the file */
    const char **names;       /* [n_jobs]; "" where the file has none */
    uint64_t n_jobs;
    struct ty_pool_queue *queues; /* [n_queues], in order of appearance; defaults but the name */
    uint32_t n_queues;
    uint64_t notes[TY_N_TRACE_NOTES];
    uint64_t bad_line;                     /* of the first bad row; 0: none */
    struct ty_pool_spread recorded_wait_s; /* start - submission in the file; NAN: it has none */
    bool dated; /* the file has dates: times count from the first submission */
    void *memory;
};

/* Reads a trace (docs/pool.md): native CSV, sacct -P, Philly JSON, Helios, Acme and openb CSV.
 * format NULL or "auto": by its columns. queue NULL: all; otherwise the jobs of that queue. Free
 * with ty_trace_free, which accepts a zeroed one. Never crashes on any bytes; cost: linear.
 * returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM, TY_ERR_INPUT: no such form, or no job that ran. */
TY_API TY_MUST_CHECK ty_status ty_trace_read(const char *path, const char *format,
                                             const char *queue, struct ty_trace *out,
                                             struct ty_error *error);
TY_API void ty_trace_free(struct ty_trace *trace);
/* Name of a format; index 0.. until NULL. Static. */
TY_API const char *ty_trace_format(size_t index);
/* Key and, in text, the meaning of a note of TY_TRACE_NOTE_LIST. Static. */
TY_API const char *ty_trace_note(int note, const char **text);
/* Node types of a pool from CSV: columns nodes, gpus_per_node; optional gpu_model, cpus,
 * memory_mib, nodes_per_leaf, pod. Types without GPUs are left out. out: [capacity]. Cost: linear.
 * returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM, TY_ERR_INPUT (file, row and column). */
TY_API TY_MUST_CHECK ty_status ty_pool_nodes_read(const char *path, struct ty_pool_nodes *out,
                                                  uint32_t capacity, uint32_t *n_groups,
                                                  struct ty_error *error);
/* Rights of the queues of a trace from CSV: column queue; optional weight, quota_gpus,
 * borrow_gpus, cohort. Cost: linear. returns as ty_pool_nodes_read. */
TY_API TY_MUST_CHECK ty_status ty_trace_queues_read(const char *path, struct ty_trace *trace,
                                                    struct ty_error *error);
/* One replay for the database. */
struct ty_replay {
    const struct ty_pool *pool;
    const struct ty_trace *trace;
    const struct ty_pool_result *result;
    const struct ty_pool_event *events; /* [n_events] */
    uint64_t n_events;
    uint32_t run; /* number within its study */
};
/* Tables pool_run, pool_job, pool_event of a study (docs/database.md); `report` draws them. Cost
 * and returns as of every writer of a store. */
TY_API TY_MUST_CHECK ty_status ty_store_add_replay(ty_store *store, int64_t study_id,
                                                   const struct ty_replay *replay,
                                                   struct ty_error *error);
/* JSON of a replay, of a verdict on one job; free with ty_text_free. NULL: out of memory. */
TY_API char *ty_pool_json(const struct ty_pool *pool, const struct ty_trace *trace,
                          const struct ty_pool_result *result);
TY_API char *ty_pool_verdict_json(const struct ty_trace *trace,
                                  const struct ty_pool_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
