/* SPDX-License-Identifier: MIT
 * One step against closed forms: pipeline, data-parallel traffic, fixed times, host, tail. */
#include "models/memory.h"
#include "tests/step_fixture.h"

#include <pthread.h>

static struct step *step;
static struct step_case *c;

static double sum_of(const double part_s[TY_N_PARTS])
{
    double sum = 0.0;
    for (int i = 0; i < TY_N_PARTS; i++)
        sum += part_s[i];
    return sum;
}

static struct step_result simulate(void)
{
    struct step_result result = {.time_s = (double)NAN};
    if (!case_ready(c))
        ok(false, "the plan of this test is legal");
    else
        case_simulate(c, step, &result);
    return result;
}

/* Links of no cost and no latency; applied to a resolved setting. */
static void free_links(struct setting *setting)
{
    setting->cluster.nic_bytes_per_s = setting->cluster.scaleup_bytes_per_s = 1e30;
    setting->cluster.gpu.scaleup_bytes_per_s = 1e30;
    setting->profile.allgather_busbw_bytes_per_s = 1e30;
    setting->profile.allreduce_busbw_bytes_per_s = 1e30;
    setting->cluster.nic_latency_s = setting->profile.collective_latency_s = 0.0;
    setting->profile.p2p_latency_s = 0.0;
}

static double record_s(enum layer_what what, enum layer_phase phase)
{
    static struct record_cache *cache;
    static struct engine *engine;
    const struct record *record = NULL;
    if ((!cache && record_cache_create(NULL, &cache) != TY_OK) ||
        (!engine && engine_create(NULL, &engine) != TY_OK))
        exit(1);
    record_cache_use(cache, &c->setting);
    if (record_get(cache, engine, &c->setting, &c->plan, what, 0, phase, &record) != TY_OK)
        exit(1);
    return record->time_s;
}

static double layer_s(void)
{
    return record_s(WHAT_LAYER, PHASE_FORWARD) + record_s(WHAT_LAYER, PHASE_BACKWARD);
}

/* Gradient norm (4 B a parameter), Adam (30 B) and zeroed gradients (4 B): handbook 4.7. */
static double tail_s(double params)
{
    return 38.0 * params / kernel_mem_bytes_per_s(&c->setting);
}

