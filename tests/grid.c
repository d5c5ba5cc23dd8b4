/* SPDX-License-Identifier: MIT
 * Rank grid against handbook UT-2.1, UT-2.2 and against an enumeration of every rank. */
#include "models/grid.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#define MAX_RANKS 4096

static struct setting setting;

static void use_domain(uint32_t domain, uint32_t gpus_per_node, uint32_t nodes_per_leaf)
{
    setting.cluster.scaleup_domain = domain;
    setting.cluster.gpus_per_node = gpus_per_node;
    setting.cluster.nodes_per_leaf = nodes_per_leaf;
}

static struct ty_plan plan_of(const char *order, uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp,
                              uint32_t etp, uint32_t ep)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    snprintf(plan.order, sizeof plan.order, "%s", order);
    plan.tp = tp;
    plan.cp = cp;
    plan.dp = dp;
    plan.pp = pp;
    plan.etp = etp;
    plan.ep = ep;
    plan.n_gpus = tp * cp * dp * pp;
    plan.edp = plan.n_gpus / (etp * ep * pp);
    return plan;
}

static struct group_shape shape_of(const struct ty_plan *plan, enum axis axis)
{
    struct group_shape shape;
    grid_shape(&setting, plan, axis, &shape);
    return shape;
}

/* ---- handbook ------------------------------------------------------------------------------- */

static void handbook(void)
{
    use_domain(8, 8, 0);
    struct ty_plan plan = plan_of("tp-cp-ep-dp-pp", 2, 1, 2, 4, 1, 1);
    bool groups = grid_rank(&plan, 0, 0, 1, 0) == 2 && grid_rank(&plan, 1, 0, 0, 0) == 1 &&
                  grid_rank(&plan, 1, 0, 1, 0) == 3 && grid_rank(&plan, 0, 0, 0, 1) == 4 &&
                  grid_rank(&plan, 0, 0, 1, 1) == 6 && grid_rank(&plan, 0, 0, 0, 3) == 12 &&
                  grid_rank(&plan, 1, 0, 0, 3) == 13;
    ok(groups, "UT-2.1 16 GPUs, tp 2, pp 4: DP {0,2} {1,3} {4,6}, PP {0,4,8,12} {1,5,9,13}");

    plan = plan_of("tp-cp-ep-dp-pp", 8, 1, 8, 16, 1, 1);
    struct group_shape dp = shape_of(&plan, AXIS_DP), pp = shape_of(&plan, AXIS_PP);
    ok(dp.stride == 8 && dp.ranks_per_domain == 1 && dp.n_domains == 8 && dp.link == LINK_NIC,
       "UT-2.2 dp stride 8: one rank per node, NICs only");
    ok(pp.stride == 64 && pp.link == LINK_NIC, "UT-2.2 pp stride 64 crosses NICs");

    plan = plan_of("tp-cp-ep-dp-pp", 2, 1, 32, 16, 1, 8);
    struct group_shape ep = shape_of(&plan, AXIS_EP), edp = shape_of(&plan, AXIS_EDP);
    ok(ep.stride == 1 && ep.size == 8 && ep.link == LINK_SCALEUP && ep.ranks_per_domain == 8,
       "UT-2.2 ep of 8 with stride 1 stays in a node");
    ok(edp.size == 8 && edp.stride == 8, "UT-2.2 D_e = 8 with stride 8");

    setting.cluster.nics_per_node = 4;
    within(shape_of(&plan, AXIS_EDP).nic_bytes_per_s, 25e9, 1.0, "4 NICs for 8 GPUs: half of one");
    setting.cluster.nics_per_node = 16;
    within(shape_of(&plan, AXIS_EDP).nic_bytes_per_s, 100e9, 1.0, "16 NICs for 8 GPUs: two each");
    setting.cluster.nics_per_node = 8;
    setting.cluster.oversubscription = 4;
    within(shape_of(&plan, AXIS_EDP).spine_bytes_per_s, 12.5e9, 1.0, "a 4:1 leaf: a quarter");

    use_domain(72, 4, 18);
    plan = plan_of("tp-cp-ep-dp-pp", 1, 1, 72, 2, 1, 72);
    ep = shape_of(&plan, AXIS_EP);
    ok(ep.link == LINK_SCALEUP && ep.n_domains == 1,
       "72 ranks of 18 nodes in one NVL72 domain never see a NIC");
    ok(shape_of(&plan, AXIS_PP).link == LINK_SPINE, "the next rack is behind the spine");
}

