/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loading and walking JSON. cJSON alone is too trusting for files from outside: it takes numbers
 * beyond double, keys given twice, NUL characters in texts and nesting that a walker would recurse
 * on; the scan before it refuses those and knows the line.
 */
#include "models/spec/json.h"

#include "sim/error.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN_SHOWN 96 /* characters of a path in an error: its end */

/* ---- numbers -----------------------------------------------------------------------------------
 */

static size_t skip_digits(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* Length of -?digits(.digits)?([eE][+-]?digits)? without a leading zero; 0 when it is none. */
static size_t number_length(const char *text, size_t bytes)
{
    size_t start = bytes > 0 && text[0] == '-';
    size_t at = skip_digits(text, bytes, start);
    if (at == start || (text[start] == '0' && at > start + 1))
        return 0;
    if (at < bytes && text[at] == '.') {
        size_t end = skip_digits(text, bytes, at + 1);
        if (end == at + 1)
            return 0;
        at = end;
    }
    if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
        size_t digits = at + 1 + (at + 1 < bytes && (text[at + 1] == '+' || text[at + 1] == '-'));
        size_t end = skip_digits(text, bytes, digits);
        if (end > digits)
            at = end;
    }
    return at;
}

size_t number_parse(const char *text, size_t bytes, double *out)
{
    size_t length = number_length(text, bytes);
    char copy[512];
    if (length == 0 || length + 8 > sizeof copy)
        return 0;
    char radix[16]; /* "0.5" of the locale: what stands between 0 and 5 is its decimal point */
    size_t radix_length = (size_t)snprintf(radix, sizeof radix, "%.1f", 0.5) - 2;
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '.') {
            copy[n++] = text[i];
            continue;
        }
        memcpy(copy + n, radix + 1, radix_length);
        n += radix_length;
    }
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    return length;
}

/* ---- scan before parsing -----------------------------------------------------------------------
 */

struct scan {
    const char *text, *origin;
    size_t bytes, at;
    uint32_t line, depth, n_values;
    struct ty_error *error;
};

static void shown_origin(const char *origin, char out[ORIGIN_SHOWN + 4])
{
    size_t length = strlen(origin);
    if (length <= ORIGIN_SHOWN)
        snprintf(out, ORIGIN_SHOWN + 4, "%s", origin);
    else
        snprintf(out, ORIGIN_SHOWN + 4, "...%s", origin + length - ORIGIN_SHOWN);
}

static ty_status refuse_line(const struct scan *scan, const char *text)
{
    char origin[ORIGIN_SHOWN + 4], where[ORIGIN_SHOWN + 32];
    shown_origin(scan->origin, origin);
    snprintf(where, sizeof where, "%s: line %u", origin, scan->line);
    return error_set(scan->error, TY_ERR_INPUT, where, "%s", text);
}

/* Passes one text; `at` is behind the opening quote. */
static ty_status scan_text(struct scan *scan)
{
    while (scan->at < scan->bytes) {
        char c = scan->text[scan->at++];
        if (c == '"')
            return TY_OK;
        if (c == '\n')
            return refuse_line(scan, "a text is not closed before the end of its line");
        if (c != '\\')
            continue;
        if (scan->bytes - scan->at >= 5 && memcmp(scan->text + scan->at, "u0000", 5) == 0)
            return refuse_line(scan, "a text holds a NUL character");
        scan->at += scan->at < scan->bytes;
    }
    return refuse_line(scan, "a text is not closed before the end of the file");
}

static ty_status scan_number(struct scan *scan)
{
    double value;
    size_t length = number_parse(scan->text + scan->at, scan->bytes - scan->at, &value);
    if (length == 0)
        return refuse_line(scan, "malformed number");
    if (!isfinite(value))
        return refuse_line(scan, "number outside the range of a double (1.8e308)");
    scan->at += length;
    scan->n_values++;
    return TY_OK;
}

/* A bare word: true, false, null; anything else, such as NaN, is no JSON. */
static ty_status scan_word(struct scan *scan)
{
    size_t start = scan->at;
    while (scan->at < scan->bytes && ((scan->text[scan->at] | 32) >= 'a') &&
           ((scan->text[scan->at] | 32) <= 'z'))
        scan->at++;
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++)
        if (scan->at - start == strlen(words[i]) &&
            memcmp(scan->text + start, words[i], scan->at - start) == 0) {
            scan->n_values++;
            return TY_OK;
        }
    char text[120];
    snprintf(text, sizeof text, "\"%.*s\" is no JSON value%s",
             (int)(scan->at - start > 32 ? 32 : scan->at - start), scan->text + start,
             scan->text[start] == 'N' || scan->text[start] == 'I'
                 ? "; NaN and Infinity are not accepted"
                 : "");
    return refuse_line(scan, text);
}

static ty_status scan_token(struct scan *scan)
{
    char c = scan->text[scan->at];
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(scan);
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return scan_word(scan);
    scan->at++;
    switch (c) {
    case '"':
        scan->n_values++;
        return scan_text(scan);
    case '{':
    case '[':
        scan->n_values++;
        if (++scan->depth > JSON_NESTING_LIMIT)
            return refuse_line(scan, "nested more than 64 levels deep");
        return TY_OK;
    case '}':
    case ']':
        scan->depth -= scan->depth > 0;
        return TY_OK;
    case '\n':
        scan->line++;
        return TY_OK;
    default: /* the parser judges the rest */
        return TY_OK;
    }
}

