/* SPDX-License-Identifier: MIT
 * From the parsed command line to the values the library takes: files or built-in names first,
 * then the fields set by flags and --set, in the order typed. */
#include "cli/cli.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Refusals of a setting name what the user typed. */
static ty_status blame(const struct cli_setting *setting, ty_status status, struct ty_error *error)
{
    if (status != TY_OK) {
        char where[sizeof error->where];
        snprintf(where, sizeof where, "%s", error->where);
        if (strchr(setting->origin, '='))
            snprintf(error->where, sizeof error->where, "--set %.120s", setting->origin);
        else
            snprintf(error->where, sizeof error->where, "%.40s %.100s", setting->origin,
                     setting->text);
    }
    return status;
}

/* Settings of a kind, into a value of it; those under a prefix, into a value of the kind `as`. */
static ty_status apply_under(const struct cli_args *args, enum ty_kind kind, const char *prefix,
                             enum ty_kind as, void *value, struct ty_error *error)
{
    const size_t n = strlen(prefix);
    for (uint32_t i = 0; i < args->n_settings; i++) {
        const struct cli_setting *setting = &args->settings[i];
        if (setting->kind != kind || strncmp(setting->path, prefix, n) != 0)
            continue;
        ty_status status = ty_field_set(as, value, setting->path + n, setting->text, error);
        if (status != TY_OK)
            return blame(setting, status, error);
    }
    return TY_OK;
}

static ty_status apply_settings(const struct cli_args *args, enum ty_kind kind, void *value,
                                struct ty_error *error)
{
    return apply_under(args, kind, "", kind, value, error);
}

/* An input that cannot be read is bad input, unlike an output that cannot be written. */
static ty_status input_status(ty_status status, struct ty_error *error)
{
    if (status == TY_ERR_IO)
        error->code = status = TY_ERR_INPUT;
    return status;
}

ty_status cli_load_model(const struct cli_args *args, const char *name, struct ty_model *out,
                         struct ty_error *error)
{
    if (!name)
        return cli_refuse(error, "--model", "not given; \"trainyard list models\" prints names");
    ty_status status = input_status(ty_model_load(name, out, error), error);
    if (status == TY_OK)
        status = apply_settings(args, TY_KIND_MODEL, out, error);
    return status == TY_OK ? ty_model_check(out, error) : status;
}

ty_status cli_load_gpu(const struct cli_args *args, const char *name, struct ty_gpu *out,
                       struct ty_error *error)
{
    ty_status status = input_status(ty_gpu_load(name, out, error), error);
    return status == TY_OK ? apply_under(args, TY_KIND_CLUSTER, "gpu.", TY_KIND_GPU, out, error)
                           : status;
}

ty_status cli_load_cluster(const struct cli_args *args, const char *name, struct ty_cluster *out,
                           struct ty_error *error)
{
    if (!name)
        return cli_refuse(error, "--cluster",
                          "not given; \"trainyard list clusters\" prints names");
    ty_status status = input_status(ty_cluster_load(name, out, error), error);
    return status == TY_OK ? apply_settings(args, TY_KIND_CLUSTER, out, error) : status;
}

ty_status cli_load_profile(const struct cli_args *args, const char *name,
                           const struct ty_cluster *cluster, struct ty_profile *out,
                           struct ty_error *error)
{
    ty_status status = input_status(ty_profile_load(name, args->stack, cluster, out, error), error);
    if (status == TY_OK && args->site)
        status = input_status(ty_site_load(args->site, cluster, out, error), error);
    return status == TY_OK ? apply_settings(args, TY_KIND_PROFILE, out, error) : status;
}

ty_status cli_load_price(const struct cli_args *args, struct cli_inputs *out,
                         struct ty_error *error)
{
    bool given = args->goal.price != NULL;
    for (uint32_t i = 0; i < args->n_settings && !given; i++)
        given = args->settings[i].kind == TY_KIND_PRICE;
    ty_init(TY_KIND_PRICE, &out->price);
    if (!given)
        return TY_OK;
    out->options.price = &out->price;
    ty_status status = TY_OK;
    if (args->goal.price)
        status = input_status(ty_price_load(args->goal.price, &out->price, error), error);
    return status == TY_OK ? apply_settings(args, TY_KIND_PRICE, &out->price, error) : status;
}

