/* SPDX-License-Identifier: MIT
 * JSON of a replay: what was read, what came out, jobs that were refused. */
#include "include/trainyard_tools.h"
#include "models/spec/json_write.h"

#include <math.h>
#include <string.h>

enum { MAX_LISTED = 100 }; /* refused jobs named; all are counted */

static void write_spread(struct json_writer *json, const char *key,
                         const struct ty_pool_spread *spread)
{
    json_object(json, key);
    json_number(json, "mean", spread->mean);
    json_number(json, "median", spread->median);
    json_number(json, "p90", spread->p90);
    json_number(json, "p99", spread->p99);
    json_number(json, "max", spread->max);
    json_close(json);
}

static void write_trace(struct json_writer *json, const struct ty_trace *trace)
{
    json_object(json, "trace");
    json_text(json, "format", trace->format);
    json_count(json, "jobs", trace->n_jobs);
    json_count(json, "queues", trace->n_queues);
    for (int note = 0; note < TY_N_TRACE_NOTES; note++)
        json_count(json, ty_trace_note(note, NULL), trace->notes[note]);
    if (trace->bad_line)
        json_count(json, "first_bad_line", trace->bad_line);
    write_spread(json, "recorded_wait_s", &trace->recorded_wait_s);
    json_close(json);
}

static void write_metrics(struct json_writer *json, const struct ty_pool_metrics *metrics)
{
    json_count(json, "done", metrics->n_done);
    json_count(json, "refused", metrics->n_refused);
    write_spread(json, "jct_s", &metrics->jct_s);
    write_spread(json, "wait_s", &metrics->wait_s);
    write_spread(json, "slowdown", &metrics->slowdown);
    json_number(json, "makespan_s", metrics->makespan_s);
    json_number(json, "allocated_ratio", metrics->allocated_ratio);
    json_number(json, "useful_ratio", metrics->useful_ratio);
    json_number(json, "idle_while_waiting_ratio", metrics->idle_while_waiting);
    json_number(json, "fragmentation", metrics->fragmentation);
    json_object(json, "first_waiting_job_s");
    json_number(json, "too_few_gpus", metrics->blocked_capacity_s);
    json_number(json, "wrong_places", metrics->blocked_shape_s);
    json_number(json, "policy", metrics->blocked_policy_s);
    json_close(json);
    json_count(json, "preemptions", metrics->n_preemptions);
    json_count(json, "resizes", metrics->n_resizes);
    json_count(json, "node_failures", metrics->n_node_failures);
    json_count(json, "failed_runs", metrics->n_failures);
    json_number(json, "lost_gpu_hours", metrics->lost_gpu_hours);
    json_number(json, "finish_time_fairness_mean", metrics->rho_mean);
    json_number(json, "finish_time_fairness_max", metrics->rho_max);
    json_number(json, "jain_of_queues", metrics->jain);
    json_count(json, "deadlines", metrics->n_deadlines);
    json_count(json, "deadlines_missed", metrics->n_missed);
    json_count(json, "events", metrics->n_events);
}

char *ty_pool_json(const struct ty_pool *pool, const struct ty_trace *trace,
                   const struct ty_pool_result *result)
{
    struct json_writer json;
    double gpus = 0.0;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < pool->n_groups; i++)
        gpus += (double)pool->groups[i].n_nodes * pool->groups[i].gpus_per_node;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "policy", pool->policy);
    json_number(&json, "gpus", gpus);
    write_trace(&json, trace);
    write_metrics(&json, &result->metrics);
    json_array(&json, "refused_jobs");
    for (uint64_t i = 0; i < result->n_outcomes && listed < MAX_LISTED; i++) {
        if (!result->outcomes[i].refused)
            continue;
        json_object(&json, NULL);
        json_text(&json, "job", trace->names[i]);
        json_text(&json, "reason", result->outcomes[i].refused);
        json_close(&json);
        listed++;
    }
    json_close(&json);
    json_close(&json);
    return json_finish(&json);
}

char *ty_pool_verdict_json(const struct ty_trace *trace, const struct ty_pool_verdict *verdict)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "reason", ty_pool_reason_text(verdict->reason));
    json_number(&json, "time_s", verdict->time_s);
    json_count(&json, "free_gpus", verdict->free_gpus);
    json_count(&json, "placeable_gpus", verdict->placeable);
    json_count(&json, "domains_fit", verdict->domains_fit);
    json_count(&json, "domains_free", verdict->domains_free);
    json_number(&json, "expected_s", verdict->expected_s);
    json_array(&json, "moves");
    for (uint32_t i = 0; i < verdict->n_moves; i++) {
        json_object(&json, NULL);
        json_text(&json, "job", trace->names[verdict->moves[i].job]);
        json_count(&json, "gpus", verdict->moves[i].gpus);
        json_close(&json);
    }
    json_close(&json);
    json_text(&json, "advice", verdict->advice);
    json_close(&json);
    return json_finish(&json);
}
