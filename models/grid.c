/* SPDX-License-Identifier: MIT
 *
 * Rank grid: strides of the axes and where a group lies in scale-up domains and leaves.
 *
 *   rank = sum over axes of coordinate * stride,  stride = product of the sizes of faster axes
 *
 * A group of stride s and size k inside domains of U GPUs is regular when its span s k divides U
 * (one domain) or U divides the span and s divides U (U/s ranks in each domain it meets): handbook
 * 2.0. Anything else (72-GPU domains, odd sizes) is counted rank by rank, and the group that meets
 * the most domains is reported.
 */
#include "models/grid.h"

/* ---- order and strides ------------------------------------------------------------------- */

/* The axis a name like "cp" stands for; N_AXES: none. */
static enum axis axis_named(const char *name)
{
    if (name[0] == '\0' || name[1] != 'p')
        return N_AXES;
    switch (name[0]) {
    case 't':
        return AXIS_TP;
    case 'c':
        return AXIS_CP;
    case 'e':
        return AXIS_EP;
    case 'd':
        return AXIS_DP;
    case 'p':
        return AXIS_PP;
    default:
        return N_AXES;
    }
}

bool grid_order(const char *order, bool expert, enum axis axes[4])
{
    static const enum axis in_expert_view[] = {
        [AXIS_TP] = AXIS_ETP, [AXIS_DP] = AXIS_EDP, [AXIS_EP] = AXIS_EP, [AXIS_PP] = AXIS_PP};
    const enum axis absent = expert ? AXIS_CP : AXIS_EP;
    uint32_t seen = 0, n = 0;
    for (uint32_t i = 0; i < 5; i++) {
        if (i > 0 && *order++ != '-')
            return false;
        const enum axis axis = axis_named(order);
        if (axis == N_AXES || seen & 1u << axis || (i == 0 && axis != AXIS_TP))
            return false;
        seen |= 1u << axis;
        order += 2;
        if (axis != absent)
            axes[n++] = expert ? in_expert_view[axis] : axis;
    }
    return *order == '\0';
}

static uint32_t axis_size(const struct ty_plan *plan, enum axis axis)
{
    switch (axis) {
    case AXIS_TP:
        return plan->tp;
    case AXIS_CP:
        return plan->cp;
    case AXIS_DP:
        return plan->dp;
    case AXIS_DPCP:
        return plan->dp * plan->cp;
    case AXIS_EP:
        return plan->ep;
    case AXIS_ETP:
        return plan->etp;
    case AXIS_EDP:
        return plan->edp;
    case AXIS_PP:
        return plan->pp;
    case N_AXES:
        break;
    }
    return 1;
}

static uint64_t stride_in(const struct ty_plan *plan, bool expert, enum axis axis)
{
    enum axis axes[4];
    if (!grid_order(plan->order, expert, axes))
        return 0;
    uint64_t stride = 1;
    for (uint32_t i = 0; i < 4 && axes[i] != axis; i++)
        stride *= axis_size(plan, axes[i]);
    return stride;
}

uint64_t grid_stride(const struct ty_plan *plan, enum axis axis)
{
    return stride_in(plan, axis == AXIS_EP || axis == AXIS_ETP || axis == AXIS_EDP, axis);
}

bool grid_stages_agree(const struct ty_plan *plan)
{
    return plan->pp == 1 || stride_in(plan, false, AXIS_PP) == stride_in(plan, true, AXIS_PP);
}

/* ---- groups ------------------------------------------------------------------------------- */

static struct grid_line single(uint64_t size, uint64_t stride)
{
    return (struct grid_line){{size, 1}, {stride, stride * size}};
}

