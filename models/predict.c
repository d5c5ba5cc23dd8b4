/* SPDX-License-Identifier: MIT
 *
 * The predictor: one (model, cluster, profile), many plans. It climbs the rungs of the design in
 * order - resolve, legality, memory, bound, simulation - and stops where the answer is known.
 */
#include "models/predict.h"
#include "models/legality.h"
#include "models/cost.h"
#include "models/effects.h"
#include "models/interval.h"
#include "models/measured.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

ty_status ty_predictor_create(const struct ty_model *model, const struct ty_cluster *cluster,
                              const struct ty_profile *profile,
                              const struct ty_allocator *allocator, ty_predictor **out,
                              struct ty_error *error)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    ty_predictor *predictor = source.alloc(source.user, sizeof *predictor);
    if (!predictor)
        return error_set(error, TY_ERR_NOMEM, "predictor", "out of memory");
    memset(predictor, 0, sizeof *predictor);
    const struct ty_allocator metered = meter_init(&predictor->meter, &source);
    arena_init(&predictor->explanation, &source);
    ty_status status = setting_init(model, cluster, profile, &predictor->setting,
                                    &predictor->setting_notes, error);
    if (status == TY_OK) {
        status = evaluator_init(&predictor->evaluator, &metered);
        if (status != TY_OK)
            error_set(error, status, "predictor", "%s", ty_status_text(status));
    }
    if (status != TY_OK) {
        source.release(source.user, predictor, sizeof *predictor);
        return status;
    }
    *out = predictor;
    return TY_OK;
}

void ty_predictor_destroy(ty_predictor *predictor)
{
    if (!predictor)
        return;
    const struct ty_allocator source = predictor->meter.source;
    arena_destroy(&predictor->explanation);
    evaluator_destroy(&predictor->evaluator);
    source.release(source.user, predictor, sizeof *predictor);
}

void ty_predictor_trace(const ty_predictor *predictor, ty_trace_fn *fn, void *user)
{
    if (predictor->evaluator.unfolded)
        full_trace(predictor->evaluator.full, fn, user);
    else
        step_trace(predictor->evaluator.step, fn, user);
}

void ty_predictor_trace_edges(const ty_predictor *predictor, ty_trace_edge_fn *fn, void *user)
{
    if (predictor->evaluator.unfolded)
        full_edges(predictor->evaluator.full, fn, user);
    else
        step_edges(predictor->evaluator.step, fn, user);
}

/* Every number unknown: what an infeasible plan reports. */
static void clear_answer(struct ty_prediction *answer, const struct ty_plan *resolved)
{
    *answer = (struct ty_prediction){.plan = *resolved};
    answer->headroom_bytes = answer->budget_bytes = answer->peak_bytes = (double)NAN;
    answer->imbalance_limit = answer->step_time_s = answer->bound_s = (double)NAN;
    answer->tokens_per_s = answer->tokens_per_s_per_gpu = (double)NAN;
    answer->model_flop_per_s_per_gpu = answer->mfu = (double)NAN;
    answer->hardware_flop_per_s_per_gpu = answer->bubble_ratio = (double)NAN;
    answer->interval_80[0] = answer->interval_80[1] = (double)NAN;
    answer->interval_90[0] = answer->interval_90[1] = (double)NAN;
    for (int part = 0; part < TY_N_PARTS; part++)
        answer->breakdown_s[part] = (double)NAN;
    cost_unknown(&answer->outlay);
}

/* The groups of the plan, each with the slowest link it crosses. */
static uint32_t list_groups(const struct setting *setting, const struct ty_plan *plan,
                            struct ty_group *out)
{
    static const enum axis dense[] = {AXIS_TP, AXIS_CP, AXIS_DP, AXIS_PP};
    static const enum axis expert[] = {AXIS_EP, AXIS_ETP, AXIS_EDP};
    bool has_experts = false;
    for (uint32_t kind = 0; kind < setting->model.n_kinds; kind++)
        has_experts |= setting->model.kinds[kind].mlp == TY_MLP_MOE;
    const uint32_t n = 4 + (has_experts ? 3u : 0u);
    for (uint32_t i = 0; i < n; i++) {
        const enum axis axis = i < 4 ? dense[i] : expert[i - 4];
        struct group_shape shape;
        grid_shape(setting, plan, axis, &shape);
        out[i] = (struct ty_group){.size = shape.size,
                                   .stride = shape.stride,
                                   .ranks_per_domain = shape.ranks_per_domain,
                                   .n_domains = shape.n_domains};
        text_format(out[i].name, sizeof out[i].name, "%s", axis_name(axis));
        text_format(out[i].link, sizeof out[i].link, "%s",
                    link_name(&setting->cluster, shape.link));
    }
    return n;
}

