/* SPDX-License-Identifier: MIT
 * Which points are measured: a grid over what small models need, or the shapes of one model as the
 * simulator will ask for them. Kinds take turns, so that a short budget has some of each. */
#include "calibrate/import.h"
#include "calibrate/measure.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void measure_add(struct measure_list *list, enum record_kind kind, const char *name,
                 const double size[4])
{
    struct measure_point point = {.kind = kind, .name = name, .more = ""};
    memcpy(point.size, size, sizeof point.size);
    for (uint32_t i = 0; i < list->n; i++) /* a shape that two layers share is one point */
        if (list->point[i].kind == kind && strcmp(list->point[i].name, name) == 0 &&
            memcmp(list->point[i].size, point.size, sizeof point.size) == 0)
            return;
    if (list->n == list->capacity) {
        const uint32_t capacity = list->capacity ? 2 * list->capacity : 256;
        struct measure_point *grown = realloc(list->point, capacity * sizeof *grown);
        if (!grown) {
            list->out_of_memory = true;
            return;
        }
        list->point = grown;
        list->capacity = capacity;
    }
    list->point[list->n++] = point;
}

static void add(struct measure_list *list, enum record_kind kind, const char *name, double a,
                double b, double c, double d)
{
    measure_add(list, kind, name, (const double[4]){a, b, c, d});
}

/* ---- what any model needs ------------------------------------------------------------------- */

static void add_memory(struct measure_list *list)
{
    static const char *const functions[] = {"norm", "activation", "loss", "permute",
                                            "cast", "adam",       "copy", "triad"};
    for (double elements = 1024.0; elements <= 4194304.0; elements *= 4.0)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            add(list, RECORD_KIND_MEMORY, functions[i], elements, 256.0, 0.0, 0.0);
    add(list, RECORD_KIND_MEMORY, "copy", 16777216.0, 256.0, 0.0, 0.0);
    add(list, RECORD_KIND_MEMORY, "triad", 10485760.0, 256.0, 0.0, 0.0);
    add(list, RECORD_KIND_MEMORY, "adam", 8388608.0, 256.0, 0.0, 0.0);
}

static void add_ranks(struct measure_list *list, uint32_t ranks)
{
    const double most_bytes = sizeof(float) * MEASURE_SHARED_FLOATS;
    add(list, RECORD_KIND_DECODE, "tokens", 4096.0, 1.0, 0.0, 0.0);
    if (ranks < 2)
        return;
    add(list, RECORD_KIND_DECODE, "tokens", 4096.0, ranks, 0.0, 0.0);
    for (double bytes = 1024.0; bytes <= most_bytes; bytes *= 8.0) {
        add(list, RECORD_KIND_COPY, "p2p", bytes, 2.0, 0.0, 0.0);
        add(list, RECORD_KIND_COPY, "pipe", bytes, 2.0, 0.0, 0.0);
    }
    for (double bytes = 1024.0; bytes <= most_bytes; bytes *= 2.0)
        for (enum ty_collective_op op = TY_ALL_REDUCE; op < TY_N_COLLECTIVES; op++)
            add(list, RECORD_KIND_COLLECTIVE, ty_collective_name(op), bytes, ranks, 0.0, 0.0);
    for (double bytes = 1024.0; ranks > 2 && bytes <= most_bytes; bytes *= 8.0)
        add(list, RECORD_KIND_COLLECTIVE, "all_reduce", bytes, 2.0, 0.0, 0.0);
}

/* ---- a grid ---------------------------------------------------------------------------------- */

/* The three GEMMs of a linear layer. */
static void add_linear(struct measure_list *list, double m, double n, double k)
{
    add(list, RECORD_KIND_GEMM, "forward", m, n, k, 0.0);
    add(list, RECORD_KIND_GEMM, "dgrad", m, k, n, 0.0);
    add(list, RECORD_KIND_GEMM, "wgrad", k, n, m, 0.0);
}

