/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: the equations of the header.
 */
#include "models/checkpoint.h"
#include "models/setting.h"
#include "sim/error.h"

#include <math.h>

double checkpoint_param_bytes(const struct checkpoint_format *format)
{
    return format->weight_bytes + format->master_bytes + format->n_moments * format->moment_bytes;
}

struct checkpoint_format checkpoint_format_of(const struct ty_plan *plan)
{
    const bool wide = precision_is_32_bit(plan->precision);
    struct checkpoint_format format = {.weight_bytes = wide ? 4.0 : 2.0,
                                       .master_bytes = wide ? 0.0 : 4.0,
                                       .moment_bytes = 4.0,
                                       .n_moments = 2.0};
    if (plan->optimizer == TY_OPTIMIZER_ADAM_16BIT)
        format.master_bytes = 0.0;
    if (plan->optimizer == TY_OPTIMIZER_ADAM_BF16 || plan->optimizer == TY_OPTIMIZER_ADAM_16BIT)
        format.moment_bytes = 2.0;
    else if (plan->optimizer == TY_OPTIMIZER_ADAM8BIT)
        format.moment_bytes = 1.0;
    else if (plan->optimizer == TY_OPTIMIZER_SGD)
        format.n_moments = 1.0;
    return format;
}

ty_status checkpoint_check(const struct checkpoint *checkpoint, struct ty_error *error)
{
    const struct {
        const char *name;
        double value, least;
    } fields[] = {{"bytes", checkpoint->bytes, 1.0},
                  {"gpus", checkpoint->gpus, 1.0},
                  {"gpus_per_node", checkpoint->gpus_per_node, 1.0},
                  {"writers", checkpoint->writers, 1.0},
                  {"files", checkpoint->files, 1.0},
                  {"file_s", checkpoint->file_s, 0.0},
                  {"request_bytes", checkpoint->request_bytes, 1.0},
                  {"requests_in_flight", checkpoint->requests_in_flight, 1.0},
                  {"copy_bytes_per_s", checkpoint->copy_bytes_per_s, 1.0},
                  {"quiesce_s", checkpoint->quiesce_s, 0.0},
                  {"slowest_writer", checkpoint->slowest_writer, 1.0},
                  {"drain_slow_ratio", checkpoint->drain_slow_ratio, 0.0},
                  {"host_copies", checkpoint->host_copies, 1.0},
                  {"readers", checkpoint->readers, 1.0}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i].value >= fields[i].least))
            return error_set(error, TY_ERR_RANGE, fields[i].name, "must be %g or more, is %g",
                             fields[i].least, fields[i].value);
    if (checkpoint->writers > checkpoint->gpus)
        return error_set(error, TY_ERR_RANGE, "writers", "%g of %g GPUs", checkpoint->writers,
                         checkpoint->gpus);
    return TY_OK;
}

static double n_nodes(const struct checkpoint *checkpoint)
{
    return ceil(checkpoint->gpus / checkpoint->gpus_per_node);
}

/* Nodes that write: writers are spread over the nodes before a node gets a second one. */
static double writing_nodes(const struct checkpoint *checkpoint)
{
    return fmin(n_nodes(checkpoint), checkpoint->writers);
}

/* A tier of which the others leave a share. */
static struct tier left_of(const struct tier *tier, double busy_ratio)
{
    struct tier left = *tier;
    const double free_ratio = 1.0 - busy_ratio;
    left.total_read_bytes_per_s *= free_ratio;
    left.total_write_bytes_per_s *= free_ratio;
    left.total_ops_per_s *= free_ratio;
    return left;
}

/* All of it `readers` times, each node its share. */
static double restore_time_s(const struct checkpoint *checkpoint, const struct tier *tier)
{
    const struct tier_use use = {n_nodes(checkpoint), checkpoint->request_bytes,
                                 checkpoint->requests_in_flight, false};
    const double node_bytes = checkpoint->bytes * checkpoint->readers / use.nodes;
    return node_bytes / tier_rate(tier, &use).bytes_per_s;
}

static ty_status check_capacity(const struct checkpoint *checkpoint, const struct tier *tier,
                                struct ty_error *error)
{
    const double nodes = tier->shared ? 1.0 : writing_nodes(checkpoint);
    const double capacity_bytes = tier->capacity_bytes * nodes;
    if (checkpoint->bytes <= capacity_bytes)
        return TY_OK;
    return error_set(error, TY_ERR_INFEASIBLE, "bytes", "%g bytes on %s, which holds %g",
                     checkpoint->bytes, tier->name, capacity_bytes);
}

ty_status checkpoint_cost(const struct checkpoint *checkpoint, const struct tier *tier,
                          double busy_ratio, struct checkpoint_cost *out, struct ty_error *error)
{
    if (!(busy_ratio >= 0.0 && busy_ratio < 1.0))
        return error_set(error, TY_ERR_RANGE, "busy_ratio", "must be in [0, 1), is %g", busy_ratio);
    const ty_status status = check_capacity(checkpoint, tier, error);
    if (status != TY_OK)
        return status;
    const struct tier left = left_of(tier, busy_ratio);
    const double nodes = writing_nodes(checkpoint);
    const struct tier_use use = {nodes, checkpoint->request_bytes, checkpoint->requests_in_flight,
                                 true};
    const bool async = checkpoint->mode == CHECKPOINT_ASYNC;
    const double node_bytes = checkpoint->bytes / nodes;
    out->write = tier_rate(&left, &use);
    const double bytes_s = node_bytes / out->write.bytes_per_s;
    const double files_s = checkpoint->files / nodes * checkpoint->file_s;
    out->file_bound = files_s > bytes_s;
    out->gpu_bytes = checkpoint->bytes / checkpoint->writers;
    out->copy_s = out->gpu_bytes / checkpoint->copy_bytes_per_s;
    out->write_s = fmax(bytes_s, files_s) * checkpoint->slowest_writer;
    out->blocking_s = checkpoint->quiesce_s + out->copy_s + (async ? 0.0 : out->write_s);
    out->drain_s = async ? out->write_s : 0.0;
    out->lost_s = out->blocking_s + out->drain_s * checkpoint->drain_slow_ratio;
    out->host_bytes_per_node = async ? node_bytes * checkpoint->host_copies : 0.0;
    out->restore_s = restore_time_s(checkpoint, &left);
    return TY_OK;
}
