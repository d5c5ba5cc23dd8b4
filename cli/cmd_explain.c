/* SPDX-License-Identifier: MIT
 * `trainyard explain`: why a step takes as long as it does, and what to change next. */
#include "cli/explain.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_RUNS    24 /* of the critical path; --json has every segment */
#define SHOWN_CHANGES 16

/* ---- critical path -------------------------------------------------------------------------- */

/* "flops 83 %, hbm 12 %": the resources that a time depends on, largest first. */
static const char *shares_text(const double share[TY_N_RESOURCES], char *out, size_t bytes)
{
    bool told[TY_N_RESOURCES] = {false};
    *out = '\0';
    for (uint32_t n = 0; n < 3; n++) {
        uint32_t best = TY_N_RESOURCES;
        for (uint32_t r = 0; r < TY_N_RESOURCES; r++)
            if (!told[r] && share[r] > 0.005 && (best == TY_N_RESOURCES || share[r] > share[best]))
                best = r;
        if (best == TY_N_RESOURCES)
            break;
        told[best] = true;
        const size_t used = strlen(out);
        snprintf(out + used, bytes - used, "%s%s %.0f %%", used ? ", " : "",
                 ty_resource_name((enum ty_resource)best), 100.0 * share[best]);
    }
    return out;
}

static bool same_work(const struct ty_path_segment *a, const struct ty_path_segment *b)
{
    return a->rank == b->rank && a->stream == b->stream && a->name == b->name;
}

/* Segments of one kind that follow each other. */
struct path_run {
    uint32_t first, n;
    double share[TY_N_RESOURCES];
};

static void next_run(const struct ty_explanation *e, uint32_t first, struct path_run *run)
{
    const struct ty_path_segment *segment = e->segments;
    *run = (struct path_run){.first = first};
    double sum_s = 0.0;
    for (uint32_t i = first; i < e->n_segments && same_work(&segment[first], &segment[i]); i++) {
        const double time_s = segment[i].end_s - segment[i].start_s;
        sum_s += time_s;
        for (uint32_t r = 0; r < TY_N_RESOURCES; r++)
            run->share[r] += time_s * segment[i].share[r];
        run->n++;
    }
    for (uint32_t r = 0; sum_s > 0.0 && r < TY_N_RESOURCES; r++)
        run->share[r] /= sum_s;
}

static void print_run(const struct ty_explanation *e, const struct path_run *run)
{
    const struct ty_path_segment *first = &e->segments[run->first];
    const struct ty_path_segment *last = &e->segments[run->first + run->n - 1];
    char start[40], time[40], shares[96], what[64];
    snprintf(what, sizeof what, "%s%s", first->name, run->n > 1 ? " x" : "");
    if (run->n > 1)
        snprintf(what + strlen(what), sizeof what - strlen(what), "%u", run->n);
    printf("  %10s %10s  rank %-4u %-12s %-16s %s\n",
           cli_time_text(first->start_s, start, sizeof start),
           cli_time_text(last->end_s - first->start_s, time, sizeof time), first->rank,
           first->stream, what, shares_text(run->share, shares, sizeof shares));
}

static uint32_t count_runs(const struct ty_explanation *e)
{
    uint32_t n = 0;
    struct path_run run;
    for (uint32_t i = 0; i < e->n_segments; i += run.n, n++)
        next_run(e, i, &run);
    return n;
}

static void print_path(const struct ty_explanation *e)
{
    const uint32_t n = count_runs(e);
    struct path_run run;
    uint32_t at = 0;
    printf("\ncritical path, each waiting for the one before (start, time, where, what it depends "
           "on)\n");
    for (uint32_t i = 0; i < e->n_segments; i += run.n, at++) {
        next_run(e, i, &run);
        if (n <= SHOWN_RUNS || at < SHOWN_RUNS / 2 || n - at <= SHOWN_RUNS / 2)
            print_run(e, &run);
        else if (at == SHOWN_RUNS / 2)
            printf("  ... %u more; --json has all %u segments\n", n - SHOWN_RUNS, e->n_segments);
    }
}

