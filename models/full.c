/* SPDX-License-Identifier: MIT
 *
 * The full rung: the jobs are laid on the fabric; where one rank per stage is exact its answer
 * stands, else the graph of every rank of every job is run at once, and the timeline of the rank
 * that computes longest says where the step went.
 */
#include "models/full_internal.h"
#include "models/legality.h"
#include "models/parts.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const double DEFAULT_MAX_BYTES = 16e9;

ty_status full_create(const struct ty_allocator *allocator, struct full **out)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    struct full *full = source.alloc(source.user, sizeof *full);
    if (!full)
        return TY_ERR_NOMEM;
    memset(full, 0, sizeof *full);
    full->allocator = source;
    arena_init(&full->arena, &source);
    const ty_status status = engine_create(&source, &full->engine);
    if (status != TY_OK)
        full_destroy(full);
    else
        *out = full;
    return status;
}

static void close_jobs(struct full *full)
{
    for (uint32_t i = 0; i < full->n_jobs; i++)
        job_destroy(full, &full->jobs[i]);
    full->n_jobs = 0;
    fabric_destroy(&full->fabric);
}

void full_destroy(struct full *full)
{
    if (!full)
        return;
    const struct ty_allocator source = full->allocator;
    close_jobs(full);
    engine_destroy(full->engine);
    arena_destroy(&full->arena);
    source.release(source.user, full, sizeof *full);
}

