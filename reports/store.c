/* SPDX-License-Identifier: MIT
 *
 * The study database: opening, journal mode, transactions, studies and queries. Predictions are
 * written in store_write.c, tables are made in store_schema.c.
 *
 * Journal: write-ahead log on local disks, where a killed writer loses only its open batch and
 * readers do not block it. WAL needs shared memory between processes, which network file systems
 * lack (source: sqlite.org/wal.html, section 1), so there it is a rollback journal.
 */
#include "reports/store_db.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define BUSY_TIMEOUT_MS 10000
/* Rows are ~350 bytes: large pages and a checkpoint every 64 MiB of log write 1.4x as many rows a
 * second as SQLite's 4 KiB and 4 MiB (tests/bench/store.c). */
#define PAGE_BYTES       "16384"
#define CHECKPOINT_PAGES "4096"

/* f_type of file systems shared between machines or served by another process.
 * source: statfs(2) and linux/magic.h; GPFS, BeeGFS, PanFS: their own headers, as coreutils stat
 * lists them */
static const unsigned long network_types[] = {
    0x6969,     /* NFS */
    0x517B,     /* SMB */
    0xFF534D42, /* CIFS */
    0xFE534D42, /* SMB2 */
    0x0BD00BD0, /* Lustre */
    0x47504653, /* GPFS */
    0x65735546, /* FUSE */
    0x00C36400, /* Ceph */
    0x5346414F, /* AFS */
    0x19830326, /* BeeGFS */
    0xAAD7AAEA, /* PanFS */
    0x01021997, /* 9P */
    0x20030528, /* OrangeFS */
    0x01161970, /* GFS2 */
    0x7461636F, /* OCFS2 */
};

bool store_is_network(unsigned long file_system_type)
{
    for (size_t i = 0; i < sizeof network_types / sizeof *network_types; i++)
        if (network_types[i] == (file_system_type & 0xFFFFFFFFul))
            return true;
    return false;
}

ty_status store_fail(const ty_store *store, int rc, struct ty_error *error)
{
    ty_status status = TY_ERR_STORE;
    switch (rc & 0xFF) {
    case SQLITE_NOMEM:
        status = TY_ERR_NOMEM;
        break;
    case SQLITE_NOTADB:
        return error_set(error, TY_ERR_INPUT, store->path,
                         "not a trainyard study: not an SQLite database");
    case SQLITE_CORRUPT:
        status = TY_ERR_INPUT;
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_READONLY:
        status = TY_ERR_IO;
        break;
    }
    return error_set(error, status, store->path, "%s",
                     store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
}

ty_status store_exec(ty_store *store, const char *sql, struct ty_error *error)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TY_OK : store_fail(store, rc, error);
}

ty_status store_rollback(ty_store *store, int rc, struct ty_error *error)
{
    ty_status status = store_fail(store, rc, error);
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->in_batch = false;
    store->n_pending = 0;
    return status;
}

ty_status store_integer_of(ty_store *store, const char *sql, int64_t *out, struct ty_error *error)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    ty_status status = rc == SQLITE_ROW ? TY_OK : store_fail(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}

/* File system of the database's folder; when it cannot be told, the safe answer. */
static bool on_network(const char *path)
{
    struct statfs info;
    return statfs(path, &info) != 0 || store_is_network((unsigned long)info.f_type);
}

static ty_status configure(ty_store *store, const char *path, struct ty_error *error)
{
    /* A database is a user's file: its schema must not reach functions with side effects. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    ty_status status = store_columns(store, error);
    if (status == TY_OK)
        status = store_exec(store, "PRAGMA page_size=" PAGE_BYTES, error); /* of a new file */
    if (status == TY_OK)
        status = store_schema(store, error);
    if (status != TY_OK || store->read_only)
        return status;
    store->wal = !on_network(path);
    /* WAL with NORMAL: a crash of the process loses nothing committed, one of the machine
     * perhaps the last commits, the file stays whole. source: sqlite.org/pragma.html */
    return store_exec(store,
                      store->wal ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                                   "PRAGMA wal_autocheckpoint=" CHECKPOINT_PAGES ";"
                                   "PRAGMA foreign_keys=ON"
                                 : "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;"
                                   "PRAGMA foreign_keys=ON",
                      error);
}

ty_status ty_store_open(const char *path, bool read_only, ty_store **out, struct ty_error *error)
{
    ty_store *store = calloc(1, sizeof *store);
    if (!store)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    text_format(store->path, sizeof store->path, "%s", path);
    store->read_only = read_only;
    int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    /* No mutex: a store is used by one thread at a time. */
    int rc = sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    ty_status status =
        rc == SQLITE_OK ? configure(store, path, error) : store_fail(store, rc, error);
    if (status != TY_OK) {
        sqlite3_close(store->db);
        free(store);
        return status;
    }
    *out = store;
    return TY_OK;
}

