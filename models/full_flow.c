/* SPDX-License-Identifier: MIT
 *
 * What a template sends, as one rank's task on the links of the fabric.
 *
 *   pair         a message of the pipeline, or the tied embedding: from one rank to another
 *   collective   each member's part: its scale-up port both ways, its NIC both ways, and, where
 *                the group crosses leaves, the uplinks towards its neighbours in the group
 *
 * The time alone is that of the collective for the group's own shape, as placed. On one physical
 * link, as built, a member's part never needs more than its share of it among the ranks of its
 * stage: a flow alone takes its own time, whatever a table says about its link (step_links.c, the
 * same). The share of a leaf's uplinks is that of the job's own ranks of a stage: other stages and
 * jobs are met on the link.
 */
#include "models/full_internal.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static enum link_class class_of(enum ty_fabric_level level)
{
    switch (level) {
    case TY_LEVEL_NONE:
        return LINK_NONE;
    case TY_LEVEL_DOMAIN:
        return LINK_SCALEUP;
    case TY_LEVEL_LEAF:
        return LINK_NIC;
    default:
        return LINK_SPINE;
    }
}

/* domains: scratch [n], the domain of each member. */
static void shape_of(const struct fabric *fabric, uint32_t *domains, uint32_t n,
                     enum ty_fabric_level level, double same_leaf, const struct group_shape *like,
                     struct group_shape *out)
{
    qsort(domains, n, sizeof *domains, by_value);
    uint32_t n_domains = 0, fewest = n, run = 0;
    for (uint32_t i = 0; i < n; i++) {
        run++;
        if (i + 1 < n && domains[i + 1] == domains[i])
            continue;
        fewest = run < fewest ? run : fewest;
        run = 0;
        n_domains++;
    }
    *out = *like;
    out->size = n;
    out->ranks_per_domain = fewest;
    out->n_domains = n_domains;
    out->link = class_of(level);
    if (out->link == LINK_SPINE)
        out->spine_bytes_per_s = fmin(out->nic_bytes_per_s, fabric_leaf_bytes_per_s(fabric) *
                                                                fabric->n_planes / same_leaf);
    if (level == TY_LEVEL_CORE)
        out->spine_bytes_per_s /= fabric->cluster.pod_oversubscription;
}

static void fill_group(struct full *full, const struct job *job, const struct group_shape *like,
                       const struct grouping *grouping, uint32_t rank, uint32_t *domains,
                       struct group_shape *out)
{
    const struct fabric *fabric = &full->fabric;
    const uint32_t lead = grid_place(&grouping->line, rank);
    enum ty_fabric_level level = TY_LEVEL_NONE;
    double same_leaf = 1.0;
    for (uint32_t i = 0; i < grouping->size; i++) {
        const uint32_t member = grid_at(&grouping->line, rank, lead + i * grouping->every);
        const enum ty_fabric_level here = fabric_level(fabric, job->gpu[rank], job->gpu[member]);
        level = here > level ? here : level;
        same_leaf = fmax(same_leaf, job->same_leaf[member]);
        domains[i] = job->gpu[member] / fabric->domain;
    }
    shape_of(fabric, domains, grouping->size, level, same_leaf, like, out);
}

static bool number_groups(struct full *full, struct job *job, struct grouping *grouping)
{
    const uint32_t span = grouping->size * grouping->every;
    grouping->number = arena_get(&full->arena, job->width, sizeof *grouping->number);
    grouping->leader = arena_get(&full->arena, job->width, sizeof *grouping->leader);
    if (!grouping->number || !grouping->leader)
        return false;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t lane = 0; lane < job->width; lane++) {
            const uint32_t rank = job_rank(job, 0, lane);
            const uint32_t place = grid_place(&grouping->line, rank);
            const uint32_t lead = place / span * span + place % grouping->every;
            if (pass == 0 && lead == place) {
                grouping->leader[grouping->n_groups] = lane;
                grouping->number[lane] = grouping->n_groups++;
            } else if (pass == 1 && lead != place) {
                grouping->number[lane] =
                    grouping->number[job_lane(job, grid_at(&grouping->line, rank, lead))];
            }
        }
    return true;
}

const struct grouping *job_grouping(struct full *full, struct job *job,
                                    const struct group_shape *shape)
{
    for (uint32_t i = 0; i < job->n_groupings; i++) {
        const struct grouping *grouping = &job->groupings[i];
        if (grouping->axis == shape->axis && grouping->size == shape->size &&
            grouping->every == shape->every)
            return grouping;
    }
    if (job->n_groupings == FULL_MAX_GROUPINGS)
        return NULL;
    struct grouping *grouping = &job->groupings[job->n_groupings];
    *grouping = (struct grouping){.axis = shape->axis,
                                  .size = shape->size,
                                  .every = shape->every,
                                  .line = grid_along(&job->plan, shape->axis)};
    uint32_t *domains = arena_get(&full->arena, shape->size, sizeof *domains);
    if (!domains || !number_groups(full, job, grouping))
        return NULL;
    const uint32_t n_groups = grouping->n_groups;
    grouping->shape =
        arena_get(&full->arena, (size_t)n_groups * job->n_stages, sizeof *grouping->shape);
    if (!grouping->shape)
        return NULL;
    for (uint32_t stage = 0; stage < job->n_stages; stage++)
        for (uint32_t i = 0; i < n_groups; i++)
            fill_group(full, job, shape, grouping, job_rank(job, stage, grouping->leader[i]),
                       domains, &grouping->shape[(size_t)stage * n_groups + i]);
    job->n_groupings++;
    return grouping;
}

