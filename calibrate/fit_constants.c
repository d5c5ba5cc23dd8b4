/* SPDX-License-Identifier: MIT
 *
 * The constants of device and fabric that rows inform. Rounds of: derivatives by differences, the
 * robust MAP problem of fit_map.c, a limited step. Then rows far from the form of their kind are
 * left out, and the rest is fitted again. */
#include "calibrate/fit_records.h"
#include "calibrate/statistics.h"
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 25, FREE_ROUNDS = 6, FEW = 3, FEW_FOR_OUTLIERS = 8 };
static const double STANDS_STILL = 1e-4, LONGEST_STEP = 1.0, DIFFERENCE = 1e-4;
/* A row is an outlier from here: robust standard deviations of its kind, and no less than. */
static const double OUTLIER_SD = 5.0, OUTLIER_LEAST = 0.4;
/* A constant depends on its rows when they change by this share of its change, and is known when
 * they decide this share of it. */
static const double DEPENDS = 1e-3, KNOWN = 0.1;

#define OF(row) (1u << ROW_##row)

/* Standard deviation of the prior in the logarithm; bounds, in the unit of the field or, relative,
 * over the prior. prior 0: that of the machine's presets; otherwise the constant is 0 there. */
static const struct constant {
    const char *path;
    double prior, sd_log, min, max;
    bool relative;
    uint32_t rows;
} constants[] = {
    {"device.gemm_ratio_16", 0, 0.7, 1e-3, 1.0, false, OF(GEMM)},
    {"device.gemm_ratio_8", 0, 0.7, 1e-3, 1.0, false, OF(GEMM)},
    {"device.gemm_ratio_4", 0, 0.7, 1e-3, 1.0, false, OF(GEMM)},
    {"device.gemm_k0", 0, 1.5, 1.0, 1e4, false, OF(GEMM)},
    {"device.gemm_wave_loss", 0, 1.0, 0.01, 1.0, false, OF(GEMM) | OF(ATTENTION)},
    {"device.gemm_backward", 0, 0.5, 0.3, 4.0, false, OF(GEMM)},
    {"device.grouped_gemm_ratio", 0, 0.7, 0.02, 2.0, false, OF(GEMM)},
    {"device.attention_rate", 0, 1.0, 1e-3, 10.0, true, OF(ATTENTION)},
    {"device.attention_half_seq", 0, 1.5, 1.0, 2e4, false, OF(ATTENTION)},
    {"device.attention_head_power", 0, 1.0, 0.01, 2.0, false, OF(ATTENTION)},
    {"device.attention_backward", 0, 0.5, 0.3, 5.0, false, OF(ATTENTION)},
    {"device.mem_ratio", 0, 0.7, 1e-3, 1.0, false, OF(GEMM) | OF(ATTENTION) | OF(MEMORY)},
    {"device.mem_half_size", 1e5, 4.0, 1.0, 1e10, false, OF(MEMORY)},
    {"device.kernel_floor", 0, 2.0, 1e-9, 1e-2, false,
     OF(GEMM) | OF(ATTENTION) | OF(MEMORY) | OF(REPLAY)},
    {"device.launch_issue", 0, 2.0, 1e-9, 1e-2, false, OF(ISSUE)},
    {"fabric.allreduce_busbw", 0, 1.0, 1e-3, 1e3, true, OF(COLLECTIVE)},
    {"fabric.allgather_busbw", 0, 1.0, 1e-3, 1e3, true, OF(COLLECTIVE)},
    {"fabric.alltoall_ratio", 0, 0.7, 0.02, 5.0, false, OF(COLLECTIVE)},
    {"fabric.alltoall_nic_ratio", 0, 0.7, 0.02, 5.0, false, OF(COLLECTIVE)},
    {"fabric.collective_latency", 0, 1.5, 1e-7, 1e-2, false, OF(COLLECTIVE)},
    {"fabric.latency_growth", 0, 1.0, 0.01, 50.0, false, OF(COLLECTIVE)},
    {"fabric.ramp_ratio", 0, 1.0, 0.01, 20.0, false, OF(COLLECTIVE)},
    {"fabric.nic_ratio", 0, 0.7, 0.01, 1.0, false, OF(COLLECTIVE)},
    {"fabric.p2p_latency", 0, 1.5, 1e-7, 1e-2, false, OF(COLLECTIVE)},
    {"fabric.slow_compute_scaleup", 0, 5.0, 1e-3, 0.9, false, OF(BESIDE)},
    {"fabric.slow_compute_nic", 0, 5.0, 1e-3, 0.9, false, OF(BESIDE)},
    {"fabric.slow_comm", 0, 5.0, 1e-3, 0.9, false, OF(BESIDE)},
};
enum { N_CONSTANTS = sizeof constants / sizeof constants[0] };

