/* SPDX-License-Identifier: MIT
 * The full rung: every rank simulated equals one rank per stage where that is exact (DESIGN 4,
 * rung 4), and moves in the right direction, by the right amount, where it is not. */
#include "include/trainyard_fabric.h"
#include "models/fabric.h"
#include "models/predict.h"
#include "tests/failing.h"
#include "tests/step_fixture.h"

#include <math.h>
#include <pthread.h>

static struct step_case at; /* too large for a stack */
static struct evaluator evaluator;

static bool answer(const struct ty_scenario *scenario, struct step_result *out)
{
    struct ty_error error = {.code = TY_OK};
    struct memory_verdict verdict;
    const struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = scenario, .seed = 7};
    ty_status status = evaluator_memory(&evaluator, &at.setting, &at.plan, &verdict);
    if (status == TY_OK)
        status = evaluator_simulate(&evaluator, &at.setting, &at.plan, &options, out, &error);
    if (status != TY_OK)
        ok(false, "full: %s: %s %s", ty_status_text(status), error.where, error.text);
    return status == TY_OK;
}

/* Every rank against one per stage; nothing disturbs. */
static void same(const char *what)
{
    const struct ty_scenario every = {.unfold = true}, any = {.unfold = false};
    struct step_result full, folded;
    if (!case_ready(&at)) {
        ok(false, "%s: not legal", what);
        return;
    }
    if (!answer(&every, &full) || !answer(&any, &folded))
        return;
    const struct ty_fabric_report *report = full_report(evaluator.full);
    ok(report->folded, "%s: folds (%s)", what, report->why);
    double sum_s = 0.0;
    for (int part = 0; part < TY_N_PARTS; part++)
        sum_s += full.breakdown_s[part];
    near(full.time_s, folded.time_s, 1e-9, "... every rank takes as long");
    near(sum_s, full.time_s, 1e-9, "... and its breakdown adds up");
}

static void test_same(void)
{
    case_open(&at);
    at.asked.n_gpus = 16;
    at.asked.gbs = 64;
    at.asked.overlap |= TY_OVERLAP_GRAD;
    same("8B, dp 16, overlapped reduction");
    case_open(&at);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 64;
    at.asked.tp = 4;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    same("8B, tp 4 pp 4 dp 4, with jitter and host");
    at.asked.pp = 2;
    at.asked.vpp = 4;
    at.asked.tp = 8;
    same("8B, tp 8 pp 2 vpp 4 dp 4");
    at.asked.vpp = 1;
    at.asked.sharding = TY_SHARDING_ZERO3;
    at.asked.reshard_after_forward = TY_ON;
    at.asked.tp = 1;
    at.asked.pp = 2;
    same("8B, fsdp with resharding, pp 2 dp 32");
    case_open(&at);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 32;
    at.asked.cp = 2;
    at.asked.tp = 2;
    at.asked.gbs = 32;
    at.cluster.nics_per_node = 4;
    at.asked.sharding = TY_SHARDING_ZERO1;
    at.asked.shard_group = 8;
    same("8B, tp 2 cp 2 dp 8, zero1 in groups, two GPUs a NIC");
    case_open(&at);
    at.asked.n_gpus = 32;
    at.asked.tp = 2;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    at.asked.schedule = TY_SCHEDULE_ZB_H1;
    same("8B, pp 4, zb-h1");
    at.asked.schedule = TY_SCHEDULE_DUALPIPE;
    same("8B, pp 4, dualpipe");
    case_open(&at);
    fixture_mixtral(&at.model);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 64;
    at.asked.tp = 2;
    at.asked.ep = 8;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    same("mixtral, tp 2 ep 8 pp 4 dp 8");
}

/* Send by send, a collective alone takes as long as its one flow. */
static void test_detailed(void)
{
    const struct ty_scenario fast = {.unfold = true}, detailed = {.unfold = true, .detailed = true};
    struct step_result a, b;
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.tp = 2;
    at.asked.gbs = 64;
    if (case_ready(&at) && answer(&fast, &a) && answer(&detailed, &b)) {
        near(b.time_s, a.time_s, 1e-9, "collectives send by send: the same time alone");
        near(b.breakdown_s[TY_PART_DP], a.breakdown_s[TY_PART_DP], 1e-9, "... and exposed");
        ok(b.n_events > 3 * a.n_events / 2, "... of more events (%.0f, %.0f)", (double)b.n_events,
           (double)a.n_events);
    }
}

/* ---- what sets ranks apart ----------------------------------------------------------------- */

static double time_of(const struct ty_scenario *scenario)
{
    struct step_result out = {.time_s = (double)NAN};
    answer(scenario, &out);
    return out.time_s;
}

