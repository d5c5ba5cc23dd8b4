/* SPDX-License-Identifier: MIT
 * `trainyard pool`: replays a trace of jobs on a shared cluster. */
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <string.h>

enum { MAX_GROUPS = 64, MAX_POLICIES = 32 };

struct inputs {
    struct ty_pool pool;
    struct ty_pool_nodes groups[MAX_GROUPS];
    struct ty_trace trace;
};

/* ---- inputs ------------------------------------------------------------------------------- */

/* "300", "300 s", "50 ms". */
static ty_status read_time(const char *name, const char *text, double *out, struct ty_error *error)
{
    char with_unit[64];
    if (!text)
        return TY_OK;
    const bool has_unit = strpbrk(text, "abcdefghijklmnopqrstuvwxyz") != NULL;
    snprintf(with_unit, sizeof with_unit, "%s%s", text, has_unit ? "" : " s");
    if (ty_quantity_parse(with_unit, TY_UNIT_S, out, error) != TY_OK)
        return cli_refuse(error, name, "\"%s\" is not a time in s", text);
    return TY_OK;
}

/* Nodes of a cluster file, as many as --gpus says. */
static ty_status use_cluster(const struct cli_args *args, struct inputs *in, struct ty_error *error)
{
    struct ty_cluster cluster;
    ty_status status = cli_load_cluster(args, args->cluster, &cluster, error);
    if (status != TY_OK)
        return status;
    const uint32_t per_node = cluster.gpus_per_node;
    const uint32_t wanted = args->pool.gpus ? args->pool.gpus / per_node : cluster.n_nodes;
    if (wanted == 0 || (args->pool.gpus && args->pool.gpus % per_node))
        return cli_refuse(error, "--gpus", "the cluster needs a number of GPUs: a multiple of %u",
                          per_node);
    if (cluster.n_nodes && wanted > cluster.n_nodes)
        return cli_refuse(error, "--gpus", "the cluster has %u GPUs", cluster.n_nodes * per_node);
    in->groups[0] = (struct ty_pool_nodes){
        .n_nodes = wanted,
        .gpus_per_node = per_node,
        .nodes_per_leaf = cluster.nodes_per_leaf,
        .cpus = cluster.cpu_cores_per_node ? (double)cluster.cpu_cores_per_node : (double)NAN,
        .mem_bytes = cluster.host_mem_bytes};
    snprintf(in->groups[0].gpu, sizeof in->groups[0].gpu, "%s", cluster.gpu.name);
    return TY_OK;
}

static ty_status read_nodes(const struct cli_args *args, struct inputs *in, struct ty_error *error)
{
    in->pool.groups = in->groups;
    in->pool.n_groups = 1;
    if (args->pool.nodes && (args->cluster || args->pool.gpus))
        return cli_refuse(error, "--nodes", "stands alone, without --cluster and --gpus");
    if (args->pool.nodes)
        return ty_pool_nodes_read(args->pool.nodes, in->groups, MAX_GROUPS, &in->pool.n_groups,
                                  error);
    if (args->cluster)
        return use_cluster(args, in, error);
    if (!args->pool.gpus)
        return cli_refuse(error, "pool", "needs --gpus N, --cluster C or --nodes FILE");
    in->groups[0] = (struct ty_pool_nodes){.n_nodes = 1,
                                           .gpus_per_node = args->pool.gpus,
                                           .cpus = (double)NAN,
                                           .mem_bytes = (double)NAN};
    return TY_OK;
}

static ty_status read_settings(const struct cli_args *args, struct ty_pool *pool,
                               struct ty_error *error)
{
    pool->seed = args->seed;
    pool->preempt_loses = args->pool.lossy;
    ty_status status = read_time("--restart", args->pool.restart, &pool->restart_s, error);
    if (status == TY_OK)
        status = read_time("--checkpoint", args->pool.checkpoint, &pool->checkpoint_every_s, error);
    if (status == TY_OK)
        status = read_time("--mtbf", args->pool.mtbf, &pool->node_mtbf_s, error);
    if (status == TY_OK)
        status = read_time("--repair", args->pool.repair, &pool->repair_s, error);
    if (status != TY_OK || !args->pool.placement)
        return status;
    if (strcmp(args->pool.placement, "spread") == 0)
        pool->placement = TY_POOL_SPREAD;
    else if (strcmp(args->pool.placement, "pack") != 0)
        return cli_refuse(error, "--placement", "\"%s\" is not pack or spread",
                          args->pool.placement);
    return TY_OK;
}

