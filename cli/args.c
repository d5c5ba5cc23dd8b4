/* SPDX-License-Identifier: MIT
 * The command-line parser: reads the option table and the field table of a plan, so a flag that is
 * not in a table cannot exist. Knows nothing of what an option means. */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 256 /* that a search starts */

void cli_guess_offer(struct cli_guess *guess, const char *candidate)
{
    const size_t distance = ty_text_distance(guess->word, candidate);
    const size_t limit = strlen(guess->word) <= 3 ? 1 : 2;
    if (distance > limit || (*guess->best && distance >= guess->distance))
        return;
    snprintf(guess->best, sizeof guess->best, "%s", candidate);
    guess->distance = distance;
}

const char *cli_flag_name(const struct ty_field *field, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", field->path);
    for (char *c = out; *c; c++)
        if (*c == '_')
            *c = '-';
    return out;
}

bool cli_field_is_switch(const struct ty_field *field)
{
    const char *const *names = field->names;
    return field->type == TY_FIELD_ENUM && names[0] && strcmp(names[0], "auto") == 0 && names[1] &&
           strcmp(names[1], "off") == 0 && names[2] && strcmp(names[2], "on") == 0 && !names[3];
}

static ty_status parse_unsigned(const char *name, const char *text, uint64_t max, uint64_t *out,
                                struct ty_error *error)
{
    char *end, where[40];
    snprintf(where, sizeof where, "--%s", name);
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > max)
        return cli_refuse(error, where, "\"%s\" is not a whole number from 0 to %llu", text,
                          (unsigned long long)max);
    *out = value;
    return TY_OK;
}

static ty_status add_setting(struct cli_args *args, enum ty_kind kind, const char *path,
                             const char *text, struct ty_error *error)
{
    if (args->n_settings == CLI_MAX_SETTINGS)
        return cli_refuse(error, path, "more than %d fields are set", CLI_MAX_SETTINGS);
    args->settings[args->n_settings++] = (struct cli_setting){kind, path, text, path};
    return TY_OK;
}

/* PATH=VALUE with PATH = kind.field */
static ty_status parse_set(struct cli_args *args, const char *text, struct ty_error *error)
{
    static const struct {
        const char *prefix;
        enum ty_kind kind;
        size_t kept; /* end of the prefix that is part of the path */
    } kinds[] = {{"cluster.storage.", TY_KIND_STORAGE, 8},
                 {"plan.input.", TY_KIND_STORAGE, 6},
                 {"plan.checkpoint.", TY_KIND_STORAGE, 11},
                 {"storage.", TY_KIND_STORAGE, 8},
                 {"input.", TY_KIND_STORAGE, 6},
                 {"checkpoint.", TY_KIND_STORAGE, 11},
                 {"model.", TY_KIND_MODEL, 0},
                 {"cluster.", TY_KIND_CLUSTER, 0},
                 {"plan.", TY_KIND_PLAN, 0},
                 {"profile.", TY_KIND_PROFILE, 0},
                 {"gpu.", TY_KIND_CLUSTER, 4}, /* of the cluster */
                 {"price.", TY_KIND_PRICE, 0}};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return cli_refuse(error, "--set", "\"%s\" is not PATH=VALUE", text);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t prefix = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, prefix) != 0)
            continue;
        prefix -= kinds[i].kept;
        size_t length = (size_t)(equals - text) - prefix;
        if (args->n_settings == CLI_MAX_SETTINGS || length >= sizeof args->paths[0])
            return cli_refuse(error, "--set", "\"%s\": path too long or too many settings", text);
        char *path = args->paths[args->n_settings];
        memcpy(path, text + prefix, length);
        path[length] = '\0';
        ty_status status = add_setting(args, kinds[i].kind, path, equals + 1, error);
        args->settings[args->n_settings - 1].origin = text;
        return status;
    }
    return cli_refuse(error, "--set",
                      "\"%.*s\" must begin with model., cluster., gpu., plan., profile., price., "
                      "storage., input., checkpoint.",
                      (int)(equals - text), text);
}