/* Pure data parallelism, nothing overlapped: the step is as long as the slow rank computes, plus
 * the same collectives. */
static void test_straggler(void)
{
    const struct ty_scenario even = {.unfold = true};
    struct ty_speed slow = {.first_rank = 5, .n_ranks = 1, .ratio = 0.5};
    const struct ty_scenario one = {.n_speeds = 1, .speeds = &slow};
    struct step_result a, b;
    case_open(&at);
    at.asked.n_gpus = 16;
    at.asked.gbs = 64;
    if (!case_ready(&at) || !answer(&even, &a) || !answer(&one, &b))
        return;
    const double compute_s = a.breakdown_s[TY_PART_GEMM] + a.breakdown_s[TY_PART_ATTENTION] +
                             a.breakdown_s[TY_PART_MEMORY_BOUND] + a.breakdown_s[TY_PART_OPTIMIZER];
    within(b.time_s, a.time_s + compute_s, 1e-3 * a.time_s,
           "a rank of half the speed adds its compute time once more");
    ok(full_report(evaluator.full)->slowest_rank == 5, "it is named");
    at.asked.tp = 8;
    if (!case_ready(&at) || !answer(&one, &a))
        return;
    slow.first_rank = 0;
    slow.n_ranks = 8;
    near(time_of(&one), a.time_s, 1e-9, "in a tp group of 8, one slow rank or eight are the same");
}

/* Step time over the even one for 64 replicas whose passes vary by 5 %: each sums 8 equal forwards
 * and 8 backwards of twice the time, so its deviation is 5 % sqrt(8 + 32)/24 = 1.32 %, and the
 * slowest of 64 lies 2.3437 deviations out (handbook 7.8): +3.09 %, give or take one deviation. */
static void test_jitter(void)
{
    const struct ty_scenario even = {.unfold = true}, jitter = {.jitter_ratio = 0.05};
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.gbs = 64 * 8;
    if (!case_ready(&at))
        return;
    const double ratio = time_of(&jitter) / time_of(&even) - 1.0;
    within(ratio, 0.0309, 0.0132, "jitter of 5 % on 64 replicas of 16 passes");
}

/* Two GPUs of a node share a NIC when one fails: their collectives take twice as long. */
static void test_fault(void)
{
    const struct ty_scenario even = {.unfold = true};
    const struct ty_fault nic = {TY_FAULT_NIC, 1, 3, 0.0};
    const struct ty_scenario broken = {.n_faults = 1, .faults = &nic};
    struct step_result a, b;
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.tp = 8;
    at.asked.gbs = 64;
    at.cluster.nic_latency_s = 0.0;
    if (!case_ready(&at) || !answer(&even, &a) || !answer(&broken, &b))
        return;
    const double dp_s = a.breakdown_s[TY_PART_DP];
    ok(b.time_s > a.time_s + 0.4 * dp_s && b.time_s < a.time_s + 1.01 * dp_s,
       "a failed NIC of 64: dp %.1f ms more of %.1f", 1e3 * (b.time_s - a.time_s), 1e3 * dp_s);
}

/* A 2:1 spine: dp groups over leaves take twice as long, and only them: 8 nodes under a leaf. */
static void test_spine(void)
{
    const struct ty_scenario every = {.unfold = true};
    double dp_s[2][2];
    for (int across = 0; across < 2; across++)
        for (int slim = 0; slim < 2; slim++) {
            struct step_result out;
            case_open(&at);
            at.cluster.nodes_per_leaf = 8;
            at.cluster.oversubscription = slim ? 2.0 : 1.0;
            at.cluster.nic_latency_s = at.profile.collective_latency_s = 0.0;
            at.asked.n_gpus = across ? 128 : 64;
            at.asked.tp = 8;
            at.asked.gbs = 64;
            if (!case_ready(&at) || !answer(&every, &out))
                return;
            dp_s[across][slim] = out.breakdown_s[TY_PART_DP];
        }
    near(dp_s[0][1], dp_s[0][0], 1e-9, "2:1 spine: dp groups under a leaf take as long");
    near(dp_s[1][1], 2.0 * dp_s[1][0], 1e-9, "... those across leaves twice as long");
}

/* Places: a permutation that keeps groups where they were folds; one that tears tp apart does not.
 */
