/* SPDX-License-Identifier: MIT
 *
 * Which level every group crosses and what it sends there in a step, all ranks together: the
 * flows of the template times how often its tasks use them, and the collectives inside layers
 * times how often their passes run. A collective over several domains counts its bytes on the
 * scale-up links as domain, the rest at the level its group crosses.
 */
#include "models/full_internal.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>

static const char *const names[] = {"tp", "cp", "ep", "etp", "dp", "edp", "pp"};
enum { ROW_TP, ROW_CP, ROW_EP, ROW_ETP, ROW_DP, ROW_EDP, ROW_PP, N_ROWS };

static uint32_t row_of(enum axis axis)
{
    static const uint32_t rows[] = {
        [AXIS_TP] = ROW_TP, [AXIS_CP] = ROW_CP,   [AXIS_DP] = ROW_DP,   [AXIS_DPCP] = ROW_DP,
        [AXIS_EP] = ROW_EP, [AXIS_ETP] = ROW_ETP, [AXIS_EDP] = ROW_EDP, [AXIS_PP] = ROW_PP};
    return rows[axis];
}

static void add_bytes(struct ty_group_traffic *row, const struct full *full,
                      const struct group_shape *shape, double scaleup_bytes, double nic_bytes)
{
    const bool core = shape->link == LINK_SPINE &&
                      full->fabric.n_pods > 1; /* some of its groups may stay in a pod */
    row->bytes[TY_LEVEL_DOMAIN] += scaleup_bytes;
    if (shape->link == LINK_NIC)
        row->bytes[TY_LEVEL_LEAF] += nic_bytes;
    else if (shape->link == LINK_SPINE)
        row->bytes[core ? TY_LEVEL_CORE : TY_LEVEL_SPINE] += nic_bytes;
}

static enum ty_fabric_level level_of(const struct group_shape *shape)
{
    static const enum ty_fabric_level levels[] = {[LINK_NONE] = TY_LEVEL_NONE,
                                                  [LINK_SCALEUP] = TY_LEVEL_DOMAIN,
                                                  [LINK_NIC] = TY_LEVEL_LEAF,
                                                  [LINK_SPINE] = TY_LEVEL_SPINE};
    return levels[shape->link];
}

/* ---- groups -------------------------------------------------------------------------------- */

static ty_status count_groups(struct full *full, struct job *job, enum axis axis,
                              struct ty_group_traffic *row)
{
    struct group_shape shape;
    grid_shape(job->setting, &job->plan, axis, &shape);
    const struct grouping *grouping = job_grouping(full, job, &shape);
    if (!grouping)
        return TY_ERR_NOMEM;
    for (size_t i = 0; i < (size_t)grouping->n_groups * job->n_stages; i++)
        row->n_groups[level_of(&grouping->shape[i])]++;
    return TY_OK;
}

static void count_pipelines(const struct full *full, const struct job *job,
                            struct ty_group_traffic *row)
{
    for (uint32_t lane = 0; lane < job->width; lane++) {
        enum ty_fabric_level level = TY_LEVEL_NONE;
        for (uint32_t stage = 1; stage < job->n_stages; stage++) {
            const enum ty_fabric_level here =
                fabric_level(&full->fabric, job->gpu[job_rank(job, stage - 1, lane)],
                             job->gpu[job_rank(job, stage, lane)]);
            level = here > level ? here : level;
        }
        row->n_groups[level]++;
    }
}

/* ---- flows of the step --------------------------------------------------------------------- */

static void add_flow(struct full *full, struct job *job, uint32_t stage,
                     const struct template *template, uint32_t tag, struct ty_group_traffic *rows)
{
    const struct sent *sent = &template->step->sent[tag - 1];
    const struct grouping *grouping = NULL;
    if (!job_is_pair(sent))
        grouping = job_grouping(full, job, &sent->collective.shape);
    for (uint32_t lane = 0; lane < job->width; lane++) {
        struct sent one = *sent;
        struct collective_flow flow;
        if (grouping)
            one.collective.shape =
                grouping->shape[(size_t)stage * grouping->n_groups + grouping->number[lane]];
        else
            job_pair_shape(full, job, sent, lane, &one.collective.shape);
        collective_as_flow(template->step->setting, &one.collective, &flow);
        const double work = sent->n_parts * flow.work_bytes;
        add_bytes(&rows[row_of(sent->collective.shape.axis)], full, &one.collective.shape,
                  work * flow.bytes_per_work[LINK_SCALEUP], work * flow.bytes_per_work[LINK_NIC]);
    }
}

