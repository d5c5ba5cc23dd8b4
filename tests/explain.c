/* SPDX-License-Identifier: MIT
 * Explanations against what they claim: the critical path tiles the step, its derivative is that of
 * the simulation, gains and changes are those of separate predictions. */
#include "models/explain.h"
#include "tests/failing.h"
#include "tests/step_fixture.h"

static struct step_case *c;

/* A predictor for the case at hand; the caller destroys it. */
static ty_predictor *predictor_of(const struct ty_allocator *allocator)
{
    ty_predictor *predictor = NULL;
    struct ty_error error = {.code = TY_OK};
    if (ty_predictor_create(&c->model, &c->cluster, &c->profile, allocator, &predictor, &error) !=
            TY_OK &&
        error.code != TY_ERR_NOMEM)
        ok(false, "predictor: %s %s", error.where, error.text);
    return predictor;
}

static bool explained(ty_predictor *predictor, struct ty_prediction *p, struct ty_explanation *e)
{
    const struct ty_options options = {.measured = true};
    struct ty_error error = {.code = TY_OK};
    if (ty_predictor_explain(predictor, &c->asked, &options, p, e, &error) == TY_OK &&
        e->n_segments > 0)
        return true;
    ok(false, "explain: %s %s", error.where, error.text);
    return false;
}

static double step_s(const struct ty_plan *plan)
{
    struct ty_prediction p = {.step_time_s = (double)NAN};
    const struct ty_options options = {.measured = true};
    ty_predictor *predictor = predictor_of(NULL);
    if (!predictor || ty_predictor_run(predictor, plan, &options, &p, NULL) != TY_OK)
        ok(false, "a plan of this test is predicted");
    ty_predictor_destroy(predictor);
    return p.step_time_s;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static void plan_single(void)
{
    c->asked.n_gpus = 1;
    c->asked.gbs = 4;
}

static void plan_pipeline(void)
{
    c->asked.n_gpus = 32;
    c->asked.pp = 4;
    c->asked.tp = 8;
    c->asked.gbs = 8;
}

static void plan_interleaved(void)
{
    plan_pipeline();
    c->asked.vpp = 2;
    c->asked.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_PP;
}

static void plan_fsdp(void)
{
    c->asked.n_gpus = 16;
    c->asked.gbs = 32;
    c->asked.sharding = TY_SHARDING_ZERO3;
    c->asked.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM;
}

static void plan_replicas(void)
{
    c->asked.n_gpus = 64;
    c->asked.tp = 2;
    c->asked.pp = 2;
    c->asked.gbs = 64;
    c->asked.overlap = TY_OVERLAP_GIVEN | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM | TY_OVERLAP_PP;
}

static void plan_experts(void)
{
    fixture_deepseek_v3(&c->model);
    c->asked.n_gpus = 64;
    c->asked.ep = 64;
    c->asked.tp = 2;
    c->asked.pp = 1;
    c->asked.gbs = 32;
}

static void plan_offload(void)
{
    plan_single();
    c->asked.offload = TY_OFFLOAD_BOTH;
}

static void plan_split(void) /* backward of inputs and of weights apart */
{
    plan_pipeline();
    c->asked.schedule = TY_SCHEDULE_ZB_H1;
}

static void loud(void) /* everything that slows and shares */
{
    plan_replicas();
    ty_init(TY_KIND_PROFILE, &c->profile);
    c->profile.host_layer_s = 0.05;
}

static const struct {
    const char *name;
    void (*set)(void);
    bool undisturbed; /* nothing on the path is slowed or shares a link */
} plans[] = {{"one GPU", plan_single, true},
             {"pipeline", plan_pipeline, true},
             {"interleaved", plan_interleaved, true},
             {"fsdp", plan_fsdp, false},
             {"replicas", plan_replicas, false},
             {"experts", plan_experts, true},
             {"offload", plan_offload, true},
             {"split backward", plan_split, true},
             {"host-bound, all interference", loud, false}};

/* ---- the path ------------------------------------------------------------------------------- */

/* Each segment starts when the one before ends, to the last bit: they sum to the step. */
static void check_tiles(const char *name, const struct ty_prediction *p,
                        const struct ty_explanation *e)
{
    bool touch = e->segments[0].start_s == 0.0;
    double sum_s = 0.0;
    for (uint32_t i = 0; i < e->n_segments; i++) {
        touch &= i == 0 || e->segments[i].start_s == e->segments[i - 1].end_s;
        sum_s += e->segments[i].end_s - e->segments[i].start_s;
    }
    ok(touch && e->segments[e->n_segments - 1].end_s == p->step_time_s &&
           fabs(sum_s - p->step_time_s) <= 1e-12 * p->step_time_s,
       "%s: the critical path tiles the step exactly", name);
}

/* Rates times 1 + e and latencies over 1 + e make every time 1 / (1 + e) of itself. */
static void check_shares(const char *name, const struct ty_explanation *e)
{
    double worst = 0.0, path = 0.0;
    for (uint32_t i = 0; i < e->n_segments; i++) {
        double sum = 0.0;
        for (uint32_t r = 0; r < TY_N_RESOURCES; r++)
            sum += e->segments[i].share[r];
        if (e->segments[i].end_s > e->segments[i].start_s)
            worst = fmax(worst, fabs(sum - 1.0));
    }
    for (uint32_t r = 0; r < TY_N_RESOURCES; r++)
        path += e->resources[r].path_share;
    within(worst, 0.0, 1e-4, "the shares of every segment add up to 1");
    within(path, 1.0, 1e-4, "... and those of the path");
    printf("# %s\n", name);
}

/* The whole step simulated again with a tiny bit more of each resource. */
static void check_derivative(const char *name, const struct ty_explanation *e)
{
    const double epsilon = 1e-6;
    struct step *step;
    struct step_result base, more;
    if (!case_ready(c) || step_create(NULL, &step) != TY_OK || !case_simulate(c, step, &base)) {
        ok(false, "%s: simulated again", name);
        return;
    }
    double worst = 0.0;
    for (uint32_t r = 0; r < TY_RESOURCE_MEMORY; r++) {
        if (!case_ready(c))
            continue;
        explain_scale(&c->setting, (enum ty_resource)r, 1.0 + epsilon);
        if (!case_simulate(c, step, &more))
            continue;
        const double share = (base.time_s - more.time_s) / base.time_s / epsilon;
        worst = fmax(worst, fabs(share - e->resources[r].path_share));
    }
    ok(worst < 2e-5, "%s: its derivative is that of the simulation", name);
    if (worst >= 2e-5)
        printf("#   worst difference of a share: %g\n", worst);
    step_destroy(step);
}

static void test_paths(void)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct ty_prediction p;
        struct ty_explanation e;
        case_open(c);
        plans[i].set();
        ty_predictor *predictor = predictor_of(NULL);
        if (predictor && explained(predictor, &p, &e)) {
            check_tiles(plans[i].name, &p, &e);
            check_shares(plans[i].name, &e);
            if (plans[i].undisturbed)
                check_derivative(plans[i].name, &e);
        }
        ty_predictor_destroy(predictor);
    }
}

