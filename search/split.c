/* SPDX-License-Identifier: MIT
 *
 * A cluster divided among jobs: equal shares, then the level that all keep, then units of GPUs,
 * then cache, storage and cores; and what one more of each would bring.
 */
#include "search/split.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROUNDS 8 /* of giving GPUs that wait for input to others */

/* ---- inputs ------------------------------------------------------------------------------- */

void ty_split_init(struct ty_split *split)
{
    *split =
        (struct ty_split){.cores = INFINITY, .cache_bytes = INFINITY, .read_bytes_per_s = INFINITY};
}

void ty_split_job_init(struct ty_split_job *job)
{
    *job = (struct ty_split_job){.weight = 1.0, .tokens = NAN, .deadline_s = NAN};
}

const char *ty_split_objective_name(int objective)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_SPLIT_OBJECTIVE_LIST(X)
#undef X
    };
    return objective >= 0 && objective < TY_N_SPLIT_OBJECTIVES ? names[objective] : NULL;
}

const char *ty_split_resource_name(int resource, double *one)
{
    static const struct {
        const char *name;
        double one;
    } list[] = {
#define X(id, name, one) {name, one},
        TY_SPLIT_RESOURCE_LIST(X)
#undef X
    };
    if (resource < 0 || resource >= TY_N_SPLIT_RESOURCES)
        return NULL;
    if (one)
        *one = list[resource].one;
    return list[resource].name;
}

static bool amount(double value)
{
    return value >= 0.0 && isfinite(value);
}

static const char *check_hits(const struct ty_split_job *job)
{
    if (!job->hit)
        return NULL;
    if (job->n_hits < 2 || job->n_hits > TY_SPLIT_MAX_HITS)
        return "hit: needs 2 to 129 points";
    for (uint32_t i = 0; i < job->n_hits; i++)
        if (!(job->hit[i] >= (i ? job->hit[i - 1] : 0.0) && job->hit[i] <= 1.0))
            return "hit: must rise from 0 or more to 1 or less";
    return job->hit[0] > 0.0 ? "hit: must begin at 0" : NULL;
}

static const char *check_job(const struct ty_split *split, const struct ty_split_job *job)
{
    const bool finish = split->objective == TY_SPLIT_FINISH;
    if (!(job->weight > 0.0) || isinf(job->weight))
        return "weight: must be above 0";
    if (!isnan(job->tokens) && (!(job->tokens > 0.0) || isinf(job->tokens)))
        return "tokens: must be above 0";
    if (!isnan(job->deadline_s) && !(job->deadline_s > 0.0))
        return "deadline: must be above 0";
    if (isnan(job->tokens) && (finish || !isnan(job->deadline_s)))
        return "tokens: needed for finish and for a deadline";
    if (!amount(job->cpu_s) || !amount(job->read_bytes) || !amount(job->data_bytes) ||
        !amount(job->prepare_cpu_s))
        return "input: must be 0 or more";
    if (job->prepare_cpu_s > 0.0 && !finish)
        return "prepare: is for the objective finish";
    if (job->max_units && job->max_units < job->min_units)
        return "max_gpus: below min_gpus";
    for (uint32_t k = 1; k <= split->n_units; k++)
        if (!amount(job->tokens_per_s[k]))
            return "tokens_per_s: must be 0 or more";
    return check_hits(job);
}

static ty_status check(const struct ty_split *split, struct ty_error *error)
{
    uint32_t n_prepared = 0;
    if (split->n_jobs == 0 || split->n_jobs > TY_SPLIT_MAX_JOBS)
        return error_set(error, TY_ERR_RANGE, "jobs", "must be 1 to %d", TY_SPLIT_MAX_JOBS);
    if (split->n_units == 0 || split->n_units > TY_SPLIT_MAX_UNITS)
        return error_set(error, TY_ERR_RANGE, "units", "must be 1 to %d", TY_SPLIT_MAX_UNITS);
    if (!ty_split_objective_name(split->objective))
        return error_set(error, TY_ERR_RANGE, "objective", "is none of those there are");
    if (!(split->cores >= 0.0) || !(split->cache_bytes >= 0.0) || !(split->read_bytes_per_s >= 0.0))
        return error_set(error, TY_ERR_RANGE, "pool", "cores, cache, storage: must be 0 or more");
    for (uint32_t j = 0; j < split->n_jobs; j++) {
        const char *why = check_job(split, &split->jobs[j]);
        char where[32];
        text_format(where, sizeof where, "jobs[%u]", j);
        if (why)
            return error_set(error, TY_ERR_RANGE, where, "%s", why);
        n_prepared += split->jobs[j].prepare_cpu_s > 0.0;
    }
    if (n_prepared > TY_SPLIT_MAX_PREPARED)
        return error_set(error, TY_ERR_RANGE, "prepare", "at most %d jobs may have one",
                         TY_SPLIT_MAX_PREPARED);
    return TY_OK;
}

