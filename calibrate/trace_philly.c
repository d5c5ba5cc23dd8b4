/* SPDX-License-Identifier: MIT
 *
 * The job log of Microsoft's Philly cluster: one JSON array of jobs, each with its attempts, each
 * with the GPUs of its machines. The array is cut into jobs before parsing, so that the size of
 * the file is no limit. Source: msr-fiddle/philly-traces, README, cluster_job_log. */
#include "calibrate/trace.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_JOB_BYTES = 1 << 22 };

/* Cuts a stream into the objects of its outer array. */
struct cutter {
    FILE *file;
    char *text; /* [MAX_JOB_BYTES + 1] */
    size_t n;
    uint64_t line;
};

/* Reads the next object; false: none, or the text is longer than a job can be. */
static bool next_object(struct cutter *cutter)
{
    uint32_t depth = 0;
    bool quoted = false, escaped = false;
    cutter->n = 0;
    for (int c = getc(cutter->file); c != EOF; c = getc(cutter->file)) {
        cutter->line += c == '\n';
        if (depth == 0 && c != '{')
            continue;
        if (cutter->n == MAX_JOB_BYTES)
            return false;
        cutter->text[cutter->n++] = (char)c;
        if (quoted) {
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        quoted = c == '"';
        depth += c == '{';
        depth -= c == '}';
        if (depth == 0)
            return true;
    }
    return false;
}

static const char *text_of(const struct json_at *object, const char *key)
{
    struct json_at at;
    const char *text = "";
    if (json_find(object, key, &at) && json_get_text(&at, &text, NULL) != TY_OK)
        return "";
    return text;
}

/* GPUs and machines of an attempt. */
static void count_gpus(const struct json_at *attempt, uint32_t *gpus, uint32_t *machines)
{
    struct json_at detail, machine = {0}, list;
    *gpus = *machines = 0;
    if (!json_find(attempt, "detail", &detail))
        return;
    for (; json_next(&detail, &machine); ++*machines)
        if (json_find(&machine, "gpus", &list))
            *gpus += json_size(&list);
}

struct attempts {
    double run_s, first_start_s; /* of all; NAN: none started */
    uint32_t n, gpus, machines;
    bool open, bad;
};

static struct attempts add_attempts(const struct json_at *job, bool *dated)
{
    struct attempts sum = {.first_start_s = NAN};
    struct json_at list, attempt = {0};
    if (!json_find(job, "attempts", &list))
        return sum;
    while (json_next(&list, &attempt)) {
        uint32_t gpus, machines;
        const double start_s = trace_time_s(text_of(&attempt, "start_time"), dated, &sum.bad);
        const double end_s = trace_time_s(text_of(&attempt, "end_time"), dated, &sum.bad);
        if (isnan(start_s))
            continue;
        count_gpus(&attempt, &gpus, &machines);
        if (sum.n++ == 0)
            sum.first_start_s = start_s;
        sum.open = isnan(end_s);
        sum.bad |= end_s < start_s;
        sum.run_s += isnan(end_s) ? 0.0 : end_s - start_s;
        if (gpus > sum.gpus) {
            sum.gpus = gpus;
            sum.machines = machines;
        }
    }
    return sum;
}

static bool read_job(struct trace_builder *builder, const struct json_at *at)
{
    struct ty_trace *trace = &builder->trace;
    bool bad = false;
    const double submit_s = trace_time_s(text_of(at, "submitted_time"), &trace->dated, &bad);
    const struct attempts attempts = add_attempts(at, &trace->dated);
    builder->wait_s = attempts.first_start_s - submit_s;
    struct ty_pool_job job;
    ty_pool_job_init(&job);
    job.submit_s = submit_s;
    job.duration_s = attempts.run_s;
    job.gpus = attempts.gpus;
    if (attempts.machines > 1 && attempts.gpus % attempts.machines == 0)
        job.worker = attempts.gpus / attempts.machines;
    if (bad || attempts.bad || isnan(submit_s))
        trace_skip(builder, TY_TRACE_BAD);
    else if (attempts.n == 0)
        trace_skip(builder, TY_TRACE_NEVER_RAN);
    else if (attempts.open)
        trace_skip(builder, TY_TRACE_NO_END);
    else if (attempts.gpus == 0)
        trace_skip(builder, TY_TRACE_NO_GPU);
    else if (!(attempts.run_s > 0.0))
        trace_skip(builder, TY_TRACE_NO_TIME);
    else {
        trace->notes[TY_TRACE_RESTARTS] += attempts.n - 1;
        return trace_add(builder, text_of(at, "jobid"), text_of(at, "vc"), &job);
    }
    return true;
}

static ty_status read_jobs(struct trace_builder *builder, struct cutter *cutter,
                           struct ty_error *error)
{
    while (next_object(cutter)) {
        builder->line = cutter->line;
        builder->trace.notes[TY_TRACE_ROWS]++;
        struct json_document document = {0};
        ty_status status = json_parse(cutter->text, cutter->n, builder->path, &document, error);
        if (status == TY_OK && !read_job(builder, &document.top))
            status = error_set(error, TY_ERR_NOMEM, builder->path, "out of memory");
        json_free(&document);
        if (status != TY_OK)
            return status;
    }
    if (cutter->n > 0)
        return error_set(error, TY_ERR_INPUT, builder->path,
                         "line %llu: a job that does not end, or is longer than 4 MiB",
                         (unsigned long long)cutter->line);
    return TY_OK;
}

ty_status trace_read_philly(struct trace_builder *builder, struct ty_error *error)
{
    text_format(builder->trace.format, sizeof builder->trace.format, "philly");
    struct cutter cutter = {.file = fopen(builder->path, "rb"), .line = 1};
    if (!cutter.file)
        return error_set(error, TY_ERR_IO, builder->path, "cannot be opened");
    cutter.text = malloc(MAX_JOB_BYTES + 1);
    ty_status status = cutter.text ? read_jobs(builder, &cutter, error)
                                   : error_set(error, TY_ERR_NOMEM, builder->path, "out of memory");
    free(cutter.text);
    fclose(cutter.file);
    return status;
}
