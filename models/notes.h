/* SPDX-License-Identifier: MIT
 * Collects what the reader of an answer should know: defaults taken, values extrapolated. */
#ifndef MODELS_NOTES_H
#define MODELS_NOTES_H

#include "include/trainyard.h"

#define NOTES_MAX 96

/* Where a defaulted value lives and what it might plausibly be instead: the predictor repeats the
 * prediction with it to say how much the default matters. */
struct note_origin {
    enum ty_kind kind;  /* struct the field belongs to */
    const char *path;   /* field path in the table of that kind; NULL: no alternative */
    double alternative; /* a number or an enum value */
};

struct notes {
    uint32_t n;
    struct ty_note note[NOTES_MAX];
    struct note_origin origin[NOTES_MAX];
};

/* Appends one note (ignored when full or notes is NULL; a second note on the same field of the
 * same note kind is dropped). origin may be NULL. */
__attribute__((format(printf, 6, 7))) void notes_add(struct notes *notes, enum ty_note_kind kind,
                                                     const struct note_origin *origin,
                                                     const char *field, const char *reason,
                                                     const char *value_format, ...);

#endif
