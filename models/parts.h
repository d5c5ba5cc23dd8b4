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

/* The part a task's running time belongs to when another task waits for it. */
typedef enum ty_part parts_of(const void *user, uint32_t task);

/* Divides the wait [from_s, until_s] by interval intersection: as much of it as `last`, the task
 * waited for, was running goes to the part of `last`; what lies before its start goes to the task
 * that `last` itself waited for, and so on back in time. */
void parts_add_wait(struct parts *parts, const struct engine *engine, uint32_t last, double from_s,
                    double until_s, parts_of *part_of, const void *user);

#endif
