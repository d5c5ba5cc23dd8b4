/* SPDX-License-Identifier: MIT
 * Input and checkpoints as lines of a step: servers against hand-made schedules and the closed
 * form, stalls and needs worked out beside the checks, sizes and times of cases K01, S01, G01 and
 * of UT-7.4, 7.6, 7.7. */
#include "models/failures.h"
#include "models/feed.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

/* ---- servers ------------------------------------------------------------------------------ */

static double stall_of(double prefetch, const double stage_s[4], const char *in_line, double step_s)
{
    struct feed_input input = {.loader = {.prefetch_batches = prefetch}};
    double stall_s = -1.0, first_s;
    for (int i = 0; i < 4; i++)
        input.loader.in_line[i] = in_line[i] == 'x';
    const ty_status status = feed_serve(&input, stage_s, step_s, NULL, &stall_s, &first_s);
    return status == TY_OK ? stall_s : -1.0;
}

static void servers(void)
{
    const double mixed[] = {3, 4, 0, 0}, slow[] = {3, 9, 2, 1};
    near(stall_of(1, mixed, "    ", 5), 2, 1e-12, "one batch under way: 3 + 4 against 5");
    near(stall_of(2, mixed, "    ", 5) + 5, 5, 1e-12, "two hide it");
    near(stall_of(0, mixed, "    ", 5), 7, 1e-12, "no prefetch: every stage is waited for");
    near(stall_of(4, slow, "    ", 5), 4, 1e-12, "the slowest stage: 9 against 5");
    near(stall_of(4, slow, "   x", 10), 1, 1e-12, "a copy in line adds its 1 s");
    near(stall_of(4, slow, "   x", 5), 4, 1e-12, "... but not while the GPU waits anyway");
    for (int i = 0; i < 4; i++) { /* random servers, enough prefetch: the closed form */
        double t[4], longest = 2.0;
        for (int j = 0; j < 4; j++) {
            t[j] = 0.5 + fmod(7.31 * (i + 1) * (j + 2), 4.0);
            longest = fmax(longest, t[j]);
        }
        near(stall_of(8, t, "    ", 2.0) + 2.0, longest, 1e-12, "deep prefetch: the closed form");
    }
}

/* ---- a step ------------------------------------------------------------------------------- */

static ty_predictor *predictor(void)
{
    ty_predictor *out = NULL;
    struct ty_error error = {0};
    if (ty_predictor_create(&model, &cluster, &profile, NULL, &out, &error) != TY_OK)
        printf("# %s: %s\n", error.where, error.text);
    return out;
}

static struct ty_plan plan_of(uint32_t gpus, uint32_t gbs)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = gpus;
    plan.gbs = gbs;
    plan.seq = 4096;
    return plan;
}

static ty_status predict(const struct ty_storage *storage, const struct ty_plan *plan,
                         ty_predictor *with, struct ty_prediction *out, struct ty_error *error)
{
    const struct ty_options options = {.storage = storage, .measured = true};
    return ty_predictor_run(with, plan, &options, out, error);
}

static double sum_of(const struct ty_prediction *p)
{
    double sum = 0.0;
    for (int i = 0; i < TY_N_PARTS; i++)
        sum += p->breakdown_s[i];
    return sum;
}

/* 64 samples on 8 GPUs: 8 each; 10 s of CPU a sample on one worker: 80 s a step. */
static void stall_of_a_step(void)
{
    struct ty_storage storage;
    struct ty_prediction bare, fed;
    const struct ty_plan plan = plan_of(8, 64);
    ty_predictor *p = predictor();
    ty_init(TY_KIND_STORAGE, &storage);
    storage.input.kind = TY_INPUT_IMAGE;
    storage.input.workers = 1;
    storage.input.decode_s = 10.0;
    storage.input.sample_bytes = 1e6;
    ok(predict(NULL, &plan, p, &bare, NULL) == TY_OK && !bare.storage, "without");
    ok(predict(&storage, &plan, p, &fed, NULL) == TY_OK && fed.storage, "with an input");
    near(fed.step_time_s, 80.0, 1e-12, "workers set the step");
    near(sum_of(&fed), fed.step_time_s, 1e-12, "the lines add up to the step");
    near(fed.breakdown_s[TY_PART_INPUT_STALL], 80.0 - bare.step_time_s, 1e-9, "the stall");
    near(fed.breakdown_s[TY_PART_GEMM], bare.breakdown_s[TY_PART_GEMM], 0.0, "gemm stays");
    near(fed.tokens_per_s, 64 * 4096 / 80.0, 1e-12, "tokens/s of the whole step");
    const struct ty_input_report *r = &fed.storage->input;
    const double rate = 8 * 0.99 / bare.step_time_s; /* samples/s of a GPU at 1 % stall */
    near(r->need_workers, ceil(rate * 10.0), 0.0, "workers for less than 1 %");
    near(r->need_node_bytes_per_s, rate * 8 * 1e6, 1e-9, "GB/s of a node of 8");
    near(r->need_total_bytes_per_s, rate * 8 * 1e6, 1e-9, "... which is all");
    near(r->need_total_ops_per_s, rate * 8 * 1e6 / 1048576.0, 1e-9, "reads of 1 MiB");
    ok(strcmp(ty_input_stage_name((enum ty_input_stage)r->limit), "prepare") == 0, "by workers");
    near(r->prepare_stall_ratio, 1.0 - bare.step_time_s / 80.0, 1e-9, "all of it preparation");
    near(r->workers_gain_pct, 10.0, 1e-9, "10 % more workers: 10 % more tokens/s");
    near(r->storage_gain_pct, 0.0, 1e-12, "10 % more storage: nothing");

    storage.input.workers = 8;
    storage.input.decode_s = 1e-3;
    ok(predict(&storage, &plan, p, &fed, NULL) == TY_OK, "a fast loader");
    near(fed.step_time_s, bare.step_time_s, 0.0, "... leaves the step as it is, to the bit");
    ty_predictor_destroy(p);
}

