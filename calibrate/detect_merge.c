/* SPDX-License-Identifier: MIT
 *
 * From findings to a cluster. Of each field the most trusted finding on the chosen GPU wins, the
 * first of equals; every other that differs by more than 2 % is named as a contradiction.
 */
#include "calibrate/detect_merge.h"
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME_RATIO   0.02
#define BOARD_DOMAIN 16 /* larger scale-up domains span nodes; models/cluster.c */

/* ---- values ------------------------------------------------------------------------------- */

void detect_value_text(const struct ty_field *field, double value, char *out, size_t bytes)
{
    const char *name;
    if (field->type == TY_FIELD_ENUM) {
        name = fields_enum_name(field, (int)value);
        text_format(out, bytes, "%s", name ? name : "");
    } else if (field->type == TY_FIELD_U32) {
        text_format(out, bytes, "%.0f", value);
    } else {
        ty_quantity_text(value, field->unit, out, bytes);
    }
}

static const struct ty_field *field_of(const char *path)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_CLUSTER, &n);
    return fields_find(fields, n, path);
}

/* false: outside the legal range, so not set. */
static bool set_value(struct ty_cluster *cluster, const struct ty_field *field, double value)
{
    char *at = (char *)cluster + field->offset;
    const bool legal = field->type == TY_FIELD_ENUM ? fields_enum_name(field, (int)value) != NULL
                                                    : value >= field->min && value <= field->max;
    if (!legal)
        return false;
    if (field->type == TY_FIELD_DOUBLE) {
        memcpy(at, &value, sizeof value);
    } else {
        const uint32_t whole = (uint32_t)value;
        memcpy(at, &whole, sizeof whole);
    }
    return true;
}

static double get_value(const struct ty_cluster *cluster, const struct ty_field *field)
{
    double value = (double)NAN;
    if (field->type == TY_FIELD_DOUBLE)
        memcpy(&value, (const char *)cluster + field->offset, sizeof value);
    return value;
}

static bool differs(const struct ty_field *field, double a, double b)
{
    if (field->type == TY_FIELD_ENUM)
        return a != b;
    return fabs(a - b) > SAME_RATIO * fmax(fabs(a), fabs(b));
}

/* A domain that ends at the node says nothing about a GPU whose domain spans nodes: one node's
 * tools see no further. */
static bool counts(const struct merge *m, const struct finding *f, const char *path)
{
    if (strcmp(f->path, path) != 0 || (f->gpus && !(f->gpus & m->chosen)))
        return false;
    const struct ty_cluster *cluster = &m->out->cluster;
    return strcmp(path, "scaleup.domain") != 0 || f->trust == TY_TRUST_STATED ||
           cluster->gpu.scaleup_domain <= BOARD_DOMAIN || f->value > cluster->gpus_per_node;
}

/* What the GPU itself can do bounds and names its fields. returns whether to set the value. */
static bool fits_gpu(struct merge *m, const struct ty_field *field, const struct finding *f)
{
    const double own = get_value(&m->out->cluster, field);
    if (strncmp(field->path, "gpu.", 4) != 0 || isnan(own))
        return true;
    if (strcmp(field->path, "gpu.pcie") == 0 && f->value > 1.1 * own) {
        char found[64], limit[64];
        detect_value_text(field, f->value, found, sizeof found);
        detect_value_text(field, own, limit, sizeof limit);
        detect_remark(m->d, TY_REMARK_CONTRADICTION,
                      "gpu.pcie: %s says %s, %s does %s at most, which is taken", f->place, found,
                      m->out->cluster.gpu.name, limit);
        return false;
    }
    const double same = strcmp(field->path, "gpu.pcie") == 0 ? 0.1 : SAME_RATIO;
    if (fabs(f->value - own) <= same * own)
        return false;
    m->changed_gpu = true;
    return true;
}

static void name_contradictions(struct merge *m, const struct ty_field *field,
                                const struct finding *best)
{
    double named[8];
    uint32_t n_named = 0;
    for (size_t i = 0; i < m->d->n_findings; i++) {
        const struct finding *f = &m->d->findings[i];
        bool again = false;
        for (uint32_t k = 0; k < n_named; k++)
            again |= !differs(field, named[k], f->value);
        if (!counts(m, f, field->path) || !differs(field, f->value, best->value) || again ||
            n_named == 8)
            continue;
        named[n_named++] = f->value;
        char taken[64], other[64];
        detect_value_text(field, best->value, taken, sizeof taken);
        detect_value_text(field, f->value, other, sizeof other);
        detect_remark(m->d, TY_REMARK_CONTRADICTION, "%s: %s of %s is taken, %s says %s",
                      field->path, taken, best->place, f->place, other);
    }
}

