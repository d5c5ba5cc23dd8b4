/* SPDX-License-Identifier: MIT
 * Kernel times against handbook 1 and 4, and against ACCURACY 1.1 and 1.2 evaluated by a separate
 * Python program (values marked "oracle"). */
#include "models/kernels.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;

/* H100 with the fitted constants of ACCURACY-2 table 4. */
static void h100(void)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_error error = {0};
    fixture_llama3_70b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    profile.gemm_ratio_16 = 0.7544;
    profile.gemm_ratio_8 = 0.7497;
    profile.gemm_ratio_4 = 0.5;
    profile.gemm_k0 = 215.5;
    profile.gemm_wave_loss = 0.5447;
    profile.gemm_backward = 1.087;
    profile.grouped_gemm_ratio = 0.7764;
    profile.attention_flop_per_s = 640e12 * 0.6474;
    profile.attention_half_seq = 700.0;
    profile.attention_backward = 1.483;
    profile.mem_ratio = 0.8237;
    profile.kernel_floor_s = 2e-6;
    profile.clock_ratio = 1.0;
    profile.misaligned_ratio = 0.1451;
    if (setting_init(&model, &cluster, &profile, &setting, NULL, &error) != TY_OK) {
        printf("Bail out! %s: %s\n", error.where, error.text);
        exit(1);
    }
}

static struct kernel flash(double batch_heads, double seq, double head_dim, bool backward)
{
    const double flop = 4.0 * batch_heads * kernel_attention_pairs(seq, 0.0, false) * head_dim;
    return (struct kernel){.op = KERNEL_ATTENTION,
                           .backward = backward,
                           .batch_heads = batch_heads,
                           .queries = seq,
                           .seq = seq,
                           .head_dim = head_dim,
                           .flop_model = flop * (backward ? 2.0 : 1.0),
                           .flop_hw = flop * (backward ? 2.5 : 1.0)};
}

static void attention_work(void)
{
    const struct kernel forward = flash(32, 8192, 128, false),
                        backward = flash(32, 8192, 128, true);
    near(forward.flop_hw, 549755813888.0, 0.0, "UT-1.6 causal forward flop");
    near(backward.flop_hw, 1374389534720.0, 0.0, "UT-1.6 backward kernel flop");
    near(kernel_attention_pairs(8192, 4096, false), 25167872.0, 0.0, "UT-1.7 window entries");
    near(kernel_attention_pairs(8192, 4096, false) / 33558528.0, 0.74997, 1e-5, "UT-1.7 ratio");
    near(kernel_attention_pairs(8192, 8192, false), 0.5 * 8192.0 * 8192.0, 0.0,
         "a window as long as the sequence is full attention");
    near(kernel_attention_pairs(10240, 4096, true), 0.5 * (2 * 4096.0 * 4096.0 + 2048.0 * 2048.0),
         0.0, "chunks of 4096 and a rest of 2048");

    h100();
    setting.profile.attention_flop_per_s = 500e12;
    setting.profile.attention_half_seq = 0.0;
    setting.profile.gemm_wave_loss = 0.0; /* full occupancy */
    near(kernel_time_s(&setting, &forward), 1099.5e-6, 1e-4, "UT-4.5 at 500 Tflop/s");
}

static void bytes_kernels(void)
{
    struct kernel norm;
    h100();
    setting.profile.mem_ratio = 0.90;
    kernel_bytes(&norm, "norm", 2.0 * 2.0 * 8192 * 8192);
    near(norm.bytes, 268435456.0, 0.0, "UT-1.14 bytes");
    near(kernel_time_s(&setting, &norm), 89.0e-6, 1e-3, "UT-1.14 time");

    struct kernel adam;
    setting.profile.mem_ratio = 0.85;
    kernel_bytes(&adam, "adam", 30.0 * 1e9);
    near(kernel_time_s(&setting, &adam), 10.536e-3, 1e-4, "UT-4.6 optimizer");

    struct kernel cast; /* read bf16, write both orientations of MXFP8 with 1/32 scales */
    const double elements = 16384.0 * 8192.0, scaled = elements * (1.0 + 1.0 / 32.0);
    setting.cluster.gpu.mem_bytes_per_s = 8e12;
    kernel_bytes(&cast, "cast", 2.0 * elements + 2.0 * scaled);
    near(kernel_time_s(&setting, &cast), 80.2e-6, 1e-3, "UT-1.20 quantisation");
    struct kernel gemm;
    kernel_gemm(&gemm, "fc", TY_MXFP8_PRECISION, 16384, 8192, 8192);
    setting.cluster.gpu.fp8_flop_per_s = 4.5e15;
    setting.profile.gemm_ratio_8 = 0.76;
    setting.profile.gemm_k0 = setting.profile.gemm_wave_loss = 0.0;
    near(kernel_time_s(&setting, &gemm), 643e-6, 1e-3, "UT-1.20 GEMM");
    near(kernel_time_s(&setting, &cast) / kernel_time_s(&setting, &gemm), 0.125, 5e-3,
         "UT-1.20 ratio");

    kernel_bytes(&norm, "norm", 1.0);
    near(kernel_time_s(&setting, &norm), setting.profile.kernel_floor_s, 0.0, "floor");
    kernel_bytes(&norm, "norm", 0.0);
    ok(kernel_time_s(&setting, &norm) == 0.0, "no work takes no time");
}

