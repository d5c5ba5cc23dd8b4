/* SPDX-License-Identifier: MIT
 * The search: every plan accounted for, ranking and ties, same answer at any number of threads.
 * The reference is the predictor itself called plan by plan in nested loops: the search must find
 * what a person trying every layout by hand would find. */
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

static void small_search(struct ty_search *search)
{
    *search = (struct ty_search){.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search->space.fixed);
    search->space.fixed.n_gpus = 16;
    search->space.fixed.gbs = 32;
    search->space.fixed.seq = 4096;
    search->top = 5;
}

static double by_hand_best(uint64_t *n_feasible)
{
    static const int recompute[] = {TY_RECOMPUTE_NONE, TY_RECOMPUTE_SELECTIVE, TY_RECOMPUTE_FULL};
    ty_predictor *predictor;
    if (ty_predictor_create(&model, &cluster, &profile, NULL, &predictor, NULL) != TY_OK)
        return -1.0;
    double best = 0.0;
    *n_feasible = 0;
    for (uint32_t tp = 1; tp <= 8; tp++)
        for (uint32_t pp = 1; pp <= 16; pp++)
            for (uint32_t vpp = 1; vpp <= 32; vpp++)
                for (uint32_t mbs = 1; mbs <= 16; mbs *= 2)
                    for (int i = 0; i < 3; i++) {
                        if (16 % tp || 16 % pp)
                            continue;
                        struct ty_plan plan;
                        ty_init(TY_KIND_PLAN, &plan);
                        plan.n_gpus = 16;
                        plan.gbs = 32;
                        plan.seq = 4096;
                        plan.tp = tp;
                        plan.pp = pp;
                        plan.vpp = vpp;
                        plan.mbs = mbs;
                        plan.recompute = recompute[i];
                        struct ty_prediction answer;
                        if (ty_predictor_run(predictor, &plan, NULL, &answer, NULL) != TY_OK)
                            return -1.0;
                        if (answer.fit != TY_FIT_YES)
                            continue;
                        ++*n_feasible;
                        if (answer.tokens_per_s_per_gpu > best)
                            best = answer.tokens_per_s_per_gpu;
                    }
    ty_predictor_destroy(predictor);
    return best;
}

static void finds_what_hand_finds(void)
{
    struct ty_search search;
    small_search(&search);
    struct ty_search_result result;
    ok(ty_search_run(&search, &result, NULL) == TY_OK, "16 GPUs: the search runs");
    uint64_t rejected = 0, n_feasible = 0;
    for (int i = 0; i < TY_N_REJECTS; i++)
        rejected += result.rejected[i];
    ok(rejected + result.n_bounded == result.n_enumerated,
       "every enumerated plan is bounded or rejected with a reason");
    const double best = by_hand_best(&n_feasible);
    ok(n_feasible == result.n_bounded, "as many feasible plans as nested loops find (%llu)",
       (unsigned long long)n_feasible);
    ok(result.n_best > 0 && result.best[0].tokens_per_s_per_gpu == best,
       "the best plan is the best of the nested loops, bit for bit");
    bool descending = true, distinct = true;
    for (uint32_t i = 1; i < result.n_best; i++) {
        const struct ty_score *a = &result.best[i - 1], *b = &result.best[i];
        descending &= a->tokens_per_s_per_gpu >= b->tokens_per_s_per_gpu;
        for (uint32_t j = 0; j < i; j++)
            distinct &= result.best[j].plan.tp != b->plan.tp ||
                        result.best[j].plan.pp != b->plan.pp ||
                        result.best[j].plan.cp != b->plan.cp;
    }
    ok(descending, "best first");
    ok(distinct, "near-duplicates are left out");
    ty_search_free(&result);
}

static bool collect(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    uint64_t *hash = user;
    if (score) {
        uint64_t bits;
        memcpy(&bits, &score->step_time_s, sizeof bits);
        *hash = (*hash ^ bits ^ score->plan_id) * 1099511628211u; /* FNV-1a over words */
    }
    return true;
}

static void same_at_any_thread_count(void)
{
    static const uint32_t threads[] = {1, 2, 8};
    uint64_t hash[3];
    struct ty_search_result result[3];
    bool good = true;
    for (int i = 0; i < 3; i++) {
        struct ty_search search;
        small_search(&search);
        search.n_threads = threads[i];
        hash[i] = 14695981039346656037u;
        search.progress = collect;
        search.user = &hash[i];
        good &= ty_search_run(&search, &result[i], NULL) == TY_OK;
    }
    ok(good && hash[0] == hash[1] && hash[0] == hash[2],
       "the stream of scores has the same bits at 1, 2 and 8 threads");
    good = true;
    for (int i = 1; i < 3; i++) {
        good &= result[i].n_best == result[0].n_best;
        for (uint32_t j = 0; good && j < result[0].n_best; j++)
            good &= result[i].best[j].plan_id == result[0].best[j].plan_id &&
                    result[i].best[j].step_time_s == result[0].best[j].step_time_s;
    }
    ok(good, "and so has the ranking");
    for (int i = 0; i < 3; i++)
        ty_search_free(&result[i]);
}

