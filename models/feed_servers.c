/* SPDX-License-Identifier: MIT
 *
 * The input pipeline in the simulator. Every stage is a server of the rate of all it has (workers,
 * reads in flight); batch i goes through fetch, prepare, decode, copy and then the step. With
 * prefetch, a stage works on the next batches meanwhile, q at most under way:
 *
 *   the first stage of batch i waits for the step of batch i - q to begin
 *   stages in line run on the GPU's own stream, right before its step
 *
 * The stall is the mean distance of two steps once the pipeline is full, less the step itself.
 */
#include "models/feed.h"
#include "sim/arena.h"
#include "sim/engine.h"

#include <math.h>

enum { MOST_BATCHES = 64, MEASURED_BATCHES = 32 };

struct servers {
    struct engine *engine;
    uint32_t stream[LOADER_N_STAGES + 1];                /* the last: the GPU */
    uint32_t first[2 * MOST_BATCHES + MEASURED_BATCHES]; /* task: first stage that overlaps */
    uint32_t ready[2 * MOST_BATCHES + MEASURED_BATCHES]; /* task: last one that does */
    uint32_t step[2 * MOST_BATCHES + MEASURED_BATCHES];  /* task: the step */
};

static ty_status add_task(struct servers *s, uint32_t stream, double time_s, uint32_t after,
                          uint32_t *id)
{
    const struct engine_task task = {.stream = s->stream[stream],
                                     .class_ = ENGINE_HOST,
                                     .latency_s = time_s,
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {ENGINE_NONE, ENGINE_NONE}};
    ty_status status = engine_add_task(s->engine, &task, id);
    if (status == TY_OK && after != ENGINE_NONE)
        status = engine_add_edge(s->engine, after, *id);
    return status;
}

static ty_status add_batch(struct servers *s, const struct loader *loader, const double *stage_s,
                           double compute_s, uint32_t batch)
{
    uint32_t last = ENGINE_NONE;
    ty_status status = TY_OK;
    const bool prefetch = loader->prefetch_batches >= 1.0;
    s->first[batch] = ENGINE_NONE;
    for (uint32_t i = 0; i < LOADER_N_STAGES && status == TY_OK; i++) {
        if (loader->in_line[i] || !prefetch || !(stage_s[i] > 0.0))
            continue;
        status = add_task(s, i, stage_s[i], last, &last);
        if (s->first[batch] == ENGINE_NONE)
            s->first[batch] = last;
    }
    s->ready[batch] = last;
    for (uint32_t i = 0; i < LOADER_N_STAGES && status == TY_OK; i++)
        if (loader->in_line[i] || !prefetch)
            status = add_task(s, LOADER_N_STAGES, stage_s[i], last, &last);
    return status == TY_OK ? add_task(s, LOADER_N_STAGES, compute_s, last, &s->step[batch])
                           : status;
}

/* The step of batch i - q has begun when that of the one before has ended and it was ready. */
static ty_status bound_batch(struct servers *s, uint32_t batch, uint32_t depth)
{
    if (s->first[batch] == ENGINE_NONE || batch < depth)
        return TY_OK;
    ty_status status = engine_add_edge(s->engine, s->ready[batch - depth], s->first[batch]);
    if (status == TY_OK && batch > depth)
        status = engine_add_edge(s->engine, s->step[batch - depth - 1], s->first[batch]);
    return status;
}

/* Batches under way; beyond the most, deeper prefetch changes nothing here. */
static uint32_t depth_of(const struct loader *loader)
{
    return (uint32_t)fmin(fmax(loader->prefetch_batches, 1.0), MOST_BATCHES);
}

static ty_status run_servers(struct servers *s, const struct feed_input *input,
                             const double *stage_s, double compute_s, uint32_t n)
{
    const uint32_t depth = depth_of(&input->loader);
    ty_status status = TY_OK;
    for (uint32_t i = 0; i <= LOADER_N_STAGES && status == TY_OK; i++)
        status = engine_add_stream(s->engine, &s->stream[i]);
    for (uint32_t i = 0; i < n && status == TY_OK; i++) {
        status = add_batch(s, &input->loader, stage_s, compute_s, i);
        if (status == TY_OK)
            status = bound_batch(s, i, depth);
    }
    return status == TY_OK ? engine_run(s->engine, &(struct engine_limits){0}, NULL) : status;
}

ty_status feed_serve(const struct feed_input *input, const double stage_s[LOADER_N_STAGES],
                     double compute_s, const struct ty_allocator *allocator, double *stall_s,
                     double *first_s)
{
    struct servers s = {0};
    const uint32_t n = 2 * depth_of(&input->loader) + MEASURED_BATCHES;
    ty_status status = engine_create(allocator, &s.engine);
    if (status != TY_OK)
        return status;
    status = run_servers(&s, input, stage_s, compute_s, n);
    if (status == TY_OK) {
        const uint32_t from = s.step[n - 1 - MEASURED_BATCHES], to = s.step[n - 1];
        const double span_s = engine_end_s(s.engine, to) - engine_end_s(s.engine, from);
        const double waited_s = span_s / MEASURED_BATCHES - compute_s;
        *stall_s = waited_s > 1e-9 * compute_s ? waited_s : 0.0; /* below: rounding */
        *first_s = engine_start_s(s.engine, s.step[0]);
    }
    engine_destroy(s.engine);
    return status;
}

/* ---- report ------------------------------------------------------------------------------- */

const char *ty_input_stage_name(enum ty_input_stage stage)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_INPUT_STAGE_LIST(X)
#undef X
            "none"};
    return names[(unsigned)stage < TY_N_INPUT_STAGES ? stage : TY_N_INPUT_STAGES];
}

