/* SPDX-License-Identifier: MIT
 * Flop per token under every convention: UT-1.8 to UT-1.13, UT-1.19, UT-11.2 of the handbook. */
#include "tests/fixtures.h"
#include "tests/tap.h"

/* Model flop utilisation in percent of a published run on A100s (312e12 flop/s). */
static double mfu_pct(const struct ty_model *model, enum ty_flops convention, double batch,
                      double gpus, double step_s)
{
    const double flop = batch * 2048 * ty_model_flop_per_token(model, 2048, convention);
    return 100 * flop / (step_s * gpus * 312e12);
}

/* UT-1.8, UT-1.9: sequence-parallel runs of arXiv 2205.05198; want: published, +- 0.2 points. */
static void test_korthikanti(void)
{
    static const struct {
        const char *name;
        uint32_t hidden, layers, heads;
        double batch, gpus, step_s, mfu, hfu;
    } runs[] = {{"22B", 6144, 48, 64, 4, 8, 1.10, 41.5, 43.7},
                {"175B", 12288, 96, 96, 64, 64, 13.75, 51.4, 52.8},
                {"530B", 20480, 105, 128, 280, 280, 37.83, 56.0, 57.0},
                {"1T", 25600, 128, 160, 512, 512, 71.49, 56.3, 57.0}};
    struct ty_model model;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char what[64];
        fixture_gpt(&model, runs[i].hidden, runs[i].layers, runs[i].heads, 51200, 2048);
        snprintf(what, sizeof what, "UT-1.8/1.9 MFU of %s", runs[i].name);
        within(mfu_pct(&model, TY_FLOPS_KORTHIKANTI, runs[i].batch, runs[i].gpus, runs[i].step_s),
               runs[i].mfu, 0.2, what);
        snprintf(what, sizeof what, "UT-1.8/1.9 HFU of %s", runs[i].name);
        within(
            mfu_pct(&model, TY_FLOPS_KORTHIKANTI_HW, runs[i].batch, runs[i].gpus, runs[i].step_s),
            runs[i].hfu, 0.2, what);
    }
    fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
    near(64 * 2048.0 * ty_model_flop_per_token(&model, 2048, TY_FLOPS_KORTHIKANTI), 1.4109e17, 1e-4,
         "UT-1.8 flop of a step");
    within(mfu_pct(&model, TY_FLOPS_KORTHIKANTI, 64, 64, 13.75), 51.39, 0.01, "UT-1.8 MFU");
    within(mfu_pct(&model, TY_FLOPS_KORTHIKANTI_HW, 64, 64, 13.75), 52.77, 0.01, "UT-1.8 HFU");
}

/* The closed forms of variants B, C and D for a plain GPT, f = 4h. */
static void test_closed_forms(void)
{
    struct ty_model model;
    fixture_gpt(&model, 6144, 48, 64, 51200, 2048);
    const double h = 6144, layers = 48, v = 51200, s = 2048, lhh = layers * h * h;
    near(ty_model_flop_per_token(&model, 2048, TY_FLOPS_KORTHIKANTI),
         72 * lhh * (1 + s / (6 * h) + v / (12 * layers * h)), 1e-14, "variant B in closed form");
    near(ty_model_flop_per_token(&model, 2048, TY_FLOPS_KORTHIKANTI_HW),
         72 * lhh * (1 + s / (3 * h) + v / (12 * layers * h)), 1e-14, "variant C in closed form");
    near(ty_model_flop_per_token(&model, 2048, TY_FLOPS_NARAYANAN),
         96 * lhh * (1 + s / (6 * h) + v / (16 * layers * h)), 1e-14, "variant D in closed form");
    near(4 * s * ty_model_flop_per_token(&model, 2048, TY_FLOPS_KORTHIKANTI), 1.1436e15, 1e-4,
         "UT-1.10 full mask, 22B");
    near(4 * s * ty_model_flop_per_token(&model, 2048, TY_FLOPS_MEGATRON), 1.1139e15, 1e-4,
         "UT-1.10 causal mask, 22B");
}

