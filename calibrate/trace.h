/* SPDX-License-Identifier: MIT
 * What the readers of job traces share: a builder that takes jobs one by one. */
#ifndef CALIBRATE_TRACE_H
#define CALIBRATE_TRACE_H

#include "include/trainyard_tools.h"
#include "sim/arena.h"

struct trace_builder {
    const char *path, *only; /* only: the queue asked for, or NULL */
    struct ty_trace trace;
    struct arena *arena; /* texts; becomes trace.memory */
    size_t jobs_capacity, names_capacity, queues_capacity;
    double *waits; /* [n_waits] recorded between submission and start */
    uint64_t n_waits;
    size_t waits_capacity;
    double wait_s; /* of the row in work; NAN: not recorded */
    uint64_t line;
};

/* Adds a job; duration_s, submit_s and gpus are set. false: out of memory or over 65536 queues. */
bool trace_add(struct trace_builder *builder, const char *name, const char *queue,
               const struct ty_pool_job *job);
/* Counts a row that is left out. */
void trace_skip(struct trace_builder *builder, enum ty_trace_note why);

/* Seconds of a number, or of "2023-03-01 00:23:58" with 'T', fractions, "Z" or "+08:00"; NAN for
 * "", None, Unknown and the like; *bad for anything else. *dated is set for a date. */
double trace_time_s(const char *text, bool *dated, bool *bad);
/* A number; NAN for a text that stands for none; *bad for anything else. */
double trace_number(const char *text, bool *bad);

ty_status trace_read_table(struct trace_builder *builder, const char *format,
                           struct ty_error *error);
ty_status trace_read_philly(struct trace_builder *builder, struct ty_error *error);
const char *trace_table_format(size_t index);
/* The first byte of a file that is no blank; 0 when there is none. */
ty_status trace_first_byte(const char *path, char *out, struct ty_error *error);

#endif
