/* SPDX-License-Identifier: MIT
 * Formats of one line or one list per step that are not parted by '|': torchtitan, InternEvo,
 * MaxText, Megatron-Bridge's timer, Composer, OLMo-core; and the memory lines of Megatron. */
#include "calibrate/log.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0

static void set_rate(struct log_sample *sample, const struct log_number *rate)
{
    sample->gpu_tokens_per_s = rate->value;
    sample->rate_error = rate->value > 0.0 ? rate->half / rate->value : (double)NAN;
}

/* "step: 10  loss: 10.2  memory: 44.84GiB(47.19%)  tps: 5,615  tflops: 325.20  mfu: 32.88%";
 * "wps" before 2025, words being tokens. Memory is the peak reserved (metrics.py). */
static bool take_torchtitan(struct log *log, const struct log_line *line)
{
    struct log_number step, rate, number;
    const char *text = strstr(line->text, "step:");
    if (!text || !log_number(text + 5, &step) ||
        !(log_number_after(text, " tps:", &rate) || log_number_after(text, " wps:", &rate)))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = step.value;
    set_rate(&sample, &rate);
    if (log_number_after(text, " tflops:", &number))
        sample.gpu_flop_per_s = number.value * 1e12;
    log_framework_seen(log, "torchtitan", 7, 1);
    log_add(log, &sample);
    if (log_number_after(text, "memory:", &number) && strncmp(number.end, "GiB", 3) == 0)
        log_memory_max(&log_memory_now(log)->reserved_bytes, number.value * GIB);
    return true;
}

/* "step=3 ... tgs (tokens/gpu/second)=4176.61 ... num_consumed_tokens=524288". Of the many tgs the
 * first is of this step alone. */
static bool take_internevo(struct log *log, const struct log_line *line)
{
    struct log_number step, rate, tokens, flop;
    const char *text = line->text;
    if (!log_number_after(text, "tgs (tokens/gpu/second)=", &rate) ||
        !log_number_after(text, "step=", &step))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = step.value;
    set_rate(&sample, &rate);
    if (log_number_after(text, "num_consumed_tokens=", &tokens))
        sample.tokens = tokens.value / (step.value + 1.0); /* the count starts at 0 */
    if (log_number_after(text, "tflops=", &flop))
        sample.gpu_flop_per_s = flop.value * 1e12;
    log_framework_seen(log, "internevo", 7, 1);
    log_add(log, &sample);
    return true;
}

/* "completed step: 4, seconds: 5.669, TFLOP/s/device: 134.9, Tokens/s/device: 8670.2,
 * total_weights: 196608". Dispatch is asynchronous: the first three lines time the queue. */
static bool take_maxtext(struct log *log, const struct log_line *line)
{
    struct log_number step, seconds, number;
    const char *text = strstr(line->text, "completed step: ");
    if (!text || !log_number(text + 16, &step) || !log_number_after(text, "seconds: ", &seconds))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = step.value;
    sample.step_s = seconds.value;
    if (log_number_after(text, "TFLOP/s/device: ", &number))
        sample.gpu_flop_per_s = number.value * 1e12;
    if (log_number_after(text, "Tokens/s/device: ", &number))
        set_rate(&sample, &number);
    if (log_number_after(text, "total_weights: ", &number))
        sample.tokens = number.value;
    log_framework_seen(log, "maxtext", 7, 3);
    log_add(log, &sample);
    return true;
}

/* "Step Time : 2.26s GPU utilization: 1156.2MODEL_TFLOP/s/GPU": no iteration. */
static bool take_bridge(struct log *log, const struct log_line *line)
{
    struct log_number seconds, number;
    if (!log_number_after(line->text, "Step Time :", &seconds) || *seconds.end != 's')
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.step_s = seconds.value;
    if (log_number_after(line->text, "GPU utilization:", &number))
        sample.gpu_flop_per_s = number.value * 1e12;
    log_framework_seen(log, "megatron-bridge", 7, 1);
    log_add_spare(log, &sample);
    return true;
}

static void flush_partial(struct log *log)
{
    if (log->has_partial)
        log_add(log, &log->partial);
    log->has_partial = false;
}

/* Composer: one "Train name: value" a line behind "[epoch=1][batch=5/5]:"; counters from 0. */
static bool take_composer(struct log *log, const struct log_line *line)
{
    struct log_number number;
    struct log_sample *sample = &log->partial;
    if (strstr(line->text, "[batch=") && strstr(line->text, "[epoch=")) {
        *sample = log_sample_none(line);
        return log_number_after(line->text, "[batch=", &number);
    }
    const char *text = strstr(line->text, "Train t");
    if (!text)
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
    } else if (log_number_after(text, "Train throughput/device/tokens_per_sec:", &number)) {
        set_rate(sample, &number);
        log_framework_seen(log, "llm-foundry", 7, 1);
        log->has_partial = true;
        flush_partial(log);
    } else {
        return false;
    }
    return true;
}

/* OLMo-core: one "name=value" a line, by name, so BPS (batches/s) comes before TPS. The forms with
 * "(actual avg)" include the start. */
static bool take_olmo(struct log *log, const struct log_line *line)
{
    struct log_number number;
    struct log_sample *sample = &log->partial;
    const char *text = line->text;
    if (log_number_after(text, "gpu_memory/GPU reserved mem (GiB)=", &number)) {
        log_memory_max(&log_memory_now(log)->reserved_bytes, number.value * GIB);
    } else if (strstr(text, "[step=") && log_number_after(text, "[step=", &number)) {
        *sample = log_sample_none(line);
        sample->iteration = number.value;
        log->has_partial = true;
    } else if (log_number_after(text, "throughput/device/BPS=", &number) && number.value > 0.0) {
        if (!log->has_partial)
            *sample = log_sample_none(line);
        sample->step_s = 1.0 / number.value;
        sample->step_origin = LOG_STEP_RATE;
        log->has_partial = true;
    } else if (log_number_after(text, "throughput/device/TPS=", &number)) {
        if (!log->has_partial)
            *sample = log_sample_none(line);
        set_rate(sample, &number);
        log_framework_seen(log, "olmo-core", 7, 1);
        log->has_partial = true;
        flush_partial(log);
    } else {
        return false;
    }
    return true;
}

bool log_take_other(struct log *log, const struct log_line *line)
{
    return take_torchtitan(log, line) || take_internevo(log, line) || take_maxtext(log, line) ||
           take_bridge(log, line) || take_composer(log, line) || take_olmo(log, line);
}

/* "[Rank 20] (after 20 iterations) memory (MB) | allocated: 15426.4 | max allocated: 18045.7 |
 * reserved: 22290.0 | max reserved: 22290.0": MB is MiB (report_memory of Megatron-LM). */
bool log_take_memory(struct log *log, const struct log_line *line)
{
    struct log_number rank, number;
    const char *text = strstr(line->text, "memory (MB)");
    if (!text)
        return false;
    struct log_memory *memory = log_memory_now(log);
    memory->n_lines++;
    if (log_number_after(text, "max allocated: ", &number))
        log_memory_max(&memory->allocated_bytes, number.value * MIB);
    if (log_number_after(text, "max reserved: ", &number)) {
        if (!(number.value * MIB <= memory->reserved_bytes) &&
            log_number_after(line->text, "[Rank ", &rank))
            memory->rank = rank.value;
        log_memory_max(&memory->reserved_bytes, number.value * MIB);
    }
    return true;
}
