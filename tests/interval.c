/* SPDX-License-Identifier: MIT
 * Intervals of a prediction: T exp(-+h) with the half width of the model's class. */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

#include <math.h>

static struct ty_error error;

static void check(const char *name, uint32_t lora_rank, int packed, double half_80,
                  const char *what)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
    struct ty_prediction answer;
    ty_predictor *predictor;
    const struct ty_options options = {.measured = true};
    ok(ty_model_load(name, &model, &error) == TY_OK &&
           ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK &&
           ty_profile_load(NULL, NULL, &cluster, &profile, &error) == TY_OK,
       "inputs of %s %s %s", what, error.where, error.text);
    model.lora_rank = lora_rank;
    profile.dense_half_80 = 0.1;
    profile.moe_half_80 = 0.3;
    profile.tuning_half_80 = 0.2;
    profile.dense_half_90 = profile.moe_half_90 = profile.tuning_half_90 = 0.5;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 8;
    plan.gbs = 8;
    plan.seq = 2048;
    plan.packed = packed;
    bool predicted =
        ty_predictor_create(&model, &cluster, &profile, NULL, &predictor, &error) == TY_OK;
    predicted = predicted && ty_predictor_run(predictor, &plan, &options, &answer, &error) == TY_OK;
    ok(predicted, "%s predicted %s %s", what, error.where, error.text);
    if (!predicted)
        return;
    near(answer.interval_80[0], answer.step_time_s * exp(-half_80), 1e-12, what);
    near(answer.interval_80[1], answer.step_time_s * exp(half_80), 1e-12, what);
    near(answer.interval_90[1], answer.step_time_s * exp(0.5), 1e-12, what);
    ty_predictor_destroy(predictor);
}

int main(void)
{
    check("llama3-8b", 0, TY_OFF, 0.1, "dense");
    check("deepseek-v2-lite", 0, TY_OFF, 0.3, "experts");
    check("llama3-8b", 16, TY_OFF, 0.2, "adapters");
    check("llama3-8b", 0, TY_ON, 0.2, "packed fine-tuning");
    return tap_done();
}
