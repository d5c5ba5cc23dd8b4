/* SPDX-License-Identifier: MIT
 *
 * Parameters of a decoder (handbook 1.1). nu = 1 for RMSNorm, 2 for LayerNorm with bias:
 *
 *   attention  h n d + 2 h g d + n d h                       heads
 *              h q_r + q_r nu + q_r n (d_n + d_r)            MLA query (or h n (d_n + d_r))
 *              + h (kv_r + d_r) + kv_r nu + kv_r n (d_n + d_v) + n d_v h
 *   mlp        c h f, c = 3 gated, 2 plain
 *   moe        E c h f_e + c h f_sh + h E
 *   layer      attention + mlp + n_norms nu h + q/k norms + biases
 *   total      layers + V h (1 tied, 2 untied) + positions h + final norm
 */
#include "models/architecture.h"
#include "models/fields.h"
#include "sim/error.h"

#include <string.h>

/* ---- check ------------------------------------------------------------------------------- */

static ty_status refuse(struct ty_error *error, const char *prefix, const char *field,
                        const char *reason)
{
    char where[64];
    text_format(where, sizeof where, "%s%s", prefix, field);
    return error_set(error, TY_ERR_RANGE, where, "%s", reason);
}

static ty_status check_attention(const struct ty_layer_kind *kind, const char *prefix,
                                 struct ty_error *error)
{
    if (kind->attention == TY_ATTENTION_NONE)
        return TY_OK;
    if (kind->n_heads == 0)
        return refuse(error, prefix, "heads", "must be at least 1");
    if (kind->attention == TY_ATTENTION_MLA) {
        if (kind->kv_lora_rank == 0)
            return refuse(error, prefix, "kv_lora_rank", "must be at least 1 for MLA");
        if (kind->qk_nope_dim == 0)
            return refuse(error, prefix, "qk_nope_dim", "must be at least 1 for MLA");
        if (kind->qk_rope_dim == 0)
            return refuse(error, prefix, "qk_rope_dim", "must be at least 1 for MLA");
        if (kind->v_head_dim == 0)
            return refuse(error, prefix, "v_head_dim", "must be at least 1 for MLA");
        return TY_OK;
    }
    if (kind->head_dim == 0)
        return refuse(error, prefix, "head_dim", "must be at least 1");
    if (kind->n_kv_heads == 0 || kind->n_heads % kind->n_kv_heads != 0)
        return refuse(error, prefix, "kv_heads", "must divide the number of query heads");
    return TY_OK;
}

static ty_status check_mlp(const struct ty_layer_kind *kind, const char *prefix,
                           struct ty_error *error)
{
    if (kind->mlp == TY_MLP_DENSE && kind->ffn == 0)
        return refuse(error, prefix, "ffn", "must be at least 1");
    if (kind->mlp != TY_MLP_MOE)
        return TY_OK;
    if (kind->n_experts == 0)
        return refuse(error, prefix, "experts", "must be at least 1");
    if (kind->expert_ffn == 0)
        return refuse(error, prefix, "expert_ffn", "must be at least 1");
    if (kind->top_k == 0 || kind->top_k > kind->n_experts)
        return refuse(error, prefix, "top_k", "must be 1 .. experts");
    if (kind->n_groups == 0)
        return kind->group_limit == 0
                   ? TY_OK
                   : refuse(error, prefix, "group_limit", "has no meaning without groups");
    if (kind->n_experts % kind->n_groups != 0)
        return refuse(error, prefix, "groups", "must divide the number of experts");
    if (kind->group_limit == 0 || kind->group_limit > kind->n_groups)
        return refuse(error, prefix, "group_limit", "must be 1 .. groups");
    if (kind->top_k > (double)kind->group_limit * (kind->n_experts / kind->n_groups))
        return refuse(error, prefix, "group_limit", "leaves fewer experts than top_k");
    return TY_OK;
}

static ty_status check_kind(const struct ty_model *model, uint32_t index, struct ty_error *error)
{
    const struct ty_layer_kind *kind = &model->kinds[index];
    struct ty_error found;
    char prefix[24];
    size_t n;
    text_format(prefix, sizeof prefix, "kinds[%u].", index);
    const struct ty_field *fields = ty_layer_fields(&n);
    if (fields_check_table(fields, n, kind, &found) != TY_OK)
        return refuse(error, prefix, found.where, found.text);
    const ty_status status = check_attention(kind, prefix, error);
    return status == TY_OK ? check_mlp(kind, prefix, error) : status;
}

