/* SPDX-License-Identifier: MIT
 * The steady pace of a block of printed steps.
 *
 * Each sample gets a pace in seconds per step: as printed; else tokens of the step over the rate;
 * else time stamps over iterations; else the inverse of its rate. Dropped are the first window of
 * a launch, leading lines above 1.25 x the median, lines below half of it (asynchronous dispatch),
 * lines above twice the median and six robust sigmas (1.4826 MAD), and lines with skipped
 * optimizer steps or a checkpoint before them where they differ from the clean ones by over 2 %.
 * The limits come from the 41 logs of shared/data/train-logs: natural variation of steady lines
 * reaches 11 %, periodic spikes that belong to the throughput reach 1.6 x.
 */
#include "calibrate/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEADING_SLOW 1.25
#define TOO_FAST     0.5
#define OUTLIER      2.0
#define SIGMAS       6.0
#define SUSPECT      0.02
#define MAX_LEADING  (1.0 / 3.0) /* more slow lines than this at the start are no warm-up */
#define DRIFT        0.05
#define DRIFT_LINES  8

const char *const log_drop_names[LOG_N_DROPS] = {
    "kept", "first_window", "warm_up", "too_fast", "skipped_steps", "event", "outlier", "no_pace"};

const char *const log_step_names[LOG_N_STEPS] = {"printed", "work_over_rate", "time_stamps"};

/* ---- order statistics --------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation between order statistics of a sorted array (type 7 of Hyndman and Fan). */
static double quantile(const double *sorted, size_t n, double p)
{
    if (n == 0)
        return NAN;
    const double at = p * (double)(n - 1);
    const size_t below = (size_t)at;
    const size_t above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return quantile(values, n, 0.5);
}

/* Median distance from a center; overwrites values. */
static double mad_of(double *values, size_t n, double center)
{
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - center);
    return median_of(values, n);
}

/* ---- one block ---------------------------------------------------------------------------- */

/* Collects a member (by offset) of the samples that are kept; all: of those with a pace. */
static size_t gather(const struct log_view *view, size_t offset, bool all)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++) {
        const struct log_sample *sample = &view->samples[i];
        const double value = *(const double *)((const char *)sample + offset);
        if (isfinite(value) && (sample->drop == LOG_KEPT || (all && sample->drop != LOG_NO_PACE)))
            view->scratch[n++] = value;
    }
    return n;
}

#define GATHER(view, member, all) gather(view, offsetof(struct log_sample, member), all)

static double kept_median(const struct log_view *view)
{
    return median_of(view->scratch, GATHER(view, pace, false));
}

double log_view_window(const struct log_view *view)
{
    double window = INFINITY;
    for (size_t i = 1; i < view->n; i++) {
        const double gap = view->samples[i].iteration - view->samples[i - 1].iteration;
        if (gap >= 1.0 && gap < window)
            window = gap;
    }
    if (isfinite(window))
        return window;
    const struct log_facts *facts = &view->run->facts;
    return log_fact_known(facts, LOG_INTERVAL) ? facts->value[LOG_INTERVAL] : 1.0;
}

/* Step times that are not printed. */
static void complete_steps(const struct log_view *view)
{
    const double gpus = log_gpus(&view->run->facts);
    for (size_t i = 0; i < view->n; i++) {
        struct log_sample *sample = &view->samples[i];
        if (!isnan(sample->step_s))
            continue;
        sample->step_s = sample->tokens / (gpus * sample->gpu_tokens_per_s);
        sample->step_origin = LOG_STEP_RATE;
        if (!isnan(sample->step_s) || i == 0)
            continue;
        const struct log_sample *before = sample - 1;
        const double step_s =
            (sample->time_s - before->time_s) / (sample->iteration - before->iteration);
        if (step_s > 0.0 && isfinite(step_s)) {
            sample->step_s = step_s;
            sample->step_origin = LOG_STEP_CLOCK;
        }
    }
}

/* Pace of every sample: lines without a step time are put on the scale of the others by their
 * rate. */
