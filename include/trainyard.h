/* SPDX-License-Identifier: MIT
 *
 * trainyard: how fast does a model train on a GPU cluster, what limits it, what to change.
 *
 * This is the one public header of the core library (libtrainyard: libc, libm, threads). Read it
 * top to bottom: status and errors; field tables; the four inputs (GPU and cluster, model, plan,
 * profile); the predictor that turns them into an answer; the search over plans.
 *
 * Conventions that hold for every function unless its comment says otherwise:
 *   units      the last part of a name is its unit (_s, _bytes, _bytes_per_s, _flop, _flop_per_s);
 *              SI base units only; 1 GB = 1e9 B, 1 GiB = 2^30 B. "flop" counts a multiply-add as 2.
 *   defaults   in an input struct a double that is NAN, an integer, enum or switch that is 0, and
 *              an empty text mean "use the documented default"; ty_init() sets all of them.
 *   errors     a function that can fail returns ty_status (TY_OK = 0); outputs are written only on
 *              TY_OK; `error` may be NULL, otherwise it receives the place in the user's input.
 *   threads    no global state: distinct objects may be used on distinct threads at the same time,
 *              one object on one thread at a time, what is only read on any number. Nothing
 *              prints, exits or touches signals/locale.
 *   memory     what a handle gives out belongs to the handle; const text is static or belongs to
 *              the argument it is of. Nothing is kept of an argument unless it is said.
 *   cost       given where it is above some microseconds. Such a function allocates nothing.
 *   names      a function NAME_name gives the word of JSON and database for an enum; for a number
 *              that is none "", "none" or "unknown", never NULL unless it is said.
 *   same input, same seed: the same bits, at any number of threads.
 *
 * Sources: "handbook n" is section n of docs/handbook-index.md, which names the papers and code.
 */
#ifndef TRAINYARD_H
#define TRAINYARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TY_API        __attribute__((visibility("default")))
#define TY_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TY_API
#define TY_MUST_CHECK
#endif

/* ---- status and errors ------------------------------------------------------------------- */

#define TY_STATUS_LIST(X)                                                                          \
    X(TY_OK, 0, "success")                                                                         \
    X(TY_ERR_NOMEM, -1, "out of memory")                                                           \
    X(TY_ERR_RANGE, -2, "value outside its documented range")                                      \
    X(TY_ERR_INPUT, -3, "input is malformed, incomplete or contradicts itself")                    \
    X(TY_ERR_IO, -4, "a file could not be read or written")                                        \
    X(TY_ERR_INFEASIBLE, -5, "no feasible plan")                                                   \
    X(TY_ERR_UNSUPPORTED, -6, "not modelled")                                                      \
    X(TY_ERR_LIMIT, -7, "a limit on events, simulated time or memory was reached")                 \
    X(TY_ERR_CANCELLED, -8, "cancelled by the caller")                                             \
    X(TY_ERR_STORE, -9, "the results database refused an operation")                               \
    X(TY_ERR_INTERNAL, -10, "an internal invariant failed; please report it")

typedef enum ty_status {
#define X(name, value, text) name = value,
    TY_STATUS_LIST(X)
#undef X
} ty_status;

/* What went wrong, where in the user's input ("cluster.json: network.nic"), and why. */
struct ty_error {
    ty_status code;
    char where[160];
    char text[480];
};

/* One-line description of a status; never NULL. */
TY_API const char *ty_status_text(ty_status status);

/* Version of the library as "major.minor.patch". */
TY_API const char *ty_version(void);

/* Memory source of a handle. `alloc` returns memory aligned for any object, or NULL; `release`
 * takes what alloc gave (never NULL). A NULL ty_allocator pointer means malloc and free. */
struct ty_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void (*release)(void *user, void *block, size_t bytes);
    void *user;
};

/* ---- field tables ------------------------------------------------------------------------
 * Every input struct is described by a table: the JSON readers, --set PATH=VALUE, command-line
 * flags, the database columns and the manual are all derived from it. */

enum ty_kind {
    TY_KIND_GPU,
    TY_KIND_CLUSTER,
    TY_KIND_MODEL,
    TY_KIND_PLAN,
    TY_KIND_PROFILE,
    TY_KIND_PRICE,  /* trainyard_cost.h */
    TY_KIND_STORAGE /* trainyard_storage.h */
};

enum ty_field_type {
    TY_FIELD_DOUBLE, /* double            default NAN */
    TY_FIELD_U32,    /* uint32_t          default 0   */
    TY_FIELD_U64,    /* uint64_t          default 0   */
    TY_FIELD_ENUM,   /* int (an enum)     default 0, names[0] is "auto" or "" */
    TY_FIELD_FLAGS,  /* uint32_t bit mask default 0; bit i is names[i]; max is set when given */
    TY_FIELD_BOOL,   /* bool              default false */
    TY_FIELD_TEXT    /* char[size]        default "" */
};

enum ty_unit {
    TY_UNIT_NONE,
    TY_UNIT_COUNT,
    TY_UNIT_RATIO,
    TY_UNIT_BYTES,
    TY_UNIT_BYTES_PER_S,
    TY_UNIT_S,
    TY_UNIT_FLOP_PER_S,
    TY_UNIT_HZ,
    TY_UNIT_W,
    TY_UNIT_TOKENS
};

struct ty_field {
    const char *path; /* dotted, as in JSON: "network.nic" */
    enum ty_field_type type;
    enum ty_unit unit;
    size_t offset, size;      /* place in the struct */
    double min, max;          /* admissible range of a given (non-default) number, inclusive */
    const char *const *names; /* TY_FIELD_ENUM, TY_FIELD_FLAGS: NULL-terminated; "" is a gap */
    const char *help;         /* meaning, unit, default: one line */
};

/* The fields of a kind. n: out, their number. The table is constant. */
TY_API const struct ty_field *ty_fields(enum ty_kind kind, size_t *n);
/* The fields of struct ty_layer_kind; paths are relative to it ("heads", "ffn"). */
TY_API const struct ty_field *ty_layer_fields(size_t *n);

