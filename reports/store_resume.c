/* SPDX-License-Identifier: MIT
 * Going on with a study: which one of the file it is, and what it holds already. */
#include "reports/store_study.h"
#include "models/spec/fields_read.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which study -------------------------------------------------------------------------- */

/* What makes two studies one: key, value. */
static const char identity[] =
    "SELECT 'version of trainyard', version FROM version"
    "  WHERE study_id = ?1 AND component = 'trainyard'"
    " UNION ALL SELECT kind, name || ' ' || hash FROM input WHERE study_id = ?1"
    " UNION ALL SELECT 'arguments', arguments FROM study WHERE id = ?1 ORDER BY 1";

/* The first line in which two texts differ, of both. */
static void tell_line(const char *left, const char *right, char *out, size_t bytes)
{
    size_t same = 0, start = 0;
    for (; left[same] && left[same] == right[same]; same++)
        if (left[same] == '\n')
            start = same + 1;
    const int n_left = (int)strcspn(left + start, "\n"),
              n_right = (int)strcspn(right + start, "\n");
    text_format(out, bytes, "\"%.*s\", not \"%.*s\"", n_left, left + start, n_right, right + start);
}

ty_status store_same_study(const struct store_part *left, const struct store_part *right,
                           char *difference, size_t bytes, struct ty_error *error)
{
    struct store_rows *a = NULL, *b = NULL;
    ty_status status = store_ask(left->store, identity, left->study_id, &a, error);
    if (status == TY_OK)
        status = store_ask(right->store, identity, right->study_id, &b, error);
    difference[0] = '\0';
    while (status == TY_OK && !*difference) {
        const bool more = store_next(a), other = store_next(b);
        if (!more && !other)
            break;
        char line[320];
        const char *key = more ? store_text(a, 0) : store_text(b, 0);
        if (more != other || strcmp(key, store_text(b, 0)) != 0) {
            text_format(difference, bytes, "%s: only one of them has it", key);
        } else if (strcmp(store_text(a, 1), store_text(b, 1)) != 0) {
            tell_line(store_text(a, 1), store_text(b, 1), line, sizeof line);
            text_format(difference, bytes, "%s: %s", key, line);
        }
    }
    const ty_status first = store_done(a, status == TY_OK ? error : NULL);
    const ty_status second = store_done(b, status == TY_OK ? error : NULL);
    return status != TY_OK ? status : first != TY_OK ? first : second;
}

/* The study like `fresh`, which was just added: in *study_id, 0 when there is none. */
static ty_status find_like(ty_store *store, int64_t fresh, int64_t *study_id, char *difference,
                           size_t bytes, struct ty_error *error)
{
    const struct store_part asked = {store, fresh};
    *study_id = 0;
    difference[0] = '\0';
    for (int64_t id = fresh - 1; id > 0; id--) {
        const struct store_part part = {store, id};
        char differs[400];
        ty_status status = store_same_study(&part, &asked, differs, sizeof differs, error);
        if (status != TY_OK)
            return status;
        if (!*differs) {
            *study_id = id;
            return TY_OK;
        }
        if (id == fresh - 1)
            text_format(difference, bytes, "%s", differs);
    }
    return TY_OK;
}

/* What the end of a study writes. */
static ty_status remove_end(ty_store *store, int64_t study_id, struct ty_error *error)
{
    char sql[320];
    text_format(sql, sizeof sql,
                "DELETE FROM rejection WHERE study_id = %lld; DELETE FROM axis WHERE study_id = "
                "%lld; DELETE FROM prediction WHERE study_id = %lld AND detailed",
                (long long)study_id, (long long)study_id, (long long)study_id);
    return store_exec(store, sql, error);
}

ty_status ty_store_resume(ty_store *store, const struct ty_study *study, int64_t *study_id,
                          struct ty_error *error)
{
    int64_t fresh = 0, found = 0;
    char difference[400];
    ty_status status = ty_store_flush(store, error);
    if (status == TY_OK)
        status = store_exec(store, "BEGIN IMMEDIATE", error);
    if (status != TY_OK)
        return status;
    status = store_add_study(store, study, &fresh, error);
    if (status == TY_OK)
        status = find_like(store, fresh, &found, difference, sizeof difference, error);
    if (status == TY_OK && !found && fresh > 1)
        status = error_set(error, TY_ERR_INPUT, store->path,
                           "holds no study of these inputs to resume; its last one differs in the "
                           "%s",
                           difference);
    if (status != TY_OK || found) /* it was added to be compared */
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    else
        status = store_exec(store, "COMMIT", error);
    if (status == TY_OK && found)
        status = remove_end(store, found, error);
    if (status == TY_OK)
        *study_id = found ? found : fresh;
    return status;
}

