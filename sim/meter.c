/* SPDX-License-Identifier: MIT
 * An allocator with a limit. */
#include "sim/meter.h"
#include "sim/arena.h"

static void *meter_alloc(void *user, size_t bytes)
{
    struct meter *meter = user;
    if (meter->limit_bytes > 0 && (meter->held_bytes > meter->limit_bytes ||
                                   bytes > meter->limit_bytes - meter->held_bytes)) {
        meter->refused = true;
        return NULL;
    }
    void *block = meter->source.alloc(meter->source.user, bytes);
    if (block)
        meter->held_bytes += bytes;
    return block;
}

static void meter_release(void *user, void *block, size_t bytes)
{
    struct meter *meter = user;
    meter->held_bytes -= bytes;
    meter->source.release(meter->source.user, block, bytes);
}

struct ty_allocator meter_init(struct meter *meter, const struct ty_allocator *source)
{
    *meter = (struct meter){.source = allocator_or_default(source)};
    return (struct ty_allocator){meter_alloc, meter_release, meter};
}
