/* SPDX-License-Identifier: MIT
 * Compression of communication: UT-8.1 to UT-8.4, and when it pays. */
#include "models/compression.h"
#include "tests/tap.h"

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

int main(void)
{
    ut_8_1();
    ut_8_2();
    ut_8_3();
    ut_8_4();
    return tap_done();
}
