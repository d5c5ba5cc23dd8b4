/* SPDX-License-Identifier: MIT
 *
 * Rows of the fit and the logarithm of their step time near a point, by forward differences of the
 * simulator:  dr/dz_j = (ln T(z + h e_j) - ln T(z)) / h. Only constants that inform the row move.
 * Every entry is computed on its own, so the result is the same at any number of threads.
 */
#include "calibrate/fit.h"
#include "search/parallel.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DIFFERENCE = 0.03; /* in the logarithm of a constant */

/* Sources that warn of +-40 % between identical runs, padded inputs that are not printed, and
 * ZeRO-3 without prefetch; source: ACCURACY section 2. */
static const double DOUBTFUL_WEIGHT = 0.3;

/* ---- prediction --------------------------------------------------------------------------- */

ty_status fit_predict_s(const struct ty_run *run, const struct ty_profile *profile, double *out,
                        struct ty_error *error)
{
    ty_predictor *predictor;
    ty_status status =
        ty_predictor_create(&run->model, &run->cluster, profile, NULL, &predictor, error);
    if (status != TY_OK)
        return status;
    const struct ty_options options = {.measured = true};
    struct ty_prediction answer;
    status = ty_predictor_run(predictor, &run->plan, &options, &answer, error);
    if (status == TY_OK)
        *out = answer.step_time_s;
    ty_predictor_destroy(predictor);
    return status;
}

/* ---- rows --------------------------------------------------------------------------------- */

struct reading {
    struct run_table table;
    struct ty_run *run;
    ty_status *status; /* [n_rows] */
};

static void read_row(void *context, uint32_t worker, uint64_t index)
{
    (void)worker;
    struct reading *reading = context;
    struct ty_run *run = &reading->run[index];
    struct ty_error ignored;
    reading->status[index] = run_from_row(&reading->table, index, run, &ignored);
    if (reading->status[index] != TY_OK || *run->row.refused)
        return;
    if (fit_predict_s(run, &run->profile, &run->row.predicted_s, &ignored) != TY_OK)
        run->row.predicted_s = (double)NAN;
}

static double weight_of(const struct ty_run *run)
{
    const bool doubtful = strcmp(run->row.source, "bsv") == 0 ||
                          strcmp(run->row.source, "bert") == 0 ||
                          (strcmp(run->row.stack, "megatron-lm-2021") == 0 &&
                           run->plan.sharding == TY_SHARDING_ZERO3);
    return doubtful ? DOUBTFUL_WEIGHT : 1.0;
}

/* Keeps the rows that could be predicted, in order. */
static ty_status keep_predicted(struct reading *reading, struct fit_rows *out)
{
    out->run = reading->run;
    out->weight = malloc(reading->table.csv.n_rows * sizeof *out->weight);
    if (!out->weight)
        return TY_ERR_NOMEM;
    for (uint64_t i = 0; i < reading->table.csv.n_rows; i++) {
        if (reading->status[i] != TY_OK || *reading->run[i].row.refused ||
            isnan(reading->run[i].row.predicted_s) || !(reading->run[i].row.measured_s > 0.0))
            continue;
        out->run[out->n] = reading->run[i];
        out->weight[out->n] = weight_of(&out->run[out->n]);
        out->n++;
    }
    return TY_OK;
}

ty_status fit_rows_read(const char *csv_path, uint32_t n_threads, struct fit_rows *out,
                        struct ty_error *error)
{
    struct reading reading = {0};
    *out = (struct fit_rows){0};
    ty_status status = run_table_open(csv_path, &reading.table, error);
    if (status != TY_OK)
        return status;
    reading.run = calloc(reading.table.csv.n_rows, sizeof *reading.run);
    reading.status = calloc(reading.table.csv.n_rows, sizeof *reading.status);
    if (reading.run && reading.status) {
        parallel_for(parallel_workers(n_threads), reading.table.csv.n_rows, 1, read_row, &reading);
        status = keep_predicted(&reading, out);
    } else {
        free(reading.run);
        status = TY_ERR_NOMEM;
    }
    if (status != TY_OK)
        error_set(error, status, csv_path, "out of memory");
    free(reading.status);
    run_table_close(&reading.table);
    return status;
}

