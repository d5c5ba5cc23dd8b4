/* SPDX-License-Identifier: MIT
 *
 * Caches of equal items: replay of a trace under a policy, and closed forms (handbook 7.3).
 *
 * A policy is an order of eviction. Every cached item has a rank; the smallest rank leaves first,
 * among equals the one that was ranked longest ago. An item is ranked when it enters, and again at
 * each hit if the policy says so:
 *
 *   policy         rank                       ranked at a hit
 *   lru            0                          yes
 *   fifo           0                          no
 *   clock          0                          no; but who was hit since stays for one more round
 *   lfu            hits since it came in + 1  yes
 *   lfu-perfect    all past requests          yes
 *   belady         - time of its next use     yes; knows the future: the reference
 *   belady-bypass  the same                   yes; may refuse what is used last of all
 *   no-evict       none: what fills the cache first stays (2007.06775: MinIO)
 */
#ifndef MODELS_CACHE_H
#define MODELS_CACHE_H

#include "include/trainyard.h"

struct cache;

struct cache_policy {
    const char *name;
    double (*rank)(const struct cache *cache, uint32_t item); /* >= 0 */
    bool rank_at_hit;
    /* Whether a full cache takes the item at the price of another; NULL: always. */
    bool (*admits)(const struct cache *cache, uint32_t item);
    /* Whether the item whose turn it is stays for another round; NULL: never. */
    bool (*spares)(struct cache *cache, uint32_t item);
    /* Steady hit ratio when each item is read once per epoch in a fresh random order and a share
     * 0 <= c <= 1 of the items fits; NULL: no closed form. */
    double (*shuffled_hit_ratio)(double cached_ratio);
};

/* The policy of that name, or NULL; `i`-th policy, NULL past the end. */
const struct cache_policy *cache_policy_of(const char *name);
const struct cache_policy *cache_policy_at(size_t i);

struct cache_run {
    const struct cache_policy *policy;
    uint32_t n_items, capacity; /* items; ids are 0 .. n_items - 1 */
    const uint32_t *requests;   /* [n_requests] item ids */
    uint32_t n_requests;
};

/* Replays a trace through a cache that starts empty. hit [n_requests], may be NULL.
 * returns TY_OK; TY_ERR_RANGE for an id that does not exist; TY_ERR_NOMEM.
 * Cost: n_requests log capacity. */
ty_status cache_replay(const struct cache_run *run, const struct ty_allocator *allocator, bool *hit,
                       uint64_t *n_hits);

/* Steady hit ratio of shuffled epochs: the closed form, else a replay of 4,000 items over 8 epochs
 * (lfu is not stationary: its ratio climbs epoch by epoch; the last one counts). */
ty_status cache_shuffled_hit_ratio(const struct cache_policy *policy, double cached_ratio,
                                   const struct ty_allocator *allocator, double *hit_ratio);

/* ---- closed forms ------------------------------------------------------------------------ */

double cache_pinned_hit_ratio(double cached_ratio);
double cache_lru_hit_ratio(double cached_ratio);  /* c + (1-c) ln(1-c) */
double cache_scan_hit_ratio(double cached_ratio); /* the same order every epoch, LRU or FIFO */

/* Independent requests with probabilities p [n], sum 1 (Che, Tung, Wang 2002; Fricker, Robert,
 * Roberts 2012); `capacity` items fit, 0 < capacity < n. stay: how long an item stays without a
 * hit, in requests; may be NULL. */
double cache_che_lru_hit_ratio(const double *p, uint32_t n, uint32_t capacity, double *stay);
double cache_che_fifo_hit_ratio(const double *p, uint32_t n, uint32_t capacity);

#endif
