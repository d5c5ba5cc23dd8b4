/* SPDX-License-Identifier: MIT
 *
 * The field tables: every input struct described once. Readers, --set, flags, columns and the
 * manual are derived from them. Ranges are wide on purpose: they refuse what no machine or model
 * can have (and what would overflow later), not what is unusual.
 */
#include "include/trainyard_cost.h"
#include "include/trainyard_storage.h"
#include "models/fields.h"
#include "models/fields_rows.h"

#include <math.h>
#include <string.h>

#define N_OF(table) (sizeof(table) / sizeof *(table))

/* ---- names of enums, index = value; "" cannot be chosen --------------------------------- */

static const char *const vendor_names[] = {"", "nvidia", "amd", "other", NULL};
static const char *const scaleup_names[] = {"auto", "switch", "mesh", "pcie", NULL};
static const char *const fabric_names[] = {"auto",     "infiniband", "roce", "efa",
                                           "ethernet", "omnipath",   NULL};
static const char *const routing_names[] = {"auto", "ideal", "adaptive", "static", "ecmp", NULL};
static const char *const grad_dtype_names[] = {"auto", "bf16", "", "", "", "", "", "fp32", NULL};
static const char *const switch_names[] = {"auto", "off", "on", NULL};
static const char *const recompute_names[] = {"auto", "none", "selective", "full", NULL};
static const char *const module_names[] = {
    "core_attn", "mlp", "moe", "moe_act", "norm", "mla_up_proj", "shared_experts", NULL};
static const char *const sharding_names[] = {"auto",  "none", "zero1", "zero2",
                                             "zero3", "hsdp", NULL};
