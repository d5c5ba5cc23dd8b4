/* SPDX-License-Identifier: MIT
 * The pool by hand-worked schedules, the cases P01, P03 and P05 of published issues. */
#include "tests/pool_fixture.h"

static struct ty_pool_queue queues[2];

/* ---- policies by hand --------------------------------------------------------------------- */

/* Four GPUs: A 3 GPUs 10 s, B 4 GPUs 5 s, C 1 GPU 8 s, D 1 GPU 20 s, all at 0 but in that order. */
static void add_four(void)
{
    add(0, 10, 3);
    add(0, 5, 4);
    add(0, 8, 1);
    add(0, 20, 1);
}

static void test_orders(void)
{
    begin("fifo", 1, 4);
    add_four();
    ok(ENDS(10, 15, 23, 35), "fifo: C and D wait for B");
    near(result.metrics.makespan_s, 35, 0, "fifo: makespan");
    /* held: 30 + 20 + 8 + 20 = 78 of 4 x 35 */
    near(result.metrics.allocated_ratio, 78.0 / 140.0, 1e-15, "fifo: allocated");
    near(result.metrics.jct_s.mean, (10 + 15 + 23 + 35) / 4.0, 1e-15, "fifo: mean JCT");
    near(result.metrics.jct_s.median, 19, 1e-15, "fifo: median JCT");
    near(result.metrics.jct_s.p90, 35, 0, "fifo: P90 of four is the last");
    begin("fit", 1, 4);
    add_four();
    ok(ENDS(10, 33, 8, 28), "fit: C, then D pass B by, which waits for all");
    begin("easy", 1, 4);
    add_four();
    ok(ENDS(10, 15, 8, 35), "easy: C ends before B's time, D would not");
    begin("easy", 1, 5);
    add_four();
    ok(ENDS(10, 15, 8, 20), "easy: D uses the GPU that B leaves");
    /* C and D at 0, A at 8 when C leaves 3, B when all have ended at 20. */
    begin("smallest", 1, 4);
    add_four();
    ok(ENDS(18, 25, 8, 20), "smallest: fewest GPUs first");
    /* B at 0; at 5 C and, of A and D, first A. */
    begin("sjf", 1, 4);
    add_four();
    ok(ENDS(15, 5, 13, 33), "sjf: shortest first");
}

/* One GPU: A 100 s at 0, B 10 s at 50. */
static void test_restart(void)
{
    begin("srtf", 1, 1);
    pool.restart_s = 5;
    add(0, 100, 1);
    add(50, 10, 1);
    /* A stops at 50, starts again at 60, works again from 65. */
    ok(ENDS(115, 60), "srtf: a preempted job restarts for 5 s");
    ok(result.metrics.n_preemptions == 1 && result.outcomes[0].preemptions == 1, "one preemption");
    near(result.metrics.lost_gpu_hours, 5.0 / 3600.0, 1e-12, "5 GPU-seconds lost");
    near(result.metrics.useful_ratio, 110.0 / 115.0, 1e-12, "useful less than allocated");
    near(result.metrics.allocated_ratio, 1.0, 1e-12, "always allocated");
    pool.preempt_loses = true;
    /* No checkpoint: the 50 s are done twice. */
    ok(ENDS(165, 60), "srtf, no checkpoint: the run is lost");
    pool.checkpoint_every_s = 20;
    ok(ENDS(125, 60), "srtf, a checkpoint every 20 s: 10 s are lost");
    jobs[0].restart_s = 0;
    ok(ENDS(120, 60), "a job's own restart time");
    /* Its checkpoint of 80 GB is read at 10 GB/s: 8 s. */
    pool.read_bytes_per_s = 10e9;
    jobs[0].checkpoint_bytes = 80e9;
    ok(ENDS(128, 60), "a restart reads the checkpoint");
    jobs[0].checkpoint_bytes = NAN;
    /* Deadlines: A misses 119, B meets 60. */
    jobs[0].deadline_s = 119;
    jobs[1].deadline_s = 60;
    ok(run() && result.metrics.n_deadlines == 2 && result.metrics.n_missed == 1,
       "deadlines: one met exactly, one missed");
    begin("srsf", 1, 2);
    add(0, 10, 2);
    add(0, 15, 1);
    ok(ENDS(25, 15), "srsf: 15 GPU-seconds before 20");
}

