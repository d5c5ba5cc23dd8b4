/* SPDX-License-Identifier: MIT
 * A run as a record: the JSON keys of docs/import.md, and a few lines for people. */
#include "calibrate/log.h"
#include "sim/error.h"
#include <math.h>
#include <string.h>

static const char *const origins[] = {"absent", "logged", "derived"};

/* What a prediction of the run needs; other facts are welcome, not missed. */
static const enum log_fact needed[] = {LOG_GPUS, LOG_TP,     LOG_PP,     LOG_MBS,  LOG_GBS,
                                       LOG_SEQ,  LOG_LAYERS, LOG_HIDDEN, LOG_HEADS};

static bool is_usable(const struct log_answer *answer)
{
    return answer->step_s > 0.0 || answer->gpu_tokens_per_s > 0.0;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_facts(struct json_writer *json, const struct log_facts *facts,
                        enum log_fact first, enum log_fact last)
{
    for (int i = (int)first; i <= (int)last; i++)
        if (log_fact_known(facts, (enum log_fact)i))
            json_number(json, log_fact_names[i], facts->value[i]);
}

static void write_words(struct json_writer *json, const struct log_facts *facts,
                        enum log_word first, enum log_word last)
{
    for (int i = (int)first; i <= (int)last; i++)
        if (*facts->word[i])
            json_text(json, log_word_names[i], facts->word[i]);
}

/* "plan" is a plan file; the sizes that such a file does not have stand in "layout". */
static void write_plan(struct json_writer *json, const struct log_facts *facts)
{
    json_object(json, "plan");
    write_facts(json, facts, LOG_GPUS, LOG_RECOMPUTE_LAYERS);
    write_words(json, facts, LOG_PRECISION, LOG_CUDA_GRAPH);
    json_close(json);
    json_object(json, "layout");
    write_facts(json, facts, LOG_DP, LOG_GPUS_PER_NODE);
    json_close(json);
    json_object(json, "model");
    write_words(json, facts, LOG_MODEL, LOG_TIED);
    write_facts(json, facts, LOG_LAYERS, LOG_LORA_RANK);
    json_close(json);
    write_words(json, facts, LOG_HARDWARE, LOG_HARDWARE);
    json_array(json, "derived");
    for (int i = 0; i < LOG_N_FACTS; i++)
        if (facts->origin[i] == LOG_DERIVED)
            json_text(json, NULL, log_fact_names[i]);
    json_close(json);
    json_array(json, "missing");
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!log_fact_known(facts, needed[i]))
            json_text(json, NULL, log_fact_names[needed[i]]);
    if (!*facts->word[LOG_PRECISION])
        json_text(json, NULL, "precision");
    json_close(json);
}

static void write_value(struct json_writer *json, const char *key, double value, bool derived)
{
    if (!isfinite(value))
        return;
    json_object(json, key);
    json_number(json, "value", value);
    json_text(json, "origin", origins[derived ? LOG_DERIVED : LOG_LOGGED]);
    json_close(json);
}

static void write_step_time(struct json_writer *json, const struct log_block *block)
{
    if (!isfinite(block->median_s))
        return;
    json_object(json, "step_time_s");
    json_number(json, "median", block->drifts ? (double)NAN : block->median_s);
    json_number(json, "mean", block->mean_s);
    json_number(json, "mean_with_dropped", block->mean_all_s);
    json_number(json, "mad", block->mad_s);
    json_number(json, "q1", block->q1_s);
    json_number(json, "q3", block->q3_s);
    json_number(json, "min", block->min_s);
    json_number(json, "max", block->max_s);
    json_text(json, "origin", log_step_names[block->step_origin]);
    json_close(json);
}

static void write_lines(struct json_writer *json, const struct log_block *block)
{
    json_object(json, "lines");
    json_count(json, "printed", block->n_lines);
    json_count(json, "kept", block->n_kept);
    json_count(json, "copies", block->n_copies);
    json_number(json, "window", block->window);
    json_number(json, "first_iteration", block->first_iteration);
    json_number(json, "last_iteration", block->last_iteration);
    json_object(json, "dropped");
    for (int i = LOG_KEPT + 1; i < LOG_N_DROPS; i++)
        if (block->n_dropped[i])
            json_count(json, log_drop_names[i], block->n_dropped[i]);
    json_close(json);
    json_close(json);
}

static void write_blocks(struct json_writer *json, const struct log_series *series)
{
    json_array(json, "blocks");
    for (uint32_t i = 0; i < series->n_blocks; i++) {
        const struct log_block *block = &series->blocks[i];
        json_object(json, NULL);
        json_number(json, "gbs", block->gbs);
        write_lines(json, block);
        write_step_time(json, block);
        json_close(json);
    }
    json_close(json);
}

static void write_memory(struct json_writer *json, const struct log_memory *memory)
{
    const struct {
        const char *key;
        double value;
    } kinds[] = {{"max_allocated_bytes", memory->allocated_bytes},
                 {"max_reserved_bytes", memory->reserved_bytes},
                 {"device_used_bytes", memory->device_bytes},
                 {"unspecified_bytes", memory->other_bytes},
                 {"rank", memory->rank}};
    json_object(json, "memory");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (isfinite(kinds[i].value))
            json_number(json, kinds[i].key, kinds[i].value);
    json_close(json);
}

