/* SPDX-License-Identifier: MIT
 *
 * The measured tables of a profile file (docs/calibration.md): key "measured" with the lists gemm,
 * attention and tables (collectives), and the curve memory. They are of the machine the profile is
 * used for, so that collectives take the cluster that is asked about. */
#include "include/trainyard_records.h"
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/fabric.h"
#include "models/spec/open.h"
#include "sim/arena.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MAX_SIZE = 1e30, MAX_TIME_US = 1e15, MIN_TIME_US = 1e-6;

/* ---- one kernel ----------------------------------------------------------------------------- */

static ty_status member(const struct json_at *object, const char *key, struct json_at *out,
                        struct ty_error *error)
{
    return json_find(object, key, out) ? TY_OK : json_missing(object, key, error);
}

/* A number above 0; one that is left out keeps what *out holds, unless that is 0. */
static ty_status read_size(const struct json_at *object, const char *key, double *out,
                           struct ty_error *error)
{
    struct json_at at;
    if (!json_find(object, key, &at))
        return *out > 0.0 ? TY_OK : json_missing(object, key, error);
    return json_get_double(&at, 1e-30, MAX_SIZE, out, error);
}

static ty_status read_time(const struct json_at *object, double *time_s, struct ty_error *error)
{
    struct json_at at;
    double time_us;
    ty_status status = member(object, "time_us", &at, error);
    if (status == TY_OK)
        status = json_get_double(&at, MIN_TIME_US, MAX_TIME_US, &time_us, error);
    if (status == TY_OK)
        *time_s = 1e-6 * time_us;
    return status;
}

/* A text that is one of the names; its place in the list. */
static ty_status read_name(const struct json_at *object, const char *key, const char *const *names,
                           int n, int *out, struct ty_error *error)
{
    struct json_at at;
    const char *text;
    ty_status status = member(object, key, &at, error);
    if (status == TY_OK)
        status = json_get_text(&at, &text, error);
    for (*out = 0; status == TY_OK && *out < n; (*out)++)
        if (strcmp(names[*out], text) == 0)
            return TY_OK;
    return status == TY_OK ? json_refuse(&at, TY_ERR_INPUT, error, "\"%s\" is no %s", text, key)
                           : status;
}

static ty_status read_kind(const struct json_at *object, int *precision, int *direction,
                           struct ty_error *error)
{
    static const char *const directions[] = {"forward", "dgrad", "wgrad"};
    const ty_status status =
        read_name(object, "precision", precision_names, TY_N_PRECISIONS, precision, error);
    return status == TY_OK ? read_name(object, "direction", directions, 3, direction, error)
                           : status;
}

static ty_status read_gemm(const struct json_at *object, void *out, struct ty_error *error)
{
    struct ty_measured_gemm gemm = {.groups = 1.0};
    struct json_at at;
    ty_status status = read_kind(object, &gemm.precision, &gemm.direction, error);
    if (status == TY_OK && json_find(object, "grouped", &at))
        status = json_get_bool(&at, &gemm.grouped, error);
    if (status == TY_OK)
        status = read_size(object, "m", &gemm.m, error);
    if (status == TY_OK)
        status = read_size(object, "n", &gemm.n, error);
    if (status == TY_OK)
        status = read_size(object, "k", &gemm.k, error);
    if (status == TY_OK)
        status = read_size(object, "groups", &gemm.groups, error);
    gemm.inner = fmin(gemm.n, gemm.k);
    if (status == TY_OK && gemm.grouped)
        status = read_size(object, "inner", &gemm.inner, error);
    if (status == TY_OK)
        status = read_time(object, &gemm.time_s, error);
    *(struct ty_measured_gemm *)out = gemm;
    return status;
}

