/* SPDX-License-Identifier: MIT
 *
 * What the files of the full rung share. A job is a plan on some GPUs of the fabric. Its ranks are
 * numbered stage by stage: rank (stage, lane), where a lane is the ranks of all stages that share
 * every other coordinate. Ranks of one shape run the same graph (they differ in micro-batches, if
 * at all), ranks of one class have the same GPU; a template is the graph of one shape with the
 * times of one class.
 *
 * full_job.c lays a job on the fabric, full_flow.c turns what the template sends into tasks on
 * links, full_graph.c multiplies the graph, full_fold.c says whether one rank per stage would do,
 * full_detail.c runs collectives send by send, full_traffic.c counts bytes, full.c drives.
 */
#ifndef MODELS_FULL_INTERNAL_H
#define MODELS_FULL_INTERNAL_H

#include "models/fabric.h"
#include "models/full.h"
#include "models/step_internal.h"

#define FULL_MAX_GROUPINGS 12

/* The groups a collective is among: `size` ranks of an axis, `every` apart on it. */
struct grouping {
    enum axis axis;
    uint32_t size, every;
    struct grid_line line;
    uint32_t n_groups;         /* of one stage */
    uint32_t *number;          /* [width]: group of a lane */
    uint32_t *leader;          /* [n_groups]: lane of the first member */
    struct group_shape *shape; /* [n_stages][n_groups]: as placed */
};

/* A flow of a template for a group of some shape: the last one worked out. */
struct memo {
    bool known;
    struct group_shape shape;
    struct engine_task task;
    struct collective_flow flow;
};

struct template
{
    struct step *step;
    uint32_t *route;         /* [n_sent][width]; ENGINE_NONE: not made yet */
    uint32_t *segment_route; /* [n_segments][width] */
    uint32_t *form;          /* [forms of the template][width]; 0: not made yet */
    uint32_t n_forms;
    struct memo *memo; /* [n_sent] */
};

struct job {
    const struct setting *setting;
    struct ty_plan plan; /* resolved */
    const struct slot *slots;
    uint32_t n_ranks, n_stages, width, stride; /* width: lanes */
    uint32_t n_shapes, n_classes;
    struct setting **settings;  /* [n_classes] */
    struct template *templates; /* [n_shapes][n_classes] */
    uint32_t *shape_micro;      /* [n_shapes] */
    uint32_t *n_micro;          /* [dp] */
    uint32_t *gpu;              /* [n_ranks] */
    uint8_t *klass;             /* [n_ranks] */
    double *speed;              /* [n_ranks] */
    uint32_t *shape, *order;    /* [width]: shape of a lane, its place among those of the shape */
    uint32_t *shape_lanes;      /* [n_shapes]: how many */
    uint32_t *block, n_blocks;  /* [width]: lanes that run in lock-step (tp, cp, ep) */
    uint32_t *block_next;       /* [width]: the next lane of the block, the first after the last */
    double *same_port;          /* [n_ranks]: ranks of the stage on its NIC port, its leaf */
    double *same_leaf;
    struct grouping groupings[FULL_MAX_GROUPINGS];
    uint32_t n_groupings;
    const struct group_shape *placed; /* [N_AXES] of layers; NULL: as of ranks in order */
    bool jitters, even;               /* even: all ranks take the same time for the same pass */
    uint32_t first_stream, first_device;
    uint32_t *step_end; /* [n_steps]: the task that ends each step */
    uint32_t **first;   /* [n_shapes]: [tasks of the template], the first rank's; last step */
};

struct full {
    struct ty_allocator allocator;
    struct engine *engine;
    struct arena arena;
    struct fabric fabric;
    struct job *jobs;
    uint32_t n_jobs, n_steps;
    uint64_t seed;
    double jitter_ratio;
    bool detailed;
    uint32_t *origin; /* [n_origins], of the first job's first step: task of its template */
    uint32_t n_origins;
    struct ty_fabric_report report;
    double *job_step_s;
    struct fabric_path path; /* scratch */
};

static inline uint32_t job_rank(const struct job *job, uint32_t stage, uint32_t lane)
{
    return lane % job->stride + stage * job->stride +
           lane / job->stride * job->stride * job->n_stages;
}

static inline uint32_t job_lane(const struct job *job, uint32_t rank)
{
    return rank / (job->stride * job->n_stages) * job->stride + rank % job->stride;
}

static inline struct template *job_template(const struct job *job, uint32_t shape, uint32_t klass)
{
    return &job->templates[shape * job->n_classes + klass];
}

/* full_job.c */
ty_status job_place(struct full *full, struct job *job, const struct ty_scenario *scenario,
                    const uint32_t *nodes, uint32_t n_nodes, uint32_t *most_nodes,
                    struct ty_error *error);
ty_status job_prepare(struct full *full, struct job *job, const struct ty_scenario *scenario,
                      struct ty_error *error);
void job_destroy(struct full *full, struct job *job);

/* full_flow.c */
/* The groups of a shape's axis; made on first use. NULL: out of memory. */
const struct grouping *job_grouping(struct full *full, struct job *job,
                                    const struct group_shape *shape);
/* The shape of ranks on their GPUs; sizes and rates as in `like`. */
void job_shape(const struct full *full, const struct job *job, const uint32_t *ranks, uint32_t n,
               const struct group_shape *like, struct group_shape *out);
/* Is the flow of a pair of ranks, one of each of two stages? */
bool job_is_pair(const struct sent *sent);
/* The shape of the pair of a lane. */
void job_pair_shape(const struct full *full, const struct job *job, const struct sent *sent,
                    uint32_t lane, struct group_shape *out);
/* The rank's part of a flow: task with route, without stream and devices. */
ty_status job_flow(struct full *full, struct job *job, struct template *template, uint32_t tag,
                   uint32_t stage, uint32_t lane, struct engine_task *out, struct ty_error *error);
/* Route of a pass whose own collectives share links with others. */
ty_status job_pass_route(struct full *full, struct job *job, struct template *template,
                         uint32_t segment, uint32_t stage, uint32_t lane, uint32_t *route);

/* full_detail.c: the collective of all groups of a stage, send by send between their start and end
 * tasks. */
ty_status job_detail(struct full *full, struct job *job, struct template *template, uint32_t tag,
                     uint32_t stage, uint32_t start, uint32_t end, struct ty_error *error);

/* full_graph.c */
ty_status job_graph(struct full *full, struct job *job, struct ty_error *error);

/* full_fold.c: NULL: one rank per stage is exact; else why not. */
const char *full_why_not(struct full *full, struct job *job, const struct ty_scenario *scenario);

/* full_traffic.c */
ty_status full_traffic(struct full *full, struct job *job);

#endif
