/* SPDX-License-Identifier: MIT
 * Parameter counts of handbook 1.1 and 1.7 (UT-1.1 to UT-1.5), closed forms, refusals. */
#include "models/architecture.h"
#include "tests/fixtures.h"
#include "tests/tap.h"

#include <limits.h>

static void exact(double got, double want, const char *what)
{
    near(got, want, 0.0, what);
}

static void test_llama(void)
{
    struct ty_model model;
    struct ty_params p;
    fixture_llama3_8b(&model);
    ty_model_params(&model, &p);
    exact(p.attention[0], 41943040, "UT-1.1 llama3-8B attention");
    exact(p.mlp[0], 176160768, "UT-1.1 MLP");
    exact(p.layer[0], 218112000, "UT-1.1 layer");
    exact(p.embedding, 525336576, "UT-1.1 embedding");
    exact(p.head, 525336576, "UT-1.1 head");
    exact(p.total, 8030261248, "UT-1.1 total");
    exact(p.active, p.total, "a dense model is all active");
    fixture_llama3_70b(&model);
    ty_model_params(&model, &p);
    exact(p.layer[0], 855654400, "UT-1.2 llama3-70B layer");
    exact(p.total, 70553706496, "UT-1.2 llama3-70B total");
    fixture_llama3_405b(&model);
    ty_model_params(&model, &p);
    exact(p.layer[0], 3187703808, "UT-1.2 llama3-405B layer");
    exact(p.total, 405853388800, "UT-1.2 llama3-405B total");
}

static void test_gpt(void)
{
    struct ty_model model;
    struct ty_params p;
    fixture_gpt(&model, 12288, 96, 96, 51200, 0);
    ty_model_params(&model, &p);
    exact(p.total, 174590681088, "UT-1.3 gpt3-175B without positions");
    exact(p.head, 0, "tied head counts once");
    fixture_gpt(&model, 12288, 96, 96, 51200, 2048);
    ty_model_params(&model, &p);
    exact(p.total, 174615846912, "UT-1.3 gpt3-175B with 2048 positions");
    const double h = 12288, layers = 96;
    const double closed = 12 * layers * h * h * (1 + 13 / (12 * h) + 53248 / (12 * layers * h));
    near(p.total - 2 * h, closed, 1e-14, "UT-1.3 the closed form lacks the final norm");
}

static void test_deepseek(void)
{
    struct ty_model model;
    struct ty_params p;
    fixture_deepseek_v3(&model);
    ty_model_params(&model, &p);
    exact(p.attention[1], 187107328, "UT-1.4 deepseek-v3 MLA");
    exact(p.expert[1], 44040192, "UT-1.4 expert");
    exact(p.layer[0], 583483392, "UT-1.4 dense layer");
    exact(p.layer[1], 11507286272, "UT-1.4 MoE layer");
    exact(p.total, 671026419200, "UT-1.4 total");
    exact(p.active, 37552297472, "UT-1.4 active");
    exact(p.active - p.embedding, 36625618432, "UT-1.4 active without the embedding table");
    exact(p.mtp, 0, "no MTP module");
    model.n_mtp = 1;
    ty_model_params(&model, &p);
    exact(p.mtp, 11610068224, "UT-1.5 one MTP module");
    exact(p.mtp + p.embedding + p.head, 13463426304, "UT-1.5 with its own tables");
    exact(p.total, 671026419200, "UT-1.5 the total leaves MTP out");
}

/* Llama2-70B, rank 16: q, k, v fused and the output projection have 44,564,480 adapter weights in
 * the MLPerf LoRA benchmark = 80 x 16 x ((8192 + 10240) + (8192 + 8192)); the MLP adds
 * 80 x 16 x ((8192 + 2 x 28672) + (28672 + 8192)). */