/* Equal stages, free messages: (m v + p - 1)/v (t_F + t_B), handbook 2.5 and 2.7. */
static void test_pipeline(void)
{
    static const struct {
        uint32_t p, v, m;
    } shapes[] = {{1, 1, 3}, {2, 1, 4}, {4, 1, 8}, {8, 1, 8}, {4, 2, 8}, {4, 8, 8}, {8, 4, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t p = shapes[i].p, v = shapes[i].v, m = shapes[i].m;
        char what[64];
        case_open(c);
        c->asked.pp = c->asked.n_gpus = p;
        c->asked.vpp = v;
        c->asked.gbs = m;
        if (!case_ready(c))
            exit(1);
        free_links(&c->setting);
        const uint32_t layers = 32 / (p * v);
        for (uint32_t slot = 0; slot < p * v; slot++) /* no embedding, no head: equal stages */
            c->slots[slot] = (struct slot){.first_layer = slot * layers, .n_layers = layers};
        const double stage_s = layers * v * layer_s();
        const double want_s =
            (m * v + p - 1.0) / v * stage_s + tail_s(layers * v * c->setting.params.layer[0]);
        struct step_result got;
        snprintf(what, sizeof what, "p=%u v=%u m=%u: (m v + p - 1)/v (t_F + t_B)", p, v, m);
        if (case_simulate(c, step, &got))
            near(got.time_s, want_s, 1e-9, what);
        within(got.breakdown_s[TY_PART_BUBBLE], (p - 1.0) / v * stage_s, 1e-9, "bubble");
        double bound_s;
        if (step_bound(step, &c->setting, &c->plan, c->slots, &bound_s) == TY_OK)
            ok(bound_s <= got.time_s * (1 + 1e-12) &&
                   bound_s >= (m + (p - 1.0) / v) * stage_s * (1 - 1e-9),
               "the bound knows fill and drain");
    }
}

struct sends {
    uint32_t n;
    double shortest_s, longest_s;
};

static void on_send(void *user, const struct ty_trace_event *event)
{
    struct sends *sends = user;
    if (strcmp(event->name, "send") != 0)
        return;
    sends->n++;
    sends->shortest_s = fmin(sends->shortest_s, event->end_s - event->start_s);
    sends->longest_s = fmax(sends->longest_s, event->end_s - event->start_s);
}

/* Simulates; every message must be of payload_bytes and undisturbed. */
static void check_sends(double payload_bytes, uint32_t n, const char *what)
{
    struct sends sends = {.shortest_s = 1e9};
    simulate();
    step_trace(step, on_send, &sends);
    struct collective message = {.op = COLLECTIVE_SEND, .payload_bytes = payload_bytes};
    grid_shape(&c->setting, &c->plan, AXIS_PP, &message.shape);
    const double want_s = collective_time_s(&c->setting, &message);
    ok(sends.n == n, "%s: %u messages", what, n);
    near(sends.shortest_s, want_s, 1e-9, what);
    near(sends.longest_s, want_s, 1e-9, what);
}

static void test_messages(void)
{
    /* One micro-batch through two stages: nothing hides the two messages of s b h w bytes. */
    const double bytes = 4096.0 * 4096 * 2;
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 2;
    c->asked.gbs = 1;
    check_sends(bytes, 2, "a message is s b h w bytes");
    const struct step_result one = simulate();
    struct step_result ideal;
    c->setting.profile.p2p_latency_s = 0.0;
    c->setting.profile.allgather_busbw_bytes_per_s = 1e30;
    case_simulate(c, step, &ideal);
    struct collective message = {.op = COLLECTIVE_SEND, .payload_bytes = bytes};
    case_ready(c);
    grid_shape(&c->setting, &c->plan, AXIS_PP, &message.shape);
    near(one.time_s - ideal.time_s, 2.0 * collective_time_s(&c->setting, &message), 1e-9,
         "both are exposed");
    ok(one.breakdown_s[TY_PART_PP] > 0.0, "and booked as pp");

    c->asked.tp = 4;
    c->asked.n_gpus = 8;
    check_sends(bytes / 4.0, 2, "sequence parallelism: each of t ranks its share");
    c->asked.sp = TY_OFF;
    check_sends(bytes, 2, "without it: each rank all of it");
    c->asked.tp = 1;
    c->asked.cp = 4;
    check_sends(bytes / 4.0, 2, "context parallelism: s/c tokens");
    c->asked.cp = 1;
    c->asked.pp = 8;
    c->asked.vpp = 2;
    c->asked.gbs = 8;
    check_sends(bytes, 2 * 8 * 15, "chunks: 15 boundaries of 16 slots, both ways");

    /* Many micro-batches: overlap hides messages, without it every stage waits for its sends. */
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 4;
    c->asked.gbs = 16;
    const double blocking_s = simulate().time_s;
    c->asked.overlap |= TY_OVERLAP_PP;
    const double hidden_s = simulate().time_s;
    free_links(&c->setting);
    case_simulate(c, step, &ideal);
    ok(ideal.time_s < hidden_s && hidden_s < blocking_s, "free < overlapped < blocking messages");
}

/* UT-2.8: llama3-70B, t = 8, D = 16 at 40 GB/s: RS of fp32 gradients 206.70 ms and AG of bf16
 * parameters 103.35 ms for N/32 parameters; here p = 1, so N/8: four times as much. The
 * norms, which every TP rank holds whole, make 3e-4 more. */
static void exposed_traffic(int sharding)
{
    case_open(c);
    fixture_llama3_70b(&c->model);
    c->profile.ramp_ratio = c->profile.collective_latency_s = 0.0;
    c->profile.nic_ratio = 0.8;
    c->cluster.nic_latency_s = 0.0;
    c->asked.tp = 8;
    c->asked.n_gpus = 128;
    c->asked.gbs = 32;
    c->asked.sharding = sharding;
}

static void test_data_parallel(void)
{
    exposed_traffic(TY_SHARDING_ZERO1);
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * (0.20670 + 0.10335), 5e-4,
         "UT-2.8 ZeRO-1 without overlap: RS + AG");
    c->asked.precision = TY_FP8_PRECISION;
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * (0.20670 + 0.10335 / 2.0), 5e-4,
         "FP8 parameters are gathered in 8 bits");
    c->asked.precision = TY_MXFP8_PRECISION;
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * (0.20670 + 0.10335), 5e-4,
         "MXFP8 is made after the gather");
    exposed_traffic(TY_SHARDING_NONE);
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * 2.0 * 0.20670, 5e-4, "DDP: all-reduce, 2x");
    c->profile.dp_time_ratio = 1.5;
    c->profile.dp_network_ratio = 2.0;
    near(simulate().breakdown_s[TY_PART_DP], 3.0 * 4.0 * 2.0 * 0.20670, 5e-4,
         "a stack that takes longer, and longer again between nodes");
    c->asked.tp = 1;
    c->asked.n_gpus = 8;
    const double inside_s = simulate().breakdown_s[TY_PART_DP];
    c->profile.dp_network_ratio = 1.0;
    near(simulate().breakdown_s[TY_PART_DP], inside_s, 1e-12, "inside a node: not again");
    exposed_traffic(TY_SHARDING_ZERO2);
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * (2.0 * 0.20670 + 0.10335), 5e-4,
         "ZeRO-2: RS after both micro-batches");
    exposed_traffic(TY_SHARDING_ZERO3);
    c->asked.reshard_after_forward = TY_ON;
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * 2.0 * (2.0 * 0.10335 + 0.20670), 5e-4,
         "ZeRO-3 without overlap: 2 AG + RS per micro-batch");
    c->asked.reshard_after_forward = TY_OFF;
    near(simulate().breakdown_s[TY_PART_DP], 4.0 * (0.10335 + 0.20670), 5e-4,
         "ZeRO-3 kept gathered: one AG, one RS");

    /* Shards of 4, 4 replicas: RS and AG move 3/4 instead of 15/16; AR 2 x 3/4 of a quarter. */
    exposed_traffic(TY_SHARDING_ZERO1);
    c->asked.shard_group = 4;
    near(simulate().breakdown_s[TY_PART_DP],
         4.0 * ((0.20670 + 0.10335) * (0.75 / 0.9375) + 0.20670 / 0.9375 * 2.0 * 0.75 / 4.0), 5e-4,
         "ZeRO-1 groups: inside the group, then over replicas");
    exposed_traffic(TY_SHARDING_ZERO1);
    c->asked.seq = 65536;
    c->asked.overlap |= TY_OVERLAP_GRAD | TY_OVERLAP_PARAM;
    const double hidden_s = simulate().breakdown_s[TY_PART_DP];
    ok(hidden_s > 0.0 && hidden_s < 0.25 * 4.0 * 0.31005, "overlap hides most of it (%g s left)",
       hidden_s);
}

