/* SPDX-License-Identifier: MIT
 * Rows per second of ty_store_add_score on a local disk. Bar: 300,000. Prints one TSV line. */
#include "include/trainyard_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_ROWS 1000000

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A score with every number in use, different in every row, as a sweep writes it. */
static void fill(struct ty_score *score, uint32_t i)
{
    score->plan_id = i;
    score->plan.n_gpus = 64u << i % 5;
    score->plan.tp = 1u << i % 4;
    score->plan.pp = 1u << i % 3;
    score->plan.mbs = 1 + i % 8;
    score->step_time_s = 1.0 + 1.0 / (i + 1);
    score->tokens_per_s = 4e6 / score->step_time_s;
    score->tokens_per_s_per_gpu = score->tokens_per_s / score->plan.n_gpus;
    score->mfu = 0.4 / score->step_time_s;
    score->peak_bytes = 6e10 + i;
    score->headroom_bytes = 1e10 - i;
    for (int part = 0; part < TY_N_PARTS; part++)
        score->breakdown_s[part] = score->step_time_s / (part + 2);
}

static ty_status measure(const char *path, double *rows_per_s, struct ty_error *error)
{
    ty_store *store;
    ty_status status = ty_store_open(path, false, &store, error);
    if (status != TY_OK)
        return status;
    int64_t study_id;
    status = ty_store_begin(store, &(struct ty_study){.command = "bench"}, &study_id, error);
    struct ty_score score = {0};
    ty_init(TY_KIND_PLAN, &score.plan);
    snprintf(score.plan.order, sizeof score.plan.order, "tp-cp-ep-dp-pp");
    score.plan.precision = TY_BF16_PRECISION;
    score.plan.overlap = TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_PARAM;
    score.plan.moe_imbalance = 1;
    double start_s = now_s();
    for (uint32_t i = 0; i < N_ROWS && status == TY_OK; i++) {
        fill(&score, i);
        status = ty_store_add_score(store, study_id, &score, (double)NAN, error);
    }
    if (status == TY_OK)
        status = ty_store_flush(store, error);
    *rows_per_s = N_ROWS / (now_s() - start_s);
    ty_store_close(store);
    return status;
}

int main(void)
{
    char path[] = "/var/tmp/trainyard-bench-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    struct ty_error error;
    double rows_per_s = NAN;
    ty_status status = measure(path, &rows_per_s, &error);
    unlink(path);
    if (status != TY_OK) {
        fprintf(stderr, "%s: %s\n", error.where, error.text);
        return 1;
    }
    printf("store.rows_per_s\t%.0f\tbar\t300000\n", rows_per_s);
    return rows_per_s < 300000;
}
