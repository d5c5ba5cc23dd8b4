/* SPDX-License-Identifier: MIT
 * Detection over the shared samples. What is expected is what their README says they are (machines,
 * GPUs, rails, leaves) and, for rates, the closed form behind the printed link speeds. */
#include "tests/detect_fixture.h"

static char sample_paths[FIXTURE_FILES][1024];

static const char *sample(const char *name)
{
    static int next;
    char *path = sample_paths[next++ % FIXTURE_FILES];
    char inside[256];
    snprintf(inside, sizeof inside, "data/samples/%s", name);
    snprintf(path, sizeof sample_paths[0], "%s", shared_path(inside));
    return path;
}

/* What one sample must give; 0, NULL: it does not say. */
struct want {
    const char *file, *gpu_given, *gpu;
    uint32_t gpus_per_node, nodes, nics, cores, domain, leaf;
    int scaleup, fabric;
    double nic_bytes_per_s, host_mem_bytes;
};

/* 4 x H200 and 2 x MI300X; 2 sockets of 48 cores with 2 threads; 2063000 MiB */
#define SLURM_H200                                                                                 \
    .gpu = "h200-sxm", .gpus_per_node = 8, .nodes = 4, .cores = 96, .nic_bytes_per_s = 50e9,       \
    .fabric = TY_FABRIC_INFINIBAND, .host_mem_bytes = 2063000.0 * 1048576.0

static const struct want wants[] = {
    /* AWS: 4 switches of 2 GPUs and 1 NIC, device 20b0 = A100 40 GB, comments inside elements */
    {.file = "nccl/aws-p4d-24xl-topo.xml",
     .gpu = "a100-sxm-40gb",
     .gpus_per_node = 8,
     .nics = 4,
     .fabric = TY_FABRIC_EFA,
     .nic_bytes_per_s = 12.5e9},
    /* Azure: no element names the GPU, nor the rate of a NIC */
    {.file = "nccl/azure-ndv2-topo.xml",
     .gpus_per_node = 8,
     .nics = 1,
     .fabric = TY_FABRIC_INFINIBAND},
    {.file = "nccl/azure-ndv4-topo.xml",
     .gpus_per_node = 8,
     .nics = 8,
     .fabric = TY_FABRIC_INFINIBAND},
    {.file = "nccl/azure-ndv5-topo.xml",
     .gpu_given = "h100-sxm",
     .gpu = "h100-sxm",
     .gpus_per_node = 8,
     .nics = 8,
     .fabric = TY_FABRIC_INFINIBAND},
    {.file = "nvidia/nvidia-smi-q-x-h200-trimmed.xml",
     .gpu = "h200-sxm",
     .gpus_per_node = 8,
     .scaleup = TY_SCALEUP_SWITCH},
    {.file = "nvidia/query-gpu.csv", .gpu = "h200-sxm", .gpus_per_node = 8},
    /* 10 NICs, 8 of them beside GPUs; a column GPU NUMA ID behind blanks */
    {.file = "nvidia/topo-m-h100-8gpu-10nic.txt",
     .gpu_given = "h100-sxm",
     .gpu = "h100-sxm",
     .gpus_per_node = 8,
     .nics = 8,
     .domain = 8,
     .scaleup = TY_SCALEUP_SWITCH},
    {.file = "nvidia/topo-m-pcie-4gpu.txt",
     .gpus_per_node = 4,
     .nics = 1,
     .scaleup = TY_SCALEUP_PCIE},
    {.file = "amd/rocm-smi-showtopo-mi300x.txt",
     .gpu_given = "mi300x",
     .gpu = "mi300x",
     .gpus_per_node = 8,
     .domain = 8,
     .scaleup = TY_SCALEUP_MESH},
    /* 16 GPUs on 12 NVSwitches, 6 links of 25 GB/s each: one domain */
    {.file = "hwloc/nvidia-dgx2.xml",
     .gpu = "v100-sxm-32gb",
     .gpus_per_node = 16,
     .domain = 16,
     .scaleup = TY_SCALEUP_SWITCH},
    /* 2 hosts x 8 rails, 2 leaves that both serve both hosts, 8 uplinks each */
    {.file = "infiniband/ibnetdiscover.txt",
     .nodes = 2,
     .nics = 8,
     .leaf = 2,
     .fabric = TY_FABRIC_INFINIBAND,
     .nic_bytes_per_s = 50e9},
    {.file = "slurm/scontrol-show-node.txt", SLURM_H200},
    {.file = "slurm/scontrol-show-node-oneline.txt", SLURM_H200},
    {.file = "slurm/sinfo-N.txt", SLURM_H200},
    {.file = "slurm/sinfo-22.05.json", SLURM_H200},
    {.file = "slurm/scontrol-show-node.txt",
     .gpu_given = "mi300x",
     .gpu = "mi300x",
     .gpus_per_node = 8,
     .nodes = 2,
     .cores = 128,
     .nic_bytes_per_s = 50e9,
     .fabric = TY_FABRIC_ROCE,
     .host_mem_bytes = 1547000.0 * 1048576.0},
    {.file = "slurm/scontrol-show-topology.txt", .leaf = 2},
    /* 6 x H200, one not ready, one cordoned; the taint of GPU nodes keeps nobody out */
    {.file = "kubernetes/nodes.json",
     .gpu = "h200-sxm",
     .gpus_per_node = 8,
     .nodes = 4,
     .host_mem_bytes = 2113929216.0 * 1024.0},
    {.file = "kubernetes/nodes.json",
     .gpu_given = "mi300x",
     .gpu = "mi300x",
     .gpus_per_node = 8,
     .nodes = 1,
     .host_mem_bytes = 2113929216.0 * 1024.0},
};

