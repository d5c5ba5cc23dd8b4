/* SPDX-License-Identifier: MIT
 *
 * Kernel times: a GEMM is waves of tiles or memory traffic, whichever is slower; the grouped GEMM
 * of experts pays both; attention follows its measured rate curve; the rest is bandwidth with a
 * ramp, (bytes + b0) / BW.
 *
 *   P      = peak * sustained ratio * clock                         flop/s
 *   t_tile = min over tiles  W SMs 2 Tm Tn (K + k0) / (P e)         s
 *   x      = ceil(M/Tm) ceil(N/Tn) groups / SMs,  W = max(x + q (ceil(x) - x), q + (1-q) x)
 *   t_core = 2 M N (K + k0) groups / P                               s, on a processor core
 *   t      = max(t_tile or t_core, bytes / BW)
 *
 * Source: ACCURACY 1.1, 1.2; ACCURACY-2 2.1, 2.5; handbook 4.2 for tiles and waves. */
#include "models/measured.h"

#include <math.h>

/* Output tiles a library chooses from, with their rate relative to the largest one. The ratios
 * are those of the fit in ACCURACY 1.1. */
static const struct tile {
    double m, n, rate_ratio;
} tiles[] = {{256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.82}, {64, 64, 0.68}};
enum { N_TILES = sizeof tiles / sizeof tiles[0] };

/* Attention rate falls below this head size; source: ACCURACY 1.2. */
static const double HEAD_DIM_FULL = 128.0;
static const double ATTENTION_TILE = 128.0; /* queries per block, handbook 4.3 */

/* Norm in which compute and memory time of a grouped wgrad add; source: ACCURACY-2 2.1. */
static const double GROUPED_WGRAD_NORM = 1.7;
/* Inner size at which experts are half way to the dense rate; source: ACCURACY-2 2.1. */
static const double WIDE_EXPERT = 8192.0;

/* Further loss of a misaligned batched GEMM when a size is no multiple of 4 elements (8 B) either;
 * source: ACCURACY-2 2.5, a guess. */
static const double MISALIGNED_4_RATIO = 0.6;

static bool low_precision(enum ty_precision precision)
{
    return precision_bytes(precision) < 2.0;
}

void kernel_gemm(struct kernel *out, const char *name, enum ty_precision precision, double m,
                 double n, double k)
{
    const double in_bytes = precision_bytes(precision);
    const double out_bytes = fmax(in_bytes, 2.0);
    const double flop = 2.0 * m * n * k;
    *out = (struct kernel){.op = KERNEL_GEMM,
                           .part = TY_PART_GEMM,
                           .name = name,
                           .precision = precision,
                           .m = m,
                           .n = n,
                           .k = k,
                           .groups = 1.0,
                           .flop_model = flop,
                           .flop_hw = flop,
                           .bytes = in_bytes * (m * k + k * n) + out_bytes * m * n};
}

void kernel_repeat(struct kernel *kernel, enum kernel_op op, double groups)
{
    kernel->op = op;
    kernel->groups = groups;
    kernel->flop_model *= groups;
    kernel->flop_hw *= groups;
    kernel->bytes *= groups;
}

void kernel_accumulate(struct kernel *kernel, double bytes_per_element)
{
    kernel->accumulate = true;
    kernel->bytes += kernel->groups * kernel->m * kernel->n * 2.0 * bytes_per_element;
}

void kernel_bytes(struct kernel *out, const char *name, double bytes)
{
    *out = (struct kernel){
        .op = KERNEL_BYTES, .part = TY_PART_MEMORY_BOUND, .name = name, .bytes = bytes};
}

static double gemm_ratio(const struct ty_profile *profile, enum ty_precision precision)
{
    switch (precision) {
    case TY_FP8_PRECISION:
    case TY_MXFP8_PRECISION:
        return profile->gemm_ratio_8;
    case TY_NVFP4_PRECISION:
        return profile->gemm_ratio_4;
    default: /* tf32 and fp32 reach their own peaks as 16-bit does: ACCURACY 1.1 */
        return profile->gemm_ratio_16;
    }
}

