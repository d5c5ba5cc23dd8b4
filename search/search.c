/* SPDX-License-Identifier: MIT
 *
 * The search in three passes over a numbered space:
 *
 *   screen    every plan: legality, memory; no time is computed
 *   bound     every survivor: the most tokens/s/GPU its lower bound of the step allows
 *   simulate  per list (GPU count) in order of that bound, in rounds of fixed size, until the next
 * bound is strictly worse than the worst plan still listed
 *
 * Since bound x (1 - 1e-9) <= simulated step, what is left out cannot be listed: the result is that
 * of simulating everything (`exhaustive`).
 *
 * Determinism: what a worker writes depends only on the plan id; counters are sums; thresholds
 * move only between rounds; scores leave in the order of the rounds. So results and the plans
 * simulated are the same at any number of threads.
 */
#include "models/legality.h"
#include "models/predict.h"
#include "search/board.h"
#include "search/near.h"
#include "search/parallel.h"
#include "search/space.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROUND     4 /* plans of a round follow the length of the list, within these */
#define MAX_ROUND     64
#define SCREEN_GRAIN  1024 /* ids a worker takes at a time while screening */
#define SURVIVES      255
#define SCREEN_FAILED 254
#define DEFAULT_TOP   10
/* The bound is admissible up to this rounding; source: DESIGN 4, rung 2. */
#define BOUND_SLACK 1e-9

/* A plan that is legal and fits. */
struct survivor {
    uint64_t id;
    double most; /* tokens/s/GPU at its bound */
};

/* The survivors of one list (a GPU count, or all) and how far they have been simulated. */
struct front {
    uint64_t first, n; /* in hunt.survivor */
    uint64_t next;     /* first not yet simulated, 0 .. n */
    struct board board;
};

struct hunt {
    const struct ty_search *search;
    struct setting setting;
    struct ty_options options;
    struct space space;
    uint32_t n_workers, top;
    uint32_t round;              /* plans of one list simulated between two looks at its bound */
    struct evaluator *evaluator; /* [n_workers] */
    ty_status *failed;           /* [n_workers] first failure of each worker */
    struct near_list *near;      /* [n_workers] legal plans that miss least memory */
    uint8_t *verdict;            /* [n_plans] enum ty_reject, SURVIVES or SCREEN_FAILED */
    struct survivor *survivor;   /* [n_survivors] by GPU count, then best bound, then id */
    uint64_t n_survivors, n_settled;
    uint32_t n_fronts;           /* lists: one for each GPU count, or one over all */
    struct front *front;         /* [n_fronts] */
    struct board_entry *entries; /* [n_fronts][top] of the boards */
    uint64_t *batch;             /* [n_fronts * round] survivors of this round */
    struct ty_score *score;      /* [n_fronts * round] */
};

/* ---- one plan ------------------------------------------------------------------------------ */

static enum ty_reject memory_reject(enum ty_mem largest)
{
    switch (largest) {
    case TY_MEM_WEIGHTS:
    case TY_MEM_GRADS:
    case TY_MEM_OPTIMIZER:
        return TY_REJECT_MEMORY_STATES;
    case TY_MEM_LOGITS:
        return TY_REJECT_MEMORY_LOGITS;
    default:
        return TY_REJECT_MEMORY_ACTIVATIONS;
    }
}

static uint8_t screen_plan(struct hunt *hunt, uint32_t worker, const struct ty_plan *plan,
                           struct memory_verdict *memory)
{
    const enum ty_reject reason = legality_reject(&hunt->setting, plan);
    if (reason != TY_N_REJECTS)
        return (uint8_t)reason;
    const ty_status status =
        evaluator_memory(&hunt->evaluator[worker], &hunt->setting, plan, memory);
    if (status != TY_OK) {
        hunt->failed[worker] = status;
        return SCREEN_FAILED;
    }
    if (memory->fit == TY_FIT_NO)
        return (uint8_t)memory_reject(memory->largest);
    return memory->fit == TY_FIT_TIGHT && !hunt->search->allow_tight ? TY_REJECT_MEMORY_TIGHT
                                                                     : SURVIVES;
}

static void resolved_plan(const struct hunt *hunt, uint64_t id, struct ty_plan *out)
{
    struct ty_plan plan;
    space_plan(&hunt->space, id, &plan);
    plan_resolve(&hunt->setting, &plan, out, NULL);
}

