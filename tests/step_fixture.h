/* SPDX-License-Identifier: MIT
 * A plan made ready for step tests: setting, resolved plan, slots. */
#ifndef TESTS_STEP_FIXTURE_H
#define TESTS_STEP_FIXTURE_H

#include "models/legality.h"
#include "models/step.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#define CASE_MAX_SLOTS 4096

struct step_case {
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan asked;
    struct setting setting;
    struct ty_plan plan; /* resolved */
    struct slot slots[CASE_MAX_SLOTS];
};

/* No fixed time, no launch, no jitter, no interference: only kernels, links and latencies. */
__attribute__((unused)) static void fixture_quiet(struct ty_profile *profile)
{
    ty_init(TY_KIND_PROFILE, profile);
    profile->launch_issue_s = profile->host_layer_s = 0.0;
    profile->step_fixed_s = profile->micro_fixed_s = profile->jitter_ratio = 0.0;
    profile->slow_compute_scaleup = profile->slow_compute_nic = profile->slow_comm = 0.0;
}

/* Llama3-8B on DGX H100, quiet, bf16, one GPU: change `asked`, then case_ready. */
__attribute__((unused)) static void case_open(struct step_case *c)
{
    memset(c, 0, sizeof *c);
    fixture_llama3_8b(&c->model);
    fixture_dgx_h100(&c->cluster);
    fixture_quiet(&c->profile);
    ty_init(TY_KIND_PLAN, &c->asked);
    c->asked.seq = 4096;
    c->asked.overlap = TY_OVERLAP_GIVEN;
}

/* false: the plan is not legal (or, a bug, the setting is refused). */
__attribute__((unused)) static bool case_ready(struct step_case *c)
{
    struct ty_error error = {.code = TY_OK};
    if (setting_init(&c->model, &c->cluster, &c->profile, &c->setting, NULL, &error) != TY_OK) {
        ok(false, "setting: %s %s", error.where, error.text);
        return false;
    }
    plan_resolve(&c->setting, &c->asked, &c->plan, NULL);
    return legality_reject(&c->setting, &c->plan) == TY_N_REJECTS &&
           c->plan.pp * c->plan.vpp <= CASE_MAX_SLOTS &&
           layout_slots(&c->setting, &c->plan, c->slots);
}

__attribute__((unused)) static bool case_simulate(struct step_case *c, struct step *step,
                                                  struct step_result *out)
{
    struct ty_error error = {.code = TY_OK};
    const ty_status status =
        step_simulate(step, &c->setting, &c->plan, c->slots, NULL, out, &error);
    if (status != TY_OK)
        ok(false, "step_simulate: %s: %s %s", ty_status_text(status), error.where, error.text);
    return status == TY_OK;
}

#endif
