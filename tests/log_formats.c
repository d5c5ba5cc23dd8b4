/* SPDX-License-Identifier: MIT
 * Synthetic logs, one per family, written for this test with numbers chosen by hand: the answer
 * follows from the numbers, by the arithmetic in the comments. No file outside is needed. */
#include "tests/import_check.h"

#include <unistd.h>

static char path[] = "/tmp/trainyard-log-XXXXXX";

static ty_status import_bytes(const char *text, size_t bytes, struct ty_import *import,
                              struct ty_error *error)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return TY_ERR_IO;
    fwrite(text, 1, bytes, file);
    fclose(file);
    return ty_import_file(path, import, error);
}

static bool read_log(const char *what, const char *text, struct ty_import *import)
{
    struct ty_error error = {0};
    *import = (struct ty_import){0};
    const ty_status status = import_bytes(text, strlen(text), import, &error);
    if (!ok(status == TY_OK, "%s is read", what))
        printf("# %s: %s\n", error.where, error.text);
    return status == TY_OK;
}

static void number(const struct ty_import *import, const char *at, double want, double tolerance)
{
    within(import_value(import, 1, at).number, want, tolerance, at);
}

static void absent(const struct ty_import *import, const char *at)
{
    ok(import_value(import, 1, at).type == IMPORT_NOTHING, "%s is missing", at);
}

static void present(const struct ty_import *import, const char *at)
{
    ok(import_value(import, 1, at).type != IMPORT_NOTHING, "%s is there", at);
}

static void word(const struct ty_import *import, const char *at, const char *want)
{
    same_text(import_value(import, 1, at).text, want, at);
}

/* ---- Megatron family ---------------------------------------------------------------------- */

#define RECORD(i, ms, skipped)                                                                     \
    " [2025-01-02 03:04:05] iteration " #i "/ 100 | consumed samples: 64 | elapsed time per "      \
    "iteration (ms): " #ms " | throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 64 | " \
    "lm loss: 2.0E+00 | number of skipped iterations: " #skipped " |\n"

static const char megatron_dump[] =
    "------------------------ arguments ------------------------\n"
    "  accumulate_allreduce_grads_in_fp32 .............. True\n"
    "  attention_backend ............................... AttnBackend.flash\n"
    "  bf16 ............................................ True\n"
    "  context_parallel_size ........................... 2\n"
    "  cp_comm_type .................................... ['p2p']\n"
    "  data_parallel_size .............................. 2\n"
    "  ffn_hidden_size ................................. 8192\n"
    "  fp16 ............................................ False\n"
    "  fp8 ............................................. hybrid\n"
    "  global_batch_size ............................... 64\n"
    "  group_query_attention ........................... False\n"
    "  hidden_size ..................................... 2048\n"
    "  micro_batch_size ................................ 2\n"
    "  kv_channels ..................................... 128\n"
    "  moe_router_topk ................................. 2\n"
    "  moe_token_dispatcher_type ....................... allgather\n"
    "  num_attention_heads ............................. 16\n"
    "  num_experts ..................................... None\n"
    "  num_layers ...................................... 24\n"
    "  num_query_groups ................................ 1\n"
    "  optimizer ....................................... adam\n"
    "  overlap_grad_reduce ............................. True\n"
    "  overlap_p2p_comm ................................ False\n"
    "  overlap_param_gather ............................ True\n"
    "  params_dtype .................................... torch.bfloat16\n"
    "  pipeline_model_parallel_size .................... 2\n"
    "  recompute_granularity ........................... full\n"
    "  recompute_method ................................ block\n"
    "  recompute_num_layers ............................ 2\n"
    "  seq_length ...................................... 4096\n"
    "  sequence_parallel ............................... True\n"
    "  tensor_model_parallel_size ...................... 4\n"
    "  untie_embeddings_and_output_weights ............. True\n"
    "  use_distributed_optimizer ....................... True\n"
    "  virtual_pipeline_model_parallel_size ............ 3\n"
    "  world_size ...................................... 32\n"
    "-------------------- end of arguments ---------------------\n";

