/* SPDX-License-Identifier: MIT
 * What a log says of the plan: argument dumps ("key ..... value"), command lines ("--key value"),
 * configuration excerpts ("key = value", "key: value") share one table of keys; sentences that
 * programs print at the start are a second one. */
#include "calibrate/log.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

const char *const log_fact_names[LOG_N_FACTS] = {
#define X(id, name) [LOG_##id] = name,
    LOG_FACT_LIST(X)
#undef X
};

void log_fact_set(struct log_facts *facts, enum log_fact fact, double value, enum log_origin origin)
{
    facts->value[fact] = value;
    facts->origin[fact] = (uint8_t)origin;
}

bool log_fact_known(const struct log_facts *facts, enum log_fact fact)
{
    return facts->origin[fact] != LOG_ABSENT;
}

void log_facts_merge(struct log_facts *to, const struct log_facts *from)
{
    for (int i = 0; i < LOG_N_FACTS; i++)
        if (!log_fact_known(to, (enum log_fact)i) && log_fact_known(from, (enum log_fact)i))
            log_fact_set(to, (enum log_fact)i, from->value[i], from->origin[i]);
    for (int i = 0; i < LOG_N_WORDS; i++)
        if (!*to->word[i])
            memcpy(to->word[i], from->word[i], sizeof to->word[i]);
}

/* ---- keys --------------------------------------------------------------------------------- */

/* Keys as log_label makes them; sources: arguments.py of Megatron-LM and Megatron-DeepSpeed,
 * neox_args of GPT-NeoX, config.py of DeepSpeed, JobConfig of torchtitan, the demos of InternEvo,
 * Composer's run header, the DeepSpeed flops profiler. */
static const struct {
    const char *label;
    enum log_fact fact;
} number_keys[] = {
    {"worldsize", LOG_GPUS},
    {"tensormodelparallelsize", LOG_TP},
    {"tensorparalleldegree", LOG_TP},
    {"parallelismtensorparalleldegree", LOG_TP},
    {"pipelinemodelparallelsize", LOG_PP},
    {"pipelineparalleldegree", LOG_PP},
    {"parallelismpipelineparalleldegree", LOG_PP},
    {"pipeparallelsize", LOG_PP},
    {"virtualpipelinemodelparallelsize", LOG_VPP},
    {"contextparallelsize", LOG_CP},
    {"contextparalleldegree", LOG_CP},
    {"parallelismcontextparalleldegree", LOG_CP},
    {"expertmodelparallelsize", LOG_EP},
    {"expertparalleldegree", LOG_EP},
    {"parallelismexpertparalleldegree", LOG_EP},
    {"experttensorparallelsize", LOG_ETP},
    {"microbatchsize", LOG_MBS},
    {"trainmicrobatchsizepergpu", LOG_MBS},
    {"localbatchsize", LOG_MBS},
    {"traininglocalbatchsize", LOG_MBS},
    {"batchsize", LOG_MBS}, /* torchtitan before 2025-05: per data-parallel rank */
    {"batchsizepergpu", LOG_MBS},
    {"microbsz", LOG_MBS},
    {"globalbatchsize", LOG_GBS},
    {"trainingglobalbatchsize", LOG_GBS},
    {"trainbatchsize", LOG_GBS},
    {"seqlength", LOG_SEQ},
    {"seqlen", LOG_SEQ},
    {"trainingseqlen", LOG_SEQ},
    {"dataparallelsize", LOG_DP},
    {"modelparallelsize", LOG_MP},
    {"micronum", LOG_N_MICRO},
    {"numnodes", LOG_NODES},
    {"numgpuspernode", LOG_GPUS_PER_NODE},
    {"nprocpernode", LOG_GPUS_PER_NODE},
    {"numlayers", LOG_LAYERS},
    {"numlayer", LOG_LAYERS},
    {"hiddensize", LOG_HIDDEN},
    {"numattentionheads", LOG_HEADS},
    {"numquerygroups", LOG_KV_HEADS},
    {"ffnhiddensize", LOG_FFN},
    {"paddedvocabsize", LOG_VOCAB},
    {"numexperts", LOG_EXPERTS},
    {"moeroutertopk", LOG_TOP_K},
    {"moeffnhiddensize", LOG_EXPERT_FFN},
    {"lorarank", LOG_LORA_RANK},
    {"loginterval", LOG_INTERVAL},
};

static void set_word(struct log_facts *facts, enum log_word word, const char *text)
{
    size_t n = strlen(text);
    n = n < sizeof facts->word[0] ? n : sizeof facts->word[0] - 1;
    memcpy(facts->word[word], text, n);
    facts->word[word][n] = '\0';
}

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_true(const char *value)
{
    return starts(value, "True") || starts(value, "true") || *value == '\0' || *value == '-';
}

/* 1: on, 0: off, -1: neither ("None"). A flag of a command line has no value and is on. */
static int truth(const char *value)
{
    if (is_true(value))
        return 1;
    return starts(value, "False") || starts(value, "false") ? 0 : -1;
}

