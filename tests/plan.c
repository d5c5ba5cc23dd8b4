/* SPDX-License-Identifier: MIT
 * Defaults, derived counts and the notes about them. */
#include "models/setting.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;
static struct notes notes;

static void use(void (*fixture)(struct ty_model *))
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    fixture(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    if (setting_init(&model, &cluster, &profile, &setting, NULL, NULL) != TY_OK)
        ok(false, "setting");
}

static struct ty_plan resolve(const struct ty_plan *plan)
{
    struct ty_plan resolved;
    memset(&notes, 0, sizeof notes);
    plan_resolve(&setting, plan, &resolved, &notes);
    return resolved;
}

static const struct ty_note *note_of(enum ty_note_kind kind, const char *field)
{
    for (uint32_t i = 0; i < notes.n; i++)
        if (notes.note[i].kind == kind && strcmp(notes.note[i].field, field) == 0)
            return &notes.note[i];
    return NULL;
}

static void defaults(void)
{
    use(fixture_llama3_70b);
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 512;
    plan.tp = 8;
    plan.pp = 4;
    const struct ty_plan got = resolve(&plan);
    ok(got.cp == 1 && got.ep == 1 && got.etp == 1 && got.vpp == 1 && got.mbs == 1,
       "sizes left open are 1");
    ok(got.dp == 16 && got.edp == 128 && got.gbs == 64 && got.n_micro == 4,
       "dp = 512/(8*4), edp = 512/4, gbs = dp*pp, one micro-batch per stage");
    ok(got.seq == 4096 && got.precision == TY_BF16_PRECISION &&
           got.recompute == TY_RECOMPUTE_NONE && got.schedule == TY_SCHEDULE_1F1B &&
           got.cp_scheme == TY_CP_RING && got.dispatcher == TY_DISPATCHER_ALLTOALL &&
           got.cuda_graph == TY_OFF && got.compile == TY_OFF && got.moe_imbalance == 1.0,
       "documented defaults of the switches");
    ok(got.shard_group == (got.sharding == TY_SHARDING_NONE ? 1u : 16u), "states over all dp*cp");
    same_text(got.order, "tp-cp-ep-dp-pp", "default order");
    ok(note_of(TY_NOTE_DEFAULTED, "seq") && note_of(TY_NOTE_DEFAULTED, "recompute") &&
           note_of(TY_NOTE_DEFAULTED, "gbs") && !note_of(TY_NOTE_DEFAULTED, "tp"),
       "defaults are named, given values are not");
    const struct ty_note *seq = note_of(TY_NOTE_DEFAULTED, "seq");
    same_text(seq ? seq->value : "", "4096", "a note carries the value");
    uint32_t with_alternative = 0;
    for (uint32_t i = 0; i < notes.n; i++)
        with_alternative += notes.origin[i].path != NULL;
    ok(with_alternative >= 4 && with_alternative < notes.n,
       "some defaults have an alternative worth a second prediction, some have none");

    const struct ty_plan again = resolve(&got);
    ok(memcmp(&again, &got, sizeof got) == 0 && notes.n == 0,
       "resolving a resolved plan changes nothing and says nothing");
}

/* The stack's profile decides the switches left open. */
static void stack_defaults(void)
{
    use(fixture_llama3_70b);
    setting.profile.default_sharding = TY_SHARDING_ZERO3;
    setting.profile.default_grad_dtype = TY_BF16_PRECISION;
    setting.profile.default_sp = TY_OFF;
    setting.profile.default_attention = TY_KERNEL_UNFUSED;
    setting.profile.default_optimizer = TY_OPTIMIZER_SGD;
    setting.profile.default_overlap = TY_OVERLAP_GIVEN;
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 64;
    plan.tp = 8;
    struct ty_plan got = resolve(&plan);
    ok(got.sharding == TY_SHARDING_ZERO3 && got.grad_dtype == TY_BF16_PRECISION &&
           got.sp == TY_OFF && got.attention == TY_KERNEL_UNFUSED &&
           got.optimizer == TY_OPTIMIZER_SGD && got.overlap == TY_OVERLAP_GIVEN,
       "switches left open take the stack's values; GIVEN alone means no overlap");
    ok(got.reshard_after_forward == TY_ON, "ZeRO-3 frees parameters after forward");
    plan.pp = 2;
    ok(resolve(&plan).reshard_after_forward == TY_OFF, "but keeps them in a pipeline");
    setting.cluster.gpu.bf16_flop_per_s = 0;
    ok(resolve(&plan).precision == TY_FP16_PRECISION, "a GPU without BF16 trains in FP16");
}

