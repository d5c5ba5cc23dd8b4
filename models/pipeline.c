/* SPDX-License-Identifier: MIT
 *
 * One table of pipeline schedules (handbook 2.5). F forward, B backward, D its dgrad, W its wgrad;
 * r the stage, p stages, v chunks, m micro-batches.
 *
 *   GPipe, 1F1B, interleaved: w forwards, then F and B in turn, then the other B;
 *       w = m v;  p - r - 1;  2 (p - r - 1) + (v - 1) g
 *       Forwards advance in groups of g micro-batches (p unless the plan says more): chunk 0 of the
 *       whole group, then chunk 1, ...; backwards the same with the chunks reversed. With F joined
 *       to B every boundary needs one more micro-batch on its way, so w grows by one.
 *   ZB-H1: 1F1B whose W lag r micro-batches behind: the first stages have their D earlier, the
 *       last ones fill the end with W. No stage holds more than 1F1B's first one.
 *   ZB-V, DualPipe, DualPipeV: the phases of their authors' programs, see below.
 *
 * sources: NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py; arXiv 2104.04473,
 * 2401.10241, 2405.15362; pytorch torch/distributed/pipelining/schedules.py (ZB-V);
 * deepseek-ai/DualPipe dualpipe.py, dualpipev.py.
 */
#include "models/pipeline.h"

#include <math.h>

/* An order as it is written: the next micro-batch of each chunk and kind. */
struct writer {
    const struct pipeline *pipeline;
    struct pass *out;
    uint32_t n, stage;
    uint32_t next[2][N_PASS_KINDS]; /* [chunk]; backward and dgrad count together */
};

static void put(struct writer *w, enum pass_kind kind, uint32_t chunk, uint32_t micro)
{
    w->out[w->n++] = (struct pass){.kind = kind, .micro = micro, .chunk = chunk};
}

/* ---- GPipe, 1F1B, interleaved --------------------------------------------------------------- */

/* Walks the passes of one direction: micro-batch by micro-batch, chunk by chunk, group by group. */
struct walk {
    uint32_t first, size, chunk, at; /* group: first micro-batch, how many */
};

static struct walk walk_begin(const struct pipeline *pipeline)
{
    const uint32_t m = pipeline->n_micro, g = pipeline->group;
    return (struct walk){.size = m < g ? m : g};
}

static void walk_put(struct writer *w, struct walk *walk, enum pass_kind kind)
{
    const struct pipeline *pipeline = w->pipeline;
    const uint32_t last = pipeline->n_chunks - 1;
    put(w, kind, kind == PASS_FORWARD ? walk->chunk : last - walk->chunk, walk->first + walk->at);
    if (++walk->at < walk->size)
        return;
    walk->at = 0;
    if (walk->chunk++ < last)
        return;
    walk->chunk = 0;
    walk->first += walk->size;
    const uint32_t left = pipeline->n_micro - walk->first;
    walk->size = left < pipeline->group ? left : pipeline->group;
}

static uint32_t warm_up(const struct pipeline *pipeline, uint32_t stage)
{
    const uint32_t total = pipeline->n_micro * pipeline->n_chunks;
    const uint32_t behind = pipeline->n_stages - stage - 1;
    uint32_t n =
        pipeline->n_chunks == 1 ? behind : 2 * behind + (pipeline->n_chunks - 1) * pipeline->group;
    if (pipeline->joins)
        n++;
    return pipeline->schedule == TY_SCHEDULE_GPIPE || n > total ? total : n;
}

static void write_in_turn(struct writer *w)
{
    const struct pipeline *pipeline = w->pipeline;
    const uint32_t total = pipeline->n_micro * pipeline->n_chunks;
    struct walk forward = walk_begin(pipeline), backward = forward;
    uint32_t done = warm_up(pipeline, w->stage);
    for (uint32_t i = 0; i < done; i++)
        walk_put(w, &forward, PASS_FORWARD);
    for (uint32_t i = 0; i < total; i++) {
        if (done++ < total) {
            walk_put(w, &forward, PASS_FORWARD);
            w->out[w->n - 1].joined = pipeline->joins;
        }
        walk_put(w, &backward, PASS_BACKWARD);
    }
}

/* ---- ZB-H1 ---------------------------------------------------------------------------------- */

