/* SPDX-License-Identifier: MIT
 * Compression of communication: UT-8.1 to UT-8.4, and when it pays. */
#include "models/compression.h"
#include "models/compression_plan.h"
#include "models/memory.h"
#include "tests/step_fixture.h"

/* 8.819e9 B of fp32 gradients at 40 GB/s, cast at 0.85 * 3.35 TB/s. */
static void ut_8_1(void)
{
    const double cast_s = compression_cast_s(8.819e9 / 4, 4, 2, 0.85 * 3.35e12);
    within(cast_s, 9.3e-3, 0.05e-3, "UT-8.1: casting takes 9.3 ms");
    struct compression bf16 = {
        .bytes = 8.819e9, .bytes_per_s = 40e9, .ratio = 2, .exposed_ratio = 1};
    within(compression_gain_s(&bf16), 0.1102, 5.1e-5, "UT-8.1: bf16 saves 110.2 ms");
    bf16.encode_s = bf16.decode_s = 0.5 * cast_s;
    near(compression_gain_s(&bf16), 8.819e9 / 80e9 - cast_s, 1e-12, "less the casts");
    bf16.exposed_ratio = 0;
    near(compression_gain_s(&bf16), -cast_s, 1e-12, "nothing exposed: the casts are a loss");
    bf16 = (struct compression){
        .bytes = 8.819e9, .bytes_per_s = 40e9, .ratio = 1, .exposed_ratio = 1, .latency_s = 1e-3};
    near(compression_gain_s(&bf16), -1e-3, 1e-9, "no smaller: more rounds only cost");
}

static void ut_8_2(void)
{
    const struct compression_matrix layer[] = {
        {8192, 10240}, {8192, 8192}, {8192, 57344}, {28672, 8192}};
    struct compression_powersgd sgd;
    compression_powersgd(layer, 4, 4, &sgd);
    ok(sgd.dense_elements == 855638016 && sgd.sent_elements == 548864, "UT-8.2: elements");
    within(sgd.dense_elements / sgd.sent_elements, 1558.9, 0.05, "UT-8.2: 1558.9 times fewer");
    within(sgd.flop, 2.054e10, 0.0005e10, "UT-8.2: flop per layer and step");
    near(sgd.error_bytes, 4 * 855638016.0, 1e-12, "error feedback: 4 bytes each");
}

static void ut_8_3(void)
{
    const double sparse = compression_topk_bytes(0.022e9, 16);
    const double dense = compression_dense_bytes(2.2e9, 4, 16);
    within(sparse, 2.64e9, 0.005e9, "UT-8.3: 2.64 GB at D = 16");
    within(dense, 16.5e9, 0.05e9, "UT-8.3: 16.5 GB dense");
    within(dense / sparse, 6.3, 0.06, "UT-8.3: 6.3 times less");
    within(compression_topk_bytes(0.022e9, 128), 22.4e9, 0.05e9, "UT-8.3: 22.4 GB at D = 128");
    ok(compression_topk_bytes(0.022e9, 128) > compression_dense_bytes(2.2e9, 4, 128),
       "UT-8.3: worse than dense");
}

static void ut_8_4(void)
{
    struct compression_zeropp zeropp = {false, false, false};
    ok(compression_zeropp_volume(&zeropp) == 3, "ZeRO-3: 3");
    zeropp.weights_int8 = true;
    ok(compression_zeropp_volume(&zeropp) == 2, "8-bit weights: 0.5 + 0.5 + 1");
    zeropp.weights_on_node = true;
    ok(compression_zeropp_volume(&zeropp) == 1.5, "and the second gather on the node");
    zeropp.gradients_int4 = true;
    ok(compression_zeropp_volume(&zeropp) == 0.75, "UT-8.4: all three: 0.75, a quarter of 3");
    near(compression_zeropp_copy_bytes(8e9, 8), 2e9, 1e-12, "2 N / 8 bytes per GPU");
}

/* ---- as a property of the data-parallel exchange -------------------------------------------- */

static struct step_case at;
static struct step *step;

/* Exposed data-parallel time of llama3-8B, DDP on 64 GPUs of 8 nodes, tp 4: latencies and ramp are
 * off, so that time is bytes over rate plus casts. */
