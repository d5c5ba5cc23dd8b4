/* SPDX-License-Identifier: MIT
 *
 * Inside the fluid solver: what fluid.c keeps (links, routes, bundles, flows) and fill.c solves.
 *
 * Flows of one route with equal cap and weight have equal rates: they are one bundle, and filling
 * sees bundles only. Fat pipes couple no flows: they are part of their routes' caps. Links of
 * infinite capacity are dropped from routes. All arrays are flat and kept across fluid_clear. */
#ifndef SIM_FLUID_STATE_H
#define SIM_FLUID_STATE_H

#include "sim/fluid.h"

#define FLUID_NONE UINT32_MAX

struct use {
    double bytes_per_work;
    uint32_t link;
    uint32_t place; /* of its bundle among the link's members, while the bundle has flows */
};

struct member { /* a bundle with flows that crosses the link */
    double bytes_per_work;
    uint32_t bundle, use;
};

struct link {
    double capacity_bytes_per_s;
    /* While filling: what the bundles that stopped leave; bytes/s per unit of level of those that
     * rise; their number; the last solve whose part it joined. */
    double residual_bytes_per_s, weight;
    uint32_t n_rising;
    uint64_t visited;
    struct member *members;
    size_t member_capacity;
    uint32_t n_members, n_reserved; /* n_reserved: bundles that could become members */
    bool shared, touched;
};

struct route {
    double cap_work_per_s; /* of its fat pipes */
    uint32_t first_use, n_uses;
    uint32_t first_bundle;
};

struct bundle {
    double weight, cap_work_per_s; /* of one flow; the cap includes the route's */
    double cap_level;              /* cap / weight */
    double level;                  /* where it stopped; not solved yet: cap_level */
    double rate_work_per_s;        /* of one flow; 0: not solved yet */
    uint64_t visited;              /* the last solve that looked at it */
    uint32_t bottleneck;           /* the link that stopped it; FLUID_NONE: its cap */
    uint32_t n_flows, first_flow;
    uint32_t first_use, n_uses;
    uint32_t next; /* of the route */
    bool fixed;    /* in this solve: it has stopped */
};

struct flow {
    double rate_work_per_s; /* as last reported */
    uint32_t route, bundle;
    uint32_t next, previous; /* of the bundle */
    bool changed;            /* is in the list of changed flows */
};

struct candidate { /* what may be the next to fill up: a link or a bundle's cap; the other
                      FLUID_NONE */
    double level;
    uint32_t link, bundle;
};

#define ARRAY(type, name)                                                                          \
    type *name;                                                                                    \
    size_t name##_capacity;                                                                        \
    uint32_t n_##name

struct fluid {
    struct ty_allocator allocator;
    ARRAY(struct link, links);
    ARRAY(struct use, uses);
    ARRAY(struct route, routes);
    ARRAY(struct bundle, bundles);
    ARRAY(struct flow, flows);
    ARRAY(uint32_t, touched);      /* links */
    ARRAY(uint32_t, changed);      /* flows */
    ARRAY(struct candidate, heap); /* binary, lowest level first */
    bool reported;                 /* the list of changed flows was given out */
    uint64_t solve;                /* number of this solve */
};

/* Solves the touched parts of the network; appends to `changed`. */
void fluid_fill_touched(struct fluid *fluid);
/* Notes a flow's rate, and the flow in `changed` if it is news. */
void fluid_report(struct fluid *fluid, uint32_t flow, double rate_work_per_s);

#endif
