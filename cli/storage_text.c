/* SPDX-License-Identifier: MIT
 * Input pipeline, checkpoints and the run as text. */
#include "cli/cli.h"
#include <math.h>

static const char *rate(double bytes_per_s, char out[40])
{
    return ty_quantity_text(bytes_per_s, TY_UNIT_BYTES_PER_S, out, 40);
}

/* Times of a run: hours from two on. */
static const char *long_text(double seconds, char out[40])
{
    if (seconds < 7200.0)
        return cli_time_text(seconds, out, 40);
    snprintf(out, 40, "%.1f h", seconds / 3600.0);
    return out;
}

/* ---- input -------------------------------------------------------------------------------- */

static void print_stages(const struct ty_input_report *input)
{
    const char *before = "";
    printf("  %-14s ", "a batch takes");
    for (enum ty_input_stage i = 0; i < TY_N_INPUT_STAGES; i++) {
        char text[40];
        printf("%s%s %s", before, ty_input_stage_name(i),
               cli_time_text(input->stage_s[i], text, sizeof text));
        before = ", ";
    }
    putchar('\n');
}

static void print_stall(const struct ty_input_report *input)
{
    char stall[40], memory[40], first[40];
    printf("  %-14s %s a step, %.1f %%", "stall",
           cli_time_text(input->stall_s, stall, sizeof stall), 100.0 * input->stall_ratio);
    if (input->limit < TY_N_INPUT_STAGES)
        printf(", by %s; %.1f %% with preparation free, %.1f %% with all samples in memory",
               ty_input_stage_name((enum ty_input_stage)input->limit),
               100.0 * input->fetch_stall_ratio, 100.0 * input->prepare_stall_ratio);
    if (input->stall_s > 0.0)
        printf("\n  %-14s of storage: %+.1f %% tokens/s, of workers: %+.1f %%", "10 % more",
               input->storage_gain_pct, input->workers_gain_pct);
    printf("\n  %-14s %s of host memory a node; the first batch after %s\n", "prefetch",
           cli_bytes_text(input->host_bytes_per_node, memory, sizeof memory),
           cli_time_text(input->first_batch_s, first, sizeof first));
}

/* The inverse, each line with what limits it. */
static void print_need(const struct ty_input_report *input)
{
    char a[40], b[40], c[40];
    printf("  for a stall below %g %%\n", 100.0 * input->stall_target);
    printf("    %-12s %.0f per GPU, each %s a sample; %g cores of a GPU are%s enough\n", "workers",
           input->need_workers, cli_time_text(input->decode_s, a, sizeof a), input->cores,
           input->need_workers > input->cores ? " not" : "");
    printf("    %-12s %s a node, %s in total; %s can give %s a node: %s\n", "reads",
           rate(input->need_node_bytes_per_s, a), rate(input->need_total_bytes_per_s, b),
           input->can_tier, rate(input->can_node_bytes_per_s, c), input->can_limit);
    printf("    %-12s %.4g/s a node, %.4g/s in total; at that rate %s can serve %.4g/s\n",
           "requests", input->need_node_ops_per_s, input->need_total_ops_per_s, input->can_tier,
           input->can_node_ops_per_s);
    if (isfinite(input->need_reads_in_flight))
        printf("    %-12s %.4g reads of a node hide the latency\n", "in flight",
               fmax(1.0, ceil(input->need_reads_in_flight * (1.0 - 1e-12))));
    else
        printf("    %-12s no number of them is enough\n", "in flight");
    printf("    %-12s %s to each GPU of %s\n", "copies", rate(input->need_copy_bytes_per_s, a),
           rate(input->can_copy_bytes_per_s, b));
    printf("    %-12s %.0f a node could be fed\n", "GPUs", input->max_gpus_per_node);
}

static void print_input(const struct ty_input_report *input)
{
    char size[40], read[40];
    printf("\ninput: %.4g samples of %s a step and GPU, %.4g/s in all; %u workers, prefetch %g\n",
           input->samples, ty_quantity_text(input->sample_bytes, TY_UNIT_BYTES, size, sizeof size),
           input->samples_per_s, input->workers, input->prefetch);
    printf("  %-14s %s a node, set by %s of %s", "reads", rate(input->read_bytes_per_s, read),
           input->read_limit, input->read_tier);
    if (input->hit_ratio > 0.0)
        printf("; caches serve %.1f %%", 100.0 * input->hit_ratio);
    putchar('\n');
    print_stages(input);
    print_stall(input);
    print_need(input);
}

