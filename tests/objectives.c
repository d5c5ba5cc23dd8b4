/* SPDX-License-Identifier: MIT
 * The search under every objective, limit and pair of objectives. The reference is brute force:
 * every plan that fits is simulated, and the list is drawn from all of them by the definitions,
 * here. What is listed must be the same, bit for bit. */
#include "include/trainyard_cost.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <math.h>

static struct ty_profile profile;
static struct ty_price price;
static struct ty_failures failures;

/* Every plan that was simulated. */
struct all {
    uint32_t n, capacity;
    struct ty_score *score;
};

static bool keep(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    struct all *all = user;
    if (!score)
        return true;
    if (all->n == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 1024;
        all->score = realloc(all->score, all->capacity * sizeof *all->score);
    }
    all->score[all->n++] = *score;
    return true;
}

/* A space of its own for each index: model, cluster, GPU counts, batch, length of the list. */
struct space {
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_search search;
    struct ty_goal goal;
};

static void open_space(struct space *space, uint32_t index)
{
    static void (*const models[])(struct ty_model *) = {fixture_llama3_8b, fixture_llama3_70b};
    models[index % 2](&space->model);
    (index % 3 ? fixture_dgx_h100 : fixture_dgx_a100)(&space->cluster);
    const uint32_t n = index % 2 ? 64 : 8;
    space->search = (struct ty_search){.model = &space->model,
                                       .cluster = &space->cluster,
                                       .profile = &profile,
                                       .top = 1 + index % 10,
                                       .all = index % 5 == 0,
                                       .overall = index % 4 < 2,
                                       .goal = &space->goal};
    ty_init(TY_KIND_PLAN, &space->search.space.fixed);
    space->search.space.fixed.gbs = 32 << index % 3;
    space->search.space.fixed.seq = 2048;
    space->search.space.n_gpus =
        (struct ty_values){.n = 3, .value = {n - index % 3, n, 2 * n}}; /* some leave GPUs idle */
    space->search.space.tp = (struct ty_values){.n = 2, .value = {2, 8}};
    space->search.space.vpp = (struct ty_values){.n = 1, .value = {1}};
    space->search.space.pp = (struct ty_values){.n = 4, .value = {1, 2, 4, 8}};
    space->search.space.mbs = (struct ty_values){.n = 2, .value = {1, 2}};
    space->search.space.cp = (struct ty_values){.n = 1, .value = {1}};
    ty_goal_init(&space->goal);
    space->goal.price = &price;
    space->goal.failures = index % 3 == 1 ? &failures : NULL;
    space->goal.tokens = 1e12;
}

static bool same_list(const struct ty_search_result *a, const struct ty_search_result *b)
{
    bool same = a->n_best == b->n_best;
    for (uint32_t i = 0; same && i < a->n_best; i++)
        same = a->best[i].plan_id == b->best[i].plan_id &&
               a->best[i].step_time_s == b->best[i].step_time_s &&
               a->best[i].outlay.money == b->best[i].outlay.money &&
               a->best[i].outlay.energy_j == b->best[i].outlay.energy_j;
    return same;
}

static bool larger_is_better(enum ty_objective objective)
{
    return objective == TY_OBJECTIVE_TOKENS_PER_S || objective == TY_OBJECTIVE_TOKENS_PER_S_PER_GPU;
}

static double worth(const struct ty_goal *goal, uint32_t i, const struct ty_score *score)
{
    const double value = ty_objective_value(goal->objective[i], goal, score);
    return larger_is_better(goal->objective[i]) ? value : -value;
}

/* The best of all by hand: largest worth, then lowest id. */
static const struct ty_score *best_of(const struct ty_goal *goal, const struct all *all)
{
    const struct ty_score *best = NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct ty_score *score = &all->score[i];
        if (!best || worth(goal, 0, score) > worth(goal, 0, best) ||
            (worth(goal, 0, score) == worth(goal, 0, best) && score->plan_id < best->plan_id))
            best = score;
    }
    return best;
}

