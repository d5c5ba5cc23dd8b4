/* SPDX-License-Identifier: MIT
 *
 * The constants of the fit: level, bounds, prior and its standard deviation in the logarithm.
 * Priors: microbenchmarks less an allowance for the sustained clock, or the value a mechanism has
 * when nothing is known (1, 0.5); sources in ACCURACY section 3, ACCURACY-2 section 4. Of experts:
 * grouped GEMMs as measured against the sum form (0.91 to 1.11, ACCURACY-2 2.1), DeepEP between
 * nodes (43 to 58 of 50 GB/s, data/micro), permutation (half of the bandwidth on B200, handbook
 * 4.4), and 4 times the launches of a dense layer (dropless_host). Rates that microbenchmarks give
 * directly (attention, NICs) are held to 0.1; networks differ most from site to site.
 */
#include "calibrate/evidence.h"
#include "calibrate/fit.h"
#include "models/fields.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which rows can tell ------------------------------------------------------------------ */

static bool in_fp8(const struct ty_run *run)
{
    return run->plan.precision == TY_FP8_PRECISION || run->plan.precision == TY_MXFP8_PRECISION;
}

static bool in_fp4(const struct ty_run *run)
{
    return run->plan.precision == TY_NVFP4_PRECISION;
}

static bool in_low(const struct ty_run *run)
{
    return in_fp8(run) || in_fp4(run);
}

static bool with_experts(const struct ty_run *run)
{
    for (uint32_t kind = 0; kind < run->model.n_kinds; kind++)
        if (run->model.kinds[kind].mlp == TY_MLP_MOE)
            return true;
    return false;
}

static bool with_dropless(const struct ty_run *run)
{
    return with_experts(run) && run->plan.cuda_graph != TY_ON;
}

static bool with_lora(const struct ty_run *run)
{
    return run->model.lora_rank > 0;
}

static bool with_tp(const struct ty_run *run)
{
    return run->plan.tp > 1;
}

static bool with_pp(const struct ty_run *run)
{
    return run->plan.pp > 1;
}

static bool with_dp(const struct ty_run *run)
{
    return run->plan.n_gpus > run->plan.tp * run->plan.pp;
}

static bool with_fa2(const struct ty_run *run)
{
    return run->profile.flash_version == 1 || run->profile.flash_version == 2;
}

static bool with_fa1(const struct ty_run *run)
{
    return run->profile.flash_version == 1;
}

static bool with_fast_flash(const struct ty_run *run)
{
    return !with_fa2(run) || strcmp(run->cluster.gpu.arch, "ampere") == 0;
}

static bool with_small_heads(const struct ty_run *run)
{
    return run->model.kinds[0].head_dim < 128;
}

static bool with_compiler(const struct ty_run *run)
{
    return run->plan.compile == TY_ON;
}

static bool with_packing(const struct ty_run *run)
{
    return run->plan.packed == TY_ON;
}

static bool across_domains(const struct ty_run *run)
{
    return run->plan.n_gpus > run->cluster.scaleup_domain;
}

static bool with_dp_network(const struct ty_run *run)
{
    return with_dp(run) && across_domains(run);
}

/* ---- tables ------------------------------------------------------------------------------- */

struct rule {
    const char *path;
    enum fit_level level;
    double prior, sd_log, min, max; /* prior NAN: only for the names below */
    bool (*informs)(const struct ty_run *run);
};

