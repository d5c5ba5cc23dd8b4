/* SPDX-License-Identifier: MIT
 * Layout strings: the examples of Megatron-Core's documentation, round trips of random layouts,
 * messages; and steps laid out by them. */
#include "models/memory.h"
#include "models/step_internal.h"
#include "sim/random.h"
#include "tests/step_fixture.h"

static struct step *step;
static struct step_case *c;

static uint32_t parse(const char *text, struct layout_chunk *chunks)
{
    struct ty_error error = {0};
    uint32_t n = 0;
    if (!layout_parse(text, chunks, 4096, &n, &error))
        printf("# %s: %s\n", text, error.text);
    return n;
}

/* docs/user-guide/features/pipeline_parallel_layout.md of Megatron-LM */
static void test_published(void)
{
    static struct layout_chunk chunks[4096];
    char text[256];
    ok(parse("Et*3|(tt|)*29,m|L", chunks) == 32 && chunks[0].embedding && chunks[0].n_layers == 3 &&
           chunks[1].n_layers == 2 && chunks[29].n_layers == 2 && chunks[30].n_mtp == 1 &&
           chunks[30].n_layers == 0 && chunks[31].loss && chunks[31].n_layers == 0,
       "DeepSeek-V3 on 32 chunks: E and 3, 29 of 2, MTP alone, loss alone");
    ok(layout_print(chunks, 32, text, sizeof text) && strcmp(text, "Et*3|(tt|)*29,m|L") == 0,
       "and back: %s", text);
    ok(parse("E|(t|)*3,t*2 (m) L", chunks) == 5 && chunks[0].n_layers == 0 &&
           chunks[4].n_layers == 2 && chunks[4].n_mtp == 1 && chunks[4].loss,
       "spaces, commas and groups of one mean nothing");
    ok(parse("Et||(t|)*2tL", chunks) == 5 && chunks[1].n_layers == 0, "a chunk may be empty");
    ok(parse("E((t*2|)*2t|)*2L", chunks) == 7 && chunks[0].n_layers == 2 &&
           chunks[2].n_layers == 1 && chunks[3].n_layers == 2,
       "groups in groups");
}

static void test_round_trip(void)
{
    static struct layout_chunk chunks[64], again[64];
    struct random_stream stream;
    uint32_t n_good = 0;
    random_init(&stream, 7, 0);
    for (int i = 0; i < 2000; i++) {
        char text[2048], second[2048];
        const uint32_t n = 1 + (uint32_t)random_below(&stream, 64);
        uint32_t got = 0;
        for (uint32_t at = 0; at < n; at++)
            chunks[at] = (struct layout_chunk){(uint32_t)random_below(&stream, 4),
                                               at + 2 > n ? (uint32_t)random_below(&stream, 3) : 0,
                                               at == 0, at + 1 == n};
        n_good += layout_print(chunks, n, text, sizeof text) &&
                  layout_parse(text, again, 64, &got, NULL) && got == n &&
                  memcmp(chunks, again, n * sizeof *chunks) == 0 &&
                  layout_print(again, n, second, sizeof second) && strcmp(text, second) == 0;
    }
    ok(n_good == 2000, "%u of 2000 random layouts come back from their text", n_good);
}

static void refused(const char *text, const char *why)
{
    struct ty_error error = {0};
    uint32_t n;
    ok(!layout_parse(text, NULL, 0, &n, &error) && strstr(error.text, why), "\"%s\": %s", text,
       error.text);
}

/* A layout that reads well but does not fit llama3-8b (32 layers) on pp 4. */
static void unfit(const char *text, const char *why)
{
    struct ty_error error = {0};
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 4;
    snprintf(c->asked.layout, sizeof c->asked.layout, "%s", text);
    ok(!case_ready(c) && !layout_check(&c->setting, &c->plan, &error) && strstr(error.text, why),
       "%s: %s", text, error.text);
}

static void test_messages(void)
{
    refused("Et*3|x", "character 6: legal are E, t, m, L");
    refused("Et*|L", "* needs a number");
    refused("E(t|L", "a ( is not closed");
    refused("Et)|L", "a ) without a (");
    refused("tE|L", "E comes first in its chunk");
    refused("E|Lt", "the order is E, t, m, L");
    refused("Et*99999", "more than 8192 parts");
    refused("((((((((((t))))))))))", "too many groups");
    unfit("Et*8|t*8|t*8|t*7L", "has 31 layers (t), the model 32");
    unfit("t*8|t*8|t*8|t*8L", "embedding (E) must be in the first chunk");
    unfit("Et*8|t*8L|t*8|t*8", "loss (L) must be in the last chunk");
    unfit("Et*8|t*8|t*8|t*8mL", "has 1 MTP modules (m), the model 0");
    unfit("Et*11|t*11|t*10L", "has 3 chunks, pp*vpp is 4*1 = 4");
}

static struct step_result simulate(const char *layout)
{
    struct step_result result = {.time_s = (double)NAN};
    snprintf(c->asked.layout, sizeof c->asked.layout, "%s", layout);
    if (case_ready(c))
        case_simulate(c, step, &result);
    else
        ok(false, "%s is legal", layout);
    return result;
}

/* By hand: 32 layers and two units on 4 chunks are 8 each and 2 over; 61 layers, embedding, loss
 * and an MTP module on 16 are 4 each. */