static double clock_ratio(const struct setting *setting)
{
    return setting->profile.clock_ratio * gpu_clock_ratio(&setting->cluster);
}

double kernel_sustained_flop_per_s(const struct setting *setting, enum ty_precision precision)
{
    return gpu_peak_flop_per_s(&setting->cluster.gpu, precision) *
           gemm_ratio(&setting->profile, precision) * clock_ratio(setting);
}

double kernel_mem_bytes_per_s(const struct setting *setting)
{
    return setting->cluster.gpu.mem_bytes_per_s * setting->profile.mem_ratio;
}

double kernel_tile_ratio(double m, double n, double tile_m, double tile_n, uint32_t sms)
{
    const double n_tiles = ceil(m / tile_m) * ceil(n / tile_n);
    const double waves = ceil(n_tiles / sms);
    return m * n / (waves * sms * tile_m * tile_n);
}

double kernel_attention_pairs(double seq, double window, bool chunked)
{
    const double full = 0.5 * seq * seq;
    if (window <= 0.0 || window >= seq)
        return full;
    if (chunked) {
        const double n_chunks = floor(seq / window), rest = seq - n_chunks * window;
        return 0.5 * (n_chunks * window * window + rest * rest);
    }
    return fmin(full, window * seq - 0.5 * window * (window - 1.0));
}

/* Waves that a launch of `x` machine-fulls of blocks takes: the idle part of the last wave is lost
 * to the share q, and even less than one wave costs at least q of one. */
static double waves_taken(double x, double q)
{
    return fmax(x + q * (ceil(x) - x), q + (1.0 - q) * x);
}

/* Time of the tiles alone. A processor core (one SM) takes tiles of a few elements one after the
 * other: no waves, and none that hardly fits. */
static double gemm_compute_s(const struct setting *setting, const struct kernel *kernel)
{
    const struct ty_profile *profile = &setting->profile;
    const double all = setting->cluster.gpu.sms, sms = all - kernel->sms_taken;
    const double lost_k = profile->gemm_k0 * (low_precision(kernel->precision) ? 2.0 : 1.0);
    double best = INFINITY;
    if (all <= 1.0)
        return 2.0 * kernel->m * kernel->n * (kernel->k + lost_k) * kernel->groups /
               kernel_sustained_flop_per_s(setting, kernel->precision);
    for (int i = 0; i < N_TILES; i++) {
        const struct tile *tile = &tiles[i];
        const double x =
            ceil(kernel->m / tile->m) * ceil(kernel->n / tile->n) * kernel->groups / sms;
        const double flop = waves_taken(x, profile->gemm_wave_loss) * sms * tile->m * tile->n *
                            2.0 * (kernel->k + lost_k);
        best = fmin(best, flop / tile->rate_ratio);
    }
    return best / (kernel_sustained_flop_per_s(setting, kernel->precision) * (sms / all));
}

static double alignment_ratio(const struct ty_profile *profile, const struct kernel *kernel)
{
    const double odd_8 = fmax(fmod(kernel->n, 8.0), fmod(kernel->k, 8.0));
    const double odd_4 = fmax(fmod(kernel->n, 4.0), fmod(kernel->k, 4.0));
    if (kernel->groups <= 1.0 || odd_8 <= 0.0)
        return 1.0;
    return profile->misaligned_ratio * (odd_4 > 0.0 ? MISALIGNED_4_RATIO : 1.0);
}

static double gemm_s(const struct setting *setting, const struct kernel *kernel)
{
    const double compute_s = gemm_compute_s(setting, kernel);
    const double memory_s = kernel->bytes / kernel_mem_bytes_per_s(setting);
    return fmax(compute_s, memory_s) / alignment_ratio(&setting->profile, kernel);
}

double kernel_expert_narrowness(double inner)
{
    const double width = inner / WIDE_EXPERT;
    return 1.0 / (1.0 + width * width);
}

/* Experts: compute and memory time add (many small GEMMs leave neither pipe full), in a softer
 * norm for wgrad; narrow experts pay the grouped ratio, wide ones tend to the dense rate. */
