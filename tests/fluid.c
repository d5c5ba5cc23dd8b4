/* SPDX-License-Identifier: MIT
 * The max-min solver: handbook UT-6.3, 6.4, 6.5 (rates), weights, caps, fat pipes, bundles; and on
 * random instances, after every change, the two properties that define the solution:
 *   no link carries more than its capacity (1 + 1e-12);
 *   every flow is at its cap, or crosses a full link where no flow has a higher rate / weight. */
#include "sim/fluid.h"
#include "sim/random.h"
#include "tests/tap.h"

static struct fluid *new_fluid(void)
{
    struct fluid *fluid;
    if (fluid_create(NULL, &fluid) != TY_OK)
        abort();
    return fluid;
}

static uint32_t add_link(struct fluid *fluid, double capacity, bool shared)
{
    uint32_t link;
    if (fluid_add_link(fluid, capacity, shared, &link) != TY_OK)
        abort();
    return link;
}

static uint32_t add_route(struct fluid *fluid, uint32_t n, const struct fluid_use *uses)
{
    uint32_t route;
    if (fluid_add_route(fluid, uses, n, &route) != TY_OK)
        abort();
    return route;
}

static void start(struct fluid *fluid, uint32_t id, uint32_t route, double cap, double weight)
{
    if (fluid_start(fluid, id, route, cap, weight) != TY_OK)
        abort();
}

static uint32_t solve(struct fluid *fluid)
{
    const uint32_t *ids;
    uint32_t n;
    fluid_solve(fluid, &ids, &n);
    return n;
}

static void check_rate(struct fluid *fluid, uint32_t id, double rate, const char *what)
{
    near(fluid_rate_work_per_s(fluid, id), rate, 1e-15, what);
}

static void test_oversubscribed_leaf(void)
{
    struct fluid *fluid = new_fluid();
    uint32_t uplinks = add_link(fluid, 16 * 50e9, true);
    for (uint32_t host = 0; host < 32; host++) {
        uint32_t down = add_link(fluid, 50e9, true);
        struct fluid_use uses[2] = {{down, 1}, {uplinks, 1}};
        start(fluid, host, add_route(fluid, 2, uses), INFINITY, 1);
    }
    ok(solve(fluid) == 32, "UT-6.3: all 32 rates are news");
    bool good = true;
    for (uint32_t host = 0; host < 32; host++)
        good = good && fluid_rate_work_per_s(fluid, host) == 25e9;
    ok(good, "UT-6.3: 25 GB/s each");
    fluid_destroy(fluid);
}

static void test_two_links(void)
{
    struct fluid *fluid = new_fluid();
    uint32_t a = add_link(fluid, 10, true), b = add_link(fluid, 4, true);
    uint32_t on_a = add_route(fluid, 1, (struct fluid_use[]){{a, 1}});
    uint32_t on_b = add_route(fluid, 1, (struct fluid_use[]){{b, 1}});
    uint32_t on_ab = add_route(fluid, 2, (struct fluid_use[]){{a, 1}, {b, 1}});
    start(fluid, 1, on_a, INFINITY, 1);
    start(fluid, 2, on_a, INFINITY, 1);
    start(fluid, 3, on_ab, INFINITY, 1);
    start(fluid, 4, on_b, INFINITY, 1);
    solve(fluid);
    check_rate(fluid, 1, 4, "UT-6.4: f1");
    check_rate(fluid, 2, 4, "UT-6.4: f2");
    check_rate(fluid, 3, 2, "UT-6.4: f3");
    check_rate(fluid, 4, 2, "UT-6.4: f4");
    ok(solve(fluid) == 0, "nothing touched: no news");
    fluid_stop(fluid, 3);
    ok(solve(fluid) == 3, "UT-6.5: f3 ends, three rates change");
    check_rate(fluid, 1, 5, "UT-6.5: f1");
    check_rate(fluid, 2, 5, "UT-6.5: f2");
    check_rate(fluid, 4, 4, "UT-6.5: f4");
    fluid_stop(fluid, 4);
    ok(solve(fluid) == 0, "f4 shared with nobody: no news");
    fluid_destroy(fluid);
}

