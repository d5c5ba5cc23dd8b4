/* SPDX-License-Identifier: MIT
 * Detection on small texts of our own, in the forms that the tools' manuals and public captures
 * show: names of GPUs, lists of hosts, both generations of Slurm's JSON, NVLink cliques, LLDP,
 * oversubscribed fabrics, and texts that are out to break the reader. */
#include "calibrate/detect.h"
#include "tests/detect_fixture.h"

static bool read_texts(const char *what, const char *const *texts, uint32_t n, const char *gpu,
                       struct ty_detection *d)
{
    struct ty_error error;
    if (ok(detect_texts(texts, n, gpu, d, &error) == TY_OK, "%s: read", what))
        return true;
    printf("# %s: %s\n", error.where, error.text);
    return false;
}

static void refused(const char *what, const char *text, const char *reason)
{
    struct ty_detection d;
    struct ty_error error;
    const ty_status status = detect_texts(&text, 1, NULL, &d, &error);
    if (!ok(status == TY_ERR_INPUT && strstr(error.text, reason), "%s: refused", what))
        printf("# status %d, %s: %s\n", (int)status, error.where, error.text);
}

/* ---- names -------------------------------------------------------------------------------- */

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
        {"NVIDIA H200", 140.4, "h200-sxm", NULL},
        {"NVIDIA H200 NVL", 140.4, NULL, NULL},
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

/* ---- one machine -------------------------------------------------------------------------- */

/* NCCL's own dump: two boards of a GPU and a NIC under one switch each, a third NIC far away. */
static void check_nccl_dump(void)
{
    static const char text[] =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">\n"
        "<pci busid=\"1\" class=\"0x060400\"><pci busid=\"2\" class=\"0x060400\">\n"
        "<pci busid=\"3\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 "
        "GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\" rank=\"0\">\n"
        "<nvlink target=\"a\" count=\"9\" tclass=\"0x068000\"/><nvlink target=\"b\" count=\"9\" "
        "tclass=\"0x068000\"/></gpu></pci></pci>\n"
        "<pci busid=\"4\" class=\"0x020700\" vendor=\"0x15b3\"><nic><net name=\"mlx5_0\" "
        "speed=\"400000\"/></nic></pci></pci>\n"
        "<pci busid=\"5\" class=\"0x060400\">\n"
        "<pci busid=\"6\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 "
        "GT/s PCIe\" link_width=\"16\"><gpu dev=\"1\" sm=\"90\">\n"
        "<nvlink target=\"a\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n"
        "<pci busid=\"7\" class=\"0x020700\" vendor=\"0x15b3\"><nic><net name=\"mlx5_1\" "
        "speed=\"400000\"/></nic></pci></pci>\n"
        "<pci busid=\"8\" class=\"0x020700\" vendor=\"0x15b3\"><nic><net name=\"mlx5_2\" "
        "speed=\"400000\"/></nic></pci>\n"
        "<pci busid=\"9\" class=\"0x030000\" vendor=\"0x1a03\"/>\n"
        "</cpu></system>\n";
    const char *texts[] = {text};
    struct ty_detection d;
    if (!read_texts("NCCL dump", texts, 1, NULL, &d))
        return;
    ok(d.cluster.gpus_per_node == 2 && strcmp(d.cluster.gpu.name, "h100-sxm") == 0,
       "the graphics of the service processor are no GPU");
    ok(d.cluster.nics_per_node == 2, "the NIC without a GPU beside it is left out");
    near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "net speed is in Mbit/s");
    near(d.cluster.scaleup_bytes_per_s, 450e9, 1e-12, "18 NVLinks");
    ok(d.cluster.scaleup == TY_SCALEUP_SWITCH, "to switches");
    ty_detection_free(&d);
}

#define HEAD_4 "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\n"