/* clang-format off */
static const struct rule rules[] = {
    {"device.gemm_ratio_16", LEVEL_ARCH, NAN, 0.10, 0.3, 0.95, NULL},
    {"device.gemm_ratio_8", LEVEL_ARCH, NAN, 0.15, 0.2, 0.9, in_fp8},
    {"device.gemm_ratio_4", LEVEL_ARCH, NAN, 0.25, 0.1, 0.8, in_fp4},
    {"device.attention_ratio", LEVEL_ARCH, NAN, 0.10, 0.1, 0.95, with_fast_flash},
    {"device.attention_fa2_ratio", LEVEL_ARCH, NAN, 0.20, 0.1, 0.95, with_fa2},
    {"device.attention_fa1_ratio", LEVEL_ALL, 0.55, 0.20, 0.2, 1.0, with_fa1},
    {"device.clock_ratio", LEVEL_DEVICE, NAN, 0.04, 0.8, 1.3, NULL},
    {"device.gemm_k0", LEVEL_ALL, 150.0, 0.6, 0.5, 1500.0, NULL},
    {"device.gemm_wave_loss", LEVEL_ALL, 0.5, 0.5, 0.02, 1.0, NULL},
    {"device.gemm_backward", LEVEL_ALL, 1.05, 0.05, 0.9, 1.4, NULL},
    {"device.grouped_gemm_ratio", LEVEL_ALL, 0.95, 0.08, 0.3, 1.3, with_experts},
    {"device.attention_head_power", LEVEL_ALL, 0.25, 0.5, 0.02, 1.0, with_small_heads},
    {"device.packed_ratio", LEVEL_ALL, 0.35, 0.4, 0.03, 1.0, with_packing},
    {"device.attention_backward", LEVEL_ALL, 1.25, 0.15, 0.9, 2.2, NULL},
    {"device.misaligned_ratio", LEVEL_ALL, 0.25, 0.4, 0.05, 1.0, NULL},
    {"device.mem_ratio", LEVEL_ALL, 0.82, 0.08, 0.5, 0.95, NULL},
    {"fabric.alltoall_ratio", LEVEL_ALL, 0.85, 0.15, 0.1, 1.2, with_experts},
    {"fabric.alltoall_nic_ratio", LEVEL_ALL, 1.0, 0.2, 0.2, 1.4, with_experts},
    {"fabric.collective_latency", LEVEL_ARCH, NAN, 0.4, 3e-6, 2e-4, NULL},
    {"fabric.ramp_ratio", LEVEL_ALL, 0.5, 0.5, 0.05, 2.0, NULL},
    {"fabric.nic_ratio", LEVEL_FABRIC, NAN, 0.1, 0.1, 1.0, across_domains},
    {"software.elementwise_ratio", LEVEL_STACK, NAN, 0.35, 0.5, 5.0, NULL},
    {"software.compiled_ratio", LEVEL_ALL, 1.2, 0.2, 0.5, 5.0, with_compiler},
    {"software.cast_ratio", LEVEL_ALL, 1.0, 0.5, 0.1, 4.0, in_low},
    {"software.permute_ratio", LEVEL_ALL, 1.5, 0.4, 0.2, 5.0, with_experts},
    {"software.lora_ratio", LEVEL_ALL, 1.0, 0.4, 0.1, 5.0, with_lora},
    {"software.compute_ratio", LEVEL_RELEASE, 1.0, 0.07, 0.7, 1.5, NULL},
    {"software.moe_time_ratio", LEVEL_RELEASE, 1.0, 0.15, 0.5, 2.0, with_experts},
    {"software.host_layer", LEVEL_STACK, NAN, 0.5, 10e-6, 2.5e-3, NULL},
    {"software.host_layer", LEVEL_RELEASE, NAN, 0.5, 10e-6, 5e-3, NULL},
    {"software.host_tp_growth", LEVEL_ALL, 0.05, 0.7, 0.005, 0.6, with_tp},
    {"software.dropless_host", LEVEL_ALL, 1e-3, 0.5, 1e-5, 1e-2, with_dropless},
    {"software.tp_overlap_exposed", LEVEL_STACK, NAN, 0.3, 0.05, 1.0, with_tp},
    {"software.tp_time_ratio", LEVEL_STACK, NAN, 0.35, 0.05, 1.5, with_tp},
    {"software.dp_time_ratio", LEVEL_STACK, NAN, 0.4, 0.2, 5.0, with_dp},
    {"software.dp_network_ratio", LEVEL_STACK, NAN, 0.4, 0.3, 8.0, with_dp_network},
    {"software.pp_time_ratio", LEVEL_ALL, 0.8, 0.6, 0.05, 3.0, with_pp},
    {"software.dp_slow_compute", LEVEL_STACK, NAN, 0.6, 0.01, 0.9, with_dp},
    {"software.step_fixed", LEVEL_STACK, NAN, 0.8, 5e-4, 0.4, NULL},
    {"software.micro_fixed", LEVEL_ALL, 0.001, 0.8, 2e-5, 0.02, NULL},
    {"software.host_micro", LEVEL_STACK, NAN, 0.6, 1e-4, 0.05, NULL},
    {"software.jitter_ratio", LEVEL_ALL, 0.003, 0.7, 1e-4, 0.03, NULL},
    {"site.compute_ratio", LEVEL_SITE, 1.0, 0.07, 0.6, 1.7, NULL},
    {"site.comm_ratio", LEVEL_SITE, 1.0, 0.6, 0.2, 5.0, NULL},
    {"site.host_ratio", LEVEL_SITE, 1.0, 0.3, 0.2, 5.0, NULL},
};

