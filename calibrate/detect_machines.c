/* SPDX-License-Identifier: MIT
 *
 * Named machines and their places under switches, reduced to findings: how many machines with the
 * chosen GPU can run a job, what most of them have, how many share a leaf, a block or an NVLink
 * clique. A machine that a source names twice is one machine.
 */
#include "calibrate/detect_merge.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which machines ----------------------------------------------------------------------- */

/* It has the chosen GPU, or GPUs of an unnamed kind. */
static bool has_gpu(const struct machine *m, gpu_set chosen)
{
    if (m->gpus)
        return (m->gpus & chosen) != 0 && m->fact[MACHINE_GPUS] != 0.0;
    return m->fact[MACHINE_GPUS] > 0.0;
}

static int by_file_and_name(const void *a, const void *b)
{
    const struct machine *const *x = a, *const *y = b;
    if ((*x)->file != (*y)->file)
        return (*x)->file < (*y)->file ? -1 : 1;
    return strcmp((*x)->name, (*y)->name);
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

struct names {
    const char **at; /* sorted */
    size_t n;
};

static bool is_among(const struct names *names, const char *name)
{
    return names->n && bsearch(&name, names->at, names->n, sizeof *names->at, by_text);
}

/* Machines of one source. */
struct run {
    const struct machine **at;
    size_t n;
};

/* The next source's machines behind `run`, in a list sorted by file. */
static bool next_run(const struct machine **all, size_t n_all, struct run *run)
{
    const size_t from = run->at ? (size_t)(run->at - all) + run->n : 0;
    run->at = all + from;
    run->n = 0;
    while (from + run->n < n_all && run->at[run->n]->file == run->at[0]->file)
        run->n++;
    return run->n > 0;
}

/* ---- facts -------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    enum ty_trust trust;
} facts[N_MACHINE_FACTS] = {
    [MACHINE_GPUS] = {"gpus_per_node", TY_TRUST_STATED},
    [MACHINE_HOST_MEMORY] = {"host.memory", TY_TRUST_STATED},
    [MACHINE_CORES] = {"host.cpu_cores", TY_TRUST_STATED},
    [MACHINE_NICS] = {"network.nics_per_node", TY_TRUST_RULE},
    [MACHINE_NIC] = {"network.nic", TY_TRUST_READ},
    [MACHINE_NIC_HINT] = {"network.nic", TY_TRUST_HINT},
    [MACHINE_FABRIC_HINT] = {"network.fabric", TY_TRUST_HINT},
};

static void put(struct detect *d, const char *path, double value, const char *place,
                enum ty_trust trust)
{
    if (value >= 0.0 && isfinite(value))
        detect_put(d,
                   &(struct finding){
                       .path = path, .text = "", .value = value, .place = place, .trust = trust});
}

static const char *run_place(struct detect *d, const struct run *run)
{
    char text[320];
    text_format(text, sizeof text, "%s (%zu machine%s)", d->paths[run->at[0]->file], run->n,
                run->n == 1 ? "" : "s");
    return detect_copy(d, text, sizeof text);
}

static void put_facts(struct detect *d, struct run *run, double *value)
{
    for (int fact = 0; fact < N_MACHINE_FACTS; fact++) {
        size_t n = 0, n_other = 0;
        for (size_t i = 0; i < run->n; i++)
            if (!isnan(run->at[i]->fact[fact]))
                value[n++] = run->at[i]->fact[fact];
        const double mode = detect_mode(value, n, &n_other);
        if (n == 0)
            continue;
        if (n_other && fact != MACHINE_NIC_HINT && fact != MACHINE_FABRIC_HINT)
            detect_remark(d, TY_REMARK_CONTRADICTION,
                          "%s: %s is not the same on %zu of %zu machines; that of most is taken",
                          d->paths[run->at[0]->file], facts[fact].path, n_other, n);
        if (fact == MACHINE_GPUS && n_other) { /* only those machines are in the cluster */
            size_t kept = 0;
            for (size_t i = 0; i < run->n; i++)
                if (run->at[i]->fact[fact] == mode)
                    run->at[kept++] = run->at[i];
            run->n = kept;
        }
        put(d, facts[fact].path, mode, run_place(d, run), facts[fact].trust);
    }
}

/* A fabric does not know GPUs: of its hosts those count that a scheduler names, or all. */
static void keep_hosts(struct run *run, const struct names *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < run->n; i++)
        if (is_among(names, run->at[i]->name)) {
            const struct machine *host = run->at[i];
            run->at[i] = run->at[kept];
            run->at[kept++] = host;
        }
    run->n = kept ? kept : run->n;
}

static void reduce_run(struct detect *d, struct run run, const struct names *names, double *value)
{
    const bool scheduler = !isnan(run.at[0]->fact[MACHINE_GPUS]);
    if (!scheduler)
        keep_hosts(&run, names);
    put_facts(d, &run, value);
    put(d, "nodes", (double)run.n, run_place(d, &run), scheduler ? TY_TRUST_STATED : TY_TRUST_RULE);
}

/* Names the machines that cannot run a job. */
static void note_unusable(struct detect *d, const struct machine **all, size_t n)
{
    char text[320] = "";
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!all[i]->unusable)
            continue;
        n_out++;
        if (n_out <= 6)
            text_append(text, sizeof text, "%s%s (%s)", n_out > 1 ? ", " : "", all[i]->name,
                        all[i]->unusable);
    }
    if (n_out)
        detect_remark(d, TY_REMARK_NOTE, "left out, %zu machine%s: %s%s", n_out,
                      n_out == 1 ? "" : "s", text, n_out > 6 ? ", ..." : "");
}

