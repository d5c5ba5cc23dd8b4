/* SPDX-License-Identifier: MIT
 * The legal plans of a space by number; the handle never changes once open. */
#include "include/trainyard_plans.h"
#include "models/legality.h"
#include "search/space.h"
#include "sim/error.h"

struct ty_plans {
    struct setting setting;
    struct space space; /* with the allocator of both */
};

ty_status ty_plans_open(const struct ty_model *model, const struct ty_cluster *cluster,
                        const struct ty_profile *profile, const struct ty_space *space,
                        const struct ty_allocator *allocator, ty_plans **out,
                        struct ty_error *error)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    ty_plans *plans = source.alloc(source.user, sizeof *plans);
    if (!plans)
        return error_set(error, TY_ERR_NOMEM, "plans", "out of memory");
    ty_status status = setting_init(model, cluster, profile, &plans->setting, NULL, error);
    if (status == TY_OK)
        status = space_init(&plans->setting, space, &source, &plans->space, error);
    if (status != TY_OK) {
        source.release(source.user, plans, sizeof *plans);
        return status;
    }
    *out = plans;
    return TY_OK;
}

void ty_plans_close(ty_plans *plans)
{
    if (!plans)
        return;
    const struct ty_allocator source = plans->space.allocator;
    space_destroy(&plans->space);
    source.release(source.user, plans, sizeof *plans);
}

uint64_t ty_plans_n(const ty_plans *plans)
{
    return plans->space.n_plans;
}

bool ty_plans_at(const ty_plans *plans, uint64_t id, struct ty_plan *out)
{
    if (id >= plans->space.n_plans)
        return false;
    struct ty_plan plan;
    space_plan(&plans->space, &plans->setting, id, &plan);
    if (legality_reject(&plans->setting, &plan) != TY_N_REJECTS)
        return false;
    *out = plan;
    return true;
}

bool ty_plans_next(const ty_plans *plans, uint64_t *cursor, struct ty_plan *out)
{
    while (*cursor < plans->space.n_plans)
        if (ty_plans_at(plans, (*cursor)++, out))
            return true;
    *cursor = plans->space.n_plans; /* a cursor beyond the end too */
    return false;
}
