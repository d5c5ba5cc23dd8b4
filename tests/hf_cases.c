/* SPDX-License-Identifier: MIT
 * Configs as users report them (cases H01 to H09 of the shared material, restated) and input that
 * must be refused with its place: contradictions, missing keys, nonsense, attacks. */
#include "include/trainyard_tools.h"
#include "tests/tap.h"

static struct ty_model model;
static struct ty_params params;
static struct ty_error error;

static ty_status parse(const char *text)
{
    memset(&error, 0, sizeof error);
    ty_status status = ty_model_parse(text, strlen(text), "c.json", &model, &error);
    if (status == TY_OK)
        ty_model_params(&model, &params);
    return status;
}

static bool reads(const char *text, const char *what)
{
    bool good = parse(text) == TY_OK;
    ok(good, "%s", what);
    if (!good)
        printf("#   %s: %s\n", error.where, error.text);
    return good;
}

static void refuses(const char *text, ty_status status, const char *where, const char *reason)
{
    ty_status got = parse(text);
    bool good = got == status && strcmp(error.where, where) == 0 && strstr(error.text, reason);
    ok(good, "refused at %s: %s", where, reason);
    if (!good)
        printf("#   status %d, \"%s\": \"%s\"\n", got, error.where, error.text);
}

/* ---- cases ------------------------------------------------------------------------------- */

static void test_cases(void)
{
    /* H01: 36 layers of width 2560 with 32 heads of 128: the query projection is 2560 x 4096. */
    reads("{\"model_type\":\"qwen3\",\"hidden_size\":2560,\"num_attention_heads\":32,"
          "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":9728,"
          "\"num_hidden_layers\":36,\"vocab_size\":151936,\"tie_word_embeddings\":true}",
          "H01 explicit head_dim");
    near(params.total, 4022468096, 0.0, "H01 parameters");
    near(params.attention[0], 2 * 10485760 + 2 * 2560 * 1024, 0.0, "H01 query projection");

    /* H03: Gemma 3 270M; the shapes of its layers (18 of them, inner size 2048, one key/value head)
     * are those of its model card; query projection 640 x 1024, not 640 x 640. */
    reads("{\"model_type\":\"gemma3_text\",\"hidden_size\":640,\"num_attention_heads\":4,"
          "\"head_dim\":256,\"num_key_value_heads\":1,\"intermediate_size\":2048,"
          "\"num_hidden_layers\":18,\"vocab_size\":262144,\"sliding_window\":512}",
          "H03 head_dim larger than hidden / heads");
    near(params.attention[0], 2 * 640 * 1024 + 2 * 640 * 256, 0.0, "H03 attention");
    near(params.total, 268098176, 0.0, "H03 parameters"); /* transformers 5.24, counted by us */
    refuses("{\"model\":\"Gemma-3-270m\",\"hidden_size\":640,\"num_attention_heads\":4,"
            "\"head_dim\":256}",
            TY_ERR_INPUT, "c.json: model_type", "keys seen: model, hidden_size");

    /* H07: every layer sparse, the dense size unused, the window switched off, null lists. */
    reads("{\"model_type\":\"qwen2_moe\",\"vocab_size\":151936,\"hidden_size\":2048,"
          "\"intermediate_size\":5632,\"num_hidden_layers\":24,\"num_attention_heads\":16,"
          "\"num_key_value_heads\":16,\"decoder_sparse_step\":1,\"moe_intermediate_size\":1408,"
          "\"shared_expert_intermediate_size\":5632,\"num_experts_per_tok\":4,\"num_experts\":60,"
          "\"mlp_only_layers\":null,\"use_sliding_window\":false,\"sliding_window\":4096,"
          "\"rope_scaling\":null}",
          "H07 Qwen2-MoE");
    near(params.total, 14.3e9, 0.005, "H07 parameters");
    near(params.active, 2.7e9, 0.01, "H07 active parameters");
    ok(model.n_kinds == 1 && model.kinds[0].window_tokens == 0, "H07 no window");

    /* H09: GPT-2 names; a config that lacks a needed key says which it has. */
    reads("{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,"
          "\"n_positions\":1024,\"vocab_size\":50257}",
          "H09 GPT-2 names");
    near(params.total, 124439808, 0.0, "H09 parameters");
    refuses("{\"model_type\":\"olmoe\",\"d_model\":2048,\"n_layers\":16,\"vocab_size\":50304,"
            "\"intermediate_size\":1024}",
            TY_ERR_INPUT, "c.json: num_attention_heads", "keys seen: model_type, d_model");
}