/* ---- resources and knobs -------------------------------------------------------------------- */

static void print_resources(const struct ty_explanation *e)
{
    printf("\nwhat bounds the step, and what 10 %% more of it would give\n");
    for (uint32_t r = 0; r < TY_RESOURCE_MEMORY; r++) {
        const struct ty_sensitivity *s = &e->resources[r];
        if (fabs(s->path_share) >= 5e-4 || fabs(s->gain_pct) >= 0.005)
            printf("  %-10s %5.1f %% of the path  %+6.2f %% tokens/s\n",
                   ty_resource_name((enum ty_resource)r), 100.0 * s->path_share, s->gain_pct);
    }
    if (e->memory_best < e->n_changes)
        printf("  %-10s %20s %+6.2f %% tokens/s, by %s %s\n", "memory", "",
               e->resources[TY_RESOURCE_MEMORY].gain_pct, e->changes[e->memory_best].knob,
               e->changes[e->memory_best].to);
}

static void print_change(const struct ty_change *change)
{
    char what[100], memory[40];
    snprintf(what, sizeof what, "%s %s -> %s", change->knob, change->from, change->to);
    printf("  %-44s %+7.2f %%  %10s  %s%s\n", what, change->step_pct,
           cli_bytes_text(change->peak_change_bytes, memory, sizeof memory),
           cli_fit_text(change->fit), change->numerics ? ", other numerics" : "");
}

static void print_changes(const struct ty_explanation *e)
{
    printf("\none change of the plan: step time, memory of the fullest stage, fit\n");
    for (uint32_t i = 0; i < e->n_changes && i < SHOWN_CHANGES; i++)
        print_change(&e->changes[i]);
    if (e->n_changes > SHOWN_CHANGES)
        printf("  ... %u more, slower or too large; --json lists all\n",
               e->n_changes - SHOWN_CHANGES);
    if (e->best < e->n_changes) {
        const struct ty_change *best = &e->changes[e->best];
        printf("\nchange next: %s %s -> %s, %.1f %% of the step\n", best->knob, best->from,
               best->to, best->step_pct);
    } else {
        printf("\nno single change of the plan makes it faster\n");
    }
}

/* ---- command -------------------------------------------------------------------------------- */

/* What the answer is made of. */
struct answer {
    const struct cli_args *args;
    struct cli_inputs *inputs;
    struct ty_prediction prediction;
    struct ty_explanation explanation;
    struct ty_timeline timeline;
    struct ty_logged logged;
    struct ty_gap gap;
    bool has_gap;
};

static int print_json(const struct answer *a)
{
    return cli_print(ty_explanation_json(&a->explanation, &a->prediction, &a->inputs->profile,
                                         a->args->explain.profile ? &a->timeline : NULL,
                                         a->has_gap ? &a->gap : NULL));
}

static int draw(const struct answer *a)
{
    struct ty_error error = {0};
    char about[160];
    uint32_t n_plots = 0;
    snprintf(about, sizeof about, "%s on %s", a->inputs->model.name, a->inputs->cluster.name);
    if (ty_explanation_plot(&a->explanation, about, a->args->out, &n_plots, &error) != TY_OK)
        return cli_fail(&error);
    if (n_plots == 0 && !a->args->quiet)
        cli_warn("no gnuplot: %s has the script and data of the plot", a->args->out);
    return CLI_OK;
}

/* Reads what was measured; a log may complete the plan. */
static ty_status load_measured(struct answer *a, struct ty_error *error)
{
    const struct cli_args *args = a->args;
    ty_status status = TY_OK;
    if (args->explain.log) {
        status = ty_logged_load(args->explain.log, &a->logged, error);
        if (status == TY_OK)
            explain_take_plan(&a->logged.plan, args->quiet, &a->inputs->plan);
    }
    if (status == TY_OK && args->explain.profile)
        status = ty_timeline_load(args->explain.profile, args->explain.profile_steps, &a->timeline,
                                  error);
    return status;
}

