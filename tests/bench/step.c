/* SPDX-License-Identifier: MIT
 * Speed of one step: name, value, unit, separated by tabs. One thread, a few seconds. The plan is
 * simulated before: records are cached, memory is held.
 *
 *   step.mN      llama3-405B, 16,384 H100: TP 8, PP 16, VPP 8, N micro-batches
 *   step.zero3   llama3-70B, 256 H100, FSDP, PP 4, 16 micro-batches, resharded
 *   step.gpus_N  the same with 16 micro-batches on N GPUs: the folded cost does not depend on N
 *   bound.405B   lower bound with 16 micro-batches
 * tools/plot_bench.sh draws them.
 */
#include "tests/bench/bench.h"

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
    open_405b(c, 16384, 16);
    measure("bound.405B", c, step, true);
    for (uint32_t n_micro = 16; n_micro <= 256; n_micro *= 2) {
        char name[32];
        snprintf(name, sizeof name, "step.m%u", n_micro);
        open_405b(c, 16384, n_micro);
        measure(name, c, step, false);
    }
    for (uint32_t n_gpus = 2048; n_gpus <= 131072; n_gpus *= 4) {
        char name[32];
        snprintf(name, sizeof name, "step.gpus_%u", n_gpus);
        open_405b(c, n_gpus, 16);
        measure(name, c, step, false);
    }
    open_zero3(c);
    measure("step.zero3", c, step, false);
    step_destroy(step);
    free(c);
    return 0;
}