static void check_matrix(void)
{
    /* 4 x A100 without a switch: 4 links to each of 3 peers are all 12 of a GPU; escapes */
    static const char mesh[] =
        "\033[4m" HEAD_4 "\033[0mGPU0\t X \tNV4\tNV4\tNV4\tSYS\t0-31\n"
        "GPU1\tNV4\t X \tNV4\tNV4\tSYS\t0-31\n"
        "GPU2\tNV4\tNV4\t X \tNV4\tSYS\t0-31\n"
        "GPU3\tNV4\tNV4\tNV4\t X \tPIX\t0-31\nmlx5_0\tSYS\tSYS\tSYS\tPIX\t X \n";
    /* PCIe cards in two bridged pairs */
    static const char pairs[] = HEAD_4 "GPU0\t X \tNV12\tSYS\tSYS\tSYS\n"
                                       "GPU1\tNV12\t X \tSYS\tSYS\tSYS\n"
                                       "GPU2\tSYS\tSYS\t X \tNV12\tSYS\n"
                                       "GPU3\tSYS\tSYS\tNV12\t X \tSYS\n";
    struct ty_detection d;
    const char *text = mesh;
    if (read_texts("mesh of 4", &text, 1, "a100-sxm-40gb", &d)) {
        ok(d.cluster.scaleup == TY_SCALEUP_MESH && d.cluster.scaleup_domain == 4 &&
               d.cluster.nics_per_node == 1,
           "12 links without a switch");
        near(d.cluster.scaleup_bytes_per_s, 300e9, 1e-12, "300 GB/s");
        ty_detection_free(&d);
    }
    text = pairs;
    if (read_texts("bridged pairs", &text, 1, "a100-pcie-80gb", &d)) {
        ok(d.cluster.scaleup_domain == 2 && d.cluster.gpus_per_node == 4, "domains of two");
        near(d.cluster.scaleup_bytes_per_s, 300e9, 1e-12, "12 links of 25 GB/s");
        ty_detection_free(&d);
    }
    /* A node of a rack: four GPUs see each other, their domain is the rack's */
    text = mesh;
    if (read_texts("node of an NVL72", &text, 1, "gb200", &d)) {
        ok(d.cluster.scaleup_domain == 0, "one node's view does not end the domain of a rack");
        ty_detection_free(&d);
    }
    refused("a cut row", HEAD_4 "GPU0\t X \tNV4\n", "row of GPU0 has 2 of 5");
    refused("a missing row", HEAD_4 "GPU0\t X \tNV4\tNV4\tNV4\tSYS\t0-31\n", "row of GPU1");
}

static void check_smi(void)
{
    static const char mig[] =
        "<?xml version=\"1.0\" ?><!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
        "<nvidia_smi_log><gpu id=\"1\"><product_name>Tesla V100-SXM2-16GB</product_name>\n"
        "<mig_mode><current_mig>Enabled</current_mig></mig_mode>\n"
        "<fb_memory_usage><total>16384 MiB</total></fb_memory_usage>\n"
        "<bar1_memory_usage><total>256 MiB</total></bar1_memory_usage>\n"
        "<power_readings><power_limit>N/A</power_limit></power_readings></gpu></nvidia_smi_log>\n";
    const char *text = mig;
    struct ty_detection d;
    if (read_texts("a V100 of 16 GB", &text, 1, NULL, &d)) {
        same_text(d.cluster.gpu.name, "v100-sxm-32gb", "stands on its larger sister");
        near(d.cluster.gpu.mem_bytes, 16384.0 * 1048576.0, 1e-12, "with the memory that was read");
        ok(remarks_with(&d, TY_REMARK_CONTRADICTION, "MIG") == 1, "MIG mode is named");
        ok(isnan(d.cluster.power_limit_w), "N/A is no power limit");
        ok(strstr(d.json, "\"size\": \"16 GiB\"") != NULL, "the file holds the changed GPU");
        ty_detection_free(&d);
    }
    text = "name, memory.total [MiB], power.limit [W]\nNVIDIA A30, 24576 MiB, 165.00 W\n";
    if (read_texts("a GPU that is not built in", &text, 1, NULL, &d)) {
        ok(!d.complete && remarks_with(&d, TY_REMARK_GAP, "NVIDIA A30 is not built in") == 1,
           "named, with what to do");
        ty_detection_free(&d);
    }
    const char *path = fixture_path("gpu.json");
    static const char gpu[] =
        "{\"name\": \"a30\", \"peak\": {\"bf16\": \"165 Tflop/s\"}, \"memory\":"
        " {\"size\": \"24 GiB\", \"bandwidth\": \"933 GB/s\"}, \"tdp\": "
        "\"165 W\"}";
    fixture_write(path, gpu, strlen(gpu));
    if (read_texts("the same with a GPU file", &text, 1, path, &d)) {
        ok(d.complete && strcmp(d.cluster.gpu.name, "a30") == 0 && d.cluster.gpus_per_node == 1,
           "is a cluster");
        ty_detection_free(&d);
    }
    text = "name, memory.total [MiB]\nNVIDIA A30, 24576 MiB\n";
    if (read_texts("the same with --gpu of a built-in one", &text, 1, "l4", &d)) {
        ok(d.complete && d.cluster.gpus_per_node == 1, "stands in for it");
        ty_detection_free(&d);
    }
    refused("a row of CSV cut short", "name, memory.total [MiB], power.limit [W]\nNVIDIA H200, 1\n",
            "has 2 cells");
}

