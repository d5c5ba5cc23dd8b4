/* SPDX-License-Identifier: MIT
 * Benchmarks of the search as TSV: name, value, unit. GPT-3 175B (h 12288, L 96, 96 heads, V 51200)
 * on DGX A100, every legal plan of 64..1,024 GPUs in steps of a node, batch 1536 of 2048 tokens. */
#include "tests/fixtures.h"

#include <stdlib.h>
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

int main(void)
{
    static struct ty_model model;
    static struct ty_cluster cluster;
    static struct ty_profile profile;
    fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
    fixture_dgx_a100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    static struct ty_search search;
    search = (struct ty_search){.model = &model, .cluster = &cluster, .profile = &profile};
    ty_init(TY_KIND_PLAN, &search.space.fixed);
    search.space.fixed.gbs = 1536;
    search.space.fixed.seq = 2048;
    for (uint32_t n = 64; n <= 1024; n += 8)
        search.space.n_gpus.value[search.space.n_gpus.n++] = n;
    search.top = 10;
    search.overall = true;

    struct ty_search_result result = {0};
    double start_s = now_s();
    if (ty_search_run(&search, &result, NULL) != TY_OK)
        return 1;
    printf("search.gpt3_175b_64_1024.exact_top10_s\t%.3f\ts\n", now_s() - start_s);
    const uint64_t n_plans = result.n_enumerated;
    printf("search.gpt3_175b_64_1024.plans\t%llu\t\n", (unsigned long long)n_plans);
    printf("search.gpt3_175b_64_1024.bounded\t%llu\t\n", (unsigned long long)result.n_bounded);
    printf("search.gpt3_175b_64_1024.simulated\t%llu\t\n", (unsigned long long)result.n_evaluated);
    ty_search_free(&result);

    search.n_threads = 1;
    search.progress = stop;
    start_s = cpu_s();
    if (ty_search_run(&search, &result, NULL) != TY_ERR_CANCELLED)
        return 1;
    printf("search.screen_bound.plans_per_s_per_core\t%.4g\t1/s\n",
           (double)n_plans / (cpu_s() - start_s));
    return 0;
}