static void add_grid(struct measure_list *list)
{
    for (double hidden = 128.0; hidden <= 512.0; hidden *= 2.0)
        for (double tokens = 256.0; tokens <= 1024.0; tokens *= 4.0) {
            add_linear(list, tokens, 3.0 * hidden, hidden);
            add_linear(list, tokens, hidden, hidden);
            add_linear(list, tokens, 4.0 * hidden, hidden);
            add_linear(list, tokens, hidden, 4.0 * hidden);
            add_linear(list, tokens, 2048.0, hidden);
        }
    for (double size = 8.0; size <= 64.0; size *= 2.0)
        add(list, RECORD_KIND_GEMM, "forward", size, size, size, 0.0);
    add(list, RECORD_KIND_GEMM, "forward", 2048.0, 2048.0, 512.0, 0.0);
    for (double groups = 2.0; groups <= 8.0; groups *= 2.0)
        add(list, RECORD_KIND_GROUPED_GEMM, "forward", groups, 128.0, 512.0, 256.0);
    for (double seq = 64.0; seq <= 512.0; seq *= 2.0)
        for (double dim = 32.0; dim <= 64.0; dim *= 2.0)
            for (double batch = 1.0; batch <= 4.0; batch *= 4.0) {
                add(list, RECORD_KIND_ATTENTION, "fwd", batch, 4.0, seq, dim);
                add(list, RECORD_KIND_ATTENTION, "bwd", batch, 4.0, seq, dim);
            }
}

/* ---- a model --------------------------------------------------------------------------------- */

struct model_list {
    struct measure_list *list;
    double mbs;
};

/* The plan's sequences are the batch of attention; memory traffic is one curve for all. */
static void add_shape(void *user, const struct ty_shape *shape)
{
    static const char *const directions[] = {"forward", "dgrad", "wgrad"};
    const struct model_list *into = user;
    const struct ty_measured_gemm *gemm = &shape->gemm;
    const struct ty_measured_attention *attention = &shape->attention;
    if (shape->work == TY_WORK_ATTENTION)
        add(into->list, RECORD_KIND_ATTENTION, attention->direction == TY_FORWARD ? "fwd" : "bwd",
            into->mbs, attention->batch_heads / into->mbs, attention->seq, attention->head_dim);
    else if (shape->work == TY_WORK_GEMM && gemm->grouped)
        add(into->list, RECORD_KIND_GROUPED_GEMM, directions[gemm->direction], gemm->groups,
            ceil(gemm->m), ceil(gemm->n), ceil(gemm->k));
    else if (shape->work == TY_WORK_GEMM)
        add(into->list, RECORD_KIND_GEMM, directions[gemm->direction], gemm->m, gemm->n, gemm->k,
            0.0);
}

/* As the simulator lays the layers out, in fp32 and with a fused attention. Any cluster will do. */
static ty_status add_model(const struct ty_measure_options *options, struct measure_list *list,
                           struct ty_error *error)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    if (options->plan)
        plan = *options->plan;
    plan.precision = TY_FP32_PRECISION;
    plan.attention = TY_KERNEL_FLASH;
    if (plan.mbs == 0)
        plan.mbs = 1;
    struct model_list into = {list, plan.mbs};
    ty_status status = ty_cluster_load("dgx-h100", &cluster, error);
    if (status == TY_OK)
        status = ty_profile_load(NULL, NULL, &cluster, &profile, error);
    if (status == TY_OK)
        status = ty_plan_shapes(options->model, &cluster, &profile, &plan, add_shape, &into, error);
    return status;
}

/* ---- order, what is known -------------------------------------------------------------------- */

struct placed {
    double place;
    struct measure_point point;
};

static int by_place(const void *a, const void *b)
{
    const double left = ((const struct placed *)a)->place,
                 right = ((const struct placed *)b)->place;
    return (left > right) - (left < right);
}

/* The i-th of the n points of a kind goes to the place (i + 1/2) / n. */
static void take_turns(struct measure_list *list)
{
    uint32_t of_kind[RECORD_N_KINDS] = {0}, seen[RECORD_N_KINDS] = {0};
    struct placed *placed = malloc((list->n + 1) * sizeof *placed);
    if (!placed) {
        list->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < list->n; i++)
        of_kind[list->point[i].kind]++;
    for (uint32_t i = 0; i < list->n; i++) {
        const enum record_kind kind = list->point[i].kind;
        placed[i].point = list->point[i];
        placed[i].place = (seen[kind]++ + 0.5) / of_kind[kind] + 1e-6 * (double)kind;
    }
    qsort(placed, list->n, sizeof *placed, by_place);
    for (uint32_t i = 0; i < list->n; i++)
        list->point[i] = placed[i].point;
    free(placed);
}

ty_status measure_list_cpu(const struct ty_measure_options *options, uint32_t ranks,
                           struct measure_list *list, struct ty_error *error)
{
    ty_status status = TY_OK;
    add(list, RECORD_KIND_LAUNCH, "eager", 0.0, 0.0, 0.0, 0.0);
    if (options->model)
        status = add_model(options, list, error);
    else
        add_grid(list);
    add_memory(list);
    add_ranks(list, ranks);
    take_turns(list);
    if (status == TY_OK && list->out_of_memory)
        return error_set(error, TY_ERR_NOMEM, "measure", "no memory for its list");
    return status;
}

