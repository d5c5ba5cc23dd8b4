/* SPDX-License-Identifier: MIT
 *
 * Training logs as runs. A cleaner gives lines without escapes, wraps and time stamps; small
 * parsers, one per family of formats, turn a line into a sample (one printed iteration) or a fact
 * (something of the plan); one analyser for all splits the samples into runs and blocks, drops
 * what is not a steady step, and derives what follows by exact division. Absent is NAN or "".
 */
#ifndef CALIBRATE_LOG_H
#define CALIBRATE_LOG_H

#include "calibrate/import.h"

/* ---- lines -------------------------------------------------------------------------------- */

struct log_line {
    char *text;      /* terminated; no escapes, no markdown fences, wrapped records joined */
    double time_s;   /* time stamp in its first part, seconds since 1970 as if UTC; NAN: none */
    uint32_t number; /* in the file, from 1 */
};
struct log_lines {
    char *next, *end;
    uint32_t number;
};
void log_lines_start(struct log_lines *lines, char *text, size_t bytes);
/* The next line that is not empty; false at the end. Works in place, time linear. */
bool log_lines_next(struct log_lines *lines, struct log_line *out);

/* A number as printed: "1,710", "11.5K", "6.859e+03", "227.35GB". half: half a unit of its last
 * digit, what rounding may have hidden. */
struct log_number {
    double value, half;
    const char *end; /* behind digits and suffix K, M, G, B, T (powers of 1000) */
};
bool log_number(const char *text, struct log_number *out);
/* The number behind the first `label` of a text, blanks or a quote between; false when there is
 * none. */
bool log_number_after(const char *text, const char *label, struct log_number *out);
/* Letters and digits alone, lower case: "elapsed_time_per_iteration_ms" and "elapsed time per
 * iteration (ms)" are the same label. */
void log_label(const char *text, size_t length, char *out, size_t bytes);

/* ---- facts: what a log says of plan and model --------------------------------------------- */

/* id, name in JSON. The names are those of plan and model files where these have the field. */
#define LOG_FACT_LIST(X)                                                                           \
    X(GPUS, "gpus")                                                                                \
    X(TP, "tp")                                                                                    \
    X(PP, "pp")                                                                                    \
    X(VPP, "vpp")                                                                                  \
    X(CP, "cp")                                                                                    \
    X(EP, "ep")                                                                                    \
    X(ETP, "etp")                                                                                  \
    X(MBS, "mbs")                                                                                  \
    X(GBS, "gbs")                                                                                  \
    X(SEQ, "seq")                                                                                  \
    X(RECOMPUTE_LAYERS, "recompute_layers")                                                        \
    X(DP, "dp")                                                                                    \
    X(N_MICRO, "n_micro")                                                                          \
    X(MP, "mp") /* tp * pp, where only the product is printed */                                   \
    X(NODES, "nodes")                                                                              \
    X(GPUS_PER_NODE, "gpus_per_node")                                                              \
    X(LAYERS, "layers")                                                                            \
    X(HIDDEN, "hidden")                                                                            \
    X(HEADS, "heads")                                                                              \
    X(KV_HEADS, "kv_heads")                                                                        \
    X(FFN, "ffn")                                                                                  \
    X(VOCAB, "vocab")                                                                              \
    X(EXPERTS, "experts")                                                                          \
    X(TOP_K, "top_k")                                                                              \
    X(EXPERT_FFN, "expert_ffn")                                                                    \
    X(SHARED_FFN, "shared_ffn")                                                                    \
    X(HEAD_DIM, "head_dim")                                                                        \
    X(LORA_RANK, "lora_rank")                                                                      \
    X(INTERVAL, "log_interval")

enum log_fact {
#define X(id, name) LOG_##id,
    LOG_FACT_LIST(X)
#undef X
        LOG_N_FACTS
};
extern const char *const log_fact_names[LOG_N_FACTS];

/* Facts that are names: of the plan to CUDA_GRAPH, of the model to TIED; the rest is of use to the
 * readers only. */
