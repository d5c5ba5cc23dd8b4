/* SPDX-License-Identifier: MIT
 *
 * A collective that no table of its cluster and group holds: the weighted median of what all tables
 * say when scaled,
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
static const double SPREAD = 0.75; /* H */
/* The model alone, which knows rates better than what software adds to a small message, and of the
 * way through a host only the data sheet of its bus. */
static const double PRIOR_AWAY = 1.0, PRIOR_SMALL = 1.0, PRIOR_HOST = 2.0;
static const double OTHER_GPU = 0.5, OTHER_GENERATION = 2.0, OTHER_WIRING = 3.0;
static const double LIKE_OP = 1.0, OTHER_OP = 2.0, NO_KIN = 8.0;
static const double ONE_OR_MORE_DOMAINS = 2.0, DOUBLING = 0.5;
static const double OTHER_FABRIC = 0.5, LONG_FABRIC = 1.0; /* the second on top of the first */
static const double OTHER_SOURCE = 0.5, OTHER_METHOD = 1.0;
static const double DOUBLING_BEYOND = 0.35;
/* Up to the first the software takes all of the time that the model leaves open; it fades in
 * between. */
static const double SMALL_BYTES = COMM_SMALL_BYTES, LARGE_BYTES = 16e6;

struct neighbour {
    const struct ty_collective_table *table; /* NULL: the model */
    struct comm_group group;
    double distance, time_s, overhead_s;
};

/* ---- distance ------------------------------------------------------------------------------ */

/* 1 up to SMALL_BYTES, 0 from LARGE_BYTES. */
static double smallness(double size_bytes)
{
    const double share = log(LARGE_BYTES / size_bytes) / log(LARGE_BYTES / SMALL_BYTES);
    return fmin(1.0, fmax(0.0, share));
}

/* Over PCIe the board and its host make the path: whether GPUs reach each other differs. */
static double gpu_distance(const struct ty_cluster *a, const struct ty_cluster *b)
{
    if (strcmp(a->gpu.name, b->gpu.name) == 0)
        return 0.0;
    if (a->scaleup == TY_SCALEUP_PCIE)
        return OTHER_GENERATION + OTHER_WIRING;
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
    double away = DOUBLING * comm_doublings(a->shape.nic_bytes_per_s, b->shape.nic_bytes_per_s);
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
           DOUBLING * (comm_doublings(a->ranks_per_domain, b->ranks_per_domain) +
                       comm_doublings(a->n_domains, b->n_domains));
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
    return (same_source(query->source, table->source) ? 0.0 : OTHER_SOURCE) +
           (query->calculated != table->calculated ? OTHER_METHOD * smallness(query->size_bytes)
                                                   : 0.0);
}

/* A table that ends where bytes take the time is none the worse beyond: its rate goes on. */
static double range_distance(const struct ty_collective_table *table, double size_bytes)
{
    const double last_bytes = table->size_bytes[table->n - 1];
    const double below = log2(table->size_bytes[0] / size_bytes);
    const double above = last_bytes < LARGE_BYTES ? log2(size_bytes / last_bytes) : 0.0;
    return DOUBLING_BEYOND * fmax(0.0, fmax(below, above));
}

static double prior_distance(const struct ty_collective_query *query,
                             const struct comm_group *group)
{
    return PRIOR_AWAY + PRIOR_SMALL * smallness(query->size_bytes) +
           (group->cluster.scaleup == TY_SCALEUP_PCIE ? PRIOR_HOST : 0.0);
}

static double distance(const struct ty_collective_query *query, const struct comm_group *group,
                       const struct neighbour *other)
{
    return gpu_distance(&group->cluster, &other->group.cluster) +
           op_distance(query->op, other->table->op) +
           shape_distance(&group->shape, &other->group.shape) +
           network_distance(group, &other->group) + software_distance(query, other->table);
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

static const struct neighbour *nearest_of(const struct neighbour *all, uint32_t n)
{
    const struct neighbour *nearest = all;
    for (uint32_t i = 1; i < n; i++)
        if (all[i].distance < nearest->distance)
            nearest = &all[i];
    return nearest;
}

/* Median of log times, linear between the middles of the weights; sorts. */
static double weighted_median_s(struct neighbour *all, uint32_t n)
{
    const double nearest = nearest_of(all, n)->distance;
    double sum = 0.0, before = 0.0, place = 0.0, log_s = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += exp((nearest - all[i].distance) / SPREAD);
    qsort(all, n, sizeof *all, by_time);
    for (uint32_t i = 0; i < n; i++) {
        const double weight = exp((nearest - all[i].distance) / SPREAD);
        const double middle = before + weight / 2.0, here = log(all[i].time_s);
        before += weight;
        if (middle >= sum / 2.0 || i + 1 == n) {
            const double share = fmin(1.0, (sum / 2.0 - place) / (middle - place));
            return exp(i == 0 ? here : log_s + share * (here - log_s));
        }
        place = middle;
        log_s = here;
    }
    return all[0].time_s;
}

/* The neighbours and, last, the model with the overhead of the nearest table of small messages. */
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
        one->distance += range_distance(one->table, query->size_bytes);
    }
    out[tables->n] = (struct neighbour){.distance = prior_distance(query, group),
                                        .time_s = prior_s + model_overhead_s};
    return TY_OK;
}

ty_status comm_from_neighbours(const struct ty_collective_query *query,
                               const struct comm_group *group,
                               const struct ty_collective_tables *tables,
                               struct ty_collective_time *out, double *nearest,
                               struct ty_error *error)
{
    struct neighbour *all = calloc((size_t)tables->n + 1, sizeof *all);
    if (!all)
        return error_set(error, TY_ERR_NOMEM, "tables", "out of memory");
    const ty_status status = collect(query, group, tables, all, error);
    if (status == TY_OK) {
        *nearest = tables->n ? nearest_of(all, tables->n)->distance : (double)INFINITY;
        out->table = nearest_of(all, tables->n + 1)->table;
        out->origin = out->table ? TY_FROM_NEIGHBOUR : TY_FROM_MODEL;
        out->time_s = weighted_median_s(all, tables->n + 1);
    }
    free(all);
    return status;
}
