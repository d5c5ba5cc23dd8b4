/* SPDX-License-Identifier: MIT
 * Work of a layer's passes against handbook 1.7, 2.1 and property 2 of 11.6, what recompute and
 * options change, and random plans. */
#include "models/layer.h"
#include "sim/random.h"
#include "tests/layer_fixture.h"

static struct item_list other;

/* Model flop of all layers and the head, forward and backward, one rank, one micro-batch. */
static double model_flop(const struct ty_plan *plan)
{
    double sum = flop_of(plan, WHAT_HEAD, 0, PHASE_FORWARD, true) +
                 flop_of(plan, WHAT_HEAD, 0, PHASE_BACKWARD, true);
    for (uint32_t i = 0; i < setting.model.n_layers; i++)
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++)
            sum += flop_of(plan, WHAT_LAYER, setting.model.layer_kind[i], (enum layer_phase)phase,
                           true);
    return sum;
}

static void check_flop(const struct ty_model *model, const struct ty_plan *plan, double relative)
{
    const double tokens = (double)plan->seq * plan->mbs;
    const double got = model_flop(plan) * plan->tp * plan->cp / tokens;
    char what[160];
    snprintf(what, sizeof what, "property 2: %s tp %u cp %u ep %u etp %u: ranks add up",
             model->name, plan->tp, plan->cp, plan->ep, plan->etp);
    near(got, ty_model_flop_per_token(model, plan->seq, TY_FLOPS_MEGATRON), relative, what);
}

static void flop_of_models(void)
{
    static const uint32_t dense[][2] = {{1, 1}, {8, 1}, {2, 4}, {16, 2}};
    static const uint32_t sparse[][4] = {{1, 1, 8, 1}, {4, 1, 8, 1}, {2, 2, 4, 2}, {1, 4, 1, 1}};
    struct ty_model model;
    for (int i = 0; i < 4; i++) {
        fixture_llama3_70b(&model);
        start_h100(&model);
        struct ty_plan plan = plan_of(dense[i][0], dense[i][1], 1, 1, 8192);
        check_flop(&model, &plan, 1e-12);
        fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
        snprintf(model.name, sizeof model.name, "gpt3-175b");
        start_h100(&model);
        plan = plan_of(dense[i][0], dense[i][1], 1, 1, 2048);
        check_flop(&model, &plan, 1e-12);
        plan.attention = TY_KERNEL_UNFUSED;
        check_flop(&model, &plan, 1e-12);

        fixture_mixtral(&model);
        snprintf(model.name, sizeof model.name, "mixtral");
        start_h100(&model);
        plan = plan_of(sparse[i][0], sparse[i][1], sparse[i][2], sparse[i][3], 4096);
        check_flop(&model, &plan, 1e-12);
        plan.moe_imbalance = 1.5;
        check_flop(&model, &plan, 1e-12);
        /* ty_model_flop counts the two inner norms of MLA as matrix elements: 1e-5 */
        fixture_deepseek_v3(&model);
        snprintf(model.name, sizeof model.name, "deepseek-v3");
        start_h100(&model);
        plan = plan_of(sparse[i][0], sparse[i][1], sparse[i][2], sparse[i][3], 4096);
        check_flop(&model, &plan, 2e-5);
    }
    fixture_llama3_8b(&model);
    model.kinds[0].window_tokens = 4096;
    start_h100(&model);
    struct ty_plan plan = plan_of(2, 1, 1, 1, 8192);
    check_flop(&model, &plan, 1e-12);
    model.kinds[0].window_chunked = true;
    start_h100(&model);
    check_flop(&model, &plan, 1e-12);
    model.lora_rank = 16;
    start_h100(&model);
    /* LoRA: the base has no wgrad; the published count drops it from the head too */
    check_flop(&model, &plan, 1e-12);

    /* Norms of the MTP module, 3h, are in the published count: 1e-5 */
    fixture_deepseek_v3(&model);
    model.n_mtp = 2;
    snprintf(model.name, sizeof model.name, "deepseek-v3 with 2 MTP modules");
    start_h100(&model);
    plan = plan_of(1, 1, 8, 1, 4096);
    check_flop(&model, &plan, 3e-5);
}

static void relative_weight(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    start_h100(&model);
    const struct ty_plan plan = plan_of(1, 1, 1, 1, 8192);
    const double layer = flop_of(&plan, WHAT_LAYER, 0, PHASE_FORWARD, true) +
                         flop_of(&plan, WHAT_LAYER, 0, PHASE_BACKWARD, true);
    const double head = flop_of(&plan, WHAT_HEAD, 0, PHASE_FORWARD, true) +
                        flop_of(&plan, WHAT_HEAD, 0, PHASE_BACKWARD, true);
    near(layer / 8192, 5536481280.0, 1e-12, "UT-1.19 flop per token of a layer");
    near(head / 8192, 6304038912.0, 1e-12, "UT-1.19 flop per token of the head");
    ok(flop_of(&plan, WHAT_EMBEDDING, 0, PHASE_FORWARD, false) == 0.0, "a look-up has no flop");
}