static void number(double got, double want, const char *file, const char *field)
{
    char what[256];
    snprintf(what, sizeof what, "%s: %s", file, field);
    if (want > 0.0)
        near(got, want, 1e-9, what);
    else
        ok(isnan(got) || got == 0.0, "%s is left open", what);
}

/* A cluster file reads back to the cluster that was found. */
static void reads_back(const struct ty_detection *d, const char *file)
{
    struct ty_cluster back;
    struct ty_error error = {0};
    ty_init(TY_KIND_CLUSTER, &back);
    if (!ok(ty_spec_parse(TY_KIND_CLUSTER, d->json, strlen(d->json), file, &back, &error) == TY_OK,
            "%s: the cluster file loads", file)) {
        printf("# %s: %s\n", error.where, error.text);
        return;
    }
    char *ours = ty_spec_write(TY_KIND_CLUSTER, &d->cluster);
    char *again = ty_spec_write(TY_KIND_CLUSTER, &back);
    same_text(again, ours, "... to the same cluster");
    ty_text_free(ours);
    ty_text_free(again);
}

static void check_sample(const struct want *want)
{
    const char *path = sample(want->file);
    struct ty_error error = {0};
    struct ty_detection d;
    if (!ok(ty_detect(&path, 1, want->gpu_given, &d, &error) == TY_OK, "%s is read", want->file)) {
        printf("# %s: %s\n", error.where, error.text);
        return;
    }
    const struct ty_cluster *c = &d.cluster;
    ok(d.complete == (want->gpu != NULL), "%s: complete only with a GPU", want->file);
    same_text(c->gpu.name, want->gpu ? want->gpu : "", "... which is the right one");
    number(c->gpus_per_node, want->gpus_per_node, want->file, "gpus_per_node");
    number(c->n_nodes, want->nodes, want->file, "nodes");
    number(c->nics_per_node, want->nics, want->file, "network.nics_per_node");
    number(c->cpu_cores_per_node, want->cores, want->file, "host.cpu_cores");
    number(c->scaleup_domain, want->domain, want->file, "scaleup.domain");
    number(c->nodes_per_leaf, want->leaf, want->file, "network.nodes_per_leaf");
    number(c->nic_bytes_per_s, want->nic_bytes_per_s, want->file, "network.nic");
    ok(c->scaleup == want->scaleup, "%s: scaleup.kind", want->file);
    ok(c->fabric == want->fabric, "%s: network.fabric", want->file);
    if (want->host_mem_bytes > 0.0)
        number(c->host_mem_bytes, want->host_mem_bytes, want->file, "host.memory");
    if (d.complete)
        reads_back(&d, want->file);
    else
        ok(remarks_with(&d, TY_REMARK_GAP, "gpu: no source names it") == 1,
           "%s: the missing GPU is a gap", want->file);
    ty_detection_free(&d);
}

static bool detect_one(const char *name, const char *gpu, struct ty_detection *d)
{
    const char *path = sample(name);
    struct ty_error error = {0};
    return ok(ty_detect(&path, 1, gpu, d, &error) == TY_OK, "%s is read", name);
}

