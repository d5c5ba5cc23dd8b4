/* SPDX-License-Identifier: MIT
 *
 * Writing predictions: one row each, in transactions of STORE_BATCH_ROWS, through prepared
 * statements. A row is bound in the order of its columns, which store_schema.c lays down; of a
 * prediction only what differs from the row before, which is a third of the work.
 */
#include "reports/store_db.h"
#include "models/fields.h"

#include <math.h>
#include <string.h>

/* What a score and a full prediction have in common: one row of `prediction`. */
struct row {
    int64_t study_id, plan_id; /* plan_id < 0: none */
    bool detailed, feasible;
    const char *fit;
    const struct ty_plan *plan;
    double step_time_s, bound_s, tokens_per_s, tokens_per_s_per_gpu, mfu;
    double model_flop_per_s_per_gpu, hardware_flop_per_s_per_gpu;
    const char *flop_convention;
    double peak_bytes, budget_bytes, headroom_bytes;
    const char *largest_component;
    double imbalance_limit, bubble_ratio, interval_80[2];
    const struct ty_outlay *outlay;
    double useful_ratio, p_faster;
    const double *breakdown_s;
};

/* Moves on to the next parameter. returns whether it holds the value already. */
static bool holds(struct store_binder *to, int type, uint64_t bits)
{
    struct store_kept *kept =
        to->kept && to->column < STORE_MAX_KEPT ? &to->kept[to->column] : NULL;
    to->column++;
    if (!kept)
        return false;
    if ((int)kept->type == type && kept->bits == bits)
        return true;
    *kept = (struct store_kept){type, bits};
    return false;
}

/* A parameter that could not be bound holds nothing. */
static void bound(struct store_binder *to, int rc)
{
    to->rc |= rc;
    if (rc != SQLITE_OK && to->kept && to->column <= STORE_MAX_KEPT)
        to->kept[to->column - 1].type = STORE_KEPT_NOTHING;
}

void store_bind_integer(struct store_binder *to, int64_t value)
{
    if (!holds(to, STORE_KEPT_INTEGER, (uint64_t)value))
        bound(to, sqlite3_bind_int64(to->statement, to->column, value));
}

void store_bind_number(struct store_binder *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!holds(to, STORE_KEPT_NUMBER, bits))
        bound(to, sqlite3_bind_double(to->statement, to->column, value));
}

void store_bind_text(struct store_binder *to, const char *text)
{
    if (to->kept && to->column < STORE_MAX_KEPT)
        to->kept[to->column].type = STORE_KEPT_NOTHING;
    to->column++;
    bound(to, sqlite3_bind_text(to->statement, to->column, text, -1, SQLITE_STATIC));
}

void store_bind_name(struct store_binder *to, const char *name)
{
    if (!holds(to, STORE_KEPT_NAME, (uintptr_t)name))
        bound(to, sqlite3_bind_text(to->statement, to->column, name, -1, SQLITE_STATIC));
}

int store_prepare(ty_store *store, const char *sql, struct store_binder *to)
{
    *to = (struct store_binder){.rc = SQLITE_OK};
    return to->rc = sqlite3_prepare_v2(store->db, sql, -1, &to->statement, NULL);
}

/* Kept, because neighbouring rows rarely differ. */
static const char *spell_flags(struct store_column *column, uint32_t bits)
{
    if (!column->spelled[0] || bits != column->spelled_bits)
        fields_flags_text(column->field, bits, column->spelled, sizeof column->spelled);
    column->spelled_bits = bits;
    return column->spelled;
}

static void bind_field(struct store_binder *to, struct store_column *column,
                       const struct ty_plan *plan)
{
    const char *place = (const char *)plan + column->field->offset;
    switch (column->field->type) {
    case TY_FIELD_DOUBLE:
        store_bind_number(to, *(const double *)place);
        break;
    case TY_FIELD_U32:
        store_bind_integer(to, *(const uint32_t *)place);
        break;
    case TY_FIELD_U64:
        store_bind_integer(to, (int64_t) * (const uint64_t *)place);
        break;
    case TY_FIELD_BOOL:
        store_bind_integer(to, *(const bool *)place);
        break;
    case TY_FIELD_ENUM:
        store_bind_name(to, fields_enum_name(column->field, *(const int *)place));
        break;
    case TY_FIELD_FLAGS:
        store_bind_text(to, spell_flags(column, *(const uint32_t *)place));
        break;
    case TY_FIELD_TEXT:
        store_bind_text(to, place);
        break;
    }
}

