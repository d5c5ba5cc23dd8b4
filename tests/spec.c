/* SPDX-License-Identifier: MIT
 * Reading and writing specification files: minimal inputs, the place named in every refusal,
 * composite forms of the plan, round trips. Expected values are those of the texts. */
#include "include/trainyard_tools.h"
#include "models/setting.h"
#include "models/spec/json.h"
#include "tests/tap.h"

#include <unistd.h>

static struct ty_error error;

static ty_status parse(enum ty_kind kind, const char *text, void *out)
{
    memset(&error, 0, sizeof error);
    return ty_spec_parse(kind, text, strlen(text), "cluster.json", out, &error);
}

/* ---- JSON that is none ------------------------------------------------------------------ */

static void test_bad_json(void)
{
    static const struct {
        const char *text, *where, *reason;
    } rows[] = {
        {"", "cluster.json: line 1", "holds no JSON value"},
        {" \n ", "cluster.json: line 2", "holds no JSON value"},
        {"{\"a\": 1,\n \"b\": NaN}", "cluster.json: line 2", "NaN and Infinity are not accepted"},
        {"{\"a\": Infinity}", "cluster.json: line 1", "NaN and Infinity are not accepted"},
        {"{\"a\": -Infinity}", "cluster.json: line 1", "malformed number"},
        {"{\n\n\"a\": 1e400}", "cluster.json: line 3", "outside the range of a double"},
        {"{\"a\": 007}", "cluster.json: line 1", "malformed number"},
        {"{\"a\": 1} {}", "cluster.json: line 1", "text follows the end"},
        {"{\"a\": 1", "cluster.json: line 1", "is not closed"},
        {"{\"a\": 1\n\"b\": 2}", "cluster.json: line 2", "malformed JSON"},
        {"{\"a\": \"x", "cluster.json: line 1", "a text is not closed"},
        {"{\"a\": \"x\ny\"}", "cluster.json: line 1", "a text is not closed"},
        {"{\"name\": \"a\\u0000b\"}", "cluster.json: line 1", "NUL"},
        {"\xff\xfe{", "cluster.json: line 1", "UTF-16"},
        {"{\"nodes\": 1, \"nodes\": 2}", "cluster.json", "\"nodes\" is given twice"},
        {"{\"network\": {\"nic\": \"1 B/s\", \"nic\": \"2 B/s\"}}", "cluster.json: network",
         "given twice"},
        {"[1]", "cluster.json", "is an array; expected an object"},
    };
    struct ty_cluster cluster;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ok(parse(TY_KIND_CLUSTER, rows[i].text, &cluster) == TY_ERR_INPUT &&
               strcmp(error.where, rows[i].where) == 0 && strstr(error.text, rows[i].reason),
           "bad JSON %zu: %s: %s", i, error.where, error.text);
    }
    ok(ty_spec_parse(TY_KIND_CLUSTER, "{}\0{}", 5, "x", &cluster, &error) == TY_ERR_INPUT &&
           strstr(error.text, "NUL"),
       "NUL bytes: %s", error.text);
}

static void test_deep(void)
{
    char text[700];
    for (size_t depth = 63; depth <= 300; depth += 237) {
        size_t n = 0;
        for (size_t i = 0; i < depth; i++)
            text[n++] = '[';
        for (size_t i = 0; i < depth; i++)
            text[n++] = ']';
        struct json_document document = {0};
        ty_status status = json_parse(text, n, "deep.json", &document, &error);
        ok((status == TY_OK) == (depth <= 64), "%zu levels: %s", depth,
           status == TY_OK ? "read" : error.text);
        json_free(&document);
    }
}

