/* SPDX-License-Identifier: MIT
 *
 * The field table of storage tiers, input pipeline and checkpoints (trainyard_storage.h). The
 * paths are those of a cluster file ("storage") and of a plan file ("input", "checkpoint").
 */
#include "include/trainyard_storage.h"
#include "models/fields_rows.h"

static const char *const tier_names[] = {"auto",
#define X(id, name) name,
                                         TY_TIER_LIST(X)
#undef X
                                             NULL};
static const char *const cache_names[] = {
#define X(id, name) name,
    TY_TIER_LIST(X)
#undef X
        NULL};
static const char *const policy_names[] = {"auto", "no-evict", "lru",    "lfu",
                                           "fifo", "clock",    "belady", NULL};
static const char *const kind_names[] = {"none", "text", "image", "video", NULL};
static const char *const order_names[] = {"auto", "random", "shards", NULL};
static const char *const decoder_names[] = {"cpu", "gpu", "hardware", NULL};
static const char *const stage_names[] = {
#define X(id, name) name,
    TY_INPUT_STAGE_LIST(X)
#undef X
        NULL};
static const char *const mode_names[] = {"none", "sync", "async", NULL};
static const char *const switch_names[] = {"auto", "off", "on", NULL};

#define TIER_FIELDS(id, P)                                                                         \
    DOUBLE(ty_storage, tier[id].read_bytes_per_s, P "read", BYTES_PER_S, 1e3, 1e16,                \
           "reads of one node"),                                                                   \
        DOUBLE(ty_storage, tier[id].write_bytes_per_s, P "write", BYTES_PER_S, 1e3, 1e16,          \
               "writes of one node; default: its reads"),                                          \
        DOUBLE(ty_storage, tier[id].total_read_bytes_per_s, P "total_read", BYTES_PER_S, 1e3,      \
               1e18, "reads of all nodes together; default of pfs 2 TB/s, else no limit"),         \
        DOUBLE(ty_storage, tier[id].total_write_bytes_per_s, P "total_write", BYTES_PER_S, 1e3,    \
               1e18, "writes of all nodes together; default: total_read"),                         \
        DOUBLE(ty_storage, tier[id].ops_per_s, P "iops", NONE, 1, 1e12,                            \
               "requests per second of one node; default: no limit, nvme 85138"),                  \
        DOUBLE(ty_storage, tier[id].total_ops_per_s, P "total_iops", NONE, 1, 1e15,                \
               "requests per second of all nodes together; default: no limit"),                    \
        DOUBLE(ty_storage, tier[id].latency_s, P "latency", S, 0, 1e3,                             \
               "of one request; default dram 0, nvme 0.1 ms, pfs 2.3 ms, object 50 ms"),           \
        DOUBLE(ty_storage, tier[id].capacity_bytes, P "capacity", BYTES, 1, 1e21,                  \
               "of a node, of pfs and object as a whole; default: half of host memory; no limit"), \
        DOUBLE(ty_storage, tier[id].price_tb_month, P "price_tb_month", NONE, 0, 1e9,              \
               "money per TB and month; default: not counted"),                                    \
        ENUM(ty_storage, tier[id].policy, P "policy", policy_names,                                \
             "of a tier that caches; default no-evict"),                                           \
        ENUM(ty_storage, tier[id].over_nic, P "over_nic", switch_names,                            \
             "its traffic takes from the NICs that training uses; default off")

