/* SPDX-License-Identifier: MIT
 * The input pipeline: UT-7.1 to 7.3, cases S01, S03, S05 of the shared list (thread beside each),
 * tiers against hand-worked figures, and properties. UT-7.4 is in tests/cache.c. */
#include "models/loader.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static const double ALL = 1.0;

static struct tier fast_tier(void)
{
    return (struct tier){.name = "memory",
                         .read_bytes_per_s = (double)INFINITY,
                         .total_read_bytes_per_s = (double)INFINITY,
                         .write_bytes_per_s = (double)INFINITY,
                         .total_write_bytes_per_s = (double)INFINITY,
                         .ops_per_s = (double)INFINITY,
                         .total_ops_per_s = (double)INFINITY,
                         .capacity_bytes = (double)INFINITY};
}

/* A pipeline without limits: workers and tier are as fast as can be. */
static struct loader free_loader(double batch, double sample_bytes)
{
    return (struct loader){.batch = batch,
                           .sample_bytes = sample_bytes,
                           .ready_bytes = sample_bytes,
                           .request_bytes = sample_bytes,
                           .workers = 1,
                           .device_samples_per_s = (double)INFINITY,
                           .copy_bytes_per_s = (double)INFINITY,
                           .prefetch_batches = 2,
                           .gpus_per_node = 1,
                           .nodes = 1,
                           .cores_per_node = (double)INFINITY,
                           .host_bytes_per_node = (double)INFINITY};
}

static struct loader_need need_of(const struct loader *loader, const struct tier *tier,
                                  double compute_s, double stall_ratio)
{
    const struct loader_source source = {tier, &ALL, 1};
    struct loader_need need;
    loader_need(loader, &source, compute_s, stall_ratio, &need);
    return need;
}

/* ---- handbook 7.1 ---------------------------------------------------------------------------- */

/* mlcommons/storage: configs/dlio/workload; UT-7.1: rates of one accelerator. */
static void ut_7_1(void)
{
    const struct {
        const char *name;
        double bytes, batch, compute_s, bytes_per_s;
    } rows[] = {{"UT-7.1: UNet3D on an H100", 146600628, 7, 0.323, 3.177e9},
                {"UT-7.1: UNet3D on an A100", 146600628, 7, 0.636, 1.614e9},
                {"UT-7.1: ResNet-50 on an H100", 114660.07, 400, 0.224, 204.8e6},
                {"UT-7.1: CosmoFlow on an H100", 2828486, 1, 0.0035, 808.1e6}};
    const struct tier tier = fast_tier();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct loader loader = free_loader(rows[i].batch, rows[i].bytes);
        near(need_of(&loader, &tier, rows[i].compute_s, 0.0).node_bytes_per_s, rows[i].bytes_per_s,
             3e-4, rows[i].name);
    }
    struct loader loader = free_loader(7, 146600628);
    loader.gpus_per_node = 8;
    loader.nodes = 2;
    within(need_of(&loader, &tier, 0.323, 0.0).total_bytes_per_s, 50.8e9, 0.05e9,
           "UT-7.1: 16 of them need 50.8 GB/s");
}

/* 158.48 tokens/s per GPU, 16,384 GPUs, 4 bytes per token; one sequence of 8192 per step. */
static void ut_7_2(void)
{
    const struct tier tier = fast_tier();
    struct loader loader = free_loader(8192, 4);
    loader.gpus_per_node = 8;
    loader.nodes = 2048;
    loader.request_bytes = 8192 * 4;
    const struct loader_need need = need_of(&loader, &tier, 8192 / 158.48, 0.0);
    within(need.total_bytes_per_s / 4, 2.597e6, 0.0005e6, "UT-7.2: tokens per second");
    within(need.total_bytes_per_s, 10.4e6, 0.05e6, "UT-7.2: 10.4 MB/s of text");
    near(need.total_ops_per_s, 2.597e6 / 8192, 1e-3, "UT-7.2: 317 reads per second");
}

