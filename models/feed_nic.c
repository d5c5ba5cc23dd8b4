/* SPDX-License-Identifier: MIT
 *
 * Storage traffic on the NICs that training uses. Its rate is set by the job, not by the link, and
 * lies below a fair share, so in max-min terms it gets what it asks and training gets the rest:
 *
 *   NIC left = NIC - (bytes read + bytes saved of a node) / (NICs x step)
 */
#include "models/feed.h"

#include <math.h>

ty_status feed_nic_bytes_per_s(const struct ty_storage *storage, const struct setting *setting,
                               const struct ty_plan *plan, const struct ty_allocator *allocator,
                               const struct ty_storage_report *report, double *bytes_per_s,
                               struct ty_error *error)
{
    const double nodes = ceil((double)plan->n_gpus / setting->cluster.gpus_per_node);
    const double jobs_nics = nodes * setting->cluster.nics_per_node;
    double sum = 0.0;
    if (report->has_input) {
        struct feed_input input;
        const ty_status status = feed_input(storage, setting, plan, allocator, &input, error);
        if (status != TY_OK)
            return status;
        for (uint32_t i = 0; i < input.n_levels; i++)
            if (storage->tier[input.ids[i]].over_nic == TY_ON)
                sum += input.shares[i] * report->input.samples_per_s * report->input.sample_bytes;
    }
    const int target = storage->checkpoint.storage ? storage->checkpoint.storage - 1 : TY_TIER_PFS;
    if (report->has_checkpoint && storage->checkpoint.mode == TY_SAVE_ASYNC &&
        storage->tier[target].over_nic == TY_ON)
        sum += report->checkpoint.bytes / report->checkpoint.every_s;
    *bytes_per_s = sum / jobs_nics;
    return TY_OK;
}