static void write_flags(struct json_writer *json, const char *flags)
{
    json_object(json, "flags");
    for (const char *line = flags; *line;) {
        char name[32], text[256];
        const char *colon = strchr(line, ':');
        const char *end = strchr(line, '\n');
        if (!colon || !end || colon > end)
            break; /* the last flag was cut */
        text_format(name, sizeof name, "%.*s", (int)(colon - line), line);
        text_format(text, sizeof text, "%.*s", (int)(end - colon - 2), colon + 2);
        json_text(json, name, text);
        line = end + 1;
    }
    json_close(json);
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_facts(const struct log_facts *facts, char *out, size_t bytes)
{
    text_append(out, bytes, "  plan     ");
    const size_t before = strlen(out);
    for (int i = LOG_GPUS; i <= LOG_SEQ; i++)
        if (log_fact_known(facts, (enum log_fact)i))
            text_append(out, bytes, "%s %.0f%s  ", log_fact_names[i], facts->value[i],
                        facts->origin[i] == LOG_DERIVED ? "*" : "");
    static const char *const words[] = {"", "recompute ", "sharding "};
    for (int i = LOG_PRECISION; i <= LOG_SHARDING; i++)
        if (*facts->word[i])
            text_append(out, bytes, "%s%s  ", words[i], facts->word[i]);
    text_append(out, bytes, "%s%s\n", strlen(out) == before ? "nothing printed" : "",
                strchr(out + before, '*') ? "(*: by division)" : "");
    uint32_t n_missing = 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!log_fact_known(facts, needed[i]))
            text_append(out, bytes, "%s  %s", n_missing++ ? "" : "  missing",
                        log_fact_names[needed[i]]);
    text_append(out, bytes, n_missing ? "\n" : "");
}

static void print_steps(const struct log_block *block, char *out, size_t bytes)
{
    text_append(out, bytes, "  lines    %u of %u kept", block->n_kept, block->n_lines);
    for (int i = LOG_KEPT + 1; i < LOG_N_DROPS; i++)
        if (block->n_dropped[i])
            text_append(out, bytes, ", %s %u", log_drop_names[i], block->n_dropped[i]);
    text_append(out, bytes, "\n");
    if (isfinite(block->median_s))
        text_append(out, bytes, "  step     median %.6g s, mean %.6g s, MAD %.2g s (%s)\n",
                    block->median_s, block->mean_s, block->mad_s,
                    log_step_names[block->step_origin]);
}

static void print_memory(const struct log_memory *memory, char *out, size_t bytes)
{
    const struct {
        const char *name;
        double value;
    } kinds[] = {{"allocated", memory->allocated_bytes},
                 {"reserved", memory->reserved_bytes},
                 {"used on the device", memory->device_bytes},
                 {"of unknown kind", memory->other_bytes}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (isfinite(kinds[i].value))
            text_append(out, bytes, "  memory   %.2f GiB peak %s\n", kinds[i].value / 1073741824.0,
                        kinds[i].name);
}

static void print_run(const struct log *log, const struct log_run *run,
                      const struct log_series *series, const struct log_answer *answer, char *out,
                      size_t bytes)
{
    text_format(out, bytes, "run %u of %u (%s)%s\n", (unsigned)(run - log->runs + 1),
                (unsigned)log->n_runs, log->framework.name,
                is_usable(answer) ? "" : ": refused, no step time and no token rate");
    print_facts(&run->facts, out, bytes);
    if (series->n_blocks)
        print_steps(&series->blocks[series->main], out, bytes);
    if (isfinite(answer->gpu_tokens_per_s))
        text_append(out, bytes, "  rate     %.6g tokens/s/GPU (%s)\n", answer->gpu_tokens_per_s,
                    origins[answer->rate_derived ? LOG_DERIVED : LOG_LOGGED]);
    print_memory(&run->memory, out, bytes);
    for (const char *line = answer->flags; *line;) {
        const size_t n = strcspn(line, "\n");
        text_append(out, bytes, "  flag     %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

ty_status log_record(const struct log *log, const struct import_file *file,
                     const struct log_run *run, const struct log_series *series,
                     const struct log_answer *answer, struct ty_import *import,
                     struct ty_error *error)
{
    struct json_writer json;
    char text[4096];
    const bool usable = is_usable(answer);
    json_begin(&json);
    json_object(&json, NULL);
    json_text(&json, "kind", "training_run");
    json_text(&json, "file", file->path);
    json_text(&json, "framework", log->framework.name);
    json_count(&json, "run", (uint64_t)(run - log->runs) + 1);
    json_bool(&json, "usable", usable);
    if (!usable)
        json_text(&json, "refused", "neither a step time nor a token rate is printed");
    write_plan(&json, &run->facts);
    if (series->n_blocks) {
        const struct log_block *main = &series->blocks[series->main];
        write_lines(&json, main);
        write_step_time(&json, main);
        write_value(&json, "tokens_per_s_per_gpu", answer->gpu_tokens_per_s, answer->rate_derived);
        write_value(&json, "tokens_per_s", answer->tokens_per_s, answer->total_derived);
        write_value(&json, "tokens_per_step_per_gpu", answer->gpu_step_tokens, true);
        write_value(&json, "flop_per_s_per_gpu", main->gpu_flop_per_s, false);
    }
    write_memory(&json, &run->memory);
    if (series->n_blocks > 1)
        write_blocks(&json, series);
    write_flags(&json, answer->flags);
    json_close(&json);
    print_run(log, run, series, answer, text, sizeof text);
    return import_add(import, &json, text, usable, error);
}
