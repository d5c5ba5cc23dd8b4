/* SPDX-License-Identifier: MIT
 * Properties of a step over random legal plans: the bound stays below, the breakdown tiles the
 * step, k times faster hardware is k times faster, a faster part never slows a step in which
 * nothing contends. */
#include "models/memory.h"
#include "models/step_internal.h"
#include "sim/random.h"
#include "tests/step_fixture.h"

enum { N_PLANS = 3000, N_SCALED = 300, N_RAISED = 300 };

static struct step *step;
static struct step_case *c;
static struct random_stream stream;

static uint32_t below(uint32_t n)
{
    return (uint32_t)random_below(&stream, n);
}

static uint32_t power_of_two(uint32_t most)
{
    return 1u << below(most + 1);
}

static void random_model(void)
{
    switch (below(4)) {
    case 0:
        fixture_llama3_8b(&c->model);
        break;
    case 1:
        fixture_llama3_70b(&c->model);
        break;
    case 2:
        fixture_gpt(&c->model, 4096, 24, 32, 51200, 2048);
        break;
    default:
        fixture_deepseek_v3(&c->model);
        c->model.n_layers = 24;
        c->model.n_mtp = below(2);
    }
    if (below(8) == 0)
        c->model.lora_rank = 16;
}

/* Half of the plans in a pipeline name a schedule. */
static void random_schedule(struct ty_plan *plan)
{
    if (plan->pp == 1 || below(2))
        return;
    plan->schedule = 1 + (int)below(TY_SCHEDULE_DUALPIPEV);
    const uint32_t chunks = pipeline_fixed_chunks((enum ty_schedule)plan->schedule);
    plan->vpp = chunks ? chunks : 2 + below(3);
    plan->gbs *= plan->schedule >= TY_SCHEDULE_DUALPIPE ? 2 : 1;
    if (plan->schedule == TY_SCHEDULE_INTERLEAVED && below(2))
        plan->pp_group = plan->pp + below(plan->pp);
}

static void random_plan(void)
{
    struct ty_plan *plan = &c->asked;
    const bool moe = c->model.n_kinds > 1;
    plan->tp = power_of_two(3);
    plan->pp = power_of_two(3);
    plan->cp = below(3) ? 1 : power_of_two(2);
    plan->vpp = plan->pp > 1 && below(2) ? 1 + below(4) : 1;
    plan->ep = moe ? power_of_two(3) : 1;
    plan->n_gpus = plan->tp * plan->pp * plan->cp * power_of_two(5);
    plan->mbs = power_of_two(1);
    plan->gbs =
        plan->n_gpus / (plan->tp * plan->pp * plan->cp) * plan->mbs * plan->pp * (1 + below(3));
    plan->seq = 1024u << below(4);
    plan->sharding = 1 + (int)below(TY_SHARDING_HSDP);
    if (plan->sharding == TY_SHARDING_HSDP || below(2))
        plan->shard_group = power_of_two(4);
    plan->reshard_after_forward = (int)below(3);
    plan->recompute = (int)below(4);
    plan->recompute_layers = below(4);
    plan->precision = below(3) ? TY_BF16_PRECISION : TY_FP8_PRECISION;
    plan->attention = (int)below(3);
    plan->sp = (int)below(3);
    plan->cp_scheme = (int)below(4);
    plan->dispatcher = (int)below(4);
    plan->grad_dtype = below(2) ? TY_FP32_PRECISION : TY_BF16_PRECISION;
    plan->cuda_graph = (int)below(3);
    plan->compile = (int)below(3);
    random_schedule(plan);
    plan->overlap = below(4) ? TY_OVERLAP_GIVEN | below(256) : 0;
    plan->tp_overlap = below(2) ? below(8) : 0;
    plan->comm_sms = below(3) ? 0 : below(60);
    plan->recompute_early = (int)below(3);
    if (below(3) == 0)
        snprintf(plan->order, sizeof plan->order, "tp-cp-ep-pp-dp");
}