bool job_is_pair(const struct sent *sent)
{
    return sent->collective.shape.axis == AXIS_PP;
}

void job_pair_shape(const struct full *full, const struct job *job, const struct sent *sent,
                    uint32_t lane, struct group_shape *out)
{
    const uint32_t from = job_rank(job, sent->from, lane), to = job_rank(job, sent->to, lane);
    const uint32_t a = job->gpu[from], b = job->gpu[to];
    uint32_t domains[2] = {a / full->fabric.domain, b / full->fabric.domain};
    shape_of(&full->fabric, domains, 2, fabric_level(&full->fabric, a, b),
             fmax(job->same_leaf[from], job->same_leaf[to]), &sent->collective.shape, out);
}

/* ---- links --------------------------------------------------------------------------------- */

/* The member next in the group (step +1 or -1) that sits in another domain. */
static uint32_t neighbour(const struct full *full, const struct job *job,
                          const struct grouping *grouping, uint32_t rank, uint32_t step)
{
    const uint32_t span = grouping->size * grouping->every;
    const uint32_t place = grid_place(&grouping->line, rank), base = place / span * span;
    for (uint32_t i = 1; i < grouping->size; i++) {
        const uint32_t at =
            (uint32_t)((place - base + (uint64_t)i * step * grouping->every) % span);
        const uint32_t other = job->gpu[grid_at(&grouping->line, rank, base + at)];
        if (other / full->fabric.domain != job->gpu[rank] / full->fabric.domain)
            return other;
    }
    return job->gpu[rank];
}

/* A flow's identity for hashing: sender and receiver. */
static uint64_t flow_key(uint32_t from, uint32_t to)
{
    return (uint64_t)from << 32 | to;
}

static void add_member(const struct full *full, const struct job *job,
                       const struct grouping *grouping, uint32_t rank,
                       const double bytes_per_work[N_LINKS], struct fabric_path *path)
{
    const uint32_t gpu = job->gpu[rank];
    const bool across = bytes_per_work[LINK_SPINE] > 0.0;
    for (uint32_t way = 0; way < 2; way++)
        fabric_add(&full->fabric, FABRIC_PORT, gpu, way, bytes_per_work[LINK_SCALEUP], path);
    if (!(bytes_per_work[LINK_NIC] > 0.0))
        return;
    const uint32_t next = neighbour(full, job, grouping, rank, 1);
    const uint32_t previous = neighbour(full, job, grouping, rank, grouping->size - 1);
    fabric_network(&full->fabric, gpu, next, flow_key(gpu, next), 0, across,
                   bytes_per_work[LINK_NIC], path);
    fabric_network(&full->fabric, previous, gpu, flow_key(previous, gpu), 1, across,
                   bytes_per_work[LINK_NIC], path);
}

/* Ranks of the stage that load the link alike. */
static double sharers(const struct full *full, const struct job *job, uint32_t link, uint32_t rank)
{
    const struct fabric *fabric = &full->fabric;
    if (link >= fabric->first[FABRIC_LEAF])
        return fabric->n_paths > 1 ? 1.0 : job->same_leaf[rank];
    return link >= fabric->first[FABRIC_NIC] ? job->same_port[rank] : 1.0;
}

static ty_status make_route(struct full *full, const struct job *job, uint32_t rank,
                            double cap_work_per_s, uint32_t *route, struct ty_error *error)
{
    struct fabric_path *path = &full->path;
    if (path->cut)
        return error_set(error, TY_ERR_RANGE, "fault", "leaves rank %u without a way out", rank);
    for (uint32_t i = 0; i < path->n; i++) {
        struct fluid_use *use = &path->use[i];
        const double share = fabric_nominal_bytes_per_s(&full->fabric, use->link) /
                             (cap_work_per_s * sharers(full, job, use->link, rank));
        use->bytes_per_work = fmin(use->bytes_per_work, share);
    }
    *route = ENGINE_NONE;
    return path->n > 0 ? engine_add_route(full->engine, path->use, path->n, route) : TY_OK;
}

/* ---- flows --------------------------------------------------------------------------------- */

static bool same_shape(const struct group_shape *a, const struct group_shape *b)
{
    return a->size == b->size && a->ranks_per_domain == b->ranks_per_domain &&
           a->n_domains == b->n_domains && a->link == b->link &&
           a->spine_bytes_per_s == b->spine_bytes_per_s;
}