static double dp_s(int compression, double nic_bytes_per_s, uint32_t n_gpus)
{
    struct step_result out;
    case_open(&at);
    at.cluster.nic_latency_s = at.profile.collective_latency_s = at.profile.ramp_ratio = 0.0;
    at.cluster.nic_bytes_per_s = nic_bytes_per_s;
    at.asked.n_gpus = n_gpus;
    at.asked.tp = 4;
    at.asked.gbs = n_gpus;
    at.asked.sharding = TY_SHARDING_NONE;
    at.asked.grad_dtype = TY_FP32_PRECISION;
    at.asked.grad_compression = compression;
    if (!case_ready(&at) || !case_simulate(&at, step, &out))
        return (double)NAN;
    return out.breakdown_s[TY_PART_DP];
}

static void test_exchange(void)
{
    const double plain_s = dp_s(TY_COMPRESSION_NONE, 6.25e9, 64);
    static const struct {
        int compression;
        double bytes;
        const char *name;
    } casts[] = {{TY_COMPRESSION_BF16, 2.0, "bf16"},
                 {TY_COMPRESSION_FP8, 1.0, "fp8"},
                 {TY_COMPRESSION_INT8, 1.0 + 4.0 / 256.0, "int8"}};
    for (int i = 0; i < 3; i++) {
        char text[80];
        const double time_s = dp_s(casts[i].compression, 6.25e9, 64);
        const double params = at.setting.params.total / 4.0;
        const double cast_s =
            compression_cast_s(params, 4.0, casts[i].bytes, kernel_mem_bytes_per_s(&at.setting));
        snprintf(text, sizeof text, "%s: its share of the bytes, plus the casts", casts[i].name);
        near(time_s, casts[i].bytes / 4.0 * plain_s + cast_s, 1e-3, text);
    }
    /* UT-8.3: the pairs of 64/4 ranks are 16 x 0.01 x 8 = 1.28 bytes a parameter, gathered once;
     * dense 4 bytes twice. Of 256 ranks: 20.48, more than dense. */
    ok(dp_s(TY_COMPRESSION_TOPK, 6.25e9, 64) < 0.4 * plain_s, "topk on 16 ranks");
    ok(dp_s(TY_COMPRESSION_TOPK, 6.25e9, 1024) > dp_s(TY_COMPRESSION_NONE, 6.25e9, 1024),
       "topk on 256 ranks is worse than dense");
    const double low_s = dp_s(TY_COMPRESSION_POWERSGD, 6.25e9, 64);
    const double sent = compression_powersgd_ratio(&at.model, &at.plan);
    ok(sent > 1e-4 && sent < 1e-2, "powersgd sends %.1e of the elements", sent);
    ok(low_s < 0.1 * plain_s, "... and what is left is the encoding");
    ok(dp_s(TY_COMPRESSION_POWERSGD, 400e9, 64) / dp_s(TY_COMPRESSION_NONE, 400e9, 64) >
           5.0 * low_s / plain_s,
       "... which counts for more on a fast network");
}

static void test_memory_and_rules(void)
{
    struct ty_stage_memory plain, sparse;
    dp_s(TY_COMPRESSION_NONE, 50e9, 64);
    memory_stages(&at.setting, &at.plan, at.slots, &plain);
    dp_s(TY_COMPRESSION_TOPK, 50e9, 64);
    memory_stages(&at.setting, &at.plan, at.slots, &sparse);
    near(sparse.bytes[TY_MEM_BUFFERS] - plain.bytes[TY_MEM_BUFFERS],
         4.0 * at.setting.params.total / 4.0, 1e-3, "error feedback: 4 bytes a parameter");
    at.asked.sharding = TY_SHARDING_ZERO1;
    ok(!case_ready(&at), "topk does not go with sharded states");
    at.asked.grad_compression = TY_COMPRESSION_FP8;
    ok(case_ready(&at), "a cast does");
    at.asked.n_gpus = at.asked.gbs = 4;
    ok(case_ready(&at) && at.plan.grad_compression == TY_COMPRESSION_NONE,
       "one replica exchanges nothing");
}

int main(void)
{
    if (step_create(NULL, &step) != TY_OK)
        return 1;
    test_exchange();
    test_memory_and_rules();
    step_destroy(step);
    ut_8_1();
    ut_8_2();
    ut_8_3();
    ut_8_4();
    return tap_done();
}
