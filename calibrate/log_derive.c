/* SPDX-License-Identifier: MIT
 * What follows from a run by exact division, and what contradicts it.
 *
 *   tokens of a step on one GPU = rate * step = gbs * seq / gpus = mbs * seq * n_micro / (tp pp cp)
 *   gpus = tp * pp * cp * dp            gbs = dp * mbs * n_micro            seq = tokens / gbs
 *
 * A quotient of printed numbers is known to their rounding alone; it is taken as the whole number
 * with the most factors of two inside that range, since sizes are made that way: when it is the
 * only whole number, or when a range so narrow would hold one so even by chance at most once in
 * four. Otherwise there is no value. Derived values are marked, missing ones stay missing.
 */
#include "calibrate/log.h"
#include "sim/error.h"
#include <math.h>
#include <string.h>

#define PRINTED   0.003 /* relative: two rounded figures of three to five digits */
#define COARSE    0.015 /* running averages, bars */
#define DISAGREE  0.02
#define BY_CHANCE 0.25
#define COARSE_RATE                                                                                \
    0.01 /* a rate rounded more than this is replaced by gbs * seq / step / gpus                   \
          */

/* The whole number in x (1 +- tolerance) with the most factors of two; NAN: none, or by chance. */
static double whole_near(double x, double tolerance)
{
    const double low = ceil(x * (1.0 - tolerance));
    const double high = floor(x * (1.0 + tolerance));
    if (!(low >= 1.0) || !(high < 1e15) || low > high)
        return NAN;
    double best = low;
    double best_unit = 1.0;
    for (double unit = 1.0; ceil(low / unit) * unit <= high; unit *= 2.0) {
        best = ceil(low / unit) * unit;
        best_unit = unit;
    }
    const bool even = 2.0 * x * tolerance <= BY_CHANCE * best_unit;
    return low == high || even ? best : (double)NAN;
}

static double get(const struct log_facts *facts, enum log_fact fact)
{
    return log_fact_known(facts, fact) ? facts->value[fact] : (double)NAN;
}

static double one_if_absent(const struct log_facts *facts, enum log_fact fact)
{
    return log_fact_known(facts, fact) ? facts->value[fact] : 1.0;
}

static void derive(struct log_facts *facts, enum log_fact fact, double value)
{
    if (!log_fact_known(facts, fact) && value >= 1.0 && value < 1e15)
        log_fact_set(facts, fact, value, LOG_DERIVED);
}

/* Quotients of sizes must be whole to count. */
static void derive_exact(struct log_facts *facts, enum log_fact fact, double value)
{
    if (value == floor(value))
        derive(facts, fact, value);
}

/* tp * pp * cp, sizes that older programs lack counting as 1; NAN without tp or pp. */
static double model_ranks(const struct log_facts *facts)
{
    if (log_fact_known(facts, LOG_MP))
        return facts->value[LOG_MP] * one_if_absent(facts, LOG_CP);
    return get(facts, LOG_TP) * get(facts, LOG_PP) * one_if_absent(facts, LOG_CP);
}

double log_gpus(const struct log_facts *facts)
{
    if (log_fact_known(facts, LOG_GPUS))
        return facts->value[LOG_GPUS];
    return model_ranks(facts) * get(facts, LOG_DP);
}

/* ---- flags -------------------------------------------------------------------------------- */

#define FLAG(answer, ...) text_append((answer)->flags, sizeof(answer)->flags, __VA_ARGS__)

static void flag_series(const struct log *log, const struct log_series *series,
                        struct log_answer *out)
{
    const struct log_block *main = &series->blocks[series->main];
    if (series->n_blocks + series->n_more_blocks > 1)
        FLAG(out, "split: %u blocks (batch size or long gap), not pooled\n",
             series->n_blocks + series->n_more_blocks);
    if (main->drifts)
        FLAG(out, "not_stationary: the step time moves from %.6g to %.6g s, no single median\n",
             main->min_s, main->max_s);
    if (main->only_warm_up)
        FLAG(out, "only_warm_up: every line is one that warm-up slows, low confidence\n");
    else if (main->n_kept < 3)
        FLAG(out, "few_lines: %u, low confidence\n", main->n_kept);
    if (main->average)
        FLAG(out, "average: mean since the start, start-up included, low confidence\n");
    if (main->skipped_kept)
        FLAG(out, "skipped_kept: optimizer steps were skipped, at the pace of the others\n");
    if (main->mean_s > 1.05 * main->median_s)
        FLAG(out, "slow_steps: the mean is %.1f %% above the median\n",
             100.0 * (main->mean_s / main->median_s - 1.0));
    if (main->mean_all_s > 1.05 * main->mean_s)
        FLAG(out, "dropped_time: with dropped slow steps the mean is %.6g s\n", main->mean_all_s);
    if (fabs(main->clock_ratio - 1.0) > DISAGREE)
        FLAG(out, "clock: time stamps give %.3f x the printed step time\n", main->clock_ratio);
    if (main->tokens_vary)
        FLAG(out, "dynamic_batch: the tokens of a step vary, there is no batch size\n");
    if (log->sampled_units_differ)
        FLAG(out, "step_unit: the step counter counts samples\n");
}

