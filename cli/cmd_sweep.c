/* SPDX-License-Identifier: MIT
 * `trainyard sweep`: every legal plan, ranked within each GPU count. */
#include "cli/study.h"
#include "include/trainyard_ratio.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_OF_ONE     10 /* plans shown when one GPU count is swept */
#define TOP_OF_SEVERAL 3

static const double CERTAIN = 0.9; /* from here on, two plans can be told apart */

struct sweep {
    const struct cli_args *args;
    struct cli_inputs inputs;
    struct ty_search search;
    struct ty_search_result result;
    struct cli_progress progress;
    struct cli_study study;
    ty_status stored; /* first refusal of the store stops the sweep */
    struct ty_error error;
};

static bool on_progress(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    struct sweep *sweep = user;
    cli_progress_show(&sweep->progress, done, total);
    if (score && sweep->study.store)
        sweep->stored = cli_study_add(&sweep->study, score, (double)NAN, &sweep->error);
    return sweep->stored == TY_OK && !cli_interrupted();
}

/* Probability that a plan is better than the first of its list; NAN where nothing is known. */
static double chance(const struct sweep *sweep, const struct ty_score *score,
                     const struct ty_score *first)
{
    struct ty_ratio ratio;
    ty_ratio_of_scores(&sweep->search, score, first, &ratio);
    return ratio.p_faster;
}

/* ---- database ----------------------------------------------------------------------------- */

/* The best plan of every GPU count once more, in full: its memory by stage and its groups. */
static ty_status store_best(struct sweep *sweep)
{
    const struct ty_search_result *result = &sweep->result;
    ty_predictor *predictor = NULL;
    ty_status status = ty_predictor_create(&sweep->inputs.model, &sweep->inputs.cluster,
                                           &sweep->inputs.profile, NULL, &predictor, &sweep->error);
    for (uint32_t i = 0; i < result->n_best && status == TY_OK; i++) {
        struct ty_prediction prediction;
        if (i && result->best[i].plan.n_gpus == result->best[i - 1].plan.n_gpus)
            continue;
        const bool one_list = sweep->search.overall || sweep->inputs.goal.n_objectives > 1;
        const double better = chance(sweep, &result->best[i], &result->best[one_list ? 0 : i]);
        status = ty_predictor_run(predictor, &result->best[i].plan, &sweep->inputs.options,
                                  &prediction, &sweep->error);
        if (status == TY_OK)
            status = ty_store_add_prediction(sweep->study.store, sweep->study.id, &prediction,
                                             better, &sweep->error);
    }
    ty_predictor_destroy(predictor);
    return status;
}

/* A shard does not know the best. */
static ty_status finish_study(struct sweep *sweep)
{
    struct cli_study *study = &sweep->study;
    ty_status status =
        ty_store_add_rejections(study->store, study->id, sweep->result.rejected, &sweep->error);
    if (status == TY_OK && !cli_study_is_shard(study))
        status = ty_store_add_chances(study->store, study->id, &sweep->search, &sweep->result,
                                      &sweep->error);
    if (status == TY_OK && !cli_study_is_shard(study))
        status = store_best(sweep);
    return status == TY_OK ? ty_store_flush(study->store, &sweep->error) : status;
}

/* ---- text --------------------------------------------------------------------------------- */

static const char *name_of(const char *path, const struct ty_plan *plan, char *out, size_t bytes)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    *out = '\0';
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].path, path) == 0)
            cli_field_text(&fields[i], plan, out, bytes);
    return out;
}

/* Money, energy and days where prices or a run are given. */
static void print_goal_header(const struct ty_goal *goal)
{
    if (goal->price)
        printf(" %9.9s/Mtok %9s", goal->price->currency, "J/tok");
    if (goal->tokens > 0.0)
        printf(" %9s", "days");
    printf("\n");
}

static void print_goal_figures(const struct ty_goal *goal, const struct ty_score *score)
{
    if (goal->price)
        printf(" %14.4f %9.4f", 1e6 * ty_objective_value(TY_OBJECTIVE_COST_PER_TOKEN, goal, score),
               ty_objective_value(TY_OBJECTIVE_ENERGY_PER_TOKEN, goal, score));
    if (goal->tokens > 0.0)
        printf(" %9.2f", ty_objective_value(TY_OBJECTIVE_TIME_TO_TOKENS, goal, score) / 86400.0);
    printf("\n");
}