/* Keys whose value is a switch or a name. */
static bool take_word_key(struct log_facts *facts, const char *label, const char *value)
{
    static const char *const zero_names[] = {"none", "zero1", "zero2", "zero3"};
    const int on = truth(value);
    if (strcmp(label, "fp16") == 0 || strcmp(label, "fp16enabled") == 0) {
        if (on == 1)
            set_word(facts, LOG_PRECISION, "fp16");
    } else if (strcmp(label, "bf16") == 0 || strcmp(label, "bfloat16enabled") == 0) {
        if (on == 1)
            set_word(facts, LOG_PRECISION, "bf16");
    } else if (strcmp(label, "dtype") == 0 || strcmp(label, "paramsdtype") == 0) {
        const char *name = value + strspn(value, "\"'");
        name += starts(name, "torch.") ? 6 : 0;
        if (starts(name, "bfloat16"))
            set_word(facts, LOG_PRECISION, "bf16");
        else if (starts(name, "float16") || starts(name, "half"))
            set_word(facts, LOG_PRECISION, "fp16");
    } else if (strcmp(label, "enablefloat8linear") == 0) {
        if (on == 1)
            set_word(facts, LOG_PRECISION, "fp8");
    } else if (strcmp(label, "zerostage") == 0 || strcmp(label, "zerooptimizationstage") == 0) {
        if (*value >= '0' && *value <= '3')
            set_word(facts, LOG_SHARDING, zero_names[*value - '0']);
    } else if (strcmp(label, "usedistributedoptimizer") == 0) {
        if (on == 1 && !*facts->word[LOG_SHARDING])
            set_word(facts, LOG_SHARDING, "zero1");
    } else if (strcmp(label, "checkpointactivations") == 0) {
        if (on >= 0)
            set_word(facts, LOG_RECOMPUTE, on ? "full" : "none");
    } else if (strcmp(label, "recomputegranularity") == 0 ||
               strcmp(label, "activationcheckpointmode") == 0 || strcmp(label, "mode") == 0) {
        const char *name = value + strspn(value, "\"' ");
        if (starts(name, "full") || starts(name, "selective"))
            set_word(facts, LOG_RECOMPUTE, *name == 'f' ? "full" : "selective");
        else if (starts(name, "None") && !*facts->word[LOG_RECOMPUTE])
            set_word(facts, LOG_RECOMPUTE, "none");
    } else if (strcmp(label, "sequenceparallel") == 0) {
        if (on >= 0)
            set_word(facts, LOG_SP, on ? "on" : "off");
    } else if (strcmp(label, "compile") == 0 || strcmp(label, "trainingcompile") == 0) {
        if (on >= 0)
            set_word(facts, LOG_COMPILE, on ? "on" : "off");
    } else if (strcmp(label, "swiglu") == 0) {
        if (on >= 0)
            set_word(facts, LOG_GATED, on ? "on" : "off");
    } else {
        return false;
    }
    return true;
}

static bool take_key(struct log_facts *facts, const char *key, size_t length, const char *value)
{
    char label[64];
    log_label(key, length, label, sizeof label);
    if (!*label || take_word_key(facts, label, value))
        return *label != '\0';
    for (size_t i = 0; i < sizeof number_keys / sizeof number_keys[0]; i++) {
        if (strcmp(label, number_keys[i].label) != 0)
            continue;
        struct log_number number;
        if (log_number(value, &number) && number.value >= 1.0 && number.value < 1e9)
            log_fact_set(facts, number_keys[i].fact, number.value, LOG_LOGGED);
        else if (strcmp(label, "virtualpipelinemodelparallelsize") == 0 && starts(value, "None"))
            log_fact_set(facts, LOG_VPP, 1.0, LOG_LOGGED);
        return true;
    }
    return false;
}

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
    if (end - key == 9 && starts(key, "deepspeed") && is_true(value))
        log_framework_seen(log, "megatron-deepspeed", 6, 1);
    return key < end && take_key(log_facts_now(log), key, (size_t)(end - key), value);
}

/* " --micro-batch-size 4 --fp16 --model.flavor=8B": every flag of the line. */
static bool take_flags(struct log *log, const char *text)
{
    bool any = false;
    for (const char *at = strstr(text, "--"); at; at = strstr(at, "--")) {
        const bool starts_word = at == text || at[-1] == ' ';
        at += 2;
        const char *end = at;
        while (is_key_char(*end) || *end == '.')
            end++;
        if (!starts_word || end == at || *at == '-')
            continue;
        const char *value = end + (*end == '=');
        value += strspn(value, " ");
        any |= take_key(log_facts_now(log), at, (size_t)(end - at), value);
        at = end;
    }
    return any;
}

/* "key = value", "key=value,", "key: value" that is all of a line. */
static bool take_assignment(struct log *log, const char *text)
{
    const char *key = text + (starts(text, "+ ") ? 2 : 0); /* sh -x */
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
    return take_key(log_facts_now(log), key, length, value);
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
        set_word(log_facts_now(log), LOG_PRECISION, "fp16");
    if (strstr(text, "Using precision Precision.AMP_BF16"))
        set_word(log_facts_now(log), LOG_PRECISION, "bf16");
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
