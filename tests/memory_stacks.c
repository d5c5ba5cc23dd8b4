/* SPDX-License-Identifier: MIT
 * What software stacks do with memory, by hand: what the allocator holds, gradients that do not
 * exist yet, what DeepSpeed keeps, FP8 LoRA, the loss. */
#include "include/trainyard_tools.h"
#include "models/memory.h"
#include "models/memory_layer.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

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
    if (ty_profile_load(NULL, stack, &cluster, &profile, &error) != TY_OK ||
        setting_init(model, &cluster, &profile, &setting, NULL, &error) != TY_OK)
        ok(false, "setting: %s %s", error.where, error.text);
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 8;
    plan.seq = 4096;
}

static void run(void)
{
    plan_resolve(&setting, &plan, &resolved, NULL);
    if (!layout_slots(&setting, &resolved, slots))
        ok(false, "layout");
    memory_stages(&setting, &resolved, slots, stages);
    memory_judge(&setting, &resolved, slots, stages, &verdict);
}

static double used_bytes(void)
{
    double bytes = 0.0;
    for (int i = 0; i < TY_MEM_RUNTIME; i++)
        bytes += stages[0].bytes[i];
    return bytes;
}

static void reserve(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "torchtitan");
    setting.profile.reserve_ratio = 1.25;
    setting.profile.reserve_compiled_ratio = 1.5;
    run();
    near(stages[0].bytes[TY_MEM_RESERVE], 0.25 * used_bytes(), 1e-12, "a quarter of what is used");
    near(stages[0].bytes[TY_MEM_RUNTIME], 1.5 * 1073741824.0, 1e-12, "runtime stays apart");
    near(stages[0].total_bytes, 1.25 * used_bytes() + 1.5 * 1073741824.0, 1e-12, "all of it");
    const double total = stages[0].total_bytes;
    const double back = 0.15 * stages[0].bytes[TY_MEM_RESERVE];
    setting.cluster.gpu.mem_bytes = (total - back) * (1.0 + 1e-9);
    run();
    ok(verdict.fit == TY_FIT_TIGHT, "what can be given back is not missing: tight");
    setting.cluster.gpu.mem_bytes = (total - back) * (1.0 - 1e-9);
    run();
    ok(verdict.fit == TY_FIT_NO, "a byte less: does not fit");
    plan.compile = TY_ON;
    run();
    near(stages[0].bytes[TY_MEM_RESERVE], 0.5 * used_bytes(), 1e-12, "compiled: its own ratio");
}

/* PyTorch drops gradients between steps: at the first backward all activations are alive and no
 * gradient is; with a second micro-batch the gradients of the first are. */
static void gradients(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    use(&model, "fsdp");
    plan.gbs = 8;
    run();
    ok(stages[0].bytes[TY_MEM_GRADS] == 0.0, "one micro-batch: no gradients at the peak");
    plan.gbs = 16;
    run();
    double dense, expert;
    memory_rank_params(&setting, &resolved, slots, 0, &dense, &expert);
    near(stages[0].bytes[TY_MEM_GRADS], 4.0 * dense / 8, 1e-12, "two: 4 B of each over 8 ranks");
    use(&model, "megatron-core");
    plan.gbs = 8;
    run();
    ok(stages[0].bytes[TY_MEM_GRADS] > 0.0, "Megatron-Core allocates them once");
}

/* GPT of 8 layers, hidden 1024, 2048 tokens, fp16, full recompute, 4 stages: stage 0 keeps the
 * inputs of its 2 layers and its output for 4 micro-batches. */
static void outputs(void)
{
    struct ty_model model;
    fixture_gpt(&model, 1024, 8, 16, 51200, 2048);
    use(&model, "megatron-deepspeed");
    plan.n_gpus = plan.pp = 4;
    plan.gbs = 16;
    plan.seq = 2048;
    plan.precision = TY_FP16_PRECISION;
    plan.recompute = TY_RECOMPUTE_FULL;
    run();
    near(stages[0].bytes[TY_MEM_ACTIVATIONS], 4 * 3 * 2.0 * 1024 * 2048, 1e-12,
         "DeepSpeed: two inputs and the output of a stage");
    near(stages[3].bytes[TY_MEM_ACTIVATIONS], (2 + 2) * 2.0 * 1024 * 2048, 1e-12,
         "last stage: two inputs, final norm and head");
    plan.n_gpus = 8;
    plan.pp = 1;
    plan.sharding = TY_SHARDING_ZERO3;
    run();
    double dense, expert;
    memory_rank_params(&setting, &resolved, slots, 0, &dense, &expert);
    near(stages[0].bytes[TY_MEM_BUFFERS], (2.0 + 4.0) * dense, 1e-12,
         "DeepSpeed's ZeRO-3 of a small model: all parameters live, all in one bucket");
}

