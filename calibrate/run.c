/* SPDX-License-Identifier: MIT
 * Row to inputs: model, cluster, plan in that order. Every cell is read through the facts. */
#include "calibrate/evidence.h"
#include "calibrate/run.h"
#include "models/spec/builtin.h"
#include "sim/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A size of at least 1; `otherwise` for an empty, zero or unreadable cell. */
static uint32_t whole_or(const struct facts *facts, const char *name, uint32_t otherwise)
{
    const double value = facts_number(facts, name);
    return value >= 1.0 && value < 4e9 ? (uint32_t)value : otherwise;
}

static bool has(const char *where, const char *what)
{
    return strstr(where, what) != NULL;
}

void run_assume(struct ty_run_row *row, const char *format, ...)
{
    char text[96];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_append(row->assumed, sizeof row->assumed, "%s%s", *row->assumed ? ";" : "", text);
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

static void use_experts(const struct facts *facts, struct ty_model *model)
{
    struct ty_layer_kind *moe = &model->kinds[1];
    *moe = model->kinds[0];
    moe->mlp = TY_MLP_MOE;
    moe->ffn = 0;
    moe->n_experts = whole_or(facts, "experts", 0);
    moe->top_k = whole_or(facts, "topk", 1);
    moe->expert_ffn = whole_or(facts, "expert_ffn", model->kinds[0].ffn);
    moe->shared_ffn = whole_or(facts, "shared_expert_ffn", 0);
    moe->n_groups = whole_or(facts, "expert_groups", 0);
    moe->group_limit = whole_or(facts, "expert_group_limit", 0);
    model->n_kinds = 2;
    const uint32_t n_moe = whole_or(facts, "moe_layers", model->n_layers);
    for (uint32_t layer = 0; layer < model->n_layers; layer++)
        model->layer_kind[layer] = layer + n_moe >= model->n_layers;
}

/* Every second layer attends to a window. */
static void use_alternate_windows(struct ty_model *model, uint32_t window_tokens)
{
    const uint32_t n = model->n_kinds;
    for (uint32_t kind = 0; kind < n; kind++) {
        model->kinds[n + kind] = model->kinds[kind];
        model->kinds[n + kind].window_tokens = window_tokens;
    }
    model->n_kinds = 2 * n;
    for (uint32_t layer = 0; layer < model->n_layers; layer += 2)
        model->layer_kind[layer] = (uint8_t)(model->layer_kind[layer] + n);
}

static void plain_layer(const struct facts *facts, struct ty_layer_kind *kind)
{
    const bool gated = facts_number(facts, "gated_mlp") > 0.0;
    const uint32_t heads = whole_or(facts, "heads", 1);
    *kind = (struct ty_layer_kind){.attention = TY_ATTENTION_HEADS,
                                   .n_heads = heads,
                                   .n_kv_heads = whole_or(facts, "kv_heads", heads),
                                   .head_dim = whole_or(facts, "head_dim", 128),
                                   .qkv_bias = !gated,
                                   .out_bias = !gated,
                                   .mlp = TY_MLP_DENSE,
                                   .ffn = whole_or(facts, "ffn_hidden", 0),
                                   .gated = gated,
                                   .mlp_bias = !gated,
                                   .n_norms = 2};
    if (strcmp(facts_text(facts, "attention"), "mla") == 0)
        use_mla(kind);
}

/* A table of one's own may name a built-in model instead of printing its shape. */
static const char *builtin_model(const struct facts *facts)
{
    const char *name, *asked = facts_text(facts, "model");
    for (size_t i = 0; (name = ty_builtin_name(TY_KIND_MODEL, i)); i++)
        if (strcmp(name, asked) == 0)
            return name;
    return NULL;
}

static bool has_shape(const struct facts *facts)
{
    return facts_number(facts, "layers") > 0.0 && facts_number(facts, "hidden") > 0.0;
}

static void read_shape(const struct facts *facts, struct ty_model *model)
{
    ty_init(TY_KIND_MODEL, model);
    text_format(model->name, sizeof model->name, "%s", facts_text(facts, "model"));
    model->hidden = whole_or(facts, "hidden", 0);
    model->n_layers = whole_or(facts, "layers", 0);
    model->vocab = whole_or(facts, "vocab", 0);
    model->n_kinds = 1;
    plain_layer(facts, &model->kinds[0]);
    const bool gpt = !model->kinds[0].gated;
    text_format(model->family, sizeof model->family, "%s", gpt ? "gpt" : "llama");
    model->norm = gpt ? TY_NORM_LAYER : TY_NORM_RMS;
    model->tied = gpt;
    model->final_norm = true;
    model->lora_rank = whole_or(facts, "lora_rank", 0);
    if (whole_or(facts, "experts", 0) > 0)
        use_experts(facts, model);
    const uint32_t window_tokens = whole_or(facts, "alternate_window", 0);
    if (window_tokens > 0)
        use_alternate_windows(model, window_tokens);
}

static ty_status read_model(const struct facts *facts, struct ty_model *model,
                            struct ty_error *error)
{
    if (!has_shape(facts))
        return ty_model_load(builtin_model(facts), model, error);
    read_shape(facts, model);
    return TY_OK;
}

/* ---- cluster ----------------------------------------------------------------------------------
 */

static ty_status read_network(const struct facts *facts, struct ty_cluster *cluster,
                              struct ty_error *error)
{
    const double nic_gbps = facts_number(facts, "nic_gbps");
    if (nic_gbps > 0.0) {
        cluster->nic_bytes_per_s = nic_gbps * 1e9 / 8.0;
        cluster->nics_per_node = whole_or(facts, "nics", cluster->gpus_per_node);
    }
    const char *fabric = facts_text(facts, "fabric");
    return *fabric ? ty_field_set(TY_KIND_CLUSTER, cluster, "network.fabric", fabric, error)
                   : TY_OK;
}

static ty_status read_cluster(const struct facts *facts, struct ty_cluster *cluster,
                              struct ty_error *error)
{
    const char *device = facts_text(facts, "device");
    ty_status status = ty_cluster_load(facts_text(facts, "cluster"), cluster, error);
    if (status == TY_OK && *device)
        status = ty_gpu_load(device, &cluster->gpu, error);
    if (status != TY_OK)
        return status;
    const uint32_t per_node = whole_or(facts, "gpus_per_node", 0);
    if (per_node > 0 && per_node != cluster->gpus_per_node) {
        cluster->gpus_per_node = per_node;
        cluster->nics_per_node = per_node;
    }
    return read_network(facts, cluster, error);
}

/* ---- plan -------------------------------------------------------------------------------------
 */

static void read_recompute(const char *cell, struct ty_plan *plan)
{
    plan->recompute = TY_RECOMPUTE_NONE;
    if (strncmp(cell, "full", strlen("full")) == 0)
        plan->recompute = TY_RECOMPUTE_FULL;
    if (strncmp(cell, "full:", strlen("full:")) == 0)
        plan->recompute_layers = (uint32_t)strtoul(cell + strlen("full:"), NULL, 10);
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

static void read_overlap(const struct facts *facts, uint32_t stack_overlap, struct ty_plan *plan)
{
    plan->overlap = (stack_overlap & ~(uint32_t)TY_OVERLAP_TP) | TY_OVERLAP_GIVEN;
    if (whole_or(facts, "packed", 0))
        plan->packed = TY_ON;
    if (whole_or(facts, "tp_overlap", 0))
        plan->overlap |= TY_OVERLAP_TP;
    if (strcmp(facts_text(facts, "param_overlap"), "0") == 0)
        plan->overlap &= ~(uint32_t)TY_OVERLAP_PARAM;
    if (whole_or(facts, "ep_overlap", 0))
        plan->overlap |= TY_OVERLAP_EP;
}

static void read_attention(const struct facts *facts, struct ty_plan *plan)
{
    const char *kernel = facts_text(facts, "attn_kernel");
    if (has(kernel, "no flash"))
        plan->attention = TY_KERNEL_UNFUSED;
    else if (strncmp(kernel, "flash", 5) == 0)
        plan->attention = TY_KERNEL_FLASH;
}

/* Switches that rules give by the names of the plan's own fields. */
static ty_status read_switches(const struct facts *facts, struct ty_plan *plan,
                               struct ty_error *error)
{
    static const char *const fields[] = {"precision",  "dispatcher", "compile",
                                         "cuda_graph", "grad_dtype", "launch_blocking"};
    ty_status status = TY_OK;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && status == TY_OK; i++) {
        const char *value = facts_text(facts, fields[i]);
        if (*value)
            status = ty_field_set(TY_KIND_PLAN, plan, fields[i], value, error);
    }
    return status;
}

static ty_status read_plan(const struct facts *facts, struct ty_run *run, struct ty_error *error)
{
    struct ty_plan *plan = &run->plan;
    ty_init(TY_KIND_PLAN, plan);
    plan->n_gpus = whole_or(facts, "gpus", 0);
    plan->tp = whole_or(facts, "tp", 1);
    plan->pp = whole_or(facts, "pp", 1);
    plan->vpp = plan->pp > 1 ? whole_or(facts, "vpp", 1) : 1;
    plan->cp = whole_or(facts, "cp", 1);
    if (whole_or(facts, "experts", 0) > 0) {
        plan->ep = whole_or(facts, "ep", 1);
        plan->etp = whole_or(facts, "etp", 1);
    }
    plan->mbs = whole_or(facts, "mbs", 1);
    plan->gbs = whole_or(facts, "gbs", 0);
    plan->seq = whole_or(facts, "seq_len", 0);
    read_recompute(facts_text(facts, "recompute"), plan);
    read_sharding(facts_text(facts, "dp_sharding"), plan);
    read_attention(facts, plan);
    if (*facts_text(facts, "seq_parallel"))
        plan->sp = facts_number(facts, "seq_parallel") > 0.0 ? TY_ON : TY_OFF;
    read_overlap(facts, run->profile.default_overlap, plan);
    return read_switches(facts, plan, error);
}

/* ---- the row ----------------------------------------------------------------------------------
 */

static void copy_fact(const struct facts *facts, const char *name, char *out, size_t bytes)
{
    text_format(out, bytes, "%s", facts_text(facts, name));
}

/* The step time as printed, or from the tokens/s of a GPU. */
static double measured_step_s(const struct facts *facts)
{
    const double step_s = facts_number(facts, "step_time_s");
    if (step_s > 0.0)
        return step_s;
    return facts_number(facts, "gbs") * facts_number(facts, "seq_len") /
           (facts_number(facts, "tokens_per_s_per_gpu") * facts_number(facts, "gpus"));
}

/* Runs that differ in their layout only. */
static void name_sweep(const struct facts *facts, struct ty_run_row *row)
{
    static const char *const same[] = {"prefix",  "model",     "gpu",  "gpus",
                                       "seq_len", "precision", "task", "gbs"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        text_append(row->sweep, sizeof row->sweep, "%s%s", i ? " " : "",
                    facts_text(facts, same[i]));
}

static void read_names(const struct facts *facts, struct ty_run_row *row)
{
    const double nan = (double)NAN;
    *row = (struct ty_run_row){.predicted_s = nan,
                               .no_site_s = nan,
                               .predicted_mem_bytes = nan,
                               .interval_80_s = {nan, nan},
                               .interval_90_s = {nan, nan},
                               .scale = evidence_scale(facts_number(facts, "gpus"))};
    copy_fact(facts, "id", row->id, sizeof row->id);
    copy_fact(facts, "prefix", row->source, sizeof row->source);
    copy_fact(facts, "gpu", row->gpu, sizeof row->gpu);
    copy_fact(facts, "model", row->model, sizeof row->model);
    copy_fact(facts, "stack", row->stack, sizeof row->stack);
    copy_fact(facts, "release", row->release, sizeof row->release);
    copy_fact(facts, "site", row->site, sizeof row->site);
    copy_fact(facts, "fabric", row->fabric, sizeof row->fabric);
    copy_fact(facts, "kind", row->kind, sizeof row->kind);
    text_format(row->family, sizeof row->family, "%s/%s", facts_text(facts, "family"), row->kind);
    row->measured_s = measured_step_s(facts);
    row->measured_mem_bytes = facts_number(facts, "mem_gb") * 1073741824.0;
    copy_fact(facts, "memory_view", row->memory_view, sizeof row->memory_view);
    row->outcome = strcmp(facts_text(facts, "outcome"), "oom") == 0 ? TY_RUN_OUT_OF_MEMORY
                   : facts_cell(facts, "recompute")                 ? TY_RUN_RAN
                                                                    : TY_RUN_RAN_OPEN;
    row->noisy_source = *facts_text(facts, "noisy_source") != '\0';
    row->noisy = row->noisy_source || *facts_text(facts, "flags") ||
                 strcmp(facts_text(facts, "check"), "off") == 0 ||
                 strcmp(facts_text(facts, "config_grade"), "C") == 0;
    name_sweep(facts, row);
}

/* The columns that rules fill, in the order in which they are told. */
static void list_assumed(const struct facts *facts, struct ty_run_row *row)
{
    static const char *const columns[] = {
        "tp",         "pp",    "cp",         "ep",         "seq_len",   "mbs",       "gbs", "heads",
        "ffn_hidden", "vocab", "moe_layers", "expert_ffn", "precision", "recompute", "vpp"};
    const bool moe = facts_number(facts, "experts") > 0.0;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        const char *name = columns[i];
        const bool experts = strcmp(name, "ep") == 0 || strncmp(name, "moe", 3) == 0 ||
                             strncmp(name, "expert", 6) == 0;
        const bool stages = strcmp(name, "vpp") == 0;
        if ((experts && !moe) || (stages && !(facts_number(facts, "pp") > 1.0)))
            continue;
        if (!facts_cell(facts, name) && *facts_text(facts, name))
            run_assume(row, "%s", name);
    }
}

/* Cells without which there is nothing to predict. */
static void refuse_incomplete(const struct facts *facts, struct ty_run_row *row)
{
    static const char *const needed[] = {"layers", "hidden", "gpus", "tp", "pp", "seq_len", "gbs"};
    const size_t n_shape = 2;
    for (size_t i = builtin_model(facts) ? n_shape : 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!(facts_number(facts, needed[i]) > 0.0))
            text_append(row->refused, sizeof row->refused, "%s%s", *row->refused ? ", " : "no ",
                        needed[i]);
    if (!*row->refused && !*facts_text(facts, "cluster"))
        text_format(row->refused, sizeof row->refused, "GPU \"%s\" is not known", row->gpu);
}

/* Sizes with which the arithmetic below stays in its range; the predictor has its own limits. */
static void refuse_sizes(const struct facts *facts, struct ty_run_row *row)
{
    static const struct {
        const char *names[10];
        double max;
    } limits[] = {
        {{"layers", "pp", "vpp", "moe_layers"}, TY_MAX_LAYERS},
        {{"tp", "cp", "ep", "etp", "heads", "kv_heads", "head_dim", "experts", "topk"}, 65536},
        {{"gpus", "gpus_per_node", "hidden", "mbs", "lora_rank"}, 1048576},
        {{"vocab", "ffn_hidden", "expert_ffn", "shared_expert_ffn"}, 16777216},
        {{"gbs", "seq_len"}, 1073741824},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        for (const char *const *name = limits[i].names; *name; name++)
            if (facts_number(facts, *name) > limits[i].max && !*row->refused)
                text_format(row->refused, sizeof row->refused, "%s %s: above %.0f", *name,
                            facts_text(facts, *name), limits[i].max);
}

/* Stack and site of the row; its release where that is known to matter. */
static ty_status read_profile(const char *name, struct ty_run *run, struct ty_error *error)
{
    const struct ty_run_row *row = &run->row;
    char stack[sizeof row->stack + sizeof row->release];
    text_format(stack, sizeof stack, "%s@%s", row->stack, row->release);
    if (!builtin_find("stacks", stack))
        text_format(stack, sizeof stack, "%s", row->stack);
    ty_status status = ty_profile_load(name, stack, &run->cluster, &run->profile, error);
    if (status == TY_OK && !name && builtin_find("sites", row->site))
        status = ty_site_load(row->site, &run->cluster, &run->profile, error);
    return status;
}

ty_status run_from_row(const struct run_table *table, uint64_t index, struct ty_run *out,
                       struct ty_error *error)
{
    struct facts facts;
    match_row(&table->match, &table->csv, index, &facts);
    read_names(&facts, &out->row);
    refuse_incomplete(&facts, &out->row);
    refuse_sizes(&facts, &out->row);
    if (*out->row.refused)
        return TY_OK;
    list_assumed(&facts, &out->row);
    ty_status status = read_model(&facts, &out->model, error);
    if (status == TY_OK)
        status = read_cluster(&facts, &out->cluster, error);
    if (status == TY_OK)
        status = read_profile(table->profile, out, error);
    if (status == TY_OK)
        status = read_plan(&facts, out, error);
    if (status != TY_OK)
        return status;
    run_mend(out);
    if (strcmp(facts_text(&facts, "recompute"), "where needed") == 0)
        run_recompute_where_needed(out);
    return TY_OK;
}
