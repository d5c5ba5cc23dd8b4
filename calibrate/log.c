/* SPDX-License-Identifier: MIT
 * Collecting samples and facts into runs, and reading a whole log. */
#include "calibrate/log.h"
#include "sim/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECENT_SAMPLES 8     /* ranks are at most so many lines of steps out of order */
#define SAME_TIME_S    2.0   /* ranks print the same step within this */
#define SAME_PACE      0.03  /* and at the same pace, */
#define SAME_VALUE     0.001 /* or, without time stamps, the same value: else it is another launch */

struct log_sample log_sample_none(const struct log_line *line)
{
    return (struct log_sample){.iteration = NAN,
                               .time_s = line->time_s,
                               .step_s = NAN,
                               .gbs = NAN,
                               .tokens = NAN,
                               .tokens_per_s = NAN,
                               .gpu_tokens_per_s = NAN,
                               .samples_per_s = NAN,
                               .gpu_flop_per_s = NAN,
                               .skipped = NAN,
                               .rate_error = NAN,
                               .bar_total = NAN,
                               .pace = NAN,
                               .line = line->number};
}

static struct log_memory no_memory(void)
{
    return (struct log_memory){.allocated_bytes = NAN,
                               .reserved_bytes = NAN,
                               .device_bytes = NAN,
                               .other_bytes = NAN,
                               .rank = NAN};
}

void log_memory_max(double *slot, double bytes)
{
    if (bytes > 0.0 && !(*slot >= bytes))
        *slot = bytes;
}

void log_memory_merge(struct log_memory *to, const struct log_memory *from)
{
    if (!(to->reserved_bytes >= from->reserved_bytes) && isfinite(from->rank))
        to->rank = from->rank;
    log_memory_max(&to->allocated_bytes, from->allocated_bytes);
    log_memory_max(&to->reserved_bytes, from->reserved_bytes);
    log_memory_max(&to->device_bytes, from->device_bytes);
    log_memory_max(&to->other_bytes, from->other_bytes);
}

static struct log_run *current_run(struct log *log)
{
    return log->n_runs ? &log->runs[log->n_runs - 1] : NULL;
}

struct log_facts *log_facts_now(struct log *log)
{
    return &log->pending;
}

struct log_memory *log_memory_now(struct log *log)
{
    struct log_run *run = current_run(log);
    return run ? &run->memory : &log->pending_memory;
}

double log_fact_value(const struct log *log, enum log_fact fact)
{
    if (log_fact_known(&log->pending, fact))
        return log->pending.value[fact];
    const struct log_run *run = log->n_runs ? &log->runs[log->n_runs - 1] : NULL;
    return run && log_fact_known(&run->facts, fact) ? run->facts.value[fact] : (double)NAN;
}

void log_framework_seen(struct log *log, const char *name, uint32_t rank, uint32_t n_warm_up)
{
    if (rank > log->framework.rank)
        log->framework = (struct log_framework){.name = name, .rank = rank, .n_warm_up = n_warm_up};
}

/* ---- samples ------------------------------------------------------------------------------ */

static bool same(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

static bool is_copy(const struct log_sample *old, const struct log_sample *sample)
{
    const bool timed = isfinite(old->time_s) && isfinite(sample->time_s);
    if (old->iteration != sample->iteration ||
        (timed && fabs(old->time_s - sample->time_s) > SAME_TIME_S))
        return false;
    if (isfinite(old->step_s) && isfinite(sample->step_s))
        return same(old->step_s, sample->step_s, timed ? SAME_PACE : SAME_VALUE);
    if (timed)
        return true; /* rates of the first step differ by more than the pace may */
    if (isfinite(old->gpu_tokens_per_s) && isfinite(sample->gpu_tokens_per_s))
        return same(old->gpu_tokens_per_s, sample->gpu_tokens_per_s, SAME_VALUE);
    return true;
}

static void fill(double *to, double from)
{
    if (isnan(*to))
        *to = from;
}

static bool merge_copy(struct log *log, const struct log_run *run, const struct log_sample *sample)
{
    for (size_t i = 1; i <= RECENT_SAMPLES && i <= run->n; i++) {
        struct log_sample *old = &log->samples[run->first + run->n - i];
        if (!is_copy(old, sample))
            continue;
        fill(&old->time_s, sample->time_s);
        fill(&old->step_s, sample->step_s);
        fill(&old->gpu_tokens_per_s, sample->gpu_tokens_per_s);
        fill(&old->samples_per_s, sample->samples_per_s);
        old->n_copies++;
        return true;
    }
    return false;
}

/* Room for one more element, by doubling. */
static bool make_room(struct log *log, void **array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    const size_t grown = *capacity ? 2 * *capacity : 16;
    void *bigger = grown < SIZE_MAX / 2 / size ? realloc(*array, grown * size) : NULL;
    log->failed |= !bigger;
    if (!bigger)
        return false;
    *array = bigger;
    *capacity = grown;
    return true;
}

static struct log_run *begin_run(struct log *log)
{
    if (!make_room(log, (void **)&log->runs, log->n_runs, &log->runs_capacity, sizeof *log->runs))
        return NULL;
    struct log_run *run = &log->runs[log->n_runs++];
    *run = (struct log_run){.first = log->n_samples, .memory = log->pending_memory};
    log->pending_memory = no_memory();
    return run;
}

static bool append(struct log *log, struct log_sample **array, size_t *n, size_t *capacity,
                   const struct log_sample *sample)
{
    if (!make_room(log, (void **)array, *n, capacity, sizeof **array))
        return false;
    (*array)[(*n)++] = *sample;
    return true;
}

void log_add(struct log *log, const struct log_sample *sample)
{
    struct log_run *run = current_run(log);
    if (run && merge_copy(log, run, sample))
        return;
    const double last =
        run && run->n ? log->samples[run->first + run->n - 1].iteration : (double)-INFINITY;
    if (!run || sample->iteration <= last)
        run = begin_run(log);
    if (!run || !append(log, &log->samples, &log->n_samples, &log->samples_capacity, sample))
        return;
    struct log_sample *added = &log->samples[log->n_samples - 1];
    added->launch = log->launch_seen;
    added->event = log->event_seen;
    log->launch_seen = log->event_seen = false;
    run->n++;
    log_facts_merge(&run->facts, &log->pending);
    log->pending = (struct log_facts){.value = {0}};
}

void log_add_spare(struct log *log, const struct log_sample *sample)
{
    if (log->n_samples == 0 || log->n_spare < 4096) /* enough to check the better source by */
        (void)append(log, &log->spare, &log->n_spare, &log->spare_capacity, sample);
}

/* ---- the whole log ------------------------------------------------------------------------ */

static void take_line(struct log *log, const struct log_line *line)
{
    static bool (*const parsers[])(struct log *, const struct log_line *) = {
        log_take_mlperf, log_take_pipes,  log_take_deepspeed, log_take_other,
        log_take_lists,  log_take_memory, log_take_plan,
    };
    for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++)
        if (parsers[i](log, line))
            return;
}

