/* SPDX-License-Identifier: MIT
 * Predicts every row of a table of measured runs, rows in parallel. */
#include "calibrate/evidence.h"
#include "calibrate/run.h"
#include "include/trainyard_records.h"
#include "models/spec/builtin.h"
#include "search/parallel.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct run_table table;
    struct json_document fitted; /* ids of the rows that the shipped constants were fitted on */
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

/* The peak as the source counts it: what is allocated, with what the allocator holds besides
 * (reserved), or with context and communicators too (device). */
static double peak_in_view(const char *view, const struct ty_prediction *answer)
{
    const bool allocated = strcmp(view, "allocated") == 0;
    double peak = (double)NAN;
    for (uint32_t i = 0; i < answer->n_stages; i++) {
        const struct ty_stage_memory *stage = &answer->stages[i];
        double bytes = stage->total_bytes;
        if (allocated || strcmp(view, "reserved") == 0)
            bytes -= stage->bytes[TY_MEM_RUNTIME];
        if (allocated)
            bytes -= stage->bytes[TY_MEM_RESERVE];
        peak = fmax(peak, bytes);
    }
    return peak;
}

/* Predicts the run with a profile. answer: its pointers are not valid any more, save the first
 * violation, which goes into row->refused. */
static ty_status predict_with(struct ty_run *run, const struct ty_profile *profile,
                              struct ty_prediction *answer, struct ty_error *error)
{
    ty_predictor *predictor;
    ty_status status =
        ty_predictor_create(&run->model, &run->cluster, profile, NULL, &predictor, error);
    if (status != TY_OK)
        return status;
    const struct ty_options options = {.measured = true};
    status = ty_predictor_run(predictor, &run->plan, &options, answer, error);
    if (status == TY_OK && isnan(answer->step_time_s))
        refuse(&run->row, answer);
    if (status == TY_OK)
        run->row.predicted_mem_bytes = peak_in_view(run->row.memory_view, answer);
    ty_predictor_destroy(predictor);
    return status;
}

/* The profile without what is known of the site. returns whether that is any different. */
static bool forget_site(struct ty_profile *profile)
{
    double *const ratios[] = {&profile->site_compute_ratio, &profile->site_comm_ratio,
                              &profile->site_host_ratio};
    bool known = false;
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        known |= !isnan(*ratios[i]) && *ratios[i] != 1.0;
        *ratios[i] = 1.0;
    }
    return known;
}

static ty_status predict_run(struct ty_run *run, struct ty_error *error)
{
    struct ty_run_row *row = &run->row;
    struct ty_prediction answer;
    ty_status status = predict_with(run, &run->profile, &answer, error);
    if (status != TY_OK || *row->refused)
        return status;
    row->plan = answer.plan;
    row->predicted_s = row->no_site_s = answer.step_time_s;
    row->interval_80_s[0] = answer.interval_80[0];
    row->interval_80_s[1] = answer.interval_80[1];
    row->interval_90_s[0] = answer.interval_90[0];
    row->interval_90_s[1] = answer.interval_90[1];
    row->fit = answer.fit;
    struct ty_profile plain = run->profile;
    if (!forget_site(&plain))
        return TY_OK;
    status = predict_with(run, &plain, &answer, error);
    if (status == TY_OK)
        row->no_site_s = answer.step_time_s;
    return status;
}

static bool was_fitted(const struct json_document *fitted, const char *id)
{
    struct json_at ids, item = {.node = NULL};
    const char *text;
    if (!json_find(&fitted->top, "ids", &ids))
        return false;
    while (json_next(&ids, &item))
        if (json_get_text(&item, &text, NULL) == TY_OK && strcmp(text, id) == 0)
            return true;
    return false;
}

