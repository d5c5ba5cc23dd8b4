/* SPDX-License-Identifier: MIT
 *
 * Lower bound of a step in closed form. A stage r cannot start before one micro-batch has come
 * through the slots before its first one, must be busy for all its passes, and after its last
 * backward that micro-batch still has to go back through the same slots:
 *
 *   T >= fixed + max_r [ sum_{q<r} f_q + sum_{q on r} m_q (f_q + b_q) + sum_{q<r} d_q ] + optimizer
 *
 * f, b: undisturbed time of the passes, their layers' own exposed collectives included: traffic of
 * the step can only stretch them; joined passes are taken without the expert traffic they hide.
 * d: b without what needs no message: early recompute, and weight gradients, which may all run
 * while the micro-batch goes back (then only the last pass of slot 0 remains). Where backwards are
 * split or whole the shorter counts. Slots q < r belong to other stages. m_q: micro-batches of the
 * copy. True of every order of passes; with equal stages and nothing else it is the 1F1B time.
 *
 * Parameters gathered and gradients reduced for every micro-batch (FSDP, ZeRO-2) are a second busy
 * resource: the flows of a share go one after the other, none faster than alone, so
 *
 *   T >= fixed + max_r max_share [ sum_{q on r} m_q sum_segments (2 gathers + reduction) ] +
 * optimizer
 */
#include "models/step_internal.h"

#include <math.h>
#include <string.h>

static double pass_s(const struct step *step, uint32_t place, enum pass_kind kind)
{
    double sum_s = step_pass_fixed_s(step, kind);
    for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
        const struct unit unit = step_unit(step, place, i);
        sum_s += step_record(step, &unit, kind)->time_s;
    }
    return sum_s * step->jitter;
}

/* Kernels of one record that compute: what the host, other ranks or a link hold up is waiting. */
static double compute_s(const struct record *record)
{
    return record->part_s[TY_PART_GEMM] + record->part_s[TY_PART_ATTENTION] +
           record->part_s[TY_PART_MEMORY_BOUND];
}

double step_busy_s(const struct step *step)
{
    const double copies = step->pipeline.shape == PIPELINE_TWO_WAYS ? 2.0 : 1.0;
    double passes_s = 0.0, optimizers_s = 0.0;
    for (uint32_t place = 0; place < step->n_places; place++)
        for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
            const struct unit unit = step_unit(step, place, i);
            double unit_s = 0.0;
            for (enum pass_kind kind = PASS_FORWARD; kind < N_PASS_KINDS; kind++)
                if (step_counts(step, kind))
                    unit_s += compute_s(step_record(step, &unit, kind));
            passes_s += unit_s;
        }
    for (uint32_t stage = 0; stage < step->n_stages; stage++) {
        struct held held;
        step_held_stage(step, stage, &held);
        optimizers_s += step_optimizer_s(step, &held);
    }
    return (step->n_micro * passes_s * step->jitter / copies + optimizers_s) / step->n_stages;
}

/* Least times of the passes of a place. */
struct least {
    double forward_s, backward_s, dgrad_s; /* dgrad: what has to come before the next place */
};

/* Recompute that may run before the gradient arrives. */
static double early_s(const struct step *step, uint32_t place, enum pass_kind kind)
{
    double sum_s = 0.0;
    for (uint32_t i = 0; step->plan->recompute_early == TY_ON && step->slots[place].n_layers > 0 &&
                         i < step_n_units(&step->slots[place]);
         i++) {
        const struct unit unit = step_unit(step, place, i);
        if (unit.what == WHAT_LAYER)
            sum_s = fmax(sum_s, step_record(step, &unit, kind)->time_s -
                                    step->layer[1][unit.kind][kind]->time_s);
    }
    return step->jitter * sum_s;
}

static struct least least_of(const struct step *step, uint32_t place)
{
    struct least least = {.forward_s = pass_s(step, place, PASS_FORWARD) -
                                       step_hidden_s(step, place, PASS_FORWARD),
                          .backward_s = HUGE_VAL,
                          .dgrad_s = HUGE_VAL};
    if (step->pipeline.whole) {
        least.backward_s =
            pass_s(step, place, PASS_BACKWARD) - step_hidden_s(step, place, PASS_BACKWARD);
        least.dgrad_s = least.backward_s - early_s(step, place, PASS_BACKWARD);
    }
    if (step->pipeline.splits) {
        const double dgrad_s = pass_s(step, place, PASS_DGRAD);
        least.backward_s = fmin(least.backward_s, dgrad_s + pass_s(step, place, PASS_WGRAD));
        least.dgrad_s = fmin(least.dgrad_s, dgrad_s - early_s(step, place, PASS_DGRAD));
    }
    return least;
}

