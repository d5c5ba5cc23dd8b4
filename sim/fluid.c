/* SPDX-License-Identifier: MIT
 *
 * Links, routes and the flows on them. A bundle is in the member list of each of its links while
 * it has flows; empty bundles stay with their route for the next flow, so starting and stopping
 * flows allocates nothing once the largest number of bundles was seen. */
#include "sim/fluid_state.h"

#include <math.h>

#define GROW(fluid, name, need)                                                                    \
    array_grow(&(fluid)->allocator, (void **)&(fluid)->name, &(fluid)->name##_capacity, need,      \
               sizeof *(fluid)->name)
#define FREE(fluid, name)                                                                          \
    array_free(&(fluid)->allocator, (fluid)->name, (fluid)->name##_capacity, sizeof *(fluid)->name)

/* ---- bundles and flows --------------------------------------------------------------------- */

static void touch(struct fluid *fluid, const struct bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        uint32_t id = fluid->uses[bundle->first_use + i].link;
        if (!fluid->links[id].touched)
            fluid->touched[fluid->n_touched++] = id;
        fluid->links[id].touched = true;
    }
}

static void enter_links(struct fluid *fluid, uint32_t id)
{
    const struct bundle *bundle = &fluid->bundles[id];
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        uint32_t use_id = bundle->first_use + i;
        struct use *use = &fluid->uses[use_id];
        struct link *link = &fluid->links[use->link];
        use->place = link->n_members++;
        link->members[use->place] = (struct member){use->bytes_per_work, id, use_id};
    }
}

static void leave_links(struct fluid *fluid, const struct bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        const struct use *use = &fluid->uses[bundle->first_use + i];
        struct link *link = &fluid->links[use->link];
        struct member last = link->members[--link->n_members];
        link->members[use->place] = last;
        fluid->uses[last.use].place = use->place;
    }
}

/* Room for one more bundle on each of these links. */
static bool reserve_members(struct fluid *fluid, uint32_t first_use, uint32_t n_uses)
{
    for (uint32_t i = 0; i < n_uses; i++) {
        struct link *link = &fluid->links[fluid->uses[first_use + i].link];
        if (!array_grow(&fluid->allocator, (void **)&link->members, &link->member_capacity,
                        (size_t)link->n_reserved + 1, sizeof *link->members))
            return false;
        link->n_reserved++;
    }
    return true;
}

/* The first bundle of a route takes the route's own uses, the others copies. */
static bool add_bundle(struct fluid *fluid, struct route *route, uint32_t *id)
{
    bool copy = route->first_bundle != FLUID_NONE;
    uint32_t first_use = copy ? fluid->n_uses : route->first_use;
    size_t n_bundles = (size_t)fluid->n_bundles + 1;
    if ((copy && !GROW(fluid, uses, (size_t)first_use + route->n_uses)) ||
        !GROW(fluid, bundles, n_bundles) || !GROW(fluid, heap, n_bundles + fluid->n_links) ||
        !reserve_members(fluid, route->first_use, route->n_uses))
        return false;
    for (uint32_t i = 0; copy && i < route->n_uses; i++)
        fluid->uses[fluid->n_uses++] = fluid->uses[route->first_use + i];
    *id = fluid->n_bundles++;
    fluid->bundles[*id] = (struct bundle){.first_flow = FLUID_NONE,
                                          .first_use = first_use,
                                          .n_uses = route->n_uses,
                                          .next = route->first_bundle,
                                          .fixed = true};
    route->first_bundle = *id;
    return true;
}

/* The bundle of the route with this cap and weight, else an empty one made so, else a new one. */
static bool find_bundle(struct fluid *fluid, struct route *route, double cap_work_per_s,
                        double weight, uint32_t *found)
{
    uint32_t empty = FLUID_NONE;
    for (uint32_t id = route->first_bundle; id != FLUID_NONE; id = fluid->bundles[id].next) {
        const struct bundle *bundle = &fluid->bundles[id];
        if (bundle->n_flows == 0)
            empty = id;
        else if (bundle->cap_work_per_s == cap_work_per_s && bundle->weight == weight) {
            *found = id;
            return true;
        }
    }
    if (empty == FLUID_NONE && !add_bundle(fluid, route, &empty))
        return false;
    fluid->bundles[empty].cap_work_per_s = cap_work_per_s;
    fluid->bundles[empty].weight = weight;
    fluid->bundles[empty].cap_level = cap_work_per_s / weight;
    *found = empty;
    return true;
}

