/* SPDX-License-Identifier: MIT
 * Filling struct ty_error: the user's place and the reason. */
#ifndef SIM_ERROR_H
#define SIM_ERROR_H

#include "include/trainyard.h"

/* Writes code, where and the formatted text (truncated to fit) into error, if not NULL, and
 * returns code, so that a refusal is one line: return error_set(error, TY_ERR_RANGE, ...). */
__attribute__((format(printf, 4, 5))) ty_status
error_set(struct ty_error *error, ty_status code, const char *where, const char *format, ...);

/* snprintf that never overflows and always terminates; bytes > 0. */
__attribute__((format(printf, 3, 4))) void text_format(char *out, size_t bytes, const char *format,
                                                       ...);
/* Appends to a terminated text; whole text is cut at bytes - 1. */
__attribute__((format(printf, 3, 4))) void text_append(char *out, size_t bytes, const char *format,
                                                       ...);

#endif