static void test_megatron(void)
{
    struct ty_import import;
    char text[8192];
    snprintf(text, sizeof text, "%s%s", megatron_dump,
             RECORD(1, 9000.0, 1) RECORD(2, 2010.0, 0)
                 RECORD(3, 2000.0,
                        0) "[Rank 3] (after 3 iterations) memory (MB) | allocated: 1.0 | max "
                           "allocated: 1024.0 | "
                           "reserved: 2.0 | max reserved: 2048.0\n"
                           "saving checkpoint at iteration 3 to somewhere\n" RECORD(4, 3000.0, 0)
                               RECORD(5, 1990.0, 0) RECORD(6, 2000.0, 0) RECORD(
                                   7, 12000.0,
                                   0) " validation loss at iteration 7 | lm loss value: 2.0E+00 | "
                                      "lm loss PPL: 7.4E+00 |\n" RECORD(8, 2000.0, 0));
    read_log("Megatron-Core", text, &import);
    /* kept 2010, 2000, 1990, 2000, 2000 */
    number(&import, "lines.kept", 5, 0);
    number(&import, "lines.dropped.first_window", 1, 0);
    number(&import, "lines.dropped.event", 1, 0);
    number(&import, "lines.dropped.outlier", 1, 0);
    number(&import, "step_time_s.median", 2.0, 1e-12);
    number(&import, "step_time_s.mean", 2.0, 1e-12);
    /* (2.01 + 2 + 3 + 1.99 + 2 + 12 + 2) / 7 */
    number(&import, "step_time_s.mean_with_dropped", 25.0 / 7.0, 1e-12);
    number(&import, "tokens_per_s_per_gpu.value", 64.0 * 4096 / 2.0 / 32, 1e-9);
    number(&import, "flop_per_s_per_gpu.value", 400e12, 1.0);
    number(&import, "plan.vpp", 3, 0);
    number(&import, "plan.cp", 2, 0);
    number(&import, "layout.n_micro", 16, 0); /* 64 / (2 * 2) */
    number(&import, "model.kv_heads", 16, 0); /* no grouped queries: the 1 is a default */
    absent(&import, "model.top_k");
    word(&import, "plan.precision", "fp8");
    word(&import, "plan.recompute", "full");
    number(&import, "plan.recompute_layers", 2, 0);
    word(&import, "plan.overlap", "grad,param");
    word(&import, "plan.grad_dtype", "fp32");
    word(&import, "plan.attention", "flash");
    word(&import, "plan.optimizer", "adam");
    word(&import, "plan.cp_scheme", "ring");
    absent(&import, "plan.dispatcher"); /* no experts */
    number(&import, "model.head_dim", 128, 0);
    word(&import, "model.tied", "off");
    word(&import, "plan.sharding", "zero1");
    word(&import, "plan.sp", "on");
    word(&import, "framework", "megatron-core");
    number(&import, "memory.max_reserved_bytes", 2147483648.0, 0);
    number(&import, "memory.rank", 3, 0);
    ty_import_free(&import);
}

