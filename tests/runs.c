/* SPDX-License-Identifier: MIT
 * Rules that fill a row of the table of runs: patterns, conditions, products, order; the shipped
 * rules; plans that are mended. */
#include "calibrate/run.h"
#include "tests/tap.h"

#include <unistd.h>

static char path[] = "/tmp/trainyard-runs-XXXXXX";

static bool write_table(const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    const bool good = fputs(text, file) >= 0;
    return fclose(file) == 0 && good;
}

/* The fact `name` that the rules give for the first row of the table. */
static const char *fact(const char *rules, const char *table, const char *name, char out[64])
{
    struct match match;
    struct csv csv;
    struct facts facts;
    strcpy(out, "(failed)");
    if (!write_table(table) || csv_read(path, &csv, NULL) != TY_OK)
        return out;
    if (match_parse(rules, strlen(rules), &match, NULL) == TY_OK) {
        match_row(&match, &csv, 0, &facts);
        snprintf(out, 64, "%s", facts_text(&facts, name));
        match_free(&match);
    }
    csv_free(&csv);
    return out;
}

static void rules(void)
{
    static const char *const table = "id,framework,gpus,tp,heads,hidden\n"
                                     "ab-1,Megatron-DeepSpeed 3D,64,,,12288\n";
    char text[64];
    same_text(
        fact("{\"x\": [{\"framework\": \"*deepspeed*\", \"is\": \"yes\"}]}", table, "x", text),
        "yes", "a pattern with stars, in any case");
    same_text(fact("{\"x\": [{\"framework\": \"*DeepSpeed\", \"is\": \"yes\"}]}", table, "x", text),
              "", "no star at the end: the text must end there");
    same_text(fact("{\"x\": [{\"prefix\": [\"q\", \"ab\"], \"is\": \"yes\"}]}", table, "x", text),
              "yes", "a list: any of them; prefix of the id");
    same_text(fact("{\"x\": [{\"gpus\": {\"min\": 65}, \"is\": \"a\"}, {\"gpus\": {\"max\": 64}, "
                   "\"is\": \"b\"}]}",
                   table, "x", text),
              "b", "ends of a range belong to it");
    same_text(
        fact("{\"x\": [{\"tp\": {\"min\": 0}, \"is\": \"a\"}, {\"is\": \"b\"}]}", table, "x", text),
        "b", "an empty cell is in no range");
    same_text(fact("{\"x\": [{\"is\": \"first\"}, {\"is\": \"second\"}]}", table, "x", text),
              "first", "the first that matches wins");
    same_text(fact("{\"gpus\": [{\"is\": \"1\"}]}", table, "gpus", text), "64",
              "a filled cell stays");
    same_text(fact("{\"heads\": [{\"is\": \"= hidden / 128\"}]}", table, "heads", text), "96",
              "a product fills an empty cell");
    same_text(
        fact("{\"heads\": [{\"is\": \"= hidden / 128\"}], \"x\": [{\"is\": \"= heads * 2\"}]}",
             table, "x", text),
        "192", "a later fact uses an earlier one");
    same_text(
        fact("{\"x\": [{\"is\": \"= hidden / 5000\"}, {\"is\": \"other\"}]}", table, "x", text),
        "other", "a product that is not whole: the next rule");
    same_text(fact("{\"x\": [{\"is\": \"= hidden / 5000\", \"multiple\": 2}]}", table, "x", text),
              "4", "rounded up to a multiple");
    same_text(
        fact("{\"x\": [{\"is\": \"= gpus\", \"max\": 63}, {\"is\": \"other\"}]}", table, "x", text),
        "other", "beyond its max: the next rule");
    same_text(fact("{\"x\": [{\"is\": \"= tp * 2\"}, {\"is\": \"other\"}]}", table, "x", text),
              "other", "a missing factor: the next rule");
    struct match match;
    struct ty_error error;
    static const char *const bad[] = {"[]", "{\"x\": {}}", "{\"x\": [{\"gpu\": \"A\"}]}",
                                      "{\"x\": [{\"is\": 3}]}",
                                      "{\"x\": [{\"gpus\": 3, \"is\": \"a\"}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(match_parse(bad[i], strlen(bad[i]), &match, &error) == TY_ERR_INPUT, "refused: %s",
           bad[i]);
}

#define HEADER                                                                                     \
    "id,source,source_ref,year,gpu,gpus,framework,task,model,layers,hidden,heads,"                 \
    "kv_heads,gated_mlp,experts,topk,expert_ffn,seq_len,gbs,mbs,grad_accum,tp,pp,vpp,"             \
    "cp,ep,dp,precision\n"

static struct ty_run run;

/* Loads one row; the table above it is HEADER. */
static bool load(const char *row)
{
    char table[1024];
    snprintf(table, sizeof table, HEADER "%s\n", row);
    struct ty_error error = {0};
    if (!write_table(table))
        return false;
    const char *comma = strchr(row, ',');
    char id[64];
    snprintf(id, sizeof id, "%.*s", (int)(comma - row), row);
    if (ty_run_load(path, id, &run, &error) == TY_OK)
        return true;
    printf("# %s: %s\n", error.where, error.text);
    return false;
}