static void test_size(void)
{
    size_t bytes = JSON_FILE_LIMIT_BYTES + 1;
    char *text = malloc(bytes);
    if (!text) {
        skip("large texts", "no memory");
        return;
    }
    struct json_document document;
    memset(text, ' ', bytes);
    ok(json_parse(text, bytes, "large.json", &document, &error) == TY_ERR_INPUT &&
           strstr(error.text, "64 MiB"),
       "more than 64 MiB: %s", error.text);
    for (size_t i = 0; i < 3000000; i += 2)
        memcpy(text + i, "0,", 2);
    text[0] = '[';
    memcpy(text + 3000000, "0]", 2);
    ok(json_parse(text, 3000002, "many.json", &document, &error) == TY_ERR_INPUT &&
           strstr(error.text, "1,000,000 values"),
       "too many values: %s", error.text);
    free(text);
    ok(ty_cluster_load("/dev/zero", &(struct ty_cluster){0}, &error) == TY_ERR_INPUT,
       "a file without end: %s", error.text);
    ok(ty_cluster_load("/", &(struct ty_cluster){0}, &error) == TY_ERR_IO, "a folder: %s",
       error.text);
    ok(ty_cluster_load("./none.json", &(struct ty_cluster){0}, &error) == TY_ERR_IO, "no file: %s",
       error.text);
}

/* ---- places ----------------------------------------------------------------------------- */

static void test_places(void)
{
    static const struct {
        const char *text, *where, *reason;
    } rows[] = {
        {"{\"network\": {\"nic\": \"400\"}}", "cluster.json: network.nic",
         "\"400\" has no unit; write e.g. 400 Gb/s"},
        {"{\"network\": {\"nic\": 400}}", "cluster.json: network.nic", "400 has no unit"},
        {"{\"network\": {\"nic\": \"400 Gb\"}}", "cluster.json: network.nic", "wrong unit"},
        {"{\"network\": {\"nic\": \"-400 Gb/s\"}}", "cluster.json: network.nic",
         "is -50 GB/s; legal: 1 kB/s to 10 PB/s"},
        {"{\"network\": {\"nic\": true}}", "cluster.json: network.nic",
         "is true or false; expected a number"},
        {"{\"network\": {\"nci\": \"400 Gb/s\"}}", "cluster.json: network.nci",
         "the nearest is \"network.nic\""},
        {"{\"network\": \"400 Gb/s\"}", "cluster.json: network", "expected an object"},
        {"{\"network\": {\"oversubscription\": 0.5}}", "cluster.json: network.oversubscription",
         "is 0.5; legal: 1 to"},
        {"{\"network\": {\"fabric\": \"token ring\"}}", "cluster.json: network.fabric",
         "legal: auto, infiniband, roce, efa, ethernet, omnipath"},
        {"{\"gpus_per_node\": 7.5}", "cluster.json: gpus_per_node", "expected a whole number"},
        {"{\"gpus_per_node\": 0}", "cluster.json: gpus_per_node", "is 0; legal: 1 to 4096"},
        {"{\"gpus_per_node\": -1}", "cluster.json: gpus_per_node", "legal: 1 to 4096"},
        {"{\"gpus_per_node\": 1099511627776}", "cluster.json: gpus_per_node", "legal: 1 to 4096"},
        {"{\"gpus_per_node\": \"eight\"}", "cluster.json: gpus_per_node",
         "does not start with a number"},
        {"{\"gpus_pre_node\": 8}", "cluster.json: gpus_pre_node",
         "the nearest is \"gpus_per_node\""},
        {"{\"gpu\": \"h100-sxn\"}", "cluster.json: gpu", "did you mean \"h100-sxm\"?"},
        {"{\"gpu\": {\"memory\": {\"size\": \"80\"}}}", "cluster.json: gpu.memory.size",
         "has no unit"},
        {"{\"gpu\": {\"memory\": {\"sice\": \"80 GB\"}}}", "cluster.json: gpu.memory.sice",
         "the nearest is \"gpu.memory.size\""},
        {"{\"gpu\": 7}", "cluster.json: gpu", "is a number; expected an object"},
        {"{\"name\": [\"a\"]}", "cluster.json: name", "is an array; expected a text"},
        {"{\"name\": \"0123456789012345678901234567890123456789012345678\"}", "cluster.json: name",
         "longer than 47 characters"},
    };
    struct ty_cluster cluster;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(parse(TY_KIND_CLUSTER, rows[i].text, &cluster) == TY_ERR_INPUT &&
               strcmp(error.where, rows[i].where) == 0 && strstr(error.text, rows[i].reason),
           "%s: %s", error.where, error.text);
}

/* ---- clusters --------------------------------------------------------------------------- */

