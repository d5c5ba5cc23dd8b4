/* SPDX-License-Identifier: MIT
 *
 * Where a gang goes. pack: the lowest level of the topology that holds it (node, leaf, pod, all),
 * there the domain with the least room, there the fewest nodes, the last one best-fit. spread: one
 * worker after the other on the node with the most free GPUs. A part of a GPU goes to the shared
 * GPU it fills best. Ties: the lower number. Source: handbook 9.4. */
#include "models/pool.h"

#include <math.h>

static uint32_t new_piece(struct pool_sim *sim, struct pool_piece value)
{
    uint32_t id = sim->free_piece;
    if (id != POOL_NONE) {
        sim->free_piece = sim->pieces[id].next;
    } else if (!array_grow(&sim->arena.allocator, (void **)&sim->pieces, &sim->piece_capacity,
                           sim->n_pieces + 1, sizeof *sim->pieces)) {
        sim->out_of_memory = true;
        return POOL_NONE;
    } else {
        id = (uint32_t)sim->n_pieces++;
    }
    sim->pieces[id] = value;
    return id;
}

void place_free(struct pool_sim *sim, uint32_t pieces)
{
    while (pieces != POOL_NONE) {
        const uint32_t next = sim->pieces[pieces].next;
        sim->pieces[pieces].next = sim->free_piece;
        sim->free_piece = pieces;
        pieces = next;
    }
}

/* Whole parts of `need` in `have`, with room for rounding; have INFINITY: not counted. */
static double parts(double have, double need)
{
    return need > 0.0 ? floor(have / need + 1e-9) : (double)INFINITY;
}

uint32_t place_workers(const struct pool_sim *sim, const struct pool_room *room,
                       const struct pool_shape *shape, uint32_t node)
{
    if (!(sim->nodes[node].group & shape->groups) || sim->nodes[node].down || room->gpus[node] <= 0)
        return 0;
    double workers = (double)((uint32_t)room->gpus[node] / shape->worker);
    workers = fmin(workers, parts(room->cpus[node], shape->cpus));
    workers = fmin(workers, parts(room->mem_bytes[node], shape->mem_bytes));
    return workers > 0.0 ? (uint32_t)workers : 0;
}

/* ---- a part of one GPU -------------------------------------------------------------------- */

static bool host_fits(const struct pool_sim *sim, const struct pool_room *room,
                      const struct pool_shape *shape, uint32_t node)
{
    return sim->nodes[node].group & shape->groups && !sim->nodes[node].down &&
           parts(room->cpus[node], shape->cpus) >= 1.0 &&
           parts(room->mem_bytes[node], shape->mem_bytes) >= 1.0;
}

/* A slot that neither this room nor the present state uses. */
static uint32_t unused_slot(const struct pool_sim *sim, const struct pool_room *room)
{
    for (uint32_t i = 0; i < sim->n_slots; i++)
        if (room->slots[i].free_milli == 1000 && sim->room.slots[i].free_milli == 1000)
            return i;
    return POOL_NONE;
}

/* The node with the fewest free GPUs that holds one worker. */
static uint32_t tightest_node(const struct pool_sim *sim, const struct pool_room *room,
                              const struct pool_shape *shape, uint32_t workers)
{
    uint32_t best = POOL_NONE;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (place_workers(sim, room, shape, i) >= workers &&
            (best == POOL_NONE || room->gpus[i] < room->gpus[best]))
            best = i;
    return best;
}

static uint32_t find_share(struct pool_sim *sim, const struct pool_room *room,
                           const struct pool_shape *shape)
{
    uint32_t best = POOL_NONE;
    for (uint32_t i = 0; i < sim->n_slots; i++) {
        const struct pool_slot *slot = &room->slots[i];
        if (slot->free_milli < 1000 && slot->free_milli >= (int32_t)shape->milli &&
            (best == POOL_NONE || slot->free_milli < room->slots[best].free_milli) &&
            host_fits(sim, room, shape, slot->node))
            best = i;
    }
    if (best != POOL_NONE)
        return new_piece(sim, (struct pool_piece){room->slots[best].node, 1, best, POOL_NONE});
    const uint32_t node = tightest_node(sim, room, shape, 1);
    const uint32_t slot = node == POOL_NONE ? POOL_NONE : unused_slot(sim, room);
    if (slot == POOL_NONE)
        return POOL_NONE;
    return new_piece(sim, (struct pool_piece){node, 1, slot, POOL_NONE});
}

/* ---- gangs -------------------------------------------------------------------------------- */

static uint32_t domain_of(const struct pool_sim *sim, uint32_t node, int level)
{
    if (level == TY_POOL_LEAF)
        return sim->nodes[node].leaf;
    return level == TY_POOL_POD ? sim->nodes[node].pod : 0;
}

static uint32_t n_domains(const struct pool_sim *sim, int level)
{
    if (level == TY_POOL_LEAF)
        return sim->n_leaves;
    return level == TY_POOL_POD ? sim->n_pods : 1;
}

