/* SPDX-License-Identifier: MIT
 * `trainyard pool`: replays a trace of jobs on a shared cluster. */
#include "cli/pool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POLICIES = 32 };

/* ---- inputs ------------------------------------------------------------------------------- */

/* "300", "300 s", "50 ms". */
static ty_status read_time(const char *name, const char *text, double *out, struct ty_error *error)
{
    char with_unit[64];
    if (!text)
        return TY_OK;
    const bool has_unit = strpbrk(text, "abcdefghijklmnopqrstuvwxyz") != NULL;
    snprintf(with_unit, sizeof with_unit, "%s%s", text, has_unit ? "" : " s");
    if (ty_quantity_parse(with_unit, TY_UNIT_S, out, error) != TY_OK)
        return cli_refuse(error, name, "\"%s\" is not a time in s", text);
    return TY_OK;
}

/* One node that holds all, or nodes of the cluster file: `gpus` of them, 0: all it has. */
static ty_status use_gpus(const struct cli_args *args, struct pool_inputs *in, uint32_t gpus,
                          struct ty_error *error)
{
    const struct ty_cluster *cluster = &in->cluster;
    struct ty_pool_nodes *nodes = &in->groups[0];
    *nodes = (struct ty_pool_nodes){
        .n_nodes = 1, .gpus_per_node = gpus, .cpus = (double)NAN, .mem_bytes = (double)NAN};
    if (!args->cluster)
        return TY_OK;
    const uint32_t per_node = cluster->gpus_per_node;
    nodes->n_nodes = gpus ? gpus / per_node : cluster->n_nodes;
    nodes->gpus_per_node = per_node;
    nodes->nodes_per_leaf = cluster->nodes_per_leaf;
    nodes->mem_bytes = cluster->host_mem_bytes;
    if (cluster->cpu_cores_per_node)
        nodes->cpus = cluster->cpu_cores_per_node;
    snprintf(nodes->gpu, sizeof nodes->gpu, "%s", cluster->gpu.name);
    if (nodes->n_nodes == 0 || gpus % per_node)
        return cli_refuse(error, "--gpus", "the cluster needs a number of GPUs: a multiple of %u",
                          per_node);
    if (cluster->n_nodes && nodes->n_nodes > cluster->n_nodes)
        return cli_refuse(error, "--gpus", "the cluster has %u GPUs", cluster->n_nodes * per_node);
    return TY_OK;
}

static ty_status read_nodes(const struct cli_args *args, struct pool_inputs *in,
                            struct ty_error *error)
{
    in->pool.groups = in->groups;
    in->pool.n_groups = 1;
    if (args->pool.nodes && (args->cluster || args->pool.gpus))
        return cli_refuse(error, "--nodes", "stands alone, without --cluster and --gpus");
    if (args->pool.nodes)
        return ty_pool_nodes_read(args->pool.nodes, in->groups, POOL_MAX_GROUPS, &in->pool.n_groups,
                                  error);
    if (!args->cluster && !args->pool.gpus)
        return cli_refuse(error, "pool", "needs --gpus N, --cluster C or --nodes FILE");
    ty_status status = TY_OK;
    if (args->cluster)
        status = cli_load_cluster(args, args->cluster, &in->cluster, error);
    const uint32_t step = args->cluster ? in->cluster.gpus_per_node : 1;
    if (status == TY_OK && args->pool.gpus)
        status = cli_values_parse(args->pool.gpus, step, "--gpus", &in->gpus, error);
    if (status == TY_OK)
        status = use_gpus(args, in, in->gpus.n ? in->gpus.value[0] : 0, error);
    return status;
}

static ty_status read_settings(const struct cli_args *args, struct ty_pool *pool,
                               struct ty_error *error)
{
    pool->seed = args->seed;
    pool->preempt_loses = args->pool.lossy;
    ty_status status = read_time("--restart", args->pool.restart, &pool->restart_s, error);
    if (status == TY_OK && args->pool.read_rate)
        status = ty_quantity_parse(args->pool.read_rate, TY_UNIT_BYTES_PER_S,
                                   &pool->read_bytes_per_s, error);
    if (status == TY_OK && args->pool.storage_rate)
        status = ty_quantity_parse(args->pool.storage_rate, TY_UNIT_BYTES_PER_S,
                                   &pool->storage_bytes_per_s, error);
    if (status == TY_OK)
        status = read_time("--checkpoint", args->pool.checkpoint, &pool->checkpoint_every_s, error);
    if (status == TY_OK)
        status = read_time("--mtbf", args->pool.mtbf, &pool->node_mtbf_s, error);
    if (status == TY_OK)
        status = read_time("--repair", args->pool.repair, &pool->repair_s, error);
    if (status != TY_OK || !args->pool.placement)
        return status;
    if (strcmp(args->pool.placement, "spread") == 0)
        pool->placement = TY_POOL_SPREAD;
    else if (strcmp(args->pool.placement, "pack") != 0)
        return cli_refuse(error, "--placement", "\"%s\" is not pack or spread",
                          args->pool.placement);
    return TY_OK;
}

