/* SPDX-License-Identifier: MIT
 *
 * SQLite export of Nsight Systems (nsys export --type sqlite). Tables as its exporter documents
 * them; each is there only when something of its kind was recorded:
 *
 *   CUPTI_ACTIVITY_KIND_KERNEL   start, end (ns), deviceId, demangledName or shortName -> StringIds
 *   CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET   start, end, deviceId
 *   NVTX_EVENTS                  start, text or textId -> StringIds
 */
#include "calibrate/timeline.h"
#include "sim/error.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct nsys {
    sqlite3 *db;
    struct spans *spans;
    uint8_t *activity; /* by string id; TY_N_ACTIVITIES: not asked yet */
    size_t n_activities;
};

/* The first of the statements whose tables and columns exist; NULL: none. */
static sqlite3_stmt *prepare(const struct nsys *nsys, const char *const *sql)
{
    sqlite3_stmt *statement = NULL;
    for (; *sql; sql++)
        if (sqlite3_prepare_v2(nsys->db, *sql, -1, &statement, NULL) == SQLITE_OK)
            return statement;
    return NULL;
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

/* A name is classified once: kernels are many, their names few. */
static uint8_t activity_of(struct nsys *nsys, sqlite3_int64 id, const char *name)
{
    const size_t place = (size_t)id;
    if (id < 0 || id >= 1 << 24)
        return (uint8_t)ty_activity_of(name);
    if (place >= nsys->n_activities) {
        const size_t n = 2 * place + 1024;
        uint8_t *grown = realloc(nsys->activity, n);
        if (!grown)
            return (uint8_t)ty_activity_of(name);
        memset(grown + nsys->n_activities, TY_N_ACTIVITIES, n - nsys->n_activities);
        nsys->activity = grown;
        nsys->n_activities = n;
    }
    if (nsys->activity[place] == TY_N_ACTIVITIES)
        nsys->activity[place] = (uint8_t)ty_activity_of(name);
    return nsys->activity[place];
}

/* Rows of start, end, device, id of the name, name; copy: no name. returns SQLITE_DONE, or why it
 * stopped. */
static int read_spans(struct nsys *nsys, const char *const *sql, bool copy)
{
    sqlite3_stmt *statement = prepare(nsys, sql);
    int code = SQLITE_DONE;
    while (statement && !nsys->spans->no_memory && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const sqlite3_int64 device = sqlite3_column_int64(statement, 2);
        const char *name = copy ? "" : column_text(statement, 4);
        const struct span span = {
            .start_s = 1e-9 * (double)sqlite3_column_int64(statement, 0),
            .end_s = 1e-9 * (double)sqlite3_column_int64(statement, 1),
            .device = device >= 0 && device < UINT32_MAX ? (uint32_t)device : UINT32_MAX,
            .activity = copy ? (uint8_t)TY_ACTIVITY_MEMCPY
                             : activity_of(nsys, sqlite3_column_int64(statement, 3), name)};
        spans_add(nsys->spans, &span, name);
    }
    sqlite3_finalize(statement);
    return code;
}

static int read_marks(struct nsys *nsys)
{
    static const char *const sql[] = {
        "SELECT e.start, coalesce(e.text, s.value) FROM NVTX_EVENTS e"
        " LEFT JOIN StringIds s ON s.id = e.textId WHERE e.\"end\" IS NOT NULL",
        "SELECT start, text FROM NVTX_EVENTS WHERE \"end\" IS NOT NULL", NULL};
    sqlite3_stmt *statement = prepare(nsys, sql);
    int code = SQLITE_DONE;
    while (statement && (code = sqlite3_step(statement)) == SQLITE_ROW)
        spans_mark(nsys->spans, column_text(statement, 1),
                   1e-9 * (double)sqlite3_column_int64(statement, 0), false);
    sqlite3_finalize(statement);
    return code;
}

static ty_status read_all(struct nsys *nsys, const char *path, struct ty_error *error)
{
#define KERNELS(name)                                                                              \
    "SELECT k.start, k.\"end\", k.deviceId, k." name ", s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k" \
    " LEFT JOIN StringIds s ON s.id = k." name
    static const char *const kernels[] = {KERNELS("demangledName"), KERNELS("shortName"), NULL};
#undef KERNELS
    static const char *const copies[] = {
        "SELECT start, \"end\", deviceId FROM CUPTI_ACTIVITY_KIND_MEMCPY", NULL};
    static const char *const sets[] = {
        "SELECT start, \"end\", deviceId FROM CUPTI_ACTIVITY_KIND_MEMSET", NULL};
    sqlite3_stmt *probe = prepare(nsys, kernels);
    const bool has_kernels = probe != NULL;
    sqlite3_finalize(probe);
    if (!has_kernels)
        return error_set(error, TY_ERR_INPUT, path,
                         "has no table CUPTI_ACTIVITY_KIND_KERNEL with its names in StringIds: no "
                         "export of Nsight Systems with CUDA trace");
    if (read_spans(nsys, kernels, false) == SQLITE_DONE &&
        read_spans(nsys, copies, true) == SQLITE_DONE &&
        read_spans(nsys, sets, true) == SQLITE_DONE && read_marks(nsys) == SQLITE_DONE)
        return TY_OK;
    return nsys->spans->no_memory
               ? TY_OK /* said later */
               : error_set(error, TY_ERR_INPUT, path, "%s", sqlite3_errmsg(nsys->db));
}

ty_status timeline_read_nsys(const char *path, struct spans *spans, struct ty_error *error)
{
    struct nsys nsys = {.spans = spans};
    ty_status status;
    if (sqlite3_open_v2(path, &nsys.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        status = error_set(error, TY_ERR_IO, path, "%s",
                           nsys.db ? sqlite3_errmsg(nsys.db) : "no memory to open it");
    else
        status = read_all(&nsys, path, error);
    sqlite3_close(nsys.db);
    free(nsys.activity);
    return status;
}