void ty_store_close(ty_store *store)
{
    if (!store)
        return;
    ty_status flushed = ty_store_flush(store, NULL); /* who must know flushes before */
    for (int i = 0; i < STORE_N_INSERTS; i++)
        sqlite3_finalize(store->insert[i]);
    /* At rest the study is one plain file that opens from read-only media; another open
     * connection keeps the log, which is harmless. */
    sqlite3_busy_timeout(store->db, 0);
    if (store->wal && flushed == TY_OK)
        sqlite3_exec(store->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    sqlite3_close(store->db);
    free(store);
}

/* Fowler-Noll-Vo 1a, 64 bits. source: IETF draft-eastlake-fnv, section 2 */
static uint64_t fnv1a(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char *s = (const unsigned char *)text; *s; s++)
        hash = (hash ^ *s) * 0x100000001b3u;
    return hash;
}

/* Runs one insert whose parameters are study_id, then texts. */
static ty_status insert_texts(ty_store *store, const char *sql, int64_t study_id,
                              const char *const *texts, struct ty_error *error)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, study_id);
        for (int i = 0; texts[i]; i++)
            sqlite3_bind_text(statement, i + 2, texts[i], -1, SQLITE_STATIC);
        rc = sqlite3_step(statement);
    }
    ty_status status = rc == SQLITE_DONE ? TY_OK : store_fail(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}

static ty_status add_input(ty_store *store, int64_t study_id, enum ty_kind kind, const void *value,
                           struct ty_error *error)
{
    const char *kind_name, *name;
    switch (kind) {
    case TY_KIND_MODEL:
        kind_name = "model";
        name = ((const struct ty_model *)value)->name;
        break;
    case TY_KIND_CLUSTER:
        kind_name = "cluster";
        name = ((const struct ty_cluster *)value)->name;
        break;
    case TY_KIND_STORAGE:
        kind_name = name = "storage";
        break;
    case TY_KIND_PRICE:
        kind_name = "price";
        name = ((const struct ty_price *)value)->name;
        break;
    default:
        kind_name = "profile";
        name = ((const struct ty_profile *)value)->name;
    }
    char *json = ty_spec_write(kind, value);
    if (!json)
        return error_set(error, TY_ERR_NOMEM, store->path, "out of memory");
    char hash[32];
    text_format(hash, sizeof hash, "fnv1a64:%016llx", (unsigned long long)fnv1a(json));
    const char *texts[] = {kind_name, name, hash, json, NULL};
    ty_status status =
        insert_texts(store, "INSERT INTO input VALUES (?, ?, ?, ?, ?)", study_id, texts, error);
    ty_text_free(json);
    return status;
}

ty_status store_add_study(ty_store *store, const struct ty_study *study, int64_t *study_id,
                          struct ty_error *error)
{
    char created[32] = "", schema[16];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    text_format(schema, sizeof schema, "%d", STORE_SCHEMA_VERSION);

    ty_status status =
        store_integer_of(store, "SELECT coalesce(max(id), 0) + 1 FROM study", study_id, error);
    const char *header[] = {study->command ? study->command : "", created,
                            study->arguments ? study->arguments : "", NULL};
    if (status == TY_OK)
        status =
            insert_texts(store, "INSERT INTO study VALUES (?, ?, ?, ?)", *study_id, header, error);
    const char *const versions[][3] = {{"trainyard", ty_version(), NULL},
                                       {"sqlite", sqlite3_libversion(), NULL},
                                       {"schema", schema, NULL}};
    for (size_t i = 0; i < 3 && status == TY_OK; i++)
        status = insert_texts(store, "INSERT INTO version VALUES (?, ?, ?)", *study_id, versions[i],
                              error);
    if (status == TY_OK && study->model)
        status = add_input(store, *study_id, TY_KIND_MODEL, study->model, error);
    if (status == TY_OK && study->cluster)
        status = add_input(store, *study_id, TY_KIND_CLUSTER, study->cluster, error);
    if (status == TY_OK && study->profile)
        status = add_input(store, *study_id, TY_KIND_PROFILE, study->profile, error);
    if (status == TY_OK && study->price)
        status = add_input(store, *study_id, TY_KIND_PRICE, study->price, error);
    if (status == TY_OK && study->storage)
        status = add_input(store, *study_id, TY_KIND_STORAGE, study->storage, error);
    return status;
}

ty_status ty_store_begin(ty_store *store, const struct ty_study *study, int64_t *study_id,
                         struct ty_error *error)
{
    int64_t id = 0;
    ty_status status = ty_store_flush(store, error);
    if (status == TY_OK)
        status = store_exec(store, "BEGIN IMMEDIATE", error);
    if (status != TY_OK)
        return status;
    status = store_add_study(store, study, &id, error);
    if (status == TY_OK)
        status = store_exec(store, "COMMIT", error);
    if (status == TY_OK)
        *study_id = id;
    else
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

ty_status ty_store_flush(ty_store *store, struct ty_error *error)
{
    if (!store->in_batch)
        return TY_OK;
    int rc = sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return store_rollback(store, rc, error);
    store->in_batch = false;
    store->n_pending = 0;
    return TY_OK;
}
