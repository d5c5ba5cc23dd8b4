/* SPDX-License-Identifier: MIT
 * A user's own runs: rows of tables, records of training logs, runs given one by one. */
#include "calibrate/run.h"
#include "include/trainyard_calibrate.h"
#include "models/fields.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more; NULL when out of memory. */
static struct ty_run *new_run(struct ty_runs *runs)
{
    struct ty_run *grown = realloc(runs->run, ((size_t)runs->n + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    runs->run = grown;
    return &grown[runs->n];
}

ty_status ty_runs_add(const struct ty_run *run, struct ty_runs *runs)
{
    struct ty_run *place = new_run(runs);
    if (!place)
        return TY_ERR_NOMEM;
    *place = *run;
    runs->n++;
    return TY_OK;
}

void ty_runs_free(struct ty_runs *runs)
{
    free(runs->run);
    *runs = (struct ty_runs){0};
}

/* ---- tables ------------------------------------------------------------------------------- */

static ty_status add_row(const struct run_table *table, uint64_t row, struct ty_runs *runs,
                         struct ty_error *error)
{
    struct ty_run *run = new_run(runs);
    if (!run)
        return error_set(error, TY_ERR_NOMEM, table->path, "out of memory");
    struct ty_error why;
    const ty_status status = run_from_row(table, row, run, &why);
    if (status == TY_ERR_NOMEM)
        return error_set(error, status, table->path, "out of memory");
    if (status != TY_OK)
        text_format(run->row.refused, sizeof run->row.refused, "%s: %s", why.where, why.text);
    else if (!*run->row.refused && !(run->row.measured_s > 0.0))
        text_format(run->row.refused, sizeof run->row.refused, "no measured step time");
    runs->n++;
    return TY_OK;
}

ty_status ty_runs_add_table(const char *csv_path, struct ty_runs *runs, struct ty_error *error)
{
    struct run_table table;
    ty_status status = run_table_open(csv_path, &table, error);
    if (status != TY_OK)
        return status;
    for (uint64_t row = 0; status == TY_OK && row < table.csv.n_rows; row++)
        status = add_row(&table, row, runs, error);
    run_table_close(&table);
    return status;
}

/* ---- logs --------------------------------------------------------------------------------- */

/* The number at a.b of an object; NAN when it is not there. */
static double number_at(const struct json_at *object, const char *a, const char *b)
{
    struct json_at first, second;
    double value = (double)NAN;
    if (json_find(object, a, &first) && json_find(&first, b, &second) &&
        json_get_double(&second, 0.0, HUGE_VAL, &value, NULL) != TY_OK)
        return (double)NAN;
    return value;
}

static bool is_default(const struct ty_field *field, const struct ty_plan *plan)
{
    struct ty_plan empty;
    ty_init(TY_KIND_PLAN, &empty);
    return memcmp((const char *)plan + field->offset, (const char *)&empty + field->offset,
                  field->size) == 0;
}

/* What the log says of the plan and the caller does not. A value that a plan cannot have (a
 * precision of another name) is left to the defaults. */
static void take_plan(const struct json_at *record, struct ty_plan *plan)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    struct json_at said, item;
    if (!json_find(record, "plan", &said))
        return;
    for (size_t i = 0; i < n; i++) {
        char number[32];
        const char *text = number;
        double value;
        if (!is_default(&fields[i], plan) || !json_find(&said, fields[i].path, &item))
            continue;
        if (json_type_of(&item) == JSON_NUMBER &&
            json_get_double(&item, 0.0, 1e15, &value, NULL) == TY_OK)
            text_format(number, sizeof number, "%.0f", value);
        else if (json_get_text(&item, &text, NULL) != TY_OK)
            continue;
        const ty_status ignored = ty_field_set(TY_KIND_PLAN, plan, fields[i].path, text, NULL);
        (void)ignored;
    }
}

/* Step time as printed, else from the token rate. */
static double step_time_s(const struct json_at *record, const struct ty_plan *plan)
{
    double step_s = number_at(record, "step_time_s", "median");
    if (isnan(step_s))
        step_s = number_at(record, "step_time_s", "mean");
    if (isnan(step_s))
        step_s = (double)plan->gbs * plan->seq /
                 (number_at(record, "tokens_per_s_per_gpu", "value") * plan->n_gpus);
    return step_s;
}

static ty_status add_record(const char *path, uint32_t index, const struct ty_record *record,
                            const struct ty_run *like, struct ty_runs *runs, struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at kind;
    const char *text = "";
    struct ty_run *run = new_run(runs);
    if (!run)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    ty_status status = json_parse(record->json, strlen(record->json), path, &document, error);
    if (status != TY_OK)
        return status;
    *run = *like;
    if (json_find(&document.top, "kind", &kind) && json_get_text(&kind, &text, NULL) == TY_OK &&
        strcmp(text, "training_run") == 0) {
        const char *slash = strrchr(path, '/');
        text_format(run->row.id, sizeof run->row.id, "%.48s:%u", slash ? slash + 1 : path, index);
        take_plan(&document.top, &run->plan);
        run->row.measured_s = step_time_s(&document.top, &run->plan);
        if (!(run->row.measured_s > 0.0))
            text_format(run->row.refused, sizeof run->row.refused, "no step time");
        else if (!run->plan.n_gpus || !run->plan.gbs || !run->plan.seq)
            text_format(run->row.refused, sizeof run->row.refused,
                        "the log has no gpus, gbs or seq; give --gpus, --gbs, --seq");
        runs->n++;
    }
    json_free(&document);
    return TY_OK;
}

ty_status ty_runs_add_log(const char *path, const struct ty_run *like, struct ty_runs *runs,
                          struct ty_error *error)
{
    struct ty_import import;
    ty_status status = ty_import_file(path, &import, error);
    if (status != TY_OK)
        return status;
    const uint32_t n_before = runs->n;
    for (uint32_t i = 0; status == TY_OK && i < import.n_records; i++)
        if (import.records[i].usable)
            status = add_record(path, i + 1, &import.records[i], like, runs, error);
    ty_import_free(&import);
    if (status == TY_OK && runs->n == n_before)
        return error_set(error, TY_ERR_INPUT, path, "no training run with a step time in it");
    return status;
}
