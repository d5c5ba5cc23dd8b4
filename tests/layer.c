/* SPDX-License-Identifier: MIT
 * Passes of a layer against handbook 1.7, 2.1, 2.3 and property 2 of 11.6, against ACCURACY 1.1-1.5
 * evaluated by a separate Python program ("oracle"), and for random plans. */
#include "models/layer.h"
#include "models/routing.h"
#include "sim/random.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;
static struct item_list list, other;

static void start(const struct ty_model *model, const struct ty_cluster *cluster)
{
    struct ty_profile profile;
    struct ty_error error = {0};
    ty_init(TY_KIND_PROFILE, &profile);
    if (setting_init(model, cluster, &profile, &setting, NULL, &error) != TY_OK) {
        printf("Bail out! %s: %s\n", error.where, error.text);
        exit(1);
    }
}

static void start_h100(const struct ty_model *model)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    start(model, &cluster);
}

static struct ty_plan resolved(const struct ty_plan *in)
{
    struct ty_plan out;
    plan_resolve(&setting, in, &out, NULL);
    return out;
}

static struct ty_plan plan_of(uint32_t tp, uint32_t cp, uint32_t ep, uint32_t etp, uint32_t seq)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.tp = tp;
    plan.cp = cp;
    plan.ep = ep;
    plan.etp = etp;
    plan.seq = seq;
    plan.overlap = TY_OVERLAP_GIVEN;
    return resolved(&plan);
}

/* 8 experts, 2 of them per token, one kind everywhere. */
static void mixtral(struct ty_model *model)
{
    fixture_llama(model, 4096, 32, 32, 8, 128, 14336, 32000);
    struct ty_layer_kind *kind = &model->kinds[0];
    kind->mlp = TY_MLP_MOE;
    kind->ffn = 0;
    kind->n_experts = 8;
    kind->top_k = 2;
    kind->expert_ffn = 14336;
}

static double flop_of(const struct ty_plan *plan, enum layer_what what, uint32_t kind,
                      enum layer_phase phase, bool model)
{
    layer_items(&setting, plan, what, kind, phase, &list);
    return items_flop(&list, model);
}

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

        mixtral(&model);
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

/* ---- what is sent */

static double wire(const struct item_list *items, enum ty_part part)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < items->n; i++) {
        const struct item *item = &items->item[i];
        const struct collective *c = &item->collective;
        if (item->is_collective && item->part == part)
            sum += (c->share > 0.0 ? c->share : 1.0) * c->payload_bytes *
                   collective_busbw_factor(c->op, c->shape.size);
    }
    return sum;
}

/* torchtitan keeps every second GEMM output and the attention output: half of the
 * 4096 (6144 + 4096 + 3 * 14336) weights a layer runs again, on tp = 2. */
static void operators(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(2, 1, 1, 1, 8192);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    const double plain_flop = items_flop(&list, false), counted = items_flop(&list, true);
    const double plain_wire = wire(&list, TY_PART_TP);
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    plan.recompute = TY_RECOMPUTE_SELECTIVE;
    plan.recompute_modules = TY_MODULE_CORE_ATTN;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(items_flop(&list, false) - plain_flop, 218103808.0 * 8192 / 2, 1e-12,
         "operator-level recompute runs half of the GEMM flop again");
    near(items_flop(&list, true), counted, 1e-15, "which does not count");
    near(wire(&list, TY_PART_TP), plain_wire, 1e-15, "and sends nothing again");
}

static double bytes_named(const struct item_list *items, const char *name)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < items->n; i++)
        if (!items->item[i].is_collective && strcmp(items->item[i].kernel.name, name) == 0)
            sum += items->item[i].kernel.bytes;
    return sum;
}

/* PyTorch adds the gradients of the 218103808 weights of a layer to those of the micro-batches
 * before: reads 2 + 4 bytes, writes 4. Transformer Engine's GEMM adds them itself. */