/* dp is what the traffic costs, not how long it runs: gradients of the first stage are reduced
 * while it still computes, so the other stages do not wait for them. */
/* Only adapters change: RS of their fp32 gradients and AG of the bf16 adapters, over 16 ranks. */
static void test_frozen(void)
{
    exposed_traffic(TY_SHARDING_ZERO1);
    c->model.lora_rank = 16;
    const double dp_s = simulate().breakdown_s[TY_PART_DP];
    const double params = 80.0 * c->setting.params.adapter[0] / 8.0;
    near(dp_s, params * (4.0 + 2.0) * 15.0 / 16.0 / 40e9, 1e-6,
         "LoRA, ZeRO-1: frozen parameters stay where they are");
}

static void test_exposed(void)
{
    exposed_traffic(TY_SHARDING_ZERO1);
    c->asked.n_gpus = 512;
    c->asked.pp = 4;
    c->asked.gbs = 16 * 16;
    c->asked.seq = 8192;
    c->asked.overlap |= TY_OVERLAP_GRAD | TY_OVERLAP_PARAM | TY_OVERLAP_PP;
    const struct step_result with = simulate();
    struct step_result without;
    c->setting.cluster.nic_bytes_per_s = 1e30;
    c->setting.profile.collective_latency_s = 0.0;
    case_simulate(c, step, &without);
    const double cost_s = with.time_s - without.time_s;
    const double booked_s = with.breakdown_s[TY_PART_DP] + with.breakdown_s[TY_PART_PP];
    printf("# dp and pp: cost %g s, booked %g s\n", cost_s, booked_s);
    /* Not equal: without the one, the next wait shows. The traffic itself runs for 0.35 s. */
    ok(booked_s > 0.5 * cost_s && booked_s < 2.0 * cost_s, "dp and pp: about what they cost");
}

/* Dense and expert gradients leave on streams of their own at the same time, over the same NIC:
 * together they take the sum of their bytes. One NIC for 8 GPUs: eight times as long. */
