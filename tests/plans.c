/* SPDX-License-Identifier: MIT
 * The legal plans of a space one by one. The reference is the search: what it simulates of the same
 * space when nothing is left out, and how many plans it rejects by a rule. */
#include "include/trainyard_plans.h"
#include "tests/failing.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <pthread.h>

static struct ty_model model;
static struct ty_cluster cluster;
static struct ty_profile profile;

static void open_space(struct ty_space *space, uint32_t n_gpus, uint32_t gbs)
{
    memset(space, 0, sizeof *space);
    ty_init(TY_KIND_PLAN, &space->fixed);
    space->fixed.n_gpus = n_gpus;
    space->fixed.gbs = gbs;
}

static ty_plans *plans_of(const struct ty_space *space, const struct ty_allocator *allocator)
{
    ty_plans *plans = NULL;
    return ty_plans_open(&model, &cluster, &profile, space, allocator, &plans, NULL) == TY_OK
               ? plans
               : NULL;
}

static bool keep(void *user, const struct ty_score *score, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    double *step_s = user;
    if (score)
        step_s[score->plan_id] = score->step_time_s;
    return true;
}

/* One walk: legal plans counted, the step time of those that fit taken from step_s by number; 0
 * is left of every plan whose bits agree. */
static uint64_t walk(const ty_plans *plans, ty_predictor *predictor, double *step_s)
{
    uint64_t n_legal = 0, cursor = 0;
    struct ty_plan plan;
    while (ty_plans_next(plans, &cursor, &plan)) {
        struct ty_prediction answer;
        n_legal++;
        if (ty_predictor_run(predictor, &plan, NULL, &answer, NULL) != TY_OK)
            step_s[cursor - 1] = -1.0;
        else if (answer.fit != TY_FIT_NO)
            step_s[cursor - 1] -= answer.step_time_s;
    }
    return n_legal;
}

static void equals_search(const char *what, const struct ty_space *space)
{
    ty_plans *plans = plans_of(space, NULL);
    const uint64_t n = plans ? ty_plans_n(plans) : 0;
    double *step_s = calloc(n + 1, sizeof *step_s);
    struct ty_search search = {.model = &model,
                               .cluster = &cluster,
                               .profile = &profile,
                               .space = *space,
                               .allow_tight = true,
                               .exhaustive = true,
                               .progress = keep,
                               .user = step_s};
    struct ty_search_result result = {0};
    ty_predictor *predictor = NULL;
    struct failing source = {.n_left = UINT64_MAX};
    const struct ty_allocator counting = {failing_alloc, failing_release, &source};
    const bool ran =
        plans && step_s && ty_search_run(&search, &result, NULL) == TY_OK &&
        ty_predictor_create(&model, &cluster, &profile, &counting, &predictor, NULL) == TY_OK;
    ok(ran && result.n_evaluated > 0, "%s: the search simulates %llu of %llu", what,
       (unsigned long long)result.n_evaluated, (unsigned long long)result.n_enumerated);
    uint64_t n_legal = result.n_enumerated, n_differ = 0;
    for (int reason = 0; reason <= TY_REJECT_OTHER_RULE; reason++)
        n_legal -= result.rejected[reason];
    ok(ran && n == result.n_enumerated && walk(plans, predictor, step_s) == n_legal,
       "as many plans and legal plans (%llu)", (unsigned long long)n_legal);
    for (uint64_t id = 0; id < n; id++)
        n_differ += step_s[id] != 0.0;
    ok(n_differ == 0, "the predictor fits and times the same plans, bit for bit");
    const uint64_t n_left = source.n_left;
    ok(ran && walk(plans, predictor, step_s) == n_legal && source.n_left == n_left,
       "and allocates nothing once it has seen the largest");
    ty_predictor_destroy(predictor);
    ty_search_free(&result);
    ty_plans_close(plans);
    free(step_s);
}

