/* SPDX-License-Identifier: MIT
 * Speed of the simulator: name, value, unit, separated by tabs. One thread, about 10 s.
 *
 *   engine.hold_N   hold model (pop the first of N events, put it back an exponential time later)
 *                   on sim/queue, as a ratio to a bare 4-ary heap of doubles in the same run
 *   engine.tasks    compute tasks without links, 64 streams, an edge to every second one
 *   fluid.S1        1 GiB ring all-reduce, 512 ranks, star of 50e9 B/s links, flow by flow
 *   fluid.S4        the ring with 4096 ranks as one weighted flow; flow by flow: BENCH=full
 *   fluid.S5        512 ranks, 54 all-reduces of 64 MiB one after the other, every rank a flow
 *   fluid.S2, S3    fat tree, 8 hosts a leaf, 8 spines, 25 GB/s links, D-mod-k routes, random
 *                   pairs, 1-500 MB: 512 hosts, 10,000 flows in 0.2 s; 1024 hosts, 8,000 at once
 *   step.llama405b_16384   one step, one rank per stage; the records of layers are cached
 *   step.S6         9216 GPUs, MoE of 96 layers, TP 4, PP 12, VPP 8, EP 8: bound and simulation
 * Graphs are built in an engine that was used before: building counts, first allocation does not.
 */
#include "sim/engine.h"
#include "sim/queue.h"
#include "sim/random.h"
#include "tests/bench/bench.h"

#include <math.h>

enum { N_GAPS = 4096, N_HOLDS = 200000, N_HOLD_ROUNDS = 30, N_ROUNDS = 5, MAX_HELD = 8192 };

/* ---- hold model ---------------------------------------------------------------------------- */

static void bare_push(double *heap, uint32_t n, double time_s)
{
    uint32_t place = n;
    while (place > 0 && time_s < heap[(place - 1) / 4]) {
        heap[place] = heap[(place - 1) / 4];
        place = (place - 1) / 4;
    }
    heap[place] = time_s;
}

/* n: entries left after the pop. */
static double bare_pop(double *heap, uint32_t n)
{
    double first = heap[0], last = heap[n];
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 4 * place + 1;
        if (child >= n)
            break;
        uint32_t end = child + 4 < n ? child + 4 : n, best = child;
        for (uint32_t i = child + 1; i < end; i++)
            best = heap[i] < heap[best] ? i : best;
        if (!(heap[best] < last))
            break;
        heap[place] = heap[best];
        place = best;
    }
    heap[place] = last;
    return first;
}

static double bare_hold_s(const double *gaps_s, uint32_t n)
{
    static double heap[MAX_HELD + 1];
    for (uint32_t i = 0; i < n; i++)
        bare_push(heap, i, gaps_s[i % N_GAPS]);
    double start_s = wall_s();
    for (uint32_t i = 0; i < N_HOLDS; i++)
        bare_push(heap, n - 1, bare_pop(heap, n - 1) + gaps_s[i % N_GAPS]);
    return wall_s() - start_s;
}

static double queue_hold_s(const double *gaps_s, uint32_t n)
{
    struct queue *queue;
    check(queue_create(NULL, &queue));
    for (uint32_t i = 0; i < n; i++)
        queue_set(queue, i, gaps_s[i % N_GAPS], 0);
    double start_s = wall_s();
    for (uint32_t i = 0; i < N_HOLDS; i++) {
        double time_s;
        uint32_t id = queue_pop(queue, &time_s);
        queue_set(queue, id, time_s + gaps_s[i % N_GAPS], 0);
    }
    double used_s = wall_s() - start_s;
    queue_destroy(queue);
    return used_s;
}

static void bench_hold(void)
{
    static double gaps_s[N_GAPS];
    struct random_stream random;
    random_init(&random, 1, 0);
    for (int i = 0; i < N_GAPS; i++)
        gaps_s[i] = random_exponential(&random);
    for (uint32_t n = 16; n <= MAX_HELD; n *= 8) {
        double bare_s = INFINITY, queue_s = INFINITY;
        for (int round = 0; round < N_HOLD_ROUNDS; round++) {
            bare_s = fmin(bare_s, bare_hold_s(gaps_s, n));
            queue_s = fmin(queue_s, queue_hold_s(gaps_s, n));
        }
        char name[64];
        snprintf(name, sizeof name, "engine.hold_%u.per_s", n);
        print(name, N_HOLDS / queue_s, "1/s");
        snprintf(name, sizeof name, "engine.hold_%u.ratio_to_bare_heap", n);
        print(name, bare_s / queue_s, "ratio");
    }
}

/* ---- engine -------------------------------------------------------------------------------- */

typedef void build_fn(struct engine *engine);

