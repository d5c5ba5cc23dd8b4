/* SPDX-License-Identifier: MIT
 *
 * The graph of one step. Every stage is built in the order of its schedule; the messages between
 * stages are edges added when all stages exist.
 *
 *   stage   step fixed -> passes -> gradient norm -> [all stages] -> optimizer
 *   pass    [parameters gathered] -> segment -> [gradients reduced] ... -> message
 *
 * Messages: with TY_OVERLAP_PP on their own streams; without, the sender does not go on before
 * its message has arrived (the receiver waits for it anyway).
 * Host: where a stage has a pass that is issued slower than it runs, a host stream issues every
 * segment; segment i may start when segment i - 1 has been issued and its result counts when it
 * is issued itself. Elsewhere the host can never bind and is left out.
 * Parameters gathered for the first forward are those of the optimizer before: a steady state.
 */
#include "models/step_internal.h"

/* State while one stage is built. Failures stick in `status`; nothing is added after one. */
struct builder {
    struct step *step;
    ty_status status;
    uint32_t at; /* the stage */
    struct stage *stage;
    uint32_t start;       /* task: the fixed time of the step */
    uint32_t compute[2];  /* last segment, the one before */
    uint32_t host;        /* last issue; ENGINE_NONE: the host never binds */
    uint32_t blocking[3]; /* the next segment waits for them: reduces, message */
    uint32_t last[N_STREAMS];
    const struct segment *unreduced; /* gradients of the last segment, not yet sent */
    bool unreduced_last;             /* of the last micro-batch */
};

static const uint32_t STREAM_OF_SHARE[N_SHARES] = {STREAM_DENSE, STREAM_EXPERT};

static uint32_t add(struct builder *b, const struct engine_task *task, const struct task_info *info)
{
    struct step *step = b->step;
    uint32_t id = ENGINE_NONE;
    if (b->status != TY_OK)
        return ENGINE_NONE;
    struct engine_task placed = *task;
    placed.stream = info->kind == TASK_SYNC ? step->sync_stream : b->stage->stream[info->stream];
    b->status = engine_add_task(step->engine, &placed, &id);
    if (b->status == TY_OK && !array_grow(&step->allocator, (void **)&step->info,
                                          &step->info_capacity, (size_t)id + 1, sizeof *info))
        b->status = TY_ERR_NOMEM;
    if (b->status != TY_OK)
        return ENGINE_NONE;
    step->info[id] = *info;
    b->last[info->stream] = id;
    return id;
}

static void after(struct builder *b, uint32_t before, uint32_t task)
{
    if (b->status == TY_OK && before != ENGINE_NONE && task != ENGINE_NONE)
        b->status = engine_add_edge(b->step->engine, before, task);
}

/* A task that takes a fixed time and neither slows nor is slowed. */
static uint32_t add_fixed(struct builder *b, double time_s, const struct task_info *info)
{
    const struct engine_task task = {.class_ = ENGINE_HOST,
                                     .work = time_s,
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {ENGINE_NONE, ENGINE_NONE}};
    return add(b, &task, info);
}

static uint32_t add_compute(struct builder *b, double time_s, const struct task_info *info)
{
    const struct engine_task task = {.class_ = ENGINE_COMPUTE,
                                     .work = time_s,
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {b->stage->device, ENGINE_NONE}};
    return add(b, &task, info);
}

/* ---- data-parallel traffic ---------------------------------------------------------------- */

static uint32_t add_flow(struct builder *b, const struct flow *flow, struct task_info info,
                         enum task_kind kind, uint32_t stream)
{
    info.kind = kind;
    info.stream = (enum stream_kind)stream;
    return flow->used ? add(b, &flow->task, &info) : ENGINE_NONE;
}

/* FSDP gathers one segment ahead: when the one before it starts. */
static void add_gathers(struct builder *b, const struct flows *flows, const struct task_info *info,
                        uint32_t gathered[N_SHARES])
{
    const struct traffic *traffic = &b->step->traffic;
    const uint32_t ahead = traffic->overlap_param ? b->compute[1] : b->compute[0];
    for (uint32_t share = 0; share < N_SHARES; share++) {
        gathered[share] =
            add_flow(b, &flows->gather[share], *info, TASK_GATHER, STREAM_OF_SHARE[share]);
        after(b, b->start, gathered[share]);
        after(b, traffic->by_unit ? ahead : ENGINE_NONE, gathered[share]);
    }
}

/* replicas: also sum the shards over the replicas (once a step). ends: the last task per share. */
static void add_reduces(struct builder *b, const struct flows *flows, const struct task_info *info,
                        bool replicas, uint32_t ends[N_SHARES])
{
    for (uint32_t share = 0; share < N_SHARES; share++) {
        const uint32_t reduce =
            add_flow(b, &flows->reduce[share], *info, TASK_REDUCE, STREAM_OF_SHARE[share]);
        after(b, b->compute[0], reduce);
        after(b, b->host, reduce);
        ends[share] = reduce;
        if (!replicas || !flows->replicas[share].used)
            continue;
        ends[share] = add_flow(b, &flows->replicas[share], *info, TASK_REPLICAS, STREAM_REPLICA);
        after(b, reduce != ENGINE_NONE ? reduce : b->compute[0], ends[share]);
        after(b, b->host, ends[share]);
    }
}

