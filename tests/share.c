/* SPDX-License-Identifier: MIT
 * Searches in parts: what shards find together, and what is known, against one search of all. */
#include "include/trainyard_sweep.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#define MAX_PLANS 4096

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

/* Step times by plan id, as a search delivers them. */
struct seen {
    struct ty_known plan[MAX_PLANS];
    uint64_t n, n_twice;
};

static int by_id(const void *a, const void *b)
{
    const struct ty_known *left = a, *right = b;
    return (left->plan_id > right->plan_id) - (left->plan_id < right->plan_id);
}

static bool collect(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    struct seen *seen = user;
    if (!score || seen->n == MAX_PLANS)
        return true;
    struct ty_known *known = &seen->plan[seen->n++];
    *known = (struct ty_known){score->plan_id, score->step_time_s, score->outlay.busy_s, {0}};
    memcpy(known->breakdown_s, score->breakdown_s, sizeof known->breakdown_s);
    return true;
}

static ty_status search_share(const struct ty_share *share, struct seen *seen,
                              struct ty_search_result *result)
{
    struct ty_search search = {.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search.space.fixed);
    search.space.fixed.n_gpus = 16;
    search.space.fixed.gbs = 32;
    search.space.fixed.seq = 4096;
    search.exhaustive = true;
    search.share = share;
    search.progress = collect;
    search.user = seen;
    const ty_status status = ty_search_run(&search, result, NULL);
    qsort(seen->plan, seen->n, sizeof *seen->plan, by_id);
    return status;
}

static void shards_add_up(const struct seen *whole, const struct ty_search_result *all)
{
    static struct seen together;
    struct ty_search_result sum = {0};
    together = (struct seen){0};
    bool ran = true;
    for (uint32_t i = 0; i < 3; i++) {
        const struct ty_share share = {.shard = i, .n_shards = 3};
        struct ty_search_result part;
        const uint64_t before = together.n;
        ran &= search_share(&share, &together, &part) == TY_OK;
        ok(together.n - before > whole->n / 6, "shard %u of 3 has more than half of its share", i);
        sum.n_enumerated += part.n_enumerated;
        for (int k = 0; k < TY_N_REJECTS; k++)
            sum.rejected[k] += part.rejected[k];
        ty_search_free(&part);
    }
    ok(ran && together.n == whole->n &&
           memcmp(together.plan, whole->plan, whole->n * sizeof *whole->plan) == 0,
       "three shards simulate each plan of the whole once, to the same bits");
    ok(sum.n_enumerated == all->n_enumerated &&
           memcmp(sum.rejected, all->rejected, sizeof sum.rejected) == 0,
       "... and reject the same plans for the same reasons");
}

static void known_is_taken(const struct seen *whole, const struct ty_search_result *all)
{
    static struct seen again;
    static struct ty_known half[MAX_PLANS];
    again = (struct seen){0};
    struct ty_share share = {.known = half};
    for (uint64_t i = 0; i < whole->n; i += 2)
        half[share.n_known++] = whole->plan[i];
    struct ty_search_result result;
    ok(search_share(&share, &again, &result) == TY_OK && again.n == whole->n &&
           memcmp(again.plan, whole->plan, whole->n * sizeof *whole->plan) == 0,
       "half of the plans known: the same scores");
    bool same = result.n_best == all->n_best;
    for (uint32_t i = 0; same && i < all->n_best; i++)
        same = memcmp(&result.best[i].plan, &all->best[i].plan, sizeof result.best[i].plan) == 0 &&
               result.best[i].mfu == all->best[i].mfu &&
               result.best[i].peak_bytes == all->best[i].peak_bytes;
    ok(same, "... and the same list");
    ty_search_free(&result);

    /* A known time that no simulation would give is taken as it is: nothing was simulated. */
    again = (struct seen){0};
    half[0].step_time_s = 1e-3;
    ok(search_share(&share, &again, &result) == TY_OK &&
           result.best[0].plan_id == half[0].plan_id && result.best[0].step_time_s == 1e-3,
       "a known plan is not simulated");
    ty_search_free(&result);
}

int main(void)
{
    static struct seen whole;
    struct ty_search_result all;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    ok(search_share(NULL, &whole, &all) == TY_OK && whole.n > 100, "the whole search runs");
    shards_add_up(&whole, &all);
    known_is_taken(&whole, &all);
    ty_search_free(&all);

    const struct ty_share wrong = {.shard = 3, .n_shards = 3};
    struct seen *seen = calloc(1, sizeof *seen);
    ok(search_share(&wrong, seen, &all) == TY_ERR_RANGE, "shard 3 of 3 is refused");
    free(seen);
    return tap_done();
}
