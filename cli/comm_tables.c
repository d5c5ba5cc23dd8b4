/* SPDX-License-Identifier: MIT
 * Tables of collectives for `trainyard comm`: the user's own, of a profile (--profile) or of a log
 * (--table), before the built-in ones. */
#include "cli/comm_tables.h"
#include <stdlib.h>
#include <string.h>

static bool replaced(const struct ty_collective_table *table,
                     const struct ty_collective_tables *own)
{
    for (uint32_t i = 0; i < own->n; i++)
        if (own->table[i].op == table->op && own->table[i].ranks == table->ranks &&
            strcmp(own->table[i].cluster->name, table->cluster->name) == 0)
            return true;
    return false;
}

/* Both lists in one; a built-in table of a group that the user has measured is left out. */
static ty_status join(struct comm_tables *tables, struct ty_error *error)
{
    const struct ty_collective_tables *own =
        tables->fitted ? &tables->fit.collectives : &tables->profile.collectives;
    const uint32_t n = own->n + tables->built_in.n;
    tables->joined = calloc((size_t)n + 1, sizeof *tables->joined);
    if (!tables->joined) {
        cli_refuse(error, "comm", "out of memory");
        return error->code = TY_ERR_NOMEM;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < own->n; i++)
        tables->joined[kept++] = own->table[i];
    for (uint32_t i = 0; i < tables->built_in.n; i++)
        if (!replaced(&tables->built_in.table[i], own))
            tables->joined[kept++] = tables->built_in.table[i];
    tables->all = (struct ty_collective_tables){kept, tables->joined};
    return TY_OK;
}

/* What the user has measured must be there, or the option would have no effect. */
static ty_status check(const struct cli_args *args, const struct comm_tables *tables,
                       struct ty_error *error)
{
    if (args->comm.table && tables->fit.collectives.n == 0)
        return cli_refuse(error, args->comm.table,
                          "holds no table of a collective that is usable "
                          "on this cluster");
    if (args->profile && !args->comm.table && tables->profile.collectives.n == 0)
        cli_warn("unused: --profile (it has no tables of collectives of this cluster)");
    return TY_OK;
}

ty_status comm_tables_load(const struct cli_args *args, const struct ty_cluster *cluster,
                           struct comm_tables *out, struct ty_error *error)
{
    *out = (struct comm_tables){.fitted = args->comm.table != NULL};
    ty_status status = ty_collective_tables_load(&out->built_in, error);
    if (status == TY_OK && args->profile)
        status = ty_profile_tables_load(args->profile, cluster, &out->profile, error);
    if (status == TY_OK && args->comm.table)
        status = ty_calibration_fit(&args->comm.table, 1, cluster, &out->fit, error);
    if (status == TY_OK)
        status = check(args, out, error);
    if (status == TY_OK)
        status = join(out, error);
    if (status == TY_ERR_IO)
        error->code = TY_ERR_INPUT; /* only inputs have been opened */
    return status;
}

void comm_tables_free(struct comm_tables *tables)
{
    free(tables->joined);
    ty_calibration_free(&tables->fit);
    ty_profile_tables_free(&tables->profile);
    ty_collective_tables_free(&tables->built_in);
}
