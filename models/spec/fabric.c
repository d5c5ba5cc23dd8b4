/* SPDX-License-Identifier: MIT
 * The built-in tables of collectives, data/fabrics/CLUSTER.json (written by tools/fabrics.pl). */
#include "include/trainyard_tools.h"
#include "models/spec/fabric.h"
#include "models/spec/builtin.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A table and what it points to, in one block. */
struct owned {
    struct ty_cluster cluster;
    char source[160];
    double values[]; /* sizes, then times */
};

static struct owned *owner_of(const struct ty_collective_table *table)
{
    return (struct owned *)(void *)((char *)(uintptr_t)table->cluster -
                                    offsetof(struct owned, cluster));
}

void ty_collective_tables_free(struct ty_collective_tables *tables)
{
    for (uint32_t i = 0; i < tables->n; i++)
        free(owner_of(&tables->table[i]));
    free((void *)(uintptr_t)tables->table);
    *tables = (struct ty_collective_tables){0};
}

void fabric_keep_inside(struct ty_collective_tables *tables)
{
    struct ty_collective_table *table = (void *)(uintptr_t)tables->table;
    uint32_t n = 0;
    for (uint32_t i = 0; i < tables->n; i++)
        if (table[i].ranks_per_domain == table[i].ranks)
            table[n++] = table[i];
        else
            free(owner_of(&table[i]));
    tables->n = n;
}

static ty_status read_op(const struct json_at *at, enum ty_collective_op *op,
                         struct ty_error *error)
{
    const char *name;
    const ty_status status = json_get_text(at, &name, error);
    if (status != TY_OK)
        return status;
    for (*op = 0; *op < TY_N_COLLECTIVES; (*op)++)
        if (strcmp(ty_collective_name(*op), name) == 0)
            return TY_OK;
    return json_refuse(at, TY_ERR_INPUT, error, "\"%s\" is no operation", name);
}

/* Positive and, for sizes, rising. */
static ty_status read_numbers(const struct json_at *array, double unit, bool rising, double *out,
                              struct ty_error *error)
{
    struct json_at item = {0};
    double least = 1e-12;
    for (uint32_t i = 0; json_next(array, &item); i++) {
        const ty_status status = json_get_double(&item, least, 1e300, &out[i], error);
        if (status != TY_OK)
            return status;
        if (rising)
            least = nextafter(out[i], INFINITY);
        out[i] *= unit;
    }
    return TY_OK;
}

static ty_status member(const struct json_at *object, const char *key, struct json_at *out,
                        struct ty_error *error)
{
    return json_find(object, key, out) ? TY_OK : json_missing(object, key, error);
}

static ty_status read_values(const struct json_at *object, struct ty_collective_table *table,
                             struct owned **owned, struct ty_error *error)
{
    struct json_at sizes, times;
    ty_status status = member(object, "size_bytes", &sizes, error);
    if (status == TY_OK)
        status = member(object, "time_us", &times, error);
    if (status != TY_OK)
        return status;
    const uint32_t n = table->n = json_size(&sizes);
    if (n == 0 || json_size(&times) != n)
        return json_refuse(&times, TY_ERR_INPUT, error, "needs one time for each size");
    *owned = calloc(1, sizeof **owned + 2 * (size_t)n * sizeof(double));
    if (!*owned)
        return error_set(error, TY_ERR_NOMEM, object->origin, "out of memory");
    table->size_bytes = (*owned)->values;
    table->time_s = (*owned)->values + n;
    status = read_numbers(&sizes, 1.0, true, (*owned)->values, error);
    return status == TY_OK ? read_numbers(&times, 1e-6, false, (*owned)->values + n, error)
                           : status;
}

static ty_status read_heading(const struct json_at *object, struct ty_collective_table *table,
                              char *source, struct ty_error *error)
{
    struct json_at at;
    ty_status status = member(object, "op", &at, error);
    if (status == TY_OK)
        status = read_op(&at, &table->op, error);
    if (status == TY_OK)
        status = member(object, "ranks", &at, error);
    if (status == TY_OK)
        status = json_get_u32(&at, 2, 1u << 24, &table->ranks, error);
    if (status == TY_OK)
        status = member(object, "source", &at, error);
    if (status == TY_OK)
        status = json_copy_text(&at, source, sizeof((struct owned *)0)->source, error);
    if (status == TY_OK && json_find(object, "ranks_per_domain", &at))
        status = json_get_u32(&at, 1, table->ranks, &table->ranks_per_domain, error);
    if (status == TY_OK && json_find(object, "calculated", &at))
        status = json_get_bool(&at, &table->calculated, error);
    return status;
}

static ty_status read_table(const struct json_at *object, const struct ty_cluster *cluster,
                            struct ty_collective_table *out, struct ty_error *error)
{
    struct ty_collective_table table = {0};
    struct owned *owned = NULL;
    ty_status status = read_values(object, &table, &owned, error);
    if (status == TY_OK)
        status = read_heading(object, &table, owned->source, error);
    if (status != TY_OK) {
        free(owned);
        return status;
    }
    owned->cluster = *cluster;
    table.cluster = &owned->cluster;
    table.source = owned->source;
    *out = table;
    return TY_OK;
}

ty_status fabric_tables(const struct json_at *array, const struct ty_cluster *cluster,
                        struct ty_collective_tables *tables, struct ty_error *error)
{
    struct json_at item = {0};
    ty_status status = json_want(array, JSON_ARRAY, error);
    if (status != TY_OK)
        return status;
    const size_t n = (size_t)tables->n + json_size(array) + 1;
    struct ty_collective_table *grown =
        realloc((void *)(uintptr_t)tables->table, n * sizeof *grown);
    if (!grown)
        return error_set(error, TY_ERR_NOMEM, array->origin, "out of memory");
    tables->table = grown;
    while (status == TY_OK && json_next(array, &item)) {
        status = read_table(&item, cluster, &grown[tables->n], error);
        tables->n += status == TY_OK;
    }
    return status;
}

static ty_status read_fabric(const struct json_at *top, struct ty_collective_tables *tables,
                             struct ty_error *error)
{
    struct ty_cluster cluster;
    struct json_at at;
    const char *name;
    ty_status status = member(top, "cluster", &at, error);
    if (status == TY_OK)
        status = json_get_text(&at, &name, error);
    if (status == TY_OK)
        status = ty_cluster_load(name, &cluster, error);
    if (status == TY_OK)
        status = member(top, "tables", &at, error);
    return status == TY_OK ? fabric_tables(&at, &cluster, tables, error) : status;
}

ty_status ty_collective_tables_load(struct ty_collective_tables *out, struct ty_error *error)
{
    struct ty_collective_tables tables = {0};
    const char *name;
    ty_status status = TY_OK;
    for (size_t i = 0; status == TY_OK && (name = builtin_name("fabrics", i)); i++) {
        const struct builtin_file *file = builtin_find("fabrics", name);
        struct json_document document = {0};
        status = json_parse((const char *)file->text, file->bytes, file->name, &document, error);
        if (status == TY_OK)
            status = read_fabric(&document.top, &tables, error);
        json_free(&document);
    }
    if (status != TY_OK)
        ty_collective_tables_free(&tables);
    else
        *out = tables;
    return status;
}
