/* SPDX-License-Identifier: MIT
 *
 * Where the step went: the timeline of the busiest stage's compute stream from 0 to the end of
 * the step. A pass is divided as its records were, in proportion to the time it really took; a
 * gap by what the next task waited for, back in time (parts.h): a message is pp, another stage's
 * passes are bubble, its data-parallel traffic is dp where that stage could not compute. Every line
 * is a sum of intervals, none a remainder, and together they tile the step.
 */
#include "models/parts.h"
#include "models/step_internal.h"

static bool is_pass(const struct task_info *info)
{
    return info->kind == TASK_FORWARD || info->kind == TASK_BACKWARD || info->kind == TASK_WGRAD ||
           info->kind == TASK_RECOMPUTE;
}

/* Waiting for another stage's passes is the bubble. */
enum ty_part step_part(const struct step *step, uint32_t task)
{
    static const enum ty_part parts[N_TASK_KINDS] = {
        [TASK_FORWARD] = TY_PART_BUBBLE,   [TASK_BACKWARD] = TY_PART_BUBBLE,
        [TASK_WGRAD] = TY_PART_BUBBLE,     [TASK_RECOMPUTE] = TY_PART_BUBBLE,
        [TASK_FIXED] = TY_PART_LAUNCH,     [TASK_ISSUE] = TY_PART_LAUNCH,
        [TASK_TRANSFER] = TY_PART_OFFLOAD, [TASK_SEND] = TY_PART_PP,
        [TASK_GATHER] = TY_PART_DP,        [TASK_REDUCE] = TY_PART_DP,
        [TASK_REPLICAS] = TY_PART_DP,      [TASK_COPIES] = TY_PART_DP,
        [TASK_TIED] = TY_PART_DP,          [TASK_NORM] = TY_PART_OPTIMIZER,
        [TASK_SYNC] = TY_PART_OPTIMIZER,   [TASK_OPTIMIZER] = TY_PART_OPTIMIZER};
    return parts[step->info[task].kind];
}

static enum ty_part part_of(const void *user, uint32_t task)
{
    return step_part(user, task);
}

/* Traffic and issuing of a stage whose compute stream is busy hold nobody up: its rival is the
 * compute task that was running last before until_s. Tasks of a stage have ascending ids. */
static uint32_t rival_of(const void *user, uint32_t task, double until_s)
{
    const struct step *step = user;
    const struct task_info *info = &step->info[task];
    if (info->kind != TASK_GATHER && info->kind != TASK_REDUCE && info->kind != TASK_REPLICAS &&
        info->kind != TASK_ISSUE && info->kind != TASK_TRANSFER)
        return ENGINE_NONE;
    uint32_t low = step->stages[info->stage].first_task; /* a compute task; starts the step */
    uint32_t high = step->stages[info->stage].norm;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        uint32_t at = middle; /* the compute task there or before */
        while (step->info[at].stream != STREAM_COMPUTE)
            at--;
        if (engine_start_s(step->engine, at) < until_s)
            low = middle;
        else
            high = at;
    }
    while (step->info[low].stream != STREAM_COMPUTE)
        low--;
    /* Only if they ran side by side, by more than rounding: else the one waited for the other. */
    const bool beside =
        engine_end_s(step->engine, low) > engine_start_s(step->engine, task) &&
        engine_start_s(step->engine, low) < engine_end_s(step->engine, task) * (1.0 - 1e-12);
    return beside ? low : ENGINE_NONE;
}

/* Time a stage's passes and updates take undisturbed, from the same sums for equal stages, so that
 * rounding does not choose among them. */
static double stage_work_s(const struct step *step, uint32_t at)
{
    double sum_s = 0.0;
    for (uint32_t place = at; place < step->n_places; place += step->n_stages) {
        double place_s = 0.0;
        for (uint32_t kind = 0; kind < N_PASS_KINDS; kind++)
            if (step_counts(step, (enum pass_kind)kind))
                place_s += step->segments[step->cuts[N_PASS_KINDS * place + kind].whole].time_s;
        sum_s += place_s;
    }
    return step->n_micro * sum_s + step_norm_s(step, &step->stages[at].held) +
           step_optimizer_s(step, &step->stages[at].held);
}

static uint32_t busiest_stage(const struct step *step)
{
    uint32_t busiest = 0;
    double most_s = -1.0;
    for (uint32_t at = 0; at < step->n_stages; at++) {
        const double work_s = stage_work_s(step, at);
        if (work_s > most_s) {
            most_s = work_s;
            busiest = at;
        }
    }
    return busiest;
}

void step_add_task(const struct step *step, uint32_t task, double time_s, struct parts *parts)
{
    const struct task_info *info = &step->info[task];
    if (!is_pass(info)) {
        parts_add(parts, part_of(step, task), time_s);
        return;
    }
    const struct segment *segment = &step->segments[info->segment];
    for (uint32_t part = 0; segment->time_s > 0.0 && part < TY_N_PARTS; part++)
        parts_add(parts, (enum ty_part)part, segment->part_s[part] / segment->time_s * time_s);
}

static double flop_hw(const struct step *step)
{
    const double copies = step->pipeline.shape == PIPELINE_TWO_WAYS ? 2.0 : 1.0;
    double sum = 0.0;
    for (uint32_t place = 0; place < step->n_places; place++)
        for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
            const struct unit unit = step_unit(step, place, i);
            double both = 0.0;
            for (uint32_t kind = 0; kind < N_PASS_KINDS; kind++)
                if (step_counts(step, (enum pass_kind)kind))
                    both += step_record(step, &unit, (enum pass_kind)kind)->flop_hw;
            sum += both;
        }
    return sum * step->n_micro / step->n_stages / copies;
}

void step_breakdown(const struct step *step, struct step_result *out)
{
    const struct engine *engine = step->engine;
    const uint32_t n_tasks = engine_n_tasks(engine);
    const uint32_t busiest = busiest_stage(step);
    const struct parts_view view = {engine, step, part_of, rival_of};
    struct parts parts = {{0}, {0}};
    double end_s = 0.0;
    for (uint32_t task = 0; task < n_tasks; task++) {
        if (step->info[task].stage != busiest || step->info[task].stream != STREAM_COMPUTE)
            continue;
        parts_add_wait(&parts, &view, engine_binding(engine, task), end_s,
                       engine_start_s(engine, task));
        end_s = engine_end_s(engine, task);
        step_add_task(step, task, end_s - engine_start_s(engine, task), &parts);
    }
    *out = (struct step_result){.time_s = engine_makespan_s(engine),
                                .flop_hw_per_gpu = flop_hw(step),
                                .busy_s = step_busy_s(step),
                                .busiest_stage = busiest,
                                .n_events = engine_n_events(engine)};
    parts_add_wait(&parts, &view, engine_last(engine), end_s, out->time_s);
    parts_read(&parts, out->breakdown_s);
    out->bubble_ratio = out->breakdown_s[TY_PART_BUBBLE] / out->time_s;
}
