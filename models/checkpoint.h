/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: bytes from dtypes and sharding, save and restore time (handbook 7.5).
 *
 *   bytes     = P (weight + master + moments)
 *   save      = max(node bytes / B_node, total / B_total, files * t_file / nodes) * slowest writer
 *   blocking  = quiesce + D2H copy [+ save, when synchronous]
 *   restore   = max(node bytes / B_node, total * readers / B_total)
 */
#ifndef MODELS_CHECKPOINT_H
#define MODELS_CHECKPOINT_H

#include "models/tiers.h"

/* Bytes per parameter; 0 where a part is not kept. Gradients are never saved. */
struct checkpoint_format {
    double weight_bytes, master_bytes, moment_bytes, n_moments;
};
double checkpoint_param_bytes(const struct checkpoint_format *format);
/* What a resolved plan keeps: 16-bit weights with an fp32 master, or 32-bit weights alone; Adam's
 * two moments in fp32, bf16 or 8 bits; SGD's one in fp32. */
struct checkpoint_format checkpoint_format_of(const struct ty_plan *plan);

enum checkpoint_mode {
    CHECKPOINT_SYNC, /* training waits for the tier */
    CHECKPOINT_ASYNC /* training waits for the copy to host memory, a process drains it */
};

struct checkpoint {
    double bytes; /* of the whole, every parameter once */
    double gpus, gpus_per_node;
    double writers; /* ranks that write, evenly over the nodes: all, or those of one
                       replica; 1: consolidated on one rank */
    double files;   /* created one after the other on each node */
    double file_s;  /* create, sync and rename one file */
    double request_bytes, requests_in_flight; /* writes and reads of one node */
    double copy_bytes_per_s;                  /* device to host, of one GPU */
    double quiesce_s;                         /* barrier and bookkeeping before the copy */
    double slowest_writer;                    /* its time over the mean, >= 1 */
    double drain_slow_ratio; /* async: share of the training speed that the drain takes, < 1 */
    double host_copies;      /* async: staging buffers, 1, or 2 when the next may overlap */
    double readers;          /* restore: replicas that read it all; 1: one reads, the rest
                                get it by broadcast */
    enum checkpoint_mode mode;
};

struct checkpoint_cost {
    double gpu_bytes;       /* of a GPU that writes */
    double copy_s, write_s; /* device to host; host to tier */
    double blocking_s;      /* training stands still */
    double drain_s; /* async: until it is safe, after that, and before the next save may begin;
                       0 when synchronous */
    double lost_s;  /* of training: blocking, and what the drain slows */
    double host_bytes_per_node;
    double restore_s;
    struct tier_rate write; /* of one node, and the limit that sets it */
    bool file_bound;        /* files, not bytes, set the time */
};

/* returns TY_OK or TY_ERR_RANGE; error names the field. */
ty_status checkpoint_check(const struct checkpoint *checkpoint, struct ty_error *error);
/* The cost on a tier of which other traffic takes `busy_ratio`, 0 <= r < 1, of the bandwidth (the
 * loaders, other jobs: see tier_divide). The checkpoint must fit the tier: TY_ERR_INFEASIBLE. */
ty_status checkpoint_cost(const struct checkpoint *checkpoint, const struct tier *tier,
                          double busy_ratio, struct checkpoint_cost *out, struct ty_error *error);

#endif
