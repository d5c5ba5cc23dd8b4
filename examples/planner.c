/* SPDX-License-Identifier: MIT
 * A planner: the best layout for Llama-3-8B on 64 H100.
 * cc planner.c $(pkg-config --cflags --libs trainyard) */
#include <stdio.h>
#include <trainyard.h>

int main(void)
{
    static struct ty_model model = {.hidden = 4096, .n_layers = 32, .vocab = 128256, .n_kinds = 1};
    static struct ty_search search = {.model = &model, .top = 1};
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_search_result result;
    struct ty_error error;
    model.final_norm = true;
    model.kinds[0] = (struct ty_layer_kind){.attention = TY_ATTENTION_HEADS, .n_heads = 32,
        .n_kv_heads = 8, .head_dim = 128, .mlp = TY_MLP_DENSE, .ffn = 14336, .gated = true,
        .n_norms = 2};
    ty_init(TY_KIND_CLUSTER, &cluster); /* what is not set takes its documented default */
    cluster.gpu.bf16_flop_per_s = 989e12;
    cluster.gpu.mem_bytes = 80e9;
    cluster.gpu.mem_bytes_per_s = 3.35e12;
    cluster.gpu.scaleup_bytes_per_s = 450e9;
    cluster.nic_bytes_per_s = 50e9;
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PLAN, &search.space.fixed);
    search.space.fixed.n_gpus = 64;
    search.space.fixed.gbs = 256;
    search.space.fixed.seq = 8192;
    search.cluster = &cluster;
    search.profile = &profile;
    if (ty_search_run(&search, &result, &error) != TY_OK)
        return fprintf(stderr, "%s: %s\n", error.where, error.text), 1;
    printf("tp %u pp %u dp %u: %.0f tokens/s\n", result.best->plan.tp, result.best->plan.pp,
           result.best->plan.dp, result.best->tokens_per_s);
    ty_search_free(&result);
    return 0;
}
