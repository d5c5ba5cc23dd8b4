/* SPDX-License-Identifier: MIT
 * How alike two names are: for "did you mean" in refusals. */
#ifndef MODELS_SPEC_TEXT_H
#define MODELS_SPEC_TEXT_H

#include <stddef.h>

/* Levenshtein distance: insertions, deletions and replacements of characters that turn a into b.
 * Names are compared up to 63 characters. */
size_t text_distance(const char *a, const char *b);

#endif