/* The gradients of the last segment leave after the gather of the next one was issued, as the
 * host issues them. Without overlap the next segment waits for them. */
static void send_gradients(struct builder *b)
{
    uint32_t ends[N_SHARES];
    if (!b->unreduced)
        return;
    const struct task_info info = {.stage = b->at, .segment = ENGINE_NONE};
    add_reduces(b, &b->unreduced->flows, &info, b->unreduced_last, ends);
    for (uint32_t share = 0; share < N_SHARES && !b->step->traffic.overlap_grad; share++)
        b->blocking[share] = ends[share];
    b->unreduced = NULL;
}

/* ---- passes ------------------------------------------------------------------------------- */

/* returns the compute task */
static uint32_t add_segment(struct builder *b, uint32_t index, struct task_info info)
{
    const struct segment *segment = &b->step->segments[index];
    uint32_t gathered[N_SHARES];
    add_gathers(b, &segment->flows, &info, gathered);
    send_gradients(b);
    info.segment = index;
    const uint32_t id = add(b, &segment->compute, &info);
    for (uint32_t share = 0; share < N_SHARES; share++)
        after(b, gathered[share], id);
    for (uint32_t i = 0; i < 3; i++) {
        after(b, b->blocking[i], id);
        b->blocking[i] = ENGINE_NONE;
    }
    after(b, b->host, id);
    if (b->stage->host_binds) {
        const struct task_info issue = {TASK_ISSUE, STREAM_HOST, b->at,
                                        info.micro, info.chunk,  ENGINE_NONE};
        b->host = add_fixed(b, segment->host_s, &issue);
        after(b, b->start, b->host);
    }
    b->compute[1] = b->compute[0];
    b->compute[0] = id;
    return id;
}

/* The task that makes the result of the pass just added available where it is needed. */
static uint32_t add_message(struct builder *b, uint32_t slot, enum pass_kind kind,
                            struct task_info info)
{
    const struct step *step = b->step;
    const bool end = kind == PASS_FORWARD ? slot + 1 == step->n_slots : slot == 0;
    info.kind = TASK_SEND;
    info.stream = kind == PASS_FORWARD ? STREAM_FORWARD : STREAM_BACKWARD;
    if (end || !b->stage->send[kind].used)
        return b->compute[0];
    const uint32_t id = add(b, &b->stage->send[kind].task, &info);
    after(b, b->compute[0], id);
    after(b, b->host, id);
    if (!(step->plan->overlap & TY_OVERLAP_PP))
        b->blocking[2] = id;
    return id;
}

static struct pass_tasks *pass_tasks(const struct step *step, uint32_t slot, uint32_t micro,
                                     enum pass_kind kind)
{
    return &step->passes[((size_t)slot * step->n_micro + micro) * 2 + kind];
}

static void add_pass(struct builder *b, const struct pass *pass)
{
    const struct step *step = b->step;
    const struct traffic *traffic = &step->traffic;
    const uint32_t slot = pass->chunk * step->n_stages + b->at;
    const struct cut *cut = &step->cuts[2 * slot + pass->kind];
    const bool forward = pass->kind == PASS_FORWARD, last = pass->micro + 1 == step->n_micro;
    const bool gather =
        traffic->gather_every || (forward && traffic->gather_first && pass->micro == 0);
    const bool reduce = !forward && (traffic->reduce_every || (traffic->reduce_last && last));
    const struct task_info info = {forward ? TASK_FORWARD : TASK_BACKWARD,
                                   STREAM_COMPUTE,
                                   b->at,
                                   pass->micro,
                                   pass->chunk,
                                   ENGINE_NONE};
    struct pass_tasks *tasks = pass_tasks(step, slot, pass->micro, pass->kind);
    const uint32_t n = gather || reduce ? cut->n : 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t index = gather || reduce ? cut->first + i : cut->whole;
        const uint32_t id = add_segment(b, index, info);
        if (i == 0)
            tasks->first = id;
        b->unreduced = reduce ? &step->segments[index] : NULL;
        b->unreduced_last = last;
    }
    tasks->message = add_message(b, slot, pass->kind, info);
}

static void add_stage(struct builder *b, const struct pass *order)
{
    const struct step *step = b->step;
    const struct task_info fixed = {.kind = TASK_FIXED, .stream = STREAM_COMPUTE, .stage = b->at};
    struct task_info info = {.stage = b->at, .segment = ENGINE_NONE};
    uint32_t ends[N_SHARES];
    b->start = b->stage->first_task = add_fixed(b, step_fixed_s(step), &fixed);
    for (uint32_t i = 0; i < pipeline_n_passes(step->n_micro, step->n_chunks); i++)
        add_pass(b, &order[i]);
    send_gradients(b);
    if (step->traffic.reduce_end)
        add_reduces(b, &b->stage->flows, &info, true, ends);
    const uint32_t grads[] = {b->compute[0], b->host, b->last[STREAM_DENSE], b->last[STREAM_EXPERT],
                              b->last[STREAM_REPLICA]};
    info.kind = TASK_NORM;
    info.stream = STREAM_COMPUTE;
    b->stage->norm = add_compute(b, step_norm_s(step, &b->stage->held), &info);
    for (uint32_t i = 0; i < 5; i++) {
        b->stage->grads[i] = grads[i];
        after(b, grads[i], b->stage->norm);
    }
}

