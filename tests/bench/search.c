/* SPDX-License-Identifier: MIT
 * Benchmarks of the search as TSV: name, value, unit. GPT-3 175B (h 12288, L 96, 96 heads, V 51200)
 * on DGX A100, every legal plan of 64..1,024 GPUs in steps of a node, batch 1536 of 2048 tokens. */
#include "include/trainyard_cross.h"
#include "tests/fixtures.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Stops when everything is screened and bounded, before the first simulation. */
static bool stop(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)user, (void)score, (void)done, (void)total;
    return false;
}

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

static void open_search(struct ty_search *search)
{
    *search = (struct ty_search){.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search->space.fixed);
    search->space.fixed.gbs = 1536;
    search->space.fixed.seq = 2048;
    search->top = 10;
    search->overall = true;
}

/* The whole answer, on 2 threads and on 1, and the part before any simulation. */
static bool whole_range(void)
{
    static struct ty_search search;
    struct ty_search_result result = {0};
    open_search(&search);
    for (uint32_t n = 64; n <= 1024; n += 8)
        search.space.n_gpus.value[search.space.n_gpus.n++] = n;
    double start_s = now_s();
    if (ty_search_run(&search, &result, NULL) != TY_OK)
        return false;
    const double all_s = now_s() - start_s;
    printf("search.gpt3_175b_64_1024.exact_top10_s\t%.3f\ts\n", all_s);
    const uint64_t n_plans = result.n_enumerated;
    printf("search.gpt3_175b_64_1024.plans\t%llu\t\n", (unsigned long long)n_plans);
    printf("search.gpt3_175b_64_1024.bounded\t%llu\t\n", (unsigned long long)result.n_bounded);
    printf("search.gpt3_175b_64_1024.simulated\t%llu\t\n", (unsigned long long)result.n_evaluated);
    ty_search_free(&result);
    search.n_threads = 1;
    start_s = now_s();
    const double cpu_start_s = cpu_s();
    if (ty_search_run(&search, &result, NULL) != TY_OK)
        return false;
    printf("search.gpt3_175b_64_1024.cpu_s\t%.3f\ts\n", cpu_s() - cpu_start_s);
    printf("search.gpt3_175b_64_1024.all_threads_over_1\t%.2f\t\n", (now_s() - start_s) / all_s);
    ty_search_free(&result);
    search.progress = stop;
    start_s = cpu_s();
    if (ty_search_run(&search, &result, NULL) != TY_ERR_CANCELLED)
        return false;
    printf("search.screen_bound.plans_per_s_per_core\t%.4g\t1/s\n",
           (double)n_plans / (cpu_s() - start_s));
    return true;
}

/* 175B on 64 GPUs of 80 GB with every sharding, offload, schedule, precision. */
static bool with_offload(void)
{
    static struct ty_search search;
    struct ty_search_result result = {0};
    open_search(&search);
    search.space.fixed.n_gpus = 64;
    search.space.offload = (struct ty_values){.n = 5, .value = {1, 2, 3, 4, 5}};
    search.space.sharding = (struct ty_values){.n = 5, .value = {1, 2, 3, 4, 5}};
    search.space.schedule = (struct ty_values){.n = 7, .value = {1, 2, 3, 4, 5, 6, 7}};
    search.space.precision = (struct ty_values){.n = 4, .value = {1, 2, 3, 4}};
    const double start_s = now_s(), cpu_start_s = cpu_s();
    if (ty_search_run(&search, &result, NULL) != TY_OK)
        return false;
    printf("search.gpt3_175b_64_offload.candidates\t%llu\t\n",
           (unsigned long long)result.n_enumerated);
    printf("search.gpt3_175b_64_offload.bounded\t%llu\t\n", (unsigned long long)result.n_bounded);
    printf("search.gpt3_175b_64_offload.simulated\t%llu\t\n",
           (unsigned long long)result.n_evaluated);
    printf("search.gpt3_175b_64_offload.exact_top10_s\t%.3f\ts\n", now_s() - start_s);
    printf("search.gpt3_175b_64_offload.cpu_s\t%.3f\ts\n", cpu_s() - cpu_start_s);
    ty_search_free(&result);
    return true;
}

