/* SPDX-License-Identifier: MIT
 * Leaves each built-in table of collectives out in turn and predicts it from the others. */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

#define MAX_POINTS 4096
static double all[MAX_POINTS], large[MAX_POINTS], linked[MAX_POINTS];
static uint32_t n_all, n_large, n_linked;

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quantile(double *error, uint32_t n, double share)
{
    qsort(error, n, sizeof *error, by_value);
    return 100.0 * error[(uint32_t)(share * (n - 1) + 0.5)];
}

/* Errors of one table, none of whose points the prediction sees. */
static bool leave_out(const struct ty_collective_tables *tables, uint32_t out)
{
    struct ty_collective_table rest[128];
    double errors[64];
    const struct ty_collective_table *table = &tables->table[out];
    uint32_t n = 0;
    for (uint32_t i = 0; i < tables->n; i++)
        if (i != out)
            rest[n++] = tables->table[i];
    const struct ty_collective_tables others = {n, rest};
    for (uint32_t i = 0; i < table->n; i++) {
        struct ty_collective_time time;
        struct ty_error error;
        if (ty_collective_predict(
                &(struct ty_collective_query){.cluster = table->cluster,
                                              .op = table->op,
                                              .ranks = table->ranks,
                                              .ranks_per_domain = table->ranks_per_domain,
                                              .size_bytes = table->size_bytes[i],
                                              .source = table->source,
                                              .calculated = table->calculated},
                &others, &time, &error) != TY_OK) {
            printf("# %s: %s\n", error.where, error.text);
            return false;
        }
        errors[i] = all[n_all++] = fabs(time.time_s / table->time_s[i] - 1.0);
        if (table->size_bytes[i] >= 0x1p20)
            large[n_large++] = errors[i];
        if (table->cluster->gpu.scaleup_bytes_per_s > 0.0)
            linked[n_linked++] = errors[i];
    }
    printf("# %-14s %-14s %4u ranks %2u sizes: median %5.1f  P90 %5.1f\n", table->cluster->name,
           ty_collective_name(table->op), table->ranks, table->n, quantile(errors, table->n, 0.5),
           quantile(errors, table->n, 0.9));
    return true;
}

int main(void)
{
    struct ty_collective_tables tables;
    struct ty_error error;
    if (!ok(ty_collective_tables_load(&tables, &error) == TY_OK, "tables load"))
        return tap_done();
    bool predicted = true;
    for (uint32_t i = 0; i < tables.n && i < 128; i++)
        predicted &= leave_out(&tables, i);
    ok(predicted, "each of %u tables is predicted from the others", tables.n);
    const double median = quantile(all, n_all, 0.5), p90 = quantile(all, n_all, 0.9);
    printf("# all %u sizes: median %.1f, P90 %.1f; %u of 1 MiB and more: median %.1f, P90 %.1f\n",
           n_all, median, p90, n_large, quantile(large, n_large, 0.5),
           quantile(large, n_large, 0.9));
    printf("# %u on NVLink or xGMI: median %.1f, P90 %.1f\n", n_linked,
           quantile(linked, n_linked, 0.5), quantile(linked, n_linked, 0.9));
    ok(median <= 8.0, "median error %.1f %%, at most 8", median);
    ty_collective_tables_free(&tables);
    return tap_done();
}
