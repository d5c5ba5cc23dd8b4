/* SPDX-License-Identifier: MIT
 *
 * Defaults of a GPU and a cluster, each named in a note with a plausible alternative, and what
 * follows from them: peak rates, clock under a power limit, GPUs per scale-up domain.
 */
#include "models/fields.h"
#include "models/setting.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define DEFAULT_PCIE_BYTES_PER_S 31e9  /* PCIe 4 x16, handbook 6.1 */
#define DEFAULT_NIC_LATENCY_S    14e-6 /* NCCL's NET hop, handbook 5.2 and 6.4 */
#define DEFAULT_SMS              128
#define DEFAULT_TDP_W            500.0
#define DEFAULT_HOST_BYTES_PER_S 200e9 /* 8 channels of DDR4-3200 */
#define DEFAULT_HOST_MEM_BYTES   1e12
#define ALL_NODES                1048576 /* the largest legal count: one leaf holds every node */

/* A scale-up domain up to this size ends at the node's board; larger ones (72) span nodes. */
#define BOARD_DOMAIN 16

/* Share of TDP a GPU draws idle. source: handbook 4.6, 0.1 to 0.2 (low confidence) */
#define IDLE_RATIO 0.15
#define MIN_CLOCK  0.1

/* ---- notes ------------------------------------------------------------------------------ */

/* Notes that a cluster field was defaulted to a count or enum; alternative NAN: none. */
static void note(struct notes *notes, const char *path, const char *value, double alternative,
                 const char *reason)
{
    struct note_origin origin = {TY_KIND_CLUSTER, isnan(alternative) ? NULL : path, alternative};
    notes_add(notes, TY_NOTE_DEFAULTED, &origin, path, reason, "%s", value);
}

static void note_count(struct notes *notes, const char *path, uint32_t value, double alternative,
                       const char *reason)
{
    char text[16];
    text_format(text, sizeof text, "%u", value);
    note(notes, path, text, alternative, reason);
}

/* value: shown in `unit`, of which there are `per_unit` in the base unit. */
static void note_number(struct notes *notes, const char *path, double value, double per_unit,
                        const char *unit, double alternative)
{
    char text[32];
    text_format(text, sizeof text, "%.4g %s", value / per_unit, unit);
    note(notes, path, text, alternative, "not given");
}

/* ---- GPU -------------------------------------------------------------------------------- */

static void set_missing(double *value, double to)
{
    if (isnan(*value))
        *value = to;
}

static ty_status resolve_peaks(struct ty_gpu *gpu, struct notes *notes, struct ty_error *error)
{
    if (!(gpu->bf16_flop_per_s > 0.0) && !(gpu->fp16_flop_per_s > 0.0))
        return error_set(error, TY_ERR_RANGE, "gpu.peak.bf16",
                         "is missing: give the dense 16-bit peak, such as \"989 Tflop/s\"");
    if (isnan(gpu->bf16_flop_per_s))
        note_number(notes, "gpu.peak.bf16", gpu->fp16_flop_per_s, 1e12, "Tflop/s", (double)NAN);
    set_missing(&gpu->bf16_flop_per_s, gpu->fp16_flop_per_s);
    set_missing(&gpu->fp16_flop_per_s, gpu->bf16_flop_per_s);
    set_missing(&gpu->fp8_flop_per_s, 0.0);
    set_missing(&gpu->fp4_flop_per_s, 0.0);
    set_missing(&gpu->tf32_flop_per_s, 0.0);
    set_missing(&gpu->fp32_flop_per_s, fmax(gpu->bf16_flop_per_s, gpu->fp16_flop_per_s) / 16.0);
    return TY_OK;
}

static ty_status resolve_gpu(struct ty_gpu *gpu, struct notes *notes, struct ty_error *error)
{
    ty_status status = resolve_peaks(gpu, notes, error);
    if (status != TY_OK)
        return status;
    if (isnan(gpu->mem_bytes))
        return error_set(error, TY_ERR_RANGE, "gpu.memory.size", "is missing");
    if (isnan(gpu->mem_bytes_per_s))
        return error_set(error, TY_ERR_RANGE, "gpu.memory.bandwidth", "is missing");
    set_missing(&gpu->scaleup_bytes_per_s, 0.0);
    set_missing(&gpu->c2c_bytes_per_s, 0.0);
    if (isnan(gpu->pcie_bytes_per_s)) {
        gpu->pcie_bytes_per_s = DEFAULT_PCIE_BYTES_PER_S;
        note_number(notes, "gpu.pcie", gpu->pcie_bytes_per_s, 1e9, "GB/s",
                    2.0 * DEFAULT_PCIE_BYTES_PER_S);
    }
    if (gpu->sms == 0) {
        gpu->sms = DEFAULT_SMS;
        note_count(notes, "gpu.sms", gpu->sms, 1.25 * DEFAULT_SMS, "not given");
    }
    set_missing(&gpu->boost_hz, 1.5e9); /* for the record only */
    return TY_OK;
}

/* ---- cluster ---------------------------------------------------------------------------- */

