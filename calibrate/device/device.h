/* SPDX-License-Identifier: MIT
 *
 * trainyard-measure: microbenchmarks of CUDA devices as records (docs/import.md), a program of its own
 * that is linked with CUDA, cuBLAS and NCCL and with nothing else of trainyard.
 *
 *   main.cu       options, ranks, the list of points, the budget
 *   record.cu     records as JSON lines, what a file holds already, statistics, clocks and power (NVML)
 *   gemm.cu       cuBLASLt and grouped GEMM
 *   attention.cu  an own fused attention, forward and backward
 *   memory.cu     memory-bound kernels, launches, copies
 *   comm.cu       NCCL: collectives on groups, GEMM beside a collective
 *   check.cu      the own kernels against slow references (--check)
 *
 * Every call's return code is looked at: `if (!CUDA(call)) return false;` says on standard error what
 * failed, and the point is left out. */
#ifndef CALIBRATE_DEVICE_H
#define CALIBRATE_DEVICE_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_LOCAL 16

enum { EXIT_NO_DEVICE = 4 };

bool cuda_ok(cudaError_t code, const char *what, const char *file, int line);
bool blas_ok(cublasStatus_t code, const char *what, const char *file, int line);
bool nccl_ok(ncclResult_t code, const char *what, const char *file, int line);
#define CUDA(call) cuda_ok(call, #call, __FILE__, __LINE__)
#define BLAS(call) blas_ok(call, #call, __FILE__, __LINE__)
#define NCCL(call) nccl_ok(call, #call, __FILE__, __LINE__)

/* ---- what is run ----------------------------------------------------------------------------- */

/* sizes: gemm m n k; grouped_gemm groups m n k; attention batch heads seq head_dim; memory elements
 * row; copy bytes from to; collective bytes ranks stride; overlap bytes channels; launch - */
struct point {
    const char *kind;
    char name[24], dtype[8];
    double size[4];
};

struct options {
    double budget_s;
    const char *out, *shapes, *id_file;
    bool resume, quiet, check, brief;
    int rank, world, local_rank; /* of processes */
};

struct device {
    int index, rank; /* rank: of all devices of all processes */
    cudaStream_t stream, beside;
    ncclComm_t comm;
    char *arena; /* [arena_bytes], filled with small random numbers of any type */
};

struct session {
    struct options options;
    struct device device[MAX_LOCAL];
    int n_local, n_ranks, n_nodes, per_node;
    size_t arena_bytes, at;
    cublasLtHandle_t lt;
    cublasHandle_t blas;
    void *workspace;
    void *pinned; /* [pinned_bytes] of the host */
    size_t pinned_bytes;
    double deadline_s;
};

double now_s(void);
/* The next bytes of the arena of the first device, from its beginning once it ends: operands come from
 * memory and not from the L2 cache, as in a step. NULL: more than it holds. */
void *take(struct session *session, size_t bytes);

/* ---- timing ---------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 101, FEWEST_SAMPLES = 5 };
struct timing {
    double s[MOST_SAMPLES];
    int n;
};

/* A piece of work that is issued on the streams of a session. */
struct work {
    bool (*issue)(struct session *session, const void *arg);
    const void *arg;
};
/* Times `work` on the first device by events: warm-up of 20 ms or more, then samples of 0.2 ms or more
 * for slice_s. returns false when it cannot be run. */
bool time_work(struct session *session, const struct work *work, double slice_s, struct timing *out);
double quantile(struct timing *timing, double share);

/* ---- records (record.cu) --------------------------------------------------------------------- */

bool records_open(const struct options *options);
bool records_known(const struct point *point);
/* values: further members of "values" with their comma in front, or "". */
bool records_add(const struct session *session, const struct point *point, struct timing *timing,
                 const char *more_parameters, const char *values);
int records_written(void);
bool records_close(void);

/* ---- points: each issues one run; false: this device cannot ---------------------------------- */

bool gemm_measure(struct session *session, const struct point *point, double slice_s);
bool attention_measure(struct session *session, const struct point *point, double slice_s);
bool memory_measure(struct session *session, const struct point *point, double slice_s);
bool launch_measure(struct session *session, const struct point *point);
bool copy_measure(struct session *session, const struct point *point, double slice_s);

/* comm.cu. All processes call these in the same order. */
bool comm_open(struct session *session);
void comm_measure_all(struct session *session, double budget_s);
void comm_close(struct session *session);

/* attention.cu, for the check: [blocks, seq, dim] each; lse, delta: [blocks, seq]. seq: a multiple of 64;
 * dim: 64 or 128. */
template <typename T>
bool attention_forward(cudaStream_t stream, int blocks, int seq, int dim, const T *q, const T *k, const T *v,
                       T *out, float *lse);
template <typename T>
bool attention_backward(cudaStream_t stream, int blocks, int seq, int dim, const T *q, const T *k, const T *v,
                        const T *out, const T *d_out, const float *lse, float *delta, T *dq, T *dk, T *dv);

/* memory.cu, for the check */
bool launch_norm(cudaStream_t stream, size_t rows, size_t n, const __nv_bfloat16 *x, __nv_bfloat16 *y);
bool launch_activation(cudaStream_t stream, size_t n, const __nv_bfloat16 *a, const __nv_bfloat16 *b,
                       __nv_bfloat16 *y);
bool launch_loss(cudaStream_t stream, size_t rows, size_t vocab, __nv_bfloat16 *logits, float *loss);
bool launch_permute(cudaStream_t stream, size_t tokens, size_t heads, size_t dim, const __nv_bfloat16 *x,
                    __nv_bfloat16 *y);
bool launch_cast(cudaStream_t stream, size_t n, const __nv_bfloat16 *x, unsigned char *y);
bool launch_adam(cudaStream_t stream, size_t n, const __nv_bfloat16 *g, float *p, float *m, float *v,
                 __nv_bfloat16 *w);
bool launch_fill(cudaStream_t stream, size_t bytes, char *out);

/* check.cu: returns the number of kernels that were wrong. */
int check_kernels(struct session *session);

#endif
