/* SPDX-License-Identifier: MIT
 * Sizes of fat trees and collisions of hashed flows: handbook UT-6.1 and UT-6.6. */
#include "include/trainyard_fabric.h"
#include "tests/tap.h"

static void check_tree(uint32_t levels, uint32_t planes, double endpoints, double switches,
                       const char *what)
{
    double n_endpoints = 0.0, n_switches = 0.0;
    ok(ty_fabric_tree(levels, 64, planes, &n_endpoints, &n_switches) == TY_OK &&
           n_endpoints == endpoints && n_switches == switches,
       "UT-6.1: %s", what);
}

/* By brute force: the mean of the fullest of m paths over all m^n ways. */
static double fullest_of(uint32_t n, uint32_t m)
{
    double sum = 0.0, ways = 1.0;
    for (uint32_t i = 0; i < n; i++)
        ways *= m;
    for (uint64_t way = 0; way < (uint64_t)ways; way++) {
        uint32_t load[8] = {0}, most = 0;
        uint64_t rest = way;
        for (uint32_t i = 0; i < n; i++, rest /= m)
            load[rest % m]++;
        for (uint32_t i = 0; i < m; i++)
            most = load[i] > most ? load[i] : most;
        sum += most;
    }
    return sum / ways;
}

int main(void)
{
    check_tree(2, 1, 2048, 96, "two levels of 64 ports: 2,048 endpoints, 96 switches");
    check_tree(2, 8, 16384, 768, "8 planes: 16,384 and 768");
    check_tree(3, 1, 65536, 5120, "three levels: 65,536 and 5,120");
    near(ty_ecmp_slowdown(8, 8, 1), 2.5972, 2e-5, "UT-6.6: 8 flows on 8 paths, 2.60x");
    near(ty_ecmp_slowdown(8, 16, 1), 2.0629, 3e-5, "UT-6.6: on 16, E[max] 2.0629");
    near(ty_ecmp_slowdown(8, 4, 1), 3.5381 / 2.0, 3e-5, "UT-6.6: on 4, 1.77x");
    near(ty_ecmp_slowdown(16, 8, 1), 4.2014 / 2.0, 3e-5, "UT-6.6: 16 flows on 8, 2.10x");
    near(ty_ecmp_slowdown(8, 8, 4), 7.0478 / 4.0, 3e-5, "UT-6.6: 4 queue pairs each, 1.762x");
    for (uint32_t m = 2; m <= 5; m++)
        near(ty_ecmp_slowdown(6, m, 1) * (6.0 / m), fullest_of(6, m), 1e-12,
             "6 flows on a few paths: all ways counted");
    ok(ty_ecmp_slowdown(1, 8, 1) == 1.0 && ty_ecmp_slowdown(8, 1, 1) == 1.0,
       "one flow, or one path: nothing collides");
    return tap_done();
}
