/* SPDX-License-Identifier: MIT
 *
 * Parts of a pass, private to models/layer*.c: a builder that appends kernels and collectives,
 * and the halves of a layer built with it.
 *
 * Symbols as in the handbook: tok tokens of the micro-batch on this rank (s b / cp), w bytes of an
 * activation element, S = tok h w the payload of a TP collective.
 */
#ifndef MODELS_LAYER_PARTS_H
#define MODELS_LAYER_PARTS_H

#include "models/layer.h"

struct build {
    const struct setting *setting;
    const struct ty_plan *plan;
    const struct ty_layer_kind *kind;
    struct item_list *list;
    bool dgrad, wgrad; /* what a backward part appends */
    bool recompute;    /* forward items run again: no model flop */
    bool sp;           /* sequence parallel and tp > 1 */
    double tp, tok, hidden;
    double w_bytes;      /* one activation element */
    double norm_tok;     /* tokens of the parts outside the GEMMs: tok / tp with SP */
    double linear_share; /* of the rows of each GEMM that run */
    bool skip_core;      /* attention's core does not run */
    double tp_exposed;   /* share of a TP collective that is not hidden */
    struct group_shape tp_shape, cp_shape, ep_shape, etp_shape;
};

/* ---- appending (layer_build.c) */

void build_kernel(struct build *build, const struct kernel *kernel);
/* Element-wise traffic at the stack's fusion (times elementwise_ratio); backward costs more. */
void build_bytes(struct build *build, const char *name, double bytes);
void build_bytes_backward(struct build *build, const char *name, double forward_bytes);
/* n norms over the hidden size. */
void build_norms_forward(struct build *build, double n_norms);
void build_norms_backward(struct build *build, double n_norms);
/* Quantisation casts of `elements`, low precision only (ACCURACY 1.4); a compiler fuses them. */
void build_casts(struct build *build, double elements);
/* Elements that a micro-batch casts of a rank's weights: all once per step, none of frozen ones
 * that stay in 8 bits. */
double build_cast_weights(const struct build *build, double elements);

/* What FSDP moves through memory of `n_params` gathered parameters, and of their gradients. */
void build_gathered(struct build *build, double n_params);
void build_reduced(struct build *build, double n_params);

/* A collective that blocks. */
void build_collective(struct build *build, enum ty_part part, const struct collective *collective);
/* A collective of which the share `exposed` blocks and the rest runs beside the items appended
 * from here to build_join. returns a handle for build_join. */
uint32_t build_overlapped(struct build *build, enum ty_part part,
                          const struct collective *collective, double exposed);
void build_join(struct build *build, uint32_t handle);

/* A weight matrix and its three GEMMs. */
struct linear {
    const char *name;
    enum ty_precision precision;
    double m, n, k;
    double groups, inner; /* > 0: grouped expert GEMM */
    double excess;     /* executed flop / flop that count: replicated or unbalanced work; 0 = 1 */
    bool uncounted;    /* published flop counts leave it out */
    double n_adapters; /* LoRA adapters on it: 3 on a fused QKV */
};
void build_linear_forward(struct build *build, const struct linear *linear);
void build_linear_dgrad(struct build *build, const struct linear *linear);
void build_linear_wgrad(struct build *build, const struct linear *linear);
void build_linear_backward(struct build *build, const struct linear *linear);

/* Column-parallel: gathers its input (SP); backward: reduces dX, gathers X again for wgrad.
 * hide_gather: that second gather runs beside dgrad. Row-parallel: reduces its output; backward
 * gathers dY. (2.1) */
void build_column_forward(struct build *build, const struct linear *linear);
void build_column_backward(struct build *build, const struct linear *linear, bool hide_gather);
void build_row_forward(struct build *build, const struct linear *linear);
void build_row_backward(struct build *build, const struct linear *linear);
/* The collectives alone, of the full activation. */
struct collective build_tp_collective(const struct build *build, enum collective_op op);

/* 16-bit stand-in of a low precision for what stays outside it: attention, router, head. */
enum ty_precision wide_precision(enum ty_precision precision);

/* ---- parts of a layer; each appends nothing when the layer has no such part */

void attention_forward(struct build *build);
void attention_backward(struct build *build);
void attention_core_forward(struct build *build); /* with its CP communication */
void attention_up_forward(struct build *build);   /* MLA up-projections */

void mlp_forward(struct build *build);
void mlp_backward(struct build *build);
void mlp_body_forward(struct build *build); /* dense, without norm and residual */

void moe_forward(struct build *build);
void moe_backward(struct build *build);
void moe_body_forward(struct build *build);
void moe_activation_forward(struct build *build);
void moe_shared_forward(struct build *build);

/* Norms of the hidden size in the first (attention) and second half of a layer. */
double attention_n_norms(const struct ty_layer_kind *kind);
double mlp_n_norms(const struct ty_layer_kind *kind);

/* ---- whole layers (layer.c) and ends (layer_ends.c) */

void whole_layer_forward(struct build *build);
void whole_layer_backward(struct build *build); /* with the plan's recompute */
void embedding_forward(struct build *build);
void embedding_backward(struct build *build);
void head_forward(struct build *build);
void head_backward(struct build *build);
void mtp_modules_forward(struct build *build);
void mtp_modules_backward(struct build *build);
void loss_forward(struct build *build);
void loss_backward(struct build *build);

#endif
