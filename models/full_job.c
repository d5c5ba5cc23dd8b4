/* SPDX-License-Identifier: MIT
 *
 * A job on the fabric: which rank sits on which GPU, which ranks have which GPU and how many
 * micro-batches, which run in lock-step, and the templates of them all.
 *
 *   balance   micro-batches one by one to the replica that would be done with one more first
 */
#include "models/full_internal.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* ---- placement ----------------------------------------------------------------------------- */

/* The cluster's node that is node i of a job in order: rack-scale domains are handed out in equal
 * shares (cluster_domain). */
static uint32_t node_in_order(const struct ty_cluster *cluster, uint32_t n_gpus, uint32_t i)
{
    const uint32_t used = cluster_domain(cluster, n_gpus) / cluster->gpus_per_node;
    const uint32_t held = cluster->scaleup_domain / cluster->gpus_per_node;
    return used > 1 ? i / used * held + i % used : i;
}

static ty_status check_places(const struct ty_scenario *scenario, uint32_t n_ranks,
                              struct arena *arena, struct ty_error *error)
{
    bool *taken = arena_get(arena, n_ranks, sizeof *taken);
    if (!taken)
        return TY_ERR_NOMEM;
    if (scenario->n_places != n_ranks)
        return error_set(error, TY_ERR_RANGE, "places", "has %u entries; the plan has %u ranks",
                         scenario->n_places, n_ranks);
    for (uint32_t i = 0; i < n_ranks; i++) {
        if (scenario->places[i] >= n_ranks || taken[scenario->places[i]])
            return error_set(error, TY_ERR_RANGE, "places",
                             "of rank %u is %u; legal: each of 0 to %u once", i,
                             scenario->places[i], n_ranks - 1);
        taken[scenario->places[i]] = true;
    }
    return TY_OK;
}

ty_status job_place(struct full *full, struct job *job, const struct ty_scenario *scenario,
                    const uint32_t *nodes, uint32_t n_nodes, uint32_t *most_nodes,
                    struct ty_error *error)
{
    const struct ty_cluster *cluster = &job->setting->cluster;
    const uint32_t gpus = cluster->gpus_per_node;
    const uint32_t needed = (job->n_ranks + gpus - 1) / gpus;
    ty_status status = TY_OK;
    job->gpu = arena_get(&full->arena, job->n_ranks, sizeof *job->gpu);
    if (!job->gpu)
        return TY_ERR_NOMEM;
    if (nodes && n_nodes < needed)
        return error_set(error, TY_ERR_RANGE, "nodes", "names %u nodes; the plan needs %u", n_nodes,
                         needed);
    if (scenario && scenario->places)
        status = check_places(scenario, job->n_ranks, &full->arena, error);
    for (uint32_t rank = 0; status == TY_OK && rank < job->n_ranks; rank++) {
        const uint32_t place = scenario && scenario->places ? scenario->places[rank] : rank;
        const uint32_t node =
            nodes ? nodes[place / gpus] : node_in_order(cluster, job->n_ranks, place / gpus);
        if (node >= 1048576)
            return error_set(error, TY_ERR_RANGE, "nodes", "node %u is beyond 1048575", node);
        job->gpu[rank] = node * gpus + place % gpus;
        if (node + 1 > *most_nodes)
            *most_nodes = node + 1;
    }
    return status;
}

/* Ranks of the same stage that share a NIC port, and a leaf, when all work. */
static ty_status count_sharers(struct full *full, struct job *job)
{
    const struct fabric *fabric = &full->fabric;
    const size_t n_ports = (size_t)fabric->n_nodes * fabric->n_ports;
    uint32_t *on_port = arena_get(&full->arena, n_ports, sizeof *on_port);
    uint32_t *on_leaf = arena_get(&full->arena, fabric->n_leaves, sizeof *on_leaf);
    job->same_port = arena_get(&full->arena, job->n_ranks, sizeof *job->same_port);
    job->same_leaf = arena_get(&full->arena, job->n_ranks, sizeof *job->same_leaf);
    if (!on_port || !on_leaf || !job->same_port || !job->same_leaf)
        return TY_ERR_NOMEM;
    for (uint32_t stage = 0; stage < job->n_stages; stage++) {
        memset(on_port, 0, n_ports * sizeof *on_port);
        memset(on_leaf, 0, fabric->n_leaves * sizeof *on_leaf);
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t lane = 0; lane < job->width; lane++) {
                const uint32_t rank = job_rank(job, stage, lane);
                const uint32_t port = fabric_home_port(fabric, job->gpu[rank]);
                const uint32_t leaf = fabric_leaf(fabric, port);
                if (pass == 0) {
                    on_port[port]++;
                    on_leaf[leaf]++;
                    continue;
                }
                job->same_port[rank] = on_port[port];
                job->same_leaf[rank] = on_leaf[leaf];
            }
    }
    return TY_OK;
}

