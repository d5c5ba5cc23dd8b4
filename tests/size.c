/* SPDX-License-Identifier: MIT
 * The smallest machine for a job. References: searches of every count by hand, formulas worked out
 * here, and the Monte Carlo of failures. */
#include "include/trainyard_cost.h"
#include "models/reliability.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

#define DAY_S 86400.0

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;
static struct ty_price price;
static struct ty_failures failures;
static struct ty_job job;

static struct ty_size size_of(double deadline_days)
{
    struct ty_size size = {.model = &model,
                           .cluster = &cluster,
                           .profile = &profile,
                           .job = &job,
                           .deadline_s = deadline_days * DAY_S,
                           .budget = (double)NAN,
                           .confidence = (double)NAN};
    ty_init(TY_KIND_PLAN, &size.space.fixed);
    size.space.fixed.gbs = 256;
    size.space.fixed.seq = 4096;
    size.space.tp = (struct ty_values){.n = 3, .value = {1, 2, 8}};
    size.space.pp = (struct ty_values){.n = 2, .value = {1, 2}};
    size.space.vpp = (struct ty_values){.n = 1, .value = {1}};
    return size;
}

/* tokens/s of the best plan on n GPUs; 0: nothing fits. */
static double best_tokens_per_s(const struct ty_size *size, uint32_t n)
{
    struct ty_search search = {.model = &model,
                               .cluster = &cluster,
                               .profile = &profile,
                               .space = size->space,
                               .exhaustive = true,
                               .overall = true,
                               .top = 1};
    search.space.n_gpus = (struct ty_values){.n = 1, .value = {n}};
    struct ty_search_result result = {0};
    const bool found = ty_search_run(&search, &result, NULL) == TY_OK;
    const double best = found ? result.best[0].tokens_per_s : 0.0;
    ty_search_free(&result);
    return best;
}

static void smallest_in_time(void)
{
    const struct ty_size size = size_of(40.0);
    struct ty_size_result out = {0};
    struct ty_error error;
    ok(ty_size_run(&size, &out, &error) == TY_OK && out.feasible, "3e12 tokens in 40 days");
    uint32_t n = 8;
    double rate = 0.0;
    while (n < 1024 && !((rate = best_tokens_per_s(&size, n)) * 40.0 * DAY_S >= 3e12))
        n += 8;
    ok(out.gpus == n, "the first count of nodes that is fast enough by hand (%u)", n);
    near(out.time_s[TY_P50], 3e12 / rate, 1e-12, "in the time of its best plan");
    ok(out.spares == 0 && isnan(out.money[TY_P50]) && out.p_meet_deadline == 1.0,
       "no failures, no money, exact times");
    ok(out.time_s[TY_P10] == out.time_s[TY_P90], "and no interval");
}

static void smallest_that_fits(void)
{
    const struct ty_size size = size_of((double)NAN);
    struct ty_size_result out = {0};
    ok(ty_size_run(&size, &out, NULL) == TY_OK && out.feasible, "without a deadline");
    uint32_t n = 8;
    while (n < 1024 && best_tokens_per_s(&size, n) == 0.0)
        n += 8;
    ok(out.gpus == n, "the first count on which a plan fits (%u)", n);
    ok(isnan(out.p_meet_deadline), "there is no time to keep");
}

struct points {
    uint32_t n;
    struct ty_size_result point[8];
};

static bool keep_point(void *user, const struct ty_size_result *point)
{
    struct points *points = user;
    if (points->n == 8)
        return false;
    points->point[points->n++] = *point;
    return true;
}

