/* SPDX-License-Identifier: MIT
 *
 * Sizes of a layer that parameter and flop counts share (handbook 1.1, 1.4).
 */
#ifndef MODELS_ARCHITECTURE_H
#define MODELS_ARCHITECTURE_H

#include "include/trainyard.h"

/* Elements of the weight matrices of a layer's attention (MLA: with its two inner norms). */
double attention_matrix(const struct ty_model *model, const struct ty_layer_kind *kind);
/* Matrix elements of one dense MLP, or of one expert, of inner size ffn. */
double mlp_matrix(const struct ty_model *model, const struct ty_layer_kind *kind, uint32_t ffn);
/* Scales (and biases) a norm has per channel: 1 or 2. */
double norm_vectors(const struct ty_model *model);

#endif
