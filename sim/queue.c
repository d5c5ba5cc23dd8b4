/* SPDX-License-Identifier: MIT
 *
 * An indexed 4-ary heap: the children of place i are 4i + 1 .. 4i + 4. Four children share one
 * cache line, so the tree is half as deep as a binary one at the same cost per level. `place` of
 * an id is its index in the heap + 1, so that zeroed memory means absent.
 *
 * A simulation mostly puts one event back for each that it takes. So queue_pop leaves the root
 * hollow; the next new entry sinks from there, instead of the last entry sinking and the new one
 * rising. Whatever else comes next closes the hole first. */
#include "sim/queue.h"

#include <math.h>
#include <string.h>

enum { ARITY = 4 };

struct entry {
    uint64_t time; /* the bits of time_s >= 0, which have the same order; quicker to compare */
    uint32_t priority, id;
};

struct slot {
    uint64_t sequence;
    uint32_t place;
};

struct queue {
    struct ty_allocator allocator;
    struct entry *heap;
    struct slot *slots; /* [ids] */
    size_t n, heap_capacity, slot_capacity;
    uint64_t next_sequence;
    bool hollow; /* heap[0] is vacant; it counts in n */
};

static uint64_t bits_of(double time_s)
{
    uint64_t bits;
    time_s += 0.0; /* -0 becomes +0 */
    memcpy(&bits, &time_s, sizeof bits);
    return bits;
}

static double time_of(uint64_t bits)
{
    double time_s;
    memcpy(&time_s, &bits, sizeof time_s);
    return time_s;
}

/* Order of two entries at the same time. */
static bool tie_before(const struct queue *queue, struct entry a, struct entry b)
{
    if (a.priority != b.priority)
        return a.priority < b.priority;
    return queue->slots[a.id].sequence < queue->slots[b.id].sequence;
}

static bool before(const struct queue *queue, struct entry a, struct entry b)
{
    bool less = a.time < b.time;
    if (a.time == b.time)
        less = tie_before(queue, a, b);
    return less;
}

static void put(struct queue *queue, size_t place, struct entry entry)
{
    queue->heap[place] = entry;
    queue->slots[entry.id].place = (uint32_t)place + 1;
}

/* Moves the hole at `place` towards the root until `entry` fits. */
static void sift_up(struct queue *queue, size_t place, struct entry entry)
{
    while (place > 0) {
        size_t parent = (place - 1) / ARITY;
        if (!before(queue, entry, queue->heap[parent]))
            break;
        put(queue, place, queue->heap[parent]);
        place = parent;
    }
    put(queue, place, entry);
}

/* The first of the children in [child, end). Which one it is cannot be predicted, so the choice
 * among four is made without branches. */
static size_t first_of(const struct queue *queue, size_t child, size_t end)
{
    const struct entry *heap = queue->heap;
    if (end - child == ARITY) {
        size_t low = child + before(queue, heap[child + 1], heap[child]);
        size_t high = child + 2 + before(queue, heap[child + 3], heap[child + 2]);
        return low + (high - low) * before(queue, heap[high], heap[low]);
    }
    size_t best = child;
    for (size_t i = child + 1; i < end; i++)
        best = before(queue, heap[i], heap[best]) ? i : best;
    return best;
}

static void sift_down(struct queue *queue, size_t place, struct entry entry)
{
    for (;;) {
        size_t child = ARITY * place + 1;
        if (child >= queue->n)
            break;
        size_t end = child + ARITY < queue->n ? child + ARITY : queue->n;
        child = first_of(queue, child, end);
        if (!before(queue, queue->heap[child], entry))
            break;
        put(queue, place, queue->heap[child]);
        place = child;
    }
    put(queue, place, entry);
}

/* Fills the hole at `place` with the last entry. */
static void close_hole(struct queue *queue, size_t place)
{
    struct entry last = queue->heap[--queue->n];
    if (place == queue->n)
        return;
    if (place > 0 && before(queue, last, queue->heap[(place - 1) / ARITY]))
        sift_up(queue, place, last);
    else
        sift_down(queue, place, last);
}

