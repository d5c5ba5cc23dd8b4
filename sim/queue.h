/* SPDX-License-Identifier: MIT
 *
 * The event queue: an indexed 4-ary heap ordered by (time, priority, sequence). The sequence is
 * given at insertion, so equal events leave in the order they came and runs are reproducible.
 * An entry is named by a caller's id (dense, < capacity): moving or removing it is O(log n).
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "sim/arena.h"

struct queue; /* opaque to users; see queue.c */

ty_status queue_create(const struct ty_allocator *allocator, struct queue **out);
void queue_destroy(struct queue *queue);
void queue_clear(struct queue *queue); /* keeps the memory */
/* Inserts id or moves it to a new time >= 0 (it then gets a new sequence). false: out of memory. */
bool queue_set(struct queue *queue, uint32_t id, double time_s, uint32_t priority);
void queue_remove(struct queue *queue, uint32_t id); /* no-op when absent */
bool queue_empty(const struct queue *queue);
double queue_time_s(const struct queue *queue);          /* of the first entry; queue not empty */
uint32_t queue_pop(struct queue *queue, double *time_s); /* queue not empty */
/* Pops the first entry if it is due at until_s or before. false: there is none. */
bool queue_pop_until(struct queue *queue, double until_s, uint32_t *id, double *time_s);

#endif
