/* SPDX-License-Identifier: MIT
 *
 * The passes of a layer and of the ends of a model, assembled from layer_attention.c, layer_mlp.c
 * and layer_ends.c: forward; backward = recompute, then dgrad and wgrad in reverse order. */
#include "models/layer_parts.h"
#include "models/memory_layer.h"

static void build_init(struct build *build, const struct setting *setting,
                       const struct ty_plan *plan, struct item_list *list)
{
    const double tp = plan->tp;
    *build = (struct build){.setting = setting,
                            .plan = plan,
                            .list = list,
                            .sp = plan->sp == TY_ON && plan->tp > 1,
                            .tp = tp,
                            .tok = (double)plan->seq * plan->mbs / plan->cp,
                            .hidden = setting->model.hidden,
                            .w_bytes = precision_bytes(wide_precision(plan->precision)),
                            .tp_exposed = 1.0,
                            .linear_share = 1.0};
    build->norm_tok = build->sp ? build->tok / tp : build->tok;
    if (plan->overlap & TY_OVERLAP_TP)
        build->tp_exposed = setting->profile.tp_overlap_exposed;
    grid_shape(setting, plan, AXIS_TP, &build->tp_shape);
    grid_shape(setting, plan, AXIS_CP, &build->cp_shape);
    grid_shape(setting, plan, AXIS_EP, &build->ep_shape);
    grid_shape(setting, plan, AXIS_ETP, &build->etp_shape);
    list->n = list->n_launches = 0;
}

void whole_layer_forward(struct build *build)
{
    attention_forward(build);
    if (build->kind->mlp == TY_MLP_DENSE)
        mlp_forward(build);
    if (build->kind->mlp == TY_MLP_MOE)
        moe_forward(build);
}

/* Operator-level recompute keeps every second GEMM output, the attention output and what
 * collectives delivered, and runs the rest again. source: torchtitan's "op" policy. */
static void recompute_operators(struct build *build)
{
    const struct build whole = *build;
    build->linear_share = 0.5;
    build->skip_core = true;
    build->tp_shape.size = build->cp_shape.size = build->ep_shape.size = build->etp_shape.size = 1;
    whole_layer_forward(build);
    *build = whole;
}

/* Selective recompute runs the chosen modules again, in forward order. */
static void recompute_modules(struct build *build, uint32_t modules)
{
    if (modules & TY_MODULE_NORM)
        build_norms_forward(build, attention_n_norms(build->kind) + mlp_n_norms(build->kind));
    if (modules & TY_MODULE_MLA_UP_PROJ)
        attention_up_forward(build);
    if (modules & TY_MODULE_CORE_ATTN)
        attention_core_forward(build);
    if (modules & TY_MODULE_MLP)
        mlp_body_forward(build);
    if ((modules & TY_MODULE_MOE) && build->kind->mlp == TY_MLP_MOE) {
        moe_body_forward(build);
        return;
    }
    if (modules & TY_MODULE_SHARED_EXPERTS)
        moe_shared_forward(build);
    if (modules & TY_MODULE_MOE_ACT)
        moe_activation_forward(build);
}

static void recompute_selected(struct build *build)
{
    const uint32_t modules = build->plan->recompute_modules;
    if (modules == TY_MODULE_CORE_ATTN && build->kind->attention == TY_ATTENTION_HEADS &&
        stack_habits(build->setting->profile.stack)->op_recompute)
        recompute_operators(build);
    else
        recompute_modules(build, modules);
}

void whole_layer_backward(struct build *build)
{
    build->recompute = build->dgrad;
    if (build->dgrad && build->plan->recompute == TY_RECOMPUTE_FULL)
        whole_layer_forward(build);
    if (build->dgrad && build->plan->recompute == TY_RECOMPUTE_SELECTIVE)
        recompute_selected(build);
    build->recompute = false;
    if (build->kind->mlp == TY_MLP_MOE)
        moe_backward(build);
    if (build->kind->mlp == TY_MLP_DENSE)
        mlp_backward(build);
    attention_backward(build);
}

void layer_items(const struct setting *setting, const struct ty_plan *plan, enum layer_what what,
                 uint32_t kind, enum layer_phase phase, struct item_list *out)
{
    static void (*const forward[])(struct build *) = {
        [WHAT_LAYER] = whole_layer_forward, [WHAT_EMBEDDING] = embedding_forward,
        [WHAT_HEAD] = head_forward,         [WHAT_MTP] = mtp_modules_forward,
        [WHAT_LOSS] = loss_forward,
    };
    static void (*const backward[])(struct build *) = {
        [WHAT_LAYER] = whole_layer_backward, [WHAT_EMBEDDING] = embedding_backward,
        [WHAT_HEAD] = head_backward,         [WHAT_MTP] = mtp_modules_backward,
        [WHAT_LOSS] = loss_backward,
    };
    struct build build;
    build_init(&build, setting, plan, out);
    build.kind = &setting->model.kinds[kind];
    build.dgrad = phase == PHASE_BACKWARD || phase == PHASE_DGRAD;
    build.wgrad = phase == PHASE_BACKWARD || phase == PHASE_WGRAD;
    if (phase == PHASE_FORWARD)
        forward[what](&build);
    else
        backward[what](&build);
}

double items_flop(const struct item_list *items, bool model)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < items->n; i++) {
        if (items->item[i].is_collective)
            continue;
        sum += model ? items->item[i].kernel.flop_model : items->item[i].kernel.flop_hw;
    }
    return sum;
}
