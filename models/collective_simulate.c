/* SPDX-License-Identifier: MIT
 *
 * One collective on an otherwise idle fabric: which algorithm, its program, and the two ways to run
 * it. */
#include "models/collective_program.h"
#include "models/comm.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

/* Latency of a ring step over NVLink with the protocol Simple; source: handbook 5.2 */
static const double INSIDE_HOP_S = 3.4e-6;

struct simulation {
    struct ty_cluster cluster; /* resolved */
    struct fabric fabric;
    struct arena arena;
    uint32_t *gpus;
    struct program_group group;
    struct program program;
};

const char *ty_algorithm_name(enum ty_algorithm algorithm)
{
    static const char *const names[TY_N_ALGORITHMS] = {
        "auto", "ring",  "tree",   "nvls", "nvls_tree",   "two_level",
        "pat",  "sharp", "direct", "pxn",  "node_limited"};
    return (unsigned)algorithm < TY_N_ALGORITHMS ? names[algorithm] : "";
}

/* ---- the group ----------------------------------------------------------------------------- */

/* Ranks of a domain stand next to each other, as many in each; else every rank is its own. */
static struct program_group group_of(const struct fabric *fabric, const uint32_t *gpus, uint32_t n)
{
    uint32_t g = 1;
    while (g < n && gpus[g] / fabric->domain == gpus[0] / fabric->domain)
        g++;
    bool even = n % g == 0;
    for (uint32_t i = 0; even && i < n; i++)
        even = gpus[i] / fabric->domain == gpus[i / g * g] / fabric->domain &&
               (i % g > 0 || i == 0 || gpus[i] / fabric->domain != gpus[i - 1] / fabric->domain);
    return (struct program_group){n, even ? g : 1, even ? n / g : n};
}

static ty_status place(struct simulation *s, const struct ty_collective_run *run,
                       struct ty_error *error)
{
    const uint32_t gpus = s->cluster.gpus_per_node;
    uint32_t most = 0;
    s->gpus = arena_get(&s->arena, run->n, sizeof *s->gpus);
    if (!s->gpus)
        return error_set(error, TY_ERR_NOMEM, "gpus", "out of memory");
    for (uint32_t i = 0; i < run->n; i++) {
        s->gpus[i] = run->gpus ? run->gpus[i] : i;
        most = s->gpus[i] > most ? s->gpus[i] : most;
    }
    if (most >= 1u << 27)
        return error_set(error, TY_ERR_RANGE, "gpus", "GPU %u is beyond 2^27", most);
    uint32_t n_nodes = most / gpus + 1;
    n_nodes = s->cluster.n_nodes > n_nodes ? s->cluster.n_nodes : n_nodes;
    const ty_status status = fabric_create(&s->cluster, n_nodes, run->faults, run->n_faults,
                                           run->seed, NULL, &s->fabric, error);
    if (status == TY_OK)
        s->group = group_of(&s->fabric, s->gpus, run->n);
    return status;
}

/* ---- the algorithm ------------------------------------------------------------------------- */

static enum ty_algorithm choose(const struct simulation *s, const struct ty_collective_run *run)
{
    static const enum ty_algorithm of[N_NCCL_ALGORITHMS] = {[NCCL_TREE] = TY_ALGORITHM_TREE,
                                                            [NCCL_RING] = TY_ALGORITHM_RING,
                                                            [NCCL_NVLS] = TY_ALGORITHM_NVLS,
                                                            [NCCL_NVLS_TREE] =
                                                                TY_ALGORITHM_NVLS_TREE,
                                                            [NCCL_PAT] = TY_ALGORITHM_PAT};
    const struct program_group *group = &s->group;
    if (run->algorithm != TY_ALGORITHM_AUTO)
        return run->algorithm;
    if (run->op == TY_SEND_RECV)
        return TY_ALGORITHM_DIRECT;
    if (run->op == TY_ALL_TO_ALL)
        return group->k > 1 && group->g > 1 ? TY_ALGORITHM_PXN : TY_ALGORITHM_DIRECT;
    if (run->op == TY_ALL_REDUCE && s->cluster.sharp == TY_ON && group->k > 1)
        return TY_ALGORITHM_SHARP;
    struct comm_group asked;
    struct nccl_graph graph;
    struct nccl_choice choice;
    if (run->n < 2 || comm_group_init(&s->cluster, group->n, group->g, &asked, NULL) != TY_OK)
        return TY_ALGORITHM_RING;
    nccl_graph_init(&s->cluster, &asked.shape, &graph);
    nccl_choose(&graph, (enum collective_op)run->op, run->size_bytes, &choice);
    return of[choice.algorithm];
}

/* ---- the run ------------------------------------------------------------------------------- */

