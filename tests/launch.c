/* SPDX-License-Identifier: MIT
 * Launch arguments: every framework's written and read back over random plans, the refusals, and
 * arguments as their own documentation spells them. */
#include "include/trainyard_launch.h"
#include "models/framework.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include "include/trainyard_tools.h"
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/trainyard-launch-XXXXXX";
static struct ty_model dense, moe;
static struct ty_cluster cluster;
static struct ty_error error;

static uint32_t pick(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

/* Any values; most frameworks lack some of them. */
static void random_plan(uint64_t *state, struct ty_plan *plan)
{
    static const uint32_t sizes[] = {1, 1, 2, 4};
    ty_init(TY_KIND_PLAN, plan);
    plan->tp = sizes[pick(state, 4)];
    plan->pp = sizes[pick(state, 4)];
    plan->cp = sizes[pick(state, 3)];
    plan->ep = sizes[pick(state, 3)];
    plan->n_gpus = 64;
    plan->vpp = plan->pp > 1 && pick(state, 3) == 0 ? 2 : 1;
    plan->mbs = 1 + pick(state, 2);
    plan->gbs = 512;
    plan->seq = 4096;
    plan->precision = 1 + (int)pick(state, 5);
    plan->recompute = (int)pick(state, 4);
    if (plan->recompute == TY_RECOMPUTE_SELECTIVE && pick(state, 2))
        plan->recompute_modules = TY_MODULE_CORE_ATTN | pick(state, 127);
    if (plan->recompute == TY_RECOMPUTE_FULL && pick(state, 2))
        plan->recompute_layers = 1 + pick(state, 8);
    plan->sharding = (int)pick(state, 6);
    if (plan->sharding == TY_SHARDING_HSDP)
        plan->shard_group = 2;
    plan->optimizer = (int)pick(state, 3);
    plan->dispatcher = (int)pick(state, 4);
    plan->cp_scheme = (int)pick(state, 4);
    plan->offload = pick(state, 4) ? TY_AUTO : (int)pick(state, 6);
    plan->compile = (int)pick(state, 3);
    plan->grad_dtype = pick(state, 2) ? TY_BF16_PRECISION : TY_AUTO;
    if (pick(state, 4) == 0)
        plan->overlap = (uint32_t)TY_OVERLAP_GIVEN | pick(state, 64);
    if (pick(state, 8) == 0)
        strcpy(plan->order, "tp-cp-ep-pp-dp");
}

static bool write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

static bool same_plan(const struct ty_plan *a, const struct ty_plan *b, const char **differs)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++) {
        const char *left = (const char *)a + fields[i].offset;
        const char *right = (const char *)b + fields[i].offset;
        uint32_t bits[2] = {0, 0};
        if (!framework_asks(&fields[i], a))
            continue;
        bool same = memcmp(left, right, fields[i].size) == 0;
        if (fields[i].type == TY_FIELD_FLAGS) {
            memcpy(&bits[0], left, 4);
            memcpy(&bits[1], right, 4);
            same = ((bits[0] ^ bits[1]) & framework_flags_asked(&fields[i], a)) == 0;
        }
        if (!same) {
            *differs = fields[i].path;
            return false;
        }
    }
    *differs = "derived sizes";
    return a->dp == b->dp && a->n_micro == b->n_micro && a->edp == b->edp;
}

struct counts {
    uint32_t n_written, n_refused, n_wrong;
};

static void round_trip(const struct ty_framework *framework, const struct ty_plan *plan,
                       const struct ty_model *model, const struct ty_profile *profile,
                       struct counts *counts)
{
    struct ty_plan resolved, read, again;
    char *text = NULL, name[24];
    const char *why = "resolve";
    if (ty_plan_resolve(model, &cluster, profile, plan, &resolved, NULL, 0, NULL) != TY_OK)
        return;
    const struct ty_field *lacks = ty_framework_lacks(framework, &resolved);
    const ty_status written = ty_launch_write(framework->name, &resolved, 8, &text, &error);
    bool good;
    if (written != TY_OK) {
        good = written == TY_ERR_INPUT && *error.where && *error.text;
        why = "refused, and not the knob that the allow-list refuses";
        /* a text, the order, is no list of values; torchtitan's groups hold those of cp */
        good &= strcmp(error.where, lacks ? lacks->path : "order") == 0 ||
                strcmp(error.where, "order") == 0 ||
                (strcmp(error.where, "shard_group") == 0 && resolved.shard_group <= resolved.cp);
        counts->n_refused++;
    } else {
        why = "written though it lacks a knob";
        good = !lacks;
        good = good && write_file(text) && ty_launch_read(path, &read, name, &error) == TY_OK &&
               strcmp(name, framework->name) == 0 &&
               ty_plan_resolve(model, &cluster, profile, &read, &again, NULL, 0, NULL) == TY_OK &&
               same_plan(&resolved, &again, &why);
        counts->n_written++;
    }
    if (!good && counts->n_wrong++ < 3)
        printf("# %s: %s (%s: %s)\n%s\n", framework->name, why, error.where, error.text,
               text ? text : "");
    ty_text_free(text);
}

