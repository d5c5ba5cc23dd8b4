/* SPDX-License-Identifier: MIT
 *
 * Programs of the collective algorithms: who sends what to whom in which phase. */
#include "models/collective_program.h"

#include <math.h>

static const uint32_t NOBODY = UINT32_MAX;

struct writer {
    struct program *program;
    ty_status status;
};

static struct send *add(struct writer *w, uint32_t from, uint32_t to, double bytes)
{
    struct program *program = w->program;
    if (w->status != TY_OK || !(bytes > 0.0))
        return NULL;
    if (!array_grow(&program->allocator, (void **)&program->sends, &program->sends_capacity,
                    (size_t)program->n_sends + 1, sizeof *program->sends)) {
        w->status = TY_ERR_NOMEM;
        return NULL;
    }
    struct send *send = &program->sends[program->n_sends++];
    *send = (struct send){.from = from, .to = to, .peer = NOBODY, .bytes = bytes};
    return send;
}

static void open_phase(struct writer *w, uint32_t n_rounds)
{
    struct program *program = w->program;
    if (program->n_phases == PROGRAM_MAX_PHASES)
        w->status = TY_ERR_UNSUPPORTED;
    if (w->status == TY_OK)
        program->phases[program->n_phases] =
            (struct phase){.first = program->n_sends, .n_rounds = n_rounds};
}

static void close_phase(struct writer *w)
{
    struct program *program = w->program;
    if (w->status != TY_OK)
        return;
    struct phase *phase = &program->phases[program->n_phases];
    phase->n = program->n_sends - phase->first;
    program->n_phases += phase->n > 0 && phase->n_rounds > 0;
}

/* ---- rings --------------------------------------------------------------------------------- */

/* Rounds of a ring of n: all-reduce both ways. */
static uint32_t rounds(enum ty_collective_op op, uint32_t n)
{
    return (op == TY_ALL_REDUCE ? 2 : 1) * (n - 1);
}

/* A ring of members first, first + stride, ...: each sends to the next. */
static void add_ring(struct writer *w, uint32_t first, uint32_t stride, uint32_t n, double bytes)
{
    const uint32_t base = w->program->n_sends - w->program->phases[w->program->n_phases].first;
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        struct send *send = add(w, first + i * stride, first + (i + 1) % n * stride, bytes);
        if (send)
            send->peer = base + (i + n - 1) % n;
    }
}

/* Ring r of g visits domain after domain, each from its GPU r on round to GPU r - 1. */
static uint32_t on_ring(const struct program_group *group, uint32_t r, uint32_t i)
{
    return i / group->g * group->g + (i + r) % group->g;
}

static void write_ring(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    const uint32_t n = group->n, n_rings = group->k > 1 ? group->g : 1;
    open_phase(w, rounds(request->op, n));
    for (uint32_t r = 0; r < n_rings; r++)
        for (uint32_t i = 0; i < n; i++) {
            struct send *send = add(w, on_ring(group, r, i), on_ring(group, r, (i + 1) % n),
                                    request->payload_bytes / n_rings / n);
            if (send)
                send->peer = r * n + (i + n - 1) % n;
        }
    close_phase(w);
}

static void write_inside(struct writer *w, const struct program_group *group, double bytes)
{
    open_phase(w, group->g - 1);
    for (uint32_t domain = 0; domain < group->k; domain++)
        add_ring(w, domain * group->g, 1, group->g, bytes);
    close_phase(w);
}

static void write_two_level(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    const double shard_bytes = request->payload_bytes / group->g;
    if (request->op != TY_ALL_GATHER)
        write_inside(w, group, shard_bytes);
    if (group->k > 1) {
        open_phase(w, rounds(request->op, group->k));
        for (uint32_t i = 0; i < group->g; i++)
            add_ring(w, i, group->g, group->k, shard_bytes / group->k);
        close_phase(w);
    }
    if (request->op != TY_REDUCE_SCATTER)
        write_inside(w, group, shard_bytes);
}

/* ---- trees --------------------------------------------------------------------------------- */

/* Parent of domain i in a binary tree of k where the odd ones are leaves: the in-order tree, whose
 * levels are the powers of two in i. NOBODY: the root, 0. */
static uint32_t tree_parent(uint32_t i, uint32_t k)
{
    if (i == 0)
        return NOBODY;
    uint32_t bit = i & (~i + 1);
    uint32_t parent = (i ^ bit) | bit << 1;
    return parent < k ? parent : i ^ bit;
}

/* The second tree: shifted by one (k odd) or mirrored (k even), so that leaves become inner. */
static uint32_t second_tree(uint32_t i, uint32_t k)
{
    return k % 2 ? (i + 1) % k : k - 1 - i;
}

