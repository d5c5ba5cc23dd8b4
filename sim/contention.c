/* SPDX-License-Identifier: MIT
 *
 * Tasks on one device slow each other (handbook 5.8):
 *
 *   COMPUTE: product of (1 - slow_compute) over the COMM tasks draining on its devices
 *   COMM:    1 - slow_self while a COMPUTE task drains on one of its devices
 *
 * Each device lists what drains on it, by class. Who comes or goes marks the other class stale;
 * run.c then computes their slowdowns anew, from the lists, so nothing drifts. */
#include "sim/engine_state.h"

static enum side side_of(const struct engine_task *task)
{
    return task->class_ == ENGINE_COMPUTE ? SIDE_COMPUTE : SIDE_COMM;
}

/* The tasks of the other class on the device get a new slowdown. */
static void disturb(struct engine *engine, const struct device *device, enum side side)
{
    uint32_t item = device->first[side == SIDE_COMPUTE ? SIDE_COMM : SIDE_COMPUTE];
    for (; item != ENGINE_NONE; item = engine->activities[item / 2].next[item % 2])
        activity_mark_stale(engine, item / 2);
}

void contention_enter(struct engine *engine, uint32_t id)
{
    struct activity *activity = &engine->activities[id];
    const struct engine_task *task = activity_task(engine, id);
    enum side side = side_of(task);
    for (uint32_t i = 0; i < 2; i++) {
        if (task->device[i] == ENGINE_NONE)
            continue;
        struct device *device = &engine->devices[task->device[i]];
        uint32_t first = device->first[side];
        activity->previous[i] = ENGINE_NONE;
        activity->next[i] = first;
        if (first != ENGINE_NONE)
            engine->activities[first / 2].previous[first % 2] = 2 * id + i;
        device->first[side] = 2 * id + i;
        disturb(engine, device, side);
    }
}

void contention_leave(struct engine *engine, uint32_t id)
{
    const struct activity *activity = &engine->activities[id];
    const struct engine_task *task = activity_task(engine, id);
    enum side side = side_of(task);
    for (uint32_t i = 0; i < 2; i++) {
        if (task->device[i] == ENGINE_NONE)
            continue;
        struct device *device = &engine->devices[task->device[i]];
        uint32_t previous = activity->previous[i], next = activity->next[i];
        if (next != ENGINE_NONE)
            engine->activities[next / 2].previous[next % 2] = previous;
        if (previous != ENGINE_NONE)
            engine->activities[previous / 2].next[previous % 2] = next;
        else
            device->first[side] = next;
        disturb(engine, device, side);
    }
}

static bool on_device(const struct engine_task *task, uint32_t device)
{
    return task->device[0] == device || task->device[1] == device;
}

double contention_slowdown(const struct engine *engine, const struct engine_task *task)
{
    double factor = 1;
    if (task->class_ == ENGINE_HOST)
        return factor;
    for (uint32_t i = 0; i < 2; i++) {
        if (task->device[i] == ENGINE_NONE)
            continue;
        const struct device *device = &engine->devices[task->device[i]];
        if (task->class_ == ENGINE_COMM) {
            if (device->first[SIDE_COMPUTE] != ENGINE_NONE)
                return 1 - task->slow_self;
            continue;
        }
        uint32_t item = device->first[SIDE_COMM];
        for (; item != ENGINE_NONE; item = engine->activities[item / 2].next[item % 2]) {
            const struct engine_task *comm = activity_task(engine, item / 2);
            if (i == 0 || !on_device(comm, task->device[0])) /* not twice */
                factor *= 1 - comm->slow_compute;
        }
    }
    return factor;
}
