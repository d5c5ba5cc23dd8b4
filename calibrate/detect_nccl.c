/* SPDX-License-Identifier: MIT
 *
 * NCCL topology XML: the static files of clouds (PCI devices only) and what NCCL dumps itself
 * (NCCL_TOPO_DUMP_FILE), which adds gpu, nvlink and net elements. NICs for training are those under
 * a PCIe switch that also holds a GPU, where there are any; without net elements the fabric follows
 * from PCI class and vendor alone and the rate is not known.
 */
#include "calibrate/detect.h"
#include "calibrate/detect_xml.h"
#include "sim/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 512u

struct nic {
    uint32_t branch; /* device below the CPU it hangs under; 0: directly */
    uint32_t class, vendor, device;
    double bytes_per_s; /* NAN: no net element */
};

struct nccl {
    struct detect *detect;
    uint32_t n_gpus, n_nics, n_branches, branch, branch_depth;
    uint32_t gpu_branch[DEVICES_MAX];
    struct nic nic[DEVICES_MAX];
    gpu_set gpus;
    uint32_t gpu_line, nic_line, class;
    double pcie_bytes_per_s;                    /* lowest of the GPUs */
    uint32_t links, links_max, links_to_switch; /* NVLinks of this GPU; the most of any */
    bool is_xgmi, too_many;
};

static uint32_t hex(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 16);
}

static bool is_gpu(const struct nccl *n, const struct xml_element *pci)
{
    const uint32_t vendor = hex(xml_attribute(pci, "vendor"));
    if (vendor != 0 && vendor != 0x10de && vendor != 0x1002)
        return false; /* the graphics chip of a service processor */
    return n->class >> 16 == 0x03 || (n->class >> 16 == 0x12 && vendor == 0x1002);
}

static void open_gpu(struct nccl *n, const struct xml_element *pci)
{
    if (n->n_gpus == DEVICES_MAX) {
        n->too_many = true;
        return;
    }
    n->gpu_branch[n->n_gpus++] = n->branch;
    n->gpu_line = n->gpu_line ? n->gpu_line : pci->line;
    n->links = 0;
    n->gpus |= gpus_by_pci(hex(xml_attribute(pci, "vendor")), hex(xml_attribute(pci, "device")));
    const double rate =
        pcie_bytes_per_s(xml_attribute(pci, "link_speed"), xml_attribute(pci, "link_width"));
    if (!(rate >= n->pcie_bytes_per_s))
        n->pcie_bytes_per_s = rate;
}

static void open_nic(struct nccl *n, const struct xml_element *pci)
{
    if (n->n_nics == DEVICES_MAX) {
        n->too_many = true;
        return;
    }
    n->nic_line = n->nic_line ? n->nic_line : pci->line;
    n->nic[n->n_nics++] = (struct nic){.branch = n->branch,
                                       .class = n->class >> 8,
                                       .vendor = hex(xml_attribute(pci, "vendor")),
                                       .device = hex(xml_attribute(pci, "device")),
                                       .bytes_per_s = (double)NAN};
}

/* A port. The first of a card completes what its PCI element began. */
static void open_net(struct nccl *n, const struct xml_element *net)
{
    const double mbit_per_s = strtod(xml_attribute(net, "speed"), NULL);
    struct nic *last = n->n_nics ? &n->nic[n->n_nics - 1] : NULL;
    if (!last || last->branch != n->branch || !isnan(last->bytes_per_s)) {
        if (n->n_nics == DEVICES_MAX) {
            n->too_many = true;
            return;
        }
        struct nic port = last && last->branch == n->branch ? *last : (struct nic){0};
        port.branch = n->branch;
        last = &n->nic[n->n_nics++];
        *last = port;
    }
    last->bytes_per_s = mbit_per_s >= 1000.0 ? mbit_per_s * 1e6 / 8.0 : 0.0;
    n->nic_line = n->nic_line ? n->nic_line : net->line;
}

static void open_link(struct nccl *n, const struct xml_element *link)
{
    const double count = strtod(xml_attribute(link, "count"), NULL);
    if (!(count >= 1.0 && count <= 64.0))
        return;
    n->links += (uint32_t)count;
    n->links_max = n->links > n->links_max ? n->links : n->links_max;
    if (hex(xml_attribute(link, "tclass")) >> 8 == 0x0680)
        n->links_to_switch++;
}

static void on_open(void *user, const struct xml_element *element)
{
    struct nccl *n = user;
    if (element->depth <= n->branch_depth) {
        n->branch = 0;
        n->branch_depth = UINT32_MAX;
    }
    if (strcmp(element->name, "pci") == 0) {
        n->class = hex(xml_attribute(element, "class"));
        if (n->branch_depth == UINT32_MAX && n->class >> 8 == 0x0604) {
            n->branch = ++n->n_branches;
            n->branch_depth = element->depth;
        }
        if (is_gpu(n, element))
            open_gpu(n, element);
        else if (n->class >> 8 == 0x0207 || n->class >> 8 == 0x0200)
            open_nic(n, element);
    } else if (strcmp(element->name, "gpu") == 0) {
        const gpu_set set = gpus_by_sm((uint32_t)strtoul(xml_attribute(element, "sm"), NULL, 10));
        n->gpus = n->gpus ? n->gpus : set;
    } else if (strcmp(element->name, "net") == 0) {
        open_net(n, element);
    } else if (strcmp(element->name, "nvlink") == 0) {
        open_link(n, element);
    } else if (strcmp(element->name, "xgmi") == 0) {
        n->is_xgmi = true;
    }
}