static void print_header(const struct ty_goal *goal)
{
    printf("%6s %3s %3s %3s %3s %3s %3s %5s %4s %6s  %-9s %-6s %-6s %9s %9s %9s %6s %10s %5s",
           "gpus", "tp", "pp", "vpp", "cp", "ep", "etp", "dp", "mbs", "gbs", "recompute", "shard",
           "prec", "step", "tok/s", "tok/s/GPU", "MFU", "memory", "P");
    print_goal_header(goal);
}

static void print_score(const struct sweep *sweep, const struct ty_score *score,
                        const struct ty_score *first)
{
    const struct ty_plan *plan = &score->plan;
    char recompute[32], sharding[32], precision[32], step[32], tokens[32], each[32], memory[32];
    char p[16] = "";
    const double better = chance(sweep, score, first);
    if (score != first && !isnan(better))
        snprintf(p, sizeof p, "%.0f%%", 100.0 * better);
    printf("%6u %3u %3u %3u %3u %3u %3u %5u %4u %6u  %-9s %-6s %-6s %9s %9s %9s %5.1f%% %10s %5s",
           plan->n_gpus, plan->tp, plan->pp, plan->vpp, plan->cp, plan->ep, plan->etp, plan->dp,
           plan->mbs, plan->gbs, name_of("recompute", plan, recompute, sizeof recompute),
           name_of("sharding", plan, sharding, sizeof sharding),
           name_of("precision", plan, precision, sizeof precision),
           cli_time_text(score->step_time_s, step, sizeof step),
           cli_count_text(score->tokens_per_s, tokens, sizeof tokens),
           cli_count_text(score->tokens_per_s_per_gpu, each, sizeof each), 100.0 * score->mfu,
           cli_bytes_text(score->peak_bytes, memory, sizeof memory), p);
    if (plan->offload > TY_OFFLOAD_NONE)
        printf("  offload %s", name_of("offload", plan, memory, sizeof memory));
    if (sweep->search.space.n_layouts)
        printf("  layout %s", *plan->layout ? plan->layout : "even");
    print_goal_figures(&sweep->inputs.goal, score);
}

static void print_rejections(const struct ty_search_result *result)
{
    char count[40];
    const char *title = "";
    printf("%s plans enumerated, ",
           cli_count_text((double)result->n_enumerated, count, sizeof count));
    printf("%s legal and fitting, ",
           cli_count_text((double)result->n_bounded, count, sizeof count));
    printf("%s simulated%s; rejected before any time was computed:\n",
           cli_count_text((double)result->n_evaluated, count, sizeof count),
           result->n_evaluated < result->n_bounded ? " (the rest cannot be listed)" : "");
    for (enum ty_reject reason = 0; reason < TY_N_REJECTS; reason++) {
        if (reason == TY_REJECT_DEADLINE)
            title = "beyond the limits, by their bound or their simulation:\n";
        if (!result->rejected[reason])
            continue;
        printf("%s  %-28s %14s\n", title, ty_reject_name(reason),
               cli_count_text((double)result->rejected[reason], count, sizeof count));
        title = "";
    }
}

/* GPU counts that were asked for and have no feasible plan. */
static void print_empty_counts(const struct ty_search_result *result,
                               const struct ty_values *counts)
{
    const char *separator = "\nno feasible plan with ";
    for (uint32_t i = 0; i < counts->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < result->n_best && !found; k++)
            found = result->best[k].plan.n_gpus == counts->value[i];
        if (!found)
            printf("%s%u", separator, counts->value[i]);
        separator = found ? separator : ", ";
    }
    if (*separator == ',')
        printf(" GPUs\n");
}

static bool starts_count(const struct ty_search_result *result, uint32_t i)
{
    return i == 0 || result->best[i].plan.n_gpus != result->best[i - 1].plan.n_gpus;
}

