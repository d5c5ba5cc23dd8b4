/* SPDX-License-Identifier: MIT
 * Row to inputs. Tables of rules first, then model, cluster, plan in that order. */
#include "calibrate/run.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells --------------------------------------------------------------------------------- */

struct reader {
    const struct run_table *table;
    uint64_t index;
};

static const char *text(const struct reader *reader, const char *column)
{
    const struct csv *csv = &reader->table->csv;
    return csv_cell(csv, reader->index, csv_column(csv, column));
}

/* NAN for an empty or unreadable cell. */
static double number(const struct reader *reader, const char *column)
{
    const char *cell = text(reader, column);
    char *end;
    const double value = strtod(cell, &end);
    return end == cell || *end != '\0' || !isfinite(value) ? (double)NAN : value;
}

static uint32_t whole_or(const struct reader *reader, const char *column, uint32_t otherwise)
{
    const double value = number(reader, column);
    return value >= 0.0 && value < 4e9 ? (uint32_t)value : otherwise;
}

static bool has(const char *where, const char *what)
{
    return strstr(where, what) != NULL;
}

/* ---- rules: software stack, GPU, cluster -------------------------------------------------------
 */

struct stack_rule {
    const char *id_prefix, *framework, *stack; /* NULL: any; first match wins */
};

static const struct stack_rule stack_rules[] = {
    {"simumax", NULL, "megatron-core"},
    {"tt", NULL, "torchtitan"},
    {"mlperf", NULL, "mlperf"},
    {NULL, "llm-foundry", "fsdp"},
    {NULL, "lit-gpt", "fsdp"},
    {NULL, "JAX", "jax"},
    {NULL, "DeepLearningExamples", "ddp"},
    {NULL, "DeepSpeed", "megatron-deepspeed"},
    {NULL, "nanotron", "torchtitan"},
    {NULL, "picotron", "torchtitan"},
    {"narayanan", NULL, "megatron-lm-2021"},
    {"korthikanti", NULL, "megatron-lm-2021"},
    {"bsv", NULL, "megatron-lm-2021"},
    {"vtrain", NULL, "megatron-deepspeed"},
    {NULL, NULL, "megatron-core"},
};

static const char *stack_of(const char *source, const char *framework)
{
    for (const struct stack_rule *rule = stack_rules;; rule++)
        if ((!rule->id_prefix || strcmp(rule->id_prefix, source) == 0) &&
            (!rule->framework || has(framework, rule->framework)))
            return rule->stack;
}

struct gpu_rule {
    const char *gpu, *memory, *form; /* form: a part of the text; NULL: any */
    const char *cluster, *device;    /* built-in names; device NULL: the cluster's own */
};

static const struct gpu_rule gpu_rules[] = {
    {"V100", NULL, NULL, "jeanzay-v100", NULL},
    {"A100", "40", NULL, "dgx-a100-40gb", NULL},
    {"A100", NULL, NULL, "dgx-a100", NULL},
    {"H100", NULL, "500W", "hgx-h100-500w", NULL},
    {"H100", NULL, "lower TDP", "hgx-h100-500w", NULL},
    {"H100", NULL, NULL, "dgx-h100", NULL},
    {"H800", NULL, NULL, "dgx-h100", "h800-sxm"},
    {"H200", NULL, NULL, "dgx-h200", NULL},
    {"B200", NULL, NULL, "dgx-b200", NULL},
    {"B300", NULL, NULL, "dgx-b300", NULL},
    {"GB200", NULL, NULL, "gb200-nvl72", NULL},
    {"GB300", NULL, NULL, "gb300-nvl72", NULL},
    {"MI300X", NULL, NULL, "mi300x-8x", NULL},
    {"MI325X", NULL, NULL, "mi300x-8x", "mi325x"},
    {"MI350X", NULL, NULL, "mi355x-8x", "mi350x"},
    {"MI355X", NULL, NULL, "mi355x-8x", NULL},
    {"L40S", NULL, NULL, "pcie-l40s", NULL},
};

