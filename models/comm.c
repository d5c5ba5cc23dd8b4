/* SPDX-License-Identifier: MIT
 *
 * A collective from measured tables, in order of trust: a table of this cluster and group, inside
 * its range and beyond it; else the weighted median of what all tables say when scaled,
 *
 *   t(S) = A_i + (t_i(S) - A_i) prior(S) / prior_i(S),   weight exp(-d_i / H)
 *
 * A_i: overhead of the software in table i, which no link explains and no ratio scales; d_i: how
 * unlike its machine, group, operation and software are. The prior itself votes as one table. */
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Distances. One of 1 halves the weight and more; chosen once, in round numbers, by leaving tables
 * out (docs/comm.md). */
static const double SPREAD = 0.75;    /* H */
static const double PRIOR_AWAY = 2.0; /* the model alone */
static const double OTHER_GPU = 0.5, OTHER_GENERATION = 2.0, OTHER_WIRING = 3.0;
static const double LIKE_OP = 1.0, OTHER_OP = 2.0, NO_KIN = 8.0;
static const double ONE_OR_MORE_DOMAINS = 2.0, DOUBLING = 0.5;
static const double OTHER_FABRIC = 0.5, LONG_FABRIC = 1.0; /* the second on top of the first */
static const double OTHER_SOURCE = 0.5, OTHER_METHOD = 1.0;
static const double DOUBLING_BEYOND = 0.35;
/* The method of measurement matters up to here, and fades in between. */
static const double SMALL_BYTES = 65536.0, LARGE_BYTES = 16e6;

struct neighbour {
    const struct ty_collective_table *table; /* NULL: the model */
    struct comm_group group;
    double distance, time_s, overhead_s;
};

/* ---- distance ------------------------------------------------------------------------------ */

static double doublings(double a, double b)
{
    return fabs(log2(a / b));
}

static double gpu_distance(const struct ty_cluster *a, const struct ty_cluster *b)
{
    if (strcmp(a->gpu.name, b->gpu.name) == 0)
        return 0.0;
    const size_t n = strcspn(a->gpu.arch, "-");
    if (n == strcspn(b->gpu.arch, "-") && strncmp(a->gpu.arch, b->gpu.arch, n) == 0)
        return OTHER_GPU;
    return OTHER_GENERATION + (a->scaleup != b->scaleup ? OTHER_WIRING : 0.0);
}

static bool gathers(enum ty_collective_op op)
{
    return op == TY_ALL_GATHER || op == TY_REDUCE_SCATTER;
}

static double op_distance(enum ty_collective_op a, enum ty_collective_op b)
{
    if (a == b)
        return 0.0;
    if (gathers(a) && gathers(b))
        return LIKE_OP;
    return (gathers(a) || a == TY_ALL_REDUCE) && (gathers(b) || b == TY_ALL_REDUCE) ? OTHER_OP
                                                                                    : NO_KIN;
}

static bool short_path(int fabric)
{
    return fabric == TY_FABRIC_INFINIBAND || fabric == TY_FABRIC_ROCE;
}

static double network_distance(const struct comm_group *a, const struct comm_group *b)
{
    if (a->shape.n_domains == 1 || b->shape.n_domains == 1)
        return 0.0;
    double away = DOUBLING * doublings(a->shape.nic_bytes_per_s, b->shape.nic_bytes_per_s);
    /* What is called Ethernet is some maker's own transport over TCP: no two are alike. */
    if (a->cluster.fabric != b->cluster.fabric || a->cluster.fabric == TY_FABRIC_ETHERNET)
        away +=
            OTHER_FABRIC +
            (short_path(a->cluster.fabric) && short_path(b->cluster.fabric) ? 0.0 : LONG_FABRIC);
    return away;
}

static double shape_distance(const struct group_shape *a, const struct group_shape *b)
{
    const bool differ = (a->n_domains > 1) != (b->n_domains > 1);
    return (differ ? ONE_OR_MORE_DOMAINS : 0.0) +
           DOUBLING * (doublings(a->ranks_per_domain, b->ranks_per_domain) +
                       doublings(a->n_domains, b->n_domains));
}

