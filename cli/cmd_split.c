/* SPDX-License-Identifier: MIT
 * `trainyard split`: divides a cluster among the jobs of a file. Curves come from searches, one a
 * job over all counts. */
#include "cli/split.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CORES_PER_GPU 8u /* docs/formats.md, "Cluster" */

/* ---- the pool ----------------------------------------------------------------------------- */

static ty_status read_objective(const char *name, int *out, struct ty_error *error)
{
    char legal[80] = "";
    for (int i = 0; name && ty_split_objective_name(i); i++) {
        if (strcmp(ty_split_objective_name(i), name) == 0) {
            *out = i;
            return TY_OK;
        }
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), "%s%s", *legal ? ", " : "",
                 ty_split_objective_name(i));
    }
    return name ? cli_refuse(error, "--objective", "\"%s\" is not one of %s", name, legal) : TY_OK;
}

static ty_status read_amount(const char *text, const char *where, enum ty_unit unit, double *out,
                             struct ty_error *error)
{
    struct ty_error why = {0};
    if (!text || (ty_quantity_parse(text, unit, out, &why) == TY_OK && *out >= 0.0))
        return TY_OK;
    return cli_refuse(error, where, "%s", *why.text ? why.text : "must be 0 or more");
}

static ty_status read_pool(struct split_run *run, struct ty_error *error)
{
    const struct cli_args *args = run->args;
    const struct ty_cluster *cluster = &run->cluster;
    const uint32_t node = cluster->gpus_per_node;
    const uint64_t there = (uint64_t)cluster->n_nodes * node;
    const uint64_t gpus = args->split.gpus ? args->split.gpus : there;
    struct ty_split *split = &run->split;
    run->unit_gpus = args->split.unit ? args->split.unit : node;
    if (gpus == 0)
        return cli_refuse(error, "--gpus", "not given, and the cluster does not say how many");
    if (there && gpus > there)
        return cli_refuse(error, "--gpus", "the cluster has %llu GPUs", (unsigned long long)there);
    if (gpus % run->unit_gpus || gpus / run->unit_gpus > TY_MAX_VALUES)
        return cli_refuse(error, "--gpus",
                          "must be a multiple of the unit of %u GPUs, 1 to %d "
                          "times",
                          run->unit_gpus, TY_MAX_VALUES);
    split->n_units = (uint32_t)(gpus / run->unit_gpus);
    const uint32_t node_cores =
        cluster->cpu_cores_per_node ? cluster->cpu_cores_per_node : DEFAULT_CORES_PER_GPU * node;
    split->cores = args->split.cores ? args->split.cores : (double)gpus / node * node_cores;
    split->cache_bytes = 0.0;
    ty_status status = read_objective(args->split.objective, &split->objective, error);
    if (status == TY_OK)
        status =
            read_amount(args->split.cache, "--cache", TY_UNIT_BYTES, &split->cache_bytes, error);
    if (status == TY_OK)
        status = read_amount(args->split.storage, "--storage-rate", TY_UNIT_BYTES_PER_S,
                             &split->read_bytes_per_s, error);
    return status;
}

/* ---- curves ------------------------------------------------------------------------------- */

static ty_status search_curve(struct split_run *run, uint32_t j, struct ty_error *error)
{
    run->plans[j] = calloc(run->split.n_units + 1, sizeof *run->plans[j]);
    if (!run->plans[j])
        return cli_refuse(error, "split", "out of memory");
    const struct cli_curve curve = {.cluster = &run->cluster,
                                    .unit_gpus = run->unit_gpus,
                                    .n_units = run->split.n_units,
                                    .tokens_per_s = run->curve[j],
                                    .plans = run->plans[j]};
    return cli_search_curve(run->args, &run->list.entry[j], &curve, error);
}

