/* SPDX-License-Identifier: MIT
 *
 * The input pipeline of one GPU as servers (handbook 7.1, 7.4): fetch from a stack of tiers,
 * prepare on CPU workers, decode on a device, copy to the GPU.
 *
 *   T = max(T_gpu, t_i of the stages that overlap) + sum of t_i of those that do not
 *   stall = 1 - T_gpu / T
 *
 * t_i: time of one batch on stage i when that stage is all there is. Without prefetch no stage
 * overlaps: every batch is made when it is asked for.
 */
#ifndef MODELS_LOADER_H
#define MODELS_LOADER_H

#include "models/tiers.h"

#define LOADER_STAGE_LIST(X)                                                                       \
    X(FETCH, "fetch")                                                                              \
    X(PREPARE, "prepare")                                                                          \
    X(DECODE, "device decode")                                                                     \
    X(COPY, "copy to the GPU")

enum loader_stage {
#define X(id, text) LOADER_##id,
    LOADER_STAGE_LIST(X)
#undef X
        LOADER_N_STAGES /* as a limit: the GPU itself */
};
const char *loader_stage_text(enum loader_stage stage);

struct loader {
    double batch;                /* samples of one GPU in one step */
    double sample_bytes;         /* as stored */
    double ready_bytes;          /* as the GPU gets it */
    double request_bytes;        /* of one read: a sample, a shard chunk, a page */
    double worker_s;             /* CPU time of one sample: decode, augment, tokenise */
    double workers;              /* of one GPU, one core each */
    double reads_in_flight;      /* of one GPU, beside the workers; 0: a worker waits for its own */
    double device_samples_per_s; /* GPU or FPGA decoder of one GPU; INFINITY: none */
    double copy_bytes_per_s;     /* host to device, of one GPU */
    double prefetch_batches;     /* ready and waiting, of one GPU; 0: none */
    double start_s;              /* from the start of an epoch to its first batch */
    double gpus_per_node, nodes;
    double cores_per_node;         /* for workers; INFINITY: enough */
    double host_bytes_per_node;    /* for prefetched batches; INFINITY: enough */
    bool in_line[LOADER_N_STAGES]; /* a stage that does not overlap, prefetch or not */
};

/* Where the samples come from: a stack of tiers and the share of the reads each serves. */
struct loader_source {
    const struct tier *levels;
    const double *shares; /* [n_levels], sum 1 */
    uint32_t n_levels;
};

struct loader_step {
    double stage_s[LOADER_N_STAGES];
    double step_s, stall_ratio;
    enum loader_stage limit; /* the longest; LOADER_N_STAGES when the GPU does not wait */
    /* Differential (2007.06775): stall with preparation free, and with all samples in memory. */
    double fetch_stall_ratio, prepare_stall_ratio;
    struct tier_rate read; /* what a node can read */
    double memory_bytes;   /* of one node, prefetched batches */
};

/* returns TY_OK or TY_ERR_RANGE (error names the field). */
ty_status loader_check(const struct loader *loader, struct ty_error *error);
/* One steady step. Cores and host memory must suffice: TY_ERR_INFEASIBLE says which does not. */
ty_status loader_step(const struct loader *loader, const struct loader_source *source,
                      double compute_s, struct loader_step *out, struct ty_error *error);

/* A step of these stages, by the equation above. */
double loader_time_s(const struct loader *loader, const double *stage_s, double compute_s);

/* The inverse: what a stall of at most `stall_ratio` needs, stages overlapping. */
struct loader_need {
    double workers;       /* per GPU, whole */
    double cores_per_gpu; /* the same before rounding */
    double node_bytes_per_s, total_bytes_per_s;
    double node_ops_per_s, total_ops_per_s;
    double in_flight;            /* reads of one node; INFINITY: the tiers cannot */
    double copy_bytes_per_s;     /* host to device, per GPU */
    double device_samples_per_s; /* per GPU, if a device decodes */
    double max_gpus_per_node;    /* that the tiers feed, latency hidden */
    struct tier_rate read;       /* and the limit that sets it */
    bool cores_suffice;
};
void loader_need(const struct loader *loader, const struct loader_source *source, double compute_s,
                 double stall_ratio, struct loader_need *out);

/* Samples per second of all GPUs over an epoch of n steps: N b n / (start + n T). */
double loader_epoch_samples_per_s(const struct loader *loader, double step_s, double n_steps);

/* Workers that make whole batches in turn and a queue between them and the GPU, with random batch
 * times (mean t, coefficient of variation v, log-normal):
 *   start_i = max(end_{i-W}, begin_{i-Q})   end_i = start_i + t_i
 *   begin_i = max(begin_{i-1} + T_gpu, end_i)          batches in order, Q of them under way */
struct loader_queue {
    double batch_s, variation; /* of one worker; v >= 0 */
    double compute_s;
    uint32_t workers, queue; /* W, Q >= 1 */
    uint32_t n_steps;
    uint64_t seed;
};
/* Time of n_steps and the part of it the GPU waited, the first batch included. */
ty_status loader_replay(const struct loader_queue *queue, const struct ty_allocator *allocator,
                        double *time_s, double *wait_s);

#endif
