/* SPDX-License-Identifier: MIT
 *
 * Which values each knob takes when the caller leaves it open: everything that could be legal for
 * this model and GPU count. Legality proper is not repeated here; these lists only leave out what
 * can never divide, so that the numbered space stays small.
 */
#include "search/space.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPEN_VPP 32 /* more chunks than this have no layer to hold in published models */
#define MAX_OPEN_CP  64
#define MIN_CP_TOKENS                                                                              \
    4096 /* a CP rank keeps at least this many tokens (handbook 11.1: CP pays                      \
            from about 8k tokens) */
#define MAX_OPEN_MBS 16

/* Where a knob stands in a plan and in the caller's space; all but the layout are 4 bytes wide. */
#define PLACE(field)                                                                               \
    {                                                                                              \
        offsetof(struct ty_plan, field), offsetof(struct ty_space, field), #field                  \
    }
static const struct place {
    size_t in_plan, in_space;
    const char *name;
} knob_place[N_KNOBS] = {[KNOB_GBS] = PLACE(gbs),
                         [KNOB_PRECISION] = PLACE(precision),
                         [KNOB_SHARDING] = PLACE(sharding),
                         [KNOB_RECOMPUTE] = PLACE(recompute),
                         [KNOB_SCHEDULE] = PLACE(schedule),
                         [KNOB_OFFLOAD] = PLACE(offload),
                         [KNOB_TP] = PLACE(tp),
                         [KNOB_CP] = PLACE(cp),
                         [KNOB_EP] = PLACE(ep),
                         [KNOB_ETP] = PLACE(etp),
                         [KNOB_PP] = PLACE(pp),
                         [KNOB_VPP] = PLACE(vpp),
                         [KNOB_MBS] = PLACE(mbs)};

static uint32_t knob_get(const struct ty_plan *plan, enum knob knob)
{
    uint32_t value;
    memcpy(&value, (const char *)plan + knob_place[knob].in_plan, sizeof value);
    return value;
}

static void knob_set(struct ty_plan *plan, enum knob knob, uint32_t value)
{
    memcpy((char *)plan + knob_place[knob].in_plan, &value, sizeof value);
}

static const struct ty_values *knob_asked(const struct ty_space *asked, enum knob knob)
{
    return (const struct ty_values *)(const void *)((const char *)asked +
                                                    knob_place[knob].in_space);
}

static void add(struct knob_values *list, uint32_t value)
{
    if (list->n < KNOB_MAX_VALUES)
        list->value[list->n++] = value;
}

static void add_divisors(struct knob_values *list, uint32_t of, uint32_t at_most)
{
    for (uint32_t value = 1; value <= at_most && value <= of; value++)
        if (of % value == 0)
            add(list, value);
}

static void open_cp(uint32_t seq, uint32_t n_gpus, struct knob_values *list)
{
    add(list, 1);
    for (uint32_t cp = 2; cp <= MAX_OPEN_CP && seq / cp >= MIN_CP_TOKENS; cp *= 2)
        if (n_gpus % cp == 0)
            add(list, cp);
}

static void open_ep(const struct ty_model *model, uint32_t n_gpus, struct knob_values *list)
{
    uint32_t n_experts = 0;
    for (uint32_t kind = 0; kind < model->n_kinds; kind++)
        if (model->kinds[kind].mlp == TY_MLP_MOE && model->kinds[kind].n_experts > n_experts)
            n_experts = model->kinds[kind].n_experts;
    add(list, 1);
    for (uint32_t ep = 2; ep <= n_experts && ep <= n_gpus; ep++)
        if (n_experts % ep == 0 && n_gpus % ep == 0)
            add(list, ep);
}

/* Layers, or layers plus the pseudo-layers of embedding, head and MTP, must divide. */
static void open_vpp(const struct ty_model *model, struct knob_values *list)
{
    for (uint32_t vpp = 1; vpp <= MAX_OPEN_VPP && vpp <= model->n_layers; vpp++) {
        bool divides = vpp == 1;
        for (uint32_t extra = 0; extra <= 2 + model->n_mtp; extra++)
            divides |= (model->n_layers + extra) % vpp == 0;
        if (divides)
            add(list, vpp);
    }
}

