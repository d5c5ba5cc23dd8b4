/* SPDX-License-Identifier: MIT
 * Money, energy, goodput and probabilities. Every figure is worked out by hand in its comment;
 * UT-x.y are the examples of the handbook. */
#include "include/trainyard_cost.h"
#include "include/trainyard_ratio.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <math.h>

static struct ty_cluster cluster;

static struct ty_plan plan_of(uint32_t n_gpus)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = n_gpus;
    plan.gbs = 1000;
    plan.seq = 1000; /* a step is 1e6 tokens */
    return plan;
}

static struct ty_outlay cost(const struct ty_price *price, uint32_t n_gpus, double step_s,
                             double busy_s)
{
    struct ty_outlay out = {0};
    struct ty_error error;
    const struct ty_plan plan = plan_of(n_gpus);
    if (ty_cost(&cluster, price, &plan, step_s, busy_s, &out, &error) != TY_OK)
        ok(false, "%s: %s", error.where, error.text);
    return out;
}

/* UT-10.2: 158.48 tokens/s/GPU at 2 $/GPU-h are 3.506 $/Mtoken, at 700 W 4.417 J/token. */
static void handbook_example(void)
{
    struct ty_price price;
    ty_init(TY_KIND_PRICE, &price);
    price.gpu_hour = 2.0;
    price.busy_ratio = price.wait_ratio = 1.0; /* always at TDP */
    const double step_s = 1e6 / 158.48 / 16384;
    const struct ty_outlay out = cost(&price, 16384, step_s, 0.5 * step_s);
    near(1e6 * out.money_per_token, 3.506, 2e-4, "UT-10.2: 3.506 $ per million tokens");
    near(out.energy_j_per_token, 4.417, 1e-4, "UT-10.2: 4.417 J per token");
    near(1e6 * out.energy_j_per_token / 3.6e6, 1.227, 1e-3, "UT-10.2: 1.227 kWh per million");
    /* 16,384 x 700 W x PUE 1.3 x 54 days = 19.32 GWh */
    price.pue = 1.3;
    near(cost(&price, 16384, 1.0, 0.5).power_w * 54 * 24 / 1e9, 19.32, 1e-3, "UT-10.2: 19.32 GWh");
}

/* 16 GPUs of 700 W, 10 s a step of which 6 s compute: busy 0.95 x 700 = 665 W, waiting 350 W.
 * E = 16 (350 x 10 + 315 x 6) = 16 x 5,390 = 86,240 J; nodes 2 x 1,000 W x 10 s = 20,000 J. */
static void power_by_hand(void)
{
    struct ty_price price;
    ty_init(TY_KIND_PRICE, &price);
    near(cost(NULL, 16, 10.0, 6.0).energy_j, 86240.0, 1e-12, "busy and waiting power");
    ok(isnan(cost(NULL, 16, 10.0, 6.0).money), "no prices, no money");
    price.node_w = 1000.0;
    price.pue = 1.5;
    price.co2_kg_per_kwh = 0.36;
    price.kwh = 0.1;
    price.gpu_hour = 3.6;
    const struct ty_outlay out = cost(&price, 16, 10.0, 6.0);
    near(out.energy_j, 159360.0, 1e-12, "with nodes and PUE 1.5: 159,360 J");
    near(out.power_w, 15936.0, 1e-12, "15,936 W");
    near(out.co2_kg, 159360.0 / 3.6e6 * 0.36, 1e-12, "15.936 g of CO2");
    /* 16 x 3.6 / 3600 x 10 = 0.16; 159,360 / 3.6e6 x 0.1 = 0.0044267 */
    near(out.money, 0.16 + 0.15936 / 36.0, 1e-12, "rent and electricity");
    /* A limit of 500 W caps the busy power: 16 (350 x 10 + 150 x 6) x 1.5 + 30,000 */
    cluster.power_limit_w = 500.0;
    near(cost(&price, 16, 10.0, 6.0).energy_j, 16 * 4400.0 * 1.5 + 30000.0, 1e-12,
         "a power limit of 500 W");
    cluster.power_limit_w = (double)NAN;
}

/* A GPU of 20,000 with an eighth of a node of 16,000 and one NIC of 1,000 with 3 ports of 500 and
 * 4 optics of 250: 20,000 + 2,000 + 3,500 = 25,500; over 5 years at 80 %: / 35,064 h. */
