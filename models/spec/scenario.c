/* SPDX-License-Identifier: MIT
 *
 * Scenarios of the full rung from JSON: placement, faults, speeds, other GPUs, other jobs. All that
 * a scenario points to lives in one arena. */
#include "include/trainyard_tools.h"
#include "models/spec/fields_read.h"
#include "models/spec/json.h"
#include "sim/arena.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

struct owned {
    struct ty_scenario scenario; /* first: the public pointer is the handle */
    struct arena arena;
};

struct reader {
    struct owned *owned;
    struct ty_error *error;
};

typedef ty_status read_fn(struct reader *reader, const struct json_at *at);

static void *get(const struct reader *reader, uint32_t n, size_t size)
{
    return arena_get(&reader->owned->arena, n, size);
}

static ty_status no_memory(const struct reader *reader, const struct json_at *at)
{
    return json_refuse(at, TY_ERR_NOMEM, reader->error, "out of memory");
}

/* ---- pieces -------------------------------------------------------------------------------- */

static ty_status read_counts(const struct reader *reader, const struct json_at *at,
                             const uint32_t **out, uint32_t *n)
{
    ty_status status = json_want(at, JSON_ARRAY, reader->error);
    uint32_t *values = get(reader, json_size(at) + 1, sizeof *values);
    struct json_at item = {0};
    if (!values)
        return no_memory(reader, at);
    for (*n = 0; status == TY_OK && json_next(at, &item); ++*n)
        status = json_get_u32(&item, 0, 1u << 24, &values[*n], reader->error);
    *out = values;
    return status;
}

static ty_status member_u32(const struct reader *reader, const struct json_at *object,
                            const char *key, uint32_t otherwise, uint32_t *out)
{
    struct json_at at;
    *out = otherwise;
    return json_find(object, key, &at) ? json_get_u32(&at, 0, 1u << 24, out, reader->error) : TY_OK;
}

static ty_status member_ratio(const struct reader *reader, const struct json_at *object, double max,
                              double *out)
{
    struct json_at at;
    if (!json_find(object, "ratio", &at))
        return json_missing(object, "ratio", reader->error);
    return json_get_double(&at, 0.0, max, out, reader->error);
}

static ty_status member_text(const struct reader *reader, const struct json_at *object,
                             const char *key, const char **out)
{
    struct json_at at;
    if (!json_find(object, key, &at))
        return json_missing(object, key, reader->error);
    return json_get_text(&at, out, reader->error);
}

static ty_status read_fault(const struct reader *reader, const struct json_at *at,
                            struct ty_fault *out)
{
    const char *name;
    ty_status status = member_text(reader, at, "kind", &name);
    if (status != TY_OK)
        return status;
    for (out->kind = TY_FAULT_NIC; strcmp(ty_fault_name(out->kind), name) != 0; out->kind++)
        if (out->kind == TY_FAULT_POD_UPLINK)
            return json_refuse(at, TY_ERR_INPUT, reader->error,
                               "kind \"%.40s\" is not one of nic, link, uplink, pod_uplink", name);
    status = member_u32(reader, at, "unit", 0, &out->unit);
    if (status == TY_OK)
        status = member_u32(reader, at, "part", 0, &out->part);
    return status == TY_OK ? member_ratio(reader, at, 1.0, &out->ratio) : status;
}

static ty_status read_speed(const struct reader *reader, const struct json_at *at,
                            struct ty_speed *out)
{
    ty_status status = member_u32(reader, at, "rank", 0, &out->first_rank);
    if (status == TY_OK)
        status = member_u32(reader, at, "ranks", 1, &out->n_ranks);
    return status == TY_OK ? member_ratio(reader, at, 1e6, &out->ratio) : status;
}

static ty_status read_node_gpu(const struct reader *reader, const struct json_at *at,
                               struct ty_node_gpu *out)
{
    struct ty_gpu *gpu = get(reader, 1, sizeof *gpu);
    const char *name;
    if (!gpu)
        return no_memory(reader, at);
    ty_status status = member_u32(reader, at, "node", 0, &out->first_node);
    if (status == TY_OK)
        status = member_u32(reader, at, "nodes", 1, &out->n_nodes);
    if (status == TY_OK)
        status = member_text(reader, at, "gpu", &name);
    out->gpu = gpu;
    return status == TY_OK ? ty_gpu_load(name, gpu, reader->error) : status;
}

static ty_status read_other(const struct reader *reader, const struct json_at *at,
                            struct ty_other_job *out)
{
    struct ty_model *model = get(reader, 1, sizeof *model);
    struct ty_plan *plan = get(reader, 1, sizeof *plan);
    struct json_at member;
    const char *name;
    if (!model || !plan)
        return no_memory(reader, at);
    ty_init(TY_KIND_PLAN, plan);
    ty_status status = member_text(reader, at, "model", &name);
    if (status == TY_OK)
        status = ty_model_load(name, model, reader->error);
    if (status == TY_OK && !json_find(at, "plan", &member))
        status = json_missing(at, "plan", reader->error);
    if (status == TY_OK)
        status = plan_from_json(&member, plan, reader->error);
    if (status == TY_OK && !json_find(at, "nodes", &member))
        status = json_missing(at, "nodes", reader->error);
    out->model = model;
    out->plan = plan;
    return status == TY_OK ? read_counts(reader, &member, &out->nodes, &out->n_nodes) : status;
}

