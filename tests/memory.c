/* SPDX-License-Identifier: MIT
 * Memory of the stages: handbook UT-3.1 to UT-3.5, closed forms, properties. */
#include "models/memory.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#define GIB 1073741824.0

static struct setting setting;
static struct ty_plan plan, resolved;
static struct slot slots[4096];
static struct ty_stage_memory stages[TY_MAX_LAYERS];
static struct memory_verdict verdict;

static void use(const struct ty_model *model, const char *stack)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_error error = {0};
    fixture_dgx_h100(&cluster);
    cluster.mem_reserved_bytes = 0;
    ty_init(TY_KIND_PROFILE, &profile);
    snprintf(profile.stack, sizeof profile.stack, "%s", stack);
    if (setting_init(model, &cluster, &profile, &setting, NULL, &error) != TY_OK)
        ok(false, "setting: %s %s", error.where, error.text);
    ty_init(TY_KIND_PLAN, &plan);
}

static void run(void)
{
    plan_resolve(&setting, &plan, &resolved, NULL);
    if (!layout_slots(&setting, &resolved, slots)) {
        ok(false, "layout");
        return;
    }
    memory_stages(&setting, &resolved, slots, stages);
    memory_judge(&setting, &resolved, slots, stages, &verdict);
}

/* ---- 3.1 states ----------------------------------------------------------------------------- */

static double state_total(void)
{
    struct state_bytes bytes;
    plan_resolve(&setting, &plan, &resolved, NULL);
    memory_state_bytes(&setting, &resolved, false, &bytes);
    return bytes.weights + bytes.gradients + bytes.optimizer;
}

static void state_case(int sharding, int precision, int grads, int optimizer, double want,
                       const char *what)
{
    plan.sharding = sharding;
    plan.precision = precision;
    plan.grad_dtype = grads;
    plan.optimizer = optimizer;
    near(state_total(), want, 1e-12, what);
}

static void states(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "megatron-core");
    plan.n_gpus = 16;
    const int bf16 = TY_BF16_PRECISION, fp32 = TY_FP32_PRECISION, fp16 = TY_FP16_PRECISION;
    const int none = TY_SHARDING_NONE, zero1 = TY_SHARDING_ZERO1, zero3 = TY_SHARDING_ZERO3;
    const double d = 16;
    state_case(none, bf16, fp32, TY_OPTIMIZER_ADAM, 18, "3.1 bf16, fp32 gradients: 18 B");
    state_case(zero1, bf16, fp32, TY_OPTIMIZER_ADAM, 6 + 12 / d, "3.1 distributed: 6 + 12/d");
    state_case(none, fp16, bf16, TY_OPTIMIZER_ADAM, 20, "3.1 fp16, 16-bit gradients: 20 B");
    state_case(zero1, fp16, bf16, TY_OPTIMIZER_ADAM, 4 + 16 / d, "3.1 distributed: 4 + 16/d");
    state_case(none, fp32, fp32, TY_OPTIMIZER_ADAM, 16, "3.1 fp32: 16 B");
    state_case(zero1, fp32, fp32, TY_OPTIMIZER_ADAM, 8 + 8 / d, "3.1 distributed: 8 + 8/d");
    state_case(none, bf16, bf16, TY_OPTIMIZER_ADAM, 16, "3.1 bf16 gradients: 16 B");
    state_case(zero1, bf16, bf16, TY_OPTIMIZER_ADAM, 4 + 12 / d, "3.1 distributed: 4 + 12/d");
    state_case(none, bf16, fp32, TY_OPTIMIZER_ADAM_BF16, 14, "3.1 bf16 moments: 14 B");
    state_case(zero1, bf16, fp32, TY_OPTIMIZER_ADAM_BF16, 6 + 8 / d, "3.1 distributed: 6 + 8/d");
    state_case(none, bf16, fp32, TY_OPTIMIZER_ADAM8BIT, 12, "3.1 8-bit Adam: 12 B");
    state_case(TY_SHARDING_ZERO2, bf16, bf16, TY_OPTIMIZER_ADAM, 2 + 14 / d, "ZeRO-2: 2 + 14/D");
    state_case(TY_SHARDING_ZERO2, bf16, fp32, TY_OPTIMIZER_ADAM, 2 + 16 / d, "ZeRO-2: 2 + 16/D");
    state_case(zero3, bf16, bf16, TY_OPTIMIZER_ADAM, 16 / d, "ZeRO-3: 16/D");
    state_case(zero3, bf16, fp32, TY_OPTIMIZER_ADAM, 18 / d, "ZeRO-3: 18/D");
    plan.shard_group = 4;
    state_case(TY_SHARDING_HSDP, bf16, fp32, TY_OPTIMIZER_ADAM, 18 / 4.0, "HSDP of 4: 18/4");
    state_case(zero1, bf16, fp32, TY_OPTIMIZER_ADAM, 6 + 12 / 4.0, "ZeRO-1 groups of 4: 6 + 12/4");

    plan.shard_group = 0;
    snprintf(setting.profile.stack, sizeof setting.profile.stack, "torchtitan");
    state_case(zero3, bf16, fp32, TY_OPTIMIZER_ADAM, 16 / d, "FSDP2 keeps weights once: 16/S");
}

