/* SPDX-License-Identifier: MIT
 *
 * Every legal change of one knob. The knobs are the fields of a plan, so that a new field or a new
 * value of one is tried without a line here; those that define the job instead of its layout are
 * left out. What the user left open is resolved again, as it would be if he typed the change.
 *
 *   size    the next legal value up and down        flag    each bit on and off
 *   choice  each other value                        recompute: also each module, half the layers
 */
#include "models/explain.h"
#include "models/fields.h"
#include "models/legality.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANGES 160

/* They change what is trained, how long or on how much. */
static const char *const of_the_job[] = {"gpus",      "gbs",    "seq",           "order",
                                         "optimizer", "packed", "moe_imbalance", NULL};
static const char *const of_numerics[] = {"precision", "grad_dtype", NULL};
/* Tried together with recompute. */
static const char *const of_recompute[] = {"recompute_modules", "recompute_layers", NULL};

static const double MORE_MEMORY = 1.1;
static const double MAX_AWAY = 4096.0; /* values tried for the next legal one */
static const double WORTH_PCT = 0.1;   /* a gain below this is none */

struct changes {
    struct explainer *x;
    struct ty_plan start; /* as asked, with the job filled in */
    struct ty_change *list;
    uint32_t n;
    ty_status status;
};

static bool among(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* ---- one change ----------------------------------------------------------------------------- */

/* Legal, and not what the plan does already? */
static bool resolves(const struct changes *c, const struct ty_plan *plan, struct ty_plan *resolved)
{
    const struct setting *setting = &c->x->predictor->setting;
    plan_resolve(setting, plan, resolved, NULL);
    if (legality_reject(setting, resolved) != TY_N_REJECTS)
        return false;
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)resolved + fields[i].offset,
                   (const char *)&c->x->base->plan + fields[i].offset, fields[i].size) != 0)
            return true;
    return false;
}

static ty_status measure(struct changes *c, struct ty_change *change)
{
    struct explainer *x = c->x;
    const struct setting *setting = &x->predictor->setting;
    struct memory_verdict verdict;
    struct step_result result;
    change->step_time_s = change->step_pct = (double)NAN;
    ty_status status = evaluator_memory(&x->evaluator, setting, &change->plan, &verdict);
    if (status != TY_OK)
        return status;
    change->fit = verdict.fit;
    change->peak_bytes = verdict.peak_bytes;
    change->peak_change_bytes = verdict.peak_bytes - x->base->peak_bytes;
    change->headroom_bytes = verdict.headroom_bytes;
    status = evaluator_simulate(&x->evaluator, setting, &change->plan, x->options, &result, NULL);
    if (status == TY_OK) {
        change->step_time_s = result.time_s;
        change->step_pct = 100.0 * (result.time_s / x->base->step_time_s - 1.0);
    }
    return status == TY_ERR_LIMIT ? TY_OK : status;
}

/* Names are set by the caller. */
static void add(struct changes *c, const struct ty_plan *plan, const struct ty_change *names)
{
    struct ty_change change = *names;
    if (c->status != TY_OK || c->n == MAX_CHANGES || !resolves(c, plan, &change.plan))
        return;
    for (uint32_t i = 0; i < c->n; i++) /* reached by another knob */
        if (memcmp(&c->list[i].plan, &change.plan, sizeof change.plan) == 0)
            return;
    c->status = measure(c, &change);
    if (c->status == TY_OK)
        c->list[c->n++] = change;
}

static struct ty_change named(const char *knob)
{
    struct ty_change change = {.numerics = among(of_numerics, knob)};
    text_format(change.knob, sizeof change.knob, "%s", knob);
    return change;
}

/* ---- kinds of knobs ------------------------------------------------------------------------- */

static uint32_t *number_at(struct ty_plan *plan, const struct ty_field *field)
{
    return (uint32_t *)(void *)((char *)plan + field->offset);
}