static uint32_t tree_depth(uint32_t i, uint32_t k)
{
    uint32_t depth = 0;
    for (; i != 0; i = tree_parent(i, k))
        depth++;
    return depth;
}

/* The edges between depth d and d - 1 of both trees, upwards or downwards, half the payload each.
 */
static void write_tree_level(struct writer *w, const struct program_group *group, uint32_t depth,
                             bool up, double bytes)
{
    open_phase(w, 1);
    for (uint32_t tree = 0; tree < 2; tree++)
        for (uint32_t i = 1; i < group->k; i++) {
            if (tree_depth(i, group->k) != depth)
                continue;
            const uint32_t parent = tree_parent(i, group->k);
            const uint32_t child_at = tree ? second_tree(i, group->k) : i;
            const uint32_t parent_at = tree ? second_tree(parent, group->k) : parent;
            for (uint32_t lane = 0; lane < group->g; lane++) {
                const uint32_t from = (up ? child_at : parent_at) * group->g + lane;
                add(w, from, (up ? parent_at : child_at) * group->g + lane, bytes / group->g / 2.0);
            }
        }
    close_phase(w);
}

static void write_trees(struct writer *w, const struct program_group *group, double bytes)
{
    uint32_t deepest = 0;
    for (uint32_t i = 1; i < group->k; i++)
        if (tree_depth(i, group->k) > deepest)
            deepest = tree_depth(i, group->k);
    for (uint32_t depth = deepest; depth > 0; depth--)
        write_tree_level(w, group, depth, true, bytes);
    for (uint32_t depth = 1; depth <= deepest; depth++)
        write_tree_level(w, group, depth, false, bytes);
}

static void write_switch(struct writer *w, uint32_t n, double out_bytes, double in_bytes)
{
    open_phase(w, 1);
    for (uint32_t i = 0; i < n; i++) {
        struct send *send = add(w, i, i, out_bytes);
        if (send) {
            send->kind = SEND_SWITCH;
            send->in_bytes = in_bytes;
        }
    }
    close_phase(w);
}

static void write_tree(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    write_inside(w, group, request->payload_bytes / group->g);
    write_trees(w, group, request->payload_bytes);
    write_inside(w, group, request->payload_bytes / group->g);
}

/* The switch reduces: every rank gets its share of the sum; then it multicasts the shares. */
static void write_nvls(struct writer *w, const struct program_request *request, bool trees)
{
    const struct program_group *group = &request->group;
    const double bytes = request->payload_bytes, share_bytes = bytes / group->g;
    if (request->op != TY_ALL_GATHER)
        write_switch(w, group->n, bytes, share_bytes);
    if (trees)
        write_trees(w, group, bytes);
    if (request->op != TY_REDUCE_SCATTER)
        write_switch(w, group->n, share_bytes, bytes);
}

static void write_sharp(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    const double shard_bytes = request->payload_bytes / group->g;
    if (group->g > 1)
        write_inside(w, group, shard_bytes);
    open_phase(w, 1);
    for (uint32_t i = 0; i < group->n; i++) {
        struct send *send = add(w, i, (i + group->g) % group->n, shard_bytes);
        if (send) {
            send->kind = SEND_NETWORK;
            send->in_bytes = shard_bytes;
        }
    }
    close_phase(w);
    if (group->g > 1)
        write_inside(w, group, shard_bytes);
}

/* ---- doubling ------------------------------------------------------------------------------ */

/* All-gather: with whom i exchanges is 1, 2, 4, ... places on; what it has doubles. */
static void write_pat(struct writer *w, const struct program_request *request)
{
    const uint32_t n = request->group.n;
    uint32_t distances[32], n_distances = 0;
    for (uint32_t distance = 1; distance < n; distance *= 2)
        distances[n_distances++] = distance;
    for (uint32_t s = 0; s < n_distances; s++) {
        const uint32_t at = request->op == TY_ALL_GATHER ? s : n_distances - 1 - s;
        const uint32_t distance = distances[at];
        const uint32_t blocks = distance < n - distance ? distance : n - distance;
        open_phase(w, 1);
        for (uint32_t i = 0; i < n; i++)
            add(w, i, (i + distance) % n, request->payload_bytes / n * blocks);
        close_phase(w);
    }
}

/* ---- all-to-all ---------------------------------------------------------------------------- */

static void write_direct(struct writer *w, const struct program_request *request)
{
    const uint32_t n = request->group.n;
    open_phase(w, 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t step = 1; step < n; step++)
            add(w, i, (i + step) % n, request->payload_bytes / n);
    close_phase(w);
}

