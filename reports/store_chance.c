/* SPDX-License-Identifier: MIT
 * How likely each plan of a sweep is better than the best one, which is known at the end alone. */
#include "include/trainyard_ratio.h"
#include "reports/store_study.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>

struct chance {
    int64_t id;
    double p_faster;
};

struct chances {
    ty_store *store;
    const struct ty_search *search;
    const struct ty_search_result *result;
    uint64_t n, capacity;
    struct chance *chance; /* [n]; the rows are read before any is changed */
};

/* The first of the list that a plan belongs to; NULL: its GPU count has no list. */
static const struct ty_score *first_of(const struct chances *chances, const struct ty_plan *plan)
{
    const struct ty_search_result *result = chances->result;
    const struct ty_goal *goal = chances->search->goal;
    const bool one = chances->search->overall || (goal && goal->n_objectives > 1);
    for (uint32_t i = 0; i < result->n_best; i++)
        if (one || result->best[i].plan.n_gpus == plan->n_gpus)
            return &result->best[i];
    return NULL;
}

static bool add(struct chances *chances, const struct ty_score *score, int64_t id)
{
    struct ty_ratio ratio = {.p_faster = (double)NAN};
    const struct ty_score *first = first_of(chances, &score->plan);
    if (first)
        ty_ratio_of_scores(chances->search, score, first, &ratio);
    if (chances->n == chances->capacity) {
        const uint64_t capacity = chances->capacity ? 2 * chances->capacity : 4096;
        struct chance *grown = realloc(chances->chance, capacity * sizeof *grown);
        if (!grown)
            return false;
        chances->chance = grown;
        chances->capacity = capacity;
    }
    chances->chance[chances->n++] = (struct chance){id, ratio.p_faster};
    return true;
}

static ty_status read_all(struct chances *chances, int64_t study_id, struct ty_error *error)
{
    ty_store *store = chances->store;
    struct store_rows *rows = NULL;
    char *sql = store_scores_sql(store, "feasible");
    ty_status status = sql ? store_ask(store, sql, study_id, &rows, error) : TY_ERR_NOMEM;
    sqlite3_free(sql);
    while (status == TY_OK && store_next(rows)) {
        struct ty_score score;
        status = store_read_score(store, rows, &score, error);
        if (status == TY_OK && !add(chances, &score, store_integer(rows, 0)))
            status = error_set(error, TY_ERR_NOMEM, store->path, "out of memory");
    }
    const ty_status done = store_done(rows, status == TY_OK ? error : NULL);
    return status == TY_OK ? done : status;
}

static ty_status write_all(const struct chances *chances, struct ty_error *error)
{
    ty_store *store = chances->store;
    struct store_binder to = {.rc = store_open_batch(store)};
    if (to.rc == SQLITE_OK)
        store_prepare(store, "UPDATE prediction SET p_faster = ? WHERE id = ?", &to);
    int rc = to.rc;
    for (uint64_t i = 0; rc == SQLITE_OK && i < chances->n; i++) {
        store_bind_number(&to, chances->chance[i].p_faster);
        store_bind_integer(&to, chances->chance[i].id);
        rc = store_step(&to);
    }
    const ty_status status = rc == SQLITE_OK ? TY_OK : store_rollback(store, rc, error);
    sqlite3_finalize(to.statement);
    return status;
}

ty_status ty_store_add_chances(ty_store *store, int64_t study_id, const struct ty_search *search,
                               const struct ty_search_result *result, struct ty_error *error)
{
    struct chances chances = {.store = store, .search = search, .result = result};
    ty_status status = read_all(&chances, study_id, error);
    if (status == TY_OK)
        status = write_all(&chances, error);
    free(chances.chance);
    return status;
}
