/* SPDX-License-Identifier: MIT
 * Which fields of a plan a framework is asked for: those that have an effect in it. */
#include "models/framework.h"

#include <stddef.h>
#include <string.h>

#define AT(field) offsetof(struct ty_plan, field)

bool framework_asks(const struct ty_field *field, const struct ty_plan *plan)
{
    switch (field->offset) {
    case AT(cp_scheme):
        return plan->cp > 1;
    case AT(dispatcher):
        return plan->ep > 1;
    case AT(etp):
        return plan->ep > 1 || plan->etp > 1;
    case AT(schedule):
        return plan->pp > 1;
    case AT(sp):
        return plan->tp > 1;
    case AT(recompute_modules):
        return plan->recompute == TY_RECOMPUTE_SELECTIVE;
    case AT(recompute_layers):
        return plan->recompute == TY_RECOMPUTE_FULL;
    case AT(vpp):
        return !plan->layout[0]; /* it follows from the layout, and Megatron-LM takes one of them */
    case AT(pp_group):
        return plan->vpp > 1 || (plan->layout[0] && plan->vpp == 0); /* 0: while being read */
    case AT(comm_sms):
        return plan->ep > 1 && plan->dispatcher == TY_DISPATCHER_DEEPEP;
    case AT(tp_overlap):
        return plan->tp > 1 && (plan->overlap & TY_OVERLAP_TP);
    case AT(reshard_after_forward):
        return plan->sharding == TY_SHARDING_ZERO3 || plan->sharding == TY_SHARDING_HSDP;
    case AT(shard_group):
        /* all ranks is no group of its own; dp is 0 while a plan is being read */
        return (plan->sharding == TY_SHARDING_ZERO1 || plan->sharding == TY_SHARDING_HSDP) &&
               (plan->dp == 0 || plan->shard_group != plan->dp * plan->cp);
    default:
        return true;
    }
}

uint32_t framework_flags_asked(const struct ty_field *field, const struct ty_plan *plan)
{
    uint32_t bits = UINT32_MAX;
    if (field->offset != AT(overlap))
        return bits;
    bits &= ~(uint32_t)TY_OVERLAP_GIVEN;
    bits &= plan->tp > 1 ? bits : ~(uint32_t)TY_OVERLAP_TP;
    bits &= plan->pp > 1 ? bits : ~(uint32_t)TY_OVERLAP_PP;
    bits &= plan->cp > 1 ? bits : ~(uint32_t)TY_OVERLAP_CP;
    return plan->ep > 1 ? bits
                        : bits & (TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM |
                                  TY_OVERLAP_PP | TY_OVERLAP_CP);
}
