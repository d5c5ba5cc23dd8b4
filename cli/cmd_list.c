/* SPDX-License-Identifier: MIT
 * `trainyard list KIND`: the built-in names of a kind, each with the facts one chooses by. */
#include "cli/cli.h"
#include <string.h>

static bool describe_model(const char *name, char *out, size_t bytes)
{
    struct ty_model model;
    struct ty_params params;
    if (ty_model_load(name, &model, NULL) != TY_OK)
        return false;
    ty_model_params(&model, &params);
    int used = snprintf(out, bytes, "%9.3f B parameters", params.total * 1e-9);
    if (params.active < params.total && used > 0)
        snprintf(out + used, bytes - (size_t)used, ", %.3f B active", params.active * 1e-9);
    return true;
}

static bool describe_cluster(const char *name, char *out, size_t bytes)
{
    struct ty_cluster cluster;
    char nic[40];
    if (ty_cluster_load(name, &cluster, NULL) != TY_OK)
        return false;
    snprintf(out, bytes, "%2u x %-16s NIC %s", cluster.gpus_per_node, cluster.gpu.name,
             ty_quantity_text(cluster.nic_bytes_per_s, TY_UNIT_BYTES_PER_S, nic, sizeof nic));
    return true;
}

static bool describe_gpu(const char *name, char *out, size_t bytes)
{
    struct ty_gpu gpu;
    char mem[40], peak[40];
    if (ty_gpu_load(name, &gpu, NULL) != TY_OK)
        return false;
    snprintf(out, bytes, "%10s  %s BF16",
             ty_quantity_text(gpu.mem_bytes, TY_UNIT_BYTES, mem, sizeof mem),
             ty_quantity_text(gpu.bf16_flop_per_s, TY_UNIT_FLOP_PER_S, peak, sizeof peak));
    return true;
}

static bool describe_nothing(const char *name, char *out, size_t bytes)
{
    (void)name;
    (void)bytes;
    *out = '\0';
    return true;
}

static const char *model_name(size_t i)
{
    return ty_builtin_name(TY_KIND_MODEL, i);
}

static const char *cluster_name(size_t i)
{
    return ty_builtin_name(TY_KIND_CLUSTER, i);
}

static const char *gpu_name(size_t i)
{
    return ty_builtin_name(TY_KIND_GPU, i);
}

static const char *profile_name(size_t i)
{
    return ty_builtin_name(TY_KIND_PROFILE, i);
}

static const struct list_kind {
    const char *word;
    const char *(*name)(size_t index);
    bool (*describe)(const char *name, char *out, size_t bytes);
} list_kinds[] = {{"models", model_name, describe_model},
                  {"clusters", cluster_name, describe_cluster},
                  {"gpus", gpu_name, describe_gpu},
                  {"profiles", profile_name, describe_nothing},
                  {"stacks", ty_builtin_stack, describe_nothing},
                  {"sites", ty_builtin_site, describe_nothing},
                  {NULL, NULL, NULL}};

static int print_list(const struct list_kind *list, bool json)
{
    const char *name;
    size_t n = 0;
    if (json)
        putchar('[');
    for (; (name = list->name(n)); n++) {
        char line[200];
        if (json) {
            fputs(n ? ", " : "", stdout);
            cli_json_string(stdout, name);
        } else if (list->describe(name, line, sizeof line)) {
            printf(*line ? "%-28s %s\n" : "%s%s\n", name, line);
        } else {
            cli_warn("built-in %s cannot be read", name);
            return CLI_FAILED;
        }
    }
    if (json)
        printf("]\n");
    if (n == 0)
        cli_warn("there are no built-in %s", list->word);
    return n ? CLI_OK : CLI_FAILED;
}

int cmd_list(struct cli_args *args)
{
    struct cli_guess guess = {.word = args->n_words ? args->words[0] : ""};
    for (const struct list_kind *list = list_kinds; list->word; list++) {
        if (strcmp(list->word, guess.word) == 0)
            return print_list(list, args->json);
        cli_guess_offer(&guess, list->word);
    }
    static const char legal[] = "models, clusters, gpus, profiles, stacks, sites";
    if (*guess.word)
        cli_warn("list: \"%s\" is not one of %s%s%s", guess.word, legal,
                 *guess.best ? "; did you mean " : "", guess.best);
    else
        cli_warn("list: needs one of %s", legal);
    return CLI_BAD_INPUT;
}
