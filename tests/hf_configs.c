/* SPDX-License-Identifier: MIT
 * Every published config of the shared material: exact parameter counts, or a refusal that says
 * why. Expected counts: the table of its README (an independent script over the documented tensor
 * shapes; 35 of them also agree with the tensors that transformers 5.24 builds, counted by us). */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

#include <dirent.h>

static const struct {
    const char *name;
    double total, embedding, active;
} counted[] = {
    {"baichuan2-7b", 7505973248.0, 514850816.0, 7505973248.0},
    {"bloom-7b1", 7069016064.0, 1027604480.0, 7069016064.0},
    {"chatglm2-6b", 6243584000.0, 266338304.0, 6243584000.0},
    {"codellama-34b", 33743970304.0, 262144000.0, 33743970304.0},
    {"cohere-8b", 8028033024.0, 1048576000.0, 8028033024.0},
    {"dbrx-132b", 131596523520.0, 616562688.0, 36469708800.0},
    {"deepseek-v2-lite", 15706484224.0, 209715200.0, 2661150208.0},
    {"deepseek-v3", 671026404352.0, 926679040.0, 37552282624.0},
    {"eagle-draft-llama-2-7b", 464531456.0, 131072000.0, 464531456.0},
    {"falcon-40b", 41303293952.0, 532676608.0, 41303293952.0},
    {"gemma-2-9b", 9241705984.0, 917504000.0, 9241705984.0},
    {"gemma-3-27b-it", 27009346304.0, 1409630208.0, 27009346304.0},
    {"glm-4.5", 352797814784.0, 775946240.0, 33632251904.0},
    {"gpt-oss-20b", 20914757184.0, 579133440.0, 4187440704.0},
    {"gpt2-124m", 124439808.0, 39383808.0, 124439808.0},
    {"gptneox-reduced-1layer", 324057088.0, 103284736.0, 324057088.0},
    {"llama-2-70b", 68976648192.0, 262144000.0, 68976648192.0},
    {"llama-2-7b", 6738415616.0, 131072000.0, 6738415616.0},
    {"llama-3-70b", 70553706496.0, 1050673152.0, 70553706496.0},
    {"llama-3.1-405b", 405853388800.0, 2101346304.0, 405853388800.0},
    {"llama-3.1-8b", 8030261248.0, 525336576.0, 8030261248.0},
    {"llama-4-maverick", 400711848960.0, 1034485760.0, 17184691200.0},
    {"minimax-m2.5", 228689748992.0, 614596608.0, 11030537216.0},
    {"mistral-7b-instruct-v0.2", 7241732096.0, 131072000.0, 7241732096.0},
    {"mixtral-8x7b", 46702792704.0, 131072000.0, 12879925248.0},
    {"nemotron-super-49b-nas", 49867145216.0, 1050673152.0, 49867145216.0},
    {"olmoe-1b-7b", 6919161856.0, 103022592.0, 1282017280.0},
    {"opt-13b", 12853473280.0, 267888640.0, 12853473280.0},
    {"phi-2", 2779683840.0, 131072000.0, 2779683840.0},
    {"phi-mini-moe", 7647632704.0, 131334144.0, 2362809664.0},
    {"pythia-6.9b-deduped", 6857302016.0, 206569472.0, 6857302016.0},
    {"qwen1-1.8b-chat", 1836828672.0, 311164928.0, 1836828672.0},
    {"qwen1.5-0.5b-chat", 463987712.0, 155582464.0, 463987712.0},
    {"qwen2-72b-instruct", 72706203648.0, 1245708288.0, 72706203648.0},
    {"qwen2.5-7b-instruct", 7615616512.0, 544997376.0, 7615616512.0},
    {"qwen3-0.6b", 596049920.0, 155582464.0, 596049920.0},
    {"qwen3-235b-a22b-fp8-mislabelled", 235093634560.0, 622329856.0, 22190763520.0},
    {"qwen3-30b-a3b", 30532122624.0, 311164928.0, 3353032704.0},
    {"qwen3-32b", 32762123264.0, 777912320.0, 32762123264.0},
    {"yi-6b-chat", 6061035520.0, 262144000.0, 6061035520.0},
};

static const struct {
    const char *name;
    ty_status status;
    const char *where, *text;
} refused[] = {
    {"broken-gptneox-25b-fragment", TY_ERR_INPUT, "line 1", "malformed"},
    {"broken-nemotron-h-56b", TY_ERR_INPUT, "line 46", "Infinity"},
    {"jamba-reduced-4layer", TY_ERR_UNSUPPORTED, "attn_layer_period", "state-space"},
};

#define N_OF(array) (sizeof(array) / sizeof *(array))

static const char *config_path(const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "data/hf-configs/%s.json", name);
    return shared_path(file);
}

static void test_counts(void)
{
    for (size_t i = 0; i < N_OF(counted); i++) {
        struct ty_model model;
        struct ty_params params;
        struct ty_error error;
        if (ty_model_load(config_path(counted[i].name), &model, &error) != TY_OK) {
            ok(false, "%s: %s: %s", counted[i].name, error.where, error.text);
            continue;
        }
        ty_model_params(&model, &params);
        bool good = params.total == counted[i].total && params.embedding == counted[i].embedding &&
                    params.active == counted[i].active;
        ok(good, "%s: total, embedding and active parameters", counted[i].name);
        if (!good)
            printf("#   got %.0f, %.0f, %.0f\n", params.total, params.embedding, params.active);
    }
}

static void test_refusals(void)
{
    for (size_t i = 0; i < N_OF(refused); i++) {
        struct ty_model model;
        struct ty_error error = {TY_OK, "", ""};
        ty_status status = ty_model_load(config_path(refused[i].name), &model, &error);
        ok(status == refused[i].status && strstr(error.where, refused[i].where) &&
               strstr(error.where, refused[i].name) && strstr(error.text, refused[i].text),
           "%s is refused", refused[i].name);
        printf("# %s: %s\n", error.where, error.text);
    }
}

/* No file of the folder is left out of the tables above. */
static void test_folder(void)
{
    size_t n_files = 0;
    DIR *folder = opendir(shared_path("data/hf-configs"));
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        n_files += strstr(entry->d_name, ".json") != NULL;
    if (folder)
        closedir(folder);
    ok(n_files == N_OF(counted) + N_OF(refused), "all %zu files of the folder are tested", n_files);
}

int main(void)
{
    FILE *probe = fopen(config_path("llama-2-7b"), "r");
    if (!probe) {
        skip("published configs", "no shared material");
        return tap_done();
    }
    fclose(probe);
    test_counts();
    test_refusals();
    test_folder();
    return tap_done();
}
