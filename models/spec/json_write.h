/* SPDX-License-Identifier: MIT
 *
 * Writes JSON text (RFC 8259) into a growing buffer: two spaces a level, keys in call order.
 *
 *   struct json_writer json;
 *   json_begin(&json);
 *   json_object(&json, NULL);
 *   json_number(&json, "step_time_s", 1.25);
 *   json_array(&json, "stages");
 *   json_number(&json, NULL, 3.0);
 *   json_close(&json);
 *   json_close(&json);
 *   char *text = json_finish(&json);
 *
 * Running out of memory, wrong nesting and nesting beyond JSON_MAX_DEPTH are remembered; later
 * calls do nothing and json_finish gives NULL, so a caller checks once, at the end.
 * key: name of the member inside an object; NULL inside an array and for the top value.
 */
#ifndef MODELS_SPEC_JSON_WRITE_H
#define MODELS_SPEC_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_MAX_DEPTH    64
#define JSON_NUMBER_BYTES 32 /* longest %.17g of a double is 24 characters */

struct json_writer {
    char *text;
    size_t n_bytes, capacity;
    uint32_t depth;
    char closer[JSON_MAX_DEPTH]; /* '}' or ']' of each open level */
    bool empty;                  /* the innermost level has no member yet */
    bool failed;
};

void json_begin(struct json_writer *json);
/* The text, terminated, ends with a newline; the caller frees it (ty_text_free). NULL when
 * memory ran out or a level is still open. The writer needs a new json_begin afterwards. */
char *json_finish(struct json_writer *json);

void json_object(struct json_writer *json, const char *key);
void json_array(struct json_writer *json, const char *key);
void json_close(struct json_writer *json); /* the innermost object or array */

/* text NULL: null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json_writer *json, const char *key, const char *text);
/* Shortest of 15, 16 or 17 digits that reads back to the same bits; NAN and infinities: null. */
void json_number(struct json_writer *json, const char *key, double value);
void json_count(struct json_writer *json, const char *key, uint64_t value);
void json_bool(struct json_writer *json, const char *key, bool value);
void json_null(struct json_writer *json, const char *key);

/* The number as json_number writes it, "null" when not finite; independent of the locale.
 * returns out. */
const char *json_number_text(double value, char out[JSON_NUMBER_BYTES]);

/* Bytes of the UTF-8 character a terminated text starts with, 0 when it is none: overlong forms,
 * surrogates and values over U+10FFFF are refused. */
size_t utf8_bytes(const char *text);

#endif
