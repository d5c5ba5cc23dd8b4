/* SPDX-License-Identifier: MIT
 *
 * A machine without any tool: /sys and /proc, or a copy of them in a folder. Speeds are those the
 * links were built for (max_link_speed): idle GPUs lower the current one.
 */
#include "calibrate/detect.h"
#include "calibrate/micro.h"
#include "sim/error.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512u
#define NAMES_MAX  4096u

struct tree {
    struct detect *detect;
    char sys[PATH_BYTES], proc[PATH_BYTES];
    uint32_t n_entries;
};

/* The first line of a small file, "" when it cannot be read. */
static void read_line(char *out, size_t bytes, const char *path)
{
    *out = '\0';
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    const size_t n = fread(out, 1, bytes - 1, file);
    fclose(file);
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
}

__attribute__((format(printf, 3, 4))) static void read_at(char *out, size_t bytes,
                                                          const char *format, ...)
{
    char path[2 * PATH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    read_line(out, bytes, path);
}

typedef void entry_fn(struct tree *tree, const char *folder, const char *name);

static void each_entry(struct tree *tree, const char *folder, entry_fn *fn)
{
    DIR *open = opendir(folder);
    if (!open)
        return;
    const struct dirent *entry;
    for (uint32_t n = 0; (entry = readdir(open)) && n < NAMES_MAX;)
        if (entry->d_name[0] != '.') {
            fn(tree, folder, entry->d_name);
            tree->n_entries++;
            n++;
        }
    closedir(open);
}

/* ---- GPUs --------------------------------------------------------------------------------- */

struct pci_gpus {
    struct tree tree; /* first: entries come through it */
    uint32_t n, device, vendor;
    double memory_bytes, pcie_bytes_per_s;
};

static void read_pci(struct tree *tree, const char *folder, const char *name)
{
    struct pci_gpus *gpus = (struct pci_gpus *)(void *)tree;
    char text[64], width[16];
    read_at(text, sizeof text, "%s/%s/class", folder, name);
    const unsigned long class = strtoul(text, NULL, 16) >> 16;
    read_at(text, sizeof text, "%s/%s/vendor", folder, name);
    const uint32_t vendor = (uint32_t)strtoul(text, NULL, 16);
    if ((vendor != 0x10de && vendor != 0x1002) || (class != 0x03 && class != 0x12))
        return;
    gpus->n++;
    gpus->vendor = vendor;
    read_at(text, sizeof text, "%s/%s/device", folder, name);
    gpus->device = (uint32_t)strtoul(text, NULL, 16);
    read_at(text, sizeof text, "%s/%s/mem_info_vram_total", folder, name); /* amdgpu */
    if (*text)
        gpus->memory_bytes = strtod(text, NULL);
    read_at(text, sizeof text, "%s/%s/max_link_speed", folder, name);
    read_at(width, sizeof width, "%s/%s/max_link_width", folder, name);
    const double rate = pcie_bytes_per_s(text, *width ? width : "16");
    if (!isnan(rate))
        gpus->pcie_bytes_per_s = rate;
}

static void add_gpus(struct tree *tree)
{
    struct pci_gpus gpus = {
        .tree = *tree, .memory_bytes = (double)NAN, .pcie_bytes_per_s = (double)NAN};
    char folder[PATH_BYTES + 32], text[96];
    text_format(folder, sizeof folder, "%s/bus/pci/devices", tree->sys);
    each_entry(&gpus.tree, folder, read_pci);
    tree->n_entries = gpus.tree.n_entries;
    if (gpus.n == 0)
        return;
    const gpu_set set = gpus_by_pci(gpus.vendor, gpus.device);
    const char *name = gpu_name(set, 0);
    text_format(text, sizeof text, "PCI device %04x:%04x", gpus.vendor, gpus.device);
    detect_add_gpu(tree->detect, name ? name : text, gpus.memory_bytes, 0);
    detect_add(tree->detect, "gpus_per_node", gpus.n, TY_TRUST_READ, 0);
    detect_add(tree->detect, "gpu.memory.size", gpus.memory_bytes, TY_TRUST_READ, 0);
    detect_add(tree->detect, "gpu.pcie", gpus.pcie_bytes_per_s, TY_TRUST_READ, 0);
}

/* ---- NICs --------------------------------------------------------------------------------- */

struct nics {
    struct tree tree; /* first */
    uint32_t n, n_slower, n_ethernet;
    double bytes_per_s;
};

static void count_nic(struct nics *nics, double bytes_per_s, bool ethernet)
{
    if (bytes_per_s > nics->bytes_per_s * 1.001) {
        nics->n_slower += nics->n;
        nics->n = nics->n_ethernet = 0;
        nics->bytes_per_s = bytes_per_s;
    } else if (bytes_per_s < nics->bytes_per_s * 0.999) {
        nics->n_slower++;
        return;
    }
    nics->n++;
    nics->n_ethernet += ethernet;
}

/* "400 Gb/sec (4X NDR)"; ports that are down do not count. */
static void read_port(struct tree *tree, const char *folder, const char *name)
{
    char rate[64], layer[32], state[32];
    read_at(rate, sizeof rate, "%s/%s/rate", folder, name);
    read_at(layer, sizeof layer, "%s/%s/link_layer", folder, name);
    read_at(state, sizeof state, "%s/%s/state", folder, name); /* "4: ACTIVE" */
    const double gb_per_s = strtod(rate, NULL);
    if (gb_per_s > 0.0 && (!*state || strstr(state, "ACTIVE")))
        count_nic((struct nics *)(void *)tree, gb_per_s * 1e9 / 8.0,
                  strcmp(layer, "Ethernet") == 0);
}

static void read_hca(struct tree *tree, const char *folder, const char *name)
{
    char ports[2 * PATH_BYTES];
    text_format(ports, sizeof ports, "%s/%s/ports", folder, name);
    each_entry(tree, ports, read_port);
}

/* Mbit/s; -1 when the link is down. */
static void read_interface(struct tree *tree, const char *folder, const char *name)
{
    char text[32], device[16];
    read_at(text, sizeof text, "%s/%s/speed", folder, name);
    read_at(device, sizeof device, "%s/%s/device/vendor", folder, name);
    const double mbit_per_s = strtod(text, NULL);
    if (mbit_per_s > 0.0 && strcmp(device, "0x1af4") != 0) /* virtio: no cable of its own */
        count_nic((struct nics *)(void *)tree, mbit_per_s * 1e6 / 8.0, true);
}

static void add_nics(struct tree *tree)
{
    struct nics nics = {.tree = *tree};
    char folder[PATH_BYTES + 32];
    text_format(folder, sizeof folder, "%s/class/infiniband", tree->sys);
    each_entry(&nics.tree, folder, read_hca);
    const bool rdma = nics.n > 0;
    text_format(folder, sizeof folder, "%s/class/net", tree->sys);
    if (!rdma)
        each_entry(&nics.tree, folder, read_interface);
    tree->n_entries = nics.tree.n_entries;
    if (nics.n == 0)
        return;
    struct detect *d = tree->detect;
    detect_add(d, "network.nic", nics.bytes_per_s, TY_TRUST_READ, 0);
    detect_add(d, "network.nics_per_node", nics.n, TY_TRUST_RULE, 0);
    detect_add(d, "network.fabric",
               !rdma             ? TY_FABRIC_ETHERNET
               : nics.n_ethernet ? TY_FABRIC_ROCE
                                 : TY_FABRIC_INFINIBAND,
               TY_TRUST_READ, 0);
    if (nics.n_slower)
        detect_remark(d, TY_REMARK_NOTE, "%s: %u ports are slower than the %u taken as NICs",
                      d->paths[d->file], nics.n_slower, nics.n);
}

/* ---- host --------------------------------------------------------------------------------- */

/* Cores are distinct pairs of package and core; threads of a core share both. */
static double count_cores(FILE *file)
{
    enum { PAIRS_MAX = 8192 };
    uint32_t *pair = calloc(PAIRS_MAX, sizeof *pair);
    char line[512];
    uint32_t package = 0, n = 0;
    while (pair && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (!value)
            continue;
        if (strncmp(line, "physical id", 11) == 0)
            package = (uint32_t)strtoul(value + 1, NULL, 10);
        if (strncmp(line, "core id", 7) != 0)
            continue;
        const uint32_t key = package << 16 | ((uint32_t)strtoul(value + 1, NULL, 10) & 0xffff);
        uint32_t i = 0;
        while (i < n && pair[i] != key)
            i++;
        if (i == n && n < PAIRS_MAX)
            pair[n++] = key;
    }
    free(pair);
    return n ? n : (double)NAN;
}

static void add_host(struct tree *tree)
{
    char path[PATH_BYTES + 32], line[128];
    text_format(path, sizeof path, "%s/cpuinfo", tree->proc);
    FILE *file = fopen(path, "rb");
    if (file) {
        detect_add(tree->detect, "host.cpu_cores", count_cores(file), TY_TRUST_READ, 0);
        fclose(file);
        tree->n_entries++;
    }
    text_format(path, sizeof path, "%s/meminfo", tree->proc);
    read_line(line, sizeof line, path); /* "MemTotal:       16303912 kB" */
    const char *kib = strncmp(line, "MemTotal:", 9) == 0 ? line + 9 : NULL;
    if (kib && strtod(kib, NULL) > 0.0) {
        detect_add(tree->detect, "host.memory", strtod(kib, NULL) * 1024.0, TY_TRUST_READ, 0);
        tree->n_entries++;
    }
}

ty_status detect_read_tree(const char *root, struct detect *detect, struct ty_error *error)
{
    struct tree tree = {.detect = detect};
    char probe[PATH_BYTES];
    if (strlen(root) + 64 > PATH_BYTES)
        return error_set(error, TY_ERR_INPUT, root, "is too long a path");
    text_format(probe, sizeof probe, "%s/sys", root);
    DIR *open = opendir(probe);
    if (open)
        closedir(open);
    text_format(tree.sys, sizeof tree.sys, "%s%s", root, open ? "/sys" : "");
    text_format(tree.proc, sizeof tree.proc, "%s/proc", root);
    add_gpus(&tree);
    add_nics(&tree);
    add_host(&tree);
    if (tree.n_entries == 0)
        return error_set(error, TY_ERR_INPUT, root,
                         "is a folder without class/infiniband, class/net, bus/pci/devices or "
                         "proc: no copy of /sys");
    return TY_OK;
}
