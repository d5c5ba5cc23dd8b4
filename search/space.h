/* SPDX-License-Identifier: MIT
 *
 * The plan space as a numbered set: for each GPU count a list of values per knob; a plan id is a
 * mixed-radix number over these lists, counts first. Any worker can decode any id, and the order
 * of ids is the tie-break of the ranking.
 */
#ifndef SEARCH_SPACE_H
#define SEARCH_SPACE_H

#include "models/setting.h"
#include "sim/arena.h"

enum knob {
    KNOB_GBS,
    KNOB_PRECISION,
    KNOB_SHARDING,
    KNOB_RECOMPUTE,
    KNOB_SCHEDULE,
    KNOB_OFFLOAD,
    KNOB_LAYOUT, /* its values are places in the list of layouts */
    KNOB_TP,
    KNOB_CP,
    KNOB_EP,
    KNOB_ETP,
    KNOB_PP,
    KNOB_VPP,
    KNOB_MBS,
    N_KNOBS
};

#define KNOB_MAX_VALUES 128

struct knob_values {
    uint32_t n;
    uint32_t value[KNOB_MAX_VALUES];
};

/* The values of every knob for one GPU count. */
struct count_space {
    uint32_t n_gpus;
    uint64_t first_id, n_plans;
    struct knob_values knob[N_KNOBS];
};

struct space {
    struct ty_plan fixed;
    uint32_t n_counts;
    struct count_space *count; /* [n_counts], ascending n_gpus */
    uint64_t n_plans;
    uint32_t n_layouts;
    char layout[TY_MAX_LAYOUTS][256];
    struct ty_allocator allocator; /* of count */
};

/* Lists the values of every knob for every GPU count: the caller's where given, else all that
 * could be legal. allocator NULL: malloc and free; one allocation, here. returns TY_OK,
 * TY_ERR_NOMEM, TY_ERR_RANGE (no GPU count, too many values). */
ty_status space_init(const struct setting *setting, const struct ty_space *asked,
                     const struct ty_allocator *allocator, struct space *out,
                     struct ty_error *error);
void space_destroy(struct space *space);
/* The plan of an id < n_plans, resolved; it may be illegal: a plan that would come twice is. */
void space_plan(const struct space *space, const struct setting *setting, uint64_t id,
                struct ty_plan *out);

#endif
