/* SPDX-License-Identifier: MIT
 *
 * A cluster file from what describes the machine. Each reader turns one kind of dump into findings
 * (a field of the cluster form, its value, the place it was read at, how far it can be trusted),
 * named machines (schedulers, fabrics) and places of machines under switches. The merge chooses
 * one GPU, reduces machines and places to findings, and takes the most trusted finding of each
 * field; what contradicts it and what nobody said is listed (calibrate/detect_merge.c).
 */
#ifndef CALIBRATE_DETECT_H
#define CALIBRATE_DETECT_H

#include "calibrate/import.h"
#include "models/spec/json.h"
#include "sim/arena.h"

/* ---- what readers leave ------------------------------------------------------------------- */

/* Set of built-in GPUs, one bit each (calibrate/detect_gpu.c). 0: nothing is known. */
typedef uint64_t gpu_set;
#define GPU_UNKNOWN ((gpu_set)1 << 63) /* a GPU that is named but not built in */

struct finding {
    const char *path; /* "network.nic", or "gpu" and "scaleup.links", which are no fields */
    const char *text; /* "gpu": the name as written */
    double value;     /* base unit, count, or number of the enum */
    const char *place;
    enum ty_trust trust;
    gpu_set gpus; /* machines with one of these GPUs; 0: any */
    bool chosen;
};

enum machine_fact {
    MACHINE_GPUS,
    MACHINE_HOST_MEMORY,
    MACHINE_CORES,
    MACHINE_NICS,
    MACHINE_NIC,         /* bytes/s */
    MACHINE_NIC_HINT,    /* the same, from the free text of an administrator */
    MACHINE_FABRIC_HINT, /* enum ty_fabric */
    N_MACHINE_FACTS
};

/* One machine a scheduler or a fabric names; NAN: the source does not say. */
struct machine {
    const char *name;
    const char *gpu;      /* as written; NULL: not said */
    const char *unusable; /* "not ready", "drained"; NULL: can run a job */
    const char *clique;   /* NVLink partition; NULL: not said */
    gpu_set gpus;
    double fact[N_MACHINE_FACTS];
    uint32_t file;
};

enum link_kind { LINK_TREE, LINK_BLOCK, LINK_IB, LINK_LLDP, N_LINK_KINDS };

/* A machine under a switch, or in a block. */
struct link {
    const char *leaf, *machine;
    enum link_kind kind;
    uint32_t file;
};

struct remark {
    enum ty_remark kind;
    const char *text;
    gpu_set gpus; /* of the file it is about; 0: any */
};

struct detect {
    struct arena arena; /* of every text */
    const char *const *paths;
    uint32_t file; /* being read: index of paths */
    gpu_set gpus;  /* of the file being read, set by its reader */
    struct finding *findings;
    struct machine *machines;
    struct link *links;
    struct remark *remarks;
    size_t n_findings, n_machines, n_links, n_remarks;
    size_t findings_held, machines_held, links_held, remarks_held;
    struct machine spare; /* handed out when there is no room */
    bool out_of_memory, too_many;
};

void detect_init(struct detect *detect, const char *const *paths);
void detect_free(struct detect *detect);

/* Copy of a text, cut at `bytes`; "" and out_of_memory set when there is no memory. */
const char *detect_copy(struct detect *detect, const char *text, size_t bytes);
/* "FILE:LINE" of the file being read; line 0: "FILE". */
const char *detect_place(struct detect *detect, uint32_t line);

/* A value of the file being read; NAN and values below 0 are dropped. */
void detect_add(struct detect *detect, const char *path, double value, enum ty_trust trust,
                uint32_t line);
/* The file's GPU by its name, as written: sets detect->gpus. memory_bytes NAN: not known. */
void detect_add_gpu(struct detect *detect, const char *name, double memory_bytes, uint32_t line);
/* A finding made elsewhere. */
void detect_put(struct detect *detect, const struct finding *finding);
/* A machine with nothing known; fill it through the pointer, which lives until the next call.
 * Never NULL; beyond MACHINES_MAX too_many is set. */
