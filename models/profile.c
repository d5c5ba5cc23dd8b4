/* SPDX-License-Identifier: MIT
 *
 * Missing constants of a profile: generic priors, of no machine in particular, each with the place
 * it is from. "seed" is the value or prior of the public fit over 639 published runs (ACCURACY 3).
 */
#include "models/fields.h"
#include "models/setting.h"
#include "sim/error.h"

#include <math.h>

/* clang-format off */
static const struct {
    size_t offset;
    double value;
} priors[] = {
#define PRIOR(member, value) {offsetof(struct ty_profile, member), value}
    PRIOR(gemm_ratio_16, 0.70),         /* MAMF 0.73 to 0.87 less the sustained clock, 4.1 */
    PRIOR(gemm_ratio_8, 0.60),          /* seed prior 0.42 to 0.70 */
    PRIOR(gemm_ratio_4, 0.50),          /* seed prior */
    PRIOR(gemm_k0, 150.0),              /* seed prior; handbook 4.2 "a few hundred" */
    PRIOR(gemm_wave_loss, 0.5),         /* seed prior */
    PRIOR(gemm_backward, 1.05),         /* seed prior */
    PRIOR(grouped_gemm_ratio, 0.95),    /* 1.6: measured over the sum form 0.91 to 1.11 */
    PRIOR(attention_ratio, 0.55),       /* FA3 0.65, FA2 on A100 0.64, 4.3, less fitted 0.65..1 */
    PRIOR(attention_half_seq, 600.0),   /* seed, devices: 300 to 900 */
    PRIOR(attention_backward, 1.25),    /* seed prior */
    PRIOR(attention_head_power, 0.35),  /* ACCURACY 1.2 */
    PRIOR(packed_ratio, 0.35),          /* seed prior */
    PRIOR(attention_fa1_ratio, 0.55),   /* arXiv 2307.08691: the second is about twice as fast */
    PRIOR(misaligned_ratio, 0.25),      /* seed prior */
    PRIOR(mem_ratio, 0.82),             /* seed prior; 4.4: 0.85 to 0.92 for long streams */
    PRIOR(kernel_floor_s, 3e-6),        /* 4.5: launch 2 to 4 us */
    PRIOR(launch_issue_s, 7e-6),        /* 4.5: eager 5 to 10 us (low confidence) */
    PRIOR(clock_ratio, 1.0),
    PRIOR(allreduce_ratio, 0.8),        /* 5.3: 235/300, 482/450 with NVLS, 846/900 */
    PRIOR(allgather_ratio, 0.72),       /* seed, devices: 223/300, 360/450, 650/900 */
    PRIOR(alltoall_ratio, 0.85),        /* seed prior */
    PRIOR(alltoall_nic_ratio, 1.0),     /* DeepEP: 43 to 58 GB/s of 50 between nodes */
    PRIOR(collective_latency_s, 25e-6), /* seed, devices: 17 to 34 us */
    PRIOR(latency_growth, 1.5),         /* ACCURACY 1.5 */
    PRIOR(ramp_bytes, 12e6),            /* seed, devices: 8 to 20 MB */
    PRIOR(ramp_ratio, 0.5),             /* seed prior */
    PRIOR(p2p_latency_s, 25e-6),        /* ACCURACY 1.5 */
    PRIOR(slow_compute_scaleup, 0.15),  /* 5.8 */
    PRIOR(slow_compute_nic, 0.05),      /* 5.8 */
    PRIOR(slow_comm, 0.05),             /* 5.8 */
    PRIOR(elementwise_ratio, 1.3),      /* seed, preset */
    PRIOR(compiled_ratio, 1.2),         /* a norm, a rotation, a gate are a kernel each */
    PRIOR(cast_ratio, 1.0),             /* seed prior */
    PRIOR(permute_ratio, 1.5),          /* 4.4: 19 to 50 % of the bandwidth */
    PRIOR(lora_ratio, 1.0),             /* seed prior */
    PRIOR(compute_ratio, 1.0),
    PRIOR(moe_time_ratio, 1.0),         /* seed prior */
    PRIOR(host_layer_s, 250e-6),        /* seed, preset */
    PRIOR(host_tp_growth, 0.05),        /* seed prior */
    PRIOR(dropless_host_s, 1e-3),       /* 4 host_layer_s: launches of a MoE layer over a dense */
    PRIOR(tp_overlap_exposed, 0.4),     /* seed prior */
    PRIOR(tp_time_ratio, 1.0),          /* isolated time */
    PRIOR(dp_time_ratio, 1.0),          /* isolated time */
    PRIOR(dp_network_ratio, 1.0),       /* isolated time */
    PRIOR(pp_time_ratio, 1.0),          /* isolated time */
    PRIOR(dp_slow_compute, 0.05),       /* as slow_compute_nic */
    PRIOR(step_fixed_s, 0.015),         /* seed prior */
    PRIOR(micro_fixed_s, 0.001),        /* seed prior */
    PRIOR(host_micro_s, 0.0),           /* of stacks whose runs tell it */
    PRIOR(jitter_ratio, 0.003),         /* seed prior */
    PRIOR(optimizer_ratio, 1.0),        /* fused Adam */
    /* one source left out, all stacks, upwards: data/profiles/common.json */
    PRIOR(dense_half_80, 0.25),
    PRIOR(dense_half_90, 0.3),
    PRIOR(moe_half_80, 0.4),
    PRIOR(moe_half_90, 0.7),
    PRIOR(tuning_half_80, 0.25),
    PRIOR(tuning_half_90, 0.3),
    PRIOR(dense_plans_80, 0.12),
    PRIOR(dense_plans_90, 0.2),
    PRIOR(moe_plans_80, 0.35),
    PRIOR(moe_plans_90, 0.45),
    PRIOR(tuning_plans_80, 0.16),
    PRIOR(tuning_plans_90, 0.2),
    PRIOR(dense_gpus_80, 0.15),
    PRIOR(dense_gpus_90, 0.22),
    PRIOR(moe_gpus_80, 0.7),
    PRIOR(moe_gpus_90, 1.0),
    PRIOR(tuning_gpus_80, 0.22),
    PRIOR(tuning_gpus_90, 0.3),
    PRIOR(site_compute_ratio, 1.0),
    PRIOR(site_comm_ratio, 1.0),
    PRIOR(site_host_ratio, 1.0),
    PRIOR(runtime_bytes, 1610612736.0), /* 3.5: context 0.5 to 1.8 GiB and communicators */
    PRIOR(usable_ratio, 0.94),          /* 3.5 */
    PRIOR(logits_bytes, 2.0),           /* 3.2: fused cross-entropy keeps them in 16 bits */
    PRIOR(logits_work_bytes, 2.0),      /* 3.2 (a): their gradient */
    PRIOR(reserve_ratio, 1.0),
#undef PRIOR
};
/* clang-format on */

