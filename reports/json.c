/* SPDX-License-Identifier: MIT
 *
 * JSON of an answer: the keys of `predict --json` and `sweep --json`, on which other programs
 * rely. Every key is always there; what is unknown or has no meaning (all numbers of a plan that
 * breaks a rule) is null.
 */
#include "include/trainyard_calibrate.h"
#include "include/trainyard_ratio.h"
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "reports/json.h"

#include <math.h>
#include <stddef.h>

static void write_field(struct json_writer *json, const struct ty_field *field, const void *value)
{
    const char *place = (const char *)value + field->offset;
    char flags[160];
    switch (field->type) {
    case TY_FIELD_DOUBLE:
        json_number(json, field->path, *(const double *)place);
        break;
    case TY_FIELD_U32:
        json_count(json, field->path, *(const uint32_t *)place);
        break;
    case TY_FIELD_U64:
        json_count(json, field->path, *(const uint64_t *)place);
        break;
    case TY_FIELD_BOOL:
        json_bool(json, field->path, *(const bool *)place);
        break;
    case TY_FIELD_ENUM:
        json_text(json, field->path, fields_enum_name(field, *(const int *)place));
        break;
    case TY_FIELD_FLAGS:
        fields_flags_text(field, *(const uint32_t *)place, flags, sizeof flags);
        json_text(json, field->path, flags);
        break;
    case TY_FIELD_TEXT:
        json_text(json, field->path, place);
        break;
    }
}

void json_plan(struct json_writer *json, const char *key, const struct ty_plan *plan)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    json_object(json, key);
    for (size_t i = 0; i < n; i++)
        write_field(json, &fields[i], plan);
    json_count(json, "dp", plan->dp);
    json_count(json, "edp", plan->edp);
    json_count(json, "n_micro", plan->n_micro);
    json_close(json);
}

/* known: false writes null for every part. */
static void write_breakdown(struct json_writer *json, const double *breakdown_s, bool known)
{
    json_object(json, "breakdown_s");
    for (int part = 0; part < TY_N_PARTS; part++)
        json_number(json, ty_part_name((enum ty_part)part),
                    known ? breakdown_s[part] : (double)NAN);
    json_close(json);
}

static void write_violations(struct json_writer *json, const struct ty_prediction *p)
{
    json_array(json, "violations");
    for (uint32_t i = 0; i < p->n_violations; i++) {
        json_object(json, NULL);
        json_text(json, "rule", p->violations[i].rule);
        json_text(json, "text", p->violations[i].text);
        json_text(json, "legal", p->violations[i].legal);
        json_close(json);
    }
    json_close(json);
}

