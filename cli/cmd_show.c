/* SPDX-License-Identifier: MIT
 * `trainyard show KIND NAME`: an input as trainyard understands it. With --json, text that the
 * reader of its kind accepts; for a model with exact counts around it. */
#include "cli/cli.h"
#include <string.h>

/* Every field of a value whose path begins with `group`; `-` and the help line where it is left to
 * its default. */
static void print_fields(enum ty_kind kind, const void *value, const char *group)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(kind, &n);
    for (size_t i = 0; i < n; i++) {
        char text[256];
        if (strncmp(fields[i].path, group, strlen(group)) != 0)
            continue;
        cli_field_text(&fields[i], value, text, sizeof text);
        printf("%-30s %-18s %s\n", fields[i].path, *text ? text : "-",
               fields[i].type == TY_FIELD_TEXT ? "" : fields[i].help);
    }
}

static int print_spec(enum ty_kind kind, const void *value, bool json)
{
    if (!json) {
        print_fields(kind, value, "");
        return CLI_OK;
    }
    return cli_print(ty_spec_write(kind, value));
}

/* ---- model -------------------------------------------------------------------------------- */

/* Sequence length of the flop per token that are shown: of the card, 4096 at most. */
static uint32_t shown_seq(const struct ty_model *model)
{
    return model->max_seq && model->max_seq < 4096 ? model->max_seq : 4096;
}

static int print_model_json(const struct ty_model *model, const struct ty_params *params)
{
    char *text = ty_spec_write(TY_KIND_MODEL, model);
    if (!text) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    printf(
        "{\n  \"params_total\": %.0f,\n  \"params_embedding\": %.0f,\n  \"params_head\": %.0f,\n"
        "  \"params_active\": %.0f,\n  \"params_mtp\": %.0f,\n  \"flop_per_token\": {\"seq\": %u",
        params->total, params->embedding, params->head, params->active, params->mtp,
        shown_seq(model));
    for (enum ty_flops flops = TY_FLOPS_MEGATRON; flops < TY_N_FLOPS; flops++)
        printf(", \"%s\": %.17g", ty_flops_name(flops),
               ty_model_flop_per_token(model, shown_seq(model), flops));
    printf("},\n  \"model\": %s}\n", text);
    ty_text_free(text);
    return CLI_OK;
}

static void print_kind(const struct ty_model *model, const struct ty_params *params, uint32_t kind)
{
    const struct ty_layer_kind *layer = &model->kinds[kind];
    char count[40];
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        n += model->layer_kind[i] == kind;
    printf("  %u x ", n);
    if (layer->attention == TY_ATTENTION_HEADS)
        printf("attention %u heads of %u, %u key/value heads", layer->n_heads, layer->head_dim,
               layer->n_kv_heads);
    else if (layer->attention == TY_ATTENTION_MLA)
        printf("MLA %u heads, ranks q %u kv %u", layer->n_heads, layer->q_lora_rank,
               layer->kv_lora_rank);
    else
        printf("no attention");
    if (layer->window_tokens)
        printf(", window %u", layer->window_tokens);
    if (layer->mlp == TY_MLP_MOE)
        printf("; %u experts of %u, %u per token%s", layer->n_experts, layer->expert_ffn,
               layer->top_k, layer->shared_ffn ? ", shared expert" : "");
    else if (layer->mlp == TY_MLP_DENSE)
        printf("; %s feed-forward %u", layer->gated ? "gated" : "plain", layer->ffn);
    printf("; %s parameters each\n", cli_count_text(params->layer[kind], count, sizeof count));
}