static void smallest_job(void)
{
    use(fixture_deepseek_v3);
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.tp = 2;
    plan.pp = 2;
    plan.ep = 8;
    const struct ty_plan got = resolve(&plan);
    ok(got.n_gpus == 16 && got.dp == 4 && got.edp == 1,
       "GPUs left open: the least common multiple of 2*2 and 8*2");
    plan.tp = plan.pp = plan.ep = UINT32_MAX;
    plan.cp = plan.etp = plan.gbs = plan.mbs = UINT32_MAX;
    const struct ty_plan huge = resolve(&plan);
    ok(huge.n_gpus == UINT32_MAX && huge.dp == 0, "sizes of 2^32 overflow nothing");
}

static void unused_in(void (*fixture)(struct ty_model *), const char *field,
                      void (*set)(struct ty_plan *))
{
    use(fixture);
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 8;
    resolve(&plan);
    const bool before = note_of(TY_NOTE_UNUSED, field) != NULL;
    set(&plan);
    resolve(&plan);
    ok(!before && note_of(TY_NOTE_UNUSED, field), "%s without effect is named", field);
}

#define SETTER(name, ...)                                                                          \
    static void name(struct ty_plan *plan)                                                         \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
SETTER(set_ep, plan->ep = 8)
SETTER(set_etp, plan->etp = 2)
SETTER(set_dispatcher, plan->dispatcher = TY_DISPATCHER_DEEPEP)
SETTER(set_imbalance, plan->moe_imbalance = 1.3)
SETTER(set_vpp, plan->pp = 2; plan->vpp = 2; plan->schedule = TY_SCHEDULE_GPIPE)
SETTER(set_group, plan->sharding = TY_SHARDING_ZERO3; plan->shard_group = 2)
SETTER(set_scheme, plan->cp_scheme = TY_CP_ULYSSES)
SETTER(set_modules, plan->recompute = TY_RECOMPUTE_FULL; plan->recompute_modules = TY_MODULE_MLP)
SETTER(set_moe_module, plan->recompute = TY_RECOMPUTE_SELECTIVE;
       plan->recompute_modules = TY_MODULE_MOE | TY_MODULE_CORE_ATTN)
SETTER(set_layers, plan->recompute = TY_RECOMPUTE_NONE; plan->recompute_layers = 2)
SETTER(set_sp, plan->sp = TY_ON)
SETTER(set_reshard, plan->sharding = TY_SHARDING_ZERO1; plan->reshard_after_forward = TY_ON)
SETTER(set_overlap, plan->overlap = TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_GIVEN)
SETTER(set_schedule, plan->schedule = TY_SCHEDULE_GPIPE)

static void unused(void)
{
    unused_in(fixture_llama3_8b, "ep", set_ep);
    unused_in(fixture_llama3_8b, "etp", set_etp);
    unused_in(fixture_llama3_8b, "dispatcher", set_dispatcher);
    unused_in(fixture_llama3_8b, "moe_imbalance", set_imbalance);
    unused_in(fixture_deepseek_v3, "moe_imbalance", set_imbalance);
    unused_in(fixture_llama3_8b, "vpp", set_vpp);
    unused_in(fixture_llama3_8b, "shard_group", set_group);
    unused_in(fixture_llama3_8b, "cp_scheme", set_scheme);
    unused_in(fixture_llama3_8b, "recompute_modules", set_modules);
    unused_in(fixture_llama3_8b, "recompute_modules", set_moe_module);
    unused_in(fixture_llama3_8b, "recompute_layers", set_layers);
    unused_in(fixture_llama3_8b, "sp", set_sp);
    unused_in(fixture_llama3_8b, "reshard_after_forward", set_reshard);
    unused_in(fixture_llama3_8b, "overlap", set_overlap);
    unused_in(fixture_llama3_8b, "schedule", set_schedule);
    const struct ty_note *overlap = note_of(TY_NOTE_UNUSED, "overlap");
    ok(overlap == NULL, "notes belong to one plan");

    use(fixture_llama3_8b);
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 16;
    plan.tp = 16;
    resolve(&plan);
    const struct ty_note *copies = note_of(TY_NOTE_DEFAULTED, "kv_replication");
    same_text(copies ? copies->value : "", "2", "8 K/V heads on tp 16: two copies, said");
}

static void public_form(void)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_plan plan, resolved;
    struct ty_note note[2];
    uint32_t n = 0;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PLAN, &plan);
    ok(ty_plan_resolve(&model, &cluster, &profile, &plan, &resolved, note, 2, &n) == TY_OK &&
           n > 2 && resolved.n_gpus == 1,
       "notes beyond the room given are counted");
    model.hidden = 0;
    ok(ty_plan_resolve(&model, &cluster, &profile, &plan, &resolved, NULL, 0, NULL) == TY_ERR_RANGE,
       "a model without width is refused");
}

int main(void)
{
    defaults();
    stack_defaults();
    smallest_job();
    unused();
    public_form();
    return tap_done();
}