/* Tables of one repository were measured by one hand. */
static bool same_source(const char *a, const char *b)
{
    if (!a || !b)
        return false;
    const size_t n = strcspn(a, ":");
    return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

static double software_distance(const struct ty_collective_query *query,
                                const struct ty_collective_table *table)
{
    const double small = log(LARGE_BYTES / query->size_bytes) / log(LARGE_BYTES / SMALL_BYTES);
    return (same_source(query->source, table->source) ? 0.0 : OTHER_SOURCE) +
           (query->calculated != table->calculated ? OTHER_METHOD * fmin(1.0, fmax(0.0, small))
                                                   : 0.0);
}

static double range_distance(const struct ty_collective_table *table, double size_bytes)
{
    const double below = log2(table->size_bytes[0] / size_bytes);
    const double above = log2(size_bytes / table->size_bytes[table->n - 1]);
    return DOUBLING_BEYOND * fmax(0.0, fmax(below, above));
}

static double distance(const struct ty_collective_query *query, const struct comm_group *group,
                       const struct neighbour *other)
{
    return gpu_distance(&group->cluster, &other->group.cluster) +
           op_distance(query->op, other->table->op) +
           shape_distance(&group->shape, &other->group.shape) +
           network_distance(group, &other->group) + software_distance(query, other->table) +
           range_distance(other->table, query->size_bytes);
}

/* ---- neighbours ---------------------------------------------------------------------------- */

/* Overhead of the software, seen in the smallest message; 0 for a table without small ones. */
static double overhead_s(const struct neighbour *neighbour)
{
    const struct ty_collective_table *table = neighbour->table;
    if (table->size_bytes[0] > SMALL_BYTES)
        return 0.0;
    return fmax(0.0, table->time_s[0] -
                         comm_prior_s(&neighbour->group, table->op, table->size_bytes[0], NULL));
}

/* A table beyond its range goes on as its prior does. */
static double neighbour_s(const struct neighbour *neighbour, double size_bytes, double prior_s)
{
    const struct ty_collective_table *table = neighbour->table;
    const double last = table->size_bytes[table->n - 1];
    const double at = fmin(fmax(size_bytes, table->size_bytes[0]), last);
    const double theirs_s = comm_table_s(table, at) - neighbour->overhead_s;
    return neighbour->overhead_s +
           theirs_s * prior_s / comm_prior_s(&neighbour->group, table->op, at, NULL);
}

static int by_time(const void *a, const void *b)
{
    const double left = ((const struct neighbour *)a)->time_s;
    const double right = ((const struct neighbour *)b)->time_s;
    return (left > right) - (left < right);
}

/* Median of log times, linear between the middles of the weights. The neighbour next to it. */
static const struct neighbour *weighted_median(struct neighbour *all, uint32_t n, double *time_s)
{
    double nearest = INFINITY, sum = 0.0, before = 0.0, place = 0.0, log_s = 0.0;
    for (uint32_t i = 0; i < n; i++)
        nearest = fmin(nearest, all[i].distance);
    for (uint32_t i = 0; i < n; i++)
        sum += exp((nearest - all[i].distance) / SPREAD);
    qsort(all, n, sizeof *all, by_time);
    for (uint32_t i = 0; i < n; i++) {
        const double weight = exp((nearest - all[i].distance) / SPREAD);
        const double middle = before + weight / 2.0, here = log(all[i].time_s);
        before += weight;
        if (middle < sum / 2.0 && i + 1 < n) {
            place = middle;
            log_s = here;
            continue;
        }
        const double share = i == 0 ? 1.0 : fmin(1.0, (sum / 2.0 - place) / (middle - place));
        *time_s = exp(i == 0 ? here : log_s + share * (here - log_s));
        return &all[share < 0.5 ? i - 1 : i];
    }
    return NULL;
}

static ty_status collect(const struct ty_collective_query *query, const struct comm_group *group,
                         const struct ty_collective_tables *tables, struct neighbour *out,
                         struct ty_error *error)
{
    const double prior_s = comm_prior_s(group, query->op, query->size_bytes, NULL);
    double nearest = INFINITY, model_overhead_s = 0.0;
    for (uint32_t i = 0; i < tables->n; i++) {
        struct neighbour *one = &out[i];
        one->table = &tables->table[i];
        const ty_status status = comm_group_init(one->table->cluster, one->table->ranks,
                                                 one->table->ranks_per_domain, &one->group, error);
        if (status != TY_OK)
            return status;
        one->distance = distance(query, group, one);
        one->overhead_s = overhead_s(one);
        one->time_s = neighbour_s(one, query->size_bytes, prior_s);
        if (one->table->size_bytes[0] <= SMALL_BYTES && one->distance < nearest) {
            nearest = one->distance;
            model_overhead_s = one->overhead_s;
        }
    }
    out[tables->n] =
        (struct neighbour){.distance = PRIOR_AWAY, .time_s = prior_s + model_overhead_s};
    return TY_OK;
}

static ty_status from_neighbours(const struct ty_collective_query *query,
                                 const struct comm_group *group,
                                 const struct ty_collective_tables *tables,
                                 struct ty_collective_time *out, struct ty_error *error)
{
    struct neighbour *all = calloc((size_t)tables->n + 1, sizeof *all);
    if (!all)
        return error_set(error, TY_ERR_NOMEM, "tables", "out of memory");
    const ty_status status = collect(query, group, tables, all, error);
    if (status == TY_OK) {
        out->table = weighted_median(all, tables->n + 1, &out->time_s)->table;
        out->origin = out->table ? TY_FROM_NEIGHBOUR : TY_FROM_MODEL;
    }
    free(all);
    return status;
}

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
            (size_bytes > table->size_bytes[0] || table->size_bytes[0] <= SMALL_BYTES));
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
    const double away_a = doublings(a->ranks, ranks), away_b = doublings(b->ranks, ranks);
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
    if (status == TY_OK && !from_own_table(query, &group, tables, &time))
        status = from_neighbours(query, &group, tables, &time, error);
    if (status != TY_OK)
        return status;
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
