/* SPDX-License-Identifier: MIT
 * What the files of `trainyard split` share. */
#ifndef CLI_SPLIT_H
#define CLI_SPLIT_H

#include "cli/cli.h"

struct split_run {
    const struct cli_args *args;
    struct ty_cluster cluster;
    struct ty_split_list list;
    struct ty_split split;
    struct ty_split_job job[TY_SPLIT_MAX_JOBS];
    double *curve[TY_SPLIT_MAX_JOBS];         /* [n_units + 1] each */
    struct ty_plan *plans[TY_SPLIT_MAX_JOBS]; /* likewise; NULL: measured curve */
    uint32_t unit_gpus;
    struct ty_split_result result;
};

void split_print(const struct split_run *run);

#endif
