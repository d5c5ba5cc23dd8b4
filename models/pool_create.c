/* SPDX-License-Identifier: MIT
 * From the caller's structs to a simulation: checks, nodes, jobs in submit order, shapes. */
#include "models/pool.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ty_pool_init(struct ty_pool *pool)
{
    *pool = (struct ty_pool){.policy = "fifo",
                             .read_bytes_per_s = NAN,
                             .storage_bytes_per_s = NAN,
                             .checkpoint_every_s = NAN,
                             .node_mtbf_s = NAN,
                             .las_limit_gpu_s = {3250.0, 7200.0}};
}

void ty_pool_job_init(struct ty_pool_job *job)
{
    *job = (struct ty_pool_job){.limit_s = NAN,
                                .deadline_s = NAN,
                                .share = NAN,
                                .cpus = NAN,
                                .mem_bytes = NAN,
                                .restart_s = NAN,
                                .checkpoint_bytes = NAN,
                                .serial = NAN,
                                .gpus = 1};
}

static double given(double value, double fallback)
{
    return isnan(value) ? fallback : value;
}

/* ---- checks ------------------------------------------------------------------------------- */

static ty_status check_pool(const struct ty_pool *pool, uint64_t n_jobs, struct ty_error *error)
{
    if (!pool->policy || !pool_policy_find(pool->policy))
        return error_set(error, TY_ERR_INPUT, "pool: policy", "\"%s\" is no policy",
                         pool->policy ? pool->policy : "");
    if (pool->n_groups < 1 || pool->n_groups > 64)
        return error_set(error, TY_ERR_RANGE, "pool: groups", "%u groups, not 1 to 64",
                         pool->n_groups);
    double gpus = 0.0, nodes = 0.0;
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        const struct ty_pool_nodes *group = &pool->groups[i];
        gpus += (double)group->n_nodes * group->gpus_per_node;
        nodes += group->n_nodes;
        if (group->cpus < 0.0 || group->mem_bytes < 0.0 || group->pod >= POOL_MAX_GPUS)
            return error_set(error, TY_ERR_RANGE, "pool: groups",
                             "group %u: cores, memory or pod outside its range", i);
    }
    if (!(gpus >= 1.0) || gpus > POOL_MAX_GPUS || nodes > POOL_MAX_GPUS)
        return error_set(error, TY_ERR_RANGE, "pool: groups",
                         "%.0f GPUs on %.0f nodes, not 1 to %u", gpus, nodes, POOL_MAX_GPUS);
    if (!(pool->restart_s >= 0.0) || isinf(pool->restart_s))
        return error_set(error, TY_ERR_RANGE, "pool: restart_s", "must be finite and >= 0");
    if (pool->read_bytes_per_s <= 0.0 || pool->storage_bytes_per_s <= 0.0)
        return error_set(error, TY_ERR_RANGE, "pool: read_bytes_per_s, storage_bytes_per_s",
                         "must be > 0, or NAN");
    if (pool->checkpoint_every_s <= 0.0 || pool->node_mtbf_s <= 0.0)
        return error_set(error, TY_ERR_RANGE, "pool: checkpoint_every_s, node_mtbf_s",
                         "must be > 0, or NAN for none");
    if (!(pool->repair_s >= 0.0) || isinf(pool->repair_s))
        return error_set(error, TY_ERR_RANGE, "pool: repair_s", "must be finite and >= 0");
    if (!(pool->las_limit_gpu_s[0] > 0.0) || !(pool->las_limit_gpu_s[1] > 0.0))
        return error_set(error, TY_ERR_RANGE, "pool: las_limit_gpu_s", "must be > 0");
    if (n_jobs > POOL_MAX_JOBS)
        return error_set(error, TY_ERR_RANGE, "jobs", "more than %u", POOL_MAX_JOBS);
    return TY_OK;
}

