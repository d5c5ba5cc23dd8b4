/* SPDX-License-Identifier: MIT
 *
 * Which layers sit on which pipeline chunk. Slots are numbered chunk-major: slot = v * pp + stage
 * (interleaved: stage s holds slots s, s + pp, ...). Equal counts when the layers divide; otherwise
 * embedding, loss and MTP count as one layer each (Megatron's "account for embedding and loss");
 * with vpp = 1 any remainder goes one layer each to the middle stages.
 */
#ifndef MODELS_LAYOUT_H
#define MODELS_LAYOUT_H

#include "models/setting.h"

struct slot {
    uint32_t first_layer, n_layers;
    bool embedding, head; /* head: final norm, output layer, loss, MTP modules */
};

/* true when the layers can be laid out; writes pp * vpp slots (NULL: only asks). Stage s of chunk
 * v is slots[v * pp + s]. */
bool layout_slots(const struct setting *setting, const struct ty_plan *plan, struct slot *slots);

#endif
