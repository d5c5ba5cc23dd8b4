/* SPDX-License-Identifier: MIT
 * What can hide what, switch by switch, against closed forms: early recompute, expert traffic
 * beside another micro-batch or the shared experts, the kinds of TP overlap, SMs taken by
 * collectives (handbook 2.1, 2.4, 2.5, 4.2, 5.7). */
#include "tests/step_fixture.h"

static struct step *step;
static struct step_case *c;

static struct step_result simulate(void)
{
    struct step_result result = {.time_s = (double)NAN};
    if (!case_ready(c))
        ok(false, "the plan of this test is legal");
    else
        case_simulate(c, step, &result);
    return result;
}

static double record_s(enum layer_phase phase, int recompute)
{
    static struct record_cache *cache;
    static struct engine *engine;
    const struct record *record = NULL;
    struct ty_plan plan = c->plan;
    plan.recompute = recompute;
    if ((!cache && record_cache_create(NULL, &cache) != TY_OK) ||
        (!engine && engine_create(NULL, &engine) != TY_OK))
        exit(1);
    record_cache_use(cache, &c->setting);
    if (record_get(cache, engine, &c->setting, &plan, WHAT_LAYER, 0, phase, &record) != TY_OK)
        exit(1);
    return record->time_s;
}

/* One micro-batch, p stages of one layer, free messages: every stage but the last waits for its
 * gradient, and has its layer recomputed by then. Without the switch p (f + b). */
static void test_early_recompute(void)
{
    enum { P = 8 };
    struct step_result late, early;
    case_open(c);
    c->asked.pp = c->asked.n_gpus = P;
    c->asked.gbs = 1;
    c->asked.recompute = TY_RECOMPUTE_FULL;
    for (int on = 0; on < 2; on++) {
        c->asked.recompute_early = on ? TY_ON : TY_OFF;
        if (!case_ready(c))
            exit(1);
        c->setting.cluster.nic_bytes_per_s = c->setting.profile.allgather_busbw_bytes_per_s = 1e30;
        c->setting.cluster.scaleup_bytes_per_s = 1e30;
        c->setting.profile.p2p_latency_s = 0.0;
        for (uint32_t slot = 0; slot < P; slot++)
            c->slots[slot] = (struct slot){.first_layer = slot, .n_layers = 1};
        case_simulate(c, step, on ? &early : &late);
    }
    const double rerun_s =
        record_s(PHASE_BACKWARD, TY_RECOMPUTE_FULL) - record_s(PHASE_BACKWARD, TY_RECOMPUTE_NONE);
    near(late.time_s - early.time_s, (P - 1) * rerun_s, 1e-9,
         "early recompute: each stage but the last saves its layer's");
    near(rerun_s, record_s(PHASE_FORWARD, TY_RECOMPUTE_FULL), 1e-9, "which is a forward");
}

static void open_moe(uint32_t shared_ffn)
{
    case_open(c);
    fixture_deepseek_v3(&c->model);
    c->model.n_layers = 8;
    c->model.kinds[1].shared_ffn = shared_ffn;
    c->asked.ep = c->asked.n_gpus = 8;
    c->asked.gbs = 8 * 6;
    c->asked.sharding = TY_SHARDING_NONE;
}

/* No pipeline, 6 micro-batches: all but the first forward and the last backward run in pairs. */
static void test_batch(void)
{
    open_moe(2048);
    const struct step_result apart = simulate();
    c->asked.overlap |= TY_OVERLAP_BATCH;
    const struct step_result together = simulate();
    near(together.breakdown_s[TY_PART_EP], apart.breakdown_s[TY_PART_EP] / 6.0, 1e-9,
         "batch-level overlap: expert traffic of 5 of 6 pairs is hidden");
    near(apart.time_s - together.time_s, apart.breakdown_s[TY_PART_EP] * 5.0 / 6.0, 1e-9,
         "and the step is shorter by it");
    c->profile.slow_compute_scaleup = 0.2;
    const struct step_result slowed = simulate();
    near(apart.time_s - slowed.time_s, 0.8 * apart.breakdown_s[TY_PART_EP] * 5.0 / 6.0, 1e-9,
         "by 1 - a of it where traffic slows kernels by a");
    c->asked.pp = 4;
    c->asked.n_gpus = 32;
    simulate();
    ok(!(c->plan.overlap & TY_OVERLAP_BATCH), "plain 1F1B has no pairs: the switch is dropped");
    c->asked.vpp = 2;
    c->asked.gbs = 8 * 8;
    const double joined_s = simulate().time_s;
    ok(c->plan.overlap & TY_OVERLAP_BATCH, "interleaved has");
    c->asked.overlap &= ~(uint32_t)TY_OVERLAP_BATCH;
    ok(joined_s < simulate().time_s, "and is faster with them");
}