/* ResNet-50 on an H100 at 120 images/s of a core; and the step with one worker less. */
static void ut_7_3(void)
{
    const struct tier tier = fast_tier();
    const struct loader_source source = {&tier, &ALL, 1};
    struct loader loader = free_loader(400, 114660.07);
    loader.worker_s = 1.0 / 120;
    loader.gpus_per_node = 8;
    loader.cores_per_node = 112;
    struct loader_need need = need_of(&loader, &tier, 0.224, 0.0);
    within(need.cores_per_gpu, 14.9, 0.05, "UT-7.3: 14.9 cores per GPU");
    ok(need.workers == 15 && !need.cores_suffice, "15 workers, 8 x 15 > 112 cores");
    loader.cores_per_node = 120;
    need = need_of(&loader, &tier, 0.224, 0.0);
    ok(need.cores_suffice, "120 cores suffice");
    struct loader_step step;
    struct ty_error error;
    loader.workers = 15;
    ok(loader_step(&loader, &source, 0.224, &step, &error) == TY_OK && step.stall_ratio == 0.0 &&
           step.limit == LOADER_N_STAGES,
       "15 workers: no stall");
    loader.workers = 14; /* 400 / 14 / 120 = 0.23810 s */
    ok(loader_step(&loader, &source, 0.224, &step, &error) == TY_OK, "14 workers");
    near(step.step_s, 400.0 / 14 / 120, 1e-12, "14 workers: the step takes b t / W");
    near(step.stall_ratio, 1 - 0.224 * 14 * 120 / 400, 1e-12, "14 workers: stall");
    ok(step.limit == LOADER_PREPARE && step.fetch_stall_ratio == 0.0 &&
           step.prepare_stall_ratio == step.stall_ratio,
       "a stall of preparation, not of the fetch");
    loader.workers = 16;
    ok(loader_step(&loader, &source, 0.224, &step, &error) == TY_ERR_INFEASIBLE &&
           strcmp(error.where, "workers") == 0,
       "16 workers x 8 GPUs do not fit on 120 cores");
}

/* ---- shared cases ---------------------------------------------------------------------------- */

/* mlcommons/storage issue 692: GiB/s of one accelerator; accelerators that a 100 Gb/s NIC feeds:
 * 1, 2, 3 to 4. One NIC efficiency, 0.6, explains all three. */
static void case_s01(void)
{
    const struct {
        double compute_s, gib_per_s, least, most;
    } rows[] = {{0.162, 5.9, 1, 1}, {0.323, 2.96, 2, 2}, {0.636, 1.5, 3, 4}};
    struct tier nic = fast_tier();
    nic.read_bytes_per_s = 0.6 * 12.5e9;
    const struct loader loader = free_loader(7, 146600628);
    for (int i = 0; i < 3; i++) {
        const struct loader_need need = need_of(&loader, &nic, rows[i].compute_s, 0.0);
        within(need.node_bytes_per_s / 0x1p30, rows[i].gib_per_s, 0.05, "S01: GiB/s");
        ok(need.max_gpus_per_node >= rows[i].least && need.max_gpus_per_node <= rows[i].most,
           "S01: accelerators per NIC");
    }
}

/* mlcommons/storage issue 330: 2,000 steps of 0.636 s; utilisation 99.05 % without the first step,
 * 1286.42 s elapsed: so the first batch took 1286.42 - 1999 * 0.636 / 0.9905 - 0.636 = 2.2 s. */
static void case_s03(void)
{
    struct loader loader = free_loader(7, 146600628);
    loader.start_s = 2.2;
    const double samples_per_s = loader_epoch_samples_per_s(&loader, 0.636 / 0.9905, 2000);
    near(samples_per_s, 10.8946, 0.003, "S03: samples per second");
    near(2000 * 7 / samples_per_s, 1286.42, 0.0005, "S03: elapsed");
    within(samples_per_s * 146600628 / 0x1p20, 1522, 0.003 * 1522, "S03: MiB/s");
}

/* open-edge-platform/geti pull request 5958: 0.1 s of compute, waits of 0.217 s and 3 it/s with 2
 * workers that the loop waits for; 13 it/s when hidden (0.077 s: the compute was a bit less). */