/* Limits 10 and 20 GPU-seconds, one GPU, A and B of 30 s from 0. A runs to 10, then B to 20; the
 * tail of queue 1 is A, B: A to 30, with 20 GPU-seconds to queue 2; B to 40 likewise; A, B end. */
static void test_las(void)
{
    begin("las", 1, 1);
    pool.las_limit_gpu_s[0] = 10;
    pool.las_limit_gpu_s[1] = 20;
    add(0, 30, 1);
    add(0, 30, 1);
    ok(ENDS(50, 60), "las: two jobs take turns through three queues");
    ok(result.metrics.n_preemptions == 4, "las: A stops at 10 and 30, B at 20 and 40");
}

static void test_priorities(void)
{
    begin("prio-preempt", 1, 4);
    add(0, 100, 4);
    add(10, 20, 2)->priority = 1;
    ok(ENDS(120, 30), "prio-preempt: the gang of a lower priority stops as a whole");
    begin("prio", 1, 4);
    add(0, 100, 4);
    add(10, 20, 4);
    add(20, 30, 4)->priority = 1;
    ok(ENDS(100, 150, 130), "prio: no preemption");
}

/* ---- queues ------------------------------------------------------------------------------- */

static void two_queues(double quota_a, double quota_b)
{
    queues[0] = (struct ty_pool_queue){
        .name = "a", .weight = NAN, .quota_gpus = quota_a, .borrow_gpus = NAN};
    queues[1] = (struct ty_pool_queue){
        .name = "b", .weight = NAN, .quota_gpus = quota_b, .borrow_gpus = NAN};
    pool.queues = queues;
    pool.n_queues = 2;
}

static void test_quota(void)
{
    begin("quota", 1, 8);
    two_queues(4, 4);
    add(0, 100, 4);
    add(1, 100, 4); /* borrows all of b's quota */
    add(10, 50, 4)->queue = 1;
    ok(ENDS(100, 151, 60), "quota: b takes back what it lent, from the latest start");
    queues[0].borrow_gpus = 0;
    ok(ENDS(100, 200, 60), "quota: without borrowing a's second job waits for the first");
    queues[0].borrow_gpus = NAN;
    queues[1].cohort = 1;
    ok(ENDS(100, 200, 60), "quota: another cohort lends nothing");
    begin("quota", 1, 8);
    two_queues(4, 4);
    add(0, 100, 8);
    add(10, 50, 6)->queue = 1;
    ok(ENDS(100, 150), "quota: a job above its own quota takes nothing back");
    ok(result.metrics.n_preemptions == 0, "quota: nothing stopped");
    /* Two low-priority jobs of b; a high-priority one of 2 GPUs stops only the later. */
    begin("quota", 1, 4);
    two_queues(0, 4);
    add(0, 100, 2)->queue = 1;
    add(1, 100, 2)->queue = 1;
    struct ty_pool_job *high = add(11, 10, 2);
    high->queue = 1;
    high->priority = 5;
    ok(ENDS(100, 111, 21), "quota: within a queue the lower priority that started last stops");
    add(12, 10, 1);
    queues[0].borrow_gpus = 0;
    ok(run() && result.outcomes[3].refused && result.metrics.n_refused == 1 &&
           result.metrics.n_done == 3,
       "quota: a job beyond the whole quota of its cohort is refused at the end");
}

/* The example of the DRF paper with GPUs in place of its CPUs: 9 GPUs and 18 GB; tasks of a take
 * 1 GPU and 4 GB, tasks of b 3 GPUs and 1 GB: 3 of a and 2 of b run. */
