/* SPDX-License-Identifier: MIT
 *
 * Weights, gradients and optimizer states of one parameter (handbook 3.1): the bytes of each in the
 * precision and optimizer of the plan, over the ranks among which its sharding divides them.
 */
#include "models/memory_states.h"

#include <math.h>

bool memory_shards_params(const struct ty_plan *plan)
{
    return plan->sharding == TY_SHARDING_ZERO3 || plan->sharding == TY_SHARDING_HSDP;
}

/* Ranks among which the states of a dense or expert parameter are divided. */
static double shard_ranks(const struct ty_plan *plan, bool expert)
{
    if (plan->sharding == TY_SHARDING_NONE)
        return 1.0;
    if (!expert)
        return plan->shard_group;
    const double replicas = (double)plan->dp * plan->cp / plan->shard_group;
    return fmax(1.0, plan->edp / replicas);
}

/* Weights, gradients and moments in 16 bits, nothing kept in fp32. */
static bool pure_16_bit(const struct ty_plan *plan)
{
    return plan->optimizer == TY_OPTIMIZER_ADAM_16BIT && !precision_is_32_bit(plan->precision);
}

double memory_gradient_copy_bytes(const struct ty_plan *plan)
{
    return plan->precision == TY_FP16_PRECISION && plan->grad_dtype == TY_BF16_PRECISION ? 4.0
                                                                                         : 0.0;
}

static double optimizer_bytes(const struct ty_plan *plan)
{
    double bytes = precision_is_32_bit(plan->precision) || pure_16_bit(plan)
                       ? 0.0
                       : 4.0; /* fp32 master weight */
    bytes += memory_gradient_copy_bytes(plan);
    switch (plan->optimizer) {
    case TY_OPTIMIZER_ADAM_BF16: /* both moments in bf16 */
    case TY_OPTIMIZER_ADAM_16BIT:
        return bytes + 4.0;
    case TY_OPTIMIZER_ADAM8BIT:
        return bytes + 2.0;
    case TY_OPTIMIZER_SGD: /* momentum */
        return bytes + 4.0;
    default:
        return bytes + 8.0;
    }
}

/* One trained parameter; FSDP keeps those it shards once, in fp32. */
double memory_weight_bytes(const struct ty_plan *plan, const struct stack_habits *habits)
{
    const bool once = habits->master_is_weight && memory_shards_params(plan) && !pure_16_bit(plan);
    return precision_is_32_bit(plan->precision) || once ? 4.0 : 2.0;
}

static double gradient_bytes(const struct ty_plan *plan, const struct stack_habits *habits)
{
    if (pure_16_bit(plan))
        return 2.0;
    const double bytes =
        memory_weight_bytes(plan, habits) == 4.0 || plan->grad_dtype == TY_FP32_PRECISION ? 4.0
                                                                                          : 2.0;
    const bool accumulates = plan->precision == TY_BF16_PRECISION || bytes == 4.0;
    if (habits->two_gradients && accumulates && !memory_shards_params(plan) &&
        !precision_is_32_bit(plan->precision))
        return 6.0; /* DeepSpeed adds up BF16 gradients in fp32 */
    return bytes;
}

void memory_states(const struct ty_plan *plan, const struct stack_habits *habits, bool expert,
                   struct state_bytes *out)
{
    const double ranks = shard_ranks(plan, expert);
    const bool all = memory_shards_params(plan);
    out->weights = memory_weight_bytes(plan, habits);
    out->gradients = gradient_bytes(plan, habits);
    out->optimizer = optimizer_bytes(plan);
    if (out->weights == 4.0 && !precision_is_32_bit(plan->precision)) /* the weight is the master */
        out->optimizer -= 4.0;
    out->optimizer /= ranks;
    if (all || plan->sharding == TY_SHARDING_ZERO2)
        out->gradients /= ranks;
    if (all)
        out->weights /= ranks;
}

void memory_state_bytes(const struct setting *setting, const struct ty_plan *plan, bool expert,
                        struct state_bytes *out)
{
    memory_states(plan, stack_habits(setting->profile.stack), expert, out);
}