static void print_model(const struct ty_model *model, const struct ty_params *params)
{
    char count[40];
    const struct {
        const char *name;
        double value;
    } rows[] = {{"parameters", params->total},
                {"active per token", params->active},
                {"embedding", params->embedding},
                {"output head", params->head},
                {"MTP modules (not in total)", params->mtp}};
    printf("%s (%s)\n\n", model->name, model->family);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("%-28s %20s\n", rows[i].name, cli_count_text(rows[i].value, count, sizeof count));
    printf("\nhidden %u, vocabulary %u%s, %u layers:\n", model->hidden, model->vocab,
           model->tied ? " (tied)" : "", model->n_layers);
    for (uint32_t kind = 0; kind < model->n_kinds; kind++)
        print_kind(model, params, kind);
    printf("\nflop per token, forward and backward, at %u tokens:\n", shown_seq(model));
    for (enum ty_flops flops = TY_FLOPS_MEGATRON; flops < TY_N_FLOPS; flops++)
        printf("  %-26s %.6g\n", ty_flops_name(flops),
               ty_model_flop_per_token(model, shown_seq(model), flops));
    if (*model->source)
        printf("\nsource: %s\n", model->source);
}

static int show_model(const struct cli_args *args, const char *name, struct ty_error *error)
{
    struct ty_model model;
    struct ty_params params;
    if (cli_load_model(args, name, &model, error) != TY_OK)
        return cli_fail(error);
    ty_model_params(&model, &params);
    if (args->json)
        return print_model_json(&model, &params);
    print_model(&model, &params);
    return CLI_OK;
}

/* ---- the others --------------------------------------------------------------------------- */

/* The tiers are an object of the cluster's file. */
static int print_cluster_json(const struct ty_cluster *cluster, const struct ty_storage *storage)
{
    char *text = ty_spec_write(TY_KIND_CLUSTER, cluster);
    char *tiers = ty_spec_write(TY_KIND_STORAGE, storage);
    const int status = text && tiers ? CLI_OK : CLI_FAILED;
    if (status != CLI_OK)
        cli_warn("out of memory");
    else if (strchr(tiers, ':'))
        printf("%.*s,%s", (int)(strrchr(text, '}') - 1 - text), text, tiers + 1);
    else
        fputs(text, stdout);
    ty_text_free(text);
    ty_text_free(tiers);
    return status;
}

static int show_cluster(const struct cli_args *args, const char *name, struct ty_error *error)
{
    struct ty_cluster cluster;
    struct ty_storage storage;
    if (cli_load_cluster(args, name, &cluster, error) != TY_OK ||
        cli_load_tiers(args, name, NULL, &storage, error) != TY_OK)
        return cli_fail(error);
    if (args->json)
        return print_cluster_json(&cluster, &storage);
    print_fields(TY_KIND_CLUSTER, &cluster, "");
    print_fields(TY_KIND_STORAGE, &storage, "storage.");
    return CLI_OK;
}

static int show_gpu(const struct cli_args *args, const char *name, struct ty_error *error)
{
    struct ty_gpu gpu;
    if (!name) {
        cli_warn("show gpu: name a GPU; \"trainyard list gpus\" prints names");
        return CLI_BAD_INPUT;
    }
    if (cli_load_gpu(args, name, &gpu, error) != TY_OK)
        return cli_fail(error);
    return print_spec(TY_KIND_GPU, &gpu, args->json);
}

/* With a model and a cluster: every default filled in, and the rules it breaks. */
static int show_resolved_plan(const struct cli_args *args, struct ty_error *error)
{
    struct cli_inputs inputs = {0};
    struct ty_plan resolved;
    struct ty_violation broken[32];
    uint32_t n = 0, n_notes = 0;
    const ty_status loaded = cli_load(args, false, &inputs, error);
    cli_inputs_free(&inputs); /* no time is computed here: its tables are not needed */
    if (loaded != TY_OK)
        return cli_fail(error);
    if (ty_plan_resolve(&inputs.model, &inputs.cluster, &inputs.profile, &inputs.plan, &resolved,
                        NULL, 0, &n_notes) != TY_OK)
        return CLI_FAILED;
    int status = print_spec(TY_KIND_PLAN, &resolved, args->json);
    ty_plan_violations(&inputs.model, &inputs.cluster, &resolved, broken, 32, &n);
    for (uint32_t i = 0; i < n && i < 32; i++)
        cli_warn("%s: %s; legal: %s", broken[i].rule, broken[i].text, broken[i].legal);
    return n ? CLI_INFEASIBLE : status;
}

