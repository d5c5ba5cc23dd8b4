/* SPDX-License-Identifier: MIT
 *
 * The full rung (DESIGN 4, rung 4): the graph of one rank per stage, laid on every rank, with its
 * messages and collectives on the links of the fabric. Where one rank per stage is exact it stands
 * for all, unless the scenario asks for every rank.
 */
#ifndef MODELS_FULL_H
#define MODELS_FULL_H

#include "include/trainyard_fabric.h"
#include "models/step.h"

struct full; /* scratch and the last report */

struct full_request {
    const struct setting *setting;
    const struct ty_plan *plan; /* resolved */
    const struct slot *slots;
    const struct ty_options *options;
    const struct ty_scenario *scenario;
    const struct step_result *folded; /* of step_simulate */
};

ty_status full_create(const struct ty_allocator *allocator, struct full **out);
void full_destroy(struct full *full);
ty_status full_simulate(struct full *full, const struct full_request *request,
                        struct step_result *out, struct ty_error *error);
/* Does it hold the tasks of every rank? Then they can be read until the next simulation. */
bool full_traced(const struct full *full);
void full_trace(const struct full *full, ty_trace_fn *fn, void *user);
void full_edges(const struct full *full, ty_trace_edge_fn *fn, void *user);
const struct ty_fabric_report *full_report(const struct full *full);

#endif
