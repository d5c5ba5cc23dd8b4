/* SPDX-License-Identifier: MIT
 * Failures and goodput: UT-7.7 to 7.10, GOLD-7.3, case G01 (Llama-3's 54 days), published failure
 * rates, and Monte Carlo runs within 3 standard errors of the closed forms. */
#include "models/reliability.h"
#include "tests/tap.h"

static const double M = 11135.08; /* s, of GOLD-7.3 */

static struct reliability job_of(double save_s, double interval_s)
{
    return (struct reliability){
        .mtbf_s = M, .interval_s = interval_s, .save_s = save_s, .restart_s = 300, .shape = 1};
}

/* Llama-3: 419 unexpected interruptions in 54 days on 16,384 GPUs. */
static void gold_7_3(void)
{
    const double job_s = 54 * 86400.0 / 419, unit_s = job_s * 16384;
    const struct failure_source gpus = {16384, unit_s};
    near(reliability_mtbf_s(&gpus, 1), 11135.08, 1e-6, "GOLD-7.3: 11,135 s");
    near(job_s / 3600, 3.093, 2e-4, "GOLD-7.3: 3.093 h");
    near(unit_s / 3600, 50677, 2e-5, "GOLD-7.3: 50,677 GPU-hours per failure");
    /* arXiv 2410.21680: 6.5 failures per 1,000 node-days project to 1.8 h on 2,048 nodes and 0.23 h
     * on 16,384. */
    struct failure_source nodes = {2048, 86400 / 0.0065};
    within(reliability_mtbf_s(&nodes, 1) / 3600, 1.8, 0.05, "RSC-1: 16,384 GPUs");
    nodes.units = 16384;
    within(reliability_mtbf_s(&nodes, 1) / 3600, 0.23, 0.005, "RSC-1: 131,072 GPUs");
    const struct failure_source two[] = {{10, 3600}, {5, 1800}}; /* 10/h + 10/h */
    near(reliability_mtbf_s(two, 2), 180, 1e-12, "rates of several kinds add");
    ok(isinf(reliability_mtbf_s(two, 0)), "nothing fails");
}

static void ut_7_7(void)
{
    const struct {
        double save_s, young_daly_s, waste, efficiency;
    } rows[] = {{10, 472, 0.0693, 0.9327},
                {30, 817, 0.1003, 0.9037},
                {60, 1156, 0.1308, 0.8758},
                {300, 2585, 0.2591, 0.7641}};
    for (int i = 0; i < 4; i++) {
        const double tau_s = reliability_young_daly_s(M, rows[i].save_s);
        const struct reliability job = job_of(rows[i].save_s, tau_s);
        within(tau_s, rows[i].young_daly_s, 0.5, "UT-7.7: Young and Daly");
        within(reliability_waste(&job), rows[i].waste, 5.1e-5, "UT-7.7: first-order waste");
        within(reliability_efficiency(&job), rows[i].efficiency, 5.1e-5, "UT-7.7: exact");
    }
    within(reliability_best_interval_s(M, 30), 800, 10, "UT-7.7: best interval, C = 30");
    within(reliability_best_interval_s(M, 300), 2390, 10, "UT-7.7: best interval, C = 300");
    struct reliability job = job_of(300, reliability_best_interval_s(M, 300));
    within(reliability_efficiency(&job), 0.7646, 5.1e-5, "UT-7.7: its efficiency");
}

static void ut_7_8(void)
{
    struct reliability job = job_of(30, 300);
    within(reliability_efficiency(&job), 0.8719, 5.1e-5, "UT-7.8: tau 300");
    job.interval_s = 3600;
    within(reliability_efficiency(&job), 0.8166, 5.1e-5, "UT-7.8: tau 3600");
    job = job_of(2, reliability_young_daly_s(M, 2));
    within(job.interval_s, 211, 0.5, "UT-7.8: C = 2, tau 211");
    within(reliability_efficiency(&job), 0.9551, 5.1e-5, "UT-7.8: and its efficiency");
}