static const struct gpu_rule *gpu_rule_of(const struct reader *reader)
{
    const char *gpu = text(reader, "gpu"), *memory = text(reader, "gpu_mem_gb");
    const char *form = text(reader, "gpu_form");
    for (size_t i = 0; i < sizeof gpu_rules / sizeof gpu_rules[0]; i++) {
        const struct gpu_rule *rule = &gpu_rules[i];
        if (strcmp(rule->gpu, gpu) == 0 && (!rule->memory || strcmp(rule->memory, memory) == 0) &&
            (!rule->form || has(form, rule->form)))
            return rule;
    }
    return NULL;
}

/* ---- model ------------------------------------------------------------------------------------
 */

/* DeepSeek and Kimi do not print their MLA dimensions; the published configs agree on these. */
static void use_mla(struct ty_layer_kind *kind)
{
    kind->attention = TY_ATTENTION_MLA;
    kind->q_lora_rank = 1536;
    kind->kv_lora_rank = 512;
    kind->qk_nope_dim = 128;
    kind->qk_rope_dim = 64;
    kind->v_head_dim = 128;
}

static void use_experts(const struct reader *reader, struct ty_model *model)
{
    struct ty_layer_kind *moe = &model->kinds[1];
    *moe = model->kinds[0];
    moe->mlp = TY_MLP_MOE;
    moe->ffn = 0;
    moe->n_experts = whole_or(reader, "experts", 0);
    moe->top_k = whole_or(reader, "topk", 1);
    moe->expert_ffn = whole_or(reader, "expert_ffn", model->kinds[0].ffn);
    moe->shared_ffn = whole_or(reader, "shared_expert_ffn", 0);
    if (has(model->name, "DeepSeek")) { /* at most 4 of 8 groups per token */
        moe->n_groups = 8;
        moe->group_limit = 4;
    }
    model->n_kinds = 2;
    const uint32_t n_moe = whole_or(reader, "moe_layers", model->n_layers);
    for (uint32_t layer = 0; layer < model->n_layers; layer++)
        model->layer_kind[layer] = layer + n_moe >= model->n_layers;
}

/* GPT-OSS: every second layer attends to a window of 128 tokens. */
static void use_alternate_windows(struct ty_model *model)
{
    const uint32_t n = model->n_kinds;
    for (uint32_t kind = 0; kind < n; kind++) {
        model->kinds[n + kind] = model->kinds[kind];
        model->kinds[n + kind].window_tokens = 128;
    }
    model->n_kinds = 2 * n;
    for (uint32_t layer = 0; layer < model->n_layers; layer += 2)
        model->layer_kind[layer] = (uint8_t)(model->layer_kind[layer] + n);
}

static void plain_layer(const struct reader *reader, const struct ty_model *model,
                        struct ty_layer_kind *kind)
{
    const bool gated = number(reader, "gated_mlp") > 0.0;
    const uint32_t heads = whole_or(reader, "heads", model->hidden / 128 ? model->hidden / 128 : 1);
    *kind = (struct ty_layer_kind){.attention = TY_ATTENTION_HEADS,
                                   .n_heads = heads,
                                   .n_kv_heads = whole_or(reader, "kv_heads", heads),
                                   .head_dim = whole_or(reader, "head_dim", model->hidden / heads),
                                   .qkv_bias = !gated,
                                   .out_bias = !gated,
                                   .mlp = TY_MLP_DENSE,
                                   .gated = gated,
                                   .mlp_bias = !gated,
                                   .n_norms = 2};
    kind->ffn = whole_or(reader, "ffn_hidden", gated ? model->hidden * 8 / 3 : 4 * model->hidden);
}

