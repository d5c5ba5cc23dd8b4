/* SPDX-License-Identifier: MIT
 * Behaviours of published runs: direction and rough size, with uncalibrated constants. */
#include "tests/step_fixture.h"

static struct step *step;
static struct step_case *c;

/* Sequences per second of `asked`. */
static double speed(void)
{
    struct step_result result = {.time_s = (double)NAN};
    if (!case_ready(c))
        ok(false, "the plan of this test is legal");
    else
        case_simulate(c, step, &result);
    return c->plan.gbs / result.time_s;
}

static void open_h100(uint32_t n_gpus, uint32_t tp, uint32_t pp)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile);
    c->asked.n_gpus = n_gpus;
    c->asked.tp = tp;
    c->asked.pp = pp;
    c->asked.seq = 8192;
    c->asked.sharding = TY_SHARDING_ZERO3;
    c->asked.recompute = TY_RECOMPUTE_FULL;
    c->asked.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM | TY_OVERLAP_PP;
}

/* GOLD-2.3: llama3-405B, 512 H100, TP 8, PP 8, FSDP 8, 32 sequences per replica, float8, async TP:
 * 1F1B 100 tokens/s/GPU, interleaved 128. The table does not say the micro-batch; the bubble alone
 * gives (1 + 7/m) / (1 + 7/(m v)). */
static void test_interleaved(void)
{
    for (uint32_t mbs = 1; mbs <= 2; mbs++) {
        open_h100(512, 8, 8);
        fixture_llama3_405b(&c->model);
        c->asked.mbs = mbs;
        c->asked.gbs = 8 * 32;
        c->asked.precision = TY_FP8_PRECISION;
        c->asked.overlap |= TY_OVERLAP_TP;
        c->asked.schedule = TY_SCHEDULE_1F1B;
        const double plain = speed();
        c->asked.schedule = TY_SCHEDULE_INTERLEAVED;
        c->asked.vpp = 8;
        const double gain = speed() / plain - 1.0;
        const double m = 32.0 / mbs, bubble = (1.0 + 7.0 / m) / (1.0 + 7.0 / (8.0 * m)) - 1.0;
        printf("# micro-batch %u: %+.1f %%, bubbles alone %+.1f %%, published +28 %%\n", mbs,
               100.0 * gain, 100.0 * bubble);
        ok(gain > 0.6 * bubble && gain < 1.5 * bubble, "interleaved against 1F1B at PP 8");
    }
}

/* GOLD-2.1: async TP with FSDP and full recompute: llama3-70B on 256 H100 (TP 8, 16 sequences per
 * replica) 1.09 in bf16, 1.16 in float8; llama3-8B on 64 H100 1.10. */
static double async_gain(bool large, int precision)
{
    open_h100(large ? 256 : 64, 8, 1);
    if (large)
        fixture_llama3_70b(&c->model);
    c->asked.mbs = 16;
    c->asked.gbs = c->asked.n_gpus / 8 * 16;
    c->asked.precision = precision;
    c->profile.tp_overlap_exposed = 0.65; /* of torchtitan: the prior of ACCURACY-2 2.7 */
    const double apart = speed();
    c->asked.overlap |= TY_OVERLAP_TP;
    return speed() / apart;
}

static void test_async_tp(void)
{
    const double large = async_gain(true, TY_BF16_PRECISION),
                 low = async_gain(true, TY_FP8_PRECISION);
    const double small = async_gain(false, TY_BF16_PRECISION);
    printf("# async TP: 70B %.3f (1.09), float8 %.3f (1.16), 8B %.3f (1.10)\n", large, low, small);
    ok(large > 1.04 && large < 1.16, "70B in bf16: +6 .. +16 %%, give or take");
    ok(low > 1.06 && low < 1.22 && low > large, "more in float8, whose GEMMs are shorter");
    ok(small > 1.04 && small < 1.18, "8B");
}

/* MLPerf Training, GPT-3 175B on H100, FP8, TP 4, PP 8: 787 TFLOP/s/GPU on 512 GPUs with 128
 * micro-batches, 585 on 10,752 with 8. */
static double gpt3_speed(uint32_t n_gpus, uint32_t n_micro)
{
    open_h100(n_gpus, 4, 8);
    fixture_gpt(&c->model, 12288, 96, 96, 51200, 2048);
    c->asked.seq = 2048;
    c->asked.vpp = 6;
    c->asked.gbs = n_gpus / 32 * n_micro;
    c->asked.precision = TY_FP8_PRECISION;
    c->asked.sharding = TY_SHARDING_ZERO1;
    c->asked.recompute = TY_RECOMPUTE_NONE;
    c->asked.overlap |= TY_OVERLAP_TP;
    return speed() / n_gpus;
}

static void test_accumulation(void)
{
    static const uint32_t gpus[] = {512, 1024, 2048, 4096, 8192, 10752};
    static const uint32_t micro[] = {128, 64, 32, 16, 8, 8};
    double first = 0.0, before = INFINITY, last = 0.0;
    bool falls = true;
    for (int i = 0; i < 6; i++) {
        last = gpt3_speed(gpus[i], micro[i]);
        falls = falls && last < before;
        first = i == 0 ? last : first;
        before = last;
    }
    printf("# GPT-3 per GPU, 10,752 against 512 H100: %.3f (published 585/787 = 0.743)\n",
           last / first);
    ok(falls, "throughput per GPU falls as accumulation falls with scale");
    ok(last / first > 0.60 && last / first < 0.88, "by about a quarter");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    test_interleaved();
    test_async_tp();
    test_accumulation();
    step_destroy(step);
    free(c);
    return tap_done();
}
