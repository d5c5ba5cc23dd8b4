/* SPDX-License-Identifier: MIT
 * Random streams: the published test vector of Philox 2x64-10, independence of streams, ranges,
 * and the first moments within 5 standard errors of 1e6 draws. */
#include "sim/random.h"
#include "tests/tap.h"

enum { N_DRAWS = 1000000 };

typedef double draw_fn(struct random_stream *stream);

static void check_moments(const char *name, draw_fn *draw, double mean, double deviation,
                          double fourth)
{
    struct random_stream stream;
    char what[64];
    double sum = 0, squares = 0;
    random_init(&stream, 7, 3);
    for (int i = 0; i < N_DRAWS; i++) {
        double x = draw(&stream) - mean;
        sum += x;
        squares += x * x;
    }
    snprintf(what, sizeof what, "%s: mean", name);
    within(mean + sum / N_DRAWS, mean, 5 * deviation / sqrt(N_DRAWS), what);
    /* var of (x - mean)^2 = fourth central moment - deviation^4 */
    double variance = deviation * deviation;
    snprintf(what, sizeof what, "%s: variance", name);
    within(squares / N_DRAWS, variance, 5 * sqrt((fourth - variance * variance) / N_DRAWS), what);
}

static void test_below(void)
{
    struct random_stream stream;
    random_init(&stream, 1, 1);
    uint32_t counts[6] = {0};
    bool inside = true;
    for (int i = 0; i < 600000; i++) {
        uint64_t n = random_below(&stream, 6);
        inside = inside && n < 6;
        counts[n % 6]++;
    }
    ok(inside, "random_below(6) is below 6");
    bool even = true; /* 100000 each; deviation sqrt(6e5 * 1/6 * 5/6) = 289 */
    for (int i = 0; i < 6; i++)
        even = even && counts[i] > 100000 - 5 * 289 && counts[i] < 100000 + 5 * 289;
    ok(even, "random_below(6) is even");
    ok(random_below(&stream, 1) == 0, "random_below(1) is 0");
    /* n = 3 * 2^62: 4 draws for 3 values; without rejection multiples of 3 come half the time. */
    uint32_t multiples = 0;
    for (int i = 0; i < 90000; i++)
        multiples += random_below(&stream, (uint64_t)3 << 62) % 3 == 0;
    within(multiples, 30000, 5 * 142, "random_below of a large n is even");
}

int main(void)
{
    struct random_stream stream, other;
    /* Random123, kat_vectors: philox2x64 10, counter 0 0, key 0. */
    random_init(&stream, 0, 0);
    ok(random_u64(&stream) == 0xca00a0459843d731u && random_u64(&stream) == 0x66c24222c9a845b5u,
       "Philox 2x64-10 test vector");

    random_init(&stream, 5, 8);
    random_init(&other, 8, 5);
    int n_equal = 0;
    for (int i = 0; i < 1000; i++)
        n_equal += random_u64(&stream) == random_u64(&other);
    ok(n_equal == 0, "(5, 8) and (8, 5) are different streams");
    random_init(&stream, 5, 8);
    random_init(&other, 5, 9);
    ok(random_u64(&stream) != random_u64(&other), "the trial makes a stream");

    bool inside = true;
    for (int i = 0; i < N_DRAWS; i++) {
        double x = random_unit(&stream);
        inside = inside && x >= 0 && x < 1;
    }
    ok(inside, "random_unit is in [0, 1)");
    check_moments("unit", random_unit, 0.5, sqrt(1.0 / 12), 1.0 / 80);
    check_moments("normal", random_normal, 0, 1, 3);
    check_moments("exponential", random_exponential, 1, 1, 9);
    test_below();
    return tap_done();
}