/* returns whether any source gave the field. */
static bool resolve(struct merge *m, const char *path)
{
    const struct ty_field *field = field_of(path);
    struct finding *best = NULL;
    for (size_t i = 0; i < m->d->n_findings; i++) {
        struct finding *f = &m->d->findings[i];
        if (counts(m, f, path) && (!best || f->trust > best->trust))
            best = f;
    }
    if (!best)
        return false;
    best->chosen = true;
    if (fits_gpu(m, field, best) && !set_value(&m->out->cluster, field, best->value)) {
        best->chosen = false;
        detect_remark(m->d, TY_REMARK_CONTRADICTION, "%s: %s gives %g, which is out of range", path,
                      best->place, best->value);
        return false;
    }
    name_contradictions(m, field, best);
    return true;
}

/* ---- values that follow from the GPU ------------------------------------------------------ */

/* One NVLink, one direction: 25 GB/s for generations 2 to 4, 50 GB/s for 5 (Blackwell). source:
 * handbook 6.1 */
static double nvlink_bytes_per_s(const struct ty_gpu *gpu)
{
    return strncmp(gpu->arch, "blackwell", 9) == 0 ? 50e9 : 25e9;
}

static void derive(struct merge *m)
{
    const struct ty_cluster *cluster = &m->out->cluster;
    for (size_t i = 0, n = m->d->n_findings; i < n && m->out->complete; i++) {
        struct finding f = m->d->findings[i];
        if (counts(m, &f, "scaleup.links")) {
            f.path = "scaleup.bandwidth";
            f.value *= nvlink_bytes_per_s(&cluster->gpu);
        } else if (counts(m, &f, "block") && cluster->gpu.scaleup_domain > BOARD_DOMAIN) {
            f.path = "scaleup.domain";
            f.value *= cluster->gpus_per_node;
        } else if (counts(m, &f, "block")) {
            f.path = "network.nodes_per_leaf";
        } else {
            continue;
        }
        f.trust = TY_TRUST_RULE;
        detect_put(m->d, &f);
    }
}

/* ---- gaps --------------------------------------------------------------------------------- */

static const struct {
    const char *path, *gap; /* how to get it; NULL: the default is right where nobody says */
} targets[] = {
    {"gpu", NULL}, /* chosen before */
    {"gpus_per_node", "nvidia-smi topo -m, or detect on a node"},
    {"gpu.memory.size", NULL},
    {"gpu.pcie", NULL},
    {"nodes", "count the machines: scontrol show node, sinfo -N or kubectl get nodes -o json"},
    {"scaleup.domain", NULL},
    {"scaleup.kind", NULL},
    {"scaleup.bandwidth", NULL},
    {"network.nic", "cat /sys/class/infiniband/*/ports/*/rate on a node, or ibnetdiscover"},
    {"network.nics_per_node", "nvidia-smi topo -m on a node, or NCCL_TOPO_DUMP_FILE"},
    {"network.latency", "measured only: nccl-tests at small sizes, calibrate import"},
    {"network.oversubscription", "ibnetdiscover; on Ethernet the uplinks of a leaf switch"},
    {"network.nodes_per_leaf", "topology.conf, ibnetdiscover, or lldpctl -f json of two or more "
                               "nodes"},
    {"network.fabric", "cat /sys/class/infiniband/*/ports/*/link_layer on a node"},
    {"power_limit", "nvidia-smi -q -x on a node"},
    {"host.bandwidth", "measured only: STREAM on a node"},
    {"host.memory", "scontrol show node, or detect on a node"},
    {"host.cpu_cores", "scontrol show node, or detect on a node; Kubernetes counts threads"},
};

static void resolve_all(struct merge *m)
{
    enum { FIRST = 1, LAST = sizeof targets / sizeof targets[0] };
    for (int i = FIRST; i < LAST; i++) {
        if (i == FIRST + 1)
            derive(m); /* needs the GPUs of a node */
        if (!resolve(m, targets[i].path) && targets[i].gap)
            detect_remark(m->d, TY_REMARK_GAP, "%s: %s", targets[i].path, targets[i].gap);
    }
}

/* The cluster must be one that predict takes (models/cluster.c): what cannot stand together goes.
 */
