/* SPDX-License-Identifier: MIT
 * Lists and ranges of whole numbers, lists of layouts. */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- layouts ------------------------------------------------------------------------------ */

/* The comma before the next layout of a list. One inside a layout means nothing, so a layout is
 * known by its beginning: a word, or the embedding, which is there once. */
static const char *next_layout(const char *text)
{
    const char *comma = strchr(text, ',');
    while (comma && comma[1] != 'E' && strncmp(comma + 1, "even", 4) != 0 &&
           strncmp(comma + 1, "balanced", 8) != 0)
        comma = strchr(comma + 1, ',');
    return comma;
}

bool cli_is_layout_list(const char *text)
{
    return next_layout(text) != NULL;
}

static ty_status add_layout(const char *item, const char *where, struct ty_space *out,
                            struct ty_error *error)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    const ty_status status = ty_field_set(TY_KIND_PLAN, &plan, "layout", item, error);
    if (status != TY_OK) {
        snprintf(error->where, sizeof error->where, "%.40s %.100s", where, item);
        return status;
    }
    for (uint32_t i = 0; i < out->n_layouts; i++)
        if (strcmp(out->layout[i], plan.layout) == 0)
            return cli_refuse(error, where, "names %.60s twice", item);
    if (out->n_layouts == TY_MAX_LAYOUTS)
        return cli_refuse(error, where, "lists more than %d layouts", TY_MAX_LAYOUTS);
    memcpy(out->layout[out->n_layouts++], plan.layout, sizeof plan.layout);
    return TY_OK;
}

ty_status cli_layouts_parse(const char *text, const char *where, struct ty_space *out,
                            struct ty_error *error)
{
    out->n_layouts = 0;
    for (const char *at = text, *comma; at; at = comma ? comma + 1 : NULL) {
        char item[4096]; /* one written out layer by layer is longer than the field */
        comma = next_layout(at);
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (length >= sizeof item)
            return cli_refuse(error, where, "a layout has over %zu characters", sizeof item - 1);
        memcpy(item, at, length);
        item[length] = '\0';
        const ty_status status = add_layout(item, where, out, error);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}
