/* SPDX-License-Identifier: MIT
 *
 * Progressive filling (handbook 6.3), only where the solution changes.
 *
 * All bundles rise together: rate = weight * level. A bundle stops at the fill level of its first
 * full link (its bottleneck), or at cap / weight.
 *
 * The level is raised from 0 as if to solve anew, but only the links of a growing `part` are
 * filled: first the touched links (where a flow came, went or changed); then, at the level where a
 * bundle first departs from the last solution (it stops earlier, or does not stop where it did),
 * all its links. Everything outside the part behaves as before: a bundle whose bottleneck is
 * outside stops at its old level. So the cost is that of what changes, and rates that stay are
 * kept to the bit, not updated by differences. */
#include "sim/fluid_state.h"

#include <math.h>

/* Levels closer than this are the same: rounding must not look like a change. */
static const double SAME_RATIO = 1e-13;

static bool same(double a, double b)
{
    return fabs(a - b) <= SAME_RATIO * b;
}

/* ---- the heap of candidates ---------------------------------------------------------------- */

static void heap_push(struct fluid *fluid, struct candidate candidate)
{
    uint32_t place = fluid->n_heap++;
    while (place > 0 && candidate.level < fluid->heap[(place - 1) / 2].level) {
        fluid->heap[place] = fluid->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    fluid->heap[place] = candidate;
}

/* Puts the candidate in place of the first one. */
static void heap_replace(struct fluid *fluid, struct candidate candidate)
{
    struct candidate *heap = fluid->heap;
    uint32_t n = fluid->n_heap, place = 0;
    for (uint32_t child = 1; child < n; child = 2 * place + 1) {
        if (child + 1 < n && heap[child + 1].level < heap[child].level)
            child++;
        if (!(heap[child].level < candidate.level))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = candidate;
}

static void heap_drop(struct fluid *fluid)
{
    if (--fluid->n_heap > 0)
        heap_replace(fluid, fluid->heap[fluid->n_heap]);
}

/* ---- filling ------------------------------------------------------------------------------- */

static bool in_part(const struct fluid *fluid, uint32_t link)
{
    return link != FLUID_NONE && fluid->links[link].visited == fluid->solve;
}

/* Does the bundle still rise at this level, as far as known? */
static bool rises(struct fluid *fluid, uint32_t id, double level)
{
    struct bundle *bundle = &fluid->bundles[id];
    if (bundle->visited == fluid->solve)
        return !bundle->fixed;
    if (bundle->level < level)
        return false;
    bundle->visited = fluid->solve;
    bundle->fixed = false;
    if (isfinite(bundle->level))
        heap_push(fluid, (struct candidate){bundle->level, FLUID_NONE, id});
    return true;
}

/* The link joins the part at this level. */
static void enter(struct fluid *fluid, uint32_t id, double level)
{
    struct link *link = &fluid->links[id];
    double residual_bytes_per_s = link->capacity_bytes_per_s, weight = 0;
    uint32_t n_rising = 0;
    for (uint32_t i = 0; i < link->n_members; i++) {
        uint32_t bundle_id = link->members[i].bundle;
        const struct bundle *bundle = &fluid->bundles[bundle_id];
        double load = link->members[i].bytes_per_work * bundle->n_flows;
        if (rises(fluid, bundle_id, level)) {
            weight += load * bundle->weight;
            n_rising++;
        } else {
            residual_bytes_per_s -= load * bundle->rate_work_per_s;
        }
    }
    link->visited = fluid->solve;
    link->residual_bytes_per_s = residual_bytes_per_s;
    link->weight = weight;
    link->n_rising = n_rising;
    if (n_rising > 0)
        heap_push(fluid, (struct candidate){residual_bytes_per_s / weight, id, FLUID_NONE});
}

static void enter_all(struct fluid *fluid, const struct bundle *bundle, double level)
{
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        uint32_t link = fluid->uses[bundle->first_use + i].link;
        if (!in_part(fluid, link))
            enter(fluid, link, level);
    }
}

/* Gives the bundle its level and tells its flows. At the cap, but for rounding, is at the cap. */
static void settle(struct fluid *fluid, struct bundle *bundle, double level)
{
    bool capped = level >= bundle->cap_level * (1 - SAME_RATIO);
    bundle->level = level;
    bundle->rate_work_per_s = capped ? bundle->cap_work_per_s : level * bundle->weight;
    for (uint32_t id = bundle->first_flow; id != FLUID_NONE; id = fluid->flows[id].next)
        fluid_report(fluid, id, bundle->rate_work_per_s);
}

/* The bundle stops at this level. */
static void stop(struct fluid *fluid, struct bundle *bundle, double level, uint32_t bottleneck)
{
    bool news = bundle->rate_work_per_s == 0 || !same(level, bundle->level);
    bundle->fixed = true;
    bundle->bottleneck = bottleneck;
    if (news)
        settle(fluid, bundle, level);
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        const struct use *use = &fluid->uses[bundle->first_use + i];
        struct link *link = &fluid->links[use->link];
        double load = use->bytes_per_work * bundle->n_flows;
        if (link->visited != fluid->solve)
            continue;
        link->residual_bytes_per_s -= load * bundle->rate_work_per_s;
        link->weight -= load * bundle->weight;
        link->n_rising--;
    }
    if (news)
        enter_all(fluid, bundle, level);
}

