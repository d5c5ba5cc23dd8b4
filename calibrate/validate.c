/* SPDX-License-Identifier: MIT
 *
 * Predicts every row of a table of measured runs and says how far off each group is:
 *   error = predicted / measured - 1; APE = |error|; bias = median error.
 * Median and P90 are order statistics with linear interpolation.
 */
#include "calibrate/run.h"
#include "search/parallel.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct run_table table;
    struct ty_run_row *rows;
    struct ty_error *error; /* [n_workers] */
};

/* Why the predictor gave no time: the first broken rule. */
static void refuse(struct ty_run_row *row, const struct ty_prediction *answer)
{
    text_format(row->refused, sizeof row->refused, "%s: %s",
                answer->n_violations ? answer->violations[0].rule : "infeasible",
                answer->n_violations ? answer->violations[0].text : "no time");
}

static ty_status predict_run(struct run *run, struct ty_error *error)
{
    ty_predictor *predictor;
    ty_status status =
        ty_predictor_create(&run->model, &run->cluster, &run->profile, NULL, &predictor, error);
    if (status != TY_OK)
        return status;
    const struct ty_options options = {.measured = true};
    struct ty_prediction answer;
    status = ty_predictor_run(predictor, &run->plan, &options, &answer, error);
    if (status == TY_OK) {
        run->row.predicted_s = answer.step_time_s;
        run->row.predicted_mem_bytes = answer.peak_bytes;
        if (isnan(answer.step_time_s))
            refuse(&run->row, &answer);
    }
    ty_predictor_destroy(predictor);
    return status;
}

static void validate_row(void *context, uint32_t worker, uint64_t index)
{
    struct job *job = context;
    struct run *run = malloc(sizeof *run);
    if (!run) {
        error_set(&job->error[worker], TY_ERR_NOMEM, job->table.path, "out of memory");
        return;
    }
    struct ty_error error = {.code = TY_OK};
    ty_status status = run_from_row(&job->table, index, run, &error);
    if (status == TY_OK && !*run->row.refused)
        status = predict_run(run, &error);
    if (status != TY_OK) /* one row's failure is its refusal, not the table's */
        text_format(run->row.refused, sizeof run->row.refused, "%s: %s", error.where, error.text);
    job->rows[index] = run->row;
    free(run);
}

ty_status ty_validate_runs(const char *csv_path, uint32_t n_threads, struct ty_validation *out,
                           struct ty_error *error)
{
    struct job job = {0};
    ty_status status = run_table_open(csv_path, &job.table, error);
    if (status != TY_OK)
        return status;
    const uint32_t n_workers = n_threads ? n_threads : parallel_processors();
    job.rows = calloc(job.table.csv.n_rows, sizeof *job.rows);
    job.error = calloc(n_workers, sizeof *job.error);
    if (job.rows && job.error)
        parallel_for(n_workers, job.table.csv.n_rows, 1, validate_row, &job);
    else
        status = error_set(error, TY_ERR_NOMEM, csv_path, "out of memory");
    for (uint32_t i = 0; status == TY_OK && i < n_workers; i++)
        if (job.error[i].code != TY_OK)
            status = error_set(error, job.error[i].code, csv_path, "%s", job.error[i].text);
    if (status == TY_OK)
        *out = (struct ty_validation){(uint32_t)job.table.csv.n_rows, job.rows};
    else
        free(job.rows);
    free(job.error);
    run_table_close(&job.table);
    return status;
}

void ty_validation_free(struct ty_validation *validation)
{
    free(validation->rows);
    *validation = (struct ty_validation){0};
}

const char *ty_run_value(const struct ty_run_row *row, enum ty_run_key key)
{
    switch (key) {
    case TY_RUN_SOURCE:
        return row->source;
    case TY_RUN_GPU:
        return row->gpu;
    case TY_RUN_STACK:
        return row->stack;
    case TY_RUN_KIND:
        return row->kind;
    case TY_RUN_FAMILY:
        return row->family;
    }
    return "";
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Quantile of sorted values, linear between order statistics. */
static double quantile(const double *sorted, uint32_t n, double share)
{
    const double place = share * (n - 1);
    const uint32_t low = (uint32_t)place;
    const uint32_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

static struct ty_error_stats stats_of(double *error, uint32_t n)
{
    struct ty_error_stats stats = {n, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (n == 0)
        return stats;
    qsort(error, n, sizeof *error, by_size);
    stats.bias = quantile(error, n, 0.5);
    stats.mean_ape = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        error[i] = fabs(error[i]);
        stats.mean_ape += error[i] / n;
    }
    qsort(error, n, sizeof *error, by_size);
    stats.median_ape = quantile(error, n, 0.5);
    stats.p90_ape = quantile(error, n, 0.9);
    return stats;
}

struct ty_error_stats ty_validation_stats(const struct ty_validation *validation,
                                          enum ty_run_key key, const char *value, bool clean_only)
{
    double *error = calloc(validation->n_rows ? validation->n_rows : 1, sizeof *error);
    uint32_t n = 0;
    for (uint32_t i = 0; error && i < validation->n_rows; i++) {
        const struct ty_run_row *row = &validation->rows[i];
        const bool chosen = !value || strcmp(ty_run_value(row, key), value) == 0;
        const bool both = row->measured_s > 0.0 && row->predicted_s > 0.0;
        if (chosen && both && !(clean_only && row->noisy))
            error[n++] = row->predicted_s / row->measured_s - 1.0;
    }
    const struct ty_error_stats stats = stats_of(error, n);
    free(error);
    return stats;
}
