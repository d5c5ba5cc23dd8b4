/* SPDX-License-Identifier: MIT
 *
 * Progressive filling (handbook 6.3), only where rates can change.
 *
 * All bundles rise together: rate = weight * level. A bundle stops at the fill level of its first
 * full link, or at cap / weight.
 *
 * What stays: let the touched links be those where a flow came, went or changed. Filling proceeds
 * as in the last solution up to the first level at which a touched link filled then or would fill
 * now (the floor). Bundles that stopped below the floor keep their rate; of the others, those
 * connected to a touched link are solved again. Kept rates are never updated by differences, so
 * rounding errors do not add up. */
#include "sim/fluid_state.h"

#include <math.h>

/* Rates closer than this are the same rate: no news for the caller. */
static const double SAME_RATE_RATIO = 1e-15;

/* ---- the heap of candidates ---------------------------------------------------------------- */

static void heap_sift(struct candidate *heap, uint32_t n, uint32_t place)
{
    struct candidate candidate = heap[place];
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1].level < heap[child].level)
            child++;
        if (!(heap[child].level < candidate.level))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = candidate;
}

static void heap_drop_first(struct fluid *fluid)
{
    fluid->heap[0] = fluid->heap[--fluid->n_heap];
    if (fluid->n_heap > 0)
        heap_sift(fluid->heap, fluid->n_heap, 0);
}

/* ---- filling one connected part ------------------------------------------------------------ */

/* The level at which the link would fill if its bundles stop rising at their present levels:
 * capacity = sum of bytes_per_work * n_flows * weight * min(level of the bundle, level). */
static double fill_level(const struct fluid *fluid, const struct link *link)
{
    double level = 0;
    for (;;) {
        double residual_bytes_per_s = link->capacity_bytes_per_s, weight = 0;
        for (uint32_t i = 0; i < link->n_members; i++) {
            const struct bundle *bundle = &fluid->bundles[link->members[i].bundle];
            double load = link->members[i].bytes_per_work * bundle->n_flows * bundle->weight;
            if (bundle->level <= level)
                residual_bytes_per_s -= load * bundle->level;
            else
                weight += load;
        }
        if (weight == 0)
            return INFINITY;
        if (!(residual_bytes_per_s / weight > level))
            return level;
        level = residual_bytes_per_s / weight;
    }
}

static double floor_level(const struct fluid *fluid)
{
    double floor = INFINITY;
    for (uint32_t i = 0; i < fluid->n_touched; i++) {
        const struct link *link = &fluid->links[fluid->touched[i]];
        floor = fmin(floor, fmin(link->level, fill_level(fluid, link)));
    }
    return floor;
}

static void visit_link(struct fluid *fluid, uint32_t id)
{
    if (fluid->links[id].visited == fluid->solve)
        return;
    fluid->links[id].visited = fluid->solve;
    fluid->part_links[fluid->n_part_links++] = id;
}

static void visit_bundle(struct fluid *fluid, uint32_t id)
{
    struct bundle *bundle = &fluid->bundles[id];
    if (bundle->visited == fluid->solve)
        return;
    bundle->visited = fluid->solve;
    bundle->fixed = false;
    fluid->part_bundles[fluid->n_part_bundles++] = id;
    for (uint32_t i = 0; i < bundle->n_uses; i++)
        visit_link(fluid, fluid->uses[bundle->first_use + i].link);
}

/* Collects what is connected to the link at or above the floor, and charges the links with the
 * rates that stay. returns a level that every bundle reaches (unless its cap is lower). */
static double gather(struct fluid *fluid, uint32_t first_link, double floor)
{
    double least_level = INFINITY;
    fluid->n_part_links = fluid->n_part_bundles = 0;
    visit_link(fluid, first_link);
    for (uint32_t i = 0; i < fluid->n_part_links; i++) {
        struct link *link = &fluid->links[fluid->part_links[i]];
        double residual_bytes_per_s = link->capacity_bytes_per_s, weight = 0, all = 0;
        uint32_t n_unfixed = 0;
        for (uint32_t j = 0; j < link->n_members; j++) {
            const struct bundle *bundle = &fluid->bundles[link->members[j].bundle];
            double load = link->members[j].bytes_per_work * bundle->n_flows;
            all += load * bundle->weight;
            if (bundle->level < floor && bundle->rate_work_per_s > 0) {
                residual_bytes_per_s -= load * bundle->rate_work_per_s;
                continue;
            }
            weight += load * bundle->weight;
            n_unfixed++;
            visit_bundle(fluid, link->members[j].bundle);
        }
        link->residual_bytes_per_s = residual_bytes_per_s;
        link->weight = weight;
        link->n_unfixed = n_unfixed;
        link->level = INFINITY;
        least_level = fmin(least_level, link->capacity_bytes_per_s / all);
    }
    return least_level;
}

