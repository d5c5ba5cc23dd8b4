/* SPDX-License-Identifier: MIT
 * Legality: the reported divisibility cases D01..D15 of the shared case list (the issue threads
 * named there), every rule once, several at once, and the two forms against each other. */
#include "models/legality.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#define MAX_VIOLATIONS 32

static struct setting setting;
static struct ty_plan plan, resolved;
static struct ty_violation found[MAX_VIOLATIONS];
static uint32_t n_found;

static void use(const struct ty_model *model)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_error error = {0};
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    if (setting_init(model, &cluster, &profile, &setting, NULL, &error) != TY_OK)
        ok(false, "setting: %s %s", error.where, error.text);
    ty_init(TY_KIND_PLAN, &plan);
}

static void use_llama(uint32_t layers, uint32_t heads, uint32_t kv_heads, uint32_t head_dim)
{
    struct ty_model model;
    fixture_llama(&model, heads * head_dim, layers, heads, kv_heads, head_dim, 4 * heads * head_dim,
                  32000);
    use(&model);
}

static void judge(void)
{
    plan_resolve(&setting, &plan, &resolved, NULL);
    legality_violations(&setting, &resolved, found, MAX_VIOLATIONS, &n_found);
}

static const struct ty_violation *rule(const char *name)
{
    for (uint32_t i = 0; i < n_found && i < MAX_VIOLATIONS; i++)
        if (strcmp(found[i].rule, name) == 0)
            return &found[i];
    return NULL;
}

static void only(const char *name, const char *what)
{
    judge();
    if (!ok(n_found == 1 && rule(name), "%s: %s", name, what))
        for (uint32_t i = 0; i < n_found; i++)
            printf("#   %s: %s [%s]\n", found[i].rule, found[i].text, found[i].legal);
}

static void legal(const char *what)
{
    judge();
    if (!ok(n_found == 0, "legal: %s", what))
        for (uint32_t i = 0; i < n_found; i++)
            printf("#   %s: %s [%s]\n", found[i].rule, found[i].text, found[i].legal);
}

static bool has(const char *text, const char *part)
{
    const bool there = text && strstr(text, part);
    if (!there)
        printf("#   no \"%s\" in \"%s\"\n", part, text ? text : "(none)");
    return there;
}

/* ---- reported cases ----------------------------------------------------------------------------
 */

static void reported(void)
{
    use_llama(80, 64, 8, 128);
    plan.n_gpus = 16;
    plan.pp = 16;
    plan.vpp = 2;
    only("layers", "D01 80 layers on pp 16, vpp 2");
    ok(has(rule("layers")->text, "80 layers") && has(rule("layers")->text, "16*2 = 32") &&
           has(rule("layers")->legal, "vpp in {1, 5}") && has(rule("layers")->legal, "8, 10, 20"),
       "D01 names the factors and the legal vpp and pp");

    use_llama(8, 52, 52, 64);
    plan.n_gpus = plan.tp = 8;
    judge();
    ok(rule("heads_tp") && has(rule("heads_tp")->text, "52 attention heads") &&
           has(rule("heads_tp")->legal, "tp in {1, 2, 4, 13, 26, 52}; inside a domain of 8: "
                                        "{1, 2, 4}"),
       "D03 52 heads on tp 8");

    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model);
    plan.n_gpus = plan.ep = 8;
    plan.pp = 2;
    only("expert_gpus", "D05 8 GPUs for etp 1, ep 8, pp 2");
    ok(has(rule("expert_gpus")->text, "1*8*2 = 16") &&
           has(rule("expert_gpus")->legal, "a multiple of 16") &&
           has(rule("expert_gpus")->legal, "ep in {1, 2, 4}"),
       "D05 prints every factor: 16 GPUs or ep 4");

    fixture_deepseek_v3(&model);
    model.n_layers = 48;
    use(&model);
    plan.n_gpus = 4;
    plan.pp = plan.ep = 2;
    plan.vpp = 24;
    plan.gbs = 512;
    legal("D07 4 GPUs for ep 2, pp 2, vpp 24 (the reported error was another ep)");

    use_llama(48, 32, 4, 128);
    plan.n_gpus = plan.tp = 4;
    legal("D09 4 K/V heads on tp 4");
    plan.n_gpus = plan.tp = 8;
    legal("D09 on tp 8 they are copied");

    use_llama(8, 32, 8, 128);
    plan.n_gpus = 1;
    plan.gbs = 48;
    plan.mbs = 11;
    only("batch", "D11 a ragged last micro-batch, 48 = 4*11 + 4");
    ok(has(rule("batch")->legal, "gbs 44 or 55"), "D11 names the nearest batches");

    fixture_deepseek_v3(&model);
    use(&model);
    plan.n_gpus = plan.ep = 72;
    only("experts_ep", "D13 256 experts on ep 72");
    ok(has(rule("experts_ep")->legal, "32, 64, 128"), "D13 offers ep 64");

    use_llama(80, 64, 8, 128);
    plan.n_gpus = plan.tp = 8;
    plan.pp = 2;
    judge();
    ok(rule("gpus") && has(rule("gpus")->text, "8*1*2 = 16"), "D15 tp 8, pp 2 need 16 GPUs, not 8");
}