static void round_trips(void)
{
    for (size_t i = 0; ty_framework_name(i); i++) {
        struct ty_framework framework;
        struct ty_profile profile;
        struct counts counts = {0};
        uint64_t state = 20 + i;
        bool loaded = ty_framework_load(ty_framework_name(i), &framework, &error) == TY_OK &&
                      ty_profile_load(NULL, framework.stack, &cluster, &profile, &error) == TY_OK;
        ok(loaded && *framework.version && *framework.source, "%s has a version and sources",
           ty_framework_name(i));
        for (uint32_t k = 0; loaded && k < 3000; k++) {
            struct ty_plan plan;
            random_plan(&state, &plan);
            if (k % 2) { /* half of them near the default, so that many can be written */
                const uint32_t tp = plan.tp, pp = plan.pp, ep = plan.ep, mbs = plan.mbs;
                const int recompute = plan.recompute;
                ty_init(TY_KIND_PLAN, &plan);
                plan.n_gpus = 64;
                plan.gbs = 512;
                plan.seq = 4096;
                plan.tp = tp;
                plan.pp = pp;
                plan.ep = ep;
                plan.mbs = mbs;
                plan.recompute = recompute;
            }
            round_trip(&framework, &plan, k % 3 ? &dense : &moe, &profile, &counts);
        }
        ok(counts.n_wrong == 0 && counts.n_written > 200 && counts.n_refused > 100,
           "%s: %u plans written and read back, %u refused by the knob it lacks",
           ty_framework_name(i), counts.n_written, counts.n_refused);
    }
}

/* As users write them: the flag forms of Megatron-LM's examples, a torchtitan train_config. */
static void by_hand(void)
{
    struct ty_plan plan;
    char name[24];
    ok(write_file("torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \\\n"
                  "  --tensor-model-parallel-size=2 --pipeline-model-parallel-size 4 \\\n"
                  "  --micro-batch-size 2 --global-batch-size 128 --seq-length 2048 --bf16 \\\n"
                  "  --recompute-granularity selective --recompute-modules core_attn moe_act \\\n"
                  "  --use-distributed-optimizer --lr 1e-4\n") &&
           ty_launch_read(path, &plan, name, &error) == TY_OK && strcmp(name, "megatron") == 0 &&
           plan.n_gpus == 16 && plan.tp == 2 && plan.pp == 4 && plan.mbs == 2 && plan.gbs == 128 &&
           plan.seq == 2048 && plan.precision == TY_BF16_PRECISION &&
           plan.recompute_modules == (TY_MODULE_CORE_ATTN | TY_MODULE_MOE_ACT) &&
           plan.sharding == TY_SHARDING_ZERO1,
       "Megatron-LM flags in both spellings");
    ok(write_file("# debug\n[training]\nlocal_batch_size = 4\nseq_len = 8192 # tokens\n"
                  "[parallelism]\ndata_parallel_shard_degree = -1\n"
                  "data_parallel_replicate_degree = 1\ntensor_parallel_degree = 2\n"
                  "[activation_checkpoint]\nmode = \"full\"\n") &&
           ty_launch_read(path, &plan, name, &error) == TY_OK && strcmp(name, "torchtitan") == 0 &&
           plan.n_gpus == 0 && plan.tp == 2 && plan.mbs == 4 && plan.seq == 8192 &&
           plan.recompute == TY_RECOMPUTE_FULL && plan.sharding == TY_SHARDING_ZERO3,
       "a torchtitan file without a launch line");
    ok(write_file("{\"train_batch_size\": 64, \"zero_optimization\": {\"stage\": 3,\n"
                  "\"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}}}") &&
           ty_launch_read(path, &plan, name, &error) == TY_OK && strcmp(name, "deepspeed") == 0 &&
           plan.gbs == 64 && plan.sharding == TY_SHARDING_ZERO3 &&
           plan.offload == TY_OFFLOAD_OPTIMIZER,
       "a DeepSpeed JSON");
    ok(write_file("{\"train_batch_size\": ") &&
           ty_launch_read(path, &plan, name, &error) == TY_ERR_INPUT,
       "broken JSON is refused");
    ok(write_file("nothing of the kind") &&
           ty_launch_read(path, &plan, name, &error) == TY_ERR_INPUT,
       "a text without arguments is refused");
    ok(write_file("--tensor-model-parallel-size eight --micro-batch-size 1") &&
           ty_launch_read(path, &plan, name, &error) == TY_ERR_INPUT,
       "a size that is no number is refused: %s", error.text);
    ok(ty_launch_read("/nowhere/x", &plan, name, &error) == TY_ERR_IO, "no file");
    struct ty_framework framework;
    ok(ty_framework_load("jax", &framework, &error) == TY_ERR_INPUT &&
           strstr(error.text, "torchtitan"),
       "an unknown framework is refused with those there are: %s", error.text);
}