/* What GPU i has for GPU j of every other domain goes to GPU j of its own first. */
static void write_pxn(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    const double bytes = request->payload_bytes / group->n;
    open_phase(w, 1);
    for (uint32_t i = 0; i < group->n; i++)
        for (uint32_t step = 1; step < group->g; step++)
            add(w, i, i / group->g * group->g + (i + step) % group->g, bytes * group->k);
    close_phase(w);
    open_phase(w, 1);
    for (uint32_t i = 0; i < group->n; i++)
        for (uint32_t step = 1; step < group->k; step++)
            add(w, i, (i + step * group->g) % group->n, bytes * group->g);
    close_phase(w);
}

/* One copy of a token to each of its nodes, then to its experts inside the node. copies: of the
 * other nodes a token goes to, on average. */
static void write_node_limited(struct writer *w, const struct program_request *request)
{
    const struct program_group *group = &request->group;
    const uint32_t others = group->k - 1;
    const double share =
        others > 0 && request->copies > 0.0 ? fmin(1.0, request->copies / others) : 1.0;
    open_phase(w, 1);
    for (uint32_t i = 0; i < group->n; i++)
        for (uint32_t step = 1; step < group->k; step++)
            add(w, i, (i + step * group->g) % group->n, share * request->payload_bytes / group->k);
    close_phase(w);
    open_phase(w, 1);
    for (uint32_t i = 0; i < group->n; i++)
        for (uint32_t step = 1; step < group->g; step++)
            add(w, i, i / group->g * group->g + (i + step) % group->g,
                request->payload_bytes / group->g);
    close_phase(w);
}

/* ---- choice -------------------------------------------------------------------------------- */

static bool can(const struct program_request *request)
{
    const bool reduces = request->op == TY_ALL_REDUCE, one = request->group.k == 1;
    const bool rings = reduces || request->op == TY_ALL_GATHER || request->op == TY_REDUCE_SCATTER;
    switch (request->algorithm) {
    case TY_ALGORITHM_RING:
    case TY_ALGORITHM_TWO_LEVEL:
        return rings;
    case TY_ALGORITHM_TREE:
    case TY_ALGORITHM_NVLS_TREE:
        return reduces && !one;
    case TY_ALGORITHM_SHARP:
        return reduces && !one;
    case TY_ALGORITHM_NVLS:
        return rings && one;
    case TY_ALGORITHM_PAT:
        return rings && !reduces;
    case TY_ALGORITHM_DIRECT:
        return request->op == TY_ALL_TO_ALL || request->op == TY_SEND_RECV;
    default:
        return request->op == TY_ALL_TO_ALL;
    }
}

static void write(struct writer *w, const struct program_request *request)
{
    switch (request->algorithm) {
    case TY_ALGORITHM_RING:
        write_ring(w, request);
        break;
    case TY_ALGORITHM_TREE:
        write_tree(w, request);
        break;
    case TY_ALGORITHM_NVLS:
    case TY_ALGORITHM_NVLS_TREE:
        write_nvls(w, request, request->algorithm == TY_ALGORITHM_NVLS_TREE);
        break;
    case TY_ALGORITHM_TWO_LEVEL:
        write_two_level(w, request);
        break;
    case TY_ALGORITHM_PAT:
        write_pat(w, request);
        break;
    case TY_ALGORITHM_SHARP:
        write_sharp(w, request);
        break;
    case TY_ALGORITHM_PXN:
        write_pxn(w, request);
        break;
    case TY_ALGORITHM_NODE_LIMITED:
        write_node_limited(w, request);
        break;
    default:
        write_direct(w, request);
        break;
    }
}

/* A message: the payload to the next rank. */
static void write_message(struct writer *w, const struct program_request *request)
{
    open_phase(w, 1);
    add(w, 0, 1, request->payload_bytes);
    close_phase(w);
}

ty_status program_make(const struct program_request *request, const struct ty_allocator *allocator,
                       struct program *out)
{
    struct program_request chunk = *request;
    *out = (struct program){.allocator = allocator_or_default(allocator),
                            .n_ranks = request->group.n,
                            .n_chunks = request->n_chunks ? request->n_chunks : 1};
    struct writer w = {.program = out};
    if (request->group.n < 2)
        return TY_OK;
    if (!can(request))
        return TY_ERR_UNSUPPORTED;
    chunk.payload_bytes /= out->n_chunks;
    if (request->op == TY_SEND_RECV)
        write_message(&w, &chunk);
    else
        write(&w, &chunk);
    return w.status;
}

void program_free(struct program *program)
{
    array_free(&program->allocator, program->sends, program->sends_capacity,
               sizeof *program->sends);
    program->sends = NULL;
    program->sends_capacity = 0;
}
