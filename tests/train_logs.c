/* SPDX-License-Identifier: MIT
 * Real training logs against their true answers. Every figure below stands in the table or the
 * traps of README.md beside the logs (shared/data/train-logs), or in the log itself where it is a
 * plan; the tolerance is half a unit of the last digit printed there. Figures that the README
 * takes from outside a log (an issue's text, a folder's name) must be missing, not guessed. */
#include "tests/import_check.h"

#define MIB 1048576.0
#define GIB 1073741824.0

enum { ABSENT = -1, PRESENT = -2 }; /* instead of a tolerance */

struct want {
    const char *file; /* NULL: the one above */
    uint32_t run;     /* from 1 */
    const char *path;
    double value, tolerance;
};

static const struct want wants[] = {
    {"megatron-2021-tp4pp64-256gpu", 1, "lines.kept", 5, 0},
    {NULL, 1, "lines.window", 10, 0},
    {NULL, 1, "step_time_s.median", 6.7153, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 2.38, 5e-3},
    {NULL, 1, "memory.max_reserved_bytes", 22290 * MIB, 0},
    {NULL, 1, "plan.gpus", 256, 0},
    {NULL, 1, "plan.tp", 4, 0},
    {NULL, 1, "plan.pp", 64, 0},
    {NULL, 1, "layout.dp", 1, 0},
    {NULL, 1, "plan.mbs", 1, 0},
    {NULL, 1, "plan.gbs", 4, 0},
    {NULL, 1, "plan.seq", 1024, 0},
    {NULL, 1, "model.layers", 64, 0},
    {NULL, 1, "model.hidden", 16384, 0},
    {NULL, 1, "model.heads", 32, 0},
    {NULL, 1, "model.ffn", 65536, 0},
    {"megatron-deepspeed-2021-3d-pp", 1, "lines.kept", 17, 0},
    {NULL, 1, "lines.printed", 18, 0},
    {NULL, 1, "step_time_s.median", 138.3246, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 118.4, 5e-2},
    {NULL, 1, "memory.max_reserved_bytes", 23288 * MIB, 0},
    {NULL, 1, "memory.rank", 1, 0},
    {NULL, 1, "plan.gpus", 64, 0},
    {NULL, 1, "plan.mbs", 4, 0},
    {NULL, 1, "layout.n_micro", 256, 0},
    {"bigscience-tr1-13b-chronicle", 1, "lines.kept", 8, 0},
    {NULL, 1, "step_time_s.median", 22.1651, 5e-5},
    {NULL, 1, "blocks.1.step_time_s.median", 23.49, 5e-3},
    {NULL, 1, "blocks.2.step_time_s.median", 25.59, 5e-3},
    {NULL, 1, "lines.window", 10, 0},
    {NULL, 1, "flags.split", 0, PRESENT},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"bigscience-tr8b-104b-chronicle", 1, "lines.printed", 11, 0},
    {NULL, 1, "plan.gbs", 2048, 0},
    {NULL, 1, "step_time_s.median", 422, 1},
    {NULL, 1, "blocks.0.gbs", 80, 0},
    {NULL, 1, "blocks.0.step_time_s.median", 31.07, 5e-3},
    {NULL, 1, "blocks.1.gbs", 160, 0},
    {NULL, 1, "blocks.2.gbs", 528, 0},
    {NULL, 1, "blocks.3.gbs", 800, 0}, /* the record wrapped over three lines */
    {NULL, 1, "blocks.3.step_time_s.median", 220.6319, 1e-6},
    {NULL, 1, "blocks.4.gbs", 1024, 0},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"megatron-deepspeed-2023-rocm-gpt6b7", 1, "lines.kept", 4, 0},
    {NULL, 1, "step_time_s.median", 75.216, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 3485, 0.5},
    {NULL, 1, "memory.max_allocated_bytes", 68581.8 * MIB, 0.05 * MIB},
    {NULL, 1, "memory.max_reserved_bytes", 90178 * MIB, 0},
    {NULL, 1, "plan.gpus", 16, 0},
    {NULL, 1, "layout.dp", 16, 0},
    {NULL, 1, "plan.gbs", 2048, 0},
    {NULL, 1, "flags.deepspeed_timer", 0, PRESENT},
    {"megatron-deepspeed-2024-alcf-eqform", 1, "lines.kept", 0, 0},
    {NULL, 1, "step_time_s.median", 108.893, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 1203.674, 5e-4},
    {NULL, 1, "plan.gpus", 24, 0},
    {NULL, 1, "plan.seq", 4096, 0},
    {NULL, 1, "plan.gbs", 768, 0},
    {NULL, 1, "memory.max_reserved_bytes", 54556 * MIB, 0},
    {NULL, 1, "flags.only_warm_up", 0, PRESENT},
    {"epfllm-megatron-2023-drift", 1, "flags.not_stationary", 0, PRESENT},
    {NULL, 1, "lines.printed", 8, 0},
    {NULL, 1, "step_time_s.min", 45.3, 0.05},
    {NULL, 1, "step_time_s.max", 89.474, 1e-3},
    {NULL, 1, "step_time_s.median", 0, ABSENT},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"megatron-2024-mcore-mixtral-16h100", 1, "lines.kept", 11, 0},
    {NULL, 1, "step_time_s.median", 5.6301, 5e-5},
    {NULL, 1, "memory.max_reserved_bytes", 61480 * MIB, 0},
    {NULL, 1, "memory.rank", 1, 0},
    {NULL, 1, "plan.ep", 8, 0},
    {NULL, 1, "model.hidden", 4096, 0},
    {NULL, 1, "model.ffn", 14336, 0},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {NULL, 1, "plan.mbs", 0, ABSENT},
    {NULL, 1, "plan.seq", 0, ABSENT},
    {NULL, 1, "flop_per_s_per_gpu.value", 232e12, 2e12}, /* 1306 TFLOP over 5.63 s */
    {"megatron-2024-core-gpt2-345m-crash", 1, "lines.kept", 3, 0},
    {NULL, 1, "step_time_s.median", 0.4378, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 9356, 0.5},
    {NULL, 1, "memory.max_reserved_bytes", 2608 * MIB, 0},
    {NULL, 1, "plan.gpus", 4, 0},
    {NULL, 1, "model.layers", 24, 0},
    {NULL, 1, "model.heads", 16, 0},
    {"megatron-2024-aws-abbrev", 1, "step_time_s.median", 0.0870, 5e-5},
    {NULL, 1, "lines.kept", 3, 0},
    {NULL, 1, "plan.gbs", 2, 0},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {NULL, 2, "step_time_s.median", 243.391, 5e-4},
    {NULL, 2, "lines.kept", 2, 0},
    {NULL, 2, "plan.gpus", 8, 0},
    {NULL, 2, "plan.mbs", 1, 0},
    {NULL, 2, "layout.dp", 1, 0},
    {NULL, 2, "plan.seq", 0, ABSENT},
    {NULL, 2, "model.layers", 0, ABSENT},
    {"nemo2-2025-notebook-llama", 1, "lines.kept", 19, 0},
    {NULL, 1, "lines.printed", 20, 0},
    {NULL, 1, "step_time_s.median", 7.572, 5e-4},
    {NULL, 1, "plan.gpus", 8, 0},
    {NULL, 1, "plan.tp", 2, 0},
    {NULL, 1, "plan.pp", 1, 0},
    {NULL, 1, "layout.dp", 4, 0},
    {NULL, 1, "plan.gbs", 512, 0},
    {NULL, 1, "model.vocab", 50432, 0},
    {NULL, 1, "plan.seq", 0, ABSENT},
    {NULL, 1, "memory.max_reserved_bytes", 0, ABSENT},
    {"nemo2-2025-crash-restart", 1, "lines.printed", 26, 0},
    {NULL, 1, "lines.kept", 24, 0},
    {NULL, 1, "step_time_s.median", 7.5895, 5e-5},
    {NULL, 1, "plan.gpus", 8, 0},
    {"nemo2-2025-skypilot-l40s", 1, "lines.kept", 5, 0},
    {NULL, 1, "step_time_s.median", 46.86, 5e-3},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"nemo-2025-tokens-per-sec", 1, "step_time_s.median", 2.389, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 6859, 0.5},
    {NULL, 1, "plan.gbs", 32, 0},
    {NULL, 1, "plan.seq", 0, ABSENT},
    {"nemo1-2023-progress-bar", 1, "step_time_s.median", 41.36, 5e-3},
    {NULL, 1, "plan.gbs", 2048, 0},
    {NULL, 1, "flags.average", 0, PRESENT},
    {"megatron-bridge-2026-gb200-steptime", 1, "lines.kept", 11, 0},
    {NULL, 1, "lines.printed", 15, 0},
    {NULL, 1, "step_time_s.median", 2.23, 5e-3},
    {NULL, 1, "step_time_s.mean", 2.461, 5e-4},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {"megatron-bridge-2025-launcher-prefix", 1, "lines.printed", 1, 0},
    {NULL, 1, "step_time_s.median", 9.089, 5e-4},
    {NULL, 1, "plan.gbs", 512, 0},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"mlperf-v5.1-nvidia-gb200-llama31-8b", 1, "lines.kept", 24, 0},
    {NULL, 1, "lines.window", 32, 0},
    {NULL, 1, "step_time_s.median", 0.40379, 5e-6},
    {NULL, 1, "tokens_per_s.value", 40576 * 8.0, 4}, /* 8 GPUs by the name of its folder */
    {NULL, 1, "plan.gbs", 16, 0},
    {NULL, 1, "plan.seq", 8192, 0},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"mlperf-v5.1-amd-mi355x-llama2-70b-lora", 1, "lines.kept", 6, 0},
    {NULL, 1, "step_time_s.median", 1.3614, 1e-4},
    {NULL, 1, "lines.first_iteration", 192, 0}, /* 1536 samples of 8 */
    {NULL, 1, "plan.gbs", 8, 0},
    {NULL, 1, "model.lora_rank", 16, 0},
    {NULL, 1, "plan.seq", 0, ABSENT},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {"torchtitan-2024-wps-toml", 1, "tokens_per_s_per_gpu.value", 1710, 0.5},
    {NULL, 1, "step_time_s.median", 4.79, 5e-3},
    {NULL, 1, "plan.mbs", 4, 0},
    {NULL, 1, "flags.contradiction", 0, PRESENT},
    {NULL, 1, "memory.max_reserved_bytes", 36.20 * GIB, 0.005 * GIB},
    {NULL, 1, "plan.gpus", 0, ABSENT},
    {NULL, 2, "tokens_per_s_per_gpu.value", 1956, 0.5},
    {NULL, 2, "lines.kept", 5, 0},
    {NULL, 2, "step_time_s.median", 4.19, 5e-3},
    {NULL, 2, "memory.max_reserved_bytes", 33.11 * GIB, 0.005 * GIB},
    {"torchtitan-2025-ansi-slurm-ranks", 1, "tokens_per_s_per_gpu.value", 6785, 0.5},
    {NULL, 1, "memory.max_reserved_bytes", 68.57 * GIB, 0.005 * GIB},
    {NULL, 1, "lines.printed", 1, 0},
    {NULL, 1, "lines.copies", 8, 0},
    {NULL, 2, "tokens_per_s_per_gpu.value", 7865, 0.5},
    {NULL, 2, "memory.max_reserved_bytes", 63.48 * GIB, 0.005 * GIB},
    {NULL, 2, "lines.printed", 1, 0},
    {"torchtitan-2025-zoc-interval10", 1, "lines.kept", 5, 0},
    {NULL, 1, "tokens_per_s_per_gpu.value", 5864, 0.5},
    {NULL, 1, "step_time_s.median", 1.3965, 5e-4},
    {NULL, 1, "tokens_per_step_per_gpu.value", 8192, 0},
    {NULL, 1, "memory.max_reserved_bytes", 49.66 * GIB, 0.005 * GIB},
    {"torchtitan-2025-pp16-70b", 1, "lines.kept", 3, 0},
    {NULL, 1, "step_time_s.median", 61.24, 5e-3},
    {NULL, 1, "tokens_per_s_per_gpu.value", 8.36, 5e-3},
    {NULL, 1, "plan.gbs", 2, 0},
    {NULL, 1, "plan.seq", 4096, 0},
    {NULL, 1, "memory.max_reserved_bytes", 42.78 * GIB, 0.005 * GIB},
    {NULL, 1, "plan.pp", 0, ABSENT},
    {"torchtitan-2025-cp2-4ranks", 1, "lines.kept", 1, 0},
    {NULL, 1, "step_time_s.median", 0.7296, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 5615, 0.5},
    {NULL, 1, "tokens_per_step_per_gpu.value", 4096, 0},
    {NULL, 1, "plan.gpus", 4, 0},
    {NULL, 1, "plan.cp", 2, 0},
    {NULL, 1, "memory.max_reserved_bytes", 44.84 * GIB, 0.005 * GIB},
    {"nanotron-2025-2gpu", 1, "step_time_s.median", 11.5, 0.05},
    {NULL, 1, "tokens_per_s_per_gpu.value", 11400, 50},
    {NULL, 1, "plan.gpus", 2, 0},
    {NULL, 1, "plan.seq", 4096, 0},
    {NULL, 1, "plan.gbs", 64, 0},
    {"nanotron-2025-time-per-iteration", 1, "lines.kept", 2, 0},
    {NULL, 1, "step_time_s.median", 8.765, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 701, 2.5},
    {NULL, 1, "plan.gbs", 0, ABSENT}, /* printed in tokens */
    {NULL, 1, "flags.gpus_about", 0, PRESENT},
    {"gptneox-2023-deepspeed", 1, "step_time_s.median", 4.1031, 5e-5},
    {NULL, 1, "plan.gbs", 32, 0},
    {NULL, 1, "memory.max_allocated_bytes", 63.31 * GIB, 0.005 * GIB},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {"deepspeed-2022-notebook-html", 1, "step_time_s.median", 1.5145, 1e-4},
    {NULL, 1, "plan.gbs", 128, 0},
    {NULL, 1, "memory.max_allocated_bytes", 9.02 * GIB, 0.005 * GIB},
    {"deepspeed-2022-flops-profiler", 1, "plan.gpus", 128, 0},
    {NULL, 1, "layout.dp", 16, 0},
    {NULL, 1, "layout.mp", 8, 0},
    {NULL, 1, "plan.mbs", 8, 0},
    {NULL, 1, "plan.tp", 0, ABSENT},
    {NULL, 1, "refused", 0, PRESENT},
    {NULL, 1, "step_time_s.median", 0, ABSENT},
    {"hf-trainer-deepspeed-2021-16node", 1, "step_time_s.median", 136.5, 0.05},
    {NULL, 1, "plan.gpus", 64, 0},
    {NULL, 1, "plan.mbs", 8, 0},
    {NULL, 1, "plan.gbs", 512, 0},
    {NULL, 1, "plan.seq", 0, ABSENT},
    {NULL, 1, "flags.average", 0, PRESENT},
    {NULL, 1, "lines.printed", 1, 0},
    {"composer-2024-mpt30b-16mi300x", 1, "step_time_s.median", 374.7, 0.05},
    {NULL, 1, "tokens_per_s_per_gpu.value", 1255.18, 5e-3},
    {NULL, 1, "plan.gpus", 16, 0},
    {NULL, 1, "plan.gbs", 1024, 0},
    {NULL, 1, "plan.mbs", 8, 0},
    {NULL, 1, "plan.seq", 0, ABSENT}, /* its tokens are padded: not exact */
    {"internevo-2023-7b", 1, "lines.kept", 5, 0},
    {NULL, 1, "tokens_per_s_per_gpu.value", 4179.64, 5e-3},
    {NULL, 1, "step_time_s.median", 3.92, 5e-3},
    {NULL, 1, "plan.gpus", 8, 0},
    {NULL, 1, "plan.gbs", 64, 0},
    {NULL, 1, "plan.seq", 2048, 0},
    {NULL, 1, "plan.mbs", 2, 0},
    {"internevo-2023-20b", 1, "tokens_per_s_per_gpu.value", 1030.92, 5e-3},
    {NULL, 1, "step_time_s.median", 3.973, 5e-4},
    {NULL, 1, "plan.gpus", 16, 0},
    {NULL, 1, "plan.tp", 4, 0},
    {NULL, 1, "plan.gbs", 32, 0},
    {NULL, 1, "model.layers", 60, 0},
    {NULL, 1, "model.hidden", 5120, 0},
    {"primus-2025-32gpu", 1, "step_time_s.median", 2.7013, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 12130.4, 5e-2},
    {NULL, 1, "plan.gpus", 32, 0},
    {NULL, 1, "plan.seq", 4096, 0},
    {NULL, 1, "tokens_per_step_per_gpu.value", 32768, 0},
    {NULL, 1, "memory.device_used_bytes", 227.35 * GIB, 0.005 * GIB},
    {"primus-2025-64gpu", 1, "step_time_s.median", 16.6013, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 246.7, 5e-2},
    {NULL, 1, "plan.seq", 4096, 0},
    {NULL, 1, "memory.device_used_bytes", 253.38 * GIB, 0.005 * GIB},
    {"primus-2025-8gpu-ansi", 1, "step_time_s.median", 13.100, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 10005.5, 5e-2},
    {NULL, 1, "plan.gpus", 8, 0},
    {NULL, 1, "plan.seq", 8192, 0},
    {NULL, 1, "memory.device_used_bytes", 153.81 * GIB, 0.005 * GIB},
    {"primus-2026-wrapped", 1, "step_time_s.median", 1.4678, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 178596.5, 5e-2},
    {NULL, 1, "tokens_per_step_per_gpu.value", 262144, 0},
    {"maxtext-2025-tpu-async-dispatch", 1, "lines.kept", 7, 0},
    {NULL, 1, "step_time_s.median", 5.668, 5e-4},
    {NULL, 1, "tokens_per_s_per_gpu.value", 8671, 1},
    {NULL, 1, "plan.gpus", 4, 0},
    {NULL, 1, "tokens_per_step_per_gpu.value", 49152, 0},
    /* 3.604 without profiled and checkpointed steps, which the importer leaves out */
    {"maxtext-2024-gpu-checkpoint-noise", 1, "step_time_s.median", 3.604, 1e-3},
    {NULL, 1, "lines.kept", 6, 0},
    {"automodel-2026-dynamic-batch", 1, "lines.kept", 7, 0},
    {NULL, 1, "tokens_per_s_per_gpu.value", 1319.76, 5e-3},
    {NULL, 1, "plan.gpus", 8, 0},
    {NULL, 1, "step_time_s.min", 1.78, 5e-3},
    {NULL, 1, "step_time_s.max", 2.40, 5e-3},
    {NULL, 1, "memory.unspecified_bytes", 29.67 * GIB, 0.005 * GIB},
    {NULL, 1, "plan.gbs", 0, ABSENT},
    {NULL, 1, "flags.dynamic_batch", 0, PRESENT},
    {"olmo-core-2025-console", 1, "step_time_s.median", 0.2539, 5e-5},
    {NULL, 1, "tokens_per_s_per_gpu.value", 258163, 0.5},
    {NULL, 1, "tokens_per_step_per_gpu.value", 65536, 0},
    {NULL, 1, "memory.max_reserved_bytes", 62.69 * GIB, 0.005 * GIB},
    {NULL, 1, "plan.gpus", 0, ABSENT},
};

