/* SPDX-License-Identifier: MIT
 * Runs like a plan among those that the constants were fitted on. */
#include "calibrate/evidence.h"
#include "models/spec/builtin.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

const char *const evidence_names[N_EVIDENCE] = {"vendor", "fabric", "scale", "task"};

/* ---- cells -------------------------------------------------------------------------------- */

const char *evidence_scale(double n_gpus)
{
    static const struct {
        double up_to;
        const char *name;
    } classes[] = {
        {8, "1-8"}, {64, "9-64"}, {256, "65-256"}, {1024, "257-1024"}, {4096, "1025-4096"}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (n_gpus <= classes[i].up_to)
            return classes[i].name;
    return n_gpus > 4096 ? "over 4096" : "";
}

static const char *vendor_of(const struct ty_gpu *gpu)
{
    return gpu->vendor == TY_VENDOR_NVIDIA ? "nvidia"
           : gpu->vendor == TY_VENDOR_AMD  ? "amd"
                                           : "other";
}

const char *evidence_fabric(const struct ty_cluster *cluster)
{
    switch (cluster->fabric) {
    case TY_FABRIC_OMNIPATH:
        return "omnipath";
    case TY_FABRIC_ROCE:
    case TY_FABRIC_EFA:
    case TY_FABRIC_ETHERNET:
        return "ethernet";
    default:
        return "infiniband";
    }
}

/* A job in one scale-up domain uses no network. */
static const char *fabric_of(const struct ty_cluster *cluster, uint32_t n_gpus)
{
    uint32_t domain =
        cluster->scaleup_domain ? cluster->scaleup_domain : cluster->gpu.scaleup_domain;
    if (domain < cluster->gpus_per_node)
        domain = cluster->gpus_per_node;
    return n_gpus <= domain ? "one domain" : evidence_fabric(cluster);
}

static const char *task_of(const struct ty_model *model, const struct ty_plan *plan)
{
    if (model->lora_rank > 0)
        return "lora";
    if (plan->packed == TY_ON)
        return "sft";
    for (uint32_t kind = 0; kind < model->n_kinds; kind++)
        if (model->kinds[kind].mlp == TY_MLP_MOE)
            return "moe";
    return "dense";
}

struct evidence_cell evidence_cell(const struct ty_model *model, const struct ty_cluster *cluster,
                                   const struct ty_plan *plan)
{
    return (struct evidence_cell){{[EVIDENCE_VENDOR] = vendor_of(&cluster->gpu),
                                   [EVIDENCE_FABRIC] = fabric_of(cluster, plan->n_gpus),
                                   [EVIDENCE_SCALE] = evidence_scale(plan->n_gpus),
                                   [EVIDENCE_TASK] = task_of(model, plan)}};
}

/* ---- the table ---------------------------------------------------------------------------- */

/* Bit i: the row of the table agrees in axis i. */
static uint32_t agreement(const struct json_at *row, const struct evidence_cell *cell)
{
    uint32_t bits = 0;
    for (int axis = 0; axis < N_EVIDENCE; axis++) {
        struct json_at value;
        const char *text;
        if (json_find(row, evidence_names[axis], &value) &&
            json_get_text(&value, &text, NULL) == TY_OK && strcmp(text, cell->is[axis]) == 0)
            bits |= 1u << axis;
    }
    return bits;
}

static uint32_t rows_of(const struct json_at *row)
{
    struct json_at rows;
    uint32_t n = 0;
    return json_find(row, "rows", &rows) && json_get_u32(&rows, 0, UINT32_MAX, &n, NULL) == TY_OK
               ? n
               : 0;
}

/* An axis is what is unseen when runs agree in the other three; where none do, each axis whose
 * value no run has; where all have been seen, the combination. */
static void name_unseen(const struct evidence_cell *cell, const uint32_t *without,
                        const uint32_t *with, struct ty_evidence *out)
{
    bool near = false;
    for (int axis = 0; axis < N_EVIDENCE; axis++)
        near |= without[axis] > 0;
    for (int axis = 0; axis < N_EVIDENCE; axis++)
        if (near ? without[axis] > 0 : with[axis] == 0)
            text_append(out->unseen, sizeof out->unseen, "%s%s %s", *out->unseen ? ", " : "",
                        evidence_names[axis], cell->is[axis]);
    if (!*out->unseen)
        text_format(out->unseen, sizeof out->unseen, "the combination");
}

void evidence_find(const struct json_document *table, const struct evidence_cell *cell,
                   struct ty_evidence *out)
{
    struct json_at cells, row = {.node = NULL};
    uint32_t without[N_EVIDENCE] = {0}, with[N_EVIDENCE] = {0};
    const uint32_t all = (1u << N_EVIDENCE) - 1;
    *out = (struct ty_evidence){0};
    text_format(out->cell, sizeof out->cell, "%s, %s, %s GPUs, %s", cell->is[EVIDENCE_VENDOR],
                cell->is[EVIDENCE_FABRIC], cell->is[EVIDENCE_SCALE], cell->is[EVIDENCE_TASK]);
    if (!json_find(&table->top, "evidence", &cells))
        return;
    while (json_next(&cells, &row)) {
        const uint32_t bits = agreement(&row, cell), n = rows_of(&row);
        out->n_rows += bits == all ? n : 0;
        for (int axis = 0; axis < N_EVIDENCE; axis++) {
            without[axis] += (bits | 1u << axis) == all ? n : 0;
            with[axis] += bits & 1u << axis ? n : 0;
        }
    }
    if (out->n_rows == 0)
        name_unseen(cell, without, with, out);
}

ty_status ty_evidence_of(const struct ty_model *model, const struct ty_cluster *cluster,
                         const struct ty_plan *plan, struct ty_evidence *out,
                         struct ty_error *error)
{
    const struct builtin_file *file = builtin_find("runs", "fitted");
    const struct evidence_cell cell = evidence_cell(model, cluster, plan);
    struct json_document table = {0};
    if (!file)
        return error_set(error, TY_ERR_INTERNAL, "runs/fitted", "is not built in");
    const ty_status status =
        json_parse((const char *)file->text, file->bytes, file->name, &table, error);
    if (status != TY_OK)
        return status;
    evidence_find(&table, &cell, out);
    json_free(&table);
    return TY_OK;
}

/* ---- intervals ---------------------------------------------------------------------------- */

/* Of no stack, so that a narrow one of the plan's own does not count. */
static void load_common(struct ty_profile *out)
{
    struct ty_cluster any;
    ty_init(TY_KIND_PROFILE, out);
    if (ty_cluster_load("dgx-h100", &any, NULL) != TY_OK ||
        ty_profile_load(NULL, NULL, &any, out, NULL) != TY_OK)
        ty_init(TY_KIND_PROFILE, out);
}

void ty_evidence_widen(struct ty_profile *profile)
{
    struct ty_profile common;
    load_common(&common);
    const struct ty_profile *const known[] = {profile, &common};
    double half_80 = (double)NAN, half_90 = (double)NAN; /* fmax ignores NAN */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct ty_profile *p = known[i];
        half_80 = fmax(half_80, fmax(p->dense_half_80, fmax(p->moe_half_80, p->tuning_half_80)));
        half_90 = fmax(half_90, fmax(p->dense_half_90, fmax(p->moe_half_90, p->tuning_half_90)));
    }
    profile->dense_half_80 = profile->moe_half_80 = profile->tuning_half_80 = half_80;
    profile->dense_half_90 = profile->moe_half_90 = profile->tuning_half_90 = half_90;
}