static void test_places(void)
{
    uint32_t places[64];
    const struct ty_scenario any = {.places = places, .n_places = 64};
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.tp = 8;
    at.asked.gbs = 64;
    if (!case_ready(&at))
        return;
    for (uint32_t i = 0; i < 64; i++)
        places[i] = 63 - i;
    const double even_s = time_of(&any);
    ok(full_report(evaluator.full)->folded, "ranks in reverse: the same groups, folded");
    for (uint32_t i = 0; i < 64; i++)
        places[i] = i / 2 + i % 2 * 32; /* neighbours on nodes apart */
    const double torn_s = time_of(&any);
    const struct ty_fabric_report *report = full_report(evaluator.full);
    ok(!report->folded && strstr(report->why, "groups of a layer"), "torn tp groups do not: %s",
       report->why);
    ok(torn_s > 1.2 * even_s, "... and take %.1f times as long, tp now over NICs", torn_s / even_s);
    ok(report->traffic[0].n_groups[TY_LEVEL_LEAF] == 8, "the tp groups now cross a leaf");
}

/* Two jobs whose dp groups share an oversubscribed leaf slow each other; on leaves of their own
 * they do not. */
static void test_jobs(void)
{
    static const uint32_t mine[] = {0, 1, 4, 5}, same[] = {2, 3, 6, 7}, apart[] = {8, 9, 12, 13};
    struct ty_other_job other = {.n_nodes = 4};
    struct ty_plan plan;
    const struct ty_scenario alone = {.nodes = mine, .n_nodes = 4, .unfold = true};
    struct ty_scenario both = {.nodes = mine, .n_nodes = 4, .others = &other, .n_others = 1};
    case_open(&at);
    at.cluster.nodes_per_leaf = 4;
    at.cluster.oversubscription = 8.0;
    at.asked.n_gpus = 32;
    at.asked.gbs = 32;
    if (!case_ready(&at))
        return;
    plan = at.asked;
    other.model = &at.model;
    other.plan = &plan;
    other.nodes = apart;
    const double alone_s = time_of(&alone), apart_s = time_of(&both);
    near(apart_s, alone_s, 1e-9, "a job on other leaves changes nothing");
    other.nodes = same;
    struct step_result out;
    if (!answer(&both, &out))
        return;
    ok(out.time_s > 1.02 * alone_s, "one that shares the uplinks does: %.3f of %.3f s", out.time_s,
       alone_s);
    near(full_report(evaluator.full)->job_step_s[1], out.time_s, 1e-9, "both alike");
}

static void test_mixed(void)
{
    struct ty_gpu a100;
    fixture_a100(&a100);
    const struct ty_node_gpu older = {.first_node = 2, .n_nodes = 2, .gpu = &a100};
    const struct ty_scenario mixed = {.n_node_gpus = 1, .node_gpus = &older};
    struct ty_scenario balanced = mixed;
    balanced.balance = true;
    struct step_result out;
    case_open(&at);
    at.asked.n_gpus = 32;
    at.asked.tp = 2;
    at.asked.gbs = 128;
    if (!case_ready(&at))
        return;
    const double mixed_s = time_of(&mixed);
    if (!answer(&balanced, &out))
        return;
    const struct ty_fabric_report *report = full_report(evaluator.full);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < report->n_replicas; i++)
        sum += report->n_micro[i];
    ok(sum == 128 && report->n_micro[0] > report->n_micro[15],
       "balanced: %u micro-batches on H100, %u on A100", report->n_micro[0], report->n_micro[15]);
    ok(out.time_s < 0.75 * mixed_s, "... and the step takes %.3f instead of %.3f s", out.time_s,
       mixed_s);
    const struct ty_node_gpu like = {.first_node = 2, .n_nodes = 2, .gpu = &at.cluster.gpu};
    const struct ty_scenario twin = {.n_node_gpus = 1, .node_gpus = &like};
    const struct ty_scenario even = {.unfold = true};
    near(time_of(&twin), time_of(&even), 1e-9, "other nodes with the same GPU change nothing");
}

/* Handbook 11.6: a faster link or GPU never makes the step longer, here where the even step does
 * not contend: one slow rank, one failed NIC. */
static void test_monotone(void)
{
    const struct ty_speed slow = {.first_rank = 9, .n_ranks = 1, .ratio = 0.7};
    const struct ty_fault nic = {TY_FAULT_NIC, 1, 3, 0.0};
    const struct ty_scenario scenario = {
        .n_speeds = 1, .speeds = &slow, .n_faults = 1, .faults = &nic};
    double before_s = INFINITY;
    bool monotone = true;
    for (double k = 1.0; k <= 8.0; k *= 2.0) {
        case_open(&at);
        at.asked.n_gpus = 64;
        at.asked.tp = 4;
        at.asked.pp = 2;
        at.asked.gbs = 64;
        at.cluster.nic_bytes_per_s = k * 12.5e9;
        at.cluster.scaleup_bytes_per_s = k * 112.5e9;
        if (!case_ready(&at))
            return;
        const double time_s = time_of(&scenario);
        monotone = monotone && time_s <= before_s * (1.0 + 1e-9);
        before_s = time_s;
    }
    ok(monotone, "links twice, four, eight times as fast: never a longer step");
}

