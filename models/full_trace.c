/* SPDX-License-Identifier: MIT
 *
 * The timeline of every rank: tasks of the first job's first step, named as in their template. What
 * only joins ranks (the gates of collectives, the gradient norm) belongs to none and is left out.
 */
#include "models/full_internal.h"

#include <math.h>

bool full_traced(const struct full *full)
{
    return full->n_jobs > 0 && !full->report.folded && full->origin &&
           engine_n_tasks(full->engine) > 0;
}

/* Streams are numbered by stage, lane and kind (full_graph.c). */
static bool event_of(const struct full *full, uint32_t id, struct ty_trace_event *out)
{
    const struct job *job = &full->jobs[0];
    const uint32_t stream = engine_task_of(full->engine, id)->stream - job->first_stream;
    const double start_s = engine_start_s(full->engine, id);
    const double end_s = engine_end_s(full->engine, id);
    if (full->origin[id] == ENGINE_NONE || isnan(start_s) ||
        stream >= (uint64_t)job->n_stages * job->width * N_STREAMS)
        return false;
    const uint32_t lane = stream / N_STREAMS % job->width;
    const uint32_t rank = job_rank(job, stream / N_STREAMS / job->width, lane);
    *out =
        step_event(job_template(job, job->shape[lane], job->klass[rank])->step, full->origin[id]);
    out->start_s = start_s;
    out->end_s = isnan(end_s) ? engine_now_s(full->engine) : end_s;
    out->unfinished = isnan(end_s);
    out->rank = rank;
    out->task = id;
    return true;
}

static uint32_t n_traced(const struct full *full)
{
    const uint32_t n = engine_n_tasks(full->engine);
    return n < full->n_origins ? n : full->n_origins;
}

void full_trace(const struct full *full, ty_trace_fn *fn, void *user)
{
    const uint32_t n = n_traced(full);
    struct ty_trace_event event;
    for (uint32_t id = 0; id < n; id++)
        if (event_of(full, id, &event))
            fn(user, &event);
}

struct edges {
    const struct full *full;
    ty_trace_edge_fn *fn;
    void *user;
};

static void on_edge(void *user, uint32_t before, uint32_t after)
{
    const struct edges *edges = user;
    const uint32_t n = n_traced(edges->full);
    struct ty_trace_event event;
    if (before < n && after < n && event_of(edges->full, before, &event) &&
        event_of(edges->full, after, &event))
        edges->fn(edges->user, before, after);
}

void full_edges(const struct full *full, ty_trace_edge_fn *fn, void *user)
{
    struct edges edges = {full, fn, user};
    engine_edges(full->engine, on_edge, &edges);
}
