/* SPDX-License-Identifier: MIT
 *
 * Studies of the size of a machine: a run on each of several numbers of GPUs. The table is made
 * when the first such point is written.
 */
#include "reports/store_db.h"

#include <math.h>

static const char size_table[] =
    "CREATE TABLE IF NOT EXISTS size_point("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, gpus INTEGER NOT NULL,"
    "  gpus_paid INTEGER, spares INTEGER, fits INTEGER NOT NULL, feasible INTEGER NOT NULL,"
    "  tokens_per_s REAL, time_p10_s REAL, time_p50_s REAL, time_p90_s REAL, money_p10 REAL,"
    "  money_p50 REAL, money_p90 REAL, energy_j REAL, co2_kg REAL, p_meet_deadline REAL,"
    "  p_meet_budget REAL, useful_ratio REAL, PRIMARY KEY(study_id, gpus)) WITHOUT ROWID;";

/* A point without a plan has no figures. */
static int add_point(ty_store *store, int64_t study_id, const struct ty_size_result *point)
{
    struct store_binder to;
    const double unknown = point->fits ? 0.0 : (double)NAN;
    store_prepare(store,
                  "INSERT OR REPLACE INTO size_point VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                  " ?, ?, ?, ?, ?)",
                  &to);
    if (to.rc == SQLITE_OK) {
        const double figures[] = {
            point->phase[0].tokens_per_s, point->time_s[TY_P10], point->time_s[TY_P50],
            point->time_s[TY_P90],        point->money[TY_P10],  point->money[TY_P50],
            point->money[TY_P90],         point->energy_j,       point->co2_kg,
            point->p_meet_deadline,       point->p_meet_budget,  point->goodput.useful_ratio};
        store_bind_integer(&to, study_id);
        store_bind_integer(&to, point->gpus);
        store_bind_integer(&to, point->gpus_paid);
        store_bind_integer(&to, point->spares);
        store_bind_integer(&to, point->fits);
        store_bind_integer(&to, point->feasible);
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
            store_bind_number(&to, figures[i] + unknown);
        store_step(&to);
    }
    const int rc = to.rc;
    sqlite3_finalize(to.statement);
    return rc;
}

ty_status ty_store_add_size(ty_store *store, int64_t study_id, const struct ty_size_result *point,
                            struct ty_error *error)
{
    ty_status status = ty_store_flush(store, error);
    if (status == TY_OK)
        status = store_exec(store, size_table, error);
    if (status != TY_OK)
        return status;
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = add_point(store, study_id, point);
    if (rc != SQLITE_OK)
        return store_rollback(store, rc, error);
    struct ty_score score = point->phase[0];
    score.plan_id = point->gpus;
    return point->fits ? ty_store_add_score(store, study_id, &score, (double)NAN, error)
                       : ty_store_flush(store, error);
}