static double grouped_gemm_s(const struct setting *setting, const struct kernel *kernel)
{
    const double compute_s = gemm_compute_s(setting, kernel);
    const double memory_s = kernel->bytes / kernel_mem_bytes_per_s(setting);
    const double p = kernel->accumulate ? GROUPED_WGRAD_NORM : 1.0;
    const double ratio =
        pow(setting->profile.grouped_gemm_ratio, kernel_expert_narrowness(kernel->inner));
    return pow(pow(compute_s, p) + pow(memory_s, p), 1.0 / p) / ratio;
}

/* rate = F min(1, d/128)^power s/(s + h) occupancy;  occupancy = x / (x + q/2 (ceil(x) - x)) */
static double attention_s(const struct setting *setting, const struct kernel *kernel)
{
    const struct ty_profile *profile = &setting->profile;
    const double all = setting->cluster.gpu.sms, sms = all - kernel->sms_taken;
    const double x = kernel->batch_heads * ceil(kernel->queries / ATTENTION_TILE) / sms;
    const double idle = 0.5 * profile->gemm_wave_loss * (ceil(x) - x);
    const double rate_flop_per_s =
        profile->attention_flop_per_s * clock_ratio(setting) *
        pow(fmin(1.0, kernel->head_dim / HEAD_DIM_FULL), profile->attention_head_power) *
        kernel->seq / (kernel->seq + profile->attention_half_seq) * x / (x + idle) * (sms / all);
    const double loss = kernel->backward ? profile->attention_backward : 1.0;
    return fmax(kernel->flop_hw * loss / rate_flop_per_s,
                kernel->bytes / kernel_mem_bytes_per_s(setting));
}

double kernel_form_s(const struct setting *setting, const struct kernel *kernel)
{
    const double slower = kernel->backward ? setting->profile.gemm_backward : 1.0;
    double time_s = 0.0;
    switch (kernel->op) {
    case KERNEL_GEMM:
        time_s = gemm_s(setting, kernel) * slower;
        break;
    case KERNEL_GROUPED_GEMM:
        time_s = grouped_gemm_s(setting, kernel) * slower;
        break;
    case KERNEL_ATTENTION:
        time_s = attention_s(setting, kernel);
        break;
    case KERNEL_BYTES:
        time_s =
            (kernel->bytes + setting->profile.mem_half_bytes) / kernel_mem_bytes_per_s(setting);
        break;
    }
    return fmax(time_s, setting->profile.kernel_floor_s);
}

static bool idle(const struct kernel *kernel)
{
    return kernel->flop_hw <= 0.0 && kernel->bytes <= 0.0;
}

double kernel_time_s(const struct setting *setting, const struct kernel *kernel)
{
    if (idle(kernel))
        return 0.0;
    double time_s = kernel_form_s(setting, kernel);
    measured_kernel_s(setting, kernel, &time_s);
    return setting->profile.site_compute_ratio * setting->profile.compute_ratio * time_s;
}

enum ty_work kernel_work(const struct kernel *kernel)
{
    switch (kernel->op) {
    case KERNEL_ATTENTION:
        return TY_WORK_ATTENTION;
    case KERNEL_BYTES:
        return TY_WORK_MEMORY;
    default:
        return TY_WORK_GEMM;
    }
}

void origins_add(struct origins *sum, const struct origins *more, double times)
{
    for (int work = 0; work < TY_N_WORKS; work++)
        for (int origin = 0; origin < TY_N_ORIGINS; origin++)
            sum->time_s[work][origin] += times * more->time_s[work][origin];
}

const char *ty_origin_name(enum ty_origin origin)
{
    static const char *const names[TY_N_ORIGINS] = {"measured", "interpolated", "fitted", "preset"};
    return (unsigned)origin < TY_N_ORIGINS ? names[origin] : "";
}

const char *ty_work_name(enum ty_work work)
{
    static const char *const names[TY_N_WORKS] = {"gemm", "attention", "memory", "collectives"};
    return (unsigned)work < TY_N_WORKS ? names[work] : "";
}

enum ty_origin kernel_origin(const struct setting *setting, const struct kernel *kernel)
{
    double time_s = 1.0;
    return measured_kernel_s(setting, kernel, &time_s);
}
