/* SPDX-License-Identifier: MIT
 *
 * effect = 100 (T(alternative) / T - 1), one prediction for each default that has a plausible
 * alternative. The alternative is written into the resolved input, so nothing else moves.
 */
#include "models/effects.h"
#include "models/fields.h"
#include "models/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool write_number(const struct ty_field *field, void *value, double number)
{
    char *place = (char *)value + field->offset;
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        memcpy(place, &number, sizeof number);
        return true;
    case TY_FIELD_U32:
    case TY_FIELD_FLAGS: {
        uint32_t whole = (uint32_t)number;
        memcpy(place, &whole, sizeof whole);
        return true;
    }
    case TY_FIELD_U64: {
        uint64_t whole = (uint64_t)number;
        memcpy(place, &whole, sizeof whole);
        return true;
    }
    case TY_FIELD_ENUM: {
        int choice = (int)number;
        memcpy(place, &choice, sizeof choice);
        return true;
    }
    case TY_FIELD_BOOL:
        *(bool *)place = number != 0.0;
        return true;
    case TY_FIELD_TEXT:
        return false;
    }
    return false;
}

static bool apply(const struct note_origin *origin, struct setting *setting, struct ty_plan *plan)
{
    size_t n;
    const struct ty_field *fields = ty_fields(origin->kind, &n);
    const struct ty_field *field = fields_find(fields, n, origin->path);
    if (!field)
        return false;
    switch (origin->kind) {
    case TY_KIND_PLAN:
        return write_number(field, plan, origin->alternative);
    case TY_KIND_CLUSTER:
        return write_number(field, &setting->cluster, origin->alternative);
    case TY_KIND_GPU:
        return write_number(field, &setting->cluster.gpu, origin->alternative);
    case TY_KIND_PROFILE:
        return write_number(field, &setting->profile, origin->alternative);
    case TY_KIND_MODEL:
        return write_number(field, &setting->model, origin->alternative);
    case TY_KIND_PRICE:   /* no step time depends on it */
    case TY_KIND_STORAGE: /* its defaults are not notes */
        return false;
    }
    return false;
}

/* Step time with one alternative; NAN where the plan is then illegal, does not fit or takes
 * longer than the caller lets it. */
static ty_status alternative_step_s(struct evaluator *evaluator, const struct effects_base *base,
                                    const struct note_origin *origin, struct setting *setting,
                                    double *step_time_s)
{
    *step_time_s = (double)NAN;
    *setting = *base->setting;
    struct ty_plan plan = *base->plan, resolved;
    if (!apply(origin, setting, &plan))
        return TY_OK;
    plan_resolve(setting, &plan, &resolved, NULL);
    uint32_t n_violations;
    ty_plan_violations(&setting->model, &setting->cluster, &resolved, NULL, 0, &n_violations);
    if (n_violations)
        return TY_OK;
    struct memory_verdict verdict;
    ty_status status = evaluator_memory(evaluator, setting, &resolved, &verdict);
    if (status != TY_OK || verdict.fit == TY_FIT_NO)
        return status;
    struct step_result result;
    status = evaluator_simulate(evaluator, setting, &resolved, base->options, &result, NULL);
    if (status == TY_OK)
        *step_time_s = result.time_s;
    return status == TY_ERR_LIMIT ? TY_OK : status;
}

/* Larger effect first, unknown last; the insertion sort keeps the order of equals. */
static bool before(const struct ty_note *a, const struct ty_note *b)
{
    const double left = isnan(a->effect_pct) ? -1.0 : fabs(a->effect_pct);
    const double right = isnan(b->effect_pct) ? -1.0 : fabs(b->effect_pct);
    return left > right;
}

static void sort_notes(struct notes *notes)
{
    for (uint32_t i = 1; i < notes->n; i++) {
        const struct ty_note note = notes->note[i];
        const struct note_origin origin = notes->origin[i];
        uint32_t j = i;
        for (; j > 0 && before(&note, &notes->note[j - 1]); j--) {
            notes->note[j] = notes->note[j - 1];
            notes->origin[j] = notes->origin[j - 1];
        }
        notes->note[j] = note;
        notes->origin[j] = origin;
    }
}

ty_status effects_fill(const struct effects_base *base, const struct ty_allocator *allocator,
                       struct notes *notes)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    struct setting *setting = source.alloc(source.user, sizeof *setting);
    if (!setting)
        return TY_ERR_NOMEM;
    ty_status status = TY_OK;
    for (uint32_t i = 0; i < notes->n && status == TY_OK; i++) {
        if (!notes->origin[i].path)
            continue;
        /* a fresh evaluator for each: its layer records belong to one setting */
        struct evaluator evaluator;
        double step_time_s = (double)NAN;
        status = evaluator_init(&evaluator, &source);
        if (status == TY_OK)
            status = alternative_step_s(&evaluator, base, &notes->origin[i], setting, &step_time_s);
        evaluator_destroy(&evaluator);
        notes->note[i].effect_pct = 100.0 * (step_time_s / base->step_time_s - 1.0);
    }
    source.release(source.user, setting, sizeof *setting);
    sort_notes(notes);
    return status;
}