static const struct {
    const char *file, *path, *text;
} texts[] = {
    {"megatron-2021-tp4pp64-256gpu", "plan.precision", "fp16"},
    {"megatron-2021-tp4pp64-256gpu", "plan.recompute", "full"},
    {"megatron-deepspeed-2021-3d-pp", "framework", "megatron-deepspeed"},
    {"megatron-deepspeed-2021-3d-pp", "plan.sharding", "none"},
    {"megatron-deepspeed-2023-rocm-gpt6b7", "plan.sharding", "zero1"},
    {"megatron-2024-core-gpt2-345m-crash", "plan.precision", "fp16"},
    {"hf-trainer-deepspeed-2021-16node", "plan.sharding", "zero3"},
    {"hf-trainer-deepspeed-2021-16node", "plan.precision", "fp16"},
    {"composer-2024-mpt30b-16mi300x", "plan.precision", "fp16"},
    {"internevo-2023-7b", "plan.precision", "fp16"},
    {"torchtitan-2024-wps-toml", "plan.recompute", "selective"},
    {"torchtitan-2024-wps-toml", "step_time_s.origin", "time_stamps"},
    {"torchtitan-2025-cp2-4ranks", "plan.recompute", "full"},
    {"torchtitan-2025-pp16-70b", "tokens_per_s_per_gpu.origin", "derived"},
    {"mlperf-v5.1-nvidia-gb200-llama31-8b", "hardware", "2xNVIDIA GB200"},
    {"mlperf-v5.1-amd-mi355x-llama2-70b-lora", "model.name", "llama2_70b_lora"},
    {"nanotron-2025-2gpu", "framework", "nanotron"},
    {"gptneox-2023-deepspeed", "framework", "gpt-neox"},
    {"maxtext-2025-tpu-async-dispatch", "framework", "maxtext"},
};