static void test_restart_and_ramp(void)
{
    struct ty_import import;
    read_log("restart inside the run",
             RECORD(1, 3000, 0) RECORD(2, 1000, 0) RECORD(3, 1010, 0) RECORD(4, 1020, 0)
                 RECORD(3, 2800, 0) RECORD(4, 1000, 0) RECORD(5, 1010, 0) RECORD(6, 1020, 0),
             &import);
    ok(import.n_records == 1, "one run");
    number(&import, "lines.kept", 6, 0);
    number(&import, "lines.dropped.first_window", 2, 0);
    number(&import, "step_time_s.median", 1.01, 1e-12);
    ty_import_free(&import);
    read_log("another job behind",
             RECORD(1, 3000, 0) RECORD(2, 1000, 0) RECORD(3, 1010, 0) RECORD(4, 1020, 0)
                 RECORD(1, 4000, 0) RECORD(2, 2000, 0) RECORD(3, 2010, 0),
             &import);
    ok(import.n_records == 2, "two runs");
    within(import_value(&import, 2, "step_time_s.median").number, 2.005, 1e-12, "of the second");
    ty_import_free(&import);
    read_log(
        "batch ramp",
        " iteration 10/ 90 | elapsed time per iteration (ms): 100.0 | global batch size: 16 |\n"
        " iteration 20/ 90 | elapsed time per iteration (ms): 101.0 | global batch size: 16 |\n"
        " iteration 30/ 90 | elapsed time per iteration (ms): 200.0 | global batch size: 32 |\n"
        " iteration 40/ 90 | elapsed time per iteration (ms): 202.0 | global batch size: 32 |\n"
        " iteration 50/ 90 | elapsed time per iteration (ms): 204.0 | global batch size: 32 |\n",
        &import);
    present(&import, "flags.split");
    number(&import, "plan.gbs", 32, 0);
    number(&import, "step_time_s.median", 0.202, 1e-12);
    number(&import, "blocks.0.gbs", 16, 0);
    ty_import_free(&import);
}

/* Lines that get 8 % slower each step: halves 1.17 and 1.59. */
static void test_drift(void)
{
    struct ty_import import;
    read_log("drift",
             RECORD(50, 1000, 0) RECORD(51, 1080, 0) RECORD(52, 1160, 0) RECORD(53, 1240, 0)
                 RECORD(54, 1900, 0) RECORD(55, 1980, 0) RECORD(56, 1960, 0) RECORD(57, 1940, 0),
             &import);
    present(&import, "flags.not_stationary");
    absent(&import, "step_time_s.median");
    number(&import, "step_time_s.min", 1.0, 1e-12);
    number(&import, "step_time_s.max", 1.98, 1e-12);
    ty_import_free(&import);
}

static void test_neox(void)
{
    struct ty_import import;
    read_log("GPT-NeoX",
             "  global_num_gpus ................. 8...........................default\n"
             "  model_parallel_size ............. 2...........................updated\n"
             "  pipe_parallel_size .............. 2...........................updated\n"
             "  precision ....................... fp16........................default\n"
             "  seq_length ...................... 2048........................updated\n"
             "  train_micro_batch_size_per_gpu .. 4...........................updated\n"
             "  zero_optimization ............... {'stage': 1, 'x': 2}........updated\n"
             " samples/sec: 16.000 | iteration       34/   10000 | elapsed time per iteration "
             "(ms): 2000.0 | lm_loss: 1.1E+01 | number of skipped iterations:   0 |\n",
             &import);
    number(&import, "plan.tp", 2, 0);
    number(&import, "plan.pp", 2, 0);
    number(&import, "plan.gbs", 32, 0); /* 16 samples/s * 2 s */
    number(&import, "layout.dp", 2, 0);
    number(&import, "layout.n_micro", 4, 0); /* 32 / (2 * 4) */
    number(&import, "tokens_per_s_per_gpu.value", 16.0 * 2048 / 8.0, 1e-9);
    word(&import, "plan.sharding", "zero1");
    word(&import, "plan.precision", "fp16");
    word(&import, "framework", "gpt-neox");
    ty_import_free(&import);
}

/* ---- others ------------------------------------------------------------------------------- */

