/* SPDX-License-Identifier: MIT
 *
 * What is left out together, intervals from errors left out, and errors of ratios: each against a
 * case by hand or a known distribution. */
#include "calibrate/fit.h"
#include "sim/random.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void name(struct ty_run *run, const char *source, const char *model, const char *gpu)
{
    memset(run, 0, sizeof *run);
    strcpy(run->row.source, source);
    strcpy(run->row.model, model);
    strcpy(run->row.gpu, gpu);
    strcpy(run->row.stack, "fsdp");
    strcpy(run->row.kind, "dense");
    ty_init(TY_KIND_PLAN, &run->plan);
}

/* ---- folds -------------------------------------------------------------------------------- */

static void test_series(void)
{
    static const struct {
        const char *model;
        uint32_t gpus, gbs, tp, fold;
    } rows[] = {
        {"a", 8, 16, 1, UINT32_MAX},   {"a", 16, 32, 1, UINT32_MAX},
        {"a", 64, 128, 1, 0},          {"a", 64, 64, 1, UINT32_MAX}, /* strong scaling */
        {"a", 64, 128, 2, UINT32_MAX},                               /* another layout */
        {"b", 64, 128, 1, UINT32_MAX},                               /* another model */
        {"a", 128, 256, 1, 0},         {"b", 511, 1022, 1, UINT32_MAX},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    struct ty_run *run = calloc(N, sizeof *run);
    uint32_t fold[N];
    for (int i = 0; i < N; i++) {
        name(&run[i], "s", rows[i].model, "H100");
        run[i].plan.n_gpus = rows[i].gpus;
        run[i].plan.gbs = rows[i].gbs;
        run[i].plan.tp = rows[i].tp;
    }
    const struct fit_rows all = {N, run, NULL};
    ok(fit_deal(&all, FOLDS_SERIES, fold) == 1, "one fold");
    for (int i = 0; i < N; i++)
        ok(fold[i] == rows[i].fold, "%s on %u GPUs, batch %u, tp %u", rows[i].model, rows[i].gpus,
           rows[i].gbs, rows[i].tp);
    free(run);
}

/* ---- intervals ---------------------------------------------------------------------------- */

static void test_width(void)
{
    enum { N = 20 };
    struct ty_run *run = calloc(N, sizeof *run);
    double r[N], scratch[N];
    uint32_t fold[N];
    for (int i = 0; i < N; i++) {
        name(&run[i], "s", "m", "H100");
        r[i] = i % 2 ? 0.01 * (i + 1) : -0.01 * (i + 1);
        fold[i] = i < 10 ? 0 : 1;
    }
    strcpy(run[19].row.kind, "moe");
    run[18].row.noisy = true;
    const struct fit_rows rows = {N, run, NULL};
    struct fit_width_of of = {&rows, r, NULL, 0, scratch};
    /* 18 clean dense rows, |r| = 0.01 .. 0.18: ceil(0.8 x 19) = the 16th */
    near(fit_width(&of, NULL, FIT_DENSE, 0.8), 0.16, 1e-12, "80 % of 18 rows");
    near(fit_width(&of, "jax", FIT_DENSE, 0.9), 0.18, 1e-12, "a stack without rows: of all");
    of.fold = fold;
    of.own = 1; /* the ten of fold 0: ceil(0.8 x 11) = the 9th */
    near(fit_width(&of, NULL, FIT_DENSE, 0.8), 0.09, 1e-12, "of the other folds");
    free(run);
}

/* Ten rows of one source, one each of two others: a source weighs a third. */
static void test_width_unknown(void)
{
    enum { N = 12 };
    struct ty_run *run = calloc(N, sizeof *run);
    double r[N], scratch[N];
    for (int i = 0; i < N; i++) {
        name(&run[i], i < 10 ? "s" : i == 10 ? "t" : "u", "m", "H100");
        r[i] = i < 10 ? 0.01 : i == 10 ? -0.1 : 0.5;
    }
    const struct fit_rows rows = {N, run, NULL};
    const struct fit_width_of of = {&rows, r, NULL, 0, scratch};
    near(fit_width_unknown(&of, NULL, FIT_DENSE, 0.3), 0.01, 1e-12, "30 % of the sources");
    near(fit_width_unknown(&of, NULL, FIT_DENSE, 0.6), 0.1, 1e-12, "60 %");
    near(fit_width_unknown(&of, "fsdp", FIT_DENSE, 0.8), 0.5, 1e-12, "80 %");
    ok(isnan(fit_width_unknown(&of, NULL, FIT_MOE, 0.8)), "of a class without rows: unknown");
    free(run);
}

/* ---- ratios ------------------------------------------------------------------------------- */

static void test_pairs_by_hand(void)
{
    enum { N = 5 };
    struct ty_run *run = calloc(N, sizeof *run);
    const double r[N] = {0.0, 0.1, -0.2, 0.5, 0.05};
    name(&run[0], "s", "m", "H100");
    name(&run[1], "s", "m", "H100");
    name(&run[2], "s", "m", "H100");
    name(&run[3], "s", "m", "B200");
    name(&run[4], "t", "m", "H100");
    const struct fit_rows rows = {N, run, NULL};
    const struct fit_pair_filter dense = {FIT_DENSE, NULL, 0, false};
    struct fit_pairs pairs;
    ok(fit_pairs_of(&rows, r, TY_KIN_PLANS, &pairs) == TY_OK && pairs.n == 3,
       "three pairs on one kind of GPU");
    near(fit_pairs_weight(&pairs, &dense), 1.5, 1e-12, "three runs weigh 3 / 2");
    near(pairs.pair[0].difference, 0.1, 1e-12, "|0.1 - 0|");
    near(fit_pairs_width(&pairs, &dense, 0.8), 0.3, 1e-12, "80 % lie up to |0.1 + 0.2|");
    near(fit_pairs_inside(&pairs, &dense, 0.25), 1.0, 1e-12, "two of them up to 0.25");
    free(pairs.pair);
    ok(fit_pairs_of(&rows, r, TY_KIN_GPUS, &pairs) == TY_OK && pairs.n == 3,
       "three pairs of two kinds of GPU");
    free(pairs.pair);
    free(run);
}

/* One model of a class is one draw: it is not believed that all others are as close. */
static void test_pairs_of_few_models(void)
{
    enum { N = 8 };
    static const double r[N] = {0.0, 0.01, 0.0, 0.2, 0.0, 0.2, 0.0, 0.2};
    static const char *const models[] = {"a", "b", "c", "d"};
    struct ty_run *run = calloc(N, sizeof *run);
    for (int i = 0; i < N; i++)
        name(&run[i], "s", models[i / 2], "H100");
    for (int i = 0; i < 2; i++)
        snprintf(run[i].row.kind, sizeof run[i].row.kind, "lora");
    const struct fit_rows rows = {N, run, NULL};
    const struct fit_pair_filter tuning = {FIT_TUNING, NULL, 0, false};
    const struct fit_pair_filter dense = {FIT_DENSE, NULL, 0, false};
    struct fit_pairs pairs;
    ok(fit_pairs_of(&rows, r, TY_KIN_PLANS, &pairs) == TY_OK && pairs.n == 4, "four models");
    near(fit_pairs_width(&pairs, &tuning, 0.8), 0.01, 1e-12, "the one of fine-tuning is close");
    near(fit_pairs_width_of_stack(&pairs, &tuning, 0.8), 0.2, 1e-12,
         "its class takes what all classes have");
    near(fit_pairs_width_of_stack(&pairs, &tuning, 0.25), 0.01, 1e-12, "at any share");
    near(fit_pairs_width_of_stack(&pairs, &dense, 0.3), 0.2, 1e-12, "three models are enough");
    free(pairs.pair);
    free(run);
}

/* Normal errors of deviation s, with a common error of each source that cancels: the difference is
 * normal with s sqrt 2, so 80 % lie within 1.2816 s sqrt 2. */
static void test_pairs_cover(void)
{
    enum { N_SOURCES = 60, N_EACH = 10, N = N_SOURCES * N_EACH };
    struct ty_run *run = calloc(N, sizeof *run);
    double *r = calloc(N, sizeof *r);
    struct random_stream random;
    random_init(&random, 3, 0);
    for (int source = 0; source < N_SOURCES; source++) {
        const double common = random_normal(&random);
        char text[16];
        snprintf(text, sizeof text, "s%d", source);
        for (int i = 0; i < N_EACH; i++) {
            name(&run[source * N_EACH + i], text, "m", "H100");
            r[source * N_EACH + i] = common + 0.05 * random_normal(&random);
        }
    }
    const struct fit_rows rows = {N, run, NULL};
    struct fit_pairs pairs;
    ok(fit_pairs_of(&rows, r, TY_KIN_PLANS, &pairs) == TY_OK, "pairs of %d runs", N);
    const struct fit_pair_filter all = {FIT_DENSE, NULL, 0, false};
    const double width = fit_pairs_width(&pairs, &all, 0.8);
    near(width, 1.2816 * 0.05 * sqrt(2.0), 0.1, "the common error cancels");
    double in = 0.0;
    for (uint32_t fold = 1; fold <= N_FOLDS; fold++) {
        const struct fit_pair_filter from = {FIT_DENSE, NULL, fold, true};
        const struct fit_pair_filter to = {FIT_DENSE, NULL, fold, false};
        in += fit_pairs_inside(&pairs, &to, fit_pairs_width(&pairs, &from, 0.8));
    }
    in /= fit_pairs_weight(&pairs, &all);
    ok(fabs(in - 0.8) < 0.03, "widths of other folds hold %.3f", in);
    free(pairs.pair);
    free(r);
    free(run);
}

int main(void)
{
    test_series();
    test_width();
    test_width_unknown();
    test_pairs_by_hand();
    test_pairs_of_few_models();
    test_pairs_cover();
    return tap_done();
}