/* S01: UNet3D on an H100: 7 x 146,600,628 B in 0.323 s are 2.96 GiB/s. A tier that gives a node
 * less makes the step wait in proportion. */
static void tiers_of_a_step(void)
{
    struct ty_storage storage;
    struct ty_prediction fed, two;
    const struct ty_plan plan = plan_of(8, 64);
    ty_predictor *p = predictor();
    ty_init(TY_KIND_STORAGE, &storage);
    storage.input.kind = TY_INPUT_VIDEO;
    storage.input.sample_bytes = 146600628.0;
    storage.input.decode_s = 0.0;
    storage.input.reads_in_flight = 1000.0;
    storage.tier[TY_TIER_PFS].latency_s = 0.0;
    storage.tier[TY_TIER_PFS].read_bytes_per_s = 1e9; /* 64 samples a node */
    ok(predict(&storage, &plan, p, &fed, NULL) == TY_OK, "a slow file system");
    near(fed.step_time_s, 64 * 146600628.0 / 1e9, 1e-9, "its bandwidth sets the step");
    ok(strcmp(fed.storage->input.can_limit, "bandwidth of a node") == 0, "and is named");
    near(fed.storage->input.max_gpus_per_node,
         floor(1e9 / (fed.storage->input.need_node_bytes_per_s / 8)), 0.0, "GPUs it could feed");
    storage.input.jobs = 2;
    storage.tier[TY_TIER_PFS].total_read_bytes_per_s = 1e9;
    ok(predict(&storage, &plan, p, &two, NULL) == TY_OK, "two jobs share a total of 1 GB/s");
    near(two.step_time_s, 2 * fed.step_time_s, 1e-9, "twice the step");

    /* UT-7.4: half of the data fit */
    storage.input.jobs = 1;
    storage.input.caches = 1u << TY_TIER_NVME;
    storage.input.data_bytes = 2e12;
    storage.tier[TY_TIER_NVME].capacity_bytes = 1e12;
    storage.tier[TY_TIER_NVME].read_bytes_per_s = 1e12;
    storage.tier[TY_TIER_NVME].latency_s = 0.0;
    storage.tier[TY_TIER_NVME].ops_per_s = 1e12;
    ok(predict(&storage, &plan, p, &two, NULL) == TY_OK, "a cache");
    near(two.storage->input.hit_ratio, 0.5, 1e-12, "UT-7.4: kept, half is found");
    near(two.step_time_s, 0.5 * fed.step_time_s, 1e-9, "half of the reads remain");
    ok(isnan(two.storage->money_per_month), "no price");
    storage.tier[TY_TIER_PFS].price_tb_month = 20;
    storage.tier[TY_TIER_NVME].price_tb_month = 50;
    ok(predict(&storage, &plan, p, &two, NULL) == TY_OK, "prices");
    near(two.storage->money_per_month, 2 * 20 + 1 * 50, 1e-12, "2 TB at 20 and 1 TB at 50");
    storage.tier[TY_TIER_NVME].policy = TY_CACHE_LRU;
    ok(predict(&storage, &plan, p, &two, NULL) == TY_OK, "the same, LRU");
    within(two.storage->input.hit_ratio, 0.1534, 5.1e-5, "UT-7.4: LRU");
    ty_predictor_destroy(p);
}