struct source {
    const char *file; /* of `import` */
    struct ty_import import;
    bool read;
};

static void open_source(struct source *source, const char *file)
{
    char path[1200];
    struct ty_error error = {0};
    ty_import_free(&source->import);
    snprintf(path, sizeof path, "%s/%s.log", shared_path("data/train-logs"), file);
    source->file = file;
    source->read = ty_import_file(path, &source->import, &error) == TY_OK;
    ok(source->read, "%s is read", file);
    if (!source->read)
        printf("# %s: %s\n", error.where, error.text);
}

static void check(const struct source *source, const struct want *want)
{
    const struct import_value got = import_value(&source->import, want->run, want->path);
    char what[160];
    snprintf(what, sizeof what, "%s, run %u: %s", source->file, want->run, want->path);
    if (want->tolerance == ABSENT)
        ok(want->run <= source->import.n_records && got.type == IMPORT_NOTHING, "%s is missing",
           what);
    else if (want->tolerance == PRESENT)
        ok(got.type != IMPORT_NOTHING, "%s is there", what);
    else
        within(got.number, want->value, want->tolerance, what);
}

static void check_text(const struct source *source, const char *path, const char *want)
{
    char what[160];
    snprintf(what, sizeof what, "%s: %s", source->file, path);
    same_text(import_value(&source->import, 1, path).text, want, what);
}

