/* SPDX-License-Identifier: MIT
 *
 * Which GPU a detection describes: the one asked for, else the most numerous of those found. Sets
 * of built-in GPUs that overlap are one kind, narrowed to what they share ("a100" and
 * "A100-SXM4-40GB").
 */
#include "calibrate/detect_merge.h"
#include "sim/error.h"

#include <string.h>

#define KINDS_MAX 64u

struct kind {
    gpu_set set;
    double n_gpus;
    const char *text;
};

static void add_kind(struct kind *kinds, uint32_t *n, gpu_set set, double n_gpus, const char *text)
{
    for (uint32_t i = 0; i < *n; i++)
        if (kinds[i].set & set) {
            kinds[i].set &= set;
            kinds[i].n_gpus += n_gpus;
            return;
        }
    if (*n < KINDS_MAX)
        kinds[(*n)++] = (struct kind){set, n_gpus, text};
}

/* A machine's file weighs as its GPUs, a file about one machine as one GPU. */
static uint32_t list_kinds(const struct detect *d, struct kind *kinds)
{
    uint32_t n = 0;
    for (size_t i = 0; i < d->n_machines; i++) {
        const struct machine *m = &d->machines[i];
        if (m->gpus && !m->unusable && m->fact[MACHINE_GPUS] > 0.0)
            add_kind(kinds, &n, m->gpus, m->fact[MACHINE_GPUS], m->gpu);
    }
    for (size_t i = 0; i < d->n_findings; i++)
        if (strcmp(d->findings[i].path, "gpu") == 0)
            add_kind(kinds, &n, d->findings[i].gpus, 1.0, d->findings[i].text);
    return n;
}

static void note_other_kinds(struct merge *m, const struct kind *kinds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = gpu_name(kinds[i].set, 0);
        if (kinds[i].set & m->chosen)
            continue;
        if (name)
            detect_remark(m->d, TY_REMARK_NOTE,
                          "other GPUs are there too: %s; --gpu %s describes those machines",
                          kinds[i].text, name);
        else
            detect_remark(m->d, TY_REMARK_NOTE,
                          "other GPUs are there too: %s, which is not built in", kinds[i].text);
    }
}

/* Name of the GPU where more than one built-in one fits. */
static void note_variants(struct merge *m)
{
    char others[256] = "";
    const char *name;
    for (uint32_t i = 1; (name = gpu_name(m->chosen, i)); i++)
        text_append(others, sizeof others, "%s%s", *others ? ", " : "", name);
    if (*others)
        detect_remark(m->d, TY_REMARK_GAP,
                      "gpu: %s is assumed, what was read also fits %s; add nvidia-smi -q -x",
                      m->built_in, others);
}

static ty_status load_gpu(struct merge *m, const char *gpu, struct ty_error *error)
{
    struct ty_cluster *cluster = &m->out->cluster;
    if (!gpu && !m->built_in)
        return TY_OK;
    const ty_status status = ty_gpu_load(gpu ? gpu : m->built_in, &cluster->gpu, error);
    m->out->complete = status == TY_OK;
    return status;
}

ty_status detect_choose_gpu(struct merge *m, const char *gpu, struct ty_error *error)
{
    struct kind kinds[KINDS_MAX];
    const uint32_t n = list_kinds(m->d, kinds);
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (kinds[i].n_gpus > kinds[best].n_gpus)
            best = i;
    const gpu_set found = n ? kinds[best].set : 0;
    m->chosen = gpu && gpus_built_in(gpu) ? gpus_built_in(gpu) : found ? found : UINT64_MAX;
    if (gpu && found & GPU_UNKNOWN)
        m->chosen |= GPU_UNKNOWN; /* it stands in for a GPU that is not built in */
    if (gpu)
        m->built_in = gpus_built_in(gpu) ? gpu : NULL;
    else if (found)
        m->built_in = gpu_name(found, 0);
    note_other_kinds(m, kinds, n);
    if (m->built_in && !gpu)
        note_variants(m);
    else if (!gpu && found)
        detect_remark(m->d, TY_REMARK_GAP,
                      "gpu: %s is not built in; describe it in a file (docs/formats.md, GPU) and "
                      "give it with --gpu FILE",
                      kinds[best].text);
    else if (!gpu)
        detect_remark(m->d, TY_REMARK_GAP,
                      "gpu: no source names it; add nvidia-smi -q -x or give --gpu NAME (trainyard "
                      "list gpus)");
    return load_gpu(m, gpu, error);
}
