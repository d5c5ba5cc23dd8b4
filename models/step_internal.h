/* SPDX-License-Identifier: MIT
 *
 * What the files of the step share: the plan under simulation, cut into segments, and the graph
 * made of it. step_work.c fills segments, step_traffic.c decides the data-parallel traffic,
 * step_links.c knows who shares which link, step_build.c makes the graph, step_bound.c and
 * step_breakdown.c are the two other views.
 */
#ifndef MODELS_STEP_INTERNAL_H
#define MODELS_STEP_INTERNAL_H

#include "models/step.h"

/* Dense and expert parameters go to different groups (D c ranks, edp ranks). */
enum share { SHARE_DENSE, SHARE_EXPERT, N_SHARES };

/* Transfers to the host and back. */
enum host_way { HOST_OUT, HOST_IN, N_HOST_WAYS };

/* Parameters of some layers on one rank; trained: those with gradients (LoRA trains adapters). */
struct held {
    double params[N_SHARES], trained[N_SHARES];
};

/* One thing a pass runs, in forward order: the embedding, a layer, the head. */
struct unit {
    enum layer_what what;
    uint32_t kind;
    bool plain;     /* of a plan with full recompute: one of the layers that are not recomputed */
    bool offloaded; /* its activations leave the GPU */
};

/* A pass, collective or message ready to be added: a task without its stream. */
struct flow {
    bool used;
    uint32_t form; /* of the engine, + 1; 0: not added yet */
    struct engine_task task;
};

/* What a flow sends; its task's tag is 1 + the number of this. */
struct sent {
    struct collective collective; /* in n_parts equal ones */
    double n_parts;
    uint32_t from, to; /* stages */
};

/* Data-parallel traffic of some parameters. */
struct flows {
    struct flow gather[N_SHARES];   /* parameters */
    struct flow reduce[N_SHARES];   /* gradients */
    struct flow replicas[N_SHARES]; /* what `reduce` left, summed over replicas */
};

/* A pass, or the part of it between two moments that step-level traffic cares about. */
struct segment {
    double time_s, host_s;
    double part_s[TY_N_PARTS];      /* adds up to time_s */
    double link_bytes[N_LINKS];     /* of the layers' own collectives */
    double transfer_s[N_HOST_WAYS]; /* to and from the host, beside it */
    struct held held;
    struct flow compute;
    bool has_flows;
    struct flows flows; /* gather before it, reduce after it */
};

/* The segments of one place's pass of one kind. */
struct cut {
    uint32_t whole;    /* segment: the pass in one piece */
    uint32_t first, n; /* segments: the pass in pieces */
    uint32_t joined;   /* segment: whole, beside a pass of the other direction */
    uint32_t early;    /* segment: recompute that needs no gradient, not in the others but joined;
                          ENGINE_NONE: none */
    uint32_t end;      /* after the last segment of the cut */
};

/* When parameters are gathered and gradients reduced. */
struct traffic {
    bool gather_first; /* before the first forward of each chunk */
    bool gather_every; /* before every pass */
    bool gather_end;   /* after the optimizer */
    bool reduce_last;  /* after the last backward of each chunk */
    bool reduce_every; /* after every backward */
    bool reduce_end;   /* after the last pass of the stage, all at once */
    bool by_unit;      /* FSDP: one collective a layer, gathered one ahead; else by bucket */
    bool overlap_grad, overlap_param;
    double bucket_params;
    double grad_bytes, param_bytes; /* per element */
    enum collective_op reduce_op;   /* reduce-scatter; all-reduce when nothing is sharded */
    struct group_shape shard[N_SHARES], replica[N_SHARES];
};

enum stream_kind {
    STREAM_COMPUTE,
    STREAM_FORWARD,  /* messages to the next stage */
    STREAM_BACKWARD, /* messages to the previous stage */
    STREAM_DENSE,    /* data-parallel communicators: one stream each */
    STREAM_EXPERT,
    STREAM_REPLICA,
    STREAM_HOST,
    STREAM_HOST_OUT,
    STREAM_HOST_IN,
    N_STREAMS
};

enum task_kind {
    TASK_FORWARD,
    TASK_BACKWARD, /* dgrad too */
    TASK_WGRAD,
    TASK_RECOMPUTE, /* early */
    TASK_FIXED,
    TASK_ISSUE,
    TASK_TRANSFER,
    TASK_SEND,
    TASK_GATHER,
    TASK_REDUCE,
    TASK_REPLICAS,
    TASK_TIED,
    TASK_COPIES,
    TASK_NORM,
    TASK_SYNC,
    TASK_OPTIMIZER,
    N_TASK_KINDS
};

struct task_info {
    enum task_kind kind;
    enum stream_kind stream;
    uint32_t stage, micro, chunk;
    uint32_t segment; /* of a forward or backward */
};

/* A stage's place in the graph. */
struct stage {
    uint32_t device, stream[N_STREAMS];
    uint32_t link[N_LINKS][2]; /* out, in; ENGINE_NONE: not modelled */
    double same[N_LINKS];      /* identical flows on one physical link */
    struct flow send[2];       /* to the next, to the previous stage */
    bool host_binds;           /* some pass is issued slower than it runs */
    struct held held;          /* of the whole stage */
    struct flows flows;        /* all of it at once, at the end */
    uint32_t first_task;       /* the first of its compute stream */
    uint32_t grads[5];         /* tasks after which its gradients are complete */
    uint32_t norm;             /* task: norm of its gradients */
};

/* The message a pass waits for and what others wait for. */
struct pass_tasks {
    uint32_t first;   /* its first task */
    uint32_t message; /* the task that delivers its result */
};