/* Sets every field of a struct of that kind to its default marker and zeroes the rest. */
TY_API void ty_init(enum ty_kind kind, void *value);

/* ---- GPU and cluster ---------------------------------------------------------------------- */

#define TY_PRECISION_LIST(X)                                                                       \
    X(AUTO, "auto", 0.0)                                                                           \
    X(BF16, "bf16", 2.0)                                                                           \
    X(FP16, "fp16", 2.0)                                                                           \
    X(FP8, "fp8", 1.0)                                                                             \
    X(MXFP8, "mxfp8", 1.0)                                                                         \
    X(NVFP4, "nvfp4", 0.5625)                                                                      \
    X(TF32, "tf32", 4.0)                                                                           \
    X(FP32, "fp32", 4.0)

enum ty_precision {
#define X(id, name, bytes) TY_##id##_PRECISION,
    TY_PRECISION_LIST(X)
#undef X
        TY_N_PRECISIONS
};

enum ty_vendor { TY_VENDOR_UNKNOWN, TY_VENDOR_NVIDIA, TY_VENDOR_AMD, TY_VENDOR_OTHER };

/* How the GPUs of one scale-up domain are wired. */
enum ty_scaleup { TY_SCALEUP_AUTO, TY_SCALEUP_SWITCH, TY_SCALEUP_MESH, TY_SCALEUP_PCIE };

/* One accelerator. Rates are dense (no sparsity) and per direction. */
struct ty_gpu {
    char name[48];
    char arch[16];    /* "hopper", "ampere", ...: selects the constants of a profile */
    char source[160]; /* where the numbers come from */
    int vendor;       /* enum ty_vendor */
    double bf16_flop_per_s, fp16_flop_per_s, fp8_flop_per_s, fp4_flop_per_s; /* 0 = lacks it */
    double tf32_flop_per_s, fp32_flop_per_s;
    double mem_bytes;           /* memory the device reports, bytes */
    double mem_bytes_per_s;     /* HBM bandwidth */
    double scaleup_bytes_per_s; /* NVLink/xGMI, one direction, all links; 0 = none (PCIe) */
    double pcie_bytes_per_s, c2c_bytes_per_s; /* to the host, one direction; c2c: 0 = none */
    double boost_hz, tdp_w;
    uint32_t sms;            /* SMs or compute units */
    uint32_t scaleup_domain; /* GPUs in one scale-up domain: 8, 72, ...; 1 = none */
};

/* A cluster: how many such GPUs and how they are joined. */
struct ty_cluster {
    char name[48];
    char source[160];
    struct ty_gpu gpu;
    uint32_t gpus_per_node;
    uint32_t n_nodes;        /* 0 = as many as a plan asks for */
    uint32_t scaleup_domain; /* GPUs per scale-up domain; default: of the device, never per node
                                unless the device has no domain larger than a node */
    int scaleup;             /* enum ty_scaleup; default: switch if the GPU has a link, else pcie */
    double scaleup_bytes_per_s; /* per GPU and direction; default: of the device */
    double nic_bytes_per_s;     /* one NIC, one direction */
    uint32_t nics_per_node;     /* default: one per GPU */
    double nic_latency_s;       /* one network hop as a collective sees it; default 14 us */
    double oversubscription;    /* leaf downlink / uplink capacity, >= 1; default 1 */
    uint32_t nodes_per_leaf;    /* nodes under one leaf switch; default: all */
    int fabric;                 /* enum ty_fabric */
    double power_limit_w;       /* per GPU; below TDP it lowers the sustained rate */
    double mem_reserved_bytes;  /* held by context, driver, other processes; default: profile */
    double host_bytes_per_s;    /* host memory bandwidth per node */
    double host_mem_bytes;      /* host memory per node */
    uint32_t cpu_cores_per_node;
    /* What only the full rung simulates (trainyard_fabric.h); the defaults change nothing. */
    int rails;                     /* enum ty_switch: NIC i of every node has leaves of its own */
    uint32_t planes;               /* separate networks each NIC has a port into; default 1 */
    uint32_t leaves_per_pod;       /* leaves under the spines of one pod; default: all */
    double pod_oversubscription;   /* capacity below a pod's spines / above them; default 1 */
    int routing;                   /* enum ty_routing there; default ideal */
    uint32_t queue_pairs;          /* ecmp: paths one flow is hashed to; default 1 */
    uint32_t gpus_per_pcie_switch; /* default 0: the PCIe tree is not modelled */
    int sharp;                     /* enum ty_switch: the switches reduce; default off */
};

enum ty_fabric {
    TY_FABRIC_AUTO,
    TY_FABRIC_INFINIBAND,
    TY_FABRIC_ROCE,
    TY_FABRIC_EFA,
    TY_FABRIC_ETHERNET,
    TY_FABRIC_OMNIPATH
};

/* ---- model --------------------------------------------------------------------------------
 * A decoder: embedding, a sequence of layers each of one *kind*, final norm, head. Models whose
 * layers differ (dense then MoE, sliding then full attention, searched architectures) list the
 * kinds once and name the kind of every layer. */

enum ty_attention { TY_ATTENTION_NONE, TY_ATTENTION_HEADS, TY_ATTENTION_MLA };
enum ty_mlp { TY_MLP_NONE, TY_MLP_DENSE, TY_MLP_MOE };
enum ty_qk_norm { TY_QK_NORM_NONE, TY_QK_NORM_PER_HEAD, TY_QK_NORM_FULL };
enum ty_norm { TY_NORM_RMS, TY_NORM_LAYER, TY_NORM_LAYER_NO_BIAS };

#define TY_MAX_KINDS  64
#define TY_MAX_LAYERS 1024