/* The nearest legal value above (step 1) or below (step -1), up to a factor of eight away. */
static void try_next(struct changes *c, const struct ty_field *field, int32_t step)
{
    struct ty_plan plan = c->start, resolved, base = c->x->base->plan;
    const uint32_t now = *number_at(&base, field);
    const double last = step > 0 ? fmin(field->max, fmin(8.0 * now, now + MAX_AWAY))
                                 : fmax(fmax(field->min, 1.0), now - MAX_AWAY);
    for (double value = (double)now + step; step > 0 ? value <= last : value >= last;
         value += step) {
        *number_at(&plan, field) = (uint32_t)value;
        if (!resolves(c, &plan, &resolved) || *number_at(&resolved, field) != (uint32_t)value)
            continue;
        struct ty_change change = named(field->path);
        text_format(change.from, sizeof change.from, "%u", now);
        text_format(change.to, sizeof change.to, "%.0f", value);
        add(c, &plan, &change);
        return;
    }
}

static void try_choices(struct changes *c, const struct ty_field *field)
{
    struct ty_plan base = c->x->base->plan;
    const uint32_t now = *number_at(&base, field);
    for (uint32_t value = 1; field->names[value]; value++) {
        struct ty_plan plan = c->start, resolved;
        const char *name = fields_enum_name(field, (int)value);
        *number_at(&plan, field) = value;
        if (value == now || !name || !*name || !resolves(c, &plan, &resolved) ||
            *number_at(&resolved, field) != value)
            continue;
        struct ty_change change = named(field->path);
        const char *from = fields_enum_name(field, (int)now);
        text_format(change.from, sizeof change.from, "%s", from ? from : "");
        text_format(change.to, sizeof change.to, "%s", name);
        add(c, &plan, &change);
    }
}

static void try_bits(struct changes *c, const struct ty_field *field)
{
    struct ty_plan base = c->x->base->plan;
    const uint32_t now = *number_at(&base, field);
    for (uint32_t bit = 0; bit < 31 && field->names[bit]; bit++) {
        struct ty_plan plan = c->start;
        char knob[32];
        *number_at(&plan, field) = (now ^ 1u << bit) | (uint32_t)field->max;
        text_format(knob, sizeof knob, "%s %s", field->path, field->names[bit]);
        struct ty_change change = named(knob);
        text_format(change.from, sizeof change.from, "%s", now >> bit & 1 ? "on" : "off");
        text_format(change.to, sizeof change.to, "%s", now >> bit & 1 ? "off" : "on");
        if (*field->names[bit])
            add(c, &plan, &change);
    }
}

/* ---- recompute ------------------------------------------------------------------------------ */

static void recompute_text(const struct ty_plan *plan, char *out, size_t bytes)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    const struct ty_field *modules = fields_find(fields, n, "recompute_modules");
    const struct ty_field *kinds = fields_find(fields, n, "recompute");
    char list[64] = "";
    const char *kind = fields_enum_name(kinds, plan->recompute);
    text_format(out, bytes, "%s", kind ? kind : "");
    if (plan->recompute == TY_RECOMPUTE_SELECTIVE)
        text_append(out, bytes, ":%s",
                    fields_flags_text(modules, plan->recompute_modules, list, sizeof list));
    if (plan->recompute_layers)
        text_append(out, bytes, ":%u", plan->recompute_layers);
}

static void try_recompute(struct changes *c, int kind, uint32_t modules, uint32_t n_layers)
{
    struct ty_plan plan = c->start, resolved;
    plan.recompute = kind;
    plan.recompute_modules = modules;
    plan.recompute_layers = n_layers;
    if (!resolves(c, &plan, &resolved) || resolved.recompute_modules != modules)
        return;
    struct ty_change change = named("recompute");
    recompute_text(&c->x->base->plan, change.from, sizeof change.from);
    recompute_text(&resolved, change.to, sizeof change.to);
    add(c, &plan, &change);
}

