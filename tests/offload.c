/* SPDX-License-Identifier: MIT
 * Offload to host memory: handbook 3.4 and UT-3.5, closed forms of memory and of the step. */
#include "models/kernels.h"
#include "models/memory.h"
#include "models/offload.h"
#include "tests/step_fixture.h"

#define PCIE_BYTES_PER_S 63e9
#define LAYERS           32

static struct step *step;
static struct step_case *c;
static struct ty_stage_memory stages[64];
static struct memory_verdict verdict;

static void open_case(int offload)
{
    case_open(c);
    c->cluster.gpu.pcie_bytes_per_s = PCIE_BYTES_PER_S;
    c->cluster.gpu.c2c_bytes_per_s = 0.0;
    c->cluster.host_bytes_per_s = 200e9;
    c->asked.n_gpus = c->asked.gbs = 1;
    c->asked.offload = offload;
}

static void ready(void)
{
    if (!case_ready(c))
        ok(false, "the plan of this test is legal");
    memory_stages(&c->setting, &c->plan, c->slots, stages);
    memory_judge(&c->setting, &c->plan, c->slots, stages, &verdict);
}

static double kept_bytes(void)
{
    return memory_layer_activation_bytes(&c->setting, &c->plan, &c->setting.model.kinds[0]);
}

/* One layer of Llama-3-70B, 8192 tokens, tp 8: 281,280,512 B, 5.08 ms to the host. */
static void handbook(void)
{
    open_case(TY_OFFLOAD_ACTIVATIONS);
    fixture_llama3_70b(&c->model);
    c->asked.n_gpus = c->asked.tp = 8;
    c->asked.seq = 8192;
    ready();
    near(kept_bytes(), 281280512.0, 1e-12, "UT-3.5: saved by a layer");
    near(kept_bytes() / offload_bytes_per_s(&c->setting), 5.08e-3, 2e-3, "UT-3.5: 5.08 ms");
}

static void activations(void)
{
    open_case(TY_OFFLOAD_NONE);
    c->asked.n_gpus = c->asked.pp = 4;
    c->asked.gbs = 8;
    ready();
    const double all = stages[0].bytes[TY_MEM_ACTIVATIONS], layer = kept_bytes();
    near(all, 4 * 8 * layer, 1e-12, "kept: 4 micro-batches of 8 layers");
    ok(stages[0].host_bytes == 0.0 && verdict.host_bytes == 0.0, "nothing on the host");
    c->asked.offload = TY_OFFLOAD_ACTIVATIONS;
    ready();
    near(stages[0].bytes[TY_MEM_ACTIVATIONS], 2 * layer, 1e-12,
         "offloaded: one layer on its way out, one on its way in");
    near(stages[0].host_bytes, all, 1e-12, "the rest is on the host");
    near(verdict.host_bytes, 4 * all, 1e-12, "of 4 GPUs in one node");
    c->asked.offload_layers = 6;
    ready();
    near(stages[0].bytes[TY_MEM_ACTIVATIONS], (4 * 2 + 2) * layer, 1e-12, "6 of 8 layers");
    near(stages[0].host_bytes, 4 * 6 * layer, 1e-12, "and those on the host");
    c->cluster.host_mem_bytes = 4 * 4 * 6 * layer * (1 + 1e-9);
    ready();
    ok(verdict.fit == TY_FIT_YES, "as much as the host has: fits");
    c->cluster.host_mem_bytes = 4 * 4 * 6 * layer * (1 - 1e-9);
    ready();
    ok(verdict.fit == TY_FIT_NO, "a byte more: does not fit");
}

static void states(void)
{
    open_case(TY_OFFLOAD_OPTIMIZER);
    c->asked.n_gpus = 8;
    c->asked.gbs = 16;
    c->asked.sharding = TY_SHARDING_ZERO1;
    ready();
    double dense, expert;
    memory_rank_params(&c->setting, &c->plan, c->slots, 0, &dense, &expert);
    ok(stages[0].bytes[TY_MEM_OPTIMIZER] == 0.0, "optimizer: nothing of it on the GPU");
    near(stages[0].bytes[TY_MEM_GRADS], 4.0 * dense, 1e-12, "its gradients stay");
    near(stages[0].host_bytes, 12.0 * dense / 8, 1e-12, "12 B of its share on the host");
    c->asked.offload = TY_OFFLOAD_STATES;
    ok(!case_ready(c), "states: not with ZeRO-1");
    c->asked.sharding = TY_SHARDING_ZERO3;
    ready();
    ok(stages[0].bytes[TY_MEM_WEIGHTS] == 0.0 && stages[0].bytes[TY_MEM_GRADS] == 0.0,
       "with ZeRO-3: neither weights nor gradients, but for buffers");
    ok(stages[0].bytes[TY_MEM_BUFFERS] > 0.0, "gathered layers have room");
    near(stages[0].host_bytes, 18.0 * dense / 8, 1e-12, "18 B of its share on the host");
}