static void deepspeed_states(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "megatron-deepspeed");
    plan.n_gpus = 16;
    const int bf16 = TY_BF16_PRECISION, fp16 = TY_FP16_PRECISION;
    state_case(TY_SHARDING_ZERO1, fp16, bf16, TY_OPTIMIZER_ADAM, 4 + 16 / 16.0,
               "DeepSpeed fp16: 4 + 16/S");
    state_case(TY_SHARDING_ZERO1, bf16, bf16, TY_OPTIMIZER_ADAM, 8 + 12 / 16.0,
               "DeepSpeed bf16: 8 + 12/S, fp32 accumulation kept whole");
}

/* DeepSpeed's estimator counts 18 B and, under ZeRO-2, the 16-bit gradients as sharded too. */
static void deepspeed_estimator(void)
{
    const double params = 2.851e9, largest = 32e6;
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "megatron-core");
    plan.n_gpus = 8;
    plan.sharding = TY_SHARDING_ZERO3;
    near(state_total() * params + 4.0 * largest, 6542750000.0, 1e-12,
         "UT-3.1 ZeRO-3: 4 x largest layer + 18 N/8");
    plan.sharding = TY_SHARDING_ZERO2;
    near((state_total() + 2.0 / 8.0) * params, 12116750000.0, 1e-12, "UT-3.1 ZeRO-2: 2N + 18N/8");
}

static void expert_states(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model, "megatron-core");
    plan.n_gpus = 64;
    plan.tp = 2;
    plan.ep = 8;
    struct state_bytes bytes;
    plan_resolve(&setting, &plan, &resolved, NULL);
    memory_state_bytes(&setting, &resolved, true, &bytes);
    near(bytes.optimizer, 12.0 / 8.0, 1e-12, "experts are sharded over D_e = 64/8");
    memory_state_bytes(&setting, &resolved, false, &bytes);
    near(bytes.optimizer, 12.0 / 32.0, 1e-12, "the rest over D = 64/2");
    plan.shard_group = 8;
    plan_resolve(&setting, &plan, &resolved, NULL);
    memory_state_bytes(&setting, &resolved, true, &bytes);
    near(bytes.optimizer, 12.0 / 2.0, 1e-12, "4 optimizer instances: each over D_e/4");
}

/* ---- parameters ------------------------------------------------------------------------------ */

static double stage_params(uint32_t stage)
{
    double dense, expert;
    memory_rank_params(&setting, &resolved, slots, stage, &dense, &expert);
    return dense + expert;
}