static void report_memory(ty_predictor *predictor, const struct memory_verdict *verdict,
                          struct ty_prediction *answer)
{
    answer->fit = verdict->fit;
    answer->headroom_bytes = verdict->headroom_bytes;
    answer->budget_bytes = verdict->budget_bytes;
    answer->largest_component = verdict->largest;
    answer->imbalance_limit = verdict->imbalance_limit;
    answer->peak_bytes = verdict->peak_bytes;
    answer->peak_stage = verdict->peak_stage;
    answer->n_stages = answer->plan.pp;
    answer->stages = predictor->evaluator.stages;
}

/* A plan that is legal but too large: said as a violation, so that "why not" has one place. */
static void tell_device(const struct ty_prediction *answer, struct ty_violation *out)
{
    text_format(out->text, sizeof out->text,
                "stage %u needs %.2f GiB of %.2f GiB; the largest part is %s", answer->peak_stage,
                answer->peak_bytes / 1073741824.0, answer->budget_bytes / 1073741824.0,
                ty_mem_name(answer->largest_component));
    text_format(out->legal, sizeof out->legal,
                "at most %.2f GiB; more recompute, sharding, tp, pp%s or cp lowers it",
                answer->budget_bytes / 1073741824.0,
                isnan(answer->imbalance_limit) ? "" : ", ep"); /* no experts */
}

static void tell_host(const struct setting *setting, double host_bytes, struct ty_violation *out)
{
    text_format(out->text, sizeof out->text,
                "the GPUs of a node offload %.2f GiB into its %.2f GiB of memory",
                host_bytes / 1073741824.0, setting->cluster.host_mem_bytes / 1073741824.0);
    text_format(out->legal, sizeof out->legal, "at most host.memory; offload_layers lowers it");
}

static void refuse_memory(ty_predictor *predictor, const struct memory_verdict *verdict,
                          struct ty_prediction *answer)
{
    struct ty_violation *violation = &predictor->violation[0];
    const struct setting *setting = &predictor->setting;
    const bool host = verdict->host_bytes > setting->cluster.host_mem_bytes;
    *violation = (struct ty_violation){0};
    text_format(violation->rule, sizeof violation->rule, host ? "host_memory" : "memory");
    if (host)
        tell_host(setting, verdict->host_bytes, violation);
    else
        tell_device(answer, violation);
    answer->n_violations = 1;
    answer->violations = predictor->violation;
}

static void interval(double time_s, double half_width, double out[2])
{
    out[0] = time_s * exp(-half_width);
    out[1] = time_s * exp(half_width);
}

/* T exp(-+h): h of the class of the model, from what measured runs of the stack left. */
static void report_intervals(const struct setting *setting, struct ty_prediction *answer)
{
    const struct half_widths half =
        interval_half_widths(&setting->profile, &setting->model, &answer->plan, INTERVAL_TIME);
    interval(answer->step_time_s, half.of_80, answer->interval_80);
    interval(answer->step_time_s, half.of_90, answer->interval_90);
}

static void report_origins(const struct origins *origins, struct ty_prediction *answer)
{
    for (int work = 0; work < TY_N_WORKS; work++) {
        double sum_s = 0.0;
        for (int origin = 0; origin < TY_N_ORIGINS; origin++)
            sum_s += origins->time_s[work][origin];
        for (int origin = 0; origin < TY_N_ORIGINS && sum_s > 0.0; origin++)
            answer->origin_share[work][origin] = origins->time_s[work][origin] / sum_s;
    }
}

static bool has_table(const struct ty_profile *profile, enum ty_work work)
{
    const struct ty_measured *measured = profile->measured;
    switch (work) {
    case TY_WORK_GEMM:
        return measured && measured->n_gemms > 0;
    case TY_WORK_ATTENTION:
        return measured && measured->n_attentions > 0;
    case TY_WORK_MEMORY:
        return measured && measured->n_memory > 0;
    default:
        return profile->collectives && profile->collectives->n > 0;
    }
}

