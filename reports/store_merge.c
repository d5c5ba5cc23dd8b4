/* SPDX-License-Identifier: MIT
 *
 * Merging the parts of a study. Files are compared first, all of them, and only then added one
 * after the other, each in a transaction of its own: a merge that stops can be run again.
 */
#include "reports/store_study.h"
#include "sim/error.h"

#include <sys/stat.h>

/* ---- comparing ---------------------------------------------------------------------------- */

/* The one study of a file; 0 in a file without any. */
static ty_status only_study(ty_store *store, int64_t *study_id, struct ty_error *error)
{
    int64_t n = 0;
    ty_status status = store_integer_of(store, "SELECT count(*) FROM study", &n, error);
    if (status == TY_OK && n > 1)
        return error_set(error, TY_ERR_INPUT, store->path,
                         "holds %lld studies; files of one are merged", (long long)n);
    if (status == TY_OK)
        status = store_integer_of(store, "SELECT coalesce(max(id), 0) FROM study", study_id, error);
    return status;
}

static ty_status open_part(const char *path, struct store_part *part, struct ty_error *error)
{
    ty_status status = ty_store_open(path, true, &part->store, error);
    if (status == TY_OK)
        status = only_study(part->store, &part->study_id, error);
    if (status == TY_OK && part->study_id == 0)
        status = error_set(error, TY_ERR_INPUT, path, "holds no study");
    return status;
}

static ty_status compare(const struct store_part *first, const char *path, struct ty_error *error)
{
    char difference[400] = "";
    struct store_part part = {0};
    ty_status status = open_part(path, &part, error);
    if (status == TY_OK)
        status = store_same_study(&part, first, difference, sizeof difference, error);
    if (status == TY_OK && *difference)
        status = error_set(error, TY_ERR_INPUT, path, "is of another study than %s; %s",
                           first->store->path, difference);
    ty_store_close(part.store);
    return status;
}

/* All parts against the first, and against what `out` holds. */
static ty_status compare_all(struct store_part *out, const char *const *paths, uint32_t n,
                             struct ty_error *error)
{
    struct store_part first = {0};
    ty_status status = open_part(paths[0], &first, error);
    for (uint32_t i = 1; i < n && status == TY_OK; i++)
        status = compare(&first, paths[i], error);
    if (status == TY_OK && out->study_id) {
        char difference[400];
        status = store_same_study(&first, out, difference, sizeof difference, error);
        if (status == TY_OK && *difference)
            status = error_set(error, TY_ERR_INPUT, paths[0], "is of another study than %s; %s",
                               out->store->path, difference);
    }
    ty_store_close(first.store);
    return status;
}

/* ---- adding ------------------------------------------------------------------------------- */

/* ids: ours is ?1, that of the part ?2. */
static ty_status run_sql(ty_store *store, const char *sql, int64_t ours, int64_t theirs,
                         int64_t *n_changed, struct ty_error *error)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, ours);
        if (sqlite3_bind_parameter_count(statement) > 1)
            sqlite3_bind_int64(statement, 2, theirs);
        rc = sqlite3_step(statement);
    }
    if (rc == SQLITE_ROW && n_changed)
        *n_changed = sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE && n_changed)
        *n_changed = sqlite3_changes(store->db);
    const ty_status status =
        rc == SQLITE_DONE || rc == SQLITE_ROW ? TY_OK : store_fail(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}

/* Every column but id and study_id as it is: the order is that of the table. */
static char *add_rows_sql(const ty_store *store)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "INSERT INTO main.prediction SELECT NULL, ?1");
    sqlite3_stmt *columns;
    if (sqlite3_prepare_v2(store->db, "SELECT name FROM pragma_table_info('prediction')", -1,
                           &columns, NULL) != SQLITE_OK)
        columns = NULL;
    for (int i = 0; columns && sqlite3_step(columns) == SQLITE_ROW; i++)
        if (i > 1)
            sqlite3_str_appendf(sql, ", \"%w\"", (const char *)sqlite3_column_text(columns, 0));
    sqlite3_finalize(columns);
    sqlite3_str_appendall(sql, " FROM part.prediction WHERE study_id = ?2 AND NOT detailed"
                               " AND plan_id NOT IN (SELECT plan_id FROM main.prediction WHERE"
                               "  study_id = ?1 AND plan_id IS NOT NULL) ORDER BY plan_id");
    return sqlite3_str_finish(sql);
}

/* Plans of both with different step times. */
static const char disputed[] =
    "SELECT count(*) FROM part.prediction AS theirs JOIN main.prediction AS ours"
    "  ON ours.plan_id = theirs.plan_id WHERE ours.study_id = ?1 AND theirs.study_id = ?2"
    "  AND NOT ours.detailed AND NOT theirs.detailed"
    "  AND ours.step_time_s IS NOT theirs.step_time_s";