/* Keeps the machines that count, each once; sorted by file and name. */
static size_t select_machines(const struct detect *d, gpu_set chosen, const struct machine **out)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < d->n_machines; i++)
        if (isnan(d->machines[i].fact[MACHINE_GPUS]) || has_gpu(&d->machines[i], chosen))
            out[n++] = &d->machines[i];
    if (n)
        qsort(out, n, sizeof *out, by_file_and_name);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_file_and_name(&out[kept - 1], &out[i]) != 0)
            out[kept++] = out[i];
    return kept;
}

/* ---- cliques ------------------------------------------------------------------------------ */

static int by_clique(const void *a, const void *b)
{
    const struct machine *const *x = a, *const *y = b;
    return strcmp((*x)->clique, (*y)->clique);
}

/* GPUs of the largest NVLink clique, machines that are out of service counted too. */
static void put_cliques(struct detect *d, const struct run *run, const struct machine **sorted)
{
    size_t n = 0;
    double gpus = 0.0, most = 0.0;
    for (size_t i = 0; i < run->n; i++)
        if (run->at[i]->clique && run->at[i]->fact[MACHINE_GPUS] > 0.0)
            sorted[n++] = run->at[i];
    if (n == 0)
        return;
    qsort(sorted, n, sizeof *sorted, by_clique);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && by_clique(&sorted[i - 1], &sorted[i]) != 0)
            gpus = 0.0;
        gpus += sorted[i]->fact[MACHINE_GPUS];
        most = fmax(most, gpus);
    }
    put(d, "scaleup.domain", most, run_place(d, run), TY_TRUST_STATED);
}

/* ---- leaves ------------------------------------------------------------------------------- */

static int by_leaf(const void *a, const void *b)
{
    const struct link *const *x = a, *const *y = b;
    const int leaf = strcmp((*x)->leaf, (*y)->leaf);
    return leaf ? leaf : strcmp((*x)->machine, (*y)->machine);
}

/* The most machines under one leaf or in one block, those of the cluster where they are known. */
static void put_leaves(struct detect *d, enum link_kind kind, const struct names *names,
                       const struct link **sorted)
{
    static const struct {
        const char *path;
        enum ty_trust trust;
    } kinds[N_LINK_KINDS] = {[LINK_TREE] = {"network.nodes_per_leaf", TY_TRUST_STATED},
                             [LINK_BLOCK] = {"block", TY_TRUST_RULE},
                             [LINK_IB] = {"network.nodes_per_leaf", TY_TRUST_READ},
                             [LINK_LLDP] = {"network.nodes_per_leaf", TY_TRUST_READ}};
    size_t n = 0, n_known = 0;
    for (size_t i = 0; i < d->n_links; i++)
        n_known += d->links[i].kind == kind && is_among(names, d->links[i].machine);
    for (size_t i = 0; i < d->n_links; i++)
        if (d->links[i].kind == kind && (!n_known || is_among(names, d->links[i].machine)))
            sorted[n++] = &d->links[i];
    if (n == 0)
        return;
    const uint32_t file = sorted[0]->file;
    qsort(sorted, n, sizeof *sorted, by_leaf);
    double machines = 0.0, most = 0.0;
    bool several = false;
    for (size_t i = 0; i < n; i++) {
        const bool same_leaf = i > 0 && strcmp(sorted[i - 1]->leaf, sorted[i]->leaf) == 0;
        several |= strcmp(sorted[0]->machine, sorted[i]->machine) != 0;
        if (!same_leaf)
            machines = 0.0;
        machines += !same_leaf || strcmp(sorted[i - 1]->machine, sorted[i]->machine) != 0;
        most = fmax(most, machines);
    }
    if (several)
        put(d, kinds[kind].path, most, detect_copy(d, d->paths[file], 320), kinds[kind].trust);
}

/* ---- all ---------------------------------------------------------------------------------- */

struct work {
    const struct machine **all, **sorted;
    const char **names;
    const struct link **links;
    double *value;
};

static void reduce(struct detect *d, gpu_set chosen, struct work *w)
{
    size_t n = select_machines(d, chosen, w->all), usable = 0;
    for (struct run run = {0}; next_run(w->all, n, &run);)
        put_cliques(d, &run, w->sorted);
    note_unusable(d, w->all, n);
    struct names names = {w->names, 0};
    for (size_t i = 0; i < n; i++)
        if (!w->all[i]->unusable) {
            w->all[usable++] = w->all[i];
            if (!isnan(w->all[i]->fact[MACHINE_GPUS]))
                names.at[names.n++] = w->all[i]->name;
        }
    if (names.n)
        qsort(names.at, names.n, sizeof *names.at, by_text);
    for (struct run run = {0}; next_run(w->all, usable, &run);)
        reduce_run(d, run, &names, w->value);
    for (enum link_kind kind = LINK_TREE; kind < N_LINK_KINDS; kind++)
        put_leaves(d, kind, &names, w->links);
}

void detect_reduce_machines(struct detect *d, gpu_set chosen)
{
    const size_t n = d->n_machines + 1;
    struct work w = {.all = calloc(n, sizeof *w.all),
                     .sorted = calloc(n, sizeof *w.sorted),
                     .names = calloc(n, sizeof *w.names),
                     .links = calloc(d->n_links + 1, sizeof *w.links),
                     .value = calloc(n, sizeof *w.value)};
    if (w.all && w.sorted && w.names && w.links && w.value)
        reduce(d, chosen, &w);
    else
        d->out_of_memory = true;
    free(w.all);
    free(w.sorted);
    free(w.names);
    free(w.links);
    free(w.value);
}
