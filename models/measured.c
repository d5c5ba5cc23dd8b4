/* SPDX-License-Identifier: MIT
 *
 * Kernel times from measured tables (trainyard_measured.h): the very shape, else the form corrected
 * by what the records near it say about it,
 *
 *   t = form exp( sum_i w_i ln(t_i / form_i) / (1 + sum_i w_i) ),   w_i = (1/d_i - 1)^2
 *
 * so that steps of tiles and waves stay where the form has them, and the correction fades to none
 * at a distance of one doubling. */
#include "models/measured.h"

#include <math.h>

enum { MAX_SIZES = 5 };

/* What makes two kernels alike: equal kinds, and near sizes. */
struct shape {
    int precision, direction;
    bool grouped;
    double size[MAX_SIZES]; /* each above 0 */
};

struct vote {
    double weight, log_ratio; /* sums */
    double exact_s;           /* NAN: none has the very shape */
};

static int direction_of(const struct kernel *kernel)
{
    if (!kernel->backward)
        return TY_FORWARD;
    return kernel->accumulate ? TY_WGRAD : TY_DGRAD;
}

static struct shape shape_of(const struct kernel *kernel)
{
    struct shape shape = {.precision = kernel->precision,
                          .direction = direction_of(kernel),
                          .grouped = kernel->op == KERNEL_GROUPED_GEMM,
                          .size = {kernel->m, kernel->n, kernel->k, kernel->groups, 1.0}};
    if (kernel->op == KERNEL_ATTENTION) {
        const double size[MAX_SIZES] = {kernel->batch_heads, kernel->queries, kernel->seq,
                                        kernel->head_dim, kernel->flop_hw};
        for (int i = 0; i < MAX_SIZES; i++)
            shape.size[i] = size[i];
    }
    return shape;
}

/* Doublings between two shapes; 1 when they are further apart or of other kinds. */
static double distance(const struct shape *a, const struct shape *b)
{
    double sum = 0.0;
    if (a->precision != b->precision || a->direction != b->direction || a->grouped != b->grouped)
        return 1.0;
    for (int i = 0; i < MAX_SIZES; i++) {
        if (a->size[i] >= 2.0 * b->size[i] || b->size[i] >= 2.0 * a->size[i])
            return 1.0;
        if (a->size[i] > b->size[i] || a->size[i] < b->size[i]) {
            const double doublings = log2(a->size[i] / b->size[i]);
            sum += doublings * doublings;
        }
    }
    return fmin(1.0, sqrt(sum));
}

/* Below this the shapes are the same but for rounding of their sizes. */
static const double SAME = 1e-9;

static void cast(const struct setting *setting, const struct shape *asked, double time_s,
                 const struct kernel *record, struct vote *vote)
{
    const struct shape shape = shape_of(record);
    const double away = distance(asked, &shape);
    if (away < SAME)
        vote->exact_s = time_s;
    if (away < SAME || away >= 1.0)
        return;
    const double weight = (1.0 / away - 1.0) * (1.0 / away - 1.0);
    vote->weight += weight;
    vote->log_ratio += weight * log(time_s / kernel_form_s(setting, record));
}

static enum ty_origin decide(const struct vote *vote, enum ty_origin otherwise, double *time_s)
{
    if (!isnan(vote->exact_s)) {
        *time_s = vote->exact_s;
        return TY_ORIGIN_MEASURED;
    }
    if (!(vote->weight > 0.0))
        return otherwise;
    *time_s *= exp(vote->log_ratio / (1.0 + vote->weight));
    return TY_ORIGIN_INTERPOLATED;
}

void measured_gemm_kernel(const struct ty_measured_gemm *record, struct kernel *out)
{
    kernel_gemm(out, "record", (enum ty_precision)record->precision, record->m, record->n,
                record->k);
    if (record->grouped || record->groups > 1.0)
        kernel_repeat(out, record->grouped ? KERNEL_GROUPED_GEMM : KERNEL_GEMM, record->groups);
    out->inner = record->inner;
    out->backward = record->direction != TY_FORWARD;
    if (record->direction == TY_WGRAD)
        kernel_accumulate(out, 4.0);
}