static const struct prior {
    const char *path, *name;
    double value;
} priors[] = {
    {"device.gemm_ratio_16", "volta", 0.72},
    {"device.gemm_ratio_16", "ampere", 0.80},
    {"device.gemm_ratio_16", "hopper", 0.72},
    {"device.gemm_ratio_16", "blackwell", 0.62},
    {"device.gemm_ratio_16", "blackwell-ultra", 0.72},
    {"device.gemm_ratio_16", "cdna3", 0.48},
    {"device.gemm_ratio_16", "cdna4", 0.62},
    {"device.gemm_ratio_8", "hopper", 0.64},
    {"device.gemm_ratio_8", "blackwell", 0.68},
    {"device.gemm_ratio_8", "blackwell-ultra", 0.70},
    {"device.gemm_ratio_8", "cdna3", 0.42},
    {"device.gemm_ratio_8", "cdna4", 0.55},
    {"device.gemm_ratio_4", "blackwell", 0.5},
    {"device.gemm_ratio_4", "blackwell-ultra", 0.5},
    {"device.attention_ratio", "volta", 0.48},
    {"device.attention_ratio", "ampere", 0.641},
    {"device.attention_ratio", "hopper", 0.647},
    {"device.attention_ratio", "blackwell", 0.57},
    {"device.attention_ratio", "blackwell-ultra", 0.655},
    {"device.attention_ratio", "cdna3", 0.306},
    {"device.attention_ratio", "cdna4", 0.39},
    {"device.attention_fa2_ratio", "hopper", 0.384},
    {"device.attention_fa2_ratio", "blackwell", 0.34},
    {"device.attention_fa2_ratio", "blackwell-ultra", 0.39},
    {"device.clock_ratio", "gb200", 1.0}, /* of the data sheet's peak, against B200's */
    {"device.clock_ratio", "gb300", 1.0},
    {"device.clock_ratio", "h200-sxm", 1.0},
    {"device.clock_ratio", "mi325x", 1.174}, /* 784.9 of 668.4 Tflop/s, micro/gemm.csv */
    {"fabric.collective_latency", "volta", 25e-6},
    {"fabric.collective_latency", "ampere", 34e-6},
    {"fabric.collective_latency", "hopper", 17e-6},
    {"fabric.collective_latency", "blackwell", 22e-6},
    {"fabric.collective_latency", "blackwell-ultra", 22e-6},
    {"fabric.collective_latency", "cdna3", 30e-6},
    {"fabric.collective_latency", "cdna4", 30e-6},
    {"fabric.nic_ratio", "infiniband", 0.85},
    {"fabric.nic_ratio", "ethernet", 0.75},
    {"fabric.nic_ratio", "omnipath", 0.6},
    {"software.elementwise_ratio", "megatron-deepspeed", 2.0},
    {"software.elementwise_ratio", "megatron-lm-2021", 1.7},
    {"software.elementwise_ratio", "megatron-core", 1.0},
    {"software.elementwise_ratio", "mlperf", 0.9},
    {"software.elementwise_ratio", "rocm", 0.9},
    {"software.elementwise_ratio", "fsdp", 1.6},
    {"software.elementwise_ratio", "torchtitan", 3.2},
    {"software.elementwise_ratio", "jax", 1.0},
    {"software.elementwise_ratio", "ddp", 1.8},
    {"software.host_layer", "megatron-deepspeed", 450e-6},
    {"software.host_layer", "megatron-lm-2021", 350e-6},
    {"software.host_layer", "megatron-core", 250e-6},
    {"software.host_layer", "mlperf", 60e-6},
    {"software.host_layer", "rocm", 60e-6},
    {"software.host_layer", "fsdp", 350e-6},
    {"software.host_layer", "torchtitan", 150e-6},
    {"software.host_layer", "jax", 30e-6},
    {"software.host_layer", "ddp", 350e-6},
    {"software.host_layer", "mlperf@v4.0-lora", 2.4e-3}, /* eager */
    {"software.tp_overlap_exposed", "megatron-core", 0.4},
    {"software.tp_overlap_exposed", "mlperf", 0.4},
    {"software.tp_overlap_exposed", "rocm", 0.4},
    {"software.tp_overlap_exposed", "torchtitan", 0.65},
    {"software.tp_time_ratio", "megatron-deepspeed", 1.0},
    {"software.tp_time_ratio", "megatron-lm-2021", 1.0},
    {"software.tp_time_ratio", "megatron-core", 0.7},
    {"software.tp_time_ratio", "mlperf", 0.7},
    {"software.tp_time_ratio", "rocm", 0.9},
    {"software.tp_time_ratio", "torchtitan", 0.9},
    {"software.tp_time_ratio", "jax", 0.6},
    {"software.dp_time_ratio", "megatron-deepspeed", 1.2},
    {"software.dp_time_ratio", "megatron-lm-2021", 1.2},
    {"software.dp_time_ratio", "megatron-core", 1.0},
    {"software.dp_time_ratio", "mlperf", 1.0},
    {"software.dp_time_ratio", "rocm", 1.0},
    {"software.dp_time_ratio", "fsdp", 1.0},
    {"software.dp_time_ratio", "torchtitan", 1.0},
    {"software.dp_time_ratio", "jax", 1.0},
    {"software.dp_time_ratio", "ddp", 1.0},
    /* one bucket after the other, each waited for; the other stacks keep several in flight */
    {"software.dp_network_ratio", "megatron-deepspeed", 1.5},
    {"software.dp_slow_compute", "megatron-core", 0.2},
    {"software.dp_slow_compute", "mlperf", 0.2},
    {"software.dp_slow_compute", "rocm", 0.2},
    {"software.dp_slow_compute", "fsdp", 0.2},
    {"software.dp_slow_compute", "torchtitan", 0.2},
    {"software.dp_slow_compute", "jax", 0.2},
    {"software.dp_slow_compute", "ddp", 0.2},
    /* some 250 launches of loss, embedding and masks, data to every rank, the pipeline engine */
    {"software.host_micro", "megatron-deepspeed", 5e-3},
    {"software.step_fixed", "megatron-deepspeed", 15e-3},
    {"software.step_fixed", "megatron-lm-2021", 15e-3},
    {"software.step_fixed", "megatron-core", 15e-3},
    {"software.step_fixed", "mlperf", 15e-3},
    {"software.step_fixed", "rocm", 15e-3},
    {"software.step_fixed", "fsdp", 15e-3},
    {"software.step_fixed", "torchtitan", 15e-3},
    {"software.step_fixed", "jax", 15e-3},
    {"software.step_fixed", "ddp", 15e-3},
};
/* clang-format on */
enum { N_RULES = sizeof rules / sizeof *rules, N_PRIORS = sizeof priors / sizeof *priors };

