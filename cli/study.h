/* SPDX-License-Identifier: MIT
 *
 * What commands that fill a database share: the study of --db, --resume and --shard, and the ends
 * of the process that must not lose it.
 */
#ifndef CLI_STUDY_H
#define CLI_STUDY_H

#include "cli/cli.h"
#include "include/trainyard_study.h"

struct cli_study {
    ty_store *store; /* NULL without --db */
    int64_t id;
    struct ty_share share; /* shard of --shard, plans known with --resume */
    char path[256];        /* of the file, {shard} filled in */
    double committed_s;    /* clock at the last commit by time */
};

/* Opens --db and begins a study, or with --resume goes on with it. details: lines of what else
 * decides the rows beside the inputs, the plan, its lists and the options; may be "". Close it even
 * after a failure. returns TY_OK, TY_ERR_INPUT, TY_ERR_NOMEM, TY_ERR_STORE, TY_ERR_IO. */
ty_status cli_study_open(const struct cli_args *args, const struct cli_inputs *inputs,
                         const char *details, struct cli_study *out, struct ty_error *error);
/* Stores a score that is not known; commits every second. p_faster: as of ty_store_add_score. */
ty_status cli_study_add(struct cli_study *study, const struct ty_score *score, double p_faster,
                        struct ty_error *error);
void cli_study_close(struct cli_study *study);
/* One of several: rows of the others are missing. */
bool cli_study_is_shard(const struct cli_study *study);

/* --shard "i/n", "auto" or "auto/n": from TRAINYARD_SHARD, a Slurm array, MPI, srun or a Kubernetes
 * index. n_shards stays 0 without the option. */
ty_status cli_shard(const struct cli_args *args, struct ty_share *out, struct ty_error *error);
/* Is a plan or point of the shard? share NULL: all are. */
bool cli_shard_has(const struct ty_share *share, uint64_t id);

/* From here on SIGINT and SIGTERM ask the command to stop; the second one kills as usual. */
void cli_interrupt_catch(void);
bool cli_interrupted(void);
/* Says what was kept and ends as the signal would have: 128 + its number. */
int cli_interrupt_status(const struct cli_study *study);

#endif