/* When nothing fits: the plans that come closest. */
static void print_nearest(const struct ty_search_result *result)
{
    if (result->n_nearest)
        printf("\nnothing fits; closest:\n");
    for (uint32_t i = 0; i < result->n_nearest; i++) {
        const struct ty_near_miss *miss = &result->nearest[i];
        char layout[160], recompute[32], missing[40];
        printf("  %u GPUs  %s  recompute %s: %s missing, mostly %s\n", miss->plan.n_gpus,
               cli_plan_text(&miss->plan, layout, sizeof layout),
               name_of("recompute", &miss->plan, recompute, sizeof recompute),
               cli_bytes_text(miss->missing_bytes, missing, sizeof missing),
               ty_mem_name(miss->component));
    }
    if (result->n_nearest)
        printf("more GPUs, GPUs with more memory, --sharding zero3, a smaller --seq or an open "
               "--recompute make room\n");
}

/* "by tokens/s/GPU (best of each tp, pp, cp, ep)" */
static void print_order(const struct sweep *sweep)
{
    const struct ty_goal *goal = &sweep->inputs.goal;
    const bool by_speed =
        goal->n_objectives == 0 || goal->objective[0] == TY_OBJECTIVE_TOKENS_PER_S_PER_GPU;
    printf("by %s%s\n", by_speed ? "tokens/s/GPU" : ty_objective_name(goal->objective[0]),
           sweep->search.all ? "" : " (best of each tp, pp, cp, ep)");
    print_header(goal);
}

/* Predictions are off by some percent: which plans may well be better than the first? */
static void print_doubt(const struct sweep *sweep)
{
    const struct ty_search_result *result = &sweep->result;
    uint32_t n_close = 0;
    if (result->n_best < 2 || isnan(chance(sweep, &result->best[1], &result->best[0])))
        return;
    for (uint32_t i = 1; i < result->n_best; i++)
        n_close += chance(sweep, &result->best[i], &result->best[0]) > 1.0 - CERTAIN;
    printf("\n%u of the %u others cannot be told from the first: it is better with less than %.0f "
           "%%\n",
           n_close, result->n_best - 1, 100.0 * CERTAIN);
    struct ty_robust robust;
    if (!ty_robust_of_scores(&sweep->search, result->best, result->n_best, &robust))
        return;
    const double behind = 100.0 * (robust.ratio.interval_90[1] - 1.0);
    printf("best worst case: plan %u of the list, in 90 %% of runs %s %.1f %% %s plan %u\n",
           robust.plan + 1, behind > 0.0 ? "at most" : "at least", fabs(behind),
           behind > 0.0 ? "behind" : "ahead of", robust.other + 1);
}

static void print_note(const struct sweep *sweep)
{
    if (sweep->result.n_best > 1)
        printf("\nP: probability that the plan is better than the first of its list\n");
}

static void print_list(const struct sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->result.n_best; i++)
        print_score(sweep, &sweep->result.best[i], &sweep->result.best[0]);
}

static void print_overall(const struct sweep *sweep)
{
    printf("\nall GPU counts, ");
    print_order(sweep);
    print_list(sweep);
    print_note(sweep);
    print_doubt(sweep);
}

static void print_set(const struct sweep *sweep)
{
    const struct ty_goal *goal = &sweep->inputs.goal;
    printf("\nno plan beats one of these in");
    for (uint32_t i = 0; i < goal->n_objectives; i++)
        printf("%s %s", i ? "," : "", ty_objective_name(goal->objective[i]));
    printf(" at once\n");
    print_header(goal);
    print_list(sweep);
}

static void print_by_count(const struct sweep *sweep)
{
    const struct ty_search_result *result = &sweep->result;
    const struct ty_goal *goal = &sweep->inputs.goal;
    const struct ty_values *counts = &sweep->inputs.space.n_gpus;
    if (counts->n > 1 && result->n_best) {
        printf("\nbest plan of each GPU count\n");
        print_header(goal);
        for (uint32_t i = 0; i < result->n_best; i++)
            if (starts_count(result, i))
                print_score(sweep, &result->best[i], &result->best[0]);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < result->n_best; i++) {
        if (starts_count(result, i)) {
            first = i;
            printf("\n%u GPUs, ", result->best[i].plan.n_gpus);
            print_order(sweep);
        }
        print_score(sweep, &result->best[i], &result->best[first]);
    }
    print_note(sweep);
    if (counts->n <= 1)
        print_doubt(sweep);
    print_empty_counts(result, counts);
}