static void test_drf(void)
{
    begin("drf", 1, 9);
    groups[0].mem_bytes = 18e9;
    two_queues(NAN, NAN);
    for (uint32_t i = 0; i < 10; i++)
        add(0, 100, 1)->mem_bytes = 4e9;
    for (uint32_t i = 0; i < 10; i++) {
        struct ty_pool_job *job = add(0, 100, 3);
        job->worker = 3;
        job->mem_bytes = 1e9;
        job->queue = 1;
    }
    uint32_t started[2] = {0, 0};
    ok(run(), "drf: runs");
    for (uint64_t i = 0; i < n_jobs; i++)
        started[jobs[i].queue] += result.outcomes[i].start_s == 0.0;
    ok(started[0] == 3 && started[1] == 2, "drf: 3 tasks of a and 2 of b, as in the paper");
}

/* UT-9.2: 16 GPUs, X_A = g / (1 + 0.02 (g - 1)), X_B = 2 g / (1 + 0.1 (g - 1)): the sum is
 * largest with 9 for A and 7 for B. Work of 1000 X_A(9) and 2000 X_B(7) / 2 seconds at one GPU. */
static void test_elastic(void)
{
    begin("elastic", 1, 16);
    two_queues(NAN, NAN);
    queues[1].weight = 2;
    const double speed_a = 9.0 / 1.16, speed_b = 7.0 / 1.6;
    struct ty_pool_job *a = add(0, 1000 * speed_a, 1);
    a->serial = 0.02;
    struct ty_pool_job *b = add(0, 1000 * speed_b, 1);
    b->serial = 0.1;
    b->queue = 1;
    a->min_gpus = b->min_gpus = 1;
    a->max_gpus = b->max_gpus = 16;
    ok(ENDS(1000, 1000), "elastic: 9 and 7 GPUs (UT-9.2)");
    ok(result.metrics.n_resizes == 0, "elastic: both start at their size");
    /* A alone on 4 GPUs, 4 to 1 when B comes: 40 GPU-seconds less 4 x 5, at 5 it has 20 left at
     * one GPU; B has 3 fixed GPUs from 5 to 11; A then grows: 6 done, 14 left on 4. */
    begin("elastic", 1, 4);
    a = add(0, 40, 1);
    a->min_gpus = 1;
    a->max_gpus = 4;
    add(5, 6, 3);
    ok(ENDS(14.5, 11), "elastic: shrinks for a job and grows after it");
    ok(result.metrics.n_resizes == 2, "elastic: two changes of size");
    pool.restart_s = 100;
    ok(ENDS(11 - 6 + 120, 11), "elastic: growing is not worth a restart of 100 s");
}

/* Sizes of 1, 2 and 4 GPUs at speeds 1, 1.5 and 4. A alone takes 4 at once (two would not be worth
 * their GPUs, four are) and does 20 of its 40 by 5, when B comes for 2 fixed GPUs and 6 s: A gives
 * what it must and has 2, does 9 by 11, and the last 11 on 4 by 13.75. */
static void test_sizes(void)
{
    static const struct ty_pool_size sizes[] = {{1, 10}, {2, 15}, {4, 40}};
    begin("elastic", 1, 4);
    struct ty_pool_job *a = add(0, 40, 1);
    a->sizes = sizes;
    a->n_sizes = 3;
    a->min_gpus = 1;
    a->max_gpus = 4;
    add(5, 6, 2);
    ok(ENDS(13.75, 11), "elastic: sizes and speeds of a table, over its concave hull");
    a->max_gpus = 3;
    ok(!run() && error.code == TY_ERR_RANGE, "elastic: a largest size that is none is refused");
}

/* Two jobs of 1 GPU from 0 give way at 10 to one of 2 GPUs for 5 s, and restart at 15: 1 s each and
 * 10 bytes at 2 bytes/s, from a storage of 1 byte/s one after the other. A works from 15 + 10 + 1,
 * B from 15 + 20 + 1, with 90 s left each. */
static void test_storage(void)
{
    begin("prio-preempt", 1, 2);
    add(0, 100, 1)->checkpoint_bytes = 10;
    add(0, 100, 1)->checkpoint_bytes = 10;
    add(10, 5, 2)->priority = 1;
    pool.restart_s = 1;
    pool.read_bytes_per_s = 2;
    ok(ENDS(15 + 6 + 90, 15 + 6 + 90, 15), "a restart reads its checkpoint");
    pool.storage_bytes_per_s = 1;
    ok(ENDS(15 + 11 + 90, 15 + 21 + 90, 15), "restarts wait for the storage in turn");
}