/* ---- one plan of each by hand ---------------------------------------------------------------- */

static void writes(const char *name, const struct ty_model *model, const struct ty_plan *plan,
                   const char *expected)
{
    struct ty_framework framework;
    struct ty_profile profile;
    struct ty_plan resolved;
    char *text = NULL;
    const bool written =
        ty_framework_load(name, &framework, &error) == TY_OK &&
        ty_profile_load(NULL, framework.stack, &cluster, &profile, &error) == TY_OK &&
        ty_plan_resolve(model, &cluster, &profile, plan, &resolved, NULL, 0, NULL) == TY_OK &&
        ty_launch_write(name, &resolved, 8, &text, &error) == TY_OK;
    const char *body = text ? strstr(text, *text == '{' ? "\"tensor_" : "\n[") : NULL;
    if (text && !body)
        body = strstr(text, "torchrun");
    ok(written && body && strcmp(body + (*body == '\n'), expected) == 0, "%s: a plan by hand",
       name);
    if (!written || !body || strcmp(body + (*body == '\n'), expected) != 0)
        printf("# %s: %s\n%s\n", error.where, error.text, text ? text : "");
    ty_text_free(text);
}

static void plan_of(struct ty_plan *plan, uint32_t gpus, uint32_t tp, uint32_t pp, uint32_t vpp)
{
    ty_init(TY_KIND_PLAN, plan);
    plan->n_gpus = gpus;
    plan->tp = tp;
    plan->pp = pp;
    plan->vpp = vpp;
    plan->gbs = 512;
    plan->seq = 4096;
}

/* Names: megatron/training/arguments.py of NVIDIA/Megatron-LM (0.16), whose other flags are the
 * fields of TransformerConfig and ModelParallelConfig in megatron-core 0.16.1.
 * D = 512 / (2 4) = 64 replicas in groups of 32: two instances of the optimizer. */
static void megatron_by_hand(void)
{
    struct ty_plan plan;
    plan_of(&plan, 512, 2, 4, 2);
    plan.ep = 8;
    plan.pp_group = 8;
    plan.sharding = TY_SHARDING_ZERO1;
    plan.shard_group = 32;
    plan.dispatcher = TY_DISPATCHER_DEEPEP;
    plan.comm_sms = 24;
    plan.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM;
    plan.tp_overlap = TY_TP_RING | TY_TP_BULK;
    plan.cuda_graph = TY_ON;
    plan.precision = TY_NVFP4_PRECISION;
    plan.optimizer = TY_OPTIMIZER_ADAM_BF16;
    writes("megatron", &moe, &plan,
           "torchrun --nnodes=64 --nproc-per-node=8 pretrain_gpt.py \\\n"
           "    --tensor-model-parallel-size 2 \\\n"
           "    --pipeline-model-parallel-size 4 \\\n"
           "    --num-virtual-stages-per-pipeline-rank 2 \\\n"
           "    --microbatch-group-size-per-virtual-pipeline-stage 8 \\\n"
           "    --context-parallel-size 1 \\\n"
           "    --expert-model-parallel-size 8 \\\n"
           "    --expert-tensor-parallel-size 1 \\\n"
           "    --micro-batch-size 1 \\\n"
           "    --global-batch-size 512 \\\n"
           "    --seq-length 4096 \\\n"
           "    --bf16 \\\n"
           "    --fp4-format e2m1 \\\n"
           "    --fp4-recipe nvfp4 \\\n"
           "    --use-distributed-optimizer \\\n"
           "    --num-distributed-optimizer-instances 2 \\\n"
           "    --accumulate-allreduce-grads-in-fp32 \\\n"
           "    --optimizer adam \\\n"
           "    --use-precision-aware-optimizer \\\n"
           "    --exp-avg-dtype bf16 \\\n"
           "    --exp-avg-sq-dtype bf16 \\\n"
           "    --attention-backend flash \\\n"
           "    --sequence-parallel \\\n"
           "    --tp-comm-overlap \\\n"
           "    --overlap-grad-reduce \\\n"
           "    --overlap-param-gather \\\n"
           "    --no-overlap-p2p-communication \\\n"
           "    --disable-tp-comm-overlap-rs \\\n"
           "    --moe-token-dispatcher-type flex \\\n"
           "    --moe-flex-dispatcher-backend deepep \\\n"
           "    --moe-deepep-num-sms 24 \\\n"
           "    --cuda-graph-impl transformer_engine \\\n"
           "    \"$@\"\n");
}

