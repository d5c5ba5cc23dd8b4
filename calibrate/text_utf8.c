/* SPDX-License-Identifier: MIT
 * Encodings that logs come in: PowerShell's redirection writes UTF-16, editors add a mark. */
#include "calibrate/import.h"
#include <stdlib.h>
#include <string.h>

/* Byte order of UTF-16 text: 'l', 'b' or 0. Without a mark: every second byte of a plain ASCII
 * beginning is zero. */
static char utf16_order(const unsigned char *text, size_t bytes)
{
    if (bytes < 4)
        return 0;
    if (text[0] == 0xff && text[1] == 0xfe)
        return 'l';
    if (text[0] == 0xfe && text[1] == 0xff)
        return 'b';
    size_t zero[2] = {0, 0};
    const size_t n = bytes < 256 ? bytes & ~(size_t)1 : 256;
    for (size_t i = 0; i < n; i++)
        zero[i & 1] += text[i] == 0;
    if (zero[1] * 10 >= n * 4 && zero[0] * 20 <= n)
        return 'l';
    if (zero[0] * 10 >= n * 4 && zero[1] * 20 <= n)
        return 'b';
    return 0;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code == 0)
        code = ' ';
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static uint32_t unit_at(const unsigned char *text, size_t i, char order)
{
    return order == 'l' ? text[i] | (uint32_t)text[i + 1] << 8
                        : text[i + 1] | (uint32_t)text[i] << 8;
}

/* Each unit of two bytes becomes at most three; a lone surrogate becomes U+FFFD. */
static char *from_utf16(const unsigned char *text, size_t *bytes, char order)
{
    char *out = malloc(*bytes / 2 * 3 + 1);
    size_t n = 0;
    for (size_t i = 0; out && i + 1 < *bytes; i += 2) {
        uint32_t code = unit_at(text, i, order);
        const uint32_t next = i + 3 < *bytes ? unit_at(text, i + 2, order) : 0;
        if (code == 0xfeff && i == 0)
            continue;
        if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
            i += 2;
        } else if (code >= 0xd800 && code < 0xe000) {
            code = 0xfffd;
        }
        n += put_utf8(out + n, code);
    }
    if (out)
        out[n] = '\0';
    *bytes = n;
    return out;
}

bool text_to_utf8(char **text, size_t *bytes)
{
    const char order = utf16_order((const unsigned char *)*text, *bytes);
    if (order) {
        char *wide = from_utf16((const unsigned char *)*text, bytes, order);
        free(*text);
        *text = wide;
        return wide != NULL;
    }
    if (*bytes >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *bytes -= 3;
        memmove(*text, *text + 3, *bytes + 1);
    }
    for (char *zero = *text; (zero = memchr(zero, '\0', *bytes - (size_t)(zero - *text)));)
        *zero = ' ';
    return true;
}
