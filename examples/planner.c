/* SPDX-License-Identifier: MIT
 * A planner in some 20 lines: the best layout of Llama-3-8B on 64 H100. What is not set takes its
 * documented default. cc planner.c $(pkg-config --cflags --libs trainyard) */
#include <stdio.h>
#include <trainyard.h>

int main(void)
{
    struct ty_model model = {.hidden = 4096, .n_layers = 32, .vocab = 128256, .final_norm = true,
        .n_kinds = 1, .kinds = {{.attention = TY_ATTENTION_HEADS, .n_heads = 32, .n_kv_heads = 8,
        .head_dim = 128, .mlp = TY_MLP_DENSE, .ffn = 14336, .gated = true, .n_norms = 2}}};
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct ty_search search = {.model = &model, .cluster = &cluster, .profile = &profile};
    struct ty_search_result found;
    struct ty_error error;
    ty_init(TY_KIND_CLUSTER, &cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    ty_init(TY_KIND_PLAN, &search.space.fixed);
    cluster.gpu.bf16_flop_per_s = 989e12;
    cluster.gpu.mem_bytes = 80e9;
    cluster.gpu.mem_bytes_per_s = 3.35e12;
    cluster.gpu.scaleup_bytes_per_s = 450e9;
    search.space.fixed.n_gpus = 64;
    search.space.fixed.gbs = 256;
    if (ty_search_run(&search, &found, &error) != TY_OK)
        return fprintf(stderr, "%s: %s\n", error.where, error.text), 1;
    printf("tp %u pp %u dp %u: %.0f tokens/s\n", found.best->plan.tp, found.best->plan.pp,
           found.best->plan.dp, found.best->tokens_per_s);
    ty_search_free(&found);
    return 0;
}
