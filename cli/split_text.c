/* SPDX-License-Identifier: MIT
 * Text of `trainyard split`. */
#include "cli/split.h"
#include <math.h>
#include <string.h>

static const char *percent_text(double ratio, char *out, size_t bytes)
{
    snprintf(out, bytes, ratio < 0.0005 ? "%.2g %%" : "%.1f %%", 100.0 * ratio);
    return out;
}

static const char *amount(double value, const char *(*text)(double, char *, size_t), char *out,
                          size_t bytes)
{
    if (isinf(value))
        snprintf(out, bytes, "-");
    else
        text(value, out, bytes);
    return out;
}

static const char *size_text(double value, char *out, size_t bytes)
{
    return ty_quantity_text(value, TY_UNIT_BYTES, out, bytes);
}

static const char *rate_text(double value, char *out, size_t bytes)
{
    return ty_quantity_text(value, TY_UNIT_BYTES_PER_S, out, bytes);
}

/* ---- shares ------------------------------------------------------------------------------- */

static void print_shares(const struct split_run *run)
{
    const struct ty_split_result *result = &run->result;
    char tokens[40], cache[40], rate[40], limit[40];
    printf("%-20s %6s %12s %11s %9s %10s %11s  %s\n", "job", "GPUs", "tokens/s", "x equal share",
           "cores", "cache", "storage", "limit");
    for (uint32_t j = 0; j < result->n_jobs; j++) {
        const struct ty_split_share *share = &result->share[j];
        snprintf(limit, sizeof limit, "%s", ty_split_resource_name(share->limit, NULL));
        printf("%-20.20s %6u %12s %13.3f %9.1f %10s %11s  %s\n", run->list.entry[j].name,
               share->units * run->unit_gpus,
               cli_count_text(share->tokens_per_s, tokens, sizeof tokens),
               share->tokens_per_s / share->equal_tokens_per_s, share->cores,
               size_text(share->cache_bytes, cache, sizeof cache),
               rate_text(share->read_bytes_per_s, rate, sizeof rate), limit);
    }
    printf("%-20s %6u %12s %13s %9.1f %10s %11s\n", "free", result->free_units * run->unit_gpus, "",
           "", result->free_cores, amount(result->free_cache_bytes, size_text, cache, sizeof cache),
           amount(result->free_read_bytes_per_s, rate_text, rate, sizeof rate));
}

static void print_gains(const struct split_run *run)
{
    const struct ty_split_result *result = &run->result;
    char gain[TY_N_SPLIT_RESOURCES][24], unit[40];
    snprintf(unit, sizeof unit, "+%u GPUs", run->unit_gpus);
    printf("\nspeed that one more of each would add\n%-20s %10s %10s %10s %10s  %s\n", "job", unit,
           "+1 core", "+1 GiB", "+1 GB/s", "next useful size");
    for (uint32_t j = 0; j < result->n_jobs; j++) {
        const struct ty_split_share *share = &result->share[j];
        for (int i = 0; i < TY_N_SPLIT_RESOURCES; i++)
            percent_text(share->tokens_per_s > 0.0 ? share->gain[i] / share->tokens_per_s : 0.0,
                         gain[i], sizeof gain[i]);
        printf("%-20.20s %10s %10s %10s %10s  ", run->list.entry[j].name, gain[TY_SPLIT_GPUS],
               gain[TY_SPLIT_CORES], gain[TY_SPLIT_CACHE], gain[TY_SPLIT_STORAGE]);
        if (share->next_units)
            printf("%u GPUs: %s tokens/s by GPUs\n", share->next_units * run->unit_gpus,
                   cli_count_text(share->next_tokens_per_s, unit, sizeof unit));
        else
            printf("none\n");
    }
}

/* ---- times, plans ------------------------------------------------------------------------- */

static void print_times(const struct split_run *run)
{
    const struct ty_split_result *result = &run->result;
    bool timed = false;
    for (uint32_t j = 0; j < result->n_jobs; j++)
        timed |= !isnan(result->share[j].finish_s);
    if (!timed)
        return;
    printf("\n%-20s %14s %14s %10s %14s\n", "days from now", "preparation at", "training at", "end",
           "deadline");
    for (uint32_t j = 0; j < result->n_jobs; j++) {
        const struct ty_split_share *share = &result->share[j];
        const double deadline_s = run->job[j].deadline_s;
        char deadline[24] = "-", prepared[24] = "-";
        if (!isnan(deadline_s))
            snprintf(deadline, sizeof deadline, "%.2f", deadline_s / 86400.0);
        if (run->job[j].prepare_cpu_s > 0.0)
            snprintf(prepared, sizeof prepared, "%.2f", share->prepare_s / 86400.0);
        if (isnan(share->finish_s))
            continue;
        printf("%-20.20s %14s %14.2f %10.2f %14s\n", run->list.entry[j].name, prepared,
               share->start_s / 86400.0, share->finish_s / 86400.0, deadline);
    }
}

static void print_plans(const struct split_run *run)
{
    char layout[160];
    bool first = true;
    for (uint32_t j = 0; j < run->result.n_jobs; j++) {
        const uint32_t units = run->result.share[j].units;
        if (!run->plans[j] || units == 0)
            continue;
        printf("%s  %-18.18s %s\n", first ? "\nplans\n" : "", run->list.entry[j].name,
               cli_plan_text(&run->plans[j][units], layout, sizeof layout));
        first = false;
    }
}

static void print_value(const struct split_run *run)
{
    const struct ty_split_result *result = &run->result;
    switch (run->split.objective) {
    case TY_SPLIT_MAX_MIN:
        printf("the least speed / (weight x equal share) is %.4f; no division does better\n",
               result->value);
        break;
    case TY_SPLIT_FINISH:
        printf("the last job ends after %.2f days; with equal shares after %.2f", //
               result->value / 86400.0, result->equal / 86400.0);
        if (isfinite(result->in_row_s))
            printf("; if all prepare before anyone trains after %.2f", result->in_row_s / 86400.0);
        printf("\n");
        break;
    default:
        printf("sum of weight x speed / equal share: %.4f; with equal shares %.4f; ", result->value,
               result->equal);
        if (result->bound > result->value)
            printf("no division gives more than %.4f\n", result->bound);
        else
            printf("no division does better\n");
    }
}

void split_print(const struct split_run *run)
{
    char cache[40], rate[40];
    const struct ty_split *split = &run->split;
    printf("%s: %u GPUs in units of %u, %.0f cores, %s of cache", run->cluster.name,
           split->n_units * run->unit_gpus, run->unit_gpus, split->cores,
           size_text(split->cache_bytes, cache, sizeof cache));
    if (isfinite(split->read_bytes_per_s))
        printf(", %s of storage", rate_text(split->read_bytes_per_s, rate, sizeof rate));
    printf("\nobjective %s: ", ty_split_objective_name(split->objective));
    print_value(run);
    printf("\n");
    print_shares(run);
    print_gains(run);
    print_times(run);
    print_plans(run);
}
