/* SPDX-License-Identifier: MIT
 *
 * A site from its own runs: one run against the closed form of the loss and the prior, known ratios
 * found again from runs made of them, runs that cannot be used, the file, the next run. */
#include "calibrate/fit.h"
#include "tests/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { N_GENERAL = 3 };

static struct fit_params three_params(struct fit_param param[N_GENERAL])
{
    const double sd_log[N_GENERAL] = {0.07, 0.3, 0.3};
    for (int j = 0; j < N_GENERAL; j++)
        param[j] = (struct fit_param){.prior = 1.0, .sd_log = sd_log[j], .min = 0.2, .max = 5.0};
    return (struct fit_params){N_GENERAL, param};
}

/* One run with residual r0 and slopes g, solved. */
static struct fit_site solve_one(double r0, const double g[N_GENERAL])
{
    struct fit_param param[N_GENERAL];
    const struct fit_params params = three_params(param);
    struct fit_linear linear;
    struct fit_site site;
    ok(fit_linear_create(1, N_GENERAL, &linear) == TY_OK &&
           fit_site_create(N_GENERAL, &site) == TY_OK,
       "room for a run");
    linear.r[0] = r0;
    memcpy(linear.dr, g, N_GENERAL * sizeof *g);
    ok(fit_site_solve(&linear, &params, &site) == TY_OK, "solved");
    fit_linear_free(&linear);
    return site;
}

