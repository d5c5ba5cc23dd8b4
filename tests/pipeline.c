/* SPDX-License-Identifier: MIT
 * Pipeline orders and their replay against the closed forms of handbook 2.5. */
#include "models/pipeline.h"
#include "tests/tap.h"

static struct engine *engine;

static double replay(enum ty_schedule schedule, uint32_t p, uint32_t v, uint32_t m,
                     uint32_t *peak_chunks)
{
    double makespan_s = NAN;
    const ty_status status =
        pipeline_replay(engine, schedule, p, v, m, 1.0, 2.0, &makespan_s, peak_chunks);
    if (status != TY_OK)
        ok(false, "replay p=%u v=%u m=%u: %s", p, v, m, ty_status_text(status));
    return makespan_s;
}

static void check_peaks(const uint32_t *got, const uint32_t *want, uint32_t n, const char *what)
{
    ok(memcmp(got, want, n * sizeof *got) == 0, "%s", what);
}

/* UT-2.5, UT-2.6: t_F = 1, t_B = 2. */
static void test_handbook_examples(void)
{
    uint32_t peak[8];
    near(replay(TY_SCHEDULE_GPIPE, 4, 1, 8, peak), 33.0, 1e-12, "UT-2.5 GPipe p=4 m=8: 33");
    check_peaks(peak, (uint32_t[]){8, 8, 8, 8}, 4, "UT-2.5 GPipe peaks 8,8,8,8");
    near(replay(TY_SCHEDULE_1F1B, 4, 1, 8, peak), 33.0, 1e-12, "UT-2.5 1F1B p=4 m=8: 33");
    check_peaks(peak, (uint32_t[]){4, 3, 2, 1}, 4, "UT-2.5 1F1B peaks 4,3,2,1");
    near(replay(TY_SCHEDULE_1F1B, 8, 1, 64, peak), 213.0, 1e-12, "UT-2.5 1F1B p=8 m=64: 213");
    check_peaks(peak, (uint32_t[]){8, 7, 6, 5, 4, 3, 2, 1}, 8, "UT-2.5 1F1B peaks 8..1");

    near(replay(TY_SCHEDULE_INTERLEAVED, 4, 2, 8, peak), 28.5, 1e-12, "UT-2.6 p=4 m=8 v=2: 28.5");
    check_peaks(peak, (uint32_t[]){11, 9, 7, 5}, 4, "UT-2.6 peaks 11,9,7,5");
    near(replay(TY_SCHEDULE_INTERLEAVED, 8, 3, 64, peak), 199.0, 1e-12, "UT-2.6 v=3: 199");
    check_peaks(peak, (uint32_t[]){31, 29, 27, 25, 23, 21, 19, 17}, 8, "UT-2.6 peaks 31..17");
    near(replay(TY_SCHEDULE_INTERLEAVED, 8, 5, 64, peak), 196.2, 1e-12, "UT-2.6 v=5: 196.2");
    ok(peak[0] == 47, "UT-2.6 v=5: 47 chunks on stage 0");
}

/* m (t_F + t_B) + (p - 1)(t_F + t_B) / v, for every shape; v = 1 interleaved is 1F1B. */
static void test_closed_form(void)
{
    bool exact = true, same = true, gpipe = true, fits = true;
    for (uint32_t p = 1; p <= 9; p++)
        for (uint32_t v = 1; v <= 5; v++)
            for (uint32_t groups = 1; groups <= 4; groups++) {
                const uint32_t m = p * groups;
                uint32_t peak[9];
                const double want = 3.0 * (m + (p - 1.0) / v);
                const double got = replay(TY_SCHEDULE_INTERLEAVED, p, v, m, peak);
                exact = exact && fabs(got - want) <= 1e-12 * want;
                for (uint32_t stage = 0; stage < p; stage++)
                    fits = fits && peak[stage] <= m * v;
                const double straight = 3.0 * (m + p - 1.0);
                same = same && (v > 1 || got == replay(TY_SCHEDULE_1F1B, p, 1, m, NULL));
                gpipe = gpipe && fabs(replay(TY_SCHEDULE_GPIPE, p, 1, m, NULL) - straight) <=
                                     1e-12 * straight;
            }
    ok(exact, "interleaved equals (m + (p-1)/v)(t_F + t_B) for p <= 9, v <= 5");
    ok(same, "interleaved with v = 1 equals 1F1B");
    ok(gpipe, "GPipe equals (m + p - 1)(t_F + t_B)");
    ok(fits, "never more than m v chunks in flight");

    bool odd = true;
    for (uint32_t p = 2; p <= 6; p++)
        for (uint32_t m = 1; m <= 11; m++) /* also m < p and m not a multiple of p */
            odd = odd && fabs(replay(TY_SCHEDULE_1F1B, p, 1, m, NULL) - 3.0 * (m + p - 1.0)) < 1e-9;
    ok(odd, "1F1B closed form for any m, also m < p");
}

/* handbook 11.6 (4): m -> infinity drives the bubble to 0. */
static void test_bubble_vanishes(void)
{
    double before = INFINITY;
    bool falls = true;
    for (uint32_t m = 8; m <= 4096; m *= 2) {
        const double total = replay(TY_SCHEDULE_1F1B, 8, 1, m, NULL);
        const double bubble = (total - 3.0 * m) / total;
        falls = falls && bubble < before;
        before = bubble;
    }
    ok(falls && before < 0.002, "bubble falls with m, below 0.2 %% at m = 4096");
}

/* Every pass once; a stage never runs a backward before its own forward. */
static void test_orders(void)
{
    bool complete = true, ordered = true;
    for (uint32_t v = 1; v <= 4; v++)
        for (uint32_t stage = 0; stage < 4; stage++) {
            const uint32_t m = 12, n = pipeline_n_passes(m, v);
            struct pass pass[96];
            bool seen[2][12][4] = {{{false}}};
            pipeline_order(TY_SCHEDULE_INTERLEAVED, 4, v, m, stage, pass);
            for (uint32_t i = 0; i < n; i++) {
                bool *mine = &seen[pass[i].kind][pass[i].micro][pass[i].chunk];
                complete = complete && !*mine;
                *mine = true;
                ordered = ordered && seen[PASS_FORWARD][pass[i].micro][pass[i].chunk];
            }
        }
    ok(complete, "every pass exactly once");
    ok(ordered, "no backward before its forward");
    ok(pipeline_source(4, 2, 0, PASS_FORWARD) == ENGINE_NONE &&
           pipeline_source(4, 2, 4, PASS_FORWARD) == 3 &&
           pipeline_source(4, 2, 3, PASS_BACKWARD) == 4 &&
           pipeline_source(4, 2, 7, PASS_BACKWARD) == ENGINE_NONE,
       "messages come from the neighbouring slot, wrap-around included");
}

int main(void)
{
    if (engine_create(NULL, &engine) != TY_OK)
        return 1;
    test_orders();
    test_handbook_examples();
    test_closed_form();
    test_bubble_vanishes();
    engine_destroy(engine);
    return tap_done();
}