/* A field of an input or a checkpoint that there is not has no effect. */
static ty_status check_storage(const struct cli_args *args, const struct ty_storage *storage,
                               struct ty_error *error)
{
    for (uint32_t i = 0; i < args->n_settings; i++) {
        const struct cli_setting *setting = &args->settings[i];
        if (setting->kind != TY_KIND_STORAGE)
            continue;
        const bool input = strncmp(setting->path, "input.", 6) == 0;
        const bool save = strncmp(setting->path, "checkpoint.", 11) == 0;
        if (!storage->input.kind && (input || (!save && !storage->checkpoint.mode)))
            return cli_refuse(error, setting->origin, "has no effect without --input%s",
                              input ? "" : " or --checkpoint");
        if (!storage->checkpoint.mode && save)
            return cli_refuse(error, setting->origin, "has no effect without --checkpoint");
    }
    if (storage->checkpoint.mode && args->goal.save)
        return cli_refuse(error, "--save", "has no effect with --checkpoint, which tells it");
    return TY_OK;
}

ty_status cli_load_tiers(const struct cli_args *args, const char *cluster, const char *plan,
                         struct ty_storage *out, struct ty_error *error)
{
    const ty_status status = input_status(ty_storage_load(cluster, plan, out, error), error);
    return status == TY_OK ? apply_settings(args, TY_KIND_STORAGE, out, error) : status;
}

ty_status cli_load_storage(const struct cli_args *args, struct cli_inputs *out,
                           struct ty_error *error)
{
    struct ty_storage *storage = &out->storage;
    ty_status status = cli_load_tiers(args, args->cluster, args->plan, storage, error);
    if (status == TY_OK)
        status = check_storage(args, storage, error);
    storage->failures = out->goal.failures;
    out->options.storage = storage->input.kind || storage->checkpoint.mode ? storage : NULL;
    return status;
}

static ty_status load_plan_file(const struct cli_args *args, struct ty_plan *out,
                                struct ty_error *error)
{
    char framework[24];
    if (args->arguments && args->plan)
        return cli_refuse(error, "--args", "conflicts with --plan: both are the plan");
    if (args->arguments)
        return input_status(ty_launch_read(args->arguments, out, framework, error), error);
    if (args->plan)
        return input_status(ty_plan_load(args->plan, out, error), error);
    ty_init(TY_KIND_PLAN, out);
    return TY_OK;
}

ty_status cli_load_plan(const struct cli_args *args, struct ty_plan *out, struct ty_error *error)
{
    ty_status status = load_plan_file(args, out, error);
    return status == TY_OK ? apply_settings(args, TY_KIND_PLAN, out, error) : status;
}

/* ---- plan of predict and sweep ------------------------------------------------------------ */

static const struct {
    const char *path;
    size_t offset;
} knobs[] = {{"gpus", offsetof(struct ty_space, n_gpus)},
             {"tp", offsetof(struct ty_space, tp)},
             {"pp", offsetof(struct ty_space, pp)},
             {"vpp", offsetof(struct ty_space, vpp)},
             {"cp", offsetof(struct ty_space, cp)},
             {"ep", offsetof(struct ty_space, ep)},
             {"etp", offsetof(struct ty_space, etp)},
             {"mbs", offsetof(struct ty_space, mbs)},
             {"gbs", offsetof(struct ty_space, gbs)},
             {"recompute", offsetof(struct ty_space, recompute)},
             {"sharding", offsetof(struct ty_space, sharding)},
             {"precision", offsetof(struct ty_space, precision)},
             {"schedule", offsetof(struct ty_space, schedule)},
             {"offload", offsetof(struct ty_space, offload)}};

static struct ty_values *knob_values(struct ty_space *space, const char *path)
{
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
        if (strcmp(knobs[i].path, path) == 0)
            return (struct ty_values *)(void *)((char *)space + knobs[i].offset);
    return NULL;
}