/* cp and dp together; one progression when they are neighbours in the order. */
struct grid_line grid_along(const struct ty_plan *plan, enum axis axis)
{
    if (axis != AXIS_DPCP)
        return single(axis_size(plan, axis), grid_stride(plan, axis));
    const uint64_t cp_stride = grid_stride(plan, AXIS_CP), dp_stride = grid_stride(plan, AXIS_DP);
    const struct grid_line both =
        cp_stride <= dp_stride && !(cp_stride == dp_stride && plan->dp == 1)
            ? (struct grid_line){{plan->cp, plan->dp}, {cp_stride, dp_stride}}
            : (struct grid_line){{plan->dp, plan->cp}, {dp_stride, cp_stride}};
    if (both.size[0] == 1)
        return single(both.size[1], both.stride[1]);
    if (both.size[1] == 1 || both.stride[1] == both.size[0] * both.stride[0])
        return single(both.size[0] * both.size[1], both.stride[0]);
    return both;
}

/* The ranks 0, every, 2 every, ... of an axis, `size` of them. */
static struct grid_line part(struct grid_line axis, uint64_t size, uint64_t every)
{
    if (axis.size[1] == 1 || size * every <= axis.size[0])
        return single(size, axis.stride[0] * every);
    if (every >= axis.size[0])
        return single(size, axis.stride[1] * (every / axis.size[0]));
    const uint64_t inner = axis.size[0] / every;
    return (struct grid_line){{inner, (size + inner - 1) / inner},
                              {axis.stride[0] * every, axis.stride[1]}};
}

struct spread {
    uint64_t n_domains, ranks_per_domain;
};

/* Domains of U ranks met by the group that starts at rank `base`, and the fewest ranks in one. */
static struct spread count(const struct grid_line *group, uint64_t base, uint64_t domain_size)
{
    struct spread spread = {0, UINT64_MAX};
    uint64_t domain = UINT64_MAX, ranks = 0;
    for (uint64_t y = 0; y < group->size[1]; y++)
        for (uint64_t x = 0; x < group->size[0]; x++) {
            const uint64_t rank = base + x * group->stride[0] + y * group->stride[1];
            if (rank / domain_size != domain) {
                if (ranks && ranks < spread.ranks_per_domain)
                    spread.ranks_per_domain = ranks;
                domain = rank / domain_size;
                spread.n_domains++;
                ranks = 0;
            }
            ranks++;
        }
    if (ranks < spread.ranks_per_domain)
        spread.ranks_per_domain = ranks;
    return spread;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Every group, up to the period after which the pattern of domains repeats. */
static struct spread count_all(const struct grid_line *group, uint64_t n_ranks, uint64_t U)
{
    const uint64_t gap = group->size[0] * group->stride[0];
    const uint64_t span = group->size[1] * group->stride[1];
    const uint64_t period = U / common_divisor(span, U);
    struct spread worst = {0, 0};
    for (uint64_t block = 0; block < period && block * span < n_ranks; block++)
        for (uint64_t middle = 0; middle < group->stride[1]; middle += gap)
            for (uint64_t inner = 0; inner < group->stride[0]; inner++) {
                const struct spread one = count(group, block * span + middle + inner, U);
                if (one.n_domains > worst.n_domains ||
                    (one.n_domains == worst.n_domains &&
                     one.ranks_per_domain < worst.ranks_per_domain))
                    worst = one;
            }
    return worst;
}

static struct spread spread_over(const struct grid_line *group, uint64_t n_ranks, uint64_t U)
{
    const uint64_t size = group->size[0] * group->size[1], stride = group->stride[0];
    const uint64_t span = group->size[1] * group->stride[1];
    if (n_ranks <= U || U % span == 0)
        return (struct spread){1, size};
    if (stride >= U)
        return (struct spread){size, 1};
    if (group->size[1] == 1 && U % stride == 0 && span % U == 0)
        return (struct spread){span / U, U / stride};
    return count_all(group, n_ranks, U);
}

static void describe(const struct setting *setting, const struct ty_plan *plan,
                     const struct grid_line *group, struct group_shape *out)
{
    const struct ty_cluster *cluster = &setting->cluster;
    const uint64_t size = group->size[0] * group->size[1];
    const double nic_bytes_per_s =
        cluster->nic_bytes_per_s * cluster->nics_per_node / cluster->gpus_per_node;
    *out = (struct group_shape){.size = (uint32_t)size,
                                .stride = size > 1 ? (uint32_t)group->stride[0] : 1,
                                .ranks_per_domain = 1,
                                .n_domains = 1,
                                .link = LINK_NONE,
                                .nic_bytes_per_s = nic_bytes_per_s,
                                .spine_bytes_per_s = nic_bytes_per_s / cluster->oversubscription};
    if (size <= 1)
        return;
    const struct spread spread =
        spread_over(group, plan->n_gpus, cluster_domain(cluster, plan->n_gpus));
    out->ranks_per_domain = (uint32_t)spread.ranks_per_domain;
    out->n_domains = (uint32_t)spread.n_domains;
    out->link = spread.n_domains == 1 ? LINK_SCALEUP : LINK_NIC;
    const uint64_t leaf = (uint64_t)cluster->nodes_per_leaf * cluster->gpus_per_node;
    if (out->link == LINK_NIC && leaf && spread_over(group, plan->n_gpus, leaf).n_domains > 1)
        out->link = LINK_SPINE;
}

/* ---- interface ---------------------------------------------------------------------------- */

void grid_shape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                struct group_shape *out)
{
    const struct grid_line group = grid_along(plan, axis);
    const bool layer = axis == AXIS_TP || axis == AXIS_CP || axis == AXIS_EP || axis == AXIS_ETP;
    if (setting->placed && layer) {
        *out = setting->placed[axis];
        return;
    }
    describe(setting, plan, &group, out);
    out->axis = axis;
    out->every = 1;
}

