/* SPDX-License-Identifier: MIT
 * Errors by group, coverage and sweeps of a validation made by hand. */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

#define N_ROWS 8

static struct ty_run_row rows[N_ROWS];

static void set(uint32_t i, const char *source, const char *sweep, double measured_s,
                double predicted_s)
{
    const double nan = (double)NAN;
    rows[i] = (struct ty_run_row){.measured_s = measured_s,
                                  .predicted_s = predicted_s,
                                  .no_site_s = 2.0 * predicted_s,
                                  .interval_80_s = {nan, nan},
                                  .interval_90_s = {nan, nan},
                                  .scale = "1-8",
                                  .measured_mem_bytes = nan,
                                  .predicted_mem_bytes = nan};
    snprintf(rows[i].source, sizeof rows[i].source, "%s", source);
    snprintf(rows[i].sweep, sizeof rows[i].sweep, "%s", sweep);
}

/* Source a: errors +10 %, -20 %, +40 %, -50 %; the last row has no measured time, one row of b no
 * prediction. */
static struct ty_validation example(void)
{
    const double nan = (double)NAN;
    set(0, "a", "one", 10.0, 11.0);
    set(1, "a", "one", 10.0, 8.0);
    set(2, "a", "one", 20.0, 28.0);
    set(3, "a", "two", 10.0, 5.0);
    set(4, "b", "three", 1.00, 1.0);
    set(5, "b", "three", 1.05, 1.0);
    set(6, "b", "three", 1.02, nan);
    set(7, "a", "one", nan, 3.0);
    return (struct ty_validation){N_ROWS, rows};
}

static void errors(void)
{
    const struct ty_validation validation = example();
    struct ty_run_filter filter = {TY_RUN_STEP_TIME, TY_RUN_SOURCE, "a", false};
    struct ty_error_stats stats = ty_validation_stats(&validation, &filter);
    ok(stats.n == 4, "rows with both times");
    within(stats.median_ape, 0.30, 1e-12, "median of 10, 20, 40, 50 %");
    within(stats.mean_ape, 0.30, 1e-12, "mean");
    within(stats.p90_ape, 0.47, 1e-12, "P90: 0.7 of the way from 40 to 50 %");
    within(stats.bias, -0.05, 1e-12, "median of +10, -20, +40, -50 %");
    filter.error = TY_RUN_STEP_TIME_NO_SITE;
    within(ty_validation_stats(&validation, &filter).bias, 0.90, 1e-12,
           "site unknown: +120, +60, +180, 0 %");
    filter = (struct ty_run_filter){TY_RUN_STEP_TIME, TY_RUN_SOURCE, NULL, false};
    ok(ty_validation_stats(&validation, &filter).n == 6, "all rows");
    rows[0].noisy = true;
    filter.clean_only = true;
    ok(ty_validation_stats(&validation, &filter).n == 5, "clean rows");
    filter.value = "nobody";
    stats = ty_validation_stats(&validation, &filter);
    ok(stats.n == 0 && isnan(stats.median_ape) && isnan(stats.bias), "an empty group");
    rows[2].measured_mem_bytes = 40.0;
    rows[2].predicted_mem_bytes = 30.0;
    filter = (struct ty_run_filter){TY_RUN_MEMORY, TY_RUN_SOURCE, NULL, false};
    stats = ty_validation_stats(&validation, &filter);
    ok(stats.n == 1 && stats.bias == -0.25, "memory, where it was measured");
}

static void verdicts(void)
{
    const struct ty_validation validation = example();
    uint32_t n[TY_N_OUTCOMES][3];
    rows[0].fit = TY_FIT_YES;
    rows[1].fit = TY_FIT_TIGHT;
    rows[2].outcome = TY_RUN_RAN_OPEN;
    rows[3].outcome = TY_RUN_OUT_OF_MEMORY;
    rows[3].fit = TY_FIT_YES;
    snprintf(rows[4].refused, sizeof rows[4].refused, "no shape");
    ty_validation_verdicts(&validation, n);
    ok(n[TY_RUN_RAN][TY_FIT_YES] == 1 && n[TY_RUN_RAN][TY_FIT_TIGHT] == 1 &&
           n[TY_RUN_RAN][TY_FIT_NO] == 3,
       "verdicts on runs that ran; a refused row has none");
    ok(n[TY_RUN_RAN_OPEN][TY_FIT_NO] == 1 && n[TY_RUN_OUT_OF_MEMORY][TY_FIT_YES] == 1,
       "on one of unknown recompute, on one out of memory");
}

static void groups(void)
{
    const struct ty_validation validation = example();
    same_text(ty_validation_value(&validation, TY_RUN_SOURCE, 0), "a", "first source");
    same_text(ty_validation_value(&validation, TY_RUN_SOURCE, 1), "b", "second source");
    ok(!ty_validation_value(&validation, TY_RUN_SOURCE, 2), "no third source");
}

static void coverage(void)
{
    const struct ty_validation validation = example();
    uint32_t n = 99;
    ok(isnan(ty_validation_coverage(&validation, NULL, 80, &n)) && n == 0,
       "no interval, no coverage");
    const double intervals[][2] = {{9.0, 12.0}, {7.0, 9.0}, {20.0, 40.0}, {4.0, 6.0}};
    for (uint32_t i = 0; i < 4; i++) {
        rows[i].interval_80_s[0] = intervals[i][0];
        rows[i].interval_80_s[1] = intervals[i][1];
    }
    within(ty_validation_coverage(&validation, NULL, 80, &n), 0.5, 1e-12,
           "two of four inside; ends count");
    ok(n == 4, "rows with an interval");
    rows[0].interval_90_s[0] = 1.0;
    rows[0].interval_90_s[1] = 1e6;
    within(ty_validation_coverage(&validation, NULL, 90, &n), 1.0, 0.0, "one of one inside");
    ok(n == 1, "rows with a 90 %% interval");
}

static void sweeps(void)
{
    struct ty_validation validation = example();
    struct ty_rankings rankings;
    ok(ty_validation_rankings(&validation, &rankings, NULL) == TY_OK && rankings.n == 1,
       "one sweep: two runs are too few, a spread of 5 %% too small");
    same_text(rankings.sweeps[0].sweep, "one", "its name");
    ok(rankings.sweeps[0].n == 3, "its runs");
    /* measured 10 10 20, predicted 11 8 28: pairs 02, 12 concordant, 01 tied: 2/sqrt(2*3) */
    within(rankings.sweeps[0].kendall, 2.0 / sqrt(6.0), 1e-12, "kendall");
    within(rankings.sweeps[0].regret, 0.0, 1e-12, "regret");
    ty_rankings_free(&rankings);
    rows[2].noisy_source = true;
    ok(ty_validation_rankings(&validation, &rankings, NULL) == TY_OK && rankings.n == 1 &&
           rankings.n_clean == 0 && isnan(rankings.kendall),
       "a noisy source is listed and left out of the mean");
    ty_rankings_free(&rankings);
    validation.n_rows = 0;
    ok(ty_validation_rankings(&validation, &rankings, NULL) == TY_OK && rankings.n == 0,
       "no rows, no sweep");
    ty_rankings_free(&rankings);
}

int main(void)
{
    errors();
    verdicts();
    groups();
    coverage();
    sweeps();
    return tap_done();
}
