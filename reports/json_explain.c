/* SPDX-License-Identifier: MIT
 * JSON of an explanation: the prediction, the critical path, what resources and knobs would do. */
#include "include/trainyard_tools.h"
#include "reports/json.h"

#include <math.h>

static void write_shares(struct json_writer *json, const double share[TY_N_RESOURCES])
{
    json_object(json, "share");
    for (uint32_t r = 0; r < TY_RESOURCE_MEMORY; r++)
        if (share[r] != 0.0)
            json_number(json, ty_resource_name((enum ty_resource)r), share[r]);
    json_close(json);
}

/* The segment before: its end is what this one waited for. */
static void write_wait(struct json_writer *json, const struct ty_path_segment *before)
{
    if (!before) {
        json_null(json, "waits_for");
        return;
    }
    json_object(json, "waits_for");
    json_text(json, "name", before->name);
    json_count(json, "rank", before->rank);
    json_text(json, "stream", before->stream);
    json_count(json, "micro_batch", before->micro);
    json_count(json, "chunk", before->chunk);
    json_close(json);
}

static void write_path(struct json_writer *json, const struct ty_explanation *e)
{
    json_array(json, "critical_path");
    for (uint32_t i = 0; i < e->n_segments; i++) {
        const struct ty_path_segment *segment = &e->segments[i];
        json_object(json, NULL);
        json_number(json, "start_s", segment->start_s);
        json_number(json, "duration_s", segment->end_s - segment->start_s);
        json_count(json, "rank", segment->rank);
        json_text(json, "stream", segment->stream);
        json_text(json, "name", segment->name);
        json_count(json, "micro_batch", segment->micro);
        json_count(json, "chunk", segment->chunk);
        write_wait(json, i ? segment - 1 : NULL);
        json_text(json, "binding", ty_resource_name(segment->binding));
        write_shares(json, segment->share);
        json_close(json);
    }
    json_close(json);
}

static void write_resources(struct json_writer *json, const struct ty_explanation *e)
{
    json_object(json, "resources");
    for (uint32_t r = 0; e->n_segments && r < TY_N_RESOURCES; r++) {
        json_object(json, ty_resource_name((enum ty_resource)r));
        json_number(json, "path_share", e->resources[r].path_share);
        json_number(json, "gain_of_10_pct_more", e->resources[r].gain_pct);
        json_close(json);
    }
    json_close(json);
}

static void write_change(struct json_writer *json, const char *key, const struct ty_change *change)
{
    json_object(json, key);
    json_text(json, "knob", change->knob);
    json_text(json, "from", change->from);
    json_text(json, "to", change->to);
    json_number(json, "step_time_s", change->step_time_s);
    json_number(json, "step_pct", change->step_pct);
    json_text(json, "fit", ty_fit_name(change->fit));
    json_number(json, "peak_bytes", change->peak_bytes);
    json_number(json, "peak_change_bytes", change->peak_change_bytes);
    json_number(json, "headroom_bytes", change->headroom_bytes);
    json_bool(json, "changes_numerics", change->numerics);
    json_plan(json, "plan", &change->plan);
    json_close(json);
}

static void write_changes(struct json_writer *json, const struct ty_explanation *e)
{
    json_array(json, "changes");
    for (uint32_t i = 0; i < e->n_changes; i++)
        write_change(json, NULL, &e->changes[i]);
    json_close(json);
    if (e->best < e->n_changes)
        write_change(json, "change_next", &e->changes[e->best]);
    else
        json_null(json, "change_next");
}

static void write_timeline(struct json_writer *json, const struct ty_timeline *t)
{
    json_object(json, "profile");
    json_number(json, "step_time_s", t->step_s);
    json_count(json, "steps", t->n_steps);
    json_bool(json, "steps_marked", t->marked);
    json_count(json, "device", t->device);
    json_count(json, "devices", t->n_devices);
    json_count(json, "kernels", t->n_kernels);
    json_number(json, "idle_s", t->idle_s);
    json_number(json, "communication_s", t->comm_s);
    json_number(json, "exposed_communication_s", t->exposed_comm_s);
    json_object(json, "activities");
    for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++) {
        json_object(json, ty_activity_name((enum ty_activity)i));
        json_number(json, "busy_s", t->busy_s[i]);
        json_number(json, "alone_s", t->alone_s[i]);
        json_close(json);
    }
    json_close(json);
    json_text(json, "longest_unrecognised", *t->unknown ? t->unknown : NULL);
    json_close(json);
}

static void write_gap(struct json_writer *json, const struct ty_gap *gap)
{
    json_object(json, "measured");
    json_number(json, "measured_s", gap->measured_s);
    json_number(json, "predicted_s", gap->predicted_s);
    json_bool(json, "within_interval_80", gap->within_80);
    json_array(json, "lines");
    for (uint32_t i = 0; i < gap->n_lines; i++) {
        json_object(json, NULL);
        json_text(json, "name", gap->lines[i].name);
        json_number(json, "predicted_s", gap->lines[i].predicted_s);
        json_number(json, "measured_s", gap->lines[i].measured_s);
        json_close(json);
    }
    json_close(json);
    json_array(json, gap->n_lines ? "causes" : "candidates");
    for (uint32_t i = 0; i < gap->n_causes; i++) {
        json_object(json, NULL);
        json_text(json, "text", gap->causes[i].text);
        json_number(json, "time_s", gap->causes[i].time_s);
        json_number(json, "explained_pct", gap->causes[i].explained_pct);
        json_close(json);
    }
    json_close(json);
    json_number(json, "unexplained_pct", gap->unexplained_pct);
    json_close(json);
}

char *ty_explanation_json(const struct ty_explanation *explanation,
                          const struct ty_prediction *prediction, const struct ty_profile *profile,
                          const struct ty_timeline *timeline, const struct ty_gap *gap)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_object(&json, "prediction");
    json_prediction(&json, prediction, profile);
    json_close(&json);
    if (timeline)
        write_timeline(&json, timeline);
    if (gap)
        write_gap(&json, gap);
    write_path(&json, explanation);
    write_resources(&json, explanation);
    write_changes(&json, explanation);
    json_close(&json);
    return json_finish(&json);
}
