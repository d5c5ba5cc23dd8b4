/* SPDX-License-Identifier: MIT
 *
 * A data-parallel collective of the full rung send by send: two levels where a domain holds several
 * of its ranks, else a ring. Hops and bytes are stretched so that alone it takes the time of its
 * table or model (models/collectives.h), as its one weighted flow does; the links do the rest.
 */
#include "models/collective_program.h"
#include "models/full_internal.h"

#include <math.h>

/* Any hops do, their sum is stretched; these are NCCL's. source: handbook 5.2 */
static const double HOP_S[2] = {3.4e-6, 14e-6};

/* Members of a domain next to each other, as many in each; else every rank is its own domain. */
static struct program_group group_of(const struct fabric *fabric, const struct group_shape *shape,
                                     const uint32_t *gpus)
{
    const uint32_t n = shape->size, g = shape->ranks_per_domain;
    bool even = shape->n_domains * g == n;
    for (uint32_t i = 0; even && i < n; i++)
        even = gpus[i] / fabric->domain == gpus[i / g * g] / fabric->domain;
    return (struct program_group){n, even ? g : 1, even ? shape->n_domains : n};
}

static double n_rounds(enum collective_op op, double n)
{
    return (op == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (n - 1.0);
}

/* What the program takes on links in order: both levels, one after the other. */
static void plain_time(const struct fabric *fabric, const struct program_group *group,
                       enum collective_op op, double payload_bytes, double *latency_s,
                       double *bytes_s)
{
    const double g = group->g, k = group->k, rounds = n_rounds(op, k);
    const double inside = n_rounds(op, g), shard_bytes = payload_bytes / g;
    const double port = fabric->cluster.scaleup_bytes_per_s;
    const double per_gpu = (double)fabric->cluster.nics_per_node / fabric->gpus;
    const double nic = fabric->cluster.nic_bytes_per_s * fmax(1.0, per_gpu);
    *latency_s = inside * HOP_S[0] + rounds * HOP_S[1];
    *bytes_s = inside * shard_bytes / port + rounds * shard_bytes / k / nic;
}

/* gpus, device: scratch [size]. */
static ty_status emit_group(struct full *full, struct job *job, const struct grouping *grouping,
                            const struct sent *sent, uint32_t stage, uint32_t group,
                            const struct engine_task *alone, uint32_t start, uint32_t end,
                            uint32_t *gpus, uint32_t *device)
{
    const uint32_t first = job_rank(job, stage, grouping->leader[group]);
    const uint32_t lead = grid_place(&grouping->line, first);
    for (uint32_t i = 0; i < grouping->size; i++) {
        const uint32_t rank = grid_at(&grouping->line, first, lead + i * grouping->every);
        gpus[i] = job->gpu[rank];
        device[i] = job->first_device + stage * job->width + job_lane(job, rank);
    }
    const struct group_shape *shape = &grouping->shape[(size_t)stage * grouping->n_groups + group];
    const struct program_request request = {.op = (enum ty_collective_op)sent->collective.op,
                                            .algorithm = TY_ALGORITHM_TWO_LEVEL,
                                            .group = group_of(&full->fabric, shape, gpus),
                                            .payload_bytes = alone->work};
    double latency_s, bytes_s;
    plain_time(&full->fabric, &request.group, sent->collective.op, alone->work, &latency_s,
               &bytes_s);
    const struct program_run run = {.fabric = &full->fabric,
                                    .gpus = gpus,
                                    .hop_s = {HOP_S[0], HOP_S[1]},
                                    .latency_ratio = alone->latency_s / latency_s,
                                    .time_ratio = alone->work / alone->cap_work_per_s / bytes_s};
    struct program program;
    ty_status status = program_make(&request, &full->allocator, &program);
    if (status == TY_OK)
        status = program_emit(&program, &run, full->engine, 0, start, end, alone, device);
    program_free(&program);
    return status;
}

ty_status job_detail(struct full *full, struct job *job, struct template *template, uint32_t tag,
                     uint32_t stage, uint32_t start, uint32_t end, struct ty_error *error)
{
    const struct sent *sent = &template->step->sent[tag - 1];
    const struct grouping *grouping = job_grouping(full, job, &sent->collective.shape);
    uint32_t *gpus = arena_get(&full->arena, 2 * (size_t)grouping->size, sizeof *gpus);
    if (!gpus)
        return TY_ERR_NOMEM;
    ty_status status = TY_OK;
    for (uint32_t group = 0; status == TY_OK && group < grouping->n_groups; group++) {
        struct engine_task alone;
        status = job_flow(full, job, template, tag, stage, grouping->leader[group], &alone, error);
        alone.route = ENGINE_NONE;
        if (status == TY_OK)
            status = emit_group(full, job, grouping, sent, stage, group, &alone, start + group,
                                end + group, gpus, gpus + grouping->size);
    }
    return status;
}