/* A count that is no multiple of the unit takes a unit in part. */
static void use_points(struct split_run *run, uint32_t j)
{
    const struct ty_split_entry *entry = &run->list.entry[j];
    for (uint32_t i = 0; i < entry->n_points; i++) {
        const uint64_t units =
            ((uint64_t)entry->point_gpus[i] + run->unit_gpus - 1) / run->unit_gpus;
        if (units <= run->split.n_units)
            run->curve[j][units] = fmax(run->curve[j][units], entry->point_tokens_per_s[i]);
    }
}

/* The curve of an equal job is not searched again. */
static bool copy_curve(struct split_run *run, uint32_t j)
{
    const struct ty_split_entry *entry = &run->list.entry[j];
    const size_t row = run->split.n_units + 1;
    for (uint32_t i = 0; i < j; i++) {
        const struct ty_split_entry *other = &run->list.entry[i];
        if (!*entry->model || strcmp(entry->model, other->model) != 0 ||
            memcmp(&entry->space, &other->space, sizeof entry->space) != 0)
            continue;
        run->plans[j] = malloc(row * sizeof *run->plans[j]);
        if (!run->plans[j])
            return false;
        memcpy(run->plans[j], run->plans[i], row * sizeof *run->plans[j]);
        memcpy(run->curve[j], run->curve[i], row * sizeof *run->curve[j]);
        return true;
    }
    return false;
}

/* Tokens of one sample: those of a sequence of the plan. */
static double sample_tokens(const struct split_run *run, uint32_t j)
{
    const struct ty_split_entry *entry = &run->list.entry[j];
    if (!isnan(entry->sample_tokens))
        return entry->sample_tokens;
    for (uint32_t k = 1; run->plans[j] && k <= run->split.n_units; k++)
        if (run->plans[j][k].seq)
            return run->plans[j][k].seq;
    return 1.0;
}

static ty_status whole_units(const struct split_run *run, uint32_t gpus, bool up, uint32_t *units,
                             const char *job, struct ty_error *error)
{
    *units = (gpus + (up ? run->unit_gpus - 1 : 0)) / run->unit_gpus;
    if (gpus && *units == 0)
        return cli_refuse(error, run->args->split.jobs, "%s: max_gpus is below the unit of %u GPUs",
                          job, run->unit_gpus);
    return TY_OK;
}

static ty_status load_job(struct split_run *run, uint32_t j, struct ty_error *error)
{
    const struct ty_split_entry *entry = &run->list.entry[j];
    struct ty_split_job *job = &run->job[j];
    const size_t row = run->split.n_units + 1;
    run->curve[j] = calloc(row, sizeof *run->curve[j]);
    if (!run->curve[j])
        return cli_refuse(error, "split", "out of memory");
    ty_status status = TY_OK;
    if (entry->n_points)
        use_points(run, j);
    else if (!copy_curve(run, j))
        status = search_curve(run, j, error);
    if (status != TY_OK)
        return status;
    const double tokens = sample_tokens(run, j);
    *job = (struct ty_split_job){.tokens_per_s = run->curve[j],
                                 .weight = entry->weight,
                                 .tokens = entry->tokens,
                                 .deadline_s = entry->deadline_s,
                                 .cpu_s = entry->sample_cpu_s / tokens,
                                 .read_bytes = entry->sample_bytes / tokens,
                                 .data_bytes = entry->data_bytes,
                                 .hit = entry->n_hits ? entry->hit : NULL,
                                 .n_hits = entry->n_hits,
                                 .prepare_cpu_s = entry->prepare_cpu_s};
    status = whole_units(run, entry->max_gpus, false, &job->max_units, entry->name, error);
    if (status == TY_OK)
        status = whole_units(run, entry->min_gpus, true, &job->min_units, entry->name, error);
    if (!entry->may_wait && job->min_units == 0)
        job->min_units = 1;
    return status;
}

/* ---- command ------------------------------------------------------------------------------ */

