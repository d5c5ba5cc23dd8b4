/* SPDX-License-Identifier: MIT
 * The JSON contract of `predict --json` and `sweep --json`: the keys of issue 2, read back by
 * cJSON; values are the test's own. */
#include "include/trainyard_tools.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <cjson/cJSON.h>

static const char *const keys[] = {
    "feasible",
    "violations",
    "fit",
    "headroom_bytes",
    "largest_component",
    "step_time_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "model_tflops_per_gpu",
    "mfu",
    "flop_convention",
    "breakdown_s",
    "interval_80",
    "interval_90",
    "from",
    "cost",
    "memory_bytes",
    "groups",
    "profile",
    "stack",
    "resolved_plan",
    "defaulted",
    "uncalibrated",
    "extrapolated",
    "unused",
};
static const char *const parts[] = {"gemm",      "attention",   "memory_bound", "launch", "tp",
                                    "cp",        "ep",          "pp",           "dp",     "bubble",
                                    "optimizer", "input_stall", "checkpoint"};

static struct ty_stage_memory stages[2] = {{.bytes = {1e9, 2e9}}, {.bytes = {3e9, 4e9}}};
static struct ty_group groups[1] = {{"tp", 8, 1, 8, 1, "nvlink"}};
static struct ty_note notes[3] = {
    {TY_NOTE_DEFAULTED, "network.nic_latency", "14 us", "not given", 2.5},
    {TY_NOTE_DEFAULTED, "power_limit", "700 W", "TDP", NAN},
    {TY_NOTE_UNUSED, "ep", "1", "a \"dense\" model", NAN},
};

static struct ty_prediction sample(void)
{
    struct ty_prediction p = {.feasible = true,
                              .fit = TY_FIT_TIGHT,
                              .headroom_bytes = 1.5e9,
                              .budget_bytes = 75e9,
                              .peak_bytes = 73.5e9,
                              .largest_component = TY_MEM_ACTIVATIONS,
                              .step_time_s = 4.0,
                              .tokens_per_s = 1048576.0,
                              .tokens_per_s_per_gpu = 2048.0,
                              .model_flop_per_s_per_gpu = 4.2e14,
                              .mfu = 0.425,
                              .flops = TY_FLOPS_MEGATRON,
                              .interval_80 = {NAN, NAN},
                              .interval_90 = {NAN, NAN},
                              .n_stages = 2,
                              .stages = stages,
                              .n_groups = 1,
                              .groups = groups,
                              .n_notes = 3,
                              .notes = notes};
    for (int part = 0; part < TY_N_PARTS; part++)
        p.breakdown_s[part] = 0.25 * part;
    ty_init(TY_KIND_PLAN, &p.plan);
    p.plan.n_gpus = 512;
    p.plan.tp = 8;
    p.plan.dp = 16;
    p.plan.n_micro = 32;
    p.plan.precision = TY_BF16_PRECISION;
    p.plan.sharding = TY_SHARDING_ZERO1;
    p.plan.overlap = TY_OVERLAP_TP | TY_OVERLAP_PP | TY_OVERLAP_GIVEN;
    snprintf(p.plan.order, sizeof p.plan.order, "tp-cp-ep-dp-pp");
    return p;
}

static cJSON *read_back(char *text, const char *what)
{
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    ok(json != NULL, "%s is JSON", what);
    ty_text_free(text);
    return json;
}

