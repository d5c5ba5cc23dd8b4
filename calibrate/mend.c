/* SPDX-License-Identifier: MIT
 *
 * Runs that took place although the plan, as printed or filled in, breaks a rule of the predictor:
 * sizes are raised to the next multiple that divides, as the frameworks pad them; a batch that is
 * no multiple counts its last, ragged micro-batch as a whole one, which is what the step waits for;
 * chunks and switches fall back to the nearest legal value. TP beyond a scale-up domain stays: the
 * option `measured` lets the predictor time it.
 */
#include "calibrate/run.h"

#include <math.h>
#include <string.h>

#define MAX_GPUS 16777216u /* of a plan */

static uint32_t up_to_multiple(uint32_t value, uint32_t of)
{
    return of > 1 ? (value + of - 1) / of * of : value;
}

/* ---- model ---------------------------------------------------------------------------------- */

/* Heads that were not printed: the count that splits over tp and divides the hidden size, with a
 * head nearest to 128. */
static uint32_t nearest_heads(uint32_t hidden, uint32_t tp)
{
    uint32_t best = 0;
    double least = (double)INFINITY;
    for (uint32_t heads = tp; heads <= hidden; heads += tp) {
        const double distance = fabs(log(hidden / 128.0 / heads));
        if (hidden % heads == 0 && distance < least) {
            least = distance;
            best = heads;
        }
    }
    return best;
}

static void mend_heads(struct ty_run *run, struct ty_layer_kind *kind)
{
    const uint32_t tp = run->plan.tp, asked = kind->n_heads;
    if (asked % tp != 0) {
        const bool plain = kind->n_kv_heads == asked && kind->attention == TY_ATTENTION_HEADS;
        const uint32_t nearest = plain ? nearest_heads(run->model.hidden, tp) : 0;
        kind->n_heads = nearest ? nearest : up_to_multiple(asked, tp);
        if (nearest)
            kind->head_dim = run->model.hidden / nearest;
        if (kind->n_kv_heads == asked)
            kind->n_kv_heads = kind->n_heads;
        run_assume(&run->row, "heads %u -> %u", asked, kind->n_heads);
    }
    if (kind->n_kv_heads % tp != 0 && tp % kind->n_kv_heads != 0)
        kind->n_kv_heads = up_to_multiple(kind->n_kv_heads, tp);
    if (kind->n_kv_heads > kind->n_heads)
        kind->n_kv_heads = kind->n_heads;
    while (kind->n_kv_heads < kind->n_heads && kind->n_heads % kind->n_kv_heads != 0)
        kind->n_kv_heads++;
}

/* Raises a width to a multiple and says so once for all layer kinds. */
static void mend_width(struct ty_run *run, const char *name, uint32_t *width, uint32_t of)
{
    const uint32_t raised = up_to_multiple(*width, of);
    if (raised != *width)
        run_assume(&run->row, "%s %u -> %u", name, *width, raised);
    *width = raised;
}

