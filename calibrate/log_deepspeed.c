/* SPDX-License-Identifier: MIT
 * Lines of the DeepSpeed engine and of trainers on top of it:
 *
 *   [Rank 0] step=40, skipped=2, lr=[5e-05]            a step and its time stamp
 *   epoch=0/micro_step=34/global_step=34, RunningAvgSamplesPerSec=7.86, MaxMemAllocated=63.31GB
 *   {'train_runtime': 273.0, 'train_samples_per_second': 3.663, 'train_steps_per_second': 0.007}
 *   10/1000 [00:12<20:11, 1.22s/it]                    progress bar: a mean since the start
 *
 * The engine's samples/s times only part of a step (10x off in one of our logs): its lines count
 * only where a log has nothing better, and then by their time stamps.
 */
#include "calibrate/log.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define GIB 1073741824.0 /* timer.py of DeepSpeed divides by 1024^3 and prints "GB" */

static bool take_engine(struct log *log, const struct log_line *line)
{
    struct log_sample sample = log_sample_none(line);
    struct log_number number;
    if (log_number_after(line->text, "] step=", &number) && strstr(line->text, "skipped=")) {
        sample.iteration = number.value;
    } else if (strstr(line->text, "SamplesPerSec=")) {
        const char *count = strstr(line->text, ", SamplesPerSec="); /* "0/40, SamplesPerSec=" */
        while (count && count > line->text && isdigit((unsigned char)count[-1]))
            count--;
        if (log_number_after(line->text, "global_step=", &number) ||
            (count && log_number(count, &number)))
            sample.iteration = number.value;
        if (log_number_after(line->text, "SamplesPerSec=", &number))
            sample.samples_per_s = number.value;
        if (log_number_after(line->text, "MaxMemAllocated=", &number))
            log_memory_max(&log_memory_now(log)->allocated_bytes, number.value * GIB);
    } else {
        return false;
    }
    log_framework_seen(log, "deepspeed", 2, 1);
    if (isfinite(sample.iteration))
        log_add_spare(log, &sample);
    return true;
}

/* Pipeline engine: "steps: 10 loss: 10.8712 iter time (s): 1.234 samples/sec: 51.863". */
static bool take_pipeline(struct log *log, const struct log_line *line)
{
    struct log_number step, seconds, rate;
    if (!log_number_after(line->text, "iter time (s):", &seconds) ||
        !log_number_after(line->text, "steps:", &step))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = step.value;
    sample.step_s = seconds.value;
    if (log_number_after(line->text, "samples/sec:", &rate))
        sample.samples_per_s = rate.value;
    log_framework_seen(log, "deepspeed", 4, 1);
    log_add(log, &sample);
    return true;
}

/* The only whole number that a rounded product allows; NAN when there is none or several. */
static double only_whole(double low, double high)
{
    const double whole = floor(high);
    return whole >= 1.0 && whole >= low && whole - 1.0 < low ? whole : (double)NAN;
}

/* Result of a run of the HuggingFace Trainer: steps = runtime * steps/s, start-up included. */
static bool take_result(struct log *log, const struct log_line *line)
{
    struct log_number runtime, steps, samples;
    const char *text = line->text;
    if (!log_number_after(text, "'train_runtime': ", &runtime) ||
        !log_number_after(text, "'train_steps_per_second': ", &steps))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = only_whole(runtime.value * (steps.value - steps.half),
                                  runtime.value * (steps.value + steps.half));
    sample.step_s = runtime.value / sample.iteration;
    if (isnan(sample.step_s) && steps.value > 0.0)
        sample.step_s = 1.0 / steps.value;
    if (log_number_after(text, "'train_samples_per_second': ", &samples))
        sample.samples_per_s = samples.value;
    sample.average = true;
    log_framework_seen(log, "hf-trainer", 5, 0);
    log_add(log, &sample);
    return true;
}

/* Bars of other work than training. */
static bool is_other_work(const char *text, const char *open)
{
    static const char *const words[] = {"oading", "etching", "alidat", "valuat", "esting",
                                        "anity",  "Map",     "ilter",  "enerat"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *word = strstr(text, words[i]);
        if (word && word < open)
            return true;
    }
    return false;
}

/* tqdm: "795/77225 [9:07:58<878:01:48, 41.36s/it, ...]"; fast ones print it/s. */
struct bar {
    double done, total, step_s;
};

static bool read_bar(const char *text, const char *open, struct bar *out)
{
    const char *slash = open;
    while (slash > text && *slash != '/')
        slash--;
    const char *digits = slash;
    while (digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    struct log_number done, total, rate;
    if (digits == slash || !log_number(digits, &done) || !log_number(slash + 1, &total) ||
        total.end != open)
        return false;
    *out = (struct bar){.done = done.value, .total = total.value, .step_s = NAN};
    const char *unit = strstr(open, "s/it");
    const bool inverse = !unit;
    if (inverse)
        unit = strstr(open, "it/s");
    const char *comma = unit;
    while (comma && comma > open && *comma != ',')
        comma--;
    if (unit && comma > open && log_number(comma + 1, &rate) && rate.end == unit &&
        rate.value > 0.0)
        out->step_s = inverse ? 1.0 / rate.value : rate.value;
    return memchr(open, '<', strlen(open)) != NULL;
}

/* NeMo 1 from 2023-07 prints the step time itself behind its bar; global_step has three digits, so
 * that from 1000 on the count of the bar stands for it. */
static bool take_nemo_bar(struct log *log, const struct log_line *line, const struct bar *bar)
{
    struct log_number seconds, step;
    if (!log_number_after(line->text, "train_step_timing in s=", &seconds))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.step_s = seconds.value;
    sample.iteration = bar ? bar->done : (double)NAN;
    if (log_number_after(line->text, "global_step=", &step) && (step.half < 1.0 || !bar))
        sample.iteration = step.value;
    log_framework_seen(log, "nemo", 5, 1);
    log_add(log, &sample);
    return true;
}

static bool take_bar(struct log *log, const struct log_line *line)
{
    const char *open = strstr(line->text, " [");
    struct log_number number;
    struct bar bar;
    const bool is_bar = open && read_bar(line->text, open, &bar);
    if (take_nemo_bar(log, line, is_bar ? &bar : NULL))
        return true;
    if (!is_bar || is_other_work(line->text, open))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = bar.done;
    sample.bar_total = bar.total;
    sample.step_s = bar.step_s;
    sample.average = true;
    const bool nemo = log_number_after(open, "consumed_samples=", &number);
    if (nemo && bar.done > 0.0)
        sample.gbs = number.value / bar.done; /* three digits: rounded when the run is judged */
    log_framework_seen(log, nemo ? "nemo" : "progress-bar", 1, 1);
    if (isfinite(bar.step_s))
        log_add_spare(log, &sample);
    return true;
}

bool log_take_deepspeed(struct log *log, const struct log_line *line)
{
    if (strstr(line->text, "DeepSpeed Flops Profiler"))
        log_framework_seen(log, "deepspeed", 2, 1);
    return take_engine(log, line) || take_pipeline(log, line) || take_result(log, line) ||
           take_bar(log, line);
}
