/* SPDX-License-Identifier: MIT
 *
 * The kinds of records: what each must hold for a fit to use it. `calibrate measure` writes them,
 * the readers of other tools' output write those of them that the tool can give, `calibrate fit`
 * reads them. docs/import.md lists every key with its meaning.
 *
 * Any record may carry the stamp of what it was measured on: hardware `device` ("cuda", "cpu"),
 * `gpu` or `cpu`, `gpus`, `clock_hz`, `power_w`, `host`; software `driver`, `cuda`, `nccl`,
 * `cublas`, `blas`, `kernel`, `compiler`, `benchmark`, `date`. Its time is the median;
 * `time_p10_s`, `time_p90_s` and `samples` say how far to trust it.
 */
#ifndef CALIBRATE_RECORD_KINDS_H
#define CALIBRATE_RECORD_KINDS_H

#include "calibrate/record.h"

#define RECORD_NEEDS_MAX 6

/* X(identifier, kind in the file, keys it must have, keys of which it must have one).
 * Numbers must be above 0, texts must not be empty. */
#define RECORD_KINDS(X)                                                                            \
    X(GEMM, "gemm", NEEDS("m", "n", "k", "dtype"), NEEDS("time_s", "rate_flops_per_s"))            \
    X(GROUPED_GEMM, "grouped_gemm", NEEDS("groups", "m", "n", "k", "dtype"), NEEDS("time_s"))      \
    X(ATTENTION, "attention", NEEDS("batch", "heads", "seq_len", "head_dim", "passes", "dtype"),   \
      NEEDS("time_s", "rate_flops_per_s"))                                                         \
    X(MEMORY, "memory", NEEDS("function"), NEEDS("time_s", "bandwidth_bytes_per_s"))               \
    X(LAUNCH, "launch", NEEDS("mode"), NEEDS("time_s"))                                            \
    X(COPY, "copy", NEEDS("test"), NEEDS("time_s", "bandwidth_bytes_per_s", "latency_s"))          \
    X(COLLECTIVE, "collective", NEEDS("op", "size_bytes", "ranks"), NEEDS("time_s"))               \
    X(OVERLAP, "overlap",                                                                          \
      NEEDS("op", "ranks", "gemm_alone_s", "gemm_beside_s", "collective_alone_s",                  \
            "collective_beside_s"),                                                                \
      NEEDS(NULL))                                                                                 \
    X(STORAGE, "storage", NEEDS("op"),                                                             \
      NEEDS("bandwidth_bytes_per_s", "operations_per_s", "latency_mean_s"))                        \
    X(DECODE, "decode", NEEDS("format", "cores"), NEEDS("samples_per_s", "bandwidth_bytes_per_s")) \
    X(LOADER, "loader", NEEDS("step"), NEEDS("samples_per_s"))

enum record_kind {
#define X(id, name, all, any) RECORD_KIND_##id,
    RECORD_KINDS(X)
#undef X
        RECORD_N_KINDS
};

/* "gemm", ...; a record of a kind that is not here has RECORD_N_KINDS. */
const char *record_kind_name(enum record_kind kind);
enum record_kind record_kind_of(const struct record *record);

/* The first key that the record needs and lacks, or holds as a number that is not above 0; NULL
 * when it is complete or of no kind above. Of keys that may stand for each other the first. */
const char *record_lacks(const struct record *record);

#endif