static int show_plan(struct cli_args *args, const char *name, struct ty_error *error)
{
    struct ty_plan plan;
    if (name)
        args->plan = name;
    if (args->model && args->cluster)
        return show_resolved_plan(args, error);
    if (cli_load_plan(args, &plan, error) != TY_OK)
        return cli_fail(error);
    return print_spec(TY_KIND_PLAN, &plan, args->json);
}

static int show_profile(const struct cli_args *args, const char *name, struct ty_error *error)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    if (cli_load_cluster(args, args->cluster, &cluster, error) != TY_OK ||
        cli_load_profile(args, name ? name : args->profile, &cluster, &profile, error) != TY_OK)
        return cli_fail(error);
    return print_spec(TY_KIND_PROFILE, &profile, args->json);
}

static int show_price(struct cli_args *args, const char *name, struct ty_error *error)
{
    struct cli_inputs inputs = {0};
    args->goal.price = name;
    if (!name) {
        cli_warn("show price: name a price list, such as examples/price-rent.json");
        return CLI_BAD_INPUT;
    }
    if (cli_load_price(args, &inputs, error) != TY_OK)
        return cli_fail(error);
    return print_spec(TY_KIND_PRICE, &inputs.price, args->json);
}

/* A GPU is what --set gpu.FIELD sets of a cluster; the rest of the cluster is not shown. */
static void warn_beside_gpu(const struct cli_args *args)
{
    for (uint32_t i = 0; !args->quiet && i < args->n_settings; i++)
        if (args->settings[i].kind == TY_KIND_CLUSTER &&
            strncmp(args->settings[i].path, "gpu.", 4) != 0)
            cli_warn("unused: %s (nothing here depends on a cluster)", args->settings[i].origin);
}

int cmd_show(struct cli_args *args)
{
    struct ty_error error = {0};
    const char *what = args->n_words > 0 ? args->words[0] : "";
    const char *name = args->n_words > 1 ? args->words[1] : NULL;
    uint32_t used = 0;
    int status;
    if (strcmp(what, "model") == 0) {
        used = 1u << TY_KIND_MODEL;
        status = show_model(args, name ? name : args->model, &error);
    } else if (strcmp(what, "cluster") == 0) {
        used = 1u << TY_KIND_CLUSTER | 1u << TY_KIND_STORAGE;
        status = show_cluster(args, name ? name : args->cluster, &error);
    } else if (strcmp(what, "gpu") == 0) {
        used = 1u << TY_KIND_CLUSTER;
        warn_beside_gpu(args);
        status = show_gpu(args, name, &error);
    } else if (strcmp(what, "plan") == 0) {
        bool resolved = args->model && args->cluster;
        used = resolved ? UINT32_MAX : 1u << TY_KIND_PLAN;
        status = show_plan(args, name, &error);
    } else if (strcmp(what, "profile") == 0) {
        used = 1u << TY_KIND_PROFILE | 1u << TY_KIND_CLUSTER;
        status = show_profile(args, name, &error);
    } else if (strcmp(what, "price") == 0) {
        used = 1u << TY_KIND_PRICE;
        status = show_price(args, name, &error);
    } else if (strcmp(what, "run") == 0) {
        status = cli_show_run(args, name, &error);
    } else {
        static const char legal[] = "model, cluster, gpu, plan, profile, price, run";
        if (*what)
            cli_warn("show: \"%s\" is not one of %s", what, legal);
        else
            cli_warn("show: needs one of %s", legal);
        return CLI_BAD_INPUT;
    }
    if (status == CLI_OK)
        cli_warn_unused(args, used);
    return status;
}
