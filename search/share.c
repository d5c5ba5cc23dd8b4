/* SPDX-License-Identifier: MIT
 * Parts of a search: shards by hash, and what earlier runs have simulated. */
#include "include/trainyard_sweep.h"

uint32_t ty_shard_of(uint64_t id, uint32_t n_shards)
{
    uint64_t hash = id + 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((hash ^ hash >> 31) % n_shards);
}

const struct ty_known *ty_known_find(const struct ty_share *share, uint64_t plan_id)
{
    uint64_t low = 0, high = share->n_known;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (share->known[middle].plan_id < plan_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < share->n_known && share->known[low].plan_id == plan_id ? &share->known[low] : NULL;
}
