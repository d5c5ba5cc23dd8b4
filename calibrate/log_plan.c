/* SPDX-License-Identifier: MIT
 * What a log says of the plan: argument dumps ("key ..... value"), command lines ("--key value"),
 * configuration excerpts ("key = value", "key: value") share one table of keys; sentences that
 * programs print at the start are a second one. */
#include "calibrate/log.h"
#include <ctype.h>
#include <string.h>

/* ---- forms -------------------------------------------------------------------------------- */

static bool is_key_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* "  hidden_size ............ 4096", "name .... value....updated": dots with a blank before. */
static bool take_dotted(struct log *log, const char *text)
{
    const char *dots = strstr(text, " ..");
    const char *value = NULL;
    const char *end = dots;
    if (dots) {
        value = dots + 1 + strspn(dots + 1, ".");
    } else if ((end = strstr(text, "per_gpu  "))) { /* DeepSpeed: no room for dots */
        end += 7;
        value = end;
    }
    if (!value || *value != ' ')
        return false;
    const char *key = end;
    while (key > text && is_key_char(key[-1]))
        key--;
    value += strspn(value, " ");
    if (strncmp(key, "deepspeed ", 10) == 0 && strncmp(value, "True", 4) == 0)
        log_framework_seen(log, "megatron-deepspeed", 6, 1);
    return key < end && log_fact_take(log_facts_now(log), key, (size_t)(end - key), value);
}

/* Words of a command line: "--micro-batch-size 4", "--fp16", "--model.flavor=8B", and overrides
 * "model.num_layers=40". */
static bool take_flags(struct log *log, const char *text)
{
    bool any = false;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        const size_t key = strcspn(word, " =");
        const bool flag = strncmp(word, "--", 2) == 0 && isalpha((unsigned char)word[2]);
        const bool override = word[key] == '=' && memchr(word, '.', key);
        const char *value = word + key + (word[key] == '=');
        value += strspn(value, " ");
        if (flag || override)
            any |= log_fact_take(log_facts_now(log), word, key, value);
        word += length;
    }
    return any;
}

/* "key = value", "key=value,", "key: value" that is all of a line. */
static bool take_assignment(struct log *log, const char *text)
{
    const char *key = text + (strncmp(text, "+ ", 2) == 0 ? 2 : 0); /* sh -x */
    size_t length = 0;
    while (is_key_char(key[length]) || (key[length] == ' ' && is_key_char(key[length + 1])))
        length++;
    const char *value = key + length + strspn(key + length, " ");
    if (length == 0 || length > 48 || (*value != '=' && *value != ':'))
        return false;
    value++;
    value += strspn(value, " ");
    if (strcmp(value, "") == 0)
        return false;
    if (strncmp(key, "model parallel size", 19) == 0) { /* the flops profiler: tp * pp */
        struct log_number number;
        if (log_number(value, &number))
            log_fact_set(log_facts_now(log), LOG_MP, number.value, LOG_LOGGED);
        return true;
    }
    return log_fact_take(log_facts_now(log), key, length, value);
}

/* ---- sentences ---------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum log_fact fact;
} sentences[] = {
    {"initialized tensor model parallel with size ", LOG_TP},
    {"initialized pipeline model parallel with size ", LOG_PP},
    {" NGPU=", LOG_GPUS_PER_NODE},
    {"setting number of micro-batches to constant ", LOG_N_MICRO},
    {"CONFIG: micro_batches=", LOG_N_MICRO},
    {"using world size: ", LOG_GPUS},
    {"data-parallel-size: ", LOG_DP},
    {"tensor-model-parallel size: ", LOG_TP},
    {"pipeline-model-parallel size: ", LOG_PP},
    {"context-parallel size: ", LOG_CP},
    {"Padded vocab_size: ", LOG_VOCAB},
    {"(new size: ", LOG_VOCAB},
    {"local batch size ", LOG_MBS},
    {"global batch size ", LOG_GBS},
    {"sequence length ", LOG_SEQ},
    {"data parallel size: ", LOG_DP},
    {"pipeline parallel size: ", LOG_PP},
    {"tensor parallel size: ", LOG_TP},
    {"Instantaneous batch size per device = ", LOG_MBS},
    {"Total train batch size (w. parallel, distributed & accumulation) = ", LOG_GBS},
    {"Gradient Accumulation steps = ", LOG_N_MICRO},
};

/* "tensor model parallel group: [0, 1]": the members are counted. */
static bool take_groups(struct log *log, const char *text)
{
    static const struct {
        const char *text;
        enum log_fact fact;
    } groups[] = {{"has data parallel group", LOG_DP},
                  {"has context parallel group", LOG_CP},
                  {"has tensor model parallel group", LOG_TP},
                  {"has pipeline model parallel group", LOG_PP}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const char *at = strstr(text, groups[i].text);
        const char *open = at ? strchr(at, '[') : NULL;
        if (!open || !strchr(open, ']') || !isdigit((unsigned char)open[1]))
            continue;
        double n = 1.0;
        for (const char *c = open; *c != ']'; c++)
            n += *c == ',';
        log_fact_set(log_facts_now(log), groups[i].fact, n, LOG_LOGGED);
        return true;
    }
    return false;
}

static bool take_sentences(struct log *log, const char *text)
{
    bool any = false;
    struct log_number number;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        if (!log_number_after(text, sentences[i].text, &number) || number.value < 1.0)
            continue;
        log_fact_set(log_facts_now(log), sentences[i].fact, number.value, LOG_LOGGED);
        any = true;
    }
    if (strstr(text, "Using precision Precision.AMP_FP16"))
        log_fact_take(log_facts_now(log), "precision", 9, "fp16");
    if (strstr(text, "Using precision Precision.AMP_BF16"))
        log_fact_take(log_facts_now(log), "precision", 9, "bf16");
    return any;
}

/* Lines between samples that make the next one slow, and lines that start a launch. */
static void take_marks(struct log *log, const char *text)
{
    static const char *const events[] = {
        "saving checkpoint", "Saving checkpoint", "aved checkpoint",   "aved a checkpoint",
        "umping profiler",   "profiler traces",   "Capture range",     "validation loss at",
        "alidation epoch",   "evaluat",           "Running Evaluation"};
    static const char *const launches[] = {"- arguments -", "restart_count=", "Training starts at",
                                           "Running training *"};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        log->event_seen |= strstr(text, events[i]) != NULL;
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
        log->launch_seen |= strstr(text, launches[i]) != NULL;
}

bool log_take_plan(struct log *log, const struct log_line *line)
{
    take_marks(log, line->text);
    if (strstr(line->text, "iteration ") && strstr(line->text, " | "))
        return false;
    if (take_dotted(log, line->text) || take_groups(log, line->text))
        return true;
    const bool said = take_sentences(log, line->text);
    return take_flags(log, line->text) || said || take_assignment(log, line->text);
}
