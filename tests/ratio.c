/* SPDX-License-Identifier: MIT
 * Ratio of two predictions against its closed form: half of the cases beyond x is exp(-g(x)) with
 * g(h80) = ln 5 and g(h90) = ln 10. */
#include "include/trainyard_ratio.h"
#include "include/trainyard_tools.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

static struct ty_model model, other_model;
static struct ty_cluster cluster, other_gpu;
static struct ty_profile profile, other_stack;
static struct ty_plan plan, packed;

static struct ty_rated rated(double time_s)
{
    return (struct ty_rated){&model, &cluster, &profile, &plan, time_s};
}

static void load(void)
{
    struct ty_error error;
    ok(ty_model_load("llama3-8b", &model, &error) == TY_OK &&
           ty_model_load("deepseek-v2-lite", &other_model, &error) == TY_OK &&
           ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK &&
           ty_cluster_load("dgx-h200", &other_gpu, &error) == TY_OK &&
           ty_profile_load(NULL, "fsdp", &cluster, &profile, &error) == TY_OK,
       "inputs %s", error.text);
    profile.dense_half_80 = 0.3;
    profile.dense_half_90 = 0.4;
    profile.dense_plans_80 = 0.1;
    profile.dense_plans_90 = 0.2;
    profile.dense_gpus_80 = 0.15;
    profile.dense_gpus_90 = 0.25;
    profile.moe_plans_80 = 0.5;
    profile.moe_plans_90 = 0.6;
    profile.tuning_plans_80 = 0.25;
    profile.tuning_plans_90 = 0.35;
    other_stack = profile;
    strcpy(other_stack.stack, "jax");
    ty_init(TY_KIND_PLAN, &plan);
    packed = plan;
    packed.packed = TY_ON;
}

static void test_probability(void)
{
    const double cases[][2] = {
        {0.0, 0.5},  {-0.1, 0.9},   {0.1, 0.1},   {-0.2, 0.95},
        {0.2, 0.05}, {-0.3, 0.975}, {0.3, 0.025}, {-0.05, 1.0 - 0.5 / 2.2360679774997896}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct ty_rated a = rated(2.0 * exp(cases[i][0])), b = rated(2.0);
        struct ty_ratio ab, ba;
        ty_ratio_of(&a, &b, &ab);
        ty_ratio_of(&b, &a, &ba);
        near(ab.p_faster, cases[i][1], 1e-12, "P(a faster)");
        near(ab.p_faster + ba.p_faster, 1.0, 1e-12, "either a or b is faster");
        near(ab.ratio, exp(cases[i][0]), 1e-12, "ratio");
        near(ab.interval_80[0], ab.ratio * exp(-0.1), 1e-12, "80 %, low end");
        near(ab.interval_90[1], ab.ratio * exp(0.2), 1e-12, "90 %, high end");
    }
}

static void test_kinship(void)
{
    struct ty_rated a = rated(1.0), b = rated(1.5);
    struct ty_ratio out;
    ty_ratio_of(&a, &b, &out);
    ok(out.kinship == TY_KIN_PLANS && strcmp(ty_kinship_name(out.kinship), "plans") == 0,
       "two plans of one model on one kind of GPU");
    b.cluster = &other_gpu;
    ty_ratio_of(&a, &b, &out);
    ok(out.kinship == TY_KIN_GPUS, "two kinds of GPU");
    near(out.interval_80[1], out.ratio * exp(0.15), 1e-12, "have their own width");
    b.profile = &other_stack;
    ty_ratio_of(&a, &b, &out);
    ok(out.kinship == TY_KIN_NONE, "two stacks");
    near(out.interval_80[1], out.ratio * exp(0.3 * sqrt(2.0)), 1e-12,
         "share nothing: errors add as squares");
    b = rated(1.5);
    b.model = &other_model;
    ty_ratio_of(&a, &b, &out);
    ok(out.kinship == TY_KIN_NONE, "nor do two models");
    a.model = &other_model;
    ty_ratio_of(&a, &b, &out);
    near(out.interval_80[1], out.ratio * exp(0.5), 1e-12, "experts");
    a = b = rated(1.0);
    a.plan = b.plan = &packed;
    ty_ratio_of(&a, &b, &out);
    near(out.interval_90[1], exp(0.35), 1e-12, "fine-tuning");
}

static void test_unknown(void)
{
    struct ty_profile bare;
    ty_init(TY_KIND_PROFILE, &bare);
    struct ty_rated a = rated(1.0), b = rated(1.5);
    struct ty_ratio out;
    a.profile = b.profile = &bare;
    ty_ratio_of(&a, &b, &out);
    ok(isnan(out.p_faster) && isnan(out.interval_80[0]) && out.ratio == 1.0 / 1.5,
       "nothing known of errors: the ratio alone");
    bare.dense_half_80 = bare.dense_half_90 = 0.0;
    ty_ratio_of(&a, &b, &out);
    ok(out.p_faster == 1.0, "no error at all: certain");
}

int main(void)
{
    load();
    test_probability();
    test_kinship();
    test_unknown();
    return tap_done();
}
