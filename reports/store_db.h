/* SPDX-License-Identifier: MIT
 * Inside of the store: shared by reports/store*.c only, the code that knows SQLite. */
#ifndef REPORTS_STORE_DB_H
#define REPORTS_STORE_DB_H

#include "reports/store.h"

#include <sqlite3.h>

#define STORE_APPLICATION_ID 0x74796472 /* "tydr", in the file header: ours */
#define STORE_SCHEMA_VERSION 4
#define STORE_BATCH_ROWS     4096
#define STORE_MAX_COLUMNS    64 /* of a plan */

/* A plan field and the column it fills; `spelled`: the names of the flags in `spelled_bits`. */
struct store_column {
    const struct ty_field *field;
    char name[48];
    char spelled[128];
    uint32_t spelled_bits;
};

enum store_insert {
    STORE_PREDICTION,
    STORE_MEMORY,
    STORE_GROUP,
    STORE_NOTE,
    STORE_VIOLATION,
    STORE_N_INSERTS
};

/* What a parameter of the insert of predictions holds since an earlier row: SQLite keeps it. */
struct store_kept {
    enum { STORE_KEPT_NOTHING, STORE_KEPT_INTEGER, STORE_KEPT_NUMBER, STORE_KEPT_NAME } type;
    uint64_t bits; /* the value, or the address of a text that never changes */
};
#define STORE_MAX_KEPT 128

struct ty_store {
    sqlite3 *db;
    char path[160]; /* for errors; may be cut */
    bool read_only, wal, in_batch;
    uint32_t n_pending; /* predictions of the open batch */
    sqlite3_stmt *insert[STORE_N_INSERTS];
    uint32_t n_columns;
    struct store_column columns[STORE_MAX_COLUMNS];
    struct store_kept kept[STORE_MAX_KEPT]; /* by parameter */
};

/* store_schema.c: the columns of a plan; the tables of a new file; an existing file's marks. */
ty_status store_columns(ty_store *store, struct ty_error *error);
ty_status store_schema(ty_store *store, struct ty_error *error);
/* "INSERT INTO prediction VALUES (?, ...)" and its kin; free with sqlite3_free; NULL: no memory */
char *store_insert_sql(const ty_store *store, enum store_insert which);

/* store.c */
/* Writes the head of a study into the open transaction: its inputs, versions, arguments. */
ty_status store_add_study(ty_store *store, const struct ty_study *study, int64_t *study_id,
                          struct ty_error *error);
ty_status store_fail(const ty_store *store, int rc, struct ty_error *error);
ty_status store_exec(ty_store *store, const char *sql, struct ty_error *error);
ty_status store_integer_of(ty_store *store, const char *sql, int64_t *out, struct ty_error *error);
ty_status store_rollback(ty_store *store, int rc, struct ty_error *error); /* drops the batch */

/* store_write.c: binds the parameters of a statement one after the other. SQLite stores a NaN as
 * NULL. Pointers are borrowed until the step. */
struct store_binder {
    sqlite3_stmt *statement;
    int column, rc;
    struct store_kept *kept; /* NULL: every value is bound */
};
void store_bind_integer(struct store_binder *to, int64_t value);
void store_bind_number(struct store_binder *to, double value);
void store_bind_text(struct store_binder *to, const char *text);
/* Of static storage, or NULL. */
void store_bind_name(struct store_binder *to, const char *name);
/* A statement of its own: finalize it, also after a failure. returns an SQLite code */
int store_prepare(ty_store *store, const char *sql, struct store_binder *to);
int store_step(struct store_binder *from); /* runs it and begins the next row */
int store_open_batch(ty_store *store);

#endif
