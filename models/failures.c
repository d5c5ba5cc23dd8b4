/* SPDX-License-Identifier: MIT
 * Share of useful time of a job under failures, and the spread of the time of a run. */
#include "models/failures.h"
#include "models/reliability.h"
#include "sim/error.h"

#include <math.h>

#define SPARE_PROBABILITY 0.99
#define Z_90              1.2815515655446004 /* 90 % quantile of the normal distribution */

static double or_default(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

double failures_mtbf_s(const struct ty_failures *failures, double n_nodes)
{
    struct failure_source sources[3];
    uint32_t n = 0;
    if (!isnan(failures->node_mtbf_s))
        sources[n++] = (struct failure_source){n_nodes, failures->node_mtbf_s};
    if (failures->job_mtbf_s > 0.0)
        sources[n++] = (struct failure_source){1.0, failures->job_mtbf_s};
    if (failures->preemption_s > 0.0)
        sources[n++] = (struct failure_source){1.0, failures->preemption_s};
    return reliability_mtbf_s(sources, n);
}

/* Mean of 20 runs of 100 failures each, of fewer where a save is quick and there is little to lose.
 */
static ty_status simulated_ratio(const struct reliability *job, double *useful_ratio)
{
    const struct reliability_trials trials = {
        .work_s = fmin(100.0 * job->mtbf_s, 1e5 * job->interval_s), .n_trials = 20, .seed = 1};
    struct reliability_runs runs;
    const ty_status status = reliability_simulate(job, &trials, NULL, &runs);
    if (status == TY_OK)
        *useful_ratio = trials.work_s / runs.mean_s;
    return status;
}

/* Time of a step with its slowest node over that of an even one. */
static double stretch_ratio(const struct ty_failures *failures, double n_nodes)
{
    const double lasting = failures->slowest_ratio > 0.0 ? failures->slowest_ratio : 1.0;
    return failures->step_variation > 0.0
               ? reliability_straggler_ratio(lasting, failures->step_variation, n_nodes)
               : lasting;
}

static struct ty_goodput without_failures(const struct ty_failures *failures, double n_nodes,
                                          double interval_s)
{
    const double stretch = stretch_ratio(failures, n_nodes);
    return (struct ty_goodput){.mtbf_s = INFINITY,
                               .interval_s = interval_s,
                               .useful_ratio = 1.0 / stretch,
                               .stretch_ratio = stretch};
}

static ty_status goodput(const struct ty_failures *failures, double n_nodes,
                         const struct reliability *job, struct ty_goodput *out,
                         struct ty_error *error)
{
    const double repair_s = or_default(failures->repair_s, TY_DEFAULT_REPAIR_S);
    const double out_nodes =
        isnan(failures->node_mtbf_s) ? 0.0 : n_nodes * repair_s / failures->node_mtbf_s;
    ty_status status = reliability_check(job, error);
    if (status != TY_OK)
        return status;
    struct ty_goodput answer = {
        .mtbf_s = job->mtbf_s,
        .interval_s = job->interval_s,
        .useful_ratio = reliability_efficiency(job),
        .spares = reliability_spares(out_nodes,
                                     or_default(failures->spare_probability, SPARE_PROBABILITY)),
        .stretch_ratio = stretch_ratio(failures, n_nodes)};
    if (job->shape != 1.0)
        status = simulated_ratio(job, &answer.useful_ratio);
    if (failures->spares_held > 0.0)
        answer.useful_ratio *=
            reliability_spares_suffice(out_nodes, (uint32_t)failures->spares_held);
    answer.useful_ratio /= answer.stretch_ratio;
    if (status == TY_OK)
        *out = answer;
    return status;
}

static struct reliability job_of(const struct ty_failures *failures, double n_nodes)
{
    return (struct reliability){
        .mtbf_s = failures_mtbf_s(failures, n_nodes),
        .restart_s = failures->detect_s + or_default(failures->restart_s, TY_DEFAULT_RESTART_S),
        .shape = failures->weibull_shape > 0.0 ? failures->weibull_shape : 1.0};
}

static ty_status check(const struct ty_failures *failures, double n_nodes, struct ty_error *error)
{
    if (!(n_nodes > 0.0) || failures->node_mtbf_s <= 0.0)
        return error_set(error, TY_ERR_RANGE, "mtbf", "and the number of nodes must be positive");
    if (!(failures->spares_held >= 0.0 && failures->spares_held < 1e6))
        return error_set(error, TY_ERR_RANGE, "spares", "must be 0 to 1e6");
    if (!(failures->slowest_ratio == 0.0 ||
          (failures->slowest_ratio >= 1.0 && isfinite(failures->slowest_ratio))))
        return error_set(error, TY_ERR_RANGE, "slowest_ratio", "must be 1 or more");
    if (!(failures->step_variation >= 0.0 && failures->step_variation <= 1.0))
        return error_set(error, TY_ERR_RANGE, "step_variation", "must be 0 to 1");
    return TY_OK;
}

ty_status ty_goodput(const struct ty_failures *failures, double n_nodes, struct ty_goodput *out,
                     struct ty_error *error)
{
    const ty_status status = check(failures, n_nodes, error);
    if (status != TY_OK)
        return status;
    struct reliability job = job_of(failures, n_nodes);
    if (isinf(job.mtbf_s)) {
        *out = without_failures(failures, n_nodes, INFINITY);
        return TY_OK;
    }
    job.save_s = or_default(failures->save_s, TY_DEFAULT_SAVE_S);
    job.interval_s =
        or_default(failures->interval_s, reliability_best_interval_s(job.mtbf_s, job.save_s));
    job.interval_s = fmax(job.interval_s, 1.0); /* C = 0: as short as may be */
    return goodput(failures, n_nodes, &job, out, error);
}

ty_status failures_goodput_of(const struct ty_failures *failures, double n_nodes,
                              const struct ty_save_report *save, struct ty_goodput *out,
                              struct ty_error *error)
{
    ty_status status = check(failures, n_nodes, error);
    if (status != TY_OK)
        return status;
    struct reliability job = job_of(failures, n_nodes);
    if (isinf(job.mtbf_s)) {
        *out = without_failures(failures, n_nodes, save->every_s);
        return TY_OK;
    }
    job.restart_s += save->restore_s;
    job.save_s = save->lost_s;
    job.interval_s = save->every_s - save->lost_s;
    job.drain_s = fmin(save->drain_s, job.interval_s);
    status = goodput(failures, n_nodes, &job, out, error);
    if (status == TY_OK)
        out->useful_ratio *= save->every_s / job.interval_s;
    return status;
}

/* v^2 of trainyard_cost.h */
static double failure_variance(const struct ty_failures *failures, const struct ty_goodput *share,
                               double time_s)
{
    if (!failures || !isfinite(share->mtbf_s))
        return 0.0;
    const double restart_s = job_of(failures, 1.0).restart_s, tau_s = share->interval_s;
    const double squared_s2 = restart_s * restart_s + restart_s * tau_s + tau_s * tau_s / 3.0;
    return squared_s2 / (share->mtbf_s * time_s);
}

double failures_spread(const struct ty_failures *failures, const struct ty_goodput *share,
                       double time_s, double half_80)
{
    const double known = isnan(half_80) ? 0.0 : half_80 / Z_90;
    return sqrt(known * known + failure_variance(failures, share, time_s));
}

void failures_quantiles(double time_s, double spread, double out[TY_N_QUANTILES])
{
    static const double z[TY_N_QUANTILES] = {-Z_90, 0.0, Z_90};
    for (int i = 0; i < TY_N_QUANTILES; i++)
        out[i] = i == TY_P50 ? time_s : time_s * exp(z[i] * spread);
}

ty_status ty_forecast_of(const struct ty_prediction *prediction, const struct ty_failures *failures,
                         uint32_t gpus_per_node, double tokens, struct ty_forecast *out,
                         struct ty_error *error)
{
    const struct ty_storage_report *storage = prediction->storage;
    const double nodes = ceil((double)prediction->plan.n_gpus / gpus_per_node);
    const double half_80 = log(prediction->interval_80[1] / prediction->step_time_s);
    static const struct ty_failures none = {.node_mtbf_s = (double)NAN};
    struct ty_forecast run = {.goodput = without_failures(&none, nodes, INFINITY)};
    ty_status status = TY_OK;
    if (failures && storage && storage->has_checkpoint)
        status = failures_goodput_of(failures, nodes, &storage->checkpoint, &run.goodput, error);
    else if (failures)
        status = ty_goodput(failures, nodes, &run.goodput, error);
    if (status != TY_OK)
        return status;
    run.tokens_per_s = prediction->tokens_per_s * run.goodput.useful_ratio;
    const double time_s = tokens / run.tokens_per_s;
    failures_quantiles(time_s, failures_spread(failures, &run.goodput, time_s, half_80),
                       run.time_s);
    *out = run;
    return TY_OK;
}