static void test_torchtitan(void)
{
    struct ty_import import;
    read_log("torchtitan",
             "[rank0]:[titan] 2025-05-28 21:00:00,000 - root - INFO - step:  1  loss: 12.0  "
             "memory: 30.00GiB(40.0%)  tps: 100\n"
             "[rank1]:[titan] 2025-05-28 21:00:00,001 - root - INFO - step:  1  loss: 12.0  "
             "memory: 31.00GiB(40.0%)  tps: 101\n"
             "\x1b[36m[rank0]:[titan] 2025-05-28 21:00:20,000 - root - INFO - step: 11  "
             "\x1b[32mloss: 11.0  \x1b[33mmemory: 40.00GiB(50.0%)  \x1b[34mtps: 4,096\x1b[39m\n"
             "[rank0]:[titan] 2025-05-28 21:00:40,000 - root - INFO - step: 21  loss: 10.0  "
             "memory: 40.00GiB(50.0%)  tps: 4,096\n",
             &import);
    /* 20 s over 10 steps; 4096 tokens/s * 2 s */
    number(&import, "step_time_s.median", 2.0, 1e-9);
    number(&import, "tokens_per_step_per_gpu.value", 8192, 0);
    number(&import, "lines.copies", 1, 0);
    number(&import, "lines.kept", 2, 0);
    number(&import, "memory.max_reserved_bytes", 40.0 * 1073741824.0, 0);
    word(&import, "step_time_s.origin", "time_stamps");
    ty_import_free(&import);
}

static void test_nemo(void)
{
    struct ty_import import;
    read_log(
        "NeMo 2",
        "[NeMo I 2025-03-07 22:37:12 x:1] Rank 0 has data parallel group : [0, 2]\n"
        "[NeMo I 2025-03-07 22:37:12 x:1] Rank 0 has tensor model parallel group: [0, 1]\n"
        "[NeMo I 2025-03-07 22:37:12 x:1] Rank 0 has pipeline model parallel group: [0, 4]\n"
        "Training epoch 0, iteration 0/9 | lr: 1e-07 | global_batch_size: 128 | global_step: 0 "
        "| train_step_timing in s: 20.5\n"
        "Training epoch 0, iteration 1/9 | lr: 1e-07 | global_batch_size: 128 | global_step: 1 "
        "| train_step_timing in s: 3.1 | TFLOPS_per_GPU: 401.5\n"
        "Training epoch 1, iteration 0/9 | lr: 1e-07 | global_batch_size: 128 | global_step: 2 "
        "| train_step_timing in s: 3.3 | TFLOPS_per_GPU: 401.5\n",
        &import);
    number(&import, "step_time_s.median", 3.2, 1e-12);
    number(&import, "plan.gpus", 8, 0); /* 2 * 2 * 2 */
    number(&import, "layout.dp", 2, 0);
    number(&import, "flop_per_s_per_gpu.value", 401.5e12, 1.0);
    ty_import_free(&import);
    read_log("NeMo 1",
             "Epoch 0: :   0%|   | 27/300000 [04:22<811:32:28, reduced_train_loss=9.3, "
             "global_step=26.00, consumed_samples=6912.0, train_step_timing in s=9.00]\r"
             "Epoch 0: :   0%|   | 28/300000 [04:31<811:32:28, reduced_train_loss=9.3, "
             "global_step=27.00, consumed_samples=7168.0, train_step_timing in s=9.20]\n",
             &import);
    number(&import, "step_time_s.median", 9.1, 1e-12);
    absent(&import, "flags.average");
    ty_import_free(&import);
    /* three digits of global_step: the bar counts; a bar without a total has its step time too */
    read_log("NeMo 1, long run",
             "   trainer.num_nodes=2 trainer.devices=8 model.num_layers=40 \\\n"
             "   model.micro_batch_size=1 model.tensor_model_parallel_size=4 \\\n"
             "Epoch 0: :   0%|  | 2000/9000 [1:03:17<3:00:58, reduced_train_loss=2.6, "
             "global_step=2e+3, consumed_samples=1.28e+6, train_step_timing in s=1.90]\n"
             "Epoch 0: :   0%|  | 2001/9000 [1:03:19<3:00:58, reduced_train_loss=2.6, "
             "global_step=2e+3, consumed_samples=1.28e+6, train_step_timing in s=2.00]\n"
             "Epoch 0: :   0%|  | 2002/9000 [1:03:21<3:00:58, reduced_train_loss=2.6, "
             "global_step=2e+3, consumed_samples=1.28e+6, train_step_timing in s=2.10]\n",
             &import);
    ok(import.n_records == 1, "one run");
    number(&import, "lines.kept", 3, 0);
    number(&import, "step_time_s.median", 2.0, 1e-12);
    number(&import, "plan.gpus", 16, 0);
    number(&import, "plan.tp", 4, 0);
    number(&import, "model.layers", 40, 0);
    ty_import_free(&import);
}