static void print_result(const struct sweep *sweep)
{
    printf("%s on %s\n\n", sweep->inputs.model.name, sweep->inputs.cluster.name);
    print_rejections(&sweep->result);
    if (sweep->inputs.goal.n_objectives > 1 && sweep->result.n_best)
        print_set(sweep);
    else if (sweep->search.overall && sweep->result.n_best)
        print_overall(sweep);
    else
        print_by_count(sweep);
    print_nearest(&sweep->result);
}

/* ---- command ------------------------------------------------------------------------------ */

static int print_answer(struct sweep *sweep, ty_status searched)
{
    if (sweep->args->json) {
        const int printed = cli_print(ty_search_json(&sweep->result, &sweep->search));
        if (printed != CLI_OK)
            return printed;
    } else {
        print_result(sweep);
    }
    return searched == TY_OK && sweep->result.n_best ? CLI_OK : CLI_INFEASIBLE;
}

/* A list of the shard's own best would mislead. */
static int print_shard(const struct sweep *sweep)
{
    const struct cli_study *study = &sweep->study;
    char plans[40];
    printf("%s: shard %u/%u, %s plans simulated\n", study->path, study->share.shard,
           study->share.n_shards,
           cli_count_text((double)sweep->result.n_evaluated, plans, sizeof plans));
    return CLI_OK;
}

static void prepare(struct sweep *sweep)
{
    const struct cli_args *args = sweep->args;
    struct cli_inputs *inputs = &sweep->inputs;
    inputs->options.effects = false;
    uint32_t top = inputs->space.n_gpus.n > 1 && !args->overall ? TOP_OF_SEVERAL : TOP_OF_ONE;
    sweep->search = (struct ty_search){.model = &inputs->model,
                                       .cluster = &inputs->cluster,
                                       .profile = &inputs->profile,
                                       .space = inputs->space,
                                       .options = inputs->options,
                                       .n_threads = args->jobs,
                                       .top = args->top ? args->top : top,
                                       .all = args->all,
                                       .goal = &inputs->goal,
                                       .overall = args->overall,
                                       .allow_tight = args->tight,
                                       .exhaustive = args->exhaustive || args->db,
                                       .share = &sweep->study.share,
                                       .progress = on_progress,
                                       .user = sweep};
}

static int run(struct sweep *sweep)
{
    struct ty_error *error = &sweep->error;
    if (cli_load(sweep->args, true, &sweep->inputs, error) != TY_OK)
        return cli_fail(error);
    if (sweep->inputs.options.rung == TY_RUNG_BOUND) {
        cli_refuse(error, "--rung bound", "not built yet for a sweep: it ranks by simulation");
        return cli_fail(error);
    }
    if (!sweep->inputs.plan.gbs && !sweep->inputs.space.gbs.n && !sweep->args->quiet)
        cli_warn("no --gbs: every plan takes a batch of its own (dp * mbs * pp sequences)");
    prepare(sweep);
    if (cli_study_open(sweep->args, &sweep->inputs, "", &sweep->study, error) != TY_OK)
        return cli_fail(error);
    cli_interrupt_catch();
    cli_progress_start(&sweep->progress, sweep->args->quiet);
    ty_status status = ty_search_run(&sweep->search, &sweep->result, error);
    cli_progress_end(&sweep->progress);
    if (status == TY_ERR_CANCELLED && sweep->stored == TY_OK)
        return cli_interrupt_status(&sweep->study);
    if (status != TY_OK && status != TY_ERR_INFEASIBLE)
        return cli_fail(error);
    cli_warn_unused(sweep->args, UINT32_MAX);
    if (sweep->study.store && finish_study(sweep) != TY_OK)
        return cli_fail(error);
    if (cli_study_is_shard(&sweep->study))
        return print_shard(sweep);
    return print_answer(sweep, status);
}

int cmd_sweep(struct cli_args *args)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (!sweep) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    sweep->args = args;
    int status = run(sweep);
    ty_search_free(&sweep->result);
    cli_inputs_free(&sweep->inputs);
    cli_study_close(&sweep->study);
    free(sweep);
    return status;
}