ty_status ty_model_check(const struct ty_model *model, struct ty_error *error)
{
    ty_status status = fields_check(TY_KIND_MODEL, model, error);
    if (status != TY_OK)
        return status;
    if (model->hidden == 0)
        return refuse(error, "", "hidden", "must be at least 1");
    if (model->vocab == 0)
        return refuse(error, "", "vocab", "must be at least 1");
    if (model->n_layers == 0)
        return refuse(error, "", "layers", "must be at least 1");
    if (model->n_kinds == 0 || model->n_kinds > TY_MAX_KINDS)
        return error_set(error, TY_ERR_RANGE, "kinds", "%u is outside 1 .. %d", model->n_kinds,
                         TY_MAX_KINDS);
    for (uint32_t i = 0; i < model->n_kinds && status == TY_OK; i++)
        status = check_kind(model, i, error);
    for (uint32_t i = 0; i < model->n_layers && status == TY_OK; i++)
        if (model->layer_kind[i] >= model->n_kinds)
            status =
                error_set(error, TY_ERR_RANGE, "layer_kinds", "layer %u is of kind %u of only %u",
                          i, model->layer_kind[i], model->n_kinds);
    return status;
}

/* ---- parameters -------------------------------------------------------------------------- */

double norm_vectors(const struct ty_model *model)
{
    return model->norm == TY_NORM_LAYER ? 2.0 : 1.0;
}

static double mla_matrix(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    const double h = model->hidden, nu = norm_vectors(model), n = kind->n_heads;
    const double q_r = kind->q_lora_rank, kv_r = kind->kv_lora_rank;
    const double d_n = kind->qk_nope_dim, d_r = kind->qk_rope_dim, d_v = kind->v_head_dim;
    const double q = q_r > 0.0 ? h * q_r + q_r * nu + q_r * n * (d_n + d_r) : h * n * (d_n + d_r);
    const double kv = h * (kv_r + d_r) + kv_r * nu + kv_r * n * (d_n + d_v);
    return q + kv + n * d_v * h;
}

double attention_matrix(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    const double h = model->hidden, d = kind->head_dim;
    if (kind->attention == TY_ATTENTION_NONE)
        return 0.0;
    if (kind->attention == TY_ATTENTION_MLA)
        return mla_matrix(model, kind);
    return 2.0 * h * kind->n_heads * d + 2.0 * h * kind->n_kv_heads * d;
}

double mlp_matrix(const struct ty_model *model, const struct ty_layer_kind *kind, uint32_t ffn)
{
    return (kind->gated ? 3.0 : 2.0) * model->hidden * ffn;
}

/* MLA biases sit on the down projections and the output (transformers' attention_bias). */
static double attention_bias(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    if (kind->attention == TY_ATTENTION_NONE)
        return 0.0;
    double qkv = ((double)kind->n_heads + 2.0 * kind->n_kv_heads) * kind->head_dim;
    if (kind->attention == TY_ATTENTION_MLA)
        qkv = (double)kind->q_lora_rank + kind->kv_lora_rank + kind->qk_rope_dim;
    return (kind->qkv_bias ? qkv : 0.0) + (kind->out_bias ? model->hidden : 0.0);
}

static double mlp_bias(const struct ty_model *model, const struct ty_layer_kind *kind, uint32_t ffn)
{
    return (kind->gated ? 2.0 : 1.0) * ffn + model->hidden;
}

static double expert_params(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    return mlp_matrix(model, kind, kind->expert_ffn) +
           (kind->expert_bias ? mlp_bias(model, kind, kind->expert_ffn) : 0.0);
}

static double mlp_params(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    const double h = model->hidden, experts = kind->n_experts;
    if (kind->mlp == TY_MLP_NONE)
        return 0.0;
    if (kind->mlp == TY_MLP_DENSE)
        return mlp_matrix(model, kind, kind->ffn) +
               (kind->mlp_bias ? mlp_bias(model, kind, kind->ffn) : 0.0);
    return experts * expert_params(model, kind) + mlp_matrix(model, kind, kind->shared_ffn) +
           h * experts + (kind->router_bias ? experts : 0.0) + (kind->shared_gate ? h : 0.0);
}