static void score_plan(struct hunt *hunt, uint32_t worker, uint64_t id, struct ty_score *out)
{
    *out = (struct ty_score){.plan_id = id};
    resolved_plan(hunt, id, &out->plan);
    struct memory_verdict memory;
    if (screen_plan(hunt, worker, &out->plan, &memory) != SURVIVES)
        return; /* only after a failure, which is already noted */
    struct step_result result;
    const ty_status status = evaluator_simulate(&hunt->evaluator[worker], &hunt->setting,
                                                &out->plan, &hunt->options, &result, NULL);
    if (status != TY_OK) {
        hunt->failed[worker] = status;
        return;
    }
    out->step_time_s = result.time_s;
    out->tokens_per_s = plan_tokens_per_step(&out->plan) / result.time_s;
    out->tokens_per_s_per_gpu = out->tokens_per_s / out->plan.n_gpus;
    out->mfu = plan_mfu(&hunt->setting, &out->plan,
                        plan_model_flop_per_s_per_gpu(&hunt->setting, &out->plan,
                                                      hunt->options.flops, result.time_s));
    out->peak_bytes = memory.peak_bytes;
    out->headroom_bytes = memory.headroom_bytes;
    memcpy(out->breakdown_s, result.breakdown_s, sizeof out->breakdown_s);
}

/* ---- screen ------------------------------------------------------------------------------- */

static void screen_id(void *context, uint32_t worker, uint64_t id)
{
    struct hunt *hunt = context;
    struct ty_plan plan;
    resolved_plan(hunt, id, &plan);
    struct memory_verdict memory = {.fit = TY_FIT_YES};
    hunt->verdict[id] = screen_plan(hunt, worker, &plan, &memory);
    if (memory.fit == TY_FIT_YES)
        return;
    const struct ty_near_miss miss = {id, plan, -memory.headroom_bytes, memory.largest};
    near_offer(&hunt->near[worker], &miss);
}

/* What the workers found, in one list: the same whoever screened which plan. */
static void list_nearest(const struct hunt *hunt, struct ty_search_result *result)
{
    struct near_list list = {0};
    for (uint32_t i = 0; i < hunt->n_workers; i++)
        for (uint32_t j = 0; j < hunt->near[i].n; j++)
            near_offer(&list, &hunt->near[i].miss[j]);
    result->n_nearest = list.n;
    memcpy(result->nearest, list.miss, sizeof result->nearest);
}

static ty_status first_failure(const struct hunt *hunt)
{
    for (uint32_t i = 0; i < hunt->n_workers; i++)
        if (hunt->failed[i] != TY_OK)
            return hunt->failed[i];
    return TY_OK;
}

static ty_status screen_all(struct hunt *hunt, struct ty_search_result *result)
{
    const uint64_t n = hunt->space.n_plans;
    parallel_for(hunt->n_workers, n, SCREEN_GRAIN, screen_id, hunt);
    result->n_enumerated = n;
    for (uint64_t id = 0; id < n; id++) {
        if (hunt->verdict[id] == SURVIVES)
            hunt->n_survivors++;
        else if (hunt->verdict[id] < TY_N_REJECTS)
            result->rejected[hunt->verdict[id]]++;
    }
    result->n_bounded = hunt->n_survivors;
    if (hunt->n_survivors == 0)
        list_nearest(hunt, result);
    const ty_status status = first_failure(hunt);
    if (status != TY_OK || hunt->n_survivors == 0)
        return status;
    hunt->survivor = calloc(hunt->n_survivors, sizeof *hunt->survivor);
    if (!hunt->survivor)
        return TY_ERR_NOMEM;
    uint64_t kept = 0;
    for (uint64_t id = 0; id < n; id++)
        if (hunt->verdict[id] == SURVIVES)
            hunt->survivor[kept++].id = id;
    return TY_OK;
}

/* ---- bound -------------------------------------------------------------------------------- */

static void bound_survivor(void *context, uint32_t worker, uint64_t index)
{
    struct hunt *hunt = context;
    struct survivor *survivor = &hunt->survivor[index];
    struct evaluator *evaluator = &hunt->evaluator[worker];
    struct ty_plan plan;
    resolved_plan(hunt, survivor->id, &plan);
    struct memory_verdict memory;
    double bound_s = 0.0;
    ty_status status = evaluator_memory(evaluator, &hunt->setting, &plan, &memory);
    if (status == TY_OK)
        status = step_bound(evaluator->step, &hunt->setting, &plan, evaluator->slots, &bound_s);
    if (status != TY_OK)
        hunt->failed[worker] = status;
    survivor->most = plan_tokens_per_step(&plan) / (bound_s * (1.0 - BOUND_SLACK)) / plan.n_gpus;
}

