/* SPDX-License-Identifier: MIT
 *
 * The smallest machine for a job: a search of each GPU count, best plan for every phase. The time
 * that is left of the deadline is a limit of the search, so counts that are too small are known by
 * their bounds, before any simulation.
 */
#include "include/trainyard_cost.h"
#include "models/cost.h"
#include "models/failures.h"
#include "models/goal.h"
#include "models/interval.h"
#include "models/predict.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>

#define FINE_GPUS   4096 /* every node up to here */
#define MOST_GPUS   32768
#define COARSE_STEP 8 /* nodes */
#define MEDIAN      0.5

struct sizing {
    const struct ty_size *size;
    struct ty_values counts; /* asked for; none: those of next_count */
    struct setting setting;
    struct cost_model cost;
    struct ty_search search;
    struct ty_goal goal;
};

/* ---- one count ---------------------------------------------------------------------------- */

static ty_status best_plan(struct sizing *s, const struct ty_phase *phase, double left_s,
                           struct ty_score *out, bool *found, struct ty_error *error)
{
    struct ty_search *search = &s->search;
    struct ty_plan *fixed = &search->space.fixed;
    fixed->seq = phase->seq ? phase->seq : s->size->space.fixed.seq;
    fixed->gbs = phase->gbs ? phase->gbs : s->size->space.fixed.gbs;
    s->goal.tokens = phase->tokens;
    s->goal.deadline_s = left_s;
    struct ty_search_result result = {0};
    const ty_status status = ty_search_run(search, &result, error);
    *found = status == TY_OK && result.n_best > 0;
    if (*found)
        *out = result.best[0];
    ty_search_free(&result);
    return status == TY_ERR_INFEASIBLE ? TY_OK : status;
}

/* The phases one after the other; *fits: all have a plan and the last ends before left_s. */
static ty_status run_phases(struct sizing *s, double left_s, struct ty_size_result *out, bool *fits,
                            struct ty_error *error)
{
    const struct ty_job *job = s->size->job;
    ty_status status = TY_OK;
    *fits = true;
    for (uint32_t i = 0; status == TY_OK && *fits && i < job->n_phases; i++) {
        struct ty_score *score = &out->phase[i];
        status = best_plan(s, &job->phase[i], left_s, score, fits, error);
        if (status != TY_OK || !*fits)
            break;
        out->phase_s[i] = job->phase[i].tokens / (score->tokens_per_s * score->useful_ratio);
        left_s -= out->phase_s[i];
    }
    out->n_phases = job->n_phases;
    return status;
}

/* Phi(ln(limit / median) / spread); NAN without a limit. */
static double probability_below(double limit, double median, double spread)
{
    const double margin = log(limit / median);
    if (!(spread > 0.0) && !isnan(limit))
        return margin > 0.0 ? 1.0 : margin < 0.0 ? 0.0 : 0.5;
    return 0.5 * erfc(-margin / spread / sqrt(2.0));
}

/* Money, energy and carbon of the median run. */
static double outlay(const struct sizing *s, struct ty_size_result *out)
{
    const struct ty_price *price = &s->cost.price;
    const struct ty_job *job = s->size->job;
    double money = 0.0, energy_j = 0.0;
    for (uint32_t i = 0; i < out->n_phases; i++) {
        const double tokens = job->phase[i].tokens / out->phase[i].useful_ratio;
        money += tokens * out->phase[i].outlay.money_per_token;
        energy_j += tokens * out->phase[i].outlay.energy_j_per_token;
    }
    const double spare_gpus = (double)out->spares * s->cost.cluster->gpus_per_node;
    const double resting_gpu_s =
        spare_gpus * out->time_s[TY_P50] + out->gpus_paid * job->downtime_s;
    const double resting_j = resting_gpu_s * price->pue *
                             (s->cost.idle_w + price->node_w / s->cost.cluster->gpus_per_node);
    out->energy_j = energy_j + resting_j;
    out->co2_kg = price->co2_kg_per_kwh * out->energy_j / 3.6e6;
    return money + resting_gpu_s * s->cost.gpu_hour / 3600.0 + price->kwh * resting_j / 3.6e6;
}