static void read_model(const struct reader *reader, struct ty_model *model)
{
    ty_init(TY_KIND_MODEL, model);
    text_format(model->name, sizeof model->name, "%s", text(reader, "model"));
    model->hidden = whole_or(reader, "hidden", 0);
    model->n_layers = whole_or(reader, "layers", 0);
    model->vocab = whole_or(reader, "vocab", 51200);
    model->n_kinds = 1;
    plain_layer(reader, model, &model->kinds[0]);
    const bool gpt = !model->kinds[0].gated;
    text_format(model->family, sizeof model->family, "%s", gpt ? "gpt" : "llama");
    model->norm = gpt ? TY_NORM_LAYER : TY_NORM_RMS;
    model->tied = gpt;
    model->final_norm = true;
    if (has(model->name, "DeepSeek") || has(model->name, "Kimi"))
        use_mla(&model->kinds[0]);
    if (whole_or(reader, "experts", 0) > 0)
        use_experts(reader, model);
    if (has(model->name, "GPT-OSS"))
        use_alternate_windows(model);
    if (strcmp(text(reader, "task"), "lora") == 0)
        model->lora_rank = 16; /* the rank of the MLPerf benchmark; others do not print it */
}

/* ---- cluster ----------------------------------------------------------------------------------
 */

static ty_status read_cluster(const struct reader *reader, const struct gpu_rule *rule,
                              struct ty_cluster *cluster, struct ty_error *error)
{
    ty_status status = ty_cluster_load(rule->cluster, cluster, error);
    if (status == TY_OK && rule->device)
        status = ty_gpu_load(rule->device, &cluster->gpu, error);
    if (status != TY_OK)
        return status;
    const uint32_t per_node = whole_or(reader, "gpus_per_node", 0);
    if (per_node > 0 && per_node != cluster->gpus_per_node) {
        cluster->gpus_per_node = per_node;
        cluster->nics_per_node = per_node;
    }
    const char *network = text(reader, "inter_node_network");
    const double gbps = number(reader, "inter_node_gbps_per_gpu");
    if (gbps > 0.0) { /* printed per GPU: one NIC each of that rate */
        cluster->nic_bytes_per_s = gbps * 1e9 / 8.0;
        cluster->nics_per_node = cluster->gpus_per_node;
    } else if (has(network, "Omni-Path") && strcmp(rule->gpu, "A100") == 0) {
        cluster->nic_bytes_per_s = 12.5e9; /* Jean Zay A100 nodes: 4 links of 100 Gb/s, 8 GPUs */
        cluster->nics_per_node = 4;
    }
    if (has(network, "Omni-Path"))
        cluster->fabric = TY_FABRIC_OMNIPATH;
    else if (has(network, "RoCE") || has(network, "ROCE"))
        cluster->fabric = TY_FABRIC_ROCE;
    else if (has(network, "EFA"))
        cluster->fabric = TY_FABRIC_EFA;
    else if (has(network, "100 GB/s"))
        cluster->fabric = TY_FABRIC_ETHERNET;
    return TY_OK;
}

/* ---- plan -------------------------------------------------------------------------------------
 */