static const struct ty_field storage_fields[] = {
    TIER_FIELDS(TY_TIER_DRAM, "storage.dram."),
    TIER_FIELDS(TY_TIER_NVME, "storage.nvme."),
    TIER_FIELDS(TY_TIER_PFS, "storage.pfs."),
    TIER_FIELDS(TY_TIER_OBJECT, "storage.object."),
    ENUM(ty_storage, input.kind, "input.kind", kind_names,
         "what is trained on, the preset of the rest; default none: no input pipeline"),
    ENUM(ty_storage, input.storage, "input.storage", tier_names,
         "tier the data set lies on; default pfs"),
    FLAGS(ty_storage, input.caches, "input.cache", cache_names, 0,
          "faster tiers that cache it: dram,nvme; default none"),
    ENUM(ty_storage, input.order, "input.order", order_names,
         "random access to samples or shards with a shuffle buffer; default random for text"),
    ENUM(ty_storage, input.decoder, "input.decoder", decoder_names,
         "what decodes: cpu (default), gpu (between steps), or hardware beside it"),
    DOUBLE(ty_storage, input.samples_per_sequence, "input.samples_per_sequence", NONE, 1e-6, 1e9,
           "samples in a sequence of the plan; default 1"),
    DOUBLE(ty_storage, input.sample_bytes, "input.sample_bytes", BYTES, 1, 1e15,
           "a sample as stored; default: of the kind"),
    DOUBLE(ty_storage, input.ready_bytes, "input.ready_bytes", BYTES, 1, 1e15,
           "a sample as the GPU gets it; default: of the kind"),
    DOUBLE(ty_storage, input.request_bytes, "input.request_bytes", BYTES, 1, 1e12,
           "one read; default: the sample, of shards 1 MiB"),
    DOUBLE(ty_storage, input.reads_in_flight, "input.reads_in_flight", NONE, 0, 1e9,
           "of one GPU beside its workers; default 0: a worker waits for its own; 8 of shards"),
    DOUBLE(ty_storage, input.decode_s, "input.decode", S, 0, 1e6,
           "CPU time of a sample: decode, augment, tokenise; default: of the kind"),
    DOUBLE(ty_storage, input.decoder_samples_per_s, "input.decoder_rate", NONE, 1e-6, 1e12,
           "samples per second of the decoder of one GPU; needed with gpu and hardware"),
    U32(ty_storage, input.workers, "input.workers", COUNT, 1, 65536,
        "CPU processes per GPU; default: the cores of a node over its GPUs"),
    DOUBLE(ty_storage, input.prefetch, "input.prefetch", NONE, 0, 1e6,
           "batches of a GPU ready or under way; default 2; 0: made when asked for"),
    DOUBLE(ty_storage, input.copy_bytes_per_s, "input.copy", BYTES_PER_S, 1e3, 1e16,
           "host to one GPU; default: its PCIe link"),
    FLAGS(ty_storage, input.in_line, "input.in_line", stage_names, 0,
          "stages that do not overlap the step; default none"),
    DOUBLE(ty_storage, input.variation, "input.variation", RATIO, 0, 100,
           "standard deviation over mean of the time of a batch; default 0"),
    DOUBLE(ty_storage, input.data_bytes, "input.data", BYTES, 1, 1e21,
           "size of the data set; caches and pauses between epochs need it"),
    DOUBLE(ty_storage, input.shuffle_samples, "input.shuffle", NONE, 0, 1e12,
           "samples in the shuffle buffer of one GPU, order shards; default 0"),
    DOUBLE(ty_storage, input.epoch_start_s, "input.epoch_start", S, 0, 1e6,
           "pause at the start of an epoch; default 0"),
    U32(ty_storage, input.jobs, "input.jobs", COUNT, 1, 65536,
        "equal jobs that share the tiers, this one included; default 1"),
    ENUM(ty_storage, input.same_data, "input.same_data", switch_names,
         "they read the same data set, so caches hold it once; default off"),
    ENUM(ty_storage, input.cooperative, "input.cooperative", switch_names,
         "a node reads what the caches of others hold; default off: each caches for itself"),
    ENUM(ty_storage, checkpoint.mode, "checkpoint.mode", mode_names,
         "training waits for the tier (sync) or for the copy to host memory (async); default none"),
    ENUM(ty_storage, checkpoint.storage, "checkpoint.storage", tier_names,
         "tier it is written to; default pfs"),
    DOUBLE(ty_storage, checkpoint.every_s, "checkpoint.every", S, 1e-3, 1e9,
           "between two saves; default: the best with --mtbf, else 1 h"),
    U32(ty_storage, checkpoint.every_steps, "checkpoint.every_steps", COUNT, 1, 4294967295,
        "the same in steps"),
    ENUM(ty_storage, checkpoint.consolidated, "checkpoint.consolidated", switch_names,
         "one rank writes it all; default off: every rank its share"),
    DOUBLE(ty_storage, checkpoint.bytes_per_param, "checkpoint.bytes_per_param", NONE, 0.01, 1000,
           "default: weights, master and moments of the plan"),
    DOUBLE(ty_storage, checkpoint.file_s, "checkpoint.file", S, 0, 1e3,
           "create, sync and rename a file; default 2.3 ms"),
    DOUBLE(ty_storage, checkpoint.slowest_writer, "checkpoint.slowest_writer", RATIO, 1, 1e4,
           "time of the slowest writer over the mean; default 1"),
    DOUBLE(ty_storage, checkpoint.drain_slow_ratio, "checkpoint.drain_slow", RATIO, 0, 0.99,
           "async: share of the training speed that the drain takes; default 0"),
    DOUBLE(ty_storage, checkpoint.host_copies, "checkpoint.host_copies", NONE, 1, 16,
           "async: staging buffers in host memory; default 1"),
    DOUBLE(ty_storage, checkpoint.readers, "checkpoint.readers", NONE, 1, 1e6,
           "restore: replicas that read it all; default 1, the others by broadcast"),
};

const struct ty_field *fields_storage(size_t *n)
{
    *n = sizeof storage_fields / sizeof *storage_fields;
    return storage_fields;
}