/* ---- phases, recompute, options */

static void phases(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(2, 1, 8, 1, 4096);
    bool whole = true;
    for (uint32_t kind = 0; kind < 2; kind++) {
        const double both = flop_of(&plan, WHAT_LAYER, kind, PHASE_BACKWARD, false);
        const double parts = flop_of(&plan, WHAT_LAYER, kind, PHASE_DGRAD, false) +
                             flop_of(&plan, WHAT_LAYER, kind, PHASE_WGRAD, false);
        whole = whole && fabs(both / parts - 1.0) < 1e-12;
    }
    ok(whole, "backward is dgrad and wgrad");

    const double forward = flop_of(&plan, WHAT_LAYER, 1, PHASE_FORWARD, false);
    const double backward = flop_of(&plan, WHAT_LAYER, 1, PHASE_BACKWARD, false);
    const double counted = flop_of(&plan, WHAT_LAYER, 1, PHASE_BACKWARD, true);
    plan.recompute = TY_RECOMPUTE_FULL;
    near(flop_of(&plan, WHAT_LAYER, 1, PHASE_BACKWARD, false), backward + forward, 1e-12,
         "full recompute executes the forward again");
    near(flop_of(&plan, WHAT_LAYER, 1, PHASE_BACKWARD, true), counted, 1e-15,
         "recompute does not count for MFU");
    ok(flop_of(&plan, WHAT_HEAD, 0, PHASE_BACKWARD, false) ==
           2.0 * flop_of(&plan, WHAT_HEAD, 0, PHASE_FORWARD, false),
       "the head is not recomputed");

    plan.recompute = TY_RECOMPUTE_SELECTIVE;
    static const struct {
        uint32_t module;
        const char *kernel;
    } modules[] = {{TY_MODULE_CORE_ATTN, "flash"},    {TY_MODULE_MOE, "expert_fc1"},
                   {TY_MODULE_MOE_ACT, "activation"}, {TY_MODULE_NORM, "norm"},
                   {TY_MODULE_MLA_UP_PROJ, "kv_up"},  {TY_MODULE_SHARED_EXPERTS, "shared_fc1"}};
    for (int i = 0; i < 6; i++) {
        plan.recompute_modules = 0;
        layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_BACKWARD, &other);
        plan.recompute_modules = modules[i].module;
        layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_BACKWARD, &list);
        ok(list.n > other.n && count(&list, modules[i].kernel) > count(&other, modules[i].kernel),
           "selective recompute runs %s again", modules[i].kernel);
    }
    plan.recompute_modules = TY_MODULE_MLP;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    ok(count(&list, "fc1") == 3 && count(&list, "fc2") == 3, "selective recompute of the MLP");
}

static void options(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(1, 1, 1, 1, 4096);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    ok(count(&list, "qkv") == 2 && count(&list, "cast") == 0, "BF16: dgrad, wgrad, no casts");
    plan.precision = TY_FP8_PRECISION;
    plan.n_micro = 4;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    /* ACCURACY 1.4: 4 (2 tok h + tok n d + tok f) + 4 W / m, W of UT-1.1 */
    near(bytes_named(&list, "cast"),
         setting.profile.cast_ratio * 4.0 *
             (4096.0 * (3 * 4096 + 14336) + (41943040.0 + 176160768.0) / 4),
         1e-12, "casts of activations, weights once per step");
    const double cast_bytes = bytes_named(&list, "cast");
    plan.compile = TY_ON;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(bytes_named(&list, "cast"), cast_bytes * setting.profile.compiled_ratio, 1e-12,
         "a compiler fuses casts as it does other element-wise work");
    plan.compile = TY_OFF;
    layer_items(&setting, &plan, WHAT_HEAD, 0, PHASE_FORWARD, &list);
    for (uint32_t i = 0; i < list.n; i++)
        if (!list.item[i].is_collective && strcmp(list.item[i].kernel.name, "lm_head") == 0)
            ok(list.item[i].kernel.precision == TY_BF16_PRECISION, "the head stays in 16 bit");

    plan.precision = TY_BF16_PRECISION;
    plan.grad_dtype = TY_BF16_PRECISION;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_WGRAD, &list);
    const double narrow = list.item[0].kernel.bytes;
    plan.grad_dtype = TY_FP32_PRECISION;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_WGRAD, &list);
    near(list.item[0].kernel.bytes - narrow, 4.0 * 14336 * 4096, 1e-12,
         "fp32 gradients: 4 more bytes per weight of fc2");

    const double exact = flop_of(&plan, WHAT_LAYER, 0, PHASE_FORWARD, false);
    plan = plan_of(8, 1, 1, 1, 4096);
    near(8 * flop_of(&plan, WHAT_LAYER, 0, PHASE_FORWARD, false), exact, 1e-12,
         "work of a rank falls as 1/t");
    plan = plan_of(16, 1, 1, 1, 4096);
    near(16 * flop_of(&plan, WHAT_LAYER, 0, PHASE_FORWARD, false) - exact,
         2.0 * 4096 * 4096 * 16 * 128, 1e-9, "tp 16 over 8 K/V heads computes them twice");

    model.lora_rank = 16;
    start_h100(&model);
    plan = plan_of(1, 1, 1, 1, 4096);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    ok(count(&list, "qkv") == 1 && count(&list, "lora") == 4, "LoRA: no wgrad, adapters on all");
    /* attention 3h + 4(n+2g)d + nd + 4h, linears h + 8f + f + 4h */
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    double lora_bytes = 0.0;
    for (uint32_t i = 0; i < list.n; i++)
        if (!list.item[i].is_collective && strcmp(list.item[i].kernel.name, "lora") == 0)
            lora_bytes += list.item[i].kernel.bytes;
    near(lora_bytes,
         setting.profile.lora_ratio * setting.profile.elementwise_ratio * 2 * 4096.0 *
             (3 * 4096 + 4 * 48 * 128 + 4096 + 4 * 4096 + 4096 + 9 * 14336 + 4 * 4096),
         1e-12, "bytes of the adapters");
}