void cli_space_write(FILE *file, const struct ty_space *space)
{
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        const struct ty_values *values =
            (const struct ty_values *)(const void *)((const char *)space + knobs[i].offset);
        for (uint32_t k = 0; k < values->n; k++)
            fprintf(file, "%s%s%u%s", k ? "" : knobs[i].path, k ? "," : " ", values->value[k],
                    k + 1 == values->n ? "\n" : "");
    }
    for (uint32_t i = 0; i < space->n_layouts; i++)
        fprintf(file, "layout %s\n", *space->layout[i] ? space->layout[i] : "even");
}

static const struct ty_field *plan_field(const char *path)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, path) == 0)
            return &fields[i];
    return NULL;
}

/* A plain range of GPU counts runs over whole nodes, or whole NVLink domains where larger. */
static uint32_t gpu_step(const struct ty_cluster *cluster)
{
    uint32_t domain =
        cluster->scaleup_domain ? cluster->scaleup_domain : cluster->gpu.scaleup_domain;
    uint32_t node = cluster->gpus_per_node ? cluster->gpus_per_node : 1;
    return domain > node ? domain : node;
}

/* "none,full": each name through ty_field_set, so that names are checked in one place. */
static ty_status name_list(const struct cli_setting *setting, const struct ty_field *field,
                           struct ty_values *out, struct ty_error *error)
{
    const char *at = setting->text;
    out->n = 0;
    for (;;) {
        char name[32];
        struct ty_plan plan;
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        ty_init(TY_KIND_PLAN, &plan);
        ty_status status = ty_field_set(TY_KIND_PLAN, &plan, field->path, name, error);
        if (status != TY_OK)
            return blame(setting, status, error);
        memcpy(&out->value[out->n++], (const char *)&plan + field->offset, sizeof(uint32_t));
        at += length;
        if (!*at)
            return TY_OK;
        if (out->n == TY_MAX_VALUES)
            return cli_refuse(error, setting->origin, "too many values");
        at++;
    }
}

/* True when a sweep is to search the setting: a list or a range of a knob. "selective:mlp,norm"
 * is one value. */
static bool is_list(const char *text)
{
    return !strchr(text, ':') && (strchr(text, ',') || strstr(text, ".."));
}

static ty_status apply_plan_setting(const struct cli_setting *setting, struct cli_inputs *inputs,
                                    bool lists, struct ty_error *error)
{
    struct ty_values *values = knob_values(&inputs->space, setting->path);
    const bool layout = strcmp(setting->path, "layout") == 0;
    if (layout)
        inputs->space.n_layouts = 0;
    if (layout && lists && cli_is_layout_list(setting->text))
        return cli_layouts_parse(setting->text, setting->origin, &inputs->space, error);
    if (values)
        values->n = 0; /* the last one given counts */
    if (values && lists && is_list(setting->text)) {
        const struct ty_field *field = plan_field(setting->path);
        if (field->type == TY_FIELD_ENUM)
            return name_list(setting, field, values, error);
        uint32_t step = strcmp(setting->path, "gpus") == 0 ? gpu_step(&inputs->cluster) : 1;
        return cli_values_parse(setting->text, step, setting->origin, values, error);
    }
    return blame(setting,
                 ty_field_set(TY_KIND_PLAN, &inputs->plan, setting->path, setting->text, error),
                 error);
}

/* A batch in tokens needs the sequence length, so it is set last. */
static ty_status apply_plan(const struct cli_args *args, bool lists, struct cli_inputs *inputs,
                            struct ty_error *error)
{
    const struct cli_setting *last = NULL;
    for (uint32_t i = 0; i < args->n_settings; i++) {
        const struct cli_setting *setting = &args->settings[i];
        if (setting->kind != TY_KIND_PLAN)
            continue;
        bool batch = strcmp(setting->path, "gbs") == 0;
        last = batch ? setting : last;
        ty_status status = batch ? TY_OK : apply_plan_setting(setting, inputs, lists, error);
        if (status != TY_OK)
            return status;
    }
    return last ? apply_plan_setting(last, inputs, lists, error) : TY_OK;
}