static cJSON *at(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static double number(const cJSON *json, const char *key)
{
    const cJSON *item = at(json, key);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

static const char *text(const cJSON *json, const char *key)
{
    const char *value = cJSON_GetStringValue(at(json, key));
    return value ? value : "(no text)";
}

/* Exactly the contract's keys, in its order. */
static void keys_are(const cJSON *json, const char *what)
{
    size_t n = sizeof keys / sizeof *keys, i = 0;
    bool same = true;
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        same = same && i < n && strcmp(item->string, keys[i]) == 0;
        i++;
    }
    ok(same && i == n, "%s has the keys of the contract", what);
    const cJSON *breakdown = at(json, "breakdown_s");
    same = cJSON_GetArraySize(breakdown) == TY_N_PARTS;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        same = same && at(breakdown, parts[part]);
    ok(same, "%s has every part of the breakdown", what);
}

static void feasible(const struct ty_profile *profile)
{
    struct ty_prediction p = sample();
    cJSON *json = read_back(ty_prediction_json(&p, profile, NULL, NULL), "a prediction");
    keys_are(json, "a prediction");
    ok(cJSON_IsTrue(at(json, "feasible")), "feasible");
    same_text(text(json, "fit"), "tight", "fit");
    same_text(text(json, "largest_component"), "activations", "largest component");
    same_text(text(json, "flop_convention"), "megatron", "convention");
    same_text(text(json, "profile"), "preset \"x\"", "profile, a name with quotes");
    ok(number(json, "step_time_s") == 4.0 && number(json, "mfu") == 0.425, "step time and MFU");
    ok(number(json, "model_tflops_per_gpu") == 420.0, "4.2e14 flop/s = 420 TFLOP/s");
    ok(number(at(json, "breakdown_s"), "bubble") == 0.25 * TY_PART_BUBBLE, "a part");
    ok(cJSON_IsNull(at(json, "interval_80")), "no interval before calibration");
    const cJSON *memory = at(json, "memory_bytes");
    ok(number(memory, "peak") == 73.5e9 && number(memory, "budget") == 75e9, "peak and budget");
    ok(cJSON_GetArraySize(at(memory, "stages")) == 2 &&
           number(cJSON_GetArrayItem(at(memory, "stages"), 1), "gradients") == 4e9,
       "memory of stage 1 by component");
    const cJSON *group = cJSON_GetArrayItem(at(json, "groups"), 0);
    ok(number(group, "size") == 8 && strcmp(text(group, "link"), "nvlink") == 0, "group and link");
    const cJSON *plan = at(json, "resolved_plan");
    ok(number(plan, "gpus") == 512 && number(plan, "dp") == 16 && number(plan, "n_micro") == 32,
       "sizes of the plan, derived ones too");
    same_text(text(plan, "sharding"), "zero1", "an enum by name");
    same_text(text(plan, "overlap"), "tp,pp", "flags by name");
    same_text(text(plan, "recompute_modules"), "none", "no flags");
    const cJSON *defaulted = at(json, "defaulted");
    ok(cJSON_GetArraySize(defaulted) == 2 &&
           number(cJSON_GetArrayItem(defaulted, 0), "effect_pct") == 2.5 &&
           cJSON_IsNull(at(cJSON_GetArrayItem(defaulted, 1), "effect_pct")),
       "defaults with their effects");
    ok(cJSON_GetArraySize(at(json, "unused")) == 1 &&
           cJSON_GetArraySize(at(json, "uncalibrated")) == 0,
       "notes by kind");
    cJSON_Delete(json);

    p.interval_80[0] = 3.5;
    p.interval_80[1] = 4.5;
    json = read_back(ty_prediction_json(&p, profile, NULL, NULL), "a calibrated prediction");
    ok(cJSON_GetArraySize(at(json, "interval_80")) == 2, "an interval after calibration");
    cJSON_Delete(json);
}

static void infeasible(const struct ty_profile *profile)
{
    struct ty_violation violation = {"heads_tp", "3 does not divide 32 heads", "1, 2, 4"};
    struct ty_prediction p = sample();
    p.feasible = false;
    p.step_time_s = (double)NAN; /* as the predictor leaves it */
    p.fit = TY_FIT_NO;
    p.n_stages = p.n_groups = p.n_notes = 0;
    p.n_violations = 1;
    p.violations = &violation;
    cJSON *json = read_back(ty_prediction_json(&p, profile, NULL, NULL), "an illegal plan");
    keys_are(json, "an illegal plan");
    ok(cJSON_IsFalse(at(json, "feasible")) && cJSON_IsNull(at(json, "fit")) &&
           cJSON_IsNull(at(json, "step_time_s")) && cJSON_IsNull(at(json, "mfu")) &&
           cJSON_IsNull(at(json, "headroom_bytes")) &&
           cJSON_IsNull(at(at(json, "breakdown_s"), "gemm")) &&
           cJSON_IsNull(at(at(json, "memory_bytes"), "peak")),
       "its numbers are null");
    const cJSON *first = cJSON_GetArrayItem(at(json, "violations"), 0);
    same_text(text(first, "rule"), "heads_tp", "its rule");
    same_text(text(first, "legal"), "1, 2, 4", "its legal values");
    cJSON_Delete(json);

    p = sample();
    p.feasible = false;
    p.step_time_s = (double)NAN; /* as the predictor leaves it */
    p.fit = TY_FIT_NO;
    p.headroom_bytes = -2e9;
    json = read_back(ty_prediction_json(&p, profile, NULL, NULL), "a plan that does not fit");
    ok(strcmp(text(json, "fit"), "no") == 0 && number(json, "headroom_bytes") == -2e9 &&
           cJSON_IsNull(at(json, "tokens_per_s")),
       "says how much is missing, and no speed");
    cJSON_Delete(json);
}

/* The plans of a search carry every key of a prediction, and the plan itself. */
static void search(const struct ty_profile *profile)
{
    struct ty_model model;
    struct ty_cluster cluster;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    struct ty_search question = {
        .model = &model, .cluster = &cluster, .profile = profile, .top = 1};
    ty_init(TY_KIND_PLAN, &question.space.fixed);
    question.space.fixed.n_gpus = 8;
    question.space.fixed.gbs = 8;
    struct ty_search_result result;
    ok(ty_search_run(&question, &result, NULL) == TY_OK, "a small search");
    cJSON *json = read_back(ty_search_json(&result, &question), "a search");
    ok(number(json, "evaluated") == (double)result.n_evaluated &&
           number(json, "enumerated") == (double)result.n_enumerated,
       "counts");
    ok(number(at(json, "rejected"), "memory_activations") ==
           (double)result.rejected[TY_REJECT_MEMORY_ACTIVATIONS],
       "rejected by reason");
    const cJSON *plan = cJSON_GetArrayItem(at(json, "plans"), 0);
    ok(number(at(plan, "plan"), "tp") == result.best[0].plan.tp &&
           number(plan, "step_time_s") == result.best[0].step_time_s,
       "the best plan with the time the search found, bit for bit");
    const struct ty_prediction p = sample();
    cJSON *single = read_back(ty_prediction_json(&p, profile, NULL, NULL), "a prediction");
    bool all = single != NULL;
    for (const cJSON *key = single ? single->child : NULL; key; key = key->next)
        all &= cJSON_GetObjectItemCaseSensitive(plan, key->string) != NULL;
    ok(all, "every key of a prediction");
    cJSON_Delete(single);
    cJSON_Delete(json);
    ty_search_free(&result);
}

int main(void)
{
    struct ty_profile profile;
    ty_init(TY_KIND_PROFILE, &profile);
    snprintf(profile.name, sizeof profile.name, "preset \"x\"");
    snprintf(profile.stack, sizeof profile.stack, "megatron");
    feasible(&profile);
    infeasible(&profile);
    search(&profile);
    return tap_done();
}
