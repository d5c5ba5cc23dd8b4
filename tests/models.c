/* SPDX-License-Identifier: MIT
 * The built-in models: all load, all name their source, and count what is known of them. */
#include "include/trainyard_tools.h"
#include "models/spec/builtin.h"
#include "tests/tap.h"

/* Elements of the tensors that transformers 5.24 builds from the same config, counted by us on its
 * meta device; tied tables once. */
static const struct {
    const char *name;
    double total;
} counted[] = {
    {"bloom-176b", 176247271424.0},     {"codellama-34b", 33743970304.0},
    {"deepseek-v2", 235741434880.0},    {"deepseek-v2-lite", 15706484224.0},
    {"deepseek-v3", 671026404352.0},    {"falcon-40b", 41303293952.0},
    {"gemma2-9b", 9241705984.0},        {"gemma3-27b", 27009346304.0},
    {"glm-4.5", 352797814784.0},        {"gpt-1t", 1008038758400.0},
    {"gpt-22b", 22074273792.0},         {"gpt-530b", 529600819200.0},
    {"gpt-neox-20b", 20554567680.0},    {"gpt-oss-120b", 116829156672.0},
    {"gpt-oss-20b", 20914757184.0},     {"gpt2-1.5b", 1557611200.0},
    {"gpt2-124m", 124439808.0},         {"gpt3-1.3b", 1317654528.0},
    {"gpt3-125m", 125950464.0},         {"gpt3-13b", 12858214400.0},
    {"gpt3-175b", 174615846912.0},      {"gpt3-2.7b", 2653967360.0},
    {"gpt3-350m", 356837376.0},         {"gpt3-6.7b", 6662266880.0},
    {"gpt3-760m", 761748480.0},         {"llama2-13b", 13015864320.0},
    {"llama2-70b", 68976648192.0},      {"llama2-7b", 6738415616.0},
    {"llama3-405b", 405853388800.0},    {"llama3-70b", 70553706496.0},
    {"llama3-8b", 8030261248.0},        {"llama4-maverick", 400711848960.0},
    {"mistral-7b", 7241732096.0},       {"mixtral-8x22b", 140620634112.0},
    {"mixtral-8x7b", 46702792704.0},    {"nemotron4-15b", 15628775424.0},
    {"nemotron4-340b", 341029195776.0}, {"olmoe-1b-7b", 6919161856.0},
    {"opt-13b", 12853473280.0},         {"phi-2", 2779683840.0},
    {"qwen2.5-72b", 72706203648.0},     {"qwen2.5-7b", 7615616512.0},
    {"qwen3-0.6b", 596049920.0},        {"qwen3-235b-a22b", 235093634560.0},
    {"qwen3-30b-a3b", 30532122624.0},   {"qwen3-32b", 32762123264.0},
    {"qwen3-8b", 8190735360.0},
};

/* Parameters of the MPT family as its own benchmark prints them, billions (llm-foundry README). */
static const struct {
    const char *name;
    double total_b;
} printed[] = {
    {"mpt-125m", 0.1253}, {"mpt-350m", 0.3560}, {"mpt-760m", 0.7605},
    {"mpt-1b", 1.3160},   {"mpt-3b", 2.6518},   {"mpt-7b", 6.6589},
    {"mpt-13b", 12.8540}, {"mpt-30b", 29.9752}, {"mpt-70b", 64.8624},
};

#define N_OF(array) (sizeof(array) / sizeof *(array))

static bool load(const char *name, struct ty_model *model, struct ty_params *params)
{
    struct ty_error error;
    if (ty_model_load(name, model, &error) != TY_OK) {
        ok(false, "%s: %s: %s", name, error.where, error.text);
        return false;
    }
    ty_model_params(model, params);
    return true;
}

static void test_all(void)
{
    size_t n = 0, sourced = 0, named = 0;
    for (const char *name; (name = builtin_name("models", n)) != NULL; n++) {
        struct ty_model model;
        struct ty_params params;
        if (!load(name, &model, &params))
            continue;
        sourced += model.source[0] != '\0';
        named += strcmp(model.name, name) == 0;
    }
    ok(n >= 28, "at least 28 built-in models (%zu)", n);
    ok(sourced == n, "each names its source");
    ok(named == n, "each has the name it is called by");
}

static void test_totals(void)
{
    struct ty_model model;
    struct ty_params params;
    for (size_t i = 0; i < N_OF(counted); i++)
        if (load(counted[i].name, &model, &params))
            near(params.total, counted[i].total, 0.0, counted[i].name);
    for (size_t i = 0; i < N_OF(printed); i++)
        if (load(printed[i].name, &model, &params))
            within(params.total / 1e9, printed[i].total_b, 0.5001e-4, printed[i].name);
    if (load("nemotron4-15b", &model, &params)) /* arXiv 2402.16819: 3.2B embedding, 12.5B other */
        within((params.total - params.embedding - params.head) / 1e9, 12.5, 0.05, "nemotron4-15b");
    if (load("nemotron4-340b", &model,
             &params)) /* arXiv 2406.11704: 9.4B embedding, 331.6B other */
        within((params.total - params.embedding - params.head) / 1e9, 331.6, 0.05,
               "nemotron4-340b");
    if (load("grok1-314b", &model, &params)) /* xai-org/grok-1 README: 314B */
        near(params.total, 314e9, 0.01, "grok1-314b");
}

/* UT-1.13 and UT-11.2 with the figures of the built-in file: its MTP module counts. */
static void test_flop(void)
{
    struct ty_model model;
    struct ty_params params;
    if (load("deepseek-v3", &model, &params)) {
        near(ty_model_flop_per_token(&model, 4096, TY_FLOPS_MEGATRON), 259992950784, 1e-14,
             "UT-11.2 deepseek-v3");
        ok(model.kinds[1].n_groups == 8 && model.kinds[1].group_limit == 4, "8 groups, 4 chosen");
    }
    if (load("llama3-70b", &model, &params))
        near(ty_model_flop_per_token(&model, 8192, TY_FLOPS_MEGATRON), 449222541312, 1e-14,
             "UT-11.2 llama3-70b");
}

static void test_unknown(void)
{
    struct ty_model model;
    struct ty_error error = {TY_OK, "", ""};
    ok(ty_model_load("llama3-70c", &model, &error) == TY_ERR_IO && strstr(error.text, "llama3-70b"),
       "an unknown name is refused, the nearest is named");
}

int main(void)
{
    test_all();
    test_totals();
    test_flop();
    test_unknown();
    return tap_done();
}