/* Llama-2-70B as in MLPerf: h 8192, F 28672, 64 heads of 128, 8 for K and V. A token keeps
 *   2 norm inputs 2h each, QKV input 2h for the adapter, Q, K, V in FP8 (64 + 16) 128, attention
 *   output in FP8 and in bf16 3 * 64 * 128, row sums 4 * 64, gate and up in FP8 2F. */
static void fp8_lora(void)
{
    struct ty_model model;
    const double q = precision_bytes(TY_FP8_PRECISION);
    fixture_llama(&model, 8192, 80, 64, 8, 128, 28672, 32000);
    model.lora_rank = 16;
    use(&model, "mlperf");
    plan.seq = 8192;
    plan.precision = TY_FP8_PRECISION;
    run();
    near(memory_layer_activation_bytes(&setting, &resolved, &setting.model.kinds[0]),
         8192.0 * (6 * 8192 + q * (80 * 128 + 64 * 128 + 2 * 28672) + 2 * 64 * 128 + 4 * 64), 1e-12,
         "a layer under FP8 LoRA");
    double dense, expert;
    memory_rank_params(&setting, &resolved, slots, 0, &dense, &expert);
    near(stages[0].bytes[TY_MEM_WEIGHTS], q * dense, 0.01, "frozen weights in FP8, and adapters");
    plan.precision = TY_BF16_PRECISION;
    run();
    near(stages[0].bytes[TY_MEM_WEIGHTS], 2.0 * dense, 0.01, "in bf16: 16 bits");
}

/* 4096 tokens, vocabulary 128256: torchtitan's loss takes 13 B a logit, 4 when compiled (2025). */
static void losses(void)
{
    struct ty_model model;
    fixture_llama3_8b(&model);
    const double logits = 4096.0 * 128256, hidden = 4096.0 * 4096;
    static const struct {
        const char *stack;
        int compile;
        double kept, work;
    } rows[] = {{"torchtitan", TY_OFF, 6, 7},
                {"torchtitan", TY_ON, 6, 7},
                {"torchtitan@2025", TY_OFF, 6, 7},
                {"torchtitan@2025", TY_ON, 4, 0},
                {"fsdp", TY_OFF, 2, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        use(&model, rows[i].stack);
        plan.compile = rows[i].compile;
        run();
        near(stages[0].bytes[TY_MEM_LOGITS], rows[i].kept * logits, 1e-12, rows[i].stack);
        ok(stages[0].bytes[TY_MEM_TRANSIENT] >= rows[i].work * logits + 4.0 * hidden,
           "%s, compile %d: and room for the loss", rows[i].stack, rows[i].compile == TY_ON);
    }
}

/* A stage may hold the head and an MTP module but no layer: it still needs the working set of one.
 * DeepSeek-V3 on 2 stages of one chunk, all layers on the first. */
static void mtp_alone(void)
{
    struct ty_model model;
    struct ty_stage_memory with[2], without[2];
    fixture_deepseek_v3(&model);
    for (int i = 0; i < 2; i++) {
        model.n_mtp = (uint32_t)i;
        use(&model, "megatron-core");
        plan.n_gpus = 16;
        plan.pp = 2;
        plan.ep = 8;
        plan.recompute = TY_RECOMPUTE_FULL;
        plan_resolve(&setting, &plan, &resolved, NULL);
        slots[0] = (struct slot){.n_layers = 61, .embedding = true};
        slots[1] = (struct slot){.first_layer = 61, .head = true};
        memory_stages(&setting, &resolved, slots, i ? with : without);
    }
    /* 16-bit gradients of each weight shape of the module's layer, which stays allocated:
     * attention, shared expert, one expert */
    const double attention =
        7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 7168;
    near(with[1].bytes[TY_MEM_BUFFERS] - without[1].bytes[TY_MEM_BUFFERS],
         2.0 * (attention + 2 * 3.0 * 7168 * 2048), 1e-12, "MTP alone: gradients of its shapes");
    ok(with[1].bytes[TY_MEM_TRANSIENT] + with[1].bytes[TY_MEM_LOGITS] >
           without[1].bytes[TY_MEM_TRANSIENT] + without[1].bytes[TY_MEM_LOGITS],
       "and its layer is rerun");
    near(with[1].bytes[TY_MEM_LOGITS], 2.0 * without[1].bytes[TY_MEM_LOGITS], 1e-12,
         "a second logits buffer: handbook 1.7");
}

int main(void)
{
    mtp_alone();
    reserve();
    gradients();
    outputs();
    fp8_lora();
    losses();
    return tap_done();
}
