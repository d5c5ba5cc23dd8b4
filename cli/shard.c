/* SPDX-License-Identifier: MIT
 *
 * Which shard this process is. Schedulers number their processes in the environment:
 *
 *   TRAINYARD_SHARD                      i/n, as the option
 *   SLURM_ARRAY_TASK_ID, _MIN, _STEP     sbatch --array; their number is SLURM_ARRAY_TASK_COUNT
 *   OMPI_COMM_WORLD_RANK, _SIZE          Open MPI
 *   PMI_RANK, PMI_SIZE                   MPICH, Intel MPI, Cray
 *   SLURM_PROCID, SLURM_NTASKS           srun; last, as a batch script has them too
 *   JOB_COMPLETION_INDEX                 Kubernetes Indexed Job; it does not tell the number
 *
 * source: manual pages of sbatch and srun; Open MPI FAQ, "running"; MPICH's PMI-1; Kubernetes
 * documentation, "Indexed Job"
 */
#include "cli/study.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SHARDS 1000000u

/* Digits up to one of `ends`; false: none, or too many. */
static bool take_number(const char **at, uint32_t *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    const unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    *out = (uint32_t)value;
    return value <= MAX_SHARDS;
}

static bool variable(const char *name, uint32_t *out)
{
    const char *at = getenv(name);
    return at && take_number(&at, out) && *at == '\0';
}

static bool read_pair(const char *text, struct ty_share *out)
{
    return take_number(&text, &out->shard) && *text++ == '/' &&
           take_number(&text, &out->n_shards) && *text == '\0';
}

/* The array 5-20:5 has the tasks 5, 10, 15, 20: shards 0 to 3. */
static bool slurm_array(struct ty_share *out)
{
    uint32_t id, first = 0, step = 1;
    if (!variable("SLURM_ARRAY_TASK_ID", &id))
        return false;
    variable("SLURM_ARRAY_TASK_MIN", &first);
    variable("SLURM_ARRAY_TASK_STEP", &step);
    if (id < first || step == 0)
        return false;
    out->shard = (id - first) / step;
    variable("SLURM_ARRAY_TASK_COUNT", &out->n_shards);
    return true;
}

static bool from_environment(struct ty_share *out)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    const char *own = getenv("TRAINYARD_SHARD");
    if (own)
        return read_pair(own, out);
    if (slurm_array(out))
        return true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (variable(pairs[i][0], &out->shard)) {
            variable(pairs[i][1], &out->n_shards);
            return true;
        }
    return false;
}

static ty_status automatic(const char *number, struct ty_share *out, struct ty_error *error)
{
    if (!from_environment(out))
        return cli_refuse(error, "--shard auto",
                          "the environment has none of TRAINYARD_SHARD=i/n, SLURM_ARRAY_TASK_ID, "
                          "OMPI_COMM_WORLD_RANK, PMI_RANK, JOB_COMPLETION_INDEX, SLURM_PROCID");
    if (*number == '/') {
        number++;
        if (!take_number(&number, &out->n_shards) || *number)
            return cli_refuse(error, "--shard", "\"auto/%s\" is not auto/n", number);
    }
    if (!out->n_shards)
        return cli_refuse(
            error, "--shard auto",
            "the environment does not tell the number of shards; give --shard auto/n");
    return TY_OK;
}

ty_status cli_shard(const struct cli_args *args, struct ty_share *out, struct ty_error *error)
{
    const char *text = args->shard;
    if (!text)
        return TY_OK;
    struct ty_share share = {0};
    if (!args->db)
        return cli_refuse(error, "--shard", "needs --db FILE: the shards are merged from files");
    if (strcmp(text, "auto") == 0 || strncmp(text, "auto/", 5) == 0) {
        const ty_status status = automatic(text + 4, &share, error);
        if (status != TY_OK)
            return status;
    } else if (!read_pair(text, &share)) {
        return cli_refuse(error, "--shard",
                          "\"%s\" is not i/n with i from 0 to n - 1, auto or auto/n", text);
    }
    if (share.n_shards == 0 || share.shard >= share.n_shards)
        return cli_refuse(error, "--shard", "%u/%u: the first number runs from 0 to n - 1",
                          share.shard, share.n_shards);
    out->shard = share.shard;
    out->n_shards = share.n_shards;
    return TY_OK;
}

bool cli_shard_has(const struct ty_share *share, uint64_t id)
{
    return !share || !share->n_shards || ty_shard_of(id, share->n_shards) == share->shard;
}