/* ---- what it holds ------------------------------------------------------------------------ */

static void read_known(struct store_rows *rows, struct ty_known *known)
{
    known->plan_id = (uint64_t)store_integer(rows, 0);
    known->step_time_s = store_number(rows, 1);
    known->busy_s = store_number(rows, 2);
    for (int part = 0; part < TY_N_PARTS; part++)
        known->breakdown_s[part] = store_number(rows, 3 + part);
}

static char *known_sql(void)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT plan_id, step_time_s, busy_s");
    for (int part = 0; part < TY_N_PARTS; part++)
        sqlite3_str_appendf(sql, ", \"%w_s\"", ty_part_name((enum ty_part)part));
    sqlite3_str_appendall(sql, " FROM prediction WHERE study_id = ?1 AND NOT detailed"
                               " AND plan_id IS NOT NULL ORDER BY plan_id");
    return sqlite3_str_finish(sql);
}

ty_status ty_store_known(ty_store *store, int64_t study_id, struct ty_share *share,
                         struct ty_error *error)
{
    double count = 0.0;
    struct store_rows *rows = NULL;
    ty_status status = store_ask_number(
        store, "SELECT count(*) FROM prediction WHERE study_id = ?1 AND plan_id IS NOT NULL",
        study_id, 0.0, &count, error);
    if (status != TY_OK)
        return status;
    const uint64_t capacity = (uint64_t)count;
    struct ty_known *known = calloc(capacity + 1, sizeof *known);
    char *sql = known_sql();
    if (!known || !sql)
        status = error_set(error, TY_ERR_NOMEM, store->path, "out of memory");
    else
        status = store_ask(store, sql, study_id, &rows, error);
    uint64_t n = 0;
    while (status == TY_OK && n < capacity && store_next(rows))
        read_known(rows, &known[n++]);
    if (status == TY_OK)
        status = store_done(rows, error);
    sqlite3_free(sql);
    if (status != TY_OK) {
        free(known);
        return status;
    }
    share->known = known;
    share->n_known = n;
    return TY_OK;
}

void ty_store_known_free(struct ty_share *share)
{
    free((void *)(uintptr_t)share->known);
    share->known = NULL;
    share->n_known = 0;
}

/* ---- one plan ----------------------------------------------------------------------------- */

