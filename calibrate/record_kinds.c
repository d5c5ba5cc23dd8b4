/* SPDX-License-Identifier: MIT
 * What each kind of record must hold. */
#include "calibrate/record_kinds.h"

#include <string.h>

static const struct {
    const char *name;
    const char *all[RECORD_NEEDS_MAX], *any[RECORD_NEEDS_MAX];
} kinds[RECORD_N_KINDS] = {
#define NEEDS(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define X(id, name, all, any) {name, all, any},
    RECORD_KINDS(X)
#undef X
#undef NEEDS
};

const char *record_kind_name(enum record_kind kind)
{
    return (unsigned)kind < RECORD_N_KINDS ? kinds[kind].name : "";
}

enum record_kind record_kind_of(const struct record *record)
{
    enum record_kind kind = 0;
    while (kind < RECORD_N_KINDS && strcmp(kinds[kind].name, record->kind) != 0)
        kind++;
    return kind;
}

/* A number above 0, or a text. */
static bool holds(const struct record *record, const char *key)
{
    return *record_value_text(record, key) || record_value(record, key) > 0.0;
}

const char *record_lacks(const struct record *record)
{
    const enum record_kind kind = record_kind_of(record);
    if (kind == RECORD_N_KINDS)
        return NULL;
    for (uint32_t i = 0; i < RECORD_NEEDS_MAX && kinds[kind].all[i]; i++)
        if (!holds(record, kinds[kind].all[i]))
            return kinds[kind].all[i];
    for (uint32_t i = 0; i < RECORD_NEEDS_MAX && kinds[kind].any[i]; i++)
        if (holds(record, kinds[kind].any[i]))
            return NULL;
    return kinds[kind].any[0];
}
