/* SPDX-License-Identifier: MIT
 *
 * The tables and views of a study (docs/database.md). The plan's columns are generated from the
 * field table of the plan, so a new plan switch becomes a column by itself. Only names from our
 * own tables are put into SQL text; everything a user names is bound as a parameter.
 */
#include "reports/store_db.h"
#include "sim/error.h"

#include <stddef.h>
#include <string.h>

/* Derived sizes of a plan: part of its columns whether or not a user may set them. */
static const struct ty_field derived[] = {
    {.path = "dp", .type = TY_FIELD_U32, .offset = offsetof(struct ty_plan, dp)},
    {.path = "edp", .type = TY_FIELD_U32, .offset = offsetof(struct ty_plan, edp)},
    {.path = "n_micro", .type = TY_FIELD_U32, .offset = offsetof(struct ty_plan, n_micro)},
};

/* Columns of `prediction` around those of the plan, in the order the writer binds them. */
static const char before_plan[] = "id INTEGER PRIMARY KEY,"
                                  "study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE,"
                                  "plan_id INTEGER,"
                                  "detailed INTEGER NOT NULL,"
                                  "feasible INTEGER NOT NULL,"
                                  "fit TEXT";
static const char *const after_plan[] = {
    "step_time_s REAL",
    "bound_s REAL",
    "tokens_per_s REAL",
    "tokens_per_s_per_gpu REAL",
    "mfu REAL",
    "model_flop_per_s_per_gpu REAL",
    "hardware_flop_per_s_per_gpu REAL",
    "flop_convention TEXT",
    "peak_bytes REAL",
    "budget_bytes REAL",
    "headroom_bytes REAL",
    "largest_component TEXT",
    "imbalance_limit REAL",
    "bubble_ratio REAL",
    "interval_80_low_s REAL",
    "interval_80_high_s REAL",
    "gpus_paid INTEGER",
    "power_w REAL",
    "energy_j_per_token REAL",
    "money_per_token REAL",
    "useful_ratio REAL",
    "busy_s REAL",
    "p_faster REAL",
};

static const char tables[] =
    "CREATE TABLE study("
    "  id INTEGER PRIMARY KEY, command TEXT NOT NULL, created_utc TEXT NOT NULL,"
    "  arguments TEXT NOT NULL);"
    "CREATE TABLE input("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, kind TEXT NOT NULL,"
    "  name TEXT NOT NULL, hash TEXT NOT NULL, json TEXT NOT NULL,"
    "  PRIMARY KEY(study_id, kind)) WITHOUT ROWID;"
    "CREATE TABLE version("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, component TEXT NOT NULL,"
    "  version TEXT NOT NULL, PRIMARY KEY(study_id, component)) WITHOUT ROWID;"
    "CREATE TABLE memory("
    "  prediction_id INTEGER NOT NULL REFERENCES prediction ON DELETE CASCADE,"
    "  stage INTEGER NOT NULL, component TEXT NOT NULL, bytes REAL,"
    "  PRIMARY KEY(prediction_id, stage, component)) WITHOUT ROWID;"
    "CREATE TABLE group_link("
    "  prediction_id INTEGER NOT NULL REFERENCES prediction ON DELETE CASCADE,"
    "  place INTEGER NOT NULL, name TEXT, size INTEGER, stride INTEGER,"
    "  ranks_per_domain INTEGER, n_domains INTEGER, link TEXT,"
    "  PRIMARY KEY(prediction_id, place)) WITHOUT ROWID;"
    "CREATE TABLE note("
    "  prediction_id INTEGER NOT NULL REFERENCES prediction ON DELETE CASCADE,"
    "  place INTEGER NOT NULL, kind TEXT NOT NULL, field TEXT, value TEXT, reason TEXT,"
    "  effect_pct REAL, PRIMARY KEY(prediction_id, place)) WITHOUT ROWID;"
    "CREATE TABLE violation("
    "  prediction_id INTEGER NOT NULL REFERENCES prediction ON DELETE CASCADE,"
    "  place INTEGER NOT NULL, rule TEXT, text TEXT, legal TEXT,"
    "  PRIMARY KEY(prediction_id, place)) WITHOUT ROWID;"
    "CREATE TABLE rejection("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, reason TEXT NOT NULL,"
    "  count INTEGER NOT NULL, PRIMARY KEY(study_id, reason)) WITHOUT ROWID;"
    "CREATE TABLE axis("
    "  study_id INTEGER NOT NULL REFERENCES study ON DELETE CASCADE, axis INTEGER NOT NULL,"
    "  place INTEGER NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, number REAL,"
    "  n INTEGER NOT NULL, stride INTEGER NOT NULL, base_tokens_per_s_per_gpu REAL,"
    "  alone_tokens_per_s_per_gpu REAL,"
    "  PRIMARY KEY(study_id, axis, place)) WITHOUT ROWID;";