static void test_shared(void)
{
    open_moe(2048);
    const double none_s = simulate().breakdown_s[TY_PART_EP];
    c->asked.overlap |= TY_OVERLAP_SHARED;
    const double some_s = simulate().breakdown_s[TY_PART_EP];
    ok(some_s < none_s && some_s > 0.0, "small shared experts hide some (%.3g of %.3g s)",
       none_s - some_s, none_s);
    open_moe(1 << 17);
    const struct step_result apart = simulate();
    c->asked.overlap |= TY_OVERLAP_SHARED;
    const struct step_result hidden = simulate();
    ok(hidden.breakdown_s[TY_PART_EP] == 0.0, "large shared experts hide all");
    near(apart.time_s - hidden.time_s, apart.breakdown_s[TY_PART_EP], 1e-9, "and nothing else");
    open_moe(0);
    c->asked.overlap |= TY_OVERLAP_SHARED;
    simulate();
    ok(!(c->plan.overlap & TY_OVERLAP_SHARED), "without shared experts the switch is dropped");
}

/* A kind hides its own collectives: what each saves adds up to what all save. */
static void test_tp_kinds(void)
{
    double saved_s[5];
    for (uint32_t i = 0; i < 5; i++) {
        static const uint32_t kinds[] = {0, TY_TP_RING, TY_TP_PIPELINED, TY_TP_BULK,
                                         TY_TP_RING | TY_TP_PIPELINED | TY_TP_BULK};
        case_open(c);
        c->asked.tp = c->asked.n_gpus = 8;
        c->asked.seq = 8192;
        const double apart_s = simulate().time_s;
        c->asked.overlap |= TY_OVERLAP_TP;
        c->asked.tp_overlap = kinds[i];
        saved_s[i] = apart_s - simulate().time_s;
    }
    ok(saved_s[1] > 0.0 && saved_s[2] > 0.0 && saved_s[3] > 0.0, "ring, pipelined, bulk save");
    near(saved_s[1] + saved_s[2] + saved_s[3], saved_s[4], 1e-9, "together what all save");
    ok(saved_s[0] == saved_s[4], "no kind named: all");
}

/* UT-5.6: 20 of 132 SMs: 1.1786; and one more wave where 132 tiles fill 132 SMs exactly. */
static void test_sms(void)
{
    struct kernel kernel;
    case_open(c);
    c->profile.gemm_wave_loss = 0.0;
    case_ready(c);
    kernel_gemm(&kernel, "", TY_BF16_PRECISION, 8192, 8192, 8192);
    const double all_s = kernel_form_s(&c->setting, &kernel);
    kernel.sms_taken = 20;
    near(kernel_form_s(&c->setting, &kernel) / all_s, 132.0 / 112.0, 1e-12,
         "UT-5.6: 20 of 132 SMs slow a GEMM 1.1786 times");
    c->asked.tp = c->asked.n_gpus = 8;
    c->asked.overlap |= TY_OVERLAP_TP;
    const double free_s = simulate().time_s;
    c->asked.comm_sms = 20;
    const double taken_s = simulate().time_s;
    ok(taken_s > free_s && taken_s < free_s * 132.0 / 112.0, "a step by less: only beside traffic");
    c->profile.gemm_wave_loss = 1.0;
    case_ready(c);
    /* 12 x 11 tiles of 256 x 128; smaller tiles are slower on their own */
    kernel_gemm(&kernel, "", TY_BF16_PRECISION, 12 * 256, 11 * 128, 8192);
    const double one_wave_s = kernel_form_s(&c->setting, &kernel);
    kernel.sms_taken = 20;
    ok(kernel_form_s(&c->setting, &kernel) > 1.3 * one_wave_s, "the wave cliff: far more (%.2f)",
       kernel_form_s(&c->setting, &kernel) / one_wave_s);
    c->asked.overlap = TY_OVERLAP_GIVEN;
    simulate();
    ok(c->plan.comm_sms == 0, "without overlap they are dropped");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    test_early_recompute();
    test_batch();
    test_shared();
    test_tp_kinds();
    test_sms();
    step_destroy(step);
    free(c);
    return tap_done();
}
