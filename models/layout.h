/* SPDX-License-Identifier: MIT
 *
 * Which layers sit on which pipeline chunk. Slots are numbered chunk-major: slot = v * pp + stage
 * (interleaved: stage s holds slots s, s + pp, ...). Equal counts when the layers divide; otherwise
 * embedding, loss and MTP count as one layer each (Megatron's "account for embedding and loss");
 * with vpp = 1 any remainder goes one layer each to the middle stages. A plan may bring its own
 * layout.
 */
#ifndef MODELS_LAYOUT_H
#define MODELS_LAYOUT_H

#include "models/setting.h"

struct slot {
    uint32_t first_layer, n_layers;
    bool embedding, head; /* head: final norm, output layer, loss; and MTP modules unless bare */
    bool mtp;             /* MTP modules whose heads are in another slot */
    bool bare;            /* a head whose MTP modules are in another slot */
};

/* true when the layers can be laid out; writes pp * vpp slots (NULL: only asks). Stage s of chunk
 * v is slots[v * pp + s]. error: why not, for a plan that brings its layout (may be NULL). */
bool layout_slots(const struct setting *setting, const struct ty_plan *plan, struct slot *slots);
bool layout_check(const struct setting *setting, const struct ty_plan *plan,
                  struct ty_error *error);

/* Writes the layout that LAYOUT_BALANCED stands for: embedding, loss and each MTP module count as a
 * layer, and what then does not divide goes one layer each to the chunks in the middle. false: a
 * chunk would be left without a layer, or text [bytes] is too short. */
#define LAYOUT_BALANCED "balanced"
#define LAYOUT_EVEN     "even" /* an empty text */
bool layout_balanced(const struct ty_model *model, uint64_t n_chunks, char *text, size_t bytes);

/* ---- layout_text.c: plan.layout */

struct layout_chunk {
    uint32_t n_layers, n_mtp;
    bool embedding, loss;
};

/* Reads a layout: *n chunks, the first `max` at most written (chunks NULL: only counts). returns
 * false, with the character and what is legal there in error, for a text that is none. */
bool layout_parse(const char *text, struct layout_chunk *chunks, uint32_t max, uint32_t *n,
                  struct ty_error *error);
/* The shortest text of its kind. false: it does not fit. */
bool layout_print(const struct layout_chunk *chunks, uint32_t n, char *text, size_t bytes);

#endif