struct problem {
    struct records_fit *fit;
    struct fit_param param[N_CONSTANTS];
    bool held[N_CONSTANTS]; /* too few rows: stays at its prior */
    double preset[N_CONSTANTS];
    bool refuted[N_CONSTANTS]; /* its preset cannot be: one row is enough */
    struct fit_params params;
    struct fit_linear linear;
    double *weight; /* [n rows] */
    double z[N_CONSTANTS], share[N_CONSTANTS];
};

static double *place(const struct problem *problem, uint32_t j)
{
    return (double *)(void *)((char *)ty_forms_profile(problem->fit->forms) +
                              problem->param[j].field->offset);
}

/* ---- the form ------------------------------------------------------------------------------- */

/* Two that run beside each other: each at its rate alone less what the other takes. */
static double beside_ratio(const struct ty_profile *profile, const struct fit_row *row)
{
    const bool network = row->group.n_domains > 1;
    const double lost = !row->compute ? profile->slow_comm
                        : network     ? profile->slow_compute_nic
                                      : profile->slow_compute_scaleup;
    return 1.0 / (1.0 - lost);
}

static double form_s(const struct records_fit *fit, const struct fit_row *row)
{
    const struct ty_profile *profile = ty_forms_profile(fit->forms);
    switch (row->of) {
    case ROW_GEMM:
        return ty_forms_gemm_s(fit->forms, &row->gemm);
    case ROW_ATTENTION:
        return ty_forms_attention_s(fit->forms, &row->attention);
    case ROW_MEMORY:
        return ty_forms_memory_s(fit->forms, row->bytes);
    case ROW_COLLECTIVE:
        return ty_forms_collective_s(fit->forms, row->op, &row->group, row->bytes);
    case ROW_ISSUE:
        return profile->launch_issue_s;
    case ROW_REPLAY:
        return profile->kernel_floor_s;
    default:
        return beside_ratio(profile, row);
    }
}

static double preset_of(const struct problem *problem, uint32_t j)
{
    return constants[j].prior > 0.0 ? 0.0 : problem->param[j].prior;
}

static void set_constants(struct problem *problem)
{
    for (uint32_t j = 0; j < N_CONSTANTS; j++)
        *place(problem, j) =
            problem->held[j] ? preset_of(problem, j) : fit_value(&problem->param[j], problem->z[j]);
}

/* r and its derivatives at z. */
static void linearise(struct problem *problem)
{
    const struct records_fit *fit = problem->fit;
    struct fit_linear *linear = &problem->linear;
    set_constants(problem);
    memcpy(linear->z, problem->z, sizeof problem->z);
    for (uint32_t i = 0; i < fit->n_rows; i++)
        linear->r[i] = log(form_s(fit, &fit->rows[i]) / fit->rows[i].time_s);
    for (uint32_t j = 0; j < N_CONSTANTS; j++) {
        const struct fit_param *param = &problem->param[j];
        double *value = place(problem, j);
        const double kept = *value;
        const double step = kept * exp(DIFFERENCE) > param->max ? -DIFFERENCE : DIFFERENCE;
        *value *= exp(step);
        for (uint32_t i = 0; i < fit->n_rows; i++) {
            const struct fit_row *row = &fit->rows[i];
            double *slope = &linear->dr[(size_t)i * N_CONSTANTS + j];
            *slope = 0.0;
            if (!problem->held[j] && constants[j].rows & 1u << row->of)
                *slope = (log(form_s(fit, row) / row->time_s) - linear->r[i]) / step;
        }
        *value = kept;
    }
}

/* ---- solving -------------------------------------------------------------------------------- */

