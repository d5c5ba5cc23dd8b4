/* SPDX-License-Identifier: MIT
 *
 * A collective from measured tables, in order of trust: a table of this cluster and group, inside
 * its range and beyond it; else what all tables say when scaled (comm_neighbour.c). */
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the cluster's own tables -------------------------------------------------------------- */

static bool holds(const struct ty_collective_table *table, double size_bytes)
{
    return size_bytes >= table->size_bytes[0] && size_bytes <= table->size_bytes[table->n - 1];
}

/* Inside its range, or beyond it by its lines. A table without small messages does not know the
 * latency. */
static bool reaches(const struct ty_collective_table *table, double size_bytes)
{
    return holds(table, size_bytes) ||
           (table->n >= COMM_LINE_POINTS &&
            (size_bytes > table->size_bytes[0] || table->size_bytes[0] <= COMM_SMALL_BYTES));
}

static bool has_point(const struct ty_collective_table *table, double size_bytes)
{
    for (uint32_t i = 0; i < table->n; i++)
        if (table->size_bytes[i] == size_bytes)
            return true;
    return false;
}

static double reached_s(const struct ty_collective_table *table, double size_bytes)
{
    return holds(table, size_bytes) ? comm_table_s(table, size_bytes)
                                    : comm_lines_s(table, size_bytes);
}

/* Is `a` to be preferred for a group of `ranks`: nearer in ranks, then holds the size, then longer.
 */
static bool better(const struct ty_collective_table *a, const struct ty_collective_table *b,
                   uint32_t ranks, double size_bytes)
{
    const double away_a = comm_doublings(a->ranks, ranks), away_b = comm_doublings(b->ranks, ranks);
    if (away_a < away_b || away_a > away_b)
        return away_a < away_b;
    if (holds(a, size_bytes) != holds(b, size_bytes))
        return holds(a, size_bytes);
    return a->n > b->n;
}

/* Of this cluster and operation, with as many ranks per domain, that reaches the size. */
static const struct ty_collective_table *own_table(const struct ty_collective_tables *tables,
                                                   const struct comm_group *group,
                                                   enum ty_collective_op op, double size_bytes)
{
    const struct ty_collective_table *best = NULL;
    for (uint32_t i = 0; i < tables->n; i++) {
        const struct ty_collective_table *table = &tables->table[i];
        if (table->op != op || strcmp(table->cluster->name, group->cluster.name) != 0)
            continue;
        const uint32_t per_domain = table->ranks_per_domain
                                        ? table->ranks_per_domain
                                        : cluster_domain(&group->cluster, table->ranks);
        if (per_domain == group->shape.ranks_per_domain && reaches(table, size_bytes) &&
            (!best || better(table, best, group->shape.size, size_bytes)))
            best = table;
    }
    return best;
}

static bool from_own_table(const struct ty_collective_query *query, const struct comm_group *group,
                           const struct ty_collective_tables *tables,
                           struct ty_collective_time *out)
{
    const double size_bytes = query->size_bytes;
    const struct ty_collective_table *table = own_table(tables, group, query->op, size_bytes);
    if (!table || table->ranks != query->ranks)
        return false;
    out->table = table;
    out->time_s = reached_s(table, size_bytes);
    out->origin = holds(table, size_bytes) ? TY_FROM_INTERPOLATION : TY_FROM_LINES;
    if (has_point(table, size_bytes))
        out->origin = TY_FROM_TABLE;
    return true;
}

bool comm_measured_s(const struct ty_collective_tables *tables, const struct comm_group *group,
                     enum ty_collective_op op, double size_bytes, double *time_s,
                     enum ty_origin *origin)
{
    const struct ty_collective_table *table = own_table(tables, group, op, size_bytes);
    if (!table)
        return false;
    *time_s = reached_s(table, size_bytes);
    *origin = has_point(table, size_bytes) ? TY_ORIGIN_MEASURED
              : holds(table, size_bytes)   ? TY_ORIGIN_INTERPOLATED
                                           : TY_ORIGIN_FITTED;
    if (table->ranks == group->shape.size)
        return true;
    *origin = TY_ORIGIN_FITTED;
    struct comm_group theirs = *group;
    theirs.shape.size = table->ranks;
    theirs.shape.n_domains = 1 + (table->ranks - 1) / group->shape.ranks_per_domain;
    if (theirs.shape.n_domains == 1)
        theirs.shape.link = LINK_SCALEUP;
    *time_s *=
        comm_prior_s(group, op, size_bytes, NULL) / comm_prior_s(&theirs, op, size_bytes, NULL);
    return true;
}

