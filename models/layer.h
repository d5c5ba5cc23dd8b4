/* SPDX-License-Identifier: MIT
 *
 * The work of one layer on one rank for one micro-batch: kernels and the collectives between
 * them, in order, for forward, backward (dgrad then wgrad) and recompute (handbook 1.2-1.8, 2.1,
 * 2.3, 2.4). Also the embedding and the head with its loss.
 */
#ifndef MODELS_LAYER_H
#define MODELS_LAYER_H

#include "models/collectives.h"
#include "models/kernels.h"

enum layer_phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_DGRAD, PHASE_WGRAD, N_PHASES };
/* What a pass runs: a layer of a kind, or the ends of the model. */
enum layer_what { WHAT_LAYER, WHAT_EMBEDDING, WHAT_HEAD };

struct item {
    bool is_collective;
    struct kernel kernel;
    struct collective collective;
    enum ty_part part; /* of a collective: tp, cp, ep */
    bool overlaps;     /* collective may run beside the kernels that follow it, up to `join` */
    uint32_t join;     /* index of the first item that needs its result; 0 = the next one */
};

#define LAYER_MAX_ITEMS 160

struct item_list {
    uint32_t n;
    struct item item[LAYER_MAX_ITEMS];
    uint32_t n_launches; /* kernels the host issues */
};

/* The items of one pass. PHASE_BACKWARD includes the recompute the plan asks for. kind: index
 * into model.kinds (ignored for the ends). plan: resolved and legal. */
void layer_items(const struct setting *setting, const struct ty_plan *plan, enum layer_what what,
                 uint32_t kind, enum layer_phase phase, struct item_list *out);

/* Sum of flop_model (model = true) or flop_hw over the kernels of a list. */
double items_flop(const struct item_list *items, bool model);

#endif