static ty_status solve(struct problem *problem)
{
    double moved = HUGE_VAL, longest = LONGEST_STEP;
    for (int round = 0; moved > STANDS_STILL && round < MAX_ROUNDS; round++) {
        double to[N_CONSTANTS];
        linearise(problem);
        memcpy(to, problem->z, sizeof to);
        const ty_status status =
            fit_map(&problem->linear, &problem->params, problem->weight, to, problem->share);
        if (status != TY_OK)
            return status;
        moved = 0.0;
        for (uint32_t j = 0; j < N_CONSTANTS; j++) {
            const double step = fmax(-longest, fmin(longest, to[j] - problem->z[j]));
            problem->z[j] += step;
            moved = fmax(moved, fabs(step));
        }
        longest *= round < FREE_ROUNDS ? 1.0 : 0.7;
    }
    linearise(problem);
    return TY_OK;
}

/* The host's time of a launch, an empty kernel and the loss beside another need no form: one record
 * of them counts as many. */
static uint32_t n_depending(const struct problem *problem, uint32_t j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problem->fit->n_rows; i++)
        if (problem->weight[i] > 0.0 &&
            fabs(problem->linear.dr[(size_t)i * N_CONSTANTS + j]) > DEPENDS)
            n += problem->fit->rows[i].of >= ROW_ISSUE ? FEW : 1;
    return n;
}

/* Which constants stay at their presets, at the present z. */
static void hold_uninformed(struct problem *problem)
{
    memset(problem->held, 0, sizeof problem->held);
    linearise(problem);
    for (uint32_t j = 0; j < N_CONSTANTS; j++) {
        problem->held[j] = n_depending(problem, j) < (problem->refuted[j] ? 1 : FEW);
        problem->z[j] = problem->held[j] ? 0.0 : problem->z[j];
        for (uint32_t i = 0; problem->held[j] && i < problem->fit->n_rows; i++)
            problem->linear.dr[(size_t)i * N_CONSTANTS + j] = 0.0;
    }
}

/* ---- outliers ------------------------------------------------------------------------------- */

static uint32_t residuals_of(const struct problem *problem, enum row_of of, double *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problem->fit->n_rows; i++)
        if (problem->fit->rows[i].of == of)
            out[n++] = problem->linear.r[i];
    return n;
}

static void mark_outliers(struct problem *problem, enum row_of of, double *scratch)
{
    struct records_fit *fit = problem->fit;
    const uint32_t n = residuals_of(problem, of, scratch);
    if (n < FEW_FOR_OUTLIERS)
        return;
    stat_sort(scratch, n);
    const double middle = stat_quantile(scratch, n, 0.5);
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = fabs(scratch[i] - middle);
    stat_sort(scratch, n);
    const double far = fmax(OUTLIER_LEAST, OUTLIER_SD * 1.4826 * stat_quantile(scratch, n, 0.5));
    for (uint32_t i = 0; i < fit->n_rows; i++) {
        struct fit_row *row = &fit->rows[i];
        if (row->of != of || fabs(problem->linear.r[i] - middle) <= far)
            continue;
        row->outlier = true;
        problem->weight[i] = 0.0;
        fit_drop(fit, row->record, "an outlier: far from the form that the others follow");
        fit->out->n_used--;
    }
}

/* ---- what came out -------------------------------------------------------------------------- */

static void fill_errors(const struct problem *problem, uint32_t j, double *scratch,
                        struct ty_constant *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problem->fit->n_rows; i++)
        if (problem->weight[i] > 0.0 &&
            fabs(problem->linear.dr[(size_t)i * N_CONSTANTS + j]) > DEPENDS)
            scratch[n++] = fabs(problem->linear.r[i]);
    out->n_records = n;
    if (n == 0)
        return;
    stat_sort(scratch, n);
    out->median_error = stat_quantile(scratch, n, 0.5);
    out->p90_error = stat_quantile(scratch, n, 0.9);
}

/* The files of the records that a constant depends on, each once, as far as they fit. */
static void fill_source(const struct problem *problem, uint32_t j, struct ty_constant *out)
{
    const struct records_fit *fit = problem->fit;
    const char *last = "";
    for (uint32_t i = 0; i < fit->n_rows; i++) {
        const struct record *record = fit->rows[i].record;
        const char *file = *record->file ? record->file : record->tool;
        const bool depends = problem->weight[i] > 0.0 &&
                             fabs(problem->linear.dr[(size_t)i * N_CONSTANTS + j]) > DEPENDS;
        if (!depends || !*file || strcmp(file, last) == 0 || strstr(out->source, file))
            continue;
        if (strlen(out->source) + strlen(file) + sizeof ", ..." > sizeof out->source) {
            text_append(out->source, sizeof out->source, ", ...");
            return;
        }
        text_append(out->source, sizeof out->source, "%s%s", *out->source ? ", " : "", file);
        last = file;
    }
}

