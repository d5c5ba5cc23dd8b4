/* SPDX-License-Identifier: MIT
 *
 * Studies that divide a cluster among jobs. Their tables are made when the first such study is
 * written, so that files of plans alone do not carry them.
 */
#include "reports/store_db.h"
#include "sim/error.h"

#include <math.h>

static const char split_tables[] =
    "CREATE TABLE IF NOT EXISTS split_job("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, place INTEGER NOT NULL,"
    "  name TEXT NOT NULL, objective TEXT NOT NULL, weight REAL, gpus INTEGER, tokens_per_s REAL,"
    "  equal_tokens_per_s REAL, cores REAL, cache_bytes REAL, read_bytes_per_s REAL,"
    "  limited_by TEXT, gain_gpus_tokens_per_s REAL, gain_core_tokens_per_s REAL,"
    "  gain_cache_tokens_per_s REAL, gain_storage_tokens_per_s REAL, prepare_s REAL, start_s REAL,"
    "  finish_s REAL, deadline_s REAL, PRIMARY KEY(study_id, place)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS split_curve("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, place INTEGER NOT NULL,"
    "  gpus INTEGER NOT NULL, tokens_per_s REAL,"
    "  PRIMARY KEY(study_id, place, gpus)) WITHOUT ROWID;";

static void bind_share(struct store_binder *to, const struct ty_division *division, uint32_t j)
{
    const struct ty_split_share *share = &division->result->share[j];
    const struct ty_split_job *job = &division->split->jobs[j];
    store_bind_text(to, division->list->entry[j].name);
    store_bind_text(to, ty_split_objective_name(division->split->objective));
    store_bind_number(to, job->weight);
    store_bind_integer(to, (int64_t)share->units * division->unit_gpus);
    store_bind_number(to, share->tokens_per_s);
    store_bind_number(to, share->equal_tokens_per_s);
    store_bind_number(to, share->cores);
    store_bind_number(to, share->cache_bytes);
    store_bind_number(to, share->read_bytes_per_s);
    store_bind_text(to, ty_split_resource_name(share->limit, NULL));
    for (int i = 0; i < TY_N_SPLIT_RESOURCES; i++)
        store_bind_number(to, share->gain[i]);
    store_bind_number(to, share->prepare_s);
    store_bind_number(to, share->start_s);
    store_bind_number(to, share->finish_s);
    store_bind_number(to, job->deadline_s);
}

static int add_shares(ty_store *store, int64_t study_id, const struct ty_division *division)
{
    struct store_binder to;
    int rc = store_prepare(store,
                           "INSERT INTO split_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                           " ?, ?, ?, ?, ?, ?)",
                           &to);
    for (uint32_t j = 0; rc == SQLITE_OK && j < division->result->n_jobs; j++) {
        store_bind_integer(&to, study_id);
        store_bind_integer(&to, j);
        bind_share(&to, division, j);
        rc = store_step(&to);
    }
    sqlite3_finalize(to.statement);
    return rc;
}

static int add_curves(ty_store *store, int64_t study_id, const struct ty_division *division)
{
    struct store_binder to;
    int rc = store_prepare(store, "INSERT INTO split_curve VALUES (?, ?, ?, ?)", &to);
    for (uint32_t j = 0; j < division->result->n_jobs; j++)
        for (uint32_t k = 1; rc == SQLITE_OK && k <= division->split->n_units; k++) {
            const double speed = division->split->jobs[j].tokens_per_s[k];
            if (!(speed > 0.0))
                continue;
            store_bind_integer(&to, study_id);
            store_bind_integer(&to, j);
            store_bind_integer(&to, (int64_t)k * division->unit_gpus);
            store_bind_number(&to, speed);
            rc = store_step(&to);
        }
    sqlite3_finalize(to.statement);
    return rc;
}

ty_status ty_store_add_division(ty_store *store, int64_t study_id,
                                const struct ty_division *division, struct ty_error *error)
{
    ty_status status = ty_store_flush(store, error);
    if (status == TY_OK)
        status = store_exec(store, split_tables, error);
    if (status != TY_OK)
        return status;
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = add_shares(store, study_id, division);
    if (rc == SQLITE_OK)
        rc = add_curves(store, study_id, division);
    return rc == SQLITE_OK ? TY_OK : store_rollback(store, rc, error);
}