static void case_s05(void)
{
    const struct tier tier = fast_tier();
    const struct loader_source source = {&tier, &ALL, 1};
    struct loader loader = free_loader(1, 1);
    struct loader_step step;
    loader.workers = 2;
    loader.worker_s = 2 * 0.217;
    loader.prefetch_batches = 0;
    ok(loader_step(&loader, &source, 0.1, &step, NULL) == TY_OK, "S05: not overlapped");
    within(1 / step.step_s, 3, 0.5, "S05: 3 it/s, compute and data in line");
    loader.prefetch_batches = 2;
    ok(loader_step(&loader, &source, 0.1, &step, NULL) == TY_OK, "S05: prefetch");
    near(step.step_s, 0.217, 1e-12, "S05: with prefetch the longer of the two");
    ok(need_of(&loader, &tier, 0.1, 0.0).workers == 5, "S05: 5 workers hide it (0.434 / 0.1)");
}

/* ---- tiers ----------------------------------------------------------------------------------- */

static void tiers(void)
{
    struct tier disk = fast_tier();
    disk.read_bytes_per_s = 10e9;
    disk.total_read_bytes_per_s = 40e9;
    disk.ops_per_s = 1e6;
    disk.total_ops_per_s = 2e6;
    struct tier_use use = {1, 1e6, (double)INFINITY, false};
    struct tier_rate rate = tier_rate(&disk, &use);
    ok(rate.bytes_per_s == 10e9 && rate.limit == TIER_NODE_BANDWIDTH, "1 node: its bandwidth");
    use.nodes = 8;
    rate = tier_rate(&disk, &use);
    ok(rate.bytes_per_s == 5e9 && rate.limit == TIER_TOTAL_BANDWIDTH, "8 nodes share 40 GB/s");
    use = (struct tier_use){1, 4096, (double)INFINITY, false};
    rate = tier_rate(&disk, &use);
    near(rate.bytes_per_s, 4096e6, 1e-12, "4 KiB: a million requests per second");
    ok(rate.limit == TIER_NODE_OPS, "4 KiB: requests of the node");
    use.nodes = 4;
    rate = tier_rate(&disk, &use);
    near(rate.bytes_per_s, 4096 * 0.5e6, 1e-12, "4 nodes: half a million each");
    ok(rate.limit == TIER_TOTAL_OPS, "requests of the whole tier");
    /* SuperBench A100 VM: 85138.9 requests/s of 4 KiB are 348.7 MB/s (microsoft/superbenchmark). */
    disk.ops_per_s = 85138.9;
    use.nodes = 1;
    near(tier_rate(&disk, &use).bytes_per_s, 348.7e6, 3e-4, "throughput = requests x block");
    use = (struct tier_use){1, 1, (double)INFINITY, true};
    near(tier_rate(&disk, &use).bytes_per_s, 85138.9, 1e-12, "writes take requests too");
}

/* 8 MB objects, 40 ms to the first byte, 2.5 GB/s: alone a request takes 43.2 ms; at 2 GB/s
 * (4 ms a request) 0.8 ms are left for latency, so 50 in flight. */
static void object_store(void)
{
    struct tier store = fast_tier();
    store.read_bytes_per_s = 2.5e9;
    store.latency_s = 0.040;
    const struct tier_use one = {1, 8e6, 1, false}, fifty = {1, 8e6, 50, false};
    struct tier_rate rate = tier_rate(&store, &one);
    near(rate.bytes_per_s, 8e6 / 0.0432, 1e-12, "one request at a time");
    ok(rate.limit == TIER_LATENCY, "latency is the limit");
    near(tier_stack_in_flight(&store, &ALL, 1, &one, 2e9), 50, 1e-9, "50 in flight for 2 GB/s");
    near(tier_rate(&store, &fifty).bytes_per_s, 2e9, 1e-12, "and 50 give 2 GB/s");
    ok(isinf(tier_stack_in_flight(&store, &ALL, 1, &one, 2.5e9)) &&
           isinf(tier_stack_in_flight(&store, &ALL, 1, &one, 3e9)),
       "no number of requests gives the full rate of the link");
    /* A worker that waits for its reads: 0.010 s of CPU + 0.040 s per sample, 4 workers. */
    const struct loader_source source = {&store, &ALL, 1};
    struct loader loader = free_loader(8, 8e6);
    struct loader_step step;
    loader.workers = 4;
    loader.worker_s = 0.010;
    ok(loader_step(&loader, &source, 0.050, &step, NULL) == TY_OK, "workers wait for their reads");
    near(step.step_s, 8 * 0.050 / 4, 1e-12, "latency counts in the worker's time");
    near(step.fetch_stall_ratio, 1 - 0.050 / 0.080, 1e-12, "stall with preparation free");
    ok(step.prepare_stall_ratio == 0.0, "8 x 0.010 / 4 s fit: no stall with samples in memory");
    loader.reads_in_flight = 50;
    ok(loader_step(&loader, &source, 0.050, &step, NULL) == TY_OK && step.stall_ratio == 0.0,
       "50 reads beside the workers: no stall");
}