void fit_rows_free(struct fit_rows *rows)
{
    free(rows->run);
    free(rows->weight);
    *rows = (struct fit_rows){0};
}

/* ---- derivatives -------------------------------------------------------------------------- */

ty_status fit_linear_create(uint32_t n_rows, uint32_t n_params, struct fit_linear *out)
{
    *out = (struct fit_linear){.n_rows = n_rows,
                               .n_params = n_params,
                               .z = calloc(n_params, sizeof(double)),
                               .r = calloc(n_rows, sizeof(double)),
                               .dr = calloc((size_t)n_rows * n_params, sizeof(double))};
    if (out->z && out->r && out->dr)
        return TY_OK;
    fit_linear_free(out);
    return TY_ERR_NOMEM;
}

void fit_linear_free(struct fit_linear *linear)
{
    free(linear->z);
    free(linear->r);
    free(linear->dr);
    *linear = (struct fit_linear){0};
}

struct differences {
    const struct fit_rows *rows;
    const struct fit_params *params;
    struct fit_linear *linear;
    bool only_r;
    const bool *wanted; /* [n_rows]; NULL: all */
    ty_status *status;  /* [n_rows] */
};

static double *constant(struct ty_profile *profile, const struct fit_param *param)
{
    return (double *)(void *)((char *)profile + param->field->offset);
}

static void differences_of_row(void *context, uint32_t worker, uint64_t row)
{
    (void)worker;
    struct differences *job = context;
    struct fit_linear *linear = job->linear;
    const struct ty_run *run = &job->rows->run[row];
    struct ty_profile profile = run->profile;
    struct ty_error ignored;
    double at_s = 0.0, beside_s = 0.0;
    if (job->wanted && !job->wanted[row])
        return;
    fit_set(job->params, linear->z, run, &profile);
    ty_status status = fit_predict_s(run, &profile, &at_s, &ignored);
    linear->r[row] = log(at_s / run->row.measured_s);
    for (uint32_t j = 0; status == TY_OK && !job->only_r && j < linear->n_params; j++) {
        const struct fit_param *param = &job->params->param[j];
        double *slope = &linear->dr[row * linear->n_params + j];
        *slope = 0.0;
        if (!fit_informs(param, run))
            continue;
        double *value = constant(&profile, param), kept = *value;
        const double step = kept * exp(DIFFERENCE) > param->max ? -DIFFERENCE : DIFFERENCE;
        *value = kept * exp(step);
        status = fit_predict_s(run, &profile, &beside_s, &ignored);
        *slope = log(beside_s / at_s) / step;
        *value = kept;
    }
    job->status[row] = status;
}

static ty_status run_differences(struct differences *job, uint32_t n_threads)
{
    const uint32_t n = job->rows->n;
    job->status = calloc(n ? n : 1, sizeof *job->status);
    ty_status status = job->status ? TY_OK : TY_ERR_NOMEM;
    if (status == TY_OK)
        parallel_for(parallel_workers(n_threads), n, 1, differences_of_row, job);
    for (uint32_t row = 0; status == TY_OK && row < n; row++)
        status = job->status[row];
    free(job->status);
    return status;
}

ty_status fit_linearise(const struct fit_rows *rows, const struct fit_params *params,
                        uint32_t n_threads, bool only_r, struct fit_linear *linear)
{
    struct differences job = {.rows = rows, .params = params, .linear = linear};
    job.only_r = only_r;
    return run_differences(&job, n_threads);
}

ty_status fit_residuals(const struct fit_rows *rows, const struct fit_params *params,
                        uint32_t n_threads, const bool *wanted, struct fit_linear *linear)
{
    struct differences job = {.rows = rows, .params = params, .linear = linear};
    job.only_r = true;
    job.wanted = wanted;
    return run_differences(&job, n_threads);
}
