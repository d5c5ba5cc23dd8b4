/* SPDX-License-Identifier: MIT
 * Two small tables a pool may come with: its node types, and the rights of its queues. */
#include "calibrate/csv.h"
#include "include/trainyard_tools.h"
#include "models/spec/json.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number of a cell within its range; an empty cell or absent column gives the fallback. */
struct cell_range {
    const char *column;
    double fallback, min, max; /* fallback NAN: may be absent */
    bool whole;
};

static ty_status read_cell(const struct csv *csv, uint64_t row, const char *path,
                           const struct cell_range *range, double *out, struct ty_error *error)
{
    const char *text = csv_cell(csv, row, csv_column(csv, range->column));
    double value = range->fallback;
    const size_t length = strlen(text);
    const bool bad = length > 0 && number_parse(text, length, &value) != length;
    if (bad || value < range->min || value > range->max || (range->whole && value != floor(value)))
        return error_set(error, TY_ERR_INPUT, path, "line %llu: %s \"%s\" is not %s%g to %g",
                         (unsigned long long)(row + 2), range->column, text,
                         range->whole ? "a whole number from " : "", range->min, range->max);
    *out = value;
    return TY_OK;
}

static ty_status need_column(const struct csv *csv, const char *path, const char *name,
                             struct ty_error *error)
{
    if (csv_column(csv, name) >= 0)
        return TY_OK;
    return error_set(error, TY_ERR_INPUT, path, "has no column %s", name);
}

/* ---- nodes -------------------------------------------------------------------------------- */

static ty_status read_group(const struct csv *csv, uint64_t row, const char *path,
                            struct ty_pool_nodes *out, struct ty_error *error)
{
    static const struct cell_range ranges[] = {{"nodes", 0.0, 1.0, 1048576.0, true},
                                               {"gpus_per_node", 0.0, 0.0, 1048576.0, true},
                                               {"nodes_per_leaf", 0.0, 0.0, 1048576.0, true},
                                               {"pod", 0.0, 0.0, 1048575.0, true},
                                               {"cpus", (double)NAN, 0.0, 1e9, false},
                                               {"memory_mib", (double)NAN, 0.0, 1e12, false}};
    double value[6];
    for (size_t i = 0; i < 6; i++) {
        ty_status status = read_cell(csv, row, path, &ranges[i], &value[i], error);
        if (status != TY_OK)
            return status;
    }
    *out = (struct ty_pool_nodes){.n_nodes = (uint32_t)value[0],
                                  .gpus_per_node = (uint32_t)value[1],
                                  .nodes_per_leaf = (uint32_t)value[2],
                                  .pod = (uint32_t)value[3],
                                  .cpus = value[4],
                                  .mem_bytes = value[5] * 1048576.0};
    text_format(out->gpu, sizeof out->gpu, "%s", csv_cell(csv, row, csv_column(csv, "gpu_model")));
    return TY_OK;
}

ty_status ty_pool_nodes_read(const char *path, struct ty_pool_nodes *out, uint32_t capacity,
                             uint32_t *n_groups, struct ty_error *error)
{
    struct csv csv;
    ty_status status = csv_read(path, &csv, error);
    if (status != TY_OK)
        return status;
    uint32_t n = 0;
    status = need_column(&csv, path, "nodes", error);
    if (status == TY_OK)
        status = need_column(&csv, path, "gpus_per_node", error);
    for (uint64_t row = 0; row < csv.n_rows && status == TY_OK; row++) {
        struct ty_pool_nodes group;
        status = read_group(&csv, row, path, &group, error);
        if (status != TY_OK || group.gpus_per_node == 0)
            continue;
        if (n == capacity)
            status =
                error_set(error, TY_ERR_INPUT, path, "more than %u node types with GPUs", capacity);
        else
            out[n++] = group;
    }
    if (status == TY_OK && n == 0)
        status = error_set(error, TY_ERR_INPUT, path, "no node has a GPU");
    if (status == TY_OK)
        *n_groups = n;
    csv_free(&csv);
    return status;
}

/* ---- queues ------------------------------------------------------------------------------- */

static ty_status read_queue(const struct csv *csv, uint64_t row, const char *path,
                            struct ty_trace *trace, struct ty_error *error)
{
    static const struct cell_range ranges[] = {{"weight", (double)NAN, 1e-9, 1e9, false},
                                               {"quota_gpus", (double)NAN, 0.0, 1e9, false},
                                               {"borrow_gpus", (double)NAN, 0.0, 1e9, false},
                                               {"cohort", 0.0, 0.0, 4294967295.0, true}};
    double value[4];
    for (size_t i = 0; i < 4; i++) {
        ty_status status = read_cell(csv, row, path, &ranges[i], &value[i], error);
        if (status != TY_OK)
            return status;
    }
    const char *name = csv_cell(csv, row, csv_column(csv, "queue"));
    for (uint32_t i = 0; i < trace->n_queues; i++) {
        struct ty_pool_queue *queue = &trace->queues[i];
        if (strcmp(queue->name, name) != 0)
            continue;
        queue->weight = value[0];
        queue->quota_gpus = value[1];
        queue->borrow_gpus = value[2];
        queue->cohort = (uint32_t)value[3];
        return TY_OK;
    }
    return error_set(error, TY_ERR_INPUT, path, "line %llu: no job of the trace is in queue \"%s\"",
                     (unsigned long long)(row + 2), name);
}

ty_status ty_trace_queues_read(const char *path, struct ty_trace *trace, struct ty_error *error)
{
    struct csv csv;
    ty_status status = csv_read(path, &csv, error);
    if (status != TY_OK)
        return status;
    status = need_column(&csv, path, "queue", error);
    for (uint64_t row = 0; row < csv.n_rows && status == TY_OK; row++)
        status = read_queue(&csv, row, path, trace, error);
    csv_free(&csv);
    return status;
}
