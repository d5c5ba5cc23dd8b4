/* SPDX-License-Identifier: MIT
 *
 * Waiting jobs of each shape in the order of the policy: a treap (a search tree that is a heap in
 * hashed priorities, so O(log n) whatever the input) whose nodes are also a list. Each subtree
 * knows its shortest job: backfill finds the next that is short enough without trying all. */
#include "models/pool.h"

#include <math.h>

bool key_before(struct pool_key a, uint32_t job_a, struct pool_key b, uint32_t job_b)
{
    if (a.major != b.major)
        return a.major < b.major;
    if (a.minor != b.minor)
        return a.minor < b.minor;
    return job_a < job_b;
}

static bool before(const struct pool_sim *sim, uint32_t a, uint32_t b)
{
    return key_before(sim->jobs[a].key, a, sim->jobs[b].key, b);
}

/* Finaliser of a 32-bit hash; source: C. Wellons, hash-prospector, "lowbias32". */
static uint32_t height(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* The least length below a node, from its children. */
static void pull(struct pool_sim *sim, uint32_t tree)
{
    struct pool_job *job = &sim->jobs[tree];
    job->least_s = job->length_s;
    if (job->left != POOL_NONE)
        job->least_s = fmin(job->least_s, sim->jobs[job->left].least_s);
    if (job->right != POOL_NONE)
        job->least_s = fmin(job->least_s, sim->jobs[job->right].least_s);
}

/* Parts the tree into what goes before the job and what goes after it. */
static void split(struct pool_sim *sim, uint32_t tree, uint32_t job, uint32_t *low, uint32_t *high)
{
    if (tree == POOL_NONE) {
        *low = *high = POOL_NONE;
    } else if (before(sim, tree, job)) {
        *low = tree;
        split(sim, sim->jobs[tree].right, job, &sim->jobs[tree].right, high);
        pull(sim, tree);
    } else {
        *high = tree;
        split(sim, sim->jobs[tree].left, job, low, &sim->jobs[tree].left);
        pull(sim, tree);
    }
}

static uint32_t merge(struct pool_sim *sim, uint32_t low, uint32_t high)
{
    if (low == POOL_NONE || high == POOL_NONE)
        return low == POOL_NONE ? high : low;
    if (height(low) > height(high)) {
        sim->jobs[low].right = merge(sim, sim->jobs[low].right, high);
        pull(sim, low);
        return low;
    }
    sim->jobs[high].left = merge(sim, low, sim->jobs[high].left);
    pull(sim, high);
    return high;
}

static void make_live(struct pool_sim *sim, uint32_t shape)
{
    sim->live[sim->n_live++] = shape;
    sim->shapes[shape].live_place = sim->n_live;
    sim->shapes[shape].cursor = POOL_NONE;
}

static void make_dead(struct pool_sim *sim, uint32_t shape)
{
    const uint32_t place = sim->shapes[shape].live_place, last = sim->live[--sim->n_live];
    sim->live[place - 1] = last;
    sim->shapes[last].live_place = place;
    sim->shapes[shape].live_place = 0;
}

void order_insert(struct pool_sim *sim, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    struct pool_shape *shape = &sim->shapes[job->shape];
    job->key = sim->policy->key(sim, id);
    job->length_s = job_estimate_s(sim, id) - sim->now_s;
    job->before = job->after = POOL_NONE;
    uint32_t *at = &shape->root;
    while (*at != POOL_NONE && height(*at) >= height(id)) {
        const bool left = before(sim, id, *at);
        *(left ? &job->after : &job->before) = *at;
        sim->jobs[*at].least_s = fmin(sim->jobs[*at].least_s, job->length_s);
        at = left ? &sim->jobs[*at].left : &sim->jobs[*at].right;
    }
    split(sim, *at, id, &job->left, &job->right);
    pull(sim, id);
    *at = id;
    for (uint32_t i = job->left; i != POOL_NONE; i = sim->jobs[i].right)
        job->before = i;
    for (uint32_t i = job->right; i != POOL_NONE; i = sim->jobs[i].left)
        job->after = i;
    *(job->before == POOL_NONE ? &shape->first : &sim->jobs[job->before].after) = id;
    if (job->after != POOL_NONE)
        sim->jobs[job->after].before = id;
    if (!shape->live_place)
        make_live(sim, job->shape);
}

static void cut(struct pool_sim *sim, uint32_t *tree, uint32_t id)
{
    struct pool_job *job = &sim->jobs[*tree];
    if (*tree == id) {
        *tree = merge(sim, job->left, job->right);
        return;
    }
    cut(sim, before(sim, id, *tree) ? &job->left : &job->right, id);
    pull(sim, *tree);
}

void order_remove(struct pool_sim *sim, uint32_t id)
{
    struct pool_job *job = &sim->jobs[id];
    struct pool_shape *shape = &sim->shapes[job->shape];
    cut(sim, &shape->root, id);
    *(job->before == POOL_NONE ? &shape->first : &sim->jobs[job->before].after) = job->after;
    if (job->after != POOL_NONE)
        sim->jobs[job->after].before = job->before;
    if (shape->root == POOL_NONE)
        make_dead(sim, job->shape);
}

/* ---- the walk ----------------------------------------------------------------------------- */

void walk_begin(struct pool_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_live; i++)
        sim->shapes[sim->live[i]].cursor = sim->shapes[sim->live[i]].first;
}

