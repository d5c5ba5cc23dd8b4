/* SPDX-License-Identifier: MIT
 *
 * Free GPUs, but my gang cannot start: a snapshot of the pool, the reason, and what would help.
 *
 * Moves are found greedily: in the domain that holds most of the gang now, the node that lacks the
 * fewest GPUs to hold one more worker gives up its smallest sufficient job, which must fit
 * elsewhere, until the gang fits. */
#include "models/pool.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

enum { FULL = 1 << 30 }; /* more than any node's GPUs */
enum { MAX_MOVES = sizeof((struct ty_pool_verdict *)0)->moves / sizeof(struct ty_pool_move) };

const char *ty_pool_reason_text(int reason)
{
    static const char *const texts[] = {
        "it runs or has run",
        "too few free GPUs",
        "enough free GPUs, in the wrong places",
        "enough free GPUs, but cores or host memory beside them are taken",
        "it would fit; the policy lets others go first or its quota is used",
        "it does not fit on the empty cluster",
    };
    return reason >= 0 && reason <= TY_POOL_NEVER ? texts[reason] : "";
}

/* ---- what fits where ---------------------------------------------------------------------- */

static uint32_t domain_of(const struct pool_sim *sim, uint32_t node, int level)
{
    if (level == TY_POOL_NODE)
        return node;
    if (level == TY_POOL_LEAF)
        return sim->nodes[node].leaf;
    return level == TY_POOL_POD ? sim->nodes[node].pod : 0;
}

/* Domains of the shape's level that hold all of its workers. */
static uint32_t count_domains(struct pool_sim *sim, const struct pool_room *room,
                              const struct pool_shape *shape)
{
    const uint32_t n_domains = sim->n_nodes > sim->n_pods ? sim->n_nodes : sim->n_pods;
    uint64_t *workers = arena_get(&sim->arena, n_domains, sizeof *workers);
    if (!workers) {
        sim->out_of_memory = true;
        return 0;
    }
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        workers[domain_of(sim, i, shape->level)] += place_workers(sim, room, shape, i);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_domains; i++)
        n += workers[i] >= shape->gpus / shape->worker;
    return n;
}

static int reason_of(struct pool_sim *sim, const struct pool_shape *shape)
{
    switch (pool_blocked_by(sim, shape)) {
    case POOL_BLOCKED_CAPACITY:
        return TY_POOL_CAPACITY;
    case POOL_BLOCKED_POLICY:
        return TY_POOL_BEHIND;
    case POOL_BLOCKED_SHAPE:
        break;
    }
    struct pool_shape gpus_only = *shape;
    gpus_only.cpus = gpus_only.mem_bytes = 0.0;
    const uint32_t pieces = place_find(sim, &sim->room, &gpus_only, shape->gpus);
    place_free(sim, pieces);
    return pieces == POOL_NONE ? TY_POOL_FRAGMENTED : TY_POOL_HOST;
}

/* ---- moves -------------------------------------------------------------------------------- */

/* GPUs a node lacks to hold one more worker of `unit` GPUs; UINT32_MAX: it never will. */
static uint32_t lacks(const struct pool_sim *sim, const struct pool_shape *shape, uint32_t node,
                      uint32_t unit)
{
    const int32_t free_gpus = sim->spare.gpus[node];
    if (!(sim->nodes[node].group & shape->groups) || sim->nodes[node].down || free_gpus < 0)
        return UINT32_MAX;
    const uint32_t next = ((uint32_t)free_gpus / unit + 1) * unit;
    return next <= sim->nodes[node].gpus ? next - (uint32_t)free_gpus : UINT32_MAX;
}

/* A job that lies on that node alone and has not moved: the smallest that frees `lack`, else the
 * largest. */
static uint32_t job_to_move(const struct pool_sim *sim, uint32_t node, uint32_t lack)
{
    uint32_t best = POOL_NONE, best_gpus = 0;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const struct pool_job *job = &sim->jobs[sim->running[i]];
        const struct pool_piece *piece = &sim->pieces[job->pieces];
        if (!job->keep || piece->node != node || piece->next != POOL_NONE ||
            piece->slot != POOL_NONE)
            continue;
        const bool better =
            best_gpus >= lack ? job->gpus >= lack && job->gpus < best_gpus : job->gpus > best_gpus;
        if (best == POOL_NONE || better) {
            best = sim->running[i];
            best_gpus = job->gpus;
        }
    }
    return best;
}

