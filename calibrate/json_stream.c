/* SPDX-License-Identifier: MIT
 * JSON token by token. Buffering is that of the FILE. */
#include "calibrate/json_stream.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

void json_stream_start(struct json_stream *stream, FILE *file, const char *path,
                       struct ty_error *error)
{
    *stream = (struct json_stream){.file = file, .path = path, .error = error, .line = 1};
}

static enum json_token refuse(struct json_stream *stream, const char *why)
{
    char where[160];
    text_format(where, sizeof where, "%.120s: line %llu", stream->path,
                (unsigned long long)stream->line);
    error_set(stream->error, TY_ERR_INPUT, where, "%s", why);
    return JSON_TOKEN_ERROR;
}

/* The next character that is no blank, comma or colon. */
static int next_start(struct json_stream *stream)
{
    int c;
    do {
        c = getc(stream->file);
        stream->line += c == '\n';
    } while (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':');
    return c;
}

static char escaped(int c)
{
    static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? to[at - from] : (char)c;
}

/* Behind the opening quote. \u escapes become '?': names of kernels are ASCII. */
static bool read_text(struct json_stream *stream)
{
    size_t n = 0;
    for (;;) {
        int c = getc(stream->file);
        if (c == EOF || c == '\n')
            return false;
        if (c == '"')
            break;
        if (c == '\\') {
            c = getc(stream->file);
            if (c == EOF)
                return false;
            for (int i = 0; c == 'u' && i < 4; i++)
                if (!isxdigit(getc(stream->file)))
                    return false;
            c = c == 'u' ? '?' : escaped(c);
        }
        if (n + 1 < sizeof stream->text)
            stream->text[n++] = (char)c;
    }
    stream->text[n] = '\0';
    return true;
}

static bool read_number(struct json_stream *stream, int c)
{
    char digits[64];
    size_t n = 0;
    for (; c != EOF && strchr("+-.0123456789eE", c) && n + 1 < sizeof digits;
         c = getc(stream->file))
        digits[n++] = (char)c;
    ungetc(c, stream->file);
    return n > 0 && number_parse(digits, n, &stream->number) == n && isfinite(stream->number);
}

static bool read_word(struct json_stream *stream, int c)
{
    size_t n = 0;
    for (; c != EOF && c >= 'a' && c <= 'z' && n < 8; c = getc(stream->file))
        stream->text[n++] = (char)c;
    ungetc(c, stream->file);
    stream->text[n] = '\0';
    return strcmp(stream->text, "true") == 0 || strcmp(stream->text, "false") == 0 ||
           strcmp(stream->text, "null") == 0;
}

static bool in_object(const struct json_stream *stream)
{
    return stream->depth > 0 && stream->open[stream->depth - 1] == '{';
}

static enum json_token open_level(struct json_stream *stream, char kind)
{
    if (stream->depth == JSON_STREAM_DEPTH)
        return refuse(stream, "nested more than 64 levels deep");
    stream->open[stream->depth++] = kind;
    stream->key_next = kind == '{';
    return kind == '{' ? JSON_TOKEN_OPEN_OBJECT : JSON_TOKEN_OPEN_ARRAY;
}

static enum json_token close_level(struct json_stream *stream, char kind)
{
    if (stream->depth == 0 || stream->open[stream->depth - 1] != kind)
        return refuse(stream, "a bracket closes what was not opened");
    stream->depth--;
    stream->key_next = in_object(stream);
    return JSON_TOKEN_CLOSE;
}

/* A value that starts with `c`. */
static enum json_token read_value(struct json_stream *stream, int c)
{
    stream->key_next = in_object(stream);
    if (c == '"')
        return read_text(stream) ? JSON_TOKEN_TEXT : refuse(stream, "a text is not closed");
    if (c == '-' || isdigit(c))
        return read_number(stream, c) ? JSON_TOKEN_NUMBER : refuse(stream, "malformed number");
    return read_word(stream, c) ? JSON_TOKEN_WORD : refuse(stream, "this is no JSON value");
}

enum json_token json_stream_next(struct json_stream *stream)
{
    const int c = next_start(stream);
    if (c == EOF)
        return stream->depth == 0 ? JSON_TOKEN_END
                                  : refuse(stream, "the file ends in the middle: it was cut");
    if (c == '{' || c == '[')
        return open_level(stream, (char)c);
    if (c == '}' || c == ']')
        return close_level(stream, c == '}' ? '{' : '[');
    if (!stream->key_next)
        return read_value(stream, c);
    if (c != '"' || !read_text(stream))
        return refuse(stream, "a key is no text");
    stream->key_next = false;
    return JSON_TOKEN_KEY;
}

bool json_stream_skip(struct json_stream *stream)
{
    const uint32_t until = stream->depth - 1;
    while (stream->depth > until) {
        const enum json_token token = json_stream_next(stream);
        if (token == JSON_TOKEN_ERROR || token == JSON_TOKEN_END)
            return false;
    }
    return true;
}
