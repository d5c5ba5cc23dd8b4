/* SPDX-License-Identifier: MIT
 *
 * The plan's composite forms. A flag replaces all it stands for: "full" after "full:4" means every
 * layer again. In a file the parts may also be given one by one, in any order.
 */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/layout.h"
#include "models/spec/fields_read.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A field of the plan by its path, which the table holds. */
static ty_status set_part(struct ty_plan *plan, const char *path, const char *text,
                          struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    return field_from_text(fields_find(fields, n, path), text, plan, error);
}

/* Splits "full:4" at its colon; *suffix is NULL without one. The head is cut to fit. */
static void split(const char *text, char head[32], const char **suffix)
{
    size_t length = strcspn(text, ":");
    snprintf(head, 32, "%.*s", (int)(length > 31 ? 31 : length), text);
    *suffix = text[length] == ':' ? text + length + 1 : NULL;
}

ty_status plan_set_recompute(struct ty_plan *plan, const char *text, struct ty_error *error)
{
    char head[32];
    const char *suffix;
    split(text, head, &suffix);
    struct ty_plan next = *plan;
    next.recompute_modules = next.recompute_layers = 0;
    ty_status status = set_part(&next, "recompute", head, error);
    if (status == TY_OK && suffix) {
        if (next.recompute == TY_RECOMPUTE_SELECTIVE)
            status = set_part(&next, "recompute_modules", suffix, error);
        else if (next.recompute == TY_RECOMPUTE_FULL)
            status = set_part(&next, "recompute_layers", suffix, error);
        else
            status =
                error_set(error, TY_ERR_INPUT, "recompute",
                          "\"%.40s\": only selective:MODULE,.. and full:LAYERS take more", text);
    }
    if (status == TY_OK)
        *plan = next;
    return status;
}

static ty_status check_shard_group(const struct ty_plan *plan, struct ty_error *error)
{
    if (plan->sharding == TY_SHARDING_HSDP && plan->shard_group == 0)
        return error_set(error, TY_ERR_INPUT, "sharding",
                         "hsdp needs the number of ranks that share one copy, such as hsdp:8");
    return TY_OK;
}

ty_status plan_set_sharding(struct ty_plan *plan, const char *text, struct ty_error *error)
{
    char head[32];
    const char *suffix;
    split(text, head, &suffix);
    struct ty_plan next = *plan;
    next.shard_group = 0;
    ty_status status = set_part(&next, "sharding", head, error);
    if (status == TY_OK && suffix) {
        if (next.sharding == TY_SHARDING_ZERO1 || next.sharding == TY_SHARDING_HSDP)
            status = set_part(&next, "shard_group", suffix, error);
        else
            status = error_set(error, TY_ERR_INPUT, "sharding",
                               "\"%.40s\": only zero1:N and hsdp:N take a group", text);
    }
    if (status == TY_OK)
        status = check_shard_group(&next, error);
    if (status == TY_OK)
        *plan = next;
    return status;
}

/* A batch given in tokens may move this far to a count that divides better. */
#define BATCH_SLACK_RATIO 0.05

/* Tokens are seldom a whole number of sequences (4Mtok of 8192 are 488.28), and a count without
 * divisors cannot be spread over data-parallel ranks. Unless it is whole, takes the count within 5
 * % that is a multiple of the largest power of two, of these the nearest: 512. */
static uint32_t round_batch(double wanted)
{
    const double low = wanted * (1.0 - BATCH_SLACK_RATIO),
                 high = wanted * (1.0 + BATCH_SLACK_RATIO);
    double best = fmax(1.0, round(wanted));
    if (best == wanted)
        return (uint32_t)best;
    for (double step = 2.0; floor(high / step) * step >= low; step *= 2.0) {
        best = round(wanted / step) * step;
        if (best < low) /* the nearest multiple lies outside, the one on the other side does not */
            best += step;
        else if (best > high)
            best -= step;
    }
    return (uint32_t)best;
}

