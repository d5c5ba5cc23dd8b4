/* SPDX-License-Identifier: MIT
 *
 * The files of data/, compiled in by tools/embed.sh: {"gpus/h100-sxm", text, bytes}, by name.
 */
#ifndef MODELS_SPEC_BUILTIN_H
#define MODELS_SPEC_BUILTIN_H

#include <stddef.h>

struct builtin_file {
    const char *name; /* "folder/name" */
    const unsigned char *text;
    size_t bytes;
};
extern const struct builtin_file builtin_files[]; /* ends with name NULL */

/* folder: "gpus", "clusters", "models", "profiles", "stacks". NULL when there is none. */
const struct builtin_file *builtin_find(const char *folder, const char *name);
/* Name, without its folder, of the index-th file of a folder; NULL behind the last. */
const char *builtin_name(const char *folder, size_t index);
/* Nearest built-in name, for "did you mean"; NULL when the folder is empty. */
const char *builtin_nearest(const char *folder, const char *name);

#endif
