/* SPDX-License-Identifier: MIT
 *
 * Failures, restarts and what is left of the time (handbook 7.6 to 7.8).
 *
 *   M mean time between failures of the job    tau work between two saves
 *   C blocking time of a save                  A drain of an asynchronous save, A <= tau
 *   R detect, reschedule, load, warm up
 *
 * Exponential failures, which may also hit a restart or a save:
 *
 *   efficiency = tau exp(-A/M) / (M exp(R/M) (exp((tau+C)/M) - 1))
 *
 * A: a failure within A of a save's end also loses the work that save was for. Let q = exp(-(tau+C)
 * / M). A share q of the attempts follow a success and can lose it, with probability 1 -
 * exp(-A/M), so each attempt gains q exp(-A/M) tau on average; it takes (1-q) M until success or
 * failure and (1-q) M (exp(R/M) - 1) of restarts.
 */
#ifndef MODELS_RELIABILITY_H
#define MODELS_RELIABILITY_H

#include "include/trainyard.h"

/* A kind of failure: node, link, GPU, preemption. */
struct failure_source {
    double units;       /* of this kind in the job */
    double unit_mtbf_s; /* of one */
};
/* Rates add: 1 / M = sum units / mtbf. INFINITY without any. */
double reliability_mtbf_s(const struct failure_source *sources, uint32_t n);

struct reliability {
    double mtbf_s, interval_s; /* M, tau > 0 */
    double save_s, drain_s;    /* C, A >= 0 */
    double restart_s;          /* R >= 0 */
    double shape;              /* Weibull, of the time between failures; 1 = exponential; only
                                  reliability_simulate looks at it */
};
ty_status reliability_check(const struct reliability *job, struct ty_error *error);

double reliability_efficiency(const struct reliability *job);
/* First order in tau / M: C/tau + (tau/2 + A + R) / M. */
double reliability_waste(const struct reliability *job);

/* Where the time goes; sums to 1. */
struct reliability_shares {
    double useful, save, restart, rework;
};
void reliability_shares(const struct reliability *job, struct reliability_shares *out);

/* Intervals of least waste: Young and Daly, sqrt(2 M C); and exact. C = 0: as short as may be. */
double reliability_young_daly_s(double mtbf_s, double save_s);
double reliability_best_interval_s(double mtbf_s, double save_s);
/* The whole number of steps next to an interval, not below the drain; at least one step. */
double reliability_round_s(double interval_s, double step_s, double drain_s);

/* A run of work_s of useful time, many times. Each failure starts a new draw of the time to the
 * next; failures of a run do not depend on those of another. */
struct reliability_trials {
    double work_s;
    uint32_t n_trials;
    uint64_t seed;
};
struct reliability_runs {
    double mean_s, error_s; /* of the mean: standard error */
    double p10_s, p50_s, p90_s;
    double mean_failures;
};
/* At most 1e7 segments of tau in a run. returns TY_OK, TY_ERR_RANGE, TY_ERR_NOMEM; TY_ERR_LIMIT
 * when a run fails a million times: it would not come to an end. Cost: trials x (work / tau +
 * failures). */
ty_status reliability_simulate(const struct reliability *job,
                               const struct reliability_trials *trials,
                               const struct ty_allocator *allocator, struct reliability_runs *out);

/* Probability that at most `spares` of the nodes are out at once; the number out is Poisson with
 * mean nodes * repair time / node MTBF. And the fewest spares for a probability < 1. */
double reliability_spares_suffice(double mean_out, uint32_t spares);
uint32_t reliability_spares(double mean_out, double probability);

/* Largest of n independent standard normal numbers, its mean e_n; n >= 1. */
double reliability_slowest_of(double n);
/* Time of a synchronous step over that of a mean rank: the slowest node's lasting factor >= 1,
 * times 1 + v e_n for noise of coefficient of variation v per rank and step. */
double reliability_straggler_ratio(double lasting_ratio, double variation, double n_ranks);

#endif