/* Each point by a search of its count by hand, whether it is in time or not. */
static void points_of(struct ty_size *size, const uint32_t *counts, uint32_t n, const char *what)
{
    static struct points points;
    struct ty_size_result with = {0}, without = {0};
    const ty_status status = ty_size_run(size, &without, NULL);
    points.n = 0;
    size->point = keep_point;
    size->user = &points;
    ok(status == TY_OK && ty_size_run(size, &with, NULL) == TY_OK && with.gpus == without.gpus &&
           with.n_tried == without.n_tried,
       "%s: the answer is the same (%u GPUs)", what, with.gpus);
    size->point = NULL;
    uint32_t n_same = 0, n_late = 0;
    for (uint32_t i = 0; i < points.n && i < n; i++) {
        const struct ty_size_result *point = &points.point[i];
        const double rate = best_tokens_per_s(size, counts[i]);
        n_same += point->gpus == counts[i] && point->fits == (rate > 0.0) &&
                  (!point->fits || (fabs(point->phase[0].tokens_per_s / rate - 1.0) < 1e-12 &&
                                    fabs(point->time_s[TY_P50] * rate / 3e12 - 1.0) < 1e-12 &&
                                    point->feasible == (3e12 / rate <= 40.0 * DAY_S)));
        n_late += point->fits && !point->feasible;
    }
    ok(points.n == n && n_same == n, "%s: %u counts, each as by hand", what, n_same);
    ok(n_late > 0, "%s: some are too slow", what);
}

static void speed_against_gpus(void)
{
    static const uint32_t listed[] = {32, 64, 128, 512};
    struct ty_size size = size_of(40.0);
    struct ty_size_result answer = {0};
    ok(ty_size_run(&size, &answer, NULL) == TY_OK && answer.feasible, "an answer");
    const double g = answer.gpus;
    const uint32_t multiples[] = {(uint32_t)ceil(g / 32) * 8,
                                  (uint32_t)ceil(g / 16) * 8,
                                  (uint32_t)ceil(g * 3 / 32) * 8,
                                  answer.gpus,
                                  (uint32_t)ceil(g * 3 / 16) * 8,
                                  2 * answer.gpus,
                                  4 * answer.gpus};
    points_of(&size, multiples, 7, "without a list");
    size.space.n_gpus = (struct ty_values){.n = 4};
    memcpy(size.space.n_gpus.value, listed, sizeof listed);
    points_of(&size, listed, 4, "a list");
}

/* half_80 of 0.2: s = 0.2 / 1.2816, so the quantiles are the median times exp(-+0.2). */
static void quantiles_and_money(void)
{
    struct ty_size size = size_of(40.0);
    struct ty_size_result out = {0};
    size.price = &price;
    profile.dense_half_80 = 0.2;
    ok(ty_size_run(&size, &out, NULL) == TY_OK && out.feasible, "with an interval and prices");
    near(out.time_s[TY_P90] / out.time_s[TY_P50], exp(0.2), 1e-12, "p90 is the median x e^0.2");
    near(out.time_s[TY_P10] / out.time_s[TY_P50], exp(-0.2), 1e-12, "p10 the median x e^-0.2");
    /* 2 a GPU-hour, all of them for the whole time */
    near(out.money[TY_P50], 2.0 * out.gpus * out.time_s[TY_P50] / 3600.0, 1e-12,
         "the rent of the median run");
    /* Phi(ln(40 d / median) 1.2816 / 0.2) */
    const double z = log(40.0 * DAY_S / out.time_s[TY_P50]) * 1.2815515655446004 / 0.2;
    near(out.p_meet_deadline, 0.5 * erfc(-z / sqrt(2.0)), 1e-12, "the chance to be in time");
    size.confidence = 0.5 + 0.5 * out.p_meet_deadline;
    struct ty_size_result surer = {0};
    ok(ty_size_run(&size, &surer, NULL) == TY_OK && surer.feasible && surer.gpus > out.gpus &&
           surer.p_meet_deadline >= size.confidence,
       "to be surer takes more GPUs");
    size.confidence = (double)NAN;
    size.budget = out.money[TY_P50] / 10.0;
    ok(ty_size_run(&size, &surer, NULL) == TY_OK && !surer.feasible,
       "a tenth of the money is too little at any count");
    profile.dense_half_80 = 0.0;
}