static void check(struct merge *m)
{
    struct ty_cluster *c = &m->out->cluster;
    const uint32_t domain = c->scaleup_domain, node = c->gpus_per_node;
    if (domain && node && domain % node != 0 && node % domain != 0) {
        detect_remark(m->d, TY_REMARK_CONTRADICTION,
                      "scaleup.domain: %u GPUs are neither a multiple nor a divisor of the %u of a "
                      "node; left out",
                      domain, node);
        c->scaleup_domain = 0;
    }
    const bool linked = c->scaleup_bytes_per_s > 0.0 ||
                        (isnan(c->scaleup_bytes_per_s) && c->gpu.scaleup_bytes_per_s > 0.0);
    if (m->out->complete && !linked && c->scaleup != TY_SCALEUP_PCIE) {
        if (c->scaleup != TY_SCALEUP_AUTO)
            detect_remark(m->d, TY_REMARK_CONTRADICTION,
                          "scaleup.kind: links were read, but %s has none; left out", c->gpu.name);
        c->scaleup = TY_SCALEUP_AUTO;
    }
    if (m->out->complete && isnan(c->gpu.tdp_w) && !isnan(c->power_limit_w)) {
        detect_remark(m->d, TY_REMARK_GAP,
                      "power_limit: cannot be judged without the TDP of %s; left out", c->gpu.name);
        c->power_limit_w = (double)NAN;
    }
}

/* ---- result ------------------------------------------------------------------------------- */

static void copy_finding(const struct finding *f, struct ty_found *to)
{
    const struct ty_field *field = field_of(f->path);
    text_format(to->field, sizeof to->field, "%s", f->path);
    text_format(to->place, sizeof to->place, "%s", f->place);
    to->trust = (int)f->trust;
    to->chosen = f->chosen;
    if (*f->text)
        text_format(to->value, sizeof to->value, "%s", f->text);
    else if (field)
        detect_value_text(field, f->value, to->value, sizeof to->value);
    else
        text_format(to->value, sizeof to->value, "%.0f", f->value);
}

/* In the order of the fields; of one field, the chosen finding first. */
static bool copy_found(const struct detect *d, struct ty_detection *out)
{
    out->found = calloc(d->n_findings + 1, sizeof *out->found);
    for (size_t t = 0; out->found && t < sizeof targets / sizeof targets[0]; t++)
        for (int chosen = 1; chosen >= 0; chosen--)
            for (size_t i = 0; i < d->n_findings; i++)
                if (strcmp(d->findings[i].path, targets[t].path) == 0 &&
                    d->findings[i].chosen == chosen)
                    copy_finding(&d->findings[i], &out->found[out->n_found++]);
    return out->found != NULL;
}

/* Remarks on files about other GPUs stay out, as their findings do. */
static bool copy_remarks(const struct detect *d, gpu_set chosen, struct ty_detection *out)
{
    out->remarks = calloc(d->n_remarks + 1, sizeof *out->remarks);
    if (!out->remarks)
        return false;
    for (size_t i = 0; i < d->n_remarks; i++) {
        if (d->remarks[i].gpus && !(d->remarks[i].gpus & chosen))
            continue;
        struct ty_remark_text *to = &out->remarks[out->n_remarks++];
        to->kind = (int)d->remarks[i].kind;
        text_format(to->text, sizeof to->text, "%s", d->remarks[i].text);
    }
    return true;
}

static void choose_gpu_finding(struct merge *m)
{
    struct finding *best = NULL;
    for (size_t i = 0; i < m->d->n_findings; i++) {
        struct finding *f = &m->d->findings[i];
        if (strcmp(f->path, "gpu") == 0 && f->gpus & m->chosen && (!best || f->trust > best->trust))
            best = f;
    }
    if (best)
        best->chosen = true;
}

/* The GPU of the machines is a finding of each of their sources. */
static void put_machine_gpus(struct detect *d, gpu_set chosen)
{
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < d->n_machines; i++) {
        const struct machine *m = &d->machines[i];
        if (!m->gpu || m->unusable || m->file == last || !(m->gpus & chosen))
            continue;
        last = m->file;
        detect_put(d, &(struct finding){.path = "gpu",
                                        .text = m->gpu,
                                        .place = detect_copy(d, d->paths[m->file], 320),
                                        .trust = TY_TRUST_STATED,
                                        .gpus = m->gpus});
    }
}

ty_status detect_merge(struct detect *detect, const char *gpu, struct ty_detection *out,
                       struct ty_error *error)
{
    struct merge m = {.d = detect, .out = out};
    ty_init(TY_KIND_CLUSTER, &out->cluster);
    ty_status status = detect_choose_gpu(&m, gpu, error);
    if (status != TY_OK)
        return status;
    put_machine_gpus(detect, m.chosen);
    detect_reduce_machines(detect, m.chosen);
    choose_gpu_finding(&m);
    resolve_all(&m);
    check(&m);
    if (detect->out_of_memory || !copy_found(detect, out) || !copy_remarks(detect, m.chosen, out))
        return error_set(error, TY_ERR_NOMEM, "detect", "no memory");
    return detect_write(out, m.changed_gpu ? NULL : m.built_in, error);
}