/* Each flow once per lane, then times its number of uses. */
static ty_status add_flows(struct full *full, struct job *job, struct ty_group_traffic *rows)
{
    const struct template *template = &job->templates[0];
    const struct step *step = template->step;
    const uint32_t n_tasks = engine_n_tasks(step->engine);
    struct ty_group_traffic once[N_ROWS];
    uint32_t *uses = arena_get(&full->arena, (size_t)step->n_sent + 1, sizeof *uses);
    uint32_t *stage = arena_get(&full->arena, (size_t)step->n_sent + 1, sizeof *stage);
    if (!uses || !stage)
        return TY_ERR_NOMEM;
    for (uint32_t task = 0; task < n_tasks; task++) {
        const uint32_t tag = engine_task_of(step->engine, task)->tag;
        uses[tag]++;
        stage[tag] = step->info[task].stage;
    }
    for (uint32_t tag = 1; tag <= step->n_sent; tag++) {
        if (uses[tag] == 0)
            continue;
        for (uint32_t row = 0; row < N_ROWS; row++)
            once[row] = (struct ty_group_traffic){.name = ""};
        add_flow(full, job, stage[tag], template, tag, once);
        for (uint32_t row = 0; row < N_ROWS; row++)
            for (uint32_t level = 0; level < TY_N_LEVELS; level++)
                rows[row].bytes[level] += uses[tag] * once[row].bytes[level];
    }
    return TY_OK;
}

/* ---- collectives inside layers ------------------------------------------------------------- */

static void add_items(struct full *full, const struct job *job, const struct item_list *items,
                      double n_passes, struct ty_group_traffic *rows)
{
    for (uint32_t i = 0; i < items->n; i++) {
        const struct item *item = &items->item[i];
        struct collective_flow flow;
        if (!item->is_collective)
            continue;
        collective_as_flow(job->setting, &item->collective, &flow);
        const uint32_t row = item->part == TY_PART_TP   ? ROW_TP
                             : item->part == TY_PART_CP ? ROW_CP
                                                        : row_of(item->collective.shape.axis);
        add_bytes(&rows[row], full, &item->collective.shape,
                  n_passes * flow.work_bytes * flow.bytes_per_work[LINK_SCALEUP],
                  n_passes * flow.work_bytes * flow.bytes_per_work[LINK_NIC]);
    }
}

/* Every unit of every place: forward and backward of each micro-batch on each rank of its stage. */
static void add_layers(struct full *full, const struct job *job, struct item_list *items,
                       struct ty_group_traffic *rows)
{
    const struct step *step = job->templates[0].step;
    double count[2][3][TY_MAX_KINDS] = {0}; /* [plain][what][kind]: micro-batches through it */
    for (uint32_t place = 0; place < step->n_places; place++) {
        const uint32_t chunk = place / step->n_stages;
        const uint32_t n_micro = pipeline_end_micro(&step->pipeline, chunk) -
                                 pipeline_first_micro(&step->pipeline, chunk);
        for (uint32_t i = 0; i < step_n_units(&step->slots[place]); i++) {
            const struct unit unit = step_unit(step, place, i);
            count[unit.plain][unit.what][unit.kind] += n_micro;
        }
    }
    for (uint32_t i = 0; i < 2 * 3 * TY_MAX_KINDS; i++) {
        const uint32_t plain = i / (3 * TY_MAX_KINDS), what = i / TY_MAX_KINDS % 3;
        const uint32_t kind = i % TY_MAX_KINDS;
        const double n = count[plain][what][kind] * job->width;
        for (enum layer_phase phase = PHASE_FORWARD; n > 0.0 && phase <= PHASE_BACKWARD; phase++) {
            layer_items(job->setting, plain ? &step->plain : step->plan, (enum layer_what)what,
                        kind, phase, items);
            add_items(full, job, items, n, rows);
        }
    }
}

ty_status full_traffic(struct full *full, struct job *job)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_DP, AXIS_EP, AXIS_ETP, AXIS_EDP};
    bool experts = false;
    for (uint32_t kind = 0; kind < job->setting->model.n_kinds; kind++)
        experts |= job->setting->model.kinds[kind].mlp == TY_MLP_MOE;
    const uint32_t n_axes = experts ? 6 : 3; /* without experts their view of the ranks is idle */
    struct ty_group_traffic *rows = full->report.traffic;
    struct item_list *items = full->allocator.alloc(full->allocator.user, sizeof *items);
    ty_status status = items ? TY_OK : TY_ERR_NOMEM;
    full->report.n_traffic = N_ROWS;
    for (uint32_t row = 0; row < N_ROWS; row++)
        text_format(rows[row].name, sizeof rows[row].name, "%s", names[row]);
    for (uint32_t i = 0; status == TY_OK && i < n_axes; i++)
        status = count_groups(full, job, axes[i], &rows[row_of(axes[i])]);
    if (status == TY_OK)
        status = add_flows(full, job, rows);
    if (status == TY_OK) {
        count_pipelines(full, job, &rows[ROW_PP]);
        add_layers(full, job, items, rows);
    }
    if (items)
        full->allocator.release(full->allocator.user, items, sizeof *items);
    return status;
}
