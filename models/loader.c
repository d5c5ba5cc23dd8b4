/* SPDX-License-Identifier: MIT
 *
 * Stages of the input pipeline and what they leave of a step; the inverse; replay of the queue.
 */
#include "models/loader.h"
#include "sim/arena.h"
#include "sim/error.h"
#include "sim/random.h"

#include <math.h>

static const char *const STAGE_TEXTS[] = {
#define X(id, text) text,
    LOADER_STAGE_LIST(X)
#undef X
        "GPU"};

const char *loader_stage_text(enum loader_stage stage)
{
    return stage <= LOADER_N_STAGES ? STAGE_TEXTS[stage] : "";
}

ty_status loader_check(const struct loader *loader, struct ty_error *error)
{
    const struct {
        const char *name;
        double value;
    } positive[] = {{"batch", loader->batch},
                    {"request_bytes", loader->request_bytes},
                    {"workers", loader->workers},
                    {"device_samples_per_s", loader->device_samples_per_s},
                    {"copy_bytes_per_s", loader->copy_bytes_per_s},
                    {"gpus_per_node", loader->gpus_per_node},
                    {"nodes", loader->nodes},
                    {"cores_per_node", loader->cores_per_node},
                    {"host_bytes_per_node", loader->host_bytes_per_node}},
      amounts[] = {{"sample_bytes", loader->sample_bytes},
                   {"ready_bytes", loader->ready_bytes},
                   {"worker_s", loader->worker_s},
                   {"reads_in_flight", loader->reads_in_flight},
                   {"prefetch_batches", loader->prefetch_batches},
                   {"start_s", loader->start_s}};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (!(positive[i].value > 0.0))
            return error_set(error, TY_ERR_RANGE, positive[i].name, "must be above 0, is %g",
                             positive[i].value);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
        if (!(amounts[i].value >= 0.0) || isinf(amounts[i].value))
            return error_set(error, TY_ERR_RANGE, amounts[i].name, "must be 0 or more, is %g",
                             amounts[i].value);
    return TY_OK;
}

/* ---- one step ------------------------------------------------------------------------------ */

static struct tier_use reads_of(const struct loader *loader, double node_in_flight)
{
    return (struct tier_use){loader->nodes, loader->request_bytes, node_in_flight, false};
}

/* Reads beside the workers have their latency in the fetch stage; a worker that waits for its own
 * reads has it in its time per sample. */
static bool workers_read(const struct loader *loader)
{
    return loader->reads_in_flight == 0.0;
}

static double in_flight(const struct loader *loader)
{
    return workers_read(loader) ? (double)INFINITY
                                : loader->reads_in_flight * loader->gpus_per_node;
}

static double worker_s(const struct loader *loader, const struct loader_source *source)
{
    if (!workers_read(loader))
        return loader->worker_s;
    const double reads = loader->sample_bytes / loader->request_bytes;
    return loader->worker_s +
           reads * tier_stack_latency_s(source->levels, source->shares, source->n_levels);
}

static void stage_times(const struct loader *loader, const struct loader_source *source,
                        const struct tier_rate *read, double *stage_s)
{
    const double node_bytes = loader->batch * loader->sample_bytes * loader->gpus_per_node;
    stage_s[LOADER_FETCH] = node_bytes / read->bytes_per_s;
    stage_s[LOADER_PREPARE] = loader->batch * worker_s(loader, source) / loader->workers;
    stage_s[LOADER_DECODE] = loader->batch / loader->device_samples_per_s;
    stage_s[LOADER_COPY] = loader->batch * loader->ready_bytes / loader->copy_bytes_per_s;
}

/* The equation of the header. */
double loader_time_s(const struct loader *loader, const double *stage_s, double compute_s)
{
    double longest_s = compute_s, sum_s = 0.0;
    for (int i = 0; i < LOADER_N_STAGES; i++) {
        if (loader->in_line[i] || loader->prefetch_batches == 0.0)
            sum_s += stage_s[i];
        else
            longest_s = fmax(longest_s, stage_s[i]);
    }
    return longest_s + sum_s;
}

/* Stall with other times of the fetch and prepare stages. */
static double stall_with(const struct loader *loader, const struct loader_step *step,
                         double fetch_s, double prepare_s)
{
    const double stage_s[] = {[LOADER_FETCH] = fetch_s,
                              [LOADER_PREPARE] = prepare_s,
                              [LOADER_DECODE] = step->stage_s[LOADER_DECODE],
                              [LOADER_COPY] = step->stage_s[LOADER_COPY]};
    const double compute_s = step->step_s * (1.0 - step->stall_ratio);
    return 1.0 - compute_s / loader_time_s(loader, stage_s, compute_s);
}

static enum loader_stage longest_stage(const double *stage_s)
{
    enum loader_stage longest = LOADER_FETCH;
    for (enum loader_stage i = LOADER_PREPARE; i < LOADER_N_STAGES; i++)
        if (stage_s[i] > stage_s[longest])
            longest = i;
    return longest;
}

