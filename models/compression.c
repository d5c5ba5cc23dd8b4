/* SPDX-License-Identifier: MIT
 *
 * Compression of communication: the equations of the header.
 */
#include "models/compression.h"

double compression_gain_s(const struct compression *compression)
{
    const double plain_s =
        compression->exposed_ratio * compression->bytes / compression->bytes_per_s;
    return plain_s - (compression->encode_s + compression->decode_s + compression->latency_s +
                      plain_s / compression->ratio);
}

double compression_cast_s(double elements, double from_bytes, double to_bytes,
                          double memory_bytes_per_s)
{
    return elements * 2.0 * (from_bytes + to_bytes) / memory_bytes_per_s;
}

void compression_powersgd(const struct compression_matrix *matrices, uint32_t n, double rank,
                          struct compression_powersgd *out)
{
    *out = (struct compression_powersgd){0};
    for (uint32_t i = 0; i < n; i++) {
        out->dense_elements += matrices[i].rows * matrices[i].columns;
        out->sent_elements += rank * (matrices[i].rows + matrices[i].columns);
    }
    out->flop = 3.0 * 2.0 * out->dense_elements * rank;
    out->error_bytes = 4.0 * out->dense_elements;
}

double compression_topk_bytes(double kept_elements, double ranks)
{
    return (ranks - 1.0) * kept_elements * (4.0 + 4.0);
}

double compression_dense_bytes(double elements, double element_bytes, double ranks)
{
    return 2.0 * (ranks - 1.0) / ranks * elements * element_bytes;
}

double compression_zeropp_volume(const struct compression_zeropp *zeropp)
{
    const double gather = zeropp->weights_int8 ? 0.5 : 1.0;
    const double gather_again = zeropp->weights_on_node ? 0.0 : gather;
    return gather + gather_again + (zeropp->gradients_int4 ? 0.25 : 1.0);
}

double compression_zeropp_copy_bytes(double params, double gpus_per_node)
{
    return 2.0 * params / gpus_per_node;
}
