/* SPDX-License-Identifier: MIT
 *
 * Rates of storage tiers: the equations of the header, term by term.
 */
#include "models/tiers.h"
#include "sim/error.h"

#include <math.h>

static const char *const LIMIT_TEXTS[] = {
#define X(id, text) text,
    TIER_LIMIT_LIST(X)
#undef X
};

const char *tier_limit_text(enum tier_limit limit)
{
    return limit < TIER_N_LIMITS ? LIMIT_TEXTS[limit] : "";
}

ty_status tier_check(const struct tier *tier, struct ty_error *error)
{
    const struct {
        const char *name;
        double value;
    } positive[] = {{"read_bytes_per_s", tier->read_bytes_per_s},
                    {"total_read_bytes_per_s", tier->total_read_bytes_per_s},
                    {"write_bytes_per_s", tier->write_bytes_per_s},
                    {"total_write_bytes_per_s", tier->total_write_bytes_per_s},
                    {"ops_per_s", tier->ops_per_s},
                    {"total_ops_per_s", tier->total_ops_per_s},
                    {"capacity_bytes", tier->capacity_bytes}};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (!(positive[i].value > 0.0))
            return error_set(error, TY_ERR_RANGE, positive[i].name, "%s: must be above 0, is %g",
                             tier->name, positive[i].value);
    if (!(tier->latency_s >= 0.0) || isinf(tier->latency_s))
        return error_set(error, TY_ERR_RANGE, "latency_s", "%s: must be 0 or more, is %g",
                         tier->name, tier->latency_s);
    return TY_OK;
}

/* ---- rates --------------------------------------------------------------------------------- */

/* Seconds one request occupies a node's share of the tier: max(b / B, 1 / I). */
static double request_s(const struct tier *tier, const struct tier_use *use, enum tier_limit *limit)
{
    const double node = use->write ? tier->write_bytes_per_s : tier->read_bytes_per_s;
    const double total = use->write ? tier->total_write_bytes_per_s : tier->total_read_bytes_per_s;
    const double terms[] = {[TIER_NODE_BANDWIDTH] = use->request_bytes / node,
                            [TIER_TOTAL_BANDWIDTH] = use->request_bytes * use->nodes / total,
                            [TIER_NODE_OPS] = 1.0 / tier->ops_per_s,
                            [TIER_TOTAL_OPS] = use->nodes / tier->total_ops_per_s};
    *limit = TIER_NODE_BANDWIDTH;
    for (enum tier_limit i = TIER_TOTAL_BANDWIDTH; i < TIER_LATENCY; i++)
        if (terms[i] > terms[*limit])
            *limit = i;
    return terms[*limit];
}

/* The busiest level: seconds per request of a node, where and why. */
static double busiest_s(const struct tier *levels, const double *shares, uint32_t n,
                        const struct tier_use *use, struct tier_rate *rate)
{
    double busiest = -1.0;
    for (uint32_t i = 0; i < n; i++) {
        enum tier_limit limit;
        const double busy_s = shares[i] * request_s(&levels[i], use, &limit);
        if (busy_s > busiest) {
            busiest = busy_s;
            rate->limit = limit;
            rate->level = i;
        }
    }
    return busiest;
}

/* The mean latency, and the level that adds most to it. */
static double latency_s(const struct tier *levels, const double *shares, uint32_t n,
                        uint32_t *slowest)
{
    double sum_s = 0.0;
    *slowest = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double added_s = shares[i] * levels[i].latency_s;
        if (added_s > shares[*slowest] * levels[*slowest].latency_s)
            *slowest = i;
        sum_s += added_s;
    }
    return sum_s;
}

struct tier_rate tier_stack_rate(const struct tier *levels, const double *shares, uint32_t n,
                                 const struct tier_use *use)
{
    struct tier_rate rate = {0};
    uint32_t slowest;
    const double busy_s = busiest_s(levels, shares, n, use, &rate);
    const double wait_s = latency_s(levels, shares, n, &slowest) / use->in_flight;
    if (wait_s > busy_s) {
        rate.limit = TIER_LATENCY;
        rate.level = slowest;
    }
    rate.bytes_per_s = use->request_bytes / (busy_s + wait_s);
    return rate;
}

double tier_stack_latency_s(const struct tier *levels, const double *shares, uint32_t n)
{
    uint32_t slowest;
    return latency_s(levels, shares, n, &slowest);
}

struct tier_rate tier_rate(const struct tier *tier, const struct tier_use *use)
{
    const double all = 1.0;
    return tier_stack_rate(tier, &all, 1, use);
}

/* t = b / rate is to be reached: k = latency / (t - busy). */
double tier_stack_in_flight(const struct tier *levels, const double *shares, uint32_t n,
                            const struct tier_use *use, double node_bytes_per_s)
{
    struct tier_rate rate;
    uint32_t slowest;
    const double busy_s = busiest_s(levels, shares, n, use, &rate);
    const double wait_s = latency_s(levels, shares, n, &slowest);
    const double slack_s = use->request_bytes / node_bytes_per_s - busy_s;
    if (slack_s < 0.0 || (slack_s == 0.0 && wait_s > 0.0))
        return INFINITY;
    return wait_s > 0.0 ? wait_s / slack_s : 0.0;
}