static void every_objective(enum ty_objective objective, uint32_t first)
{
    uint32_t n_same = 0, n_best = 0, n_spaces = 0;
    uint64_t n_simulated = 0, n_all = 0;
    for (uint32_t i = first; i < first + 5; i++) {
        static struct space space;
        struct all all = {0};
        struct ty_search_result best_first = {0}, brute = {0};
        open_space(&space, i);
        space.goal.n_objectives = 1;
        space.goal.objective[0] = objective;
        if (ty_search_run(&space.search, &best_first, NULL) != TY_OK)
            continue;
        space.search.exhaustive = true;
        space.search.progress = keep;
        space.search.user = &all;
        n_spaces += ty_search_run(&space.search, &brute, NULL) == TY_OK;
        n_same += same_list(&best_first, &brute);
        n_best += !space.search.overall ||
                  best_of(&space.goal, &all)->plan_id == best_first.best[0].plan_id;
        n_simulated += best_first.n_evaluated;
        n_all += brute.n_evaluated;
        free(all.score);
        ty_search_free(&best_first);
        ty_search_free(&brute);
    }
    ok(n_spaces == 5 && n_same == n_spaces && n_best == n_spaces,
       "%s: 5 small spaces as by brute force, bit for bit", ty_objective_name(objective));
    ok(n_simulated < n_all, "with %llu of %llu plans simulated", (unsigned long long)n_simulated,
       (unsigned long long)n_all);
}

/* ---- sets --------------------------------------------------------------------------------- */

static bool dominated(const struct ty_goal *goal, const struct all *all,
                      const struct ty_score *score)
{
    for (uint32_t j = 0; j < all->n; j++) {
        const struct ty_score *other = &all->score[j];
        bool as_good = true, better = false;
        for (uint32_t i = 0; i < goal->n_objectives; i++) {
            as_good &= worth(goal, i, other) >= worth(goal, i, score);
            better |= worth(goal, i, other) > worth(goal, i, score);
        }
        if (as_good && (better || other->plan_id < score->plan_id))
            return true;
    }
    return false;
}

static void pareto_set(const enum ty_objective *objective, uint32_t n, uint32_t index)
{
    static struct space space;
    struct all all = {0};
    struct ty_search_result set = {0}, brute = {0};
    open_space(&space, index);
    space.goal.n_objectives = n;
    memcpy(space.goal.objective, objective, n * sizeof *objective);
    space.search.top = 1; /* without effect on a set */
    ok(ty_search_run(&space.search, &set, NULL) == TY_OK, "a set under %u objectives", n);
    space.search.exhaustive = true;
    space.search.progress = keep;
    space.search.user = &all;
    ok(ty_search_run(&space.search, &brute, NULL) == TY_OK && same_list(&set, &brute),
       "its %u plans are those of simulating all", set.n_best);
    uint32_t n_in_set = 0, n_found = 0;
    for (uint32_t i = 0; i < all.n; i++)
        if (!dominated(&space.goal, &all, &all.score[i])) {
            n_in_set++;
            for (uint32_t j = 0; j < set.n_best; j++)
                n_found += set.best[j].plan_id == all.score[i].plan_id;
        }
    ok(n_in_set == set.n_best && n_found == n_in_set, "and those that no other of %u beats", all.n);
    ok(set.n_evaluated < brute.n_evaluated, "with %llu simulated",
       (unsigned long long)set.n_evaluated);
    free(all.score);
    ty_search_free(&set);
    ty_search_free(&brute);
}

/* ---- limits ------------------------------------------------------------------------------- */