/* Options that are fields of storage, input and checkpoints, with the unit of a bare number. */
static const struct {
    const char *option, *path, *unit;
} field_options[] = {
    {"input", "input.kind", ""},           {"sample-bytes", "input.sample_bytes", " B"},
    {"decode-ms", "input.decode", " ms"},  {"workers", "input.workers", ""},
    {"prefetch", "input.prefetch", ""},    {"storage", "input.storage", ""},
    {"checkpoint", "checkpoint.mode", ""}, {"checkpoint-storage", "checkpoint.storage", ""}};

/* "500 steps", or a time. */
static ty_status parse_every(const char *text, const char **path, char *value, size_t bytes,
                             struct ty_error *error)
{
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits + strspn(text + digits, " ");
    double time_s;
    *path = "checkpoint.every";
    if (digits > 0 && strcmp(unit, "steps") == 0) {
        *path = "checkpoint.every_steps";
        snprintf(value, bytes, "%.*s", (int)digits, text);
        return TY_OK;
    }
    const ty_status status = cli_time_parse(text, "--checkpoint-every", &time_s, error);
    if (status == TY_OK)
        snprintf(value, bytes, "%.17g s", time_s);
    return status;
}

static ty_status parse_field(struct cli_args *args, const char *option, const char *text,
                             struct ty_error *error)
{
    const char *path = NULL, *unit = "";
    char value[sizeof args->paths[0]];
    for (size_t i = 0; i < sizeof field_options / sizeof *field_options; i++)
        if (strcmp(field_options[i].option, option) == 0) {
            path = field_options[i].path;
            unit = field_options[i].unit;
        }
    const bool bare = text[strspn(text, "0123456789.eE+-")] == '\0';
    if (strlen(text) + 8 > sizeof value)
        return cli_refuse(error, option, "\"%.40s\" is too long", text);
    snprintf(value, sizeof value, "%s%s", text, bare ? unit : "");
    ty_status status = path ? TY_OK : parse_every(text, &path, value, sizeof value, error);
    if (status == TY_OK)
        status = add_setting(args, TY_KIND_STORAGE, path, text, error);
    if (status != TY_OK)
        return status;
    struct cli_setting *setting = &args->settings[args->n_settings - 1];
    memcpy(args->paths[args->n_settings - 1], value, sizeof value);
    setting->text = args->paths[args->n_settings - 1];
    return TY_OK;
}

static ty_status store_option(struct cli_args *args, const struct cli_option *option,
                              const char *text, struct ty_error *error)
{
    char *place = (char *)args + option->offset;
    uint64_t number = 0;
    switch (option->type) {
    case CLI_SWITCH:
        *(bool *)place = true;
        return TY_OK;
    case CLI_TEXT:
        *(const char **)place = text;
        return *text ? TY_OK
                     : cli_refuse(error, args->command->name, "--%s: its value is empty",
                                  option->name);
    case CLI_SET:
        return parse_set(args, text, error);
    case CLI_FIELD:
        return parse_field(args, option->name, text, error);
    case CLI_U32:
    case CLI_U64: {
        uint64_t max = option->type == CLI_U32 ? UINT32_MAX : UINT64_MAX;
        if (place == (void *)&args->jobs)
            max = MAX_THREADS;
        ty_status status = parse_unsigned(option->name, text, max, &number, error);
        if (status == TY_OK && option->type == CLI_U32)
            *(uint32_t *)place = (uint32_t)number;
        else if (status == TY_OK)
            *(uint64_t *)place = number;
        return status;
    }
    }
    return TY_ERR_INTERNAL;
}

/* Sizes that follow from others: named, so that nobody is told of a typing error. */
static const struct {
    const char *name, *why;
} derived_options[] = {{"dp", "it is gpus / (tp pp cp)"},
                       {"edp", "it is gpus / (etp ep pp)"},
                       {"n-micro", "it is gbs / (mbs dp)"}};

