/* SPDX-License-Identifier: MIT
 *
 * Offload to host memory: what a plan moves there, and how fast (handbook 3.4). Copies run on two
 * streams of their own, one each way; they do not slow kernels and do not meet network traffic,
 * although NICs may hang on the same PCIe switch.
 */
#ifndef MODELS_OFFLOAD_H
#define MODELS_OFFLOAD_H

#include "models/setting.h"

bool offload_activations(const struct ty_plan *plan);
bool offload_optimizer(const struct ty_plan *plan); /* its states and its update */
bool offload_states(const struct ty_plan *plan);    /* parameters and gradients too */

/* Whether the activations of the n-th layer of a stage leave the GPU. */
bool offload_layer(const struct ty_plan *plan, uint32_t layer_of_stage);

/* GPUs of the job that share the memory of one host. */
double offload_gpus_per_host(const struct setting *setting, const struct ty_plan *plan);

/* One GPU to its host, one direction. */
double offload_bytes_per_s(const struct setting *setting);

/* Gradients down, update on the CPU, parameters up: nothing of it overlaps.
 * n_params: parameters this rank updates; grad_bytes, param_bytes: of one. */
double offload_optimizer_s(const struct setting *setting, const struct ty_plan *plan,
                           double n_params, double grad_bytes, double param_bytes);

#endif
