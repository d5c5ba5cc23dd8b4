/* SPDX-License-Identifier: MIT
 *
 * The critical path and what each resource is worth.
 *
 *   share of a segment = - d ln t / d ln R, t its time alone: the graph laid again with R (1 + e)
 *   share of the path  = sum of (end - start) * share / step
 *
 * Where nothing shares or slows, the second is the derivative of the simulated step; a stretched
 * segment is taken to depend on a resource as it would alone. Every time of the model is a sum of
 * work over a rate and of latencies, so the shares of a segment add up to 1.
 */
#include "models/explain.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* Small enough for a derivative, large enough against rounding. */
static const double EPSILON = 1e-6;
static const double MORE = 1.1; /* "+10 %" */

const char *ty_resource_name(enum ty_resource resource)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_RESOURCE_LIST(X)
#undef X
    };
    return (uint32_t)resource < TY_N_RESOURCES ? names[resource] : "none";
}

/* ---- a machine with more of something ------------------------------------------------------- */

static void scale_nic(struct ty_cluster *cluster, double factor)
{
    cluster->nic_bytes_per_s *= factor;
    if (cluster->oversubscription > 1.0) /* the spine stays as it is */
        cluster->oversubscription *= factor;
}

static void scale_scaleup(struct setting *setting, double factor)
{
    setting->cluster.scaleup_bytes_per_s *= factor;
    setting->cluster.gpu.scaleup_bytes_per_s *= factor;
    if (setting->cluster.scaleup == TY_SCALEUP_PCIE)
        setting->cluster.gpu.pcie_bytes_per_s *= factor;
    setting->profile.allreduce_busbw_bytes_per_s *= factor;
    setting->profile.allgather_busbw_bytes_per_s *= factor;
}

static void scale_host_memory(struct ty_cluster *cluster, double factor)
{
    cluster->host_bytes_per_s *= factor;
    cluster->gpu.c2c_bytes_per_s *= factor;
    if (cluster->scaleup != TY_SCALEUP_PCIE) /* there it is the link between GPUs */
        cluster->gpu.pcie_bytes_per_s *= factor;
}

static void scale_flops(struct setting *setting, double factor)
{
    struct ty_gpu *gpu = &setting->cluster.gpu;
    double *const rates[] = {&gpu->bf16_flop_per_s,
                             &gpu->fp16_flop_per_s,
                             &gpu->fp8_flop_per_s,
                             &gpu->fp4_flop_per_s,
                             &gpu->tf32_flop_per_s,
                             &gpu->fp32_flop_per_s,
                             &setting->profile.attention_flop_per_s};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        *rates[i] *= factor;
}

static void scale_times(struct setting *setting, enum ty_resource resource, double factor)
{
    struct ty_profile *profile = &setting->profile;
    double *const latencies[] = {&setting->cluster.nic_latency_s, &profile->collective_latency_s,
                                 &profile->p2p_latency_s};
    double *const host[] = {&profile->launch_issue_s,  &profile->host_layer_s,
                            &profile->dropless_host_s, &profile->kernel_floor_s,
                            &profile->step_fixed_s,    &profile->micro_fixed_s};
    if (resource == TY_RESOURCE_LATENCY)
        for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++)
            *latencies[i] /= factor;
    else
        for (size_t i = 0; i < sizeof host / sizeof *host; i++)
            *host[i] /= factor;
}

void explain_scale(struct setting *setting, enum ty_resource resource, double factor)
{
    struct ty_cluster *cluster = &setting->cluster;
    setting->profile.collectives = NULL;
    setting->profile.measured = NULL;
    switch (resource) {
    case TY_RESOURCE_FLOPS:
        scale_flops(setting, factor);
        break;
    case TY_RESOURCE_HBM:
        cluster->gpu.mem_bytes_per_s *= factor;
        break;
    case TY_RESOURCE_SCALEUP:
        scale_scaleup(setting, factor);
        break;
    case TY_RESOURCE_NIC:
        scale_nic(cluster, factor);
        break;
    case TY_RESOURCE_SPINE:
        cluster->oversubscription = fmax(1.0, cluster->oversubscription / factor);
        break;
    case TY_RESOURCE_LATENCY:
    case TY_RESOURCE_HOST:
        scale_times(setting, resource, factor);
        break;
    case TY_RESOURCE_HOST_MEMORY:
        scale_host_memory(cluster, factor);
        break;
    case TY_RESOURCE_MEMORY:
        cluster->gpu.mem_bytes *= factor;
        break;
    case TY_N_RESOURCES:
        break;
    }
}

