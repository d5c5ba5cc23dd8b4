/* SPDX-License-Identifier: MIT
 * Kernel times from measured tables: the order of trust, the interpolation against its equation
 * (trainyard_measured.h), and what a prediction says of it. */
#include "models/measured.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;
static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

static void open_setting(const struct ty_measured *measured)
{
    struct ty_error error = {0};
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    profile.measured = measured;
    if (setting_init(&model, &cluster, &profile, &setting, NULL, &error) != TY_OK) {
        printf("Bail out! %s: %s\n", error.where, error.text);
        exit(1);
    }
}

static struct kernel gemm(double m, double n, double k)
{
    struct kernel kernel;
    kernel_gemm(&kernel, "fc1", TY_BF16_PRECISION, m, n, k);
    return kernel;
}

static void test_gemm(void)
{
    const struct ty_measured_gemm records[] = {
        {TY_BF16_PRECISION, TY_FORWARD, false, 4096, 4096, 4096, 1, 0, 1e-3},
        {TY_BF16_PRECISION, TY_FORWARD, false, 8192, 4096, 4096, 1, 0, 5e-3},
        {TY_FP8_PRECISION, TY_FORWARD, false, 4096, 4096, 5000, 1, 0, 9e-3},
        {TY_BF16_PRECISION, TY_WGRAD, false, 4096, 4096, 5000, 1, 0, 9e-3},
        {TY_BF16_PRECISION, TY_FORWARD, true, 4096, 4096, 5000, 1, 4096, 9e-3}};
    const struct ty_measured measured = {.n_gemms = 5, .gemms = records};
    open_setting(&measured);
    struct kernel kernel = gemm(4096, 4096, 4096);
    near(kernel_time_s(&setting, &kernel), 1e-3, 1e-12, "the very shape: its record");
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_MEASURED, "which is said");
    /* m is sqrt(2) from both: half a doubling, weight 1 each, and the form's weight is 1. */
    kernel = gemm(4096 * sqrt(2.0), 4096, 4096);
    const struct kernel low = gemm(4096, 4096, 4096), high = gemm(8192, 4096, 4096);
    const double log_ratio =
        (log(1e-3 / kernel_form_s(&setting, &low)) + log(5e-3 / kernel_form_s(&setting, &high))) /
        3.0;
    near(kernel_time_s(&setting, &kernel), kernel_form_s(&setting, &kernel) * exp(log_ratio), 1e-9,
         "between two records: the form, corrected");
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_INTERPOLATED, "which is said");
    kernel = gemm(4096, 4096, 8192);
    near(kernel_time_s(&setting, &kernel), kernel_form_s(&setting, &kernel), 1e-12,
         "a doubling away: the form alone");
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_PRESET, "with preset constants");
    setting.profile.fitted = 1u << TY_WORK_GEMM;
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_FITTED, "or fitted ones");
    kernel = gemm(4096, 4096, 8191.9);
    struct kernel next = gemm(4096, 4096, 8192.1);
    near(kernel_time_s(&setting, &kernel), kernel_time_s(&setting, &next), 1e-4,
         "no jump where the records end");
    kernel.backward = true;
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_FITTED, "no record of another direction");
}

static void test_attention(void)
{
    const double seq = 4096.0, pairs = 32.0 * seq * seq / 2.0;
    const struct ty_measured_attention records[] = {
        {TY_BF16_PRECISION, TY_FORWARD, 32, seq, seq, 128, pairs, 1e-3},
        {TY_BF16_PRECISION, TY_DGRAD, 32, seq, seq, 128, pairs, 3e-3}};
    const struct ty_measured measured = {.n_attentions = 2, .attentions = records};
    open_setting(&measured);
    struct kernel kernel;
    measured_attention_kernel(&records[1], &kernel);
    near(kernel.flop_hw, 2.5 * 4.0 * pairs * 128.0, 1e-12, "backward: 2.5 times the flop");
    near(kernel_time_s(&setting, &kernel), 3e-3, 1e-12, "attention: its record");
    measured_attention_kernel(&records[0], &kernel);
    kernel.flop_hw *= 2.0; /* no mask */
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_PRESET, "without a mask it is another shape");
}

static void test_memory(void)
{
    const double bytes[] = {1e6, 4e6, 1e9}, time_s[] = {2e-6, 4e-6, 4e-4};
    const struct ty_measured measured = {
        .n_memory = 3, .memory_bytes = bytes, .memory_time_s = time_s};
    open_setting(&measured);
    struct kernel kernel;
    kernel_bytes(&kernel, "norm", 4e6);
    near(kernel_time_s(&setting, &kernel), 4e-6, 1e-12, "a point of the curve");
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_MEASURED, "is measured");
    kernel_bytes(&kernel, "norm", 2e6);
    near(kernel_time_s(&setting, &kernel), sqrt(2e-6 * 4e-6), 1e-12, "halfway in the logarithm");
    ok(kernel_origin(&setting, &kernel) == TY_ORIGIN_INTERPOLATED, "is interpolated");
    kernel_bytes(&kernel, "norm", 2e9);
    /* H100 of the fixture: 3.35 TB/s; the ramp adds its bytes */
    setting.profile.mem_ratio = 0.8;
    setting.profile.mem_half_bytes = 1e8;
    near(kernel_time_s(&setting, &kernel), 2.1e9 / (0.8 * cluster.gpu.mem_bytes_per_s), 1e-12,
         "beyond it: bandwidth with its ramp");
}

/* All kernels of the model's layers far from the records but one kind of work. */
static void test_prediction(void)
{
    const double bytes[] = {1.0, 1e12}, time_s[] = {1e-6, 1.0};
    const struct ty_measured measured = {
        .n_memory = 2, .memory_bytes = bytes, .memory_time_s = time_s};
    open_setting(&measured);
    ty_predictor *predictor = NULL;
    struct ty_prediction p = {0};
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 16;
    plan.tp = 8;
    plan.gbs = 16;
    ok(ty_predictor_create(&model, &cluster, &profile, NULL, &predictor, NULL) == TY_OK &&
           ty_predictor_run(predictor, &plan, NULL, &p, NULL) == TY_OK,
       "a prediction");
    near(p.origin_share[TY_WORK_MEMORY][TY_ORIGIN_INTERPOLATED], 1.0, 1e-12, "memory: the curve");
    bool noted = false;
    for (uint32_t i = 0; i < p.n_notes; i++)
        noted |= p.notes[i].kind == TY_NOTE_EXTRAPOLATED && strcmp(p.notes[i].field, "memory") == 0;
    ok(!noted, "which holds every size");
    near(p.origin_share[TY_WORK_GEMM][TY_ORIGIN_PRESET], 1.0, 1e-12, "GEMM: preset");
    near(p.origin_share[TY_WORK_COLLECTIVES][TY_ORIGIN_PRESET], 1.0, 1e-12, "collectives: preset");
    ty_predictor_destroy(predictor);
    same_text(ty_work_name(TY_WORK_COLLECTIVES), "collectives", "name of a kind of work");
    same_text(ty_origin_name(TY_ORIGIN_INTERPOLATED), "interpolated", "name of an origin");
}

int main(void)
{
    test_gemm();
    test_attention();
    test_memory();
    test_prediction();
    return tap_done();
}