/* Wall time to build and run a graph, the best of several; the engine's memory is warm. */
static double graph_s(struct engine *engine, build_fn *build, int n_rounds)
{
    double best_s = INFINITY;
    for (int round = 0; round <= n_rounds; round++) {
        engine_reset(engine);
        double start_s = wall_s();
        build(engine);
        check(engine_run(engine, NULL, NULL));
        if (round > 0)
            best_s = fmin(best_s, wall_s() - start_s);
    }
    return best_s;
}

static void build_tasks(struct engine *engine)
{
    enum { N_STREAMS = 64, N_TASKS = 1 << 20 };
    uint32_t id;
    for (uint32_t i = 0; i < N_STREAMS; i++)
        check(engine_add_stream(engine, &id));
    for (uint32_t i = 0; i < N_TASKS; i++) {
        struct engine_task task = {.stream = i % N_STREAMS,
                                   .class_ = ENGINE_COMPUTE,
                                   .work = 1e-6 * (1 + i * 7919 % 101),
                                   .cap_work_per_s = 1,
                                   .route = ENGINE_NONE,
                                   .device = {ENGINE_NONE, ENGINE_NONE}};
        check(engine_add_task(engine, &task, &id));
        if (i >= N_STREAMS && i % 2)
            check(engine_add_edge(engine, i - N_STREAMS + 1, id));
    }
}

/* ---- networks ------------------------------------------------------------------------------ */

static struct engine_task flow(uint32_t stream, uint32_t route, double bytes)
{
    return (struct engine_task){.stream = stream,
                                .class_ = ENGINE_COMM,
                                .work = bytes,
                                .cap_work_per_s = INFINITY,
                                .route = route,
                                .device = {ENGINE_NONE, ENGINE_NONE}};
}

static void build_s1(struct engine *engine)
{
    enum { N_RANKS = 512 };
    uint32_t id;
    for (uint32_t i = 0; i < 2 * N_RANKS; i++)
        check(engine_add_link(engine, 50e9, true, &id));
    for (uint32_t i = 0; i < N_RANKS; i++) {
        struct fluid_use uses[2] = {{i, 1}, {N_RANKS + (i + 1) % N_RANKS, 1}};
        check(engine_add_route(engine, uses, 2, &id));
        check(engine_add_stream(engine, &id));
    }
    for (uint32_t step = 0; step < 2 * (N_RANKS - 1); step++)
        for (uint32_t i = 0; i < N_RANKS; i++) {
            struct engine_task task = flow(i, i, 1073741824.0 / N_RANKS);
            task.latency_s = 500e-9;
            check(engine_add_task(engine, &task, &id));
            if (step > 0)
                check(engine_add_edge(engine, (step - 1) * N_RANKS + (i + N_RANKS - 1) % N_RANKS,
                                      id));
        }
}

/* Links: up and down of each host, then up and down between each leaf and spine. */
static void build_fat_tree(struct engine *engine, uint32_t n_hosts, uint32_t n_flows,
                           double within_s)
{
    enum { N_SPINES = 8 };
    uint32_t id, fabric = 2 * n_hosts;
    struct random_stream random;
    random_init(&random, 2, 0);
    for (uint32_t i = 0; i < 4 * n_hosts; i++)
        check(engine_add_link(engine, 25e9, true, &id));
    for (uint32_t i = 0; i < n_flows; i++) {
        uint32_t from = (uint32_t)random_below(&random, n_hosts);
        uint32_t to = (from + 1 + (uint32_t)random_below(&random, n_hosts - 1)) % n_hosts;
        uint32_t spine = to % N_SPINES;
        struct fluid_use uses[4] = {{2 * from, 1},
                                    {2 * to + 1, 1},
                                    {fabric + 2 * (from / 8 * N_SPINES + spine), 1},
                                    {fabric + 2 * (to / 8 * N_SPINES + spine) + 1, 1}};
        uint32_t route, stream;
        check(engine_add_route(engine, uses, from / 8 == to / 8 ? 2 : 4, &route));
        check(engine_add_stream(engine, &stream));
        struct engine_task task = flow(stream, route, 1e6 + 499e6 * random_unit(&random));
        check(engine_add_task(engine, &task, &id));
        engine_set_release_s(engine, id, within_s * random_unit(&random));
    }
}

static void build_s2(struct engine *engine)
{
    build_fat_tree(engine, 512, 10000, 0.2);
}

static void build_s3(struct engine *engine)
{
    build_fat_tree(engine, 1024, 8000, 0);
}