/* Legal plans of a machine whose GPUs hold 16 GB, all rejected by memory; scaled to 17,446. */
static bool none_fits(void)
{
    static struct ty_search search;
    struct ty_search_result result = {0};
    struct ty_cluster small = cluster;
    small.gpu.mem_bytes = 16e9;
    open_search(&search);
    search.cluster = &small;
    search.n_threads = 1;
    for (uint32_t n = 16; n <= 96; n += 8)
        search.space.n_gpus.value[search.space.n_gpus.n++] = n;
    const double start_s = cpu_s();
    if (ty_search_run(&search, &result, NULL) != TY_ERR_INFEASIBLE)
        return false;
    uint64_t n = 0;
    for (int reason = TY_REJECT_MEMORY_STATES; reason <= TY_REJECT_MEMORY_TIGHT; reason++)
        n += result.rejected[reason];
    printf("search.not_fitting_17446.cpu_s\t%.4f\ts\n", (cpu_s() - start_s) / (double)n * 17446);
    ty_search_free(&result);
    return true;
}

static bool count_point(void *user, const struct ty_score *score)
{
    *(double *)user += score->step_time_s;
    return true;
}

/* One axis of a what-if: 200 values from low in equal steps. */
struct axis {
    enum ty_kind kind;
    const char *path;
    double low, step;
};

/* What-if points at their bound: one plan under 40,000 settings. */
static bool what_ifs(const char *name, const struct axis axes[2])
{
    static double value[2][200];
    static struct ty_patch patch[2][200];
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 256;
    plan.tp = plan.pp = 8;
    plan.gbs = 1536;
    plan.seq = 2048;
    struct ty_cross cross = {.model = &model,
                             .cluster = &cluster,
                             .profile = &profile,
                             .plan = &plan,
                             .options = {.rung = TY_RUNG_BOUND},
                             .n_threads = 1,
                             .allow_tight = true,
                             .n_axes = 2};
    for (uint32_t axis = 0; axis < 2; axis++) {
        size_t n;
        const struct ty_field *fields = ty_fields(axes[axis].kind, &n);
        for (uint32_t i = 0; i < 200; i++) {
            value[axis][i] = axes[axis].low + axes[axis].step * i;
            patch[axis][i].bytes = &value[axis][i];
        }
        cross.axis[axis] = (struct ty_cross_axis){.kind = axes[axis].kind, .n = 200};
        cross.axis[axis].patch = patch[axis];
        for (size_t i = 0; i < n; i++)
            if (strcmp(fields[i].path, axes[axis].path) == 0)
                cross.axis[axis].field = &fields[i];
    }
    double sum_s = 0.0;
    const double start_s = cpu_s();
    if (ty_cross_run(&cross, count_point, &sum_s, NULL) != TY_OK)
        return false;
    printf("search.whatif_bound%s.points_per_s_per_core\t%.4g\t1/s\n", name,
           (double)ty_cross_n_points(&cross) / (cpu_s() - start_s));
    return true;
}

int main(void)
{
    fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
    fixture_dgx_a100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    static const struct axis network[] = {{TY_KIND_CLUSTER, "network.latency", 1e-6, 1e-6},
                                          {TY_KIND_PROFILE, "device.clock_ratio", 0.5, 0.005}};
    static const struct axis device[] = {{TY_KIND_CLUSTER, "gpu.memory.bandwidth", 1e12, 1e10},
                                         {TY_KIND_CLUSTER, "gpu.peak.bf16", 2e14, 1e12}};
    return !(whole_range() && with_offload() && none_fits() && what_ifs("", network) &&
             what_ifs("_device", device));
}
