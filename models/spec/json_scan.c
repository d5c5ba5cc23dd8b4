/* SPDX-License-Identifier: MIT
 * Numbers by JSON's grammar, and the scan of a text before it is parsed. */
#include "models/spec/json_scan.h"

#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN_SHOWN 96

/* ---- numbers ---------------------------------------------------------------------------- */

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

/* ---- scan before parsing ---------------------------------------------------------------- */

void json_origin(const char *origin, char out[ORIGIN_BYTES])
{
    size_t length = strlen(origin);
    if (length <= ORIGIN_SHOWN)
        snprintf(out, ORIGIN_BYTES, "%s", origin);
    else
        snprintf(out, ORIGIN_BYTES, "...%s", origin + length - ORIGIN_SHOWN);
}

ty_status scan_refuse(const struct scan *scan, const char *text)
{
    char origin[ORIGIN_BYTES], where[ORIGIN_BYTES + 32];
    json_origin(scan->origin, origin);
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
            return scan_refuse(scan, "a text is not closed before the end of its line");
        if (c != '\\')
            continue;
        if (scan->bytes - scan->at >= 5 && memcmp(scan->text + scan->at, "u0000", 5) == 0)
            return scan_refuse(scan, "a text holds a NUL character");
        scan->at += scan->at < scan->bytes;
    }
    return scan_refuse(scan, "a text is not closed before the end of the file");
}

static ty_status scan_number(struct scan *scan)
{
    double value;
    size_t length = number_parse(scan->text + scan->at, scan->bytes - scan->at, &value);
    if (length == 0)
        return scan_refuse(scan, "malformed number");
    if (!isfinite(value))
        return scan_refuse(scan, "number outside the range of a double (1.8e308)");
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
    return scan_refuse(scan, text);
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
            return scan_refuse(scan, "nested more than 64 levels deep");
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

ty_status scan_all(struct scan *scan)
{
    if (scan->bytes > JSON_FILE_LIMIT_BYTES)
        return scan_refuse(scan, "more than 64 MiB");
    const char *text = scan->text;
    if (scan->bytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return scan_refuse(scan, "UTF-16 text; save the file as UTF-8");
    if (scan->bytes > 0 && memchr(text, '\0', scan->bytes))
        return scan_refuse(scan, "holds NUL bytes: a binary file, or UTF-16 instead of UTF-8");
    if (scan->bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        scan->at = 3; /* byte order mark of UTF-8 */
    while (scan->at < scan->bytes) {
        ty_status status = scan_token(scan);
        if (status != TY_OK)
            return status;
        if (scan->n_values > JSON_VALUES_LIMIT)
            return scan_refuse(scan, "more than 1,000,000 values");
    }
    return scan->n_values == 0 ? scan_refuse(scan, "holds no JSON value") : TY_OK;
}
