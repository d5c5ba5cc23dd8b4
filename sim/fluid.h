/* SPDX-License-Identifier: MIT
 *
 * Fluid links with max-min fair sharing (handbook 6.3).
 *
 * A flow has a rate x (units of work per second), a cap x <= c, a weight, and for each link it
 * crosses a coefficient k: bytes on that link per unit of work. A shared link holds
 * sum_i k_i x_i <= capacity; a fat pipe limits each flow alone, k_i x_i <= capacity.
 * Progressive filling raises all unfixed x_i / weight_i together; a flow is fixed when its cap or
 * one of its links is full.
 *
 * The solver knows nothing of time: the engine asks it for rates at each start and finish.
 */
#ifndef SIM_FLUID_H
#define SIM_FLUID_H

#include "sim/arena.h"

struct fluid_use {
    uint32_t link;
    double bytes_per_work; /* > 0 */
};

struct fluid; /* links, routes and the active flows */

ty_status fluid_create(const struct ty_allocator *allocator, struct fluid **out);
void fluid_destroy(struct fluid *fluid);
void fluid_clear(struct fluid *fluid); /* forgets everything, keeps the memory */
/* capacity > 0 (may be INFINITY). returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. */
ty_status fluid_add_link(struct fluid *fluid, double capacity_bytes_per_s, bool shared,
                         uint32_t *link);
/* A route is registered once and shared by many flows. n = 0 is legal (only the cap limits). */
ty_status fluid_add_route(struct fluid *fluid, const struct fluid_use *uses, uint32_t n,
                          uint32_t *route);
/* Starts a flow (id: the caller's, dense). cap > 0, may be INFINITY if the route has a link of
 * finite capacity; weight > 0. returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM. */
ty_status fluid_start(struct fluid *fluid, uint32_t id, uint32_t route, double cap_work_per_s,
                      double weight);
/* returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM (the flow is then stopped). */
ty_status fluid_set_cap(struct fluid *fluid, uint32_t id, double cap_work_per_s);
void fluid_stop(struct fluid *fluid, uint32_t id);
/* Re-solves what changed since the last call. The flows whose rate is new are listed (among them
 * may be flows that were stopped meanwhile): ids [*n], valid until the next change. */
void fluid_solve(struct fluid *fluid, const uint32_t **ids, uint32_t *n);
double fluid_rate_work_per_s(const struct fluid *fluid, uint32_t id);

#endif