/* ---- equal shares ------------------------------------------------------------------------- */

/* min(x, P / cpu_s, b / (r (1 - hit(c)))) */
static double speed_of(const struct split_job *job, double gpu_speed, double cores,
                       double cache_bytes, double read_bytes_per_s, int *limit)
{
    const double read_bytes = job->asked->read_bytes * (1.0 - split_hit(job, cache_bytes));
    double speed = gpu_speed;
    *limit = TY_SPLIT_GPUS;
    if (job->asked->cpu_s > 0.0 && !split_enough(cores / job->asked->cpu_s, speed)) {
        speed = cores / job->asked->cpu_s;
        *limit = TY_SPLIT_CORES;
    }
    if (read_bytes > 0.0 && !split_enough(read_bytes_per_s / read_bytes, speed)) {
        speed = read_bytes_per_s / read_bytes;
        *limit = TY_SPLIT_STORAGE;
    }
    return speed;
}

static ty_status open_job(struct split *split, uint32_t j, struct ty_error *error)
{
    const struct ty_split *asked = split->asked;
    struct split_job *job = &split->job[j];
    const double share = 1.0 / split->n;
    int limit;
    job->asked = &asked->jobs[j];
    job->low = job->asked->min_units;
    job->high = job->asked->max_units ? job->asked->max_units : asked->n_units;
    job->high = job->high < asked->n_units ? job->high : asked->n_units;
    job->reach = split->reach + (size_t)j * (asked->n_units + 1);
    for (uint32_t k = 1; k <= asked->n_units; k++) {
        const bool allowed = split_allowed(job, k);
        job->reach[k] = fmax(job->reach[k - 1], allowed ? job->asked->tokens_per_s[k] : 0.0);
    }
    split_hull(job);
    const double alone = split_envelope(job, asked->n_units, asked->n_units * share);
    job->equal = speed_of(job, alone, asked->cores * share, asked->cache_bytes * share,
                          asked->read_bytes_per_s * share, &limit);
    char where[32];
    text_format(where, sizeof where, "jobs[%u]", j);
    if (!(alone > 0.0))
        return error_set(error, TY_ERR_INFEASIBLE, where,
                         "runs at no size that it may have, of 1 to %u units", asked->n_units);
    if (!(job->equal > 0.0))
        return error_set(error, TY_ERR_INFEASIBLE, where, "there is no %s for its input",
                         limit == TY_SPLIT_CORES ? "core" : "storage bandwidth");
    job->gain = job->asked->weight / job->equal;
    job->scale =
        asked->objective == TY_SPLIT_FINISH ? job->asked->tokens : job->asked->weight * job->equal;
    if (job->asked->prepare_cpu_s > 0.0)
        split->prepared[split->n_prepared++] = j;
    return TY_OK;
}

/* ---- the division ------------------------------------------------------------------------- */

/* No division of the input lets a job run faster than all of it would. */
static void cap_by_input(struct split *split)
{
    const struct ty_split *asked = split->asked;
    int limit;
    for (uint32_t j = 0; j < split->n; j++)
        split->job[j].most = speed_of(&split->job[j], INFINITY, split->loader_cores,
                                      asked->cache_bytes, asked->read_bytes_per_s, &limit);
}

