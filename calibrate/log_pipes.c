/* SPDX-License-Identifier: MIT
 * Records of fields parted by '|': Megatron-LM and its children (Megatron-DeepSpeed, GPT-NeoX,
 * Primus, Bridge), NeMo 2, nanotron, NeMo Automodel. They differ in labels and separators only:
 *
 *   iteration 2/ 100 | consumed samples: 256 | elapsed time per iteration (ms): 5630.1 | ...
 *   Training epoch 0, iteration 1/19 | global_step: 1 | train_step_timing in s: 7.667
 *   iteration: 3 / 9 | time_per_iteration_ms: 8.79K | tokens_per_sec_per_gpu: 699
 *   step 9 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541
 */
#include "calibrate/log.h"
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define GIB        1073741824.0
#define TO(member) offsetof(struct log_sample, member)

/* Labels as log_label makes them. */
static const struct {
    const char *label;
    size_t offset;
    double scale;
} fields[] = {
    {"elapsedtimeperiterationms", TO(step_s), 1e-3},
    {"timeperiterationms", TO(step_s), 1e-3},
    {"trainsteptimingins", TO(step_s), 1.0},
    {"globalbatchsize", TO(gbs), 1.0},
    {"globalstep", TO(iteration), 1.0},
    {"tokenspersecpergpu", TO(gpu_tokens_per_s), 1.0},
    {"tokenspergputokenssgpu", TO(gpu_tokens_per_s), 1.0},
    {"tokenspergpupersecondtgs", TO(gpu_tokens_per_s), 1.0},
    {"tokenssgpuinstharmonicmean", TO(gpu_tokens_per_s), 1.0},
    {"tokenssgpu", TO(gpu_tokens_per_s), 1.0},
    {"tokensgpus", TO(gpu_tokens_per_s), 1.0},
    {"tokenspersec", TO(tokens_per_s), 1.0},
    {"throughputpergputflopsgpu", TO(gpu_flop_per_s), 1e12},
    {"computepergputflopsgpu", TO(gpu_flop_per_s), 1e12},
    {"tflopsgpu", TO(gpu_flop_per_s), 1e12},
    {"tflops", TO(gpu_flop_per_s), 1e12},
    {"lmtflops", TO(gpu_flop_per_s), 1e12},
    {"tflopspergpu", TO(gpu_flop_per_s), 1e12},
    {"modeltflopspergpu", TO(gpu_flop_per_s), 1e12},
    {"approxflopspergpu", TO(gpu_flop_per_s), 1e12},
    {"samplespersecond", TO(samples_per_s), 1.0},
    {"samplessec", TO(samples_per_s), 1.0},
    {"numberofskippediterations", TO(skipped), 1.0},
    {"numlabeltokens", TO(tokens), 1.0},
};

struct record {
    struct log_sample sample;
    double consumed_samples, consumed_tokens, seq;
};

/* Where the value of "label: value", "label=value" or "label value" starts; NULL: no value. */
static const char *value_of(const char *field, size_t length, size_t *label_length)
{
    for (size_t i = length; i-- > 0;)
        if (field[i] == ':' || field[i] == '=') {
            *label_length = i;
            return field + i + 1;
        }
    for (size_t i = 0; i + 1 < length; i++)
        if (field[i] == ' ' && isdigit((unsigned char)field[i + 1])) {
            *label_length = i;
            return field + i;
        }
    return NULL;
}

/* Primus prints GiB as "GB"; Bridge's gigabytes are 1e9 bytes. */
static void take_memory_field(struct log *log, const char *label, const struct log_number *number)
{
    struct log_memory *memory = log_memory_now(log);
    if (strncmp(label, "hipmemusage", 11) == 0)
        log_memory_max(&memory->device_bytes, number->value * GIB);
    else if (strcmp(label, "mem") == 0 && strncmp(number->end, " GiB", 4) == 0)
        log_memory_max(&memory->other_bytes, number->value * GIB);
    else if (strcmp(label, "memmaxallocatedgigabytes") == 0)
        log_memory_max(&memory->allocated_bytes, number->value * 1e9);
}

static void set_field(struct record *record, const char *label, const struct log_number *number)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(label, fields[i].label) == 0) {
            double *slot = (double *)((char *)&record->sample + fields[i].offset);
            *slot = number->value * fields[i].scale;
            if (fields[i].offset == TO(gpu_tokens_per_s) && number->value > 0.0)
                record->sample.rate_error = number->half / number->value;
        }
    if (strcmp(label, "consumedsamples") == 0)
        record->consumed_samples = number->value;
    else if (strcmp(label, "consumedtokens") == 0)
        record->consumed_tokens = number->value;
    else if (strcmp(label, "actualseqlen") == 0)
        record->seq = number->value;
}