static enum ty_constant_state state_of(const struct problem *problem, uint32_t j,
                                       const struct ty_constant *constant)
{
    const double reach = 1e-6;
    if (problem->held[j])
        return TY_CONSTANT_TOO_FEW;
    if (constant->n_records == 0 || constant->informed < KNOWN)
        return TY_CONSTANT_UNKNOWN;
    if (constant->value <= constant->min * (1.0 + reach))
        return TY_CONSTANT_AT_MIN;
    return constant->value >= constant->max * (1.0 - reach) ? TY_CONSTANT_AT_MAX
                                                            : TY_CONSTANT_FITTED;
}

/* Only what is known goes into the profile: the rest stays with the presets. */
static void report(struct problem *problem, double *scratch)
{
    struct ty_calibration *out = problem->fit->out;
    ty_init(TY_KIND_PROFILE, &out->profile);
    for (uint32_t j = 0; j < N_CONSTANTS; j++) {
        const struct fit_param *param = &problem->param[j];
        struct ty_constant *constant = &out->constants[out->n_constants++];
        *constant = (struct ty_constant){.field = param->field,
                                         .value = fit_value(param, problem->z[j]),
                                         .prior = problem->preset[j],
                                         .min = param->min,
                                         .max = param->max,
                                         .informed = problem->share[j],
                                         .median_error = (double)NAN,
                                         .p90_error = (double)NAN};
        fill_errors(problem, j, scratch, constant);
        constant->state = state_of(problem, j, constant);
        if (constant->state >= TY_CONSTANT_TOO_FEW && problem->refuted[j]) {
            constant->state = TY_CONSTANT_SHORTEST;
            constant->value = param->prior;
        }
        if (constant->state >= TY_CONSTANT_TOO_FEW) {
            constant->value = constant->prior = preset_of(problem, j);
            constant->informed = 0.0;
            text_format(constant->source, sizeof constant->source, "preset of %s",
                        out->cluster.gpu.name);
            continue;
        }
        fill_source(problem, j, constant);
        memcpy((char *)&out->profile + param->field->offset, &constant->value,
               sizeof constant->value);
    }
}

/* Work whose rate is of this machine. */
static void name_fitted(struct ty_profile *profile)
{
    const struct {
        enum ty_work work;
        double rate;
    } rates[] = {{TY_WORK_GEMM, profile->gemm_ratio_16},
                 {TY_WORK_GEMM, profile->gemm_ratio_8},
                 {TY_WORK_GEMM, profile->gemm_ratio_4},
                 {TY_WORK_ATTENTION, profile->attention_flop_per_s},
                 {TY_WORK_MEMORY, profile->mem_ratio},
                 {TY_WORK_COLLECTIVES, profile->allreduce_busbw_bytes_per_s},
                 {TY_WORK_COLLECTIVES, profile->allgather_busbw_bytes_per_s},
                 {TY_WORK_COLLECTIVES, profile->nic_ratio}};
    profile->calibrated = true;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (!isnan(rates[i].rate))
            profile->fitted |= 1u << rates[i].work;
    if (profile->fitted & (1u << TY_WORK_GEMM | 1u << TY_WORK_ATTENTION))
        profile->clock_ratio = 1.0; /* it is in the rates */
}

/* most: that a profile allows; in-network reduction beats the link it runs over. */
static void to_ratio(double *rate, double of, double most, double *ratio)
{
    if (isnan(*rate) || !(of > 0.0) || !(*rate <= most * of))
        return;
    *ratio = *rate / of;
    *rate = (double)NAN;
}

/* Rates as shares of the machine's figures, so that a what-if of the peak or the link moves them
 * (docs/formats.md). Not over PCIe, whose ratios the simulator caps. */
static void scale_with_machine(struct records_fit *fit)
{
    struct ty_profile *profile = &fit->out->profile;
    const struct ty_cluster *cluster = ty_forms_cluster(fit->forms);
    const double peak_flop_per_s = fmax(cluster->gpu.bf16_flop_per_s, cluster->gpu.fp16_flop_per_s);
    const double link_bytes_per_s =
        cluster->scaleup == TY_SCALEUP_PCIE ? 0.0 : cluster->scaleup_bytes_per_s;
    to_ratio(&profile->attention_flop_per_s, peak_flop_per_s, 1.0, &profile->attention_ratio);
    profile->attention_fa2_ratio = profile->attention_ratio;
    to_ratio(&profile->allreduce_busbw_bytes_per_s, link_bytes_per_s, 10.0,
             &profile->allreduce_ratio);
    to_ratio(&profile->allgather_busbw_bytes_per_s, link_bytes_per_s, 10.0,
             &profile->allgather_ratio);
}