/* No neighbour of the exact optimum is better, over 12 decades of C / M. */
static void optimum(void)
{
    bool best = true, below = true;
    for (double save_s = 1e-6; save_s < 1e6; save_s *= 10) {
        struct reliability job = job_of(save_s, reliability_best_interval_s(M, save_s));
        const double interval_s = job.interval_s, top = reliability_efficiency(&job);
        for (int sign = -1; sign <= 1; sign += 2) {
            job.interval_s = interval_s * (1 + sign * 0.01);
            best = best && reliability_efficiency(&job) < top;
        }
        below = below && interval_s < reliability_young_daly_s(M, save_s);
    }
    ok(best, "the exact interval is a maximum");
    ok(below, "and below that of Young and Daly");
    ok(reliability_best_interval_s(M, 0) == 0, "free saves: as often as may be");
    ok(reliability_round_s(800, 7, 0) == 114 * 7, "rounded to whole steps");
    ok(reliability_round_s(800, 7, 805) == 115 * 7, "not below the drain");
    ok(reliability_round_s(800, 2000, 0) == 2000, "one step at least");
}

static void shares(void)
{
    struct reliability_shares s;
    const struct reliability job = job_of(30, 800);
    reliability_shares(&job, &s);
    near(s.useful + s.save + s.restart + s.rework, 1, 1e-12, "shares sum to 1");
    near(s.restart, 300 / M, 0.02, "restarts: R / M");
    near(s.save, 30.0 / 800, 0.15, "saves: C / tau of the useful time");
    near(s.rework, 415 / M, 0.05, "rework: half a segment per failure");
}

/* ---- Monte Carlo ----------------------------------------------------------------------------- */

static struct reliability_runs runs_of(const struct reliability *job, double work_s, uint64_t seed)
{
    const struct reliability_trials trials = {work_s, 2000, seed};
    struct reliability_runs runs = {0};
    ok(reliability_simulate(job, &trials, NULL, &runs) == TY_OK, "2,000 runs");
    return runs;
}

/* 100 segments: work / efficiency seconds. */
static void monte_carlo(void)
{
    const struct reliability jobs[] = {{M, 472, 10, 0, 300, 1},       {M, 800, 30, 0, 300, 1},
                                       {M, 2390, 300, 0, 300, 1},     {M, 800, 2, 120, 300, 1},
                                       {M, 800, 2, 800, 300, 1},      {3000, 1500, 60, 0, 1200, 1},
                                       {3000, 1500, 60, 300, 1200, 1}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const double work_s = 100 * jobs[i].interval_s;
        const struct reliability_runs runs = runs_of(&jobs[i], work_s, 11);
        char what[96];
        snprintf(what, sizeof what, "C %g, A %g, tau %g: mean within 3 standard errors",
                 jobs[i].save_s, jobs[i].drain_s, jobs[i].interval_s);
        within(runs.mean_s, work_s / reliability_efficiency(&jobs[i]), 3 * runs.error_s, what);
        ok(runs.error_s < 0.01 * runs.mean_s, "and that error is below 1 per cent");
        ok(runs.p10_s <= runs.p50_s && runs.p50_s <= runs.p90_s && runs.p10_s < runs.p90_s,
           "quantiles in order");
    }
}

/* Weibull with shape 1 is exponential; with no failures in reach a run takes work + saves; and a
 * shape of 0.7 (many early failures) still has the mean M: failures = time / M, about. */
static void weibull(void)
{
    struct reliability job = job_of(30, 800);
    job.mtbf_s = 1e15;
    struct reliability_runs runs = runs_of(&job, 80000, 1);
    near(runs.mean_s, 80000 + 100 * 30, 1e-12, "no failures: work and saves");
    ok(runs.error_s == 0 && runs.mean_failures == 0, "every run alike");
    for (double shape = 0.7; shape < 2; shape += 0.8) {
        job = job_of(30, 800);
        job.shape = shape;
        runs = runs_of(&job, 4000 * 800, 2);
        near(runs.mean_failures, runs.mean_s / M, 0.01, "Weibull: failures come every M");
    }
    const struct reliability_runs again = runs_of(&job, 4000 * 800, 2);
    ok(again.mean_s == runs.mean_s && again.p90_s == runs.p90_s, "same seed, same bits");
}

