/* SPDX-License-Identifier: MIT
 * What `trainyard pool` prints: the trace, measures of one replay or a row of many, times of jobs.
 */
#include "cli/pool.h"
#include <errno.h>
#include <math.h>
#include <string.h>

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

static double count_gpus(const struct pool_inputs *in, double *nodes)
{
    double gpus = 0.0;
    *nodes = 0.0;
    for (uint32_t i = 0; i < in->pool.n_groups; i++) {
        gpus += (double)in->groups[i].n_nodes * in->groups[i].gpus_per_node;
        *nodes += in->groups[i].n_nodes;
    }
    return gpus;
}

void pool_print_trace(const struct pool_inputs *in)
{
    char mean[32], median[32], tail[32];
    const struct ty_pool_spread *recorded = &in->trace.recorded_wait_s;
    printf("%llu jobs (%s)\n", (unsigned long long)in->trace.n_jobs, in->trace.format);
    for (int note = TY_TRACE_ROWS + 1; note < TY_N_TRACE_NOTES; note++) {
        const char *text;
        if (in->trace.notes[note] && ty_trace_note(note, &text))
            printf("  %8llu %s\n", (unsigned long long)in->trace.notes[note], text);
    }
    if (in->trace.bad_line)
        printf("           first bad line: %llu\n", (unsigned long long)in->trace.bad_line);
    if (isfinite(recorded->mean))
        printf("  recorded wait for the first start: mean %s, median %s, P99 %s\n",
               span_text(recorded->mean, mean, sizeof mean),
               span_text(recorded->median, median, sizeof median),
               span_text(recorded->p99, tail, sizeof tail));
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

void pool_print_metrics(const struct pool_inputs *in, const struct ty_pool_metrics *metrics)
{
    char text[32];
    double nodes;
    const char *policy = in->pool.policy;
    const double gpus = count_gpus(in, &nodes);
    printf(nodes > 1.0 ? "%.0f GPUs of %.0f nodes\n" : "%.0f GPUs, any of which serves any job\n",
           gpus, nodes);
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

void pool_print_row(const struct pool_inputs *in, const struct ty_pool_metrics *metrics, bool first)
{
    char jct[32], median[32], tail[32], wait[32];
    double nodes;
    if (first)
        printf("\n%-14s %7s %10s %10s %10s %10s %9s %9s %9s %9s\n", "policy", "GPUs", "mean JCT",
               "median", "P99", "mean wait", "slowdown", "allocated", "preempt", "worst rho");
    printf("%-14s %7.0f %10s %10s %10s %10s %9.2f %8.1f%% %9llu %9.2f\n", in->pool.policy,
           count_gpus(in, &nodes), span_text(metrics->jct_s.mean, jct, sizeof jct),
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

bool pool_write_jobs(const char *path, const struct pool_inputs *in,
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