#define LOG_WORD_LIST(X)                                                                           \
    X(PRECISION, "precision")                                                                      \
    X(RECOMPUTE, "recompute")                                                                      \
    X(SHARDING, "sharding")                                                                        \
    X(SP, "sp")                                                                                    \
    X(OVERLAP, "overlap")                                                                          \
    X(GRAD_DTYPE, "grad_dtype")                                                                    \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(ATTENTION, "attention")                                                                      \
    X(DISPATCHER, "dispatcher")                                                                    \
    X(CP_SCHEME, "cp_scheme")                                                                      \
    X(COMPILE, "compile")                                                                          \
    X(CUDA_GRAPH, "cuda_graph")                                                                    \
    X(MODEL, "name")                                                                               \
    X(GATED, "gated")                                                                              \
    X(TIED, "tied")                                                                                \
    X(HARDWARE, "hardware")                                                                        \
    X(GQA, "")    /* grouped queries on */                                                         \
    X(ENGINE, "") /* DeepSpeed on */                                                               \
    X(METHOD, "") /* of recompute */

enum log_word {
#define X(id, name) LOG_##id,
    LOG_WORD_LIST(X)
#undef X
        LOG_N_WORDS
};
extern const char *const log_word_names[LOG_N_WORDS];

enum log_origin { LOG_ABSENT, LOG_LOGGED, LOG_DERIVED };

struct log_facts {
    double value[LOG_N_FACTS];
    uint8_t origin[LOG_N_FACTS]; /* enum log_origin */
    char word[LOG_N_WORDS][48];
};
void log_fact_set(struct log_facts *facts, enum log_fact fact, double value,
                  enum log_origin origin);
bool log_fact_known(const struct log_facts *facts, enum log_fact fact);
/* Sets what a key and its value say. returns true when the key is known. */
bool log_fact_take(struct log_facts *facts, const char *key, size_t length, const char *value);
/* Fills what `to` lacks. */
void log_facts_merge(struct log_facts *to, const struct log_facts *from);

/* ---- samples ------------------------------------------------------------------------------ */

enum log_drop {
    LOG_KEPT,
    LOG_FIRST_WINDOW, /* first printed window of a launch: compilation, allocation */
    LOG_WARM_UP,      /* leading lines still slower than the steady pace */
    LOG_TOO_FAST,     /* asynchronous dispatch: the clock stopped before the work */
    LOG_SKIPPED,      /* optimizer steps skipped in the window, and the pace differs */
    LOG_EVENT,        /* evaluation, checkpoint or profiler before the line, and it is slow */
    LOG_OUTLIER,      /* more than twice the steady pace */
    LOG_NO_PACE,      /* neither time nor rate */
    LOG_N_DROPS
};
extern const char *const log_drop_names[LOG_N_DROPS];

/* Where a step time comes from, in order of trust. */
enum log_step { LOG_STEP_PRINTED, LOG_STEP_RATE, LOG_STEP_CLOCK, LOG_N_STEPS };
extern const char *const log_step_names[LOG_N_STEPS];

/* One printed iteration, or window of them. */
struct log_sample {
    double iteration, time_s;
    double step_s;      /* seconds per optimizer step */
    double gbs, tokens; /* per step, all GPUs: sequences, tokens */
    double tokens_per_s, gpu_tokens_per_s, samples_per_s;
    double gpu_flop_per_s;
    double skipped;          /* optimizer steps skipped in the window */
    double rate_error;       /* relative, of gpu_tokens_per_s as printed */
    double bar_total;        /* of a progress bar: steps in all */
    double pace;             /* set by the analyser: step_s or its stand-in */
    uint32_t line, n_copies; /* n_copies: further ranks that printed the same */
    uint8_t drop;            /* enum log_drop */
    uint8_t step_origin;     /* enum log_step */
    bool launch;             /* the first line of a launch */
    bool event, average;     /* average: the step is a mean since the start */
};
struct log_sample log_sample_none(const struct log_line *line);

struct log_memory {
    double allocated_bytes, reserved_bytes, device_bytes, other_bytes; /* largest seen */
    double rank; /* that printed the largest reserved */
};

/* What belongs to one launch or excerpt: its samples are [first, first + n) of the log. */
struct log_run {
    struct log_facts facts;
    struct log_memory memory;
    size_t first, n;
};

/* Marks that tell the program that wrote a log; the surest seen wins. */
struct log_framework {
    const char *name;
    uint32_t rank;      /* higher is more specific */
    uint32_t n_warm_up; /* printed lines of a launch whose time means nothing */
};