/* Share of NIC line rate collectives reach. source: seed, fitted 0.96, 0.87, 0.57 */
static double nic_ratio_of(int fabric)
{
    switch (fabric) {
    case TY_FABRIC_OMNIPATH:
        return 0.57;
    case TY_FABRIC_INFINIBAND:
        return 0.96;
    default:
        return 0.87;
    }
}

static uint32_t fill_priors(struct ty_profile *profile)
{
    uint32_t n_missing = 0;
    for (size_t i = 0; i < sizeof priors / sizeof *priors; i++) {
        double *value = (double *)(void *)((char *)profile + priors[i].offset);
        if (!isnan(*value))
            continue;
        *value = priors[i].value;
        n_missing++;
    }
    return n_missing;
}

/* Bus bandwidth over the link: the ratios of presets are those of NVLink and xGMI, which PCIe does
 * not reach. source: seed, L40S 20 of 31 GB/s */
static double busbw_ratio(double ratio, const struct ty_cluster *cluster)
{
    return cluster->scaleup == TY_SCALEUP_PCIE ? fmin(ratio, 0.645) : ratio;
}

/* Attention rate over the 16-bit peak of the stack's generation of flash kernels. */
static double attention_ratio_of(const struct ty_profile *profile)
{
    switch (profile->flash_version) {
    case 1:
        return profile->attention_fa2_ratio * profile->attention_fa1_ratio;
    case 2:
        return profile->attention_fa2_ratio;
    default:
        return profile->attention_ratio;
    }
}

/* Rates that a profile may give as measured, or as a share of the machine's own figures. */
static void fill_rates(struct ty_profile *profile, const struct ty_cluster *cluster)
{
    if (isnan(profile->nic_ratio))
        profile->nic_ratio = nic_ratio_of(cluster->fabric);
    if (isnan(profile->mem_half_bytes))
        profile->mem_half_bytes = 0.0; /* short kernels: kernel_floor_s */
    if (isnan(profile->logits_compiled_bytes))
        profile->logits_compiled_bytes = profile->logits_bytes + profile->logits_work_bytes;
    if (isnan(profile->reserve_compiled_ratio))
        profile->reserve_compiled_ratio = profile->reserve_ratio;
    if (isnan(profile->attention_fa2_ratio))
        profile->attention_fa2_ratio = profile->attention_ratio;
    if (isnan(profile->attention_flop_per_s))
        profile->attention_flop_per_s =
            attention_ratio_of(profile) *
            fmax(cluster->gpu.bf16_flop_per_s, cluster->gpu.fp16_flop_per_s);
    if (isnan(profile->allreduce_busbw_bytes_per_s))
        profile->allreduce_busbw_bytes_per_s =
            busbw_ratio(profile->allreduce_ratio, cluster) * cluster->scaleup_bytes_per_s;
    if (isnan(profile->allgather_busbw_bytes_per_s))
        profile->allgather_busbw_bytes_per_s =
            busbw_ratio(profile->allgather_ratio, cluster) * cluster->scaleup_bytes_per_s;
}

ty_status profile_resolve(const struct ty_profile *in, const struct ty_cluster *cluster,
                          struct ty_profile *out, struct notes *notes, struct ty_error *error)
{
    ty_status status = fields_check(TY_KIND_PROFILE, in, error);
    if (status != TY_OK)
        return status;
    struct ty_profile profile = *in;
    uint32_t n_missing = fill_priors(&profile);
    fill_rates(&profile, cluster);
    if (n_missing > 0)
        notes_add(notes, TY_NOTE_UNCALIBRATED, NULL, "profile constants",
                  "not in the profile; generic priors were used", "%u missing", n_missing);
    if (!profile.calibrated)
        notes_add(notes, TY_NOTE_UNCALIBRATED, NULL, "profile",
                  "constants from public figures, not measured on this machine", "%s",
                  profile.name[0] ? profile.name : "generic");
    *out = profile;
    return TY_OK;
}