/* ---- NICs for training -------------------------------------------------------------------- */

static bool beside_gpu(const struct nccl *n, const struct nic *nic)
{
    for (uint32_t i = 0; nic->branch && i < n->n_gpus; i++)
        if (n->gpu_branch[i] == nic->branch)
            return true;
    return false;
}

/* Keeps the NICs for which `better` holds, unless it holds for none. */
static void keep_nics(struct nccl *n, bool (*better)(const struct nccl *, const struct nic *))
{
    uint32_t kept = 0;
    struct nic *nic = n->nic;
    for (uint32_t i = 0; i < n->n_nics; i++)
        if (better(n, &nic[i])) {
            const struct nic good = nic[i];
            nic[i] = nic[kept];
            nic[kept++] = good;
        }
    n->n_nics = kept ? kept : n->n_nics;
}

static bool is_infiniband(const struct nccl *n, const struct nic *nic)
{
    (void)n;
    return nic->class == 0x0207;
}

static bool is_fastest(const struct nccl *n, const struct nic *nic)
{
    for (uint32_t i = 0; i < n->n_nics; i++)
        if (n->nic[i].bytes_per_s > nic->bytes_per_s)
            return false;
    return nic->bytes_per_s > 0.0;
}

static bool is_efa(const struct nic *nic)
{
    return nic->vendor == 0x1d0f && nic->device >= 0xefa0 && nic->device <= 0xefaf;
}

static void add_nics(struct nccl *n)
{
    struct detect *d = n->detect;
    const uint32_t all = n->n_nics;
    keep_nics(n, beside_gpu);
    keep_nics(n, is_infiniband);
    keep_nics(n, is_fastest);
    if (n->n_nics == 0)
        return;
    const struct nic *nic = &n->nic[0];
    if (n->n_nics < all)
        detect_remark(d, TY_REMARK_NOTE,
                      "%s: %u of %u NICs are taken: those beside GPUs, of the fastest kind",
                      d->paths[d->file], n->n_nics, all);
    detect_add(d, "network.nics_per_node", n->n_nics, TY_TRUST_STATED, n->nic_line);
    if (nic->bytes_per_s > 0.0)
        detect_add(d, "network.nic", nic->bytes_per_s, TY_TRUST_READ, n->nic_line);
    else if (is_efa(nic) && nic->device == 0xefa0) /* first generation: AWS instance tables */
        detect_add(d, "network.nic", 12.5e9, TY_TRUST_RULE, n->nic_line);
    if (nic->class == 0x0207)
        detect_add(d, "network.fabric", TY_FABRIC_INFINIBAND, TY_TRUST_RULE, n->nic_line);
    else if (is_efa(nic))
        detect_add(d, "network.fabric", TY_FABRIC_EFA, TY_TRUST_RULE, n->nic_line);
}

static void add_links(struct nccl *n)
{
    struct detect *d = n->detect;
    if (n->is_xgmi)
        detect_add(d, "scaleup.kind", TY_SCALEUP_MESH, TY_TRUST_READ, n->gpu_line);
    if (n->links_max == 0)
        return;
    detect_add(d, "scaleup.links", n->links_max, TY_TRUST_READ, n->gpu_line);
    detect_add(d, "scaleup.kind", n->links_to_switch ? TY_SCALEUP_SWITCH : TY_SCALEUP_MESH,
               TY_TRUST_READ, n->gpu_line);
    if (n->links_to_switch)
        detect_add(d, "scaleup.domain", n->n_gpus, TY_TRUST_RULE, n->gpu_line);
}

ty_status detect_read_nccl(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct nccl *n = calloc(1, sizeof *n);
    if (!n)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    n->detect = detect;
    n->pcie_bytes_per_s = (double)NAN;
    n->branch_depth = UINT32_MAX;
    const struct xml_handler handler = {.open = on_open, .user = n};
    ty_status status = xml_read(file, &handler, error);
    if (status == TY_OK && n->too_many)
        status = error_set(error, TY_ERR_INPUT, file->path, "has more than %u GPUs or NICs",
                           DEVICES_MAX);
    else if (status == TY_OK && n->n_gpus == 0)
        status = error_set(error, TY_ERR_INPUT, file->path, "is an NCCL topology without GPUs");
    if (status == TY_OK) {
        detect->gpus = n->gpus;
        if (gpu_name(n->gpus, 0))
            detect_put(detect, &(struct finding){.path = "gpu",
                                                 .text = gpu_name(n->gpus, 0),
                                                 .place = detect_place(detect, n->gpu_line),
                                                 .trust = TY_TRUST_RULE,
                                                 .gpus = n->gpus});
        detect_add(detect, "gpus_per_node", n->n_gpus, TY_TRUST_STATED, n->gpu_line);
        detect_add(detect, "gpu.pcie", n->pcie_bytes_per_s, TY_TRUST_STATED, n->gpu_line);
        add_links(n);
        add_nics(n);
    }
    free(n);
    return status;
}