static void resolve_node(struct ty_cluster *cluster, struct notes *notes)
{
    if (cluster->gpus_per_node == 0) {
        bool rack = cluster->gpu.scaleup_domain > BOARD_DOMAIN;
        cluster->gpus_per_node = rack ? 4 : 8;
        note_count(notes, "gpus_per_node", cluster->gpus_per_node, (double)NAN,
                   rack ? "usual for rack-scale domains" : "usual for 8-GPU boards");
    }
}

/* Largest divisor of n that is at most `limit`. */
static uint32_t divisor_within(uint32_t n, uint32_t limit)
{
    for (uint32_t d = limit < n ? limit : n; d > 1; d--)
        if (n % d == 0)
            return d;
    return 1;
}

/* GPUs of one domain as the device says; a board's domain does not reach beyond its node. */
static uint32_t default_domain(const struct ty_cluster *cluster)
{
    uint32_t device = cluster->gpu.scaleup_domain, node = cluster->gpus_per_node;
    if (device > BOARD_DOMAIN)
        return device;
    if (cluster->scaleup == TY_SCALEUP_PCIE || device == 0)
        return node;
    return divisor_within(node, device);
}

static ty_status resolve_scaleup(struct ty_cluster *cluster, struct notes *notes,
                                 struct ty_error *error)
{
    const struct ty_gpu *gpu = &cluster->gpu;
    bool linked = isnan(cluster->scaleup_bytes_per_s) ? gpu->scaleup_bytes_per_s > 0.0
                                                      : cluster->scaleup_bytes_per_s > 0.0;
    if (cluster->scaleup == TY_SCALEUP_AUTO)
        cluster->scaleup = !linked                        ? TY_SCALEUP_PCIE
                           : gpu->vendor == TY_VENDOR_AMD ? TY_SCALEUP_MESH
                                                          : TY_SCALEUP_SWITCH;
    if (cluster->scaleup == TY_SCALEUP_PCIE && !(cluster->scaleup_bytes_per_s > 0.0))
        cluster->scaleup_bytes_per_s = gpu->pcie_bytes_per_s;
    set_missing(&cluster->scaleup_bytes_per_s, gpu->scaleup_bytes_per_s);
    if (!(cluster->scaleup_bytes_per_s > 0.0))
        return error_set(error, TY_ERR_RANGE, "scaleup.bandwidth",
                         "is 0, but scaleup.kind asks for links; give a bandwidth or \"pcie\"");
    if (cluster->scaleup_domain == 0) {
        cluster->scaleup_domain = default_domain(cluster);
        if (gpu->scaleup_domain == 0)
            note_count(notes, "scaleup.domain", cluster->scaleup_domain, (double)NAN,
                       "the GPU states none: the GPUs of a node");
    }
    uint32_t domain = cluster->scaleup_domain, node = cluster->gpus_per_node;
    if (domain % node != 0 && node % domain != 0)
        return error_set(error, TY_ERR_RANGE, "scaleup.domain",
                         "is %u with %u GPUs per node; legal: a multiple or a divisor of them",
                         domain, node);
    return TY_OK;
}

/* NIC of a usual machine with such a GPU, bytes/s. source: ACCURACY 1.9, handbook 6.1 */
static double default_nic_bytes_per_s(const char *arch)
{
    static const struct {
        const char *arch;
        double bytes_per_s;
    } usual[] = {
        {"volta", 12.5e9},   {"ampere", 25e9}, {"hopper", 50e9}, {"blackwell-ultra", 100e9},
        {"blackwell", 50e9}, {"cdna3", 50e9},  {"cdna4", 50e9}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(arch, usual[i].arch) == 0)
            return usual[i].bytes_per_s;
    return 12.5e9;
}

static void resolve_network(struct ty_cluster *cluster, struct notes *notes)
{
    if (isnan(cluster->nic_bytes_per_s)) {
        cluster->nic_bytes_per_s = default_nic_bytes_per_s(cluster->gpu.arch);
        note_number(notes, "network.nic", cluster->nic_bytes_per_s, 0.125e9, "Gb/s",
                    cluster->nic_bytes_per_s / 2.0);
    }
    if (cluster->nics_per_node == 0) {
        uint32_t n = cluster->nics_per_node = cluster->gpus_per_node;
        note_count(notes, "network.nics_per_node", n, n > 1 ? n / 2 : (double)NAN, "one per GPU");
    }
    if (isnan(cluster->nic_latency_s)) {
        cluster->nic_latency_s = DEFAULT_NIC_LATENCY_S;
        note_number(notes, "network.latency", cluster->nic_latency_s, 1e-6, "us",
                    2.0 * DEFAULT_NIC_LATENCY_S);
    }
    if (isnan(cluster->oversubscription)) {
        cluster->oversubscription = 1.0;
        note(notes, "network.oversubscription", "1", 2.0, "a non-blocking fabric is assumed");
    }
    set_missing(&cluster->pod_oversubscription, 1.0);
    if (cluster->nodes_per_leaf == 0) {
        cluster->nodes_per_leaf = ALL_NODES;
        if (cluster->oversubscription > 1.0)
            note(notes, "network.nodes_per_leaf", "all", 16.0,
                 "one leaf switch is assumed: oversubscription is never met");
    }
    if (cluster->fabric == TY_FABRIC_AUTO) {
        cluster->fabric = TY_FABRIC_INFINIBAND;
        note(notes, "network.fabric", "infiniband", TY_FABRIC_ROCE, "not given");
    }
}

