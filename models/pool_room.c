/* SPDX-License-Identifier: MIT
 * What is free on every node: whole GPUs, shared GPUs, cores, host memory. */
#include "models/pool.h"

#include <string.h>

bool room_create(struct pool_sim *sim, struct pool_room *room)
{
    const size_t n = sim->n_nodes;
    room->gpus = arena_get(&sim->arena, n, sizeof *room->gpus);
    room->cpus = arena_get(&sim->arena, n, sizeof *room->cpus);
    room->mem_bytes = arena_get(&sim->arena, n, sizeof *room->mem_bytes);
    room->slots = arena_get(&sim->arena, sim->n_slots, sizeof *room->slots);
    return room->gpus && room->cpus && room->mem_bytes && room->slots;
}

void room_empty(const struct pool_sim *sim, struct pool_room *room)
{
    room->free_gpus = 0;
    for (uint32_t i = 0; i < sim->n_nodes; i++) {
        const struct pool_node *node = &sim->nodes[i];
        room->gpus[i] = node->down ? 0 : (int32_t)node->gpus;
        room->cpus[i] = node->cpus;
        room->mem_bytes[i] = node->mem_bytes;
        room->free_gpus += room->gpus[i];
    }
    for (uint32_t i = 0; i < sim->n_slots; i++)
        room->slots[i].free_milli = 1000;
}

void room_copy(const struct pool_sim *sim, struct pool_room *to, const struct pool_room *from)
{
    memcpy(to->gpus, from->gpus, sim->n_nodes * sizeof *to->gpus);
    memcpy(to->cpus, from->cpus, sim->n_nodes * sizeof *to->cpus);
    memcpy(to->mem_bytes, from->mem_bytes, sim->n_nodes * sizeof *to->mem_bytes);
    memcpy(to->slots, from->slots, sim->n_slots * sizeof *to->slots);
    to->free_gpus = from->free_gpus;
}

/* sign -1 takes, +1 gives back. */
static void move_piece(struct pool_room *room, const struct pool_shape *shape,
                       const struct pool_piece *piece, int sign)
{
    int gpus = sign * (int)piece->gpus;
    if (piece->slot != POOL_NONE) {
        struct pool_slot *slot = &room->slots[piece->slot];
        const bool opens = slot->free_milli == 1000 && sign < 0;
        slot->free_milli += sign * (int)shape->milli;
        slot->node = piece->node;
        const bool closes = slot->free_milli == 1000;
        gpus = opens || closes ? sign : 0;
    }
    room->gpus[piece->node] += gpus;
    room->free_gpus += gpus;
    const double workers = sign * (double)(piece->gpus / shape->worker);
    room->cpus[piece->node] += workers * shape->cpus;
    room->mem_bytes[piece->node] += workers * shape->mem_bytes;
}

void room_take(const struct pool_sim *sim, struct pool_room *room, const struct pool_shape *shape,
               uint32_t pieces)
{
    for (uint32_t i = pieces; i != POOL_NONE; i = sim->pieces[i].next)
        move_piece(room, shape, &sim->pieces[i], -1);
}

void room_give(const struct pool_sim *sim, struct pool_room *room, const struct pool_shape *shape,
               uint32_t pieces)
{
    for (uint32_t i = pieces; i != POOL_NONE; i = sim->pieces[i].next)
        move_piece(room, shape, &sim->pieces[i], 1);
}

static bool has_piece(const struct pool_room *room, const struct pool_shape *shape,
                      const struct pool_piece *piece)
{
    const double workers = piece->gpus / shape->worker;
    if (workers * shape->cpus > room->cpus[piece->node] ||
        workers * shape->mem_bytes > room->mem_bytes[piece->node])
        return false;
    if (piece->slot != POOL_NONE && room->slots[piece->slot].free_milli < 1000)
        return room->slots[piece->slot].free_milli >= (int32_t)shape->milli;
    return room->gpus[piece->node] >= (int32_t)piece->gpus;
}

bool room_has(const struct pool_sim *sim, const struct pool_room *room,
              const struct pool_shape *shape, uint32_t pieces)
{
    for (uint32_t i = pieces; i != POOL_NONE; i = sim->pieces[i].next)
        if (!has_piece(room, shape, &sim->pieces[i]))
            return false;
    return true;
}
