/* SPDX-License-Identifier: MIT
 *
 * Studies of replays of a trace: measures, jobs, events. Their tables are made when the first such
 * study is written.
 */
#include "reports/store_db.h"
#include "sim/error.h"

#include <math.h>

static const char pool_tables[] =
    "CREATE TABLE IF NOT EXISTS pool_run("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, run INTEGER NOT NULL,"
    "  policy TEXT NOT NULL, gpus INTEGER NOT NULL, done INTEGER, refused INTEGER,"
    "  jct_mean_s REAL, jct_median_s REAL, jct_p90_s REAL, jct_p99_s REAL, wait_mean_s REAL,"
    "  wait_p99_s REAL, slowdown_mean REAL, makespan_s REAL, allocated_ratio REAL,"
    "  useful_ratio REAL, idle_while_waiting_ratio REAL, fragmentation REAL, preemptions INTEGER,"
    "  resizes INTEGER, node_failures INTEGER, lost_gpu_hours REAL, rho_mean REAL, rho_max REAL,"
    "  jain REAL, deadlines INTEGER, missed INTEGER, PRIMARY KEY(study_id, run)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS pool_job("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, run INTEGER NOT NULL,"
    "  place INTEGER NOT NULL, name TEXT, queue TEXT, gpus INTEGER, submit_s REAL,"
    "  duration_s REAL, start_s REAL, end_s REAL, lost_gpu_s REAL, preemptions INTEGER,"
    "  failures INTEGER, resizes INTEGER, refused TEXT,"
    "  PRIMARY KEY(study_id, run, place)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS pool_event("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, run INTEGER NOT NULL,"
    "  number INTEGER NOT NULL, time_s REAL NOT NULL, kind TEXT NOT NULL, subject INTEGER,"
    "  gpus INTEGER, held_gpus REAL, running INTEGER, waiting INTEGER,"
    "  PRIMARY KEY(study_id, run, number)) WITHOUT ROWID;";

static void bind_key(struct store_binder *to, int64_t study_id, const struct ty_replay *replay)
{
    store_bind_integer(to, study_id);
    store_bind_integer(to, replay->run);
}

static int64_t count_gpus(const struct ty_pool *pool)
{
    int64_t gpus = 0;
    for (uint32_t i = 0; i < pool->n_groups; i++)
        gpus += (int64_t)pool->groups[i].n_nodes * pool->groups[i].gpus_per_node;
    return gpus;
}

static void bind_metrics(struct store_binder *to, const struct ty_pool_metrics *m)
{
    const uint64_t first[] = {m->n_done, m->n_refused};
    const double numbers[] = {m->jct_s.mean,    m->jct_s.median,       m->jct_s.p90,
                              m->jct_s.p99,     m->wait_s.mean,        m->wait_s.p99,
                              m->slowdown.mean, m->makespan_s,         m->allocated_ratio,
                              m->useful_ratio,  m->idle_while_waiting, m->fragmentation};
    const uint64_t counts[] = {m->n_preemptions, m->n_resizes, m->n_node_failures};
    const double fairness[] = {m->lost_gpu_hours, m->rho_mean, m->rho_max, m->jain};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        store_bind_integer(to, (int64_t)first[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        store_bind_number(to, numbers[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        store_bind_integer(to, (int64_t)counts[i]);
    for (size_t i = 0; i < sizeof fairness / sizeof *fairness; i++)
        store_bind_number(to, fairness[i]);
    store_bind_integer(to, (int64_t)m->n_deadlines);
    store_bind_integer(to, (int64_t)m->n_missed);
}

static int add_run(ty_store *store, int64_t study_id, const struct ty_replay *replay)
{
    struct store_binder to;
    int rc = store_prepare(store,
                           "INSERT INTO pool_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                           " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                           &to);
    if (rc == SQLITE_OK) {
        bind_key(&to, study_id, replay);
        store_bind_text(&to, replay->pool->policy);
        store_bind_integer(&to, count_gpus(replay->pool));
        bind_metrics(&to, &replay->result->metrics);
        rc = store_step(&to);
    }
    sqlite3_finalize(to.statement);
    return rc;
}

static int add_jobs(ty_store *store, int64_t study_id, const struct ty_replay *replay)
{
    const struct ty_trace *trace = replay->trace;
    struct store_binder to;
    int rc = store_prepare(store,
                           "INSERT INTO pool_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                           " ?)",
                           &to);
    for (uint64_t i = 0; rc == SQLITE_OK && i < replay->result->n_outcomes; i++) {
        const struct ty_pool_job *job = &trace->jobs[i];
        const struct ty_pool_outcome *outcome = &replay->result->outcomes[i];
        bind_key(&to, study_id, replay);
        store_bind_integer(&to, (int64_t)i);
        store_bind_text(&to, trace->names[i]);
        store_bind_text(&to, trace->queues[job->queue].name);
        store_bind_integer(&to, job->gpus);
        store_bind_number(&to, job->submit_s);
        store_bind_number(&to, job->duration_s);
        store_bind_number(&to, outcome->start_s);
        store_bind_number(&to, outcome->end_s);
        store_bind_number(&to, outcome->lost_gpu_s);
        store_bind_integer(&to, outcome->preemptions);
        store_bind_integer(&to, outcome->failures);
        store_bind_integer(&to, outcome->resizes);
        store_bind_text(&to, outcome->refused);
        rc = store_step(&to);
    }
    sqlite3_finalize(to.statement);
    return rc;
}

static int add_events(ty_store *store, int64_t study_id, const struct ty_replay *replay)
{
    struct store_binder to;
    int rc =
        store_prepare(store, "INSERT INTO pool_event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &to);
    for (uint64_t i = 0; rc == SQLITE_OK && i < replay->n_events; i++) {
        const struct ty_pool_event *event = &replay->events[i];
        bind_key(&to, study_id, replay);
        store_bind_integer(&to, (int64_t)i);
        store_bind_number(&to, event->time_s);
        store_bind_text(&to, ty_pool_event_name(event->kind));
        store_bind_integer(&to, (int64_t)event->subject);
        store_bind_integer(&to, event->gpus);
        store_bind_number(&to, event->held_gpus);
        store_bind_integer(&to, event->n_running);
        store_bind_integer(&to, event->n_waiting);
        rc = store_step(&to);
    }
    sqlite3_finalize(to.statement);
    return rc;
}

ty_status ty_store_add_replay(ty_store *store, int64_t study_id, const struct ty_replay *replay,
                              struct ty_error *error)
{
    ty_status status = ty_store_flush(store, error);
    if (status == TY_OK)
        status = store_exec(store, pool_tables, error);
    if (status != TY_OK)
        return status;
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = add_run(store, study_id, replay);
    if (rc == SQLITE_OK)
        rc = add_jobs(store, study_id, replay);
    if (rc == SQLITE_OK)
        rc = add_events(store, study_id, replay);
    return rc == SQLITE_OK ? TY_OK : store_rollback(store, rc, error);
}