/* Collectives inside layers go by the worst placed group of their axis: the ranks wait for each
 * other in every layer. Only where that is not the group of the ranks in order. */
static ty_status place_layers(struct full *full, struct job *job)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_EP, AXIS_ETP};
    struct group_shape *placed = arena_get(&full->arena, N_AXES, sizeof *placed);
    bool other = false;
    if (!placed)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct group_shape shape, worst;
        grid_shape(job->setting, &job->plan, axes[i], &shape);
        const struct grouping *grouping = job_grouping(full, job, &shape);
        if (!grouping)
            return TY_ERR_NOMEM;
        worst = grouping->shape[0];
        for (size_t g = 1; g < (size_t)grouping->n_groups * job->n_stages; g++) {
            const struct group_shape *at = &grouping->shape[g];
            if (at->link > worst.link ||
                (at->link == worst.link && (at->ranks_per_domain < worst.ranks_per_domain ||
                                            at->spine_bytes_per_s < worst.spine_bytes_per_s)))
                worst = *at;
        }
        placed[axes[i]] = worst;
        other |= worst.link != shape.link || worst.ranks_per_domain != shape.ranks_per_domain;
    }
    job->placed = other ? placed : NULL;
    return TY_OK;
}

/* ---- classes: GPUs and speeds -------------------------------------------------------------- */

static struct setting *new_setting(struct full *full, const struct job *job)
{
    struct setting *setting = full->allocator.alloc(full->allocator.user, sizeof *setting);
    if (setting)
        memcpy(setting, job->setting, sizeof *setting);
    return setting;
}

/* The setting of nodes with another GPU: what the profile derives from the GPU is derived anew. */
static ty_status other_gpu(const struct job *job, const struct ty_node_gpu *node_gpu,
                           struct setting *out, struct ty_error *error)
{
    struct ty_cluster cluster = job->setting->cluster;
    struct ty_profile profile = node_gpu->profile ? *node_gpu->profile : job->setting->profile;
    cluster.gpu = *node_gpu->gpu;
    cluster.gpu.scaleup_domain = cluster.scaleup_domain;
    cluster.power_limit_w = (double)NAN;
    if (!node_gpu->profile)
        profile.attention_flop_per_s = profile.allreduce_busbw_bytes_per_s =
            profile.allgather_busbw_bytes_per_s = (double)NAN;
    return setting_init(&job->setting->model, &cluster, &profile, out, NULL, error);
}

static ty_status make_classes(struct full *full, struct job *job,
                              const struct ty_scenario *scenario, struct ty_error *error)
{
    const uint32_t n_others = scenario ? scenario->n_node_gpus : 0;
    job->settings = arena_get(&full->arena, n_others + 1, sizeof *job->settings);
    if (!job->settings)
        return TY_ERR_NOMEM;
    if (n_others > 254)
        return error_set(error, TY_ERR_RANGE, "node_gpus", "at most 254 other GPUs");
    for (uint32_t i = 0; i <= n_others; i++) {
        job->settings[i] = new_setting(full, job);
        if (!job->settings[i])
            return TY_ERR_NOMEM;
        job->n_classes = i + 1;
        ty_status status =
            i == 0 ? TY_OK : other_gpu(job, &scenario->node_gpus[i - 1], job->settings[i], error);
        if (status != TY_OK)
            return status;
        job->settings[i]->placed = job->placed;
        if (full->jitter_ratio > 0.0) /* each rank has its own */
            job->settings[i]->profile.jitter_ratio = 0.0;
    }
    return TY_OK;
}

