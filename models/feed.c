/* SPDX-License-Identifier: MIT
 *
 * Defaults of storage tiers and of the input pipeline. A batch of one GPU is its share of the
 * samples of a step: gbs x samples per sequence / GPUs, whoever reads them for its group.
 */
#include "models/feed.h"
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>

#define MIB 1048576.0

static double or_default(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* ---- tiers -------------------------------------------------------------------------------- */

/* Sources: nvme: local disks of Azure ND A100 v4, requests of a SuperBench run there; pfs: 200 Gb/s
 * of a storage NIC, 2 TB/s of Llama 3's Tectonic sustained, 2.3 ms to open a file on Lustre;
 * object: 100 Gb/s. The latencies of nvme and object are assumed. Handbook 7.2. */
static const struct {
    const char *name;
    bool shared;
    double read_bytes_per_s, write_bytes_per_s, total_bytes_per_s, ops_per_s, latency_s;
} TIERS[TY_N_TIERS] = {
    [TY_TIER_DRAM] = {"dram", false, 0.0, 0.0, INFINITY, INFINITY, 0.0},
    [TY_TIER_NVME] = {"nvme", false, 9.3e9, 8.2e9, INFINITY, 85138.0, 1e-4},
    [TY_TIER_PFS] = {"pfs", true, 25e9, 25e9, 2e12, INFINITY, 2.3e-3},
    [TY_TIER_OBJECT] = {"object", true, 12.5e9, 12.5e9, INFINITY, INFINITY, 0.05},
};

static const struct cache_policy *policy_of(int choice)
{
    static const char *const names[] = {"no-evict", "no-evict", "lru",   "lfu",
                                        "fifo",     "clock",    "belady"};
    return cache_policy_of(names[choice]);
}

struct tier feed_tier(const struct ty_storage *storage, const struct ty_cluster *cluster,
                      enum ty_tier_id id)
{
    const struct ty_tier *asked = &storage->tier[id];
    const bool dram = id == TY_TIER_DRAM;
    struct tier tier = {.name = TIERS[id].name, .shared = TIERS[id].shared};
    const double host = cluster->host_bytes_per_s;
    tier.read_bytes_per_s =
        or_default(asked->read_bytes_per_s, dram ? host : TIERS[id].read_bytes_per_s);
    const double write = isnan(asked->read_bytes_per_s) && !dram ? TIERS[id].write_bytes_per_s
                                                                 : tier.read_bytes_per_s;
    tier.write_bytes_per_s = or_default(asked->write_bytes_per_s, write);
    tier.total_read_bytes_per_s =
        or_default(asked->total_read_bytes_per_s, TIERS[id].total_bytes_per_s);
    tier.total_write_bytes_per_s =
        or_default(asked->total_write_bytes_per_s, tier.total_read_bytes_per_s);
    tier.ops_per_s = or_default(asked->ops_per_s, TIERS[id].ops_per_s);
    tier.total_ops_per_s = or_default(asked->total_ops_per_s, INFINITY);
    tier.latency_s = or_default(asked->latency_s, TIERS[id].latency_s);
    tier.capacity_bytes =
        or_default(asked->capacity_bytes, dram ? 0.5 * cluster->host_mem_bytes : (double)INFINITY);
    tier.policy = policy_of(asked->policy);
    return tier;
}

/* What one of n equal jobs gets of it. */
static void share_tier(struct tier *tier, double jobs, bool same_data)
{
    tier->total_read_bytes_per_s /= jobs;
    tier->total_write_bytes_per_s /= jobs;
    tier->total_ops_per_s /= jobs;
    if (tier->shared && !same_data)
        tier->capacity_bytes /= jobs;
}

/* ---- input -------------------------------------------------------------------------------- */

/* What a sample is. Sources: text: 2 or 4 bytes of a token (handbook 7.1), tokens and labels of 8
 * bytes to the GPU; image: MLPerf Storage ResNet-50 and 120 images/s of a core (handbook 7.1);
 * video, assumed: 10 s at 5 Mb/s, 300 frames decoded at 200 frames/s of a core, 16 of them kept. */
struct preset {
    double sample_bytes, ready_bytes, decode_s;
    enum ty_input_order order;
};

static struct preset preset_of(enum ty_input_kind kind, const struct setting *setting,
                               const struct ty_plan *plan, double samples_per_sequence)
{
    const double tokens = plan->seq / samples_per_sequence;
    const double token_bytes = setting->model.vocab <= 65536 ? 2.0 : 4.0;
    const double frame_bytes = 3.0 * 224.0 * 224.0;
    switch (kind) {
    case TY_INPUT_IMAGE:
        return (struct preset){114660.0, frame_bytes, 1.0 / 120.0, TY_ORDER_SHARDS};
    case TY_INPUT_VIDEO:
        return (struct preset){6.25e6, 16.0 * frame_bytes, 1.5, TY_ORDER_SHARDS};
    default:
        return (struct preset){tokens * token_bytes, tokens * 16.0, 1e-4, TY_ORDER_RANDOM};
    }
}

static ty_status check_input(const struct ty_storage *storage, const struct ty_cluster *cluster,
                             struct ty_error *error)
{
    const struct ty_input *input = &storage->input;
    const int source = input->storage ? input->storage - 1 : TY_TIER_PFS;
    if (input->decoder != TY_DECODER_CPU && isnan(input->decoder_samples_per_s))
        return error_set(error, TY_ERR_RANGE, "input.decoder_rate",
                         "samples per second of the decoder of a GPU are needed");
    if (input->caches >> source)
        return error_set(error, TY_ERR_RANGE, "input.cache",
                         "must name tiers faster than %s, on which the data lie",
                         TIERS[source].name);
    if (input->caches && isnan(input->data_bytes))
        return error_set(error, TY_ERR_RANGE, "input.data",
                         "the size of the data set is needed: what fits a cache depends on it");
    for (int id = TY_TIER_NVME; id < TY_N_TIERS; id++)
        if (input->caches >> id & 1 && isnan(storage->tier[id].capacity_bytes))
            return error_set(error, TY_ERR_RANGE, "input.cache",
                             "storage.%s.capacity is needed: what fits depends on it",
                             TIERS[id].name);
    if (input->workers > cluster->cpu_cores_per_node)
        return error_set(error, TY_ERR_RANGE, "input.workers",
                         "%u of a GPU need more than the %u cores of a node (host.cpu_cores)",
                         input->workers, cluster->cpu_cores_per_node);
    return TY_OK;
}

ty_status feed_check(const struct ty_storage *storage, const struct ty_cluster *cluster,
                     struct ty_error *error)
{
    const ty_status status = fields_check(TY_KIND_STORAGE, storage, error);
    if (status != TY_OK)
        return status;
    if (!isnan(storage->checkpoint.every_s) && storage->checkpoint.every_steps)
        return error_set(error, TY_ERR_RANGE, "checkpoint.every",
                         "is given as a time and in steps; choose one");
    return storage->input.kind == TY_INPUT_NONE ? TY_OK : check_input(storage, cluster, error);
}

/* The stack of tiers, fastest first, and the share of the reads that each serves. */
static ty_status stack_tiers(const struct ty_storage *storage, const struct setting *setting,
                             const struct ty_allocator *allocator, struct feed_input *out)
{
    const struct ty_input *input = &storage->input;
    const double jobs = input->jobs ? input->jobs : 1.0;
    const uint32_t source = input->storage ? (uint32_t)input->storage - 1 : TY_TIER_PFS;
    for (uint32_t id = 0; id <= source; id++) {
        if (id != source && !(input->caches >> id & 1))
            continue;
        struct tier *tier = &out->levels[out->n_levels];
        out->ids[out->n_levels++] = (enum ty_tier_id)id;
        *tier = feed_tier(storage, &setting->cluster, (enum ty_tier_id)id);
        share_tier(tier, jobs, input->same_data == TY_ON);
    }
    out->shares[0] = 1.0;
    if (out->n_levels == 1)
        return TY_OK;
    const struct tier_data data = {policy_of(0), input->data_bytes, out->loader.nodes,
                                   input->cooperative == TY_ON};
    return tier_shares(out->levels, out->n_levels, &data, allocator, out->shares);
}

static void set_servers(const struct ty_input *input, const struct setting *setting,
                        const struct preset *preset, struct loader *loader)
{
    const bool cpu = input->decoder == TY_DECODER_CPU;
    const int order = input->order ? input->order : (int)preset->order;
    const bool shards = order == TY_ORDER_SHARDS;
    const double cores = setting->cluster.cpu_cores_per_node;
    loader->sample_bytes = or_default(input->sample_bytes, preset->sample_bytes);
    loader->ready_bytes = or_default(input->ready_bytes, preset->ready_bytes);
    loader->request_bytes = or_default(input->request_bytes, shards ? MIB : loader->sample_bytes);
    loader->reads_in_flight = or_default(input->reads_in_flight, shards ? 8.0 : 0.0);
    loader->worker_s = or_default(input->decode_s, cpu ? preset->decode_s : 1e-4);
    loader->workers =
        input->workers ? input->workers : fmax(1.0, floor(cores / loader->gpus_per_node));
    loader->device_samples_per_s = cpu ? (double)INFINITY : input->decoder_samples_per_s;
    loader->copy_bytes_per_s =
        or_default(input->copy_bytes_per_s, setting->cluster.gpu.pcie_bytes_per_s);
    loader->prefetch_batches = or_default(input->prefetch, 2.0);
    for (int stage = 0; stage < LOADER_N_STAGES; stage++)
        loader->in_line[stage] = input->in_line >> stage & 1;
    if (input->decoder == TY_DECODER_GPU)
        loader->in_line[LOADER_DECODE] = true;
}

/* As many batches as host memory holds beside the shuffle buffer. */
static ty_status bound_prefetch(const struct setting *setting, struct feed_input *out,
                                struct ty_error *error)
{
    struct loader *loader = &out->loader;
    const double room = setting->cluster.host_mem_bytes / loader->gpus_per_node;
    const double batch_bytes = loader->batch * loader->ready_bytes;
    if (out->shuffle_bytes > room)
        return error_set(error, TY_ERR_RANGE, "input.shuffle",
                         "%.4g GB of a GPU; host.memory has %.4g GB for each",
                         out->shuffle_bytes * 1e-9, room * 1e-9);
    if (loader->prefetch_batches * batch_bytes > room - out->shuffle_bytes)
        loader->prefetch_batches = floor((room - out->shuffle_bytes) / batch_bytes);
    if (loader->workers * loader->gpus_per_node > setting->cluster.cpu_cores_per_node)
        return error_set(error, TY_ERR_RANGE, "input.workers",
                         "%g of each of %g GPUs need more than the %u cores of a node "
                         "(host.cpu_cores)",
                         loader->workers, loader->gpus_per_node,
                         setting->cluster.cpu_cores_per_node);
    return TY_OK;
}

ty_status feed_input(const struct ty_storage *storage, const struct setting *setting,
                     const struct ty_plan *plan, const struct ty_allocator *allocator,
                     struct feed_input *out, struct ty_error *error)
{
    const struct ty_input *input = &storage->input;
    const struct ty_cluster *cluster = &setting->cluster;
    const double each = or_default(input->samples_per_sequence, 1.0);
    const struct preset preset = preset_of((enum ty_input_kind)input->kind, setting, plan, each);
    *out = (struct feed_input){.variation = or_default(input->variation, 0.0)};
    struct loader *loader = &out->loader;
    *loader = (struct loader){.batch = plan->gbs * each / plan->n_gpus,
                              .gpus_per_node = fmin(plan->n_gpus, cluster->gpus_per_node),
                              .nodes = ceil((double)plan->n_gpus / cluster->gpus_per_node),
                              .cores_per_node = cluster->cpu_cores_per_node,
                              .host_bytes_per_node = cluster->host_mem_bytes,
                              .start_s = or_default(input->epoch_start_s, 0.0)};
    set_servers(input, setting, &preset, loader);
    out->shuffle_bytes = or_default(input->shuffle_samples, 0.0) * loader->sample_bytes;
    out->steps_per_epoch =
        or_default(input->data_bytes, INFINITY) / (loader->sample_bytes * plan->gbs * each);
    ty_status status = bound_prefetch(setting, out, error);
    if (status == TY_OK)
        status = loader_check(loader, error);
    return status == TY_OK ? stack_tiers(storage, setting, allocator, out) : status;
}
