/* SPDX-License-Identifier: MIT
 *
 * The graph of a template, once for every rank:
 *
 *   pass         waits until all ranks of its block (tp, cp, ep) are ready; all take as long as the
 *                slowest of them, because they meet in every layer
 *   collective   starts when all members of the group are ready, and what follows it waits for the
 *                last of them: one start and one end task a group
 *   message      to the rank of the same lane on the other stage
 *   norm         one all-reduce of all ranks, as in the template
 *
 * Edges of the template become edges of each lane; the start of a block or group takes the place of
 * the task that is entered, the end of a group that of the task that is left. Steps that follow
 * each other are parted by a task that waits for everything.
 *
 *   time of a pass = (communication + compute / speed) (1 + jitter z),  z normal, per rank and task
 */
#include "models/full_internal.h"
#include "sim/error.h"
#include "sim/random.h"

#include <math.h>
#include <string.h>

/* The tasks of one template task that are not a rank's own. */
struct gate {
    uint32_t start, end; /* first block's or group's; ENGINE_NONE: there are none */
    const struct grouping *grouping;
};

struct graph {
    struct full *full;
    struct job *job;
    struct ty_error *error;
    ty_status status;
    uint32_t step;          /* number of the step */
    uint32_t shape;         /* whose edges are added */
    uint32_t **first;       /* [n_shapes][tasks]: the first rank's */
    struct gate **gates;    /* [n_shapes][tasks] */
    uint32_t *collectives;  /* [n_stages][N_STREAMS][n_collectives]: gate starts, shared by
                               the shapes; 0: not made */
    uint32_t n_collectives; /* most of one stage and stream */
    uint32_t **ordinal;     /* [n_shapes][n_stages * N_STREAMS]: collectives so far */
    uint32_t sync;          /* the norm's task */
    double *work_s;         /* [width] scratch: of the passes at hand */
    uint32_t *block_first;  /* [n_blocks]: place of a block among those of its shape */
};

static uint32_t n_tasks_of(const struct job *job, uint32_t shape)
{
    return engine_n_tasks(job_template(job, shape, 0)->step->engine);
}

static const struct engine_task *template_task(const struct job *job, uint32_t shape,
                                               uint32_t klass, uint32_t task)
{
    return engine_task_of(job_template(job, shape, klass)->step->engine, task);
}

static const struct task_info *info_of(const struct job *job, uint32_t shape, uint32_t task)
{
    return &job_template(job, shape, 0)->step->info[task];
}

static bool is_pass(const struct task_info *info, const struct engine_task *task)
{
    return task->class_ == ENGINE_COMPUTE && info->segment != ENGINE_NONE;
}

static bool is_collective(const struct job *job, uint32_t shape, const struct engine_task *task)
{
    return task->tag > 0 && !job_is_pair(&job_template(job, shape, 0)->step->sent[task->tag - 1]);
}

static uint32_t stream_of(const struct job *job, uint32_t stage, uint32_t lane,
                          enum stream_kind stream)
{
    return job->first_stream + (stage * job->width + lane) * N_STREAMS + (uint32_t)stream;
}

/* ---- tasks --------------------------------------------------------------------------------- */

static uint32_t add_like(struct graph *g, uint32_t form, uint32_t origin)
{
    struct full *full = g->full;
    uint32_t id = ENGINE_NONE;
    if (g->status == TY_OK)
        g->status = engine_add_like(full->engine, form, &id);
    if (g->status != TY_OK || g->job != &full->jobs[0] || g->step > 0)
        return id;
    if (id >= full->n_origins)
        g->status = TY_ERR_INTERNAL; /* full.c has counted wrongly */
    else
        full->origin[id] = origin;
    return g->status == TY_OK ? id : ENGINE_NONE;
}

static uint32_t add(struct graph *g, const struct engine_task *task, uint32_t origin)
{
    uint32_t form = ENGINE_NONE;
    if (g->status == TY_OK)
        g->status = engine_add_form(g->full->engine, task, &form);
    return add_like(g, form, origin);
}

/* A task that only waits, on a stream of its own. */
static uint32_t add_join(struct graph *g, uint32_t origin)
{
    struct engine_task task = {.class_ = ENGINE_HOST,
                               .cap_work_per_s = 1.0,
                               .route = ENGINE_NONE,
                               .device = {ENGINE_NONE, ENGINE_NONE}};
    if (g->status == TY_OK)
        g->status = engine_add_stream(g->full->engine, &task.stream);
    return add(g, &task, origin);
}

