/* SPDX-License-Identifier: MIT
 * Which kinds of runs the constants have seen: the table of a few rows by hand, and the built-in
 * one against a count over the published runs. */
#include "calibrate/evidence.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ty_error error;

static const char table[] =
    "{\"evidence\": ["
    "{\"vendor\": \"nvidia\", \"fabric\": \"infiniband\", \"scale\": \"9-64\", \"task\": "
    "\"dense\", "
    "\"rows\": 7},"
    "{\"vendor\": \"nvidia\", \"fabric\": \"infiniband\", \"scale\": \"65-256\", \"task\": "
    "\"moe\", "
    "\"rows\": 2},"
    "{\"vendor\": \"amd\", \"fabric\": \"one domain\", \"scale\": \"1-8\", \"task\": \"lora\", "
    "\"rows\": 3}]}";

static void look_up(const struct json_document *document, const char *vendor, const char *fabric,
                    const char *scale, const char *task, uint32_t n_rows, const char *unseen)
{
    const struct evidence_cell cell = {{vendor, fabric, scale, task}};
    struct ty_evidence out;
    evidence_find(document, &cell, &out);
    ok(out.n_rows == n_rows && strcmp(out.unseen, unseen) == 0, "%s %s %s %s: %u rows, \"%s\"",
       vendor, fabric, scale, task, out.n_rows, out.unseen);
}

static void test_table(void)
{
    struct json_document document;
    ok(json_parse(table, sizeof table - 1, "table", &document, &error) == TY_OK, "a table");
    look_up(&document, "nvidia", "infiniband", "9-64", "dense", 7, "");
    look_up(&document, "nvidia", "infiniband", "65-256", "dense", 0, "scale 65-256, task dense");
    look_up(&document, "nvidia", "omnipath", "9-64", "dense", 0, "fabric omnipath");
    look_up(&document, "other", "omnipath", "9-64", "dense", 0, "vendor other, fabric omnipath");
    look_up(&document, "amd", "infiniband", "1-8", "dense", 0, "the combination");
    json_free(&document);
}

static void test_cell(void)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_plan plan;
    ok(ty_model_load("llama3-8b", &model, &error) == TY_OK &&
           ty_cluster_load("dgx-h100", &cluster, &error) == TY_OK,
       "inputs");
    ty_init(TY_KIND_PLAN, &plan);
    plan.n_gpus = 8;
    struct evidence_cell cell = evidence_cell(&model, &cluster, &plan);
    ok(strcmp(cell.is[EVIDENCE_FABRIC], "one domain") == 0, "a node uses no network");
    plan.n_gpus = 16;
    plan.packed = TY_ON;
    cell = evidence_cell(&model, &cluster, &plan);
    ok(strcmp(cell.is[EVIDENCE_VENDOR], "nvidia") == 0 &&
           strcmp(cell.is[EVIDENCE_FABRIC], "infiniband") == 0 &&
           strcmp(cell.is[EVIDENCE_SCALE], "9-64") == 0 &&
           strcmp(cell.is[EVIDENCE_TASK], "sft") == 0,
       "two nodes, packed samples");
    model.lora_rank = 16;
    cell = evidence_cell(&model, &cluster, &plan);
    ok(strcmp(cell.is[EVIDENCE_TASK], "lora") == 0, "adapters");
    struct ty_evidence out;
    plan.n_gpus = 60000;
    ok(ty_evidence_of(&model, &cluster, &plan, &out, &error) == TY_OK && out.n_rows == 0,
       "no published run trains adapters on 60,000 GPUs");
    plan.n_gpus = 64;
    plan.packed = TY_OFF;
    model.lora_rank = 0;
    ok(ty_evidence_of(&model, &cluster, &plan, &out, &error) == TY_OK && out.n_rows > 10,
       "many train dense models on 64: %u", out.n_rows);
}

static void test_widen(void)
{
    struct ty_profile profile;
    ty_init(TY_KIND_PROFILE, &profile);
    profile.dense_half_80 = 0.01;
    profile.tuning_half_80 = 9.0;
    profile.dense_half_90 = 0.02;
    ty_evidence_widen(&profile);
    ok(profile.dense_half_80 == 9.0 && profile.moe_half_80 == 9.0, "the widest of the own classes");
    ok(profile.dense_half_90 > 0.3 && profile.moe_half_90 == profile.dense_half_90,
       "or of all stacks: %.3f", profile.dense_half_90);
}

int main(void)
{
    test_table();
    test_cell();
    test_widen();
    return tap_done();
}
