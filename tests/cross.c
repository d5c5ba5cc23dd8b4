/* SPDX-License-Identifier: MIT
 * One plan under many settings. The reference is a predictor made for each point. */
#include "include/trainyard_cross.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <math.h>

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;
static struct ty_plan plan;
static struct ty_price price;

static const double nics[] = {12.5e9, 25e9, 50e9}, hours[] = {1.0, 2.0};
static const uint32_t batches[] = {1, 2, 3, 64};
static struct ty_patch nic_values[3], hour_values[2], batch_values[4];

static const struct ty_field *field(enum ty_kind kind, const char *path)
{
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, path) == 0)
            return &fields[i];
    return NULL;
}

static struct ty_cross crossing(enum ty_rung rung)
{
    for (int i = 0; i < 3; i++)
        nic_values[i].bytes = &nics[i];
    for (int i = 0; i < 2; i++)
        hour_values[i].bytes = &hours[i];
    for (int i = 0; i < 4; i++)
        batch_values[i].bytes = &batches[i];
    return (struct ty_cross){
        .model = &model,
        .cluster = &cluster,
        .profile = &profile,
        .plan = &plan,
        .price = &price,
        .options = {.rung = rung},
        .allow_tight = true,
        .n_axes = 3,
        .axis = {{TY_KIND_CLUSTER, field(TY_KIND_CLUSTER, "network.nic"), 3, nic_values},
                 {TY_KIND_PLAN, field(TY_KIND_PLAN, "mbs"), 4, batch_values},
                 {TY_KIND_PRICE, field(TY_KIND_PRICE, "gpu_hour"), 2, hour_values}}};
}

struct seen {
    uint64_t n;
    struct ty_score score[24];
};

