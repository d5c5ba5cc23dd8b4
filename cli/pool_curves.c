/* SPDX-License-Identifier: MIT
 * Curves of elastic jobs: a file of jobs as for split, named by the column `curve` of the trace. */
#include "cli/pool.h"
#include <stdlib.h>
#include <string.h>

static int by_gpus(const void *left, const void *right)
{
    const struct ty_pool_size *a = left, *b = right;
    return a->gpus < b->gpus ? -1 : a->gpus > b->gpus;
}

static ty_status load_points(const struct ty_split_entry *entry, struct pool_curve *out,
                             struct ty_error *error)
{
    out->sizes = calloc(entry->n_points + 1, sizeof *out->sizes);
    if (!out->sizes)
        return cli_refuse(error, "--curves", "out of memory");
    for (uint32_t i = 0; i < entry->n_points; i++)
        if (entry->point_tokens_per_s[i] > 0.0)
            out->sizes[out->n++] =
                (struct ty_pool_size){entry->point_gpus[i], entry->point_tokens_per_s[i]};
    qsort(out->sizes, out->n, sizeof *out->sizes, by_gpus);
    return TY_OK;
}

/* Whole nodes up to the GPUs of the pool. */
static ty_status search_sizes(const struct cli_args *args, const struct pool_inputs *in,
                              const struct ty_split_entry *entry, struct pool_curve *out,
                              struct ty_error *error)
{
    if (!args->cluster)
        return cli_refuse(error, "--curves", "%s has a model: its search needs --cluster",
                          entry->name);
    uint32_t gpus = in->groups[0].n_nodes * in->groups[0].gpus_per_node;
    for (uint32_t i = 0; i < in->gpus.n; i++)
        gpus = in->gpus.value[i] > gpus ? in->gpus.value[i] : gpus;
    struct cli_curve curve = {.cluster = &in->cluster, .unit_gpus = in->cluster.gpus_per_node};
    curve.n_units = gpus / curve.unit_gpus;
    curve.n_units = curve.n_units < TY_MAX_VALUES ? curve.n_units : TY_MAX_VALUES;
    curve.tokens_per_s = calloc(curve.n_units + 1, sizeof *curve.tokens_per_s);
    out->sizes = calloc(curve.n_units + 1, sizeof *out->sizes);
    ty_status status = curve.tokens_per_s && out->sizes
                           ? cli_search_curve(args, entry, &curve, error)
                           : cli_refuse(error, "--curves", "out of memory");
    for (uint32_t k = 1; status == TY_OK && k <= curve.n_units; k++)
        if (curve.tokens_per_s[k] > 0.0)
            out->sizes[out->n++] =
                (struct ty_pool_size){k * curve.unit_gpus, curve.tokens_per_s[k]};
    free(curve.tokens_per_s);
    return status;
}

/* The recorded size of a job may be none of its curve: it gets a place on the line between its
 * neighbours, or on the one through 0. */
static ty_status add_recorded(struct pool_inputs *in, struct ty_pool_job *job,
                              struct ty_error *error)
{
    struct ty_pool_size *sizes = malloc((job->n_sizes + 1) * sizeof *sizes);
    struct ty_pool_size **more = realloc(in->own, (in->n_own + 1) * sizeof *more);
    in->own = more ? more : in->own;
    if (!sizes || !more) {
        free(sizes);
        return cli_refuse(error, "--curves", "out of memory");
    }
    in->own[in->n_own++] = sizes;
    uint32_t at = 0;
    while (at < job->n_sizes && job->sizes[at].gpus < job->gpus)
        at++;
    const struct ty_pool_size none = {0, 0.0};
    const struct ty_pool_size below = at ? job->sizes[at - 1] : none;
    const struct ty_pool_size above = at < job->n_sizes ? job->sizes[at] : below;
    const double slope =
        above.gpus > below.gpus ? (above.speed - below.speed) / (above.gpus - below.gpus) : 0.0;
    memcpy(sizes, job->sizes, at * sizeof *sizes);
    sizes[at] = (struct ty_pool_size){job->gpus, below.speed + slope * (job->gpus - below.gpus)};
    memcpy(sizes + at + 1, job->sizes + at, (job->n_sizes - at) * sizeof *sizes);
    job->sizes = sizes;
    job->n_sizes++;
    return TY_OK;
}

/* Least and largest size within what the trace allows. */
static ty_status use_curve(struct pool_inputs *in, struct ty_pool_job *job,
                           const struct pool_curve *curve, struct ty_error *error)
{
    job->sizes = curve->sizes;
    job->n_sizes = curve->n;
    if (!bsearch(&(struct ty_pool_size){.gpus = job->gpus}, job->sizes, job->n_sizes,
                 sizeof *job->sizes, by_gpus)) {
        const ty_status status = add_recorded(in, job, error);
        if (status != TY_OK)
            return status;
    }
    const uint32_t low = job->min_gpus ? job->min_gpus : 1;
    const uint32_t high = job->max_gpus ? job->max_gpus : UINT32_MAX;
    job->min_gpus = job->max_gpus = job->gpus;
    for (uint32_t i = 0; i < job->n_sizes; i++) {
        const uint32_t gpus = job->sizes[i].gpus;
        if (gpus >= low && gpus < job->min_gpus)
            job->min_gpus = gpus;
        if (gpus <= high && gpus > job->max_gpus)
            job->max_gpus = gpus;
    }
    return TY_OK;
}

ty_status pool_use_curves(const struct cli_args *args, struct pool_inputs *in,
                          struct ty_error *error)
{
    ty_status status = ty_split_list_load(args->pool.curves, &in->list, error);
    if (status == TY_ERR_IO)
        status = error->code = TY_ERR_INPUT;
    if (status == TY_OK)
        in->curves = calloc(in->list.n, sizeof *in->curves);
    if (status == TY_OK && !in->curves)
        status = cli_refuse(error, "--curves", "out of memory");
    uint64_t n_used = 0;
    for (uint64_t i = 0; status == TY_OK && i < in->trace.n_jobs; i++) {
        struct ty_pool_job *job = &in->trace.jobs[i];
        uint32_t j = 0;
        if (!job->curve)
            continue;
        while (j < in->list.n && strcmp(in->list.entry[j].name, job->curve) != 0)
            j++;
        if (j == in->list.n)
            return cli_refuse(error, args->pool.curves, "has no job \"%s\", the curve of job %s",
                              job->curve, in->trace.names[i]);
        const struct ty_split_entry *entry = &in->list.entry[j];
        if (!in->curves[j].sizes)
            status = entry->n_points ? load_points(entry, &in->curves[j], error)
                                     : search_sizes(args, in, entry, &in->curves[j], error);
        if (status == TY_OK)
            status = use_curve(in, job, &in->curves[j], error);
        n_used++;
    }
    if (status == TY_OK && n_used == 0 && !args->quiet)
        cli_warn("unused: --curves (no job of the trace names one in a column \"curve\")");
    return status;
}

void pool_free_curves(struct pool_inputs *in)
{
    for (uint32_t j = 0; in->curves && j < in->list.n; j++)
        free(in->curves[j].sizes);
    for (size_t i = 0; i < in->n_own; i++)
        free(in->own[i]);
    free(in->own);
    free(in->curves);
    ty_split_list_free(&in->list);
}