static void check_traps(void)
{
    struct ty_detection d;
    if (detect_one("nvidia/topo-m-h100-8gpu-10nic.txt", "h100-sxm", &d)) {
        ok(remarks_with(&d, TY_REMARK_NOTE, "NIC4, NIC9") == 1, "the two other NICs are named");
        near(d.cluster.scaleup_bytes_per_s, 18 * 25e9, 1e-12, "NV18 is 18 links of 25 GB/s");
        ty_detection_free(&d);
    }
    if (detect_one("nvidia/nvidia-smi-q-x-h200-trimmed.xml", NULL, &d)) {
        near(d.cluster.power_limit_w, 700.0, 1e-12, "the power limit is not the power drawn");
        near(d.cluster.gpu.mem_bytes, 143771.0 * 1048576.0, 1e-12, "memory is that of the device");
        ty_detection_free(&d);
    }
    if (detect_one("nccl/azure-ndv2-topo.xml", "v100-sxm-32gb", &d)) {
        /* 16 GT/s is printed; a V100 is PCIe 3: 8 GT/s */
        ok(remarks_with(&d, TY_REMARK_CONTRADICTION, "gpu.pcie") == 1,
           "a virtual machine's PCIe rate beyond the GPU's own is a contradiction");
        ok(d.cluster.gpu.pcie_bytes_per_s < 16e9, "... and is not taken");
        ty_detection_free(&d);
    }
    if (detect_one("nccl/aws-p4d-24xl-topo.xml", NULL, &d)) {
        near(d.cluster.gpu.pcie_bytes_per_s, 8e9 * 16 / 8 * 128 / 130, 1e-12,
             "8 GT/s x 16 lanes, below what an A100 could do");
        ty_detection_free(&d);
    }
    if (detect_one("hwloc/nvidia-dgx2.xml", NULL, &d)) {
        near(d.cluster.scaleup_bytes_per_s, 6 * 25e9, 1e-6, "6 NVLinks of 25 GB/s per GPU");
        near(d.cluster.host_mem_bytes, 2 * 810234351616.0, 0.01, "memory of both NUMA nodes");
        ok(remarks_with(&d, TY_REMARK_NOTE, "restricted view") == 1,
           "4 of its processors are no count of cores");
        ty_detection_free(&d);
    }
    if (detect_one("infiniband/ibnetdiscover.txt", NULL, &d)) {
        near(d.cluster.oversubscription, 1.0, 1e-12, "8 ports down, 8 up: not oversubscribed");
        ty_detection_free(&d);
    }
    if (detect_one("kubernetes/nodes.json", NULL, &d)) {
        ok(remarks_with(&d, TY_REMARK_NOTE, "gpu-h200-4 (not ready), gpu-h200-5 (cordoned)") == 1,
           "nodes that run no job are named");
        ok(remarks_with(&d, TY_REMARK_NOTE, "--gpu mi300x") == 1, "so is the other kind of GPU");
        ok(!chosen(&d, "network.nics_per_node"), "shared devices of a plugin are no NICs");
        ok(!chosen(&d, "host.cpu_cores"), "threads are no cores");
        ty_detection_free(&d);
    }
}

static void check_merge(void)
{
    const char *paths[] = {sample("slurm/scontrol-show-node.txt"),
                           sample("slurm/scontrol-show-topology.txt"),
                           sample("nvidia/nvidia-smi-q-x-h200-trimmed.xml"),
                           sample("nvidia/topo-m-h100-8gpu-10nic.txt"),
                           sample("infiniband/ibnetdiscover.txt"),
                           sample("amd/rocm-smi-showtopo-mi300x.txt")};
    struct ty_error error = {0};
    struct ty_detection d;
    if (!ok(ty_detect(paths, 6, NULL, &d, &error) == TY_OK, "six sources are merged")) {
        printf("# %s: %s\n", error.where, error.text);
        return;
    }
    ok(d.cluster.n_nodes == 4 && d.cluster.nics_per_node == 8 &&
           d.cluster.scaleup == TY_SCALEUP_SWITCH && d.cluster.cpu_cores_per_node == 96,
       "each gives its part; the mesh of the MI300X stays out");
    const struct ty_found *nic = chosen(&d, "network.nic");
    ok(nic && nic->trust == TY_TRUST_READ && strstr(nic->place, "ibnetdiscover.txt") != NULL,
       "a rate that was read wins over a feature's name");
    const struct ty_found *limit = chosen(&d, "power_limit");
    ok(limit && strstr(limit->place, "trimmed.xml:8") != NULL, "a place is file and line");
    ok(remarks_with(&d, TY_REMARK_CONTRADICTION, "nodes: 4 of ") == 1,
       "two hosts on the fabric contradict four of Slurm");
    ok(remarks_with(&d, TY_REMARK_GAP, "network.fabric") == 0 &&
           remarks_with(&d, TY_REMARK_GAP, "network.latency") == 1,
       "gaps are those that remain");
    reads_back(&d, "merged");
    ty_detection_free(&d);
}

