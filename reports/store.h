/* SPDX-License-Identifier: MIT
 *
 * Reading a study back: what the reports need beside the public writers, without sqlite3.h.
 * docs/database.md describes the tables and views.
 */
#ifndef REPORTS_STORE_H
#define REPORTS_STORE_H

#include "include/trainyard_tools.h"

/* The rows of one query, in order. */
struct store_rows;

/* sql: constant text with at most one parameter, ?1, bound to `id`. Never put a name or value
 * from a user into it. returns TY_OK, TY_ERR_NOMEM, TY_ERR_INPUT (the file lacks a table or
 * column: not written by this version), TY_ERR_STORE */
TY_MUST_CHECK ty_status store_ask(ty_store *store, const char *sql, int64_t id,
                                  struct store_rows **out, struct ty_error *error);
/* false after the last row, and on a read error, which store_done reports. */
bool store_next(struct store_rows *rows);
/* Column values of the current row; text lives until the next call of store_next. */
double store_number(struct store_rows *rows, int column); /* NAN for NULL */
int64_t store_integer(struct store_rows *rows, int column);
const char *store_text(struct store_rows *rows, int column); /* "" for NULL */
/* Frees the rows (NULL accepted). returns TY_OK or why reading stopped early. */
ty_status store_done(struct store_rows *rows, struct ty_error *error);

/* One number, `missing` when there is no row or it is NULL. */
TY_MUST_CHECK ty_status store_ask_number(ty_store *store, const char *sql, int64_t id,
                                         double missing, double *out, struct ty_error *error);

/* Columns of `prediction` that come from the plan: index 0.. until NULL. The pointer lives as
 * long as the store; quote it ("order" is a word of SQL). */
const char *store_plan_column(const ty_store *store, size_t index);

/* true for file systems without dependable shared memory and locks (statfs f_type). */
bool store_is_network(unsigned long file_system_type);

#endif
