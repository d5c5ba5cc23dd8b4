/* SPDX-License-Identifier: MIT
 * A table of runs with the rules that fill it, and one run of it. */
#include "calibrate/run.h"
#include "sim/error.h"

#include <string.h>

ty_status run_table_open(const char *path, struct run_table *out, struct ty_error *error)
{
    struct run_table table = {.path = path};
    ty_status status = csv_read(path, &table.csv, error);
    if (status == TY_OK && csv_column(&table.csv, "id") < 0)
        status = error_set(error, TY_ERR_INPUT, path, "needs the column id");
    if (status == TY_OK)
        status = match_load(&table.match, error);
    if (status == TY_OK)
        *out = table;
    else
        run_table_close(&table);
    return status;
}

void run_table_close(struct run_table *table)
{
    match_free(&table->match);
    csv_free(&table->csv);
}

static ty_status load_from(const struct run_table *table, const char *id, struct ty_run *out,
                           struct ty_error *error)
{
    const int column = csv_column(&table->csv, "id");
    for (uint64_t i = 0; i < table->csv.n_rows; i++) {
        if (strcmp(csv_cell(&table->csv, i, column), id) != 0)
            continue;
        const ty_status status = run_from_row(table, i, out, error);
        if (status == TY_OK && *out->row.refused)
            return error_set(error, TY_ERR_INPUT, id, "cannot be predicted: %s", out->row.refused);
        return status;
    }
    return error_set(error, TY_ERR_INPUT, id, "no run of %s has this id", table->path);
}

ty_status ty_run_load(const char *csv_path, const char *id, struct ty_run *out,
                      struct ty_error *error)
{
    struct run_table table;
    ty_status status = run_table_open(csv_path, &table, error);
    if (status != TY_OK)
        return status;
    status = load_from(&table, id, out, error);
    run_table_close(&table);
    return status;
}