/* Sizes ascend, each a multiple of the worker, and hold the three that the job names. */
static const char *bad_sizes(const struct ty_pool_job *job, uint32_t worker, uint32_t least,
                             uint32_t most)
{
    uint32_t n_named = 0;
    for (uint32_t i = 0; i < job->n_sizes; i++) {
        const struct ty_pool_size *size = &job->sizes[i];
        if (size->gpus <= (i ? job->sizes[i - 1].gpus : 0) || size->gpus % worker)
            return "sizes must ascend in multiples of worker";
        if (!(size->speed > 0.0) || isinf(size->speed))
            return "speeds of sizes must be above 0";
        n_named += size->gpus == job->gpus;
        n_named += size->gpus == least;
        n_named += size->gpus == most;
    }
    return n_named == 3 ? NULL : "gpus, min_gpus and max_gpus must be among sizes";
}

static const char *bad_size(const struct ty_pool_job *job)
{
    const uint32_t worker = job->worker ? job->worker : 1;
    const uint32_t least = job->min_gpus ? job->min_gpus : job->gpus;
    const uint32_t most = job->max_gpus ? job->max_gpus : job->gpus;
    if (job->gpus < 1 || job->gpus > POOL_MAX_GPUS || most > POOL_MAX_GPUS)
        return "gpus must be 1 to 2^20";
    if (least > most)
        return "min_gpus exceeds max_gpus";
    if (job->gpus % worker || least % worker || most % worker)
        return "gpus, min_gpus and max_gpus must be multiples of worker";
    const double share = given(job->share, 1.0);
    if (!(share >= 0.001) || share > 1.0 || (share < 1.0 && (job->gpus != 1 || most != 1)))
        return "share must be 0.001 to 1, below 1 only for one GPU";
    return job->sizes ? bad_sizes(job, worker, least, most) : NULL;
}

static const char *bad_job(const struct ty_pool_job *job)
{
    if (!(job->submit_s >= 0.0) || isinf(job->submit_s))
        return "submit_s must be finite and >= 0";
    if (!(job->duration_s > 0.0) || isinf(job->duration_s))
        return "duration_s must be finite and > 0";
    if (job->limit_s <= 0.0)
        return "limit_s must be > 0";
    if (given(job->restart_s, 0.0) < 0.0 || isinf(job->restart_s))
        return "restart_s must be finite and >= 0";
    if (given(job->checkpoint_bytes, 0.0) < 0.0 || isinf(job->checkpoint_bytes))
        return "checkpoint_bytes must be finite and >= 0";
    if (given(job->cpus, 0.0) < 0.0 || given(job->mem_bytes, 0.0) < 0.0)
        return "cpus and mem_bytes must be >= 0";
    if (given(job->serial, 0.0) < 0.0 || given(job->serial, 0.0) > 1.0)
        return "serial must be 0 to 1";
    if (job->level < TY_POOL_ANY || job->level > TY_POOL_POD)
        return "level is none";
    return bad_size(job);
}

static ty_status check_jobs(const struct ty_pool *pool, const struct ty_pool_job *jobs,
                            uint64_t n_jobs, struct ty_error *error)
{
    for (uint64_t i = 0; i < n_jobs; i++) {
        const char *bad = bad_job(&jobs[i]);
        if (!bad && jobs[i].queue >= (pool->queues ? pool->n_queues : 65536))
            bad = "queue is none";
        if (bad) {
            char where[64];
            text_format(where, sizeof where, "jobs[%llu]", (unsigned long long)i);
            return error_set(error, TY_ERR_RANGE, where, "%s", bad);
        }
    }
    for (uint32_t i = 0; pool->queues && i < pool->n_queues; i++) {
        const struct ty_pool_queue *queue = &pool->queues[i];
        if (given(queue->weight, 1.0) <= 0.0 || given(queue->quota_gpus, 0.0) < 0.0 ||
            given(queue->borrow_gpus, 0.0) < 0.0)
            return error_set(error, TY_ERR_RANGE, "pool: queues",
                             "queue %u: weight must be > 0, quota and borrowing >= 0", i);
    }
    return TY_OK;
}