static ty_status read_inputs(const struct cli_args *args, struct pool_inputs *in,
                             struct ty_error *error)
{
    ty_pool_init(&in->pool);
    if (!args->pool.trace)
        return cli_refuse(error, "pool", "needs --trace FILE");
    ty_status status = read_nodes(args, in, error);
    if (status == TY_OK)
        status = read_settings(args, &in->pool, error);
    if (status == TY_OK)
        status =
            ty_trace_read(args->pool.trace, args->pool.format, args->pool.queue, &in->trace, error);
    if (status == TY_OK && args->pool.curves)
        status = pool_use_curves(args, in, error);
    bool named = false;
    for (uint64_t i = 0; i < in->trace.n_jobs; i++)
        named |= in->trace.jobs[i].curve != NULL;
    if (status == TY_OK && named && !args->pool.curves && !args->quiet)
        cli_warn("unused: column curve (--curves FILE says what the names stand for)");
    if (status == TY_OK && args->pool.queues)
        status = ty_trace_queues_read(args->pool.queues, &in->trace, error);
    in->pool.queues = in->trace.queues;
    in->pool.n_queues = in->trace.n_queues;
    return status;
}

static bool known_policy(const char *name, const char **kept)
{
    for (size_t i = 0; (*kept = ty_pool_policy(i, NULL)); i++)
        if (strcmp(*kept, name) == 0)
            return true;
    return false;
}

/* "all" or "fifo,easy". */
static ty_status read_policies(const char *text, const char **out, uint32_t *n,
                               struct ty_error *error)
{
    char name[64];
    *n = 0;
    if (strcmp(text, "all") == 0)
        while (*n < MAX_POLICIES && (out[*n] = ty_pool_policy(*n, NULL)))
            ++*n;
    for (const char *at = text; *n == 0 || (*at && strcmp(text, "all") != 0);) {
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (*n == MAX_POLICIES || !known_policy(name, &out[*n])) {
            struct cli_guess guess = {.word = name};
            for (size_t i = 0; ty_pool_policy(i, NULL); i++)
                cli_guess_offer(&guess, ty_pool_policy(i, NULL));
            char legal[256] = "all";
            for (size_t i = 0; ty_pool_policy(i, NULL); i++) {
                const size_t used = strlen(legal);
                snprintf(legal + used, sizeof legal - used, ", %s", ty_pool_policy(i, NULL));
            }
            return cli_refuse(error, "--policy", "\"%s\" is no policy%s%s; legal: %s", name,
                              *guess.best ? "; did you mean " : "", guess.best, legal);
        }
        ++*n;
        at += length + (at[length] == ',');
    }
    return TY_OK;
}

/* ---- the database ------------------------------------------------------------------------- */

static void keep_event(void *user, const struct ty_pool_event *event)
{
    struct pool_log *log = user;
    if (log->n == log->capacity) {
        const size_t capacity = log->capacity ? 2 * log->capacity : 4096;
        struct ty_pool_event *more = realloc(log->events, capacity * sizeof *more);
        log->out_of_memory |= !more;
        if (!more)
            return;
        log->events = more;
        log->capacity = capacity;
    }
    log->events[log->n++] = *event;
}

static ty_status open_study(const struct cli_args *args, struct pool_inputs *in,
                            struct ty_error *error)
{
    char *command = cli_command_line(args);
    const struct ty_study study = {.command = command ? command : "pool",
                                   .cluster = args->cluster ? &in->cluster : NULL};
    ty_status status = ty_store_open(args->db, false, &in->store, error);
    if (status == TY_OK)
        status = ty_store_begin(in->store, &study, &in->study_id, error);
    free(command);
    in->pool.event = keep_event;
    in->pool.user = &in->log;
    return status;
}

static ty_status store_replay(struct pool_inputs *in, uint32_t run,
                              const struct ty_pool_result *result, struct ty_error *error)
{
    const struct ty_replay replay = {.pool = &in->pool,
                                     .trace = &in->trace,
                                     .result = result,
                                     .events = in->log.events,
                                     .n_events = in->log.n,
                                     .run = run};
    if (in->log.out_of_memory)
        return cli_refuse(error, "pool", "out of memory for the events");
    const ty_status status = ty_store_add_replay(in->store, in->study_id, &replay, error);
    in->log.n = 0;
    return status == TY_OK ? ty_store_flush(in->store, error) : status;
}

