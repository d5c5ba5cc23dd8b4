/* SPDX-License-Identifier: MIT
 *
 * Pipeline schedules as order lists (handbook 2.5): what each stage runs, in order.
 */
#ifndef MODELS_PIPELINE_H
#define MODELS_PIPELINE_H

#include "sim/engine.h"

enum pass_kind { PASS_FORWARD, PASS_BACKWARD };

struct pass {
    enum pass_kind kind;
    uint32_t micro, chunk;
};

/* Number of passes per stage: 2 m v. */
uint32_t pipeline_n_passes(uint32_t n_micro, uint32_t n_chunks);
/* The order of one stage; out [pipeline_n_passes]. schedule: a resolved enum ty_schedule;
 * interleaved needs n_micro % n_stages == 0 (legality guarantees it). */
void pipeline_order(enum ty_schedule schedule, uint32_t n_stages, uint32_t n_chunks,
                    uint32_t n_micro, uint32_t stage, struct pass *out);
/* Slot (chunk-major) before which a pass waits for a message: the slot that precedes it in the
 * direction of the pass; ENGINE_NONE at the ends. */
uint32_t pipeline_source(uint32_t n_stages, uint32_t n_chunks, uint32_t slot, enum pass_kind kind);

/* Replay with fixed times per full stage and free messages, on the engine: the makespan and the
 * largest number of chunk activations alive per stage (peak_chunks [n_stages], may be NULL). */
ty_status pipeline_replay(struct engine *engine, enum ty_schedule schedule, uint32_t n_stages,
                          uint32_t n_chunks, uint32_t n_micro, double forward_s, double backward_s,
                          double *makespan_s, uint32_t *peak_chunks);

#endif
