/* SPDX-License-Identifier: MIT
 *
 * trainyard_storage.h: what feeds a training job and what it saves - storage tiers, the input
 * pipeline, checkpoints. Part of the core library; conventions as in trainyard.h. docs/storage.md
 * shows the use. A job given to a predictor (ty_options.storage) gets two more lines in its step:
 *
 *   step time = step + input_stall + checkpoint
 *   input_stall  what a step waits for its batch in the long run
 *   checkpoint   what a save takes from training, over the steps between two saves
 */
#ifndef TRAINYARD_STORAGE_H
#define TRAINYARD_STORAGE_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inputs ------------------------------------------------------------------------------- */

#define TY_TIER_LIST(X)                                                                            \
    X(DRAM, "dram")     /* memory of a node */                                                     \
    X(NVME, "nvme")     /* disks of a node */                                                      \
    X(PFS, "pfs")       /* parallel file system */                                                 \
    X(OBJECT, "object") /* object store */
enum ty_tier_id {
#define X(id, name) TY_TIER_##id,
    TY_TIER_LIST(X)
#undef X
        TY_N_TIERS
};
/* As a choice in a field: 0 is the default, else 1 + enum ty_tier_id. */

enum ty_cache {
    TY_CACHE_AUTO,
    TY_CACHE_NO_EVICT,
    TY_CACHE_LRU,
    TY_CACHE_LFU,
    TY_CACHE_FIFO,
    TY_CACHE_CLOCK,
    TY_CACHE_BELADY
};

/* One tier. NAN: the default of the tier (docs/storage.md, with sources). Rates of a node, and of
 * all nodes together for the shared tiers pfs and object. */
struct ty_tier {
    double read_bytes_per_s, write_bytes_per_s;
    double total_read_bytes_per_s, total_write_bytes_per_s;
    double ops_per_s, total_ops_per_s; /* requests */
    double latency_s;                  /* of a request */
    double capacity_bytes;             /* of a node; of the whole tier where shared */
    double price_tb_month; /* money per 1e12 bytes and month; of a tier of nodes: of each */
    int policy;            /* enum ty_cache, where it caches; default no-evict */
    int over_nic; /* enum ty_switch: its traffic crosses the NICs that training uses; default off */
};

enum ty_input_kind { TY_INPUT_NONE, TY_INPUT_TEXT, TY_INPUT_IMAGE, TY_INPUT_VIDEO };
enum ty_input_order { TY_ORDER_AUTO, TY_ORDER_RANDOM, TY_ORDER_SHARDS };
enum ty_decoder { TY_DECODER_CPU, TY_DECODER_GPU, TY_DECODER_HARDWARE };

/* How samples reach the GPUs. A sample is a sequence of the plan, or one of several in it. */
struct ty_input {
    int kind;                     /* enum ty_input_kind: the preset of what is left open */
    int storage;                  /* tier the data set lies on; default pfs */
    uint32_t caches;              /* bits 1 << enum ty_tier_id: faster tiers that cache it */
    int order;                    /* enum ty_input_order */
    int decoder;                  /* enum ty_decoder */
    double samples_per_sequence;  /* default 1 */
    double sample_bytes;          /* as stored */
    double ready_bytes;           /* as the GPU gets it */
    double request_bytes;         /* of one read; default: the sample, 1 MiB of shards */
    double reads_in_flight;       /* of one GPU beside its workers; default: 0 random, 8 shards */
    double decode_s;              /* CPU time of a sample: decode, augment, tokenise */
    double decoder_samples_per_s; /* of the device of one GPU, when the CPU does not decode */
    uint32_t workers;             /* CPU processes per GPU; default: the cores there are */
    double prefetch;              /* batches ready or under way per GPU; default 2; 0: none */
    double copy_bytes_per_s;      /* host to one GPU; default: the PCIe link */
    uint32_t in_line;             /* bits of fetch, prepare, decode, copy: do not overlap */
    double variation;             /* of the time of a batch, standard deviation / mean; default 0 */
    double data_bytes;            /* of the data set; needed by caches and epochs */
    double shuffle_samples;       /* buffer of a GPU, shards; default 0 */
    double epoch_start_s;         /* from the start of an epoch to its first batch; default 0 */
    uint32_t jobs;                /* equal jobs that read at once, this one included; default 1 */
    int same_data;                /* enum ty_switch: they read the same data; default off */
    int cooperative;              /* enum ty_switch: nodes read each other's caches; default off */
};

enum ty_save_mode { TY_SAVE_NONE, TY_SAVE_SYNC, TY_SAVE_ASYNC };

struct ty_saves {
    int mode;                /* enum ty_save_mode */
    int storage;             /* tier; default pfs */
    double every_s;          /* default: the best where failures are given, else an hour */
    uint32_t every_steps;    /* instead */
    int consolidated;        /* enum ty_switch: one rank writes it all; default off: all ranks */
    double bytes_per_param;  /* default: of the plan's dtypes and optimizer */
    double file_s;           /* create, sync and rename a file; default 2.3 ms (Lustre open) */
    double slowest_writer;   /* its time over the mean, >= 1; default 1 */
    double drain_slow_ratio; /* async: share of training's speed the drain takes; default 0 */
    double host_copies;      /* async: staging buffers; default 1 */
    double readers;          /* restore: replicas that read it all; default 1, then broadcast */
};

struct ty_failures; /* trainyard_cost.h */

