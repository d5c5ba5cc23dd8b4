/* SPDX-License-Identifier: MIT
 *
 * A site from its own runs: one run against the closed form of the loss and the prior, known ratios
 * found again from runs made of them, runs that cannot be used, the file, the next run. */
#include "calibrate/fit.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ty_error error;
static const char table[] = "data/runs/published.csv";

/* ---- one run ------------------------------------------------------------------------------ */

/* The minimum over z of one run r = r0 + g z, by bisection of the derivative: loss of docs/
 * calibration.md with nu = 2, s0 = 0.12, L = 0.1, prior deviation 0.14 and its tail from 2. */
static double expected(double r0, double g)
{
    const double tau = 0.14, loss = 0.1;
    double low = -fabs(r0 / g), high = 0.0;
    for (int i = 0; i < 200; i++) {
        const double z = 0.5 * (low + high), r = r0 + g * z;
        const double s2 = (2.0 * 0.12 * 0.12 + loss * loss * log(1.0 + r * r / loss / loss)) / 3.0;
        const double tail = 1.0 + z * z / (4.0 * tau * tau);
        const double slope = g * r / (s2 * (1.0 + r * r / loss / loss)) + z / (tau * tau * tail);
        *(slope < 0.0 ? &low : &high) = z;
    }
    return 0.5 * (low + high);
}

static struct fit_params three_params(struct fit_param param[TY_N_SITE])
{
    const double sd_log[TY_N_SITE] = {0.07, 0.3, 0.3};
    for (int j = 0; j < TY_N_SITE; j++)
        param[j] = (struct fit_param){.prior = 1.0, .sd_log = sd_log[j], .min = 0.2, .max = 5.0};
    return (struct fit_params){TY_N_SITE, param};
}