static void open_mbs(uint32_t gbs, struct knob_values *list)
{
    for (uint32_t mbs = 1; mbs <= MAX_OPEN_MBS && (gbs == 0 || mbs <= gbs); mbs *= 2)
        add(list, mbs);
}

static void open_knob(const struct setting *setting, const struct ty_plan *fixed, uint32_t n_gpus,
                      enum knob knob, struct knob_values *list)
{
    switch (knob) {
    case KNOB_TP:
        add_divisors(list, n_gpus, cluster_domain(&setting->cluster, n_gpus));
        break;
    case KNOB_CP:
        open_cp(fixed->seq, n_gpus, list);
        break;
    case KNOB_EP:
        open_ep(&setting->model, n_gpus, list);
        break;
    case KNOB_PP:
        add_divisors(list, n_gpus, setting->model.n_layers);
        break;
    case KNOB_VPP:
        open_vpp(&setting->model, list);
        break;
    case KNOB_MBS:
        open_mbs(fixed->gbs, list);
        break;
    case KNOB_RECOMPUTE:
        add(list, TY_RECOMPUTE_NONE);
        add(list, TY_RECOMPUTE_SELECTIVE);
        add(list, TY_RECOMPUTE_FULL);
        break;
    case KNOB_GBS:
    case KNOB_PRECISION:
    case KNOB_SHARDING:
    case KNOB_SCHEDULE:
    case KNOB_OFFLOAD:
    case KNOB_LAYOUT:
    case KNOB_ETP:
    case N_KNOBS:
        add(list, 0); /* the default of plan and stack, unless the caller lists values */
        break;
    }
}

static ty_status list_layouts(const struct ty_space *asked, struct knob_values *list,
                              struct ty_error *error)
{
    if (asked->n_layouts > TY_MAX_LAYOUTS)
        return error_set(error, TY_ERR_RANGE, "layout", "%u listed; at most %d are searched",
                         asked->n_layouts, TY_MAX_LAYOUTS);
    for (uint32_t i = 0; i < asked->n_layouts; i++)
        if (!memchr(asked->layout[i], '\0', sizeof asked->layout[i]))
            return error_set(error, TY_ERR_RANGE, "layout", "number %u has no end", i + 1);
    for (uint32_t i = 0; i == 0 || i < asked->n_layouts; i++)
        add(list, i);
    return TY_OK;
}

/* The caller's list, else the fixed value, else everything that could be legal. */
static ty_status list_knob(const struct setting *setting, const struct ty_space *asked,
                           struct count_space *count, enum knob knob, struct ty_error *error)
{
    struct knob_values *list = &count->knob[knob];
    if (knob == KNOB_LAYOUT)
        return list_layouts(asked, list, error);
    const struct ty_values *values = knob_asked(asked, knob);
    if (values->n > KNOB_MAX_VALUES)
        return error_set(error, TY_ERR_RANGE, knob_place[knob].name,
                         "%u values listed; at most %d are searched", values->n, KNOB_MAX_VALUES);
    for (uint32_t i = 0; i < values->n; i++)
        add(list, values->value[i]);
    if (values->n == 0 && knob_get(&asked->fixed, knob) != 0)
        add(list, knob_get(&asked->fixed, knob));
    else if (values->n == 0)
        open_knob(setting, &asked->fixed, count->n_gpus, knob, list);
    return TY_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Ascending GPU counts without repeats. */
static void list_counts(const struct ty_space *asked, struct ty_values *counts)
{
    *counts = asked->n_gpus;
    if (counts->n == 0 && asked->fixed.n_gpus > 0)
        counts->value[counts->n++] = asked->fixed.n_gpus;
    qsort(counts->value, counts->n, sizeof counts->value[0], by_value);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < counts->n; i++)
        if (counts->value[i] > 0 && (kept == 0 || counts->value[kept - 1] != counts->value[i]))
            counts->value[kept++] = counts->value[i];
    counts->n = kept;
}