/* G01: 54 days, effective time above 90 % as published, and the failure count of the report. */
static void llama_3(void)
{
    struct reliability job = job_of(30, reliability_best_interval_s(M, 30));
    ok(reliability_efficiency(&job) > 0.9, "G01: C 30 s, R 5 min: above 90 per cent");
    job.restart_s = 600;
    job.save_s = 12;
    job.interval_s = reliability_young_daly_s(M, 12);
    ok(1 - reliability_waste(&job) > 0.899, "G01: C 12 s, R 10 min: 90 per cent, rounded");
    job.save_s = 120;
    job.interval_s = reliability_best_interval_s(M, 120);
    ok(reliability_efficiency(&job) < 0.9, "G01: C 2 min, R 10 min is not enough");
    job = job_of(30, reliability_best_interval_s(M, 30));
    const struct reliability_trials trials = {54 * 86400.0 * 0.9037, 400, 7};
    struct reliability_runs runs;
    ok(reliability_simulate(&job, &trials, NULL, &runs) == TY_OK, "54 days, 400 times");
    within(runs.mean_s / 86400, 54, 3 * runs.error_s / 86400, "G01: 48.8 days of work take 54");
    within(runs.mean_failures, 419, 3 * sqrt(419 / 400.0) + 0.5, "G01: with 419 failures");
}

/* ---- spares, stragglers ---------------------------------------------------------------------- */

static void ut_7_9(void)
{
    const double node_h = 50677 / 8.0;
    within(node_h, 6334.6, 0.05, "UT-7.9: MTBF of a node");
    within(128 * 24 / node_h, 0.485, 5e-4, "UT-7.9: 128 nodes, 24 h");
    ok(reliability_spares(128 * 24 / node_h, 0.99) == 3, "UT-7.9: 3 spares");
    within(reliability_spares_suffice(128 * 24 / node_h, 3), 0.9984, 5.1e-5, "UT-7.9: 0.9984");
    within(2048 * 24 / node_h, 7.759, 5e-4, "UT-7.9: 2,048 nodes");
    ok(reliability_spares(2048 * 24 / node_h, 0.99) == 15, "UT-7.9: 15 spares");
    within(reliability_spares_suffice(2048 * 24 / node_h, 15), 0.9937, 5.1e-5, "UT-7.9: 0.9937");
    ok(reliability_spares(0, 0.999) == 0, "nothing fails: none");
    /* Large means, by the normal limit: 10,000 + 2.326 * 100 + about 1. */
    within(reliability_spares(10000, 0.99), 10233, 3, "ten thousand out at once");
}

static void ut_7_10(void)
{
    const double rows[][2] = {
        {2, 0.5642}, {8, 1.4236}, {64, 2.3437}, {1024, 3.2482}, {16384, 3.9714}};
    for (int i = 0; i < 5; i++)
        within(reliability_slowest_of(rows[i][0]), rows[i][1], 5.1e-5, "UT-7.10: e_N");
    within(reliability_slowest_of(1), 0, 1e-12, "one rank is the mean");
    near(reliability_slowest_of(2), 0.56418958354775629, 1e-9, "two: 1 / sqrt(pi)");
    within(reliability_straggler_ratio(1, 0.01, 1024), 1.0325, 5.1e-5, "UT-7.10: 1.0325");
    near(reliability_straggler_ratio(1.05, 0, 1e6), 1.05, 1e-12, "a node that is always slow");
}

static void refusals(void)
{
    struct ty_error error;
    struct reliability job = job_of(30, 800);
    const struct reliability_trials trials = {8000, 10, 1}, endless = {1e12, 10, 1};
    struct reliability_runs runs;
    ok(reliability_check(&job, &error) == TY_OK, "a good job");
    ok(reliability_simulate(&job, &endless, NULL, &runs) == TY_ERR_RANGE, "too many segments");
    job.drain_s = 801;
    ok(reliability_check(&job, &error) == TY_ERR_RANGE && strcmp(error.where, "interval_s") == 0,
       "a drain longer than the interval");
    ok(reliability_simulate(&job, &trials, NULL, &runs) == TY_ERR_RANGE, "nor is it simulated");
    job = job_of(30, 800);
    job.mtbf_s = (double)NAN;
    ok(reliability_check(&job, &error) == TY_ERR_RANGE && strcmp(error.where, "mtbf_s") == 0,
       "NAN");
    job.mtbf_s = 1; /* a restart of 300 s never ends */
    ok(reliability_simulate(&job, &trials, NULL, &runs) == TY_ERR_LIMIT, "a run without an end");
}

int main(void)
{
    gold_7_3();
    ut_7_7();
    ut_7_8();
    optimum();
    shares();
    monte_carlo();
    weibull();
    llama_3();
    ut_7_9();
    ut_7_10();
    refusals();
    return tap_done();
}
