/* SPDX-License-Identifier: MIT
 *
 * Philox 2x64, 10 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3,
 * SC'11): a keyed bijection of a 128-bit counter. Key = seed, counter = (number of the block,
 * trial), so streams of different (seed, trial) never share a block. */
#include "sim/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;

/* Constants of Philox 2x64 (same paper, section 4.3; Weyl step = golden ratio). */
static const uint64_t MULTIPLIER = 0xD2B74407B1CE6E93u, WEYL = 0x9E3779B97F4A7C15u;

enum { SEED, TRIAL, N_DRAWN, SPARE, N_ROUNDS = 10 }; /* places in the state */

void random_init(struct random_stream *stream, uint64_t seed, uint64_t trial)
{
    *stream = (struct random_stream){.state = {[SEED] = seed, [TRIAL] = trial}};
}

/* A block gives two numbers: the second is kept for the next call. */
uint64_t random_u64(struct random_stream *stream)
{
    uint64_t n_drawn = stream->state[N_DRAWN]++;
    if (n_drawn % 2 == 1)
        return stream->state[SPARE];
    uint64_t left = n_drawn / 2, right = stream->state[TRIAL], key = stream->state[SEED];
    for (int round = 0; round < N_ROUNDS; round++) {
        u128 product = (u128)MULTIPLIER * left;
        left = (uint64_t)(product >> 64) ^ key ^ right;
        right = (uint64_t)product;
        key += WEYL;
    }
    stream->state[SPARE] = right;
    return left;
}

double random_unit(struct random_stream *stream)
{
    return (double)(random_u64(stream) >> 11) * 0x1p-53;
}

/* Lemire's multiplication with rejection (Fast random integer generation in an interval, 2019). */
uint64_t random_below(struct random_stream *stream, uint64_t n)
{
    for (;;) {
        u128 product = (u128)random_u64(stream) * n;
        uint64_t low = (uint64_t)product;
        if (low >= n || low >= -n % n)
            return (uint64_t)(product >> 64);
    }
}

/* Box and Muller; 1 - unit is in (0, 1]. */
double random_normal(struct random_stream *stream)
{
    const double two_pi = 6.283185307179586;
    double radius = sqrt(2 * random_exponential(stream));
    return radius * cos(two_pi * random_unit(stream));
}

double random_exponential(struct random_stream *stream)
{
    return -log1p(-random_unit(stream));
}
