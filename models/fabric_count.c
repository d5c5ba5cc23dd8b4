/* SPDX-License-Identifier: MIT
 *
 * Sizes of fat trees and collisions of hashed flows: the equations of the header. */
#include "include/trainyard_fabric.h"

#include <math.h>
#include <string.h>

enum { MAX_PARTS = 1024 };

ty_status ty_fabric_tree(uint32_t levels, uint32_t ports, uint32_t planes, double *endpoints,
                         double *switches)
{
    const double k = ports;
    if (levels < 2 || levels > 3 || ports < 2 || ports % 2 != 0 || planes == 0)
        return TY_ERR_RANGE;
    *endpoints = planes * (levels == 2 ? k * k / 2.0 : k * k * k / 4.0);
    *switches = planes * (levels == 2 ? 3.0 * k / 2.0 : 5.0 * k * k / 4.0);
    return TY_OK;
}

/* P(max <= k) by adding one path after the other: after m paths, with[j] is the probability that j
 * of n parts lie on them, none with more than k, up to the binomial of what is left:
 *
 *   with_m[j] = sum_{i<=min(k,j)} with_{m-1}[j-i] C(n - j + i, i) (1/r)^i (1 - 1/r)^(n-j)
 *
 * where r paths are left: each part not yet placed falls on the next path with chance 1/r. */
static double chance_at_most(uint32_t k, uint32_t n, uint32_t m)
{
    static const double nothing = -INFINITY;
    double with[MAX_PARTS + 1], next[MAX_PARTS + 1];
    for (uint32_t j = 0; j <= n; j++)
        with[j] = j == 0;
    for (uint32_t path = 0; path < m; path++) {
        const double left = m - path, share = 1.0 / left;
        memset(next, 0, sizeof next);
        for (uint32_t j = 0; j <= n; j++) {
            if (with[j] == 0.0)
                continue;
            const uint32_t rest = n - j;
            /* the term of i = 0, then by ratio; the last path takes all the rest */
            double term = left > 1.0 ? rest * log1p(-share) : (rest == 0 ? 0.0 : nothing);
            if (left <= 1.0) {
                if (rest <= k)
                    next[n] += with[j];
                continue;
            }
            for (uint32_t i = 0; i <= rest && i <= k; i++) {
                next[j + i] += with[j] * exp(term);
                term += log((rest - i) / (i + 1.0) * share / (1.0 - share));
            }
        }
        memcpy(with, next, sizeof with);
    }
    return with[n];
}

double ty_ecmp_slowdown(uint32_t flows, uint32_t paths, uint32_t queue_pairs)
{
    const double parts = (double)flows * queue_pairs;
    if (flows == 0 || paths == 0 || queue_pairs == 0 || parts > MAX_PARTS)
        return (double)NAN;
    const uint32_t n = (uint32_t)parts;
    double expected = 0.0; /* sum over k of P(max > k) */
    for (uint32_t k = 0; k < n; k++) {
        const double more = 1.0 - chance_at_most(k, n, paths);
        expected += more;
        if (more < 1e-15 && k >= n / paths)
            break;
    }
    return expected / queue_pairs / fmax(1.0, (double)flows / paths);
}