static void added_gradients(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(1, 1, 1, 1, 8192);
    plan.grad_dtype = TY_FP32_PRECISION;
    plan.reshard_after_forward = TY_OFF;
    plan.n_micro = 2;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "add_gradients"), 0.0, 0.0, "fused: no kernel that adds gradients");
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "add_gradients"), 218103808.0 * 10.0, 1e-12,
         "10 bytes per weight and micro-batch where PyTorch adds them");
    plan.n_micro = 1;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "add_gradients"), 0.0, 0.0, "one micro-batch: nothing to add to");
    plan.n_micro = 2;
    plan.reshard_after_forward = TY_ON;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "add_gradients"), 0.0, 0.0, "shards: scattered at once");
}

/* A token's adapter traffic beside Llama-3 8B: attention 3 * 4096 + 2 * 6144 + 4096 + 2 * 4096,
 * MLP 4096 + 2 * 28672 + 14336 + 2 * 4096. */
static void adapters(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    model.lora_rank = 16;
    start_h100(&model);
    const struct ty_plan plan = plan_of(1, 1, 1, 1, 8192);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    const double all_bytes = bytes_named(&list, "lora");
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "mlperf");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(bytes_named(&list, "lora"), all_bytes * 36864.0 / 120832.0, 1e-12,
         "MLPerf's LoRA has adapters on the attention only");
}

static void sent(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(8, 1, 1, 1, 8192);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_TP), 469762048.0, 1e-15, "UT-2.3 forward wire bytes with SP");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_TP), 704643072.0, 1e-15, "UT-2.3 backward wire bytes with SP");
    plan.overlap |= TY_OVERLAP_TP;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_TP), 704643072.0, 1e-12, "overlap sends the same bytes");
    plan.overlap = TY_OVERLAP_GIVEN;
    plan.recompute = TY_RECOMPUTE_FULL;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_TP), 704643072.0 + 469762048.0, 1e-15,
         "full recompute sends the forward again");
    plan.recompute = TY_RECOMPUTE_NONE;
    plan.sp = TY_OFF;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_TP), 469762048.0, 1e-15, "without SP: 2 all-reduces forward");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_TP), 469762048.0, 1e-15, "without SP: 2 all-reduces backward");

    fixture_llama3_8b(&model);
    start_h100(&model);
    plan = plan_of(1, 8, 1, 1, 131072);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_CP), 469762048.0, 1e-15, "UT-2.4 ring forward");
    double core_flop = 0.0;
    for (uint32_t i = 0; i < list.n; i++)
        if (!list.item[i].is_collective && list.item[i].kernel.op == KERNEL_ATTENTION)
            core_flop += list.item[i].kernel.flop_hw;
    near(core_flop, 1.7592e13, 1e-4, "UT-2.4 attention flop of a rank");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_CP), 939524096.0, 1e-15, "UT-2.4 ring backward");
    plan.cp_scheme = TY_CP_ALLGATHER;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_CP), 469762048.0, 1e-15, "UT-2.4 all-gather forward");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_CP), 939524096.0, 1e-15, "UT-2.4 all-gather backward");
    plan.cp_scheme = TY_CP_ULYSSES;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_CP), 293601280.0, 1e-15, "UT-2.4 Ulysses forward");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_CP), 293601280.0, 1e-15, "UT-2.4 Ulysses backward");
}

