/* SPDX-License-Identifier: MIT
 *
 * hwloc XML (lstopo FILE.xml), versions 1 to 3: GPUs and NICs as PCI devices, memory of the NUMA
 * nodes, cores, and the matrix NVLinkBandwidth (MB/s) over GPUs and NVSwitches. GPUs that a path of
 * NVLinks joins are one scale-up domain; links between NVSwitches are not in the matrix (GPUs
 * report theirs, switches none), so the switches of a machine count as joined: a DGX-2 has 16 GPUs
 * on two boards of 6 switches and is one domain. The bandwidth of a GPU is the sum of its row.
 */
#include "calibrate/detect.h"
#include "calibrate/detect_xml.h"
#include "sim/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_MAX 256u

struct hwloc {
    struct detect *detect;
    uint32_t n_gpus, n_cores, n_pus, pu_max, gpu_line, core_line, memory_line, matrix_line;
    uint32_t n_infiniband;
    double memory_bytes;
    gpu_set gpus; /* of the PCI IDs */
    char model[96];
    uint32_t model_line;
    /* NVLinkBandwidth */
    bool in_matrix, is_index, broken;
    uint32_t n, n_index, n_values;
    bool is_gpu[MATRIX_MAX];
    float mb_per_s[MATRIX_MAX * MATRIX_MAX];
};

/* pci_type "0302 [10de:1db8] [10de:131d] a1 00" */
static void open_pci(struct hwloc *h, const struct xml_element *element)
{
    const char *type = xml_attribute(element, "pci_type");
    const uint32_t class = (uint32_t)strtoul(type, NULL, 16);
    const char *ids = strchr(type, '[');
    char *end = NULL;
    const uint32_t vendor = ids ? (uint32_t)strtoul(ids + 1, &end, 16) : 0;
    const uint32_t device = end && *end == ':' ? (uint32_t)strtoul(end + 1, NULL, 16) : 0;
    h->n_infiniband += class == 0x0207;
    if ((vendor != 0x10de && vendor != 0x1002) || (class >> 8 != 0x03 && class >> 8 != 0x12))
        return;
    h->n_gpus++;
    h->gpus |= gpus_by_pci(vendor, device);
    h->gpu_line = h->gpu_line ? h->gpu_line : element->line;
}

static void open_object(struct hwloc *h, const struct xml_element *element)
{
    const char *type = xml_attribute(element, "type");
    if (strcmp(type, "PCIDev") == 0) {
        open_pci(h, element);
    } else if (strcmp(type, "Core") == 0) {
        h->n_cores++;
        h->core_line = h->core_line ? h->core_line : element->line;
    } else if (strcmp(type, "PU") == 0) {
        const uint32_t index = (uint32_t)strtoul(xml_attribute(element, "os_index"), NULL, 10);
        h->n_pus++;
        h->pu_max = index > h->pu_max ? index : h->pu_max;
    }
    const double local = strtod(xml_attribute(element, "local_memory"), NULL);
    if (local > 0.0 && local < 1e16) {
        h->memory_bytes += local;
        h->memory_line = h->memory_line ? h->memory_line : element->line;
    }
}

static void open_matrix(struct hwloc *h, const struct xml_element *element)
{
    if (strcmp(xml_attribute(element, "name"), "NVLinkBandwidth") != 0)
        return;
    const unsigned long n = strtoul(xml_attribute(element, "nbobjs"), NULL, 10);
    h->in_matrix = n > 0 && n <= MATRIX_MAX;
    h->n = h->in_matrix ? (uint32_t)n : 0;
    h->n_index = h->n_values = 0;
    h->matrix_line = element->line;
}

static void on_open(void *user, const struct xml_element *element)
{
    struct hwloc *h = user;
    if (strcmp(element->name, "object") == 0) {
        open_object(h, element);
    } else if (strncmp(element->name, "distances2", 10) == 0) {
        open_matrix(h, element);
    } else if (strcmp(element->name, "info") == 0 && !*h->model &&
               strcmp(xml_attribute(element, "name"), "GPUModel") == 0) {
        text_format(h->model, sizeof h->model, "%s", xml_attribute(element, "value"));
        h->model_line = element->line;
    }
}

/* "OSDev:802 PCIDev:449": GPUs are software devices, NVSwitches bare PCI devices. */
static void close_indexes(struct hwloc *h, const char *text)
{
    while (*text) {
        if (h->n_index < h->n)
            h->is_gpu[h->n_index] = strncmp(text, "OSDev", 5) == 0;
        h->n_index++;
        text += strcspn(text, " \t\n");
        text += strspn(text, " \t\n");
    }
}

static void close_values(struct hwloc *h, const char *text)
{
    while (*text) {
        if (h->n_values < h->n * h->n)
            h->mb_per_s[h->n_values] = (float)strtod(text, NULL);
        h->n_values++;
        text += strcspn(text, " \t\n");
        text += strspn(text, " \t\n");
    }
}

