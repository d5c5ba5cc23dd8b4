/* SPDX-License-Identifier: MIT */
#ifndef SEARCH_SHARE_H
#define SEARCH_SHARE_H

#include "include/trainyard_sweep.h"

/* Whether a plan or point is of the shard; share NULL: all are. */
static inline bool share_has(const struct ty_share *share, uint64_t id)
{
    return !share || !share->n_shards || ty_shard_of(id, share->n_shards) == share->shard;
}

#endif
