/* SPDX-License-Identifier: MIT
 * Facts, and the keys of configurations that set them, whatever the form they are printed in. */
#include "calibrate/log.h"
#include "sim/error.h"
#include <string.h>

const char *const log_fact_names[LOG_N_FACTS] = {
#define X(id, name) [LOG_##id] = name,
    LOG_FACT_LIST(X)
#undef X
};

const char *const log_word_names[LOG_N_WORDS] = {
#define X(id, name) [LOG_##id] = name,
    LOG_WORD_LIST(X)
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
    {"globalnumgpus", LOG_GPUS},
    {"tensormodelparallelsize", LOG_TP},
    {"tensorparalleldegree", LOG_TP},
    {"pipelinemodelparallelsize", LOG_PP},
    {"pipelineparalleldegree", LOG_PP},
    {"pipeparallelsize", LOG_PP},
    {"virtualpipelinemodelparallelsize", LOG_VPP},
    {"contextparallelsize", LOG_CP},
    {"contextparalleldegree", LOG_CP},
    {"expertmodelparallelsize", LOG_EP},
    {"expertparalleldegree", LOG_EP},
    {"experttensorparallelsize", LOG_ETP},
    {"microbatchsize", LOG_MBS},
    {"trainmicrobatchsizepergpu", LOG_MBS},
    {"localbatchsize", LOG_MBS},
    {"batchsize", LOG_MBS}, /* torchtitan before 2025-05: per data-parallel rank */
    {"batchsizepergpu", LOG_MBS},
    {"microbsz", LOG_MBS},
    {"globalbatchsize", LOG_GBS},
    {"trainbatchsize", LOG_GBS},
    {"seqlength", LOG_SEQ},
    {"seqlen", LOG_SEQ},
    {"dataparallelsize", LOG_DP},
    {"modelparallelsize", LOG_TP}, /* GPT-NeoX; the flops profiler means tp * pp, see below */
    {"micronum", LOG_N_MICRO},
    {"gradientaccumulationsteps", LOG_N_MICRO},
    {"numnodes", LOG_NODES},
    {"numgpuspernode", LOG_GPUS_PER_NODE},
    {"nprocpernode", LOG_GPUS_PER_NODE},
    {"devices", LOG_GPUS_PER_NODE},
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
    {"moesharedexpertintermediatesize", LOG_SHARED_FFN},
    {"kvchannels", LOG_HEAD_DIM},
    {"lorarank", LOG_LORA_RANK},
    {"loginterval", LOG_INTERVAL},
    {"recomputenumlayers", LOG_RECOMPUTE_LAYERS},
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

static const char *dtype_of(const char *value)
{
    const char *name = value + strspn(value, "\"'");
    name += starts(name, "torch.") ? 6 : 0;
    if (starts(name, "bfloat16") || starts(name, "bf16"))
        return "bf16";
    return starts(name, "float16") || starts(name, "half") || starts(name, "fp16") ? "fp16" : NULL;
}

static void take_precision(struct log_facts *facts, const char *label, const char *value)
{
    const char *dtype = dtype_of(value);
    const bool eight = strncmp(facts->word[LOG_PRECISION], "fp8", 4) == 0;
    if (starts(label, "fp16") && truth(value) == 1)
        set_word(facts, LOG_PRECISION, "fp16");
    else if ((starts(label, "bf16") || starts(label, "bfloat16")) && truth(value) == 1)
        set_word(facts, LOG_PRECISION, "bf16");
    else if (((strcmp(label, "fp8") == 0 || strcmp(label, "fp8format") == 0) &&
              (starts(value, "hybrid") || starts(value, "e4m3"))) ||
             (strcmp(label, "enablefloat8linear") == 0 && truth(value) == 1))
        set_word(facts, LOG_PRECISION, "fp8");
    else if (strcmp(label, "fp8recipe") == 0 && eight && starts(value, "mxfp8"))
        set_word(facts, LOG_PRECISION, "mxfp8");
    else if (strstr(label, "dtype") && dtype && !*facts->word[LOG_PRECISION])
        set_word(facts, LOG_PRECISION, dtype); /* under fp8 the parameters are still 16 bits */
    else if (strcmp(label, "precision") == 0 && dtype)
        set_word(facts, LOG_PRECISION, dtype);
}

/* Megatron-DeepSpeed prints a zero_stage for runs without DeepSpeed too. */
static void take_sharding(struct log_facts *facts, const char *label, const char *value)
{
    static const char *const names[] = {"none", "zero1", "zero2", "zero3"};
    const bool engine_off = strcmp(facts->word[LOG_ENGINE], "off") == 0;
    const char *stage = value + (strncmp(value, "{'stage': ", 10) == 0 ? 10 : 0); /* GPT-NeoX */
    if (strcmp(label, "usedistributedoptimizer") == 0) {
        if (truth(value) == 1 && !*facts->word[LOG_SHARDING])
            set_word(facts, LOG_SHARDING, "zero1");
    } else if (*stage >= '0' && *stage <= '3' && !engine_off) {
        set_word(facts, LOG_SHARDING, names[*stage - '0']);
    }
}

static void take_recompute(struct log_facts *facts, const char *label, const char *value)
{
    const char *name = value + strspn(value, "\"' ");
    if (starts(label, "checkpointactivations") && truth(value) >= 0)
        set_word(facts, LOG_RECOMPUTE, truth(value) ? "full" : "none");
    else if (starts(name, "full") || starts(name, "selective"))
        set_word(facts, LOG_RECOMPUTE, *name == 'f' ? "full" : "selective");
    else if (starts(name, "None") && !*facts->word[LOG_RECOMPUTE])
        set_word(facts, LOG_RECOMPUTE, "none");
}

static void take_switch(struct log_facts *facts, enum log_word word, const char *value)
{
    if (truth(value) >= 0)
        set_word(facts, word, truth(value) ? "on" : "off");
}

/* Values that stand for a name of a plan; "True" is also a flag without a value. */
static bool take_name(struct log_facts *facts, const char *label, const char *value)
{
    static const struct {
        const char *label, *value;
        enum log_word word;
        const char *name;
    } names[] = {{"optimizer", "adam", LOG_OPTIMIZER, "adam"},
                 {"optimizer", "sgd", LOG_OPTIMIZER, "sgd"},
                 {"moetokendispatchertype", "alltoall", LOG_DISPATCHER, "alltoall"},
                 {"moetokendispatchertype", "allgather", LOG_DISPATCHER, "allgather"},
                 {"moeenabledeepep", "True", LOG_DISPATCHER, "deepep"},
                 {"cpcommtype", "p2p", LOG_CP_SCHEME, "ring"},
                 {"cpcommtype", "all_gather", LOG_CP_SCHEME, "allgather"},
                 {"cpcommtype", "a2a", LOG_CP_SCHEME, "ulysses"},
                 {"useflashattn", "True", LOG_ATTENTION, "flash"},
                 {"attentionbackend", "unfused", LOG_ATTENTION, "unfused"},
                 {"attentionbackend", "fused", LOG_ATTENTION, "flash"},
                 {"attentionbackend", "flash", LOG_ATTENTION, "flash"},
                 {"accumulateallreducegradsinfp32", "True", LOG_GRAD_DTYPE, "fp32"},
                 {"enablecudagraph", "True", LOG_CUDA_GRAPH, "on"},
                 {"untieembeddingsandoutputweights", "True", LOG_TIED, "off"},
                 {"untieembeddingsandoutputweights", "False", LOG_TIED, "on"},
                 {"recomputemethod", "block", LOG_METHOD, "block"}};
    char first[32];
    const size_t n = strcspn(value, " ,");
    memcpy(first, value, n < sizeof first ? n : 0);
    first[n < sizeof first ? n : 0] = '\0';
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(label, names[i].label) != 0)
            continue;
        known = true;
        if (strcmp(names[i].value, "True") == 0 ? is_true(value)
                                                : strstr(first, names[i].value) != NULL) {
            set_word(facts, names[i].word, names[i].name);
            return true;
        }
    }
    return known;
}

