/* SPDX-License-Identifier: MIT
 * The engine: order and ties, handbook UT-5.7 and UT-6.5, closed forms (chain, ring), scaling,
 * limits, cycles, determinism. */
#include "sim/engine.h"
#include "sim/random.h"
#include "tests/tap.h"

static struct engine *new_engine(void)
{
    struct engine *engine;
    if (engine_create(NULL, &engine) != TY_OK)
        abort();
    return engine;
}

static uint32_t add_stream(struct engine *engine)
{
    uint32_t stream;
    if (engine_add_stream(engine, &stream) != TY_OK)
        abort();
    return stream;
}

static uint32_t add_device(struct engine *engine)
{
    uint32_t device;
    if (engine_add_device(engine, &device) != TY_OK)
        abort();
    return device;
}

static uint32_t add_task(struct engine *engine, struct engine_task task)
{
    uint32_t id;
    if (engine_add_task(engine, &task, &id) != TY_OK)
        abort();
    return id;
}

static uint32_t add_route(struct engine *engine, uint32_t n, const struct fluid_use *uses)
{
    uint32_t route;
    if (engine_add_route(engine, uses, n, &route) != TY_OK)
        abort();
    return route;
}

static uint32_t add_link(struct engine *engine, double capacity)
{
    uint32_t link;
    if (engine_add_link(engine, capacity, true, &link) != TY_OK)
        abort();
    return link;
}

static void add_edge(struct engine *engine, uint32_t before, uint32_t after)
{
    if (engine_add_edge(engine, before, after) != TY_OK)
        abort();
}

static struct engine_task compute(uint32_t stream, uint32_t device, double work_s)
{
    return (struct engine_task){.stream = stream,
                                .class_ = ENGINE_COMPUTE,
                                .work = work_s,
                                .cap_work_per_s = 1,
                                .route = ENGINE_NONE,
                                .device = {device, ENGINE_NONE}};
}

static struct engine_task comm(uint32_t stream, uint32_t device, double work, double cap,
                               uint32_t route)
{
    return (struct engine_task){.stream = stream,
                                .class_ = ENGINE_COMM,
                                .work = work,
                                .cap_work_per_s = cap,
                                .route = route,
                                .device = {device, ENGINE_NONE}};
}

static bool run(struct engine *engine)
{
    return engine_run(engine, NULL, NULL) == TY_OK;
}

static void test_order(void)
{
    struct engine *engine = new_engine();
    uint32_t first = add_stream(engine), second = add_stream(engine);
    uint32_t a = add_task(engine, compute(first, ENGINE_NONE, 2));
    uint32_t b = add_task(engine, compute(first, ENGINE_NONE, 1));
    uint32_t c = add_task(engine, compute(second, ENGINE_NONE, 2));
    uint32_t d = add_task(engine, compute(second, ENGINE_NONE, 0));
    struct engine_task late = compute(first, ENGINE_NONE, 4);
    late.latency_s = 0.5;
    uint32_t e = add_task(engine, late);
    uint32_t f = add_task(engine, compute(second, ENGINE_NONE, 1));
    add_edge(engine, d, b); /* b: a and d both end at 2 */
    add_edge(engine, b, f);
    add_edge(engine, a, f);
    engine_set_release_s(engine, e, 5);
    ok(run(engine), "a small graph runs");
    within(engine_start_s(engine, a), 0, 0, "a starts at once");
    within(engine_end_s(engine, a), 2, 0, "a: 2 s");
    within(engine_start_s(engine, b), 2, 0, "b waits for its stream");
    within(engine_end_s(engine, d), 2, 0, "no work, no latency: no time");
    within(engine_start_s(engine, e), 5, 0, "e waits for its release");
    within(engine_end_s(engine, e), 9.5, 0, "e: latency, then work");
    within(engine_start_s(engine, f), 3, 0, "f waits for b");
    within(engine_makespan_s(engine), 9.5, 0, "makespan");
    ok(engine_binding(engine, a) == ENGINE_NONE, "a waited for nothing");
    ok(engine_binding(engine, b) == a, "on ties the stream predecessor binds");
    ok(engine_binding(engine, d) == c && engine_binding(engine, f) == b, "the last to end binds");
    ok(engine_n_tasks(engine) == 6 && engine_task_of(engine, e)->latency_s == 0.5,
       "tasks can be looked at");
    engine_destroy(engine);
}

