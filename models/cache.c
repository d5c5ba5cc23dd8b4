/* SPDX-License-Identifier: MIT
 *
 * Replay of a trace. The queue orders the cached items by (rank, when they were ranked), so a
 * policy is only a rank and a few answers.
 */
#include "models/cache.h"
#include "sim/arena.h"
#include "sim/queue.h"
#include "sim/random.h"

#include <math.h>
#include <string.h>

struct cache {
    const struct cache_run *run;
    struct queue *queue; /* of the cached items */
    uint32_t n_cached;
    bool *cached, *referenced; /* [n_items]; referenced: hit since it came in or was spared */
    uint32_t *n_uses;          /* [n_items] since it came in */
    uint32_t *n_requests;      /* [n_items] ever */
    uint32_t *next_use;        /* [n_requests]: index of the next request of the same item */
    uint32_t now;              /* index of this request */
};

/* ---- policies ------------------------------------------------------------------------------ */

static double rank_none(const struct cache *cache, uint32_t item)
{
    (void)cache;
    (void)item;
    return 0.0;
}

static double rank_uses(const struct cache *cache, uint32_t item)
{
    return cache->n_uses[item];
}

static double rank_requests(const struct cache *cache, uint32_t item)
{
    return cache->n_requests[item];
}

/* Asked only about the item of this request. */
static double rank_future(const struct cache *cache, uint32_t item)
{
    (void)item;
    return (double)cache->run->n_requests - cache->next_use[cache->now];
}

static bool never_admits(const struct cache *cache, uint32_t item)
{
    (void)cache;
    (void)item;
    return false;
}

static bool admits_nearer_use(const struct cache *cache, uint32_t item)
{
    return rank_future(cache, item) > queue_time_s(cache->queue);
}

static bool spares_referenced(struct cache *cache, uint32_t item)
{
    const bool spared = cache->referenced[item];
    cache->referenced[item] = false;
    return spared;
}

/* With one use of each item per epoch, at most the items cached at its start can hit: the pinned
 * ratio is the optimum. Perfect LFU on shuffled epochs counts every item alike: it is LRU. */
static const struct cache_policy POLICIES[] = {
    {"no-evict", rank_none, false, never_admits, NULL, cache_pinned_hit_ratio},
    {"lru", rank_none, true, NULL, NULL, cache_lru_hit_ratio},
    {"lfu", rank_uses, true, NULL, NULL, NULL},
    {"lfu-perfect", rank_requests, true, NULL, NULL, cache_lru_hit_ratio},
    {"fifo", rank_none, false, NULL, NULL, NULL},
    {"clock", rank_none, false, NULL, spares_referenced, NULL},
    {"belady", rank_future, true, NULL, NULL, cache_pinned_hit_ratio},
    {"belady-bypass", rank_future, true, admits_nearer_use, NULL, cache_pinned_hit_ratio},
};
enum { N_POLICIES = sizeof POLICIES / sizeof *POLICIES };

const struct cache_policy *cache_policy_at(size_t i)
{
    return i < N_POLICIES ? &POLICIES[i] : NULL;
}

const struct cache_policy *cache_policy_of(const char *name)
{
    for (size_t i = 0; i < N_POLICIES; i++)
        if (strcmp(POLICIES[i].name, name) == 0)
            return &POLICIES[i];
    return NULL;
}

/* ---- replay -------------------------------------------------------------------------------- */

static bool place(struct cache *cache, uint32_t item)
{
    return queue_set(cache->queue, item, cache->run->policy->rank(cache, item), 0);
}

static bool evict(struct cache *cache)
{
    const struct cache_policy *policy = cache->run->policy;
    double rank;
    uint32_t item = queue_pop(cache->queue, &rank);
    while (policy->spares && policy->spares(cache, item)) {
        if (!queue_set(cache->queue, item, rank, 0))
            return false;
        item = queue_pop(cache->queue, &rank);
    }
    cache->cached[item] = false;
    cache->n_cached--;
    return true;
}

static bool miss(struct cache *cache, uint32_t item)
{
    const struct cache_run *run = cache->run;
    const struct cache_policy *policy = run->policy;
    if (run->capacity == 0)
        return true;
    if (cache->n_cached == run->capacity) {
        if (policy->admits && !policy->admits(cache, item))
            return true;
        if (!evict(cache))
            return false;
    }
    cache->cached[item] = true;
    cache->referenced[item] = false;
    cache->n_uses[item] = 1;
    cache->n_cached++;
    return place(cache, item);
}

static bool hit_again(struct cache *cache, uint32_t item)
{
    cache->referenced[item] = true;
    cache->n_uses[item]++;
    return !cache->run->policy->rank_at_hit || place(cache, item);
}

