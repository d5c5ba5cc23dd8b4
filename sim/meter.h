/* SPDX-License-Identifier: MIT
 *
 * An allocator that counts what it gave out and refuses to go beyond a limit.
 */
#ifndef SIM_METER_H
#define SIM_METER_H

#include "include/trainyard.h"

struct meter {
    struct ty_allocator source;
    uint64_t held_bytes, limit_bytes; /* limit 0: none */
    bool refused;                     /* the limit, not the source, has said no */
};

/* The allocator of a meter, which must outlive it; source NULL: malloc and free. */
struct ty_allocator meter_init(struct meter *meter, const struct ty_allocator *source);

#endif