/* ---- resources and changes ------------------------------------------------------------------ */

/* Gains of 10 % more memory bandwidth and NIC, by a machine that has it. */
static void test_gains(void)
{
    struct ty_prediction p;
    struct ty_explanation e;
    case_open(c);
    plan_replicas();
    ty_predictor *predictor = predictor_of(NULL);
    if (!predictor || !explained(predictor, &p, &e))
        return;
    c->cluster.gpu.mem_bytes_per_s *= 1.1;
    near(e.resources[TY_RESOURCE_HBM].gain_pct, 100.0 * (p.step_time_s / step_s(&c->asked) - 1.0),
         1e-9, "10 % more memory bandwidth");
    c->cluster.gpu.mem_bytes_per_s /= 1.1;
    c->cluster.nic_bytes_per_s *= 1.1;
    near(e.resources[TY_RESOURCE_NIC].gain_pct, 100.0 * (p.step_time_s / step_s(&c->asked) - 1.0),
         1e-9, "10 % more of a NIC");
    ty_predictor_destroy(predictor);
}

static const struct ty_change *find_change(const struct ty_explanation *e, const char *knob,
                                           const char *to)
{
    for (uint32_t i = 0; i < e->n_changes; i++)
        if (strcmp(e->changes[i].knob, knob) == 0 && (!to || strcmp(e->changes[i].to, to) == 0))
            return &e->changes[i];
    return NULL;
}

/* What the user types for the change gives what the change says. */
static void check_typed(const struct ty_explanation *e, const char *knob, const char *to,
                        const struct ty_plan *typed)
{
    const struct ty_change *change = find_change(e, knob, to);
    if (ok(change != NULL, "%s %s is among the changes", knob, to))
        near(change->step_time_s, step_s(typed), 1e-15, "... and is the plan typed by hand");
}