static bool join_bundle(struct fluid *fluid, uint32_t flow_id, double cap_work_per_s, double weight)
{
    struct flow *flow = &fluid->flows[flow_id];
    struct route *route = &fluid->routes[flow->route];
    uint32_t id;
    flow->bundle = FLUID_NONE;
    cap_work_per_s = fmin(cap_work_per_s, route->cap_work_per_s);
    if (!find_bundle(fluid, route, cap_work_per_s, weight, &id))
        return false;
    struct bundle *bundle = &fluid->bundles[id];
    if (bundle->n_flows++ == 0)
        enter_links(fluid, id);
    flow->bundle = id;
    flow->previous = FLUID_NONE;
    flow->next = bundle->first_flow;
    if (flow->next != FLUID_NONE)
        fluid->flows[flow->next].previous = flow_id;
    bundle->first_flow = flow_id;
    bundle->level = bundle->cap_level;
    bundle->rate_work_per_s = 0;
    bundle->bottleneck = FLUID_NONE;
    touch(fluid, bundle);
    if (bundle->n_uses == 0)
        fluid_report(fluid, flow_id, cap_work_per_s);
    return true;
}

static void leave_bundle(struct fluid *fluid, const struct flow *flow)
{
    struct bundle *bundle = &fluid->bundles[flow->bundle];
    if (flow->next != FLUID_NONE)
        fluid->flows[flow->next].previous = flow->previous;
    if (flow->previous != FLUID_NONE)
        fluid->flows[flow->previous].next = flow->next;
    else
        bundle->first_flow = flow->next;
    touch(fluid, bundle);
    if (--bundle->n_flows == 0)
        leave_links(fluid, bundle);
}

/* The list of changed flows that was given out ends with the next change. */
static void new_changes(struct fluid *fluid)
{
    if (!fluid->reported)
        return;
    for (uint32_t i = 0; i < fluid->n_changed; i++)
        fluid->flows[fluid->changed[i]].changed = false;
    fluid->n_changed = 0;
    fluid->reported = false;
}

/* ---- public -------------------------------------------------------------------------------- */

ty_status fluid_create(const struct ty_allocator *allocator, struct fluid **out)
{
    struct ty_allocator source = allocator_or_default(allocator);
    struct fluid *fluid = source.alloc(source.user, sizeof *fluid);
    if (!fluid)
        return TY_ERR_NOMEM;
    *fluid = (struct fluid){.allocator = source};
    *out = fluid;
    return TY_OK;
}

void fluid_destroy(struct fluid *fluid)
{
    if (!fluid)
        return;
    struct ty_allocator allocator = fluid->allocator;
    for (size_t i = 0; i < fluid->links_capacity; i++)
        array_free(&allocator, fluid->links[i].members, fluid->links[i].member_capacity,
                   sizeof *fluid->links[i].members);
    FREE(fluid, links);
    FREE(fluid, uses);
    FREE(fluid, routes);
    FREE(fluid, bundles);
    FREE(fluid, flows);
    FREE(fluid, touched);
    FREE(fluid, changed);
    FREE(fluid, heap);
    allocator.release(allocator.user, fluid, sizeof *fluid);
}

void fluid_clear(struct fluid *fluid)
{
    fluid->reported = true;
    new_changes(fluid);
    fluid->n_links = fluid->n_uses = fluid->n_routes = fluid->n_bundles = 0;
    fluid->n_touched = 0;
}

