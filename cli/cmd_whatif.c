/* SPDX-License-Identifier: MIT
 *
 * `trainyard whatif`: the settings given as lists or ranges, crossed. At every point the best plan
 * is searched again, or the base's is kept; the base is the command line without those settings.
 *
 * Knee of one numeric axis: the smallest value from which 1 % more of it buys less than 0.1 % of
 * speed, d ln(speed) / d ln(x) < 0.1 up to the next value. Tornado: each axis alone against the
 * base.
 */
#include "cli/axes.h"
#include "include/trainyard_ratio.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double KNEE_ELASTICITY = 0.1;

struct answer {
    bool feasible;
    struct ty_score score;
    struct ty_ratio to_base; /* time of a token on a GPU over that of the base */
};

struct whatif {
    const struct cli_args *args;
    struct cli_args point; /* the command line of the point at hand */
    struct cli_inputs inputs;
    struct cli_inputs base_inputs; /* of the base; model.hidden 0 before it is answered */
    struct axes axes;
    struct ty_plan kept; /* with --keep-plan: of the base */
    struct answer base;
    struct answer *answers; /* [n_points] */
    uint64_t n_points;
    struct ty_error error;
};

/* ---- one point ------------------------------------------------------------------------------ */

static ty_status search_point(struct whatif *w, struct answer *out)
{
    struct ty_search *search = calloc(1, sizeof *search);
    struct ty_search_result result = {0};
    if (!search)
        return TY_ERR_NOMEM;
    *search = (struct ty_search){.model = &w->inputs.model,
                                 .cluster = &w->inputs.cluster,
                                 .profile = &w->inputs.profile,
                                 .space = w->inputs.space,
                                 .options = w->inputs.options,
                                 .n_threads = w->args->jobs,
                                 .top = 1,
                                 .overall = true,
                                 .allow_tight = w->args->tight};
    search->options.effects = false;
    ty_status status = ty_search_run(search, &result, &w->error);
    if (status == TY_OK && result.n_best)
        *out = (struct answer){.feasible = true, .score = result.best[0]};
    ty_search_free(&result);
    free(search);
    return status == TY_ERR_INFEASIBLE ? TY_OK : status;
}

static ty_status predict_point(struct whatif *w, struct answer *out)
{
    ty_predictor *predictor = NULL;
    struct ty_prediction p;
    struct ty_options options = w->inputs.options;
    options.effects = false;
    ty_status status = ty_predictor_create(&w->inputs.model, &w->inputs.cluster, &w->inputs.profile,
                                           NULL, &predictor, &w->error);
    if (status != TY_OK)
        return status;
    status = ty_predictor_run(predictor, &w->kept, &options, &p, &w->error);
    if (status == TY_OK && p.feasible) {
        const bool simulated = isfinite(p.step_time_s);
        const double step_s = simulated ? p.step_time_s : p.bound_s;
        const double tokens = (double)p.plan.gbs * p.plan.seq;
        *out = (struct answer){.feasible = true,
                               .score = {.plan = p.plan,
                                         .step_time_s = step_s,
                                         .tokens_per_s = tokens / step_s,
                                         .tokens_per_s_per_gpu = tokens / step_s / p.plan.n_gpus,
                                         .mfu = simulated ? p.mfu : (double)NAN,
                                         .peak_bytes = p.peak_bytes,
                                         .headroom_bytes = p.headroom_bytes}};
    }
    ty_predictor_destroy(predictor);
    return status;
}

/* The kept plan with what the point's own settings say of it. */
static ty_status keep_plan(struct whatif *w)
{
    const struct ty_plan given = w->inputs.plan;
    w->kept = w->base.score.plan;
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (uint32_t i = 0; i < w->axes.n; i++) {
        const struct cli_setting *setting = &w->point.settings[w->axes.axis[i].setting];
        for (size_t k = 0; setting->kind == TY_KIND_PLAN && k < n; k++)
            if (strcmp(fields[k].path, setting->path) == 0)
                memcpy((char *)&w->kept + fields[k].offset, (const char *)&given + fields[k].offset,
                       fields[k].size);
    }
    return TY_OK;
}

static struct ty_rated rated(const struct cli_inputs *inputs, const struct ty_score *score)
{
    return (struct ty_rated){&inputs->model, &inputs->cluster, &inputs->profile, &score->plan,
                             1.0 / score->tokens_per_s_per_gpu};
}

static void compare(const struct whatif *w, struct answer *answer)
{
    const struct ty_rated point = rated(&w->inputs, &answer->score);
    const struct ty_rated base = rated(&w->base_inputs, &w->base.score);
    ty_ratio_of(&point, &base, &answer->to_base);
}

