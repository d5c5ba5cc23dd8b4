/* SPDX-License-Identifier: MIT
 * The small readers of detection: names of GPUs, lists of hosts, generic resources and states of
 * Slurm, rates of PCIe links. */
#include "calibrate/detect.h"
#include "tests/detect_fixture.h"

/* Names as drivers, Slurm's autodetection and label publishers print them; more than one built-in
 * GPU: the first is the usual one. */
static void check_names(void)
{
    static const struct {
        const char *name;
        double gib;
        const char *want, *second;
    } names[] = {
        {"NVIDIA H100 80GB HBM3", 79.6, "h100-sxm", NULL},
        {"NVIDIA H100 PCIe", 79.6, "h100-pcie", NULL},
        {"NVIDIA H100 NVL", 93.6, "h100-nvl", NULL},
        {"NVIDIA H200 NVL", 140.4, "h200-nvl", NULL},
        {"nvidia_h100_80gb_hbm3", 0, "h100-sxm", NULL},
        {"NVIDIA-H100-80GB-HBM3-SHARED", 0, "h100-sxm", NULL},
        {"h100", 0, "h100-sxm", "h100-sxm-96gb"},
        {"NVIDIA A100-SXM4-40GB", 40, "a100-sxm-40gb", NULL},
        {"NVIDIA A100-SXM4-80GB", 80, "a100-sxm-80gb", NULL},
        {"nvidia_a100-sxm4-40gb", 0, "a100-sxm-40gb", NULL},
        {"NVIDIA A100 80GB PCIe", 80, "a100-pcie-80gb", NULL},
        {"NVIDIA A100-PCIE-40GB", 40, "a100-pcie-40gb", NULL},
        {"a100", 0, "a100-sxm-80gb", "a100-sxm-40gb"},
        {"a100", 40, "a100-sxm-40gb", "a100-pcie-40gb"},
        {"Tesla V100-SXM2-32GB", 31.7, "v100-sxm-32gb", NULL},
        {"Tesla V100-SXM2-16GB", 15.8, "v100-sxm-32gb", NULL}, /* the memory is set apart */
        {"Tesla V100-PCIE-32GB", 31.7, "v100-pcie-32gb", NULL},
        {"NVIDIA H200", 140.4, "h200-sxm", "h200-nvl"},
        {"NVIDIA H20", 95.6, "h20", NULL},
        {"NVIDIA GH200 480GB", 95.6, "gh200", NULL},
        {"NVIDIA B200", 179, "b200-sxm", NULL},
        {"NVIDIA GB200", 185, "gb200", NULL},
        {"NVIDIA L40S", 45, "l40s", NULL},
        {"NVIDIA L4", 22.5, "l4", NULL},
        {"NVIDIA L40", 45, NULL, NULL},
        {"NVIDIA GeForce RTX 4090", 24, "rtx-4090", NULL},
        {"NVIDIA GeForce RTX 3090 Ti", 24, NULL, NULL},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", 16, NULL, NULL},
        {"rtx_3090", 0, "rtx-3090", NULL},
        {"AMD Instinct MI300X OAM", 192, "mi300x", NULL},
        {"AMD_Instinct_MI300X_OAM", 0, "mi300x", NULL},
        {"AMD Instinct MI300A", 128, NULL, NULL},
        {"", 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const gpu_set set = gpus_by_name(
            names[i].name, names[i].gib > 0 ? names[i].gib * 1073741824.0 : (double)NAN);
        const char *first = gpu_name(set, 0), *second = gpu_name(set, 1);
        ok(names[i].want ? first && strcmp(first, names[i].want) == 0 : set == GPU_UNKNOWN,
           "\"%s\" is %s", names[i].name, names[i].want ? names[i].want : "not built in");
        ok(names[i].second ? second && strcmp(second, names[i].second) == 0 : !second, "... %s",
           names[i].second ? "or another" : "and no other");
    }
    struct ty_gpu gpu;
    bool all = true;
    for (uint32_t i = 0; gpu_name(UINT64_MAX, i); i++)
        all &= ty_gpu_load(gpu_name(UINT64_MAX, i), &gpu, NULL) == TY_OK;
    for (size_t i = 0; ty_builtin_name(TY_KIND_GPU, i); i++)
        all &= gpus_built_in(ty_builtin_name(TY_KIND_GPU, i)) != 0;
    ok(all, "the rules name every built-in GPU and no other");
    ok(gpu_is_slice("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") && gpu_is_slice("a100_3g.20gb") &&
           !gpu_is_slice("NVIDIA A100-SXM4-80GB") && !gpu_is_slice("a100_80g"),
       "slices are told from GPUs");
}

struct collected {
    char text[512];
    uint32_t n;
};

static bool collect(void *user, const char *name)
{
    struct collected *c = user;
    if (c->n++ < 8) {
        strcat(c->text, name);
        strcat(c->text, " ");
    }
    return c->n < 100000;
}

static void check_hosts(void)
{
    static const struct {
        const char *list, *want;
    } lists[] = {{"h200-[001-003,010],login", "h200-001 h200-002 h200-003 h200-010 login "},
                 {"r[1-2]n[08-09]", "r1n08 r1n09 r2n08 r2n09 "},
                 {"a,b", "a b "},
                 {"n[9-11]x", "n9x n10x n11x "}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct collected c = {"", 0};
        ok(hostlist_each(lists[i].list, collect, &c), "%s expands", lists[i].list);
        same_text(c.text, lists[i].want, "... as Slurm does");
    }
    static const char *const broken[] = {
        "n[1-", "n[a-b]", "n[3-1]", "n[1-9999999999]", "n[]]x[", "n[0-99999][0-99999]"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct collected c = {"", 0};
        const bool good = hostlist_each(broken[i], collect, &c);
        ok(!good || c.n == 0 || i == 4, "%s is broken or endless", broken[i]);
    }
    char type[32];
    ok(slurm_gres("gpu:h200:8(S:0-1)", type, sizeof type) == 8 && strcmp(type, "h200") == 0 &&
           slurm_gres("nvme:1,gpu:a100:4(S:0,1),shard:16", type, sizeof type) == 4 &&
           strcmp(type, "a100") == 0 && slurm_gres("gpu:8", type, sizeof type) == 8 && !*type &&
           slurm_gres("gpu:a100", type, sizeof type) == 1 && strcmp(type, "a100") == 0 &&
           slurm_gres("(null)", type, sizeof type) == 0 &&
           slurm_gres("gpumem:80G", type, sizeof type) == 0,
       "generic resources are parted");
    ok(!slurm_unusable("MIXED") && !slurm_unusable("idle~") && !slurm_unusable("alloc#") &&
           !slurm_unusable("IDLE+PLANNED") && slurm_unusable("IDLE+DRAIN") &&
           slurm_unusable("drained*") && slurm_unusable("idle*") && slurm_unusable("DOWN") &&
           slurm_unusable("MIXED+MAINT+RESERVED") && slurm_unusable("IDLE,NO_RESPOND"),
       "states that run a job are told from those that do not");
    near(pcie_bytes_per_s("32.0 GT/s PCIe", "16"), 32e9 / 8 * 16 * 128 / 130, 1e-12, "PCIe 5 x16");
    near(pcie_bytes_per_s("5 GT/s", "x8"), 5e9 / 8 * 8 * 8 / 10, 1e-12, "PCIe 2 x8: 8b/10b");
    ok(isnan(pcie_bytes_per_s("Unknown", "63")) && isnan(pcie_bytes_per_s("8 GT/s", "255")),
       "unknown links have no rate");
}

int main(void)
{
    check_names();
    check_hosts();
    return tap_done();
}