/* Traffic that is overlapped, as the list of a plan file. */
static bool take_overlap(struct log_facts *facts, const char *label, const char *value)
{
    static const char *const keys[][2] = {{"tpcommoverlap", "tp"},
                                          {"overlapgradreduce", "grad"},
                                          {"overlapparamgather", "param"},
                                          {"overlapp2pcomm", "pp"}};
    char *list = facts->word[LOG_OVERLAP];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(label, keys[i][0]) != 0)
            continue;
        if (is_true(value) && !strstr(list, keys[i][1]))
            text_append(list, sizeof facts->word[0], "%s%s", *list ? "," : "", keys[i][1]);
        return true;
    }
    return false;
}

/* Keys whose value is a switch or a name. */
static bool take_word_key(struct log_facts *facts, const char *label, const char *value)
{
    enum { PRECISION, SHARDING, RECOMPUTE, SWITCH };
    static const struct {
        const char *label;
        int kind;
        enum log_word word;
    } keys[] = {{"fp16", PRECISION, LOG_PRECISION},
                {"fp16enabled", PRECISION, LOG_PRECISION},
                {"bf16", PRECISION, LOG_PRECISION},
                {"bfloat16enabled", PRECISION, LOG_PRECISION},
                {"fp8", PRECISION, LOG_PRECISION},
                {"fp8format", PRECISION, LOG_PRECISION},
                {"fp8recipe", PRECISION, LOG_PRECISION},
                {"enablefloat8linear", PRECISION, LOG_PRECISION},
                {"dtype", PRECISION, LOG_PRECISION},
                {"paramsdtype", PRECISION, LOG_PRECISION},
                {"precision", PRECISION, LOG_PRECISION},
                {"zerostage", SHARDING, LOG_SHARDING},
                {"zerooptimizationstage", SHARDING, LOG_SHARDING},
                {"zerooptimization", SHARDING, LOG_SHARDING},
                {"usedistributedoptimizer", SHARDING, LOG_SHARDING},
                {"checkpointactivations", RECOMPUTE, LOG_RECOMPUTE},
                {"recomputegranularity", RECOMPUTE, LOG_RECOMPUTE},
                {"activationscheckpointgranularity", RECOMPUTE, LOG_RECOMPUTE},
                {"mode", RECOMPUTE, LOG_RECOMPUTE},
                {"sequenceparallel", SWITCH, LOG_SP},
                {"compile", SWITCH, LOG_COMPILE},
                {"swiglu", SWITCH, LOG_GATED},
                {"groupqueryattention", SWITCH, LOG_GQA},
                {"deepspeed", SWITCH, LOG_ENGINE}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(label, keys[i].label) != 0)
            continue;
        if (keys[i].kind == PRECISION)
            take_precision(facts, label, value);
        else if (keys[i].kind == SHARDING)
            take_sharding(facts, label, value);
        else if (keys[i].kind == RECOMPUTE)
            take_recompute(facts, label, value);
        else
            take_switch(facts, keys[i].word, value);
        return true;
    }
    return false;
}

bool log_fact_take(struct log_facts *facts, const char *key, size_t length, const char *value)
{
    char label[64];
    for (size_t i = length; i > 0; i--) /* "model.num_layers", "parallelism.tensor_..": the end */
        if (key[i - 1] == '.') {
            key += i;
            length -= i;
            break;
        }
    log_label(key, length, label, sizeof label);
    if (!*label || take_word_key(facts, label, value) || take_name(facts, label, value) ||
        take_overlap(facts, label, value))
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