/* What random batch times add: the replay's wait beyond that of even ones. */
static ty_status random_wait(const struct feed_input *input, const double *stage_s,
                             double compute_s, const struct ty_allocator *allocator, double *wait_s)
{
    enum { N_STEPS = 4096, SEED = 1 };
    const struct loader *loader = &input->loader;
    const uint32_t workers = (uint32_t)fmin(loader->workers, 1024.0);
    const struct loader_queue queue = {
        .batch_s = stage_s[LOADER_PREPARE] * workers,
        .variation = input->variation,
        .compute_s = compute_s,
        .workers = workers,
        .queue = (uint32_t)fmin(fmax(loader->prefetch_batches * workers, 1.0), N_STEPS),
        .n_steps = N_STEPS,
        .seed = SEED};
    double time_s, sum_s;
    const ty_status status = loader_replay(&queue, allocator, &time_s, &sum_s);
    if (status == TY_OK)
        *wait_s = sum_s / N_STEPS;
    return status;
}

static void report_step(const struct feed_input *input, const struct loader_step *step,
                        struct ty_input_report *out)
{
    const struct loader *loader = &input->loader;
    out->samples = loader->batch;
    out->sample_bytes = loader->sample_bytes;
    out->decode_s = loader->worker_s;
    out->workers = (uint32_t)loader->workers;
    out->prefetch = loader->prefetch_batches;
    for (int i = 0; i < LOADER_N_STAGES; i++)
        out->stage_s[i] = step->stage_s[i];
    out->fetch_stall_ratio = step->fetch_stall_ratio;
    out->prepare_stall_ratio = step->prepare_stall_ratio;
    out->hit_ratio = 1.0 - input->shares[input->n_levels - 1];
    out->host_bytes_per_node = step->memory_bytes + input->shuffle_bytes * loader->gpus_per_node;
    out->read_bytes_per_s = step->read.bytes_per_s;
    out->read_tier = input->levels[step->read.level].name;
    out->read_limit = tier_limit_text(step->read.limit);
}

static void report_need(const struct feed_input *input, const struct loader_source *source,
                        double compute_s, struct ty_input_report *out)
{
    const struct loader *loader = &input->loader;
    struct loader_need need;
    out->stall_target = 0.01;
    loader_need(loader, source, compute_s, out->stall_target, &need);
    out->need_workers = need.workers;
    out->cores = loader->cores_per_node / loader->gpus_per_node;
    out->need_node_bytes_per_s = need.node_bytes_per_s;
    out->need_total_bytes_per_s = need.total_bytes_per_s;
    out->need_node_ops_per_s = need.node_ops_per_s;
    out->need_total_ops_per_s = need.total_ops_per_s;
    out->can_node_bytes_per_s = need.read.bytes_per_s;
    out->can_node_ops_per_s = need.read.bytes_per_s / loader->request_bytes;
    out->can_tier = input->levels[need.read.level].name;
    out->can_limit = tier_limit_text(need.read.limit);
    out->need_reads_in_flight = need.in_flight;
    out->need_copy_bytes_per_s = need.copy_bytes_per_s;
    out->can_copy_bytes_per_s = loader->copy_bytes_per_s;
    out->max_gpus_per_node = need.max_gpus_per_node;
}

/* Tokens/s from a faster stage, by the closed form: 10 % more of what it has. */
static double gain_pct(const struct loader *loader, const struct loader_step *step,
                       enum loader_stage stage, double compute_s)
{
    double stage_s[LOADER_N_STAGES];
    for (int i = 0; i < LOADER_N_STAGES; i++)
        stage_s[i] = step->stage_s[i];
    stage_s[stage] /= 1.1;
    return 100.0 * (step->step_s / loader_time_s(loader, stage_s, compute_s) - 1.0);
}

static int longest(const double *stage_s)
{
    int at = 0;
    for (int i = 1; i < LOADER_N_STAGES; i++)
        at = stage_s[i] > stage_s[at] ? i : at;
    return at;
}

ty_status feed_report(const struct ty_storage *storage, const struct setting *setting,
                      const struct ty_plan *plan, double compute_s,
                      const struct ty_allocator *allocator, struct ty_input_report *out,
                      struct ty_error *error)
{
    struct feed_input input;
    struct loader_step step;
    double wait_s = 0.0;
    ty_status status = feed_input(storage, setting, plan, allocator, &input, error);
    if (status != TY_OK)
        return status;
    const struct loader_source source = {input.levels, input.shares, input.n_levels};
    status = loader_step(&input.loader, &source, compute_s, &step, error);
    if (status == TY_OK)
        status = feed_serve(&input, step.stage_s, compute_s, allocator, &out->stall_s,
                            &out->first_batch_s);
    if (status == TY_OK && input.variation > 0.0)
        status = random_wait(&input, step.stage_s, compute_s, allocator, &wait_s);
    if (status != TY_OK)
        return status;
    out->stall_s = fmax(out->stall_s, wait_s) + input.loader.start_s / input.steps_per_epoch;
    out->stall_ratio = out->stall_s / (compute_s + out->stall_s);
    out->samples_per_s = input.loader.batch * plan->n_gpus / (compute_s + out->stall_s);
    out->limit = out->stall_s > 0.0 ? longest(step.stage_s) : TY_N_INPUT_STAGES;
    out->storage_gain_pct = gain_pct(&input.loader, &step, LOADER_FETCH, compute_s);
    out->workers_gain_pct = gain_pct(&input.loader, &step, LOADER_PREPARE, compute_s);
    report_step(&input, &step, out);
    report_need(&input, &source, compute_s, out);
    return TY_OK;
}
