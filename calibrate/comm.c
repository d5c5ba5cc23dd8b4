/* SPDX-License-Identifier: MIT
 * Measured times of a log beside predicted ones, and JSON of the answer. */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- measured ------------------------------------------------------------------------------ */

static enum ty_collective_op op_of(const struct record *record)
{
    const char *name = record_value_text(record, "op");
    enum ty_collective_op op = 0;
    while (op < TY_N_COLLECTIVES && strcmp(ty_collective_name(op), name) != 0)
        op++;
    return op;
}

static uint32_t count_of(const struct record *record, const char *key)
{
    const double value = record_value(record, key);
    return value >= 1.0 && value < 0x1p24 ? (uint32_t)value : 0;
}

/* A measured point of the operation and ranks of the query, as far as it says. */
static bool answers(const struct record *record, const struct ty_collective_query *query)
{
    return strcmp(record->kind, "collective") == 0 && !record->rejected &&
           !(record->flags & (RECORD_COLD | RECORD_OUTLIER | RECORD_COARSE)) &&
           record_value(record, "time_s") > 0.0 && record_value(record, "size_bytes") >= 1.0 &&
           (query->op >= TY_N_COLLECTIVES ? op_of(record) < TY_N_COLLECTIVES
                                          : op_of(record) == query->op) &&
           (query->ranks ? count_of(record, "ranks") == query->ranks
                         : count_of(record, "ranks") > 1);
}

/* Fewer ranks on a node than it has GPUs: so many are in one domain. */
static void complete_query(const struct record *record, struct ty_collective_query *query)
{
    const uint32_t nodes = count_of(record, "nodes");
    query->op = op_of(record);
    query->ranks = count_of(record, "ranks");
    query->calculated =
        (record->flags & RECORD_DERIVED) != 0 || strstr(record->tool, "all_reduce_bench") != NULL;
    const uint32_t per_node = nodes ? query->ranks / nodes : 0;
    if (!query->ranks_per_domain && nodes > 1 && per_node < query->cluster->gpus_per_node)
        query->ranks_per_domain = per_node;
}

static int by_size(const void *a, const void *b)
{
    const double left = ((const struct ty_comm_point *)a)->size_bytes;
    const double right = ((const struct ty_comm_point *)b)->size_bytes;
    return (left > right) - (left < right);
}

/* Times of one size (in and out of place, repeated) become their geometric mean. */
static void merge_sizes(struct ty_comm *comm)
{
    uint32_t n = 0;
    qsort(comm->points, comm->n, sizeof *comm->points, by_size);
    for (uint32_t from = 0, to; from < comm->n; from = to) {
        double sum = 0.0;
        for (to = from; to < comm->n && by_size(&comm->points[to], &comm->points[from]) == 0; to++)
            sum += log(comm->points[to].measured_s);
        comm->points[n] = comm->points[from];
        comm->points[n++].measured_s = exp(sum / (to - from));
    }
    comm->n = n;
}

static ty_status take_points(const struct record_list *list, const char *path, struct ty_comm *comm,
                             struct ty_error *error)
{
    comm->points = calloc(list->n + 1, sizeof *comm->points);
    if (!comm->points)
        return error_set(error, TY_ERR_NOMEM, path, "out of memory");
    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = &list->record[i];
        if (!answers(record, &comm->query))
            continue;
        if (comm->n == 0)
            complete_query(record, &comm->query);
        comm->points[comm->n++] =
            (struct ty_comm_point){.size_bytes = record_value(record, "size_bytes"),
                                   .measured_s = record_value(record, "time_s")};
    }
    if (comm->n == 0)
        return error_set(error, TY_ERR_INPUT, path,
                         "holds no measured size of %s over %u ranks (0: any number)",
                         comm->query.op < TY_N_COLLECTIVES ? ty_collective_name(comm->query.op)
                                                           : "an operation that comm knows",
                         comm->query.ranks);
    merge_sizes(comm);
    return TY_OK;
}