static void test_minimal_cluster(void)
{
    struct ty_cluster cluster, resolved;
    ok(parse(TY_KIND_CLUSTER,
             "{\"gpu\": \"h100-sxm\", \"gpus_per_node\": 8, \"_why\": {\"any\": [1]},\n"
             " \"network\": {\"nic\": \"400 Gb/s\", \"oversubscription\": 2}}",
             &cluster) == TY_OK,
       "GPU, GPUs per node, NIC, oversubscription %s %s", error.where, error.text);
    ok(cluster.nic_bytes_per_s == 50e9 && cluster.oversubscription == 2.0 &&
           cluster.gpu.sms == 132 && isnan(cluster.nic_latency_s),
       "what is given is read, the rest stays open");
    struct notes notes = {0};
    ok(cluster_resolve(&cluster, &resolved, &notes, &error) == TY_OK && notes.n >= 4,
       "the rest is defaulted and said: %u notes", notes.n);
    ok(parse(TY_KIND_CLUSTER, "{\"gpu\": \"gb200\", \"gpus_per_node\": 4}", &cluster) == TY_OK &&
           cluster_resolve(&cluster, &resolved, NULL, &error) == TY_OK &&
           resolved.scaleup_domain == 72,
       "4 GB200 a node, 72 in a domain");
    ok(parse(TY_KIND_CLUSTER, "{\"gpu\": {\"peak\": {\"bf16\": \"1 Pflop/s\"}, \"sms\": 100}}",
             &cluster) == TY_OK &&
           cluster.gpu.bf16_flop_per_s == 1e15 && cluster.gpu.sms == 100,
       "a GPU of one's own");
}

/* ---- plans ------------------------------------------------------------------------------ */

static ty_status set(struct ty_plan *plan, const char *path, const char *text)
{
    memset(&error, 0, sizeof error);
    return ty_field_set(TY_KIND_PLAN, plan, path, text, &error);
}

static void test_composites(void)
{
    struct ty_plan plan;
    ty_init(TY_KIND_PLAN, &plan);
    ok(set(&plan, "recompute", "full:4") == TY_OK && plan.recompute == TY_RECOMPUTE_FULL &&
           plan.recompute_layers == 4,
       "full:4");
    ok(set(&plan, "recompute", "full") == TY_OK && plan.recompute_layers == 0,
       "full after it means every layer");
    ok(set(&plan, "recompute", "selective:core_attn,mlp") == TY_OK &&
           plan.recompute == TY_RECOMPUTE_SELECTIVE &&
           plan.recompute_modules == (TY_MODULE_CORE_ATTN | TY_MODULE_MLP),
       "selective:core_attn,mlp");
    ok(set(&plan, "sharding", "zero1:8") == TY_OK && plan.sharding == TY_SHARDING_ZERO1 &&
           plan.shard_group == 8,
       "zero1:8");
    ok(set(&plan, "sharding", "hsdp:16") == TY_OK && plan.sharding == TY_SHARDING_HSDP &&
           plan.shard_group == 16,
       "hsdp:16");
    ok(set(&plan, "sharding", "zero3") == TY_OK && plan.shard_group == 0, "zero3");
    ok(set(&plan, "overlap", "tp,grad") == TY_OK &&
           plan.overlap == (TY_OVERLAP_TP | TY_OVERLAP_GRAD | TY_OVERLAP_GIVEN),
       "overlap tp,grad");
    ok(set(&plan, "layout", "Ettt|tt|tt|tt|L") == TY_OK &&
           strcmp(plan.layout, "Et*3|(tt|)*3,L") == 0,
       "layout: kept as %s", plan.layout);
    ok(set(&plan, "overlap", "none") == TY_OK && plan.overlap == TY_OVERLAP_GIVEN, "overlap none");
    ok(set(&plan, "seq", "8192") == TY_OK && set(&plan, "gbs", "4194304 tok") == TY_OK &&
           plan.gbs == 512,
       "a batch in tokens");
    ok(set(&plan, "gbs", "1024") == TY_OK && plan.gbs == 1024, "a batch in sequences");
    ok(set(&plan, "precision", "mxfp8") == TY_OK && plan.precision == TY_MXFP8_PRECISION,
       "precision mxfp8");
    ok(set(&plan, "sp", "on") == TY_OK && plan.sp == TY_ON, "sp on");
}

