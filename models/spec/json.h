/* SPDX-License-Identifier: MIT
 *
 * Reading JSON from users: any bytes are safe, and every refusal names file, line or field.
 *
 * A text is first scanned (encoding, nesting, numbers, size), then parsed by cJSON, then checked
 * for repeated keys. Values are reached through `struct json_at`, a node with its way back to the
 * top, so that each error says "cluster.json: network.nic" or "config.json: layers[2].ffn". The
 * json_at of a parent and the origin text must outlive those below; both usually live on the stack.
 */
#ifndef MODELS_SPEC_JSON_H
#define MODELS_SPEC_JSON_H

#include "include/trainyard.h"

#define JSON_FILE_LIMIT_BYTES 67108864u /* 64 MiB */
#define JSON_NESTING_LIMIT    64
#define JSON_VALUES_LIMIT     1000000 /* a parsed value takes about 80 bytes */

struct cJSON;

struct json_at {
    const char *origin; /* names the file in errors */
    const struct json_at *parent;
    const struct cJSON *node;
    uint32_t index; /* place in the parent array */
};

struct json_document {
    struct cJSON *root;
    struct json_at top;
};

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

/* Parse; free with json_free (accepts a zeroed document). `origin`, for a file its path, must live
 * as long as the document. returns TY_OK, TY_ERR_IO, TY_ERR_INPUT, TY_ERR_NOMEM. */
ty_status json_load_file(const char *path, struct json_document *out, struct ty_error *error);
ty_status json_parse(const char *text, size_t bytes, const char *origin, struct json_document *out,
                     struct ty_error *error);
void json_free(struct json_document *document);

enum json_type json_type_of(const struct json_at *at);
/* Key of a member, "" of an array item or the top. */
const char *json_key(const struct json_at *at);
/* Number of members or items; 0 for other types. */
uint32_t json_size(const struct json_at *at);
/* Member of an object; false when it is absent or null, or `object` is no object. */
bool json_find(const struct json_at *object, const char *key, struct json_at *out);
/* Steps through members or items: start with item->node NULL, until false. */
bool json_next(const struct json_at *container, struct json_at *item);

/* Typed values; TY_ERR_INPUT names the place, what is there and what is legal. */
ty_status json_get_bool(const struct json_at *at, bool *out, struct ty_error *error);
ty_status json_get_double(const struct json_at *at, double min, double max, double *out,
                          struct ty_error *error);
/* A whole number. */
ty_status json_get_u32(const struct json_at *at, uint32_t min, uint32_t max, uint32_t *out,
                       struct ty_error *error);
/* The text lives in the document. */
ty_status json_get_text(const struct json_at *at, const char **out, struct ty_error *error);
/* Copies; refuses a text that does not fit. */
ty_status json_copy_text(const struct json_at *at, char *out, size_t bytes, struct ty_error *error);
ty_status json_want(const struct json_at *at, enum json_type type, struct ty_error *error);

/* Refusal at a place: where = "file: a.b[2].c". returns code. */
__attribute__((format(printf, 4, 5))) ty_status json_refuse(const struct json_at *at,
                                                            ty_status code, struct ty_error *error,
                                                            const char *format, ...);
/* Refusal of an object that lacks `key`. */
ty_status json_missing(const struct json_at *object, const char *key, struct ty_error *error);
/* "file: a.b[2].c" */
void json_place(const struct json_at *at, char *out, size_t bytes);

/* Reads one number of JSON's grammar at the start of a text, whatever the locale. returns the bytes
 * taken, 0 when there is none; *out is infinite when it is out of range. */
size_t number_parse(const char *text, size_t bytes, double *out);

#endif