static ty_status set_ranks(struct full *full, struct job *job, const struct ty_scenario *scenario,
                           struct ty_error *error)
{
    const uint32_t gpus = job->setting->cluster.gpus_per_node;
    job->klass = arena_get(&full->arena, job->n_ranks, sizeof *job->klass);
    job->speed = arena_get(&full->arena, job->n_ranks, sizeof *job->speed);
    if (!job->klass || !job->speed)
        return TY_ERR_NOMEM;
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        job->speed[rank] = 1.0;
        for (uint32_t i = 0; scenario && i < scenario->n_node_gpus; i++)
            if (job->gpu[rank] / gpus - scenario->node_gpus[i].first_node <
                scenario->node_gpus[i].n_nodes)
                job->klass[rank] = (uint8_t)(i + 1);
    }
    for (uint32_t i = 0; scenario && i < scenario->n_speeds; i++) {
        const struct ty_speed *speed = &scenario->speeds[i];
        if (!(speed->ratio > 0.0) || !isfinite(speed->ratio) || speed->first_rank >= job->n_ranks ||
            speed->n_ranks > job->n_ranks - speed->first_rank)
            return error_set(error, TY_ERR_RANGE, "speed",
                             "of ranks %u to %u is %g; legal: above 0, of ranks 0 to %u",
                             speed->first_rank, speed->first_rank + speed->n_ranks - 1,
                             speed->ratio, job->n_ranks - 1);
        for (uint32_t rank = 0; rank < speed->n_ranks; rank++)
            job->speed[speed->first_rank + rank] *= speed->ratio;
    }
    job->even = job->n_classes == 1 && !job->jitters && (!scenario || scenario->n_speeds == 0);
    return TY_OK;
}

/* ---- templates ----------------------------------------------------------------------------- */

static ty_status make_template(struct full *full, struct job *job, uint32_t n_micro, uint32_t klass,
                               struct template *out, struct ty_error *error)
{
    struct ty_plan *plan = arena_get(&full->arena, 1, sizeof *plan);
    if (!plan)
        return TY_ERR_NOMEM;
    *plan = job->plan;
    plan->n_micro = n_micro;
    const ty_status status = out->step ? TY_OK : step_create(&full->allocator, &out->step);
    if (status != TY_OK)
        return status;
    out->step->host_always = job->n_classes > 1; /* one graph for all classes */
    return step_lay(out->step, job->settings[klass], plan, job->slots, error);
}

/* Time of a stage for one micro-batch on a class. */
static double stage_s(const struct step *step, uint32_t stage)
{
    double sum_s = 0.0;
    for (uint32_t place = stage; place < step->n_places; place += step->n_stages)
        for (uint32_t kind = 0; kind < N_PASS_KINDS; kind++)
            if (step_counts(step, (enum pass_kind)kind))
                sum_s += step->segments[step->cuts[N_PASS_KINDS * place + kind].whole].time_s;
    return sum_s;
}

static uint32_t replica_of(const struct job *job, uint32_t lane)
{
    const struct grid_line line = grid_along(&job->plan, AXIS_DP);
    return grid_place(&line, job_rank(job, 0, lane));
}

/* Time a replica takes for one micro-batch: of its slowest rank. */
static void replica_times(const struct job *job, double *time_s)
{
    for (uint32_t lane = 0; lane < job->width; lane++) {
        const uint32_t replica = replica_of(job, lane);
        for (uint32_t stage = 0; stage < job->n_stages; stage++) {
            const uint32_t rank = job_rank(job, stage, lane);
            const double rank_s =
                stage_s(job_template(job, 0, job->klass[rank])->step, stage) / job->speed[rank];
            time_s[replica] = fmax(time_s[replica], rank_s);
        }
    }
}

/* Micro-batches of a replica come in multiples of this (legality of interleaved schedules). */
static uint32_t unit_of(const struct job *job)
{
    return job->plan.vpp > 1 ? job->plan.pp : 1;
}