static void mend_model(struct ty_run *run)
{
    const struct ty_plan *plan = &run->plan;
    for (uint32_t i = 0; i < run->model.n_kinds; i++) {
        struct ty_layer_kind *kind = &run->model.kinds[i];
        if (kind->n_heads && kind->n_kv_heads)
            mend_heads(run, kind);
        mend_width(run, "ffn", &kind->ffn, plan->tp);
        mend_width(run, "shared_ffn", &kind->shared_ffn, plan->tp);
        mend_width(run, "experts", &kind->n_experts, plan->ep);
        mend_width(run, "expert_ffn", &kind->expert_ffn, plan->etp);
        if (kind->n_groups && kind->n_experts % kind->n_groups != 0)
            kind->n_groups = kind->group_limit = 0;
    }
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* A layout larger than the printed GPU count: fewer stages where they fill the GPUs, as tp is a
 * matter of the node; else the GPUs that the layout names. A remainder of GPUs is idle. */
static void mend_gpus(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    const uint64_t stage = (uint64_t)plan->tp * plan->cp, ranks = stage * plan->pp;
    const uint32_t gpus = plan->n_gpus, pp = plan->pp;
    if (gpus % ranks == 0 || ranks > MAX_GPUS)
        return;
    if (gpus < ranks && gpus % stage == 0)
        plan->pp = (uint32_t)(gpus / stage);
    else
        plan->n_gpus = gpus < ranks ? (uint32_t)ranks : gpus - (uint32_t)(gpus % ranks);
    if (plan->pp == 1)
        plan->vpp = 1;
    if (plan->pp != pp)
        run_assume(&run->row, "pp %u -> %u", pp, plan->pp);
    if (plan->n_gpus != gpus)
        run_assume(&run->row, "gpus %u -> %u", gpus, plan->n_gpus);
}

static void mend_experts(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    const uint32_t asked = plan->ep;
    while (plan->ep > 1 && plan->n_gpus % ((uint64_t)plan->etp * plan->ep * plan->pp) != 0)
        plan->ep--;
    while (plan->etp > 1 && plan->n_gpus % ((uint64_t)plan->etp * plan->ep * plan->pp) != 0)
        plan->etp--;
    if (plan->ep != asked)
        run_assume(&run->row, "ep %u -> %u", asked, plan->ep);
}

/* n micro-batches of the printed size or smaller hold the sequences of a replica. */
static void mend_batch(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    const uint32_t dp = (uint32_t)(plan->n_gpus / ((uint64_t)plan->tp * plan->cp * plan->pp));
    if (dp == 0 || plan->mbs == 0)
        return;
    const uint32_t sequences = (plan->gbs + dp - 1) / dp;
    const uint32_t n_micro = (sequences + plan->mbs - 1) / plan->mbs;
    const uint32_t asked = plan->mbs, batch = plan->gbs;
    if (sequences % n_micro == 0)
        plan->mbs = sequences / n_micro;
    plan->gbs = dp * n_micro * plan->mbs;
    if (plan->mbs != asked)
        run_assume(&run->row, "mbs %u -> %u", asked, plan->mbs);
    if (plan->gbs != batch)
        run_assume(&run->row, "gbs %u -> %u", batch, plan->gbs);
}

static bool breaks(const struct ty_run *run, const char *rule)
{
    struct ty_violation broken[32];
    struct ty_plan resolved;
    uint32_t n = 0;
    if (ty_plan_resolve(&run->model, &run->cluster, &run->profile, &run->plan, &resolved, NULL, 0,
                        &n) != TY_OK)
        return false;
    ty_plan_violations(&run->model, &run->cluster, &resolved, broken, 32, &n);
    for (uint32_t i = 0; i < n && i < 32; i++)
        if (strcmp(broken[i].rule, rule) == 0)
            return true;
    return false;
}

static void mend_chunks(struct ty_run *run)
{
    const uint32_t asked = run->plan.vpp;
    while (run->plan.vpp > 1 && (breaks(run, "layers") || breaks(run, "interleave")))
        run->plan.vpp--;
    if (run->plan.vpp != asked)
        run_assume(&run->row, "vpp %u -> %u", asked, run->plan.vpp);
}

static void mend_switches(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    if (plan->sharding == TY_SHARDING_ZERO2 && plan->pp > 1) {
        plan->sharding = TY_SHARDING_ZERO1;
        run_assume(&run->row, "zero2 -> zero1");
    }
    if (plan->shard_group && breaks(run, "shard_group")) {
        run_assume(&run->row, "shard group %u -> all", plan->shard_group);
        plan->shard_group = 0;
    }
    if (breaks(run, "seq_sp")) {
        plan->sp = TY_OFF;
        run_assume(&run->row, "sp -> off");
    }
    for (int i = 0; i < 2 && breaks(run, "precision"); i++) {
        plan->precision = i == 0 ? TY_BF16_PRECISION : TY_FP16_PRECISION;
        run_assume(&run->row, "precision -> %s", i == 0 ? "bf16" : "fp16");
    }
}

/* ---- recompute ------------------------------------------------------------------------------ */

static bool fits(const struct ty_run *run)
{
    ty_predictor *predictor;
    struct ty_prediction answer = {.feasible = true};
    if (ty_predictor_create(&run->model, &run->cluster, &run->profile, NULL, &predictor, NULL) !=
        TY_OK)
        return true; /* refused elsewhere */
    const struct ty_options options = {.rung = TY_RUNG_BOUND};
    if (ty_predictor_run(predictor, &run->plan, &options, &answer, NULL) != TY_OK)
        answer.feasible = true;
    ty_predictor_destroy(predictor);
    return answer.feasible;
}

/* Runs of XLA that cannot have kept all activations repeat 0.6 of the forward pass. Source:
 * ACCURACY 1.9. */
#define XLA_RECOMPUTED_SHARE 0.6

void run_recompute_where_needed(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    if (!plan->pp || fits(run))
        return;
    plan->recompute = TY_RECOMPUTE_FULL;
    plan->recompute_layers = (uint32_t)ceil(XLA_RECOMPUTED_SHARE * run->model.n_layers / plan->pp);
    run_assume(&run->row, "recompute -> full:%u", plan->recompute_layers);
}

void run_mend(struct ty_run *run)
{
    struct ty_plan *plan = &run->plan;
    if (!plan->tp || !plan->pp || !plan->cp || !plan->n_gpus)
        return;
    mend_gpus(run);
    mend_experts(run);
    mend_model(run);
    mend_batch(run);
    mend_chunks(run);
    mend_switches(run);
}