/* 4 nodes, 1 TB of data, 100 GB of memory and 150 GB of NVMe per node. */
static void stack(void)
{
    struct tier levels[3] = {fast_tier(), fast_tier(), fast_tier()};
    levels[0].capacity_bytes = 100e9;
    levels[1].capacity_bytes = 150e9;
    levels[0].read_bytes_per_s = 100e9;
    levels[1].read_bytes_per_s = 10e9;
    levels[2].read_bytes_per_s = 1e9;
    levels[2].shared = true;
    struct tier_data data = {cache_policy_of("no-evict"), 1e12, 4, false};
    double shares[3];
    ok(tier_shares(levels, 3, &data, NULL, shares) == TY_OK, "shares");
    ok(fabs(shares[0] - 0.1) < 1e-12 && fabs(shares[1] - 0.15) < 1e-12 &&
           fabs(shares[2] - 0.75) < 1e-12,
       "pinned: a tenth, 0.15, the rest");
    const struct tier_use use = {4, 1e6, (double)INFINITY, false};
    struct tier_rate rate = tier_stack_rate(levels, shares, 3, &use);
    near(rate.bytes_per_s, 1e9 / 0.75, 1e-9, "the file system serves three quarters");
    ok(rate.level == 2, "and is the limit");
    data.cooperative = true;
    ok(tier_shares(levels, 3, &data, NULL, shares) == TY_OK && fabs(shares[2]) < 1e-12,
       "together the nodes hold all of it");
    rate = tier_stack_rate(levels, shares, 3, &use);
    near(rate.bytes_per_s, 10e9 / 0.6, 1e-9, "then NVMe is the limit, at 60 % of the reads");
    data = (struct tier_data){cache_policy_of("lru"), 1e12, 1, false};
    ok(tier_shares(levels, 3, &data, NULL, shares) == TY_OK, "LRU");
    within(shares[0], 0.0052, 5e-5, "LRU keeps 10 %: 0.5 % hit (UT-7.4)");
    within(shares[0] + shares[1] + shares[2], 1, 1e-12, "shares sum to 1");
    data.bytes = 0;
    ok(tier_shares(levels, 3, &data, NULL, shares) == TY_ERR_RANGE, "no data is refused");
    /* 600 GB from the file system at 1 GB/s per node to NVMe, 4 nodes. */
    near(tier_move_s(&levels[2], &levels[1], &use, 600e9, (double)INFINITY), 150, 1e-12, "move");
    near(tier_move_s(&levels[2], &levels[1], &use, 600e9, 0.5e9), 300, 1e-12, "throttled");
}

/* 2 nodes with 100 GB of NVMe each over a file system; 150 GB read 30 times a second, 250 GB 10
 * times, 600 GB never: NVMe takes the first and 50 GB of the second, 30 + 2 of 40 reads. */
/* The same through the public functions: 2 nodes of 100 GB NVMe each before the file system. By
 * hand: 150 GB rise at the 8.2 GB/s a node that NVMe writes, 150 GB sink at the 9.3 it reads; or
 * all 300 GB at 1 GB/s a node. */