/* The prepared insert of a table, made on first use. */
static int insert_into(ty_store *store, enum store_insert which, struct store_binder *to)
{
    *to = (struct store_binder){.rc = SQLITE_OK};
    if (!store->insert[which]) {
        char *sql = store_insert_sql(store, which);
        if (!sql)
            return to->rc = SQLITE_NOMEM;
        to->rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->insert[which], NULL);
        sqlite3_free(sql);
        if (which == STORE_PREDICTION)
            memset(store->kept, 0, sizeof store->kept);
    }
    to->kept = which == STORE_PREDICTION ? store->kept : NULL;
    to->statement = store->insert[which];
    return to->rc;
}

int store_step(struct store_binder *from)
{
    if (from->rc != SQLITE_OK)
        return from->rc;
    sqlite3_step(from->statement);
    from->column = 0;
    return sqlite3_reset(from->statement); /* repeats the error of the step */
}

int store_open_batch(ty_store *store)
{
    if (store->in_batch)
        return SQLITE_OK;
    int rc = sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    store->in_batch = rc == SQLITE_OK;
    return rc;
}

static ty_status close_row(ty_store *store, struct ty_error *error)
{
    return ++store->n_pending < STORE_BATCH_ROWS ? TY_OK : ty_store_flush(store, error);
}

static int add_row(ty_store *store, const struct row *row)
{
    struct store_binder to;
    if (insert_into(store, STORE_PREDICTION, &to) != SQLITE_OK)
        return to.rc;
    store_bind_integer(&to, row->study_id);
    if (row->plan_id < 0)
        store_bind_name(&to, NULL);
    else
        store_bind_integer(&to, row->plan_id);
    store_bind_integer(&to, row->detailed);
    store_bind_integer(&to, row->feasible);
    store_bind_name(&to, row->fit);
    for (uint32_t i = 0; i < store->n_columns; i++)
        bind_field(&to, &store->columns[i], row->plan);
    store_bind_number(&to, row->step_time_s);
    store_bind_number(&to, row->bound_s);
    store_bind_number(&to, row->tokens_per_s);
    store_bind_number(&to, row->tokens_per_s_per_gpu);
    store_bind_number(&to, row->mfu);
    store_bind_number(&to, row->model_flop_per_s_per_gpu);
    store_bind_number(&to, row->hardware_flop_per_s_per_gpu);
    store_bind_name(&to, row->flop_convention);
    store_bind_number(&to, row->peak_bytes);
    store_bind_number(&to, row->budget_bytes);
    store_bind_number(&to, row->headroom_bytes);
    store_bind_name(&to, row->largest_component);
    store_bind_number(&to, row->imbalance_limit);
    store_bind_number(&to, row->bubble_ratio);
    store_bind_number(&to, row->interval_80[0]);
    store_bind_number(&to, row->interval_80[1]);
    if (row->outlay->gpus_paid)
        store_bind_integer(&to, row->outlay->gpus_paid);
    else
        store_bind_name(&to, NULL);
    store_bind_number(&to, row->outlay->power_w);
    store_bind_number(&to, row->outlay->energy_j_per_token);
    store_bind_number(&to, row->outlay->money_per_token);
    store_bind_number(&to, row->useful_ratio);
    store_bind_number(&to, row->outlay->busy_s);
    store_bind_number(&to, row->p_faster);
    for (int part = 0; part < TY_N_PARTS; part++)
        store_bind_number(&to, row->breakdown_s[part]);
    return store_step(&to);
}

