/* SPDX-License-Identifier: MIT
 *
 * GEMM by cuBLASLt with its first choice of algorithm, as frameworks take it, and 32-bit accumulation.
 * Row-major C[m,n] as a record has it is the column-major C'[n,m]:
 *
 *   forward  X[m,k] W[n,k]'        T N
 *   dgrad    dY[m,k] W[k,n]        N N
 *   wgrad    dW[n,m] += dY[k,n]' X[k,m], in fp32    N T
 *
 * fp8 is T N for all three, as the tensor cores want it: frameworks keep transposed copies. */
#include "calibrate/device/device.h"

#include <stdio.h>
#include <string.h>
#include <vector>

static const size_t WORKSPACE_BYTES = (size_t)64 << 20;

struct types {
    const char *name;
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    size_t in_bytes;
};
static const struct types all_types[] = {
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2},
    {"fp16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2},
    {"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4},
    {"fp32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4}};

static const struct types *types_of(const char *name)
{
    for (const auto &types : all_types)
        if (strcmp(types.name, name) == 0)
            return &types;
    return NULL;
}

struct product {
    const struct types *types;
    size_t m, n, k; /* of the record */
    size_t a_bytes, b_bytes, c_bytes;
    bool adds;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulAlgo_t algorithm;
};

static void release(struct product *p)
{
    if (p->description)
        cublasLtMatmulDescDestroy(p->description);
    if (p->first)
        cublasLtMatrixLayoutDestroy(p->first);
    if (p->second)
        cublasLtMatrixLayoutDestroy(p->second);
    if (p->result)
        cublasLtMatrixLayoutDestroy(p->result);
}

static bool lay_out(struct product *p, bool trans_first, bool trans_second, cudaDataType_t out)
{
    const cublasOperation_t first = trans_first ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = trans_second ? CUBLAS_OP_T : CUBLAS_OP_N;
    /* column-major: rows of the result are the fast side of C */
    const size_t rows = p->adds ? p->m : p->n, columns = p->adds ? p->n : p->m;
    return BLAS(cublasLtMatmulDescCreate(&p->description, p->types->compute, CUDA_R_32F)) &&
           BLAS(cublasLtMatmulDescSetAttribute(p->description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first)) &&
           BLAS(cublasLtMatmulDescSetAttribute(p->description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second)) &&
           BLAS(cublasLtMatrixLayoutCreate(&p->first, p->types->in, trans_first ? p->k : rows,
                                           trans_first ? rows : p->k, trans_first ? p->k : rows)) &&
           BLAS(cublasLtMatrixLayoutCreate(&p->second, p->types->in, trans_second ? columns : p->k,
                                           trans_second ? p->k : columns, trans_second ? columns : p->k)) &&
           BLAS(cublasLtMatrixLayoutCreate(&p->result, out, rows, columns, rows));
}

static bool choose(struct session *session, struct product *p)
{
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    if (!BLAS(cublasLtMatmulPreferenceCreate(&preference)))
        return false;
    const bool ok =
        BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &WORKSPACE_BYTES, sizeof WORKSPACE_BYTES)) &&
        cublasLtMatmulAlgoGetHeuristic(session->lt, p->description, p->first, p->second, p->result, p->result,
                                       preference, 1, &found, &n) == CUBLAS_STATUS_SUCCESS &&
        n == 1;
    cublasLtMatmulPreferenceDestroy(preference);
    p->algorithm = found.algo;
    return ok;
}

static bool prepare(struct session *session, const struct point *point, struct product *p)
{
    const bool wgrad = strcmp(point->name, "wgrad") == 0, fp8 = strcmp(point->dtype, "fp8") == 0;
    *p = {};
    p->types = types_of(point->dtype);
    p->m = (size_t)point->size[0];
    p->n = (size_t)point->size[1];
    p->k = (size_t)point->size[2];
    p->adds = wgrad;
    if (!p->types)
        return false;
    if (!session->workspace && !CUDA(cudaMalloc(&session->workspace, WORKSPACE_BYTES)))
        return false;
    p->a_bytes = p->m * p->k * p->types->in_bytes;
    p->b_bytes = p->k * p->n * p->types->in_bytes;
    p->c_bytes = p->m * p->n * 4;
    const bool forward = strcmp(point->name, "forward") == 0;
    return lay_out(p, forward || fp8, wgrad && !fp8, wgrad ? CUDA_R_32F : p->types->out) && choose(session, p);
}

static bool issue(struct session *session, const void *arg)
{
    const struct product *p = (const struct product *)arg;
    const float one = 1.0f, beta = p->adds ? 1.0f : 0.0f;
    const void *a = take(session, p->a_bytes), *b = take(session, p->b_bytes);
    void *c = take(session, p->c_bytes);
    if (!a || !b || !c)
        return false;
    /* forward and dgrad: weights first; wgrad: inputs first */
    return BLAS(cublasLtMatmul(session->lt, p->description, &one, p->adds ? a : b, p->first, p->adds ? b : a,
                               p->second, &beta, c, p->result, c, p->result, &p->algorithm, session->workspace,
                               WORKSPACE_BYTES, session->device[0].stream));
}

/* ---- grouped --------------------------------------------------------------------------------- */

struct grouped {
    int groups, m, n, k;
    cudaDataType_t type;
    std::vector<cublasOperation_t> trans, plain;
    std::vector<int> ms, ns, ks, lda, ldb, ldc, size;
    std::vector<float> alpha, beta;
    void **a, **b, **c; /* on the device */
};

/* One launch over all experts: cublasGemmGroupedBatchedEx. */
static bool issue_grouped(struct session *session, const void *arg)
{
    const struct grouped *g = (const struct grouped *)arg;
    return BLAS(cublasGemmGroupedBatchedEx(
        session->blas, g->trans.data(), g->plain.data(), g->ns.data(), g->ms.data(), g->ks.data(), g->alpha.data(),
        (const void *const *)g->b, g->type, g->ldb.data(), (const void *const *)g->a, g->type, g->lda.data(),
        g->beta.data(), g->c, g->type, g->ldc.data(), g->groups, g->size.data(), CUBLAS_COMPUTE_32F));
}

static bool point_at(struct session *session, struct grouped *g, size_t bytes)
{
    std::vector<void *> pointer(3 * g->groups);
    for (int i = 0; i < g->groups; i++) {
        pointer[i] = take(session, (size_t)g->m * g->k * bytes);
        pointer[g->groups + i] = take(session, (size_t)g->n * g->k * bytes);
        pointer[2 * g->groups + i] = take(session, (size_t)g->m * g->n * bytes);
    }
    for (const void *p : pointer)
        if (!p)
            return false;
    const size_t all = pointer.size() * sizeof(void *);
    if (!CUDA(cudaMalloc(&g->a, all)))
        return false;
    g->b = g->a + g->groups;
    g->c = g->b + g->groups;
    return CUDA(cudaMemcpy(g->a, pointer.data(), all, cudaMemcpyHostToDevice));
}

static bool measure_grouped(struct session *session, const struct point *point, double slice_s)
{
    struct grouped g = {};
    struct timing timing;
    char more[64];
    const struct types *types = types_of(point->dtype);
    if (!types || types->in_bytes != 2 || strcmp(point->name, "forward") != 0)
        return false;
    g.groups = (int)point->size[0];
    g.m = (int)point->size[1];
    g.n = (int)point->size[2];
    g.k = (int)point->size[3];
    g.type = types->in;
    g.trans.assign(g.groups, CUBLAS_OP_T);
    g.plain.assign(g.groups, CUBLAS_OP_N);
    g.ms.assign(g.groups, g.m);
    g.ns.assign(g.groups, g.n);
    g.ks.assign(g.groups, g.k);
    g.lda = g.ldb = g.ks;
    g.ldc = g.ns;
    g.size.assign(g.groups, 1);
    g.alpha.assign(g.groups, 1.0f);
    g.beta.assign(g.groups, 0.0f);
    const struct work work = {issue_grouped, &g};
    snprintf(more, sizeof more, ", \"inner\": %d", g.n < g.k ? g.n : g.k);
    bool ok = BLAS(cublasSetStream(session->blas, session->device[0].stream)) &&
              point_at(session, &g, types->in_bytes) && time_work(session, &work, slice_s, &timing) &&
              records_add(session, point, &timing, more, "");
    cudaFree(g.a);
    return ok;
}

bool gemm_measure(struct session *session, const struct point *point, double slice_s)
{
    struct product product;
    struct timing timing;
    if (strcmp(point->kind, "grouped_gemm") == 0)
        return measure_grouped(session, point, slice_s);
    const struct work work = {issue, &product};
    const bool ok = prepare(session, point, &product) && time_work(session, &work, slice_s, &timing) &&
                    records_add(session, point, &timing, "", "");
    release(&product);
    return ok;
}