static void gemm_work(void)
{
    struct kernel kernel;
    kernel_gemm(&kernel, "a", TY_BF16_PRECISION, 4096, 8192, 1024);
    near(kernel.flop_hw / kernel.bytes, 744.7, 1e-4, "UT-1.15 intensity 4096 x 8192 x 1024");
    kernel_gemm(&kernel, "b", TY_BF16_PRECISION, 64, 8192, 8192);
    near(kernel.flop_hw / kernel.bytes, 63.0, 1e-3, "UT-1.15 intensity 64 x 8192 x 8192");

    struct ty_gpu gpu;
    fixture_h100(&gpu);
    near(1830e6 * 512 * 528 * 2, gpu_peak_flop_per_s(&gpu, TY_BF16_PRECISION), 1e-3,
         "UT-4.1 H100 peak is clock x units");
    fixture_a100(&gpu);
    near(1410e6 * 256 * 432 * 2, gpu_peak_flop_per_s(&gpu, TY_BF16_PRECISION), 1e-3,
         "UT-4.1 A100 peak is clock x units");

    h100();
    setting.cluster.gpu = gpu;
    setting.cluster.power_limit_w = gpu.tdp_w;
    setting.profile.gemm_ratio_16 = 0.75284;
    setting.profile.gemm_k0 = setting.profile.gemm_wave_loss = 0.0;
    kernel_gemm(&kernel, "c", TY_BF16_PRECISION, 4096, 57344, 8192);
    near(kernel.flop_hw, 3848290697216.0, 0.0, "UT-4.2 flop");
    near(kernel_time_s(&setting, &kernel), 16.384e-3, 1e-4, "UT-4.2 time");
}

static void tiles(void)
{
    near(kernel_tile_ratio(1792, 1792, 256, 128, 108), 0.9074, 1e-4, "UT-4.3 1792");
    near(kernel_tile_ratio(1793, 1793, 256, 128, 108), 0.4542, 2e-4, "UT-4.3 1793");
    /* waves 25 and 24: the same work, SMs 148 and 152; time goes with waves alone */
    near(kernel_tile_ratio(8192, 14336, 128, 256, 152) * 152 /
             (kernel_tile_ratio(8192, 14336, 128, 256, 148) * 148),
         25.0 / 24.0, 1e-12, "UT-4.4 152 SMs are 1.042x faster");
    near(kernel_tile_ratio(8192, 14336, 128, 256, 108), 3584.0 / (34 * 108), 1e-12,
         "UT-4.4 34 waves on 108 SMs");
    near(kernel_tile_ratio(8192, 14336, 128, 256, 132), 3584.0 / (28 * 132), 1e-12,
         "UT-4.4 28 waves on 132 SMs");
    near(kernel_tile_ratio(4096, 4608, 128, 256, 132), 0.8727, 1e-4, "UT-4.4 4096 x 4608");
}

static void fitted_form(void)
{
    struct kernel kernel;
    h100();
    kernel_gemm(&kernel, "dense", TY_BF16_PRECISION, 8192, 10240, 8192);
    near(kernel_time_s(&setting, &kernel), 0.0019219561742834597, 1e-12, "dense, oracle");
    kernel_gemm(&kernel, "wgrad", TY_BF16_PRECISION, 1024, 8192, 512);
    kernel.backward = true;
    kernel_accumulate(&kernel, 4.0);
    near(kernel_time_s(&setting, &kernel), 3.676254685103075e-05, 1e-12, "wgrad, oracle");
    kernel_gemm(&kernel, "few rows", TY_BF16_PRECISION, 16, 8192, 8192);
    near(kernel_time_s(&setting, &kernel), 4.883027475225548e-05, 1e-12,
         "few rows: memory, oracle");
    kernel_gemm(&kernel, "fp8", TY_FP8_PRECISION, 4096, 8192, 8192);
    near(kernel_time_s(&setting, &kernel), 0.0003966954399283328, 1e-12, "fp8, oracle");

    kernel_gemm(&kernel, "expert", TY_BF16_PRECISION, 512, 4096, 7168);
    kernel_repeat(&kernel, KERNEL_GROUPED_GEMM, 8);
    kernel.inner = 2048;
    near(kernel_time_s(&setting, &kernel), 0.0006868325764820073, 1e-12,
         "grouped forward adds compute and memory, oracle");
    kernel_gemm(&kernel, "expert", TY_BF16_PRECISION, 7168, 4096, 512);
    kernel_repeat(&kernel, KERNEL_GROUPED_GEMM, 8);
    kernel_accumulate(&kernel, 4.0);
    kernel.inner = 2048;
    kernel.backward = true;
    near(kernel_time_s(&setting, &kernel), 0.0014432987995046797, 1e-12, "grouped wgrad, oracle");

    kernel_gemm(&kernel, "scores", TY_BF16_PRECISION, 2048, 2048, 150);
    kernel_repeat(&kernel, KERNEL_GEMM, 16);
    near(kernel_time_s(&setting, &kernel), 0.0007677773745580033, 1e-12,
         "batched, head_dim 150, oracle");
    kernel_gemm(&kernel, "scores", TY_BF16_PRECISION, 2048, 2048, 100);
    kernel_repeat(&kernel, KERNEL_GEMM, 16);
    near(kernel_time_s(&setting, &kernel), 0.00039764776198038303, 1e-12,
         "batched, head_dim 100, oracle");

    const struct kernel forward = flash(8, 8192, 64, false), backward = flash(8, 8192, 64, true);
    near(kernel_time_s(&setting, &forward), 0.00023140769492753215, 1e-12, "flash, oracle");
    near(kernel_time_s(&setting, &backward), 0.0008579440289438256, 1e-12,
         "flash backward, oracle");
}