/* What the reads take of each NIC is missing there: the step of a cluster with such NICs. */
static void shared_nics(void)
{
    struct ty_storage storage;
    struct ty_prediction own, shared, slower;
    const struct ty_plan plan = plan_of(16, 64);
    ty_predictor *p = predictor();
    ty_init(TY_KIND_STORAGE, &storage);
    storage.input.kind = TY_INPUT_VIDEO;
    storage.input.decode_s = 0.0;
    storage.input.sample_bytes = 8e9; /* a large part of the NICs, for an effect to see */
    storage.tier[TY_TIER_PFS].read_bytes_per_s = 1e12;
    storage.tier[TY_TIER_PFS].latency_s = 0.0;
    ok(predict(&storage, &plan, p, &own, NULL) == TY_OK, "a network of its own");
    storage.tier[TY_TIER_PFS].over_nic = TY_ON;
    ok(predict(&storage, &plan, p, &shared, NULL) == TY_OK, "over the NICs of training");
    ty_predictor_destroy(p);
    const double nic = cluster.nic_bytes_per_s;
    cluster.nic_bytes_per_s -= 64 * 8e9 / own.step_time_s / (2 * 8); /* 64 samples, 16 NICs */
    p = predictor();
    ok(predict(NULL, &plan, p, &slower, NULL) == TY_OK, "slower NICs");
    printf("# %g s, %g s shared\n", own.step_time_s, shared.step_time_s);
    near(shared.step_time_s, slower.step_time_s, 1e-12, "the step of a cluster with what is left");
    ok(shared.step_time_s > own.step_time_s, "which is longer");
    ty_predictor_destroy(p);
    cluster.nic_bytes_per_s = nic;
    p = predictor();
    storage.input.sample_bytes = 1e12;
    storage.tier[TY_TIER_PFS].read_bytes_per_s = 1e15;
    storage.tier[TY_TIER_PFS].total_read_bytes_per_s = 1e15;
    ok(predict(&storage, &plan, p, &shared, NULL) == TY_ERR_RANGE, "more than the NICs carry");
    ty_predictor_destroy(p);
}

