/* SPDX-License-Identifier: MIT
 * What a search is to look for, from the command line: objectives, limits, failures. */
#include "cli/cli.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- times and tokens --------------------------------------------------------------------- */

struct suffix {
    const char *text;
    double factor;
};

/* A number >= 0 with one of the suffixes; a blank between them may be there. */
static bool read_suffixed(const char *text, const struct suffix *suffixes, double *out)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || !(number >= 0.0) || !isfinite(number))
        return false;
    end += strspn(end, " ");
    for (const struct suffix *suffix = suffixes; suffix->text; suffix++)
        if (strcmp(end, suffix->text) == 0) {
            *out = number * suffix->factor;
            return true;
        }
    return false;
}

ty_status cli_time_parse(const char *text, const char *where, double *out, struct ty_error *error)
{
    static const struct suffix suffixes[] = {
        {"", 1},         {"s", 1},          {"min", 60},         {"h", 3600}, {"d", 86400},
        {"days", 86400}, {"weeks", 604800}, {"years", 31557600}, {NULL, 0}};
    if (read_suffixed(text, suffixes, out))
        return TY_OK;
    return cli_refuse(error, where, "\"%s\" is not a time such as 90 s, 30 min, 12 h or 60 d",
                      text);
}

ty_status cli_tokens_parse(const char *text, const char *where, double *out, struct ty_error *error)
{
    static const struct suffix suffixes[] = {
        {"", 1},       {"K", 1e3},    {"M", 1e6},    {"B", 1e9},    {"G", 1e9},     {"T", 1e12},
        {"ktok", 1e3}, {"Ktok", 1e3}, {"Mtok", 1e6}, {"Gtok", 1e9}, {"Ttok", 1e12}, {NULL, 0}};
    if (read_suffixed(text, suffixes, out) && *out > 0.0)
        return TY_OK;
    return cli_refuse(error, where, "\"%s\" is not a number of tokens such as 15T or 300B", text);
}

/* ---- goal --------------------------------------------------------------------------------- */

static ty_status read_objective(const char *name, size_t length, const char *where,
                                struct ty_goal *goal, struct ty_error *error)
{
    char legal[160] = "";
    for (enum ty_objective objective = 1; objective < TY_N_OBJECTIVES; objective++) {
        const char *known = ty_objective_name(objective);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            goal->objective[goal->n_objectives++] = objective;
            return TY_OK;
        }
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), "%s%s", *legal ? ", " : "",
                 known);
    }
    return cli_refuse(error, where, "\"%.*s\" is not one of %s", (int)length, name, legal);
}

static ty_status read_objectives(const struct cli_args *args, struct ty_goal *goal,
                                 struct ty_error *error)
{
    if (args->goal.objective && args->goal.pareto)
        return cli_refuse(error, "--pareto", "asks for a set and --objective for a ranking");
    if (args->goal.objective)
        return read_objective(args->goal.objective, strlen(args->goal.objective), "--objective",
                              goal, error);
    const char *at = args->goal.pareto;
    while (at) {
        const size_t length = strcspn(at, ",");
        if (goal->n_objectives == TY_MAX_OBJECTIVES)
            return cli_refuse(error, "--pareto", "takes two or three objectives");
        ty_status status = read_objective(at, length, "--pareto", goal, error);
        if (status != TY_OK)
            return status;
        at = at[length] ? at + length + 1 : NULL;
    }
    if (args->goal.pareto && goal->n_objectives < 2)
        return cli_refuse(error, "--pareto", "takes two or three objectives");
    return TY_OK;
}

/* An amount of money, or a ratio. */
static ty_status read_number(const char *text, const char *where, enum ty_unit unit, double *out,
                             struct ty_error *error)
{
    struct ty_error why = {0};
    if (ty_quantity_parse(text, unit, out, &why) == TY_OK && *out >= 0.0)
        return TY_OK;
    return cli_refuse(error, where, "%s", *why.text ? why.text : "must be 0 or more");
}

static ty_status read_limits(const struct cli_args *args, struct ty_goal *goal,
                             struct ty_error *error)
{
    ty_status status = TY_OK;
    if (args->goal.tokens)
        status = cli_tokens_parse(args->goal.tokens, "--tokens", &goal->tokens, error);
    if (status == TY_OK && args->goal.deadline)
        status = cli_time_parse(args->goal.deadline, "--deadline", &goal->deadline_s, error);
    if (status == TY_OK && args->goal.budget)
        status = read_number(args->goal.budget, "--budget", TY_UNIT_NONE, &goal->budget, error);
    if (status == TY_OK && args->goal.headroom)
        status = read_number(args->goal.headroom, "--headroom", TY_UNIT_BYTES,
                             &goal->min_headroom_bytes, error);
    if (status == TY_OK && args->goal.min_mfu)
        status = read_number(args->goal.min_mfu, "--min-mfu", TY_UNIT_RATIO, &goal->min_mfu, error);
    if (status == TY_OK && goal->min_mfu > 1.0)
        return cli_refuse(error, "--min-mfu", "\"%s\" is above 1; legal: 0 to 1, or 0 %% to 100 %%",
                          args->goal.min_mfu);
    return status;
}

