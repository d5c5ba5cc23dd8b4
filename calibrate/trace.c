/* SPDX-License-Identifier: MIT
 *
 * Job traces: texts to numbers, the builder, and what all forms need at the end: restarts of one
 * job are joined, times count from the first submission where the file has dates. */
#include "calibrate/trace.h"
#include "models/pool_spread.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts -------------------------------------------------------------------------------- */

static bool is_none(const char *text)
{
    static const char *const none[] = {"",    "None", "Unknown",   "NULL",           "N/A",
                                       "nan", "NaN",  "UNLIMITED", "Partition_Limit"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (strcmp(text, none[i]) == 0)
            return true;
    return false;
}

double trace_number(const char *text, bool *bad)
{
    double value;
    if (is_none(text))
        return NAN;
    const size_t length = strlen(text);
    if (number_parse(text, length, &value) == length && isfinite(value))
        return value;
    *bad = true;
    return NAN;
}

/* Days from 1970-01-01 of a Gregorian date; years start in March, eras last 400 years. Source:
 * H. Hinnant, chrono-compatible low-level date algorithms, days_from_civil. */
static int64_t days_of(int year, int month, int day)
{
    year -= month <= 2;
    const int era = year / 400, year_of_era = year - era * 400;
    const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * (int64_t)146097 + day_of_era - 719468;
}

/* "+08:00", "+0800", "Z" or nothing, in seconds. */
static double zone_s(const char *text, bool *bad)
{
    int hours = 0, minutes = 0, end = 0;
    if (*text == '\0' || strcmp(text, "Z") == 0)
        return 0.0;
    const bool colon = strchr(text, ':') != NULL;
    const int n = sscanf(text + 1, colon ? "%2d:%2d%n" : "%2d%2d%n", &hours, &minutes, &end);
    if ((*text != '+' && *text != '-') || n < 2 || text[1 + end] || hours < 0 || minutes < 0)
        *bad = true;
    return (*text == '-' ? -60.0 : 60.0) * (60 * hours + minutes);
}

double trace_time_s(const char *text, bool *dated, bool *bad)
{
    int year, month, day, hour, minute, second, end = 0;
    char between = ' ';
    const int n = sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &year, &month, &day, &between, &hour,
                         &minute, &second, &end);
    if (n < 7 || end == 0)
        return trace_number(text, bad);
    if ((between != ' ' && between != 'T') || year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60) {
        *bad = true;
        return NAN;
    }
    double fraction = 0.0;
    if (text[end] == '.') {
        const size_t digits = strspn(text + end + 1, "0123456789");
        char copy[24];
        text_format(copy, sizeof copy, "0.%.*s", digits < 16 ? (int)digits : 16, text + end + 1);
        *bad |= digits == 0 || number_parse(copy, strlen(copy), &fraction) == 0;
        end += 1 + (int)digits;
    }
    *dated = true;
    return (double)days_of(year, month, day) * 86400.0 + hour * 3600.0 + minute * 60.0 + second +
           fraction - zone_s(text + end, bad);
}

/* ---- the builder -------------------------------------------------------------------------- */

void trace_skip(struct trace_builder *builder, enum ty_trace_note why)
{
    builder->trace.notes[why]++;
    if (why == TY_TRACE_BAD && builder->trace.bad_line == 0)
        builder->trace.bad_line = builder->line;
}

static const char *keep_text(struct trace_builder *builder, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = *text ? arena_get(builder->arena, bytes, 1) : NULL;
    return copy ? memcpy(copy, text, bytes) : *text ? NULL : "";
}

/* Index of a queue by name, new if need be; POOL of 65536 at most. */
static bool find_queue(struct trace_builder *builder, const char *name, uint32_t *out)
{
    struct ty_trace *trace = &builder->trace;
    for (*out = 0; *out < trace->n_queues; ++*out)
        if (strncmp(trace->queues[*out].name, name, sizeof trace->queues->name - 1) == 0)
            return true;
    if (trace->n_queues == 65536 ||
        !array_grow(&builder->arena->allocator, (void **)&trace->queues, &builder->queues_capacity,
                    (size_t)trace->n_queues + 1, sizeof *trace->queues))
        return false;
    struct ty_pool_queue *queue = &trace->queues[trace->n_queues++];
    *queue = (struct ty_pool_queue){.weight = NAN, .quota_gpus = NAN, .borrow_gpus = NAN};
    text_format(queue->name, sizeof queue->name, "%s", name);
    return true;
}

bool trace_add(struct trace_builder *builder, const char *name, const char *queue,
               const struct ty_pool_job *job)
{
    struct ty_trace *trace = &builder->trace;
    const struct ty_allocator *allocator = &builder->arena->allocator;
    if (builder->only && strcmp(builder->only, queue) != 0)
        return true;
    struct ty_pool_job copy = *job;
    const char *kept = keep_text(builder, name);
    copy.gpu = job->gpu ? keep_text(builder, job->gpu) : NULL;
    copy.curve = job->curve ? keep_text(builder, job->curve) : NULL;
    if (!kept || (job->gpu && !copy.gpu) || (job->curve && !copy.curve) ||
        !find_queue(builder, queue, &copy.queue) ||
        !array_grow(allocator, (void **)&trace->jobs, &builder->jobs_capacity, trace->n_jobs + 1,
                    sizeof *trace->jobs) ||
        !array_grow(allocator, (void **)&trace->names, &builder->names_capacity, trace->n_jobs + 1,
                    sizeof *trace->names))
        return false;
    if (!isnan(builder->wait_s)) {
        if (!array_grow(allocator, (void **)&builder->waits, &builder->waits_capacity,
                        builder->n_waits + 1, sizeof *builder->waits))
            return false;
        builder->waits[builder->n_waits++] = builder->wait_s;
    }
    if (trace->n_jobs > 0 && trace->jobs[trace->n_jobs - 1].submit_s > copy.submit_s)
        trace->notes[TY_TRACE_UNSORTED]++;
    trace->notes[TY_TRACE_SHARES] += copy.share < 1.0;
    trace->names[trace->n_jobs] = kept;
    trace->jobs[trace->n_jobs++] = copy;
    return true;
}