static ty_status read_attention(const struct json_at *object, void *out, struct ty_error *error)
{
    struct ty_measured_attention attention = {0};
    const struct {
        const char *key;
        double *size;
    } sizes[] = {{"batch_heads", &attention.batch_heads},
                 {"queries", &attention.queries},
                 {"seq", &attention.seq},
                 {"head_dim", &attention.head_dim},
                 {"pairs", &attention.pairs}};
    ty_status status = read_kind(object, &attention.precision, &attention.direction, error);
    for (size_t i = 0; status == TY_OK && i < sizeof sizes / sizeof sizes[0]; i++)
        status = read_size(object, sizes[i].key, sizes[i].size, error);
    if (status == TY_OK)
        status = read_time(object, &attention.time_s, error);
    *(struct ty_measured_attention *)out = attention;
    return status;
}

/* ---- lists ---------------------------------------------------------------------------------- */

typedef ty_status item_reader(const struct json_at *object, void *out, struct ty_error *error);

/* Every item of a list; a list that is left out is empty. */
static ty_status read_list(const struct json_at *object, const char *key, size_t bytes,
                           item_reader *read, struct arena *arena, void **out, uint32_t *n,
                           struct ty_error *error)
{
    struct json_at array, item = {0};
    *n = 0;
    if (!json_find(object, key, &array))
        return TY_OK;
    ty_status status = json_want(&array, JSON_ARRAY, error);
    if (status != TY_OK)
        return status;
    char *items = arena_get(arena, json_size(&array), bytes);
    if (!items)
        return error_set(error, TY_ERR_NOMEM, object->origin, "out of memory");
    for (*out = items; status == TY_OK && json_next(&array, &item); (*n)++) {
        status = json_want(&item, JSON_OBJECT, error);
        if (status == TY_OK)
            status = read(&item, items + *n * bytes, error);
    }
    return status;
}

/* Numbers above 0 that rise, or do not fall. */
static ty_status read_numbers(const struct json_at *array, double unit, bool strictly, double *out,
                              struct ty_error *error)
{
    struct json_at item = {0};
    double least = MIN_TIME_US;
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && json_next(array, &item); i++) {
        status = json_get_double(&item, least, MAX_SIZE, &out[i], error);
        if (status != TY_OK)
            return status;
        least = strictly ? nextafter(out[i], INFINITY) : out[i];
        out[i] *= unit;
    }
    return status;
}

static ty_status read_memory(const struct json_at *object, struct arena *arena,
                             struct ty_measured *out, struct ty_error *error)
{
    struct json_at curve, sizes, times;
    if (!json_find(object, "memory", &curve))
        return TY_OK;
    ty_status status = member(&curve, "size_bytes", &sizes, error);
    if (status == TY_OK)
        status = member(&curve, "time_us", &times, error);
    if (status == TY_OK)
        status = json_want(&sizes, JSON_ARRAY, error);
    if (status == TY_OK)
        status = json_want(&times, JSON_ARRAY, error);
    if (status != TY_OK)
        return status;
    const uint32_t n = json_size(&sizes);
    if (json_size(&times) != n)
        return json_refuse(&times, TY_ERR_INPUT, error, "needs one time for each size");
    double *bytes = arena_get(arena, n, sizeof *bytes),
           *time_s = arena_get(arena, n, sizeof *time_s);
    if (!bytes || !time_s)
        return error_set(error, TY_ERR_NOMEM, object->origin, "out of memory");
    status = read_numbers(&sizes, 1.0, true, bytes, error);
    if (status == TY_OK)
        status = read_numbers(&times, 1e-6, false, time_s, error);
    out->n_memory = n;
    out->memory_bytes = bytes;
    out->memory_time_s = time_s;
    return status;
}

/* ---- the machine ---------------------------------------------------------------------------- */

static double number_of(const struct json_at *object, const char *key)
{
    struct json_at at;
    double number;
    if (!json_find(object, key, &at) || json_get_double(&at, 0.0, 1e300, &number, NULL) != TY_OK)
        return (double)NAN;
    return number;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fabs(b);
}

/* Tables hold for the GPU and the links they were measured on: a question about another NIC must
 * not be answered with them. A file that does not name its machine is trusted. */
