/* SPDX-License-Identifier: MIT
 * Formats of one line per step that have no '|' to part their fields by, or not only: torchtitan,
 * InternEvo, MaxText, Megatron-Bridge's timer, nanoGPT, llm.c, torchtune; and the memory lines of
 * Megatron. */
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

/* nanoGPT: "iter 10: loss 3.2012, time 123.45ms, mfu 30.10%". */
static bool take_nanogpt(struct log *log, const struct log_line *line)
{
    struct log_number iteration, time_ms;
    const char *text = strstr(line->text, "iter ");
    if (!text || !log_number(text + 5, &iteration) || strncmp(iteration.end, ": loss", 6) != 0 ||
        !log_number_after(text, ", time ", &time_ms) || strncmp(time_ms.end, "ms", 2) != 0)
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = iteration.value;
    sample.step_s = time_ms.value * 1e-3;
    log_framework_seen(log, "nanogpt", 7, 1);
    log_add(log, &sample);
    return true;
}

/* llm.c: "step   10/19560 | loss 5.2 (..) | norm 2.1 | lr 1e-4 | 345.67 ms | 45.2% MFU | 1516
 * tok/s" */
static bool take_llmc(struct log *log, const struct log_line *line)
{
    struct log_number iteration, time_ms, rate;
    const char *text = strstr(line->text, "step ");
    const char *unit = text ? strstr(text, " ms |") : NULL;
    if (!unit || !strstr(unit, " tok/s") || !log_number(text + 5, &iteration) ||
        *iteration.end != '/')
        return false;
    const char *field = unit;
    while (field > text && *field != '|')
        field--;
    if (!log_number(field + 1, &time_ms) || time_ms.end != unit)
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = iteration.value;
    sample.step_s = time_ms.value * 1e-3;
    for (field = strstr(unit, " tok/s"); *field != '|';)
        field--;
    if (log_number(field + 1, &rate))
        sample.tokens_per_s = rate.value;
    log_framework_seen(log, "llm.c", 7, 1);
    log_add(log, &sample);
    return true;
}

/* torchtune: "Step 3 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_reserved:.."
 */
static bool take_torchtune(struct log *log, const struct log_line *line)
{
    struct log_number step, rate, memory;
    if (!log_number_after(line->text, "tokens_per_second_per_gpu:", &rate) ||
        !log_number_after(line->text, "Step ", &step))
        return false;
    struct log_sample sample = log_sample_none(line);
    sample.iteration = step.value;
    set_rate(&sample, &rate);
    log_framework_seen(log, "torchtune", 7, 1);
    log_add(log, &sample);
    if (log_number_after(line->text, "peak_memory_reserved:", &memory))
        log_memory_max(&log_memory_now(log)->reserved_bytes, memory.value * GIB);
    return true;
}

bool log_take_other(struct log *log, const struct log_line *line)
{
    return take_torchtitan(log, line) || take_internevo(log, line) || take_maxtext(log, line) ||
           take_bridge(log, line) || take_nanogpt(log, line) || take_llmc(log, line) ||
           take_torchtune(log, line);
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