ty_status ty_store_add_score(ty_store *store, int64_t study_id, const struct ty_score *score,
                             double p_faster, struct ty_error *error)
{
    struct row row = {.study_id = study_id,
                      .plan_id = (int64_t)score->plan_id,
                      .feasible = isfinite(score->step_time_s),
                      .plan = &score->plan,
                      .step_time_s = score->step_time_s,
                      .bound_s = NAN,
                      .tokens_per_s = score->tokens_per_s,
                      .tokens_per_s_per_gpu = score->tokens_per_s_per_gpu,
                      .mfu = score->mfu,
                      .model_flop_per_s_per_gpu = NAN,
                      .hardware_flop_per_s_per_gpu = NAN,
                      .peak_bytes = score->peak_bytes,
                      .budget_bytes = score->peak_bytes + score->headroom_bytes,
                      .headroom_bytes = score->headroom_bytes,
                      .imbalance_limit = NAN,
                      .bubble_ratio = NAN,
                      .interval_80 = {NAN, NAN},
                      .outlay = &score->outlay,
                      .useful_ratio = score->useful_ratio,
                      .p_faster = p_faster,
                      .breakdown_s = score->breakdown_s};
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = add_row(store, &row);
    return rc == SQLITE_OK ? close_row(store, error) : store_rollback(store, rc, error);
}

static int add_memory(ty_store *store, int64_t id, const struct ty_prediction *prediction)
{
    int rc = SQLITE_OK;
    for (uint32_t stage = 0; stage < prediction->n_stages; stage++) {
        for (int part = 0; part < TY_N_MEM && rc == SQLITE_OK; part++) {
            struct store_binder to;
            if (insert_into(store, STORE_MEMORY, &to) != SQLITE_OK)
                return to.rc;
            store_bind_integer(&to, id);
            store_bind_integer(&to, stage);
            store_bind_text(&to, ty_mem_name((enum ty_mem)part));
            store_bind_number(&to, prediction->stages[stage].bytes[part]);
            rc = store_step(&to);
        }
    }
    return rc;
}

static int add_groups(ty_store *store, int64_t id, const struct ty_prediction *prediction)
{
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < prediction->n_groups && rc == SQLITE_OK; i++) {
        const struct ty_group *group = &prediction->groups[i];
        struct store_binder to;
        if (insert_into(store, STORE_GROUP, &to) != SQLITE_OK)
            return to.rc;
        store_bind_integer(&to, id);
        store_bind_integer(&to, i);
        store_bind_text(&to, group->name);
        store_bind_integer(&to, group->size);
        store_bind_integer(&to, group->stride);
        store_bind_integer(&to, group->ranks_per_domain);
        store_bind_integer(&to, group->n_domains);
        store_bind_text(&to, group->link);
        rc = store_step(&to);
    }
    return rc;
}

static int add_notes(ty_store *store, int64_t id, const struct ty_prediction *prediction)
{
    static const char *const kinds[] = {"defaulted", "extrapolated", "uncalibrated", "unused"};
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < prediction->n_notes && rc == SQLITE_OK; i++) {
        const struct ty_note *note = &prediction->notes[i];
        struct store_binder to;
        if (insert_into(store, STORE_NOTE, &to) != SQLITE_OK)
            return to.rc;
        store_bind_integer(&to, id);
        store_bind_integer(&to, i);
        store_bind_text(&to, kinds[note->kind]);
        store_bind_text(&to, note->field);
        store_bind_text(&to, note->value);
        store_bind_text(&to, note->reason);
        store_bind_number(&to, note->effect_pct);
        rc = store_step(&to);
    }
    return rc;
}

static int add_violations(ty_store *store, int64_t id, const struct ty_prediction *prediction)
{
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < prediction->n_violations && rc == SQLITE_OK; i++) {
        const struct ty_violation *violation = &prediction->violations[i];
        struct store_binder to;
        if (insert_into(store, STORE_VIOLATION, &to) != SQLITE_OK)
            return to.rc;
        store_bind_integer(&to, id);
        store_bind_integer(&to, i);
        store_bind_text(&to, violation->rule);
        store_bind_text(&to, violation->text);
        store_bind_text(&to, violation->legal);
        rc = store_step(&to);
    }
    return rc;
}