/* Of a profile with records: work that none of them is about, and work beyond their shapes. */
static void note_origins(const struct ty_profile *profile, const struct ty_prediction *answer,
                         struct notes *notes)
{
    for (enum ty_work work = 0; work < TY_N_WORKS; work++) {
        const double *share = answer->origin_share[work];
        const double beyond = share[TY_ORIGIN_FITTED] + share[TY_ORIGIN_PRESET];
        if (has_table(profile, work) && beyond > 0.005)
            notes_add(notes, TY_NOTE_EXTRAPOLATED, NULL, ty_work_name(work),
                      "of its time is beyond the records of the profile: its form was used",
                      "%.0f %%", 100.0 * beyond);
        else if (profile->fitted && share[TY_ORIGIN_PRESET] > 0.005)
            notes_add(notes, TY_NOTE_UNCALIBRATED, NULL, ty_work_name(work),
                      "no record of the profile is about it", "%s",
                      ty_origin_name(TY_ORIGIN_PRESET));
    }
}

static void report_step(const struct setting *setting, const struct step_result *result,
                        struct ty_prediction *answer)
{
    const struct ty_plan *plan = &answer->plan;
    answer->step_time_s = result->time_s;
    answer->tokens_per_s = plan_tokens_per_step(plan) / result->time_s;
    answer->tokens_per_s_per_gpu = answer->tokens_per_s / plan->n_gpus;
    answer->model_flop_per_s_per_gpu =
        plan_model_flop_per_s_per_gpu(setting, plan, answer->flops, result->time_s);
    answer->mfu = plan_mfu(setting, plan, answer->model_flop_per_s_per_gpu);
    answer->hardware_flop_per_s_per_gpu = result->flop_hw_per_gpu / result->time_s;
    memcpy(answer->breakdown_s, result->breakdown_s, sizeof answer->breakdown_s);
    answer->bubble_ratio = result->bubble_ratio;
    answer->n_events = result->n_events;
    report_origins(&result->origins, answer);
}

static ty_status simulate(ty_predictor *predictor, const struct ty_plan *asked,
                          const struct ty_options *options, struct ty_prediction *answer,
                          struct ty_error *error)
{
    struct step_result result;
    ty_status status = evaluator_simulate(&predictor->evaluator, &predictor->setting, &answer->plan,
                                          options, &result, error);
    if (status != TY_OK)
        return status;
    struct cost_model cost;
    status = cost_model_init(&predictor->setting.cluster, options->price, &cost, error);
    if (status != TY_OK)
        return status;
    cost_of(&cost, &answer->plan, result.time_s, result.busy_s, &answer->outlay);
    report_step(&predictor->setting, &result, answer);
    note_origins(&predictor->setting.profile, answer, &predictor->notes);
    if (options->rung == TY_RUNG_FULL) {
        predictor->fabric = *full_report(predictor->evaluator.full);
        predictor->fabric.memory_bytes = (double)predictor->meter.held_bytes;
        answer->fabric = &predictor->fabric;
    }
    if (options->storage) { /* kept: the effects simulate other plans */
        predictor->storage = predictor->evaluator.storage;
        answer->storage = &predictor->storage;
    }
    report_intervals(&predictor->setting, answer);
    if (!options->effects)
        return TY_OK;
    /* Defaults are judged by one rank per stage: a scenario may fit no other plan. */
    const bool full = options->rung == TY_RUNG_FULL;
    struct ty_options even = *options;
    even.rung = TY_RUNG_SIMULATE;
    if (full)
        even.storage = NULL;
    const struct effects_base base = {.setting = &predictor->setting,
                                      .plan = asked,
                                      .options = &even,
                                      .step_time_s = full ? predictor->fabric.folded_step_time_s
                                                          : result.time_s};
    return effects_fill(&base, &predictor->evaluator.allocator, &predictor->notes);
}

/* Tensor parallel over nodes is slow, not impossible: runs that were measured did it. */
static bool refused(const ty_predictor *predictor, const struct ty_options *options,
                    uint32_t n_violations)
{
    const bool slow_tp =
        n_violations == 1 && strcmp(predictor->violation[0].rule, "tp_domain") == 0;
    return n_violations > 0 && !(slow_tp && options->measured);
}

/* Out of memory because the caller's limit was reached is that limit's error. */
static ty_status blame_limit(const struct meter *meter, ty_status status, struct ty_error *error)
{
    if (status != TY_ERR_NOMEM || !meter->refused)
        return status;
    return error_set(error, TY_ERR_LIMIT, "plan",
                     "the limit of %.3g MiB of memory was reached; %.3g MiB are in use",
                     (double)meter->limit_bytes * 0x1p-20, (double)meter->held_bytes * 0x1p-20);
}