/* A limit given as a quantity above 0; stays as it is when `text` is NULL. */
static ty_status limit_value(const char *name, const char *text, enum ty_unit unit, double *out,
                             struct ty_error *error)
{
    if (!text)
        return TY_OK;
    ty_status status = ty_quantity_parse(text, unit, out, error);
    if (status != TY_OK)
        snprintf(error->where, sizeof error->where, "%s", name);
    else if (!(*out > 0.0))
        status = cli_refuse(error, name, "\"%s\" is not above 0", text);
    return status;
}

static ty_status load_limits(const struct cli_args *args, struct ty_options *out,
                             struct ty_error *error)
{
    double bytes = 0.0;
    ty_status status =
        limit_value("--max-time", args->max_time, TY_UNIT_S, &out->max_time_s, error);
    if (status == TY_OK)
        status = limit_value("--max-memory", args->max_memory, TY_UNIT_BYTES, &bytes, error);
    out->max_events = args->max_events;
    out->max_bytes = (uint64_t)fmin(ceil(bytes), 0x1p62);
    return status;
}

static ty_status load_options(const struct cli_args *args, struct ty_options *out,
                              struct ty_error *error)
{
    *out = (struct ty_options){.seed = args->seed, .effects = true, .measured = args->measured};
    const ty_status status = load_limits(args, out, error);
    if (status != TY_OK)
        return status;
    if (args->rung && strcmp(args->rung, "full") == 0)
        out->rung = TY_RUNG_FULL;
    else if (args->rung && strcmp(args->rung, "bound") == 0)
        out->rung = TY_RUNG_BOUND;
    else if (args->rung && strcmp(args->rung, "simulate") != 0)
        return cli_refuse(error, "--rung", "\"%s\" is not one of bound, simulate, full",
                          args->rung);
    if (out->rung == TY_RUNG_FULL && args->command->bit != CLI_PREDICT)
        return cli_refuse(error, "--rung full", "is for the command predict");
    if (out->rung != TY_RUNG_FULL && args->scenario)
        return cli_refuse(error, "--scenario", "needs --rung full");
    if (!args->flops)
        return TY_OK;
    char legal[200] = "";
    for (enum ty_flops flops = TY_FLOPS_MEGATRON; flops < TY_N_FLOPS; flops++) {
        if (strcmp(ty_flops_name(flops), args->flops) == 0)
            out->flops = flops;
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), "%s%s", *legal ? ", " : "",
                 ty_flops_name(flops));
    }
    if (out->flops == TY_FLOPS_AUTO)
        return cli_refuse(error, "--flops", "\"%s\" is not one of %s", args->flops, legal);
    return TY_OK;
}

/* Tables of the profile go before its constants. */
static ty_status load_tables(const struct cli_args *args, struct cli_inputs *out,
                             struct ty_error *error)
{
    char before[sizeof out->tables.unused]; /* a what-if loads many times and warns once */
    memcpy(before, out->tables.unused, sizeof before);
    ty_profile_tables_free(&out->tables);
    const ty_status status =
        ty_profile_tables_load(args->profile, &out->cluster, &out->tables, error);
    if (status == TY_OK)
        ty_profile_use(&out->profile, &out->tables);
    if (status == TY_OK && *out->tables.unused && !args->quiet &&
        strcmp(out->tables.unused, before) != 0)
        cli_warn("unused: of --profile %s %s", args->profile, out->tables.unused);
    return input_status(status, error);
}

void cli_inputs_free(struct cli_inputs *inputs)
{
    ty_profile_tables_free(&inputs->tables);
}