static void test_shares(void)
{
    struct fluid *fluid = new_fluid();
    uint32_t trunk = add_link(fluid, 12, true), pipe = add_link(fluid, 5, false);
    uint32_t plain = add_route(fluid, 1, (struct fluid_use[]){{trunk, 1}});
    uint32_t heavy = add_route(fluid, 1, (struct fluid_use[]){{trunk, 2}});
    uint32_t piped = add_route(fluid, 2, (struct fluid_use[]){{trunk, 1}, {pipe, 1}});
    uint32_t open = add_route(fluid, 0, NULL);

    start(fluid, 0, plain, INFINITY, 1);
    start(fluid, 1, plain, INFINITY, 3);
    solve(fluid);
    check_rate(fluid, 0, 3, "weight 1 of 4");
    check_rate(fluid, 1, 9, "weight 3 of 4");
    start(fluid, 2, heavy, INFINITY, 1); /* x + 3x + 2x = 12 */
    solve(fluid);
    check_rate(fluid, 0, 2, "two bytes per work load the link twice");
    check_rate(fluid, 2, 2, "... at an equal rate of work");
    fluid_set_cap(fluid, 1, 1.5); /* x + 1.5 + 2x = 12 */
    solve(fluid);
    check_rate(fluid, 1, 1.5, "a cap below the share");
    check_rate(fluid, 0, 3.5, "... leaves the rest to the others");
    fluid_stop(fluid, 1);
    fluid_stop(fluid, 2);
    start(fluid, 3, piped, INFINITY, 1);
    solve(fluid);
    check_rate(fluid, 3, 5, "a fat pipe limits the flow");
    check_rate(fluid, 0, 7, "... and the other takes the rest");
    start(fluid, 4, piped, INFINITY, 1);
    solve(fluid);
    check_rate(fluid, 4, 4, "a fat pipe is not shared: 3 x 4");
    start(fluid, 5, open, 7.5, 1);
    ok(solve(fluid) == 1, "a flow without links is news once");
    check_rate(fluid, 5, 7.5, "only its cap limits it");
    fluid_set_cap(fluid, 5, 2.5);
    solve(fluid);
    check_rate(fluid, 5, 2.5, "... also a new one");
    fluid_destroy(fluid);
}

static void test_bundles(void)
{
    struct fluid *fluid = new_fluid();
    uint32_t link = add_link(fluid, 100, true);
    uint32_t route = add_route(fluid, 1, (struct fluid_use[]){{link, 1}});
    for (uint32_t id = 0; id < 10; id++)
        start(fluid, id, route, INFINITY, 1);
    ok(solve(fluid) == 10, "ten flows of one bundle are news");
    check_rate(fluid, 9, 10, "a tenth each");
    for (uint32_t id = 10; id < 20; id++)
        start(fluid, id, route, 2, 1);
    solve(fluid);
    check_rate(fluid, 3, 8, "ten capped ones join");
    check_rate(fluid, 15, 2, "the capped rate");
    fluid_set_cap(fluid, 15, 1);
    solve(fluid);
    check_rate(fluid, 15, 1, "one leaves its bundle for a lower cap");
    check_rate(fluid, 16, 2, "its sister keeps the rate");
    check_rate(fluid, 0, 8.1, "the others gain");
    for (uint32_t id = 1; id < 20; id++)
        fluid_stop(fluid, id);
    ok(solve(fluid) == 1, "one is left");
    check_rate(fluid, 0, 100, "and has it all");
    fluid_destroy(fluid);
}

static void test_refusals(void)
{
    struct fluid *fluid = new_fluid();
    uint32_t id;
    ok(fluid_add_link(fluid, 0, true, &id) == TY_ERR_RANGE, "capacity 0");
    ok(fluid_add_link(fluid, NAN, true, &id) == TY_ERR_RANGE, "capacity NAN");
    add_link(fluid, 1, true);
    ok(fluid_add_route(fluid, (struct fluid_use[]){{1, 1}}, 1, &id) == TY_ERR_RANGE,
       "a link that does not exist");
    ok(fluid_add_route(fluid, (struct fluid_use[]){{0, 0}}, 1, &id) == TY_ERR_RANGE, "0 bytes");
    uint32_t route = add_route(fluid, 1, (struct fluid_use[]){{0, 1}});
    ok(fluid_start(fluid, 0, route + 1, 1, 1) == TY_ERR_RANGE, "a route that does not exist");
    ok(fluid_start(fluid, 0, route, NAN, 1) == TY_ERR_RANGE, "cap NAN");
    ok(fluid_start(fluid, 0, route, 1, INFINITY) == TY_ERR_RANGE, "infinite weight");
    fluid_destroy(fluid);
}

/* ---- random instances ---------------------------------------------------------------------- */

enum { N_LINKS = 30, N_ROUTES = 40, N_FLOWS = 120, MAX_USES = 5 };

struct instance {
    bool even; /* few capacities and caps, equal weights: many links fill at the same level */
    double capacity[N_LINKS];
    bool shared[N_LINKS];
    uint32_t n_uses[N_ROUTES];
    struct fluid_use uses[N_ROUTES][MAX_USES];
    bool active[N_FLOWS];
    uint32_t route[N_FLOWS];
    double cap[N_FLOWS], weight[N_FLOWS];
};

static double pick(struct random_stream *random, double low, double high)
{
    return low * pow(high / low, random_unit(random));
}