/* The domain of a level that holds the workers with the least room, or with the most. */
static uint32_t choose_domain(struct pool_sim *sim, const struct pool_room *room,
                              const struct pool_shape *shape, uint32_t workers, int level)
{
    const uint32_t n = n_domains(sim, level);
    for (uint32_t i = 0; i < n; i++)
        sim->domain[i] = 0;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        sim->domain[domain_of(sim, i, level)] += place_workers(sim, room, shape, i);
    const bool spread = sim->config->placement == TY_POOL_SPREAD;
    uint32_t best = POOL_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (sim->domain[i] < workers)
            continue;
        if (best == POOL_NONE ||
            (spread ? sim->domain[i] > sim->domain[best] : sim->domain[i] < sim->domain[best]))
            best = i;
    }
    return best;
}

/* The candidate that takes `workers` with the least left over, else the one that takes most. */
static uint32_t next_node(const struct pool_sim *sim, const struct pool_room *room,
                          const struct pool_shape *shape, uint32_t n, uint32_t workers)
{
    uint32_t best = 0, best_fits = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (sim->order[i] == POOL_NONE)
            continue;
        const uint32_t fits = place_workers(sim, room, shape, sim->order[i]);
        const bool better =
            best_fits >= workers ? fits >= workers && fits < best_fits : fits > best_fits;
        if (best_fits == 0 || better) {
            best = i;
            best_fits = fits;
        }
    }
    return best;
}

static uint32_t fill_packed(struct pool_sim *sim, const struct pool_room *room,
                            const struct pool_shape *shape, uint32_t workers, int level,
                            uint32_t domain)
{
    uint32_t n = 0, pieces = POOL_NONE;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        if (domain_of(sim, i, level) == domain && place_workers(sim, room, shape, i) > 0)
            sim->order[n++] = i;
    while (workers > 0 && !sim->out_of_memory) {
        const uint32_t at = next_node(sim, room, shape, n, workers);
        const uint32_t node = sim->order[at];
        const uint32_t fits = place_workers(sim, room, shape, node);
        const uint32_t here = fits < workers ? fits : workers;
        sim->order[at] = POOL_NONE;
        workers -= here;
        pieces = new_piece(sim, (struct pool_piece){node, here * shape->worker, POOL_NONE, pieces});
    }
    return pieces;
}

/* sim->order counts the workers given to each node. */
static uint32_t fill_spread(struct pool_sim *sim, const struct pool_room *room,
                            const struct pool_shape *shape, uint32_t workers, int level,
                            uint32_t domain)
{
    uint32_t *given = sim->order, pieces = POOL_NONE;
    for (uint32_t i = 0; i < sim->n_nodes; i++)
        given[i] = 0;
    for (; workers > 0; workers--) {
        uint32_t best = POOL_NONE;
        int64_t best_left = -1;
        for (uint32_t i = 0; i < sim->n_nodes; i++) {
            const int64_t left = room->gpus[i] - (int64_t)given[i] * shape->worker;
            if (left > best_left && domain_of(sim, i, level) == domain &&
                place_workers(sim, room, shape, i) > given[i]) {
                best = i;
                best_left = left;
            }
        }
        given[best]++;
    }
    for (uint32_t i = 0; i < sim->n_nodes && !sim->out_of_memory; i++)
        if (given[i])
            pieces =
                new_piece(sim, (struct pool_piece){i, given[i] * shape->worker, POOL_NONE, pieces});
    return pieces;
}

/* All of the gang on the tightest node, or for spread on the emptiest. */
static uint32_t find_on_node(struct pool_sim *sim, const struct pool_room *room,
                             const struct pool_shape *shape, uint32_t gpus)
{
    const uint32_t workers = gpus / shape->worker;
    uint32_t node = tightest_node(sim, room, shape, workers);
    if (node != POOL_NONE && sim->config->placement == TY_POOL_SPREAD)
        for (uint32_t i = 0; i < sim->n_nodes; i++)
            if (room->gpus[i] > room->gpus[node] && place_workers(sim, room, shape, i) >= workers)
                node = i;
    if (node == POOL_NONE)
        return POOL_NONE;
    return new_piece(sim, (struct pool_piece){node, gpus, POOL_NONE, POOL_NONE});
}

uint32_t place_find(struct pool_sim *sim, const struct pool_room *room,
                    const struct pool_shape *shape, uint32_t gpus)
{
    if (shape->milli < 1000)
        return find_share(sim, room, shape);
    if (room->free_gpus < (int64_t)gpus)
        return POOL_NONE;
    const bool spread = sim->config->placement == TY_POOL_SPREAD;
    if (!spread || shape->level == TY_POOL_NODE || sim->n_nodes == 1) {
        const uint32_t pieces = find_on_node(sim, room, shape, gpus);
        if (pieces != POOL_NONE || shape->level == TY_POOL_NODE || sim->n_nodes == 1)
            return pieces;
    }
    static const int upwards[] = {TY_POOL_LEAF, TY_POOL_POD, TY_POOL_ANY};
    for (uint32_t i = 0; i < 3; i++) {
        const int level = upwards[i];
        if (spread && level != shape->level)
            continue;
        const uint32_t workers = gpus / shape->worker;
        const uint32_t domain = choose_domain(sim, room, shape, workers, level);
        if (domain != POOL_NONE)
            return (spread ? fill_spread : fill_packed)(sim, room, shape, workers, level, domain);
        if (level == shape->level)
            break;
    }
    return POOL_NONE;
}