/* "6000h" of a node, "50000h/gpu", "3h/job". */
static ty_status read_mtbf(const char *text, double gpus_per_node, struct ty_failures *out,
                           struct ty_error *error)
{
    const char *slash = strchr(text, '/');
    char time[32];
    double mtbf_s;
    snprintf(time, sizeof time, "%.*s", (int)(slash ? slash - text : (long)strlen(text)), text);
    ty_status status = cli_time_parse(time, "--mtbf", &mtbf_s, error);
    if (status != TY_OK)
        return status;
    if (slash && strcmp(slash, "/job") == 0)
        out->job_mtbf_s = mtbf_s;
    else if (slash && strcmp(slash, "/gpu") == 0)
        out->node_mtbf_s = mtbf_s / gpus_per_node;
    else if (!slash || strcmp(slash, "/node") == 0)
        out->node_mtbf_s = mtbf_s;
    else
        return cli_refuse(error, "--mtbf", "\"%s\" is not a time of /node, /gpu or /job", text);
    return mtbf_s > 0.0 ? TY_OK : cli_refuse(error, "--mtbf", "must be above 0");
}

static ty_status read_counts(const struct cli_args *args, struct ty_failures *out,
                             struct ty_error *error)
{
    const struct {
        const char *text, *where;
        double *value;
    } numbers[] = {{args->goal.spares, "--spares", &out->spares_held},
                   {args->goal.shape, "--mtbf-shape", &out->weibull_shape}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!numbers[i].text)
            continue;
        if (!args->goal.mtbf)
            return cli_refuse(error, numbers[i].where, "has no effect without --mtbf");
        ty_status status =
            read_number(numbers[i].text, numbers[i].where, TY_UNIT_NONE, numbers[i].value, error);
        if (status != TY_OK)
            return status;
        if (!(*numbers[i].value > 0.0))
            return cli_refuse(error, numbers[i].where, "must be above 0");
    }
    return TY_OK;
}

/* Stragglers need no failure. */
static ty_status read_stragglers(const struct cli_args *args, struct ty_failures *out,
                                 struct ty_error *error)
{
    const char *slow = args->goal.slow_node, *variation = args->goal.variation;
    ty_status status = TY_OK;
    if (slow)
        status = read_number(slow, "--slow-node", TY_UNIT_RATIO, &out->slowest_ratio, error);
    if (status == TY_OK && slow && !(out->slowest_ratio >= 1.0))
        return cli_refuse(error, "--slow-node", "\"%s\" is below 1; legal: 1 or more", slow);
    if (status == TY_OK && variation)
        status =
            read_number(variation, "--step-variation", TY_UNIT_RATIO, &out->step_variation, error);
    if (status == TY_OK && variation && !(out->step_variation <= 1.0))
        return cli_refuse(error, "--step-variation",
                          "\"%s\" is above 1; legal: 0 to 1, or 0 %% to 100 %%", variation);
    return status;
}

static ty_status read_failures(const struct cli_args *args, double gpus_per_node,
                               struct ty_failures *out, struct ty_error *error)
{
    const double unknown = (double)NAN;
    *out = (struct ty_failures){.node_mtbf_s = unknown,
                                .save_s = unknown,
                                .restart_s = unknown,
                                .repair_s = unknown,
                                .interval_s = unknown,
                                .spare_probability = unknown};
    if (args->goal.mtbf) {
        ty_status status = read_mtbf(args->goal.mtbf, gpus_per_node, out, error);
        if (status != TY_OK)
            return status;
    }
    const struct {
        const char *text, *where;
        double *value;
    } times[] = {{args->goal.repair, "--repair", &out->repair_s},
                 {args->goal.restart, "--restart", &out->restart_s},
                 {args->goal.save, "--save", &out->save_s},
                 {args->goal.detect, "--detect", &out->detect_s},
                 {args->goal.preempt, "--preempt", &out->preemption_s}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (!times[i].text)
            continue;
        if (!args->goal.mtbf && times[i].value != &out->preemption_s && !args->goal.preempt)
            return cli_refuse(error, times[i].where, "has no effect without --mtbf");
        ty_status status = cli_time_parse(times[i].text, times[i].where, times[i].value, error);
        if (status != TY_OK)
            return status;
    }
    const ty_status status = read_counts(args, out, error);
    return status == TY_OK ? read_stragglers(args, out, error) : status;
}

static double node_gpus(const struct ty_cluster *cluster)
{
    return cluster->gpus_per_node ? cluster->gpus_per_node : 8.0;
}

/* The options that take prices, where an option needs them. */
static ty_status check_prices(const struct cli_args *args, const struct ty_goal *goal,
                              struct ty_error *error)
{
    bool ranks_by_cost = false;
    for (uint32_t i = 0; i < goal->n_objectives; i++)
        ranks_by_cost |= goal->objective[i] == TY_OBJECTIVE_COST_PER_TOKEN;
    if (goal->price || (!ranks_by_cost && isnan(goal->budget)))
        return TY_OK;
    return cli_refuse(error,
                      !ranks_by_cost         ? "--budget"
                      : args->goal.objective ? "--objective cost_per_token"
                                             : "--pareto",
                      "needs prices: give --price FILE or --set price.gpu_hour=MONEY");
}

ty_status cli_load_goal(const struct cli_args *args, struct cli_inputs *out, struct ty_error *error)
{
    struct ty_goal *goal = &out->goal;
    ty_goal_init(goal);
    ty_status status = read_objectives(args, goal, error);
    if (status == TY_OK)
        status = read_limits(args, goal, error);
    if (status == TY_OK)
        status = read_failures(args, node_gpus(&out->cluster), &out->failures, error);
    goal->price = out->options.price;
    const bool any =
        args->goal.mtbf || args->goal.preempt || args->goal.slow_node || args->goal.variation;
    goal->failures = any ? &out->failures : NULL;
    return status == TY_OK ? check_prices(args, goal, error) : status;
}
