/* SPDX-License-Identifier: MIT
 *
 * Measured against predicted. With a timeline, both steps are cut into the same lines:
 *
 *   gemm, attention, memory_bound, optimizer
 *   tp, cp, ep, dp             communication that no kernel hides, by the NCCL operations of each
 *                              axis; axes that share one are one line ("tp + dp"), and what no
 *                              axis uses is another
 *   idle and host              nothing runs, or copies: launch, input, checkpoint, offload
 *   pipeline (pp > 1)          waiting for other stages: pp and bubble, sends and receives
 *   unrecognised               kernels whose names say nothing
 *
 * Each line's difference is a cause; the unrecognised ones are what stays unexplained. A pipeline
 * stage that waits without a kernel for it is idle in a profile, so with pp > 1 these two lines are
 * one. Without a timeline there are only candidates: assumptions, and resources that give less.
 */
#include "include/trainyard_gap.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void start(const struct ty_prediction *p, double measured_s, struct ty_gap *gap)
{
    *gap = (struct ty_gap){.predicted_s = p->step_time_s,
                           .measured_s = measured_s,
                           .within_80 =
                               measured_s >= p->interval_80[0] && measured_s <= p->interval_80[1]};
}

/* What explains most first; what works against the gap last. */
static int by_share(const void *a, const void *b)
{
    const double left = ((const struct ty_gap_cause *)a)->explained_pct;
    const double right = ((const struct ty_gap_cause *)b)->explained_pct;
    return (left < right) - (left > right);
}

/* Candidates: what alone comes nearest to the whole gap first. */
static int by_nearness(const void *a, const void *b)
{
    const double left = fabs(((const struct ty_gap_cause *)a)->explained_pct - 100.0);
    const double right = fabs(((const struct ty_gap_cause *)b)->explained_pct - 100.0);
    return (left > right) - (left < right);
}

static struct ty_gap_cause *add_cause(struct ty_gap *gap, double time_s)
{
    static const double LEAST_PCT = 0.5;
    const double total_s = gap->measured_s - gap->predicted_s;
    const double pct = total_s != 0.0 ? 100.0 * time_s / total_s : 0.0;
    if (gap->n_causes == TY_MAX_GAP_CAUSES || !(fabs(pct) >= LEAST_PCT))
        return NULL;
    struct ty_gap_cause *cause = &gap->causes[gap->n_causes++];
    *cause = (struct ty_gap_cause){.time_s = time_s, .explained_pct = pct};
    return cause;
}

/* ---- from a timeline ------------------------------------------------------------------------ */

static void add_line(struct ty_gap *gap, const char *name, double predicted_s, double measured_s)
{
    struct ty_gap_line *line = &gap->lines[gap->n_lines++];
    text_format(line->name, sizeof line->name, "%s", name);
    line->predicted_s = predicted_s;
    line->measured_s = measured_s;
}

/* Which operations an axis uses, as bits of enum ty_activity: 0 for an axis of one rank. */
static uint32_t ops_of(const struct ty_plan *plan, enum ty_part part)
{
    const uint32_t reduce = 1u << TY_ACTIVITY_ALL_REDUCE, exchange = 1u << TY_ACTIVITY_ALL_TO_ALL;
    const uint32_t shards = 1u << TY_ACTIVITY_ALL_GATHER | 1u << TY_ACTIVITY_REDUCE_SCATTER;
    const uint32_t send = 1u << TY_ACTIVITY_SEND_RECV;
    const uint64_t ranks = (uint64_t)plan->dp * plan->cp;
    switch (part) {
    case TY_PART_TP:
        return plan->tp <= 1 ? 0 : plan->sp == TY_ON ? shards : reduce;
    case TY_PART_CP:
        if (plan->cp <= 1)
            return 0;
        return plan->cp_scheme == TY_CP_RING      ? send
               : plan->cp_scheme == TY_CP_ULYSSES ? exchange
                                                  : shards;
    case TY_PART_EP:
        if ((uint64_t)plan->ep * plan->etp <= 1)
            return 0;
        return plan->dispatcher == TY_DISPATCHER_ALLGATHER ? shards : exchange;
    case TY_PART_DP: /* a tied table and the gradient norm are reduced whatever is sharded */
        return reduce | (plan->sharding == TY_SHARDING_NONE || ranks <= 1 ? 0 : shards);
    case TY_PART_PP:
        return plan->pp > 1 ? send : 0;
    default:
        return 0;
    }
}