const struct ty_fabric_report *full_report(const struct full *full)
{
    return &full->report;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void size_job(struct job *job)
{
    job->n_ranks = job->plan.n_gpus;
    job->n_stages = job->plan.pp;
    job->width = job->n_ranks / job->n_stages;
    job->stride = (uint32_t)grid_stride(&job->plan, AXIS_PP);
}

/* Another job: its inputs are resolved as the predictor would. */
static ty_status open_other(struct full *full, const struct full_request *request, uint32_t index,
                            struct job *job, struct ty_error *error)
{
    const struct ty_other_job *other = &request->scenario->others[index];
    struct setting *setting = arena_get(&full->arena, 1, sizeof *setting);
    if (!setting)
        return TY_ERR_NOMEM;
    ty_status status = setting_init(other->model, &request->setting->cluster,
                                    other->profile ? other->profile : &request->setting->profile,
                                    setting, NULL, error);
    if (status != TY_OK)
        return status;
    job->setting = setting;
    plan_resolve(setting, other->plan, &job->plan, NULL);
    const enum ty_reject reject = legality_reject(setting, &job->plan);
    if (reject != TY_N_REJECTS)
        return error_set(error, TY_ERR_INFEASIBLE, "other job", "%u: its plan is not legal: %s",
                         index, ty_reject_name(reject));
    struct slot *slots =
        arena_get(&full->arena, (size_t)job->plan.pp * job->plan.vpp, sizeof *slots);
    if (!slots || !layout_slots(setting, &job->plan, slots))
        return slots ? TY_ERR_INTERNAL : TY_ERR_NOMEM;
    job->slots = slots;
    return TY_OK;
}

static ty_status place_jobs(struct full *full, const struct full_request *request,
                            uint32_t *most_nodes, struct ty_error *error)
{
    const struct ty_scenario *scenario = request->scenario;
    ty_status status = TY_OK;
    for (uint32_t i = 0; status == TY_OK && i < full->n_jobs; i++) {
        struct job *job = &full->jobs[i];
        if (i == 0) {
            job->setting = request->setting;
            job->plan = *request->plan;
            job->slots = request->slots;
        } else {
            status = open_other(full, request, i - 1, job, error);
        }
        if (status != TY_OK)
            return status;
        size_job(job);
        const struct ty_other_job *other = i > 0 ? &scenario->others[i - 1] : NULL;
        status =
            job_place(full, job, other ? NULL : scenario, other ? other->nodes : scenario->nodes,
                      other ? other->n_nodes : scenario->n_nodes, most_nodes, error);
    }
    return status;
}

static ty_status check_overlap(struct full *full, uint32_t n_nodes, struct ty_error *error)
{
    const uint32_t gpus = full->jobs[0].setting->cluster.gpus_per_node;
    bool *taken = arena_get(&full->arena, (size_t)n_nodes * gpus, sizeof *taken);
    if (!taken)
        return TY_ERR_NOMEM;
    for (uint32_t i = 0; i < full->n_jobs; i++)
        for (uint32_t rank = 0; rank < full->jobs[i].n_ranks; rank++) {
            const uint32_t gpu = full->jobs[i].gpu[rank];
            if (taken[gpu])
                return error_set(error, TY_ERR_RANGE, "nodes",
                                 "GPU %u of node %u has two ranks; every node may be named once",
                                 gpu % gpus, gpu / gpus);
            taken[gpu] = true;
        }
    return TY_OK;
}

static ty_status open_jobs(struct full *full, const struct full_request *request,
                           struct ty_error *error)
{
    const struct ty_scenario *scenario = request->scenario;
    const struct ty_cluster *cluster = &request->setting->cluster;
    uint32_t n_nodes = 1;
    full->jobs = arena_get(&full->arena, scenario->n_others + (size_t)1, sizeof *full->jobs);
    full->job_step_s =
        arena_get(&full->arena, scenario->n_others + (size_t)1, sizeof *full->job_step_s);
    if (!full->jobs || !full->job_step_s)
        return TY_ERR_NOMEM;
    full->n_jobs = scenario->n_others + 1;
    ty_status status = place_jobs(full, request, &n_nodes, error);
    if (status != TY_OK)
        return status;
    if (cluster->n_nodes > 0 && n_nodes > cluster->n_nodes)
        return error_set(error, TY_ERR_RANGE, "nodes", "node %u is named; the cluster has %u",
                         n_nodes - 1, cluster->n_nodes);
    n_nodes = cluster->n_nodes > n_nodes ? cluster->n_nodes : n_nodes;
    status = check_overlap(full, n_nodes, error);
    if (status == TY_OK)
        status = fabric_create(cluster, n_nodes, scenario->faults, scenario->n_faults, full->seed,
                               &full->allocator, &full->fabric, error);
    for (uint32_t i = 0; status == TY_OK && i < full->n_jobs; i++)
        status = job_prepare(full, &full->jobs[i], i == 0 ? scenario : NULL, error);
    return status;
}

/* ---- size ---------------------------------------------------------------------------------- */

struct size {
    double tasks, edges, streams;
};

static void count_edge(void *user, uint32_t before, uint32_t after)
{
    (void)before;
    (void)after;
    ++*(uint64_t *)user;
}

/* What one shape of a job adds; the gates of collectives are shared by the shapes. */
static void add_size(struct full *full, struct job *job, uint32_t shape, struct size *size)
{
    const bool coupled = job->n_blocks < job->width;
    const struct step *step = job_template(job, shape, 0)->step;
    const struct engine *engine = step->engine;
    const double lanes = job->shape_lanes[shape];
    uint64_t n_edges = 0;
    for (uint32_t task = 0; task < engine_n_tasks(engine); task++) {
        const struct engine_task *source = engine_task_of(engine, task);
        const bool pass =
            source->class_ == ENGINE_COMPUTE && step->info[task].segment != ENGINE_NONE;
        size->tasks += lanes;
        if (pass && coupled) {
            size->tasks += ceil(lanes * job->n_blocks / job->width);
            size->edges += 2.0 * lanes;
        }
        if (source->tag > 0)
            size->edges += 3.0 * lanes;
        if (shape > 0 || source->tag == 0 || job_is_pair(&step->sent[source->tag - 1]))
            continue;
        const struct grouping *grouping =
            job_grouping(full, job, &step->sent[source->tag - 1].collective.shape);
        size->tasks += grouping ? 2.0 * grouping->n_groups : 0.0;
        if (full->detailed) { /* three phases: a send and a gate of each rank */
            size->tasks += 6.0 * job->width;
            size->edges += 12.0 * job->width;
        }
    }
    engine_edges(engine, count_edge, &n_edges);
    size->edges += (double)n_edges * lanes;
}

static ty_status reserve(struct full *full, const struct ty_options *options,
                         struct ty_error *error)
{
    struct size size = {0};
    for (uint32_t i = 0; i < full->n_jobs; i++) {
        struct job *job = &full->jobs[i];
        for (uint32_t shape = 0; shape < job->n_shapes; shape++)
            add_size(full, job, shape, &size);
        size.tasks += 2.0; /* the norm and the end of the step */
        size.edges += (N_STREAMS + 2.0) * job->n_ranks;
        size.streams += (double)job->n_ranks * N_STREAMS;
    }
    size.tasks *= full->n_steps;
    size.edges *= full->n_steps;
    /* A task takes 68 bytes and shares its form, an edge 8; arrays grow by doubling. */
    const double bytes = 2.0 * (68.0 * size.tasks + 8.0 * size.edges + 4.0 * size.streams);
    const double limit =
        options && options->max_bytes ? (double)options->max_bytes : DEFAULT_MAX_BYTES;
    if (bytes > limit || size.tasks > 4e9 || size.edges > 4e9)
        return error_set(error, TY_ERR_LIMIT, "rung",
                         "full: %.3g tasks need about %.3g GB; max_bytes allows %.3g GB",
                         size.tasks, bytes / 1e9, limit / 1e9);
    full->n_origins = (uint32_t)size.tasks;
    full->origin = arena_get(&full->arena, full->n_origins, sizeof *full->origin);
    if (!full->origin)
        return TY_ERR_NOMEM;
    return engine_reserve(full->engine, (uint64_t)size.tasks, (uint64_t)size.edges,
                          (uint64_t)size.streams);
}

/* ---- answers ------------------------------------------------------------------------------- */

static uint32_t task_id(const struct job *job, uint32_t task, uint32_t lane)
{
    return job->first[job->shape[lane]][task] + job->order[lane];
}

static double compute_s(const struct full *full, const struct job *job, uint32_t stage,
                        uint32_t lane)
{
    const struct step *step = job_template(job, job->shape[lane], 0)->step;
    double sum_s = 0.0;
    for (uint32_t task = step->stages[stage].first_task; task <= step->stages[stage].norm; task++)
        if (step->info[task].stage == stage && step->info[task].stream == STREAM_COMPUTE &&
            step->info[task].segment != ENGINE_NONE) {
            const uint32_t id = task_id(job, task, lane);
            sum_s += engine_task_of(full->engine, id)->work;
        }
    return sum_s;
}

/* The rank that computes longest; where all are equal, of the stage that the folded rung names. */
static uint32_t slowest_rank(const struct full *full, const struct job *job, uint32_t busiest)
{
    uint32_t best = job_rank(job, busiest, 0);
    if (job->even && job->n_shapes == 1)
        return best;
    double most_s = 0.0;
    for (uint32_t stage = 0; stage < job->n_stages; stage++)
        for (uint32_t lane = 0; lane < job->width; lane++) {
            const double sum_s = compute_s(full, job, stage, lane);
            if (sum_s > most_s * (1.0 + 1e-12)) {
                most_s = sum_s;
                best = job_rank(job, stage, lane);
            }
        }
    return best;
}

struct view {
    const struct full *full;
    const struct step *step;
};

static enum ty_part part_of(const void *user, uint32_t task)
{
    const struct view *view = user;
    const uint32_t origin = view->full->origin[task];
    return origin == ENGINE_NONE ? TY_PART_BUBBLE : step_part(view->step, origin);
}

/* The timeline of one rank's compute stream in the first step (step_breakdown.c). */
static void read_breakdown(const struct full *full, const struct job *job, uint32_t rank,
                           struct step_result *out)
{
    const uint32_t stage = rank / job->stride % job->n_stages, lane = job_lane(job, rank);
    const struct step *step = job_template(job, job->shape[lane], job->klass[rank])->step;
    const struct view user = {full, step};
    const struct parts_view view = {full->engine, &user, part_of, NULL};
    struct parts parts = {{0}, {0}};
    double end_s = 0.0;
    for (uint32_t task = 0; task < engine_n_tasks(step->engine); task++) {
        if (step->info[task].stage != stage || step->info[task].stream != STREAM_COMPUTE)
            continue;
        const uint32_t id = task_id(job, task, lane);
        const double start_s = engine_start_s(full->engine, id);
        parts_add_wait(&parts, &view, engine_binding(full->engine, id), end_s, start_s);
        end_s = engine_end_s(full->engine, id);
        step_add_task(step, task, end_s - start_s, &parts);
    }
    parts_add_wait(&parts, &view, engine_binding(full->engine, job->step_end[0]), end_s,
                   engine_end_s(full->engine, job->step_end[0]));
    parts_read(&parts, out->breakdown_s);
}

static void read_result(struct full *full, const struct full_request *request,
                        struct step_result *out)
{
    const struct job *job = &full->jobs[0];
    struct ty_fabric_report *report = &full->report;
    for (uint32_t i = 0; i < full->n_jobs; i++)
        full->job_step_s[i] =
            engine_end_s(full->engine, full->jobs[i].step_end[full->n_steps - 1]) / full->n_steps;
    report->slowest_rank = slowest_rank(full, job, request->folded->busiest_stage);
    report->n_tasks = engine_n_tasks(full->engine);
    report->n_events = engine_n_events(full->engine);
    *out = *request->folded;
    read_breakdown(full, job, report->slowest_rank, out);
    /* of all steps, as the first was divided */
    const double first_s = engine_end_s(full->engine, job->step_end[0]);
    out->time_s = full->job_step_s[0];
    for (uint32_t part = 0; full->n_steps > 1 && part < TY_N_PARTS; part++)
        out->breakdown_s[part] *= out->time_s / first_s;
    out->bubble_ratio = out->breakdown_s[TY_PART_BUBBLE] / out->time_s;
    out->n_events = report->n_events;
}

static ty_status run(struct full *full, const struct full_request *request, struct step_result *out,
                     struct ty_error *error)
{
    const struct engine_limits limits = {
        .max_events = request->options && request->options->max_events
                          ? request->options->max_events
                          : 2000000000u,
        .max_time_s = request->options ? request->options->max_time_s : 0.0};
    ty_status status = reserve(full, request->options, error);
    for (uint32_t link = 0; status == TY_OK && link < full->fabric.n_links; link++) {
        uint32_t id;
        const double capacity = full->fabric.capacity_bytes_per_s[link];
        status = engine_add_link(full->engine, capacity > 0.0 ? capacity : HUGE_VAL, true, &id);
    }
    for (uint32_t i = 0; status == TY_OK && i < full->n_jobs; i++)
        status = job_graph(full, &full->jobs[i], error);
    if (status == TY_OK)
        status = engine_run(full->engine, &limits, error);
    if (status == TY_OK)
        read_result(full, request, out);
    return status;
}

/* ---- the rung ------------------------------------------------------------------------------ */

static ty_status simulate(struct full *full, const struct full_request *request,
                          struct step_result *out, struct ty_error *error)
{
    struct ty_fabric_report *report = &full->report;
    ty_status status = open_jobs(full, request, error);
    if (status != TY_OK)
        return status;
    struct job *job = &full->jobs[0];
    report->n_ranks = job->n_ranks;
    report->n_links = full->fabric.n_links;
    report->folded_step_time_s = request->folded->time_s;
    report->n_jobs = full->n_jobs;
    report->job_step_s = full->job_step_s;
    report->n_micro = job->n_micro;
    report->n_replicas = job->plan.dp;
    status = full_traffic(full, job);
    if (status != TY_OK)
        return status;
    const char *why = full_why_not(full, job, request->scenario);
    report->folded = !why;
    text_format(report->why, sizeof report->why, "%s",
                why ? why : "every group of a kind has one signature");
    if (why)
        return run(full, request, out, error);
    *out = *request->folded;
    full->job_step_s[0] = out->time_s;
    report->slowest_rank = job_rank(job, out->busiest_stage, 0);
    return TY_OK;
}

ty_status full_simulate(struct full *full, const struct full_request *request,
                        struct step_result *out, struct ty_error *error)
{
    const struct ty_scenario *scenario = request->scenario;
    close_jobs(full);
    full->report = (struct ty_fabric_report){.folded = false};
    full->origin = NULL;
    arena_reset(&full->arena);
    engine_reset(full->engine);
    if (!(scenario->jitter_ratio >= 0.0) || scenario->jitter_ratio > 1.0)
        return error_set(error, TY_ERR_RANGE, "jitter", "is %g; legal: 0 to 1",
                         scenario->jitter_ratio);
    full->jitter_ratio = scenario->jitter_ratio;
    full->detailed = scenario->detailed;
    full->seed = request->options ? request->options->seed : 0;
    full->n_steps = scenario->n_steps > 0 ? scenario->n_steps : 1;
    return simulate(full, request, out, error); /* the jobs stay, for full_trace */
}
