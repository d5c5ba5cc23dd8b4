/* SPDX-License-Identifier: MIT
 * Defaults of clusters and profiles and what follows from them. Expected values: the documented
 * defaults (field tables), handbook 4.6 for the clock, 6.1 for NICs and domains. */
#include "models/setting.h"

#include "tests/fixtures.h"
#include "tests/tap.h"

/* Only what a user must give: a GPU with peak and memory. */
static void minimal_cluster(struct ty_cluster *cluster)
{
    ty_init(TY_KIND_CLUSTER, cluster);
    cluster->gpu.bf16_flop_per_s = 500e12;
    cluster->gpu.mem_bytes = 64e9;
    cluster->gpu.mem_bytes_per_s = 2e12;
}

static const struct ty_note *find_note(const struct notes *notes, const char *field)
{
    for (uint32_t i = 0; i < notes->n; i++)
        if (strcmp(notes->note[i].field, field) == 0)
            return &notes->note[i];
    return NULL;
}

static void test_minimal(void)
{
    struct ty_cluster in, out;
    struct notes notes = {0};
    minimal_cluster(&in);
    ok(cluster_resolve(&in, &out, &notes, NULL) == TY_OK, "peak and memory of a GPU are enough");
    ok(out.gpu.fp16_flop_per_s == 500e12 && out.gpu.fp8_flop_per_s == 0.0, "peaks");
    ok(out.gpus_per_node == 8 && out.nics_per_node == 8 && out.scaleup_domain == 8, "counts");
    ok(out.scaleup == TY_SCALEUP_PCIE && out.scaleup_bytes_per_s == 31e9, "PCIe without links");
    ok(out.nic_bytes_per_s == 12.5e9 && out.nic_latency_s == 14e-6, "network");
    ok(out.oversubscription == 1.0 && out.fabric == TY_FABRIC_INFINIBAND, "fabric");
    ok(out.power_limit_w == out.gpu.tdp_w && gpu_clock_ratio(&out) == 1.0, "no power limit");
    static const char *const named[] = {"gpu.pcie",        "gpu.sms",
                                        "gpus_per_node",   "scaleup.domain",
                                        "network.nic",     "network.nics_per_node",
                                        "network.latency", "network.oversubscription",
                                        "network.fabric"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        const struct ty_note *note = find_note(&notes, named[i]);
        ok(note && note->kind == TY_NOTE_DEFAULTED && note->value[0], "%s is named: %s", named[i],
           note ? note->value : "no");
    }
    size_t n_fields;
    const struct ty_field *fields = ty_fields(TY_KIND_CLUSTER, &n_fields);
    bool all_known = true;
    for (size_t i = 0; i < n_fields; i++)
        if (fields[i].type == TY_FIELD_DOUBLE && strcmp(fields[i].path, "memory_reserved") != 0)
            all_known &= !isnan(*(double *)(void *)((char *)&out + fields[i].offset));
    ok(all_known, "no unknown number is left");
}

/* An alternative is another legal value of the same field. */
static void test_alternatives(void)
{
    struct ty_cluster in, out;
    struct notes notes = {0};
    minimal_cluster(&in);
    in.oversubscription = 2.0;
    in.gpu.tdp_w = 400.0;
    if (cluster_resolve(&in, &out, &notes, NULL) != TY_OK)
        ok(false, "resolves");
    size_t n_fields, n_origins = 0;
    const struct ty_field *fields = ty_fields(TY_KIND_CLUSTER, &n_fields);
    for (uint32_t i = 0; i < notes.n; i++) {
        const struct note_origin *origin = &notes.origin[i];
        if (!origin->path)
            continue;
        n_origins++;
        const struct ty_field *field = NULL;
        for (size_t f = 0; f < n_fields; f++)
            if (strcmp(fields[f].path, origin->path) == 0)
                field = &fields[f];
        ok(field && (field->type == TY_FIELD_ENUM ||
                     (origin->alternative >= field->min && origin->alternative <= field->max)),
           "%s has a legal alternative: %g", origin->path, origin->alternative);
    }
    ok(n_origins >= 8, "%zu defaults have an alternative", n_origins);
    ok(find_note(&notes, "network.nodes_per_leaf") && find_note(&notes, "power_limit"),
       "leaf size matters with oversubscription, the power limit with a TDP");
}

static uint32_t domain_of(uint32_t device, uint32_t per_node, uint32_t given)
{
    struct ty_cluster in, out;
    fixture_dgx_h100(&in);
    in.gpu.scaleup_domain = device;
    in.gpus_per_node = per_node;
    in.scaleup_domain = given;
    return cluster_resolve(&in, &out, NULL, NULL) == TY_OK ? out.scaleup_domain : 0;
}

