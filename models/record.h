/* SPDX-License-Identifier: MIT
 *
 * Layer records: a layer pass is run once through the engine, kernel by kernel, with its
 * collectives on their own stream and the host issuing ahead, and kept. The value is a pure
 * function of its key, so a cache changes no answer.
 */
#ifndef MODELS_RECORD_H
#define MODELS_RECORD_H

#include "models/layer.h"
#include "sim/engine.h"

struct record {
    double time_s;             /* undisturbed, host issuing far enough ahead */
    double part_s[TY_N_PARTS]; /* busy kernels by kind and exposed collectives; adds up to time_s */
    double host_s;             /* time the host needs to issue it; 0 when replayed from a graph */
    double link_bytes[N_LINKS]; /* moved by the layer's own collectives, one rank, one direction */
    double flop_model, flop_hw;
    struct origins origins;
};

struct record_cache;
ty_status record_cache_create(const struct ty_allocator *allocator, struct record_cache **out);
void record_cache_destroy(struct record_cache *cache);
void record_cache_clear(struct record_cache *cache);
/* Records belong to one setting: forgets them all when the cache was last used with another. */
void record_cache_use(struct record_cache *cache, const struct setting *setting);

/* The record of one pass under the setting of record_cache_use; computed on first use of its key.
 * The pointer lives until the cache is cleared. engine: scratch, reset by this function. */
ty_status record_get(struct record_cache *cache, struct engine *engine,
                     const struct setting *setting, const struct ty_plan *plan,
                     enum layer_what what, uint32_t kind, enum layer_phase phase,
                     const struct record **out);

#endif