ty_status fluid_add_link(struct fluid *fluid, double capacity_bytes_per_s, bool shared,
                         uint32_t *link)
{
    if (!(capacity_bytes_per_s > 0))
        return TY_ERR_RANGE;
    size_t need = (size_t)fluid->n_links + 1;
    if (need > FLUID_NONE - 1 || !GROW(fluid, links, need) || !GROW(fluid, touched, need) ||
        !GROW(fluid, heap, need + fluid->n_bundles))
        return TY_ERR_NOMEM;
    *link = fluid->n_links++;
    struct link *fresh = &fluid->links[*link];
    *fresh = (struct link){.capacity_bytes_per_s = capacity_bytes_per_s,
                           .members = fresh->members,
                           .member_capacity = fresh->member_capacity,
                           .shared = shared};
    return TY_OK;
}

ty_status fluid_add_route(struct fluid *fluid, const struct fluid_use *uses, uint32_t n,
                          uint32_t *route)
{
    for (uint32_t i = 0; i < n; i++)
        if (uses[i].link >= fluid->n_links || !(uses[i].bytes_per_work > 0) ||
            !isfinite(uses[i].bytes_per_work))
            return TY_ERR_RANGE;
    if (!GROW(fluid, routes, (size_t)fluid->n_routes + 1) ||
        !GROW(fluid, uses, (size_t)fluid->n_uses + n))
        return TY_ERR_NOMEM;
    struct route fresh = {INFINITY, fluid->n_uses, 0, FLUID_NONE};
    for (uint32_t i = 0; i < n; i++) {
        const struct link *link = &fluid->links[uses[i].link];
        double k = uses[i].bytes_per_work;
        if (!link->shared)
            fresh.cap_work_per_s = fmin(fresh.cap_work_per_s, link->capacity_bytes_per_s / k);
        else if (isfinite(link->capacity_bytes_per_s))
            fluid->uses[fluid->n_uses + fresh.n_uses++] = (struct use){k, uses[i].link, 0};
    }
    fluid->n_uses += fresh.n_uses;
    *route = fluid->n_routes++;
    fluid->routes[*route] = fresh;
    return TY_OK;
}

ty_status fluid_start(struct fluid *fluid, uint32_t id, uint32_t route, double cap_work_per_s,
                      double weight)
{
    if (route >= fluid->n_routes || !(cap_work_per_s > 0) || !(weight > 0) || !isfinite(weight))
        return TY_ERR_RANGE;
    if (!GROW(fluid, flows, (size_t)id + 1) || !GROW(fluid, changed, fluid->flows_capacity))
        return TY_ERR_NOMEM;
    new_changes(fluid);
    fluid->flows[id].route = route;
    fluid->flows[id].rate_work_per_s = 0;
    return join_bundle(fluid, id, cap_work_per_s, weight) ? TY_OK : TY_ERR_NOMEM;
}

ty_status fluid_set_cap(struct fluid *fluid, uint32_t id, double cap_work_per_s)
{
    struct flow *flow = &fluid->flows[id];
    double weight = fluid->bundles[flow->bundle].weight;
    if (!(cap_work_per_s > 0))
        return TY_ERR_RANGE;
    new_changes(fluid);
    leave_bundle(fluid, flow);
    return join_bundle(fluid, id, cap_work_per_s, weight) ? TY_OK : TY_ERR_NOMEM;
}

void fluid_stop(struct fluid *fluid, uint32_t id)
{
    struct flow *flow = &fluid->flows[id];
    if (flow->bundle == FLUID_NONE)
        return;
    new_changes(fluid);
    leave_bundle(fluid, flow);
    flow->bundle = FLUID_NONE;
    flow->rate_work_per_s = 0;
}

void fluid_solve(struct fluid *fluid, const uint32_t **ids, uint32_t *n)
{
    new_changes(fluid);
    fluid_fill_touched(fluid);
    fluid->reported = true;
    *ids = fluid->changed;
    *n = fluid->n_changed;
}

double fluid_rate_work_per_s(const struct fluid *fluid, uint32_t id)
{
    return fluid->flows[id].rate_work_per_s;
}
