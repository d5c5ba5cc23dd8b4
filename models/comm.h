/* SPDX-License-Identifier: MIT
 *
 * Times of single collectives for `trainyard comm`: measured tables where there are any, and a
 * prior (NCCL's model with the ramp and the overheads it omits) that scales them to other groups.
 */
#ifndef MODELS_COMM_H
#define MODELS_COMM_H

#include "include/trainyard_comm.h"
#include "models/nccl_model.h"

#include <assert.h>
#include <math.h>

static_assert((int)TY_SEND_RECV == (int)COLLECTIVE_SEND, "one order of operations");

/* A group on a machine. */
struct comm_group {
    struct ty_cluster cluster; /* resolved */
    struct group_shape shape;
};
/* returns TY_OK, TY_ERR_RANGE (error names the field of the cluster, or "ranks"). */
ty_status comm_group_init(const struct ty_cluster *cluster, uint32_t ranks,
                          uint32_t ranks_per_domain, struct comm_group *out,
                          struct ty_error *error);

/* The shape of such a group on a resolved cluster. returns false when there is none. */
bool comm_shape(const struct ty_cluster *resolved, uint32_t ranks, uint32_t ranks_per_domain,
                struct group_shape *out);

/* choice: what NCCL would run; may be NULL, and is left alone for all-to-all and send. */
double comm_prior_s(const struct comm_group *group, enum ty_collective_op op, double size_bytes,
                    struct nccl_choice *choice);
/* What bounds the prior: "latency" or the name of the slowest link. */
const char *comm_limit(const struct comm_group *group, enum ty_collective_op op, double size_bytes);

/* What software adds to a message shows up to here; a table without such knows no latency. */
#define COMM_SMALL_BYTES 65536.0
static inline double comm_doublings(double a, double b)
{
    return fabs(log2(a / b));
}
/* From the tables of other groups and clusters, and the prior. Sets time, table and origin of *out.
 * nearest: distance of the nearest table (comm_neighbour.c); infinite without any. returns TY_OK,
 * TY_ERR_NOMEM, TY_ERR_RANGE. */
ty_status comm_from_neighbours(const struct ty_collective_query *query,
                               const struct comm_group *group,
                               const struct ty_collective_tables *tables,
                               struct ty_collective_time *out, double *nearest,
                               struct ty_error *error);
/* Sets low_s and high_s by where the time is from. */
void comm_interval(struct ty_collective_time *time, double nearest);

/* Time of a group of a resolved cluster from the cluster's own tables: of the same group inside and
 * beyond its range, else of the group of nearest size with as many ranks per domain, scaled by the
 * priors. origin: a point, between points, or beyond them (fitted). returns false when there is
 * none. */
bool comm_measured_s(const struct ty_collective_tables *tables, const struct comm_group *group,
                     enum ty_collective_op op, double size_bytes, double *time_s,
                     enum ty_origin *origin);

/* Time of a table at a size inside its range: straight in log-log between its points. */
double comm_table_s(const struct ty_collective_table *table, double size_bytes);
/* Beyond it: the lesser of two lines a + S/B, each fitted to the four points (or half of fewer) at
 * an end by relative least squares with a, 1/B >= 0. Needs COMM_LINE_POINTS points. */
#define COMM_LINE_POINTS 4
double comm_lines_s(const struct ty_collective_table *table, double size_bytes);

#endif
