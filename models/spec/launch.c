/* SPDX-License-Identifier: MIT
 * From a plan to launch arguments and back, by the rows of its framework's table. */
#include "models/spec/launch.h"
#include "models/fields.h"
#include "models/framework.h"
#include "models/spec/fields_read.h"
#include "models/spec/open.h"
#include "sim/error.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ------------------------------------------------------------------------------ */

#define ALL_TP_OVERLAP (TY_TP_RING | TY_TP_PIPELINED | TY_TP_BULK)

struct writing {
    const struct ty_plan *plan;
    const char *version;
    struct launch_pairs pairs;
};

static uint32_t number_of(const struct ty_plan *plan, const struct ty_field *field)
{
    uint32_t value;
    memcpy(&value, (const char *)plan + field->offset, sizeof value);
    return value;
}

/* The bits of a field of flags; none of tp_overlap means all. */
static uint32_t flags_of(const struct ty_plan *plan, const struct ty_field *field)
{
    const uint32_t value = number_of(plan, field);
    return !value && field->offset == offsetof(struct ty_plan, tp_overlap) ? ALL_TP_OVERLAP : value;
}

/* The value of a field as the table spells it. */
static const char *spell(const struct ty_plan *plan, const struct ty_field *field, char out[272])
{
    if (field->type == TY_FIELD_TEXT)
        text_format(out, 272, "%s", (const char *)plan + field->offset);
    else if (field->type == TY_FIELD_ENUM)
        text_format(out, 272, "%s", fields_enum_name(field, (int)number_of(plan, field)));
    else
        text_format(out, 272, "%u", number_of(plan, field));
    return out;
}

/* What stands for * and {dp}, {replicas}, {shard}, {local} in the value of an argument. */
static void fill(const struct ty_plan *plan, const char *pattern, const char *value, char out[272])
{
    const uint32_t group = plan->shard_group ? plan->shard_group : 1;
    char number[16];
    const char *text = pattern;
    if (strcmp(pattern, "*") == 0)
        text = value;
    else if (*pattern == '{')
        text = number;
    uint32_t computed = plan->dp;
    if (strcmp(pattern, "{replicas}") == 0)
        computed = plan->dp * plan->cp / group;
    else if (strcmp(pattern, "{shard}") == 0)
        computed = group / plan->cp;
    else if (strcmp(pattern, "{local}") == 0)
        computed = plan->pp > 1 ? plan->mbs * plan->n_micro : plan->mbs;
    text_format(number, sizeof number, "%u", computed);
    text_format(out, 272, "%s", text);
}

static bool emit(struct writing *w, const char *arguments, const char *value)
{
    struct launch_argument argument;
    for (const char *at = arguments; (at = launch_argument(at, &argument));) {
        char text[272];
        if (argument.asked)
            continue;
        fill(w->plan, argument.value, value, text);
        char *known = (char *)(uintptr_t)launch_value(&w->pairs, argument.key);
        if (known && argument.list)
            text_append(known, sizeof w->pairs.pair[0].value, ",%s", text);
        else if (!known &&
                 !launch_add(&w->pairs, argument.key, strlen(argument.key), text, strlen(text)))
            return false;
    }
    return true;
}

static ty_status lacks(const struct writing *w, const struct json_at *knob,
                       const struct ty_field *field, const char *value, struct ty_error *error)
{
    char legal[240] = "";
    struct json_at item = {0};
    struct launch_row row;
    while (launch_next_row(knob, &item, &row))
        text_append(legal, sizeof legal, "%s%s", *legal ? ", " : "", row.value);
    return error_set(error, TY_ERR_INPUT, field->path, "%s has no %s of a %s; it has: %s",
                     w->version, value, field->path, legal);
}

static ty_status write_flags(struct writing *w, const struct json_at *knob,
                             const struct ty_field *field, struct ty_error *error)
{
    const uint32_t asked = framework_flags_asked(field, w->plan);
    const uint32_t value = flags_of(w->plan, field);
    uint32_t left = value & asked;
    if (!left && field->offset == offsetof(struct ty_plan, recompute_modules))
        return lacks(w, knob, field, "none", error); /* nothing given means the default one */
    struct json_at item = {0};
    struct launch_row row;
    while (launch_next_row(knob, &item, &row)) {
        struct ty_plan plan;
        ty_init(TY_KIND_PLAN, &plan);
        ty_status status = field_from_text(field, row.value, &plan, error);
        if (status != TY_OK)
            return status;
        const uint32_t bit = number_of(&plan, field) & ~(uint32_t)TY_OVERLAP_GIVEN;
        const bool on = value & bit;
        if (!(bit & asked))
            continue;
        if (!on && !*row.arguments && !row.off)
            return error_set(error, TY_ERR_INPUT, field->path, "%s cannot switch %s off",
                             w->version, row.value);
        if (!emit(w, on ? row.arguments : row.off ? row.off : "", ""))
            return TY_ERR_LIMIT;
        left &= ~bit;
    }
    char names[128];
    return left ? lacks(w, knob, field, fields_flags_text(field, left, names, sizeof names), error)
                : TY_OK;
}

