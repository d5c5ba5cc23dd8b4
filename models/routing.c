/* SPDX-License-Identifier: MIT
 * Expert load under random routing. */
#include "models/routing.h"

#include <math.h>

double routing_random_imbalance(double tokens, double top_k, double n_experts)
{
    const double mean = tokens * top_k / n_experts;
    return 1.0 + sqrt((1.0 - top_k / n_experts) / mean) * sqrt(2.0 * log(n_experts));
}
