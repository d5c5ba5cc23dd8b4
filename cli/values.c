/* SPDX-License-Identifier: MIT
 * Lists and ranges of whole numbers, and a batch given in tokens. */
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A batch given in tokens may move this far to reach a count that divides better. */
#define BATCH_SLACK_RATIO 0.05

static bool take_number(const char **text, uint32_t *out)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(*text, &end, 10);
    if (**text < '0' || **text > '9' || errno || value > UINT32_MAX)
        return false;
    *text = end;
    *out = (uint32_t)value;
    return true;
}

static ty_status add_value(uint32_t value, const char *where, struct ty_values *out,
                           struct ty_error *error)
{
    if (out->n == TY_MAX_VALUES)
        return cli_refuse(error, where, "more than %d values; a doubling range A..B*2 has fewer",
                          TY_MAX_VALUES);
    out->value[out->n++] = value;
    return TY_OK;
}

/* A..B in steps, or A, A*K, A*K^2 .. B */
static ty_status add_range(uint32_t low, uint32_t high, uint32_t factor, uint32_t step,
                           const char *where, struct ty_values *out, struct ty_error *error)
{
    uint32_t before = out->n;
    uint64_t value = factor ? low : ((uint64_t)low + step - 1) / step * step;
    for (; value <= high; value = factor ? value * factor : value + step) {
        ty_status status = add_value((uint32_t)value, where, out, error);
        if (status != TY_OK)
            return status;
    }
    if (out->n == before)
        return cli_refuse(error, where, "no multiple of %u lies in %u..%u", step, low, high);
    return TY_OK;
}

ty_status cli_values_parse(const char *text, uint32_t step, const char *where,
                           struct ty_values *out, struct ty_error *error)
{
    const char *at = text;
    out->n = 0;
    for (;;) {
        uint32_t low, high, factor = 0;
        bool good = take_number(&at, &low) && low > 0;
        bool range = good && strncmp(at, "..", 2) == 0;
        if (range) {
            at += 2;
            good = take_number(&at, &high) && high >= low;
            if (good && *at == '*')
                good = (at++, take_number(&at, &factor)) && factor >= 2;
        }
        if (!good || (*at && *at != ','))
            return cli_refuse(error, where,
                              "\"%s\" is not a list (1,2,4), a range (64..1024) or a range of "
                              "multiplications (64..1024*2) of numbers >= 1",
                              text);
        ty_status status = range ? add_range(low, high, factor, step, where, out, error)
                                 : add_value(low, where, out, error);
        if (status != TY_OK || !*at)
            return status;
        at++;
    }
}

bool cli_is_tokens(const char *text)
{
    size_t length = strlen(text);
    return length > 3 && strcmp(text + length - 3, "tok") == 0;
}

static uint32_t factors_of_two(uint64_t n)
{
    uint32_t count = 0;
    for (; n && n % 2 == 0; n /= 2)
        count++;
    return count;
}

/* Tokens seldom are a whole number of sequences, and a count without divisors cannot be spread
 * over data-parallel ranks: takes the count within 5 % that has the most factors of two. */
ty_status cli_batch_parse(const char *text, uint32_t seq, uint32_t *sequences,
                          struct ty_error *error)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"tok", 1},        {"ktok", 1e3},        {"Mtok", 1e6},
                 {"Kitok", 1024.0}, {"Mitok", 1048576.0}, {"Gtok", 1e9}};
    char *end;
    double tokens = strtod(text, &end);
    double factor = 0;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0)
            factor = units[i].factor;
    double wanted = tokens * factor / seq;
    if (!(wanted >= 1.0 - BATCH_SLACK_RATIO) || wanted > 1e9)
        return cli_refuse(error, "--gbs",
                          "\"%s\" is not a batch of at least one sequence of %u tokens "
                          "(units: tok, ktok, Mtok, Kitok, Mitok)",
                          text, seq);
    uint64_t low = (uint64_t)ceil(wanted * (1.0 - BATCH_SLACK_RATIO));
    uint64_t high = (uint64_t)floor(wanted * (1.0 + BATCH_SLACK_RATIO));
    uint64_t best = (uint64_t)fmax(1.0, round(wanted));
    /* The largest power of two with a multiple in [low, high]; of its multiples, the nearest. */
    for (uint64_t step = 2; high / step * step >= low; step *= 2)
        if (factors_of_two(best) < factors_of_two(step) || best % step)
            best = (uint64_t)fmax((double)step, round(wanted / (double)step) * (double)step);
    *sequences = (uint32_t)best;
    return TY_OK;
}