/* Where the gang is to go: a leaf or pod of its level, or any node. */
struct target {
    const struct pool_shape *shape;
    uint32_t unit; /* GPUs that must come free on one node */
    uint32_t domain;
};

static bool in_domain(const struct pool_sim *sim, const struct target *target, uint32_t node)
{
    const int level = target->shape->level;
    return level == TY_POOL_ANY || level == TY_POOL_NODE ||
           domain_of(sim, node, level) == target->domain;
}

/* The leaf or pod that could hold the gang and has most room for it now. */
static uint32_t best_domain(struct pool_sim *sim, const struct pool_shape *shape)
{
    uint32_t best = 0;
    uint64_t most = 0;
    for (uint32_t domain = 0; domain < sim->n_nodes || domain < sim->n_pods; domain++) {
        uint64_t now = 0, empty = 0;
        for (uint32_t i = 0; i < sim->n_nodes; i++) {
            if (domain_of(sim, i, shape->level) != domain)
                continue;
            now += place_workers(sim, &sim->room, shape, i);
            empty += place_workers(sim, &sim->other, shape, i);
        }
        if (empty >= shape->gpus / shape->worker && now + 1 > most) {
            best = domain;
            most = now + 1;
        }
    }
    return best;
}

/* Moves the job off its node, and off the leaf or pod of the gang, in the scratch room. */
static bool move_away(struct pool_sim *sim, const struct target *target, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    const struct pool_shape *shape = &sim->shapes[job->shape];
    const uint32_t from = sim->pieces[job->pieces].node;
    const bool alone = target->shape->level == TY_POOL_ANY || target->shape->level == TY_POOL_NODE;
    job->keep = false;
    room_give(sim, &sim->spare, shape, job->pieces);
    /* Nodes that may not take it count as full for a moment. */
    int32_t *gpus = sim->spare.gpus;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (alone ? i == from : in_domain(sim, target, i))
            gpus[i] -= FULL;
    const uint32_t pieces = place_find(sim, &sim->spare, shape, job->gpus);
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (alone ? i == from : in_domain(sim, target, i))
            gpus[i] += FULL;
    room_take(sim, &sim->spare, shape, pieces == POOL_NONE ? job->pieces : pieces);
    place_free(sim, pieces);
    return pieces != POOL_NONE;
}

/* The node that lacks least and has a job to move. */
static uint32_t next_move(const struct pool_sim *sim, const struct target *target)
{
    uint32_t best = POOL_NONE, best_lack = UINT32_MAX;
    for (uint32_t i = 0; i < sim->n_nodes; i++) {
        const uint32_t lack = lacks(sim, target->shape, i, target->unit);
        if (lack >= best_lack || !in_domain(sim, target, i))
            continue;
        const uint32_t job = job_to_move(sim, i, lack);
        if (job != POOL_NONE) {
            best = job;
            best_lack = lack;
        }
    }
    return best;
}

static bool fits_spare(struct pool_sim *sim, const struct pool_shape *shape)
{
    const uint32_t pieces = place_find(sim, &sim->spare, shape, shape->gpus);
    place_free(sim, pieces);
    return pieces != POOL_NONE;
}

static void plan_moves(struct pool_sim *sim, const struct pool_shape *shape,
                       struct ty_pool_verdict *out)
{
    struct target target = {shape, shape->level == TY_POOL_NODE ? shape->gpus : shape->worker, 0};
    uint32_t n = 0;
    room_empty(sim, &sim->other);
    if (shape->level == TY_POOL_LEAF || shape->level == TY_POOL_POD)
        target.domain = best_domain(sim, shape);
    room_copy(sim, &sim->spare, &sim->room);
    for (uint32_t i = 0; i < sim->n_running; i++)
        sim->jobs[sim->running[i]].keep = true;
    bool fits = false;
    while (!fits && n < MAX_MOVES) {
        const uint32_t id = next_move(sim, &target);
        if (id == POOL_NONE)
            return;
        if (!move_away(sim, &target, id))
            continue;
        out->moves[n++] = (struct ty_pool_move){sim->jobs[id].origin, sim->jobs[id].gpus};
        fits = fits_spare(sim, shape);
    }
    out->n_moves = fits ? n : 0;
}