/* ---- the command -------------------------------------------------------------------------- */

static int explain(const struct cli_args *args, struct pool_inputs *in)
{
    struct ty_error error = {0};
    struct ty_pool_verdict verdict;
    double at_s = NAN;
    uint64_t job = 0;
    while (job < in->trace.n_jobs && strcmp(in->trace.names[job], args->pool.explain) != 0)
        job++;
    if (job == in->trace.n_jobs) {
        cli_refuse(&error, "--explain", "the trace has no job \"%s\" that ran", args->pool.explain);
        return cli_fail(&error);
    }
    if (read_time("--at", args->pool.at, &at_s, &error) != TY_OK ||
        ty_pool_explain(&in->pool, in->trace.jobs, in->trace.n_jobs, job, at_s, &verdict, &error) !=
            TY_OK)
        return cli_fail(&error);
    if (args->json)
        return cli_print(ty_pool_verdict_json(&in->trace, &verdict));
    if (verdict.reason == TY_POOL_RUNS && !args->pool.at) {
        printf("job %s never waits: it starts when it comes.\n", args->pool.explain);
        return CLI_OK;
    }
    printf("job %s at %.9g s: %s.\n", args->pool.explain, verdict.time_s,
           ty_pool_reason_text(verdict.reason));
    if (*verdict.advice)
        printf("%s\n", verdict.advice);
    for (uint32_t i = 0; i < verdict.n_moves; i++)
        printf("  move job %s (%u GPUs)\n", in->trace.names[verdict.moves[i].job],
               verdict.moves[i].gpus);
    return CLI_OK;
}

static int replay(const struct cli_args *args, struct pool_inputs *in, uint32_t run, bool alone)
{
    struct ty_error error = {0};
    struct ty_pool_result result;
    if (ty_pool_run(&in->pool, in->trace.jobs, in->trace.n_jobs, &result, &error) != TY_OK)
        return cli_fail(&error);
    int status = CLI_OK;
    if (args->json) {
        status = cli_print(ty_pool_json(&in->pool, &in->trace, &result));
    } else if (alone) {
        pool_print_metrics(in, &result.metrics);
    } else {
        pool_print_row(in, &result.metrics, run == 0);
    }
    if (status == CLI_OK && in->store && store_replay(in, run, &result, &error) != TY_OK)
        status = cli_fail(&error);
    if (status == CLI_OK && alone && args->out && !pool_write_jobs(args->out, in, &result))
        status = CLI_FAILED;
    ty_pool_result_free(&result);
    return status;
}

static int run_pool(const struct cli_args *args, struct pool_inputs *in)
{
    struct ty_error error = {0};
    const char *policies[MAX_POLICIES + 1];
    uint32_t n = 0;
    const char *asked = args->pool.policy ? args->pool.policy : "fifo";
    if (read_policies(asked, policies, &n, &error) != TY_OK ||
        read_inputs(args, in, &error) != TY_OK)
        return cli_fail(&error);
    const uint32_t n_counts = in->gpus.n ? in->gpus.n : 1;
    const bool alone = n == 1 && n_counts == 1;
    if (!alone && (args->out || args->json || args->pool.explain)) {
        cli_refuse(&error, "pool", "--out, --json and --explain take one policy and one --gpus");
        return cli_fail(&error);
    }
    if (args->db && args->pool.explain) {
        cli_refuse(&error, "--db", "keeps replays; --explain stops in the middle of one");
        return cli_fail(&error);
    }
    in->pool.policy = policies[0];
    if (args->pool.explain)
        return explain(args, in);
    if (args->db && open_study(args, in, &error) != TY_OK)
        return cli_fail(&error);
    if (!args->json)
        pool_print_trace(in);
    int status = CLI_OK;
    for (uint32_t i = 0; i < n * n_counts && status == CLI_OK; i++) {
        in->pool.policy = policies[i / n_counts];
        if (in->gpus.n && use_gpus(args, in, in->gpus.value[i % n_counts], &error) != TY_OK)
            return cli_fail(&error);
        status = replay(args, in, i, alone);
    }
    return status;
}

int cmd_pool(struct cli_args *args)
{
    struct pool_inputs in = {0};
    const int status = run_pool(args, &in);
    pool_free_curves(&in);
    ty_trace_free(&in.trace);
    ty_store_close(in.store);
    free(in.log.events);
    return status;
}