static void test_shared_nic(void)
{
    for (uint32_t nics = 8; nics >= 1; nics /= 8) {
        double dense, expert;
        case_open(c);
        fixture_deepseek_v3(&c->model);
        c->model.n_layers = 8;
        c->cluster.nics_per_node = nics;
        c->cluster.nic_latency_s = 0.0;
        c->profile.nic_ratio = 1.0;
        c->profile.ramp_ratio = c->profile.collective_latency_s = 0.0;
        c->asked.tp = c->asked.ep = 8;
        c->asked.n_gpus = c->asked.gbs = 64;
        const struct step_result result = simulate();
        memory_rank_params(&c->setting, &c->plan, c->slots, 0, &dense, &expert);
        near(result.breakdown_s[TY_PART_DP],
             7.0 / 8.0 * (4.0 + 2.0) * (dense + expert) / (50e9 * nics / 8.0), 1e-9,
             nics == 8 ? "two flows share a NIC" : "eight ranks share a NIC");
    }
}

/* UT-2.9: llama3-8B FSDP, 16,384 tokens: the traffic of a layer is hidden at 360 GB/s (8 GPUs)
 * and at 45 GB/s (128): then more layers expose no more. */
static double fsdp_exposed_s(uint32_t n_gpus, uint32_t layers, double nic_ratio)
{
    case_open(c);
    c->model.n_layers = layers;
    c->profile.allgather_busbw_bytes_per_s = 360e9;
    c->profile.ramp_ratio = 0.0;
    c->profile.nic_ratio = nic_ratio;
    c->asked.n_gpus = c->asked.gbs = n_gpus;
    c->asked.seq = 16384;
    c->asked.sharding = TY_SHARDING_ZERO3;
    c->asked.reshard_after_forward = TY_ON;
    c->asked.grad_dtype = TY_BF16_PRECISION;
    c->asked.overlap |= TY_OVERLAP_GRAD | TY_OVERLAP_PARAM;
    return simulate().breakdown_s[TY_PART_DP];
}

static void test_fsdp(void)
{
    near(fsdp_exposed_s(8, 32, 0.9), fsdp_exposed_s(8, 16, 0.9), 1e-9,
         "UT-2.9 8 GPUs: layers are hidden");
    near(fsdp_exposed_s(128, 32, 0.9), fsdp_exposed_s(128, 16, 0.9), 1e-9,
         "UT-2.9 128 GPUs: layers are hidden");
    const double sixteen_s = fsdp_exposed_s(128, 16, 0.01);
    ok(fsdp_exposed_s(128, 32, 0.01) > 1.5 * sixteen_s, "a 100 times slower NIC: not hidden");
}

static void test_fixed(void)
{
    case_open(c);
    c->asked.gbs = 4;
    const double base_s = simulate().time_s;
    c->profile.step_fixed_s = 0.1;
    near(simulate().time_s, base_s + 0.1, 1e-12, "step_fixed_s is added once");
    c->profile.step_fixed_s = 0.0;
    c->profile.micro_fixed_s = 0.1;
    near(simulate().time_s, base_s + 0.4, 1e-12, "micro_fixed_s once per micro-batch");
    near(simulate().breakdown_s[TY_PART_LAUNCH], 0.4, 1e-12, "and is booked as launch");
    c->profile.micro_fixed_s = 0.0;
    const double tail = tail_s(c->setting.params.total);
    near(simulate().breakdown_s[TY_PART_OPTIMIZER], tail, 1e-6, "optimizer: 38 B a parameter");

    c->asked.n_gpus = 8;
    c->asked.gbs = 32;
    c->asked.sharding = TY_SHARDING_NONE;
    const double passes_s = base_s - tail;
    const double rest_s = simulate().time_s - passes_s;
    c->profile.jitter_ratio = 0.01;
    near(simulate().time_s, 1.03 * passes_s + rest_s, 1e-6, "jitter: 1 % per doubling");
}