static void test_tie_of_edges(void)
{
    struct engine *engine = new_engine();
    uint32_t before[3];
    for (int i = 0; i < 3; i++)
        before[i] = add_task(engine, compute(add_stream(engine), ENGINE_NONE, 1));
    uint32_t after = add_task(engine, compute(add_stream(engine), ENGINE_NONE, 1));
    add_edge(engine, before[1], after);
    add_edge(engine, before[0], after);
    add_edge(engine, before[2], after);
    ok(run(engine) && engine_binding(engine, after) == before[0], "then the lowest id binds");
    engine_destroy(engine);
}

/* UT-5.7: compute 10 ms alone, comm 4 ms alone, a = 0.15, b = 0: 10.6 ms, exactly. */
static void test_overlap(void)
{
    struct engine *engine = new_engine();
    uint32_t device = add_device(engine);
    uint32_t work = add_task(engine, compute(add_stream(engine), device, 10e-3));
    struct engine_task slows = comm(add_stream(engine), device, 4e-3, 1, ENGINE_NONE);
    slows.slow_compute = 0.15;
    uint32_t transfer = add_task(engine, slows);
    ok(run(engine), "UT-5.7 runs");
    within(engine_end_s(engine, transfer), 4e-3, 0, "UT-5.7: comm ends at 4 ms");
    within(engine_end_s(engine, work), 10.6e-3, 1e-18, "UT-5.7: compute ends at 10.6 ms");
    engine_destroy(engine);
}

/* compute 6 s (alone), comm 4 s from t = 1, a = 0.5, b = 0.2: from 1 on comm drains at 0.8 and
 * would end at 6; compute has 5 left at 0.5, so it is still running: comm ends at 6, compute has
 * 2.5 left, ends at 8.5. A host task on the device is not slowed. A second comm, no b, draining
 * over [2, 4] with a = 0.5 would halve compute again: see below. */
static void test_interference(void)
{
    struct engine *engine = new_engine();
    uint32_t device = add_device(engine), other = add_device(engine);
    uint32_t work = add_task(engine, compute(add_stream(engine), device, 6));
    struct engine_task both = comm(add_stream(engine), device, 4, 1, ENGINE_NONE);
    both.device[1] = other;
    both.latency_s = 1;
    both.slow_compute = 0.5;
    both.slow_self = 0.2;
    uint32_t transfer = add_task(engine, both);
    struct engine_task host = compute(add_stream(engine), device, 3);
    host.class_ = ENGINE_HOST;
    uint32_t launch = add_task(engine, host);
    ok(run(engine), "both slow each other");
    near(engine_end_s(engine, transfer), 6, 1e-15, "comm at 0.8 of its rate");
    near(engine_end_s(engine, work), 8.5, 1e-15, "compute at 0.5 of its rate meanwhile");
    within(engine_end_s(engine, launch), 3, 0, "the host is not slowed");

    /* A second comm over [2, 4]: compute 1 s at 1, 1 at .5, 2 at .25, 2 at .5: 3 of 6 done at 6.
     * The rest alone: 9. Spanning both devices, as compute does here, it counts once. */
    struct engine_task more = comm(add_stream(engine), device, 1.6, 1, ENGINE_NONE);
    more.latency_s = 2;
    more.slow_compute = 0.5;
    more.slow_self = 0.2;
    more.device[1] = other;
    uint32_t extra = add_task(engine, more);
    ok(run(engine), "a graph may grow and run again");
    near(engine_end_s(engine, extra), 4, 1e-15, "the second comm");
    near(engine_end_s(engine, work), 9, 1e-15, "slowdowns multiply");
    engine_reset(engine);
    device = add_device(engine);
    other = add_device(engine);
    struct engine_task wide = compute(add_stream(engine), device, 6);
    wide.device[1] = other;
    work = add_task(engine, wide);
    both.stream = add_stream(engine);
    add_task(engine, both);
    ok(run(engine), "on two devices");
    near(engine_end_s(engine, work), 8.5, 1e-15, "a comm on both devices slows once");
    engine_destroy(engine);
}

/* A layer pass (compute) that loads a link: alone at its cap 1, half the link. A slowed cap of 0.5
 * for the 2 s that a comm drains, and a competing flow that leaves it its share. */