static ty_status scan_all(struct scan *scan)
{
    if (scan->bytes > JSON_FILE_LIMIT_BYTES)
        return refuse_line(scan, "more than 64 MiB");
    const char *text = scan->text;
    if (scan->bytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return refuse_line(scan, "UTF-16 text; save the file as UTF-8");
    if (scan->bytes > 0 && memchr(text, '\0', scan->bytes))
        return refuse_line(scan, "holds NUL bytes: a binary file, or UTF-16 instead of UTF-8");
    if (scan->bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        scan->at = 3; /* byte order mark of UTF-8 */
    while (scan->at < scan->bytes) {
        ty_status status = scan_token(scan);
        if (status != TY_OK)
            return status;
        if (scan->n_values > JSON_VALUES_LIMIT)
            return refuse_line(scan, "more than 1,000,000 values");
    }
    return scan->n_values == 0 ? refuse_line(scan, "holds no JSON value") : TY_OK;
}

/* ---- checks after parsing ----------------------------------------------------------------------
 */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses an object with a key given twice: readers would silently take one of the two. */
static ty_status check_keys(const struct json_at *object, struct ty_error *error)
{
    uint32_t n = json_size(object);
    if (n < 2)
        return TY_OK;
    const char **keys = malloc(n * sizeof *keys);
    if (!keys)
        return error_set(error, TY_ERR_NOMEM, object->origin, "out of memory");
    uint32_t i = 0;
    for (const cJSON *item = object->node->child; item; item = item->next)
        keys[i++] = item->string;
    qsort(keys, n, sizeof *keys, by_text);
    ty_status status = TY_OK;
    for (i = 1; i < n && status == TY_OK; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            status =
                json_refuse(object, TY_ERR_INPUT, error, "key \"%.64s\" is given twice", keys[i]);
    free(keys);
    return status;
}

/* Depth is bounded by the scan. */
static ty_status check_tree(const struct json_at *at, struct ty_error *error)
{
    if (json_type_of(at) == JSON_OBJECT) {
        ty_status status = check_keys(at, error);
        if (status != TY_OK)
            return status;
    }
    struct json_at item = {0};
    while (json_next(at, &item)) {
        ty_status status = check_tree(&item, error);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

/* ---- loading -----------------------------------------------------------------------------------
 */

static ty_status refuse_syntax(struct scan *scan, const char *end)
{
    scan->line = 1;
    for (const char *c = scan->text; c < end && c < scan->text + scan->bytes; c++)
        scan->line += *c == '\n';
    return refuse_line(scan, scan->depth > 0 ? "malformed JSON: a { or [ is not closed"
                                             : "malformed JSON: a comma, colon or quote is missing "
                                               "or too many, or text follows the end");
}

ty_status json_parse(const char *text, size_t bytes, const char *origin, struct json_document *out,
                     struct ty_error *error)
{
    struct scan scan = {.text = text, .origin = origin, .bytes = bytes, .line = 1, .error = error};
    ty_status status = scan_all(&scan);
    if (status != TY_OK)
        return status;
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
    if (!root)
        return refuse_syntax(&scan, end);
    while (end < text + bytes && strchr(" \t\r\n", *end))
        end++;
    struct json_document document = {.root = root, .top = {.origin = origin, .node = root}};
    status = end < text + bytes ? refuse_syntax(&scan, end) : check_tree(&document.top, error);
    if (status != TY_OK) {
        json_free(&document);
        return status;
    }
    *out = document;
    return TY_OK;
}

/* Whole file; the caller frees. */
static ty_status read_file(const char *path, char **text, size_t *bytes, struct ty_error *error)
{
    char origin[ORIGIN_SHOWN + 4];
    shown_origin(path, origin);
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, origin, "cannot open: %s", strerror(errno));
    ty_status status = TY_OK;
    size_t capacity = 65536, length = 0;
    char *buffer = malloc(capacity);
    while (buffer) {
        length += fread(buffer + length, 1, capacity - length, file);
        if (length < capacity || length > JSON_FILE_LIMIT_BYTES)
            break;
        capacity *= 2;
        char *larger = realloc(buffer, capacity);
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    if (!buffer)
        status = error_set(error, TY_ERR_NOMEM, origin, "out of memory");
    else if (ferror(file))
        status = error_set(error, TY_ERR_IO, origin, "cannot read: %s", strerror(errno));
    else if (length > JSON_FILE_LIMIT_BYTES)
        status = error_set(error, TY_ERR_INPUT, origin, "more than 64 MiB");
    else if (length == 0)
        status = error_set(error, TY_ERR_INPUT, origin, "the file is empty");
    fclose(file);
    if (status != TY_OK) {
        free(buffer);
        return status;
    }
    *text = buffer;
    *bytes = length;
    return TY_OK;
}

ty_status json_load_file(const char *path, struct json_document *out, struct ty_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    ty_status status = read_file(path, &text, &bytes, error);
    if (status != TY_OK)
        return status;
    status = json_parse(text, bytes, path, out, error);
    free(text);
    return status;
}

void json_free(struct json_document *document)
{
    cJSON_Delete(document->root);
    document->root = NULL;
}

/* ---- walking -----------------------------------------------------------------------------------
 */

enum json_type json_type_of(const struct json_at *at)
{
    switch (at->node->type & 0xff) {
    case cJSON_True:
    case cJSON_False:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_TEXT;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

const char *json_key(const struct json_at *at)
{
    return at->node->string ? at->node->string : "";
}

uint32_t json_size(const struct json_at *at)
{
    enum json_type type = json_type_of(at);
    return type == JSON_ARRAY || type == JSON_OBJECT ? (uint32_t)cJSON_GetArraySize(at->node) : 0;
}

bool json_find(const struct json_at *object, const char *key, struct json_at *out)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(object->node, key);
    if (json_type_of(object) != JSON_OBJECT || !node || cJSON_IsNull(node))
        return false;
    *out = (struct json_at){.origin = object->origin, .parent = object, .node = node};
    return true;
}

bool json_next(const struct json_at *container, struct json_at *item)
{
    enum json_type type = json_type_of(container);
    if (type != JSON_ARRAY && type != JSON_OBJECT)
        return false;
    const cJSON *next = item->node ? item->node->next : container->node->child;
    if (!next)
        return false;
    *item = (struct json_at){.origin = container->origin,
                             .parent = container,
                             .node = next,
                             .index = item->node ? item->index + 1 : 0};
    return true;
}

/* ---- places and refusals -----------------------------------------------------------------------
 */

static void append_path(const struct json_at *at, char *out, size_t bytes)
{
    if (!at->parent)
        return;
    append_path(at->parent, out, bytes);
    if (at->node->string)
        text_append(out, bytes, "%s%.64s", at->parent->parent ? "." : "", at->node->string);
    else
        text_append(out, bytes, "[%u]", at->index);
}

void json_place(const struct json_at *at, char *out, size_t bytes)
{
    char origin[ORIGIN_SHOWN + 4];
    shown_origin(at->origin, origin);
    text_format(out, bytes, "%s%s", origin, at->parent ? ": " : "");
    append_path(at, out, bytes);
}

ty_status json_refuse(const struct json_at *at, ty_status code, struct ty_error *error,
                      const char *format, ...)
{
    char where[sizeof error->where], text[sizeof error->text];
    json_place(at, where, sizeof where);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(error, code, where, "%s", text);
}

ty_status json_missing(const struct json_at *object, const char *key, struct ty_error *error)
{
    return json_refuse(object, TY_ERR_INPUT, error, "\"%s\" is missing", key);
}

ty_status json_want(const struct json_at *at, enum json_type type, struct ty_error *error)
{
    static const char *const names[] = {"null",   "true or false", "a number",
                                        "a text", "an array",      "an object"};
    enum json_type found = json_type_of(at);
    return found == type ? TY_OK
                         : json_refuse(at, TY_ERR_INPUT, error, "is %s; expected %s", names[found],
                                       names[type]);
}

/* ---- typed values ------------------------------------------------------------------------------
 */

ty_status json_get_bool(const struct json_at *at, bool *out, struct ty_error *error)
{
    ty_status status = json_want(at, JSON_BOOL, error);
    if (status == TY_OK)
        *out = cJSON_IsTrue(at->node);
    return status;
}

ty_status json_get_double(const struct json_at *at, double min, double max, double *out,
                          struct ty_error *error)
{
    ty_status status = json_want(at, JSON_NUMBER, error);
    if (status != TY_OK)
        return status;
    double value = at->node->valuedouble;
    if (!(value >= min && value <= max))
        return json_refuse(at, TY_ERR_INPUT, error, "is %.9g; expected %.9g to %.9g", value, min,
                           max);
    *out = value;
    return TY_OK;
}

ty_status json_get_u32(const struct json_at *at, uint32_t min, uint32_t max, uint32_t *out,
                       struct ty_error *error)
{
    double value;
    ty_status status = json_get_double(at, min, max, &value, error);
    if (status != TY_OK)
        return status;
    if (value != floor(value))
        return json_refuse(at, TY_ERR_INPUT, error, "is %.9g; expected a whole number", value);
    *out = (uint32_t)value;
    return TY_OK;
}

ty_status json_get_text(const struct json_at *at, const char **out, struct ty_error *error)
{
    ty_status status = json_want(at, JSON_TEXT, error);
    if (status == TY_OK)
        *out = at->node->valuestring;
    return status;
}

ty_status json_copy_text(const struct json_at *at, char *out, size_t bytes, struct ty_error *error)
{
    const char *text;
    ty_status status = json_get_text(at, &text, error);
    if (status != TY_OK)
        return status;
    if (strlen(text) >= bytes)
        return json_refuse(at, TY_ERR_INPUT, error, "is longer than %zu characters", bytes - 1);
    memcpy(out, text, strlen(text) + 1);
    return TY_OK;
}
