/* SPDX-License-Identifier: MIT
 * Rows of the field tables, for the files that hold one. */
#ifndef MODELS_FIELDS_ROWS_H
#define MODELS_FIELDS_ROWS_H

#include "include/trainyard.h"

/* One row of a table; S: struct, m: member (may be nested), P: path. */
#define ROW(S, m, P, type, unit, min, max, names, help)                                            \
    {                                                                                              \
        P, type, TY_UNIT_##unit, offsetof(struct S, m), sizeof(((struct S *)0)->m), min, max,      \
            names, help                                                                            \
    }
#define DOUBLE(S, m, P, unit, min, max, help)                                                      \
    ROW(S, m, P, TY_FIELD_DOUBLE, unit, min, max, NULL, help)
#define U32(S, m, P, unit, min, max, help) ROW(S, m, P, TY_FIELD_U32, unit, min, max, NULL, help)
#define ENUM(S, m, P, names, help)         ROW(S, m, P, TY_FIELD_ENUM, NONE, 0, 0, names, help)
#define FLAGS(S, m, P, names, given, help) ROW(S, m, P, TY_FIELD_FLAGS, NONE, 0, given, names, help)
#define TEXT(S, m, P, help)                ROW(S, m, P, TY_FIELD_TEXT, NONE, 0, 0, NULL, help)
#define BOOL(S, m, P, help)                ROW(S, m, P, TY_FIELD_BOOL, NONE, 0, 0, NULL, help)

/* fields_storage.c: the table of TY_KIND_STORAGE */
const struct ty_field *fields_storage(size_t *n);
/* fields_price.c: the table of TY_KIND_PRICE */
const struct ty_field *fields_price(size_t *n);

#endif
