/* SPDX-License-Identifier: MIT */
#ifndef CLI_COMM_TABLES_H
#define CLI_COMM_TABLES_H

#include "cli/cli.h"

struct comm_tables {
    struct ty_collective_tables all; /* what the answer is made of */
    struct ty_collective_table *joined;
    struct ty_collective_tables built_in;
    struct ty_profile_tables profile;
    struct ty_calibration fit;
    bool fitted; /* --table goes before --profile */
};

/* Free with comm_tables_free, also after a failure. */
ty_status comm_tables_load(const struct cli_args *args, const struct ty_cluster *cluster,
                           struct comm_tables *out, struct ty_error *error);
void comm_tables_free(struct comm_tables *tables);

/* --algorithm: what was asked, by algorithms on the fabric. returns the exit status. */
int cli_comm_algorithms(const struct cli_args *args, const struct ty_comm *comm);

#endif
