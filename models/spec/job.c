/* SPDX-License-Identifier: MIT
 * The phases of a run from JSON (docs/formats.md, "Job"). */
#include "include/trainyard_tools.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <string.h>

/* 15e12 or "15Ttok". */
static ty_status read_tokens(const struct json_at *at, double *out, struct ty_error *error)
{
    const char *text;
    struct ty_error why = {0};
    if (json_type_of(at) != JSON_TEXT)
        return json_get_double(at, 1.0, 1e18, out, error);
    ty_status status = json_get_text(at, &text, error);
    if (status != TY_OK)
        return status;
    status = ty_quantity_parse(text, TY_UNIT_TOKENS, out, &why);
    return status == TY_OK ? TY_OK : json_refuse(at, status, error, "%s", why.text);
}

static ty_status read_phase(const struct json_at *object, struct ty_phase *out,
                            struct ty_error *error)
{
    struct json_at member = {0};
    bool has_tokens = false;
    ty_status status = json_want(object, JSON_OBJECT, error);
    while (status == TY_OK && json_next(object, &member)) {
        const char *key = json_key(&member);
        if (strcmp(key, "tokens") == 0) {
            status = read_tokens(&member, &out->tokens, error);
            has_tokens = true;
        } else if (strcmp(key, "seq") == 0) {
            status = json_get_u32(&member, 1, 1u << 30, &out->seq, error);
        } else if (strcmp(key, "gbs") == 0) {
            status = json_get_u32(&member, 1, 1u << 30, &out->gbs, error);
        } else if (key[0] != '_') {
            status = json_refuse(&member, TY_ERR_INPUT, error,
                                 "is no key of a phase; legal: tokens, seq, gbs");
        }
    }
    return status == TY_OK && !has_tokens ? json_missing(object, "tokens", error) : status;
}

static ty_status read_phases(const struct json_at *array, struct ty_job *job,
                             struct ty_error *error)
{
    struct json_at item = {0};
    ty_status status = json_want(array, JSON_ARRAY, error);
    while (status == TY_OK && json_next(array, &item)) {
        if (job->n_phases == TY_MAX_PHASES)
            return json_refuse(array, TY_ERR_INPUT, error, "has more than %d phases",
                               TY_MAX_PHASES);
        status = read_phase(&item, &job->phase[job->n_phases++], error);
    }
    if (status == TY_OK && job->n_phases == 0)
        status = json_refuse(array, TY_ERR_INPUT, error, "is empty");
    return status;
}

static ty_status read_job(const struct json_at *top, struct ty_job *job, struct ty_error *error)
{
    struct json_at member = {0};
    double days = 0.0;
    ty_status status = json_want(top, JSON_OBJECT, error);
    while (status == TY_OK && json_next(top, &member)) {
        const char *key = json_key(&member);
        if (strcmp(key, "name") == 0)
            status = json_copy_text(&member, job->name, sizeof job->name, error);
        else if (strcmp(key, "phases") == 0)
            status = read_phases(&member, job, error);
        else if (strcmp(key, "downtime_days") == 0)
            status = json_get_double(&member, 0.0, 36525.0, &days, error);
        else if (key[0] != '_')
            status = json_refuse(&member, TY_ERR_INPUT, error,
                                 "is no key of a job; legal: name, phases, downtime_days");
    }
    job->downtime_s = 86400.0 * days;
    return status == TY_OK && job->n_phases == 0 ? json_missing(top, "phases", error) : status;
}

ty_status ty_job_load(const char *path, struct ty_job *out, struct ty_error *error)
{
    struct json_document document = {0};
    struct ty_job job = {0};
    ty_status status = json_load_file(path, &document, error);
    if (status == TY_OK)
        status = read_job(&document.top, &job, error);
    json_free(&document);
    if (status == TY_OK)
        *out = job;
    return status;
}