static void build_heap(struct fluid *fluid)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fluid->n_part_links; i++) {
        uint32_t id = fluid->part_links[i];
        const struct link *link = &fluid->links[id];
        if (link->n_unfixed > 0)
            fluid->heap[n++] =
                (struct candidate){link->residual_bytes_per_s / link->weight, id, FLUID_NONE};
    }
    for (uint32_t i = 0; i < fluid->n_part_bundles; i++) {
        uint32_t id = fluid->part_bundles[i];
        const struct bundle *bundle = &fluid->bundles[id];
        if (isfinite(bundle->cap_work_per_s))
            fluid->heap[n++] =
                (struct candidate){bundle->cap_work_per_s / bundle->weight, FLUID_NONE, id};
    }
    fluid->n_heap = n;
    for (uint32_t i = n / 2; i-- > 0;)
        heap_sift(fluid->heap, n, i);
}

static void fix(struct fluid *fluid, struct bundle *bundle, double level, double rate_work_per_s)
{
    double n_flows = bundle->n_flows;
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        const struct use *use = &fluid->uses[bundle->first_use + i];
        struct link *link = &fluid->links[use->link];
        link->residual_bytes_per_s -= use->bytes_per_work * n_flows * rate_work_per_s;
        link->weight -= use->bytes_per_work * n_flows * bundle->weight;
        link->n_unfixed--;
    }
    bundle->fixed = true;
    bundle->level = level;
    if (bundle->rate_work_per_s == rate_work_per_s)
        return;
    bundle->rate_work_per_s = rate_work_per_s;
    for (uint32_t id = bundle->first_flow; id != FLUID_NONE; id = fluid->flows[id].next)
        fluid_report(fluid, id, rate_work_per_s);
}

static void fill_link(struct fluid *fluid, struct link *link, double level)
{
    link->level = level;
    for (uint32_t i = 0; i < link->n_members; i++) {
        struct bundle *bundle = &fluid->bundles[link->members[i].bundle];
        if (!bundle->fixed)
            fix(fluid, bundle, level, fmin(level * bundle->weight, bundle->cap_work_per_s));
    }
}

/* The first candidate is a link. Its level in the heap is out of date, but never too high, once
 * bundles on it were fixed: then it is corrected and waits for its turn. returns the level now. */
static double try_link(struct fluid *fluid, double level)
{
    struct candidate *first = &fluid->heap[0];
    struct link *link = &fluid->links[first->link];
    if (link->n_unfixed == 0) {
        heap_drop_first(fluid);
        return level;
    }
    double now = fmax(level, link->residual_bytes_per_s / link->weight);
    if (now > first->level) {
        first->level = now;
        heap_sift(fluid->heap, fluid->n_heap, 0);
        return level;
    }
    heap_drop_first(fluid);
    fill_link(fluid, link, now);
    return now;
}

/* Raises the level from one candidate to the next. It never sinks: so rounding cannot leave a last
 * bundle a residual of nothing. */
static void fill(struct fluid *fluid, double level)
{
    while (fluid->n_heap > 0) {
        struct candidate first = fluid->heap[0];
        if (first.link != FLUID_NONE) {
            level = try_link(fluid, level);
            continue;
        }
        struct bundle *bundle = &fluid->bundles[first.bundle];
        heap_drop_first(fluid);
        if (bundle->fixed)
            continue;
        level = fmax(level, first.level);
        fix(fluid, bundle, first.level, bundle->cap_work_per_s);
    }
}

static void solve_part(struct fluid *fluid, uint32_t first_link, double floor)
{
    double least_level = gather(fluid, first_link, floor);
    build_heap(fluid);
    fill(fluid, isfinite(floor) ? fmax(floor, least_level) : least_level);
}

void fluid_fill_touched(struct fluid *fluid)
{
    double floor = floor_level(fluid);
    fluid->solve++;
    for (uint32_t i = 0; i < fluid->n_touched; i++) {
        struct link *link = &fluid->links[fluid->touched[i]];
        link->touched = false;
        if (link->visited != fluid->solve)
            solve_part(fluid, fluid->touched[i], floor);
    }
    fluid->n_touched = 0;
}

void fluid_report(struct fluid *fluid, uint32_t id, double rate_work_per_s)
{
    struct flow *flow = &fluid->flows[id];
    if (fabs(flow->rate_work_per_s - rate_work_per_s) <= SAME_RATE_RATIO * rate_work_per_s)
        return;
    flow->rate_work_per_s = rate_work_per_s;
    if (!flow->changed)
        fluid->changed[fluid->n_changed++] = id;
    flow->changed = true;
}