/* ---- at the end --------------------------------------------------------------------------- */

struct named {
    const char *name;
    double submit_s;
    uint64_t index;
};

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    const int names = strcmp(a->name, b->name);
    if (names != 0)
        return names;
    if (a->submit_s != b->submit_s)
        return a->submit_s < b->submit_s ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Rows of one name are runs of one job: their run times add up under the first submission. */
static bool join_restarts(struct ty_trace *trace)
{
    struct named *named = malloc((trace->n_jobs + 1) * sizeof *named);
    if (!named)
        return false;
    for (uint64_t i = 0; i < trace->n_jobs; i++)
        named[i] = (struct named){trace->names[i], trace->jobs[i].submit_s, i};
    qsort(named, trace->n_jobs, sizeof *named, compare_named);
    uint64_t first = 0;
    for (uint64_t i = 1; i < trace->n_jobs; i++) {
        if (!*named[i].name || strcmp(named[i].name, named[first].name) != 0) {
            first = i;
            continue;
        }
        trace->jobs[named[first].index].duration_s += trace->jobs[named[i].index].duration_s;
        trace->jobs[named[i].index].gpus = 0;
        trace->notes[TY_TRACE_RESTARTS]++;
    }
    free(named);
    uint64_t n = 0;
    for (uint64_t i = 0; i < trace->n_jobs; i++) {
        if (trace->jobs[i].gpus == 0)
            continue;
        trace->jobs[n] = trace->jobs[i];
        trace->names[n++] = trace->names[i];
    }
    trace->n_jobs = n;
    return true;
}

static void start_at_zero(struct ty_trace *trace)
{
    double first_s = INFINITY;
    for (uint64_t i = 0; i < trace->n_jobs; i++)
        first_s = fmin(first_s, trace->jobs[i].submit_s);
    for (uint64_t i = 0; i < trace->n_jobs; i++) {
        trace->jobs[i].submit_s -= first_s;
        trace->jobs[i].deadline_s -= first_s;
    }
}

ty_status trace_first_byte(const char *path, char *out, struct ty_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, path, "cannot be opened");
    int byte = getc(file);
    while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
        byte = getc(file);
    *out = byte == EOF ? '\0' : (char)byte;
    const bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? error_set(error, TY_ERR_IO, path, "cannot be read") : TY_OK;
}

static ty_status read_any(struct trace_builder *builder, const char *format, struct ty_error *error)
{
    char first;
    ty_status status = trace_first_byte(builder->path, &first, error);
    if (status != TY_OK)
        return status;
    const bool automatic = !format || strcmp(format, "auto") == 0;
    if (automatic ? first == '[' : strcmp(format, "philly") == 0)
        return trace_read_philly(builder, error);
    return trace_read_table(builder, automatic ? NULL : format, error);
}

static ty_status finish(struct trace_builder *builder, struct ty_error *error)
{
    struct ty_trace *trace = &builder->trace;
    if (!join_restarts(trace))
        return error_set(error, TY_ERR_NOMEM, builder->path, "out of memory");
    if (trace->n_jobs == 0)
        return error_set(error, TY_ERR_INPUT, builder->path,
                         "no job that ran on a GPU among %llu rows%s%s",
                         (unsigned long long)trace->notes[TY_TRACE_ROWS],
                         builder->only ? " in queue " : "", builder->only ? builder->only : "");
    if (trace->dated)
        start_at_zero(trace);
    trace->recorded_wait_s = pool_spread(builder->waits, builder->n_waits);
    return TY_OK;
}

ty_status ty_trace_read(const char *path, const char *format, const char *queue,
                        struct ty_trace *out, struct ty_error *error)
{
    struct trace_builder builder = {.path = path, .only = queue};
    builder.arena = malloc(sizeof *builder.arena);
    if (!builder.arena)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    arena_init(builder.arena, NULL);
    builder.trace.memory = builder.arena;
    ty_status status = read_any(&builder, format, error);
    if (status == TY_OK)
        status = finish(&builder, error);
    if (status == TY_OK)
        *out = builder.trace;
    else
        ty_trace_free(&builder.trace);
    free(builder.waits);
    return status;
}

void ty_trace_free(struct ty_trace *trace)
{
    if (trace->memory)
        arena_destroy(trace->memory);
    free(trace->memory);
    free(trace->jobs);
    free((void *)trace->names);
    free(trace->queues);
    *trace = (struct ty_trace){0};
}

const char *ty_trace_format(size_t index)
{
    const char *name = trace_table_format(index);
    if (name || index == 0)
        return name;
    return trace_table_format(index - 1) ? "philly" : NULL;
}

const char *ty_trace_note(int note, const char **text)
{
    static const char *const names[][2] = {
#define X(id, key, meaning) {key, meaning},
        TY_TRACE_NOTE_LIST(X)
#undef X
    };
    if (note < 0 || note >= TY_N_TRACE_NOTES)
        return NULL;
    if (text)
        *text = names[note][1];
    return names[note][0];
}
