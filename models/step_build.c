/* SPDX-License-Identifier: MIT
 *
 * The graph of one step. Every stage is built in the order of its schedule; the messages between
 * stages are edges added when all stages exist.
 *
 *   stage   step fixed -> passes -> gradient norm -> [all stages] -> optimizer
 *   pass    [parameters gathered] -> segment -> [gradients reduced] ... -> message
 *   joined  forward, backward -> both messages; both wait for both
 *
 * Messages: with TY_OVERLAP_PP on their own streams; without, the sender does not go on before
 * its message has arrived (the receiver waits for it anyway).
 * Host: where a stage has a pass that is issued slower than it runs, a host stream issues every
 * segment; segment i may start when segment i - 1 has been issued and its result counts when it
 * is issued itself. Elsewhere the host can never bind and is left out.
 * Transfers to and from the host run beside the pass they belong to and must be over before the
 * next segment starts: two sets of buffers. Parameters gathered for the first forward are those of
 * the optimizer before: a steady state.
 */
#include "models/step_internal.h"

/* State while one stage is built. Failures stick in `status`; nothing is added after one. */
struct builder {
    struct step *step;
    ty_status status;
    uint32_t at; /* the stage */
    struct stage *stage;
    uint32_t start;                  /* task: the fixed time of the step */
    uint32_t compute[2];             /* last segment, the one before */
    uint32_t host;                   /* last issue; ENGINE_NONE: the host never binds */
    uint32_t blocking[4];            /* the next segment waits for them: reduces, messages */
    uint32_t transfers[N_HOST_WAYS]; /* and for these, to and from the host */
    uint32_t last[N_STREAMS];
    struct segment *unreduced; /* gradients of the last segment, not yet sent */
    bool unreduced_last;       /* of the last micro-batch */
};

static const uint32_t STREAM_OF_SHARE[N_SHARES] = {STREAM_DENSE, STREAM_EXPERT};

static uint32_t add_form(struct builder *b, uint32_t form, const struct task_info *info)
{
    struct step *step = b->step;
    uint32_t id = ENGINE_NONE;
    if (b->status != TY_OK)
        return ENGINE_NONE;
    b->status = engine_add_like(step->engine, form, &id);
    if (b->status == TY_OK && !array_grow(&step->allocator, (void **)&step->info,
                                          &step->info_capacity, (size_t)id + 1, sizeof *info))
        b->status = TY_ERR_NOMEM;
    if (b->status != TY_OK)
        return ENGINE_NONE;
    step->info[id] = *info;
    b->last[info->stream] = id;
    return id;
}

static uint32_t make_form(struct builder *b, const struct engine_task *task,
                          const struct task_info *info)
{
    uint32_t form = ENGINE_NONE;
    struct engine_task placed = *task;
    placed.stream = info->kind == TASK_SYNC ? b->step->sync_stream : b->stage->stream[info->stream];
    if (b->status == TY_OK)
        b->status = engine_add_form(b->step->engine, &placed, &form);
    return form;
}

static uint32_t add(struct builder *b, const struct engine_task *task, const struct task_info *info)
{
    return add_form(b, make_form(b, task, info), info);
}

