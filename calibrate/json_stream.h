/* SPDX-License-Identifier: MIT
 *
 * JSON read token by token from a file, for files too large to hold: memory is constant. The
 * grammar is checked as far as tokens and nesting go.
 */
#ifndef CALIBRATE_JSON_STREAM_H
#define CALIBRATE_JSON_STREAM_H

#include "include/trainyard.h"

#include <stdio.h>

#define JSON_STREAM_TEXT  1024 /* longer texts are cut */
#define JSON_STREAM_DEPTH 64

enum json_token {
    JSON_TOKEN_END, /* of the file, all levels closed */
    JSON_TOKEN_OPEN_OBJECT,
    JSON_TOKEN_OPEN_ARRAY,
    JSON_TOKEN_CLOSE,
    JSON_TOKEN_KEY,    /* in text */
    JSON_TOKEN_TEXT,   /* in text, escapes of ASCII characters resolved */
    JSON_TOKEN_NUMBER, /* in number */
    JSON_TOKEN_WORD,   /* true, false, null */
    JSON_TOKEN_ERROR   /* the error is set */
};

struct json_stream {
    FILE *file;
    const char *path; /* for messages */
    struct ty_error *error;
    uint64_t line;
    uint32_t depth;
    char open[JSON_STREAM_DEPTH]; /* '{' or '[' */
    bool key_next;                /* in an object, before a key */
    char text[JSON_STREAM_TEXT];
    double number;
};

void json_stream_start(struct json_stream *stream, FILE *file, const char *path,
                       struct ty_error *error);
enum json_token json_stream_next(struct json_stream *stream);
/* Passes the rest of the innermost open level. returns false after an error. */
bool json_stream_skip(struct json_stream *stream);

#endif
