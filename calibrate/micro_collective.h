/* SPDX-License-Identifier: MIT
 *
 * Tables of collective operations, whichever tool printed them. The rows are gathered first,
 * because the operation, the number of ranks and the cold rows show only in the whole table.
 *
 *   algbw = S / t      busbw = f(op, n) algbw
 *   f = 2 (n-1)/n all-reduce;  (n-1)/n all-gather, reduce-scatter, all-to-all, gather, scatter;
 *       1 broadcast, reduce, send/recv                        (handbook 5.1)
 *
 * S: for all-gather, reduce-scatter and all-to-all the whole vector, n times what a rank holds.
 */
#ifndef CALIBRATE_MICRO_COLLECTIVE_H
#define CALIBRATE_MICRO_COLLECTIVE_H

#include "calibrate/micro.h"

struct collective_row {
    double size_bytes, time_s;
    double algbw_bytes_per_s, busbw_bytes_per_s; /* NAN: not printed */
    double time_half_digit_s, bw_half_digit_bytes_per_s;
    double n_wrong;                                /* NAN: not checked */
    double time_min_s, time_max_s, time_p99_s, cv; /* over iterations; NAN: not printed */
    double root;                                   /* NAN: no such column */
    const char *dtype, *redop;                     /* redop "": none */
    const char *rejected;
    uint32_t line, flags;
    bool in_place;
};

struct collective_table {
    struct record_list *list;
    const char *tool, *path;
    const char *op;        /* NULL: to be found out */
    uint32_t ranks, nodes; /* 0: not known */
    uint32_t flags;        /* for every row */
    struct record_fields stamp;
    struct collective_row *row;
    size_t n, capacity;
};

/* Our name of an operation that `text` starts with ("all_reduce", "alltoall"), or NULL. */
const char *collective_op_named(const char *text);
/* A name that lasts: nccl's "float" is fp32, "half" fp16; others as printed. */
const char *collective_dtype(struct record_list *list, const char *word);
void collective_row_init(struct collective_row *row);
void collective_add(struct collective_table *table, const struct collective_row *row);
/* Finds out what is missing, checks the rows, adds their records and empties the table: rows, op,
 * ranks, flags and stamp. */
void collective_finish(struct collective_table *table);
void collective_free(struct collective_table *table);

#endif