static ty_status run_detailed(const struct simulation *s, const struct program_run *run,
                              double *time_s, struct ty_error *error)
{
    const struct engine_task like = {.class_ = ENGINE_COMM,
                                     .cap_work_per_s = 1.0,
                                     .route = ENGINE_NONE,
                                     .device = {ENGINE_NONE, ENGINE_NONE}};
    struct engine *engine;
    ty_status status = engine_create(NULL, &engine);
    if (status != TY_OK)
        return error_set(error, status, "collective", "out of memory");
    for (uint32_t link = 0; status == TY_OK && link < s->fabric.n_links; link++) {
        uint32_t id;
        const double capacity = s->fabric.capacity_bytes_per_s[link];
        status = engine_add_link(engine, capacity > 0.0 ? capacity : HUGE_VAL, true, &id);
    }
    if (status == TY_OK)
        status = program_emit(&s->program, run, engine, 0, ENGINE_NONE, ENGINE_NONE, &like, NULL);
    if (status == TY_OK)
        status = engine_run(engine, NULL, error);
    if (status == TY_OK)
        *time_s = engine_makespan_s(engine);
    engine_destroy(engine);
    return status;
}

static void count_bytes(const struct simulation *s, struct ty_collective_ran *out)
{
    const struct program *program = &s->program;
    for (uint32_t p = 0; p < program->n_phases; p++)
        for (uint32_t i = 0; i < program->phases[p].n; i++) {
            const struct send *send = &program->sends[program->phases[p].first + i];
            const double times = (double)program->phases[p].n_rounds * program->n_chunks;
            enum ty_fabric_level level =
                fabric_level(&s->fabric, s->gpus[send->from], s->gpus[send->to]);
            if (send->kind == SEND_SWITCH)
                level = TY_LEVEL_DOMAIN;
            out->bytes[level] += times * send->bytes;
            out->level = level > out->level ? level : out->level;
            out->n_flows += (uint64_t)times;
        }
}

static ty_status simulate(struct simulation *s, const struct ty_collective_run *run,
                          struct ty_collective_ran *out, struct ty_error *error)
{
    const double across_s = s->cluster.nic_latency_s;
    const struct program_run how = {.fabric = &s->fabric,
                                    .gpus = s->gpus,
                                    .hop_s = {isnan(run->hop_s[0]) ? INSIDE_HOP_S : run->hop_s[0],
                                              isnan(run->hop_s[1]) ? across_s : run->hop_s[1]},
                                    .latency_ratio = 1.0,
                                    .time_ratio = 1.0};
    const struct program_request request = {.op = run->op,
                                            .algorithm = choose(s, run),
                                            .group = s->group,
                                            .payload_bytes = run->size_bytes,
                                            .n_chunks = run->n_chunks,
                                            .copies = run->copies};
    ty_status status = program_make(&request, NULL, &s->program);
    if (status == TY_ERR_UNSUPPORTED)
        return error_set(error, status, "algorithm", "%s cannot do %s on %u domains of %u ranks",
                         ty_algorithm_name(request.algorithm), ty_collective_name(run->op),
                         s->group.k, s->group.g);
    double latency_s = 0.0, bytes_s = 0.0;
    if (status == TY_OK && !program_time(&s->program, &how, NULL, &latency_s, &bytes_s))
        return error_set(error, TY_ERR_RANGE, "fault", "leaves a rank without a way out");
    out->time_s = latency_s + bytes_s;
    if (status == TY_OK && run->detailed)
        status = run_detailed(s, &how, &out->time_s, error);
    out->algorithm = request.algorithm;
    count_bytes(s, out);
    return status;
}

ty_status ty_collective_simulate(const struct ty_collective_run *run, struct ty_collective_ran *out,
                                 struct ty_error *error)
{
    struct simulation s = {.program = {.allocator = allocator_or_default(NULL)}};
    struct ty_collective_ran ran = {.time_s = 0.0};
    if (run->n == 0 || !(run->size_bytes > 0.0) || (unsigned)run->op >= TY_N_COLLECTIVES ||
        (unsigned)run->algorithm >= TY_N_ALGORITHMS || run->hop_s[0] < 0.0 || run->hop_s[1] < 0.0)
        return error_set(error, TY_ERR_RANGE, "collective",
                         "needs an operation, ranks, a size and hops of at least 0");
    arena_init(&s.arena, NULL);
    ty_status status = cluster_resolve(run->cluster, &s.cluster, NULL, error);
    if (status == TY_OK)
        status = place(&s, run, error);
    if (status == TY_OK)
        status = simulate(&s, run, &ran, error);
    program_free(&s.program);
    fabric_destroy(&s.fabric);
    arena_destroy(&s.arena);
    if (status != TY_OK)
        return status;
    ran.algbw_bytes_per_s = run->size_bytes / ran.time_s;
    ran.busbw_bytes_per_s =
        ran.algbw_bytes_per_s * collective_busbw_factor((enum collective_op)run->op, run->n);
    *out = ran;
    return TY_OK;
}