/* ---- nodes and queues --------------------------------------------------------------------- */

static bool create_nodes(struct pool_sim *sim)
{
    const struct ty_pool *pool = sim->config;
    for (uint32_t i = 0; i < pool->n_groups; i++)
        sim->n_nodes += pool->groups[i].n_nodes;
    sim->nodes = arena_get(&sim->arena, sim->n_nodes, sizeof *sim->nodes);
    if (!sim->nodes)
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        const struct ty_pool_nodes *group = &pool->groups[i];
        const uint32_t per_leaf = group->nodes_per_leaf ? group->nodes_per_leaf : group->n_nodes;
        for (uint32_t k = 0; k < group->n_nodes; k++) {
            sim->n_leaves += k % per_leaf == 0;
            sim->nodes[n++] = (struct pool_node){.gpus = group->gpus_per_node,
                                                 .leaf = sim->n_leaves - 1,
                                                 .pod = group->pod,
                                                 .group = UINT64_C(1) << i,
                                                 .cpus = given(group->cpus, INFINITY),
                                                 .mem_bytes = given(group->mem_bytes, INFINITY)};
            sim->total_gpus += group->gpus_per_node;
            sim->total_cpus += given(group->cpus, INFINITY);
            sim->total_mem_bytes += given(group->mem_bytes, INFINITY);
        }
        sim->n_pods = group->pod >= sim->n_pods ? group->pod + 1 : sim->n_pods;
    }
    sim->whole_gpus = (int64_t)sim->total_gpus;
    const uint32_t n_domains = sim->n_leaves > sim->n_pods ? sim->n_leaves : sim->n_pods;
    sim->domain = arena_get(&sim->arena, n_domains, sizeof *sim->domain);
    sim->order = arena_get(&sim->arena, sim->n_nodes, sizeof *sim->order);
    return sim->domain && sim->order;
}

static bool create_queues(struct pool_sim *sim, const struct ty_pool_job *jobs, uint64_t n_jobs)
{
    const struct ty_pool *pool = sim->config;
    sim->n_queues = pool->queues ? pool->n_queues : 1;
    for (uint64_t i = 0; i < n_jobs; i++)
        if (jobs[i].queue >= sim->n_queues)
            sim->n_queues = jobs[i].queue + 1;
    sim->queues = arena_get(&sim->arena, sim->n_queues, sizeof *sim->queues);
    sim->use = arena_get(&sim->arena, sim->n_queues, sizeof *sim->use);
    if (!sim->queues || !sim->use)
        return false;
    double weights = 0.0;
    for (uint32_t i = 0; i < sim->n_queues; i++) {
        struct ty_pool_queue *queue = &sim->queues[i];
        *queue = pool->queues
                     ? pool->queues[i]
                     : (struct ty_pool_queue){.weight = NAN, .quota_gpus = NAN, .borrow_gpus = NAN};
        queue->weight = given(queue->weight, 1.0);
        queue->borrow_gpus = given(queue->borrow_gpus, INFINITY);
        weights += queue->weight;
    }
    for (uint32_t i = 0; i < sim->n_queues; i++)
        sim->queues[i].quota_gpus =
            given(sim->queues[i].quota_gpus, sim->total_gpus * sim->queues[i].weight / weights);
    return true;
}

/* ---- jobs --------------------------------------------------------------------------------- */

static int compare_jobs(const void *left, const void *right)
{
    const struct pool_job *a = left, *b = right;
    if (a->job->submit_s != b->job->submit_s)
        return a->job->submit_s < b->job->submit_s ? -1 : 1;
    return a->origin < b->origin ? -1 : a->origin > b->origin;
}

/* Start-up and the reading of the checkpoint. */
static double restart_of(const struct ty_pool *pool, const struct ty_pool_job *job)
{
    const double read_s = given(job->checkpoint_bytes, 0.0) / pool->read_bytes_per_s;
    return given(job->restart_s, pool->restart_s) + given(read_s, 0.0);
}

