/* SPDX-License-Identifier: MIT
 * `trainyard calibrate runs`: a user's own measured steps into a site file. */
#include "cli/cli.h"
#include "include/trainyard_calibrate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char not_legal[] = "no step time above 0, or the plan is not legal: see predict";
static const double SMALL_EFFECT = 0.002; /* of a constant on the time: not worth a line */
static const char *const ratio_names[TY_N_SITE] = {"compute", "comm", "host"};

/* ---- the runs ----------------------------------------------------------------------------- */

/* Model, cluster, profile and plan of the command line as a run without a time. */
static ty_status load_like(const struct cli_args *args, struct ty_run *like, struct ty_error *error)
{
    memset(like, 0, sizeof *like);
    ty_status status = cli_load_model(args, args->model, &like->model, error);
    if (status == TY_OK)
        status = cli_load_cluster(args, args->cluster, &like->cluster, error);
    if (status == TY_OK)
        status = cli_load_profile(args, args->profile, &like->cluster, &like->profile, error);
    return status == TY_OK ? cli_load_plan(args, &like->plan, error) : status;
}

static ty_status measured_s(const struct cli_args *args, const struct ty_run *run, double *out,
                            struct ty_error *error)
{
    struct ty_plan plan;
    double rate;
    if (args->step_time)
        return ty_quantity_parse(args->step_time, TY_UNIT_S, out, error);
    ty_status status = ty_quantity_parse(args->tokens_per_s, TY_UNIT_NONE, &rate, error);
    if (status == TY_OK)
        status = ty_plan_resolve(&run->model, &run->cluster, &run->profile, &run->plan, &plan, NULL,
                                 0, NULL);
    if (status == TY_OK)
        *out = (double)plan.gbs * plan.seq / rate;
    return status;
}

static ty_status add_flags(const struct cli_args *args, struct ty_run *like, struct ty_runs *runs,
                           struct ty_error *error)
{
    snprintf(like->row.id, sizeof like->row.id, "flags");
    if (args->step_time && args->tokens_per_s)
        return cli_refuse(error, "--step-time", "not together with --tokens-per-s");
    ty_status status = measured_s(args, like, &like->row.measured_s, error);
    if (status != TY_OK) {
        snprintf(error->where, sizeof error->where, "%s",
                 args->step_time ? "--step-time" : "--tokens-per-s");
        return status;
    }
    if (!(like->row.measured_s > 0.0 && isfinite(like->row.measured_s)))
        return cli_refuse(error, args->step_time ? "--step-time" : "--tokens-per-s",
                          "must be above 0");
    return ty_runs_add(like, runs);
}

static bool is_table(const char *path)
{
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".csv") == 0;
}

/* A file that cannot be read is reported and the others are used. */
static ty_status gather(struct cli_args *args, struct ty_runs *runs, struct ty_error *error)
{
    const bool flags = args->step_time || args->tokens_per_s;
    bool needs_like = flags;
    for (uint32_t i = 1; i < args->n_words; i++)
        needs_like |= !is_table(args->words[i]);
    struct ty_run *like = malloc(sizeof *like);
    ty_status status = like ? TY_OK : TY_ERR_NOMEM;
    if (status == TY_OK && needs_like)
        status = load_like(args, like, error);
    for (uint32_t i = 1; status == TY_OK && i < args->n_words; i++) {
        struct ty_error why = {0};
        const char *path = args->words[i];
        const ty_status added = is_table(path) ? ty_runs_add_table(path, runs, &why)
                                               : ty_runs_add_log(path, like, runs, &why);
        if (added != TY_OK)
            cli_fail(&why);
    }
    if (status == TY_OK && flags)
        status = add_flags(args, like, runs, error);
    free(like);
    if (!needs_like)
        cli_warn_unused(args, 0);
    return status;
}

/* ---- text --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct errors {
    double median, mean, p90; /* fractions */
};