/* Draws until a plan is legal. quiet: nothing interferes, nothing overlaps. */
static void draw(bool quiet)
{
    do {
        case_open(c);
        if (!quiet)
            ty_init(TY_KIND_PROFILE, &c->profile);
        random_model();
        random_plan();
        if (below(4) == 0)
            c->cluster.nics_per_node = power_of_two(2);
        if (below(4) == 0) {
            c->cluster.oversubscription = 4.0;
            c->cluster.nodes_per_leaf = 2;
        }
        if (below(4) == 0)
            c->profile.host_layer_s = 0.01;
        if (quiet)
            c->asked.overlap = TY_OVERLAP_GIVEN;
    } while (!case_ready(c));
}

static bool simulate(struct step_result *out)
{
    return step_simulate(step, &c->setting, &c->plan, c->slots, NULL, out, NULL) == TY_OK;
}

static void describe(const char *what, double got, double want)
{
    const struct ty_plan *p = &c->plan;
    printf("#   %s: got %.17g, want %.17g\n", what, got, want);
    printf("#   gpus %u tp %u pp %u vpp %u cp %u ep %u mbs %u gbs %u seq %u sharding %d/%u reshard "
           "%d recompute %d overlap %x order %s schedule %d hidden %u\n",
           p->n_gpus, p->tp, p->pp, p->vpp, p->cp, p->ep, p->mbs, p->gbs, p->seq, p->sharding,
           p->shard_group, p->reshard_after_forward, p->recompute, p->overlap, p->order,
           p->schedule, c->model.hidden);
}

static void test_bound_and_breakdown(void)
{
    uint32_t n_low = 0, n_sum = 0, n_run = 0, n_sane = 0, n_of[TY_SCHEDULE_DUALPIPEV + 1] = {0};
    double tightest = 0.0;
    for (uint32_t i = 0; i < N_PLANS; i++) {
        struct step_result result;
        double bound_s, sum_s = 0.0;
        draw(false);
        if (step_bound(step, &c->setting, &c->plan, c->slots, &bound_s) != TY_OK ||
            !simulate(&result))
            continue;
        n_run++;
        n_of[c->plan.schedule]++;
        bool sane = result.time_s > 0.0 && result.time_s < 1e9 && result.flop_hw_per_gpu > 0.0 &&
                    result.bubble_ratio >= 0.0 && result.bubble_ratio < 1.0;
        for (int part = 0; part < TY_N_PARTS; part++) {
            sum_s += result.breakdown_s[part];
            sane = sane && result.breakdown_s[part] >= 0.0;
        }
        n_sane += sane;
        tightest = fmax(tightest, bound_s / result.time_s);
        const bool low = bound_s * (1 - 1e-9) <= result.time_s;
        const bool tiles = fabs(sum_s - result.time_s) <= 1e-12 * result.time_s;
        n_low += low;
        n_sum += tiles;
        if (!low && n_low + 5 > n_run)
            describe("bound", bound_s, result.time_s);
        if (!tiles && n_sum + 5 > n_run)
            describe("breakdown", sum_s, result.time_s);
    }
    ok(n_run == N_PLANS, "%u random legal plans simulated", n_run);
    uint32_t rarest = N_PLANS;
    for (int i = TY_SCHEDULE_GPIPE; i <= TY_SCHEDULE_DUALPIPEV; i++)
        rarest = n_of[i] < rarest ? n_of[i] : rarest;
    ok(rarest >= 50, "%u plans or more of every schedule", rarest);
    ok(n_low == N_PLANS, "bound x (1 - 1e-9) <= simulated (largest ratio %.6f)", tightest);
    ok(n_sum == N_PLANS, "the breakdown adds up to the step to 1e-12");
    ok(n_sane == N_PLANS, "no negative line, finite time");
}

/* Stage by stage, the units of the step hold what the memory model counts. */
static void test_parameters(void)
{
    uint32_t n_good = 0, n = 0;
    for (uint32_t i = 0; i < 300; i++) {
        struct step_result result;
        draw(true);
        if (!simulate(&result))
            continue;
        for (uint32_t at = 0; at < c->plan.pp; at++) {
            double dense, expert;
            memory_rank_params(&c->setting, &c->plan, c->slots, at, &dense, &expert);
            const struct held *held = &step->stages[at].held;
            n++;
            n_good += fabs(held->params[SHARE_DENSE] - dense) <= 1e-9 * dense &&
                      fabs(held->params[SHARE_EXPERT] - expert) <= 1e-9 * expert;
        }
    }
    ok(n > 300 && n_good == n, "parameters of %u stages as the memory model has them", n);
}

/* ---- scaling ------------------------------------------------------------------------------ */

