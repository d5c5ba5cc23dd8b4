/* SPDX-License-Identifier: MIT
 * RFC 4180 tables with a header line: quoted fields, doubled quotes, CRLF or LF. */
#ifndef CALIBRATE_CSV_H
#define CALIBRATE_CSV_H

#include "include/trainyard.h"

struct csv {
    char *text; /* the file; fields point into it */
    size_t bytes;
    uint32_t n_columns;
    uint64_t n_rows;
    char **cell; /* [(n_rows + 1) * n_columns], header first */
};

/* Reads a table; every row must have the header's number of fields. returns TY_OK, TY_ERR_IO,
 * TY_ERR_INPUT (error names file and line), TY_ERR_NOMEM. Free with csv_free. */
ty_status csv_read(const char *path, struct csv *out, struct ty_error *error);
/* The same with another delimiter; quotes are then text. */
ty_status csv_read_delimited(const char *path, char delimiter, struct csv *out,
                             struct ty_error *error);
void csv_free(struct csv *csv);
/* Column index of a header name, or -1. */
int csv_column(const struct csv *csv, const char *name);
/* A cell of row 0 .. n_rows - 1; "" for a column of -1. */
const char *csv_cell(const struct csv *csv, uint64_t row, int column);

#endif