static void write_zb_h1(struct writer *w)
{
    const uint32_t m = w->pipeline->n_micro, lag = w->stage;
    uint32_t done = warm_up(w->pipeline, w->stage), weights = 0;
    for (uint32_t i = 0; i < done; i++)
        put(w, PASS_FORWARD, 0, i);
    for (uint32_t i = 0; i < m; i++) {
        if (done < m)
            put(w, PASS_FORWARD, 0, done++);
        put(w, PASS_DGRAD, 0, i);
        if (i >= lag)
            put(w, PASS_WGRAD, 0, weights++);
    }
    while (weights < m)
        put(w, PASS_WGRAD, 0, weights++);
}

/* ---- two chunks ----------------------------------------------------------------------------- */

/* The next micro-batch of the chunk, if there is one left for this kind. */
static void put_next(struct writer *w, enum pass_kind kind, uint32_t chunk)
{
    const enum pass_kind counter = kind == PASS_DGRAD ? PASS_BACKWARD : kind;
    const uint32_t first = pipeline_first_micro(w->pipeline, chunk);
    uint32_t *next = &w->next[chunk][counter];
    const uint32_t most = kind == PASS_WGRAD ? w->next[chunk][PASS_BACKWARD]
                                             : pipeline_end_micro(w->pipeline, chunk) - first;
    if (*next >= most)
        return;
    put(w, kind, chunk, first + (*next)++);
    if (kind == PASS_BACKWARD) /* its W is done; none waits when an order goes back to whole ones */
        w->next[chunk][PASS_WGRAD] = *next;
}

static void put_both(struct writer *w, uint32_t chunk)
{
    put_next(w, PASS_DGRAD, chunk);
    put_next(w, PASS_WGRAD, chunk);
}

/* ZB-V with p stages. Warm-up: 2 (p - r) - 1 F of chunk 0, then r times F of both chunks, then p -
 * r times F D W of chunk 1. Steady: F D W of chunk 0 and of chunk 1 in turn. End: r times D of both
 * chunks, p - r times D W of chunk 0, then the W left. */
static void write_zb_v(struct writer *w)
{
    const uint32_t m = w->pipeline->n_micro, r = w->stage, left = w->pipeline->n_stages - r;
    for (uint32_t i = 0; i < 2 * left - 1; i++)
        put_next(w, PASS_FORWARD, 0);
    for (uint32_t i = 0; i < r; i++) {
        put_next(w, PASS_FORWARD, 1);
        put_next(w, PASS_FORWARD, 0);
    }
    for (uint32_t i = 0; i < left; i++) {
        put_next(w, PASS_FORWARD, 1);
        put_both(w, 1);
    }
    while (w->next[1][PASS_FORWARD] < m)
        for (uint32_t chunk = 0; chunk < 2; chunk++) {
            put_next(w, PASS_FORWARD, chunk);
            put_both(w, chunk);
        }
    for (uint32_t i = 0; i < r; i++) {
        put_next(w, PASS_DGRAD, 0);
        put_next(w, PASS_DGRAD, 1);
    }
    for (uint32_t i = 0; i < left; i++)
        put_both(w, 0);
    for (uint32_t i = 0; i < 2 * m; i++)
        put_next(w, PASS_WGRAD, i < m);
}

static void put_joined(struct writer *w, uint32_t forward_chunk)
{
    put_next(w, PASS_FORWARD, forward_chunk);
    w->out[w->n - 1].joined = true;
    put_next(w, PASS_BACKWARD, 1 - forward_chunk);
}

/* W of the split backward that has waited longest. Both chunks have waited since `order`. */
static void put_oldest(struct writer *w, const uint32_t *order, uint32_t *n_done)
{
    put_next(w, PASS_WGRAD, order[(*n_done)++]);
}

/* DualPipe's phases on half a pipeline: of `half` stages this is number r; `near` is the chunk
 * whose first slots are on this side, `far` the other; each carries n micro-batches.
 *
 *   1  2 (half - r - 1) F near      5  half - r - 1 times B far, (F far + B near)
 *   2  r + 1 times F near, F far    6  r + 1 times B far, B near; the second half split
 *   3  half - r - 1 D W F far       7  half - r - 1 times W, D near
 *   4  (F near + B far), (F far + B near) until near's forwards are done    8  the W left
 *
 * DualPipeV is the same with its V in place of the two directions. */