static void build_s4(struct engine *engine)
{
    enum { N_RANKS = 4096 };
    const double steps = 2.0 * (N_RANKS - 1);
    const struct fluid_use uses[2] = {{0, 1}, {1, 1}};
    uint32_t id;
    check(engine_add_link(engine, 50e9, true, &id));
    check(engine_add_link(engine, 50e9, true, &id));
    check(engine_add_route(engine, uses, 2, &id));
    check(engine_add_stream(engine, &id));
    struct engine_task task = flow(0, 0, steps / N_RANKS * 1073741824.0);
    task.latency_s = steps * 500e-9;
    check(engine_add_task(engine, &task, &id));
}

/* Every all-reduce is one weighted flow of each rank, and starts when all ranks are done with the
 * one before. */
static void build_s5(struct engine *engine)
{
    enum { N_RANKS = 512, N_COLLECTIVES = 54 };
    const double steps = 2.0 * (N_RANKS - 1);
    uint32_t id, join = ENGINE_NONE, stream;
    for (uint32_t i = 0; i < N_RANKS; i++) {
        const struct fluid_use uses[2] = {{2 * i, 1}, {2 * i + 1, 1}};
        check(engine_add_link(engine, 50e9, true, &id));
        check(engine_add_link(engine, 50e9, true, &id));
        check(engine_add_route(engine, uses, 2, &id));
        check(engine_add_stream(engine, &id));
    }
    check(engine_add_stream(engine, &stream));
    for (uint32_t c = 0; c < N_COLLECTIVES; c++) {
        uint32_t first = engine_n_tasks(engine);
        for (uint32_t i = 0; i < N_RANKS; i++) {
            struct engine_task task = flow(i, i, steps / N_RANKS * 67108864.0);
            task.latency_s = steps * 500e-9;
            check(engine_add_task(engine, &task, &id));
            if (join != ENGINE_NONE)
                check(engine_add_edge(engine, join, id));
        }
        const struct engine_task end = {.stream = stream,
                                        .class_ = ENGINE_HOST,
                                        .cap_work_per_s = 1,
                                        .route = ENGINE_NONE,
                                        .device = {ENGINE_NONE, ENGINE_NONE}};
        check(engine_add_task(engine, &end, &join));
        for (uint32_t i = 0; i < N_RANKS; i++)
            check(engine_add_edge(engine, first + i, join));
    }
}

/* ---- steps --------------------------------------------------------------------------------- */

static void open_s6(struct step_case *c)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile);
    fixture_llama(&c->model, 6144, 96, 48, 8, 128, 0, 128256);
    struct ty_layer_kind *kind = &c->model.kinds[0];
    kind->mlp = TY_MLP_MOE;
    kind->n_experts = 16;
    kind->top_k = 2;
    kind->expert_ffn = 10752;
    c->asked.n_gpus = 9216;
    c->asked.tp = 4;
    c->asked.pp = 12;
    c->asked.vpp = 8;
    c->asked.ep = 8;
    c->asked.gbs = 192 * 24;
    c->asked.overlap = 0;
    if (!case_ready(c))
        exit(1);
}

static void bench_steps(void)
{
    enum { N_RUNS = 20 };
    struct step_case *c = malloc(sizeof *c);
    struct step *step;
    struct step_result result;
    double bound_s, start_s = 0;
    if (!c)
        exit(1);
    check(step_create(NULL, &step));
    open_405b(c, 16384, 16);
    for (int i = -1; i < N_RUNS; i++) {
        start_s = i == 0 ? wall_s() : start_s;
        check(step_simulate(step, &c->setting, &c->plan, c->slots, NULL, &result, NULL));
    }
    print("step.llama405b_16384.folded_s", (wall_s() - start_s) / N_RUNS, "s");
    open_s6(c);
    start_s = wall_s();
    check(step_bound(step, &c->setting, &c->plan, c->slots, &bound_s));
    print("step.S6.bound_s", wall_s() - start_s, "s");
    start_s = wall_s();
    check(step_simulate(step, &c->setting, &c->plan, c->slots, NULL, &result, NULL));
    print("step.S6.simulated_s", wall_s() - start_s, "s");
    step_destroy(step);
    free(c);
}

int main(void)
{
    struct engine *engine;
    check(engine_create(NULL, &engine));
    bench_hold();
    double tasks_s = graph_s(engine, build_tasks, N_ROUNDS);
    print("engine.tasks_per_s", engine_n_tasks(engine) / tasks_s, "1/s");
    double s1_s = graph_s(engine, build_s1, N_ROUNDS);
    print("fluid.S1.flows_per_s", engine_n_tasks(engine) / s1_s, "1/s");
    print("fluid.S2.wall_s", graph_s(engine, build_s2, 1), "s");
    print("fluid.S3.wall_s", graph_s(engine, build_s3, 1), "s");
    print("fluid.S4.folded_s", graph_s(engine, build_s4, 1), "s");
    print("fluid.S5.wall_s", graph_s(engine, build_s5, 1), "s");
    bench_steps();
    engine_destroy(engine);
    return 0;
}
