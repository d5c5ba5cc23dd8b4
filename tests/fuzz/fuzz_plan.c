/* SPDX-License-Identifier: MIT
 * Any plan of any of some shapes of models: refused by a rule, or its memory, bound and step hold
 * what they promise. A number of the plan is two bytes of the input. */
#include "include/trainyard.h"
#include "tests/fixtures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    const uint8_t *data;
    size_t bytes;
};

/* 0 .. n - 1; 0 when the input has ended. */
static uint32_t take(struct input *in, uint32_t n)
{
    if (in->bytes < 2)
        return 0;
    const uint32_t value = in->data[0] | (uint32_t)in->data[1] << 8;
    in->data += 2;
    in->bytes -= 2;
    return value % n;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void draw_model(struct input *in, struct ty_model *model)
{
    switch (take(in, 4)) {
    case 0:
        fixture_gpt(model, 1024, 16, 16, 50304, 1024);
        break;
    case 1:
        fixture_mixtral(model);
        break;
    case 2:
        fixture_deepseek_v3(model);
        break;
    default:
        fixture_llama3_8b(model);
    }
    model->n_layers = 1 + take(in, 128);
    model->n_mtp = take(in, 5);
    model->tied = take(in, 2);
    model->lora_rank = take(in, 8) ? 0 : 16;
    model->kinds[0].window_tokens = take(in, 4) ? 0 : 512;
}

/* Every field of the table within its range, most of them left open. */
static void draw_fields(struct input *in, struct ty_plan *plan)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++) {
        char *at = (char *)plan + fields[i].offset;
        uint32_t n_names = 0;
        while (fields[i].names && fields[i].names[n_names])
            n_names++;
        if (fields[i].type == TY_FIELD_ENUM && take(in, 3) == 0)
            *(int *)at = (int)take(in, n_names);
        else if (fields[i].type == TY_FIELD_FLAGS && take(in, 3) == 0)
            *(uint32_t *)at = take(in, 1u << n_names);
    }
}

static void draw_plan(struct input *in, struct ty_plan *plan)
{
    ty_init(TY_KIND_PLAN, plan);
    draw_fields(in, plan);
    plan->tp = 1u << take(in, 4);
    plan->pp = 1 + take(in, 24);
    plan->vpp = take(in, 40);
    plan->cp = 1u << take(in, 3);
    plan->ep = 1u << take(in, 6);
    plan->etp = 1u << take(in, 3);
    plan->mbs = 1 + take(in, 4);
    plan->seq = 256u << take(in, 5);
    plan->n_gpus = plan->tp * plan->pp * plan->cp * (1 + take(in, 64));
    plan->gbs = plan->mbs * (1 + take(in, 1024));
    plan->shard_group = take(in, 17);
    plan->recompute_layers = take(in, 9);
    plan->offload_layers = take(in, 5);
    plan->pp_group = take(in, 9);
    plan->moe_imbalance = take(in, 2) ? (double)NAN : 1.0 + take(in, 64) / 16.0;
}

static void check(const struct ty_prediction *p)
{
    double sum_s = 0.0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        for (int part = 0; part < TY_N_MEM; part++)
            require(isfinite(p->stages[i].bytes[part]) && p->stages[i].bytes[part] >= 0.0);
    require(p->feasible ? p->n_violations == 0 : p->n_violations > 0);
    if (!isfinite(p->step_time_s))
        return;
    for (int part = 0; part < TY_N_PARTS; part++)
        sum_s += p->breakdown_s[part];
    require(p->step_time_s > 0.0 && p->bound_s <= p->step_time_s * (1.0 + 1e-9));
    require(fabs(sum_s / p->step_time_s - 1.0) < 1e-6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input in = {data, bytes};
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
    ty_predictor *predictor;
    struct ty_prediction answer;
    struct ty_error error = {0};
    draw_model(&in, &model);
    fixture_dgx_h100(&cluster);
    cluster.gpus_per_node = 1u << take(&in, 5);
    ty_init(TY_KIND_PROFILE, &profile);
    draw_plan(&in, &plan);
    /* Near a multiple of the chunks: most layouts are refused for not dividing. */
    const uint32_t n_chunks = plan.pp * (plan.vpp ? plan.vpp : 1);
    const uint32_t n_layers = n_chunks * (1 + take(&in, 3)), less = take(&in, 8);
    if (n_layers > less && n_layers - less <= TY_MAX_LAYERS)
        model.n_layers = n_layers - less;
    if (ty_predictor_create(&model, &cluster, &profile, NULL, &predictor, &error) != TY_OK) {
        require(error.where[0] && error.text[0]);
        return 0;
    }
    /* Known to run: memory does not stop what is computed. */
    const struct ty_options options = {.measured = take(&in, 2), .max_events = 300000};
    const ty_status status = ty_predictor_run(predictor, &plan, &options, &answer, &error);
    require(status == TY_OK || (status == TY_ERR_LIMIT && error.text[0]));
    if (status == TY_OK)
        check(&answer);
    ty_predictor_destroy(predictor);
    return 0;
}