struct ty_layer_kind {
    int attention; /* enum ty_attention */
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t window_tokens; /* keys a token sees at most, itself included; 0 = full causal */
    bool window_chunked;    /* the windows are disjoint chunks (Llama 4), not sliding */
    /* MLA: low-rank query (0 = direct) and key/value, per-head dimensions; n_heads as above */
    uint32_t q_lora_rank, kv_lora_rank, qk_nope_dim, qk_rope_dim, v_head_dim;
    int qk_norm; /* enum ty_qk_norm */
    bool qkv_bias, out_bias, attention_sinks;
    int mlp;      /* enum ty_mlp */
    uint32_t ffn; /* dense inner size */
    bool gated, mlp_bias;
    uint32_t n_experts, top_k, expert_ffn, shared_ffn; /* shared_ffn: all shared experts together */
    bool router_bias, expert_bias, shared_gate;
    uint32_t n_groups, group_limit; /* group-limited routing: at most group_limit of n_groups */
    uint32_t n_norms;               /* hidden-size norms in the layer: 0 to 4 */
};

struct ty_model {
    char name[64];
    char family[32]; /* HuggingFace model_type or "gpt" */
    char source[160];
    uint32_t hidden, vocab, n_layers;
    uint32_t max_seq;           /* longest sequence the model card states; 0 = unknown */
    uint32_t learned_positions; /* rows of a learned position table; 0 = rotary or none */
    int norm;                   /* enum ty_norm */
    bool tied, head_bias, embedding_norm, final_norm;
    uint32_t n_mtp;     /* multi-token-prediction modules, not in the parameter total */
    uint32_t lora_rank; /* > 0: base weights frozen, adapters on all linears */
    uint32_t n_kinds;
    struct ty_layer_kind kinds[TY_MAX_KINDS];
    uint8_t layer_kind[TY_MAX_LAYERS]; /* [n_layers], index into kinds */
};

/* Exact parameter counts; every field in parameters. Source: handbook 1.1. */
struct ty_params {
    double total;               /* text decoder, tied table once, MTP modules not counted */
    double embedding;           /* input table + learned positions */
    double head;                /* separate output table (0 = tied), with its bias */
    double active;              /* total minus routed experts a token does not use */
    double mtp;                 /* all MTP modules without their own embedding and head */
    double layer[TY_MAX_KINDS]; /* one layer of each kind */
    /* its matrices and biases; MLA with its two inner norms, no other norm */
    double attention[TY_MAX_KINDS], mlp[TY_MAX_KINDS];
    double expert[TY_MAX_KINDS];  /* one routed expert */
    double adapter[TY_MAX_KINDS]; /* LoRA adapters of one layer, not in any figure above */
};

/* Cost O(layers). returns TY_OK, TY_ERR_RANGE (error names the field) for a model no decoder can
 * have. */
TY_API TY_MUST_CHECK ty_status ty_model_check(const struct ty_model *model, struct ty_error *error);

/* Counts the parameters of a model that passes ty_model_check. Cost O(layers). */
TY_API void ty_model_params(const struct ty_model *model, struct ty_params *out);

/* Floating-point operations of one training step under the conventions in print; they differ by
 * 3-30 %, so every figure carries the name. Handbook 1.4 variants A..G. */
enum ty_flops {
    TY_FLOPS_AUTO,
    TY_FLOPS_MEGATRON,       /* A: matmuls + causal attention; the default */
    TY_FLOPS_KORTHIKANTI,    /* B: full-mask attention */
    TY_FLOPS_KORTHIKANTI_HW, /* C: B with the selectively recomputed attention */
    TY_FLOPS_NARAYANAN,      /* D: full recompute counted */
    TY_FLOPS_TORCHTITAN,     /* E: 6 N_mm + full-mask attention */
    TY_FLOPS_FOUNDRY,        /* F: 6 N (all parameters) + 12 L h s */
    TY_FLOPS_6N,             /* G: 6 N active */
    TY_N_FLOPS
};

/* seq: tokens per sequence >= 1. returns flop per token, forward and backward; cost O(layers). */
TY_API double ty_model_flop_per_token(const struct ty_model *model, uint32_t seq,
                                      enum ty_flops convention);

/* ---- plan --------------------------------------------------------------------------------- */

enum ty_switch { TY_AUTO, TY_OFF, TY_ON };
enum ty_recompute {
    TY_RECOMPUTE_AUTO,
    TY_RECOMPUTE_NONE,
    TY_RECOMPUTE_SELECTIVE,
    TY_RECOMPUTE_FULL
};
enum ty_recompute_module { /* bits of recompute_modules; default of "selective": core_attn */
                           TY_MODULE_CORE_ATTN = 1,
                           TY_MODULE_MLP = 2,
                           TY_MODULE_MOE = 4,
                           TY_MODULE_MOE_ACT = 8,
                           TY_MODULE_NORM = 16,
                           TY_MODULE_MLA_UP_PROJ = 32,
                           TY_MODULE_SHARED_EXPERTS = 64
};
enum ty_sharding {
    TY_SHARDING_AUTO,
    TY_SHARDING_NONE,
    TY_SHARDING_ZERO1,
    TY_SHARDING_ZERO2,
    TY_SHARDING_ZERO3,
    TY_SHARDING_HSDP
};
enum ty_schedule {
    TY_SCHEDULE_AUTO,
    TY_SCHEDULE_GPIPE,
    TY_SCHEDULE_1F1B,
    TY_SCHEDULE_INTERLEAVED,
    TY_SCHEDULE_ZB_H1,    /* 1F1B, weight gradients delayed into the bubble */
    TY_SCHEDULE_ZB_V,     /* two chunks per stage in a V, the same */
    TY_SCHEDULE_DUALPIPE, /* two copies of the model, micro-batches from both ends */
    TY_SCHEDULE_DUALPIPEV /* its half: one copy, two chunks per stage in a V */
};
enum ty_attention_kernel { TY_KERNEL_AUTO, TY_KERNEL_FLASH, TY_KERNEL_UNFUSED };
enum ty_dispatcher {
    TY_DISPATCHER_AUTO,
    TY_DISPATCHER_ALLGATHER,
    TY_DISPATCHER_ALLTOALL,
    TY_DISPATCHER_DEEPEP
};
enum ty_cp_scheme { TY_CP_AUTO, TY_CP_RING, TY_CP_ALLGATHER, TY_CP_ULYSSES };
enum ty_optimizer {
    TY_OPTIMIZER_AUTO,
    TY_OPTIMIZER_ADAM,
    TY_OPTIMIZER_ADAM_BF16,
    TY_OPTIMIZER_ADAM8BIT,
    TY_OPTIMIZER_SGD,
    TY_OPTIMIZER_ADAM_16BIT /* no master weights; gradients and moments in 16 bits too */
};
enum ty_offload { /* what is kept in host memory */
                  TY_OFFLOAD_AUTO,
                  TY_OFFLOAD_NONE,
                  TY_OFFLOAD_ACTIVATIONS,
                  TY_OFFLOAD_OPTIMIZER,
                  TY_OFFLOAD_BOTH,
                  TY_OFFLOAD_STATES /* optimizer, gradients and parameters: needs ZeRO-3 */
};
enum ty_overlap { /* bits of plan.overlap; TY_OVERLAP_GIVEN marks that the caller chose */
                  TY_OVERLAP_TP = 1,
                  TY_OVERLAP_GRAD = 2,
                  TY_OVERLAP_PARAM = 4,
                  TY_OVERLAP_PP = 8,
                  TY_OVERLAP_CP = 16,
                  TY_OVERLAP_EP = 32,
                  TY_OVERLAP_BATCH =
                      64, /* EP: forward of one micro-batch beside backward of another */
                  TY_OVERLAP_SHARED = 128, /* EP: beside the shared experts */
                  TY_OVERLAP_GIVEN = 1 << 30
};