#define MACHINES_MAX 1048576u
struct machine *detect_machine(struct detect *detect, const char *name);
void detect_link(struct detect *detect, enum link_kind kind, const char *leaf, const char *machine);
__attribute__((format(printf, 3, 4))) void detect_remark(struct detect *detect, enum ty_remark kind,
                                                         const char *format, ...);

/* Expands "h200-[001-004,007],login" and calls fn for each name until it returns false. returns
 * false when it did, or the list is broken. */
typedef bool host_fn(void *user, const char *name);
bool hostlist_each(const char *list, host_fn *fn, void *user);

/* Most frequent value; NAN of none. *n_other: values that differ from it by more than 2 %. */
double detect_mode(const double *value, size_t n, size_t *n_other);

/* ---- GPUs --------------------------------------------------------------------------------- */

/* Built-in GPUs a name can mean ("NVIDIA H100 80GB HBM3", "nvidia_a100-sxm4-40gb", "h200").
 * memory_bytes NAN: not known; where no built-in GPU has that memory, the name alone counts.
 * GPU_UNKNOWN: none. */
gpu_set gpus_by_name(const char *name, double memory_bytes);
/* By PCI vendor and device; 0 when the device is not in the table. */
gpu_set gpus_by_pci(uint32_t vendor, uint32_t device);
/* By CUDA compute capability, 90; 0 when unknown. */
gpu_set gpus_by_sm(uint32_t sm);
gpu_set gpus_of_vendor(enum ty_vendor vendor);
/* A slice of a GPU is named ("MIG 1g.5gb"): no whole GPU. */
bool gpu_is_slice(const char *name);
/* Name of the usual member of a set, NULL for none; index: 0 for the first, 1 .. for the others. */
const char *gpu_name(gpu_set set, uint32_t index);
/* Set of one built-in name; 0 when it is none. */
gpu_set gpus_built_in(const char *name);

/* ---- readers ------------------------------------------------------------------------------ */

typedef ty_status detect_reader(struct import_file *file, struct detect *detect,
                                struct ty_error *error);
detect_reader detect_read_topology_matrix, detect_read_rocm, detect_read_smi_csv;
detect_reader detect_read_scontrol, detect_read_sinfo, detect_read_switches, detect_read_yaml;
detect_reader detect_read_ibnetdiscover, detect_read_nccl, detect_read_hwloc, detect_read_smi_xml;
/* Slurm, Kubernetes, LLDP, by the keys. */
detect_reader detect_read_json;

/* "gpu:h200:8(S:0-1),nvme:1": the first kind of GPU. returns their number, 0 without GPU; *type
 * is cut to `bytes`, "" when the list has none. */
uint32_t slurm_gres(const char *gres, char *type, size_t bytes);
/* Why a state ("IDLE+DRAIN", "mixed", "down*") runs no job; NULL when it does. */
const char *slurm_unusable(const char *state);
/* What slurm says of a machine, from text or JSON. */
struct slurm_node {
    const char *gres; /* NULL: not asked for; "": has none */
    const char *features, *state;
    double memory_mib, sockets, cores; /* cores of a socket; NAN: not given */
};
void slurm_machine(struct detect *detect, const char *name, const struct slurm_node *node);

/* Bytes/s of a PCIe link: GT/s as printed ("32.0 GT/s PCIe") times lanes. NAN when unreadable. */
double pcie_bytes_per_s(const char *speed, const char *width);

/* A tree of /sys and /proc, or a copy of one; "/" is this machine. */
ty_status detect_read_tree(const char *root, struct detect *detect, struct ty_error *error);

/* ---- result ------------------------------------------------------------------------------- */

/* Fills out from what was read. gpu: built-in name or file, NULL: as found. */
ty_status detect_merge(struct detect *detect, const char *gpu, struct ty_detection *out,
                       struct ty_error *error);
/* Reads a text of any known format. */
ty_status detect_read_text(struct import_file *file, struct detect *detect, struct ty_error *error);

#endif