struct log {
    struct log_run *runs;
    size_t n_runs, runs_capacity;
    struct log_sample *samples, *spare;
    size_t n_samples, samples_capacity;
    size_t n_spare, spare_capacity; /* of timers that are used only when nothing else is there */
    struct log_facts pending;       /* facts since the last sample: of this run or of the next */
    struct log_memory pending_memory;
    bool launch_seen, event_seen, failed;
    bool warmed;               /* the tool warms up before the clock starts (MLPerf) */
    bool sampled_units_differ; /* "step" counted samples */
    struct log_framework framework;
    struct log_sample partial; /* a record printed over several lines */
    bool has_partial;
};

/* Adds a sample: copies of other ranks are merged, a counter that falls back starts a run. */
void log_add(struct log *log, const struct log_sample *sample);
void log_add_spare(struct log *log, const struct log_sample *sample);
/* Where facts of the present line go: they belong to the run of the next sample. */
struct log_facts *log_facts_now(struct log *log);
struct log_memory *log_memory_now(struct log *log);
/* A fact as known by now; NAN: unknown. */
double log_fact_value(const struct log *log, enum log_fact fact);
void log_framework_seen(struct log *log, const char *name, uint32_t rank, uint32_t n_warm_up);
void log_memory_max(double *slot, double bytes);
void log_memory_merge(struct log_memory *to, const struct log_memory *from);

/* ---- parsers: true when the line was theirs ------------------------------------------------ */

bool log_take_mlperf(struct log *log, const struct log_line *line);
bool log_take_pipes(struct log *log, const struct log_line *line);
bool log_take_deepspeed(struct log *log, const struct log_line *line);
bool log_take_other(struct log *log, const struct log_line *line);
bool log_take_lists(struct log *log, const struct log_line *line);
bool log_take_memory(struct log *log, const struct log_line *line);
bool log_take_plan(struct log *log, const struct log_line *line);

/* ---- analysis ------------------------------------------------------------------------------ */

struct log_block {
    size_t first, n; /* samples */
    double gbs;
    uint32_t n_lines, n_kept, n_dropped[LOG_N_DROPS], n_copies;
    double first_iteration, last_iteration, window; /* window: iterations a line covers */
    double median_s, mean_s, mean_all_s, mad_s, q1_s, q3_s, min_s, max_s;
    double gpu_tokens_per_s, rate_error, tokens_per_s, gpu_flop_per_s, samples_per_s, tokens;
    double clock_ratio;  /* step by time stamps over the printed one; NAN: unknown */
    uint8_t step_origin; /* enum log_step, the least trusted of its lines */
    bool drifts;         /* halves differ: no single median */
    bool average, skipped_kept, only_warm_up, tokens_vary;
};

/* The samples of a block while it is analysed. */
struct log_view {
    struct log_sample *samples; /* [n] */
    size_t n;
    double *scratch; /* [n] */
    const struct log_run *run;
    const struct log *log;
};
/* Iterations a line covers: the smallest step of the counter, else the printed interval, else 1. */
double log_view_window(const struct log_view *view);
/* Judges the samples and sums the block up. first: nothing of the run lies before it. */
void log_block_analyse(const struct log_view *view, bool first, struct log_block *block);

#define LOG_MAX_BLOCKS 64 /* of one run; later ones are counted, not kept */

struct log_series {
    struct log_block blocks[LOG_MAX_BLOCKS];
    uint32_t n_blocks, n_more_blocks, main; /* main: the block that speaks for the run */
};

/* Splits a run into blocks and judges its samples. */
void log_series_analyse(struct log *log, const struct log_run *run, struct log_series *out);
/* Joins launches of one job: a run that starts inside the one before, at its pace and with its
 * plan, continues it. */
void log_join_restarts(struct log *log);
/* GPUs as printed, or the product of the sizes; NAN. */
double log_gpus(const struct log_facts *facts);

struct log_answer {
    double step_s, gpu_tokens_per_s, tokens_per_s, gpu_step_tokens;
    bool rate_derived, total_derived;
    char flags[1536]; /* "name: text" lines */
};
/* Completes the facts by exact division and checks them against each other. */
void log_derive(const struct log *log, struct log_run *run, const struct log_series *series,
                struct log_answer *out);

/* The record of a run. */
ty_status log_record(const struct log *log, const struct import_file *file,
                     const struct log_run *run, const struct log_series *series,
                     const struct log_answer *answer, struct ty_import *import,
                     struct ty_error *error);

#endif