static void try_recomputes(struct changes *c)
{
    const struct ty_plan *base = &c->x->base->plan;
    const uint32_t per_stage = c->x->predictor->setting.model.n_layers / base->pp;
    try_recompute(c, TY_RECOMPUTE_NONE, 0, 0);
    for (uint32_t bit = 1; bit <= TY_MODULE_SHARED_EXPERTS; bit <<= 1) {
        try_recompute(c, TY_RECOMPUTE_SELECTIVE, bit, 0);
        if (base->recompute == TY_RECOMPUTE_SELECTIVE)
            try_recompute(c, TY_RECOMPUTE_SELECTIVE, base->recompute_modules ^ bit, 0);
    }
    if (per_stage / 2 > 0)
        try_recompute(c, TY_RECOMPUTE_FULL, 0, per_stage / 2);
    try_recompute(c, TY_RECOMPUTE_FULL, 0, 0);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void try_field(struct changes *c, const struct ty_field *field)
{
    if (among(of_the_job, field->path) || among(of_recompute, field->path))
        return;
    if (strcmp(field->path, "recompute") == 0) {
        try_recomputes(c);
    } else if (field->type == TY_FIELD_U32) {
        try_next(c, field, 1);
        try_next(c, field, -1);
    } else if (field->type == TY_FIELD_ENUM) {
        try_choices(c, field);
    } else if (field->type == TY_FIELD_FLAGS) {
        try_bits(c, field);
    }
}

/* What fits first, then the fastest, then the order of the fields. */
static int by_use(const void *a, const void *b)
{
    const struct ty_change *left = a, *right = b;
    const bool fits[] = {left->fit != TY_FIT_NO, right->fit != TY_FIT_NO};
    if (fits[0] != fits[1])
        return fits[0] ? -1 : 1;
    const double times[] = {isnan(left->step_time_s) ? HUGE_VAL : left->step_time_s,
                            isnan(right->step_time_s) ? HUGE_VAL : right->step_time_s};
    if (times[0] < times[1] || times[0] > times[1])
        return times[0] < times[1] ? -1 : 1;
    const int order = strcmp(left->knob, right->knob);
    return order ? order : strcmp(left->to, right->to);
}

/* Would it fit with 10 % more memory? */
static bool fits_with_more(struct changes *c, const struct ty_change *change)
{
    struct explainer *x = c->x;
    struct memory_verdict verdict;
    *x->setting = x->predictor->setting;
    explain_scale(x->setting, TY_RESOURCE_MEMORY, MORE_MEMORY);
    c->status = evaluator_memory(&x->evaluator, x->setting, &change->plan, &verdict);
    return c->status == TY_OK && verdict.fit != TY_FIT_NO;
}

static void choose(struct changes *c)
{
    struct ty_explanation *out = c->x->out;
    out->best = out->memory_best = c->n;
    for (uint32_t i = 0; i < c->n && c->status == TY_OK; i++) {
        const struct ty_change *change = &c->list[i];
        if (!(change->step_pct < -WORTH_PCT) || change->numerics)
            continue;
        if (change->fit != TY_FIT_NO && out->best == c->n)
            out->best = i;
        if (change->fit == TY_FIT_NO && out->memory_best == c->n && fits_with_more(c, change))
            out->memory_best = i;
    }
    if (out->memory_best < c->n)
        out->resources[TY_RESOURCE_MEMORY].gain_pct =
            100.0 * (out->step_time_s / c->list[out->memory_best].step_time_s - 1.0);
}

ty_status explain_changes(struct explainer *x)
{
    struct changes c = {.x = x, .start = *x->asked, .status = TY_OK};
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    c.list = arena_get(&x->predictor->explanation, MAX_CHANGES, sizeof *c.list);
    if (!c.list)
        return TY_ERR_NOMEM;
    c.start.n_gpus = x->base->plan.n_gpus;
    c.start.gbs = x->base->plan.gbs;
    c.start.seq = x->base->plan.seq;
    for (size_t i = 0; i < n; i++)
        try_field(&c, &fields[i]);
    qsort(c.list, c.n, sizeof *c.list, by_use);
    x->out->changes = c.list;
    x->out->n_changes = c.n;
    choose(&c);
    return c.status;
}