/* ---- derivation --------------------------------------------------------------------------- */

/* Programs print the defaults of what is off: one key/value head without grouped queries, two
 * experts per token without experts. */
static void drop_unused(struct log_facts *facts)
{
    if (strcmp(facts->word[LOG_GQA], "off") == 0)
        log_fact_set(facts, LOG_KV_HEADS, get(facts, LOG_HEADS),
                     log_fact_known(facts, LOG_HEADS) ? LOG_LOGGED : LOG_ABSENT);
    if (!(get(facts, LOG_EXPERTS) > 1.0)) {
        facts->origin[LOG_TOP_K] = facts->origin[LOG_EXPERT_FFN] = LOG_ABSENT;
        *facts->word[LOG_DISPATCHER] = '\0';
    }
    if (!(get(facts, LOG_CP) > 1.0))
        *facts->word[LOG_CP_SCHEME] = '\0';
    if (strcmp(facts->word[LOG_RECOMPUTE], "full") != 0 || !*facts->word[LOG_METHOD])
        facts->origin[LOG_RECOMPUTE_LAYERS] = LOG_ABSENT; /* a uniform grouping, or unused */
}

/* A size that no plan file may have was none. */
static void drop_illegal(struct log_facts *facts)
{
    size_t n = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_PLAN, &n);
    for (int fact = LOG_GPUS; fact <= LOG_RECOMPUTE_LAYERS; fact++)
        for (size_t i = 0; i < n; i++)
            if (strcmp(fields[i].path, log_fact_names[fact]) == 0 &&
                !(facts->value[fact] >= fields[i].min && facts->value[fact] <= fields[i].max &&
                  facts->value[fact] == floor(facts->value[fact])))
                facts->origin[fact] = LOG_ABSENT;
}

/* Sizes from sizes. */
static void derive_sizes(struct log_facts *facts)
{
    const double ranks = model_ranks(facts);
    derive_exact(facts, LOG_GPUS, ranks * get(facts, LOG_DP));
    derive_exact(facts, LOG_GPUS, get(facts, LOG_NODES) * get(facts, LOG_GPUS_PER_NODE));
    derive_exact(facts, LOG_DP, get(facts, LOG_GPUS) / ranks);
    derive_exact(facts, LOG_GBS,
                 get(facts, LOG_DP) * get(facts, LOG_MBS) * get(facts, LOG_N_MICRO));
    const double per_micro = get(facts, LOG_GBS) / get(facts, LOG_N_MICRO); /* dp * mbs */
    if (per_micro == 1.0) {
        derive(facts, LOG_DP, 1.0);
        derive(facts, LOG_MBS, 1.0);
    }
    derive_exact(facts, LOG_DP, per_micro / get(facts, LOG_MBS));
    derive_exact(facts, LOG_MBS, per_micro / get(facts, LOG_DP));
    derive_exact(facts, LOG_N_MICRO,
                 get(facts, LOG_GBS) / (get(facts, LOG_DP) * get(facts, LOG_MBS)));
    derive_exact(facts, LOG_GPUS, ranks * get(facts, LOG_DP));
}

static double tolerance(const struct log_block *main)
{
    return main->average ? COARSE : fmax(PRINTED, main->rate_error);
}

/* Sizes from times and rates. */
static void derive_from_rates(struct log_facts *facts, const struct log_block *main,
                              const struct log_answer *answer)
{
    const double step_s = answer->step_s;
    const double near = isfinite(main->rate_error) ? tolerance(main) : PRINTED;
    derive(facts, LOG_GBS,
           whole_near(main->samples_per_s * step_s,
                      main->step_origin == LOG_STEP_CLOCK ? COARSE : PRINTED));
    derive(facts, LOG_GPUS,
           whole_near(main->tokens_per_s / main->gpu_tokens_per_s, PRINTED + near));
    derive(facts, LOG_GPUS, whole_near(main->tokens / (step_s * main->gpu_tokens_per_s), near));
    derive(facts, LOG_GPUS,
           whole_near(get(facts, LOG_GBS) * get(facts, LOG_SEQ) / (step_s * main->gpu_tokens_per_s),
                      near));
    const double tokens =
        isfinite(main->tokens) ? main->tokens : answer->gpu_step_tokens * get(facts, LOG_GPUS);
    derive(facts, LOG_SEQ, whole_near(tokens / get(facts, LOG_GBS), 1e-9));
    derive(facts, LOG_SEQ, whole_near(main->tokens_per_s * step_s / get(facts, LOG_GBS), 0.006));
}

/* mbs from the tokens of a step on one GPU; a configuration that says otherwise is not this run's.
 * Only where no batch of the whole job is printed. */