/* ---- mangled ------------------------------------------------------------------------------ */

static char *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    *bytes = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    return text;
}

static ty_status detect_bytes(const char *text, size_t bytes, struct ty_detection *d,
                              struct ty_error *error)
{
    const char *path = fixture_path("mangled");
    fixture_write(path, text, bytes);
    *error = (struct ty_error){0};
    return ty_detect(&path, 1, NULL, d, error);
}

/* Each part of the file is read or refused with a place and a reason. */
static void check_cuts(const char *name, const char *text, size_t bytes)
{
    bool good = true;
    for (size_t i = 0; i < 48; i++) {
        struct ty_detection d;
        struct ty_error error;
        const ty_status status = detect_bytes(text, bytes * i / 48, &d, &error);
        if (status == TY_OK)
            ty_detection_free(&d);
        else
            good &= status == TY_ERR_INPUT && *error.where && *error.text;
    }
    ok(good, "%s, cut at 48 places: read, or refused with a reason", name);
}

static void check_same(const char *what, const char *text, size_t bytes, const char *want)
{
    struct ty_detection d;
    struct ty_error error;
    if (!ok(detect_bytes(text, bytes, &d, &error) == TY_OK, "%s is read", what)) {
        printf("# %s: %s\n", error.where, error.text);
        return;
    }
    char *got = ty_spec_write(TY_KIND_CLUSTER, &d.cluster);
    same_text(got, want, "... as the plain file");
    ty_text_free(got);
    ty_detection_free(&d);
}

static void check_mangled(const char *name)
{
    size_t bytes, n = 0, m = 2;
    char *text = read_whole(sample(name), &bytes), *crlf = malloc(2 * bytes + 2),
         *wide = malloc(2 * bytes + 2);
    struct ty_detection d;
    struct ty_error error;
    check_cuts(name, text, bytes);
    if (ok(detect_bytes(text, bytes, &d, &error) == TY_OK, "%s is read", name)) {
        char *want = ty_spec_write(TY_KIND_CLUSTER, &d.cluster), what[256];
        memcpy(wide, "\xff\xfe", 2);
        for (size_t i = 0; i < bytes; i++) {
            if (text[i] == '\n')
                crlf[n++] = '\r';
            crlf[n++] = text[i];
            wide[m++] = text[i];
            wide[m++] = '\0';
        }
        snprintf(what, sizeof what, "%s with CRLF", name);
        check_same(what, crlf, n, want);
        snprintf(what, sizeof what, "%s in UTF-16", name);
        check_same(what, wide, m, want);
        ty_text_free(want);
        ty_detection_free(&d);
    }
    free(text);
    free(crlf);
    free(wide);
}

static void check_refused(void)
{
    static const char *const others[] = {"sysfs/README.txt",
                                         "prometheus/node-exporter.prom",
                                         "prometheus/api-query-vector.json",
                                         "slurm/squeue.txt",
                                         "slurm/squeue-22.05.json",
                                         "slurm/sacct-X-P.txt",
                                         "slurm/scontrol-show-job.txt",
                                         "slurm/scontrol-show-partition.txt",
                                         "kubernetes/kueue.yaml",
                                         "amd/device-metrics-exporter.prom"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *path = sample(others[i]);
        struct ty_detection d;
        struct ty_error error = {0};
        ok(ty_detect(&path, 1, NULL, &d, &error) == TY_ERR_INPUT && strstr(error.where, others[i]),
           "%s describes no machine", others[i]);
    }
}

int main(void)
{
    if (access(sample("README.md"), R_OK) != 0) {
        skip("samples", "no shared material");
        return tap_done();
    }
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++)
        check_sample(&wants[i]);
    check_traps();
    check_merge();
    check_refused();
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++)
        check_mangled(wants[i].file);
    fixture_end();
    return tap_done();
}
