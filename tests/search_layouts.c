/* SPDX-License-Identifier: MIT
 * Layouts as an axis of a search. References: brute force, and a search of each layout alone. */
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <string.h>

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

static void open_search(struct ty_search *search, uint32_t n_gpus)
{
    *search = (struct ty_search){.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search->space.fixed);
    search->space.fixed.n_gpus = n_gpus;
    search->space.fixed.gbs = 256;
    search->space.fixed.seq = 4096;
    search->space.tp = (struct ty_values){.n = 2, .value = {4, 8}};
    search->space.pp = (struct ty_values){.n = 4, .value = {1, 2, 4, 8}};
    search->space.ep = (struct ty_values){.n = 2, .value = {1, 8}};
}

static const char *const layouts[] = {"", "balanced", "Et*18|(t*22|)*2,t*18L"};

static void add_layouts(struct ty_space *space)
{
    space->n_layouts = sizeof layouts / sizeof *layouts;
    for (uint32_t i = 0; i < space->n_layouts; i++)
        strcpy(space->layout[i], layouts[i]);
}

static void (*const models[])(struct ty_model *) = {fixture_llama3_8b, fixture_llama3_70b,
                                                    fixture_deepseek_v3};

static void equals_brute_force(void)
{
    uint32_t n_spaces = 0, n_same = 0;
    uint64_t n_all = 0, n_best_first = 0;
    for (uint32_t i = 0; i < 12; i++) {
        struct ty_search search;
        struct ty_search_result best_first = {0}, brute = {0};
        models[i % 3](&model);
        open_search(&search, (i % 3 == 0 ? 16u : 128u) << i % 2);
        add_layouts(&search.space);
        search.top = 1 + i;
        search.all = i % 4 == 0;
        const ty_status status = ty_search_run(&search, &best_first, NULL);
        search.exhaustive = true;
        if (status == TY_OK && ty_search_run(&search, &brute, NULL) == TY_OK) {
            bool same = best_first.n_best == brute.n_best;
            for (uint32_t j = 0; same && j < brute.n_best; j++)
                same = best_first.best[j].plan_id == brute.best[j].plan_id &&
                       best_first.best[j].step_time_s == brute.best[j].step_time_s;
            n_spaces++;
            n_same += same;
            n_all += brute.n_evaluated;
            n_best_first += best_first.n_evaluated;
        }
        ty_search_free(&best_first);
        ty_search_free(&brute);
    }
    ok(n_spaces >= 8 && n_same == n_spaces, "%u of %u spaces: as by brute force, bit for bit",
       n_same, n_spaces);
    ok(n_best_first * 2 < n_all, "with %llu of %llu plans simulated",
       (unsigned long long)n_best_first, (unsigned long long)n_all);
}

static const struct ty_score *find(const struct ty_search_result *in, const struct ty_score *score)
{
    for (uint32_t i = 0; i < in->n_best; i++)
        if (memcmp(&in->best[i].plan, &score->plan, sizeof score->plan) == 0)
            return &in->best[i];
    return NULL;
}

/* A search of all plans with each layout alone; "balanced" beside "even" is not even once more. */
static void is_the_union(void)
{
    struct ty_search search;
    struct ty_search_result all = {0};
    fixture_llama3_70b(&model);
    open_search(&search, 64);
    search.top = 100000;
    search.all = search.exhaustive = true;
    add_layouts(&search.space);
    ok(ty_search_run(&search, &all, NULL) == TY_OK, "three layouts in one search");
    search.space.n_layouts = 0;
    uint32_t n[3] = {0}, n_same = 0;
    for (uint32_t i = 0; i < 3; i++) {
        struct ty_search_result one = {0};
        strcpy(search.space.fixed.layout, layouts[i]);
        const ty_status status = ty_search_run(&search, &one, NULL);
        for (uint32_t j = 0; status == TY_OK && j < one.n_best; j++) {
            if (i > 0 && !one.best[j].plan.layout[0])
                continue; /* one chunk cannot be balanced */
            const struct ty_score *same = find(&all, &one.best[j]);
            n[i]++;
            n_same += same && same->step_time_s == one.best[j].step_time_s;
        }
        ty_search_free(&one);
    }
    ok(n[0] > 0 && n[1] > 0 && n[2] > 0, "even %u, balanced %u, its own %u plans", n[0], n[1],
       n[2]);
    ok(n_same == n[0] + n[1] + n[2], "each is in it with the same bits");
    ok(all.n_best == n_same, "and no other, and none twice (%u)", all.n_best);
    ty_search_free(&all);
}

static void refuses(void)
{
    struct ty_search search;
    struct ty_search_result result;
    struct ty_error error = {0};
    open_search(&search, 64);
    search.space.n_layouts = TY_MAX_LAYOUTS + 1;
    ok(ty_search_run(&search, &result, &error) == TY_ERR_RANGE, "too many: %s", error.text);
    same_text(error.where, "layout", "named");
    search.space.n_layouts = 1;
    memset(search.space.layout[0], 't', sizeof search.space.layout[0]);
    ok(ty_search_run(&search, &result, &error) == TY_ERR_RANGE, "a text without an end");
}

int main(void)
{
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    equals_brute_force();
    is_the_union();
    refuses();
    return tap_done();
}