static void warn_unused(const struct split_run *run)
{
    bool weights = false, reads = false, caches = false;
    for (uint32_t j = 0; j < run->split.n_jobs; j++) {
        weights |= run->job[j].weight != 1.0;
        reads |= run->job[j].read_bytes > 0.0;
        caches |= run->job[j].read_bytes > 0.0 && run->job[j].data_bytes > 0.0;
    }
    if (run->args->quiet)
        return;
    if (weights && run->split.objective == TY_SPLIT_FINISH)
        cli_warn("unused: weight (--objective finish counts every job alike)");
    if (run->args->split.storage && !reads)
        cli_warn("unused: --storage-rate (no job has input.sample_bytes)");
    if (run->args->split.cache && !caches)
        cli_warn("unused: --cache (no job has input.sample_bytes and input.data_bytes)");
    cli_warn_unused(run->args, ~(1u << TY_KIND_PLAN | 1u << TY_KIND_PRICE));
}

static ty_status store(struct split_run *run, const struct ty_division *division,
                       struct ty_error *error)
{
    ty_store *file = NULL;
    int64_t id;
    char *command = cli_command_line(run->args);
    const struct ty_study study = {.command = command ? command : "split",
                                   .cluster = &run->cluster};
    ty_status status = ty_store_open(run->args->db, false, &file, error);
    if (status == TY_OK)
        status = ty_store_begin(file, &study, &id, error);
    if (status == TY_OK)
        status = ty_store_add_division(file, id, division, error);
    if (status == TY_OK)
        status = ty_store_flush(file, error);
    ty_store_close(file);
    free(command);
    return status;
}

static ty_status solve(struct split_run *run, struct ty_error *error)
{
    const struct cli_args *args = run->args;
    if (!args->split.jobs)
        return cli_refuse(error, "--jobs", "not given: a file of jobs (docs/formats.md)");
    ty_split_init(&run->split);
    ty_status status = cli_load_cluster(args, args->cluster, &run->cluster, error);
    if (status == TY_OK)
        status = read_pool(run, error);
    if (status == TY_OK)
        status = ty_split_list_load(args->split.jobs, &run->list, error);
    if (status == TY_ERR_IO)
        status = error->code = TY_ERR_INPUT;
    run->split.jobs = run->job;
    run->split.n_jobs = run->list.n;
    for (uint32_t j = 0; status == TY_OK && j < run->list.n; j++)
        status = load_job(run, j, error);
    if (status != TY_OK)
        return status;
    warn_unused(run);
    status = ty_split_run(&run->split, &run->result, error);
    unsigned which;
    if (status != TY_OK && sscanf(error->where, "jobs[%u]", &which) == 1 && which < run->list.n)
        snprintf(error->where, sizeof error->where, "%.60s: %.47s", args->split.jobs,
                 run->list.entry[which].name);
    return status;
}

static int answer(struct split_run *run)
{
    struct ty_error error = {0};
    const ty_status status = solve(run, &error);
    if (status == TY_ERR_INFEASIBLE) {
        cli_fail(&error);
        return CLI_INFEASIBLE;
    }
    if (status != TY_OK)
        return cli_fail(&error);
    const struct ty_division division = {.split = &run->split,
                                         .result = &run->result,
                                         .list = &run->list,
                                         .unit_gpus = run->unit_gpus,
                                         .plans = (const struct ty_plan *const *)run->plans};
    if (run->args->json) {
        const int printed = cli_print(ty_division_json(&division));
        if (printed != CLI_OK)
            return printed;
    } else {
        split_print(run);
    }
    return run->args->db && store(run, &division, &error) != TY_OK ? cli_fail(&error) : CLI_OK;
}

int cmd_split(struct cli_args *args)
{
    struct split_run *run = calloc(1, sizeof *run);
    if (!run) {
        cli_warn("out of memory");
        return CLI_FAILED;
    }
    run->args = args;
    const int status = answer(run);
    for (uint32_t j = 0; j < TY_SPLIT_MAX_JOBS; j++) {
        free(run->curve[j]);
        free(run->plans[j]);
    }
    ty_split_list_free(&run->list);
    free(run);
    return status;
}
