/* SPDX-License-Identifier: MIT
 * The full rung: every rank simulated equals one rank per stage where that is exact (DESIGN 4,
 * rung 4), and moves in the right direction, by the right amount, where it is not. */
#include "include/trainyard_fabric.h"
#include "models/fabric.h"
#include "models/predict.h"
#include "tests/step_fixture.h"

#include <math.h>

static struct step_case at; /* too large for a stack */
static struct evaluator evaluator;

static bool answer(const struct ty_scenario *scenario, struct step_result *out)
{
    struct ty_error error = {.code = TY_OK};
    struct memory_verdict verdict;
    const struct ty_options options = {.rung = TY_RUNG_FULL, .scenario = scenario, .seed = 7};
    ty_status status = evaluator_memory(&evaluator, &at.setting, &at.plan, &verdict);
    if (status == TY_OK)
        status = evaluator_simulate(&evaluator, &at.setting, &at.plan, &options, out, &error);
    if (status != TY_OK)
        ok(false, "full: %s: %s %s", ty_status_text(status), error.where, error.text);
    return status == TY_OK;
}

/* Llama3-8B's attention with 8 experts, 2 for each token. */
static void fixture_moe(struct ty_model *model)
{
    fixture_llama3_8b(model);
    struct ty_layer_kind *kind = &model->kinds[0];
    kind->mlp = TY_MLP_MOE;
    kind->ffn = 0;
    kind->n_experts = 8;
    kind->top_k = 2;
    kind->expert_ffn = 14336;
}

/* Every rank against one per stage; nothing disturbs. */
static void same(const char *what)
{
    const struct ty_scenario every = {.unfold = true}, any = {.unfold = false};
    struct step_result full, folded;
    if (!case_ready(&at)) {
        ok(false, "%s: not legal", what);
        return;
    }
    if (!answer(&every, &full) || !answer(&any, &folded))
        return;
    const struct ty_fabric_report *report = full_report(evaluator.full);
    ok(report->folded, "%s: folds (%s)", what, report->why);
    double sum_s = 0.0;
    for (int part = 0; part < TY_N_PARTS; part++)
        sum_s += full.breakdown_s[part];
    near(full.time_s, folded.time_s, 1e-9, "... every rank takes as long");
    near(sum_s, full.time_s, 1e-9, "... and its breakdown adds up");
}

static void test_same(void)
{
    case_open(&at);
    at.asked.n_gpus = 16;
    at.asked.gbs = 64;
    at.asked.overlap |= TY_OVERLAP_GRAD;
    same("8B, dp 16, overlapped reduction");
    case_open(&at);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 64;
    at.asked.tp = 4;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    same("8B, tp 4 pp 4 dp 4, with jitter and host");
    at.asked.pp = 2;
    at.asked.vpp = 4;
    at.asked.tp = 8;
    same("8B, tp 8 pp 2 vpp 4 dp 4");
    at.asked.vpp = 1;
    at.asked.sharding = TY_SHARDING_ZERO3;
    at.asked.reshard_after_forward = TY_ON;
    at.asked.tp = 1;
    at.asked.pp = 2;
    same("8B, fsdp with resharding, pp 2 dp 32");
    case_open(&at);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 32;
    at.asked.cp = 2;
    at.asked.tp = 2;
    at.asked.gbs = 32;
    at.cluster.nics_per_node = 4;
    at.asked.sharding = TY_SHARDING_ZERO1;
    at.asked.shard_group = 8;
    same("8B, tp 2 cp 2 dp 8, zero1 in groups, two GPUs a NIC");
    case_open(&at);
    at.asked.n_gpus = 32;
    at.asked.tp = 2;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    at.asked.schedule = TY_SCHEDULE_ZB_H1;
    same("8B, pp 4, zb-h1");
    at.asked.schedule = TY_SCHEDULE_DUALPIPE;
    same("8B, pp 4, dualpipe");
    case_open(&at);
    fixture_moe(&at.model);
    ty_init(TY_KIND_PROFILE, &at.profile);
    at.asked.overlap = 0;
    at.asked.n_gpus = 64;
    at.asked.tp = 2;
    at.asked.ep = 8;
    at.asked.pp = 4;
    at.asked.gbs = 64;
    same("mixtral, tp 2 ep 8 pp 4 dp 8");
}

int main(void)
{
    if (evaluator_init(&evaluator, NULL) != TY_OK)
        return 1;
    test_same();
    evaluator_destroy(&evaluator);
    return tap_done();
}
