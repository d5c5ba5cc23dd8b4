/* SPDX-License-Identifier: MIT
 * Half widths by class, and the ratio of two predictions. */
#include "models/interval.h"
#include "include/trainyard_ratio.h"

#include <math.h>
#include <string.h>

/* ---- classes ------------------------------------------------------------------------------ */

static bool has_experts(const struct ty_model *model)
{
    for (uint32_t kind = 0; kind < model->n_kinds; kind++)
        if (model->kinds[kind].mlp == TY_MLP_MOE)
            return true;
    return false;
}

struct half_widths interval_half_widths(const struct ty_profile *profile,
                                        const struct ty_model *model, const struct ty_plan *plan,
                                        enum interval_of what)
{
    const struct half_widths dense[N_INTERVALS] = {
        [INTERVAL_TIME] = {profile->dense_half_80, profile->dense_half_90},
        [INTERVAL_PLANS] = {profile->dense_plans_80, profile->dense_plans_90},
        [INTERVAL_GPUS] = {profile->dense_gpus_80, profile->dense_gpus_90}};
    const struct half_widths moe[N_INTERVALS] = {
        [INTERVAL_TIME] = {profile->moe_half_80, profile->moe_half_90},
        [INTERVAL_PLANS] = {profile->moe_plans_80, profile->moe_plans_90},
        [INTERVAL_GPUS] = {profile->moe_gpus_80, profile->moe_gpus_90}};
    const struct half_widths tuning[N_INTERVALS] = {
        [INTERVAL_TIME] = {profile->tuning_half_80, profile->tuning_half_90},
        [INTERVAL_PLANS] = {profile->tuning_plans_80, profile->tuning_plans_90},
        [INTERVAL_GPUS] = {profile->tuning_gpus_80, profile->tuning_gpus_90}};
    if (model->lora_rank > 0 || plan->packed == TY_ON)
        return tuning[what];
    return has_experts(model) ? moe[what] : dense[what];
}

/* ---- ratios ------------------------------------------------------------------------------- */

static bool same_software(const struct ty_profile *a, const struct ty_profile *b)
{
    return strcmp(a->stack, b->stack) == 0 && strcmp(a->release, b->release) == 0 &&
           strcmp(a->site, b->site) == 0;
}

static enum ty_kinship kinship_of(const struct ty_rated *a, const struct ty_rated *b)
{
    if (strcmp(a->model->name, b->model->name) != 0 || !same_software(a->profile, b->profile))
        return TY_KIN_NONE;
    return strcmp(a->cluster->gpu.name, b->cluster->gpu.name) == 0 ? TY_KIN_PLANS : TY_KIN_GPUS;
}

static struct half_widths widths_of(const struct ty_rated *rated, enum interval_of what)
{
    return interval_half_widths(rated->profile, rated->model, rated->plan, what);
}

/* Independent errors add as squares. */
static struct half_widths apart(const struct ty_rated *a, const struct ty_rated *b)
{
    const struct half_widths left = widths_of(a, INTERVAL_TIME);
    const struct half_widths right = widths_of(b, INTERVAL_TIME);
    return (struct half_widths){hypot(left.of_80, right.of_80), hypot(left.of_90, right.of_90)};
}

/* P(|ln error| > x) = exp(-g(x)) */
static double beyond(const struct half_widths *half, double x)
{
    const double at_80 = log(5.0), at_90 = log(10.0);
    const double width = half->of_90 - half->of_80;
    if (x <= half->of_80)
        return x > 0.0 ? exp(-at_80 * x / half->of_80) : 1.0;
    if (!(half->of_80 > 0.0))
        return 0.0;
    const double slope = width > 0.0 ? (at_90 - at_80) / width : at_80 / half->of_80;
    return exp(-at_80 - slope * (x - half->of_80));
}

static void set_interval(double ratio, double half, double out[2])
{
    out[0] = ratio * exp(-half);
    out[1] = ratio * exp(half);
}

void ty_ratio_of(const struct ty_rated *a, const struct ty_rated *b, struct ty_ratio *out)
{
    struct half_widths half;
    *out = (struct ty_ratio){.kinship = kinship_of(a, b), .ratio = a->time_s / b->time_s};
    if (out->kinship != TY_KIN_NONE) {
        half = widths_of(a, out->kinship == TY_KIN_PLANS ? INTERVAL_PLANS : INTERVAL_GPUS);
        if (isnan(half.of_80) || isnan(half.of_90))
            out->kinship = TY_KIN_NONE;
    }
    if (out->kinship == TY_KIN_NONE)
        half = apart(a, b);
    set_interval(out->ratio, half.of_80, out->interval_80);
    set_interval(out->ratio, half.of_90, out->interval_90);
    const double slower = 0.5 * beyond(&half, fabs(log(out->ratio)));
    out->p_faster = isnan(half.of_80 + half.of_90) ? (double)NAN
                    : out->ratio < 1.0             ? 1.0 - slower
                                                   : slower;
}

const char *ty_kinship_name(enum ty_kinship kinship)
{
    static const char *const names[] = {"plans", "gpus", "none"};
    return (unsigned)kinship <= TY_KIN_NONE ? names[kinship] : "";
}