static void parameters(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    use(&model, "");
    plan.n_gpus = 4;
    plan.pp = 4;
    run();
    double sum = 0.0;
    for (uint32_t stage = 0; stage < 4; stage++)
        sum += stage_params(stage);
    near(sum, 70553706496.0, 1e-15, "UT-1.2 the stages of Llama-3-70B add up to it");
    near(stage_params(0), 20 * 855654400.0 + 128256.0 * 8192, 1e-15, "first: embedding, 20 layers");
    near(stage_params(1), 20 * 855654400.0, 1e-15, "middle: 20 layers");
    near(stage_params(3), 20 * 855654400.0 + 128256.0 * 8192 + 8192, 1e-15, "last: head and norm");
    plan.n_gpus = plan.tp = 8;
    plan.pp = 1;
    run();
    near(stage_params(0),
         80 * ((855654400.0 - 2 * 8192) / 8 + 2 * 8192) + 2 * 129024.0 * 1024 + 8192, 1e-15,
         "tp 8: matrices divided, norms not; the table padded to 128*8 rows");

    fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
    use(&model, "");
    run();
    near(stage_params(0), 174615846912.0, 1e-15, "UT-1.3 GPT-3 with biases and learned positions");
    plan.n_gpus = 2;
    plan.pp = 2;
    run();
    near(stage_params(0) + stage_params(1), 174615846912.0 + 51200.0 * 12288, 1e-15,
         "H11: a tied table is on the first and on the last stage");

    fixture_llama(&model, 8192, 80, 64, 8, 128, 28672, 128256);
    use(&model, "");
    plan.n_gpus = plan.tp = 16;
    setting.cluster.scaleup_domain = 16;
    run();
    const double with_copies = stage_params(0);
    const double divided = 80 * ((855654400.0 - 2 * 8192) / 16 + 2 * 8192);
    const double table = 2 * 129024.0 / 16 * 8192 + 8192; /* 129024 = 63 * 2048 */
    near(with_copies - divided - table, 80 * 2 * 8192 * 128 / 2.0, 1e-9,
         "8 K/V heads on tp 16: each rank holds a whole head, twice its share");
}

static void expert_parameters(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model, "");
    run();
    near(stage_params(0), 671026419200.0, 1e-15, "UT-1.4 DeepSeek-V3");
    plan.n_gpus = plan.pp = 2;
    run();
    const double without = stage_params(1);
    model.n_mtp = 1;
    use(&model, "");
    plan.n_gpus = plan.pp = 2;
    run();
    near(stage_params(1) - without, 11610068224.0 + 129280.0 * 7168, 1e-12,
         "UT-1.5 the MTP module sits on the last stage, with a copy of the embedding");
    fixture_deepseek_v3(&model);
    use(&model, "");
    plan.n_gpus = plan.ep = 64;
    run();
    double dense, expert;
    memory_rank_params(&setting, &resolved, slots, 0, &dense, &expert);
    near(expert, 58 * 4 * 44040192.0, 1e-15, "ep 64: four experts of 44,040,192 in each layer");
}

/* ---- 3.2 activations --------------------------------------------------------------------------
 */

struct paper_row {
    const char *name;
    uint32_t mbs, h, heads, layers, tp, pp, vpp, gbs;
    double none_gib, both_gib, states_gib;  /* figure 1 */
    double sp_pct, selective_pct, full_pct; /* formulas of UT-3.3 */
    double both_pct;
};

static double stage0_activations(const struct paper_row *row)
{
    plan_resolve(&setting, &plan, &resolved, NULL);
    return memory_layer_activation_bytes(&setting, &resolved, setting.model.kinds) * row->layers /
           row->pp * memory_in_flight(&resolved, 0);
}

