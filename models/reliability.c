/* SPDX-License-Identifier: MIT
 *
 * Closed forms of failures, intervals, spares and stragglers.
 */
#include "models/reliability.h"
#include "sim/error.h"

#include <math.h>

double reliability_mtbf_s(const struct failure_source *sources, uint32_t n)
{
    double per_s = 0.0;
    for (uint32_t i = 0; i < n; i++)
        per_s += sources[i].units / sources[i].unit_mtbf_s;
    return 1.0 / per_s;
}

ty_status reliability_check(const struct reliability *job, struct ty_error *error)
{
    const struct {
        const char *name;
        double value;
    } positive[] = {{"mtbf_s", job->mtbf_s},
                    {"interval_s", job->interval_s},
                    {"shape", job->shape}},
      amounts[] = {
          {"save_s", job->save_s}, {"drain_s", job->drain_s}, {"restart_s", job->restart_s}};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (!(positive[i].value > 0.0))
            return error_set(error, TY_ERR_RANGE, positive[i].name, "must be above 0, is %g",
                             positive[i].value);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
        if (!(amounts[i].value >= 0.0) || isinf(amounts[i].value))
            return error_set(error, TY_ERR_RANGE, amounts[i].name, "must be 0 or more, is %g",
                             amounts[i].value);
    if (job->drain_s > job->interval_s)
        return error_set(error, TY_ERR_RANGE, "interval_s",
                         "%g s: a save must be safe before the next, which takes %g s",
                         job->interval_s, job->drain_s);
    return TY_OK;
}

/* ---- efficiency ---------------------------------------------------------------------------- */

double reliability_efficiency(const struct reliability *job)
{
    const double m = job->mtbf_s, lost_s = job->restart_s + job->drain_s;
    return job->interval_s / (m * exp(lost_s / m) * expm1((job->interval_s + job->save_s) / m));
}

double reliability_waste(const struct reliability *job)
{
    return job->save_s / job->interval_s +
           (0.5 * job->interval_s + job->drain_s + job->restart_s) / job->mtbf_s;
}

/* Restarts take (1-q) M (exp(R/M) - 1) of (1-q) M exp(R/M) per attempt: 1 - exp(-R/M). */
void reliability_shares(const struct reliability *job, struct reliability_shares *out)
{
    out->useful = reliability_efficiency(job);
    out->save = out->useful * job->save_s / job->interval_s;
    out->restart = -expm1(-job->restart_s / job->mtbf_s);
    out->rework = 1.0 - out->useful - out->save - out->restart;
}

double reliability_young_daly_s(double mtbf_s, double save_s)
{
    return sqrt(2.0 * mtbf_s * save_s);
}

/* d efficiency / d tau = 0 with x = tau/M, c = C/M:   f(x) = x - 1 + exp(-(x+c)) = 0.
 * f' = 1 - exp(-(x+c)) > 0 and f is convex: Newton from sqrt(2c) or 1, both at or right of the
 * root, falls to it. R and A do not matter. */
double reliability_best_interval_s(double mtbf_s, double save_s)
{
    const double c = save_s / mtbf_s;
    double x = fmin(sqrt(2.0 * c), 1.0);
    for (int i = 0; i < 50 && x > 0.0; i++) {
        const double slope = -expm1(-(x + c));
        const double next = x - (x - slope) / slope;
        if (fabs(next - x) <= 1e-15 * x)
            break;
        x = next;
    }
    return x * mtbf_s;
}

double reliability_round_s(double interval_s, double step_s, double drain_s)
{
    const double least = ceil(drain_s / step_s * (1.0 - 1e-12));
    return step_s * fmax(fmax(round(interval_s / step_s), least), 1.0);
}

/* ---- spares -------------------------------------------------------------------------------- */

/* Terms of the Poisson distribution from the log, so that a large mean does not underflow. */
static double poisson(double mean, uint32_t k)
{
    return mean > 0.0 ? exp(k * log(mean) - mean - lgamma(k + 1.0)) : k == 0;
}

double reliability_spares_suffice(double mean_out, uint32_t spares)
{
    double sum = 0.0;
    for (uint32_t k = 0; k <= spares; k++)
        sum += poisson(mean_out, k);
    return fmin(sum, 1.0);
}

/* Beyond mean + 12 (sqrt(mean) + 12) the tail is below the rounding of the sum. */
uint32_t reliability_spares(double mean_out, double probability)
{
    const double end = mean_out + 12.0 * (sqrt(mean_out) + 12.0);
    uint32_t spares = 0;
    double sum = poisson(mean_out, 0);
    while (sum < probability && spares < end)
        sum += poisson(mean_out, ++spares);
    return spares;
}

/* ---- stragglers ---------------------------------------------------------------------------- */

/* P(all of n <= x) = F(x)^n; the tail beside 1 keeps its digits. */
static double none_above(double x, double n)
{
    return exp(n * log1p(-0.5 * erfc(x * 0.70710678118654752)));
}

static double some_above(double x, double n)
{
    return -expm1(n * log1p(-0.5 * erfc(x * 0.70710678118654752)));
}

/* E[max] = int_0^inf (1 - F^n) dx - int_0^inf F(-x)^n dx, by Simpson's rule up to 12 deviations. */
double reliability_slowest_of(double n)
{
    enum { N_INTERVALS = 2400 };
    const double width = 12.0 / N_INTERVALS;
    double sum = 0.0;
    for (int i = 0; i <= N_INTERVALS; i++) {
        const double x = i * width;
        const double weight = i == 0 || i == N_INTERVALS ? 1.0 : i % 2 ? 4.0 : 2.0;
        sum += weight * (some_above(x, n) - none_above(-x, n));
    }
    return sum * width / 3.0;
}

double reliability_straggler_ratio(double lasting_ratio, double variation, double n_ranks)
{
    return lasting_ratio * (1.0 + variation * reliability_slowest_of(n_ranks));
}