static void test_domains(void)
{
    ok(domain_of(72, 4, 0) == 72, "NVL72 with 4 GPUs a node: the device says 72");
    ok(domain_of(72, 0, 0) == 72, "and without GPUs per node");
    ok(domain_of(8, 8, 0) == 8, "an 8-GPU board");
    ok(domain_of(8, 16, 0) == 8, "two boards in a node are two domains");
    ok(domain_of(8, 4, 0) == 4, "half a board: a board's domain ends at its node");
    ok(domain_of(2, 8, 0) == 2, "bridged pairs");
    ok(domain_of(8, 8, 64) == 64, "a given domain wins");
    ok(domain_of(8, 8, 12) == 0, "a domain that cuts nodes is refused");
    struct ty_cluster cluster;
    fixture_dgx_h100(&cluster);
    cluster.gpus_per_node = 4;
    cluster.scaleup_domain = 72;
    ok(cluster_domain(&cluster, 64) == 64, "64 GPUs sit in one rack");
    ok(cluster_domain(&cluster, 72) == 72 && cluster_domain(&cluster, 144) == 72, "whole racks");
    ok(cluster_domain(&cluster, 512) == 64, "512 GPUs take 64 of each of 8 racks");
    ok(cluster_domain(&cluster, 96) == 48, "96 GPUs take 48 of each of 2 racks");
    cluster.gpus_per_node = cluster.scaleup_domain = 8;
    ok(cluster_domain(&cluster, 12) == 8 && cluster_domain(&cluster, 1024) == 8, "boards");
    ok(cluster_domain(&cluster, 1) == 1, "one GPU");
}

static double clock_at(double limit_w)
{
    struct ty_cluster in, out;
    fixture_dgx_h100(&in);
    in.power_limit_w = limit_w;
    return cluster_resolve(&in, &out, NULL, NULL) == TY_OK ? gpu_clock_ratio(&out) : 0.0;
}

/* ((500 - 105) / (700 - 105))^(1/3) = 0.8723552 (python3: (395/595)**(1/3)) */
static void test_power(void)
{
    near(clock_at(500.0), 0.8723552, 1e-6, "an H100 capped at 500 W");
    ok(clock_at(700.0) == 1.0 && clock_at(1000.0) == 1.0, "no gain at or above TDP");
    bool falls = true;
    for (double limit_w = 20.0; limit_w < 700.0; limit_w += 10.0)
        falls &= clock_at(limit_w) <= clock_at(limit_w + 10.0) && clock_at(limit_w) >= 0.1;
    ok(falls, "the clock falls with the limit and stays above its floor");
    struct ty_cluster in, out;
    fixture_dgx_h100(&in);
    in.gpu.tdp_w = (double)NAN;
    in.power_limit_w = 500.0;
    struct ty_error error = {0};
    ok(cluster_resolve(&in, &out, NULL, &error) == TY_ERR_RANGE, "a limit needs a TDP");
    same_text(error.where, "power_limit", "which is said where it is");
}

static void refuse(const char *what, const struct ty_cluster *in, const char *where)
{
    struct ty_cluster out;
    struct ty_error error = {0};
    ok(cluster_resolve(in, &out, NULL, &error) == TY_ERR_RANGE, "%s: %s", what, error.text);
    same_text(error.where, where, "the field is named");
}

static void test_refusals(void)
{
    struct ty_cluster in;
    minimal_cluster(&in);
    in.gpu.bf16_flop_per_s = (double)NAN;
    refuse("no peak", &in, "gpu.peak.bf16");
    minimal_cluster(&in);
    in.gpu.mem_bytes = (double)NAN;
    refuse("no memory size", &in, "gpu.memory.size");
    minimal_cluster(&in);
    in.gpu.mem_bytes_per_s = (double)NAN;
    refuse("no memory bandwidth", &in, "gpu.memory.bandwidth");
    minimal_cluster(&in);
    in.oversubscription = 0.5;
    refuse("oversubscription below 1", &in, "network.oversubscription");
    minimal_cluster(&in);
    in.nic_bytes_per_s = -1.0;
    refuse("negative bandwidth", &in, "network.nic");
    minimal_cluster(&in);
    in.scaleup = TY_SCALEUP_SWITCH;
    refuse("a switch without links", &in, "scaleup.bandwidth");
}

