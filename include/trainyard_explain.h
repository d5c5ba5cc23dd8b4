/* SPDX-License-Identifier: MIT
 *
 * Why a step takes as long as it does: its critical path, what each resource would buy, and what
 * every legal change of one knob of the plan would do. Part of the core library (libtrainyard);
 * conventions as in trainyard.h. docs/explain.md is the manual.
 */
#ifndef TRAINYARD_EXPLAIN_H
#define TRAINYARD_EXPLAIN_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a machine has more or less of. "+10 %" of latency and host means 1/1.1 of the time. */
#define TY_RESOURCE_LIST(X)                                                                        \
    X(FLOPS, "flops")     /* peak rate of matrix multiplication and attention */                   \
    X(HBM, "hbm")         /* bandwidth of device memory */                                         \
    X(SCALEUP, "scaleup") /* NVLink, xGMI or PCIe inside a domain */                               \
    X(NIC, "nic")         /* bandwidth of the network interfaces */                                \
    X(SPINE, "spine")     /* what oversubscription leaves above the leaf switches */               \
    X(LATENCY, "latency") /* of collectives and messages */                                        \
    X(HOST, "host")       /* issuing kernels, their floor, fixed times per step and pass */        \
    X(HOST_MEMORY, "host_memory") /* its bandwidth and the link to it, for what is offloaded */    \
    X(MEMORY, "memory")           /* capacity of the device */

enum ty_resource {
#define X(id, name) TY_RESOURCE_##id,
    TY_RESOURCE_LIST(X)
#undef X
        TY_N_RESOURCES
};
/* "flops", "hbm", ...; "none" for TY_N_RESOURCES. */
TY_API const char *ty_resource_name(enum ty_resource resource);

/* One task of the critical path. It started when the segment before it ended: that is what it
 * waited for. */
struct ty_path_segment {
    double start_s, end_s;
    uint32_t rank, micro, chunk; /* as in a trace event */
    const char *stream, *name;
    bool same_stream; /* the segment before ran on the same stream of the same rank */
    /* share[r] = - d ln(duration) / d ln(resource); they add up to 1, but for MEMORY, which is 0 */
    double share[TY_N_RESOURCES];
    enum ty_resource binding; /* the largest share; TY_N_RESOURCES: none has any */
};

/* The plan with one knob changed: legal, and simulated whether it fits or not. */
struct ty_change {
    char knob[32], from[32], to[32]; /* "tp", "4", "8"; "overlap tp", "off", "on" */
    enum ty_fit fit;
    bool numerics;                /* computes something else: precision, gradient type */
    double step_time_s, step_pct; /* change of the step time; NAN: a limit was reached */
    double peak_bytes, peak_change_bytes, headroom_bytes;
    struct ty_plan plan; /* resolved */
};

struct ty_sensitivity {
    double path_share; /* -d ln(step) / d ln(resource) along the critical path */
    double gain_pct;   /* of tokens/s with 10 % more of it, simulated. MEMORY: by the best change
                          that fits only then */
};

/* Arrays belong to the predictor and live until its next call. */
struct ty_explanation {
    double step_time_s; /* of one rank per stage, also when every rank was simulated */
    uint32_t n_segments, n_changes;
    const struct ty_path_segment *segments; /* [n_segments], from 0 to the end of the step */
    struct ty_sensitivity resources[TY_N_RESOURCES];
    const struct ty_change *changes; /* [n_changes]: what fits first, fastest first */
    uint32_t best;        /* the change to make next; n_changes: none gains 0.1 % without changing
                             the numerics */
    uint32_t memory_best; /* the change that 10 % more memory would allow; n_changes: none */
};

/* Predicts a plan (as ty_predictor_run) and explains the step. An infeasible plan, or a rung below
 * simulate, leaves `out` without segments and changes and step_time_s NAN. Cost: about 50
 * simulations. returns as ty_predictor_run. */
TY_API TY_MUST_CHECK ty_status ty_predictor_explain(
    ty_predictor *predictor, const struct ty_plan *plan, const struct ty_options *options,
    struct ty_prediction *prediction, struct ty_explanation *out, struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
