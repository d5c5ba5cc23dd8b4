/* SPDX-License-Identifier: MIT
 * Layers on pipeline slots: published splits by hand, then invariants over many shapes. */
#include "models/layout.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

static struct setting setting;
static struct slot slots[4096];

static bool lay(uint32_t layers, uint32_t n_mtp, uint32_t pp, uint32_t vpp)
{
    setting.model.n_layers = layers;
    setting.model.n_mtp = n_mtp;
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    plan.pp = pp;
    plan.vpp = vpp;
    const bool can = layout_slots(&setting, &plan, slots);
    ok(layout_slots(&setting, &plan, NULL) == can, "asking and writing agree (%u, %u, %u)", layers,
       pp, vpp);
    return can;
}

static bool counts(uint32_t n, uint32_t first, uint32_t middle, uint32_t last)
{
    bool good = slots[0].n_layers == first && slots[n - 1].n_layers == last;
    for (uint32_t i = 1; i + 1 < n; i++)
        good &= slots[i].n_layers == middle;
    return good;
}

static void published(void)
{
    ok(lay(80, 0, 8, 5) && counts(40, 2, 2, 2), "Llama-3-70B on pp 8, vpp 5: two layers each");
    ok(lay(126, 0, 16, 1) && counts(16, 7, 8, 7), "Llama-3-405B on pp 16: 7, 8, ..., 8, 7");
    ok(lay(126, 0, 8, 8) && counts(64, 1, 2, 1), "Llama-3-405B on pp 8, vpp 8: 1, 2, ..., 2, 1");
    ok(lay(105, 0, 35, 3) && counts(105, 1, 1, 1), "GPT 530B on pp 35, vpp 3: one each");
    ok(lay(31, 0, 4, 2) && counts(8, 4, 4, 3), "the head counts as one layer: the last has 3");
    ok(!lay(61, 1, 2, 32), "... on pp 2, vpp 32 the last chunk would have less than no layer");
    ok(lay(61, 1, 4, 4) && counts(16, 3, 4, 2),
       "DeepSeek-V3 on pp 4, vpp 4 with MTP: (61 + 1 + 2) / 16 = 4");
    ok(lay(61, 1, 16, 2) && counts(32, 1, 2, 0),
       "DeepSeek-V3 on pp 16, vpp 2: the last chunk has MTP and head only");
    ok(!lay(80, 0, 16, 2), "D01: 80 layers on pp 16, vpp 2 are refused");
    ok(lay(80, 0, 16, 1) && lay(80, 0, 16, 5), "D01: vpp 1 and 5 are legal");
    ok(!lay(80, 0, 16, 3) && !lay(80, 0, 16, 4), "D01: vpp 3 and 4 are not");
    ok(lay(10, 0, 4, 1) && slots[0].n_layers == 2 && slots[1].n_layers == 3 &&
           slots[2].n_layers == 3 && slots[3].n_layers == 2,
       "10 layers on 4 stages: 2, 3, 3, 2");
    ok(!lay(3, 0, 4, 1), "more stages than layers are refused");
    ok(lay(126, 0, 16, 8) && counts(128, 0, 1, 0),
       "Llama-3-405B on pp 16, vpp 8: embedding alone, one each, head alone");
    ok(!lay(29, 0, 16, 2), "29 layers on 32 chunks would leave a middle chunk empty");
    ok(!lay(14, 0, 16, 1), "14 layers on 16 stages would leave stages without a layer");
}

static void invariants(void)
{
    uint32_t laid = 0, wrong = 0;
    for (uint32_t layers = 1; layers <= 64; layers++)
        for (uint32_t pp = 1; pp <= 16; pp++)
            for (uint32_t vpp = 1; vpp <= (pp > 1 ? 32u : 1u); vpp++) {
                setting.model.n_layers = layers;
                setting.model.n_mtp = layers % 4;
                struct ty_plan plan = {.pp = pp, .vpp = vpp};
                if (!layout_slots(&setting, &plan, slots))
                    continue;
                laid++;
                uint32_t next = 0, n_embeddings = 0, n_heads = 0;
                for (uint32_t i = 0; i < pp * vpp; i++) {
                    wrong += slots[i].first_layer != next;
                    wrong += slots[i].n_layers > layers; /* none below 0 */
                    next += slots[i].n_layers;
                    n_embeddings += slots[i].embedding;
                    n_heads += slots[i].head;
                }
                wrong += next != layers || n_embeddings != 1 || n_heads != 1 ||
                         !slots[0].embedding || !slots[pp * vpp - 1].head;
            }
    ok(laid > 1000 && wrong == 0, "%u layouts hold every layer once, in order", laid);
    struct ty_plan plan = {.pp = UINT32_MAX, .vpp = UINT32_MAX};
    ok(!layout_slots(&setting, &plan, NULL), "2^64 chunks are refused");
    plan.pp = 0;
    ok(!layout_slots(&setting, &plan, NULL), "no stage is refused");
}

int main(void)
{
    fixture_llama3_8b(&setting.model);
    published();
    invariants();
    return tap_done();
}