/* ---- every rule --------------------------------------------------------------------------------
 */

static void machine_rules(void)
{
    use_llama(32, 32, 8, 128);
    plan.n_gpus = plan.tp = 16;
    plan.n_gpus = 32;
    only("tp_domain", "tp 16 on nodes of 8");
    ok(has(rule("tp_domain")->legal, "{1, 2, 4, 8}"), "tp_domain lists what fits");
    setting.cluster.n_nodes = 2;
    plan.tp = 8;
    only("cluster_size", "32 GPUs of 16");
    setting.cluster.n_nodes = 0;
    plan.precision = TY_NVFP4_PRECISION;
    only("precision", "Hopper has no FP4");
    ok(has(rule("precision")->legal, "bf16") && has(rule("precision")->legal, "fp8"),
       "precision lists what the GPU has");
}

static void split_rules(void)
{
    use_llama(32, 32, 8, 128);
    plan.n_gpus = 8;
    plan.tp = 8;
    setting.model.kinds[0].ffn = 14340;
    only("ffn_tp", "inner size 14340 on tp 8");
    ok(has(rule("ffn_tp")->legal, "{1, 2, 3, 4, 5, 6, 10"), "divisors of 14340");

    use_llama(32, 30, 10, 128);
    plan.n_gpus = plan.tp = 6;
    setting.model.kinds[0].ffn = 14400;
    plan.seq = 4098;
    only("kv_heads_tp", "10 K/V heads on tp 6");

    use_llama(32, 32, 8, 128);
    plan.n_gpus = 8;
    plan.cp = 8;
    plan.seq = 4104;
    only("seq_cp", "4104 tokens in 16 chunks");
    plan.seq = 4096;
    plan.cp_scheme = TY_CP_ULYSSES;
    legal("32 heads, 8 K/V heads over 8 ranks of all-to-all");
    plan.n_gpus = plan.cp = 64;
    only("ulysses_heads", "32 heads over 64 ranks");

    plan.cp = 1;
    plan.cp_scheme = 0;
    plan.n_gpus = plan.tp = 8;
    plan.seq = 4100;
    only("seq_sp", "4100 tokens over tp 8 with sequence parallel");
    plan.sp = TY_OFF;
    legal("the same without sequence parallel");

    struct ty_model model;
    fixture_deepseek_v3(&model);
    model.kinds[1].expert_ffn = 2040;
    use(&model);
    plan.n_gpus = plan.etp = 16;
    only("expert_ffn_etp", "expert size 2040 on etp 16");
}

static void schedule_rules(void)
{
    use_llama(32, 32, 8, 128);
    plan.n_gpus = 16;
    plan.vpp = 2;
    only("chunks", "vpp 2 without a pipeline");
    plan.vpp = 0;
    plan.pp = 4;
    plan.schedule = TY_SCHEDULE_INTERLEAVED;
    only("chunks", "interleaved with one chunk");
    plan.schedule = 0;
    plan.vpp = 2;
    plan.gbs = 24;
    only("interleave", "6 micro-batches on 4 stages");
    ok(has(rule("interleave")->text, "24/(1*4) = 6"), "interleave prints its factors");
    plan.gbs = 32;
    legal("8 micro-batches on 4 stages");
    plan.sharding = TY_SHARDING_ZERO2;
    only("zero2_pp", "ZeRO-2 in a pipeline");
    plan.sharding = TY_SHARDING_ZERO3;
    legal("ZeRO-3 in a pipeline");
    plan.sharding = TY_SHARDING_HSDP;
    plan.shard_group = 3;
    only("shard_group", "groups of 3 in 4 ranks");
    plan.shard_group = 2;
    legal("groups of 2 in 4 ranks");
}

/* What each schedule needs: Megatron's rule of groups, two chunks for a V, an even pipeline and an
 * even number of at least 2 pp micro-batches for DualPipe (handbook 11.1). */
static void orders(void)
{
    use_llama(32, 32, 8, 128);
    plan.n_gpus = plan.pp = 4;
    plan.vpp = 2;
    plan.gbs = 16;
    plan.pp_group = 6;
    legal("groups of 6 of 16 micro-batches: the last has 4 = pp");
    plan.gbs = 15;
    only("interleave", "the last of 15 has 3");
    plan.pp_group = 3;
    only("interleave", "groups of 3 on 4 stages");
    ok(has(rule("interleave")->text, "needs at least pp 4"), "which a group must fill");
    plan.pp_group = 0;
    plan.schedule = TY_SCHEDULE_ZB_V;
    plan.vpp = 0;
    legal("ZB-V, any number of micro-batches");
    ok(resolved.vpp == 2, "brings its two chunks");
    plan.vpp = 4;
    only("chunks", "ZB-V with four chunks");
    plan.schedule = TY_SCHEDULE_DUALPIPE;
    plan.vpp = 0;
    only("dualpipe", "15 micro-batches are odd");
    plan.gbs = 6;
    only("dualpipe", "6 are fewer than 2 pp");
    ok(has(rule("dualpipe")->legal, "2*pp = 8"), "says how many");
    plan.gbs = 8;
    legal("8 are enough");
    plan.n_gpus = plan.pp = 1;
    legal("one stage: the schedule has no meaning");
    ok(resolved.schedule == TY_SCHEDULE_1F1B, "and is dropped");
    plan.n_gpus = plan.pp = 5;
    plan.gbs = 10;
    only("dualpipe", "5 stages are odd");
    plan.schedule = TY_SCHEDULE_DUALPIPEV;
    plan.n_gpus = plan.pp = 4;
    plan.gbs = 9;
    legal("DualPipeV takes odd numbers");
    plan.gbs = 7;
    only("dualpipe", "from 2 pp on");
}