/* Answers the command line in w->point. */
static ty_status ask(struct whatif *w, bool keep, struct answer *out)
{
    *out = (struct answer){0};
    ty_status status = cli_load(&w->point, true, &w->inputs, &w->error);
    if (status != TY_OK)
        return status;
    status = keep ? keep_plan(w) : TY_OK;
    if (status == TY_OK)
        status = keep ? predict_point(w, out) : search_point(w, out);
    if (status == TY_OK && out->feasible && w->base.feasible)
        compare(w, out);
    return status;
}

/* ---- text ----------------------------------------------------------------------------------- */

static double change_pct(const struct whatif *w, const struct answer *answer)
{
    return 100.0 * (answer->score.tokens_per_s_per_gpu / w->base.score.tokens_per_s_per_gpu - 1.0);
}

static const struct cli_setting *setting_of(const struct whatif *w, uint32_t axis)
{
    return &w->args->settings[w->axes.axis[axis].setting];
}

static void print_answer(const struct whatif *w, const struct answer *answer)
{
    char each[40], step[40], layout[160];
    if (!answer->feasible) {
        printf("%9s  nothing fits\n", "-");
        return;
    }
    printf("%9s %10s", cli_count_text(answer->score.tokens_per_s_per_gpu, each, sizeof each),
           cli_time_text(answer->score.step_time_s, step, sizeof step));
    if (w->base.feasible)
        printf(" %+7.1f %%", change_pct(w, answer));
    else
        printf(" %9s", "-");
    if (w->base.feasible && answer != &w->base && !isnan(answer->to_base.p_faster))
        printf(" %5.0f %%", 100.0 * answer->to_base.p_faster);
    else
        printf(" %7s", "");
    printf("  %s\n", cli_plan_text(&answer->score.plan, layout, sizeof layout));
}

static void print_points(const struct whatif *w)
{
    for (uint32_t i = 0; i < w->axes.n; i++)
        printf("%-20s ", setting_of(w, i)->path);
    printf("%9s %10s %9s %7s  plan\n", "tok/s/GPU", "step", "change", "P");
    for (uint32_t i = 0; i < w->axes.n; i++)
        printf("%-20s ", "as it is");
    print_answer(w, &w->base);
    for (uint64_t point = 0; point < w->n_points; point++) {
        for (uint32_t i = 0; i < w->axes.n; i++)
            printf("%-20s ", w->axes.axis[i].text[axes_value(&w->axes, point, i)]);
        print_answer(w, &w->answers[point]);
    }
}

/* Index of the knee of the only axis; n: none, or names instead of numbers. */
static uint64_t knee(const struct whatif *w)
{
    const struct axis *axis = &w->axes.axis[0];
    for (uint64_t i = 0; w->axes.n == 1 && i + 1 < w->n_points; i++) {
        const struct answer *here = &w->answers[i], *next = &w->answers[i + 1];
        const double more = log(axis->number[i + 1] / axis->number[i]);
        if (!here->feasible || !next->feasible || !(more > 0.0))
            continue;
        const double gain =
            log(next->score.tokens_per_s_per_gpu / here->score.tokens_per_s_per_gpu);
        if (gain / more < KNEE_ELASTICITY)
            return i;
    }
    return w->n_points;
}

static void print_knee(const struct whatif *w)
{
    const uint64_t at = knee(w);
    if (w->axes.n != 1 || isnan(w->axes.axis[0].number[0]))
        return;
    if (at < w->n_points)
        printf("\nknee: from %s on, 1 %% more buys less than %.1f %% of speed\n",
               w->axes.axis[0].text[at], KNEE_ELASTICITY);
    else
        printf("\nno knee: every step still pays\n");
}

