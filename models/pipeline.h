/* SPDX-License-Identifier: MIT
 *
 * Pipeline schedules as order lists (handbook 2.5): what each stage runs, in order.
 *
 * Layers are cut into slots, in the order a micro-batch passes them. A stage holds one slot per
 * chunk; (stage, chunk) is a place, number chunk * n_stages + stage. Which slot a place holds is
 * the shape of the schedule:
 *
 *   round     slot = place                       GPipe, 1F1B, interleaved, ZB-H1
 *   V         chunk 1 runs back: 2 p - 1 - stage ZB-V, DualPipeV
 *   two ways  chunk 1 is a second copy of the model for the second half of the micro-batches,
 *             which runs against the first: p - 1 - stage                       DualPipe
 */
#ifndef MODELS_PIPELINE_H
#define MODELS_PIPELINE_H

#include "sim/engine.h"

/* backward = dgrad + wgrad, run as one; split: dgrad sends its message, wgrad can wait. */
enum pass_kind { PASS_FORWARD, PASS_BACKWARD, PASS_DGRAD, PASS_WGRAD, N_PASS_KINDS };

struct pass {
    enum pass_kind kind;
    uint32_t micro, chunk;
    bool joined; /* a forward run as one with the backward that follows it in the order: both wait
                    for both messages, both send at the end */
};

enum pipeline_shape { PIPELINE_ROUND, PIPELINE_V, PIPELINE_TWO_WAYS };

/* A schedule on so many stages, chunks per stage and micro-batches. */
struct pipeline {
    enum ty_schedule schedule; /* resolved */
    enum pipeline_shape shape;
    bool splits; /* some backward is split */
    bool whole;  /* some backward is not */
    bool joins;  /* some forward is joined to a backward */
    uint32_t n_stages, n_chunks, n_micro;
    uint32_t group; /* interleaved: micro-batches of one chunk in a row */
};

/* plan: resolved. */
struct pipeline pipeline_of(const struct ty_plan *plan);
/* Does the schedule set the number of chunks of layers per stage (2: ZB-V, DualPipeV; 1: those
 * without chunks)? 0: the plan does. */
uint32_t pipeline_fixed_chunks(enum ty_schedule schedule);
/* true when a schedule runs backwards in halves / keeps two copies of the model. */
bool pipeline_two_copies(enum ty_schedule schedule);

uint32_t pipeline_n_places(const struct pipeline *pipeline);
uint32_t pipeline_n_slots(const struct pipeline *pipeline);
uint32_t pipeline_slot(const struct pipeline *pipeline, uint32_t place);
/* The place whose result a pass at `place` waits for; kind: forward or any backward. ENGINE_NONE
 * at the ends of the model. */
uint32_t pipeline_source(const struct pipeline *pipeline, uint32_t place, enum pass_kind kind);
/* Micro-batches [first, end) that pass through a chunk. */
uint32_t pipeline_first_micro(const struct pipeline *pipeline, uint32_t chunk);
uint32_t pipeline_end_micro(const struct pipeline *pipeline, uint32_t chunk);

/* Most passes of a stage: the length of the array that pipeline_order needs. */
uint32_t pipeline_most_passes(const struct pipeline *pipeline);
/* The order of one stage; out [pipeline_most_passes]. returns the number of passes. Legality
 * guarantees what a schedule needs (DualPipe: an even p, an even m >= 2 p). */
uint32_t pipeline_order(const struct pipeline *pipeline, uint32_t stage, struct pass *out);

/* Most activations alive on a stage, in micro-batches through one full stage (2.5, 3.3): one is
 * made by a forward and freed by the backward, of a split one by wgrad. */
double pipeline_in_flight(const struct pipeline *pipeline, uint32_t stage);

/* Times of one full stage for a replay. joined_s: a forward and a backward run as one. */
struct pipeline_times {
    double forward_s, dgrad_s, wgrad_s, joined_s;
};
/* Replay with free messages, on the engine: the makespan and the largest number of chunk
 * activations alive per stage (peak_chunks [n_stages], may be NULL). */
ty_status pipeline_replay(struct engine *engine, const struct pipeline *pipeline,
                          const struct pipeline_times *times, double *makespan_s,
                          uint32_t *peak_chunks);

#endif
