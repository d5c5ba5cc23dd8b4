/* SPDX-License-Identifier: MIT
 *
 * From kernels to one step: the steps by their marks, the busiest device, and a sweep over the ends
 * of all its kernels. Between two ends the set of running kernels is constant: the time goes to
 * the first activity among them, or is idle, so that the parts tile the step.
 */
#include "calibrate/timeline.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SPANS   50000000u /* 1.6 GB; a profile of a few steps has thousands to millions */
#define MAX_DEVICES 64
#define MAX_MARKS   4096 /* steps */

/* ---- collecting ----------------------------------------------------------------------------- */

void spans_free(struct spans *spans)
{
    free(spans->span);
    free(spans->mark);
    *spans = (struct spans){0};
}

/* Room for one more; false when out of memory. */
static bool grow(void **array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 256;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = more;
    return true;
}

void spans_add(struct spans *spans, const struct span *span, const char *name)
{
    const double time_s = span->end_s - span->start_s;
    if (!(time_s >= 0.0) || !isfinite(time_s) || span->device >= MAX_DEVICES)
        return;
    spans->too_many |= spans->n >= MAX_SPANS;
    spans->no_memory |= spans->too_many || !grow((void **)&spans->span, spans->n, &spans->capacity,
                                                 sizeof *spans->span);
    if (spans->no_memory)
        return;
    spans->span[spans->n++] = *span;
    spans->last_end_s = spans->n == 1 ? span->end_s : fmax(spans->last_end_s, span->end_s);
    if (span->activity == TY_ACTIVITY_UNKNOWN && time_s >= spans->longest_s) {
        spans->longest_s = time_s;
        text_format(spans->longest, sizeof spans->longest, "%s", name);
    }
}

/* "ProfilerStep#3", "iteration 7", "train_step_12", "Step: 4": the last number of a short text that
 * speaks of a step. */
static bool is_step(const char *text, uint32_t *number)
{
    char lower[64];
    size_t n = 0;
    for (; text[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)text[n]);
    lower[n] = '\0';
    if (text[n] || n == 0 || !isdigit((unsigned char)text[n - 1]) ||
        (!strstr(lower, "step") && !strstr(lower, "iter")))
        return false;
    static const char *const parts[] = {"optimizer", "forward", "backward", "micro"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(lower, parts[i])) /* of a step */
            return false;
    size_t first = n;
    while (first > 0 && isdigit((unsigned char)text[first - 1]) && n - first < 9)
        first--;
    *number = (uint32_t)strtoul(text + first, NULL, 10);
    return true;
}

void spans_mark(struct spans *spans, const char *text, double start_s, bool of_gpu)
{
    struct mark mark = {.start_s = start_s, .of_gpu = of_gpu};
    if (!is_step(text, &mark.number) || !isfinite(start_s) || spans->n_marks == MAX_MARKS)
        return;
    for (size_t i = spans->n_marks; i > 0; i--) { /* one step is marked once a thread or stream */
        struct mark *known = &spans->mark[i - 1];
        if (known->number != mark.number || known->of_gpu != of_gpu)
            continue;
        known->start_s = fmin(known->start_s, start_s);
        return;
    }
    if (!grow((void **)&spans->mark, spans->n_marks, &spans->mark_capacity, sizeof *spans->mark)) {
        spans->no_memory = true;
        return;
    }
    spans->mark[spans->n_marks++] = mark;
}

/* ---- the window ----------------------------------------------------------------------------- */

struct window {
    double start_s, end_s;
    uint32_t n_steps;
    bool marked;
};

/* From the first mark to the last; at least `least` of them. */
static bool marks_window(const struct spans *spans, bool of_gpu, uint32_t least,
                         struct window *window)
{
    uint32_t n = 0;
    for (size_t i = 0; i < spans->n_marks; i++) {
        if (spans->mark[i].of_gpu != of_gpu)
            continue;
        const double start_s = spans->mark[i].start_s;
        window->start_s = n ? fmin(window->start_s, start_s) : start_s;
        window->end_s = n ? fmax(window->end_s, start_s) : start_s;
        n++;
    }
    if (n == 1) /* one step: to the end of what it started */
        window->end_s = spans->last_end_s;
    window->n_steps = n > 1 ? n - 1 : 1;
    window->marked = true;
    return n >= least && window->end_s > window->start_s;
}

static struct window find_window(const struct spans *spans, uint32_t n_steps)
{
    struct window window;
    for (uint32_t least = 2; n_steps == 0 && least > 0; least--)
        if (marks_window(spans, true, least, &window) || marks_window(spans, false, least, &window))
            return window;
    window = (struct window){.start_s = spans->span[0].start_s,
                             .end_s = spans->last_end_s,
                             .n_steps = n_steps ? n_steps : 1};
    for (size_t i = 1; i < spans->n; i++)
        window.start_s = fmin(window.start_s, spans->span[i].start_s);
    return window;
}

/* ---- sweep ---------------------------------------------------------------------------------- */

struct end {
    double time_s;
    bool begins;
    uint8_t activity;
};

static int by_time(const void *a, const void *b)
{
    const double left = ((const struct end *)a)->time_s, right = ((const struct end *)b)->time_s;
    return (left > right) - (left < right);
}

static bool computes(uint32_t activity)
{
    return activity <= TY_ACTIVITY_UNKNOWN;
}

static bool communicates(uint32_t activity)
{
    return activity >= TY_ACTIVITY_ALL_REDUCE && activity <= TY_ACTIVITY_OTHER_COMM;
}

