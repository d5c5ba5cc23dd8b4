/* SPDX-License-Identifier: MIT
 * `trainyard show run ID --runs FILE`: the predict command of one measured run. */
#include "cli/cli.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As one word of the shell: 'it'\''s'. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, stdout);
    putchar('\'');
}

/* The model as JSON on one line: a line end is no part of any text in it. */
static bool print_model(const struct ty_model *model)
{
    char *json = ty_spec_write(TY_KIND_MODEL, model);
    if (!json)
        return false;
    char *out = json;
    for (const char *in = json; *in; in++) {
        if (*in == '\n')
            in += strspn(in + 1, " ");
        else
            *out++ = *in;
    }
    *out = '\0';
    print_quoted(json);
    ty_text_free(json);
    return true;
}

/* Exact: a number with all its digits, anything else as `show` prints it. */
static const char *exact_text(const struct ty_field *field, const void *value, char *out,
                              size_t bytes)
{
    static const char *const units[] = {
        [TY_UNIT_BYTES] = " B",           [TY_UNIT_BYTES_PER_S] = " B/s", [TY_UNIT_S] = " s",
        [TY_UNIT_FLOP_PER_S] = " flop/s", [TY_UNIT_HZ] = " Hz",           [TY_UNIT_W] = " W",
        [TY_UNIT_TOKENS] = NULL};
    if (field->type != TY_FIELD_DOUBLE)
        return cli_field_text(field, value, out, bytes);
    const double number = *(const double *)(const void *)((const char *)value + field->offset);
    snprintf(out, bytes, "%.17g%s", number, units[field->unit] ? units[field->unit] : "");
    return isnan(number) ? "" : out;
}

/* --set PREFIX.PATH=VALUE for every field in which two values of a kind differ. */
static void print_differences(enum ty_kind kind, const char *prefix, const void *value,
                              const void *base)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(kind, &n);
    for (size_t i = 0; i < n; i++) {
        char own[256], other[256], setting[320];
        const char *text = exact_text(&fields[i], value, own, sizeof own);
        const bool label =
            strcmp(fields[i].path, "name") == 0 || strcmp(fields[i].path, "source") == 0;
        if (label || strcmp(text, exact_text(&fields[i], base, other, sizeof other)) == 0)
            continue;
        snprintf(setting, sizeof setting, "%s.%s=%s", prefix, fields[i].path, text);
        printf(" --set ");
        print_quoted(setting);
    }
}

/* The built-in cluster of that name with another GPU or network. */
static ty_status print_cluster(const struct ty_cluster *cluster, struct ty_error *error)
{
    struct ty_cluster base;
    ty_status status = ty_cluster_load(cluster->name, &base, error);
    if (status != TY_OK)
        return status;
    printf(" --cluster %s", cluster->name);
    if (strcmp(base.gpu.name, cluster->gpu.name) != 0)
        printf(" --set cluster.gpu=%s", cluster->gpu.name);
    base.gpu = cluster->gpu;
    print_differences(TY_KIND_CLUSTER, "cluster", cluster, &base);
    return TY_OK;
}

/* The preset of GPU and stack with what release and site change. */
static ty_status print_profile(const struct ty_run *run, struct ty_error *error)
{
    struct ty_profile base;
    ty_status status = ty_profile_load(NULL, run->row.stack, &run->cluster, &base, error);
    if (status != TY_OK)
        return status;
    printf(" --stack %s", run->row.stack);
    print_differences(TY_KIND_PROFILE, "profile", &run->profile, &base);
    return TY_OK;
}

/* The size of a sharding group belongs to its kind: "zero1:8". */
static void print_plan(const struct ty_plan *plan)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++) {
        char text[256], flag[64];
        if (!*cli_field_text(&fields[i], plan, text, sizeof text) ||
            strcmp(fields[i].path, "shard_group") == 0)
            continue;
        printf(" --%s %s", cli_flag_name(&fields[i], flag, sizeof flag), text);
        if (plan->shard_group && strcmp(fields[i].path, "sharding") == 0)
            printf(":%u", plan->shard_group);
    }
    putchar('\n');
}

int cli_show_run(const struct cli_args *args, const char *id, struct ty_error *error)
{
    if (!id || !args->runs) {
        cli_warn("show run: give the id of a run and --runs FILE, the table that has it");
        return CLI_BAD_INPUT;
    }
    struct ty_run *run = malloc(sizeof *run);
    if (!run) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    int status = CLI_OK;
    if (ty_run_load(args->runs, id, run, error) != TY_OK) {
        status = cli_fail(error);
    } else {
        printf("trainyard predict --measured --model ");
        if (!print_model(&run->model))
            status = CLI_FAILED;
        else if (print_cluster(&run->cluster, error) != TY_OK || print_profile(run, error) != TY_OK)
            status = cli_fail(error);
        print_plan(&run->plan);
    }
    free(run);
    return status;
}
