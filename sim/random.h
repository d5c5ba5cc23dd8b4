/* SPDX-License-Identifier: MIT
 * Counter-based random numbers: stream (seed, trial), no shared state, same bits on any thread. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

struct random_stream {
    uint64_t state[4];
};

/* Independent streams for different (seed, trial). */
void random_init(struct random_stream *stream, uint64_t seed, uint64_t trial);
uint64_t random_u64(struct random_stream *stream);
double random_unit(struct random_stream *stream);                /* [0, 1), 53 bits */
uint64_t random_below(struct random_stream *stream, uint64_t n); /* unbiased; n >= 1 */
double random_normal(struct random_stream *stream);              /* mean 0, deviation 1 */
double random_exponential(struct random_stream *stream);         /* mean 1 */

#endif
