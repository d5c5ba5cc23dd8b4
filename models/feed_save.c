/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of a plan, and both lines of a step:
 *
 *   bytes        P (weights + master + moments), every parameter once
 *   checkpoint   lost_s / steps between two saves
 */
#include "include/trainyard_cost.h"
#include "models/failures.h"
#include "models/feed.h"
#include "models/reliability.h"

#include <math.h>

#define DEFAULT_EVERY_S  3600.0
#define DEFAULT_FILE_S   2.3e-3 /* source: open() on Lustre, handbook 7.2 */
#define WRITE_BYTES      16e6   /* of one request; large enough to hide latency: assumed */
#define WRITES_IN_FLIGHT 32.0   /* of a node: assumed */

static double or_default(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

double feed_save_bytes(const struct ty_saves *saves, const struct setting *setting,
                       const struct ty_plan *plan)
{
    const struct ty_params *params = &setting->params;
    const struct checkpoint_format format = checkpoint_format_of(plan);
    const double each = or_default(saves->bytes_per_param, checkpoint_param_bytes(&format));
    if (setting->model.lora_rank == 0)
        return (params->total + params->mtp) * each;
    double adapters = 0.0; /* the frozen weights are not saved again */
    for (uint32_t i = 0; i < setting->model.n_layers; i++)
        adapters += params->adapter[setting->model.layer_kind[i]];
    return adapters * each;
}

/* Sharded: every rank writes its share of the states once; consolidated: rank 0 writes it all. */
static struct checkpoint describe(const struct ty_saves *saves, const struct setting *setting,
                                  const struct ty_plan *plan)
{
    const struct ty_cluster *cluster = &setting->cluster;
    const bool one = saves->consolidated == TY_ON;
    const double gpus_per_node = fmin(plan->n_gpus, cluster->gpus_per_node);
    const double writers = one ? 1.0 : plan->n_gpus;
    return (struct checkpoint){.bytes = feed_save_bytes(saves, setting, plan),
                               .gpus = plan->n_gpus,
                               .gpus_per_node = gpus_per_node,
                               .writers = writers,
                               .files = writers,
                               .file_s = or_default(saves->file_s, DEFAULT_FILE_S),
                               .request_bytes = WRITE_BYTES,
                               .requests_in_flight = WRITES_IN_FLIGHT,
                               .copy_bytes_per_s = cluster->gpu.pcie_bytes_per_s,
                               .slowest_writer = or_default(saves->slowest_writer, 1.0),
                               .drain_slow_ratio = or_default(saves->drain_slow_ratio, 0.0),
                               .host_copies = or_default(saves->host_copies, 1.0),
                               .readers = or_default(saves->readers, 1.0),
                               .mode = saves->mode == TY_SAVE_ASYNC ? CHECKPOINT_ASYNC
                                                                    : CHECKPOINT_SYNC};
}

/* Steps between two saves: as asked, the best, or an hour; a drain must end before the next. */
static double steps_between(const struct ty_saves *saves, double step_s,
                            const struct ty_save_report *report)
{
    if (saves->every_steps)
        return fmax(saves->every_steps, ceil(report->drain_s / step_s * (1.0 - 1e-12)));
    const double best_s = isnan(report->best_s) ? DEFAULT_EVERY_S : report->best_s;
    const double every_s = or_default(saves->every_s, best_s);
    return reliability_round_s(every_s, step_s, report->drain_s) / step_s;
}

ty_status feed_save(const struct ty_storage *storage, const struct setting *setting,
                    const struct ty_plan *plan, double step_s, double busy_ratio,
                    struct ty_save_report *out, struct ty_error *error)
{
    const struct ty_saves *saves = &storage->checkpoint;
    const uint32_t id = saves->storage ? (uint32_t)saves->storage - 1 : TY_TIER_PFS;
    const struct tier tier = feed_tier(storage, &setting->cluster, (enum ty_tier_id)id);
    const struct checkpoint checkpoint = describe(saves, setting, plan);
    struct checkpoint_cost cost;
    ty_status status = checkpoint_check(&checkpoint, error);
    if (status == TY_OK)
        status = checkpoint_cost(&checkpoint, &tier, busy_ratio, &cost, error);
    if (status != TY_OK)
        return status;
    const double nodes = ceil((double)plan->n_gpus / setting->cluster.gpus_per_node);
    const double mtbf_s =
        storage->failures ? failures_mtbf_s(storage->failures, nodes) : (double)INFINITY;
    *out = (struct ty_save_report){.bytes = checkpoint.bytes,
                                   .gpu_bytes = cost.gpu_bytes,
                                   .copy_s = cost.copy_s,
                                   .write_s = cost.write_s,
                                   .blocking_s = cost.blocking_s,
                                   .drain_s = cost.drain_s,
                                   .lost_s = cost.lost_s,
                                   .host_bytes_per_node = cost.host_bytes_per_node,
                                   .restore_s = cost.restore_s,
                                   .write_bytes_per_s = cost.write.bytes_per_s,
                                   .tier = tier.name,
                                   .limit = cost.file_bound ? "time per file"
                                                            : tier_limit_text(cost.write.limit),
                                   .best_s = (double)NAN,
                                   .young_daly_s = (double)NAN};
    const struct checkpoint_format format = checkpoint_format_of(plan);
    out->bytes_per_param = or_default(saves->bytes_per_param, checkpoint_param_bytes(&format));
    if (isfinite(mtbf_s)) {
        out->best_s = reliability_best_interval_s(mtbf_s, cost.lost_s);
        out->young_daly_s = reliability_young_daly_s(mtbf_s, cost.lost_s);
    }
    out->n_steps = steps_between(saves, step_s, out);
    out->step_s = out->lost_s / out->n_steps;
    out->every_s = out->n_steps * (step_s + out->step_s);
    return TY_OK;
}

/* ---- both --------------------------------------------------------------------------------- */

/* Share of the checkpoint's tier that the loaders of all nodes take while it drains. A save that
 * stops training stops them too. */
static double busy_ratio(const struct ty_storage *storage, const struct setting *setting,
                         const struct ty_input_report *input)
{
    const int source = storage->input.storage ? storage->input.storage : TY_TIER_PFS + 1;
    const int target = storage->checkpoint.storage ? storage->checkpoint.storage : TY_TIER_PFS + 1;
    if (source != target || storage->checkpoint.mode != TY_SAVE_ASYNC)
        return 0.0;
    const struct tier tier = feed_tier(storage, &setting->cluster, (enum ty_tier_id)(source - 1));
    const double read_bytes_per_s =
        (1.0 - input->hit_ratio) * input->samples_per_s * input->sample_bytes;
    return fmin(read_bytes_per_s / tier.total_read_bytes_per_s, 0.99);
}

/* Where a tier has a price: the data set on its source, as much of it as each cache holds, and one
 * checkpoint. */
static double money_per_month(const struct ty_storage *storage, const struct setting *setting,
                              const struct ty_plan *plan, const struct ty_storage_report *report)
{
    const struct ty_input *input = &storage->input;
    const int source = input->storage ? input->storage - 1 : TY_TIER_PFS;
    const int target = storage->checkpoint.storage ? storage->checkpoint.storage - 1 : TY_TIER_PFS;
    const double nodes = ceil((double)plan->n_gpus / setting->cluster.gpus_per_node);
    double money = 0.0;
    bool priced = false;
    for (int id = 0; id < TY_N_TIERS; id++) {
        const struct tier tier = feed_tier(storage, &setting->cluster, (enum ty_tier_id)id);
        const double copies = tier.shared ? 1.0 : nodes;
        double bytes = 0.0;
        if (report->has_input && !isnan(input->data_bytes)) {
            if (id == source)
                bytes += input->data_bytes * copies;
            else if (input->caches >> id & 1)
                bytes += fmin(tier.capacity_bytes, input->data_bytes) * copies;
        }
        if (report->has_checkpoint && id == target)
            bytes += report->checkpoint.bytes;
        if (isnan(storage->tier[id].price_tb_month) || !(bytes > 0.0))
            continue;
        priced = true;
        money += 1e-12 * bytes * storage->tier[id].price_tb_month;
    }
    return priced ? money : (double)NAN;
}

ty_status feed_step(const struct ty_storage *storage, const struct setting *setting,
                    const struct ty_plan *plan, const struct ty_allocator *allocator,
                    struct step_result *step, struct ty_storage_report *out, struct ty_error *error)
{
    ty_status status = feed_check(storage, &setting->cluster, error);
    *out = (struct ty_storage_report){.has_input = storage->input.kind != TY_INPUT_NONE,
                                      .has_checkpoint = storage->checkpoint.mode != TY_SAVE_NONE};
    if (status == TY_OK && out->has_input)
        status = feed_report(storage, setting, plan, step->time_s, allocator, &out->input, error);
    if (status != TY_OK)
        return status;
    const double step_s = step->time_s + out->input.stall_s;
    if (out->has_checkpoint)
        status = feed_save(storage, setting, plan, step_s,
                           out->has_input ? busy_ratio(storage, setting, &out->input) : 0.0,
                           &out->checkpoint, error);
    if (status != TY_OK)
        return status;
    out->money_per_month = money_per_month(storage, setting, plan, out);
    step->breakdown_s[TY_PART_INPUT_STALL] += out->input.stall_s;
    step->breakdown_s[TY_PART_CHECKPOINT] += out->checkpoint.step_s;
    step->time_s = step_s + out->checkpoint.step_s;
    step->bubble_ratio = step->breakdown_s[TY_PART_BUBBLE] / step->time_s;
    return TY_OK;
}