enum ty_tp_overlap { /* bits of plan.tp_overlap; source: TransformerEngine's userbuffers */
                     TY_TP_RING = 1,      /* gather before a GEMM, in pieces beside it */
                     TY_TP_PIPELINED = 2, /* GEMM before a reduce-scatter, in pieces beside it */
                     TY_TP_BULK = 4       /* gather and reduce beside dgrad and wgrad */
};

enum ty_compression { /* bf16, fp8, int8: cast, then reduced */
                      TY_COMPRESSION_AUTO,
                      TY_COMPRESSION_NONE,
                      TY_COMPRESSION_BF16,
                      TY_COMPRESSION_FP8,
                      TY_COMPRESSION_INT8,
                      TY_COMPRESSION_TOPK,
                      TY_COMPRESSION_POWERSGD
};

/* How a model is laid on a cluster. G = tp*cp*dp*pp = etp*ep*edp*pp. */
struct ty_plan {
    uint32_t n_gpus;
    uint32_t tp, pp, vpp, cp, ep, etp; /* default 1 each; etp: default 1 */
    uint32_t mbs;                      /* sequences per micro-batch and replica; default 1 */
    uint32_t gbs;               /* sequences per optimizer step; default: dp * mbs * max(pp,1) */
    uint32_t seq;               /* tokens per sequence; default min(4096, model.max_seq) */
    char order[32];             /* fastest first; default "tp-cp-ep-dp-pp" (or tp-cp-ep-pp-dp) */
    int precision;              /* enum ty_precision of the GEMMs */
    int recompute;              /* enum ty_recompute */
    uint32_t recompute_modules; /* bits of enum ty_recompute_module */
    uint32_t recompute_layers;  /* full: only the first n layers of a stage; 0 = all */
    int sharding;               /* enum ty_sharding */
    uint32_t shard_group;       /* zero1, hsdp: ranks in a sharding group; 0 = all of D*cp */
    int reshard_after_forward;  /* enum ty_switch */
    int grad_dtype;             /* enum ty_precision: fp32 or bf16 */
    int optimizer;              /* enum ty_optimizer */
    int attention;              /* enum ty_attention_kernel */
    int schedule;               /* enum ty_schedule */
    char layout[256];           /* of each chunk: "Et*3|(tt|)*29,m|L", "balanced"; default even */
    uint32_t pp_group;          /* interleaved: micro-batches of one chunk in a row; default pp */
    int recompute_early;        /* enum ty_switch: recompute the first layer of a backward pass
                                   before its gradient has arrived; default off */
    int sp;                     /* enum ty_switch: sequence parallel */
    uint32_t overlap;           /* bits of enum ty_overlap */
    uint32_t tp_overlap;        /* of overlapped TP: bits of enum ty_tp_overlap; 0 = all */
    uint32_t comm_sms;          /* SMs a collective of a layer takes from the kernels beside it;
                                   0 = the profile's share of their rate */
    int dispatcher;             /* enum ty_dispatcher */
    int cp_scheme;              /* enum ty_cp_scheme */
    double moe_imbalance;       /* load of the busiest EP rank / mean, >= 1; default 1 */
    int cuda_graph, compile;    /* enum ty_switch */
    int launch_blocking;        /* enum ty_switch: the host waits for every kernel; default off */
    int packed;                 /* enum ty_switch: short samples packed to seq, each attending to
                                   itself only */
    int offload;                /* enum ty_offload; default none */
    uint32_t offload_layers;    /* activations of the first n layers of a stage; 0 = all */
    int grad_compression;      /* enum ty_compression of the data-parallel exchange; default none */
    double grad_kept;          /* topk: share of the gradients that is sent; default 0.01 */
    uint32_t grad_rank;        /* powersgd: rank; default 4 */
    uint32_t dp, edp, n_micro; /* derived by ty_plan_resolve; ignored as input */
};

/* ---- profile ------------------------------------------------------------------------------
 * Calibrated constants: device, fabric, software stack. Plain values: it needs no file. */

