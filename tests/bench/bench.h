/* SPDX-License-Identifier: MIT
 * What the benchmarks of the simulator share: the clock, one line of output, the 405B step. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/step_fixture.h"

#include <time.h>

__attribute__((unused)) static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((unused)) static void check(ty_status status)
{
    if (status == TY_OK)
        return;
    fprintf(stderr, "bench: %s\n", ty_status_text(status));
    exit(1);
}

__attribute__((unused)) static void print(const char *name, double value, const char *unit)
{
    printf("%s\t%.4g\t%s\n", name, value, unit);
    fflush(stdout);
}

/* llama3-405B on H100: TP 8, PP 16, VPP 8, sequences of 8192. */
__attribute__((unused)) static void open_405b(struct step_case *c, uint32_t n_gpus,
                                              uint32_t n_micro)
{
    case_open(c);
    ty_init(TY_KIND_PROFILE, &c->profile);
    fixture_llama3_405b(&c->model);
    c->asked.tp = 8;
    c->asked.pp = 16;
    c->asked.vpp = 8;
    c->asked.n_gpus = n_gpus;
    c->asked.gbs = n_gpus / 128 * n_micro;
    c->asked.seq = 8192;
    c->asked.overlap = 0;
    if (!case_ready(c))
        exit(1);
}

#endif