/* A short cut for the commonest case, a bundle that shares none of its links: no heap. returns
 * false if it does share one. */
static bool settle_alone(struct fluid *fluid, struct bundle *bundle)
{
    double level = bundle->cap_level;
    uint32_t bottleneck = FLUID_NONE;
    if (bundle->visited == fluid->solve && bundle->fixed)
        return true;
    for (uint32_t i = 0; i < bundle->n_uses; i++) {
        const struct use *use = &fluid->uses[bundle->first_use + i];
        const struct link *link = &fluid->links[use->link];
        double load = use->bytes_per_work * bundle->n_flows * bundle->weight;
        if (link->n_members != 1)
            return false;
        if (link->capacity_bytes_per_s < level * load) {
            level = link->capacity_bytes_per_s / load;
            bottleneck = use->link;
        }
    }
    bundle->bottleneck = bottleneck;
    bundle->visited = fluid->solve;
    bundle->fixed = true;
    settle(fluid, bundle, level);
    return true;
}

/* The first candidate is a link. Its level in the heap is out of date, but never too high, once
 * bundles on it have stopped: then it is corrected and waits for its turn. The level never sinks:
 * so rounding cannot leave a last bundle a residual of nothing. returns the level now. */
static double try_link(struct fluid *fluid, double level)
{
    struct candidate first = fluid->heap[0];
    struct link *link = &fluid->links[first.link];
    if (link->n_rising == 0) {
        heap_drop(fluid);
        return level;
    }
    double now = fmax(level, link->residual_bytes_per_s / link->weight);
    if (now > first.level) {
        first.level = now;
        heap_replace(fluid, first);
        return level;
    }
    heap_drop(fluid);
    for (uint32_t i = 0; link->n_rising > 0; i++) {
        struct bundle *bundle = &fluid->bundles[link->members[i].bundle];
        if (bundle->visited == fluid->solve && !bundle->fixed)
            stop(fluid, bundle, now, first.link);
    }
    return now;
}

/* The first candidate is a bundle at its cap or where it stopped in the last solution. If its
 * bottleneck then is in the part now, that link decides: the bundle waits a little, in case the
 * link fills at the same level but for rounding, then rises on. returns the level now. */
static double try_bundle(struct fluid *fluid, double level)
{
    struct candidate first = fluid->heap[0];
    struct bundle *bundle = &fluid->bundles[first.bundle];
    if (bundle->fixed) {
        heap_drop(fluid);
        return level;
    }
    level = fmax(level, first.level);
    if (first.level >= bundle->cap_level) {
        heap_drop(fluid);
        stop(fluid, bundle, bundle->cap_level, FLUID_NONE);
    } else if (!in_part(fluid, bundle->bottleneck)) {
        heap_drop(fluid);
        stop(fluid, bundle, bundle->level, bundle->bottleneck);
    } else if (first.level == bundle->level) {
        first.level *= 1 + SAME_RATIO;
        heap_replace(fluid, first);
    } else {
        heap_drop(fluid);
        enter_all(fluid, bundle, level);
        if (isfinite(bundle->cap_level))
            heap_push(fluid, (struct candidate){bundle->cap_level, FLUID_NONE, first.bundle});
    }
    return level;
}

void fluid_fill_touched(struct fluid *fluid)
{
    double level = 0;
    fluid->solve++;
    for (uint32_t i = 0; i < fluid->n_touched; i++) {
        struct link *link = &fluid->links[fluid->touched[i]];
        link->touched = false;
        if (link->n_members == 0)
            continue;
        if (link->n_members != 1 || !settle_alone(fluid, &fluid->bundles[link->members[0].bundle]))
            enter(fluid, fluid->touched[i], 0);
    }
    fluid->n_touched = 0;
    while (fluid->n_heap > 0)
        level =
            fluid->heap[0].link != FLUID_NONE ? try_link(fluid, level) : try_bundle(fluid, level);
}

void fluid_report(struct fluid *fluid, uint32_t id, double rate_work_per_s)
{
    struct flow *flow = &fluid->flows[id];
    if (flow->rate_work_per_s == rate_work_per_s)
        return;
    flow->rate_work_per_s = rate_work_per_s;
    if (!flow->changed)
        fluid->changed[fluid->n_changed++] = id;
    flow->changed = true;
}
