/* SPDX-License-Identifier: MIT
 * Layer records: sums, overlap bounds, bytes of handbook 2.1, cache. */
#include "models/record.h"
#include "tests/step_fixture.h"

static struct engine *engine;
static struct record_cache *cache;
static struct step_case *c;

static const struct record *get(enum layer_what what, enum layer_phase phase)
{
    const struct record *record = NULL;
    record_cache_use(cache, &c->setting);
    if (record_get(cache, engine, &c->setting, &c->plan, what, 0, phase, &record) != TY_OK)
        exit(1);
    return record;
}

static void llama_70b(uint32_t tp, uint32_t overlap)
{
    case_open(c);
    fixture_llama3_70b(&c->model);
    c->asked.tp = tp;
    c->asked.seq = 8192;
    c->asked.overlap = overlap | TY_OVERLAP_GIVEN;
    if (!case_ready(c))
        exit(1);
}

static double sum_of(const double part_s[TY_N_PARTS])
{
    double sum = 0.0;
    for (int i = 0; i < TY_N_PARTS; i++)
        sum += part_s[i];
    return sum;
}

/* Independent sums over the items of a pass. */
static void add_up(enum layer_phase phase, double *kernels_s, double *collectives_s)
{
    static struct item_list items;
    layer_items(&c->setting, &c->plan, WHAT_LAYER, 0, phase, &items);
    *kernels_s = *collectives_s = 0.0;
    for (uint32_t i = 0; i < items.n; i++)
        if (items.item[i].is_collective)
            *collectives_s += collective_time_s(&c->setting, &items.item[i].collective);
        else
            *kernels_s += kernel_time_s(&c->setting, &items.item[i].kernel);
}

static void test_serial(void)
{
    double kernels_s, collectives_s;
    llama_70b(1, 0);
    add_up(PHASE_FORWARD, &kernels_s, &collectives_s);
    near(get(WHAT_LAYER, PHASE_FORWARD)->time_s, kernels_s, 1e-12, "tp 1: the sum of the kernels");
    llama_70b(8, 0);
    add_up(PHASE_FORWARD, &kernels_s, &collectives_s);
    const struct record *record = get(WHAT_LAYER, PHASE_FORWARD);
    near(record->time_s, kernels_s + collectives_s, 1e-12,
         "tp 8 without overlap: kernels and collectives one after the other");
    near(record->part_s[TY_PART_TP], collectives_s, 1e-12, "the collectives are all exposed");
    ok(record->part_s[TY_PART_LAUNCH] == 0.0 && record->part_s[TY_PART_BUBBLE] == 0.0,
       "no launch gap, no bubble inside a layer");
}

/* UT-2.3: s=8192, b=1, h=8192, bf16, t=8, SP. */
static void test_bytes(void)
{
    llama_70b(8, 0);
    near(get(WHAT_LAYER, PHASE_FORWARD)->link_bytes[LINK_SCALEUP], 469762048.0, 1e-12,
         "UT-2.3 forward wire bytes of a layer");
    near(get(WHAT_LAYER, PHASE_BACKWARD)->link_bytes[LINK_SCALEUP], 704643072.0, 1e-12,
         "UT-2.3 backward wire bytes of a layer");
    ok(get(WHAT_LAYER, PHASE_FORWARD)->link_bytes[LINK_NIC] == 0.0, "none on the NIC");
}

/* handbook 11.6 (7): overlap never beats the larger, never exceeds the (slowed) sum. */
static void test_overlap(void)
{
    bool bounded = true, faster = true;
    for (uint32_t tp = 2; tp <= 8; tp *= 2)
        for (uint32_t seq = 1024; seq <= 16384; seq *= 2)
            for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
                double kernels_s, collectives_s;
                llama_70b(tp, TY_OVERLAP_TP);
                c->asked.seq = seq;
                case_ready(c);
                add_up((enum layer_phase)phase, &kernels_s, &collectives_s);
                const double beside_s = get(WHAT_LAYER, (enum layer_phase)phase)->time_s;
                bounded = bounded && beside_s >= fmax(kernels_s, collectives_s) * (1 - 1e-12) &&
                          beside_s <= (kernels_s + collectives_s) * (1 + 1e-12);
                faster = faster && beside_s < kernels_s + collectives_s;
            }
    ok(bounded, "overlapped: between the larger of the two and their sum");
    ok(faster, "overlapped: faster than one after the other");

    llama_70b(8, TY_OVERLAP_TP);
    const double free_s = get(WHAT_LAYER, PHASE_FORWARD)->time_s;
    c->profile.slow_compute_scaleup = 0.15;
    case_ready(c);
    ok(get(WHAT_LAYER, PHASE_FORWARD)->time_s > free_s, "interference costs time");
}

