/* SPDX-License-Identifier: MIT
 * What a layer sends: wire bytes of handbook 1.6, 2.3 and 2.4, and which kernels and bytes a stack
 * adds of its own. */
#include "tests/layer_fixture.h"

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
    plan.precision = TY_FP8_PRECISION; /* the gathers send one byte, the scatters two */
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_TP), 469762048.0 * 3 / 4, 1e-15, "FP8: two gathers of four halved");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_TP), 704643072.0 * 4 / 6, 1e-15, "FP8: four gathers of six halved");
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_TP), 469762048.0, 1e-15, "another stack gathers, then casts");
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "megatron-core");
    plan.precision = TY_BF16_PRECISION;
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

/* What FSDP moves of the 218103808 weights of a layer besides its collectives. FSDP2 copies 2-byte
 * parameters out of the gathered buffer (2 + 2), for backward again, and gradients into that of the
 * reduction (2 + 4); FSDP1 joins the gradients of its views (2 + 2), casts (2 + 4) and divides them
 * (4 + 4). */
static void sharded(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    start_h100(&model);
    struct ty_plan plan = plan_of(1, 1, 1, 1, 8192);
    plan.sharding = TY_SHARDING_ZERO3;
    plan.reshard_after_forward = TY_ON;
    plan.recompute = TY_RECOMPUTE_FULL;
    plan.grad_dtype = TY_FP32_PRECISION;
    plan.dp = 8;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "shard_gradients"), 0.0, 0.0, "no FSDP: nothing is copied");
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(bytes_named(&list, "copy_out"), 218103808.0 * 4.0, 1e-12, "FSDP2: gathered for forward");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "copy_out"), 218103808.0 * 4.0, 1e-12,
         "and for backward, with the recompute");
    near(bytes_named(&list, "shard_gradients"), 218103808.0 * 6.0, 1e-12, "FSDP2: gradients");
    plan.precision = TY_FP8_PRECISION;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(bytes_named(&list, "copy_out"), 218103808.0 * 2.0, 1e-12, "gathered in 8 bits");
    plan.precision = TY_BF16_PRECISION;
    plan.reshard_after_forward = TY_OFF;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "shard_gradients"), 0.0, 0.0, "gradients stay whole: no copy");
    plan.reshard_after_forward = TY_ON;
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "fsdp");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "shard_gradients"), 218103808.0 * 18.0, 1e-12, "FSDP1, fp32 gradients");
    near(bytes_named(&list, "copy_out"), 0.0, 0.0, "FSDP1: parameters are views");
    plan.grad_dtype = TY_BF16_PRECISION;
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "shard_gradients"), 218103808.0 * 8.0, 1e-12, "FSDP1, 16 bits");
    layer_items(&setting, &plan, WHAT_EMBEDDING, 0, PHASE_BACKWARD, &list);
    near(bytes_named(&list, "shard_gradients"), 128256.0 * 4096.0 * 8.0, 1e-12, "the look-up too");
}

/* Context parallelism of PyTorch, cp = 8, 16384 tokens of 32 heads of 128 a rank: K and V repeated
 * (2 * 4096 elements, 2 bytes) go 7 steps, their fp32 gradients 8. */
static void repeated_ring(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    start_h100(&model);
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    const struct ty_plan plan = plan_of(1, 8, 1, 1, 131072);
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(wire(&list, TY_PART_CP), 14.0 * 8192 * 16384, 1e-15, "PyTorch's ring forward");
    near(bytes_named(&list, "ring_merge"), 300.0 * 4096 * 16384, 1e-12, "merged in fp32");
    layer_items(&setting, &plan, WHAT_LAYER, 0, PHASE_BACKWARD, &list);
    near(wire(&list, TY_PART_CP), 46.0 * 8192 * 16384, 1e-15, "PyTorch's ring backward");
    near(bytes_named(&list, "ring_merge"), 558.0 * 4096 * 16384, 1e-12, "gradients summed in fp32");
}

/* A token's adapter traffic beside Llama-3 8B: attention 3 * 4096 + 4 * 6144 + 4096 + 4 * 4096,
 * MLP 4096 + 4 * 28672 + 14336 + 4 * 4096. */
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
    near(bytes_named(&list, "lora"), all_bytes * 57344.0 / 206848.0, 1e-12,
         "MLPerf's LoRA has adapters on the attention only");
    struct ty_plan low = plan;
    low.precision = TY_FP8_PRECISION;
    layer_items(&setting, &low, WHAT_LAYER, 0, PHASE_FORWARD, &list);
    near(bytes_named(&list, "cast"), setting.profile.cast_ratio * 4.0 * 8192.0 * (3 * 4096 + 14336),
         1e-12, "and its frozen weights stay in 8 bits: only activations are cast");
}

int main(void)
{
    sent();
    expert_traffic();
    operators();
    added_gradients();
    sharded();
    repeated_ring();
    adapters();
    return tap_done();
}