ty_status ty_store_add_prediction(ty_store *store, int64_t study_id,
                                  const struct ty_prediction *prediction, double p_faster,
                                  struct ty_error *error)
{
    const struct ty_prediction *p = prediction;
    bool judged = p->n_stages > 0; /* memory was computed */
    struct row row = {.study_id = study_id,
                      .plan_id = -1,
                      .detailed = true,
                      .feasible = p->feasible,
                      .fit = judged ? ty_fit_name(p->fit) : NULL,
                      .plan = &p->plan,
                      .step_time_s = p->step_time_s,
                      .bound_s = p->bound_s,
                      .tokens_per_s = p->tokens_per_s,
                      .tokens_per_s_per_gpu = p->tokens_per_s_per_gpu,
                      .mfu = p->mfu,
                      .model_flop_per_s_per_gpu = p->model_flop_per_s_per_gpu,
                      .hardware_flop_per_s_per_gpu = p->hardware_flop_per_s_per_gpu,
                      .flop_convention = ty_flops_name(p->flops),
                      .peak_bytes = judged ? p->peak_bytes : (double)NAN,
                      .budget_bytes = judged ? p->budget_bytes : (double)NAN,
                      .headroom_bytes = judged ? p->headroom_bytes : (double)NAN,
                      .largest_component = judged ? ty_mem_name(p->largest_component) : NULL,
                      .imbalance_limit = p->imbalance_limit,
                      .bubble_ratio = p->bubble_ratio,
                      .interval_80 = {p->interval_80[0], p->interval_80[1]},
                      .outlay = &p->outlay,
                      .useful_ratio = NAN,
                      .p_faster = p_faster,
                      .breakdown_s = p->breakdown_s};
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = add_row(store, &row);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (rc == SQLITE_OK)
        rc = add_memory(store, id, p);
    if (rc == SQLITE_OK)
        rc = add_groups(store, id, p);
    if (rc == SQLITE_OK)
        rc = add_notes(store, id, p);
    if (rc == SQLITE_OK)
        rc = add_violations(store, id, p);
    return rc == SQLITE_OK ? close_row(store, error) : store_rollback(store, rc, error);
}

static int add_rejection(sqlite3_stmt *statement, int64_t study_id, int reason, uint64_t count)
{
    struct store_binder to = {.statement = statement, .rc = SQLITE_OK};
    store_bind_integer(&to, study_id);
    store_bind_text(&to, ty_reject_name((enum ty_reject)reason));
    store_bind_integer(&to, (int64_t)count);
    return store_step(&to);
}

ty_status ty_store_add_rejections(ty_store *store, int64_t study_id,
                                  const uint64_t rejected[TY_N_REJECTS], struct ty_error *error)
{
    static const char sql[] = "INSERT INTO rejection VALUES (?, ?, ?)"
                              " ON CONFLICT DO UPDATE SET count = count + excluded.count";
    sqlite3_stmt *statement = NULL;
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    for (int reason = 0; reason < TY_N_REJECTS && rc == SQLITE_OK; reason++)
        if (rejected[reason])
            rc = add_rejection(statement, study_id, reason, rejected[reason]);
    ty_status status = rc == SQLITE_OK ? TY_OK : store_rollback(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}

static int add_axis_value(sqlite3_stmt *statement, int64_t study_id, uint32_t axis,
                          const struct ty_axis *of, uint32_t place)
{
    struct store_binder to = {.statement = statement, .rc = SQLITE_OK};
    store_bind_integer(&to, study_id);
    store_bind_integer(&to, axis);
    store_bind_integer(&to, place);
    store_bind_text(&to, of->path);
    store_bind_text(&to, of->text[place]);
    store_bind_number(&to, of->number[place]);
    store_bind_integer(&to, of->n);
    store_bind_integer(&to, (int64_t)of->stride);
    store_bind_number(&to, of->base);
    store_bind_number(&to, of->alone[place]);
    return store_step(&to);
}

ty_status ty_store_add_axes(ty_store *store, int64_t study_id, const struct ty_axis *axes,
                            uint32_t n_axes, struct ty_error *error)
{
    sqlite3_stmt *statement = NULL;
    int rc = store_open_batch(store);
    if (rc == SQLITE_OK)
        /* Replaced: a study killed between its axes and its mark of completeness has them already.
         */
        rc = sqlite3_prepare_v2(store->db,
                                "INSERT OR REPLACE INTO axis VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                -1, &statement, NULL);
    for (uint32_t axis = 0; axis < n_axes; axis++)
        for (uint32_t place = 0; place < axes[axis].n && rc == SQLITE_OK; place++)
            rc = add_axis_value(statement, study_id, axis, &axes[axis], place);
    const ty_status status = rc == SQLITE_OK ? TY_OK : store_rollback(store, rc, error);
    sqlite3_finalize(statement);
    return status;
}
