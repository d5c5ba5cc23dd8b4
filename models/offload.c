/* SPDX-License-Identifier: MIT
 *
 *   t_update = N (grad + param bytes) / BW_pcie + 30 B N G / BW_dram
 *
 * N: parameters of this rank; G: GPUs whose CPU updates share one host's memory (handbook 3.4).
 */
#include "models/offload.h"

#include <math.h>

static const double LINK_RATIO = 0.88;       /* 55.4 of 63 GB/s measured: handbook 3.4 */
static const double CPU_UPDATE_BYTES = 30.0; /* memory traffic of Adam per parameter: 3.4 */

bool offload_activations(const struct ty_plan *plan)
{
    return plan->offload == TY_OFFLOAD_ACTIVATIONS || plan->offload == TY_OFFLOAD_BOTH;
}

bool offload_states(const struct ty_plan *plan)
{
    return plan->offload == TY_OFFLOAD_STATES;
}

bool offload_optimizer(const struct ty_plan *plan)
{
    return plan->offload == TY_OFFLOAD_OPTIMIZER || plan->offload == TY_OFFLOAD_BOTH ||
           offload_states(plan);
}

bool offload_layer(const struct ty_plan *plan, uint32_t layer_of_stage)
{
    return offload_activations(plan) &&
           (plan->offload_layers == 0 || layer_of_stage < plan->offload_layers);
}

double offload_gpus_per_host(const struct setting *setting, const struct ty_plan *plan)
{
    return fmin(setting->cluster.gpus_per_node, plan->n_gpus);
}

double offload_bytes_per_s(const struct setting *setting)
{
    const struct ty_gpu *gpu = &setting->cluster.gpu;
    return LINK_RATIO * fmax(gpu->pcie_bytes_per_s, gpu->c2c_bytes_per_s);
}

double offload_optimizer_s(const struct setting *setting, const struct ty_plan *plan,
                           double n_params, double grad_bytes, double param_bytes)
{
    const double copied_bytes = n_params * (grad_bytes + param_bytes);
    const double host_bytes = CPU_UPDATE_BYTES * n_params * offload_gpus_per_host(setting, plan);
    return copied_bytes / offload_bytes_per_s(setting) +
           host_bytes / setting->cluster.host_bytes_per_s;
}