#define LLAMA                                                                                      \
    "\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":32,"                      \
    "\"num_attention_heads\":32,\"intermediate_size\":11008,\"vocab_size\":32000"

/* H05: rotary scaling in any form changes nothing that is counted. */
static void test_rope(void)
{
    static const char *const forms[] = {
        "null",
        "\"linear\"",
        "{\"type\":\"linear\",\"factor\":2.0}",
        "{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0}",
        "{\"type\":\"yarn\",\"rope_type\":\"yarn\",\"factor\":32}",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[512];
        snprintf(text, sizeof text, "{" LLAMA ",\"rope_scaling\":%s}", forms[i]);
        reads(text, "H05 rope_scaling in any form");
        near(params.total, 6738415616, 0.0, "H05 parameters");
    }
}

/* ---- layer patterns ---------------------------------------------------------------------- */

static uint32_t n_windows(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < model.n_layers; i++)
        n += model.kinds[model.layer_kind[i]].window_tokens > 0;
    return n;
}

#define SHAPE                                                                                      \
    "\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":2,"                      \
    "\"intermediate_size\":96,\"vocab_size\":100,\"head_dim\":16,\"num_hidden_layers\":12"

static void test_windows(void)
{
    reads("{\"model_type\":\"mistral\"," SHAPE "}", "Mistral without the key");
    ok(n_windows() == 12 && model.kinds[0].window_tokens == 4096, "its class has a window of 4096");
    reads("{\"model_type\":\"mistral\",\"sliding_window\":null," SHAPE "}", "Mistral, null");
    ok(n_windows() == 0, "null: none");
    reads("{\"model_type\":\"gemma2\",\"sliding_window\":16," SHAPE "}", "Gemma 2");
    ok(n_windows() == 6 && model.kinds[model.layer_kind[0]].window_tokens == 16,
       "every second layer, the first has one");
    reads("{\"model_type\":\"gemma3_text\",\"sliding_window\":16," SHAPE "}", "Gemma 3");
    ok(n_windows() == 10 && model.kinds[model.layer_kind[5]].window_tokens == 0,
       "all but every sixth layer");
    reads("{\"model_type\":\"qwen2\",\"sliding_window\":16,\"use_sliding_window\":true,"
          "\"max_window_layers\":9," SHAPE "}",
          "Qwen2 with windows");
    ok(n_windows() == 3, "from max_window_layers on");
    reads("{\"model_type\":\"llama4_text\",\"num_local_experts\":4,\"num_experts_per_tok\":1,"
          "\"intermediate_size_mlp\":128,\"interleave_moe_layer_step\":2," SHAPE "}",
          "Llama 4");
    ok(n_windows() == 9 && model.kinds[0].window_chunked, "chunks in three of four layers");
    refuses("{\"model_type\":\"qwen3\",\"layer_types\":[\"full_attention\"]," SHAPE "}",
            TY_ERR_INPUT, "c.json: layer_types", "lists 1 layers of 12");
    refuses(
        "{\"model_type\":\"gemma2\",\"sliding_window\":16,\"layer_types\":[\"linear_attention\","
        "\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\"]," SHAPE "}",
        TY_ERR_UNSUPPORTED, "c.json: layer_types[0]", "linear_attention");
}

static uint32_t n_moe(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < model.n_layers; i++)
        n += model.kinds[model.layer_kind[i]].mlp == TY_MLP_MOE;
    return n;
}

