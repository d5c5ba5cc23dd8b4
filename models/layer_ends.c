/* SPDX-License-Identifier: MIT
 *
 * The ends of a model: embedding with its vocabulary-parallel reduce; final norm, LM head, loss;
 * and the multi-token-prediction modules, each a join of two hidden states (2h x h), one layer of
 * the last kind and a head of its own on the last stage. Source: handbook 1.7; ACCURACY 1.6. */
#include "models/layer_parts.h"

/* Passes of the look-up (read a row, write it) and of its scatter-add into gradients; source: the
 * six of ACCURACY's reference program. */
static const double LOOKUP_PASSES = 2.0, SCATTER_PASSES = 4.0;
/* Loss per logit and direction: bytes of the logits themselves, and of the passes that fusion
 * removes; source: ACCURACY 1.6, (8 + 4 kmem) for both directions. */
static const double LOSS_BYTES = 4.0, LOSS_PASSES_BYTES = 2.0;
/* Vocabulary-parallel loss: maximum, sum of exponentials, target logit, fp32; handbook 1.7. */
enum { LOSS_REDUCES = 3 };
static const double LOSS_REDUCE_BYTES = 4.0;

static void raw_bytes(struct build *build, const char *name, double bytes)
{
    struct kernel kernel;
    kernel_bytes(&kernel, name, bytes);
    build_kernel(build, &kernel);
}

/* ---- embedding */

/* Parameters of the look-up; those of a tied one are counted with the head. */
static double table_params(const struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    return model->tied ? 0.0 : build->hidden * model->vocab / build->tp;
}

void embedding_forward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    const struct collective reduce =
        build_tp_collective(build, build->sp ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE);
    build_gathered(build, table_params(build));
    raw_bytes(build, "embedding", LOOKUP_PASSES * build->w_bytes * build->tok * build->hidden);
    build_collective(build, TY_PART_TP, &reduce);
    if (model->learned_positions > 0)
        build_bytes(build, "positions", 3.0 * build->w_bytes * build->norm_tok * build->hidden);
    build_norms_forward(build, model->embedding_norm ? 1.0 : 0.0);
}

void embedding_backward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    const struct collective gather = build_tp_collective(build, COLLECTIVE_ALL_GATHER);
    build_norms_backward(build, model->embedding_norm ? 1.0 : 0.0);
    if (!build->wgrad || model->lora_rank > 0)
        return;
    if (build->sp)
        build_collective(build, TY_PART_TP, &gather);
    raw_bytes(build, "embedding", SCATTER_PASSES * build->w_bytes * build->tok * build->hidden);
    build_reduced(build, table_params(build));
}

/* ---- head and loss */

static struct linear output_layer(const struct build *build)
{
    return (struct linear){.name = "lm_head",
                           .precision = wide_precision(build->plan->precision),
                           .m = build->tok,
                           .n = build->setting->model.vocab / build->tp,
                           .k = build->hidden};
}

static double loss_bytes(const struct build *build)
{
    return build->tok * build->setting->model.vocab / build->tp *
           (LOSS_BYTES + LOSS_PASSES_BYTES * build->setting->profile.elementwise_ratio);
}

static void one_head_forward(struct build *build)
{
    const struct linear linear = output_layer(build);
    const struct collective reduce = {.op = COLLECTIVE_ALL_REDUCE,
                                      .payload_bytes = LOSS_REDUCE_BYTES * build->tok,
                                      .shape = build->tp_shape};
    build_column_forward(build, &linear);
    raw_bytes(build, "loss", loss_bytes(build));
    for (int i = 0; i < LOSS_REDUCES; i++)
        build_collective(build, TY_PART_TP, &reduce);
}

static void one_head_backward(struct build *build)
{
    const struct linear linear = output_layer(build);
    if (build->dgrad)
        raw_bytes(build, "loss", loss_bytes(build));
    build_column_backward(build, &linear, true);
}

/* ---- multi-token prediction */

static const struct ty_layer_kind *last_kind(const struct ty_model *model)
{
    return &model->kinds[model->layer_kind[model->n_layers - 1]];
}

static struct linear join(const struct build *build)
{
    return (struct linear){.name = "mtp_join",
                           .precision = build->plan->precision,
                           .m = build->tok,
                           .n = build->hidden / build->tp,
                           .k = 2.0 * build->hidden,
                           .n_adapters = 1.0};
}

/* Norms of both inputs and of the output. */
static const double MTP_NORMS = 3.0;

static void mtp_forward(struct build *build)
{
    const struct linear linear = join(build);
    embedding_forward(build);
    build_norms_forward(build, MTP_NORMS);
    build_column_forward(build, &linear);
    whole_layer_forward(build);
}

static void mtp_backward(struct build *build)
{
    const struct linear linear = join(build);
    whole_layer_backward(build);
    build_column_backward(build, &linear, true);
    build_norms_backward(build, MTP_NORMS);
    embedding_backward(build);
}

void head_forward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    build->kind = last_kind(model);
    build_norms_forward(build, model->final_norm ? 1.0 : 0.0);
    one_head_forward(build);
    for (uint32_t i = 0; i < model->n_mtp; i++) {
        mtp_forward(build);
        one_head_forward(build);
    }
}

void head_backward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    build->kind = last_kind(model);
    for (uint32_t i = 0; i < model->n_mtp; i++) {
        one_head_backward(build);
        mtp_backward(build);
    }
    one_head_backward(build);
    build_norms_backward(build, model->final_norm ? 1.0 : 0.0);
}

/* ---- the two apart, on stages of their own */

void mtp_modules_forward(struct build *build)
{
    build->kind = last_kind(&build->setting->model);
    for (uint32_t i = 0; i < build->setting->model.n_mtp; i++)
        mtp_forward(build);
}

void mtp_modules_backward(struct build *build)
{
    build->kind = last_kind(&build->setting->model);
    for (uint32_t i = 0; i < build->setting->model.n_mtp; i++)
        mtp_backward(build);
}

void loss_forward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    build_norms_forward(build, model->final_norm ? 1.0 : 0.0);
    for (uint32_t i = 0; i <= model->n_mtp; i++)
        one_head_forward(build);
}

void loss_backward(struct build *build)
{
    const struct ty_model *model = &build->setting->model;
    for (uint32_t i = 0; i <= model->n_mtp; i++)
        one_head_backward(build);
    build_norms_backward(build, model->final_norm ? 1.0 : 0.0);
}
