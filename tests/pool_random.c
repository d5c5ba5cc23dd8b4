/* SPDX-License-Identifier: MIT
 * The pool on random input: a closed form of repeated failures, and what holds for every trace. */
#include "sim/random.h"
#include "tests/pool_fixture.h"

/* ---- failures ----------------------------------------------------------------------------- */

/* One node that fails with rate r, repaired in R, a job of W without checkpoint: the mean time is
 * (1 / r + R) (exp(r W) - 1). Source: renewal argument, e.g. Ross, Introduction to Probability
 * Models, on repeated tries. Mean of 4000 seeds within 3 standard errors. */
static void test_failures(void)
{
    enum { TRIALS = 4000 };
    const double rate = 1e-3, work_s = 700, repair_s = 50;
    begin("fifo", 1, 8);
    add(0, work_s, 8);
    pool.node_mtbf_s = 1 / rate;
    pool.repair_s = repair_s;
    double sum = 0, squares = 0;
    bool good = true;
    for (uint32_t seed = 0; seed < TRIALS && good; seed++) {
        pool.seed = seed;
        good = run();
        sum += result.outcomes[0].end_s;
        squares += result.outcomes[0].end_s * result.outcomes[0].end_s;
    }
    const double mean = sum / TRIALS;
    const double deviation = sqrt((squares / TRIALS - mean * mean) / TRIALS);
    ok(good, "failures: all trials end");
    within(mean, (1 / rate + repair_s) * (exp(rate * work_s) - 1), 3 * deviation,
           "failures: mean time of the closed form");
    /* With a checkpoint every second next to nothing is done twice: W + failures x R. */
    pool.checkpoint_every_s = 1;
    ok(run() && result.outcomes[0].lost_gpu_s <= 8.0 * (double)result.metrics.n_failures &&
           result.outcomes[0].end_s <= work_s + (repair_s + 1) * (double)result.metrics.n_failures,
       "failures: a checkpoint bounds what is lost");
    pool.checkpoint_every_s = NAN;
    jobs[0].duration_s = 1e9;
    ok(ty_pool_run(&pool, jobs, 1, &result, &error) == TY_ERR_LIMIT,
       "failures: a job that never ends is reported");
}

/* ---- random traces ------------------------------------------------------------------------ */

static void random_trace(uint64_t seed)
{
    struct random_stream stream;
    random_init(&stream, seed, 0);
    double time_s = 0;
    for (uint32_t i = 0; i < 400; i++) {
        time_s += floor(20 * random_exponential(&stream));
        struct ty_pool_job *job =
            add(time_s, 1 + (double)random_below(&stream, 400), 1u << random_below(&stream, 5));
        job->priority = (int32_t)random_below(&stream, 3);
        job->queue = (uint32_t)random_below(&stream, 3);
    }
}

/* GPUs of the jobs that run at a time, from their starts and ends alone. */
static double in_use(double time_s)
{
    double gpus = 0;
    for (uint64_t i = 0; i < n_jobs; i++)
        if (result.outcomes[i].start_s <= time_s && time_s < result.outcomes[i].end_s)
            gpus += jobs[i].gpus;
    return gpus;
}

/* At no time more GPUs than there are; nobody ends before its run time; the held GPU-seconds are
 * those of the jobs and what was lost. */
static bool sound(uint32_t n_gpus)
{
    const bool whole = result.metrics.n_preemptions == 0 && result.metrics.n_resizes == 0;
    double work_gpu_s = 0;
    bool good = result.metrics.n_done == n_jobs && result.metrics.allocated_ratio <= 1 + 1e-12;
    for (uint64_t i = 0; i < n_jobs; i++) {
        const struct ty_pool_outcome *outcome = &result.outcomes[i];
        good = good && outcome->start_s >= jobs[i].submit_s &&
               outcome->end_s >= outcome->start_s + jobs[i].duration_s - 1e-6;
        work_gpu_s += jobs[i].gpus * jobs[i].duration_s;
        good = good && (!whole || in_use(outcome->start_s) <= n_gpus);
    }
    const double held_gpu_s = result.metrics.allocated_ratio * n_gpus * result.metrics.makespan_s;
    const double lost_gpu_s = 3600 * result.metrics.lost_gpu_hours;
    return good && fabs(held_gpu_s - lost_gpu_s - work_gpu_s) <= 1e-9 * work_gpu_s;
}

static void test_properties(void)
{
    static struct ty_pool_outcome counted[MAX_JOBS];
    const char *policy;
    for (size_t i = 0; (policy = ty_pool_policy(i, NULL)); i++) {
        bool same = true, moves = false, all_sound = true;
        for (uint64_t seed = 0; seed < 8; seed++) {
            begin(policy, 1, 32);
            random_trace(seed);
            all_sound = all_sound && run() && sound(32);
            memcpy(counted, result.outcomes, n_jobs * sizeof *counted);
            /* GPUs that lie apart, for jobs that do not mind: the same schedule, unless a job
             * that was displaced finds its own GPUs taken and others free. */
            moves = moves || result.metrics.n_preemptions > 0;
            groups[0].n_nodes = 32;
            groups[0].gpus_per_node = 1;
            all_sound = all_sound && run() && sound(32);
            for (uint64_t k = 0; k < n_jobs; k++)
                same = same && counted[k].end_s == result.outcomes[k].end_s;
            groups[0].n_nodes = 4;
            groups[0].gpus_per_node = 8;
            pool.restart_s = 7;
            for (uint64_t k = 0; k < n_jobs; k++)
                jobs[k].level = k % 3 == 0 && jobs[k].gpus <= 8 ? TY_POOL_NODE : TY_POOL_ANY;
            all_sound = all_sound && run() && sound(32);
        }
        ok(all_sound, "%s: no GPU twice, no job too early, all GPU-seconds accounted", policy);
        if (!moves)
            ok(same, "%s: 32 nodes of one GPU are one node of 32 for jobs that do not mind",
               policy);
    }
}

/* The order of the rows does not matter when no two jobs come at once, and neither does chance:
 * the same seed gives the same schedule, failures included. */
static void test_order_of_rows(void)
{
    static struct ty_pool_outcome forward[MAX_JOBS];
    const char *policy;
    for (size_t i = 0; (policy = ty_pool_policy(i, NULL)); i++) {
        begin(policy, 4, 8);
        random_trace(77);
        for (uint64_t k = 0; k < n_jobs; k++)
            jobs[k].submit_s += 1e-3 * (double)k;
        pool.node_mtbf_s = 3000;
        pool.repair_s = 100;
        pool.checkpoint_every_s = 50;
        bool same = run();
        memcpy(forward, result.outcomes, n_jobs * sizeof *forward);
        for (uint64_t k = 0; k < n_jobs / 2; k++) {
            const struct ty_pool_job swap = jobs[k];
            jobs[k] = jobs[n_jobs - 1 - k];
            jobs[n_jobs - 1 - k] = swap;
        }
        same = same && run();
        for (uint64_t k = 0; same && k < n_jobs; k++)
            same = forward[k].end_s == result.outcomes[n_jobs - 1 - k].end_s;
        ok(same && result.metrics.n_node_failures > 0, "%s: rows in the opposite order", policy);
    }
}

int main(void)
{
    test_failures();
    test_properties();
    test_order_of_rows();
    ty_pool_result_free(&result);
    return tap_done();
}