static ty_status fill_count(const struct setting *setting, const struct ty_space *asked,
                            struct count_space *count, struct ty_error *error)
{
    count->n_plans = 1;
    for (enum knob knob = 0; knob < N_KNOBS; knob++) {
        ty_status status = list_knob(setting, asked, count, knob, error);
        if (status != TY_OK)
            return status;
        count->n_plans *= count->knob[knob].n;
    }
    return TY_OK;
}

ty_status space_init(const struct setting *setting, const struct ty_space *given,
                     const struct ty_allocator *allocator, struct space *out,
                     struct ty_error *error)
{
    struct ty_space asked = *given;
    struct ty_plan resolved;
    plan_resolve(setting, &asked.fixed, &resolved, NULL);
    asked.fixed.seq = resolved.seq; /* the knobs' lists depend on it */
    struct ty_values counts;
    list_counts(&asked, &counts);
    if (counts.n == 0)
        return error_set(error, TY_ERR_RANGE, "gpus", "no GPU count given");
    struct space space = {
        .fixed = asked.fixed, .n_counts = counts.n, .allocator = allocator_or_default(allocator)};
    space.n_layouts = asked.n_layouts; /* list_layouts says so when there are too many */
    memcpy(space.layout, asked.layout, sizeof space.layout);
    const size_t bytes = counts.n * sizeof *space.count;
    space.count = space.allocator.alloc(space.allocator.user, bytes);
    if (!space.count)
        return error_set(error, TY_ERR_NOMEM, "search", "out of memory");
    memset(space.count, 0, bytes);
    ty_status status = TY_OK;
    for (uint32_t i = 0; i < counts.n && status == TY_OK; i++) {
        struct count_space *count = &space.count[i];
        count->n_gpus = counts.value[i];
        status = fill_count(setting, &asked, count, error);
        count->first_id = space.n_plans;
        space.n_plans += count->n_plans;
    }
    if (status != TY_OK) {
        space_destroy(&space);
        return status;
    }
    *out = space;
    return TY_OK;
}

void space_destroy(struct space *space)
{
    if (space->count)
        space->allocator.release(space->allocator.user, space->count,
                                 space->n_counts * sizeof *space->count);
    space->count = NULL;
}

static void decode(const struct space *space, uint64_t id, struct ty_plan *out)
{
    uint32_t low = 0, high = space->n_counts;
    while (high - low > 1) { /* last count whose first id is not beyond id */
        const uint32_t middle = low + (high - low) / 2;
        if (space->count[middle].first_id <= id)
            low = middle;
        else
            high = middle;
    }
    const struct count_space *count = &space->count[low];
    uint64_t rest = id - count->first_id;
    *out = space->fixed;
    out->n_gpus = count->n_gpus;
    for (int knob = N_KNOBS - 1; knob >= 0; knob--) { /* the last knob varies fastest */
        const struct knob_values *values = &count->knob[knob];
        const uint32_t value = values->value[rest % values->n];
        if (knob != KNOB_LAYOUT)
            knob_set(out, (enum knob)knob, value);
        else if (space->n_layouts)
            memcpy(out->layout, space->layout[value], sizeof out->layout);
        rest /= values->n;
    }
}

/* Is the layout of a plan the even one in place of the balanced one, beside the even one? */
static bool is_even_again(const struct space *space, const struct ty_plan *plan,
                          const struct ty_plan *resolved)
{
    bool even = false;
    for (uint32_t i = 0; i < space->n_layouts; i++)
        even |= space->layout[i][0] == '\0';
    return even && !resolved->layout[0] && plan->layout[0];
}

void space_plan(const struct space *space, const struct setting *setting, uint64_t id,
                struct ty_plan *out)
{
    struct ty_plan plan;
    decode(space, id, &plan);
    plan_resolve(setting, &plan, out, NULL);
    /* A schedule without chunks drops vpp: illegal here, else the plan came twice. */
    if (plan.vpp > 1)
        out->vpp = plan.vpp;
    if (is_even_again(space, &plan, out))
        memcpy(out->layout, plan.layout, sizeof out->layout); /* "balanced" is no layout yet */
}
