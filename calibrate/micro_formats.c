/* SPDX-License-Identifier: MIT
 * Which benchmark printed a text, and its records in the hands of `calibrate import`. */
#include "calibrate/micro.h"
#include "sim/error.h"

#include <string.h>

/* All of these must be in the first part of the file; NULL ends them. */
static const struct micro_format {
    const char *name;
    micro_reader *read;
    const char *mark[4];
} formats[] = {
    {"nccl-tests-json", micro_read_nccl_json, {"\"results\"", "\"bus_bw\"", "\"alg_bw\""}},
    {"nvbandwidth-json", micro_read_nvbandwidth_json, {"\"nvbandwidth\"", "\"testcases\""}},
    {"fio", micro_read_fio, {"\"fio version\"", "{"}},
    {"dlio", micro_read_dlio, {"\"train_au_percentage\"", "\"metric\""}},
    {"mlperf-storage", micro_read_dlio, {"samples_per_second\"", "\"overall\""}},
    {"table", micro_read_table, {"size_bytes,time_us,algbw_gbps,busbw_gbps"}},
    {"table", micro_read_table, {"size_bytes,", ",value,unit"}},
    {"table", micro_read_table, {"gpu,m,n,k,", ",tflops"}},
    {"table", micro_read_table, {"gpu,impl,head_dim,causal", ",tflops"}},
    {"table", micro_read_table, {"gpus,", "op,", "busbw_gbps", ",source"}},
    {"table", micro_read_table, {"system,mode,ep,dispatch_us"}},
    {"table", micro_read_table, {"samples_per_s,MB_per_s", "num_accelerators"}},
    {"babelstream", micro_read_babelstream, {"function,num_times,n_elements,sizeof"}},
    {"nvbandwidth", micro_read_nvbandwidth, {"nvbandwidth Version", "Running "}},
    {"perftest", micro_read_perftest, {"#bytes", "#iterations"}},
    {"ior", micro_read_ior, {"access ", "bw(MiB/s)", "iter"}},
    {"all_reduce_bench", micro_read_torch_bench, {"payload", "busbw", "algbw", "| ---"}},
    {"nccl-tests", micro_read_nccl, {"algbw", "busbw", "type", "time"}},
    {"nccl-tests", micro_read_nccl, {"nThread ", "minBytes "}}, /* much debug output may follow */
    {"hipblaslt-bench", micro_read_hipblaslt, {"transA,transB,", "hipblaslt-Gflops"}},
    {"mm_flops", micro_read_gemm, {"Throughput (in TFLOP/s) for "}},
    {"mamf-finder", micro_read_gemm, {" TFLOPS @ ", "(MxNxK)"}},
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

/* The first format whose marks are all there. */
static const struct micro_format *find(const struct import_file *file)
{
    char *end = file->text + (file->bytes < IMPORT_SNIFF_BYTES ? file->bytes : IMPORT_SNIFF_BYTES);
    const char kept = *end;
    const struct micro_format *found = NULL;
    *end = '\0'; /* formats are told apart by the first part alone */
    for (size_t i = 0; i < N_FORMATS && !found; i++) {
        bool all = true;
        for (size_t k = 0; k < 4 && formats[i].mark[k]; k++)
            all = all && strstr(file->text, formats[i].mark[k]);
        if (all)
            found = &formats[i];
    }
    *end = kept;
    return found;
}

ty_status micro_read(struct import_file *file, struct record_list *list, struct ty_error *error)
{
    const struct micro_format *format = find(file);
    if (!format)
        return error_set(error, TY_ERR_INPUT, file->path, "is no benchmark output that is known");
    return format->read(file, list, error);
}

/* ---- calibrate import -------------------------------------------------------------------------
 */

uint32_t micro_sniff(const struct import_file *file)
{
    return find(file) ? 90 : 0;
}

/* A line of text for people, a line of JSON for the fit. */
static ty_status hand_over(const struct record_list *list, struct ty_import *out,
                           struct ty_error *error)
{
    ty_status status = TY_OK;
    for (size_t i = 0; i < list->n && status == TY_OK; i++) {
        char text[1024];
        struct json_writer json;
        json_begin(&json);
        record_write(&list->record[i], &json);
        record_describe(&list->record[i], text, sizeof text - 1);
        text_append(text, sizeof text, "\n");
        status = import_add(out, &json, text, !list->record[i].rejected, error);
    }
    return status;
}

ty_status micro_import(struct import_file *file, struct ty_import *out, struct ty_error *error)
{
    struct record_list list;
    const struct micro_format *format = find(file);
    if (format)
        text_format(out->format, sizeof out->format, "%s", format->name);
    record_list_init(&list);
    ty_status status = micro_read(file, &list, error);
    if (status == TY_OK)
        status = hand_over(&list, out, error);
    record_list_free(&list);
    return status;
}
