/* SPDX-License-Identifier: MIT
 *
 * Hot and cold data on the storage tiers of a cluster (trainyard_storage.h): placement and moves of
 * tiers.h with the tiers' defaults filled in.
 */
#include "models/feed.h"
#include "sim/error.h"

#include <math.h>

#define MOVE_REQUEST_BYTES 1048576.0 /* data move in large requests, enough of them in flight */

/* Tiers that hold no data have no room. */
static ty_status fill_tiers(const struct ty_data *data, struct tier levels[TY_N_TIERS],
                            struct ty_error *error)
{
    struct ty_cluster cluster;
    ty_status status = cluster_resolve(data->cluster, &cluster, NULL, error);
    if (status == TY_OK && (data->tiers == 0 || data->tiers >> TY_N_TIERS))
        status = error_set(error, TY_ERR_RANGE, "tiers", "must be bits of dram, nvme, pfs, object");
    for (uint32_t id = 0; status == TY_OK && id < TY_N_TIERS; id++) {
        levels[id] = feed_tier(data->storage, &cluster, (enum ty_tier_id)id);
        status = tier_check(&levels[id], error);
        if (!(data->tiers >> id & 1))
            levels[id].capacity_bytes = 0.0;
    }
    return status;
}

ty_status ty_data_place(const struct ty_data *data, double *placed_bytes, double share[TY_N_TIERS],
                        struct ty_error *error)
{
    struct tier levels[TY_N_TIERS];
    ty_status status = fill_tiers(data, levels, error);
    if (status != TY_OK)
        return status;
    const struct tier_placement placement = {.levels = levels,
                                             .n_levels = TY_N_TIERS,
                                             .n_classes = data->n_classes,
                                             .classes = data->classes,
                                             .nodes = data->n_nodes};
    status = tier_place(&placement, placed_bytes, share);
    if (status == TY_OK)
        return TY_OK;
    return error_set(error, status, "data", "%s",
                     status == TY_ERR_INFEASIBLE ? "is larger than the tiers together"
                     : status == TY_ERR_INPUT
                         ? "must be in order: most reads per byte first"
                         : "bytes must be above 0, reads 0 or more, nodes 1 or more");
}

/* What leaves the tiers of one class goes to those that gain, fastest first; one after the other.
 */
static double move_class_s(const struct tier levels[TY_N_TIERS], const struct tier_use *use,
                           const double *before, const double *after, double move_bytes_per_s)
{
    double left[TY_N_TIERS], time_s = 0.0;
    for (uint32_t i = 0; i < TY_N_TIERS; i++)
        left[i] = before[i] - after[i];
    for (uint32_t from = 0; from < TY_N_TIERS; from++)
        for (uint32_t to = 0; to < TY_N_TIERS; to++) {
            const double bytes = fmin(left[from], -left[to]);
            if (!(bytes > 0.0))
                continue;
            left[from] -= bytes;
            left[to] += bytes;
            time_s += tier_move_s(&levels[from], &levels[to], use, bytes, move_bytes_per_s);
        }
    return time_s;
}

static bool same_bytes(const double *before, const double *after)
{
    double sum = 0.0, change = 0.0;
    for (uint32_t i = 0; i < TY_N_TIERS; i++) {
        sum += after[i];
        change += after[i] - before[i];
    }
    return fabs(change) <= 1e-9 * sum;
}

ty_status ty_data_move(const struct ty_data *data, const double *before_bytes,
                       const double *after_bytes, double move_bytes_per_s,
                       double arriving_bytes[TY_N_TIERS], double *time_s, struct ty_error *error)
{
    struct tier levels[TY_N_TIERS];
    const struct tier_use use = {
        .nodes = data->n_nodes, .request_bytes = MOVE_REQUEST_BYTES, .in_flight = (double)INFINITY};
    const ty_status status = fill_tiers(data, levels, error);
    if (status != TY_OK)
        return status;
    if (!(data->n_nodes >= 1.0) || !(move_bytes_per_s > 0.0))
        return error_set(error, TY_ERR_RANGE, "move", "nodes must be 1 or more, its rate above 0");
    double sum_s = 0.0;
    for (uint32_t i = 0; i < data->n_classes; i++) {
        const double *before = before_bytes + i * TY_N_TIERS, *after = after_bytes + i * TY_N_TIERS;
        if (!same_bytes(before, after))
            return error_set(error, TY_ERR_INPUT, "move", "class %u has other bytes after it", i);
        sum_s += move_class_s(levels, &use, before, after, move_bytes_per_s);
    }
    tier_arriving(before_bytes, after_bytes, data->n_classes, TY_N_TIERS, arriving_bytes);
    *time_s = sum_s;
    return TY_OK;
}