static void set_paces(const struct log_view *view)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++) {
        const struct log_sample *sample = &view->samples[i];
        const double work = sample->step_s * sample->gpu_tokens_per_s;
        if (isfinite(work))
            view->scratch[n++] = work;
    }
    const double work = n ? median_of(view->scratch, n) : 1.0;
    bool steps = false;
    for (size_t i = 0; i < view->n; i++)
        steps |= isfinite(view->samples[i].step_s);
    for (size_t i = 0; i < view->n; i++) {
        struct log_sample *sample = &view->samples[i];
        sample->pace = sample->step_s;
        if (isnan(sample->pace) && (n || !steps))
            sample->pace = work / sample->gpu_tokens_per_s;
        const bool usable = sample->pace > 0.0 && isfinite(sample->pace);
        sample->drop = usable ? LOG_KEPT : LOG_NO_PACE;
    }
}

static void mark(struct log_sample *sample, enum log_drop reason)
{
    if (sample->drop == LOG_KEPT)
        sample->drop = (uint8_t)reason;
}

static void drop_first_windows(const struct log_view *view, double window)
{
    uint32_t left = 0;
    for (size_t i = 0; i < view->n; i++) {
        struct log_sample *sample = &view->samples[i];
        const bool fresh = i == 0 && sample->iteration <= window && !sample->average;
        if ((sample->launch || fresh) && !view->log->warmed)
            left = view->log->framework.n_warm_up;
        if (left && sample->drop == LOG_KEPT)
            mark(sample, LOG_FIRST_WINDOW);
        left -= left > 0;
    }
}

/* Slow lines in a row behind a start, unless they are too many for a warm-up. */
static void drop_leading(const struct log_view *view, bool first, double median)
{
    for (size_t i = 0; i < view->n; i++) {
        if (!view->samples[i].launch && !(i == 0 && first))
            continue;
        const size_t start = i;
        while (i < view->n &&
               (view->samples[i].drop != LOG_KEPT || view->samples[i].pace > LEADING_SLOW * median))
            i++;
        if ((double)(i - start) <= MAX_LEADING * (double)view->n)
            for (size_t k = start; k < i; k++)
                mark(&view->samples[k], LOG_WARM_UP);
    }
}

static void drop_fast(const struct log_view *view, double median)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->samples[i].pace < TOO_FAST * median)
            mark(&view->samples[i], LOG_TOO_FAST);
}

static bool is_suspect(const struct log_sample *sample)
{
    return sample->skipped > 0.0 || sample->event;
}

static void drop_suspects(const struct log_view *view, struct log_block *block)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++)
        if (view->samples[i].drop == LOG_KEPT && !is_suspect(&view->samples[i]))
            view->scratch[n++] = view->samples[i].pace;
    const double clean = median_of(view->scratch, n);
    for (size_t i = 0; i < view->n; i++) {
        struct log_sample *sample = &view->samples[i];
        if (sample->drop != LOG_KEPT || !is_suspect(sample))
            continue;
        const double excess = sample->pace / clean - 1.0;
        if (n && (excess > SUSPECT || (sample->skipped > 0.0 && excess < -SUSPECT)))
            mark(sample, sample->skipped > 0.0 ? LOG_SKIPPED : LOG_EVENT);
        else
            block->skipped_kept |= sample->skipped > 0.0;
    }
}

static void drop_outliers(const struct log_view *view)
{
    const double median = kept_median(view);
    const double mad = mad_of(view->scratch, GATHER(view, pace, false), median);
    for (size_t i = 0; i < view->n; i++) {
        const double pace = view->samples[i].pace;
        if (pace > OUTLIER * median && pace > median + SIGMAS * 1.4826 * mad)
            mark(&view->samples[i], LOG_OUTLIER);
    }
}

/* Halves that differ by more than the scatter inside them. */
static bool drifts(const struct log_view *view)
{
    const size_t n = GATHER(view, pace, false);
    if (n < DRIFT_LINES)
        return false;
    const size_t half = n / 2;
    double *early = view->scratch;
    double *late = view->scratch + half;
    const double a = median_of(early, half);
    const double b = median_of(late, n - half);
    const double scatter = 1.4826 * fmax(mad_of(early, half, a), mad_of(late, n - half, b));
    return fabs(b / a - 1.0) > DRIFT && fabs(b - a) > 3.0 * scatter;
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return n ? sum / (double)n : (double)NAN;
}

