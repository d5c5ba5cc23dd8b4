/* SPDX-License-Identifier: MIT
 *
 * One layer on one rank (handbook 3.2). With x = seq mbs / cp tokens, t = tp (tt = t with sequence
 * parallel, else 1), w bytes of an activation, q of a GEMM input, a/b = query and K/V heads of the
 * rank, d head size, F inner size over t, G = 2 gated or 1:
 *
 *   kept = x [ n_norms w h/tt + 2 q h/tt  norm inputs; inputs of QKV and fc1
 *            + w (a + 2b) d + q a d + 4a  Q, K, V; input of the projection; flash row sums
 *            + w G F + q F ]              gate and up; input of fc2
 *
 * Unfused attention keeps w a s per token (softmax output) instead of the row sums, and with
 * dropout (GPT models: LayerNorm, no gate) 3 a s more and 2h/tt of masks: Korthikanti's
 * 34 + 5 n s/h (arXiv 2205.05198). Routed experts: rows = x k etp / t of them, times imbalance.
 */
#include "models/memory_layer.h"

#include <math.h>
#include <string.h>

double amount_bytes(struct amount amount, double imbalance)
{
    return amount.fixed + amount.routed * imbalance;
}

double memory_imbalance(const struct ty_plan *plan)
{
    return plan->ep > 1 ? plan->moe_imbalance : 1.0;
}

bool memory_fp8_lora(const struct setting *setting, const struct ty_plan *plan,
                     const struct stack_habits *habits)
{
    return habits->fp8_lora && setting->model.lora_rank > 0 &&
           precision_bytes((enum ty_precision)plan->precision) < 2.0;
}

double memory_vocab_rows(const struct setting *setting, const struct ty_plan *plan)
{
    return 128.0 * ceil(setting->model.vocab / (128.0 * plan->tp));
}

/* source: ACCURACY 4 and ACCURACY-2 2.12. DeepSpeed: its PipelineEngine keeps every output tensor
 * that backward starts from. fp8_lora: mlcommons/training_results_v4.0, NVIDIA llama2_70b_lora
 * (fp8_params, fp8_activation_input_store, FP8_DPA, target_modules attention). gathers_cast:
 * Transformer Engine, gather_along_first_dim quantises before it gathers. */
static const struct stack_habits known[] = {
    {"megatron-core", .dummy_wgrads = true, .gathers_cast = true},
    {"mlperf", .dummy_wgrads = true, .gathers_cast = true, .fp8_lora = true},
    {"rocm", .dummy_wgrads = true, .fp8_lora = true},
    {"megatron-lm-2021", .adds_gradients = true},
    {"megatron-deepspeed", .two_gradients = true, .outputs_stay = true, .adds_gradients = true},
    {"torchtitan", .master_is_weight = true, .sdpa = true, .op_recompute = true,
     .frees_gradients = true, .loss_stays = true, .adds_gradients = true, .copied_shards = true,
     .fp8_gather = true},
    {"fsdp", .master_is_weight = true, .frees_gradients = true, .adds_gradients = true,
     .flat_shards = true},
    {"ddp", .sdpa = true, .frees_gradients = true, .loss_stays = true, .adds_gradients = true},
    {"jax", .master_is_weight = true},
};

const struct stack_habits *stack_habits(const char *stack)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(stack, known[i].stack) == 0)
            return &known[i];
    return &known[0];
}

/* ---- sizes ---------------------------------------------------------------------------------- */

struct sizes {
    double h, tokens, tp, shards, etp, ep; /* shards: ranks a norm's tokens are split over (tt) */
    double heads, kv_heads;                /* of this rank */
    double gate;                           /* G */
    double w, q;                           /* bytes of an activation and of a GEMM input */
    double rows;                           /* tokens routed to this rank's experts, balanced */
    bool dropout;
    bool sdpa;
    bool fp8_lora; /* Q, K, V and the activation's input in q; inputs of frozen matrices not kept */
};

