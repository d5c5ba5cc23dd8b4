/* SPDX-License-Identifier: MIT */
#ifndef MODELS_POOL_SPREAD_H
#define MODELS_POOL_SPREAD_H

#include "include/trainyard_pool.h"

/* Sorts the values; all NAN when there are none. */
struct ty_pool_spread pool_spread(double *values, uint64_t n);

#endif