static void test_llama(void)
{
    struct ty_model model;
    fixture_llama3_405b(&model);
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 2523955986432, 1e-14,
         "UT-1.10, UT-11.2 llama3-405B causal");
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_KORTHIKANTI), 2.62542e12, 1e-5,
         "UT-1.10 llama3-405B full mask");
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_6N), 2.4351e12, 1e-4,
         "UT-1.10 llama3-405B 6N");
    fixture_llama3_8b(&model);
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 51470401536, 1e-14,
         "UT-1.11 llama3-8B, variant A");
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_AUTO), 51470401536, 1e-14,
         "variant A is the default");
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_TORCHTITAN), 57914449920, 1e-14,
         "UT-1.11 llama3-8B, variant E");
    fixture_llama3_70b(&model);
    const double whole = ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON);
    model.n_layers = 79;
    const double layer = whole - ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON);
    near(layer, 5536481280, 1e-12, "UT-1.19 llama3-70B layer");
    near(whole - 80 * layer, 6304038912, 1e-11, "UT-1.19 head");
    /* A frozen base saves the wgrad pass of every matrix: 4 instead of 6 flop a weight. */
    fixture_llama3_70b(&model);
    model.lora_rank = 16;
    const double matrices = 80 * (855654400.0 - 2 * 8192) + 8192.0 * 128256;
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), whole - 2 * matrices, 1e-14,
         "LoRA leaves out the weight gradients of the base");
}

/* UT-1.12: MPT as its training benchmark builds it: plain GPT with biases and positions, tied. */
static void test_foundry(void)
{
    struct ty_model model;
    struct ty_params params;
    fixture_gpt(&model, 8192, 80, 64, 50368, 2048);
    ty_model_params(&model, &params);
    near(params.total, 64862437376, 0.0, "UT-1.12 parameters of MPT-70B");
    const double flop = ty_model_flop_per_token(&model, 2048, TY_FLOPS_FOUNDRY);
    near(flop, 405280751616, 1e-14, "UT-1.12 variant F");
    within(100 * 1007 * flop / 989e12, 41.27, 0.01, "UT-1.12 MFU");
}

static void test_deepseek(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    const double flop = ty_model_flop_per_token(&model, 4096, TY_FLOPS_MEGATRON);
    near(flop, 249812054016, 1e-14, "UT-1.13 deepseek-v3");
    within(100 * flop * 14.8e12 / (2.664e6 * 3600 * 989e12), 39.0, 0.05,
           "UT-1.13 utilisation of the published run");
    model.n_mtp = 1;
    near(ty_model_flop_per_token(&model, 4096, TY_FLOPS_MEGATRON), 259992950784, 1e-14,
         "UT-11.2 deepseek-v3 with one MTP module");
}

/* UT-11.2: published TFLOP/s/GPU over published tokens/s/GPU, gap below 0.2 %. */
static void test_published(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 736e12 / 1639, 2e-3,
         "UT-11.2 llama3-70B, 64 H100");
    fixture_llama3_405b(&model);
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 822e12 / 326, 2e-3,
         "UT-11.2 llama3-405B, 1024 H100");
    fixture_llama3_8b(&model);
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 744e12 / 14451, 2e-3,
         "UT-11.2 llama3-8B, 8 H100");
    fixture_deepseek_v3(&model);
    model.n_mtp = 1;
    const double flop = ty_model_flop_per_token(&model, 4096, TY_FLOPS_MEGATRON);
    near(flop, 1635e12 / 6288, 2e-3, "UT-11.2 deepseek-v3, 256 GB300");
    near(flop, 1276e12 / 4912, 2e-3, "UT-11.2 deepseek-v3, 256 GB200");
}

/* UT-1.7: window 4096 of 8192 tokens leaves 25,167,872 pairs a sequence; chunks of 4096 leave two
 * triangles of 4096^2 / 2. Each pair costs 2 products x 2 flop x 3 passes x n d. */
static void test_windows(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    const double per_pair = 12.0 * 32 * 4096, s = 8192;
    const double full = ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON);
    const double square = per_pair * s / 2;
    model.kinds[0].window_tokens = 4096;
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON),
         full - square + per_pair * 25167872 / s, 1e-14, "UT-1.7 sliding window by its entries");
    model.kinds[0].window_chunked = true;
    near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), full - square / 2, 1e-14,
         "chunked attention");
    near(ty_model_flop_per_token(&model, 4096, TY_FLOPS_MEGATRON), full - square / 2, 1e-14,
         "a sequence inside the window");
}

int main(void)
{
    test_korthikanti();
    test_closed_forms();
    test_llama();
    test_foundry();
    test_deepseek();
    test_published();
    test_windows();
    same_text(ty_flops_name(TY_FLOPS_KORTHIKANTI_HW), "korthikanti-hw", "name of variant C");
    same_text(ty_flops_name(TY_FLOPS_6N), "6n", "name of variant G");
    return tap_done();
}