/* ---- members ------------------------------------------------------------------------------- */

static ty_status read_nodes(struct reader *r, const struct json_at *at)
{
    return read_counts(r, at, &r->owned->scenario.nodes, &r->owned->scenario.n_nodes);
}

static ty_status read_places(struct reader *r, const struct json_at *at)
{
    return read_counts(r, at, &r->owned->scenario.places, &r->owned->scenario.n_places);
}

static ty_status read_n_micro(struct reader *r, const struct json_at *at)
{
    return read_counts(r, at, &r->owned->scenario.n_micro, &r->owned->scenario.n_replicas);
}

/* An array of objects into `member` of the scenario and its count. */
#define READ_LIST(name, type, member, count, read_item)                                            \
    static ty_status name(struct reader *r, const struct json_at *at)                              \
    {                                                                                              \
        struct ty_scenario *scenario = &r->owned->scenario;                                        \
        ty_status status = json_want(at, JSON_ARRAY, r->error);                                    \
        struct type *list = get(r, json_size(at) + 1, sizeof *list);                               \
        struct json_at item = {0};                                                                 \
        if (!list)                                                                                 \
            return no_memory(r, at);                                                               \
        scenario->member = list;                                                                   \
        while (status == TY_OK && json_next(at, &item))                                            \
            status = read_item(r, &item, &list[scenario->count++]);                                \
        return status;                                                                             \
    }
READ_LIST(read_faults, ty_fault, faults, n_faults, read_fault)
READ_LIST(read_speeds, ty_speed, speeds, n_speeds, read_speed)
READ_LIST(read_node_gpus, ty_node_gpu, node_gpus, n_node_gpus, read_node_gpu)
READ_LIST(read_others, ty_other_job, others, n_others, read_other)

static ty_status read_jitter(struct reader *r, const struct json_at *at)
{
    return json_get_double(at, 0.0, 1.0, &r->owned->scenario.jitter_ratio, r->error);
}

static ty_status read_steps(struct reader *r, const struct json_at *at)
{
    return json_get_u32(at, 1, 1000, &r->owned->scenario.n_steps, r->error);
}

static ty_status read_balance(struct reader *r, const struct json_at *at)
{
    return json_get_bool(at, &r->owned->scenario.balance, r->error);
}

static ty_status read_detailed(struct reader *r, const struct json_at *at)
{
    return json_get_bool(at, &r->owned->scenario.detailed, r->error);
}

static ty_status read_unfold(struct reader *r, const struct json_at *at)
{
    return json_get_bool(at, &r->owned->scenario.unfold, r->error);
}

static ty_status read_member(struct reader *reader, const struct json_at *member)
{
    static const struct {
        const char *key;
        read_fn *read;
    } members[] = {
        {"nodes", read_nodes},     {"places", read_places},       {"faults", read_faults},
        {"speeds", read_speeds},   {"node_gpus", read_node_gpus}, {"n_micro", read_n_micro},
        {"others", read_others},   {"jitter", read_jitter},       {"steps", read_steps},
        {"balance", read_balance}, {"detailed", read_detailed},   {"unfold", read_unfold}};
    if (json_key(member)[0] == '_')
        return TY_OK;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(json_key(member), members[i].key) == 0)
            return members[i].read(reader, member);
    return json_refuse(member, TY_ERR_INPUT, reader->error,
                       "is no key of a scenario; those are nodes, places, faults, speeds, jitter, "
                       "node_gpus, n_micro, balance, others, steps, detailed, unfold");
}

void ty_scenario_free(const struct ty_scenario *scenario)
{
    if (!scenario)
        return;
    struct owned *owned = (struct owned *)(uintptr_t)scenario;
    arena_destroy(&owned->arena);
    free(owned);
}

static ty_status read_document(const struct json_document *document, const struct ty_scenario **out,
                               struct ty_error *error)
{
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        return error_set(error, TY_ERR_NOMEM, document->top.origin, "out of memory");
    struct reader reader = {owned, error};
    struct json_at member = {0};
    arena_init(&owned->arena, NULL);
    ty_status status = json_want(&document->top, JSON_OBJECT, error);
    while (status == TY_OK && json_next(&document->top, &member))
        status = read_member(&reader, &member);
    if (status != TY_OK)
        ty_scenario_free(&owned->scenario);
    else
        *out = &owned->scenario;
    return status;
}

ty_status ty_scenario_load(const char *path, const struct ty_scenario **out, struct ty_error *error)
{
    struct json_document document = {0};
    ty_status status = json_load_file(path, &document, error);
    if (status == TY_OK)
        status = read_document(&document, out, error);
    json_free(&document);
    return status;
}

ty_status ty_scenario_parse(const char *text, size_t bytes, const char *origin,
                            const struct ty_scenario **out, struct ty_error *error)
{
    struct json_document document = {0};
    ty_status status = json_parse(text, bytes, origin, &document, error);
    if (status == TY_OK)
        status = read_document(&document, out, error);
    json_free(&document);
    return status;
}