/* Names: ConfigContainer and its parts in megatron-bridge 0.3.1 (training/config.py,
 * mixed_precision.py, comm_overlap.py), and TransformerConfig of megatron-core 0.16.1. */
static void nemo_by_hand(void)
{
    struct ty_plan plan;
    plan_of(&plan, 64, 2, 2, 2);
    plan.recompute = TY_RECOMPUTE_FULL;
    plan.sharding = TY_SHARDING_ZERO1;
    plan.precision = TY_FP8_PRECISION;
    plan.tp_overlap = TY_TP_RING | TY_TP_PIPELINED;
    plan.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_PP;
    writes("nemo", &dense, &plan,
           "torchrun --nnodes=8 --nproc-per-node=8 run_recipe.py \\\n"
           "    model.tensor_model_parallel_size=2 \\\n"
           "    model.pipeline_model_parallel_size=2 \\\n"
           "    model.virtual_pipeline_model_parallel_size=2 \\\n"
           "    model.microbatch_group_size_per_vp_stage=2 \\\n"
           "    model.context_parallel_size=1 \\\n"
           "    model.expert_model_parallel_size=1 \\\n"
           "    train.micro_batch_size=1 \\\n"
           "    train.global_batch_size=512 \\\n"
           "    model.seq_length=4096 \\\n"
           "    mixed_precision=bf16_with_fp8_current_scaling_mixed \\\n"
           "    model.recompute_granularity=full \\\n"
           "    model.recompute_method=uniform \\\n"
           "    model.recompute_num_layers=1 \\\n"
           "    ddp.use_distributed_optimizer=true \\\n"
           "    optimizer.use_distributed_optimizer=true \\\n"
           "    optimizer.optimizer=adam \\\n"
           "    model.attention_backend=flash \\\n"
           "    model.sequence_parallel=true \\\n"
           "    comm_overlap.tp_comm_overlap=true \\\n"
           "    comm_overlap.overlap_grad_reduce=true \\\n"
           "    comm_overlap.overlap_param_gather=false \\\n"
           "    model.tp_comm_bulk_dgrad=false \\\n"
           "    model.tp_comm_bulk_wgrad=false \\\n"
           "    \"$@\"\n");
}

/* Names: torchtitan 0.2.2, config/job_config.py; converters: components/quantization. Groups of 8
 * of the D cp = 32 ranks: 4 replicas; 8 / cp = 4 ranks of data parallelism in each. */
static void torchtitan_by_hand(void)
{
    struct ty_plan plan;
    plan_of(&plan, 64, 2, 1, 1);
    plan.cp = 2;
    plan.sharding = TY_SHARDING_HSDP;
    plan.shard_group = 8;
    plan.precision = TY_FP8_PRECISION;
    plan.recompute = TY_RECOMPUTE_FULL;
    plan.compile = TY_ON;
    writes("torchtitan", &dense, &plan,
           "[parallelism]\n"
           "tensor_parallel_degree = 2\n"
           "pipeline_parallel_degree = 1\n"
           "context_parallel_degree = 2\n"
           "expert_parallel_degree = 1\n"
           "pipeline_parallel_microbatch_size = 1\n"
           "data_parallel_replicate_degree = 4\n"
           "data_parallel_shard_degree = 4\n"
           "fsdp_reshard_after_forward = \"always\"\n"
           "context_parallel_rotate_method = \"alltoall\"\n"
           "\n[training]\n"
           "local_batch_size = 1\n"
           "global_batch_size = 512\n"
           "seq_len = 4096\n"
           "mixed_precision_param = \"bfloat16\"\n"
           "mixed_precision_reduce = \"float32\"\n"
           "\n[model]\n"
           "converters = ['quantize.linear.float8']\n"
           "\n[quantize.linear.float8]\n"
           "recipe_name = \"rowwise\"\n"
           "\n[activation_checkpoint]\n"
           "mode = \"full\"\n"
           "\n[optimizer]\n"
           "name = \"AdamW\"\n"
           "\n[compile]\n"
           "enable = true\n");
}