static ty_status read_log(const char *path, struct ty_comm *comm, struct ty_error *error)
{
    struct import_file file = {.path = path};
    struct record_list list;
    record_list_init(&list);
    ty_status status = import_read_file(&file, error);
    if (status == TY_OK)
        status = micro_read(&file, &list, error);
    if (status == TY_OK)
        status = take_points(&list, path, comm, error);
    record_list_free(&list);
    free(file.text);
    return status;
}

/* What was measured at each size of the answer, which has one point for each of the log's. */
static ty_status judge(const struct ty_comm *log, struct ty_comm *comm, struct ty_error *error)
{
    for (uint32_t i = 0; i < comm->n; i++)
        comm->points[i].measured_s = log->points[i].measured_s;
    return ty_comm_judge(comm, error);
}

static ty_status predict(const struct ty_comm *log, const struct ty_collective_tables *tables,
                         struct ty_comm *out, struct ty_error *error)
{
    double *size_bytes = calloc(log->n, sizeof *size_bytes);
    if (!size_bytes)
        return error_set(error, TY_ERR_NOMEM, "sizes", "out of memory");
    for (uint32_t i = 0; i < log->n; i++)
        size_bytes[i] = log->points[i].size_bytes;
    const ty_status status = ty_comm_predict(&log->query, size_bytes, log->n, tables, out, error);
    free(size_bytes);
    return status;
}

ty_status ty_comm_compare(const struct ty_collective_query *query, const char *log_path,
                          const struct ty_collective_tables *tables, struct ty_comm *out,
                          struct ty_error *error)
{
    struct ty_comm log = {.query = *query}, comm = {0};
    ty_status status = read_log(log_path, &log, error);
    if (status == TY_OK)
        status = predict(&log, tables, &comm, error);
    if (status == TY_OK)
        status = judge(&log, &comm, error);
    ty_comm_free(&log);
    if (status != TY_OK)
        ty_comm_free(&comm);
    else
        *out = comm;
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void write_point(struct json_writer *json, const struct ty_comm_point *point)
{
    const struct ty_collective_time *time = &point->predicted;
    json_object(json, NULL);
    json_number(json, "size_bytes", point->size_bytes);
    json_number(json, "time_s", time->time_s);
    json_number(json, "low_s", time->low_s);
    json_number(json, "high_s", time->high_s);
    json_number(json, "algbw_bytes_per_s", time->algbw_bytes_per_s);
    json_number(json, "busbw_bytes_per_s", time->busbw_bytes_per_s);
    json_text(json, "algorithm", time->algorithm);
    json_text(json, "protocol", *time->protocol ? time->protocol : NULL);
    json_text(json, "limit", time->limit);
    json_text(json, "origin", ty_collective_origin_name(time->origin));
    json_text(json, "source", time->table ? time->table->source : NULL);
    if (point->verdict != TY_COMM_UNMEASURED) {
        json_number(json, "measured_s", point->measured_s);
        json_number(json, "measured_busbw_bytes_per_s", point->measured_busbw_bytes_per_s);
        json_number(json, "off", point->off);
        json_text(json, "verdict", ty_comm_verdict_name(point->verdict));
    }
    json_close(json);
}

char *ty_comm_json(const struct ty_comm *comm)
{
    struct json_writer json;
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "cluster", comm->query.cluster->name);
    json_text(&json, "op", ty_collective_name(comm->query.op));
    json_count(&json, "ranks", comm->query.ranks);
    json_array(&json, "sizes");
    for (uint32_t i = 0; i < comm->n; i++)
        write_point(&json, &comm->points[i]);
    json_close(&json);
    if (comm->n && comm->points[0].verdict != TY_COMM_UNMEASURED) {
        json_count(&json, "n_low", comm->n_low);
        json_count(&json, "n_high", comm->n_high);
        json_text(&json, "cause", *comm->cause ? comm->cause : NULL);
    }
    json_close(&json);
    return json_finish(&json);
}
