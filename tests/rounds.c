/* SPDX-License-Identifier: MIT
 * Tasks with rounds (sim/engine.h): a ring is n tasks, each the peer of the next. Expected: the
 * closed form of the ring, and max-plus arithmetic by hand. */
#include "sim/engine.h"
#include "tests/tap.h"

static struct engine *engine;

static struct engine_task task(uint32_t stream, uint32_t n_rounds, double work, uint32_t peer)
{
    return (struct engine_task){.stream = stream,
                                .class_ = ENGINE_HOST,
                                .n_rounds = n_rounds,
                                .work = work,
                                .cap_work_per_s = 1.0,
                                .route = ENGINE_NONE,
                                .device = {ENGINE_NONE, ENGINE_NONE},
                                .peer = peer};
}

static uint32_t add(const struct engine_task *task)
{
    uint32_t id = ENGINE_NONE;
    if (engine_add_task(engine, task, &id) != TY_OK)
        ok(false, "task added");
    return id;
}

static void open(uint32_t n_streams)
{
    uint32_t id;
    engine_reset(engine);
    for (uint32_t i = 0; i < n_streams; i++)
        if (engine_add_stream(engine, &id) != TY_OK)
            ok(false, "stream added");
}

/* Four ranks, six rounds; rank 2 is slower by half. Its own rounds take 1.5 each; the others wait
 * for it through their peers: 3 after one round, 0 and 1 after two and three. The last of rank 2
 * ends at 9; rank 3's sixth round starts when rank 2 has done five, at 7.5, rank 0's when 3 has,
 * ... */
static void test_ring(void)
{
    open(4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct engine_task one = task(i, 6, i == 2 ? 1.5 : 1.0, (i + 3) % 4);
        add(&one);
    }
    ok(engine_run(engine, NULL, NULL) == TY_OK, "the ring runs");
    near(engine_end_s(engine, 2), 9.0, 1e-12, "six rounds of the slow one");
    near(engine_end_s(engine, 3), 8.5, 1e-12, "the next starts its sixth when five are done");
    near(engine_makespan_s(engine), 9.0, 1e-12, "the ring goes at the pace of its slowest");
    ok(engine_n_events(engine) == 24, "one event a round");
}

static void test_after(void)
{
    open(2);
    const struct engine_task first = task(0, 3, 2.0, ENGINE_NONE), next = task(0, 0, 1.0, 0);
    const struct engine_task other = task(1, 0, 1.0, ENGINE_NONE);
    const uint32_t a = add(&first), b = add(&next), c = add(&other);
    ok(engine_add_edge(engine, a, c) == TY_OK && engine_run(engine, NULL, NULL) == TY_OK,
       "a task without a peer");
    near(engine_start_s(engine, b), 6.0, 1e-12, "its stream goes on after the last round");
    near(engine_start_s(engine, c), 6.0, 1e-12, "so does what waits for it");
}

static void test_refusals(void)
{
    struct ty_error error;
    uint32_t id;
    open(2);
    const struct engine_task nothing = task(0, 5, 0.0, ENGINE_NONE);
    ok(engine_add_task(engine, &nothing, &id) == TY_ERR_RANGE, "rounds of no time are refused");
    const struct engine_task a = task(0, 5, 1.0, 1), b = task(1, 3, 1.0, 0);
    add(&a);
    add(&b);
    ok(engine_run(engine, NULL, &error) == TY_ERR_RANGE, "a peer of fewer rounds is refused");
    open(1);
    const struct engine_task late = task(0, 2, 1.0, 1), never = task(0, 2, 1.0, 0);
    add(&late);
    add(&never);
    ok(engine_run(engine, NULL, &error) == TY_ERR_INPUT && strstr(error.text, "round of task 1"),
       "a peer behind it on its stream is a cycle: %s", error.text);
}

int main(void)
{
    if (engine_create(NULL, &engine) != TY_OK)
        return 1;
    test_ring();
    test_after();
    test_refusals();
    engine_destroy(engine);
    return tap_done();
}