static void check_micro_batch(struct log_facts *facts, struct log_answer *answer)
{
    const double ranks = log_fact_known(facts, LOG_TP) && log_fact_known(facts, LOG_PP)
                             ? model_ranks(facts)
                             : (double)NAN;
    const double sequences = answer->gpu_step_tokens * ranks / get(facts, LOG_SEQ);
    const double mbs = get(facts, LOG_MBS);
    if (log_fact_known(facts, LOG_GBS) || !(sequences >= 1.0) || sequences != floor(sequences))
        return;
    const double micros = sequences / mbs;
    if (isfinite(mbs) && !(micros >= 1.0 && micros == floor(micros))) {
        FLAG(answer,
             "contradiction: the log has %g sequences a step and GPU, its configuration "
             "mbs %g; the log is taken\n",
             sequences, mbs);
        log_fact_set(facts, LOG_MBS, sequences, LOG_DERIVED);
    }
}

static void check_rates(const struct log *log, const struct log_facts *facts,
                        const struct log_block *main, struct log_answer *answer)
{
    const double gbs = get(facts, LOG_GBS);
    const double by_samples = main->samples_per_s * answer->step_s / gbs;
    if (fabs(by_samples - 1.0) > DISAGREE && !main->average)
        FLAG(answer,
             "samples_per_s: the log's %.4g samples/s is %.3f x batch over step; not used\n",
             main->samples_per_s, by_samples);
    const double by_rate = main->gpu_tokens_per_s * answer->step_s * get(facts, LOG_GPUS) /
                           (gbs * get(facts, LOG_SEQ));
    if (fabs(by_rate - 1.0) > fmax(DISAGREE, 2.0 * main->rate_error))
        FLAG(answer, "tokens_per_s: the log's rate is %.3f x gbs * seq over step\n", by_rate);
    for (size_t i = log->n_spare; i-- > 0 && log->n_samples;) {
        const double spare = log->spare[i].samples_per_s * answer->step_s / gbs;
        if (isfinite(spare) && fabs(spare - 1.0) > DISAGREE) {
            FLAG(answer,
                 "deepspeed_timer: its %.4g samples/s is %.2f x batch over step; not used\n",
                 log->spare[i].samples_per_s, spare);
            return;
        }
    }
}

static void answer_rates(const struct log_facts *facts, const struct log_block *main,
                         struct log_answer *answer)
{
    const double gpus = get(facts, LOG_GPUS);
    const double tokens =
        isfinite(main->tokens) ? main->tokens : get(facts, LOG_GBS) * get(facts, LOG_SEQ);
    const double derived = tokens / answer->step_s / gpus;
    answer->gpu_tokens_per_s = main->gpu_tokens_per_s;
    if (isfinite(derived) && !(main->rate_error <= COARSE_RATE)) {
        answer->gpu_tokens_per_s = derived;
        answer->rate_derived = true;
    }
    answer->tokens_per_s = main->tokens_per_s;
    if (isnan(answer->tokens_per_s)) {
        answer->total_derived = true;
        answer->tokens_per_s = tokens / answer->step_s;
        if (isnan(answer->tokens_per_s))
            answer->tokens_per_s = answer->gpu_tokens_per_s * gpus;
    }
}

void log_derive(const struct log *log, struct log_run *run, const struct log_series *series,
                struct log_answer *out)
{
    struct log_facts *facts = &run->facts;
    *out = (struct log_answer){
        .step_s = NAN, .gpu_tokens_per_s = NAN, .tokens_per_s = NAN, .gpu_step_tokens = NAN};
    drop_unused(facts);
    if (series->n_blocks == 0) {
        derive_sizes(facts);
        drop_illegal(facts);
        return;
    }
    const struct log_block *main = &series->blocks[series->main];
    out->step_s = main->median_s;
    if (isfinite(main->gbs)) { /* what the line says is what the step was */
        const double gbs = main->average ? whole_near(main->gbs, PRINTED) : main->gbs;
        log_fact_set(facts, LOG_GBS, gbs, main->average ? LOG_DERIVED : LOG_LOGGED);
    }
    flag_series(log, series, out);
    derive_sizes(facts);
    if (!main->tokens_vary)
        out->gpu_step_tokens =
            whole_near(main->gpu_tokens_per_s * main->median_s, fmax(PRINTED, main->rate_error));
    derive_from_rates(facts, main, out);
    const double gpus = main->tokens_per_s / main->gpu_tokens_per_s;
    if (!log_fact_known(facts, LOG_GPUS) && gpus >= 1.0)
        FLAG(out, "gpus_about: %.0f by total over single rate, too rounded to tell\n", gpus);
    derive_sizes(facts);
    check_micro_batch(facts, out);
    if (!log_fact_known(facts, LOG_GPUS) && log_fact_known(facts, LOG_GPUS_PER_NODE)) {
        log_fact_set(facts, LOG_GPUS, facts->value[LOG_GPUS_PER_NODE], LOG_DERIVED);
        FLAG(out, "one_node: GPUs taken from the processes of a node; the number of nodes is not "
                  "in the log\n");
        derive_sizes(facts);
    }
    drop_illegal(facts);
    check_rates(log, facts, main, out);
    answer_rates(facts, main, out);
}