static uint32_t add_joins(struct graph *g, uint32_t n, uint32_t origin)
{
    const uint32_t first = add_join(g, origin);
    for (uint32_t i = 1; i < n; i++)
        add_join(g, origin);
    return first;
}

static void edge(struct graph *g, uint32_t before, uint32_t after)
{
    if (g->status == TY_OK && before != ENGINE_NONE && after != ENGINE_NONE)
        g->status = engine_add_edge(g->full->engine, before, after);
}

/* What the rank's layer-internal collectives take of a pass does not depend on its speed. */
static double communication_s(const struct segment *segment)
{
    return segment->part_s[TY_PART_TP] + segment->part_s[TY_PART_CP] + segment->part_s[TY_PART_EP];
}

static double work_s(const struct graph *g, uint32_t shape, uint32_t task, uint32_t rank)
{
    const struct job *job = g->job;
    const struct step *step = job_template(job, shape, job->klass[rank])->step;
    const double whole_s = engine_task_of(step->engine, task)->work;
    const uint32_t segment = step->info[task].segment;
    double work = whole_s;
    if (job->speed[rank] != 1.0) {
        const double fixed_s =
            segment == ENGINE_NONE ? 0.0 : communication_s(&step->segments[segment]);
        work = fixed_s + (whole_s - fixed_s) / job->speed[rank];
    }
    if (job->jitters && segment != ENGINE_NONE) {
        struct random_stream random;
        random_init(&random, g->full->seed,
                    ((uint64_t)(g->step + 1) << 56) + ((uint64_t)rank << 32 | task));
        work *= fmax(0.0, 1.0 + g->full->jitter_ratio * random_normal(&random));
    }
    return work;
}

/* Work of a pass on every lane of the shape: of the slowest of its block. */
static void fill_work(struct graph *g, uint32_t shape, uint32_t task, uint32_t stage, bool pass)
{
    const struct job *job = g->job;
    for (uint32_t lane = 0; lane < job->width; lane++)
        if (job->shape[lane] == shape)
            g->work_s[lane] = work_s(g, shape, task, job_rank(job, stage, lane));
    for (uint32_t lane = 0; pass && lane < job->width; lane++) {
        if (job->shape[lane] != shape || job->block_next[lane] > lane)
            continue; /* the last of the block: its next is the first */
        double most_s = g->work_s[lane];
        for (uint32_t at = job->block_next[lane]; at != lane; at = job->block_next[at])
            most_s = fmax(most_s, g->work_s[at]);
        g->work_s[lane] = most_s;
        for (uint32_t at = job->block_next[lane]; at != lane; at = job->block_next[at])
            g->work_s[at] = most_s;
    }
}

static uint32_t stage_of_device(const struct step *step, uint32_t device)
{
    uint32_t stage = 0;
    while (step->stages[stage].device != device)
        stage++;
    return stage;
}

/* The rank's task of this form of the template. */
static ty_status make_form(struct graph *g, struct template *template, uint32_t task, uint32_t lane,
                           uint32_t *form)
{
    struct job *job = g->job;
    const struct engine_task *source = engine_task_of(template->step->engine, task);
    const struct task_info *info = &template->step->info[task];
    struct engine_task out = *source;
    ty_status status = TY_OK;
    out.route = ENGINE_NONE;
    if (source->tag > 0)
        status = job_flow(g->full, job, template, source->tag, info->stage, lane, &out, g->error);
    else if (info->segment != ENGINE_NONE && source->class_ == ENGINE_COMPUTE)
        status =
            job_pass_route(g->full, job, template, info->segment, info->stage, lane, &out.route);
    if (source->class_ == ENGINE_COMPUTE && !job->even)
        out.work = g->work_s[lane];
    out.stream = stream_of(job, info->stage, lane, info->stream);
    for (uint32_t i = 0; i < 2; i++)
        out.device[i] = source->device[i] == ENGINE_NONE
                            ? ENGINE_NONE
                            : job->first_device +
                                  stage_of_device(template->step, source->device[i]) * job->width +
                                  lane;
    return status == TY_OK ? engine_add_form(g->full->engine, &out, form) : status;
}

