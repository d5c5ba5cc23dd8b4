/* SPDX-License-Identifier: MIT
 * A planner in some 20 lines: the best layout of Llama-3-8B on 64 H100; then a rule of its own over
 * every legal plan. What is not set takes its documented default.
 * cc planner.c $(pkg-config --cflags --libs trainyard) */
#include <stdio.h>
#include <trainyard_plans.h>

/* Of the plans within 5 % of the best, the one that leaves most memory free. */
static void print_roomiest(const struct ty_search *search, double best_tokens_per_s)
{
    ty_plans *plans = NULL;
    ty_predictor *predictor = NULL;
    struct ty_plan plan;
    struct ty_prediction answer, roomiest = {0};
    uint64_t cursor = 0;
    if (ty_plans_open(search->model, search->cluster, search->profile, &search->space, NULL,
                      &plans, NULL) == TY_OK &&
        ty_predictor_create(search->model, search->cluster, search->profile, NULL, &predictor,
                            NULL) == TY_OK)
        while (ty_plans_next(plans, &cursor, &plan))
            if (ty_predictor_run(predictor, &plan, NULL, &answer, NULL) == TY_OK &&
                answer.feasible && answer.tokens_per_s >= 0.95 * best_tokens_per_s &&
                answer.headroom_bytes > roomiest.headroom_bytes)
                roomiest = answer;
    printf("roomiest: tp %u pp %u dp %u: %.0f tokens/s, %.0f GB free\n", roomiest.plan.tp,
           roomiest.plan.pp, roomiest.plan.dp, roomiest.tokens_per_s,
           roomiest.headroom_bytes / 1e9);
    ty_predictor_destroy(predictor);
    ty_plans_close(plans);
}

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
    print_roomiest(&search, found.best->tokens_per_s);
    ty_search_free(&found);
    return 0;
}