ty_status loader_step(const struct loader *loader, const struct loader_source *source,
                      double compute_s, struct loader_step *out, struct ty_error *error)
{
    const double cores = loader->workers * loader->gpus_per_node;
    const double held_bytes = loader->prefetch_batches * loader->batch * loader->ready_bytes;
    const double memory_bytes = held_bytes * loader->gpus_per_node;
    if (cores > loader->cores_per_node)
        return error_set(error, TY_ERR_INFEASIBLE, "workers", "need %g cores of a node with %g",
                         cores, loader->cores_per_node);
    if (memory_bytes > loader->host_bytes_per_node)
        return error_set(error, TY_ERR_INFEASIBLE, "prefetch_batches",
                         "hold %g bytes of a node with %g", memory_bytes,
                         loader->host_bytes_per_node);
    const struct tier_use use = reads_of(loader, in_flight(loader));
    out->read = tier_stack_rate(source->levels, source->shares, source->n_levels, &use);
    out->memory_bytes = memory_bytes;
    stage_times(loader, source, &out->read, out->stage_s);
    out->step_s = loader_time_s(loader, out->stage_s, compute_s);
    out->stall_ratio = 1.0 - compute_s / out->step_s;
    out->limit = out->stall_ratio > 0.0 ? longest_stage(out->stage_s) : LOADER_N_STAGES;
    const double cpu_s = loader->batch * loader->worker_s / loader->workers;
    out->fetch_stall_ratio =
        stall_with(loader, out, out->stage_s[LOADER_FETCH], out->stage_s[LOADER_PREPARE] - cpu_s);
    out->prepare_stall_ratio = stall_with(loader, out, 0.0, cpu_s);
    return TY_OK;
}

/* ---- the inverse --------------------------------------------------------------------------- */

/* A step may take T_gpu / (1 - stall): every stage must be done with a batch in that time. */
void loader_need(const struct loader *loader, const struct loader_source *source, double compute_s,
                 double stall_ratio, struct loader_need *out)
{
    const double samples_per_s = loader->batch * (1.0 - stall_ratio) / compute_s;
    const double gpu_bytes_per_s = samples_per_s * loader->sample_bytes;
    out->cores_per_gpu = samples_per_s * worker_s(loader, source);
    out->workers = ceil(out->cores_per_gpu * (1.0 - 1e-12)); /* 15 stays 15 after rounding */
    out->cores_suffice = out->workers * loader->gpus_per_node <= loader->cores_per_node;
    out->node_bytes_per_s = gpu_bytes_per_s * loader->gpus_per_node;
    out->total_bytes_per_s = out->node_bytes_per_s * loader->nodes;
    out->node_ops_per_s = out->node_bytes_per_s / loader->request_bytes;
    out->total_ops_per_s = out->total_bytes_per_s / loader->request_bytes;
    out->copy_bytes_per_s = samples_per_s * loader->ready_bytes;
    out->device_samples_per_s = samples_per_s;
    const struct tier_use hidden = reads_of(loader, INFINITY);
    out->read = tier_stack_rate(source->levels, source->shares, source->n_levels, &hidden);
    out->in_flight = tier_stack_in_flight(source->levels, source->shares, source->n_levels, &hidden,
                                          out->node_bytes_per_s);
    out->max_gpus_per_node = floor(out->read.bytes_per_s / gpu_bytes_per_s);
}

double loader_epoch_samples_per_s(const struct loader *loader, double step_s, double n_steps)
{
    const double gpus = loader->gpus_per_node * loader->nodes;
    return gpus * loader->batch * n_steps / (loader->start_s + n_steps * step_s);
}

/* ---- replay of the queue ------------------------------------------------------------------- */

/* Log-normal with mean 1 and coefficient of variation v: s^2 = ln(1 + v^2), m = - s^2 / 2. */
static double random_factor(struct random_stream *stream, double variation)
{
    const double variance = log1p(variation * variation);
    return exp(sqrt(variance) * random_normal(stream) - 0.5 * variance);
}

ty_status loader_replay(const struct loader_queue *queue, const struct ty_allocator *allocator,
                        double *time_s, double *wait_s)
{
    if (queue->workers < 1 || queue->queue < 1 || queue->n_steps < 1 || !(queue->batch_s >= 0.0) ||
        !(queue->compute_s >= 0.0) || !(queue->variation >= 0.0))
        return TY_ERR_RANGE;
    struct arena arena;
    arena_init(&arena, allocator);
    double *end_s = arena_get(&arena, queue->n_steps, sizeof *end_s);
    double *begin_s = arena_get(&arena, queue->n_steps, sizeof *begin_s);
    struct random_stream stream;
    random_init(&stream, queue->seed, 0);
    double free_s = 0.0; /* when the GPU has finished what it has */
    for (uint32_t i = 0; end_s && begin_s && i < queue->n_steps; i++) {
        const double worker_end_s = i >= queue->workers ? end_s[i - queue->workers] : 0.0;
        const double slot_s = i >= queue->queue ? begin_s[i - queue->queue] : 0.0;
        const double batch_s = queue->batch_s * random_factor(&stream, queue->variation);
        end_s[i] = fmax(worker_end_s, slot_s) + batch_s;
        begin_s[i] = fmax(free_s, end_s[i]);
        free_s = begin_s[i] + queue->compute_s;
    }
    const ty_status status = end_s && begin_s ? TY_OK : TY_ERR_NOMEM;
    if (status == TY_OK) {
        *time_s = free_s;
        *wait_s = free_s - queue->n_steps * queue->compute_s;
    }
    arena_destroy(&arena);
    return status;
}