/* Where a time is from, most trusted first (DESIGN 4), and of what work it is. */
enum ty_origin {
    TY_ORIGIN_MEASURED,     /* a record of this very shape */
    TY_ORIGIN_INTERPOLATED, /* between records */
    TY_ORIGIN_FITTED,       /* a form with constants fitted to this machine's records */
    TY_ORIGIN_PRESET,       /* the form with preset constants */
    TY_N_ORIGINS
};
enum ty_work { TY_WORK_GEMM, TY_WORK_ATTENTION, TY_WORK_MEMORY, TY_WORK_COLLECTIVES, TY_N_WORKS };
/* "measured", ...; "gemm", "attention", "memory", "collectives". */
TY_API const char *ty_origin_name(enum ty_origin origin);
TY_API const char *ty_work_name(enum ty_work work);

struct ty_collective_tables;
struct ty_measured;  /* trainyard_measured.h */
struct ty_framework; /* trainyard_launch.h */
struct ty_profile {
    char name[48], stack[32], release[16], site[24]; /* release, site: empty when unknown */
    char source[160];
    bool calibrated; /* false: preset constants from datasheets and public microbenchmarks */
    /* device: kernels */
    double gemm_ratio_16, gemm_ratio_8, gemm_ratio_4; /* sustained / spec peak, large shapes */
    double gemm_k0;              /* columns of K lost to prologue and epilogue of a tile */
    double gemm_wave_loss;       /* share of the last partial wave really lost, 0..1 */
    double gemm_backward;        /* time of dgrad/wgrad over forward at equal shape */
    double grouped_gemm_ratio;   /* rate of the grouped expert GEMM over a dense one */
    double attention_ratio;      /* flash forward over 16-bit peak: causal flop, head_dim 128 */
    double attention_fa2_ratio;  /* the same with FlashAttention-2 kernels */
    double attention_fa1_ratio;  /* rate of the first FlashAttention over the second */
    double attention_flop_per_s; /* that rate; default: ratio x peak of the GPU */
    double attention_half_seq;   /* sequence length at which half of it is reached */
    double attention_head_power; /* rate ~ (head size / 128)^power below 128 */
    double attention_backward;   /* inefficiency of backward on top of its 2.5x flop */
    double packed_ratio;         /* attention of packed fine-tuning samples over that of seq */
    double misaligned_ratio;     /* rate of a batched GEMM whose head size is no multiple of 8 */
    double mem_ratio;            /* achieved / spec memory bandwidth */
    double mem_half_bytes;       /* bytes of a kernel at which half of it is reached; default 0 */
    double kernel_floor_s;       /* shortest time of any kernel */
    double launch_issue_s;       /* host time to issue one kernel, eager */
    double clock_ratio;          /* sustained clock against the class reference */
    /* fabric: collectives */
    double allreduce_ratio, allgather_ratio; /* bus bandwidth in a domain over the link rate */
    double allreduce_busbw_bytes_per_s, allgather_busbw_bytes_per_s; /* default: ratio x link */
    double alltoall_ratio;         /* all-to-all over all-gather bus bandwidth */
    double alltoall_nic_ratio;     /* all-to-all over the collectives' share of the NIC rate */
    double collective_latency_s;   /* floor of a collective inside a domain */
    double latency_growth;         /* relative growth per doubling of nodes */
    double ramp_bytes, ramp_ratio; /* t = S k/B (1 + ramp_ratio sqrt(ramp_bytes/S)) */
    double nic_ratio;              /* share of NIC line rate a collective reaches */
    double p2p_latency_s;
    double slow_compute_scaleup, slow_compute_nic; /* compute rate lost while a flow runs */
    double slow_comm;                              /* flow rate lost while compute runs */
    /* stack: software */
    double elementwise_ratio;  /* bytes of element-wise ops over the fully fused minimum */
    double compiled_ratio;     /* the same under torch.compile, if less */
    double cast_ratio;         /* same for quantisation casts */
    double permute_ratio;      /* same for the router and the permutation of MoE tokens */
    double lora_ratio;         /* same for LoRA adapters */
    double compute_ratio;      /* time of kernels against other releases of the stack */
    double moe_time_ratio;     /* time of a MoE layer against other releases of the stack */
    double host_layer_s;       /* host time to issue one dense layer forward, eager */
    double host_tp_growth;     /* its growth per doubling of tp */
    double dropless_host_s;    /* host time a dropless MoE layer forward shows, without graphs */
    double tp_overlap_exposed; /* share of TP traffic still exposed when overlapped */
    double tp_time_ratio;      /* a TP collective in a layer over its isolated time */
    double dp_time_ratio;      /* same for data-parallel collectives */
    double dp_network_ratio;   /* the same again for those that cross nodes */
    double pp_time_ratio;      /* same for pipeline messages */
    double dp_slow_compute;    /* compute rate lost beside data-parallel traffic */
    double step_fixed_s;       /* per step outside compute */
    double micro_fixed_s;      /* per micro-batch and stage */
    double host_micro_s;       /* host time per micro-batch and stage besides its layers */
    double jitter_ratio;       /* compute slowdown per doubling of the GPU count */
    double optimizer_ratio;    /* optimizer time over its memory-traffic minimum */
    uint32_t flash_version;    /* 1, 2: see attention_fa2_ratio; default: the fastest kernels */
    /* site: what is left when device, fabric and stack are known; 1 for a site without runs */
    double site_compute_ratio; /* time of kernels */
    double site_comm_ratio;    /* time of collectives but all-to-all */
    double site_host_ratio;    /* time of the host and of fixed costs */
    /* half width of the interval in ln(time): what measured runs of such stacks left */
    double dense_half_80, dense_half_90, moe_half_80, moe_half_90, tuning_half_80, tuning_half_90;
    /* the same of the ratio of two times of one model: two plans on one kind of GPU; two kinds */
    double dense_plans_80, dense_plans_90, moe_plans_80, moe_plans_90, tuning_plans_80,
        tuning_plans_90;
    double dense_gpus_80, dense_gpus_90, moe_gpus_80, moe_gpus_90, tuning_gpus_80, tuning_gpus_90;
    /* memory */
    double runtime_bytes; /* context, kernels, communicators */
    double usable_ratio;  /* share of device memory a plan may fill: above it "tight" */
    double logits_bytes, logits_work_bytes; /* of one logit: kept for backward; more in the loss */
    double logits_compiled_bytes; /* of one logit in all, with a compiled loss; default: the sum */
    double reserve_ratio, reserve_compiled_ratio; /* held by the allocator over what is in use */
    /* defaults of the stack for plan switches left open */
    int default_sharding, default_grad_dtype, default_sp, default_attention, default_optimizer;
    uint32_t default_overlap;
    uint32_t fitted; /* bits 1 << enum ty_work: constants are of this machine's records */
    /* measured kernels of the device and collectives of the cluster, used before the constants
     * above where they reach; NULL: none. They belong to the caller and must outlive the predictor.
     */
    const struct ty_measured *measured;
    const struct ty_collective_tables *collectives;
    /* what the software can run, NULL: anything; the caller's too. trainyard_launch.h */
    const struct ty_framework *framework;
};