/* `best`: the best plan of each (tp, pp, cp, ep) by tokens/s/GPU and its rank among them at its GPU
 * count; a detailed row wins over the score of the same plan. `pareto`: plans that no plan on as
 * many or fewer GPUs beats in tokens/s, one a GPU count at most; SQLite takes bare columns from
 * the row that holds the max(). source: sqlite.org/lang_select.html, section 2.5
 * `point`: the values of the axes at each point of a what-if, whose number is the plan_id. */
static const char views[] =
    "CREATE VIEW best AS SELECT rank, p.* FROM (SELECT pick, row_number() OVER"
    "    (PARTITION BY study_id, gpus ORDER BY tokens_per_s_per_gpu DESC, plan_id, pick) AS rank"
    "  FROM (SELECT id AS pick, study_id, gpus, plan_id, tokens_per_s_per_gpu, row_number() OVER"
    "      (PARTITION BY study_id, gpus, tp, pp, cp, ep"
    "       ORDER BY tokens_per_s_per_gpu DESC, detailed DESC, plan_id, id) AS place"
    "    FROM prediction WHERE feasible) WHERE place = 1)"
    "  JOIN prediction AS p ON p.id = pick;" /* sorts ids, not whole rows */
    "CREATE VIEW pareto AS SELECT study_id, prediction_id, gpus, tokens_per_s FROM"
    "  (SELECT *, max(tokens_per_s) OVER (PARTITION BY study_id ORDER BY gpus"
    "     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM"
    "     (SELECT study_id, id AS prediction_id, gpus, max(tokens_per_s) AS tokens_per_s"
    "        FROM prediction WHERE feasible GROUP BY study_id, gpus))"
    "  WHERE before IS NULL OR tokens_per_s > before;"
    "CREATE VIEW point AS SELECT p.study_id, p.id AS prediction_id, p.plan_id AS point, a.axis,"
    "  a.path, a.text, a.number FROM axis AS a JOIN prediction AS p"
    "  ON p.study_id = a.study_id AND p.plan_id / a.stride % a.n = a.place;"
    "CREATE VIEW rejected AS SELECT study_id, reason, count,"
    "  1.0 * count / sum(count) OVER (PARTITION BY study_id) AS share"
    "  FROM rejection ORDER BY study_id, count DESC;";

static const char *column_type(const struct ty_field *field)
{
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        return "REAL";
    case TY_FIELD_U32:
    case TY_FIELD_U64:
    case TY_FIELD_BOOL:
        return "INTEGER";
    default:
        return "TEXT";
    }
}

static bool add_column(ty_store *store, const struct ty_field *field)
{
    for (uint32_t i = 0; i < store->n_columns; i++)
        if (store->columns[i].field->offset == field->offset)
            return true;
    if (store->n_columns == STORE_MAX_COLUMNS)
        return false;
    struct store_column *column = &store->columns[store->n_columns++];
    column->field = field;
    text_format(column->name, sizeof column->name, "%s", field->path);
    for (char *c = column->name; *c; c++)
        if (*c == '.')
            *c = '_';
    return true;
}

ty_status store_columns(ty_store *store, struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    bool fits = true;
    for (size_t i = 0; i < n; i++)
        fits = fits && add_column(store, &fields[i]);
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        fits = fits && add_column(store, &derived[i]);
    if (!fits)
        return error_set(error, TY_ERR_INTERNAL, store->path, "a plan has over %d fields",
                         STORE_MAX_COLUMNS);
    return TY_OK;
}