static void other_rules(void)
{
    struct ty_model model;
    fixture_gpt(&model, 1024, 24, 16, 50304, 2048);
    use(&model);
    plan.n_gpus = 8;
    plan.seq = 4096;
    only("positions", "4096 tokens of 2048 learned positions");
    plan.seq = 0;
    legal("the default length is what the model has");
    snprintf(plan.order, sizeof plan.order, "pp-tp-cp-ep-dp");
    only("order", "tp must be first");
    plan.order[0] = '\0';

    fixture_deepseek_v3(&model);
    use(&model);
    plan.n_gpus = 64;
    plan.tp = plan.pp = 2;
    plan.ep = 8;
    snprintf(plan.order, sizeof plan.order, "tp-cp-ep-pp-dp");
    only("order_experts", "stages of tp 2 are not stages of ep 8 when pp is inside");
    plan.order[0] = '\0';
    legal("with pp last they are");
    plan.moe_imbalance = 0.5;
    only("moe_imbalance", "0.5");
    plan.moe_imbalance = INFINITY;
    only("moe_imbalance", "infinite");

    plan_resolve(&setting, &plan, &resolved, NULL);
    resolved.sharding = 77;
    legality_violations(&setting, &resolved, found, MAX_VIOLATIONS, &n_found);
    ok(n_found == 1 && rule("switches"), "a value outside its list");
    resolved.pp = 0;
    legality_violations(&setting, &resolved, found, MAX_VIOLATIONS, &n_found);
    ok(n_found == 2 && rule("sizes"), "a size of 0 divides nothing");
}

static void several_at_once(void)
{
    use_llama(30, 52, 52, 64);
    plan.n_gpus = 50;
    plan.tp = 8;
    plan.pp = 4;
    plan.vpp = 2;
    plan.gbs = 7;
    plan.seq = 100;
    plan.precision = TY_NVFP4_PRECISION;
    judge();
    ok(rule("gpus") && rule("heads_tp") && rule("kv_heads_tp") && rule("seq_sp") &&
           rule("precision") && n_found == 5,
       "five broken rules are reported together (the layout of 30 + 2 layers is legal)");
    uint32_t n = 0;
    struct ty_violation one[1];
    legality_violations(&setting, &resolved, one, 1, &n);
    ok(n == 5 && strcmp(one[0].rule, found[0].rule) == 0, "the count goes beyond the room given");

    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    ty_plan_violations(&setting.model, &cluster, &resolved, NULL, 0, &n);
    ok(n == 5, "the public form needs no profile");
}

/* ---- both forms ---------------------------------------------------------------------------------
 */

static uint32_t next_random(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static void forms_agree(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16};
    struct ty_model model;
    fixture_deepseek_v3(&model);
    use(&model);
    uint32_t state = 3, wrong = 0, n_legal = 0, hanging = 0;
    for (uint32_t trial = 0; trial < 20000; trial++) {
        plan.n_gpus = 16u << next_random(&state, 6);
        plan.tp = sizes[next_random(&state, 6)];
        plan.pp = sizes[next_random(&state, 6)];
        plan.vpp = 1 + next_random(&state, 4);
        plan.cp = sizes[next_random(&state, 3)];
        plan.ep = sizes[next_random(&state, 6)];
        plan.mbs = 1 + next_random(&state, 2);
        plan.gbs = 64 * (1 + next_random(&state, 8));
        plan_resolve(&setting, &plan, &resolved, NULL);
        uint32_t n = 0;
        legality_violations(&setting, &resolved, NULL, 0, &n);
        const enum ty_reject reject = legality_reject(&setting, &resolved);
        wrong += (n == 0) != (reject == TY_N_REJECTS);
        n_legal += n == 0;
        /* G = t c p D = et e p D_e and B = b m D, whenever the plan passes */
        const struct ty_plan *p = &resolved;
        hanging += n == 0 && (p->tp * p->cp * p->pp * p->dp != p->n_gpus ||
                              p->etp * p->ep * p->pp * p->edp != p->n_gpus ||
                              p->mbs * p->n_micro * p->dp != p->gbs);
    }
    ok(wrong == 0 && n_legal > 100, "both forms agree on 20000 plans, %u of them legal", n_legal);
    ok(hanging == 0, "legal plans multiply out exactly");
}

int main(void)
{
    reported();
    machine_rules();
    split_rules();
    schedule_rules();
    orders();
    other_rules();
    several_at_once();
    forms_agree();
    return tap_done();
}