/* The plan laid out under a scaled setting; its graph is in the evaluator's step. */
static ty_status lay(struct explainer *x, enum ty_resource resource, double factor)
{
    struct memory_verdict verdict;
    *x->setting = x->predictor->setting;
    explain_scale(x->setting, resource, factor);
    ty_status status = evaluator_memory(&x->evaluator, x->setting, &x->base->plan, &verdict);
    if (status == TY_OK)
        status = step_lay(x->evaluator.step, x->setting, &x->base->plan, x->evaluator.slots, NULL);
    return status;
}

/* Step time under a scaled setting; NAN where a limit was reached. */
static ty_status scaled_step_s(struct explainer *x, enum ty_resource resource, double factor,
                               double *time_s)
{
    struct step_result result;
    struct memory_verdict verdict;
    *x->setting = x->predictor->setting;
    *time_s = (double)NAN;
    explain_scale(x->setting, resource, factor);
    ty_status status = evaluator_memory(&x->evaluator, x->setting, &x->base->plan, &verdict);
    if (status == TY_OK)
        status = evaluator_simulate(&x->evaluator, x->setting, &x->base->plan, x->options, &result,
                                    NULL);
    if (status == TY_OK)
        *time_s = result.time_s;
    return status == TY_ERR_LIMIT ? TY_OK : status;
}

/* ---- path ----------------------------------------------------------------------------------- */

struct path {
    uint32_t n;
    uint32_t *tasks;
    double *alone_s;
    struct ty_path_segment *segments;
};

static ty_status find_path(struct explainer *x, struct path *path)
{
    const struct step *step = x->predictor->evaluator.step;
    struct arena *arena = &x->predictor->explanation;
    path->n = step_path(step, NULL);
    path->tasks = arena_get(arena, path->n, sizeof *path->tasks);
    path->alone_s = arena_get(arena, path->n, sizeof *path->alone_s);
    path->segments = arena_get(arena, path->n, sizeof *path->segments);
    if (!path->tasks || !path->alone_s || !path->segments)
        return TY_ERR_NOMEM;
    step_path(step, path->tasks);
    for (uint32_t i = 0; i < path->n; i++) {
        const struct ty_trace_event event = step_event(step, path->tasks[i]);
        const struct ty_path_segment *before = i ? &path->segments[i - 1] : NULL;
        path->segments[i] = (struct ty_path_segment){
            .start_s = event.start_s,
            .end_s = event.end_s,
            .rank = event.rank,
            .micro = event.micro,
            .chunk = event.chunk,
            .stream = event.stream,
            .name = event.name,
            .same_stream = before && before->rank == event.rank && before->stream == event.stream,
            .binding = TY_N_RESOURCES};
    }
    return TY_OK;
}

/* Shares of one resource. A graph of another shape (some work vanished) tells nothing. */
static ty_status add_shares(struct explainer *x, struct path *path, enum ty_resource resource)
{
    const struct step *step = x->evaluator.step;
    const ty_status status = lay(x, resource, 1.0 + EPSILON);
    if (status != TY_OK || step_n_tasks(step) != step_n_tasks(x->predictor->evaluator.step))
        return status;
    double sum_s = 0.0;
    for (uint32_t i = 0; i < path->n; i++) {
        struct ty_path_segment *segment = &path->segments[i];
        const double alone_s = path->alone_s[i];
        if (!(alone_s > 0.0))
            continue;
        const double share = (alone_s - step_task_s(step, path->tasks[i])) / alone_s / EPSILON;
        segment->share[resource] = fabs(share) < 10.0 * EPSILON ? 0.0 : share;
        sum_s += share * (segment->end_s - segment->start_s);
    }
    x->out->resources[resource].path_share = sum_s / x->base->step_time_s;
    return TY_OK;
}

