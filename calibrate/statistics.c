/* SPDX-License-Identifier: MIT
 * Rank statistics by their definitions. Source: Kendall, Rank Correlation Methods (tau-b,
 * mid-ranks).
 */
#include "calibrate/statistics.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void stat_sort(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_size);
}

double stat_quantile(const double *sorted, uint32_t n, double share)
{
    if (n == 0)
        return (double)NAN;
    const double place = share * (n - 1);
    const uint32_t low = (uint32_t)place;
    const uint32_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

/* 1 + the number below + half the number of others equal. */
static double rank_of(const double *values, uint32_t n, uint32_t i)
{
    double rank = 0.5;
    for (uint32_t j = 0; j < n; j++)
        rank += values[j] < values[i] ? 1.0 : values[j] == values[i] ? 0.5 : 0.0;
    return rank;
}

double stat_spearman(const double *a, const double *b, uint32_t n)
{
    const double mean = (n + 1) / 2.0;
    double both = 0.0, alone_a = 0.0, alone_b = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const double rank_a = rank_of(a, n, i) - mean, rank_b = rank_of(b, n, i) - mean;
        both += rank_a * rank_b;
        alone_a += rank_a * rank_a;
        alone_b += rank_b * rank_b;
    }
    return alone_a > 0.0 && alone_b > 0.0 ? both / sqrt(alone_a * alone_b) : (double)NAN;
}

static int sign(double value)
{
    return (value > 0.0) - (value < 0.0);
}

double stat_kendall(const double *a, const double *b, uint32_t n)
{
    double score = 0.0, untied_a = 0.0, untied_b = 0.0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            const int order_a = sign(a[j] - a[i]), order_b = sign(b[j] - b[i]);
            score += order_a * order_b;
            untied_a += order_a != 0;
            untied_b += order_b != 0;
        }
    return untied_a > 0.0 && untied_b > 0.0 ? score / sqrt(untied_a * untied_b) : (double)NAN;
}

double stat_regret(const double *measured, const double *predicted, uint32_t n)
{
    double best = (double)INFINITY, least = (double)INFINITY, sum = 0.0;
    uint32_t n_best = 0;
    for (uint32_t i = 0; i < n; i++) {
        best = fmin(best, measured[i]);
        if (predicted[i] < least) {
            least = predicted[i];
            sum = 0.0;
            n_best = 0;
        }
        if (predicted[i] == least) {
            sum += measured[i];
            n_best++;
        }
    }
    return n_best ? sum / n_best / best - 1.0 : (double)NAN;
}