/* The same flow goes to the same stream each time. */
static uint32_t add_again(struct builder *b, struct flow *flow, const struct task_info *info)
{
    if (flow->form == 0)
        flow->form = make_form(b, &flow->task, info) + 1;
    return add_form(b, flow->form - 1, info);
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

static uint32_t add_flow(struct builder *b, struct flow *flow, struct task_info info,
                         enum task_kind kind, uint32_t stream)
{
    info.kind = kind;
    info.stream = (enum stream_kind)stream;
    return flow->used ? add_again(b, flow, &info) : ENGINE_NONE;
}

/* FSDP gathers one segment ahead: when the one before it starts. */
static void add_gathers(struct builder *b, struct flows *flows, const struct task_info *info,
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
static void add_reduces(struct builder *b, struct flows *flows, const struct task_info *info,
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

static void wait_for_transfers(struct builder *b, uint32_t task)
{
    for (uint32_t way = 0; way < N_HOST_WAYS; way++) {
        after(b, b->transfers[way], task);
        b->transfers[way] = ENGINE_NONE;
    }
}

/* Beside segment `id`: they start when the one before it and its transfers have ended. */
static void add_transfers(struct builder *b, const struct segment *segment, uint32_t id,
                          const uint32_t before[N_HOST_WAYS])
{
    for (uint32_t way = 0; way < N_HOST_WAYS; way++) {
        if (!(segment->transfer_s[way] > 0.0))
            continue;
        struct task_info info = b->step->info[id];
        info.kind = TASK_TRANSFER;
        info.stream = way == HOST_OUT ? STREAM_HOST_OUT : STREAM_HOST_IN;
        b->transfers[way] = add_fixed(b, segment->transfer_s[way], &info);
        after(b, b->compute[0] != ENGINE_NONE ? b->compute[0] : b->start, b->transfers[way]);
        after(b, before[HOST_OUT], b->transfers[way]);
        after(b, before[HOST_IN], b->transfers[way]);
    }
}

/* returns the compute task */
static uint32_t add_segment(struct builder *b, uint32_t index, struct task_info info)
{
    struct segment *segment = &b->step->segments[index];
    uint32_t gathered[N_SHARES] = {ENGINE_NONE, ENGINE_NONE};
    if (segment->has_flows)
        add_gathers(b, &segment->flows, &info, gathered);
    send_gradients(b);
    info.segment = index;
    const uint32_t id = add_again(b, &segment->compute, &info);
    for (uint32_t share = 0; share < N_SHARES; share++)
        after(b, gathered[share], id);
    for (uint32_t i = 0; i < 4; i++) {
        after(b, b->blocking[i], id);
        b->blocking[i] = ENGINE_NONE;
    }
    after(b, b->host, id);
    const uint32_t before[N_HOST_WAYS] = {b->transfers[HOST_OUT], b->transfers[HOST_IN]};
    wait_for_transfers(b, id);
    if (b->status == TY_OK)
        add_transfers(b, segment, id, before);
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

/* The task that makes the result of a pass available where it is needed; what was added last ends
 * the pass. */
static uint32_t add_message(struct builder *b, uint32_t place, enum pass_kind kind,
                            struct task_info info)
{
    const struct step *step = b->step;
    const bool forward = kind == PASS_FORWARD;
    /* Where the result goes is where the other direction comes from. */
    const uint32_t to =
        pipeline_source(&step->pipeline, place, forward ? PASS_BACKWARD : PASS_FORWARD);
    if (to == ENGINE_NONE || (to % step->n_stages == b->at && step->n_stages > 1))
        return b->compute[0];
    const bool round = step->pipeline.shape == PIPELINE_ROUND;
    const bool back = round ? !forward : to % step->n_stages < b->at;
    info.kind = TASK_SEND;
    info.stream = back ? STREAM_BACKWARD : STREAM_FORWARD;
    if (!b->stage->send[back].used)
        return b->compute[0];
    const uint32_t id = add_again(b, &b->stage->send[back], &info);
    after(b, b->compute[0], id);
    after(b, b->host, id);
    if (!(step->plan->overlap & TY_OVERLAP_PP))
        b->blocking[2 + !forward] = id;
    return id;
}

static struct pass_tasks *pass_tasks(const struct step *step, uint32_t place, uint32_t micro,
                                     bool backward)
{
    return &step->passes[((size_t)place * step->n_micro + micro) * 2 + backward];
}

/* The segments of a pass; `beside`: it runs beside one of the other direction. returns its first
 * task that needs a message. */
static uint32_t add_segments(struct builder *b, const struct pass *pass, bool beside,
                             const struct task_info *info)
{
    const struct step *step = b->step;
    const struct traffic *traffic = &step->traffic;
    const struct cut *cut =
        &step->cuts[N_PASS_KINDS * (pass->chunk * step->n_stages + b->at) + pass->kind];
    const bool forward = pass->kind == PASS_FORWARD;
    const bool first = pass->micro == pipeline_first_micro(&step->pipeline, pass->chunk);
    const bool last = pass->micro + 1 == pipeline_end_micro(&step->pipeline, pass->chunk);
    const bool gather = (traffic->gather_every && pass->kind != PASS_WGRAD) ||
                        (forward && traffic->gather_first && first);
    const bool reduce = (pass->kind == PASS_BACKWARD || pass->kind == PASS_WGRAD) &&
                        (traffic->reduce_every || (traffic->reduce_last && last));
    const bool pieces = gather || reduce;
    uint32_t first_task = ENGINE_NONE;
    if (cut->early != ENGINE_NONE && (pieces || !beside)) {
        struct task_info early = *info;
        early.kind = TASK_RECOMPUTE;
        add_segment(b, cut->early, early);
    }
    for (uint32_t i = 0; i < (pieces ? cut->n : 1); i++) {
        const uint32_t whole = beside ? cut->joined : cut->whole;
        const uint32_t index = pieces ? cut->first + i : whole;
        const uint32_t id = add_segment(b, index, *info);
        if (i == 0)
            first_task = id;
        b->unreduced = reduce ? &step->segments[index] : NULL;
        b->unreduced_last = last;
    }
    return first_task;
}

static struct task_info pass_info(const struct builder *b, const struct pass *pass)
{
    static const enum task_kind kinds[N_PASS_KINDS] = {TASK_FORWARD, TASK_BACKWARD, TASK_BACKWARD,
                                                       TASK_WGRAD};
    return (struct task_info){kinds[pass->kind], STREAM_COMPUTE, b->at,
                              pass->micro,       pass->chunk,    ENGINE_NONE};
}

/* A pass, or a forward and the backward joined to it. returns the number of passes. */
static uint32_t add_pass(struct builder *b, const struct pass *pass)
{
    const struct step *step = b->step;
    const uint32_t n = pass->joined ? 2 : 1;
    uint32_t first = ENGINE_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct task_info info = pass_info(b, &pass[i]);
        const uint32_t id = add_segments(b, &pass[i], pass->joined, &info);
        first = i == 0 ? id : first;
    }
    for (uint32_t i = 0; i < n && pass[i].kind != PASS_WGRAD; i++) {
        const uint32_t place = pass[i].chunk * step->n_stages + b->at;
        struct pass_tasks *tasks =
            pass_tasks(step, place, pass[i].micro, pass[i].kind != PASS_FORWARD);
        tasks->first = first;
        tasks->message = add_message(b, place, pass[i].kind, pass_info(b, &pass[i]));
    }
    return n;
}

static void add_stage(struct builder *b, const struct pass *order, uint32_t n_passes)
{
    const struct step *step = b->step;
    const struct task_info fixed = {.kind = TASK_FIXED, .stream = STREAM_COMPUTE, .stage = b->at};
    struct task_info info = {.stage = b->at, .segment = ENGINE_NONE};
    uint32_t ends[N_SHARES];
    b->start = b->stage->first_task = add_fixed(b, step_fixed_s(step), &fixed);
    for (uint32_t i = 0; i < n_passes;)
        i += add_pass(b, &order[i]);
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
    wait_for_transfers(b, b->stage->norm);
}

/* ---- between stages ----------------------------------------------------------------------- */

static void add_edges(struct builder *b)
{
    const struct step *step = b->step;
    const struct pipeline *pipeline = &step->pipeline;
    for (uint32_t place = 0; place < step->n_places; place++) {
        const uint32_t chunk = place / step->n_stages;
        const uint32_t sources[] = {pipeline_source(pipeline, place, PASS_FORWARD),
                                    pipeline_source(pipeline, place, PASS_BACKWARD)};
        const uint32_t end = pipeline_end_micro(pipeline, chunk);
        for (uint32_t micro = pipeline_first_micro(pipeline, chunk); micro < end; micro++)
            for (uint32_t backward = 0; backward < 2; backward++)
                if (sources[backward] != ENGINE_NONE)
                    after(b, pass_tasks(step, sources[backward], micro, backward)->message,
                          pass_tasks(step, place, micro, backward)->first);
    }
}

/* A tied table lives on the first and the last stage: their gradients are summed (handbook 2.5). */
static void add_tied(struct builder *b)
{
    struct step *step = b->step;
    const struct ty_model *model = &step->setting->model;
    struct stage *first = &step->stages[0], *last = &step->stages[step->n_stages - 1];
    if (b->status != TY_OK || !model->tied || model->lora_rank > 0 || step->n_stages == 1 ||
        step->pipeline.shape != PIPELINE_ROUND) /* else both are on one stage */
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

/* Two stages that hold copies of the same layers sum their (sharded) gradients. */
static void add_copies(struct builder *b)
{
    struct step *step = b->step;
    if (step->pipeline.shape != PIPELINE_TWO_WAYS)
        return;
    for (uint32_t at = 0; b->status == TY_OK && at < step->n_stages / 2; at++) {
        const uint32_t other = step->n_stages - 1 - at;
        struct stage *const pair[] = {&step->stages[at], &step->stages[other]};
        struct collective sum = {.op = COLLECTIVE_ALL_REDUCE};
        struct flow flow;
        for (uint32_t share = 0; share < N_SHARES; share++)
            sum.payload_bytes +=
                step->traffic.grad_bytes * pair[0]->held.trained[share] /
                (step->plan->sharding == TY_SHARDING_NONE ? 1 : step->traffic.shard[share].size);
        step_pair_shape(step, at, other, &sum.shape);
        b->status = step_flow(step, at, other, &sum, 1.0, &flow);
        b->stage = pair[0];
        const struct task_info info = {.stage = at, .segment = ENGINE_NONE};
        const uint32_t id = add_flow(b, &flow, info, TASK_COPIES, STREAM_REPLICA);
        for (uint32_t i = 0; i < 2; i++) {
            for (uint32_t j = 0; j < 5; j++)
                after(b, pair[i]->grads[j], id);
            after(b, id, pair[i]->norm);
        }
    }
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
                        .blocking = {ENGINE_NONE, ENGINE_NONE, ENGINE_NONE, ENGINE_NONE},
                        .transfers = {ENGINE_NONE, ENGINE_NONE}};
    for (uint32_t i = 0; i < N_STREAMS; i++)
        b.last[i] = ENGINE_NONE;
    step_held_stage(step, at, &b.stage->held);
    b.status = step_flows(step, at, &b.stage->held, step->traffic.gather_end,
                          step->traffic.reduce_end, &b.stage->flows);
    return b;
}

ty_status step_build(struct step *step)
{
    struct pass *order =
        arena_get(&step->arena, pipeline_most_passes(&step->pipeline), sizeof *order);
    step->passes =
        arena_get(&step->arena, 2 * (size_t)step->n_places * step->n_micro, sizeof *step->passes);
    if (!order || !step->passes)
        return TY_ERR_NOMEM;
    struct builder b = {.step = step};
    for (uint32_t at = 0; b.status == TY_OK && at < step->n_stages; at++) {
        const uint32_t n_passes = pipeline_order(&step->pipeline, at, order);
        b = open_stage(step, at);
        add_stage(&b, order, n_passes);
    }
    add_edges(&b);
    add_tied(&b);
    add_copies(&b);
    add_tail(&b);
    return b.status;
}
