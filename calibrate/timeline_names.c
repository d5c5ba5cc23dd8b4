/* SPDX-License-Identifier: MIT
 *
 * Kernels by name: the first row of the table one of whose words stands in the name. Source of the
 * words: kernel names as cuBLAS, cuDNN, CUTLASS, hipBLASLt, NCCL, RCCL, FlashAttention, PyTorch,
 * Apex, Transformer Engine, Triton, DeepEP and NVSHMEM give them in their sources.
 */
#include "include/trainyard_gap.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

const char *ty_activity_name(enum ty_activity activity)
{
    static const char *const names[] = {
#define X(id, name) name,
        TY_ACTIVITY_LIST(X)
#undef X
    };
    return (uint32_t)activity < TY_N_ACTIVITIES ? names[activity] : "none";
}

/* Lower case. Where two rows fit, the first counts: an attention kernel made of GEMMs is attention.
 */
static const struct row {
    enum ty_activity activity;
    const char *all; /* must stand there too; NULL: nothing */
    const char *words;
} rows[] = {
    {TY_ACTIVITY_ALL_REDUCE, "nccl", "allreduce all_reduce"},
    {TY_ACTIVITY_ALL_GATHER, "nccl", "allgather all_gather"},
    {TY_ACTIVITY_REDUCE_SCATTER, "nccl", "reducescatter reduce_scatter"},
    {TY_ACTIVITY_ALL_TO_ALL, "nccl", "alltoall all_to_all"},
    {TY_ACTIVITY_SEND_RECV, "nccl", "sendrecv send_recv"},
    {TY_ACTIVITY_OTHER_COMM, NULL, "nccl rccl"},
    {TY_ACTIVITY_ALL_TO_ALL, NULL,
     "deep_ep intranode::dispatch intranode::combine "
     "internode::dispatch internode::combine internode_ll::"},
    {TY_ACTIVITY_ALL_REDUCE, NULL,
     "multimem_all_reduce one_shot_all_reduce two_shot_all_reduce "
     "cross_device_reduce"},
    {TY_ACTIVITY_OTHER_COMM, NULL, "userbuffers nvshmem symm_mem"},
    {TY_ACTIVITY_MEMCPY, NULL, "memcpy memset"},
    {TY_ACTIVITY_ATTENTION, NULL, "flash fmha attention attn mha_ sdpa fused_mha"},
    {TY_ACTIVITY_OPTIMIZER, NULL, "multi_tensor multitensor adam lamb fused_optim sgd_"},
    {TY_ACTIVITY_MEMORY_BOUND, "triton_", "triton_poi triton_per triton_red triton_for"},
    {TY_ACTIVITY_GEMM, NULL,
     "gemm nvjet xmma wgmma matmul cijk_ s16816 s1688 s884 cublas gemv "
     "splitkreduce triton_tem triton_mm grouped_mm convolve cutlass::kernel"},
    {TY_ACTIVITY_MEMORY_BOUND, NULL,
     "elementwise reduce layernorm layer_norm rmsnorm rms_norm norm_ softmax dropout at::native "
     "catarray transpose copy fill cast gelu silu swiglu relu rope rotary embedding cross_entropy "
     "crossentropy sort topk top_k permute scan cumsum index gather scatter quantize "
     "transformer_engine triton_ cub:: thrust:: add_ mul_ pointwise moe_ router histogram "
     "unpermute"},
};

/* One of the words, parted by blanks, stands in the name. */
static bool has_word(const char *name, const char *words)
{
    while (*words) {
        char word[40];
        const size_t n = strcspn(words, " ");
        if (n > 0 && n < sizeof word) {
            memcpy(word, words, n);
            word[n] = '\0';
            if (strstr(name, word))
                return true;
        }
        words += n + (words[n] == ' ');
    }
    return false;
}

enum ty_activity ty_activity_of(const char *kernel_name)
{
    char name[512];
    size_t n = 0;
    for (; kernel_name[n] && n + 1 < sizeof name; n++)
        name[n] = (char)tolower((unsigned char)kernel_name[n]);
    name[n] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((!rows[i].all || strstr(name, rows[i].all)) && has_word(name, rows[i].words))
            return rows[i].activity;
    return TY_ACTIVITY_UNKNOWN;
}