static void test_one_run(void)
{
    const double cases[][2] = {{0.05, 1.0}, {0.1, 0.8}, {0.02, 0.3}, {0.3, 1.0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double r0 = cases[i][0], g[N_GENERAL] = {cases[i][1]};
        struct fit_site site = solve_one(r0, g);
        near(site.z[0], expected(r0, g[0]), 1e-4, "one run, one constant");
        ok(site.z[1] == 0.0 && site.z[2] == 0.0, "constants it does not depend on stay");
        ok(fabs(r0 + g[0] * site.z[0]) < fabs(r0), "and the run is predicted better");
        fit_site_free(&site);
    }
}

/* Far inside both losses everything is Gaussian, and known in closed form: with the prior T =
 * diag(0.14, 0.6, 0.6)^2 and s^2 = 2 x 0.12^2 / 3 of a run that is hit,
 *   z = -T g r0 / (s^2 + g' T g),  C = T - T g g' T / (s^2 + g' T g). */
static void test_gaussian(void)
{
    const double r0 = 1e-5, g[N_GENERAL] = {0.8, 0.15, -0.05};
    const double t[N_GENERAL] = {0.14 * 0.14, 0.36, 0.36}, s2 = 2.0 * 0.12 * 0.12 / 3.0;
    double sum = s2;
    for (int j = 0; j < N_GENERAL; j++)
        sum += g[j] * g[j] * t[j];
    struct fit_site site = solve_one(r0, g);
    for (int i = 0; i < N_GENERAL; i++) {
        near(site.z[i] / r0, -t[i] * g[i] / sum, 1e-5, "mean of the posterior");
        for (int j = 0; j < N_GENERAL; j++)
            near(site.covariance[i * N_GENERAL + j],
                 (i == j ? t[i] : 0.0) - t[i] * g[i] * g[j] * t[j] / sum, 1e-6, "its covariance");
    }
    const double left = fit_product(site.covariance, N_GENERAL, g, g);
    near(left, s2 * (sum - s2) / sum, 1e-6, "variance that is left of the run's own time");
    fit_site_free(&site);
}

/* ---- what own runs may move ----------------------------------------------------------------- */

/* What the shipped fit leaves: sd / lambda sqrt(1 - share), lambda = 0.5. */
static void test_prior(void)
{
    const struct fit_param shipped = {
        .level = LEVEL_STACK, .prior = 2.0, .sd_log = 0.35, .min = 0.5, .max = 5.0};
    near(fit_deviation(&shipped, 0.0), 0.7, 1e-12, "no run tells: the prior of the fit, tempered");
    near(fit_deviation(&shipped, 0.75), 0.35, 1e-12, "three quarters decided: half as wide");
    const struct fit_param own = fit_own_param(&shipped, 1.3, 0.35);
    near(own.prior, 1.3, 0.0, "own runs start from the shipped value");
    near(own.sd_log / FIT_PRIOR_WEIGHT, 0.35, 1e-12, "with that deviation");
    ok(own.min == 0.5 && own.max == 5.0, "inside the same bounds");
}

/* Levels of every kind, site first; a calibrated profile keeps device and fabric. */
static void test_own_params(struct ty_runs *runs)
{
    double weight[3] = {1.0, 1.0, 1.0};
    const struct fit_rows rows = {3, runs->run, weight};
    struct fit_params params, kept;
    bool seen[LEVEL_SITE + 1] = {false}, kept_seen[LEVEL_SITE + 1] = {false}, all = true;
    ok(fit_own_params(&rows, &params) == TY_OK, "constants of runs");
    for (uint32_t j = 0; j < params.n; j++) {
        const struct fit_param *param = &params.param[j];
        double value;
        memcpy(&value, (const char *)&runs->run[0].profile + param->field->offset, sizeof value);
        seen[param->level] = true;
        all &= param->level == LEVEL_SITE ? j < TY_N_SITE && param->prior == 1.0
                                          : j >= TY_N_SITE && param->prior == value;
    }
    ok(all, "the site's ratios first, at 1; the others at the profile's values");
    ok(seen[LEVEL_ALL] && seen[LEVEL_ARCH] && seen[LEVEL_STACK], "of GPU and software");
    for (int i = 0; i < 3; i++)
        runs->run[i].profile.calibrated = true;
    ok(fit_own_params(&rows, &kept) == TY_OK && kept.n < params.n, "of a calibrated profile fewer");
    for (uint32_t j = 0; j < kept.n; j++)
        kept_seen[kept.param[j].level] = true;
    ok(!kept_seen[LEVEL_ALL] && !kept_seen[LEVEL_ARCH] && kept_seen[LEVEL_STACK],
       "those of the stack alone");
    for (int i = 0; i < 3; i++)
        runs->run[i].profile.calibrated = false;
    free(params.param);
    free(kept.param);
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
    /* The same rows of the linear model tell kernels from the site's compute ratio only in part,
     * so the sum is found again, not each part: the effects add up to the change of the runs, to
     * first order: host time that kernels hide at one end of the way and not at the other bends it.
     */
    double moved = 0.0, meant = 0.0;
    for (uint32_t j = 0; j < fit.n_constants; j++)
        moved += fit.constant[j].effect;
    for (uint32_t i = 0; i < runs->n; i++)
        if (!isnan(fit.before_s[i]))
            meant += log(runs->run[i].row.measured_s / fit.before_s[i]) / fit.n;
    near(moved, meant, 0.2, "effects of the constants add up to the change");
    double worst = 0.0;
    for (uint32_t i = 0; i < runs->n; i++)
        if (!isnan(fit.after_s[i]))
            worst = fmax(worst, fabs(fit.after_s[i] / runs->run[i].row.measured_s - 1.0));
    ok(worst < 0.02, "every run is met to %.4f", worst);
    ok(fit.open < 0.05, "little is left open: %.3f", fit.open);
    ok(ty_site_fit(runs, 1, &again, &error) == TY_OK && again.n_constants == fit.n_constants &&
           memcmp(again.constant, fit.constant, fit.n_constants * sizeof *fit.constant) == 0,
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

static const struct ty_field *field_of(const char *path)
{
    size_t n, i = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n);
    while (strcmp(fields[i].path, path) != 0)
        i++;
    return &fields[i];
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ok(file && fputs(text, file) >= 0 && fclose(file) == 0, "file written");
}

static struct ty_profile preset(const char *cluster, const char *stack, struct ty_cluster *out)
{
    struct ty_profile profile;
    ok(ty_cluster_load(cluster, out, &error) == TY_OK &&
           ty_profile_load(NULL, stack, out, &profile, &error) == TY_OK,
       "%s with %s", cluster, stack);
    return profile;
}

static void test_file(void)
{
    char path[] = "/tmp/trainyard-site-XXXXXX";
    const int temporary = mkstemp(path);
    struct ty_site_constant constant[] = {
        {.field = field_of("site.compute_ratio"), .before = 1.0, .after = 1.1},
        {.field = field_of("site.comm_ratio"), .before = 1.0, .after = 0.9},
        {.field = field_of("site.host_ratio"), .before = 1.0, .after = 1.25},
        {.field = field_of("device.gemm_ratio_16"),
         .layer = "profiles/preset-hopper",
         .before = 0.7,
         .after = 0.63,
         .informed = 0.4},
        {.field = field_of("software.step_fixed"),
         .layer = "stacks/fsdp",
         .before = 0.01,
         .after = 0.0125},
        {.field = field_of("device.mem_ratio"),
         .layer = "profiles/common",
         .before = 0.8,
         .after = 0.8}};
    struct ty_site_fit fit = {.n = 3, .n_constants = 6, .constant = constant, .open = 0.05};
    struct ty_cluster h100, a100;
    struct ty_profile base, site = preset("dgx-h100", "fsdp", &h100);
    ty_init(TY_KIND_PROFILE, &base);
    base.dense_half_80 = 0.2;
    base.dense_plans_80 = 0.1 * sqrt(2.0);
    base.moe_half_80 = 0.4;
    char *text = ty_site_write(&fit, "tokyo", &base);
    ok(text && strstr(text, "device.gemm_ratio_16 -10.0 %, the runs decide 40 % of it"),
       "the file says what moved");
    ok(text && !strstr(text, "mem_ratio"), "and not what did not");
    ok(temporary >= 0, "a temporary file");
    close(temporary);
    write_file(path, text ? text : "");
    ty_text_free(text);
    const struct ty_profile plain = site;
    ok(ty_site_load(path, &h100, &site, &error) == TY_OK, "read back %s", error.text);
    near(site.dense_half_80, sqrt(0.01 + pow(1.2816 * 0.05, 2.0)), 1e-12,
         "what plans of a site differ by, and what is left open of the site");
    near(site.moe_half_80, 0.4, 1e-12,
         "as at an unknown site where what plans differ by is not known");
    ok(strcmp(site.site, "tokyo") == 0 && site.site_compute_ratio == 1.1 &&
           site.site_comm_ratio == 0.9 && site.site_host_ratio == 1.25,
       "with the ratios it had");
    ok(site.gemm_ratio_16 == 0.63 && site.step_fixed_s == 0.0125, "and the constants");
    ok(site.mem_ratio == plain.mem_ratio && site.attention_ratio == plain.attention_ratio,
       "and nothing else");
    site = preset("dgx-a100", "fsdp", &a100);
    const double gemm_ratio = site.gemm_ratio_16;
    ok(ty_site_load(path, &a100, &site, &error) == TY_OK && site.gemm_ratio_16 == gemm_ratio &&
           site.step_fixed_s == 0.0125 && site.site_compute_ratio == 1.1,
       "another GPU keeps its own constants");
    site = preset("dgx-h100", "megatron-core", &h100);
    const double fixed_s = site.step_fixed_s;
    ok(ty_site_load(path, &h100, &site, &error) == TY_OK && site.step_fixed_s == fixed_s &&
           site.gemm_ratio_16 == 0.63,
       "another stack too");
    site.calibrated = true;
    site.gemm_ratio_16 = 0.5;
    ok(ty_site_load(path, &h100, &site, &error) == TY_OK && site.gemm_ratio_16 == 0.5,
       "what was measured on the machine stays");
    write_file(path, "{\"refit\": [{\"of\": \"profiles/preset-hoper\"}]}");
    ok(ty_site_load(path, &h100, &site, &error) == TY_ERR_INPUT && strstr(error.text, "hoper"),
       "a file that there is not: %s: %s", error.where, error.text);
    write_file(path, "{\"refit\": [{\"device\": {\"gemm_ratio_16\": 0.5}}]}");
    ok(ty_site_load(path, &h100, &site, &error) == TY_ERR_INPUT, "none: %s", error.text);
    write_file(path, "{\"refit\": [{\"of\": \"stacks/jax\", \"device\": {\"gemm\": 0.5}}]}");
    ok(ty_site_load(path, &h100, &site, &error) == TY_ERR_INPUT,
       "a field that there is not, even of another stack: %s: %s", error.where, error.text);
    ok(site.gemm_ratio_16 == 0.5 && strcmp(site.stack, "megatron-core") == 0,
       "a refused file changes nothing");
    remove(path);
}

int main(void)
{
    struct ty_runs runs = {0};
    test_one_run();
    test_gaussian();
    test_prior();
    test_file();
    if (ty_runs_add_table(table, &runs, &error) != TY_OK) {
        skip("recovery of a site", "no data/runs/published.csv here");
        return tap_done();
    }
    keep_source(&runs, "vtrain");
    test_own_params(&runs);
    test_recovery(&runs);
    test_next(&runs);
    test_unusable(&runs);
    ty_runs_free(&runs);
    return tap_done();
}