/* ---- limits, threads, memory --------------------------------------------------------------- */

static void test_limits(void)
{
    const struct ty_scenario every = {.unfold = true};
    struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = &every, .max_bytes = 10000};
    struct ty_error error = {.code = TY_OK};
    struct memory_verdict verdict;
    struct step_result out;
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.gbs = 64;
    if (!case_ready(&at) || evaluator_memory(&evaluator, &at.setting, &at.plan, &verdict) != TY_OK)
        return;
    ok(evaluator_simulate(&evaluator, &at.setting, &at.plan, &options, &out, &error) ==
               TY_ERR_LIMIT &&
           strstr(error.text, "max_bytes"),
       "a limit of memory is kept before the graph is built: %s", error.text);
}

struct worker {
    pthread_t thread;
    double time_s;
    bool good;
};

static void *work(void *user)
{
    struct worker *worker = user;
    const struct ty_speed slow = {.first_rank = 3, .n_ranks = 2, .ratio = 0.9};
    const struct ty_scenario scenario = {.n_speeds = 1, .speeds = &slow, .jitter_ratio = 0.02};
    const struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = &scenario, .seed = 7};
    struct evaluator own;
    struct memory_verdict verdict;
    struct step_result out;
    worker->good = evaluator_init(&own, NULL) == TY_OK &&
                   evaluator_memory(&own, &at.setting, &at.plan, &verdict) == TY_OK &&
                   evaluator_simulate(&own, &at.setting, &at.plan, &options, &out, NULL) == TY_OK;
    worker->time_s = worker->good ? out.time_s : 0.0;
    evaluator_destroy(&own);
    return NULL;
}

/* Same input and seed: the same bits on 1, 2 and 8 threads at once. */
static void test_threads(void)
{
    struct worker workers[8];
    case_open(&at);
    at.asked.n_gpus = 64;
    at.asked.tp = 2;
    at.asked.pp = 2;
    at.asked.gbs = 64;
    at.asked.overlap |= TY_OVERLAP_GRAD;
    at.cluster.nodes_per_leaf = 2;
    at.cluster.oversubscription = 2.0;
    at.cluster.routing = TY_ROUTING_ECMP;
    if (!case_ready(&at))
        return;
    work(&workers[0]);
    const double first_s = workers[0].time_s;
    for (int n = 1; n <= 8; n = n == 1 ? 2 : n * 4) {
        bool same_bits = workers[0].good;
        for (int i = 0; i < n; i++)
            pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        for (int i = 0; i < n; i++) {
            pthread_join(workers[i].thread, NULL);
            same_bits = same_bits && workers[i].time_s == first_s;
        }
        ok(same_bits, "the same bits on %d threads", n);
    }
}

static void test_out_of_memory(void)
{
    const struct ty_speed slow = {.first_rank = 3, .n_ranks = 2, .ratio = 0.9};
    const struct ty_scenario scenario = {.n_speeds = 1, .speeds = &slow, .detailed = true};
    const struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = &scenario};
    struct failing failing = {0};
    const struct ty_allocator allocator = {failing_alloc, failing_release, &failing};
    bool reported = true, given_back = true;
    uint64_t n = 0;
    case_open(&at);
    at.asked.n_gpus = 32;
    at.asked.tp = 2;
    at.asked.gbs = 16;
    if (!case_ready(&at))
        return;
    for (ty_status status = TY_ERR_NOMEM; status != TY_OK && n < 2000; n++) {
        struct evaluator own = {.allocator = allocator};
        struct memory_verdict verdict;
        struct step_result out;
        failing = (struct failing){.n_left = n};
        status = evaluator_init(&own, &allocator);
        if (status == TY_OK) {
            status = evaluator_memory(&own, &at.setting, &at.plan, &verdict);
            if (status == TY_OK)
                status = evaluator_simulate(&own, &at.setting, &at.plan, &options, &out, NULL);
            evaluator_destroy(&own);
        }
        reported = reported && (status == TY_ERR_NOMEM) == failing.failed;
        given_back = given_back && failing.held_bytes == 0;
    }
    ok(n > 50 && n < 2000, "the full rung allocates %u times", (unsigned)n);
    ok(reported, "every failed allocation is reported as TY_ERR_NOMEM");
    ok(given_back, "all memory is given back each time");
}

int main(void)
{
    if (evaluator_init(&evaluator, NULL) != TY_OK)
        return 1;
    test_same();
    test_detailed();
    test_straggler();
    test_jitter();
    test_fault();
    test_spine();
    test_places();
    test_jobs();
    test_mixed();
    test_monotone();
    test_limits();
    test_threads();
    test_out_of_memory();
    evaluator_destroy(&evaluator);
    return tap_done();
}