static ty_status read_inputs(const struct cli_args *args, struct inputs *in, struct ty_error *error)
{
    ty_pool_init(&in->pool);
    if (!args->pool.trace)
        return cli_refuse(error, "pool", "needs --trace FILE");
    ty_status status = read_nodes(args, in, error);
    if (status == TY_OK)
        status = read_settings(args, &in->pool, error);
    if (status == TY_OK)
        status =
            ty_trace_read(args->pool.trace, args->pool.format, args->pool.queue, &in->trace, error);
    if (status == TY_OK && args->pool.queues)
        status = ty_trace_queues_read(args->pool.queues, &in->trace, error);
    in->pool.queues = in->trace.queues;
    in->pool.n_queues = in->trace.n_queues;
    return status;
}

static bool known_policy(const char *name, const char **kept)
{
    for (size_t i = 0; (*kept = ty_pool_policy(i, NULL)); i++)
        if (strcmp(*kept, name) == 0)
            return true;
    return false;
}

/* "all" or "fifo,easy". */
static ty_status read_policies(const char *text, const char **out, uint32_t *n,
                               struct ty_error *error)
{
    char name[64];
    *n = 0;
    if (strcmp(text, "all") == 0)
        while (*n < MAX_POLICIES && (out[*n] = ty_pool_policy(*n, NULL)))
            ++*n;
    for (const char *at = text; *n == 0 || (*at && strcmp(text, "all") != 0);) {
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (*n == MAX_POLICIES || !known_policy(name, &out[*n])) {
            struct cli_guess guess = {.word = name};
            for (size_t i = 0; ty_pool_policy(i, NULL); i++)
                cli_guess_offer(&guess, ty_pool_policy(i, NULL));
            return cli_refuse(error, "--policy", "\"%s\" is no policy%s%s", name,
                              *guess.best ? "; did you mean " : "", guess.best);
        }
        ++*n;
        at += length + (at[length] == ',');
    }
    return TY_OK;
}

/* ---- output ------------------------------------------------------------------------------- */

/* "35 s", "12.3 min", "4.56 h", "7.89 d": waiting is read in the unit it is felt in. */
static const char *span_text(double seconds, char *out, size_t bytes)
{
    if (!isfinite(seconds))
        snprintf(out, bytes, "-");
    else if (seconds < 120.0)
        snprintf(out, bytes, "%.4g s", seconds);
    else if (seconds < 7200.0)
        snprintf(out, bytes, "%.1f min", seconds / 60.0);
    else if (seconds < 172800.0)
        snprintf(out, bytes, "%.2f h", seconds / 3600.0);
    else
        snprintf(out, bytes, "%.2f d", seconds / 86400.0);
    return out;
}

static void print_trace(const struct inputs *in)
{
    double gpus = 0.0, nodes = 0.0;
    for (uint32_t i = 0; i < in->pool.n_groups; i++) {
        gpus += (double)in->groups[i].n_nodes * in->groups[i].gpus_per_node;
        nodes += in->groups[i].n_nodes;
    }
    printf("%llu jobs (%s) on %.0f GPUs", (unsigned long long)in->trace.n_jobs, in->trace.format,
           gpus);
    printf(nodes > 1.0 ? " of %.0f nodes\n" : ", any of which serves any job\n", nodes);
    for (int note = TY_TRACE_ROWS + 1; note < TY_N_TRACE_NOTES; note++) {
        const char *text;
        if (in->trace.notes[note] && ty_trace_note(note, &text))
            printf("  %8llu %s\n", (unsigned long long)in->trace.notes[note], text);
    }
    if (in->trace.bad_line)
        printf("           first bad line: %llu\n", (unsigned long long)in->trace.bad_line);
}

static void print_spread(const char *name, const struct ty_pool_spread *spread)
{
    char text[5][32];
    const double value[] = {spread->mean, spread->median, spread->p90, spread->p99, spread->max};
    for (int i = 0; i < 5; i++)
        span_text(value[i], text[i], sizeof text[i]);
    printf("  %-18s %10s %10s %10s %10s %10s\n", name, text[0], text[1], text[2], text[3], text[4]);
}

