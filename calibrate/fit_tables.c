/* SPDX-License-Identifier: MIT
 *
 * Measured tables out of rows: rows of one shape become one point at the median of their times;
 * kernels are kept by shape, memory traffic as one curve over the bytes, collectives as one table
 * a group and operation. Curves do not fall: a longer message is not a faster one. Kernels far from
 * their form are left out; a curve needs no form to tell a spike. */
#include "calibrate/fit_records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 8 };
/* In ln(time): more than a change of protocol makes, less than a point that went wrong. */
static const double SPIKE = 0.5;

struct point {
    double key[MAX_KEYS]; /* equal keys: the same shape */
    double time_s;
};

struct points {
    struct point *at;
    uint32_t n;
};

static int by_key(const void *a, const void *b)
{
    const struct point *left = a, *right = b;
    for (int i = 0; i < MAX_KEYS; i++)
        if (left->key[i] < right->key[i] || left->key[i] > right->key[i])
            return left->key[i] < right->key[i] ? -1 : 1;
    return (left->time_s > right->time_s) - (left->time_s < right->time_s);
}

static bool same_shape(const struct point *a, const struct point *b)
{
    return memcmp(a->key, b->key, sizeof a->key) == 0;
}

/* Sorted by shape, each shape once, at its median time (the geometric mean of the middle two). */
static void merge(struct points *points)
{
    uint32_t n = 0;
    qsort(points->at, points->n, sizeof *points->at, by_key);
    for (uint32_t from = 0, to; from < points->n; from = to) {
        for (to = from + 1; to < points->n && same_shape(&points->at[from], &points->at[to]);)
            to++;
        const double low_s = points->at[from + (to - from - 1) / 2].time_s;
        const double high_s = points->at[from + (to - from) / 2].time_s;
        points->at[n] = points->at[from];
        points->at[n++].time_s = sqrt(low_s * high_s);
    }
    points->n = n;
}

void fit_monotone(double *time_s, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        /* a block that falls joins the one before it, at their common geometric mean */
        uint32_t from = i, block = 1;
        double mean = log(time_s[i]);
        while (from > 0 && log(time_s[from - 1]) > mean) {
            uint32_t first = from - 1;
            const double level = log(time_s[first]);
            while (first > 0 && time_s[first - 1] >= time_s[from - 1] &&
                   time_s[first - 1] <= time_s[from - 1])
                first--;
            mean = (mean * block + level * (from - first)) / (block + from - first);
            block += from - first;
            from = first;
        }
        for (uint32_t k = from; block > 1 && k <= i; k++)
            time_s[k] = exp(mean);
    }
}

/* ---- what a row's shape is ------------------------------------------------------------------ */

static struct point point_of(const struct fit_row *row)
{
    const struct ty_measured_gemm *gemm = &row->gemm;
    const struct ty_measured_attention *attention = &row->attention;
    switch (row->of) {
    case ROW_GEMM:
        return (struct point){{gemm->precision, gemm->direction, gemm->grouped, gemm->m, gemm->n,
                               gemm->k, gemm->groups, gemm->inner},
                              row->time_s};
    case ROW_ATTENTION:
        return (struct point){{attention->precision, attention->direction, attention->batch_heads,
                               attention->queries, attention->seq, attention->head_dim,
                               attention->pairs},
                              row->time_s};
    case ROW_COLLECTIVE:
        return (struct point){{row->op, row->group.size, row->group.ranks_per_domain, row->bytes},
                              row->time_s};
    default:
        return (struct point){{row->bytes}, row->time_s};
    }
}

