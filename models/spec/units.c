/* SPDX-License-Identifier: MIT
 *
 * Quantities: number, optional blank, prefix, base.   value = number x prefix x base
 *
 * Decimal prefixes are powers of 1000, binary ones (Ki..) of 1024; bits are eighths of bytes. Small
 * prefixes divide instead of multiplying by an inexact 1e-6, so that "14 us" is the double 14e-6.
 */
#include "models/spec/units.h"

#include "include/trainyard_tools.h"
#include "models/spec/json.h"
#include "models/spec/json_write.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

enum { NONE = 0, LARGE = 1, BINARY = 2, SMALL = 4 };

static const struct {
    const char *text;
    int class;
    double factor, divisor;
} prefixes[] = {
    {"", NONE, 1, 1},          {"k", LARGE, 1e3, 1},
    {"K", LARGE, 1e3, 1},      {"M", LARGE, 1e6, 1},
    {"G", LARGE, 1e9, 1},      {"T", LARGE, 1e12, 1},
    {"P", LARGE, 1e15, 1},     {"E", LARGE, 1e18, 1},
    {"Ki", BINARY, 0x1p10, 1}, {"Mi", BINARY, 0x1p20, 1},
    {"Gi", BINARY, 0x1p30, 1}, {"Ti", BINARY, 0x1p40, 1},
    {"Pi", BINARY, 0x1p50, 1}, {"m", SMALL, 1, 1e3},
    {"u", SMALL, 1, 1e6},      {"\xc2\xb5", SMALL, 1, 1e6},
    {"n", SMALL, 1, 1e9},
};
#define N_PREFIXES (sizeof prefixes / sizeof *prefixes)

/* The first base of a unit is the one that is written. */
static const struct {
    enum ty_unit unit;
    const char *text;
    int classes;
    double divisor;
} bases[] = {
    {TY_UNIT_BYTES, "B", LARGE | BINARY, 1},
    {TY_UNIT_BYTES_PER_S, "B/s", LARGE | BINARY, 1},
    {TY_UNIT_BYTES_PER_S, "b/s", LARGE, 8},
    {TY_UNIT_BYTES_PER_S, "bit/s", LARGE, 8},
    {TY_UNIT_BYTES_PER_S, "bps", LARGE, 8},
    {TY_UNIT_S, "s", SMALL, 1},
    {TY_UNIT_FLOP_PER_S, "flop/s", LARGE, 1},
    {TY_UNIT_FLOP_PER_S, "FLOP/s", LARGE, 1},
    {TY_UNIT_FLOP_PER_S, "flops", LARGE, 1},
    {TY_UNIT_FLOP_PER_S, "FLOPS", LARGE, 1},
    {TY_UNIT_HZ, "Hz", LARGE, 1},
    {TY_UNIT_W, "W", LARGE, 1},
    {TY_UNIT_TOKENS, "", NONE, 1},
    {TY_UNIT_TOKENS, "tok", LARGE | BINARY, 1},
    {TY_UNIT_RATIO, "", NONE, 1},
    {TY_UNIT_RATIO, "%", NONE, 100},
    {TY_UNIT_COUNT, "", NONE, 1},
    {TY_UNIT_NONE, "", NONE, 1},
};
#define N_BASES (sizeof bases / sizeof *bases)

bool unit_is_bare(enum ty_unit unit)
{
    return unit == TY_UNIT_NONE || unit == TY_UNIT_COUNT || unit == TY_UNIT_RATIO ||
           unit == TY_UNIT_TOKENS;
}

const char *unit_example(enum ty_unit unit)
{
    switch (unit) {
    case TY_UNIT_BYTES:
        return "80 GB or 80 GiB";
    case TY_UNIT_BYTES_PER_S:
        return "400 Gb/s or 50 GB/s";
    case TY_UNIT_S:
        return "14 us";
    case TY_UNIT_FLOP_PER_S:
        return "989 Tflop/s";
    case TY_UNIT_HZ:
        return "1.83 GHz";
    case TY_UNIT_W:
        return "700 W";
    case TY_UNIT_TOKENS:
        return "8192 or 4Mtok";
    case TY_UNIT_RATIO:
        return "0.85 or 85 %";
    default:
        return "8";
    }
}

/* ---- reading ---------------------------------------------------------------------------- */

static bool same(const char *text, size_t length, const char *want)
{
    return strlen(want) == length && memcmp(text, want, length) == 0;
}