static void write_halves(struct writer *w, uint32_t half, uint32_t r, uint32_t near, uint32_t n)
{
    const uint32_t far = 1 - near, others = half - r - 1;
    uint32_t waiting[TY_MAX_LAYERS], n_waiting = 0, n_done = 0; /* chunks of split backwards */
    for (uint32_t i = 0; i < 2 * others; i++)
        put_next(w, PASS_FORWARD, near);
    for (uint32_t i = 0; i <= r; i++) {
        put_next(w, PASS_FORWARD, near);
        put_next(w, PASS_FORWARD, far);
    }
    for (uint32_t i = 0; i < others; i++) {
        put_both(w, far);
        put_next(w, PASS_FORWARD, far);
    }
    for (uint32_t i = 0; i < n - 2 * half + r + 1; i++) {
        if (i == 0 && others == 0) { /* its own forward is what the backward waits for */
            put_next(w, PASS_FORWARD, near);
            put_next(w, PASS_BACKWARD, far);
        } else {
            put_joined(w, near);
        }
        put_joined(w, far);
    }
    for (uint32_t i = 0; i < others; i++) {
        put_next(w, PASS_BACKWARD, far);
        put_joined(w, far);
    }
    for (uint32_t i = 0; i < 2 * (r + 1);
         i++) { /* far and near in turn; split from the middle on */
        const bool split = i > r;
        const uint32_t chunk = i % 2 == 0 ? far : near;
        put_next(w, split ? PASS_DGRAD : PASS_BACKWARD, chunk);
        if (split)
            waiting[n_waiting++] = chunk;
    }
    for (uint32_t i = 0; i < others; i++) {
        put_oldest(w, waiting, &n_done);
        put_next(w, PASS_DGRAD, near);
        waiting[n_waiting++] = near;
    }
    while (n_done < n_waiting)
        put_oldest(w, waiting, &n_done);
}

static void write_dualpipe(struct writer *w)
{
    const uint32_t p = w->pipeline->n_stages, r = w->stage;
    const bool second = r >= p / 2;
    write_halves(w, p / 2, second ? p - 1 - r : r, second, w->pipeline->n_micro / 2);
}

static void write_dualpipev(struct writer *w)
{
    write_halves(w, w->pipeline->n_stages, w->stage, 0, w->pipeline->n_micro);
}

/* ---- in flight ------------------------------------------------------------------------------ */

static double flight_all(const struct pipeline *pipeline, uint32_t stage)
{
    (void)stage;
    return pipeline->n_micro;
}

static double flight_in_turn(const struct pipeline *pipeline, uint32_t stage)
{
    const uint32_t total = pipeline->n_micro * pipeline->n_chunks;
    const uint32_t n = warm_up(pipeline, stage);
    return (double)(n < total ? n + 1 : total) / pipeline->n_chunks;
}

static double flight_stages(const struct pipeline *pipeline, uint32_t stage)
{
    (void)stage;
    return pipeline->n_stages;
}

static double flight_dualpipe(const struct pipeline *pipeline, uint32_t stage)
{
    (void)stage;
    return pipeline->n_stages + 1.0;
}