static void test_peaks(void)
{
    struct ty_gpu gpu;
    fixture_h100(&gpu);
    gpu.fp4_flop_per_s = 0.0;
    ok(gpu_peak_flop_per_s(&gpu, TY_BF16_PRECISION) == 989.4e12, "bf16");
    ok(gpu_peak_flop_per_s(&gpu, TY_AUTO_PRECISION) == 989.4e12, "auto is bf16");
    ok(gpu_peak_flop_per_s(&gpu, TY_MXFP8_PRECISION) == 1978.9e12, "mxfp8 runs at the fp8 peak");
    ok(gpu_peak_flop_per_s(&gpu, TY_NVFP4_PRECISION) == 0.0, "a Hopper lacks fp4");
    ok(gpu_peak_flop_per_s(&gpu, TY_TF32_PRECISION) == 494.7e12, "tf32");
    ok(precision_bytes(TY_AUTO_PRECISION) == 2.0 && precision_bytes(TY_FP8_PRECISION) == 1.0 &&
           precision_bytes(TY_NVFP4_PRECISION) == 0.5625,
       "bytes: nvfp4 holds one scale byte per 16 elements");
}

static void test_profile(void)
{
    struct ty_cluster in, cluster;
    fixture_dgx_h100(&in);
    struct ty_profile empty, out;
    ty_init(TY_KIND_PROFILE, &empty);
    struct notes notes = {0};
    ok(cluster_resolve(&in, &cluster, NULL, NULL) == TY_OK &&
           profile_resolve(&empty, &cluster, &out, &notes, NULL) == TY_OK,
       "an empty profile is filled");
    size_t n;
    const struct ty_field *fields = ty_fields(TY_KIND_PROFILE, &n);
    bool all_known = true;
    for (size_t i = 0; i < n; i++)
        if (fields[i].type == TY_FIELD_DOUBLE)
            all_known &= !isnan(*(double *)(void *)((char *)&out + fields[i].offset));
    struct ty_error error = {0};
    ok(all_known && profile_resolve(&out, &cluster, &out, NULL, &error) == TY_OK,
       "with numbers inside their own ranges %s %s", error.where, error.text);
    ok(find_note(&notes, "profile") && find_note(&notes, "profile constants"),
       "and said to be uncalibrated");
    near(out.allreduce_busbw_bytes_per_s, 0.8 * 450e9, 1e-12, "bus bandwidth follows the link");
    near(out.attention_flop_per_s, 0.55 * 989.4e12, 1e-12, "attention follows the peak");
    empty.allreduce_busbw_bytes_per_s = 300e9;
    empty.attention_fa2_ratio = 0.25;
    empty.flash_version = 2;
    cluster.fabric = TY_FABRIC_OMNIPATH;
    ok(profile_resolve(&empty, &cluster, &out, NULL, NULL) == TY_OK, "a partial profile");
    ok(out.allreduce_busbw_bytes_per_s == 300e9, "keeps what was measured");
    near(out.attention_flop_per_s, 0.25 * 989.4e12, 1e-12, "FlashAttention-2 has its own rate");
    empty.flash_version = 1;
    empty.attention_fa1_ratio = 0.5;
    ok(profile_resolve(&empty, &cluster, &out, NULL, NULL) == TY_OK, "kernels of 2023");
    near(out.attention_flop_per_s, 0.5 * 0.25 * 989.4e12, 1e-12, "a share of that");
    near(out.nic_ratio, 0.57, 1e-12, "Omni-Path reaches less of its line rate");
}

static void test_setting(void)
{
    struct ty_model model;
    struct ty_cluster cluster;
    struct ty_profile profile;
    struct setting setting;
    fixture_llama3_8b(&model);
    fixture_dgx_h100(&cluster);
    ty_init(TY_KIND_PROFILE, &profile);
    ok(setting_init(&model, &cluster, &profile, &setting, NULL, NULL) == TY_OK, "a setting");
    ok(setting.cluster.mem_reserved_bytes == setting.profile.runtime_bytes,
       "memory held by the runtime is that of the profile");
    near(setting.params.total, 8030261248.0, 0.0, "parameters of llama3-8b (its model card)");
    model.hidden = 0;
    ok(setting_init(&model, &cluster, &profile, &setting, NULL, NULL) == TY_ERR_RANGE,
       "no setting without a model");
}

int main(void)
{
    test_minimal();
    test_alternatives();
    test_domains();
    test_power();
    test_refusals();
    test_peaks();
    test_profile();
    test_setting();
    return tap_done();
}
