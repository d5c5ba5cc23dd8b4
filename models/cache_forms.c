/* SPDX-License-Identifier: MIT
 *
 * Hit ratios in closed form (handbook 7.3, UT-7.4).
 *
 * Shuffled epochs, LRU: u = share of this epoch after the item, v = share of the next one before
 * it; u + v - u v items lie between its two uses, so it hits iff (1-u)(1-v) > 1 - c. The product of
 * two uniform numbers exceeds x with probability 1 - x + x ln x: hit = c + (1-c) ln(1-c).
 *
 * Independent requests (Che's approximation): an item stays T requests without a hit,
 *   LRU   sum_i (1 - exp(-p_i T)) = C      hit = sum_i p_i (1 - exp(-p_i T))
 *   FIFO  sum_i p_i T / (1 + p_i T) = C    hit = sum_i p_i^2 T / (1 + p_i T)
 */
#include "models/cache.h"

#include <math.h>

double cache_pinned_hit_ratio(double cached_ratio)
{
    return fmin(cached_ratio, 1.0);
}

double cache_lru_hit_ratio(double cached_ratio)
{
    const double c = cached_ratio;
    return c < 1.0 ? c + (1.0 - c) * log1p(-c) : 1.0;
}

double cache_scan_hit_ratio(double cached_ratio)
{
    return cached_ratio < 1.0 ? 0.0 : 1.0;
}

/* Probability that an item of probability p is cached. */
typedef double presence_fn(double p, double stay);

static double presence_lru(double p, double stay)
{
    return -expm1(-p * stay);
}

static double presence_fifo(double p, double stay)
{
    return p * stay / (1.0 + p * stay);
}

static double sum_presence(presence_fn *presence, const double *p, uint32_t n, double stay)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += presence(p[i], stay);
    return sum;
}

/* The sum grows with T from 0 to n: bisection, after doubling to a bracket. Items of probability 0
 * never come in; the bound on T ends the search where fewer than `capacity` ever do. */
static double solve_stay(presence_fn *presence, const double *p, uint32_t n, uint32_t capacity)
{
    double low = 0.0, high = 1.0;
    while (sum_presence(presence, p, n, high) < capacity && high < 1e300)
        high *= 2.0;
    for (int i = 0; i < 100; i++) {
        const double middle = 0.5 * (low + high);
        if (sum_presence(presence, p, n, middle) < capacity)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static double hit_ratio(presence_fn *presence, const double *p, uint32_t n, double stay)
{
    double hit = 0.0;
    for (uint32_t i = 0; i < n; i++)
        hit += p[i] * presence(p[i], stay);
    return hit;
}

double cache_che_lru_hit_ratio(const double *p, uint32_t n, uint32_t capacity, double *stay)
{
    const double requests = solve_stay(presence_lru, p, n, capacity);
    if (stay)
        *stay = requests;
    return hit_ratio(presence_lru, p, n, requests);
}

double cache_che_fifo_hit_ratio(const double *p, uint32_t n, uint32_t capacity)
{
    return hit_ratio(presence_fifo, p, n, solve_stay(presence_fifo, p, n, capacity));
}
