/* SPDX-License-Identifier: MIT
 * Records printed as a list, one "name: value" a line: Composer, OLMo-core, fms-fsdp. The values
 * gather in log->partial; the last of a list, or the first of the next, makes it a sample. */
#include "calibrate/log.h"
#include <math.h>
#include <string.h>

#define GIB 1073741824.0

static void set_rate(struct log_sample *sample, const struct log_number *rate)
{
    sample->gpu_tokens_per_s = rate->value;
    sample->rate_error = rate->value > 0.0 ? rate->half / rate->value : (double)NAN;
}

static void begin(struct log *log, const struct log_line *line)
{
    if (!log->has_partial)
        log->partial = log_sample_none(line);
    log->has_partial = true;
}

static void flush(struct log *log)
{
    const struct log_sample *sample = &log->partial;
    if (log->has_partial && (isfinite(sample->step_s) || isfinite(sample->gpu_tokens_per_s)))
        log_add(log, sample);
    log->has_partial = false;
}

/* "[epoch=1][batch=5/5]:" and "Train name: value" below; the counters begin at 0. */
static bool take_composer(struct log *log, const struct log_line *line)
{
    struct log_number number;
    struct log_sample *sample = &log->partial;
    const char *text = strstr(line->text, "Train ");
    if (log_number_after(line->text, "[batch=", &number) && strchr(number.end, ']')) {
        log->has_partial = false;
        begin(log, line);
        return true;
    }
    if (!text || !log->has_partial)
        return false;
    if (log_number_after(text, "Train time/batch:", &number)) {
        sample->iteration = number.value;
    } else if (log_number_after(text, "Train time/sample:", &number)) {
        sample->gbs = number.value / sample->iteration;
    } else if (log_number_after(text, "Train throughput/samples_per_sec:", &number)) {
        sample->samples_per_s = number.value;
        sample->step_s = sample->gbs / number.value;
        sample->step_origin = LOG_STEP_RATE;
    } else if (log_number_after(text, "Train throughput/tokens_per_sec:", &number)) {
        sample->tokens_per_s = number.value;
    } else if (log_number_after(text, "Train trainer/device_train_microbatch_size:", &number)) {
        log_fact_set(log_facts_now(log), LOG_MBS, number.value, LOG_LOGGED);
    } else if (log_number_after(text, "Train memory/peak_reserved_mem:", &number)) {
        log_memory_max(&log_memory_now(log)->reserved_bytes, number.value * 1e9);
    } else if (log_number_after(text, "Train throughput/device/tokens_per_sec:", &number)) {
        set_rate(sample, &number);
        log_framework_seen(log, "llm-foundry", 7, 1);
        flush(log);
    } else {
        return false;
    }
    return true;
}

/* "[step=10/100,epoch=1]" and "name=value" below, by name: BPS (batches/s) comes before TPS. The
 * forms with "(actual avg)" include the start. Before 2025: tokens_per_second, then
 * batches_per_second. */
static bool take_olmo(struct log *log, const struct log_line *line)
{
    struct log_number number;
    const char *text = line->text;
    if (log_number_after(text, "gpu_memory/GPU reserved mem (GiB)=", &number)) {
        log_memory_max(&log_memory_now(log)->reserved_bytes, number.value * GIB);
        return true;
    }
    if (log_number_after(text, "[step=", &number)) {
        flush(log);
        begin(log, line);
        log->partial.iteration = number.value;
        return true;
    }
    const char *at = strstr(text, "throughput/device/");
    if (!at)
        return false;
    const bool batches = log_number_after(at, "device/BPS=", &number) ||
                         log_number_after(at, "device/batches_per_second=", &number);
    if (!batches && !log_number_after(at, "device/TPS=", &number) &&
        !log_number_after(at, "device/tokens_per_second=", &number))
        return true; /* a mean since the start */
    begin(log, line);
    if (batches && number.value > 0.0) {
        log->partial.step_s = 1.0 / number.value;
        log->partial.step_origin = LOG_STEP_RATE;
    } else if (!batches) {
        set_rate(&log->partial, &number);
    }
    log_framework_seen(log, "olmo-core", 7, 1);
    if (isfinite(log->partial.step_s) && isfinite(log->partial.gpu_tokens_per_s))
        flush(log);
    return true;
}

/* train_utils.py: "step: 100", "reserved memory: 51.." (bytes), "current step time: 2.1", "current
 * token per gpu per sec: 3900.1", "overall token per gpu per sec: ..", "overall token per day: ..".
 * GPUs = tokens a day / 86400 / overall rate of one. */
static bool take_fms(struct log *log, const struct log_line *line)
{
    struct log_number number;
    struct log_sample *sample = &log->partial;
    const char *text = line->text;
    if (strncmp(text, "step:", 5) == 0 && log_number(text + 5, &number) && *number.end == '\0') {
        flush(log);
        begin(log, line);
        sample->iteration = number.value;
    } else if (!log->has_partial) {
        return false;
    } else if (strncmp(text, "reserved memory:", 16) == 0 && log_number(text + 16, &number)) {
        if (number.value > 1e6) /* forks print GiB without saying so */
            log_memory_max(&log_memory_now(log)->reserved_bytes, number.value);
    } else if (log_number_after(text, "current step time:", &number)) {
        sample->step_s = number.value;
    } else if (log_number_after(text, "current token per gpu per sec:", &number)) {
        set_rate(sample, &number);
        log_framework_seen(log, "fms-fsdp", 7, 1);
    } else if (log_number_after(text, "overall token per gpu per sec:", &number)) {
        sample->tokens_per_s = sample->gpu_tokens_per_s / number.value;
    } else if (log_number_after(text, "overall token per day:", &number)) {
        sample->tokens_per_s *= number.value / 86400.0;
        flush(log);
    } else {
        return false;
    }
    return true;
}

bool log_take_lists(struct log *log, const struct log_line *line)
{
    return take_composer(log, line) || take_olmo(log, line) || take_fms(log, line);
}
