/* SPDX-License-Identifier: MIT
 *
 * The rules about layers, stages and micro-batches (handbook 11.1): what each schedule needs.
 */
#include "models/layout.h"
#include "models/legality_rules.h"
#include "models/pipeline.h"

bool chunks_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    const uint32_t fixed = pipeline_fixed_chunks((enum ty_schedule)p->schedule);
    return (p->vpp > 1 && p->pp == 1) || (fixed ? p->vpp != fixed : p->vpp == 1);
}

void chunks_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    const uint32_t fixed = pipeline_fixed_chunks((enum ty_schedule)p->schedule);
    if (fixed > 1)
        SAY("this schedule runs %u chunks per stage on pp > 1 stages; here vpp %u, pp %u", fixed,
            p->vpp, p->pp);
    else
        SAY("interleaving needs vpp > 1 and pp > 1; here vpp %u, pp %u, schedule %s", p->vpp, p->pp,
            p->schedule == TY_SCHEDULE_INTERLEAVED ? "interleaved" : "not interleaved");
    LEGAL("vpp 1, or pp > 1 with the interleaved schedule, or vpp 2 with zb-v or dualpipev");
}

bool layers_broken(struct scope *s)
{
    return !layout_slots(s->setting, s->plan, NULL);
}

void layers_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    struct ty_error error = {0};
    if (!layout_check(s->setting, p, &error)) {
        SAY("layout %s", error.text);
        return;
    }
    SAY("%u layers do not fill pp*vpp = %u*%u = %llu chunks evenly, nor with embedding, head and "
        "%u MTP modules counted as layers",
        s->setting->model.n_layers, p->pp, p->vpp, (unsigned long long)p->pp * p->vpp,
        s->setting->model.n_mtp);
}

bool batch_broken(struct scope *s)
{
    const uint64_t round = (uint64_t)s->plan->mbs * s->plan->dp;
    return round && s->plan->gbs % round != 0;
}

void batch_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    const uint64_t round = (uint64_t)p->mbs * p->dp;
    const uint64_t below = p->gbs / round * round;
    SAY("global batch %u is not a multiple of mbs*dp = %u*%u = %llu", p->gbs, p->mbs, p->dp,
        (unsigned long long)round);
    if (below)
        LEGAL("gbs %llu or %llu", (unsigned long long)below, (unsigned long long)(below + round));
    else
        LEGAL("gbs %llu", (unsigned long long)round);
}

/* Micro-batches of a step; 0: another rule says why there are none. */
static uint64_t micro_batches(const struct ty_plan *p)
{
    const uint64_t round = (uint64_t)p->mbs * p->dp;
    return round && p->gbs % round == 0 ? p->gbs / round : 0;
}

/* A last group shorter than the pipeline would leave a stage waiting for itself. */
bool interleave_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    const uint64_t m = micro_batches(p);
    if (p->schedule != TY_SCHEDULE_INTERLEAVED || !m)
        return false;
    return p->pp_group < p->pp || (m % p->pp_group != 0 && m % p->pp_group < p->pp);
}

void interleave_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    const uint64_t round = (uint64_t)p->mbs * p->dp;
    if (p->pp_group != p->pp) {
        SAY("interleaved schedule: groups of %u of %llu micro-batches; each group, the last one "
            "too, needs at least pp %u",
            p->pp_group, (unsigned long long)micro_batches(p), p->pp);
        LEGAL("pp_group %u, or one that leaves a last group of at least %u", p->pp, p->pp);
        return;
    }
    SAY("interleaved schedule: gbs/(mbs*dp) = %u/(%u*%u) = %llu micro-batches are not a multiple "
        "of "
        "pp %u",
        p->gbs, p->mbs, p->dp, (unsigned long long)(p->gbs / round), p->pp);
    LEGAL("gbs: a multiple of mbs*dp*pp = %llu", (unsigned long long)(round * p->pp));
}

bool dualpipe_broken(struct scope *s)
{
    const struct ty_plan *p = s->plan;
    const uint64_t m = micro_batches(p);
    const bool two_ways = p->schedule == TY_SCHEDULE_DUALPIPE;
    if (!two_ways && p->schedule != TY_SCHEDULE_DUALPIPEV)
        return false;
    return (m && m < 2ull * p->pp) || (two_ways && (p->pp % 2 != 0 || m % 2 != 0));
}

void dualpipe_tell(const struct scope *s, struct ty_violation *out)
{
    const struct ty_plan *p = s->plan;
    const bool two_ways = p->schedule == TY_SCHEDULE_DUALPIPE;
    SAY("%s with pp %u and gbs/(mbs*dp) = %llu micro-batches", two_ways ? "dualpipe" : "dualpipev",
        p->pp, (unsigned long long)micro_batches(p));
    LEGAL("%sat least 2*pp = %u micro-batches%s", two_ways ? "an even pp, " : "", 2 * p->pp,
          two_ways ? ", an even number" : "");
}