/* Fill and drain of the stages: sums over the slots before each stage's first one, of one copy. */
struct ramp {
    double fill_s, drain_s;
};

/* first: of the stage's first place. */
static double stage_s(const struct step *step, uint32_t stage, const struct least *first,
                      const struct ramp *ramp)
{
    double all_s = 0.0, urgent_s = 0.0; /* urgent: what must be done before the drain begins */
    for (uint32_t place = stage; place < step->n_places; place += step->n_stages) {
        const uint32_t chunk = place / step->n_stages;
        const double n = pipeline_end_micro(&step->pipeline, chunk) -
                         pipeline_first_micro(&step->pipeline, chunk);
        const struct least least = place == stage ? *first : least_of(step, place);
        all_s += n * (least.forward_s + least.backward_s);
        urgent_s += n * (least.forward_s + fmin(least.dgrad_s, least.backward_s));
    }
    if (!step->pipeline.splits)
        return ramp->fill_s + all_s + ramp->drain_s;
    return ramp->fill_s + fmax(all_s, urgent_s + ramp->drain_s);
}

/* ---- data-parallel streams ---------------------------------------------------------------- */

/* Adds what one micro-batch sends of a pass over a place; cut as step_work.c cuts it. */
static void add_exchanges(const struct step *step, uint32_t place, enum pass_kind kind, double n,
                          double sum_s[N_SHARES])
{
    const struct traffic *traffic = &step->traffic;
    const double bucket_params = step_bucket_params(traffic, kind);
    const double gathers = traffic->gather_every ? n : 0.0;
    const double reduces = kind == PASS_BACKWARD && traffic->reduce_every ? n : 0.0;
    const uint32_t n_units = step_n_units(&step->slots[place]);
    struct held held = {{0}, {0}}, last = {{0}, {0}};
    double gather_s[N_SHARES] = {0}, reduce_s[N_SHARES] = {0};
    for (uint32_t i = 0; i < n_units; i++) {
        const struct unit unit = step_unit(step, place, kind == PASS_FORWARD ? i : n_units - 1 - i);
        step_held_add(&held, step_held(step, &unit));
        if (i + 1 < n_units && !step_is_full(&held, bucket_params))
            continue;
        if (memcmp(&held, &last, sizeof held) != 0) /* most layers are alike */
            step_exchange_s(step, &held, gather_s, reduce_s);
        for (uint32_t share = 0; share < N_SHARES; share++)
            sum_s[share] += gathers * gather_s[share] + reduces * reduce_s[share];
        last = held;
        held = (struct held){{0}, {0}};
    }
}

/* Time the busiest data-parallel stream of a stage takes; 0 where it runs once a step. */
static double streams_s(const struct step *step, uint32_t stage)
{
    double sum_s[N_SHARES] = {0};
    if (!step->traffic.gather_every && !step->traffic.reduce_every)
        return 0.0;
    for (uint32_t place = stage; place < step->n_places; place += step->n_stages) {
        const uint32_t chunk = place / step->n_stages;
        const double n = pipeline_end_micro(&step->pipeline, chunk) -
                         pipeline_first_micro(&step->pipeline, chunk);
        if (step->traffic.gather_every)
            add_exchanges(step, place, PASS_FORWARD, n, sum_s);
        add_exchanges(step, place, PASS_BACKWARD, n, sum_s);
    }
    return fmax(sum_s[SHARE_DENSE], sum_s[SHARE_EXPERT]);
}

ty_status step_bound(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                     const struct slot *slots, double *bound_s)
{
    const ty_status status = step_prepare(step, setting, plan, slots, NULL);
    if (status != TY_OK)
        return status;
    step_traffic(step);
    struct ramp ramp = {0.0, 0.0};
    double longest_s = 0.0, optimizer_s = 0.0;
    const bool both_ends = step->pipeline.shape == PIPELINE_TWO_WAYS;
    for (uint32_t stage = 0; stage < step->n_stages; stage++) {
        const struct least least = least_of(step, stage); /* place `stage`: chunk 0, slot `stage` */
        struct held held;
        if (!both_ends || stage < step->n_stages / 2) /* the other half is its mirror image */
            longest_s =
                fmax(longest_s, fmax(stage_s(step, stage, &least, &ramp), streams_s(step, stage)));
        ramp.fill_s += least.forward_s;
        ramp.drain_s += least.dgrad_s;
        step_held_stage(step, stage, &held);
        optimizer_s = fmax(optimizer_s, step_optimizer_s(step, &held));
    }
    *bound_s = step_fixed_s(step) + longest_s + optimizer_s;
    return TY_OK;
}