static bool create_jobs(struct pool_sim *sim, const struct ty_pool_job *jobs, uint32_t n_jobs)
{
    sim->jobs = arena_get(&sim->arena, n_jobs, sizeof *sim->jobs);
    sim->running = arena_get(&sim->arena, n_jobs, sizeof *sim->running);
    sim->chosen = arena_get(&sim->arena, (size_t)n_jobs + 1, sizeof *sim->chosen);
    sim->live = arena_get(&sim->arena, n_jobs, sizeof *sim->live);
    sim->shapes = arena_get(&sim->arena, n_jobs, sizeof *sim->shapes);
    if (!sim->jobs || !sim->running || !sim->chosen || !sim->live || !sim->shapes)
        return false;
    bool sorted = true;
    for (uint32_t i = 0; i < n_jobs; i++) {
        sim->jobs[i] = (struct pool_job){
            .job = &jobs[i],
            .origin = i,
            .remaining_s = jobs[i].duration_s,
            .restart_s = restart_of(sim->config, &jobs[i]),
            .end_s = NAN,
            .first_start_s = NAN,
            .pieces = POOL_NONE,
        };
        sorted = sorted && (i == 0 || jobs[i - 1].submit_s <= jobs[i].submit_s);
        sim->n_slots += given(jobs[i].share, 1.0) < 1.0;
    }
    if (!sorted)
        qsort(sim->jobs, n_jobs, sizeof *sim->jobs, compare_jobs);
    sim->n_jobs = n_jobs;
    /* As many shared GPUs as may be in use, and as many that a pass opens before it closes any. */
    if (sim->n_slots > sim->total_gpus)
        sim->n_slots = (uint32_t)sim->total_gpus;
    sim->n_slots *= 2;
    return true;
}

/* Bits of the groups whose GPU is one of the names, parted by '|'. */
static uint64_t groups_of(const struct ty_pool *pool, const char *gpu)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        bool match = !gpu || !*gpu;
        for (const char *name = gpu; !match && name; name = strchr(name, '|')) {
            name += *name == '|';
            const size_t length = strcspn(name, "|");
            match = strlen(pool->groups[i].gpu) == length &&
                    strncmp(pool->groups[i].gpu, name, length) == 0;
        }
        bits |= (uint64_t)match << i;
    }
    return bits;
}

static struct pool_shape shape_of(const struct pool_sim *sim, const struct ty_pool_job *job)
{
    const bool elastic = sim->policy->elastic && job->min_gpus;
    return (struct pool_shape){
        .groups = groups_of(sim->config, job->gpu),
        .cpus = given(job->cpus, 0.0),
        .mem_bytes = given(job->mem_bytes, 0.0),
        .gpus = elastic ? job->min_gpus : job->gpus,
        .worker = job->worker ? job->worker : 1,
        .milli = (uint32_t)lround(1000.0 * given(job->share, 1.0)),
        .queue = sim->policy->by_queue ? job->queue : 0,
        .level = job->level,
        .root = POOL_NONE,
        .first = POOL_NONE,
        .cursor = POOL_NONE,
    };
}

static bool same_shape(const struct pool_shape *a, const struct pool_shape *b)
{
    return a->groups == b->groups && a->cpus == b->cpus && a->mem_bytes == b->mem_bytes &&
           a->gpus == b->gpus && a->worker == b->worker && a->milli == b->milli &&
           a->queue == b->queue && a->level == b->level;
}

/* FNV-1a over the words of a request. */
static uint32_t hash_shape(const struct pool_shape *shape)
{
    uint64_t words[5] = {shape->groups, (uint64_t)shape->gpus << 32 | shape->worker,
                         (uint64_t)shape->milli << 32 | shape->queue, 0, 0};
    memcpy(&words[3], &shape->cpus, sizeof words[3]);
    memcpy(&words[4], &shape->mem_bytes, sizeof words[4]);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < 5; i++)
        hash = (hash ^ words[i] ^ words[i] >> 29) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32);
}

