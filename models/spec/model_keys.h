/* SPDX-License-Identifier: MIT
 *
 * Reading a HuggingFace config by meaning: every family has its own names for the same size.
 *
 * A `struct config` remembers the first refusal; later reads give the fallback and change nothing,
 * so a family reads all its keys and looks at `status` once.
 */
#ifndef MODELS_SPEC_MODEL_KEYS_H
#define MODELS_SPEC_MODEL_KEYS_H

#include "models/spec/json.h"

enum key {
    KEY_HIDDEN,
    KEY_LAYERS,
    KEY_HEADS,
    KEY_KV_HEADS,
    KEY_HEAD_DIM,
    KEY_FFN,
    KEY_VOCAB,
    KEY_MAX_SEQ,
    KEY_WINDOW,
    KEY_EXPERTS,
    KEY_TOP_K,
    KEY_EXPERT_FFN,
    KEY_SHARED_FFN,
    N_KEYS
};

enum { PART_ATTENTION, PART_FFN, N_PARTS }; /* "attn_config", "ffn_config" of DBRX and MPT */

struct config {
    struct json_at at; /* the object that describes the decoder */
    struct json_at parts[N_PARTS];
    bool has_part[N_PARTS];
    ty_status status;
    struct ty_error *error;
};

/* object: must outlive the config. */
void config_open(struct config *config, const struct json_at *object, struct ty_error *error);

/* A member by name, "attn_config." and "ffn_config." looked up inside; false: absent or null. */
bool config_find(const struct config *config, const char *name, struct json_at *out);
/* The key is there, null or not. */
bool config_has(const struct config *config, const char *name);

/* A size under any of its names, names that disagree are refused. need: refuses absence and 0. */
uint32_t config_need(struct config *config, enum key key);
uint32_t config_size(struct config *config, enum key key, uint32_t fallback);
/* The first name of a key that the config uses, else its usual name. */
const char *config_key_name(const struct config *config, enum key key);

/* Single names. */
uint32_t config_need_count(struct config *config, const char *name);
uint32_t config_count(struct config *config, const char *name, uint32_t fallback);
bool config_flag(struct config *config, const char *name, bool fallback);
/* Text of a member, "" when absent. */
const char *config_text(struct config *config, const char *name);

/* Remembers the first refusal at a key ("" = the config itself). */
__attribute__((format(printf, 4, 5))) void config_refuse(struct config *config, ty_status code,
                                                         const char *key, const char *format, ...);
/* Refuses the absence of a key and lists those seen. */
void config_missing(struct config *config, const char *key);

#endif