/* Two phases and 5 days in which nothing trains: the time is their sum, and the rent runs on. */
static void phases_and_downtime(void)
{
    struct ty_size size = size_of(60.0);
    size.price = &price;
    struct ty_size_result one = {0}, out = {0};
    size.space.n_gpus = (struct ty_values){.n = 1, .value = {128}};
    ok(ty_size_run(&size, &one, NULL) == TY_OK && one.feasible, "one phase on 128 GPUs");
    job.n_phases = 2;
    job.phase[1] = (struct ty_phase){5e11, 2048, 512};
    job.downtime_s = 5 * DAY_S;
    ok(ty_size_run(&size, &out, NULL) == TY_OK && out.feasible && out.n_phases == 2,
       "a second phase and 5 days of downtime");
    near(out.phase_s[0], one.time_s[TY_P50], 1e-12, "the first phase as before");
    ok(out.phase[1].plan.seq == 2048 && out.phase[1].plan.gbs == 512,
       "the second with its own sequences and batch");
    near(out.time_s[TY_P50], out.phase_s[0] + out.phase_s[1] + 5 * DAY_S, 1e-12, "times add up");
    near(out.money[TY_P50], 2.0 * 128 * out.time_s[TY_P50] / 3600.0, 1e-12,
         "and all of it is paid for");
    job.n_phases = 1;
    job.downtime_s = 0.0;
}

static void failures_and_spares(void)
{
    struct ty_size size = size_of((double)NAN);
    size.space.n_gpus = (struct ty_values){.n = 1, .value = {128}};
    size.price = &price;
    size.failures = &failures;
    struct ty_size_result out = {0};
    ok(ty_size_run(&size, &out, NULL) == TY_OK && out.feasible, "16 nodes that fail");
    near(out.goodput.mtbf_s, failures.node_mtbf_s / 16, 1e-12, "16 times as often as one");
    near(out.time_s[TY_P50], 3e12 / (out.phase[0].tokens_per_s * out.goodput.useful_ratio), 1e-12,
         "only useful time counts");
    /* lambda = 16 x 86,400 / 2e6 = 0.6912: P(<= 2) = 0.967, P(<= 3) = 0.9946 */
    ok(out.spares == 3, "3 spare nodes for 99 %%");
    near(out.money[TY_P50], 2.0 * (128 + 24) * out.time_s[TY_P50] / 3600.0, 1e-12,
         "which are paid for");
    const struct reliability run = {.mtbf_s = out.goodput.mtbf_s,
                                    .interval_s = out.goodput.interval_s,
                                    .save_s = 30,
                                    .restart_s = 300,
                                    .shape = 1.0};
    const struct reliability_trials trials = {
        .work_s = 3e12 / out.phase[0].tokens_per_s, .n_trials = 2000, .seed = 1};
    struct reliability_runs runs;
    ok(reliability_simulate(&run, &trials, NULL, &runs) == TY_OK, "2,000 runs by Monte Carlo");
    near(out.time_s[TY_P50], runs.p50_s, 2e-3, "their median");
    near(log(out.time_s[TY_P90] / out.time_s[TY_P10]), log(runs.p90_s / runs.p10_s), 0.1,
         "and the width of their interval, within a tenth");
}

static void refuses(void)
{
    struct ty_size_result out = {0};
    struct ty_error error;
    struct ty_size size = size_of(1.0);
    size.budget = 1.0;
    ok(ty_size_run(&size, &out, &error) == TY_ERR_RANGE, "a budget without prices: %s", error.text);
    size = size_of(1.0);
    size.confidence = 1.0;
    ok(ty_size_run(&size, &out, &error) == TY_ERR_RANGE, "certainty: %s", error.text);
    job.n_phases = 0;
    ok(ty_size_run(&size, &out, &error) == TY_ERR_RANGE, "no phase: %s", error.text);
    job.n_phases = 1;
    size = size_of(1e-6);
    size.space.n_gpus = (struct ty_values){.n = 2, .value = {8, 16}};
    ok(ty_size_run(&size, &out, &error) == TY_OK && !out.feasible && out.n_tried == 2,
       "no time at all: not feasible, 2 counts tried");
}

int main(void)
{
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    profile.dense_half_80 = 0.0; /* exact */
    ty_init(TY_KIND_PRICE, &price);
    price.gpu_hour = 2.0;
    failures = (struct ty_failures){.node_mtbf_s = 2e6,
                                    .save_s = 30,
                                    .restart_s = 300,
                                    .repair_s = 86400,
                                    .interval_s = (double)NAN,
                                    .spare_probability = 0.99};
    job = (struct ty_job){.n_phases = 1, .phase = {{.tokens = 3e12}}};
    smallest_in_time();
    smallest_that_fits();
    speed_against_gpus();
    quantiles_and_money();
    phases_and_downtime();
    failures_and_spares();
    refuses();
    return tap_done();
}
