/* SPDX-License-Identifier: MIT
 *
 * JSON text writer. The buffer doubles; `failed` is sticky. Source: RFC 8259 sections 6 and 7 for
 * numbers and escapes, RFC 3629 section 4 for what counts as UTF-8.
 */
#include "models/spec/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct json_writer *json, size_t more)
{
    if (json->failed)
        return false;
    size_t capacity = json->capacity ? json->capacity : 256;
    while (capacity - json->n_bytes < more && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity == json->capacity)
        return true;
    char *text = capacity - json->n_bytes < more ? NULL : realloc(json->text, capacity);
    if (!text) {
        json->failed = true;
        return false;
    }
    json->text = text;
    json->capacity = capacity;
    return true;
}

static void put(struct json_writer *json, const char *bytes, size_t n)
{
    if (!reserve(json, n))
        return;
    memcpy(json->text + json->n_bytes, bytes, n);
    json->n_bytes += n;
}

static void put_line(struct json_writer *json)
{
    put(json, "\n", 1);
    for (uint32_t level = 0; level < json->depth; level++)
        put(json, "  ", 2);
}

static void put_escaped(struct json_writer *json, unsigned char byte)
{
    static const char short_form[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte, letter */
    for (size_t i = 0; i + 1 < sizeof short_form; i += 2) {
        if ((unsigned char)short_form[i] != byte)
            continue;
        char pair[2] = {'\\', short_form[i + 1]};
        put(json, pair, 2);
        return;
    }
    char code[7];
    snprintf(code, sizeof code, "\\u%04x", (unsigned)byte);
    put(json, code, 6);
}

static void put_string(struct json_writer *json, const char *text)
{
    put(json, "\"", 1);
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t n = utf8_bytes((const char *)s);
        if (n == 0)
            put(json, "\xEF\xBF\xBD", 3); /* U+FFFD, replacement character */
        else if (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7F)
            put_escaped(json, *s);
        else
            put(json, (const char *)s, n);
        s += n ? n : 1;
    }
    put(json, "\"", 1);
}

/* Comma, line break and key before a value; false when the value must not be written. */
static bool place(struct json_writer *json, const char *key)
{
    bool in_object = json->depth && json->closer[json->depth - 1] == '}';
    if ((key != NULL) != in_object || (!json->depth && json->n_bytes))
        json->failed = true;
    if (json->failed)
        return false;
    if (!json->empty)
        put(json, ",", 1);
    if (json->depth)
        put_line(json);
    json->empty = false;
    if (key) {
        put_string(json, key);
        put(json, ": ", 2);
    }
    return !json->failed;
}

static void put_value(struct json_writer *json, const char *key, const char *value)
{
    if (place(json, key))
        put(json, value, strlen(value));
}

static void open_level(struct json_writer *json, const char *key, const char *opener, char closer)
{
    if (json->depth == JSON_MAX_DEPTH)
        json->failed = true;
    if (!place(json, key))
        return;
    put(json, opener, 1);
    json->closer[json->depth++] = closer;
    json->empty = true;
}

void json_begin(struct json_writer *json)
{
    *json = (struct json_writer){.empty = true};
}

char *json_finish(struct json_writer *json)
{
    if (json->depth || !json->n_bytes)
        json->failed = true;
    put(json, "\n", 2); /* with its terminator */
    if (json->failed) {
        free(json->text);
        json->text = NULL;
    }
    return json->text;
}

void json_object(struct json_writer *json, const char *key)
{
    open_level(json, key, "{", '}');
}

void json_array(struct json_writer *json, const char *key)
{
    open_level(json, key, "[", ']');
}

void json_close(struct json_writer *json)
{
    if (!json->depth)
        json->failed = true;
    if (json->failed)
        return;
    char closer = json->closer[--json->depth];
    if (!json->empty)
        put_line(json);
    put(json, &closer, 1);
    json->empty = false;
}

void json_text(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        json_null(json, key);
    else if (place(json, key))
        put_string(json, text);
}

void json_number(struct json_writer *json, const char *key, double value)
{
    char number[JSON_NUMBER_BYTES];
    put_value(json, key, json_number_text(value, number));
}

void json_count(struct json_writer *json, const char *key, uint64_t value)
{
    char number[JSON_NUMBER_BYTES];
    snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    put_value(json, key, number);
}

void json_bool(struct json_writer *json, const char *key, bool value)
{
    put_value(json, key, value ? "true" : "false");
}

void json_null(struct json_writer *json, const char *key)
{
    put_value(json, key, "null");
}

const char *json_number_text(double value, char out[JSON_NUMBER_BYTES])
{
    if (!isfinite(value)) {
        memcpy(out, "null", sizeof "null");
        return out;
    }
    int digits = 15; /* DBL_DIG: always enough for decimal text; 17 always reads back */
    do
        snprintf(out, JSON_NUMBER_BYTES, "%.*g", digits, value);
    while (strtod(out, NULL) != value && digits++ < 17);

    /* The decimal point is the locale's, perhaps of several bytes: make it a dot. */
    char *end = out;
    bool in_point = false;
    for (const char *s = out; *s; s++) {
        bool number = strchr("0123456789+-e", *s) != NULL;
        if (number)
            *end++ = *s;
        else if (!in_point)
            *end++ = '.';
        in_point = !number;
    }
    *end = '\0';
    return out;
}

size_t utf8_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xBF; /* admissible second byte */
    if (s[0] == 0xE0)
        low = 0xA0;
    if (s[0] == 0xED)
        high = 0x9F;
    if (s[0] == 0xF0)
        low = 0x90;
    if (s[0] == 0xF4)
        high = 0x8F;
    if (s[0] < 0xC2 || s[0] > 0xF4 || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}
