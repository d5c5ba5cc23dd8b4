/* SPDX-License-Identifier: MIT
 * Mean, median and tail of a list of numbers. */
#include "models/pool_spread.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double quantile(const double *sorted, uint64_t n, double p)
{
    const double place = ceil(p * (double)n);
    return sorted[place < 1.0 ? 0 : (uint64_t)place - 1];
}

struct ty_pool_spread pool_spread(double *values, uint64_t n)
{
    if (n == 0)
        return (struct ty_pool_spread){NAN, NAN, NAN, NAN, NAN};
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++)
        sum += values[i];
    qsort(values, n, sizeof *values, compare_doubles);
    return (struct ty_pool_spread){.mean = sum / (double)n,
                                   .median = 0.5 * (values[(n - 1) / 2] + values[n / 2]),
                                   .p90 = quantile(values, n, 0.90),
                                   .p99 = quantile(values, n, 0.99),
                                   .max = values[n - 1]};
}