/* A copy of /sys: values of the kernel's documentation, -1 for an interface that is down. */
static void put(const char *path, const char *text)
{
    char whole[512], folder[512];
    snprintf(whole, sizeof whole, "%s/%s", fixture_path("tree"), path);
    for (char *slash = whole + 1; (slash = strchr(slash, '/')); slash++) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - whole), whole);
        mkdir(folder, 0700);
    }
    fixture_write(whole, text, strlen(text));
}

static void check_tree(void)
{
    for (int i = 0; i < 2; i++) {
        char at[128];
        static const char *const files[][2] = {{"class", "0x030200\n"},
                                               {"vendor", "0x10de\n"},
                                               {"device", "0x2335\n"},
                                               {"max_link_speed", "32.0 GT/s PCIe\n"},
                                               {"max_link_width", "16\n"}};
        for (size_t f = 0; f < 5; f++) {
            snprintf(at, sizeof at, "sys/bus/pci/devices/0000:%d8:00.0/%s", i + 1, files[f][0]);
            put(at, files[f][1]);
        }
    }
    put("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    put("sys/bus/pci/devices/0000:03:00.0/vendor", "0x1a03\n");
    put("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    put("sys/class/infiniband/mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("sys/class/infiniband/mlx5_1/ports/1/link_layer", "InfiniBand\n");
    put("sys/class/infiniband/mlx5_2/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put("sys/class/infiniband/mlx5_3/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
    put("sys/class/net/eth0/speed", "-1\n");
    put("proc/meminfo", "MemTotal:       2113929216 kB\nMemFree: 1 kB\n");
    put("proc/cpuinfo", "processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 1\nphysical id "
                        ": 0\ncore id : 0\n\nprocessor : 2\nphysical id : 1\ncore id : 0\n");
    const char *path = fixture_path("tree");
    struct ty_detection d;
    struct ty_error error = {0};
    if (!ok(ty_detect(&path, 1, NULL, &d, &error) == TY_OK, "a copy of /sys and /proc: read")) {
        printf("# %s: %s\n", error.where, error.text);
        return;
    }
    ok(d.cluster.gpus_per_node == 2 && strcmp(d.cluster.gpu.name, "h200-sxm") == 0, "two H200");
    ok(d.cluster.nics_per_node == 2 && d.cluster.fabric == TY_FABRIC_INFINIBAND,
       "the slower port and the one that is down are no NICs");
    near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "400 Gb/s");
    ok(d.cluster.cpu_cores_per_node == 2, "two threads of a core are one");
    near(d.cluster.host_mem_bytes, 2113929216.0 * 1024.0, 1e-12, "memory in KiB");
    ty_detection_free(&d);
    path = fixture_path("");
    ok(ty_detect(&path, 1, NULL, &d, &error) == TY_ERR_INPUT, "another folder is refused");
}

/* ---- schedulers --------------------------------------------------------------------------- */

static void check_slurm_json(void)
{
    /* scontrol show nodes --json of 23.02 and later: arrays, numbers as objects */
    static const char nodes[] =
        "{\"nodes\": [{\"name\": \"n1\", \"gres\": \"gpu:h100:8(S:0-1)\", \"state\": [\"IDLE\"], "
        "\"features\": [\"ib400\"], \"sockets\": 2, \"cores\": 48, \"real_memory\": {\"set\": "
        "true, "
        "\"infinite\": false, \"number\": 2000000}},\n"
        "{\"name\": \"n2\", \"gres\": \"gpu:h100:8(S:0-1)\", \"state\": [\"MIXED\"], \"sockets\": "
        "2,"
        " \"cores\": 48, \"real_memory\": 2000000},\n"
        "{\"name\": \"n3\", \"gres\": \"gpu:h100:8\", \"state\": [\"IDLE\", \"DRAIN\"]}],\n"
        " \"meta\": {\"slurm\": {\"release\": \"24.05.1\"}}}";
    /* sinfo --json of 23.02 and later: one entry for nodes alike, per partition */
    static const char sinfo[] =
        "{\"sinfo\": [{\"node\": {\"state\": [\"IDLE\"]}, \"nodes\": {\"total\": 2, \"nodes\": "
        "[\"n1\", \"n2\"]}, \"sockets\": {\"minimum\": 2, \"maximum\": 2}, \"cores\": "
        "{\"minimum\": "
        "48, \"maximum\": 48}, \"memory\": {\"minimum\": 2000000, \"maximum\": 2000000}, "
        "\"features\": {\"total\": \"ib400\"}, \"gres\": {\"total\": \"gpu:h100:8(S:0-1)\"}, "
        "\"partition\": {\"name\": \"a\"}},\n"
        "{\"node\": {\"state\": [\"IDLE\"]}, \"nodes\": {\"nodes\": [\"n1\", \"n2\"]}, \"gres\": "
        "{\"total\": \"gpu:h100:8(S:0-1)\"}, \"partition\": {\"name\": \"b\"}},\n"
        "{\"node\": {\"state\": [\"IDLE\", \"NO_RESPOND\"]}, \"nodes\": {\"nodes\": [\"n3\"]}, "
        "\"gres\": {\"total\": \"gpu:h100:8\"}, \"partition\": {\"name\": \"b\"}}]}";
    const char *const forms[] = {nodes, sinfo};
    for (int i = 0; i < 2; i++) {
        struct ty_detection d;
        if (!read_texts(i ? "sinfo JSON, new" : "scontrol JSON, new", &forms[i], 1, NULL, &d))
            continue;
        ok(d.cluster.n_nodes == 2 && d.cluster.gpus_per_node == 8 &&
               d.cluster.cpu_cores_per_node == 96,
           "two nodes of three, named once each, 96 cores");
        near(d.cluster.host_mem_bytes, 2e6 * 1048576.0, 1e-12, "MB of Slurm are MiB");
        near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "feature ib400");
        ok(remarks_with(&d, TY_REMARK_NOTE, "n3 (") == 1, "n3 is named as left out");
        ok(remarks_with(&d, TY_REMARK_GAP, "h100-pcie") == 1,
           "\"h100\" alone leaves the form open: a gap");
        ty_detection_free(&d);
    }
}

static void check_slurm_text(void)
{
    struct ty_detection d;
    /* sinfo -N -l: a date above, blanks between, S:C:T */
    const char *texts[3] = {
        "Mon Nov 30 08:00:00 2026\nNODELIST   NODES PARTITION STATE CPUS S:C:T MEMORY TMP_DISK "
        "WEIGHT AVAIL_FE REASON\nn1 1 gpu* idle 192 2:48:2 2000000 0 1 ib200 none\n",
        "NodeName=n[1-3] Gres=gpu:a100:4 Sockets=2 CoresPerSocket=32 RealMemory=500000 "
        "State=UNKNOWN\n",
        NULL};
    if (read_texts("sinfo -N -l, no GPUs in it", texts, 1, "a100-sxm-80gb", &d)) {
        ok(d.cluster.n_nodes == 1 && d.cluster.cpu_cores_per_node == 96 &&
               chosen(&d, "nodes")->trust == TY_TRUST_RULE,
           "a table without GRES counts nodes by rule");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-3] Gres=gpu:a100:4 Sockets=2 CoresPerSocket=32 RealMemory=500000\n";
    texts[1] = "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n3,other[1-9] # more\n"
               "SwitchName=top Switches=l[1-2] Nodes=n[1-3]\n";
    if (read_texts("slurm.conf and topology.conf", texts, 2, NULL, &d)) {
        ok(d.cluster.n_nodes == 3 && d.cluster.gpus_per_node == 4, "three nodes in one line");
        ok(d.cluster.nodes_per_leaf == 2, "of a leaf those nodes count that are in the cluster");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-36] Gres=gpu:gb200:4\n";
    texts[1] = "BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n";
    if (read_texts("blocks of an NVL72", texts, 2, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.nodes_per_leaf == 0,
           "18 nodes of 4 GPUs are one domain of 72");
        ty_detection_free(&d);
    }
    texts[1] = "- topology: flat\n  cluster_default: false\n  tree:\n    switches:\n"
               "      - switch: root\n        children: s[1-2]\n      - switch: s1\n"
               "        nodes: n[01-30]\n"
               "- topology: racks   # the one in use\n  cluster_default: true\n  block:\n"
               "    block_sizes:\n      - 18\n    blocks:\n      - block: b1\n"
               "        nodes: \"n[1-18]\"\n      - block: b2\n        nodes: n[19-36]\n"
               "- topology: third\n  tree:\n    switches:\n      - switch: s\n"
               "        nodes: n[1-36]\n";
    if (read_texts("topology.yaml", texts, 2, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.nodes_per_leaf == 0,
           "the default topology counts, whatever stands around it");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-8] Gres=gpu:h200:8\n";
    texts[1] =
        "- topology: a\n  tree:\n    switches:\n      - switch: top\n        children: s1,s2\n"
        "      - switch: s1\n        nodes: n[1-4]\n      - switch: s2\n"
        "        nodes: n[5-8]\n- topology: b\n  tree:\n    switches:\n      - switch: s\n"
        "        nodes: n[1-8]\n";
    if (read_texts("topology.yaml without a default", texts, 2, NULL, &d)) {
        ok(d.cluster.nodes_per_leaf == 4, "the first topology counts");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-3] Gres=gpu:1g.5gb:7\n";
    if (read_texts("a node of MIG slices", texts, 1, "a100-sxm-40gb", &d)) {
        ok(!chosen(&d, "nodes"), "slices are no GPUs");
        ty_detection_free(&d);
    }
    refused("an endless list", "NodeName=n[1-1000][1-1000][1-1000] Gres=gpu:8\n", "endless");
    refused("a broken list", "NodeName=n[1-\n", "broken");
}

/* Appends a node of Kubernetes. */
static void kube_node(char *text, const char *name, const char *labels, const char *capacity)
{
    sprintf(text + strlen(text),
            "%s{\"kind\": \"Node\", \"metadata\": {\"name\": \"%s\", \"labels\": {%s}}, \"spec\": "
            "{}, \"status\": {\"capacity\": {%s}, \"conditions\": [{\"type\": \"Ready\", "
            "\"status\": \"True\"}]}}",
            strchr(text, 'N') ? ",\n" : "", name, labels, capacity);
}

static void check_kubernetes(void)
{
    static char text[65536];
    const char *at = text;
    struct ty_detection d;
    strcpy(text, "{\"kind\": \"List\", \"items\": [");
    for (int i = 0; i < 36; i++) {
        char name[32], labels[256];
        snprintf(name, sizeof name, "rack%d-%d", i / 18, i % 18);
        snprintf(labels, sizeof labels,
                 "\"nvidia.com/gpu.product\": \"NVIDIA-GB200\", \"nvidia.com/gpu.count\": \"4\", "
                 "\"nvidia.com/gpu.clique\": \"9c3b3b4e-0000-4000-8000-00000000000%d.32766\"",
                 i / 18);
        kube_node(text, name, labels, "\"nvidia.com/gpu\": \"4\"");
    }
    strcat(text, "]}");
    if (read_texts("NVLink cliques", &at, 1, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.n_nodes == 36 &&
               d.cluster.gpus_per_node == 4,
           "two cliques of 18 nodes: domains of 72");
        ty_detection_free(&d);
    }
    strcpy(text, "{\"kind\": \"List\", \"items\": [");
    kube_node(text, "shared",
              "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-80GB-SHARED\", "
              "\"nvidia.com/gpu.replicas\": \"4\"",
              "\"nvidia.com/gpu\": \"32\", \"memory\": \"1Ti\"");
    kube_node(text, "sliced", "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb\"",
              "\"nvidia.com/gpu\": \"16\"");
    strcat(text, "]}");
    if (read_texts("time slicing and MIG", &at, 1, NULL, &d)) {
        ok(d.cluster.gpus_per_node == 8 && d.cluster.n_nodes == 1,
           "32 replicas of 4 are 8 GPUs; slices are none");
        near(d.cluster.host_mem_bytes, 1099511627776.0, 1e-12, "1Ti");
        ty_detection_free(&d);
    }
}

/* ---- fabrics ------------------------------------------------------------------------------ */

static void check_ib(void)
{
    /* 4 hosts down, 2 links up; a SHARP aggregation node hangs on the leaf like a host */
    static const char text[] =
        "switchguid=0x1(1)\nSwitch\t41 \"S-1\"\t\t# \"leaf\" enhanced port 0 lid 1 lmc 0\n"
        "[1]\t\"H-1\"[1](11) \t\t# \"n1 HCA-1\" lid 10 4xHDR\n"
        "[2]\t\"H-2\"[1](12) \t\t# \"n2 HCA-1\" lid 11 4xHDR\n"
        "[3]\t\"H-3\"[1](13) \t\t# \"n3 HCA-1\" lid 12 4xHDR\n"
        "[4]\t\"H-4\"[1](14) \t\t# \"n4 HCA-1\" lid 13 4xHDR\n"
        "[41]\t\"H-9\"[1](19) \t\t# \"Mellanox Technologies Aggregation Node\" lid 20 4xHDR\n"
        "[21]\t\"S-2\"[1]\t\t# \"spine\" lid 2 4xHDR\n[22]\t\"S-2\"[2]\t\t# \"spine\" lid 2 4xHDR\n"
        "\nswitchguid=0x2(2)\nSwitch\t41 \"S-2\"\t\t# \"spine\" enhanced port 0 lid 2 lmc 0\n"
        "[1]\t\"S-1\"[21]\t\t# \"leaf\" lid 1 4xHDR\n[2]\t\"S-1\"[22]\t\t# \"leaf\" lid 1 4xHDR\n";
    const char *texts[] = {text, "NodeName=n[1-2] Gres=gpu:h100:8\nNodeName=n3 Gres=gpu:h100:8 "
                                 "State=DOWN\n"};
    struct ty_detection d;
    if (!read_texts("an oversubscribed leaf", texts, 2, NULL, &d))
        return;
    near(d.cluster.oversubscription, 2.0, 1e-12, "4 down over 2 up");
    near(d.cluster.nic_bytes_per_s, 25e9, 1e-12, "4 lanes of HDR");
    ok(d.cluster.n_nodes == 2 && d.cluster.nodes_per_leaf == 2 && d.cluster.nics_per_node == 1,
       "of the fabric's hosts those count that Slurm can use");
    ty_detection_free(&d);
}

static void check_lldp(void)
{
    /* lldpctl -f json with several interfaces, with one, and json0 */
    static const char several[] =
        "{\"lldp\": {\"interface\": [{\"eth0\": {\"via\": \"LLDP\", \"chassis\": {\"tor-mgmt\": "
        "{\"id\": {\"type\": \"mac\", \"value\": \"00:01\"}}}, \"port\": {\"auto-negotiation\": "
        "{\"supported\": true, \"current\": \"1000BaseTFD - Four-pair Category 5 UTP, full duplex "
        "mode\"}}}},\n"
        "{\"eth1\": {\"chassis\": {\"leaf1\": {\"id\": {\"value\": \"00:02\"}}}, \"port\": "
        "{\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}},\n"
        "{\"eth2\": {\"chassis\": {\"leaf2\": {\"id\": {\"value\": \"00:03\"}}}, \"port\": "
        "{\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}},\n"
        "{\"eth2\": {\"chassis\": {\"id\": {\"value\": \"00:04\"}}, \"port\": {}}}]}}";
    static const char single[] =
        "{\"lldp\": {\"interface\": {\"eth1\": {\"chassis\": {\"leaf1\": {\"id\": {\"value\": "
        "\"00:02\"}}}, \"port\": {\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}}}}";
    static const char json0[] =
        "{\"lldp\": [{\"interface\": [{\"name\": \"eth1\", \"chassis\": [{\"id\": [{\"type\": "
        "\"mac\", \"value\": \"00:02\"}], \"name\": [{\"value\": \"leaf1\"}]}], \"port\": "
        "[{\"auto-negotiation\": [{\"current\": [{\"value\": \"400GBASE-DR4\"}]}]}]}]}]}";
    const char *const texts[] = {several, single, json0};
    struct ty_detection d;
    if (read_texts("LLDP of one host", texts, 1, "h100-sxm", &d)) {
        ok(d.cluster.nics_per_node == 2 && d.cluster.fabric == TY_FABRIC_ROCE,
           "two fast interfaces, the slow one is for management");
        near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "400 Gb/s");
        ok(!chosen(&d, "network.nodes_per_leaf"), "one host does not fill a leaf");
        ty_detection_free(&d);
    }
    if (read_texts("LLDP of three hosts, in every form", texts, 3, "h100-sxm", &d)) {
        ok(d.cluster.nodes_per_leaf == 3, "three hosts under leaf1");
        ty_detection_free(&d);
    }
    refused("LLDP without a neighbour", "{\"lldp\": {}}", "without a neighbour");
}