static void test_bad_plan_values(void)
{
    static const struct {
        const char *path, *text;
        ty_status status;
        const char *reason;
    } rows[] = {
        {"recompute", "some", TY_ERR_INPUT, "legal: auto, none, selective, full"},
        {"recompute", "none:4", TY_ERR_INPUT, "only selective"},
        {"recompute", "full:0", TY_ERR_INPUT, "is 0; legal: 1 to"},
        {"recompute", "full:", TY_ERR_INPUT, "number"},
        {"recompute", "selective:core_attn,,mlp", TY_ERR_INPUT, "unknown"},
        {"recompute", "selective:attn", TY_ERR_INPUT, "core_attn"},
        {"sharding", "zero3:8", TY_ERR_INPUT, "only zero1:N and hsdp:N"},
        {"sharding", "hsdp", TY_ERR_INPUT, "hsdp needs the number of ranks"},
        {"grad_dtype", "fp8", TY_ERR_INPUT, "legal: auto, bf16, fp32"},
        {"gbs", "4Mtok", TY_ERR_INPUT, "needs seq"},
        {"gbs", "4 M", TY_ERR_INPUT, "wrong unit"},
        {"layout", "Et*8|tq|L", TY_ERR_INPUT, "character 7: legal are E, t, m, L"},
        {"layout",
         "Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|"
         "Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|"
         "Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|"
         "Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|Et|tt|m|tt|ttt|tttt|",
         TY_ERR_LIMIT, "needs more than 255 characters"},
        {"schedule", "zb-h2", TY_ERR_INPUT, "zb-h1, zb-v, dualpipe, dualpipev"},
        {"moe_imbalance", "0.5", TY_ERR_INPUT, "legal: 1 to"},
        {"tpp", "2", TY_ERR_INPUT, "the nearest is"},
        {"tp", "", TY_ERR_INPUT, "does not start with a number"},
        {"overlap", "", TY_ERR_INPUT, "legal: tp, grad"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ty_plan plan, before;
        ty_init(TY_KIND_PLAN, &plan);
        before = plan;
        ok(set(&plan, rows[i].path, rows[i].text) == rows[i].status &&
               strstr(error.text, rows[i].reason) && memcmp(&plan, &before, sizeof plan) == 0,
           "%s %s: %s", rows[i].path, rows[i].text, error.text);
    }
}

static void test_plan_file(void)
{
    struct ty_plan plan;
    ok(parse(TY_KIND_PLAN,
             "{\"gbs\": \"4194304 tok\", \"seq\": 8192, \"recompute_layers\": 3,\n"
             " \"recompute\": \"full\", \"shard_group\": 8, \"sharding\": \"hsdp\", \"sp\": true}",
             &plan) == TY_OK &&
           plan.gbs == 512 && plan.recompute_layers == 3 && plan.shard_group == 8 &&
           plan.sharding == TY_SHARDING_HSDP && plan.sp == TY_ON,
       "the parts of a plan come in any order %s %s", error.where, error.text);
    ok(parse(TY_KIND_PLAN, "{\"sharding\": \"hsdp:8\", \"recompute\": \"full:2\"}", &plan) ==
               TY_OK &&
           plan.shard_group == 8 && plan.recompute_layers == 2,
       "and in their composite forms");
    ok(parse(TY_KIND_PLAN, "{\"sharding\": \"hsdp\"}", &plan) == TY_ERR_INPUT, "hsdp alone: %s",
       error.text);
    ok(parse(TY_KIND_PLAN, "{\"tp\": 2, \"microbatch\": 1}", &plan) == TY_ERR_INPUT &&
           strcmp(error.where, "cluster.json: microbatch") == 0,
       "an unknown key: %s", error.text);
    ok(parse(TY_KIND_PLAN, "{\"tp\": \"2\"}", &plan) == TY_OK && plan.tp == 2,
       "a count may be a text");
}

/* ---- one field of the others ------------------------------------------------------------ */

static void test_field_set(void)
{
    struct ty_cluster cluster;
    ok(ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK, "dgx-h100");
    ok(ty_field_set(TY_KIND_CLUSTER, &cluster, "network.nic", "800 Gb/s", &error) == TY_OK &&
           cluster.nic_bytes_per_s == 100e9,
       "network.nic");
    ok(ty_field_set(TY_KIND_CLUSTER, &cluster, "gpu.memory.size", "96 GB", &error) == TY_OK &&
           cluster.gpu.mem_bytes == 96e9,
       "gpu.memory.size");
    ok(ty_field_set(TY_KIND_CLUSTER, &cluster, "gpu", "h200-sxm", &error) == TY_OK &&
           strcmp(cluster.gpu.name, "h200-sxm") == 0,
       "the whole GPU by its name");
    ok(ty_field_set(TY_KIND_CLUSTER, &cluster, "network.nics", "8", &error) == TY_ERR_INPUT &&
           strstr(error.text, "network.nic"),
       "an unknown path: %s", error.text);
    struct ty_profile profile;
    ty_init(TY_KIND_PROFILE, &profile);
    ok(ty_field_set(TY_KIND_PROFILE, &profile, "calibrated", "on", &error) == TY_OK &&
           profile.calibrated,
       "a switch of a profile");
    ok(ty_field_set(TY_KIND_PROFILE, &profile, "software.host_layer", "250 us", &error) == TY_OK &&
           profile.host_layer_s == 250e-6,
       "a time of a profile");
}

/* ---- round trips ------------------------------------------------------------------------ */

/* A struct with every field at an odd legal value reads back bit for bit. */
static void fill_oddly(enum ty_kind kind, void *value, unsigned salt)
{
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    ty_init(kind, value);
    for (size_t i = 0; i < n; i++) {
        char *at = (char *)value + fields[i].offset;
        double low = fmax(fields[i].min, 1e-12), high = fields[i].max;
        double share = fmod(0.618034 * (double)(i + salt + 1), 1.0);
        double number = low * pow(high / low, share);
        uint32_t count = (uint32_t)fmax(1.0, number);
        int choice = 0;
        switch (fields[i].type) {
        case TY_FIELD_DOUBLE:
            memcpy(at, &number, sizeof number);
            break;
        case TY_FIELD_U32:
            memcpy(at, &count, sizeof count);
            break;
        case TY_FIELD_ENUM:
            while (fields[i].names[choice + 1])
                choice++;
            memcpy(at, &choice, sizeof choice);
            break;
        case TY_FIELD_FLAGS:
            count = 5 | (uint32_t)fields[i].max;
            memcpy(at, &count, sizeof count);
            break;
        case TY_FIELD_TEXT:
            snprintf(at, fields[i].size,
                     strcmp(fields[i].path, "layout") == 0 ? "Et*%u|L" : "t%u \"\\ \xc2\xb5",
                     salt + 3);
            break;
        default:
            *(bool *)(void *)at = true;
        }
    }
}

static void test_round_trips(void)
{
    static const struct {
        enum ty_kind kind;
        const char *name;
        size_t bytes;
    } kinds[] = {{TY_KIND_GPU, "gpu", sizeof(struct ty_gpu)},
                 {TY_KIND_CLUSTER, "cluster", sizeof(struct ty_cluster)},
                 {TY_KIND_PLAN, "plan", sizeof(struct ty_plan)},
                 {TY_KIND_PROFILE, "profile", sizeof(struct ty_profile)},
                 {TY_KIND_PRICE, "price", sizeof(struct ty_price)}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int n_same = 0;
        for (unsigned salt = 0; salt < 50; salt++) {
            union {
                struct ty_cluster cluster;
                struct ty_plan plan;
                struct ty_profile profile;
                struct ty_price price;
            } value, back;
            fill_oddly(kinds[k].kind, &value, salt);
            memset(&back, 0xa5, sizeof back);
            char *text = ty_spec_write(kinds[k].kind, &value);
            ty_status status = text ? parse(kinds[k].kind, text, &back) : TY_ERR_NOMEM;
            bool same = status == TY_OK && memcmp(&value, &back, kinds[k].bytes) == 0;
            if (!same && salt == 0)
                printf("# %s: %s\n%s\n", error.where, error.text, text ? text : "");
            n_same += same;
            ty_text_free(text);
        }
        ok(n_same == 50, "50 odd %ss read back to the same bits (%d do)", kinds[k].name, n_same);
    }
}

/* ---- profiles --------------------------------------------------------------------------- */

static void test_profiles(void)
{
    struct ty_cluster cluster;
    struct ty_profile profile;
    ok(ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK &&
           ty_profile_load(NULL, "fsdp", &cluster, &profile, &error) == TY_OK,
       "presets of Hopper and FSDP %s %s", error.where, error.text);
    same_text(profile.name, "preset-hopper", "named by the device");
    same_text(profile.stack, "fsdp", "and the stack");
    ok(!profile.calibrated && profile.default_sharding == TY_SHARDING_ZERO3 &&
           profile.flash_version == 2,
       "with the switches of FSDP");
    ok(ty_profile_load("preset", NULL, &cluster, &profile, &error) == TY_OK &&
           strcmp(profile.stack, "generic") == 0,
       "the generic stack otherwise");
    ok(ty_profile_load(NULL, "megatron", &cluster, &profile, &error) == TY_ERR_INPUT &&
           strstr(error.text, "megatron-core"),
       "an unknown stack: %s", error.text);
    struct ty_profile plain;
    ok(ty_profile_load(NULL, "megatron-core", &cluster, &plain, &error) == TY_OK &&
           ty_profile_load(NULL, "megatron-core@26.06", &cluster, &profile, &error) == TY_OK,
       "a release of a stack %s %s", error.where, error.text);
    same_text(profile.stack, "megatron-core", "is that stack");
    same_text(profile.release, "26.06", "and names the release");
    ok(profile.moe_time_ratio != plain.moe_time_ratio &&
           profile.elementwise_ratio == plain.elementwise_ratio,
       "with its own constants over those of the stack");
    ok(ty_profile_load(NULL, "megatron-core@1.0", &cluster, &profile, &error) == TY_ERR_INPUT,
       "an unknown release: %s", error.text);
    profile = plain;
    ok(ty_site_load("mbridge", &cluster, &profile, &error) == TY_OK &&
           profile.site_compute_ratio != 1.0 && profile.gemm_ratio_16 == plain.gemm_ratio_16,
       "a site changes its ratios alone");
    same_text(profile.site, "mbridge", "and names itself");
    ok(ty_site_load("nowhere", &cluster, &profile, &error) == TY_ERR_INPUT, "an unknown site: %s",
       error.text);
    cluster.fabric = TY_FABRIC_OMNIPATH;
    ok(ty_profile_load(NULL, "megatron-core", &cluster, &profile, &error) == TY_OK &&
           profile.nic_ratio != plain.nic_ratio,
       "each fabric has its own share of the line rate");
    snprintf(cluster.gpu.arch, sizeof cluster.gpu.arch, "%s", "tensor");
    ok(ty_profile_load(NULL, NULL, &cluster, &profile, &error) == TY_OK &&
           strcmp(profile.name, "preset-generic") == 0,
       "an unknown architecture takes the generic constants");
}

static void test_profile_file(void)
{
    char path[] = "/tmp/trainyard-profile-XXXXXX";
    int file = mkstemp(path);
    const char *text = "{\"name\": \"own\", \"stack\": \"fsdp\", \"calibrated\": true,"
                       " \"device\": {\"gemm_ratio_16\": 0.5}}";
    struct ty_cluster cluster;
    struct ty_profile profile;
    if (file < 0 || write(file, text, strlen(text)) < 0 ||
        ty_cluster_load("dgx-h100", &cluster, &error) != TY_OK) {
        skip("profile file", "no temporary file");
        return;
    }
    close(file);
    ok(ty_profile_load(path, NULL, &cluster, &profile, &error) == TY_OK && profile.calibrated &&
           profile.gemm_ratio_16 == 0.5,
       "a profile of one's own %s %s", error.where, error.text);
    ok(profile.flash_version == 2 && !isnan(profile.gemm_ratio_8),
       "lies over the presets of its stack");
    ok(ty_profile_load(path, "jax", &cluster, &profile, &error) == TY_ERR_INPUT,
       "and not of another: %s", error.text);
    unlink(path);
}

int main(void)
{
    test_bad_json();
    test_deep();
    test_size();
    test_places();
    test_minimal_cluster();
    test_composites();
    test_bad_plan_values();
    test_plan_file();
    test_field_set();
    test_round_trips();
    test_profiles();
    test_profile_file();
    return tap_done();
}
