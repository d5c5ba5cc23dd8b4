/* SPDX-License-Identifier: MIT
 *
 * Collectives as algorithms: a program is phases one after the other, a phase is sends that all
 * ranks do at once, so many rounds of them. A payload goes through the phases in chunks that follow
 * each other. The same program is run in two ways (collective_run.c): as one weighted flow, from
 * the load its sends put on the links, or send by send on the engine.
 *
 *   ring         n - 1 rounds of S/n to the next (all-reduce: 2 (n - 1)); over domains of g ranks g
 *                rings, each leaving a domain by another GPU
 *   two-level    ring inside the domain, ring of the ranks of equal place, ring inside
 *   tree         rings inside the domain, two binary trees of the domains with half each, up and
 *                down; every domain is a leaf of one of them
 *   NVLS         every port sends its part, the switch adds; then the switch multicasts
 *   PAT          log2 n exchanges of doubling blocks
 *   SHARP        the network's switches add: every NIC sends its part once and receives it once
 *   all-to-all   direct; over the scale-up links to the receiver's rail (PXN); one copy to a node,
 *                then inside it (node-limited)
 * source: handbook 5.2, 5.4, 2.4
 */
#ifndef MODELS_COLLECTIVE_PROGRAM_H
#define MODELS_COLLECTIVE_PROGRAM_H

#include "models/fabric.h"
#include "models/nccl_model.h"
#include "sim/engine.h"

enum send_kind {
    SEND_MESSAGE, /* from one rank to another */
    SEND_SWITCH,  /* port of `from`: `bytes` out, `in_bytes` in; the switch adds or copies */
    SEND_NETWORK  /* its NIC the same, as far as the switch it has in common with `to` */
};

struct send {
    uint32_t from, to; /* places in the group */
    uint32_t peer;     /* the send of this phase whose round j comes before round j + 1 of this;
                          UINT32_MAX: none */
    enum send_kind kind;
    double bytes, in_bytes; /* of one round and chunk */
};

struct phase {
    uint32_t first, n; /* sends */
    uint32_t n_rounds;
};

#define PROGRAM_MAX_PHASES 64

struct program {
    struct ty_allocator allocator;
    uint32_t n_ranks, n_chunks, n_phases;
    struct phase phases[PROGRAM_MAX_PHASES];
    struct send *sends;
    size_t sends_capacity;
    uint32_t n_sends;
};

/* A group in domains: g ranks in each of k, rank i in domain i / g. */
struct program_group {
    uint32_t n, g, k;
};

/* What is asked for. */
struct program_request {
    enum ty_collective_op op;
    enum ty_algorithm algorithm; /* not auto */
    struct program_group group;
    double payload_bytes;
    uint32_t n_chunks;
    double copies; /* node-limited: nodes a token goes to, of k - 1; 0: all */
};

/* returns TY_OK, TY_ERR_NOMEM, TY_ERR_UNSUPPORTED (the algorithm cannot do the operation). Free
 * with program_free, also after a failure. */
ty_status program_make(const struct program_request *request, const struct ty_allocator *allocator,
                       struct program *out);
void program_free(struct program *program);

/* How a program meets the links. */
struct program_run {
    const struct fabric *fabric;
    const uint32_t *gpus;             /* [n_ranks] */
    double hop_s[2];                  /* a send inside a domain, and between domains */
    double latency_ratio, time_ratio; /* of hops and of bytes, so that it takes a known time; 1 */
};
/* Both parts of its time by the load on the links: of latencies, of bytes. returns false: a rank
 * has no way out. */
bool program_time(const struct program *program, const struct program_run *run,
                  const struct ty_allocator *allocator, double *latency_s, double *bytes_s);
/* Its sends as tasks between `start` and `end` (ENGINE_NONE: none). `like`: class, slowdowns;
 * device[0] of a send is device[its rank] where device is given. */
ty_status program_emit(const struct program *program, const struct program_run *run,
                       struct engine *engine, uint32_t first_link, uint32_t start, uint32_t end,
                       const struct engine_task *like, const uint32_t *device);

#endif
