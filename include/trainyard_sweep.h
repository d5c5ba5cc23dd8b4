/* SPDX-License-Identifier: MIT
 *
 * trainyard_sweep.h: a search in parts. One part is a share of the plans (a job of an array), or
 * what an interrupted search has left to do. Part of the core library; conventions as in
 * trainyard.h.
 */
#ifndef TRAINYARD_SWEEP_H
#define TRAINYARD_SWEEP_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an earlier run has simulated of one plan. */
struct ty_known {
    uint64_t plan_id;
    double step_time_s, busy_s; /* busy_s: of its outlay */
    double breakdown_s[TY_N_PARTS];
};

/* The part of a search to do (ty_search.share). It is the caller's and must outlive the search.
 * The result is that of the plans of the shard; together the shards enumerate, reject and simulate
 * exactly what one search does. A known plan is ranked and reported like any other, with the same
 * bits, but not simulated: its times are taken as they are, so they must be from a search of the
 * same inputs and space. */
struct ty_share {
    uint32_t shard, n_shards;     /* shard < n_shards; n_shards 0: the whole */
    const struct ty_known *known; /* [n_known], ascending plan_id */
    uint64_t n_known;
};

/* Which shard a plan (or point of a crossing) belongs to: its id hashed, so that every shard gets
 * its share of cheap and of dear plans. n_shards >= 1. returns 0 .. n_shards - 1; the same on every
 * machine. source: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) */
TY_API uint32_t ty_shard_of(uint64_t id, uint32_t n_shards);

/* What is known of a plan; NULL: nothing. Cost O(log n_known). */
TY_API const struct ty_known *ty_known_find(const struct ty_share *share, uint64_t plan_id);

#ifdef __cplusplus
}
#endif
#endif
