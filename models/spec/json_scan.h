/* SPDX-License-Identifier: MIT
 * The pass over JSON text before it is parsed; part of json.c. */
#ifndef MODELS_SPEC_JSON_SCAN_H
#define MODELS_SPEC_JSON_SCAN_H

#include "models/spec/json.h"

#define ORIGIN_BYTES 100 /* of a path in an error: its last 96 characters */

struct scan {
    const char *text, *origin;
    size_t bytes, at;
    uint32_t line, depth, n_values; /* line starts at 1 */
    struct ty_error *error;
};

/* Refuses what the parser would take or trip over: size, encoding, nesting, numbers outside double,
 * NUL characters, bare words. Leaves depth > 0 when an object or array is not closed. */
ty_status scan_all(struct scan *scan);
/* A refusal at "file: line n". returns TY_ERR_INPUT. */
ty_status scan_refuse(const struct scan *scan, const char *text);
/* The path, or "..." and its end. */
void json_origin(const char *origin, char out[ORIGIN_BYTES]);

#endif