static double flight_dualpipev(const struct pipeline *pipeline, uint32_t stage)
{
    (void)stage;
    return pipeline->n_stages + 0.5;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct row {
    void (*write)(struct writer *w);
    double (*in_flight)(const struct pipeline *pipeline, uint32_t stage);
    enum pipeline_shape shape;
    uint32_t chunks; /* of layers per stage; 0: the plan's */
    bool splits, whole, joins;
} rows[] = {
    [TY_SCHEDULE_AUTO] = {write_in_turn, flight_in_turn, PIPELINE_ROUND, 0, false, true, false},
    [TY_SCHEDULE_GPIPE] = {write_in_turn, flight_all, PIPELINE_ROUND, 1, false, true, false},
    [TY_SCHEDULE_1F1B] = {write_in_turn, flight_in_turn, PIPELINE_ROUND, 1, false, true, false},
    [TY_SCHEDULE_INTERLEAVED] = {write_in_turn, flight_in_turn, PIPELINE_ROUND, 0, false, true,
                                 false},
    [TY_SCHEDULE_ZB_H1] = {write_zb_h1, flight_stages, PIPELINE_ROUND, 1, true, false, false},
    [TY_SCHEDULE_ZB_V] = {write_zb_v, flight_stages, PIPELINE_V, 2, true, false, false},
    [TY_SCHEDULE_DUALPIPE] = {write_dualpipe, flight_dualpipe, PIPELINE_TWO_WAYS, 1, true, true,
                              true},
    [TY_SCHEDULE_DUALPIPEV] = {write_dualpipev, flight_dualpipev, PIPELINE_V, 2, true, true, true},
};

/* A plan that has not been judged may name a schedule that is none. */
static const struct row *row_of(int schedule)
{
    return &rows[(unsigned)schedule < sizeof rows / sizeof *rows ? schedule : TY_SCHEDULE_AUTO];
}

struct pipeline pipeline_of(const struct ty_plan *plan)
{
    const struct row *row = row_of(plan->schedule);
    const bool batch = plan->overlap & TY_OVERLAP_BATCH;
    /* Plain 1F1B would wait two passes at every boundary. */
    const bool pairs = row->write == write_in_turn && plan->schedule != TY_SCHEDULE_GPIPE &&
                       (plan->pp == 1 || plan->vpp > 1);
    return (struct pipeline){.schedule = (enum ty_schedule)plan->schedule,
                             .shape = row->shape,
                             .splits = row->splits,
                             .whole = row->whole,
                             .joins = row->joins || (batch && pairs),
                             .n_stages = plan->pp,
                             .n_chunks = row->shape == PIPELINE_TWO_WAYS ? 2 : plan->vpp,
                             .n_micro = plan->n_micro,
                             .group = plan->pp_group ? plan->pp_group : plan->pp};
}

uint32_t pipeline_fixed_chunks(enum ty_schedule schedule)
{
    return row_of((int)schedule)->chunks;
}

bool pipeline_two_copies(enum ty_schedule schedule)
{
    return row_of((int)schedule)->shape == PIPELINE_TWO_WAYS;
}

uint32_t pipeline_n_places(const struct pipeline *pipeline)
{
    return pipeline->n_stages * pipeline->n_chunks;
}

uint32_t pipeline_n_slots(const struct pipeline *pipeline)
{
    return pipeline->shape == PIPELINE_TWO_WAYS ? pipeline->n_stages : pipeline_n_places(pipeline);
}

uint32_t pipeline_slot(const struct pipeline *pipeline, uint32_t place)
{
    const uint32_t p = pipeline->n_stages;
    if (pipeline->shape == PIPELINE_ROUND || place < p)
        return place;
    const uint32_t stage = place - p;
    return (pipeline->shape == PIPELINE_V ? 2 * p : p) - 1 - stage;
}

uint32_t pipeline_source(const struct pipeline *pipeline, uint32_t place, enum pass_kind kind)
{
    const uint32_t p = pipeline->n_stages, slot = pipeline_slot(pipeline, place);
    const bool forward = kind == PASS_FORWARD;
    if (forward ? slot == 0 : slot + 1 == pipeline_n_slots(pipeline))
        return ENGINE_NONE;
    const uint32_t before = forward ? slot - 1 : slot + 1;
    switch (pipeline->shape) {
    case PIPELINE_V: /* slot s < p is place s; above, stage 2 p - 1 - s of chunk 1 */
        return before < p ? before : p + (2 * p - 1 - before);
    case PIPELINE_TWO_WAYS: /* within its own copy */
        return place < p ? before : p + (p - 1 - before);
    default:
        return before;
    }
}

uint32_t pipeline_first_micro(const struct pipeline *pipeline, uint32_t chunk)
{
    return pipeline->shape == PIPELINE_TWO_WAYS && chunk == 1 ? pipeline->n_micro / 2 : 0;
}

uint32_t pipeline_end_micro(const struct pipeline *pipeline, uint32_t chunk)
{
    return pipeline->shape == PIPELINE_TWO_WAYS && chunk == 0 ? pipeline->n_micro / 2
                                                              : pipeline->n_micro;
}

uint32_t pipeline_most_passes(const struct pipeline *pipeline)
{
    return (pipeline->splits ? 3 : 2) * pipeline->n_micro * pipeline->n_chunks;
}

uint32_t pipeline_order(const struct pipeline *pipeline, uint32_t stage, struct pass *out)
{
    struct writer w = {.pipeline = pipeline, .out = out, .stage = stage};
    rows[pipeline->schedule].write(&w);
    return w.n;
}

double pipeline_in_flight(const struct pipeline *pipeline, uint32_t stage)
{
    return fmin(rows[pipeline->schedule].in_flight(pipeline, stage), pipeline->n_micro);
}