static void make_instance(struct instance *instance, struct fluid *fluid,
                          struct random_stream *random)
{
    memset(instance, 0, sizeof *instance);
    instance->even = random_below(random, 2);
    for (uint32_t link = 0; link < N_LINKS; link++) {
        instance->capacity[link] = floor(pick(random, 1, instance->even ? 4 : 1000)) * 1e9;
        instance->shared[link] = random_below(random, 5) > 0;
        add_link(fluid, instance->capacity[link], instance->shared[link]);
    }
    for (uint32_t route = 0; route < N_ROUTES; route++) {
        uint32_t n = 1 + (uint32_t)random_below(random, MAX_USES);
        instance->n_uses[route] = n;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t link = (uint32_t)random_below(random, N_LINKS / MAX_USES) * MAX_USES + i;
            instance->uses[route][i] = (struct fluid_use){
                link, instance->even || random_below(random, 2) ? 1 : pick(random, 0.1, 10)};
        }
        add_route(fluid, n, instance->uses[route]);
    }
}

/* Starts, stops or changes one flow. */
static void change(struct instance *instance, struct fluid *fluid, struct random_stream *random)
{
    uint32_t id = (uint32_t)random_below(random, N_FLOWS);
    bool active = instance->active[id];
    double cap = instance->even ? 1e8 : pick(random, 1e8, 1e11);
    if (random_below(random, 3) > 0)
        cap = INFINITY;
    if (active && random_below(random, 3) > 0) {
        fluid_stop(fluid, id);
        instance->active[id] = false;
        return;
    }
    instance->cap[id] = cap;
    if (active) {
        fluid_set_cap(fluid, id, cap);
        return;
    }
    instance->active[id] = true;
    instance->route[id] = (uint32_t)random_below(random, N_ROUTES);
    instance->weight[id] = instance->even || random_below(random, 2) ? 1 : pick(random, 0.1, 10);
    start(fluid, id, instance->route[id], cap, instance->weight[id]);
}

static bool is_max_min(const struct instance *instance, const struct fluid *fluid)
{
    double load[N_LINKS] = {0}, highest[N_LINKS] = {0};
    bool good = true;
    for (uint32_t id = 0; id < N_FLOWS; id++) {
        uint32_t route = instance->route[id];
        double rate = fluid_rate_work_per_s(fluid, id);
        for (uint32_t i = 0; instance->active[id] && i < instance->n_uses[route]; i++) {
            struct fluid_use use = instance->uses[route][i];
            load[use.link] += rate * use.bytes_per_work;
            highest[use.link] = fmax(highest[use.link], rate / instance->weight[id]);
            if (!instance->shared[use.link])
                load[use.link] = rate * use.bytes_per_work;
            good = good && load[use.link] <= instance->capacity[use.link] * (1 + 1e-12);
        }
    }
    for (uint32_t id = 0; id < N_FLOWS; id++) {
        uint32_t route = instance->route[id];
        double rate = fluid_rate_work_per_s(fluid, id);
        bool bound = !instance->active[id] || rate >= instance->cap[id] * (1 - 1e-12);
        for (uint32_t i = 0; !bound && i < instance->n_uses[route]; i++) {
            struct fluid_use use = instance->uses[route][i];
            double capacity = instance->capacity[use.link];
            if (instance->shared[use.link])
                bound = load[use.link] >= capacity * (1 - 1e-12) &&
                        rate / instance->weight[id] >= highest[use.link] * (1 - 1e-12);
            else
                bound = rate * use.bytes_per_work >= capacity * (1 - 1e-12);
        }
        good = good && bound && (!instance->active[id] || (rate > 0 && rate <= instance->cap[id]));
    }
    return good;
}

/* The changed list is complete: rates noted from it equal the rates asked for. */
static bool news_complete(struct fluid *fluid, const struct instance *instance, double *noted)
{
    const uint32_t *ids;
    uint32_t n;
    bool good = true;
    fluid_solve(fluid, &ids, &n);
    for (uint32_t i = 0; i < n; i++)
        noted[ids[i]] = fluid_rate_work_per_s(fluid, ids[i]);
    for (uint32_t id = 0; id < N_FLOWS; id++)
        good = good && (!instance->active[id] || noted[id] == fluid_rate_work_per_s(fluid, id));
    return good;
}

static void test_random(void)
{
    static struct instance instance;
    struct fluid *fluid = new_fluid();
    bool max_min = true, complete = true;
    for (uint64_t trial = 0; trial < 40; trial++) {
        struct random_stream random;
        double noted[N_FLOWS] = {0};
        random_init(&random, 63, trial);
        fluid_clear(fluid);
        make_instance(&instance, fluid, &random);
        for (int step = 0; step < 500; step++) {
            for (uint64_t n = 1 + random_below(&random, 3); n > 0; n--)
                change(&instance, fluid, &random);
            complete = complete && news_complete(fluid, &instance, noted);
            max_min = max_min && is_max_min(&instance, fluid);
        }
    }
    ok(max_min, "20,000 random states are max-min fair and within capacity");
    ok(complete, "the list of changed flows is complete");
    fluid_destroy(fluid);
}

int main(void)
{
    test_oversubscribed_leaf();
    test_two_links();
    test_shares();
    test_bundles();
    test_refusals();
    test_random();
    return tap_done();
}