static void test_trainers(void)
{
    struct ty_import import;
    /* bars of other work are no training; 3/60 is the training's */
    read_log("progress bars",
             "Loading checkpoint shards: 100%|##| 4/4 [00:40<00:00, 10.00s/it]\n"
             "  5%|5  | 3/60 [00:06<01:54, 1.50s/it]\r  7%|5  | 4/60 [00:08<01:54, 0.80it/s]\r"
             " 50%|##| 1/2 [00:01<00:01, 1.00s/it]\n",
             &import);
    number(&import, "lines.printed", 2, 0);
    number(&import, "step_time_s.median", (1.5 + 1.25) / 2.0, 1e-12);
    present(&import, "flags.average");
    ty_import_free(&import);
    read_log("HF Trainer",
             "***** Running training *****\n"
             "  Instantaneous batch size per device = 4\n"
             "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
             "  Gradient Accumulation steps = 2\n"
             "{'loss': 2.1, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
             "{'train_runtime': 100.0, 'train_samples_per_second': 32.0, "
             "'train_steps_per_second': 0.5, 'epoch': 1.0}\n",
             &import);
    /* 0.5 steps/s is 45 to 55 steps of 100 s: not one whole number, so 1 / 0.5 */
    number(&import, "step_time_s.median", 2.0, 1e-12);
    number(&import, "plan.mbs", 4, 0);
    number(&import, "plan.gbs", 64, 0);
    number(&import, "layout.dp", 8, 0); /* 64 / (4 * 2) */
    ty_import_free(&import);
    read_log("DeepSpeed of 2020",
             "[INFO 2020-06-08 05:26:19] 0/2650, SamplesPerSec=13.19\n"
             "[INFO 2020-06-08 05:26:34] 0/2700, SamplesPerSec=13.20\n"
             "[INFO 2020-06-08 05:26:49] 0/2750, SamplesPerSec=13.20\n",
             &import);
    number(&import, "step_time_s.median", 0.3, 1e-12); /* 15 s over 50 */
    ty_import_free(&import);
    read_log("DeepSpeed pipeline engine",
             "steps: 10 loss: 10.8 iter time (s): 1.500 samples/sec: 42.667\n"
             "steps: 20 loss: 10.8 iter time (s): 1.600 samples/sec: 40.000\n"
             "steps: 30 loss: 10.8 iter time (s): 1.600 samples/sec: 40.000\n",
             &import);
    number(&import, "step_time_s.median", 1.6, 1e-12);
    number(&import, "plan.gbs", 64, 0);
    ty_import_free(&import);
}