static void on_close(void *user, const struct xml_element *element)
{
    struct hwloc *h = user;
    if (!h->in_matrix)
        return;
    if (strcmp(element->name, "indexes") == 0)
        close_indexes(h, element->text);
    else if (strcmp(element->name, "u64values") == 0)
        close_values(h, element->text);
    else if (strncmp(element->name, "distances2", 10) == 0)
        h->in_matrix = false;
}

/* ---- NVLink ------------------------------------------------------------------------------- */

static bool is_linked(const struct hwloc *h, uint32_t a, uint32_t b)
{
    if (!h->is_gpu[a] && !h->is_gpu[b])
        return true; /* NVSwitches of one machine */
    return h->mb_per_s[a * h->n + b] > 0.0f || h->mb_per_s[b * h->n + a] > 0.0f;
}

/* GPUs that links join with object `from`; all it reaches is marked in `seen`. */
static uint32_t reach(const struct hwloc *h, uint32_t from, bool *seen)
{
    uint32_t queue[MATRIX_MAX], n_queue = 1, gpus = 0;
    queue[0] = from;
    seen[from] = true;
    for (uint32_t i = 0; i < n_queue; i++) {
        gpus += h->is_gpu[queue[i]];
        for (uint32_t b = 0; b < h->n; b++)
            if (!seen[b] && is_linked(h, queue[i], b)) {
                seen[b] = true;
                queue[n_queue++] = b;
            }
    }
    return gpus;
}

static void add_links(struct hwloc *h)
{
    struct detect *d = h->detect;
    if (h->n == 0 || h->n_index != h->n || h->n_values != h->n * h->n)
        return;
    bool seen[MATRIX_MAX] = {false}, to_switch = false;
    uint32_t domain = 0;
    double most = 0.0;
    for (uint32_t a = 0; a < h->n; a++) {
        double sum = 0.0;
        for (uint32_t b = 0; h->is_gpu[a] && b < h->n; b++) {
            const double rate = a == b ? 0.0 : (double)h->mb_per_s[a * h->n + b];
            sum += rate;
            to_switch |= rate > 0.0 && !h->is_gpu[b];
        }
        most = fmax(most, sum);
        const uint32_t joined = seen[a] ? 0 : reach(h, a, seen);
        domain = joined > domain ? joined : domain;
    }
    if (!(most > 0.0))
        return;
    detect_add(d, "scaleup.domain", domain, to_switch ? TY_TRUST_RULE : TY_TRUST_READ,
               h->matrix_line);
    detect_add(d, "scaleup.kind", to_switch ? TY_SCALEUP_SWITCH : TY_SCALEUP_MESH, TY_TRUST_READ,
               h->matrix_line);
    detect_add(d, "scaleup.bandwidth", most * 1e6, TY_TRUST_READ, h->matrix_line);
}

static void add_all(struct hwloc *h)
{
    struct detect *d = h->detect;
    if (*h->model)
        detect_add_gpu(d, h->model, (double)NAN, h->model_line);
    else if (h->gpus)
        detect_add_gpu(d, gpu_name(h->gpus, 0), (double)NAN, h->gpu_line);
    if (h->gpus && d->gpus & h->gpus)
        d->gpus &= h->gpus;
    if (h->n_gpus)
        detect_add(d, "gpus_per_node", h->n_gpus, TY_TRUST_READ, h->gpu_line);
    if (h->memory_bytes > 0.0)
        detect_add(d, "host.memory", h->memory_bytes, TY_TRUST_READ, h->memory_line);
    if (h->n_cores && h->pu_max + 1 == h->n_pus)
        detect_add(d, "host.cpu_cores", h->n_cores, TY_TRUST_READ, h->core_line);
    else if (h->n_cores)
        detect_remark(d, TY_REMARK_NOTE,
                      "%s: shows only %u of at least %u processors (a restricted view): its cores "
                      "are not counted",
                      d->paths[d->file], h->n_pus, h->pu_max + 1);
    if (h->n_infiniband) {
        detect_add(d, "network.nics_per_node", h->n_infiniband, TY_TRUST_RULE, 0);
        detect_add(d, "network.fabric", TY_FABRIC_INFINIBAND, TY_TRUST_RULE, 0);
    }
    add_links(h);
}

ty_status detect_read_hwloc(struct import_file *file, struct detect *detect, struct ty_error *error)
{
    struct hwloc *h = calloc(1, sizeof *h);
    if (!h)
        return error_set(error, TY_ERR_NOMEM, file->path, "no memory to read it");
    h->detect = detect;
    const struct xml_handler handler = {.open = on_open, .close = on_close, .user = h};
    ty_status status = xml_read(file, &handler, error);
    if (status == TY_OK)
        add_all(h);
    free(h);
    return status;
}
