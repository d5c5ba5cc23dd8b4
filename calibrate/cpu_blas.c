/* SPDX-License-Identifier: MIT
 * The one file that knows CBLAS. It is opened at run time (cpu_kernels.h says why). */
#define _POSIX_C_SOURCE 200809L
#include "calibrate/cpu_kernels.h"
#include "sim/error.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The C interface to BLAS: constants of the standard, and the one function. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

/* Fast ones first; the last is there whenever trainyard is. */
static const char *const usual[] = {"libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4",
                                    "libcblas.so.3",    "libblas.so.3",   "libgslcblas.so.0"};

static bool open_one(const char *name, struct cpu_blas *out)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, "cblas_sgemm") : NULL;
    if (!function) {
        if (library)
            dlclose(library);
        return false;
    }
    const char *slash = strrchr(name, '/');
    *out = (struct cpu_blas){.library = library};
    memcpy(&out->sgemm, &function, sizeof function); /* ISO C has no cast between the two */
    text_format(out->name, sizeof out->name, "%s", slash ? slash + 1 : name);
    return true;
}

ty_status cpu_blas_open(const char *name, struct cpu_blas *out, struct ty_error *error)
{
    static const char *const threads[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                          "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        setenv(threads[i], "1", 1);
    if (name && open_one(name, out))
        return TY_OK;
    for (size_t i = 0; !name && i < sizeof usual / sizeof *usual; i++)
        if (open_one(usual[i], out))
            return TY_OK;
    return error_set(error, TY_ERR_INPUT, "blas", "%s is no library with cblas_sgemm",
                     name ? name : "none of the usual names");
}

void cpu_blas_close(struct cpu_blas *blas)
{
    if (blas->library)
        dlclose(blas->library);
    *blas = (struct cpu_blas){0};
}

void cpu_gemm(const struct cpu_blas *blas, const struct cpu_gemm *gemm, const float *a,
              const float *b, float *c)
{
    sgemm_fn *sgemm = (sgemm_fn *)blas->sgemm;
    sgemm(ROW_MAJOR, gemm->trans_a ? TRANS : NO_TRANS, gemm->trans_b ? TRANS : NO_TRANS,
          (int)gemm->m, (int)gemm->n, (int)gemm->k, gemm->scale, a, (int)gemm->lda, b,
          (int)gemm->ldb, gemm->add ? 1.0f : 0.0f, c, (int)gemm->ldc);
}

void cpu_linear(const struct cpu_blas *blas, int direction, const size_t mnk[3], const float *a,
                const float *b, float *c)
{
    const size_t m = mnk[0], n = mnk[1], k = mnk[2];
    struct cpu_gemm gemm = {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .scale = 1.0f};
    if (direction == TY_FORWARD) {
        gemm.trans_b = true;
        gemm.ldb = k;
    }
    if (direction != TY_WGRAD) {
        cpu_gemm(blas, &gemm, a, b, c);
        return;
    }
    gemm = (struct cpu_gemm){.trans_a = true,
                             .add = true,
                             .m = n,
                             .n = m,
                             .k = k,
                             .lda = n,
                             .ldb = m,
                             .ldc = m,
                             .scale = 1.0f};
    cpu_gemm(blas, &gemm, b, a, c);
}
