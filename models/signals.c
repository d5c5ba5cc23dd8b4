/* SPDX-License-Identifier: MIT
 * What monitoring should show of a predicted job (trainyard_monitor.h has the equations). */
#include "include/trainyard_monitor.h"
#include "include/trainyard_storage.h"
#include "models/setting.h"

#include <math.h>
#include <string.h>

static double active_ratio(const struct ty_prediction *p)
{
    static const enum ty_part idle[] = {TY_PART_LAUNCH, TY_PART_PP, TY_PART_BUBBLE,
                                        TY_PART_INPUT_STALL, TY_PART_CHECKPOINT};
    double idle_s = 0.0;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        idle_s += p->breakdown_s[idle[i]];
    return 1.0 - idle_s / p->step_time_s;
}

void ty_signals_predict(const struct ty_prediction *p, const struct ty_cluster *cluster,
                        double out[TY_N_SIGNALS])
{
    for (int i = 0; i < TY_N_SIGNALS; i++)
        out[i] = (double)NAN;
    struct ty_cluster resolved;
    if (cluster_resolve(cluster, &resolved, NULL, NULL) != TY_OK)
        return;
    const double peak = gpu_peak_flop_per_s(&resolved.gpu, (enum ty_precision)p->plan.precision);
    out[TY_SIGNAL_STEP_TIME] = p->step_time_s;
    out[TY_SIGNAL_TOKENS_PER_S] = p->tokens_per_s;
    out[TY_SIGNAL_GPU_ACTIVE] = active_ratio(p);
    out[TY_SIGNAL_TENSOR_ACTIVE] = peak > 0.0 ? p->hardware_flop_per_s_per_gpu / peak : (double)NAN;
    out[TY_SIGNAL_CLOCK] = resolved.gpu.boost_hz * gpu_clock_ratio(&resolved);
    out[TY_SIGNAL_POWER] = p->outlay.power_w / p->plan.n_gpus;
    out[TY_SIGNAL_MEMORY] = p->peak_bytes;
    if (!p->storage || !p->storage->has_input)
        return;
    const struct ty_input_report *input = &p->storage->input;
    const double nodes = ceil((double)p->plan.n_gpus / resolved.gpus_per_node);
    out[TY_SIGNAL_CPU] = input->samples_per_s * input->decode_s / nodes;
    if (strcmp(input->can_tier, "nvme") == 0)
        out[TY_SIGNAL_STORAGE_READ] = input->samples_per_s * input->sample_bytes / nodes;
}
