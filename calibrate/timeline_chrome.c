/* SPDX-License-Identifier: MIT
 *
 * JSON trace of the PyTorch profiler (Kineto): an object with "traceEvents", or that array alone.
 * Kernels are complete events (ph X) of category "kernel", "gpu_memcpy" or "gpu_memset", times in
 * microseconds, the device in args.device or as the process. Steps are annotations
 * "ProfilerStep#N" of the host ("user_annotation") and of the device ("gpu_user_annotation").
 */
#include "calibrate/json_stream.h"
#include "calibrate/timeline.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

struct event {
    char name[JSON_STREAM_TEXT], category[32], phase[4];
    double ts_us, dur_us, pid, device;
};

struct reader {
    struct json_stream stream;
    struct spans *spans;
    struct event event;
};

static void lower_case(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

static void take_text(struct event *event, const char *key, const char *text)
{
    if (strcmp(key, "name") == 0)
        text_format(event->name, sizeof event->name, "%s", text);
    else if (strcmp(key, "cat") == 0)
        text_format(event->category, sizeof event->category, "%.31s", text);
    else if (strcmp(key, "ph") == 0)
        text_format(event->phase, sizeof event->phase, "%.3s", text);
}

static void take_number(struct event *event, const char *key, bool of_args, double number)
{
    if (of_args && strcmp(key, "device") == 0)
        event->device = number;
    else if (!of_args && strcmp(key, "ts") == 0)
        event->ts_us = number;
    else if (!of_args && strcmp(key, "dur") == 0)
        event->dur_us = number;
    else if (!of_args && strcmp(key, "pid") == 0)
        event->pid = number;
}

/* The fields of an event; args are one level deeper. */
static bool read_event(struct reader *r)
{
    char key[64] = "";
    const uint32_t top = r->stream.depth;
    r->event = (struct event){
        .ts_us = (double)NAN, .dur_us = (double)NAN, .pid = (double)NAN, .device = (double)NAN};
    while (r->stream.depth >= top) {
        const bool of_args = r->stream.depth > top;
        switch (json_stream_next(&r->stream)) {
        case JSON_TOKEN_KEY:
            text_format(key, sizeof key, "%.63s", r->stream.text);
            break;
        case JSON_TOKEN_TEXT:
            if (!of_args)
                take_text(&r->event, key, r->stream.text);
            break;
        case JSON_TOKEN_NUMBER:
            take_number(&r->event, key, of_args, r->stream.number);
            break;
        case JSON_TOKEN_OPEN_OBJECT:
        case JSON_TOKEN_OPEN_ARRAY:
            if ((of_args || strcmp(key, "args") != 0) && !json_stream_skip(&r->stream))
                return false;
            break;
        case JSON_TOKEN_CLOSE:
        case JSON_TOKEN_WORD:
            break;
        case JSON_TOKEN_END:
        case JSON_TOKEN_ERROR:
            return false;
        }
    }
    return true;
}

static void take_event(struct reader *r)
{
    struct event *event = &r->event;
    lower_case(event->category);
    if (strcmp(event->phase, "X") != 0 || !isfinite(event->ts_us) || !isfinite(event->dur_us))
        return;
    const bool kernel = strcmp(event->category, "kernel") == 0;
    if (kernel || strcmp(event->category, "gpu_memcpy") == 0 ||
        strcmp(event->category, "gpu_memset") == 0 || strcmp(event->category, "memcpy") == 0 ||
        strcmp(event->category, "memset") == 0) {
        const double device = isfinite(event->device) ? event->device : event->pid;
        const struct span span = {
            event->ts_us * 1e-6, (event->ts_us + event->dur_us) * 1e-6,
            device >= 0.0 && device < 1e9 ? (uint32_t)device : 0,
            (uint8_t)(kernel ? ty_activity_of(event->name) : TY_ACTIVITY_MEMCPY)};
        spans_add(r->spans, &span, event->name);
    } else if (strcmp(event->category, "user_annotation") == 0 ||
               strcmp(event->category, "operator") == 0 ||
               strcmp(event->category, "gpu_user_annotation") == 0) {
        spans_mark(r->spans, event->name, event->ts_us * 1e-6, event->category[0] == 'g');
    }
}

/* The items of the array of events. */
static bool read_events(struct reader *r)
{
    const uint32_t top = r->stream.depth;
    while (r->stream.depth >= top && !r->spans->no_memory) {
        const enum json_token token = json_stream_next(&r->stream);
        if (token == JSON_TOKEN_ERROR || token == JSON_TOKEN_END ||
            (token == JSON_TOKEN_OPEN_ARRAY && !json_stream_skip(&r->stream)))
            return false;
        if (token != JSON_TOKEN_OPEN_OBJECT)
            continue;
        if (!read_event(r))
            return false;
        take_event(r);
    }
    return true;
}

/* Finds "traceEvents" among the keys of the top; what else stands there is passed. */
static bool read_top(struct reader *r)
{
    enum json_token token = json_stream_next(&r->stream);
    if (token == JSON_TOKEN_OPEN_ARRAY)
        return read_events(r);
    bool events = false;
    for (;;) {
        token = json_stream_next(&r->stream);
        if (token == JSON_TOKEN_ERROR)
            return false;
        if (token == JSON_TOKEN_END || r->stream.depth == 0)
            return true;
        if (token == JSON_TOKEN_KEY) {
            events = strcmp(r->stream.text, "traceEvents") == 0;
        } else if (token == JSON_TOKEN_OPEN_ARRAY && events) {
            if (!read_events(r))
                return false;
        } else if ((token == JSON_TOKEN_OPEN_ARRAY || token == JSON_TOKEN_OPEN_OBJECT) &&
                   !json_stream_skip(&r->stream)) {
            return false;
        }
        if (r->spans->no_memory)
            return true; /* said later */
    }
}

ty_status timeline_read_events(FILE *file, const char *path, struct spans *spans,
                               struct ty_error *error)
{
    struct reader r = {.spans = spans};
    json_stream_start(&r.stream, file, path, error);
    return read_top(&r) ? TY_OK : TY_ERR_INPUT;
}

ty_status timeline_read_chrome(const char *path, struct spans *spans, struct ty_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, TY_ERR_IO, path, "cannot be read");
    const ty_status status = timeline_read_events(file, path, spans, error);
    fclose(file);
    return status;
}