static struct errors errors_of(const struct ty_runs *runs, const double *time_s)
{
    struct errors out = {0};
    double *error = calloc(runs->n + 1, sizeof *error);
    uint32_t n = 0;
    for (uint32_t i = 0; error && i < runs->n; i++)
        if (!isnan(time_s[i]))
            error[n++] = fabs(time_s[i] / runs->run[i].row.measured_s - 1.0);
    if (n) {
        qsort(error, n, sizeof *error, by_value);
        out.median = 0.5 * (error[(n - 1) / 2] + error[n / 2]);
        out.p90 = error[(uint32_t)ceil(0.9 * n) - 1];
    }
    for (uint32_t i = 0; i < n; i++)
        out.mean += error[i] / n;
    free(error);
    return out;
}

static void print_runs(const struct ty_runs *runs, const struct ty_site_fit *fit)
{
    char measured[40], before[40], after[40];
    printf("%-24s %11s %11s %8s %11s %8s\n", "run", "measured", "no site", "error", "site",
           "error");
    for (uint32_t i = 0; i < runs->n; i++) {
        const struct ty_run_row *row = &runs->run[i].row;
        if (isnan(fit->before_s[i])) {
            printf("%-24s not used: %s\n", row->id, *row->refused ? row->refused : not_legal);
            continue;
        }
        printf("%-24s %11s %11s %+7.1f%% %11s %+7.1f%%\n", row->id,
               cli_time_text(row->measured_s, measured, sizeof measured),
               cli_time_text(fit->before_s[i], before, sizeof before),
               100.0 * (fit->before_s[i] / row->measured_s - 1.0),
               cli_time_text(fit->after_s[i], after, sizeof after),
               100.0 * (fit->after_s[i] / row->measured_s - 1.0));
    }
}

/* Far from the model whatever the site: another cluster, plan or model than was measured. */
static void print_suspects(const struct ty_runs *runs, const struct ty_site_fit *fit)
{
    for (uint32_t i = 0; i < runs->n; i++) {
        const struct ty_run_row *row = &runs->run[i].row;
        const double ratio = row->measured_s / fit->after_s[i];
        if (ratio > 2.0 || ratio < 0.5)
            printf(
                "  %s took %.2g times what is predicted, which no site explains: check --cluster, "
                "--model and the plan\n",
                row->id, ratio);
    }
}

/* The constant of the fit that moves the runs most after `before` others; UINT32_MAX: by less than
 * SMALL_EFFECT. */
static uint32_t next_constant(const struct ty_site_fit *fit, double below)
{
    uint32_t best = UINT32_MAX;
    double most = SMALL_EFFECT;
    for (uint32_t j = TY_N_SITE; j < fit->n_constants; j++) {
        const double effect = fabs(fit->constant[j].effect);
        if (effect < below && effect > most) {
            most = effect;
            best = j;
        }
    }
    return best;
}

/* Those that matter, by what they do to the runs. */
static void print_constants(const struct ty_site_fit *fit)
{
    uint32_t n = 0, j;
    double below = HUGE_VAL;
    while ((j = next_constant(fit, below)) != UINT32_MAX) {
        const struct ty_site_constant *constant = &fit->constant[j];
        if (n++ == 0)
            printf("  shipped constants that moved, and by how much that changes the runs:\n");
        printf("    %-28s %+6.1f %%  time %+5.1f %%  %s\n", constant->field->path,
               100.0 * (constant->after / constant->before - 1.0), 100.0 * expm1(constant->effect),
               constant->layer);
        below = fabs(constant->effect);
    }
    printf("    %s%u others that the runs depend on: by less than %.1f %% of the time\n",
           n ? "" : "shipped constants: ", fit->n_constants - TY_N_SITE - n, 100.0 * SMALL_EFFECT);
}