static double prior_of(const struct rule *rule, const char *name)
{
    for (int i = 0; i < N_PRIORS; i++)
        if (strcmp(priors[i].path, rule->path) == 0 && strcmp(priors[i].name, name) == 0)
            return priors[i].value;
    return rule->prior;
}

/* ---- levels ------------------------------------------------------------------------------- */

/* Name of a row at a level; "" where it has none. */
static void level_name(enum fit_level level, const struct ty_run *run, char *out, size_t bytes)
{
    switch (level) {
    case LEVEL_ALL:
        text_format(out, bytes, "all");
        break;
    case LEVEL_ARCH:
        text_format(out, bytes, "%s", run->cluster.gpu.arch);
        break;
    case LEVEL_DEVICE:
        text_format(out, bytes, "%s", run->cluster.gpu.name);
        break;
    case LEVEL_FABRIC:
        text_format(out, bytes, "%s", evidence_fabric(&run->cluster));
        break;
    case LEVEL_STACK:
        text_format(out, bytes, "%s", run->row.stack);
        break;
    case LEVEL_RELEASE:
        if (*run->row.release)
            text_format(out, bytes, "%s@%s", run->row.stack, run->row.release);
        else
            *out = '\0';
        break;
    case LEVEL_SITE:
        text_format(out, bytes, "%s", run->row.site);
        break;
    }
}

