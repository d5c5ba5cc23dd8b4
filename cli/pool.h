/* SPDX-License-Identifier: MIT
 * What the files of `trainyard pool` share. */
#ifndef CLI_POOL_H
#define CLI_POOL_H

#include "cli/cli.h"

enum { POOL_MAX_GROUPS = 64 };

struct pool_inputs {
    struct ty_pool pool;
    struct ty_cluster cluster;
    struct ty_values gpus; /* counts to replay; none: the nodes say it */
    struct ty_pool_nodes groups[POOL_MAX_GROUPS];
    struct ty_trace trace;
    struct pool_curve {
        struct ty_pool_size *sizes;
        uint32_t n;
    } * curves;                /* [list.n], with --curves */
    struct ty_split_list list; /* ... the jobs of that file */
    struct ty_pool_size **own; /* [n_own] sizes of single jobs */
    size_t n_own;
    /* with --db */
    ty_store *store;
    int64_t study_id;
    struct pool_log {
        struct ty_pool_event *events; /* [n] of the present replay */
        size_t n, capacity;
        bool out_of_memory;
    } log;
};

/* Gives the jobs that name a curve its sizes. */
ty_status pool_use_curves(const struct cli_args *args, struct pool_inputs *in,
                          struct ty_error *error);
void pool_free_curves(struct pool_inputs *in);
/* What was read, and what was left out of it. */
void pool_print_trace(const struct pool_inputs *in);
/* All measures of one replay, or one row of a comparison. */
void pool_print_metrics(const struct pool_inputs *in, const struct ty_pool_metrics *metrics);
void pool_print_row(const struct pool_inputs *in, const struct ty_pool_metrics *metrics,
                    bool first);
/* CSV of each job; false: could not be written, and said so. */
bool pool_write_jobs(const char *path, const struct pool_inputs *in,
                     const struct ty_pool_result *result);

#endif