static char *plan_sql(const ty_store *store, uint32_t rank)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT coalesce((SELECT json_extract(json, '$.gpus_per_node') FROM"
                               "  input WHERE study_id = ?1 AND kind = 'cluster'), 8)");
    for (uint32_t i = 0; i < store->n_columns; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", store->columns[i].name);
    sqlite3_str_appendf(sql,
                        " FROM prediction WHERE study_id = ?1 AND feasible ORDER BY"
                        " tokens_per_s_per_gpu DESC, detailed, plan_id LIMIT 1 OFFSET %u",
                        rank - 1);
    return sqlite3_str_finish(sql);
}

ty_status ty_store_plan(ty_store *store, uint32_t rank, struct ty_plan *plan,
                        uint32_t *gpus_per_node, struct ty_error *error)
{
    int64_t study_id = 0;
    struct store_rows *rows = NULL;
    ty_status status =
        store_integer_of(store, "SELECT coalesce(max(id), 0) FROM study", &study_id, error);
    char *sql = plan_sql(store, rank ? rank : 1);
    if (status == TY_OK)
        status = sql ? store_ask(store, sql, study_id, &rows, error) : TY_ERR_NOMEM;
    sqlite3_free(sql);
    if (status != TY_OK)
        return status;
    if (!store_next(rows)) {
        status = error_set(error, TY_ERR_INPUT, store->path, "has no feasible plan #%u", rank);
    } else {
        *gpus_per_node = (uint32_t)store_integer(rows, 0);
        status = store_read_plan(store, rows, 1, plan, error);
    }
    const ty_status done = store_done(rows, status == TY_OK ? error : NULL);
    return status != TY_OK ? status : done;
}

/* ---- one score ---------------------------------------------------------------------------- */

static ty_status read_field(struct store_rows *rows, int column, const struct ty_field *field,
                            struct ty_plan *plan, struct ty_error *error)
{
    char *place = (char *)plan + field->offset;
    const char *text;
    uint32_t number;
    switch (field->type) {
    case TY_FIELD_DOUBLE: {
        const double value = store_number(rows, column);
        memcpy(place, &value, sizeof value);
        return TY_OK;
    }
    case TY_FIELD_U32:
        number = (uint32_t)store_integer(rows, column);
        memcpy(place, &number, sizeof number);
        return TY_OK;
    default:
        text = store_text(rows, column);
        if (!*text || strcmp(text, "auto") == 0)
            return TY_OK;
        return field_from_text(field, text, plan, error);
    }
}

ty_status store_read_plan(ty_store *store, struct store_rows *rows, int column,
                          struct ty_plan *plan, struct ty_error *error)
{
    ty_status status = TY_OK;
    ty_init(TY_KIND_PLAN, plan);
    for (uint32_t i = 0; i < store->n_columns && status == TY_OK; i++)
        status = read_field(rows, column + (int)i, store->columns[i].field, plan, error);
    return status;
}

ty_status store_read_score(ty_store *store, struct store_rows *rows, struct ty_score *out,
                           struct ty_error *error)
{
    enum { HEAD = 16 };
    double *const numbers[HEAD] = {&out->step_time_s,
                                   &out->tokens_per_s,
                                   &out->tokens_per_s_per_gpu,
                                   &out->mfu,
                                   &out->peak_bytes,
                                   &out->headroom_bytes,
                                   &out->useful_ratio,
                                   &out->outlay.busy_s,
                                   &out->outlay.power_w,
                                   &out->outlay.energy_j_per_token,
                                   &out->outlay.money_per_token};
    const double unknown = (double)NAN;
    *out = (struct ty_score){.plan_id = (uint64_t)store_integer(rows, 1)};
    out->outlay = (struct ty_outlay){.money_per_gpu_hour = unknown,
                                     .co2_kg = unknown,
                                     .gpus_paid = (uint32_t)store_integer(rows, 2)};
    int column = 3;
    for (int i = 0; numbers[i]; i++)
        *numbers[i] = store_number(rows, column++);
    for (int part = 0; part < TY_N_PARTS; part++)
        out->breakdown_s[part] = store_number(rows, column++);
    const ty_status status = store_read_plan(store, rows, column, &out->plan, error);
    const double tokens = (double)out->plan.gbs * out->plan.seq;
    out->outlay.energy_j = tokens * out->outlay.energy_j_per_token;
    out->outlay.money = tokens * out->outlay.money_per_token;
    return status;
}

char *store_scores_sql(const ty_store *store, const char *which)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(
        sql, "SELECT id, plan_id, gpus_paid, step_time_s, tokens_per_s, tokens_per_s_per_gpu, mfu,"
             " peak_bytes, headroom_bytes, useful_ratio, busy_s, power_w, energy_j_per_token,"
             " money_per_token");
    for (int part = 0; part < TY_N_PARTS; part++)
        sqlite3_str_appendf(sql, ", \"%w_s\"", ty_part_name((enum ty_part)part));
    for (uint32_t i = 0; i < store->n_columns; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", store->columns[i].name);
    sqlite3_str_appendf(sql, " FROM prediction WHERE study_id = ?1 AND NOT detailed AND %s", which);
    return sqlite3_str_finish(sql);
}

ty_status ty_store_score(ty_store *store, int64_t study_id, uint64_t plan_id, struct ty_score *out,
                         bool *found, struct ty_error *error)
{
    struct store_rows *rows = NULL;
    char which[48];
    text_format(which, sizeof which, "plan_id = %lld", (long long)plan_id);
    char *sql = store_scores_sql(store, which);
    ty_status status = sql ? store_ask(store, sql, study_id, &rows, error) : TY_ERR_NOMEM;
    sqlite3_free(sql);
    if (status != TY_OK)
        return status;
    struct ty_score score;
    const bool there = store_next(rows);
    if (there)
        status = store_read_score(store, rows, &score, error);
    const ty_status done = store_done(rows, status == TY_OK ? error : NULL);
    if (status != TY_OK || done != TY_OK)
        return status != TY_OK ? status : done;
    *found = there;
    if (there)
        *out = score;
    return TY_OK;
}