static void spaces_of_search(void)
{
    struct ty_space space;
    open_space(&space, 16, 32);
    equals_search("Llama-3-8B on 16", &space);
    open_space(&space, 0, 48);
    space.n_gpus = (struct ty_values){.n = 3, .value = {24, 8, 12}};
    space.schedule = (struct ty_values){
        .n = 3, .value = {TY_SCHEDULE_1F1B, TY_SCHEDULE_INTERLEAVED, TY_SCHEDULE_ZB_V}};
    space.mbs = (struct ty_values){.n = 2, .value = {1, 2}};
    space.offload = (struct ty_values){.n = 2, .value = {TY_OFFLOAD_NONE, TY_OFFLOAD_OPTIMIZER}};
    space.tp = (struct ty_values){.n = 2, .value = {2, 4}};
    equals_search("three counts and schedules, offload", &space);
    open_space(&space, 16, 32);
    snprintf(space.fixed.layout, sizeof space.fixed.layout, "balanced");
    equals_search("balanced layouts", &space);
    fixture_deepseek_v3(&model);
    open_space(&space, 512, 1024);
    space.ep = (struct ty_values){.n = 2, .value = {8, 64}};
    space.tp = (struct ty_values){.n = 2, .value = {1, 4}};
    space.mbs = (struct ty_values){.n = 1, .value = {1}};
    equals_search("DeepSeek-V3 on 512", &space);
    fixture_llama3_8b(&model);
}

/* A thread's own part of the numbers, of a handle that all share. */
struct part {
    const ty_plans *plans;
    uint64_t first, end, n, sum; /* sum: of the numbers and knobs of its legal plans */
};

static void *walk_part(void *argument)
{
    struct part *part = argument;
    struct ty_plan plan;
    for (uint64_t cursor = part->first;
         ty_plans_next(part->plans, &cursor, &plan) && cursor <= part->end;) {
        part->n++;
        part->sum += cursor * (plan.tp + 3 * plan.pp + 5 * plan.vpp + 7 * plan.mbs);
    }
    return NULL;
}

static void threads_share_a_handle(void)
{
    struct ty_space space;
    open_space(&space, 64, 256);
    ty_plans *plans = plans_of(&space, NULL);
    const uint64_t n = ty_plans_n(plans);
    struct part whole = {.plans = plans, .end = n}, part[3];
    pthread_t thread[3];
    (void)walk_part(&whole);
    for (uint64_t i = 0; i < 3; i++) {
        part[i] = (struct part){.plans = plans, .first = n * i / 3, .end = n * (i + 1) / 3};
        if (pthread_create(&thread[i], NULL, walk_part, &part[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    ok(whole.n > 0 && part[0].n + part[1].n + part[2].n == whole.n &&
           part[0].sum + part[1].sum + part[2].sum == whole.sum,
       "three threads on one handle, each from a number of its own: every plan once");
    ty_plans_close(plans);
}

static void opens_and_ends(void)
{
    struct ty_space space;
    open_space(&space, 8, 16);
    for (uint64_t n = 0; n < 2; n++) {
        struct failing source = {.n_left = n};
        ok(!plans_of(&space, &(struct ty_allocator){failing_alloc, failing_release, &source}) &&
               source.failed && source.held_bytes == 0,
           "allocation %llu fails: all is given back", (unsigned long long)n);
    }
    struct failing source = {.n_left = 2};
    ty_plans *plans =
        plans_of(&space, &(struct ty_allocator){failing_alloc, failing_release, &source});
    struct ty_plan plan = {.n_gpus = 12345};
    uint64_t cursor = 0, n = 0;
    while (plans && ty_plans_next(plans, &cursor, &plan))
        n++;
    ok(n > 0 && !source.failed, "two allocations to open, none for %llu plans",
       (unsigned long long)n);
    plan.n_gpus = 12345;
    cursor = UINT64_MAX;
    ok(!ty_plans_next(plans, &cursor, &plan) && cursor == ty_plans_n(plans) &&
           !ty_plans_at(plans, cursor, &plan) && plan.n_gpus == 12345,
       "beyond the end: nothing, and nothing written");
    ty_plans_close(plans);
    ty_plans_close(NULL);
    ok(source.held_bytes == 0, "closed: all is given back");
    struct ty_error error;
    space.fixed.n_gpus = 0;
    ok(ty_plans_open(&model, &cluster, &profile, &space, NULL, &plans, &error) == TY_ERR_RANGE,
       "no GPU count is refused");
    same_text(error.where, "gpus", "and named");
}

int main(void)
{
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    spaces_of_search();
    threads_share_a_handle();
    opens_and_ends();
    return tap_done();
}
