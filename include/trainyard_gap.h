/* SPDX-License-Identifier: MIT
 *
 * Measured against predicted: what a profile, a log or one figure says about a step, and how much
 * of the difference each cause explains. Part of libtrainyard-tools; conventions as in trainyard.h,
 * manual in docs/explain.md.
 */
#ifndef TRAINYARD_GAP_H
#define TRAINYARD_GAP_H

#include "trainyard_explain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- profiles ------------------------------------------------------------------------------ */

/* What runs on a device, told by the names of kernels. In this order: where several run at once,
 * the time counts for the first. */
#define TY_ACTIVITY_LIST(X)                                                                        \
    X(GEMM, "gemm")                                                                                \
    X(ATTENTION, "attention")                                                                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(MEMORY_BOUND, "memory_bound")                                                                \
    X(UNKNOWN, "unrecognised")                                                                     \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(SEND_RECV, "send_recv")                                                                      \
    X(OTHER_COMM, "other_comm")                                                                    \
    X(MEMCPY, "memcpy")

enum ty_activity {
#define X(id, name) TY_ACTIVITY_##id,
    TY_ACTIVITY_LIST(X)
#undef X
        TY_N_ACTIVITIES
};
/* "gemm", "all_reduce", ...; static. */
TY_API const char *ty_activity_name(enum ty_activity activity);
/* The activity of a kernel, from its (demangled) name. */
TY_API enum ty_activity ty_activity_of(const char *kernel_name);

/* One step of one device, the mean over the steps of a profile. */
struct ty_timeline {
    double step_s;
    uint32_t n_steps;
    bool marked; /* steps found by their marks; otherwise the profile was taken as n_steps */
    uint32_t device, n_devices;      /* the busiest of those in the profile */
    uint64_t n_kernels;              /* in all steps */
    double busy_s[TY_N_ACTIVITIES];  /* while at least one such kernel runs */
    double alone_s[TY_N_ACTIVITIES]; /* and none of an activity before it: with idle_s they add up
                                        to step_s */
    double idle_s;                   /* nothing runs */
    double comm_s, exposed_comm_s;   /* any communication; beside no computation */
    char unknown[160];               /* the unrecognised kernel that ran longest */
};

/* Reads an SQLite export of Nsight Systems or the JSON trace of the PyTorch profiler, told apart by
 * their content. Steps are the NVTX ranges or annotations "ProfilerStep#N", "step N", "iteration
 * N"; n_steps > 0: there are no marks to look for, the profile covers so many. Any bytes are safe;
 * cost: linear, 64 B of memory a kernel. returns TY_OK, TY_ERR_IO, TY_ERR_NOMEM, TY_ERR_INPUT: no
 * such profile, compressed, damaged, or without a kernel. */
TY_API TY_MUST_CHECK ty_status ty_timeline_load(const char *path, uint32_t n_steps,
                                                struct ty_timeline *out, struct ty_error *error);

/* ---- logs ---------------------------------------------------------------------------------- */

/* The run of a training log with the most steady lines. */
struct ty_logged {
    struct ty_plan plan;         /* what the log says of it; the rest at its default marker */
    double step_s;               /* NAN: not printed and not derived */
    double tokens_per_s_per_gpu; /* NAN: same */
    char format[32];
};
/* Reads a log as ty_import_file does. Cost and returns are its own. */
TY_API TY_MUST_CHECK ty_status ty_logged_load(const char *path, struct ty_logged *out,
                                              struct ty_error *error);

/* ---- the gap ------------------------------------------------------------------------------- */

struct ty_gap_line {
    char name[48];
    double predicted_s, measured_s;
};

struct ty_gap_cause {
    char text[200];
    double time_s;        /* it adds to the predicted step; negative: it takes away */
    double explained_pct; /* of the gap */
};

#define TY_MAX_GAP_LINES  16
#define TY_MAX_GAP_CAUSES 96

/* With lines the causes are observed and add up, with unexplained_pct, to 100 %. Without, they are
 * candidates, each alone: one figure cannot tell them apart. */
struct ty_gap {
    double predicted_s, measured_s;
    bool within_80; /* the measured step lies in the 80 % interval of the prediction */
    uint32_t n_lines, n_causes;
    struct ty_gap_line lines[TY_MAX_GAP_LINES];    /* add up to both steps */
    struct ty_gap_cause causes[TY_MAX_GAP_CAUSES]; /* what explains most first; candidates: what
                                                      is nearest to 100 % */
    double unexplained_pct;
};

/* From a timeline, line by line. Both are pure and take less than 1 ms; nothing is allocated. */
TY_API void ty_gap_of_timeline(const struct ty_prediction *prediction,
                               const struct ty_timeline *timeline, struct ty_gap *out);
/* From a step time alone. `prediction` with the effects of its notes (ty_options.effects). */
TY_API void ty_gap_of_step(const struct ty_prediction *prediction,
                           const struct ty_explanation *explanation, double measured_s,
                           struct ty_gap *out);

#ifdef __cplusplus
}
#endif
#endif
