/* SPDX-License-Identifier: MIT
 * Processes of one machine that meet in shared memory, and their collectives. */
#include "calibrate/cpu_kernels.h"

#include <sched.h>
#include <string.h>

/* Looks at the flag so often before it gives the core away: about ten microseconds. */
enum { SPINS = 4000 };

bool cpu_meet(struct cpu_meeting *meeting, uint32_t n)
{
    const uint32_t round = atomic_load(&meeting->round);
    if (atomic_fetch_add(&meeting->arrived, 1) + 1 == n) {
        atomic_store(&meeting->arrived, 0);
        atomic_store(&meeting->round, round + 1);
        return !atomic_load(&meeting->stopped);
    }
    for (uint32_t i = 0; atomic_load_explicit(&meeting->round, memory_order_acquire) == round;
         i++) {
        if (atomic_load_explicit(&meeting->stopped, memory_order_relaxed))
            return false;
        if (i >= SPINS)
            sched_yield();
    }
    return !atomic_load(&meeting->stopped);
}

void cpu_stop(struct cpu_meeting *meeting)
{
    atomic_store(&meeting->stopped, 1);
}

/* Floats [from, to) of the slice that a rank owns. */
static void slice(size_t n_floats, uint32_t n, uint32_t rank, size_t *from, size_t *to)
{
    *from = n_floats * rank / n;
    *to = n_floats * (rank + 1) / n;
}

/* Own slice = sum over the buffers, in the order of the ranks: the same bits on every rank. */
static void reduce_slice(const struct cpu_group *group, uint32_t rank, size_t n_floats)
{
    enum { BLOCK = 2048 };
    size_t from, to;
    slice(n_floats, group->n, rank, &from, &to);
    for (size_t at = from; at < to; at += BLOCK) {
        const size_t n = to - at < BLOCK ? to - at : BLOCK;
        float sum[BLOCK];
        memcpy(sum, group->buffer[0] + at, n * sizeof *sum);
        for (uint32_t other = 1; other < group->n; other++)
            cpu_add(n, sum, group->buffer[other] + at, sum);
        memcpy(group->buffer[rank] + at, sum, n * sizeof *sum);
    }
}

/* Every slice from its owner. */
static void gather_slices(const struct cpu_group *group, uint32_t rank, size_t n_floats)
{
    for (uint32_t step = 1; step < group->n; step++) {
        const uint32_t owner = (rank + step) % group->n;
        size_t from, to;
        slice(n_floats, group->n, owner, &from, &to);
        memcpy(group->buffer[rank] + from, group->buffer[owner] + from,
               (to - from) * sizeof(float));
    }
}

/* The slice that every other rank has for this one. */
static void exchange(const struct cpu_group *group, uint32_t rank, size_t n_floats, float *spare)
{
    size_t from, to;
    slice(n_floats, group->n, rank, &from, &to);
    for (uint32_t step = 0; step < group->n; step++) {
        const uint32_t other = (rank + step) % group->n;
        size_t at, end;
        slice(n_floats, group->n, other, &at, &end);
        const size_t n = end - at < to - from ? end - at : to - from;
        memcpy(spare + at, group->buffer[other] + from, n * sizeof *spare);
    }
}

bool cpu_collective(const struct cpu_group *group, enum ty_collective_op op, uint32_t rank,
                    size_t n_floats, float *spare)
{
    if (!cpu_meet(group->meeting, group->n))
        return false;
    switch (op) {
    case TY_ALL_REDUCE:
        reduce_slice(group, rank, n_floats);
        if (!cpu_meet(group->meeting, group->n))
            return false;
        gather_slices(group, rank, n_floats);
        break;
    case TY_REDUCE_SCATTER:
        reduce_slice(group, rank, n_floats);
        break;
    case TY_ALL_GATHER:
        gather_slices(group, rank, n_floats);
        break;
    case TY_ALL_TO_ALL:
        exchange(group, rank, n_floats, spare);
        break;
    default: /* from the rank before */
        memcpy(spare, group->buffer[(rank + group->n - 1) % group->n], n_floats * sizeof *spare);
        break;
    }
    return cpu_meet(group->meeting, group->n);
}