static void forget_others(const struct json_at *object, const struct ty_cluster *cluster,
                          struct ty_profile_tables *tables)
{
    struct json_at machine, gpu;
    const char *name;
    if (!json_find(object, "machine", &machine))
        return;
    const bool other_gpu = json_find(&machine, "gpu", &gpu) &&
                           json_get_text(&gpu, &name, NULL) == TY_OK &&
                           strcmp(name, cluster->gpu.name) != 0;
    if (other_gpu) {
        tables->measured = (struct ty_measured){0};
        text_format(tables->unused, sizeof tables->unused,
                    "its tables, which are of a %.40s and not of a %.40s", name, cluster->gpu.name);
    }
    if (other_gpu ||
        !same(number_of(&machine, "scaleup_bytes_per_s"), cluster->scaleup_bytes_per_s)) {
        if (!other_gpu && tables->collectives.n)
            text_format(tables->unused, sizeof tables->unused,
                        "its tables of collectives, which are of other scale-up links");
        ty_collective_tables_free(&tables->collectives);
        return;
    }
    if (same(number_of(&machine, "nic_bytes_per_s"), cluster->nic_bytes_per_s) &&
        same(number_of(&machine, "nics_per_node"), cluster->nics_per_node))
        return;
    const uint32_t n = tables->collectives.n;
    fabric_keep_inside(&tables->collectives);
    if (tables->collectives.n < n)
        text_format(tables->unused, sizeof tables->unused,
                    "its tables of groups that cross the network, which are of other NICs");
}

static ty_status read_measured(const struct json_at *object, const struct ty_cluster *cluster,
                               struct ty_profile_tables *out, struct ty_error *error)
{
    struct json_at tables;
    struct ty_measured *measured = &out->measured;
    void *gemms = NULL, *attentions = NULL;
    ty_status status = json_want(object, JSON_OBJECT, error);
    if (status == TY_OK)
        status = read_list(object, "gemm", sizeof *measured->gemms, read_gemm, out->memory, &gemms,
                           &measured->n_gemms, error);
    if (status == TY_OK)
        status = read_list(object, "attention", sizeof *measured->attentions, read_attention,
                           out->memory, &attentions, &measured->n_attentions, error);
    measured->gemms = gemms;
    measured->attentions = attentions;
    if (status == TY_OK)
        status = read_memory(object, out->memory, measured, error);
    if (status == TY_OK && json_find(object, "tables", &tables))
        status = fabric_tables(&tables, cluster, &out->collectives, error);
    if (status == TY_OK)
        forget_others(object, cluster, out);
    return status;
}

/* ---- interface ------------------------------------------------------------------------------ */

ty_status ty_profile_tables_load(const char *name_or_path, const struct ty_cluster *cluster,
                                 struct ty_profile_tables *out, struct ty_error *error)
{
    struct ty_profile_tables tables = {0};
    struct json_document document = {0};
    struct json_at measured;
    *out = tables;
    if (!name_or_path || strcmp(name_or_path, "preset") == 0)
        return TY_OK;
    ty_status status = spec_open("profiles", name_or_path, &document, error);
    if (status == TY_OK && json_find(&document.top, "measured", &measured)) {
        struct arena *arena = tables.memory = malloc(sizeof *arena);
        if (arena)
            arena_init(arena, NULL);
        status = arena ? read_measured(&measured, cluster, &tables, error)
                       : error_set(error, TY_ERR_NOMEM, name_or_path, "out of memory");
    }
    json_free(&document);
    if (status == TY_OK)
        *out = tables;
    else
        ty_profile_tables_free(&tables);
    return status;
}

void ty_profile_tables_free(struct ty_profile_tables *tables)
{
    ty_collective_tables_free(&tables->collectives);
    if (tables->memory)
        arena_destroy(tables->memory);
    free(tables->memory);
    *tables = (struct ty_profile_tables){0};
}

void ty_profile_use(struct ty_profile *profile, const struct ty_profile_tables *tables)
{
    const struct ty_measured *measured = &tables->measured;
    if (measured->n_gemms || measured->n_attentions || measured->n_memory)
        profile->measured = measured;
    if (tables->collectives.n)
        profile->collectives = &tables->collectives;
}