static void close_root(struct queue *queue)
{
    if (queue->hollow)
        close_hole(queue, 0);
    queue->hollow = false;
}

static bool reserve(struct queue *queue, uint32_t id)
{
    return (id < queue->slot_capacity && queue->n < queue->heap_capacity) ||
           (array_grow(&queue->allocator, (void **)&queue->slots, &queue->slot_capacity,
                       (size_t)id + 1, sizeof *queue->slots) &&
            array_grow(&queue->allocator, (void **)&queue->heap, &queue->heap_capacity,
                       queue->n + 1, sizeof *queue->heap));
}

ty_status queue_create(const struct ty_allocator *allocator, struct queue **out)
{
    struct ty_allocator source = allocator_or_default(allocator);
    struct queue *queue = source.alloc(source.user, sizeof *queue);
    if (!queue)
        return TY_ERR_NOMEM;
    *queue = (struct queue){.allocator = source};
    *out = queue;
    return TY_OK;
}

void queue_destroy(struct queue *queue)
{
    if (!queue)
        return;
    struct ty_allocator allocator = queue->allocator;
    array_free(&allocator, queue->heap, queue->heap_capacity, sizeof *queue->heap);
    array_free(&allocator, queue->slots, queue->slot_capacity, sizeof *queue->slots);
    allocator.release(allocator.user, queue, sizeof *queue);
}

void queue_clear(struct queue *queue)
{
    for (size_t i = queue->hollow; i < queue->n; i++)
        queue->slots[queue->heap[i].id].place = 0;
    queue->n = 0;
    queue->hollow = false;
    queue->next_sequence = 0;
}

bool queue_set(struct queue *queue, uint32_t id, double time_s, uint32_t priority)
{
    if (!reserve(queue, id))
        return false;
    struct slot *slot = &queue->slots[id];
    struct entry entry = {bits_of(time_s), priority, id};
    if (slot->place != 0)
        close_root(queue);
    size_t place = slot->place - 1;
    slot->sequence = queue->next_sequence++;
    if (slot->place == 0 && queue->hollow) {
        queue->hollow = false;
        sift_down(queue, 0, entry);
    } else if (slot->place == 0) {
        sift_up(queue, queue->n++, entry);
    } else if (before(queue, entry, queue->heap[place])) {
        sift_up(queue, place, entry);
    } else {
        sift_down(queue, place, entry);
    }
    return true;
}

void queue_remove(struct queue *queue, uint32_t id)
{
    if (id >= queue->slot_capacity || queue->slots[id].place == 0)
        return;
    close_root(queue);
    size_t place = queue->slots[id].place - 1;
    queue->slots[id].place = 0;
    close_hole(queue, place);
}

bool queue_empty(const struct queue *queue)
{
    return queue->n == queue->hollow;
}

double queue_time_s(const struct queue *queue)
{
    size_t end = queue->n < ARITY + 1 ? queue->n : ARITY + 1;
    return time_of(queue->heap[queue->hollow ? first_of(queue, 1, end) : 0].time);
}

/* While the root is hollow the first entry is one of its children; the hole it leaves is closed
 * there, and the root stays hollow. */
bool queue_pop_until(struct queue *queue, double until_s, uint32_t *id, double *time_s)
{
    const size_t end = queue->n < ARITY + 1 ? queue->n : ARITY + 1;
    if (queue_empty(queue))
        return false;
    const size_t place = queue->hollow ? first_of(queue, 1, end) : 0;
    const struct entry first = queue->heap[place];
    *time_s = time_of(first.time);
    if (*time_s > until_s)
        return false;
    *id = first.id;
    queue->slots[first.id].place = 0;
    if (queue->hollow)
        close_hole(queue, place);
    queue->hollow = true;
    return true;
}

uint32_t queue_pop(struct queue *queue, double *time_s)
{
    uint32_t id = 0;
    queue_pop_until(queue, (double)INFINITY, &id, time_s);
    return id;
}