static void name_binding(struct path *path)
{
    for (uint32_t i = 0; i < path->n; i++) {
        struct ty_path_segment *segment = &path->segments[i];
        double most = 0.0;
        for (uint32_t r = 0; r < TY_N_RESOURCES; r++)
            if (segment->share[r] > most) {
                most = segment->share[r];
                segment->binding = (enum ty_resource)r;
            }
    }
}

static ty_status explain_path(struct explainer *x)
{
    struct path path;
    ty_status status = find_path(x, &path);
    if (status == TY_OK)
        status = lay(x, TY_N_RESOURCES, 1.0);
    for (uint32_t i = 0; status == TY_OK && i < path.n; i++)
        path.alone_s[i] = step_task_s(x->evaluator.step, path.tasks[i]);
    for (uint32_t r = 0; status == TY_OK && r < TY_RESOURCE_MEMORY; r++)
        status = add_shares(x, &path, (enum ty_resource)r);
    if (status != TY_OK)
        return status;
    name_binding(&path);
    x->out->n_segments = path.n;
    x->out->segments = path.segments;
    return TY_OK;
}

static ty_status explain_resources(struct explainer *x)
{
    double base_s = x->base->step_time_s;
    ty_status status = TY_OK;
    if (x->predictor->setting.profile.collectives ||
        x->predictor->setting.profile.measured) /* put aside in both */
        status = scaled_step_s(x, TY_N_RESOURCES, 1.0, &base_s);
    for (uint32_t r = 0; status == TY_OK && r < TY_RESOURCE_MEMORY; r++) {
        double time_s = (double)NAN;
        status = scaled_step_s(x, (enum ty_resource)r, MORE, &time_s);
        x->out->resources[r].gain_pct = 100.0 * (base_s / time_s - 1.0);
    }
    return status;
}

/* ---- interface ------------------------------------------------------------------------------ */

static ty_status explain(struct explainer *x)
{
    x->setting = arena_get(&x->predictor->explanation, 1, sizeof *x->setting);
    if (!x->setting)
        return TY_ERR_NOMEM;
    ty_status status = evaluator_init(&x->evaluator, &x->predictor->evaluator.allocator);
    if (status == TY_OK)
        status = explain_path(x);
    if (status == TY_OK)
        status = explain_resources(x);
    if (status == TY_OK)
        status = explain_changes(x);
    evaluator_destroy(&x->evaluator);
    return status;
}

ty_status ty_predictor_explain(ty_predictor *predictor, const struct ty_plan *plan,
                               const struct ty_options *options, struct ty_prediction *prediction,
                               struct ty_explanation *out, struct ty_error *error)
{
    static const struct ty_options defaults = {0};
    struct ty_explanation answer = {.step_time_s = (double)NAN};
    struct ty_prediction base;
    ty_status status = ty_predictor_run(predictor, plan, options, &base, error);
    if (status != TY_OK)
        return status;
    arena_reset(&predictor->explanation);
    if (isfinite(base.step_time_s)) {
        /* One rank per stage, whatever the rung: that step is explained. */
        struct ty_options even = options ? *options : defaults;
        if (even.rung == TY_RUNG_FULL) {
            even.rung = TY_RUNG_SIMULATE;
            even.storage = NULL; /* its lines are of the full step */
        }
        struct ty_prediction folded = base;
        answer.step_time_s = step_end_s(predictor->evaluator.step);
        if (!even.storage) /* else with input and checkpoint, as every alternative */
            folded.step_time_s = answer.step_time_s;
        struct explainer x = {.predictor = predictor,
                              .asked = plan,
                              .base = &folded,
                              .options = &even,
                              .out = &answer};
        status = explain(&x);
        if (status != TY_OK)
            return error_set(error, status, "explain", "%s", ty_status_text(status));
    }
    *prediction = base;
    *out = answer;
    return TY_OK;
}