/* With the tables of the profile, as far as they are of the run's machine. */
static ty_status predict_measured(const char *profile, struct ty_run *run, struct ty_error *error)
{
    struct ty_profile_tables tables;
    ty_status status = ty_profile_tables_load(profile, &run->cluster, &tables, error);
    if (status != TY_OK)
        return status;
    ty_profile_use(&run->profile, &tables);
    status = predict_run(run, error);
    ty_profile_tables_free(&tables);
    return status;
}

/* A run unlike all that were fitted gets the widest interval. */
static void widen_unseen(const struct json_document *fitted, struct ty_run *run)
{
    struct ty_evidence evidence;
    const struct evidence_cell cell = evidence_cell(&run->model, &run->cluster, &run->plan);
    evidence_find(fitted, &cell, &evidence);
    if (evidence.n_rows == 0)
        ty_evidence_widen(&run->profile);
}

static void validate_row(void *context, uint32_t worker, uint64_t index)
{
    struct job *job = context;
    struct ty_run *run = malloc(sizeof *run);
    if (!run) {
        error_set(&job->error[worker], TY_ERR_NOMEM, job->table.path, "out of memory");
        return;
    }
    struct ty_error error = {.code = TY_OK};
    ty_status status = run_from_row(&job->table, index, run, &error);
    if (status == TY_OK && !*run->row.refused) {
        widen_unseen(&job->fitted, run);
        status = predict_measured(job->table.profile, run, &error);
    }
    if (status != TY_OK) /* one row's failure is its refusal, not the table's */
        text_format(run->row.refused, sizeof run->row.refused, "%s: %s", error.where, error.text);
    run->row.in_fit = was_fitted(&job->fitted, run->row.id);
    job->rows[index] = run->row;
    free(run);
}

static ty_status open_job(const char *csv_path, struct job *job, struct ty_error *error)
{
    const struct builtin_file *ids = builtin_find("runs", "fitted");
    ty_status status = run_table_open(csv_path, &job->table, error);
    if (status == TY_OK && ids)
        status = json_parse((const char *)ids->text, ids->bytes, ids->name, &job->fitted, error);
    return status;
}

/* A profile that cannot be read is said once, not for every row; any cluster will do. */
static ty_status check_profile(const char *name, struct ty_error *error)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    const ty_status status = ty_cluster_load("dgx-h100", &cluster, error);
    return status == TY_OK ? ty_profile_load(name, NULL, &cluster, &profile, error) : status;
}

static ty_status predict_all(struct job *job, uint32_t n_workers, struct ty_error *error)
{
    const uint64_t n_rows = job->table.csv.n_rows;
    job->rows = calloc(n_rows, sizeof *job->rows);
    job->error = calloc(n_workers, sizeof *job->error);
    if (!job->rows || !job->error)
        return error_set(error, TY_ERR_NOMEM, job->table.path, "out of memory");
    parallel_for(n_workers, n_rows, 1, validate_row, job);
    for (uint32_t i = 0; i < n_workers; i++)
        if (job->error[i].code != TY_OK)
            return error_set(error, job->error[i].code, job->table.path, "%s", job->error[i].text);
    return TY_OK;
}

ty_status ty_validate_runs(const char *csv_path, const struct ty_validate_options *options,
                           struct ty_validation *out, struct ty_error *error)
{
    struct job job = {0};
    const uint32_t n_threads = options ? options->n_threads : 0;
    ty_status status = open_job(csv_path, &job, error);
    job.table.profile = options ? options->profile : NULL;
    if (status == TY_OK && job.table.profile)
        status = check_profile(job.table.profile, error);
    if (status == TY_OK)
        status = predict_all(&job, parallel_workers(n_threads), error);
    if (status == TY_OK)
        *out = (struct ty_validation){(uint32_t)job.table.csv.n_rows, job.rows};
    else
        free(job.rows);
    free(job.error);
    json_free(&job.fitted);
    run_table_close(&job.table);
    return status;
}

void ty_validation_free(struct ty_validation *validation)
{
    free(validation->rows);
    *validation = (struct ty_validation){0};
}
