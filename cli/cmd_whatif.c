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

static bool take_only(void *user, const struct ty_score *score)
{
    struct answer *out = user;
    *out = (struct answer){.feasible = isfinite(score->step_time_s), .score = *score};
    return true;
}

/* The kept plan under the inputs of the point: a crossing of nothing. */
static ty_status predict_point(struct whatif *w, struct answer *out)
{
    const struct ty_cross cross = {.model = &w->inputs.model,
                                   .cluster = &w->inputs.cluster,
                                   .profile = &w->inputs.profile,
                                   .plan = &w->kept,
                                   .price = w->inputs.options.price,
                                   .options = w->inputs.options,
                                   .n_threads = 1,
                                   .allow_tight = true};
    return ty_cross_run(&cross, take_only, out, &w->error);
}

/* The kept plan with what the point's own settings say of it. */
static void keep_plan(struct whatif *w)
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
}

/* Answers the command line in w->point. */
static ty_status ask(struct whatif *w, bool keep, struct answer *out)
{
    *out = (struct answer){0};
    ty_status status = cli_load(&w->point, true, &w->inputs, &w->error);
    if (status != TY_OK || !keep)
        return status == TY_OK ? search_point(w, out) : status;
    keep_plan(w);
    return predict_point(w, out);
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
    const struct ty_rated point = rated(w->point_inputs, &answer->score);
    const struct ty_rated base = rated(&w->base_inputs, &w->base.score);
    ty_ratio_of(&point, &base, &answer->to_base);
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
        w->alone[point] = answer.feasible ? score->tokens_per_s_per_gpu : (double)NAN;
    if (answer.feasible &&
        (!w->best.feasible || score->tokens_per_s_per_gpu > w->best.score.tokens_per_s_per_gpu)) {
        w->best = answer;
        w->best_point = point;
    }
    cli_progress_show(&w->progress, point + 1, w->n_points);
    return (!w->study.store || cli_study_add(&w->study, score, &w->error) == TY_OK) &&
           !cli_interrupted();
}

/* The answer of a point that the study holds; its inputs are loaded for the comparison. */
static ty_status recall(struct whatif *w, uint64_t point, struct answer *out)
{
    bool found = false;
    *out = (struct answer){0};
    ty_status status = cli_load(&w->point, true, &w->inputs, &w->error);
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
    if (share->n_shards && ty_shard_of(point, share->n_shards) != share->shard)
        return TY_OK;
    axes_point(&w->axes, w->args, point, &w->point);
    ty_status status = ty_known_find(share, point) ? recall(w, point, &answer)
                                                   : ask(w, w->args->keep_plan, &answer);
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
    const bool plain = w->args->keep_plan && whatif_is_plain(w);
    w->point_inputs = plain ? &w->base_inputs : &w->inputs;
    if (plain)
        status = whatif_cross(w, take_point);
    else
        for (uint64_t point = 0; point < w->n_points && status == TY_OK; point++)
            status = ask_point(w, point);
    cli_progress_end(&w->progress);
    return status;
}

/* Each value of each axis against the base, everything else as it is. */
static ty_status ask_alone(struct whatif *w)
{
    ty_status status = TY_OK;
    for (uint32_t i = 0; w->axes.n > 1 && i < w->axes.n; i++)
        for (uint32_t value = 0; status == TY_OK && value < w->axes.axis[i].n; value++) {
            struct answer answer;
            axes_single(&w->axes, w->args, i, value, &w->point);
            status = ask(w, w->args->keep_plan, &answer);
            w->alone[i * AXIS_MAX_VALUES + value] =
                answer.feasible ? answer.score.tokens_per_s_per_gpu : (double)NAN;
        }
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
        status = ty_store_add_prediction(w->study.store, w->study.id, &prediction, &w->error);
    ty_predictor_destroy(predictor);
    return status;
}

/* The best plan without the axes; at its bound, where the points will be. */
static ty_status ask_base(struct whatif *w)
{
    axes_base(&w->axes, w->args, &w->point);
    ty_status status = cli_load(&w->point, true, &w->base_inputs, &w->error);
    w->base_inputs.options.effects = false;
    if (status == TY_OK)
        status = ask(w, false, &w->base);
    if (status != TY_OK || !w->base.feasible)
        return status;
    if (w->study.store)
        status = store_base(w);
    if (status == TY_OK && w->base_inputs.options.rung == TY_RUNG_BOUND) {
        w->kept = w->base.score.plan;
        status = predict_point(w, &w->base);
    }
    return status;
}

/* ---- database ------------------------------------------------------------------------------- */

/* The axes are of the study, the values as typed. */
static ty_status open_study(struct whatif *w)
{
    char *details = NULL;
    size_t bytes;
    axes_base(&w->axes, w->args, &w->point);
    const ty_status status = cli_load(&w->point, true, &w->base_inputs, &w->error);
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
    const char *text[AXES_MAX][AXIS_MAX_VALUES];
    uint64_t stride = 1;
    for (uint32_t i = w->axes.n; i-- > 0;) {
        const struct axis *axis = &w->axes.axis[i];
        for (uint32_t k = 0; k < axis->n; k++)
            text[i][k] = axis->text[k];
        axes[i] = (struct ty_axis){.path = whatif_setting(w, i)->path,
                                   .n = axis->n,
                                   .stride = stride,
                                   .text = text[i],
                                   .number = axis->number,
                                   .base = w->base.feasible ? w->base.score.tokens_per_s_per_gpu
                                                            : (double)NAN,
                                   .alone = &w->alone[i * AXIS_MAX_VALUES]};
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
    w->alone = calloc((size_t)AXES_MAX * AXIS_MAX_VALUES, sizeof *w->alone);
    if (!w->alone || (w->n_points <= WHATIF_MOST_SHOWN && !w->answers))
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
    if (cli_interrupted() && status == TY_ERR_CANCELLED)
        return cli_interrupt_status(&w->study);
    if (status == TY_OK && cli_study_is_shard(&w->study))
        return print_shard(w);
    if (status == TY_OK && w->base.feasible)
        status = ask_alone(w);
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
    free(w->alone);
    free(w);
    return status;
}