static ty_status balance(struct full *full, struct job *job)
{
    const uint32_t dp = job->plan.dp, unit = unit_of(job);
    double *time_s = arena_get(&full->arena, dp, sizeof *time_s);
    if (!time_s)
        return TY_ERR_NOMEM;
    replica_times(job, time_s);
    uint32_t left = dp * (job->plan.n_micro / unit);
    for (uint32_t i = 0; i < dp; i++, left--)
        job->n_micro[i] = unit;
    for (; left > 0; left--) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < dp; i++)
            if ((job->n_micro[i] + unit) * time_s[i] < (job->n_micro[best] + unit) * time_s[best])
                best = i;
        job->n_micro[best] += unit;
    }
    return TY_OK;
}

static ty_status take_micro(struct job *job, const struct ty_scenario *scenario,
                            struct ty_error *error)
{
    const uint32_t dp = job->plan.dp, unit = unit_of(job);
    uint64_t sum = 0;
    if (scenario->n_replicas != dp)
        return error_set(error, TY_ERR_RANGE, "n_micro", "has %u entries; the plan has %u replicas",
                         scenario->n_replicas, dp);
    for (uint32_t i = 0; i < dp; i++) {
        job->n_micro[i] = scenario->n_micro[i];
        sum += job->n_micro[i];
        if (job->n_micro[i] == 0 || job->n_micro[i] % unit != 0)
            return error_set(error, TY_ERR_RANGE, "n_micro",
                             "of replica %u is %u; legal: multiples of %u", i, job->n_micro[i],
                             unit);
    }
    if (sum != (uint64_t)dp * job->plan.n_micro)
        return error_set(error, TY_ERR_RANGE, "n_micro", "adds up to %.0f; the plan has %.0f",
                         (double)sum, (double)dp * job->plan.n_micro);
    return TY_OK;
}

/* Shapes: the distinct numbers of micro-batches, first met first. */
static ty_status set_shapes(struct full *full, struct job *job)
{
    job->shape = arena_get(&full->arena, job->width, sizeof *job->shape);
    job->order = arena_get(&full->arena, job->width, sizeof *job->order);
    job->shape_micro = arena_get(&full->arena, job->plan.dp, sizeof *job->shape_micro);
    job->shape_lanes = arena_get(&full->arena, job->plan.dp, sizeof *job->shape_lanes);
    if (!job->shape || !job->order || !job->shape_micro || !job->shape_lanes)
        return TY_ERR_NOMEM;
    job->n_shapes = 0;
    for (uint32_t lane = 0; lane < job->width; lane++) {
        const uint32_t n_micro = job->n_micro[replica_of(job, lane)];
        uint32_t shape = 0;
        while (shape < job->n_shapes && job->shape_micro[shape] != n_micro)
            shape++;
        if (shape == job->n_shapes)
            job->shape_micro[job->n_shapes++] = n_micro;
        job->shape[lane] = shape;
        job->order[lane] = job->shape_lanes[shape]++;
    }
    return TY_OK;
}

static ty_status make_templates(struct full *full, struct job *job,
                                const struct ty_scenario *scenario, struct ty_error *error)
{
    const uint32_t dp = job->plan.dp;
    ty_status status = TY_OK;
    job->n_micro = arena_get(&full->arena, dp, sizeof *job->n_micro);
    job->templates = arena_get(&full->arena, (size_t)dp * job->n_classes, sizeof *job->templates);
    if (!job->n_micro || !job->templates)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < dp; i++)
        job->n_micro[i] = job->plan.n_micro;
    job->n_shapes = 1;
    for (uint32_t klass = 0; status == TY_OK && klass < job->n_classes; klass++)
        status = make_template(full, job, job->plan.n_micro, klass, &job->templates[klass], error);
    const bool uneven = scenario && (scenario->n_micro || scenario->balance);
    if (status == TY_OK && uneven && job->templates[0].step->pipeline.shape != PIPELINE_ROUND)
        status = error_set(error, TY_ERR_UNSUPPORTED, "n_micro",
                           "of the replicas must be equal in V-shaped and two-way schedules");
    if (status == TY_OK && scenario && scenario->n_micro)
        status = take_micro(job, scenario, error);
    else if (status == TY_OK && scenario && scenario->balance)
        status = balance(full, job);
    if (status == TY_OK)
        status = set_shapes(full, job);
    for (uint32_t i = 0; status == TY_OK && i < job->n_shapes * job->n_classes; i++)
        status = make_template(full, job, job->shape_micro[i / job->n_classes], i % job->n_classes,
                               &job->templates[i], error);
    for (uint32_t i = 0; status == TY_OK && i < job->n_shapes * job->n_classes; i++) {
        struct template *template = &job->templates[i];
        const struct step *step = template->step;
        template->memo = arena_get(&full->arena, step->n_sent, sizeof *template->memo);
        template->route =
            arena_get(&full->arena, (size_t)step->n_sent * job->width, sizeof *template->route);
        template->segment_route = arena_get(&full->arena, (size_t)step->n_segments * job->width,
                                            sizeof *template->segment_route);
        const uint32_t n_tasks = engine_n_tasks(step->engine);
        for (uint32_t task = 0; task < n_tasks; task++)
            if (engine_form_of(step->engine, task) >= template->n_forms)
                template->n_forms = engine_form_of(step->engine, task) + 1;
        template->form = arena_get(&full->arena, (size_t) template->n_forms * job->width,
                                   sizeof *template->form);
        if (!template->memo || !template->route || !template->segment_route || !template->form)
            return TY_ERR_NOMEM;
    }
    return status;
}