/* 4 all-to-alls per MoE layer, 6 with full recompute (handbook 1.6), of tok k h w bytes. */
static void expert_traffic(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(1, 1, 64, 1, 4096);
    const double naive = 4096.0 * 8 * 7168 * 2 * 63 / 64;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_EP), 2 * naive, 1e-12, "dispatch and combine");
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_EP), 2 * naive, 1e-12, "and their gradients");
    plan.recompute = TY_RECOMPUTE_FULL;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_EP), 4 * naive, 1e-12, "full recompute: two more");
    plan.recompute = TY_RECOMPUTE_NONE;
    plan.moe_imbalance = 1.25;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_EP), 2 * 1.25 * naive, 1e-12, "the worst rank moves more");
    plan.moe_imbalance = 1.0;
    plan.dispatcher = TY_DISPATCHER_DEEPEP;
    plan.precision = TY_FP8_PRECISION;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    const struct collective *dispatch = NULL;
    for (uint32_t i = 0; i < list.n && !dispatch; i++)
        if (list.item[i].is_collective && list.item[i].part == TY_PART_EP)
            dispatch = &list.item[i].collective;
    near(dispatch->payload_bytes, 242.22e6, 1e-4, "UT-1.18 naive fp8 dispatch");
    near(dispatch->payload_bytes * dispatch->remote_copies, 121.11e6, 1e-4,
         "UT-1.18 at most 4 of 8 nodes");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    ok(wire(&list, TY_PART_EP) == 0.0, "a dense layer has no expert traffic");
}

/* ---- how long: ACCURACY 1.1-1.5 for llama3-70b, tp 8, one layer */

static double time_of(const struct item_list *items, enum ty_part part)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < items->n; i++) {
        const struct item *item = &items->item[i];
        if (item->part != part || item->overlaps)
            continue;
        sum += item->is_collective ? collective_time_s(&setting, &item->collective)
                                   : kernel_time_s(&setting, &item->kernel);
    }
    return sum;
}

static void fitted(void)
{
    struct ty_profile *profile = &setting.profile;
    profile->gemm_ratio_16 = 0.7544;
    profile->gemm_k0 = 215.5;
    profile->gemm_wave_loss = 0.5447;
    profile->gemm_backward = 1.087;
    profile->attention_flop_per_s = 640e12 * 0.6474;
    profile->attention_half_seq = 700.0;
    profile->attention_backward = 1.483;
    profile->mem_ratio = 0.8237;
    profile->kernel_floor_s = 1e-9;
    profile->elementwise_ratio = 1.143;
    profile->allgather_busbw_bytes_per_s = 360e9;
    profile->collective_latency_s = 17e-6 * 1.398;
    profile->ramp_bytes = 12e6;
    profile->ramp_ratio = 1.078;
    profile->grouped_gemm_ratio = 0.7764;
    profile->alltoall_ratio = 0.9152;
    profile->alltoall_nic_ratio = 0.6373;
    profile->permute_ratio = 1.353;
    profile->nic_ratio = 0.9602;
    profile->p2p_latency_s = 25e-6;
}

static void expert_times(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    start_h100(&model);
    fitted();
    struct ty_plan plan = plan_of(1, 1, 8, 1, 4096);
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    near(time_of(&list, TY_PART_GEMM), 0.009981621851704548, 1e-12, "MLA, router, experts: oracle");
    near(time_of(&list, TY_PART_MEMORY_BOUND), 0.002123736490542381, 1e-12,
         "MoE element-wise, oracle");
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_BACKWARD, &list);
    near(time_of(&list, TY_PART_GEMM), 0.02441019353649082, 1e-12, "MoE dgrad and wgrad, oracle");
    plan.dispatcher = TY_DISPATCHER_DEEPEP;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    near(time_of(&list, TY_PART_EP), 2 * 0.000858898624162296, 1e-12,
         "ACCURACY-2 2.2 in one domain, oracle");
    plan = plan_of(1, 1, 64, 1, 4096);
    plan.dispatcher = TY_DISPATCHER_DEEPEP;
    layer_items(&setting, &plan, WHAT_LAYER, 1, PHASE_FORWARD, &list);
    near(time_of(&list, TY_PART_EP), 2 * 0.006757077516638765, 1e-12, "and over 8 nodes, oracle");
}