static int by_promise(const void *a, const void *b)
{
    const struct survivor *left = a, *right = b;
    if (left->most != right->most)
        return left->most < right->most ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

/* First plan id beyond a list. */
static uint64_t end_of_list(const struct hunt *hunt, uint32_t list)
{
    if (hunt->search->overall)
        return hunt->space.n_plans;
    return hunt->space.count[list].first_id + hunt->space.count[list].n_plans;
}

static ty_status bound_all(struct hunt *hunt)
{
    parallel_for(hunt->n_workers, hunt->n_survivors, 16, bound_survivor, hunt);
    uint64_t first = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++) {
        struct front *front = &hunt->front[i];
        const uint64_t end_id = end_of_list(hunt, i);
        uint64_t end = first;
        while (end < hunt->n_survivors && hunt->survivor[end].id < end_id)
            end++;
        *front = (struct front){.first = first, .n = end - first};
        front->board = (struct board){.capacity = hunt->top,
                                      .all = hunt->search->all,
                                      .entry = &hunt->entries[(size_t)i * hunt->top]};
        qsort(&hunt->survivor[first], front->n, sizeof *hunt->survivor, by_promise);
        first = end;
    }
    return first_failure(hunt);
}

/* ---- simulate ----------------------------------------------------------------------------- */

/* Takes the next plans of a front, or settles it when none of the rest can be listed. */
static uint64_t take_round(struct hunt *hunt, struct front *front, uint64_t n_batch)
{
    const double threshold =
        hunt->search->exhaustive ? -(double)INFINITY : board_threshold(&front->board);
    uint64_t taken = 0;
    while (taken < hunt->round && front->next < front->n) {
        const uint64_t index = front->first + front->next;
        if (hunt->survivor[index].most < threshold) {
            hunt->n_settled += front->n - front->next;
            front->next = front->n;
            break;
        }
        hunt->batch[n_batch + taken++] = index;
        front->next++;
    }
    hunt->n_settled += taken;
    return taken;
}

static void score_batch(void *context, uint32_t worker, uint64_t index)
{
    struct hunt *hunt = context;
    score_plan(hunt, worker, hunt->survivor[hunt->batch[index]].id, &hunt->score[index]);
}

static struct front *front_of(struct hunt *hunt, uint64_t survivor)
{
    uint32_t i = 0;
    while (survivor >= hunt->front[i].first + hunt->front[i].n)
        i++;
    return &hunt->front[i];
}

static bool deliver(const struct hunt *hunt, uint64_t n_scores)
{
    const struct ty_search *search = hunt->search;
    if (!search->progress)
        return true;
    for (uint64_t i = 0; i < n_scores; i++)
        if (!search->progress(search->user, &hunt->score[i], hunt->n_settled, hunt->n_survivors))
            return false;
    return n_scores > 0 || search->progress(search->user, NULL, hunt->n_settled, hunt->n_survivors);
}

static ty_status simulate_all(struct hunt *hunt, struct ty_search_result *result)
{
    if (!deliver(hunt, 0))
        return TY_ERR_CANCELLED;
    for (;;) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < hunt->n_fronts; i++)
            n += take_round(hunt, &hunt->front[i], n);
        if (n == 0)
            return TY_OK;
        parallel_for(hunt->n_workers, n, 1, score_batch, hunt);
        const ty_status status = first_failure(hunt);
        if (status != TY_OK)
            return status;
        result->n_evaluated += n;
        for (uint64_t i = 0; i < n; i++)
            board_offer(&front_of(hunt, hunt->batch[i])->board, &hunt->score[i].plan,
                        hunt->score[i].tokens_per_s_per_gpu, hunt->score[i].plan_id);
        if (!deliver(hunt, n))
            return TY_ERR_CANCELLED;
    }
}

/* The listed plans, simulated once more for all their figures. */
static ty_status list_best(struct hunt *hunt, struct ty_search_result *result)
{
    uint64_t n_listed = 0;
    for (uint32_t i = 0; i < hunt->n_fronts; i++)
        n_listed += hunt->front[i].board.n;
    result->best = calloc(n_listed, sizeof *result->best);
    if (!result->best)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < hunt->n_fronts; i++)
        for (uint32_t j = 0; j < hunt->front[i].board.n; j++)
            score_plan(hunt, 0, hunt->front[i].board.entry[j].id, &result->best[result->n_best++]);
    return first_failure(hunt);
}

/* ---- set-up ------------------------------------------------------------------------------------
 */