static void names_and_orders(void)
{
    static const char *const bad[] = {"",
                                      "tp",
                                      "tp-cp-ep-dp",
                                      "cp-tp-ep-dp-pp",
                                      "tp-cp-ep-dp-dp",
                                      "tp-cp-ep-dp-pp-",
                                      "tp-cp-ep-dp-pp-pp",
                                      "tp_cp_ep_dp_pp",
                                      "TP-CP-EP-DP-PP"};
    enum axis axes[4];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(!grid_order(bad[i], false, axes), "order \"%s\" is refused", bad[i]);
    ok(grid_order("tp-dp-pp-ep-cp", false, axes) && axes[1] == AXIS_DP && axes[2] == AXIS_PP &&
           axes[3] == AXIS_CP,
       "any sequence that starts with tp is read");
    ok(grid_order("tp-cp-ep-pp-dp", true, axes) && axes[0] == AXIS_ETP && axes[1] == AXIS_EP &&
           axes[2] == AXIS_PP && axes[3] == AXIS_EDP,
       "expert view leaves cp out");
    same_text(link_name(&setting.cluster, LINK_SCALEUP), "nvlink", "NVIDIA switch: nvlink");
    setting.cluster.scaleup = TY_SCALEUP_PCIE;
    same_text(link_name(&setting.cluster, LINK_SCALEUP), "pcie", "no link: pcie");
    setting.cluster.scaleup = TY_SCALEUP_MESH;
    setting.cluster.gpu.vendor = TY_VENDOR_AMD;
    same_text(link_name(&setting.cluster, LINK_SCALEUP), "xgmi", "AMD mesh: xgmi");
    setting.cluster.scaleup = TY_SCALEUP_SWITCH;
    setting.cluster.gpu.vendor = TY_VENDOR_NVIDIA;
}

/* ---- enumeration ------------------------------------------------------------------------------
 */

/* Coordinates of a rank, decoded digit by digit from the text of the order. */
static void decode(const struct ty_plan *plan, bool expert, uint32_t rank, uint32_t at[N_AXES])
{
    memset(at, 0, N_AXES * sizeof at[0]);
    char order[32];
    snprintf(order, sizeof order, "%s", plan->order);
    for (char *name = strtok(order, "-"); name; name = strtok(NULL, "-")) {
        uint32_t size = 1;
        enum axis axis = AXIS_PP;
        if (!strcmp(name, "pp"))
            size = plan->pp;
        else if (!strcmp(name, "tp"))
            size = expert ? plan->etp : plan->tp, axis = expert ? AXIS_ETP : AXIS_TP;
        else if (!strcmp(name, "dp"))
            size = expert ? plan->edp : plan->dp, axis = expert ? AXIS_EDP : AXIS_DP;
        else if (!strcmp(name, "cp") && !expert)
            size = plan->cp, axis = AXIS_CP;
        else if (!strcmp(name, "ep") && expert)
            size = plan->ep, axis = AXIS_EP;
        else
            continue;
        at[axis] = rank % size;
        rank /= size;
    }
}

static bool same_group(enum axis axis, const uint32_t a[N_AXES], const uint32_t b[N_AXES])
{
    for (enum axis i = AXIS_TP; i < N_AXES; i++) {
        const bool free = i == axis || (axis == AXIS_DPCP && (i == AXIS_DP || i == AXIS_CP));
        if (!free && a[i] != b[i])
            return false;
    }
    return true;
}

/* Most domains a group meets and the fewest ranks it has in one, over all groups. */
static void enumerate(const struct ty_plan *plan, enum axis axis, uint32_t domain, uint32_t *size,
                      uint32_t *n_domains, uint32_t *fewest)
{
    static uint32_t at[MAX_RANKS][N_AXES];
    const bool expert = axis == AXIS_EP || axis == AXIS_ETP || axis == AXIS_EDP;
    for (uint32_t rank = 0; rank < plan->n_gpus; rank++)
        decode(plan, expert, rank, at[rank]);
    *n_domains = 0;
    for (uint32_t first = 0; first < plan->n_gpus; first++) {
        uint32_t in_domain[MAX_RANKS] = {0}, members = 0, domains = 0, least = UINT32_MAX;
        for (uint32_t rank = 0; rank < plan->n_gpus; rank++)
            if (same_group(axis, at[first], at[rank])) {
                members++;
                in_domain[rank / domain]++;
            }
        for (uint32_t i = 0; i <= (plan->n_gpus - 1) / domain; i++)
            if (in_domain[i]) {
                domains++;
                least = in_domain[i] < least ? in_domain[i] : least;
            }
        if (domains > *n_domains || (domains == *n_domains && least < *fewest)) {
            *n_domains = domains;
            *fewest = least;
        }
        *size = members;
    }
}