/* ---- interface ----------------------------------------------------------------------------- */

const char *ty_collective_name(enum ty_collective_op op)
{
    static const char *const names[TY_N_COLLECTIVES] = {[TY_ALL_REDUCE] = "all_reduce",
                                                        [TY_ALL_GATHER] = "all_gather",
                                                        [TY_REDUCE_SCATTER] = "reduce_scatter",
                                                        [TY_ALL_TO_ALL] = "alltoall",
                                                        [TY_SEND_RECV] = "sendrecv"};
    return (unsigned)op < TY_N_COLLECTIVES ? names[op] : "";
}

static void describe(const struct ty_collective_query *query, const struct comm_group *group,
                     struct ty_collective_time *out)
{
    const double algbw = query->size_bytes / out->time_s;
    out->algbw_bytes_per_s = algbw;
    out->busbw_bytes_per_s =
        algbw * collective_busbw_factor((enum collective_op)query->op, query->ranks);
    out->limit = comm_limit(group, query->op, query->size_bytes);
    out->algorithm = "p2p";
    out->protocol = "";
    if (query->op != TY_ALL_TO_ALL && query->op != TY_SEND_RECV) {
        struct nccl_choice choice;
        comm_prior_s(group, query->op, query->size_bytes, &choice);
        out->algorithm = nccl_algorithm_name(choice.algorithm);
        out->protocol = nccl_protocol_name(choice.protocol);
    }
}

ty_status ty_collective_predict(const struct ty_collective_query *query,
                                const struct ty_collective_tables *tables,
                                struct ty_collective_time *out, struct ty_error *error)
{
    static const struct ty_collective_tables none = {0, NULL};
    struct comm_group group;
    struct ty_collective_time time = {0};
    if (!(query->size_bytes >= 1.0) || !(query->size_bytes <= 0x1p60))
        return error_set(error, TY_ERR_RANGE, "size", "%g bytes is not within 1..2^60",
                         query->size_bytes);
    if ((unsigned)query->op >= TY_N_COLLECTIVES)
        return error_set(error, TY_ERR_RANGE, "op", "%d is no operation", (int)query->op);
    ty_status status =
        comm_group_init(query->cluster, query->ranks, query->ranks_per_domain, &group, error);
    if (!tables)
        tables = &none;
    double nearest = 0.0; /* distance of the nearest table */
    if (status == TY_OK && !from_own_table(query, &group, tables, &time))
        status = comm_from_neighbours(query, &group, tables, &time, &nearest, error);
    if (status != TY_OK)
        return status;
    comm_interval(&time, nearest);
    describe(query, &group, &time);
    *out = time;
    return TY_OK;
}

/* ---- many sizes ---------------------------------------------------------------------------- */

static ty_status predict_points(struct ty_comm *comm, const struct ty_collective_tables *tables,
                                struct ty_error *error)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; i < comm->n && status == TY_OK; i++) {
        comm->query.size_bytes = comm->points[i].size_bytes;
        status = ty_collective_predict(&comm->query, tables, &comm->points[i].predicted, error);
    }
    return status;
}

ty_status ty_comm_predict(const struct ty_collective_query *query, const double *size_bytes,
                          uint32_t n, const struct ty_collective_tables *tables,
                          struct ty_comm *out, struct ty_error *error)
{
    struct ty_comm comm = {.query = *query, .n = n};
    comm.points = calloc((size_t)n + 1, sizeof *comm.points);
    if (!comm.points)
        return error_set(error, TY_ERR_NOMEM, "sizes", "out of memory");
    for (uint32_t i = 0; i < n; i++)
        comm.points[i] = (struct ty_comm_point){.size_bytes = size_bytes[i],
                                                .measured_s = (double)NAN,
                                                .measured_busbw_bytes_per_s = (double)NAN,
                                                .off = (double)NAN};
    const ty_status status = predict_points(&comm, tables, error);
    if (status != TY_OK)
        ty_comm_free(&comm);
    else
        *out = comm;
    return status;
}

void ty_comm_free(struct ty_comm *comm)
{
    free(comm->points);
    *comm = (struct ty_comm){0};
}

const char *ty_collective_origin_name(enum ty_collective_origin origin)
{
    static const char *const names[] = {"table", "interpolated", "lines", "neighbour", "model"};
    return (unsigned)origin <= TY_FROM_MODEL ? names[origin] : "";
}

const char *ty_comm_verdict_name(enum ty_comm_verdict verdict)
{
    static const char *const names[] = {"", "normal", "low", "high"};
    return (unsigned)verdict <= TY_COMM_HIGH ? names[verdict] : "";
}