/* ---- attacks ------------------------------------------------------------------------------ */

static void check_attacks(void)
{
    refused("an empty file", "", "is empty");
    refused("blanks", " \n\t\r\n", "is empty");
    refused("an entity that grows",
            "<?xml version=\"1.0\"?><!DOCTYPE system [<!ENTITY a \"aaaaaaaaaaaa\"><!ENTITY b "
            "\"&a;&a;&a;&a;&a;&a;&a;&a;\">]><system version=\"1\"><cpu numaid=\"&b;\"/></system>",
            "entity");
    refused("an entity of a file",
            "<!DOCTYPE system [<!ENTITY x SYSTEM \"/etc/passwd\">]><system>&x;</system>", "entity");
    static char deep[65536];
    size_t n = 0;
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(deep + n, i ? "<pci class=\"0x060400\">" : "<system>");
    refused("XML nested without end", deep, "nested");
    memset(deep, '[', 4000);
    deep[0] = '{';
    deep[4000] = '\0';
    refused("JSON nested without end", deep, "");
    refused("an XML that stops", "<system version=\"1\"><cpu numaid=\"0\"><pci class=\"0x0302", "");
    refused("a topology without a GPU", "<system version=\"1\"></system>", "without GPUs");
    n = (size_t)sprintf(deep, "<system>");
    for (int i = 0; i < 600; i++)
        n += (size_t)sprintf(deep + n, "<pci class=\"0x030200\"/>");
    sprintf(deep + n, "</system>");
    refused("600 GPUs in one machine", deep, "more than 512");
}

