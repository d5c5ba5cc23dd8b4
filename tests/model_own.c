/* SPDX-License-Identifier: MIT
 * The own form of a model: what is written reads back to the same bits, what is wrong is refused
 * with its place, single fields are set by name. Expected values are those of the texts. */
#include "include/trainyard_tools.h"
#include "models/fields.h"
#include "models/spec/model.h"
#include "tests/tap.h"

static struct ty_model model;
static struct ty_error error;

static bool same_fields(const struct ty_field *fields, size_t n, const void *a, const void *b)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)a + fields[i].offset, (const char *)b + fields[i].offset,
                   fields[i].size) != 0)
            return false;
    return true;
}

static bool same_model(const struct ty_model *a, const struct ty_model *b)
{
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_MODEL, &n);
    bool same = same_fields(fields, n, a, b) && a->n_kinds == b->n_kinds &&
                memcmp(a->layer_kind, b->layer_kind, a->n_layers) == 0;
    fields = ty_layer_fields(&n);
    for (uint32_t i = 0; same && i < a->n_kinds; i++)
        same = same_fields(fields, n, &a->kinds[i], &b->kinds[i]);
    return same;
}

/* ---- round trip -------------------------------------------------------------------------- */

static void test_round_trips(void)
{
    const char *name;
    for (size_t i = 0; (name = ty_builtin_name(TY_KIND_MODEL, i)) != NULL; i++) {
        struct ty_model back;
        bool same = ty_model_load(name, &model, &error) == TY_OK;
        char *text = same ? ty_spec_write(TY_KIND_MODEL, &model) : NULL;
        same = text && ty_model_parse(text, strlen(text), "written", &back, &error) == TY_OK &&
               same_model(&model, &back);
        char *again = same ? ty_spec_write(TY_KIND_MODEL, &back) : NULL;
        ok(again && strcmp(text, again) == 0, "%s reads back", name);
        ty_text_free(text);
        ty_text_free(again);
    }
}

/* ---- read -------------------------------------------------------------------------------- */

#define KIND                                                                                       \
    "{\"attention\":\"heads\",\"heads\":4,\"kv_heads\":2,\"head_dim\":16,\"mlp\":\"dense\","       \
    "\"ffn\":96,\"gated\":true,\"norms\":2}"
#define TOP "{\"trainyard_model\":1,\"hidden\":64,\"vocab\":100,\"layers\":3,"

static void test_read(void)
{
    struct ty_params params;
    const char *text = TOP "\"final_norm\":true,\"kinds\":[" KIND ",{\"norms\":1}],"
                           "\"layer_kinds\":[{\"kind\":1,\"layers\":2},{\"kind\":0,\"layers\":1}]}";
    ok(ty_model_parse(text, strlen(text), "m.json", &model, &error) == TY_OK, "two kinds");
    ok(model.layer_kind[0] == 1 && model.layer_kind[1] == 1 && model.layer_kind[2] == 0,
       "kinds in order");
    ty_model_params(&model, &params);
    /* attention 2 (64 x 64) + 2 (64 x 32), MLP 3 (64 x 96), 2 + 1 + 1 norms and the last of 64,
     * two tables of 64 x 100 */
    near(params.total, 12288 + 18432 + 5 * 64 + 12800, 0.0, "parameters by hand");
    same_text(model.name, "m", "named after its file");
}

static void refuses(const char *text, const char *where, const char *reason)
{
    memset(&error, 0, sizeof error);
    ty_status status = ty_model_parse(text, strlen(text), "m.json", &model, &error);
    bool good = status == TY_ERR_INPUT && strcmp(error.where, where) == 0 &&
                strstr(error.text, reason) != NULL;
    ok(good, "refused at %s: %s", where, reason);
    if (!good)
        printf("#   status %d, \"%s\": \"%s\"\n", status, error.where, error.text);
}