/* What a caller is told: A and B on one GPU each of two. */
struct heard {
    char text[400];
    bool adds_up;
};

static void hear(void *user, const struct ty_pool_event *event)
{
    struct heard *heard = user;
    const size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "%g:%s %u, ", event->time_s,
             ty_pool_event_name(event->kind), (unsigned)event->subject);
    heard->adds_up = heard->adds_up && event->held_gpus <= 2 && event->n_running <= 2;
}

static void test_events(void)
{
    struct heard heard = {.adds_up = true};
    begin("prio-preempt", 1, 2);
    add(0, 20, 2);
    add(5, 10, 1)->priority = 1;
    pool.event = hear;
    pool.user = &heard;
    ok(run(), "a replay that is heard");
    same_text(heard.text,
              "0:submit 0, 0:start 0, 5:submit 1, 5:preempt 0, 5:start 1, 15:end 1, 15:start 0, "
              "30:end 0, ",
              "events in order of time");
    ok(heard.adds_up && !ty_pool_event_name(TY_N_POOL_EVENTS), "no more is held than there is");
}

/* ---- nodes -------------------------------------------------------------------------------- */

static void test_places(void)
{
    /* Two nodes of 4: gangs of 3 leave one GPU on each. */
    begin("fit", 2, 4);
    add(0, 10, 3);
    add(0, 10, 3);
    add(0, 5, 2)->level = TY_POOL_NODE;
    ok(ENDS(10, 10, 15), "a gang that must lie on one node waits for one");
    near(result.metrics.blocked_shape_s, 10, 0, "... for 10 s in spite of free GPUs");
    near(result.metrics.fragmentation, 1, 0, "... all of them on nodes in part taken");
    jobs[2].level = TY_POOL_ANY;
    ok(ENDS(10, 10, 5), "the same gang across nodes");
    jobs[2].worker = 2;
    ok(ENDS(10, 10, 15), "workers of two GPUs are not split");
    begin("fit", 2, 4);
    add(0, 10, 2);
    add(0, 10, 2);
    add(0, 5, 4)->level = TY_POOL_NODE;
    ok(ENDS(10, 10, 5), "pack: two jobs share a node, one stays whole");
    pool.placement = TY_POOL_SPREAD;
    ok(ENDS(10, 10, 15), "spread: both nodes are begun");
    /* Cores: one of two nodes has them. */
    begin("fit", 1, 8);
    groups[0].cpus = 16;
    groups[1] = groups[0];
    groups[1].cpus = 2;
    pool.n_groups = 2;
    for (uint32_t i = 0; i < 3; i++)
        add(0, 10, 1)->cpus = 8;
    ok(ENDS(10, 10, 20), "cores limit a node before its GPUs do");
    add(0, 1, 1)->cpus = 17;
    ok(run() && result.outcomes[3].refused && isnan(result.outcomes[3].end_s),
       "more cores than any node has: refused");
    /* Types. */
    snprintf(groups[0].gpu, sizeof groups[0].gpu, "V100");
    snprintf(groups[1].gpu, sizeof groups[1].gpu, "A10");
    n_jobs = 0;
    add(0, 10, 8)->gpu = "A10";
    add(0, 10, 8)->gpu = "A10|V100";
    add(0, 10, 8)->gpu = "A10";
    add(0, 10, 8)->gpu = "A1";
    ok(run() && result.outcomes[1].start_s == 0 && result.outcomes[2].start_s == 10 &&
           result.outcomes[3].refused,
       "GPU types: one of a list, one alone, an unknown one");
}