/* ---- answers ------------------------------------------------------------------------------ */

#define TY_PART_LIST(X)                                                                            \
    X(GEMM, "gemm")                                                                                \
    X(ATTENTION, "attention")                                                                      \
    X(MEMORY_BOUND, "memory_bound")                                                                \
    X(LAUNCH, "launch")                                                                            \
    X(TP, "tp")                                                                                    \
    X(CP, "cp")                                                                                    \
    X(EP, "ep")                                                                                    \
    X(PP, "pp")                                                                                    \
    X(DP, "dp")                                                                                    \
    X(BUBBLE, "bubble")                                                                            \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(INPUT_STALL, "input_stall")                                                                  \
    X(CHECKPOINT, "checkpoint")                                                                    \
    X(OFFLOAD, "offload")

enum ty_part {
#define X(id, name) TY_PART_##id,
    TY_PART_LIST(X)
#undef X
        TY_N_PARTS
};

#define TY_MEM_LIST(X)                                                                             \
    X(WEIGHTS, "weights")                                                                          \
    X(GRADS, "gradients")                                                                          \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(ACTIVATIONS, "activations")                                                                  \
    X(LOGITS, "logits")                                                                            \
    X(TRANSIENT, "transient")                                                                      \
    X(BUFFERS, "buffers")                                                                          \
    X(RUNTIME, "runtime")                                                                          \
    X(RESERVE, "reserve")

enum ty_mem {
#define X(id, name) TY_MEM_##id,
    TY_MEM_LIST(X)
#undef X
        TY_N_MEM
};

/* "gemm", "weights", ...: the names used in JSON and the database. */
TY_API const char *ty_part_name(enum ty_part part);
TY_API const char *ty_mem_name(enum ty_mem component);
TY_API const char *ty_flops_name(enum ty_flops convention);

struct ty_scenario;
struct ty_fabric_report;
struct ty_storage; /* trainyard_storage.h */
struct ty_storage_report;
enum ty_rung { TY_RUNG_AUTO, TY_RUNG_SCREEN, TY_RUNG_BOUND, TY_RUNG_SIMULATE, TY_RUNG_FULL };
enum ty_fit { TY_FIT_NO, TY_FIT_TIGHT, TY_FIT_YES };
TY_API const char *ty_fit_name(enum ty_fit fit); /* "no", "tight", "fits" */

/* One broken rule. `rule` is a short stable name ("heads_tp"), `legal` the admissible values. */
struct ty_violation {
    char rule[24];
    char text[200];
    char legal[120];
};

enum ty_note_kind { TY_NOTE_DEFAULTED, TY_NOTE_EXTRAPOLATED, TY_NOTE_UNCALIBRATED, TY_NOTE_UNUSED };

/* Something the reader of an answer should know: a default that was taken, a value outside its
 * calibrated range, an input without effect. effect_pct: change of the step time, in percent, when
 * the default is replaced by the plausible alternative; NAN where there is none. */
struct ty_note {
    enum ty_note_kind kind;
    char field[48], value[32], reason[120];
    double effect_pct;
};

struct ty_stage_memory {
    double bytes[TY_N_MEM];
    double total_bytes;
    double in_flight;  /* micro-batches whose activations are alive at the peak */
    double host_bytes; /* offloaded by one rank of the stage, not in total_bytes */
};

/* A communication group of the plan and the slowest link it crosses. */
struct ty_group {
    char name[8]; /* tp, cp, ep, etp, dp, edp, pp */
    uint32_t size, stride;
    uint32_t ranks_per_domain; /* of one group inside one scale-up domain */
    uint32_t n_domains;        /* domains a group spans */
    char link[24];             /* "nvlink", "xgmi", "pcie", "nic", "spine", "none" */
};

struct ty_price; /* trainyard_cost.h, as are goals */
struct ty_goal;
/* What a step costs; trainyard_cost.h says how. NAN where no price was given. */
struct ty_outlay {
    const struct ty_price *price; /* the caller's list; NULL: none */
    uint32_t gpus_paid;
    double busy_s;                  /* of a step, kernels computing, mean over GPUs */
    double power_w;                 /* of the whole job, PUE included */
    double money_per_gpu_hour;      /* of a GPU paid for, without electricity */
    double energy_j, money, co2_kg; /* of a step */
    double energy_j_per_token, money_per_token;
};

struct ty_options {
    enum ty_rung rung;   /* default: simulate */
    enum ty_flops flops; /* default: megatron */
    bool effects;        /* compute effect_pct of the notes (one prediction each) */
    bool measured;       /* the plan is known to run: memory and the rule that keeps tp inside a
                            scale-up domain do not stop the computation (feasible stays false) */
    uint64_t seed;
    /* Limits on one simulation. Beyond one: TY_ERR_LIMIT, and ty_predictor_trace gives what had
     * run by then. */
    uint64_t max_events;          /* 0 = 200,000,000 */
    uint64_t max_bytes;           /* memory the predictor holds; 0 = no limit, 16e9 at rung full */
    double max_time_s;            /* simulated time; 0 = no limit */
    const struct ty_price *price; /* for the outlay; NULL: energy alone */
    const struct ty_scenario *scenario; /* rung full: trainyard_fabric.h; NULL: nothing amiss */
    const struct ty_storage *storage;   /* input pipeline and checkpoints; NULL: neither */
};