/* Automodel: "tps 11278.56(1409.82/gpu)". */
static bool take_tps(struct record *record, const char *label, const struct log_number *total)
{
    struct log_number each;
    if (strncmp(label, "tps", 3) != 0 || *total->end != '(' || !log_number(total->end + 1, &each))
        return false;
    record->sample.tokens_per_s = total->value;
    record->sample.gpu_tokens_per_s = each.value;
    record->sample.rate_error = each.value > 0.0 ? each.half / each.value : (double)NAN;
    return true;
}

static void take_field(struct log *log, struct record *record, const char *field, size_t length)
{
    size_t label_length = 0;
    const char *value = value_of(field, length, &label_length);
    struct log_number number;
    char label[64];
    if (!value)
        return;
    log_label(field, label_length, label, sizeof label);
    if (!log_number(value, &number) || number.end > field + length)
        return;
    take_memory_field(log, label, &number);
    if (!take_tps(record, label, &number))
        set_field(record, label, &number);
}

/* Start of the record and its iteration: "iteration 2/ 100", "iteration= 1/", "step 9 |". */
static const char *record_start(const char *text, struct log_number *iteration)
{
    for (const char *at = strstr(text, "iteration"); at; at = strstr(at + 1, "iteration")) {
        const char *number = at + 9 + strspn(at + 9, " :=");
        if (log_number(number, iteration) && iteration->end[strspn(iteration->end, " ")] == '/')
            return at;
    }
    const char *at = strstr(text, "| step ");
    return at && log_number(at + 7, iteration) && strncmp(iteration->end, " |", 2) == 0 ? at + 2
                                                                                        : NULL;
}

static void name_framework(struct log *log, const char *text)
{
    static const struct {
        const char *mark, *name;
        uint32_t rank;
    } marks[] = {{"hip mem usage", "primus", 9},
                 {"TFLOP/s/GPU: ", "primus", 8},
                 {"num_label_tokens", "nemo-automodel", 9},
                 {"train_step_timing", "nemo", 9},
                 {"tokens_per_sec_per_gpu:", "nanotron", 8},
                 {"samples/sec:", "gpt-neox", 9},
                 {"TFLOPs: ", "megatron-deepspeed", 6},
                 {"-TFLOPs=", "megatron-deepspeed", 6},
                 {"throughput per GPU (TFLOP/s/GPU)", "megatron-core", 5},
                 {"elapsed", "megatron", 3}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strstr(text, marks[i].mark)) {
            log_framework_seen(log, marks[i].name, marks[i].rank, 1);
            return;
        }
}

/* Tokens consumed over samples consumed is the sequence length, while it never changed. */
static void add_facts(struct log *log, const struct record *record)
{
    if (log->n_runs == 0)
        return;
    struct log_facts *facts = &log->runs[log->n_runs - 1].facts;
    const double seq = record->consumed_tokens / record->consumed_samples;
    if (record->seq >= 1.0)
        log_fact_set(facts, LOG_SEQ, record->seq, LOG_LOGGED);
    else if (seq >= 1.0 && seq == floor(seq) && !log_fact_known(facts, LOG_SEQ))
        log_fact_set(facts, LOG_SEQ, seq, LOG_DERIVED);
}

/* nanotron of late 2025 prints the batch in tokens: it equals rate times step. */
static void batch_in_tokens(struct log_sample *sample)
{
    const double tokens = sample->tokens_per_s * sample->step_s;
    if (fabs(sample->gbs / tokens - 1.0) < 0.03) {
        sample->tokens = sample->gbs;
        sample->gbs = NAN;
    }
}

bool log_take_pipes(struct log *log, const struct log_line *line)
{
    struct log_number iteration;
    if (!strchr(line->text, '|'))
        return false;
    const char *start = record_start(line->text, &iteration);
    if (!start)
        return false;
    struct record record = {.sample = log_sample_none(line),
                            .consumed_samples = NAN,
                            .consumed_tokens = NAN,
                            .seq = NAN};
    record.sample.iteration = iteration.value;
    /* GPT-NeoX has fields in front of the iteration. */
    const char *field = strstr(line->text, "samples/sec:");
    if (!field || field > start)
        field = iteration.end;
    while (*field) {
        const size_t length = strcspn(field, "|");
        take_field(log, &record, field, length);
        field += length + (field[length] == '|');
    }
    struct log_sample *sample = &record.sample;
    if (isnan(sample->step_s) && isnan(sample->gpu_tokens_per_s))
        return false;
    batch_in_tokens(sample);
    if (isnan(sample->step_s)) {
        sample->step_s = sample->tokens / sample->tokens_per_s;
        sample->step_origin = LOG_STEP_RATE;
    }
    name_framework(log, line->text);
    if (log_number_after(line->text, "rank-", &iteration) && *iteration.end == '/' &&
        log_number(iteration.end + 1, &iteration)) /* Primus: "[rank-31/32]" */
        log_fact_set(log_facts_now(log), LOG_GPUS, iteration.value, LOG_LOGGED);
    log_add(log, sample);
    add_facts(log, &record);
    return true;
}