/* Issued slower than it runs: the step takes the host's time, and says so. */
static void test_host(void)
{
    case_open(c);
    c->asked.gbs = 4;
    const double base_s = simulate().time_s;
    c->profile.launch_issue_s = 1e-9;
    near(simulate().time_s, base_s, 1e-12, "a fast host is not seen");
    c->profile.launch_issue_s = 0.0;
    c->profile.host_layer_s = 1.0;
    const struct step_result bound = simulate();
    /* 4 micro-batches x 32 layers x (1 + 1.3) s, then norm and optimizer */
    near(bound.time_s, 4 * 32 * 2.3 + tail_s(c->setting.params.total), 1e-6, "host bound");
    ok(bound.breakdown_s[TY_PART_LAUNCH] > 0.9 * bound.time_s, "and booked as launch");
    c->asked.launch_blocking = TY_ON;
    near(simulate().time_s, base_s + 4 * 32 * 2.3, 1e-6,
         "blocking launches: kernels and host one after the other");
    c->asked.launch_blocking = TY_OFF;
    c->profile.host_micro_s = 10.0;
    near(simulate().time_s, 4 * (32 * 2.3 + 10.0) + tail_s(c->setting.params.total), 1e-6,
         "and what the host does besides, once per micro-batch");
    c->asked.cuda_graph = TY_ON;
    near(simulate().time_s, base_s, 1e-12, "a CUDA graph lifts it");
}

static void test_tied(void)
{
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 2;
    c->asked.gbs = 2;
    const struct step_result untied = simulate();
    c->model.tied = true;
    const struct step_result tied = simulate();
    struct collective sum = {.op = COLLECTIVE_ALL_REDUCE, .payload_bytes = 128256.0 * 4096 * 4};
    grid_shape(&c->setting, &c->plan, AXIS_PP, &sum.shape);
    near(tied.breakdown_s[TY_PART_DP], collective_time_s(&c->setting, &sum), 1e-9,
         "tied table: all-reduce of V h fp32 gradients");
    near(tied.time_s - untied.time_s, tied.breakdown_s[TY_PART_DP], 1e-5, "at the end of the step");
}

/* handbook UT-11.1: gpt3-175B, 64 A100, T = 13.50 s from constants of unrelated tables. */
static void test_composition(void)
{
    case_open(c);
    fixture_gpt(&c->model, 12288, 96, 96, 51200, 2048);
    fixture_dgx_a100(&c->cluster);
    c->profile.gemm_ratio_16 = 0.75;
    c->profile.gemm_k0 = 0.0;
    c->profile.gemm_wave_loss = 0.0;
    c->profile.gemm_backward = 1.0;
    c->profile.mem_ratio = 1.44 / 2.039;
    c->profile.elementwise_ratio = 34.0 / 26.0; /* 34 s h/t bytes a layer against ours fused */
    c->profile.allgather_busbw_bytes_per_s = 172e9;
    c->profile.collective_latency_s = c->profile.ramp_ratio = 0.0;
    c->asked.tp = c->asked.pp = 8;
    c->asked.vpp = 3;
    c->asked.n_gpus = c->asked.gbs = 64;
    c->asked.seq = 2048;
    c->asked.attention = TY_KERNEL_UNFUSED;
    c->asked.recompute = TY_RECOMPUTE_SELECTIVE;
    c->asked.overlap |= TY_OVERLAP_PP;
    const double time_s = simulate().time_s;
    printf("# gpt3-175B on 64 A100: %.3f s (composition 13.501 s, measured 13.75 s)\n", time_s);
    near(time_s, 13.5012, 0.03, "UT-11.1 composition within 3 %");
}

struct trace {
    uint32_t n, n_compute;
    double end_s[64], last_s;
    bool ordered, apart;
};

static void on_event(void *user, const struct ty_trace_event *event)
{
    struct trace *trace = user;
    trace->n++;
    trace->ordered = trace->ordered && event->start_s <= event->end_s;
    trace->last_s = fmax(trace->last_s, event->end_s);
    if (strcmp(event->stream, "compute") != 0)
        return;
    trace->n_compute++;
    trace->apart = trace->apart && event->start_s >= trace->end_s[event->rank] * (1 - 1e-12);
    trace->end_s[event->rank] = event->end_s;
}

static void test_trace(void)
{
    case_open(c);
    c->asked.pp = 4;
    c->asked.vpp = 2;
    c->asked.n_gpus = 4;
    c->asked.gbs = 8;
    const struct step_result result = simulate();
    struct trace trace = {.ordered = true, .apart = true};
    step_trace(step, on_event, &trace);
    ok(trace.ordered && trace.apart, "trace: by start, one task at a time on a compute stream");
    ok(trace.n_compute == 4 * (2 * 2 * 8 + 3), "trace: every pass, and fixed, norm, optimizer");
    near(trace.last_s, result.time_s, 1e-12, "trace: ends with the step");
    near(sum_of(result.breakdown_s), result.time_s, 1e-12, "breakdown adds up");
}

