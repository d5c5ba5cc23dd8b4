/* SPDX-License-Identifier: MIT
 * Whether a framework can run a plan: its allow-list, asked field by field. */
#include "models/framework.h"

#include <string.h>

static bool allows(const struct ty_limit *limit, const struct ty_plan *plan)
{
    const char *place = (const char *)plan + limit->field->offset;
    uint32_t value;
    if (limit->any || limit->field->type == TY_FIELD_TEXT || limit->field->type == TY_FIELD_DOUBLE)
        return limit->any || *place == '\0';
    memcpy(&value, place, sizeof value);
    if (limit->field->type == TY_FIELD_FLAGS) {
        const uint32_t asked = framework_flags_asked(limit->field, plan);
        return (value & asked & ~limit->allowed) == 0 && (~value & asked & limit->required) == 0;
    }
    return value < 64 && (limit->allowed >> value & 1);
}

const struct ty_field *ty_framework_lacks(const struct ty_framework *framework,
                                          const struct ty_plan *resolved)
{
    for (uint32_t i = 0; i < framework->n_limits; i++)
        if (framework_asks(framework->limit[i].field, resolved) &&
            !allows(&framework->limit[i], resolved))
            return framework->limit[i].field;
    return NULL;
}
