/* SPDX-License-Identifier: MIT
 *
 * `trainyard whatif`: the settings given as lists or ranges, crossed. At every point the best plan
 * is searched again, or the base's is kept; the base is the command line without those settings.
 * With --db the points are a study, and `report` draws the knee or the tornado.
 */
#include "cli/whatif.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
                                 .allow_tight = w->args->tight,
                                 .goal = &w->inputs.goal};
    search->options.effects = false;
    ty_status status = ty_search_run(search, &result, &w->error);
    if (status == TY_OK && result.n_best)
        *out = (struct answer){.feasible = true, .score = result.best[0]};
    ty_search_free(&result);
    free(search);
    return status == TY_ERR_INFEASIBLE ? TY_OK : status;
}

static ty_status load_point(struct whatif *w, const uint32_t place[AXES_MAX])
{
    axes_line(&w->axes, w->args, place, &w->point);
    return cli_load(&w->point, true, &w->inputs, &w->error);
}

/* Searches the best plan at places of the axes. */
static ty_status ask(struct whatif *w, const uint32_t place[AXES_MAX], struct answer *out)
{
    *out = (struct answer){0};
    const ty_status status = load_point(w, place);
    return status == TY_OK ? search_point(w, out) : status;
}

static void leave_all(uint32_t place[AXES_MAX])
{
    for (uint32_t i = 0; i < AXES_MAX; i++)
        place[i] = AXIS_OUT;
}

/* ---- all points ----------------------------------------------------------------------------- */

static struct ty_rated rated(const struct cli_inputs *inputs, const struct ty_score *score)
{
    return (struct ty_rated){&inputs->model, &inputs->cluster, &inputs->profile, &score->plan,
                             1.0 / score->tokens_per_s_per_gpu};
}

static void compare(const struct whatif *w, struct answer *answer)
{
    if (!answer->feasible || !w->base.feasible)
        return;
    const struct ty_rated point = rated(&w->inputs, &answer->score);
    const struct ty_rated base = rated(&w->base_inputs, &w->base.score);
    ty_ratio_of(&point, &base, &answer->to_base);
}

/* Speed of the values of one axis alone; user: [n]. */
static bool take_alone(void *user, const struct ty_score *score)
{
    double *alone = user;
    if (isfinite(score->step_time_s))
        alone[score->plan_id] = score->tokens_per_s_per_gpu;
    return !cli_interrupted();
}

/* Faster than the best so far; of equals the first point leads. */
static bool leads(const struct whatif *w, const struct ty_score *score)
{
    const double best = w->best.score.tokens_per_s_per_gpu;
    if (!w->best.feasible || score->tokens_per_s_per_gpu > best)
        return true;
    return !(score->tokens_per_s_per_gpu < best) && score->plan_id < w->best_point;
}

/* Counts a point, keeps it to be shown, stores it. */
static bool take_point(void *user, const struct ty_score *score)
{
    struct whatif *w = user;
    struct answer answer = {.feasible = isfinite(score->step_time_s), .score = *score};
    compare(w, &answer);
    const uint64_t point = score->plan_id;
    w->n_feasible += answer.feasible;
    if (w->answers)
        w->answers[point] = answer;
    if (w->axes.n == 1)
        take_alone(w->axes.axis[0].alone, score);
    if (answer.feasible && leads(w, score)) {
        w->best = answer;
        w->best_point = point;
    }
    cli_progress_show(&w->progress, ++w->n_done, w->n_points);
    const double p_faster =
        answer.feasible && w->base.feasible ? answer.to_base.p_faster : (double)NAN;
    return (!w->study.store || cli_study_add(&w->study, score, p_faster, &w->error) == TY_OK) &&
           !cli_interrupted();
}

/* The answer of a point that the study holds; its inputs are loaded for the comparison. */
static ty_status recall(struct whatif *w, uint64_t point, const uint32_t place[AXES_MAX],
                        struct answer *out)
{
    bool found = false;
    *out = (struct answer){0};
    ty_status status = load_point(w, place);
    if (status == TY_OK)
        status = ty_store_score(w->study.store, w->study.id, point, &out->score, &found, &w->error);
    out->feasible = status == TY_OK && found && isfinite(out->score.step_time_s);
    if (!out->feasible)
        *out = (struct answer){0};
    return status;
}