static ty_status compare(struct answer *a, struct ty_error *error)
{
    const struct cli_args *args = a->args;
    const struct ty_plan *plan = &a->prediction.plan;
    double step_s = a->logged.step_s;
    ty_status status = TY_OK;
    a->has_gap = args->explain.measured || args->explain.log || args->explain.profile;
    if (args->explain.profile) {
        ty_gap_of_timeline(&a->prediction, &a->timeline, &a->gap);
        return TY_OK;
    }
    if (args->explain.log && !isfinite(step_s))
        step_s = (double)plan->gbs * plan->seq / a->logged.tokens_per_s_per_gpu / plan->n_gpus;
    if (args->explain.measured)
        status = explain_figure(args->explain.measured, &a->prediction, &step_s, error);
    if (status == TY_OK && a->has_gap)
        ty_gap_of_step(&a->prediction, &a->explanation, step_s, &a->gap);
    return status;
}

static ty_status check_measured(const struct cli_args *args, struct ty_error *error)
{
    const int n = (args->explain.measured != NULL) + (args->explain.log != NULL) +
                  (args->explain.profile != NULL);
    if (n > 1)
        return cli_refuse(error, "explain",
                          "--measured, --log and --profile-trace exclude each other");
    if (args->explain.profile_steps && !args->explain.profile)
        return cli_refuse(error, "--profile-steps", "needs --profile-trace");
    return TY_OK;
}

static int print_answer(const struct answer *a)
{
    const bool simulated = a->explanation.n_segments > 0;
    if (a->args->json)
        return print_json(a);
    if (!cli_print_headline(&a->prediction, a->inputs))
        cli_print_suggestion(a->inputs);
    if (!simulated)
        return CLI_OK;
    if (a->args->explain.profile)
        explain_print_timeline(&a->timeline);
    if (a->has_gap)
        explain_print_gap(&a->gap);
    print_path(&a->explanation);
    cli_print_storage(&a->prediction, a->inputs);
    print_resources(&a->explanation);
    print_changes(&a->explanation);
    return CLI_OK;
}

static int run(struct answer *a, ty_predictor *predictor, struct ty_error *error)
{
    const struct cli_args *args = a->args;
    struct ty_options *options = &a->inputs->options;
    if (check_measured(args, error) != TY_OK || load_measured(a, error) != TY_OK)
        return cli_fail(error);
    const bool measured = args->explain.measured || args->explain.log || args->explain.profile;
    options->effects = options->measured = measured;
    if (ty_predictor_explain(predictor, &a->inputs->plan, options, &a->prediction, &a->explanation,
                             error) != TY_OK)
        return cli_write_trace(args, predictor, error->code == TY_ERR_LIMIT, cli_fail(error));
    cli_warn_unused(args, UINT32_MAX);
    const bool simulated = a->explanation.n_segments > 0;
    if (simulated && compare(a, error) != TY_OK)
        return cli_fail(error);
    int status = print_answer(a);
    if (status == CLI_OK && args->out && simulated)
        status = draw(a);
    status = cli_write_trace(args, predictor, simulated, status);
    return status == CLI_OK && !simulated ? CLI_INFEASIBLE : status;
}

static int answer(const struct cli_args *args, struct cli_inputs *inputs, ty_predictor *predictor,
                  struct ty_error *error)
{
    struct answer *a = calloc(1, sizeof *a);
    if (!a) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    a->args = args;
    a->inputs = inputs;
    const int status = run(a, predictor, error);
    free(a);
    return status;
}

int cmd_explain(struct cli_args *args)
{
    return cli_with_predictor(args, answer);
}