static ty_status print_tornado(struct whatif *w)
{
    if (w->axes.n < 2 || !w->base.feasible)
        return TY_OK;
    printf("\neach alone, change of tokens/s/GPU\n");
    for (uint32_t i = 0; i < w->axes.n; i++) {
        double low = 0.0, high = 0.0;
        for (uint32_t value = 0; value < w->axes.axis[i].n; value++) {
            struct answer answer;
            axes_single(&w->axes, w->args, i, value, &w->point);
            ty_status status = ask(w, false, &answer);
            if (status != TY_OK)
                return status;
            if (answer.feasible) {
                low = fmin(low, change_pct(w, &answer));
                high = fmax(high, change_pct(w, &answer));
            }
        }
        printf("  %-20s %+7.1f .. %+.1f %%\n", setting_of(w, i)->path, low, high);
    }
    return TY_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void print_number(const char *key, double value)
{
    if (isfinite(value))
        printf("\"%s\": %.17g", key, value);
    else
        printf("\"%s\": null", key);
}

static void print_json_answer(const struct whatif *w, const struct answer *answer)
{
    const double unknown = answer->feasible ? 0.0 : (double)NAN;
    printf("\"feasible\": %s, ", answer->feasible ? "true" : "false");
    print_number("tokens_per_s_per_gpu", answer->score.tokens_per_s_per_gpu + unknown);
    printf(", ");
    print_number("step_time_s", answer->score.step_time_s + unknown);
    printf(", ");
    print_number("change_pct", w->base.feasible ? change_pct(w, answer) + unknown : (double)NAN);
    const bool compared = answer->feasible && w->base.feasible && answer != &w->base;
    printf(", ");
    print_number("p_faster", compared ? answer->to_base.p_faster : (double)NAN);
    for (int percent = 80; percent <= 90; percent += 10) {
        const double *ends =
            percent == 80 ? answer->to_base.interval_80 : answer->to_base.interval_90;
        if (compared && isfinite(ends[1]))
            printf(", \"time_ratio_%d\": [%.17g, %.17g]", percent, ends[0], ends[1]);
    }
    const struct ty_plan *plan = &answer->score.plan;
    if (answer->feasible)
        printf(", \"plan\": {\"gpus\": %u, \"tp\": %u, \"pp\": %u, \"vpp\": %u, \"cp\": %u, "
               "\"ep\": %u, \"dp\": %u, \"mbs\": %u, \"gbs\": %u}",
               plan->n_gpus, plan->tp, plan->pp, plan->vpp, plan->cp, plan->ep, plan->dp, plan->mbs,
               plan->gbs);
}

static void print_json(const struct whatif *w)
{
    printf("{\"base\": {");
    print_json_answer(w, &w->base);
    printf("},\n \"points\": [");
    for (uint64_t point = 0; point < w->n_points; point++) {
        printf("%s\n  {\"settings\": {", point ? "," : "");
        for (uint32_t i = 0; i < w->axes.n; i++) {
            printf("%s", i ? ", " : "");
            cli_json_string(stdout, setting_of(w, i)->path);
            printf(": ");
            cli_json_string(stdout, w->axes.axis[i].text[axes_value(&w->axes, point, i)]);
        }
        printf("}, ");
        print_json_answer(w, &w->answers[point]);
        printf("}");
    }
    printf("],\n \"knee\": ");
    const uint64_t at = knee(w);
    if (at < w->n_points)
        cli_json_string(stdout, w->axes.axis[0].text[at]);
    else
        printf("null");
    printf("}\n");
}

/* ---- command -------------------------------------------------------------------------------- */

static ty_status answer_all(struct whatif *w)
{
    struct cli_progress progress;
    axes_base(&w->axes, w->args, &w->point);
    ty_status status = ask(w, false, &w->base);
    w->base_inputs = w->inputs;
    if (status == TY_OK && w->args->keep_plan && !w->base.feasible)
        return cli_refuse(&w->error, "--keep-plan", "no plan fits without the settings to vary");
    cli_progress_start(&progress, w->args->quiet);
    for (uint64_t point = 0; point < w->n_points && status == TY_OK; point++) {
        axes_point(&w->axes, w->args, point, &w->point);
        status = ask(w, w->args->keep_plan, &w->answers[point]);
        cli_progress_show(&progress, point + 1, w->n_points);
    }
    cli_progress_end(&progress);
    return status;
}

static int run(struct whatif *w)
{
    if (axes_find(w->args, &w->axes, &w->error) != TY_OK)
        return cli_fail(&w->error);
    if (w->axes.n == 0) {
        cli_refuse(&w->error, "whatif",
                   "needs a setting to vary, e.g. --set cluster.network.nic='100..800 Gb/s'");
        return cli_fail(&w->error);
    }
    w->n_points = axes_n_points(&w->axes);
    w->answers = calloc(w->n_points, sizeof *w->answers);
    if (!w->answers) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    if (answer_all(w) != TY_OK)
        return cli_fail(&w->error);
    if (w->args->json) {
        print_json(w);
    } else {
        print_points(w);
        if (w->base.feasible)
            printf("\nP: probability that the point is faster than the base, per token and GPU\n");
        print_knee(w);
        if (print_tornado(w) != TY_OK)
            return cli_fail(&w->error);
    }
    for (uint64_t point = 0; point < w->n_points; point++)
        if (w->answers[point].feasible)
            return CLI_OK;
    return CLI_INFEASIBLE;
}

int cmd_whatif(struct cli_args *args)
{
    struct whatif *w = calloc(1, sizeof *w);
    if (!w) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    w->args = args;
    const int status = run(w);
    cli_inputs_free(&w->inputs);
    free(w->answers);
    free(w);
    return status;
}