static void test_lists(void)
{
    struct ty_import import;
    read_log("Composer",
             "num_nodes: 2\nnum_gpus_per_node: 4\n"
             "[batch=10/100]:\n\t Train time/batch: 9\n\t Train time/sample: 288\n"
             "\t Train trainer/device_train_microbatch_size: 2\n"
             "\t Train throughput/samples_per_sec: 16.0\n"
             "\t Train throughput/tokens_per_sec: 32768.0\n"
             "\t Train throughput/device/tokens_per_sec: 4096.0\n",
             &import);
    number(&import, "plan.gpus", 8, 0);
    number(&import, "plan.gbs", 32, 0);              /* 288 / 9 */
    number(&import, "step_time_s.median", 2, 1e-12); /* 32 / 16 */
    number(&import, "plan.seq", 2048, 0);            /* 32768 * 2 / 32 */
    ty_import_free(&import);
    read_log("OLMo-core",
             "[step=20/100,epoch=1]\n    throughput/device/BPS=2.000\n"
             "    throughput/device/BPS (actual avg)=1.000\n"
             "    throughput/device/TPS=16,384\n    throughput/device/TPS (actual avg)=9,999\n"
             "[step=30/100,epoch=1]\n    throughput/device/BPS=2.500\n"
             "    throughput/device/TPS=20,480\n",
             &import);
    number(&import, "step_time_s.median", 0.45, 1e-12); /* of 0.5 and 0.4 */
    number(&import, "lines.kept", 2, 0);
    number(&import, "lines.last_iteration", 30, 0);
    ty_import_free(&import);
    /* GPUs = 16588800000 / 86400 / 3000 = 64 */
    read_log("fms-fsdp",
             "step: 100\nloss: 3.1\nLR: 0.0001\ntokens seen: 1000\ngradient norm: 1.0\n"
             "reserved memory: 64424509440\nallocated memory: 1000\n"
             "current step time: 2.0\noverall step time: 3.0\n"
             "current token per gpu per sec: 4096.0\noverall token per gpu per sec: 3000.0\n"
             "overall token per day: 16588800000\n",
             &import);
    number(&import, "step_time_s.median", 2.0, 1e-12);
    number(&import, "tokens_per_s_per_gpu.value", 4096, 1e-9);
    number(&import, "plan.gpus", 64, 0);
    number(&import, "memory.max_reserved_bytes", 64424509440.0, 0);
    ty_import_free(&import);
}

static void test_small_tools(void)
{
    struct ty_import import;
    read_log("nanoGPT",
             "iter 0: loss 10.9, time 9000.00ms, mfu -100.00%\n"
             "iter 1: loss 10.0, time 250.00ms, mfu 30.10%\n"
             "step 2: train loss 9.0, val loss 9.1\n"
             "iter 2: loss 9.90, time 254.00ms, mfu 30.10%\n",
             &import);
    number(&import, "step_time_s.median", 0.252, 1e-12);
    ty_import_free(&import);
    read_log("llm.c",
             "step    2/19560 | loss 9.2 (+nanz)| norm 2.1 (+nanz)| lr 1.7e-06 | 500.00 ms | 45.2% "
             "bf16 MFU | 1048576 tok/s\n",
             &import);
    number(&import, "step_time_s.median", 0.5, 1e-12);
    number(&import, "tokens_per_s.value", 1048576, 0);
    ty_import_free(&import);
    read_log("torchtune",
             "Step 5 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:1500.5 "
             "peak_memory_reserved:20.5\n"
             "Step 6 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:1500.5 "
             "peak_memory_reserved:20.5\n",
             &import);
    number(&import, "tokens_per_s_per_gpu.value", 1500.5, 0);
    absent(&import, "step_time_s");
    ty_import_free(&import);
    read_log("MaxText",
             "completed step: 0, seconds: 40.0, TFLOP/s/device: 10.0, Tokens/s/device: 10.0, "
             "total_weights: 65536, loss: 12\n"
             "completed step: 1, seconds: 0.2, TFLOP/s/device: 9000.0, Tokens/s/device: 9000.0, "
             "total_weights: 65536, loss: 12\n"
             "completed step: 2, seconds: 4.1, TFLOP/s/device: 100.0, Tokens/s/device: 4096.0, "
             "total_weights: 65536, loss: 12\n"
             "completed step: 3, seconds: 4.0, TFLOP/s/device: 100.0, Tokens/s/device: 4096.0, "
             "total_weights: 65536, loss: 12\n",
             &import);
    number(&import, "step_time_s.median", 4.0, 1e-12);
    number(&import, "plan.gpus", 4, 0); /* 65536 / (4 * 4096) */
    ty_import_free(&import);
    read_log("MLPerf without statistics",
             ":::MLLOG {\"key\": \"global_batch_size\", \"value\": 8, \"time_ms\": 1}\n"
             ":::MLLOG {\"key\": \"block_start\", \"value\": null, \"time_ms\": 1000, "
             "\"metadata\": {\"samples_count\": 0}}\n"
             ":::MLLOG {\"key\": \"block_stop\", \"value\": null, \"time_ms\": 31000, "
             "\"metadata\": {\"samples_count\": 160}}\n",
             &import);
    number(&import, "step_time_s.median", 1.5, 1e-9); /* 30 s over 160 / 8 steps */
    word(&import, "step_time_s.origin", "time_stamps");
    ty_import_free(&import);
}