/* Norms of the layer and of queries and keys, attention sinks. */
static double vector_params(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    const double nu = norm_vectors(model);
    double sum = kind->n_norms * nu * model->hidden;
    if (kind->attention != TY_ATTENTION_HEADS)
        return sum;
    if (kind->qk_norm == TY_QK_NORM_PER_HEAD)
        sum += nu * 2.0 * kind->head_dim;
    if (kind->qk_norm == TY_QK_NORM_FULL)
        sum += nu * ((double)kind->n_heads + kind->n_kv_heads) * kind->head_dim;
    return sum + (kind->attention_sinks ? kind->n_heads : 0.0);
}

/* ---- LoRA: a pair of matrices r (in + out) beside each linear; q, k, v as one, gate and up as
 * one, as Megatron fuses them. The router stays as it is. */

static double attention_adapter_width(const struct ty_model *model,
                                      const struct ty_layer_kind *kind)
{
    const double h = model->hidden, n = kind->n_heads, d = kind->head_dim;
    const double q_r = kind->q_lora_rank, kv_r = kind->kv_lora_rank;
    const double d_n = kind->qk_nope_dim, d_r = kind->qk_rope_dim, d_v = kind->v_head_dim;
    if (kind->attention == TY_ATTENTION_NONE)
        return 0.0;
    if (kind->attention == TY_ATTENTION_HEADS)
        return (h + (n + 2.0 * kind->n_kv_heads) * d) + (n * d + h);
    const double q = q_r > 0.0 ? (h + q_r) + (q_r + n * (d_n + d_r)) : h + n * (d_n + d_r);
    return q + (h + kv_r + d_r) + (kv_r + n * (d_n + d_v)) + (n * d_v + h);
}

static double mlp_adapter_width(const struct ty_model *model, const struct ty_layer_kind *kind,
                                uint32_t ffn)
{
    return (model->hidden + (kind->gated ? 2.0 : 1.0) * ffn) + ((double)ffn + model->hidden);
}

static double adapter_params(const struct ty_model *model, const struct ty_layer_kind *kind)
{
    double width = attention_adapter_width(model, kind);
    if (kind->mlp == TY_MLP_DENSE)
        width += mlp_adapter_width(model, kind, kind->ffn);
    if (kind->mlp == TY_MLP_MOE)
        width += kind->n_experts * mlp_adapter_width(model, kind, kind->expert_ffn);
    if (kind->mlp == TY_MLP_MOE && kind->shared_ffn > 0)
        width += mlp_adapter_width(model, kind, kind->shared_ffn);
    return model->lora_rank * width;
}

/* A module joins two hidden states (2h x h), norms both and its output, and runs one layer of
 * the last kind (handbook 1.7). */
static double mtp_params(const struct ty_model *model, const struct ty_params *params)
{
    const double h = model->hidden;
    const double layer = params->layer[model->layer_kind[model->n_layers - 1]];
    return model->n_mtp * (layer + 2.0 * h * h + 3.0 * norm_vectors(model) * h);
}

void ty_model_params(const struct ty_model *model, struct ty_params *out)
{
    const double h = model->hidden, v = model->vocab, nu = norm_vectors(model);
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < model->n_kinds; i++) {
        const struct ty_layer_kind *kind = &model->kinds[i];
        out->attention[i] = attention_matrix(model, kind) + attention_bias(model, kind);
        out->mlp[i] = mlp_params(model, kind);
        out->expert[i] = kind->mlp == TY_MLP_MOE ? expert_params(model, kind) : 0.0;
        out->layer[i] = out->attention[i] + out->mlp[i] + vector_params(model, kind);
        out->adapter[i] = adapter_params(model, kind);
    }
    out->embedding = (v + model->learned_positions) * h;
    out->head = (model->tied ? 0.0 : v * h) + (model->head_bias ? v : 0.0);
    out->total = out->embedding + out->head;
    out->total += ((model->embedding_norm ? 1.0 : 0.0) + (model->final_norm ? 1.0 : 0.0)) * nu * h;
    double unused = 0.0;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const uint32_t index = model->layer_kind[i];
        const struct ty_layer_kind *kind = &model->kinds[index];
        out->total += out->layer[index];
        if (kind->mlp == TY_MLP_MOE)
            unused += (kind->n_experts - kind->top_k) * out->expert[index];
    }
    out->active = out->total - unused;
    out->mtp = mtp_params(model, out);
}
