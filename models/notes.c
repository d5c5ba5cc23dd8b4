/* SPDX-License-Identifier: MIT
 * Notes: a bounded list without repeats. */
#include "models/notes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool already_noted(const struct notes *notes, enum ty_note_kind kind, const char *field)
{
    for (uint32_t i = 0; i < notes->n; i++)
        if (notes->note[i].kind == kind && strcmp(notes->note[i].field, field) == 0)
            return true;
    return false;
}

void notes_add(struct notes *notes, enum ty_note_kind kind, const struct note_origin *origin,
               const char *field, const char *reason, const char *value_format, ...)
{
    if (!notes || notes->n == NOTES_MAX || already_noted(notes, kind, field))
        return;
    struct ty_note *note = &notes->note[notes->n];
    memset(note, 0, sizeof *note);
    note->kind = kind;
    note->effect_pct = (double)NAN;
    snprintf(note->field, sizeof note->field, "%s", field);
    snprintf(note->reason, sizeof note->reason, "%s", reason);
    va_list args;
    va_start(args, value_format);
    vsnprintf(note->value, sizeof note->value, value_format, args);
    va_end(args);
    notes->origin[notes->n] = origin ? *origin : (struct note_origin){0};
    notes->n++;
}