static void collect(const struct records_fit *fit, enum row_of of, struct points *points)
{
    const bool curve = of == ROW_MEMORY || of == ROW_COLLECTIVE;
    points->n = 0;
    for (uint32_t i = 0; i < fit->n_rows; i++)
        if (fit->rows[i].of == of && (curve || !fit->rows[i].outlier))
            points->at[points->n++] = point_of(&fit->rows[i]);
    merge(points);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static bool keep_gemms(struct records_fit *fit, const struct points *points)
{
    struct ty_measured_gemm *gemms = arena_get(fit->arena, points->n, sizeof *gemms);
    for (uint32_t i = 0; gemms && i < points->n; i++) {
        const double *key = points->at[i].key;
        gemms[i] = (struct ty_measured_gemm){.precision = (int)key[0],
                                             .direction = (int)key[1],
                                             .grouped = key[2] > 0.0,
                                             .m = key[3],
                                             .n = key[4],
                                             .k = key[5],
                                             .groups = key[6],
                                             .inner = key[7],
                                             .time_s = points->at[i].time_s};
    }
    fit->out->measured.gemms = gemms;
    fit->out->measured.n_gemms = gemms ? points->n : 0;
    return gemms != NULL;
}

static bool keep_attentions(struct records_fit *fit, const struct points *points)
{
    struct ty_measured_attention *kept = arena_get(fit->arena, points->n, sizeof *kept);
    for (uint32_t i = 0; kept && i < points->n; i++) {
        const double *key = points->at[i].key;
        kept[i] = (struct ty_measured_attention){.precision = (int)key[0],
                                                 .direction = (int)key[1],
                                                 .batch_heads = key[2],
                                                 .queries = key[3],
                                                 .seq = key[4],
                                                 .head_dim = key[5],
                                                 .pairs = key[6],
                                                 .time_s = points->at[i].time_s};
    }
    fit->out->measured.attentions = kept;
    fit->out->measured.n_attentions = kept ? points->n : 0;
    return kept != NULL;
}

/* How far a point is from the straight line in log-log between its neighbours; 0 at the ends. */
static double spike(const double *x, const double *y, uint32_t i, uint32_t n)
{
    if (i == 0 || i + 1 >= n)
        return 0.0;
    const double share = log(x[i] / x[i - 1]) / log(x[i + 1] / x[i - 1]);
    return fabs(log(y[i] / y[i - 1]) - share * log(y[i + 1] / y[i - 1]));
}

/* Leaves out the worst spike while there is one, so that its neighbours are judged without it.
 * returns how many points are left. Cost O(n * spikes). */
static uint32_t drop_spikes(double *x, double *y, uint32_t n)
{
    for (;;) {
        uint32_t worst = 0;
        for (uint32_t i = 1; i < n; i++)
            if (spike(x, y, i, n) > spike(x, y, worst, n))
                worst = i;
        if (spike(x, y, worst, n) <= SPIKE)
            return n;
        n--;
        memmove(&x[worst], &x[worst + 1], (n - worst) * sizeof *x);
        memmove(&y[worst], &y[worst + 1], (n - worst) * sizeof *y);
    }
}

/* *n points from `first` on as rising sizes (key `size`) and times that do not fall; *n becomes the
 * number kept. */
static bool keep_curve(struct records_fit *fit, const struct point *first, uint32_t *n, int size,
                       const double **sizes, const double **times_s)
{
    double *x = arena_get(fit->arena, *n, sizeof *x), *y = arena_get(fit->arena, *n, sizeof *y);
    if (!x || !y)
        return false;
    for (uint32_t i = 0; i < *n; i++) {
        x[i] = first[i].key[size];
        y[i] = first[i].time_s;
    }
    *n = drop_spikes(x, y, *n);
    fit_monotone(y, *n);
    *sizes = x;
    *times_s = y;
    return true;
}

static bool keep_memory(struct records_fit *fit, const struct points *points)
{
    struct ty_measured *measured = &fit->out->measured;
    measured->n_memory = points->n;
    return keep_curve(fit, points->at, &measured->n_memory, 0, &measured->memory_bytes,
                      &measured->memory_time_s);
}

/* ---- collectives ---------------------------------------------------------------------------- */

static bool keep_collectives(struct records_fit *fit, const struct points *points)
{
    struct ty_cluster *cluster = arena_get(fit->arena, 1, sizeof *cluster);
    struct ty_collective_table *tables = arena_get(fit->arena, points->n, sizeof *tables);
    uint32_t n_tables = 0;
    if (!cluster || !tables)
        return false;
    *cluster = fit->out->cluster;
    for (uint32_t from = 0, to; from < points->n; from = to) {
        struct ty_collective_table *table = &tables[n_tables++];
        const double *key = points->at[from].key;
        for (to = from; to < points->n && memcmp(points->at[to].key, key, 3 * sizeof *key) == 0;)
            to++;
        *table = (struct ty_collective_table){.op = (enum ty_collective_op)key[0],
                                              .ranks = (uint32_t)key[1],
                                              .ranks_per_domain = (uint32_t)key[2],
                                              .cluster = cluster,
                                              .source = "records",
                                              .n = to - from};
        if (!keep_curve(fit, &points->at[from], &table->n, 3, &table->size_bytes, &table->time_s))
            return false;
    }
    fit->out->collectives = (struct ty_collective_tables){n_tables, tables};
    return true;
}

ty_status fit_tables(struct records_fit *fit)
{
    static bool (*const keep[])(struct records_fit *,
                                const struct points *) = {[ROW_GEMM] = keep_gemms,
                                                          [ROW_ATTENTION] = keep_attentions,
                                                          [ROW_MEMORY] = keep_memory,
                                                          [ROW_COLLECTIVE] = keep_collectives};
    struct points points = {calloc((size_t)fit->n_rows + 1, sizeof *points.at), 0};
    bool ok = points.at != NULL;
    for (enum row_of of = ROW_GEMM; ok && of <= ROW_COLLECTIVE; of++) {
        collect(fit, of, &points);
        ok = keep[of](fit, &points);
    }
    free(points.at);
    return ok ? TY_OK : TY_ERR_NOMEM;
}
