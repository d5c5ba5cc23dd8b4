/* SPDX-License-Identifier: MIT
 * Pipeline orders and their replay against the closed forms of handbook 2.5. */
#include "models/pipeline.h"
#include "tests/tap.h"

static struct engine *engine;

static struct pipeline shape_of(enum ty_schedule schedule, uint32_t p, uint32_t v, uint32_t m)
{
    const struct ty_plan plan = {.schedule = (int)schedule, .pp = p, .vpp = v, .n_micro = m};
    return pipeline_of(&plan);
}

/* t_F = 1, t_B = 2, t_W = 1; a forward beside a backward takes the sum of both. */
static const struct pipeline_times UNIT = {1.0, 1.0, 1.0, 3.0};

static double replay_shape(const struct pipeline *pipeline, const struct pipeline_times *times,
                           uint32_t *peak_chunks)
{
    double makespan_s = NAN;
    const ty_status status = pipeline_replay(engine, pipeline, times, &makespan_s, peak_chunks);
    if (status != TY_OK)
        ok(false, "replay schedule %d p=%u v=%u m=%u: %s", pipeline->schedule, pipeline->n_stages,
           pipeline->n_chunks, pipeline->n_micro, ty_status_text(status));
    return makespan_s;
}

static double replay(enum ty_schedule schedule, uint32_t p, uint32_t v, uint32_t m,
                     uint32_t *peak_chunks)
{
    const struct pipeline pipeline = shape_of(schedule, p, v, m);
    return replay_shape(&pipeline, &UNIT, peak_chunks);
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

/* UT-2.7: p = 8, t_F = 1, t_B = 2, t_W = 1: bubble of 1F1B 21, ZB-H1 7, DualPipe 6 with t_F&B = 3;
 * the same for every p and m, and the activations of the table of handbook 2.5. */
static void test_zero_bubble(void)
{
    uint32_t peak[16];
    near(replay(TY_SCHEDULE_1F1B, 8, 1, 64, NULL) - 3.0 * 64, 21.0, 1e-12, "UT-2.7 1F1B: 21");
    near(replay(TY_SCHEDULE_ZB_H1, 8, 1, 64, peak) - 3.0 * 64, 7.0, 1e-12, "UT-2.7 ZB-H1: 7");
    check_peaks(peak, (uint32_t[]){8, 8, 8, 8, 8, 8, 8, 8}, 8, "ZB-H1 holds what 1F1B holds: p");
    near(replay(TY_SCHEDULE_DUALPIPE, 8, 1, 64, peak) - 3.0 * 64, 6.0, 1e-12, "UT-2.7 DualPipe: 6");
    check_peaks(peak, (uint32_t[]){9, 9, 9, 9, 9, 9, 9, 9}, 8, "DualPipe holds p + 1");
    bool h1 = true, dual = true, half = true, vee = true;
    for (uint32_t p = 2; p <= 16; p += 2)
        for (uint32_t m = 2 * p; m <= 6 * p; m += 2) {
            const double work = 3.0 * m;
            h1 = h1 && fabs(replay(TY_SCHEDULE_ZB_H1, p, 1, m, NULL) - work - (p - 1)) < 1e-9;
            dual = dual && fabs(replay(TY_SCHEDULE_DUALPIPE, p, 1, m, peak) - work -
                                (p / 2.0 - 1.0) * (3.0 + 2.0 - 3.0)) < 1e-9;
            dual = dual && peak[0] == p + 1 && peak[p - 1] == p + 1;
            /* p slots on p / 2 stages: a stage's time is that of two slots */
            const struct pipeline v_shape = shape_of(TY_SCHEDULE_DUALPIPEV, p / 2, 2, m);
            const struct pipeline_times two = {2.0, 2.0, 2.0, 6.0};
            half = half && fabs(replay_shape(&v_shape, &two, peak) - 2.0 * work -
                                (p / 2.0 - 1.0) * (3.0 + 2.0 - 3.0)) < 1e-9;
            half = half && peak[0] == p + 1;
            /* no idle time between the first and the last pass of a stage: only the first
             * micro-batch's way to the last stage remains */
            vee =
                vee && fabs(replay(TY_SCHEDULE_ZB_V, p, 2, m, peak) - work - (p - 1) / 2.0) < 1e-9;
            vee = vee && peak[0] == 2 * p && peak[p - 1] == 2 * p;
        }
    ok(h1, "ZB-H1: (p - 1)(t_F + t_B - 2 t_W)");
    ok(dual, "DualPipe: (p/2 - 1)(t_F&B + t_B - 3 t_W), p + 1 in flight");
    ok(half, "DualPipeV: the same with p slots on p/2 stages");
    ok(vee, "ZB-V: no bubble but the way to the last stage, p in flight");
}

/* Groups of any size (Megatron: at least p, the last one too): (p - 1)/v bubbles, complete, and
 * 2 (p - r - 1) + (v - 1) g + 1 chunks alive. */
static void test_groups(void)
{
    bool exact = true, peaks = true;
    for (uint32_t p = 2; p <= 6; p++)
        for (uint32_t v = 2; v <= 4; v++)
            for (uint32_t g = p; g <= 3 * p; g++)
                for (uint32_t m = 3 * g; m <= 4 * g; m++) {
                    uint32_t peak[6];
                    struct pipeline pipeline = shape_of(TY_SCHEDULE_INTERLEAVED, p, v, m);
                    pipeline.group = g;
                    if (m % g != 0 && m % g < p)
                        continue;
                    const double want = 3.0 * (m + (p - 1.0) / v);
                    exact = exact && fabs(replay_shape(&pipeline, &UNIT, peak) - want) < 1e-9;
                    for (uint32_t r = 0; r < p; r++)
                        peaks = peaks && peak[r] == 2 * (p - r - 1) + (v - 1) * g + 1;
                }
    ok(exact, "interleaved in groups of any size: the bubble stays (p-1)(t_F + t_B)/v");
    ok(peaks, "and 2(p-r-1) + (v-1)g + 1 chunks are alive");
}

/* The memory model's closed forms are what the orders hold, for every schedule, m < p too. */
static void test_in_flight(void)
{
    uint32_t n = 0, n_good = 0;
    for (int schedule = TY_SCHEDULE_GPIPE; schedule <= TY_SCHEDULE_DUALPIPEV; schedule++)
        for (uint32_t p = 2; p <= 8; p += 2)
            for (uint32_t m = 1; m <= 24; m++) {
                const uint32_t chunks = pipeline_fixed_chunks((enum ty_schedule)schedule);
                const uint32_t v = chunks ? chunks : 3;
                const bool dual = schedule >= TY_SCHEDULE_DUALPIPE;
                if ((dual && (m < 2 * p || m % 2)) || (v == 3 && m % p))
                    continue;
                uint32_t peak[8];
                const struct pipeline pipeline = shape_of((enum ty_schedule)schedule, p, v, m);
                replay_shape(&pipeline, &UNIT, peak);
                for (uint32_t r = 0; r < p; r++) {
                    const double unit = pipeline.shape == PIPELINE_TWO_WAYS ? 1.0 : v;
                    n++;
                    n_good += peak[r] <= unit * pipeline_in_flight(&pipeline, r) + 1e-9 &&
                              (m < 2 * p ||
                               fabs(peak[r] - unit * pipeline_in_flight(&pipeline, r)) < 1e-9);
                }
            }
    ok(n > 300 && n_good == n, "%u of %u peaks as the closed forms, never above them", n_good, n);
}

/* Forwards joined to backwards (batch-level overlap): half the time hidden shows as half the time,
 * and nobody waits for ever. */
static void test_joined(void)
{
    const struct pipeline_times hidden = {1.0, 1.0, 1.0, 2.0};
    struct pipeline pipeline = shape_of(TY_SCHEDULE_1F1B, 1, 1, 10);
    pipeline.joins = true;
    near(replay_shape(&pipeline, &hidden, NULL), 1.0 + 9 * 2.0 + 2.0, 1e-12,
         "p = 1: F, then m - 1 pairs, then B");
    bool faster = true, ends = true;
    for (uint32_t p = 2; p <= 8; p++)
        for (uint32_t v = 2; v <= 4; v++) {
            const uint32_t m = 8 * p;
            uint32_t peak[8];
            pipeline = shape_of(TY_SCHEDULE_INTERLEAVED, p, v, m);
            const double apart = replay_shape(&pipeline, &UNIT, NULL);
            pipeline.joins = true;
            const double joined = replay_shape(&pipeline, &hidden, peak);
            ends = ends && joined > 2.0 * m;
            faster = faster && joined < apart;
            ends = ends && peak[0] == 2 * (p - 1) + (v - 1) * p + 2;
        }
    ok(ends && faster, "interleaved: one more chunk in flight, faster by what is hidden");
}

static void check_order(enum ty_schedule schedule, uint32_t v, bool *complete, bool *ordered)
{
    const struct pipeline pipeline = shape_of(schedule, 4, v, 12);
    for (uint32_t stage = 0; stage < 4; stage++) {
        struct pass pass[144];
        uint32_t n_forward = 0, n_backward = 0, n_wgrad = 0;
        bool seen[N_PASS_KINDS][12][4] = {{{false}}};
        const uint32_t n = pipeline_order(&pipeline, stage, pass);
        for (uint32_t i = 0; i < n; i++) {
            const struct pass *at = &pass[i];
            bool *mine = &seen[at->kind][at->micro][at->chunk];
            *complete = *complete && !*mine;
            *mine = true;
            *ordered = *ordered && seen[PASS_FORWARD][at->micro][at->chunk] &&
                       (at->kind != PASS_WGRAD || seen[PASS_DGRAD][at->micro][at->chunk]);
            n_forward += at->kind == PASS_FORWARD;
            n_backward += at->kind == PASS_BACKWARD || at->kind == PASS_DGRAD;
            n_wgrad += at->kind == PASS_BACKWARD || at->kind == PASS_WGRAD;
        }
        const uint32_t all = pipeline.shape == PIPELINE_TWO_WAYS ? 12 : 12 * pipeline.n_chunks;
        *complete = *complete && n_forward == all && n_backward == all && n_wgrad == all &&
                    n <= pipeline_most_passes(&pipeline);
    }
}

/* Every pass once; a stage never runs a backward before its own forward, W before its D. */
static void test_orders(void)
{
    bool complete = true, ordered = true;
    for (int schedule = TY_SCHEDULE_GPIPE; schedule <= TY_SCHEDULE_DUALPIPEV; schedule++) {
        const uint32_t chunks = pipeline_fixed_chunks((enum ty_schedule)schedule);
        for (uint32_t v = 1; v <= 4; v++)
            if (chunks == 0 || v == chunks)
                check_order((enum ty_schedule)schedule, v, &complete, &ordered);
    }
    ok(complete, "every pass exactly once, in every schedule");
    ok(ordered, "no backward before its forward, no wgrad before its dgrad");
    const struct pipeline round = shape_of(TY_SCHEDULE_INTERLEAVED, 4, 2, 4);
    ok(pipeline_source(&round, 0, PASS_FORWARD) == ENGINE_NONE &&
           pipeline_source(&round, 4, PASS_FORWARD) == 3 &&
           pipeline_source(&round, 3, PASS_BACKWARD) == 4 &&
           pipeline_source(&round, 7, PASS_BACKWARD) == ENGINE_NONE,
       "messages come from the neighbouring slot, wrap-around included");
    const struct pipeline vee = shape_of(TY_SCHEDULE_ZB_V, 4, 2, 4);
    ok(pipeline_source(&vee, 7, PASS_FORWARD) == 3 &&
           pipeline_source(&vee, 3, PASS_BACKWARD) == 7 &&
           pipeline_source(&vee, 4, PASS_BACKWARD) == ENGINE_NONE,
       "a V turns on the last stage and ends on the first");
    const struct pipeline two = shape_of(TY_SCHEDULE_DUALPIPE, 4, 1, 8);
    ok(pipeline_source(&two, 7, PASS_FORWARD) == ENGINE_NONE &&
           pipeline_source(&two, 6, PASS_FORWARD) == 7 && pipeline_slot(&two, 7) == 0,
       "the second copy starts on the last stage");
}

int main(void)
{
    if (engine_create(NULL, &engine) != TY_OK)
        return 1;
    test_orders();
    test_handbook_examples();
    test_closed_form();
    test_bubble_vanishes();
    test_zero_bubble();
    test_groups();
    test_in_flight();
    test_joined();
    engine_destroy(engine);
    return tap_done();
}