/* Names: deepspeed 0.17.6, runtime/config.py, runtime/zero/config.py, compile/config.py,
 * runtime/tensor_parallel/config.py; MiCS shards groups of mics_shard_size ranks. */
static void deepspeed_by_hand(void)
{
    struct ty_plan plan;
    plan_of(&plan, 64, 2, 1, 1);
    plan.sharding = TY_SHARDING_HSDP;
    plan.shard_group = 8;
    plan.recompute = TY_RECOMPUTE_NONE;
    plan.compile = TY_ON;
    plan.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_GRAD;
    plan.grad_dtype = TY_FP32_PRECISION;
    plan.attention = TY_KERNEL_FLASH;
    writes("deepspeed", &dense, &plan,
           "\"tensor_parallel\": {\n"
           "    \"autotp_size\": 2\n"
           "  },\n"
           "  \"pipeline\": {\n"
           "    \"stages\": 1,\n"
           "    \"activation_checkpoint_interval\": 0\n"
           "  },\n"
           "  \"sequence_parallel_size\": 1,\n"
           "  \"train_micro_batch_size_per_gpu\": 1,\n"
           "  \"train_batch_size\": 512,\n"
           "  \"_trainyard\": {\n"
           "    \"seq\": 4096\n"
           "  },\n"
           "  \"bf16\": {\n"
           "    \"enabled\": true\n"
           "  },\n"
           "  \"zero_optimization\": {\n"
           "    \"stage\": 3,\n"
           "    \"mics_shard_size\": 8,\n"
           "    \"overlap_comm\": true\n"
           "  },\n"
           "  \"data_types\": {\n"
           "    \"grad_accum_dtype\": \"fp32\"\n"
           "  },\n"
           "  \"optimizer\": {\n"
           "    \"type\": \"AdamW\"\n"
           "  },\n"
           "  \"compile\": {\n"
           "    \"deepcompile\": true\n"
           "  }\n"
           "}\n");
}

/* Megatron-LM takes a layout or a number of virtual stages, not both (validate_args, 0.16). */
static void layout_by_hand(void)
{
    struct ty_framework framework;
    struct ty_profile profile;
    struct ty_plan plan, resolved, read, again;
    char *text = NULL, name[24];
    plan_of(&plan, 64, 2, 2, 2);
    plan.pp_group = 4;
    strcpy(plan.layout, "Et*8|t*8|t*8|t*8L");
    ok(ty_framework_load("megatron", &framework, &error) == TY_OK &&
           ty_profile_load(NULL, framework.stack, &cluster, &profile, &error) == TY_OK &&
           ty_plan_resolve(&dense, &cluster, &profile, &plan, &resolved, NULL, 0, NULL) == TY_OK &&
           ty_launch_write("megatron", &resolved, 8, &text, &error) == TY_OK &&
           strstr(text, "--pipeline-model-parallel-layout 'Et*8|t*8|t*8|t*8L'") &&
           !strstr(text, "--num-virtual-stages") && write_file(text) &&
           ty_launch_read(path, &read, name, &error) == TY_OK &&
           ty_plan_resolve(&dense, &cluster, &profile, &read, &again, NULL, 0, NULL) == TY_OK &&
           again.vpp == 2 && again.pp_group == 4 && strcmp(again.layout, plan.layout) == 0,
       "a layout tells the virtual stages itself: %s", error.text);
    ty_text_free(text);
}

int main(void)
{
    const int file = mkstemp(path);
    if (file >= 0)
        close(file);
    fixture_llama3_8b(&dense);
    fixture_deepseek_v3(&moe);
    fixture_dgx_h100(&cluster);
    round_trips();
    by_hand();
    megatron_by_hand();
    nemo_by_hand();
    torchtitan_by_hand();
    deepspeed_by_hand();
    layout_by_hand();
    unlink(path);
    return tap_done();
}
