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
enum layer_what {
    WHAT_LAYER,
    WHAT_EMBEDDING,
    WHAT_HEAD, /* with the MTP modules */
    WHAT_MTP,  /* the MTP modules without their heads */
    WHAT_LOSS, /* the heads alone, of the MTP modules too */
    N_WHATS
};

struct item {
    bool is_collective;
    struct kernel kernel;
    struct collective collective;
    enum ty_part part; /* of a collective: tp, cp, ep */
    bool overlaps;     /* collective may run beside the kernels that follow it, up to `join` */
    uint32_t join;     /* overlaps: index of the first item that needs its result, > its own; the
                          list's n: the end of the pass */
};

/* Longest pass seen: backward with full recompute of the head and eight MTP modules of MoE layers
 * with every collective split (tests/layer.c). */
#define LAYER_MAX_ITEMS 1024

struct item_list {
    uint32_t n;
    uint32_t n_launches; /* kernels the host issues, collectives included */
    struct item item[LAYER_MAX_ITEMS];
};

/* The items of one pass. PHASE_BACKWARD and PHASE_DGRAD begin with the recompute the plan asks for
 * (plan.recompute_layers, the part of a stage that is recomputed, is the caller's to apply: a
 * layer does not know its place). PHASE_BACKWARD is PHASE_DGRAD and PHASE_WGRAD interleaved. The
 * head includes the MTP modules. kind: index into model.kinds (ignored for the ends). plan:
 * resolved and legal. With low precision the list depends on plan.n_micro (weights are cast once
 * per step), otherwise on layer_adds_gradients
 * and layer_shard_copies. */
void layer_items(const struct setting *setting, const struct ty_plan *plan, enum layer_what what,
                 uint32_t kind, enum layer_phase phase, struct item_list *out);

/* Whether weight gradients are added to those of the micro-batches before in kernels of their own:
 * a habit of the stack, unless each micro-batch's gradients are scattered to shards at once. */
bool layer_adds_gradients(const struct setting *setting, const struct ty_plan *plan);
/* Copies that FSDP makes of the parameters it gathers and of the gradients it reduces for every
 * micro-batch, besides its collectives. */
enum { SHARDS_GATHERED = 1, SHARDS_REDUCED = 2 };
uint32_t layer_shard_copies(const struct setting *setting, const struct ty_plan *plan);
/* Bytes in which a parameter is gathered; of a plan that is not in 32 bits. */
double layer_gathered_bytes(const struct setting *setting, const struct ty_plan *plan);

/* Sum of flop_model (model = true) or flop_hw over the kernels of a list. */
double items_flop(const struct item_list *items, bool model);

#endif