static void test_refusals(void)
{
    refuses("{\"trainyard_model\":2}", "m.json: trainyard_model", "expected 1");
    refuses(TOP "\"kinds\":[" KIND "],\"hiden\":1}", "m.json: hiden", "nearest is \"hidden\"");
    refuses(TOP "\"kinds\":[{\"fnn\":1}]}", "m.json: kinds[0].fnn", "nearest is \"ffn\"");
    refuses(TOP "\"kinds\":[{\"mlp\":\"soft\"}]}", "m.json: kinds[0].mlp", "legal: none, dense");
    refuses(TOP "\"kinds\":{}}", "m.json: kinds", "expected an array");
    refuses(TOP "\"kinds\":[]}", "m.json: kinds", "0 is outside");
    refuses(TOP "\"kinds\":[" KIND "," KIND "]}", "m.json", "\"layer_kinds\" is missing");
    refuses(TOP "\"kinds\":[" KIND "],\"layer_kinds\":[{\"kind\":0,\"layers\":2}]}",
            "m.json: layer_kinds", "has 2 layers, but \"layers\" is 3");
    refuses(TOP "\"kinds\":[" KIND "],\"layer_kinds\":[{\"kind\":0,\"layers\":5000}]}",
            "m.json: layer_kinds[0].layers", "expected 1 to 1024");
    refuses(TOP "\"kinds\":[" KIND "],\"layer_kinds\":[{\"kind\":1,\"layers\":3}]}",
            "m.json: layer_kinds", "layer 0 is of kind 1");
    refuses(TOP "\"kinds\":[" KIND "],\"layer_kinds\":[{\"layers\":3}]}", "m.json: layer_kinds[0]",
            "\"kind\" is missing");
    refuses(TOP "\"kinds\":[{\"attention\":\"heads\",\"heads\":4,\"head_dim\":8}]}",
            "m.json: kinds[0].kv_heads", "divide");
}

/* ---- set --------------------------------------------------------------------------------- */

static ty_status set(const char *path, const char *text)
{
    memset(&error, 0, sizeof error);
    return ty_field_set(TY_KIND_MODEL, &model, path, text, &error);
}

static void test_set(void)
{
    ok(ty_model_load("deepseek-v3", &model, &error) == TY_OK, "deepseek-v3");
    ok(set("kinds[1].experts", "128") == TY_OK && model.kinds[1].n_experts == 128, "experts");
    ok(set("kinds[0].mlp", "none") == TY_OK && model.kinds[0].mlp == TY_MLP_NONE, "a choice");
    ok(set("tied", "on") == TY_OK && model.tied, "a switch");
    ok(set("layers", "4") == TY_OK && model.n_layers == 4 && model.layer_kind[2] == 0 &&
           model.layer_kind[3] == 1,
       "fewer layers keep the first ones");
    ok(ty_model_load("deepseek-v3", &model, &error) == TY_OK && set("layers", "70") == TY_OK &&
           model.layer_kind[2] == 0 && model.layer_kind[3] == 1 && model.layer_kind[69] == 1,
       "more layers go on with the last kind");
    /* 62 layers, every sixth with full attention: 66 and 72 follow */
    ok(ty_model_load("gemma3-27b", &model, &error) == TY_OK && set("layers", "72") == TY_OK,
       "gemma3-27b with 72 layers");
    const uint8_t full = model.layer_kind[5];
    bool periodic = true;
    for (uint32_t i = 0; i < 72; i++)
        periodic = periodic && (model.layer_kind[i] == full) == ((i + 1) % 6 == 0);
    ok(periodic, "the period of six goes on");
    ok(set("kinds[2].ffn", "8") == TY_ERR_INPUT && strstr(error.text, "has 2 kinds"),
       "a kind that is not there");
    ok(set("kinds[1].fnn", "8") == TY_ERR_INPUT && strstr(error.text, "\"ffn\""), "misspelt");
    ok(set("kinds[1].ffn", "many") == TY_ERR_INPUT && strcmp(error.where, "kinds[1].ffn") == 0,
       "no number");
    ok(set("hiden", "8") == TY_ERR_INPUT && strstr(error.text, "\"hidden\""), "misspelt field");
    ok(set("layers", "5000") == TY_ERR_INPUT && strcmp(error.where, "layers") == 0 &&
           model.n_layers == 72,
       "out of range: nothing changes");
}

int main(void)
{
    test_round_trips();
    test_read();
    test_refusals();
    test_set();
    return tap_done();
}