static const char *const schedule_names[] = {
    "auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "dualpipev", NULL};
static const char *const attention_kernel_names[] = {"auto", "flash", "unfused", NULL};
static const char *const dispatcher_names[] = {"auto", "allgather", "alltoall", "deepep", NULL};
static const char *const cp_names[] = {"auto", "ring", "allgather", "ulysses", NULL};
static const char *const optimizer_names[] = {"auto", "adam",       "adam_bf16", "adam8bit",
                                              "sgd",  "adam_16bit", NULL};
static const char *const offload_names[] = {"auto", "none",   "activations", "optimizer",
                                            "both", "states", NULL};
static const char *const compression_names[] = {"auto", "none", "bf16",     "fp8",
                                                "int8", "topk", "powersgd", NULL};
static const char *const work_names[] = {"gemm", "attention", "memory", "collectives", NULL};
static const char *const overlap_names[] = {"tp", "grad",  "param",  "pp", "cp",
                                            "ep", "batch", "shared", NULL};
static const char *const tp_overlap_names[] = {"ring", "pipelined", "bulk", NULL};
static const char *const attention_names[] = {"none", "heads", "mla", NULL};
static const char *const mlp_names[] = {"none", "dense", "moe", NULL};
static const char *const qk_norm_names[] = {"none", "per_head", "full", NULL};
static const char *const norm_names[] = {"rms", "layer", "layer_no_bias", NULL};

/* ---- GPU and cluster -------------------------------------------------------------------- */

/* The fields of a GPU, alone (P "" and no member prefix) or inside a cluster (P "gpu."). */
#define GPU_FIELDS(S, G, P)                                                                        \
    TEXT(S, G name, P "name", "name of the GPU"),                                                  \
        TEXT(S, G arch, P "arch", "architecture; selects the preset constants of a profile"),      \
        TEXT(S, G source, P "source", "where the numbers come from"),                              \
        ENUM(S, G vendor, P "vendor", vendor_names, "maker"),                                      \
        DOUBLE(S, G bf16_flop_per_s, P "peak.bf16", FLOP_PER_S, 0, 1e18,                           \
               "dense BF16 peak; 0 = lacks it; default: of FP16"),                                 \
        DOUBLE(S, G fp16_flop_per_s, P "peak.fp16", FLOP_PER_S, 0, 1e18,                           \
               "dense FP16 peak; 0 = lacks it; default: of BF16"),                                 \
        DOUBLE(S, G fp8_flop_per_s, P "peak.fp8", FLOP_PER_S, 0, 1e18,                             \
               "dense FP8 peak; default 0 = lacks it"),                                            \
        DOUBLE(S, G fp4_flop_per_s, P "peak.fp4", FLOP_PER_S, 0, 1e18,                             \
               "dense FP4 peak; default 0 = lacks it"),                                            \
        DOUBLE(S, G tf32_flop_per_s, P "peak.tf32", FLOP_PER_S, 0, 1e18,                           \
               "dense TF32 peak; default 0 = lacks it"),                                           \
        DOUBLE(S, G fp32_flop_per_s, P "peak.fp32", FLOP_PER_S, 0, 1e18,                           \
               "FP32 peak without tensor cores; default: 1/16 of the 16-bit peak"),                \
        DOUBLE(S, G mem_bytes, P "memory.size", BYTES, 1e6, 1e15,                                  \
               "memory the device reports; must be given"),                                        \
        DOUBLE(S, G mem_bytes_per_s, P "memory.bandwidth", BYTES_PER_S, 1e6, 1e17,                 \
               "memory bandwidth; must be given"),                                                 \
        DOUBLE(S, G scaleup_bytes_per_s, P "scaleup.bandwidth", BYTES_PER_S, 0, 1e16,              \
               "NVLink or xGMI, one direction, all links; default 0 = none"),                      \
        U32(S, G scaleup_domain, P "scaleup.domain", COUNT, 1, 1048576,                            \
            "GPUs the scale-up links join; default: those of a node, 1 without links"),            \
        DOUBLE(S, G pcie_bytes_per_s, P "pcie", BYTES_PER_S, 1e6, 1e16,                            \
               "host link, one direction; default 31 GB/s (PCIe 4 x16)"),                          \
        DOUBLE(S, G c2c_bytes_per_s, P "c2c", BYTES_PER_S, 0, 1e16,                                \
               "coherent link to the host CPU, one direction; default 0 = none"),                  \
        DOUBLE(S, G boost_hz, P "boost", HZ, 1e6, 1e11, "boost clock; only for the record"),       \
        DOUBLE(S, G tdp_w, P "tdp", W, 1, 1e5,                                                     \
               "thermal design power; default 500 W and then no power limit"),                     \
        U32(S, G sms, P "sms", COUNT, 1, 65536,                                                    \
            "SMs or compute units; default 128: wave quantisation is then a guess")

#define G_
static const struct ty_field gpu_fields[] = {GPU_FIELDS(ty_gpu, G_, "")};

static const struct ty_field cluster_fields[] = {
    TEXT(ty_cluster, name, "name", "name of the cluster"),
    TEXT(ty_cluster, source, "source", "where the numbers come from"),
    GPU_FIELDS(ty_cluster, gpu., "gpu."),
    U32(ty_cluster, gpus_per_node, "gpus_per_node", COUNT, 1, 4096,
        "GPUs per node; default 8, 4 for GPUs of a larger scale-up domain"),
    U32(ty_cluster, n_nodes, "nodes", COUNT, 1, 1048576,
        "nodes there are; default: as many as a plan asks for"),
    U32(ty_cluster, scaleup_domain, "scaleup.domain", COUNT, 1, 1048576,
        "GPUs of one scale-up domain; default: of the device"),
    ENUM(ty_cluster, scaleup, "scaleup.kind", scaleup_names,
         "wiring of a domain; default switch with links (AMD: mesh), pcie without"),
    DOUBLE(ty_cluster, scaleup_bytes_per_s, "scaleup.bandwidth", BYTES_PER_S, 0, 1e16,
           "per GPU and direction; default: of the device"),
    DOUBLE(ty_cluster, nic_bytes_per_s, "network.nic", BYTES_PER_S, 1e3, 1e16,
           "one NIC, one direction; default by GPU generation, 100 to 800 Gb/s"),
    U32(ty_cluster, nics_per_node, "network.nics_per_node", COUNT, 1, 4096,
        "NICs per node; default: one per GPU"),
    DOUBLE(ty_cluster, nic_latency_s, "network.latency", S, 0, 10,
           "one network hop as a collective sees it; default 14 us"),
    DOUBLE(ty_cluster, oversubscription, "network.oversubscription", RATIO, 1, 1e6,
           "capacity below a leaf switch over capacity above it; default 1"),
    U32(ty_cluster, nodes_per_leaf, "network.nodes_per_leaf", COUNT, 1, 1048576,
        "nodes under one leaf switch; default: all"),
    ENUM(ty_cluster, fabric, "network.fabric", fabric_names,
         "kind of network; default infiniband: how much of a NIC collectives reach"),
    ENUM(ty_cluster, rails, "network.rails", switch_names,
         "full rung: NIC i of every node has leaf switches of its own; default off"),
    U32(ty_cluster, planes, "network.planes", COUNT, 1, 64,
        "full rung: separate networks each NIC has a port into; default 1"),
    U32(ty_cluster, leaves_per_pod, "network.leaves_per_pod", COUNT, 1, 1048576,
        "full rung: leaf switches of a pod, the third level joins pods; default: all"),
    DOUBLE(ty_cluster, pod_oversubscription, "network.pod_oversubscription", RATIO, 1, 1e6,
           "full rung: capacity below the spines of a pod over capacity above; default 1"),
    ENUM(ty_cluster, routing, "network.routing", routing_names,
         "full rung: how flows are spread over equal uplinks; default ideal"),
    U32(ty_cluster, queue_pairs, "network.queue_pairs", COUNT, 1, 32,
        "full rung: paths one flow is hashed to by ecmp; default 1"),
    ENUM(ty_cluster, sharp, "network.sharp", switch_names,
         "the network's switches reduce (SHARP), for comm --algorithm; default off"),
    U32(ty_cluster, gpus_per_pcie_switch, "pcie.gpus_per_switch", COUNT, 1, 4096,
        "full rung: GPUs and their NICs under one PCIe switch; default: no such tree"),
    DOUBLE(ty_cluster, power_limit_w, "power_limit", W, 1, 1e5,
           "power cap per GPU; default TDP; below it the clock falls"),
    DOUBLE(ty_cluster, mem_reserved_bytes, "memory_reserved", BYTES, 0, 1e15,
           "device memory held by context, driver and others; default: of the profile"),
    DOUBLE(ty_cluster, host_bytes_per_s, "host.bandwidth", BYTES_PER_S, 1e6, 1e17,
           "host memory bandwidth of a node; default 200 GB/s"),
    DOUBLE(ty_cluster, host_mem_bytes, "host.memory", BYTES, 1e6, 1e17,
           "host memory of a node; default 1 TB"),
    U32(ty_cluster, cpu_cores_per_node, "host.cpu_cores", COUNT, 1, 65536,
        "CPU cores of a node; default 8 per GPU"),
};

/* ---- model ------------------------------------------------------------------------------ */

static const struct ty_field model_fields[] = {
    TEXT(ty_model, name, "name", "name of the model"),
    TEXT(ty_model, family, "family", "HuggingFace model_type, or gpt"),
    TEXT(ty_model, source, "source", "where the numbers come from"),
    U32(ty_model, hidden, "hidden", COUNT, 1, 1048576, "hidden size"),
    U32(ty_model, vocab, "vocab", COUNT, 1, 16777216, "rows of the embedding table"),
    U32(ty_model, n_layers, "layers", COUNT, 1, TY_MAX_LAYERS, "transformer layers"),
    U32(ty_model, max_seq, "max_seq", TOKENS, 1, 1073741824, "longest sequence of the model card"),
    U32(ty_model, learned_positions, "learned_positions", COUNT, 1, 1073741824,
        "rows of a learned position table; default 0 = none"),
    ENUM(ty_model, norm, "norm", norm_names, "kind of normalisation; default rms"),
    BOOL(ty_model, tied, "tied", "output table is the embedding table; default off"),
    BOOL(ty_model, head_bias, "head_bias", "bias of the output layer; default off"),
    BOOL(ty_model, embedding_norm, "embedding_norm", "norm behind the embedding; default off"),
    BOOL(ty_model, final_norm, "final_norm", "norm before the output layer; default off"),
    U32(ty_model, n_mtp, "mtp", COUNT, 0, 8, "multi-token-prediction modules; default 0"),
    U32(ty_model, lora_rank, "lora_rank", COUNT, 0, 65536,
        "rank of LoRA adapters on frozen weights; default 0 = train all"),
};

static const struct ty_field layer_kind_fields[] = {
    ENUM(ty_layer_kind, attention, "attention", attention_names, "kind of attention"),
    U32(ty_layer_kind, n_heads, "heads", COUNT, 0, 65536, "query heads"),
    U32(ty_layer_kind, n_kv_heads, "kv_heads", COUNT, 0, 65536, "key/value heads"),
    U32(ty_layer_kind, head_dim, "head_dim", COUNT, 0, 65536, "size of one head"),
    U32(ty_layer_kind, window_tokens, "window", TOKENS, 0, 1073741824,
        "keys a token sees at most; 0 = full causal"),
    BOOL(ty_layer_kind, window_chunked, "window_chunked", "windows are disjoint chunks"),
    U32(ty_layer_kind, q_lora_rank, "q_lora_rank", COUNT, 0, 1048576,
        "MLA: rank of the query; 0 = direct"),
    U32(ty_layer_kind, kv_lora_rank, "kv_lora_rank", COUNT, 0, 1048576,
        "MLA: rank of key and value"),
    U32(ty_layer_kind, qk_nope_dim, "qk_nope_dim", COUNT, 0, 65536,
        "MLA: head size without position"),
    U32(ty_layer_kind, qk_rope_dim, "qk_rope_dim", COUNT, 0, 65536, "MLA: head size with rotary"),
    U32(ty_layer_kind, v_head_dim, "v_head_dim", COUNT, 0, 65536, "MLA: size of a value head"),
    ENUM(ty_layer_kind, qk_norm, "qk_norm", qk_norm_names, "norm of queries and keys"),
    BOOL(ty_layer_kind, qkv_bias, "qkv_bias", "bias of the QKV projection"),
    BOOL(ty_layer_kind, out_bias, "out_bias", "bias of the output projection"),
    BOOL(ty_layer_kind, attention_sinks, "attention_sinks", "one learned sink per head"),
    ENUM(ty_layer_kind, mlp, "mlp", mlp_names, "kind of feed-forward block"),
    U32(ty_layer_kind, ffn, "ffn", COUNT, 0, 16777216, "inner size of the dense block"),
    BOOL(ty_layer_kind, gated, "gated", "gate and up projection (SwiGLU, GeGLU)"),
    BOOL(ty_layer_kind, mlp_bias, "mlp_bias", "bias of the dense block"),
    U32(ty_layer_kind, n_experts, "experts", COUNT, 0, 65536, "routed experts"),
    U32(ty_layer_kind, top_k, "top_k", COUNT, 0, 65536, "experts per token"),
    U32(ty_layer_kind, expert_ffn, "expert_ffn", COUNT, 0, 16777216, "inner size of an expert"),
    U32(ty_layer_kind, shared_ffn, "shared_ffn", COUNT, 0, 16777216,
        "inner size of all shared experts together"),
    BOOL(ty_layer_kind, router_bias, "router_bias", "bias of the router"),
    BOOL(ty_layer_kind, expert_bias, "expert_bias", "bias of the experts"),
    BOOL(ty_layer_kind, shared_gate, "shared_gate", "learned gate of the shared expert"),
    U32(ty_layer_kind, n_groups, "groups", COUNT, 0, 65536, "expert groups of the router"),
    U32(ty_layer_kind, group_limit, "group_limit", COUNT, 0, 65536, "groups a token may use"),
    U32(ty_layer_kind, n_norms, "norms", COUNT, 0, 4, "hidden-size norms of the layer"),
};

/* ---- plan: the paths are the names of the command-line flags ---------------------------- */

#define SIZE_MAX_GPUS 16777216
static const struct ty_field plan_fields[] = {
    U32(ty_plan, n_gpus, "gpus", COUNT, 1, SIZE_MAX_GPUS, "GPUs of the job"),
    U32(ty_plan, tp, "tp", COUNT, 1, 65536, "tensor parallel size; default 1"),
    U32(ty_plan, pp, "pp", COUNT, 1, TY_MAX_LAYERS, "pipeline stages; default 1"),
    U32(ty_plan, vpp, "vpp", COUNT, 1, TY_MAX_LAYERS, "model chunks per stage; default 1"),
    U32(ty_plan, cp, "cp", COUNT, 1, 65536, "context parallel size; default 1"),
    U32(ty_plan, ep, "ep", COUNT, 1, 65536, "expert parallel size; default 1"),
    U32(ty_plan, etp, "etp", COUNT, 1, 65536, "tensor parallel size of experts; default 1"),
    TEXT(ty_plan, order, "order", "rank order, fastest first; default tp-cp-ep-dp-pp"),
    U32(ty_plan, mbs, "mbs", COUNT, 1, 1048576, "sequences per micro-batch; default 1"),
    U32(ty_plan, gbs, "gbs", COUNT, 1, 1073741824,
        "sequences per step, or tokens (4Mtok); default dp * mbs * pp"),
    U32(ty_plan, seq, "seq", TOKENS, 1, 1073741824, "tokens per sequence; default 4096 at most"),
    ENUM(ty_plan, precision, "precision", precision_names, "of the GEMMs; default bf16"),
    ENUM(ty_plan, recompute, "recompute", recompute_names,
         "none, selective[:MODULE,..] or full[:LAYERS]; default none"),
    FLAGS(ty_plan, recompute_modules, "recompute_modules", module_names, 0,
          "what selective recompute repeats; default core_attn"),
    U32(ty_plan, recompute_layers, "recompute_layers", COUNT, 1, TY_MAX_LAYERS,
        "full recompute of the first layers of a stage; default all"),
    ENUM(ty_plan, sharding, "sharding", sharding_names,
         "none, zero1[:N], zero2, zero3 or hsdp:N; default: of the stack"),
    U32(ty_plan, shard_group, "shard_group", COUNT, 1, SIZE_MAX_GPUS,
        "ranks of one sharding group; default all"),
    ENUM(ty_plan, reshard_after_forward, "reshard_after_forward", switch_names,
         "ZeRO-3 frees parameters after forward; default on without a pipeline"),
    ENUM(ty_plan, grad_dtype, "grad_dtype", grad_dtype_names, "default: of the stack"),
    ENUM(ty_plan, optimizer, "optimizer", optimizer_names, "default adam"),
    ENUM(ty_plan, attention, "attention", attention_kernel_names,
         "attention kernel; default: of the stack"),
    ENUM(ty_plan, schedule, "schedule", schedule_names,
         "pipeline order; default 1f1b, interleaved with vpp > 1"),
    TEXT(ty_plan, layout, "layout",
         "layers of each chunk: \"even\" (default), \"balanced\" or a layout string of Megatron"),
    U32(ty_plan, pp_group, "pp_group", COUNT, 1, 1048576,
        "interleaved: micro-batches of one chunk in a row; default pp"),
    ENUM(ty_plan, recompute_early, "recompute_early", switch_names,
         "recompute in the bubble, before the gradient arrives; default off"),
    ENUM(ty_plan, sp, "sp", switch_names, "sequence parallel; default: of the stack"),
    FLAGS(ty_plan, overlap, "overlap", overlap_names, TY_OVERLAP_GIVEN,
          "communication hidden behind compute, or none; default: of the stack"),
    FLAGS(ty_plan, tp_overlap, "tp_overlap", tp_overlap_names, 0,
          "which of overlapped tp: ring exchange, pipelined, bulk; default all"),
    U32(ty_plan, comm_sms, "comm_sms", COUNT, 1, 1024,
        "SMs a layer's collective takes from kernels beside it; default: of the profile"),
    ENUM(ty_plan, dispatcher, "dispatcher", dispatcher_names, "of MoE tokens; default alltoall"),
    ENUM(ty_plan, cp_scheme, "cp_scheme", cp_names, "default ring"),
    DOUBLE(ty_plan, moe_imbalance, "moe_imbalance", RATIO, 1, 1e6,
           "load of the busiest expert rank over the mean; default 1"),
    ENUM(ty_plan, cuda_graph, "cuda_graph", switch_names, "default off"),
    ENUM(ty_plan, compile, "compile", switch_names, "default off"),
    ENUM(ty_plan, launch_blocking, "launch_blocking", switch_names,
         "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel; default off"),
    ENUM(ty_plan, packed, "packed", switch_names,
         "short samples packed into sequences, each attends to itself only; default off"),
    ENUM(ty_plan, offload, "offload", offload_names,
         "kept in host memory; both: activations and optimizer; states: all but activations; "
         "default none"),
    U32(ty_plan, offload_layers, "offload_layers", COUNT, 1, TY_MAX_LAYERS,
        "activations of the first layers of a stage are offloaded; default all"),
    ENUM(ty_plan, grad_compression, "grad_compression", compression_names,
         "of gradients on the data-parallel links: cast before the reduction, the largest, or low "
         "rank; default none"),
    DOUBLE(ty_plan, grad_kept, "grad_kept", RATIO, 1e-6, 1,
           "topk: share of the gradients that is sent; default 0.01"),
    U32(ty_plan, grad_rank, "grad_rank", COUNT, 1, 4096, "powersgd: rank; default 4"),
};

/* ---- profile ---------------------------------------------------------------------------- */

#define RATIO_OF(m, P, min, max, help) DOUBLE(ty_profile, m, P, RATIO, min, max, help)
#define TIME_OF(m, P, help)            DOUBLE(ty_profile, m, P, S, 0, 1e3, help)
static const struct ty_field profile_fields[] = {
    TEXT(ty_profile, name, "name", "name of the profile"),
    TEXT(ty_profile, stack, "stack", "software stack: megatron-core, fsdp, ..."),
    TEXT(ty_profile, release, "release", "release of the stack, where it matters"),
    TEXT(ty_profile, source, "source", "where the numbers come from"),
    BOOL(ty_profile, calibrated, "calibrated", "fitted to measurements of this machine"),
    RATIO_OF(gemm_ratio_16, "device.gemm_ratio_16", 1e-3, 1,
             "16-bit GEMM rate over spec peak, large shapes"),
    RATIO_OF(gemm_ratio_8, "device.gemm_ratio_8", 1e-3, 1, "the same for fp8 and mxfp8"),
    RATIO_OF(gemm_ratio_4, "device.gemm_ratio_4", 1e-3, 1, "the same for nvfp4"),
    RATIO_OF(gemm_k0, "device.gemm_k0", 0, 1e5, "columns of K a tile loses to its ends"),
    RATIO_OF(gemm_wave_loss, "device.gemm_wave_loss", 0, 1,
             "share of the last partial wave that is lost"),
    RATIO_OF(gemm_backward, "device.gemm_backward", 0.1, 10,
             "time of dgrad or wgrad over forward at equal shape"),
    RATIO_OF(grouped_gemm_ratio, "device.grouped_gemm_ratio", 1e-3, 10,
             "rate of grouped expert GEMMs over dense ones"),
    RATIO_OF(attention_ratio, "device.attention_ratio", 1e-3, 1,
             "flash attention forward rate over the 16-bit peak, causal flop, head size 128"),
    RATIO_OF(attention_fa2_ratio, "device.attention_fa2_ratio", 1e-3, 1,
             "the same with FlashAttention-2; default attention_ratio"),
    RATIO_OF(attention_fa1_ratio, "device.attention_fa1_ratio", 1e-3, 1,
             "rate of the first FlashAttention, and of Triton's of its time, over the second"),
    DOUBLE(ty_profile, attention_flop_per_s, "device.attention_rate", FLOP_PER_S, 1e6, 1e18,
           "measured rate; default attention_ratio x peak"),
    RATIO_OF(attention_half_seq, "device.attention_half_seq", 0, 1e6,
             "sequence length at which half of it is reached"),
    RATIO_OF(attention_head_power, "device.attention_head_power", 0, 2,
             "attention rate grows with this power of the head size below 128"),
    RATIO_OF(attention_backward, "device.attention_backward", 0.1, 10,
             "attention backward over 2.5 x forward"),
    RATIO_OF(packed_ratio, "device.packed_ratio", 1e-3, 1,
             "attention of packed short samples over that of whole sequences"),
    RATIO_OF(misaligned_ratio, "device.misaligned_ratio", 1e-3, 1,
             "rate of unfused attention when the head size is no multiple of 8"),
    RATIO_OF(mem_ratio, "device.mem_ratio", 1e-3, 1, "achieved over spec memory bandwidth"),
    DOUBLE(ty_profile, mem_half_bytes, "device.mem_half_size", BYTES, 0, 1e12,
           "bytes of a kernel at which half of it is reached; default 0"),
    TIME_OF(kernel_floor_s, "device.kernel_floor", "shortest time of a kernel"),
    TIME_OF(launch_issue_s, "device.launch_issue", "host time to issue one kernel"),
    RATIO_OF(clock_ratio, "device.clock_ratio", 0.05, 20,
             "sustained clock against others of the architecture"),
    RATIO_OF(allreduce_ratio, "fabric.allreduce_ratio", 1e-3, 10,
             "all-reduce bus bandwidth over the scale-up link"),
    RATIO_OF(allgather_ratio, "fabric.allgather_ratio", 1e-3, 10,
             "all-gather bus bandwidth over the scale-up link"),
    DOUBLE(ty_profile, allreduce_busbw_bytes_per_s, "fabric.allreduce_busbw", BYTES_PER_S, 1e3,
           1e16, "measured in one domain; default allreduce_ratio x link"),
    DOUBLE(ty_profile, allgather_busbw_bytes_per_s, "fabric.allgather_busbw", BYTES_PER_S, 1e3,
           1e16, "measured in one domain; default allgather_ratio x link"),
    RATIO_OF(alltoall_ratio, "fabric.alltoall_ratio", 1e-3, 10,
             "all-to-all over all-gather bus bandwidth"),
    RATIO_OF(alltoall_nic_ratio, "fabric.alltoall_nic_ratio", 1e-3, 10,
             "all-to-all over the share of the NIC rate that collectives reach"),
    TIME_OF(collective_latency_s, "fabric.collective_latency", "floor of a collective in a domain"),
    RATIO_OF(latency_growth, "fabric.latency_growth", 0, 100,
             "growth of that floor per doubling of nodes"),
    DOUBLE(ty_profile, ramp_bytes, "fabric.ramp_size", BYTES, 0, 1e12,
           "message size S0 of the bandwidth ramp"),
    RATIO_OF(ramp_ratio, "fabric.ramp_ratio", 0, 100, "time factor 1 + ratio x sqrt(S0/S)"),
    RATIO_OF(nic_ratio, "fabric.nic_ratio", 1e-3, 1, "share of NIC line rate collectives reach"),
    TIME_OF(p2p_latency_s, "fabric.p2p_latency", "latency of a pipeline message"),
    RATIO_OF(slow_compute_scaleup, "fabric.slow_compute_scaleup", 0, 0.95,
             "compute rate lost beside a scale-up flow"),
    RATIO_OF(slow_compute_nic, "fabric.slow_compute_nic", 0, 0.95,
             "compute rate lost beside a network flow"),
    RATIO_OF(slow_comm, "fabric.slow_comm", 0, 0.95, "flow rate lost beside compute"),
    RATIO_OF(elementwise_ratio, "software.elementwise_ratio", 0.01, 100,
             "bytes of element-wise ops over the fused minimum"),
    RATIO_OF(compiled_ratio, "software.compiled_ratio", 0.05, 100,
             "the same under torch.compile, if less"),
    RATIO_OF(cast_ratio, "software.cast_ratio", 0, 100, "the same for quantisation casts"),
    RATIO_OF(permute_ratio, "software.permute_ratio", 0, 100,
             "the same for router and permutation of MoE tokens"),
    RATIO_OF(lora_ratio, "software.lora_ratio", 0, 100, "the same for LoRA adapters"),
    RATIO_OF(compute_ratio, "software.compute_ratio", 0.1, 10,
             "time of kernels against other releases of the stack"),
    RATIO_OF(moe_time_ratio, "software.moe_time_ratio", 0.1, 10,
             "time of a MoE layer against other releases of the stack"),
    TIME_OF(host_layer_s, "software.host_layer", "host time to issue a dense layer forward"),
    RATIO_OF(host_tp_growth, "software.host_tp_growth", 0, 10, "its growth per doubling of tp"),
    TIME_OF(dropless_host_s, "software.dropless_host",
            "host time that a dropless MoE layer forward shows, without CUDA graphs"),
    RATIO_OF(tp_overlap_exposed, "software.tp_overlap_exposed", 0, 1,
             "share of overlapped TP traffic that still shows"),
    RATIO_OF(tp_time_ratio, "software.tp_time_ratio", 0.01, 100,
             "a TP collective in a layer over its isolated time"),
    RATIO_OF(dp_time_ratio, "software.dp_time_ratio", 0.01, 100,
             "the same for data-parallel collectives"),
    RATIO_OF(dp_network_ratio, "software.dp_network_ratio", 0.01, 100,
             "the same again for those that cross nodes"),
    RATIO_OF(pp_time_ratio, "software.pp_time_ratio", 0.01, 100, "the same for pipeline messages"),
    RATIO_OF(dp_slow_compute, "software.dp_slow_compute", 0, 0.95,
             "compute rate lost beside data-parallel traffic"),
    TIME_OF(step_fixed_s, "software.step_fixed", "time per step outside compute"),
    TIME_OF(micro_fixed_s, "software.micro_fixed", "time per micro-batch and stage"),
    TIME_OF(host_micro_s, "software.host_micro",
            "host time per micro-batch and stage besides its layers"),
    RATIO_OF(jitter_ratio, "software.jitter_ratio", 0, 1,
             "compute slowdown per doubling of the GPU count"),
    RATIO_OF(optimizer_ratio, "software.optimizer_ratio", 0.1, 100,
             "optimizer time over its memory-traffic minimum"),
    U32(ty_profile, flash_version, "software.flash_version", COUNT, 1, 4,
        "generation of the flash kernels; 2 takes attention_fa2_ratio, 1 its share "
        "attention_fa1_ratio; default the fastest"),
    RATIO_OF(dense_half_80, "interval.dense_80", 0, 10,
             "half width in ln(time) of the 80 % interval, dense models"),
    RATIO_OF(dense_half_90, "interval.dense_90", 0, 10, "the same, 90 %"),
    RATIO_OF(moe_half_80, "interval.moe_80", 0, 10, "80 %, models with experts"),
    RATIO_OF(moe_half_90, "interval.moe_90", 0, 10, "90 %, models with experts"),
    RATIO_OF(tuning_half_80, "interval.tuning_80", 0, 10, "80 %, fine-tuning"),
    RATIO_OF(tuning_half_90, "interval.tuning_90", 0, 10, "90 %, fine-tuning"),
    RATIO_OF(dense_plans_80, "interval.dense_plans_80", 0, 10,
             "80 % of the ratio of two plans, dense models"),
    RATIO_OF(dense_plans_90, "interval.dense_plans_90", 0, 10,
             "90 % of the ratio of two plans, dense models"),
    RATIO_OF(moe_plans_80, "interval.moe_plans_80", 0, 10,
             "80 % of the ratio of two plans, models with experts"),
    RATIO_OF(moe_plans_90, "interval.moe_plans_90", 0, 10,
             "90 % of the ratio of two plans, models with experts"),
    RATIO_OF(tuning_plans_80, "interval.tuning_plans_80", 0, 10,
             "80 % of the ratio of two plans, fine-tuning"),
    RATIO_OF(tuning_plans_90, "interval.tuning_plans_90", 0, 10,
             "90 % of the ratio of two plans, fine-tuning"),
    RATIO_OF(dense_gpus_80, "interval.dense_gpus_80", 0, 10,
             "80 % of the ratio of two kinds of GPU, dense models"),
    RATIO_OF(dense_gpus_90, "interval.dense_gpus_90", 0, 10,
             "90 % of the ratio of two kinds of GPU, dense models"),
    RATIO_OF(moe_gpus_80, "interval.moe_gpus_80", 0, 10,
             "80 % of the ratio of two kinds of GPU, models with experts"),
    RATIO_OF(moe_gpus_90, "interval.moe_gpus_90", 0, 10,
             "90 % of the ratio of two kinds of GPU, models with experts"),
    RATIO_OF(tuning_gpus_80, "interval.tuning_gpus_80", 0, 10,
             "80 % of the ratio of two kinds of GPU, fine-tuning"),
    RATIO_OF(tuning_gpus_90, "interval.tuning_gpus_90", 0, 10,
             "90 % of the ratio of two kinds of GPU, fine-tuning"),
    TEXT(ty_profile, site, "site.name", "site whose runs are known"),
    RATIO_OF(site_compute_ratio, "site.compute_ratio", 0.1, 10, "time of kernels at the site"),
    RATIO_OF(site_comm_ratio, "site.comm_ratio", 0.05, 20,
             "time of collectives but all-to-all at the site"),
    RATIO_OF(site_host_ratio, "site.host_ratio", 0.05, 20,
             "time of the host and of fixed costs at the site"),
    DOUBLE(ty_profile, runtime_bytes, "memory.runtime", BYTES, 0, 1e14,
           "context, kernels and communicators"),
    RATIO_OF(usable_ratio, "memory.usable_ratio", 0.1, 1,
             "share of device memory a plan may fill; above it: tight"),
    RATIO_OF(logits_bytes, "memory.logits_bytes", 0, 32, "bytes of a logit kept for backward"),
    RATIO_OF(logits_work_bytes, "memory.logits_work_bytes", 0, 32,
             "more bytes of a logit while the loss is computed"),
    RATIO_OF(logits_compiled_bytes, "memory.logits_compiled_bytes", 0, 32,
             "bytes of a logit in all with a compiled loss; default their sum"),
    RATIO_OF(reserve_ratio, "memory.reserve_ratio", 1, 3,
             "memory the allocator holds over memory in use"),
    RATIO_OF(reserve_compiled_ratio, "memory.reserve_compiled_ratio", 1, 3,
             "the same with torch.compile and no pipeline; default reserve_ratio"),
    ENUM(ty_profile, default_sharding, "default.sharding", sharding_names, "of the stack"),
    ENUM(ty_profile, default_grad_dtype, "default.grad_dtype", grad_dtype_names, "of the stack"),
    ENUM(ty_profile, default_sp, "default.sp", switch_names, "of the stack"),
    ENUM(ty_profile, default_attention, "default.attention", attention_kernel_names,
         "of the stack"),
    ENUM(ty_profile, default_optimizer, "default.optimizer", optimizer_names, "of the stack"),
    FLAGS(ty_profile, default_overlap, "default.overlap", overlap_names, TY_OVERLAP_GIVEN,
          "of the stack"),
    FLAGS(ty_profile, fitted, "fitted", work_names, 0,
          "work whose constants are of this machine's records"),
};

/* ---- public ----------------------------------------------------------------------------- */

const struct ty_field *ty_fields(enum ty_kind kind, size_t *n)
{
    static const struct {
        const struct ty_field *fields;
        size_t n;
    } tables[] = {
        [TY_KIND_GPU] = {gpu_fields, N_OF(gpu_fields)},
        [TY_KIND_CLUSTER] = {cluster_fields, N_OF(cluster_fields)},
        [TY_KIND_MODEL] = {model_fields, N_OF(model_fields)},
        [TY_KIND_PLAN] = {plan_fields, N_OF(plan_fields)},
        [TY_KIND_PROFILE] = {profile_fields, N_OF(profile_fields)},
    };
    if (kind == TY_KIND_STORAGE)
        return fields_storage(n);
    if (kind == TY_KIND_PRICE)
        return fields_price(n);
    *n = tables[kind].n;
    return tables[kind].fields;
}

const struct ty_field *ty_layer_fields(size_t *n)
{
    *n = N_OF(layer_kind_fields);
    return layer_kind_fields;
}

void ty_init(enum ty_kind kind, void *value)
{
    static const size_t bytes[] = {
        [TY_KIND_GPU] = sizeof(struct ty_gpu),
        [TY_KIND_CLUSTER] = sizeof(struct ty_cluster),
        [TY_KIND_MODEL] = sizeof(struct ty_model),
        [TY_KIND_PLAN] = sizeof(struct ty_plan),
        [TY_KIND_PROFILE] = sizeof(struct ty_profile),
        [TY_KIND_PRICE] = sizeof(struct ty_price),
        [TY_KIND_STORAGE] = sizeof(struct ty_storage),
    };
    memset(value, 0, bytes[kind]);
    size_t n;
    const struct ty_field *fields = ty_fields(kind, &n);
    for (size_t i = 0; i < n; i++)
        if (fields[i].type == TY_FIELD_DOUBLE)
            *(double *)((char *)value + fields[i].offset) = (double)NAN;
}