/* {shard} counts ranks without context parallelism, and 1 of them says no sharding at all. */
static bool holds_cp_groups(const struct ty_plan *plan)
{
    return plan->shard_group % plan->cp == 0 && plan->shard_group > plan->cp;
}

static ty_status write_knob(struct writing *w, const struct json_at *knob,
                            const struct ty_field *field, struct ty_error *error)
{
    char value[272];
    struct json_at item = {0};
    struct launch_row row;
    if (!framework_asks(field, w->plan))
        return TY_OK;
    if (field->type == TY_FIELD_FLAGS)
        return write_flags(w, knob, field, error);
    spell(w->plan, field, value);
    while (launch_next_row(knob, &item, &row)) {
        if (strstr(row.arguments, "{shard}") && !holds_cp_groups(w->plan))
            return error_set(error, TY_ERR_INPUT, field->path,
                             "of %s has to hold at least two whole groups of cp %u", w->version,
                             w->plan->cp);
        if (strcmp(row.value, value) == 0 || (strcmp(row.value, "*") == 0 && *value))
            return emit(w, row.arguments, value)
                       ? TY_OK
                       : error_set(error, TY_ERR_LIMIT, field->path, "too long");
    }
    return lacks(w, knob, field, value, error);
}

/* Fields that describe the data or the machine, not the launch. */
static bool is_no_knob(const char *path)
{
    static const char *const paths[] = {"gpus",     "moe_imbalance", "packed",     "offload_layers",
                                        "pp_group", "comm_sms",      "tp_overlap", NULL};
    for (const char *const *at = paths; *at; at++)
        if (strcmp(*at, path) == 0)
            return true;
    return false;
}

static ty_status write_knobs(struct writing *w, const struct json_at *knobs, struct ty_error *error)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    struct json_at knob = {0};
    ty_status status = TY_OK;
    while (status == TY_OK && json_next(knobs, &knob)) {
        const struct ty_field *field = fields_find(fields, n, json_key(&knob));
        status = field ? write_knob(w, &knob, field, error) : TY_ERR_INTERNAL;
    }
    for (size_t i = 0; status == TY_OK && i < n; i++) {
        const bool text = fields[i].type == TY_FIELD_TEXT;
        const uint32_t least = fields[i].type == TY_FIELD_ENUM; /* 0 auto, 1 none or off */
        const bool off = text ? ((const char *)w->plan)[fields[i].offset] == '\0'
                              : number_of(w->plan, &fields[i]) <= least;
        if (!json_find(knobs, fields[i].path, &knob) && !is_no_knob(fields[i].path) && !off)
            status =
                error_set(error, TY_ERR_INPUT, fields[i].path, "%s has no such knob", w->version);
    }
    return status;
}

static ty_status text_at(const struct json_at *top, const char *key, const char **out,
                         struct ty_error *error)
{
    struct json_at at;
    return json_find(top, key, &at) ? json_get_text(&at, out, error)
                                    : json_missing(top, key, error);
}

/* {nodes} and {gpus_per_node} of the line that starts it */
static void start_line(const char *pattern, uint32_t n_nodes, uint32_t per_node, char out[400])
{
    out[0] = '\0';
    while (*pattern) {
        const size_t n = strcspn(pattern, "{");
        text_append(out, 400, "%.*s", (int)n, pattern);
        pattern += n;
        if (!*pattern)
            break;
        text_append(out, 400, "%u", strncmp(pattern, "{nodes}", 7) == 0 ? n_nodes : per_node);
        pattern += strcspn(pattern, "}") + 1;
    }
}