/* Ranks repeat their forms; with jitter no two passes are alike. */
static void add_rank(struct graph *g, uint32_t shape, uint32_t task, uint32_t lane)
{
    struct job *job = g->job;
    const uint32_t rank = job_rank(job, info_of(job, shape, task)->stage, lane);
    struct template *template = job_template(job, shape, job->klass[rank]);
    const size_t at = (size_t)engine_form_of(template->step->engine, task) * job->width + lane;
    uint32_t form = template->form[at] - 1;
    if (template->form[at] == 0 || job->jitters) {
        g->status = make_form(g, template, task, lane, &form);
        template->form[at] = form + 1;
    }
    add_like(g, form, task);
}

/* The sends of a collective; they belong to its task. */
static void add_detail(struct graph *g, uint32_t shape, uint32_t task, const struct gate *gate)
{
    struct full *full = g->full;
    const uint32_t stage = info_of(g->job, shape, task)->stage;
    const uint32_t first = engine_n_tasks(full->engine);
    if (g->status == TY_OK)
        g->status = job_detail(full, g->job, job_template(g->job, shape, 0),
                               template_task(g->job, shape, 0, task)->tag, stage, gate->start,
                               gate->end, g->error);
    const uint32_t last = engine_n_tasks(full->engine);
    if (g->status != TY_OK || g->job != &full->jobs[0] || g->step > 0)
        return;
    if (last > full->n_origins)
        g->status = TY_ERR_INTERNAL; /* full.c has counted wrongly */
    for (uint32_t id = first; g->status == TY_OK && id < last; id++)
        full->origin[id] = task;
}

/* The start and end tasks of a collective, made by the first shape that comes to it. */
static void open_collective(struct graph *g, uint32_t shape, uint32_t task, struct gate *gate)
{
    struct job *job = g->job;
    const struct task_info *info = info_of(job, shape, task);
    const struct sent *sent =
        &job_template(job, shape, 0)->step->sent[template_task(job, shape, 0, task)->tag - 1];
    const uint32_t at = info->stage * N_STREAMS + (uint32_t)info->stream;
    const uint32_t ordinal = g->ordinal[shape][at]++;
    uint32_t *known = &g->collectives[(size_t)at * g->n_collectives + ordinal];
    gate->grouping = job_grouping(g->full, job, &sent->collective.shape);
    if (!gate->grouping) {
        g->status = TY_ERR_NOMEM;
        return;
    }
    const bool fresh = *known == 0;
    if (fresh)
        *known = 1 + add_joins(g, 2 * gate->grouping->n_groups, task);
    gate->start = *known - 1;
    gate->end = gate->start + gate->grouping->n_groups;
    if (fresh && g->full->detailed)
        add_detail(g, shape, task, gate);
}

static uint32_t n_blocks_of(const struct job *job, uint32_t shape)
{
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < job->width; lane++)
        n += job->shape[lane] == shape && job->block_next[lane] <= lane;
    return n;
}

static void add_tasks(struct graph *g, uint32_t shape)
{
    struct job *job = g->job;
    const uint32_t n_blocks = n_blocks_of(job, shape);
    for (uint32_t task = 0; g->status == TY_OK && task < n_tasks_of(job, shape); task++) {
        const struct engine_task *source = template_task(job, shape, 0, task);
        const struct task_info *info = info_of(job, shape, task);
        struct gate *gate = &g->gates[shape][task];
        const bool pass = is_pass(info, source);
        *gate = (struct gate){ENGINE_NONE, ENGINE_NONE, NULL};
        if (info->kind == TASK_SYNC) {
            struct engine_task sync = *source;
            if (g->sync == ENGINE_NONE) {
                g->status = engine_add_stream(g->full->engine, &sync.stream);
                g->sync = add(g, &sync, task);
            }
            continue;
        }
        if (pass && job->n_blocks < job->width)
            gate->start = add_joins(g, n_blocks, task);
        else if (is_collective(job, shape, source))
            open_collective(g, shape, task, gate);
        if (source->class_ == ENGINE_COMPUTE && !job->even)
            fill_work(g, shape, task, info->stage, pass);
        if (gate->grouping && g->full->detailed)
            continue;
        g->first[shape][task] = engine_n_tasks(g->full->engine);
        for (uint32_t lane = 0; g->status == TY_OK && lane < job->width; lane++)
            if (job->shape[lane] == shape)
                add_rank(g, shape, task, lane);
    }
}

/* ---- edges --------------------------------------------------------------------------------- */

static uint32_t own(const struct graph *g, uint32_t shape, uint32_t task, uint32_t lane)
{
    if (info_of(g->job, shape, task)->kind == TASK_SYNC)
        return g->sync;
    return g->first[shape][task] + g->job->order[lane];
}