/* ---- placement ----------------------------------------------------------------------------- */

ty_status tier_shares(const struct tier *levels, uint32_t n, const struct tier_data *data,
                      const struct ty_allocator *allocator, double *shares)
{
    if (n < 1 || n > TIER_MAX_LEVELS || !(data->bytes > 0.0) || !(data->nodes >= 1.0))
        return TY_ERR_RANGE;
    double cached_bytes = 0.0, served = 0.0, found[TIER_MAX_LEVELS];
    for (uint32_t i = 0; i + 1 < n; i++) {
        const double copies = data->cooperative && !levels[i].shared ? data->nodes : 1.0;
        cached_bytes += levels[i].capacity_bytes * copies;
        double hit_ratio;
        const struct cache_policy *policy = levels[i].policy ? levels[i].policy : data->policy;
        const ty_status status =
            cache_shuffled_hit_ratio(policy, cached_bytes / data->bytes, allocator, &hit_ratio);
        if (status != TY_OK)
            return status;
        found[i] = fmax(hit_ratio - served, 0.0);
        served += found[i];
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        shares[i] = found[i];
    shares[n - 1] = 1.0 - served;
    return TY_OK;
}

static ty_status check_classes(const struct tier_placement *placement)
{
    const struct ty_data_class *classes = placement->classes;
    if (placement->n_levels < 1 || placement->n_levels > TIER_MAX_LEVELS ||
        !(placement->nodes >= 1.0))
        return TY_ERR_RANGE;
    for (uint32_t i = 0; i < placement->n_classes; i++) {
        if (!(classes[i].bytes > 0.0) || !(classes[i].reads_per_s >= 0.0))
            return TY_ERR_RANGE;
        if (i > 0 && classes[i].reads_per_s * classes[i - 1].bytes >
                         classes[i - 1].reads_per_s * classes[i].bytes)
            return TY_ERR_INPUT;
    }
    return TY_OK;
}

/* Puts a class on the first levels that have room; returns the bytes that found none. */
static double place_class(double bytes, double *room, uint32_t n_levels, double *placed)
{
    for (uint32_t level = 0; level < n_levels; level++) {
        placed[level] = fmin(bytes, room[level]);
        room[level] -= placed[level];
        bytes -= placed[level];
    }
    return bytes;
}

ty_status tier_place(const struct tier_placement *placement, double *placed, double *shares)
{
    const ty_status status = check_classes(placement);
    if (status != TY_OK)
        return status;
    const uint32_t n_levels = placement->n_levels;
    double room[TIER_MAX_LEVELS], reads[TIER_MAX_LEVELS] = {0}, total = 0.0;
    for (uint32_t level = 0; level < n_levels; level++)
        room[level] = placement->levels[level].capacity_bytes *
                      (placement->levels[level].shared ? 1.0 : placement->nodes);
    for (uint32_t i = 0; i < placement->n_classes; i++) {
        const struct ty_data_class *class_ = &placement->classes[i];
        double *row = placed + (size_t)i * n_levels;
        if (place_class(class_->bytes, room, n_levels, row) > 0.0)
            return TY_ERR_INFEASIBLE;
        for (uint32_t level = 0; level < n_levels; level++)
            reads[level] += class_->reads_per_s * row[level] / class_->bytes;
        total += class_->reads_per_s;
    }
    for (uint32_t level = 0; level < n_levels; level++)
        shares[level] = total > 0.0 ? reads[level] / total : 0.0;
    return TY_OK;
}

void tier_arriving(const double *before, const double *after, uint32_t n_classes, uint32_t n_levels,
                   double *arriving)
{
    for (uint32_t level = 0; level < n_levels; level++)
        arriving[level] = 0.0;
    for (size_t i = 0; i < (size_t)n_classes * n_levels; i++)
        arriving[i % n_levels] += fmax(after[i] - before[i], 0.0);
}

double tier_move_s(const struct tier *from, const struct tier *to, const struct tier_use *use,
                   double bytes, double move_bytes_per_s)
{
    struct tier_use reading = *use, writing = *use;
    reading.write = false;
    writing.write = true;
    const double slowest = fmin(tier_rate(from, &reading).bytes_per_s,
                                fmin(tier_rate(to, &writing).bytes_per_s, move_bytes_per_s));
    return bytes / (use->nodes * slowest);
}

/* Water filling: who asks for less than an equal share of what is left gets it and leaves. */
void tier_divide(double capacity, const double *demand, uint32_t n, double *got)
{
    uint32_t n_open = n;
    for (uint32_t i = 0; i < n; i++)
        got[i] = -1.0;
    for (bool settled = true; settled && n_open > 0;) {
        settled = false;
        const double level = capacity / n_open;
        for (uint32_t i = 0; i < n; i++) {
            if (got[i] >= 0.0 || demand[i] > level)
                continue;
            got[i] = demand[i];
            capacity -= demand[i];
            n_open--;
            settled = true;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (got[i] < 0.0)
            got[i] = capacity / n_open;
}
