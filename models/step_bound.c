/* SPDX-License-Identifier: MIT
 *
 * Lower bound of a step in closed form. A stage cannot start before one micro-batch has come
 * through the slots before its first one, must be busy for all its passes, and after its last
 * backward that micro-batch still has to go back through the same slots:
 *
 *   T >= fixed + max_r [ sum_{q<r} f_q + m sum_{q on r} (f_q + b_q) + sum_{q<r} b_q ] + optimizer
 *
 * f, b: undisturbed time of the passes, their layers' own exposed collectives included: traffic of
 * the step can only stretch them. Slots q < r belong to other stages. True of every order of
 * passes; with equal stages and nothing else it is the 1F1B time itself.
 */
#include "models/step_internal.h"

#include <math.h>

static double pass_s(const struct step *step, uint32_t slot, enum pass_kind kind)
{
    double sum_s = step->pass_fixed_s;
    for (uint32_t i = 0; i < step_n_units(&step->slots[slot]); i++) {
        const struct unit unit = step_unit(step, slot, i);
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
    double passes_s = 0.0, optimizers_s = 0.0;
    for (uint32_t slot = 0; slot < step->n_slots; slot++)
        for (uint32_t i = 0; i < step_n_units(&step->slots[slot]); i++) {
            const struct unit unit = step_unit(step, slot, i);
            passes_s += compute_s(step_record(step, &unit, PASS_FORWARD)) +
                        compute_s(step_record(step, &unit, PASS_BACKWARD));
        }
    for (uint32_t stage = 0; stage < step->n_stages; stage++) {
        struct held held;
        step_held_stage(step, stage, &held);
        optimizers_s += step_optimizer_s(step, &held);
    }
    return (step->n_micro * passes_s * step->jitter + optimizers_s) / step->n_stages;
}

ty_status step_bound(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                     const struct slot *slots, double *bound_s)
{
    const ty_status status = step_prepare(step, setting, plan, slots, NULL);
    if (status != TY_OK)
        return status;
    step_traffic(step);
    double ramp_s = 0.0, longest_s = 0.0, optimizer_s = 0.0;
    for (uint32_t stage = 0; stage < step->n_stages; stage++) {
        double stage_s = 0.0, first_s = 0.0;
        for (uint32_t slot = stage; slot < step->n_slots; slot += step->n_stages) {
            const double both_s =
                pass_s(step, slot, PASS_FORWARD) + pass_s(step, slot, PASS_BACKWARD);
            first_s = slot == stage ? both_s : first_s;
            stage_s += both_s;
        }
        longest_s = fmax(longest_s, ramp_s + step->n_micro * stage_s);
        ramp_s += first_s;
        struct held held;
        step_held_stage(step, stage, &held);
        optimizer_s = fmax(optimizer_s, step_optimizer_s(step, &held));
    }
    *bound_s = step_fixed_s(step) + longest_s + optimizer_s;
    return TY_OK;
}