/* The middle of all plans as a limit: the list holds none beyond it, and all others are counted. */
static void limit(enum ty_reject reason)
{
    static struct space space;
    struct all all = {0};
    struct ty_search_result free_of_it = {0}, limited = {0}, brute = {0};
    open_space(&space, 1);
    space.search.overall = space.search.all = true;
    space.search.exhaustive = true;
    space.search.progress = keep;
    space.search.user = &all;
    if (ty_search_run(&space.search, &free_of_it, NULL) != TY_OK) {
        ok(false, "the space runs");
        return;
    }
    const struct ty_score *middle = &all.score[all.n / 2];
    const double days = ty_objective_value(TY_OBJECTIVE_TIME_TO_TOKENS, &space.goal, middle);
    const double money =
        1e12 * ty_objective_value(TY_OBJECTIVE_COST_PER_TOKEN, &space.goal, middle);
    space.goal.deadline_s = reason == TY_REJECT_DEADLINE ? days : (double)NAN;
    space.goal.budget = reason == TY_REJECT_BUDGET ? money : (double)NAN;
    space.goal.min_mfu = reason == TY_REJECT_MFU ? middle->mfu : (double)NAN;
    space.goal.min_headroom_bytes =
        reason == TY_REJECT_HEADROOM ? middle->headroom_bytes : (double)NAN;
    uint32_t n_within = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const struct ty_score *s = &all.score[i];
        n_within += !(ty_objective_value(TY_OBJECTIVE_TIME_TO_TOKENS, &space.goal, s) >
                      space.goal.deadline_s) &&
                    !(1e12 * ty_objective_value(TY_OBJECTIVE_COST_PER_TOKEN, &space.goal, s) >
                      space.goal.budget) &&
                    !(s->mfu < space.goal.min_mfu) &&
                    !(s->headroom_bytes < space.goal.min_headroom_bytes);
    }
    space.search.progress = NULL;
    space.search.top = all.n;
    const ty_status status = ty_search_run(&space.search, &brute, NULL);
    ok(status == TY_OK && brute.n_best == n_within && n_within < all.n,
       "%s: %u of %u plans are within the limit, and listed", ty_reject_name(reason), n_within,
       all.n);
    const uint64_t beyond = brute.rejected[reason];
    ok(beyond + n_within == all.n, "the others are counted");
    space.search.exhaustive = false;
    space.search.top = 5;
    ok(ty_search_run(&space.search, &limited, NULL) == TY_OK, "best first");
    bool same = limited.n_best == (n_within < 5 ? n_within : 5);
    for (uint32_t i = 0; same && i < limited.n_best; i++)
        same = limited.best[i].plan_id == brute.best[i].plan_id;
    ok(same, "lists the same first five");
    free(all.score);
    ty_search_free(&free_of_it);
    ty_search_free(&limited);
    ty_search_free(&brute);
}

/* 64 and 72 GPUs of one domain of 72. Both pay for 72 where whole domains are billed, so that cost
 * ranks as tokens/s does; billed by the GPU, as tokens/s/GPU does. */
static void part_of_a_domain(enum ty_billing billing, enum ty_objective same)
{
    struct space space;
    open_space(&space, 0);
    space.cluster.gpu.scaleup_domain = 72;
    space.cluster.gpus_per_node = space.cluster.nics_per_node = 4;
    struct ty_price by = price; /* 2.0 a GPU-hour */
    by.kwh = 0.0;
    by.billing = (int)billing;
    space.goal.price = &by;
    space.search.overall = space.search.all = true;
    space.search.top = 100000;
    space.search.space.fixed.gbs = 576; /* 64 x 9 */
    space.search.space.n_gpus = (struct ty_values){.n = 2, .value = {64, 72}};
    struct ty_search_result by_cost = {0}, by_speed = {0};
    space.goal.objective[0] = TY_OBJECTIVE_COST_PER_TOKEN;
    const bool ran = ty_search_run(&space.search, &by_cost, NULL) == TY_OK;
    space.goal.objective[0] = same;
    ok(ran && ty_search_run(&space.search, &by_speed, NULL) == TY_OK,
       "64 and 72 of a domain of 72");
    uint32_t n_part = 0, n_beyond_node = 0, n_wrong = 0, n_ranked = 0;
    for (uint32_t i = 0; i < by_cost.n_best; i++) {
        const struct ty_score *score = &by_cost.best[i];
        const bool part = score->plan.n_gpus == 64;
        const uint32_t paid = part && billing == TY_BILLING_GPU ? 64 : 72;
        const double money = paid * 2.0 * score->step_time_s / 3600.0;
        n_part += part;
        n_beyond_node += part && score->plan.tp == 8;
        n_wrong +=
            score->outlay.gpus_paid != paid || fabs(score->outlay.money - money) > 1e-12 * money;
        n_ranked +=
            by_cost.n_best == by_speed.n_best && score->step_time_s == by_speed.best[i].step_time_s;
    }
    ok(n_part > 0 && n_part < by_cost.n_best && n_beyond_node > 0,
       "%u of %u plans use a part, some with tp over several nodes", n_part, by_cost.n_best);
    ok(n_wrong == 0, "each costs its time of what is billed");
    ok(n_ranked == by_cost.n_best, "ranked by cost as by %s", ty_objective_name(same));
    ty_search_free(&by_cost);
    ty_search_free(&by_speed);
}

