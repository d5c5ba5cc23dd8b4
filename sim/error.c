/* SPDX-License-Identifier: MIT
 * The filling of struct ty_error: bounded text, always terminated. */
#include "sim/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ty_status error_set(struct ty_error *error, ty_status code, const char *where, const char *format,
                    ...)
{
    if (!error)
        return code;
    error->code = code;
    text_format(error->where, sizeof error->where, "%s", where ? where : "");
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

void text_format(char *out, size_t bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, bytes, format, args);
    va_end(args);
}

void text_append(char *out, size_t bytes, const char *format, ...)
{
    size_t length = strlen(out);
    if (length >= bytes)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(out + length, bytes - length, format, args);
    va_end(args);
}