static void says_why_nothing_fits(void)
{
    struct ty_search search;
    small_search(&search);
    struct ty_model large;
    fixture_llama3_405b(&large);
    search.model = &large;
    struct ty_search_result result;
    struct ty_error error;
    ok(ty_search_run(&search, &result, &error) == TY_ERR_INFEASIBLE, "405B on 16 GPUs: infeasible");
    ok(result.rejected[TY_REJECT_MEMORY_STATES] > 0,
       "because of the states (18 B x 405e9 / 16 = 456 GB a GPU)");
    bool ascending = result.n_nearest == TY_MAX_NEAREST;
    for (uint32_t i = 1; i < result.n_nearest; i++)
        ascending &= result.nearest[i - 1].missing_bytes <= result.nearest[i].missing_bytes;
    ok(ascending, "the plans that miss least memory are listed, least first");
    /* 6 B of weights and gradients of the parameters on a rank stay whole under ZeRO-1 */
    ok(result.nearest[0].missing_bytes > 6 * 405.8e9 / 16 - 80e9,
       "none misses less than its weights and gradients (6 B x 405.8e9 / 16) less 80 GB");
    ty_search_free(&result);
}

static bool same_list(const struct ty_search_result *a, const struct ty_search_result *b)
{
    bool same = a->n_best == b->n_best;
    for (uint32_t i = 0; same && i < a->n_best; i++)
        same = a->best[i].plan_id == b->best[i].plan_id &&
               a->best[i].step_time_s == b->best[i].step_time_s;
    return same;
}

/* Small spaces over models, clusters, GPU counts, batches, list lengths: best-first must list what
 * simulating everything lists. */
static void equals_brute_force(void)
{
    static void (*const models[])(struct ty_model *) = {fixture_llama3_8b, fixture_llama3_70b,
                                                        fixture_deepseek_v3};
    static void (*const clusters[])(struct ty_cluster *) = {fixture_dgx_h100, fixture_dgx_a100};
    uint32_t n_same = 0, n_spaces = 0;
    uint64_t n_all = 0, n_best_first = 0;
    for (uint32_t i = 0; i < 24; i++) {
        struct ty_model shape;
        struct ty_cluster machine;
        models[i % 3](&shape);
        clusters[i % 2](&machine);
        struct ty_search search;
        small_search(&search);
        search.model = &shape;
        search.cluster = &machine;
        search.space.fixed.n_gpus = (i % 3 ? 128u : 8u) << i % 4;
        search.space.fixed.gbs = 256 << i % 3;
        search.top = 1 + i % 10;
        search.all = i % 5 == 0;
        if (i % 3 == 2) /* keep the space of expert layouts small */
            search.space.ep = (struct ty_values){.n = 2, .value = {8, 32}};
        struct ty_search_result best_first = {0}, all = {0};
        const ty_status status = ty_search_run(&search, &best_first, NULL);
        search.exhaustive = true;
        if (ty_search_run(&search, &all, NULL) != status)
            continue;
        n_spaces += status == TY_OK;
        n_same += status == TY_OK && same_list(&best_first, &all);
        n_best_first += best_first.n_evaluated;
        n_all += all.n_evaluated;
        ty_search_free(&best_first);
        ty_search_free(&all);
    }
    ok(n_spaces >= 16 && n_same == n_spaces,
       "%u small spaces: the list of brute force, bit for bit", n_spaces);
    ok(n_best_first * 2 < n_all, "with %llu of %llu plans simulated",
       (unsigned long long)n_best_first, (unsigned long long)n_all);
}

static void one_list_over_all_counts(void)
{
    struct ty_search search;
    small_search(&search);
    search.space.n_gpus = (struct ty_values){.n = 3, .value = {8, 16, 32}};
    search.top = 100000;
    search.all = true;
    struct ty_search_result by_count = {0}, overall = {0};
    ok(ty_search_run(&search, &by_count, NULL) == TY_OK, "three counts, everything listed");
    search.overall = true;
    search.top = 4;
    ok(ty_search_run(&search, &overall, NULL) == TY_OK && overall.n_best == 4, "one list of four");
    uint32_t n_better = 0; /* plans of any count ahead of the last one listed */
    const struct ty_score *last = &overall.best[3];
    for (uint32_t i = 0; i < by_count.n_best; i++)
        n_better += by_count.best[i].tokens_per_s_per_gpu > last->tokens_per_s_per_gpu ||
                    (by_count.best[i].tokens_per_s_per_gpu == last->tokens_per_s_per_gpu &&
                     by_count.best[i].plan_id < last->plan_id);
    ok(n_better == 3, "three plans of all counts are better than the fourth");
    ty_search_free(&by_count);
    ty_search_free(&overall);
}

static bool cancel(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)user, (void)score, (void)done, (void)total;
    return false;
}

static void cancels_and_refuses(void)
{
    struct ty_search search;
    small_search(&search);
    search.progress = cancel;
    struct ty_search_result result;
    struct ty_error error;
    ok(ty_search_run(&search, &result, &error) == TY_ERR_CANCELLED, "the caller can cancel");
    small_search(&search);
    search.space.fixed.n_gpus = 0;
    ok(ty_search_run(&search, &result, &error) == TY_ERR_RANGE, "no GPU count is refused");
    same_text(error.where, "gpus", "and named");
}

static void ranks_within_each_count(void)
{
    struct ty_search search;
    small_search(&search);
    search.top = 2;
    search.space.n_gpus = (struct ty_values){.n = 3, .value = {16, 8, 16}};
    struct ty_search_result result;
    ok(ty_search_run(&search, &result, NULL) == TY_OK, "two GPU counts, one repeated");
    ok(result.n_best == 4, "two plans for each");
    ok(result.n_best == 4 && result.best[0].plan.n_gpus == 8 && result.best[1].plan.n_gpus == 8 &&
           result.best[2].plan.n_gpus == 16 && result.best[3].plan.n_gpus == 16,
       "by count, ascending");
    ty_search_free(&result);
}

int main(void)
{
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    finds_what_hand_finds();
    equals_brute_force();
    one_list_over_all_counts();
    same_at_any_thread_count();
    says_why_nothing_fits();
    cancels_and_refuses();
    ranks_within_each_count();
    return tap_done();
}
