/* SPDX-License-Identifier: MIT
 *
 * What a family of models fixes in its code rather than in its config: norms, biases, defaults,
 * which layers have experts or windows. One row a family.
 */
#ifndef MODELS_SPEC_MODEL_FAMILY_H
#define MODELS_SPEC_MODEL_FAMILY_H

#include "models/spec/model_keys.h"

enum trait {
    GATED = 1,
    TIED = 2,       /* unless tie_word_embeddings says otherwise */
    QKV_BIAS = 4,   /* fixed, or the default of attention_bias */
    OUT_BIAS = 8,   /* the same for the output projection */
    MLP_BIAS = 16,  /* fixed, or the default of mlp_bias */
    HEAD_BIAS = 32, /* the default of lm_head_bias */
    BIAS_KEY = 64,  /* attention_bias is obeyed for q, k, v */
    OUT_KEY = 128,  /* and for the output */
    FFN_4H = 256,   /* MLP of 4 h unless a key gives its size */
    QK_HEAD = 512,  /* q and k norms, one head wide; the default of use_qk_norm */
    QK_FULL = 1024, /* the same over all heads */
    MLA = 2048,
    FFN_IS_EXPERT = 4096, /* intermediate_size is the size of one expert */
    POSITIONS = 8192      /* learned position table of max_seq rows */
};

/* Layers with a window when the config lists no layer_types; the first layer is 1. */
enum windows {
    WINDOWS_NONE,
    WINDOWS_ALL,
    WINDOWS_SWITCHED, /* all, if use_sliding_window */
    WINDOWS_ABOVE,    /* from max_window_layers on, if use_sliding_window */
    WINDOWS_PERIOD    /* all but every n-th layer */
};

/* Layers with experts; first_k: the default of first_k_dense_replace. */
enum experts {
    EXPERTS_NONE,
    EXPERTS_ALL,
    EXPERTS_FROM,       /* from layer first_k on, each moe_layer_freq-th */
    EXPERTS_STEP,       /* each decoder_sparse_step-th, less mlp_only_layers */
    EXPERTS_INTERLEAVED /* each interleave_moe_layer_step-th, or the list moe_layers */
};

/* A model being read: every layer spelled out. */
struct draft {
    struct ty_model *model;
    struct ty_layer_kind layers[TY_MAX_LAYERS];
};

struct family {
    const char *model_type, *architecture;
    uint32_t traits; /* bits of enum trait */
    int norm;        /* enum ty_norm */
    uint32_t n_norms;
    uint32_t head_dim; /* the default when it is not hidden / heads; 0: it is */
    enum windows windows;
    uint32_t window; /* the size when the config names none */
    uint32_t period; /* WINDOWS_PERIOD: the default n */
    enum experts experts;
    uint32_t first_k;
    /* What the columns cannot say; NULL: nothing. base: before the layers are spelled out. */
    void (*base)(struct config *config, struct ty_model *model, struct ty_layer_kind *kind);
    void (*layers)(struct config *config, struct draft *draft); /* after it */
};

/* By model_type, "_text" ignored; by class name. NULL: unknown. */
const struct family *family_by_type(const char *model_type);
const struct family *family_by_architecture(const char *architecture);
/* All model_types, ", " between them. */
void family_list(char *out, size_t bytes);
/* The nearest model_type, for "did you mean". */
const char *family_nearest(const char *model_type);

/* model_nas.c: layers of a searched architecture. */
void layers_from_blocks(struct config *config, struct draft *draft);

/* model_layers.c: gives layers their experts and windows; turns a draft into kinds. */
void layers_place(struct config *config, const struct family *family, struct draft *draft);
void layers_to_kinds(struct config *config, struct draft *draft);

#endif