static void judge(const struct sizing *s, struct ty_size_result *out)
{
    double time_s = s->size->job->downtime_s;
    for (uint32_t i = 0; i < out->n_phases; i++)
        time_s += out->phase_s[i];
    out->half_80 = interval_half_widths(&s->setting.profile, &s->setting.model, &out->phase[0].plan,
                                        INTERVAL_TIME)
                       .of_80;
    const double spread = failures_spread(s->size->failures, &out->goodput, time_s, out->half_80);
    failures_quantiles(time_s, spread, out->time_s);
    const double money = outlay(s, out);
    failures_quantiles(money, spread, out->money);
    out->p_meet_deadline = probability_below(s->size->deadline_s, time_s, spread);
    out->p_meet_budget = probability_below(s->size->budget, money, spread);
}

static bool keeps_limits(const struct ty_size *size, const struct ty_size_result *result)
{
    const double confidence = isnan(size->confidence) ? MEDIAN : size->confidence;
    return !(result->p_meet_deadline < confidence) && !(result->p_meet_budget < confidence);
}

/* limited: plans that miss the deadline are left out unseen. */
static ty_status try_count(struct sizing *s, uint32_t n_gpus, bool limited,
                           struct ty_size_result *out, struct ty_error *error)
{
    const struct ty_size *size = s->size;
    const double nodes = ceil((double)n_gpus / s->setting.cluster.gpus_per_node);
    s->search.space.n_gpus = (struct ty_values){.n = 1, .value = {n_gpus}};
    *out = (struct ty_size_result){
        .gpus = n_gpus,
        .gpus_paid = cost_paid_gpus(&s->cost, n_gpus),
        .goodput = {
            .mtbf_s = INFINITY, .interval_s = INFINITY, .useful_ratio = 1.0, .stretch_ratio = 1.0}};
    ty_status status = TY_OK;
    if (size->failures)
        status = ty_goodput(size->failures, nodes, &out->goodput, error);
    out->spares = out->goodput.spares;
    /* A confidence above one half only shortens the time there is. */
    double left_s = (double)NAN;
    if (limited && !isnan(size->deadline_s) && !(size->confidence < MEDIAN))
        left_s = fmax(0.0, size->deadline_s - size->job->downtime_s);
    bool fits = false;
    if (status == TY_OK)
        status = run_phases(s, left_s, out, &fits, error);
    if (status != TY_OK || !fits)
        return status;
    const struct goal saves = {.asked = s->goal,
                               .cost = s->cost,
                               .setting = &s->setting,
                               .storage = size->options.storage};
    if (size->options.storage)
        status = goal_goodput(&saves, &out->phase[0].plan, &out->goodput);
    if (status != TY_OK)
        return error_set(error, status, "checkpoint", "%s", ty_status_text(status));
    judge(s, out);
    out->fits = true;
    out->feasible = keeps_limits(size, out);
    return TY_OK;
}

/* ---- counts ------------------------------------------------------------------------------- */

/* No count whose peak rate is too low for the deadline can do. */
static uint32_t least_gpus(const struct sizing *s)
{
    const struct ty_gpu *gpu = &s->setting.cluster.gpu;
    const double peaks[] = {gpu->bf16_flop_per_s, gpu->fp16_flop_per_s, gpu->fp8_flop_per_s,
                            gpu->fp4_flop_per_s};
    double peak = 0.0, flop = 0.0;
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++)
        peak = fmax(peak, peaks[i]);
    for (uint32_t i = 0; i < s->size->job->n_phases; i++)
        flop += s->size->job->phase[i].tokens * s->setting.params.active * 2.0; /* forward alone */
    const double least = flop / (peak * s->size->deadline_s);
    return least > 1.0 && least < MOST_GPUS ? (uint32_t)least : 1;
}

/* The next count to try after `n`; 0: none. */
static uint32_t next_count(const struct sizing *s, uint32_t n, uint32_t *listed)
{
    const struct ty_cluster *cluster = &s->setting.cluster;
    if (s->counts.n > 0)
        return *listed < s->counts.n ? s->counts.value[(*listed)++] : 0;
    const uint32_t node = cluster->gpus_per_node;
    const uint32_t step = n < FINE_GPUS ? node : COARSE_STEP * node;
    const uint32_t next = n == 0 ? (least_gpus(s) + node - 1) / node * node : n + step;
    const uint64_t there = cluster->n_nodes ? (uint64_t)cluster->n_nodes * node : MOST_GPUS;
    return next <= there && next <= MOST_GPUS ? next : 0;
}

/* ---- interface ---------------------------------------------------------------------------- */