static void public_placement(void)
{
    struct ty_cluster cluster;
    struct ty_storage storage;
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_STORAGE, &storage);
    storage.tier[TY_TIER_NVME].capacity_bytes = 100e9;
    const struct ty_data_class classes[] = {{150e9, 30}, {250e9, 10}, {600e9, 0}};
    struct ty_data data = {.cluster = &cluster,
                           .storage = &storage,
                           .n_nodes = 2,
                           .tiers = 1u << TY_TIER_NVME | 1u << TY_TIER_PFS,
                           .n_classes = 3,
                           .classes = classes};
    double placed[3][TY_N_TIERS], share[TY_N_TIERS], arriving[TY_N_TIERS], time_s;
    ok(ty_data_place(&data, placed[0], share, NULL) == TY_OK, "placed by tiers of a cluster");
    ok(placed[0][TY_TIER_NVME] == 150e9 && placed[1][TY_TIER_NVME] == 50e9 &&
           placed[1][TY_TIER_PFS] == 200e9 && placed[2][TY_TIER_PFS] == 600e9 &&
           placed[0][TY_TIER_DRAM] == 0.0,
       "memory holds none: it was not named");
    near(share[TY_TIER_NVME], 0.8, 1e-12, "32 of 40 reads");
    const double before[3][TY_N_TIERS] = {{0, 0, 150e9, 0}, {0, 200e9, 50e9, 0}, {0, 0, 600e9, 0}};
    ok(ty_data_move(&data, before[0], placed[0], (double)INFINITY, arriving, &time_s, NULL) ==
           TY_OK,
       "moved");
    near(time_s, 150e9 / (2 * 8.2e9) + 150e9 / (2 * 9.3e9), 1e-12, "at the rates of NVMe");
    ok(arriving[TY_TIER_NVME] == 150e9 && arriving[TY_TIER_PFS] == 150e9, "150 GB each way");
    ok(ty_data_move(&data, before[0], placed[0], 1e9, arriving, &time_s, NULL) == TY_OK, "slowly");
    near(time_s, 150.0, 1e-12, "at the rate of the migration");
    placed[2][TY_TIER_PFS] = 1.0;
    ok(ty_data_move(&data, before[0], placed[0], 1e9, arriving, &time_s, NULL) == TY_ERR_INPUT,
       "600 GB that vanish are refused");
    data.tiers = 1u << TY_TIER_NVME;
    ok(ty_data_place(&data, placed[0], share, NULL) == TY_ERR_INFEASIBLE,
       "NVMe alone is too small");
    data.tiers = 0;
    ok(ty_data_place(&data, placed[0], share, NULL) == TY_ERR_RANGE, "no tier");
}

static void hot_and_cold(void)
{
    struct tier levels[2] = {fast_tier(), fast_tier()};
    levels[0].capacity_bytes = 100e9;
    levels[1].shared = true;
    struct ty_data_class classes[] = {{150e9, 30}, {250e9, 10}, {600e9, 0}};
    const struct tier_placement placement = {levels, 2, 3, classes, 2};
    double placed[6], shares[2], arriving[2];
    ok(tier_place(&placement, placed, shares) == TY_OK, "placed");
    ok(placed[0] == 150e9 && placed[2] == 50e9 && placed[3] == 200e9 && placed[5] == 600e9,
       "the hottest on the fastest level");
    near(shares[0], 0.8, 1e-12, "NVMe serves 32 of 40 reads");
    near(shares[1], 0.2, 1e-12, "the file system the rest");
    const double before[6] = {0, 150e9, 200e9, 50e9, 0, 600e9};
    tier_arriving(before, placed, 3, 2, arriving);
    ok(arriving[0] == 150e9 && arriving[1] == 150e9, "150 GB move up, 150 GB down");
    levels[1].capacity_bytes = 700e9;
    ok(tier_place(&placement, placed, shares) == TY_ERR_INFEASIBLE, "100 GB too many");
    classes[2].reads_per_s = 1000;
    ok(tier_place(&placement, placed, shares) == TY_ERR_INPUT, "hottest first");
    classes[2].bytes = (double)NAN;
    ok(tier_place(&placement, placed, shares) == TY_ERR_RANGE, "NAN bytes");
}