/* The plan of a record is a plan file. */
static void check_plan(const struct source *source)
{
    const char *json = source->read ? source->import.records[0].json : "";
    const char *plan = strstr(json, "\"plan\": ");
    const char *end = plan ? strchr(plan, '}') : NULL;
    struct ty_plan out;
    struct ty_error error = {0};
    const bool legal = end && ty_spec_parse(TY_KIND_PLAN, plan + 8, (size_t)(end - plan) - 7,
                                            "record", &out, &error) == TY_OK;
    ok(legal, "%s: its plan is a plan file", source->file);
    if (!legal)
        printf("# %s: %s\n", error.where, error.text);
}

int main(void)
{
    FILE *file = fopen(shared_path("data/train-logs/README.md"), "r");
    if (!file) {
        skip("41 training logs", "shared/data/train-logs is not here");
        return tap_done();
    }
    fclose(file);
    struct source source = {0};
    uint32_t n_logs = 0;
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        if (wants[i].file) {
            open_source(&source, wants[i].file);
            check_plan(&source);
            n_logs++;
        }
        check(&source, &wants[i]);
    }
    ok(n_logs == 41, "all 41 logs");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        open_source(&source, texts[i].file);
        check_text(&source, texts[i].path, texts[i].text);
    }
    ty_import_free(&source.import);
    return tap_done();
}