/* What is refused, by name. */
static void refusals(void)
{
    const struct ty_plan plan = plan_of(8, 64);
    ty_predictor *p = predictor();
    for (int i = 0; i < 5; i++) {
        static const char *const wheres[] = {"input.workers", "input.decoder_rate", "input.data",
                                             "checkpoint.every", "input.shuffle"};
        struct ty_storage storage;
        struct ty_prediction out;
        struct ty_error error = {0};
        ty_init(TY_KIND_STORAGE, &storage);
        storage.input.kind = TY_INPUT_IMAGE;
        storage.input.workers = i == 0 ? 60000 : 1;
        storage.input.decoder = i == 1 ? TY_DECODER_HARDWARE : TY_DECODER_CPU;
        storage.input.caches = i == 2 ? 1u << TY_TIER_DRAM : 0;
        storage.checkpoint.every_s = i == 3 ? 60.0 : (double)NAN;
        storage.checkpoint.every_steps = 3;
        storage.input.shuffle_samples = i == 4 ? 1e12 : (double)NAN;
        ok(predict(&storage, &plan, p, &out, &error) == TY_ERR_RANGE &&
               strcmp(error.where, wheres[i]) == 0,
           wheres[i]);
    }
    ty_predictor_destroy(p);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* K01: Llama-3-8B by 8 processes, 104.7 GiB at 54.97 GiB/s: 1.905 s. */
static void case_k01(void)
{
    struct ty_storage storage;
    struct ty_prediction bare, saved;
    const struct ty_plan plan = plan_of(8, 64);
    ty_predictor *p = predictor();
    ty_init(TY_KIND_STORAGE, &storage);
    storage.checkpoint.mode = TY_SAVE_SYNC;
    storage.checkpoint.every_steps = 10;
    storage.checkpoint.file_s = 0.0;
    storage.tier[TY_TIER_PFS].latency_s = 0.0;
    storage.tier[TY_TIER_PFS].write_bytes_per_s = 1e15;
    storage.tier[TY_TIER_PFS].total_write_bytes_per_s = 54.97 * 0x1p30;
    ok(predict(NULL, &plan, p, &bare, NULL) == TY_OK, "without");
    ok(predict(&storage, &plan, p, &saved, NULL) == TY_OK, "with checkpoints");
    const struct ty_save_report *r = &saved.storage->checkpoint;
    within(r->bytes * 0x1p-30, 104.7, 0.05, "K01: 104.7 GiB");
    within(r->write_s, 1.905, 2e-3, "K01: 1.905 s");
    const double lost_s = r->bytes / 8 / 63e9 + r->write_s; /* PCIe 5 x16 of an H100 */
    near(r->blocking_s, lost_s, 1e-9, "copy and write");
    near(saved.breakdown_s[TY_PART_CHECKPOINT], lost_s / 10, 1e-9, "over 10 steps");
    near(saved.step_time_s, bare.step_time_s + lost_s / 10, 1e-12, "and the step grows by it");
    near(sum_of(&saved), saved.step_time_s, 1e-12, "the lines add up");

    storage.checkpoint.mode = TY_SAVE_ASYNC;
    ok(predict(&storage, &plan, p, &saved, NULL) == TY_OK, "asynchronous");
    near(saved.storage->checkpoint.blocking_s, r->bytes / 8 / 63e9, 1e-9, "only the copy blocks");
    within(saved.storage->checkpoint.drain_s, 1.905, 2e-3, "the write is in the background");
    within(saved.storage->checkpoint.host_bytes_per_node * 0x1p-30, 104.7, 0.05, "host memory");
    storage.checkpoint.every_steps = 1;
    storage.tier[TY_TIER_PFS].total_write_bytes_per_s = 5e9;
    ok(predict(&storage, &plan, p, &saved, NULL) == TY_OK, "a drain longer than a step");
    near(saved.storage->checkpoint.n_steps, ceil(r->drain_s / bare.step_time_s), 0.0,
         "stretches the interval");
    ty_predictor_destroy(p);
}

/* UT-7.6: 405B over 16,384 GPUs, 14 bytes a parameter, 2 TB/s: 2.84 s. */
static void ut_7_6(void)
{
    static struct setting setting;
    struct ty_model large;
    struct ty_storage storage;
    struct ty_save_report save;
    struct ty_plan plan = plan_of(16384, 2048), resolved;
    fixture_llama3_405b(&large);
    plan.tp = 8;
    plan.pp = 16;
    ty_init(TY_KIND_STORAGE, &storage);
    storage.checkpoint.mode = TY_SAVE_ASYNC;
    storage.tier[TY_TIER_PFS].latency_s = 0.0;
    ok(setting_init(&large, &cluster, &profile, &setting, NULL, NULL) == TY_OK, "setting");
    plan_resolve(&setting, &plan, &resolved, NULL);
    ok(feed_save(&storage, &setting, &resolved, 10.0, 0.0, &save, NULL) == TY_OK, "405B");
    within(save.gpu_bytes * 1e-9, 0.347, 5e-4, "UT-7.6: GB of a GPU");
    within(save.write_s, 2.84, 0.01, "UT-7.6: at the 2 TB/s that pfs has by default");
    near(save.n_steps, 360, 0.0, "every hour without failures");
}

/* ---- the run ------------------------------------------------------------------------------ */

/* UT-7.7: M = 11,135.08 s, R = 300 s, C = 30 s, tau = 817 s: 0.9037 of the time. With the saves in
 * the step time the useful share of that time is 0.9037 (tau + C) / tau. */
static void ut_7_7(void)
{
    const double tau_s = sqrt(2 * 11135.08 * 30);
    struct ty_failures failures = {.node_mtbf_s = (double)NAN,
                                   .save_s = 30,
                                   .restart_s = 300,
                                   .repair_s = (double)NAN,
                                   .interval_s = tau_s,
                                   .spare_probability = (double)NAN,
                                   .job_mtbf_s = 11135.08};
    struct ty_save_report save = {.lost_s = 30, .every_s = tau_s + 30};
    struct ty_goodput own, of_saves;
    ok(ty_goodput(&failures, 2048, &own, NULL) == TY_OK, "a job's own rate");
    within(own.useful_ratio, 0.9037, 5.1e-5, "UT-7.7");
    ok(failures_goodput_of(&failures, 2048, &save, &of_saves, NULL) == TY_OK, "with saves");
    near(of_saves.useful_ratio * tau_s / (tau_s + 30), own.useful_ratio, 1e-12, "the same share");
    failures.job_mtbf_s = 2 * 11135.08;
    failures.preemption_s = 2 * 11135.08;
    ok(ty_goodput(&failures, 2048, &own, NULL) == TY_OK, "failures and preemptions");
    within(own.useful_ratio, 0.9037, 5.1e-5, "rates add");
    failures.restart_s = 200;
    failures.detect_s = 100;
    ok(ty_goodput(&failures, 2048, &own, NULL) == TY_OK, "detected late");
    within(own.useful_ratio, 0.9037, 5.1e-5, "detection is a part of the restart");
    failures.weibull_shape = 0.7;
    ok(ty_goodput(&failures, 2048, &own, NULL) == TY_OK && own.useful_ratio > 0.8 &&
           own.useful_ratio < 0.97,
       "Weibull failures are simulated");
}

/* UT-7.9: 128 nodes, lambda 0.485: 3 spares suffice 99.84 % of the time. */
static void ut_7_9(void)
{
    struct ty_failures failures = {.node_mtbf_s = 6334.6 * 3600,
                                   .save_s = (double)NAN,
                                   .restart_s = (double)NAN,
                                   .repair_s = 86400,
                                   .interval_s = (double)NAN,
                                   .spare_probability = (double)NAN};
    struct ty_goodput enough, few;
    ok(ty_goodput(&failures, 128, &enough, NULL) == TY_OK, "128 nodes");
    ok(enough.spares == 3, "UT-7.9: 3 spares");
    failures.spares_held = 3;
    ok(ty_goodput(&failures, 128, &few, NULL) == TY_OK, "three of them held");
    within(few.useful_ratio / enough.useful_ratio, 0.9984, 5.1e-5, "UT-7.9: 0.9984 of the time");
}

/* G01: Llama-3, 419 interruptions in 54 days on 16,384 GPUs, above 90 % effective: an asynchronous
 * checkpoint at 2 TB/s, a restart of 10 minutes. */
static void case_g01(void)
{
    static struct setting setting;
    struct ty_model large;
    struct ty_storage storage;
    struct ty_save_report save;
    struct ty_goodput goodput;
    struct ty_plan plan = plan_of(16384, 2048), resolved;
    const struct ty_failures failures = {.node_mtbf_s = 54 * 86400.0 / 419 * 2048,
                                         .save_s = (double)NAN,
                                         .restart_s = 600,
                                         .repair_s = (double)NAN,
                                         .interval_s = (double)NAN,
                                         .spare_probability = (double)NAN};
    fixture_llama3_405b(&large);
    plan.tp = 8;
    plan.pp = 16;
    ty_init(TY_KIND_STORAGE, &storage);
    storage.checkpoint.mode = TY_SAVE_ASYNC;
    storage.failures = &failures;
    ok(setting_init(&large, &cluster, &profile, &setting, NULL, NULL) == TY_OK, "setting");
    plan_resolve(&setting, &plan, &resolved, NULL);
    ok(feed_save(&storage, &setting, &resolved, 6.0, 0.0, &save, NULL) == TY_OK &&
           failures_goodput_of(&failures, 2048, &save, &goodput, NULL) == TY_OK,
       "G01");
    near(goodput.mtbf_s, 54 * 86400.0 / 419, 1e-12, "G01: 3.09 h");
    printf("# goodput %.4f, a checkpoint every %.1f s\n", goodput.useful_ratio, save.every_s);
    ok(goodput.useful_ratio > 0.90, "G01: above 90 %% as published");
}

/* Time to N tokens: tokens over useful tokens/s, and its quantiles around it. */
static void forecast(void)
{
    const struct ty_failures failures = {.node_mtbf_s = (double)NAN,
                                         .save_s = 30,
                                         .restart_s = 300,
                                         .repair_s = (double)NAN,
                                         .interval_s = (double)NAN,
                                         .spare_probability = (double)NAN,
                                         .job_mtbf_s = 11135.08};
    struct ty_prediction p = {.step_time_s = 2.0,
                              .tokens_per_s = 1e6,
                              .interval_80 = {1.8, 2.0 * exp(0.1)},
                              .plan = {.n_gpus = 16}};
    struct ty_forecast none, out;
    ok(ty_forecast_of(&p, NULL, 8, 1e12, &none, NULL) == TY_OK, "no failures");
    near(none.time_s[TY_P50], 1e6, 1e-12, "1e12 tokens at 1e6/s");
    near(none.time_s[TY_P90], 1e6 * exp(0.1), 1e-9, "90 %: the step's interval");
    near(none.time_s[TY_P10], 1e6 * exp(-0.1), 1e-9, "10 %");
    ok(ty_forecast_of(&p, &failures, 8, 1e12, &out, NULL) == TY_OK, "with failures");
    near(out.time_s[TY_P50], 1e6 / out.goodput.useful_ratio, 1e-12, "useful tokens count");
    ok(out.time_s[TY_P90] / out.time_s[TY_P50] > exp(0.1), "and the spread is wider");
}

int main(void)
{
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    servers();
    stall_of_a_step();
    tiers_of_a_step();
    shared_nics();
    refusals();
    case_k01();
    ut_7_6();
    ut_7_7();
    ut_7_9();
    case_g01();
    forecast();
    return tap_done();
}