static void shipped_rules(void)
{
    ok(load("mbridge-1,Megatron-Bridge,25.11 / pretrain,2025,H100,64,Megatron-Bridge,pretrain,"
            "Llama3-70B,80,8192,64,8,1,,,,8192,128,1,,4,4,,1,,,fp8"),
       "a row of a known source");
    same_text(run.row.stack, "megatron-core", "stack");
    same_text(run.row.release, "25.11", "release");
    same_text(run.row.site, "mbridge", "site");
    same_text(run.row.family, "mcore/dense", "family");
    ok(run.plan.vpp == 20, "NVIDIA recipes: one layer a chunk, 80/4");
    ok(run.model.kinds[0].ffn == 22016, "8/3 of 8192, up to a multiple of 256 (as Llama rounds)");
    ok(strstr(run.row.assumed, "ffn_hidden") && strstr(run.row.assumed, "vpp") &&
           !strstr(run.row.assumed, "tp"),
       "what was filled is listed, what was printed is not");
    ok(load("x-1,readme,,2023,A100,8,llm-foundry (Composer + PyTorch FSDP),pretrain,MPT,24,2048,16,"
            "16,0,,,,2048,64,4,,,,,,,,bf16") &&
           run.profile.flash_version == 1,
       "PyTorch FSDP of 2023: the first FlashAttention");
    ok(run.plan.grad_dtype == TY_FP32_PRECISION, "Composer reduces in fp32");
    same_text(run.row.release, "2023", "release by year");
    ok(load("x-1,readme,,2023,A100,8,Lightning FSDP + FlashAttention-2,pretrain,Llama,22,2048,32,"
            "4,1,,,,2048,64,4,,,,,,,,bf16") &&
           run.profile.flash_version == 2 && !*run.row.release,
       "unless the row names the second");
    ok(load("x-1,readme,,2024,A100,8,PyTorch FSDP,pretrain,Llama,32,4096,32,"
            "8,1,,,,4096,64,,,,,,,,,bf16") &&
           run.plan.mbs == 4,
       "a micro-batch that is not printed fills the memory: 16384 tokens");
    ok(load("x-1,readme,,2024,A100,8,InternEvo,pretrain,Llama,32,4096,32,32,1,,,,2048,64,2,,,,,,,,"
            "bf16") &&
           !(run.plan.overlap & TY_OVERLAP_PARAM) && (run.plan.overlap & TY_OVERLAP_GRAD),
       "InternEvo hides gradients, not parameters");
    ok(load(
           "x-1,readme,,2024,A100,8,fms-fsdp (PyTorch FSDP),pretrain,Llama,32,4096,32,32,1,,,,4096,"
           "64,2,,,,,,,,bf16") &&
           run.plan.compile == TY_ON,
       "fms-fsdp compiles");
    ok(load("primus-1,Primus,,2025,MI300X,8,Primus (ROCm Megatron),pretrain,Llama2-7B,32,4096,32,"
            "32,1,,,,4096,64,2,,1,1,,1,,,bf16"),
       "an AMD row");
    same_text(run.row.stack, "rocm", "AMD is a stack of its own");
    ok(load("x-1,paper,,2021,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,8,1,,1,,,"
            "fp16") &&
           strcmp(run.row.stack, "megatron-lm-2021") == 0 &&
           strcmp(run.row.family, "mlm/dense") == 0,
       "Megatron-LM before 2023");
    ok(load("x-1,paper,,2021,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,,,8,1,,1,,,"
            "fp16") &&
           run.plan.mbs == 4 && strstr(run.row.assumed, "mbs"),
       "its micro-batch, where there is no pipeline and none is printed");
    ok(load("x-1,readme,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,8,1,,1,,,"
            "fp16") &&
           strcmp(run.row.stack, "megatron-core") == 0,
       "Megatron-LM since");
    ok(run.model.kinds[0].n_heads == 48 && run.model.kinds[0].ffn == 24576 &&
           run.model.vocab == 51200,
       "heads h/128, ffn 4h, the Megatron vocabulary");
    ok(load("simumax-1,SimuMax,,2026,B200,8,Megatron-LM,pretrain,Llama3-70B,12,8192,64,8,1,,,,,,1,"
            "4,1,2,1,1,1,4,bf16") &&
           run.plan.gbs == 16 && run.plan.seq == 4096,
       "a batch from accumulation steps: 4 * 1 * 4 replicas");
    ok(load("x-1,readme,,2022,A100,64,Megatron-DeepSpeed,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,8,"
            "1,,1,,,fp16") &&
           run.plan.sharding == TY_SHARDING_NONE,
       "DeepSpeed that names no stage runs stage 0");
    ok(load("bs-1,BigScience,,2022,A100,64,Megatron-DeepSpeed,pretrain,GPT,40,6144,,,0,,,,2048,512,"
            "4,,8,1,,1,,,fp16") &&
           run.plan.sharding == TY_SHARDING_ZERO1,
       "BigScience's scripts ask for stage 1");
    ok(!load("x-1,readme,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,,1,,1,,,"
             "fp16"),
       "no tp: refused");
}