/* Korthikanti et al. 2205.05198: figure 1 in GiB, figure 7 in percent of "none". */
static void paper(void)
{
    static const struct paper_row rows[] = {
        {"22B", 4, 6144, 64, 48, 8, 1, 1, 4, 59.25, 9.5625, 45.5625, 66.84, 49.42, 7.64, 16.18},
        {"175B", 1, 12288, 96, 96, 8, 8, 3, 64, 66.84375, 12.3515625, 45.5625, 62.04, 56.53, 8.71,
         18.49},
        {"530B", 1, 20480, 128, 105, 8, 35, 3, 280, 114.0234375, 23.0761719, 31.6406250, 58.31,
         62.04, 9.42, 20.27},
        {"1T", 1, 25600, 160, 128, 8, 64, 1, 512, 131.25, 26.5625, 32.9589844, 58.31, 62.04, 9.42,
         20.27}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct paper_row *row = &rows[i];
        struct ty_model model;
        fixture_gpt(&model, row->h, row->layers, row->heads, 51200, 2048);
        use(&model, "megatron-lm-2021");
        plan.n_gpus = row->tp * row->pp;
        plan.tp = row->tp;
        plan.pp = row->pp;
        plan.vpp = row->vpp;
        plan.mbs = row->mbs;
        plan.gbs = row->gbs;
        plan.seq = 2048;
        plan.attention = TY_KERNEL_UNFUSED;
        plan.sp = TY_OFF;
        plan.sharding = TY_SHARDING_NONE;
        const double none = stage0_activations(row);
        char what[80];
        snprintf(what, sizeof what, "UT-3.2 %s: no recompute, no SP", row->name);
        near(none / GIB, row->none_gib, 1e-7, what);
        const double params = 12.0 * row->layers * row->h * row->h / (row->tp * row->pp);
        snprintf(what, sizeof what, "UT-3.2 %s: states of the layers", row->name);
        near(state_total() * params / GIB, row->states_gib, 1e-7, what);
        plan.sp = TY_ON;
        snprintf(what, sizeof what, "UT-3.3 %s: SP", row->name);
        within(100.0 * stage0_activations(row) / none, row->sp_pct, 0.15, what);
        plan.recompute = TY_RECOMPUTE_SELECTIVE;
        snprintf(what, sizeof what, "UT-3.2 %s: SP and selective recompute", row->name);
        near(stage0_activations(row) / GIB, row->both_gib, 1e-7, what);
        snprintf(what, sizeof what, "UT-3.3 %s: both", row->name);
        within(100.0 * stage0_activations(row) / none, row->both_pct, 0.15, what);
        plan.sp = TY_OFF;
        snprintf(what, sizeof what, "UT-3.3 %s: selective", row->name);
        within(100.0 * stage0_activations(row) / none, row->selective_pct, 0.15, what);
        plan.recompute = TY_RECOMPUTE_FULL;
        snprintf(what, sizeof what, "UT-3.3 %s: full", row->name);
        within(100.0 * stage0_activations(row) / none, row->full_pct, 0.15, what);
    }
}

static double layer_bytes(uint32_t kind)
{
    plan_resolve(&setting, &plan, &resolved, NULL);
    return memory_layer_activation_bytes(&setting, &resolved, &setting.model.kinds[kind]);
}

static void llama_layer(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    use(&model, "");
    plan.n_gpus = plan.tp = 8;
    plan.seq = 8192;
    near(layer_bytes(0), 281280512.0, 1e-15, "UT-3.5 a Llama-3-70B layer, s 8192, tp 8, SP");
    plan.sp = TY_OFF;
    near(layer_bytes(0), 281280512.0 + 8192 * 8.0 * 8192 * 7 / 8, 1e-15,
         "without SP the four hidden tensors are whole");
    plan.sp = TY_ON;
    plan.recompute = TY_RECOMPUTE_SELECTIVE;
    plan.recompute_modules = TY_MODULE_NORM;
    near(layer_bytes(0), 1024 * (274688.0 - 4 * 8192), 1e-15, "norm recompute drops two of 2h");
    plan.recompute_modules = TY_MODULE_MLP;
    near(layer_bytes(0), 1024 * (274688.0 - 6 * 28672), 1e-15, "mlp recompute drops 6f");
    plan.recompute_modules = TY_MODULE_CORE_ATTN;
    near(layer_bytes(0), 1024 * (274688.0 - 4 * 64), 1e-15, "flash keeps only 4n to recompute");
    plan.recompute = TY_RECOMPUTE_FULL;
    near(layer_bytes(0), 1024 * 2.0 * 8192, 1e-15, "full recompute keeps the layer input");
    plan.recompute = TY_RECOMPUTE_NONE;
    plan.precision = TY_FP8_PRECISION;
    near(layer_bytes(0), 1024 * (274688.0 - (2 * 8192 + 64 * 128 + 28672)), 1e-15,
         "FP8: the four GEMM inputs take one byte");
}