static void print_blocked(const struct ty_pool_metrics *metrics)
{
    const double total_s =
        metrics->blocked_capacity_s + metrics->blocked_shape_s + metrics->blocked_policy_s;
    char text[32];
    if (!(total_s > 0.0))
        return;
    printf("  somebody waited for %s: too few free GPUs %.1f %% of it, enough in the wrong places "
           "%.1f %%, held back by the policy %.1f %%\n",
           span_text(total_s, text, sizeof text), 100.0 * metrics->blocked_capacity_s / total_s,
           100.0 * metrics->blocked_shape_s / total_s, 100.0 * metrics->blocked_policy_s / total_s);
}

static void print_metrics(const char *policy, const struct ty_pool_metrics *metrics)
{
    char text[32];
    printf("\n%-20s %10s %10s %10s %10s %10s\n", policy, "mean", "median", "P90", "P99", "max");
    print_spread("completion", &metrics->jct_s);
    print_spread("waiting", &metrics->wait_s);
    printf("  %-18s %10.3f %10.3f %10.3f %10.3f %10.1f\n", "slowdown", metrics->slowdown.mean,
           metrics->slowdown.median, metrics->slowdown.p90, metrics->slowdown.p99,
           metrics->slowdown.max);
    printf("  makespan %s, GPUs allocated %.1f %%, doing useful work %.1f %%, free while somebody "
           "waits %.1f %%\n",
           span_text(metrics->makespan_s, text, sizeof text), 100.0 * metrics->allocated_ratio,
           100.0 * metrics->useful_ratio, 100.0 * metrics->idle_while_waiting);
    print_blocked(metrics);
    if (isfinite(metrics->fragmentation))
        printf("  of the GPUs free meanwhile, %.1f %% lie on nodes in part taken\n",
               100.0 * metrics->fragmentation);
    printf("  %llu preemptions, %llu changes of size, %llu failures of nodes that ended %llu runs; "
           "%.1f GPU-hours lost\n",
           (unsigned long long)metrics->n_preemptions, (unsigned long long)metrics->n_resizes,
           (unsigned long long)metrics->n_node_failures, (unsigned long long)metrics->n_failures,
           metrics->lost_gpu_hours);
    printf("  finish-time fairness: mean %.3f, worst %.2f; Jain's index of the queues %.3f\n",
           metrics->rho_mean, metrics->rho_max, metrics->jain);
    if (metrics->n_deadlines)
        printf("  deadlines: %llu of %llu missed\n", (unsigned long long)metrics->n_missed,
               (unsigned long long)metrics->n_deadlines);
    if (metrics->n_refused)
        printf("  %llu jobs can never run here (--json or --out name them)\n",
               (unsigned long long)metrics->n_refused);
}

static void print_row(const char *policy, const struct ty_pool_metrics *metrics, bool first)
{
    char jct[32], median[32], tail[32], wait[32];
    if (first)
        printf("\n%-14s %10s %10s %10s %10s %9s %9s %9s %8s\n", "policy", "mean JCT", "median",
               "P99", "mean wait", "slowdown", "allocated", "preempt", "worst rho");
    printf("%-14s %10s %10s %10s %10s %9.2f %8.1f%% %9llu %8.2f\n", policy,
           span_text(metrics->jct_s.mean, jct, sizeof jct),
           span_text(metrics->jct_s.median, median, sizeof median),
           span_text(metrics->jct_s.p99, tail, sizeof tail),
           span_text(metrics->wait_s.mean, wait, sizeof wait), metrics->slowdown.mean,
           100.0 * metrics->allocated_ratio, (unsigned long long)metrics->n_preemptions,
           metrics->rho_max);
}

/* A text field of CSV, quoted. */
static void write_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

static bool write_jobs(const char *path, const struct inputs *in,
                       const struct ty_pool_result *result)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        cli_warn("%s: %s", path, strerror(errno));
        return false;
    }
    fprintf(file, "job_id,queue,gpus,submit_s,start_s,end_s,jct_s,wait_s,preemptions,failures,"
                  "resizes,lost_gpu_s,refused\n");
    for (uint64_t i = 0; i < result->n_outcomes; i++) {
        const struct ty_pool_job *job = &in->trace.jobs[i];
        const struct ty_pool_outcome *outcome = &result->outcomes[i];
        write_text(file, in->trace.names[i]);
        putc(',', file);
        write_text(file, in->trace.queues[job->queue].name);
        fprintf(file, ",%u,%.9g,", job->gpus, job->submit_s);
        if (outcome->refused)
            fputs(",,,", file);
        else
            fprintf(file, "%.12g,%.12g,%.12g,%.12g", outcome->start_s, outcome->end_s,
                    outcome->end_s - job->submit_s,
                    outcome->end_s - job->submit_s - job->duration_s);
        fprintf(file, ",%u,%u,%u,%.9g,", outcome->preemptions, outcome->failures, outcome->resizes,
                outcome->lost_gpu_s);
        write_text(file, outcome->refused ? outcome->refused : "");
        putc('\n', file);
    }
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        cli_warn("%s could not be written", path);
        return false;
    }
    return true;
}

