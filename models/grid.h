/* SPDX-License-Identifier: MIT
 *
 * The rank grid (handbook 2.0): dense view rank = tp + t(cp + c(dp + D pp)), expert view
 * rank = etp + et(ep + e(edp + D_e pp)), or the slower axes in another sequence by plan.order. A
 * group along an axis = ranks that share every other coordinate; its stride is the product of
 * faster axes. Node and scale-up domain of a rank: rank / GPUs per node, rank / domain.
 */
#ifndef MODELS_GRID_H
#define MODELS_GRID_H

#include "models/setting.h"

enum axis { AXIS_TP, AXIS_CP, AXIS_DP, AXIS_DPCP, AXIS_EP, AXIS_ETP, AXIS_EDP, AXIS_PP, N_AXES };

/* Link classes in order of distance. */
enum link_class { LINK_NONE, LINK_SCALEUP, LINK_NIC, LINK_SPINE, N_LINKS };

struct group_shape {
    uint32_t size, stride;     /* stride: distance of the first two ranks; 1 for a group of 1 */
    uint32_t ranks_per_domain; /* fewest ranks the worst-placed group has in one domain, >= 1 */
    uint32_t n_domains;        /* domains the worst-placed group spans */
    enum link_class link;      /* slowest class crossed; LINK_NONE when size = 1 */
    double nic_bytes_per_s;    /* NIC capacity one rank has for itself when all GPUs of its node
                                  send at once: nics/gpus NICs, less or more than one */
    double spine_bytes_per_s;  /* the same across leaves (nic / oversubscription) */
    enum axis axis;            /* the group: `size` ranks of this axis, `every` apart on it */
    uint32_t every;
};

/* The ranks of an axis: x * stride[0] + y * stride[1], x < size[0], y < size[1], fastest first. */
struct grid_line {
    uint64_t size[2], stride[2];
};

/* Axes of the dense view (cp, dp, pp after tp) or the expert view (ep, edp, pp after etp), fastest
 * first. false: the text is not a sequence of tp, cp, ep, dp, pp that starts with tp. */
bool grid_order(const char *order, bool expert, enum axis axes[4]);
/* Distance of neighbours along a plain axis (not AXIS_DPCP); 0 when the order is unreadable. */
uint64_t grid_stride(const struct ty_plan *plan, enum axis axis);
/* Are the ranks of a pipeline stage the same in both views? */
bool grid_stages_agree(const struct ty_plan *plan);

/* plan: resolved. */
void grid_shape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                struct group_shape *out);
/* Shape of a part of an axis: its first `size` ranks (ZeRO groups, HSDP shards), or the ranks
 * `every` apart (replicas): stride * every. */
void grid_subshape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                   uint32_t size, uint32_t every, struct group_shape *out);
struct grid_line grid_along(const struct ty_plan *plan, enum axis axis);
/* Place of a rank on its line, and the rank at a place of the line that `rank` is on. */
uint32_t grid_place(const struct grid_line *line, uint32_t rank);
uint32_t grid_at(const struct grid_line *line, uint32_t rank, uint32_t place);
/* Rank of a dense coordinate. */
uint32_t grid_rank(const struct ty_plan *plan, uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp);
const char *axis_name(enum axis axis);
/* "nvlink", "xgmi", "pcie", "nic", "spine", "none". */
const char *link_name(const struct ty_cluster *cluster, enum link_class link);

#endif