static uint32_t next_random(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static void against_enumeration(void)
{
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-pp-cp-ep-dp",
                                         "tp-dp-ep-pp-cp"};
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8}, domains[] = {8, 72, 6, 16, 4};
    uint32_t state = 7, compared = 0, wrong = 0;
    for (uint32_t trial = 0; trial < 300; trial++) {
        struct ty_plan plan = plan_of(orders[next_random(&state, 4)], sizes[next_random(&state, 6)],
                                      sizes[next_random(&state, 4)], sizes[next_random(&state, 6)],
                                      sizes[next_random(&state, 4)], 1, 1);
        if (plan.n_gpus > 480)
            continue;
        const uint32_t left = plan.n_gpus / plan.pp;
        plan.ep = 1 + next_random(&state, 8);
        plan.ep = left % plan.ep ? 1 : plan.ep;
        plan.edp = left / plan.ep;
        use_domain(domains[next_random(&state, 5)], 1, 0);
        const uint32_t domain = cluster_domain(&setting.cluster, plan.n_gpus);
        for (enum axis axis = AXIS_TP; axis < N_AXES; axis++) {
            uint32_t size = 0, n_domains = 0, fewest = 0;
            enumerate(&plan, axis, domain, &size, &n_domains, &fewest);
            const struct group_shape shape = shape_of(&plan, axis);
            compared++;
            const bool good = shape.size == size && shape.n_domains == n_domains &&
                              shape.ranks_per_domain == fewest;
            if (!good && wrong++ < 5)
                printf("# %s of %s tp%u cp%u dp%u pp%u ep%u U%u: got %u/%u/%u want %u/%u/%u\n",
                       axis_name(axis), plan.order, plan.tp, plan.cp, plan.dp, plan.pp, plan.ep,
                       domain, shape.size, shape.n_domains, shape.ranks_per_domain, size, n_domains,
                       fewest);
        }
    }
    ok(compared > 1000 && wrong == 0, "%u groups equal the enumeration of all ranks", compared);
}

/* A part of an axis is the group a smaller axis of that size or stride would form. */
static void parts(void)
{
    use_domain(8, 8, 0);
    const struct ty_plan plan = plan_of("tp-cp-ep-dp-pp", 2, 2, 16, 2, 1, 1);
    struct group_shape shards, replicas;
    grid_subshape(&setting, &plan, AXIS_DPCP, 4, 1, &shards);
    grid_subshape(&setting, &plan, AXIS_DPCP, 8, 4, &replicas);
    ok(shards.size == 4 && shards.stride == 2 && shards.n_domains == 1 &&
           shards.link == LINK_SCALEUP,
       "the first 4 of dp-cp: ranks 0, 2, 4, 6 of a node");
    ok(replicas.size == 8 && replicas.stride == 8 && replicas.n_domains == 8 &&
           replicas.ranks_per_domain == 1,
       "every 4th of dp-cp: ranks 0, 8, 16, ...: one per node");
    const struct ty_plan apart = plan_of("tp-cp-ep-pp-dp", 2, 2, 16, 2, 1, 1);
    grid_subshape(&setting, &apart, AXIS_DPCP, 2, 1, &shards);
    grid_subshape(&setting, &apart, AXIS_DPCP, 16, 2, &replicas);
    ok(shards.stride == 2 && shards.n_domains == 1, "pp inside dp: the first 2 are the cp ranks");
    ok(replicas.stride == 8 && replicas.n_domains == 16, "pp inside dp: replicas are 8 apart");
    ok(grid_stages_agree(&plan), "pp last: the stages agree");
    const struct ty_plan split = plan_of("tp-cp-ep-pp-dp", 2, 2, 16, 2, 1, 8);
    ok(!grid_stages_agree(&split), "pp before dp, tp*cp = 4, etp*ep = 8: stages differ");
}

int main(void)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_error error;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    if (!ok(setting_init(&model, &cluster, &profile, &setting, NULL, &error) == TY_OK, "setting"))
        return tap_done();
    handbook();
    names_and_orders();
    against_enumeration();
    parts();
    return tap_done();
}