static ty_status refuse_unknown(const struct cli_args *args, const char *name,
                                struct ty_error *error)
{
    for (size_t i = 0; i < sizeof derived_options / sizeof derived_options[0]; i++)
        if (strcmp(derived_options[i].name, name) == 0)
            return cli_refuse(error, args->command->name, "--%s is no input: %s", name,
                              derived_options[i].why);
    struct cli_guess guess = {.word = name};
    char flag[64];
    for (const struct cli_option *option = cli_options; option->name; option++)
        if (option->commands & args->command->bit)
            cli_guess_offer(&guess, option->name);
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n && args->command->bit & CLI_TAKES_PLAN; i++)
        cli_guess_offer(&guess, cli_flag_name(&fields[i], flag, sizeof flag));
    if (*guess.best)
        return cli_refuse(error, args->command->name, "unknown option --%s; did you mean --%s?",
                          name, guess.best);
    return cli_refuse(error, args->command->name,
                      "unknown option --%s; \"trainyard help %s\" lists them", name,
                      args->command->name);
}

static const struct cli_option *find_option(const struct cli_args *args, const char *name,
                                            char letter)
{
    for (const struct cli_option *option = cli_options; option->name; option++)
        if (option->commands & args->command->bit &&
            (name ? strcmp(option->name, name) == 0 : option->letter == letter))
            return option;
    return NULL;
}

static const struct ty_field *find_plan_field(const struct cli_args *args, const char *name)
{
    char flag[64];
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (size_t i = 0; i < n && args->command->bit & CLI_TAKES_PLAN; i++)
        if (strcmp(cli_flag_name(&fields[i], flag, sizeof flag), name) == 0)
            return &fields[i];
    return NULL;
}

/* The value of an option: after '=', or the next argument. */
static const char *take_value(struct cli_args *args, int *at, const char *inline_value)
{
    if (inline_value)
        return inline_value;
    return *at + 1 < args->argc ? args->argv[++*at] : NULL;
}

static bool is_switch_word(const char *word)
{
    return word &&
           (strcmp(word, "on") == 0 || strcmp(word, "off") == 0 || strcmp(word, "auto") == 0);
}

static ty_status parse_plan_flag(struct cli_args *args, const struct ty_field *field, int *at,
                                 const char *inline_value, struct ty_error *error)
{
    const char *next = *at + 1 < args->argc ? args->argv[*at + 1] : NULL;
    const char *origin = args->argv[*at];
    const char *value = "on";
    if (!cli_field_is_switch(field) || inline_value || is_switch_word(next))
        value = take_value(args, at, inline_value);
    if (!value)
        return cli_refuse(error, origin, "needs a value: %s", field->help);
    ty_status status = add_setting(args, TY_KIND_PLAN, field->path, value, error);
    if (status == TY_OK)
        args->settings[args->n_settings - 1].origin = origin;
    return status;
}

static ty_status parse_option(struct cli_args *args, int *at, struct ty_error *error)
{
    const char *word = args->argv[*at];
    char name[64] = "";
    const char *inline_value = NULL;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
        if (length < sizeof name)
            memcpy(name, word + 2, length);
        inline_value = equals ? equals + 1 : NULL;
    } else if (word[2]) {
        inline_value = word + 2;
    }
    const struct cli_option *option = find_option(args, word[1] == '-' ? name : NULL, word[1]);
    if (option && option->type == CLI_SWITCH && inline_value)
        return cli_refuse(error, word, "takes no value");
    if (option) {
        const char *value = option->type == CLI_SWITCH ? "" : take_value(args, at, inline_value);
        if (!value)
            return cli_refuse(error, word, "needs a value: %s", option->value);
        ty_status status = store_option(args, option, value, error);
        if (status == TY_OK && option->type == CLI_FIELD)
            args->settings[args->n_settings - 1].origin = word;
        return status;
    }
    const struct ty_field *field = word[1] == '-' ? find_plan_field(args, name) : NULL;
    if (field)
        return parse_plan_flag(args, field, at, inline_value, error);
    if (word[1] == '-')
        return refuse_unknown(args, *name ? name : word + 2, error);
    return cli_refuse(error, args->command->name, "unknown option %s", word);
}

ty_status cli_parse(struct cli_args *args, struct ty_error *error)
{
    bool options = true;
    for (int at = 2; at < args->argc; at++) {
        const char *word = args->argv[at];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1]) {
            ty_status status = parse_option(args, &at, error);
            if (status != TY_OK)
                return status;
        } else if (args->n_words == args->command->max_words) {
            return cli_refuse(error, args->command->name, "unexpected argument \"%s\"", word);
        } else {
            args->words[args->n_words++] = word;
        }
    }
    return TY_OK;
}