/* DeepSpeed's estimator: ZeRO-2 with offload needs 2 N on the GPU (UT-3.1's source). */
static void deepspeed(void)
{
    open_case(TY_OFFLOAD_OPTIMIZER);
    snprintf(c->profile.stack, sizeof c->profile.stack, "megatron-deepspeed");
    c->asked.n_gpus = 8;
    c->asked.gbs = 16;
    c->asked.sharding = TY_SHARDING_ZERO2;
    ready();
    double dense, expert;
    memory_rank_params(&c->setting, &c->plan, c->slots, 0, &dense, &expert);
    near(stages[0].bytes[TY_MEM_WEIGHTS] + stages[0].bytes[TY_MEM_GRADS] +
             stages[0].bytes[TY_MEM_OPTIMIZER],
         2.0 * dense, 1e-12, "DeepSpeed takes the gradients along: 2 N stay");
}

static void simulate(struct step_result *out)
{
    *out = (struct step_result){.time_s = (double)NAN};
    c->slots[0] = (struct slot){.n_layers = LAYERS}; /* no embedding, no head */
    case_simulate(c, step, out);
}

/* m passes each way, a pass as long as the longer of kernels and copy:
 *   T = m (max(t_F, C) + max(t_B, C)) + tail,  C = bytes of all layers / BW */
static void copies(void)
{
    enum { MICRO = 3 };
    struct step_result none, got;
    open_case(TY_OFFLOAD_NONE);
    c->asked.gbs = MICRO;
    ready();
    simulate(&none);
    const double n_params = LAYERS * c->setting.params.layer[0];
    const double tail_s = 38.0 * n_params / kernel_mem_bytes_per_s(&c->setting);
    static const double rates[] = {63e14, 63e9, 1e6};
    for (size_t i = 0; i < 3; i++) {
        c->asked.offload = TY_OFFLOAD_ACTIVATIONS;
        c->cluster.gpu.pcie_bytes_per_s = rates[i];
        ready();
        simulate(&got);
        const double copy_s = LAYERS * kept_bytes() / (0.88 * rates[i]);
        double sum_s = 0.0;
        for (int part = 0; part < TY_N_PARTS; part++)
            sum_s += got.breakdown_s[part];
        near(sum_s, got.time_s, 1e-9, "the parts are the step");
        ok(got.time_s >= MICRO * 2 * copy_s && got.time_s >= none.time_s * (1 - 1e-12) &&
               got.time_s <= none.time_s + MICRO * 2 * copy_s * (1 + 1e-12),
           "%.0e B/s: no shorter than kernels or copies, no longer than their sum", rates[i]);
        near(got.breakdown_s[TY_PART_OFFLOAD], got.time_s - none.time_s, 1e-6,
             "what it adds is called offload");
        if (i == 0)
            near(got.time_s, none.time_s, 1e-9, "a fast link hides all of it");
        if (i == 2)
            near(got.time_s, MICRO * 2 * copy_s + tail_s, 1e-6, "a slow one hides all kernels");
        double bound_s;
        ok(step_bound(step, &c->setting, &c->plan, c->slots, &bound_s) == TY_OK &&
               bound_s <= got.time_s * (1 + 1e-9),
           "the bound stays below");
    }
}

/* Gradients down (4 B), parameters up (2 B), Adam on the CPU 30 B of 200 GB/s; the GPU still takes
 * the norm and zeroes the gradients, 4 B each. */
static void update(void)
{
    struct step_result none, got;
    open_case(TY_OFFLOAD_NONE);
    ready();
    simulate(&none);
    c->asked.offload = TY_OFFLOAD_OPTIMIZER;
    ready();
    simulate(&got);
    const double n = LAYERS * c->setting.params.layer[0];
    const double mem_bytes_per_s = kernel_mem_bytes_per_s(&c->setting);
    near(got.time_s - none.time_s,
         n * (6.0 / (0.88 * PCIE_BYTES_PER_S) + 30.0 / 200e9 - 30.0 / mem_bytes_per_s), 1e-9,
         "3.4: the update on the CPU instead of the GPU");
    c->setting.cluster.gpu.c2c_bytes_per_s = 450e9;
    near(offload_bytes_per_s(&c->setting), 0.88 * 450e9, 1e-12, "the faster of two links");
    c->setting.cluster.gpu.c2c_bytes_per_s = 0.0;
    near(offload_optimizer_s(&c->setting, &c->plan, 1e9, 4.0, 2.0),
         6.0 / (0.88 * 63.0) + 30.0 / 200.0, 1e-12, "1e9 parameters: 0.258 s");
}

int main(void)
{
    c = malloc(sizeof *c);
    if (!c || step_create(NULL, &step) != TY_OK)
        return 1;
    handbook();
    activations();
    states();
    deepspeed();
    copies();
    update();
    step_destroy(step);
    free(c);
    return tap_done();
}