/* Axes that share an operation cannot be told apart: one line. */
struct comm_line {
    uint32_t ops, parts; /* bits */
    double predicted_s, measured_s;
    char name[48];
};

static void fill_comm_line(const struct ty_prediction *p, const struct ty_timeline *t,
                           struct comm_line *line)
{
    for (uint32_t part = 0; part < TY_N_PARTS; part++) {
        if (!(line->parts >> part & 1))
            continue;
        line->predicted_s += p->breakdown_s[part];
        text_append(line->name, sizeof line->name, "%s%s", *line->name ? " + " : "",
                    ty_part_name((enum ty_part)part));
    }
    for (uint32_t i = 0; i < TY_N_ACTIVITIES; i++)
        line->measured_s += line->ops >> i & 1 ? t->alone_s[i] : 0.0;
}

/* The axes joined by operations; returns their number. all: one line for everything, when the
 * kernels do not say what they are (RCCL's "Generic"). */
static uint32_t comm_lines(const struct ty_prediction *p, const struct ty_timeline *t, bool all,
                           struct comm_line out[5])
{
    static const enum ty_part axes[] = {TY_PART_TP, TY_PART_CP, TY_PART_EP, TY_PART_DP, TY_PART_PP};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct comm_line line = {.ops = ops_of(&p->plan, axes[i]), .parts = 1u << axes[i]};
        if (line.ops == 0 && !(p->breakdown_s[axes[i]] > 0.0))
            continue;
        uint32_t kept = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (all || out[k].ops & line.ops) {
                line.ops |= out[k].ops;
                line.parts |= out[k].parts;
            } else {
                out[kept++] = out[k];
            }
        }
        out[kept] = line;
        n = kept + 1;
    }
    for (uint32_t k = 0; k < n; k++) {
        out[k].ops |= all ? 1u << TY_ACTIVITY_OTHER_COMM : 0u;
        fill_comm_line(p, t, &out[k]);
    }
    return n;
}

static void add_comm(const struct ty_prediction *p, const struct ty_timeline *t, double waiting_s,
                     double idle_s, struct ty_gap *gap)
{
    struct comm_line lines[5];
    const bool all = 2.0 * t->busy_s[TY_ACTIVITY_OTHER_COMM] > t->comm_s;
    const uint32_t n = comm_lines(p, t, all, lines);
    double other_s = 0.0;
    uint32_t told = 0;
    for (uint32_t k = 0; k < n; k++) {
        told |= lines[k].ops;
        if (lines[k].parts >> TY_PART_PP & 1) {
            waiting_s += lines[k].predicted_s;
            idle_s += lines[k].measured_s;
        } else {
            add_line(gap, lines[k].name, lines[k].predicted_s, lines[k].measured_s);
        }
    }
    for (uint32_t i = TY_ACTIVITY_ALL_REDUCE; i <= TY_ACTIVITY_OTHER_COMM; i++)
        other_s += told >> i & 1 ? 0.0 : t->alone_s[i];
    add_line(gap, "other communication", 0.0, other_s);
    add_line(gap, p->plan.pp > 1 ? "pipeline, idle and host" : "idle and host", waiting_s, idle_s);
}

static void add_lines(const struct ty_prediction *p, const struct ty_timeline *t,
                      struct ty_gap *gap)
{
    const double *part_s = p->breakdown_s;
    add_line(gap, "gemm", part_s[TY_PART_GEMM], t->alone_s[TY_ACTIVITY_GEMM]);
    add_line(gap, "attention", part_s[TY_PART_ATTENTION], t->alone_s[TY_ACTIVITY_ATTENTION]);
    add_line(gap, "memory_bound", part_s[TY_PART_MEMORY_BOUND],
             t->alone_s[TY_ACTIVITY_MEMORY_BOUND]);
    add_line(gap, "optimizer", part_s[TY_PART_OPTIMIZER], t->alone_s[TY_ACTIVITY_OPTIMIZER]);
    add_comm(p, t,
             part_s[TY_PART_BUBBLE] + part_s[TY_PART_LAUNCH] + part_s[TY_PART_INPUT_STALL] +
                 part_s[TY_PART_CHECKPOINT] + part_s[TY_PART_OFFLOAD],
             t->idle_s + t->alone_s[TY_ACTIVITY_MEMCPY], gap);
    add_line(gap, "unrecognised kernels", 0.0, t->alone_s[TY_ACTIVITY_UNKNOWN]);
}