/* Units, then input. returns the sum of gain x; -1: impossible */
static double divide(struct split *split, double *bound)
{
    *bound = split_units(split);
    if (*bound < 0.0)
        return -1.0;
    for (uint32_t j = 0; j < split->n; j++) {
        struct split_job *job = &split->job[j];
        const double speed = job->units ? job->asked->tokens_per_s[job->units] : 0.0;
        job->most = fmax(job->least, fmin(speed, job->most));
    }
    return split_input(split);
}

/* Repeated with each job's speed as its cap, so that units which wait for input go to others. */
static void improve(struct split *split, double worth)
{
    struct split_job *kept = malloc(split->n * sizeof *kept);
    double bound;
    for (int round = 0; kept && round < MOST_ROUNDS; round++) {
        memcpy(kept, split->job, split->n * sizeof *kept);
        cap_by_input(split);
        for (uint32_t j = 0; j < split->n; j++)
            if (!split_enough(kept[j].speed, kept[j].most))
                split->job[j].most = kept[j].speed;
        const double now = divide(split, &bound);
        if (!(now > worth * (1.0 + 1e-12))) {
            memcpy(split->job, kept, split->n * sizeof *kept);
            break;
        }
        worth = now;
    }
    free(kept);
}

static ty_status solve(struct split *split, struct ty_split_result *out, struct ty_error *error)
{
    const int objective = split->asked->objective;
    double level = INFINITY, worth, bound;
    out->in_row_s = (double)NAN;
    if (objective == TY_SPLIT_FINISH && split->n_prepared)
        out->in_row_s = split_least_level(split, true);
    if (objective != TY_SPLIT_THROUGHPUT)
        level = split_least_level(split, false);
    if (objective == TY_SPLIT_THROUGHPUT ? !split_keeps(split, INFINITY, false) : isinf(level))
        return error_set(error, TY_ERR_INFEASIBLE, "split",
                         "no division of %u units keeps all minima and deadlines",
                         split->asked->n_units);
    cap_by_input(split);
    worth = divide(split, &bound);
    if (worth < 0.0)
        return error_set(error, TY_ERR_INTERNAL, "split", "units do not add up");
    if (!split_enough(worth, bound))
        improve(split, worth);
    out->value = objective == TY_SPLIT_MAX_MIN ? 1.0 / level : level;
    out->bound = out->value;
    if (objective == TY_SPLIT_THROUGHPUT) {
        out->value = 0.0;
        for (uint32_t j = 0; j < split->n; j++)
            out->value += split->job[j].gain * split->job[j].speed;
        out->bound = split_enough(out->value, bound) ? out->value : bound;
    }
    return TY_OK;
}

/* ---- what is reported --------------------------------------------------------------------- */

static double equal_value(const struct split *split)
{
    double sum = 0.0, heaviest = 0.0, end_s = 0.0, cpu_s = 0.0;
    for (uint32_t j = 0; j < split->n; j++) {
        const struct ty_split_job *job = split->job[j].asked;
        sum += job->weight;
        heaviest = fmax(heaviest, job->weight);
        cpu_s = job->prepare_cpu_s * split->n / split->asked->cores;
        end_s = fmax(end_s, cpu_s + job->tokens / split->job[j].equal);
    }
    return split->asked->objective == TY_SPLIT_THROUGHPUT ? sum
           : split->asked->objective == TY_SPLIT_MAX_MIN  ? 1.0 / heaviest
                                                          : end_s;
}

static void report_free(const struct split *split, struct ty_split_result *out)
{
    const struct ty_split *asked = split->asked;
    out->free_units = asked->n_units;
    out->free_cores = split->loader_cores;
    out->free_cache_bytes = asked->cache_bytes;
    out->free_read_bytes_per_s = asked->read_bytes_per_s;
    for (uint32_t j = 0; j < split->n; j++) {
        const struct ty_split_share *share = &out->share[j];
        out->free_units -= share->units;
        out->free_cores -= share->cores;
        out->free_cache_bytes -= share->cache_bytes;
        out->free_read_bytes_per_s -= share->read_bytes_per_s;
    }
    out->free_cores = fmax(0.0, out->free_cores);
    out->free_cache_bytes = fmax(0.0, out->free_cache_bytes);
    out->free_read_bytes_per_s = fmax(0.0, out->free_read_bytes_per_s);
}