/* Handbook 3.2, last paragraph, by hand for DeepSeek-V3, 4096 tokens. */
static void expert_layer(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model, "");
    plan.n_gpus = plan.ep = 64;
    plan.seq = 4096;
    const double tokens = 4096, up = 2 * 128 * (2 * 192 + 128.0), out = 2 * 128 * 128,
                 lse = 4 * 128;
    const double low_rank = 4 * 1536 + 4 * 512 + 2 * 64, shared = 6 * 2048, router = 8 * 256;
    const double plain = 8 * 7168 + up + out + lse + low_rank + shared + router;
    const double routed = 8 * (2 * 7168 + 6 * 2048.0);
    near(layer_bytes(1), tokens * (plain + routed), 1e-12, "MLA and MoE layer, balanced");
    plan.moe_imbalance = 1.5;
    near(layer_bytes(1), tokens * (plain + 1.5 * routed), 1e-12, "the worst rank at imbalance 1.5");
    plan.moe_imbalance = 1;
    plan.recompute = TY_RECOMPUTE_SELECTIVE;
    plan.recompute_modules = TY_MODULE_MLA_UP_PROJ | TY_MODULE_MOE_ACT;
    near(layer_bytes(1), tokens * (plain - up + routed - 8 * 2 * 2048.0), 1e-12,
         "up projections and expert activations recomputed");
    plan.recompute_modules = TY_MODULE_MOE;
    near(layer_bytes(1), tokens * (plain - shared - router), 1e-12, "the MoE block recomputed");
    plan.recompute_modules = TY_MODULE_SHARED_EXPERTS;
    near(layer_bytes(1), tokens * (plain + routed - shared), 1e-12, "shared experts recomputed");
}

/* ---- in flight ---------------------------------------------------------------------------------
 */

static void in_flight(void)
{
    struct ty_plan p = {.pp = 4, .vpp = 1, .n_micro = 8, .schedule = TY_SCHEDULE_1F1B};
    ok(memory_in_flight(&p, 0) == 4 && memory_in_flight(&p, 3) == 1, "UT-2.5 1F1B: 4, 3, 2, 1");
    p.schedule = TY_SCHEDULE_GPIPE;
    ok(memory_in_flight(&p, 0) == 8 && memory_in_flight(&p, 3) == 8, "UT-2.5 GPipe: 8, 8, 8, 8");
    p.schedule = TY_SCHEDULE_INTERLEAVED;
    p.vpp = 2;
    const double chunks[] = {11, 9, 7, 5};
    for (uint32_t stage = 0; stage < 4; stage++)
        near(2 * memory_in_flight(&p, stage), chunks[stage], 1e-15, "UT-2.6 interleaved chunks");
    p = (struct ty_plan){.pp = 8, .vpp = 3, .n_micro = 64, .schedule = TY_SCHEDULE_INTERLEAVED};
    near(memory_in_flight(&p, 0), 8 * (1 + 7.0 / 24), 1e-15, "UT-2.6 stage 0: p(1 + (p-1)/(p v))");
    p = (struct ty_plan){.pp = 8, .vpp = 1, .n_micro = 2, .schedule = TY_SCHEDULE_1F1B};
    near(memory_in_flight(&p, 0), 2, 1e-15, "never more than the micro-batches there are");
}

/* ---- 3.4 measured peaks ------------------------------------------------------------------------
 */

struct measured {
    const char *name;
    uint32_t tp, pp, cp, ep, seq;
    double gib;
};

static void peaks(const struct ty_model *model, const struct measured *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        use(model, "megatron-core");
        plan.n_gpus = 8;
        plan.tp = rows[i].tp;
        plan.pp = rows[i].pp;
        plan.cp = rows[i].cp;
        plan.ep = rows[i].ep;
        plan.seq = rows[i].seq;
        plan.gbs = 8 * 8 / (rows[i].tp * rows[i].pp * rows[i].cp);
        run();
        char what[120];
        snprintf(what, sizeof what, "%s: %.2f GiB, measured %.2f (%+.1f %%)", rows[i].name,
                 verdict.peak_bytes / GIB, rows[i].gib,
                 100.0 * (verdict.peak_bytes / GIB / rows[i].gib - 1.0));
        near(verdict.peak_bytes / GIB, rows[i].gib, 0.015, what);
    }
}

/* "Allocated" peaks on 8 B200, SimuMax B200 summary v1.2: 1.5 % is the handbook's acceptance for
 * tensor-level accounting. */