const char *fit_folder(enum fit_level level)
{
    static const char *const folders[] = {
        [LEVEL_ALL] = "profiles",    [LEVEL_ARCH] = "profiles", [LEVEL_DEVICE] = "profiles",
        [LEVEL_FABRIC] = "profiles", [LEVEL_STACK] = "stacks",  [LEVEL_RELEASE] = "stacks",
        [LEVEL_SITE] = "sites"};
    return folders[level];
}

void fit_file(const struct fit_param *param, char *out, size_t bytes)
{
    static const char *const forms[] = {
        [LEVEL_ALL] = "common%.0s",   [LEVEL_ARCH] = "preset-%s", [LEVEL_DEVICE] = "preset-%s",
        [LEVEL_FABRIC] = "fabric-%s", [LEVEL_STACK] = "%s",       [LEVEL_RELEASE] = "%s",
        [LEVEL_SITE] = "%s"};
    text_format(out, bytes, forms[param->level], param->name);
}

/* ---- constants ---------------------------------------------------------------------------- */

bool fit_informs(const struct fit_param *param, const struct ty_run *run)
{
    char name[sizeof param->name];
    level_name(param->level, run, name, sizeof name);
    return strcmp(name, param->name) == 0 && (!param->informs || param->informs(run));
}

double fit_value(const struct fit_param *param, double z)
{
    return fmin(param->max, fmax(param->min, param->prior * exp(z)));
}

void fit_set(const struct fit_params *params, const double *z, const struct ty_run *run,
             struct ty_profile *profile)
{
    for (uint32_t j = 0; j < params->n; j++) {
        const struct fit_param *param = &params->param[j];
        if (fit_informs(param, run))
            *(double *)(void *)((char *)profile + param->field->offset) = fit_value(param, z[j]);
    }
}

static const struct ty_field *field_of(const char *path)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n);
    return fields_find(fields, n, path);
}

static bool known(const struct fit_params *params, const struct rule *rule, const char *name)
{
    for (uint32_t j = 0; j < params->n; j++)
        if (strcmp(params->param[j].field->path, rule->path) == 0 &&
            strcmp(params->param[j].name, name) == 0)
            return true;
    return false;
}

/* Adds the constants that this row informs and no row before it did. */
static ty_status add_row(const struct ty_run *run, const struct rule *rule,
                         struct fit_params *params)
{
    struct fit_param param = {.field = field_of(rule->path),
                              .level = rule->level,
                              .sd_log = rule->sd_log,
                              .min = rule->min,
                              .max = rule->max,
                              .informs = rule->informs};
    level_name(rule->level, run, param.name, sizeof param.name);
    param.prior = prior_of(rule, param.name);
    if (!*param.name || isnan(param.prior) || !fit_informs(&param, run) ||
        known(params, rule, param.name))
        return TY_OK;
    struct fit_param *grown = realloc(params->param, (params->n + 1) * sizeof param);
    if (!grown)
        return TY_ERR_NOMEM;
    grown[params->n++] = param;
    params->param = grown;
    return TY_OK;
}

ty_status fit_params_of(const struct fit_rows *rows, struct fit_params *out)
{
    *out = (struct fit_params){0};
    for (int i = 0; i < N_RULES; i++)
        for (uint32_t row = 0; row < rows->n; row++) {
            const ty_status status = add_row(&rows->run[row], &rules[i], out);
            if (status != TY_OK)
                return status;
        }
    return TY_OK;
}