void measured_attention_kernel(const struct ty_measured_attention *record, struct kernel *out)
{
    const bool backward = record->direction != TY_FORWARD;
    const double flop = 4.0 * record->pairs * record->head_dim;
    const double element_bytes = precision_bytes((enum ty_precision)record->precision);
    *out = (struct kernel){.op = KERNEL_ATTENTION,
                           .part = TY_PART_ATTENTION,
                           .name = "record",
                           .precision = (enum ty_precision)record->precision,
                           .backward = backward,
                           .batch_heads = record->batch_heads,
                           .queries = record->queries,
                           .seq = record->seq,
                           .head_dim = record->head_dim,
                           .flop_model = (backward ? 2.0 : 1.0) * flop,
                           .flop_hw = (backward ? 2.5 : 1.0) * flop,
                           .bytes = (backward ? 2.0 : 1.0) * 2.0 * element_bytes *
                                    record->batch_heads * record->head_dim *
                                    (record->queries + record->seq)};
}

static enum ty_origin from_gemms(const struct setting *setting, const struct kernel *kernel,
                                 enum ty_origin otherwise, double *time_s)
{
    const struct ty_measured *tables = setting->profile.measured;
    const struct shape asked = shape_of(kernel);
    struct vote vote = {.exact_s = (double)NAN};
    for (uint32_t i = 0; i < tables->n_gemms; i++) {
        struct kernel record;
        if (tables->gemms[i].precision != asked.precision ||
            tables->gemms[i].direction != asked.direction)
            continue;
        measured_gemm_kernel(&tables->gemms[i], &record);
        cast(setting, &asked, tables->gemms[i].time_s, &record, &vote);
    }
    return decide(&vote, otherwise, time_s);
}

static enum ty_origin from_attentions(const struct setting *setting, const struct kernel *kernel,
                                      enum ty_origin otherwise, double *time_s)
{
    const struct ty_measured *tables = setting->profile.measured;
    const struct shape asked = shape_of(kernel);
    struct vote vote = {.exact_s = (double)NAN};
    for (uint32_t i = 0; i < tables->n_attentions; i++) {
        struct kernel record;
        measured_attention_kernel(&tables->attentions[i], &record);
        cast(setting, &asked, tables->attentions[i].time_s, &record, &vote);
    }
    return decide(&vote, otherwise, time_s);
}

/* Straight in log-log between the points of the curve; outside it the form. */
static enum ty_origin from_curve(const struct ty_measured *tables, double bytes,
                                 enum ty_origin otherwise, double *time_s)
{
    const uint32_t n = tables->n_memory;
    const double *x = tables->memory_bytes, *y = tables->memory_time_s;
    if (n == 0 || !(bytes >= x[0]) || !(bytes <= x[n - 1]))
        return otherwise;
    uint32_t above = 0;
    while (x[above] < bytes)
        above++;
    if (x[above] <= bytes) {
        *time_s = y[above];
        return TY_ORIGIN_MEASURED;
    }
    const double share = log(bytes / x[above - 1]) / log(x[above] / x[above - 1]);
    *time_s = y[above - 1] * pow(y[above] / y[above - 1], share);
    return TY_ORIGIN_INTERPOLATED;
}

enum ty_origin constants_origin(const struct ty_profile *profile, enum ty_work work)
{
    return profile->fitted & 1u << work ? TY_ORIGIN_FITTED : TY_ORIGIN_PRESET;
}

enum ty_origin measured_kernel_s(const struct setting *setting, const struct kernel *kernel,
                                 double *time_s)
{
    const struct ty_measured *tables = setting->profile.measured;
    const enum ty_origin otherwise = constants_origin(&setting->profile, kernel_work(kernel));
    if (!tables)
        return otherwise;
    switch (kernel->op) {
    case KERNEL_GEMM:
    case KERNEL_GROUPED_GEMM:
        return from_gemms(setting, kernel, otherwise, time_s);
    case KERNEL_ATTENTION:
        return from_attentions(setting, kernel, otherwise, time_s);
    default:
        return from_curve(tables, kernel->bytes, otherwise, time_s);
    }
}