static void measured_peaks(void)
{
    struct ty_model model;
    static const struct measured llama70[] = {
        {"UT-3.4 70B L12 t1 p2", 1, 2, 1, 1, 4096, 66.55},
        {"UT-3.4 70B L12 t2", 2, 1, 1, 1, 4096, 60.68},
        {"UT-3.4 70B L12 t4", 4, 1, 1, 1, 4096, 39.07},
        {"UT-3.4 70B L12 t8", 8, 1, 1, 1, 4096, 28.29},
        {"GOLD-3.2 70B t2 c4 32k", 2, 1, 4, 1, 32768, 68.43},
        {"GOLD-3.2 70B c8 32k", 1, 1, 8, 1, 32768, 104.51},
        {"GOLD-3.2 70B t2 c4 128k", 2, 1, 4, 1, 131072, 112.67},
        {"GOLD-3.2 70B c8 128k", 1, 1, 8, 1, 131072, 147.99}};
    fixture_llama(&model, 8192, 12, 64, 8, 128, 28672, 128256);
    peaks(&model, llama70, sizeof llama70 / sizeof llama70[0]);
    static const struct measured llama405[] = {{"UT-3.4 405B L4 t1 p2", 1, 2, 1, 1, 4096, 87.08},
                                               {"UT-3.4 405B L4 t2", 2, 1, 1, 1, 4096, 81.59},
                                               {"UT-3.4 405B L4 t4", 4, 1, 1, 1, 4096, 52.89},
                                               {"UT-3.4 405B L4 t8", 8, 1, 1, 1, 4096, 38.57}};
    fixture_llama(&model, 16384, 4, 128, 16, 128, 53248, 128256);
    peaks(&model, llama405, sizeof llama405 / sizeof llama405[0]);
    static const struct measured v3[] = {{"GOLD-3.2 DeepSeek-V3 L4 ep8", 1, 1, 1, 8, 4096, 104.30},
                                         {"GOLD-3.2 DeepSeek-V3 ep4 p2", 1, 2, 1, 4, 4096, 114.00}};
    fixture_deepseek_v3(&model);
    model.n_layers = 4;
    model.layer_kind[1] = model.layer_kind[2] = 1;
    peaks(&model, v3, 2);
    static const struct measured v2[] = {{"GOLD-3.2 DeepSeek-V2 L4 ep8", 1, 1, 1, 8, 4096, 45.63},
                                         {"GOLD-3.2 DeepSeek-V2 ep4 p2", 1, 2, 1, 4, 4096, 44.70}};
    model.hidden = 5120;
    model.vocab = 102400;
    model.kinds[0].ffn = 12288;
    model.kinds[1].n_experts = 160;
    model.kinds[1].top_k = 6;
    model.kinds[1].expert_ffn = 1536;
    model.kinds[1].shared_ffn = 3072;
    peaks(&model, v2, 2);
}

/* ---- properties and the verdict
 * ------------------------------------------------------------------ */

static double peak_of(uint32_t tp, uint32_t cp, uint32_t pp, uint32_t dp)
{
    plan.tp = tp;
    plan.cp = cp;
    plan.pp = pp;
    plan.n_gpus = tp * cp * pp * dp;
    plan.gbs = 32 * dp;
    run();
    return verdict.peak_bytes;
}

static double static_bytes(void)
{
    return stages[0].bytes[TY_MEM_WEIGHTS] + stages[0].bytes[TY_MEM_GRADS] +
           stages[0].bytes[TY_MEM_OPTIMIZER];
}

static void monotone(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    use(&model, "");
    bool falls = true, below = true;
    for (uint32_t n = 1; n < 8; n *= 2) {
        falls &= peak_of(2 * n, 1, 4, 4) < peak_of(n, 1, 4, 4);
        falls &= peak_of(4, 2 * n, 4, 2) < peak_of(4, n, 4, 2);
        falls &= peak_of(4, 1, 4, 2 * n) < peak_of(4, 1, 4, n);
        peak_of(4, 1, n, 4);
        const double before = static_bytes();
        peak_of(4, 1, 2 * n, 4);
        falls &= static_bytes() < before;
        for (uint32_t stage = 0; stage < resolved.pp; stage++)
            below &= stages[stage].in_flight <= resolved.n_micro;
    }
    ok(falls, "memory falls with tp, cp, dp (ZeRO-1), and the states of stage 0 with pp");
    ok(below, "never more in flight than micro-batches");
    plan.sharding = TY_SHARDING_ZERO3;
    const double ten = peak_of(1, 1, 1, 64);
    ok(peak_of(1, 1, 1, 128) < ten, "memory falls with ZeRO-3 ranks");
    plan.sharding = 0;
    peak_of(8, 1, 4, 2);
    bool adds_up = true;
    for (uint32_t stage = 0; stage < 4; stage++) {
        double sum = 0.0;
        for (int i = 0; i < TY_N_MEM; i++) {
            adds_up &= stages[stage].bytes[i] >= 0.0;
            sum += stages[stage].bytes[i];
        }
        adds_up &= fabs(sum - stages[stage].total_bytes) < 1.0;
    }
    ok(adds_up, "components are not negative and add up to the stage");
    ok(stages[0].bytes[TY_MEM_LOGITS] == 0.0 && stages[3].bytes[TY_MEM_LOGITS] > 0.0,
       "only the last stage holds logits");
}

