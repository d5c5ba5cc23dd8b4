/* SPDX-License-Identifier: MIT
 *
 * The rules behind models/legality.h as data: tests, texts and the knobs whose legal values help.
 */
#ifndef MODELS_LEGALITY_RULES_H
#define MODELS_LEGALITY_RULES_H

#include "models/setting.h"
#include "sim/error.h"

/* What a test sees; `kind` is set by the tests that find a layer kind at fault. */
struct scope {
    const struct setting *setting;
    const struct ty_plan *plan;
    const struct ty_layer_kind *kind;
    uint64_t dense_ranks, expert_ranks; /* tp cp pp and etp ep pp */
    uint32_t domain;                    /* GPUs of a scale-up domain this job uses */
};

/* A size of the plan whose legal values are worth listing. */
struct knob {
    const char *name; /* NULL: none */
    size_t offset;
};

struct rule {
    const char *name;
    enum ty_reject reject;
    bool (*broken)(struct scope *scope);
    void (*tell)(const struct scope *scope, struct ty_violation *out);
    struct knob knobs[2];
};

/* In a `tell`: what is wrong, and what would be right. */
#define SAY(...)   text_format(out->text, sizeof out->text, __VA_ARGS__)
#define LEGAL(...) text_format(out->legal, sizeof out->legal, __VA_ARGS__)

/* legality_pipeline.c */
#define LEGALITY_RULE(name)                                                                        \
    bool name##_broken(struct scope *scope);                                                       \
    void name##_tell(const struct scope *scope, struct ty_violation *out)
LEGALITY_RULE(chunks);
LEGALITY_RULE(layers);
LEGALITY_RULE(batch);
LEGALITY_RULE(interleave);
LEGALITY_RULE(dualpipe);

/* The first LEGALITY_N_GUARDS rules make the arithmetic of the others safe. */
#define LEGALITY_N_GUARDS 2
#define LEGALITY_N_RULES  28
extern const struct rule legality_rules[LEGALITY_N_RULES];

#endif