/* ---- lock-step ----------------------------------------------------------------------------- */

static uint32_t root_of(uint32_t *block, uint32_t lane)
{
    while (block[lane] != lane)
        lane = block[lane] = block[block[lane]];
    return lane;
}

/* Ranks of a stage that meet in the collectives of a layer: joined over tp, cp, ep and etp. */
static ty_status make_blocks(struct full *full, struct job *job)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_EP, AXIS_ETP};
    uint32_t *root = arena_get(&full->arena, job->width, sizeof *root);
    uint32_t *last = arena_get(&full->arena, job->width, sizeof *last);
    job->block = arena_get(&full->arena, job->width, sizeof *job->block);
    job->block_next = arena_get(&full->arena, job->width, sizeof *job->block_next);
    if (!root || !last || !job->block || !job->block_next)
        return TY_ERR_NOMEM;
    for (uint32_t lane = 0; lane < job->width; lane++)
        root[lane] = lane;
    for (uint32_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        const struct grid_line line = grid_along(&job->plan, axes[i]);
        for (uint32_t lane = 0; lane < job->width; lane++) {
            const uint32_t rank = job_rank(job, 0, lane);
            const uint32_t a = root_of(root, lane);
            const uint32_t b = root_of(root, job_lane(job, grid_at(&line, rank, 0)));
            root[a > b ? a : b] = a > b ? b : a;
        }
    }
    job->n_blocks = 0;
    for (uint32_t lane = 0; lane < job->width; lane++) {
        const uint32_t first = root_of(root, lane);
        if (first == lane)
            job->block[lane] = job->n_blocks++;
        else
            job->block_next[last[first]] = lane;
        job->block[lane] = job->block[first];
        job->block_next[lane] = first;
        last[first] = lane;
    }
    return TY_OK;
}

ty_status job_prepare(struct full *full, struct job *job, const struct ty_scenario *scenario,
                      struct ty_error *error)
{
    job->jitters = full->jitter_ratio > 0.0;
    ty_status status = count_sharers(full, job);
    if (status == TY_OK)
        status = place_layers(full, job);
    if (status == TY_OK)
        status = make_classes(full, job, scenario, error);
    if (status == TY_OK)
        status = set_ranks(full, job, scenario, error);
    if (status == TY_OK)
        status = make_templates(full, job, scenario, error);
    if (status == TY_OK)
        status = make_blocks(full, job);
    return status;
}

void job_destroy(struct full *full, struct job *job)
{
    for (uint32_t i = 0; job->settings && i < job->n_classes; i++)
        full->allocator.release(full->allocator.user, job->settings[i], sizeof *job->settings[i]);
    const size_t n = job->templates ? (size_t)job->plan.dp * job->n_classes : 0;
    for (size_t i = 0; i < n; i++)
        step_destroy(job->templates[i].step);
    job->settings = NULL;
    job->templates = NULL;
    job->n_classes = 0;
}