/* Faster hardware never takes longer, and k times faster takes 1/k. */
static void rates(void)
{
    static const double shapes[][3] = {{8192, 10240, 8192}, {129, 513, 64}, {16, 8192, 8192},
                                       {4096, 57344, 1024}, {1, 1, 1},      {7168, 576, 4096}};
    bool monotone = true, scales = true;
    for (int i = 0; i < 6; i++) {
        for (int grouped = 0; grouped < 2; grouped++) {
            struct kernel kernel;
            kernel_gemm(&kernel, "x", TY_BF16_PRECISION, shapes[i][0], shapes[i][1], shapes[i][2]);
            if (grouped)
                kernel_repeat(&kernel, KERNEL_GROUPED_GEMM, 8);
            h100();
            const double before_s = kernel_time_s(&setting, &kernel);
            setting.cluster.gpu.bf16_flop_per_s *= 2.0;
            const double faster_s = kernel_time_s(&setting, &kernel);
            setting.cluster.gpu.mem_bytes_per_s *= 2.0;
            const double wider_s = kernel_time_s(&setting, &kernel);
            setting.profile.kernel_floor_s /= 2.0;
            const double half_s = kernel_time_s(&setting, &kernel);
            monotone = monotone && faster_s <= before_s && wider_s <= faster_s;
            scales = scales && fabs(half_s / before_s - 0.5) < 1e-12;
        }
    }
    ok(monotone, "more flop/s or bytes/s never slows a GEMM");
    ok(scales, "twice every rate, half the floor: half the time");

    h100();
    const double full = kernel_sustained_flop_per_s(&setting, TY_BF16_PRECISION);
    near(full, 989.4e12 * 0.7544, 1e-12, "sustained rate");
    setting.cluster.power_limit_w = 500.0;
    ok(kernel_sustained_flop_per_s(&setting, TY_BF16_PRECISION) < full,
       "a power limit lowers the sustained rate");

    /* UT-5.6: 20 of 132 SMs taken leaves 112/132 of the rate; large GEMM, no quantisation loss */
    struct kernel kernel;
    h100();
    setting.profile.gemm_wave_loss = 0.0;
    kernel_gemm(&kernel, "big", TY_BF16_PRECISION, 8192, 8192, 8192);
    const double alone_s = kernel_time_s(&setting, &kernel);
    setting.cluster.gpu.sms = 112;
    setting.cluster.gpu.bf16_flop_per_s *= 112.0 / 132.0;
    near(kernel_time_s(&setting, &kernel) / alone_s, 1.1786, 1e-4, "UT-5.6 20 of 132 SMs");
}

/* A processor core: 2 m n (k + k0) / P, whatever the tiles of a GPU would leave over. */
static void one_core(void)
{
    struct kernel kernel;
    const uint32_t sms = setting.cluster.gpu.sms;
    setting.cluster.gpu.sms = 1;
    kernel_gemm(&kernel, "odd", TY_BF16_PRECISION, 449.0, 1345.0, 449.0);
    const double rate = kernel_sustained_flop_per_s(&setting, TY_BF16_PRECISION);
    near(kernel_form_s(&setting, &kernel),
         fmax(2.0 * 449.0 * 1345.0 * (449.0 + 215.5) / rate, setting.profile.kernel_floor_s), 1e-12,
         "a GEMM of odd sizes on one core");
    kernel_gemm(&kernel, "large", TY_BF16_PRECISION, 4490.0, 13450.0, 4490.0);
    near(kernel_form_s(&setting, &kernel), 2.0 * 4490.0 * 13450.0 * (4490.0 + 215.5) / rate, 1e-12,
         "and a large one");
    setting.cluster.gpu.sms = sms;
}

int main(void)
{
    attention_work();
    bytes_kernels();
    gemm_work();
    tiles();
    fitted_form();
    rates();
    one_core();
    return tap_done();
}