static void capital_by_hand(void)
{
    struct ty_price price;
    struct ty_error error;
    ty_init(TY_KIND_PRICE, &price);
    price.gpu = 20000;
    price.node = 16000;
    price.nic = 1000;
    price.switch_port = 500;
    price.optic = 250;
    struct ty_outlay out;
    const struct ty_plan plan = plan_of(8);
    ok(ty_cost(&cluster, &price, &plan, 1.0, 0.5, &out, &error) == TY_ERR_RANGE,
       "capital without years is refused: %s", error.text);
    price.years = 5;
    price.utilisation = 0.8;
    near(cost(&price, 8, 1.0, 0.5).money_per_gpu_hour, 25500.0 / 35064.0, 1e-12, "amortisation");
    cluster.oversubscription = 2.0; /* ports 1 + 2/2, optics 2 + 2/2 */
    near(cost(&price, 8, 1.0, 0.5).money_per_gpu_hour, 24750.0 / 35064.0, 1e-12,
         "half the uplinks, 750 less");
    cluster.oversubscription = (double)NAN;
    price.gpu_hour = 2.0;
    ok(ty_cost(&cluster, &price, &plan, 1.0, 0.5, &out, &error) == TY_ERR_RANGE,
       "rent and capital are refused: %s", error.text);
}

/* 64 of a domain of 72: 8 idle ones are paid for and draw 0.15 TDP. */
static void idle_gpus_count(void)
{
    struct ty_price price;
    ty_init(TY_KIND_PRICE, &price);
    price.gpu_hour = 3.6;
    cluster.gpus_per_node = 4;
    cluster.scaleup_domain = 72;
    struct ty_outlay out = cost(&price, 64, 10.0, 10.0);
    ok(out.gpus_paid == 72, "64 of 72: 72 are paid for");
    near(out.money, 0.72, 1e-12, "72 x 3.6 / 3600 x 10 s");
    near(out.energy_j, 10.0 * (64 * 665.0 + 8 * 105.0), 1e-12, "the idle 8 draw 105 W each");
    price.billing = TY_BILLING_NODE;
    ok(ty_paid_gpus(&cluster, &price, 66) == 68, "by node: 66 are 17 nodes of 4");
    price.billing = TY_BILLING_GPU;
    ok(ty_paid_gpus(&cluster, &price, 66) == 66, "by GPU: what is used");
    fixture_dgx_h100(&cluster);
    ok(ty_paid_gpus(&cluster, NULL, 12) == 16, "default: whole nodes of 8");
}

static void refuses_nonsense(void)
{
    struct ty_price price;
    struct ty_outlay out;
    const struct ty_plan plan = plan_of(8);
    ty_init(TY_KIND_PRICE, &price);
    price.wait_ratio = 0.9;
    price.busy_ratio = 0.5;
    ok(ty_cost(&cluster, &price, &plan, 1.0, 0.5, &out, NULL) == TY_ERR_RANGE,
       "waiting cannot draw more than computing");
    ty_init(TY_KIND_PRICE, &price);
    price.pue = 0.9;
    ok(ty_cost(&cluster, &price, &plan, 1.0, 0.5, &out, NULL) == TY_ERR_RANGE, "PUE below 1");
    ok(ty_cost(&cluster, NULL, &plan, 1.0, 2.0, &out, NULL) == TY_ERR_RANGE,
       "busy longer than the step");
    ok(ty_cost(&cluster, NULL, &plan, (double)NAN, 0.0, &out, NULL) == TY_ERR_RANGE, "no time");
}

/* UT-7.7: M = 11,135.08 s, R = 300, C = 30: best exact interval 800, efficiency 0.9037.
 * UT-7.9: 128 nodes of 6,334.6 h, 24 h repair: 3 spares. */