static void log_start(struct log *log)
{
    *log = (struct log){.framework = {.name = "unknown"}, .pending_memory = no_memory()};
}

static void log_free(struct log *log)
{
    free(log->runs);
    free(log->samples);
    free(log->spare);
}

/* Of several progress bars (evaluation, other stages) the one with most steps is the training. */
static void use_spare(struct log *log)
{
    double total = 0.0;
    for (size_t i = 0; i < log->n_spare; i++)
        if (log->spare[i].bar_total > total)
            total = log->spare[i].bar_total;
    for (size_t i = 0; i < log->n_spare && !log->failed; i++)
        if (!(log->spare[i].bar_total < total))
            log_add(log, &log->spare[i]);
}

static void collect(struct log *log, char *text, size_t bytes)
{
    struct log_lines lines;
    struct log_line line;
    log_lines_start(&lines, text, bytes);
    while (!log->failed && log_lines_next(&lines, &line))
        take_line(log, &line);
    if (log->n_samples == 0)
        use_spare(log);
    struct log_run *run = current_run(log);
    if (!run && !log->failed)
        run = begin_run(log);
    if (run)
        log_facts_merge(&run->facts, &log->pending);
}

static uint32_t count_facts(const struct log_facts *facts)
{
    uint32_t n = 0;
    for (int i = 0; i < LOG_N_FACTS; i++)
        n += facts->origin[i] == LOG_LOGGED;
    return n;
}

/* Any text may be a log with an uncommon beginning, so the score is never 0. */
uint32_t training_log_sniff(const struct import_file *file)
{
    const size_t bytes = file->bytes < IMPORT_SNIFF_BYTES ? file->bytes : IMPORT_SNIFF_BYTES;
    char *text = malloc(bytes + 1);
    if (!text)
        return 1;
    memcpy(text, file->text, bytes);
    text[bytes] = '\0';
    struct log log;
    log_start(&log);
    collect(&log, text, bytes);
    const bool facts = log.n_runs && count_facts(&log.runs[0].facts) >= 3;
    const uint32_t score = log.n_samples ? 60 : facts ? 10 : 1;
    log_free(&log);
    free(text);
    return score;
}

static ty_status add_runs(struct log *log, const struct import_file *file, struct ty_import *out,
                          struct ty_error *error)
{
    log_join_restarts(log);
    for (size_t i = 0; i < log->n_runs && !log->failed; i++) {
        struct log_series *series = malloc(sizeof *series);
        struct log_answer answer;
        if (!series) {
            log->failed = true;
            break;
        }
        log_series_analyse(log, &log->runs[i], series);
        log_derive(log, &log->runs[i], series, &answer);
        const ty_status status =
            log->failed ? TY_ERR_NOMEM
                        : log_record(log, file, &log->runs[i], series, &answer, out, error);
        free(series);
        if (status != TY_OK && !log->failed)
            return status;
    }
    return TY_OK;
}

ty_status training_log_read(struct import_file *file, struct ty_import *out, struct ty_error *error)
{
    struct log log;
    log_start(&log);
    collect(&log, file->text, file->bytes);
    ty_status status = TY_OK;
    if (!log.failed && log.n_samples == 0 && count_facts(&log.runs[0].facts) < 3)
        status = error_set(error, TY_ERR_INPUT, file->path,
                           "holds no line with a step time or a token rate of a known format "
                           "(docs/import.md lists them)");
    else
        status = add_runs(&log, file, out, error);
    if (log.failed)
        status = error_set(error, TY_ERR_NOMEM, file->path, "no memory for its lines");
    log_free(&log);
    return status;
}