/* ---- any bytes ---------------------------------------------------------------------------- */

static const char plain[] = RECORD(5, 1000.5, 0) RECORD(6, 1002.5, 0) RECORD(7, 1004.5, 0);

static void same_answer(const char *what, const char *text, size_t bytes)
{
    struct ty_import import = {0};
    struct ty_error error = {0};
    ok(import_bytes(text, bytes, &import, &error) == TY_OK, "%s is read", what);
    within(import_value(&import, 1, "step_time_s.median").number, 1.0025, 1e-12, what);
    ty_import_free(&import);
}

static void test_encodings(void)
{
    char text[8192];
    size_t n = 0;
    for (const char *c = plain; *c; c++) {
        if (*c == '\n')
            text[n++] = '\r';
        text[n++] = *c;
    }
    same_answer("CRLF", text, n);
    for (int big = 0; big < 2; big++) {
        n = 0;
        text[n++] = (char)(big ? 0xfe : 0xff);
        text[n++] = (char)(big ? 0xff : 0xfe);
        for (const char *c = plain; *c; c++) {
            text[n++] = big ? '\0' : *c;
            text[n++] = big ? *c : '\0';
        }
        same_answer(big ? "UTF-16, big end first" : "UTF-16, little end first", text, n);
        same_answer("the same without a mark", text + 2, n - 2);
    }
    snprintf(text, sizeof text, "\xef\xbb\xbf%s", plain);
    same_answer("UTF-8 with a mark", text, strlen(text));
    snprintf(text, sizeof text, "```text\n%s```", plain);
    same_answer("markdown fences", text, strlen(text));
    /* cut between fields, so that the third record has its time but no end */
    same_answer("a cut last record", plain, strlen(plain) - 60);
}

static void test_refusals(void)
{
    struct ty_import import = {0};
    struct ty_error error = {0};
    ok(import_bytes("", 0, &import, &error) == TY_ERR_INPUT, "an empty file is refused");
    ok(import_bytes(" \n\r\n", 4, &import, &error) == TY_ERR_INPUT, "blanks are refused");
    ok(import_bytes("hello\n", 6, &import, &error) == TY_ERR_INPUT && strstr(error.text, "format"),
       "a text without measurement is refused");
    ok(import_bytes("iteration 1/", 12, &import, &error) == TY_ERR_INPUT, "a cut line is refused");
    unlink(path);
    ok(ty_import_file(path, &import, &error) == TY_ERR_IO, "no file: an I/O error");
    if (read_log("a plan alone", megatron_dump, &import)) {
        ok(import.n_records == 1 && import.n_usable == 0, "a plan without a step is not usable");
        present(&import, "refused");
        number(&import, "plan.gpus", 32, 0);
        ty_import_free(&import);
    }
}

/* Each prefix of a log gives a result or a refusal that says why. */
static void test_prefixes(void)
{
    char text[4096];
    bool clear = true;
    snprintf(text, sizeof text, "%s%s", megatron_dump + 1000, plain);
    for (size_t n = 0; n < strlen(text); n += 7) {
        struct ty_import import = {0};
        struct ty_error error = {0};
        const ty_status status = import_bytes(text, n, &import, &error);
        clear &= status == TY_OK ? import.n_records > 0 : status == TY_ERR_INPUT && *error.text;
        ty_import_free(&import);
    }
    ok(clear, "every prefix gives records or a reason");
}

int main(void)
{
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 1;
    close(descriptor);
    test_megatron();
    test_restart_and_ramp();
    test_drift();
    test_neox();
    test_torchtitan();
    test_nemo();
    test_trainers();
    test_lists();
    test_small_tools();
    test_encodings();
    test_refusals();
    test_prefixes();
    unlink(path);
    return tap_done();
}