static uint32_t entry(const struct graph *g, uint32_t shape, uint32_t task, uint32_t lane)
{
    const struct gate *gate = &g->gates[shape][task];
    if (gate->start == ENGINE_NONE)
        return own(g, shape, task, lane);
    return gate->start +
           (gate->grouping ? gate->grouping->number[lane] : g->block_first[g->job->block[lane]]);
}

static uint32_t leave(const struct graph *g, uint32_t shape, uint32_t task, uint32_t lane)
{
    const struct gate *gate = &g->gates[shape][task];
    return gate->end == ENGINE_NONE ? own(g, shape, task, lane)
                                    : gate->end + gate->grouping->number[lane];
}

static void add_lane_edges(struct graph *g, uint32_t shape, uint32_t before, uint32_t after)
{
    const struct job *job = g->job;
    for (uint32_t lane = 0; lane < job->width; lane++)
        if (job->shape[lane] == shape)
            edge(g, leave(g, shape, before, lane), entry(g, shape, after, lane));
}

static void on_edge(void *user, uint32_t before, uint32_t after)
{
    struct graph *g = user;
    add_lane_edges(g, g->shape, before, after);
}

static void add_edges(struct graph *g, uint32_t shape)
{
    const struct job *job = g->job;
    const struct engine *engine = job_template(job, shape, 0)->step->engine;
    g->shape = shape;
    engine_edges(engine, on_edge, g);
    for (uint32_t task = 0; g->status == TY_OK && task < n_tasks_of(job, shape); task++) {
        const struct gate *gate = &g->gates[shape][task];
        const uint32_t previous = engine_stream_previous(engine, task);
        if (gate->start == ENGINE_NONE)
            continue;
        if (previous != ENGINE_NONE)
            add_lane_edges(g, shape, previous, task);
        for (uint32_t lane = 0; lane < job->width; lane++) {
            if (job->shape[lane] != shape || (gate->grouping && g->full->detailed))
                continue;
            edge(g, entry(g, shape, task, lane), own(g, shape, task, lane));
            if (gate->end != ENGINE_NONE)
                edge(g, own(g, shape, task, lane), leave(g, shape, task, lane));
        }
    }
}

/* The end of the step waits for the last task of every stream. */
static uint32_t add_end(struct graph *g, uint32_t before)
{
    struct job *job = g->job;
    const uint32_t end = add_join(g, ENGINE_NONE);
    edge(g, g->sync, end);
    for (uint32_t shape = 0; shape < job->n_shapes; shape++) {
        const struct step *step = job_template(job, shape, 0)->step;
        uint32_t *last = g->ordinal[shape]; /* done with: the last task of each stream */
        for (uint32_t i = 0; i < job->n_stages * N_STREAMS; i++)
            last[i] = ENGINE_NONE;
        for (uint32_t task = 0; task < n_tasks_of(job, shape); task++)
            if (step->info[task].kind != TASK_SYNC)
                last[step->info[task].stage * N_STREAMS + (uint32_t)step->info[task].stream] = task;
        for (uint32_t i = 0; i < job->n_stages * N_STREAMS; i++)
            for (uint32_t lane = 0; last[i] != ENGINE_NONE && lane < job->width; lane++)
                if (job->shape[lane] == shape)
                    edge(g, leave(g, shape, last[i], lane), end);
        for (uint32_t stage = 0; before != ENGINE_NONE && stage < job->n_stages; stage++)
            for (uint32_t lane = 0; lane < job->width; lane++)
                if (job->shape[lane] == shape)
                    edge(g, before, own(g, shape, step->stages[stage].first_task, lane));
    }
    return end;
}

/* ---- one step ------------------------------------------------------------------------------ */

/* Most collectives on one stream of a stage; the shapes must agree, or their ranks would wait for
 * collectives that the others never start. */
static ty_status count_collectives(struct graph *g)
{
    const struct job *job = g->job;
    for (uint32_t shape = 0; shape < job->n_shapes; shape++) {
        uint32_t *count = g->ordinal[shape];
        for (uint32_t task = 0; task < n_tasks_of(job, shape); task++)
            if (is_collective(job, shape, template_task(job, shape, 0, task)))
                count[info_of(job, shape, task)->stage * N_STREAMS +
                      (uint32_t)info_of(job, shape, task)->stream]++;
        for (uint32_t i = 0; i < job->n_stages * N_STREAMS; i++) {
            if (count[i] > g->n_collectives)
                g->n_collectives = count[i];
            if (count[i] != g->ordinal[0][i])
                return error_set(g->error, TY_ERR_UNSUPPORTED, "n_micro",
                                 "of the replicas must be equal where every micro-batch gathers "
                                 "or reduces (zero2, zero3, hsdp)");
        }
    }
    for (uint32_t shape = 0; shape < job->n_shapes; shape++)
        memset(g->ordinal[shape], 0, job->n_stages * N_STREAMS * sizeof **g->ordinal);
    return TY_OK;
}