static void test_one_run(void)
{
    struct fit_param param[TY_N_SITE];
    const struct fit_params params = three_params(param);
    const double cases[][2] = {{0.05, 1.0}, {0.1, 0.8}, {0.02, 0.3}, {0.3, 1.0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fit_linear linear;
        struct fit_site site = {.z = {0.0}};
        ok(fit_linear_create(1, TY_N_SITE, &linear) == TY_OK, "room for a run");
        linear.r[0] = cases[i][0];
        linear.dr[0] = cases[i][1];
        ok(fit_site_solve(&linear, &params, &site) == TY_OK, "solved");
        near(site.z[0], expected(cases[i][0], cases[i][1]), 1e-4, "one run, one ratio");
        ok(site.z[1] == 0.0 && site.z[2] == 0.0, "ratios it does not depend on stay 1");
        ok(fabs(linear.r[0] + linear.dr[0] * site.z[0]) < fabs(linear.r[0]),
           "and the run is predicted better");
        fit_linear_free(&linear);
    }
}

/* ---- recovery ----------------------------------------------------------------------------- */

/* Every third run of a source: enough for three ratios. */
static void keep_source(struct ty_runs *runs, const char *source)
{
    uint32_t n = 0, seen = 0;
    for (uint32_t i = 0; i < runs->n; i++)
        if (strcmp(runs->run[i].row.source, source) == 0 && seen++ % 3 == 0)
            runs->run[n++] = runs->run[i];
    runs->n = n;
}

/* Measured times become those of a site with these ratios, times exp(off). */
static void make_measured(struct ty_runs *runs, const double ratio[TY_N_SITE])
{
    for (uint32_t i = 0; i < runs->n; i++) {
        struct ty_run *run = &runs->run[i];
        struct ty_profile profile = run->profile;
        profile.site_compute_ratio = ratio[TY_SITE_COMPUTE];
        profile.site_comm_ratio = ratio[TY_SITE_COMM];
        profile.site_host_ratio = ratio[TY_SITE_HOST];
        if (fit_predict_s(run, &profile, &run->row.measured_s, &error) != TY_OK)
            run->row.measured_s = (double)NAN;
    }
}

static void test_recovery(struct ty_runs *runs)
{
    const double truth[TY_N_SITE] = {1.15, 1.3, 0.8};
    struct ty_site_fit fit, again;
    make_measured(runs, truth);
    ok(ty_site_fit(runs, 2, &fit, &error) == TY_OK, "fitted %s", error.text);
    for (int j = 0; j < TY_N_SITE; j++)
        near(fit.ratio[j], truth[j], 0.02 * truth[j],
             "ratio found again to 2 %: priors pull a little");
    double worst = 0.0;
    for (uint32_t i = 0; i < runs->n; i++)
        if (!isnan(fit.after_s[i]))
            worst = fmax(worst, fabs(fit.after_s[i] / runs->run[i].row.measured_s - 1.0));
    ok(worst < 0.01, "every run is met to %.4f", worst);
    ok(fit.left < 0.1, "little is left open: %.3f", fit.left);
    ok(ty_site_fit(runs, 1, &again, &error) == TY_OK &&
           memcmp(again.ratio, fit.ratio, sizeof fit.ratio) == 0,
       "the same bits with one thread and with two");
    ty_site_fit_free(&again);
    ty_site_fit_free(&fit);
}

/* ---- runs that cannot be used ------------------------------------------------------------- */

static void test_unusable(struct ty_runs *runs)
{
    struct ty_site_fit fit;
    const uint32_t n = runs->n;
    runs->n = 3;
    runs->run[1].row.measured_s = (double)NAN;
    ok(ty_site_fit(runs, 1, &fit, &error) == TY_OK && fit.n == 2,
       "a run without a time is left out");
    ok(isnan(fit.before_s[1]) && isnan(fit.after_s[1]) && fit.before_s[2] > 0.0,
       "and has no prediction");
    ty_site_fit_free(&fit);
    runs->n = 2;
    runs->run[0].row.measured_s = -1.0;
    ok(ty_site_fit(runs, 1, &fit, &error) == TY_ERR_INPUT, "no run at all: %s", error.text);
    runs->n = 0;
    ok(ty_site_fit(runs, 1, &fit, &error) == TY_ERR_INPUT, "an empty list");
    runs->n = n;
}

/* ---- next run ----------------------------------------------------------------------------- */

static void test_next(struct ty_runs *runs)
{
    struct ty_site_fit fit;
    struct ty_next_run next[TY_MAX_NEXT], other[TY_MAX_NEXT];
    uint32_t n = 0, n_other = 0;
    runs->n = 4;
    ok(ty_site_fit(runs, 1, &fit, &error) == TY_OK, "four runs");
    ok(ty_site_next(runs, &fit, 2, next, &n) == TY_OK && n > 0, "there are next runs");
    bool better = true, ordered = true;
    for (uint32_t i = 0; i < n; i++) {
        better &= next[i].sd_then < next[i].sd_now && next[i].like < runs->n;
        ordered &= i == 0 || next[i - 1].sd_then <= next[i].sd_then;
    }
    ok(better, "each leaves less open than now");
    ok(ordered, "the best is first");
    ok(ty_site_next(runs, &fit, 1, other, &n_other) == TY_OK && n_other == n &&
           memcmp(other, next, n * sizeof *next) == 0,
       "the same with one thread");
    ty_site_fit_free(&fit);
}

/* ---- file --------------------------------------------------------------------------------- */

static void test_file(void)
{
    struct ty_site_fit fit = {.n = 3, .ratio = {1.1, 0.9, 1.25}, .left = 0.25};
    struct ty_profile base, site, back;
    ty_init(TY_KIND_PROFILE, &base);
    base.dense_half_80 = 0.2;
    base.dense_plans_80 = 0.1 * sqrt(2.0);
    base.moe_half_80 = 0.4;
    ty_site_profile(&fit, "tokyo", &base, &site);
    near(site.dense_half_80, sqrt(0.01 + 0.25 * (0.04 - 0.01)), 1e-12,
         "a quarter of the variance between sites is left");
    near(site.moe_half_80, 0.4, 1e-12, "all of it where the spread inside a site is not known");
    char *text = ty_spec_write(TY_KIND_PROFILE, &site);
    ok(text && ty_spec_parse(TY_KIND_PROFILE, text, strlen(text), "site", &back, &error) == TY_OK,
       "its file is read back");
    ok(strcmp(back.site, "tokyo") == 0 && back.site_compute_ratio == 1.1 &&
           back.site_comm_ratio == 0.9 && back.site_host_ratio == 1.25,
       "with the ratios it had");
    ok(isnan(back.gemm_ratio_16) && !back.stack[0], "and nothing else");
    ty_text_free(text);
}

int main(void)
{
    struct ty_runs runs = {0};
    test_one_run();
    test_file();
    if (ty_runs_add_table(table, &runs, &error) != TY_OK) {
        skip("recovery of a site", "no data/runs/published.csv here");
        return tap_done();
    }
    keep_source(&runs, "vtrain");
    test_recovery(&runs);
    test_next(&runs);
    test_unusable(&runs);
    ty_runs_free(&runs);
    return tap_done();
}
