/* SPDX-License-Identifier: MIT
 *
 * A program on the links, in two ways.
 *
 *   one weighted flow    a round of a phase takes its longest hop plus the time of the link with
 * the most bytes for its rate; chunks follow each other at the pace of the slowest phase or of the
 * link that is busy longest in all phases together: T = sum_p r_p t_p + (c - 1) max(max_p r_p t_p,
 * max_link bytes / rate) send by send         tasks on the engine; a send of a rank waits for what
 * it sent and received in the phase before, chunk by chunk
 */
#include "models/collective_program.h"

#include <math.h>
#include <string.h>

static void path_of(const struct program_run *run, const struct send *send,
                    struct fabric_path *path)
{
    const struct fabric *fabric = run->fabric;
    const uint32_t from = run->gpus[send->from], to = run->gpus[send->to];
    const uint64_t key = (uint64_t)from << 32 | to;
    path->n = 0;
    path->cut = false;
    if (send->kind == SEND_MESSAGE) {
        fabric_message(fabric, from, to, key, send->bytes, path);
    } else if (send->kind == SEND_SWITCH) {
        fabric_add(fabric, FABRIC_PORT, from, 0, send->bytes, path);
        fabric_add(fabric, FABRIC_PORT, from, 1, send->in_bytes, path);
    } else {
        const bool across = fabric_level(fabric, from, to) > TY_LEVEL_LEAF;
        fabric_network(fabric, from, to, key, 0, across, send->bytes, path);
        fabric_network(fabric, to, from, key, 1, across, send->in_bytes, path);
    }
}

static double hop_of(const struct program_run *run, const struct send *send)
{
    const uint32_t from = run->gpus[send->from], to = run->gpus[send->to];
    return run->hop_s[send->kind == SEND_NETWORK ||
                      fabric_level(run->fabric, from, to) > TY_LEVEL_DOMAIN];
}

/* ---- one weighted flow --------------------------------------------------------------------- */

/* Loads of one phase, and over all of them. [n_links] */
struct loads {
    double *now_bytes, *all_bytes;
};

/* Longest hop and busiest link of one round of a phase. */
static bool round_time(const struct program *program, const struct program_run *run,
                       const struct phase *phase, const struct loads *loads, double *hop_s,
                       double *bytes_s)
{
    struct fabric_path path;
    *hop_s = *bytes_s = 0.0;
    for (uint32_t pass = 0; pass < 2; pass++) /* load, then read and clear */
        for (uint32_t i = phase->first; i < phase->first + phase->n; i++) {
            const struct send *send = &program->sends[i];
            path_of(run, send, &path);
            if (path.cut)
                return false;
            *hop_s = fmax(*hop_s, hop_of(run, send));
            for (uint32_t u = 0; u < path.n; u++) {
                double *now = &loads->now_bytes[path.use[u].link];
                if (pass == 0) {
                    *now += path.use[u].bytes_per_work;
                    continue;
                }
                *bytes_s =
                    fmax(*bytes_s, *now / run->fabric->capacity_bytes_per_s[path.use[u].link]);
                loads->all_bytes[path.use[u].link] += *now * phase->n_rounds;
                *now = 0.0;
            }
        }
    return true;
}

static bool sum_phases(const struct program *program, const struct program_run *run,
                       const struct loads *loads, double *latency_s, double *bytes_s)
{
    double pace_s = 0.0;
    *latency_s = *bytes_s = 0.0;
    for (uint32_t i = 0; i < program->n_phases; i++) {
        const struct phase *phase = &program->phases[i];
        double hop_s, round_s;
        if (!round_time(program, run, phase, loads, &hop_s, &round_s))
            return false;
        *latency_s += phase->n_rounds * hop_s;
        *bytes_s += phase->n_rounds * round_s;
        pace_s = fmax(pace_s, phase->n_rounds * (hop_s + round_s));
    }
    for (uint32_t link = 0; link < run->fabric->n_links; link++)
        if (loads->all_bytes[link] > 0.0)
            pace_s = fmax(pace_s, loads->all_bytes[link] / run->fabric->capacity_bytes_per_s[link]);
    *bytes_s += (program->n_chunks - 1.0) * pace_s;
    return true;
}

bool program_time(const struct program *program, const struct program_run *run,
                  const struct ty_allocator *allocator, double *latency_s, double *bytes_s)
{
    const struct ty_allocator source = allocator_or_default(allocator);
    const size_t n = run->fabric->n_links;
    double *scratch = source.alloc(source.user, 2 * n * sizeof *scratch);
    if (!scratch)
        return false;
    memset(scratch, 0, 2 * n * sizeof *scratch);
    const struct loads loads = {scratch, scratch + n};
    const bool good = sum_phases(program, run, &loads, latency_s, bytes_s);
    source.release(source.user, scratch, 2 * n * sizeof *scratch);
    return good;
}

/* ---- send by send -------------------------------------------------------------------------- */

struct emitter {
    const struct program *program;
    const struct program_run *run;
    struct engine *engine;
    const struct engine_task *like;
    const uint32_t *device;
    uint32_t first_link;
    struct engine_task *tasks; /* [n_sends]: all but their peers */
    uint32_t *gate;            /* [n_ranks]: what a rank's next sends wait for */
    uint32_t *next_gate;       /* [n_ranks]: the same after this phase */
    ty_status status;
};

static void edge(struct emitter *e, uint32_t before, uint32_t after)
{
    if (e->status == TY_OK && before != ENGINE_NONE && after != ENGINE_NONE)
        e->status = engine_add_edge(e->engine, before, after);
}

static uint32_t add(struct emitter *e, const struct engine_task *task)
{
    uint32_t id = ENGINE_NONE;
    if (e->status == TY_OK)
        e->status = engine_add_task(e->engine, task, &id);
    return id;
}