ty_status ty_launch_write(const char *framework, const struct ty_plan *resolved,
                          uint32_t gpus_per_node, char **text, struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at knobs;
    struct ty_framework known;
    const char *form = "", *launch = "";
    ty_status status = ty_framework_load(framework, &known, error); /* names those there are */
    if (status != TY_OK)
        return status;
    struct writing *w = calloc(1, sizeof *w);
    if (!w)
        return error_set(error, TY_ERR_NOMEM, "launch", "out of memory");
    w->plan = resolved;
    status = spec_open("frameworks", framework, &document, error);
    if (status == TY_OK)
        status = text_at(&document.top, "version", &w->version, error);
    if (status == TY_OK)
        status = text_at(&document.top, "form", &form, error);
    if (status == TY_OK)
        status = text_at(&document.top, "launch", &launch, error);
    if (status == TY_OK && !json_find(&document.top, "knobs", &knobs))
        status = json_missing(&document.top, "knobs", error);
    if (status == TY_OK)
        status = write_knobs(w, &knobs, error);
    if (status == TY_OK) {
        char line[400], head[200];
        const uint32_t per_node =
            resolved->n_gpus < gpus_per_node ? resolved->n_gpus : gpus_per_node;
        const uint32_t n_nodes = (resolved->n_gpus + per_node - 1) / per_node;
        start_line(launch, n_nodes, per_node, line);
        text_format(head, sizeof head,
                    "%s; %u GPUs; under Slurm: srun -N %u --ntasks-per-node=1 before the line",
                    w->version, resolved->n_gpus, n_nodes);
        *text = launch_print(form, line, head, &w->pairs);
        status = *text ? TY_OK : error_set(error, TY_ERR_NOMEM, "launch", "out of memory");
    }
    json_free(&document);
    free(w);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool in_list(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        if (length == n && strncmp(at, word, n) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Whether a row's arguments are all there; star: what stands for *. */
static bool holds(const struct launch_pairs *pairs, const char *arguments, const char **star)
{
    struct launch_argument argument;
    for (const char *at = arguments; (at = launch_argument(at, &argument));) {
        const char *value = launch_value(pairs, argument.key);
        char quoted[128];
        if (!value)
            return false;
        const char *want = argument.value + (argument.value[0] == '['); /* ['text'] of a list */
        if (*want == '\'') {
            text_format(quoted, sizeof quoted, "%.*s", (int)strcspn(want + 1, "'"), want + 1);
            want = quoted;
        }
        if (strcmp(want, "*") == 0)
            *star = value;
        else if (argument.list ? !in_list(value, want)
                               : *want != '{' && *want && strcmp(value, want) != 0)
            return false;
    }
    return true;
}

static ty_status read_flags(const struct launch_pairs *pairs, const struct json_at *knob,
                            const struct ty_field *field, struct ty_plan *plan,
                            struct ty_error *error)
{
    struct json_at item = {0};
    struct launch_row row;
    uint32_t bits = 0;
    while (launch_next_row(knob, &item, &row)) {
        struct ty_plan one;
        const char *star;
        ty_init(TY_KIND_PLAN, &one);
        const ty_status status = field_from_text(field, row.value, &one, error);
        if (status != TY_OK)
            return status;
        const bool off = row.off && holds(pairs, row.off, &star);
        if (!off && holds(pairs, row.arguments, &star))
            bits |= number_of(&one, field);
    }
    if (field->offset == offsetof(struct ty_plan, tp_overlap) && bits == ALL_TP_OVERLAP)
        bits = 0;
    bits |= (uint32_t)field->max; /* given */
    memcpy((char *)plan + field->offset, &bits, sizeof bits);
    return TY_OK;
}

/* Ranks of a sharding group from its ranks without context parallelism, {shard}, or from the
 * number of groups, {replicas}: D cp / replicas = GPUs / (tp pp replicas). "": GPUs not said. */
static const char *group_text(const struct launch_pairs *pairs, const char *arguments,
                              const struct ty_plan *plan, char out[16])
{
    struct launch_argument argument;
    const uint64_t tp = plan->tp ? plan->tp : 1, pp = plan->pp ? plan->pp : 1;
    const uint64_t cp = plan->cp ? plan->cp : 1;
    uint64_t ranks = 0;
    for (const char *at = arguments; !ranks && (at = launch_argument(at, &argument));) {
        const uint64_t value = strtoul(launch_value(pairs, argument.key), NULL, 10);
        if (strcmp(argument.value, "{shard}") == 0 && value <= UINT32_MAX / cp)
            ranks = value * cp;
        else if (strcmp(argument.value, "{replicas}") == 0 && value && value <= plan->n_gpus)
            ranks = plan->n_gpus / (tp * pp * value);
    }
    out[0] = '\0';
    if (ranks)
        text_format(out, 16, "%u", (uint32_t)ranks);
    return out;
}

static ty_status read_knob(const struct launch_pairs *pairs, const struct json_at *knob,
                           const struct ty_field *field, struct ty_plan *plan,
                           struct ty_error *error)
{
    struct json_at item = {0};
    struct launch_row row;
    if (!framework_asks(field, plan)) /* sizes and kinds come first in the tables */
        return TY_OK;
    if (field->type == TY_FIELD_FLAGS)
        return read_flags(pairs, knob, field, plan, error);
    const char *found = NULL, *silent = NULL;
    char group[16];
    while (!found && launch_next_row(knob, &item, &row)) {
        const char *star = row.value;
        if (!*row.arguments)
            silent = silent ? "" : row.value; /* what it is when nothing says so; two: open */
        else if (holds(pairs, row.arguments, &star))
            found = field->offset == offsetof(struct ty_plan, shard_group) && *star == '*'
                        ? group_text(pairs, row.arguments, plan, group)
                        : star;
    }
    found = found ? found : silent;
    if (!found || !*found || strcmp(found, "0") == 0)
        return TY_OK; /* not said */
    return field_from_text(field, found, plan, error);
}

/* GPUs of the line that starts it: nodes times GPUs of a node. */
static void read_gpus(const char *text, struct ty_plan *plan)
{
    static const char *const names[2][3] = {{"nnodes", "num_nodes", NULL},
                                            {"nproc", "num_gpus", NULL}};
    uint64_t product = 1;
    for (int i = 0; i < 2; i++) {
        const char *at = NULL;
        for (int k = 0; !at && names[i][k]; k++)
            at = strstr(text, names[i][k]);
        if (!at)
            return;
        at += strcspn(at, "= \n");
        at += strspn(at, "= ");
        product *= strtoul(at, NULL, 10);
    }
    if (product > 0 && product <= 16777216)
        plan->n_gpus = (uint32_t)product;
}

static ty_status read_knobs(const char *framework, const struct launch_pairs *pairs,
                            struct ty_plan *plan, struct ty_error *error)
{
    struct json_document document = {0};
    struct json_at knobs, knob = {0};
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    ty_status status = spec_open("frameworks", framework, &document, error);
    if (status == TY_OK && !json_find(&document.top, "knobs", &knobs))
        status = json_missing(&document.top, "knobs", error);
    while (status == TY_OK && json_next(&knobs, &knob)) {
        const struct ty_field *field = fields_find(fields, n, json_key(&knob));
        status = field ? read_knob(pairs, &knob, field, plan, error) : TY_ERR_INTERNAL;
    }
    json_free(&document);
    return status;
}

static ty_status read_text(const char *path, char **out, struct ty_error *error)
{
    enum { MOST = 1 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = malloc(MOST + 1);
    if (!file || !text) {
        if (file)
            fclose(file);
        free(text);
        return file ? error_set(error, TY_ERR_NOMEM, path, "out of memory")
                    : error_set(error, TY_ERR_IO, path, "cannot be read");
    }
    const size_t n = fread(text, 1, MOST + 1, file);
    fclose(file);
    if (n > MOST || memchr(text, '\0', n)) {
        free(text);
        return error_set(error, TY_ERR_INPUT, path, "is no text of launch arguments");
    }
    text[n] = '\0';
    *out = text;
    return TY_OK;
}

ty_status ty_launch_read(const char *path, struct ty_plan *plan, char *name, struct ty_error *error)
{
    static const char *const by_form[][2] = {{"flags", "megatron"},
                                             {"overrides", "nemo"},
                                             {"toml", "torchtitan"},
                                             {"json", "deepspeed"}};
    char *text = NULL;
    const char *form = "";
    ty_status status = read_text(path, &text, error);
    if (status != TY_OK)
        return status;
    struct launch_pairs *pairs = calloc(1, sizeof *pairs);
    struct ty_plan read;
    ty_init(TY_KIND_PLAN, &read);
    read_gpus(text, &read);
    status = pairs ? launch_parse(path, text, &form, pairs, error)
                   : error_set(error, TY_ERR_NOMEM, path, "out of memory");
    for (size_t i = 0; i < 4 && status == TY_OK; i++)
        if (strcmp(by_form[i][0], form) == 0) {
            status = read_knobs(by_form[i][1], pairs, &read, error);
            text_format(name, sizeof((struct ty_framework *)0)->name, "%s", by_form[i][1]);
        }
    if (status == TY_OK && pairs->n == 0)
        status = error_set(error, TY_ERR_INPUT, path, "holds no launch arguments");
    free(pairs);
    free(text);
    if (status == TY_OK)
        *plan = read;
    return status;
}