/* Places of blocks among those of their shape; a block is of one shape. */
static ty_status number_blocks(struct graph *g)
{
    const struct job *job = g->job;
    for (uint32_t shape = 0; shape < job->n_shapes; shape++) {
        uint32_t n = 0;
        for (uint32_t lane = 0; lane < job->width; lane++)
            if (job->shape[lane] == shape && job->block_next[lane] <= lane)
                g->block_first[job->block[lane]] = n++;
    }
    for (uint32_t lane = 0; lane < job->width; lane++)
        if (job->shape[job->block_next[lane]] != job->shape[lane])
            return error_set(g->error, TY_ERR_UNSUPPORTED, "n_micro",
                             "of replicas that share experts must be equal");
    return TY_OK;
}

static ty_status open_graph(struct graph *g)
{
    struct arena *arena = &g->full->arena;
    const struct job *job = g->job;
    const size_t n_streams = (size_t)job->n_stages * N_STREAMS;
    g->first = arena_get(arena, job->n_shapes, sizeof *g->first);
    g->gates = arena_get(arena, job->n_shapes, sizeof *g->gates);
    g->ordinal = arena_get(arena, job->n_shapes, sizeof *g->ordinal);
    g->work_s = arena_get(arena, job->width, sizeof *g->work_s);
    g->block_first = arena_get(arena, job->n_blocks, sizeof *g->block_first);
    if (!g->first || !g->gates || !g->ordinal || !g->work_s || !g->block_first)
        return TY_ERR_NOMEM;
    for (uint32_t shape = 0; shape < job->n_shapes; shape++) {
        g->first[shape] = arena_get(arena, n_tasks_of(job, shape), sizeof **g->first);
        g->gates[shape] = arena_get(arena, n_tasks_of(job, shape), sizeof **g->gates);
        g->ordinal[shape] = arena_get(arena, n_streams, sizeof **g->ordinal);
        if (!g->first[shape] || !g->gates[shape] || !g->ordinal[shape])
            return TY_ERR_NOMEM;
    }
    ty_status status = count_collectives(g);
    if (status != TY_OK)
        return status;
    g->collectives = arena_get(arena, n_streams * g->n_collectives + 1, sizeof *g->collectives);
    return g->collectives ? number_blocks(g) : TY_ERR_NOMEM;
}

static ty_status add_places(struct full *full, struct job *job)
{
    ty_status status = TY_OK;
    uint32_t id;
    for (uint32_t rank = 0; status == TY_OK && rank < job->n_ranks; rank++) {
        status = engine_add_device(full->engine, &id);
        if (rank == 0)
            job->first_device = id;
    }
    for (uint64_t i = 0; status == TY_OK && i < (uint64_t)job->n_ranks * N_STREAMS; i++) {
        status = engine_add_stream(full->engine, &id);
        if (i == 0)
            job->first_stream = id;
    }
    return status;
}

ty_status job_graph(struct full *full, struct job *job, struct ty_error *error)
{
    struct graph g = {.full = full, .job = job, .error = error};
    uint32_t end = ENGINE_NONE;
    job->step_end = arena_get(&full->arena, full->n_steps, sizeof *job->step_end);
    if (!job->step_end)
        return TY_ERR_NOMEM;
    g.status = add_places(full, job);
    for (g.step = 0; g.status == TY_OK && g.step < full->n_steps; g.step++) {
        g.sync = ENGINE_NONE;
        g.n_collectives = 0;
        g.status = open_graph(&g);
        for (uint32_t shape = 0; g.status == TY_OK && shape < job->n_shapes; shape++)
            add_tasks(&g, shape);
        for (uint32_t shape = 0; g.status == TY_OK && shape < job->n_shapes; shape++)
            add_edges(&g, shape);
        if (g.status == TY_OK)
            end = add_end(&g, end);
        job->step_end[g.step] = end;
        if (g.step == 0)
            job->first = g.first;
    }
    return g.status;
}
