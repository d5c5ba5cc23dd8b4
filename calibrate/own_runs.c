/* SPDX-License-Identifier: MIT
 * A user's own runs: rows of tables, records of training logs, runs given one by one. */
#include "calibrate/import.h"
#include "calibrate/run.h"
#include "include/trainyard_calibrate.h"
#include "include/trainyard_gap.h"
#include "sim/error.h"

#include <math.h>
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

/* What the log says of the plan and the caller does not. */
static void take_plan(const struct ty_plan *logged, struct ty_plan *plan)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    struct ty_plan empty;
    ty_init(TY_KIND_PLAN, &empty);
    for (size_t i = 0; i < n; i++) {
        char *to = (char *)plan + fields[i].offset;
        if (memcmp(to, (const char *)&empty + fields[i].offset, fields[i].size) == 0)
            memcpy(to, (const char *)logged + fields[i].offset, fields[i].size);
    }
}

static void fill_run(const struct ty_logged *logged, struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    take_plan(&logged->plan, plan);
    run->row.measured_s =
        isfinite(logged->step_s)
            ? logged->step_s
            : (double)plan->gbs * plan->seq / (logged->tokens_per_s_per_gpu * plan->n_gpus);
    if (!plan->n_gpus || !plan->gbs || !plan->seq)
        text_format(run->row.refused, sizeof run->row.refused,
                    "the log lacks what sets a step; give%s%s%s", plan->n_gpus ? "" : " --gpus",
                    plan->gbs ? "" : " --gbs", plan->seq ? "" : " --seq");
}

static ty_status add_record(const char *path, uint32_t index, const struct ty_record *record,
                            const struct ty_run *like, struct ty_runs *runs, struct ty_error *error)
{
    struct ty_logged logged;
    const char *slash = strrchr(path, '/');
    if (!record->usable || !(logged_read(record, &logged) > 0.0))
        return TY_OK;
    struct ty_run *run = new_run(runs);
    if (!run)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    *run = *like;
    text_format(run->row.id, sizeof run->row.id, "%.48s:%u", slash ? slash + 1 : path, index);
    fill_run(&logged, run);
    runs->n++;
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
        status = add_record(path, i + 1, &import.records[i], like, runs, error);
    ty_import_free(&import);
    if (status == TY_OK && runs->n == n_before)
        return error_set(error, TY_ERR_INPUT, path, "no training run with a step time in it");
    return status;
}