static void test_balanced(void)
{
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 4;
    c->asked.gbs = 8;
    const double even_s = simulate("").time_s;
    const double balanced_s = simulate("balanced").time_s;
    same_text(c->plan.layout, "Et*7|(t*9|)*2,t*7L", "balanced: 32 layers on 4 stages");
    ok(balanced_s < even_s, "faster than even, as the head weighs about two layers");
    ok(simulate("Et*7|(t*9|)*2t*7L").time_s == balanced_s, "written out: the same step");
    c->asked.pp = c->asked.n_gpus = 1;
    simulate("balanced");
    same_text(c->plan.layout, "", "one stage: nothing to balance");
    struct ty_model model;
    char text[256], want[256];
    fixture_deepseek_v3(&model);
    model.n_mtp = 1;
    ok(layout_balanced(&model, 16, text, sizeof text) &&
           ty_layout_shorten("Et*3|(t*4|)*14t*2mL", want, sizeof want, NULL) == TY_OK,
       "61 layers and an MTP module on 16");
    same_text(text, want, "4 units each");
    ok(!layout_balanced(&model, 32, text, sizeof text), "2 units each: too few for loss and MTP");
}

static void test_steps(void)
{
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 4;
    c->asked.gbs = 8;
    const double even_s = simulate("").time_s;
    ok(simulate("Et*8|(t*8|)*2t*8L").time_s == even_s,
       "the default layout in words: the same step");
    /* The head weighs about two layers of this model: fewer layers beside it are faster, all of
     * them on one stage slower. */
    ok(simulate("Et*9|(t*8|)*2t*7L").time_s < even_s, "fewer layers beside the head: faster");
    ok(simulate("Et*2|(t*2|)*2t*26L").time_s > 2.0 * even_s,
       "26 of 32 layers on one stage: slower");
    simulate("E|(t*16|)*2L");
    ok(c->slots[0].n_layers == 0 && c->slots[3].n_layers == 0 && c->slots[1].n_layers == 16,
       "embedding and loss on stages of their own");
    c->asked.gbs = 4;
    simulate("Et*4|(t*4|)*6t*4L");
    ok(c->plan.vpp == 2 && c->plan.schedule == TY_SCHEDULE_INTERLEAVED, "vpp follows from it");
}

/* The model split differently does the same work; the memory model and the step agree on who holds
 * what. */
static void test_mtp(void)
{
    static const char *const layouts[] = {"Et*6|t*6|t*6|t*6mL", "Et*6|t*6|t*12m|L",
                                          "Et*12|t*12|m|L", "Et*6|t*6|t*12|mL"};
    double flop[4];
    bool same = true;
    for (int i = 0; i < 4; i++) {
        case_open(c);
        fixture_deepseek_v3(&c->model);
        c->model.n_layers = 24;
        c->model.n_mtp = 1;
        c->asked.pp = 4;
        c->asked.ep = c->asked.tp = 8;
        c->asked.n_gpus = 64;
        flop[i] = simulate(layouts[i]).flop_hw_per_gpu;
        for (uint32_t at = 0; at < 4; at++) {
            double dense, expert;
            memory_rank_params(&c->setting, &c->plan, c->slots, at, &dense, &expert);
            const struct held *held = &step->stages[at].held;
            same = same && fabs(held->params[SHARE_DENSE] - dense) <= 1e-9 * dense &&
                   fabs(held->params[SHARE_EXPERT] - expert) <= 1e-9 * expert;
        }
    }
    ok(fabs(flop[1] - flop[0]) < 1e-9 * flop[0] && fabs(flop[2] - flop[0]) < 1e-9 * flop[0] &&
           fabs(flop[3] - flop[0]) < 1e-9 * flop[0],
       "MTP and loss apart or together: the same work");
    ok(same, "parameters of every stage as the memory model has them");
}

/* DualPipe keeps the states twice, at the ends of the pipeline the embedding and the head both; a V
 * keeps them once, folded. in flight: handbook 2.5. */
static void test_copies(void)
{
    static struct ty_stage_memory one[4], two[4], vee[4];
    double sum_one = 0.0, sum_two = 0.0, sum_vee = 0.0;
    case_open(c);
    c->asked.pp = c->asked.n_gpus = 4;
    c->asked.gbs = 16;
    ok(case_ready(c), "1F1B is legal");
    memory_stages(&c->setting, &c->plan, c->slots, one);
    c->asked.schedule = TY_SCHEDULE_DUALPIPE;
    ok(case_ready(c), "DualPipe is legal");
    memory_stages(&c->setting, &c->plan, c->slots, two);
    c->asked.schedule = TY_SCHEDULE_ZB_V;
    ok(case_ready(c), "ZB-V is legal");
    memory_stages(&c->setting, &c->plan, c->slots, vee);
    bool paired = true;
    for (uint32_t at = 0; at < 4; at++) {
        const double pair = one[at].bytes[TY_MEM_WEIGHTS] + one[3 - at].bytes[TY_MEM_WEIGHTS];
        paired = paired && fabs(two[at].bytes[TY_MEM_WEIGHTS] - pair) < 1e-9 * pair;
        sum_one += one[at].bytes[TY_MEM_OPTIMIZER];
        sum_two += two[at].bytes[TY_MEM_OPTIMIZER];
        sum_vee += vee[at].bytes[TY_MEM_OPTIMIZER];
    }
    ok(paired, "DualPipe: the layers of a stage and of its mirror image");
    near(sum_two, 2.0 * sum_one, 1e-12, "twice the states");
    near(sum_vee, sum_one, 1e-12, "ZB-V: once");
    ok(two[0].in_flight == 5.0 && vee[3].in_flight == 4.0 && one[3].in_flight == 1.0,
       "in flight p + 1, p, p - r");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    test_published();
    test_round_trip();
    test_messages();
    test_steps();
    test_balanced();
    test_mtp();
    test_copies();
    step_destroy(step);
    free(c);
    return tap_done();
}
