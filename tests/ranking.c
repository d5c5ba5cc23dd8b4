/* SPDX-License-Identifier: MIT
 * Rank statistics and quantiles on examples worked by hand. */
#include "calibrate/statistics.h"
#include "tests/tap.h"

static void quantiles(void)
{
    double values[] = {30.0, 10.0, 50.0, 20.0, 40.0};
    stat_sort(values, 5);
    within(values[0], 10.0, 0.0, "sorted: least first");
    within(stat_quantile(values, 5, 0.5), 30.0, 1e-12, "median of five");
    within(stat_quantile(values, 5, 0.9), 46.0, 1e-12, "P90 of five: 0.6 of the way from 40 to 50");
    within(stat_quantile(values, 4, 0.5), 25.0, 1e-12, "median of four: between the middle two");
    within(stat_quantile(values, 1, 0.9), 10.0, 1e-12, "any quantile of one value");
    ok(isnan(stat_quantile(values, 0, 0.5)), "no value, no quantile");
}

static void spearman(void)
{
    const double a[] = {1, 2, 3, 4, 5}, same[] = {10, 20, 30, 40, 500};
    const double reverse[] = {5, 4, 3, 2, 1}, mixed[] = {2, 1, 4, 3, 5};
    within(stat_spearman(a, same, 5), 1.0, 1e-12, "spearman: same order");
    within(stat_spearman(a, reverse, 5), -1.0, 1e-12, "spearman: reverse order");
    /* rank differences -1 1 -1 1 0: 1 - 6*4/(5*24) */
    within(stat_spearman(a, mixed, 5), 0.8, 1e-12, "spearman: two neighbours swapped twice");
    /* ranks 1 2.5 2.5 4 and 1 2 3 4: sum of products 4.5; norms 4.5 and 5: 4.5/sqrt(22.5) */
    const double tied[] = {1, 2, 2, 3}, plain[] = {1, 2, 3, 4};
    within(stat_spearman(tied, plain, 4), 4.5 / sqrt(22.5), 1e-12, "spearman: a tie shares ranks");
    const double constant[] = {7, 7, 7, 7};
    ok(isnan(stat_spearman(constant, plain, 4)), "spearman: a constant has no order");
}

static void kendall(void)
{
    const double a[] = {1, 2, 3, 4, 5}, mixed[] = {2, 1, 4, 3, 5}, reverse[] = {5, 4, 3, 2, 1};
    /* 10 pairs, 2 of them discordant */
    within(stat_kendall(a, mixed, 5), 0.6, 1e-12, "kendall: (8 - 2)/10");
    within(stat_kendall(a, reverse, 5), -1.0, 1e-12, "kendall: reverse order");
    /* 6 pairs; b ties one of them: 5 concordant, sqrt(6 * 5) */
    const double plain[] = {1, 2, 3, 4}, tied[] = {1, 2, 2, 3};
    within(stat_kendall(plain, tied, 4), 5.0 / sqrt(30.0), 1e-12,
           "kendall: tau-b, tie on one side");
    /* a ties (0,1), b ties (2,3): pairs 02 03 12 13 concordant; untied 5 and 5: 4/5 */
    const double left[] = {1, 1, 2, 3}, right[] = {1, 2, 3, 3};
    within(stat_kendall(left, right, 4), 0.8, 1e-12, "kendall: tau-b, ties on both sides");
    ok(isnan(stat_kendall(plain, (const double[]){5, 5, 5, 5}, 4)),
       "kendall: a constant has no order");
}

static void regret(void)
{
    const double measured[] = {12, 10, 11, 15};
    within(stat_regret(measured, (const double[]){3, 1, 2, 4}, 4), 0.0, 1e-12,
           "regret: the best was found");
    within(stat_regret(measured, (const double[]){3, 2, 1, 4}, 4), 0.1, 1e-12,
           "regret: the second best taken for the best, 11/10 - 1");
    within(stat_regret(measured, (const double[]){1, 1, 2, 4}, 4), 0.1, 1e-12,
           "regret: two predicted best, their mean (12 + 10)/2 over 10");
    within(stat_regret(measured, (const double[]){9, 9, 9, 1}, 4), 0.5, 1e-12,
           "regret: the worst taken");
}

int main(void)
{
    quantiles();
    spearman();
    kendall();
    regret();
    return tap_done();
}