static void test_parts(void)
{
    bool tiles = true, positive = true;
    uint32_t n = 0;
    for (uint32_t tp = 1; tp <= 8; tp *= 2)
        for (uint32_t cp = 1; cp <= 4; cp *= 2)
            for (int recompute = TY_RECOMPUTE_NONE; recompute <= TY_RECOMPUTE_FULL; recompute++)
                for (int what = WHAT_LAYER; what <= WHAT_HEAD; what++) {
                    llama_70b(tp, TY_OVERLAP_TP | TY_OVERLAP_CP);
                    c->asked.cp = cp;
                    c->asked.recompute = recompute;
                    ty_init(TY_KIND_PROFILE, &c->profile); /* with interference */
                    if (!case_ready(c))
                        exit(1);
                    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
                        const struct record *r =
                            get((enum layer_what)what, (enum layer_phase)phase);
                        tiles = tiles && fabs(sum_of(r->part_s) - r->time_s) <= 1e-12 * r->time_s;
                        positive = positive && r->time_s > 0;
                        n++;
                    }
                }
    ok(tiles, "parts add up to the time to 1e-12 (%u records)", n);
    ok(positive, "every pass takes time");
}

static void test_host(void)
{
    static struct item_list items;
    llama_70b(8, 0);
    c->profile.launch_issue_s = 7e-6;
    case_ready(c);
    layer_items(&c->setting, &c->plan, WHAT_LAYER, 0, PHASE_FORWARD, &items);
    near(get(WHAT_LAYER, PHASE_FORWARD)->host_s, 7e-6 * items.n_launches, 1e-12,
         "host: launches x issue time");
    c->profile.host_layer_s = 0.01;
    c->profile.host_tp_growth = 0.1;
    case_ready(c);
    near(get(WHAT_LAYER, PHASE_FORWARD)->host_s, 0.01 * 1.3, 1e-12,
         "host: the stack's time per layer grows with log2 tp");
    near(get(WHAT_LAYER, PHASE_BACKWARD)->host_s, 0.01 * 1.3 * 1.3, 1e-12,
         "host: backward 1.3 times (ACCURACY 1.6)");
    const double beside_s = get(WHAT_LAYER, PHASE_FORWARD)->time_s;
    c->asked.launch_blocking = TY_ON;
    case_ready(c);
    near(get(WHAT_LAYER, PHASE_FORWARD)->time_s, beside_s + 0.01 * 1.3, 1e-12,
         "blocking launches: the host's time adds to the kernels'");
    near(get(WHAT_LAYER, PHASE_FORWARD)->part_s[TY_PART_LAUNCH], 0.01 * 1.3, 1e-12,
         "and is booked as launch");
    c->asked.cuda_graph = TY_ON;
    case_ready(c);
    ok(get(WHAT_LAYER, PHASE_FORWARD)->host_s == 0.0, "a CUDA graph leaves the host nothing");
}

/* A layer of 8 experts, 2 of them per token: time with a wait for the host of 1 ms less that
 * without. */
static double dropless_wait_s(enum layer_phase phase)
{
    c->profile.dropless_host_s = 0.0;
    case_ready(c);
    const double without_s = get(WHAT_LAYER, phase)->time_s;
    c->profile.dropless_host_s = 1e-3;
    case_ready(c);
    const struct record *record = get(WHAT_LAYER, phase);
    near(record->time_s, sum_of(record->part_s), 1e-12, "dropless: parts add up to the time");
    return record->time_s - without_s;
}

/* Experts of that inner size: forward in a release that takes twice the time, over the time
 * without. */
