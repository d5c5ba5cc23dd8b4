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
                (strcmp(error.where, "shard_group") == 0 &&
                 resolved.shard_group <= resolved.cp);
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
    unlink(path);
    return tap_done();
}