static void write_memory(struct json_writer *json, const struct ty_prediction *p)
{
    bool known = p->n_stages > 0;
    json_object(json, "memory_bytes");
    json_number(json, "peak", known ? p->peak_bytes : (double)NAN);
    json_number(json, "budget", known ? p->budget_bytes : (double)NAN);
    json_array(json, "stages");
    for (uint32_t stage = 0; stage < p->n_stages; stage++) {
        json_object(json, NULL);
        for (int part = 0; part < TY_N_MEM; part++)
            json_number(json, ty_mem_name((enum ty_mem)part), p->stages[stage].bytes[part]);
        json_number(json, "host", p->stages[stage].host_bytes);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

/* Share of the time of each kind of work by where it is from; null: no such work. */
static void write_origins(struct json_writer *json, const struct ty_prediction *p)
{
    json_object(json, "from");
    for (int work = 0; work < TY_N_WORKS; work++) {
        double sum = 0.0;
        for (int origin = 0; origin < TY_N_ORIGINS; origin++)
            sum += p->origin_share[work][origin];
        if (!(sum > 0.0)) {
            json_null(json, ty_work_name((enum ty_work)work));
            continue;
        }
        json_object(json, ty_work_name((enum ty_work)work));
        for (int origin = 0; origin < TY_N_ORIGINS; origin++)
            json_number(json, ty_origin_name((enum ty_origin)origin),
                        p->origin_share[work][origin]);
        json_close(json);
    }
    json_close(json);
}

static void write_groups(struct json_writer *json, const struct ty_prediction *p)
{
    json_array(json, "groups");
    for (uint32_t i = 0; i < p->n_groups; i++) {
        json_object(json, NULL);
        json_text(json, "name", p->groups[i].name);
        json_count(json, "size", p->groups[i].size);
        json_count(json, "ranks_per_domain", p->groups[i].ranks_per_domain);
        json_text(json, "link", p->groups[i].link);
        json_close(json);
    }
    json_close(json);
}

static void write_notes(struct json_writer *json, const char *key, enum ty_note_kind kind,
                        const struct ty_prediction *p)
{
    json_array(json, key);
    for (uint32_t i = 0; i < p->n_notes; i++) {
        const struct ty_note *note = &p->notes[i];
        if (note->kind != kind)
            continue;
        json_object(json, NULL);
        json_text(json, "field", note->field);
        json_text(json, "value", note->value);
        json_text(json, "reason", note->reason);
        json_number(json, "effect_pct", note->effect_pct);
        json_close(json);
    }
    json_close(json);
}

/* null where there is no time or nothing is known of its error */
static void write_interval(struct json_writer *json, const char *key, const double interval[2],
                           double unknown)
{
    if (!isfinite(interval[0] + interval[1] + unknown)) {
        json_null(json, key);
        return;
    }
    json_array(json, key);
    json_number(json, NULL, interval[0]);
    json_number(json, NULL, interval[1]);
    json_close(json);
}

/* Speed: null throughout for an infeasible plan, unless it is known to run (options.measured). */
static void write_speed(struct json_writer *json, const struct ty_prediction *p)
{
    const bool known = p->feasible || isfinite(p->step_time_s);
    const double unknown = known ? 0.0 : (double)NAN; /* x + NAN = NAN */
    json_number(json, "step_time_s", p->step_time_s + unknown);
    json_number(json, "tokens_per_s", p->tokens_per_s + unknown);
    json_number(json, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu + unknown);
    json_number(json, "model_tflops_per_gpu", p->model_flop_per_s_per_gpu / 1e12 + unknown);
    json_number(json, "mfu", p->mfu + unknown);
    json_text(json, "flop_convention", ty_flops_name(p->flops));
    write_breakdown(json, p->breakdown_s, known);
    write_interval(json, "interval_80", p->interval_80, unknown);
    write_interval(json, "interval_90", p->interval_90, unknown);
}

/* Money is null without a price list. */
static void write_cost(struct json_writer *json, const struct ty_outlay *outlay)
{
    const struct ty_price *price = outlay->price;
    json_object(json, "cost");
    json_text(json, "currency", price && price->currency[0] ? price->currency : NULL);
    json_text(json, "price_date", price && price->date[0] ? price->date : NULL);
    json_count(json, "gpus_paid", outlay->gpus_paid);
    json_number(json, "money_per_gpu_hour", outlay->money_per_gpu_hour);
    json_number(json, "money_per_step", outlay->money);
    json_number(json, "money_per_mtoken", 1e6 * outlay->money_per_token);
    json_number(json, "power_w", outlay->power_w);
    json_number(json, "energy_j_per_step", outlay->energy_j);
    json_number(json, "energy_j_per_token", outlay->energy_j_per_token);
    json_number(json, "co2_kg_per_step", outlay->co2_kg);
    json_close(json);
}

/* What the full rung found. */
static void write_fabric(struct json_writer *json, const struct ty_fabric_report *fabric)
{
    if (!fabric)
        return;
    json_object(json, "fabric");
    json_bool(json, "folded", fabric->folded);
    json_text(json, "why", fabric->why);
    json_number(json, "folded_step_time_s", fabric->folded_step_time_s);
    json_count(json, "ranks", fabric->n_ranks);
    json_count(json, "links", fabric->n_links);
    json_count(json, "tasks", fabric->n_tasks);
    json_count(json, "slowest_rank", fabric->slowest_rank);
    json_array(json, "job_step_time_s");
    for (uint32_t i = 0; i < fabric->n_jobs; i++)
        json_number(json, NULL, fabric->job_step_s[i]);
    json_close(json);
    json_array(json, "n_micro");
    for (uint32_t i = 0; i < fabric->n_replicas; i++)
        json_count(json, NULL, fabric->n_micro[i]);
    json_close(json);
    json_array(json, "traffic");
    for (uint32_t i = 0; i < fabric->n_traffic; i++)
        for (enum ty_fabric_level level = TY_LEVEL_DOMAIN; level < TY_N_LEVELS; level++) {
            const struct ty_group_traffic *row = &fabric->traffic[i];
            if (!(row->bytes[level] > 0.0))
                continue;
            json_object(json, NULL);
            json_text(json, "group", row->name);
            json_text(json, "level", ty_level_name(level));
            json_count(json, "groups", row->n_groups[level]);
            json_number(json, "bytes", row->bytes[level]);
            json_close(json);
        }
    json_close(json);
    json_close(json);
}

void json_prediction(struct json_writer *json, const struct ty_prediction *p,
                     const struct ty_profile *profile)
{
    bool judged = p->n_stages > 0; /* memory is computed only for a legal plan */
    json_bool(json, "feasible", p->feasible);
    write_violations(json, p);
    json_text(json, "fit", judged ? ty_fit_name(p->fit) : NULL);
    json_number(json, "headroom_bytes", judged ? p->headroom_bytes : (double)NAN);
    json_text(json, "largest_component", judged ? ty_mem_name(p->largest_component) : NULL);
    write_speed(json, p);
    write_origins(json, p);
    write_cost(json, &p->outlay);
    write_memory(json, p);
    write_groups(json, p);
    write_fabric(json, p->fabric);
    json_storage(json, p->storage);
    json_text(json, "profile", profile->name);
    json_text(json, "stack", profile->stack);
    json_plan(json, "resolved_plan", &p->plan);
    write_notes(json, "defaulted", TY_NOTE_DEFAULTED, p);
    write_notes(json, "uncalibrated", TY_NOTE_UNCALIBRATED, p);
    write_notes(json, "extrapolated", TY_NOTE_EXTRAPOLATED, p);
    write_notes(json, "unused", TY_NOTE_UNUSED, p);
}

/* Runs like the plan among those the constants were fitted on. */
static void write_evidence(struct json_writer *json, const struct ty_evidence *evidence)
{
    json_object(json, "evidence");
    json_text(json, "like", evidence->cell);
    json_count(json, "rows", evidence->n_rows);
    json_text(json, "unseen", evidence->n_rows ? NULL : evidence->unseen);
    json_close(json);
}

char *ty_prediction_json(const struct ty_prediction *prediction, const struct ty_profile *profile,
                         const struct ty_evidence *evidence, const struct ty_forecast *forecast)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    if (evidence)
        write_evidence(&json, evidence);
    json_forecast(&json, forecast);
    json_prediction(&json, prediction, profile);
    json_close(&json);
    return json_finish(&json);
}

/* What the search looked for, and each plan's figures under it. */
static void write_objectives(struct json_writer *json, const struct ty_goal *goal,
                             const struct ty_score *score)
{
    json_object(json, "objectives");
    for (uint32_t i = 0; goal && i < goal->n_objectives; i++)
        json_number(json, ty_objective_name(goal->objective[i]),
                    ty_objective_value(goal->objective[i], goal, score));
    json_close(json);
    json_number(json, "useful_ratio", score->useful_ratio);
}

/* The plan against the first of its list. */
static void write_ratio(struct json_writer *json, const struct ty_search *search,
                        const struct ty_score *score, const struct ty_score *first)
{
    struct ty_ratio ratio;
    ty_ratio_of_scores(search, score, first, &ratio);
    json_object(json, "against_first");
    json_number(json, "ratio", ratio.ratio);
    write_interval(json, "interval_80", ratio.interval_80, 0.0);
    write_interval(json, "interval_90", ratio.interval_90, 0.0);
    json_number(json, "p_better", ratio.p_faster);
    json_close(json);
}

/* The best plans, each predicted once more for what a score does not hold. */
static ty_status write_plans(struct json_writer *json, const struct ty_search_result *result,
                             const struct ty_search *search)
{
    ty_predictor *predictor;
    struct ty_options options = search->options;
    options.effects = false;
    options.price = search->goal ? search->goal->price : options.price;
    ty_status status = ty_predictor_create(search->model, search->cluster, search->profile, NULL,
                                           &predictor, NULL);
    if (status != TY_OK)
        return status;
    json_array(json, "plans");
    uint32_t first = 0;
    for (uint32_t i = 0; i < result->n_best && status == TY_OK; i++) {
        struct ty_prediction prediction;
        if (!search->overall && result->best[i].plan.n_gpus != result->best[first].plan.n_gpus)
            first = i;
        status = ty_predictor_run(predictor, &result->best[i].plan, &options, &prediction, NULL);
        if (status != TY_OK)
            break;
        json_object(json, NULL);
        json_plan(json, "plan", &prediction.plan);
        write_objectives(json, search->goal, &result->best[i]);
        write_ratio(json, search, &result->best[i], &result->best[first]);
        json_prediction(json, &prediction, search->profile);
        json_close(json);
    }
    json_close(json);
    ty_predictor_destroy(predictor);
    return status;
}

/* The plan with the best worst case; indices into `plans`. Lists by GPU count are compared as one.
 */
static void write_robust(struct json_writer *json, const struct ty_search_result *result,
                         const struct ty_search *search)
{
    struct ty_robust robust;
    if (!ty_robust_of_scores(search, result->best, result->n_best, &robust))
        return;
    json_object(json, "robust");
    json_count(json, "plan", robust.plan);
    json_count(json, "other", robust.other);
    json_number(json, "ratio", robust.ratio.ratio);
    write_interval(json, "interval_90", robust.ratio.interval_90, 0.0);
    json_close(json);
}

char *ty_search_json(const struct ty_search_result *result, const struct ty_search *search)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_count(&json, "enumerated", result->n_enumerated);
    json_count(&json, "bounded", result->n_bounded);
    json_count(&json, "evaluated", result->n_evaluated);
    json_object(&json, "rejected");
    for (int reason = 0; reason < TY_N_REJECTS; reason++)
        json_count(&json, ty_reject_name((enum ty_reject)reason), result->rejected[reason]);
    json_close(&json);
    json_array(&json, "nearest");
    for (uint32_t i = 0; i < result->n_nearest; i++) {
        json_object(&json, NULL);
        json_plan(&json, "plan", &result->nearest[i].plan);
        json_number(&json, "missing_bytes", result->nearest[i].missing_bytes);
        json_text(&json, "largest_component", ty_mem_name(result->nearest[i].component));
        json_close(&json);
    }
    json_close(&json);
    const ty_status status = write_plans(&json, result, search);
    write_robust(&json, result, search);
    json_close(&json);
    char *text = json_finish(&json);
    if (status == TY_OK)
        return text;
    ty_text_free(text);
    return NULL;
}