static void test_shares(void)
{
    begin("fit", 1, 2);
    const double shares[] = {0.5, 0.6, 0.4, 0.5, 1.0};
    for (uint32_t i = 0; i < 5; i++)
        add(0, 10, 1)->share = shares[i];
    /* 0.5 on one GPU, 0.6 on the other, 0.4 beside the 0.6, 0.5 beside the 0.5, 1.0 waits. */
    ok(ENDS(10, 10, 10, 10, 20), "parts of a GPU fill it");
    near(result.metrics.allocated_ratio, 30.0 / 40.0, 1e-12, "parts count as parts");
    begin("prio-preempt", 1, 1);
    add(0, 10, 1)->share = 0.5;
    add(0, 10, 1)->share = 0.5;
    struct ty_pool_job *high = add(5, 10, 1);
    high->share = 0.7;
    high->priority = 1;
    ok(ENDS(20, 20, 15), "a larger part pushes two smaller ones out");
}

static void test_refusals(void)
{
    begin("fifo", 2, 4);
    add(0, 10, 9);
    add(0, 10, 5)->level = TY_POOL_NODE;
    add(0, 10, 1);
    ok(run() && result.metrics.n_refused == 2 && result.outcomes[2].end_s == 10,
       "what never fits does not block the queue");
    begin("fifo", 1, 4);
    add(0, 10, 1);
    const double bad[] = {NAN, -1.0, 0.0, (double)INFINITY};
    for (uint32_t i = 0; i < 4; i++) {
        jobs[0].duration_s = bad[i];
        ok(ty_pool_run(&pool, jobs, 1, &result, &error) == TY_ERR_RANGE &&
               strstr(error.text, "duration_s") && strcmp(error.where, "jobs[0]") == 0,
           "duration %g is refused by name", bad[i]);
    }
    jobs[0].duration_s = 1;
    jobs[0].gpus = 0;
    ok(ty_pool_run(&pool, jobs, 1, &result, &error) == TY_ERR_RANGE, "0 GPUs are refused");
    pool.policy = "lottery";
    ok(ty_pool_run(&pool, jobs, 1, &result, &error) == TY_ERR_INPUT, "an unknown policy");
    begin("fifo", UINT32_MAX, UINT32_MAX);
    ok(ty_pool_run(&pool, jobs, 0, &result, &error) == TY_ERR_RANGE, "2^64 GPUs are refused");
    begin("fifo", 1, 4);
    ok(run() && result.metrics.n_done == 0 && isnan(result.metrics.jct_s.mean), "no jobs at all");
}

/* ---- published cases ---------------------------------------------------------------------- */

/* P01 (kubernetes-sigs/kueue#5243): 4 nodes of 8 hold 6 important and 2 other jobs each; an
 * important gang of 8 on one node must not preempt, since that would not help; an important job of
 * one GPU must start at once. */
static void test_p01(void)
{
    begin("prio-preempt", 4, 8);
    pool.placement = TY_POOL_SPREAD;
    for (uint32_t i = 0; i < 32; i++)
        add(0, 1000, 1)->priority = i < 24;
    struct ty_pool_job *gang = add(1, 100, 8);
    gang->level = TY_POOL_NODE;
    gang->priority = 1;
    add(2, 500, 1)->priority = 1;
    ok(run() && result.outcomes[33].start_s == 2, "P01: the job of one GPU starts at once");
    ok(result.metrics.n_preemptions == 1, "P01: one preemption, none in vain");
    ok(result.outcomes[32].start_s == 1000, "P01: the gang waits for a node");
}

/* P03 (marin-community/marin#6950): only the leaf groups of 8 and 11 hosts hold a gang of 8. */
static void test_p03(void)
{
    static const uint32_t leaves[] = {1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11};
    begin("fifo", 1, 8);
    for (uint32_t i = 0; i < 15; i++)
        groups[i] = (struct ty_pool_nodes){
            .n_nodes = leaves[i], .gpus_per_node = 8, .cpus = NAN, .mem_bytes = NAN};
    pool.n_groups = 15;
    add(0, 1e6, 512 - 8);
    struct ty_pool_job *gang = add(1, 10, 64);
    gang->level = TY_POOL_LEAF;
    gang->worker = 8;
    struct ty_pool_verdict verdict;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 1, NAN, &verdict, &error) == TY_OK &&
           verdict.domains_fit == 2 && verdict.domains_free == 0,
       "P03: two leaves could hold the gang");
}

