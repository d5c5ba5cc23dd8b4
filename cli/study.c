/* SPDX-License-Identifier: MIT
 * The study of a command: its arguments as text, its file, what the file holds already. */
#include "cli/study.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMMIT_S 1.0 /* a killed process loses no more than this, or one batch of rows */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- what decides the rows ---------------------------------------------------------------- */

/* Options that are read back from elsewhere (inputs by content, the plan by field), or that change
 * what is shown, where it goes and how fast, but no row. */
static const char *const not_of_rows[] = {
    "model",   "cluster", "plan",       "price",     "stack",     "site", "set",   "db",
    "resume",  "shard",   "top",        "all",       "jobs",      "json", "quiet", "help",
    "overall", "pareto",  "exhaustive", "objective", "framework", "args", NULL};

static bool decides_rows(const struct cli_option *option)
{
    for (const char *const *name = not_of_rows; *name; name++)
        if (strcmp(*name, option->name) == 0)
            return false;
    return true;
}

static void write_option(FILE *file, const struct cli_args *args, const struct cli_option *option)
{
    const char *at = (const char *)args + option->offset;
    switch (option->type) {
    case CLI_SWITCH:
        if (*(const bool *)at)
            fprintf(file, "--%s\n", option->name);
        break;
    case CLI_TEXT:
        if (*(const char *const *)(const void *)at)
            fprintf(file, "--%s %s\n", option->name, *(const char *const *)(const void *)at);
        break;
    case CLI_U32:
        if (*(const uint32_t *)(const void *)at)
            fprintf(file, "--%s %u\n", option->name, *(const uint32_t *)(const void *)at);
        break;
    case CLI_U64:
        if (*(const uint64_t *)(const void *)at)
            fprintf(file, "--%s %llu\n", option->name,
                    (unsigned long long)*(const uint64_t *)(const void *)at);
        break;
    case CLI_SET:
    case CLI_FIELD: /* the storage of the study holds them */
        break;
    }
}

/* The plan as given, every list of a knob, the options; free with free. NULL: out of memory. */
static char *arguments_text(const struct cli_args *args, const struct cli_inputs *inputs,
                            const char *details)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return NULL;
    fprintf(file, "command %s\n", args->command->name);
    char *plan = ty_spec_write(TY_KIND_PLAN, &inputs->space.fixed);
    fprintf(file, "plan %s\n", plan ? plan : "");
    ty_text_free(plan);
    cli_space_write(file, &inputs->space);
    for (const struct cli_option *option = cli_options; option->name; option++)
        if (option->commands & args->command->bit && decides_rows(option))
            write_option(file, args, option);
    if (inputs->profile.framework)
        fprintf(file, "framework %s\n", inputs->profile.framework->version);
    fputs(details, file);
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* "study-{shard}.db": the number of the shard. */
static ty_status file_name(const struct cli_args *args, struct cli_study *study,
                           struct ty_error *error)
{
    const char *place = strstr(args->db, "{shard}");
    int n;
    if (place && !study->share.n_shards)
        return cli_refuse(error, "--db", "%s has a {shard} and there is no --shard", args->db);
    if (place)
        n = snprintf(study->path, sizeof study->path, "%.*s%u%s", (int)(place - args->db), args->db,
                     study->share.shard, place + 7);
    else
        n = snprintf(study->path, sizeof study->path, "%s", args->db);
    if (n < 0 || (size_t)n >= sizeof study->path)
        return cli_refuse(error, "--db", "the name is too long");
    return TY_OK;
}

static ty_status begin(const struct cli_args *args, const struct ty_study *given,
                       struct cli_study *study, struct ty_error *error)
{
    ty_status status = ty_store_open(study->path, false, &study->store, error);
    if (status != TY_OK)
        return status;
    if (!args->resume)
        return ty_store_begin(study->store, given, &study->id, error);
    status = ty_store_resume(study->store, given, &study->id, error);
    if (status == TY_OK)
        status = ty_store_known(study->store, study->id, &study->share, error);
    if (status == TY_OK && study->share.n_known && !args->quiet)
        cli_warn("%llu rows are in %s already", (unsigned long long)study->share.n_known,
                 study->path);
    return status;
}

ty_status cli_study_open(const struct cli_args *args, const struct cli_inputs *inputs,
                         const char *details, struct cli_study *out, struct ty_error *error)
{
    ty_status status = cli_shard(args, &out->share, error);
    if (status != TY_OK)
        return status;
    if (!args->db)
        return args->resume ? cli_refuse(error, "--resume", "needs --db FILE") : TY_OK;
    status = file_name(args, out, error);
    if (status != TY_OK)
        return status;
    char *command = cli_command_line(args), *arguments = arguments_text(args, inputs, details);
    const struct ty_study study = {.command = command ? command : args->command->name,
                                   .model = &inputs->model,
                                   .cluster = &inputs->cluster,
                                   .profile = &inputs->profile,
                                   .price = inputs->options.price,
                                   .storage = inputs->options.storage,
                                   .arguments = arguments};
    status =
        arguments ? begin(args, &study, out, error) : cli_refuse(error, "--db", "out of memory");
    out->committed_s = now_s();
    free(command);
    free(arguments);
    return status;
}

ty_status cli_study_add(struct cli_study *study, const struct ty_score *score, double p_faster,
                        struct ty_error *error)
{
    if (ty_known_find(&study->share, score->plan_id))
        return TY_OK;
    const ty_status status = ty_store_add_score(study->store, study->id, score, p_faster, error);
    const double now = now_s();
    if (status != TY_OK || now - study->committed_s < COMMIT_S)
        return status;
    study->committed_s = now;
    return ty_store_flush(study->store, error);
}

void cli_study_close(struct cli_study *study)
{
    ty_store_close(study->store);
    ty_store_known_free(&study->share);
    *study = (struct cli_study){0};
}

bool cli_study_is_shard(const struct cli_study *study)
{
    return study->share.n_shards > 1;
}