static void test_compute_on_links(void)
{
    struct engine *engine = new_engine();
    uint32_t device = add_device(engine), link = add_link(engine, 10);
    uint32_t route = add_route(engine, 1, (struct fluid_use[]){{link, 5}});
    struct engine_task pass = compute(add_stream(engine), device, 4);
    pass.route = route;
    uint32_t layer = add_task(engine, pass);
    struct engine_task slows = comm(add_stream(engine), device, 2, 1, ENGINE_NONE);
    slows.slow_compute = 0.5;
    add_task(engine, slows);
    ok(run(engine), "compute with a route runs");
    within(engine_end_s(engine, layer), 5, 0, "2 s at half speed, 3 at full");
    /* A rival of weight 3 without a cap: 0.5 for the layer (its slowed cap, and its share after),
     * 1.5 for the rival, which has done its 6 at 4 s. Then the layer's last 2 at 1: 6 s. */
    struct engine_task flow = comm(add_stream(engine), ENGINE_NONE, 6, INFINITY, route);
    flow.weight = 3;
    uint32_t rival = add_task(engine, flow);
    ok(run(engine), "compute with a route and a rival runs");
    near(engine_end_s(engine, rival), 4, 1e-15, "weight 3 of 4");
    near(engine_end_s(engine, layer), 6, 1e-15, "weight 1 of 4, then alone");
    engine_destroy(engine);
}

/* A host task neither slows nor is slowed, also on a link: 4 s at its cap of 1. */
static void test_host_on_links(void)
{
    struct engine *engine = new_engine();
    uint32_t device = add_device(engine), link = add_link(engine, 10);
    struct engine_task copy = compute(add_stream(engine), device, 4);
    copy.class_ = ENGINE_HOST;
    copy.route = add_route(engine, 1, (struct fluid_use[]){{link, 5}});
    uint32_t staged = add_task(engine, copy);
    struct engine_task transfer = comm(add_stream(engine), device, 2, 1, ENGINE_NONE);
    transfer.slow_compute = transfer.slow_self = 0.5;
    uint32_t sent = add_task(engine, transfer);
    ok(run(engine), "a host task with a route runs");
    within(engine_end_s(engine, staged), 4, 0, "it is not slowed");
    within(engine_end_s(engine, sent), 2, 0, "nor does it slow");
    engine_destroy(engine);
}

/* UT-6.5. */
static void test_flows(void)
{
    struct engine *engine = new_engine();
    uint32_t a = add_link(engine, 10), b = add_link(engine, 4);
    uint32_t on_a = add_route(engine, 1, (struct fluid_use[]){{a, 1}});
    uint32_t on_ab = add_route(engine, 2, (struct fluid_use[]){{a, 1}, {b, 1}});
    uint32_t on_b = add_route(engine, 1, (struct fluid_use[]){{b, 1}});
    const uint32_t routes[4] = {on_a, on_a, on_ab, on_b};
    const double works[4] = {8, 8, 2, 6}, ends_s[4] = {1.8, 1.8, 1, 2};
    for (int i = 0; i < 4; i++)
        add_task(engine, comm(add_stream(engine), ENGINE_NONE, works[i], INFINITY, routes[i]));
    ok(run(engine), "UT-6.5 runs");
    for (uint32_t i = 0; i < 4; i++)
        near(engine_end_s(engine, i), ends_s[i], 1e-15, "UT-6.5: a flow's end");
    engine_destroy(engine);
}

/* Ring all-reduce of 1 GiB: star of n hosts, up and down links of B = 50e9 B/s, 250 ns each;
 * 2(n - 1) steps in which everyone sends S/n to the next. Closed form
 * 2(n - 1)(latency + S/n/B), which gives 37.588 ms at 8 and 42.342 ms at 64 ranks. */
static void build_ring(struct engine *engine, uint32_t n, double scale)
{
    const double bytes = 1073741824.0, bytes_per_s = 50e9 * scale, latency_s = 500e-9 / scale;
    uint32_t base = add_link(engine, bytes_per_s);
    for (uint32_t i = 1; i < 2 * n; i++)
        add_link(engine, bytes_per_s);
    for (uint32_t i = 0; i < n; i++) {
        struct fluid_use uses[2] = {{base + i, 1}, {base + n + (i + 1) % n, 1}};
        uint32_t route = add_route(engine, 2, uses);
        if (add_stream(engine) != i || route != i)
            abort();
    }
    for (uint32_t step = 0; step < 2 * (n - 1); step++)
        for (uint32_t i = 0; i < n; i++) {
            struct engine_task task = comm(i, ENGINE_NONE, bytes / n, INFINITY, i);
            task.latency_s = latency_s;
            uint32_t id = add_task(engine, task);
            if (step > 0) /* forwards what the one before it sent in the last step */
                add_edge(engine, (step - 1) * n + (i + n - 1) % n, id);
        }
}

