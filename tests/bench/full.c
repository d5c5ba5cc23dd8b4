/* SPDX-License-Identifier: MIT
 * The long benchmarks of the simulator: name, value, unit, separated by tabs. One thread; minutes.
 *
 *   fluid.S4     1 GiB ring all-reduce, 4096 ranks, star of 50e9 B/s links, flow by flow: 33.5
 *                million flows; its time against the closed form
 *   step.llama405b_16384.unfolded   llama3-405B on 16,384 H100, TP 8, PP 16, VPP 8, every rank
 *   step.ranks_N, step.micro_N      cost of the full and the folded rung against both counts
 * Each is run once, in a fresh process' memory: what is asked for is the whole cost.
 */
#include "models/predict.h"
#include "sim/engine.h"
#include "tests/bench/bench.h"

#include <sys/resource.h>

static double peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

/* ---- S4 ------------------------------------------------------------------------------------ */

/* Rank i sends to i + 1; a step of a rank may start when its own step before and that of the rank
 * before it are done. */
static void bench_s4(void)
{
    enum { N_RANKS = 4096 };
    struct engine *engine;
    uint32_t id;
    const double start_s = wall_s();
    check(engine_create(NULL, &engine));
    for (uint32_t i = 0; i < 2 * N_RANKS; i++)
        check(engine_add_link(engine, 50e9, true, &id));
    for (uint32_t i = 0; i < N_RANKS; i++) {
        const struct fluid_use uses[2] = {{i, 1}, {N_RANKS + (i + 1) % N_RANKS, 1}};
        check(engine_add_route(engine, uses, 2, &id));
        check(engine_add_stream(engine, &id));
    }
    const uint32_t n_steps = 2 * (N_RANKS - 1);
    for (uint32_t i = 0; i < N_RANKS; i++) {
        const struct engine_task task = {.stream = i,
                                         .class_ = ENGINE_COMM,
                                         .n_rounds = n_steps,
                                         .latency_s = 500e-9,
                                         .work = 1073741824.0 / N_RANKS,
                                         .cap_work_per_s = INFINITY,
                                         .route = i,
                                         .device = {ENGINE_NONE, ENGINE_NONE},
                                         .peer = (i + N_RANKS - 1) % N_RANKS};
        check(engine_add_task(engine, &task, &id));
    }
    check(engine_run(engine, NULL, NULL));
    const double used_s = wall_s() - start_s;
    const double closed_s =
        n_steps * 500e-9 + 2.0 * (N_RANKS - 1.0) / N_RANKS * 1073741824.0 / 50e9;
    print("fluid.S4.wall_s", used_s, "s");
    print("fluid.S4.flows_per_s", (double)N_RANKS * n_steps / used_s, "1/s");
    print("fluid.S4.peak_bytes", peak_bytes(), "B");
    print("fluid.S4.error", engine_makespan_s(engine) / closed_s - 1.0, "ratio");
    engine_destroy(engine);
}

/* ---- steps --------------------------------------------------------------------------------- */

static struct step_case at;

static double simulate_s(struct evaluator *evaluator, const struct ty_options *options,
                         struct step_result *result)
{
    struct memory_verdict verdict;
    struct ty_error error = {.code = TY_OK};
    check(evaluator_memory(evaluator, &at.setting, &at.plan, &verdict));
    const double start_s = wall_s();
    if (evaluator_simulate(evaluator, &at.setting, &at.plan, options, result, &error) != TY_OK) {
        fprintf(stderr, "full: %s: %s\n", error.where, error.text);
        exit(1);
    }
    return wall_s() - start_s;
}

static void bench_step(const char *name, uint32_t n_gpus, uint32_t n_micro)
{
    static const struct ty_scenario every = {.unfold = true};
    const struct ty_options full = {.rung = TY_RUNG_FULL, .scenario = &every}, folded = {0};
    struct evaluator evaluator;
    struct step_result one, all;
    char line[96];
    check(evaluator_init(&evaluator, NULL));
    open_405b(&at, n_gpus, n_micro);
    simulate_s(&evaluator, &folded, &one);
    const double folded_s = simulate_s(&evaluator, &folded, &one);
    const double full_s = simulate_s(&evaluator, &full, &all);
    snprintf(line, sizeof line, "%s.folded_s", name);
    print(line, folded_s, "s");
    snprintf(line, sizeof line, "%s.unfolded_s", name);
    print(line, full_s, "s");
    snprintf(line, sizeof line, "%s.unfolded_events_per_s", name);
    print(line, (double)all.n_events / full_s, "1/s");
    snprintf(line, sizeof line, "%s.difference", name);
    print(line, all.time_s / one.time_s - 1.0, "ratio");
    evaluator_destroy(&evaluator);
}

int main(void)
{
    bench_s4();
    bench_step("step.ranks_1024", 1024, 16);
    bench_step("step.ranks_2048", 2048, 16);
    bench_step("step.ranks_4096", 4096, 16);
    bench_step("step.micro_32", 1024, 32);
    bench_step("step.micro_64", 1024, 64);
    bench_step("step.llama405b_16384", 16384, 16);
    print("step.llama405b_16384.peak_bytes", peak_bytes(), "B");
    return 0;
}