static void goodput_examples(void)
{
    const double unknown = (double)NAN;
    struct ty_failures failures = {.node_mtbf_s = unknown,
                                   .save_s = unknown,
                                   .restart_s = unknown,
                                   .repair_s = unknown,
                                   .interval_s = unknown,
                                   .spare_probability = unknown};
    struct ty_goodput out;
    failures.node_mtbf_s = 11135.08 * 2048;
    failures.save_s = 30;
    failures.restart_s = 300;
    ok(ty_goodput(&failures, 2048, &out, NULL) == TY_OK, "2,048 nodes");
    near(out.mtbf_s, 11135.08, 1e-12, "their time between failures");
    near(out.interval_s, 800.0, 0.01, "UT-7.7: interval");
    near(out.useful_ratio, 0.9037, 1e-4, "UT-7.7: efficiency");
    failures.node_mtbf_s = 6334.6 * 3600;
    failures.repair_s = 24 * 3600;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_OK && out.spares == 3, "UT-7.9: 3 spares");
    failures.node_mtbf_s = unknown;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_OK && out.useful_ratio == 1.0,
       "no failures: all time is useful");
    failures.step_variation = 0.01;
    ok(ty_goodput(&failures, 1024, &out, NULL) == TY_OK, "steps that vary");
    within(out.stretch_ratio, 1.0325, 5.1e-5, "UT-7.10: the slowest of 1,024, 1 % each");
    near(out.useful_ratio * out.stretch_ratio, 1.0, 1e-15, "... is time that advances nothing");
    failures.slowest_ratio = 1.05;
    ok(ty_goodput(&failures, 1, &out, NULL) == TY_OK, "one node");
    near(out.stretch_ratio, 1.05, 1e-12, "a node that is always slow waits for itself alone");
    failures.node_mtbf_s = 6334.6 * 3600;
    struct ty_goodput even;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_OK, "with failures too");
    failures.slowest_ratio = failures.step_variation = 0.0;
    ok(ty_goodput(&failures, 128, &even, NULL) == TY_OK && even.stretch_ratio == 1.0, "none slow");
    near(out.useful_ratio * out.stretch_ratio, even.useful_ratio, 1e-12, "both are factors");
    failures.slowest_ratio = 0.9;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_ERR_RANGE, "slowest below 1 is refused");
    failures.slowest_ratio = 0.0;
    failures.step_variation = 2.0;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_ERR_RANGE, "variation above 1 is refused");
    failures.step_variation = 0.0;
    failures.node_mtbf_s = -1.0;
    ok(ty_goodput(&failures, 128, &out, NULL) == TY_ERR_RANGE, "a negative time is refused");
}

/* One half width of 80 % apart: 1 - 0.2 / 2. */
static void probabilities(void)
{
    struct ty_goal goal;
    struct ty_model model = {.name = "any"};
    struct ty_profile profile = {.dense_plans_80 = 0.1, .dense_plans_90 = 0.2};
    const struct ty_search search = {
        .model = &model, .cluster = &cluster, .profile = &profile, .goal = &goal};
    struct ty_score fast = {.step_time_s = 1.0, .useful_ratio = 1.0},
                    slow = {.step_time_s = exp(0.1), .useful_ratio = 1.0};
    struct ty_ratio ratio;
    ty_goal_init(&goal);
    fast.plan = slow.plan = plan_of(8);
    fast.tokens_per_s_per_gpu = 1000.0;
    slow.tokens_per_s_per_gpu = 1000.0 * exp(-0.1);
    ty_ratio_of_scores(&search, &fast, &slow, &ratio);
    near(ratio.p_faster, 0.9, 1e-12, "by tokens/s/GPU");
    goal.n_objectives = 1;
    goal.objective[0] = TY_OBJECTIVE_TIME_TO_TOKENS;
    goal.tokens = 1e9;
    ty_ratio_of_scores(&search, &slow, &fast, &ratio);
    near(ratio.p_faster, 0.1, 1e-12, "by time, the other way");
}

/* Three plans with half width h: the first is e^(h - 0.05) behind the second at worst, the second
 * e^(h + 0.05) behind the first, the third more; in any order of the list. */
static void best_worst_case(void)
{
    struct ty_model model = {.name = "any"};
    struct ty_profile profile = {.dense_plans_80 = 0.1, .dense_plans_90 = 0.2};
    const struct ty_search search = {.model = &model, .cluster = &cluster, .profile = &profile};
    struct ty_score list[3] = {
        {.step_time_s = exp(0.3)}, {.step_time_s = 1.0}, {.step_time_s = exp(0.05)}};
    for (int i = 0; i < 3; i++) {
        list[i].plan = plan_of(8);
        list[i].useful_ratio = 1.0;
    }
    struct ty_robust robust;
    ok(ty_robust_of_scores(&search, list, 3, &robust) && robust.plan == 1 && robust.other == 2,
       "the best worst case is the fastest against the second");
    near(robust.ratio.interval_90[1], exp(0.2 - 0.05), 1e-12, "its upper end");
    list[2].step_time_s = 1.0;
    ok(ty_robust_of_scores(&search, list, 3, &robust) && robust.plan == 1, "ties: the first");
    ok(!ty_robust_of_scores(&search, list, 1, &robust), "one plan has no other");
    profile.dense_plans_80 = profile.dense_plans_90 = (double)NAN;
    profile.dense_half_80 = profile.dense_half_90 = (double)NAN;
    ok(!ty_robust_of_scores(&search, list, 3, &robust), "unknown errors: no answer");
}

int main(void)
{
    fixture_dgx_h100(&cluster);
    handbook_example();
    power_by_hand();
    capital_by_hand();
    idle_gpus_count();
    refuses_nonsense();
    goodput_examples();
    probabilities();
    best_worst_case();
    return tap_done();
}