/* ---- between stages ----------------------------------------------------------------------- */

static void add_edges(struct builder *b)
{
    const struct step *step = b->step;
    for (uint32_t slot = 0; slot < step->n_slots; slot++)
        for (uint32_t i = 0; i < 2 * step->n_micro; i++) {
            const enum pass_kind kind = (enum pass_kind)(i % 2);
            const uint32_t source = pipeline_source(step->n_stages, step->n_chunks, slot, kind);
            if (source != ENGINE_NONE)
                after(b, pass_tasks(step, source, i / 2, kind)->message,
                      pass_tasks(step, slot, i / 2, kind)->first);
        }
}

/* A tied table lives on the first and the last stage: their gradients are summed (handbook 2.5). */
static void add_tied(struct builder *b)
{
    struct step *step = b->step;
    const struct ty_model *model = &step->setting->model;
    struct stage *first = &step->stages[0], *last = &step->stages[step->n_stages - 1];
    if (b->status != TY_OK || !model->tied || model->lora_rank > 0 || step->n_stages == 1)
        return;
    struct collective sum = {.op = COLLECTIVE_ALL_REDUCE,
                             .payload_bytes = (double)model->vocab * model->hidden /
                                              step->plan->tp * step->traffic.grad_bytes};
    struct flow flow;
    step_pair_shape(step, 0, step->n_stages - 1, &sum.shape);
    b->status = step_flow(step, 0, step->n_stages - 1, &sum, 1.0, &flow);
    b->stage = first;
    const struct task_info info = {.segment = ENGINE_NONE};
    const uint32_t id = add_flow(b, &flow, info, TASK_TIED, STREAM_REPLICA);
    for (uint32_t i = 0; i < 5; i++) {
        after(b, first->grads[i], id);
        after(b, last->grads[i], id);
    }
    after(b, id, first->norm);
    after(b, id, last->norm);
}

/* The global gradient norm joins all stages; then each updates its share. */
static void add_tail(struct builder *b)
{
    struct step *step = b->step;
    const struct task_info joined = {.kind = TASK_SYNC, .stream = STREAM_REPLICA};
    const struct engine_task sync = {.class_ = ENGINE_COMM,
                                     .latency_s = step_sync_s(step),
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {ENGINE_NONE, ENGINE_NONE}};
    b->stage = &step->stages[0];
    const uint32_t norm = add(b, &sync, &joined);
    for (uint32_t at = 0; at < step->n_stages; at++) {
        b->stage = &step->stages[at];
        after(b, b->stage->norm, norm);
        struct task_info info = {
            .kind = TASK_OPTIMIZER, .stream = STREAM_COMPUTE, .stage = at, .segment = ENGINE_NONE};
        const uint32_t id = add_compute(b, step_optimizer_s(step, &b->stage->held), &info);
        after(b, norm, id);
        for (uint32_t share = 0; share < N_SHARES && step->traffic.gather_end; share++)
            after(b, id,
                  add_flow(b, &b->stage->flows.gather[share], info, TASK_GATHER,
                           STREAM_OF_SHARE[share]));
    }
}

static struct builder open_stage(struct step *step, uint32_t at)
{
    struct builder b = {.step = step,
                        .at = at,
                        .stage = &step->stages[at],
                        .compute = {ENGINE_NONE, ENGINE_NONE},
                        .host = ENGINE_NONE,
                        .blocking = {ENGINE_NONE, ENGINE_NONE, ENGINE_NONE}};
    for (uint32_t i = 0; i < N_STREAMS; i++)
        b.last[i] = ENGINE_NONE;
    step_held_stage(step, at, &b.stage->held);
    b.status = step_flows(step, at, &b.stage->held, step->traffic.gather_end,
                          step->traffic.reduce_end, &b.stage->flows);
    return b;
}

ty_status step_build(struct step *step)
{
    const uint32_t n_passes = pipeline_n_passes(step->n_micro, step->n_chunks);
    struct pass *order = arena_get(&step->arena, n_passes, sizeof *order);
    step->passes = arena_get(&step->arena, (size_t)n_passes * step->n_stages, sizeof *step->passes);
    if (!order || !step->passes)
        return TY_ERR_NOMEM;
    struct builder b = {.step = step};
    for (uint32_t at = 0; b.status == TY_OK && at < step->n_stages; at++) {
        pipeline_order((enum ty_schedule)step->plan->schedule, step->n_stages, step->n_chunks,
                       step->n_micro, at, order);
        b = open_stage(step, at);
        add_stage(&b, order);
    }
    add_edges(&b);
    add_tied(&b);
    add_tail(&b);
    return b.status;
}
