/* SPDX-License-Identifier: MIT
 * Leaves each built-in table of collectives out in turn and predicts it from the others; then
 * predicts published figures of groups that no table is of. */
#include "include/trainyard_tools.h"
#include "models/comm.h"
#include "tests/tap.h"

#define MAX_POINTS 4096
#define N(table)   (sizeof(table) / sizeof(table)[0])

static struct point {
    const struct ty_collective_table *table;
    double size_bytes, off, low, high; /* predicted and its interval, over measured; off: minus 1 */
    enum ty_collective_origin origin;
    int fabric; /* that the group crosses; -1: none */
} points[MAX_POINTS];
static uint32_t n_points;

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

typedef bool selection(const struct point *point, double bound);

/* Median and 90th percentile of the errors that are selected, in percent. */
static uint32_t quantiles(selection *in, double bound, double *median, double *p90)
{
    static double errors[MAX_POINTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_points; i++)
        if (in(&points[i], bound))
            errors[n++] = 100.0 * fabs(points[i].off);
    if (n == 0)
        return 0;
    qsort(errors, n, sizeof *errors, by_value);
    *median = errors[(uint32_t)(0.5 * (n - 1) + 0.5)];
    *p90 = errors[(uint32_t)(0.9 * (n - 1) + 0.5)];
    return n;
}

static bool any(const struct point *point, double bound)
{
    return point->size_bytes >= bound;
}

static bool linked(const struct point *point, double bound)
{
    return any(point, bound) && point->table->cluster->gpu.scaleup_bytes_per_s > 0.0;
}

static bool scaled(const struct point *point, double bound)
{
    return any(point, bound) && point->origin >= TY_FROM_NEIGHBOUR;
}

static bool of_op(const struct point *point, double op)
{
    return (double)point->table->op == op;
}

static bool of_decade(const struct point *point, double decade)
{
    return floor(log10(point->size_bytes)) == decade;
}

static bool of_table(const struct point *point, double index)
{
    return point->table == points[(uint32_t)index].table;
}

static bool of_fabric(const struct point *point, double fabric)
{
    return (double)point->fabric == fabric;
}

static void report(const char *what, selection *in, double bound)
{
    double median, p90;
    const uint32_t n = quantiles(in, bound, &median, &p90);
    if (n)
        printf("# %-32s %3u sizes: median %5.1f  P90 %5.1f\n", what, n, median, p90);
}

/* What the rest of the tables say of one, none of whose points they see; with all of its cluster
 * hidden, or not. */
static bool leave_out(const struct ty_collective_tables *tables, uint32_t out, bool cluster_too)
{
    struct ty_collective_table rest[128];
    const struct ty_collective_table *table = &tables->table[out];
    uint32_t n = 0;
    for (uint32_t i = 0; i < tables->n; i++)
        if (i != out &&
            !(cluster_too && strcmp(tables->table[i].cluster->name, table->cluster->name) == 0))
            rest[n++] = tables->table[i];
    const struct ty_collective_tables others = {n, rest};
    struct comm_group group;
    struct ty_error error;
    if (comm_group_init(table->cluster, table->ranks, table->ranks_per_domain, &group, &error) !=
        TY_OK)
        return false;
    for (uint32_t i = 0; i < table->n; i++) {
        struct ty_collective_time time;
        const struct ty_collective_query query = {.cluster = table->cluster,
                                                  .op = table->op,
                                                  .ranks = table->ranks,
                                                  .ranks_per_domain = table->ranks_per_domain,
                                                  .size_bytes = table->size_bytes[i],
                                                  .source = table->source,
                                                  .calculated = table->calculated};
        if (ty_collective_predict(&query, &others, &time, &error) != TY_OK) {
            printf("# %s: %s\n", error.where, error.text);
            return false;
        }
        points[n_points++] =
            (struct point){.table = table,
                           .size_bytes = table->size_bytes[i],
                           .off = time.time_s / table->time_s[i] - 1.0,
                           .low = time.low_s / table->time_s[i],
                           .high = time.high_s / table->time_s[i],
                           .origin = time.origin,
                           .fabric = group.shape.n_domains > 1 ? group.cluster.fabric : -1};
    }
    return true;
}

static void report_all(void)
{
    static const char *const fabrics[] = {"one domain", "?",   "InfiniBand",
                                          "RoCE",       "EFA", "Ethernet"};
    char what[80];
    for (uint32_t i = 0; i < n_points; i += points[i].table->n) {
        const struct ty_collective_table *table = points[i].table;
        snprintf(what, sizeof what, "%s %s %u", table->cluster->name, ty_collective_name(table->op),
                 table->ranks);
        report(what, of_table, i);
    }
    for (enum ty_collective_op op = 0; op < TY_N_COLLECTIVES; op++)
        report(ty_collective_name(op), of_op, op);
    for (int decade = 0; decade < 11; decade++) {
        snprintf(what, sizeof what, "10^%d bytes", decade);
        report(what, of_decade, decade);
    }
    for (size_t i = 0; i < N(fabrics); i++)
        report(fabrics[i], of_fabric, (double)i - 1.0);
    report("all", any, 0.0);
    report("all of 1 MiB and more", any, 0x1p20);
    report("all on NVLink or xGMI", linked, 0.0);
    report("all without a table of the group", scaled, 0.0);
}

/* ---- intervals ------------------------------------------------------------------------------ */