uint32_t walk_peek(const struct pool_sim *sim)
{
    uint32_t best = POOL_NONE;
    double best_share = 0.0;
    for (uint32_t i = 0; i < sim->n_live; i++) {
        const struct pool_shape *shape = &sim->shapes[sim->live[i]];
        if (shape->cursor == POOL_NONE)
            continue;
        const double share = sim->policy->share ? sim->policy->share(sim, shape->queue) : 0.0;
        if (best == POOL_NONE || share < best_share ||
            (share == best_share && before(sim, shape->cursor, best))) {
            best = shape->cursor;
            best_share = share;
        }
    }
    return best;
}

uint32_t walk_next(struct pool_sim *sim)
{
    const uint32_t job = walk_peek(sim);
    if (job != POOL_NONE)
        sim->shapes[sim->jobs[job].shape].cursor = sim->jobs[job].after;
    return job;
}

void walk_block(struct pool_sim *sim, uint32_t job)
{
    sim->shapes[sim->jobs[job].shape].cursor = POOL_NONE;
}

/* The first job after `id` in the tree that is no longer than that. */
static uint32_t next_short(const struct pool_sim *sim, uint32_t tree, uint32_t id, double length_s)
{
    if (tree == POOL_NONE || sim->jobs[tree].least_s > length_s)
        return POOL_NONE;
    const struct pool_job *job = &sim->jobs[tree];
    if (!before(sim, id, tree))
        return next_short(sim, job->right, id, length_s);
    const uint32_t found = next_short(sim, job->left, id, length_s);
    if (found != POOL_NONE)
        return found;
    return job->length_s <= length_s ? tree : next_short(sim, job->right, id, length_s);
}

void walk_skip(struct pool_sim *sim, uint32_t job, double length_s)
{
    struct pool_shape *shape = &sim->shapes[sim->jobs[job].shape];
    shape->cursor = next_short(sim, shape->root, job, length_s);
}

/* By insertion: from pass to pass the order hardly changes. */
void order_running(struct pool_sim *sim,
                   struct pool_key (*key)(const struct pool_sim *sim, uint32_t job))
{
    uint32_t *running = sim->running;
    for (uint32_t i = 0; i < sim->n_running; i++) {
        const uint32_t id = running[i];
        sim->jobs[id].key = key(sim, id);
        uint32_t at = i;
        for (; at > 0 && before(sim, id, running[at - 1]); at--)
            running[at] = running[at - 1];
        running[at] = id;
    }
}