static void copy_points(const struct problem *problem)
{
    struct ty_calibration *out = problem->fit->out;
    for (uint32_t i = 0; i < problem->fit->n_rows; i++) {
        const struct fit_row *row = &problem->fit->rows[i];
        if (row->of <= ROW_COLLECTIVE)
            out->points[out->n_points++] = (struct ty_calibration_point){
                (enum ty_work)row->of, row->x, row->time_s, row->time_s * exp(problem->linear.r[i]),
                row->outlier};
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

static void init_params(struct problem *problem)
{
    size_t n_fields;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n_fields);
    problem->params = (struct fit_params){N_CONSTANTS, problem->param};
    for (uint32_t j = 0; j < N_CONSTANTS; j++) {
        const struct constant *constant = &constants[j];
        struct fit_param *param = &problem->param[j];
        *param = (struct fit_param){.field = fields_find(fields, n_fields, constant->path),
                                    .sd_log = constant->sd_log};
        double *value = place(problem, j);
        param->prior = constant->prior > 0.0 ? constant->prior : *value;
        if (!(param->prior > 0.0)) /* a machine without such a link */
            param->prior = constant->relative ? 1e9 : constant->min;
        param->min = constant->min * (constant->relative ? param->prior : 1.0);
        param->max = constant->max * (constant->relative ? param->prior : 1.0);
        param->prior = fmin(fmax(param->prior, param->min), param->max);
        *value = problem->preset[j] = param->prior;
    }
}

/* The shortest time of a kernel is not above the shortest that was measured: another kind of
 * machine than the presets know would otherwise lose its small kernels as outliers. */
static void lower_floor(struct problem *problem)
{
    double shortest_s = HUGE_VAL;
    uint32_t floor_at = 0;
    for (uint32_t i = 0; i < problem->fit->n_rows; i++)
        if (problem->fit->rows[i].of <= ROW_MEMORY)
            shortest_s = fmin(shortest_s, problem->fit->rows[i].time_s);
    while (strcmp(constants[floor_at].path, "device.kernel_floor") != 0)
        floor_at++;
    struct fit_param *param = &problem->param[floor_at];
    problem->refuted[floor_at] = shortest_s < param->prior;
    if (problem->refuted[floor_at])
        param->prior = fmax(shortest_s, param->min);
}

static ty_status run(struct problem *problem, double *scratch)
{
    hold_uninformed(problem);
    ty_status status = solve(problem);
    for (enum row_of of = ROW_GEMM; status == TY_OK && of <= ROW_COLLECTIVE; of++)
        mark_outliers(problem, of, scratch);
    if (status == TY_OK) {
        hold_uninformed(problem); /* what depends on what differs here from there */
        status = solve(problem);
    }
    if (status != TY_OK)
        return status;
    report(problem, scratch);
    name_fitted(&problem->fit->out->profile);
    scale_with_machine(problem->fit);
    copy_points(problem);
    return TY_OK;
}

ty_status fit_constants(struct records_fit *fit)
{
    struct ty_calibration *out = fit->out;
    struct problem *problem = calloc(1, sizeof *problem);
    double *scratch = calloc(fit->n_rows + 1, sizeof *scratch);
    ty_status status = TY_ERR_NOMEM;
    out->constants = arena_get(fit->arena, N_CONSTANTS, sizeof *out->constants);
    out->points = arena_get(fit->arena, fit->n_rows + 1, sizeof *out->points);
    if (problem && scratch && out->constants && out->points) {
        problem->fit = fit;
        problem->weight = arena_get(fit->arena, fit->n_rows + 1, sizeof *problem->weight);
        status = problem->weight ? fit_linear_create(fit->n_rows, N_CONSTANTS, &problem->linear)
                                 : TY_ERR_NOMEM;
    }
    if (status == TY_OK) {
        for (uint32_t i = 0; i < fit->n_rows; i++)
            problem->weight[i] = 1.0;
        init_params(problem);
        lower_floor(problem);
        status = run(problem, scratch);
        fit_linear_free(&problem->linear);
    }
    free(scratch);
    free(problem);
    return status;
}