/* Of the errors of one width of interval: the share inside, and the width that holds 80 %. */
static uint32_t coverage(double width, uint32_t *inside)
{
    static double errors[MAX_POINTS];
    uint32_t n = 0;
    *inside = 0;
    for (uint32_t i = 0; i < n_points; i++) {
        const struct point *point = &points[i];
        if (point->origin < TY_FROM_NEIGHBOUR ||
            fabs(log(point->high / point->low) / 2.0 - width) > 1e-6)
            continue;
        errors[n++] = fabs(log(1.0 + point->off));
        *inside += point->low <= 1.0 && point->high >= 1.0;
    }
    if (n == 0)
        return 0;
    qsort(errors, n, sizeof *errors, by_value);
    const uint32_t at = (uint32_t)ceil(0.8 * (n + 1)) - 1;
    printf("# interval of width %.2f: %u of %u inside, 80 %% within %.3f\n", width, *inside, n,
           errors[at < n ? at : n - 1]);
    return n;
}

static void test_coverage(void)
{
    uint32_t n = 0, inside = 0, here;
    double last = 0.0;
    for (;;) {
        double width = INFINITY;
        for (uint32_t i = 0; i < n_points; i++) {
            const double w = log(points[i].high / points[i].low) / 2.0;
            if (w > last + 1e-6 && w < width)
                width = w;
        }
        if (!isfinite(width))
            break;
        n += coverage(width, &here);
        inside += here;
        last = width;
    }
    const double share = n ? (double)inside / n : 0.0;
    ok(share >= 0.77 && share <= 0.83, "80 %% intervals of tables left out hold %.0f %%",
       100.0 * share);
}

/* ---- published figures without a table ------------------------------------------------------- */

/* Bus bandwidth of the largest size of six tables of which data/micro/nccl_wire_efficiency.csv has
 * no more: the base is a cluster of the catalogue with the same GPUs. */
static void test_published(const struct ty_collective_tables *tables)
{
    static const struct {
        const char *base;
        int fabric;
        double nic_bytes_per_s;
        uint32_t nics_per_node;
        enum ty_collective_op op;
        uint32_t ranks;
        double size_bytes, busbw_gbps;
    } published[] = {
        {"azure-ndv4", TY_FABRIC_EFA, 12.5e9, 4, TY_ALL_REDUCE, 16, 0x1p31, 78.33},
        {"dgx-h200", TY_FABRIC_ROCE, 50e9, 8, TY_ALL_GATHER, 16, 0x1p33, 328.85},
        {"gb200-nvl72", TY_FABRIC_INFINIBAND, 50e9, 4, TY_ALL_REDUCE, 144, 0x1p34, 810.41},
        {"gb200-nvl72", TY_FABRIC_ROCE, 50e9, 4, TY_ALL_REDUCE, 128, 0x1p33, 799.79},
        {"gb200-nvl72", TY_FABRIC_ROCE, 50e9, 4, TY_ALL_TO_ALL, 192, 0x1p33, 62.49},
        {"gcp-a3-mega", TY_FABRIC_ETHERNET, 25e9, 8, TY_ALL_GATHER, 16, 0x1p33, 188.54},
    };
    for (size_t i = 0; i < N(published); i++) {
        struct ty_cluster cluster;
        struct ty_collective_time time = {0};
        struct ty_error error;
        const struct ty_collective_query query = {.cluster = &cluster,
                                                  .op = published[i].op,
                                                  .ranks = published[i].ranks,
                                                  .size_bytes = published[i].size_bytes};
        bool good = ty_cluster_load(published[i].base, &cluster, &error) == TY_OK;
        snprintf(cluster.name, sizeof cluster.name, "published");
        cluster.fabric = published[i].fabric;
        cluster.nic_bytes_per_s = published[i].nic_bytes_per_s;
        cluster.nics_per_node = published[i].nics_per_node;
        good = good && ty_collective_predict(&query, tables, &time, &error) == TY_OK;
        const double busbw_gbps = time.busbw_bytes_per_s / 1e9;
        ok(good && fabs(published[i].busbw_gbps / busbw_gbps - 1.0) <= 0.25,
           "%s of %u like %s: %.0f GB/s, published %.0f", ty_collective_name(published[i].op),
           published[i].ranks, published[i].base, busbw_gbps, published[i].busbw_gbps);
    }
}

int main(void)
{
    struct ty_collective_tables tables;
    struct ty_error error;
    double median = 0.0, p90 = 0.0;
    if (!ok(ty_collective_tables_load(&tables, &error) == TY_OK, "tables load"))
        return tap_done();
    bool predicted = true;
    for (uint32_t i = 0; i < tables.n && i < 128; i++)
        predicted &= leave_out(&tables, i, true);
    quantiles(any, 0.0, &median, &p90);
    printf("# all tables of the cluster hidden: median %.1f, P90 %.1f\n", median, p90);
    quantiles(linked, 0.0, &median, &p90);
    printf("# ... on NVLink or xGMI: median %.1f, P90 %.1f\n", median, p90);
    n_points = 0;
    for (uint32_t i = 0; i < tables.n && i < 128; i++)
        predicted &= leave_out(&tables, i, false);
    ok(predicted, "each of %u tables is predicted from the others", tables.n);
    report_all();
    quantiles(any, 0.0, &median, &p90);
    ok(median <= 8.0, "median error %.1f %%, at most 8", median);
    test_coverage();
    test_published(&tables);
    ty_collective_tables_free(&tables);
    return tap_done();
}
