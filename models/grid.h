/* SPDX-License-Identifier: MIT
 *
 * The rank grid (handbook 2.0): dense view rank = tp + t(cp + c(dp + D pp)), expert view
 * rank = etp + et(ep + e(edp + D_e pp)), or the pp/dp axes exchanged by plan.order. A group along
 * an axis = ranks that share every other coordinate; its stride is the product of faster axes.
 */
#ifndef MODELS_GRID_H
#define MODELS_GRID_H

#include "models/setting.h"

enum axis { AXIS_TP, AXIS_CP, AXIS_DP, AXIS_DPCP, AXIS_EP, AXIS_ETP, AXIS_EDP, AXIS_PP, N_AXES };

/* Link classes in order of distance. */
enum link_class { LINK_NONE, LINK_SCALEUP, LINK_NIC, LINK_SPINE, N_LINKS };

struct group_shape {
    uint32_t size, stride;
    uint32_t ranks_per_domain; /* ranks of one group in one scale-up domain, >= 1 */
    uint32_t n_domains;        /* domains one group spans */
    enum link_class link;      /* slowest class crossed; LINK_NONE when size = 1 */
    double nic_bytes_per_s;    /* NIC capacity one rank has for itself when all groups of this
                                  axis are active at once: min(1, nics/gpus) NICs */
    double spine_bytes_per_s;  /* the same across leaves (nic / oversubscription) */
};

/* plan: resolved. */
void grid_shape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                struct group_shape *out);
/* Shape of a part of an axis: its first `size` ranks (ZeRO groups, HSDP shards), or the ranks
 * `every` apart (replicas): stride * every. */
void grid_subshape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                   uint32_t size, uint32_t every, struct group_shape *out);
/* Rank of a dense coordinate. */
uint32_t grid_rank(const struct ty_plan *plan, uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp);
const char *axis_name(enum axis axis);
/* "nvlink", "xgmi", "pcie", "nic", "spine", "none". */
const char *link_name(const struct ty_cluster *cluster, enum link_class link);

#endif