struct ty_prediction {
    bool feasible;
    enum ty_fit fit;
    double headroom_bytes; /* budget minus peak; negative: does not fit */
    double budget_bytes;
    enum ty_mem largest_component; /* at the peak stage */
    double imbalance_limit;        /* MoE imbalance at which the plan stops fitting; NAN: no MoE */
    double step_time_s, bound_s; /* NAN when infeasible; bound_s: lower bound of handbook/DESIGN */
    double tokens_per_s, tokens_per_s_per_gpu;
    double model_flop_per_s_per_gpu, mfu; /* under `flops` */
    double hardware_flop_per_s_per_gpu;   /* what the kernels execute, recompute included */
    enum ty_flops flops;
    double breakdown_s[TY_N_PARTS];        /* adds up to step_time_s */
    double interval_80[2], interval_90[2]; /* s; NAN when nothing is known of the stack's errors */
    double bubble_ratio;                   /* idle share of the busiest stage's step */
    /* share of the undisturbed time of each kind of work that has this origin; 0: no such work */
    double origin_share[TY_N_WORKS][TY_N_ORIGINS];
    uint32_t n_stages, peak_stage;
    const struct ty_stage_memory *stages; /* [n_stages] */
    double peak_bytes;
    uint32_t n_groups, n_violations, n_notes;
    const struct ty_group *groups;           /* [n_groups] */
    const struct ty_violation *violations;   /* [n_violations] */
    const struct ty_note *notes;             /* [n_notes], largest effect first */
    struct ty_plan plan;                     /* resolved: every default and derived value */
    struct ty_outlay outlay;                 /* NAN throughout without a step time */
    uint64_t n_events;                       /* of the simulation */
    const struct ty_fabric_report *fabric;   /* rung full: trainyard_fabric.h; else NULL */
    const struct ty_storage_report *storage; /* what options.storage brought; else NULL */
};

/* Resolves the defaults of a plan (sizes, switches of the stack, dp, n_micro) and names each in
 * `notes` [max_notes]; n_notes: their number, which may be larger; both may be NULL. Does not judge
 * legality. Cost about 20 us, 1 us without notes. returns TY_OK, TY_ERR_RANGE (model, cluster or
 * profile). */
TY_API TY_MUST_CHECK ty_status ty_plan_resolve(const struct ty_model *model,
                                               const struct ty_cluster *cluster,
                                               const struct ty_profile *profile,
                                               const struct ty_plan *plan, struct ty_plan *resolved,
                                               struct ty_note *notes, uint32_t max_notes,
                                               uint32_t *n_notes);

/* Writes the shortest form of a layout (plan.layout) of at most 4,096 chunks to out [bytes]; out
 * may be the text itself. returns TY_OK, TY_ERR_INPUT (error: the character, and what is legal
 * there), TY_ERR_LIMIT (it does not fit), TY_ERR_NOMEM. Cost: some us. Source: Megatron-Core's
 * pipeline layouts. */
TY_API TY_MUST_CHECK ty_status ty_layout_shorten(const char *layout, char *out, size_t bytes,
                                                 struct ty_error *error);

/* Every rule of handbook 11.1 that a resolved plan breaks, all at once, with the legal values.
 * out [max], n: number found (may exceed max; then only max are written). Cost about 1 us, 20 us
 * per broken rule for the lists of legal values. */
TY_API void ty_plan_violations(const struct ty_model *model, const struct ty_cluster *cluster,
                               const struct ty_plan *resolved, struct ty_violation *out,
                               uint32_t max, uint32_t *n);

typedef struct ty_predictor ty_predictor;

/* A predictor for one (model, cluster, profile): caches layer records and owns one simulation.
 * The three inputs are copied; what the profile points to (tables) must outlive it, as must the
 * allocator (NULL: malloc and free). Cost about 10 us. Free with ty_predictor_destroy, which
 * accepts NULL. returns TY_OK, TY_ERR_NOMEM, TY_ERR_RANGE. */
TY_API TY_MUST_CHECK ty_status ty_predictor_create(const struct ty_model *model,
                                                   const struct ty_cluster *cluster,
                                                   const struct ty_profile *profile,
                                                   const struct ty_allocator *allocator,
                                                   ty_predictor **out, struct ty_error *error);
TY_API void ty_predictor_destroy(ty_predictor *predictor);

/* Predicts one plan. An infeasible plan is not an error: TY_OK with feasible = false, the
 * violations or the memory that is missing. Pointers in `out` belong to the predictor and live
 * until its next call. returns TY_OK, TY_ERR_NOMEM, TY_ERR_RANGE, TY_ERR_UNSUPPORTED,
 * TY_ERR_LIMIT. Cost: screen ~1 us, bound ~10 us once layers are cached, simulate
 * O(stages * chunks * micro-batches). */
TY_API TY_MUST_CHECK ty_status ty_predictor_run(ty_predictor *predictor, const struct ty_plan *plan,
                                                const struct ty_options *options,
                                                struct ty_prediction *out, struct ty_error *error);

/* One event of the simulated step: a task of `rank` on a named stream. Below rung full a rank is a
 * pipeline stage. */
struct ty_trace_event {
    double start_s, end_s;
    uint32_t task; /* its number in this simulation */
    uint32_t rank;
    const char
        *stream;      /* "compute", "pp", "pp-backward", "dp", "dp-expert", "dp-replica", "host" */
    const char *name; /* "F", "B", "W", "send", ... */
    uint32_t micro, chunk;
    bool unfinished; /* a limit stopped it: end_s is when */
};
typedef void ty_trace_fn(void *user, const struct ty_trace_event *event);

/* Calls `fn` for every task of the step simulated by the last ty_predictor_run that has started, by
 * start time within each stream. After TY_ERR_LIMIT: what had run by then. */