static double release_effect(uint32_t expert_ffn)
{
    c->model.kinds[0].expert_ffn = expert_ffn;
    c->profile.moe_time_ratio = 1.0;
    case_ready(c);
    const double plain_s = get(WHAT_LAYER, PHASE_FORWARD)->time_s;
    c->profile.moe_time_ratio = 2.0;
    case_ready(c);
    return get(WHAT_LAYER, PHASE_FORWARD)->time_s / plain_s;
}

static void test_releases(void)
{
    llama_70b(1, 0);
    c->model.kinds[0].mlp = TY_MLP_MOE;
    c->model.kinds[0].n_experts = 8;
    c->model.kinds[0].top_k = 2;
    c->asked.cuda_graph = TY_ON;
    near(release_effect(8192), sqrt(2.0), 1e-9, "a release: half of it at 8192 (ACCURACY-2 2.1)");
    near(release_effect(32768), pow(2.0, 1.0 / 17.0), 1e-9, "little of it with wide experts");
}

static void test_dropless(void)
{
    llama_70b(1, 0);
    c->profile.site_host_ratio = 2.0;
    ok(dropless_wait_s(PHASE_FORWARD) == 0.0, "a dense layer does not wait for the host");
    struct ty_layer_kind *kind = &c->model.kinds[0];
    kind->mlp = TY_MLP_MOE;
    kind->n_experts = 8;
    kind->top_k = 2;
    kind->expert_ffn = 4096;
    near(dropless_wait_s(PHASE_FORWARD), 2e-3, 1e-9,
         "dropless: a forward waits, as the site's host");
    near(dropless_wait_s(PHASE_BACKWARD), 2.6e-3, 1e-9, "a backward 1.3 times (ACCURACY 1.6)");
    near(dropless_wait_s(PHASE_DGRAD) + dropless_wait_s(PHASE_WGRAD), 2.6e-3, 1e-9,
         "dgrad and wgrad share it");
    c->profile.moe_time_ratio = 3.0;
    near(dropless_wait_s(PHASE_FORWARD), 2e-3, 1e-9, "a release slows kernels, not the host");
    c->asked.recompute = TY_RECOMPUTE_FULL;
    near(dropless_wait_s(PHASE_BACKWARD), 4.6e-3, 1e-9, "recompute waits again");
    c->asked.cuda_graph = TY_ON;
    ok(dropless_wait_s(PHASE_FORWARD) == 0.0, "a CUDA graph: no wait");
}

static void test_cache(void)
{
    llama_70b(8, TY_OVERLAP_TP);
    record_cache_clear(cache);
    const struct record *first = get(WHAT_LAYER, PHASE_FORWARD), value = *first;
    ok(first == get(WHAT_LAYER, PHASE_FORWARD), "the same request, the same record");
    ok(first != get(WHAT_LAYER, PHASE_BACKWARD), "another pass, another record");
    c->asked.n_gpus = 64; /* more replicas change no layer */
    case_ready(c);
    ok(c->plan.dp == 8 && first == get(WHAT_LAYER, PHASE_FORWARD),
       "data parallelism is not part of the key");
    for (uint32_t seq = 128; seq <= 128 * 300; seq += 128) { /* the table grows */
        c->asked.seq = seq;
        case_ready(c);
        get(WHAT_LAYER, PHASE_FORWARD);
    }
    c->asked.seq = 8192;
    case_ready(c);
    ok(first == get(WHAT_LAYER, PHASE_FORWARD), "300 records later: still the same");
    record_cache_clear(cache);
    ok(memcmp(get(WHAT_LAYER, PHASE_FORWARD), &value, sizeof value) == 0,
       "computed again: the same bits");
    c->cluster.gpu.mem_bytes_per_s /= 2.0;
    case_ready(c);
    ok(get(WHAT_LAYER, PHASE_FORWARD)->time_s > value.time_s,
       "another setting: the old records are forgotten");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || engine_create(NULL, &engine) != TY_OK || record_cache_create(NULL, &cache) != TY_OK)
        return 1;
    test_serial();
    test_bytes();
    test_overlap();
    test_parts();
    test_host();
    test_releases();
    test_dropless();
    test_cache();
    record_cache_destroy(cache);
    engine_destroy(engine);
    free(c);
    return tap_done();
}