static ty_status resolve_power(struct ty_cluster *cluster, struct notes *notes,
                               struct ty_error *error)
{
    struct ty_gpu *gpu = &cluster->gpu;
    if (isnan(gpu->tdp_w) && !isnan(cluster->power_limit_w))
        return error_set(error, TY_ERR_RANGE, "power_limit",
                         "cannot be judged without the TDP of the GPU; give gpu.tdp");
    if (isnan(cluster->power_limit_w) && !isnan(gpu->tdp_w))
        note_number(notes, "power_limit", gpu->tdp_w, 1.0, "W", 0.8 * gpu->tdp_w);
    set_missing(&gpu->tdp_w, DEFAULT_TDP_W);
    set_missing(&cluster->power_limit_w, gpu->tdp_w);
    return TY_OK;
}

static void resolve_host(struct ty_cluster *cluster)
{
    set_missing(&cluster->host_bytes_per_s, DEFAULT_HOST_BYTES_PER_S);
    set_missing(&cluster->host_mem_bytes, DEFAULT_HOST_MEM_BYTES);
    if (cluster->cpu_cores_per_node == 0)
        cluster->cpu_cores_per_node = 8 * cluster->gpus_per_node;
}

ty_status cluster_resolve(const struct ty_cluster *in, struct ty_cluster *out, struct notes *notes,
                          struct ty_error *error)
{
    ty_status status = fields_check(TY_KIND_CLUSTER, in, error);
    if (status != TY_OK)
        return status;
    struct ty_cluster cluster = *in;
    status = resolve_gpu(&cluster.gpu, notes, error);
    if (status != TY_OK)
        return status;
    resolve_node(&cluster, notes);
    status = resolve_scaleup(&cluster, notes, error);
    if (status != TY_OK)
        return status;
    cluster.gpu.scaleup_domain = cluster.scaleup_domain;
    resolve_network(&cluster, notes);
    status = resolve_power(&cluster, notes, error);
    if (status != TY_OK)
        return status;
    resolve_host(&cluster);
    *out = cluster;
    return TY_OK;
}

/* ---- what follows ----------------------------------------------------------------------- */

double gpu_peak_flop_per_s(const struct ty_gpu *gpu, enum ty_precision precision)
{
    switch (precision) {
    case TY_FP16_PRECISION:
        return gpu->fp16_flop_per_s;
    case TY_FP8_PRECISION:
    case TY_MXFP8_PRECISION:
        return gpu->fp8_flop_per_s;
    case TY_NVFP4_PRECISION:
        return gpu->fp4_flop_per_s;
    case TY_TF32_PRECISION:
        return gpu->tf32_flop_per_s;
    case TY_FP32_PRECISION:
        return gpu->fp32_flop_per_s;
    default:
        return gpu->bf16_flop_per_s;
    }
}

bool precision_is_32_bit(int precision)
{
    return precision == TY_FP32_PRECISION || precision == TY_TF32_PRECISION;
}

double precision_bytes(enum ty_precision precision)
{
    static const double bytes[TY_N_PRECISIONS] = {
#define X(id, name, size) size,
        TY_PRECISION_LIST(X)
#undef X
    };
    return precision == TY_AUTO_PRECISION || precision >= TY_N_PRECISIONS ? 2.0 : bytes[precision];
}

/* Dynamic power goes with f V^2 and V with f (handbook 4.6), so with the cube of the clock:
 *
 *   f/f_max = ((P_limit - P_idle) / (TDP - P_idle))^(1/3),  P_idle = 0.15 TDP
 */
double gpu_clock_ratio(const struct ty_cluster *cluster)
{
    double tdp_w = cluster->gpu.tdp_w, limit_w = cluster->power_limit_w;
    if (!(limit_w < tdp_w))
        return 1.0;
    double idle_w = IDLE_RATIO * tdp_w;
    return fmax(MIN_CLOCK, cbrt(fmax(0.0, limit_w - idle_w) / (tdp_w - idle_w)));
}

/* Rack-scale domains are handed out in whole nodes and equal shares: 512 GPUs on domains of 72
 * take 64 of each of 8 racks, so that every group meets the same shape. */
uint32_t cluster_domain(const struct ty_cluster *cluster, uint32_t n_gpus)
{
    uint32_t domain = cluster->scaleup_domain, node = cluster->gpus_per_node;
    if (n_gpus <= domain)
        return n_gpus;
    if (domain <= node || n_gpus % domain == 0 || n_gpus % node != 0)
        return domain;
    return node * divisor_within(n_gpus / node, domain / node);
}
