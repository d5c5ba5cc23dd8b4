/* SPDX-License-Identifier: MIT
 * MLPerf Training logs: a JSON object behind ":::MLLOG" on each line.
 *
 *   {"key": "global_batch_size", "value": 16}
 *   {"key": "tracked_stats", "value": {"train_step_time": 0.386}, "metadata": {"step": 31.0}}
 *   {"key": "tracked_stats", "value": {"throughput": 5.878}, "metadata": {"step": 1536}}
 *
 *   {"key": "block_stop", "time_ms": 1759734660358, "metadata": {"samples_count": 1536}}
 *
 * throughput is samples/s, and the "step" beside it counts samples. A line with a step time but no
 * step is the mean of a block: it repeats what its lines said. The clock starts after a warm-up of
 * its own, so no line is one.
 */
#include "calibrate/log.h"
#include "models/spec/json.h"
#include <math.h>
#include <string.h>

static double number_of(const struct json_at *object, const char *key)
{
    struct json_at at;
    double value;
    if (!json_find(object, key, &at) || json_get_double(&at, -1e300, 1e300, &value, NULL) != TY_OK)
        return NAN;
    return value;
}

static void take_fact(struct log *log, const struct json_at *top, const char *key)
{
    static const struct {
        const char *key;
        enum log_fact fact;
    } numbers[] = {{"global_batch_size", LOG_GBS},
                   {"max_sequence_length", LOG_SEQ},
                   {"gradient_accumulation_steps", LOG_N_MICRO},
                   {"lora_rank", LOG_LORA_RANK}};
    static const struct {
        const char *key;
        enum log_word word;
    } words[] = {{"submission_benchmark", LOG_MODEL}, {"submission_platform", LOG_HARDWARE}};
    struct log_facts *facts = log_facts_now(log);
    struct json_at at;
    const double value = number_of(top, "value");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(key, numbers[i].key) == 0 && value >= 1.0)
            log_fact_set(facts, numbers[i].fact, value, LOG_LOGGED);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(key, words[i].key) == 0 && json_find(top, "value", &at))
            (void)!json_copy_text(&at, facts->word[words[i].word], sizeof facts->word[0], NULL);
}

static void take_stats(struct log *log, const struct log_line *line, const struct json_at *top)
{
    struct json_at value, metadata;
    if (!json_find(top, "value", &value) || !json_find(top, "metadata", &metadata))
        return;
    struct log_sample sample = log_sample_none(line);
    const double throughput = number_of(&value, "throughput");
    sample.time_s = number_of(top, "time_ms") * 1e-3;
    sample.iteration = number_of(&metadata, "step");
    sample.step_s = number_of(&value, "train_step_time");
    sample.gbs = log_fact_value(log, LOG_GBS);
    if (throughput > 0.0) {
        sample.samples_per_s = throughput;
        sample.step_s = sample.gbs / throughput;
        sample.step_origin = LOG_STEP_RATE;
        sample.iteration /= sample.gbs;
        sample.time_s = NAN; /* evaluation lies between */
        log->sampled_units_differ = true;
    }
    log->event_seen = false; /* blocks are timed without evaluation */
    if (isfinite(sample.step_s) && isfinite(sample.iteration))
        log_add(log, &sample);
}

/* Without tracked_stats a block tells its samples and, by its time stamps, their time. */
static void take_block(struct log *log, const struct log_line *line, const struct json_at *top,
                       bool stops)
{
    struct json_at metadata;
    struct log_sample sample = log_sample_none(line);
    const double time_s = number_of(top, "time_ms") * 1e-3;
    const double gbs = log_fact_value(log, LOG_GBS);
    const double samples =
        json_find(top, "metadata", &metadata) ? number_of(&metadata, "samples_count") : (double)NAN;
    const struct log_sample *start = &log->partial; /* tokens holds the count at its start */
    if (stops && log->has_partial) {
        const double steps = (samples - start->tokens) / gbs;
        sample.gbs = gbs;
        sample.iteration = samples / gbs;
        sample.step_s = (time_s - start->time_s) / steps;
        sample.step_origin = LOG_STEP_CLOCK;
        if (steps >= 1.0 && sample.step_s > 0.0)
            log_add_spare(log, &sample);
    }
    log->partial = sample;
    log->partial.time_s = time_s;
    log->partial.tokens = samples;
    log->has_partial = !stops;
}

bool log_take_mlperf(struct log *log, const struct log_line *line)
{
    const char *text = strstr(line->text, ":::MLLOG");
    if (!text)
        return false;
    struct json_document document;
    struct json_at key_at;
    const char *key;
    text += 8 + strspn(text + 8, " ");
    if (json_parse(text, strlen(text), "line", &document, NULL) != TY_OK)
        return true; /* a cut line of ours */
    log->warmed = true;
    log_framework_seen(log, "mlperf", 10, 0);
    if (json_find(&document.top, "key", &key_at) && json_get_text(&key_at, &key, NULL) == TY_OK) {
        if (strcmp(key, "tracked_stats") == 0)
            take_stats(log, line, &document.top);
        else if (strcmp(key, "block_start") == 0 || strcmp(key, "block_stop") == 0)
            take_block(log, line, &document.top, strcmp(key, "block_stop") == 0);
        else
            take_fact(log, &document.top, key);
    }
    json_free(&document);
    return true;
}