void measure_list_storage(struct measure_list *list)
{
    static const char *const patterns[] = {"sequential", "random"};
    static const char *const ops[] = {"read", "write"};
    for (double clients = 1.0; clients <= 4.0; clients *= 2.0)
        for (int op = 0; op < 2; op++)
            for (int pattern = 0; pattern < 2; pattern++) {
                add(list, RECORD_KIND_STORAGE, ops[op], pattern ? 4096.0 : 1048576.0, clients,
                    pattern, 0.0);
                list->point[list->n - 1].more = patterns[pattern];
            }
    add(list, RECORD_KIND_STORAGE, "fsync", 4096.0, 1.0, 0.0, 0.0);
    add(list, RECORD_KIND_LOADER, "synthetic", 65536.0, 0.0, 0.0, 0.0);
    add(list, RECORD_KIND_LOADER, "cached", 65536.0, 0.0, 0.0, 0.0);
    add(list, RECORD_KIND_LOADER, "cold", 65536.0, 0.0, 0.0, 0.0);
}

/* Keys of the sizes by kind, in their order; "name": the text. */
static const struct {
    const char *name;
    const char *size[4];
} keys[RECORD_N_KINDS] = {
    [RECORD_KIND_GEMM] = {"direction", {"m", "n", "k"}},
    [RECORD_KIND_GROUPED_GEMM] = {"direction", {"groups", "m", "n", "k"}},
    [RECORD_KIND_ATTENTION] = {"passes", {"batch", "heads", "seq_len", "head_dim"}},
    [RECORD_KIND_MEMORY] = {"function", {"elements", "row"}},
    [RECORD_KIND_LAUNCH] = {"mode", {NULL}},
    [RECORD_KIND_COPY] = {"test", {"size_bytes"}},
    [RECORD_KIND_COLLECTIVE] = {"op", {"size_bytes", "ranks"}},
    [RECORD_KIND_STORAGE] = {"op", {"block_bytes", "jobs"}},
    [RECORD_KIND_DECODE] = {"format", {"sample_bytes", "cores"}},
    [RECORD_KIND_LOADER] = {"step", {"sample_bytes"}},
};

void measure_parameters(const struct measure_point *point, struct record_fields *fields)
{
    record_text(fields, RECORD_PARAMETER, keys[point->kind].name, point->name);
    for (int i = 0; i < 4; i++)
        if (keys[point->kind].size[i])
            record_number(fields, RECORD_PARAMETER, keys[point->kind].size[i], point->size[i]);
    if (point->kind <= RECORD_KIND_ATTENTION)
        record_text(fields, RECORD_PARAMETER, "dtype", "fp32");
    if (*point->more)
        record_text(fields, RECORD_PARAMETER, "pattern", point->more);
}

static bool is_of(const struct record *record, const struct measure_point *point)
{
    struct record_fields wanted = {.n = 0};
    measure_parameters(point, &wanted);
    if (record_kind_of(record) != point->kind)
        return false;
    for (uint32_t i = 0; i < wanted.n; i++) {
        const struct record_field *field = &wanted.at[i];
        if (field->text ? strcmp(record_value_text(record, field->key), field->text) != 0
                        : !(fabs(record_value(record, field->key) - field->number) < 0.5))
            return false;
    }
    return true;
}

ty_status measure_forget(const char *path, struct measure_list *list, uint32_t *n_known,
                         struct ty_error *error)
{
    struct import_file file = {.path = path};
    struct record_list records;
    ty_status status = import_read_file(&file, error);
    if (status != TY_OK)
        return status;
    record_list_init(&records);
    status = record_read(file.text, path, &records, error);
    if (status == TY_OK)
        status = record_list_status(&records, path, error);
    uint32_t kept = 0;
    for (uint32_t i = 0; status == TY_OK && i < list->n; i++) {
        bool known = false;
        for (size_t k = 0; k < records.n && !known; k++)
            known = is_of(&records.record[k], &list->point[i]);
        if (!known)
            list->point[kept++] = list->point[i];
    }
    if (status == TY_OK) {
        *n_known = list->n - kept;
        list->n = kept;
    }
    record_list_free(&records);
    free(file.text);
    return status;
}
