/* SPDX-License-Identifier: MIT
 *
 * trainyard_launch.h: what a training framework can run, and the arguments that make it run a plan.
 * struct ty_framework and ty_framework_lacks are part of the core library, the rest of the tools
 * library; conventions as in trainyard.h.
 */
#ifndef TRAINYARD_LAUNCH_H
#define TRAINYARD_LAUNCH_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_MAX_LIMITS 48

/* Values of a plan field that a framework can run. */
struct ty_limit {
    const struct ty_field *field;
    uint64_t allowed; /* enums: bit of each value; flags: the bits; numbers: bit of each below 64 */
    uint64_t required; /* flags that are always on */
    bool any;          /* every value */
};

/* An allow-list with its version: fields that it does not name are not limited. Plain values. */
struct ty_framework {
    char name[24], version[80], source[240];
    char stack[32];   /* whose constants go with it */
    char stacks[160]; /* all that may, parted by blanks */
    uint32_t n_limits;
    struct ty_limit limit[TY_MAX_LIMITS];
};

/* The first field of a resolved plan whose value the framework lacks; NULL: it can run the plan.
 * Fields without effect in the plan (cp_scheme with cp 1, ...) are not asked. Cost ~50 ns. */
TY_API const struct ty_field *ty_framework_lacks(const struct ty_framework *framework,
                                                 const struct ty_plan *resolved);

/* A built-in allow-list: megatron, torchtitan, deepspeed, nemo. Cost: 0.1 ms. returns TY_OK,
 * TY_ERR_INPUT (no such name), TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_framework_load(const char *name, struct ty_framework *out,
                                                 struct ty_error *error);
/* Name of the index-th framework; NULL behind the last. */
TY_API const char *ty_framework_name(size_t index);
/* Whether the constants of a stack ("megatron-core@25") go with a framework. */
TY_API bool ty_framework_takes(const struct ty_framework *framework, const char *stack);

/* The launch arguments of a resolved plan on nodes of gpus_per_node GPUs: a shell script of flags
 * (megatron) or overrides (nemo), TOML (torchtitan), JSON (deepspeed), with the line that starts
 * it. The model's own arguments are not in it. Free with ty_text_free. Cost: below 1 ms. returns
 * TY_OK, TY_ERR_INPUT (error: the knob that the framework lacks, and what it has), TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_launch_write(const char *framework,
                                               const struct ty_plan *resolved,
                                               uint32_t gpus_per_node, char **text,
                                               struct ty_error *error);
/* Reads such arguments, of a file that this or a person wrote; its form tells the framework. What
 * they do not say stays at the default marker. name: [24]. Cost: linear. returns TY_OK, TY_ERR_IO,
 * TY_ERR_INPUT, TY_ERR_NOMEM. */
TY_API TY_MUST_CHECK ty_status ty_launch_read(const char *path, struct ty_plan *plan, char *name,
                                              struct ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