static void recompute_saves(void)
{
    struct ty_model model;
    fixture_llama3_70b(&model);
    use(&model, "");
    const double none = peak_of(8, 1, 4, 2);
    plan.recompute = TY_RECOMPUTE_FULL;
    const double full = peak_of(8, 1, 4, 2);
    plan.recompute_layers = 10;
    const double half = peak_of(8, 1, 4, 2);
    ok(full < half && half < none, "full recompute of 10 of 20 layers lies between all and none");
    fixture_llama3_70b(&model);
    model.lora_rank = 16;
    use(&model, "");
    peak_of(8, 1, 1, 1);
    near(stages[0].bytes[TY_MEM_WEIGHTS],
         2.0 * (80 * ((855654400.0 - 2 * 8192) / 8 + 2 * 8192) + 2 * 129024.0 * 1024 + 8192), 0.01,
         "LoRA: frozen weights in 16 bits");
    ok(stages[0].bytes[TY_MEM_GRADS] + stages[0].bytes[TY_MEM_OPTIMIZER] <
           0.05 * stages[0].bytes[TY_MEM_WEIGHTS],
       "LoRA: gradients and optimizer of the adapters only");
}

static void judged(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "");
    plan.n_gpus = 8;
    run();
    ok(isnan(verdict.imbalance_limit), "a dense model has no imbalance limit");
    const double peak = verdict.peak_bytes;
    setting.profile.usable_ratio = 0.9;
    setting.cluster.gpu.mem_bytes = peak / 0.9 * (1.0 + 1e-9);
    run();
    ok(verdict.fit == TY_FIT_YES && verdict.headroom_bytes >= 0.0, "fits the usable share");
    setting.cluster.gpu.mem_bytes = peak / 0.9 * (1.0 - 1e-9);
    run();
    ok(verdict.fit == TY_FIT_TIGHT && verdict.headroom_bytes < 0.0, "a byte more: tight");
    setting.cluster.gpu.mem_bytes = peak * (1.0 - 1e-9);
    run();
    ok(verdict.fit == TY_FIT_NO, "beyond the device: does not fit");
    ok(verdict.largest == TY_MEM_GRADS, "4 B gradients of each parameter are the largest part");
}

static void imbalance(void)
{
    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model, "");
    plan.n_gpus = 256;
    plan.pp = 4;
    plan.ep = 64;
    plan.gbs = 1024;
    plan.seq = 4096;
    setting.cluster.gpu.mem_bytes = 288e9;
    run();
    const double limit = verdict.imbalance_limit;
    ok(verdict.fit == TY_FIT_YES && limit > 1.0 && limit < 64.0, "fits up to imbalance %.3f",
       limit);
    plan.moe_imbalance = limit;
    run();
    near(verdict.peak_bytes, verdict.budget_bytes, 1e-9, "at the limit the peak is the budget");
    near(verdict.imbalance_limit, limit, 1e-12, "the limit does not depend on the load asked for");
    plan.moe_imbalance = limit * 1.001;
    run();
    ok(verdict.fit == TY_FIT_TIGHT, "beyond it no longer");
    setting.cluster.gpu.mem_bytes = 10e9;
    plan.moe_imbalance = 1;
    run();
    ok(verdict.imbalance_limit < 1.0, "below 1: does not fit at any load");
    setting.cluster.gpu.mem_bytes = 1e15;
    run();
    ok(isinf(verdict.imbalance_limit), "infinite: one rank could take every token");
}

int main(void)
{
    states();
    deepspeed_states();
    deepspeed_estimator();
    expert_states();
    parameters();
    expert_parameters();
    paper();
    llama_layer();
    expert_layer();
    in_flight();
    measured_peaks();
    monotone();
    recompute_saves();
    judged();
    imbalance();
    return tap_done();
}