TY_API void ty_predictor_trace(const ty_predictor *predictor, ty_trace_fn *fn, void *user);
typedef void ty_trace_edge_fn(void *user, uint32_t before, uint32_t after);
/* The same for the dependencies between these tasks, by their numbers; that a task follows the one
 * before it on its stream goes without saying. */
TY_API void ty_predictor_trace_edges(const ty_predictor *predictor, ty_trace_edge_fn *fn,
                                     void *user);

/* ---- search ------------------------------------------------------------------------------- */

#define TY_MAX_VALUES 1024

/* Values a knob may take; n = 0: every legal value. */
struct ty_values {
    uint32_t n;
    uint32_t value[TY_MAX_VALUES];
};

#define TY_MAX_LAYOUTS 16

/* The space: `fixed` gives every knob not listed here; each list is crossed with the others. */
struct ty_space {
    struct ty_plan fixed;
    struct ty_values n_gpus, tp, pp, vpp, cp, ep, etp, mbs, gbs;
    struct ty_values recompute, sharding, precision, schedule, offload; /* enum values */
    uint32_t n_layouts;                                                 /* 0: that of `fixed` */
    char layout[TY_MAX_LAYOUTS][256]; /* as plan.layout; "": even */
};

#define TY_REJECT_LIST(X)                                                                          \
    X(GPUS, "gpus_not_a_product")                                                                  \
    X(HEADS, "heads_or_ffn_not_divisible")                                                         \
    X(EXPERTS, "experts_not_divisible")                                                            \
    X(LAYERS, "layers_not_divisible")                                                              \
    X(BATCH, "batch_not_divisible")                                                                \
    X(DOMAIN, "tp_beyond_scaleup_domain")                                                          \
    X(FRAMEWORK, "framework")                                                                      \
    X(OTHER_RULE, "other_rule")                                                                    \
    X(MEMORY_STATES, "memory_states")                                                              \
    X(MEMORY_ACTIVATIONS, "memory_activations")                                                    \
    X(MEMORY_LOGITS, "memory_logits")                                                              \
    X(MEMORY_TIGHT, "memory_tight")                                                                \
    X(HEADROOM, "headroom_below_limit")                                                            \
    X(DEADLINE, "deadline")                                                                        \
    X(BUDGET, "budget")                                                                            \
    X(MFU, "mfu_below_limit")

enum ty_reject {
#define X(id, name) TY_REJECT_##id,
    TY_REJECT_LIST(X)
#undef X
        TY_N_REJECTS
};
/* "gpus_not_a_product", ... */
TY_API const char *ty_reject_name(enum ty_reject reason);

/* One evaluated plan. */
struct ty_score {
    uint64_t plan_id; /* its place in the enumeration: ties are broken by it */
    struct ty_plan plan;
    double step_time_s, tokens_per_s, tokens_per_s_per_gpu, mfu, peak_bytes, headroom_bytes;
    double breakdown_s[TY_N_PARTS];
    struct ty_outlay outlay; /* by the price of the goal */
    double useful_ratio;     /* of the time, after failures; 1 without */
};

/* Called by one thread at a time. return false to cancel. `score` is NULL for pure progress. */
typedef bool ty_search_fn(void *user, const struct ty_score *score, uint64_t done, uint64_t total);

struct ty_share; /* trainyard_sweep.h: a share of the plans, and what is known of them */

struct ty_search {
    const struct ty_model *model;
    const struct ty_cluster *cluster;
    const struct ty_profile *profile;
    struct ty_space space;
    struct ty_options options;
    uint32_t n_threads; /* 0 = number of processors; at most 256 are used */
    uint32_t top;       /* best plans kept per list; 0 = 10 */
    bool allow_tight;   /* also plans above the safe share of memory: they often die at launch */
    bool exhaustive;    /* simulate every plan that fits, not only those that could be listed */
    bool overall;       /* one list over all GPU counts instead of one for each */
    bool all;           /* keep near-duplicates: not only the best of each (tp, pp, cp, ep) */
    const struct ty_goal *goal;   /* NULL: tokens/s/GPU */
    const struct ty_share *share; /* NULL: all plans, nothing known */
    ty_search_fn *progress;
    void *user;
};

#define TY_MAX_NEAREST 5

/* A legal plan that does not fit, and by how much. */
struct ty_near_miss {
    uint64_t plan_id;
    struct ty_plan plan;
    double missing_bytes;  /* peak above the budget */
    enum ty_mem component; /* the largest at the peak */
};

struct ty_search_result {
    uint64_t n_enumerated, n_bounded, n_evaluated; /* bounded: legal and fitting */
    uint64_t rejected[TY_N_REJECTS]; /* from DEADLINE on: of those bounded, by their bound or after
                                        their simulation */
    uint32_t n_nearest; /* when nothing fits: the plans that miss least memory, least first */
    struct ty_near_miss nearest[TY_MAX_NEAREST];
    uint32_t n_best;
    struct ty_score *best; /* [n_best], by GPU count, then best first; a Pareto set by its first
                              objective, best first, then id */
};

/* Enumerates every plan of the space, screens by legality and memory before any time is computed,
 * bounds the survivors and simulates them best bound first until none of the rest can be among the
 * `top`; ranks by the goal (ties: lower plan_id, so fewer GPUs first). The list is exactly that of
 * simulating every survivor, and the same at any number of threads. `progress` gets each simulated
 * plan; done counts those settled, simulated or left out by their bound. Free with ty_search_free,
 * which accepts a zeroed result. Cost: 0.3 us a plan that is screened, 10 us one that is bounded, 1
 * to 10 ms one that is simulated, over n_threads. returns TY_OK, TY_ERR_INFEASIBLE (result is valid
 * and says why), TY_ERR_RANGE, TY_ERR_NOMEM, TY_ERR_CANCELLED. */
TY_API TY_MUST_CHECK ty_status ty_search_run(const struct ty_search *search,
                                             struct ty_search_result *out, struct ty_error *error);
TY_API void ty_search_free(struct ty_search_result *result);

#ifdef __cplusplus
}
#endif
#endif
