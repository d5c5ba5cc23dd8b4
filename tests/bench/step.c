/* SPDX-License-Identifier: MIT
 * Speed of one step: name, value, unit, separated by tabs. One thread, a few seconds. The plan is
 * simulated before: records are cached, memory is held.
 *
 *   step.405B    llama3-405B, 16,384 H100: TP 8, PP 16, VPP 8, gbs 2048, seq 8192 (m = 16)
 *   step.m128    the same with 128 micro-batches
 *   step.zero3   llama3-70B, 256 H100, FSDP, PP 4, 16 micro-batches, resharded
 *   bound.405B   lower bound of the first
 */
#include "tests/step_fixture.h"

#include <time.h>

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void open_405b(struct step_case *c, uint32_t gbs)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile);
    fixture_llama3_405b(&c->model);
    c->asked.tp = 8;
    c->asked.pp = 16;
    c->asked.n_gpus = 16384;
    c->asked.gbs = gbs;
    c->asked.seq = 8192;
    c->asked.overlap = 0;
    if (!case_ready(c))
        exit(1);
    c->plan.vpp = 8; /* embedding, 126 layers and head: 128 slots of one each */
    c->plan.schedule = TY_SCHEDULE_INTERLEAVED;
    for (uint32_t slot = 0; slot < 128; slot++)
        c->slots[slot] = (struct slot){.first_layer = slot ? slot - 1 : 0,
                                       .n_layers = slot > 0 && slot < 127,
                                       .embedding = slot == 0,
                                       .head = slot == 127};
}

static void open_zero3(struct step_case *c)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile);
    fixture_llama3_70b(&c->model);
    c->asked.pp = 4;
    c->asked.n_gpus = 256;
    c->asked.gbs = 64 * 16;
    c->asked.sharding = TY_SHARDING_ZERO3;
    c->asked.reshard_after_forward = TY_ON;
    c->asked.overlap = 0;
    if (!case_ready(c))
        exit(1);
}

static void measure(const char *name, const struct step_case *c, struct step *step, bool bound)
{
    struct step_result result = {0};
    double bound_s;
    const int n = bound ? 20000 : 20;
    double begin_s = 0.0;
    for (int i = -1; i < n; i++) {
        if (i == 0)
            begin_s = wall_s();
        if ((bound ? step_bound(step, &c->setting, &c->plan, c->slots, &bound_s)
                   : step_simulate(step, &c->setting, &c->plan, c->slots, NULL, &result, NULL)) !=
            TY_OK)
            exit(1);
    }
    const double each_s = (wall_s() - begin_s) / n;
    printf("%s\t%.4g\t%s\n", name, each_s * (bound ? 1e6 : 1e3), bound ? "us" : "ms");
    if (!bound)
        printf("%s.events\t%.4g\t1/s\n", name, (double)result.n_events / each_s);
    fflush(stdout);
}

int main(void)
{
    struct step *step;
    struct step_case *c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    open_405b(c, 2048);
    measure("step.405B", c, step, false);
    measure("bound.405B", c, step, true);
    open_405b(c, 128 * 128);
    measure("step.m128", c, step, false);
    open_zero3(c);
    measure("step.zero3", c, step, false);
    step_destroy(step);
    free(c);
    return 0;
}
