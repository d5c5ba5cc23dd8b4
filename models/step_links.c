/* SPDX-License-Identifier: MIT
 *
 * Stages on the engine: one device, its streams, and the links of its representative rank.
 *
 * A stage has its own scale-up port, one direction each. NICs may be fewer than GPUs: then the
 * GPUs of `gpus / nics` neighbouring ranks use one physical NIC. Those of the same stage do the
 * same at the same time, so each flow counts once for every one of them on that link; those of
 * other stages share the link itself. The spine, where oversubscribed, is a slimmer NIC.
 */
#include "models/step_internal.h"

#include <math.h>

/* Capacity of one physical link of a class, one direction. */
static double capacity_bytes_per_s(const struct step *step, enum link_class link)
{
    const struct ty_cluster *cluster = &step->setting->cluster;
    const double per_gpu = (double)cluster->nics_per_node / cluster->gpus_per_node;
    const double nic_bytes_per_s = cluster->nic_bytes_per_s * fmax(1.0, per_gpu);
    switch (link) {
    case LINK_SCALEUP:
        return cluster->scaleup_bytes_per_s > 0.0 ? cluster->scaleup_bytes_per_s
                                                  : cluster->gpu.pcie_bytes_per_s;
    case LINK_NIC:
        return nic_bytes_per_s;
    case LINK_SPINE: /* without oversubscription the NIC is always the narrower */
        return cluster->oversubscription > 1.0 ? nic_bytes_per_s / cluster->oversubscription
                                               : HUGE_VAL;
    default:
        return HUGE_VAL;
    }
}

/* The representative of a stage: coordinate 0 on every other axis. */
static uint32_t stage_rank(const struct step *step, uint32_t stage)
{
    return stage * step->pp.stride;
}

/* Neighbouring ranks on one physical NIC. */
struct nic {
    uint32_t first_rank, n_ranks;
};

static struct nic nic_of(const struct step *step, uint32_t rank)
{
    const struct ty_cluster *cluster = &step->setting->cluster;
    const uint32_t gpus = cluster->gpus_per_node, nics = cluster->nics_per_node;
    const uint32_t sharers = nics < gpus && nics > 0 ? (gpus + nics - 1) / nics : 1;
    const uint32_t first = rank % gpus / sharers * sharers;
    const uint32_t left = gpus - first;
    return (struct nic){rank - rank % gpus + first, left < sharers ? left : sharers};
}

/* The first stage whose representative uses the same NIC as this one's. */
static uint32_t nic_owner(const struct step *step, uint32_t stage, const struct nic *nic)
{
    for (uint32_t other = 0; nic->n_ranks > 1 && other < stage; other++)
        if (nic_of(step, stage_rank(step, other)).first_rank == nic->first_rank)
            return other;
    return stage;
}

/* Ranks of this stage on the NIC: they all do the same at the same time. */
static uint32_t nic_same(const struct step *step, uint32_t stage, const struct nic *nic)
{
    uint32_t same = 0;
    for (uint32_t rank = nic->first_rank; rank < nic->first_rank + nic->n_ranks; rank++)
        same += rank < step->plan->n_gpus && rank / step->pp.stride % step->n_stages == stage;
    return same;
}

static ty_status add_links(struct step *step, uint32_t at)
{
    struct stage *stage = &step->stages[at];
    const struct nic nic = nic_of(step, stage_rank(step, at));
    const struct stage *owner = &step->stages[nic_owner(step, at, &nic)];
    const double same = nic_same(step, at, &nic);
    ty_status status = TY_OK;
    for (uint32_t link = LINK_SCALEUP; link < N_LINKS; link++) {
        const double capacity = capacity_bytes_per_s(step, (enum link_class)link);
        stage->same[link] = link == LINK_SCALEUP ? 1.0 : same;
        for (uint32_t way = 0; status == TY_OK && way < 2; way++) {
            stage->link[link][way] = ENGINE_NONE;
            if (link != LINK_SCALEUP && owner != stage)
                stage->link[link][way] = owner->link[link][way];
            else if (capacity > 0.0 && capacity < HUGE_VAL)
                status = engine_add_link(step->engine, capacity, true, &stage->link[link][way]);
        }
    }
    return status;
}

ty_status step_route(struct step *step, uint32_t from, uint32_t to,
                     const double bytes_per_work[N_LINKS], double cap_work_per_s, uint32_t *route)
{
    struct fluid_use uses[2 * N_LINKS];
    uint32_t n = 0;
    for (uint32_t link = LINK_SCALEUP; link < N_LINKS; link++) {
        const double capacity = capacity_bytes_per_s(step, (enum link_class)link);
        for (uint32_t way = 0; way < 2; way++) {
            const struct stage *stage = &step->stages[way == 0 ? from : to];
            /* A flow alone takes its own time, whatever a table says about its link. */
            const double bytes =
                fmin(bytes_per_work[link] * stage->same[link], capacity / cap_work_per_s);
            if (bytes > 0.0 && stage->link[link][way] != ENGINE_NONE)
                uses[n++] = (struct fluid_use){stage->link[link][way], bytes};
        }
    }
    *route = ENGINE_NONE;
    return n > 0 ? engine_add_route(step->engine, uses, n, route) : TY_OK;
}

static void note_origin(struct step *step, const struct collective *part, double n_parts)
{
    double time_s;
    const enum ty_origin origin = collective_origin(step->setting, part, &time_s);
    step->origins.time_s[TY_WORK_COLLECTIVES][origin] += n_parts * time_s;
}