/* `time_s` during which `running` kernels of each activity run. */
static void account(const uint32_t running[TY_N_ACTIVITIES], double time_s, struct ty_timeline *out)
{
    bool first = true, comm = false, compute = false;
    for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++) {
        if (!running[i])
            continue;
        out->busy_s[i] += time_s;
        out->alone_s[i] += first ? time_s : 0.0;
        first = false;
        compute |= computes(i);
        comm |= communicates(i);
    }
    out->idle_s += first ? time_s : 0.0;
    out->comm_s += comm ? time_s : 0.0;
    out->exposed_comm_s += comm && !compute ? time_s : 0.0;
}

static void sweep(struct end *ends, size_t n, const struct window *window, struct ty_timeline *out)
{
    uint32_t running[TY_N_ACTIVITIES] = {0};
    double now_s = window->start_s;
    qsort(ends, n, sizeof *ends, by_time);
    for (size_t i = 0; i < n; i++) {
        if (ends[i].time_s > now_s)
            account(running, ends[i].time_s - now_s, out);
        now_s = ends[i].time_s;
        if (ends[i].begins)
            running[ends[i].activity]++;
        else
            running[ends[i].activity]--;
    }
    account(running, window->end_s - now_s, out);
}

static uint32_t busiest_device(const struct spans *spans, uint32_t *n_devices)
{
    double busy_s[MAX_DEVICES] = {0};
    bool seen[MAX_DEVICES] = {false};
    uint32_t busiest = 0;
    for (size_t i = 0; i < spans->n; i++) {
        const struct span *span = &spans->span[i];
        busy_s[span->device] += computes(span->activity) ? span->end_s - span->start_s : 0.0;
        seen[span->device] = true;
    }
    *n_devices = 0;
    for (uint32_t i = 0; i < MAX_DEVICES; i++) {
        *n_devices += seen[i];
        if (seen[i] && (!seen[busiest] || busy_s[i] > busy_s[busiest]))
            busiest = i;
    }
    return busiest;
}

static void per_step(struct ty_timeline *timeline)
{
    const double n = timeline->n_steps;
    timeline->step_s /= n;
    timeline->idle_s /= n;
    timeline->comm_s /= n;
    timeline->exposed_comm_s /= n;
    for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++) {
        timeline->busy_s[i] /= n;
        timeline->alone_s[i] /= n;
    }
}

ty_status spans_timeline(struct spans *spans, uint32_t n_steps, struct ty_timeline *out,
                         const char *path, struct ty_error *error)
{
    if (spans->too_many)
        return error_set(error, TY_ERR_INPUT, path, "has more than %u kernels; profile fewer steps",
                         MAX_SPANS);
    if (spans->no_memory)
        return error_set(error, TY_ERR_NOMEM, path, "no memory for its kernels");
    if (spans->n == 0)
        return error_set(error, TY_ERR_INPUT, path, "holds no GPU kernel");
    const struct window window = find_window(spans, n_steps);
    struct ty_timeline timeline = {.step_s = window.end_s - window.start_s,
                                   .n_steps = window.n_steps,
                                   .marked = window.marked};
    timeline.device = busiest_device(spans, &timeline.n_devices);
    struct end *ends = malloc(2 * spans->n * sizeof *ends);
    if (!ends)
        return error_set(error, TY_ERR_NOMEM, path, "no memory for its kernels");
    size_t n = 0;
    for (size_t i = 0; i < spans->n; i++) {
        const struct span *span = &spans->span[i];
        const double start_s = fmax(span->start_s, window.start_s);
        const double end_s = fmin(span->end_s, window.end_s);
        if (span->device != timeline.device || !(end_s > start_s))
            continue;
        ends[n++] = (struct end){start_s, true, span->activity};
        ends[n++] = (struct end){end_s, false, span->activity};
        timeline.n_kernels++;
    }
    sweep(ends, n, &window, &timeline);
    free(ends);
    per_step(&timeline);
    text_format(timeline.unknown, sizeof timeline.unknown, "%s", spans->longest);
    if (timeline.n_kernels == 0)
        return error_set(error, TY_ERR_INPUT, path, "no GPU kernel runs in its marked steps");
    *out = timeline;
    return TY_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

ty_status ty_timeline_load(const char *path, uint32_t n_steps, struct ty_timeline *out,
                           struct ty_error *error)
{
    struct spans spans = {0};
    char head[17] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, path, "cannot be read");
    const size_t n = fread(head, 1, 16, file);
    fclose(file);
    ty_status status;
    if (n >= 2 && memcmp(head, "\x1f\x8b", 2) == 0)
        return error_set(error, TY_ERR_INPUT, path, "is compressed; unpack it with gunzip first");
    if (n == 16 && memcmp(head, "SQLite format 3", 15) == 0)
        status = timeline_read_nsys(path, &spans, error);
    else if (head[strspn(head, " \t\r\n")] == '{' || head[strspn(head, " \t\r\n")] == '[')
        status = timeline_read_chrome(path, &spans, error);
    else
        status = error_set(error, TY_ERR_INPUT, path,
                           "is neither an SQLite export of Nsight Systems (nsys export --type "
                           "sqlite) nor a JSON trace of the PyTorch profiler");
    if (status == TY_OK)
        status = spans_timeline(&spans, n_steps, out, path, error);
    spans_free(&spans);
    return status;
}