static void append_prediction(const ty_store *store, sqlite3_str *sql)
{
    sqlite3_str_appendf(sql, "CREATE TABLE prediction(%s", before_plan);
    for (uint32_t i = 0; i < store->n_columns; i++)
        sqlite3_str_appendf(sql, ", \"%w\" %s", store->columns[i].name,
                            column_type(store->columns[i].field));
    for (size_t i = 0; i < sizeof after_plan / sizeof *after_plan; i++)
        sqlite3_str_appendf(sql, ", %s", after_plan[i]);
    for (int part = 0; part < TY_N_PARTS; part++)
        sqlite3_str_appendf(sql, ", \"%w_s\" REAL", ty_part_name((enum ty_part)part));
    sqlite3_str_appendall(sql, ");");
}

static void append_views(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql, views);
    sqlite3_str_appendall(sql, "CREATE VIEW breakdown AS ");
    for (int part = 0; part < TY_N_PARTS; part++) {
        const char *name = ty_part_name((enum ty_part)part);
        sqlite3_str_appendf(sql,
                            "%sSELECT id AS prediction_id, study_id, %Q AS part, \"%w_s\" AS "
                            "time_s FROM prediction",
                            part ? " UNION ALL " : "", name, name);
    }
    sqlite3_str_appendall(sql, ";");
}

static ty_status create(ty_store *store, struct ty_error *error)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "BEGIN IMMEDIATE;");
    sqlite3_str_appendall(sql, tables);
    append_prediction(store, sql);
    append_views(sql);
    sqlite3_str_appendf(sql, "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT;",
                        STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_set(error, TY_ERR_NOMEM, store->path, "out of memory");
    ty_status status = store_exec(store, text, error);
    sqlite3_free(text);
    return status;
}

ty_status store_schema(ty_store *store, struct ty_error *error)
{
    int64_t n_objects, application, version;
    ty_status status =
        store_integer_of(store, "SELECT count(*) FROM sqlite_master", &n_objects, error);
    if (status == TY_OK)
        status = store_integer_of(store, "PRAGMA application_id", &application, error);
    if (status == TY_OK)
        status = store_integer_of(store, "PRAGMA user_version", &version, error);
    if (status != TY_OK)
        return status;
    if (n_objects == 0 && application == 0 && version == 0 && !store->read_only)
        return create(store, error);
    if (application != STORE_APPLICATION_ID)
        return error_set(error, TY_ERR_INPUT, store->path,
                         "not a trainyard study: a database of something else");
    if (version != STORE_SCHEMA_VERSION)
        return error_set(error, TY_ERR_INPUT, store->path,
                         "written with schema %lld; this version reads and writes schema %d",
                         (long long)version, STORE_SCHEMA_VERSION);
    return TY_OK;
}

char *store_insert_sql(const ty_store *store, enum store_insert which)
{
    static const struct {
        const char *table;
        uint32_t n_values;
    } target[STORE_N_INSERTS] = {
        [STORE_PREDICTION] = {"prediction", 0}, [STORE_MEMORY] = {"memory", 4},
        [STORE_GROUP] = {"group_link", 8},      [STORE_NOTE] = {"note", 7},
        [STORE_VIOLATION] = {"violation", 5},
    };
    bool prediction = which == STORE_PREDICTION;
    uint32_t n = target[which].n_values;
    if (prediction) /* study_id, plan_id, detailed, feasible, fit, then the generated ones */
        n = 5 + store->n_columns + (uint32_t)(sizeof after_plan / sizeof *after_plan) + TY_N_PARTS;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "INSERT INTO %s VALUES (%s?", target[which].table,
                        prediction ? "NULL, " : "");
    for (uint32_t i = 1; i < n; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return sqlite3_str_finish(sql);
}

const char *store_plan_column(const ty_store *store, size_t index)
{
    return index < store->n_columns ? store->columns[index].name : NULL;
}