/* Clock over printed step, where consecutive lines have both: the median, so that pauses do not
 * count. NAN below 3 lines, and where time stamps of whole seconds cannot tell. */
static double clock_ratio(const struct log_view *view)
{
    size_t n = 0;
    double clock_s = 0.0;
    double steps_s = 0.0;
    for (size_t i = 1; i < view->n; i++) {
        const struct log_sample *a = &view->samples[i - 1];
        const struct log_sample *b = &view->samples[i];
        const double elapsed_s = b->time_s - a->time_s;
        const double expected_s = (b->iteration - a->iteration) * b->step_s;
        if (b->drop != LOG_KEPT || b->step_origin == LOG_STEP_CLOCK || !(expected_s > 0.0) ||
            !isfinite(elapsed_s))
            continue;
        clock_s += elapsed_s;
        steps_s += expected_s;
        view->scratch[n++] = elapsed_s / expected_s;
    }
    if (n < 3 || fabs(clock_s - steps_s) <= 1.0 + 0.02 * steps_s)
        return NAN;
    return median_of(view->scratch, n);
}

static void summarise(const struct log_view *view, struct log_block *block)
{
    const bool all = block->n_kept == 0;
    size_t n = GATHER(view, step_s, all);
    double *values = view->scratch;
    block->mean_s = mean_of(values, n);
    block->median_s = median_of(values, n);
    block->q1_s = quantile(values, n, 0.25);
    block->q3_s = quantile(values, n, 0.75);
    block->min_s = quantile(values, n, 0.0);
    block->max_s = quantile(values, n, 1.0);
    block->mad_s = mad_of(values, n, block->median_s);
    n = 0;
    for (size_t i = 0; i < view->n; i++) {
        const uint8_t drop = view->samples[i].drop;
        const bool steady =
            drop == LOG_KEPT || drop == LOG_OUTLIER || drop == LOG_EVENT || drop == LOG_SKIPPED;
        if (steady && isfinite(view->samples[i].step_s))
            values[n++] = view->samples[i].step_s;
    }
    block->mean_all_s = n ? mean_of(values, n) : block->mean_s;
    block->gpu_tokens_per_s = median_of(values, GATHER(view, gpu_tokens_per_s, all));
    block->rate_error = median_of(values, GATHER(view, rate_error, all));
    block->tokens_per_s = median_of(values, GATHER(view, tokens_per_s, all));
    block->samples_per_s = median_of(values, GATHER(view, samples_per_s, all));
    block->gpu_flop_per_s = median_of(values, GATHER(view, gpu_flop_per_s, all));
    n = GATHER(view, tokens, all);
    block->tokens = median_of(values, n);
    block->tokens_vary = n > 1 && values[0] != values[n - 1];
    if (block->tokens_vary)
        block->tokens = NAN;
}

static void count(const struct log_view *view, struct log_block *block)
{
    block->n_lines = (uint32_t)view->n;
    for (size_t i = 0; i < view->n; i++) {
        const struct log_sample *sample = &view->samples[i];
        block->n_dropped[sample->drop]++;
        block->n_copies += sample->n_copies;
        block->average |= sample->average;
        if (isfinite(sample->step_s) && sample->step_origin > block->step_origin)
            block->step_origin = sample->step_origin;
    }
    block->n_kept = block->n_dropped[LOG_KEPT];
    block->only_warm_up = block->n_kept == 0;
}

void log_block_analyse(const struct log_view *view, bool first, struct log_block *block)
{
    block->gbs = view->samples[0].gbs;
    block->first_iteration = view->samples[0].iteration;
    block->last_iteration = view->samples[view->n - 1].iteration;
    block->window = log_view_window(view);
    complete_steps(view);
    set_paces(view);
    drop_first_windows(view, block->window);
    const double median = kept_median(view);
    drop_leading(view, first, median);
    drop_fast(view, median);
    drop_suspects(view, block);
    drop_outliers(view);
    count(view, block);
    summarise(view, block);
    block->clock_ratio = clock_ratio(view);
    block->drifts = drifts(view);
}