/* Gives each job the number of its shape; a hash table with room for twice the jobs. */
static bool create_shapes(struct pool_sim *sim)
{
    uint32_t size = 16;
    while (size < 2 * (uint64_t)sim->n_jobs)
        size *= 2;
    uint32_t *table = arena_get(&sim->arena, size, sizeof *table);
    if (!table)
        return false;
    for (uint32_t i = 0; i < sim->n_jobs; i++) {
        const struct pool_shape shape = shape_of(sim, sim->jobs[i].job);
        uint32_t at = hash_shape(&shape) & (size - 1);
        while (table[at] && !same_shape(&sim->shapes[table[at] - 1], &shape))
            at = (at + 1) & (size - 1);
        if (!table[at]) {
            sim->shapes[sim->n_shapes++] = shape;
            table[at] = sim->n_shapes;
        }
        sim->jobs[i].shape = table[at] - 1;
    }
    return true;
}

/* What does not fit on the empty cluster never will. */
static void refuse_impossible(struct pool_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_shapes; i++) {
        struct pool_shape *shape = &sim->shapes[i];
        const uint32_t pieces = place_find(sim, &sim->room, shape, shape->gpus);
        if (pieces != POOL_NONE)
            place_free(sim, pieces);
        else if (!shape->groups)
            shape->refused = "no node has a GPU of its type";
        else if (sim->total_gpus < shape->gpus)
            shape->refused = "it asks for more GPUs than there are";
        else
            shape->refused = "its workers do not fit on the empty cluster";
    }
}

static bool create_failures(struct pool_sim *sim)
{
    if (isnan(sim->config->node_mtbf_s))
        return true;
    sim->failures = arena_get(&sim->arena, sim->n_nodes, sizeof *sim->failures);
    if (!sim->failures)
        return false;
    for (uint32_t i = 0; i < sim->n_nodes; i++) {
        random_init(&sim->failures[i], sim->config->seed, i);
        const double first_s = sim->config->node_mtbf_s * random_exponential(&sim->failures[i]);
        if (!queue_set(sim->events, 2 * sim->n_jobs + i, first_s, POOL_NODE_EVENT))
            return false;
    }
    return true;
}

static bool create(struct pool_sim *sim, const struct ty_pool_job *jobs, uint32_t n_jobs)
{
    if (!create_nodes(sim) || !create_queues(sim, jobs, n_jobs) ||
        !create_jobs(sim, jobs, n_jobs) || !create_shapes(sim) || !room_create(sim, &sim->room) ||
        !room_create(sim, &sim->spare) || !room_create(sim, &sim->other))
        return false;
    room_empty(sim, &sim->room);
    refuse_impossible(sim);
    for (uint32_t i = 0; i < n_jobs; i++)
        sim->n_left += !sim->shapes[sim->jobs[i].shape].refused;
    return queue_create(sim->config->allocator, &sim->events) == TY_OK && create_failures(sim) &&
           !sim->out_of_memory;
}

ty_status pool_sim_create(const struct ty_pool *config, const struct ty_pool_job *jobs,
                          uint64_t n_jobs, struct pool_sim *sim, struct ty_error *error)
{
    ty_status status = check_pool(config, n_jobs, error);
    if (status == TY_OK)
        status = check_jobs(config, jobs, n_jobs, error);
    if (status != TY_OK)
        return status;
    *sim = (struct pool_sim){
        .config = config, .policy = pool_policy_find(config->policy), .free_piece = POOL_NONE};
    arena_init(&sim->arena, config->allocator);
    if (create(sim, jobs, (uint32_t)n_jobs))
        return TY_OK;
    pool_sim_destroy(sim);
    return error_set(error, TY_ERR_NOMEM, "pool", "out of memory");
}

void pool_sim_destroy(struct pool_sim *sim)
{
    array_free(&sim->arena.allocator, sim->pieces, sim->piece_capacity, sizeof *sim->pieces);
    queue_destroy(sim->events);
    arena_destroy(&sim->arena);
}