static int precision_of(const char *name, const char *source)
{
    static const char *const names[] = {
#define X(id, text, bytes) text,
        TY_PRECISION_LIST(X)
#undef X
    };
    for (int i = 1; i < TY_N_PRECISIONS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (strcmp(source, "vtrain") == 0)
        return TY_FP16_PRECISION;
    return strcmp(source, "mlperf") == 0 ? TY_FP8_PRECISION : TY_BF16_PRECISION;
}

static void read_recompute(const char *cell, struct ty_plan *plan)
{
    plan->recompute = TY_RECOMPUTE_NONE;
    if (strcmp(cell, "full") == 0)
        plan->recompute = TY_RECOMPUTE_FULL;
    if (!has(cell, "selective"))
        return;
    plan->recompute = TY_RECOMPUTE_SELECTIVE;
    plan->recompute_modules = (has(cell, "norm") ? TY_MODULE_NORM : 0u) |
                              (has(cell, "moe") ? TY_MODULE_MOE : 0u) |
                              (has(cell, "act") ? TY_MODULE_MOE_ACT : 0u) |
                              (has(cell, "shared expert") ? TY_MODULE_SHARED_EXPERTS : 0u);
}

static void read_sharding(const char *cell, struct ty_plan *plan)
{
    const char *group = strstr(cell, "group=");
    const char *hybrid = strstr(cell, "hybrid(fsdp");
    if (hybrid) {
        plan->sharding = TY_SHARDING_HSDP;
        plan->shard_group = (uint32_t)strtoul(hybrid + strlen("hybrid(fsdp"), NULL, 10);
    } else if (has(cell, "zero3") || has(cell, "fsdp") || has(cell, "FSDP")) {
        plan->sharding = TY_SHARDING_ZERO3;
    } else if (has(cell, "zero2")) {
        plan->sharding = TY_SHARDING_ZERO2;
    } else if (has(cell, "zero1")) {
        plan->sharding = TY_SHARDING_ZERO1;
        plan->shard_group = group ? (uint32_t)strtoul(group + strlen("group="), NULL, 10) : 0;
    } else if (strcmp(cell, "none") == 0) {
        plan->sharding = TY_SHARDING_NONE;
    }
}

/* NVIDIA recipes that do not print VPP run one layer per chunk when that divides, up to 20. */
static uint32_t default_vpp(const struct reader *reader, const struct run *run, uint32_t pp)
{
    const bool nvidia =
        strcmp(run->row.stack, "megatron-core") == 0 || strcmp(run->row.stack, "mlperf") == 0;
    const uint32_t layers = run->model.n_layers;
    if (!nvidia || pp <= 1 || layers % pp != 0 || layers / pp > 20 ||
        strcmp(run->row.source, "simumax") == 0)
        return 1;
    const uint32_t per_replica = whole_or(reader, "gbs", 0) / (run->plan.mbs ? run->plan.mbs : 1);
    const uint32_t dp = run->plan.n_gpus / (run->plan.tp * run->plan.cp * pp);
    return dp > 0 && per_replica / dp % pp == 0 ? layers / pp : 1;
}

/* Largest micro-batch <= asked that divides the sequences of a replica: ragged last micro-batches
 * (Composer) are modelled by the nearest even split below. */
static uint32_t even_micro_batch(uint32_t asked, uint32_t gbs, uint32_t dp)
{
    if (dp == 0 || gbs % dp != 0)
        return asked;
    const uint32_t sequences = gbs / dp;
    uint32_t mbs = asked < sequences ? asked : sequences;
    while (mbs > 1 && sequences % mbs != 0)
        mbs--;
    return mbs;
}

static void read_overlap(const struct reader *reader, const struct run *run, struct ty_plan *plan)
{
    const char *overlap = text(reader, "overlap");
    const bool nvidia_dense =
        (strcmp(run->row.stack, "megatron-core") == 0 || strcmp(run->row.stack, "mlperf") == 0) &&
        run->model.n_kinds == 1 && strcmp(run->row.source, "simumax") != 0;
    if (nvidia_dense || has(overlap, "async TP") || has(overlap, "tp comm"))
        plan->overlap = run->profile.default_overlap | TY_OVERLAP_TP | TY_OVERLAP_GIVEN;
    if (has(overlap, "A2A overlap"))
        plan->overlap |= run->profile.default_overlap | TY_OVERLAP_EP | TY_OVERLAP_GIVEN;
    /* one copy per destination fits published MoE runs of every stack (ACCURACY-2, 2.2) */
    if (whole_or(reader, "experts", 0) > 0)
        plan->dispatcher = TY_DISPATCHER_DEEPEP;
}

static void read_plan(const struct reader *reader, struct run *run)
{
    struct ty_plan *plan = &run->plan;
    ty_init(TY_KIND_PLAN, plan);
    plan->n_gpus = whole_or(reader, "gpus", 0);
    plan->tp = whole_or(reader, "tp", 1);
    plan->pp = whole_or(reader, "pp", 1);
    plan->cp = whole_or(reader, "cp", 1);
    if (whole_or(reader, "experts", 0) > 0) {
        plan->ep = whole_or(reader, "ep", 1);
        plan->etp = whole_or(reader, "etp", 1);
    }
    plan->gbs = whole_or(reader, "gbs", 0);
    plan->seq = whole_or(reader, "seq_len", 0);
    const uint32_t replicas = plan->tp * plan->cp * plan->pp;
    const uint32_t dp = replicas ? plan->n_gpus / replicas : 0;
    plan->mbs = even_micro_batch(whole_or(reader, "mbs", 1), plan->gbs, dp);
    plan->vpp = whole_or(reader, "vpp", default_vpp(reader, run, plan->pp));
    if (plan->pp <= 1)
        plan->vpp = 1;
    plan->precision = precision_of(text(reader, "precision"), run->row.source);
    read_recompute(text(reader, "recompute"), plan);
    read_sharding(text(reader, "dp_sharding"), plan);
    const char *attention = text(reader, "attn_kernel");
    if (has(attention, "no flash"))
        plan->attention = TY_KERNEL_UNFUSED;
    else if (strncmp(attention, "flash", 5) == 0)
        plan->attention = TY_KERNEL_FLASH;
    if (*text(reader, "seq_parallel"))
        plan->sp = number(reader, "seq_parallel") > 0.0 ? TY_ON : TY_OFF;
    read_overlap(reader, run, plan);
}

/* ---- the row ----------------------------------------------------------------------------------
 */

static void read_names(const struct reader *reader, struct ty_run_row *row)
{
    *row = (struct ty_run_row){.predicted_s = (double)NAN, .predicted_mem_bytes = (double)NAN};
    text_format(row->id, sizeof row->id, "%s", text(reader, "id"));
    text_format(row->source, sizeof row->source, "%.*s", (int)strcspn(row->id, "-"), row->id);
    text_format(row->gpu, sizeof row->gpu, "%s", text(reader, "gpu"));
    text_format(row->stack, sizeof row->stack, "%s",
                stack_of(row->source, text(reader, "framework")));
    const char *task = text(reader, "task");
    text_format(row->kind, sizeof row->kind, "%s",
                strcmp(task, "pretrain") != 0        ? task
                : whole_or(reader, "experts", 0) > 0 ? "moe"
                                                     : "dense");
    row->measured_s = number(reader, "step_time_s");
    row->measured_mem_bytes = number(reader, "mem_gb") * 1073741824.0;
    row->noisy = *text(reader, "flags") != '\0' || strcmp(text(reader, "check"), "off") == 0 ||
                 strcmp(row->source, "bert") == 0 || strcmp(row->source, "bsv") == 0;
}

/* Cells without which there is nothing to predict. */
static void refuse_incomplete(const struct reader *reader, struct ty_run_row *row)
{
    static const char *const needed[] = {"layers",  "hidden", "gpus",
                                         "seq_len", "gbs",    "step_time_s"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!(number(reader, needed[i]) > 0.0))
            text_append(row->refused, sizeof row->refused, "%s%s", *row->refused ? ", " : "no ",
                        needed[i]);
}

ty_status run_from_row(const struct run_table *table, uint64_t index, struct run *out,
                       struct ty_error *error)
{
    const struct reader reader = {table, index};
    read_names(&reader, &out->row);
    refuse_incomplete(&reader, &out->row);
    const struct gpu_rule *rule = gpu_rule_of(&reader);
    if (!rule && !*out->row.refused)
        text_format(out->row.refused, sizeof out->row.refused, "GPU \"%s\" is not known",
                    out->row.gpu);
    if (*out->row.refused)
        return TY_OK;
    read_model(&reader, &out->model);
    ty_status status = read_cluster(&reader, rule, &out->cluster, error);
    if (status == TY_OK)
        status = ty_profile_load(NULL, out->row.stack, &out->cluster, &out->profile, error);
    if (status == TY_OK)
        read_plan(&reader, out);
    return status;
}
