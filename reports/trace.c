/* SPDX-License-Identifier: MIT
 *
 * A simulated step as a trace for chrome://tracing and ui.perfetto.dev: a process a rank, a track a
 * stream, an arrow for each dependency between two tracks. Times are whole picoseconds, so that
 * events of a track touch and never overlap. Source of the format: "Trace Event Format" of
 * Chromium, JSON object form (ph X: complete event, s and f: ends of an arrow, M: names).
 */
#include "include/trainyard_tools.h"
#include "sim/arena.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_STREAMS 32

struct place { /* of an event, for the arrows */
    uint64_t start_ps, end_ps;
    uint32_t rank, stream;
    bool used;
};

struct writer {
    struct ty_allocator source;
    FILE *file;
    const char *stream[MAX_STREAMS];
    uint32_t n_streams;
    struct place *places; /* by task */
    size_t capacity;
    uint64_t *named; /* by rank: bits of the streams that have their names */
    size_t n_ranks;
    uint64_t n_arrows;
    bool chunks; /* some event is of a later chunk */
    bool first, no_memory;
};

static void open_event(struct writer *w)
{
    fputs(w->first ? "\n" : ",\n", w->file);
    w->first = false;
}

/* Microseconds, with a point in every locale. */
static void put_time(struct writer *w, const char *key, uint64_t ps)
{
    fprintf(w->file, "\"%s\":%llu.%06u", key, (unsigned long long)(ps / 1000000),
            (unsigned)(ps % 1000000));
}

static uint32_t stream_of(struct writer *w, const char *name)
{
    uint32_t i = 0;
    while (i < w->n_streams && strcmp(w->stream[i], name) != 0)
        i++;
    if (i == w->n_streams && i < MAX_STREAMS)
        w->stream[w->n_streams++] = name;
    return i < MAX_STREAMS ? i : MAX_STREAMS - 1;
}

/* The first event of a rank or a track names it. */
static void name_track(struct writer *w, uint32_t rank, uint32_t stream)
{
    if (!array_grow(&w->source, (void **)&w->named, &w->n_ranks, (size_t)rank + 1,
                    sizeof *w->named)) {
        w->no_memory = true;
        return;
    }
    if (w->named[rank] == 0) {
        open_event(w);
        fprintf(w->file,
                "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,"
                "\"args\":{\"name\":\"rank %u\"}}",
                rank, rank);
    }
    if (w->named[rank] >> stream & 1)
        return;
    w->named[rank] |= UINT64_C(1) << stream;
    open_event(w);
    fprintf(w->file,
            "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
            "\"args\":{\"name\":\"%s\"}}",
            rank, stream, w->stream[stream]);
}

static const struct {
    const char *name, *text, *category;
    bool of_pass; /* micro-batch and chunk tell it apart */
} kinds[] = {
    {"F", "forward", "compute", true},
    {"B", "backward", "compute", true},
    {"W", "weight gradient", "compute", true},
    {"issue", "issue", "host", true},
    {"send", "send", "communication", true},
    {"step fixed", "step fixed", "host", false},
    {"grad norm", "gradient norm", "compute", false},
    {"optimizer", "optimizer", "compute", false},
};

static void put_name(struct writer *w, const struct ty_trace_event *event)
{
    const char *text = event->name, *category = "communication";
    bool of_pass = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, event->name) == 0) {
            text = kinds[i].text;
            category = kinds[i].category;
            of_pass = kinds[i].of_pass;
        }
    fprintf(w->file, "\"name\":\"%s", text);
    if (of_pass)
        fprintf(w->file, " mb %u", event->micro);
    if (of_pass && w->chunks)
        fprintf(w->file, " chunk %u", event->chunk);
    fprintf(w->file, "%s\",\"cat\":\"%s\"", event->unfinished ? " (not finished)" : "", category);
}

static void on_event(void *user, const struct ty_trace_event *event)
{
    struct writer *w = user;
    const uint32_t stream = stream_of(w, event->stream);
    if (w->no_memory || !array_grow(&w->source, (void **)&w->places, &w->capacity,
                                    (size_t)event->task + 1, sizeof *w->places)) {
        w->no_memory = true;
        return;
    }
    name_track(w, event->rank, stream);
    struct place *place = &w->places[event->task];
    *place = (struct place){(uint64_t)llround(event->start_s * 1e12),
                            (uint64_t)llround(event->end_s * 1e12), event->rank, stream, true};
    open_event(w);
    fprintf(w->file, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,", event->rank, stream);
    put_time(w, "ts", place->start_ps);
    fputc(',', w->file);
    put_time(w, "dur", place->end_ps - place->start_ps);
    fputc(',', w->file);
    put_name(w, event);
    fprintf(w->file, ",\"args\":{\"task\":%u,\"micro_batch\":%u,\"chunk\":%u}}", event->task,
            event->micro, event->chunk);
}

static void put_arrow_end(struct writer *w, const char *phase, const struct place *place,
                          uint64_t ps)
{
    open_event(w);
    fprintf(w->file, "{\"ph\":\"%s\",\"id\":%llu,\"pid\":%u,\"tid\":%u,", phase,
            (unsigned long long)w->n_arrows, place->rank, place->stream);
    put_time(w, "ts", ps);
    fputs(",\"name\":\"needs\",\"cat\":\"dependency\"}", w->file);
}

/* An arrow leaves just inside the end of its event and arrives at the start of the other. */
static void on_edge(void *user, uint32_t before, uint32_t after)
{
    struct writer *w = user;
    if (before >= w->capacity || after >= w->capacity)
        return;
    const struct place *from = &w->places[before], *to = &w->places[after];
    if (!from->used || !to->used || (from->rank == to->rank && from->stream == to->stream))
        return;
    w->n_arrows++;
    put_arrow_end(w, "s", from, from->end_ps > from->start_ps ? from->end_ps - 1 : from->start_ps);
    put_arrow_end(w, "f\",\"bp\":\"e", to, to->start_ps);
}

static void on_chunk(void *user, const struct ty_trace_event *event)
{
    ((struct writer *)user)->chunks |= event->chunk > 0;
}

ty_status ty_trace_write(const ty_predictor *predictor, const char *path, struct ty_error *error)
{
    struct writer w = {
        .source = allocator_or_default(NULL), .file = fopen(path, "w"), .first = true};
    if (!w.file)
        return error_set(error, TY_ERR_IO, path, "cannot be written: %s", strerror(errno));
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", w.file);
    ty_predictor_trace(predictor, on_chunk, &w);
    ty_predictor_trace(predictor, on_event, &w);
    ty_predictor_trace_edges(predictor, on_edge, &w);
    fputs("\n]}\n", w.file);
    array_free(&w.source, w.places, w.capacity, sizeof *w.places);
    array_free(&w.source, w.named, w.n_ranks, sizeof *w.named);
    bool failed = ferror(w.file) != 0;
    failed |= fclose(w.file) != 0;
    if (w.no_memory)
        return error_set(error, TY_ERR_NOMEM, path, "no memory for the trace");
    return failed ? error_set(error, TY_ERR_IO, path, "cannot be written: %s", strerror(errno))
                  : TY_OK;
}
