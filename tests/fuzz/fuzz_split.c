/* SPDX-License-Identifier: MIT
 * Any bytes as a file of jobs: read and divided, or refused with a place and a reason. */
#include "include/trainyard_tools.h"

#include <math.h>
#include <stdlib.h>

enum { N_UNITS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void divide(const struct ty_split_list *list, int objective)
{
    double curve[TY_SPLIT_MAX_JOBS][N_UNITS + 1] = {{0}};
    struct ty_split_job job[TY_SPLIT_MAX_JOBS];
    struct ty_split split;
    struct ty_split_result result;
    struct ty_error error = {0};
    uint32_t used = 0;
    for (uint32_t j = 0; j < list->n; j++) {
        const struct ty_split_entry *entry = &list->entry[j];
        for (uint32_t i = 0; i < entry->n_points; i++)
            if (entry->point_gpus[i] <= N_UNITS)
                curve[j][entry->point_gpus[i]] = entry->point_tokens_per_s[i];
        job[j] = (struct ty_split_job){.tokens_per_s = curve[j],
                                       .min_units = entry->min_gpus,
                                       .max_units = entry->max_gpus,
                                       .weight = entry->weight,
                                       .tokens = entry->tokens,
                                       .deadline_s = entry->deadline_s,
                                       .cpu_s = entry->sample_cpu_s,
                                       .read_bytes = entry->sample_bytes,
                                       .data_bytes = entry->data_bytes,
                                       .hit = entry->n_hits ? entry->hit : NULL,
                                       .n_hits = entry->n_hits,
                                       .prepare_cpu_s = entry->prepare_cpu_s};
    }
    ty_split_init(&split);
    split.jobs = job;
    split.n_jobs = list->n;
    split.n_units = N_UNITS;
    split.cores = 100;
    split.cache_bytes = 1e9;
    split.read_bytes_per_s = 1e9;
    split.objective = objective;
    if (ty_split_run(&split, &result, &error) != TY_OK) {
        require(error.where[0] && error.text[0]);
        return;
    }
    for (uint32_t j = 0; j < result.n_jobs; j++)
        used += result.share[j].units;
    require(used + result.free_units == N_UNITS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ty_split_list list;
    struct ty_error error = {0};
    if (ty_split_list_parse((const char *)data, bytes, "jobs", &list, &error) != TY_OK) {
        require(error.where[0] && error.text[0]);
        return 0;
    }
    for (int objective = 0; objective < TY_N_SPLIT_OBJECTIVES; objective++)
        divide(&list, objective);
    ty_split_list_free(&list);
    return 0;
}