static void test_ring(void)
{
    const uint32_t sizes[3] = {2, 8, 64};
    struct engine *engine = new_engine();
    double at_8_s = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t n = sizes[i];
        engine_reset(engine);
        build_ring(engine, n, 1);
        ok(run(engine), "ring of %u", n);
        near(engine_makespan_s(engine), 2 * (n - 1) * (500e-9 + 1073741824.0 / n / 50e9), 1e-9,
             "ring: closed form");
        if (n == 8)
            at_8_s = engine_makespan_s(engine);
    }
    near(at_8_s, 37.588e-3, 1e-4, "ring of 8: 37.588 ms");
    near(engine_makespan_s(engine), 42.342e-3, 1e-4, "ring of 64: 42.342 ms");
    ok(engine_n_events(engine) == 2 * engine_n_tasks(engine), "two events a flow");
    engine_reset(engine);
    build_ring(engine, 8, 4);
    ok(run(engine), "ring of 8, all rates x 4");
    near(engine_makespan_s(engine), at_8_s / 4, 1e-15, "everything four times as fast");
    engine_destroy(engine);
}

/* A random graph over 6 devices with slowdowns, links, latencies and releases. */
static void build_random(struct engine *engine, uint64_t trial, uint32_t n, double scale)
{
    struct random_stream random;
    random_init(&random, 5, trial);
    for (int i = 0; i < 6; i++) {
        add_device(engine);
        add_stream(engine);
        add_stream(engine);
        add_link(engine, 1e9 * scale * (double)(1 + random_below(&random, 20)));
    }
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t from = (uint32_t)random_below(&random, 6), to = (uint32_t)random_below(&random, 6);
        add_route(engine, 2, (struct fluid_use[]){{from, 1}, {to, 1 + random_unit(&random)}});
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device = (uint32_t)random_below(&random, 6);
        bool is_comm = random_below(&random, 2);
        struct engine_task task = compute(2 * device, device, random_exponential(&random));
        task.cap_work_per_s = scale;
        if (is_comm) {
            uint32_t route = (uint32_t)random_below(&random, 12);
            task =
                comm(2 * device + 1, device, 1e9 * random_exponential(&random), 5e9 * scale, route);
            task.device[1] = (uint32_t)random_below(&random, 6);
            task.slow_compute = 0.3 * random_unit(&random);
            task.slow_self = 0.1 * random_unit(&random);
        }
        task.latency_s = random_below(&random, 2) ? 0 : 0.1 * random_unit(&random) / scale;
        uint32_t id = add_task(engine, task);
        if (random_below(&random, 4) == 0)
            engine_set_release_s(engine, id, (double)i * 0.1 / scale);
        if (i > 0 && random_below(&random, 2))
            add_edge(engine, (uint32_t)random_below(&random, i), id);
    }
}