static void print_fit(const struct ty_runs *runs, const struct ty_site_fit *fit)
{
    const struct errors before = errors_of(runs, fit->before_s);
    const struct errors after = errors_of(runs, fit->after_s);
    printf("\nerror of the runs, percent: median %.1f, mean %.1f, P90 %.1f without the site; "
           "%.1f, %.1f, %.1f with it\n(of a fit on these runs, not accuracy on the next)\n\n",
           100.0 * before.median, 100.0 * before.mean, 100.0 * before.p90, 100.0 * after.median,
           100.0 * after.mean, 100.0 * after.p90);
    for (int i = 0; i < TY_N_SITE; i++)
        printf("  time of %-8s x %.3f  (+-%.0f %%, the runs decide %.0f %% of it)\n",
               ratio_names[i], fit->constant[i].after, 100.0 * fit->constant[i].sd_after,
               100.0 * fit->constant[i].informed);
    print_constants(fit);
    printf("  a run differs from the model by %.1f %%; a new plan like these, by what site and "
           "constants leave open: +-%.1f %%\n",
           100.0 * fit->noise, 100.0 * fit->open);
    print_suspects(runs, fit);
}

static void print_next(const struct ty_runs *runs, const struct ty_next_run *next, uint32_t n)
{
    printf("\nnext runs that would tell most: what the site leaves open for such plans, now and "
           "then\n");
    for (uint32_t i = 0; i < n; i++) {
        char plan[160];
        printf("  %-12s like %-20s +-%.1f %% -> +-%.1f %%  %s\n", next[i].change,
               runs->run[next[i].like].row.id, 100.0 * next[i].sd_now, 100.0 * next[i].sd_then,
               cli_plan_text(&next[i].plan, plan, sizeof plan));
    }
    if (n == 0)
        printf("  none: no plan next to these is legal and fits\n");
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void print_number(const char *key, double value)
{
    if (isfinite(value))
        printf("\"%s\": %.17g", key, value);
    else
        printf("\"%s\": null", key);
}

static void print_errors(const char *key, const struct errors *errors)
{
    printf("\"%s\": {\"median_ape\": %.17g, \"mean_ape\": %.17g, \"p90_ape\": %.17g}", key,
           errors->median, errors->mean, errors->p90);
}

static void print_json_runs(const struct ty_runs *runs, const struct ty_site_fit *fit)
{
    printf(" \"runs\": [");
    for (uint32_t i = 0; i < runs->n; i++) {
        printf("%s\n  {\"id\": ", i ? "," : "");
        cli_json_string(stdout, runs->run[i].row.id);
        printf(", ");
        print_number("measured", runs->run[i].row.measured_s);
        printf(", ");
        print_number("predicted_no_site", fit->before_s[i]);
        printf(", ");
        print_number("predicted", fit->after_s[i]);
        printf(", \"refused\": ");
        cli_json_string(stdout, runs->run[i].row.refused);
        printf("}");
    }
    printf("]");
}

static void print_json_constants(const struct ty_site_fit *fit)
{
    printf(" \"constants\": [");
    for (uint32_t j = TY_N_SITE; j < fit->n_constants; j++) {
        const struct ty_site_constant *constant = &fit->constant[j];
        printf("%s\n  {\"of\": ", j > TY_N_SITE ? "," : "");
        cli_json_string(stdout, constant->layer);
        printf(", \"constant\": \"%s\", \"before\": %.17g, \"after\": %.17g, \"sd_before\": %.17g, "
               "\"sd_after\": %.17g, \"informed\": %.17g, \"effect\": %.17g}",
               constant->field->path, constant->before, constant->after, constant->sd_before,
               constant->sd_after, constant->informed, constant->effect);
    }
    printf("],\n");
}

static void print_json(const struct ty_runs *runs, const struct ty_site_fit *fit,
                       const struct ty_next_run *next, uint32_t n_next)
{
    const struct errors before = errors_of(runs, fit->before_s);
    const struct errors after = errors_of(runs, fit->after_s);
    printf("{\"used\": %u, \"site\": {", fit->n);
    for (int i = 0; i < TY_N_SITE; i++)
        printf("%s\"%s_ratio\": %.17g", i ? ", " : "", ratio_names[i], fit->constant[i].after);
    printf("},\n \"informed\": {");
    for (int i = 0; i < TY_N_SITE; i++)
        printf("%s\"%s_ratio\": %.17g", i ? ", " : "", ratio_names[i], fit->constant[i].informed);
    printf("},\n");
    print_json_constants(fit);
    printf(" \"noise\": %.17g, \"open\": %.17g,\n ", fit->noise, fit->open);
    print_errors("before", &before);
    printf(", ");
    print_errors("after", &after);
    printf(",\n");
    print_json_runs(runs, fit);
    printf(",\n \"next\": [");
    for (uint32_t i = 0; i < n_next; i++) {
        printf("%s\n  {\"change\": ", i ? "," : "");
        cli_json_string(stdout, next[i].change);
        printf(", \"like\": ");
        cli_json_string(stdout, runs->run[next[i].like].row.id);
        printf(", \"sd_now\": %.17g, \"sd_then\": %.17g}", next[i].sd_now, next[i].sd_then);
    }
    printf("]}\n");
}

/* ---- the file ----------------------------------------------------------------------------- */

/* "a/tokyo.json" names the site tokyo. */
static void site_name(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, bytes, "%s", slash ? slash + 1 : path);
    char *end = strstr(out, ".json");
    if (end)
        *end = '\0';
}