static ty_status ask_point(struct whatif *w, uint64_t point)
{
    const struct ty_share *share = &w->study.share;
    struct answer answer;
    uint32_t place[AXES_MAX];
    if (!cli_shard_has(share, point))
        return TY_OK;
    axes_places(&w->axes, point, place);
    ty_status status =
        ty_known_find(share, point) ? recall(w, point, place, &answer) : ask(w, place, &answer);
    if (status != TY_OK)
        return status;
    if (!answer.feasible)
        answer.score.step_time_s = (double)NAN;
    answer.score.plan_id = point;
    if (take_point(w, &answer.score))
        return TY_OK;
    return w->error.code != TY_OK ? w->error.code : TY_ERR_CANCELLED;
}

static ty_status ask_all(struct whatif *w)
{
    ty_status status = TY_OK;
    cli_progress_start(&w->progress, w->args->quiet);
    if (w->args->keep_plan)
        status = whatif_kept(w, (1u << w->axes.n) - 1, &w->study.share, take_point, w);
    for (uint64_t point = 0; !w->args->keep_plan && point < w->n_points && status == TY_OK; point++)
        status = ask_point(w, point);
    cli_progress_end(&w->progress);
    return status;
}

static ty_status search_alone(struct whatif *w, uint32_t axis)
{
    ty_status status = TY_OK;
    uint32_t place[AXES_MAX];
    leave_all(place);
    for (uint32_t k = 0; status == TY_OK && k < w->axes.axis[axis].n; k++) {
        struct answer answer;
        place[axis] = k;
        status = ask(w, place, &answer);
        if (answer.feasible)
            w->axes.axis[axis].alone[k] = answer.score.tokens_per_s_per_gpu;
    }
    return status;
}

/* Each value of each axis against the base, everything else as it is. */
static ty_status ask_alone(struct whatif *w)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; w->axes.n > 1 && status == TY_OK && i < w->axes.n; i++)
        status = w->args->keep_plan
                     ? whatif_kept(w, 1u << i, NULL, take_alone, w->axes.axis[i].alone)
                     : search_alone(w, i);
    return status;
}

/* Stores the base in full. */
static ty_status store_base(struct whatif *w)
{
    ty_predictor *predictor = NULL;
    struct ty_prediction prediction;
    struct ty_options options = w->base_inputs.options;
    options.rung = TY_RUNG_SIMULATE;
    ty_status status = ty_predictor_create(&w->base_inputs.model, &w->base_inputs.cluster,
                                           &w->base_inputs.profile, NULL, &predictor, &w->error);
    if (status == TY_OK)
        status = ty_predictor_run(predictor, &w->base.score.plan, &options, &prediction, &w->error);
    if (status == TY_OK)
        status = ty_store_add_prediction(w->study.store, w->study.id, &prediction, (double)NAN,
                                         &w->error);
    ty_predictor_destroy(predictor);
    return status;
}

static ty_status load_base(struct whatif *w)
{
    uint32_t place[AXES_MAX];
    leave_all(place);
    axes_line(&w->axes, w->args, place, &w->point);
    return cli_load(&w->point, true, &w->base_inputs, &w->error);
}

static bool take_base(void *user, const struct ty_score *score)
{
    struct answer *base = user;
    *base = (struct answer){.feasible = isfinite(score->step_time_s), .score = *score};
    return true;
}

/* The best plan without the axes; at its bound, where the points will be. */
static ty_status ask_base(struct whatif *w)
{
    uint32_t place[AXES_MAX];
    leave_all(place);
    ty_status status = load_base(w);
    w->base_inputs.options.effects = false;
    if (status == TY_OK)
        status = ask(w, place, &w->base);
    if (status != TY_OK || !w->base.feasible)
        return status;
    if (w->study.store)
        status = store_base(w);
    if (status == TY_OK && w->base_inputs.options.rung == TY_RUNG_BOUND)
        status = whatif_kept(w, 0, NULL, take_base, &w->base);
    return status;
}

/* ---- database ------------------------------------------------------------------------------- */