/* next_use by one pass from the end. */
static void look_ahead(struct cache *cache, uint32_t *seen_at)
{
    const struct cache_run *run = cache->run;
    for (uint32_t item = 0; item < run->n_items; item++)
        seen_at[item] = run->n_requests;
    for (uint32_t i = run->n_requests; i-- > 0;) {
        cache->next_use[i] = seen_at[run->requests[i]];
        seen_at[run->requests[i]] = i;
    }
}

static ty_status prepare(struct cache *cache, struct arena *arena)
{
    const struct cache_run *run = cache->run;
    cache->cached = arena_get(arena, run->n_items, sizeof *cache->cached);
    cache->referenced = arena_get(arena, run->n_items, sizeof *cache->referenced);
    cache->n_uses = arena_get(arena, run->n_items, sizeof *cache->n_uses);
    cache->n_requests = arena_get(arena, run->n_items, sizeof *cache->n_requests);
    cache->next_use = arena_get(arena, run->n_requests, sizeof *cache->next_use);
    uint32_t *seen_at = arena_get(arena, run->n_items, sizeof *seen_at);
    if (!cache->cached || !cache->referenced || !cache->n_uses || !cache->n_requests ||
        !cache->next_use || !seen_at)
        return TY_ERR_NOMEM;
    look_ahead(cache, seen_at);
    return TY_OK;
}

static ty_status replay(struct cache *cache, bool *hit, uint64_t *n_hits)
{
    const struct cache_run *run = cache->run;
    uint64_t n = 0;
    for (uint32_t i = 0; i < run->n_requests; i++) {
        const uint32_t item = run->requests[i];
        const bool is_hit = cache->cached[item];
        cache->now = i;
        cache->n_requests[item]++;
        if (!(is_hit ? hit_again(cache, item) : miss(cache, item)))
            return TY_ERR_NOMEM;
        n += is_hit;
        if (hit)
            hit[i] = is_hit;
    }
    *n_hits = n;
    return TY_OK;
}

ty_status cache_replay(const struct cache_run *run, const struct ty_allocator *allocator, bool *hit,
                       uint64_t *n_hits)
{
    for (uint32_t i = 0; i < run->n_requests; i++)
        if (run->requests[i] >= run->n_items)
            return TY_ERR_RANGE;
    struct cache cache = {.run = run};
    struct arena arena;
    arena_init(&arena, allocator);
    ty_status status = prepare(&cache, &arena);
    if (status == TY_OK)
        status = queue_create(allocator, &cache.queue);
    if (status == TY_OK) {
        status = replay(&cache, hit, n_hits);
        queue_destroy(cache.queue);
    }
    arena_destroy(&arena);
    return status;
}

/* ---- shuffled epochs ------------------------------------------------------------------------ */

enum { SHUFFLED_ITEMS = 4000, SHUFFLED_EPOCHS = 8 };

/* Each epoch a fresh permutation (Fisher and Yates). */
static void shuffle_epochs(uint32_t *requests)
{
    struct random_stream stream;
    random_init(&stream, 0, 0);
    for (uint32_t epoch = 0; epoch < SHUFFLED_EPOCHS; epoch++) {
        uint32_t *order = requests + (size_t)epoch * SHUFFLED_ITEMS;
        for (uint32_t i = 0; i < SHUFFLED_ITEMS; i++) {
            const uint64_t j = random_below(&stream, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
    }
}

ty_status cache_shuffled_hit_ratio(const struct cache_policy *policy, double cached_ratio,
                                   const struct ty_allocator *allocator, double *hit_ratio)
{
    if (!(cached_ratio >= 0.0))
        return TY_ERR_RANGE;
    const double c = fmin(cached_ratio, 1.0);
    if (policy->shuffled_hit_ratio) {
        *hit_ratio = policy->shuffled_hit_ratio(c);
        return TY_OK;
    }
    struct arena arena;
    arena_init(&arena, allocator);
    const uint32_t n = SHUFFLED_ITEMS * SHUFFLED_EPOCHS;
    uint32_t *requests = arena_get(&arena, n, sizeof *requests);
    bool *hit = arena_get(&arena, n, sizeof *hit);
    ty_status status = TY_ERR_NOMEM;
    if (requests && hit) {
        shuffle_epochs(requests);
        const struct cache_run run = {policy, SHUFFLED_ITEMS, (uint32_t)lround(c * SHUFFLED_ITEMS),
                                      requests, n};
        uint64_t n_hits, n_last = 0;
        status = cache_replay(&run, allocator, hit, &n_hits);
        for (uint32_t i = n - SHUFFLED_ITEMS; status == TY_OK && i < n; i++)
            n_last += hit[i];
        *hit_ratio = (double)n_last / SHUFFLED_ITEMS;
    }
    arena_destroy(&arena);
    return status;
}