static uint32_t add_join(struct emitter *e)
{
    struct engine_task task = {.class_ = ENGINE_HOST,
                               .cap_work_per_s = 1.0,
                               .route = ENGINE_NONE,
                               .device = {ENGINE_NONE, ENGINE_NONE}};
    if (e->status == TY_OK)
        e->status = engine_add_stream(e->engine, &task.stream);
    return add(e, &task);
}

/* A send as a task on a stream of its own, which it keeps for all chunks. Where it is to be faster
 * than its links would allow, it needs as much less of them. */
static ty_status make_task(struct emitter *e, const struct send *send, uint32_t n_rounds,
                           struct engine_task *task)
{
    struct fabric_path path;
    /* The larger direction is the work: links are shared fairly by what really moves. */
    const double work_bytes = fmax(send->bytes, send->in_bytes);
    double longest_s = 0.0;
    path_of(e->run, send, &path);
    if (path.cut)
        return TY_ERR_RANGE;
    for (uint32_t u = 0; u < path.n; u++) {
        struct fluid_use *use = &path.use[u];
        longest_s =
            fmax(longest_s, use->bytes_per_work / e->run->fabric->capacity_bytes_per_s[use->link]);
        use->bytes_per_work *= fmin(1.0, e->run->time_ratio) / work_bytes;
        use->link += e->first_link;
    }
    *task = *e->like;
    task->n_rounds = n_rounds;
    task->peer = ENGINE_NONE;
    task->latency_s = e->run->latency_ratio * hop_of(e->run, send);
    task->work = work_bytes;
    task->cap_work_per_s =
        longest_s > 0.0 ? work_bytes / (e->run->time_ratio * longest_s) : HUGE_VAL;
    task->route = ENGINE_NONE;
    task->device[0] = e->device ? e->device[send->from] : ENGINE_NONE;
    task->device[1] = ENGINE_NONE;
    ty_status status = engine_add_stream(e->engine, &task->stream);
    if (status == TY_OK && path.n > 0)
        status = engine_add_route(e->engine, path.use, path.n, &task->route);
    return status;
}

/* The rank's next gate waits for a send; it is made when first touched. */
static void touch(struct emitter *e, uint32_t rank, uint32_t send)
{
    if (e->next_gate[rank] == e->gate[rank]) {
        e->next_gate[rank] = add_join(e);
        edge(e, e->gate[rank], e->next_gate[rank]);
    }
    edge(e, send, e->next_gate[rank]);
}

/* A switch adds or copies for all: everybody's next sends wait for everybody's. */
static void join_all(struct emitter *e, const struct phase *phase, uint32_t first)
{
    const uint32_t join = add_join(e);
    for (uint32_t i = 0; i < phase->n; i++)
        edge(e, first + i, join);
    for (uint32_t rank = 0; rank < e->program->n_ranks; rank++)
        e->next_gate[rank] = join;
}

static void emit_phase(struct emitter *e, const struct phase *phase)
{
    const struct send *sends = &e->program->sends[phase->first];
    const uint32_t first = engine_n_tasks(e->engine);
    for (uint32_t i = 0; i < phase->n; i++) {
        struct engine_task task = e->tasks[phase->first + i];
        if (sends[i].peer != UINT32_MAX && phase->n_rounds > 1)
            task.peer = first + sends[i].peer;
        edge(e, e->gate[sends[i].from], add(e, &task));
    }
    memcpy(e->next_gate, e->gate, e->program->n_ranks * sizeof *e->gate);
    if (sends[0].kind != SEND_MESSAGE) {
        join_all(e, phase, first);
    } else {
        for (uint32_t i = 0; i < phase->n; i++) {
            touch(e, sends[i].from, first + i);
            touch(e, sends[i].to, first + i);
        }
    }
    uint32_t *swap = e->gate;
    e->gate = e->next_gate;
    e->next_gate = swap;
}

static void emit(struct emitter *e, uint32_t start, uint32_t end)
{
    const struct program *program = e->program;
    for (uint32_t p = 0; p < program->n_phases; p++)
        for (uint32_t i = 0; e->status == TY_OK && i < program->phases[p].n; i++)
            e->status =
                make_task(e, &program->sends[program->phases[p].first + i],
                          program->phases[p].n_rounds, &e->tasks[program->phases[p].first + i]);
    for (uint32_t chunk = 0; e->status == TY_OK && chunk < program->n_chunks; chunk++) {
        for (uint32_t rank = 0; rank < program->n_ranks; rank++)
            e->gate[rank] = start;
        for (uint32_t p = 0; e->status == TY_OK && p < program->n_phases; p++)
            emit_phase(e, &program->phases[p]);
        for (uint32_t rank = 0; end != ENGINE_NONE && rank < program->n_ranks; rank++)
            if (e->gate[rank] != start)
                edge(e, e->gate[rank], end);
    }
}

ty_status program_emit(const struct program *program, const struct program_run *run,
                       struct engine *engine, uint32_t first_link, uint32_t start, uint32_t end,
                       const struct engine_task *like, const uint32_t *device)
{
    struct emitter e = {.program = program,
                        .run = run,
                        .engine = engine,
                        .like = like,
                        .device = device,
                        .first_link = first_link};
    struct arena arena;
    arena_init(&arena, &program->allocator);
    e.tasks = arena_get(&arena, program->n_sends, sizeof *e.tasks);
    e.gate = arena_get(&arena, program->n_ranks, sizeof *e.gate);
    e.next_gate = arena_get(&arena, program->n_ranks, sizeof *e.next_gate);
    if (e.tasks && e.gate && e.next_gate)
        emit(&e, start, end);
    else
        e.status = TY_ERR_NOMEM;
    arena_destroy(&arena);
    return e.status;
}
