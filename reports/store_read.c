/* SPDX-License-Identifier: MIT
 * Queries for the reports: rows of a constant SELECT, one at a time. */
#include "reports/store_db.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>

struct store_rows {
    ty_store *store;
    sqlite3_stmt *statement;
    int rc;
};

ty_status store_ask(ty_store *store, const char *sql, int64_t id, struct store_rows **out,
                    struct ty_error *error)
{
    struct store_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return error_set(error, TY_ERR_NOMEM, store->path, "out of memory");
    rows->store = store;
    rows->rc = sqlite3_prepare_v2(store->db, sql, -1, &rows->statement, NULL);
    if (rows->rc != SQLITE_OK) {
        ty_status status = store_fail(store, rows->rc, error);
        free(rows);
        return status;
    }
    if (sqlite3_bind_parameter_count(rows->statement))
        sqlite3_bind_int64(rows->statement, 1, id);
    *out = rows;
    return TY_OK;
}

bool store_next(struct store_rows *rows)
{
    rows->rc = sqlite3_step(rows->statement);
    return rows->rc == SQLITE_ROW;
}

double store_number(struct store_rows *rows, int column)
{
    if (sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(rows->statement, column);
}

int64_t store_integer(struct store_rows *rows, int column)
{
    return sqlite3_column_int64(rows->statement, column);
}

const char *store_text(struct store_rows *rows, int column)
{
    const unsigned char *text = sqlite3_column_text(rows->statement, column);
    return text ? (const char *)text : "";
}

ty_status store_done(struct store_rows *rows, struct ty_error *error)
{
    if (!rows)
        return TY_OK;
    bool good = rows->rc == SQLITE_OK || rows->rc == SQLITE_ROW || rows->rc == SQLITE_DONE;
    ty_status status = good ? TY_OK : store_fail(rows->store, rows->rc, error);
    sqlite3_finalize(rows->statement);
    free(rows);
    return status;
}

ty_status store_ask_number(ty_store *store, const char *sql, int64_t id, double missing,
                           double *out, struct ty_error *error)
{
    struct store_rows *rows;
    ty_status status = store_ask(store, sql, id, &rows, error);
    if (status != TY_OK)
        return status;
    double value = store_next(rows) ? store_number(rows, 0) : (double)NAN;
    status = store_done(rows, error);
    if (status == TY_OK)
        *out = isnan(value) ? missing : value;
    return status;
}