static const char *const copy_head[] = {
    "INSERT INTO main.study SELECT ?1, command, created_utc, arguments FROM part.study"
    "  WHERE id = ?2",
    "INSERT INTO main.input SELECT ?1, kind, name, hash, json FROM part.input WHERE study_id = ?2",
    "INSERT INTO main.version SELECT ?1, component, version FROM part.version WHERE study_id = ?2"};

static const char copy_rejections[] =
    "INSERT INTO main.rejection SELECT ?1, reason, count FROM part.rejection WHERE study_id = ?2"
    "  ON CONFLICT DO UPDATE SET count = count + excluded.count";

static ty_status add_attached(struct store_part *out, int64_t theirs, const char *path,
                              struct ty_merged *merged, struct ty_error *error)
{
    ty_store *store = out->store;
    ty_status status = TY_OK;
    int64_t n_disputed = 0, n_theirs = 0, n_added = 0;
    if (!out->study_id) {
        out->study_id = 1;
        for (int i = 0; i < 3 && status == TY_OK; i++)
            status = run_sql(store, copy_head[i], out->study_id, theirs, NULL, error);
    }
    if (status == TY_OK)
        status = run_sql(store, disputed, out->study_id, theirs, &n_disputed, error);
    if (status == TY_OK && n_disputed)
        return error_set(error, TY_ERR_INPUT, path,
                         "%lld of its plans have another step time in %s: not from one program",
                         (long long)n_disputed, store->path);
    if (status == TY_OK)
        status = run_sql(store,
                         "SELECT count(*) FROM part.prediction WHERE study_id = ?1 AND NOT"
                         " detailed",
                         theirs, 0, &n_theirs, error);
    char *sql = add_rows_sql(store);
    if (status == TY_OK)
        status = sql ? run_sql(store, sql, out->study_id, theirs, &n_added, error)
                     : error_set(error, TY_ERR_NOMEM, path, "out of memory");
    sqlite3_free(sql);
    if (status == TY_OK && (n_added || !n_theirs)) /* merged again, a part counts once */
        status = run_sql(store, copy_rejections, out->study_id, theirs, NULL, error);
    merged->n_rows += (uint64_t)n_added;
    merged->n_twice += (uint64_t)(n_theirs - n_added);
    return status;
}

/* Names the file behind `part.` for one statement after the other. */
static ty_status attach(ty_store *store, const char *path, struct ty_error *error)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, "ATTACH ?1 AS part", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
        rc = sqlite3_step(statement);
    }
    const ty_status status = rc == SQLITE_DONE ? TY_OK : store_fail(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}

static ty_status add_part(struct store_part *out, const char *path, struct ty_merged *merged,
                          struct ty_error *error)
{
    const bool fresh = out->study_id == 0;
    int64_t theirs = 0;
    ty_status status = attach(out->store, path, error);
    if (status != TY_OK)
        return status;
    status = store_exec(out->store, "BEGIN IMMEDIATE", error);
    if (status == TY_OK)
        status = run_sql(out->store, "SELECT max(id) FROM part.study WHERE ?1 = ?1", 0, 0, &theirs,
                         error);
    if (status == TY_OK)
        status = add_attached(out, theirs, path, merged, error);
    if (status == TY_OK)
        status = store_exec(out->store, "COMMIT", error);
    if (status != TY_OK) {
        sqlite3_exec(out->store->db, "ROLLBACK", NULL, NULL, NULL);
        out->study_id = fresh ? 0 : out->study_id;
    }
    sqlite3_exec(out->store->db, "DETACH part", NULL, NULL, NULL);
    return status;
}

ty_status ty_store_merge(const char *out, const char *const *paths, uint32_t n,
                         struct ty_merged *merged, struct ty_error *error)
{
    struct store_part whole = {0};
    struct ty_merged sum = {0};
    struct stat out_file, in_file;
    if (n == 0)
        return error_set(error, TY_ERR_INPUT, out, "nothing to merge into it");
    for (uint32_t i = 0; i < n; i++)
        if (stat(out, &out_file) == 0 && stat(paths[i], &in_file) == 0 &&
            out_file.st_ino == in_file.st_ino && out_file.st_dev == in_file.st_dev)
            return error_set(error, TY_ERR_INPUT, paths[i], "is the file to merge into");
    ty_status status = TY_OK;
    if (stat(out, &out_file) != 0) { /* a refusal leaves no empty file behind */
        status = compare_all(&whole, paths, n, error);
        if (status != TY_OK)
            return status;
    }
    status = ty_store_open(out, false, &whole.store, error);
    if (status == TY_OK)
        status = only_study(whole.store, &whole.study_id, error);
    if (status == TY_OK && whole.study_id)
        status = compare_all(&whole, paths, n, error);
    for (uint32_t i = 0; i < n && status == TY_OK; i++)
        status = add_part(&whole, paths[i], &sum, error);
    ty_store_close(whole.store);
    if (status == TY_OK)
        *merged = sum;
    return status;
}