/* The axes are of the study, the values as typed. */
static ty_status open_study(struct whatif *w)
{
    char *details = NULL;
    size_t bytes;
    const ty_status status = load_base(w);
    FILE *file = status == TY_OK ? open_memstream(&details, &bytes) : NULL;
    if (!file)
        return status == TY_OK ? cli_refuse(&w->error, "whatif", "out of memory") : status;
    for (uint32_t i = 0; i < w->axes.n; i++)
        fprintf(file, "axis %s\n", whatif_setting(w, i)->origin);
    const bool written = fclose(file) == 0;
    const ty_status opened =
        written ? cli_study_open(w->args, &w->base_inputs, details, &w->study, &w->error)
                : cli_refuse(&w->error, "whatif", "out of memory");
    free(details);
    return opened;
}

static ty_status close_study(struct whatif *w)
{
    struct ty_axis axes[AXES_MAX];
    uint64_t stride = 1;
    for (uint32_t i = w->axes.n; i-- > 0;) {
        const struct axis *axis = &w->axes.axis[i];
        axes[i] = (struct ty_axis){.path = whatif_setting(w, i)->path,
                                   .n = axis->n,
                                   .stride = stride,
                                   .text = (const char *const *)axis->text,
                                   .number = axis->number,
                                   .base = w->base.feasible ? w->base.score.tokens_per_s_per_gpu
                                                            : (double)NAN,
                                   .alone = axis->alone};
        stride *= axis->n;
    }
    const ty_status status =
        ty_store_add_axes(w->study.store, w->study.id, axes, w->axes.n, &w->error);
    return status == TY_OK ? ty_store_flush(w->study.store, &w->error) : status;
}

/* ---- command -------------------------------------------------------------------------------- */

static ty_status prepare(struct whatif *w)
{
    ty_status status = axes_find(w->args, &w->axes, &w->error);
    if (status != TY_OK)
        return status;
    if (w->axes.n == 0)
        return cli_refuse(
            &w->error, "whatif",
            "needs a setting to vary, e.g. --set cluster.network.nic='100..800 Gb/s'");
    if (w->args->rung && strcmp(w->args->rung, "bound") == 0 && !w->args->keep_plan)
        return cli_refuse(&w->error, "--rung bound",
                          "needs --keep-plan: a search ranks by simulation");
    w->n_points = axes_n_points(&w->axes);
    if (w->n_points > WHATIF_MOST_SHOWN && !w->args->db)
        return cli_refuse(&w->error, "whatif", "%llu points are too many to print; give --db FILE",
                          (unsigned long long)w->n_points);
    if (w->n_points <= WHATIF_MOST_SHOWN)
        w->answers = calloc(w->n_points, sizeof *w->answers);
    if (w->n_points <= WHATIF_MOST_SHOWN && !w->answers)
        return cli_refuse(&w->error, "whatif", "out of memory");
    return open_study(w);
}

static int print_shard(struct whatif *w)
{
    const struct ty_share *share = &w->study.share;
    if (ty_store_flush(w->study.store, &w->error) != TY_OK)
        return cli_fail(&w->error);
    printf("%s: shard %u/%u of %llu points\n", w->study.path, share->shard, share->n_shards,
           (unsigned long long)w->n_points);
    return CLI_OK;
}

static int run(struct whatif *w)
{
    ty_status status = prepare(w);
    if (status == TY_OK)
        status = ask_base(w);
    if (status == TY_OK && w->args->keep_plan && !w->base.feasible)
        status = cli_refuse(&w->error, "--keep-plan", "no plan fits without the settings to vary");
    cli_interrupt_catch();
    if (status == TY_OK)
        status = ask_all(w);
    if (status == TY_OK && cli_study_is_shard(&w->study))
        return print_shard(w);
    if (status == TY_OK && w->base.feasible)
        status = ask_alone(w);
    if (cli_interrupted() && status == TY_ERR_CANCELLED)
        return cli_interrupt_status(&w->study);
    if (status == TY_OK && w->study.store)
        status = close_study(w);
    if (status != TY_OK)
        return cli_fail(&w->error);
    (w->args->json ? whatif_print_json : whatif_print)(w);
    return w->n_feasible ? CLI_OK : CLI_INFEASIBLE;
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
    cli_study_close(&w->study);
    free(w->answers);
    axes_free(&w->axes);
    cli_inputs_free(&w->inputs);
    cli_inputs_free(&w->base_inputs);
    free(w);
    return status;
}
