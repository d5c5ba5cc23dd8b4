/* SPDX-License-Identifier: MIT
 *
 * Figures of merit of predictions: quantiles, and how well an order is predicted. Pure functions;
 * NAN where a figure is not defined.
 */
#ifndef CALIBRATE_STATISTICS_H
#define CALIBRATE_STATISTICS_H

#include <stdint.h>

/* Sorts ascending. */
void stat_sort(double *values, uint32_t n);
/* Quantile of sorted values, linear between order statistics (position share * (n - 1)). */
double stat_quantile(const double *sorted, uint32_t n, double share);

/* Rank correlation: Pearson's of the ranks, ties at their mean rank. NAN when one side is constant.
 * Cost O(n^2), as the others here: a sweep has a few dozen layouts. */
double stat_spearman(const double *a, const double *b, uint32_t n);
/* Kendall's tau-b = (concordant - discordant) / sqrt((n0 - ties_a)(n0 - ties_b)),
 * n0 = n (n - 1) / 2. NAN when one side is constant. */
double stat_kendall(const double *a, const double *b, uint32_t n);
/* What trusting the prediction costs: measured time of the predicted best over the measured best,
 * minus 1; the mean over all that are predicted best at once. n >= 1. */
double stat_regret(const double *measured, const double *predicted, uint32_t n);

#endif