/* ---- random plans: every number finite, every join behind its collective */

static bool sound(const struct item_list *items)
{
    for (uint32_t i = 0; i < items->n; i++) {
        const struct item *item = &items->item[i];
        const double time_s = item->is_collective ? collective_time_s(&setting, &item->collective)
                                                  : kernel_time_s(&setting, &item->kernel);
        if (!(time_s > 0.0) || !isfinite(time_s))
            return false;
        if (item->overlaps && (item->join <= i || item->join > items->n))
            return false;
        if (!item->is_collective && !(item->kernel.flop_hw >= item->kernel.flop_model * 0.5))
            return false;
    }
    return items->n_launches <= items->n;
}

static void random_plans(void)
{
    static const int precisions[] = {TY_BF16_PRECISION, TY_FP8_PRECISION, TY_FP16_PRECISION};
    struct random_stream stream;
    struct ty_model model;
    uint32_t longest = 0;
    bool good = true;
    random_init(&stream, 7, 0);
    for (int i = 0; i < 2000; i++) {
        switch (random_below(&stream, 4)) {
        case 0:
            fixture_llama3_8b(&model);
            break;
        case 1:
            fixture_gpt(&model, 6144, 48, 64, 51200, 2048);
            break;
        case 2:
            fixture_mixtral(&model);
            break;
        default:
            fixture_deepseek_v3(&model);
            model.n_mtp = (uint32_t)random_below(&stream, 9);
        }
        start_h100(&model);
        snprintf(setting.profile.stack, sizeof setting.profile.stack, "%s",
                 random_below(&stream, 2) ? "torchtitan" : "megatron-core");
        struct ty_plan plan;
        ty_init(TY_KIND_PLAN, &plan);
        plan.tp = 1u << random_below(&stream, 4);
        plan.cp = 1u << random_below(&stream, 3);
        plan.ep = 1u << random_below(&stream, 4);
        plan.etp = 1u << random_below(&stream, 2);
        plan.seq = 512u << random_below(&stream, 6);
        plan.mbs = 1 + (uint32_t)random_below(&stream, 4);
        plan.precision = precisions[random_below(&stream, 3)];
        plan.recompute = 1 + (int)random_below(&stream, 3);
        plan.recompute_modules = (uint32_t)random_below(&stream, 128);
        plan.attention = 1 + (int)random_below(&stream, 2);
        plan.sp = 1 + (int)random_below(&stream, 2);
        plan.overlap = TY_OVERLAP_GIVEN | (uint32_t)random_below(&stream, 64);
        plan.dispatcher = 1 + (int)random_below(&stream, 3);
        plan.cp_scheme = 1 + (int)random_below(&stream, 3);
        plan.moe_imbalance = 1.0 + random_unit(&stream);
        plan = resolved(&plan);
        plan.n_micro = 2;
        for (int what = WHAT_LAYER; what <= WHAT_HEAD; what++)
            for (int phase = 0; phase < N_PHASES; phase++) {
                layer_items(&setting, &plan, (enum layer_what)what,
                            (uint32_t)random_below(&stream, model.n_kinds), (enum layer_phase)phase,
                            &list);
                good = good && sound(&list);
                longest = list.n > longest ? list.n : longest;
            }
    }
    ok(good, "2000 random plans: finite positive times, joins in order");
    ok(longest <= LAYER_MAX_ITEMS && longest > LAYER_MAX_ITEMS / 2,
       "lists stay within bounds (longest %u of %d)", longest, LAYER_MAX_ITEMS);
}

int main(void)
{
    flop_of_models();
    relative_weight();
    phases();
    options();
    random_plans();
    return tap_done();
}
