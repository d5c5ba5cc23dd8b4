/* SPDX-License-Identifier: MIT
 * A setting and the list of a pass, for the tests of layers. */
#ifndef TESTS_LAYER_FIXTURE_H
#define TESTS_LAYER_FIXTURE_H

#include "models/layer.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;
static struct item_list list;

__attribute__((unused)) static void start(const struct ty_model *model,
                                          const struct ty_cluster *cluster)
{
    struct ty_profile profile;
    struct ty_error error = {0};
    ty_init(TY_KIND_PROFILE, &profile);
    if (setting_init(model, cluster, &profile, &setting, NULL, &error) != TY_OK) {
        printf("Bail out! %s: %s\n", error.where, error.text);
        exit(1);
    }
}

__attribute__((unused)) static void start_h100(const struct ty_model *model)
{
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    start(model, &cluster);
}

__attribute__((unused)) static struct ty_plan resolved(const struct ty_plan *in)
{
    struct ty_plan out;
    plan_resolve(&setting, in, &out, NULL);
    return out;
}

__attribute__((unused)) static struct ty_plan plan_of(uint32_t tp, uint32_t cp, uint32_t ep,
                                                      uint32_t etp, uint32_t seq)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.tp = tp;
    plan.cp = cp;
    plan.ep = ep;
    plan.etp = etp;
    plan.seq = seq;
    plan.overlap = TY_OVERLAP_GIVEN;
    return resolved(&plan);
}

__attribute__((unused)) static double flop_of(const struct ty_plan *plan, enum layer_what what,
                                              uint32_t kind, enum layer_phase phase, bool model)
{
    layer_items(&setting, plan, what, kind, phase, &list);
    return items_flop(&list, model);
}

/* Kernels of a name. */
__attribute__((unused)) static uint32_t count(const struct item_list *items, const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < items->n; i++)
        n += !items->item[i].is_collective && strcmp(items->item[i].kernel.name, name) == 0;
    return n;
}

/* ... their bytes. */
__attribute__((unused)) static double bytes_named(const struct item_list *items, const char *name)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < items->n; i++)
        if (!items->item[i].is_collective && strcmp(items->item[i].kernel.name, name) == 0)
            sum += items->item[i].kernel.bytes;
    return sum;
}

#endif
