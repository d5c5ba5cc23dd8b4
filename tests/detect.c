/* SPDX-License-Identifier: MIT
 * Detection of one machine on small texts of our own, in the forms that the tools' manuals and
 * public captures show, and texts that are out to break the reader. */
#include "tests/detect_fixture.h"

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
    check_nccl_dump();
    check_matrix();
    check_smi();
    check_tree();
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
