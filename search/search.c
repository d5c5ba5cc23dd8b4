/* SPDX-License-Identifier: MIT
 *
 * The search: number the space, screen every plan by legality and memory before any time is
 * computed, simulate the survivors in rounds of fixed size, rank.
 *
 * Determinism: what a worker writes depends only on the plan id; counters are sums; scores leave
 * in id order after each round. So results are the same at any number of threads. The rounds are
 * also where best-first order and a threshold will go.
 */
#include "models/legality.h"
#include "models/predict.h"
#include "search/parallel.h"
#include "search/space.h"
#include "sim/error.h"

#include <stdlib.h>
#include <string.h>

#define ROUND         512  /* plans simulated between two deliveries of scores */
#define SCREEN_GRAIN  1024 /* ids a worker takes at a time while screening */
#define SURVIVES      255
#define DEFAULT_TOP   10
#define SCREEN_FAILED 254

struct hunt {
    const struct ty_search *search;
    struct setting setting;
    struct ty_options options;
    struct space space;
    uint32_t n_workers;
    struct evaluator *evaluator; /* [n_workers] */
    ty_status *failed;           /* [n_workers] first failure of each worker */
    uint8_t *verdict;            /* [n_plans] enum ty_reject, SURVIVES or SCREEN_FAILED */
    uint64_t *survivor;          /* [n_survivors] plan ids, ascending */
    double *value;               /* [n_survivors] tokens/s/GPU */
    uint64_t n_survivors, round_first;
    struct ty_score *score; /* [ROUND] */
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

/* ---- the two passes over the space ----------------------------------------------------------- */

static void screen_id(void *context, uint32_t worker, uint64_t id)
{
    struct hunt *hunt = context;
    struct ty_plan plan;
    resolved_plan(hunt, id, &plan);
    struct memory_verdict memory;
    hunt->verdict[id] = screen_plan(hunt, worker, &plan, &memory);
}

static void score_survivor(void *context, uint32_t worker, uint64_t index)
{
    struct hunt *hunt = context;
    const uint64_t survivor = hunt->round_first + index;
    score_plan(hunt, worker, hunt->survivor[survivor], &hunt->score[index]);
    hunt->value[survivor] = hunt->score[index].tokens_per_s_per_gpu;
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
    ty_status status = first_failure(hunt);
    if (status != TY_OK || hunt->n_survivors == 0)
        return status;
    hunt->survivor = calloc(hunt->n_survivors, sizeof *hunt->survivor);
    hunt->value = calloc(hunt->n_survivors, sizeof *hunt->value);
    if (!hunt->survivor || !hunt->value)
        return TY_ERR_NOMEM;
    uint64_t kept = 0;
    for (uint64_t id = 0; id < n; id++)
        if (hunt->verdict[id] == SURVIVES)
            hunt->survivor[kept++] = id;
    return TY_OK;
}

static bool deliver(const struct hunt *hunt, uint64_t n_scores, uint64_t done)
{
    const struct ty_search *search = hunt->search;
    if (!search->progress)
        return true;
    for (uint64_t i = 0; i < n_scores; i++)
        if (!search->progress(search->user, &hunt->score[i], done + i + 1, hunt->n_survivors))
            return false;
    return n_scores > 0 || search->progress(search->user, NULL, done, hunt->n_survivors);
}

static ty_status score_all(struct hunt *hunt, struct ty_search_result *result)
{
    if (!deliver(hunt, 0, 0))
        return TY_ERR_CANCELLED;
    for (uint64_t first = 0; first < hunt->n_survivors; first += ROUND) {
        const uint64_t rest = hunt->n_survivors - first;
        const uint64_t n = rest < ROUND ? rest : ROUND;
        hunt->round_first = first;
        parallel_for(hunt->n_workers, n, 1, score_survivor, hunt);
        const ty_status status = first_failure(hunt);
        if (status != TY_OK)
            return status;
        result->n_evaluated += n;
        if (!deliver(hunt, n, first))
            return TY_ERR_CANCELLED;
    }
    return TY_OK;
}

/* ---- ranking ----------------------------------------------------------------------------------
 * Within a GPU count: tokens/s/GPU, larger first; ties: lower plan id. Unless `all`, only the best
 * plan of each (tp, pp, cp, ep) is listed: its neighbours in micro-batch or recompute say little.
 */

struct ranked {
    double value;
    uint64_t id;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->value != right->value)
        return left->value < right->value ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

static bool same_shape(const struct ty_plan *a, const struct ty_plan *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->cp == b->cp && a->ep == b->ep;
}

static bool listed(const struct ty_score *best, uint32_t n, const struct ty_plan *plan)
{
    for (uint32_t i = 0; i < n; i++)
        if (same_shape(&best[i].plan, plan))
            return true;
    return false;
}

/* Appends the best plans of one GPU count: ranked [n] is sorted here. */
static void keep_best(struct hunt *hunt, struct ranked *ranked, uint64_t n, uint32_t top,
                      struct ty_search_result *result)
{
    qsort(ranked, n, sizeof *ranked, by_rank);
    struct ty_score *best = &result->best[result->n_best];
    uint32_t kept = 0;
    for (uint64_t i = 0; i < n && kept < top; i++) {
        struct ty_plan plan;
        resolved_plan(hunt, ranked[i].id, &plan);
        if (!hunt->search->all && listed(best, kept, &plan))
            continue;
        score_plan(hunt, 0, ranked[i].id, &best[kept++]);
    }
    result->n_best += kept;
}

static ty_status rank_all(struct hunt *hunt, struct ty_search_result *result)
{
    const uint32_t top = hunt->search->top ? hunt->search->top : DEFAULT_TOP;
    const uint64_t most = (uint64_t)top * hunt->space.n_counts;
    result->best =
        calloc(most < hunt->n_survivors ? most : hunt->n_survivors, sizeof *result->best);
    struct ranked *ranked = calloc(hunt->n_survivors, sizeof *ranked);
    if (!result->best || !ranked) {
        free(ranked);
        return TY_ERR_NOMEM;
    }
    uint64_t survivor = 0;
    for (uint32_t i = 0; i < hunt->space.n_counts; i++) {
        const struct count_space *count = &hunt->space.count[i];
        const uint64_t end_id = count->first_id + count->n_plans;
        uint64_t n = 0;
        for (; survivor < hunt->n_survivors && hunt->survivor[survivor] < end_id; survivor++)
            ranked[n++] = (struct ranked){hunt->value[survivor], hunt->survivor[survivor]};
        keep_best(hunt, ranked, n, top, result);
    }
    free(ranked);
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
    hunt->score = calloc(ROUND, sizeof *hunt->score);
    hunt->verdict = calloc(hunt->space.n_plans, 1);
    if (!hunt->evaluator || !hunt->failed || !hunt->score || !hunt->verdict)
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
    free(hunt->score);
    free(hunt->verdict);
    free(hunt->survivor);
    free(hunt->value);
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
        status = score_all(hunt, result);
    if (status == TY_OK)
        status = rank_all(hunt, result);
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