/* A text repeated to 100 MB is read in linear time, or refused. */
static void check_large(const char *what, const char *head, const char *part)
{
    if (!getenv("TRAINYARD_LONG")) {
        skip(what, "TRAINYARD_LONG is not set");
        return;
    }
    const char *path = fixture_path("large");
    FILE *file = fopen(path, "wb");
    fputs(head, file);
    for (size_t bytes = 0; bytes < 100000000; bytes += strlen(part))
        fputs(part, file);
    fclose(file);
    struct ty_detection d;
    struct ty_error error = {0};
    const ty_status status = ty_detect(&path, 1, NULL, &d, &error);
    ok(status == TY_OK || *error.text, "%s: %s", what, status == TY_OK ? "read" : error.text);
    if (status == TY_OK)
        ty_detection_free(&d);
    remove(path);
}

int main(void)
{
    check_names();
    check_hosts();
    check_nccl_dump();
    check_matrix();
    check_smi();
    check_tree();
    check_slurm_json();
    check_slurm_text();
    check_kubernetes();
    check_ib();
    check_lldp();
    check_attacks();
    check_large("100 MB of nodes", "", "NodeName=n1 Gres=gpu:h100:8 State=IDLE\n");
    check_large("100 MB of ports", "switchguid=1\nSwitch 41 \"S-1\" # \"leaf\"\n",
                "[1]\t\"H-1\"[1](11) \t\t# \"n1 HCA-1\" lid 10 4xHDR\n");
    check_large("100 MB of XML", "<system version=\"1\">", "<cpu numaid=\"0\"></cpu>");
    check_large("100 MB of JSON", "{\"nodes\": [", "{\"name\": \"n1\"},");
    check_large("100 MB of a matrix", "\tGPU0\tNIC0\nGPU0\t X \tPIX\n", "Legend: nothing more\n");
    fixture_end();
    return tap_done();
}