void grid_subshape(const struct setting *setting, const struct ty_plan *plan, enum axis axis,
                   uint32_t size, uint32_t every, struct group_shape *out)
{
    const struct grid_line group = part(grid_along(plan, axis), size, every);
    describe(setting, plan, &group, out);
    out->axis = axis;
    out->every = every;
}

uint32_t grid_place(const struct grid_line *line, uint32_t rank)
{
    return (uint32_t)(rank / line->stride[0] % line->size[0] +
                      line->size[0] * (rank / line->stride[1] % line->size[1]));
}

uint32_t grid_at(const struct grid_line *line, uint32_t rank, uint32_t place)
{
    const uint64_t x = rank / line->stride[0] % line->size[0];
    const uint64_t y = rank / line->stride[1] % line->size[1];
    return (uint32_t)(rank - x * line->stride[0] - y * line->stride[1] +
                      place % line->size[0] * line->stride[0] +
                      place / line->size[0] * line->stride[1]);
}

uint32_t grid_rank(const struct ty_plan *plan, uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp)
{
    return (uint32_t)(tp + cp * grid_stride(plan, AXIS_CP) + dp * grid_stride(plan, AXIS_DP) +
                      pp * grid_stride(plan, AXIS_PP));
}

const char *axis_name(enum axis axis)
{
    static const char *const names[] = {
        [AXIS_TP] = "tp",      [AXIS_CP] = "cp", [AXIS_DP] = "dp",
        [AXIS_DPCP] = "dp-cp", [AXIS_EP] = "ep", [AXIS_ETP] = "etp",
        [AXIS_EDP] = "edp",    [AXIS_PP] = "pp", [N_AXES] = "unknown"};
    return names[axis < N_AXES ? axis : N_AXES];
}

const char *link_name(const struct ty_cluster *cluster, enum link_class link)
{
    switch (link) {
    case LINK_SCALEUP:
        if (cluster->scaleup == TY_SCALEUP_PCIE)
            return "pcie";
        if (cluster->gpu.vendor == TY_VENDOR_NVIDIA)
            return "nvlink";
        return cluster->gpu.vendor == TY_VENDOR_AMD ? "xgmi" : "scaleup";
    case LINK_NIC:
        return "nic";
    case LINK_SPINE:
        return "spine";
    case LINK_NONE:
    case N_LINKS:
        break;
    }
    return "none";
}