static void divide(void)
{
    const double demand[] = {1, 8, 3, 20};
    double got[4];
    tier_divide(16, demand, 4, got); /* 1 and 3 are served; 12 left for two: 6 each */
    ok(got[0] == 1 && got[1] == 6 && got[2] == 3 && got[3] == 6, "max-min shares");
    tier_divide(100, demand, 4, got);
    ok(got[0] == 1 && got[1] == 8 && got[2] == 3 && got[3] == 20, "enough for all");
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Without jitter: max(T_gpu, t / W), after the first batch; the wait is then known exactly. */
static void queue_without_jitter(void)
{
    double time_s, wait_s;
    struct loader_queue queue = {
        .batch_s = 0.4, .compute_s = 0.1, .workers = 4, .queue = 8, .n_steps = 1000};
    ok(loader_replay(&queue, NULL, &time_s, &wait_s) == TY_OK, "replay");
    near(wait_s, 0.4, 1e-9, "workers keep up: only the first batch is waited for");
    queue.workers = 2; /* 0.2 s per batch: batch i at 0.4 (1 + i / 2), in pairs */
    ok(loader_replay(&queue, NULL, &time_s, &wait_s) == TY_OK, "replay");
    near(time_s, 200.2, 1e-9, "two workers: t / W per step, the last pair one after the other");
    queue.workers = queue.queue = 1; /* the next batch is made while this one computes */
    ok(loader_replay(&queue, NULL, &time_s, &wait_s) == TY_OK, "replay");
    near(time_s, 1000 * 0.4 + 0.1, 1e-9, "one worker: t per step");
    queue.n_steps = 0;
    ok(loader_replay(&queue, NULL, &time_s, &wait_s) == TY_ERR_RANGE, "no steps: refused");
}

/* Jitter of batches: a deeper queue never waits longer, and hides what W/t > 1/T_gpu can hide. */
static void queue_with_jitter(void)
{
    struct loader_queue queue = {.batch_s = 0.32,
                                 .variation = 1.0,
                                 .compute_s = 0.1,
                                 .workers = 4,
                                 .n_steps = 20000,
                                 .seed = 3};
    double time_s, wait_s, last_s = (double)INFINITY, first_s = 0.0;
    bool falls = true;
    for (queue.queue = 4; queue.queue <= 256; queue.queue *= 2) {
        falls = falls && loader_replay(&queue, NULL, &time_s, &wait_s) == TY_OK && wait_s <= last_s;
        last_s = wait_s;
        if (queue.queue == 4)
            first_s = wait_s;
    }
    ok(falls, "a deeper queue never waits longer");
    ok(last_s < 0.2 * first_s, "256 batches ahead hide most of what 4 cannot");
}

static void refusals(void)
{
    struct ty_error error;
    struct loader loader = free_loader(7, 1e6);
    ok(loader_check(&loader, &error) == TY_OK, "a good loader");
    loader.batch = (double)NAN;
    ok(loader_check(&loader, &error) == TY_ERR_RANGE && strcmp(error.where, "batch") == 0, "NAN");
    loader.batch = 7;
    loader.worker_s = -1;
    ok(loader_check(&loader, &error) == TY_ERR_RANGE && strcmp(error.where, "worker_s") == 0,
       "a negative time");
    struct tier tier = fast_tier();
    ok(tier_check(&tier, &error) == TY_OK, "a good tier");
    tier.ops_per_s = 0;
    ok(tier_check(&tier, &error) == TY_ERR_RANGE && strcmp(error.where, "ops_per_s") == 0,
       "no requests per second");
    const struct tier fast = fast_tier();
    const struct loader_source source = {&fast, &ALL, 1};
    struct loader_step step;
    loader = free_loader(100, 1e6); /* 2 batches x 100 x 1 MB x 8 GPUs = 1.6 GB */
    loader.gpus_per_node = 8;
    loader.host_bytes_per_node = 1.5e9;
    ok(loader_step(&loader, &source, 1, &step, &error) == TY_ERR_INFEASIBLE &&
           strcmp(error.where, "prefetch_batches") == 0,
       "prefetched batches do not fit in host memory");
    loader.host_bytes_per_node = 1.6e9;
    ok(loader_step(&loader, &source, 1, &step, &error) == TY_OK && step.memory_bytes == 1.6e9,
       "1.6 GB do");
}

int main(void)
{
    ut_7_1();
    ut_7_2();
    ut_7_3();
    case_s01();
    case_s03();
    case_s05();
    tiers();
    object_store();
    stack();
    hot_and_cold();
    public_placement();
    divide();
    queue_without_jitter();
    queue_with_jitter();
    refusals();
    return tap_done();
}