static ty_status open_hunt(struct hunt *hunt, struct ty_error *error)
{
    const struct ty_search *search = hunt->search;
    ty_status status =
        setting_init(search->model, search->cluster, search->profile, &hunt->setting, NULL, error);
    if (status != TY_OK)
        return status;
    hunt->options = search->options;
    if (hunt->options.flops == TY_FLOPS_AUTO)
        hunt->options.flops = TY_FLOPS_MEGATRON;
    struct ty_space asked = search->space;
    struct ty_plan resolved;
    plan_resolve(&hunt->setting, &asked.fixed, &resolved, NULL);
    asked.fixed.seq = resolved.seq; /* the knobs' lists depend on it */
    status = space_init(&hunt->setting, &asked, &hunt->space, error);
    if (status != TY_OK)
        return status;
    hunt->n_workers = search->n_threads ? search->n_threads : parallel_processors();
    hunt->evaluator = calloc(hunt->n_workers, sizeof *hunt->evaluator);
    hunt->failed = calloc(hunt->n_workers, sizeof *hunt->failed);
    hunt->near = calloc(hunt->n_workers, sizeof *hunt->near);
    hunt->top = search->top ? search->top : DEFAULT_TOP;
    hunt->round = hunt->top < MIN_ROUND ? MIN_ROUND : hunt->top < MAX_ROUND ? hunt->top : MAX_ROUND;
    hunt->n_fronts = search->overall ? 1 : hunt->space.n_counts;
    hunt->front = calloc(hunt->n_fronts, sizeof *hunt->front);
    hunt->entries = calloc((size_t)hunt->n_fronts * hunt->top, sizeof *hunt->entries);
    hunt->batch = calloc((size_t)hunt->n_fronts * hunt->round, sizeof *hunt->batch);
    hunt->score = calloc((size_t)hunt->n_fronts * hunt->round, sizeof *hunt->score);
    hunt->verdict = calloc(hunt->space.n_plans, 1);
    if (!hunt->evaluator || !hunt->failed || !hunt->near || !hunt->front || !hunt->entries ||
        !hunt->batch || !hunt->score || !hunt->verdict)
        return error_set(error, TY_ERR_NOMEM, "search", "out of memory");
    for (uint32_t i = 0; i < hunt->n_workers; i++) {
        status = evaluator_init(&hunt->evaluator[i], NULL);
        if (status != TY_OK)
            return error_set(error, status, "search", "%s", ty_status_text(status));
    }
    return TY_OK;
}

static void close_hunt(struct hunt *hunt)
{
    for (uint32_t i = 0; hunt->evaluator && i < hunt->n_workers; i++)
        evaluator_destroy(&hunt->evaluator[i]);
    free(hunt->evaluator);
    free(hunt->failed);
    free(hunt->near);
    free(hunt->score);
    free(hunt->verdict);
    free(hunt->survivor);
    free(hunt->front);
    free(hunt->entries);
    free(hunt->batch);
    space_destroy(&hunt->space);
    free(hunt);
}

static ty_status run(struct hunt *hunt, struct ty_search_result *result, struct ty_error *error)
{
    ty_status status = screen_all(hunt, result);
    if (status == TY_OK && hunt->n_survivors == 0)
        return error_set(error, TY_ERR_INFEASIBLE, "search",
                         "none of %llu plans is legal and fits in memory",
                         (unsigned long long)hunt->space.n_plans);
    if (status == TY_OK)
        status = bound_all(hunt);
    if (status == TY_OK)
        status = simulate_all(hunt, result);
    if (status == TY_OK)
        status = list_best(hunt, result);
    return status == TY_OK ? status
                           : error_set(error, status, "search", "%s", ty_status_text(status));
}

ty_status ty_search_run(const struct ty_search *search, struct ty_search_result *out,
                        struct ty_error *error)
{
    struct hunt *hunt = calloc(1, sizeof *hunt);
    if (!hunt)
        return error_set(error, TY_ERR_NOMEM, "search", "out of memory");
    hunt->search = search;
    struct ty_search_result result = {0};
    ty_status status = open_hunt(hunt, error);
    if (status == TY_OK)
        status = run(hunt, &result, error);
    close_hunt(hunt);
    if (status == TY_OK || status == TY_ERR_INFEASIBLE)
        *out = result;
    else
        ty_search_free(&result);
    return status;
}

void ty_search_free(struct ty_search_result *result)
{
    free(result->best);
    *result = (struct ty_search_result){0};
}

const char *ty_reject_name(enum ty_reject reason)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_REJECT_LIST(X)
#undef X
    };
    return reason >= 0 && reason < TY_N_REJECTS ? names[reason] : "unknown";
}