/* Legality and memory. *go_on: whether a time is worth computing. */
static ty_status screen(ty_predictor *predictor, const struct ty_options *options,
                        struct ty_prediction *answer, bool *go_on)
{
    const struct setting *setting = &predictor->setting;
    *go_on = false;
    uint32_t n_violations;
    legality_violations(setting, &answer->plan, predictor->violation, PREDICT_MAX_VIOLATIONS,
                        &n_violations);
    answer->violations = predictor->violation;
    answer->n_violations =
        n_violations < PREDICT_MAX_VIOLATIONS ? n_violations : PREDICT_MAX_VIOLATIONS;
    if (refused(predictor, options, n_violations))
        return TY_OK;
    answer->n_groups = list_groups(setting, &answer->plan, predictor->group);
    answer->groups = predictor->group;
    struct memory_verdict verdict;
    const ty_status status =
        evaluator_memory(&predictor->evaluator, setting, &answer->plan, &verdict);
    if (status != TY_OK)
        return status;
    report_memory(predictor, &verdict, answer);
    answer->feasible = verdict.fit != TY_FIT_NO && n_violations == 0;
    *go_on = answer->feasible || options->measured;
    if (verdict.fit == TY_FIT_NO)
        refuse_memory(predictor, &verdict, answer);
    return TY_OK;
}

/* What only every rank on every link can show, and what no step does yet: there collectives take
 * the times of their tables. */
static void note_fabric(const struct ty_cluster *cluster, enum ty_rung rung, struct notes *notes)
{
    const struct {
        const char *field;
        bool given;
    } fields[] = {
        {"network.rails", cluster->rails == TY_ON},
        {"network.planes", cluster->planes > 1},
        {"network.leaves_per_pod", cluster->leaves_per_pod > 0},
        {"network.pod_oversubscription", cluster->pod_oversubscription > 1.0},
        {"network.routing", cluster->routing > TY_ROUTING_ADAPTIVE},
        {"network.queue_pairs", cluster->queue_pairs > 1},
        {"pcie.gpus_per_switch", cluster->gpus_per_pcie_switch > 0},
    };
    for (size_t i = 0; rung < TY_RUNG_FULL && i < sizeof fields / sizeof *fields; i++)
        if (fields[i].given)
            notes_add(notes, TY_NOTE_UNUSED, NULL, fields[i].field, "only rung full simulates it",
                      "given");
    if (cluster->sharp == TY_ON)
        notes_add(notes, TY_NOTE_UNUSED, NULL, "network.sharp", "is of comm --algorithm only",
                  "on");
}

ty_status ty_predictor_run(ty_predictor *predictor, const struct ty_plan *plan,
                           const struct ty_options *options, struct ty_prediction *out,
                           struct ty_error *error)
{
    static const struct ty_options defaults = {0};
    struct ty_options chosen = options ? *options : defaults;
    if (chosen.flops == TY_FLOPS_AUTO)
        chosen.flops = TY_FLOPS_MEGATRON;
    if (chosen.rung == TY_RUNG_AUTO)
        chosen.rung = TY_RUNG_SIMULATE;
    predictor->meter.limit_bytes = chosen.max_bytes;
    predictor->meter.refused = false;
    predictor->notes = predictor->setting_notes;
    struct ty_plan resolved;
    plan_resolve(&predictor->setting, plan, &resolved, &predictor->notes);
    struct ty_prediction answer;
    clear_answer(&answer, &resolved);
    answer.flops = chosen.flops;
    answer.notes = predictor->notes.note;
    note_fabric(&predictor->setting.cluster, chosen.rung, &predictor->notes);

    struct ty_error why = {.code = TY_OK};
    bool go_on;
    ty_status status = screen(predictor, &chosen, &answer, &go_on);
    if (status == TY_OK && go_on && chosen.rung >= TY_RUNG_BOUND)
        status = step_bound(predictor->evaluator.step, &predictor->setting, &answer.plan,
                            predictor->evaluator.slots, &answer.bound_s);
    if (status == TY_OK && go_on && chosen.rung >= TY_RUNG_SIMULATE)
        status = simulate(predictor, plan, &chosen, &answer, &why);
    status = blame_limit(&predictor->meter, status, &why);
    if (status != TY_OK) {
        if (why.code == TY_OK)
            error_set(&why, status, "plan", "%s", ty_status_text(status));
        if (error)
            *error = why;
        return status;
    }
    answer.n_notes = predictor->notes.n;
    *out = answer;
    return TY_OK;
}