/* TY_KIND_STORAGE: paths "storage.TIER...", "input...", "checkpoint...". */
struct ty_storage {
    struct ty_tier tier[TY_N_TIERS];
    struct ty_input input;
    struct ty_saves checkpoint;
    const struct ty_failures *failures; /* for the best interval; NULL: none */
};

/* ---- answers ------------------------------------------------------------------------------ */

#define TY_INPUT_STAGE_LIST(X)                                                                     \
    X(FETCH, "fetch")                                                                              \
    X(PREPARE, "prepare")                                                                          \
    X(DECODE, "decode")                                                                            \
    X(COPY, "copy")
enum ty_input_stage {
#define X(id, name) TY_STAGE_##id,
    TY_INPUT_STAGE_LIST(X)
#undef X
        TY_N_INPUT_STAGES
};
/* "fetch", ...; "none" for TY_N_INPUT_STAGES. */
TY_API const char *ty_input_stage_name(enum ty_input_stage stage);

/* Time of one batch on each server, what the step waits, and the inverse: what a stall below
 * `stall_target` takes, each with what limits it. Of one GPU where no other is named. */
struct ty_input_report {
    double samples;                /* of one GPU in a step */
    double samples_per_s;          /* of all GPUs */
    double sample_bytes, decode_s; /* as used */
    uint32_t workers;
    double prefetch; /* batches, as far as host memory allows */
    double stage_s[TY_N_INPUT_STAGES];
    double stall_s, stall_ratio;
    double fetch_stall_ratio, prepare_stall_ratio; /* preparation free; all samples in memory */
    int limit;                                     /* enum ty_input_stage; TY_N_...: none */
    double storage_gain_pct, workers_gain_pct;     /* tokens/s from 10 % more of it */
    double hit_ratio;                              /* of all caches together */
    double first_batch_s;                          /* from the start to the first batch */
    double host_bytes_per_node;                    /* prefetched batches and shuffle buffer */
    double read_bytes_per_s;                       /* that a node can get, and what sets it */
    const char *read_tier, *read_limit;
    /* the inverse */
    double stall_target;        /* 0.01 */
    double need_workers, cores; /* per GPU; there are */
    double need_node_bytes_per_s, need_total_bytes_per_s;
    double need_node_ops_per_s, need_total_ops_per_s;
    double can_node_bytes_per_s, can_node_ops_per_s; /* latency hidden */
    const char *can_tier, *can_limit;
    double need_reads_in_flight; /* of a node; INFINITY: the tiers cannot */
    double need_copy_bytes_per_s, can_copy_bytes_per_s;
    double max_gpus_per_node; /* the tiers feed */
};

struct ty_save_report {
    double bytes, gpu_bytes, bytes_per_param;
    double copy_s, write_s, blocking_s, drain_s;
    double lost_s, every_s; /* of training a save; between two starts */
    double n_steps;         /* between two */
    double step_s;          /* line of the step */
    double host_bytes_per_node, restore_s;
    double write_bytes_per_s; /* of a node, and what sets it */
    const char *tier, *limit;
    double best_s, young_daly_s; /* NAN without failures */
};

struct ty_storage_report {
    bool has_input, has_checkpoint;
    double money_per_month; /* of the data set, the caches and one checkpoint; NAN: no price */
    struct ty_input_report input;
    struct ty_save_report checkpoint;
};

/* ---- hot and cold data -------------------------------------------------------------------- */

/* A part of a data set that is read alike: bytes > 0, reads_per_s >= 0, of all nodes together. */
struct ty_data_class {
    double bytes, reads_per_s;
};
struct ty_data {
    const struct ty_cluster *cluster;
    const struct ty_storage *storage; /* its tiers; their capacity is the room there is */
    double n_nodes;                   /* >= 1; a tier of nodes holds this many capacities */
    uint32_t tiers;                   /* bits 1 << enum ty_tier_id: those that hold data */
    uint32_t n_classes;
    const struct ty_data_class *classes; /* [n_classes], most reads per byte first */
};

/* Fills the tiers in order, fastest first: the best placement there is when tiers differ in speed
 * only.
 *   placed_bytes  [n_classes][TY_N_TIERS]
 *   share         of the reads that each tier serves
 * Cost O(n_classes). returns TY_OK; TY_ERR_INPUT (the order is not kept); TY_ERR_RANGE;
 * TY_ERR_INFEASIBLE (the tiers do not hold it all). Source: handbook 7.2. */
TY_API TY_MUST_CHECK ty_status ty_data_place(const struct ty_data *data, double *placed_bytes,
                                             double share[TY_N_TIERS], struct ty_error *error);

/* From one placement to another, as reads change; class after class, on a bandwidth that the
 * migration has of its own on every node (INFINITY: as fast as the tiers).
 *
 *   t = sum over moves of bytes / (nodes min(read rate, write rate, migration rate))
 *
 *   before, after_bytes  [n_classes][TY_N_TIERS], each class as many bytes in both
 *   arriving_bytes       on each tier
 * Cost O(n_classes). returns TY_OK, TY_ERR_INPUT (other bytes), TY_ERR_RANGE. */
TY_API TY_MUST_CHECK ty_status ty_data_move(const struct ty_data *data, const double *before_bytes,
                                            const double *after_bytes, double move_bytes_per_s,
                                            double arriving_bytes[TY_N_TIERS], double *time_s,
                                            struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