static void refuses(void)
{
    static struct space space;
    struct ty_search_result result = {0};
    struct ty_error error;
    open_space(&space, 0);
    space.goal.n_objectives = 1;
    space.goal.objective[0] = TY_OBJECTIVE_COST_PER_TOKEN;
    space.goal.price = NULL;
    ok(ty_search_run(&space.search, &result, &error) == TY_ERR_RANGE, "cost without prices: %s",
       error.text);
    space.goal.objective[0] = TY_OBJECTIVE_TIME_TO_TOKENS;
    space.goal.tokens = (double)NAN;
    ok(ty_search_run(&space.search, &result, &error) == TY_ERR_RANGE, "time without tokens: %s",
       error.text);
    open_space(&space, 0);
    space.goal.deadline_s = 1.0;
    ok(ty_search_run(&space.search, &result, &error) == TY_ERR_INFEASIBLE,
       "1e12 tokens in a second: %s", error.text);
    ok(result.rejected[TY_REJECT_DEADLINE] == result.n_bounded && result.n_evaluated == 0,
       "no plan had to be simulated for that");
    ty_search_free(&result);
}

int main(void)
{
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PRICE, &price);
    price.gpu_hour = 2.0;
    price.kwh = 0.1;
    failures = (struct ty_failures){.node_mtbf_s = 2e7,
                                    .save_s = 30,
                                    .restart_s = 300,
                                    .repair_s = 86400,
                                    .interval_s = (double)NAN,
                                    .spare_probability = 0.99};
    for (enum ty_objective objective = 1; objective < TY_N_OBJECTIVES; objective++)
        every_objective(objective, 5 * (uint32_t)objective);
    pareto_set((enum ty_objective[]){TY_OBJECTIVE_COST_PER_TOKEN, TY_OBJECTIVE_TIME_TO_TOKENS}, 2,
               0);
    pareto_set((enum ty_objective[]){TY_OBJECTIVE_TOKENS_PER_S, TY_OBJECTIVE_ENERGY_PER_TOKEN}, 2,
               1);
    pareto_set((enum ty_objective[]){TY_OBJECTIVE_COST_PER_TOKEN, TY_OBJECTIVE_ENERGY_PER_TOKEN,
                                     TY_OBJECTIVE_GPUS},
               3, 4);
    limit(TY_REJECT_DEADLINE);
    limit(TY_REJECT_BUDGET);
    limit(TY_REJECT_MFU);
    limit(TY_REJECT_HEADROOM);
    part_of_a_domain(TY_BILLING_DOMAIN, TY_OBJECTIVE_TOKENS_PER_S);
    part_of_a_domain(TY_BILLING_GPU, TY_OBJECTIVE_TOKENS_PER_S_PER_GPU);
    refuses();
    return tap_done();
}