struct engine_task step_flow_task(const struct setting *setting, const struct sent *sent,
                                  const struct collective_flow *flow)
{
    const struct ty_profile *profile = &setting->profile;
    const bool network = sent->collective.shape.link > LINK_SCALEUP;
    const bool message = sent->collective.op == COLLECTIVE_SEND; /* else data-parallel */
    const double slow_compute = network ? profile->slow_compute_nic : profile->slow_compute_scaleup;
    return (struct engine_task){.class_ = ENGINE_COMM,
                                .latency_s = sent->n_parts * flow->latency_s,
                                .work = sent->n_parts * flow->work_bytes,
                                .cap_work_per_s = flow->cap_bytes_per_s,
                                .route = ENGINE_NONE,
                                .device = {ENGINE_NONE, ENGINE_NONE},
                                .slow_compute = message ? slow_compute : profile->dp_slow_compute,
                                .slow_self = profile->slow_comm};
}

struct collective step_part_of(const struct step *step, const struct collective *collective,
                               double n_parts)
{
    const struct ty_profile *profile = &step->setting->profile;
    const bool message = collective->op == COLLECTIVE_SEND; /* else data-parallel */
    struct collective part = *collective;
    part.payload_bytes /= n_parts;
    part.codec_s /= n_parts;
    const bool network = collective->shape.link > LINK_SCALEUP;
    part.share = message ? profile->pp_time_ratio
                         : profile->dp_time_ratio * (network ? profile->dp_network_ratio : 1.0);
    return part;
}

ty_status step_flow(struct step *step, uint32_t from, uint32_t to,
                    const struct collective *collective, double n_parts, struct flow *out)
{
    const struct collective part = step_part_of(step, collective, n_parts);
    struct collective_flow flow;
    note_origin(step, &part, n_parts);
    collective_as_flow(step->setting, &part, &flow);
    *out = (struct flow){.used = flow.work_bytes > 0.0};
    if (!out->used)
        return TY_OK;
    if (!array_grow(&step->allocator, (void **)&step->sent, &step->sent_capacity,
                    (size_t)step->n_sent + 1, sizeof *step->sent))
        return TY_ERR_NOMEM;
    step->sent[step->n_sent++] = (struct sent){part, n_parts, from, to};
    out->task = step_flow_task(step->setting, &step->sent[step->n_sent - 1], &flow);
    out->task.tag = step->n_sent;
    out->task.device[0] = step->stages[from].device;
    out->task.device[1] = from == to ? ENGINE_NONE : step->stages[to].device;
    for (uint32_t link = 0; link < N_LINKS; link++)
        step->link_used[link] |= flow.bytes_per_work[link] > 0.0;
    return step_route(step, from, to, flow.bytes_per_work, flow.cap_bytes_per_s, &out->task.route);
}

void step_pair_shape(const struct step *step, uint32_t from, uint32_t to, struct group_shape *out)
{
    const uint32_t domain = cluster_domain(&step->setting->cluster, step->plan->n_gpus);
    *out = step->pp;
    const bool inside = stage_rank(step, from) / domain == stage_rank(step, to) / domain;
    out->size = 2;
    out->ranks_per_domain = inside ? 2 : 1;
    out->n_domains = inside ? 1 : 2;
    if (inside)
        out->link = LINK_SCALEUP;
    else if (out->link == LINK_SCALEUP)
        out->link = LINK_NIC;
}

/* Messages to the neighbours: tokens x hidden, each TP rank its shard under SP (handbook 2.5). */
static ty_status add_messages(struct step *step, uint32_t at)
{
    const struct ty_plan *plan = step->plan;
    const uint32_t n = step->n_stages;
    const double tokens = (double)plan->mbs * plan->seq / plan->cp;
    const double shards = plan->sp == TY_ON ? plan->tp : 1;
    struct collective message = {.op = COLLECTIVE_SEND,
                                 .payload_bytes = tokens * step->setting->model.hidden *
                                                  step->traffic.param_bytes / shards};
    ty_status status = TY_OK;
    for (uint32_t back = 0; status == TY_OK && back < 2; back++) {
        const uint32_t to = (at + (back ? n - 1 : 1)) % n;
        step_pair_shape(step, at, to, &message.shape);
        status = step_flow(step, at, to, &message, 1.0, &step->stages[at].send[back]);
    }
    return status;
}

static ty_status add_device(struct step *step, struct stage *stage)
{
    ty_status status = engine_add_device(step->engine, &stage->device);
    for (uint32_t i = 0; status == TY_OK && i < N_STREAMS; i++)
        status = engine_add_stream(step->engine, &stage->stream[i]);
    return status;
}

ty_status step_add_stages(struct step *step)
{
    step->stages = arena_get(&step->arena, step->n_stages, sizeof *step->stages);
    if (!step->stages)
        return TY_ERR_NOMEM;
    for (uint32_t link = 0; link < N_LINKS; link++)
        step->link_used[link] = false;
    step->n_sent = 0;
    grid_shape(step->setting, step->plan, AXIS_PP, &step->pp);
    ty_status status = engine_add_stream(step->engine, &step->sync_stream);
    for (uint32_t at = 0; status == TY_OK && at < step->n_stages; at++) {
        status = add_device(step, &step->stages[at]);
        if (status == TY_OK)
            status = add_links(step, at);
    }
    for (uint32_t at = 0; status == TY_OK && step->n_stages > 1 && at < step->n_stages; at++)
        status = add_messages(step, at);
    return status;
}