static ty_status check(const struct ty_size *size, struct ty_error *error)
{
    const struct ty_job *job = size->job;
    if (job->n_phases == 0 || job->n_phases > TY_MAX_PHASES)
        return error_set(error, TY_ERR_RANGE, "phases", "must be 1 to %d", TY_MAX_PHASES);
    for (uint32_t i = 0; i < job->n_phases; i++)
        if (!(job->phase[i].tokens > 0.0) || isinf(job->phase[i].tokens))
            return error_set(error, TY_ERR_RANGE, "phases", "phase %u has no tokens", i + 1);
    if (!(job->downtime_s >= 0.0) || isinf(job->downtime_s))
        return error_set(error, TY_ERR_RANGE, "downtime", "must be 0 or more");
    if (!isnan(size->budget) && !size->price)
        return error_set(error, TY_ERR_RANGE, "budget", "needs a price list");
    if (size->confidence <= 0.0 || size->confidence >= 1.0)
        return error_set(error, TY_ERR_RANGE, "confidence", "must lie between 0 and 1");
    return TY_OK;
}

static ty_status open_sizing(const struct ty_size *size, struct sizing *s, struct ty_error *error)
{
    s->size = size;
    s->counts = size->space.n_gpus;
    if (s->counts.n == 0 && size->space.fixed.n_gpus > 0)
        s->counts = (struct ty_values){.n = 1, .value = {size->space.fixed.n_gpus}};
    ty_status status = check(size, error);
    if (status == TY_OK)
        status = setting_init(size->model, size->cluster, size->profile, &s->setting, NULL, error);
    if (status == TY_OK)
        status = cost_model_init(&s->setting.cluster, size->price, &s->cost, error);
    ty_goal_init(&s->goal);
    s->goal.price = size->price;
    s->goal.failures = size->failures;
    s->search = (struct ty_search){.model = size->model,
                                   .cluster = size->cluster,
                                   .profile = size->profile,
                                   .space = size->space,
                                   .options = size->options,
                                   .n_threads = size->n_threads,
                                   .top = 1,
                                   .allow_tight = size->allow_tight,
                                   .overall = true,
                                   .goal = &s->goal};
    return status;
}

/* The smallest count that does. */
static ty_status find_answer(struct sizing *s, struct ty_size_result *out, struct ty_error *error)
{
    ty_status status = TY_OK;
    uint32_t listed = 0, n_tried = 0;
    for (uint32_t n = 0; status == TY_OK && !out->feasible && (n = next_count(s, n, &listed));) {
        status = try_count(s, n, true, out, error);
        n_tried++;
    }
    out->n_tried = n_tried;
    return status;
}

/* The counts of the points of a machine: those listed, or multiples of the answer. */
static void list_points(const struct sizing *s, const struct ty_size_result *answer,
                        struct ty_values *out)
{
    static const double multiples[] = {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0};
    *out = s->counts;
    if (out->n > 0 || !answer->feasible)
        return;
    const uint32_t node = s->setting.cluster.gpus_per_node;
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        const uint32_t n = (uint32_t)ceil(multiples[i] * answer->gpus / node) * node;
        if (out->n == 0 || out->value[out->n - 1] != n)
            out->value[out->n++] = n;
    }
}

static ty_status give_points(struct sizing *s, const struct ty_size_result *answer,
                             struct ty_error *error)
{
    struct ty_values counts;
    struct ty_size_result *point = calloc(1, sizeof *point);
    ty_status status = point ? TY_OK : error_set(error, TY_ERR_NOMEM, "size", "out of memory");
    list_points(s, answer, &counts);
    for (uint32_t i = 0; status == TY_OK && i < counts.n; i++) {
        status = try_count(s, counts.value[i], false, point, error);
        if (status == TY_OK && !s->size->point(s->size->user, point))
            status = error_set(error, TY_ERR_CANCELLED, "size", "cancelled");
    }
    free(point);
    return status;
}

ty_status ty_size_run(const struct ty_size *size, struct ty_size_result *out,
                      struct ty_error *error)
{
    struct sizing *s = calloc(1, sizeof *s);
    struct ty_size_result *result = calloc(1, sizeof *result);
    ty_status status =
        s && result ? TY_OK : error_set(error, TY_ERR_NOMEM, "size", "out of memory");
    if (status == TY_OK)
        status = open_sizing(size, s, error);
    if (status == TY_OK)
        status = find_answer(s, result, error);
    if (status == TY_OK && size->point)
        status = give_points(s, result, error);
    if (status == TY_OK)
        *out = *result;
    free(result);
    free(s);
    return status;
}