static bool keep(void *user, const struct ty_score *score)
{
    struct seen *seen = user;
    if (score->plan_id != seen->n || seen->n >= 24)
        return false;
    seen->score[seen->n++] = *score;
    return true;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void as_predicted(enum ty_rung rung, const char *name)
{
    const struct ty_cross cross = crossing(rung);
    static struct seen seen;
    seen.n = 0;
    ok(ty_cross_n_points(&cross) == 24, "3 NICs by 4 micro-batches by 2 prices");
    ok(ty_cross_run(&cross, keep, &seen, NULL) == TY_OK && seen.n == 24, "%s: 24 points in order",
       name);
    uint32_t n_same = 0, n_infeasible = 0;
    for (uint32_t i = 0; i < 24; i++) {
        struct ty_cluster machine = cluster;
        struct ty_plan layout = plan;
        struct ty_prediction p;
        ty_predictor *predictor;
        machine.nic_bytes_per_s = nics[i / 8];
        layout.mbs = batches[i / 2 % 4];
        price.gpu_hour = hours[i % 2];
        const struct ty_options options = {.rung = rung, .price = &price};
        if (ty_predictor_create(&model, &machine, &profile, NULL, &predictor, NULL) != TY_OK ||
            ty_predictor_run(predictor, &layout, &options, &p, NULL) != TY_OK)
            continue;
        const struct ty_score *score = &seen.score[i];
        const double time_s = rung == TY_RUNG_BOUND ? p.bound_s : p.step_time_s;
        n_infeasible += !p.feasible;
        n_same += same(score->step_time_s, p.feasible ? time_s : (double)NAN) &&
                  (rung == TY_RUNG_BOUND || same(score->outlay.money, p.outlay.money)) &&
                  (!p.feasible || same(score->peak_bytes, p.peak_bytes));
        ty_predictor_destroy(predictor);
    }
    ok(n_same == 24, "%s: each as a predictor of its own says, bit for bit (%u)", name, n_same);
    ok(n_infeasible >= 6, "%s: plans that break a rule or do not fit among them", name);
    price.gpu_hour = 2.0;
}

static void same_at_any_thread_count(void)
{
    static struct seen one, eight;
    struct ty_cross cross = crossing(TY_RUNG_BOUND);
    one.n = eight.n = 0;
    cross.n_threads = 1;
    ty_status status = ty_cross_run(&cross, keep, &one, NULL);
    cross.n_threads = 8;
    ok(status == TY_OK && ty_cross_run(&cross, keep, &eight, NULL) == TY_OK, "on 1 and 8 threads");
    bool equal = true;
    for (int i = 0; i < 24; i++)
        equal &= same(one.score[i].step_time_s, eight.score[i].step_time_s) &&
                 same(one.score[i].outlay.money, eight.score[i].outlay.money);
    ok(equal, "the same bits");
    /* point 2 k + 1 pays 2 a GPU-hour where 2 k pays 1 */
    near(one.score[1].outlay.money, 2.0 * one.score[0].outlay.money, 1e-12,
         "twice the rent, twice the money");
}

static bool place(void *user, const struct ty_score *score)
{
    struct seen *seen = user;
    if (score->plan_id >= 24 || !isnan(seen->score[score->plan_id].step_time_s))
        return false;
    seen->score[score->plan_id] = *score;
    seen->n++;
    return true;
}

/* The middle axis as a loop outside, and each of these crossings in three shards: every point of
 * the whole once, under its number. */
static void in_parts(void)
{
    static struct seen whole, parts;
    struct ty_cross cross = crossing(TY_RUNG_BOUND);
    whole.n = parts.n = 0;
    ok(ty_cross_run(&cross, keep, &whole, NULL) == TY_OK, "in one go");
    for (int i = 0; i < 24; i++)
        parts.score[i].step_time_s = (double)NAN;
    bool done = true;
    for (uint32_t i = 0; i < 12; i++) {
        const struct ty_share share = {.shard = i / 4, .n_shards = 3};
        struct ty_plan layout = plan;
        layout.mbs = batches[i % 4];
        cross = crossing(TY_RUNG_BOUND);
        cross.plan = &layout;
        cross.share = &share;
        cross.first = 2 * (i % 4);
        cross.n_axes = 2;
        cross.axis[0].stride = 8;
        cross.axis[1] = cross.axis[2];
        done &= ty_cross_run(&cross, place, &parts, NULL) == TY_OK;
    }
    ok(done && parts.n == 24, "in parts: each point once");
    bool equal = true;
    for (int i = 0; i < 24; i++)
        equal &= same(whole.score[i].step_time_s, parts.score[i].step_time_s) &&
                 same(whole.score[i].outlay.money, parts.score[i].outlay.money);
    ok(equal, "the same bits");
}

static bool stop(void *user, const struct ty_score *score)
{
    (void)user, (void)score;
    return false;
}

static void refuses(void)
{
    struct ty_cross cross = crossing(TY_RUNG_BOUND);
    struct ty_error error;
    static const double wrong = -1.0;
    const struct ty_patch patch = {&wrong};
    ok(ty_cross_run(&cross, stop, NULL, &error) == TY_ERR_CANCELLED, "the caller can stop");
    cross.axis[0].patch = &patch;
    cross.axis[0].n = 1;
    ok(ty_cross_run(&cross, stop, NULL, &error) == TY_ERR_RANGE, "a NIC of -1 B/s: %s",
       error.where);
    cross = crossing(TY_RUNG_BOUND);
    cross.price = NULL;
    ok(ty_cross_run(&cross, stop, NULL, &error) == TY_ERR_RANGE, "prices to vary and none given");
    cross.n_axes = TY_MAX_AXES + 1;
    ok(ty_cross_run(&cross, stop, NULL, &error) == TY_ERR_RANGE, "too many axes");
}

int main(void)
{
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PLAN, &plan);
    ty_init(TY_KIND_PRICE, &price);
    plan.n_gpus = 16;
    plan.tp = plan.pp = 2;
    plan.gbs = 64;
    plan.seq = 4096;
    price.gpu_hour = 2.0;
    as_predicted(TY_RUNG_SIMULATE, "simulated");
    as_predicted(TY_RUNG_BOUND, "bounded");
    same_at_any_thread_count();
    in_parts();
    refuses();
    return tap_done();
}