/* P05 (marin-community/marin#8925): racks of 18 hosts with 4 GPUs, 207 hosts in 12 racks, 200 of
 * them taken: 7 free, and no rack with 16. */
static void test_p05(void)
{
    begin("fifo", 207, 4);
    groups[0].nodes_per_leaf = 18;
    add(0, 1000, 176 * 4)->worker = 4;
    for (uint32_t i = 0; i < 3; i++)
        add(0, 500, 32)->worker = 4;
    struct ty_pool_job *gang = add(1, 10, 64);
    gang->worker = 4;
    gang->level = TY_POOL_LEAF;
    struct ty_pool_verdict verdict;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 4, NAN, &verdict, &error) == TY_OK &&
           verdict.free_gpus == 28 && verdict.domains_fit == 11 && verdict.domains_free == 0,
       "P05: 28 GPUs free, 11 racks of 12 could hold it, none does");
    ok(verdict.reason == TY_POOL_CAPACITY, "P05: too few GPUs in any case");
}

static void test_explain(void)
{
    struct ty_pool_verdict verdict;
    /* Spread: 2 on each of two nodes of 4; a gang of 4 on one node needs one job moved. */
    begin("fit", 2, 4);
    pool.placement = TY_POOL_SPREAD;
    add(0, 10, 2)->worker = 2;
    add(0, 20, 2)->worker = 2;
    add(1, 5, 4)->level = TY_POOL_NODE;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 2, NAN, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_FRAGMENTED && verdict.free_gpus == 4 && verdict.time_s == 1,
       "explain: fragmented with 4 GPUs free");
    ok(verdict.n_moves == 1 && verdict.moves[0].gpus == 2, "explain: one job of 2 GPUs to move");
    near(verdict.expected_s, 10, 0, "explain: or wait until 10 s");
    ok(strstr(verdict.advice, "Moving 1 running job (2 GPUs)") != NULL, "explain: in words");
    ok(ty_pool_explain(&pool, jobs, n_jobs, 2, 12, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_RUNS,
       "explain: at 12 s it runs");
    jobs[2].gpus = 5;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 2, NAN, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_NEVER,
       "explain: 5 GPUs on one node, never");
    /* Two leaves of two nodes; A and B on the first, C on the second; A ends: 4 free on each. */
    begin("fit", 4, 4);
    groups[0].nodes_per_leaf = 2;
    for (uint32_t i = 0; i < 3; i++)
        add(0, i == 0 ? 10 : 100, 4)->worker = 4;
    struct ty_pool_job *gang = add(11, 5, 8);
    gang->worker = 4;
    gang->level = TY_POOL_LEAF;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 3, NAN, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_FRAGMENTED && verdict.domains_fit == 2 &&
           verdict.n_moves == 1 && verdict.moves[0].job == 1,
       "explain: B moves to the other leaf");
    begin("fifo", 1, 4);
    add_four();
    ok(ty_pool_explain(&pool, jobs, n_jobs, 2, NAN, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_BEHIND,
       "explain: behind the head of the queue");
    begin("fit", 1, 8);
    groups[0].cpus = 10;
    add(0, 10, 2)->cpus = 4;
    add(0, 10, 1)->cpus = 4;
    ok(ty_pool_explain(&pool, jobs, n_jobs, 1, NAN, &verdict, &error) == TY_OK &&
           verdict.reason == TY_POOL_HOST,
       "explain: cores are taken");
    ok(ty_pool_explain(&pool, jobs, n_jobs, 2, NAN, &verdict, &error) == TY_ERR_RANGE,
       "explain: no such job");
}

int main(void)
{
    test_orders();
    test_restart();
    test_las();
    test_priorities();
    test_quota();
    test_drf();
    test_elastic();
    test_sizes();
    test_storage();
    test_events();
    test_places();
    test_shares();
    test_refusals();
    test_p01();
    test_p03();
    test_p05();
    test_explain();
    ty_pool_result_free(&result);
    return tap_done();
}