static struct sizes sizes_of(const struct setting *setting, const struct ty_plan *plan,
                             const struct stack_habits *habits, const struct ty_layer_kind *kind)
{
    const bool wide = precision_is_32_bit(plan->precision);
    const double heads = (double)kind->n_heads / plan->tp;
    const double kv_heads = (double)kind->n_kv_heads / plan->tp;
    struct sizes s = {.h = setting->model.hidden,
                      .tokens = (double)plan->seq * plan->mbs / plan->cp,
                      .tp = plan->tp,
                      .shards = plan->sp == TY_ON ? plan->tp : 1.0,
                      .etp = plan->etp,
                      .ep = plan->ep,
                      .heads = heads,
                      .kv_heads = kv_heads < 1.0 ? 1.0 : kv_heads,
                      .gate = kind->gated ? 2.0 : 1.0,
                      .w = wide ? 4.0 : 2.0,
                      .q = precision_bytes((enum ty_precision)plan->precision)};
    s.rows = s.tokens * kind->top_k * s.etp / s.tp;
    s.dropout = plan->attention == TY_KERNEL_UNFUSED && !kind->gated &&
                setting->model.norm == TY_NORM_LAYER;
    s.sdpa = habits->sdpa && plan->attention == TY_KERNEL_FLASH;
    s.fp8_lora = memory_fp8_lora(setting, plan, habits);
    return s;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Row-parallel biases, norms, the router and MLA's down projections are on every tp rank. */
static double heads_params(const struct ty_layer_kind *kind, const struct sizes *s, double norm,
                           double *matrix)
{
    const double d = kind->head_dim;
    const double qkv = (s->heads + 2.0 * s->kv_heads) * d;
    *matrix = s->h * qkv + s->heads * d * s->h;
    double rest = (kind->qkv_bias ? qkv : 0.0) + (kind->out_bias ? s->h : 0.0) +
                  (kind->attention_sinks ? s->heads : 0.0);
    if (kind->qk_norm == TY_QK_NORM_PER_HEAD)
        rest += 2.0 * d * norm;
    else if (kind->qk_norm == TY_QK_NORM_FULL)
        rest += (s->heads + s->kv_heads) * d * norm;
    return *matrix + rest;
}

static double mla_params(const struct ty_layer_kind *kind, const struct sizes *s, double norm,
                         double *matrix)
{
    const double q_r = kind->q_lora_rank, kv_r = kind->kv_lora_rank, n = s->heads;
    const double query = (double)kind->qk_nope_dim + kind->qk_rope_dim;
    *matrix = (q_r > 0.0 ? s->h * q_r + q_r * n * query : s->h * n * query) +
              s->h * (kv_r + kind->qk_rope_dim) +
              kv_r * n * (double)(kind->qk_nope_dim + kind->v_head_dim) +
              n * kind->v_head_dim * s->h;
    return *matrix + (q_r + kv_r) * norm;
}

static void count_params(const struct setting *setting, const struct ty_plan *plan, uint32_t index,
                         const struct sizes *s, struct layer_memory *out)
{
    const struct ty_layer_kind *kind = &setting->model.kinds[index];
    const double norm = setting->model.norm == TY_NORM_LAYER ? 2.0 : 1.0;
    const double width = s->gate + 1.0; /* matrices of an MLP */
    out->dense = kind->n_norms * s->h * norm;
    if (kind->attention == TY_ATTENTION_HEADS)
        out->dense += heads_params(kind, s, norm, &out->attention_matrix);
    else if (kind->attention == TY_ATTENTION_MLA)
        out->dense += mla_params(kind, s, norm, &out->attention_matrix);
    out->adapter = setting->model.lora_rank
                       ? setting->params.adapter[index] / (kind->n_experts ? plan->ep : plan->tp)
                       : 0.0;
    if (kind->mlp == TY_MLP_DENSE) {
        const double ffn = kind->ffn / s->tp;
        out->mlp_matrix = width * s->h * ffn;
        out->dense += out->mlp_matrix + (kind->mlp_bias ? s->gate * ffn + s->h : 0.0);
    } else if (kind->mlp == TY_MLP_MOE) {
        const double ffn = kind->expert_ffn / s->etp, n_local = kind->n_experts / s->ep;
        out->shared_matrix = width * s->h * kind->shared_ffn / s->tp;
        out->expert_matrix = width * s->h * ffn;
        out->dense += out->shared_matrix + s->h * kind->n_experts +
                      (kind->router_bias ? kind->n_experts : 0.0) +
                      (kind->shared_gate ? s->h : 0.0);
        out->expert =
            n_local * (out->expert_matrix + (kind->expert_bias ? s->gate * ffn + s->h : 0.0));
    }
}

/* ---- activations ------------------------------------------------------------------------------
 */

/* Bytes one layer saves, by the module whose recompute would free them; the rest is always kept. */
struct saved {
    double inputs;              /* norm inputs */
    double norm_outputs;        /* inputs of QKV and fc1: freed by TY_MODULE_NORM */
    double attention, up_proj;  /* projections' outputs and inputs; the MLA up projections */
    double core;                /* freed by TY_MODULE_CORE_ATTN */
    double mlp, router, shared; /* fixed parts of the MLP */
    double rows, rows_act;      /* per routed load; activation output freed by TY_MODULE_MOE_ACT */
};

static void save_attention(const struct ty_plan *plan, const struct ty_layer_kind *kind,
                           const struct sizes *s, struct saved *out)
{
    const double x = s->tokens;
    if (kind->attention == TY_ATTENTION_NONE)
        return;
    if (kind->attention == TY_ATTENTION_HEADS) {
        const double d = kind->head_dim;
        const double qkv = s->fp8_lora ? s->q : s->w, out_in = s->fp8_lora ? s->w + s->q : s->q;
        const double kv_heads = s->sdpa ? s->heads : s->kv_heads;
        out->attention = x * (qkv * (s->heads + 2.0 * kv_heads) * d + out_in * s->heads * d);
        if (s->sdpa)
            out->attention += x * s->w * s->heads * d;
        if (kind->qk_norm != TY_QK_NORM_NONE)
            out->attention += x * s->w * (s->heads + s->kv_heads) * d;
    } else {
        const double q_r = kind->q_lora_rank, kv_r = kind->kv_lora_rank;
        const double query = (double)kind->qk_nope_dim + kind->qk_rope_dim;
        out->attention = x / s->shards * ((s->w + s->q) * (q_r + kv_r) + s->w * kind->qk_rope_dim) +
                         x * s->q * s->heads * kind->v_head_dim;
        out->up_proj = x * s->w * s->heads * (2.0 * query + kind->v_head_dim);
    }
    out->core = plan->attention == TY_KERNEL_UNFUSED
                    ? x * s->heads * plan->seq * (s->dropout ? s->w + 1.0 + s->w : s->w)
                    : x * 4.0 * s->heads;
}

static void save_mlp(const struct ty_layer_kind *kind, const struct sizes *s, struct saved *out)
{
    const double x = s->tokens; /* inner: bytes per inner column */
    const double inner = s->fp8_lora ? s->q * s->gate : s->w * s->gate + s->q;
    if (kind->mlp == TY_MLP_DENSE) {
        out->mlp = x * inner * kind->ffn / s->tp;
    } else if (kind->mlp == TY_MLP_MOE) {
        out->shared = x * inner * kind->shared_ffn / s->tp;
        out->router = x / s->shards * 8.0 * kind->n_experts; /* logits and scores, fp32 */
        out->rows = s->rows * (s->q * s->h + s->w * s->gate * kind->expert_ffn / s->etp);
        out->rows_act = s->rows * s->q * kind->expert_ffn / s->etp;
    }
}

static struct saved save_all(const struct ty_plan *plan, const struct ty_layer_kind *kind,
                             const struct sizes *s)
{
    struct saved out = {0};
    const double hidden = s->h * s->tokens / s->shards;
    out.inputs = s->w * kind->n_norms * hidden + (s->dropout ? 2.0 * hidden : 0.0);
    /* one norm: attention and MLP share its output (GPT-J, Falcon) */
    out.norm_outputs = s->fp8_lora ? s->w * hidden /* the adapter of QKV reads it */
                                   : s->q * hidden * (kind->n_norms == 1 ? 1.0 : 2.0);
    save_attention(plan, kind, s, &out);
    save_mlp(kind, s, &out);
    return out;
}

static struct amount total(const struct saved *s)
{
    return (struct amount){s->inputs + s->norm_outputs + s->attention + s->up_proj + s->core +
                               s->mlp + s->router + s->shared,
                           s->rows + s->rows_act};
}

/* Operator-level selective recompute keeps every second GEMM output, the attention output and the
 * layer input. source: ACCURACY-2 2.12, torchtitan */
static struct amount keep_operators(const struct ty_layer_kind *kind, const struct sizes *s,
                                    const struct saved *all)
{
    const double d = kind->head_dim, x = s->tokens, half = s->w / 2.0;
    return (struct amount){x * (half * (s->heads + 2.0 * s->kv_heads) * d + s->w * s->heads * d +
                                2.0 * s->w * s->h / s->shards +
                                half * s->gate * kind->ffn / s->tp) +
                               all->shared / 2.0,
                           all->rows / 2.0};
}

static struct amount keep(const struct ty_plan *plan, const struct ty_layer_kind *kind,
                          const struct sizes *s, const struct stack_habits *habits,
                          struct saved all)
{
    if (plan->recompute == TY_RECOMPUTE_NONE)
        return total(&all);
    if (plan->recompute == TY_RECOMPUTE_FULL)
        return (struct amount){s->w * s->h * s->tokens / s->shards, 0.0};
    const uint32_t modules = plan->recompute_modules;
    if (habits->op_recompute && kind->attention == TY_ATTENTION_HEADS &&
        modules == TY_MODULE_CORE_ATTN)
        return keep_operators(kind, s, &all);
    if (modules & TY_MODULE_CORE_ATTN)
        all.core = 0.0;
    if (modules & TY_MODULE_NORM)
        all.norm_outputs = 0.0;
    if (modules & TY_MODULE_MLA_UP_PROJ)
        all.up_proj = 0.0;
    if (modules & TY_MODULE_MLP)
        all.mlp = 0.0;
    if (modules & TY_MODULE_MOE)
        all.rows = all.rows_act = all.router = all.shared = 0.0;
    if (modules & TY_MODULE_MOE_ACT)
        all.rows_act = 0.0;
    if (modules & TY_MODULE_SHARED_EXPERTS)
        all.shared = 0.0;
    return total(&all);
}

/* Working set of a backward pass beyond what was saved: gradients of the inner tensors and two
 * gathered hidden tensors (handbook 3.2, transients (b)). */
static void work(const struct ty_plan *plan, const struct ty_layer_kind *kind,
                 const struct sizes *s, struct layer_memory *out)
{
    const double x = s->tokens, hidden = 2.0 * s->w * x * s->h;
    const double mlp =
        x * s->w * (s->gate + 1.0) * (kind->mlp == TY_MLP_DENSE ? kind->ffn : 0) / s->tp;
    double attention = 0.0;
    if (kind->attention == TY_ATTENTION_HEADS)
        attention = x * s->w * 2.0 * (s->heads + s->kv_heads) * kind->head_dim;
    else if (kind->attention == TY_ATTENTION_MLA)
        attention = x * s->w * s->heads *
                    (2.0 * ((double)kind->qk_nope_dim + kind->qk_rope_dim + kind->v_head_dim));
    if (plan->attention == TY_KERNEL_UNFUSED)
        attention += x * 2.0 * s->w * s->heads * plan->seq; /* gradients of scores and softmax */
    out->work_dense = hidden + (mlp > attention ? mlp : attention);
    out->work_moe = (struct amount){0.0, 0.0};
    if (kind->mlp == TY_MLP_MOE)
        out->work_moe = (struct amount){
            hidden, s->rows * s->w * ((s->gate + 1.0) * kind->expert_ffn / s->etp + s->h)};
}

void memory_layer(const struct setting *setting, const struct ty_plan *plan,
                  const struct stack_habits *habits, uint32_t index, struct layer_memory *out)
{
    const struct ty_layer_kind *kind = &setting->model.kinds[index];
    const struct sizes s = sizes_of(setting, plan, habits, kind);
    const struct saved all = save_all(plan, kind, &s);
    memset(out, 0, sizeof *out);
    count_params(setting, plan, index, &s, out);
    out->all = total(&all);
    out->kept = keep(plan, kind, &s, habits, all);
    work(plan, kind, &s, out);
}