static const char *reason_of(const struct ty_gap_line *line)
{
    const bool slower = line->measured_s > line->predicted_s;
    static const struct {
        const char *name, *slower, *faster;
    } reasons[] = {
        {"gemm", "clocks, power limit, shapes or recompute that the plan does not state",
         "the profile of this machine is too slow"},
        {"attention", "another attention kernel than assumed", "a faster attention kernel"},
        {"memory_bound", "kernels that are not fused", "kernels that are fused"},
        {"optimizer", "another optimizer or sharding", "a fused optimizer"},
        {"other communication", "traffic that the plan does not have", ""},
        {"pipeline, idle and host", "a bubble, stragglers, a slow host or input",
         "less waiting than the schedule makes"},
        {"idle and host", "the host issues too slowly, or waits for input", "a faster host"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reasons[i].name, line->name) == 0)
            return slower ? reasons[i].slower : reasons[i].faster;
    return slower ? "overlap that does not happen, a slower fabric, or waiting for other ranks"
                  : "more overlap, or a faster fabric";
}

void ty_gap_of_timeline(const struct ty_prediction *prediction, const struct ty_timeline *timeline,
                        struct ty_gap *out)
{
    start(prediction, timeline->step_s, out);
    add_lines(prediction, timeline, out);
    for (uint32_t i = 0; i + 1 < out->n_lines; i++) {
        const struct ty_gap_line *line = &out->lines[i];
        struct ty_gap_cause *cause = add_cause(out, line->measured_s - line->predicted_s);
        if (!cause)
            continue;
        text_format(cause->text, sizeof cause->text, "%s", line->name);
        if (line->predicted_s > 0.0)
            text_append(cause->text, sizeof cause->text, " %+.0f %%",
                        100.0 * (line->measured_s / line->predicted_s - 1.0));
        text_append(cause->text, sizeof cause->text, ": %s", reason_of(line));
    }
    qsort(out->causes, out->n_causes, sizeof *out->causes, by_share);
    out->unexplained_pct = 100.0; /* what no cause has, small ones and unrecognised kernels */
    for (uint32_t i = 0; i < out->n_causes; i++)
        out->unexplained_pct -= out->causes[i].explained_pct;
}

/* ---- from one figure ------------------------------------------------------------------------ */

static void add_assumptions(const struct ty_prediction *p, struct ty_gap *gap)
{
    for (uint32_t i = 0; i < p->n_notes; i++) {
        const struct ty_note *note = &p->notes[i];
        const double time_s = note->effect_pct / 100.0 * gap->predicted_s;
        struct ty_gap_cause *cause =
            isfinite(time_s) && time_s * (gap->measured_s - gap->predicted_s) > 0.0
                ? add_cause(gap, time_s)
                : NULL;
        if (cause)
            text_format(cause->text, sizeof cause->text, "%s is not %s as assumed", note->field,
                        note->value);
    }
}

/* A tenth less (or more) of a resource: dT = T share / 9, or - T share / 11. */
static void add_resources(const struct ty_explanation *e, struct ty_gap *gap)
{
    const bool slower = gap->measured_s > gap->predicted_s;
    for (uint32_t r = 0; r < TY_RESOURCE_MEMORY; r++) {
        const double share = e->resources[r].path_share;
        struct ty_gap_cause *cause =
            add_cause(gap, gap->predicted_s * share * (slower ? 1.0 / 9.0 : -1.0 / 11.0));
        if (cause)
            text_format(cause->text, sizeof cause->text, "10 %% %s %s than assumed",
                        slower ? "less" : "more", ty_resource_name((enum ty_resource)r));
    }
}

void ty_gap_of_step(const struct ty_prediction *prediction,
                    const struct ty_explanation *explanation, double measured_s, struct ty_gap *out)
{
    start(prediction, measured_s, out);
    add_assumptions(prediction, out);
    add_resources(explanation, out);
    qsort(out->causes, out->n_causes, sizeof *out->causes, by_nearness);
    out->unexplained_pct = 100.0; /* one figure proves none of them */
}