/* FNV-1a over the bits of all starts and ends. */
static uint64_t result_hash(const struct engine *engine)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t id = 0; id < engine_n_tasks(engine); id++) {
        double times_s[2] = {engine_start_s(engine, id), engine_end_s(engine, id)};
        unsigned char bytes[sizeof times_s];
        memcpy(bytes, times_s, sizeof times_s);
        for (size_t i = 0; i < sizeof bytes; i++)
            hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

static void test_determinism(void)
{
    struct engine *engine = new_engine(), *other = new_engine();
    build_random(engine, 1, 400, 1);
    ok(run(engine), "a random graph runs");
    uint64_t hash = result_hash(engine);
    ok(run(engine) && result_hash(engine) == hash, "the same bits when run again");
    struct engine_limits limits = {.max_events = 300};
    ok(engine_run(engine, &limits, NULL) == TY_ERR_LIMIT && run(engine) &&
           result_hash(engine) == hash,
       "... after a run that was cut short");
    engine_reset(engine);
    build_random(engine, 2, 300, 1);
    ok(run(engine) && result_hash(engine) != hash, "another graph, other bits");
    engine_reset(engine);
    build_random(engine, 1, 400, 1);
    ok(run(engine) && result_hash(engine) == hash, "the first graph after reset");
    build_random(other, 1, 400, 1);
    ok(run(other) && result_hash(other) == hash, "the same bits in another engine");
    engine_destroy(engine);
    engine_destroy(other);
}

static void test_scaling(void)
{
    struct engine *engine = new_engine(), *fast = new_engine();
    bool good = true;
    for (uint64_t trial = 0; trial < 20; trial++) {
        engine_reset(engine);
        engine_reset(fast);
        build_random(engine, trial, 200, 1);
        build_random(fast, trial, 200, 3);
        good = good && run(engine) && run(fast);
        for (uint32_t id = 0; good && id < 200; id++)
            good = fabs(engine_end_s(engine, id) / engine_end_s(fast, id) / 3 - 1) < 1e-9;
    }
    ok(good, "all rates x 3, all fixed times / 3: every end / 3");
    engine_destroy(engine);
    engine_destroy(fast);
}

static void test_limits(void)
{
    struct engine *engine = new_engine();
    uint32_t stream = add_stream(engine);
    for (int i = 0; i < 10; i++)
        add_task(engine, compute(stream, ENGINE_NONE, 1));
    struct ty_error error;
    struct engine_limits by_events = {.max_events = 4}, by_time = {.max_time_s = 6.5};
    ok(engine_run(engine, &by_events, &error) == TY_ERR_LIMIT, "limit on events");
    ok(engine_n_events(engine) == 4 && engine_end_s(engine, 3) == 4 &&
           isnan(engine_end_s(engine, 4)),
       "what finished so far can be read");
    same_text(error.text, "the limit of 4 events was reached; stopped at 4 s after 4 of 10 tasks",
              "... and the error says it");
    ok(engine_run(engine, &by_time, NULL) == TY_ERR_LIMIT && engine_end_s(engine, 5) == 6 &&
           isnan(engine_end_s(engine, 6)),
       "limit on time");
    ok(run(engine) && engine_makespan_s(engine) == 10, "no limit");
    engine_destroy(engine);
}

static void test_refusals(void)
{
    struct engine *engine = new_engine();
    uint32_t stream = add_stream(engine), id;
    struct ty_error error;
    struct engine_task bad = compute(stream + 1, ENGINE_NONE, 1);
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "a stream that does not exist");
    bad = compute(stream, 0, 1);
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "a device that does not exist");
    bad = compute(stream, ENGINE_NONE, NAN);
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "work NAN");
    bad = compute(stream, ENGINE_NONE, 1);
    bad.latency_s = -1;
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "negative latency");
    bad = comm(stream, ENGINE_NONE, 1, INFINITY, ENGINE_NONE);
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "nothing limits the rate");
    bad = comm(stream, ENGINE_NONE, 1, 1, 0);
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "a route that does not exist");
    bad.route = ENGINE_NONE;
    bad.slow_compute = 1;
    ok(engine_add_task(engine, &bad, &id) == TY_ERR_RANGE, "a slowdown to nothing");
    ok(engine_n_tasks(engine) == 0, "refused tasks are not added");

    uint32_t a = add_task(engine, compute(stream, ENGINE_NONE, 1));
    uint32_t b = add_task(engine, compute(stream, ENGINE_NONE, 1));
    ok(engine_add_edge(engine, a, 7) == TY_ERR_RANGE, "an edge to nowhere");
    add_edge(engine, b, a);
    ok(engine_run(engine, NULL, &error) == TY_ERR_INPUT, "a cycle through a stream");
    same_text(error.text, "tasks wait for each other: 0 <- 1 <- 0", "... is named");
    engine_reset(engine);
    stream = add_stream(engine);
    a = add_task(engine, compute(stream, ENGINE_NONE, 1));
    b = add_task(engine, compute(add_stream(engine), ENGINE_NONE, 1));
    add_edge(engine, b, b);
    ok(engine_run(engine, NULL, &error) == TY_ERR_INPUT && engine_end_s(engine, a) == 1,
       "a task that waits for itself");
    same_text(error.text, "tasks wait for each other: 1 <- 1", "... is named");
    engine_reset(engine);
    struct engine_task endless = compute(add_stream(engine), ENGINE_NONE, 1e300);
    endless.cap_work_per_s = 1e-300;
    add_task(engine, endless);
    ok(engine_run(engine, NULL, &error) == TY_ERR_RANGE, "a task that never ends");
    ok(engine_run(engine, NULL, NULL) == TY_ERR_RANGE, "a NULL error is allowed");
    engine_reset(engine);
    ok(run(engine) && engine_makespan_s(engine) == 0, "nothing to do takes no time");
    engine_destroy(engine);
}

int main(void)
{
    test_order();
    test_tie_of_edges();
    test_overlap();
    test_interference();
    test_compute_on_links();
    test_host_on_links();
    test_flows();
    test_ring();
    test_determinism();
    test_scaling();
    test_limits();
    test_refusals();
    return tap_done();
}