static void test_changes(void)
{
    struct ty_prediction p;
    struct ty_explanation e;
    case_open(c);
    plan_replicas();
    ty_predictor *predictor = predictor_of(NULL);
    if (!predictor || !explained(predictor, &p, &e))
        return;
    struct ty_plan plan = c->asked;
    plan.tp = 4;
    check_typed(&e, "tp", "4", &plan);
    plan = c->asked;
    plan.tp = 1;
    check_typed(&e, "tp", "1", &plan);
    plan = c->asked;
    plan.recompute = TY_RECOMPUTE_SELECTIVE;
    plan.recompute_modules = TY_MODULE_MLP;
    check_typed(&e, "recompute", "selective:mlp", &plan);
    plan = c->asked;
    plan.overlap &= ~(uint32_t)TY_OVERLAP_GRAD;
    check_typed(&e, "overlap grad", "off", &plan);
    plan = c->asked;
    plan.vpp = 2;
    check_typed(&e, "vpp", "2", &plan);
    plan = c->asked;
    plan.sharding = TY_SHARDING_ZERO3;
    check_typed(&e, "sharding", "zero3", &plan);
    plan = c->asked;
    plan.precision = TY_FP8_PRECISION;
    check_typed(&e, "precision", "fp8", &plan);
    static const char *const knobs[] = {"mbs", "pp", "cp", "schedule"};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        ok(find_change(&e, knobs[i], NULL) != NULL, "%s is among the changes", knobs[i]);
    bool sorted = true, legal = true, same_job = true;
    for (uint32_t i = 0; i < e.n_changes; i++) {
        const struct ty_change *change = &e.changes[i];
        const bool fits = change->fit != TY_FIT_NO;
        uint32_t n;
        ty_plan_violations(&c->model, &c->cluster, &change->plan, NULL, 0, &n);
        legal &= n == 0;
        same_job &= change->plan.gbs == 64 && change->plan.n_gpus == 64;
        if (i > 0)
            sorted &= (e.changes[i - 1].fit != TY_FIT_NO) > fits ||
                      ((e.changes[i - 1].fit != TY_FIT_NO) == fits &&
                       e.changes[i - 1].step_time_s <= change->step_time_s);
    }
    ok(legal, "every change is legal");
    ok(same_job, "none changes the job");
    ok(sorted, "what fits first, fastest first");
    ty_predictor_destroy(predictor);
}

/* 70B on one node of 80 GB: the plan fits only with full recompute; memory would lift it. */
static void test_memory(void)
{
    struct ty_prediction p;
    struct ty_explanation e;
    case_open(c);
    c->asked.n_gpus = 8;
    c->asked.tp = 2;
    c->asked.pp = 2;
    c->asked.gbs = 64;
    c->asked.seq = 8192;
    c->asked.recompute = TY_RECOMPUTE_FULL;
    ty_predictor *predictor = predictor_of(NULL);
    if (!predictor || !explained(predictor, &p, &e))
        return;
    for (uint32_t i = 0; i < e.n_changes; i++)
        if (e.changes[i].fit != TY_FIT_NO && !e.changes[i].numerics &&
            e.changes[i].step_pct < -0.1) {
            ok(e.best == i, "the change to make next fits and is the fastest of those");
            break;
        }
    const struct ty_change *none = find_change(&e, "recompute", "none");
    ok(none && none->peak_change_bytes > 0.0 && none->step_pct < 0.0,
       "no recompute: faster, more memory");
    ty_predictor_destroy(predictor);
}

/* ---- edges ---------------------------------------------------------------------------------- */

static void test_refusals(void)
{
    struct ty_prediction p;
    struct ty_explanation e;
    struct ty_error error;
    case_open(c);
    plan_replicas();
    ty_predictor *predictor = predictor_of(NULL);
    struct ty_options options = {.max_events = 10};
    ok(ty_predictor_explain(predictor, &c->asked, &options, &p, &e, &error) == TY_ERR_LIMIT,
       "a limit stops the explanation");
    options = (struct ty_options){.rung = TY_RUNG_BOUND};
    ok(ty_predictor_explain(predictor, &c->asked, &options, &p, &e, &error) == TY_OK &&
           e.n_segments == 0 && e.n_changes == 0 && isnan(e.step_time_s),
       "below the simulation there is no path");
    c->asked.tp = 3;
    ok(ty_predictor_explain(predictor, &c->asked, NULL, &p, &e, &error) == TY_OK &&
           e.n_segments == 0 && p.n_violations > 0,
       "nor for an illegal plan");
    same_text(ty_resource_name(TY_RESOURCE_NIC), "nic", "a resource has a name");
    same_text(ty_resource_name(TY_N_RESOURCES), "none", "... and none has not");
    ty_predictor_destroy(predictor);
}

/* The n-th allocation fails, for n spread over all of them. */
static void test_out_of_memory(void)
{
    bool survived = true, leaked = false, done = false;
    case_open(c);
    plan_pipeline();
    for (uint64_t n = 0; !done; n += 1 + n / 8) {
        struct failing failing = {.n_left = n};
        const struct ty_allocator allocator = {failing_alloc, failing_release, &failing};
        struct ty_prediction p;
        struct ty_explanation e;
        ty_predictor *predictor = predictor_of(&allocator);
        const ty_status status =
            predictor ? ty_predictor_explain(predictor, &c->asked, NULL, &p, &e, NULL)
                      : TY_ERR_NOMEM;
        survived &= failing.failed ? status == TY_ERR_NOMEM : status == TY_OK;
        done = !failing.failed;
        ty_predictor_destroy(predictor);
        leaked |= failing.held_bytes != 0;
    }
    ok(survived, "every failed allocation is reported");
    ok(!leaked, "and nothing leaks");
}

int main(void)
{
    c = calloc(1, sizeof *c);
    if (!c)
        return 1;
    test_paths();
    test_gains();
    test_changes();
    test_memory();
    test_refusals();
    test_out_of_memory();
    free(c);
    return tap_done();
}
