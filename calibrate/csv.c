/* SPDX-License-Identifier: MIT
 * One pass splits the file in place: a field ends at a comma or line end outside quotes. */
#include "calibrate/csv.h"
#include "sim/error.h"

#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)

static ty_status load(const char *path, char **text, size_t *bytes, struct ty_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, path, "cannot be opened: %s", strerror(errno));
    size_t capacity = 1 << 16, n = 0;
    char *buffer = malloc(capacity + 1);
    while (buffer) {
        n += fread(buffer + n, 1, capacity - n, file);
        if (n < capacity || capacity >= MAX_BYTES)
            break;
        capacity *= 2;
        char *larger = realloc(buffer, capacity + 1);
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    const bool failed = ferror(file) != 0;
    fclose(file);
    if (!buffer)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    if (failed || n >= MAX_BYTES || memchr(buffer, '\0', n)) {
        free(buffer);
        return error_set(error, failed ? TY_ERR_IO : TY_ERR_INPUT, path,
                         failed ? "cannot be read" : "not a text table below 256 MiB");
    }
    buffer[n] = '\0';
    *text = buffer;
    *bytes = n;
    return TY_OK;
}

struct splitter {
    char *at;
    uint64_t line;
    char delimiter; /* quotes mean something beside commas alone */
};

/* Takes one field, ends it with NUL, unescapes quotes; *last: it ended its row. NULL: a quote
 * that never closes. */
static char *take_field(struct splitter *splitter, bool *last)
{
    char *start = splitter->at, *out = start, *in = start;
    const bool quoted = splitter->delimiter == ',' && *in == '"';
    if (quoted)
        in++;
    for (;;) {
        if (*in == '\0' && quoted)
            return NULL;
        if (quoted && in[0] == '"' && in[1] != '"')
            break;
        if (!quoted && (*in == splitter->delimiter || *in == '\n' || *in == '\r' || *in == '\0'))
            break;
        splitter->line += *in == '\n';
        in += quoted && in[0] == '"'; /* a doubled quote stands for one */
        *out++ = *in++;
    }
    in += quoted;
    if (*in == '\r')
        in++;
    *last = *in != splitter->delimiter;
    splitter->line += *in == '\n';
    splitter->at = *in == '\0' ? in : in + 1;
    *out = '\0';
    return start;
}

static ty_status split(struct csv *csv, const char *path, char delimiter, struct ty_error *error)
{
    struct splitter splitter = {csv->text, 1, delimiter};
    size_t n_cells = 0, capacity = 0;
    uint32_t in_row = 0;
    while (*splitter.at || in_row > 0) {
        if (n_cells == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            char **larger = realloc(csv->cell, capacity * sizeof *larger);
            if (!larger)
                return error_set(error, TY_ERR_NOMEM, path, "out of memory");
            csv->cell = larger;
        }
        const uint64_t line = splitter.line;
        bool last;
        char *field = take_field(&splitter, &last);
        if (!field)
            return error_set(error, TY_ERR_INPUT, path, "line %llu: a quote is never closed",
                             (unsigned long long)line);
        csv->cell[n_cells++] = field;
        in_row++;
        if (!last)
            continue;
        if (csv->n_columns == 0)
            csv->n_columns = in_row;
        if (in_row != csv->n_columns)
            return error_set(error, TY_ERR_INPUT, path, "line %llu has %u fields, the header %u",
                             (unsigned long long)line, in_row, csv->n_columns);
        in_row = 0;
    }
    csv->n_rows = csv->n_columns ? n_cells / csv->n_columns - 1 : 0;
    return TY_OK;
}

ty_status csv_read(const char *path, struct csv *out, struct ty_error *error)
{
    return csv_read_delimited(path, ',', out, error);
}

ty_status csv_read_delimited(const char *path, char delimiter, struct csv *out,
                             struct ty_error *error)
{
    struct csv csv = {0};
    ty_status status = load(path, &csv.text, &csv.bytes, error);
    if (status == TY_OK)
        status = split(&csv, path, delimiter, error);
    if (status == TY_OK && csv.n_rows == 0)
        status = error_set(error, TY_ERR_INPUT, path, "holds no row below its header");
    if (status == TY_OK)
        *out = csv;
    else
        csv_free(&csv);
    return status;
}

void csv_free(struct csv *csv)
{
    free(csv->text);
    free(csv->cell);
    *csv = (struct csv){0};
}

int csv_column(const struct csv *csv, const char *name)
{
    for (uint32_t i = 0; i < csv->n_columns; i++)
        if (strcmp(csv->cell[i], name) == 0)
            return (int)i;
    return -1;
}

const char *csv_cell(const struct csv *csv, uint64_t row, int column)
{
    return column < 0 ? "" : csv->cell[(row + 1) * csv->n_columns + (uint32_t)column];
}