static int write_site(const char *path, const struct ty_runs *runs, const struct ty_site_fit *fit)
{
    char name[64];
    uint32_t first = 0;
    while (isnan(fit->before_s[first]))
        first++;
    site_name(path, name, sizeof name);
    char *text = ty_site_write(fit, name, &runs->run[first].profile);
    FILE *file = text ? fopen(path, "w") : NULL;
    bool written = file && fputs(text, file) >= 0;
    if (file)
        written &= fclose(file) == 0;
    if (!written)
        cli_warn("%s: %s", path, text ? strerror(errno) : "out of memory");
    ty_text_free(text);
    return written ? CLI_OK : CLI_FAILED;
}

/* ---- the command -------------------------------------------------------------------------- */

static int report(const struct cli_args *args, const struct ty_runs *runs,
                  const struct ty_site_fit *fit)
{
    struct ty_next_run next[TY_MAX_NEXT];
    uint32_t n_next = 0;
    if (ty_site_next(runs, fit, args->jobs, next, &n_next) != TY_OK)
        cli_warn("out of memory: no next run is named");
    if (args->json) {
        print_json(runs, fit, next, n_next);
    } else {
        print_runs(runs, fit);
        print_fit(runs, fit);
        print_next(runs, next, n_next);
    }
    if (!args->out)
        return CLI_OK;
    const int status = write_site(args->out, runs, fit);
    if (status == CLI_OK && !args->json)
        printf("\nwritten: %s; use it with --site %s\n", args->out, args->out);
    return status;
}

int cli_calibrate_runs(struct cli_args *args)
{
    struct ty_error error = {0};
    struct ty_runs runs = {0};
    struct ty_site_fit fit;
    if (args->n_words < 2 && !args->step_time && !args->tokens_per_s) {
        cli_refuse(&error, "calibrate runs",
                   "needs FILE..., tables or logs of your own runs, or --step-time TIME with "
                   "--model, --cluster and the plan");
        return cli_fail(&error);
    }
    int status = CLI_OK;
    if (gather(args, &runs, &error) != TY_OK ||
        ty_site_fit(&runs, args->jobs, &fit, &error) != TY_OK) {
        for (uint32_t i = 0; i < runs.n; i++)
            cli_warn("%s: %s", runs.run[i].row.id,
                     *runs.run[i].row.refused ? runs.run[i].row.refused : not_legal);
        status = cli_fail(&error);
    } else {
        status = report(args, &runs, &fit);
        ty_site_fit_free(&fit);
    }
    ty_runs_free(&runs);
    return status;
}