/* ---- the command -------------------------------------------------------------------------- */

static int explain(const struct cli_args *args, struct inputs *in)
{
    struct ty_error error = {0};
    struct ty_pool_verdict verdict;
    double at_s = NAN;
    uint64_t job = 0;
    while (job < in->trace.n_jobs && strcmp(in->trace.names[job], args->pool.explain) != 0)
        job++;
    if (job == in->trace.n_jobs) {
        cli_refuse(&error, "--explain", "the trace has no job \"%s\" that ran", args->pool.explain);
        return cli_fail(&error);
    }
    if (read_time("--at", args->pool.at, &at_s, &error) != TY_OK ||
        ty_pool_explain(&in->pool, in->trace.jobs, in->trace.n_jobs, job, at_s, &verdict, &error) !=
            TY_OK)
        return cli_fail(&error);
    if (args->json) {
        char *text = ty_pool_verdict_json(&in->trace, &verdict);
        fputs(text ? text : "", stdout);
        ty_text_free(text);
        return text ? CLI_OK : CLI_FAILED;
    }
    if (verdict.reason == TY_POOL_RUNS && !args->pool.at) {
        printf("job %s never waits: it starts when it comes.\n", args->pool.explain);
        return CLI_OK;
    }
    printf("job %s at %.9g s: %s.\n", args->pool.explain, verdict.time_s,
           ty_pool_reason_text(verdict.reason));
    if (*verdict.advice)
        printf("%s\n", verdict.advice);
    for (uint32_t i = 0; i < verdict.n_moves; i++)
        printf("  move job %s (%u GPUs)\n", in->trace.names[verdict.moves[i].job],
               verdict.moves[i].gpus);
    return CLI_OK;
}

static int replay(const struct cli_args *args, struct inputs *in, bool first, bool alone)
{
    struct ty_error error = {0};
    struct ty_pool_result result;
    if (ty_pool_run(&in->pool, in->trace.jobs, in->trace.n_jobs, &result, &error) != TY_OK)
        return cli_fail(&error);
    int status = CLI_OK;
    if (args->json) {
        char *text = ty_pool_json(&in->pool, &in->trace, &result);
        fputs(text ? text : "", stdout);
        status = text ? CLI_OK : CLI_FAILED;
        ty_text_free(text);
    } else if (alone) {
        print_metrics(in->pool.policy, &result.metrics);
    } else {
        print_row(in->pool.policy, &result.metrics, first);
    }
    if (status == CLI_OK && alone && args->out && !write_jobs(args->out, in, &result))
        status = CLI_FAILED;
    ty_pool_result_free(&result);
    return status;
}

static int run_pool(const struct cli_args *args, struct inputs *in)
{
    struct ty_error error = {0};
    const char *policies[MAX_POLICIES + 1];
    uint32_t n = 0;
    const char *asked = args->pool.policy ? args->pool.policy : "fifo";
    if (read_policies(asked, policies, &n, &error) != TY_OK ||
        read_inputs(args, in, &error) != TY_OK)
        return cli_fail(&error);
    const bool alone = n == 1;
    if (!alone && (args->out || args->json || args->pool.explain)) {
        cli_refuse(&error, "--policy", "--out, --json and --explain take one policy");
        return cli_fail(&error);
    }
    in->pool.policy = policies[0];
    if (args->pool.explain)
        return explain(args, in);
    if (!args->json)
        print_trace(in);
    int status = CLI_OK;
    for (uint32_t i = 0; i < n && status == CLI_OK; i++) {
        in->pool.policy = policies[i];
        status = replay(args, in, i == 0, alone);
    }
    return status;
}

int cmd_pool(struct cli_args *args)
{
    struct inputs in = {0};
    const int status = run_pool(args, &in);
    ty_trace_free(&in.trace);
    return status;
}