static void test_lora(void)
{
    struct ty_model model;
    struct ty_params p;
    fixture_llama(&model, 8192, 80, 64, 8, 128, 28672, 32000);
    model.lora_rank = 16;
    ty_model_params(&model, &p);
    exact(80 * p.adapter[0], 44564480 + 1280.0 * 102400, "LoRA adapters on all linears");
    exact(p.total, 68976648192, "adapters are not in the total");
}

static void refused(const struct ty_model *model, const char *where, const char *text)
{
    struct ty_error error = {TY_OK, "", ""};
    ok(ty_model_check(model, &error) == TY_ERR_RANGE && strcmp(error.where, where) == 0 &&
           strstr(error.text, text) != NULL,
       "refused at %s", where);
    if (strcmp(error.where, where) != 0 || strstr(error.text, text) == NULL)
        printf("#   got \"%s\": \"%s\"\n", error.where, error.text);
}

#define REFUSE(change, where, text)                                                                \
    do {                                                                                           \
        fixture_deepseek_v3(&m);                                                                   \
        change;                                                                                    \
        refused(&m, where, text);                                                                  \
    } while (0)

static void test_check(void)
{
    struct ty_model m;
    struct ty_error error;
    fixture_deepseek_v3(&m);
    ok(ty_model_check(&m, &error) == TY_OK, "deepseek-v3 passes");
    fixture_llama3_8b(&m);
    ok(ty_model_check(&m, NULL) == TY_OK, "llama3-8b passes, no error wanted");
    m.kinds[0].n_kv_heads = 5;
    refused(&m, "kinds[0].kv_heads", "divide");
    m.kinds[0].n_kv_heads = 0;
    refused(&m, "kinds[0].kv_heads", "divide");
    fixture_llama3_8b(&m);
    m.kinds[0].head_dim = 0;
    refused(&m, "kinds[0].head_dim", "at least 1");
    REFUSE(m.hidden = 0, "hidden", "at least 1");
    REFUSE(m.hidden = UINT32_MAX, "hidden", "is 4.29496");
    REFUSE(m.vocab = 0, "vocab", "at least 1");
    REFUSE(m.n_layers = 0, "layers", "at least 1");
    REFUSE(m.n_layers = TY_MAX_LAYERS + 1, "layers", "is 1025; legal: 1 to 1024");
    REFUSE(m.n_kinds = 0, "kinds", "outside");
    REFUSE(m.n_kinds = TY_MAX_KINDS + 1, "kinds", "outside");
    REFUSE(m.layer_kind[60] = 2, "layer_kinds", "layer 60");
    REFUSE(m.norm = 17, "norm", "choice number 17");
    REFUSE(m.kinds[1].mlp = -1, "kinds[1].mlp", "choice number -1");
    REFUSE(m.kinds[1].attention = INT_MAX, "kinds[1].attention", "choice");
    REFUSE(m.kinds[0].n_heads = 0, "kinds[0].heads", "at least 1");
    REFUSE(m.kinds[0].kv_lora_rank = 0, "kinds[0].kv_lora_rank", "at least 1");
    REFUSE(m.kinds[0].v_head_dim = 0, "kinds[0].v_head_dim", "at least 1");
    REFUSE(m.kinds[0].ffn = 0, "kinds[0].ffn", "at least 1");
    REFUSE(m.kinds[1].n_experts = 0, "kinds[1].experts", "at least 1");
    REFUSE(m.kinds[1].top_k = 257, "kinds[1].top_k", "1 .. experts");
    REFUSE(m.kinds[1].expert_ffn = 0, "kinds[1].expert_ffn", "at least 1");
    REFUSE(m.kinds[1].n_groups = 7, "kinds[1].groups", "divide");
    REFUSE(m.kinds[1].group_limit = 9, "kinds[1].group_limit", "1 .. groups");
    REFUSE(m.kinds[1].top_k = 200, "kinds[1].group_limit", "fewer experts than top_k");
    REFUSE(m.kinds[1].n_norms = 5, "kinds[1].norms", "is 5");
}

int main(void)
{
    test_llama();
    test_gpt();
    test_deepseek();
    test_lora();
    test_check();
    return tap_done();
}