static void times(double *value, double k)
{
    *value *= k;
}

/* Every rate x k, every latency and fixed time / k. */
static void scale(struct setting *setting, double k)
{
    struct ty_gpu *gpu = &setting->cluster.gpu;
    struct ty_cluster *cluster = &setting->cluster;
    struct ty_profile *profile = &setting->profile;
    double *const rates[] = {&gpu->bf16_flop_per_s,
                             &gpu->fp16_flop_per_s,
                             &gpu->fp8_flop_per_s,
                             &gpu->tf32_flop_per_s,
                             &gpu->fp32_flop_per_s,
                             &gpu->mem_bytes_per_s,
                             &gpu->scaleup_bytes_per_s,
                             &gpu->pcie_bytes_per_s,
                             &cluster->scaleup_bytes_per_s,
                             &cluster->nic_bytes_per_s,
                             &profile->attention_flop_per_s,
                             &profile->allreduce_busbw_bytes_per_s,
                             &profile->allgather_busbw_bytes_per_s};
    double *const fixed[] = {
        &cluster->nic_latency_s,        &profile->kernel_floor_s, &profile->launch_issue_s,
        &profile->collective_latency_s, &profile->p2p_latency_s,  &profile->host_layer_s,
        &profile->step_fixed_s,         &profile->micro_fixed_s,  &profile->dropless_host_s};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        times(rates[i], k);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        times(fixed[i], 1.0 / k);
}

static void test_scaling(void)
{
    uint32_t n_good = 0;
    for (uint32_t i = 0; i < N_SCALED; i++) {
        struct step_result before, after;
        const double k = 0.3 + 4.0 * random_unit(&stream);
        draw(false);
        if (!simulate(&before))
            continue;
        scale(&c->setting, k);
        if (!simulate(&after))
            continue;
        const bool good = fabs(after.time_s * k - before.time_s) <= 1e-9 * before.time_s;
        n_good += good;
        if (!good)
            describe("scaled", after.time_s * k, before.time_s);
    }
    ok(n_good == N_SCALED, "rates x k, times / k: the step / k to 1e-9");
}

/* ---- one rate at a time ------------------------------------------------------------------- */

/* Raises one rate, or lowers one time, of the setting. */
static void raise(struct setting *setting, uint32_t which)
{
    struct ty_profile *profile = &setting->profile;
    switch (which) {
    case 0:
        times(&setting->cluster.gpu.bf16_flop_per_s, 1.5);
        times(&setting->cluster.gpu.fp8_flop_per_s, 1.5);
        break;
    case 1:
        times(&setting->cluster.gpu.mem_bytes_per_s, 1.5);
        break;
    case 2:
        times(&setting->cluster.nic_bytes_per_s, 1.5);
        break;
    case 3:
        times(&setting->cluster.gpu.scaleup_bytes_per_s, 1.5);
        times(&setting->cluster.scaleup_bytes_per_s, 1.5);
        times(&profile->allgather_busbw_bytes_per_s, 1.5);
        times(&profile->allreduce_busbw_bytes_per_s, 1.5);
        break;
    case 4:
        times(&profile->p2p_latency_s, 0.5);
        break;
    case 5:
        times(&profile->collective_latency_s, 0.5);
        break;
    default:
        times(&profile->attention_flop_per_s, 1.5);
    }
}

static void test_monotone(void)
{
    uint32_t n_good = 0, n_faster = 0;
    for (uint32_t i = 0; i < N_RAISED; i++) {
        struct step_result before, after;
        draw(true);
        if (!simulate(&before))
            continue;
        raise(&c->setting, i % 7);
        if (!simulate(&after))
            continue;
        const bool good = after.time_s <= before.time_s * (1 + 1e-9);
        n_good += good;
        n_faster += after.time_s < before.time_s * (1 - 1e-9);
        if (!good)
            describe("raised", after.time_s, before.time_s);
    }
    ok(n_good == N_RAISED, "a faster part never slows a step without overlap");
    ok(n_faster > N_RAISED / 3, "and often makes it faster (%u of %d)", n_faster, N_RAISED);
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    random_init(&stream, 20240601, 0);
    test_bound_and_breakdown();
    test_parameters();
    test_scaling();
    test_monotone();
    step_destroy(step);
    free(c);
    return tap_done();
}