/* Speed with one more of `resource`, and with what is free of the others. */
static double speed_with(const struct split *split, uint32_t j, int resource,
                         const struct ty_split_result *out)
{
    const struct split_job *job = &split->job[j];
    const struct ty_split_share *share = &out->share[j];
    double more[TY_N_SPLIT_RESOURCES] = {0};
    int limit;
    ty_split_resource_name(resource, &more[resource]);
    uint32_t units = share->units + (uint32_t)more[TY_SPLIT_GPUS];
    units = units < job->high ? units : job->high;
    const double gpu_speed = units <= split->asked->n_units ? job->reach[units] : 0.0;
    return speed_of(job, gpu_speed, share->cores + out->free_cores + more[TY_SPLIT_CORES],
                    share->cache_bytes + out->free_cache_bytes + more[TY_SPLIT_CACHE],
                    share->read_bytes_per_s + out->free_read_bytes_per_s + more[TY_SPLIT_STORAGE],
                    &limit);
}

static void report_gains(const struct split *split, uint32_t j, struct ty_split_result *out)
{
    const struct split_job *job = &split->job[j];
    struct ty_split_share *share = &out->share[j];
    const double gpu_speed = share->units ? job->asked->tokens_per_s[share->units] : 0.0;
    speed_of(job, gpu_speed, share->cores, share->cache_bytes, share->read_bytes_per_s,
             &share->limit);
    for (int resource = 0; resource < TY_N_SPLIT_RESOURCES; resource++) {
        const double more = speed_with(split, j, resource, out) - share->tokens_per_s;
        share->gain[resource] = more > share->tokens_per_s * 1e-12 ? more : 0.0;
    }
    for (uint32_t k = share->units + 1; k <= job->high && !share->next_units; k++)
        if (split_allowed(job, k) && job->asked->tokens_per_s[k] > gpu_speed) {
            share->next_units = k;
            share->next_tokens_per_s = job->asked->tokens_per_s[k];
        }
}

static void report(const struct split *split, struct ty_split_result *out)
{
    out->n_jobs = split->n;
    for (uint32_t j = 0; j < split->n; j++) {
        const struct split_job *job = &split->job[j];
        struct ty_split_share *share = &out->share[j];
        const double read_bytes = job->asked->read_bytes * (1.0 - split_hit(job, job->cache_bytes));
        *share =
            (struct ty_split_share){.units = job->units,
                                    .cores = job->speed * job->asked->cpu_s,
                                    .cache_bytes = job->cache_bytes,
                                    .read_bytes_per_s = job->speed * read_bytes,
                                    .tokens_per_s = job->speed,
                                    .equal_tokens_per_s = job->equal,
                                    .prepare_s = job->prepared_s,
                                    .start_s = job->training_s,
                                    .finish_s = job->training_s + job->asked->tokens / job->speed};
    }
    report_free(split, out);
    for (uint32_t j = 0; j < split->n; j++)
        report_gains(split, j, out);
    out->equal = equal_value(split);
}

/* ---- interface ---------------------------------------------------------------------------- */

ty_status ty_split_run(const struct ty_split *asked, struct ty_split_result *out,
                       struct ty_error *error)
{
    ty_status status = check(asked, error);
    if (status != TY_OK)
        return status;
    const size_t row = (size_t)asked->n_units + 1;
    struct split *split = calloc(1, sizeof *split);
    double *numbers = calloc((asked->n_jobs + 2) * row, sizeof *numbers);
    uint32_t *choice = calloc(asked->n_jobs * row, sizeof *choice);
    if (!split || !numbers || !choice)
        status = error_set(error, TY_ERR_NOMEM, "split", "out of memory");
    if (status == TY_OK) {
        *split = (struct split){.asked = asked,
                                .n = asked->n_jobs,
                                .loader_cores = asked->cores,
                                .table = numbers,
                                .reach = numbers + 2 * row,
                                .choice = choice};
    }
    for (uint32_t j = 0; status == TY_OK && j < asked->n_jobs; j++)
        status = open_job(split, j, error);
    struct ty_split_result result = {0};
    if (status == TY_OK)
        status = solve(split, &result, error);
    if (status == TY_OK) {
        report(split, &result);
        *out = result;
    }
    free(choice);
    free(numbers);
    free(split);
    return status;
}