static void mended(void)
{
    ok(load("bs-1,BigScience,,2022,A100,384,Megatron-DeepSpeed,pretrain,GPT,80,13824,,,0,,,,2048,"
            "2048,2,,8,12,,1,,,bf16") &&
           run.model.kinds[0].n_heads == 96 && run.model.kinds[0].head_dim == 144,
       "108 heads on tp 8: 96 of 144 divide 13824 and split");
    ok(load(
           "x-1,readme,,2024,H100,256,Megatron-Core MoE,pretrain,DeepSeek-V3,61,7168,128,128,1,256,"
           "8,2048,4096,4096,1,,1,2,4,1,128,,fp8") &&
           run.plan.vpp == 1 && strstr(run.row.assumed, "vpp 4 -> 1"),
       "61 layers do not fill 8 chunks, 4 or 6 neither: vpp 1");
    ok(load("x-1,readme,,2023,A100,8,llm-foundry (Composer + PyTorch FSDP),pretrain,MPT,24,2048,16,"
            "16,0,,,,2048,72,4,,,,,,,,bf16") &&
           run.plan.mbs == 3 && run.plan.gbs == 72 && run.plan.tp == 1,
       "9 sequences in micro-batches of 4: three of 3; FSDP without a tp cell");
    ok(load("x-1,readme,,2023,A100,8,llm-foundry (Composer + PyTorch FSDP),pretrain,MPT,24,2048,16,"
            "16,0,,,,2048,56,4,,,,,,,,bf16") &&
           run.plan.mbs == 4 && run.plan.gbs == 64,
       "7 sequences in micro-batches of 4: the second, ragged one counts whole");
    ok(load("x-1,readme,,2021,V100,16,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,1024,256,4,,4,8,,1,,,"
            "fp16") &&
           run.plan.pp == 4 && run.plan.n_gpus == 16,
       "tp 4 pp 8 on 16 GPUs: four stages");
    ok(load("x-1,readme,,2021,A100,8,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,1024,256,4,,1,1,,1,,,"
            "fp8") &&
           run.plan.precision == TY_BF16_PRECISION,
       "fp8 on a GPU without it: bf16");
}

/* A table of one's own: a model and a cluster by name. */
static void short_table(void)
{
    struct ty_error error = {0};
    ok(write_table("id,model,cluster,stack,gpus,tp,pp,gbs,seq_len,step_time_s\n"
                   "mine-1,llama3-8b,dgx-h200,fsdp,16,1,1,32,8192,1.5\n") &&
           ty_run_load(path, "mine-1", &run, &error) == TY_OK,
       "ten columns are enough");
    ok(run.model.n_layers == 32 && run.model.hidden == 4096, "the shape of the built-in model");
    same_text(run.cluster.name, "dgx-h200", "the cluster of the table");
    same_text(run.row.stack, "fsdp", "the stack of the table");
    ok(run.row.measured_s == 1.5 && run.row.source[0] == 'm', "what was measured, and by whom");
    ok(write_table("id,model,cluster,gpus,tp,pp,gbs,seq_len,tokens_per_s_per_gpu\n"
                   "mine-1,llama3-8b,dgx-h200,16,1,1,32,8192,8192\n") &&
           ty_run_load(path, "mine-1", &run, &error) == TY_OK && run.row.measured_s == 2.0,
       "tokens/s of a GPU in place of a step time: 32 * 8192/(8192 * 16)");
    ok(write_table("id,model,cluster,gpus,tp,pp,gbs,seq_len\nmine-1,/etc/passwd,dgx-h200,16,1,1,32,"
                   "8192\n") &&
           ty_run_load(path, "mine-1", &run, &error) == TY_ERR_INPUT,
       "a model is a built-in name, never a path");
}

/* Cells that no run can have: refused with a reason, nothing worse. */
static void hostile(void)
{
    static const char *const rows[] = {
        "x-1,r,,2024,A100,4294967295,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,8,1,,1,,,",
        "x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,4000000000,6144,,,0,,,,2048,512,4,,8,1,,1,,,",
        "x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,40,1e300,,,0,,,,2048,512,4,,8,1,,1,,,",
        "x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,-8,1,,1,,,",
        "x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,0,4,,8,1,,1,,,",
        "x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,nan,512,4,,8,1,,1,,,",
        "x-1,r,,2024,Z9,64,Megatron-LM,pretrain,GPT,40,6144,,,0,,,,2048,512,4,,8,1,,1,,,",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char row[256];
        snprintf(row, sizeof row, "%s%s", rows[i], "fp16");
        ok(!load(row), "refused: %.60s", row);
    }
    ok(load("x-1,r,,2024,A100,64,Megatron-LM,pretrain,GPT,40,6144,,,0,8,,,2048,512,0,,8,1,0,1,0,,"
            "fp16") &&
           run.plan.mbs == 1 && run.plan.ep == 1,
       "a size of zero is a cell without one");
}

int main(void)
{
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 1;
    close(descriptor);
    rules();
    shipped_rules();
    mended();
    short_table();
    hostile();
    unlink(path);
    return tap_done();
}
