/* SPDX-License-Identifier: MIT
 *
 * Where the time of a simulated stream went: sums by part that lose nothing to rounding, and the
 * walk that says what a wait was for.
 */
#ifndef MODELS_PARTS_H
#define MODELS_PARTS_H

#include "sim/engine.h"

/* Compensated sums (Neumaier). Start from {0}. */
struct parts {
    double sum_s[TY_N_PARTS], lost_s[TY_N_PARTS];
};

void parts_add(struct parts *parts, enum ty_part part, double time_s);
void parts_read(const struct parts *parts, double out_s[TY_N_PARTS]);

/* How to read a simulation. */
struct parts_view {
    const struct engine *engine;
    const void *user;
    /* The part a task's running time belongs to when another task waits for it. */
    enum ty_part (*part_of)(const void *user, uint32_t task);
    /* A task without which the wait for `task` up to until_s would not have been shorter before its
     * end; ENGINE_NONE: there is none. May be NULL. */
    uint32_t (*rival_of)(const void *user, uint32_t task, double until_s);
};

/* Divides the wait [from_s, until_s] by interval intersection: as much of it as `last`, the task
 * waited for, was running (after its rival had ended) goes to the part of `last`; what lies before
 * goes to its rival or to the task that `last` itself waited for, and so on back in time. */
void parts_add_wait(struct parts *parts, const struct parts_view *view, uint32_t last,
                    double from_s, double until_s);

#endif