/* ---- the same bits ------------------------------------------------------------------------ */

static void *on_thread(void *user)
{
    struct step *own;
    struct step_result *out = user;
    if (step_create(NULL, &own) != TY_OK)
        return NULL;
    for (int i = 0; i < 3; i++)
        if (step_simulate(own, &c->setting, &c->plan, c->slots, NULL, out, NULL) != TY_OK)
            out->time_s = (double)NAN;
    step_destroy(own);
    return NULL;
}

static void busy_case(void)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile); /* interference, fixed times, everything */
    c->asked.tp = 2;
    c->asked.pp = 4;
    c->asked.vpp = 2;
    c->asked.n_gpus = 64;
    c->asked.gbs = 64;
    c->asked.overlap = 0;
}

static void test_same_bits(void)
{
    struct step_result got[8];
    pthread_t thread[8];
    busy_case();
    const struct step_result first = simulate(), second = simulate();
    ok(memcmp(&first, &second, sizeof first) == 0, "the same bits twice");
    test_trace(); /* another plan, another setting */
    busy_case();
    const struct step_result third = simulate();
    ok(memcmp(&first, &third, sizeof first) == 0, "the same bits after other plans");
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, on_thread, &got[i]);
    bool same = true;
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        same = same && memcmp(&first, &got[i], sizeof first) == 0;
    }
    ok(same, "the same bits on 8 threads");
}

/* ---- memory ------------------------------------------------------------------------------- */

struct meter {
    uint64_t n_calls, fail_at; /* fail_at: number of the call that fails, 0 = none */
    int64_t held_bytes;
};

static void *meter_alloc(void *user, size_t bytes)
{
    struct meter *meter = user;
    if (++meter->n_calls == meter->fail_at)
        return NULL;
    meter->held_bytes += (int64_t)bytes;
    return malloc(bytes);
}

static void meter_release(void *user, void *block, size_t bytes)
{
    ((struct meter *)user)->held_bytes -= (int64_t)bytes;
    free(block);
}

static void test_memory(void)
{
    struct meter meter = {0};
    const struct ty_allocator allocator = {meter_alloc, meter_release, &meter};
    struct step_result result;
    struct step *own;
    busy_case();
    case_ready(c);
    if (step_create(&allocator, &own) != TY_OK)
        return;
    case_simulate(c, own, &result);
    const uint64_t n_calls = meter.n_calls;
    case_simulate(c, own, &result);
    c->plan.n_micro /= 2;
    case_simulate(c, own, &result);
    ok(meter.n_calls == n_calls, "a plan costs no allocation once another was simulated");
    step_destroy(own);
    ok(meter.held_bytes == 0, "all memory is given back");

    bool survived = true;
    for (uint64_t at = 1; at <= n_calls; at++) {
        meter.n_calls = 0;
        meter.fail_at = at;
        ty_status status = step_create(&allocator, &own);
        if (status == TY_OK) {
            status = step_simulate(own, &c->setting, &c->plan, c->slots, NULL, &result, NULL);
            step_trace(own, on_send, &(struct sends){0});
            step_destroy(own);
        }
        survived =
            survived && (status == TY_ERR_NOMEM || meter.n_calls < at) && meter.held_bytes == 0;
    }
    ok(survived, "each of %u allocations may fail", (unsigned)n_calls);
}

static void test_limits(void)
{
    case_open(c);
    c->asked.pp = 2;
    c->asked.n_gpus = 2;
    c->asked.gbs = 64;
    case_ready(c);
    struct step_result result;
    struct ty_error error;
    const struct ty_options few = {.max_events = 10};
    ok(step_simulate(step, &c->setting, &c->plan, c->slots, &few, &result, &error) == TY_ERR_LIMIT,
       "max_events is kept");
    c->asked.gbs = 1u << 30;
    case_ready(c);
    ok(step_simulate(step, &c->setting, &c->plan, c->slots, NULL, &result, &error) == TY_ERR_LIMIT,
       "an absurd number of micro-batches is refused");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    test_pipeline();
    test_messages();
    test_data_parallel();
    test_frozen();
    test_exposed();
    test_shared_nic();
    test_fsdp();
    test_fixed();
    test_host();
    test_tied();
    test_composition();
    test_same_bits();
    test_memory();
    test_limits();
    step_destroy(step);
    free(c);
    return tap_done();
}