static const struct memo *time_flow(struct template *template, uint32_t index,
                                    const struct group_shape *shape)
{
    struct memo *memo = &template->memo[index];
    if (memo->known && same_shape(&memo->shape, shape))
        return memo;
    struct sent sent = template->step->sent[index];
    sent.collective.shape = *shape;
    collective_as_flow(template->step->setting, &sent.collective, &memo->flow);
    memo->task = step_flow_task(template->step->setting, &sent, &memo->flow);
    memo->task.tag = index + 1;
    memo->shape = *shape;
    memo->known = true;
    return memo;
}

/* The links of a pair's flow: inside the domain, or out of one NIC and into the other. */
static void add_pair(const struct full *full, const struct job *job, const struct sent *sent,
                     uint32_t lane, const struct memo *memo, struct fabric_path *path)
{
    const uint32_t from = job->gpu[job_rank(job, sent->from, lane)];
    const uint32_t to = job->gpu[job_rank(job, sent->to, lane)];
    const double *bytes = memo->flow.bytes_per_work;
    fabric_message(&full->fabric, from, to, flow_key(from, to),
                   bytes[memo->shape.link > LINK_SCALEUP ? LINK_NIC : LINK_SCALEUP], path);
}

ty_status job_flow(struct full *full, struct job *job, struct template *template, uint32_t tag,
                   uint32_t stage, uint32_t lane, struct engine_task *out, struct ty_error *error)
{
    const struct sent *sent = &template->step->sent[tag - 1];
    const struct grouping *grouping = NULL;
    struct group_shape shape;
    if (job_is_pair(sent)) {
        job_pair_shape(full, job, sent, lane, &shape);
    } else {
        grouping = job_grouping(full, job, &sent->collective.shape);
        if (!grouping)
            return TY_ERR_NOMEM;
        shape = grouping->shape[(size_t)stage * grouping->n_groups + grouping->number[lane]];
    }
    const struct memo *memo = time_flow(template, tag - 1, &shape);
    uint32_t *known = &template->route[(size_t)(tag - 1) * job->width + lane];
    *out = memo->task;
    if (*known == 0) {
        const uint32_t rank = job_rank(job, stage, lane);
        uint32_t route;
        full->path.n = 0;
        full->path.cut = false;
        if (grouping)
            add_member(full, job, grouping, rank, memo->flow.bytes_per_work, &full->path);
        else
            add_pair(full, job, sent, lane, memo, &full->path);
        const ty_status status =
            make_route(full, job, rank, memo->flow.cap_bytes_per_s, &route, error);
        if (status != TY_OK)
            return status;
        *known = route + 1;
        if (route == ENGINE_NONE)
            *known = ENGINE_NONE;
    }
    out->route = *known == ENGINE_NONE ? ENGINE_NONE : *known - 1;
    return TY_OK;
}

/* A rank of the lane's block in another domain, whose way the pass's network traffic takes. */
static uint32_t block_peer(const struct full *full, const struct job *job, uint32_t stage,
                           uint32_t lane)
{
    const uint32_t own = job->gpu[job_rank(job, stage, lane)];
    for (uint32_t at = job->block_next[lane]; at != lane; at = job->block_next[at]) {
        const uint32_t other = job->gpu[job_rank(job, stage, at)];
        if (other / full->fabric.domain != own / full->fabric.domain)
            return other;
    }
    return own;
}

ty_status job_pass_route(struct full *full, struct job *job, struct template *template,
                         uint32_t index, uint32_t stage, uint32_t lane, uint32_t *route)
{
    const struct step *step = template->step;
    const struct segment *segment = &step->segments[index];
    uint32_t *known = &template->segment_route[(size_t)index * job->width + lane];
    *route = ENGINE_NONE;
    if (segment->compute.task.route == ENGINE_NONE)
        return TY_OK;
    if (*known == 0) {
        const uint32_t rank = job_rank(job, stage, lane), gpu = job->gpu[rank];
        double bytes_per_s[N_LINKS] = {0};
        for (uint32_t link = 0; link < N_LINKS; link++)
            if (step->link_used[link] && segment->link_bytes[link] > 0.0)
                bytes_per_s[link] = segment->link_bytes[link] / segment->time_s;
        full->path.n = 0;
        full->path.cut = false;
        const uint32_t peer = block_peer(full, job, stage, lane);
        for (uint32_t way = 0; way < 2; way++) {
            fabric_add(&full->fabric, FABRIC_PORT, gpu, way, bytes_per_s[LINK_SCALEUP],
                       &full->path);
            if (bytes_per_s[LINK_NIC] > 0.0 && peer != gpu)
                fabric_network(&full->fabric, way ? peer : gpu, way ? gpu : peer,
                               flow_key(gpu, peer), way, bytes_per_s[LINK_SPINE] > 0.0,
                               bytes_per_s[LINK_NIC], &full->path);
        }
        const ty_status status = make_route(full, job, rank, 1.0, route, NULL);
        if (status != TY_OK)
            return status;
        *known = *route == ENGINE_NONE ? ENGINE_NONE : *route + 1;
    }
    *route = *known == ENGINE_NONE ? ENGINE_NONE : *known - 1;
    return TY_OK;
}
