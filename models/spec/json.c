/* SPDX-License-Identifier: MIT
 *
 * Loading and walking JSON. cJSON alone is too trusting for files from outside: it takes numbers
 * beyond double, keys given twice, NUL characters in texts and nesting that a walker would recurse
 * on; the scan before it refuses those and knows the line.
 */
#include "models/spec/json.h"

#include "models/spec/json_scan.h"
#include "sim/error.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks after parsing --------------------------------------------------------------- */

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

/* ---- loading ---------------------------------------------------------------------------- */

static ty_status refuse_syntax(struct scan *scan, const char *end)
{
    scan->line = 1;
    for (const char *c = scan->text; c < end && c < scan->text + scan->bytes; c++)
        scan->line += *c == '\n';
    return scan_refuse(scan, scan->depth > 0 ? "malformed JSON: a { or [ is not closed"
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
    char origin[ORIGIN_BYTES];
    json_origin(path, origin);
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

/* ---- walking ---------------------------------------------------------------------------- */

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

/* ---- places and refusals ---------------------------------------------------------------- */

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
    char origin[ORIGIN_BYTES];
    json_origin(at->origin, origin);
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

/* ---- typed values ----------------------------------------------------------------------- */

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