/* ---- checkpoints and the run -------------------------------------------------------------- */

static void print_save(const struct ty_save_report *save)
{
    char a[40], b[40], c[40], d[40];
    printf("\ncheckpoint: %s, %g bytes per parameter, to %s\n",
           cli_bytes_text(save->bytes, a, sizeof a), save->bytes_per_param, save->tier);
    printf("  %-14s training stands still for %s: copy %s, write %s", "save",
           cli_time_text(save->blocking_s, a, sizeof a), cli_time_text(save->copy_s, b, sizeof b),
           cli_time_text(save->write_s, c, sizeof c));
    printf(" (%s a node, set by %s)\n", rate(save->write_bytes_per_s, d), save->limit);
    if (save->drain_s > 0.0)
        printf("  %-14s %s in the background from %s of host memory a node\n", "drain",
               cli_time_text(save->drain_s, a, sizeof a),
               cli_bytes_text(save->host_bytes_per_node, b, sizeof b));
    printf("  %-14s %s or %.0f steps: %s a step", "every", long_text(save->every_s, a),
           save->n_steps, cli_time_text(save->step_s, b, sizeof b));
    if (isfinite(save->best_s))
        printf("; best %s, sqrt(2 M C) %s", long_text(save->best_s, c),
               long_text(save->young_daly_s, d));
    printf("\n  %-14s %s to read it back\n", "restore",
           cli_time_text(save->restore_s, a, sizeof a));
}

bool cli_forecast(const struct ty_prediction *p, const struct cli_inputs *inputs,
                  struct ty_forecast *out, struct ty_error *error)
{
    const uint32_t node = inputs->cluster.gpus_per_node ? inputs->cluster.gpus_per_node : 8;
    if (!isfinite(p->step_time_s) || !(inputs->goal.failures || isfinite(inputs->goal.tokens)))
        return false;
    return ty_forecast_of(p, inputs->goal.failures, node, inputs->goal.tokens, out, error) == TY_OK;
}

static void print_run(const struct ty_prediction *p, const struct cli_inputs *inputs)
{
    struct ty_forecast run;
    struct ty_error error = {0};
    char text[40], every[40];
    if (!cli_forecast(p, inputs, &run, &error)) {
        if (error.code != TY_OK)
            printf("\nrun: %s: %s\n", error.where, error.text);
        return;
    }
    printf("\nrun: %.1f %% of the time advances the job", 100.0 * run.goodput.useful_ratio);
    printf(", %s tokens/s\n", cli_count_text(run.tokens_per_s, text, sizeof text));
    if (run.goodput.stretch_ratio > 1.0)
        printf("  %-14s a step takes %.2f %% longer, for its slowest node\n", "stragglers",
               100.0 * (run.goodput.stretch_ratio - 1.0));
    if (isfinite(run.goodput.mtbf_s))
        printf("  %-14s every %s; a checkpoint every %s; %u spare nodes\n", "failures",
               long_text(run.goodput.mtbf_s, text), long_text(run.goodput.interval_s, every),
               run.goodput.spares);
    if (isfinite(run.time_s[TY_P50]))
        printf("  %-14s %.2f days for %.4g tokens; 10 %% of runs below %.2f, 90 %% below %.2f\n",
               "time", run.time_s[TY_P50] / 86400.0, inputs->goal.tokens,
               run.time_s[TY_P10] / 86400.0, run.time_s[TY_P90] / 86400.0);
}

void cli_print_storage(const struct ty_prediction *p, const struct cli_inputs *inputs)
{
    if (p->storage && p->storage->has_input)
        print_input(&p->storage->input);
    if (p->storage && p->storage->has_checkpoint)
        print_save(&p->storage->checkpoint);
    if (p->storage && isfinite(p->storage->money_per_month))
        printf("\nstorage: %.4g a month for the data set, its caches and one checkpoint\n",
               p->storage->money_per_month);
    print_run(p, inputs);
}
