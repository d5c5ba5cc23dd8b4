/* SPDX-License-Identifier: MIT
 * Blocks of a run, which are never pooled: another batch size, or a long gap in the iterations,
 * is another experiment. Launches of one job after a crash are one run again. */
#include "calibrate/log.h"
#include <math.h>
#include <stdlib.h>

#define GAP_ITERATIONS 1000.0 /* a block ends where more are missing, and 50 windows */
#define GAP_WINDOWS    50.0
#define SAME_JOB       0.05 /* paces of two launches of one job agree to this */

/* ---- blocks of a run ---------------------------------------------------------------------- */

static bool block_ends(const struct log_sample *before, const struct log_sample *sample,
                       double window)
{
    const double gap = sample->iteration - before->iteration;
    const bool batch_changes = isfinite(before->gbs) && isfinite(sample->gbs) &&
                               fabs(sample->gbs / before->gbs - 1.0) > 0.005;
    return batch_changes || (gap > GAP_ITERATIONS && gap > GAP_WINDOWS * window);
}

void log_series_analyse(struct log *log, const struct log_run *run, struct log_series *out)
{
    *out = (struct log_series){.n_blocks = 0};
    if (run->n == 0)
        return;
    double *scratch = malloc(run->n * sizeof *scratch);
    if (!scratch) {
        log->failed = true;
        return;
    }
    struct log_view view = {.samples = log->samples + run->first,
                            .n = run->n,
                            .scratch = scratch,
                            .run = run,
                            .log = log};
    const double window = log_view_window(&view);
    for (size_t first = 0; first < run->n; first += view.n) {
        view.samples = log->samples + run->first + first;
        for (view.n = 1; first + view.n < run->n &&
                         !block_ends(&view.samples[view.n - 1], &view.samples[view.n], window);)
            view.n++;
        if (out->n_blocks == LOG_MAX_BLOCKS) {
            out->n_more_blocks++;
            continue;
        }
        struct log_block *block = &out->blocks[out->n_blocks];
        *block = (struct log_block){.first = run->first + first, .n = view.n};
        log_block_analyse(&view, first == 0, block);
        if (block->n_kept >= out->blocks[out->main].n_kept)
            out->main = out->n_blocks;
        out->n_blocks++;
    }
    free(scratch);
}

/* ---- restarts ----------------------------------------------------------------------------- */

static bool same_plan(const struct log_facts *a, const struct log_facts *b)
{
    for (int i = 0; i < LOG_N_FACTS; i++)
        if (a->origin[i] == LOG_LOGGED && b->origin[i] == LOG_LOGGED && a->value[i] != b->value[i])
            return false;
    return true;
}

static bool is_restart(const struct log_series *a, const struct log_series *b)
{
    if (a->n_blocks != 1 || b->n_blocks != 1)
        return false;
    const struct log_block *before = &a->blocks[0];
    const struct log_block *after = &b->blocks[0];
    const bool inside = after->first_iteration > before->first_iteration;
    const bool same_batch = !(fabs(before->gbs - after->gbs) > 0.0);
    const double ratio = isfinite(before->median_s)
                             ? after->median_s / before->median_s
                             : after->gpu_tokens_per_s / before->gpu_tokens_per_s;
    return inside && same_batch && fabs(ratio - 1.0) <= SAME_JOB;
}

void log_join_restarts(struct log *log)
{
    struct log_series *series = malloc(2 * sizeof *series);
    if (!series) {
        log->failed = true;
        return;
    }
    size_t n = 0; /* runs kept so far; series[0] is that of the last */
    for (size_t i = 0; i < log->n_runs && !log->failed; i++) {
        struct log_run *run = &log->runs[i];
        log_series_analyse(log, run, &series[1]);
        struct log_run *last = n ? &log->runs[n - 1] : NULL;
        if (last && same_plan(&last->facts, &run->facts) && is_restart(&series[0], &series[1])) {
            last->n += run->n;
            log->samples[run->first].launch = true;
            log_facts_merge(&last->facts, &run->facts);
            log_memory_merge(&last->memory, &run->memory);
            continue;
        }
        log->runs[n++] = *run;
        series[0] = series[1];
    }
    log->n_runs = log->failed ? log->n_runs : n;
    free(series);
}