/* Applies "GB/s" and the like to a number; false when no such symbol belongs to the unit. */
static bool apply_symbol(enum ty_unit unit, const char *symbol, size_t length, double *value)
{
    for (size_t b = 0; b < N_BASES; b++) {
        size_t base_length = strlen(bases[b].text);
        if (bases[b].unit != unit || base_length > length ||
            !same(symbol + length - base_length, base_length, bases[b].text))
            continue;
        for (size_t p = 0; p < N_PREFIXES; p++) {
            bool fits = prefixes[p].class == NONE || (prefixes[p].class & bases[b].classes);
            if (!fits || !same(symbol, length - base_length, prefixes[p].text))
                continue;
            *value = *value * prefixes[p].factor / prefixes[p].divisor / bases[b].divisor;
            return true;
        }
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

ty_status ty_quantity_parse(const char *text, enum ty_unit unit, double *out,
                            struct ty_error *error)
{
    const char *example = unit_example(unit);
    size_t length = strlen(text);
    while (length > 0 && is_blank(*text))
        text++, length--;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    int shown = length > 40 ? 40 : (int)length;
    double value;
    size_t digits = number_parse(text, length, &value);
    if (digits == 0)
        return error_set(error, TY_ERR_INPUT, "",
                         "\"%.*s\" does not start with a number; write e.g. %s", shown, text,
                         example);
    size_t symbol = digits;
    while (symbol < length && is_blank(text[symbol]))
        symbol++;
    if (symbol == length && !unit_is_bare(unit))
        return error_set(error, TY_ERR_INPUT, "", "\"%.*s\" has no unit; write e.g. %s", shown,
                         text, example);
    if (!apply_symbol(unit, text + symbol, length - symbol, &value))
        return error_set(error, TY_ERR_INPUT, "", "\"%.*s\" has a wrong unit; write e.g. %s", shown,
                         text, example);
    if (!isfinite(value))
        return error_set(error, TY_ERR_INPUT, "", "\"%.*s\" is outside the range of a double",
                         shown, text);
    *out = value;
    return TY_OK;
}

/* ---- writing ---------------------------------------------------------------------------- */

static const char *written_base(enum ty_unit unit, int *classes)
{
    for (size_t b = 0; b < N_BASES; b++)
        if (bases[b].unit == unit) {
            *classes = bases[b].classes;
            return bases[b].text;
        }
    *classes = NONE;
    return "";
}

/* Index of the largest prefix of some classes that leaves a number >= 1; 0: none. */
static size_t best_prefix(double value, int classes)
{
    size_t best = 0;
    double best_scale = value >= 1.0 ? 1.0 : 0.0;
    for (size_t p = 1; p < N_PREFIXES; p++) {
        double scale = prefixes[p].factor / prefixes[p].divisor;
        if (!(prefixes[p].class & classes) || value < scale)
            continue;
        if (scale > best_scale) {
            best = p;
            best_scale = scale;
        }
    }
    return best;
}

/* False when the text would read back to other bits. */
static bool write_with(size_t prefix, const char *base, double value, enum ty_unit unit,
                       char out[QUANTITY_BYTES])
{
    char number[JSON_NUMBER_BYTES];
    double back;
    json_number_text(value / prefixes[prefix].factor * prefixes[prefix].divisor, number);
    text_format(out, QUANTITY_BYTES, "%s %s%s", number, prefixes[prefix].text, base);
    return ty_quantity_parse(out, unit, &back, NULL) == TY_OK && back == value;
}

const char *quantity_write(double value, enum ty_unit unit, char out[QUANTITY_BYTES])
{
    static const int tries[] = {LARGE | SMALL, BINARY};
    int classes;
    const char *base = written_base(unit, &classes);
    (void)write_with(0, base, value, unit, out); /* always exact; the shortest wins */
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char shorter[QUANTITY_BYTES];
        size_t prefix = best_prefix(value, classes & tries[i]);
        bool exact = prefix > 0 && write_with(prefix, base, value, unit, shorter);
        if (exact && strlen(shorter) < strlen(out))
            memcpy(out, shorter, sizeof shorter);
    }
    return out;
}

/* Four digits in decimal units would not be the whole truth: most memory figures are binary. */
static bool prefers_binary(double bytes)
{
    double thousandths = bytes / prefixes[best_prefix(bytes, LARGE)].factor * 1e3;
    return bytes >= 1024.0 && thousandths != floor(thousandths);
}

static const char *bytes_text(double bytes, char *out, size_t size)
{
    size_t best = best_prefix(bytes, BINARY);
    text_format(out, size, "%.4g %sB", bytes / prefixes[best].factor, prefixes[best].text);
    return out;
}

const char *ty_quantity_text(double value, enum ty_unit unit, char *out, size_t bytes)
{
    if (bytes == 0)
        return out;
    int classes;
    const char *base = written_base(unit, &classes);
    if (!isfinite(value)) {
        text_format(out, bytes, "%s", isnan(value) ? "unknown" : value > 0 ? "inf" : "-inf");
        return out;
    }
    double size = fabs(value);
    if (unit == TY_UNIT_BYTES && prefers_binary(size))
        return bytes_text(value, out, bytes);
    size_t p = size > 0.0 ? best_prefix(size, classes & (LARGE | SMALL)) : 0;
    double shown = value / prefixes[p].factor * prefixes[p].divisor;
    bool count = unit_is_bare(unit) && size < 1e15 && size == floor(size);
    text_format(out, bytes, count ? "%.0f%s%s%s" : "%.4g%s%s%s", shown, base[0] ? " " : "",
                prefixes[p].text, base);
    return out;
}