struct step {
    struct origins origins; /* of step-level traffic */
    struct ty_allocator allocator;
    struct engine *engine;
    struct record_cache *records;
    struct arena arena; /* the arrays below, but for info */

    /* the plan at hand; setting, plan and slots belong to the caller of the current call */
    const struct setting *setting;
    const struct ty_plan *plan;
    struct pipeline pipeline;
    uint32_t n_stages, n_micro, n_places; /* of the pipeline */
    const struct slot *slots;             /* [n_places] what each place holds */
    struct slot *placed;                  /* the same, where the caller's are in another order */
    size_t placed_capacity;
    struct ty_plan plain; /* the plan without recompute */
    double jitter;        /* factor on the time of passes */
    double pass_fixed_s;  /* share of a pass in the fixed time of a micro-batch */
    const struct record *layer[2][TY_MAX_KINDS][N_PASS_KINDS]; /* [plain][kind] */
    const struct record *end[N_WHATS][N_PASS_KINDS];           /* by enum layer_what */
    struct held held[N_WHATS + TY_MAX_KINDS]; /* of what is no layer, of each kind */
    double kept_bytes[2][TY_MAX_KINDS];       /* [plain][kind]: activations of a layer */
    struct traffic traffic;
    struct group_shape pp;   /* of the pipeline axis */
    bool link_used[N_LINKS]; /* by step-level traffic */
    bool host_always;        /* issue tasks even where the host cannot bind */
    struct sent *sent;       /* [n_sent]; grows with the flows */
    size_t sent_capacity;
    uint32_t n_sent;

    struct segment *segments;
    uint32_t n_segments;
    struct cut *cuts;          /* [n_places][enum pass_kind] */
    struct stage *stages;      /* [n_stages] */
    struct pass_tasks *passes; /* [n_places][n_micro][forward, backward] */
    struct task_info *info;    /* [number of tasks]; grows with the graph */
    size_t info_capacity;
    uint32_t sync_stream;
    bool simulated; /* the engine holds the graph of the last plan, run as far as it went */
};

/* step_work.c: what the passes take */
ty_status step_prepare(struct step *step, const struct setting *setting, const struct ty_plan *plan,
                       const struct slot *slots, struct ty_error *error);
uint32_t step_n_units(const struct slot *slot);
struct unit step_unit(const struct step *step, uint32_t place, uint32_t index);
const struct record *step_record(const struct step *step, const struct unit *unit,
                                 enum pass_kind kind);
/* Does the schedule run passes of this kind? */
bool step_runs(const struct step *step, enum pass_kind kind);
/* Is a segment that holds these parameters complete, when a bucket is of this size? */
bool step_is_full(const struct held *held, double bucket_params);
/* Parameters after which a pass with data-parallel traffic is cut; HUGE_VAL: never. */
double step_bucket_params(const struct traffic *traffic, enum pass_kind kind);
/* The kinds that make up the work of a micro-batch, each part once. */
bool step_counts(const struct step *step, enum pass_kind kind);
/* Share of a pass in the fixed time of a micro-batch. */
double step_pass_fixed_s(const struct step *step, enum pass_kind kind);
/* Time by which a pass is shorter when it runs beside one of the other direction (below). */
double step_hidden_s(const struct step *step, uint32_t place, enum pass_kind kind);
ty_status step_cut(struct step *step); /* fills segments and cuts; needs traffic */

/* step_traffic.c: parameters, data-parallel traffic, optimizer */
void step_traffic(struct step *step); /* fills held and traffic */
const struct held *step_held(const struct step *step, const struct unit *unit);
void step_held_add(struct held *sum, const struct held *held);
void step_held_stage(const struct step *step, uint32_t stage, struct held *out);
ty_status step_flows(struct step *step, uint32_t stage, const struct held *held, bool gather,
                     bool reduce, struct flows *out);
/* Their times alone, as flows of the step. */
void step_exchange_s(const struct step *step, const struct held *held, double gather_s[N_SHARES],
                     double reduce_s[N_SHARES]);
double step_optimizer_s(const struct step *step, const struct held *held);
double step_norm_s(const struct step *step, const struct held *held);
double step_sync_s(const struct step *step);
double step_fixed_s(const struct step *step); /* outside compute */

/* step_links.c: who shares which link */
ty_status step_add_stages(struct step *step); /* devices, streams, links, messages */
/* Shape of the pair of stages. */
void step_pair_shape(const struct step *step, uint32_t from, uint32_t to, struct group_shape *out);
/* One of the n_parts equal collectives a collective of the step is sent in. */
struct collective step_part_of(const struct step *step, const struct collective *collective,
                               double n_parts);
/* The collective in n_parts equal ones, as a task that leaves stage `from` and enters `to`. */
ty_status step_flow(struct step *step, uint32_t from, uint32_t to,
                    const struct collective *collective, double n_parts, struct flow *out);
/* The task of a flow that takes its time alone; without stream, devices and route. */
struct engine_task step_flow_task(const struct setting *setting, const struct sent *sent,
                                  const struct collective_flow *flow);
ty_status step_route(struct step *step, uint32_t from, uint32_t to,
                     const double bytes_per_work[N_LINKS], double cap_work_per_s, uint32_t *route);

/* step_build.c: the graph */
ty_status step_build(struct step *step);

/* step_breakdown.c: where the time went */
struct parts;
enum ty_part step_part(const struct step *step, uint32_t task); /* while others wait for it */
/* Adds the time a task took to what its kernels and collectives are. */
void step_add_task(const struct step *step, uint32_t task, double time_s, struct parts *parts);
void step_breakdown(const struct step *step, struct step_result *out);

#endif