static void test_experts(void)
{
#define QWEN                                                                                       \
    "\"model_type\":\"qwen3_moe\",\"num_experts\":8,\"num_experts_per_tok\":2,"                    \
    "\"moe_intermediate_size\":32," SHAPE
    reads("{\"mlp_only_layers\":[0,3],\"decoder_sparse_step\":2," QWEN "}", "Qwen3-MoE placement");
    ok(n_moe() == 5 && model.kinds[model.layer_kind[1]].mlp == TY_MLP_MOE,
       "every second layer, less layer 3");
    reads("{\"model_type\":\"glm4_moe\",\"first_k_dense_replace\":4,\"n_routed_experts\":8,"
          "\"num_experts_per_tok\":2,\"n_shared_experts\":2,\"moe_intermediate_size\":32," SHAPE
          "}",
          "GLM placement");
    ok(n_moe() == 8 && model.kinds[1].shared_ffn == 64, "4 dense layers, two shared experts");
    refuses("{\"mlp_only_layers\":\"0\"," QWEN "}", TY_ERR_INPUT, "c.json: mlp_only_layers",
            "expected an array");
    refuses("{\"decoder_sparse_step\":0," QWEN "}", TY_ERR_INPUT, "c.json: decoder_sparse_step",
            "expected 1");
    refuses("{\"model_type\":\"mixtral\",\"num_local_experts\":4,\"num_experts_per_tok\":8," SHAPE
            "}",
            TY_ERR_INPUT, "c.json: num_experts_per_tok", "8 of only 4");
    refuses("{\"model_type\":\"mixtral\",\"num_experts_per_tok\":8," SHAPE "}", TY_ERR_INPUT,
            "c.json: num_local_experts", "missing");
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void test_contradictions(void)
{
    refuses("{\"n_layer\":40," LLAMA "}", TY_ERR_INPUT, "c.json: n_layer",
            "says 40, but num_hidden_layers says 32");
    refuses("{\"num_key_value_heads\":5," LLAMA "}", TY_ERR_INPUT, "c.json: num_key_value_heads",
            "must divide the 32 heads");
    refuses("{\"num_key_value_heads\":0," LLAMA "}", TY_ERR_INPUT, "c.json: num_key_value_heads",
            "must divide");
    refuses("{\"num_experts\":8," LLAMA "}", TY_ERR_INPUT, "c.json: num_experts",
            "models of type \"llama\" have none");
    refuses("{\"kv_lora_rank\":512," LLAMA "}", TY_ERR_INPUT, "c.json: kv_lora_rank",
            "does not belong");
    refuses("{\"architectures\":[\"Qwen2ForCausalLM\"]," LLAMA "}", TY_ERR_INPUT,
            "c.json: model_type", "contradicts the class Qwen2ForCausalLM");
    reads("{\"architectures\":[\"YiForCausalLM\"]," LLAMA "}", "two names of one architecture");
    reads("{\"architectures\":[\"LlamaForSequenceClassification\"]," LLAMA "}", "unknown class");
    refuses("{\"model_type\":\"gpt_neox\",\"hidden_size\":8196,\"num_attention_heads\":64,"
            "\"num_hidden_layers\":64,\"intermediate_size\":8000,\"vocab_size\":69}",
            TY_ERR_INPUT, "c.json: num_attention_heads", "does not divide hidden_size 8196");
}

static void test_unsupported(void)
{
    refuses("{\"model_type\":\"mamba2\"}", TY_ERR_UNSUPPORTED, "c.json: model_type",
            "\"mamba2\" is not a known model type; nearest: gemma2; known: llama, Yi");
    refuses("{\"ssm_state_size\":16," LLAMA "}", TY_ERR_UNSUPPORTED, "c.json: ssm_state_size",
            "state-space");
    refuses("{\"is_encoder_decoder\":true," LLAMA "}", TY_ERR_UNSUPPORTED,
            "c.json: is_encoder_decoder", "encoder-decoder");
    reads("{\"is_encoder_decoder\":false,\"add_cross_attention\":false," LLAMA "}",
          "switches that are off are no matter");
    refuses("{\"text_config\":{\"cross_attention_layers\":[3]," LLAMA "}}", TY_ERR_UNSUPPORTED,
            "c.json: text_config.cross_attention_layers", "not modelled");
    refuses("{\"model_type\":\"opt\",\"word_embed_proj_dim\":512,\"max_position_embeddings\":64,"
            "\"ffn_dim\":96,\"hidden_size\":1024,\"num_hidden_layers\":2,\"vocab_size\":100,"
            "\"num_attention_heads\":16}",
            TY_ERR_UNSUPPORTED, "c.json: word_embed_proj_dim", "only hidden_size (1024)");
    refuses("{\"model_type\":\"nemotron-nas\",\"num_hidden_layers\":1,\"hidden_size\":64,"
            "\"num_attention_heads\":4,\"vocab_size\":100,\"block_configs\":[{\"attention\":"
            "{\"replace_with_linear\":true},\"ffn\":{\"no_op\":true}}]}",
            TY_ERR_UNSUPPORTED, "c.json: block_configs[0].attention.replace_with_linear",
            "not modelled");
}

static void test_nonsense(void)
{
    refuses("", TY_ERR_INPUT, "c.json: line 1", "no JSON value");
    refuses("[]", TY_ERR_INPUT, "c.json", "expected an object");
    refuses("null", TY_ERR_INPUT, "c.json", "expected an object");
    refuses("{\"model_type\":7}", TY_ERR_INPUT, "c.json: model_type", "expected a text");
    refuses("{\"hidden_size\":NaN}", TY_ERR_INPUT, "c.json: line 1", "NaN");
    refuses("{\"hidden_size\":1e400}", TY_ERR_INPUT, "c.json: line 1", "range of a double");
    refuses("{\"model_type\":\"llama\",\"model_type\":\"gpt2\"}", TY_ERR_INPUT, "c.json", "twice");
    refuses("{\"head_dim\":-128," LLAMA "}", TY_ERR_INPUT, "c.json: head_dim", "-128");
    refuses("{\"head_dim\":1.5," LLAMA "}", TY_ERR_INPUT, "c.json: head_dim", "whole number");
    refuses("{\"head_dim\":\"128\"," LLAMA "}", TY_ERR_INPUT, "c.json: head_dim",
            "expected a number");
    refuses("{\"head_dim\":1099511627776," LLAMA "}", TY_ERR_INPUT, "c.json: head_dim", "65536");
    refuses("{\"tie_word_embeddings\":1," LLAMA "}", TY_ERR_INPUT, "c.json: tie_word_embeddings",
            "expected true or false");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":0,\"num_hidden_layers\":1,"
            "\"num_attention_heads\":1,\"intermediate_size\":1,\"vocab_size\":1}",
            TY_ERR_INPUT, "c.json: hidden_size", "expected 1 to 1048576");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2000,"
            "\"num_attention_heads\":1,\"intermediate_size\":1,\"vocab_size\":1}",
            TY_ERR_INPUT, "c.json: num_hidden_layers", "expected 1 to 1024");
    refuses("{\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":-1}}", TY_ERR_INPUT,
            "c.json: text_config.hidden_size", "-1");
    char deep[1024];
    memset(deep, '[', 300);
    memset(deep + 300, ']', 300);
    deep[600] = '\0';
    refuses(deep, TY_ERR_INPUT, "c.json: line 1", "64 levels");
}

static void test_size(void)
{
    const size_t bytes = (size_t)65 << 20;
    char *text = malloc(bytes);
    if (!text) {
        skip("65 MiB of text", "no memory");
        return;
    }
    memset(text, ' ', bytes);
    ok(ty_model_parse(text, bytes, "c.json", &model, &error) == TY_ERR_INPUT &&
           strstr(error.text, "64 MiB"),
       "65 MiB of text are refused");
    free(text);
}

int main(void)
{
    test_cases();
    test_rope();
    test_windows();
    test_experts();
    test_contradictions();
    test_unsupported();
    test_nonsense();
    test_size();
    return tap_done();
}