ty_status plan_set_gbs(struct ty_plan *plan, const char *text, struct ty_error *error)
{
    if (!strstr(text, "tok"))
        return set_part(plan, "gbs", text, error);
    double tokens;
    ty_status status = ty_quantity_parse(text, TY_UNIT_TOKENS, &tokens, error);
    if (status != TY_OK)
        return status;
    if (plan->seq == 0)
        return error_set(error, TY_ERR_INPUT, "gbs",
                         "\"%.40s\" counts tokens and needs seq to become sequences", text);
    double sequences = tokens / plan->seq;
    if (!(sequences >= 1.0 && sequences <= 1e9))
        return error_set(error, TY_ERR_INPUT, "gbs",
                         "\"%.40s\" is %.6g sequences of %u tokens; legal: 1 to 1e9", text,
                         sequences, plan->seq);
    plan->gbs = round_batch(sequences);
    return TY_OK;
}

/* What a user writes out layer by layer may be longer than the field. */
static ty_status plan_set_layout(struct ty_plan *plan, const char *text, struct ty_error *error)
{
    if (strcmp(text, LAYOUT_EVEN) == 0)
        text = "";
    if (strcmp(text, LAYOUT_BALANCED) == 0 || !*text)
        return text_format(plan->layout, sizeof plan->layout, "%s", text), TY_OK;
    return ty_layout_shorten(text, plan->layout, sizeof plan->layout, error);
}

ty_status plan_set(struct ty_plan *plan, const struct ty_field *field, const char *text,
                   struct ty_error *error)
{
    if (strcmp(field->path, "recompute") == 0)
        return plan_set_recompute(plan, text, error);
    if (strcmp(field->path, "sharding") == 0)
        return plan_set_sharding(plan, text, error);
    if (strcmp(field->path, "gbs") == 0)
        return plan_set_gbs(plan, text, error);
    if (strcmp(field->path, "layout") == 0)
        return plan_set_layout(plan, text, error);
    return field_from_text(field, text, plan, error);
}

/* ---- files ------------------------------------------------------------------------------ */

/* In which pass a member is read: what a composite form would reset comes after it, and tokens
 * come when seq is known. */
static int pass_of(const char *key)
{
    static const char *const first[] = {"recompute", "sharding"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (strcmp(key, first[i]) == 0)
            return 0;
    return strcmp(key, "gbs") == 0 ? 2 : 1;
}

/* Read by ty_storage_load. */
static bool is_storage(const char *key)
{
    return strcmp(key, "input") == 0 || strcmp(key, "checkpoint") == 0;
}

static ty_status read_member(const struct json_at *member, struct ty_plan *plan,
                             struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    const struct ty_field *field = fields_find(fields, n, json_key(member));
    if (!field)
        return json_refuse(member, TY_ERR_INPUT, error,
                           "is no key of a plan; the nearest is \"%s\"",
                           fields_nearest(fields, n, json_key(member)));
    const char *text;
    if (json_type_of(member) != JSON_TEXT || json_get_text(member, &text, error) != TY_OK)
        return field_from_json(field, member, plan, error);
    struct ty_error reason = {0};
    ty_status status;
    if (strcmp(text, "hsdp") == 0 && strcmp(field->path, "sharding") == 0)
        status = field_from_text(field, text, plan, &reason); /* its group is a key of its own */
    else
        status = plan_set(plan, field, text, &reason);
    return status == TY_OK ? TY_OK : json_refuse(member, status, error, "%s", reason.text);
}

ty_status plan_from_json(const struct json_at *object, struct ty_plan *plan, struct ty_error *error)
{
    ty_status status = json_want(object, JSON_OBJECT, error);
    for (int pass = 0; pass <= 2 && status == TY_OK; pass++) {
        struct json_at member = {0};
        while (status == TY_OK && json_next(object, &member)) {
            const char *key = json_key(&member);
            if (key[0] != '_' && json_type_of(&member) != JSON_NULL && pass_of(key) == pass &&
                !is_storage(key))
                status = read_member(&member, plan, error);
        }
    }
    struct ty_error reason;
    if (status == TY_OK && check_shard_group(plan, &reason) != TY_OK)
        status = json_refuse(object, TY_ERR_INPUT, error, "sharding: %s", reason.text);
    return status;
}