/* The framework asked for, or that of --args; a search also takes that of --stack. */
static ty_status find_framework(const struct cli_args *args, char name[24],
                                struct ty_framework *out, struct ty_error *error)
{
    struct ty_plan plan;
    name[0] = '\0';
    if (args->framework)
        snprintf(name, 24, "%s", args->framework);
    else if (args->arguments)
        return input_status(ty_launch_read(args->arguments, &plan, name, error), error);
    else if (args->stack && args->command->bit & (CLI_SWEEP | CLI_WHATIF | CLI_SIZE))
        for (size_t i = 0; !*name && ty_framework_name(i); i++)
            if (ty_framework_load(ty_framework_name(i), out, NULL) == TY_OK &&
                strncmp(out->stack, args->stack, strcspn(args->stack, "@")) == 0 &&
                ty_framework_takes(out, args->stack))
                snprintf(name, 24, "%s", out->name);
    return TY_OK;
}

/* The profile of the stack that goes with the framework, unless the user names another one. */
static ty_status load_profile_of(const struct cli_args *args, struct cli_inputs *out,
                                 struct ty_error *error)
{
    char name[24];
    struct cli_args *with = NULL;
    ty_status status = find_framework(args, name, &out->framework, error);
    if (status != TY_OK)
        return status;
    if (!*name || strcmp(name, "any") == 0)
        return cli_load_profile(args, args->profile, &out->cluster, &out->profile, error);
    status = ty_framework_load(name, &out->framework, error);
    if (status != TY_OK)
        return status;
    if (args->stack && !ty_framework_takes(&out->framework, args->stack))
        return cli_refuse(error, "--framework", "%s conflicts with --stack %s: it goes with %s",
                          name, args->stack, out->framework.stacks);
    with = malloc(sizeof *with);
    if (!with)
        return cli_refuse(error, "--framework", "out of memory");
    *with = *args;
    if (!with->stack && !with->profile)
        with->stack = out->framework.stack;
    status = cli_load_profile(with, args->profile, &out->cluster, &out->profile, error);
    free(with);
    if (status == TY_OK && args->profile &&
        !ty_framework_takes(&out->framework, out->profile.stack))
        status = cli_refuse(error, "--framework", "%s conflicts with the stack %s of --profile",
                            name, out->profile.stack);
    out->profile.framework = &out->framework;
    return status;
}

ty_status cli_load(const struct cli_args *args, bool lists, struct cli_inputs *out,
                   struct ty_error *error)
{
    ty_status status = load_options(args, &out->options, error);
    if (status == TY_OK)
        status = cli_load_model(args, args->model, &out->model, error);
    if (status == TY_OK)
        status = cli_load_cluster(args, args->cluster, &out->cluster, error);
    if (status == TY_OK)
        status = load_profile_of(args, out, error);
    if (status == TY_OK)
        status = load_tables(args, out, error);
    if (status == TY_OK)
        status = load_plan_file(args, &out->plan, error);
    if (status == TY_OK)
        status = apply_plan(args, lists, out, error);
    if (status == TY_OK)
        status = cli_load_price(args, out, error);
    if (status == TY_OK)
        status = cli_load_goal(args, out, error);
    if (status == TY_OK)
        status = cli_load_storage(args, out, error);
    out->space.fixed = out->plan;
    return status;
}

void cli_warn_unused(const struct cli_args *args, uint32_t used)
{
    static const char *const names[] = {"gpu",     "cluster", "model",  "plan",
                                        "profile", "price",   "storage"};
    if (args->quiet)
        return;
    for (uint32_t i = 0; i < args->n_settings; i++)
        if (!(used & 1u << args->settings[i].kind))
            cli_warn("unused: %s (nothing here depends on a %s)", args->settings[i].origin,
                     names[args->settings[i].kind]);
    const struct {
        const char *value, *name;
        enum ty_kind kind;
    } files[] = {
        {args->model, "--model", TY_KIND_MODEL},      {args->cluster, "--cluster", TY_KIND_CLUSTER},
        {args->plan, "--plan", TY_KIND_PLAN},         {args->profile, "--profile", TY_KIND_PROFILE},
        {args->goal.price, "--price", TY_KIND_PRICE}, {args->stack, "--stack", TY_KIND_PROFILE}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].value && !(used & 1u << files[i].kind))
            cli_warn("unused: %s (nothing here depends on a %s)", files[i].name,
                     names[files[i].kind]);
}