static void times(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    start_h100(&model);
    fitted();
    struct ty_plan plan = plan_of(8, 1, 1, 1, 8192);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(time_of(&list, TY_PART_GEMM), 0.0025197914150787144, 1e-12, "forward GEMMs, oracle");
    near(time_of(&list, TY_PART_ATTENTION), 0.00036311759514216866, 1e-12, "flash, oracle");
    near(time_of(&list, TY_PART_MEMORY_BOUND), 0.00016505012868400502, 1e-12,
         "element-wise 11 tok h/t + 2 tok (n+g)d + 3 tok f/t, oracle");
    near(time_of(&list, TY_PART_TP), 4 * 0.000455142211052327, 1e-12, "4 all-gathers, oracle");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(time_of(&list, TY_PART_GEMM), 0.005382619408878628, 1e-12, "dgrad and wgrad, oracle");
    near(time_of(&list, TY_PART_ATTENTION), 0.0013462584839895905, 1e-12, "flash backward, oracle");
    near(time_of(&list, TY_PART_MEMORY_BOUND), 0.0002805852187628085, 1e-12,
         "element-wise backward, oracle");
    near(time_of(&list, TY_PART_TP), 5 * 0.000455142211052327, 1e-12,
         "5 exposed all-gathers, oracle");
    plan.overlap |= TY_OVERLAP_TP;
    setting.profile.tp_overlap_exposed = 0.3889;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(time_of(&list, TY_PART_TP), 0.3889 * 4 * 0.000455142211052327, 1e-12,
         "overlap leaves its share exposed");
}

/* ---- phases, recompute, options */

static uint32_t count(const struct item_list *items, const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < items->n; i++)
        n += !items->item[i].is_collective && strcmp(items->item[i].kernel.name, name) == 0;
    return n;
}

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
    double cast_bytes = 0.0;
    for (uint32_t i = 0; i < list.n; i++)
        if (!list.item[i].is_collective && strcmp(list.item[i].kernel.name, "cast") == 0)
            cast_bytes += list.item[i].kernel.bytes;
    /* ACCURACY 1.4: 4 (2 tok h + tok n d + tok f) + 4 W / m, W of UT-1.1 */
    near(cast_bytes,
         setting.profile.cast_ratio * 4.0 *
             (4096.0 * (3 * 4096 + 14336) + (41943040.0 + 176160768.0) / 4),
         1e-12, "casts of activations, weights once per step");
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
    /* ACCURACY-2 2.8, attention 3h + 2(n+2g)d + nd + 2h, linears h + 4f + f + 2h */
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    double lora_bytes = 0.0;
    for (uint32_t i = 0; i < list.n; i++)
        if (!list.item[i].is_collective && strcmp(list.item[i].kernel.name, "lora") == 0)
            lora_bytes += list.item[i].kernel.bytes;
    near(lora_bytes,
         setting.profile.lora_ratio * setting.profile.elementwise_ratio * 2 * 4096.0 *
             (3 * 4096 + 2 * 48 * 128 + 4096 + 2 * 4096 + 4096 + 5 * 14336 + 2 * 4096),
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
            mixtral(&model);
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

/* UT-1.16: 4096 tokens; the formula and a Monte-Carlo figure it may exceed by at most 4 %. */
static void test_random_routing(void)
{
    static const struct {
        double n_experts, top_k, formula, monte_carlo;
    } cases[] = {{8, 2, 1.055, 1.042}, {64, 8, 1.119, 1.099}, {256, 8, 1.290, 1.259}};
    for (int i = 0; i < 3; i++) {
        const double load = routing_random_imbalance(4096, cases[i].top_k, cases[i].n_experts);
        within(load, cases[i].formula, 0.0005, "UT-1.16: load of the busiest expert");
        ok(load >= cases[i].monte_carlo && load <= 1.04 * cases[i].monte_carlo,
           "UT-1.16: an upper estimate within 4 %%");
    }
    ok(routing_random_imbalance(1e9, 8, 8) == 1.0, "every expert chosen: no imbalance");
}

int main(void)
{
    flop_of_models();
    relative_weight();
    sent();
    operators();
    added_gradients();
    adapters();
    expert_traffic();
    times();
    expert_times();
    phases();
    options();
    random_plans();
    test_random_routing();
    return tap_done();
}