/* ---- words -------------------------------------------------------------------------------- */

static void advise(const struct pool_sim *sim, const struct pool_shape *shape,
                   struct ty_pool_verdict *out)
{
    static const char *const domains[] = {"cluster", "node", "leaf", "pod"};
    char *text = out->advice;
    const size_t bytes = sizeof out->advice;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < out->n_moves; i++)
        moved += out->moves[i].gpus;
    text_format(text, bytes, "It needs %u GPUs in workers of %u", shape->gpus, shape->worker);
    if (shape->level != TY_POOL_ANY)
        text_append(text, bytes, ", all in one %s", domains[shape->level]);
    text_append(text, bytes, "; %llu are free, %llu of them where a worker fits.",
                (unsigned long long)out->free_gpus, (unsigned long long)out->placeable);
    if (shape->level != TY_POOL_ANY)
        text_append(text, bytes, " When empty, %u domains could hold it; now %u.", out->domains_fit,
                    out->domains_free);
    if (out->reason == TY_POOL_BEHIND)
        text_append(text, bytes,
                    " It fits now: another policy, a higher priority or more quota starts it.");
    if (out->n_moves)
        text_append(text, bytes, " Moving %u running job%s (%u GPUs) elsewhere starts it now.",
                    out->n_moves, out->n_moves == 1 ? "" : "s", moved);
    else if (out->reason == TY_POOL_FRAGMENTED)
        text_append(text, bytes, " No short list of moves makes room.");
    if (out->reason == TY_POOL_FRAGMENTED && shape->level != TY_POOL_ANY &&
        out->placeable >= shape->gpus)
        text_append(text, bytes, " Spread over several domains it would start now.");
    if (!isnan(out->expected_s) && out->reason != TY_POOL_BEHIND)
        text_append(text, bytes, " Running jobs alone make room at %.0f s (in %.0f s).",
                    out->expected_s, out->expected_s - sim->now_s);
}

static void judge(struct pool_sim *sim, uint32_t id, struct ty_pool_verdict *out)
{
    const struct pool_job *job = &sim->jobs[id];
    const struct pool_shape *shape = &sim->shapes[job->shape];
    *out = (struct ty_pool_verdict){.time_s = sim->now_s, .expected_s = NAN};
    if (shape->refused) {
        out->reason = TY_POOL_NEVER;
        text_format(out->advice, sizeof out->advice, "%s.", shape->refused);
        return;
    }
    if (job->phase != POOL_WAITING)
        return;
    out->reason = reason_of(sim, shape);
    out->free_gpus = (uint64_t)pool_free_gpus(sim, shape);
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        out->placeable += (uint64_t)place_workers(sim, &sim->room, shape, i) * shape->worker;
    room_empty(sim, &sim->spare);
    out->domains_fit = count_domains(sim, &sim->spare, shape);
    out->domains_free = count_domains(sim, &sim->room, shape);
    out->expected_s = pool_reserve(sim, id);
    if (isinf(out->expected_s))
        out->expected_s = NAN;
    if (out->reason == TY_POOL_FRAGMENTED)
        plan_moves(sim, shape, out);
    advise(sim, shape, out);
}

ty_status ty_pool_explain(const struct ty_pool *pool, const struct ty_pool_job *jobs,
                          uint64_t n_jobs, uint64_t job, double time_s, struct ty_pool_verdict *out,
                          struct ty_error *error)
{
    if (job >= n_jobs)
        return error_set(error, TY_ERR_RANGE, "pool", "there is no such job");
    struct pool_sim sim;
    ty_status status = pool_sim_create(pool, jobs, n_jobs, &sim, error);
    if (status != TY_OK)
        return status;
    uint32_t id = 0;
    while (sim.jobs[id].origin != job)
        id++;
    const bool watch = isnan(time_s);
    status = pool_sim_run(&sim, watch ? (double)INFINITY : time_s, watch ? id : POOL_NONE, error);
    struct ty_pool_verdict verdict;
    if (status == TY_OK)
        judge(&sim, id, &verdict);
    if (status == TY_OK && sim.out_of_memory)
        status = error_set(error, TY_ERR_NOMEM, "pool", "out of memory");
    if (status == TY_OK)
        *out = verdict;
    pool_sim_destroy(&sim);
    return status;
}
