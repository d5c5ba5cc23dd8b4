/* SPDX-License-Identifier: MIT
 * Sums of time by part. */
#include "models/parts.h"

#include <math.h>

void parts_add(struct parts *parts, enum ty_part part, double time_s)
{
    const double old_s = parts->sum_s[part], new_s = old_s + time_s;
    parts->lost_s[part] +=
        fabs(old_s) >= fabs(time_s) ? (old_s - new_s) + time_s : (time_s - new_s) + old_s;
    parts->sum_s[part] = new_s;
}

void parts_read(const struct parts *parts, double out_s[TY_N_PARTS])
{
    for (uint32_t part = 0; part < TY_N_PARTS; part++)
        out_s[part] = parts->sum_s[part] + parts->lost_s[part];
}

void parts_add_wait(struct parts *parts, const struct parts_view *view, uint32_t last,
                    double from_s, double until_s)
{
    for (uint32_t task = last; task != ENGINE_NONE && until_s > from_s;) {
        const uint32_t rival =
            view->rival_of ? view->rival_of(view->user, task, until_s) : ENGINE_NONE;
        double begin_s = fmax(engine_start_s(view->engine, task), from_s);
        if (rival != ENGINE_NONE)
            begin_s = fmax(begin_s, engine_end_s(view->engine, rival));
        if (begin_s < until_s) {
            parts_add(parts, view->part_of(view->user, task), until_s - begin_s);
            until_s = begin_s;
        }
        task = rival != ENGINE_NONE ? rival : engine_binding(view->engine, task);
    }
}

const char *ty_part_name(enum ty_part part)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_PART_LIST(X)
#undef X
    };
    return (uint32_t)part < TY_N_PARTS ? names[part] : "unknown";
}
