/* SPDX-License-Identifier: MIT
 *
 * Load of the busiest expert over the mean when every token picks k of E experts uniformly at
 * random (handbook 1.6, UT-1.16): an upper estimate for routing without skew.
 *
 *   1 + sqrt((1 - k/E) / mu) sqrt(2 ln E),   mu = tokens k / E
 *
 * tokens > 0, 1 <= top_k <= n_experts. Real routers are more skewed.
 */
#ifndef MODELS_ROUTING_H
#define MODELS_ROUTING_H

double routing_random_imbalance(double tokens, double top_k, double n_experts);

#endif
